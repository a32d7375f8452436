"""Numbers as people write them are kept exactly, and what is no number is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from cbdp.errors import InputError
from cbdp.privacy.numbers import exact, exact_fraction, positive, probability


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
