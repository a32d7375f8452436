"""Certified pieces and sums of a bell against decimals of many digits, and coins that are exact to the last case."""

from __future__ import annotations

import decimal
import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from noise_fits import Recorder, Script
from scipy import stats

from cbdp.errors import InputError
from cbdp.measuring import exact_sampling
from cbdp.measuring.exact_sampling import compiled_on_use
from cbdp.measuring.samplers.gaussian import GaussianPieces, full_sum, tail_sum
from cbdp.privacy.entropy import InsecureSeededEntropy

MANY = decimal.Context(prec=500, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def exponential(x: Fraction) -> Decimal:
    return MANY.exp(MANY.divide(Decimal(-x.numerator), Decimal(x.denominator)))


def masses(pieces: GaussianPieces) -> list[Decimal]:
    """The weights of the pieces, straight from their definition."""
    with decimal.localcontext(MANY):
        made = []
        for h in range(pieces.blocks):
            square = (pieces.start + h * pieces.step) ** 2 - pieces.start**2
            often = (2 if pieces.signed else 1) - (pieces.skipped if h == 0 else 0)
            made += [exponential(square * pieces.rate)] * often
        end = (pieces.start + pieces.blocks * pieces.step) ** 2 - pieces.start**2
        beyond = exponential(end * pieces.rate) / (1 - exponential(pieces.ratio()))
        return [*made, beyond * (2 if pieces.signed else 1)]


CASES = [
    GaussianPieces(Fraction(1, 2), 0, 1, 9, signed=True),
    GaussianPieces(Fraction(1, 18), 0, 1, 20, signed=True),
    GaussianPieces(Fraction(7, 2000), 5, 4, 30),
    GaussianPieces(Fraction(1, 10**10), 1000, 2**10, 80),
    GaussianPieces(Fraction(3), 40, 1, 3),
    GaussianPieces(Fraction(1, 10**6), 0, 16, 90, signed=True),
]


@pytest.mark.parametrize("pieces", CASES, ids=str)
@pytest.mark.parametrize("bits", [8, 64, 300])
def test_thresholds_are_the_shares_of_the_pieces(pieces, bits):
    """Every threshold's first bits are those of decimals with 500 digits, in the table and one by one."""
    with decimal.localcontext(MANY):
        each = masses(pieces)
        total, told, so_far = sum(each), [], Decimal(0)
        for mass in each[:-1]:
            so_far += mass
            told.append(int((so_far / total * 2**bits).to_integral_value(decimal.ROUND_FLOOR)))
    assert pieces.prefixes(bits) == told
    assert len(told) == pieces.count
    assert [pieces.prefix(i, bits) for i in (0, pieces.count - 1)] == [told[0], told[-1]]


@pytest.mark.parametrize(
    ("scale", "n"),
    [(Fraction(1, 3), 0), (1, 0), (1, 3), (Fraction(27, 10), 50), (40, 0), (40, 700), (2000, 10)],
)
def test_sums_are_enclosed(scale, n):
    """A sum lies between its ends, which are less than a unit of its 200th bit apart or two."""
    rate = 1 / (2 * Fraction(scale) ** 2)
    with decimal.localcontext(MANY):
        value, ratio, shrink = Decimal(1), exponential((2 * n + 1) * rate), exponential(2 * rate)
        total = Decimal(0)
        while value > Decimal(10) ** -110:
            total += value
            value, ratio = value * ratio, ratio * shrink
        found = tail_sum(rate, n, 200)
        assert found.lo <= total * 2**200 <= found.hi + Decimal("1e-20")
    assert found.hi - found.lo <= 2


def test_the_whole_is_that_of_poisson():
    """Σ exp(−z²/2σ²) is σ√2π (1 + 2 exp(−2π²σ²) + …)."""
    found = full_sum(Fraction(1, 18), 80)
    told = 3 * np.sqrt(2 * np.pi)
    assert found.lo / 2**80 == pytest.approx(told, rel=1e-15)
    assert found.hi - found.lo <= 8


def test_sums_too_long_are_refused():
    """A scale above a million takes too many terms: the error says what to do."""
    with pytest.raises(InputError, match="measure coarser features"):
        tail_sum(Fraction(1, 10**13), 0, 64)


# Coins


@pytest.mark.parametrize("bits", [8, 16, 64])
@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 10**6), Fraction(1, 7), Fraction(3, 2), Fraction(20)])
def test_coins_show_heads_as_often_as_they_should(x, bits):
    """Many coins of one kind, with words in which many are too near to tell by the first."""
    n, source = 200_000 if bits == 64 else 50_000, Recorder(1)
    shown = exact_sampling.bernoulli_exp(np.full(n, float(x)), lambda _: x, bits, source)
    chance = float(np.exp(-float(x)))
    assert stats.binomtest(int(shown.sum()), n, chance).pvalue > 1e-6
    assert bits > 8 or x == 0 or source.singles > n / 2**9


@pytest.mark.parametrize("x", [Fraction(1, 1000), Fraction(1, 3), Fraction(5)])
def test_every_pair_of_8_bit_words_decides_as_the_number_does(x):
    """All 65,536 pairs of words: heads where both ends are below exp(−x), tails where above, more words only in between."""
    sharp = int(MANY.multiply(exponential(x), Decimal(2**16)))
    for u, (first, second) in enumerate(itertools.product(range(256), repeat=2)):
        script = Script([first, second])
        try:
            shown = bool(exact_sampling.bernoulli_exp(np.array([float(x)]), lambda _: x, 8, script)[0])
        except EOFError:
            assert u == sharp
            continue
        assert shown == (u < sharp)
        assert script.rest or u != sharp


def test_a_wrong_float_changes_nothing():
    """Floats that are off by half a part in a million give the same coins: those they cannot tell are told by fractions."""
    x = Fraction(1, 3)
    right, off = (
        exact_sampling.bernoulli_exp(np.full(20_000, float(x) + d), lambda _: x, 16, InsecureSeededEntropy(2))
        for d in (0.0, 4e-7)
    )
    assert (right == off).all()


def test_the_compiled_judge_is_the_python_one():
    """The same verdicts, near the edge and far from it."""
    rng = np.random.default_rng(0)
    x = rng.exponential(1.0, 500)
    words = np.round(np.exp(-x) * 2**16 + rng.integers(-3, 4, 500)).clip(0, 2**16 - 1).astype(np.uint16)
    a, b = np.empty((2, 500), dtype=np.int8)
    assert (
        exact_sampling.compare_words(x, words, 2.0**16, a)
        == compiled_on_use(exact_sampling.compare_words)(x, words, 2.0**16, b)
        > 50
    )
    assert (a == b).all()
