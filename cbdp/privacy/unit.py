"""What is protected: one trip, or what one person does in a period, with at most so many trips of it counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from cbdp.errors import InputError
from cbdp.privacy.bought import Bought

NEIGHBOURS = ("add-remove", "replace")
RELEASE = "release"
PERIODS = ("day", "week", "month", RELEASE)


@dataclass(frozen=True)
class Trip:
    """One trip is protected: neighbouring data sets differ by one trip added or removed, or by one replaced by another.

    >>> Trip().sensitivity, Trip("replace").sensitivity
    (1, 2)
    """

    neighbours: str = "add-remove"

    per: ClassVar[str] = RELEASE
    apart: ClassVar[str | None] = None

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
    """One person is protected: whether they travelled in a period at all and, if so, where and when.

    The period is the whole release, or a service day, a week (from Monday on) or a month: neighbours differ in all that one person does in
    one period. At most `max_trips` trips of each person in each period are counted, chosen at random by the engine. With `apart`, the
    name of a dimension (say "time"), at most one of them in each of its values, of each day where the universe tells days apart: then a
    person's trips cannot pile up in one count of a feature that tells those values apart. `bought` says how `max_trips` was chosen, where the
    data had a say in it and that was paid for.

    >>> print(Person("card", 4))
    one person with at most 4 trips, added or removed
    >>> print(Person("card", 4, per="day", apart="time"))
    one day of one person with at most 4 trips, kept apart by time, added or removed
    """

    column: str
    max_trips: int
    per: str = RELEASE
    apart: str | None = None
    bought: Bought | None = None

    def __post_init__(self) -> None:
        if isinstance(self.max_trips, bool) or not isinstance(self.max_trips, int) or self.max_trips < 1:
            raise InputError(f"max_trips is {self.max_trips!r}, it must be a whole number of at least 1")
        if self.per not in PERIODS:
            raise InputError(f"a person is protected per {self.per!r}: use {', '.join(map(repr, PERIODS))}")
        if self.apart is not None and not (isinstance(self.apart, str) and self.apart):
            raise InputError(f"trips are kept apart by {self.apart!r}: name a dimension, say 'time'")

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

    @property
    def period(self) -> str:
        """The period in words that follow a number of trips: " a day", or nothing for the whole release."""
        return "" if self.per == RELEASE else f" a {self.per}"

    def __str__(self) -> str:
        whose = "one person" if self.per == RELEASE else f"one {self.per} of one person"
        apart = "" if self.apart is None else f", kept apart by {self.apart}"
        paid = (
            ""
            if self.bought is None
            else f" ({self.max_trips} was bought for ε = {self.bought.epsilon} more)"
        )
        return f"{whose} with at most {self.max_trips} trips{paid}{apart}, added or removed"


Unit = Trip | Person

KEYS = {"person", "max_trips", "per", "apart"}


def unit_of(given: Any) -> Unit:
    """A unit from "trip", {"person": column, "max_trips": m}, perhaps with "per" and "apart", or itself.

    >>> unit_of({"person": "card_id", "max_trips": 4, "per": "day"})
    Person(column='card_id', max_trips=4, per='day', apart=None, bought=None)
    """
    if isinstance(given, Trip | Person):
        return given
    if given == "trip":
        return Trip()
    if isinstance(given, Mapping) and {"person", "max_trips"} <= set(given) <= KEYS:
        return Person(given["person"], given["max_trips"], given.get("per", RELEASE), given.get("apart"))
    raise InputError(
        f"unknown unit of privacy {given!r}: use 'trip' or {{'person': column, 'max_trips': m}}, with 'per' and 'apart' if wanted"
    )
