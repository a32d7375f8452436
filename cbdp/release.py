"""What is published: integer trips, every feature's counts, the noisy measurements, and what all of it cost."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.budget import Parallel, Sequential, Spend
from cbdp.engine import LISTED, Estimate
from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.measurement import Measurement
from cbdp.unit import Unit

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Claim:
    """What a mechanism promises: ε and δ for a unit of privacy, with the argument; or that it promises nothing."""

    unit: Unit
    cost: Spend | Sequential | Parallel
    holds: bool = True
    caveat: str = ""

    def __str__(self) -> str:
        if not self.holds:
            return f"not differentially private for any ε: {self.caveat}"
        kind = "ε-DP" if self.cost.delta == 0 else "(ε, δ)-DP"
        return f"{kind} for {self.unit}: {self.cost}"


@dataclass(frozen=True, eq=False)
class Release:
    """Integer trips by type, and tables of counts. Holds published values only."""

    features: FeatureDag = field(repr=False)
    mechanism: str
    claim: Claim
    index: Ints = field(repr=False)  # trip types with at least one published trip, ascending
    value: Ints = field(repr=False)
    measurements: Sequence[Measurement] = field(default=(), repr=False)
    estimate: Estimate | None = field(default=None, repr=False)
    tables: Mapping[str, Ints] = field(
        default_factory=dict, repr=False
    )  # published beside the trips, not derived
    secure: bool = True  # False: drawn from a seeded source, for tests and benchmarks only

    def trips(self) -> dict[str, list[Hashable] | Ints]:
        """The published trips: a column per dimension, and the count; one row per type that has any."""
        universe = self.features.universe
        codes = universe.unrank_codes(self.index)
        columns: dict[str, Any] = {
            name: [d.values[c] for c in code]
            for (name, d), code in zip(universe.dimensions.items(), codes, strict=True)
        }
        return {**columns, "count": self.value}

    def counts(self, feature: str) -> Ints:
        """The published count of each of a feature's elements, in their order."""
        if feature in self.tables:
            return self.tables[feature]
        if feature == SINGLETON:
            if self.features.universe.size > LISTED:
                raise InputError("counts of all trip types do not fit in memory: use trips()")
            dense = np.zeros(self.features.universe.size, dtype=np.int64)
            dense[self.index] = self.value
            return dense
        partition = self.features.partition(feature)
        element = partition.element_of(self.features.universe.unrank_codes(self.index))
        counts = np.zeros(partition.size, dtype=np.int64)
        np.add.at(counts, element, self.value)
        return counts

    @property
    def total(self) -> int:
        """How many trips are published."""
        return int(self.value.sum())


def from_leaves(leaves: NDArray[Any]) -> tuple[Ints, Ints]:
    """Index and value of the non-zero counts among all, rounded to the nearest whole number of at least 0."""
    return rounded(np.arange(len(leaves), dtype=np.int64), leaves)


def rounded(index: Ints, value: NDArray[Any]) -> tuple[Ints, Ints]:
    """Counts rounded to the nearest whole number, those above 0."""
    whole = np.maximum(np.rint(value), 0).astype(np.int64)
    here = np.flatnonzero(whole)
    return index[here], whole[here]
