"""PRIVATE. How a configuration reads trips, and looks at them in other ways: other columns, other formats of times, whatever a column holds."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

from cbdp.counting import plan as counting_plan
from cbdp.counting.clock import EPOCH_UNITS_PER_SECOND, Clock, written_form
from cbdp.counting.columns import REAL, TEXT, WHOLE, Schema, kind_of
from cbdp.counting.inspection import REASONS, DroppedRows, Inspection, inspect, schema_of
from cbdp.counting.linking import DatedTimes, LinkedTaps, Prepared
from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.privacy.unit import Unit
from cbdp_features.calendar import WEEKDAYS
from cbdp_features.places import Stops

MAX_EXAMPLES = 50  # values of each kind that are looked at
NO_NUMBER = -(2**62) - 7  # a number that nobody writes
TripSource = (
    str | list[str] | Prepared
)  # what `cbdp.count` takes of a configuration: a path, a pattern, a URL, or several paths


class CountedNoun(Protocol):
    """A word for what is counted: trips, or taps."""

    @property
    def one(self) -> str: ...
    @property
    def many(self) -> str: ...
    def number(self, n: float) -> str: ...
    def say(self, text: str) -> str: ...


@dataclass(frozen=True, eq=False)
class Stated:
    """What a configuration states that rows are compared with, and advice is worded by. Public."""

    file: Path | str  # the configuration
    trips: tuple[str, ...]  # as it names them
    stops: str | None
    columns: Mapping[str, str]  # role → column, as it names them
    stop_dimensions: tuple[str, ...]  # whose values are the stops
    listed: tuple[str, ...]  # dimensions whose values it lists
    expected_trips: int | None
    calendar: str | None  # of a series
    noun: CountedNoun
    guessed: Mapping[str, str]  # role → column, by names and types
    count_columns: tuple[str, ...]  # which seem to hold numbers of trips, by their names and types
    city_zone: Callable[[], str | None] = lambda: None  # the zone that the agency's own GTFS feed states


@dataclass(frozen=True, eq=False)
class TripReading:
    """How trips are read."""

    stated: Stated
    trips: TripSource
    schema: Schema
    universe: Universe
    columns: Mapping[str, str]  # dimension → column; also count
    unit: Unit
    clock: Clock
    stops: Stops | None

    @property
    def person(self) -> str | None:
        return getattr(self.unit, "column", None)

    @property
    def used(self) -> set[str]:
        """The columns that are read."""
        return {*self.columns.values(), *([self.person] if self.person else [])}

    @property
    def formats(self) -> tuple[str, ...]:
        """The time formats that are declared; none: ISO 8601."""
        by = self.trips.by if isinstance(self.trips, Prepared) else None
        return by.formats if isinstance(by, DatedTimes) else self.clock.formats

    def with_formats(self, formats: tuple[str, ...]) -> TripReading:
        """The same, with other time formats."""
        source = self.trips
        if isinstance(source, Prepared) and isinstance(source.by, LinkedTaps | DatedTimes):
            source = replace(source, by=replace(source.by, formats=formats))
            if isinstance(source.by, DatedTimes):
                return replace(self, trips=source)
        return replace(self, trips=source, clock=replace(self.clock, format=formats))


def look(reading: TripReading) -> Inspection:
    """Read all trips. Private."""
    return inspect(
        reading.trips,
        reading.universe,
        columns=reading.columns,
        unit=reading.unit,
        clock=reading.clock,
        examples=MAX_EXAMPLES,
    )


def look_at(reading: TripReading, dimension: str, column: str, **changes: Any) -> Inspection:
    """Read one column as if it held one dimension, and nothing else."""
    alone = Universe(**{dimension: reading.universe.dimensions[dimension]})
    return inspect(
        reading.trips,
        alone,
        columns={dimension: column},
        clock=reading.clock,
        examples=MAX_EXAMPLES,
        **changes,
    )


def values_of(reading: TripReading, column: str, most: int = MAX_EXAMPLES) -> tuple[tuple[str, int], ...]:
    """The commonest values of a column, with their rows."""
    return values_in(reading.trips, column, most)[1]


def values_in(trips: TripSource, column: str, most: int) -> tuple[int, tuple[tuple[str, int], ...]]:
    """How many rows there are, and the commonest values of a column with theirs. Private."""
    kind = kind_of(schema_of(trips).kinds[column]).name
    if kind not in (TEXT, WHOLE, REAL):
        return 0, ()
    nothing = Universe(
        value=["\0" if kind == TEXT else NO_NUMBER]
    )  # no value is this one, so that all are examples
    inspection = inspect(trips, nothing, columns={"value": column}, examples=most)
    return inspection.read, next((d.examples for d in inspection.dropped if d.examples), ())


def days_in(reading: TripReading, column: str) -> tuple[dt.date, dt.date] | None:
    """The first and the last day of a column of dates, whether or not the count asks for days. Private."""
    week = Universe(day=list(WEEKDAYS))
    try:
        inspection = inspect(
            reading.trips, week, columns={counting_plan.DAY_KEY: column}, clock=reading.clock
        )
    except InputError:  # of a type that holds no dates
        return None
    return (
        None if inspection.first is None or inspection.last is None else (inspection.first, inspection.last)
    )


def dropped_as(inspection: Inspection, status: int) -> list[DroppedRows]:
    """What was dropped for a reason, by column."""
    return [d for d in inspection.dropped if d.reason == REASONS[status]]


def counts_column(reading: TripReading) -> str | None:
    return counting_plan.weight_column(reading.columns, reading.universe)


# A likely mistake, and what to do about it.


@dataclass(frozen=True)
class Cause:
    """A likely cause of rows that do not count, or count for something else.

    `what` and `cure` quote no cell of any row, so that a release that stops may say them on a terminal; `shown` and `line`, what to
    write, do. Private, all of it.
    """

    rows: int  # that it may explain
    what: str
    cure: str
    shown: tuple[str, ...] = ()
    line: str = ""


def quoted_examples(examples: Sequence[tuple[str, int]], most: int = 5) -> tuple[str, ...]:
    """Values of rows with how often they stand there."""
    more = len(examples) - most
    listed = [f"{value!r} in {number_of(rows, 'row')}" for value, rows in examples[:most]]
    return (*listed, *([f"and {more} more"] if more > 0 else []))


def number_of(number: int, what: str) -> str:
    """A number of things.

    >>> number_of(1, "row"), number_of(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {what}{'s' * (number != 1)}"


def toml_text(value: str | Sequence[str]) -> str:
    """A text, or a list of them, as a configuration has it."""
    if not isinstance(value, str) and len(value) == 1:
        value = value[0]
    return (
        json.dumps(value, ensure_ascii=False)
        if isinstance(value, str)
        else "[" + ", ".join(json.dumps(v, ensure_ascii=False) for v in value) + "]"
    )


# Formats that texts may be written in: candidates for `time_format`, found by the same patterns that counting reads by.


DATES = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%Y",
    "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%b-%Y", "%d-%b-%y",
)  # fmt: skip
_SPACED = ("%d %b %Y", "%b %d %Y", "%b %d, %Y", "%d %B %Y", "%B %d %Y", "%B %d, %Y")
_TIMES = (
    "%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "%I:%M:%S%p", "%I:%M%p", "%I %p", "%H:%M:%S.%f", "%H.%M", "%H%M", "%H%M%S",
)  # fmt: skip
_JOINS = (" ", "T", ", ", "  ")
_EPOCH = {
    "epoch_s": re.compile(r"[ ]*\d{9,10}(\.0*)?[ ]*"),
    "epoch_ms": re.compile(r"[ ]*\d{12,13}(\.0*)?[ ]*"),
}

FORMATS: tuple[str, ...] = (
    *(d + join + t for d in (*DATES, *_SPACED) for join in _JOINS for t in _TIMES),
    "%Y%m%d%H%M%S",
    *DATES,
    *_SPACED,
    *_TIMES,
    *EPOCH_UNITS_PER_SECOND,
)


def day_first(form: str) -> bool | None:
    """Whether the day stands before the month where either might; None where it is clear.

    >>> day_first("%d/%m/%Y"), day_first("%m/%d/%Y"), day_first("%Y-%m-%d"), day_first("%d %b %Y")
    (True, False, None, None)
    """
    match = re.match(r"%([dm])[-/.]%([dm])", form)
    return None if match is None else match[1] == "d"


def swapped(form: str) -> str:
    """The format with day and month in each other's place."""
    return form.replace("%d", "\0").replace("%m", "%d").replace("\0", "%m")


def cover(texts: Mapping[str, int], *, day: bool, most: int = 3) -> tuple[str, ...]:
    """Few formats that fit as many of these texts as possible (text → rows); `day`: the day first, where it is not clear.

    >>> cover({"01/03/2020 00:14": 5, "Mar 1 2020 1:05 PM": 2}, day=True)
    ('%d/%m/%Y %H:%M', '%b %d %Y %I:%M %p')
    """
    left = dict(texts)
    chosen: list[str] = []
    allowed = [f for f in FORMATS if day_first(f) in (None, day)]
    while left and len(chosen) < most:
        best = max(allowed, key=lambda f: sum(rows for text, rows in left.items() if fits(f, text)))
        rest = {text: rows for text, rows in left.items() if not fits(best, text)}
        if len(rest) == len(left):
            break
        chosen.append(best)
        left = rest
    return tuple(chosen)


@lru_cache(maxsize=2**16)
def fits(form: str, text: str) -> bool:
    """Whether a text is written in a format."""
    return _pattern(form).fullmatch(text) is not None


@cache
def _pattern(form: str) -> re.Pattern[str]:
    """Kept: there are more formats than patterns that `re` remembers, and to compile one takes longer than to use it."""
    return _EPOCH[form] if form in _EPOCH else re.compile(written_form(form).pattern)


def shape(text: str) -> str:
    """What a text looks like, without saying what it is.

    >>> shape("01/03/2020 00:14"), shape("Mar 1 2020 1:05 pm")
    ('99/99/9999 99:99', 'Aaa 9 9999 9:99 AM')
    """
    digits = re.sub(r"\d", "9", text[:40])
    plain = re.sub(r"[A-Za-z]+", lambda m: _letters(m[0]), digits)
    return re.sub(r"[^\x20-\x7e]", "?", plain)


def _letters(word: str) -> str:
    if word.lower() in ("am", "pm"):
        return "AM"
    return word if word in ("T", "Z") else ("A" if word[0].isupper() else "a") + "a" * (len(word) - 1)


# From when to when rows are, for the curator's eyes, also where the count adds up all days and reads no dates.


def date_lines(reading: TripReading, inspection: Inspection) -> Iterator[str]:
    """The first and the last day, or why they are not known."""
    column = reading.stated.columns.get(counting_plan.DAY_KEY)
    span = (
        (inspection.first, inspection.last)
        if inspection.first
        else days_in(reading, column)
        if column
        else None
    )
    if span is not None:
        yield f"from {span[0]} to {span[1]}"
    elif column is not None and counting_plan.DAY_KEY not in reading.universe.dimensions:
        yield _otherwise(reading, column)
    elif column is None and inspection.counted:
        times = reading.columns.get("time")
        where = f"column {times!r} holds times of day alone" if times else "no column of dates is named"
        yield f"no dates: {where}. If your file has dates, name their column: columns = {{ day = … }}"


def _otherwise(reading: TripReading, column: str) -> str:
    """Dates that are not needed, read by the format in which they seem to be written."""
    try:
        forms = cover(dict(values_of(reading, column)), day=True)
        span = days_in(reading.with_formats(forms), column)
    except InputError:
        span = None
    if span is None or any(day_first(form) is not None for form in forms):
        return f"the dates in column {column!r} are not understood; they are needed only to tell days apart"
    return f"from {span[0]} to {span[1]} (dates are read by time_format = {toml_text(forms)}: write it in [data] if you state universe.days)"
