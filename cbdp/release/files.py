"""The files of a release: written all or nothing, and read back as data of whoever wrote them.

The same release gives the same bytes with the same version of pyarrow (Parquet files name the version that wrote them; the
manifest states it).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation.engine import MAX_LISTED_TYPES, Estimate
from cbdp.estimation.intervals import Interval
from cbdp.features import SINGLETON, TOTAL, Feature, FeatureDag
from cbdp.machine import abandoned, locked_folder, partial_name, sweep
from cbdp.privacy.measurement import Measurement
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS
from cbdp.release.about import about_from
from cbdp.release.documents import DOCUMENT_NAMES, documents
from cbdp.release.layout import (
    NUMBER_COLUMNS,
    ROWS_PER_GROUP,
    TRIPS_FILE,
    Layout,
    check_writable,
    manifest_of,
    read_types,
    read_universe,
)
from cbdp.release.layout import layout as laid_out
from cbdp.release.manifest import (
    FORMAT,
    VERSION,
    ZEROS_SKIPPED,
    check_manifest,
    describe,
    manifest_bytes,
    registry_fields_of_version_1,
    upgraded_manifest,
    with_noise_names,
)
from cbdp.release.release import Release, Stored
from cbdp.release.serialization import (
    Recipe,
    TableNoise,
    certificate_from,
    check_installed_parts,
    exact_from,
    guarantee_from,
)
from cbdp.release.series import read_running_totals, series_from
from cbdp.text import shown_data
from cbdp.untrusted import read_json, read_parquet
from cbdp_features.places import Stops
from cbdp_features.tables import labels_of
from cbdp_solvers.solution import Solution

if TYPE_CHECKING:
    from cbdp.release.manifest_model import (
        FeatureJson,
        FileJson,
        LedgerJson,
        Manifest,
        MeasurementJson,
        PlacesJson,
    )

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Saved:
    """Where a release was written, and the SHA-256 of its manifest, which holds those of all other files."""

    path: Path
    sha256: str
    manifest: Manifest = field(repr=False)


def save(
    release: Release,
    folder: str | Path,
    *,
    ledger: Mapping[str, object] | None,
    extra: Mapping[str, str | bytes],
    simulation: bool,
) -> Saved:
    """Write a release to a new folder: into a temporary one beside it, made durable, then renamed."""
    if not release.secure and not simulation:
        raise InputError(
            "its noise came from a seeded source, so this is a simulation, not a release: pass simulation=True to save it as one"
        )
    target = Path(folder).absolute()
    _check_new(target)
    check_writable(release.features)
    layout = laid_out(release)
    _check_extra(extra, layout)
    sweep(target.parent)
    with locked_folder(target.with_name(partial_name(target.name))) as work:
        written = _write_all(release, layout, extra, work)
        manifest: Manifest = {**describe(release), **layout.sections, "files": written}
        if ledger is not None:
            manifest["ledger"] = cast("LedgerJson", dict(ledger))
        text = manifest_bytes(manifest)
        _write(work / MANIFEST, text)
        for place, _, _ in os.walk(work, topdown=False):
            _sync(Path(place))
        _rename(work, target)
    _sync(target.parent)
    return Saved(target, hashlib.sha256(text).hexdigest(), manifest)


def leftovers(folder: str | Path) -> list[Path]:
    """Temporary folders of saves to this folder that were killed. Nobody reads them; the next save beside them removes them."""
    target = Path(folder).absolute()
    return abandoned(target.parent, re.escape(f".{target.name}."))


def _check_new(target: Path) -> None:
    if os.path.lexists(target):
        raise InputError(f"{str(target)!r} exists already: choose another folder for the release")
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {str(target.parent)!r} to put the release in: create it")


def _check_extra(extra: Mapping[str, str | bytes], layout: Layout) -> None:
    reserved = {sheet.path.partition("/")[0] for sheet in layout.sheets} | {MANIFEST, *DOCUMENT_NAMES}
    taken = {name.lower() for name in reserved}  # some file systems do not tell letters apart
    for name in extra:
        if (
            not name
            or name.lower() in taken
            or name != Path(name).name
            or name.startswith(".")
            or "\\" in name
        ):
            raise InputError(
                f"{name!r} cannot be the name of a further file: choose a plain name that is not taken"
            )


def _write_all(
    release: Release, layout: Layout, extra: Mapping[str, str | bytes], work: Path
) -> dict[str, FileJson]:
    """The data first, then what describes them."""
    written: dict[str, FileJson] = {}
    for sheet in layout.sheets:
        path = work / sheet.path
        path.parent.mkdir(exist_ok=True)
        with path.open("xb") as out:
            write_parquet(out, iter(sheet.tables()))
            out.flush()
            os.fsync(out.fileno())
        written[sheet.path] = fingerprint(path)
    spoken = documents(release, layout.sections, work, list(extra))
    for name, content in (*spoken.items(), *extra.items()):
        _write(work / name, content.encode() if isinstance(content, str) else content)
        written[name] = fingerprint(work / name)
    return written


def write_parquet(out: BinaryIO, pieces: Iterator[pa.Table]) -> None:
    """Tables of one schema, one after the other, in plain types: every reader sees text as text, whatever held it here."""
    first = next(pieces)
    with pq.ParquetWriter(out, first.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(first, row_group_size=ROWS_PER_GROUP)
        for piece in pieces:
            writer.write_table(piece, row_group_size=ROWS_PER_GROUP)


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def fingerprint(path: Path) -> FileJson:
    """The hash and the size of a file."""
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
    """A release as it was saved. The manifest is checked against its schema, and, to `verify`, all files against the manifest.

    Whoever wrote the folder, its files are data: nothing that they name is imported, no link in it is followed, and what does not
    fit is one `InputError`.

    >>> import tempfile
    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> release = cbdp.Laplace(features, epsilon=1).release(trips)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = release.save(f"{folder}/out")
    ...     again = cbdp.release.load(f"{folder}/out")
    >>> again.mechanism
    'laplace'
    """
    place = Path(folder)
    manifest = read_manifest(place)
    check_links(place, manifest)
    if verify:
        verify_files(place, manifest["files"])
    try:
        release = read_release(place, manifest)
        if verify:
            _check_agrees(manifest, manifest_of(release))
        return release  # noqa: TRY300 - what is read inside is what may fail
    except InputError as wrong:
        raise InputError(f"{str(place)!r} is damaged: {wrong}") from None
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError, pa.ArrowException) as wrong:
        raise InputError(
            f"{str(place)!r} is damaged: its files do not fit its manifest ({type(wrong).__name__}: {wrong})"
        ) from None


def _check_agrees(stated: Manifest, derived: Manifest) -> None:
    """Refuse a manifest that disagrees with its files."""
    expected: Mapping[str, object] = derived
    for key, value in stated.items():
        if key in ("files", "ledger") or value == expected.get(key):
            continue
        if key == "about" and shown_data(value) == shown_data(expected[key]):
            continue  # an earlier version did not mask passwords
        if key != "deployment" or value != registry_fields_of_version_1(derived["deployment"]):
            raise InputError(f"its manifest and its files disagree about {key!r}")


def read_manifest(place: Path) -> Manifest:
    """The manifest of a folder as this version states it and as its schema has it; one of an earlier version is upgraded.

    Every field has its type and range, and every part that it names is installed; whether the files fit is not looked at.
    """
    what = repr(str(place / MANIFEST))
    named = with_noise_names(check_manifest(stated_manifest(place), what), what)
    check_installed_parts(named, what)
    return named


def stated_manifest(place: Path) -> Mapping[str, object]:
    """As `read_manifest`, but only that it is JSON of a known version is checked: any field may be anything."""
    path = place / MANIFEST
    if not place.is_dir():
        raise InputError(f"there is no folder {str(place)!r} with a release")
    if path.is_symlink():
        raise InputError(f"{str(path)!r} is a link to another place: put the file itself there")
    try:
        manifest = read_json(path)
    except FileNotFoundError:
        raise InputError(f"{str(place)!r} is not a release: it has no {MANIFEST}") from None
    except OSError:
        raise InputError(f"{str(path)!r} cannot be read") from None
    except InputError as wrong:
        raise InputError(f"{str(path)!r} cannot be read as JSON: {wrong}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{str(path)!r} is not the manifest of a release")
    version = manifest.get("version")
    if version == 1 and type(version) is int:
        try:
            return upgraded_manifest(manifest)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise InputError(f"{str(path)!r} is not a manifest of version 1") from None
    if version != VERSION:
        raise InputError(
            f"{str(place)!r} has format version {version!r}, and this program reads up to {VERSION}: update cbdp"
        )
    return manifest


def check_links(place: Path, manifest: Manifest) -> None:
    """Refuse links inside a release: what they lead to is not part of it, and may be anything on the reader's computer."""
    for name in (MANIFEST, *manifest["files"]):
        for part in (place / name, *(place / name).parents):
            if part == place:
                break
            if part.is_symlink():
                shown = part.relative_to(place).as_posix()
                raise InputError(
                    f"{shown!r} in the release {str(place)!r} is a link to another place: put the file itself there"
                )
        if (place / name).exists() and not (place / name).is_file():
            raise InputError(f"{name!r} in the release {str(place)!r} is not a file")


def verify_files(place: Path, files: Mapping[str, FileJson]) -> None:
    """Refuse a folder whose files are not those that its manifest names, byte for byte."""
    for name, expected in sorted(files.items()):
        path = place / name
        if not path.is_file():
            raise InputError(f"the file {name!r} of the release {str(place)!r} is missing")
        if path.stat().st_size != expected["bytes"] or fingerprint(path) != expected:
            raise InputError(f"the file {name!r} of the release {str(place)!r} does not match its manifest")
    here = {p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_symlink() or not p.is_dir()}
    for name in sorted(here - {*files, MANIFEST}):
        raise InputError(f"the file {name!r} does not belong to the release {str(place)!r}: remove it")


def read_release(place: Path, manifest: Manifest) -> Release:
    """The release that the files of a folder hold, where they are as its manifest says; hashes are not looked at."""
    universe = read_universe(place, manifest["universe"])
    between = [f for f in manifest["features"] if f["name"] not in (SINGLETON, TOTAL)]
    dag = FeatureDag(universe, [Feature(f["name"], by=f["by"]) for f in between])
    levels = None
    if manifest["levels"] is not None:
        chain = [f for f in manifest["levels"] if f["name"] not in (SINGLETON, TOTAL)]
        levels = FeatureDag(universe, [Feature(f["name"], by=f["by"]) for f in chain])
    trips = read_parquet(place / manifest["trips"]["file"])
    reader = _Reader(place, dag, levels or dag)
    index, value = read_types(universe, trips, TRIPS_FILE), _numbers(trips["count"])
    if (len(index), int(value.sum())) != (manifest["trips"]["types"], manifest["trips"]["total"]):
        stated = f"{manifest['trips']['total']} trips of {manifest['trips']['types']} types"
        raise InputError(
            f"{TRIPS_FILE!r} has {value.sum()} trips of {len(index)} types, {MANIFEST} states {stated}"
        )
    intervals = manifest["intervals"]
    return Release(
        dag,
        _read_recipe(manifest),
        guarantee_from(manifest["privacy"]),
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
        violations=None if manifest["rounding"] is None else manifest["rounding"]["violations"],
        rounding_tolerance=None if manifest["rounding"] is None else manifest["rounding"].get("tolerance"),
        levels=levels,
        places=_read_places(place, manifest["places"]),
        about=about_from(manifest["about"]),
        series=series_from(manifest.get("series")),
        prior=_read_prior(place, manifest, universe.size),
        running=read_running_totals(place, manifest.get("running")),
        stored=Stored(manifest["software"], manifest["ledger"], manifest["files"]),
    )


def _read_recipe(manifest: Manifest) -> Recipe:
    """The recipe; of tables published as they were measured, the manifest states the noise beside them."""
    stated, table_noise = manifest["recipe"], dict[str, TableNoise]()
    measured = {m["feature"] for m in manifest["measurements"]}
    for f in manifest["features"]:
        noise = f["noise"]
        if f["published"] == "table" and f["name"] not in measured and noise is not None:
            if noise["name"] is None or noise["scale"] is None:
                raise InputError(f"{MANIFEST} does not say what noise the table {f['name']!r} has")
            law = NOISE_DISTRIBUTIONS.installed(noise["name"])(exact_from(noise["scale"]))
            table_noise[f["name"]] = TableNoise(law, noise["threshold"], noise["zeros"] == ZEROS_SKIPPED)
    return Recipe(stated["mechanism"], stated["settings"], table_noise)


def _stated_feature(manifest: Manifest, name: str, what: str) -> FeatureJson:
    """What a manifest says of the feature that it has intervals or an estimate of."""
    for feature in manifest["features"]:
        if feature["name"] == name:
            return feature
    names = ", ".join(repr(f["name"]) for f in manifest["features"])
    raise InputError(f"{MANIFEST} has {what} of {name!r}, which is not one of its features: {names}")


def _numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    return np.asarray(column.combine_chunks().to_numpy(zero_copy_only=False))


@dataclass(frozen=True, eq=False)
class _Reader:
    """Tables of a release, each read once."""

    place: Path
    dag: FeatureDag
    levels: FeatureDag  # what the measurements are of
    _read: dict[str, tuple[pa.Table, Ints | None]] = field(default_factory=dict)

    def table(
        self, of: FeatureDag, stated: FeatureJson | MeasurementJson, name: str
    ) -> tuple[pa.Table, Ints | None]:
        """The table of a feature or a measurement, and the elements of its rows (None: all, in their order)."""
        file = stated["file"]
        if file not in self._read:
            listed = (
                stated["rows"] == "listed"
            )  # else rows are in their order, and what they are called need not be read
            rows = read_parquet(self.place / file, None if listed else NUMBER_COLUMNS)
            index = read_types(of.universe, rows, file) if listed else None
            if index is None and len(rows) != of.size(name):
                raise InputError(f"{file!r} has {len(rows)} rows instead of {of.size(name)}")
            self._read[file] = (rows, index)
        return self._read[file]

    def dense(self, feature: FeatureJson, what: str) -> Ints:
        """A number for every element of a feature."""
        rows, index = self.table(self.dag, feature, feature["name"])
        numbers = _numbers(rows[what]).astype(np.int64)
        if index is not None:
            if self.dag.universe.size > MAX_LISTED_TYPES:
                raise InputError(f"the table {feature['name']!r} does not fit in memory")
            every = np.zeros(self.dag.universe.size, dtype=np.int64)
            every[index] = numbers
            return every
        return numbers

    def interval(self, name: str, manifest: Manifest) -> Interval:
        feature = _stated_feature(manifest, name, "intervals")
        return Interval(self.dense(feature, "low"), self.dense(feature, "high"))

    def present(self, rows: pa.Table, what: str, index: Ints | None) -> tuple[NDArray[Any], Ints]:
        """The numbers of a column that has gaps, and the elements they belong to."""
        mask = rows[what].combine_chunks().is_valid().to_numpy(zero_copy_only=False)
        here = np.flatnonzero(mask).astype(np.int64)
        return _numbers(rows[what].drop_null()), here if index is None else index[here]


def _read_measurement(place: Path, stated: MeasurementJson, reader: _Reader) -> Measurement:
    name = stated["feature"]
    rows, index = reader.table(reader.levels, stated, name)
    values, elements = reader.present(rows, "noisy", index)
    stated_variance = stated["variance"]
    by_element = stated_variance == "by element"
    variance = (
        reader.present(rows, "variance", index)[0] if by_element else cast("float | None", stated_variance)
    )
    return Measurement(
        name,
        values,
        exact_from(stated["scale"]),
        variance,
        elements if stated["elements"] == "listed" else None,
        exact_from(stated["epsilon"]),
        None if stated["floors"] is None else _numbers(read_parquet(place / stated["floors"])["floor"]),
        stated["law"] or "geometric",
        rho=exact_from(stated.get("rho")),
    )


def _read_estimate(manifest: Manifest, reader: _Reader) -> Estimate | None:
    """The estimate with its certificate; prices, which only a solver that starts from it would use, are not published."""
    stated = manifest["estimate"]
    if stated is None:
        return None
    single = _stated_feature(manifest, SINGLETON, "an estimate")
    rows, index = reader.table(reader.dag, single, SINGLETON)
    leaves, listed = reader.present(rows, "estimate", index)
    certificate = certificate_from(stated["certificate"])
    solution = Solution(leaves, {}, certificate, stated["objective"], stated["solver"], stated["iterations"])
    return Estimate(reader.dag, solution, None if stated["leaves"] == "all" else listed)


def _read_prior(place: Path, manifest: Manifest, size: int) -> Floats | None:
    """The public weights that entered the estimate; the manifest holds their hash among the settings."""
    stated = manifest.get("prior")
    if stated is None:
        return None
    weights = _numbers(read_parquet(place / stated["file"])["weight"]).astype(np.float64)
    if len(weights) != size:
        raise InputError(f"{stated['file']!r} has {len(weights)} rows instead of {size}")
    return weights


def _read_places(place: Path, stated: PlacesJson | None) -> Stops | None:
    if stated is None:
        return None
    rows = read_parquet(place / stated["file"])
    zone = tuple(rows["zone"].to_pylist()) if stated["zones"] else None
    ids = tuple(labels_of(rows["id"], stated["ids"]))
    return Stops(ids, tuple(rows["name"].to_pylist()), _numbers(rows["lat"]), _numbers(rows["lon"]), zone)
