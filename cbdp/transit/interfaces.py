"""Plug-ins that a designer may bring: network designer, fleet sizer, dispatcher, mode choice; and how code that is not ours is called.

A plug-in is any object with the method of its kind; no base class is needed. As a part it also has a `name` and a line `about` it, both
texts. Network designers, fleet sizers and dispatchers may be external programs instead (`Command`). Every call runs in a thread or a
process of its own, with a time limit, and every failure is a `PluginError`. What plug-ins answer is checked in `cbdp.transit.plugins`.
"""

from __future__ import annotations

import json
import os
import queue
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from cbdp.errors import CbdpError, InputError
from cbdp.transit.city import City
from cbdp.transit.design import Demand
from cbdp.transit.modes import Legs
from cbdp.untrusted import read_json

if TYPE_CHECKING:
    from cbdp.transit.design import Design
    from cbdp.transit.dispatching import Decision, State
    from cbdp.transit.fleet_sizing import Sizing
    from cbdp.transit.modes import Itineraries
    from cbdp.transit.simulator import Fleet, Operations


T = TypeVar("T")


# The four kinds


@runtime_checkable
class NetworkDesigner(Protocol):
    """Chooses which arcs between hubs get buses: a `Design`, or pairs of hubs (as stops).

    >>> from cbdp.transit import DESIGNERS
    >>> list(DESIGNERS.known())
    ['path']
    """

    def design(self, city: City, demand: Demand) -> Design | Sequence[tuple[int, int]]: ...


@runtime_checkable
class FleetSizer(Protocol):
    """Chooses the number of shuttles of every zone: a `Sizing`, a `Fleet`, or numbers in the order of the zones.

    >>> from cbdp.transit import SIZERS
    >>> list(SIZERS.known())
    ['search']
    """

    def size(self, city: City, legs: Legs, operations: Operations) -> Sizing | Fleet | Sequence[int]: ...


@runtime_checkable
class Dispatcher(Protocol):
    """Decides which shuttle serves a leg that is released now, and how; None refuses the leg.

    >>> from cbdp.transit import DISPATCHERS
    >>> list(DISPATCHERS.known())
    ['cheapest-insertion']
    """

    def dispatch(self, state: State, leg: int) -> Decision | None: ...


@runtime_checkable
class ModeChoice(Protocol):
    """Chooses mode and itinerary of every ⟨origin, destination, time⟩. It is given the city and never any demand.

    >>> from cbdp.transit import MODE_CHOICES
    >>> list(MODE_CHOICES.known())
    ['rule']
    """

    def choose(self, city: City) -> Itineraries: ...


def with_method(method: str, *, external: bool = True) -> Callable[[object], Any]:
    """What `Parts.fits` is for plug-ins: an object with the method, a class that needs no settings, or a `Command`."""

    def fits(candidate: object) -> object:
        plugin = candidate
        if isinstance(candidate, type):
            try:
                plugin = candidate()
            except TypeError as failure:
                raise InputError(
                    f"{candidate.__name__} needs settings ({failure}): name an object instead of the class"
                ) from None
        if isinstance(plugin, Command):
            if not external:
                raise InputError(
                    "a mode choice cannot be an external command, for it is a function of the city: give a Python object"
                )
        elif not callable(getattr(plugin, method, None)):
            raise InputError(f"{plugin!r} has no method {method!r}: write one, or choose another plug-in")
        return plugin

    return fits


# Calls: in one thread, with a time limit


class PluginError(CbdpError):
    """A plug-in crashed, hung or broke a rule: which rule and, where known, which shuttle and which second.

    >>> try:
    ...     raise PluginError("capacity", "9 riders in a shuttle for 8", shuttle=2, second=3600)
    ... except PluginError as error:
    ...     print(error.rule, error.shuttle)
    capacity 2
    """

    def __init__(
        self, rule: str, message: str, *, shuttle: int | None = None, second: int | None = None
    ) -> None:
        where = "".join(
            f", {name} {value}"
            for name, value in (("shuttle", shuttle), ("second", second))
            if value is not None
        )
        super().__init__(f"{rule}{where}: {message}")
        self.rule, self.shuttle, self.second = rule, shuttle, second


class Caller:
    """Calls a plug-in in one thread and gives up after `seconds`; a thread that hangs is left behind."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self.calls.put(None)

    def __call__(self, what: str, function: Callable[..., T], *args: object) -> T:
        outcome: Future[T] = Future()

        def run() -> None:
            try:
                outcome.set_result(function(*args))
            except BaseException as failure:  # noqa: BLE001 - whatever foreign code raises is its failure, not ours
                outcome.set_exception(failure)

        self.calls.put(run)
        if not wait([outcome], self.seconds).done:
            raise PluginError("time", f"{what} hangs: no answer within {self.seconds:g} s")
        failure = outcome.exception()
        if isinstance(failure, PluginError):
            raise failure
        if failure is not None:
            raise PluginError("crash", f"{what} failed: {type(failure).__name__}: {failure}") from failure
        return outcome.result()

    def _serve(self) -> None:
        while (run := self.calls.get()) is not None:
            run()


def call(what: str, seconds: float, function: Callable[..., T], *args: object) -> T:
    """One call of a plug-in."""
    with Caller(seconds) as caller:
        return caller(what, function, *args)


def attempt(tasks: Mapping[str, Callable[[], T]]) -> dict[str, T | CbdpError]:
    """Every task's result or its error: one bad plug-in does not stop the evaluation of the others.

    >>> attempt({"one": lambda: 1})
    {'one': 1}
    """
    results: dict[str, T | CbdpError] = {}
    for name, task in tasks.items():
        try:
            results[name] = task()
        except CbdpError as failure:
            results[name] = failure
    return results


# External programs


COMMAND_PREFIX = "command:"
PLAN_FILE = "plan.json"


@dataclass(frozen=True)
class Command:
    """An external program: it is run with a folder as its last argument, reads the files there and writes `plan.json`.

    The folder has `problem.json` (kind, zones, hubs, rules, hours), `stops.parquet`, `times.parquet` (from, to, seconds, metres),
    and `legs.parquet` or `demand.parquet`. Answers: {"fleet": {zone: shuttles}} of a fleet sizer, {"arcs": [[hub, hub], …]} of a
    network designer, {"visits": […]} of a dispatcher, which is given all legs at once (see `cbdp.transit.replay`).

    >>> Command(("python3", "sizer.py"), seconds=60).arguments
    ('python3', 'sizer.py')
    """

    arguments: tuple[str, ...]
    seconds: float = 600.0

    name: ClassVar[str] = "command"
    about: ClassVar[str] = "an external program"

    def __post_init__(self) -> None:
        if not self.arguments:
            raise InputError(f"the command of a plug-in is empty: write the program after {COMMAND_PREFIX!r}")

    @classmethod
    def parse(cls, text: str) -> Command:
        """The command that a text like "command: java -jar sizer.jar" names."""
        return cls(tuple(shlex.split(text.removeprefix(COMMAND_PREFIX))))

    @property
    def program(self) -> str:
        return self.arguments[0]

    def run(self, fill: Callable[[Path], None]) -> object:
        """The program's answer to the files that `fill` writes into a folder."""
        with tempfile.TemporaryDirectory(prefix="cbdp-") as name:
            folder = Path(name)
            fill(folder)
            self._run(folder)
            answer = folder / PLAN_FILE
            if not answer.exists():
                raise PluginError("answer", f"{self.program!r} wrote no {PLAN_FILE}")
            try:
                return read_json(answer)
            except (OSError, ValueError) as failure:
                raise PluginError(
                    "answer", f"{PLAN_FILE} of {self.program!r} is not valid JSON: {failure}"
                ) from None

    def _run(self, folder: Path) -> None:
        log = folder / "output.txt"
        with log.open("wb") as output:
            try:
                process = subprocess.Popen(
                    [*self.arguments, str(folder)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            except OSError as failure:
                raise PluginError("crash", f"{self.program!r} cannot be run: {failure}") from None
            try:
                code = process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                raise PluginError(
                    "time", f"{self.program!r} hangs: no answer within {self.seconds:g} s"
                ) from None
            finally:
                _terminate(process)
        if code:
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise PluginError(
                "crash",
                f"{self.program!r} ended with code {code}: {lines[-1] if lines else 'it printed nothing'}",
            )


def _terminate(process: subprocess.Popen[bytes]) -> None:
    """End a program and whatever it started: it has a session of its own."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, AttributeError):
            process.kill()
        process.wait()


def answer_entry(answer: object, name: str, kind: type[T]) -> T:
    """One entry of a program's answer."""
    entry = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(entry, kind):
        raise PluginError("answer", f"{PLAN_FILE} has no {name!r} ({kind.__name__})")
    return entry


def write_problem(
    folder: Path,
    kind: str,
    city: City,
    *,
    legs: Legs | None = None,
    demand: Demand | None = None,
    rules: Mapping[str, object],
) -> None:
    """Write the files that an external program reads."""
    problem: dict[str, object] = {
        "kind": kind,
        "zones": list(city.zones),
        "hubs": [city.names[h] for h in city.hubs],
        "rules": dict(rules),
    }
    n, names, zones = len(city), np.array(city.names), np.array(city.zones)
    stops = {"stop": names, "x": city.x, "y": city.y, "zone": zones[city.zone], "hub": city.hub}
    pairs = {"from": np.repeat(names, n), "to": np.tile(names, n)}
    times = {**pairs, "seconds": city.seconds.ravel(), "metres": city.metres.ravel()}
    _write_parquet(folder / "stops.parquet", stops)
    _write_parquet(folder / "times.parquet", times)
    if legs is not None:
        problem |= {"hours": list(legs.hours), "timetable": legs.timetable.tolist()}
        table = {
            "leg": np.arange(len(legs)), "trip": legs.trip, "release": legs.release, "follows": legs.follows, "path": legs.path,
            "origin": names[legs.origin], "destination": names[legs.destination], "zone": zones[legs.zone],
        }  # fmt: skip
        _write_parquet(folder / "legs.parquet", table)
    if demand is not None:
        ends = {"origin": names[demand.origin], "destination": names[demand.destination]}
        _write_parquet(folder / "demand.parquet", {**ends, "trips": demand.trips})
    (folder / "problem.json").write_text(json.dumps(problem), encoding="utf-8")


def _write_parquet(path: Path, table: Mapping[str, object]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(dict(table)), path)
