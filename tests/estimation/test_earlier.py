"""A prior learnt from earlier days: noise averages out, and the weight of another kind of day follows from how different it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cbdp
from cbdp.errors import InputError
from cbdp.estimation.posterior import Posterior
from cbdp.estimation.prior import PriorOfEarlierDays, prior_of_earlier_days
from cbdp.privacy.entropy import InsecureSeededEntropy

STOPS = cbdp.Dimension([f"S{n}" for n in range(12)], zone=[("n", "e", "s")[n % 3] for n in range(12)])
UNIVERSE = cbdp.Universe(origin=STOPS, destination=STOPS, time=cbdp.periods("06:00", "12:00", "1h"))
DAG = cbdp.FeatureDag(UNIVERSE, [cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"])])
MECHANISM = cbdp.ConstraintBased(DAG, 1)
RNG = np.random.default_rng(5)
WEEKDAY = RNG.gamma(0.15, 8.0, UNIVERSE.size)
WEEKEND = RNG.permutation(WEEKDAY)  # other types are used, as many and as unevenly


def _day(rate: np.ndarray, seed: int) -> tuple[np.ndarray, Any]:
    trips = np.random.default_rng(seed).poisson(rate)
    return trips, MECHANISM.measure(cbdp.count(trips, UNIVERSE), InsecureSeededEntropy(seed))


def _days(rate: np.ndarray, many: int, first: int) -> list[Any]:
    return [_day(rate, first + n)[1] for n in range(many)]


def _off(found: PriorOfEarlierDays, rate: np.ndarray) -> float:
    """How far the prior is from how trips are really spread: the sum of absolute differences of shares."""
    return float(np.abs(found.weights - rate / rate.sum()).sum())


def test_more_days_tell_more() -> None:
    """Each weight is above zero, they add up to 1, and come nearer to the truth with every day."""
    off = []
    for many in (1, 4, 16):
        found = prior_of_earlier_days(DAG, _days(WEEKDAY, many, 100))
        assert (found.weights > 0).all()
        assert found.weights.sum() == pytest.approx(1)
        assert found.effective_days == pytest.approx(many)
        off.append(_off(found, WEEKDAY))
    assert off[0] > 1.2 * off[1] > 1.4 * off[2]


def test_what_does_not_persist_is_not_believed() -> None:
    """Days of the same total whose trips are elsewhere every day: types of a cell weigh alike, and no table gets worse by much."""
    rates = [np.random.default_rng(n).permutation(WEEKDAY) for n in range(12)]
    days = [_day(rate, 200 + n) for n, rate in enumerate(rates)]
    found = prior_of_earlier_days(DAG, [answers for _, answers in days[:-1]])
    assert found.persists < 0.1
    assert prior_of_earlier_days(DAG, _days(WEEKDAY, 11, 100)).persists > 0.9
    trips, answers = days[-1]
    truth = cbdp.count(trips, UNIVERSE).of(DAG, "zone")
    error = [
        np.abs(m.finish(answers).estimate.counts("zone") - truth).mean()
        for m in (MECHANISM, cbdp.ConstraintBased(DAG, 1, prior=found.weights))
    ]
    assert error[1] < 1.15 * error[0]


def test_one_day_does_not_tell_what_persists() -> None:
    """All types weigh alike until two days of a kind, or one and another kind, can be compared: the next day is as good as by itself."""
    weekday, weekend = _days(WEEKDAY, 1, 100), _days(WEEKEND, 3, 500)
    for found in (prior_of_earlier_days(DAG, weekday), prior_of_earlier_days(DAG, [], weekend)):
        assert found.tables == found.persists == 0
        assert found.weights == pytest.approx(1 / UNIVERSE.size)
    assert prior_of_earlier_days(DAG, weekday, _days(WEEKDAY / 2, 3, 500)).tables > 0.9


def test_tables_may_persist_where_types_do_not() -> None:
    """Trips that are elsewhere in their cell every day: the cells are taken over, and within a cell types weigh alike."""
    days = [_day(_moved(WEEKDAY, n), 400 + n)[1] for n in range(9)]
    found = prior_of_earlier_days(DAG, days)
    assert found.tables > 0.8
    assert found.persists < 0.1
    cells = np.bincount(DAG.cell_of_leaf, WEEKDAY)
    assert np.corrcoef(np.bincount(DAG.cell_of_leaf, found.weights), cells)[0, 1] > 0.95


def _moved(rate: np.ndarray, seed: int) -> np.ndarray:
    """The same trips in every cell, of other types."""
    order = np.lexsort([np.random.default_rng(seed).random(len(rate)), DAG.cell_of_leaf])
    moved = np.empty_like(rate)
    moved[order] = rate[np.argsort(DAG.cell_of_leaf, kind="stable")]
    return moved


def test_a_day_that_learns_is_nearer_to_the_truth() -> None:
    """The leaf error of a day after sixteen others falls by a third at least."""
    trips, answers = _day(WEEKDAY, 900)
    prior = prior_of_earlier_days(DAG, _days(WEEKDAY, 16, 100)).weights
    error = [
        np.sqrt(np.mean((m.finish(answers).estimate.counts("singleton") - trips) ** 2))
        for m in (MECHANISM, cbdp.ConstraintBased(DAG, 1, prior=prior))
    ]
    assert error[1] < 0.67 * error[0]


def test_days_of_another_kind_are_weighed_by_how_different_they_are() -> None:
    """Alike in truth, they count as their own; entirely different, they hardly count, and do little harm."""
    own = _days(WEEKDAY, 4, 100)
    same, other = (
        prior_of_earlier_days(DAG, own, _days(WEEKDAY, 8, 300)),
        prior_of_earlier_days(DAG, own, _days(WEEKEND, 8, 500)),
    )
    assert same.share == pytest.approx(1 / 3, abs=0.12)
    assert same.effective_days == pytest.approx(12, rel=0.15)
    assert other.share > 0.85
    assert other.apart > 50 * same.apart
    assert _off(same, WEEKDAY) < 0.9 * _off(prior_of_earlier_days(DAG, own), WEEKDAY)
    assert _off(other, WEEKDAY) < 1.2 * _off(prior_of_earlier_days(DAG, own), WEEKDAY)


def test_another_number_of_trips_is_no_difference() -> None:
    """Half the trips, spread alike, say the same about where trips are."""
    found = prior_of_earlier_days(DAG, _days(WEEKDAY, 4, 100), _days(WEEKDAY / 2, 8, 700))
    assert 0.25 < found.share < 0.9
    assert _off(found, WEEKDAY) < _off(prior_of_earlier_days(DAG, _days(WEEKDAY, 4, 100)), WEEKDAY)


def test_day_to_day_variance_is_told_apart_from_noise() -> None:
    """The variance of Poisson counts is their mean, whatever the noise."""
    found = prior_of_earlier_days(DAG, _days(WEEKDAY, 30, 100))
    assert found.varies == pytest.approx(WEEKDAY.sum(), rel=0.35)


def test_answers_that_do_not_tell_every_type_are_refused() -> None:
    """Universes that are not listed cannot be added up type by type."""
    release = cbdp.ConstraintBased(DAG, 1, sparse=True, estimator=Posterior(revealed=100)).simulate(
        np.ones(UNIVERSE.size, int), 3
    )
    with pytest.raises(InputError, match="does not tell the noisy count of every trip type"):
        prior_of_earlier_days(DAG, [release.measurements])
    with pytest.raises(InputError, match="no earlier release"):
        prior_of_earlier_days(DAG, [])


@pytest.mark.parametrize("seed", range(4))
def test_few_trips_among_many_types_still_tell_the_tables(seed: int) -> None:
    """The noisy counts of all types add up to mostly noise there; how many trips there were is told by the tables."""
    ends = cbdp.Dimension([f"S{n}" for n in range(40)], zone=[f"Z{n // 10}" for n in range(40)])
    universe = cbdp.Universe(origin=ends, destination=ends, time=cbdp.periods("06:00", "18:00", "1h"))
    wide = cbdp.FeatureDag(
        universe,
        [cbdp.Feature("zone", by=["origin.zone", "destination.zone"]), cbdp.Feature("time", by="time")],
    )
    mechanism = cbdp.ConstraintBased(wide, 0.5)
    zones = wide.partition("zone").of_every_type()
    rate = np.random.default_rng(seed).gamma(0.5, 1.0, 16)[zones]
    rate *= 600 / rate.sum()
    days = [
        mechanism.measure(
            cbdp.count(np.random.default_rng([seed, n]).poisson(rate), universe),
            InsecureSeededEntropy(100 * seed + n),
        )
        for n in range(6)
    ]
    leaves = [next(m for m in day if m.feature == "singleton") for day in days]
    assert max(np.sqrt(m.variance.mean() * universe.size) for m in leaves) > 600  # noise above the trips
    assert prior_of_earlier_days(wide, days).tables > 0.7
