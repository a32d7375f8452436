"""The counting plan: what an engine is asked to do, as frozen values of relational steps. All of it is public: the key of a count is handed over apart.

A plan is made on the driver from public things alone (the universe, the clock, the columns' types), before a row is read. It
is the same for every engine, and whole numbers and bytes throughout, so that engines cannot disagree:

    1 read      the `fields`: columns of the source, each of one kind
    2 moments   a field read as a clock: its day (since 1970) and its second of the day, in the zone's time
    3 match     each axis (dimension) finds a row's code by its `ways`, in order, the first that matches; keys are unique within
                a way and compared as bytes, whole numbers or doubles, so that a row finds at most one code; no code: dropped
    4 zeros     rows at public structural zeros are dropped: before bounding; without a bound by the driver, after grouping
    5 weigh     with a weight, the row stands for that many trips; what is not a whole number of at least 0 is dropped
    6 bound     with a person, rows without one are dropped, and at most `most` trips of each are kept (cbdp.counting.bounding); with a
                period, rows without one are dropped too, and `most` trips are kept of each person in each period; with `apart`, one at
                most of each person, period and combination of these axes' codes, before the others are counted
    7 group     `flat`, the place of the codes in the product of the axes, with its number of trips

Only (flat, n) comes back. docs/explanation/counting.md has the rules in full, and the proof that the bound holds.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.counting.clock import EPOCH_DATE, WrittenForm, ZoneTable
from cbdp.counting.columns import ColumnKind
from cbdp.errors import InputError

# trips: weights, and the sums of them, saturate here, so that no sum overflows; one trip still changes a count by one at most
SATURATED_COUNT = 2**40


@dataclass(frozen=True)
class Field:
    """A column that is read: its name in the source and what it holds."""

    name: str
    kind: ColumnKind


@dataclass(frozen=True)
class ClockForm:
    """A way to read a field as a clock.

    `stamp`: an instant (of a time stamp, or of text in a written form with a date and a time), which the zone moves.
    `epoch`: whole units since 1970, `per_second` of them in a second; likewise an instant.
    `date`: a day and no time. `time`: a time of day and no date. `hour`: a whole number from 0 to 23, the start of that hour.
    Where a field is no text but `written` is there, its whole number is read as digits ("20260302").
    """

    gives: Literal["stamp", "epoch", "date", "time", "hour"]
    written: WrittenForm | None = None  # of text
    per_second: int = 1


@dataclass(frozen=True)
class ClockField:
    """A field as a clock. Instants go before dates and times alone; of several forms the first that fits counts."""

    field: int
    forms: tuple[ClockForm, ...]
    zone: str | None  # instants are shown in this zone of the plan; None: as they stand, or UTC
    starts: int = 0  # the second at which a day begins: what is earlier belongs to the day before


KeyKind = Literal["bytes", "whole", "dotted", "real", "truth", "second", "day"]


@dataclass(frozen=True, eq=False)
class Lookup:
    """A way from a row to a code: what is looked up, and the codes by key.

    by        of      key
    bytes     field   the bytes of text
    whole     field   a whole number: of a whole field; of a real one that is whole; of text that matches clock.WHOLE_PATTERN
    dotted    field   the same, but of text only as in "289.0" (clock.DOTTED_PATTERN)
    real      field   a double; of text that matches clock.REAL_PATTERN
    truth     field   1 or 0; of text that matches clock.TRUE_PATTERN or FALSE_PATTERN
    second    moment  the second of the day // width
    day       moment  the day since 1970
    """

    by: KeyKind
    of: int
    keys: tuple[bytes, ...] | Ints | NDArray[np.float64] = field(repr=False)
    codes: Ints = field(repr=False)
    width: int = 1


@dataclass(frozen=True)
class Axis:
    """A dimension of the universe. No ways: its column holds nothing, and no row has a code."""

    name: str
    size: int
    field: int
    ways: tuple[Lookup, ...]


@dataclass(frozen=True, eq=False)
class StructuralZeros:
    """Structural zeros of some axes: flat combinations of them that are `out`, or, being fewer, all that are not."""

    axes: tuple[int, ...]
    shape: tuple[int, ...]
    flat: Ints = field(repr=False)
    out: bool


@dataclass(frozen=True, eq=False)
class PeriodLookup:
    """The period of a row, by its code at an axis of dates, or by the day of a moment. What is not among the keys has none: dropped."""

    axis: int | None
    moment: int | None
    keys: Ints = field(repr=False)  # codes, or days since 1970
    periods: Ints = field(repr=False)


@dataclass(frozen=True)
class ContributionBound:
    """At most `most` trips of each person are kept, or of each person in each period."""

    person: int  # field
    most: int
    within: PeriodLookup | None = None
    apart: tuple[int, ...] = ()  # axes


@dataclass(frozen=True)
class CountingPlan:
    """All that an engine is to know, but the key."""

    fields: tuple[Field, ...]
    moments: tuple[ClockField, ...]
    axes: tuple[Axis, ...]
    zones: Mapping[str, ZoneTable]
    zeros: tuple[StructuralZeros, ...] = ()
    weight: int | None = None  # field
    bound: ContributionBound | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)


DAYS_AXIS = "days of the release"  # the name of the axis that restricts a count to service days


@dataclass(frozen=True)
class ServiceDays:
    """Service days from a first to a last, both included: one release of a series looks at one period, and at no other row.

    The restriction is one more axis of the counting plan, with a single code for the days inside. A row on another day, or on none that
    can be told, finds no code and is dropped before persons are bounded, as if it were not there.
    """

    first: dt.date
    last: dt.date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise InputError(f"days end on {self.last}, which is before their start {self.first}")

    def axis(self, field: int, moment: int) -> Axis:
        """An axis of one code that the rows of these days have, by the day of a moment."""
        numbers = range((self.first - EPOCH_DATE).days, (self.last - EPOCH_DATE).days + 1)
        keys = np.fromiter(numbers, np.int64)
        return Axis(DAYS_AXIS, 1, field, (Lookup("day", moment, keys, np.zeros(len(keys), dtype=np.int64)),))

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"
