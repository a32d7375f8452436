"""What a configuration means: the universe, the features, the mechanism, the account. Public inputs only are read.

Of the trips only the schema is looked at, never a row. Nothing is written and nothing is spent.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import itertools
import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp import mechanisms
from cbdp.app.config import Config, FeatureTable, Grid, Listing, Modes, Period, Span, UnitTable, did_you_mean
from cbdp.errors import InputError, SolverError
from cbdp.features import (
    SINGLETON,
    Dimension,
    Feature,
    FeatureDag,
    Universe,
    calendar,
    odmts,
    opal,
    periods,
    places,
)
from cbdp.features.places import Stops
from cbdp.features.presets import EXTRA, extra_features
from cbdp.mechanisms import Mechanism
from cbdp.mechanisms.constraint_based import DENSE
from cbdp.privacy.allocation import OPTIMAL
from cbdp.privacy.ledger import Amount, BudgetError, Charge, Finished, Ledger
from cbdp.privacy.unit import Person, Trip, Unit
from cbdp.release.release import NEAREST
from cbdp.rounding.gathering import price_of
from cbdp.solvers import get
from cbdp.trips import sources as trips_io
from cbdp.trips.sources import Clock

MECHANISMS: Mapping[str, type[Mechanism]] = {
    cls.name: cls
    for cls in (
        mechanisms.ConstraintBased,
        mechanisms.Laplace,
        mechanisms.Hierarchical,
        mechanisms.StabilityHistogram,
        mechanisms.ThresholdLaplace,
    )
}
SHARED = (
    "features",
    "epsilon",
    "unit",
    "budget",
    "delta",
    "target",
)  # what [privacy] and the features decide
NOT_ASKED = (
    "sparse",  # changes the work and not the law
    "trips",  # these follow from [data] and from the file of the prior
    "filled",
    "prior_source",
)
PLACES = ("origin", "destination")
MOST_CONFIDENT = 0.999


@dataclass(frozen=True)
class Account:
    """What the ledger says of this request. It was only read."""

    path: Path
    exists: bool
    cap: Amount  # of the ledger, or the one it will be created with
    spent: Amount
    charge: Amount  # what this release costs
    finished: Finished | None = None  # an identical request that was released: it costs nothing again
    unfinished: tuple[Charge, ...] = ()  # identical requests that were charged and never released

    @property
    def left(self) -> Amount:
        return self.cap - self.spent

    @property
    def after(self) -> Amount:
        """What is left when this release is made."""
        return self.left if self.finished else self.left - self.charge


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything a release needs but the trips' rows."""

    config: Config = field(repr=False)
    trips: str | list[str]  # what `cbdp.count` takes
    dataset: str
    columns: Mapping[str, str]  # dimension → column of the trips
    clock: Clock
    stops: Stops | None
    features: FeatureDag
    mechanism: Mechanism
    account: Account
    output: Path
    request: str  # SHA-256 of all that is public and decides what is released

    @property
    def universe(self) -> Universe:
        return self.features.universe

    @property
    def unit(self) -> Unit:
        return self.mechanism.protects

    @property
    def confidence(self) -> float:
        return self.config.output.confidence

    @property
    def exports(self) -> tuple[str, ...]:
        return self.config.output.export

    @property
    def expected_trips(self) -> int | None:
        return self.config.data.expected_trips


def plan(config: Config) -> Plan:
    """What a configuration means; what is wrong with it, or with its public inputs, is one line with its place."""
    trips = _trips(config)
    clock = _clock(config)
    schema = _schema(config, trips, clock)
    columns = _columns(config)
    stops = _stops(config, schema, columns)
    universe = _universe(config, stops, schema, columns)
    _check_columns(config, universe, columns)
    _check_trips(config, trips, schema, universe, columns, clock)
    features = _features(config, universe)
    unit = _unit(config, schema)
    mechanism = _mechanism(config, features, unit)
    dataset = config.data.id or _dataset(config)
    columns = {name: columns.get(name, name) for name in universe.dimensions}
    request = _request(dataset, columns, clock, mechanism)
    account = _account(config, dataset, mechanism, request)
    output = _output(config, account)
    return Plan(config, trips, dataset, columns, clock, stops, features, mechanism, account, output, request)


# The trips: their schema, and no row


def _trips(config: Config) -> str | list[str]:
    found = [_located(config, written) for written in config.data.trips]
    for path in found:
        if found.count(path) > 1:
            raise config.source.error(
                ("data", "trips"), f"{path!r} is listed twice: its trips would count double"
            )
    if len(found) > 1 and any("://" in written for written in found):
        raise config.source.error(("data", "trips"), "data.trips lists a URL among others: give it alone")
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


def _dataset(config: Config) -> str:
    """The name of the trips' files or table: it says nothing of the rows, of the machine, or of a password."""
    return ", ".join(w.rpartition("::")[2] if "://" in w else Path(w).name or w for w in config.data.trips)


def _clock(config: Config) -> Clock:
    holidays = {dt.date.fromisoformat(day): label for day, label in config.data.holidays.items()}
    with config.source.at("data", "timezone"):
        return Clock(config.data.timezone, config.data.time_format, holidays)


def _schema(config: Config, trips: str | list[str], clock: Clock) -> trips_io.Source:
    """The trips' columns and their types. Opening reads a schema or a header, and no row."""
    with trips_io.duck() as engine:
        with config.source.at("data", "trips"), trips_io.reading("the trips"):
            source = trips_io.open_source(engine, trips, ())
        with config.source.at("data", "time_format"):
            trips_io.check_clock(engine, clock)
    return source


def _columns(config: Config) -> dict[str, str]:
    """Dimension → column, as written and as follows from it."""
    columns = dict(config.data.columns)
    columns.setdefault("day", columns.get("time", "time"))
    if config.universe.modes and config.universe.modes.column:
        columns["mode"] = config.universe.modes.column
    return columns


def _check_columns(config: Config, universe: Universe, columns: Mapping[str, str]) -> None:
    known = [*universe.dimensions, "person"]
    for name in config.data.columns:
        if name not in known:
            cure = "say universe.time" if name == "time" else did_you_mean(name, known)
            raise config.source.error(
                ("data", "columns", name), f"data.columns names {name!r}, which is no dimension: {cure}"
            )
    if len({columns.get(p, p) for p in PLACES}) == 1 and set(PLACES) <= set(universe.dimensions):
        raise config.source.error(
            ("data", "columns", "destination"),
            "origin and destination are the same column: give each its own",
        )


def _check_trips(
    config: Config,
    trips: str | list[str],
    schema: trips_io.Source,
    universe: Universe,
    columns: Mapping[str, str],
    clock: Clock,
) -> None:
    """Whether every column is there and of a type that can mean the dimension, by the schema alone."""
    for name, dimension in universe.dimensions.items():
        column = columns.get(name, name)
        with config.source.at(*_column_keys(config, name)):
            trips_io.check_column(schema, column)
            trips_io.lookups_of(column, dimension, schema.kinds[column], schema.typed, clock)
    if "person" in config.data.columns:
        with config.source.at("data", "columns", "person"):
            trips_io.check_column(schema, columns["person"])
    if isinstance(trips, list) or "://" not in trips:
        wanted = [columns.get(name, name) for name in universe.dimensions]
        with config.source.at("data", "trips"):
            schema.start(wanted)  # compares the schemas of all files


def _column_keys(config: Config, name: str) -> tuple[str, ...]:
    if name == "mode" and config.universe.modes and config.universe.modes.column:
        return ("universe", "modes", "column")
    written = name if name in config.data.columns or name != "day" else "time"
    return ("data", "columns", written)


def _numbers(schema: trips_io.Source, columns: Sequence[str]) -> bool:
    """Whether the trips hold numbers in these columns."""
    import pyarrow as pa

    kinds = [schema.kinds[c] for c in columns if c in schema.kinds]
    return bool(kinds) and all(pa.types.is_integer(k) or pa.types.is_floating(k) for k in kinds)


# The universe


def _place_names(config: Config) -> tuple[str, ...]:
    """The dimensions whose values are the stops."""
    named = tuple(n for n, given in config.universe.dimensions.items() if given == "stops")
    return named or (PLACES if config.data.stops else ())


def _stops(config: Config, schema: trips_io.Source, columns: Mapping[str, str]) -> Stops | None:
    data, zones = config.data, config.universe.zones
    if data.stops is None:
        for keys, needs in ((("universe", "zones"), zones), (("data", "stop_columns"), data.stop_columns)):
            if needs:
                raise config.source.error(
                    keys, f"{'.'.join(keys)} needs stops: name their file in data.stops"
                )
        if any(given == "stops" for given in config.universe.dimensions.values()):
            raise config.source.error(
                ("universe", "dimensions"), "data.stops names no file of stops: add one"
            )
        return None
    named = dict(data.stop_columns)
    if zones and zones.column:
        named["zone"] = zones.column
    numbers = _numbers(schema, [columns.get(p, p) for p in _place_names(config)])
    with config.source.at("data", "stops"):
        found = places.stops(config.path(data.stops), columns=named, ids=int if numbers else str)
    with config.source.at("universe", "zones"):
        if zones and zones.polygons:
            return places.zones_by_polygon(found, config.path(zones.polygons), label=zones.label)
        if zones and zones.clusters:
            return places.zones_by_clustering(found, zones.clusters)[0]
        if zones and found.zone is None:
            raise InputError(f"the stops' column {zones.column!r} is empty: fill it, or choose another")
    return found


def _universe(
    config: Config, stops: Stops | None, schema: trips_io.Source, columns: Mapping[str, str]
) -> Universe:
    table = config.universe
    dimensions: dict[str, Dimension] = {}
    if stops is not None:
        dimensions |= {name: stops.dimension() for name in _place_names(config)}
    if table.days is not None:
        dimensions["day"] = _days(config, table.days)
    if table.time is not None:
        dimensions["time"] = _time(config, table.time)
    if table.modes and table.modes.column:
        with config.source.at("universe", "modes", "values"):
            dimensions["mode"] = Dimension(table.modes.values)
    for name, given in table.dimensions.items():
        if given == "stops":
            continue
        with config.source.at("universe", "dimensions", name):
            if name in dimensions:
                raise InputError(f"the dimension {name!r} is there already: give this one another name")
            numbers = _numbers(schema, [columns.get(name, name)])
            dimensions[name] = (
                _listing(config, given, numbers) if isinstance(given, Listing) else Dimension(given)
            )
    if not dimensions:
        raise config.source.error(
            ("universe",), "there is no dimension: give data.stops, universe.time or universe.dimensions"
        )
    with config.source.at("universe"):
        universe = Universe(**dimensions)
    return _with_modes(config, _less_zeros(config, universe), stops)


def _less_zeros(config: Config, universe: Universe) -> Universe:
    if config.universe.origin_is_destination:
        return universe
    with config.source.at("universe", "origin_is_destination"):
        return universe.without_equal(*PLACES)


def _time(config: Config, given: Grid | tuple[Period, ...]) -> Dimension:
    if isinstance(given, Grid):
        with config.source.at("universe", "time"):
            return periods(given.start, given.end, given.every)
    for n, period in enumerate(given):
        if calendar.seconds_of(period.end) <= calendar.seconds_of(period.start):
            raise config.source.error(
                ("universe", "time", n, "end"),
                f"the period {period.name!r} ends at {period.end}, which is not after its start {period.start}",
            )
    order = sorted(range(len(given)), key=lambda n: calendar.seconds_of(given[n].start))
    for a, b in itertools.pairwise(order):
        _check_next(config, given[a], given[b], b)
    edges = [calendar.seconds_of(given[n].start) for n in order] + [calendar.seconds_of(given[order[-1]].end)]
    with config.source.at("universe", "time"):
        return Dimension([given[n].name for n in order], edges=edges)


def _check_next(config: Config, first: Period, then: Period, place: int) -> None:
    keys = ("universe", "time", place, "start")
    if calendar.seconds_of(then.start) < calendar.seconds_of(first.end):
        raise config.source.error(
            keys,
            f"the periods {first.name!r} (to {first.end}) and {then.name!r} (from {then.start}) overlap: "
            "let each begin where another ends",
        )
    if calendar.seconds_of(then.start) > calendar.seconds_of(first.end):
        raise config.source.error(
            keys,
            f"there is a gap between the periods {first.name!r} (to {first.end}) and {then.name!r} "
            f"(from {then.start}): add a period for it",
        )


def _days(config: Config, given: Span | tuple[str, ...]) -> Dimension:
    holidays = {dt.date.fromisoformat(day): label for day, label in config.data.holidays.items()}
    with config.source.at("universe", "days"):
        if isinstance(given, Span):
            return calendar.days(given.first, given.last, holidays=holidays)
        if all(calendar.as_date(day) for day in given):
            return Dimension(given)
    types = [*calendar.WEEK, "weekday", "weekend", *holidays.values()]
    for n, day in enumerate(given):
        if day not in types:
            raise config.source.error(
                ("universe", "days", n), f"{day!r} is no type of day: {did_you_mean(day, types)}"
            )
    with config.source.at("universe", "days"):
        return Dimension(given)


def _listing(config: Config, given: Listing, numbers: bool) -> Dimension:
    rows = _rows(config.path(given.file), [given.column, *given.attributes.values()])
    values: list[Hashable] = [row[given.column] for row in rows]
    if numbers:
        try:
            values = [int(str(value)) for value in values]
        except ValueError:
            raise InputError(
                f"the trips hold numbers, the column {given.column!r} of {given.file!r} does not: convert one"
            ) from None
    attributes = {name: [row[column] for row in rows] for name, column in given.attributes.items()}
    return Dimension(values, **attributes)


def _rows(path: Path, columns: Sequence[str]) -> list[places.Row]:
    """The rows of a public CSV file that has these columns."""
    rows = places.table_rows(places.text_of(path), path)
    for column in columns:
        if rows and column not in rows[0]:
            raise InputError(f"{str(path)!r} has no column {column!r}: there are {', '.join(rows[0])}")
    return rows


# Modes


def _with_modes(config: Config, universe: Universe, stops: Stops | None) -> Universe:
    modes = config.universe.modes
    if modes is None or modes.column:
        return universe
    if modes.table:
        with config.source.at("universe", "modes", "of" if modes.of != PLACES else "table"):
            return _by_table(config, universe, modes)
    with config.source.at("universe", "modes", "distance_km"):
        if stops is None or not set(PLACES) <= set(universe.dimensions):
            raise InputError("bands of distance need stops with coordinates: name their file in data.stops")
        return universe.with_attribute("mode", PLACES, places.distance_bands(stops, modes.distance_km))


def _by_table(config: Config, universe: Universe, modes: Modes) -> Universe:
    """Labels for pairs (or triples) of dimensions or of their attributes, from the rows of a public table."""
    keyed = []
    for name in modes.of:
        if name not in universe.attributes:
            raise InputError(
                f"unknown attribute {name!r} in universe.modes.of: {did_you_mean(name, list(universe.attributes))}"
            )
        keyed.append(universe.attribute(name))
    if any(len(a.of) > 1 for a in keyed):
        raise InputError(f"a table of modes is keyed by attributes of one dimension each, not {modes.of}")
    assert modes.table is not None
    rows = _rows(config.path(modes.table), [*modes.of, modes.label])
    table = np.full([len(a.labels) for a in keyed], modes.otherwise, dtype=object)
    seen = np.zeros(table.shape, dtype=bool)
    codes = [{str(label): code for code, label in enumerate(a.labels)} for a in keyed]
    for number, row in enumerate(rows, 2):
        place = tuple(
            _code(row[a.name], a.name, known, number, modes.table)
            for a, known in zip(keyed, codes, strict=True)
        )
        if not row[modes.label]:
            raise InputError(
                f"row {number} of {modes.table!r} has no mode: give it one, or leave the row out"
            )
        if seen[place] and table[place] != row[modes.label]:
            raise InputError(f"row {number} of {modes.table!r} gives a second mode to the same pair")
        table[place], seen[place] = row[modes.label], True
    full: NDArray[Any] = table[np.ix_(*(a.codes for a in keyed))]
    return universe.with_attribute("mode", [a.of[0] for a in keyed], full)


def _code(value: str, name: str, known: Mapping[str, int], number: int, file: str) -> int:
    if value not in known:
        what = name.rpartition(".")[2]
        cure = did_you_mean(value, list(known)) if len(known) <= 50 else "mend the table"
        raise InputError(f"row {number} of {file!r} has the unknown {what} {value!r}: {cure}")
    return known[value]


# Features and mechanism


def _features(config: Config, universe: Universe) -> FeatureDag:
    given = [_feature(config, universe, n, entry) for n, entry in enumerate(config.feature)]
    known = _preset(config, universe) if config.preset else []
    if config.preset == "odmts":
        named = {f.name for f in (*known, *given)}
        known += extra_features([n for n in config.privacy.target or () if n in EXTRA and n not in named])
    for n, feature in enumerate(given):
        if feature.name in [f.name for f in (*known, *given[:n])]:
            raise config.source.error(
                ("feature", n, "name"),
                f"the feature {feature.name!r} is there already: give this one another name",
            )
    with config.source.at("feature"):
        return FeatureDag(universe, [*known, *given])


def _feature(config: Config, universe: Universe, n: int, entry: FeatureTable) -> Feature:
    for k, attribute in enumerate(entry.by):
        if attribute not in universe.attributes:
            cure = did_you_mean(attribute, list(universe.attributes))
            raise config.source.error(
                ("feature", n, "by", k),
                f"the feature {entry.name!r} groups by {attribute!r}, which is no attribute: {cure}",
            )
    with config.source.at("feature", n):
        return Feature(entry.name, entry.by)


def _preset(config: Config, universe: Universe) -> list[Feature]:
    """The features of a preset, as far as the universe has what they group by."""
    needs = {"odmts": (*PLACES, "time"), "opal": ("tap", "time", "location")}[str(config.preset)]
    for name in needs:
        if name not in universe.dimensions:
            raise config.source.error(
                ("preset",),
                f"the preset {config.preset!r} needs the dimension {name!r}: add it to the universe",
            )
    if config.preset == "opal":
        return list(opal(universe).features.values())
    zoned = {"origin.zone", "destination.zone"} <= set(universe.attributes)
    found = list(odmts(universe, level=4 if zoned else 3).features.values())
    return [*found, Feature("mode", by=["mode", "time"])] if "mode" in universe.attributes else found


def _unit(config: Config, schema: trips_io.Source) -> Unit:
    given = config.privacy.unit
    if not isinstance(given, UnitTable):
        return Trip()
    if given.trip is not None:
        return Trip(given.trip)
    assert given.person is not None
    assert given.max_trips is not None
    column = config.data.columns.get(given.person, given.person)
    with config.source.at("privacy", "unit", "person"):
        trips_io.check_column(schema, column)
        trips_io.check_person(column, schema.kinds[column])
    return Person(column, given.max_trips)


def _mechanism(config: Config, features: FeatureDag, unit: Unit) -> Mechanism:
    cls = MECHANISMS[config.mechanism.name]
    settings = (
        _settings(config, cls, features) | _budget(config, cls, features) | _delta(config, cls, features)
    )
    privacy = config.privacy
    where: tuple[str, ...] = ("mechanism",)
    if privacy.target is not None:
        where = ("privacy", "target")
    elif isinstance(privacy.budget, Mapping) or privacy.budget == OPTIMAL:
        where = ("privacy", "budget")
    with config.source.at(*where):
        return cls(features, privacy.epsilon, unit, **settings)


def _budget(config: Config, cls: type[Mechanism], features: FeatureDag) -> dict[str, Any]:
    """How ε is shared: as it is written, or for a target."""
    privacy = config.privacy
    made: dict[str, Any] = {}
    if privacy.budget is not None:
        if "budget" not in _names(cls):
            raise config.source.error(
                ("privacy", "budget"), f"{cls.name} measures once: it has no budget to share"
            )
        if isinstance(privacy.budget, Mapping):
            _check_features(config, features, ("privacy", "budget"), privacy.budget)
        made["budget"] = privacy.budget
    if privacy.target is not None:
        if "target" not in _names(cls):
            raise config.source.error(
                ("privacy", "target"), f"{cls.name} shares ε by no target: leave it out"
            )
        _check_features(config, features, ("privacy", "target"), privacy.target)
        made |= {
            "target": privacy.target,
            "trips": config.data.expected_trips,
            "filled": config.data.expected_filled,
        }
    return made


def _settings(config: Config, cls: type[Mechanism], features: FeatureDag) -> dict[str, Any]:
    table = config.mechanism
    given = {f.name: getattr(table, f.name) for f in dataclasses.fields(table) if f.name != "name"}
    given = {name: value for name, value in given.items() if value is not None}
    own = [n for n in _names(cls) if n not in (*SHARED, *NOT_ASKED)]
    for name, value in given.items():
        keys = ("mechanism", name)
        if name not in own:
            raise config.source.error(keys, f"{cls.name} has no setting {name!r}: {did_you_mean(name, own)}")
        if name in ("measured", "levels", "tables") or isinstance(value, Mapping):
            _check_features(config, features, keys, value)
    if SINGLETON not in given.get("measured", [SINGLETON]):
        raise config.source.error(
            ("mechanism", "measured"), f"{SINGLETON!r} is not measured: every trip type needs a noisy count"
        )
    if "solver" in given:
        _check_solver(config, given["solver"])
    if "prior" in given:
        with config.source.at("mechanism", "prior"):
            given |= _prior(config, features.universe, given["prior"])
    return given


def _prior(config: Config, universe: Universe, written: str) -> dict[str, Any]:
    """Public weights by stop, or by some of the dimensions, as a weight for each trip type."""
    if universe.size > DENSE:
        raise InputError(f"a prior for {universe.size:,} trip types: it takes at most {DENSE:,}")
    path = config.path(written)
    rows = _weight_rows(path)
    codes = universe.unrank_codes(np.arange(universe.size))
    by = dict(zip(universe.dimensions, codes, strict=True))
    columns = [column for column in rows[0] if column != "weight"]
    if columns == ["stop"]:
        ends = _place_names(config)
        if not ends:
            raise InputError("weights by stop need stops: name their file in data.stops")
        table = _weights(rows, ["stop"], [universe.dimension(ends[0])], written)
        if np.isnan(table).any():
            stop = universe.dimension(ends[0]).values[int(np.flatnonzero(np.isnan(table))[0])]
            raise InputError(f"{written!r} has no weight for the stop {stop!r}: give each stop one")
        prior = np.prod([table[by[end]] for end in ends], axis=0)
    else:
        for column in columns:
            if column not in universe.dimensions:
                cure = did_you_mean(column, ["stop", *universe.dimensions])
                raise InputError(f"the column {column!r} of {written!r} is no dimension: {cure}")
        table = _weights(rows, columns, [universe.dimension(c) for c in columns], written)
        prior = np.nan_to_num(table[tuple(by[c] for c in columns)])  # what is not listed weighs nothing
    if not (prior > 0).any():
        raise InputError(f"all weights of {written!r} are 0: give at least one above")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"prior": prior, "prior_source": {"file": written, "sha256": digest}}


def _weight_rows(path: Path) -> list[places.Row]:
    """The rows of a public table of weights, as text."""
    if path.suffix.lower() == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        try:
            held = parquet.read_table(path)
        except FileNotFoundError:
            raise InputError(f"there is no file {str(path)!r}") from None
        except (OSError, pa.ArrowException):
            raise InputError(f"{str(path)!r} cannot be read as Parquet: it is damaged") from None
        rows: list[places.Row] = [{k: str(v) for k, v in row.items()} for row in held.to_pylist()]
    else:
        rows = places.table_rows(places.text_of(path), path)
    if not rows or "weight" not in rows[0] or len(rows[0]) < 2:
        raise InputError(
            f"{str(path)!r} holds no weights: give a column 'weight', and 'stop' or the dimensions beside it"
        )
    return rows


def _weights(
    rows: Sequence[places.Row], columns: Sequence[str], of: Sequence[Dimension], file: str
) -> NDArray[np.float64]:
    """The weights by the values of these columns; NaN where there is none."""
    table = np.full([len(d) for d in of], np.nan)
    codes = [{str(value): code for code, value in enumerate(d.values)} for d in of]
    for number, row in enumerate(rows, 2):
        place = tuple(_code(row[c], c, known, number, file) for c, known in zip(columns, codes, strict=True))
        try:
            weight = float(row["weight"])
        except ValueError:
            weight = math.nan
        if not 0 <= weight < math.inf:
            raise InputError(
                f"row {number} of {file!r} has the weight {row['weight']!r}: give a number of at least 0"
            )
        if not np.isnan(table[place]):
            raise InputError(
                f"row {number} of {file!r} gives a second weight to {', '.join(row[c] for c in columns)}"
            )
        table[place] = weight
    return table


def _names(cls: type[Mechanism]) -> list[str]:
    return [f.name for f in dataclasses.fields(cls)]


def _check_features(config: Config, features: FeatureDag, keys: tuple[str, ...], names: Any) -> None:
    for n, name in enumerate(names):
        if name not in features:
            cure = did_you_mean(name, list(features.features))
            last = name if isinstance(names, Mapping) else n
            raise config.source.error(
                (*keys, last), f"{'.'.join(keys)} names {name!r}, which is no feature: {cure}"
            )


def _check_solver(config: Config, name: str) -> None:
    with config.source.at("mechanism", "solver"):
        solver = get(name)
        if not solver.installed():
            raise SolverError(f"the solver {name!r} is not installed: {solver.install}")


def _delta(config: Config, cls: type[Mechanism], features: FeatureDag) -> dict[str, Any]:
    """δ is stated for the whole release, and shared evenly among the tables that need it."""
    delta = config.privacy.delta
    if "delta" not in _names(cls):
        if delta:
            raise config.source.error(("privacy", "delta"), f"{cls.name} spends no δ: leave delta out")
        return {}
    if not delta:
        raise config.source.error(
            ("privacy", "delta"), f"{cls.name} skips zeros and pays with δ: give a delta above 0, like 1e-6"
        )
    tables = config.mechanism.tables or [n for n in features.features if n != "total"]
    return {"delta": delta / len(tables)}


# Account and output


def _account(config: Config, dataset: str, mechanism: Mechanism, request: str) -> Account:
    privacy = config.privacy
    path = config.path(privacy.ledger)
    cost = mechanism.claim().cost
    charge = Amount.charge(cost.epsilon, cost.delta)
    with config.source.at("privacy", "ledger"):
        started = path.parent.is_dir() and Ledger.started(path)
    if started:
        account = _existing(config, path, dataset, charge, request)
    else:
        with config.source.at("privacy", "cap"):
            if privacy.cap_delta is not None and privacy.cap is None:
                raise InputError(f"cap_delta is {privacy.cap_delta} without a cap: give both or none")
            delta = charge.delta if privacy.cap_delta is None else privacy.cap_delta
            cap = charge if privacy.cap is None else Amount.limit(privacy.cap, delta)
        with config.source.at("privacy", "ledger"):
            if not path.parent.is_dir():
                raise InputError(f"there is no folder {str(path.parent)!r} for the ledger: create it first")
        account = Account(path, False, cap, Amount(), charge)
    if account.finished is None and not _written(config, account) and not charge.within(account.left):
        with config.source.at("privacy", "epsilon"):
            raise BudgetError(
                f"a charge of {charge} does not fit: {account.left} of the cap {account.cap} is left for data set "
                f"{dataset!r}: lower epsilon, or delta"
            )
    return account


def _existing(config: Config, path: Path, dataset: str, charge: Amount, request: str) -> Account:
    privacy = config.privacy
    with config.source.at("privacy", "ledger"), Ledger.view(path) as ledger:
        ledger.verify()
        cap, spent, owner = ledger.cap, ledger.spent, ledger.dataset
        finished, unfinished = ledger.finished(request), tuple(ledger.unfinished(request))
    if owner != dataset:
        keys = ("data", "id") if config.data.id else ("privacy", "ledger")
        raise config.source.error(
            keys,
            f"the ledger {str(path)!r} is of data set {owner!r}, not {dataset!r}: every data set has its own",
        )
    if privacy.cap is not None:
        with config.source.at("privacy", "cap"):
            asked = Amount.limit(privacy.cap, cap.delta if privacy.cap_delta is None else privacy.cap_delta)
            if asked != cap:
                raise InputError(
                    f"the ledger's cap is {cap}, not {asked}: it is fixed at creation, leave it so"
                )
    return Account(path, True, cap, spent, charge, finished, unfinished)


def _written(config: Config, account: Account) -> bool:
    """Whether an earlier run of this request may have got as far as writing its folder."""
    return bool(account.unfinished) and config.path(config.output.path).exists()


def _output(config: Config, account: Account) -> Path:
    path = config.path(config.output.path)
    keys = ("output", "path")
    if config.output.confidence > MOST_CONFIDENT:
        raise config.source.error(
            ("output", "confidence"),
            f"confidence is {config.output.confidence}: ask for {MOST_CONFIDENT} at most, more takes too many simulations",
        )
    if not path.parent.is_dir():
        raise config.source.error(
            keys, f"there is no folder {str(path.parent)!r} for the release: create it first"
        )
    known = account.finished is not None or account.unfinished
    if (path.exists() or path.is_symlink()) and not known:
        raise config.source.error(
            keys, f"the output {str(path)!r} exists already: choose another path, nothing is overwritten"
        )
    return path


# The request


def _request(dataset: str, columns: Mapping[str, str], clock: Clock, mechanism: Mechanism) -> str:
    """A hash of everything public that decides what is released.

    Where it is written, and at what confidence intervals are drawn, is not among it: to change that costs no ε.
    """
    cost: Any = mechanism.claim().cost
    spends = [(p.what, str(p.epsilon), str(p.delta)) for p in getattr(cost, "parts", (cost,))]
    left_out = {
        *SHARED,
        *NOT_ASKED,
        "measured",
        "tables",
        "preset",
    }  # what the spends and other settings say already
    settings = {n: _plain(getattr(mechanism, n)) for n in _names(type(mechanism)) if n not in left_out}
    if settings.get("estimator") == "projection":  # as in requests from before there was another
        settings = {n: value for n, value in settings.items() if n not in ("estimator", "prior")}
    if settings.get("rounding") == NEAREST:
        del settings["rounding"]
    elif "rounding" in settings:
        settings["rounding"] = [settings["rounding"], price_of(getattr(mechanism, "budget", None))]
    stated = {
        "version": 1,
        "dataset": dataset,
        "columns": dict(columns),
        "clock": [
            clock.timezone,
            clock.format,
            [[day.isoformat(), label] for day, label in dict(clock.holidays).items()],
        ],
        "universe": _universe_hash(mechanism.features.universe),
        "features": {name: list(f.by) for name, f in mechanism.features.features.items()},
        "mechanism": mechanism.name,
        "settings": settings,
        "unit": str(mechanism.protects),
        "person": getattr(mechanism.protects, "column", None),
        "spends": spends,
    }
    return _sha256(stated)


def _universe_hash(universe: Universe) -> str:
    dimensions = [[name, list(d.values), d.edges] for name, d in universe.dimensions.items()]
    attributes = [
        [a.name, list(a.of), list(a.labels), _array_hash(a.codes.astype("<i8"))]
        for _, a in sorted(universe.attributes.items())
    ]
    zeros = [[list(of), _array_hash(mask.astype("u1"))] for of, mask in universe.zeros]
    return _sha256([dimensions, attributes, zeros])


def _array_hash(array: NDArray[Any]) -> str:
    return hashlib.sha256(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes()).hexdigest()


def _plain(value: Any) -> Any:
    """A setting as JSON can hold it, exactly; an array by its hash."""
    if isinstance(value, np.ndarray):
        return _array_hash(value.astype("<f8"))
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Fraction) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value


def _sha256(stated: Any) -> str:
    text = json.dumps(stated, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
