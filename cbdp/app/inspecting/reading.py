"""What an inspection needs of a configuration: trips, universe, unit and clock. Ledger and output have no part in it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cbdp.app.config import Config
from cbdp.app.plan import Plan
from cbdp.app.plan.periods import first_slot
from cbdp.app.plan.slots import applied
from cbdp.app.plan.stops import stops_of
from cbdp.app.plan.trips import Given, check_columns, check_names, columns_of, schema_of, unit_of
from cbdp.app.plan.universe import universe_of
from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.features.calendar import WEEK
from cbdp.features.places import Stops
from cbdp.privacy.unit import Unit
from cbdp.trips import Clock, Inspection, Schema, inspect, planning
from cbdp.trips import schema_of as opened
from cbdp.trips.inspect import REASONS, Dropped
from cbdp.trips.kinds import REAL, TEXT, WHOLE, kind_of
from cbdp.trips.preparing import Dated, Linked, Prepared

EXAMPLES = 50  # values of each kind that are looked at
NEVER = -(2**62) - 7  # a number that nobody writes


@dataclass(frozen=True, eq=False)
class TripReading:
    """How trips are read."""

    config: Config
    trips: Given
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
        return by.formats if isinstance(by, Dated) else self.clock.formats

    def with_formats(self, formats: tuple[str, ...]) -> TripReading:
        """The same, with other time formats."""
        given = self.trips
        if isinstance(given, Prepared) and isinstance(given.by, Linked | Dated):
            given = replace(given, by=replace(given.by, formats=formats))
            if isinstance(given.by, Dated):
                return replace(self, trips=given)
        return replace(self, trips=given, clock=replace(self.clock, format=formats))


def reading_of(config: Config) -> TripReading:
    """How a configuration reads trips; what is wrong with it is one line with its place."""
    trips = schema_of(config if config.series is None else applied(config, first_slot(config)))
    stops = stops_of(config, trips)
    universe = universe_of(config, stops, trips)
    check_names(config, universe, trips)
    check_columns(config, universe, trips)
    unit = unit_of(config, trips, universe)
    columns = columns_of(universe, trips, unit)
    return TripReading(config, trips.given, trips.source, universe, columns, unit, trips.clock, stops)


def reading_of_plan(plan: Plan) -> TripReading:
    schema = plan.schema or opened(plan.trips)
    return TripReading(
        plan.config, plan.trips, schema, plan.universe, plan.columns, plan.unit, plan.clock, plan.stops
    )


def look(reading: TripReading) -> Inspection:
    """Read all trips. Private."""
    return inspect(
        reading.trips,
        reading.universe,
        columns=reading.columns,
        unit=reading.unit,
        clock=reading.clock,
        examples=EXAMPLES,
    )


def look_at(reading: TripReading, dimension: str, column: str, **changes: Any) -> Inspection:
    """Read one column as if it held one dimension, and nothing else."""
    alone = Universe(**{dimension: reading.universe.dimensions[dimension]})
    return inspect(
        reading.trips,
        alone,
        columns={dimension: column},
        clock=reading.clock,
        examples=EXAMPLES,
        **changes,
    )


def values_of(reading: TripReading, column: str, most: int = EXAMPLES) -> tuple[tuple[str, int], ...]:
    """The commonest values of a column, with their rows."""
    return values_in(reading.trips, column, most)[1]


def values_in(trips: Given, column: str, most: int) -> tuple[int, tuple[tuple[str, int], ...]]:
    """How many rows there are, and the commonest values of a column with theirs. Private."""
    kind = kind_of(opened(trips).kinds[column]).name
    if kind not in (TEXT, WHOLE, REAL):
        return 0, ()
    nothing = Universe(
        value=["\0" if kind == TEXT else NEVER]
    )  # no value is this one, so that all are examples
    found = inspect(trips, nothing, columns={"value": column}, examples=most)
    return found.read, next((d.examples for d in found.dropped if d.examples), ())


def days_in(reading: TripReading, column: str) -> tuple[dt.date, dt.date] | None:
    """The first and the last day of a column of dates, whether or not the count asks for days. Private."""
    week = Universe(day=list(WEEK))
    try:
        found = inspect(reading.trips, week, columns={planning.DAY: column}, clock=reading.clock)
    except InputError:  # of a type that holds no dates
        return None
    return None if found.first is None or found.last is None else (found.first, found.last)


def dropped_as(found: Inspection, status: int) -> list[Dropped]:
    """What was dropped for a reason, by column."""
    return [d for d in found.dropped if d.reason == REASONS[status]]


def counts_column(reading: TripReading) -> str | None:
    return planning.weight_column(reading.columns, reading.universe)
