"""From an estimate to whole trips that add up at every level: controlled rounding, and one ordered table of roundings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.compiling import kernel
from cbdp.features import SINGLETON, FeatureDag
from cbdp.parts import Parts, instance_of
from cbdp.rounding.controlled import Exactness, Rounded, exactness, round_to_cell_counts, round_trips

BudgetName = (
    str | Mapping[str, object] | None
)  # how ε was split: by the name of a rule, by hand, or not known


@dataclass(frozen=True)
class Rounding(ABC):
    """A way from an estimate to whole trips. Subclass it, set the class data, implement `prepared`; fields are settings.

    A part that does not round by `round_trips` overrides `whole`, and `again` and `exactness` with it.

    >>> from cbdp.rounding import ROUNDINGS
    >>> [isinstance(ROUNDINGS.get(name), Rounding) for name in ("nearest", "few")]
    [True, True]
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""
    # only for estimates that are posterior means: these say how likely a type is used
    needs_expected: ClassVar[bool] = False
    # modules with loops that it runs (`cbdp.compiling.prepare`)
    compiled: ClassVar[tuple[str, ...]] = ("cbdp.rounding.bounds", "cbdp.rounding.network")

    @abstractmethod
    def prepared(
        self, features: FeatureDag, index: Ints, value: Floats, budget: BudgetName
    ) -> tuple[Ints, Floats]:
        """The real counts that are then rounded: trip types in ascending order, and a count for each."""

    def whole(self, features: FeatureDag, index: Ints, value: Floats, budget: BudgetName = None) -> Rounded:
        """Whole trips from the estimate of each trip type."""
        return round_trips(features, *self.prepared(features, index, value, budget))

    def again(
        self,
        features: FeatureDag,
        index: Ints,
        value: Floats,
        trips: tuple[Ints, Ints],
        budget: BudgetName = None,
    ) -> tuple[Ints, Ints] | None:
        """The rounding with the same count in every cell as these trips; None if there is none. For whoever checks a release."""
        return round_to_cell_counts(features, *self.prepared(features, index, value, budget), trips)

    def exactness(
        self,
        features: FeatureDag,
        index: Ints,
        value: Floats,
        trips: tuple[Ints, Ints],
        budget: BudgetName = None,
        tolerance: float | None = None,
    ) -> Exactness:
        """Which counts of these trips are not the estimate's rounded down or up; of trip types only where they are rounded as they are."""
        result = exactness(features, *self.prepared(features, index, value, budget), trips, tolerance)
        if not self.needs_expected:
            return result
        # trips were moved within cells, which changes no table
        return replace(
            result, violations={n: count for n, count in result.violations.items() if n != SINGLETON}
        )


@dataclass(frozen=True)
class Nearest(Rounding):
    """Controlled rounding of the estimate itself."""

    name: ClassVar[str] = "nearest"
    about: ClassVar[str] = "whole trips nearest to the estimate of each trip type"

    def prepared(
        self,
        features: FeatureDag,  # noqa: ARG002
        index: Ints,
        value: Floats,
        budget: BudgetName,  # noqa: ARG002
    ) -> tuple[Ints, Floats]:
        return index, value


# Sparse rounding: the trips of a cell on those of its types that are likely to be used.
#
# A posterior mean may be a fiftieth of a trip for each of a thousand types. Whole trips that add up have to be somewhere, and the nearest
# rounding names twenty of the thousand, nearly all of them wrongly. Types of one cell (the atoms of the features' common
# refinement) are interchangeable in every table, so counts can be moved among them and no sum changes.
#
# A type of posterior mean m < 1 is used with probability at most m (Markov's inequality), so naming it is wrong with probability
# at least 1 − m. In each cell, over counts y with the cell's sum, the program is least squares with an ℓ₀ penalty:
#
#     Σ (y_u − m_u)² + price · Σ (1 − m_u)⁺ over the types with y_u > 0, each of which has y_u ≥ 1.
#
# Of two types the one with the larger estimate is better in both sums, so the k types with the largest estimates are named, each
# with the same number of trips more than its estimate. Every k that gives each of them at least one trip is compared.


@dataclass(frozen=True)
class SparsityCosts:
    """Penalties of the sparse program. Chosen among 1, 4, 16, 64 and 256 on the synthetic city and two days of bike trips."""

    price: float = 64.0  # naming a type that nobody used is as bad as a count that is off by eight trips
    price_on_leaves: float = 16.0  # by four, where ε was spent on single types: their error is what matters
    one_trip: float = 1.0 - 1e-9  # a count from here on passes for one trip: sums of floats fall short of it


SPARSITY_COSTS = SparsityCosts()


@dataclass(frozen=True)
class Sparse(Rounding):
    """Controlled rounding of each cell's trips concentrated on the types that are likely to be used."""

    name: ClassVar[str] = "few"
    about: ClassVar[str] = "whole trips on few trip types, those that are likely to be used"
    needs_expected: ClassVar[bool] = True

    def prepared(
        self, features: FeatureDag, index: Ints, value: Floats, budget: BudgetName
    ) -> tuple[Ints, Floats]:
        return concentrate(features, index, value, cost_per_wrong_type(budget))


def cost_per_wrong_type(budget: BudgetName) -> float:
    """The penalty of a wrongly named type, by how ε was allocated."""
    return SPARSITY_COSTS.price_on_leaves if budget == "leaves" else SPARSITY_COSTS.price


def concentrate(
    features: FeatureDag, index: Ints, value: Floats, price: float = SPARSITY_COSTS.price
) -> tuple[Ints, Floats]:
    """Trip types in ascending order and their counts, with each cell's trips on fewer of its types.

    >>> import cbdp
    >>> dag = cbdp.FeatureDag(cbdp.Universe(stop=range(5), time=["am", "pm"]), [cbdp.Feature("time", by="time")])
    >>> index, value = concentrate(dag, np.arange(10), np.array([9.0, 0, 0.5, 0, 0.25, 4, 0.25, 0, 0.5, 0]))
    >>> index.tolist(), value.tolist()
    ([0, 5], [10.5, 4.0])
    """
    cell = features.cells.partition.element_of(features.universe.unrank_codes(index))
    order = np.lexsort((-value, cell))
    ends = np.flatnonzero(np.diff(cell[order], append=-1)) + 1
    concentrated = np.zeros(len(index))
    concentrated[order] = _concentrate_cells(value[order], ends, float(price), SPARSITY_COSTS.one_trip)
    kept = np.flatnonzero(concentrated > 0)
    return index[kept], concentrated[kept]


@kernel
def _concentrate_cells(value: Floats, ends: Ints, price: float, one_trip: float) -> Floats:
    """Cells end to end, in each the largest first; every number k of types is compared, in one pass."""
    concentrated = np.zeros(len(value))
    begin = 0
    for end in ends:
        whole, squares = 0.0, 0.0
        for u in range(begin, end):
            whole += value[u]
            squares += value[u] ** 2
        kept, wrong, rest = 0.0, 0.0, squares
        best, least = 1, np.inf
        for u in range(begin, end):
            k = u - begin + 1
            kept += value[u]
            rest -= value[u] ** 2
            wrong += max(0.0, 1.0 - value[u])
            more = (whole - kept) / k
            if k > 1 and value[u] + more < one_trip:
                break
            cost = k * more**2 + rest + price * wrong
            if cost < least:
                best, least = k, cost
        kept = 0.0
        for u in range(begin, begin + best):
            kept += value[u]
        for u in range(begin, begin + best):
            concentrated[u] = value[u] + (whole - kept) / best
        begin = end
    return concentrated


ROUNDINGS: Parts[Rounding] = Parts(
    "rounding",
    "cbdp.rounding",
    {
        "few": "cbdp.rounding:Sparse",
        "nearest": "cbdp.rounding:Nearest",
    },
    instance_of(Rounding),
    base="cbdp.rounding.Rounding",
)
get = ROUNDINGS.get
known = ROUNDINGS.known


__all__ = ["ROUNDINGS", "Exactness", "Rounded", "Rounding", "get", "known"]
