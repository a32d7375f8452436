"""Exact samplers against their laws: all values, those above a floor, those in a band, and where they fall."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from noise_fits import ALPHA, fit, fit_residues, p_value, sampler
from scipy import stats

from cbdp.errors import InputError
from cbdp.measuring.samplers import sampler_of
from cbdp.measuring.samplers.laplace import RoundedSampler
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import DiscreteLaplace, RoundedLaplace, noise_distribution


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1, 2, 3, 7, 10, 500, 10**5])
def test_samples_fit_the_law(scale):
    """Three million draws pass a chi-square test at every scale."""
    values = sampler(scale).sample(3_000_000, InsecureSeededEntropy(scale))
    assert values.dtype == np.int64
    assert fit(values, DiscreteLaplace(Fraction(scale))) > ALPHA


@pytest.mark.parametrize("scale", [Fraction(1, 8), Fraction(1, 3), Fraction(22, 7), Fraction(100001, 97)])
def test_fractional_and_small_scales_fit_the_law(scale):
    """Scales that are no integers, down to an eighth, are sampled as they are."""
    assert (
        fit(sampler(scale).sample(1_000_000, InsecureSeededEntropy(5)), DiscreteLaplace(Fraction(scale)))
        > ALPHA
    )


@pytest.mark.parametrize("scale", [5_000, 10**6, 10**9, 10**12, 10**15])
def test_huge_scales_fit_the_law_in_high_and_low_digits(scale):
    """Scales far beyond one table are right in their bulk and in their lowest digits."""
    values = sampler(scale).sample(1_000_000, InsecureSeededEntropy(scale))
    assert fit(values, DiscreteLaplace(Fraction(scale))) > ALPHA
    for modulus in (2, 97, 4096):
        assert fit_residues(values, DiscreteLaplace(Fraction(scale)), modulus) > ALPHA


def test_scale_of_a_twentieth_is_almost_always_zero():
    """At scale 1/20 a value other than zero has probability 4·10^-9, with 8-bit words as with long ones."""
    assert DiscreteLaplace(Fraction(1, 20)).pmf(1) == pytest.approx(math.exp(-20), rel=1e-8)
    for bits in (8, 64):
        assert not sampler(Fraction(1, 20), word_bits=bits).sample(100_000, InsecureSeededEntropy(5)).any()


def test_vanishing_scale_gives_only_zeros():
    """At scale 10^-9 no noise is ever seen, and nothing overflows on the way there."""
    tiny = sampler(Fraction(1, 10**9))
    assert not tiny.sample(10_000).any()
    assert (tiny.law.pmf(0), tiny.law.pmf(1), tiny.law.survival(0)) == (1.0, 0.0, 0.0)
    assert tiny.law.variance() <= 1e-100


# Conditional laws, for universes too large to enumerate


@pytest.mark.parametrize("word_bits", [16, 64])
@pytest.mark.parametrize(
    ("scale", "tau"), [(1, 4), (10, 0), (10, -1), (10, -2), (10, -25), (3000, 10_000), (10**6, -7)]
)
def test_excess_fits_the_conditional_law(scale, tau, word_bits):
    """Values given Z > tau have the law of Z restricted to them, on either side of zero."""
    n = 300_000 if word_bits == 64 else 30_000
    values = sampler(scale, word_bits=word_bits).sample_excess(n, tau, InsecureSeededEntropy(1))
    assert fit(values, DiscreteLaplace(Fraction(scale)), given_above=tau) > ALPHA


BANDS = [
    (1, 0, 3),
    (10, 5, 20),
    (10, -20, -5),
    (10, -1, 5),
    (10, -8, 17),
    (10, -2, 0),
    (10, -3, -1),
    (3000, 4000, 9000),
]
BANDS += [(1, 3, 10_000), (10**6, -(10**6), 10**5), (10**5, 10, 5_000), (50, 6, 7)]


@pytest.mark.parametrize("word_bits", [16, 64])
@pytest.mark.parametrize(("scale", "lo", "hi"), BANDS)
def test_band_fits_the_conditional_law(scale, lo, hi, word_bits):
    """Values given lo < Z ≤ hi have the law of Z restricted to them."""
    n = 300_000 if word_bits == 64 else 30_000
    values = sampler(scale, word_bits=word_bits).sample_band(n, lo, hi, InsecureSeededEntropy(2))
    if hi - lo == 1:
        assert (values == hi).all()
    else:
        assert fit(values, DiscreteLaplace(Fraction(scale)), given_above=lo, given_at_most=hi) > ALPHA


def test_narrow_band_at_a_huge_scale_is_found_at_once():
    """A band of eleven values around zero at scale 10^12 needs no luck."""
    values = sampler(10**12).sample_band(110_000, -6, 5, InsecureSeededEntropy(3))
    counts = np.bincount(values + 5, minlength=11)
    assert p_value(counts, np.full(11, 10_000.0)) > ALPHA


@pytest.mark.parametrize("word_bits", [16, 64])
@pytest.mark.parametrize(
    ("scale", "lo", "hi"), [(2, 5, None), (2, -4, None), (2, 5, 9), (2, -3, 4), (2, -6, -2), (20, 150, 170)]
)
def test_hits_have_independent_geometric_gaps(scale, lo, hi, word_bits):
    """The positions hit are those of independent trials with the band's probability."""
    distribution, law = sampler(scale, word_bits=word_bits), DiscreteLaplace(scale)
    above = 0.0 if hi is None else float(law.survival(hi))
    p = (float(law.survival(lo)) - above) / (1 - above)
    N = math.ceil((100_000 if word_bits == 64 else 10_000) / p)
    source = InsecureSeededEntropy(4)
    if hi is None:
        hits = distribution.sample_skips(N, lo, source)
    else:
        hits = distribution.sample_band_hits(N, lo, hi, source)
    assert hits.dtype == np.int64
    assert 0 <= hits[0] <= hits[-1] < N
    gaps = np.diff(hits, prepend=-1) - 1
    assert gaps.min() >= 0
    assert stats.binomtest(hits.size, N, p).pvalue > ALPHA
    cells = np.arange(0, math.ceil(25 / p) + 2)[:: max(1, round(0.05 / p))]
    expected = hits.size * np.append(-np.diff((1 - p) ** cells), (1 - p) ** float(cells[-1]))
    observed = np.bincount(np.searchsorted(cells, gaps, side="right") - 1, minlength=cells.size)
    assert p_value(observed, expected) > ALPHA


def test_floor_lowered_twice_gives_the_law_of_noising_everything():
    """Hits above a floor, then a band, then the rest, put together, are as if every position had drawn its own noise."""
    N, distribution, source = 2_000_000, sampler(4), InsecureSeededEntropy(6)
    values = np.full(N, np.iinfo(np.int64).max)
    high = distribution.sample_skips(N, 12, source)
    values[high] = distribution.sample_excess(high.size, 12, source)
    for lo, hi in ((5, 12), (-3, 5)):
        left = np.flatnonzero(values == np.iinfo(np.int64).max)
        hits = left[distribution.sample_band_hits(left.size, lo, hi, source)]
        values[hits] = distribution.sample_band(hits.size, lo, hi, source)
    left = values == np.iinfo(np.int64).max
    values[left] = -distribution.sample_excess(int(left.sum()), 2, source)  # Z ≤ −3 mirrored
    assert fit(values, distribution.law) > ALPHA
    assert fit(values[:500_000], distribution.law) > ALPHA


def test_hits_among_the_most_positions():
    """Among 2^63 − 1 positions a handful of hits is found, spread over all of them."""
    N, tau = 2**63 - 1, 35
    p = float(DiscreteLaplace(1).survival(tau))
    distribution, source = sampler(1), InsecureSeededEntropy(7)
    runs = [distribution.sample_skips(N, tau, source) for _ in range(20)]
    hits = np.concatenate(runs)
    assert stats.poisson.sf(hits.size, 20 * N * p) > ALPHA
    assert stats.poisson.cdf(hits.size, 20 * N * p) > ALPHA
    assert stats.kstest(hits / N, "uniform").pvalue > ALPHA
    assert all((np.diff(run) > 0).all() for run in runs)


def test_hits_that_all_but_never_happen():
    """Floors with probabilities down to exp(−10^15) cost nothing and give no hits."""
    for tau in (60, 100, 1000, 10**6, 10**15):
        assert (
            sampler(1).sample_skips(2**63 - 1 if tau > 60 else 1000, tau, InsecureSeededEntropy(8)).size == 0
        )
    assert sampler(1).sample_skips(0, 3).size == 0


# The papers' noise


@pytest.mark.parametrize("scale", [Fraction(1, 4), 1, Fraction(14, 10), 30, 10**5])
def test_rounded_samples_fit_the_law(scale):
    """A million draws of rounded Laplace noise pass a chi-square test at every scale."""
    law = RoundedLaplace(Fraction(scale))
    assert fit(RoundedSampler(scale).sample(1_000_000, InsecureSeededEntropy(12)), law) > ALPHA


@pytest.mark.parametrize(("scale", "tau"), [(1, 0), (Fraction(14, 10), 2), (10, 0), (10, 35)])
def test_rounded_noise_above_a_floor_fits_the_law(scale, tau):
    """Hits have the tail's probability, and values given Z > tau the law of Z restricted to them."""
    drawn, law, source = RoundedSampler(scale), RoundedLaplace(Fraction(scale)), InsecureSeededEntropy(13)
    assert fit(drawn.sample_excess(300_000, tau, source), law, given_above=tau) > ALPHA
    hits = drawn.sample_skips(1_000_000, tau, source)
    assert (np.diff(hits) > 0).all()
    assert 0 <= hits[0] <= hits[-1] < 1_000_000
    assert stats.binomtest(hits.size, 1_000_000, float(law.survival(tau))).pvalue > ALPHA


def test_rounded_noise_has_no_bands():
    """What the papers' noise cannot do is refused, and says which law can."""
    for refused in (
        lambda: RoundedSampler(1).sample_band(3, 0, 2),
        lambda: RoundedSampler(1).sample_band_hits(3, 0, 2),
    ):
        with pytest.raises(InputError, match="use the geometric law"):
            refused()
    for refused in (RoundedSampler(1).sample_skips, RoundedSampler(1).sample_excess):
        with pytest.raises(InputError, match="at least 0, not -1"):
            refused(3, -1)


def test_each_law_has_its_sampler():
    """A law finds the sampler that draws it; of a law that is never drawn here the error names those that are."""
    for name in ("geometric", "rounded"):
        law = noise_distribution(name, Fraction(7, 3))
        assert sampler_of(law).law == law
    with pytest.raises(
        InputError, match="'laplace' is never drawn here: use geometric or gaussian or rounded"
    ):
        sampler_of(noise_distribution("laplace", 1.0))


# Input
