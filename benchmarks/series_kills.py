"""SIGKILL at random instants over a series of daily releases: every day is released once, and the ledger equals the files.

    python -m benchmarks series_kills --kills 200 --days 30

Each attempt is a process of its own that makes the next release; most are killed. A process notes on disk each time that it is
about to draw noise, so that draws can be compared with charges.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import hashlib
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cbdp
from benchmarks.small_city import configured, write_stops
from cbdp.app.config import read
from cbdp.app.series import run_series
from cbdp.mechanisms.base import Mechanism
from cbdp.privacy.ledger import Ledger

FIRST = dt.date(2026, 3, 1)
CONFIG = configured(
    "a city that is killed",
    """
[privacy]
epsilon = 1
unit = "trip"
budget = "uniform"
cap = { per_day = 1000 }

[series]
calendar = "daily"
start = 2026-03-01

[output]
path = "releases/{period}"
""",
)


@dataclass(frozen=True)
class Killed:
    """What was found after all attempts."""

    kills: int  # processes that died
    days: int
    reserved: int
    draws: int
    released: int
    phases: Counter[str]  # where the kills struck


def write_city(folder: Path, days: int, each: int = 100) -> None:
    rng = np.random.default_rng(11)
    n = days * each
    seconds = np.repeat(np.arange(days), each) * 86_400 + rng.integers(6 * 3600, 12 * 3600, n)
    table = {
        "origin": [f"S{i}" for i in rng.integers(0, 6, n)],
        "destination": [f"S{i}" for i in rng.integers(0, 6, n)],
        "time": pa.array(np.datetime64(f"{FIRST}T00:00:00") + seconds.astype("timedelta64[s]")),
    }
    pq.write_table(pa.table(table), folder / "trips.parquet")
    write_stops(folder)
    (folder / "cbdp.toml").write_text(CONFIG)
    (folder / "releases").mkdir()


@dataclass(frozen=True)
class Blow:
    """When a process is killed: so many seconds after its start, or after its charge."""

    seconds: float
    charged: bool = False


def attempt(folder: Path, until: dt.date, blow: Blow | None) -> bool:
    """Run the series in a process, which is killed unless it ends before. Whether it was killed."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _work(folder, until, write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as charged:
        if blow is not None:
            if blow.charged:
                charged.read(1)  # comes with the charge, or with the end of the process
            time.sleep(blow.seconds)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    if blow is None and status:
        raise RuntimeError(f"a run that nobody killed ended with status {status}")
    return os.WIFSIGNALED(status)


def _work(folder: Path, until: dt.date, charged: int) -> None:
    """In the child: it never returns."""
    draw, reserve = Mechanism.release, Ledger.reserve

    def noted(self: Mechanism, *args: object, **options: object) -> object:
        with (folder / "draws").open("a") as out:
            out.write("noise\n")
            out.flush()
            os.fsync(out.fileno())
        return draw(self, *args, **options)  # type: ignore[arg-type]

    def told(self: Ledger, *args: object, **options: object) -> object:
        charge = reserve(self, *args, **options)  # type: ignore[arg-type]
        os.write(charged, b"c")
        return charge

    Mechanism.release = noted  # type: ignore[assignment, method-assign]
    Ledger.reserve = told  # type: ignore[assignment, method-assign]
    code = 1
    try:
        config = read(folder / "cbdp.toml")
        run_series(config, until, create_ledger=not _holds_charges(folder))
        code = 0
    except BaseException as error:  # noqa: BLE001 - the parent must hear of it
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        os._exit(code)


def _holds_charges(folder: Path) -> bool:
    path = folder / "ledger.sqlite"
    if not Ledger.started(path):
        return False
    with Ledger.view(path) as ledger:
        return bool(ledger.charges())


def _progress(folder: Path) -> tuple[int, int, int]:
    """Charges, releases that are noted, and folders."""
    path = folder / "ledger.sqlite"
    folders = sum(not p.name.startswith(".") for p in (folder / "releases").iterdir())
    if not Ledger.started(path):
        return 0, 0, folders
    with Ledger.view(path) as ledger:
        ledger.verify()
        events = [entry.event for entry in ledger.entries()]
    return events.count("reserved"), events.count("released"), folders


def _phase(before: tuple[int, int, int], after: tuple[int, int, int]) -> str:
    """Where a kill struck, as what it left tells."""
    if after[0] == before[0]:
        return "before the charge"
    if after[2] == before[2]:
        return "after the charge"
    return "after the files, before the note" if after[1] == before[1] else "after a release"


def killed(
    folder: Path, kills: int, days: int, *, seed: int = 0, say: Callable[[str], None] = print
) -> Killed:
    """Kill a series so many times, let it end, and check everything that can be checked."""
    write_city(folder, days)
    start = time.monotonic()
    attempt(folder, FIRST, None)  # also creates the ledger
    whole, after = _times_of_one(folder)
    rng = random.Random(seed)
    phases: Counter[str] = Counter()
    while sum(phases.values()) < kills:
        before = _progress(folder)
        due = FIRST + dt.timedelta(days=min(days, before[1] + 1) - 1)
        struck = sum(phases.values())
        ahead = (
            before[1] * kills >= days * struck or before[1] == days - 1
        )  # the last release is kept for the end
        blow = Blow(rng.uniform(0, 0.1)) if before[1] == days else _blow(rng, whole, after, ahead=ahead)
        if attempt(folder, due, blow):
            phases[_phase(before, _progress(folder))] += 1
    attempt(folder, FIRST + dt.timedelta(days=days - 1), None)
    found = check(folder, days, phases)
    say(f"{found.kills} kills in {time.monotonic() - start:.0f} s: {dict(phases)}")
    return found


def _blow(rng: random.Random, whole: float, after: float, *, ahead: bool) -> Blow:
    """Most blows fall after the charge, where it matters. Where the series is ahead of the kills, few releases survive one."""
    if rng.random() < 0.2:
        return Blow(rng.uniform(0, whole - after))
    return Blow(rng.uniform(0, (0.6 if ahead else 1.4) * after), charged=True)


def _times_of_one(folder: Path) -> tuple[float, float]:
    """How long a process takes that makes one release, and how much of that after the charge."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        write_city(place, 1)
        begin = time.time()
        attempt(place, FIRST, None)
        end = time.time()
        drawn = (place / "draws").stat().st_mtime
        return end - begin, max(0.05, end - drawn)


def check(folder: Path, days: int, phases: Counter[str]) -> Killed:
    """Every day once; the ledger equal to the files; no noise without a charge; nothing half written."""
    names = [(FIRST + dt.timedelta(days=n)).isoformat() for n in range(days)]
    found = sorted(p.name for p in (folder / "releases").iterdir())
    _must(found == names, f"the folders are {found}")
    with Ledger.view(folder / "ledger.sqlite") as ledger:
        ledger.verify()
        entries = ledger.entries()
        periods = {c.id: c.part.period for c in ledger.charges() if c.part}
        released = {periods[e.fields["charge"]]: e for e in entries if e.event == "released"}
        notes = sum(e.event == "released" for e in entries)
        _must(
            sorted(released) == names and notes == days,
            f"the ledger notes {notes} releases of {len(released)} days",
        )
        _must(ledger.spent.epsilon == len(periods), "what is spent is not the sum of all charges")
        for name in names:
            _check_release(folder / "releases" / name, ledger, released[name].fields["sha256"])
    draws = (folder / "draws").read_text().count("noise")
    _must(draws <= len(periods), f"noise was drawn {draws} times for {len(periods)} charges")
    return Killed(sum(phases.values()), days, len(periods), draws, notes, phases)


def _check_release(place: Path, ledger: Ledger, sha256: str) -> None:
    manifest = (place / "manifest.json").read_bytes()
    _must(
        hashlib.sha256(manifest).hexdigest() == sha256,
        f"{place.name}: its manifest is not the one that was noted",
    )
    release = cbdp.load(place)  # checks the hashes of all files
    _must(
        ledger.contains(release.manifest["ledger"]["head"]), f"{place.name}: its charge is not in the ledger"
    )
    total = int(release.counts("total")[0])
    _must(
        total == int(release.counts("zone").sum()) == int(release.value.sum()),
        f"{place.name}: totals disagree",
    )


def _must(holds: bool, what: str) -> None:
    if not holds:
        raise RuntimeError(what)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks series_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        found = killed(Path(folder), options.kills, options.days, seed=options.seed)
    print(
        f"{found.days} days released once each, {found.reserved} charges, {found.draws} draws of noise, {found.released} notes; "
        "the ledger equals the files"
    )
    return 0
