"""The public stops of a plan, with their zones."""

from __future__ import annotations

from cbdp.app.config import Config
from cbdp.app.plan.public_files import PLACES, ColumnTypes
from cbdp.errors import InputError
from cbdp.features import places
from cbdp.features.places import Stops


def stop_dimensions(config: Config) -> tuple[str, ...]:
    """The dimensions whose values are the stops."""
    named = tuple(n for n, given in config.universe.dimensions.items() if given == "stops")
    return named or (PLACES if config.data.stops else ())


def stops_of(config: Config, trips: ColumnTypes) -> Stops | None:
    data, zones = config.data, config.universe.zones
    if data.stops is None:
        _check_not_needed(config)
        return None
    named = dict(data.stop_columns)
    if zones and zones.column:
        named["zone"] = zones.column
    numbers = trips.numbers(stop_dimensions(config))
    with config.source.at("data", "stops"):
        found = _read(config, named, numbers=numbers)
    with config.source.at("universe", "zones"):
        return _zoned(config, found)


def _read(config: Config, named: dict[str, str], *, numbers: bool) -> Stops:
    """The stops' file; where it calls the ids otherwise, with the line to write."""
    path = config.path(str(config.data.stops))
    try:
        return places.stops(path, columns=named, ids=int if numbers else str)
    except InputError as wrong:
        if "id" in named or "has no column 'id'" not in str(wrong):
            raise
        raise InputError(
            f'{wrong}. Say which one is the id: stop_columns = {{ id = "…" }} in [data]'
        ) from None


def _zoned(config: Config, stops: Stops) -> Stops:
    zones = config.universe.zones
    if zones and zones.polygons:
        return places.zones_by_polygon(stops, config.path(zones.polygons), label=zones.label)
    if zones and zones.balanced:
        return places.zones_by_halving(stops, zones.balanced)
    if zones and zones.clusters:
        return places.zones_by_clustering(stops, zones.clusters)[0]
    if zones and stops.zone is None:
        raise InputError(f"the stops' column {zones.column!r} is empty: fill it, or choose another")
    return stops


def _check_not_needed(config: Config) -> None:
    """Settings that make no sense without stops."""
    for keys, given in (
        (("universe", "zones"), config.universe.zones),
        (("data", "stop_columns"), config.data.stop_columns),
    ):
        if given:
            raise config.source.error(keys, f"{'.'.join(keys)} needs stops: name their file in data.stops")
    for name, given in config.universe.dimensions.items():
        if given == "stops":
            raise config.source.error(
                ("universe", "dimensions", name),
                f"the dimension {name!r} needs stops: name their file in data.stops",
            )
