"""The posterior on hard input: any counts, any universe, any prior; and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posterior_cases import DAG, UNIVERSE, demand, sound
from strategies import Case, cases

from cbdp import FeatureDag, Measurement, Universe, post_process
from cbdp.errors import InputError
from cbdp.estimation.posterior import expected_leaves, rate_model
from cbdp.features import SINGLETON
from cbdp.mechanisms import ConstraintBased

ONE = FeatureDag(Universe(stop=list("ABCDEFGH")), [])
TWO = FeatureDag(Universe(stop=["A", "B"]), [])
LAST = FeatureDag(Universe(stop=["A"]), [])


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-4, 0.01, 1.0, 50.0, 1e3, 1e6, 1e8])
@pytest.mark.parametrize("kind", ["zeros", "noise", "negative", "huge"])
def test_hard_counts(kind: str, scale: float) -> None:
    """No trips at all, noise alone, all noisy counts negative, one count of 10⁹: at any scale of the noise."""
    rng = np.random.default_rng(7)
    noise = np.rint(rng.laplace(size=UNIVERSE.size) * scale).astype(np.int64)
    if kind == "zeros":
        noise[:] = 0
    elif kind == "negative":
        noise = -np.abs(noise) - 1
    elif kind == "huge":
        noise[3] = 10**9
    total = {"zeros": 0, "noise": round(scale), "negative": -round(scale) - 1, "huge": 10**9}[kind]
    time = np.bincount(DAG.partition("time").of_every_type(), noise, 4)
    made = sound(
        DAG,
        [
            Measurement(SINGLETON, noise, scale=scale),
            Measurement("total", [total], scale=scale),
            Measurement("time", time.astype(np.int64), scale=scale),
        ],
    )
    if kind == "huge" and scale <= 1e6:
        assert made.counts(SINGLETON)[3] == pytest.approx(10**9, abs=40 * scale)


@pytest.mark.parametrize("dag", [ONE, TWO, LAST], ids=["one dimension", "two types", "one type"])
@pytest.mark.parametrize("scale", [0.01, 1.0, 1e4])
@pytest.mark.parametrize("total", [True, False])
def test_small_universes(dag: FeatureDag, scale: float, total: bool) -> None:
    """One dimension, two types, a single one; a total, or leaves alone."""
    noisy = np.array([5, -2, 0, 1, 3, 0, 0, 9])[: dag.universe.size]
    measured = [Measurement(SINGLETON, noisy, scale=scale)]
    if total:
        measured.append(Measurement("total", [noisy.sum()], scale=scale))
    sound(dag, measured)


def test_partial_measurements_are_no_totals() -> None:
    """A feature measured in some elements says nothing of the total, and the rest is expected as without it."""
    rng = np.random.default_rng(8)
    leaf = Measurement(SINGLETON, rng.integers(-2, 6, UNIVERSE.size), scale=1)
    total = Measurement("total", [400], scale=1)
    part = Measurement("time", [90, 80], scale=1, elements=np.array([2, 0]))
    assert rate_model.expected_total([leaf, total, part]) == rate_model.expected_total([leaf, total])
    sound(DAG, [leaf, total, part])


def test_tables_in_any_order() -> None:
    """Measurements that name all elements, in any order, are whole ones; of one feature there may be several."""
    rng = np.random.default_rng(9)
    values = rng.integers(-2, 9, UNIVERSE.size)
    order = rng.permutation(UNIVERSE.size)
    plain = [Measurement(SINGLETON, values, scale=1), Measurement("time", [50, 60, 70, 80], scale=2)]
    mixed = [
        Measurement(SINGLETON, values[order], scale=1, elements=order),
        Measurement("time", [80, 50, 70, 60], scale=2, elements=np.array([3, 0, 2, 1])),
    ]
    np.testing.assert_array_equal(expected_leaves(DAG, mixed).values, expected_leaves(DAG, plain).values)
    sound(DAG, [*plain, Measurement("time", [55, 65, 65, 85], scale=5)])


def test_features_of_another_law() -> None:
    """Features may come with a variance instead of a scale, one for all or one each."""
    leaf = Measurement(SINGLETON, demand(10, 2.0), scale=1)
    made = sound(
        DAG,
        [
            leaf,
            Measurement("total", [520.5], variance=3.0),
            Measurement("time", [130.0, 131, 129, 128], variance=[3.0, 9.0, 1.0, 2.0]),
        ],
    )
    assert made.counts("total")[0] == pytest.approx(520, abs=8)


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        ([Measurement("total", [3], scale=1)], "measured 0 times"),
        ([Measurement(SINGLETON, [1, 2], scale=1)] * 2, "measured 2 times"),
        ([Measurement(SINGLETON, [1, 2], variance=2.0)], "has no scale"),
        ([Measurement(SINGLETON, [1], scale=1, elements=np.array([1]))], "1 of 2 trip types"),
        ([Measurement(SINGLETON, [1, 2], scale=1), Measurement("total", [3])], "scale or variance"),
    ],
)
def test_measurements_that_cannot_be_used(measured: list[Measurement], message: str) -> None:
    """Each is refused with what is wrong and what is needed."""
    with pytest.raises(InputError, match=message):
        post_process(TWO, measured, estimator="posterior")


@pytest.mark.parametrize("weights", ["uniform", {"total": math.inf}])
def test_weights_are_not_dropped_silently(weights: Any) -> None:
    """The posterior weighs by inverse variance: whoever asks for other weights, or for exact counts, is told."""
    measured = [Measurement(SINGLETON, [1, 2], scale=1), Measurement("total", [3], scale=1)]
    with pytest.raises(InputError, match="inverse variance"):
        post_process(TWO, measured, estimator="posterior", weights=weights)


@pytest.mark.slow
@settings(deadline=None, max_examples=25, derandomize=True)
@given(case=cases(types=24), scale=st.sampled_from([0.05, 1.0, 7.0, 300.0, 1e6]))
def test_always_sound(case: Case, scale: float) -> None:
    """Whatever universe, features and noisy counts: finite, not negative, consistent, certified."""
    dag = case.dag()
    measured = [replace(m, scale=scale) for m in case.measurements(dag)]
    sound(dag, measured)


def test_priors_of_any_size() -> None:
    """Weights may be 0 for some types, all but one, huge or tiny: their ratios alone count."""
    leaf = [Measurement(SINGLETON, demand(15, 2.0), scale=3), Measurement("total", [500], scale=3)]
    weight = 1.0 + np.arange(UNIVERSE.size) % 5
    base = sound(DAG, leaf, prior=weight).counts(SINGLETON)
    for factor in (1e300, 1e-300):
        np.testing.assert_allclose(
            sound(DAG, leaf, prior=weight * factor).counts(SINGLETON), base, rtol=1e-6, atol=1e-6
        )
    sound(DAG, leaf, prior=np.where(np.arange(UNIVERSE.size) < 100, 0.0, 1.0))
    sound(DAG, leaf, prior=np.eye(1, UNIVERSE.size, 5)[0])


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("busy", "give a weight for each"),
        ([1.0], "has shape"),
        (np.full(UNIVERSE.size, -1.0), "not negative"),
        (np.zeros(UNIVERSE.size), "above 0 somewhere"),
        (np.full(UNIVERSE.size, np.nan), "finite"),
    ],
)
def test_bad_priors(prior: Any, message: str) -> None:
    """A prior that is no weight per trip type is refused, by the mechanism and by the engine, before anything is spent."""
    with pytest.raises(InputError, match=message):
        ConstraintBased(DAG, 1, prior=prior)
    measured = [Measurement(SINGLETON, np.zeros(UNIVERSE.size, dtype=int), scale=1)]
    with pytest.raises(InputError, match=message):
        post_process(DAG, measured, estimator="posterior", prior=prior)


def test_a_prior_needs_the_posterior() -> None:
    """The projection has no use for a prior, and says so."""
    with pytest.raises(InputError, match="no use for it"):
        ConstraintBased(DAG, 1, preset="paper", prior=np.ones(UNIVERSE.size))
