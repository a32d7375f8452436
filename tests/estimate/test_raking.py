"""Leaves that share an error: their sum misses a well-measured count by more than both claim, and they bear the difference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from posterior_cases import DAG, UNIVERSE, demand, error, measure_demand

from cbdp import Measurement, post_process
from cbdp.estimate.posterior import estimate, expected_leaves
from cbdp.estimate.posterior.settings import TUNING
from cbdp.features import SINGLETON

MANY = UNIVERSE.size
TIME = DAG.partition("time").of_every_type()


def raked(mean: Any, variance: Any, *tables: Measurement) -> np.ndarray:
    return estimate._raked(DAG, tables, np.asarray(mean, dtype=float), np.asarray(variance, dtype=float))


def test_what_is_missing_is_shared_by_variance() -> None:
    """Leaves of 0.5 that claim to add up to within 2 are told by a total that they lack 100: each takes its part by variance."""
    variance = 0.01 * (1 + np.arange(MANY) % 2)
    told = raked(np.full(MANY, 0.5), variance, Measurement("total", [MANY // 2 + 100], variance=1.0))
    np.testing.assert_allclose(told, 0.5 + 100 * variance / variance.sum(), rtol=1e-9)


def test_leaves_that_are_known_stay() -> None:
    """A leaf of next to no variance does not move, however much the others must."""
    variance = np.where(np.arange(MANY) < 10, 1e-12, 0.05)
    told = raked(np.full(MANY, 1.0), variance, Measurement("total", [MANY + 80], variance=1.0))
    np.testing.assert_allclose(told[:10], 1.0, atol=1e-8)
    assert told.sum() == pytest.approx(MANY + 80)


def test_too_much_is_taken_away_but_a_tenth_is_left() -> None:
    """Leaves never go below a tenth of themselves: where one would, the others bear its part."""
    mean = np.where(np.arange(MANY) < 60, 20.0, 1.0)
    variance = np.where(np.arange(MANY) < 60, 0.01, 1.0)
    wanted = 60 * 20 + 0.3 * (MANY - 60)
    told = raked(mean, variance, Measurement("total", [wanted], variance=1.0))
    assert told.sum() == pytest.approx(wanted)
    assert (told >= TUNING.least_left * mean - 1e-12).all()
    np.testing.assert_allclose(told[60:], told[60], rtol=1e-9)
    gone = raked(mean, variance, Measurement("total", [1.0], variance=0.1))
    assert gone.sum() == pytest.approx(TUNING.least_left * mean.sum())


@pytest.mark.parametrize(
    "table",
    [
        Measurement("total", [MANY / 2 + 4], variance=1.0),  # chance
        Measurement("total", [MANY / 2 + 100], variance=400.0),  # known less well than its leaves
        Measurement("time", [100, 33, 31, 32], variance=100.0),  # as noisy as it is large
        Measurement("total", [MANY / 2 + 100]),  # of unknown noise
        Measurement("time", [90], variance=1.0, elements=np.array([1])),  # not whole
    ],
    ids=["chance", "noisier", "too noisy", "unknown", "part"],
)
def test_what_may_be_chance_moves_nothing(table: Measurement) -> None:
    """Only a count that is clear, whole, known better than its leaves' sum and missed for sure moves them."""
    mean = np.full(MANY, 0.5)
    assert raked(mean, np.full(MANY, 0.02), table) is mean


def test_coarse_features_hold_in_the_end() -> None:
    """Of several features that are missed, the coarsest is met in the end, and finer ones bear that alike."""
    time, total = [60.0, 30.0, 30.0, 30.0], 190.0
    tables = [Measurement("total", [total], variance=0.5), Measurement("time", time, variance=0.5)]
    told = raked(np.full(MANY, 0.3), np.full(MANY, 0.05), *tables)
    assert told.sum() == pytest.approx(total)
    np.testing.assert_allclose(np.bincount(TIME, told) - time, 10.0, rtol=1e-9)


def test_the_program_would_believe_their_sums() -> None:
    """Leaves that are all a fifth too low, with a claim of their own errors only: raked, tables and leaves are right again."""
    rng = np.random.default_rng(4)
    truth = rng.gamma(2.0, 4.0, MANY)
    mean, variance = 0.8 * truth + rng.normal(0, 0.1, MANY), np.full(MANY, 0.01) * truth
    tables = [
        Measurement("total", [truth.sum() + 1.0], variance=2.0),
        Measurement("time", np.bincount(TIME, truth) + rng.normal(0, 1, 4), variance=1.0),
    ]
    found = {}
    for name, leaves in (("believed", mean), ("raked", raked(mean, variance, *tables))):
        given = [*tables, Measurement(SINGLETON, leaves, variance=variance)]
        found[name] = post_process(DAG, given, estimator="projection", weights="inverse-variance")
    off = {name: made.counts("total")[0] - truth.sum() for name, made in found.items()}
    assert abs(off["raked"]) < 4
    assert abs(off["believed"]) > 10 * abs(off["raked"])
    leaf = {name: error(made.counts(SINGLETON), truth) for name, made in found.items()}
    assert leaf["raked"] < 0.7 * leaf["believed"]


def test_raking_happens_where_leaves_share_an_error() -> None:
    """Where a table catches expected leaves too high, what they add up to comes near the total that was measured."""
    truth = demand(5, 30.0)
    given = measure_demand(DAG, truth, "0.1", 1, "tables")
    apart = {}
    with pytest.MonkeyPatch.context() as patch:
        apart["raked"] = expected_leaves(DAG, given).values.sum() - given[0].values[0]
        patch.setattr(estimate, "_raked", lambda _, __, mean, ___: mean)
        apart["not"] = expected_leaves(DAG, given).values.sum() - given[0].values[0]
    assert apart["not"] > 0.05 * truth.sum()
    assert abs(apart["raked"]) < 0.2 * apart["not"]
