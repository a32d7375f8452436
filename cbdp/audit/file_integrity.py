"""The tables of a release's folder: every column follows from the rest, and no file holds anything beside its values.

All columns are worked out again from the least that determines them (`check_columns`). A Parquet file may still hold more than a reader
shows (`compare_parquet`): it is written again from its values, with the pieces and types that a release has. Where the bytes differ, both
files are taken apart as the format defines them (https://parquet.apache.org/docs/file-format/): footer, page headers and pages, every byte
of the file accounted for. Two builds of one version of pyarrow may compress a page differently, so pages are compared unpacked. Another
version may also choose other encodings and further statistics: then what it has in common with ours is compared.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.audit.findings import (
    MAX_ITEMS_NAMED,
    Finding,
    and_more,
    clear_finding,
    row_words,
    tampering_finding,
)
from cbdp.errors import InputError
from cbdp.features import SINGLETON
from cbdp.release.files import write_parquet
from cbdp.release.layout import (
    NUMBER_COLUMNS,
    TRIPS_FILE,
    FileTables,
    layout,
    manifest_of,
    read_types,
)
from cbdp.release.release import Release
from cbdp.untrusted import read_parquet

MAGIC = b"PAR1"
ZSTD, ZSTD_FRAME = 6, 0xFD2FB528
CREATOR = re.compile(r"parquet-cpp-arrow version [0-9]+\.[0-9]+\.[0-9]+")
# structures inside each other; footers have seven, and a hostile file must not exhaust the stack
MAX_DEPTH = 12

# Field numbers of the format's structures: https://github.com/apache/parquet-format, parquet.thrift
FILE_FIELDS = {
    1: "version",
    2: "schema",
    3: "rows",
    4: "row groups",
    5: "key-value metadata",
    6: "writer",
    7: "column orders",
}
ROW_GROUP_FIELDS = {
    1: "columns",
    2: "size",
    3: "rows",
    4: "sorting columns",
    5: "offset",
    6: "compressed size",
    7: "ordinal",
}
CHUNK_FIELDS = {2: "offset", 3: "metadata"}
COLUMN_FIELDS = {
    1: "type", 2: "encodings", 3: "path", 4: "codec", 5: "values", 6: "size", 7: "compressed size", 8: "key-value metadata",
    9: "data page offset", 11: "dictionary page offset", 12: "statistics", 13: "encoding counts", 16: "size statistics",
}  # fmt: skip
PAGE_FIELDS = {
    1: "type",
    2: "size",
    3: "compressed size",
    5: "data page",
    7: "dictionary page",
    8: "data page, version 2",
}
STATISTICS_FIELDS = {1: "max", 2: "min", 3: "nulls", 4: "distinct values", 5: "max value", 6: "min value", 7: "max is exact", 8: "min is exact"}  # fmt: skip
VERSION_DEPENDENT_FIELDS = {
    "column orders",
    "encodings",
    "size",
    "encoding counts",
    "size statistics",
    "version",
}

ThriftStruct = dict[int, Any]


class UnaccountedError(Exception):
    """Bytes of a file that belong to no part of it, or are not written as the format writes them."""


@dataclass(frozen=True)
class FileComparison:
    """How a file differs from the one that our writer makes of its values; `partly`: another version wrote it, and not all was compared."""

    difference: str | None = None
    partly: bool = False


def compare_parquet(path: Path, sheet: FileTables, table: pa.Table) -> FileComparison:
    """A file against the one that is written from its values. `table` is the file as it was read, with the values of its sheet."""
    content = path.read_bytes()
    expected = io.BytesIO()
    write_parquet(expected, _expected_pieces(sheet, table))
    if content == expected.getbuffer():
        return FileComparison()
    try:
        theirs = _FileAnatomy.of(content)
    except (UnaccountedError, IndexError, struct.error, pa.ArrowException, UnicodeDecodeError) as wrong:
        return FileComparison(str(wrong) or "it is not a Parquet file as the format defines it")
    ours = _FileAnatomy.of(expected.getvalue())
    if theirs.writer == ours.writer:
        return FileComparison(next(_anatomy_differences(ours, theirs), None))
    if not CREATOR.fullmatch(theirs.writer):
        return FileComparison(f"it says that {theirs.writer[:80]!r} wrote it")
    return FileComparison(next(_version_independent_differences(ours, theirs), None), partly=True)


def _expected_pieces(sheet: FileTables, table: pa.Table) -> Iterator[pa.Table]:
    """The tables of a sheet. Real numbers are the file's own: they may be sums in another order, and were compared as numbers."""
    start = 0
    for expected in sheet.tables():
        piece = expected
        for at, column in enumerate(expected.schema):
            if pa.types.is_floating(column.type):
                values = table[column.name].slice(start, piece.num_rows).cast(column.type)
                piece = piece.set_column(at, column, values)
        start += piece.num_rows
        yield piece


# The parts of a file


@dataclass(frozen=True)
class _Page:
    header: ThriftStruct  # without the compressed size
    content: bytes


@dataclass(frozen=True)
class _FileAnatomy:
    """A file as its parts; offsets and compressed sizes are checked and then left away."""

    footer: ThriftStruct = field(repr=False)
    pages: tuple[_Page, ...] = field(repr=False)

    @property
    def writer(self) -> str:
        return bytes(self.footer.get(6, b"")).decode()

    @classmethod
    def of(cls, content: bytes) -> _FileAnatomy:
        if content[:4] != MAGIC or content[-4:] != MAGIC:
            raise UnaccountedError("it does not begin and end as Parquet files do")
        size = int.from_bytes(content[-8:-4], "little")
        begin = len(content) - 8 - size
        footer, end = _ThriftReader(content, begin).struct()
        if end != len(content) - 8:
            raise UnaccountedError(f"{len(content) - 8 - end} bytes follow its footer")
        _check_fields(footer, FILE_FIELDS, "footer")
        at = 4
        pages: list[_Page] = []
        for group in footer.get(4, []):
            _check_fields(group, ROW_GROUP_FIELDS, "row group")
            first = at
            for chunk in group[1]:
                at = _read_chunk(content, at, chunk, pages)
            if group.pop(5, first) != first or group.pop(6, at - first) != at - first:
                raise UnaccountedError("a row group is not where its footer says")
        if at != begin:
            raise UnaccountedError(f"{begin - at} bytes stand between its pages and its footer")
        return cls(footer, tuple(pages))


def _read_chunk(content: bytes, start: int, chunk: ThriftStruct, pages: list[_Page]) -> int:
    """Read the pages of a column, which begin at `start`; returns where they end."""
    _check_fields(chunk, CHUNK_FIELDS, "column")
    column = chunk[3]
    name = ".".join(part.decode() for part in column[3])
    _check_fields(column, COLUMN_FIELDS, f"column {name!r}")
    if column[4] != ZSTD:
        raise UnaccountedError(f"column {name!r} is not compressed by zstd")
    end = start + column.pop(7)
    at, values = start, 0
    starts: dict[int, int] = {}
    while values < column[5] or (not column[5] and at < end):
        header, after = _ThriftReader(content, at).struct()
        _check_fields(header, PAGE_FIELDS, f"page header of column {name!r}")
        packed = content[after : after + header.pop(3)]
        starts.setdefault(header[1], at)
        pages.append(_Page(header, _unpacked(packed, header, name)))
        values += (header.get(5) or header.get(8) or {}).get(1, 0)
        at = after + len(packed)
        if at > end:
            break
    if at != end:
        raise UnaccountedError(f"{end - at} bytes follow the pages of column {name!r}")
    data = starts.get(0, starts.get(3, start))
    if column.pop(9) != data or column.pop(11, None) != starts.get(2) or chunk.pop(2) not in (0, start, end):
        raise UnaccountedError(f"a page of column {name!r} is not where the footer says")
    return at


def _check_fields(part: ThriftStruct, fields: Mapping[int, str], where: str) -> None:
    for number in part:
        if number not in fields:
            raise UnaccountedError(f"its {where} has the field {number}, which our writer does not write")


def _unpacked(packed: bytes, header: ThriftStruct, name: str) -> bytes:
    """A page as it was before it was compressed; a page of version 2 has levels before it that are not."""
    plain = 0
    if (second := header.get(8)) is not None:
        plain = second[5] + second[6]
        if second.get(7) is False:
            return packed
    inside = packed[plain:]
    if not inside:
        return packed
    if _frame_size(inside) != len(inside):
        raise UnaccountedError(f"a page of column {name!r} holds more than its values")
    size = header[2] - plain
    values: bytes = pa.decompress(inside, size, codec="zstd", asbytes=True)
    return packed[:plain] + values


def _frame_size(packed: bytes) -> int:
    """The size of the zstd frame (RFC 8878, 3.1.1) that begins here."""
    if int.from_bytes(packed[:4], "little") != ZSTD_FRAME:
        raise UnaccountedError("a page is not compressed by zstd")
    flags = packed[4]
    single, checksum = bool(flags & 0x20), bool(flags & 0x04)
    at = 5 + (not single) + (0, 1, 2, 4)[flags & 3] + (1 if single else 0, 2, 4, 8)[flags >> 6]
    while True:
        block = int.from_bytes(packed[at : at + 3], "little")
        kind, size = block >> 1 & 3, block >> 3
        at += 3 + (1 if kind == 1 else size)
        if block & 1 or at > len(packed):
            return at + 4 * checksum


@dataclass
class _ThriftReader:
    """Thrift's compact protocol, read strictly: no number is written in more bytes than it needs."""

    content: bytes
    at: int
    depth: int = 0

    def struct(self) -> tuple[ThriftStruct, int]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnaccountedError("its footer is nested deeper than any")
        fields: ThriftStruct = {}
        number = 0
        while byte := self._byte():
            step = byte >> 4
            before = number
            number = number + step if step else self._zigzag()
            if (not step and 0 < number - before < 16) or number in fields:
                raise UnaccountedError("a field of its footer is not written as the format writes it")
            fields[number] = self._value(byte & 15, in_list=False)
        self.depth -= 1
        return fields, self.at

    def _value(self, kind: int, *, in_list: bool) -> Any:
        if kind in (1, 2):
            return (self._byte() if in_list else kind) == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._zigzag()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._varint())
        if kind in (9, 10):
            head = self._byte()
            length = head >> 4 if head >> 4 < 15 else self._varint()
            if length > len(self.content):
                raise UnaccountedError("a list of its footer is longer than the file")
            return [self._value(head & 15, in_list=True) for _ in range(length)]
        if kind == 12:
            return self.struct()[0]
        raise UnaccountedError("its footer has a part of a kind that the format does not have")

    def _byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _bytes(self, length: int) -> bytes:
        part = self.content[self.at : self.at + length]
        self.at += length
        if len(part) < length:
            raise UnaccountedError("its footer ends before its last part does")
        return part

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                if (shift > 7 and not byte) or shift > 70:
                    raise UnaccountedError("a number of its footer is written longer than it is")
                return value

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)


# Comparisons


def _anatomy_differences(ours: _FileAnatomy, theirs: _FileAnatomy) -> Iterator[str]:
    """By one version of pyarrow: everything is the same but how pages are compressed."""
    yield from _footer_differences(ours.footer, theirs.footer, frozenset())
    if len(ours.pages) != len(theirs.pages):
        yield f"it has {len(theirs.pages)} pages; its values are written in {len(ours.pages)}"
    for n, (one, other) in enumerate(zip(ours.pages, theirs.pages, strict=False)):
        if one != other:
            yield f"page {n + 1} is not as its values are written"


def _version_independent_differences(ours: _FileAnatomy, theirs: _FileAnatomy) -> Iterator[str]:
    """By two versions: what does not depend on the version."""
    writer = {6: ours.footer.get(6)}
    yield from _footer_differences(
        ours.footer, {**theirs.footer, **writer}, frozenset(VERSION_DEPENDENT_FIELDS)
    )


def _footer_differences(ours: ThriftStruct, theirs: ThriftStruct, free: frozenset[str]) -> Iterator[str]:
    yield from _field_differences(ours, theirs, FILE_FIELDS, free | {"row groups"}, "")
    groups = ours.get(4, []), theirs.get(4, [])
    if len(groups[0]) != len(groups[1]):
        yield f"it has {len(groups[1])} row groups; its values are written in {len(groups[0])}"
    for one, other in zip(*groups, strict=False):
        yield from _field_differences(one, other, ROW_GROUP_FIELDS, free | {"columns"}, "row group: ")
        if len(one[1]) != len(other[1]):
            yield "a row group has other columns than the release"
        for left, right in zip(one[1], other[1], strict=False):
            name = b".".join(left[3][3]).decode()
            yield from _field_differences(
                left[3], right[3], COLUMN_FIELDS, free | {"statistics"}, f"column {name!r}: "
            )
            statistics = left[3].get(12, {}), right[3].get(12, {})
            if free:  # those that only one of them writes are numbers that follow from the others
                shared = statistics[0].keys() & statistics[1].keys()
                statistics = tuple({n: s[n] for n in shared} for s in statistics)  # type: ignore[assignment]
            yield from _field_differences(
                *statistics, STATISTICS_FIELDS, frozenset(), f"column {name!r}: statistics: "
            )


def _field_differences(
    ours: ThriftStruct, theirs: ThriftStruct, names: Mapping[int, str], free: frozenset[str], where: str
) -> Iterator[str]:
    for number in sorted({*ours, *theirs}):
        name = names.get(number, f"field {number}")
        if name not in free and ours.get(number) != theirs.get(number):
            what = (
                "that our writer does not write"
                if number not in ours
                else "that does not follow from its values"
            )
            yield f"{where}it has {name} {what}" if number in theirs else f"{where}it has no {name}"


# Columns that do not follow from the rest


RELATIVE_TOLERANCE = 1e-9  # sums of estimates may have been added up in another order


@dataclass(frozen=True, eq=False)
class _Deviation:
    """A column of a file that is not what follows from the rest, with the rows where it is off."""

    file: str
    column: str
    table: pa.Table
    expected: pa.ChunkedArray
    rows: Ints

    def finding(self) -> Finding:
        seen = [
            f"{row_words(self.table, r)}: {self.column} is {_cell_text(self.table[self.column], r)}; from the rest follows "
            f"{_cell_text(self.expected, r)}."
            for r in self.rows[:MAX_ITEMS_NAMED].tolist()
        ]
        every = 1 < len(self.rows) == self.table.num_rows
        first = "every row" if every else row_words(self.table, int(self.rows[0]))
        title = f"{self.file}: {self.column} of {first} is not what follows from the rest"
        return tampering_finding(
            "tables", title, " ".join(seen) + and_more(len(self.rows)), rows=len(self.rows)
        )


def _cell_text(column: pa.ChunkedArray, row: int) -> str:
    value = column[row].as_py()
    return "nothing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def check_columns(folder: Path, release: Release) -> Iterator[Finding]:
    """Every column of every table against what follows for it from trips, noisy answers and estimates."""
    deviations: list[_Deviation] = []
    findings: list[Finding] = []
    partly = 0  # files that another version of pyarrow wrote
    sheets = layout(release).sheets
    for sheet in sheets:
        try:
            table = read_parquet(folder / sheet.path)
        except InputError as wrong:
            findings.append(tampering_finding("tables", f"{sheet.path} cannot be read", str(wrong)))
            continue
        expected = pa.concat_tables([_decoded_labels(t) for t in sheet.tables()])
        misshapen = _shape_findings(sheet.path, table, expected)
        findings += misshapen
        if table.num_rows == expected.num_rows:
            off = list(_deviations(sheet.path, _decoded_labels(table), expected))
            deviations += off
            if not misshapen and not off:
                written = compare_parquet(folder / sheet.path, sheet, table)
                partly += written.partly
                if written.difference is not None:
                    findings.append(_hidden_content_finding(sheet.path, written.difference))
    deviations, blamed = _changed_table(folder, release, deviations)
    findings += [*blamed, *(off.finding() for off in deviations)]
    yield from findings or [
        clear_finding(
            "tables",
            "Trips, tables and estimates add up",
            f"All columns of {len(sheets)} files were worked out again from trips, noisy answers and estimates of trip types.",
            "One changed number would have been found for certain, if it is not one of those that the others follow from. "
            + (
                f"{partly} files were written by another version of pyarrow: their metadata and statistics were compared, not every byte."
                if partly
                else "So would anything that a file holds beside its values."
            ),
        )
    ]


def _hidden_content_finding(file: str, difference: str) -> Finding:
    """The finding that a file holds something that no value of it is."""
    finding = tampering_finding(
        "tables", f"{file} holds more or other than its values", f"{file}: {difference}."
    )
    attack = "What stands beside the values (metadata, statistics, bytes that no reader shows) may tell of the trips, and of who looked at them."
    return replace(finding, attack=attack)


def _decoded_labels(table: pa.Table) -> pa.Table:
    """Labels as themselves, not as codes."""
    columns = [
        c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.itercolumns()
    ]
    return pa.table(columns, names=table.column_names)


def _shape_findings(file: str, table: pa.Table, expected: pa.Table) -> list[Finding]:
    missing = [c for c in expected.column_names if c not in table.column_names]
    further = [c for c in table.column_names if c not in expected.column_names]
    findings = [
        tampering_finding("tables", f"{file} has no column {c}", f"The column {c} is missing.")
        for c in missing
    ]
    findings += [
        tampering_finding(
            "tables",
            f"{file} has a column {c}, which no release has",
            f"The column {c} does not belong there.",
        )
        for c in further
    ]
    if table.num_rows != expected.num_rows:
        keys = [c for c in expected.column_names if c not in NUMBER_COLUMNS and c in table.column_names]
        here, expected_keys = (
            set(zip(*(t[c].to_pylist() for c in keys), strict=True)) for t in (table, expected)
        )
        named = [" · ".join(map(str, k)) for k in [*(here - expected_keys), *(expected_keys - here)]][:1]
        text = f"{file} has {table.num_rows:,} rows; from the rest follow {expected.num_rows:,}. The first that differs: {named}."
        findings.append(tampering_finding("tables", f"{file} has other rows than follow from the rest", text))
    return findings


def _deviations(file: str, table: pa.Table, expected: pa.Table) -> Iterator[_Deviation]:
    for name in expected.column_names:
        if name in table.column_names:
            rows = np.flatnonzero(_differ(table[name], expected[name]))
            if len(rows):
                yield _Deviation(file, name, table, expected[name], rows)


def _differ(actual: pa.ChunkedArray, expected: pa.ChunkedArray) -> NDArray[np.bool_]:
    gaps = [np.asarray(c.is_null().to_numpy(), dtype=bool) for c in (actual, expected)]
    odd = gaps[0] != gaps[1]
    if pa.types.is_floating(expected.type) or pa.types.is_floating(actual.type):
        a, b = (np.asarray(c.cast(pa.float64()).fill_null(0.0).to_numpy()) for c in (actual, expected))
        return np.asarray(odd | ~np.isclose(a, b, rtol=RELATIVE_TOLERANCE, atol=RELATIVE_TOLERANCE))
    if actual.type != expected.type:
        try:
            actual = actual.cast(expected.type)
        except pa.ArrowException:
            return np.ones(len(expected), dtype=bool)
    unlike = pc.not_equal(actual, expected).fill_null(False)
    return np.asarray(odd | np.asarray(unlike.to_numpy(), dtype=bool))


def _changed_table(
    folder: Path, release: Release, deviations: Sequence[_Deviation]
) -> tuple[list[_Deviation], list[Finding]]:
    """Where all tables agree with each other and not with the trips, it is the trips that were changed."""
    features = {f["name"]: f for f in manifest_of(release)["features"] if f["published"] == "trips"}
    single = features.get(SINGLETON)
    off = next((o for o in deviations if single and o.file == single["file"] and o.column == "count"), None)
    if off is None or single is None:
        return list(deviations), []
    counts = np.asarray(off.table["count"].to_numpy())
    index = np.arange(len(counts), dtype=np.int64)
    if single["rows"] == "listed":
        index = read_types(release.features.universe, off.table, off.file)
    some = np.flatnonzero(counts)
    other = replace(release, index=index[some], value=counts[some].astype(np.int64))
    for name, feature in features.items():
        if name != SINGLETON:
            stated = np.asarray(read_parquet(folder / feature["file"])["count"].to_numpy())
            if not np.array_equal(stated, other.counts(name)):
                return list(deviations), []
    seen = [
        f"{row_words(off.table, r)}: {TRIPS_FILE} says {_cell_text(off.expected, r)}, all other tables say {_cell_text(off.table['count'], r)}."
        for r in off.rows[:MAX_ITEMS_NAMED].tolist()
    ]
    first = row_words(off.table, int(off.rows[0]))
    title = f"{TRIPS_FILE}: the count of {first} is not what all other tables say"
    blamed = tampering_finding("tables", title, " ".join(seen) + and_more(len(off.rows)), rows=len(off.rows))
    files = {feature["file"] for feature in features.values()}
    return [o for o in deviations if not (o.file in files and o.column == "count")], [blamed]
