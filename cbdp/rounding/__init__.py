"""From an estimate to whole trips that add up at every level: controlled rounding, and one ordered table of roundings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from cbdp.arrays import Floats, Ints
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


ROUNDINGS: Parts[Rounding] = Parts(
    "rounding",
    "cbdp.rounding",
    {
        "few": "cbdp.rounding.roundings:Sparse",
        "nearest": "cbdp.rounding.roundings:Nearest",
    },
    instance_of(Rounding),
    base="cbdp.rounding.Rounding",
)
get = ROUNDINGS.get
known = ROUNDINGS.known


__all__ = ["ROUNDINGS", "Exactness", "Rounded", "Rounding", "get", "known"]
