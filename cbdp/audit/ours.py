"""A folder of ours, read as a sceptic does: every file against its hash, every number against those it follows from.

A release states the same facts several times: trips, tables that add them up, estimates, noisy answers, a manifest. From
the least that determines the rest (universe, trips, noisy answers, estimates of trip types, the tree of costs) all other
columns and most of the manifest are made again and compared. So whoever changes a number and corrects the hashes must
change everything that follows from it, and then still meets the ledger, which holds the manifest's hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cbdp.audit import impossible, sheets
from cbdp.audit.finding import Finding
from cbdp.audit.tampering import SHOWN, and_more, row_words, tampered
from cbdp.errors import CbdpError, InputError
from cbdp.features import Universe
from cbdp.release.documents import NAMES, documents
from cbdp.release.labels import codes_in, column
from cbdp.release.layout import TRIPS, layout, manifest_of
from cbdp.release.loading import check_links, read_release, stated_manifest
from cbdp.release.manifest import exactness_of, software
from cbdp.release.recipe import check_parts
from cbdp.release.release import Release
from cbdp.release.saving import MANIFEST, fingerprint
from cbdp.release.schema import check, with_noise_names
from cbdp.release.universe_files import read_table, read_universe
from cbdp.rounding.bounds import TOLERANCES

REPORT = "report.html"
UNFIT = (CbdpError, pa.ArrowException, LookupError, TypeError, ValueError, ArithmeticError, StopIteration)


@dataclass(frozen=True, eq=False)
class Ours:
    """A release as it lies in its folder; `release` is None where its files cannot be read together."""

    path: Path
    manifest: Mapping[str, Any] = field(repr=False)
    sha256: str
    release: Release | None
    findings: tuple[Finding, ...] = field(repr=False)


def opened(path: str | Path) -> Ours:
    """Read a folder of ours, and find what in it does not fit together. No manifest, or none of ours: `InputError`."""
    place = Path(path)
    manifest = stated_manifest(place)
    sha256 = hashlib.sha256((place / MANIFEST).read_bytes()).hexdigest()
    try:
        check(manifest, MANIFEST)
        manifest = with_noise_names(manifest, MANIFEST)
    except InputError as wrong:
        found = tampered("manifest", f"{MANIFEST} is not as cbdp writes it", str(wrong))
        return Ours(place, manifest, sha256, None, (found,))
    check_parts(manifest, MANIFEST)
    findings = [*_hashes(place, manifest)]
    try:
        check_links(place, manifest)
    except InputError as wrong:
        return Ours(place, manifest, sha256, None, (*findings, _unfit(wrong)))
    release, unread = _read(place, manifest)
    findings += unread
    if release is not None:
        try:
            findings += [
                *_statements(manifest, release),
                *sheets.attack(place, release),
                *_documents(place, manifest, release),
                *impossible.attack(release),
            ]
        except UNFIT as wrong:
            findings.append(_unfit(wrong))
            release = None
    return Ours(place, manifest, sha256, release, tuple(findings))


# Files and hashes


def _hashes(place: Path, manifest: Mapping[str, Any]) -> Iterator[Finding]:
    expected = manifest["files"]
    bad = 0
    for name, print_ in sorted(expected.items()):
        path = place / name
        if not path.is_file() or path.is_symlink():
            what = "is missing"
        elif fingerprint(path) != dict(print_):
            what = "was changed after it was released: its SHA-256 is not the manifest's"
        else:
            continue
        bad += 1
        yield tampered("files", f"{name} {what.partition(':')[0]}", f"The file {name} {what}.")
    parents = {p.as_posix() for name in expected for p in Path(name).parents}
    here = {p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_symlink() or not p.is_dir()}
    here |= {p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_dir()} - parents
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
        yield Finding(
            "files",
            "clear",
            "Every file has the hash that the manifest states",
            f"{len(expected)} files.",
            power="One changed byte would have been found for certain, unless the manifest was changed with it: that only the ledger shows.",
        )


def _documents(place: Path, manifest: Mapping[str, Any], release: Release) -> Iterator[Finding]:
    """What stands beside the data: pages and descriptions as this very code writes them, and no file that no release has."""
    made_again = replace(release, stored=None)
    sections = layout(made_again).sections
    data = {sheet.path for sheet in layout(made_again).sheets}
    others = [name for name in manifest["files"] if name not in {*data, *NAMES}]
    for name in sorted(others):
        if "/" in name or name.endswith(".parquet"):
            text = f"The manifest lists {name}, which no release of these features has."
            yield tampered("files", f"{name} does not belong to the release", text)
    if dict(manifest["software"]) != software():
        return  # other versions may say the same in other words
    from cbdp.report import build

    extra = [name for name in others if "/" not in name]
    expected = documents(made_again, sections, place, extra)
    if REPORT in manifest["files"]:
        expected[REPORT] = build(made_again)
    wrong = [name for name, text in sorted(expected.items()) if not _reads(place / name, text)]
    for name in wrong:
        text = f"This version wrote {name}; from trips and tables it would write something else."
        yield tampered("documents", f"{name} is not what follows from the data", text)
    if not wrong:
        yield Finding(
            "documents",
            "clear",
            "Report and descriptions say what the data say",
            f"{len(expected)} files were written again: {', '.join(sorted(expected))}.",
            power="One changed letter, or a note that a browser does not show, would have been found for certain.",
        )


def _reads(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


# Reading


def _read(place: Path, manifest: Mapping[str, Any]) -> tuple[Release | None, list[Finding]]:
    """The release, as far as its files can be read, and what the manifest says wrongly about the trips."""
    findings: list[Finding] = []
    try:
        trips = read_table(place / manifest["trips"]["file"])
        total = int(pc.sum(trips["count"]).as_py() or 0)
        counted = {"file": TRIPS, "types": trips.num_rows, "total": total}
        for key in ("types", "total"):
            if counted[key] != manifest["trips"][key]:
                text = f"{MANIFEST} says {manifest['trips'][key]:,} in trips/{key}; {TRIPS} holds {counted[key]:,}."
                findings.append(
                    tampered("tables", f"{TRIPS} is not what the manifest says of trips/{key}", text)
                )
        universe = read_universe(place, manifest["universe"])
        findings += _out_of_place(universe, trips, TRIPS)
        for feature in manifest["features"]:
            if feature["rows"] == "listed":
                findings += _out_of_place(universe, read_table(place / feature["file"]), feature["file"])
        return read_release(place, {**manifest, "trips": counted}), findings
    except UNFIT as wrong:
        return None, findings or [_unfit(wrong)]


def _unfit(wrong: Exception) -> Finding:
    why = str(wrong) if isinstance(wrong, CbdpError) else f"{type(wrong).__name__}: {wrong}"
    return tampered("tables", "The files do not fit the manifest", why)


def _out_of_place(universe: Universe, table: pa.Table, file: str) -> list[Finding]:
    """Rows outside the universe, twice there, or out of order: the first of them."""
    codes = [codes_in(column(d.values), table[name]) for name, d in universe.dimensions.items()]
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
    found = tampered("tables", f"{file}: {row_words(table, row)} {what}", text)
    return [
        replace(found, attack="Rows in the order of the records tell who came first; a row outside the universe comes from the data.")
    ]  # fmt: skip


# What the manifest states twice


def _statements(manifest: Mapping[str, Any], release: Release) -> Iterator[Finding]:
    """The manifest made again from the files and from the tree of costs; fields that differ are named."""
    again = manifest_of(replace(release, violations=None, rounding_tolerance=None))
    if release.rounding_tolerance is None and again["rounding"] is not None:
        again["rounding"] = _rounding_before(release)
    found: list[str] = []
    for key in manifest:
        if key not in ("files", "ledger", "software", "trips"):
            found += _differences(manifest[key], again.get(key), key)
    if found:
        text = " ".join(f"{f}." for f in found[:SHOWN]) + and_more(len(found))
        where = found[0].partition(" ")[0]
        yield tampered("manifest", f"{MANIFEST}: {where} is not what follows from the files", text)
    else:
        yield Finding(
            "manifest",
            "clear",
            "The manifest says what the files say",
            "Statement, sums of ε and δ, sizes, features, universe and rounding were worked out again from the files.",
            power="A statement that does not follow from the files would have been found for certain.",
        )


def _rounding_before(release: Release) -> dict[str, Any]:
    """What versions up to 0.2 say of the rounding: without its tolerance, which the rounding might lower and whoever else looked did not."""
    results = [exactness_of(release), exactness_of(release, TOLERANCES[0])]
    matching = [r for r in results if dict(r.violations) == dict(release.violations or {})]
    off = dict((matching or results)[0].violations)
    return {"exact": not off, "violations": off}


def _differences(stated: Any, made: Any, path: str) -> list[str]:
    if isinstance(stated, Mapping) and isinstance(made, Mapping):
        keys = [*stated, *(k for k in made if k not in stated)]
        return [d for k in keys for d in _differences(stated.get(k), made.get(k), f"{path}/{k}")]
    if isinstance(stated, list) and isinstance(made, list) and len(stated) == len(made):
        pairs = enumerate(zip(stated, made, strict=True))
        return [d for n, (a, b) in pairs for d in _differences(a, b, f"{path}/{_named(a, n)}")]
    return [] if stated == made else [f"{path} says {_short(stated)}; from the rest follows {_short(made)}"]


def _named(entry: Any, place: int) -> str:
    """An entry of a list by its name, where it has one."""
    names = (entry.get(k) for k in ("name", "feature", "what")) if isinstance(entry, Mapping) else ()
    return next((n for n in names if isinstance(n, str)), str(place))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
