"""The tables of a folder, made again column by column from the least that determines them, and compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cbdp.audit import parquet
from cbdp.audit.finding import Finding
from cbdp.audit.tampering import SHOWN, and_more, row_words, tampered
from cbdp.errors import InputError
from cbdp.features import SINGLETON
from cbdp.release.layout import NUMBERS, TRIPS, layout, manifest_of
from cbdp.release.release import Release
from cbdp.release.universe_files import read_table, read_types

NEAR = 1e-9  # relative: sums of estimates in another order


@dataclass(frozen=True, eq=False)
class _Off:
    """A column of a file that is not what follows from the rest, with the rows where it is off."""

    file: str
    column: str
    table: pa.Table
    expected: pa.ChunkedArray
    rows: NDArray[Any]

    def finding(self) -> Finding:
        seen = [
            f"{row_words(self.table, r)}: {self.column} is {_cell(self.table[self.column], r)}; from the rest follows "
            f"{_cell(self.expected, r)}."
            for r in self.rows[:SHOWN].tolist()
        ]
        every = 1 < len(self.rows) == self.table.num_rows
        first = "every row" if every else row_words(self.table, int(self.rows[0]))
        title = f"{self.file}: {self.column} of {first} is not what follows from the rest"
        return tampered("tables", title, " ".join(seen) + and_more(len(self.rows)), rows=len(self.rows))


def _cell(held: pa.ChunkedArray, row: int) -> str:
    value = held[row].as_py()
    return "nothing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def attack(place: Path, release: Release) -> Iterator[Finding]:
    """Every column of every table against what follows for it from trips, noisy answers and estimates."""
    found: list[_Off] = []
    findings: list[Finding] = []
    partly = 0  # files that another version of pyarrow wrote
    sheets = layout(release).sheets
    for sheet in sheets:
        try:
            table = read_table(place / sheet.path)
        except InputError as wrong:
            findings.append(tampered("tables", f"{sheet.path} cannot be read", str(wrong)))
            continue
        made = pa.concat_tables([_plain(t) for t in sheet.tables()])
        misshapen = _shape(sheet.path, table, made)
        findings += misshapen
        if table.num_rows == made.num_rows:
            off = list(_off(sheet.path, _plain(table), made))
            found += off
            if not misshapen and not off:
                written = parquet.compare(place / sheet.path, sheet, table)
                partly += written.partly
                if written.difference is not None:
                    findings.append(_beside(sheet.path, written.difference))
    found, blamed = _blame(place, release, found)
    findings += [*blamed, *(off.finding() for off in found)]
    yield from findings or [
        Finding(
            "tables",
            "clear",
            "Trips, tables and estimates add up",
            f"All columns of {len(sheets)} files were worked out again from trips, noisy answers and estimates of trip types.",
            power="One changed number would have been found for certain, if it is not one of those that the others follow from. "
            + (
                f"{partly} files were written by another version of pyarrow: their metadata and statistics were compared, not every byte."
                if partly
                else "So would anything that a file holds beside its values."
            ),
        )
    ]


def _beside(file: str, difference: str) -> Finding:
    """The finding that a file holds something that no value of it is."""
    found = tampered("tables", f"{file} holds more or other than its values", f"{file}: {difference}.")
    attack = "What stands beside the values (metadata, statistics, bytes that no reader shows) may tell of the trips, and of who looked at them."
    return replace(found, attack=attack)


def _plain(table: pa.Table) -> pa.Table:
    """Labels as themselves, not as codes."""
    columns = [
        c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.itercolumns()
    ]
    return pa.table(columns, names=table.column_names)


def _shape(file: str, table: pa.Table, made: pa.Table) -> list[Finding]:
    missing = [c for c in made.column_names if c not in table.column_names]
    further = [c for c in table.column_names if c not in made.column_names]
    findings = [
        tampered("tables", f"{file} has no column {c}", f"The column {c} is missing.") for c in missing
    ]
    findings += [
        tampered(
            "tables",
            f"{file} has a column {c}, which no release has",
            f"The column {c} does not belong there.",
        )
        for c in further
    ]
    if table.num_rows != made.num_rows:
        keys = [c for c in made.column_names if c not in NUMBERS and c in table.column_names]
        here, wanted = (set(zip(*(t[c].to_pylist() for c in keys), strict=True)) for t in (table, made))
        named = [" · ".join(map(str, k)) for k in [*(here - wanted), *(wanted - here)]][:1]
        text = f"{file} has {table.num_rows:,} rows; from the rest follow {made.num_rows:,}. The first that differs: {named}."
        findings.append(tampered("tables", f"{file} has other rows than follow from the rest", text))
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
    given = {f["name"]: f for f in manifest_of(release)["features"] if f["published"] == "trips"}
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
        f"{row_words(off.table, r)}: {TRIPS} says {_cell(off.expected, r)}, all other tables say {_cell(off.table['count'], r)}."
        for r in off.rows[:SHOWN].tolist()
    ]
    first = row_words(off.table, int(off.rows[0]))
    title = f"{TRIPS}: the count of {first} is not what all other tables say"
    blamed = tampered("tables", title, " ".join(seen) + and_more(len(off.rows)), rows=len(off.rows))
    files = {feature["file"] for feature in given.values()}
    return [o for o in found if not (o.file in files and o.column == "count")], [blamed]
