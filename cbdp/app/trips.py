"""The trips of a plan: their schema, columns, clock, unit of privacy and whereabouts, and no row.

The one place of planning that knows how trips are opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cbdp.app.presets import PRESETS, PresetColumns
from cbdp.app.presets import apply_preset as settled_by_preset
from cbdp.config import Config, UnitSection
from cbdp.config.sections import UNKNOWN_COLUMN
from cbdp.counting import Clock, Schema, columns
from cbdp.counting import plan as counting_plan
from cbdp.counting import schema_of as opened
from cbdp.counting.columns import STAMP, TEXT, kind_of
from cbdp.counting.linking import LinkedTaps, Preparation, Prepared
from cbdp.counting.plan import moves_days
from cbdp.counting.reading import TripSource
from cbdp.features import Universe
from cbdp.forecast.account import MAX_TRIPS_UNTIL_BOUGHT, requested_quantile, with_bought_max_trips
from cbdp.forecast.continuity import AS_WRITTEN, TEXT_DATES, TEXT_TIMES, ZONED, ZONELESS, DayReading
from cbdp.forecast.inputs import PLACES, holidays, stops_of, universe_of
from cbdp.parts import did_you_mean
from cbdp.privacy.unit import RELEASE, Person, Trip, Unit
from cbdp_features.places import Stops

UNUSED_ROLE_CURES = {  # where a role is stated and has no use
    "time": "state universe.time",
    "action": 'to link tap-ons with tap-offs, write preset = "taps" in [data], with columns for person, time, stop and action',
}
TripPlaces = str | list[str]  # a path, a pattern, a URL, or several paths


@dataclass(frozen=True)
class TripSchema:
    """What is known of the trips before any row is read."""

    trips: TripSource
    columns: Mapping[str, str]  # dimension → column, where the names differ
    clock: Clock
    source: Schema  # columns and their types

    def column(self, dimension: str) -> str:
        return self.columns.get(dimension, dimension)

    def numbers(self, dimensions: Sequence[str]) -> bool:
        """Whether the trips hold numbers for these dimensions."""
        import pyarrow as pa

        columns = [self.column(name) for name in dimensions]
        kinds = [self.source.kinds[c] for c in columns if c in self.source.kinds]
        return bool(kinds) and all(pa.types.is_integer(k) or pa.types.is_floating(k) for k in kinds)


def schema_of(config: Config) -> TripSchema:
    raw = _trip_places(config)
    with config.source.at("data", "trips"):
        source = opened(raw)
    settled = _columns_and_formats(config, source)
    trips: TripSource = raw
    if settled.preparation is not None:
        trips, source = _prepared(config, raw, settled)
    return TripSchema(trips, _columns(config, settled.columns), _clock(config, settled.formats), source)


@dataclass(frozen=True, eq=False)
class PublicInputs:
    """What a configuration counts by: stops and universe, and columns of the trips that can mean it."""

    trips: TripSchema
    stops: Stops | None
    universe: Universe


def inputs_of(config: Config, trips: TripSchema | None = None) -> PublicInputs:
    """What is wrong with one of them is an error with its place."""
    schema = trips or schema_of(config)
    stops = stops_of(config, schema)
    universe = universe_of(config, stops, schema)
    check_names(config, universe, schema)
    check_columns(config, universe, schema)
    return PublicInputs(schema, stops, universe)


def _columns_and_formats(config: Config, source: Schema) -> PresetColumns:
    """Columns and time formats as they are stated, and as the preset has them."""
    data = config.data
    if data.preset is None:
        return _with_tap_words(config, PresetColumns(data.columns, data.time_format))
    _clock(config, data.time_format)
    with config.source.at("data", "preset"):
        settled = settled_by_preset(PRESETS.get(data.preset), source.kinds, data.columns, data.time_format)
    return _with_tap_words(config, settled)


def _with_tap_words(config: Config, settled: PresetColumns) -> PresetColumns:
    """With the words of tap-ons and tap-offs that are stated, in the place of those of the preset."""
    taps, linked = config.data.taps, settled.preparation
    if not taps:
        return settled
    if not isinstance(linked, LinkedTaps):
        raise config.source.error(
            ("data", "taps"),
            'data.taps says how taps are written, and no preset links taps with each other: leave it out, or write preset = "taps"',
        )
    on, off = (tuple(map(_as_compared, taps.get(side, ()))) for side in ("on", "off"))
    if not on or not off or set(on) & set(off):
        raise config.source.error(
            ("data", "taps"), 'data.taps needs different words for both: taps = { on = "1", off = "2" }'
        )
    return replace(settled, preparation=replace(linked, on=on, off=off))


def _as_compared(word: str) -> str:
    """Small letters, and no spaces but as underscores."""
    return word.strip().lower().replace(" ", "_")


def _prepared(config: Config, raw: TripPlaces, settled: PresetColumns) -> tuple[Prepared, Schema]:
    assert isinstance(settled.preparation, Preparation)
    if isinstance(raw, str) and "://" in raw and not raw.startswith("duckdb://"):
        raise config.source.error(
            ("data", "preset"),
            f"the preset {config.data.preset!r} makes trips of rows in DuckDB: export the rows to Parquet, or make the "
            "trips in your database and leave the preset out",
        )
    prepared = Prepared(raw, settled.preparation)
    with config.source.at("data", "columns"):
        return prepared, opened(prepared)


def _trip_places(config: Config) -> TripPlaces:
    """Where the trips are, seen from the configuration's folder."""
    located = [_located(config, written) for written in config.data.trips]
    for path in located:
        if located.count(path) > 1:
            raise config.source.error(
                ("data", "trips"), f"{path!r} is listed twice: its trips would be counted twice"
            )
    if len(located) > 1 and any("://" in written for written in located):
        raise config.source.error(
            ("data", "trips"), "data.trips lists a URL together with others: give the URL alone"
        )
    return located[0] if len(located) == 1 else located


def _located(config: Config, written: str) -> str:
    """A path from the configuration's folder; a database as its URL says."""
    scheme, mark, place = written.partition("://")
    if not mark:
        return str(config.path(written))
    if scheme != "duckdb":
        return written
    file, _, table = place.rpartition("::")
    inside = config.path(file.lstrip("/"))
    return f"duckdb://{inside}::{table}" if file and not Path(file).is_file() else written


def _clock(config: Config, formats: Sequence[str]) -> Clock:
    stated = formats[0] if len(formats) == 1 else tuple(formats) or None
    with config.source.at("data", "time_format"):
        Clock(format=stated)
    starts = config.data.day_starts or Clock().day_starts
    with config.source.at("data", "day_starts"):
        Clock(day_starts=starts)
    with config.source.at("data", "timezone"):
        return Clock(config.data.timezone, stated, holidays(config), starts)


def _columns(config: Config, stated: Mapping[str, str]) -> dict[str, str]:
    """Dimension → column, as stated and as follows from it."""
    columns = dict(stated)
    columns.setdefault("day", columns.get("time", "time"))
    if config.universe.modes and config.universe.modes.column:
        columns["mode"] = config.universe.modes.column
    return columns


def check_names(config: Config, universe: Universe, trips: TripSchema) -> None:
    """Whether what is written in data.columns makes sense."""
    roles = [] if config.data.preset is None else list(PRESETS.get(config.data.preset).columns)
    names = list(
        dict.fromkeys([*universe.dimensions, counting_plan.PERSON_KEY, counting_plan.COUNT_KEY, *roles])
    )
    for name, column in config.data.columns.items():
        if column == UNKNOWN_COLUMN:
            raise config.source.error(
                ("data", "columns", name),
                f"the column of {name!r} is still {UNKNOWN_COLUMN!r}: write the name of the column in the trips that holds it",
            )
        if name not in names and name != "day":  # a date is no mistake where no day is counted
            cure = UNUSED_ROLE_CURES.get(name) or did_you_mean(name, names)
            raise config.source.error(
                ("data", "columns", name), f"data.columns names {name!r}, which is not a dimension: {cure}"
            )
    if len({trips.column(p) for p in PLACES}) == 1 and set(PLACES) <= set(universe.dimensions):
        raise config.source.error(
            ("data", "columns", "destination"),
            "origin and destination are the same column: give each its own",
        )


def check_columns(config: Config, universe: Universe, trips: TripSchema) -> None:
    """Whether every column is there and of a type that can mean the dimension, by the schema alone."""
    source = trips.source
    for name, dimension in universe.dimensions.items():
        column = trips.column(name)
        with config.source.at(*_keys(config, name)):
            counting_plan.check_dimension(source, column, dimension, trips.clock)
    for name in (counting_plan.PERSON_KEY, counting_plan.COUNT_KEY):
        if name in config.data.columns:
            with config.source.at("data", "columns", name):
                columns.check_column(source, trips.column(name))
    if not (isinstance(trips.trips, str) and "://" in trips.trips):
        with config.source.at("data", "trips"):
            opened(trips.trips, list(columns_of(universe, trips).values()))  # compares all files' schemas


def columns_of(universe: Universe, trips: TripSchema, unit: Unit | None = None) -> dict[str, str]:
    """What `cbdp.count` is told of the columns: the dimensions', the day's where persons are bounded by it, and the column of counts where there is one."""
    named = {name: trips.column(name) for name in universe.dimensions}
    if unit is not None and unit.per != RELEASE:
        named.setdefault(counting_plan.DAY_KEY, trips.column(counting_plan.DAY_KEY))
    counts = counting_plan.weight_column(trips.columns, universe)
    return named if counts is None else {**named, counting_plan.COUNT_KEY: counts}


def _keys(config: Config, name: str) -> tuple[str, ...]:
    """Where the column of a dimension is written."""
    if name == "mode" and config.universe.modes and config.universe.modes.column:
        return ("universe", "modes", "column")
    written = name if name in config.data.columns or name != "day" else "time"
    return ("data", "columns", written)


def unit_of(config: Config, trips: TripSchema, universe: Universe) -> Unit:
    """What is protected; a person's column must be there."""
    unit = _unit(config, trips, universe)
    counts = counting_plan.weight_column(trips.columns, universe)
    if counts is not None:
        with config.source.at("data", "columns", counting_plan.COUNT_KEY):
            counting_plan.check_weight(trips.source, counts, unit)
    return unit


def _unit(config: Config, trips: TripSchema, universe: Universe) -> Unit:
    section = config.privacy.unit
    if not isinstance(section, UnitSection):
        return Trip()
    if section.trip is not None:
        return Trip(section.trip)
    assert section.person is not None
    with config.source.at("privacy", "unit", "person"):
        column = counting_plan.person_column(section.person, trips.columns, universe)
        columns.check_person(trips.source, column)
    purchase = requested_quantile(config)
    most = MAX_TRIPS_UNTIL_BOUGHT if purchase is not None else section.max_trips
    assert isinstance(most, int)
    unit = Person(column, most, section.per or RELEASE, section.apart, purchase)
    for key in ("per", "apart"):
        if getattr(section, key) is not None:
            with config.source.at("privacy", "unit", key):
                counting_plan.check_unit(
                    trips.source, universe, columns_of(universe, trips, unit), unit, trips.clock, key
                )
    return with_bought_max_trips(config, universe, columns_of(universe, trips, unit), trips.clock, unit)


# Service days


def service_days(
    columns: Mapping[str, str],
    universe: Universe,
    clock: Clock,
    schema: Schema | None,
    *,
    pinned: bool = False,
) -> str:
    """In words: which column, what it holds, in which zone (as stated, or as the column's type has it), from which time on.

    In a series (`pinned`), texts are read as dates or as times where these could be on different days.
    """
    column = counting_plan.dated_column(columns, universe)
    kind = kind_of(schema.kinds[column]) if schema is not None and column in schema.kinds else None
    form = "" if clock.format is None else f" ({clock.format})"
    name = "" if kind is None else ZONED if kind.zone else ZONELESS if kind.name == STAMP else kind.name
    if name == TEXT and pinned and moves_days(clock):
        name = TEXT_TIMES if counting_plan.is_timed(column, columns, universe) else TEXT_DATES
    typed = None if kind is None else kind.zone
    return str(DayReading(f"{column!r}{form}", name, clock.timezone or typed or AS_WRITTEN, clock.day_starts))
