"""Noise distributions as public mathematics: mass, tails, variance, quantiles, cost. One file for each family; samplers are in measuring/.

Whoever needs to know about noise asks its distribution, and assumes none.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats
from cbdp.errors import InputError
from cbdp.parts import Parts, subclass_of
from cbdp.privacy.unit import Sensitivity

PrivacyMeasure = Literal["epsilon", "rho"]
MIN_SCALE = 1e-300  # stands for a scale of 0, so that it can be divided by
CONVOLVED_COLUMNS = (
    512  # columns of a lattice that are blurred at a time: the matrix of shifted masses stays small
)
MIN_VARIANCE = (
    1e-100  # square trips; the variance of noise too small to speak of, so that it can be divided by
)


@dataclass(frozen=True)
class NoiseDistribution(ABC):
    """Symmetric noise Z on a count. `scale` sets its size.

    >>> from cbdp.privacy.noise import noise_distribution
    >>> law = noise_distribution("geometric", 2)
    >>> round(law.variance(), 2), law.half_width(0.95)
    (7.84, 6)
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""
    words: ClassVar[str] = ""  # how manifests state it
    whole: ClassVar[bool] = True  # whether Z is a whole number
    excess_kurtosis: ClassVar[float] = 3.0  # beyond the normal law's
    currency: ClassVar[PrivacyMeasure] = (
        "epsilon"  # what such noise is paid with: ε, or the ρ of zero-concentrated privacy
    )

    scale: Fraction | float

    def __post_init__(self) -> None:
        if not (self.scale >= 0 and math.isfinite(self.scale)):
            raise InputError(f"the noise scale is {self.scale!r}: give a finite number of at least 0")

    @classmethod
    def calibrate(cls, amount: Fraction, sensitivity: Sensitivity) -> Self:
        """Noise whose privacy cost at this sensitivity is at most `amount`: scale l1/ε (Dwork and others 2006, Proposition 1, on whole numbers).

        Proof: docs/proofs/geometric.md.
        """
        return cls(Fraction(sensitivity.l1) / amount)

    def cost(self, sensitivity: Sensitivity) -> Fraction:
        """The privacy cost of such noise at this sensitivity."""
        return Fraction(sensitivity.l1) / Fraction(self.scale)

    @classmethod
    def rate(cls, amount: Floats, sensitivity: Sensitivity) -> Floats:
        """One over the scale that these amounts buy; not exact."""
        return np.asarray(amount / sensitivity.l1)

    def times(self, factor: float) -> Self:
        """The same law with noise so many times as large."""
        return type(self)(float(self.scale) * factor)

    @property
    def size(self) -> float:
        """The scale as a number to divide by."""
        return max(float(self.scale), MIN_SCALE)

    @property
    def radius(self) -> float:
        """The s from which E exp(sZ) does not exist."""
        return 1 / self.size

    @abstractmethod
    def variance(self) -> float: ...

    @classmethod
    def precision(cls, rate: Floats) -> tuple[Floats, Floats]:
        """The inverse variance of noise of scale 1/rate, and its slope in the rate."""
        near = 1e-4 * rate

        def inverse(at: Floats) -> Floats:
            return np.array([1.0 / max(cls(1.0 / r).variance(), MIN_VARIANCE) for r in np.atleast_1d(at)])

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

        >>> from cbdp.privacy.noise import noise_distribution
        >>> [round(noise_distribution(name, 2).reaches(3), 4) for name in ("geometric", "rounded", "laplace")]
        [0.1389, 0.1433, 0.1116]
        >>> noise_distribution("geometric", 0).reaches(0), noise_distribution("geometric", 0).reaches(1)
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
        tail = np.exp(-spare) / np.asarray(many, dtype=float)
        high = np.full(tail.shape, 1e3 * math.sqrt(self.variance()) + 1)
        low = -high
        for _ in range(100):
            middle = (low + high) / 2
            exceeded = self.survival(middle) > tail
            low, high = np.where(exceeded, middle, low), np.where(exceeded, high, middle)
        return (low + high) / 2

    def shift(self, excess: Floats) -> Floats:
        """About the s at which E max(0, Z − s) is this: where noise on empty types adds up to so much for each."""
        reach = 60 * math.sqrt(self.variance()) + 1
        at = np.linspace(-reach, reach, 24_001)
        share = self.survival(at)
        pieces = np.append((share[1:] + share[:-1]) / 2 * np.diff(at), 0.0)
        mean = np.cumsum(pieces[::-1])[::-1]  # E max(0, Z − s) is the integral of P(Z > t) over t > s
        target = np.asarray(excess, dtype=float)
        return np.where(target > mean[0], -target, np.interp(-target, -mean, at))

    def falloff(self, at: Any) -> Floats:
        """About how far below these heights e times as many noises lie above as above them."""
        return np.full(np.shape(at), self.size)

    def blurred(self, rows: Floats, step: int) -> Floats:
        """Laws on a lattice of this step (rows) after the noise was added.

        No Fourier transform: what is least likely would drown in its rounding errors, and outliers are judged by it.
        """
        wide = rows.shape[-1]
        up = self._mass(step * np.arange(wide), step)
        mass = np.concatenate([up[:0:-1], up])  # at −wide + 1 … wide − 1 steps
        convolved = np.empty(rows.shape)
        for start in range(0, wide, CONVOLVED_COLUMNS):
            to = np.arange(start, min(start + CONVOLVED_COLUMNS, wide))
            convolved[:, to] = rows @ mass[wide - 1 + to - np.arange(wide)[:, None]]
        return convolved

    def _mass(self, at: NDArray[Any], step: int) -> Floats:
        """The probability of what is nearest to these points of a lattice; what lies between two is shared evenly."""
        if step == 1:
            return self.pmf(at)
        if not self.whole:
            return self.survival(at - step / 2) - self.survival(at + step / 2)
        more, less = step // 2, (step - 1) // 2
        one = self.survival(at - less - 1) - self.survival(at + more)
        other = self.survival(at - more - 1) - self.survival(at + less)
        return np.asarray((one + other) / 2)


# The table


NOISE_DISTRIBUTIONS: Parts[type[NoiseDistribution]] = Parts(
    "noise law",
    "cbdp.laws",
    {
        "geometric": "cbdp.privacy.noise.laplace:DiscreteLaplace",
        "gaussian": "cbdp.privacy.noise.gaussian:DiscreteGaussian",
        "rounded": "cbdp.privacy.noise.laplace:RoundedLaplace",
        "laplace": "cbdp.privacy.noise.laplace:ContinuousLaplace",
    },
    subclass_of(NoiseDistribution),
    base="cbdp.privacy.noise.NoiseDistribution",
)


def noise_distribution(name: str, scale: Fraction | float) -> NoiseDistribution:
    """The law of this name with this scale.

    >>> noise_distribution("geometric", 2).half_width(0.9)
    5
    """
    return NOISE_DISTRIBUTIONS.get(name)(scale)


def distribution_by_variance(scale: Fraction | float, variance: float | None) -> NoiseDistribution | None:
    """The law for whole counts that has this scale and variance; without a variance, the geometric one.

    >>> distribution_by_variance(2, noise_distribution("gaussian", 2).variance()).name
    'gaussian'
    """
    for name in ("geometric", "rounded", "gaussian"):
        law = noise_distribution(name, scale)
        if variance is None or abs(law.variance() - variance) <= 1e-6 * variance:
            return law
    return None


__all__ = ["NOISE_DISTRIBUTIONS", "NoiseDistribution", "distribution_by_variance", "noise_distribution"]
