"""Making the counting plan, and refusing what cannot be counted: by schema, universe and clock alone, before a row is read."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.features import Dimension, Universe
from cbdp.features.calendar import dates_of, day_dimension, period_of
from cbdp.parts import did_you_mean
from cbdp.privacy.unit import RELEASE, Person, Unit
from cbdp.trips.clock import Clock
from cbdp.trips.days import NAME, Days
from cbdp.trips.kinds import (
    NOTHING,
    REAL,
    TEXT,
    WHOLE,
    Schema,
    check_column,
    check_person,
    kind_of,
    plain_kind,
)
from cbdp.trips.plan import Axis, Bound, CountingPlan, Field, Form, Moment, Way, Within, Zeros
from cbdp.trips.ways import moment_forms, pinned_forms, refusal, time_way, value_ways
from cbdp.trips.zones import EPOCH, FIRST_DAY, LAST_DAY, zone_of

PERSON, COUNT, DAY = "person", "count", "day"  # what `columns` may name besides the dimensions


def make_plan(
    schema: Schema,
    universe: Universe,
    columns: Mapping[str, str] | None,
    unit: Unit,
    clock: Clock,
    days: Days | None = None,
) -> CountingPlan:
    """What to ask the engine for: about all rows, or those of some days."""
    names = columns or {}
    check_keys(names, universe)
    making = _Making(schema, clock)
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
        {m.zone: zone_of(m.zone) for m in making.moments if m.zone is not None},
        zeros_of(universe),
        weight,
        bound,
    )


def wanted_columns(
    universe: Universe, columns: Mapping[str, str] | None, unit: Unit, days: Days | None = None
) -> list[str]:
    """The columns that a count reads."""
    names = columns or {}
    wanted = [names.get(n, n) for n in universe.dimensions]
    if isinstance(unit, Person):
        wanted.append(person_column(unit.column, names, universe))
        if unit.per != RELEASE:
            wanted.append(day_column(names, universe, unit))
    if days is not None:
        wanted.append(dated_column(names, universe))
    weight = weight_column(names, universe)
    return list(dict.fromkeys([*wanted, *([] if weight is None else [weight])]))


def check_keys(columns: Mapping[str, str], universe: Universe) -> None:
    """Refuse a name in `columns` that nothing would read: a misspelt `count` must not turn a weight into 1."""
    known = list(dict.fromkeys([*universe.dimensions, PERSON, COUNT, DAY]))
    for name in columns:
        if name not in known:
            raise InputError(f"columns name {name!r}, which is no dimension: {did_you_mean(name, known)}")


def person_column(named: str, columns: Mapping[str, str], universe: Universe) -> str:
    """The column that tells persons apart: `columns["person"]` where that is stated, else the unit's column as written.

    It is looked up here and nowhere else. A dimension called "person" has `columns["person"]` to itself.
    """
    stated = None if PERSON in universe.dimensions else columns.get(PERSON)
    if stated is None or named in (PERSON, stated):
        return stated or named
    raise InputError(
        f"columns say that the person is in {stated!r}, the unit says {named!r}: make them agree"
    )


def day_column(columns: Mapping[str, str], universe: Universe, unit: Person) -> str:
    """The column that tells in which period of the unit a trip was made."""
    found = _dated(columns, universe)
    if found is None:
        raise InputError(
            f"the unit protects one {unit.per} of a person, and nothing says on which day a trip was made: name a column "
            'with the day in columns["day"], or protect a person per release'
        )
    return found


def dated_column(columns: Mapping[str, str], universe: Universe) -> str:
    """The column that tells in which period of a series a trip was made."""
    found = _dated(columns, universe)
    if found is None:
        raise InputError(
            "a release of a series counts the trips of some days, and nothing says on which day a trip was made: "
            'name a column with the day in columns["day"]'
        )
    return found


def _dated(columns: Mapping[str, str], universe: Universe) -> str | None:
    """The column that tells on which day a trip was made: that of the dimension of days, else `columns["day"]`, else that of the periods."""
    named = day_dimension(universe.dimensions)
    if named is not None:
        return columns.get(named, named)
    if DAY in columns:
        return columns[DAY]
    timed = [name for name, dimension in universe.dimensions.items() if dimension.edges is not None]
    return columns.get(timed[0], timed[0]) if timed else None


def is_timed(column: str, columns: Mapping[str, str], universe: Universe) -> bool:
    """Whether the column that tells days holds times as well: it tells the time of day, or no other column does."""
    timed = [columns.get(n, n) for n, dimension in universe.dimensions.items() if dimension.edges is not None]
    return not timed or column in timed


def apart_axes(unit: Person, universe: Universe) -> tuple[int, ...]:
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
        apart_axes(unit, universe)
    elif unit.per != RELEASE:
        _Making(schema, clock).within(unit, universe, columns)


def weight_column(columns: Mapping[str, str], universe: Universe) -> str | None:
    """The column of weights, `columns["count"]`; a dimension called "count" has that name to itself."""
    return None if COUNT in universe.dimensions else columns.get(COUNT)


def check_weight(schema: Schema, column: str, unit: Unit) -> None:
    """Refuse weights that cannot be counts, and weights of persons."""
    check_column(schema, column)
    if isinstance(unit, Person):
        raise InputError(
            f"column {column!r} holds counts, which name no persons: protect a trip, or give the trips one by one"
        )
    if kind_of(schema.kinds[column]).name not in (TEXT, WHOLE, REAL, NOTHING):
        raise InputError(f"column {column!r} holds {schema.kinds[column]} values: a count is a whole number")


def check_dimension(schema: Schema, column: str, dimension: Dimension, clock: Clock) -> None:
    """Refuse a column that cannot hold what a dimension lists."""
    check_column(schema, column)
    _Making(schema, clock).axis(column, column, dimension)


def zeros_of(universe: Universe) -> tuple[Zeros, ...]:
    """Public structural zeros: of each group of dimensions the shorter list, of what is out or of what is in."""
    if math.prod(len(d) for d in universe.dimensions.values()) >= 2**63:
        raise InputError("the dimensions span 2^63 combinations or more: coarsen one of them")
    found = []
    for block in universe.blocks:
        if block.allowed is not None:
            inside = np.zeros(math.prod(block.shape), dtype=bool)
            inside[block.allowed] = True
            out = 2 * len(block.allowed) > len(inside)
            found.append(Zeros(block.dims, block.shape, np.flatnonzero(inside != out).astype(np.int64), out))
    return tuple(found)


@cache
def days_by_period(per: str) -> tuple[Ints, Ints]:
    """Every day since 1970 of our calendar, and the number of its period."""
    days = np.arange(FIRST_DAY, LAST_DAY, dtype=np.int64)
    periods = [period_of(EPOCH + dt.timedelta(days=int(day)), per) for day in days]
    return days, np.array(periods, dtype=np.int64)


@dataclass
class _Making:
    """A plan in the making: fields and moments are shared by the axes that need them."""

    schema: Schema
    clock: Clock
    fields: list[Field] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    pinned: str = ""  # the column that tells the days of a series
    timed: bool = True  # whether it is read as instants

    def place(self, column: str) -> int:
        check_column(self.schema, column)
        wanted = Field(column, self.schema.kind(column))
        if wanted not in self.fields:
            self.fields.append(wanted)
        return self.fields.index(wanted)

    def axis(self, name: str, column: str, dimension: Dimension) -> Axis:
        place = self.place(column)
        kind = self.fields[place].kind
        if kind.name == NOTHING:  # no row says what the column holds, so it fits whatever it is for
            return Axis(name, len(dimension), place, ())
        ways = value_ways(dimension, kind, place, typed=self.schema.typed)
        if not ways or kind.name == TEXT:
            ways += self._by_time(name, dimension, place)
        if not ways:
            raise refusal(column, plain_kind(self.schema.kinds[column]), dimension)
        return Axis(name, len(dimension), place, tuple(ways))

    def restriction(self, days: Days, column: str) -> Axis:
        place = self.place(column)
        if self.fields[place].kind.name == NOTHING:
            return Axis(NAME, 1, place, ())
        forms = moment_forms(self.fields[place].kind, self.clock, need="day")
        if not any(form.gives in ("stamp", "epoch", "date") for form in forms):
            raise InputError(
                f"a release of a series counts the trips of some days, and column {column!r} tells no dates: name a column "
                'with the day in columns["day"]'
            )
        return days.axis(place, self._moment(place, forms))

    def bound(self, person: str, unit: Person, universe: Universe, columns: Mapping[str, str]) -> Bound:
        within = None if unit.per == RELEASE else self.within(unit, universe, columns)
        return Bound(self.place(person), unit.max_trips, within, apart_axes(unit, universe))

    def within(self, unit: Person, universe: Universe, columns: Mapping[str, str]) -> Within:
        """By the code where the universe lists dates, so that a trip is bounded on the day on which it is counted; else by the day itself."""
        named = day_dimension(universe.dimensions)
        dates = None if named is None else dates_of(universe.dimensions[named])
        if named is not None and dates is not None:
            periods = np.array([period_of(d, unit.per) for d in dates], dtype=np.int64)
            axis = list(universe.dimensions).index(named)
            return Within(axis, None, np.arange(len(dates), dtype=np.int64), periods)
        column = day_column(columns, universe, unit)
        place = self.place(column)
        forms = moment_forms(self.fields[place].kind, self.clock, need="day")
        known = named is None or time_way(named, universe.dimensions[named], self.clock) is not None
        if not known or (not forms and self.fields[place].kind.name != NOTHING):
            raise InputError(
                f"the unit protects one {unit.per} of a person, and column {column!r} tells no dates: name a column with the day in "
                'columns["day"], list dates in the universe, or protect a person per release'
            )
        return Within(None, self._moment(place, forms), *days_by_period(unit.per))

    def _by_time(self, name: str, dimension: Dimension, place: int) -> list[Way]:
        found = time_way(name, dimension, self.clock)
        if found is None:
            return []
        need, make = found
        forms = moment_forms(self.fields[place].kind, self.clock, need=need)
        return make(self._moment(place, forms)) if forms else []

    def _moment(self, place: int, forms: tuple[Form, ...]) -> int:
        """The field's moment, which reads all forms that any axis needs of it."""
        for n, moment in enumerate(self.moments):
            if moment.field == place:
                forms = self._pinned(place, tuple(dict.fromkeys([*moment.forms, *forms])))
                self.moments[n] = Moment(place, forms, self._zone(place, forms), self.clock.first_second)
                return n
        forms = self._pinned(place, forms)
        self.moments.append(Moment(place, forms, self._zone(place, forms), self.clock.first_second))
        return len(self.moments) - 1

    def _pinned(self, place: int, forms: tuple[Form, ...]) -> tuple[Form, ...]:
        if self.fields[place].name != self.pinned:
            return forms
        return pinned_forms(forms, self.clock, timed=self.timed)

    def _zone(self, place: int, forms: tuple[Form, ...]) -> str | None:
        zone = self.clock.timezone or self.fields[place].kind.zone
        instants = any(form.gives in ("stamp", "epoch") for form in forms)
        return zone if zone is not None and instants and zone_of(zone).fixed != 0 else None
