"""Continuous Laplace noise: never drawn here (its last bits reveal the count), but met in tables of others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cbdp.arrays import Floats
from cbdp.privacy.laws.base import Law


@dataclass(frozen=True)
class ContinuousLaplace(Law):
    """Density exp(−|z|/b) / 2b."""

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
            found = -np.log1p(-((float(self.scale) * s) ** 2))
        return np.where(np.abs(s) * float(self.scale) < 1, found, np.inf)

    def log_pmf_of_sum(self, many: int, z: Floats) -> Floats:
        """A Bessel function of order n − 1/2.

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
