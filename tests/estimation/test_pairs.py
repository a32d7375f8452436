"""Pairs of stops that have habits of their own, in universes too large to list: told apart by noisy counts, shown and hidden."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cbdp
from cbdp.estimation.posterior import Posterior, censored, effects, likelihood, rate_model
from cbdp.estimation.posterior.settings import TUNING
from cbdp.features import SINGLETON, FeatureDag
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.measurement import Measurement
from cbdp.privacy.noise import noise_distribution

STOPS, PERIODS = 18, 12
PLACE = cbdp.Dimension(range(STOPS), zone=[s // 6 for s in range(STOPS)])
UNIVERSE = cbdp.Universe(origin=PLACE, destination=PLACE, time=range(PERIODS)).without_equal(
    "origin", "destination"
)
DAG = FeatureDag(
    UNIVERSE,
    [cbdp.Feature("time", by="time"), cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"])],
)
ORIGIN, DESTINATION, TIME = UNIVERSE.unrank_codes(np.arange(UNIVERSE.size))
HABIT = np.random.default_rng(8).lognormal(0, 1.2, (STOPS, STOPS))
ZERO = {"origin": np.zeros(STOPS), "destination": np.zeros(STOPS)}


def demand(seed: int, trips: float, habit: np.ndarray = HABIT) -> np.ndarray:
    rate = habit[ORIGIN, DESTINATION]
    return np.random.default_rng(seed).poisson(trips * rate / rate.sum())


def noised(truth: np.ndarray, seed: int) -> np.ndarray:
    law, rng = noise_distribution("geometric", Fraction(2)), np.random.default_rng(seed)
    values = np.arange(-80, 81)
    return truth + rng.choice(values, len(truth), p=law.pmf(values) / law.pmf(values).sum())


def known_of(noisy: np.ndarray, floor: np.ndarray) -> censored.CensoredCounts:
    """What noisy counts above floors tell, by cell."""
    above = np.flatnonzero(noisy > floor[DAG.cell_of_leaf])
    where: dict[str, Any] = {"elements": above, "floor": floor}
    leaves = Measurement(SINGLETON, noisy[above], scale=Fraction(2), law="geometric", **where)
    return censored.censored_counts(DAG, leaves, censored.cell_groups(DAG))


def test_likelihood_of_a_pair_by_brute_force() -> None:
    """Of its types above their floors one by one, and of every other one that it is not, at the factor of each knot."""
    shape, floor = (0.3, 0.6), np.arange(DAG.cells.size) % 3  # cells of one pair differ in their floors
    known = known_of(noised(demand(3, 3000.0), 3), floor)
    likely = effects._censored_log_likelihoods(known, shape)
    base = np.random.default_rng(1).normal(-0.5, 0.3, DAG.cells.size)
    log = {name: np.linspace(-1.0, 1.0, STOPS) for name in ZERO}
    found = effects._pair_data(DAG, known, log, base, likely)
    assert found is not None
    sums = found.sums(slice(0, len(found.log)))
    expected = base[DAG.cell_of_leaf] + log["origin"][ORIGIN] + log["destination"][DESTINATION]
    shown, column = np.zeros(UNIVERSE.size, dtype=bool), np.zeros(UNIVERSE.size, dtype=int)
    shown[known.index], column[known.index] = True, known.table.column
    pair = STOPS * ORIGIN + DESTINATION
    place = STOPS * found.codes[0] + found.codes[1]
    for k in (8, 10, 12):
        mixed = likelihood.lognormal_mixtures(
            known.table.means, np.exp(expected + rate_model.KNOTS[k]), np.array([shape])
        )[:, 0]
        above = np.log(np.sum(mixed * known.table.likelihood[:, column].T, axis=1))
        hidden = np.log(np.sum(mixed * known.below[:, known.height[DAG.cell_of_leaf]].T, axis=1))
        wanted = np.bincount(pair, np.where(shown, above, hidden), STOPS**2)
        np.testing.assert_allclose(sums[:, k], wanted[place], rtol=0.02, atol=0.03)


def told(noisy: np.ndarray, level: int) -> tuple[censored.CensoredCounts, effects.PairEffects | None]:
    known = known_of(noisy, np.full(DAG.cells.size, level))
    base = np.zeros(DAG.cells.size)
    return known, effects.pair_effects(
        DAG, known, ZERO, base, effects._censored_log_likelihoods(known, (0.0, 0.3))
    )


@pytest.mark.parametrize(("level", "alike"), [(0, 0.7), (3, 0.6)])
def test_pairs_with_habits_are_told_apart(level: int, alike: float) -> None:
    """Factors follow the pairs' habits, the less the more is hidden."""
    _, found = told(noised(demand(4, 4000.0), 4), level)
    assert found is not None
    assert found.names == ("origin", "destination")
    there = ~np.eye(STOPS, dtype=bool)
    assert np.corrcoef(found.log[there], np.log(HABIT[there]))[0, 1] > alike


def test_pairs_without_habits_are_not() -> None:
    """Where all pairs are alike nothing is told apart, or next to nothing."""
    for seed in range(5):
        _, found = told(noised(demand(seed, 3672.0, np.ones((STOPS, STOPS))), seed), 0)
        assert found is None or np.abs(found.log).max() < 0.2


def test_a_type_does_not_speak_for_itself() -> None:
    """Its noisy count changes its pair's factor, but not the one that it is judged by itself."""
    noisy = noised(demand(5, 4000.0), 5)
    judged, factor = [], []
    for value in (1, 12):
        noisy[100] = value
        known, found = told(noisy, 0)
        assert found is not None
        pair = found.log[ORIGIN[100], DESTINATION[100]]
        judged.append(pair + found.leave_one_out_log_ratio[np.searchsorted(known.index, 100)])
        factor.append(pair)
    assert factor[1] > factor[0] + 0.1
    assert judged[1] == pytest.approx(judged[0], abs=0.01)


def test_pairs_that_are_too_many_are_not_listed() -> None:
    """Nor those of so few types that each would tell but about itself."""
    known = known_of(noised(demand(1, 2000.0), 1), np.zeros(DAG.cells.size, dtype=int))
    likely, base = effects._censored_log_likelihoods(known, (0.0, 0.3)), np.zeros(DAG.cells.size)
    assert effects._pair_data(DAG, known, ZERO, base, likely) is not None
    for limit in ({"max_pairs": 100}, {"fewest_types": PERIODS + 1}, {"max_pair_classes": 5}):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(effects, "TUNING", TUNING.__class__(**limit))
            assert effects._pair_data(DAG, known, ZERO, base, likely) is None


@pytest.mark.slow
def test_single_types_are_as_sharp_as_listed_ones_with_floors_at_zero() -> None:
    """On cities whose pairs have habits: errors by type are no larger, and by pair hardly (fixed seeds, a twentieth for chance)."""
    found: dict[bool, list[list[float]]] = {False: [], True: []}
    pair = STOPS * ORIGIN + DESTINATION
    for seed in range(6):
        truth = demand(seed + 30, 4000.0)
        for sparse, rows in found.items():
            how = Posterior(revealed=UNIVERSE.size - 1) if sparse else None
            made = ConstraintBased(DAG, 1, sparse=sparse, estimator=how).simulate(truth, seed).estimate
            off = made.counts(SINGLETON) - truth
            rows.append([float(np.mean(off**2)), float(np.mean(np.bincount(pair, off) ** 2))])
    ratio = np.sqrt(np.mean(found[True], axis=0) / np.mean(found[False], axis=0))
    assert ratio[0] < 1.05
    assert ratio[1] < 1.1
