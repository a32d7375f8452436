"""Whether the rows can be what they are said to be: repeated rows, days without rows, another number of trips than expected, times in UTC.

Each finding is a `Cause` that stops a release before its charge; `cbdp inspect` shows the same ones. Every threshold is a wide share of all rows, stated
here and in docs/explanation/threat-model.md, which also says what an outsider could learn from a stop. Private, all of it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from cbdp.app.guessing.stops import guess_stops
from cbdp.app.inspecting.cause import Cause, counted, toml
from cbdp.app.inspecting.reading import TripReading, reading_of_plan
from cbdp.app.inspecting.tables import read_as_trips, unused_counts
from cbdp.app.inspecting.taps import linked_taps
from cbdp.app.plan import Plan
from cbdp.errors import InputError
from cbdp.features.calendar import dates_of, day_dimension
from cbdp.release.counted import counted as noun
from cbdp.trips import planning
from cbdp.trips.clock import fixed_offset
from cbdp.trips.days import Days
from cbdp.trips.inspect import Copies, DatedRows, copies_of, rows_by_day
from cbdp.trips.kinds import STAMP, kind_of
from cbdp.trips.preparing import Prepared

BAND = 1.8  # a number that was rounded to one digit is off by a factor of 1.5 at most; half of the rows, or all of them twice, are outside
REPEATED = 0.01  # share of the rows that may repeat others, whatever the reason
EMPTY_SHARE = 0.1  # share of the days that may be without rows
FEWEST_EMPTY = 2  # days without rows that may be closed days, however short the time
QUIET_DAY = 20  # a day with less than one in so many of a usual day's rows counts as one without
USUAL_ROWS = 20  # rows of a usual day, below which days without any are usual as well
OFFSETS = 0.1  # share of the rows whose times may end in an offset
UNIVERSAL = {"UTC", "GMT", "UCT", "Z", "ZULU", "UNIVERSAL", "GREENWICH"}


@dataclass(frozen=True)
class Plausibility:
    """What is looked at of all rows, each when it is first asked for: passes over the rows that a series makes once."""

    reading: TripReading
    rows: int  # that there are, about

    @cached_property
    def copies(self) -> Copies:
        """Rows that are alike in every column; of linked taps none, for a tap that is written twice makes no second trip."""
        if linked_taps(self.reading) is not None:
            return Copies(())
        trips = self.reading.trips
        try:
            return copies_of(trips.trips if isinstance(trips, Prepared) else trips, self.rows)
        except InputError:  # files whose further columns differ
            return Copies(())

    @cached_property
    def dated(self) -> DatedRows:
        """Rows by day; none where nothing tells days."""
        return self._by_day(self._dated_column)

    @cached_property
    def clocked(self) -> DatedRows:
        """The same by the column of the time of day."""
        column = self.reading.columns.get("time")
        return self.dated if column == self._dated_column else self._by_day(column)

    @cached_property
    def _dated_column(self) -> str | None:
        named = {**self.reading.columns}
        stated = self.reading.config.data.columns.get(planning.DAY)
        if stated is not None and linked_taps(self.reading) is None:
            named.setdefault(planning.DAY, stated)
        try:
            return planning.dated_column(named, self.reading.universe)
        except InputError:
            return None

    def _by_day(self, column: str | None) -> DatedRows:
        if column is None:
            return DatedRows({})
        try:
            return rows_by_day(self.reading.trips, column, self.reading.clock)
        except InputError:  # of a type that tells no days
            return DatedRows({})


def doubts(looked: Plausibility, inside: int, kept: int, days: Days | None = None) -> Iterator[Cause]:
    """What is implausible, the gravest first: trips inside the universe, those kept of each person, and the days that are released."""
    yield from _universal_times(looked)
    yield from _repeated(looked.copies)
    yield from _unexpected(looked.reading, inside, kept)
    yield from _empty_days(looked.reading, looked.dated.days, days)


def _universal_times(looked: Plausibility) -> Iterator[Cause]:
    """Times that state how far they are from UTC, and no zone to show them in: they would count by the clock of Greenwich."""
    reading = looked.reading
    column = reading.columns.get("time")
    if column is None or reading.clock.timezone is not None or "time" not in reading.universe.dimensions:
        return
    if reading.universe.dimensions["time"].edges is None:
        return
    cause = universal_column(reading, column)
    rows = looked.clocked
    if cause is None and rows.offsets > OFFSETS * rows.rows:
        some = "" if rows.offsets == rows.rows else f"{100 * rows.offsets / rows.rows:.0f} % of "
        what = f"{some}times in column {column!r} end in an offset from UTC (Z, +00:00 or another)"
        cause = _in_utc(reading, what)
    if cause is not None:
        yield cause


def schema_warnings(plan: Plan) -> Iterator[str]:
    """What a plan's columns alone tell that `cbdp release` will stop for. Public: no row is looked at."""
    if plan.schema is None:
        return
    counts = unused_counts(plan.schema, plan.columns, plan.unit)
    if counts is not None:
        cause = read_as_trips(counts)
        yield f"{cause.what}: {cause.cure}; `cbdp release` stops otherwise"
    times = plan.columns.get("time")
    zoned = None if times is None else universal_column(reading_of_plan(plan), times)
    if zoned is not None:
        yield f"{zoned.what}: {zoned.cure}; `cbdp release` stops otherwise"


def universal_column(reading: TripReading, column: str) -> Cause | None:
    """The same by the column's type alone. Public: no row is looked at."""
    kind = kind_of(reading.schema.kinds[column]) if column in reading.schema.kinds else None
    if reading.clock.timezone is not None or kind is None or kind.name != STAMP or kind.zone is None:
        return None
    if fixed_offset(kind.zone) is None and kind.zone.upper().rpartition("/")[2] not in UNIVERSAL:
        return None
    return _in_utc(reading, f"column {column!r} holds times in {kind.zone}")


def _in_utc(reading: TripReading, what: str) -> Cause:
    known = _city_zone(reading)
    named = "" if known else ' (with the name of your zone; "UTC" if that is the clock of your city)'
    return Cause(
        0,
        f"{what}, and data.timezone is not stated: they would count by UTC, hours off the clock of your city",
        f"in [data], write timezone = {toml(known or 'Europe/Madrid')}{named}",
    )


def _city_zone(reading: TripReading) -> str | None:
    """The zone that the agency's own GTFS feed states, if the stops are one."""
    stops = reading.config.data.stops
    if stops is None:
        return None
    path = reading.config.path(stops)
    if path.suffix.lower() not in (".txt", ".zip") and not path.is_dir():
        return None
    try:
        return guess_stops(path).timezone
    except InputError:
        return None


def _repeated(copies: Copies) -> Iterator[Cause]:
    if copies.repeated <= REPEATED or copies.by_chance():
        return
    rows = sum((k - 1) * n for k, n in copies.groups) * copies.one_in
    about = "about " if copies.one_in > 1 else ""
    yield Cause(
        rows,
        f"{about}{counted(rows, 'row')} repeat another row in every column ({100 * copies.repeated:.0f} % of all), more than chance would",
        "look whether a file was exported, appended or joined twice, and keep each row once",
    )


def _unexpected(reading: TripReading, inside: int, kept: int) -> Iterator[Cause]:
    """Trips that are many more, or many fewer, than data.expected_trips says."""
    expected = reading.config.data.expected_trips
    if expected is None or (inside * BAND > expected and kept < expected * BAND):
        return
    many = noun(reading.universe)
    trips, what = (inside, "fewer") if inside * BAND <= expected else (kept, "more")
    yield Cause(
        trips,
        f"{many.number(trips)} would count, many {what} than the {expected:,} of data.expected_trips",
        "look whether part of the export is missing or is there twice; if it is right, correct expected_trips "
        "(it is published: write a round number that anybody may know, never the one counted)",
    )


def _empty_days(reading: TripReading, rows: Mapping[dt.date, int], days: Days | None) -> Iterator[Cause]:
    """Days without rows among those that are counted, closed days aside: weekdays that have no rows in any week, if that is not most of them."""
    usual = _usual(rows)
    if usual < USUAL_ROWS:
        return
    busy = {day for day, many in rows.items() if many * QUIET_DAY >= usual}
    span = _counted_days(reading, busy, days)
    empty = [day for day in span if day not in busy]
    served = {day.weekday() for day in busy} if 2 * len(empty) <= len(span) else set(range(7))
    missing = [day for day in empty if day.weekday() in served]
    if len(missing) <= max(FEWEST_EMPTY, EMPTY_SHARE * len(span)):
        return
    yield Cause(
        0,
        f"{len(missing)} of {len(span)} days have no rows, or hardly any (from {missing[0]} to {missing[-1]}), where a usual day has many",
        "look whether part of the export is missing; release the days that are there by universe.days, or wait for the others",
    )


def _usual(rows: Mapping[dt.date, int]) -> float:
    """The rows of a usual day: of the day that the median row is of, so that stray dates have no say."""
    sizes = sorted(rows.values())
    half, upto = sum(sizes) / 2, 0
    for size in sizes:
        upto += size
        if upto >= half:
            return size
    return 0


def _counted_days(reading: TripReading, busy: set[dt.date], days: Days | None) -> list[dt.date]:
    """The days that a release is of: of its period, those that the universe lists, or from the first to the last with rows."""
    if days is not None:
        return [days.first + dt.timedelta(days=n) for n in range((days.last - days.first).days + 1)]
    named = day_dimension(reading.universe.dimensions)
    dates = None if named is None else dates_of(reading.universe.dimensions[named])
    if dates is not None:
        return sorted(dates)
    first, last = min(busy), max(busy)
    return [first + dt.timedelta(days=n) for n in range((last - first).days + 1)]
