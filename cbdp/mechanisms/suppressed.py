"""Tables that are noised one by one and suppressed below a threshold: what both of Opal's mechanisms publish."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cbdp.features import SINGLETON, TOTAL
from cbdp.measuring.samplers import sampler_of
from cbdp.mechanisms.base import Mechanism
from cbdp.parts import setting
from cbdp.privacy.budget import BudgetLike, shares
from cbdp.privacy.entropy import Entropy
from cbdp.privacy.laws.geometric import Geometric
from cbdp.privacy.measurement import Measurement, NoisyAnswer, PlannedAnswer
from cbdp.release import Release
from cbdp.release.recipe import TableNoise
from cbdp.trips import Counts


@dataclass(frozen=True)
class Suppressed(Mechanism):
    """Each table's counts with noise of its own; what stays below its threshold is not shown. Proof: docs/proofs/stability.md."""

    tables: Sequence[str] | None = setting("the features that are published; all but the total", "names")
    budget: BudgetLike = "uniform"

    @abstractmethod
    def threshold_of(self, table: str) -> float:
        """The least noisy count that is published."""

    @property
    @abstractmethod
    def skips_zeros(self) -> bool:
        """Whether counts of zero get no noise, and never show."""

    def delta_of(self, table: str) -> Fraction:  # noqa: ARG002
        return Fraction(0)

    @property
    def published_tables(self) -> list[str]:
        return [n for n in self.features.features if n != TOTAL] if self.tables is None else list(self.tables)

    def shares(self) -> dict[str, Fraction]:
        return shares(self.features, self.epsilon, self.budget, self.published_tables)

    def noise_of(self, table: str) -> Geometric:
        return Geometric.costing(self.shares()[table], self.change(table))

    def scale(self, table: str) -> Fraction:
        """The scale of a table's noise."""
        return Fraction(self.noise_of(table).scale)

    def answers(self) -> tuple[PlannedAnswer, ...]:
        return tuple(
            PlannedAnswer(name, share, self.noise_of(name), self.delta_of(name), self.threshold_of(name))
            for name, share in self.shares().items()
        )

    def own_tables(self) -> Mapping[str, TableNoise]:
        return {
            name: TableNoise(self.noise_of(name), self.threshold_of(name), self.skips_zeros)
            for name in self.published_tables
        }

    def measure(self, counts: Counts, entropy: Entropy) -> list[NoisyAnswer]:
        """Only what is shown: a count below its threshold never leaves this function."""
        made: list[NoisyAnswer] = []
        given = self.shares()
        for name in self.published_tables:
            share = given[name]
            truth, law = counts.of(self.features, name), self.noise_of(name)
            where = np.flatnonzero(truth) if self.skips_zeros else np.arange(len(truth))
            noisy = truth[where] + sampler_of(law).sample(len(where), entropy)
            shown = noisy >= self.threshold_of(name)
            made.append(
                Measurement(name, noisy[shown], law.scale, elements=where[shown], epsilon=share, law=law.name)
            )
        return made

    def finish(self, answers: Sequence[NoisyAnswer]) -> Release:
        published = {}
        for m in answers:
            assert isinstance(m, Measurement)
            table = np.zeros(self.features.size(m.feature), dtype=np.int64)
            table[m.elements] = np.maximum(m.values, 0)
            published[m.feature] = table
        leaves = published.get(SINGLETON, np.zeros(0, dtype=np.int64))
        index = np.flatnonzero(leaves).astype(np.int64)
        return self.made(index, leaves[index], tables=published)
