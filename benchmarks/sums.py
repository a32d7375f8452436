"""Is every published table at least as good as its own measurement, and as a projection of the same measurements?

python -m benchmarks sums [--runs 10] [--epsilon 1 0.1 0.01] [--budget tables balanced leaves] [--city corridor night]

Cities of five shapes: the case study's, a dense metro, and three that no number of the estimator was chosen on (a corridor with two peaks,
a city of several centres, a night network). Errors are root mean squares of the estimates, before rounding, over runs from fixed
seeds. A ratio below 1 is better than both; few elements and few runs make it vary by chance, so the mean number of counts that it rests on is beside.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

import cbdp
from benchmarks.harness.data import RUSH, city, dense_city
from benchmarks.tables import figure, markdown
from cbdp.features import SINGLETON, Dimension, Feature, FeatureDag, Universe
from cbdp.mechanisms import ConstraintBased
from cbdp.solvers.problem import bincount

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rate = Callable[[np.random.Generator, Ints, Ints, Ints], Floats]
Case = tuple[FeatureDag, Ints]

MOST = 1.05


def network(stops: int, zones: Sequence[int], periods: int, trips: int, seed: int, rate: Rate) -> Case:
    """Poisson trips about rates that are uneven in themselves; tables by time and by pair of zones."""
    place = Dimension(range(stops), zone=list(zones))
    universe = Universe(origin=place, destination=place, time=range(periods)).without_equal(
        "origin", "destination"
    )
    features = FeatureDag(
        universe,
        [Feature("time", by="time"), Feature("zone", by=["origin.zone", "destination.zone", "time"])],
    )
    rng = np.random.default_rng(seed)
    o, d, t = universe.unrank_codes(np.arange(universe.size))
    weight = rate(rng, o, d, t) * rng.lognormal(0, 1, universe.size)
    return features, rng.poisson(trips * weight / weight.sum()).astype(np.int64)


def corridor() -> Case:
    """One line: into town in the morning, out in the evening."""

    def rate(rng: np.random.Generator, o: Ints, d: Ints, t: Ints) -> Floats:
        size = rng.gamma(1.0, 1.0, 40)
        morning, evening = np.exp(-(((t - 2) / 1.5) ** 2)), np.exp(-(((t - 9) / 2.0) ** 2))
        made: Floats = (
            size[o] * size[d] * np.exp(-np.abs(o - d) / 6) * (0.15 + morning * (d > o) + evening * (d < o))
        )
        return made

    return network(40, [s // 8 for s in range(40)], 12, 6_000, 1, rate)


def polycentric() -> Case:
    """Three centres that draw trips from near and far."""

    def rate(rng: np.random.Generator, o: Ints, d: Ints, t: Ints) -> Floats:
        place = rng.random((36, 2))
        near = np.exp(-((place[:, None] - place[:3]) ** 2).sum(-1) / 0.05) @ rng.dirichlet([2, 2, 2]) + 0.03
        apart = np.hypot(*(place[o] - place[d]).T)
        made: Floats = near[o] * near[d] * np.exp(-apart / 0.4) * (0.3 + rng.random(10))[t]
        return made

    return network(36, [s % 6 for s in range(36)], 10, 15_000, 2, rate)


def night() -> Case:
    """From two places to homes, fewer every hour."""

    def rate(rng: np.random.Generator, o: Ints, d: Ints, t: Ints) -> Floats:
        home = rng.pareto(1.5, 40) + 0.1
        made: Floats = np.where(o < 2, home[d], 0.02) * 0.6**t
        return made

    return network(40, [s // 10 for s in range(40)], 8, 900, 3, rate)


def known(name: str) -> Case:
    found = city("weekday", RUSH) if name == "weekday" else dense_city(60)
    return found.features, found.truth


CITIES: dict[str, Callable[[], Case]] = {
    "weekday": lambda: known("weekday"),
    "metro": lambda: known("metro"),
    "corridor": corridor,
    "polycentric": polycentric,
    "night": night,
}


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
    parser.add_argument("--city", nargs="+", choices=list(CITIES), default=list(CITIES))
    given = parser.parse_args(list(argv))
    head = ["city", "ε", "budget", "table", "counts", "estimate", "projection", "its own noise", "ratio"]
    rows, above = list[list[str]](), 0
    for name in given.city:
        case = CITIES[name]()
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
