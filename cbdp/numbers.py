"""Numbers as people write them, kept exactly (ε, δ and scales are fractions), and as people read them: in pages, messages, tables and files. Whatever
says a number to somebody says it with these.

Where people read, bounds are rounded up, and a share that is not everything is never 100 %. What a program reads again is written exactly.
"""

from __future__ import annotations

import math
import numbers
import re
from decimal import Decimal
from fractions import Fraction

from cbdp.errors import InputError

# Written: kept exactly


MAX_DECIMAL_DIGITS = 1000  # digits before or after the point
MAX_NUMBER = Fraction(
    10**20
)  # no ε, ρ or scale is larger, nor smaller than its reciprocal; manifests hold up to 10³⁰
Number = int | float | str | Fraction | Decimal


def exact_number(value: Number, what: str = "epsilon") -> Fraction:
    """The number a person wrote: 0.1 is one tenth, not the float nearest to it.

    >>> exact_number(0.1), exact_number("1/3"), exact_number(2)
    (Fraction(1, 10), Fraction(1, 3), Fraction(2, 1))
    """
    if isinstance(value, bool):
        raise InputError(f"{what} is {value!r}, give a number")
    if _beyond_range(value):
        raise InputError(
            f"{what} is far out of all range: give a number with at most {MAX_DECIMAL_DIGITS} digits"
        )
    try:
        return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        comma = "; write decimals with a point" if isinstance(value, str) and "," in value else ""
        raise InputError(f"{what} is {value!r}, give a finite number{comma}") from None


def _beyond_range(value: object) -> bool:
    """Whether a number has more digits than anybody writes, before it is worked out: 1e999999999 would fill the memory."""
    if isinstance(value, str):
        powers = re.findall(r"[eE][-+]?([\d_]+)", value)
        return len(value) > MAX_DECIMAL_DIGITS or any(
            len(p) > 4 or int(p.strip("_") or 0) > MAX_DECIMAL_DIGITS for p in powers
        )
    if isinstance(value, Decimal):
        return value.is_finite() and (
            abs(value.adjusted()) > MAX_DECIMAL_DIGITS or len(value.as_tuple().digits) > MAX_DECIMAL_DIGITS
        )
    if isinstance(value, int):
        return value.bit_length() > 4 * MAX_DECIMAL_DIGITS
    return False


def positive(value: Number, what: str = "epsilon") -> Fraction:
    number = exact_number(value, what)
    if number <= 0:
        raise InputError(f"{what} is {value}, it must be above 0")
    if not 1 / MAX_NUMBER <= number <= MAX_NUMBER:
        raise InputError(
            f"{what} is {str(value)[:40]}, which is out of all range: give a number between 1e-20 and 1e20"
        )
    return number


def probability(value: Number, what: str = "delta") -> Fraction:
    number = exact_number(value, what)
    if not 0 <= number < 1:
        raise InputError(f"{what} is {value}, it must be at least 0 and below 1")
    return number


def exact_fraction(value: object) -> Fraction:
    """Convert a number to the fraction it is, to the last bit.

    >>> exact_fraction(0.1) == Fraction(1, 10), exact_fraction(0.25) == Fraction(1, 4)
    (False, True)
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Rational | float):
        raise InputError(f"{value!r} is not a finite number: give an int, a Fraction or a finite float")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{value!r} is not a finite number: give an int, a Fraction or a finite float")
        return Fraction(value)
    return Fraction(int(value.numerator), int(value.denominator))


# Read: in pages, messages, tables and files


MAX_PICTURABLE_EPSILON = 30  # beyond, e^ε has more than 13 digits, and nobody can picture it


def count_text(count: float) -> str:
    """A whole number with separators.

    >>> count_text(37709), count_text(10**18 + 1), count_text(2.4)
    ('37,709', '1,000,000,000,000,000,001', '2')
    """
    return f"{count:,}" if isinstance(count, int) else f"{count:,.0f}"


def number_text(value: float) -> str:
    """Whole numbers with separators, others with three digits.

    >>> number_text(37709), number_text(2.71828), number_text(22026.47), number_text(1e9)
    ('37,709', '2.72', '22,026', '1,000,000,000')
    """
    if value >= 1e15:
        return f"{value:.2e}"
    return f"{value:,.0f}" if value >= 100 or float(value).is_integer() else f"{value:.3g}"


def signed(value: float, digits: int = 0) -> str:
    """A change with its sign.

    >>> signed(1200), signed(-3), signed(0), signed(-0.25, 3), signed(0.0004, 3)
    ('+1,200', '−3', '0', '−0.250', '0')
    """
    return "0" if abs(value) < 0.5 * 10.0**-digits else f"{value:+,.{digits}f}".replace("-", "−")


def amount_text(amount: Fraction) -> str:
    """An ε or a ρ: a decimal where it is one, a fraction where that is short.

    >>> amount_text(Fraction(1, 5)), amount_text(Fraction(2)), amount_text(Fraction(1, 3))
    ('0.2', '2', '1/3 ≈ 0.3333')
    """
    amount, decimal = Fraction(amount), f"{float(amount):.4g}"  # a manifest may state a decimal alone
    if Fraction(decimal) == amount:
        return decimal
    short = f"{amount.numerator}/{amount.denominator}"
    return f"{short} ≈ {decimal}" if len(short) <= 12 else f"≈ {decimal}"


def factor_text(epsilon: float) -> str:
    """e^ε, as far as it can be written, rounded up: it is the most that may be.

    >>> factor_text(1), factor_text(0.1), factor_text(6)
    ('2.8', '1.11', '404')
    """
    if epsilon > MAX_PICTURABLE_EPSILON:
        return "more than 10 million million"
    value = math.exp(epsilon)
    digits = 0 if value >= 100 else 1 if value > 1.99 else 2
    up = math.ceil(value * 10**digits - 1e-9) / 10**digits
    return number_text(up) if not digits else f"{up:.{digits}f}"


# Shares and chances


def percent(share: float) -> str:
    """A share: small ones with two digits, and never 100 % for less than all.

    >>> percent(0.731), percent(0.011), percent(0.004), percent(0), percent(0.999), percent(2.75)
    ('73 %', '1.1 %', '0.4 %', '0 %', '99.9 %', '275 %')
    """
    value = 100 * share
    if 99 < value < 100:  # not everything
        return f"{min(math.floor(10 * value) / 10, 99.9)} %"
    return f"{value:,.0f} %" if value >= 10 else f"{value:.2g} %"


def percent_at_most(share: float) -> str:
    """A share that is not exceeded: rounded up.

    >>> percent_at_most(0.7311), percent_at_most(0.99995)
    ('73.2 %', '100 %')
    """
    return f"{math.ceil(1000 * share - 1e-9) / 10:g} %"


def confidence_text(confidence: float) -> str:
    """A confidence, as it was stated.

    >>> confidence_text(0.9), confidence_text(0.999)
    ('90 %', '99.9 %')
    """
    return f"{100 * confidence:g} %"


def signed_percent(first: float, second: float) -> str:
    """A change in percent of what was before.

    >>> signed_percent(200, 150), signed_percent(2, 90), signed_percent(0, 5)
    ('−25.0 %', '45 times', 'none before')
    """
    if first <= 0:
        return "none before"
    change = 100 * (second - first) / first
    return f"{change:+.1f} %".replace("-", "−") if abs(change) < 1000 else f"{second / first:.3g} times"


def probability_at_most(chance: float) -> str:
    """A small chance, rounded up.

    >>> probability_at_most(1e-6), probability_at_most(1.37e-5), probability_at_most(0.3)
    ('1e-06 (one in 1,000,000)', '1.4e-05 (one in 71,428)', '0.3 (one in 3)')
    """
    scale = 10.0 ** (math.floor(math.log10(chance)) - 1)
    up = math.ceil(chance / scale - 1e-9) * scale
    return f"{up:.2g} (one in {math.floor(1 / up + 1e-9):,})"
