"""The Laplace family: discrete Laplace (two-sided geometric, as `scipy.stats.dlaplace`), Laplace rounded to integers, and continuous Laplace."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cbdp.arrays import Floats
from cbdp.privacy.noise import MIN_VARIANCE, NoiseDistribution


@dataclass(frozen=True)
class DiscreteLaplace(NoiseDistribution):
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

    def log_pmf(self, z: Any) -> Floats:
        distance = np.abs(np.asarray(z, dtype=float))
        return np.asarray(math.log(math.tanh(0.5 / self.size)) - distance / self.size)

    def pmf(self, z: Any) -> Floats:
        return np.asarray(
            math.tanh(0.5 / self.size) * np.exp(-np.abs(np.asarray(z, dtype=float)) / self.size)
        )

    def survival(self, t: Any) -> Floats:
        at = np.asarray(t, dtype=float)
        outer = np.exp(-np.where(at < 0, -at, at + 1) / self.size) / (1 + self.decay)
        return np.where(at < 0, 1 - outer, outer)

    def log_cdf(self, t: Any) -> Floats:
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

    def extreme(self, many: Any, spare: float) -> Any:
        return float(self.scale) * (np.log(many) + spare)

    def shift(self, excess: Floats) -> Floats:
        """Z exceeds s ≥ 0 by b/2 · exp(−s/b) on average, and s < 0 by b/2 − s or so."""
        scale = float(self.scale)
        sparse = np.maximum(2.0 * excess / scale, np.finfo(float).tiny)
        shift: Floats = scale * np.where(sparse < 1.0, -np.log(sparse), 0.5 * (1.0 - sparse))
        return shift

    def blurred(self, rows: Floats, step: int) -> Floats:
        """Two recursions, from either side."""
        from cbdp.privacy.noise import convolution

        convolved: Floats = convolution.convolved(
            np.ascontiguousarray(rows), math.exp(-step / float(self.scale))
        )
        return convolved


@dataclass(frozen=True)
class RoundedLaplace(NoiseDistribution):
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

    def log_pmf(self, z: Any) -> Floats:
        rate, size = 1 / self.size, np.abs(np.asarray(z, dtype=float))
        outer = (
            math.log(math.sinh(rate / 2)) - size * rate if rate < 700 else -(size - 0.5) * rate - math.log(2)
        )
        return np.where(np.asarray(z) == 0, math.log(-math.expm1(-rate / 2)), outer)

    def survival(self, t: Any) -> Floats:
        at = np.asarray(t, dtype=float)
        outer = 0.5 * np.exp(-(np.where(at < 0, -at - 1, at) + 0.5) / self.size)
        return np.where(at < 0, 1 - outer, outer)

    def log_cdf(self, t: Any) -> Floats:
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

    def extreme(self, many: Any, spare: float) -> Any:
        return float(self.scale) * (np.log(many) + spare)


@dataclass(frozen=True)
class ContinuousLaplace(NoiseDistribution):
    """Density exp(−|z|/b) / 2b, as `scipy.stats.laplace(scale=b)`.

    Never drawn here, since its last bits reveal the count (Mironov 2012), but met in tables of others.
    """

    name: ClassVar[str] = "laplace"
    about: ClassVar[str] = "continuous Laplace noise, in tables that others have published"
    words: ClassVar[str] = "continuous Laplace noise of this scale"
    whole: ClassVar[bool] = False

    def variance(self) -> float:
        return 2 * float(self.scale) ** 2

    def log_pmf(self, z: Any) -> Floats:
        return np.asarray(-np.abs(np.asarray(z, dtype=float)) / self.size - math.log(2 * self.size))

    def survival(self, t: Any) -> Floats:
        at = np.asarray(t, dtype=float)
        outer = 0.5 * np.exp(-np.abs(at) / self.size)
        return np.asarray(np.where(at < 0, 1 - outer, outer))

    def log_cdf(self, t: Any) -> Floats:
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
