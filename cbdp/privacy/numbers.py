"""Numbers as people write them, kept exactly: ε, δ and scales are fractions."""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from fractions import Fraction
from typing import Any

from cbdp.errors import InputError

Number = int | float | str | Fraction | Decimal


def exact(value: Number, what: str = "epsilon") -> Fraction:
    """The number a person wrote: 0.1 is one tenth, not the float nearest to it.

    >>> exact(0.1), exact("1/3"), exact(2)
    (Fraction(1, 10), Fraction(1, 3), Fraction(2, 1))
    """
    if isinstance(value, bool):
        raise InputError(f"{what} is {value!r}, give a number")
    try:
        return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        comma = "; write decimals with a point" if isinstance(value, str) and "," in value else ""
        raise InputError(f"{what} is {value!r}, give a finite number{comma}") from None


def positive(value: Number, what: str = "epsilon") -> Fraction:
    number = exact(value, what)
    if number <= 0:
        raise InputError(f"{what} is {value}, it must be above 0")
    return number


def probability(value: Number, what: str = "delta") -> Fraction:
    number = exact(value, what)
    if not 0 <= number < 1:
        raise InputError(f"{what} is {value}, it must be at least 0 and below 1")
    return number


def exact_fraction(value: Any) -> Fraction:
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
