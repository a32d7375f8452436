"""A release read back from its folder as it was saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.estimate.estimate import LISTED, Estimate
from cbdp.estimate.intervals import Interval
from cbdp.features import SINGLETON, TOTAL, Feature, FeatureDag
from cbdp.features.places import Stops
from cbdp.privacy.laws import LAWS
from cbdp.privacy.measurement import Measurement
from cbdp.release.about import about_from
from cbdp.release.deployment import in_earlier_words
from cbdp.release.labels import labels_of
from cbdp.release.layout import NUMBERS, TRIPS, manifest_of
from cbdp.release.manifest import FORMAT, SKIPPED, VERSION
from cbdp.release.recipe import Recipe, TableNoise, check_parts
from cbdp.release.release import Release, Stored
from cbdp.release.running import read_running
from cbdp.release.saving import MANIFEST, fingerprint
from cbdp.release.schema import check, upgraded, with_noise_names
from cbdp.release.series import in_series
from cbdp.release.stated import certificate_of, claim_of, number
from cbdp.release.universe_files import read_table, read_types, read_universe
from cbdp.solvers.solution import Solution
from cbdp.text import shown_data
from cbdp.untrusted import read_json


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
            _same(manifest, manifest_of(release))
        return release  # noqa: TRY300 - what is read inside is what may fail
    except InputError as wrong:
        raise InputError(f"{str(place)!r} is damaged: {wrong}") from None
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError, pa.ArrowException) as wrong:
        raise InputError(
            f"{str(place)!r} is damaged: its files do not fit its manifest ({type(wrong).__name__}: {wrong})"
        ) from None


def _same(stated: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Refuse a manifest that disagrees with its files."""
    for key in stated:
        if key in ("files", "ledger") or stated[key] == found.get(key):
            continue
        if key == "about" and shown_data(stated[key]) == shown_data(found[key]):
            continue  # an earlier version did not mask passwords
        if key != "deployment" or stated[key] != in_earlier_words(found[key]):
            raise InputError(f"its manifest and its files disagree about {key!r}")


def read_manifest(place: Path) -> dict[str, Any]:
    """The manifest of a folder as this version states it and as its schema has it; one of an earlier version is upgraded.

    Every field has its type and range, and every part that it names is installed; whether the files fit is not looked at.
    """
    manifest, what = stated_manifest(place), repr(str(place / MANIFEST))
    check(manifest, what)
    named = with_noise_names(manifest, what)
    check_parts(named, what)
    return named


def stated_manifest(place: Path) -> dict[str, Any]:
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
            return upgraded(manifest)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise InputError(f"{str(path)!r} is not a manifest of version 1") from None
    if version != VERSION:
        raise InputError(
            f"{str(place)!r} has format version {version!r}, and this program reads up to {VERSION}: update cbdp"
        )
    return manifest


def check_links(place: Path, manifest: Mapping[str, Any]) -> None:
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


def verify_files(place: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a folder whose files are not those that its manifest names, byte for byte."""
    for name, expected in sorted(files.items()):
        path = place / name
        if not path.is_file():
            raise InputError(f"the file {name!r} of the release {str(place)!r} is missing")
        if path.stat().st_size != expected["bytes"] or fingerprint(path) != dict(expected):
            raise InputError(f"the file {name!r} of the release {str(place)!r} does not match its manifest")
    here = {p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_symlink() or not p.is_dir()}
    for name in sorted(here - {*files, MANIFEST}):
        raise InputError(f"the file {name!r} does not belong to the release {str(place)!r}: remove it")


def read_release(place: Path, manifest: Mapping[str, Any]) -> Release:
    """The release that the files of a folder hold, where they are as its manifest says; hashes are not looked at."""
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
        stated = f"{manifest['trips']['total']} trips of {manifest['trips']['types']} types"
        raise InputError(
            f"{TRIPS!r} has {value.sum()} trips of {len(index)} types, {MANIFEST} states {stated}"
        )
    intervals = manifest["intervals"]
    return Release(
        dag,
        _read_recipe(manifest),
        claim_of(manifest["privacy"]),
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
        series=in_series(manifest.get("series")),
        prior=_read_prior(place, manifest, universe.size),
        running=read_running(place, manifest.get("running")),
        stored=Stored(manifest["software"], manifest["ledger"], manifest["files"]),
    )


def _read_recipe(manifest: Mapping[str, Any]) -> Recipe:
    """The recipe; of tables published as they were measured, the manifest states the noise beside them."""
    stated, own = manifest["recipe"], {}
    measured = {m["feature"] for m in manifest["measurements"]}
    for f in manifest["features"]:
        noise = f["noise"]
        if f["published"] == "table" and f["name"] not in measured and noise is not None:
            if noise["name"] is None or noise["scale"] is None:
                raise InputError(f"{MANIFEST} does not say what noise the table {f['name']!r} has")
            law = LAWS.installed(noise["name"])(number(noise["scale"]))
            own[f["name"]] = TableNoise(law, noise["threshold"], noise["zeros"] == SKIPPED)
    return Recipe(stated["mechanism"], stated["settings"], own)


def _described(manifest: Mapping[str, Any], name: str, what: str) -> Mapping[str, Any]:
    """What a manifest says of the feature that it has intervals or an estimate of."""
    for feature in manifest["features"]:
        if feature["name"] == name:
            return dict(feature)
    known = ", ".join(repr(f["name"]) for f in manifest["features"])
    raise InputError(f"{MANIFEST} has {what} of {name!r}, which is not one of its features: {known}")


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
            listed = (
                given["rows"] == "listed"
            )  # else rows are in their order, and what they are called need not be read
            held = read_table(self.place / file, None if listed else NUMBERS)
            index = read_types(of.universe, held, file) if listed else None
            if index is None and len(held) != of.size(name):
                raise InputError(f"{file!r} has {len(held)} rows instead of {of.size(name)}")
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
        number(given["scale"]),
        variance,
        elements if given["elements"] == "listed" else None,
        number(given["epsilon"]),
        None if given["floors"] is None else _numbers(read_table(place / given["floors"])["floor"]),
        given["law"] or "geometric",
        rho=number(given.get("rho")),
    )


def _read_estimate(manifest: Mapping[str, Any], reader: _Reader) -> Estimate | None:
    """The estimate with its certificate; prices, which only a solver that starts from it would use, are not published."""
    given = manifest["estimate"]
    if given is None:
        return None
    single = _described(manifest, SINGLETON, "an estimate")
    held, index = reader.table(reader.dag, single, SINGLETON)
    leaves, listed = reader.known(held, "estimate", index)
    certificate = certificate_of(given["certificate"])
    solution = Solution(leaves, {}, certificate, given["objective"], given["solver"], given["iterations"])
    return Estimate(reader.dag, solution, None if given["leaves"] == "all" else listed)


def _read_prior(place: Path, manifest: Mapping[str, Any], size: int) -> NDArray[np.float64] | None:
    """The public weights that entered the estimate; the manifest holds their hash among the settings."""
    given = manifest.get("prior")
    if given is None:
        return None
    weights = _numbers(read_table(place / given["file"])["weight"]).astype(np.float64)
    if len(weights) != size:
        raise InputError(f"{given['file']!r} has {len(weights)} rows instead of {size}")
    return weights


def _read_places(place: Path, given: Mapping[str, Any] | None) -> Stops | None:
    if given is None:
        return None
    held = read_table(place / given["file"])
    zone = tuple(held["zone"].to_pylist()) if given["zones"] else None
    ids = tuple(labels_of(held["id"], given["ids"]))
    return Stops(ids, tuple(held["name"].to_pylist()), _numbers(held["lat"]), _numbers(held["lon"]), zone)
