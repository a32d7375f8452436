"""A folder of ours, read as a sceptic does: every file against its hash, every number against those it follows from.

A release states the same facts several times: trips, tables that add them up, estimates, noisy answers, a manifest. From the least that
determines the rest (universe, trips, noisy answers, estimates of trip types, the tree of costs) all other columns and most of the manifest
are made again and compared (columns: `cbdp.audit.file_integrity`). So whoever changes a number and corrects the hashes must change
everything that follows from it, and then still meets the ledger, which holds the manifest's hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cbdp.audit import file_integrity
from cbdp.audit.findings import (
    MAX_ITEMS_NAMED,
    Finding,
    and_more,
    clear_finding,
    row_words,
    tampering_finding,
)
from cbdp.errors import CbdpError, InputError
from cbdp.features import Universe
from cbdp.release.documents import DOCUMENT_NAMES, documents
from cbdp.release.files import MANIFEST, check_links, fingerprint, read_release, stated_manifest
from cbdp.release.layout import TRIPS_FILE, layout, manifest_of, read_universe
from cbdp.release.manifest import check_manifest, exactness_of, software, with_noise_names
from cbdp.release.release import Release
from cbdp.release.serialization import check_installed_parts, guarantee_from
from cbdp.rounding.bounds import TOLERANCES
from cbdp.untrusted import read_parquet
from cbdp_features.tables import codes_of_column, column

if TYPE_CHECKING:
    from cbdp.release.manifest_model import Manifest, RoundingJson

REPORT = "report.html"
UNREADABLE_ERRORS = (
    CbdpError,
    pa.ArrowException,
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    StopIteration,
)


@dataclass(frozen=True, eq=False)
class OwnRelease:
    """A release as it lies in its folder; `release` is None where its files cannot be read together."""

    path: Path
    manifest: Manifest = field(repr=False)
    sha256: str
    release: Release | None
    findings: tuple[Finding, ...] = field(repr=False)

    @property
    def claim(self) -> str:
        """What the manifest claims, in words."""
        try:
            return f"{self.manifest['recipe']['mechanism']}, {guarantee_from(self.manifest['privacy'])}"
        except (CbdpError, KeyError, TypeError, ValueError, ArithmeticError):
            return "the manifest's claim cannot be understood"


def open_own_release(path: str | Path) -> OwnRelease:
    """Read a folder of ours, and find what in it does not fit together. No manifest, or none of ours: `InputError`."""
    folder = Path(path)
    stated = stated_manifest(folder)
    sha256 = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
    try:
        manifest = with_noise_names(check_manifest(stated, MANIFEST), MANIFEST)
    except InputError as wrong:
        finding = tampering_finding("manifest", f"{MANIFEST} is not as cbdp writes it", str(wrong))
        return OwnRelease(folder, cast("Manifest", stated), sha256, None, (finding,))
    check_installed_parts(manifest, MANIFEST)
    findings = [*_check_hashes(folder, manifest)]
    try:
        check_links(folder, manifest)
    except InputError as wrong:
        return OwnRelease(folder, manifest, sha256, None, (*findings, _unreadable_finding(wrong)))
    release, unread = _read(folder, manifest)
    findings += unread
    if release is not None:
        try:
            findings += [
                *_check_statements(manifest, release),
                *file_integrity.check_columns(folder, release),
                *_check_documents(folder, manifest, release),
                *find_impossible_values(release),
            ]
        except UNREADABLE_ERRORS as wrong:
            findings.append(_unreadable_finding(wrong))
            release = None
    return OwnRelease(folder, manifest, sha256, release, tuple(findings))


# Files and hashes


def _check_hashes(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    expected = manifest["files"]
    bad = 0
    for name, print_ in sorted(expected.items()):
        path = folder / name
        if not path.is_file() or path.is_symlink():
            what = "is missing"
        elif fingerprint(path) != dict(print_):
            what = "was changed after it was released: its SHA-256 is not the manifest's"
        else:
            continue
        bad += 1
        yield tampering_finding("files", f"{name} {what.partition(':')[0]}", f"The file {name} {what}.")
    parents = {p.as_posix() for name in expected for p in Path(name).parents}
    here = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_symlink() or not p.is_dir()}
    here |= {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_dir()} - parents
    for name in sorted(here - {*expected, MANIFEST}):
        bad += 1
        yield Finding(
            "files",
            "contradicts",
            f"{name} does not belong to the release",
            f"The file {name} is in the folder, and the manifest does not list it.",
            "It may have been published by mistake: an internal report, or a copy of the trips.",
            "Remove it, and find out who has seen it.",
        )
    if not bad:
        yield clear_finding(
            "files",
            "Every file has the hash that the manifest states",
            f"{len(expected)} files.",
            "One changed byte would have been found for certain, unless the manifest was changed with it: that only the ledger shows.",
        )


def _check_documents(folder: Path, manifest: Manifest, release: Release) -> Iterator[Finding]:
    """What stands beside the data: pages and descriptions as this very code writes them, and no file that no release has."""
    made_again = replace(release, stored=None)
    sections = layout(made_again).sections
    data = {sheet.path for sheet in layout(made_again).sheets}
    others = [name for name in manifest["files"] if name not in {*data, *DOCUMENT_NAMES}]
    for name in sorted(others):
        if "/" in name or name.endswith(".parquet"):
            text = f"The manifest lists {name}, which no release of these features has."
            yield tampering_finding("files", f"{name} does not belong to the release", text)
    if dict(manifest["software"]) != software():
        return  # other versions may say the same in other words
    from cbdp.report import build

    extra = [name for name in others if "/" not in name]
    expected = documents(made_again, sections, folder, extra)
    if REPORT in manifest["files"]:
        expected[REPORT] = build(made_again)
    wrong = [name for name, text in sorted(expected.items()) if not _has_text(folder / name, text)]
    for name in wrong:
        text = f"This version wrote {name}; from trips and tables it would write something else."
        yield tampering_finding("documents", f"{name} is not what follows from the data", text)
    if not wrong:
        yield clear_finding(
            "documents",
            "Report and descriptions say what the data say",
            f"{len(expected)} files were written again: {', '.join(sorted(expected))}.",
            "One changed letter, or a note that a browser does not show, would have been found for certain.",
        )


def _has_text(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


# Reading


def _read(folder: Path, manifest: Manifest) -> tuple[Release | None, list[Finding]]:
    """The release, as far as its files can be read, and what the manifest says wrongly about the trips."""
    findings: list[Finding] = []
    try:
        trips = read_parquet(folder / manifest["trips"]["file"])
        total = int(pc.sum(trips["count"]).as_py() or 0)
        counted = {"file": TRIPS_FILE, "types": trips.num_rows, "total": total}
        for key in ("types", "total"):
            if counted[key] != manifest["trips"][key]:
                text = f"{MANIFEST} says {manifest['trips'][key]:,} in trips/{key}; {TRIPS_FILE} holds {counted[key]:,}."
                findings.append(
                    tampering_finding(
                        "tables", f"{TRIPS_FILE} is not what the manifest says of trips/{key}", text
                    )
                )
        universe = read_universe(folder, manifest["universe"])
        findings += _misplaced_rows(universe, trips, TRIPS_FILE)
        for feature in manifest["features"]:
            if feature["rows"] == "listed":
                findings += _misplaced_rows(universe, read_parquet(folder / feature["file"]), feature["file"])
        return read_release(folder, cast("Manifest", {**manifest, "trips": counted})), findings
    except UNREADABLE_ERRORS as wrong:
        return None, findings or [_unreadable_finding(wrong)]


def _unreadable_finding(wrong: Exception) -> Finding:
    why = str(wrong) if isinstance(wrong, CbdpError) else f"{type(wrong).__name__}: {wrong}"
    return tampering_finding("tables", "The files do not fit the manifest", why)


def _misplaced_rows(universe: Universe, table: pa.Table, file: str) -> list[Finding]:
    """Rows outside the universe, twice there, or out of order: the first of them."""
    codes = [codes_of_column(column(d.values), table[name]) for name, d in universe.dimensions.items()]
    rank = np.where(np.min(codes, axis=0) < 0, -1, universe.rank_codes([np.maximum(c, 0) for c in codes]))
    outside = np.flatnonzero(rank < 0)
    after = np.flatnonzero(np.diff(rank) <= 0) + 1
    if len(outside):
        row, what = int(outside[0]), "is outside the universe"
    elif len(after):
        row = int(after[0])
        what = "is listed twice" if (rank[row] == rank[:row]).any() else "is out of the canonical order"
    else:
        return []
    text = f"Row {row + 1} of {file}, {row_words(table, row)}, {what}."
    finding = tampering_finding("tables", f"{file}: {row_words(table, row)} {what}", text)
    return [
        replace(finding, attack="Rows in the order of the records tell who came first; a row outside the universe comes from the data.")
    ]  # fmt: skip


# What the manifest states twice


def _check_statements(manifest: Manifest, release: Release) -> Iterator[Finding]:
    """The manifest made again from the files and from the tree of costs; fields that differ are named."""
    again = manifest_of(replace(release, violations=None, rounding_tolerance=None))
    if release.rounding_tolerance is None and again["rounding"] is not None:
        again["rounding"] = cast("RoundingJson", _rounding_of_version_02(release))
    differences: list[str] = []
    expected = dict(again)
    for key, stated in manifest.items():
        if key not in ("files", "ledger", "software", "trips"):
            differences += _differences(stated, expected.get(key), key)
    if differences:
        text = " ".join(f"{f}." for f in differences[:MAX_ITEMS_NAMED]) + and_more(len(differences))
        where = differences[0].partition(" ")[0]
        yield tampering_finding("manifest", f"{MANIFEST}: {where} is not what follows from the files", text)
    else:
        yield clear_finding(
            "manifest",
            "The manifest says what the files say",
            "Statement, sums of ε and δ, sizes, features, universe and rounding were worked out again from the files.",
            "A statement that does not follow from the files would have been found for certain.",
        )


def _rounding_of_version_02(release: Release) -> dict[str, object]:
    """What versions up to 0.2 say of the rounding: without its tolerance, which the rounding might lower and whoever else looked did not."""
    results = [exactness_of(release), exactness_of(release, TOLERANCES[0])]
    matching = [r for r in results if dict(r.violations) == dict(release.violations or {})]
    off = dict((matching or results)[0].violations)
    return {"exact": not off, "violations": off}


def _differences(stated: object, expected: object, path: str) -> list[str]:
    if isinstance(stated, Mapping) and isinstance(expected, Mapping):
        keys = [*stated, *(k for k in expected if k not in stated)]
        return [d for k in keys for d in _differences(stated.get(k), expected.get(k), f"{path}/{k}")]
    if isinstance(stated, list) and isinstance(expected, list) and len(stated) == len(expected):
        pairs = enumerate(zip(stated, expected, strict=True))
        return [d for n, (a, b) in pairs for d in _differences(a, b, f"{path}/{_entry_name(a, n)}")]
    return (
        []
        if stated == expected
        else [f"{path} says {_shortened(stated)}; from the rest follows {_shortened(expected)}"]
    )


def _entry_name(entry: object, position: int) -> str:
    """An entry of a list by its name, where it has one."""
    names = (entry.get(k) for k in ("name", "feature", "what")) if isinstance(entry, Mapping) else ()
    return next((n for n in names if isinstance(n, str)), str(position))


def _shortened(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


# Numbers that no release has: counts below zero, noise that is not whole, intervals without their own count, public counts missed


def find_impossible_values(release: Release) -> Iterator[Finding]:
    """One finding for each kind of impossible number; where there are intervals and all are sound, a clear one."""
    wrong = [
        *_impossible_trips(release),
        *_impossible_measurements(release),
        *_impossible_counts(release),
        *_impossible_intervals(release),
    ]
    yield from wrong
    yield from _missed_public_counts(release)
    if not wrong and release.intervals:
        yield clear_finding(
            "intervals",
            "Every interval contains its published count",
            f"{sum(len(i.low) for i in release.intervals.values()):,} intervals of {', '.join(release.intervals)}.",
            "An interval without its own count would have been found for certain; whether intervals are as wide as they should be was not "
            "looked at.",
        )


def _impossible_trips(release: Release) -> Iterator[Finding]:
    for row in np.flatnonzero(release.value < 1)[:1].tolist():
        words = " · ".join(map(str, release.features.universe.unrank(int(release.index[row]))))
        text = f"{TRIPS_FILE} lists {words} with {release.value[row]} trips; only types with at least one are listed."
        yield tampering_finding("tables", f"{TRIPS_FILE}: the count of {words} is {release.value[row]}", text)


def _impossible_measurements(release: Release) -> Iterator[Finding]:
    for m in release.measurements:
        for row in np.flatnonzero(m.values != np.rint(m.values))[:1].tolist():
            text = f"Number {row} of the noisy answers of {m.feature} is {m.values[row]}."
            finding = tampering_finding(
                "tables", f"{m.feature}: noisy count number {row} is not a whole number", text
            )
            attack = "The last bits of noise from a floating-point generator can reveal the exact count beneath it."
            yield replace(finding, attack=attack, cure="Draw whole noise, as cbdp does.")


def _impossible_counts(release: Release) -> Iterator[Finding]:
    for name, table in release.tables.items():
        for row in np.flatnonzero(table < 0)[:1].tolist():
            text = f"Number {row} of {name} is {table[row]}."
            yield tampering_finding("tables", f"{name}: count number {row} is negative", text)


def _missed_public_counts(release: Release) -> Iterator[Finding]:
    """Counts that were public are met exactly, but where the manifest says that rounding could not."""
    for name, public in release.recipe.public.items():
        off = np.flatnonzero(release.counts(name) != np.asarray(public))
        if len(off) and not (release.violations or {}).get(name):
            row = int(off[0])
            text = f"Number {row} of {name} is {release.counts(name)[row]}; the recipe states the public count {public[row]}."
            yield tampering_finding(
                "public counts", f"{name}: count number {row} is not the public one", text
            )
        elif not len(off):
            evidence = f"{sum(public):,} trips in {len(public):,} counts. Nothing was spent on them, and ε does not speak of them."
            yield clear_finding(
                "public counts",
                f"The public counts of {name} are met exactly",
                evidence,
                "A difference of one trip would have been found for certain.",
            )


def _impossible_intervals(release: Release) -> Iterator[Finding]:
    for name, interval in release.intervals.items():
        counts = release.counts(name)
        bad = np.flatnonzero((interval.low < 0) | (interval.low > counts) | (interval.high < counts))
        if len(bad):
            row = int(bad[0])
            keys = release.features.partition(name).keys()
            words = " · ".join(str(v[row]) for v in keys.values()) or "the whole"
            text = (
                f"{name}, {words}: the interval {interval.low[row]} to {interval.high[row]} does not contain the published "
                f"count {counts[row]}.{and_more(len(bad) + MAX_ITEMS_NAMED - 1)}"
            )
            yield tampering_finding("intervals", f"{name}: the interval of {words} is impossible", text)
