"""A few types that hold most of the trips: they must not swell what is expected of their neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cbdp
from cbdp.estimation.posterior import Posterior
from cbdp_solvers.problem import bincount

PLACES, AREAS = 180, 30
NAMES = [f"p{i}" for i in range(PLACES)]
PLACE = cbdp.Dimension(
    NAMES,
    area=[f"a{i * AREAS // PLACES}" for i in range(PLACES)],
    region=[f"r{i * 6 // PLACES}" for i in range(PLACES)],
)
UNIVERSE = cbdp.Universe(origin=PLACE, destination=PLACE)
DAG = cbdp.FeatureDag(
    UNIVERSE,
    [
        cbdp.Feature("regions", by=["origin.region", "destination.region"]),
        cbdp.Feature("areas", by=["origin.area", "destination.area"]),
    ],
)
SHARES = {"regions": "1/3", "areas": "1/3", "singleton": "1/3"}


def _stay_where_they_are() -> Any:
    """Two thirds of the trips stay in their place; the others go by gravity, and few go far."""
    rng = np.random.default_rng(1)
    o, d = UNIVERSE.unrank_codes(np.arange(UNIVERSE.size))
    size = rng.lognormal(0, 1.2, PLACES)
    rate = size[o] * size[d] / (1 + np.abs(o - d)) ** 2.75
    filled = rng.random(UNIVERSE.size) < np.minimum(1, 20 * rate)
    rate = np.where(o == d, 0.0, rate * filled)
    trips = rng.poisson(40_000 * rate / rate.sum())
    trips[o == d] = rng.poisson(160_000 * size / size.sum())
    return trips


def _sums(name: str, trips: Any) -> Any:
    return bincount(DAG.cells.element_of_cell[name][DAG.cell_of_leaf], trips.astype(float), DAG.size(name))


@pytest.mark.parametrize("revealed", [2**24, 2**13], ids=["all", "a quarter"])
def test_no_table_is_worse_than_its_noise(revealed: int) -> None:
    truth = _stay_where_they_are()
    mechanism = cbdp.ConstraintBased(
        DAG,
        1,
        budget=SHARES,
        public={"total": int(truth.sum())},
        sparse=True,
        estimator=Posterior(revealed=revealed),
    )
    ours: dict[str, list[float]] = {}
    noise: dict[str, list[float]] = {}
    for seed in range(3):
        release = mechanism.simulate(truth, seed)
        for name in ("regions", "areas"):
            told = next(m for m in release.measurements if m.feature == name)
            ours.setdefault(name, []).append(np.abs(release.counts(name) - _sums(name, truth)).mean())
            noise.setdefault(name, []).append(np.abs(told.values - _sums(name, truth)).mean())
    for name, errors in ours.items():
        assert np.mean(errors) < 0.9 * np.mean(noise[name])
