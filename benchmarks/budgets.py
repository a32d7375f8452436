"""How well budgets serve their targets, and whether errors are as the model of budgets predicts them.

Claim: errors are as the model of budgets predicts them, and shares serve all targets at once (docs/explanation/accuracy.md).

python -m benchmarks budgets [--runs 5] [--epsilon 1 0.1 0.01] [--data weekday weekend dense] [--folder DIR] [--estimator projection]

The first table needs no runs: the worst ratio to a specialist, who spends all of ε on one table, and the least that any shares could
have. The second divides the error that the model predicts (from the number of trips and the share of trip types in use) by that of
simulated releases before rounding, for each table. With --folder the bike data are tried too (busiest, pooled).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.data import BUSIEST, POOLED, bikes, city, dense_city
from benchmarks.harness.markdown import figure, markdown
from cbdp.counting.counts import count
from cbdp.features import SINGLETON, TOTAL, FeatureDag
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.budget import BUDGETS, MAX_TABLE_EPSILON, AllocationProblem, allocate, measured_features
from cbdp.privacy.expected_error import DemandFacts, expected_errors

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HOURS = ("08:00", "10:00")
SERVED = ("tables", "balanced", "leaves")
NEAR = 0.15  # how far a prediction may be off
GENERATED, REAL = ("weekday", "weekend", "dense"), {"busiest": BUSIEST, "pooled": POOLED}


def case(name: str, folder: str | None) -> tuple[FeatureDag, Ints]:
    """Features and true counts."""
    if name in REAL:
        found = bikes(folder or "", REAL[name])
    else:
        found = (
            dense_city(60) if name == "dense" else city("weekend" if name == "weekend" else "weekday", HOURS)
        )
    return found.features, np.asarray(found.truth)


def standings(features: FeatureDag) -> Iterator[list[str]]:
    """How each budget stands: its shares, the worst ratio and the bound."""
    for name in SERVED:
        asked = AllocationProblem(
            features, measured_features(features), Fraction(1), enough=MAX_TABLE_EPSILON
        )
        found = BUDGETS.get(name).specialist_ratios(asked)
        assert found is not None
        given = allocate(features, 1, name, enough=MAX_TABLE_EPSILON)
        listed = ", ".join(f"{n} {float(e):.3g}" for n, e in given.items())
        yield [
            f"{name}: {listed}",
            figure(found.worst),
            figure(found.bound),
            f"{found.worst / found.bound:.3f}",
        ]


def simulated(mechanism: ConstraintBased, truth: Ints, runs: int) -> dict[str, float]:
    """The root mean square error of each feature over simulated releases, before rounding."""
    counts = count(truth, mechanism.features.universe)
    wanted = {n: counts.of(mechanism.features, n) for n in mechanism.features.features}
    squares: dict[str, list[float]] = {n: [] for n in wanted}
    for seed in range(runs):
        estimate = mechanism.simulate(counts, seed).estimate
        assert estimate is not None
        for name, true in wanted.items():
            squares[name].append(float(np.mean((estimate.counts(name) - true) ** 2)))
    return {name: float(np.sqrt(np.mean(found))) for name, found in squares.items()}


def compared(
    features: FeatureDag, truth: Ints, options: argparse.Namespace
) -> Iterator[tuple[str, dict[str, float]]]:
    """By ε and budget, the predicted error of each feature divided by the simulated one."""
    weights = "inverse-variance" if options.estimator == "projection" else None
    facts = DemandFacts(1, float(truth.sum()), float(np.mean(truth > 0)))
    for epsilon in options.epsilon:
        for budget in SERVED:
            mechanism = ConstraintBased(
                features,
                epsilon,
                budget=budget,
                estimator=options.estimator,
                weights=weights,
                rounding="nearest",
            )
            given = {a.feature: a.share for a in mechanism.answers()}
            known = facts if weights is None else None
            said, found = expected_errors(features, given, known), simulated(mechanism, truth, options.runs)
            yield f"ε = {epsilon}, {budget}", {n: said[n] / found[n] for n in features.features}


def chance(counts: int) -> float:
    """The standard error of the logarithm of a root mean square over so many counts with Laplace noise."""
    return math.sqrt(5.0 / counts) / 2.0


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks budgets", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="simulated releases for each row")
    parser.add_argument("--epsilon", nargs="+", default=["1", "0.1", "0.01"])
    parser.add_argument("--data", nargs="+", choices=(*GENERATED, *REAL), default=None)
    parser.add_argument("--folder", help="where the bike data are")
    parser.add_argument("--estimator", choices=("posterior", "projection"), default="posterior")
    options = parser.parse_args(argv)
    ratios: dict[str, list[tuple[float, float]]] = {"tables": [], "single trip types": []}
    for name in options.data or (GENERATED if options.folder is None else (*GENERATED, *REAL)):
        features, truth = case(name, options.folder)
        print(f"\n## {name}: {int(truth.sum()):,} trips, {features!r}\n")
        print(markdown(("budget", "worst ratio", "bound", "ratio of both"), standings(features)))
        print(f"\nPredicted ÷ simulated error, {options.runs} runs, estimator {options.estimator}\n")
        rows = []
        for what, found in compared(features, truth, options):
            rows.append([what, *(f"{found[n]:.2f}" for n in features.features)])
            for table, ratio in found.items():
                kind = "single trip types" if table == SINGLETON else "tables"
                if table != TOTAL:
                    ratios[kind].append((ratio, chance(features.size(table) * options.runs)))
        print(markdown(("", *features.features), rows), flush=True)
    print("\nOf all ratios but those of totals, which are too few to judge by:\n")
    for what, pairs in ratios.items():
        ratio, sure = np.array(pairs).T
        off = np.abs(np.log(ratio))
        near, allowed = np.mean(off <= np.log1p(NEAR)), np.mean(off <= np.log1p(NEAR) + 2 * sure)
        print(
            f"- {what}: {near:.0%} of {len(ratio)} within {NEAR:.0%}, {allowed:.0%} but for two standard errors; median ratio "
            f"{np.median(ratio):.2f}, {ratio.min():.2f} to {ratio.max():.2f}"
        )
    return 0
