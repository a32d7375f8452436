"""The exact sampler of the discrete Gaussian against its law: all values, those above a floor, in a band, and where they fall."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from noise_fits import ALPHA, Recorder, fit, meets_the_right_pieces, p_value
from scipy import stats

from cbdp.measuring.answers import sample_opendp
from cbdp.measuring.exact_sampling import InverseCdfTable
from cbdp.measuring.samplers import gaussian, sampler_of
from cbdp.measuring.samplers.gaussian import GaussianPieces, GaussianSampler, GaussianTable
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import DiscreteGaussian, noise_distribution


def sampler(scale, **options):
    return GaussianSampler(Fraction(scale), **options)


SCALES = [
    Fraction(3, 10),
    Fraction(1, 2),
    1,
    Fraction(27, 10),
    Fraction(223606797750, 10**11),
    10,
    63,
    64,
    127,
    129,
    1000,
    10**5,
]


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
def test_samples_fit_the_law(scale):
    """Three million draws pass a chi-square test at every scale, where the tables change their shape and elsewhere."""
    values = sampler(scale).sample(3_000_000, InsecureSeededEntropy(int(10 * scale)))
    assert values.dtype == np.int64
    assert fit(values, DiscreteGaussian(Fraction(scale))) > ALPHA


@pytest.mark.parametrize("scale", [128, 5_000, 10**6, 10**9, 10**15])
def test_wide_scales_fit_the_law_in_their_lowest_digits(scale):
    """Blocks leave no trace: values modulo small numbers are even, as the law is to a hundred digits; 0 is there once."""
    values = sampler(scale).sample(1_000_000, InsecureSeededEntropy(scale))
    assert fit(values, DiscreteGaussian(Fraction(scale))) > ALPHA
    for modulus in (2, 64, 97, 4096):
        if modulus < scale:  # else residues are not even
            counts = np.bincount(values % modulus, minlength=modulus)
            assert p_value(counts, np.full(modulus, values.size / modulus)) > ALPHA
    if scale == 128:
        near = np.bincount(values[np.abs(values) < 40] + 39)
        assert p_value(near, DiscreteGaussian(scale).pmf(np.arange(-39, 40)) * values.size) > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "n"), [(8, 50_000), (16, 300_000), (32, 1_000_000)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), 1, 10, 100, 1000, 10**5])
def test_short_words_keep_the_law(scale, bits, n):
    """With 8- and 16-bit words most or many draws are ties, and the law stays the same."""
    source = Recorder(3)
    values = sampler(scale, word_bits=bits).sample(n, source)
    assert fit(values, DiscreteGaussian(Fraction(scale))) > ALPHA
    assert bits == 32 or source.singles > n / 2**bits


@pytest.mark.parametrize("scale", [Fraction(1, 2), 3])
def test_every_pair_of_8_bit_words_meets_the_right_piece(scale):
    """All 65,536 pairs of words give the piece that holds them, or ask for more exactly where a threshold lies inside."""
    meets_the_right_pieces(sampler(scale, word_bits=8)._bell(0, signed=True).table)


class Short(GaussianTable):
    """A bell whose table ends after few blocks, so that what lies beyond is common."""

    blocks = 2
    step = 1

    @property
    def pieces(self):
        return GaussianPieces(self.rate, self.start, self.step, self.blocks, self.signed)

    @property
    def table(self):
        return InverseCdfTable(self.pieces, self.word_bits)


class ShortBlocks(Short):
    step = 4


@pytest.mark.parametrize("bits", [8, 64])
@pytest.mark.parametrize("kind", [Short, ShortBlocks])
@pytest.mark.parametrize(("start", "signed"), [(0, True), (0, False), (7, False)])
def test_what_lies_beyond_the_table_has_the_right_law(kind, start, signed, bits):
    """With two blocks in the table many values come from beyond it, and the law is the same."""
    scale = Fraction(11)
    bell = kind(1 / (2 * scale**2), start, bits, signed)
    values = bell.draw(200_000 if bits == 64 else 40_000, InsecureSeededEntropy(9))
    assert (np.abs(values) >= kind.blocks * kind.step).mean() > 0.2
    if signed:
        assert fit(values, DiscreteGaussian(scale)) > ALPHA
        near = np.bincount(values[np.abs(values) < 9] + 8)
        assert p_value(near, DiscreteGaussian(scale).pmf(np.arange(-8, 9)) * values.size) > ALPHA
    else:
        assert fit(start + values, DiscreteGaussian(scale), given_above=start - 1) > ALPHA


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("g * (g - 1)", "the geometric weights are not made up for"),
        ("negative & (value == 0)", "0 is there twice"),
        ("inside * inside", "the members of a block are drawn evenly"),
    ],
)
def test_mutants_of_the_draw_are_caught(wrong, right, monkeypatch):
    """What the tests above would see if a step were left out: {right}."""
    scale, made = Fraction(11), ShortBlocks(Fraction(1, 242), 0, 64, True)
    if wrong == "negative & (value == 0)":
        real = np.where(made.draw(200_000, InsecureSeededEntropy(1)) == 0, 0, 1)
        values = np.concatenate(
            [made.draw(200_000, InsecureSeededEntropy(1)), np.zeros(int((real == 0).sum()), int)]
        )
    else:
        monkeypatch.setattr(
            gaussian, "bernoulli_exp", lambda x, exactly, bits, source: np.ones(x.size, dtype=bool)
        )
        values = made.draw(200_000, InsecureSeededEntropy(1))
    near = np.bincount(values[np.abs(values) < 9] + 8)
    assert (
        min(
            fit(values, DiscreteGaussian(scale)),
            p_value(near, DiscreteGaussian(scale).pmf(np.arange(-8, 9)) * values.size),
        )
        < ALPHA
    ), right


def test_vanishing_scale_gives_only_zeros():
    """At scale 10^-9, and at a twentieth, no noise is seen, with 8-bit words as with long ones."""
    for scale, bits in itertools.product((Fraction(1, 10**9), Fraction(1, 20)), (8, 64)):
        assert not sampler(scale, word_bits=bits).sample(20_000, InsecureSeededEntropy(5)).any()


# Conditional laws, for universes too large to enumerate


@pytest.mark.parametrize("word_bits", [16, 64])
@pytest.mark.parametrize(
    ("scale", "tau"),
    [
        (1, 2),
        (1, 5),
        (10, 0),
        (10, -1),
        (10, -2),
        (10, -25),
        (10, 80),
        (3000, 10_000),
        (10**6, -7),
        (10**5, 10**6),
    ],
)
def test_excess_fits_the_conditional_law(scale, tau, word_bits):
    """Values given Z > tau have the law of Z restricted to them, on either side of zero and far out."""
    n = 300_000 if word_bits == 64 else 30_000
    law = DiscreteGaussian(Fraction(scale))
    values = sampler(scale, word_bits=word_bits).sample_excess(n, tau, InsecureSeededEntropy(1))
    assert fit_conditional(values, law, tau, None) > ALPHA


BANDS = [
    (1, 0, 3),
    (10, 5, 20),
    (10, -20, -5),
    (10, -1, 5),
    (10, -8, 17),
    (10, -2, 0),
    (10, -3, -1),
    (10, -90, 60),
]
BANDS += [
    (3000, 4000, 9000),
    (1, 3, 10_000),
    (10**6, -(10**6), 10**5),
    (10**5, 10, 5_000),
    (50, 6, 7),
    (40, 200, 260),
]


@pytest.mark.parametrize("word_bits", [16, 64])
@pytest.mark.parametrize(("scale", "lo", "hi"), BANDS)
def test_band_fits_the_conditional_law(scale, lo, hi, word_bits):
    """Values given lo < Z ≤ hi have the law of Z restricted to them."""
    n = 300_000 if word_bits == 64 else 30_000
    values = sampler(scale, word_bits=word_bits).sample_band(n, lo, hi, InsecureSeededEntropy(2))
    if hi - lo == 1:
        assert (values == hi).all()
    else:
        assert fit_conditional(values, DiscreteGaussian(Fraction(scale)), lo, hi) > ALPHA


def fit_conditional(values, law, lo, hi):
    """P-value of values given lo < Z ≤ hi, in bins of a thirtieth of where they lie, by tails relative to the first."""
    top = int(values.max())
    assert lo < values.min()
    assert hi is None or top <= hi
    edges = np.unique(np.linspace(lo, top, 31).astype(np.int64))
    log_above = law.log_cdf(-edges - 1)  # of P(Z > edge), by symmetry
    above = np.exp(log_above - log_above[0])
    if hi is None or hi > top:
        rest = 0.0 if hi is None else float(np.exp(law.log_cdf(-hi - 1) - log_above[0]))
        edges, above = np.append(edges, 2**62 if hi is None else hi), np.append(above, rest)
    expected = -np.diff(above) / (above[0] - above[-1]) * values.size
    return p_value(np.histogram(values, edges + 1)[0], expected)


def test_narrow_band_at_a_huge_scale_is_found_at_once():
    """A band of eleven values around zero at scale 10^12 needs no luck; nor does one far out."""
    for lo, hi in ((-6, 5), (10**12, 10**12 + 11), (-(10**12) - 11, -(10**12))):
        values = sampler(10**12).sample_band(110_000, lo, hi, InsecureSeededEntropy(3))
        assert p_value(np.bincount(values - lo - 1, minlength=11), np.full(11, 10_000.0)) > ALPHA


@pytest.mark.parametrize("word_bits", [16, 64])
@pytest.mark.parametrize(
    ("scale", "lo", "hi"),
    [
        (2, 5, None),
        (2, -4, None),
        (2, 5, 9),
        (2, -3, 4),
        (2, -6, -2),
        (20, 50, 60),
        (3, -30, -26),
        (1000, 2500, None),
    ],
)
def test_hits_have_independent_geometric_gaps(scale, lo, hi, word_bits):
    """The positions hit are those of independent trials with the band's probability."""
    drawn, law = sampler(scale, word_bits=word_bits), DiscreteGaussian(scale)
    known = 0.0 if hi is None else float(law.log_cdf(hi))
    p = -math.expm1(float(law.log_cdf(lo)) - known)
    N = math.ceil((100_000 if word_bits == 64 else 10_000) / p)
    source = InsecureSeededEntropy(4)
    hits = drawn.sample_skips(N, lo, source) if hi is None else drawn.sample_band_hits(N, lo, hi, source)
    assert 0 <= hits[0] <= hits[-1] < N
    gaps = np.diff(hits, prepend=-1) - 1
    assert gaps.min() >= 0
    assert stats.binomtest(hits.size, N, p).pvalue > ALPHA
    if p < 0.9:
        cells = np.arange(0, math.ceil(25 / p) + 2)[:: max(1, round(0.05 / p))]
        expected = hits.size * np.append(-np.diff((1 - p) ** cells), (1 - p) ** float(cells[-1]))
        observed = np.bincount(np.searchsorted(cells, gaps, side="right") - 1, minlength=cells.size)
        assert p_value(observed, expected) > ALPHA


def test_floor_lowered_twice_gives_the_law_of_noising_everything():
    """Hits above a floor, then a band, then the rest, put together, are as if every position had drawn its own noise."""
    N, drawn, source = 1_000_000, sampler(4), InsecureSeededEntropy(6)
    unknown = np.iinfo(np.int64).max
    values = np.full(N, unknown)
    high = drawn.sample_skips(N, 8, source)
    values[high] = drawn.sample_excess(high.size, 8, source)
    for lo, hi in ((3, 8), (-3, 3)):
        left = np.flatnonzero(values == unknown)
        hits = left[drawn.sample_band_hits(left.size, lo, hi, source)]
        values[hits] = drawn.sample_band(hits.size, lo, hi, source)
    left = values == unknown
    values[left] = -drawn.sample_excess(int(left.sum()), 2, source)  # Z ≤ −3 mirrored
    assert fit(values, drawn.law) > ALPHA


def test_hits_that_all_but_never_happen():
    """Floors far beyond any noise cost nothing and give no hits."""
    for tau in (10, 100, 10**6, 10**15):
        assert (
            sampler(1).sample_skips(2**63 - 1 if tau > 10 else 1000, tau, InsecureSeededEntropy(8)).size == 0
        )
    assert sampler(1).sample_skips(0, 3).size == 0


@pytest.mark.slow
def test_a_floor_at_a_wide_scale():
    """At scale 10^5 the probability is a sum of a million and a half integers: it takes a second, and is right."""
    law = DiscreteGaussian(10**5)
    hits = sampler(10**5).sample_skips(10**7, 3 * 10**5, InsecureSeededEntropy(1))
    assert stats.binomtest(hits.size, 10**7, float(law.survival(3 * 10**5))).pvalue > ALPHA


# Others, and input


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 7.5, 66.0])
def test_samples_agree_with_opendp(scale):
    """A hundred thousand of OpenDP's draws and a million of ours look alike."""
    ours = sampler(Fraction(scale)).sample(1_000_000, InsecureSeededEntropy(11))
    theirs = sample_opendp(DiscreteGaussian(Fraction(scale)), 100_000)
    low = min(ours.min(), theirs.min())
    reach = int(max(ours.max(), theirs.max()) - low + 1)
    table = np.array([np.bincount(x - low, minlength=reach) for x in (ours, theirs)])
    full = table[:, table.sum(axis=0) >= 100]
    rest = table.sum(axis=1, keepdims=True) - full.sum(axis=1, keepdims=True)
    assert stats.chi2_contingency(np.hstack([full, rest + 1])).pvalue > ALPHA


def test_the_law_finds_its_sampler():
    """By name, with the scale as it is: a float's too."""
    law = noise_distribution("gaussian", Fraction(7, 3))
    assert sampler_of(law) == GaussianSampler(Fraction(7, 3))
    assert sampler_of(law).law == law
