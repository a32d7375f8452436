"""How much one unit of privacy can change one feature's counts: it follows from the unit and from what the feature tells apart.

A person's counted trips of one period add a vector x of whole numbers to a feature's counts. All of x adds up to at most k = `max_trips`, so the counts
change by k in all, and where nothing else is known, one count may change by k: x·x ≤ k². With `apart` a person has at most one trip in each slot, so
that a count which holds g slots changes by at most g. Fill the counts that hold the most slots first, up to k trips: every x that is
possible is majorised by that vector, and x·x, which is convex, is greatest there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cbdp.errors import InputError
from cbdp.privacy.unit import RELEASE, Trip, Unit


@dataclass(frozen=True)
class Change:
    """The most by which adding or removing one unit can change one feature's counts."""

    l1: int  # all counts together
    l2_squared: int  # their squares together: the Euclidean length, squared
    touched: int  # how many counts
    pile: int  # a single count

    def __post_init__(self) -> None:
        if min(self.l1, self.l2_squared, self.touched, self.pile) < 1:
            raise InputError(f"{self}: each of the numbers must be at least 1")


class Tells(Protocol):
    """What a feature tells apart of one person's trips in one period, as `cbdp.features.telling` finds it."""

    @property
    def elements(self) -> int: ...  # how many counts there are
    @property
    def slots(self) -> int | None: ...  # of a period; None where trips are not kept apart
    @property
    def in_one(self) -> Sequence[int]: ...  # how many of them counts hold, the largest first
    @property
    def periods(self) -> bool: ...  # whether no count holds trips of two periods


def change_of(unit: Unit, tells: Tells | None = None) -> Change:
    """How much one unit can change the counts of a feature; of a feature of which nothing is known, the worst.

    Proof: docs/proofs/counting.md and docs/proofs/sensitivity.md.

    >>> from cbdp.privacy.unit import Person
    >>> change_of(Trip()), change_of(Trip("replace"))
    (Change(l1=1, l2_squared=1, touched=1, pile=1), Change(l1=2, l2_squared=2, touched=2, pile=1))
    >>> change_of(Person("card", 4))
    Change(l1=4, l2_squared=16, touched=4, pile=4)
    """
    if isinstance(unit, Trip):
        both = 1 if unit.neighbours == "add-remove" else 2
        return Change(both, both, both, 1)
    most = unit.max_trips
    if tells is None:
        return Change(most, most**2, most, most)
    if unit.apart is None:
        return Change(most, most**2, min(most, tells.elements), most)
    if tells.slots is None or not tells.in_one:
        raise InputError(f"trips are kept apart by {unit.apart!r}: say how many slots there are")
    most = min(most, tells.slots)
    piles = _filled(most, tells.in_one)
    return Change(most, sum(pile**2 for pile in piles), min(most, tells.elements), piles[0])


def change_over(unit: Unit, tells: Tells | None = None, *, periods: int) -> Change:
    """How much one person can change the counts of a feature in so many periods of one release: with a day as the period, 7 are a week.

    Where no count holds trips of two periods, the periods' squares add up. Else the same counts may change in each of them, and lengths add up.

    Proof: docs/proofs/sensitivity.md.

    >>> from cbdp.privacy.unit import Person
    >>> change_over(Person("card", 4, per="day"), periods=7)
    Change(l1=28, l2_squared=784, touched=28, pile=28)
    """
    if periods < 1:
        raise InputError(f"{periods!r} periods: give a whole number of at least 1")
    if unit.per == RELEASE and periods > 1:
        raise InputError(f"{unit} has one period, the release: ask for 1, not {periods}")
    one = change_of(unit, tells)
    if tells is not None and tells.periods:
        return Change(periods * one.l1, periods * one.l2_squared, periods * one.touched, one.pile)
    touched = periods * one.touched if tells is None else min(periods * one.touched, tells.elements)
    return Change(periods * one.l1, periods**2 * one.l2_squared, touched, periods * one.pile)


def _filled(most: int, in_one: Sequence[int]) -> list[int]:
    """So many trips, put into the counts that hold the most slots."""
    piles, left = [], most
    for slots in sorted(in_one, reverse=True):
        if left:
            piles.append(min(slots, left))
            left -= piles[-1]
    return piles
