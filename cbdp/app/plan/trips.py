"""The trips of a plan: their schema and columns, and no row. The one place of planning that knows how trips are opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cbdp.app.config import Config, UnitSection
from cbdp.app.config.choices import UNKNOWN
from cbdp.app.plan.bought import GUESS, bought_of, settled
from cbdp.app.plan.public_files import PLACES, holidays
from cbdp.app.presets import PRESETS, Settled
from cbdp.app.presets import settled as settled_by_preset
from cbdp.features import Universe
from cbdp.parts import did_you_mean
from cbdp.privacy.unit import RELEASE, Person, Trip, Unit
from cbdp.trips import Clock, Schema, kinds, planning
from cbdp.trips import schema_of as opened
from cbdp.trips.preparing import Linked, Preparation, Prepared

CURES = {  # where a role is stated and has no use
    "time": "state universe.time",
    "action": 'to link tap-ons with tap-offs, write preset = "taps" in [data], with columns for person, time, stop and action',
}
Raw = str | list[str]  # a path, a pattern, a URL, or several paths
Given = Raw | Prepared  # what `cbdp.count` takes


@dataclass(frozen=True)
class TripSchema:
    """What is known of the trips before any row is read."""

    given: Given
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
    raw = _given(config)
    with config.source.at("data", "trips"):
        source = opened(raw)
    found = _settled(config, source)
    given: Given = raw
    if found.preparation is not None:
        given, source = _prepared(config, raw, found)
    return TripSchema(given, _columns(config, found.columns), _clock(config, found.formats), source)


def _settled(config: Config, source: Schema) -> Settled:
    """Columns and time formats as they are stated, and as the preset has them."""
    data = config.data
    if data.preset is None:
        return _tapped(config, Settled(data.columns, data.time_format))
    _clock(config, data.time_format)
    with config.source.at("data", "preset"):
        found = settled_by_preset(PRESETS.get(data.preset), source.kinds, data.columns, data.time_format)
    return _tapped(config, found)


def _tapped(config: Config, found: Settled) -> Settled:
    """With the words of tap-ons and tap-offs that are stated, in the place of those of the preset."""
    taps, linked = config.data.taps, found.preparation
    if not taps:
        return found
    if not isinstance(linked, Linked):
        raise config.source.error(
            ("data", "taps"),
            'data.taps says how taps are written, and no preset links taps with each other: leave it out, or write preset = "taps"',
        )
    on, off = (tuple(map(_as_compared, taps.get(side, ()))) for side in ("on", "off"))
    if not on or not off or set(on) & set(off):
        raise config.source.error(
            ("data", "taps"), 'data.taps needs different words for both: taps = { on = "1", off = "2" }'
        )
    return replace(found, preparation=replace(linked, on=on, off=off))


def _as_compared(word: str) -> str:
    """Small letters, and no spaces but as underscores."""
    return word.strip().lower().replace(" ", "_")


def _prepared(config: Config, raw: Raw, found: Settled) -> tuple[Prepared, Schema]:
    assert isinstance(found.preparation, Preparation)
    if isinstance(raw, str) and "://" in raw and not raw.startswith("duckdb://"):
        raise config.source.error(
            ("data", "preset"),
            f"the preset {config.data.preset!r} makes trips of rows in DuckDB: export the rows to Parquet, or make the "
            "trips in your database and leave the preset out",
        )
    given = Prepared(raw, found.preparation)
    with config.source.at("data", "columns"):
        return given, opened(given)


def is_text(kind: Any) -> bool:
    """Whether a column of this type holds text."""
    return kinds.is_text(kinds.plain_kind(kind))


def _given(config: Config) -> Raw:
    """Where the trips are, seen from the configuration's folder."""
    found = [_located(config, written) for written in config.data.trips]
    for path in found:
        if found.count(path) > 1:
            raise config.source.error(
                ("data", "trips"), f"{path!r} is listed twice: its trips would be counted twice"
            )
    if len(found) > 1 and any("://" in written for written in found):
        raise config.source.error(
            ("data", "trips"), "data.trips lists a URL together with others: give the URL alone"
        )
    return found[0] if len(found) == 1 else found


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
    said = formats[0] if len(formats) == 1 else tuple(formats) or None
    with config.source.at("data", "time_format"):
        Clock(format=said)
    starts = config.data.day_starts or Clock().day_starts
    with config.source.at("data", "day_starts"):
        Clock(day_starts=starts)
    with config.source.at("data", "timezone"):
        return Clock(config.data.timezone, said, holidays(config), starts)


def _columns(config: Config, stated: Mapping[str, str]) -> dict[str, str]:
    """Dimension → column, as stated and as follows from it."""
    found = dict(stated)
    found.setdefault("day", found.get("time", "time"))
    if config.universe.modes and config.universe.modes.column:
        found["mode"] = config.universe.modes.column
    return found


def check_names(config: Config, universe: Universe, trips: TripSchema) -> None:
    """Whether what is written in data.columns makes sense."""
    roles = [] if config.data.preset is None else list(PRESETS.get(config.data.preset).columns)
    known = list(dict.fromkeys([*universe.dimensions, planning.PERSON, planning.COUNT, *roles]))
    for name, column in config.data.columns.items():
        if column == UNKNOWN:
            raise config.source.error(
                ("data", "columns", name),
                f"the column of {name!r} is still {UNKNOWN!r}: write the name of the column in the trips that holds it",
            )
        if name not in known and name != "day":  # a date is no mistake where no day is counted
            cure = CURES.get(name) or did_you_mean(name, known)
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
            planning.check_dimension(source, column, dimension, trips.clock)
    for name in (planning.PERSON, planning.COUNT):
        if name in config.data.columns:
            with config.source.at("data", "columns", name):
                kinds.check_column(source, trips.column(name))
    if not (isinstance(trips.given, str) and "://" in trips.given):
        with config.source.at("data", "trips"):
            opened(trips.given, list(columns_of(universe, trips).values()))  # compares all files' schemas


def columns_of(universe: Universe, trips: TripSchema, unit: Unit | None = None) -> dict[str, str]:
    """What `cbdp.count` is told of the columns: the dimensions', the day's where persons are bounded by it, and the column of counts where there is one."""
    found = {name: trips.column(name) for name in universe.dimensions}
    if unit is not None and unit.per != RELEASE:
        found.setdefault(planning.DAY, trips.column(planning.DAY))
    counts = planning.weight_column(trips.columns, universe)
    return found if counts is None else {**found, planning.COUNT: counts}


def _keys(config: Config, name: str) -> tuple[str, ...]:
    """Where the column of a dimension is written."""
    if name == "mode" and config.universe.modes and config.universe.modes.column:
        return ("universe", "modes", "column")
    written = name if name in config.data.columns or name != "day" else "time"
    return ("data", "columns", written)


def unit_of(config: Config, trips: TripSchema, universe: Universe) -> Unit:
    """What is protected; a person's column must be there."""
    unit = _unit(config, trips, universe)
    counts = planning.weight_column(trips.columns, universe)
    if counts is not None:
        with config.source.at("data", "columns", planning.COUNT):
            planning.check_weight(trips.source, counts, unit)
    return unit


def _unit(config: Config, trips: TripSchema, universe: Universe) -> Unit:
    given = config.privacy.unit
    if not isinstance(given, UnitSection):
        return Trip()
    if given.trip is not None:
        return Trip(given.trip)
    assert given.person is not None
    with config.source.at("privacy", "unit", "person"):
        column = planning.person_column(given.person, trips.columns, universe)
        kinds.check_person(trips.source, column)
    wanted = bought_of(config)
    most = GUESS if wanted is not None else given.max_trips
    assert isinstance(most, int)
    unit = Person(column, most, given.per or RELEASE, given.apart, wanted)
    for key in ("per", "apart"):
        if getattr(given, key) is not None:
            with config.source.at("privacy", "unit", key):
                planning.check_unit(
                    trips.source, universe, columns_of(universe, trips, unit), unit, trips.clock, key
                )
    return settled(config, universe, columns_of(universe, trips, unit), trips.clock, unit)
