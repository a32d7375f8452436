"""How ε is shared among the measured features before any data is seen: what an allocation is, and all of them by name or as a mapping that sums to ε."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from cbdp.errors import BudgetError, InputError
from cbdp.features import FeatureDag
from cbdp.parts import Parts, instance_of
from cbdp.privacy.numbers import Number, positive
from cbdp.privacy.unit import Sensitivity


@dataclass(frozen=True)
class DemandFacts:
    """What is public about the trips: the unit's sensitivity, and about how many there are and how they are spread.

    >>> facts = DemandFacts(trips=40_000, filled=0.2)
    >>> facts.trips, facts.law
    (40000, 'geometric')
    """

    sensitivity: Fraction | int = 1
    trips: float | None = None
    filled: float | None = None  # share of the trip types that hold any trips
    law: str = "geometric"  # of the noise
    public: tuple[str, ...] = ()  # features whose counts are public already: nothing is spent on them
    changes: tuple[
        tuple[str, Sensitivity], ...
    ] = ()  # how much one unit changes each feature's counts, where it is known

    def __post_init__(self) -> None:
        if self.trips is not None:
            positive(self.trips, "expected_trips")
        if self.filled is not None and positive(self.filled, "expected_filled") > 1:
            raise InputError(f"expected_filled is {self.filled}, a share of the trip types: give at most 1")

    def change(self, feature: str) -> Sensitivity:
        """How much one unit can change the counts of a feature; where that is not known, the worst."""
        most = math.ceil(self.sensitivity)
        return dict(self.changes).get(feature) or Sensitivity(most, most**2, most, most)


@dataclass(frozen=True, eq=False)
class AllocationProblem:
    """What ε (or ρ, where the noise is paid for in it) is to be shared among, and what may be known about it.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> AllocationProblem(features, ("total", "time", "singleton"), Fraction(1)).levels
    ('total', 'time', 'singleton')
    """

    features: FeatureDag
    levels: tuple[str, ...]  # the measured features, coarse ones first
    epsilon: Fraction
    target: Mapping[str, Any] | None = None  # how much the error of each feature matters
    facts: DemandFacts = field(default_factory=DemandFacts)
    enough: Fraction | None = (
        None  # the most that all tables need, where the estimator learns the rest from the leaves
    )


@dataclass(frozen=True)
class SpecialistRatios:
    """How shares serve a target. A specialist for a feature spends all of ε on it.

    `worst` is the largest weight × error / error of the specialist over the features of the target, with weights as parts of the largest
    one; `bound` is the least that this could be with any shares that give single trip types as much as `leaves`.

    >>> round(SpecialistRatios({"time": Fraction(1)}, worst=1.8, bound=1.75).worst, 1)
    1.8
    """

    target: Mapping[str, Fraction]
    worst: float
    bound: float
    leaves: Fraction = Fraction(0)
    sign: str = "ε"  # of what is shared

    def __str__(self) -> str:
        serves = ", ".join(f"{name} {weight}" for name, weight in self.target.items())
        alike = len({*self.target.values()}) == 1
        weighed = "" if alike else ", times its weight (1 for the largest),"
        others = f" that give {self.leaves} of {self.sign} to single trip types" if self.leaves else ""
        return (
            f"Shares are worked out for the target {serves}. The worst error among these{weighed} is {self.worst:.2f} times what it would be if "
            f"all of {self.sign} went to that table alone. No shares{others} bring it below {self.bound:.2f}."
        )


@dataclass(frozen=True)
class Budget(ABC):
    """A named way to share ε. Subclass it, set the class data, implement `split`.

    >>> from cbdp.privacy.budget import BUDGETS
    >>> isinstance(BUDGETS.get("uniform"), Budget)
    True
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""
    needs_target: ClassVar[bool] = False
    proportional: ClassVar[bool] = True  # shares grow in proportion to ε

    @abstractmethod
    def split(self, problem: AllocationProblem) -> dict[str, Fraction]:
        """Shares for the levels, in their order; they add up to ε exactly."""

    def specialist_ratios(self, problem: AllocationProblem) -> SpecialistRatios | None:  # noqa: ARG002
        """How well its shares serve what they are for; None for a budget that goes by position alone."""
        return None


# The table


BUDGETS: Parts[Budget] = Parts(
    "budget",
    "cbdp.budget",
    {
        "balanced": "cbdp.privacy.budget.allocation:BalancedBudget",
        "leaves": "cbdp.privacy.budget.allocation:LeavesBudget",
        "tables": "cbdp.privacy.budget.allocation:TablesBudget",
        "uniform": "cbdp.privacy.budget.allocation:UniformBudget",
        "geometric": "cbdp.privacy.budget.allocation:GeometricBudget",
        "optimal": "cbdp.privacy.budget.allocation:OptimalBudget",
    },
    instance_of(Budget),
    base="cbdp.privacy.budget.Budget",
)
BudgetLike = str | Budget | Mapping[str, Any]  # a name, a budget, or feature → share


def measured_features(features: FeatureDag, only: Sequence[str] | None = None) -> tuple[str, ...]:
    """The measured features, coarse ones first: all, or those named.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> measured_features(features), measured_features(features, ["singleton", "time"])
    (('total', 'time', 'singleton'), ('time', 'singleton'))
    """
    measured = list(features.features) if only is None else list(only)
    for name in measured:
        if measured.count(name) > 1:
            raise InputError(
                f"feature {name!r} is listed twice: a second answer would cost a second share of ε"
            )
        if name not in features:
            raise InputError(f"unknown feature {name!r}: there are {', '.join(features.features)}")
    if not measured:
        raise InputError("there is nothing to spend a budget on: measure at least one feature")
    order = list(features.features)
    return tuple(sorted(measured, key=lambda n: (features.size(n), order.index(n))))


def allocate(
    features: FeatureDag,
    epsilon: Number,
    budget: BudgetLike,
    only: Sequence[str] | None = None,
    *,
    target: Mapping[str, Any] | None = None,
    facts: DemandFacts | None = None,
    enough: Fraction | None = None,
) -> dict[str, Fraction]:
    """What each measured feature gets of ε, coarse ones first; it adds up to ε exactly.

    `target` and `facts` are what a budget "optimal" goes by, `enough` is the most that tables get with "leaves".

    >>> from cbdp.features import Universe
    >>> dag = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [])
    >>> {name: str(e) for name, e in allocate(dag, 1, "balanced").items()}
    {'total': '3/5', 'singleton': '2/5'}
    """
    levels, whole = measured_features(features, only), positive(epsilon)
    if isinstance(budget, Mapping):
        return _checked_mapping(levels, whole, budget)
    return BUDGETS.get(budget).split(
        AllocationProblem(features, levels, whole, target, facts or DemandFacts(), enough)
    )


def _checked_mapping(
    levels: Sequence[str], epsilon: Fraction, budget: Mapping[str, Any]
) -> dict[str, Fraction]:
    for name in budget:
        if name not in levels:
            raise InputError(f"a budget for {name!r}, which is not measured: there are {', '.join(levels)}")
    missing = [name for name in levels if name not in budget]
    if missing:
        raise InputError(f"no budget for {missing[0]!r}: name every measured feature")
    shares = {name: positive(budget[name], f"the budget of {name!r}") for name in levels}
    if sum(shares.values()) > epsilon:
        raise BudgetError(f"the budgets add up to {sum(shares.values())}, more than epsilon {epsilon}")
    if sum(shares.values()) < epsilon:
        raise InputError(
            f"the budgets add up to {sum(shares.values())}, less than epsilon {epsilon}: spend all of it"
        )
    return shares


__all__ = [
    "BUDGETS",
    "AllocationProblem",
    "Budget",
    "BudgetLike",
    "DemandFacts",
    "SpecialistRatios",
    "allocate",
    "measured_features",
]
