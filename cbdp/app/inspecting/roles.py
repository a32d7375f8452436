"""Columns in the wrong place: another column of the trips holds what a dimension lists; a person column that holds no persons."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from cbdp.app.inspecting.cause import Cause
from cbdp.app.inspecting.reading import TripReading, look_at
from cbdp.app.plan.stops import stop_dimensions
from cbdp.errors import InputError
from cbdp.trips import Inspection
from cbdp.trips.engines.base import OUTSIDE
from cbdp.trips.inspect import REASONS

MOST = 40  # columns that are tried
ENOUGH = 0.8  # share of rows that another column must explain
MANY = 50  # trips of a usual person above which the column rather tells kinds of persons


def role_causes(reading: TripReading, found: Inspection) -> Iterator[Cause]:
    stops = stop_dimensions(reading.config)
    person = reading.person
    wrong = {d: _lost(found, d) for d in reading.universe.dimensions if _lost(found, d) > found.read / 2}
    for dimension, lost in wrong.items():
        if found.read:
            better = _better(reading, dimension, wrong)
            if better is not None:
                what = f"column {reading.columns[dimension]!r} does not hold values of {dimension!r}, but column {better!r} does"
                role = "it is stated as the person" if better == person else "it is used for nothing else"
                other = next(
                    (
                        d
                        for d, c in reading.columns.items()
                        if c == better and d in reading.universe.dimensions
                    ),
                    None,
                )
                if other is not None:
                    role = f"it is stated as {other}: the two may be swapped"
                yield Cause(lost, what, f'write columns = {{ {dimension} = "{better}" }} ({role})')
    if person is not None and stops and found.read:
        yield from _persons(reading, found, person, stops[0])


def _lost(found: Inspection, dimension: str) -> int:
    """Rows that do not count because of what stands in this dimension's column."""
    return sum(d.rows for d in found.dropped if d.dimension == dimension and d.reason != REASONS[OUTSIDE])


def _better(reading: TripReading, dimension: str, wrong: Collection[str]) -> str | None:
    """The column that fits a dimension in most rows, if one does; none that is right where it stands.

    One column may tell both the time and the day.
    """
    best, most = None, 0
    right = {
        reading.columns[d]
        for d in reading.universe.dimensions
        if d not in wrong and {d, dimension} != {"time", "day"}
    }
    others = [c for c in reading.schema.kinds if c and c != reading.columns[dimension] and c not in right][
        :MOST
    ]
    for column in others:
        try:
            tried = look_at(reading, dimension, column)
        except InputError:  # of a type that cannot hold the dimension
            continue
        if tried.counted > most and tried.counted >= ENOUGH * tried.read:
            best, most = column, tried.counted
    return best


def _persons(reading: TripReading, found: Inspection, person: str, stops: str) -> Iterator[Cause]:
    """A column that tells stops, trips or kinds of persons apart is no person's."""
    loads = found.loads
    try:
        places = look_at(reading, stops, person)
        if places.counted > places.read / 2:
            cure = "name the column of a card or a person in privacy.unit"
            yield Cause(found.read, f"column {person!r}, stated as the person, holds stop ids", cure)
            return
    except InputError:
        pass
    if loads is None or loads.persons < 20:
        if loads is not None and loads.persons and loads.trips / loads.persons > MANY:
            yield _kinds(person, loads.trips)
        return
    if loads.quantiles[0.99] == 1:
        yield Cause(
            found.read,
            f"nearly every value of {person!r} has one trip: it may be the id of a trip, not of a person",
            'name a column that is the same for all trips of a person, or protect a trip: unit = "trip"',
        )
    elif loads.quantiles[0.5] > MANY:
        yield _kinds(person, loads.trips)


def _kinds(person: str, rows: int) -> Cause:
    return Cause(
        rows,
        f"{person!r} has few values with very many trips each: it may hold kinds of persons, not persons",
        "name the column of a card or a person in privacy.unit",
    )
