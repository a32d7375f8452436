"""`measure` and `post_process` left to themselves do what `ConstraintBased` does, with universes of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from posterior_cases import DAG, UNIVERSE, demand

import cbdp
from cbdp import Measurement, post_process
from cbdp.errors import InputError
from cbdp.estimation.engine import _default_estimator
from cbdp.estimation.posterior import Posterior
from cbdp.features import SINGLETON
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.entropy import InsecureSeededEntropy

TRUTH = cbdp.count(demand(1, 4.0), UNIVERSE)


def noisy(**options: Any) -> list[Any]:
    return cbdp.measure(TRUTH, DAG, 1, entropy=InsecureSeededEntropy(3), **options)


def same(one: cbdp.Estimate, other: cbdp.Estimate) -> bool:
    return one.counts(SINGLETON).tobytes() == other.counts(SINGLETON).tobytes()


@pytest.mark.parametrize("sparse", [False, True])
def test_two_steps_are_the_mechanism(sparse: bool) -> None:
    """The same budget, estimator, weights and solver: the same estimate to the last bit."""
    release = ConstraintBased(DAG, 1, sparse=sparse).simulate(TRUTH, 3)
    answers = noisy(sparse=sparse)
    assert same(post_process(DAG, answers), release.estimate)
    told = [m if isinstance(m, Measurement) else m.measurement() for m in answers]
    for m, published in zip(told, release.measurements, strict=True):
        assert (m.feature, m.scale, m.epsilon) == (published.feature, published.scale, published.epsilon)
        assert m.values.tobytes() == published.values.tobytes()


def test_a_large_universe_is_revealed_on_demand() -> None:
    """The last answer has floors, holds no more than asked for, and its measurement says all that was used."""
    few = cbdp.count(demand(1, 0.2), UNIVERSE)
    *tables, leaves = cbdp.measure(few, DAG, 4, sparse=True, entropy=InsecureSeededEntropy(3))
    assert all(isinstance(m, Measurement) for m in tables)
    assert not isinstance(leaves, Measurement)
    assert len(leaves.measurement().values) == 0
    made = post_process(DAG, [*tables, leaves], estimator=Posterior(revealed=100))
    published = leaves.measurement()
    assert 0 < len(published.values) < UNIVERSE.size
    assert (published.values > published.floor[DAG.cell_of_leaf[published.elements]]).all()
    assert same(post_process(DAG, [*tables, published]), made)
    vast = cbdp.FeatureDag(cbdp.Universe(a=range(2**12), b=range(2**13)), [])
    counts = cbdp.count({"a": [1, 2], "b": [3, 4]}, vast.universe)
    assert not isinstance(cbdp.measure(counts, vast, 1)[-1], Measurement)


LEAVES = Measurement(SINGLETON, np.ones(UNIVERSE.size), scale=2)
TOTAL = Measurement("total", [256], scale=1)
ABOVE = Measurement(SINGLETON, [5], scale=2, elements=np.array([3]), floor=np.zeros(DAG.cells.size, int))


@pytest.mark.parametrize(
    ("measurements", "weights", "estimator"),
    [
        ([LEAVES, TOTAL], None, "posterior"),
        ([LEAVES], None, "posterior"),
        ([LEAVES, TOTAL], "inverse-variance", "projection"),
        ([LEAVES, Measurement("total", [256], variance=2.0)], None, "posterior"),
        ([LEAVES, Measurement("total", [256])], None, "projection"),
        ([Measurement(SINGLETON, np.ones(UNIVERSE.size), variance=8.0), TOTAL], None, "projection"),
        ([Measurement(SINGLETON, np.ones(UNIVERSE.size)), TOTAL], None, "projection"),
        ([LEAVES, LEAVES, TOTAL], None, "projection"),
        ([ABOVE, TOTAL], None, "posterior"),
        ([ABOVE], None, "projection"),
    ],
)
def test_which_estimator(measurements: list[Measurement], weights: Any, estimator: str) -> None:
    """The posterior, where the noise of all is known and every type was measured once; projection, where weights are given."""
    assert _default_estimator(DAG, measurements, weights) == estimator
    made = post_process(DAG, measurements, weights=weights)
    explicit = post_process(DAG, measurements, weights=weights, estimator=estimator)
    assert same(made, explicit)


def test_no_weights_are_the_papers_for_a_projection() -> None:
    """Left out or None, a projection weighs features by their size."""
    made = post_process(DAG, [LEAVES, TOTAL], estimator="projection")
    assert same(made, post_process(DAG, [LEAVES, TOTAL], estimator="projection", weights=None))
    assert same(made, post_process(DAG, [LEAVES, TOTAL], estimator="projection", weights="size"))


def test_unknown_estimators_are_named() -> None:
    """The message names the value, and the closest or all that there are."""
    with pytest.raises(InputError, match="unknown estimator 'posteriors': did you mean 'posterior'"):
        post_process(DAG, [LEAVES], estimator="posteriors")
    with pytest.raises(InputError, match=r"3 is not an? estimator"):
        post_process(DAG, [LEAVES], estimator=3)


def test_floors_that_were_published_too_high() -> None:
    """Counts that matter but were not published cannot be made up: the error says so."""
    above = Measurement(SINGLETON, [9], scale=2, elements=np.array([3]), floor=np.full(DAG.cells.size, 8))
    with pytest.raises(InputError, match=r"above floors of up to 8, but counts down to 0"):
        post_process(DAG, [above], estimator="projection")
