"""Three generated networks of other shapes than the case study's, on which no number of the estimator was chosen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cbdp.features import Dimension, Feature, FeatureDag, Universe

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rate = Callable[[np.random.Generator, Ints, Ints, Ints], Floats]


def network(stops: int, zones: list[int], periods: int) -> FeatureDag:
    """Tables by time, and by pair of zones and time."""
    place = Dimension(range(stops), zone=zones)
    universe = Universe(origin=place, destination=place, time=range(periods)).without_equal(
        "origin", "destination"
    )
    by = ["origin.zone", "destination.zone", "time"]
    return FeatureDag(universe, [Feature("time", by="time"), Feature("zone", by=by)])


def corridor(rng: np.random.Generator, o: Ints, d: Ints, t: Ints) -> Floats:
    """40 stops on a line: short trips, in one direction in the morning and in the other in the evening."""
    size, morning, evening = (
        rng.gamma(1.0, 1.0, 40),
        np.exp(-(((t - 2) / 1.5) ** 2)),
        np.exp(-(((t - 9) / 2) ** 2)),
    )
    apart = np.abs(o - d)
    made: Floats = size[o] * size[d] * np.exp(-apart / 6) * (0.15 + morning * (d > o) + evening * (d < o))
    return made


def polycentric(rng: np.random.Generator, o: Ints, d: Ints, t: Ints) -> Floats:
    """36 stops about three centres of unequal weight; zones that cut across all of them."""
    place = rng.random((36, 2))
    near = np.exp(-((place[:, None] - place[:3]) ** 2).sum(axis=-1) / 0.05) @ rng.dirichlet([2, 2, 2]) + 0.03
    away = np.hypot(*(place[o] - place[d]).T)
    made: Floats = near[o] * near[d] * np.exp(-away / 0.4) * (0.3 + rng.random(10))[t]
    return made


def night(rng: np.random.Generator, o: Ints, d: Ints, t: Ints) -> Floats:
    """A night network: from two stops in the centre to 38 others, fewer from hour to hour."""
    home = rng.pareto(1.5, 40) + 0.1
    made: Floats = np.where(o < 2, home[d], 0.02) * 0.6**t
    return made


# how trips are spread, the network, how many trips, how much single types differ, the seed
NOWHERE: dict[str, tuple[Rate, FeatureDag, int, float, int]] = {
    "corridor": (corridor, network(40, [s // 8 for s in range(40)], 12), 6000, 1.2, 1),
    "polycentric": (polycentric, network(36, [s % 6 for s in range(36)], 10), 15_000, 1.0, 2),
    "night": (night, network(40, [s // 10 for s in range(40)], 8), 900, 0.8, 3),
}


def elsewhere(kind: str) -> tuple[FeatureDag, Ints]:
    """Demand on which no number of the estimator was chosen."""
    weight, dag, trips, spread, seed = NOWHERE[kind]
    rng, codes = np.random.default_rng(seed), dag.universe.unrank_codes(np.arange(dag.universe.size))
    rate = weight(rng, *codes) * rng.lognormal(0, spread, dag.universe.size)
    return dag, rng.poisson(trips * rate / rate.sum()).astype(np.int64)
