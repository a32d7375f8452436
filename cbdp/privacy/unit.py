"""What is protected: one trip, or one person with at most so many trips. Sensitivity follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cbdp.errors import InputError

NEIGHBOURS = ("add-remove", "replace")


@dataclass(frozen=True)
class Trip:
    """Whether one trip was made: neighbours differ by one trip added or removed, or by one replaced by another."""

    neighbours: str = "add-remove"

    def __post_init__(self) -> None:
        if self.neighbours not in NEIGHBOURS:
            raise InputError(
                f"unknown neighbours {self.neighbours!r}: use {' or '.join(map(repr, NEIGHBOURS))}"
            )

    @property
    def sensitivity(self) -> int:
        """How much one unit can change a partition's counts in total."""
        return 1 if self.neighbours == "add-remove" else 2

    @property
    def touched(self) -> int:
        """How many of a partition's counts one unit can change."""
        return self.sensitivity

    @property
    def pile(self) -> int:
        """How much one unit can add to a single count."""
        return 1

    def __str__(self) -> str:
        return "one trip, added or removed" if self.sensitivity == 1 else "one trip, replaced by another"


@dataclass(frozen=True)
class Person:
    """Whether one person travelled at all: at most `max_trips` of each are counted, chosen at random by the engine."""

    column: str
    max_trips: int

    def __post_init__(self) -> None:
        if isinstance(self.max_trips, bool) or not isinstance(self.max_trips, int) or self.max_trips < 1:
            raise InputError(f"max_trips is {self.max_trips!r}, it must be a whole number of at least 1")

    @property
    def sensitivity(self) -> int:
        """How much one unit can change a partition's counts in total."""
        return self.max_trips

    @property
    def touched(self) -> int:
        """How many of a partition's counts one unit can change."""
        return self.max_trips

    @property
    def pile(self) -> int:
        """How much one unit can add to a single count."""
        return self.max_trips

    def __str__(self) -> str:
        return f"one person with at most {self.max_trips} trips, added or removed"


Unit = Trip | Person


def unit_of(given: Any) -> Unit:
    """A unit from "trip", {"person": column, "max_trips": m}, or itself.

    >>> unit_of({"person": "card_id", "max_trips": 4}).sensitivity
    4
    """
    if isinstance(given, Trip | Person):
        return given
    if given == "trip":
        return Trip()
    if isinstance(given, Mapping) and set(given) == {"person", "max_trips"}:
        return Person(given["person"], given["max_trips"])
    raise InputError(f"unknown unit of privacy {given!r}: use 'trip' or {{'person': column, 'max_trips': m}}")
