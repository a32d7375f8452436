"""What a Parquet file of a release holds beside its values: nothing that our writer does not write for them.

The file is written again from its values, with the pieces and types that a release has. Where the bytes differ, both files are taken
apart as the format defines them (https://parquet.apache.org/docs/file-format/): footer, page headers and pages, every byte of the
file accounted for. Two builds of one version of pyarrow may compress a page differently, so pages are compared unpacked. Another
version may also choose other encodings and further statistics: then what it has in common with ours is compared.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from cbdp.release.saving import write_parquet
from cbdp.release.universe_files import Sheet

MAGIC = b"PAR1"
ZSTD, ZSTD_FRAME = 6, 0xFD2FB528
CREATOR = re.compile(r"parquet-cpp-arrow version [0-9]+\.[0-9]+\.[0-9]+")
MAX_DEPTH = 12  # of structures inside each other; footers have seven

# Field numbers of the format's structures: https://github.com/apache/parquet-format, parquet.thrift
FILE = {
    1: "version",
    2: "schema",
    3: "rows",
    4: "row groups",
    5: "key-value metadata",
    6: "writer",
    7: "column orders",
}
GROUP = {
    1: "columns",
    2: "size",
    3: "rows",
    4: "sorting columns",
    5: "offset",
    6: "compressed size",
    7: "ordinal",
}
CHUNK = {2: "offset", 3: "metadata"}
COLUMN = {
    1: "type", 2: "encodings", 3: "path", 4: "codec", 5: "values", 6: "size", 7: "compressed size", 8: "key-value metadata",
    9: "data page offset", 11: "dictionary page offset", 12: "statistics", 13: "encoding counts", 16: "size statistics",
}  # fmt: skip
PAGE = {
    1: "type",
    2: "size",
    3: "compressed size",
    5: "data page",
    7: "dictionary page",
    8: "data page, version 2",
}
STATISTICS = {1: "max", 2: "min", 3: "nulls", 4: "distinct values", 5: "max value", 6: "min value", 7: "max is exact", 8: "min is exact"}  # fmt: skip
BY_VERSION = {"column orders", "encodings", "size", "encoding counts", "size statistics", "version"}

Struct = dict[int, Any]


class UnaccountedError(Exception):
    """Bytes of a file that belong to no part of it, or are not written as the format writes them."""


@dataclass(frozen=True)
class FileComparison:
    """How a file differs from the one that our writer makes of its values; `partly`: another version wrote it, and not all was compared."""

    difference: str | None = None
    partly: bool = False


def compare(path: Path, sheet: Sheet, table: pa.Table) -> FileComparison:
    """A file against the one that is written from its values. `table` is the file as it was read, with the values of its sheet."""
    content = path.read_bytes()
    expected = io.BytesIO()
    write_parquet(expected, _pieces(sheet, table))
    if content == expected.getbuffer():
        return FileComparison()
    try:
        theirs = _Anatomy.of(content)
    except (UnaccountedError, IndexError, struct.error, pa.ArrowException, UnicodeDecodeError) as wrong:
        return FileComparison(str(wrong) or "it is not a Parquet file as the format defines it")
    ours = _Anatomy.of(expected.getvalue())
    if theirs.writer == ours.writer:
        return FileComparison(next(_differences(ours, theirs), None))
    if not CREATOR.fullmatch(theirs.writer):
        return FileComparison(f"it says that {theirs.writer[:80]!r} wrote it")
    return FileComparison(next(_common(ours, theirs), None), partly=True)


def _pieces(sheet: Sheet, table: pa.Table) -> Iterator[pa.Table]:
    """The tables of a sheet. Real numbers are the file's own: they may be sums in another order, and were compared as numbers."""
    start = 0
    for made in sheet.tables():
        piece = made
        for at, column in enumerate(made.schema):
            if pa.types.is_floating(column.type):
                values = table[column.name].slice(start, piece.num_rows).cast(column.type)
                piece = piece.set_column(at, column, values)
        start += piece.num_rows
        yield piece


# The parts of a file


@dataclass(frozen=True)
class _Page:
    header: Struct  # without the compressed size
    content: bytes


@dataclass(frozen=True)
class _Anatomy:
    """A file as its parts; offsets and compressed sizes are checked and then left away."""

    footer: Struct = field(repr=False)
    pages: tuple[_Page, ...] = field(repr=False)

    @property
    def writer(self) -> str:
        return bytes(self.footer.get(6, b"")).decode()

    @classmethod
    def of(cls, content: bytes) -> _Anatomy:
        if content[:4] != MAGIC or content[-4:] != MAGIC:
            raise UnaccountedError("it does not begin and end as Parquet files do")
        size = int.from_bytes(content[-8:-4], "little")
        begin = len(content) - 8 - size
        footer, end = _Reader(content, begin).struct()
        if end != len(content) - 8:
            raise UnaccountedError(f"{len(content) - 8 - end} bytes follow its footer")
        _known(footer, FILE, "footer")
        at = 4
        pages: list[_Page] = []
        for group in footer.get(4, []):
            _known(group, GROUP, "row group")
            first = at
            for chunk in group[1]:
                at = _chunk(content, at, chunk, pages)
            if group.pop(5, first) != first or group.pop(6, at - first) != at - first:
                raise UnaccountedError("a row group is not where its footer says")
        if at != begin:
            raise UnaccountedError(f"{begin - at} bytes stand between its pages and its footer")
        return cls(footer, tuple(pages))


def _chunk(content: bytes, start: int, chunk: Struct, pages: list[_Page]) -> int:
    """Read the pages of a column, which begin at `start`; returns where they end."""
    _known(chunk, CHUNK, "column")
    column = chunk[3]
    name = ".".join(part.decode() for part in column[3])
    _known(column, COLUMN, f"column {name!r}")
    if column[4] != ZSTD:
        raise UnaccountedError(f"column {name!r} is not compressed by zstd")
    end = start + column.pop(7)
    at, values = start, 0
    starts: dict[int, int] = {}
    while values < column[5] or (not column[5] and at < end):
        header, after = _Reader(content, at).struct()
        _known(header, PAGE, f"page header of column {name!r}")
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


def _known(part: Struct, fields: Mapping[int, str], where: str) -> None:
    for number in part:
        if number not in fields:
            raise UnaccountedError(f"its {where} has the field {number}, which our writer does not write")


def _unpacked(packed: bytes, header: Struct, name: str) -> bytes:
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
class _Reader:
    """Thrift's compact protocol, read strictly: no number is written in more bytes than it needs."""

    content: bytes
    at: int
    depth: int = 0

    def struct(self) -> tuple[Struct, int]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnaccountedError("its footer is nested deeper than any")
        fields: Struct = {}
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
            many = head >> 4 if head >> 4 < 15 else self._varint()
            if many > len(self.content):
                raise UnaccountedError("a list of its footer is longer than the file")
            return [self._value(head & 15, in_list=True) for _ in range(many)]
        if kind == 12:
            return self.struct()[0]
        raise UnaccountedError("its footer has a part of a kind that the format does not have")

    def _byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _bytes(self, many: int) -> bytes:
        part = self.content[self.at : self.at + many]
        self.at += many
        if len(part) < many:
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


def _differences(ours: _Anatomy, theirs: _Anatomy) -> Iterator[str]:
    """By one version of pyarrow: everything is the same but how pages are compressed."""
    yield from _footers(ours.footer, theirs.footer, frozenset())
    if len(ours.pages) != len(theirs.pages):
        yield f"it has {len(theirs.pages)} pages; its values are written in {len(ours.pages)}"
    for n, (one, other) in enumerate(zip(ours.pages, theirs.pages, strict=False)):
        if one != other:
            yield f"page {n + 1} is not as its values are written"


def _common(ours: _Anatomy, theirs: _Anatomy) -> Iterator[str]:
    """By two versions: what does not depend on the version."""
    writer = {6: ours.footer.get(6)}
    yield from _footers(ours.footer, {**theirs.footer, **writer}, frozenset(BY_VERSION))


def _footers(ours: Struct, theirs: Struct, free: frozenset[str]) -> Iterator[str]:
    yield from _fields(ours, theirs, FILE, free | {"row groups"}, "")
    groups = ours.get(4, []), theirs.get(4, [])
    if len(groups[0]) != len(groups[1]):
        yield f"it has {len(groups[1])} row groups; its values are written in {len(groups[0])}"
    for one, other in zip(*groups, strict=False):
        yield from _fields(one, other, GROUP, free | {"columns"}, "row group: ")
        if len(one[1]) != len(other[1]):
            yield "a row group has other columns than the release"
        for left, right in zip(one[1], other[1], strict=False):
            name = b".".join(left[3][3]).decode()
            yield from _fields(left[3], right[3], COLUMN, free | {"statistics"}, f"column {name!r}: ")
            statistics = left[3].get(12, {}), right[3].get(12, {})
            if free:  # those that only one of them writes are numbers that follow from the others
                shared = statistics[0].keys() & statistics[1].keys()
                statistics = tuple({n: s[n] for n in shared} for s in statistics)  # type: ignore[assignment]
            yield from _fields(*statistics, STATISTICS, frozenset(), f"column {name!r}: statistics: ")


def _fields(
    ours: Struct, theirs: Struct, names: Mapping[int, str], free: frozenset[str], where: str
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
