"""Errors that leaves share: estimated as a dense computation says, taken away where sums betray them, left alone where not."""

from __future__ import annotations

import numpy as np
import pytest
from posterior_cases import DAG, UNIVERSE, error

from cbdp import Measurement, post_process
from cbdp.estimation.posterior import shared_errors
from cbdp.estimation.posterior.likelihood import LeafPosterior
from cbdp.features import SINGLETON

MANY = UNIVERSE.size
CELL, CELLS = DAG.cell_of_leaf, DAG.cells.size
TIME = DAG.partition("time").of_every_type()


def by_cell(values: np.ndarray) -> np.ndarray:
    return np.bincount(CELL, values, CELLS)


def corrected(
    mean: np.ndarray, variance: np.ndarray, *tables: Measurement, again: bool = False
) -> LeafPosterior:
    """Leaves that follow their rates."""
    sums = shared_errors.measured_sums(DAG, tables)
    return shared_errors.subtract_shared_errors(
        sums, CELL, CELLS, LeafPosterior(mean, variance, mean), np.zeros(len(mean)), refit=again
    )


def test_effects_are_predicted_as_a_dense_computation_says() -> None:
    """The best linear prediction with every covariance written out as a matrix."""
    rng = np.random.default_rng(3)
    tables = [
        Measurement("total", [130.0], variance=9.0),
        Measurement("time", [40, 30, 35, 20], variance=4.0),
    ]
    sums = shared_errors.measured_sums(DAG, tables)
    own, rate_sensitivity, mean, off = (rng.uniform(0.5, 2, CELLS) for _ in range(4))
    effects = [
        shared_errors.RandomEffects(s, rng.uniform(0.01, 0.1, len(s.measured)), np.ones(len(s.measured)))
        for s in sums
    ]
    adds = np.vstack([np.eye(len(s.measured))[:, s.element] for s in sums])
    spread = np.diag(np.concatenate([e.effect_variance for e in effects]))
    noise = np.diag(np.concatenate([s.noise_variance for s in sums]))
    shares = np.diag(rate_sensitivity) @ adds.T @ spread @ adds @ np.diag(rate_sensitivity)
    whole = adds @ (np.diag(own) + shares) @ adds.T + noise
    missed = np.concatenate([s.measured for s in sums]) - adds @ (mean - rate_sensitivity * off)
    wanted = adds.T @ spread @ adds @ np.diag(rate_sensitivity) @ adds.T @ np.linalg.solve(whole, missed)
    for start in (np.zeros(5), rng.normal(size=5)):
        predicted, price = shared_errors._blup(effects, mean, own, rate_sensitivity, off, start)
        np.testing.assert_allclose(predicted, wanted, rtol=1e-3)
        np.testing.assert_allclose(price, np.linalg.solve(whole, missed), rtol=1e-2, atol=1e-4)


def test_a_variance_is_passed_on_as_the_common_levers_say() -> None:
    """Effects by time move the total by their squares, added up over what both have in common."""
    time, total = shared_errors.measured_sums(
        DAG, [Measurement("time", [1, 1, 1, 1], variance=1.0), Measurement("total", [4], variance=1.0)]
    )
    rate_sensitivity = np.arange(1.0, CELLS + 1)
    effects = shared_errors.RandomEffects(time, np.array([0.1, 0.2, 0.3, 0.4]), np.ones(4))
    wanted = (effects.effect_variance * time.of(rate_sensitivity) ** 2).sum()
    assert shared_errors._induced_variance(effects, total, rate_sensitivity) == pytest.approx([wanted])


def test_what_is_moved_in_a_table_is_nothing_to_coarser_tables() -> None:
    """So a change of coarser sums is due to their own move."""
    sums = shared_errors.measured_sums(
        DAG, [Measurement("time", [1, 2, 3, 4], variance=1.0), Measurement("total", [10], variance=1.0)]
    )
    moves = {s.name: s.perturbation for s in sums}
    assert moves["time"].sum() == pytest.approx(0)
    assert abs(moves["total"][0]) == 1


def test_the_program_would_believe_their_sums() -> None:
    """Leaves that are all a fifth too low and claim small errors of their own: tables and leaves are right again."""
    rng = np.random.default_rng(4)
    truth = rng.gamma(2.0, 4.0, MANY)
    mean, variance = 0.8 * truth + rng.normal(0, 0.1, MANY), np.full(MANY, 0.01) * truth
    tables = [
        Measurement("total", [truth.sum() + 1.0], variance=2.0),
        Measurement("time", np.bincount(TIME, truth) + rng.normal(0, 1, 4), variance=1.0),
    ]
    found = {}
    moved = corrected(mean, variance, *tables)
    for name, leaves in (("believed", LeafPosterior(mean, variance, mean)), ("moved", moved)):
        given = [*tables, Measurement(SINGLETON, leaves.mean, variance=leaves.variance)]
        found[name] = post_process(DAG, given, estimator="projection", weights="inverse-variance")
    off = {name: abs(made.counts("total")[0] - truth.sum()) for name, made in found.items()}
    assert off["moved"] < 4
    assert off["believed"] > 10 * off["moved"]
    leaf = {name: error(made.counts(SINGLETON), truth) for name, made in found.items()}
    assert leaf["moved"] < 1.1 * 0.1 / 0.8  # what is left is their own error, scaled up with them
    assert leaf["moved"] < 0.9 * leaf["believed"]


def test_leaves_that_are_right_stay() -> None:
    """Where sums miss what was measured by no more than chance, leaves move by less than a tenth of their own deviation."""
    rng = np.random.default_rng(5)
    truth = rng.gamma(2.0, 4.0, MANY)
    variance = 0.05 * truth
    mean = truth + rng.normal(0, 1, MANY) * np.sqrt(variance)
    tables = [
        Measurement("total", [truth.sum() + 20.0], variance=400.0),
        Measurement("time", np.bincount(TIME, truth) + rng.normal(0, 20, 4), variance=400.0),
    ]
    moved = corrected(mean, variance, *tables)
    assert np.sqrt(np.mean((moved.mean - mean) ** 2 / variance)) < 0.1


def test_no_leaf_falls_below_nothing() -> None:
    """However far sums are too high."""
    mean = np.full(MANY, 5.0)
    tables = [Measurement("total", [1.0], variance=0.1), Measurement("time", [0, 0, 1, 0], variance=0.1)]
    moved = corrected(mean, np.full(MANY, 2.0), *tables)
    assert (moved.mean > 0).all()
    assert (moved.variance > 0).all()
    assert moved.mean.sum() < 0.3 * mean.sum()


def test_rates_that_are_far_too_low_everywhere_are_moved_as_far_as_it_takes() -> None:
    """One table that is missed by ten times may be chance; zones that are all missed so are not."""
    zones = DAG.size("zone")
    told = np.random.default_rng(2).normal(60.0, 3.0, zones)
    size = np.bincount(DAG.partition("zone").of_every_type(), minlength=zones)
    mean = (6.0 / size)[DAG.partition("zone").of_every_type()]
    made = corrected(mean, 0.1 * mean, Measurement("zone", told, variance=9.0))
    sums = np.bincount(DAG.partition("zone").of_every_type(), made.mean, zones)
    assert np.abs(sums - told).mean() < 6.0


def test_where_rates_are_proven_wrong_it_is_done_again_and_elsewhere_not() -> None:
    """Zones that are missed by ten times: a second time from leaves that were moved. Zones that are met: nothing changes."""
    zone, zones = DAG.partition("zone").of_every_type(), DAG.size("zone")
    told = np.random.default_rng(2).normal(60.0, 3.0, zones)
    size = np.bincount(zone, minlength=zones)
    for factor in (10.0, 1.0):
        mean = (60.0 / factor / size)[zone]
        table = Measurement("zone", told, variance=9.0)
        once, twice = (corrected(mean, 0.1 * mean, table, again=again) for again in (False, True))
        off = [np.abs(np.bincount(zone, made.mean, zones) - told).mean() for made in (once, twice)]
        assert off[1] < off[0] if factor > 1 else off[1] == off[0]
