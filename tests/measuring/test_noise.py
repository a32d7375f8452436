"""The exact sampler against its law, against certified digits computed another way, and against OpenDP."""

from __future__ import annotations

import decimal
import itertools
import math
import os
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cbdp.errors import InputError
from cbdp.measuring import noise
from cbdp.measuring import tables as _tables
from cbdp.measuring.samplers.geometric import GeometricSampler
from cbdp.measuring.thresholds import Enclosure, Thresholds, _exp_series, exp_neg, exp_power, real_power
from cbdp.privacy.entropy import InsecureSeededEntropy, SystemEntropy
from cbdp.privacy.numbers import exact_fraction

ALPHA = 1e-7
EXACT = decimal.Context(prec=400, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


class Recorder:
    """Seeded words that remember how many single words were asked for: only the breaking of ties does that often."""

    secure = False

    def __init__(self, seed):
        self.source, self.singles = InsecureSeededEntropy(seed), 0

    def words(self, n, bits):
        self.singles += n == 1
        return self.source.words(n, bits)


class Script:
    """The given words, in order; running out is an error of its own."""

    secure = False

    def __init__(self, words):
        self.rest = list(words)

    def words(self, n, bits):
        if n > len(self.rest):
            raise EOFError
        taken, self.rest = self.rest[:n], self.rest[n:]
        return np.array(taken, dtype=f"u{bits // 8}")


def law(scale, **options):
    return GeometricSampler(Fraction(scale), **options)


def p_value(observed, expected, least=20.0):
    """Chi-square fit of counts to expected counts, neighbouring bins merged until each expects at least `least`."""
    sums, start, total = [], 0, 0.0
    for i, value in enumerate(expected):
        total += value
        if total >= least:
            sums.append(start)
            start, total = i + 1, 0.0
    assert len(sums) > 1, "one bin tests nothing"
    # What is left over joins the last bin: reduceat sums to the end.
    o, e = np.add.reduceat(observed, sums), np.add.reduceat(expected, sums)
    return float(stats.chi2.sf(((o - e) ** 2 / e).sum(), len(sums) - 1))


def fit(values, distribution, given_above=None, given_at_most=None):
    """P-value of values under the law, given a band, in bins of about a fifteenth of the scale or band."""
    band = math.inf if given_above is None or given_at_most is None else given_at_most - given_above
    step = max(1, round(min(float(distribution.scale), band) / 15))
    edges = np.arange(-400, 401) * step
    if given_above is not None:
        edges = np.concatenate([[given_above], edges[edges > given_above]])
    if given_at_most is not None:
        edges = np.concatenate([edges[edges < given_at_most], [given_at_most]])
    above = distribution.survival(edges)
    if given_above is None:
        above = np.concatenate([[1.0], above])
    if given_at_most is None:
        above = np.concatenate([above, [0.0]])
    expected = -np.diff(above) / (above[0] - above[-1]) * values.size
    inner = edges[1:] if given_above is not None else edges
    inner = inner[:-1] if given_at_most is not None else inner
    observed = np.bincount(np.searchsorted(inner, values, side="left"), minlength=expected.size)
    assert given_above is None or values.min() > given_above
    assert given_at_most is None or values.max() <= given_at_most
    return p_value(observed, expected)


def fit_residues(values, distribution, modulus):
    """P-value of the values modulo a small number, which feels the lowest digits of a large scale."""
    r = math.exp(-1 / distribution.scale)
    j = np.arange(modulus)
    weights = (r**j + r ** (modulus - j)) * 1.0  # the residue j: j, j + m, … and j − m, j − 2m, …
    expected = weights / weights.sum() * values.size
    return p_value(np.bincount(values % modulus, minlength=modulus), expected)


# The law


@pytest.mark.parametrize("scale", [1, 2, 3, 7, 10, 500, 10**5])
def test_samples_fit_the_law(scale):
    """Three million draws pass a chi-square test at every scale."""
    values = law(scale).sample(3_000_000, InsecureSeededEntropy(scale))
    assert values.dtype == np.int64
    assert fit(values, law(scale)) > ALPHA


@pytest.mark.parametrize("scale", [Fraction(1, 8), Fraction(1, 3), Fraction(22, 7), Fraction(100001, 97)])
def test_fractional_and_small_scales_fit_the_law(scale):
    """Scales that are no integers, down to an eighth, are sampled as they are."""
    assert fit(law(scale).sample(1_000_000, InsecureSeededEntropy(5)), law(scale)) > ALPHA


@pytest.mark.parametrize("scale", [5_000, 10**6, 10**9, 10**12, 10**15])
def test_huge_scales_fit_the_law_in_high_and_low_digits(scale):
    """Scales far beyond one table are right in their bulk and in their lowest digits."""
    values = law(scale).sample(1_000_000, InsecureSeededEntropy(scale))
    assert fit(values, law(scale)) > ALPHA
    for modulus in (2, 97, 4096):
        assert fit_residues(values, law(scale), modulus) > ALPHA


def test_scale_of_a_twentieth_is_almost_always_zero():
    """At scale 1/20 a value other than zero has probability 4·10^-9, with 8-bit words as with long ones."""
    assert law(Fraction(1, 20)).pmf(1) == pytest.approx(math.exp(-20), rel=1e-8)
    for bits in (8, 64):
        assert not law(Fraction(1, 20), word_bits=bits).sample(100_000, InsecureSeededEntropy(5)).any()


def test_vanishing_scale_gives_only_zeros():
    """At scale 10^-9 no noise is ever seen, and nothing overflows on the way there."""
    tiny = law(Fraction(1, 10**9))
    assert not tiny.sample(10_000).any()
    assert (tiny.variance(), tiny.pmf(0), tiny.pmf(1), tiny.survival(0)) == (0.0, 1.0, 0.0, 0.0)


@pytest.mark.parametrize("scale", [3, Fraction(200, 3)])
def test_samples_agree_with_opendp(scale):
    """A hundred thousand of OpenDP's draws and a million of ours look alike."""
    ours = law(scale).sample(1_000_000, InsecureSeededEntropy(11))
    theirs = law(scale).sample(100_000, backend="opendp")
    reach = int(theirs.max(initial=ours.max()) - min(ours.min(), theirs.min()) + 1)
    low = min(ours.min(), theirs.min())
    table = np.array([np.bincount(x - low, minlength=reach) for x in (ours, theirs)])
    full = table[:, table.sum(axis=0) >= 100]
    rest = table.sum(axis=1, keepdims=True) - full.sum(axis=1, keepdims=True)
    assert stats.chi2_contingency(np.hstack([full, rest + 1])).pvalue > ALPHA


@given(st.fractions(min_value=Fraction(1, 50), max_value=40))
@settings(max_examples=60, deadline=None)
def test_probabilities_sum_to_one_and_survival_adds_them_up(scale):
    """P(z) sums to one, P(Z > t) is the sum of P(z) above t, and the variance is the second moment."""
    z = np.arange(-2000, 2001)
    distribution = law(scale)
    p = distribution.pmf(z)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    tails = p[::-1].cumsum()[::-1]
    assert np.allclose(distribution.survival(z[:-1]), tails[1:], rtol=1e-9, atol=1e-15)
    assert (p * z.astype(float) ** 2).sum() == pytest.approx(distribution.variance(), rel=1e-9, abs=1e-300)


@given(st.fractions(min_value=Fraction(1, 50), max_value=1000), st.floats(0.01, 0.999999))
@settings(max_examples=100, deadline=None)
def test_half_width_is_the_smallest_that_covers(scale, confidence):
    """P(|Z| ≤ k) reaches the confidence at k = half_width and not before."""
    distribution = law(scale)
    k = distribution.half_width(confidence)
    assert 1 - 2 * distribution.survival(k) >= confidence - 1e-12
    assert k == 0 or 1 - 2 * distribution.survival(k - 1) < confidence + 1e-12


def test_survival_keeps_its_digits_far_out():
    """P(Z > 600) at scale 1 is right to twelve digits although it is 10^-261."""
    truth = EXACT.divide(EXACT.exp(Decimal(-601)), 1 + EXACT.exp(Decimal(-1)))
    assert law(1).survival(600) == pytest.approx(float(truth), rel=1e-12)
    assert law(1).survival(-1) == pytest.approx(1 - law(1).survival(0), rel=1e-15)


# Certified digits


def decimal_exp(x):
    return EXACT.exp(EXACT.divide(Decimal(-x.numerator), Decimal(x.denominator)))


def decimal_floor(x, bits):
    return int(EXACT.multiply(x, Decimal(2**bits)).to_integral_value(decimal.ROUND_FLOOR))


@given(st.fractions(min_value=0, max_value=300, max_denominator=10**12), st.integers(8, 400))
@settings(max_examples=200, deadline=None)
def test_enclosures_of_exp_hold_the_true_value_and_are_narrow(x, bits):
    """Decimal arithmetic with 400 digits finds exp(−x) inside every enclosure."""
    found = exp_neg(x, bits)
    truth = Fraction(decimal_exp(x)) * 2**bits
    slack = Fraction(1, 10**200)  # the decimal value may itself be off by its last digit
    assert found.lo - slack <= truth <= found.hi + slack
    assert found.hi - found.lo <= 2


@pytest.mark.parametrize("bits", [10, 16, 24])
def test_series_encloses_both_ends_of_its_argument(bits):
    """With so few bits that every rounding shows, exp(y) and exp(y + 1 unit) lie between the bounds."""
    for y in range(0, 2 ** (bits - 1) - 1, 2**bits // 500):
        found = _exp_series(y, bits)
        low, high = (1 / Fraction(decimal_exp(Fraction(end, 2**bits))) * 2**bits for end in (y, y + 1))
        assert found.lo <= low + Fraction(1, 10**200)
        assert high <= found.hi


def test_digits_in_doubt_are_computed_again_with_more_bits():
    """An enclosure that straddles a digit decides nothing, and thresholds ask for a sharper one until all is certain."""
    assert Enclosure(15, 16, 8).floor(4) is None
    assert Enclosure(16, 31, 8).floor(4) == 1
    assert Enclosure(240, 256, 8).floor(4) == 15  # below one by definition
    rate, asked = Fraction(1, 7), []

    def blurred(n, bits):
        asked.append(bits)
        sharp = exp_neg(n * rate, bits)
        return Enclosure(max(0, sharp.lo - 2**100), min(2**bits, sharp.hi + 2**100), bits)

    for shape in ({"count": 20, "signed": True}, {"count": 20}, {"count": 19, "width": 20}):
        fuzzy, sharp = (Thresholds(power, 1, **shape) for power in (blurred, exp_power(rate)))
        assert fuzzy.prefixes(64) == sharp.prefixes(64)
        assert [fuzzy.prefix(i, 64) for i in range(5)] == sharp.prefixes(64)[:5]
    assert max(asked) > 64 + 64


RATES = [Fraction(1), Fraction(1, 3), Fraction(7, 10), Fraction(20), Fraction(1, 500), Fraction(1, 10**6)]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("bits", [8, 64, 200])
@pytest.mark.parametrize(
    "shape",
    [
        {"step": 1, "count": 40, "signed": True},
        {"step": 4096, "count": 40, "signed": True},
        {"step": 3, "count": 40},
        {"step": 5, "count": 29, "width": 30},
    ],
)
def test_thresholds_agree_with_decimal_arithmetic(rate, bits, shape):
    """Every digit of every kind of threshold is what 400 decimal digits say."""
    table = Thresholds(exp_power(rate), **shape)
    r, R = decimal_exp(rate), decimal_exp(rate * table.step)

    def truth(i):
        with decimal.localcontext(EXACT):
            if table.signed:
                h, odd = divmod(i, 2)
                return 1 - (R ** (h + 1) if odd else R**h * (r + R) / (1 + r))
            whole = 1 if table.width is None else 1 - R**table.width
            return (1 - R ** (i + 1)) / whole

    expected = [min(decimal_floor(truth(i), bits), 2**bits - 1) for i in range(table.count)]
    assert table.prefixes(bits) == expected
    assert [table.prefix(i, bits) for i in range(table.count)] == expected


def test_powers_of_a_real_agree_with_powers_of_exp():
    """Repeated squaring of an enclosed number and exp of the multiple certify the same digits."""
    rate = Fraction(1, 10**6)
    squared = real_power(lambda bits: exp_neg(rate, bits))
    for n in (0, 1, 2, 3, 1000, 2**20 + 1, 2**40):
        a, b = squared(n, 128), exp_neg(n * rate, 128)
        assert max(a.lo, b.lo) <= min(a.hi, b.hi)
        assert a.hi - a.lo <= 2


# Ties


@pytest.mark.parametrize(("bits", "n"), [(8, 50_000), (16, 300_000), (32, 1_000_000)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), 1, 3, 10, 200, 5_000])
def test_short_words_keep_the_law(scale, bits, n):
    """With 8- and 16-bit words most or many draws are ties, and the law stays the same."""
    source = Recorder(3)
    values = law(scale, word_bits=bits).sample(n, source)
    assert fit(values, law(scale)) > ALPHA
    assert bits == 32 or source.singles > n / 2**bits


def test_ties_lead_beyond_the_table_and_on():
    """With 8-bit words the table is left through its last threshold, and values beyond it have the right law."""
    head = noise._signed(Fraction(3), 8).head
    end = head.count // 2
    assert head.prefixes[-1] == 255  # hence only a tie can go beyond
    values = law(3, word_bits=8).sample(60_000, InsecureSeededEntropy(8))
    assert np.abs(values).max() < end  # rare at its true size …
    short = _tables.Geometric(
        exp_power(Fraction(1, 3)),
        0,
        _tables.Table(Thresholds(exp_power(Fraction(1, 3)), 1, 4, signed=True), 8),
        True,
        None,
    )
    values = short.draw(100_000, InsecureSeededEntropy(9))
    beyond = np.abs(values) >= 2
    assert beyond.sum() > 10_000  # … but common with two magnitudes, where it must change nothing
    assert np.abs(values).max() > 20
    assert fit(values, law(3)) > ALPHA


def test_a_tie_with_the_last_threshold_can_go_either_way():
    """Words that follow the last threshold's digits and then exceed or undercut them end beyond or inside the table."""
    table = _tables.Table(Thresholds(exp_power(Fraction(1)), 1, 6, signed=True), 8)
    digits = table.thresholds.prefix(5, 40).to_bytes(5, "big")
    assert digits[-1] not in {0, 255}
    over, under = ([*digits[:-1], digits[-1] + d] for d in (1, -1))
    assert table.draw(1, Script(over)).tolist() == [6]
    assert table.draw(1, Script(under)).tolist() == [5]
    with pytest.raises(EOFError):
        table.draw(1, Script(digits))


@pytest.mark.parametrize("scale", [Fraction(1, 4), 1, 30])
def test_every_pair_of_8_bit_words_meets_the_right_piece(scale):
    """All 65,536 pairs of words give the piece that holds them, or ask for more exactly where a threshold lies inside."""
    table = noise._signed(Fraction(scale), 8).head
    sharp = np.array(table.thresholds.prefixes(16))
    for u, (first, second) in enumerate(itertools.product(range(256), repeat=2)):
        script = Script([first, second])
        try:
            outcome = int(table.draw(1, script)[0])
        except EOFError:
            assert u in sharp
            continue
        # A word that is no tie is decided without its second word.
        if len(script.rest) == 0:
            assert u not in sharp
        assert outcome == np.searchsorted(sharp, u)


@pytest.mark.parametrize("bits", [8, 64])
def test_compiled_look_up_is_the_python_one(bits):
    """The compiled look-up finds the same pieces and ties as its source run by Python, at every prefix and beside it."""
    table = noise._signed(Fraction(10), bits).head
    near = [int(p) + d for p in table.prefixes for d in (-1, 0, 1)]
    words = np.array([w for w in [0, 2**bits - 1, *near] if 0 <= w < 2**bits], dtype=f"u{bits // 8}")
    a, b = np.empty((2, words.size), dtype=np.int64)
    arguments = words, table.prefixes, table.guide, np.uint64(max(0, bits - 12))
    assert _tables.locate(*arguments, a) == _tables.compiled(_tables.locate)(*arguments, b) >= table.count
    assert (a == b).all()
    assert ((a == -1) == np.isin(words, table.prefixes)).all()


# Entropy


def test_system_entropy_is_the_default(monkeypatch):
    """A sample without a source asks the operating system for its words, and for all of them."""
    asked = []
    urandom = os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: asked.append(n) or urandom(n))
    law(1).sample(1000)
    assert sum(asked) >= 8000
    assert SystemEntropy().secure
    assert not InsecureSeededEntropy(0).secure


def test_insecure_source_repeats_and_differs_by_seed():
    """The same seed gives the same noise, another seed gives another."""
    a, b, c = (law(10).sample(1000, InsecureSeededEntropy(seed)) for seed in (1, 1, 2))
    assert (a == b).all()
    assert (a != c).any()
    assert (law(10).sample(1000) != law(10).sample(1000)).any()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_draw_different_noise():
    """Two children forked after a draw share no noise with each other or with their parent."""
    law(1000).sample(100)

    def draw_in_child():
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, law(1000).sample(100).tobytes())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            data = pipe.read()
        os.wait()
        return data

    drawn = {draw_in_child(), draw_in_child(), law(1000).sample(100).tobytes()}
    assert len(drawn) == 3
    assert all(len(data) == 800 for data in drawn)


# Conditional laws, for universes too large to enumerate


@pytest.mark.parametrize("word_bits", [16, 64])
@pytest.mark.parametrize(
    ("scale", "tau"), [(1, 4), (10, 0), (10, -1), (10, -2), (10, -25), (3000, 10_000), (10**6, -7)]
)
def test_excess_fits_the_conditional_law(scale, tau, word_bits):
    """Values given Z > tau have the law of Z restricted to them, on either side of zero."""
    n = 300_000 if word_bits == 64 else 30_000
    values = law(scale, word_bits=word_bits).sample_excess(n, tau, InsecureSeededEntropy(1))
    assert fit(values, law(scale), given_above=tau) > ALPHA


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
    values = law(scale, word_bits=word_bits).sample_band(n, lo, hi, InsecureSeededEntropy(2))
    if hi - lo == 1:
        assert (values == hi).all()
    else:
        assert fit(values, law(scale), given_above=lo, given_at_most=hi) > ALPHA


def test_narrow_band_at_a_huge_scale_is_found_at_once():
    """A band of eleven values around zero at scale 10^12 needs no luck."""
    values = law(10**12).sample_band(110_000, -6, 5, InsecureSeededEntropy(3))
    counts = np.bincount(values + 5, minlength=11)
    assert p_value(counts, np.full(11, 10_000.0)) > ALPHA


@pytest.mark.parametrize("word_bits", [16, 64])
@pytest.mark.parametrize(
    ("scale", "lo", "hi"), [(2, 5, None), (2, -4, None), (2, 5, 9), (2, -3, 4), (2, -6, -2), (20, 150, 170)]
)
def test_hits_have_independent_geometric_gaps(scale, lo, hi, word_bits):
    """The positions hit are those of independent trials with the band's probability."""
    distribution = law(scale, word_bits=word_bits)
    above = 0.0 if hi is None else distribution.survival(hi)
    p = (distribution.survival(lo) - above) / (1 - above)
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
    N, distribution, source = 2_000_000, law(4), InsecureSeededEntropy(6)
    values = np.full(N, np.iinfo(np.int64).max)
    high = distribution.sample_skips(N, 12, source)
    values[high] = distribution.sample_excess(high.size, 12, source)
    for lo, hi in ((5, 12), (-3, 5)):
        left = np.flatnonzero(values == np.iinfo(np.int64).max)
        hits = left[distribution.sample_band_hits(left.size, lo, hi, source)]
        values[hits] = distribution.sample_band(hits.size, lo, hi, source)
    left = values == np.iinfo(np.int64).max
    values[left] = -distribution.sample_excess(int(left.sum()), 2, source)  # Z ≤ −3 mirrored
    assert fit(values, distribution) > ALPHA
    assert fit(values[:500_000], distribution) > ALPHA


def test_hits_among_the_most_positions():
    """Among 2^63 − 1 positions a handful of hits is found, spread over all of them."""
    N, tau = 2**63 - 1, 35
    p = law(1).survival(tau)
    distribution, source = law(1), InsecureSeededEntropy(7)
    runs = [distribution.sample_skips(N, tau, source) for _ in range(20)]
    hits = np.concatenate(runs)
    assert stats.poisson.sf(hits.size, 20 * N * p) > ALPHA
    assert stats.poisson.cdf(hits.size, 20 * N * p) > ALPHA
    assert stats.kstest(hits / N, "uniform").pvalue > ALPHA
    assert all((np.diff(run) > 0).all() for run in runs)


def test_hits_that_all_but_never_happen():
    """Floors with probabilities down to exp(−10^15) cost nothing and give no hits."""
    for tau in (60, 100, 1000, 10**6, 10**15):
        assert law(1).sample_skips(2**63 - 1 if tau > 60 else 1000, tau, InsecureSeededEntropy(8)).size == 0
    assert law(1).sample_skips(0, 3).size == 0


def test_hits_beyond_saturated_gaps():
    """Gaps longer than 2^62 pass over positions without a hit and without an overflow."""
    out = np.empty(4, dtype=np.int64)
    limit, end = 2**62, 2**63 - 1
    assert _tables.walk(np.array([limit, 5, limit, 1]), 0, end, out) == (1, end)
    assert out[0] == limit + 5
    assert _tables.compiled(_tables.walk)(np.array([limit, 5, limit, 1]), 0, end, out) == (1, end)
    assert _tables.walk(np.array([2, 0, 3]), 10, 100, out) == (3, 18)
    assert out[:3].tolist() == [12, 13, 17]


# Input and backends


@pytest.mark.parametrize("scale", [0, -1, Fraction(-1, 3), 10**16, 0.5, math.nan, math.inf, "1", True, None])
def test_bad_scale_is_named(scale):
    """A scale that is not a positive int or Fraction within reach is refused by name."""
    with pytest.raises(InputError, match="scale"):
        GeometricSampler(scale)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", None, True])
def test_exact_fraction_refuses_what_is_no_finite_number(value):
    """Only finite numbers have a fraction."""
    with pytest.raises(InputError, match="finite"):
        exact_fraction(value)


def test_exact_fraction_is_exact():
    """Floats, ints, NumPy numbers and Fractions convert without rounding."""
    assert exact_fraction(0.1) == Fraction(3602879701896397, 2**55)
    assert exact_fraction(np.float64(0.5)) == Fraction(1, 2)
    found = exact_fraction(np.int64(3))
    assert found == 3
    assert type(found.numerator) is int
    assert exact_fraction(Fraction(1, 3)) == Fraction(1, 3)
    assert law(2) == GeometricSampler(np.int64(2))


def test_numpy_integers_serve_as_sizes_and_bounds():
    """Sizes and bounds that come out of arrays are computed with as Python's integers, without overflow."""
    n, lo, hi = np.array([1000, -5, 7])
    values = law(Fraction(10**9, 7)).sample_band(n, lo, hi)
    assert values.size == 1000
    assert values.min() > -5
    assert values.max() <= 7
    assert law(1).sample_skips(n, hi).size < 100


@pytest.mark.parametrize("n", [-1, 2**63, 1.0, "3", True])
def test_bad_size_is_named(n):
    """A number of samples or positions that is none is refused by value."""
    for call in (law(1).sample, lambda n: law(1).sample_skips(n, 3), lambda n: law(1).sample_band(n, 0, 3)):
        with pytest.raises(InputError, match=r"number of values .*not"):
            call(n)


def test_bad_options_are_named():
    """Bad word sizes, bands, confidences and backends are refused, with what to do."""
    with pytest.raises(InputError, match="word_bits"):
        law(1, word_bits=12)
    with pytest.raises(InputError, match="3 < z ≤ 3"):
        law(1).sample_band(1, 3, 3)
    with pytest.raises(InputError, match="bound"):
        law(1).sample_excess(1, 2**62)
    with pytest.raises(InputError, match="bound"):
        law(1).sample_band(1, 0, 1.5)
    with pytest.raises(InputError, match="confidence"):
        law(1).half_width(1)
    with pytest.raises(InputError, match="'opendp'"):
        law(1).sample(1, backend="numpy")
    with pytest.raises(InputError, match="own entropy"):
        law(1).sample(1, InsecureSeededEntropy(0), backend="opendp")


def test_missing_or_old_opendp_says_what_to_install(monkeypatch):
    """Without OpenDP, or with a version that samples wrongly, the error holds the install command."""
    for version in ("0.13.0", "0.14.1", "0.9"):
        with monkeypatch.context() as patch:
            patch.setattr("importlib.metadata.version", lambda _, version=version: version)
            with pytest.raises(InputError, match=rf"opendp {version} .*cbdp\[opendp\]"):
                law(1).sample(1, backend="opendp")
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(InputError, match=r"cbdp\[opendp\]"):
        law(1).sample(1, backend="opendp")


def test_no_samples_is_an_empty_array():
    """Zero samples are an empty int64 array from every method."""
    for empty in (
        law(1).sample(0),
        law(10**9).sample(0),
        law(1).sample(0, backend="opendp"),
        law(1).sample_excess(0, -3),
        law(1).sample_band(0, -3, 3),
    ):
        assert (empty.size, empty.dtype) == (0, np.int64)
