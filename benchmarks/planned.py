"""Whether counts come out as `cbdp check` and the page of `cbdp plan` say beforehand, by simulated releases of generated cities.

Claim: the errors that `cbdp check` and `cbdp plan` foresee are those of simulated releases, and their ranges hold (the page of `cbdp plan` says so).

python -m benchmarks planned [--runs 4] [--epsilon 2 1 0.3 0.1] [--data weekday weekend dense]

Both know no more than a round number of trips. For each table: the predicted error divided by that of published counts (root mean square), and
how often a count of about typical size (half to twice of it) was published within its range of 90 % confidence.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.budgets import GENERATED, case
from benchmarks.harness.markdown import markdown
from cbdp.counting import Counts
from cbdp.counting.counts import count
from cbdp.features import SINGLETON, FeatureDag
from cbdp.forecast.errors import expected_of, margins, model_of_mechanism
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.expected_error import DemandFacts

CONFIDENCE = 0.9


@dataclass(frozen=True)
class Found:
    """A table's prediction beside what simulated releases published."""

    table: str
    ratio: float  # predicted error ÷ simulated
    held: float  # share of typical counts within their range
    judged: int  # how many counts that is


def compared(features: FeatureDag, truth: Counts, epsilon: str, runs: int) -> Iterator[Found]:
    """By table."""
    mechanism = ConstraintBased(features, epsilon)
    facts = DemandFacts(1, _round(float(truth.value.sum())))
    of, precision = model_of_mechanism(mechanism, facts)
    noise = of.reconciled(precision)
    releases = [mechanism.simulate(truth, seed) for seed in range(runs)]
    for n, told in enumerate(expected_of(mechanism, facts, CONFIDENCE)):
        true = truth.of(features, told.feature).astype(float)
        off = np.array([release.counts(told.feature) - true for release in releases])
        near = (true > told.count / 2) & (true < told.count * 2)
        wide = margins(of, n, float(noise[n]), true[near], CONFIDENCE)
        error = max(float(np.sqrt(np.mean(off**2))), 1e-9)
        yield Found(
            told.feature,
            told.error / error,
            float(np.mean(np.abs(off[:, near]) <= wide)),
            runs * int(near.sum()),
        )


def _round(trips: float) -> float:
    """A public order of magnitude: two digits."""
    return float(f"{trips:.2g}")


def main(argv: list[str]) -> int:
    """Tables by city, and what they come to."""
    parser = argparse.ArgumentParser(prog="benchmarks planned", description=__doc__)
    parser.add_argument("--runs", type=int, default=4, help="simulated releases for each row")
    parser.add_argument("--epsilon", nargs="+", default=["2", "1", "0.3", "0.1"])
    parser.add_argument("--data", nargs="+", choices=GENERATED, default=list(GENERATED))
    options = parser.parse_args(argv)
    every: list[Found] = []
    for name in options.data:
        features, values = case(name, None)
        truth = count(values, features.universe)
        print(f"\n## {name}: {int(values.sum()):,} trips, {features!r}\n")
        rows = []
        for epsilon in options.epsilon:
            found = list(compared(features, truth, epsilon, options.runs))
            every += found
            rows.append([f"ε = {epsilon}", *(f"{f.ratio:.2f}, {f.held:.0%}" for f in found)])
        heads = ("predicted ÷ simulated, held", *(f.table for f in found))
        print(markdown(heads, rows), flush=True)
    tables = [f for f in every if f.table not in (SINGLETON, "total")]
    judged = sum(f.judged for f in tables)
    held = sum(f.held * f.judged for f in tables) / judged
    ratios = np.array([f.ratio for f in tables])
    print(
        f"\nOf tables but the total and single trip types: predicted ÷ simulated error is {np.median(ratios):.2f} in the middle, {ratios.min():.2f} to "
        f"{ratios.max():.2f}; {held:.0%} of {judged:,} typical counts are within their range of {CONFIDENCE:.0%}."
    )
    return 0
