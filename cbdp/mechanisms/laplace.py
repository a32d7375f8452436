"""The Laplace mechanism (Dwork, McSherry, Nissim and Smith 2006), M_Lap of Fioretto, Lee and Van Hentenryck 2018: the baseline.

Use it to compare with. It asks trip types alone, so that tables are sums of many noisy counts; clipped at zero, these invent trips wherever most
types are empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cbdp.arrays import Ints
from cbdp.counting import Counts
from cbdp.errors import InputError
from cbdp.features import SINGLETON
from cbdp.measuring import cost_argument, noisy_counts
from cbdp.measuring.answers import MAX_DRAWN_AT_ONCE
from cbdp.measuring.samplers import sampler_of
from cbdp.mechanisms.base import AdditiveNoiseMechanism
from cbdp.parts import setting
from cbdp.privacy.accounting import PrivacyGuarantee
from cbdp.privacy.entropy import Entropy
from cbdp.privacy.measurement import Measurement, NoisyAnswer, PlannedAnswer
from cbdp.privacy.noise import NoiseDistribution
from cbdp.release import Release
from cbdp.release.release import from_leaves, rounded
from cbdp_features.universe import is_member

MAX_DENSE_TYPES = 2**24  # trip types up to which all are noised at once
NOISE_NAMES = ("rounded", "geometric", "gaussian")


@dataclass(frozen=True)
class Laplace(AdditiveNoiseMechanism):
    """Noise on every type, clipped at zero. Most types are zero, so clipping invents trips.

    `law` is "rounded" (the paper's: continuous Laplace noise, rounded; sampled exactly), "geometric" (Ghosh, Roughgarden and
    Sundararajan 2012) or "gaussian" (Canonne, Kamath and Steinke 2020).

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> release = cbdp.Laplace(features, epsilon=1).release(trips)
    >>> bool((release.counts("time") >= 0).all())
    True
    """

    name: ClassVar[str] = "laplace"
    about: ClassVar[str] = "noise on every trip type, clipped at zero: the baseline that invents trips"
    asks_tables: ClassVar[bool] = False

    law: str = setting("the law of the noise", choices=NOISE_NAMES, default="rounded", kw_only=True)
    sparse: bool | None = None  # None: by the size of the universe

    def check(self) -> None:
        if self.law not in NOISE_NAMES:
            raise InputError(f"unknown law {self.law!r}: use {' or '.join(map(repr, NOISE_NAMES))}")

    @property
    def noise(self) -> NoiseDistribution:
        return self.noise_for(SINGLETON, self.amount)

    def claim(self) -> PrivacyGuarantee:
        return PrivacyGuarantee(self.protected, self.stated(self.spend("every trip type once", self.amount)))

    def answers(self) -> tuple[PlannedAnswer, ...]:
        return (PlannedAnswer(SINGLETON, self.amount, self.noise),)

    def measure(self, counts: Counts, entropy: Entropy) -> list[NoisyAnswer]:
        law = self.noise
        large = self.features.universe.size > MAX_DENSE_TYPES if self.sparse is None else self.sparse
        if not large:
            return [noisy_counts(SINGLETON, counts.dense(), law, self.amount, entropy)]
        index, values = self._above_zero(counts, law, entropy)
        floor = np.zeros(self.features.cells.size, dtype=np.int64)
        cost = cost_argument(law, self.amount)
        return [Measurement(SINGLETON, values, law.scale, elements=index, floor=floor, law=law.name, **cost)]

    def finish(self, answers: Sequence[NoisyAnswer]) -> Release:
        (m,) = answers
        assert isinstance(m, Measurement)
        whole = from_leaves(m.values) if m.elements is None else rounded(m.elements, m.values)
        return self.publication(*whole, (m,))

    def _above_zero(self, counts: Counts, law: NoiseDistribution, entropy: Entropy) -> tuple[Ints, Ints]:
        """The types whose noisy count is above 0, the only ones that are published: docs/explanation/universes.md."""
        size, sampler = self.features.universe.size, sampler_of(law)
        expected = size * float(law.survival(0))
        if expected > MAX_DRAWN_AT_ONCE:
            raise InputError(
                f"about {expected:.1e} of {size:.1e} trip types would be published, nearly all of them invented: "
                "use ConstraintBased, which asks only what can matter"
            )
        noisy = counts.value + sampler.sample(len(counts.value), entropy)
        hits = sampler.sample_skips(size, 0, entropy)
        hits = hits[~is_member(hits, counts.index)]
        index = np.concatenate([counts.index[noisy > 0], hits])
        values = np.concatenate([noisy[noisy > 0], sampler.sample_excess(len(hits), 0, entropy)])
        order = np.argsort(index, kind="stable")
        return index[order], values[order]

    def expected_total(self, trips: int) -> float:
        """The expected number of published trips when types are many and mostly zero (public arithmetic)."""
        law = self.noise
        most = law.half_width(1 - 1e-12)
        invented = float(np.sum(law.survival(np.arange(0, most + 1))))  # E max(0, Z) = Σ P(Z > t)
        return trips + self.features.universe.size * invented
