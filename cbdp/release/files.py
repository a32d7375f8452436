"""The files of a release, written all or nothing, and read back as they were.

The same release gives the same bytes with the same version of pyarrow (Parquet files name the version that wrote them; the
manifest states it). Memory follows the trips and the features, not the universe.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.estimate.engine import LISTED, Estimate
from cbdp.estimate.intervals import Interval
from cbdp.features import SINGLETON, TOTAL, Attribute, Feature, FeatureDag
from cbdp.features.index import merged
from cbdp.features.places import Stops
from cbdp.privacy.measurement import Measurement
from cbdp.release import manifest as said
from cbdp.release.labels import Ints, column, kind_of, labels_of, picked
from cbdp.release.release import Release
from cbdp.release.universe_files import (
    ROWS,
    Names,
    Sheet,
    chunks,
    read_table,
    read_types,
    read_universe,
    universe_sheets,
)
from cbdp.solvers.solution import Solution

MANIFEST, TRIPS, FLOORS, PLACES = "manifest.json", "trips.parquet", "floors", "universe/places.parquet"
PRIOR = "universe/prior.parquet"
NUMBERS = (
    "noisy",
    "scale",
    "variance",
    "estimate",
    "count",
    "low",
    "high",
    "floor",
)  # no attribute may be so named
PARTIAL = ".partial"


@dataclass(frozen=True)
class Saved:
    """Where a release was written, and the SHA-256 of its manifest, which holds those of all other files."""

    path: Path
    sha256: str
    manifest: Mapping[str, Any] = field(repr=False)


# What goes where


@dataclass(frozen=True, eq=False)
class _Numbers:
    """A column: a number for every element, or for those in `index` (ascending); others have none, or `missing`."""

    values: NDArray[Any]
    index: Ints | None = None
    missing: int | None = None

    def at(self, here: Ints | slice) -> pa.Array:
        if self.index is None:
            return pa.array(self.values[here])
        wanted = np.arange(here.start, here.stop) if isinstance(here, slice) else here
        place = np.searchsorted(self.index, wanted)
        found = np.zeros(len(wanted), dtype=bool)
        inside = place < len(self.index)
        found[inside] = self.index[place[inside]] == wanted[inside]
        values = np.zeros(len(wanted), dtype=self.values.dtype)
        values[found] = self.values[place[found]]
        if self.missing is not None:
            return pa.array(np.where(found, values, self.missing))
        return pa.array(values, mask=~found)


Columns = Mapping[str, _Numbers]
NOTHING = _Numbers(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
NOTHING_REAL = _Numbers(np.zeros(0), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class _Layout:
    sections: dict[str, Any]
    sheets: list[Sheet]


def check(features: FeatureDag) -> None:
    """Refuse features that could not be written, before anything is spent: labels or names that files do not hold."""
    universe = features.universe
    for name, attribute in universe.attributes.items():
        if name in NUMBERS:
            raise InputError(
                f"{name!r} names a dimension or attribute, but files have a column {name!r}: rename it"
            )
        column(attribute.labels)
    for name in (*universe.attributes, *features.features):
        if kind_of([name]) != "text":
            raise InputError(f"the name {name!r} is not text that files can hold: rename it")


def _layout(release: Release) -> _Layout:
    """Every file of a release and what the manifest says about it."""
    universe, sheets = universe_sheets(release.features.universe)
    sheets.append(Sheet(TRIPS, partial(_trip_tables, release)))
    sections: dict[str, Any] = {
        "universe": universe,
        "trips": {"file": TRIPS, "types": len(release.index), "total": release.total},
        "places": None,
    }
    if release.places is not None:
        sheets.append(Sheet(PLACES, partial(_place_tables, release.places)))
        zones = release.places.zone is not None
        sections["places"] = {"file": PLACES, "ids": kind_of(release.places.ids), "zones": zones}
    prior = said.prior_of(release)
    if prior is not None:
        columns = {"weight": _Numbers(prior)}
        sheets.append(Sheet(PRIOR, partial(_feature_tables, release.features, SINGLETON, None, columns)))
        sections["prior"] = {"file": PRIOR}
    return _add_features(release, sections, sheets)


def _add_features(release: Release, sections: dict[str, Any], sheets: list[Sheet]) -> _Layout:
    """The features' tables. A measurement stands in its feature's table, or in one of its own if it is of other elements."""
    dag, levels = release.features, release.levels or release.features
    beside = _beside(release, levels)
    name, own_name = Names("features", taken=[FLOORS]), Names("measurements")
    features: dict[str, dict[str, Any]] = {}
    for n in dag.features:
        rows = _rows(release, n, beside.get(n))
        columns = _measured(beside.get(n)) | _published(release, n)
        features[n] = _feature(release, n, rows, name(n))
        sheets.append(Sheet(features[n]["file"], partial(_feature_tables, dag, n, rows, columns)))
    measurements: list[dict[str, Any]] = []
    for m in release.measurements:
        where = features.get(m.feature, {})
        if beside.get(m.feature) is not m:
            rows = _elements(m) if m.feature == SINGLETON else None
            where = {"file": own_name(m.feature), "rows": "all" if rows is None else "listed"}
            sheets.append(
                Sheet(where["file"], partial(_feature_tables, levels, m.feature, rows, _measured(m)))
            )
        floor = None
        if m.floor is not None:
            first = all(made["floors"] is None for made in measurements)
            floor = f"features/{FLOORS}.parquet" if first else name(FLOORS)
            sheets.append(Sheet(floor, partial(_cell_tables, levels, {"floor": _Numbers(m.floor)})))
        measurements.append(_measurement(m, floor) | {key: where[key] for key in ("file", "rows")})
    sections["features"], sections["measurements"] = list(features.values()), measurements
    chain = [{"name": n, "by": list(f.by)} for n, f in levels.features.items()]
    sections["levels"] = None if levels is dag else chain
    return _Layout(sections, sheets)


def _beside(release: Release, levels: FeatureDag) -> dict[str, Measurement]:
    """The measurements whose elements are those of the feature of their name; the first of each."""
    found: dict[str, Measurement] = {}
    for m in release.measurements:
        if m.feature not in levels:
            raise InputError(f"a measurement of {m.feature!r}, which is none of {', '.join(levels.features)}")
        own = release.features.features.get(m.feature)
        if own is not None and own.by == levels.features[m.feature].by:
            found.setdefault(m.feature, m)
    return found


def _feature(release: Release, name: str, rows: Ints | None, path: str) -> dict[str, Any]:
    epsilon, delta = said.spent_on(release, name)
    return {
        "name": name,
        "by": list(release.features.features[name].by),
        "size": release.features.size(name),
        "epsilon": said.exact(epsilon),
        "delta": said.exact(delta),
        "noise": said.noise_of(release, name),
        "published": "table" if name in release.tables else "trips",
        "rows": "all" if rows is None else "listed",
        "file": path,
    }


def _measurement(m: Measurement, floor: str | None) -> dict[str, Any]:
    several = m.variance is not None and len(m.variance) > 0 and said.variance_of(m) is None
    return {
        "feature": m.feature,
        "epsilon": said.exact(m.epsilon),
        "scale": said.exact(m.scale),
        "variance": "by element" if several else said.variance_of(m),
        "elements": "all" if m.elements is None else "listed",
        "floors": floor,
    }


def _elements(m: Measurement) -> Ints | None:
    return None if m.elements is None else np.sort(m.elements)


def _measured(m: Measurement | None) -> dict[str, _Numbers]:
    """The columns of a measurement; those of none are empty."""
    if m is None:
        return {"noisy": NOTHING, "scale": NOTHING_REAL}
    order = slice(None) if m.elements is None else np.argsort(m.elements, kind="stable")
    index = None if m.elements is None else m.elements[order]
    columns = {"noisy": _Numbers(m.values[order], index), "scale": NOTHING_REAL}
    if m.scale is not None:
        columns["scale"] = _Numbers(np.full(len(m.values), float(m.scale)), index)
    if m.variance is not None and said.variance_of(m) is None:
        columns["variance"] = _Numbers(np.asarray(m.variance)[order], index)
    return columns


def _published(release: Release, name: str) -> dict[str, _Numbers]:
    """The columns of the estimate, the published counts and their intervals."""
    estimate, interval = release.estimate, release.intervals.get(name)
    real = NOTHING_REAL
    if estimate is not None and name == SINGLETON:
        real = _Numbers(estimate.solution.leaves, estimate.index)
    elif estimate is not None:
        real = _Numbers(estimate.counts(name))
    if name == SINGLETON and name not in release.tables:
        whole = _Numbers(release.value, release.index, 0)
    else:
        whole = _Numbers(release.counts(name))
    low, high = NOTHING, NOTHING
    if interval is not None:
        low, high = _Numbers(interval.low), _Numbers(interval.high)
    return {"estimate": real, "count": whole, "low": low, "high": high}


def _rows(release: Release, name: str, measured: Measurement | None) -> Ints | None:
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
    return merged(*listed)


def _keys(dag: FeatureDag, name: str) -> Callable[[Ints | slice], dict[str, pa.Array]]:
    """What names the elements of a feature: a function from elements to columns of labels."""
    if name == SINGLETON:
        columns = {n: column(d.values) for n, d in dag.universe.dimensions.items()}
        return lambda here: dict(
            zip(columns, map(picked, columns.values(), dag.universe.unrank_codes(_listed(here))), strict=True)
        )
    partition = dag.partition(name)
    return _label_columns(partition.attributes, partition.label_codes())


def _label_columns(
    attributes: Sequence[Attribute], codes: Sequence[Ints]
) -> Callable[[Ints | slice], dict[str, pa.Array]]:
    labels = {a.name: column(a.labels) for a in attributes}
    return lambda here: {n: picked(v, c[here]) for (n, v), c in zip(labels.items(), codes, strict=True)}


def _listed(here: Ints | slice) -> Ints:
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
    """The trips and each feature's table by the name of its file without the ending, in pieces."""
    layout = _layout(release)
    wanted = [layout.sections["trips"]["file"], *(f["file"] for f in layout.sections["features"])]
    for sheet in layout.sheets:
        if sheet.path in wanted:
            yield sheet.path.removesuffix(".parquet"), iter(sheet.tables())


# Writing


def manifest_of(release: Release) -> dict[str, Any]:
    """The manifest of a release; where it was not saved, without the hashes of its files."""
    files = dict(release.stored["files"]) if release.stored else {}
    return {**said.describe(release), **_layout(release).sections, "files": files}


def save(
    release: Release,
    folder: str | Path,
    *,
    ledger_head: str | None,
    extra: Mapping[str, str | bytes],
    simulation: bool,
) -> Saved:
    """Write a release to a new folder: into a temporary one beside it, made durable, then renamed."""
    if not release.secure and not simulation:
        raise InputError(
            "this was drawn from a seeded source: it is a simulation, not a release; say simulation=True to save it as one"
        )
    target = Path(folder).absolute()
    _check_new(target)
    check(release.features)
    layout = _layout(release)
    _check_extra(extra, layout)
    work = target.with_name(f".{target.name}.{secrets.token_hex(8)}{PARTIAL}")
    try:
        work.mkdir()
        written = _write_all(layout, extra, work)
        manifest = {**said.describe(release), **layout.sections, "files": written}
        if ledger_head is not None:
            manifest["ledger"] = {"head": ledger_head}
        text = said.dumps(manifest)
        _write(work / MANIFEST, text)
        for place, _, _ in os.walk(work, topdown=False):
            _sync(Path(place))
        _rename(work, target)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    _sync(target.parent)
    return Saved(target, hashlib.sha256(text).hexdigest(), manifest)


def leftovers(folder: str | Path) -> list[Path]:
    """Temporary folders of saves to this folder that were killed. Nobody reads them; they may be removed."""
    target = Path(folder).absolute()
    return sorted(
        p
        for p in target.parent.glob(f".*{PARTIAL}")
        if p.name.startswith(f".{target.name}.") and len(p.name) == len(target.name) + 18 + len(PARTIAL)
    )


def _check_new(target: Path) -> None:
    if os.path.lexists(target):
        raise InputError(f"{str(target)!r} exists already: choose another folder for the release")
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {str(target.parent)!r} to put the release in: create it")


def _check_extra(extra: Mapping[str, str | bytes], layout: _Layout) -> None:
    taken = {sheet.path.partition("/")[0] for sheet in layout.sheets} | {MANIFEST}
    for name in extra:
        if not name or name in taken or name != Path(name).name or name.startswith(".") or "\\" in name:
            raise InputError(f"a further file cannot be named {name!r}: choose a plain name that is free")


def _write_all(layout: _Layout, extra: Mapping[str, str | bytes], work: Path) -> dict[str, Any]:
    written = {}
    for sheet in layout.sheets:
        path = work / sheet.path
        path.parent.mkdir(exist_ok=True)
        _write_parquet(path, iter(sheet.tables()))
        written[sheet.path] = _fingerprint(path)
    for name, content in extra.items():
        _write(work / name, content.encode() if isinstance(content, str) else content)
        written[name] = _fingerprint(work / name)
    return written


def _write_parquet(path: Path, pieces: Iterator[pa.Table]) -> None:
    first = next(pieces)
    with path.open("xb") as out:
        # plain types only: every reader sees text as text, whatever held it here
        with pq.ParquetWriter(out, first.schema, compression="zstd", store_schema=False) as writer:
            writer.write_table(first, row_group_size=ROWS)
            for piece in pieces:
                writer.write_table(piece, row_group_size=ROWS)
        out.flush()
        os.fsync(out.fileno())


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def _fingerprint(path: Path) -> dict[str, Any]:
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return {"sha256": digest, "bytes": path.stat().st_size}


def _sync(folder: Path) -> None:
    if os.name != "posix":  # elsewhere folders cannot be synchronised
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _rename(work: Path, target: Path) -> None:
    _check_new(target)
    try:
        work.rename(target)
    except OSError:
        raise InputError(f"{str(target)!r} exists already: choose another folder for the release") from None


# Reading


def load(folder: str | Path, verify: bool = True) -> Release:
    """A release as it was saved. `verify` checks the manifest against its schema, and all files against it."""
    place = Path(folder)
    manifest = _read_manifest(place)
    if verify:
        said.check(manifest, f"{str(place / MANIFEST)!r}")
        _verify(place, manifest["files"])
    try:
        release = _release(place, manifest)
        if verify:
            _same(manifest, manifest_of(release))
        return release  # noqa: TRY300 - what is read inside is what may fail
    except InputError as wrong:
        raise InputError(f"{str(place)!r} is damaged: {wrong}") from None
    except (KeyError, TypeError, ValueError, IndexError) as wrong:
        raise InputError(
            f"{str(place)!r} is damaged: its files do not fit its manifest ({type(wrong).__name__}: {wrong})"
        ) from None


def _same(stated: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Refuse a manifest that says other things than its files do."""
    for key in stated:
        if key not in ("files", "ledger") and stated[key] != found.get(key):
            raise InputError(f"what its manifest says of {key!r} is not what its files say")


def _read_manifest(place: Path) -> dict[str, Any]:
    if not place.is_dir():
        raise InputError(f"there is no folder {str(place)!r} with a release")
    try:
        manifest = json.loads((place / MANIFEST).read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{str(place)!r} is no release: it has no {MANIFEST}") from None
    except (OSError, ValueError):
        raise InputError(f"{str(place / MANIFEST)!r} cannot be read as JSON") from None
    if not isinstance(manifest, dict) or manifest.get("format") != said.FORMAT:
        raise InputError(f"{str(place / MANIFEST)!r} is not the manifest of a release")
    if manifest.get("version") != said.VERSION:
        raise InputError(
            f"{str(place)!r} is of format version {manifest.get('version')!r}, this program reads {said.VERSION}"
        )
    return manifest


def _verify(place: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    for name, expected in sorted(files.items()):
        path = place / name
        if not path.is_file():
            raise InputError(f"the file {name!r} of the release {str(place)!r} is missing")
        if _fingerprint(path) != dict(expected):
            raise InputError(f"the file {name!r} of the release {str(place)!r} does not match its manifest")
    here = {p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_symlink() or not p.is_dir()}
    for name in sorted(here - {*files, MANIFEST}):
        raise InputError(f"the file {name!r} does not belong to the release {str(place)!r}: remove it")


def _release(place: Path, manifest: Mapping[str, Any]) -> Release:
    universe = read_universe(place, manifest["universe"])
    between = [f for f in manifest["features"] if f["name"] not in (SINGLETON, TOTAL)]
    dag = FeatureDag(universe, [Feature(f["name"], by=f["by"]) for f in between])
    levels = None
    if manifest["levels"] is not None:
        chain = [f for f in manifest["levels"] if f["name"] not in (SINGLETON, TOTAL)]
        levels = FeatureDag(universe, [Feature(f["name"], by=f["by"]) for f in chain])
    trips = read_table(place / manifest["trips"]["file"])
    reader = _Reader(place, dag, levels or dag)
    index, value = read_types(universe, trips, TRIPS), _numbers(trips["count"])
    if (len(index), int(value.sum())) != (manifest["trips"]["types"], manifest["trips"]["total"]):
        raise InputError(f"{TRIPS!r} has {len(index)} types with {value.sum()} trips")
    intervals = manifest["intervals"]
    return Release(
        dag,
        manifest["mechanism"]["name"],
        said.claim_of(manifest["privacy"]),
        index,
        value,
        [_read_measurement(place, m, reader) for m in manifest["measurements"]],
        _read_estimate(manifest, reader),
        {f["name"]: reader.dense(f, "count") for f in manifest["features"] if f["published"] == "table"},
        secure=manifest["secure"],
        intervals={}
        if intervals is None
        else {n: reader.interval(n, manifest) for n in intervals["features"]},
        confidence=None if intervals is None else intervals["confidence"],
        rounding=None if manifest["rounding"] is None else manifest["rounding"]["violations"],
        levels=levels,
        places=_read_places(place, manifest["places"]),
        settings={**manifest["mechanism"]["settings"], **_read_prior(place, manifest, universe.size)},
        stored=manifest,
    )


def _described(manifest: Mapping[str, Any], name: str, what: str) -> Mapping[str, Any]:
    """What a manifest says of the feature that it has intervals or an estimate of."""
    for feature in manifest["features"]:
        if feature["name"] == name:
            return dict(feature)
    known = ", ".join(repr(f["name"]) for f in manifest["features"])
    raise InputError(f"{MANIFEST} has {what} of {name!r}, which is none of its features: use one of {known}")


def _numbers(held: pa.ChunkedArray) -> NDArray[Any]:
    return np.asarray(held.combine_chunks().to_numpy(zero_copy_only=False))


@dataclass(frozen=True, eq=False)
class _Reader:
    """Tables of a release, each read once."""

    place: Path
    dag: FeatureDag
    levels: FeatureDag  # what the measurements are of
    _held: dict[str, tuple[pa.Table, Ints | None]] = field(default_factory=dict)

    def table(self, of: FeatureDag, given: Mapping[str, Any], name: str) -> tuple[pa.Table, Ints | None]:
        """The table of a feature or a measurement, and the elements of its rows (None: all, in their order)."""
        file = given["file"]
        if file not in self._held:
            held = read_table(self.place / file)
            index = read_types(of.universe, held, file) if given["rows"] == "listed" else None
            if index is None and len(held) != of.size(name):
                raise InputError(f"{file!r} has {len(held)} rows")
            self._held[file] = (held, index)
        return self._held[file]

    def dense(self, feature: Mapping[str, Any], what: str) -> Ints:
        """A number for every element of a feature."""
        held, index = self.table(self.dag, feature, feature["name"])
        numbers = _numbers(held[what]).astype(np.int64)
        if index is not None:
            if self.dag.universe.size > LISTED:
                raise InputError(f"the table {feature['name']!r} does not fit in memory")
            every = np.zeros(self.dag.universe.size, dtype=np.int64)
            every[index] = numbers
            return every
        return numbers

    def interval(self, name: str, manifest: Mapping[str, Any]) -> Interval:
        feature = _described(manifest, name, "intervals")
        return Interval(self.dense(feature, "low"), self.dense(feature, "high"))

    def known(self, held: pa.Table, what: str, index: Ints | None) -> tuple[NDArray[Any], Ints]:
        """The numbers of a column that has gaps, and the elements they belong to."""
        mask = held[what].combine_chunks().is_valid().to_numpy(zero_copy_only=False)
        here = np.flatnonzero(mask).astype(np.int64)
        return _numbers(held[what].drop_null()), here if index is None else index[here]


def _read_measurement(place: Path, given: Mapping[str, Any], reader: _Reader) -> Measurement:
    name = given["feature"]
    held, index = reader.table(reader.levels, given, name)
    values, elements = reader.known(held, "noisy", index)
    variance = given["variance"]
    if variance == "by element":
        variance = reader.known(held, "variance", index)[0]
    return Measurement(
        name,
        values,
        said.number(given["scale"]),
        variance,
        elements if given["elements"] == "listed" else None,
        said.number(given["epsilon"]),
        None if given["floors"] is None else _numbers(read_table(place / given["floors"])["floor"]),
    )


def _read_estimate(manifest: Mapping[str, Any], reader: _Reader) -> Estimate | None:
    """The estimate with its certificate; prices, which only a solver that starts from it would use, are not published."""
    given = manifest["estimate"]
    if given is None:
        return None
    single = _described(manifest, SINGLETON, "an estimate")
    held, index = reader.table(reader.dag, single, SINGLETON)
    leaves, listed = reader.known(held, "estimate", index)
    certificate = said.certificate_of(given["certificate"])
    solution = Solution(leaves, {}, certificate, given["objective"], given["solver"], given["iterations"])
    return Estimate(reader.dag, solution, None if given["leaves"] == "all" else listed)


def _read_prior(place: Path, manifest: Mapping[str, Any], size: int) -> dict[str, NDArray[np.float64]]:
    """The public weights that entered the estimate; the manifest holds their hash among the settings."""
    given = manifest.get("prior")
    if given is None:
        return {}
    weights = _numbers(read_table(place / given["file"])["weight"]).astype(np.float64)
    if len(weights) != size:
        raise InputError(f"{given['file']!r} has {len(weights)} rows")
    return {"prior": weights}


def _read_places(place: Path, given: Mapping[str, Any] | None) -> Stops | None:
    if given is None:
        return None
    held = read_table(place / given["file"])
    zone = tuple(held["zone"].to_pylist()) if given["zones"] else None
    ids = tuple(labels_of(held["id"], given["ids"]))
    return Stops(ids, tuple(held["name"].to_pylist()), _numbers(held["lat"]), _numbers(held["lon"]), zone)
