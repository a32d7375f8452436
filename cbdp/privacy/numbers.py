"""Numbers as people write them, kept exactly: ε, δ and scales are fractions."""

from __future__ import annotations

import math
import numbers
import re
from decimal import Decimal
from fractions import Fraction

from cbdp.errors import InputError

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
