"""Numbers as people write them are kept exactly, and what is no number is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from cbdp.errors import InputError
from cbdp.numbers import exact_fraction, exact_number, positive, probability


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


def test_a_float_is_the_number_a_person_wrote() -> None:
    """Ten tenths are one, which is not so for floats."""
    assert sum([exact_number(0.1)] * 10) == 1
    assert sum([0.1] * 10) != 1
    assert exact_number("0.05") == Fraction(1, 20)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "much", None, True, "1/0"])
def test_what_is_not_a_number_is_refused(bad: object) -> None:
    """One clear error names the value."""
    with pytest.raises(InputError, match="epsilon is"):
        exact_number(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0, -1, "-0.5"])
def test_epsilon_is_above_zero(bad: object) -> None:
    """Nothing is private at ε ≤ 0."""
    with pytest.raises(InputError, match="must be above 0"):
        positive(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [1, -0.1, 2])
def test_delta_is_a_probability_below_one(bad: float) -> None:
    """At δ = 1 anything goes."""
    with pytest.raises(InputError, match="below 1"):
        probability(bad)
