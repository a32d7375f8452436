"""Preparations: what is done to raw rows before they are trips, in the engine, by one query. Public rules, private rows.

The bound on a person's trips holds for what is counted only if a preparation keeps to one rule: **a person's raw rows decide that
person's trips and nobody else's.** `DatedTimes` looks at one row at a time. `LinkedTaps` looks at the rows of one person at a time, told
apart as counting tells them apart. Order, partitions and identical duplicates of rows change nothing.

Where the unit has a period, or a release looks at some days alone, the taps of a person in one of these periods decide that person's
trips of this period and of no other: taps are linked within periods (`within_periods`). Else a trip over midnight would make the price
of a day that of three.

With a trip as the unit, what is protected is one prepared trip. For `LinkedTaps`, one tap more or less turns at most one trip into
another, or adds or takes away one: between two taps a and b that follow one another, a new tap x replaces the pair (a, b) by
(a, x) and (x, b), of which at most one is a tap-on followed by a tap-off. `unit = { trip = "replace" }` covers that.

Proof: docs/proofs/linking.md.
"""

# ruff: noqa: S608 - names and texts are quoted where they enter a query

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cbdp.counting.clock import EPOCH_DATE, FIRST_DAY, LAST_DAY, Clock, zone_table
from cbdp.counting.columns import ColumnKind, check_names
from cbdp.counting.engines import sql
from cbdp.counting.engines.dialects import DUCKDB_TEMPLATES
from cbdp.counting.engines.sql import EARLIEST_MICROSECOND, LATEST_MICROSECOND
from cbdp.counting.plan import (
    ClockField,
    ClockForm,
    CountingPlan,
    Field,
    ServiceDays,
    dated_column,
    days_by_period,
    moment_forms,
)
from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.privacy.unit import RELEASE, Unit
from cbdp_features.calendar import dates_or_none, day_dimension

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from cbdp.counting.engines.duckdb import DuckDialect, Opened, Relation

literal, identifier = DUCKDB_TEMPLATES.literal, DUCKDB_TEMPLATES.identifier

MICROSECONDS = 10**6
PREPARED_TABLE = "prepared"  # what the table of prepared trips is called in DuckDB
SERVICE_TIME_PATTERN = "^ *([0-9]{1,2}):([0-5][0-9])(?::([0-5][0-9]))? *$"


class Preparation(ABC):
    """From raw rows to rows that are counted. Its fields are public settings."""

    @property
    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """The raw columns that are read."""

    @abstractmethod
    def kinds(self, raw: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        """Column → Arrow type of what comes out, by the raw columns' types."""

    def tables(self, kinds: Sequence[ColumnKind]) -> dict[str, pa.Table]:  # noqa: ARG002 - others need them
        """Public tables that the query looks things up in: name → Arrow table."""
        return {}

    @abstractmethod
    def query(self, say: DuckDialect, kinds: Sequence[ColumnKind], source: str) -> str:
        """DuckDB's SQL; `say` and `kinds` are of the columns in `needs`. No value of a row may make it fail."""


@dataclass(frozen=True)
class Prepared:
    """Trips that are made of raw rows: what `cbdp.count` takes in place of the raw rows' path or URL."""

    trips: str | list[str]  # the raw rows
    by: Preparation


@dataclass(frozen=True)
class LinkingPeriods:
    """The periods within which taps are linked: of the unit, and those before, in and after the days that a release looks at."""

    clock: Clock
    per: str = RELEASE
    first: dt.date | None = None
    last: dt.date | None = None

    def numbers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every day since 1970 of our calendar, and the number of its period."""
        days = np.arange(FIRST_DAY, LAST_DAY, dtype=np.int64)
        periods = np.zeros_like(days) if self.per == RELEASE else days_by_period(self.per)[1]
        if self.first is not None and self.last is not None:
            side = np.searchsorted(
                [(self.first - EPOCH_DATE).days, (self.last - EPOCH_DATE).days + 1], days, side="right"
            )
            periods = 3 * periods + side
        return days, periods


@dataclass(frozen=True)
class LinkedTaps(Preparation):
    """Taps become trips: a tap-on with the same person's next tap, if that is a tap-off and not too late. Proof: docs/proofs/linking.md.

    Out come `origin`, `destination`, and the columns of time and person as they are. A tap that is not linked comes out without
    the other end, so that counting drops it and an inspection shows it; rows that are no taps are left out. Of taps at the
    same instant, tap-offs come first.
    """

    person: str
    time: str
    place: str
    action: str
    on: tuple[str, ...]  # in small letters, with _ for spaces
    off: tuple[str, ...]
    within: int = 6 * 3600  # seconds between the two taps
    nobody: tuple[str, ...] = ()  # texts that stand for a missing person
    formats: tuple[str, ...] = ()  # of time, as in Clock
    periods: LinkingPeriods | None = None  # None: any two taps may be linked

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.person, self.time, self.place, self.action)))

    def tables(self, kinds: Sequence[ColumnKind]) -> dict[str, pa.Table]:
        import pyarrow as pa

        if self.periods is None:
            return {}
        days, numbers = self.periods.numbers()
        zones = {_beside_name(name): table for name, table in sql.lookup_tables(self._clocked(kinds)).items()}
        return {_beside_name("period"): pa.table({"look": days, "period": numbers}), **zones}

    def _clocked(self, kinds: Sequence[ColumnKind]) -> CountingPlan:
        """A plan that gives taps their service day, as counting gives it to trips."""
        assert self.periods is not None
        clock, kind = self.periods.clock, kinds[self.needs.index(self.time)]
        zone = clock.timezone or kind.zone
        moved = zone if zone is not None and zone_table(zone).fixed != 0 else None
        moment = ClockField(0, (ClockForm("stamp"),), moved, clock.first_second)
        zones = {} if moved is None else {moved: zone_table(moved)}
        return CountingPlan((Field(self.time, kind),), (moment,), (), zones)

    def kinds(self, raw: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        ends = {"origin": raw[self.place], "destination": raw[self.place]}
        return {**ends, self.time: raw[self.time], self.person: raw[self.person]}

    def query(self, say: DuckDialect, kinds: Sequence[ColumnKind], source: str) -> str:
        time, person = identifier(self.time), identifier(self.person)
        soon = f"<= {self.within * MICROSECONDS}"
        window = "PARTITION BY who, period ORDER BY moment, enters, place_key"
        return f"""
            WITH {self._taps(say, kinds, source)},
            ordered AS MATERIALIZED (
                SELECT *, lead(leaves) OVER w AND lead(moment) OVER w - moment {soon} AS ends, lead(place) OVER w AS other,
                    lag(enters) OVER w AND moment - lag(moment) OVER w {soon} AS ended
                FROM taps WHERE who IS NOT NULL AND moment IS NOT NULL WINDOW w AS ({window}))
            SELECT place AS origin, CASE WHEN ends THEN other END AS destination, stamp AS {time}, person AS {person}
                FROM ordered WHERE enters
            UNION ALL SELECT NULL, place, stamp, person FROM ordered WHERE leaves AND NOT COALESCE(ended, false)
            UNION ALL SELECT CASE WHEN enters THEN place END, CASE WHEN leaves THEN place END, stamp, person
                FROM taps WHERE who IS NULL OR moment IS NULL"""

    def _taps(self, say: DuckDialect, kinds: Sequence[ColumnKind], source: str) -> str:
        """The rows that are taps, each with the number of its period."""
        rows = f"SELECT * FROM (SELECT {self._columns(say, kinds)} FROM {source}) WHERE enters OR leaves"
        if self.periods is None:
            return f"taps AS MATERIALIZED (SELECT *, 0 AS period FROM ({rows}))"
        read = sql.Step("read_rows", f"SELECT *, moment AS m0_us FROM ({rows})")
        steps = [read, *sql.moment_steps(self._clocked(kinds), say, _beside_name)]
        numbered = f"SELECT t.*, p.period FROM {steps[-1].name} t LEFT JOIN {_beside_name('period')} p ON p.look = t.m0_day"
        listed = [f"{s.name} AS ({s.text})" for s in steps]
        return ", ".join([*listed, f"taps AS MATERIALIZED ({numbered})"])

    def _columns(self, say: DuckDialect, kinds: Sequence[ColumnKind]) -> str:
        person, time, place, action = (
            self.needs.index(c) for c in (self.person, self.time, self.place, self.action)
        )
        clock = Clock(format=self.formats or None)
        forms = [f for f in moment_forms(kinds[time], clock, need="day") if f.gives in ("stamp", "epoch")]
        moments = [_in_calendar(say.instant(time, kinds[time], form)) for form in forms] or [
            "CAST(NULL AS BIGINT)"
        ]
        done = f"lower(replace(trim({say.shown(action, kinds[action])}), ' ', '_'))"
        listed = {"enters": self.on, "leaves": self.off}
        who = say.person(person, kinds[person])
        if self.nobody:
            empty = ", ".join(map(literal, self.nobody))
            who = f"CASE WHEN {say.shown(person, kinds[person])} NOT IN ({empty}) THEN {who} END"
        columns = {
            "who": who,
            "moment": f"COALESCE({', '.join(moments)})",
            "place": say.stored[place].expression,
            "place_key": say.shown(place, kinds[place]),
            "stamp": say.stored[time].expression,
            "person": f"CASE WHEN ({who}) IS NOT NULL THEN {say.stored[person].expression} END",
        }
        for name, words in listed.items():
            columns[name] = f"COALESCE({done} IN ({', '.join(map(literal, words))}), false)"
        return ", ".join(f"{text} AS {name}" for name, text in columns.items())


@dataclass(frozen=True)
class DatedTimes(Preparation):
    """A date and a time of day become one column, `time`; after midnight a service day may go on to 24:10, 25:00 and beyond.

    What cannot be read comes out as it is written, so that counting drops it and an inspection shows it.
    """

    day: str
    time: str
    others: tuple[str, ...]  # columns that are kept as they are
    formats: tuple[str, ...] = ("%Y%m%d",)  # of the day

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.day, self.time, *self.others)))

    def kinds(self, raw: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        import pyarrow as pa

        return {**{c: raw[c] for c in self.others}, "time": pa.string()}

    def query(self, say: DuckDialect, kinds: Sequence[ColumnKind], source: str) -> str:
        day, time = self.needs.index(self.day), self.needs.index(self.time)
        clock = Clock(format=self.formats)
        days = [
            say.day(day, kinds[day], form)
            if form.gives == "date"
            else f"({say.instant(day, kinds[day], form)}) // {86_400 * MICROSECONDS}"
            for form in moment_forms(kinds[day], clock, need="day")
        ]
        written = say.shown(time, kinds[time])
        hour, minute, second = (
            f"TRY_CAST(regexp_extract({written}, '{SERVICE_TIME_PATTERN}', {n}) AS BIGINT)" for n in (1, 2, 3)
        )
        second = f"{hour} * 3600 + {minute} * 60 + COALESCE({second}, 0)"
        since = f"(COALESCE({', '.join(days)}) * 86400 + {second}) * {MICROSECONDS}"
        stamp = f"TRY(strftime(make_timestamp({since}), '%Y-%m-%d %H:%M:%S'))"
        as_is = f"nullif(concat_ws(' ', {say.shown(day, kinds[day])}, {written}), '')"
        kept = [
            f"{say.stored[self.needs.index(c)].expression} AS {identifier(c)}"
            for c in dict.fromkeys(self.others)
        ]
        return f"SELECT {', '.join([*kept, f'COALESCE({stamp}, {as_is}) AS time'])} FROM {source}"


def within_periods(
    trips: object,
    universe: Universe,
    unit: Unit,
    columns: Mapping[str, str] | None,
    clock: Clock,
    days: ServiceDays | None = None,
) -> object:
    """Trips as they are counted for a unit: where taps are linked, within the unit's periods and the days of the release. Proof: docs/proofs/linking.md."""
    if not isinstance(trips, Prepared) or not isinstance(trips.by, LinkedTaps):
        return trips
    named = day_dimension(universe.dimensions)
    dates = None if named is None else dates_or_none(universe.dimensions[named])
    first, last = (days.first, days.last) if days else (min(dates), max(dates)) if dates else (None, None)
    if unit.per == RELEASE and first is None:
        return trips
    column = dated_column(columns or {}, universe)
    if column != trips.by.time:
        raise InputError(
            f"taps are linked within days, which column {trips.by.time!r} tells, and the day of a trip would be that of column {column!r}: let the day follow from the time"
        )
    return replace(trips, by=replace(trips.by, periods=LinkingPeriods(clock, unit.per, first, last)))


def _beside_name(name: str) -> str:
    """What a table that the query looks things up in is called, so that it is none of those that counting has."""
    return f"tap_{name}"


def _in_calendar(instant: str) -> str:
    """An instant of our calendar, so that the time between two of them cannot overflow; else nothing."""
    return f"CASE WHEN {instant} BETWEEN {EARLIEST_MICROSECOND} AND {LATEST_MICROSECOND} THEN {instant} END"


# In DuckDB: the raw rows are read once, into a table that is then counted like any other.


def open_prepared(engine: duckdb.DuckDBPyConnection, raw: Opened, by: Preparation) -> Opened:
    """What a preparation makes of open trips. No row is read until the first of them is asked for."""
    from cbdp.counting.engines.duckdb import Opened

    check_names(list(raw.schema.kinds), by.needs, quoted=raw.schema.typed)
    table = _PreparedTable(engine, raw, by)
    schema = replace(raw.schema, kinds=by.kinds(raw.schema.kinds))
    return Opened(schema, table.relation, None, table.rows, raw.changed, raw.damaged)


@dataclass
class _PreparedTable:
    """The table of prepared trips, made when it is first asked for."""

    engine: duckdb.DuckDBPyConnection
    raw: Opened
    by: Preparation
    filled: bool = False

    def relation(self, columns: Sequence[str]) -> Relation:
        from cbdp.counting.engines.duckdb import Relation, StoredField

        self._make()
        described = self.engine.sql(f"DESCRIBE {PREPARED_TABLE}").fetchall()
        types = {row[0]: row[1] for row in described}
        return Relation(PREPARED_TABLE, {c: StoredField(identifier(c), types[c]) for c in columns})

    def rows(self) -> int:
        self._make()
        return int(self.engine.sql(f"SELECT count(*) FROM {PREPARED_TABLE}").fetchall()[0][0])

    def _make(self) -> None:
        """By DuckDB's own reader, and where that stops at a value, by the reader that takes columns as they are."""
        import duckdb

        if self.filled:
            return
        if self.raw.native is not None:
            try:
                self._fill(self.raw.native(self.by.needs))
            except (duckdb.InvalidInputException, duckdb.ConversionException):
                if self.raw.raw is None:
                    raise
        if not self.filled:
            assert self.raw.raw is not None
            self._fill(self.raw.raw(self.by.needs, ()))

    def _fill(self, source: Relation) -> None:
        from cbdp.counting.engines.duckdb import DuckDialect

        say = DuckDialect(tuple(source.stored[c] for c in self.by.needs))
        kinds = [self.raw.schema.kind(c) for c in self.by.needs]
        for name, table in self.by.tables(kinds).items():
            self.engine.register(name, table)
        query = self.by.query(say, kinds, source.text)
        self.engine.execute(f"CREATE OR REPLACE TEMP TABLE {PREPARED_TABLE} AS {query}")
        self.filled = True
