"""Continuous Laplace noise rounded to the nearest whole number: the papers' noise on counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cbdp.arrays import Floats
from cbdp.privacy.laws.base import Law


@dataclass(frozen=True)
class RoundedLaplace(Law):
    """P(0) = 1 − exp(−1/2b) and P(±k) = ½ exp(−(k − ½)/b) (1 − exp(−1/b)). Proof: docs/proofs/rounded.md."""

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
            found = np.log(1 - root + (1 - r) / root * (r * np.cosh(s) - r * r) / below)
        return np.where(np.abs(s) * self.size < 1, found, np.inf)

    def _half_width_below(self, confidence: float) -> int:
        return max(0, math.ceil(-math.log1p(-confidence) * self.size - 0.5) - 1)

    def extreme(self, many: Any, spare: float) -> Any:
        return float(self.scale) * (np.log(many) + spare)
