"""What a charge is for: the service days of its rows, the unit that its promise protects, the part of a series that it pays."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cbdp.errors import InputError
from cbdp.privacy.running import LONGEST, STRATEGIES
from cbdp.privacy.unit import Person, Unit

PERIODS = ("release", "day", "week", "month")
TRIP, REPLACED, PERSON = "trip", "trip replaced", "person"
WITHIN: Mapping[
    str, tuple[str, ...]
] = {  # calendar → periods of a unit that lie within one release; where these are days, each is a day
    "": ("day",),
    "weekly": ("release", "day", "week"),
    "monthly": ("release", "day", "month"),
}


@dataclass(frozen=True)
class Covers:
    """The service days that a release looks at, and what is protected in them.

    `apart` says that every measured table tells the unit's periods apart, so that what one period changes is in other counts
    than what another changes: then several periods of a person cost their sum also where ρ is counted.

    `strategy` names the sums over releases that a charge for running totals pays, of at most `periods` releases: several days of a
    person cost what these sums make of them, which is less than for any group of so many units. `calendar` says how long these releases
    are; each of them is a release of its own also where the unit is one release.

    >>> import datetime as dt
    >>> march = Covers("person", per="day", max_trips=4, first=dt.date(2026, 3, 1), last=dt.date(2026, 3, 31))
    >>> (march.last - march.first).days + 1
    31
    """

    unit: str  # TRIP, REPLACED or PERSON
    per: str = "release"
    max_trips: int = 0  # of a person; 0 for a trip
    first: dt.date | None = None  # None: any day
    last: dt.date | None = None
    apart: bool = False
    strategy: str = ""
    periods: int = 0
    calendar: str = ""  # weekly or monthly; else releases are of days
    days: str = ""  # how rows were given their service day, in words; "" in charges of earlier versions

    def __post_init__(self) -> None:
        if self.unit not in (TRIP, REPLACED, PERSON) or self.per not in PERIODS:
            raise InputError(f"a charge cannot be for the unit {self.unit!r} per {self.per!r}")
        if (self.unit == PERSON) != (self.max_trips > 0) or (self.unit != PERSON and self.per != "release"):
            raise InputError(f"a charge for {self.unit!r} cannot have max_trips = {self.max_trips}")
        if (self.first is None) != (self.last is None):
            raise InputError("a charge covers days from a first to a last: give both or neither")
        if self.first and self.last and self.last < self.first:
            raise InputError(f"a charge covers days to {self.last}, which is before its first {self.first}")
        if self.strategy or self.periods or self.calendar:
            self._check_releases()

    def _check_releases(self) -> None:
        """The price of running totals is that of releases, none of which cuts a period of the unit."""
        if (self.strategy or self.periods) and (
            self.strategy not in STRATEGIES or not 1 <= self.periods <= LONGEST
        ):
            raise InputError(f"a charge cannot be for {self.periods} periods of {self.strategy!r}")
        if self.calendar not in WITHIN:
            raise InputError(f"a charge cannot be for a calendar that is {self.calendar!r}")
        fits = self.unit != PERSON or self.per in WITHIN[self.calendar]
        monday = self.per != "week" or (self.first is not None and self.first.weekday() == 0)
        if self.apart or self.first is None or not fits or not monday:
            raise InputError(
                "running totals are charged for the days of whole releases, from a first to a last"
            )

    @classmethod
    def of(
        cls, unit: Unit, first: dt.date | None = None, last: dt.date | None = None, *, apart: bool = False
    ) -> Covers:
        if isinstance(unit, Person):
            return cls(PERSON, getattr(unit, "per", "release"), unit.max_trips, first, last, apart)
        kind = TRIP if unit.neighbours == "add-remove" else REPLACED
        return cls(kind, first=first, last=last, apart=apart)

    @classmethod
    def of_releases(cls, unit: Unit, first: dt.date, last: dt.date, calendar: str = "daily") -> Covers:
        """Of the releases of a calendar between two days; one of a day protects one day of a person, whatever the unit calls it."""
        found = cls.of(unit, first, last)
        if calendar != "daily":
            return replace(found, calendar=calendar)
        return replace(found, per="day") if found.unit == PERSON else found

    def fields(self) -> dict[str, str | int | bool]:
        """As an entry states it. What is as usual is left out, so that there is one way to write it."""
        found: dict[str, str | int | bool] = {"unit": self.unit}
        if self.unit == PERSON:
            found |= {"max_trips": self.max_trips, "per": self.per}
        if self.first and self.last:
            found |= {"first": self.first.isoformat(), "last": self.last.isoformat()}
        if self.strategy:
            found |= {"strategy": self.strategy, "periods": self.periods}
        if self.calendar:
            found["calendar"] = self.calendar
        if self.days:
            found["days"] = self.days
        return found | ({"apart": True} if self.apart else {})

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Covers | None:
        """What an entry states; None if it states nothing, as those of earlier versions."""
        if "unit" not in fields:
            if fields.keys() & COVERS.keys():
                raise InputError("days or periods of no unit")
            return None
        first, last = (dt.date.fromisoformat(fields[n]) if n in fields else None for n in ("first", "last"))
        per, most = fields.get("per", "release"), fields.get("max_trips", 0)
        sums = fields.get("strategy", ""), fields.get("periods", 0), fields.get("calendar", "")
        days = fields.get("days", "")
        found = cls(fields["unit"], per, most, first, last, fields.get("apart", False), *sums, days)
        if found.fields() != {n: v for n, v in fields.items() if n in COVERS}:
            raise InputError("it is not written as a ledger writes it")
        return found


@dataclass(frozen=True)
class Part:
    """Which release of which series a charge pays: the series' name and version, the period, and the stage.

    >>> Part("daily", 1, "2026-03-02", "final", "city").period
    '2026-03-02'
    """

    series: str
    version: int
    period: str
    stage: str
    shape: str  # hash of universe and features, which are the same for all releases of a version

    def fields(self) -> dict[str, str | int | bool]:
        return {
            "series": self.series,
            "version": self.version,
            "period": self.period,
            "stage": self.stage,
            "shape": self.shape,
        }

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Part | None:
        stated = {name: fields[name] for name in PART if name in fields}
        if not stated:
            return None
        if len(stated) != len(PART):
            raise InputError("a part of a series is stated in full or not at all")
        return cls(**stated)


# the fields of an entry that state them, with their types
COVERS: Mapping[str, type] = {
    "unit": str,
    "max_trips": int,
    "per": str,
    "first": str,
    "last": str,
    "apart": bool,
    "strategy": str,
    "periods": int,
    "calendar": str,
    "days": str,
}
PART: Mapping[str, type] = {"series": str, "version": int, "period": str, "stage": str, "shape": str}
