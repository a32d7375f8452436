"""A noisy answer to one feature query: what crosses the wall."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError

Floats = NDArray[np.float64]

LEAST = 1e-100


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy counts of a feature's elements, with the scale or the variance of their noise.

    `values` has a number per element; with `elements`, a number for each of those only. `scale` is that of two-sided
    geometric noise, P(z) ∝ exp(−|z|/scale); for noise of another law give its `variance` instead, one or one each.
    Neither is needed unless weights are by inverse variance or a feature is measured twice.

    Of `singleton` it may be known only which elements exceed a `floor` (an integer per cell of the features), and by
    how much: then `elements` are those, in ascending order.

    >>> Measurement("zone", [4, -1, 0], scale=1).variance.round(3).tolist()
    [1.841, 1.841, 1.841]
    """

    feature: str
    values: NDArray[Any] = field(repr=False)
    scale: Fraction | float | None = None
    variance: Any = field(default=None, repr=False)
    elements: NDArray[np.int64] | None = field(default=None, repr=False)
    epsilon: Fraction | None = None
    floor: NDArray[np.int64] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        values = _numbers(self.values, f"measurement of {self.feature!r}")
        object.__setattr__(self, "values", values)
        if self.elements is not None:
            object.__setattr__(self, "elements", self._elements(len(values)))
        object.__setattr__(self, "variance", self._variance(len(values)))

    def _elements(self, size: int) -> NDArray[np.int64]:
        elements = np.asarray(self.elements)
        if elements.shape != (size,):
            raise InputError(
                f"measurement of {self.feature!r}: {size} values for elements of shape {elements.shape}"
            )
        if size and elements.dtype.kind not in "iu":
            raise InputError(
                f"measurement of {self.feature!r}: elements are numbered, {elements[0]!r} is no number of one"
            )
        ascending = bool((elements[1:] > elements[:-1]).all())
        if not ascending and len(np.unique(elements)) < size:
            raise InputError(f"measurement of {self.feature!r} names an element twice: give two measurements")
        return elements.astype(np.int64)

    def _variance(self, size: int) -> Floats | None:
        if self.variance is None and self.scale is None:
            return None
        given = self.scale if self.variance is None else self.variance
        what = "scale" if self.variance is None else "variance"
        try:
            numbers = np.broadcast_to(np.asarray(given, dtype=float), (size,))
        except (TypeError, ValueError):
            raise InputError(
                f"measurement of {self.feature!r}: {what} {given!r} is no number for {size} values"
            ) from None
        if not (np.isfinite(numbers).all() and (numbers > 0).all()):
            raise InputError(f"measurement of {self.feature!r}: {what} {given!r} must be above 0 and finite")
        if what == "variance":
            return numbers
        return np.full(size, geometric_variance(float(numbers[0]))) if size else numbers


def geometric_variance(scale: float) -> float:
    """The variance of two-sided geometric noise, 2q/(1−q)² with q = exp(−1/scale): near 2·scale² when it is large.

    Scales so small that there is no noise to speak of are given the least variance that can be computed with.
    """
    return max(LEAST, 0.5 / math.sinh(0.5 / scale) ** 2) if scale > 0.002 else LEAST


def _numbers(values: Any, what: str) -> NDArray[Any]:
    """Whole numbers as int64, others as float64; anything else is refused."""
    try:
        numbers = np.asarray(values)
        if numbers.dtype == object:
            numbers = numbers.astype(float)
    except (TypeError, ValueError) as wrong:
        raise InputError(f"{what}: the values are not numbers ({wrong})") from None
    if numbers.dtype.kind not in "iuf":
        raise InputError(f"{what}: the values (the first is {numbers.reshape(-1)[:1]}) are not numbers")
    if numbers.ndim != 1:
        raise InputError(f"{what}: values have shape {numbers.shape}, give one number per element")
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        place = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise InputError(f"{what}: value number {place} is {numbers[place]}, give finite numbers")
    whole = numbers.dtype.kind in "iu" and (numbers.dtype.kind == "i" or int(numbers.max(initial=0)) < 2**63)
    return numbers.astype(np.int64 if whole else np.float64, copy=False)
