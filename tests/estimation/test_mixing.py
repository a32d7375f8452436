"""Means dealt to a row of means, in loops: bit for bit what whole arrays give, and by plain quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtr

from cbdp.estimation.posterior import likelihood

SHAPES = np.array([(0.0, 0.0), (0.0, 1.5), (0.5, 0.3), (0.9, 4.0)])


def _whole_arrays(means: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The same differences of expected excesses, all of them worked out, and those that are not wanted left aside."""
    empty, spread = SHAPES[:, :1], np.maximum(SHAPES[:, 1:], 1e-3)
    centre = np.maximum(expected, likelihood.MIN_PROBABILITY)[:, None, None] / (1 - empty)
    positive = means[1:]
    far = (np.log(centre) - np.log(positive)) / spread
    over = centre * ndtr(far + spread / 2) - positive * ndtr(far - spread / 2)
    under = positive * ndtr(spread / 2 - far) - centre * ndtr(-far - spread / 2)
    over = np.diff(over, axis=2, prepend=np.broadcast_to(centre, (*over.shape[:2], 1)))
    under = np.diff(under, axis=2, prepend=0.0)
    slope = np.where(positive <= centre, under / np.diff(means) - 1, over / np.diff(means))
    made = np.maximum(np.diff(slope, axis=2, prepend=-1.0, append=0.0), 0.0) * (1 - empty)
    made[:, :, 0] += empty[:, 0]
    return np.asarray(made)


def test_loops_give_the_bits_of_whole_arrays() -> None:
    """Also where no mean, or every mean, is above what is expected, and where one equals it."""
    means = likelihood.quadrature_means(1e-4, 300.0, 2.0)
    some = np.random.default_rng(2).lognormal(0.0, 4.0, 50)
    expected = np.concatenate([some, [0.0, 1e-300, 1e12, means[1], means[7], means[-1]]])
    assert np.array_equal(
        likelihood.lognormal_mixtures(means, expected, SHAPES), _whole_arrays(means, expected)
    )


@pytest.mark.parametrize("expected", [0.02, 1.0, 6.5])
def test_a_part_is_the_integral_of_a_hat(expected: float) -> None:
    """Each mean of the row gets the expected height, at λ, of the hat that is 1 there and 0 at its neighbours."""
    means = np.array([0.0, 0.1, 0.5, 2.0, 4.0, 9.0, 20.0, 900.0])
    empty, spread = SHAPES[2]
    centre = expected / (1 - empty)
    law = stats.lognorm(spread, scale=centre * np.exp(-(spread**2) / 2))
    made = likelihood.lognormal_mixtures(means, np.array([expected]), SHAPES[2:3])[0, 0]
    for j in range(1, 6):
        rising, falling = (
            integrate.quad(lambda x, a=a, b=b: (x - a) / (b - a) * law.pdf(x), min(a, b), max(a, b))[0]
            for a, b in ((means[j - 1], means[j]), (means[j + 1], means[j]))
        )
        assert made[j] == pytest.approx((1 - empty) * (rising + falling), abs=1e-9)
