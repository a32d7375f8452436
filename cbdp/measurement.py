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


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy counts of a feature's elements, with the scale or the variance of their noise.

    `values` has a number per element; with `elements`, a number for each of those only. `scale` is that of two-sided
    geometric noise, P(z) ∝ exp(−|z|/scale); for noise of another law give its `variance` instead, one or one each.
    Neither is needed unless weights are by inverse variance or a feature is measured twice.

    >>> Measurement("zone", [4, -1, 0], scale=1).variance.round(3).tolist()
    [1.841, 1.841, 1.841]
    """

    feature: str
    values: NDArray[Any] = field(repr=False)
    scale: Fraction | float | None = None
    variance: Any = field(default=None, repr=False)
    elements: NDArray[np.int64] | None = field(default=None, repr=False)
    epsilon: Fraction | None = None

    def __post_init__(self) -> None:
        values = _numbers(self.values, f"measurement of {self.feature!r}")
        object.__setattr__(self, "values", values)
        if self.elements is not None:
            elements = np.asarray(self.elements, dtype=np.int64)
            if elements.shape != values.shape:
                raise InputError(
                    f"measurement of {self.feature!r}: {len(values)} values for {len(elements)} elements"
                )
            if len(np.unique(elements)) < len(elements):
                raise InputError(
                    f"measurement of {self.feature!r} names an element twice: give two measurements"
                )
            object.__setattr__(self, "elements", elements)
        object.__setattr__(self, "variance", self._variance(len(values)))

    def _variance(self, size: int) -> Floats | None:
        if self.variance is None:
            if self.scale is None:
                return None
            if not (math.isfinite(self.scale) and self.scale > 0):
                raise InputError(f"measurement of {self.feature!r}: scale {self.scale} must be above 0")
            return np.full(size, geometric_variance(float(self.scale)))
        variance = np.broadcast_to(np.asarray(self.variance, dtype=float), (size,))
        if not (np.isfinite(variance).all() and (variance > 0).all()):
            raise InputError(f"measurement of {self.feature!r}: every variance must be a number above 0")
        return variance


def geometric_variance(scale: float) -> float:
    """The variance of two-sided geometric noise, 2q/(1−q)² with q = exp(−1/scale): near 2·scale² when it is large."""
    return 0.5 / math.sinh(0.5 / scale) ** 2 if scale > 1e-3 else 0.0


def _numbers(values: Any, what: str) -> NDArray[Any]:
    try:
        numbers = np.asarray(values)
        if numbers.dtype == object or numbers.dtype.kind not in "iuf":
            numbers = numbers.astype(float)
    except (TypeError, ValueError) as wrong:
        raise InputError(f"{what}: the values are not numbers ({wrong})") from None
    if numbers.ndim != 1:
        raise InputError(f"{what}: values have shape {numbers.shape}, give one number per element")
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        place = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise InputError(f"{what}: value number {place} is {numbers[place]}, give finite numbers")
    return numbers
