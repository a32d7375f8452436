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
import itertools
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.counting.clock import (
    EPOCH_DATE,
    EPOCH_UNITS_PER_SECOND,
    FIRST_DATE,
    FIRST_DAY,
    ISO_DATE,
    ISO_LOCAL,
    ISO_NAME,
    ISO_STAMP,
    ISO_TIME,
    LAST_DATE,
    LAST_DAY,
    Clock,
    WrittenForm,
    ZoneTable,
    written_form,
    zone_table,
)
from cbdp.counting.columns import (
    BOOLEAN,
    DATE,
    NULLS,
    REAL,
    STAMP,
    TEXT,
    TIME,
    WHOLE,
    ColumnKind,
    Schema,
    check_column,
    check_person,
    kind_of,
    plain_kind,
)
from cbdp.errors import InputError
from cbdp.features import Dimension, Universe
from cbdp.parts import did_you_mean
from cbdp.privacy.unit import RELEASE, Person, Unit
from cbdp_features.calendar import (
    SECONDS_PER_DAY,
    WEEKDAYS,
    date_or_none,
    dates_or_none,
    day_dimension,
    period_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

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


Key = bytes | int | float
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


# Lookups: from a column's values to a dimension's codes. Every key means one label.


LookupMaker = Callable[[int], list[Lookup]]  # of the place of a moment

CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]*")  # a whole number as everybody writes it


def value_lookups(dimension: Dimension, kind: ColumnKind, place: int, *, typed: bool) -> list[Lookup]:
    """Ways by the value itself: text as bytes, numbers as numbers, and numbers written as text where text may stand for them."""
    labels = dimension.values
    ways = []
    if kind.name == TEXT:
        texts = {c: v.encode("utf-8", "surrogatepass") for c, v in enumerate(labels) if isinstance(v, str)}
        ways += _unique_lookup("bytes", place, texts, labels)
    if kind.name in (WHOLE, REAL, BOOLEAN) or (kind.name == TEXT and not typed):
        ways += _number_lookups(labels, kind, place)
    if kind.name in (TEXT, WHOLE, REAL) and all(
        isinstance(v, str) and CANONICAL_INTEGER.fullmatch(v) for v in labels
    ):
        numbers = {c: int(str(v)) for c, v in enumerate(labels) if abs(int(str(v))) < 2**63}
        ways += _unique_lookup("dotted" if kind.name == TEXT else "whole", place, numbers, labels)
    return ways


def _number_lookups(labels: Sequence[Hashable], kind: ColumnKind, place: int) -> list[Lookup]:
    numbers = {c: v for c, v in enumerate(labels) if isinstance(v, int | float)}
    if all(isinstance(v, bool) for v in numbers.values()):
        by: KeyKind = "truth" if kind.name == TEXT else "whole"
        return _unique_lookup(by, place, {c: int(v) for c, v in numbers.items()}, labels)
    whole = {c: int(v) for c, v in numbers.items() if math.isfinite(v) and v == int(v) and abs(v) < 2**63}
    if len(whole) == len(numbers) or kind.name in (WHOLE, BOOLEAN):
        return _unique_lookup("whole", place, whole, labels)
    return _unique_lookup("real", place, {c: float(v) for c, v in numbers.items() if float(v) == v}, labels)


def moment_forms(kind: ColumnKind, clock: Clock, *, need: str) -> tuple[ClockForm, ...]:
    """How a column can tell the `second` of the day, or the `day`."""
    gives = {"second": ("stamp", "epoch", "time", "hour"), "day": ("stamp", "epoch", "date")}[need]

    def fitting(forms: Iterable[ClockForm]) -> tuple[ClockForm, ...]:
        return tuple(f for f in forms if f.gives in gives)

    if kind.name in (STAMP, DATE, TIME):
        simple = {STAMP: ClockForm("stamp"), DATE: ClockForm("date"), TIME: ClockForm("time")}
        return fitting([simple[kind.name]])
    if kind.name not in (TEXT, WHOLE, REAL):
        return ()
    stated = [form for text in clock.formats for form in _forms_of(text)]
    if fitting(stated):
        return fitting(stated)
    iso = _forms_of(ISO_NAME) if kind.name == TEXT else []
    if stated:  # they say how stamps are written; a date or a time alone in another column is in no conflict with them
        iso = [f for f in iso if f.gives != "stamp"]
    return fitting([*iso, ClockForm("hour")])


def moves_days(clock: Clock) -> bool:
    """Whether an instant's service day may be another than the date that is written in it."""
    return clock.first_second > 0 or (clock.timezone is not None and zone_table(clock.timezone).fixed != 0)


def unambiguous_forms(forms: tuple[ClockForm, ...], clock: Clock, *, timed: bool) -> tuple[ClockForm, ...]:
    """Of a column that tells the days of a series, the forms by which one trip cannot be on two of them, however it is written. Proof: docs/proofs/windows.md.

    A date alone is a service day, and an instant on that date may belong to another: where they can differ, a column is read as instants
    if it is `timed`, and else as dates. Without a timezone, a text with an offset (or seconds since 1970) tells an instant of UTC, and a
    text without one a time of unknown place: where texts without are read, those with are not.
    """
    kept = list(forms)
    if moves_days(clock) and {_kind_of_form(f) for f in forms} >= {"date", "instant"}:
        dropped = "date" if timed else "instant"
        kept = [f for f in kept if _kind_of_form(f) != dropped]
    if clock.timezone is None:
        local = [_without_offset(f) for f in kept if f.gives == "stamp" and f.written is not None]
        if any(f is not None for f in local):
            zoneless = [f if _kind_of_form(f) != "instant" else _without_offset(f) for f in kept]
            kept = [f for f in zoneless if f is not None]
    return tuple(kept)


def _kind_of_form(form: ClockForm) -> str:
    return "instant" if form.gives in ("stamp", "epoch") else form.gives


def _without_offset(form: ClockForm) -> ClockForm | None:
    """The form without an offset; None where it cannot be without."""
    if form.written is None:
        return None
    if form.written == ISO_STAMP:
        return replace(form, written=ISO_LOCAL)
    return None if "z" in form.written.parts else form


def _forms_of(text: str) -> list[ClockForm]:
    if text == ISO_NAME:
        return [_clock_form(w) for w in (ISO_STAMP, ISO_DATE, ISO_TIME)]
    return [
        ClockForm("epoch", per_second=EPOCH_UNITS_PER_SECOND[text])
        if text in EPOCH_UNITS_PER_SECOND
        else _clock_form(written_form(text))
    ]


def _clock_form(form: WrittenForm) -> ClockForm:
    return ClockForm("stamp" if form.dated and form.timed else "date" if form.dated else "time", form)


def time_lookup(name: str, dimension: Dimension, clock: Clock) -> tuple[str, LookupMaker] | None:
    """What a dimension needs of a moment ("second" or "day") with the way that uses it; None where it is not about time."""
    if dimension.edges is not None:
        return "second", _period_lookup(name, dimension)
    dates = [date_or_none(value) for value in dimension.values]
    if all(d is not None for d in dates):
        days = {c: (d - EPOCH_DATE).days for c, d in enumerate(dates) if d is not None}
        return "day", lambda place: _unique_lookup("day", place, days, dimension.values)
    codes = _day_types(dimension, clock)
    if codes is None:
        return None
    keys = np.arange((FIRST_DATE - EPOCH_DATE).days, (LAST_DATE - EPOCH_DATE).days, dtype=np.int64)
    inside = codes >= 0
    return "day", lambda place: [Lookup("day", place, keys[inside], codes[inside])] if inside.any() else []


def _period_lookup(name: str, dimension: Dimension) -> LookupMaker:
    edges = dimension.edges or ()
    if len(edges) != len(dimension) + 1:
        raise InputError(f"{len(dimension)} periods of {name!r} need {len(dimension) + 1} edges")
    if any(b <= a for a, b in itertools.pairwise(edges)):
        raise InputError(f"the edges of {name!r} do not rise: list them in the order of the day")
    width = math.gcd(*edges, SECONDS_PER_DAY)
    seconds = np.arange(max(0, edges[0]), min(SECONDS_PER_DAY, edges[-1]), width, dtype=np.int64)
    codes = np.searchsorted(np.asarray(edges), seconds, side="right").astype(np.int64) - 1
    return lambda place: [Lookup("second", place, seconds // width, codes, width)]


def _day_types(dimension: Dimension, clock: Clock) -> Ints | None:
    """The code of every day from FIRST_DATE to LAST_DATE by its name, or as weekday and weekend; a holiday's type goes before."""
    holidays = dict(clock.holidays)
    if not set(dimension.values) <= {*WEEKDAYS, "weekday", "weekend", *holidays.values()}:
        return None
    code = {value: c for c, value in enumerate(dimension.values)}
    week = [code.get(day, code.get("weekday" if n < 5 else "weekend", -1)) for n, day in enumerate(WEEKDAYS)]
    days = (LAST_DATE - FIRST_DATE).days
    codes = np.resize(np.roll(np.array(week, dtype=np.int64), -FIRST_DATE.weekday()), days)
    for day, label in holidays.items():
        if FIRST_DATE <= day < LAST_DATE:
            codes[(day - FIRST_DATE).days] = code.get(label, -1)
    return codes


def _unique_lookup(
    by: KeyKind, place: int, keys: Mapping[int, Key], labels: Sequence[Hashable]
) -> list[Lookup]:
    """A way whose keys are unique: one that means two labels would count a row twice."""
    first: dict[Key, int] = {}
    for code, key in keys.items():
        if key in first:
            raise InputError(
                f"the values {labels[first[key]]!r} and {labels[code]!r} of a dimension mean the same "
                f"({_shown_key(by, key)}): keep one of them"
            )
        first[key] = code
    if not keys:
        return []
    codes = np.fromiter(keys, np.int64)
    if by == "bytes":
        return [Lookup(by, place, tuple(keys.values()), codes)]  # type: ignore[arg-type]
    kind = np.float64 if by == "real" else np.int64
    return [Lookup(by, place, np.fromiter(keys.values(), kind), codes)]  # type: ignore[arg-type]


def _shown_key(by: KeyKind, key: Key) -> str:
    return str(EPOCH_DATE + dt.timedelta(days=int(key))) if by == "day" else repr(key)


def column_refusal(column: str, kind: pa.DataType, dimension: Dimension) -> InputError:
    """What to say when a column cannot hold what a dimension lists."""
    expected = "text" if all(isinstance(v, str) for v in dimension.values) else "others"
    expected = "numbers" if all(isinstance(v, int | float) for v in dimension.values) else expected
    return InputError(f"column {column!r} holds {kind} values, the dimension {expected}: convert one of them")


# The plan, and the refusal of what cannot be counted: by schema, universe and clock alone


PERSON_KEY, COUNT_KEY, DAY_KEY = "person", "count", "day"  # what `columns` may name besides the dimensions


def make_plan(
    schema: Schema,
    universe: Universe,
    columns: Mapping[str, str] | None,
    unit: Unit,
    clock: Clock,
    days: ServiceDays | None = None,
) -> CountingPlan:
    """What to ask the engine for: about all rows, or those of some days."""
    names = columns or {}
    check_keys(names, universe)
    making = _PlanBuilder(schema, clock)
    if days is not None:
        making.pinned = dated_column(names, universe)
        making.timed = is_timed(making.pinned, names, universe)
    axes = tuple(making.axis(n, names.get(n, n), d) for n, d in universe.dimensions.items())
    if days is not None:
        axes += (making.restriction(days, dated_column(names, universe)),)
    bound = None
    if isinstance(unit, Person):
        column = person_column(unit.column, names, universe)
        check_person(schema, column)
        bound = making.bound(column, unit, universe, names)
    counts = weight_column(names, universe)
    weight = None
    if counts is not None:
        check_weight(schema, counts, unit)
        weight = making.place(counts)
    return CountingPlan(
        tuple(making.fields),
        tuple(making.moments),
        axes,
        {m.zone: zone_table(m.zone) for m in making.moments if m.zone is not None},
        structural_zeros(universe),
        weight,
        bound,
    )


def needed_columns(
    universe: Universe, columns: Mapping[str, str] | None, unit: Unit, days: ServiceDays | None = None
) -> list[str]:
    """The columns that a count reads."""
    names = columns or {}
    needed = [names.get(n, n) for n in universe.dimensions]
    if isinstance(unit, Person):
        needed.append(person_column(unit.column, names, universe))
        if unit.per != RELEASE:
            needed.append(day_column(names, universe, unit))
    if days is not None:
        needed.append(dated_column(names, universe))
    weight = weight_column(names, universe)
    return list(dict.fromkeys([*needed, *([] if weight is None else [weight])]))


def check_keys(columns: Mapping[str, str], universe: Universe) -> None:
    """Refuse a name in `columns` that nothing would read: a misspelt `count` must not turn a weight into 1."""
    names = list(dict.fromkeys([*universe.dimensions, PERSON_KEY, COUNT_KEY, DAY_KEY]))
    for name in columns:
        if name not in names:
            raise InputError(f"columns name {name!r}, which is no dimension: {did_you_mean(name, names)}")


def person_column(named: str, columns: Mapping[str, str], universe: Universe) -> str:
    """The column that tells persons apart: `columns["person"]` where that is stated, else the unit's column as written.

    It is looked up here and nowhere else. A dimension called "person" has `columns["person"]` to itself.
    """
    stated = None if PERSON_KEY in universe.dimensions else columns.get(PERSON_KEY)
    if stated is None or named in (PERSON_KEY, stated):
        return stated or named
    raise InputError(
        f"columns say that the person is in {stated!r}, the unit says {named!r}: make them agree"
    )


def day_column(columns: Mapping[str, str], universe: Universe, unit: Person) -> str:
    """The column that tells in which period of the unit a trip was made."""
    column = _date_column(columns, universe)
    if column is None:
        raise InputError(
            f"the unit protects one {unit.per} of a person, and nothing says on which day a trip was made: name a column "
            'with the day in columns["day"], or protect a person per release'
        )
    return column


def dated_column(columns: Mapping[str, str], universe: Universe) -> str:
    """The column that tells in which period of a series a trip was made."""
    column = _date_column(columns, universe)
    if column is None:
        raise InputError(
            "a release of a series counts the trips of some days, and nothing says on which day a trip was made: "
            'name a column with the day in columns["day"]'
        )
    return column


def _date_column(columns: Mapping[str, str], universe: Universe) -> str | None:
    """The column that tells on which day a trip was made: that of the dimension of days, else `columns["day"]`, else that of the periods."""
    named = day_dimension(universe.dimensions)
    if named is not None:
        return columns.get(named, named)
    if DAY_KEY in columns:
        return columns[DAY_KEY]
    timed = [name for name, dimension in universe.dimensions.items() if dimension.edges is not None]
    return columns.get(timed[0], timed[0]) if timed else None


def is_timed(column: str, columns: Mapping[str, str], universe: Universe) -> bool:
    """Whether the column that tells days holds times as well: it tells the time of day, or no other column does."""
    timed = [columns.get(n, n) for n, dimension in universe.dimensions.items() if dimension.edges is not None]
    return not timed or column in timed


def slot_axes(unit: Person, universe: Universe) -> tuple[int, ...]:
    """The axes that tell slots apart: the dimension that `apart` names, and that of days where there is one."""
    if unit.apart is None:
        return ()
    if unit.apart not in universe.dimensions:
        raise InputError(
            f"trips of a person are kept apart by {unit.apart!r}, which is no dimension: "
            f"{did_you_mean(unit.apart, list(universe.dimensions))}"
        )
    named = {unit.apart, day_dimension(universe.dimensions)}
    return tuple(a for a, name in enumerate(universe.dimensions) if name in named)


def check_unit(
    schema: Schema, universe: Universe, columns: Mapping[str, str], unit: Person, clock: Clock, key: str
) -> None:
    """Refuse a unit whose period no column tells ("per"), or that keeps trips apart by what is no dimension ("apart")."""
    if key == "apart":
        slot_axes(unit, universe)
    elif unit.per != RELEASE:
        _PlanBuilder(schema, clock).within(unit, universe, columns)


def weight_column(columns: Mapping[str, str], universe: Universe) -> str | None:
    """The column of weights, `columns["count"]`; a dimension called "count" has that name to itself."""
    return None if COUNT_KEY in universe.dimensions else columns.get(COUNT_KEY)


def check_weight(schema: Schema, column: str, unit: Unit) -> None:
    """Refuse weights that cannot be counts, and weights of persons."""
    check_column(schema, column)
    if isinstance(unit, Person):
        raise InputError(
            f"column {column!r} holds counts, which name no persons: protect a trip, or give the trips one by one"
        )
    if kind_of(schema.kinds[column]).name not in (TEXT, WHOLE, REAL, NULLS):
        raise InputError(f"column {column!r} holds {schema.kinds[column]} values: a count is a whole number")


def check_dimension(schema: Schema, column: str, dimension: Dimension, clock: Clock) -> None:
    """Refuse a column that cannot hold what a dimension lists."""
    check_column(schema, column)
    _PlanBuilder(schema, clock).axis(column, column, dimension)


def structural_zeros(universe: Universe) -> tuple[StructuralZeros, ...]:
    """Public structural zeros: of each group of dimensions the shorter list, of what is out or of what is in."""
    if math.prod(len(d) for d in universe.dimensions.values()) >= 2**63:
        raise InputError("the dimensions span 2^63 combinations or more: coarsen one of them")
    zeros = []
    for block in universe.blocks:
        if block.allowed is not None:
            inside = np.zeros(math.prod(block.shape), dtype=bool)
            inside[block.allowed] = True
            out = 2 * len(block.allowed) > len(inside)
            zeros.append(
                StructuralZeros(block.dims, block.shape, np.flatnonzero(inside != out).astype(np.int64), out)
            )
    return tuple(zeros)


@cache
def days_by_period(per: str) -> tuple[Ints, Ints]:
    """Every day since 1970 of our calendar, and the number of its period."""
    days = np.arange(FIRST_DAY, LAST_DAY, dtype=np.int64)
    periods = [period_of(EPOCH_DATE + dt.timedelta(days=int(day)), per) for day in days]
    return days, np.array(periods, dtype=np.int64)


@dataclass
class _PlanBuilder:
    """A plan in the making: fields and moments are shared by the axes that need them."""

    schema: Schema
    clock: Clock
    fields: list[Field] = field(default_factory=list)
    moments: list[ClockField] = field(default_factory=list)
    pinned: str = ""  # the column that tells the days of a series
    timed: bool = True  # whether it is read as instants

    def place(self, column: str) -> int:
        check_column(self.schema, column)
        entry = Field(column, self.schema.kind(column))
        if entry not in self.fields:
            self.fields.append(entry)
        return self.fields.index(entry)

    def axis(self, name: str, column: str, dimension: Dimension) -> Axis:
        place = self.place(column)
        kind = self.fields[place].kind
        if kind.name == NULLS:  # no row says what the column holds, so it fits whatever it is for
            return Axis(name, len(dimension), place, ())
        ways = value_lookups(dimension, kind, place, typed=self.schema.typed)
        if not ways or kind.name == TEXT:
            ways += self._by_time(name, dimension, place)
        if not ways:
            raise column_refusal(column, plain_kind(self.schema.kinds[column]), dimension)
        return Axis(name, len(dimension), place, tuple(ways))

    def restriction(self, days: ServiceDays, column: str) -> Axis:
        place = self.place(column)
        if self.fields[place].kind.name == NULLS:
            return Axis(DAYS_AXIS, 1, place, ())
        forms = moment_forms(self.fields[place].kind, self.clock, need="day")
        if not any(form.gives in ("stamp", "epoch", "date") for form in forms):
            raise InputError(
                f"a release of a series counts the trips of some days, and column {column!r} tells no dates: name a column "
                'with the day in columns["day"]'
            )
        return days.axis(place, self._moment(place, forms))

    def bound(
        self, person: str, unit: Person, universe: Universe, columns: Mapping[str, str]
    ) -> ContributionBound:
        within = None if unit.per == RELEASE else self.within(unit, universe, columns)
        return ContributionBound(self.place(person), unit.max_trips, within, slot_axes(unit, universe))

    def within(self, unit: Person, universe: Universe, columns: Mapping[str, str]) -> PeriodLookup:
        """By the code where the universe lists dates, so that a trip is bounded on the day on which it is counted; else by the day itself."""
        named = day_dimension(universe.dimensions)
        dates = None if named is None else dates_or_none(universe.dimensions[named])
        if named is not None and dates is not None:
            periods = np.array([period_of(d, unit.per) for d in dates], dtype=np.int64)
            axis = list(universe.dimensions).index(named)
            return PeriodLookup(axis, None, np.arange(len(dates), dtype=np.int64), periods)
        column = day_column(columns, universe, unit)
        place = self.place(column)
        forms = moment_forms(self.fields[place].kind, self.clock, need="day")
        tells_days = named is None or time_lookup(named, universe.dimensions[named], self.clock) is not None
        if not tells_days or (not forms and self.fields[place].kind.name != NULLS):
            raise InputError(
                f"the unit protects one {unit.per} of a person, and column {column!r} tells no dates: name a column with the day in "
                'columns["day"], list dates in the universe, or protect a person per release'
            )
        return PeriodLookup(None, self._moment(place, forms), *days_by_period(unit.per))

    def _by_time(self, name: str, dimension: Dimension, place: int) -> list[Lookup]:
        lookup = time_lookup(name, dimension, self.clock)
        if lookup is None:
            return []
        need, make = lookup
        forms = moment_forms(self.fields[place].kind, self.clock, need=need)
        return make(self._moment(place, forms)) if forms else []

    def _moment(self, place: int, forms: tuple[ClockForm, ...]) -> int:
        """The field's moment, which reads all forms that any axis needs of it."""
        for n, moment in enumerate(self.moments):
            if moment.field == place:
                forms = self._pinned(place, tuple(dict.fromkeys([*moment.forms, *forms])))
                self.moments[n] = ClockField(place, forms, self._zone(place, forms), self.clock.first_second)
                return n
        forms = self._pinned(place, forms)
        self.moments.append(ClockField(place, forms, self._zone(place, forms), self.clock.first_second))
        return len(self.moments) - 1

    def _pinned(self, place: int, forms: tuple[ClockForm, ...]) -> tuple[ClockForm, ...]:
        if self.fields[place].name != self.pinned:
            return forms
        return unambiguous_forms(forms, self.clock, timed=self.timed)

    def _zone(self, place: int, forms: tuple[ClockForm, ...]) -> str | None:
        zone = self.clock.timezone or self.fields[place].kind.zone
        instants = any(form.gives in ("stamp", "epoch") for form in forms)
        return zone if zone is not None and instants and zone_table(zone).fixed != 0 else None
