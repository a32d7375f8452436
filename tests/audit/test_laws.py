"""The exact laws of sums of noises: against convolution, closed forms and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from attacked_tables import LAWS, P, draw
from numpy.typing import NDArray

from benchmarks import theorem5
from cbdp.audit.scale_recovery import sum_distribution, terms_of
from cbdp.privacy.noise import NoiseDistribution, noise_distribution


def mass(noise: NoiseDistribution, reach: int) -> NDArray[np.float64]:
    """P(L = k) for |k| up to a reach, by differences of the survival function."""
    up = np.array([noise.reaches(k) - noise.reaches(k + 1) for k in range(1, reach + 1)])
    return np.concatenate([up[::-1], [float(noise.pmf(0))], up])


@pytest.mark.parametrize("law", ["geometric", "rounded"])
def test_a_whole_sum_has_the_law_of_the_convolution(law: str) -> None:
    """Tails and probabilities of a sum of noises of two scales are those that direct convolution gives."""
    a, b = noise_distribution(law, 1.4), noise_distribution(law, 3.0)
    one, two = mass(a, 400), mass(b, 400)
    direct = np.convolve(np.convolve(np.convolve(one, one), two), two)
    middle = len(direct) // 2
    found = sum_distribution([(a, 1.0, 1), (a, -1.0, 1), (b, 1.0, 2)])
    x = np.array([0.0, 1, 5, 20, 60])
    expected = [min(1.0, 2 * direct[middle + int(k) :].sum()) for k in x]
    assert found.tail(x) == pytest.approx(expected, rel=1e-6)
    assert found.log_mass(x) == pytest.approx(np.log(direct[middle + x.astype(int)]), abs=1e-5)
    assert found.variance == pytest.approx(float(direct @ (np.arange(len(direct)) - middle) ** 2), rel=1e-9)
    far = np.array([150.0])
    assert 2 * direct[middle + 150 :].sum() < found.tail(far)[0] < 1e-15


@pytest.mark.parametrize("law", LAWS)
def test_one_noise_has_its_declared_law(law: str) -> None:
    """Tails of each law are those of its closed form, and its variance is that of its probabilities."""
    noise = noise_distribution(law, P)
    closed = {
        "laplace": math.exp(-17 / P) / 2,
        "rounded": math.exp(-16.5 / P) / 2,
        "geometric": math.exp(-17 / P) / (1 + math.exp(-1 / P)),
    }
    assert noise.reaches(17) == pytest.approx(closed[law], rel=1e-12)
    assert noise.reaches(-3) == pytest.approx(1 - noise.reaches(4 if noise.whole else 3))
    if noise.whole:
        each = mass(noise, 300)
        assert each.sum() == pytest.approx(1.0, abs=1e-12)
        assert noise.variance() == pytest.approx(float(each @ np.arange(-300, 301) ** 2), rel=1e-9)
    else:
        assert noise.variance() == pytest.approx(2 * P**2)


def test_the_sum_of_three_laplace_noises_has_its_closed_form() -> None:
    """Density and quantiles of a continuous sum agree with (u² + 3u + 3) exp(−u)/16."""
    found = sum_distribution([(noise_distribution("laplace", P), 1.0, 3)])
    u = np.array([0.1, 1.0, 4.0, 20.0, 60.0])
    assert found.log_mass(u * P) == pytest.approx(np.log((u * u + 3 * u + 3) * np.exp(-u) / 16 / P), abs=1e-9)
    for alpha in (0.5, 0.05, 0.001):
        width = found.half_width(alpha)
        assert 1 - alpha <= theorem5.coverage(P, width) <= 1 - alpha + 0.01
    assert found.deviation == pytest.approx(math.sqrt(6) * P)


def test_intervals_of_sums_with_any_weights_hold_as_often_as_they_say() -> None:
    """With many weights that are no whole numbers the interval covers at least its share, and hardly more."""
    noise, n = noise_distribution("geometric", 2.0), 200_000
    weights = np.linspace(0.05, 1.3, 90)
    drawn = draw(noise, n * len(weights), 4).reshape(n, -1) @ weights
    law = sum_distribution(terms_of(noise, weights))
    for alpha in (0.5, 0.05, 0.01):
        outside = float((np.abs(drawn) > law.half_width(alpha)).mean())
        assert 0.85 * alpha < outside < alpha + 5 * math.sqrt(alpha / n)


def test_a_far_tail_is_bounded_from_above() -> None:
    """Beyond what a transform resolves, tails and quantiles are on the safe side of the exact ones."""
    noise = noise_distribution("geometric", 1.0)
    law, exact = sum_distribution([(noise, 1.0, 1)]), 2 * noise.reaches(60)
    assert exact <= law.tail(60.0)[0] < 1e-20
    assert 2 * noise.reaches(law.half_width(1e-20) + 1) <= 1e-20
