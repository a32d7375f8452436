"""The case study's Table 1 and Figure 5(c)(d): fleets sized on private demand, tried on the real riders.

python -m benchmarks transit [--runs 10] [--quick] [--days weekday,weekend]

For each private data set D̃ a fleet F(D̃) is sized and then run on the real riders, O(F(D̃), D): relative errors of shuttles,
mean wait and mean idle time against F(D) and O(F(D), D). The synthetic city stands for Ann Arbor. Riders leave at seconds
of their half hour that depend on a seed, the type and the rider's number in it; sizing uses seed 0, the real riders seed 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import figure, markdown, percent
from cbdp.datasets import Dataset, ann_arbor
from cbdp.mechanisms import ConstraintBased, Hierarchical, Laplace, Mechanism
from cbdp.transit import (
    City,
    Legs,
    ModeRule,
    Modes,
    Operations,
    SearchSizer,
    Service,
    built_in,
    figures,
    legs_of,
    path_cover,
    simulate,
    spread,
)

Ints = NDArray[np.int64]

RUSH = ("08:00", "10:00")
MECHANISMS = ("O5", "O4", "O3", "H5", "H4", "H3", "Lap")
EPSILONS = ("1", "0.1", "0.05", "0.01")
LIMIT, PERIOD = 180, 1800
RULES = {"each half hour": PERIOD, "the two hours": None}
METRICS = ("shuttles", "wait", "idle")
PUBLISHED: Mapping[str, Mapping[str, tuple[float, float, float]]] = {
    "weekday": {
        "O5": (0.158, 0.040, 0.061), "O4": (0.483, 0.003, 0.196), "O3": (0.510, 0.028, 0.145), "H5": (0.788, 0.028, 0.483),
        "H4": (1.262, 0.007, 0.578), "H3": (1.394, 0.029, 0.586), "Lap": (1.518, 0.029, 0.587), "original": (99, 135.0, 5130),
    },
    "weekend": {
        "O5": (0.252, 0.005, 0.004), "O4": (0.843, 0.024, 0.049), "O3": (0.891, 0.024, 0.051), "H5": (2.647, 0.025, 0.150),
        "H4": (3.694, 0.026, 0.159), "H3": (3.704, 0.024, 0.172), "Lap": (4.371, 0.021, 0.192), "original": (48, 127.8, 4779),
    },
}  # fmt: skip
TAILS = (0.5, 0.75, 1.0, 1.25)
AS_IS = "as calibrated"
VARIANTS: Mapping[str, Operations] = {
    AS_IS: Operations(),
    "16 seats": Operations(capacity=16),
    "rides twice as long, and 10 min": Operations(ride_percent=200, ride_slack=600),
    "both, and driving weighs 3": Operations(capacity=16, ride_percent=200, ride_slack=600, drive_weight=3),
}


@dataclass(frozen=True)
class Job:
    """One private data set to size a fleet on; `mechanism` None is the real one."""

    day: str
    mechanism: str | None
    epsilon: str = "1"
    seed: int = 0
    tail: float = 1.0
    period: int | None = PERIOD
    variant: str = AS_IS


@dataclass(frozen=True)
class Outcome:
    """A fleet and what the real riders get from it; no fleet: the reason."""

    job: Job
    trips: int
    fleet: tuple[int, ...] = ()
    wait: float = float("nan")
    idle: float = float("nan")
    unserved: int = 0
    reason: str = ""

    @property
    def shuttles(self) -> float:
        return float(sum(self.fleet)) if self.fleet else float("nan")


@cache
def place() -> tuple[City, Modes]:
    city = built_in()
    return city, ModeRule().choose(city)


@cache
def demand(day: str, tail: float) -> tuple[Dataset, Ints]:
    """The day's data set and its counts, made heavier- or lighter-tailed."""
    data = ann_arbor(seed=0, day="weekend" if day == "weekend" else "weekday", hours=RUSH)
    return data, reshaped(data.counts(), tail)


def reshaped(counts: Ints, tail: float) -> Ints:
    """The same types and total with counts in proportion to their power `tail`: 1 changes nothing."""
    if tail == 1.0:
        return counts
    made = np.zeros_like(counts)
    busy = np.flatnonzero(counts)
    wanted = counts[busy] ** tail
    share = 1 + (counts.sum() - len(busy)) * wanted / wanted.sum()
    made[busy] = np.floor(share).astype(np.int64)
    left = int(counts.sum() - made.sum())
    made[busy[np.argsort(np.floor(share) - share, kind="stable")[:left]]] += 1
    return made


def riders(data: Dataset, counts: Ints, seed: int) -> Legs:
    city, modes = place()
    types = np.flatnonzero(counts)
    return legs_of(spread(data.universe, types, counts[types], city, seed=seed), modes)


def mechanism(data: Dataset, name: str, epsilon: str) -> Mechanism:
    if name == "Lap":
        return Laplace(data.features(), epsilon)
    kind = ConstraintBased if name[0] == "O" else Hierarchical
    return kind(data.features(int(name[1])), epsilon)


def sizer(period: int | None) -> SearchSizer:
    return SearchSizer(LIMIT, period, threads=1)


def work(job: Job) -> Outcome:
    """Size a fleet on the job's data set and run it on the real riders."""
    city, modes = place()
    data, real = demand(job.day, job.tail)
    if job.mechanism is None:
        trips, legs = int(real.sum()), riders(data, real, 0)
    else:
        release = mechanism(data, job.mechanism, job.epsilon).simulate(real, job.seed)
        trips = release.total
        if trips > sizer(job.period).most_legs:  # legs are more than trips: spare the memory
            return Outcome(job, trips, reason=f"more than {sizer(job.period).most_legs:,} trips")
        legs = legs_of(spread(data.universe, release.index, release.value, city), modes)
    rules = VARIANTS[job.variant]
    sized = sizer(job.period).size(city, legs, rules)
    if sized.fleet is None:
        return Outcome(job, trips, reason=sized.reason)
    total = figures(simulate(city, sized.fleet, riders(data, real, 1), rules), city)["total"]
    return Outcome(job, trips, sized.fleet.shuttles, total["wait"], total["idle"], int(total["unserved"]))


def run(jobs: Sequence[Job], workers: int) -> dict[Job, Outcome]:
    """All jobs, the long ones first, in processes of their own."""
    wanted = list(dict.fromkeys(jobs))
    heavy = sorted(wanted, key=lambda j: j.mechanism is None or j.mechanism[0] == "O")
    found: dict[Job, Outcome] = {}
    with ProcessPoolExecutor(workers) as pool:
        for outcome in pool.map(work, heavy):
            found[outcome.job] = outcome
            if len(found) % 10 == 0 or len(found) == len(wanted):
                print(f"transit: {len(found)} of {len(wanted)} fleets", file=sys.stderr)
    return found


def error(outcome: Outcome, truth: Outcome, metric: str) -> float:
    """The relative error, signed."""
    return float(getattr(outcome, metric) / getattr(truth, metric) - 1)


def zone_error(outcome: Outcome, truth: Outcome) -> float:
    """The mean over zones of the relative error of their shuttles: totals cancel, this does not."""
    if not outcome.fleet:
        return float("nan")
    return float(np.mean([abs(n / m - 1) for n, m in zip(outcome.fleet, truth.fleet, strict=True)]))


def mean(values: Iterable[float]) -> float:
    kept = [v for v in values if np.isfinite(v)]
    return float(np.mean(kept)) if kept else float("nan")


def table_1(
    day: str, found: Mapping[Job, Outcome], runs: int
) -> tuple[str, dict[str, tuple[float, float, float, float]]]:
    """The rows of Table 1, and behind them the mean error in shuttles and the mean signed errors."""
    truth = found[Job(day, None)]
    rows, signed = [], {}
    behind: dict[str, tuple[float, float, float, float]] = {}
    for name in MECHANISMS:
        made = [found[Job(day, name, "1", seed)] for seed in range(runs)]
        cells = [name]
        for k, metric in enumerate(METRICS):
            errors = [error(o, truth, metric) for o in made]
            cells += [figure(mean(abs(e) for e in errors)), figure(PUBLISHED[day][name][k])]
        shuttles, wait, idle = (mean(error(o, truth, m) for o in made) for m in METRICS)
        signed[name] = shuttles, wait, idle
        behind[name] = (mean(abs(error(o, truth, "shuttles")) for o in made), *signed[name])
        lost = sum(not o.fleet for o in made)
        cells += [
            " ".join(percent(e) if np.isfinite(e) else "–" for e in signed[name]),
            figure(mean(zone_error(o, truth) for o in made)),
            f"{mean(o.trips for o in made):,.0f}",
            f"{lost} of {runs}" if lost else "",
        ]
        rows.append(cells)
    own = (truth.shuttles, truth.wait, truth.idle)
    pairs = [figure(v) for both in zip(own, PUBLISHED[day]["original"], strict=True) for v in both]
    rows.append(["original", *pairs, "", "", f"{truth.trips:,}", ""])
    header = [
        day,
        "shuttles",
        "published",
        "wait",
        "published",
        "idle",
        "published",
        "signed",
        "by zone",
        "trips",
        "no fleet",
    ]
    return markdown(header, rows), behind


def figure_5(day: str, found: Mapping[Job, Outcome], runs: int, epsilons: Sequence[str]) -> str:
    """Shuttles and wait over ε; where no fleet was found, the trips and the reason."""
    truth = found[Job(day, None)]
    rows = []
    for name in MECHANISMS:
        cells = [name]
        for epsilon in epsilons:
            made = [found[Job(day, name, epsilon, seed)] for seed in range(runs)]
            fleets = [o for o in made if o.fleet]
            if fleets:
                lost = (
                    f" ({len(made) - len(fleets)} of {len(made)} found none)"
                    if len(fleets) < len(made)
                    else ""
                )
                cells.append(
                    f"{mean(o.shuttles for o in fleets):.0f} · {mean(o.wait for o in fleets):.0f} s{lost}"
                )
            else:
                cells.append(f"no fleet found ({mean(o.trips for o in made):,.0f} trips)")
        rows.append(cells)
    rows.append(["original", *[f"{truth.shuttles:.0f} · {truth.wait:.0f} s"] * len(epsilons)])
    return markdown([day, *(f"ε = {e}" for e in epsilons)], rows)


def tails(day: str, found: Mapping[Job, Outcome], runs: int) -> str:
    rows = []
    for tail in TAILS:
        truth, (_, counts) = found[Job(day, None, tail=tail)], demand(day, tail)
        cells = [f"counts^{tail:g}", f"{int(counts.max())}", f"{truth.shuttles:.0f}", figure(truth.wait)]
        for name in ("O5", "O3"):
            made = [found[Job(day, name, "1", seed, tail)] for seed in range(runs)]
            cells += [
                percent(mean(error(o, truth, "shuttles") for o in made)),
                figure(mean(zone_error(o, truth) for o in made)),
            ]
        rows.append(cells)
    header = [
        "tail",
        "largest type",
        "original shuttles",
        "wait",
        "O5 shuttles",
        "O5 by zone",
        "O3 shuttles",
        "O3 by zone",
    ]
    return markdown(header, rows)


def variants(day: str, found: Mapping[Job, Outcome]) -> str:
    """Laplace's fleet under other rules of operation: what makes it larger or smaller than the published one."""
    rows = []
    for name in VARIANTS:
        truth, lap = (found[Job(day, m, variant=name)] for m in (None, "Lap"))
        grows = np.log(lap.shuttles / truth.shuttles) / np.log(lap.trips / truth.trips)
        shown = [
            f"{truth.shuttles:.0f}",
            f"{lap.shuttles:.0f}",
            figure(error(lap, truth, "shuttles")),
            figure(grows),
        ]
        rows.append([name, *shown])
    own, lap_error = PUBLISHED[day]["original"][0], PUBLISHED[day]["Lap"][0]
    rows.append(["published", figure(own), figure(own * (1 + lap_error)), figure(lap_error), ""])
    return markdown(["operations", "original", "Lap", "error", "growth exponent"], rows)


def originals(days: Sequence[str], found: Mapping[Job, Outcome]) -> str:
    """The original service under both readings of the limit, and the no-pooling reference."""
    rows = []
    city, _ = place()
    for day in days:
        data, real = demand(day, 1.0)
        legs = riders(data, real, 1)
        for name, period in RULES.items():
            made = found[Job(day, None, period=period)]
            service: Service = simulate(city, made.fleet, legs)
            total = figures(service, city)["total"]
            alone = path_cover(city, legs, service.release, Operations(), wait=LIMIT).total
            rows.append([
                day, name, f"{total['shuttles']:.0f}", " + ".join(map(str, made.fleet)), *(figure(total[k]) for k in
                ("wait", "wait95", "ride", "idle", "parked", "occupancy", "km", "unserved")), f"≥ {alone}",
            ])  # fmt: skip
    header = ["day", "limit holds for", "shuttles", "by zone", "wait", "95 %", "ride", "idle", "parked", "occupancy", "km", "unserved", "without pooling"]  # fmt: skip
    return markdown(header, rows)


def verdicts(day: str, behind: Mapping[str, tuple[float, float, float, float]]) -> list[tuple[str, bool]]:
    shuttles = {name: row[0] for name, row in behind.items()}
    best_o, worst_o = shuttles["O5"], max(shuttles[n] for n in ("O5", "O4", "O3"))
    others = [shuttles[n] for n in ("H5", "H4", "H3", "Lap")]
    return [
        (f"{day}: O5 has the smallest error in shuttles", best_o == min(shuttles.values())),
        (f"{day}: every O is ahead of every H and of Lap", worst_o < min(others)),
        (
            f"{day}: Lap's error is at least 5 times O5's ({shuttles['Lap'] / max(best_o, 1e-9):.1f})",
            shuttles["Lap"] >= 5 * best_o,
        ),
        (f"{day}: Lap lowers the wait and raises idle time", behind["Lap"][2] < 0 < behind["Lap"][3]),
    ]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks transit", description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="private data sets per figure")
    parser.add_argument("--quick", action="store_true", help="one run of everything at ε = 1, two over ε")
    parser.add_argument("--days", default="weekday,weekend", help="which days, with a comma between")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    options = parser.parse_args(argv)
    days, runs = options.days.split(","), 1 if options.quick else options.runs
    if strangers := [d for d in days if d not in PUBLISHED]:
        parser.error(f"there is no day {strangers[0]!r}: choose among {', '.join(PUBLISHED)}")
    few = min(runs, 3)
    epsilons = EPSILONS[:2] if options.quick else EPSILONS
    jobs = [Job(day, None, period=p) for day in days for p in RULES.values()]
    jobs += [Job(day, name, "1", seed) for day in days for name in MECHANISMS for seed in range(runs)]
    jobs += [Job(days[0], name, e, seed) for name in MECHANISMS for e in epsilons[1:] for seed in range(few)]
    jobs += [Job(days[0], None, tail=t) for t in TAILS]
    jobs += [Job(days[0], name, "1", seed, t) for name in ("O5", "O3") for t in TAILS for seed in range(runs)]
    jobs += [Job(days[0], m, variant=v) for v in VARIANTS for m in (None, "Lap")]
    found = run(jobs, options.workers)
    print(f"# Fleets sized on private demand (8–10 am, synthetic city, {runs} runs)\n")
    print(f"A zone's shuttles are the fewest with a mean wait of at most {LIMIT} s in each half hour.\n")
    print(originals(days, found), end="\n\n")
    checks: list[tuple[str, bool]] = []
    for day in days:
        print(f"## Table 1, {day}: relative errors at ε = 1\n")
        text, behind = table_1(day, found, runs)
        print(text, end="\n\n")
        checks += verdicts(day, behind)
    print(f"## Figure 5(c)(d), {days[0]}: shuttles · wait over ε ({few} runs)\n")
    print(figure_5(days[0], found, few, epsilons), end="\n\n")
    print(f"## How the tail of demand moves it, {days[0]}, ε = 1\n")
    print(tails(days[0], found, runs), end="\n\n")
    print(f"## Other operations, {days[0]}, ε = 1, one run\n")
    print(variants(days[0], found), end="\n\n")
    for text, holds in checks:
        print(f"- {text}: {'yes' if holds else 'NO'}")
    return 0 if all(holds for _, holds in checks) else 1
