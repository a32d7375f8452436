"""Stops that no table tells apart, in universes too large to list: told apart by their noisy counts, and by those not shown."""

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

STOPS, PERIODS = 24, 6
PLACE = cbdp.Dimension(range(STOPS), zone=[s // 8 for s in range(STOPS)])
UNIVERSE = cbdp.Universe(origin=PLACE, destination=PLACE, time=range(PERIODS)).without_equal(
    "origin", "destination"
)
DAG = FeatureDag(
    UNIVERSE,
    [cbdp.Feature("time", by="time"), cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"])],
)
ORIGIN, DESTINATION, _ = UNIVERSE.unrank_codes(np.arange(UNIVERSE.size))
BUSY = np.array([8.0, 4.0, 2.0, 1.0, 1.0, 0.5, 0.0, 0.0] * 3)  # the last two stops of every zone are closed


def demand(seed: int, trips: float) -> np.ndarray:
    rate = BUSY[ORIGIN] * BUSY[DESTINATION]
    return np.random.default_rng(seed).poisson(trips * rate / rate.sum())


def seen_above(truth: np.ndarray, floor: int, seed: int) -> Measurement:
    """Noisy counts above a floor, from a simulated law."""
    law, rng = noise_distribution("geometric", Fraction(2)), np.random.default_rng(seed)
    values = np.arange(-80, 81)
    noisy = truth + rng.choice(values, len(truth), p=law.pmf(values) / law.pmf(values).sum())
    above = np.flatnonzero(noisy > floor)
    where: dict[str, Any] = {"elements": above, "floor": np.full(DAG.cells.size, floor)}
    return Measurement(SINGLETON, noisy[above], scale=Fraction(2), law="geometric", **where)


def told(truth: np.ndarray, floor: int, seed: int) -> tuple[censored.CensoredCounts, censored.TypeGroups]:
    leaves = seen_above(truth, floor, seed)
    known = censored.censored_counts(DAG, leaves, censored.cell_groups(DAG))
    held = np.maximum(np.bincount(DAG.cell_of_leaf, truth, DAG.cells.size), 0.1)
    return known, effects.split_by_effects(DAG, known, held, (0.0, 0.6))[0]


@pytest.mark.parametrize("floor", [-2, 3, 6])
def test_groups_part_cells(floor: int) -> None:
    """Every group lies in one cell, the parts of a cell add up to 1, and no type is lost."""
    known, groups = told(demand(1, 6000.0), floor, 1)
    assert len(groups.cell) > DAG.cells.size
    np.testing.assert_allclose(np.bincount(groups.cell, groups.part), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(np.bincount(groups.cell, groups.sizes).astype(int), known.groups.sizes)
    of_type = groups.partition.of_every_type()
    np.testing.assert_array_equal(groups.cell[of_type], DAG.cell_of_leaf)


@pytest.mark.parametrize(("floor", "alike"), [(-2, 0.95), (3, 0.9), (6, 0.8)])
def test_busy_stops_are_told_from_closed_ones(floor: int, alike: float) -> None:
    """What is expected of a type follows how busy its stops are, though no table tells stops apart; a high floor hides more."""
    _, groups = told(demand(2, 6000.0), floor, 2)
    each = (groups.part / groups.sizes)[groups.partition.of_every_type()]
    by_stop = np.array([each[s == ORIGIN].mean() for s in range(STOPS)])
    assert np.corrcoef(np.log(by_stop), np.log(np.maximum(BUSY, 0.2)))[0, 1] > alike
    assert by_stop[BUSY == 0].max() < 0.2 * by_stop[BUSY == 8].min()


def test_noise_tells_nothing_apart() -> None:
    """Where all stops are alike, groups are the cells, or parts of nearly equal rates."""
    rng = np.random.default_rng(4)
    for seed in range(5):
        _, groups = told(rng.poisson(1.0, UNIVERSE.size), 4, seed)
        each = (groups.part / groups.sizes) * np.bincount(groups.cell, groups.sizes)[groups.cell]
        assert np.abs(np.log(each)).max() < 0.25


def test_likelihood_of_a_stop_by_brute_force() -> None:
    """Of its types above the floor one by one, and of every other one that it is not, at the factor of each knot."""
    truth = demand(3, 3000.0)
    known, _ = told(truth, 4, 3)
    values = effects._stop_effects(DAG, known, "origin")
    assert values is not None
    shape = (0.3, 0.6)
    likely = effects._censored_log_likelihoods(known, shape)
    held = np.full(DAG.cells.size, 3000.0 / DAG.cells.size)
    log = np.log(held / known.sizes)
    kept: list[np.ndarray] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            effects,
            "_log_bayes_factors",
            lambda sums: kept.append(sums) or np.zeros(len(rate_model.FACTOR_SPREADS)),
        )
        values.judge(known, log, log[known.group], likely)
    shown = np.zeros(UNIVERSE.size, dtype=bool)
    shown[known.index] = True
    column = np.zeros(UNIVERSE.size, dtype=int)
    column[known.index] = known.table.column
    for k in (8, 10, 12, 14):
        expected = np.exp(log[DAG.cell_of_leaf] + rate_model.KNOTS[k])
        mixed = likelihood.lognormal_mixtures(known.table.means, expected, np.array([shape]))[:, 0]
        above = np.log(np.sum(mixed * known.table.likelihood[:, column].T, axis=1))
        hidden = np.log(np.sum(mixed * known.below[:, 0], axis=1))
        wanted = np.bincount(ORIGIN, np.where(shown, above, hidden))
        np.testing.assert_allclose(kept[0][:, k], wanted, rtol=0.02, atol=0.02)


def test_values_that_tables_tell_apart_are_left_alone() -> None:
    """Of the time every period is measured; and combinations that are too many are not listed."""
    known, _ = told(demand(1, 3000.0), 4, 1)
    assert effects._stop_effects(DAG, known, "time") is None
    assert effects._stop_effects(DAG, known, "origin") is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(effects, "TUNING", TUNING.__class__(max_stop_combinations=10))
        assert effects._stop_effects(DAG, known, "origin") is None
        groups, more = effects.split_by_effects(DAG, known, known.sizes.astype(float), (0.0, 0.6))
    assert groups is known.groups
    assert not more.any()


@pytest.mark.slow
def test_closed_stops_get_hardly_more_trips_than_in_a_listed_universe() -> None:
    """The same city, its types listed and not: trips at closed stops, and errors by stop and by type."""
    found: dict[bool, list[list[float]]] = {False: [], True: []}
    for seed in range(6):
        truth = demand(seed + 10, 5000.0)
        stops = np.bincount(ORIGIN, truth)
        for sparse, rows in found.items():
            how = Posterior(revealed=UNIVERSE.size - 1) if sparse else None
            mechanism = ConstraintBased(DAG, 1, sparse=sparse, estimator=how)
            made = mechanism.simulate(truth, seed).estimate.counts(SINGLETON)
            by_stop = np.bincount(ORIGIN, made)
            rows.append([
                by_stop[BUSY == 0].sum(), np.square(by_stop - stops).mean(), np.square(made - truth).mean(),
            ])  # fmt: skip
    closed, stop, leaf = np.mean(found[True], axis=0) / np.mean(found[False], axis=0)
    assert closed < 1.5
    assert stop**0.5 < 1.25
    assert leaf**0.5 < 1.1
