"""What a configuration means in public facts: stops, zones and modes, universe, features, public counts and weights, from public files."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats
from cbdp.config import Config, DaySpan, FeatureSection, ListingFile, ModesSection, NamedPeriod, TimeGrid
from cbdp.config.sections import budget_parts, noise_parts
from cbdp.errors import InputError
from cbdp.estimation.invariants import COUNT_COLUMN, read_public_counts, whole_table
from cbdp.features import SINGLETON, TOTAL, Attribute, Dimension, Feature, FeatureDag, Universe, periods
from cbdp.parts import Parts, Setting, did_you_mean
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS
from cbdp.release import About, Dates
from cbdp_features import calendar, places
from cbdp_features.calendar import seconds_of_day
from cbdp_features.dag import (
    EXTRA_FEATURES,
    extra_features,
    features_for_uncovered_dimensions,
    opal_features,
)
from cbdp_features.places import Stops

# Rows of public files


PLACES = ("origin", "destination")


class ColumnTypes(Protocol):
    """What the public inputs ask of the trips: the types of columns, and no row."""

    def numbers(self, dimensions: Sequence[str]) -> bool: ...


def holidays(config: Config) -> dict[dt.date, str]:
    return {dt.date.fromisoformat(day): label for day, label in config.data.holidays.items()}


MAX_VALUES_TO_SUGGEST_FROM = (
    50  # values of a dimension up to which the nearest is suggested for an unknown one
)


def rows_with(path: Path, columns: Sequence[str]) -> list[places.Row]:
    """The rows of a public CSV file that has these columns."""
    rows = places.table_rows(places.stops_text(path), path)
    for column in columns:
        if rows and column not in rows[0]:
            raise InputError(f"{str(path)!r} has no column {column!r}: there are {', '.join(rows[0])}")
    return rows


def table_of(path: Path) -> list[places.Row]:
    """The rows of a public CSV or Parquet file, as text."""
    if path.suffix.lower() == ".parquet":
        return _parquet_rows(path)
    return places.table_rows(places.stops_text(path), path)


def _parquet_rows(path: Path) -> list[places.Row]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except FileNotFoundError:
        raise InputError(f"there is no file {str(path)!r}") from None
    except (OSError, pa.ArrowException):
        raise InputError(f"{str(path)!r} cannot be read as Parquet: it is damaged") from None
    return [{k: str(v) for k, v in row.items()} for row in table.to_pylist()]


def code_of(value: str, name: str, codes: Mapping[str, int], row: int, file: str) -> int:
    """The code of a value in a row of a file."""
    if value not in codes:
        what = name.rpartition(".")[2]
        cure = (
            did_you_mean(value, list(codes))
            if len(codes) <= MAX_VALUES_TO_SUGGEST_FROM
            else "correct the file"
        )
        raise InputError(f"row {row} of {file!r} has the unknown {what} {value!r}: {cure}")
    return codes[value]


# Stops, with their zones


def stop_dimensions(config: Config) -> tuple[str, ...]:
    """The dimensions whose values are the stops."""
    named = tuple(n for n, values in config.universe.dimensions.items() if values == "stops")
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
        stops = _read_stops(config, named, numbers=numbers)
    with config.source.at("universe", "zones"):
        return _with_zones(config, stops)


def _read_stops(config: Config, named: dict[str, str], *, numbers: bool) -> Stops:
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


def _with_zones(config: Config, stops: Stops) -> Stops:
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
    for keys, value in (
        (("universe", "zones"), config.universe.zones),
        (("data", "stop_columns"), config.data.stop_columns),
    ):
        if value:
            raise config.source.error(keys, f"{'.'.join(keys)} needs stops: name their file in data.stops")
    for name, values in config.universe.dimensions.items():
        if values == "stops":
            raise config.source.error(
                ("universe", "dimensions", name),
                f"the dimension {name!r} needs stops: name their file in data.stops",
            )


# Modes: from a public table of pairs, or from bands of distance


def with_modes(config: Config, universe: Universe, stops: Stops | None) -> Universe:
    """The universe with the attribute `mode`, if modes are a public function of the trip type."""
    modes = config.universe.modes
    if modes is None or modes.column:
        return universe
    if modes.table:
        with config.source.at("universe", "modes", "of" if modes.of != PLACES else "table"):
            return _modes_by_table(config, universe, modes, modes.table)
    with config.source.at("universe", "modes", "distance_km"):
        if stops is None or not set(PLACES) <= set(universe.dimensions):
            raise InputError("bands of distance need stops with coordinates: name their file in data.stops")
        return universe.with_attribute("mode", PLACES, places.distance_bands(stops, modes.distance_km))


def _modes_by_table(config: Config, universe: Universe, modes: ModesSection, file: str) -> Universe:
    """Labels for pairs (or triples) of dimensions or of their attributes, from the rows of a public table."""
    keyed = _key_attributes(universe, modes.of)
    rows = rows_with(config.path(file), [*modes.of, modes.label])
    table = np.full([len(a.labels) for a in keyed], modes.otherwise, dtype=object)
    seen = np.zeros(table.shape, dtype=bool)
    codes = [{str(label): code for code, label in enumerate(a.labels)} for a in keyed]
    for number, row in enumerate(rows, 2):
        place = tuple(
            code_of(row[a.name], a.name, code_by_label, number, file)
            for a, code_by_label in zip(keyed, codes, strict=True)
        )
        label = row[modes.label]
        if not label:
            raise InputError(f"row {number} of {file!r} has no mode: give it one, or leave the row out")
        if seen[place] and table[place] != label:
            raise InputError(
                f"row {number} of {file!r} gives the mode {label!r} to what has {table[place]!r}: keep one"
            )
        table[place], seen[place] = label, True
    full: NDArray[np.object_] = table[np.ix_(*(a.codes for a in keyed))]
    return universe.with_attribute("mode", [a.of[0] for a in keyed], full)


def _key_attributes(universe: Universe, names: Sequence[str]) -> list[Attribute]:
    """The attributes that a table of modes is keyed by."""
    for name in names:
        if name not in universe.attributes:
            cure = did_you_mean(name, list(universe.attributes))
            raise InputError(f"unknown attribute {name!r} in universe.modes.of: {cure}")
        if len(universe.attribute(name).of) > 1:
            raise InputError(
                f"universe.modes.of names {name!r}, which depends on several dimensions: use attributes of one each"
            )
    return [universe.attribute(name) for name in names]


# The universe: time, days, stops and further dimensions


def universe_of(config: Config, stops: Stops | None, trips: ColumnTypes) -> Universe:
    dimensions = _table_dimensions(config, stops)
    for name, values in config.universe.dimensions.items():
        if values != "stops":
            with config.source.at("universe", "dimensions", name):
                if name in dimensions:
                    raise InputError(f"there is already a dimension {name!r}: give this one another name")
                dimensions[name] = _listed_dimension(config, name, values, trips)
    if not dimensions:
        raise config.source.error(
            ("universe",),
            "the universe has no dimension: give data.stops, universe.time or universe.dimensions",
        )
    with config.source.at("universe"):
        universe = Universe(**dimensions)
    return with_modes(config, _less_zeros(config, universe), stops)


def _table_dimensions(config: Config, stops: Stops | None) -> dict[str, Dimension]:
    """The dimensions that are described by tables of their own."""
    table = config.universe
    dimensions: dict[str, Dimension] = {}
    if stops is not None:
        dimensions |= {name: stops.dimension() for name in stop_dimensions(config)}
    if table.days is not None:
        dimensions["day"] = _day_dimension(config, table.days)
    if table.time is not None:
        dimensions["time"] = _time_dimension(config, table.time)
    if table.modes and table.modes.column:
        with config.source.at("universe", "modes", "values"):
            dimensions["mode"] = Dimension(table.modes.values)
    return dimensions


def _less_zeros(config: Config, universe: Universe) -> Universe:
    if config.universe.origin_is_destination:
        return universe
    with config.source.at("universe", "origin_is_destination"):
        return universe.without_equal(*PLACES)


# Time


def _time_dimension(config: Config, stated: TimeGrid | tuple[NamedPeriod, ...]) -> Dimension:
    if isinstance(stated, TimeGrid):
        with config.source.at("universe", "time"):
            return periods(stated.start, stated.end, stated.every)
    for n, period in enumerate(stated):
        if seconds_of_day(period.end) <= seconds_of_day(period.start):
            raise config.source.error(
                ("universe", "time", n, "end"),
                f"the period {period.name!r} ends at {period.end}, not after its start {period.start}: correct one",
            )
    order = sorted(range(len(stated)), key=lambda n: seconds_of_day(stated[n].start))
    for a, b in itertools.pairwise(order):
        _check_next(config, stated[a], stated[b], b)
    edges = [seconds_of_day(stated[n].start) for n in order] + [seconds_of_day(stated[order[-1]].end)]
    with config.source.at("universe", "time"):
        return Dimension([stated[n].name for n in order], edges=edges)


def _check_next(config: Config, first: NamedPeriod, then: NamedPeriod, place: int) -> None:
    keys = ("universe", "time", place, "start")
    if seconds_of_day(then.start) < seconds_of_day(first.end):
        raise config.source.error(
            keys,
            f"the periods {first.name!r} (to {first.end}) and {then.name!r} (from {then.start}) overlap: "
            "let each begin where the one before ends",
        )
    if seconds_of_day(then.start) > seconds_of_day(first.end):
        raise config.source.error(
            keys,
            f"there is a gap between the periods {first.name!r} (to {first.end}) and {then.name!r} "
            f"(from {then.start}): add a period for it",
        )


def _day_dimension(config: Config, stated: DaySpan | tuple[str, ...]) -> Dimension:
    special = holidays(config)
    with config.source.at("universe", "days"):
        if isinstance(stated, DaySpan):
            return calendar.days(stated.first, stated.last, holidays=special)
        if all(calendar.date_or_none(day) for day in stated):
            return Dimension(stated)
    types = [*calendar.WEEKDAYS, "weekday", "weekend", *special.values()]
    for n, day in enumerate(stated):
        if day not in types:
            raise config.source.error(
                ("universe", "days", n), f"{day!r} is not a type of day: {did_you_mean(day, types)}"
            )
    with config.source.at("universe", "days"):
        return Dimension(stated)


# Further dimensions


def _listed_dimension(
    config: Config, name: str, stated: ListingFile | tuple[Hashable, ...], trips: ColumnTypes
) -> Dimension:
    if not isinstance(stated, ListingFile):
        return Dimension(stated)
    rows = rows_with(config.path(stated.file), [stated.column, *stated.attributes.values()])
    values: list[Hashable] = [row[stated.column] for row in rows]
    if trips.numbers([name]):
        try:
            values = [int(str(value)) for value in values]
        except ValueError:
            raise InputError(
                f"the trips hold numbers, column {stated.column!r} of {stated.file!r} does not: convert one of them"
            ) from None
    attributes = {attribute: [row[column] for row in rows] for attribute, column in stated.attributes.items()}
    return Dimension(values, **attributes)


# Features: those of a preset, and those that the configuration states


MAX_TYPES_WITH_STOP_TABLES = (
    2**22
)  # trip types up to which stops get tables of their own: every type is then a cell, which takes minutes beyond


def features_of(config: Config, universe: Universe) -> FeatureDag:
    stated = [_stated_feature(config, universe, n, entry) for n, entry in enumerate(config.feature)]
    preset_features = _preset_features(config, universe, stated) if config.preset else []
    if config.preset == "odmts":
        named = {f.name for f in (*preset_features, *stated)}
        preset_features += extra_features(
            [n for n in config.privacy.target or () if n in EXTRA_FEATURES and n not in named]
        )
    ends = (TOTAL, SINGLETON) if config.preset else ()
    for n, feature in enumerate(stated):
        if feature.name in [*ends, *(f.name for f in (*preset_features, *stated[:n]))]:
            raise config.source.error(
                ("feature", n, "name"),
                f"there is already a feature {feature.name!r}: give this one another name",
            )
    with config.source.at("feature"):
        return FeatureDag(universe, [*preset_features, *stated])


def _stated_feature(config: Config, universe: Universe, n: int, entry: FeatureSection) -> Feature:
    for k, attribute in enumerate(entry.by):
        if attribute not in universe.attributes:
            cure = did_you_mean(attribute, list(universe.attributes))
            raise config.source.error(
                ("feature", n, "by", k),
                f"the feature {entry.name!r} groups by {attribute!r}, which is not an attribute: {cure}",
            )
    with config.source.at("feature", n):
        return Feature(entry.name, entry.by)


def _preset_features(config: Config, universe: Universe, stated: Sequence[Feature]) -> list[Feature]:
    """The features of a preset, as far as the universe has what they group by, and then tables for what these do not tell apart.

    Those are added unless the configuration has them: tables of its own by the same name, or by the same attributes.
    """
    needs = {"odmts": (*PLACES, "time"), "opal": ("tap", "time", "location")}[str(config.preset)]
    for name in needs:
        if name not in universe.dimensions:
            raise config.source.error(
                ("preset",),
                f"the preset {config.preset!r} needs the dimension {name!r}: add it to the universe",
            )
    taps = config.preset == "opal"
    basic = opal_features() if taps else _of_odmts(universe)
    added = features_for_uncovered_dimensions(universe, basic, beside=["tap"] if taps else ())
    if not taps and not _has_zones(universe) and universe.size <= MAX_TYPES_WITH_STOP_TABLES:
        added += extra_features(
            PLACES
        )  # nothing else tells places apart; every trip type is then a cell of its own
    names, groups = {f.name for f in stated}, [set(f.by) for f in stated]
    return [*basic, *(f for f in added if f.name not in names and set(f.by) not in groups)]


def _has_zones(universe: Universe) -> bool:
    return {"origin.zone", "destination.zone"} <= set(universe.attributes)


def _of_odmts(universe: Universe) -> list[Feature]:
    listed = [Feature("time", by="time")]
    if _has_zones(universe):
        listed.append(Feature("zone", by=["origin.zone", "destination.zone", "time"]))
    return [*listed, Feature("mode", by=["mode", "time"])] if "mode" in universe.attributes else listed


def check_features(config: Config, features: FeatureDag, keys: tuple[str, ...], names: Iterable[str]) -> None:
    """Whether what is written under these keys (a list, or a table by feature) names features."""
    for n, name in enumerate(names):
        if name not in features:
            cure = did_you_mean(name, list(features.features))
            last = name if isinstance(names, Mapping) else n
            raise config.source.error(
                (*keys, last), f"{'.'.join(keys)} names {name!r}, which is not a feature: {cure}"
            )


# Public counts, from the configuration and from files


PUBLIC_KEYS = ("privacy", "public")


def public_counts(config: Config, features: FeatureDag) -> dict[str, tuple[int, ...]] | None:
    """The public counts of a configuration by feature, checked against each other; None if it states none."""
    public = config.privacy.public
    if public is None:
        return None
    if isinstance(public, Mapping):
        check_features(config, features, PUBLIC_KEYS, public)
    with config.source.at(*PUBLIC_KEYS):
        tables = public if isinstance(public, Mapping) else {_feature_of(config, features, public): public}
        counts_by_feature = {
            name: _public_table(config, features, name, counts) for name, counts in tables.items()
        }
        return read_public_counts(features, counts_by_feature)


def _public_table(
    config: Config, features: FeatureDag, name: str, stated: int | str
) -> int | tuple[int, ...]:
    return (
        _of_rows(features, name, table_of(config.path(stated)), stated) if isinstance(stated, str) else stated
    )


def _feature_of(config: Config, features: FeatureDag, file: str) -> str:
    """The feature that a file's columns name."""
    rows = table_of(config.path(file))
    columns = set(rows[0]) - {COUNT_COLUMN} if rows else set()
    for name, feature in features.features.items():
        if set(feature.by) == columns:
            return name
    needed = "; ".join(f"{n}: {', '.join((*f.by, COUNT_COLUMN))}" for n, f in features.features.items())
    present = ", ".join(rows[0]) if rows else "none"
    raise InputError(
        f"{file!r} has the columns {present}, which are those of no feature ({needed}): rename them"
    )


def _of_rows(features: FeatureDag, name: str, rows: list[places.Row], file: str) -> tuple[int, ...]:
    """The counts of a file's rows. A file holds text: labels are compared as they are written."""
    partition = features.partition(name)
    by = features.features[name].by
    for column in (*by, COUNT_COLUMN):
        if not rows or column not in rows[0]:
            raise InputError(
                f"{file!r} has no column {column!r}: public counts of {name!r} need {', '.join((*by, COUNT_COLUMN))}"
            )
    keys = {a: [row[a] for row in rows] for a in by}
    labels = {a.name: {str(label): label for label in a.labels} for a in partition.attributes}
    label_columns = {a: [labels[a].get(text) for text in keys[a]] for a in by}
    elements = partition.find(label_columns) if by else np.zeros(len(rows), dtype=np.int64)
    return whole_table(features, name, elements, [_whole_or_text(row[COUNT_COLUMN]) for row in rows], keys)


def _whole_or_text(written: str) -> int | str:
    """A whole number, or what is written instead."""
    digits = written.strip().removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdigit() else written


# Public weights of trip types, by stop or by dimensions


def weights_of(
    config: Config, universe: Universe, written: str, listed: int
) -> tuple[Floats, dict[str, str]]:
    """A weight for each trip type, and which file it is from; of at most so many types, as trip types are listed."""
    if universe.size > listed:
        raise InputError(
            f"weights are listed for at most {listed:,} trip types; this universe has {universe.size:,}: leave them out"
        )
    path = config.path(written)
    rows = _weight_rows(path)
    by = dict(zip(universe.dimensions, universe.unrank_codes(np.arange(universe.size)), strict=True))
    columns = [column for column in rows[0] if column != "weight"]
    if columns == ["stop"]:
        ends = stop_dimensions(config)
        table = _weights_by_stop(universe, ends, rows, written)
        weights = np.prod([table[by[end]] for end in ends], axis=0)
    else:
        table = _weights_by_dimensions(universe, columns, rows, written)
        weights = np.nan_to_num(table[tuple(by[c] for c in columns)])  # what is not listed weighs nothing
    if not (weights > 0).any():
        raise InputError(f"all weights of {written!r} are 0: give at least one above 0")
    return weights, {"file": written, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def _weights_by_stop(
    universe: Universe, ends: Sequence[str], rows: Sequence[places.Row], file: str
) -> Floats:
    if not ends:
        raise InputError("weights by stop need stops: name their file in data.stops")
    stops = universe.dimension(ends[0])
    table = _weight_table(rows, ["stop"], [stops], file)
    missing = np.flatnonzero(np.isnan(table))
    if len(missing):
        stop = stops.values[int(missing[0])]
        raise InputError(f"{file!r} has no weight for the stop {stop!r}: give each stop one")
    return table


def _weights_by_dimensions(
    universe: Universe, columns: Sequence[str], rows: Sequence[places.Row], file: str
) -> Floats:
    for column in columns:
        if column not in universe.dimensions:
            cure = did_you_mean(column, ["stop", *universe.dimensions])
            raise InputError(f"the column {column!r} of {file!r} is not a dimension: {cure}")
    return _weight_table(rows, columns, [universe.dimension(c) for c in columns], file)


def _weight_rows(path: Path) -> list[places.Row]:
    """The rows of a public table of weights, as text."""
    rows = table_of(path)
    if not rows or "weight" not in rows[0] or len(rows[0]) < 2:
        raise InputError(
            f"{str(path)!r} holds no weights: give a column 'weight', and columns 'stop' or the dimensions to say what it is of"
        )
    return rows


def _weight_table(
    rows: Sequence[places.Row], columns: Sequence[str], of: Sequence[Dimension], file: str
) -> Floats:
    """The weights by the values of these columns; NaN where there is none."""
    table = np.full([len(d) for d in of], np.nan)
    codes = [{str(value): code for code, value in enumerate(d.values)} for d in of]
    for number, row in enumerate(rows, 2):
        place = tuple(
            code_of(row[c], c, code_by_value, number, file)
            for c, code_by_value in zip(columns, codes, strict=True)
        )
        if not np.isnan(table[place]):
            raise InputError(
                f"row {number} of {file!r} gives a second weight to {', '.join(row[c] for c in columns)}: keep one"
            )
        table[place] = _parsed_weight(row["weight"], number, file)
    return table


def _parsed_weight(written: str, row: int, file: str) -> float:
    try:
        weight = float(written)
    except ValueError:
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise InputError(f"row {row} of {file!r} has the weight {written!r}: give a number of at least 0")
    return weight


# Parts that a configuration chooses: they must be there before anything is spent


def check_chosen(parts: Parts[Any], name: str) -> None:
    """Whether the part can be loaded, and what it needs is installed."""
    part = parts.get(name)
    if hasattr(part, "installed") and not part.installed():
        raise parts.error(f"the {parts.kind} {name!r} is not installed: {part.install}")


# [about]: the publisher's words


def about_of(config: Config) -> About | None:
    """The publisher's words, and the time zone of the data; none if nothing is said. They are no part of the request: a new title costs no new ε."""
    section, zone = config.about, config.data.timezone
    if section is None or all(getattr(section, f.name) is None for f in fields(section)):
        return None if zone is None else About(timezone=zone)
    with config.source.at("about"):
        period = section.period
        return About(
            section.title,
            section.place,
            _period_dates(config, period) if isinstance(period, DaySpan) else period,
            section.publisher,
            section.licence,
            section.contact,
            section.timezone or zone,
        )


def _period_dates(config: Config, span: DaySpan) -> Dates:
    with config.source.at("about", "period"):
        return Dates(dt.date.fromisoformat(span.first), dt.date.fromisoformat(span.last))


# What a mechanism is set to: its settings as they are written, its budget, noise, δ and public counts


OPTIMAL_BUDGET = "optimal"  # the budget that goes by a target


@dataclass(frozen=True)
class MechanismKind:
    """What a class of mechanisms is called, and can be set to."""

    name: str
    fields: frozenset[str]
    law: str | None  # the noise that is drawn where none is asked for; None: no other can be
    settings: Mapping[str, Setting]  # those of [mechanism]


def mechanism_settings(
    config: Config, kind: MechanismKind, features: FeatureDag, most_weights: int
) -> dict[str, Any]:
    """All that such a mechanism is made with, beside features, ε and unit; a file of weights may list so many trip types."""
    return (
        _written_settings(config, kind, features, most_weights)
        | _budget_settings(config, kind, features)
        | _noise_settings(config, kind)
        | _delta_settings(config, kind, features)
        | _public_settings(config, kind, features)
    )


def place_of_settings(config: Config) -> tuple[str, ...]:
    """Where a mechanism that cannot be made of its settings is to be mended."""
    privacy = config.privacy
    if privacy.target is not None:
        return "privacy", "target"
    if isinstance(privacy.budget, Mapping) or privacy.budget == OPTIMAL_BUDGET:
        return "privacy", "budget"
    if privacy.law is not None:
        return "privacy", "law"
    return ("mechanism",)


def _written_settings(
    config: Config, kind: MechanismKind, features: FeatureDag, most_weights: int
) -> dict[str, Any]:
    """The settings that are written, checked against the features, the installed parts and the files."""
    declared = kind.settings
    settings: dict[str, Any] = {}
    for name, value in config.mechanism.settings.items():
        keys = ("mechanism", name)
        if declared[name].kind == "names" or isinstance(value, Mapping):
            check_features(config, features, keys, value)
        with config.source.at(*keys):
            settings |= _setting_values(config, features, name, declared[name], value, most_weights)
    if SINGLETON not in settings.get("measured", [SINGLETON]):
        raise config.source.error(
            ("mechanism", "measured"), f"{SINGLETON!r} is not measured: every trip type needs a noisy count"
        )
    return settings


def _setting_values(
    config: Config, features: FeatureDag, name: str, declared: Setting, value: Any, most_weights: int
) -> dict[str, Any]:
    """What the mechanism is given for a setting."""
    if isinstance(declared.choices, Parts) and isinstance(value, str):
        check_chosen(declared.choices, value)
    if declared.kind != "file":
        return {name: value}
    weights, source = weights_of(config, features.universe, value, most_weights)
    return {name: weights, f"{name}_source": source}


def _budget_settings(config: Config, kind: MechanismKind, features: FeatureDag) -> dict[str, Any]:
    """How ε is shared: as it is written, or for a target."""
    privacy = config.privacy
    settings: dict[str, Any] = {}
    if privacy.budget is not None:
        if "budget" not in kind.fields:
            raise config.source.error(
                ("privacy", "budget"),
                f"{kind.name} measures once and has no budget to share: leave budget out",
            )
        with config.source.at("privacy", "budget"):
            if isinstance(privacy.budget, Mapping):
                check_features(config, features, ("privacy", "budget"), privacy.budget)
            else:
                check_chosen(budget_parts(), privacy.budget)
        settings["budget"] = privacy.budget
    if privacy.target is not None:
        if "target" not in kind.fields:
            raise config.source.error(
                ("privacy", "target"), f"{kind.name} cannot share ε for a target: leave target out"
            )
        check_features(config, features, ("privacy", "target"), privacy.target)
        settings |= {
            "target": privacy.target,
            "expected_trips": config.data.expected_trips,
            "expected_filled": config.data.expected_filled,
        }
    return settings


def _public_settings(config: Config, kind: MechanismKind, features: FeatureDag) -> dict[str, Any]:
    """Counts that are public already, for a mechanism that can meet them."""
    if config.privacy.public is None:
        return {}
    if "public" not in kind.fields:
        raise config.source.error(
            ("privacy", "public"),
            f"{kind.name} cannot meet public counts: leave public out, or use constraint-based",
        )
    return {"public": public_counts(config, features)}


def _noise_settings(config: Config, kind: MechanismKind) -> dict[str, Any]:
    """The law of the noise and what it is paid for in; the mechanism says which go together."""
    privacy, setting = config.privacy, config.mechanism.settings.get("law")
    if kind.law is None:
        for name in ("law", "rho"):
            if getattr(privacy, name) is not None:
                raise config.source.error(
                    ("privacy", name), f"{kind.name} draws geometric noise and spends ε: leave {name} out"
                )
        return {}
    if privacy.law is not None and setting not in (None, privacy.law):
        raise config.source.error(
            ("privacy", "law"),
            f"law is {privacy.law!r} here and {setting!r} in [mechanism]: leave one of them out",
        )
    with config.source.at(*(("privacy", "law") if setting is None else ("mechanism", "law"))):
        chosen: str = privacy.law or setting or kind.law
        check_chosen(noise_parts(), chosen)
        currency = NOISE_DISTRIBUTIONS.get(chosen).currency
    amounts = {"rho": privacy.rho, "delta": privacy.delta or None}
    for name, value in amounts.items():
        if currency == "epsilon" and value is not None:
            raise config.source.error(
                ("privacy", name),
                f'law {chosen!r} spends pure ε, and no {"ρ" if name == "rho" else "δ"}: leave {name} out, or write law = "gaussian"',
            )
    return {"law": chosen} | {name: value for name, value in amounts.items() if value is not None}


def _delta_settings(config: Config, kind: MechanismKind, features: FeatureDag) -> dict[str, Any]:
    """δ is stated for the whole release, and shared evenly among the tables that need it."""
    delta = config.privacy.delta
    if kind.law is not None:
        return {}
    if "delta" not in kind.fields:
        if delta:
            raise config.source.error(("privacy", "delta"), f"{kind.name} spends no δ: leave delta out")
        return {}
    if not delta:
        raise config.source.error(
            ("privacy", "delta"), f"{kind.name} skips zeros and pays with δ: give a delta above 0, like 1e-6"
        )
    tables = config.mechanism.settings.get("tables") or [n for n in features.features if n != TOTAL]
    return {"delta": delta / len(tables)}
