"""What samplers of certified tables refuse, and what they make of nothing: the same for every law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from cbdp.errors import InputError
from cbdp.measuring.samplers.gaussian import GaussianSampler
from cbdp.measuring.samplers.laplace import GeometricSampler, RoundedSampler

Kind = type[GeometricSampler] | type[GaussianSampler]


@pytest.fixture(params=[GeometricSampler, GaussianSampler], ids=["geometric", "gaussian"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.mark.parametrize("scale", [0, -1, Fraction(-1, 3), 10**16, 0.5, math.nan, math.inf, "1", True, None])
def test_bad_scale_is_named(kind: Kind, scale: object) -> None:
    """A scale that is not a positive int or Fraction within reach is refused by name."""
    with pytest.raises(InputError, match="scale"):
        kind(scale)  # type: ignore[arg-type]


def test_numpy_integers_serve_as_sizes_and_bounds(kind: Kind) -> None:
    """Sizes and bounds that come out of arrays are computed with as Python's integers, without overflow."""
    n, lo, hi = np.array([1000, -5, 7])
    values = kind(Fraction(10**9, 7)).sample_band(n, lo, hi)
    assert values.size == 1000
    assert values.min() > -5
    assert values.max() <= 7
    assert kind(Fraction(1)).sample_skips(n, hi).size < 100


@pytest.mark.parametrize("n", [-1, 2**63, 1.0, "3", True])
def test_bad_size_is_named(kind: Kind, n: object) -> None:
    """A number of samples or positions that is none is refused by value."""
    one = kind(Fraction(1))
    for call in (one.sample, lambda n: one.sample_skips(n, 3), lambda n: one.sample_band(n, 0, 3)):
        with pytest.raises(InputError, match=r"number of values .*not"):
            call(n)  # type: ignore[arg-type]


def test_bad_options_are_named(kind: Kind) -> None:
    """Bad word sizes and bands are refused, with what to do."""
    one = kind(Fraction(1))
    with pytest.raises(InputError, match="word_bits"):
        kind(Fraction(1), word_bits=12)
    with pytest.raises(InputError, match="3 < z ≤ 3"):
        one.sample_band(1, 3, 3)
    with pytest.raises(InputError, match="bound"):
        one.sample_excess(1, 2**62)
    with pytest.raises(InputError, match="bound"):
        one.sample_band(1, 0, 1.5)  # type: ignore[arg-type]


def test_no_samples_is_an_empty_array(kind: Kind) -> None:
    """Zero samples are an empty int64 array from every method."""
    some = kind(Fraction(1)), kind(Fraction(10**9))
    made = [e for s in some for e in (s.sample(0), s.sample_excess(0, -3), s.sample_band(0, -3, 3))]
    for empty in (*made, RoundedSampler(1).sample(0), RoundedSampler(1).sample_excess(0, 3)):
        assert (empty.size, empty.dtype) == (0, np.int64)
