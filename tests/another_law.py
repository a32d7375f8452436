"""A law of noise that another package might bring: the sum of two geometric noises, with lighter tails than one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cbdp.measuring.samplers import Sampler
from cbdp.measuring.samplers.laplace import GeometricSampler
from cbdp.privacy.noise import DiscreteLaplace, LaplaceFamily


@dataclass(frozen=True)
class Twice(LaplaceFamily):
    """P(z) = c² r^|z| (|z| + (1 + r²)/(1 − r²)) with r = exp(−1/scale), c = (1 − r)/(1 + r).

    It costs what one of the two costs: the other one is added afterwards.
    """

    name: ClassVar[str] = "twice"
    excess_kurtosis: ClassVar[float] = 1.5

    @property
    def one(self):
        return DiscreteLaplace(self.scale)

    def variance(self):
        return 2 * self.one.variance()

    def log_pmf(self, z):
        r, far = self.one.decay, np.abs(np.asarray(z, dtype=float))
        front = 2 * math.log(math.tanh(0.5 / self.size))
        return front - far / self.size + np.log(far + (1 + r * r) / (1 - r * r))

    def survival(self, t):
        """P(Z > t): Σ k r^k and Σ r^k over k > t, which have closed forms; by symmetry below 0."""
        r, at = self.one.decay, np.floor(np.asarray(t, dtype=float))
        first = np.where(at < 0, -at, at + 1)  # P(Z ≥ first)
        each = first + r / (1 - r) + (1 + r * r) / (1 - r * r)
        tail = (1 - r) / (1 + r) ** 2 * np.exp(-first / self.size) * each
        return np.where(at < 0, 1 - tail, tail)

    def log_cdf(self, t):
        return np.log(np.maximum(self.survival(-np.floor(np.asarray(t, dtype=float)) - 1), 1e-300))

    def mean_size(self):
        return 2 * float(np.sum(self.survival(np.arange(0, 100 * math.ceil(self.size)))))

    def transform(self, t):
        return self.one.transform(t) ** 2

    def log_moment(self, s):
        return 2 * self.one.log_moment(s)


@dataclass(frozen=True)
class TwiceSampler(Sampler):
    """Slow where only what exceeds a floor is asked for, and exact."""

    @property
    def law(self):
        return Twice(self.scale)

    def sample(self, n, entropy=None):
        one = GeometricSampler(self.scale)
        return one.sample(n, entropy) + one.sample(n, entropy)

    def sample_skips(self, N, tau, entropy=None):
        return np.flatnonzero(self.sample(N, entropy) > tau)

    def sample_excess(self, n, tau, entropy=None):
        found = np.empty(0, dtype=np.int64)
        while len(found) < n:
            drawn = self.sample(1000, entropy)
            found = np.append(found, drawn[drawn > tau])
        return found[:n]
