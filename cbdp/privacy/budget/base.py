"""What a budget is: a way to share ε among the measured features, decided before any data is seen."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from cbdp.errors import InputError
from cbdp.features import FeatureDag
from cbdp.privacy.numbers import positive
from cbdp.privacy.sensitivity import Change


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
        tuple[str, Change], ...
    ] = ()  # how much one unit changes each feature's counts, where it is known

    def __post_init__(self) -> None:
        if self.trips is not None:
            positive(self.trips, "expected_trips")
        if self.filled is not None and positive(self.filled, "expected_filled") > 1:
            raise InputError(f"expected_filled is {self.filled}, a share of the trip types: give at most 1")

    def change(self, feature: str) -> Change:
        """How much one unit can change the counts of a feature; where that is not known, the worst."""
        most = math.ceil(self.sensitivity)
        return dict(self.changes).get(feature) or Change(most, most**2, most, most)


@dataclass(frozen=True, eq=False)
class Asked:
    """What ε (or ρ, where the noise is paid for in it) is to be shared among, and what may be known about it.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> Asked(features, ("total", "time", "singleton"), Fraction(1)).levels
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
class Standing:
    """How shares serve a target. A specialist for a feature spends all of ε on it.

    `worst` is the largest weight × error / error of the specialist over the features of the target, with weights as parts of the largest
    one; `bound` is the least that this could be with any shares that give single trip types as much as `leaves`.

    >>> round(Standing({"time": Fraction(1)}, worst=1.8, bound=1.75).worst, 1)
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
    def split(self, asked: Asked) -> dict[str, Fraction]:
        """Shares for the levels, in their order; they add up to ε exactly."""

    def standing(self, asked: Asked) -> Standing | None:  # noqa: ARG002
        """How well its shares serve what they are for; None for a budget that goes by position alone."""
        return None
