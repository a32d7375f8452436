"""Whole trips: how long rounding takes where tables cross, and what gathering on few types costs in accuracy.

Claim: rounding takes at most 2.2 times as long as the estimate, and what gathering costs (docs/explanation/accuracy.md).

python -m benchmarks rounding [--sections time,error] [--tries 12] [--runs 3] [--bikes FOLDER]

*time*: a generated week (stops × stops × hours × days), and a week of bikes if its folder is given, with five tables by attributes drawn
at random: seconds to estimate and to round, and counts that are not their estimates rounded down or up.
*error*: the root mean squared error of single trip types after rounding, "few" and the default against "nearest", which has the least.
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import cbdp
from benchmarks.harness.data import bikes, city, dense_city
from benchmarks.harness.markdown import figure, markdown
from benchmarks.harness.page import machine
from benchmarks.harness.registry import Case
from cbdp.features import SINGLETON, TOTAL, Dimension, Feature, FeatureDag, Universe, periods
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.rounding import get
from cbdp_features.places import stops

SLOWER, COSTS = (
    3.0,
    1.05,
)  # rounding may take so many times as long as estimating; the default may cost so much over nearest
WEEK = dt.date(2014, 9, 8)
ATTRIBUTES = ("origin", "destination", "time", "day", "origin.zone", "destination.zone")
BUDGETS, EPSILONS = ("leaves", "balanced", "tables"), ("1", "0.1", "0.01")
Ints = NDArray[np.int64]


def generated_week(number: int = 24) -> tuple[Universe, Ints]:
    """Half of all trip types unused, the others with heavy tails."""
    rng = np.random.default_rng(7)
    held = Dimension(range(number), zone=[i % max(2, number // 6) for i in range(number)])
    universe = Universe(origin=held, destination=held, time=range(24), day=range(7))
    return universe, rng.poisson(rng.gamma(0.2, 1.0, universe.size)).astype(np.int64)


def bike_week(folder: str) -> tuple[Universe, Ints]:
    """Seven days from WEEK on, by stations, hours and days."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    places = stops(f"{folder}/stations.csv", columns={"id": "station_id"}, ids=int)
    days = [str(WEEK + dt.timedelta(n)) for n in range(7)]
    ends = {"origin": places.dimension(), "destination": places.dimension()}
    universe = Universe(**ends, time=periods("00:00", "24:00", "1h"), day=days)
    table = pq.read_table(f"{folder}/trips.parquet", columns=["origin", "destination", "start_time"])
    table = table.append_column("day", pc.strftime(table["start_time"], "%Y-%m-%d"))
    table = table.filter(pc.is_in(table["day"], pa.array(days)))
    return universe, cbdp.count(table, universe, columns={"time": "start_time"}).dense()


def tables(tries: int) -> Iterator[list[tuple[str, ...]]]:
    """The three tables of the week that once took nine minutes, then five drawn at random, again and again."""
    yield [("day",), ("day", "time"), ("origin", "day")]
    yield [
        ("day",),
        ("day", "time"),
        ("origin", "day"),
        ("origin.zone", "destination.zone", "time"),
        ("time",),
    ]
    every = [by for many in (1, 2, 3) for by in itertools.combinations(ATTRIBUTES, many)]
    rng = np.random.default_rng(1)
    for _ in range(tries):
        yield [every[k] for k in rng.choice(len(every), 5, replace=False)]


def times(name: str, universe: Universe, counts: Ints, tries: int) -> tuple[list[list[str]], float]:
    """A row for each choice of tables, and the largest ratio of seconds."""
    rows, worst, held = [], 0.0, cbdp.count(counts, universe)
    for wanted in tables(tries):
        dag = FeatureDag(universe, [Feature(" × ".join(by), by=list(by)) for by in wanted])
        measured = cbdp.measure(held, dag, 1, entropy=InsecureSeededEntropy(0))
        begun = time.perf_counter()
        estimate = cbdp.post_process(dag, measured)
        solved = time.perf_counter()
        rounded = get("nearest").whole(dag, *estimate.trips())
        took = solved - begun, time.perf_counter() - solved
        between = ", ".join(n for n in dag.features if n not in (SINGLETON, TOTAL))
        rows.append([name, between, *(f"{t:.2f}" for t in took), str(sum(rounded.violation.values()))])
        worst = max(worst, took[1] / took[0])
    return rows, worst


def errors(case: Case, runs: int) -> Iterator[list[str]]:
    """A row for each ε and budget: mean errors of nearest, few and the default, and types that nobody used."""
    for epsilon, budget in itertools.product(EPSILONS, BUDGETS):
        usual = ConstraintBased(case.features, epsilon, case.unit, budget=budget)
        found: dict[str, list[float]] = {}
        for seed in range(runs):
            estimate = usual.simulate(case.counts, seed).estimate
            assert estimate is not None
            for name in ("nearest", "few", usual.rounding):
                made = get(name).whole(case.features, *estimate.trips(), budget)
                counts = np.zeros(len(case.truth))
                counts[made.index] = made.value
                found.setdefault(f"{name} error", []).append(
                    float(np.sqrt(np.mean((counts - case.truth) ** 2)))
                )
                found.setdefault(f"{name} false", []).append(float((case.truth[made.index] == 0).sum()))
        mean = {what: float(np.mean(each)) for what, each in found.items()}
        ratios = (mean[f"{name} error"] / mean["nearest error"] for name in ("few", usual.rounding))
        false = (mean[f"{name} false"] for name in ("nearest", "few"))
        yield [
            case.name,
            epsilon,
            budget,
            figure(mean["nearest error"]),
            *(f"{r:.3f}" for r in ratios),
            *map(figure, false),
        ]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks rounding", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sections", default="time,error")
    parser.add_argument("--tries", type=int, default=12, help="choices of five tables (12)")
    parser.add_argument("--runs", type=int, default=3, help="releases for each error (3)")
    parser.add_argument("--bikes", help="a folder with stations.csv and trips.parquet (none)")
    options = parser.parse_args(argv)
    kept = True
    if "time" in options.sections:
        times("small", *generated_week(6), 6)  # compiles
        weeks = {"generated": generated_week()} | (
            {"bikes": bike_week(options.bikes)} if options.bikes else {}
        )
        made = [times(name, *week, options.tries) for name, week in weeks.items()]
        worst = max(ratio for _, ratio in made)
        header = ["week", "tables", "estimate, s", "round, s", "counts off"]
        print(markdown(header, [row for rows, _ in made for row in rows]))
        print(f"\n{machine()}\n\n- rounding takes at most {worst:.2f} times as long as estimating\n")
        kept = kept and worst <= SLOWER
    if "error" in options.sections:
        cases = [city("weekday", ("08:00", "10:00")), city("weekend", ("08:00", "10:00")), dense_city(60)]
        cases += (
            [bikes(options.bikes, which) for which in ("busiest day", "all weekdays")]
            if options.bikes
            else []
        )
        rows = [row for case in cases for row in errors(case, options.runs)]
        header = [
            "demand",
            "ε",
            "budget",
            "error, nearest",
            "few ÷ nearest",
            "default ÷ nearest",
            "false types, nearest",
            "few",
        ]
        print(markdown(header, rows))
        costs = max(float(row[5]) for row in rows)
        print(f"\n- the default costs at most {costs:.3f} times the error of nearest")
        kept = kept and costs <= COSTS
    return 0 if kept else 1
