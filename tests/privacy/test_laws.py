"""Laws of noise as mathematics, against independent oracles: sums, scipy, decimal arithmetic, OpenDP."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from another_law import Twice
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from cbdp.errors import InputError
from cbdp.privacy.noise import (
    NOISE_DISTRIBUTIONS,
    ContinuousLaplace,
    DiscreteLaplace,
    NoiseDistribution,
    RoundedLaplace,
    distribution_by_variance,
    noise_distribution,
)
from cbdp.privacy.unit import Sensitivity

EXACT = decimal.Context(prec=400, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
WHOLE = [DiscreteLaplace, RoundedLaplace, Twice]
SCALES = st.fractions(min_value=Fraction(1, 50), max_value=40)
Z = np.arange(-2000, 2001)


@pytest.mark.parametrize("kind", WHOLE)
@given(SCALES)
@settings(max_examples=60, deadline=None)
def test_probabilities_sum_to_one_and_survival_adds_them_up(kind, scale):
    """P(z) sums to one, P(Z > t) is the sum of P(z) above t, and the moments are sums over all z."""
    law = kind(scale)
    p = law.pmf(Z)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    tails = p[::-1].cumsum()[::-1]
    assert np.allclose(law.survival(Z[:-1]), tails[1:], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(np.exp(law.log_cdf(Z[:-1])), 1 - tails[1:], rtol=1e-9, atol=1e-14)
    assert (p * Z.astype(float) ** 2).sum() == pytest.approx(law.variance(), rel=1e-9, abs=1e-300)
    assert (p * np.abs(Z)).sum() == pytest.approx(law.mean_size(), rel=1e-9, abs=1e-300)
    for t in (0.0, 0.3, 2.0, math.pi):
        assert float(law.transform(np.array(t))) == pytest.approx(float(p @ np.cos(t * Z)), abs=1e-11)
    s = np.array([-0.6, -0.2, 0.0, 0.4]) / float(scale)
    told = logsumexp(law.log_pmf(Z) + s[:, None] * Z, axis=1)
    np.testing.assert_allclose(law.log_moment(s), told, rtol=1e-7, atol=1e-9)
    assert np.isinf(law.log_moment(np.array([1.1 / float(scale)]))).all()


@pytest.mark.parametrize("kind", [*WHOLE, ContinuousLaplace])
@given(st.fractions(min_value=Fraction(1, 50), max_value=1000), st.floats(0.01, 0.999999))
@settings(max_examples=100, deadline=None)
def test_half_width_is_the_smallest_that_covers(kind, scale, confidence):
    """P(|Z| ≤ k) reaches the confidence at k = half_width and not before, by closed form or by search."""
    law = kind(scale)
    k = law.half_width(confidence)
    assert 1 - 2 * law.survival(k) >= confidence - 1e-12
    assert k == 0 or 1 - 2 * law.survival(k - 1) < confidence + 1e-12
    assert k == NoiseDistribution.half_width(law, confidence)
    assert NoiseDistribution._half_width_below(law, confidence) <= k


def test_survival_keeps_its_digits_far_out():
    """P(Z > 600) at scale 1 is right to twelve digits although it is 10^-261."""
    truth = EXACT.divide(EXACT.exp(Decimal(-601)), 1 + EXACT.exp(Decimal(-1)))
    assert DiscreteLaplace(1).survival(600) == pytest.approx(float(truth), rel=1e-12)
    assert DiscreteLaplace(1).survival(-1) == pytest.approx(1 - DiscreteLaplace(1).survival(0), rel=1e-15)


# Other people's formulas


@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, Fraction(22, 7), 60])
def test_geometric_is_the_discrete_laplace_law_of_scipy(scale):
    """Mass, tails, variance and kurtosis are those of `scipy.stats.dlaplace` with a = 1/scale."""
    law, other, at = DiscreteLaplace(scale), stats.dlaplace(1 / float(scale)), np.arange(-80, 81)
    np.testing.assert_allclose(law.pmf(at), other.pmf(at), rtol=1e-10)
    np.testing.assert_allclose(law.survival(at), other.sf(at), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(np.exp(law.log_cdf(at)), other.cdf(at), rtol=1e-9, atol=1e-15)
    assert law.variance() == pytest.approx(float(other.var()), rel=1e-9)
    for confidence in (0.5, 0.9, 0.99):
        assert law.half_width(confidence) == other.ppf((1 + confidence) / 2)


@pytest.mark.parametrize("scale", [0.3, 1.4, 20.0])
def test_rounded_is_the_laplace_law_of_scipy_rounded(scale):
    """P(z) is what a continuous Laplace law has between z − ½ and z + ½; of that law the continuous one has all formulas."""
    law, other, at = RoundedLaplace(scale), stats.laplace(scale=scale), np.arange(-40, 41)
    np.testing.assert_allclose(law.pmf(at), other.cdf(at + 0.5) - other.cdf(at - 0.5), rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(law.survival(at), other.sf(at + 0.5), rtol=1e-9)
    plain = ContinuousLaplace(scale)
    np.testing.assert_allclose(plain.pmf(at / 3), other.pdf(at / 3), rtol=1e-9)
    np.testing.assert_allclose(plain.survival(at / 3), other.sf(at / 3), rtol=1e-9)
    assert (plain.variance(), plain.mean_size()) == pytest.approx((other.var(), scale))


@pytest.mark.parametrize("scale", [1.0, 3.5, 40.0])
def test_accuracy_of_geometric_noise_is_that_which_opendp_states(scale):
    """OpenDP's own bound on |Z| at a risk of α is the least k that our law says is exceeded at most so often."""
    import opendp.prelude as dp

    law = DiscreteLaplace(Fraction(scale))
    for risk in (0.2, 0.05, 0.001):
        stated = dp.discrete_laplacian_scale_to_accuracy(scale, risk)
        # theirs is the least a with P(|Z| ≥ a) ≤ α, ours the least k with P(|Z| > k) ≤ α
        assert law.half_width(1 - risk) == math.ceil(stated) - 1


# What a law need not say itself: the defaults of the base, against closed forms and against brute force


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0, 4.0])
def test_precision_by_differences_is_the_closed_form(rate):
    """The inverse variance and its slope in the rate, which budgets are worked out with."""
    at = np.array([rate, rate / 2])
    for one, other in zip(
        super(DiscreteLaplace, DiscreteLaplace).precision.__func__(DiscreteLaplace, at),
        DiscreteLaplace.precision(at),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    value, slope = Twice.precision(at)
    np.testing.assert_allclose(value, DiscreteLaplace.precision(at)[0] / 2, rtol=1e-9)
    np.testing.assert_allclose(slope, DiscreteLaplace.precision(at)[1] / 2, rtol=1e-6)


@pytest.mark.parametrize("scale", [0.8, 4.0, 90.0])
def test_extremes_by_search_are_near_the_closed_form(scale):
    """What the largest of many noises exceeds: found from the tails alone, right to less than two scales and a trip."""
    many = np.array([1, 50, 10**6, 10**18])
    found = NoiseDistribution.extreme(DiscreteLaplace(scale), many, 3.0)
    np.testing.assert_allclose(found, DiscreteLaplace(scale).extreme(many, 3.0), atol=0.7 * scale + 1)
    for kind in (Twice, RoundedLaplace, ContinuousLaplace):
        told = kind(scale).survival(np.ceil(NoiseDistribution.extreme(kind(scale), many, 3.0)))
        assert (told <= np.exp(-3.0) / many * (1 + 1e-9)).all()
        lower = kind(scale).survival(np.floor(NoiseDistribution.extreme(kind(scale), many, 3.0)) - 1)
        assert (lower >= np.exp(-3.0) / many * (1 - 1e-9)).all()


@pytest.mark.parametrize("scale", [1.5, 8.0, 90.0])
def test_shifts_by_search_are_near_the_closed_form(scale):
    """Where noise on empty types adds up to a given excess: to half a scale and a trip, also where most types are full."""
    excess = scale * np.array([1e-9, 1e-4, 0.1, 0.4, 2.0, 50.0, 5000.0])
    found = NoiseDistribution.shift(DiscreteLaplace(scale), excess)
    np.testing.assert_allclose(found, DiscreteLaplace(scale).shift(excess), atol=0.51 * scale + 1)
    assert (np.diff(found) < 0).all()
    z = np.arange(-20_000, 20_001)
    for kind in (Twice, RoundedLaplace):
        law, p = kind(scale), kind(scale).pmf(z)
        for e, s in zip(excess[1:5], law.shift(excess[1:5]), strict=True):
            above, below = (p @ np.maximum(z - (s + d), 0) for d in (-1.0, 1.0))
            assert below < e < above


def test_floors_of_many_cells_are_soon_found():
    """Shifts and extremes of a hundred thousand cells take no loop over cells: each is one call on arrays."""
    asked = []

    class Counted(Twice):
        def survival(self, t):
            asked.append(np.size(t))
            return super().survival(t)

    excess = np.geomspace(1e-6, 10, 100_000)
    assert Counted(3.0).shift(excess).shape == excess.shape
    assert Counted(3.0).extreme(np.full(100_000, 50), 3.0).shape == (100_000,)
    assert len(asked) < 300


def brute(law: NoiseDistribution, rows: np.ndarray) -> np.ndarray:
    """Rows after noise, by adding up every count and every noise."""
    at = np.arange(rows.shape[1])
    return rows @ law.pmf(at[None, :] - at[:, None])


@pytest.mark.parametrize(
    "law", [DiscreteLaplace(2), RoundedLaplace(2), Twice(2), Twice(Fraction(1, 3))], ids=str
)
def test_blurring_is_convolution_to_the_last_tail(law):
    """On steps of a trip, every probability is that of the sum over all counts, also those as small as exp(−300)."""
    rng = np.random.default_rng(0)
    rows = rng.random((3, 700)) * np.array([[1.0], [1e-6], [0.0]])
    rows[2, 40] = 1.0
    expected = brute(law, rows)
    assert expected[2].min() < 1e-130
    for made in (law.blurred(rows, 1), NoiseDistribution.blurred(law, rows, 1)):
        np.testing.assert_allclose(made, expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("step", [2, 3, 6, 7])
@pytest.mark.parametrize("kind", [RoundedLaplace, Twice, ContinuousLaplace])
def test_blurring_in_steps_keeps_means(kind, step):
    """In steps the noise stays symmetric, so that no count is drawn to one side; its variance is off by the step's own."""
    law, at = kind(32.0 * step), step * np.arange(-2000, 2001)
    made = law.blurred(np.eye(1, 4001, 2000), step)[0]
    assert made.sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(made, made[::-1], rtol=1e-9)
    assert abs(made @ at) < 1e-6
    assert made @ at.astype(float) ** 2 == pytest.approx(law.variance(), rel=1e-3)


def test_blurring_in_steps_is_near_the_closed_form():
    """The geometric law's recursions and the default differ by a hundredth at the peak, and elsewhere by a thousandth."""
    rows, law = np.eye(1, 1001, 500), DiscreteLaplace(32 * 5)
    made, closed = NoiseDistribution.blurred(law, rows, 5)[0], law.blurred(rows, 5)[0]
    assert made[500] == pytest.approx(closed[500], rel=1e-2)
    np.testing.assert_allclose(np.delete(made, 500), np.delete(closed, 500), rtol=1e-3)


# By name


def test_laws_are_parts():
    """Each is known by its name, says what it is in a line and for manifests, and keeps its scale."""
    assert NOISE_DISTRIBUTIONS.names()[:4] == ("geometric", "gaussian", "rounded", "laplace")
    for name in NOISE_DISTRIBUTIONS.names()[:4]:
        law = noise_distribution(name, Fraction(3, 2))
        assert (law.name, law.scale) == (name, Fraction(3, 2))
        assert law.about
        assert law.words
        assert law.times(2.0) == noise_distribution(name, 3.0)
    with pytest.raises(InputError, match="unknown noise law 'gaus'"):
        noise_distribution("gaus", 1)
    with pytest.raises(InputError, match="give a finite number of at least 0"):
        noise_distribution("geometric", -1)
    with pytest.raises(InputError, match="confidence must lie strictly between 0 and 1, not 1"):
        DiscreteLaplace(1).half_width(1)


def test_a_new_law_states_its_own_cost():
    """Nothing is inherited: l1/scale is the price of the Laplace family, and false of a uniform law."""
    assert {"calibrate", "cost", "rate"} <= NoiseDistribution.__abstractmethods__


def test_scale_and_price_are_two_sides_of_one():
    """ε buys a scale of Δ/ε, and such a scale costs ε again, as fractions."""
    change = Sensitivity(l1=3, l2_squared=9, l0=3, linf=3)
    for kind in (DiscreteLaplace, RoundedLaplace):
        law = kind.calibrate(Fraction(1, 7), change)
        assert law.scale == 21
        assert law.cost(change) == Fraction(1, 7)


def test_noise_is_recognised_by_its_variance():
    """A scale alone is geometric; with a variance, the law that has it, or none that is known."""
    assert distribution_by_variance(2, None) == DiscreteLaplace(2)
    assert distribution_by_variance(2, DiscreteLaplace(2).variance()) == DiscreteLaplace(2)
    assert distribution_by_variance(2, RoundedLaplace(2).variance()) == RoundedLaplace(2)
    assert distribution_by_variance(2, 99.0) is None
