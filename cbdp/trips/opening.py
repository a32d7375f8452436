"""Looking at trips without counting them: their schema, which is public, and the trips again, on another path, which are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.features import Universe
from cbdp.privacy.unit import RELEASE, Person, Trip, Unit
from cbdp.trips.clock import Clock
from cbdp.trips.count import count
from cbdp.trips.days import Days
from cbdp.trips.engines import engine_for
from cbdp.trips.engines.duckdb_open import reading
from cbdp.trips.kinds import Schema
from cbdp.trips.planning import dated_column, day_column, make_plan, person_column, wanted_columns
from cbdp.trips.preparing import within_periods
from cbdp.trips.ranking import rank
from cbdp.trips.recount import Recount, can_recount, recount


def schema_of(trips: Any, wanted: Sequence[str] | None = None) -> Schema:
    """The columns of trips and their types: no row is read. Of several files, the wanted columns must be alike in all.

    >>> list(schema_of({"stop": ["A"], "time": ["am"]}).kinds)
    ['stop', 'time']
    """
    with engine_for(trips).open(trips, wanted) as source:
        return source.schema


def rows_of(trips: Any) -> int:
    """How many rows a file or a table of a database has, by its own books. Private."""
    with engine_for(trips).open(trips) as source:
        return source.rows()


def second_count(
    trips: Any,
    universe: Universe,
    *,
    columns: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    days: Days | None = None,
) -> tuple[Ints, Ints]:
    """Trip types with trips, and how many, counted by other code than `cbdp.count` where that can read such trips; nobody is bounded. Private.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> index, value = second_count(trips, features.universe)
    >>> index.tolist(), value.tolist()
    ([0, 1, 3], [1, 1, 1])
    """
    if can_recount(trips):
        return _again(trips, universe, Trip(), columns, clock, days).counts()
    found = count(trips, universe, columns=columns, clock=clock, days=days)
    return found.index, found.value


def trips_by_person(
    trips: Any,
    universe: Universe,
    unit: Person,
    *,
    columns: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    days: Days | None = None,
) -> tuple[NDArray[np.bool_], Ints]:
    """All trips of persons inside the universe, before bounding: where another person (or period) begins, and the trips' types. Private.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"], "card": [1, 1, 2]}
    >>> begins, types = trips_by_person(trips, features.universe, cbdp.Person("card", 2))
    >>> int(begins.sum()), len(types)
    (2, 3)
    """
    if can_recount(trips):
        found = _again(trips, universe, unit, columns, clock, days)
        assert found.person is not None
        order = np.lexsort((found.types, found.person))
        return np.diff(found.person[order], prepend=-1) != 0, found.types[order]
    trips = within_periods(trips, universe, unit, columns, clock or Clock(), days)
    with engine_for(trips).open(trips, wanted_columns(universe, columns, unit, days)) as source:
        plan = make_plan(source.schema, universe, columns, unit, clock or Clock(), days)
        begins, types = [np.empty(0, dtype=bool)], [np.empty(0, dtype=np.int64)]
        for new, flat in source.by_person(plan):
            begins.append(new)
            types.append(rank(flat, universe, plan))
    return np.concatenate(begins), np.concatenate(types)


def loads_of(
    trips: Any,
    universe: Universe,
    unit: Person,
    *,
    columns: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> tuple[list[int], list[int]]:
    """Numbers of trips, and how many persons made so many (in one period, kept apart as the unit says); nobody is bounded. Private.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"], "card": [1, 1, 2]}
    >>> loads_of(trips, features.universe, cbdp.Person("card", 2))
    ([1, 2], [1, 1])
    """
    trips = within_periods(trips, universe, unit, columns, clock or Clock())
    with engine_for(trips).open(trips, wanted_columns(universe, columns, unit)) as source:
        many, persons, _ = source.loads(make_plan(source.schema, universe, columns, unit, clock or Clock()))
    return many.tolist(), persons.tolist()


def _again(
    trips: Any,
    universe: Universe,
    unit: Unit,
    columns: Mapping[str, str] | None,
    clock: Clock | None,
    days: Days | None,
) -> Recount:
    """The second count, of trips whose schema has been checked; what cannot be read is one error that quotes nothing."""
    with engine_for(trips).open(trips, wanted_columns(universe, columns, unit, days)) as source:
        make_plan(source.schema, universe, columns, unit, clock or Clock(), days)
        label = source.schema.label
    person = day = None
    if isinstance(unit, Person):
        person = person_column(unit.column, columns or {}, universe)
        day = None if unit.per == RELEASE else day_column(columns or {}, universe, unit)
    dated = None if days is None else dated_column(columns or {}, universe)
    with reading(label, ": it is damaged, or not whole"):
        return recount(
            trips,
            universe,
            columns=columns,
            clock=clock,
            person=person,
            per=unit.per,
            day=day,
            days=days,
            dated=dated,
        )
