"""The compiled passes for factors against the same formulas written plainly, in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from posterior_cases import DAG, UNIVERSE, demand, measure_demand

from cbdp.estimation.posterior import kernels, likelihood, rate_model
from cbdp.estimation.posterior.margins import margins
from cbdp.estimation.posterior.rate_model import fold_of_types
from cbdp.estimation.posterior.settings import TUNING
from cbdp.estimation.posterior.shared_errors import measured_sums, perturbed_tables, table_perturbations
from cbdp.features import SINGLETON

RNG = np.random.default_rng(5)
KNOTS = len(rate_model.KNOTS)


def test_polynomials_for_exponentials_and_logarithms() -> None:
    """To single precision over all numbers that are met, and clipped beyond."""
    x = np.linspace(-79.9, 79.9, 20_001).astype(np.float32)
    made = x.copy()
    kernels.exp_in_place(made, np.empty(len(x), dtype=np.int32))
    np.testing.assert_allclose(made, np.exp(x.astype(float)), rtol=5e-7)
    far = np.array([-1e9, 1e9], dtype=np.float32)
    kernels.exp_in_place(far, np.empty(2, dtype=np.int32))
    np.testing.assert_allclose(far, np.exp([-80.0, 80.0]), rtol=1e-5)
    y = np.exp(np.linspace(-60, 60, 20_001)).astype(np.float32)
    made = y.copy()
    kernels.log_in_place(made)
    np.testing.assert_allclose(made, np.log(y.astype(float)), rtol=2e-7, atol=2e-7)


@pytest.mark.parametrize(("leaves", "size"), [(400, 11), (400, 100), (3000, 2)])
def test_likelihoods_of_leaves_are_added_by_element(leaves: int, size: int) -> None:
    """Linear between cells of the logarithm, up to a number of each element; leaves of the left-out fold are not seen.

    Elements of few leaves and of many; all at once, and a part of them.
    """
    columns = 7
    element, fold = RNG.integers(0, size, leaves).astype(np.int32), RNG.integers(0, 4, leaves).astype(np.int8)
    column = RNG.integers(0, columns, leaves).astype(np.int16)
    rate = np.exp(RNG.normal(-2, 6, leaves)).astype(np.float32)
    plain = RNG.normal(size=(columns, TUNING.log_rate_cells))  # at every cell
    likely = rate_model.interleave_knots(plain).astype(np.float32)
    last = TUNING.log_rate_cells - 2 - 2 * (KNOTS - 1)
    cells = TUNING.min_log_rate, TUNING.log_rate_step, rate_model.CELLS_BELOW_ONE, last
    place = (
        np.log(rate.astype(float)) / TUNING.log_rate_step
        - TUNING.min_log_rate / TUNING.log_rate_step
        - rate_model.CELLS_BELOW_ONE
    )
    first = np.clip(place, 0, last + 1)
    wanted = np.zeros((size, KNOTS))
    for u in np.flatnonzero(fold != 2):
        wanted[element[u]] += np.interp(
            first[u] + 2 * np.arange(KNOTS), np.arange(TUNING.log_rate_cells), plain[column[u]]
        )
    for low, high in ((0, size), (size // 2, size)):
        room = kernels.knot_buffers(int(np.bincount(element).max()), high - low)
        given = element, rate, fold, 2, column, likely.reshape(-1), likely.shape[2]
        made = kernels.fold_log_likelihoods(*room, low, *given, *cells)[:, :KNOTS]
        less = (made - made.max(axis=1, keepdims=True), wanted - wanted.max(axis=1, keepdims=True))
        np.testing.assert_allclose(less[0], less[1][low:high], rtol=1e-4, atol=1e-2 if size == 2 else 1e-3)


def plain_fit(sums: np.ndarray, evidence: np.ndarray, grid: rate_model.FactorGrid) -> np.ndarray:
    """Elements × factors: their likelihood, largest 1."""
    fit = np.maximum(
        sums - sums.max(axis=1, keepdims=True), -TUNING.max_log_likelihood_drop
    ) @ grid.spline.astype(float)
    measured, precision, power, width, rate, overdispersion = (
        evidence[name][:, None]
        for name in ("measured", "precision", "power", "width", "rate", "overdispersion")
    )
    variance = 1 / precision + grid.factor * rate + grid.factor**2 * overdispersion
    against = (np.abs(measured - grid.factor * rate) / (width * np.sqrt(variance))) ** power + np.log(
        variance
    ) / 2
    fit = np.where(precision > 0, fit - against, fit)
    return np.exp(fit - fit.max(axis=1, keepdims=True))


@pytest.mark.parametrize("grid", [rate_model.ROUGH_GRID, rate_model.SHARP_GRID], ids=["rough", "sharp"])
def test_gains_and_factors(grid: rate_model.FactorGrid) -> None:
    """Against double precision; a part of the elements is judged where it is asked for."""
    many = 50
    sums = np.zeros((many, kernels.KNOT_LANES))
    peak = RNG.normal(0, 0.7, (many, 1))
    sums[:, :KNOTS] = -RNG.lognormal(2, 1, (many, 1)) * (rate_model.KNOTS - peak) ** 2
    held = RNG.lognormal(3, 1, many)
    evidence = np.zeros(many, dtype=kernels.MARGIN_EVIDENCE)
    evidence["measured"] = held * np.exp(RNG.normal(0, 0.5, many))
    evidence["precision"] = RNG.lognormal(-3, 1, many)
    evidence["power"], evidence["width"] = RNG.uniform(1, 2, many), 1.0
    evidence["rate"], evidence["overdispersion"] = held, 0.3 * held
    evidence["precision"][::5] = 1e-9  # next to nothing is known
    fit = plain_fit(sums[:, :KNOTS], evidence, grid)
    wanted = np.log(fit @ grid.priors.T) - np.log(fit[:, grid.one, None])
    given = grid.spline, grid.factor
    gains = [
        kernels.log_bayes_factors(
            sums, every, begin, *given, grid.one, grid.priors_single, evidence, TUNING.max_log_likelihood_drop
        )
        for every, begin in ((1, 0), (4, 3))
    ]
    clear = fit[:, grid.one] > 1e-20
    assert clear.sum() > 30
    for every, begin in ((1, 0), (4, 3)):
        one_by_one = [
            kernels.log_bayes_factors(
                sums[j : j + 1],
                1,
                0,
                *given,
                grid.one,
                grid.priors_single,
                evidence[j : j + 1],
                TUNING.max_log_likelihood_drop,
            )
            for j in range(begin, many, every)
        ]
        np.testing.assert_allclose(gains.pop(0), np.sum(one_by_one, axis=0), rtol=1e-9)
        np.testing.assert_allclose(
            np.array(one_by_one)[clear[begin::every]],
            wanted[begin::every][clear[begin::every]],
            rtol=1e-3,
            atol=2e-3,
        )
    prior = grid.priors.mean(axis=0)
    np.testing.assert_allclose(
        kernels.posterior_mean_factors(sums, *given, prior, evidence, TUNING.max_log_likelihood_drop, 1e-3),
        np.maximum(fit @ (prior * grid.factor) / (fit @ prior), 1e-3),
        rtol=1e-4,
    )


def test_what_follows_moved_tables_is_what_they_would_lead_to() -> None:
    """By how much rates follow is told beside the first model; predicting anew from moved tables says about the same."""
    measured = measure_demand(DAG, demand(3, 4.0), 1)
    leaves = measured[-1]
    noisy, fold = leaves.values.astype(float), fold_of_types(UNIVERSE)
    table, sums = likelihood.count_likelihood(noisy, leaves.noise), measured_sums(DAG, measured)
    moved = perturbed_tables(measured, sums)
    totals = rate_model.ExpectedTotals(rate_model.expected_total(measured), rate_model.expected_total(moved))
    found = rate_model.fit_rates(
        noisy, fold, margins(DAG, measured, table_perturbations(sums)), totals, table
    )
    anew = rate_model.fit_rates(
        noisy, fold, margins(DAG, moved), rate_model.ExpectedTotals(totals.perturbed, totals.perturbed), table
    )
    change = np.log(anew.rate / found.rate)
    assert change.std() > 0.003
    assert np.corrcoef(found.log_rate_response, change)[0, 1] > 0.8
    assert found.log_rate_response @ change / (change @ change) == pytest.approx(1.0, abs=0.25)
    assert SINGLETON not in table_perturbations(sums)
