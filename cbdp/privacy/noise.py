"""Noise distributions as public mathematics: mass, tails, variance, quantiles, cost. Samplers are in measuring/.

Whoever needs to know about noise asks its distribution, and assumes none.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from cbdp.arrays import Floats, Ints
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
    @abstractmethod
    def calibrate(cls, amount: Fraction, sensitivity: Sensitivity) -> Self:
        """Noise whose privacy cost at this sensitivity is at most `amount`."""

    @abstractmethod
    def cost(self, sensitivity: Sensitivity) -> Fraction:
        """The privacy cost of such noise at this sensitivity. It needs a proof of its own: uniform noise has none at any scale."""

    @classmethod
    @abstractmethod
    def rate(cls, amount: Floats, sensitivity: Sensitivity) -> Floats:
        """One over the scale that these amounts buy; not exact."""

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
    def log_pmf(self, z: ArrayLike) -> Floats:
        """The logarithm of P(Z = z), or of the density."""

    @abstractmethod
    def survival(self, t: ArrayLike) -> Floats:
        """P(Z > t)."""

    @abstractmethod
    def log_cdf(self, t: ArrayLike) -> Floats:
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

    def pmf(self, z: ArrayLike) -> Floats:
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

    def extreme(self, many: ArrayLike, spare: float) -> Floats:
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

    def falloff(self, at: ArrayLike) -> Floats:
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

    def _mass(self, at: Floats | Ints, step: int) -> Floats:
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
        "geometric": "cbdp.privacy.noise:DiscreteLaplace",
        "gaussian": "cbdp.privacy.noise:DiscreteGaussian",
        "rounded": "cbdp.privacy.noise:RoundedLaplace",
        "laplace": "cbdp.privacy.noise:ContinuousLaplace",
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


# The Laplace family: discrete (two-sided geometric, as `scipy.stats.dlaplace`), rounded to whole numbers, and continuous


@dataclass(frozen=True)
class LaplaceFamily(NoiseDistribution):
    """Noise that costs l1/scale in pure ε: P(z) and P(z + 1) differ by a factor of exp(1/scale) at most, also where they are densities.

    So it is of Laplace noise on real or whole numbers, and of what is made of it: rounded, or with further noise added.
    """

    @classmethod
    def calibrate(cls, amount: Fraction, sensitivity: Sensitivity) -> Self:
        """Scale l1/ε (Dwork and others 2006, Proposition 1; on whole numbers Ghosh, Roughgarden and Sundararajan 2012).

        Proof: docs/proofs/geometric.md.
        """
        return cls(Fraction(sensitivity.l1) / amount)

    def cost(self, sensitivity: Sensitivity) -> Fraction:
        return Fraction(sensitivity.l1) / Fraction(self.scale)

    @classmethod
    def rate(cls, amount: Floats, sensitivity: Sensitivity) -> Floats:
        return np.asarray(amount / sensitivity.l1)


@dataclass(frozen=True)
class DiscreteLaplace(LaplaceFamily):
    """Two-sided geometric noise, the default: P(z) = (1 − r)/(1 + r) · r^|z| with r = exp(−1/scale). Pure ε-differential privacy for whole counts.

    As `scipy.stats.dlaplace(1/scale)`; the geometric mechanism of Ghosh, Roughgarden and Sundararajan (2012).

    Proof: docs/proofs/geometric.md.

    >>> round(DiscreteLaplace(1).variance(), 8), round(float(DiscreteLaplace(2).survival(-1) - DiscreteLaplace(2).survival(0)), 8)
    (1.84134719, 0.24491866)
    """

    name: ClassVar[str] = "geometric"
    about: ClassVar[str] = "two-sided geometric (discrete Laplace) noise on whole counts: pure ε"
    words: ClassVar[str] = "two-sided geometric (discrete Laplace): P(z) ∝ exp(−|z|/scale), sampled exactly"

    @property
    def decay(self) -> float:
        """r, the ratio of neighbouring probabilities."""
        return math.exp(-1 / self.size)

    def variance(self) -> float:
        """2r/(1−r)²: near 2·scale² when the scale is large, and 0 where there is no noise.

        >>> DiscreteLaplace(0).variance(), DiscreteLaplace(0.001).variance()
        (0.0, 1e-100)
        """
        scale = float(self.scale)
        if not scale:
            return 0.0
        return max(MIN_VARIANCE, 0.5 / math.sinh(0.5 / scale) ** 2) if scale > 0.002 else MIN_VARIANCE

    @classmethod
    def precision(cls, rate: Floats) -> tuple[Floats, Floats]:
        precision: Floats = np.maximum(2.0 * np.sinh(rate / 2.0) ** 2, np.finfo(float).tiny)
        return precision, np.sinh(rate)

    def log_pmf(self, z: ArrayLike) -> Floats:
        distance = np.abs(np.asarray(z, dtype=float))
        return np.asarray(math.log(math.tanh(0.5 / self.size)) - distance / self.size)

    def pmf(self, z: ArrayLike) -> Floats:
        return np.asarray(
            math.tanh(0.5 / self.size) * np.exp(-np.abs(np.asarray(z, dtype=float)) / self.size)
        )

    def survival(self, t: ArrayLike) -> Floats:
        at = np.asarray(t, dtype=float)
        outer = np.exp(-np.where(at < 0, -at, at + 1) / self.size) / (1 + self.decay)
        return np.where(at < 0, 1 - outer, outer)

    def log_cdf(self, t: ArrayLike) -> Floats:
        at = np.asarray(t, dtype=float)
        log_tail = -np.where(at < 0, -at, at + 1) / self.size - math.log1p(self.decay)
        return np.where(at < 0, log_tail, np.log1p(-np.exp(log_tail)))

    def mean_size(self) -> float:
        return 1 / math.sinh(1 / self.size) if self.size > 0.002 else 0.0

    def transform(self, t: Floats) -> Floats:
        r = self.decay
        return np.asarray((1 - r) ** 2 / ((1 - r) ** 2 + 4 * r * np.sin(t / 2) ** 2))

    def log_moment(self, s: Floats) -> Floats:
        if not self.scale:
            return np.zeros_like(s)
        r = self.decay
        with np.errstate(invalid="ignore", divide="ignore"):
            cumulant = np.log((1 - r) ** 2 / ((1 - r) ** 2 - 4 * r * np.sinh(s / 2) ** 2))
        return np.where(np.abs(s) * self.size < 1, cumulant, np.inf)

    def _half_width_below(self, confidence: float) -> int:
        guess = math.log(2 / (1 + self.decay) / (1 - confidence)) * self.size - 1
        return max(0, math.floor(guess) - 1)  # one below, so that rounding cannot skip the answer

    def extreme(self, many: ArrayLike, spare: float) -> Floats:
        return float(self.scale) * (np.log(many) + spare)

    def shift(self, excess: Floats) -> Floats:
        """Z exceeds s ≥ 0 by b/2 · exp(−s/b) on average, and s < 0 by b/2 − s or so."""
        scale = float(self.scale)
        sparse = np.maximum(2.0 * excess / scale, np.finfo(float).tiny)
        shift: Floats = scale * np.where(sparse < 1.0, -np.log(sparse), 0.5 * (1.0 - sparse))
        return shift

    def blurred(self, rows: Floats, step: int) -> Floats:
        """Two recursions, from either side."""
        from cbdp.privacy import convolution  # compiled code, which takes a while to load

        convolved: Floats = convolution.convolved(
            np.ascontiguousarray(rows), math.exp(-step / float(self.scale))
        )
        return convolved


@dataclass(frozen=True)
class RoundedLaplace(LaplaceFamily):
    """Laplace noise rounded to the nearest whole number, the papers' on counts: P(0) = 1 − exp(−1/2b), P(±k) = ½ exp(−(k − ½)/b) (1 − exp(−1/b)).

    Proof: docs/proofs/rounded.md.
    """

    name: ClassVar[str] = "rounded"
    about: ClassVar[str] = "Laplace noise rounded to whole numbers, as in the CBDP paper: pure ε"
    words: ClassVar[str] = "continuous Laplace noise of this scale, rounded to whole numbers; sampled exactly"

    def variance(self) -> float:
        """2 Σ (2k + 1) P(Z > k)."""
        if self.size < 0.002:
            return 0.0
        rate = 1.0 / float(self.scale)
        gap = -math.expm1(-rate)
        return math.exp(-rate / 2) * (1 + math.exp(-rate)) / gap**2

    def log_pmf(self, z: ArrayLike) -> Floats:
        rate, size = 1 / self.size, np.abs(np.asarray(z, dtype=float))
        outer = (
            math.log(math.sinh(rate / 2)) - size * rate if rate < 700 else -(size - 0.5) * rate - math.log(2)
        )
        return np.where(np.asarray(z) == 0, math.log(-math.expm1(-rate / 2)), outer)

    def survival(self, t: ArrayLike) -> Floats:
        at = np.asarray(t, dtype=float)
        outer = 0.5 * np.exp(-(np.where(at < 0, -at - 1, at) + 0.5) / self.size)
        return np.where(at < 0, 1 - outer, outer)

    def log_cdf(self, t: ArrayLike) -> Floats:
        at = np.asarray(t, dtype=float)
        log_tail = -(np.where(at < 0, -at, at + 1) - 0.5) / self.size - math.log(2)
        return np.where(at < 0, log_tail, np.log1p(-np.exp(log_tail)))

    def mean_size(self) -> float:
        return 0.5 / math.sinh(0.5 / self.size) if self.size > 0.002 else 0.0

    def transform(self, t: Floats) -> Floats:
        r = math.exp(-1 / self.size)
        if r == 0:
            return np.ones_like(t)
        below = (1 - r) ** 2 + 4 * r * np.sin(t / 2) ** 2  # 1 − 2r cos t + r², without cancellation
        return np.asarray(1 - math.sqrt(r) + (1 - r) / math.sqrt(r) * (r * np.cos(t) - r * r) / below)

    def log_moment(self, s: Floats) -> Floats:
        if not self.scale:
            return np.zeros_like(s)
        r = math.exp(-1 / self.size)
        root = math.sqrt(r) if r else 1.0
        with np.errstate(invalid="ignore", divide="ignore"):
            below = (1 - r) ** 2 - 4 * r * np.sinh(s / 2) ** 2
            cumulant = np.log(1 - root + (1 - r) / root * (r * np.cosh(s) - r * r) / below)
        return np.where(np.abs(s) * self.size < 1, cumulant, np.inf)

    def _half_width_below(self, confidence: float) -> int:
        return max(0, math.ceil(-math.log1p(-confidence) * self.size - 0.5) - 1)

    def extreme(self, many: ArrayLike, spare: float) -> Floats:
        return float(self.scale) * (np.log(many) + spare)


@dataclass(frozen=True)
class ContinuousLaplace(LaplaceFamily):
    """Density exp(−|z|/b) / 2b, as `scipy.stats.laplace(scale=b)`.

    Never drawn here, since its last bits reveal the count (Mironov 2012), but met in tables of others.
    """

    name: ClassVar[str] = "laplace"
    about: ClassVar[str] = "continuous Laplace noise, in tables that others have published"
    words: ClassVar[str] = "continuous Laplace noise of this scale"
    whole: ClassVar[bool] = False

    def variance(self) -> float:
        return 2 * float(self.scale) ** 2

    def log_pmf(self, z: ArrayLike) -> Floats:
        return np.asarray(-np.abs(np.asarray(z, dtype=float)) / self.size - math.log(2 * self.size))

    def survival(self, t: ArrayLike) -> Floats:
        at = np.asarray(t, dtype=float)
        outer = 0.5 * np.exp(-np.abs(at) / self.size)
        return np.asarray(np.where(at < 0, 1 - outer, outer))

    def log_cdf(self, t: ArrayLike) -> Floats:
        at = np.asarray(t, dtype=float)
        log_tail = -np.abs(at) / self.size - math.log(2)
        return np.asarray(np.where(at < 0, log_tail, np.log1p(-np.exp(log_tail))))

    def mean_size(self) -> float:
        return float(self.scale)

    def transform(self, t: Floats) -> Floats:
        return np.asarray(1.0 / (1.0 + (float(self.scale) * t) ** 2))

    def log_moment(self, s: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            cumulant = -np.log1p(-((float(self.scale) * s) ** 2))
        return np.where(np.abs(s) * float(self.scale) < 1, cumulant, np.inf)

    def log_pmf_of_sum(self, many: int, z: Floats) -> Floats:
        """The sum of n is symmetric variance-gamma: a Bessel function of order n − 1/2.

        >>> law, z = ContinuousLaplace(1.4), np.array([2.8])
        >>> bool(np.allclose(law.log_pmf_of_sum(3, z), np.log(13 * np.exp(-2) / 16 / 1.4)))  # (u² + 3u + 3) exp(−u)/16
        True
        """
        from scipy.special import gammaln, kve

        u = np.maximum(np.abs(z) / self.size, 1e-8)
        order = many - 0.5
        with np.errstate(over="ignore"):
            bessel = np.log(kve(order, u)) - u
        near = order * math.log(2) + gammaln(order) - math.log(2) - order * np.log(u)  # its limit at 0
        bessel = np.where(np.isfinite(bessel), bessel, near)
        scaled = order * np.log(u) + bessel - 0.5 * math.log(math.pi) - gammaln(many) - order * math.log(2)
        return np.asarray(scaled - math.log(self.size))


# Discrete Gaussian noise (Canonne, Kamath and Steinke 2020, Definition 1): P(z) ∝ exp(−z²/2σ²) on the whole numbers, with σ the scale.
#
# Sums over all z are theta functions. Where σ is small few terms matter; where it is large Poisson's summation formula turns them into
# Gaussian integrals with corrections of the order exp(−2π²σ²), so that every figure is right to the last digits at any scale.


MAX_SCALE_BY_TERMS = 1.0  # scales up to which sums are added up term by term, beyond by Poisson's formula
MIN_SCALE_PLAIN_VARIANCE = 3.0  # scales from which the variance is scale² to the last digit
MAX_TABULATED_SCALE = 4096.0  # scales up to which tails are kept in a table
TAIL_SCALES = 38.0  # scales from the middle, beyond which P(z) is hardly above the least float
DIRECT_TERMS = np.arange(-40, 41)  # more than matter where σ ≤ 1
POISSON_TERMS = np.arange(-3, 4)  # more than matter where σ ≥ 1
MIN_SIZE = 1e-150  # stands for a scale of 0: its square can still be divided by


@dataclass(frozen=True)
class DiscreteGaussian(NoiseDistribution):
    """Lighter tails than the geometric law's: cheaper where one person changes many counts by a little each.

    Proof: docs/proofs/gaussian.md.

    >>> round(DiscreteGaussian(1).variance(), 8), round(float(DiscreteGaussian(2).survival(0)), 8)
    (0.99999979, 0.40026443)
    """

    name: ClassVar[str] = "gaussian"
    about: ClassVar[str] = "discrete Gaussian noise on whole counts: ρ-zCDP, stated as (ε, δ) too"
    words: ClassVar[str] = "discrete Gaussian: P(z) ∝ exp(−z²/(2·scale²)), sampled exactly"
    excess_kurtosis: ClassVar[float] = 0.0
    currency: ClassVar[PrivacyMeasure] = "rho"

    @classmethod
    def calibrate(cls, amount: Fraction, sensitivity: Sensitivity) -> Self:
        """ρ = l2²/2σ² (Canonne, Kamath and Steinke 2020, Proposition 5), with σ rounded up to twelve digits: what files hold to the last one.

        >>> from cbdp.privacy.unit import sensitivity
        >>> from cbdp.privacy.unit import Trip
        >>> DiscreteGaussian.calibrate(Fraction(1, 8), sensitivity(Trip()))
        DiscreteGaussian(scale=Fraction(2, 1))
        """
        return cls(scale_rounded_up(Fraction(sensitivity.l2_squared) / (2 * amount)))

    def cost(self, sensitivity: Sensitivity) -> Fraction:
        return Fraction(sensitivity.l2_squared) / (2 * Fraction(self.scale) ** 2)

    @classmethod
    def rate(cls, amount: Floats, sensitivity: Sensitivity) -> Floats:
        return np.asarray(np.sqrt(2 * amount / sensitivity.l2_squared))

    @classmethod
    def precision(cls, rate: Floats) -> tuple[Floats, Floats]:
        """Of scale 1/rate: rate² or so, and exact where the scale is small."""
        at = np.asarray(rate, dtype=float)
        near = 1e-4 * at
        slope = (_gaussian_precision(at + near) - _gaussian_precision(at - near)) / (2 * near)
        return _gaussian_precision(at), slope

    @property
    def size(self) -> float:
        return max(float(self.scale), MIN_SIZE)

    @property
    def radius(self) -> float:
        """Infinite: tails are lighter than any exponential."""
        return math.inf

    def variance(self) -> float:
        """About scale² unless the scale is small, and 0 where there is no noise.

        >>> DiscreteGaussian(0).variance(), DiscreteGaussian(0.001).variance(), DiscreteGaussian(100).variance()
        (0.0, 1e-100, 10000.0)
        """
        if not self.scale:
            return 0.0
        return max(MIN_VARIANCE, _gaussian_variance(self.size))

    def log_pmf(self, z: ArrayLike) -> Floats:
        return np.asarray(-0.5 * (np.asarray(z, dtype=float) / self.size) ** 2 - _log_normalizer(self.size))

    def survival(self, t: ArrayLike) -> Floats:
        at = np.floor(np.asarray(t, dtype=float))
        outer = np.exp(_log_tail(self.size, np.where(at < 0, -at, at + 1)))
        return np.asarray(np.where(at < 0, 1 - outer, outer))

    def log_cdf(self, t: ArrayLike) -> Floats:
        at = np.floor(np.asarray(t, dtype=float))
        outer = _log_tail(self.size, np.where(at < 0, -at, at + 1))
        return np.asarray(np.where(at < 0, outer, np.log1p(-np.exp(outer))))

    def mean_size(self) -> float:
        return _mean_absolute(self.size)

    def transform(self, t: Floats) -> Floats:
        at, size = np.asarray(t, dtype=float), self.size
        if size <= MAX_SCALE_BY_TERMS:
            return np.asarray(np.cos(at[..., None] * DIRECT_TERMS) @ self.pmf(DIRECT_TERMS))
        near = at - 2 * math.pi * np.round(at / (2 * math.pi))  # it has this period
        waves = np.exp(-0.5 * (size * (near[..., None] - 2 * math.pi * POISSON_TERMS)) ** 2).sum(axis=-1)
        return np.asarray(waves / np.exp(-0.5 * (size * 2 * math.pi * POISSON_TERMS) ** 2).sum())

    def log_moment(self, s: Floats) -> Floats:
        """It exists everywhere: (sσ)²/2, and a wave that tells whether sσ² is near a whole number."""
        if not self.scale:
            return np.zeros_like(s)
        size = self.size
        middle = np.asarray(s, dtype=float) * size**2
        off = (middle - np.round(middle))[..., None]
        parabola = 0.5 * (np.asarray(s, dtype=float) * size) ** 2
        if size <= MAX_SCALE_BY_TERMS:
            from scipy.special import logsumexp

            return np.asarray(
                parabola
                + logsumexp(-0.5 * ((DIRECT_TERMS - off) / size) ** 2, axis=-1)
                - _log_normalizer(size)
            )
        waves = np.exp(-2 * (math.pi * size * POISSON_TERMS) ** 2)
        return np.asarray(
            parabola + np.log((np.cos(2 * math.pi * off * POISSON_TERMS) @ waves) / waves.sum())
        )

    def shift(self, excess: Floats) -> Floats:
        """By E max(0, Z − s) of the normal law, in scales, on a grid: it falls off so fast that its logarithm is followed."""
        from scipy.special import erfcx, log_ndtr

        at = np.linspace(-TAIL_SCALES, TAIL_SCALES, 8_001)
        tail = np.exp(log_ndtr(-at))
        # density − s·P(Z > s), where the two all but cancel far out: density · (1 − s · Mills' ratio)
        density = np.exp(-0.5 * at**2) / math.sqrt(2 * math.pi)
        mills = np.where(at > 5, math.sqrt(math.pi / 2) * erfcx(np.maximum(at, 0) / math.sqrt(2)), 0.0)
        mean = np.where(at > 5, density * (1 - at * mills), density - at * tail)
        target = np.asarray(excess, dtype=float) / self.size
        level = np.log(np.maximum(target, np.finfo(float).tiny))
        standardized = np.interp(-level, -np.log(np.maximum(mean, np.finfo(float).tiny)), at)
        return np.asarray(self.size * np.where(target > mean[0], -target, standardized))

    def falloff(self, at: ArrayLike) -> Floats:
        """σ²/at, from where that is less than σ; never less than a tenth of it."""
        height = np.maximum(np.asarray(at, dtype=float) / self.size, 1.0)
        return np.asarray(self.size * np.maximum(1 / height, 0.1))


def scale_rounded_up(square: Fraction, digits: int = 12) -> Fraction:
    """The least decimal number of so many digits whose square is at least this: a scale that files hold to the last digit.

    >>> float(scale_rounded_up(Fraction(2))), scale_rounded_up(Fraction(9, 4))
    (1.41421356238, Fraction(3, 2))
    """
    places = digits - 1 - math.floor(math.log10(float(square)) / 2)
    unit = Fraction(10) ** places
    scaled = square * unit**2
    root = math.isqrt(math.ceil(scaled))
    return Fraction(root if root**2 >= scaled else root + 1) / unit


def _log_normalizer(size: float) -> float:
    """The logarithm of Σ exp(−z²/2σ²)."""
    if size <= MAX_SCALE_BY_TERMS:
        return math.log(float(np.exp(-0.5 * (DIRECT_TERMS / size) ** 2).sum()))
    waves = np.exp(-2 * (math.pi * size * POISSON_TERMS) ** 2).sum()
    return math.log(size) + 0.5 * math.log(2 * math.pi) + math.log(float(waves))


def _gaussian_variance(size: float) -> float:
    if size <= MAX_SCALE_BY_TERMS:
        return float(
            np.exp(-0.5 * (DIRECT_TERMS / size) ** 2 - _log_normalizer(size))
            @ DIRECT_TERMS.astype(float) ** 2
        )
    if size > MIN_SCALE_PLAIN_VARIANCE:  # the wave is below the last digit
        return size**2
    waves = np.exp(-2 * (math.pi * size * POISSON_TERMS) ** 2)
    return float(
        size**2 - 4 * math.pi**2 * size**4 * (waves @ POISSON_TERMS.astype(float) ** 2) / waves.sum()
    )


def _gaussian_precision(rate: Floats) -> Floats:
    """The inverse variance of noise of scale 1/rate."""
    precision = rate**2
    small = (
        rate > 1 / MIN_SCALE_PLAIN_VARIANCE
    )  # there noise on whole numbers has another variance than noise on all
    square = DIRECT_TERMS.astype(float) ** 2
    weights = np.exp(-0.5 * np.minimum(rate[small][..., None], 1e100) ** 2 * square)
    with np.errstate(divide="ignore", under="ignore"):
        precision[small] = 1 / np.maximum((weights @ square) / weights.sum(axis=-1), MIN_VARIANCE)
    return np.asarray(precision)


def _mean_absolute(size: float) -> float:
    if size <= MAX_TABULATED_SCALE:
        z = np.arange(1.0, TAIL_SCALES * size + 2)
        return 2 * float(np.exp(-0.5 * (z / size) ** 2 - _log_normalizer(size)) @ z)
    # Euler and Maclaurin: Σ z exp(−z²/2σ²) over z ≥ 0 is σ² − 1/12 − …
    return 2 * (size**2 - 1 / 12) / math.exp(_log_normalizer(size))


def _log_tail(size: float, n: Floats) -> Floats:
    """The logarithm of P(Z ≥ n) for whole n ≥ 1."""
    beyond = _log_tail_asymptotic(size, np.maximum(n, TAIL_SCALES * size))
    near = n <= TAIL_SCALES * size
    if size <= MAX_TABULATED_SCALE:
        table = _tail_table(size)
        return np.where(near, table[np.where(near, n, 0).astype(np.int64)], beyond)
    return np.where(near, _log_tail_euler_maclaurin(size, np.where(near, n, 1.0)), beyond)


@lru_cache(maxsize=16)
def _tail_table(size: float) -> Floats:
    """The logarithm of P(Z ≥ n) for n = 0, 1, … to where the asymptotic series takes over.

    P(Z ≥ n) = P(Z = n) · S_n with S_n = 1 + exp(−(2n + 1)/2σ²) · S_(n+1): all terms are positive, so that no digit is lost.
    """
    last = math.floor(TAIL_SCALES * size) + 1
    ratio = np.exp(-(2 * np.arange(last + 1.0) + 1) / (2 * size**2))
    beyond = float(
        _log_tail_asymptotic(size, np.array(last + 1.0))
        + 0.5 * ((last + 1) / size) ** 2
        + _log_normalizer(size)
    )
    each, total = np.empty(last + 1), math.exp(beyond)
    for n in range(last, -1, -1):
        total = 1 + ratio[n] * total
        each[n] = total
    return np.log(each) - 0.5 * (np.arange(last + 1.0) / size) ** 2 - _log_normalizer(size)


def _log_tail_asymptotic(size: float, n: Floats) -> Floats:
    """As `_log_tail` for n ≥ 38 σ: Σ a^k exp(−k²/2σ²) with a = exp(−n/σ²), where only k below σ²/n or so matter.

    So exp(−k²/2σ²) is expanded, and the sums of k^2j a^k are Euler's polynomials.
    """
    half = 1 / (2 * size**2)
    if size <= MAX_SCALE_BY_TERMS:  # a is below exp(−38): the next term is all there is
        total = 1 + np.exp(-(2 * n + 1) * half)
    else:
        a, gap = np.exp(-2 * n * half), -np.expm1(-2 * n * half)
        squares = a * (1 + a) / gap**3
        fourth = a * (1 + 11 * a + 11 * a**2 + a**3) / gap**5
        sixth = a * (1 + 57 * a + 302 * a**2 + 302 * a**3 + 57 * a**4 + a**5) / gap**7
        total = 1 / gap - half * squares + half**2 * fourth / 2 - half**3 * sixth / 6
    return np.asarray(np.log(total) - 0.5 * (n / size) ** 2 - _log_normalizer(size))


def _log_tail_euler_maclaurin(size: float, n: Floats) -> Floats:
    """As `_log_tail` for a large σ: the integral from n − ½ on, and Euler's and Maclaurin's corrections at the middle."""
    from scipy.special import erfcx

    edge = n - 0.5
    x = edge / size
    slope = x / size  # −f′/f at the edge
    integral = size * math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))
    third = slope**3 - 3 * slope / size**2  # −f‴/f
    total = integral - slope / 24 + 7 * third / 5760
    return np.asarray(np.log(total) - 0.5 * x**2 - _log_normalizer(size))
