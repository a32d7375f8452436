"""SIGKILL at random instants over a series of daily releases: every day is released once, and the ledger equals the files.

Claim: whenever a series is killed, every day is released once and the ledger equals the files (docs/explanation/series.md).

    python -m benchmarks series_kills --kills 200 --days 30
    python -m benchmarks series_kills --kills 200 --days 30 --running 20

Each attempt is a process of its own that makes the next release; most are killed. A process notes on disk each time that it is
about to draw noise, so that draws can be compared with charges. `--running` keeps running totals in spans of so many days.
"""

from __future__ import annotations

import argparse
import datetime as dt
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.series_kills.attempts import Blow, attempt, phase, progress, times_of_one
from benchmarks.series_kills.checks import Killed, check
from benchmarks.series_kills.city import FIRST, write_city


def killed(
    folder: Path,
    kills: int,
    days: int,
    *,
    seed: int = 0,
    running: int = 0,
    say: Callable[[str], None] = print,
) -> Killed:
    """Kill a series so many times, let it end, and check everything that can be checked."""
    write_city(folder, days, running=running)
    start = time.monotonic()
    attempt(folder, FIRST, None)  # also creates the ledger
    whole, after = times_of_one(folder, running=running)
    rng = random.Random(seed)
    phases: Counter[str] = Counter()
    while sum(phases.values()) < kills:
        before = progress(folder)
        due = FIRST + dt.timedelta(days=min(days, before[1] + 1) - 1)
        struck = sum(phases.values())
        ahead = (
            before[1] * kills >= days * struck or before[1] == days - 1
        )  # the last release is kept for the end
        blow = Blow(rng.uniform(0, 0.1)) if before[1] == days else _blow(rng, whole, after, ahead=ahead)
        if attempt(folder, due, blow):
            phases[phase(before, progress(folder))] += 1
    attempt(folder, FIRST + dt.timedelta(days=days - 1), None)
    found = check(folder, days, phases, running=running)
    say(f"{found.kills} kills in {time.monotonic() - start:.0f} s: {dict(phases)}")
    return found


def _blow(rng: random.Random, whole: float, after: float, *, ahead: bool) -> Blow:
    """Most blows fall after the charge, where it matters. Where the series is ahead of the kills, few releases survive one."""
    if rng.random() < 0.2:
        return Blow(rng.uniform(0, whole - after))
    return Blow(rng.uniform(0, (0.6 if ahead else 1.4) * after), charged=True)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks series_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--running", type=int, default=0, metavar="DAYS", help="running totals in such spans")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        found = killed(Path(folder), options.kills, options.days, seed=options.seed, running=options.running)
    print(
        f"{found.days} days released once each, {found.reserved} charges, {found.draws} draws of noise, {found.released} notes; "
        "the ledger equals the files"
    )
    if options.running:
        print(
            f"{found.spans} spans charged once each, {found.again} charges for sums that may be drawn again, {found.sums} draws of "
            "sums; days, weeks and months add up"
        )
    return 0
