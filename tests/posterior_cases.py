"""A small city, demand of unequal stops, and what every estimate must be, for the tests of the posterior."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import cbdp
from cbdp import Feature, FeatureDag, Measurement, Universe, post_process
from cbdp.estimation.posterior import expected_leaves
from cbdp.features import SINGLETON
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import NoiseDistribution

EPSILONS = ("1", "0.1", "0.01")
NOISY = np.array([-3, 0, 1, 2, 5, 9, -1, 0])
UNIVERSE = Universe(
    origin=cbdp.Dimension(list("ABCDEFGH"), zone=list("nnnsssee")),
    destination=cbdp.Dimension(list("ABCDEFGH"), zone=list("nnnsssee")),
    time=["6", "7", "8", "9"],
)
DAG = FeatureDag(
    UNIVERSE,
    [Feature("time", by="time"), Feature("zone", by=["origin.zone", "destination.zone", "time"])],
)


def noised(noise: NoiseDistribution, law: np.ndarray, y: int) -> np.ndarray:
    """P(n) × P(y | n) for each count n, without any table."""
    return law * noise.pmf(y - np.arange(len(law)))


def poisson(mean: float, most: int) -> np.ndarray:
    return np.array([math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(most)])


def demand(seed: int, mean: float, universe: Universe = UNIVERSE) -> np.ndarray:
    """Counts with origins, destinations and times of unequal weight; some types have far more than that."""
    rng = np.random.default_rng(seed)
    codes = universe.unrank_codes(np.arange(universe.size))
    weight = np.prod([rng.lognormal(0, 0.8, int(c.max()) + 1)[c] for c in codes], axis=0)
    drawn = rng.poisson(mean * weight / weight.mean() * rng.lognormal(-0.5, 1.0, universe.size))
    return drawn.astype(np.int64)


def measure_demand(
    dag: FeatureDag, truth: np.ndarray, epsilon: Any, seed: int = 0, budget: Any = "leaves"
) -> list[Measurement]:
    counts = cbdp.count(truth, dag.universe)
    return cbdp.measure(counts, dag, epsilon, budget=budget, entropy=InsecureSeededEntropy(seed))


def error(values: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((values - truth) ** 2)))


def sound(dag: FeatureDag, measured: list[Measurement], **options: Any) -> cbdp.Estimate:
    """Finite means that are not negative, positive variances, and an answer that is certified and adds up."""
    told = expected_leaves(dag, measured, **options)
    assert told.variance is not None
    assert np.isfinite(told.values).all()
    assert (told.values >= 0).all()
    assert np.isfinite(told.variance).all()
    assert (told.variance > 0).all()
    made = post_process(dag, measured, estimator="posterior", **options)
    leaf = made.counts(SINGLETON)
    assert (leaf >= 0).all()
    assert made.solution.kkt_residual <= 1e-6
    for name in dag.features:
        if name != SINGLETON:
            inside = dag.partition(name).of_every_type()
            summed = np.bincount(inside, leaf, dag.size(name))
            np.testing.assert_allclose(made.counts(name), summed, rtol=1e-9, atol=1e-9)
    return made
