"""The law of a noisy count given what was to be expected: exact, for whatever law the noise has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from another_law import Twice
from posterior_cases import NOISY, noised, poisson

from cbdp.estimation.posterior import likelihood
from cbdp.estimation.posterior.settings import TUNING
from cbdp.privacy.noise import DiscreteLaplace, NoiseDistribution, RoundedLaplace

LAWS = [DiscreteLaplace, RoundedLaplace, Twice]


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scale", [0.4, 1.0, 2.5, 12.0])
def test_likelihoods_and_moments_are_sums_over_all_counts(
    scale: float, kind: type[NoiseDistribution]
) -> None:
    """The tables hold what summing Poisson times the noise's probabilities over all counts gives, whatever its law."""
    noise = kind(scale)
    table = likelihood.count_likelihood(NOISY.astype(float), noise)
    first, second = table.moments
    assert table.step == 1
    for row in np.flatnonzero((table.means > 0) & (table.means < 6)):
        law = poisson(table.means[row], 400)[: len(table.trips) - table.zero]
        law /= law.sum()
        for u, y in enumerate(NOISY):
            joint, column = noised(noise, law, int(y)), table.column[u]
            n = np.arange(len(law))
            assert table.likelihood[row, column] == pytest.approx(joint.sum(), rel=1e-9)
            assert first[row, column] == pytest.approx(joint @ n, rel=1e-9)
            assert second[row, column] == pytest.approx(joint @ n**2, rel=1e-9)


def test_what_the_tables_leave_out_does_not_matter() -> None:
    """Counts beyond the tables' end change the mean expected of the largest noisy count by less than a thousandth."""
    noise = DiscreteLaplace(2.5)
    table = likelihood.count_likelihood(NOISY.astype(float), noise)
    for row in np.flatnonzero((table.means > 0) & (table.means < 12)):
        joint = noised(noise, poisson(table.means[row], 400), 9)
        column = table.column[5]
        told = table.moments[0][row, column] / table.likelihood[row, column]
        assert told == pytest.approx(joint @ np.arange(400) / joint.sum(), rel=1e-3)


@pytest.mark.parametrize("kind", LAWS)
def test_posterior_of_leaves_is_bayes_rule(
    monkeypatch: pytest.MonkeyPatch, kind: type[NoiseDistribution]
) -> None:
    """Mean and variance of a leaf are those of its count under the mixture of a shape, summed by brute force."""
    noise, rate, shape = kind(1.5), 0.8, np.array([[0.6, 0.9]])
    noisy = np.tile(NOISY, 8).astype(float)
    table = likelihood.count_likelihood(noisy, noise)
    monkeypatch.setattr(
        likelihood, "_calibrated_means", lambda noisy, rate, group, _: np.full(group.max() + 1, rate[0])
    )
    made = likelihood.leaf_prior(noisy, np.full(len(noisy), rate), table, shape).expected(noisy)
    law, more = (
        mixed @ table.counts[:, table.zero :]
        for mixed in table.mixtures(rate * np.array([1.0, likelihood.RATE_PERTURBATION]), shape)[:, 0]
    )
    n = np.arange(len(law))
    for u, y in enumerate(noisy):
        joint, higher = noised(noise, law, int(y)), noised(noise, more, int(y))
        mean, up = joint @ n / joint.sum(), higher @ n / higher.sum()
        assert made.mean[u] == pytest.approx(mean, rel=1e-9)
        assert made.variance[u] == pytest.approx(joint @ n**2 / joint.sum() - mean**2, rel=1e-9)
        assert made.rate_sensitivity[u] == pytest.approx(
            (up - mean) / np.log(likelihood.RATE_PERTURBATION), rel=1e-6
        )


@pytest.mark.parametrize("step", [2, 7, 40])
def test_steps_keep_means(step: int) -> None:
    """A count dealt to the two steps next to it keeps its mean, and a law its sum of 1."""
    means = np.array([0.0, 0.02, 0.5, 3.0, 40.0, 333.0])
    law = likelihood._poisson_probabilities(means, np.arange(60 + 2000 // step), step)
    np.testing.assert_allclose(law.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(law @ (step * np.arange(law.shape[1])), means, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAWS)
def test_a_coarse_lattice_is_near_the_fine_one(
    monkeypatch: pytest.MonkeyPatch, kind: type[NoiseDistribution]
) -> None:
    """With noise far wider than a step, expected counts in steps are those in single trips to a five-thousandth of it."""
    scale = 200.0
    noisy = np.arange(-900.0, 901.0, 60.0)
    coarse = likelihood.count_likelihood(noisy, kind(scale))
    monkeypatch.setattr(likelihood, "TUNING", replace(TUNING, steps_per_scale=1000))
    fine = likelihood.count_likelihood(noisy, kind(scale))
    assert (coarse.step, fine.step) == (6, 1)
    rows = (coarse.means > 0.5) & (coarse.means < 900)
    many = min(len(coarse.means), len(fine.means))
    rows = rows[:many] & (fine.means[:many] < 900)
    told = [(t.moments[0] / t.likelihood)[:many][rows][:, t.column] for t in (coarse, fine)]
    np.testing.assert_allclose(told[0], told[1], atol=2e-4 * scale)


def test_mixtures_have_the_mean_that_is_expected() -> None:
    """Every shape's mixture adds up to 1 and has the expected count as its mean, while that is well inside the table."""
    table = likelihood.count_likelihood(np.arange(-20.0, 3000.0), DiscreteLaplace(3.0))
    wanted = np.array([1e-6, 0.01, 0.3, 2.0])
    mild = likelihood.MIXTURE_SHAPES[
        (likelihood.MIXTURE_SHAPES[:, likelihood.ZERO_SHARE] <= 0.9)
        & (likelihood.MIXTURE_SHAPES[:, likelihood.LOG_MEAN_SPREAD] <= 0.9)
    ]
    mixed = table.mixtures(wanted, mild)
    np.testing.assert_allclose(mixed.sum(axis=2), 1, rtol=1e-12)
    np.testing.assert_allclose(mixed @ table.means, np.tile(wanted[:, None], len(mild)), rtol=1e-7)


def test_noisy_counts_below_zero_say_the_same() -> None:
    """No trips or few: how far a noisy count is below zero tells nothing more, so far ones may share a column."""
    table = likelihood.count_likelihood(np.array([-40.0, -7.0, -1.0, 0.0, 30.0]), DiscreteLaplace(1.0))
    told = (table.moments[0][1:] / table.likelihood[1:])[:, table.column[:4]]
    np.testing.assert_allclose(told, np.tile(told[:, -1:], 4), rtol=1e-9)
    deep = likelihood.count_likelihood(np.array([-(10.0**15), 4.0]), DiscreteLaplace(1.0))
    assert deep.counts.shape[1] < 100
