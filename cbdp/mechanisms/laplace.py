"""M_Lap, the baseline: noise on every trip type, rounded to the nearest non-negative integer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.features import SINGLETON
from cbdp.features.index import among
from cbdp.measuring.noise import DiscreteLaplace, Entropy, RoundedLaplace
from cbdp.measuring.sparse import MOST
from cbdp.mechanisms.base import Mechanism
from cbdp.privacy.budget import Spend
from cbdp.privacy.measurement import Measurement
from cbdp.release.release import Claim, Release, from_leaves
from cbdp.trips.count import Counts

Ints = NDArray[np.int64]

DENSE = 2**24  # trip types up to which all are noised at once
LAWS = {"rounded": RoundedLaplace, "geometric": DiscreteLaplace}


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Noise on every type, clipped at zero. Most types are zero, so clipping invents trips.

    `law` is "rounded" (the paper's: continuous Laplace noise, rounded; sampled exactly) or "geometric".
    """

    name: ClassVar[str] = "laplace"

    law: str = "rounded"
    sparse: bool | None = None  # None: by the size of the universe

    def check(self) -> None:
        if self.law not in LAWS:
            raise InputError(f"unknown law {self.law!r}: use {' or '.join(map(repr, LAWS))}")

    @property
    def scale(self) -> Fraction:
        return Fraction(self.protects.sensitivity) / self.spent

    def claim(self) -> Claim:
        return Claim(self.protects, Spend("every trip type once", self.spent))

    def run(self, counts: Counts, entropy: Entropy) -> Release:
        law = LAWS[self.law](self.scale)
        large = self.features.universe.size > DENSE if self.sparse is None else self.sparse
        noise = {"scale": self.scale, "variance": law.variance(), "epsilon": self.spent}
        if large:
            index, noisy = self._above_zero(counts, law, entropy)
            floor = np.zeros(self.features.cells.size, dtype=np.int64)
            measured = Measurement(SINGLETON, noisy, elements=index, floor=floor, **noise)
        else:
            truth = counts.dense()
            noisy = truth + law.sample(len(truth), entropy)
            measured = Measurement(SINGLETON, noisy, **noise)
            index, noisy = from_leaves(noisy)
        return Release(
            self.features, self.name, self.claim(), index, noisy, (measured,), secure=entropy.secure
        )

    def _above_zero(self, counts: Counts, law: Any, entropy: Entropy) -> tuple[Ints, Ints]:
        """The types whose noisy count is above 0, the only ones that are published: docs/universes.md."""
        size = self.features.universe.size
        expected = size * float(law.survival(np.array(0)))
        if expected > MOST:
            raise InputError(
                f"about {expected:.1e} of {size:.1e} trip types would be published, nearly all of them invented: "
                "use ConstraintBased, which asks what can matter"
            )
        own = counts.value + law.sample(len(counts.value), entropy)
        hits = law.sample_skips(size, 0, entropy)
        hits = hits[~among(hits, counts.index)]
        index = np.concatenate([counts.index[own > 0], hits])
        noisy = np.concatenate([own[own > 0], law.sample_excess(len(hits), 0, entropy)])
        order = np.argsort(index, kind="stable")
        return index[order], noisy[order]

    def expected_total(self, trips: int) -> float:
        """The expected number of published trips when types are many and mostly zero (public arithmetic)."""
        law = LAWS[self.law](self.scale)
        most = law.half_width(1 - 1e-12)
        invented = float(np.sum(law.survival(np.arange(0, most + 1))))  # E max(0, Z) = Σ P(Z > t)
        return trips + self.features.universe.size * invented
