"""Budgets named after what they serve: single trip types (leaves), tables, or both."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cbdp.features import SINGLETON
from cbdp.privacy.budget.base import Asked, Budget

ENOUGH = Fraction(1, 50)
"""Of ε for one trip, for all tables: tells the number of trips to within a few hundred, and the leaves tell the rest."""


@dataclass(frozen=True)
class Served(Budget):
    """The leaves get their share of ε, and the tables share the rest evenly."""

    leaves: ClassVar[Fraction]

    def split(self, asked: Asked) -> dict[str, Fraction]:
        tables = [name for name in asked.levels if name != SINGLETON]
        if not tables or SINGLETON not in asked.levels:
            return dict.fromkeys(asked.levels, asked.epsilon / len(asked.levels))
        own = self.own(asked)
        return {n: own if n == SINGLETON else (asked.epsilon - own) / len(tables) for n in asked.levels}

    def own(self, asked: Asked) -> Fraction:
        """What the leaves get."""
        return asked.epsilon * self.leaves


@dataclass(frozen=True)
class LeavesBudget(Served):
    """Nine tenths for single trip types; or all but what is enough for tables, where the estimator can make do with that."""

    name: ClassVar[str] = "leaves"
    about: ClassVar[str] = "for single trip types: nearly all on them"
    leaves: ClassVar[Fraction] = Fraction(9, 10)
    proportional: ClassVar[bool] = False

    def own(self, asked: Asked) -> Fraction:
        own = asked.epsilon * self.leaves
        return own if asked.enough is None else max(own, asked.epsilon - asked.enough)


@dataclass(frozen=True)
class BalancedBudget(Served):
    """The default."""

    name: ClassVar[str] = "balanced"
    about: ClassVar[str] = "for both: two fifths on single trip types, the rest on tables"
    leaves: ClassVar[Fraction] = Fraction(2, 5)


@dataclass(frozen=True)
class TablesBudget(Served):
    """Of the paper's five features each table then gets more than its fifth."""

    name: ClassVar[str] = "tables"
    about: ClassVar[str] = "for tables: a sixth on single trip types"
    leaves: ClassVar[Fraction] = Fraction(1, 6)
