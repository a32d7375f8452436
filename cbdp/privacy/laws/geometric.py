"""Two-sided geometric noise (discrete Laplace): P(z) = (1 − r)/(1 + r) · r^|z| with r = exp(−1/scale)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cbdp.arrays import Floats
from cbdp.privacy.laws.base import LEAST_VARIANCE, Law


@dataclass(frozen=True)
class Geometric(Law):
    """The default: pure ε-differential privacy for whole counts.

    Proof: docs/proofs/geometric.md.

    >>> round(Geometric(1).variance(), 8), round(float(Geometric(2).survival(-1) - Geometric(2).survival(0)), 8)
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

        >>> Geometric(0).variance(), Geometric(0.001).variance()
        (0.0, 1e-100)
        """
        scale = float(self.scale)
        if not scale:
            return 0.0
        return max(LEAST_VARIANCE, 0.5 / math.sinh(0.5 / scale) ** 2) if scale > 0.002 else LEAST_VARIANCE

    @classmethod
    def precision(cls, rate: Floats) -> tuple[Floats, Floats]:
        made: Floats = np.maximum(2.0 * np.sinh(rate / 2.0) ** 2, np.finfo(float).tiny)
        return made, np.sinh(rate)

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
            found = np.log((1 - r) ** 2 / ((1 - r) ** 2 - 4 * r * np.sinh(s / 2) ** 2))
        return np.where(np.abs(s) * self.size < 1, found, np.inf)

    def _half_width_below(self, confidence: float) -> int:
        guess = math.log(2 / (1 + self.decay) / (1 - confidence)) * self.size - 1
        return max(0, math.floor(guess) - 1)  # one below, so that rounding cannot skip the answer

    def extreme(self, many: Any, spare: float) -> Any:
        return float(self.scale) * (np.log(many) + spare)

    def shift(self, excess: Floats) -> Floats:
        """Z exceeds s ≥ 0 by b/2 · exp(−s/b) on average, and s < 0 by b/2 − s or so."""
        scale = float(self.scale)
        sparse = np.maximum(2.0 * excess / scale, np.finfo(float).tiny)
        made: Floats = scale * np.where(sparse < 1.0, -np.log(sparse), 0.5 * (1.0 - sparse))
        return made

    def blurred(self, rows: Floats, step: int) -> Floats:
        """Two recursions, from either side."""
        from cbdp.privacy.laws import recursion

        made: Floats = recursion.blurred(np.ascontiguousarray(rows), math.exp(-step / float(self.scale)))
        return made
