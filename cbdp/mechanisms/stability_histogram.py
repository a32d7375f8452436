"""The Opal release's mechanism: a stability-based histogram. Zeros never appear, so it pays with δ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from cbdp.errors import InputError
from cbdp.features import SINGLETON
from cbdp.measuring.dense import shares
from cbdp.measuring.noise import Entropy
from cbdp.mechanisms.base import Mechanism
from cbdp.mechanisms.suppressed import publish
from cbdp.privacy.budget import Budget, Number, Sequential, Spend, positive, probability
from cbdp.privacy.unit import Trip
from cbdp.release.release import Claim, Release
from cbdp.trips.count import Counts

LEAST = Fraction(1, 10**300)  # δ of a table: a threshold is worked out with floating-point numbers


@dataclass(frozen=True)
class StabilityHistogram(Mechanism):
    """Noise on the non-zero counts of each table on its own; what stays below a threshold is suppressed.

    With the published unit (one trip replaced) the noise has scale 2/ε_j and the threshold is 2 ln(2/δ_j)/ε_j + 1.
    Tables are independent, so they disagree with each other; the output order is the features' own.
    """

    name: ClassVar[str] = "stability-histogram"

    unit: Any = field(default_factory=lambda: Trip("replace"))
    delta: Number = Fraction(1, 8_000_000)  # of each table, or by table
    tables: Sequence[str] | None = None  # all features but `total`
    budget: Budget = "uniform"

    def check(self) -> None:
        self._shares()
        for name in self._tables:
            if self._delta(name) == 0:
                raise InputError("delta is 0, but skipping zeros has a price: give a delta above 0")
            if self._delta(name) < LEAST:
                raise InputError(
                    f"delta is below {float(LEAST):g}, too small to compute with: give a larger one"
                )

    @property
    def _tables(self) -> list[str]:
        return (
            [n for n in self.features.features if n != "total"] if self.tables is None else list(self.tables)
        )

    def _shares(self) -> dict[str, Fraction]:
        return shares(self.features, self.spent, self.budget, self._tables)

    def _delta(self, table: str) -> Fraction:
        given = self.delta[table] if isinstance(self.delta, Mapping) else self.delta
        return probability(given)

    def scale(self, table: str) -> Fraction:
        return Fraction(self.protects.sensitivity) / self._shares()[table]

    def threshold(self, table: str) -> float:
        """The least noisy count that is published.

        A unit that is alone in the counts it touches piles at most `pile` on one of them; each then shows with
        probability at most exp(−(threshold − pile)/scale), and there are at most `touched`.
        """
        unit = self.protects
        return unit.pile + float(self.scale(table)) * math.log(unit.touched / self._delta(table))

    def claim(self) -> Claim:
        spends = (Spend(name, share, self._delta(name)) for name, share in self._shares().items())
        return Claim(self.protects, Sequential(tuple(spends), "tables"))

    def run(self, counts: Counts, entropy: Entropy) -> Release:
        return publish(self, counts, entropy, self._tables, self.scale, self.threshold, skip_zeros=True)


def opal_budget() -> dict[str, Fraction]:
    """Opal's budget for one kind of tap: 1 for times, 1 for locations, 2 for both; the other kind costs as much."""
    return {"time": positive(1), "location": positive(1), SINGLETON: positive(2)}
