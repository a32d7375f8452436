"""Discrete Gaussian noise (Canonne, Kamath and Steinke 2020, Definition 1): P(z) ∝ exp(−z²/2σ²) on the whole numbers, with σ the scale.

Sums over all z are theta functions. Where σ is small few terms matter; where it is large Poisson's summation formula turns them into
Gaussian integrals with corrections of the order exp(−2π²σ²), so that every figure is right to the last digits at any scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from cbdp.arrays import Floats
from cbdp.privacy.noise import MIN_VARIANCE, NoiseDistribution, PrivacyMeasure
from cbdp.privacy.unit import Sensitivity

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

    def log_pmf(self, z: Any) -> Floats:
        return np.asarray(-0.5 * (np.asarray(z, dtype=float) / self.size) ** 2 - _log_normalizer(self.size))

    def survival(self, t: Any) -> Floats:
        at = np.floor(np.asarray(t, dtype=float))
        outer = np.exp(_log_tail(self.size, np.where(at < 0, -at, at + 1)))
        return np.asarray(np.where(at < 0, 1 - outer, outer))

    def log_cdf(self, t: Any) -> Floats:
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

    def falloff(self, at: Any) -> Floats:
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
