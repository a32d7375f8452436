"""The discrete Gaussian law against sums of sixty digits, from a twentieth of a trip to a million trips."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbdp.numbers import exact_number
from cbdp.privacy.noise import (
    DiscreteGaussian,
    NoiseDistribution,
    distribution_by_variance,
    noise_distribution,
    scale_rounded_up,
)
from cbdp.privacy.unit import Sensitivity

SIXTY = decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
SCALES = ["0.05", "0.2", "0.35", "0.7", "0.99", "1.01", "1.7", "2.9", "3.1", "5", "31.6", "500", "4100"]


class Sums:
    """Every figure of the law added up term by term, with sixty digits."""

    def __init__(self, scale: str) -> None:
        with decimal.localcontext(SIXTY):
            rate = 1 / (2 * Decimal(scale) ** 2)
            value, ratio, step = Decimal(1), (-rate).exp(), (-2 * rate).exp()
            self.weights = []
            for _ in range(int(60 * float(scale)) + 6):
                self.weights.append(value)
                value, ratio = value * ratio, ratio * step
            self.whole = self.weights[0] + 2 * sum(self.weights[1:])

    def mean_of(self, of) -> Decimal:
        """Of an even function."""
        with decimal.localcontext(SIXTY):
            each = enumerate(self.weights)
            return sum((1 if z == 0 else 2) * Decimal(of(z)) * w for z, w in each) / self.whole

    def log_tails(self, at: list[int]) -> list[float]:
        """The logarithm of P(Z ≥ n) for each n."""
        with decimal.localcontext(SIXTY):
            found, total = {}, Decimal(0)
            for z in range(len(self.weights) - 1, -1, -1):
                total += self.weights[z]
                if z in at:
                    found[z] = float((total / self.whole).ln())
            return [found[n] for n in at]


@cache
def sums(scale: str) -> Sums:
    return Sums(scale)


@pytest.mark.parametrize("scale", SCALES)
def test_moments_are_those_of_the_sums(scale):
    """Variance and mean size are right to twelve digits, and P(0) to fourteen."""
    law, told = DiscreteGaussian(exact_number(scale)), sums(scale)
    assert law.variance() == pytest.approx(float(told.mean_of(lambda z: z * z)), rel=1e-12)
    assert law.mean_size() == pytest.approx(float(told.mean_of(abs)), rel=1e-12)
    assert float(law.pmf(0)) == pytest.approx(float(1 / told.whole), rel=1e-14)


@pytest.mark.parametrize("scale", SCALES)
def test_tails_are_those_of_the_sums(scale):
    """P(Z > t) and P(Z ≤ t) on either side of zero, as far as 50 scales out, where they are as small as exp(−1250)."""
    law, far = DiscreteGaussian(exact_number(scale)), float(scale)
    at = sorted({max(1, int(k * far)) for k in (0, 0.1, 1, 3, 8, 20, 37.9, 38.1, 50)})
    told = np.array(sums(scale).log_tails(at))
    n = np.array(at)
    np.testing.assert_allclose(law.log_cdf(-n), told, rtol=0, atol=1e-10)
    kept = told > -700
    np.testing.assert_allclose(law.survival(n[kept] - 1), np.exp(told[kept]), rtol=1e-10)
    np.testing.assert_allclose(law.survival(-n - 1), -np.expm1(law.log_cdf(-n - 1)), rtol=1e-12)
    np.testing.assert_allclose(law.log_cdf(n - 1), np.log1p(-np.exp(told)), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("scale", ["0.05", "0.35", "0.99", "1.01", "1.7", "5"])
def test_transforms_are_those_of_the_sums(scale):
    """The characteristic function is that of the sums at any angle, and so are moments E exp(sZ), however large s is."""
    law, told, size = DiscreteGaussian(exact_number(scale)), sums(scale), float(scale)
    z = np.arange(-len(told.weights) + 1, len(told.weights))
    log_weights = law.log_pmf(z)
    for t in (0.0, 0.3, 2.0, math.pi, 5.5, 40.0, -3.0):
        assert float(law.transform(np.array(t))) == pytest.approx(
            float(np.exp(log_weights) @ np.cos(t * z)), abs=1e-12
        )
    s = np.array([-3.0, -0.7, 0.0, 0.2, 1.0, 4.0]) / size
    from scipy.special import logsumexp

    np.testing.assert_allclose(
        law.log_moment(s), logsumexp(log_weights + s[:, None] * z, axis=1), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("scale", [Fraction(1, 20), Fraction(1, 3), 2, 700, 10**6])
def test_half_width_is_the_smallest_that_covers(scale):
    """P(|Z| ≤ k) reaches the confidence at k and not before."""
    law = DiscreteGaussian(scale)
    for confidence in (0.3, 0.9, 0.999, 1 - 1e-12):
        k = law.half_width(confidence)
        assert 1 - 2 * float(law.survival(k)) >= confidence - 1e-13
        assert k == 0 or 1 - 2 * float(law.survival(k - 1)) < confidence + 1e-13


@pytest.mark.parametrize("scale", [5000, 10**6, 123456.789])
def test_a_wide_law_is_the_normal_law_to_its_corrections(scale):
    """Mass adds up to the difference of tails to ten digits, and tails to the normal law's at half steps."""
    from scipy.special import log_ndtr

    law = DiscreteGaussian(scale)
    n = np.round(np.array([-30.0, -4.0, -0.5, 0.0, 0.7, 3.0, 20.0, 37.0]) * float(scale))
    mass = law.survival(np.abs(n) - 1) - law.survival(np.abs(n))
    np.testing.assert_allclose(mass[2:5], law.pmf(n[2:5]), rtol=1e-6)
    edge = -(np.abs(n) + 0.5) / float(scale)
    np.testing.assert_allclose(law.log_cdf(-np.abs(n) - 1), log_ndtr(edge), atol=(40 / float(scale)) ** 2)


@pytest.mark.parametrize("scale", [0.3, 1.5, 8.0, 90.0])
def test_shifts_are_where_noise_adds_up_to_the_excess(scale):
    """E max(0, Z − s) is the wanted excess between half a trip below and half a trip above the shift that is told."""
    law, z = DiscreteGaussian(scale), np.arange(-5000, 5001)
    excess = scale * np.array([1e-9, 1e-4, 0.1, 0.39])
    for e, s in zip(excess, law.shift(excess), strict=True):
        above, below = (law.pmf(z) @ np.maximum(z - (s + d), 0) for d in (-1.0, 1.0))
        assert below < e < above
    assert (np.diff(law.shift(scale * np.geomspace(1e-300, 1e6, 50))) < 0).all()
    many = np.array([1, 50, 10**6, 10**18])
    found = law.extreme(many, 3.0)
    assert (law.survival(np.ceil(found)) <= np.exp(-3.0) / many * (1 + 1e-9)).all()
    assert (law.survival(np.floor(found) - 1) >= np.exp(-3.0) / many * (1 - 1e-9)).all()


@pytest.mark.parametrize("rate", [0.001, 0.3, 0.34, 1.0, 4.0, 20.0])
def test_precision_is_the_inverse_variance_and_its_slope(rate):
    """In the rate, one over the scale: what budgets are worked out with."""
    at = np.array([rate, rate / 2])
    value, slope = DiscreteGaussian.precision(at)
    np.testing.assert_allclose(value, [1 / DiscreteGaussian(1 / r).variance() for r in at], rtol=1e-12)
    # differences over a ten-thousandth: where the precision grows as exp(rate²/2) they are off by so much
    np.testing.assert_allclose(
        slope,
        super(DiscreteGaussian, DiscreteGaussian).precision.__func__(DiscreteGaussian, at)[1],
        rtol=1e-5,
    )


@given(
    st.fractions(min_value=Fraction(1, 10**9), max_value=1000, max_denominator=10**9),
    st.integers(1, 10**6),
)
@settings(max_examples=200, deadline=None)
def test_noise_costs_no_more_than_it_was_bought_with(rho, square):
    """The scale is rounded up: what it costs is a fraction, at most the ρ given, and less by at most a part in 10¹¹."""
    change = Sensitivity(l1=square, l2_squared=square, l0=square, linf=1)
    law = DiscreteGaussian.calibrate(rho, change)
    assert isinstance(law.cost(change), Fraction)
    assert rho * (1 - Fraction(1, 10**10)) <= law.cost(change) <= rho
    assert float(DiscreteGaussian.rate(np.array(float(rho)), change)) == pytest.approx(
        1 / float(law.scale), rel=1e-10
    )


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9, max_denominator=10**9))
@settings(max_examples=200, deadline=None)
def test_scales_are_decimals_that_files_hold(square):
    """A scale as a float, as text and as a fraction is the same number: whoever reads it has the identical law."""
    scale = scale_rounded_up(square)
    assert exact_number(float(scale)) == scale == Fraction(str(float(scale)))
    assert (scale - Fraction(1, 10**11) * scale) ** 2 < square <= scale**2


def test_squares_have_exact_scales():
    """Where ρ is one half of a square's inverse, the scale is exact and so is the price."""
    for root in (1, 2, 7, Fraction(3, 8), Fraction(1, 5)):
        assert scale_rounded_up(Fraction(root) ** 2) == root


def test_the_law_is_known_by_its_name():
    """It is a part like the others, paid for with ρ, and recognised by its variance."""
    law = noise_distribution("gaussian", Fraction(3, 2))
    assert (law, law.currency, law.excess_kurtosis) == (DiscreteGaussian(Fraction(3, 2)), "rho", 0.0)
    assert noise_distribution("geometric", 1).currency == "epsilon"
    assert distribution_by_variance(2, DiscreteGaussian(2).variance()) == DiscreteGaussian(2)


def test_no_noise_is_zero():
    """A scale of 0, or next to it, gives zeros and nothing that cannot be computed with."""
    for law in (DiscreteGaussian(0), DiscreteGaussian(1e-9)):
        assert (float(law.pmf(0)), float(law.pmf(1)), float(law.survival(0)), float(law.survival(-1))) == (
            1,
            0,
            0,
            1,
        )
        assert law.variance() <= 1e-100
        assert law.mean_size() == 0
        assert law.half_width(0.99) == 0


@pytest.mark.parametrize("law", [DiscreteGaussian(2), DiscreteGaussian(Fraction(1, 3))], ids=str)
def test_blurring_is_convolution(law):
    """Every probability is that of the sum over all counts, to its last digits."""
    rows = np.random.default_rng(0).random((2, 300))
    at = np.arange(300)
    np.testing.assert_allclose(law.blurred(rows, 1), rows @ law.pmf(at[None, :] - at[:, None]), rtol=1e-9)
    wide = DiscreteGaussian(96.0)
    made = NoiseDistribution.blurred(wide, np.eye(1, 801, 400), 3)[0]
    assert made.sum() == pytest.approx(1, abs=1e-6)
    assert made @ (3.0 * np.arange(-400, 401)) ** 2 == pytest.approx(wide.variance(), rel=1e-3)


@pytest.mark.parametrize("scale", [50.0, 700.0])
def test_falloff_is_where_noise_above_grows_e_fold(scale):
    """From one to eight scales up: as far below there is between twice and five times as much noise above."""
    law = DiscreteGaussian(scale)
    at = np.round(scale * np.array([1.0, 2.0, 4.0, 8.0]))
    grown = np.exp(law.log_cdf(-np.floor(at - law.falloff(at)) - 1) - law.log_cdf(-at - 1))
    assert ((grown > 1.9) & (grown < 6)).all()
    assert float(noise_distribution("geometric", scale).falloff(7)) == scale
