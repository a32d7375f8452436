"""Running totals over a series: how noisy they get, by strategy and law, beside days that are added up.

Claim: with Gaussian noise the running total of a year is six times as precise as days added up; with pure ε nothing is gained (docs/explanation/running.md).

python -m benchmarks running [--periods 7 30 365] [--runs 20]

Deviations are in units of one day's noise: what each day alone would have at the same price for one person's one day. `seen` is measured on
generated counts, with exact noise from seeds; the rest is arithmetic. Spans are differences of totals.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from benchmarks.harness.markdown import figure, markdown
from cbdp import Feature, FeatureDag, Universe
from cbdp.estimation.continual import least_squares_weights, running_total
from cbdp.measuring.answers import measure_sums
from cbdp.mechanisms.continual import RunningTotals
from cbdp.privacy.continual import STRATEGIES, Strategy, identity
from cbdp.privacy.entropy import InsecureSeededEntropy

UNIVERSE = Universe(zone=[f"z{n}" for n in range(20)])
DAG = FeatureDag(UNIVERSE, [Feature("zone", by="zone")])
AMOUNTS = {"gaussian": Fraction(1, 8), "geometric": Fraction(1)}
SPANS = (1, 7, 30)


def running(strategy: str, law: str, periods: int) -> RunningTotals:
    return RunningTotals(DAG, "zone", AMOUNTS[law], periods, law=law, strategy=strategy)


def span_deviation(strategy: Strategy, last: int, span: int) -> float:
    """Of the trips in the last `span` periods before the end of period `last`: the difference of two totals."""
    late = least_squares_weights(strategy, last)
    if span >= last:
        return float(np.linalg.norm(late))
    early = np.zeros(len(late))
    before = least_squares_weights(strategy, last - span)
    early[: len(before)] = before
    return float(np.linalg.norm(late - early))


def seen(made: RunningTotals, periods: int, runs: int) -> float:
    """The error of the total after the last period, in trips."""
    trips = np.random.default_rng(1).poisson(200, (periods, UNIVERSE.size))
    tables, truth = list(trips.astype(np.int64)), trips.sum(axis=0)
    off = []
    for seed in range(runs):
        entropy = InsecureSeededEntropy(seed)
        answers = [measure_sums(made.sums, tables[: day + 1], made.noise, entropy) for day in range(periods)]
        off.append(running_total(made.sums, answers) - truth)
    return float(np.sqrt(np.mean(np.square(off))))


def row(strategy: str, law: str, periods: int, runs: int) -> list[str]:
    made = running(strategy, law, periods)
    day = (
        RunningTotals(DAG, "zone", AMOUNTS[law], 1, law=law, strategy=identity(1).name).noise.variance()
        ** 0.5
    )
    scale = made.noise.variance() ** 0.5 / day
    spans = [figure(scale * span_deviation(made.sums, periods, s)) for s in SPANS]
    own = figure(made.deviation(periods) / day)
    price = [f"{float(made.price(min(w, periods)) / made.price()):.3g}" for w in (7, periods)]
    return [str(periods), law, strategy, *spans, own, figure(seen(made, periods, runs) / day), *price]


def main(argv: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks running")
    parser.add_argument("--periods", type=int, nargs="+", default=[7, 30, 365])
    parser.add_argument("--runs", type=int, default=4)
    given = parser.parse_args(list(argv))
    head = [
        "days",
        "law",
        "strategy",
        "last day",
        "last 7",
        "last 30",
        "all",
        "all, seen",
        "price of 7 days",
        "of all",
    ]
    rows = [
        row(strategy, law, periods, given.runs)
        for periods in given.periods
        for law in AMOUNTS
        for strategy in STRATEGIES
    ]
    print(markdown(head, rows))
    return 0
