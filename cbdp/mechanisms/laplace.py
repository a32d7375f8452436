"""M_Lap, the baseline: noise on every trip type, rounded to the nearest non-negative integer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from cbdp.budget import Spend
from cbdp.counts import Counts
from cbdp.errors import InputError
from cbdp.features import SINGLETON
from cbdp.measurement import Measurement
from cbdp.mechanisms.base import Mechanism
from cbdp.noise import DiscreteLaplace, Entropy, RoundedLaplace
from cbdp.release import Claim, Release, from_leaves

LAWS = {"rounded": RoundedLaplace, "geometric": DiscreteLaplace}


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Noise on every type, clipped at zero. Most types are zero, so clipping invents trips.

    `law` is "rounded" (the paper's: continuous Laplace noise, rounded; sampled exactly) or "geometric".
    """

    name: ClassVar[str] = "laplace"

    law: str = "rounded"

    def check(self) -> None:
        if self.law not in LAWS:
            raise InputError(f"unknown law {self.law!r}: use {' or '.join(map(repr, LAWS))}")

    @property
    def scale(self) -> Fraction:
        return Fraction(self.protects.sensitivity) / self.spent

    def claim(self) -> Claim:
        return Claim(self.protects, Spend("every trip type once", self.spent))

    def run(self, counts: Counts, entropy: Entropy) -> Release:
        truth = counts.dense()
        law = LAWS[self.law](self.scale)
        noisy = truth + law.sample(len(truth), entropy)
        measured = Measurement(
            SINGLETON, noisy, scale=self.scale, variance=law.variance(), epsilon=self.spent
        )
        return Release(
            self.features, self.name, self.claim(), *from_leaves(noisy), (measured,), secure=entropy.secure
        )

    def expected_total(self, trips: int) -> float:
        """The expected number of published trips when types are many and mostly zero (public arithmetic)."""
        law = LAWS[self.law](self.scale)
        most = law.half_width(1 - 1e-12)
        invented = float(np.sum(law.survival(np.arange(0, most + 1))))  # E max(0, Z) = Σ P(Z > t)
        return trips + self.features.universe.size * invented
