"""A folder of ours, read as a sceptic does: every file against its hash, every number against those it follows from.

A release states the same facts several times: trips, tables that add them up, estimates, noisy answers, a manifest. From
the least that determines the rest (universe, trips, noisy answers, estimates of trip types, the tree of costs) all other
columns and most of the manifest are made again and compared. So whoever changes a number and corrects the hashes must
change everything that follows from it, and then still meets the ledger, which holds the manifest's hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cbdp.audit.finding import Finding
from cbdp.errors import CbdpError, InputError
from cbdp.features import SINGLETON, Universe
from cbdp.release import files as stored
from cbdp.release import manifest as said
from cbdp.release.saving import MANIFEST
from cbdp.release.layout import NUMBERS, TRIPS
from cbdp.release.labels import codes_in, column
from cbdp.release.release import Release
from cbdp.release.universe_files import read_table, read_types, read_universe

SHOWN = 3  # rows or fields that a finding names; it counts the others
NEAR = 1e-9  # relative: sums of estimates in another order
UNFIT = (CbdpError, pa.ArrowException, LookupError, TypeError, ValueError, ArithmeticError, StopIteration)
CHANGED = "Whoever changed it makes readers believe a number that was never released, or hides one that was."
RESTORE = "Restore the folder from a copy whose manifest has the SHA-256 that the ledger notes."


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
    manifest = stored._read_manifest(place)
    sha256 = hashlib.sha256((place / MANIFEST).read_bytes()).hexdigest()
    try:
        said.check(manifest, MANIFEST)
    except InputError as wrong:
        found = _contradiction("manifest", f"{MANIFEST} is not a manifest that was written", str(wrong))
        return Ours(place, manifest, sha256, None, (found,))
    findings = [*_hashes(place, manifest)]
    release, unread = _read(place, manifest)
    findings += unread
    if release is not None:
        try:
            findings += [*_statements(manifest, release), *_tables(place, release), *_numbers(release)]
        except UNFIT as wrong:
            findings.append(_unfit(wrong))
            release = None
    return Ours(place, manifest, sha256, release, tuple(findings))


def _contradiction(check: str, title: str, evidence: str, **figures: float | str) -> Finding:
    return Finding(check, "contradicts", title, evidence, CHANGED, RESTORE, figures)


def _more(many: int) -> str:
    return f" And {many - SHOWN:,} more." if many > SHOWN else ""


# Files and hashes


def _hashes(place: Path, manifest: Mapping[str, Any]) -> Iterator[Finding]:
    expected = manifest["files"]
    bad = 0
    for name, print_ in sorted(expected.items()):
        path = place / name
        if not path.is_file() or path.is_symlink():
            what = "is missing"
        elif stored._fingerprint(path) != dict(print_):
            what = "was changed after it was released: its SHA-256 is not the manifest's"
        else:
            continue
        bad += 1
        yield _contradiction("files", f"{name} {what.partition(':')[0]}", f"The file {name} {what}.")
    here = {p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_symlink() or not p.is_dir()}
    for name in sorted(here - {*expected, MANIFEST}):
        bad += 1
        yield Finding(
            "files",
            "contradicts",
            f"{name} does not belong to the release",
            f"The file {name} lies in the folder, and the manifest does not know it.",
            "What is published by mistake is published: an internal report, a copy of the trips.",
            "Remove it, and find out who has seen it.",
        )
    if not bad:
        yield Finding(
            "files", "clear", "Every file has the hash that the manifest states", f"{len(expected)} files."
        )


# Reading


def _read(place: Path, manifest: Mapping[str, Any]) -> tuple[Release | None, list[Finding]]:
    """The release, as far as its files let themselves be read; what the manifest says of the trips is found out."""
    findings: list[Finding] = []
    try:
        trips = read_table(place / manifest["trips"]["file"])
        total = int(pc.sum(trips["count"]).as_py() or 0)
        counted = {"file": TRIPS, "types": trips.num_rows, "total": total}
        for key in ("types", "total"):
            if counted[key] != manifest["trips"][key]:
                text = f"{MANIFEST} says {manifest['trips'][key]:,} in trips/{key}; {TRIPS} holds {counted[key]:,}."
                findings.append(
                    _contradiction("tables", f"{TRIPS} is not what the manifest says of trips/{key}", text)
                )
        universe = read_universe(place, manifest["universe"])
        findings += _out_of_place(universe, trips, TRIPS)
        for feature in manifest["features"]:
            if feature["rows"] == "listed":
                findings += _out_of_place(universe, read_table(place / feature["file"]), feature["file"])
        return stored._release(place, {**manifest, "trips": counted}), findings
    except UNFIT as wrong:
        return None, findings or [_unfit(wrong)]


def _unfit(wrong: Exception) -> Finding:
    why = str(wrong) if isinstance(wrong, CbdpError) else f"{type(wrong).__name__}: {wrong}"
    return _contradiction("tables", "The files do not fit the manifest", why)


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
    text = f"Row {row + 1} of {file}, {label(table, row)}, {what}."
    found = _contradiction("tables", f"{file}: {label(table, row)} {what}", text)
    return [
        replace(found, attack="An order that follows the records tells who came first; a row outside tells what cannot be.")
    ]  # fmt: skip


def label(table: pa.Table, row: int) -> str:
    """A row by its keys."""
    keys = [n for n in table.column_names if n not in NUMBERS]
    return " · ".join(str(table[n][row].as_py()) for n in keys) or "the whole"


# What the manifest states twice


def _statements(manifest: Mapping[str, Any], release: Release) -> Iterator[Finding]:
    """The manifest made again from the files and from the tree of costs; fields that differ are named."""
    again = stored.manifest_of(replace(release, rounding=None))
    found: list[str] = []
    for key in manifest:
        if key not in ("files", "ledger", "software", "trips"):
            found += _differences(manifest[key], again.get(key), key)
    if found:
        text = " ".join(f"{f}." for f in found[:SHOWN]) + _more(len(found))
        where = found[0].partition(" ")[0]
        yield _contradiction("manifest", f"{MANIFEST}: {where} is not what follows from the files", text)
    else:
        yield Finding(
            "manifest",
            "clear",
            "The manifest says what the files say",
            "Statement, sums of ε and δ, sizes, features, universe and rounding were made again from the files.",
        )


def _differences(stated: Any, made: Any, path: str) -> list[str]:
    if isinstance(stated, Mapping) and isinstance(made, Mapping):
        keys = [*stated, *(k for k in made if k not in stated)]
        return [d for k in keys for d in _differences(stated.get(k), made.get(k), f"{path}/{k}")]
    if isinstance(stated, list) and isinstance(made, list) and len(stated) == len(made):
        pairs = enumerate(zip(stated, made, strict=True))
        return [d for n, (a, b) in pairs for d in _differences(a, b, f"{path}/{_named(a, n)}")]
    return [] if stated == made else [f"{path} says {_short(stated)}, the rest makes it {_short(made)}"]


def _named(entry: Any, place: int) -> str:
    """An entry of a list by its name, where it has one."""
    names = (entry.get(k) for k in ("name", "feature", "what")) if isinstance(entry, Mapping) else ()
    return next((n for n in names if isinstance(n, str)), str(place))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


# Tables, made again


@dataclass(frozen=True, eq=False)
class _Off:
    """A column of a file that is not what it follows to be, with the rows where it is off."""

    file: str
    column: str
    table: pa.Table
    expected: pa.ChunkedArray
    rows: NDArray[Any]

    def finding(self) -> Finding:
        seen = [
            f"{label(self.table, r)}: {self.column} is {_cell(self.table[self.column], r)}, from the rest follows "
            f"{_cell(self.expected, r)}."
            for r in self.rows[:SHOWN].tolist()
        ]
        every = 1 < len(self.rows) == self.table.num_rows
        first = "every row" if every else label(self.table, int(self.rows[0]))
        title = f"{self.file}: {self.column} of {first} is not what follows from the rest"
        return _contradiction("tables", title, " ".join(seen) + _more(len(self.rows)), rows=len(self.rows))


def _cell(held: pa.ChunkedArray, row: int) -> str:
    value = held[row].as_py()
    return "nothing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _tables(place: Path, release: Release) -> Iterator[Finding]:
    found: list[_Off] = []
    findings: list[Finding] = []
    sheets = stored._layout(release).sheets
    for sheet in sheets:
        try:
            table = read_table(place / sheet.path)
        except InputError as wrong:
            findings.append(_contradiction("tables", f"{sheet.path} cannot be read", str(wrong)))
            continue
        made = pa.concat_tables([_plain(t) for t in sheet.tables()])
        findings += _shape(sheet.path, table, made)
        if table.num_rows == made.num_rows:
            found += _off(sheet.path, _plain(table), made)
    found, blamed = _blame(place, release, found)
    findings += [*blamed, *(off.finding() for off in found)]
    yield from findings or [
        Finding(
            "tables",
            "clear",
            "Trips, tables and estimates add up",
            f"All columns of {len(sheets)} files were made again from trips, noisy answers and estimates of trip types.",
        )
    ]


def _plain(table: pa.Table) -> pa.Table:
    """Labels as themselves, not as codes."""
    columns = [
        c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.itercolumns()
    ]
    return pa.table(columns, names=table.column_names)


def _shape(file: str, table: pa.Table, made: pa.Table) -> list[Finding]:
    missing = [c for c in made.column_names if c not in table.column_names]
    further = [c for c in table.column_names if c not in made.column_names]
    findings = [_contradiction("tables", f"{file} has no column {c}", f"{file} lacks {c}.") for c in missing]
    findings += [
        _contradiction("tables", f"{file} has a column {c}, which no release has", f"{file} shows {c}.")
        for c in further
    ]
    if table.num_rows != made.num_rows:
        keys = [c for c in made.column_names if c not in NUMBERS and c in table.column_names]
        here, wanted = (set(zip(*(t[c].to_pylist() for c in keys), strict=True)) for t in (table, made))
        named = [" · ".join(map(str, k)) for k in [*(here - wanted), *(wanted - here)]][:1]
        text = f"{file} has {table.num_rows:,} rows, from the rest follow {made.num_rows:,}; the first that differs: {named}."
        findings.append(_contradiction("tables", f"{file} has other rows than follow from the rest", text))
    return findings


def _off(file: str, table: pa.Table, made: pa.Table) -> Iterator[_Off]:
    for name in made.column_names:
        if name in table.column_names:
            rows = np.flatnonzero(_differ(table[name], made[name]))
            if len(rows):
                yield _Off(file, name, table, made[name], rows)


def _differ(found: pa.ChunkedArray, made: pa.ChunkedArray) -> NDArray[np.bool_]:
    gaps = [np.asarray(c.is_null().to_numpy(), dtype=bool) for c in (found, made)]
    odd = gaps[0] != gaps[1]
    if pa.types.is_floating(made.type) or pa.types.is_floating(found.type):
        a, b = (np.asarray(c.cast(pa.float64()).fill_null(0.0).to_numpy()) for c in (found, made))
        return np.asarray(odd | ~np.isclose(a, b, rtol=NEAR, atol=NEAR))
    if found.type != made.type:
        try:
            found = found.cast(made.type)
        except pa.ArrowException:
            return np.ones(len(made), dtype=bool)
    unlike = pc.not_equal(found, made).fill_null(False)
    return np.asarray(odd | np.asarray(unlike.to_numpy(), dtype=bool))


def _blame(place: Path, release: Release, found: Sequence[_Off]) -> tuple[list[_Off], list[Finding]]:
    """Where all tables agree with each other and not with the trips, it is the trips that were changed."""
    given = {f["name"]: f for f in stored.manifest_of(release)["features"] if f["published"] == "trips"}
    single = given.get(SINGLETON)
    off = next((o for o in found if single and o.file == single["file"] and o.column == "count"), None)
    if off is None or single is None:
        return list(found), []
    held = np.asarray(off.table["count"].to_numpy())
    index = np.arange(len(held), dtype=np.int64)
    if single["rows"] == "listed":
        index = read_types(release.features.universe, off.table, off.file)
    some = np.flatnonzero(held)
    other = replace(release, index=index[some], value=held[some].astype(np.int64))
    for name, feature in given.items():
        if name != SINGLETON:
            stated = np.asarray(read_table(place / feature["file"])["count"].to_numpy())
            if not np.array_equal(stated, other.counts(name)):
                return list(found), []
    seen = [
        f"{label(off.table, r)}: {TRIPS} says {_cell(off.expected, r)}, all other tables {_cell(off.table['count'], r)}."
        for r in off.rows[:SHOWN].tolist()
    ]
    first = label(off.table, int(off.rows[0]))
    title = f"{TRIPS}: the count of {first} is not what all other tables say"
    blamed = _contradiction("tables", title, " ".join(seen) + _more(len(off.rows)), rows=len(off.rows))
    files = {feature["file"] for feature in given.values()}
    return [o for o in found if not (o.file in files and o.column == "count")], [blamed]


# Numbers that no release has


def _numbers(release: Release) -> Iterator[Finding]:
    """Negative counts, noise that is no whole number, intervals that do not hold their count."""
    wrong: list[Finding] = []
    universe = release.features.universe
    for row in np.flatnonzero(release.value < 1)[:1].tolist():
        words = " · ".join(map(str, universe.unrank(int(release.index[row]))))
        text = f"{TRIPS} lists {words} with {release.value[row]} trips; listed are types with at least one."
        wrong.append(_contradiction("tables", f"{TRIPS}: the count of {words} is {release.value[row]}", text))
    for m in release.measurements:
        if m.values.dtype.kind == "f" and (m.values != np.rint(m.values)).any():
            row = int(np.flatnonzero(m.values != np.rint(m.values))[0])
            text = f"Number {row} of the noisy answers of {m.feature} is {m.values[row]}."
            found = _contradiction(
                "tables", f"{m.feature}: a noisy count that is no whole number, number {row}", text
            )
            attack = "The last bits of noise from a floating-point generator can reveal the exact count beneath it."
            wrong.append(replace(found, attack=attack, cure="Draw integer noise, as cbdp does."))
    for name in release.tables:
        row = int(np.argmin(release.tables[name])) if len(release.tables[name]) else 0
        if len(release.tables[name]) and release.tables[name][row] < 0:
            text = f"Number {row} of {name} is {release.tables[name][row]}."
            wrong.append(_contradiction("tables", f"{name}: a negative count, number {row}", text))
    wrong += _intervals(release)
    yield from wrong
    if not wrong and release.intervals:
        yield Finding(
            "intervals",
            "clear",
            "Every interval holds its published count",
            f"{sum(len(i.low) for i in release.intervals.values()):,} intervals of {', '.join(release.intervals)}.",
        )


def _intervals(release: Release) -> Iterator[Finding]:
    for name, interval in release.intervals.items():
        counts = release.counts(name)
        bad = np.flatnonzero((interval.low < 0) | (interval.low > counts) | (interval.high < counts))
        if len(bad):
            row = int(bad[0])
            keys = release.features.partition(name).keys()
            words = " · ".join(str(v[row]) for v in keys.values()) or "the whole"
            text = (
                f"{name}, {words}: the interval {interval.low[row]} to {interval.high[row]} does not hold the published "
                f"count {counts[row]}.{_more(len(bad) + SHOWN - 1)}"
            )
            yield _contradiction("intervals", f"{name}: the interval of {words} is impossible", text)
