"""A noisy answer to one feature query: what crosses the wall, from code that sees counts to code that does not (docs/explanation/wall.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats
from cbdp.errors import InputError
from cbdp.privacy.noise import NoiseDistribution, noise_distribution

EXACT_VARIANCE = (
    1e-4  # square trips; stands for no variance at all: a standard error of a hundredth of a trip
)
ALL_REVEALED_THRESHOLD = -(2**61)  # the floor of a cell of which every noisy count is revealed


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy counts of a feature's elements, with the scale or the variance of their noise.

    `values` has a number per element; with `elements`, a number for each of those only. `scale` is that of two-sided
    geometric noise, P(z) ∝ exp(−|z|/scale), or of another `law` by its name; for noise of an unknown law give its `variance` instead, one or one each.
    Neither is needed unless weights are by inverse variance or a feature is measured twice.

    Of `singleton` it may be known only which elements exceed a `floor` (an integer per cell of the features), and by
    how much: then `elements` are those, in ascending order.

    Counts that are public already are `exact`: they have no noise, and every estimate meets them. Where a variance is needed to weigh
    them, it is `EXACT_VARIANCE`.

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
    law: str = "geometric"  # of the noise that `scale` is the scale of
    exact: bool = False
    rho: Fraction | None = None  # what it cost, where its noise is paid for in ρ and not in ε

    @property
    def noise(self) -> NoiseDistribution | None:
        """The law of the noise, where its scale is known."""
        return None if self.scale is None else noise_distribution(self.law, self.scale)

    def __post_init__(self) -> None:
        values = _checked_values(self.values, f"measurement of {self.feature!r}")
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
                f"measurement of {self.feature!r}: elements are whole numbers, not {elements[0]!r}"
            )
        ascending = bool((elements[1:] > elements[:-1]).all())
        if not ascending and len(np.unique(elements)) < size:
            raise InputError(f"measurement of {self.feature!r} names an element twice: give two measurements")
        return elements.astype(np.int64)

    def _variance(self, size: int) -> Floats | None:
        if self.exact:
            return np.broadcast_to(EXACT_VARIANCE, (size,))
        if self.variance is None and self.scale is None:
            return None
        stated = self.scale if self.variance is None else self.variance
        what = "scale" if self.variance is None else "variance"
        try:
            numbers = np.broadcast_to(np.asarray(stated, dtype=float), (size,))
        except (TypeError, ValueError):
            raise InputError(
                f"measurement of {self.feature!r}: {what} {stated!r} does not fit {size} values: give one number, or one for each"
            ) from None
        if not (np.isfinite(numbers).all() and (numbers > 0).all()):
            raise InputError(f"measurement of {self.feature!r}: {what} {stated!r} must be above 0 and finite")
        if what == "variance":
            return numbers
        return (
            np.broadcast_to(noise_distribution(self.law, float(numbers[0])).variance(), (size,))
            if size
            else numbers
        )


def _checked_values(values: Any, what: str) -> NDArray[Any]:
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


class ThresholdedAnswer(Protocol):
    """Noisy counts of all trip types of a universe too large to list: those above a floor are known, and it may be lowered.

    This is the one question that post-processing may ask back across the wall; what it asked for becomes part of the
    measurement, so that the answer can be made again from what is published. With all floors at `ALL_REVEALED_THRESHOLD` every noisy count is
    revealed, and the measurement is one without floors.
    """

    floor: NDArray[np.int64]  # an integer per cell

    @property
    def noise(self) -> NoiseDistribution: ...

    def lower(self, floor: NDArray[np.int64]) -> None:
        """Reveal what exceeds these floors."""
        ...

    def measurement(self) -> Measurement:
        """What is known so far."""
        ...


NoisyAnswer = Measurement | ThresholdedAnswer


class PublishedThresholdedAnswer:
    """Noisy counts above their floors as they were published: no more can be asked for."""

    def __init__(self, published: Measurement) -> None:
        if published.floor is None or published.noise is None:
            raise InputError(f"the measurement of {published.feature!r} has no floors, or no noise scale")
        self._published = published
        self.floor: NDArray[np.int64] = published.floor

    @property
    def noise(self) -> NoiseDistribution:
        noise = self._published.noise
        assert noise is not None
        return noise

    def lower(self, floor: NDArray[np.int64]) -> None:
        """Nothing happens: what was not published cannot be asked for."""

    def measurement(self) -> Measurement:
        return self._published


def tables_and_leaves(answers: Sequence[NoisyAnswer]) -> tuple[list[Measurement], ThresholdedAnswer | None]:
    """The measurements, apart from the leaves of a universe that is not listed."""
    tables, leaves = [], None
    for answer in answers:
        if not isinstance(answer, Measurement):
            leaves = answer
        elif answer.floor is not None:
            leaves = PublishedThresholdedAnswer(answer)
        else:
            tables.append(answer)
    return tables, leaves


@dataclass(frozen=True)
class PlannedAnswer:
    """A noisy answer that a mechanism will give, before any data is seen: all of it is public."""

    feature: str
    share: Fraction  # what it costs: ε, or ρ where its law is paid for in ρ
    law: NoiseDistribution
    delta: Fraction = Fraction(0)
    threshold: float | None = None  # noisy counts below are not shown
