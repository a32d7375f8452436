"""The example of four leaves in docs/explanation/estimator.md, worked out again: by each step's function, and by plain sums."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.stats import dlaplace, poisson

import cbdp
from cbdp.arrays import Floats
from cbdp.estimation.compiler import compile as compile_program
from cbdp.estimation.compiler import merge_measurements
from cbdp.estimation.posterior import benchmarking, expected_leaves, rate_model
from cbdp.estimation.posterior.likelihood import LeafPosterior, LeafPrior, count_likelihood, leaf_prior
from cbdp.estimation.posterior.margins import margins, rate_model_margins
from cbdp.estimation.posterior.settings import TUNING
from cbdp.features import SINGLETON
from cbdp_solvers.problem import Problem

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "estimator.md").read_text("utf-8")
UNIVERSE = cbdp.Universe(stop=["A", "B"], time=["am", "pm"])
DAG = cbdp.FeatureDag(UNIVERSE, [cbdp.Feature("time", by=["time"])])
MEASURED = [cbdp.Measurement(SINGLETON, [9, -3, 21, 6], 4), cbdp.Measurement("time", [27, 9], 2)]
PERIOD = np.array([0, 1, 0, 1])  # of each leaf
HALF_CENT = 0.0051


def row(what: str) -> Floats:
    """The figures of a row of the page's table: four leaves and their sum."""
    (line,) = re.findall(rf"^\|[^|]*\| {re.escape(what)} \|(.*)\|$", PAGE, re.MULTILINE)
    return np.array([float(cell.replace("−", "-")) for cell in line.split("|")])


def assert_row(what: str, values: Floats) -> None:
    np.testing.assert_allclose(row(what), [*values, np.sum(values)], atol=HALF_CENT)


@dataclass(frozen=True)
class Steps:
    """What steps 1 to 7 come to."""

    noisy: Floats
    variance: float
    total: float
    rate: Floats
    prior: LeafPrior
    independent: LeafPosterior
    benchmarked: LeafPosterior


@pytest.fixture(scope="module")
def steps() -> Steps:
    merged = merge_measurements(DAG, MEASURED)
    leaves = merged[SINGLETON]
    assert leaves.noise is not None
    noisy = leaves.values.astype(float)
    table = count_likelihood(noisy, leaves.noise)
    every = margins(DAG, list(merged.values()))
    total = rate_model.expected_total(list(merged.values()))
    fitted = rate_model.fit_rates(
        noisy,
        rate_model.fold_of_types(UNIVERSE),
        rate_model_margins(every),
        rate_model.ExpectedTotals(total, total),
        table,
    )
    prior = leaf_prior(noisy, fitted.rate, table)
    independent = prior.expected(noisy)
    without_table = [margin for margin in every if not margin.measured_directly]
    benchmarked = benchmarking.benchmarked(without_table, noisy, table.variance, independent)
    return Steps(noisy, table.variance, total, fitted.rate.astype(float), prior, independent, benchmarked)


def program() -> Problem:
    """Step 9, as it is handed to the solver."""
    leaves = expected_leaves(DAG, MEASURED)
    compiled = compile_program(DAG, [MEASURED[1], leaves], "inverse-variance")
    return benchmarking.Benchmarks(DAG, merge_measurements(DAG, MEASURED)).hold(compiled)


def test_every_row_of_the_table_is_what_the_functions_say(steps: Steps) -> None:
    estimate = cbdp.post_process(DAG, MEASURED, estimator="posterior")
    assert_row("noisy counts y", steps.noisy)
    assert_row("rates m", steps.rate)
    assert_row("posterior means", steps.independent.mean)
    assert_row("posterior variances V", steps.independent.variance)
    assert_row("rate sensitivities ℓ", steps.independent.rate_sensitivity)
    assert_row("benchmarked to the total", steps.benchmarked.mean)
    assert_row("less shared errors", expected_leaves(DAG, MEASURED).values)
    assert_row("reconciled", estimate.counts(SINGLETON))
    assert "end at {:.2f} and {:.2f}".format(*estimate.counts("time")) in PAGE


def test_the_total_by_inverse_variance_and_jeffreys_prior(steps: Steps) -> None:
    """A sum over a fine grid of totals, which the density of the page weighs."""
    time = MEASURED[1].variance
    assert time is not None
    leaf_variance, time_variance = 4 * steps.variance, float(np.sum(time))
    precision = 1 / leaf_variance + 1 / time_variance
    direct = (33 / leaf_variance + 36 / time_variance) / precision
    t = np.linspace(1, 200, 400_001)
    density = t**-0.5 * np.exp(-((t - direct) ** 2) * precision / 2)
    assert steps.total == pytest.approx(float(density @ t / density.sum()), rel=1e-4)
    assert f"v = {steps.variance:.2f}" in PAGE
    assert f"4v = {leaf_variance:.2f}" in PAGE
    assert f"2R = {time_variance:.2f}" in PAGE
    assert f"t̂ = {direct:.2f}, and Jeffreys' prior makes it T = {steps.total:.2f}" in PAGE
    np.testing.assert_allclose(steps.rate, steps.total / 4, rtol=1e-6)


def test_a_shrunken_ratio_by_hand(steps: Steps) -> None:
    """Step 4, for the margin that the example would have were it larger."""
    time = MEASURED[1]
    assert time.variance is not None
    expected = np.full(2, steps.total / 2)
    ratio, precision = time.values / expected, expected**2 / time.variance
    weight = 1 / (1 + 1 / precision + 1 / expected)
    factor = 1 + weight * (ratio - 1)
    scaled = factor * expected.sum() / (factor @ expected)
    by_function = rate_model._shrunken_ratios(ratio, precision, expected, 1.0, 1.0, TUNING.min_ratio)
    np.testing.assert_allclose(scaled, by_function, rtol=1e-12)
    assert (
        f"M = {expected[0]:.2f}, r = {ratio[0]:.3f} and {ratio[1]:.3f}, p = M²/R = {precision[0]:.2f}, B = {weight[0]:.3f}, "
        f"so f = {factor[0]:.3f} and {factor[1]:.3f}, and {scaled[0]:.3f} and {scaled[1]:.3f} once"
    ) in PAGE


def test_posterior_moments_by_plain_sums(steps: Steps) -> None:
    """Bayes' theorem over counts and quadrature points, with the laws of scipy."""
    table, prior = steps.prior.table, steps.prior
    n = np.arange(table.counts.shape[1] - table.zero)  # counts far above all noisy ones are left out
    counts = poisson.pmf(n, table.means[:, None])
    counts /= counts.sum(axis=1, keepdims=True)
    for u, y in enumerate(steps.noisy):
        law = (prior.prior[prior.group[u]] @ counts) * dlaplace.pmf(int(y) - n, 1 / 4)
        mean = law @ n / law.sum()
        assert steps.independent.mean[u] == pytest.approx(mean, rel=1e-9)
        assert steps.independent.variance[u] == pytest.approx(law @ n**2 / law.sum() - mean**2, rel=1e-9)


def test_benchmarking_by_its_formula(steps: Steps) -> None:
    """The sum of the leaves moves by its share of the miss; each leaf in proportion to its rate sensitivity."""
    time = MEASURED[1].variance
    assert time is not None
    direct_variance = 1 / (1 / (4 * steps.variance) + 1 / np.sum(time))
    direct = direct_variance * (33 / (4 * steps.variance) + 36 / np.sum(time))
    rate_sensitivity = steps.independent.rate_sensitivity
    share = (
        TUNING.max_effect_variance
        * rate_sensitivity.sum() ** 2
        / (direct_variance + TUNING.max_effect_variance * rate_sensitivity.sum() ** 2)
    )
    shift = share * (direct - steps.independent.mean.sum())
    np.testing.assert_allclose(
        steps.benchmarked.mean - steps.independent.mean,
        shift * rate_sensitivity / rate_sensitivity.sum(),
        rtol=1e-3,
        atol=1e-9,
    )
    assert f"of variance {direct_variance:.2f}, the sum of means {steps.independent.mean.sum():.2f}" in PAGE
    assert f"L²/({direct_variance:.2f} + L²) = {share:.3f}, so the leaves move by {shift:.2f}" in PAGE
    by_period = np.bincount(PERIOD, steps.benchmarked.mean)
    assert "sums by period are {:.2f} and {:.2f}".format(*by_period) in PAGE


def test_the_program_by_least_squares() -> None:
    """Bounded least squares of scipy, in the rows of the page's formula."""
    problem = program()
    total, time = problem.terms  # coarse ones first
    blocks = [
        np.equal.outer(np.arange(len(term.target)), term.element_of_cell[DAG.cell_of_leaf])
        for term in (total, time)
    ]
    weight = np.concatenate([np.broadcast_to(problem.weight, 4), total.weight, time.weight])
    rows = np.vstack([np.eye(4), *blocks])
    target = np.concatenate([problem.target, total.target, time.target])
    solved = lsq_linear(
        rows * np.sqrt(weight)[:, None], target * np.sqrt(weight), bounds=(0, np.inf), tol=1e-12
    )
    estimate = cbdp.post_process(DAG, MEASURED, estimator="posterior").counts(SINGLETON)
    np.testing.assert_allclose(solved.x, estimate, rtol=1e-6)
    assert f"(1 + 10²/5)/R = {time.weight[0]:.3f}" in PAGE
    assert "targets of {:.2f} and {:.2f}".format(*time.target) in PAGE
    assert f"(20²/5)/13.95 = {total.weight[0]:.3f}, at {total.target[0]:.2f}" in PAGE


def test_functions_that_the_page_names_are_there() -> None:
    """Each arrow of the page leads to names of its modules."""
    folder = Path(benchmarking.__file__).parent
    code = "\n".join(path.read_text("utf-8") for path in sorted(folder.glob("*.py")))
    named = [
        name
        for arrow in re.findall(r"→ (.*)$", PAGE, re.MULTILINE)
        for name in re.findall(r"`([\w.]+)`", arrow)
    ]
    assert len(named) > 15
    for name in named:
        if name != "cbdp.solvers":
            last = name.rpartition(".")[2]
            assert re.search(rf"(?:def|class) {last}\b", code), name
