"""What goes where: every file of a release as columns of tables (those of its universe, too), and what the manifest says about it.

Memory follows the trips and the features, not the universe.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.features import SINGLETON, Attribute, Dimension, FeatureDag, Universe
from cbdp.privacy.measurement import Measurement
from cbdp.release import manifest
from cbdp.release.release import Release
from cbdp.release.serialization import exact_json
from cbdp.release.series import AFTER_COLUMN, RunningPart
from cbdp.untrusted import read_parquet
from cbdp_features.places import Stops
from cbdp_features.tables import codes_of_column, column, encoded, kind_of, labels_of, take_labels
from cbdp_features.universe import sorted_union

if TYPE_CHECKING:
    from cbdp.release.manifest_model import (
        AttributeJson,
        DimensionJson,
        FeatureJson,
        LabelKind,
        LayoutSections,
        Manifest,
        MeasurementJson,
        PlacesJson,
        RunningJson,
        UniverseJson,
        ZerosJson,
    )


# The universe as tables, and back


ROWS_PER_GROUP = 2**20  # of a row group, and of what is held in memory as a table at once
MAX_FILE_NAME_CHARACTERS = 80  # characters of a name that a file name keeps


@dataclass(frozen=True, eq=False)
class FileTables:
    """A file of a release: where it goes, and the tables it is made of, one after the other."""

    path: str
    tables: Callable[[], Iterable[pa.Table]]


class FileNames:
    """File names for names of any kind: safe on every system, and no two alike."""

    def __init__(self, folder: str, taken: Iterable[str] = ()) -> None:
        self._folder = folder
        self._taken = set(taken)

    def __call__(self, name: str) -> str:
        safe = quote(name, safe=" ")[:MAX_FILE_NAME_CHARACTERS].rstrip(" .%") or "unnamed"
        if safe.startswith("."):
            safe = f"%2E{safe[1:]}"
        tries = itertools.chain([safe], (f"{safe}~{n}" for n in itertools.count(2)))
        chosen = next(candidate for candidate in tries if candidate.lower() not in self._taken)
        self._taken.add(chosen.lower())
        return f"{self._folder}/{chosen}.parquet"


def chunks(rows: int) -> Iterator[slice]:
    """Slices of at most `ROWS_PER_GROUP` rows; an empty one where there are none, so that every table has its columns."""
    for start in range(0, max(rows, 1), ROWS_PER_GROUP):
        yield slice(start, min(start + ROWS_PER_GROUP, rows))


def universe_files(universe: Universe) -> tuple[UniverseJson, list[FileTables]]:
    """What the manifest says about a universe, and its files."""
    name, sheets = FileNames("universe", taken=["places"]), []
    dimensions: list[DimensionJson] = []
    attributes: list[AttributeJson] = []
    zeros: list[ZerosJson] = []
    for dim, dimension in universe.dimensions.items():
        path = name(dim)
        of_dimension = {n: a for n, a in universe.attributes.items() if a.of == (dim,) and n != dim}
        sheets.append(FileTables(path, partial(_dimension_tables, universe, dim, of_dimension)))
        edges = None if dimension.edges is None else [int(e) for e in dimension.edges]
        dimensions.append(
            {
                "name": dim,
                "size": len(dimension),
                "labels": cast("LabelKind", kind_of(dimension.values)),
                "edges": edges,
                "file": path,
            }
        )
        from_dimension = {f"{dim}.{key}" for key in dimension.attributes}
        attributes += [
            _attribute(a, path, from_dimension=n in from_dimension) for n, a in of_dimension.items()
        ]
    for n, a in universe.attributes.items():
        if len(a.of) > 1:
            path = name(n)
            sheets.append(FileTables(path, partial(_attribute_tables, universe, a)))
            attributes.append(_attribute(a, path, from_dimension=False))
    for of, zero in universe.zeros:
        path = name("zeros")
        sheets.append(FileTables(path, partial(_zero_tables, universe, of, zero)))
        zeros.append({"of": list(of), "file": path})
    order = list(universe.attributes)
    attributes.sort(key=lambda entry: order.index(entry["name"]))
    described: UniverseJson = {
        "dimensions": dimensions,
        "attributes": attributes,
        "zeros": zeros,
        "size": universe.size,
        "sha256": universe_hash(universe),
    }
    return described, sheets


def _attribute(attribute: Attribute, path: str, *, from_dimension: bool) -> AttributeJson:
    return {
        "name": attribute.name,
        "of": list(attribute.of),
        "labels": cast("LabelKind", kind_of(attribute.labels)),
        "own": from_dimension,
        "file": path,
    }


def _dimension_tables(universe: Universe, dim: str, attributes: Mapping[str, Attribute]) -> list[pa.Table]:
    columns = {dim: column(universe.dimensions[dim].values)}
    return [
        pa.table(columns | {name: take_labels(column(a.labels), a.codes) for name, a in attributes.items()})
    ]


def _attribute_tables(universe: Universe, attribute: Attribute) -> Iterator[pa.Table]:
    values = {dim: column(universe.dimensions[dim].values) for dim in attribute.of}
    labels, codes = column(attribute.labels), attribute.codes.reshape(-1)
    for part in chunks(codes.size):
        place = np.unravel_index(np.arange(part.start, part.stop), attribute.codes.shape)
        columns = {d: take_labels(v, p) for (d, v), p in zip(values.items(), place, strict=True)}
        yield pa.table(columns | {attribute.name: take_labels(labels, codes[part])})


def _zero_tables(universe: Universe, of: Sequence[str], zero: NDArray[np.bool_]) -> Iterator[pa.Table]:
    values = {dim: column(universe.dimensions[dim].values) for dim in of}
    where = np.flatnonzero(zero)
    for part in chunks(len(where)):
        place = np.unravel_index(where[part], zero.shape)
        yield pa.table({d: take_labels(v, p) for (d, v), p in zip(values.items(), place, strict=True)})


def universe_hash(universe: Universe) -> str:
    """The SHA-256 of a universe's definition: the same for the same universe, whatever wrote its files."""
    digest = hashlib.sha256()

    def add(*parts: object) -> None:
        digest.update((encoded(parts) + "\n").encode("ascii"))

    for name, dim in universe.dimensions.items():
        add("dimension", name, dim.edges, dim.values)
    for name, attribute in universe.attributes.items():
        if name not in universe.dimensions:
            add("attribute", name, attribute.of, attribute.labels)
            digest.update(np.ascontiguousarray(attribute.codes, dtype="<i8").tobytes())
    for of, zero in universe.zeros:
        add("zeros", of)
        digest.update(np.packbits(zero).tobytes())
    return digest.hexdigest()


# The universe as it is read


def read_universe(folder: Path, described: UniverseJson) -> Universe:
    """The universe that a manifest describes."""
    tables = {d["name"]: read_parquet(folder / d["file"]) for d in described["dimensions"]}
    dims: dict[str, Dimension] = {}
    for d in described["dimensions"]:
        table = tables[d["name"]]
        of_dimension = {
            a["name"].removeprefix(f"{d['name']}."): labels_of(table[a["name"]], a["labels"])
            for a in described["attributes"]
            if a["own"] and a["of"] == [d["name"]]
        }
        _check_edges(d)
        dims[d["name"]] = Dimension(
            labels_of(table[d["name"]], d["labels"]), edges=d["edges"], **of_dimension
        )
    universe = Universe(**dims)
    attributes = dict(universe.attributes)
    for a in described["attributes"]:
        if not a["own"]:
            labels = (
                read_parquet(folder / a["file"])[a["name"]]
                if len(a["of"]) > 1
                else tables[a["of"][0]][a["name"]]
            )
            attributes[a["name"]] = _read_attribute(a, labels, [len(dims[d]) for d in a["of"]])
    zeros = tuple(_read_zeros(folder, z, dims) for z in described["zeros"])
    return universe._copy(attributes=attributes, zeros=zeros)


def _check_edges(described: DimensionJson) -> None:
    """Refuse ends of periods that are not those of so many periods, one after the other."""
    edges = described["edges"]
    if edges is not None and (len(edges) != described["size"] + 1 or any(b <= a for a, b in pairwise(edges))):
        raise InputError(
            f"the periods of {described['name']!r} do not follow each other, or are not {described['size']}"
        )


def _read_attribute(described: AttributeJson, values: pa.ChunkedArray, shape: Sequence[int]) -> Attribute:
    """An attribute from its label at every combination: labels in order, or as they first stand if they have none."""
    coded = values.combine_chunks().dictionary_encode()
    first = labels_of(coded.dictionary, described["labels"])
    try:
        labels: list[Hashable] = [*sorted(cast("list[str]", first))]
    except TypeError:
        labels = first
    place = {label: p for p, label in enumerate(labels)}
    renumbered = np.array([place[label] for label in first], dtype=np.int64)
    codes = renumbered[coded.indices.to_numpy()].reshape(shape)
    return Attribute(described["name"], tuple(described["of"]), tuple(labels), codes)


def _read_zeros(
    folder: Path, described: ZerosJson, dimensions: Mapping[str, Dimension]
) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    of = tuple(described["of"])
    table = read_parquet(folder / described["file"])
    zero = np.zeros([len(dimensions[d]) for d in of], dtype=bool)
    zero[tuple(codes_of_column(column(dimensions[d].values), table[d]) for d in of)] = True
    return of, zero


def read_types(universe: Universe, table: pa.Table, file: str) -> Ints:
    """The index of the trip type in each row of a table, which must be in the universe's order."""
    codes = [codes_of_column(column(d.values), table[name]) for name, d in universe.dimensions.items()]
    index = universe.rank_codes(codes)
    if len(index) and (index[0] < 0 or (np.diff(index) <= 0).any()):
        raise InputError(f"{file!r} has a row outside the universe, or out of order")
    return index


# The release


TRIPS_FILE, FLOORS_FOLDER, PLACES_FILE = "trips.parquet", "floors", "universe/places.parquet"
PRIOR_FILE = "universe/prior.parquet"
# columns of the files: no attribute may have such a name
NUMBER_COLUMNS = ("noisy", "scale", "variance", "estimate", "count", "low", "high", "floor")


@dataclass(frozen=True, eq=False)
class _Numbers:
    """A column: a number for every element, or for those in `index` (ascending); others have none, or `missing`."""

    values: Ints | Floats
    index: Ints | None = None
    missing: int | None = None

    def at(self, here: Ints | slice) -> pa.Array:
        if self.index is None:
            return pa.array(self.values[here])
        elements = np.arange(here.start, here.stop) if isinstance(here, slice) else here
        place = np.searchsorted(self.index, elements)
        present = np.zeros(len(elements), dtype=bool)
        inside = place < len(self.index)
        present[inside] = self.index[place[inside]] == elements[inside]
        values = np.zeros(len(elements), dtype=self.values.dtype)
        values[present] = self.values[place[present]]
        if self.missing is not None:
            return pa.array(np.where(present, values, self.missing))
        return pa.array(values, mask=~present)


Columns = Mapping[str, _Numbers]
NO_INTEGERS = _Numbers(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
NO_FLOATS = _Numbers(np.zeros(0), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Layout:
    sections: LayoutSections
    sheets: list[FileTables]


def check_writable(features: FeatureDag) -> None:
    """Refuse features that could not be written, before anything is spent: labels or names that files do not hold."""
    universe = features.universe
    for name, attribute in universe.attributes.items():
        if name in NUMBER_COLUMNS:
            raise InputError(
                f"the dimension or attribute {name!r} has the name of a column that the files have already: rename it"
            )
        column(attribute.labels)
    for name in (*universe.attributes, *features.features):
        if kind_of([name]) != "text":
            raise InputError(f"the name {name!r} is not text that files can hold: rename it")


def layout(release: Release) -> Layout:
    """Every file of a release and what the manifest says about it."""
    universe, sheets = universe_files(release.features.universe)
    sheets.append(FileTables(TRIPS_FILE, partial(_trip_tables, release)))
    places, prior, running = release.places, release.prior, release.running
    stated_places: PlacesJson | None = None
    if places is not None:
        sheets.append(FileTables(PLACES_FILE, partial(_place_tables, places)))
        stated_places = {
            "file": PLACES_FILE,
            "ids": cast("LabelKind", kind_of(places.ids)),
            "zones": places.zone is not None,
        }
    if prior is not None:
        columns = {"weight": _Numbers(prior)}
        sheets.append(
            FileTables(PRIOR_FILE, partial(_feature_tables, release.features, SINGLETON, None, columns))
        )
    totals = None if running is None else _add_running(release, running, sheets)
    features, measurements = _add_features(release, sheets)
    levels = release.levels
    sections: LayoutSections = {
        "universe": universe,
        "trips": {"file": TRIPS_FILE, "types": len(release.index), "total": release.total},
        "places": stated_places,
        "features": features,
        "measurements": measurements,
        "levels": None
        if levels is None
        else [{"name": n, "by": list(f.by)} for n, f in levels.features.items()],
    }
    if prior is not None:
        sections["prior"] = {"file": PRIOR_FILE}
    if totals is not None:
        sections["running"] = totals
    return Layout(sections, sheets)


def _add_running(release: Release, running: RunningPart, sheets: list[FileTables]) -> RunningJson:
    """The tables of running totals, each in a file of its own, with the total that is published."""
    name, files = FileNames("running"), {}
    for feature, table in running.tables.items():
        columns = {n: _Numbers(values) for n, values in table.columns().items()}
        columns[AFTER_COLUMN] = _Numbers(table.before + release.counts(feature))
        files[feature] = name(feature)
        sheets.append(
            FileTables(files[feature], partial(_feature_tables, release.features, feature, None, columns))
        )
    return running.json(files)


def _add_features(
    release: Release, sheets: list[FileTables]
) -> tuple[list[FeatureJson], list[MeasurementJson]]:
    """The features' tables. A measurement stands in its feature's table, or in one of its own if it is of other elements."""
    dag, levels = release.features, release.levels or release.features
    beside = _measurements_of_features(release, levels)
    name, own_name = FileNames("features", taken=[FLOORS_FOLDER]), FileNames("measurements")
    features: dict[str, FeatureJson] = {}
    for n in dag.features:
        rows = _listed_elements(release, n, beside.get(n))
        columns = _measurement_columns(beside.get(n)) | _published_columns(release, n)
        features[n] = _feature(release, n, rows, name(n))
        sheets.append(FileTables(features[n]["file"], partial(_feature_tables, dag, n, rows, columns)))
    measurements: list[MeasurementJson] = []
    for m in release.measurements:
        if beside.get(m.feature) is m:
            path, all_rows = features[m.feature]["file"], features[m.feature]["rows"] == "all"
        else:
            rows = np.sort(m.elements) if m.feature == SINGLETON and m.elements is not None else None
            path, all_rows = own_name(m.feature), rows is None
            columns = _measurement_columns(m)
            sheets.append(FileTables(path, partial(_feature_tables, levels, m.feature, rows, columns)))
        floor = None
        if m.floor is not None:
            first = all(earlier["floors"] is None for earlier in measurements)
            floor = f"features/{FLOORS_FOLDER}.parquet" if first else name(FLOORS_FOLDER)
            sheets.append(FileTables(floor, partial(_cell_tables, levels, {"floor": _Numbers(m.floor)})))
        variance = manifest.variance_of(m)
        several = m.variance is not None and len(m.variance) > 0 and variance is None
        stated: MeasurementJson = {
            "feature": m.feature,
            "epsilon": exact_json(m.epsilon),
            "law": m.law if m.scale is not None else None,
            "scale": exact_json(m.scale),
            "variance": "by element" if several else variance,
            "elements": "all" if m.elements is None else "listed",
            "floors": floor,
            "rows": "all" if all_rows else "listed",
            "file": path,
        }
        if m.rho is not None:
            stated["rho"] = exact_json(m.rho)
        measurements.append(stated)
    return list(features.values()), measurements


def _measurements_of_features(release: Release, levels: FeatureDag) -> dict[str, Measurement]:
    """The measurements whose elements are those of the feature of their name; the first of each."""
    measurements: dict[str, Measurement] = {}
    for m in release.measurements:
        if m.feature not in levels:
            raise InputError(
                f"a measurement is of {m.feature!r}, which is not one of {', '.join(levels.features)}"
            )
        feature = release.features.features.get(m.feature)
        if feature is not None and feature.by == levels.features[m.feature].by:
            measurements.setdefault(m.feature, m)
    return measurements


def _feature(release: Release, name: str, rows: Ints | None, path: str) -> FeatureJson:
    spent = manifest.cost_of_feature(release, name)
    stated: FeatureJson = {
        "epsilon": exact_json(spent["epsilon"]),
        "delta": exact_json(spent["delta"]),
        "name": name,
        "by": list(release.features.features[name].by),
        "size": release.features.size(name),
        "noise": manifest.noise_of(release, name),
        "published": "table" if name in release.tables else "trips",
        "rows": "all" if rows is None else "listed",
        "file": path,
    }
    if "rho" in spent:
        stated["rho"] = exact_json(spent["rho"])
    return stated


def _measurement_columns(m: Measurement | None) -> dict[str, _Numbers]:
    """The columns of a measurement; those of none are empty."""
    if m is None:
        return {"noisy": NO_INTEGERS, "scale": NO_FLOATS}
    order = slice(None) if m.elements is None else np.argsort(m.elements, kind="stable")
    index = None if m.elements is None else m.elements[order]
    columns = {"noisy": _Numbers(m.values[order], index), "scale": NO_FLOATS}
    if m.scale is not None:
        columns["scale"] = _Numbers(np.full(len(m.values), float(m.scale)), index)
    if m.variance is not None and manifest.variance_of(m) is None:
        columns["variance"] = _Numbers(np.asarray(m.variance)[order], index)
    return columns


def _published_columns(release: Release, name: str) -> dict[str, _Numbers]:
    """The columns of the estimate, the published counts and their intervals."""
    estimate, interval = release.estimate, release.intervals.get(name)
    real = NO_FLOATS
    if estimate is not None and name == SINGLETON:
        real = _Numbers(estimate.solution.leaves, estimate.index)
    elif estimate is not None:
        real = _Numbers(estimate.counts(name))
    if name == SINGLETON and name not in release.tables:
        whole = _Numbers(release.value, release.index, 0)
    else:
        whole = _Numbers(release.counts(name))
    low, high = NO_INTEGERS, NO_INTEGERS
    if interval is not None:
        low, high = _Numbers(interval.low), _Numbers(interval.high)
    return {"estimate": real, "count": whole, "low": low, "high": high}


def _listed_elements(release: Release, name: str, measured: Measurement | None) -> Ints | None:
    """The elements that have a row; None: all. Of `singleton`, those about which anything was published."""
    if name != SINGLETON:
        return None
    estimate = release.estimate
    full = (
        (measured is not None and measured.elements is None)
        or (estimate is not None and estimate.index is None)
        or name in release.intervals
    )
    if full:
        return None
    listed = [release.index]
    if measured is not None and measured.elements is not None:
        listed.append(np.sort(measured.elements))
    if estimate is not None and estimate.index is not None:
        listed.append(estimate.index)
    if name in release.tables:
        listed.append(np.flatnonzero(release.tables[name]).astype(np.int64))
    return sorted_union(*listed)


def _keys(dag: FeatureDag, name: str) -> Callable[[Ints | slice], dict[str, pa.Array]]:
    """What names the elements of a feature: a function from elements to columns of labels."""
    if name == SINGLETON:
        columns = {n: column(d.values) for n, d in dag.universe.dimensions.items()}
        return lambda here: dict(
            zip(
                columns,
                map(take_labels, columns.values(), dag.universe.unrank_codes(_as_indices(here))),
                strict=True,
            )
        )
    partition = dag.partition(name)
    return _label_columns(partition.attributes, partition.label_codes())


def _label_columns(
    attributes: Sequence[Attribute], codes: Sequence[Ints]
) -> Callable[[Ints | slice], dict[str, pa.Array]]:
    labels = {a.name: column(a.labels) for a in attributes}
    return lambda here: {n: take_labels(v, c[here]) for (n, v), c in zip(labels.items(), codes, strict=True)}


def _as_indices(here: Ints | slice) -> Ints:
    return np.arange(here.start, here.stop, dtype=np.int64) if isinstance(here, slice) else here


def _feature_tables(dag: FeatureDag, name: str, rows: Ints | None, columns: Columns) -> Iterator[pa.Table]:
    keys = _keys(dag, name)
    for part in chunks(dag.size(name) if rows is None else len(rows)):
        here: Ints | slice = part if rows is None else rows[part]
        yield pa.table(keys(here) | {n: numbers.at(here) for n, numbers in columns.items()})


def _cell_tables(dag: FeatureDag, columns: Columns) -> Iterator[pa.Table]:
    cells = dag.cells.partition
    keys = _label_columns(cells.attributes, cells.label_codes())
    for part in chunks(cells.size):
        yield pa.table(keys(part) | {n: numbers.at(part) for n, numbers in columns.items()})


def _trip_tables(release: Release) -> Iterator[pa.Table]:
    keys = _keys(release.features, SINGLETON)
    for part in chunks(len(release.index)):
        yield pa.table(keys(release.index[part]) | {"count": pa.array(release.value[part])})


def _place_tables(places: Stops) -> list[pa.Table]:
    columns = {
        "id": column(places.ids),
        "name": pa.array(places.names, pa.string()),
        "lat": pa.array(places.lat, pa.float64()),
        "lon": pa.array(places.lon, pa.float64()),
    }
    zone = {} if places.zone is None else {"zone": pa.array(places.zone, pa.string())}
    return [pa.table(columns | zone)]


def tables(release: Release) -> Iterator[tuple[str, Iterator[pa.Table]]]:
    """The trips, each feature's table and the stops by the name of its file without the ending, in pieces."""
    release_layout = layout(release)
    exported = [
        PLACES_FILE,
        release_layout.sections["trips"]["file"],
        *(f["file"] for f in release_layout.sections["features"]),
    ]
    for sheet in release_layout.sheets:
        if sheet.path in exported:
            yield sheet.path.removesuffix(".parquet"), iter(sheet.tables())


def manifest_of(release: Release) -> Manifest:
    """The manifest of a release; where it was not saved, without the hashes of its files."""
    files = dict(release.stored.files) if release.stored else {}
    return {**manifest.describe(release), **layout(release).sections, "files": files}
