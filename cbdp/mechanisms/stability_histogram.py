"""The Opal release's mechanism: a stability-based histogram. Zeros never appear, so it pays with δ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from cbdp.errors import InputError
from cbdp.features import SINGLETON
from cbdp.mechanisms.suppressed import Suppressed
from cbdp.privacy.claim import Claim
from cbdp.privacy.composition import Sequential, Spend
from cbdp.privacy.numbers import positive, probability
from cbdp.privacy.unit import Trip

LEAST = Fraction(1, 10**300)  # δ of a table: a threshold is worked out with floating-point numbers


@dataclass(frozen=True)
class StabilityHistogram(Suppressed):
    """Noise on the non-zero counts of each table on its own; what stays below a threshold is suppressed.

    With the published unit (one trip replaced) the noise has scale 2/ε_j and the threshold is 2 ln(2/δ_j)/ε_j + 1.
    Tables are independent, so they disagree with each other; the output order is the features' own.

    Proof: docs/proofs/stability.md.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> release = cbdp.StabilityHistogram(features, epsilon=4).release(trips)
    >>> float(release.claim.cost.delta)
    2.5e-07
    """

    name: ClassVar[str] = "stability-histogram"
    about: ClassVar[str] = "Opal's: noise on non-zero counts, small ones suppressed; costs δ, tables disagree"
    skips_zeros: ClassVar[bool] = True

    unit: Any = field(default_factory=lambda: Trip("replace"))
    delta: Any = Fraction(1, 8_000_000)  # of each table, or by table

    def check(self) -> None:
        self.shares()
        for name in self.published_tables:
            if self.delta_of(name) == 0:
                raise InputError("delta is 0, but skipping zeros has a price: give a delta above 0")
            if self.delta_of(name) < LEAST:
                raise InputError(
                    f"delta is below {float(LEAST):g}, too small to compute with: give a larger one"
                )

    def delta_of(self, table: str) -> Fraction:
        return probability(self.delta[table] if isinstance(self.delta, Mapping) else self.delta)

    def threshold_of(self, table: str) -> float:
        """The least noisy count that is published.

        A unit that is alone in the counts it touches piles at most `pile` on one of them; each then shows with
        probability at most exp(−(threshold − pile)/scale), and there are at most `touched`.
        """
        pile: int = self.unit.pile
        return pile + float(self.scale(table)) * math.log(self.unit.touched / self.delta_of(table))

    def claim(self) -> Claim:
        spends = (Spend(name, share, self.delta_of(name)) for name, share in self.shares().items())
        return Claim(self.unit, Sequential(tuple(spends), "tables"))


def opal_budget() -> dict[str, Fraction]:
    """Opal's budget for one kind of tap: 1 for times, 1 for locations, 2 for both; the other kind costs as much."""
    return {"time": positive(1), "location": positive(1), SINGLETON: positive(2)}
