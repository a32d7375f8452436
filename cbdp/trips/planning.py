"""Making the counting plan, and refusing what cannot be counted: by schema, universe and clock alone, before a row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from cbdp.errors import InputError
from cbdp.features import Dimension, Universe
from cbdp.parts import did_you_mean
from cbdp.privacy.unit import Person, Unit
from cbdp.trips.clock import Clock
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
from cbdp.trips.plan import Axis, Bound, CountingPlan, Field, Form, Moment, Way, Zeros
from cbdp.trips.ways import moment_forms, refusal, time_way, value_ways
from cbdp.trips.zones import zone_of

PERSON, COUNT = "person", "count"  # what `columns` may name besides the dimensions


def make_plan(
    schema: Schema, universe: Universe, columns: Mapping[str, str] | None, unit: Unit, clock: Clock
) -> CountingPlan:
    """What to ask the engine for."""
    names = columns or {}
    check_keys(names, universe)
    making = _Making(schema, clock)
    axes = tuple(making.axis(n, names.get(n, n), d) for n, d in universe.dimensions.items())
    bound = None
    if isinstance(unit, Person):
        column = person_column(unit.column, names, universe)
        check_person(schema, column)
        bound = Bound(making.place(column), unit.max_trips)
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


def wanted_columns(universe: Universe, columns: Mapping[str, str] | None, unit: Unit) -> list[str]:
    """The columns that a count reads."""
    names = columns or {}
    wanted = [names.get(n, n) for n in universe.dimensions]
    if isinstance(unit, Person):
        wanted.append(person_column(unit.column, names, universe))
    weight = weight_column(names, universe)
    return list(dict.fromkeys([*wanted, *([] if weight is None else [weight])]))


def check_keys(columns: Mapping[str, str], universe: Universe) -> None:
    """Refuse a name in `columns` that nothing would read: a misspelt `count` must not turn a weight into 1."""
    known = [*universe.dimensions, PERSON, COUNT]
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


@dataclass
class _Making:
    """A plan in the making: fields and moments are shared by the axes that need them."""

    schema: Schema
    clock: Clock
    fields: list[Field] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)

    def place(self, column: str) -> int:
        check_column(self.schema, column)
        wanted = Field(column, kind_of(self.schema.kinds[column]))
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
                forms = tuple(dict.fromkeys([*moment.forms, *forms]))
                self.moments[n] = Moment(place, forms, self._zone(place, forms))
                return n
        self.moments.append(Moment(place, forms, self._zone(place, forms)))
        return len(self.moments) - 1

    def _zone(self, place: int, forms: tuple[Form, ...]) -> str | None:
        zone = self.clock.timezone or self.fields[place].kind.zone
        instants = any(form.gives in ("stamp", "epoch") for form in forms)
        return zone if zone is not None and instants and zone_of(zone).fixed != 0 else None
