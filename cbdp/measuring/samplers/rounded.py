"""Laplace noise rounded to whole numbers, sampled exactly.

With h geometric of parameter exp(−1/2b), the value is 0 when h = 0, and else a fair sign times one plus a geometric of
parameter exp(−1/b): P(0) = 1 − exp(−1/2b) and P(±k) = ½ exp(−(k − ½)/b) (1 − exp(−1/b)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.measuring.samplers.base import Sampler, as_bound, as_size, positions
from cbdp.measuring.samplers.geometric import GAP_RADIX, GeometricSampler, checked_scale
from cbdp.measuring.tables import Digits
from cbdp.measuring.thresholds import Enclosure, exp_power, real_power
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.laws.rounded import RoundedLaplace


@dataclass(frozen=True)
class RoundedSampler(Sampler):
    """Draws of the papers' noise on counts.

    Proof: docs/proofs/rounded.md.

    >>> RoundedSampler(Fraction(1)).sample(3).dtype
    dtype('int64')
    """

    about: ClassVar[str] = (
        "exact draws of the papers' noise, by the geometric sampler; floors cannot be lowered"
    )

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale(self.scale))

    @property
    def law(self) -> RoundedLaplace:
        return RoundedLaplace(self.scale)

    def sample_skips(self, N: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw which of N positions have Z > tau ≥ 0: sorted, at a cost of the hits and not of N."""
        if as_bound(tau) < 0:
            raise InputError(f"the floor of rounded noise must be at least 0, not {tau!r}")
        share = float(self.law.survival(tau))
        gaps = _rounded_gaps(self.scale, tau, 1 / share if share > 0 else math.inf)
        return positions(gaps, as_size(N), share, entropy or SystemEntropy())

    def sample_excess(self, n: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values given that each exceeds tau ≥ 0: from there on the law is geometric."""
        if as_bound(tau) < 0:
            raise InputError(f"the floor of rounded noise must be at least 0, not {tau!r}")
        return GeometricSampler(self.scale).sample_excess(n, tau, entropy)

    def sample(self, n: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values, from the operating system's entropy unless told otherwise."""
        source = entropy or SystemEntropy()
        inside = GeometricSampler(2 * self.scale).sample_excess(n, -1, source) == 0
        size = GeometricSampler(self.scale).sample_excess(n, 0, source)
        negative = source.words(n, 8) % 2 == 1
        return np.where(inside, 0, np.where(negative, -size, size))


@lru_cache(maxsize=256)
def _rounded_gaps(scale: Fraction, tau: int, gap_scale: float) -> Digits:
    """The number of positions before the next with rounded Laplace noise above tau: r = 1 − ½ exp(−(tau + ½)/b)."""
    power = exp_power((tau + Fraction(1, 2)) / scale)

    def miss(bits: int) -> Enclosure:
        tail = power(1, bits + 1)  # 2^bits · x/2 is a quarter of 2^(bits + 1) · x
        return Enclosure.one(bits) - Enclosure(tail.lo >> 2, (tail.hi >> 2) + 1, bits)

    return Digits.build(real_power(miss), gap_scale, 64, radix=GAP_RADIX)
