"""Certified digits against decimal arithmetic with 400 digits."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbdp.measuring.exact_sampling import (
    Enclosure,
    Thresholds,
    _exp_series,
    exp_minus,
    powers_of_exp,
    powers_of_real,
)

EXACT = decimal.Context(prec=400, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def decimal_exp(x):
    return EXACT.exp(EXACT.divide(Decimal(-x.numerator), Decimal(x.denominator)))


def decimal_floor(x, bits):
    return int(EXACT.multiply(x, Decimal(2**bits)).to_integral_value(decimal.ROUND_FLOOR))


@given(st.fractions(min_value=0, max_value=300, max_denominator=10**12), st.integers(8, 400))
@settings(max_examples=200, deadline=None)
def test_enclosures_of_exp_hold_the_true_value_and_are_narrow(x, bits):
    """Decimal arithmetic with 400 digits finds exp(−x) inside every enclosure."""
    found = exp_minus(x, bits)
    truth = Fraction(decimal_exp(x)) * 2**bits
    slack = Fraction(1, 10**200)  # the decimal value may itself be off by its last digit
    assert found.lo - slack <= truth <= found.hi + slack
    assert found.hi - found.lo <= 2


@pytest.mark.slow
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
        sharp = exp_minus(n * rate, bits)
        return Enclosure(max(0, sharp.lo - 2**100), min(2**bits, sharp.hi + 2**100), bits)

    for shape in ({"count": 20, "signed": True}, {"count": 20}, {"count": 19, "width": 20}):
        fuzzy, sharp = (Thresholds(power, 1, **shape) for power in (blurred, powers_of_exp(rate)))
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
    table = Thresholds(powers_of_exp(rate), **shape)
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
    squared = powers_of_real(lambda bits: exp_minus(rate, bits))
    for n in (0, 1, 2, 3, 1000, 2**20 + 1, 2**40):
        a, b = squared(n, 128), exp_minus(n * rate, 128)
        assert max(a.lo, b.lo) <= min(a.hi, b.hi)
        assert a.hi - a.lo <= 2


# Ties
