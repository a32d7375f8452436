"""Budgets named after what they serve: single trip types (leaves), tables, or both. Each is a target of one optimiser.

They take nothing for granted about the trips: their parts follow from the features and the law of the noise, and are the same for every ε.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cbdp.features import SINGLETON
from cbdp.privacy.budget.base import Asked, Budget, DemandFacts, Standing
from cbdp.privacy.budget.optimal import optimal, standing
from cbdp.privacy.laws import Law
from cbdp.privacy.sensitivity import Change

ENOUGH = Fraction(1, 50)
"""Of ε for one trip, for all tables: tells the number of trips to within a few hundred, and the leaves tell the rest."""
MUCH_NOISE = Fraction(1, 10)  # an ε at which noise is far wider than a trip, so that only ratios of ε count


@dataclass(frozen=True)
class ForTables(Budget):
    """Leaves get their part of ε, and the rest makes the tables as good as they can be together: none is left behind."""

    leaves: ClassVar[Fraction]

    def split(self, asked: Asked) -> dict[str, Fraction]:
        target, facts = dict.fromkeys(tables_of(asked), 1), _noise_alone(asked.facts)
        found = optimal(asked.features, asked.levels, MUCH_NOISE, target, facts, self.leaves)
        return {name: share / MUCH_NOISE * asked.epsilon for name, share in found.items()}

    def standing(self, asked: Asked) -> Standing:
        return _standing(asked, self.split(asked), tables_of(asked), self.compared)

    @property
    def compared(self) -> Fraction:
        """What those shares give to leaves that these are compared with."""
        return self.leaves


@dataclass(frozen=True)
class BalancedBudget(ForTables):
    """The default: two fifths, so that an error of a trip type is at most two and a half times that of a specialist."""

    name: ClassVar[str] = "balanced"
    about: ClassVar[str] = "for both: two fifths on single trip types, the rest as tables need it"
    leaves: ClassVar[Fraction] = Fraction(2, 5)


@dataclass(frozen=True)
class TablesBudget(ForTables):
    """Leaves get what the tables hardly miss: their worst ratio stays within 5 % of the least there could be."""

    name: ClassVar[str] = "tables"
    about: ClassVar[str] = "for tables: nearly all on them, as they need it"
    leaves: ClassVar[Fraction] = Fraction(1, 25)

    @property
    def compared(self) -> Fraction:
        return Fraction(0)


@dataclass(frozen=True)
class LeavesBudget(Budget):
    """Only single trip types matter: they get all but what tables need to tell the number of trips, which these share evenly.

    That is a tenth of ε, or `enough` where the estimator can make do with that: by trials, for the model has no use for tables here.
    """

    name: ClassVar[str] = "leaves"
    about: ClassVar[str] = "for single trip types: nearly all on them"
    proportional: ClassVar[bool] = False
    spared: ClassVar[Fraction] = Fraction(1, 10)

    def split(self, asked: Asked) -> dict[str, Fraction]:
        tables = [name for name in asked.levels if name != SINGLETON]
        if not tables or SINGLETON not in asked.levels:
            return dict.fromkeys(asked.levels, asked.epsilon / len(asked.levels))
        spared = asked.epsilon * self.spared
        spared = spared if asked.enough is None else min(spared, asked.enough)
        return {n: asked.epsilon - spared if n == SINGLETON else spared / len(tables) for n in asked.levels}

    def standing(self, asked: Asked) -> Standing:
        served = [name for name in asked.levels if name == SINGLETON] or list(asked.levels)
        return _standing(asked, self.split(asked), served)


def tables_of(asked: Asked) -> list[str]:
    """The measured features that are tables; where there is none, the trip types."""
    return [name for name in asked.levels if name != SINGLETON] or list(asked.levels)


def _standing(
    asked: Asked, given: Mapping[str, Fraction], served: Sequence[str], leaves: Fraction = Fraction(0)
) -> Standing:
    """As the shares were worked out: where noise is wide, and nothing is known about the trips."""
    part = {name: share / asked.epsilon * MUCH_NOISE for name, share in given.items()}
    return standing(asked.features, part, dict.fromkeys(served, 1), _noise_alone(asked.facts), leaves)


def _noise_alone(facts: DemandFacts) -> DemandFacts:
    """What does not depend on the trips. A change that is the same for all features only scales all noise, and does not matter."""
    alike = len({change for _, change in facts.changes}) <= 1
    return DemandFacts(law=facts.law, public=facts.public, changes=() if alike else facts.changes)


def enough_of(law: type[Law], change: Change) -> Fraction:
    """`ENOUGH` for a unit that changes counts so; where noise is paid for in ρ, what makes it as wide: 2(Δ/ε)² = l2²/2ρ."""
    if law.currency == "epsilon":
        return ENOUGH * change.l1
    return ENOUGH**2 / 4 * change.l2_squared
