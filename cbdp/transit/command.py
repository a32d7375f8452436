"""External programs as plug-ins: what they are given as files, how they are run, and what they answer."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.transit.calling import PluginError
from cbdp.transit.city import City, columns
from cbdp.transit.demand import Legs
from cbdp.transit.design import Demand
from cbdp.untrusted import read_json

PREFIX = "command:"
ANSWER = "plan.json"


@dataclass(frozen=True)
class Command:
    """An external program: it is run with a folder as its last argument, reads the files there and writes `plan.json`.

    The folder has `problem.json` (kind, zones, hubs, rules, hours), `stops.parquet`, `times.parquet` (from, to, seconds, metres),
    and `legs.parquet` or `demand.parquet`. Answers: {"fleet": {zone: shuttles}} of a fleet sizer, {"arcs": [[hub, hub], …]} of a
    network designer, {"visits": […]} of a dispatcher, which is given all legs at once (see `cbdp.transit.plan`).

    >>> Command(("python3", "sizer.py"), seconds=60).arguments
    ('python3', 'sizer.py')
    """

    arguments: tuple[str, ...]
    seconds: float = 600.0

    name: ClassVar[str] = "command"
    about: ClassVar[str] = "an external program"

    def __post_init__(self) -> None:
        if not self.arguments:
            raise InputError(f"the command of a plug-in is empty: write the program after {PREFIX!r}")

    @classmethod
    def parse(cls, text: str) -> Command:
        """The command that a text like "command: java -jar sizer.jar" names."""
        return cls(tuple(shlex.split(text.removeprefix(PREFIX))))

    @property
    def program(self) -> str:
        return self.arguments[0]

    def run(self, fill: Callable[[Path], None]) -> Any:
        """The program's answer to the files that `fill` writes into a folder."""
        with tempfile.TemporaryDirectory(prefix="cbdp-") as name:
            folder = Path(name)
            fill(folder)
            self._run(folder)
            answer = folder / ANSWER
            if not answer.exists():
                raise PluginError("answer", f"{self.program!r} wrote no {ANSWER}")
            try:
                return read_json(answer)
            except (OSError, ValueError) as failure:
                raise PluginError(
                    "answer", f"{ANSWER} of {self.program!r} is not valid JSON: {failure}"
                ) from None

    def _run(self, folder: Path) -> None:
        with (folder / "output.txt").open("wb") as output:
            process = self._started(folder, output)
            try:
                code = process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                raise PluginError(
                    "time", f"{self.program!r} hangs: no answer within {self.seconds:g} s"
                ) from None
            finally:
                _end(process)
        if code:
            said = (folder / "output.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise PluginError(
                "crash",
                f"{self.program!r} ended with code {code}: {said[-1] if said else 'it printed nothing'}",
            )

    def _started(self, folder: Path, output: Any) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [*self.arguments, str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as failure:
            raise PluginError("crash", f"{self.program!r} cannot be run: {failure}") from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and whatever it started: it has a session of its own."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, AttributeError):
            process.kill()
        process.wait()


def part_of(answer: Any, name: str, kind: type) -> Any:
    """One entry of a program's answer."""
    if not isinstance(answer, dict) or not isinstance(answer.get(name), kind):
        raise PluginError("answer", f"{ANSWER} has no {name!r} ({kind.__name__})")
    return answer[name]


def write_problem(
    folder: Path,
    kind: str,
    city: City,
    *,
    legs: Legs | None = None,
    demand: Demand | None = None,
    rules: Mapping[str, Any],
) -> None:
    """Write the files that an external program reads."""
    problem: dict[str, Any] = {
        "kind": kind,
        "zones": list(city.zones),
        "hubs": [city.names[h] for h in city.hubs],
        "rules": dict(rules),
    }
    n, names = len(city), np.array(city.names)
    pairs = {"from": np.repeat(names, n), "to": np.tile(names, n)}
    times = {**pairs, "seconds": city.seconds.ravel(), "metres": city.metres.ravel()}
    _parquet(folder / "stops.parquet", columns(city))
    _parquet(folder / "times.parquet", times)
    if legs is not None:
        problem |= {"hours": list(legs.hours), "timetable": legs.timetable.tolist()}
        _parquet(folder / "legs.parquet", _leg_columns(city, legs))
    if demand is not None:
        ends = {"origin": names[demand.origin], "destination": names[demand.destination]}
        _parquet(folder / "demand.parquet", {**ends, "trips": demand.trips})
    (folder / "problem.json").write_text(json.dumps(problem), encoding="utf-8")


def _leg_columns(city: City, legs: Legs) -> Mapping[str, Any]:
    names = np.array(city.names)
    plain: dict[str, Ints] = {k: getattr(legs, k) for k in ("trip", "release", "follows", "path")}
    return {
        "leg": np.arange(len(legs)),
        **plain,
        "origin": names[legs.origin],
        "destination": names[legs.destination],
        "zone": np.array(city.zones)[legs.zone],
    }


def _parquet(path: Path, table: Mapping[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(dict(table)), path)
