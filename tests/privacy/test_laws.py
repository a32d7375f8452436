"""Laws of noise as mathematics, against independent oracles: sums, scipy, decimal arithmetic, OpenDP."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

EXACT = decimal.Context(prec=400, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


@given(st.fractions(min_value=Fraction(1, 50), max_value=40))
@settings(max_examples=60, deadline=None)
def test_probabilities_sum_to_one_and_survival_adds_them_up(scale):
    """P(z) sums to one, P(Z > t) is the sum of P(z) above t, and the variance is the second moment."""
    z = np.arange(-2000, 2001)
    distribution = Geometric(scale)
    p = distribution.pmf(z)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    tails = p[::-1].cumsum()[::-1]
    assert np.allclose(distribution.survival(z[:-1]), tails[1:], rtol=1e-9, atol=1e-15)
    assert (p * z.astype(float) ** 2).sum() == pytest.approx(distribution.variance(), rel=1e-9, abs=1e-300)


@given(st.fractions(min_value=Fraction(1, 50), max_value=1000), st.floats(0.01, 0.999999))
@settings(max_examples=100, deadline=None)
def test_half_width_is_the_smallest_that_covers(scale, confidence):
    """P(|Z| ≤ k) reaches the confidence at k = half_width and not before."""
    distribution = Geometric(scale)
    k = distribution.half_width(confidence)
    assert 1 - 2 * distribution.survival(k) >= confidence - 1e-12
    assert k == 0 or 1 - 2 * distribution.survival(k - 1) < confidence + 1e-12


def test_survival_keeps_its_digits_far_out():
    """P(Z > 600) at scale 1 is right to twelve digits although it is 10^-261."""
    truth = EXACT.divide(EXACT.exp(Decimal(-601)), 1 + EXACT.exp(Decimal(-1)))
    assert Geometric(1).survival(600) == pytest.approx(float(truth), rel=1e-12)
    assert Geometric(1).survival(-1) == pytest.approx(1 - Geometric(1).survival(0), rel=1e-15)


# Certified digits
