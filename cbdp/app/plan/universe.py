"""The universe of a plan: time, days, stops and further dimensions, from public inputs."""

from __future__ import annotations

import itertools
from collections.abc import Hashable

from cbdp.app.config import Config, DaySpan, ListingFile, NamedPeriod, TimeGrid
from cbdp.app.plan.modes import with_modes
from cbdp.app.plan.public_files import PLACES, ColumnTypes, holidays, rows_with
from cbdp.app.plan.stops import stop_dimensions
from cbdp.errors import InputError
from cbdp.features import Dimension, Universe, calendar, periods
from cbdp.features.calendar import seconds_of
from cbdp.features.places import Stops
from cbdp.parts import did_you_mean


def universe_of(config: Config, stops: Stops | None, trips: ColumnTypes) -> Universe:
    dimensions = _dimensions(config, stops)
    for name, given in config.universe.dimensions.items():
        if given != "stops":
            with config.source.at("universe", "dimensions", name):
                if name in dimensions:
                    raise InputError(f"there is already a dimension {name!r}: give this one another name")
                dimensions[name] = _further(config, name, given, trips)
    if not dimensions:
        raise config.source.error(
            ("universe",),
            "the universe has no dimension: give data.stops, universe.time or universe.dimensions",
        )
    with config.source.at("universe"):
        universe = Universe(**dimensions)
    return with_modes(config, _less_zeros(config, universe), stops)


def _dimensions(config: Config, stops: Stops | None) -> dict[str, Dimension]:
    """The dimensions that are described by tables of their own."""
    table = config.universe
    found: dict[str, Dimension] = {}
    if stops is not None:
        found |= {name: stops.dimension() for name in stop_dimensions(config)}
    if table.days is not None:
        found["day"] = _days(config, table.days)
    if table.time is not None:
        found["time"] = _time(config, table.time)
    if table.modes and table.modes.column:
        with config.source.at("universe", "modes", "values"):
            found["mode"] = Dimension(table.modes.values)
    return found


def _less_zeros(config: Config, universe: Universe) -> Universe:
    if config.universe.origin_is_destination:
        return universe
    with config.source.at("universe", "origin_is_destination"):
        return universe.without_equal(*PLACES)


# Time


def _time(config: Config, given: TimeGrid | tuple[NamedPeriod, ...]) -> Dimension:
    if isinstance(given, TimeGrid):
        with config.source.at("universe", "time"):
            return periods(given.start, given.end, given.every)
    for n, period in enumerate(given):
        if seconds_of(period.end) <= seconds_of(period.start):
            raise config.source.error(
                ("universe", "time", n, "end"),
                f"the period {period.name!r} ends at {period.end}, not after its start {period.start}: correct one",
            )
    order = sorted(range(len(given)), key=lambda n: seconds_of(given[n].start))
    for a, b in itertools.pairwise(order):
        _check_next(config, given[a], given[b], b)
    edges = [seconds_of(given[n].start) for n in order] + [seconds_of(given[order[-1]].end)]
    with config.source.at("universe", "time"):
        return Dimension([given[n].name for n in order], edges=edges)


def _check_next(config: Config, first: NamedPeriod, then: NamedPeriod, place: int) -> None:
    keys = ("universe", "time", place, "start")
    if seconds_of(then.start) < seconds_of(first.end):
        raise config.source.error(
            keys,
            f"the periods {first.name!r} (to {first.end}) and {then.name!r} (from {then.start}) overlap: "
            "let each begin where the one before ends",
        )
    if seconds_of(then.start) > seconds_of(first.end):
        raise config.source.error(
            keys,
            f"there is a gap between the periods {first.name!r} (to {first.end}) and {then.name!r} "
            f"(from {then.start}): add a period for it",
        )


def _days(config: Config, given: DaySpan | tuple[str, ...]) -> Dimension:
    special = holidays(config)
    with config.source.at("universe", "days"):
        if isinstance(given, DaySpan):
            return calendar.days(given.first, given.last, holidays=special)
        if all(calendar.as_date(day) for day in given):
            return Dimension(given)
    types = [*calendar.WEEK, "weekday", "weekend", *special.values()]
    for n, day in enumerate(given):
        if day not in types:
            raise config.source.error(
                ("universe", "days", n), f"{day!r} is not a type of day: {did_you_mean(day, types)}"
            )
    with config.source.at("universe", "days"):
        return Dimension(given)


# Further dimensions


def _further(
    config: Config, name: str, given: ListingFile | tuple[Hashable, ...], trips: ColumnTypes
) -> Dimension:
    if not isinstance(given, ListingFile):
        return Dimension(given)
    rows = rows_with(config.path(given.file), [given.column, *given.attributes.values()])
    values: list[Hashable] = [row[given.column] for row in rows]
    if trips.numbers([name]):
        try:
            values = [int(str(value)) for value in values]
        except ValueError:
            raise InputError(
                f"the trips hold numbers, column {given.column!r} of {given.file!r} does not: convert one of them"
            ) from None
    attributes = {attribute: [row[column] for row in rows] for attribute, column in given.attributes.items()}
    return Dimension(values, **attributes)
