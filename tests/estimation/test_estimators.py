"""One contract for all estimators, a row for each: consistent, non-negative, certified, repeatable, and true to its class data."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from posterior_cases import DAG, UNIVERSE, demand, error

import cbdp
from cbdp import Measurement, post_process
from cbdp.errors import InputError
from cbdp.estimation import ESTIMATORS, Estimator
from cbdp.estimation.posterior import Posterior
from cbdp.estimation.projection import Projection
from cbdp.features import SINGLETON
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.entropy import InsecureSeededEntropy


@dataclass(frozen=True)
class Zero(Estimator):
    """A stranger's: no trips, whatever was measured."""

    name: ClassVar[str] = "zero"
    about: ClassVar[str] = "no trips at all"

    def estimate(self, features: Any, measurements: Any, program: Any) -> cbdp.Estimate:
        nothing = [Measurement(m.feature, np.zeros(len(m.values)), elements=m.elements) for m in measurements]
        return Projection().estimate(features, nothing, program)


@dataclass(frozen=True)
class Row:
    """What is to be expected of an estimator on the same measurements."""

    estimator: Any
    certified: float  # the residual that it stays below
    error: float  # of leaves at ε = 1, in parts of that of publishing no trips
    sparse: bool  # whether it handles types that are not listed


ROWS = [
    Row("posterior", 1e-9, 0.7, sparse=True),
    Row(Posterior(revealed=200), 1e-9, 0.7, sparse=True),
    Row("projection", 1e-9, 0.85, sparse=True),
    Row(Zero(), 1e-9, 1.0, sparse=False),
]
each = pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: str(getattr(row.estimator, "name", row.estimator))
)
TRUTH = demand(1, 4.0)
COUNTS = cbdp.count(TRUTH, UNIVERSE)


def noisy(**options: Any) -> list[Any]:
    return cbdp.measure(COUNTS, DAG, 1, entropy=InsecureSeededEntropy(2), **options)


def test_every_estimator_has_a_row() -> None:
    """Whoever adds one adds a row."""
    assert {row.estimator for row in ROWS if isinstance(row.estimator, str)} == set(ESTIMATORS.table)


@each
def test_contract(row: Row) -> None:
    """Every feature's counts are sums of leaves that are not negative; certified; near the truth; the same bytes twice."""
    made = post_process(DAG, noisy(), estimator=row.estimator)
    leaves = made.counts(SINGLETON)
    assert leaves.shape == (UNIVERSE.size,)
    assert (leaves >= 0).all()
    for name in DAG.features:
        inside = DAG.partition(name).of_every_type()
        np.testing.assert_allclose(made.counts(name), np.bincount(inside, leaves), rtol=1e-9, atol=1e-9)
    assert made.solution.kkt_residual <= row.certified
    assert error(leaves, TRUTH) <= row.error * error(np.zeros(UNIVERSE.size), TRUTH)
    again = post_process(DAG, noisy(), estimator=row.estimator)
    assert again.counts(SINGLETON).tobytes() == leaves.tobytes()


@each
def test_measurements_are_left_alone(row: Row) -> None:
    """An estimate changes nothing of what was published."""
    given = noisy()
    before = [(m.values.copy(), m.variance.copy()) for m in given]
    post_process(DAG, given, estimator=row.estimator)
    for m, (values, variance) in zip(given, before, strict=True):
        assert m.values.tobytes() == values.tobytes()
        assert m.variance.tobytes() == variance.tobytes()


@each
def test_universes_that_are_not_listed(row: Row) -> None:
    """The same contract from floors, or one line that names the estimator, the number of types, and what to use."""
    if not row.sparse:
        with pytest.raises(InputError, match=r"'zero' cannot handle 256 trip types.*use 'posterior'"):
            post_process(DAG, noisy(sparse=True), estimator=row.estimator)
        return
    answers = noisy(sparse=True)
    made = post_process(DAG, answers, estimator=row.estimator)
    index, value = made.trips()
    assert (np.diff(index) > 0).all()
    assert (value > 0).all()
    assert made.solution.kkt_residual <= row.certified
    assert made.counts("total")[0] == pytest.approx(value.sum())
    assert error(made.counts(SINGLETON), TRUTH) <= row.error * error(np.zeros(UNIVERSE.size), TRUTH)
    *tables, leaves = answers
    again = post_process(DAG, [*tables, leaves.measurement()], estimator=row.estimator)
    assert again.counts(SINGLETON).tobytes() == made.counts(SINGLETON).tobytes()


@each
def test_class_data_is_true(row: Row) -> None:
    """What it says it takes it takes, and refuses the rest by its name; it is a frozen value that says what it is."""
    estimator = ESTIMATORS.get(row.estimator)
    assert estimator.about
    assert estimator == ESTIMATORS.get(row.estimator)
    with pytest.raises(FrozenInstanceError):
        estimator.about = ""  # type: ignore[misc]
    prior, weights = np.ones(UNIVERSE.size), {"zone": 3.0}
    for takes, option in (
        (estimator.takes_prior, {"prior": prior}),
        (estimator.takes_weights, {"weights": weights}),
    ):
        if takes:
            assert post_process(DAG, noisy(), estimator=estimator, **option).solution.kkt_residual <= 1e-6
        else:
            with pytest.raises(InputError, match=f"estimator '{estimator.name}'"):
                post_process(DAG, noisy(), estimator=estimator, **option)
    assert estimator.check_weights(None) == estimator.weights


@each
def test_a_mechanism_takes_it(row: Row) -> None:
    """By name or as it is: the share of tables follows its class data."""
    estimator = ESTIMATORS.get(row.estimator)
    made = ConstraintBased(DAG, 1, estimator=row.estimator, budget="leaves")
    assert made.rounding == "nearest"
    tables = 1 - {a.feature: a.share for a in made.answers()}[SINGLETON]
    assert float(tables) == pytest.approx(0.02 if estimator.expects else 0.1)
    release = made.simulate(COUNTS, 3)
    assert release.recipe.estimator == estimator.name
    assert release.counts("zone").sum() == release.total
