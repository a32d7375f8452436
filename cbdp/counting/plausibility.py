"""PRIVATE. Whether counted rows may be charged for: they must be plausible, and most of them must count.

Implausible are repeated rows, days without rows, another number of trips than expected, and times in UTC. Each doubt is a `Cause` that stops a release before
its charge; `cbdp inspect` shows the same ones. Every threshold is a wide share of all rows, stated here and in docs/explanation/threat-model.md.

Decisions see rows and are the curator's own. They go to the terminal of whoever holds the trips; nothing is spent and nothing is written.
"""

from __future__ import annotations

import datetime as dt
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cbdp.counting import plan as counting_plan
from cbdp.counting.columns import STAMP, kind_of
from cbdp.counting.counts import Counts
from cbdp.counting.diagnosis import (
    ROWS_OF_LINKED_TAPS,
    causes_of,
    chart,
    linked_taps,
    read_as_trips,
    read_lines,
    role_causes,
    unused_counts,
)
from cbdp.counting.engines import UNREAD
from cbdp.counting.inspection import (
    DatedRows,
    DuplicateRows,
    Inspection,
    PersonLoads,
    duplicate_rows,
    rows_by_day,
)
from cbdp.counting.linking import Prepared
from cbdp.counting.plan import ServiceDays
from cbdp.counting.reading import (
    Cause,
    CountedNoun,
    TripReading,
    counts_column,
    date_lines,
    dropped_as,
    look,
    number_of,
    quoted_examples,
    toml_text,
)
from cbdp.errors import InputError
from cbdp.privacy.unit import RELEASE, Person
from cbdp.text import aligned
from cbdp_features.calendar import dates_or_none, day_dimension, fixed_offset

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
        stated = self.reading.stated.columns.get(counting_plan.DAY_KEY)
        if stated is not None and linked_taps(self.reading) is None:
            named.setdefault(counting_plan.DAY_KEY, stated)
        try:
            return counting_plan.dated_column(named, self.reading.universe)
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


def schema_warnings(reading: TripReading) -> Iterator[str]:
    """What the columns alone tell that `cbdp release` will stop for. Public: no row is looked at."""
    counts = unused_counts(reading)
    if counts is not None:
        cause = read_as_trips(counts)
        yield f"{cause.what}: {cause.cure}; `cbdp release` stops otherwise"
    times = reading.columns.get("time")
    zoned = None if times is None else universal_column(reading, times)
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
    zone = reading.stated.city_zone()
    named = "" if zone else ' (with the name of your zone; "UTC" if that is the clock of your city)'
    return Cause(
        0,
        f"{what}, and data.timezone is not stated: they would count by UTC, hours off the clock of your city",
        f"in [data], write timezone = {toml_text(zone or 'Europe/Madrid')}{named}",
    )


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
    expected, daily = reading.stated.expected_trips, reading.stated.calendar == "daily"
    factor = MAX_FACTOR_FROM_EXPECTED_OF_DAYS if daily else MAX_FACTOR_FROM_EXPECTED
    if expected is None or (inside * factor > expected and kept < expected * factor):
        return
    many = reading.stated.noun
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


def judge(say: Callable[[str], None], reading: TripReading, counts: Counts, accepted: Accepted) -> None:
    """What a release does between its count and its charge; what is `accepted` stops nothing."""
    judge_rows(say, reading, counts, accepted)
    if not accepted.dropped:
        refuse_bounded(reading, counts)
    if not accepted.unusual:
        refuse_unusual(Plausibility(reading, _rows_read(counts)), _inside(counts), int(counts.value.sum()))


def judge_rows(
    say: Callable[[str], None], reading: TripReading, counts: Counts, accepted: Accepted, days: str = ""
) -> None:
    """Tell how all rows are read, and stop where most do not count; `days` says which days are counted."""
    shares = shares_of(reading, counts)
    say(f"{days}{summary(reading, counts, shares)}")
    for note in reading.schema.notes:
        say(f"note: {note}")
    if accepted.dropped:
        return
    column = unused_counts(reading)
    if column is not None:
        raise DroppedError(_refusal(reading, "", read_as_trips(column)))
    refuse_dropped(reading, shares)


def _rows_read(counts: Counts) -> int:
    return 0 if counts.rows is None else counts.rows.read


def _inside(counts: Counts) -> int:
    return int(counts.value.sum()) if counts.rows is None else counts.rows.inside


def refuse_bounded(reading: TripReading, counts: Counts) -> None:
    """Stop where the bound on a person's trips would keep fewer than half of them: the column may be no person's, or the bound too low."""
    if not isinstance(reading.unit, Person) or counts.rows is None:
        return
    kept = Share(counts.rows.inside, int(counts.value.sum()), reading.stated.noun.one)
    if kept.read and kept.short:
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


def shares_of(reading: TripReading, counts: Counts) -> tuple[Share, ...]:
    """Rows, and where rows stand for many trips, those as well."""
    if counts.rows is None:
        return ()
    linked = linked_taps(reading) is not None
    seen = Share(
        counts.rows.read,
        counts.rows.inside,
        ROWS_OF_LINKED_TAPS if linked else "row",
    )
    if counting_plan.weight_column(reading.columns, reading.universe) is None:
        return (seen,)
    inspection = look(reading)
    return Share(inspection.read, inspection.counted), Share(seen.read, seen.counted, reading.stated.noun.one)


def summary(reading: TripReading, counts: Counts, shares: tuple[Share, ...]) -> str:
    """One line for the curator."""
    parts = [f"{t.counted:,} of {t.all}" for t in shares]
    line = f"counted {', '.join(parts)}"
    unit = reading.unit
    if isinstance(unit, Person):
        line += f", of which {int(counts.value.sum()):,} are kept with at most {unit.max_trips} of each person{unit.period}"
    return f"{line} (private: for you alone)"


def _few(share: Share) -> str:
    if not share.read:
        return "there is nothing to count: "
    return f"only {share.counted:,} of {share.all} would count, fewer than half: "


def _refusal(reading: TripReading, few: str, cause: Cause | None, accept: str = ACCEPT_DROPPED) -> str:
    why = "the reason is not known" if cause is None else f"{cause.what}; {cause.cure}"
    return (
        f"{few}{why}. Nothing was spent. `cbdp inspect {reading.stated.file}` shows all of it; "
        f"to go on nevertheless, add {accept}"
    )


def verdict(reading: TripReading, inspection: Inspection) -> Iterator[str]:
    """What would stop a release of these rows, for `cbdp inspect`; nothing: it would go on."""
    column = unused_counts(reading)
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
    whole = reading.stated.calendar is None or getattr(reading.unit, "per", RELEASE) != RELEASE
    if inspection.loads is not None and inspection.loads.kept is not None and whole:
        kept = inspection.loads.kept
        share = Share(inspection.loads.trips, kept, reading.stated.noun.one)
        if share.read and share.short:
            cause = bounded_cause(reading, inspection)
            yield f"{few_kept(share)}{cause.what}; {cause.cure} ({ACCEPT_DROPPED} goes on)"
    if reading.stated.calendar is None and inspection.read:
        for cause in doubts(Plausibility(reading, inspection.read), inspection.trips, kept):
            yield f"{cause.what}; {cause.cure} ({ACCEPT_UNUSUAL} goes on)"


# What the curator is shown of an inspection: sections of lines, the same on a terminal, in a text file and on a page


INSPECTION_WIDTH = 110  # characters of a line
MAX_LISTED_DAYS = 62  # days up to which each has a bar: two months


@dataclass(frozen=True)
class Section:
    title: str
    lines: tuple[str, ...]


def sections(reading: TripReading, inspection: Inspection, causes: Sequence[Cause]) -> list[Section]:
    parts = [
        Section("What was read", tuple(_read(reading, inspection))),
        Section("What may be wrong, and what to do", tuple(_causes(causes))),
        Section("Rows that do not count, and why", tuple(_dropped(inspection))),
        Section("Whether a release would go on", tuple(_verdict(reading, inspection))),
    ]
    by, what = inspection.by, reading.stated.noun
    if "time" in by and inspection.trips:
        parts.append(Section(what.say("Trips by time of day"), tuple(chart(by["time"]))))
    if "day" in by and inspection.trips and len(by["day"]) <= MAX_LISTED_DAYS:
        parts.append(Section(what.say("Trips by day"), tuple(chart(by["day"]))))
    names = {} if reading.stops is None else dict(zip(reading.stops.ids, reading.stops.names, strict=True))
    for dimension in reading.stated.stop_dimensions:
        busy = [
            (str(value), str(names.get(value, "")), f"{trips:,}")
            for value, trips in inspection.busiest(dimension)
            if trips
        ]
        if busy:
            title = f"Busiest stops, as {dimension}"
            parts.append(Section(title, tuple(aligned([("stop", "name", what.many), *busy], right=[2]))))
    if inspection.loads is not None and inspection.loads.persons:
        parts.append(Section(what.say("Trips per person"), tuple(_loads(inspection.loads, what))))
    return parts


def _read(reading: TripReading, inspection: Inspection) -> Iterator[str]:
    yield inspection.label
    yield from (f"note: {note}" for note in inspection.notes)
    yield from date_lines(reading, inspection)
    linked = linked_taps(reading)
    if linked is not None:
        yield from read_lines(reading, inspection, linked)
    else:
        share = f" ({100 * inspection.share:.1f} %)" if inspection.read else ""
        yield f"{number_of(inspection.read, 'row')} read, {inspection.counted:,} counted{share}, {inspection.read - inspection.counted:,} dropped"
    if counts_column(reading) is not None:
        yield f"the counted rows stand for {reading.stated.noun.number(inspection.trips)}"
    if reading.clock.timezone is not None:
        yield f"times are converted to {reading.clock.timezone}; those without an offset are taken for UTC"
    if (
        inspection.counted
        and counting_plan.DAY_KEY not in reading.universe.dimensions
        and reading.stated.calendar is None
    ):
        yield "all days are added up; to tell them apart, state universe.days"


def _causes(causes: Sequence[Cause]) -> Iterator[str]:
    for cause in causes:
        yield from _wrapped(f"- {cause.what}")
        yield from _wrapped(f"  → {cause.cure}")
        if cause.line:
            yield from _wrapped(f"  → {cause.line}")
        if cause.shown:
            yield from _wrapped(f"  for example {', '.join(cause.shown)}")
    if not causes:
        yield "nothing suspicious was found in how rows are read"


def _verdict(reading: TripReading, inspection: Inspection) -> Iterator[str]:
    """What stops a release before its charge, by the same rules."""
    stops = list(verdict(reading, inspection))
    for stop in stops:
        yield from _wrapped(f"- it would stop: {stop}")
    if not stops:
        each = " (of a series, each release is looked at when it is made)" if reading.stated.calendar else ""
        yield f"yes: nothing in the rows would stop it{each}"


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(
        line,
        INSPECTION_WIDTH,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )


def _dropped(inspection: Inspection) -> Iterator[str]:
    if not inspection.dropped:
        yield "none"
        return
    rows = [
        (
            d.reason,
            f"in {d.column!r}" if d.column else "",
            f"{d.rows:,}",
            ", ".join(quoted_examples(d.examples)),
        )
        for d in inspection.dropped
    ]
    yield from aligned([("reason", "column", "rows", "examples"), *rows], right=[2])
    yield "a row may have several reasons"


def _loads(loads: PersonLoads, what: CountedNoun) -> Iterator[str]:
    who = "person" if loads.per == RELEASE else f"person-{loads.per}"
    definition = f" (a person-{loads.per} is one {loads.per} of one person)" if loads.per != RELEASE else ""
    yield f"{number_of(loads.persons, who)} with {what.number(loads.trips)}{definition}"
    yield ", ".join(f"{100 * share:g} % have at most {most:,}" for share, most in loads.quantiles.items())
    if loads.together:
        yield f"{number_of(loads.together, 'trip')} would be dropped to keep trips apart, whatever max_trips is (a second one of a person in the same period); the table includes them"
    rows = [
        (f"{most}", f"{lost:,}", f"{100 * lost / loads.trips:.1f} %" if loads.trips else "–")
        for most, lost in loads.dropped.items()
    ]
    yield from aligned([("max_trips", "would drop", f"of the {what.many}"), *rows], right=[0, 1, 2])
