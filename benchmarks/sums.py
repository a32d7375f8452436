"""Is every published table at least as good as its own measurement, and as a projection of the same measurements?

python -m benchmarks sums [--runs 10] [--epsilon 1 0.1 0.01] [--budget tables balanced leaves] [--city corridor night]

Cities of five shapes: the case study's, a dense metro, and three that no number of the estimator was chosen on (a corridor with two peaks,
a city of several centres, a night network). Errors are root mean squares of the estimates, before rounding, over runs from fixed
seeds. A ratio below 1 is better than both; few elements and few runs make it vary by chance, so the number of counts that it rests on is beside.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import cbdp
from benchmarks.elsewhere import NOWHERE, elsewhere
from benchmarks.harness.data import RUSH, city, dense_city
from benchmarks.tables import figure, markdown
from cbdp.features import SINGLETON, FeatureDag
from cbdp.mechanisms import ConstraintBased
from cbdp.solvers.problem import bincount

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Case = tuple[FeatureDag, Ints]

MOST = 1.05


def case_of(name: str) -> Case:
    if name in NOWHERE:
        return elsewhere(name)
    found = city("weekday", RUSH) if name == "weekday" else dense_city(60)
    return found.features, found.truth


CITIES = ("weekday", "metro", *NOWHERE)


def errors(case: Case, epsilon: str, budget: str, runs: int) -> dict[str, Floats]:
    """By measured feature: the errors of the estimate, of a projection of the same measurements, and of the noisy table itself."""
    features, truth = case
    mechanism, squares = ConstraintBased(features, epsilon, budget=budget), dict[str, list[Floats]]()
    for seed in range(runs):
        release = mechanism.simulate(truth, seed)
        assert release.estimate is not None
        projected = cbdp.post_process(features, release.measurements, estimator="projection")
        for m in release.measurements:
            true = truth if m.feature == SINGLETON else _sums(features, m.feature, truth)
            found = (release.estimate.counts(m.feature), projected.counts(m.feature), m.values)
            squares.setdefault(m.feature, []).append(
                np.array([float(np.mean((each - true) ** 2)) for each in found])
            )
    return {name: np.sqrt(np.mean(rows, axis=0)) for name, rows in squares.items()}


def _sums(features: FeatureDag, name: str, truth: Ints) -> Floats:
    element = features.cells.element_of_cell[name][features.cell_of_leaf]
    return bincount(element, truth.astype(float), features.size(name))


def main(argv: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks sums")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--epsilon", nargs="+", default=["1", "0.1", "0.01"])
    parser.add_argument("--budget", nargs="+", default=["tables", "balanced", "leaves"])
    parser.add_argument("--city", nargs="+", choices=CITIES, default=list(CITIES))
    given = parser.parse_args(list(argv))
    head = ["city", "ε", "budget", "table", "counts", "estimate", "projection", "its own noise", "ratio"]
    rows, above = list[list[str]](), 0
    for name in given.city:
        case = case_of(name)
        for epsilon in given.epsilon:
            for budget in given.budget:
                for table, (ours, projected, own) in errors(case, epsilon, budget, given.runs).items():
                    ratio = ours / min(projected, own)
                    above += ratio > MOST and table != SINGLETON
                    counts = f"{case[0].size(table) * given.runs:,}"
                    found = [figure(ours), figure(projected), figure(own), f"{ratio:.2f}"]
                    rows.append([name, epsilon, budget, table, counts, *found])
    print(markdown(head, rows))
    tables = sum(row[3] != SINGLETON for row in rows)
    print(f"\nAbove {MOST}: {above} of {tables} tables.")
    return 0
