"""Whether counted rows may be charged for: they must be plausible, and most of them must count.

Implausible are repeated rows, days without rows, another number of trips than expected, and times in UTC. Each doubt is a `Cause` that stops a release before
its charge; `cbdp inspect` shows the same ones. Every threshold is a wide share of all rows, stated here and in docs/explanation/threat-model.md.

Private: decisions see rows and are the curator's own. They go to the terminal of whoever holds the trips; nothing is spent and nothing is written.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from cbdp.app.causes import (
    ROWS_OF_LINKED_TAPS,
    causes_of,
    linked_taps,
    read_as_trips,
    role_causes,
    unused_counts,
)
from cbdp.app.plan import Plan
from cbdp.app.reading import Cause, TripReading, dropped_as, look, number_of, reading_of_plan, toml_text
from cbdp.config.guessing import guess_stops
from cbdp.counting import Counts, Inspection, planner
from cbdp.counting.clock import fixed_offset
from cbdp.counting.columns import STAMP, kind_of
from cbdp.counting.engines import UNREAD
from cbdp.counting.inspection import DatedRows, DuplicateRows, duplicate_rows, rows_by_day
from cbdp.counting.linking import LinkedTaps, Prepared
from cbdp.counting.plan import ServiceDays
from cbdp.errors import InputError
from cbdp.privacy.unit import RELEASE, Person
from cbdp.release.roles import counted_noun as noun
from cbdp_features.calendar import dates_or_none, day_dimension

if TYPE_CHECKING:
    from cbdp.app.publish import Judge


MAX_FACTOR_FROM_EXPECTED = 1.8  # a number that was rounded to one digit is off by a factor of 1.5 at most; half of the rows, or all of them twice, are outside
MAX_FACTOR_FROM_EXPECTED_OF_DAYS = (
    4.0  # in a daily series: a Sunday may have a third of the trips of a usual day, a holiday a quarter
)
MAX_SHARE_REPEATED = 0.01  # share of the rows that may repeat others, whatever the reason
MAX_SHARE_EMPTY_DAYS = 0.1  # share of the days that may be without rows
MIN_EMPTY_DAYS = 2  # days without rows that may be closed days, however short the time
QUIET_DAY_ONE_IN = 20  # a day with less than one in so many rows of a usual day counts as one without rows
MIN_ROWS_OF_USUAL_DAY = 20  # rows of a usual day, below which days without any are usual as well
MAX_SHARE_OFFSETS = 0.1  # share of the rows whose times may end in an offset
UTC_NAMES = {"UTC", "GMT", "UCT", "Z", "ZULU", "UNIVERSAL", "GREENWICH"}


@dataclass(frozen=True)
class Plausibility:
    """What is looked at of all rows, each when it is first asked for: passes over the rows that a series makes once."""

    reading: TripReading
    rows: int  # that there are, about

    @cached_property
    def copies(self) -> DuplicateRows:
        """Rows that are alike in every column; of linked taps none, for a tap that is written twice makes no second trip."""
        if linked_taps(self.reading) is not None:
            return DuplicateRows(())
        trips = self.reading.trips
        try:
            return duplicate_rows(trips.trips if isinstance(trips, Prepared) else trips, self.rows)
        except InputError:  # files whose further columns differ
            return DuplicateRows(())

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
        stated = self.reading.config.data.columns.get(planner.DAY_KEY)
        if stated is not None and linked_taps(self.reading) is None:
            named.setdefault(planner.DAY_KEY, stated)
        try:
            return planner.dated_column(named, self.reading.universe)
        except InputError:
            return None

    def _by_day(self, column: str | None) -> DatedRows:
        if column is None:
            return DatedRows({})
        try:
            return rows_by_day(self.reading.trips, column, self.reading.clock)
        except InputError:  # of a type that tells no days
            return DatedRows({})


def doubts(looked: Plausibility, inside: int, kept: int, days: ServiceDays | None = None) -> Iterator[Cause]:
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
    if cause is None and rows.offsets > MAX_SHARE_OFFSETS * rows.rows:
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
    if fixed_offset(kind.zone) is None and kind.zone.upper().rpartition("/")[2] not in UTC_NAMES:
        return None
    return _in_utc(reading, f"column {column!r} holds times in {kind.zone}")


def _in_utc(reading: TripReading, what: str) -> Cause:
    zone = _city_zone(reading)
    named = "" if zone else ' (with the name of your zone; "UTC" if that is the clock of your city)'
    return Cause(
        0,
        f"{what}, and data.timezone is not stated: they would count by UTC, hours off the clock of your city",
        f"in [data], write timezone = {toml_text(zone or 'Europe/Madrid')}{named}",
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


def _repeated(copies: DuplicateRows) -> Iterator[Cause]:
    if copies.repeated <= MAX_SHARE_REPEATED or copies.by_chance():
        return
    rows = sum((k - 1) * n for k, n in copies.groups) * copies.one_in
    about = "about " if copies.one_in > 1 else ""
    yield Cause(
        rows,
        f"{about}{number_of(rows, 'row')} repeat another row in every column ({100 * copies.repeated:.0f} % of all), more than chance would",
        "look whether a file was exported, appended or joined twice, and keep each row once",
    )


def _unexpected(reading: TripReading, inside: int, kept: int) -> Iterator[Cause]:
    """Trips that are many more, or many fewer, than data.expected_trips says."""
    expected, series = reading.config.data.expected_trips, reading.config.series
    daily = series is not None and series.calendar == "daily"
    factor = MAX_FACTOR_FROM_EXPECTED_OF_DAYS if daily else MAX_FACTOR_FROM_EXPECTED
    if expected is None or (inside * factor > expected and kept < expected * factor):
        return
    many = noun(reading.universe)
    trips, what = (inside, "fewer") if inside * factor <= expected else (kept, "more")
    yield Cause(
        trips,
        f"{many.number(trips)} would count, many {what} than the {expected:,} of data.expected_trips",
        "look whether part of the export is missing or is there twice; if it is right, correct expected_trips "
        "(it is published: write a round number that anybody may know, never the one counted)",
    )


def _empty_days(
    reading: TripReading, rows: Mapping[dt.date, int], days: ServiceDays | None
) -> Iterator[Cause]:
    """Days without rows among those that are counted, closed days aside: weekdays that have no rows in any week, if that is not most of them."""
    usual = _usual(rows)
    if usual < MIN_ROWS_OF_USUAL_DAY:
        return
    busy = {day for day, many in rows.items() if many * QUIET_DAY_ONE_IN >= usual}
    span = _counted_days(reading, busy, days)
    empty = [day for day in span if day not in busy]
    served = {day.weekday() for day in busy} if 2 * len(empty) <= len(span) else set(range(7))
    missing = [day for day in empty if day.weekday() in served]
    if len(missing) <= max(MIN_EMPTY_DAYS, MAX_SHARE_EMPTY_DAYS * len(span)):
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


def _counted_days(reading: TripReading, busy: set[dt.date], days: ServiceDays | None) -> list[dt.date]:
    """The days that a release is of: of its period, those that the universe lists, or from the first to the last with rows."""
    if days is not None:
        return [days.first + dt.timedelta(days=n) for n in range((days.last - days.first).days + 1)]
    named = day_dimension(reading.universe.dimensions)
    dates = None if named is None else dates_or_none(reading.universe.dimensions[named])
    if dates is not None:
        return sorted(dates)
    first, last = min(busy), max(busy)
    return [first + dt.timedelta(days=n) for n in range((last - first).days + 1)]


# The decision before a charge


MIN_SHARE_COUNTED = 0.5  # share of the rows, and of the trips they stand for, that must count
MAX_SHARE_UNREADABLE_TIMES = 0.1  # share of the rows whose time may be written in no form that is understood


ACCEPT_DROPPED, ACCEPT_UNUSUAL = "--accept-dropped", "--accept-unusual"


class DroppedError(InputError):
    """Most rows do not count: nothing was charged."""


class UnusualError(InputError):
    """The rows can hardly be what they are said to be: nothing was charged."""


@dataclass(frozen=True)
class Accepted:
    """What the curator has looked at and goes on with."""

    dropped: bool = False  # fewer than half of the rows count, or of the trips are kept
    unusual: bool = (
        False  # repeated rows, days without rows, another number of trips than expected, times in UTC
    )


NOTHING_ACCEPTED = Accepted()


@dataclass(frozen=True)
class Share:
    """What counted, for the curator. Private."""

    read: int
    counted: int
    what: str = "row"

    @property
    def all(self) -> str:
        """How many there are of what."""
        return (
            f"{self.read:,} {ROWS_OF_LINKED_TAPS}"
            if self.what == ROWS_OF_LINKED_TAPS
            else number_of(self.read, self.what)
        )

    @property
    def short(self) -> bool:
        return not self.read or self.counted < MIN_SHARE_COUNTED * self.read


def judge(say: Callable[[str], None], accepted: Accepted = NOTHING_ACCEPTED) -> Judge:
    """What a release does between its count and its charge; what is `accepted` stops nothing."""

    def judged(plan: Plan, counts: Counts) -> None:
        judge_rows(say, plan, counts, accepted)
        if not accepted.dropped:
            refuse_bounded(plan, counts)
        if not accepted.unusual:
            reading = reading_of_plan(plan)
            refuse_unusual(
                Plausibility(reading, _rows_read(counts)), _inside(counts), int(counts.value.sum())
            )

    return judged


def judge_rows(
    say: Callable[[str], None], plan: Plan, counts: Counts, accepted: Accepted, days: str = ""
) -> None:
    """Tell how all rows are read, and stop where most do not count; `days` says which days are counted."""
    shares = shares_of(plan, counts)
    say(f"{days}{summary(plan, counts, shares)}")
    for note in () if plan.schema is None else plan.schema.notes:
        say(f"note: {note}")
    if accepted.dropped:
        return
    column = None if plan.schema is None else unused_counts(plan.schema, plan.columns, plan.unit)
    if column is not None:
        raise DroppedError(_refusal(reading_of_plan(plan), "", read_as_trips(column)))
    refuse_dropped(reading_of_plan(plan), shares)


def _rows_read(counts: Counts) -> int:
    return 0 if counts.rows is None else counts.rows.read


def _inside(counts: Counts) -> int:
    return int(counts.value.sum()) if counts.rows is None else counts.rows.inside


def refuse_bounded(plan: Plan, counts: Counts) -> None:
    """Stop where the bound on a person's trips would keep fewer than half of them: the column may be no person's, or the bound too low."""
    if not isinstance(plan.unit, Person) or counts.rows is None:
        return
    kept = Share(counts.rows.inside, int(counts.value.sum()), noun(plan.universe).one)
    if kept.read and kept.short:
        reading = reading_of_plan(plan)
        raise DroppedError(_refusal(reading, few_kept(kept), bounded_cause(reading, look(reading))))


def few_kept(kept: Share) -> str:
    return f"only {kept.counted:,} of {kept.all} would be kept, fewer than half: "


def bounded_cause(reading: TripReading, inspection: Inspection) -> Cause:
    """Why the bound on a person's trips drops so many."""
    assert isinstance(reading.unit, Person)
    stated = f"max_trips = {reading.unit.max_trips}{reading.unit.period}"
    persons = [
        cause
        for cause in role_causes(reading, inspection)
        if cause.what.startswith(f"{reading.person!r} has few")
    ]
    if persons:
        return persons[0]
    loads = inspection.loads
    enough = (
        []
        if loads is None
        else [
            m
            for m, lost in loads.dropped.items()
            if m > reading.unit.max_trips and lost < MIN_SHARE_COUNTED * loads.trips
        ]
    )
    cure = f"write max_trips = {enough[0]} or more" if enough else "write a larger max_trips"
    return Cause(
        inspection.counted,
        f"many persons have more than {stated}",
        f"{cure} (noise grows with it), protect a person per day or week, or name another column if {reading.person!r} is no person's",
    )


def refuse_unusual(looked: Plausibility, inside: int, kept: int, days: ServiceDays | None = None) -> None:
    """Stop where the rows can hardly be what they are said to be."""
    cause = next(doubts(looked, inside, kept, days), None)
    if cause is not None:
        raise UnusualError(_refusal(looked.reading, "", cause, ACCEPT_UNUSUAL))


def refuse_dropped(reading: TripReading, shares: tuple[Share, ...]) -> None:
    """Stop where fewer than half count, and where more than a few times cannot be read."""
    short = [share for share in shares if share.short]
    if not short and all(share.counted >= (1 - MAX_SHARE_UNREADABLE_TIMES) * share.read for share in shares):
        return
    inspection = look(reading)
    unread = max((d.rows for d in dropped_as(inspection, UNREAD)), default=0)
    if short or unread > MAX_SHARE_UNREADABLE_TIMES * inspection.read:
        few = (
            _few(short[0])
            if short
            else f"{unread:,} of {number_of(inspection.read, 'row')} hold times that cannot be read: "
        )
        raise DroppedError(_refusal(reading, few, next(iter(causes_of(reading, inspection)), None)))


def shares_of(plan: Plan, counts: Counts) -> tuple[Share, ...]:
    """Rows, and where rows stand for many trips, those as well."""
    if counts.rows is None:
        return ()
    prepared = plan.trips.by if isinstance(plan.trips, Prepared) else None
    seen = Share(
        counts.rows.read,
        counts.rows.inside,
        ROWS_OF_LINKED_TAPS if isinstance(prepared, LinkedTaps) else "row",
    )
    if planner.weight_column(plan.columns, plan.universe) is None:
        return (seen,)
    inspection = look(reading_of_plan(plan))
    return Share(inspection.read, inspection.counted), Share(seen.read, seen.counted, noun(plan.universe).one)


def summary(plan: Plan, counts: Counts, shares: tuple[Share, ...]) -> str:
    """One line for the curator."""
    parts = [f"{t.counted:,} of {t.all}" for t in shares]
    line = f"counted {', '.join(parts)}"
    if isinstance(plan.unit, Person):
        line += f", of which {int(counts.value.sum()):,} are kept with at most {plan.unit.max_trips} of each person{plan.unit.period}"
    return f"{line} (private: for you alone)"


def _few(share: Share) -> str:
    if not share.read:
        return "there is nothing to count: "
    return f"only {share.counted:,} of {share.all} would count, fewer than half: "


def _refusal(reading: TripReading, few: str, cause: Cause | None, accept: str = ACCEPT_DROPPED) -> str:
    why = "the reason is not known" if cause is None else f"{cause.what}; {cause.cure}"
    return (
        f"{few}{why}. Nothing was spent. `cbdp inspect {reading.config.source.path}` shows all of it; "
        f"to go on nevertheless, add {accept}"
    )


def verdict(reading: TripReading, inspection: Inspection) -> Iterator[str]:
    """What would stop a release of these rows, for `cbdp inspect`; nothing: it would go on."""
    column = unused_counts(reading.schema, reading.columns, reading.unit)
    rows = Share(inspection.read, inspection.counted)
    unread = max((d.rows for d in dropped_as(inspection, UNREAD)), default=0)
    if column is not None:
        cause = read_as_trips(column)
        yield f"{cause.what}; {cause.cure} ({ACCEPT_DROPPED} goes on)"
    if rows.short:
        yield f"{_few(rows)}see above ({ACCEPT_DROPPED} goes on)"
    elif unread > MAX_SHARE_UNREADABLE_TIMES * inspection.read:
        yield f"{unread:,} of {number_of(inspection.read, 'row')} hold times that cannot be read: see above ({ACCEPT_DROPPED} goes on)"
    kept = inspection.trips
    whole = reading.config.series is None or getattr(reading.unit, "per", RELEASE) != RELEASE
    if inspection.loads is not None and inspection.loads.kept is not None and whole:
        kept = inspection.loads.kept
        share = Share(inspection.loads.trips, kept, noun(reading.universe).one)
        if share.read and share.short:
            cause = bounded_cause(reading, inspection)
            yield f"{few_kept(share)}{cause.what}; {cause.cure} ({ACCEPT_DROPPED} goes on)"
    if reading.config.series is None and inspection.read:
        for cause in doubts(Plausibility(reading, inspection.read), inspection.trips, kept):
            yield f"{cause.what}; {cause.cure} ({ACCEPT_UNUSUAL} goes on)"
