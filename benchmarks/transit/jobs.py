"""One experiment: a data set, the fleet sized on it, and what the real riders get from that fleet.

Sizing draws the riders' seconds by seed 0, the real riders leave at those of seed 1. Results are kept by the hash of all that
decides them (legs, city, rules, limits, the source of the search, and the log of a day's service, which a simulator that does
anything else would change): a run that was stopped goes on where it was, and a mechanism that draws the same trips again
needs no new fleet.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from benchmarks.transit.city import AS_IS, demand, place, riders
from benchmarks.transit.contestants import FLOOR, VOLUME, counts_of
from cbdp.transit import Legs, Operations, SearchSizer, figures, fleet_sizing, simulate

LIMIT, PERIOD = 180, 1800
RULES: Mapping[str, int | None] = {"each half hour": PERIOD, "the two hours": None}
HOURS = 2.0  # of search for one fleet, of which the paper allows 24
OPERATIONS: Mapping[str, Operations] = {
    AS_IS: Operations(),
    "16 seats": Operations(capacity=16),
    "rides twice as long, and 10 min": Operations(ride_percent=200, ride_slack=600),
    "both, and driving weighs 3": Operations(capacity=16, ride_percent=200, ride_slack=600, drive_weight=3),
}
TRIAL = (30, 27, 21, 21)  # the fleet whose day is logged


@dataclass(frozen=True)
class Job:
    """One data set to size a fleet on; `mechanism` None is the real one."""

    day: str
    mechanism: str | None
    epsilon: str = "1"
    seed: int = 0
    shape: str = AS_IS
    period: int | None = PERIOD
    operations: str = AS_IS

    @property
    def heavy(self) -> bool:
        """Whether the data set has many more trips than the real one, and its fleet takes most of a minute."""
        return self.mechanism is not None and heavy(self.mechanism)


def heavy(mechanism: str) -> bool:
    """Whether a contestant invents trips by the thousand: trees and Laplace noise, by their names.

    >>> [heavy(name) for name in ("Lap", "H5 unpruned", "O5", "P-leaves", "D again")]
    [True, True, False, False, False]
    """
    return mechanism.startswith(("H", "Lap")) or mechanism == VOLUME


@dataclass(frozen=True)
class Outcome:
    """A fleet and what the real riders get from it; no fleet: the reason."""

    trips: int
    legs: int = 0
    fleet: tuple[int, ...] = ()
    wait: float = float("nan")
    idle: float = float("nan")
    unserved: int = 0
    reason: str = ""
    seconds: float = 0.0

    @property
    def shuttles(self) -> float:
        return float(sum(self.fleet)) if self.fleet else float("nan")


def sizer(period: int | None) -> SearchSizer:
    return SearchSizer(LIMIT, period, threads=1, time_limit=3600 * HOURS)


def data_of(job: Job) -> tuple[int, Legs | None]:
    """The trips a fleet is sized on and their legs; none where there are more than the search takes."""
    if job.mechanism is None:
        counts = demand(job.day, job.shape)
    else:
        counts = counts_of(job.mechanism, job.epsilon, job.day, job.shape, job.seed)
    trips = int(counts.sum())
    if trips > sizer(job.period).most_legs:  # spare the memory: legs are more than trips
        return trips, None
    return trips, riders(job.day, counts, 2 + job.seed if job.mechanism == FLOOR else 0)


def work(job: Job, kept: Path | None = None) -> Outcome:
    """Size a fleet on the job's data set and run it on the real riders, unless that was done before."""
    made = attempt(job, kept)
    assert made is not None
    return made


def attempt(job: Job, kept: Path | None, *, only_kept: bool = False) -> Outcome | None:
    """The same; with `only_kept` nothing but the real demand is sized, and None is what was not done before."""
    trips, legs = data_of(job)
    if legs is None:
        return Outcome(trips, reason=f"more than {sizer(job.period).most_legs:,} trips")
    if not trips:
        return Outcome(0, reason="no trips at all")
    real = riders(job.day, demand(job.day, job.shape), 1)
    path = None if kept is None else kept / f"{key(job, legs, real)}.json"
    if path is not None and path.exists():
        return _read(path)
    if only_kept and job.mechanism is not None:
        return None
    made = replace(_sized(job, legs, real), trips=trips, legs=len(legs))
    if path is not None:
        _write(path, made)
    return made


def _sized(job: Job, legs: Legs, real: Legs) -> Outcome:
    city, _ = place()
    rules, begun = OPERATIONS[job.operations], time.perf_counter()
    sized = sizer(job.period).size(city, legs, rules)
    took = time.perf_counter() - begun
    if sized.fleet is None:
        return Outcome(0, reason=sized.reason, seconds=took)
    total = figures(simulate(city, sized.fleet, real, rules), city)["total"]
    unserved = int(total["unserved"])
    return Outcome(0, 0, sized.fleet.shuttles, total["wait"], total["idle"], unserved, seconds=took)


@cache
def _behaviour() -> bytes:
    """The search's source, and all that the simulator does on a weekday's riders."""
    city, _ = place()
    log = simulate(city, TRIAL, riders("weekday", demand("weekday"), 0), log=True).log
    assert log is not None
    return Path(str(fleet_sizing.__file__)).read_bytes() + log.tobytes()


def key(job: Job, legs: Legs, real: Legs) -> str:
    """The hash of everything that decides an outcome."""
    city, _ = place()
    made = hashlib.sha256(_behaviour())
    made.update(f"{OPERATIONS[job.operations]} {sizer(job.period)} {city.zones}".encode())
    arrays = [city.seconds, city.metres, *(city.depots(z) for z in range(len(city.zones)))]
    for each in (legs, real):
        names = ("origin", "destination", "zone", "release", "follows", "path", "timetable")
        arrays += [*(getattr(each, n) for n in names), np.array(each.hours)]
    for array in arrays:
        made.update(f"{array.shape}{array.dtype}".encode() + np.ascontiguousarray(array).tobytes())
    return made.hexdigest()[:32]


def _write(path: Path, made: Outcome) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_path = path.with_suffix(f".{os.getpid()}")
    partial_path.write_text(json.dumps(asdict(made)), encoding="utf-8")
    partial_path.replace(path)


def _read(path: Path) -> Outcome:
    found = json.loads(path.read_text(encoding="utf-8"))
    return Outcome(**{**found, "fleet": tuple(found["fleet"])})


def run(
    jobs: Sequence[Job], kept: Path | None, workers: int, *, only_kept: bool = False
) -> dict[Job, Outcome]:
    """All jobs, seed by seed, so that a run that is stopped leaves something of everything."""
    wanted = sorted(dict.fromkeys(jobs), key=lambda j: j.seed)
    found: dict[Job, Outcome] = {}
    do = partial(attempt, kept=kept, only_kept=only_kept)
    with ProcessPoolExecutor(workers) as pool:
        for done, (job, outcome) in enumerate(zip(wanted, pool.map(do, wanted), strict=True), 1):
            if outcome is not None:
                found[job] = outcome
            if done % 20 == 0 or done == len(wanted):
                print(f"transit: {done} of {len(wanted)} fleets", file=sys.stderr, flush=True)
    return found
