"""What every law of noise can say about itself. Whoever needs to know about noise asks the law, and assumes none."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError

Floats = NDArray[np.float64]
LEAST_SCALE = 1e-300
LEAST_VARIANCE = 1e-100  # what is given to noise too small to speak of: it can be computed with


@dataclass(frozen=True)
class Law(ABC):
    """Symmetric noise Z on a count. `scale` sets its size."""

    name: ClassVar[str]
    about: ClassVar[str] = ""
    words: ClassVar[str] = ""  # how manifests state it
    whole: ClassVar[bool] = True  # is Z a whole number
    excess_kurtosis: ClassVar[float] = 3.0  # beyond the normal law's

    scale: Fraction | float

    def __post_init__(self) -> None:
        if not (self.scale >= 0 and math.isfinite(self.scale)):
            raise InputError(f"the noise scale is {self.scale!r}: give a finite number of at least 0")

    @classmethod
    def costing(cls, epsilon: Fraction, sensitivity: int) -> Self:
        """The law whose noise makes counts ε-differentially private that one unit changes by at most the sensitivity."""
        return cls(Fraction(sensitivity) / epsilon)

    def cost(self, sensitivity: int) -> Fraction:
        """The ε that such noise buys."""
        return Fraction(sensitivity) / Fraction(self.scale)

    def times(self, factor: float) -> Self:
        """The same law with noise so many times as large."""
        return type(self)(float(self.scale) * factor)

    @property
    def size(self) -> float:
        """The scale as a number to divide by."""
        return max(float(self.scale), LEAST_SCALE)

    @abstractmethod
    def variance(self) -> float: ...

    @classmethod
    def precision(cls, rate: Floats) -> tuple[Floats, Floats]:
        """The inverse variance of noise of scale 1/rate, and its slope in the rate."""
        near = 1e-4 * rate

        def inverse(at: Floats) -> Floats:
            return np.array([1.0 / max(cls(1.0 / r).variance(), LEAST_VARIANCE) for r in np.atleast_1d(at)])

        shape = np.shape(rate)
        value, slope = inverse(rate), (inverse(rate + near) - inverse(rate - near)) / np.atleast_1d(2 * near)
        return value.reshape(shape), slope.reshape(shape)

    @abstractmethod
    def log_pmf(self, z: Any) -> Floats:
        """The logarithm of P(Z = z), or of the density."""

    @abstractmethod
    def survival(self, t: Any) -> Floats:
        """P(Z > t)."""

    @abstractmethod
    def log_cdf(self, t: Any) -> Floats:
        """The logarithm of P(Z ≤ t)."""

    @abstractmethod
    def mean_size(self) -> float:
        """E |Z|."""

    @abstractmethod
    def transform(self, t: Floats) -> Floats:
        """The characteristic function, which is real because the law is symmetric."""

    @abstractmethod
    def log_moment(self, s: Floats) -> Floats:
        """The logarithm of E exp(s Z); infinite where it does not exist."""

    def pmf(self, z: Any) -> Floats:
        """P(Z = z)."""
        return np.exp(self.log_pmf(z))

    def reaches(self, t: float) -> float:
        """P(Z ≥ t). Of a scale of 0 there is no noise: Z is 0.

        >>> from cbdp.privacy.laws import law_of
        >>> [round(law_of(name, 2).reaches(3), 4) for name in ("geometric", "rounded", "laplace")]
        [0.1389, 0.1433, 0.1116]
        >>> law_of("geometric", 0).reaches(0), law_of("geometric", 0).reaches(1)
        (1.0, 0.0)
        """
        if not self.scale:
            return float(t <= 0)
        return float(self.survival(math.ceil(t - 1e-9) - 1 if self.whole else t))

    def log_pmf_of_sum(self, many: int, z: Floats) -> Floats | None:  # noqa: ARG002
        """As `log_pmf`, of the sum of so many independent noises; None where no closed form is known."""
        return None

    def half_width(self, confidence: float) -> int:
        """The smallest whole k with P(|Z| ≤ k) ≥ confidence."""
        if not 0 < confidence < 1:
            raise InputError(f"the confidence must lie strictly between 0 and 1, not {confidence!r}")
        k = self._half_width_below(confidence)
        while 2 * float(self.survival(k)) > 1 - confidence:
            k += 1
        return k

    def _half_width_below(self, confidence: float) -> int:
        """A whole number at or below the half width, from which it is searched."""
        low, high = 0, 1
        while 2 * float(self.survival(high)) > 1 - confidence:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if 2 * float(self.survival(middle)) > 1 - confidence else (low, middle)
        return low

    def extreme(self, many: Any, spare: float) -> Any:
        """About what the largest of so many noises exceeds with probability exp(−spare)."""
        wanted = np.exp(-spare) / np.asarray(many, dtype=float)
        return np.vectorize(lambda p: self._level(lambda t: float(self.survival(t)), p))(wanted)

    def shift(self, excess: Floats) -> Floats:
        """About the s at which E max(0, Z − s) is this: where noise on empty types adds up to so much for each."""
        find = np.vectorize(lambda e: self._level(self._mean_excess, e))
        return np.asarray(find(np.asarray(excess, dtype=float)), dtype=float)

    def _mean_excess(self, s: float) -> float:
        far = max(s, 0.0) + 60 * math.sqrt(self.variance())
        at = np.linspace(s, far, 4001)
        return float(np.trapezoid(self.survival(at), at))

    def _level(self, falls: Any, wanted: float) -> float:
        """Where a falling function takes a value, by bisection."""
        low, high = -1e3 * math.sqrt(self.variance()) - 1, 1e3 * math.sqrt(self.variance()) + 1
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if falls(middle) > wanted else (low, middle)
        return (low + high) / 2

    def blurred(self, rows: Floats, step: int) -> Floats:
        """Laws on a lattice of this step (rows) after the noise was added."""
        from scipy.signal import fftconvolve

        wide = rows.shape[-1]
        at = step * np.arange(-wide + 1, wide)
        mass = self.survival(at - step / 2) - self.survival(at + step / 2) if step > 1 else self.pmf(at)
        made: Floats = fftconvolve(rows, mass[None, :], axes=-1)[:, wide - 1 : 2 * wide - 1]
        return np.maximum(made, 0.0)
