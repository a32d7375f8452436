"""CSV to rows: a total function of a file's bytes. Whatever they are, no row stops the count.

A record is read as RFC 4180 says: fields between marks; a field that begins with a quote ends with one, "" in it standing for one
quote, and may hold marks and line ends. A line end is LF, or CR LF. What is not so written is dropped:

    a record with more or fewer fields than the first line        itself
    a quote that is not closed, or not at the end of its field    its line, and no other: reading goes on with the next line
    a record longer than MAX_RECORD_BYTES, with its line end       its line, likewise

So an open quote hides its own line. Only two of them can hide more: a field that opens in one line and a stray quote before a mark in
a later one look like a field with line ends in it, and the lines between are its text, up to MAX_RECORD_BYTES. A writer that doubles quotes
never makes such lines. To read every line as a record instead would let one cell with line ends count as many trips.

An empty line is no record. Bytes are not decoded: a field that is no UTF-8 is a value like any other, and equals no label.

Time stamps as most files have them, "2026-01-31 08:14:00", are also read as numbers here: it takes a tenth of what SQL takes for the same.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Bytes, Ints
from cbdp.compiling import kernel
from cbdp.counting.clock import FIRST_DATE, LAST_DATE
from cbdp.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_BYTES = 2**23  # bytes of a file that are read at a time
MAX_RECORD_BYTES = (
    2**16
)  # bytes of a record, its line end included: what is longer is dropped, so that an open quote hides no more than this
QUOTE, LF, CR = 34, 10, 13
MORE, DROP = -1, -2  # the chunk ends within a record; its quotes are out of place, or it is too long
STAMP_BYTES = 19  # of "2026-01-31 08:14:00"
FIRST_YEAR, END_YEAR = FIRST_DATE.year, LAST_DATE.year  # what is outside is left to the engine


@dataclass
class ReadTotals:
    """What was read so far: `lines` by counting line ends, the others by the reader."""

    lines: int = 0
    records: int = 0
    rows: int = 0


def csv_header(path: Path) -> tuple[str, tuple[str, ...]]:
    """The mark between fields (the one the first line holds most of) and the names of the columns."""
    try:
        with _open_file(path) as lines:  # no byte beyond the first line is looked at: those are private
            line = lines.readline(MAX_RECORD_BYTES).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        raise InputError(
            f"{str(path)!r} cannot be read as CSV: it is damaged, or not UTF-8; save it in UTF-8"
        ) from None
    mark = max(",;\t|", key=line.count)
    try:
        names = tuple(next(csv.reader([line], delimiter=mark, strict=True), ()))
    except csv.Error:
        names = ()
    if not names or "\0" in line:
        raise InputError(f"{str(path)!r} is not a CSV file: its first line must name the columns")
    return mark, names


def csv_batches(
    path: Path,
    mark: str,
    fields: int,
    places: Sequence[int],
    tally: ReadTotals,
    limit: int = MAX_RECORD_BYTES,
    stamps: Sequence[int] = (),
) -> Iterator[pa.RecordBatch]:
    """The fields at these places of every row, as Arrow batches of bytes named v0, v1, …; and what `plain_stamps` makes of some, named s0, s1, …"""
    output_of = np.full(fields, -1, dtype=np.int64)
    outputs = list(dict.fromkeys(places))
    output_of[outputs] = np.arange(len(outputs))
    ends, out = (
        np.empty((0, 0), dtype=np.int32),
        np.empty((0, 0), dtype=np.uint8),
    )  # used again for every chunk
    with _open_file(path) as file:
        file.readline(MAX_RECORD_BYTES)
        rest, skipping, new = b"", False, b"-"
        while new:
            new = file.read(CHUNK_BYTES)
            tally.lines += new.count(b"\n") if new else 1  # the last line may lack its end
            data = rest + new
            if skipping:  # within a line that is dropped
                end = data.find(b"\n")
                if end < 0:
                    continue
                data = data[end + 1 :]
            if out.shape[1] < len(data):
                out = np.empty((len(outputs), len(data) + limit), dtype=np.uint8)
                ends = np.zeros((len(outputs), out.shape[1] // fields + 3), dtype=np.int32)
            used, skipping, arrays = _batch_of(data, not new, ord(mark), output_of, ends, out, tally, limit)
            if arrays is not None:
                times = [plain_stamps(arrays[outputs.index(p)]) for p in stamps]
                yield _named_batch([arrays[outputs.index(p)] for p in places], times)
            rest = data[used:]


def _open_file(path: Path) -> gzip.GzipFile | BufferedReader:
    return gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")


def _batch_of(
    data: bytes,
    final: bool,
    mark: int,
    output_of: Ints,
    ends: NDArray[np.int32],
    out: Bytes,
    tally: ReadTotals,
    limit: int,
) -> tuple[int, bool, list[pa.Array] | None]:
    """Bytes used, whether the last of them are within a line that is dropped, and a column of bytes for each output.

    `ends` and `out` are room to work in, whose first column of ends is zero.
    """
    import pyarrow as pa

    source, columns = np.frombuffer(data, dtype=np.uint8), len(ends)
    rows, used, records, skipping = _split_records(source, final, mark, output_of, limit, ends, out)
    tally.records += records
    tally.rows += rows
    arrays = []
    for c in range(columns if rows else 0):
        size = int(ends[c, rows])
        buffers = [None, pa.py_buffer(ends[c, : rows + 1].copy()), pa.py_buffer(out[c, :size].copy())]
        arrays.append(pa.Array.from_buffers(pa.binary(), rows, buffers))
    return used, bool(skipping), arrays or None


def _named_batch(arrays: Sequence[pa.Array], stamps: Sequence[pa.Array]) -> pa.RecordBatch:
    import pyarrow as pa

    names = [*(f"v{i}" for i in range(len(arrays))), *(f"s{i}" for i in range(len(stamps)))]
    return pa.RecordBatch.from_arrays([*arrays, *stamps], names=names)


def plain_stamps(texts: pa.Array) -> pa.Array:
    """Microseconds since 1970 of texts that are exactly "YYYY-MM-DD hh:mm:ss", or with T for the blank; null of all others, which may be stamps too.

    What is no null is what ISO_STAMP and ISO_LOCAL say of the same text.

    >>> import pyarrow as pa
    >>> plain_stamps(pa.array([b"1970-01-02T00:00:01", b"1970-02-30 00:00:01", b"1970-01-02"])).to_pylist()
    [86401000000, None, None]
    """
    import pyarrow as pa

    _, ends, data = texts.buffers()
    ends = np.frombuffer(ends, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    micros, other = np.empty(len(texts), dtype=np.int64), np.empty(len(texts), dtype=np.bool_)
    _read_stamps(np.frombuffer(data or b"", dtype=np.uint8), ends, micros, other)
    return pa.array(micros, mask=other)


@kernel
def _read_stamps(source: Bytes, ends: NDArray[np.int32], micros: Ints, other: NDArray[np.bool_]) -> None:
    for row in range(len(micros)):
        micros[row], at = 0, ends[row]
        other[row] = ends[row + 1] - at != STAMP_BYTES or not _has_stamp_shape(source, at)
        if other[row]:
            continue
        year = 100 * _two_digits(source, at) + _two_digits(source, at + 2)
        month, day = _two_digits(source, at + 5), _two_digits(source, at + 8)
        hour, minute, second = (
            _two_digits(source, at + 11),
            _two_digits(source, at + 14),
            _two_digits(source, at + 17),
        )
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        length = (28 + leap) if month == 2 else 30 + (month + month // 8) % 2
        other[row] = (
            not FIRST_YEAR <= year < END_YEAR
            or not 1 <= month <= 12
            or not 1 <= day <= length
            or hour > 23
            or minute > 59
            or second > 59
        )
        if not other[row]:
            # days since 1970 of the Gregorian calendar, by years that begin in March
            y, m = (year - 1, month + 9) if month < 3 else (year, month - 3)
            days = 365 * y + y // 4 - y // 100 + y // 400 + (153 * m + 2) // 5 + day - 719469
            micros[row] = ((days * 24 + hour) * 3600 + minute * 60 + second) * 10**6


@kernel
def _has_stamp_shape(source: Bytes, at: int) -> bool:
    """Whether all is where it belongs in "2026-01-31 08:14:00"."""
    for place in range(STAMP_BYTES):
        byte = source[at + place]
        if place in (4, 7):
            fits = byte == ord("-")
        elif place == 10:
            fits = byte in (ord(" "), ord("T"))
        elif place in (13, 16):
            fits = byte == ord(":")
        else:
            fits = ord("0") <= byte <= ord("9")
        if not fits:
            return False
    return True


@kernel
def _two_digits(source: Bytes, at: int) -> int:
    return 10 * (int(source[at]) - 48) + int(source[at + 1]) - 48


@kernel
def _split_records(
    source: Bytes, final: bool, mark: int, output_of: Ints, limit: int, ends: NDArray[np.int32], out: Bytes
) -> tuple[int, int, int, bool]:
    """Rows found, bytes used, records seen, and whether the last line is dropped and goes on.

    `ends[c, r]` is where row r − 1 of column c ends in `out[c]`.
    """
    columns = ends.shape[0]
    filled = np.zeros(columns, dtype=np.int64)
    rows = records = position = 0
    while position < len(source):
        for c in range(columns):
            filled[c] = ends[c, rows]
        stop, fields = _scan_record(source, position, final, mark, output_of, limit, filled, out)
        if stop == MORE:
            break
        if stop == DROP:  # this line only: reading goes on after it
            records += 1
            while position < len(source) and source[position] != LF:
                position += 1
            if position == len(source):
                return rows, position, records, True
            position += 1
            continue
        position = stop
        if fields == len(output_of):
            rows += 1
            for c in range(columns):
                ends[c, rows] = filled[c]
        records += fields > 0
    return rows, position, records, False


@kernel
def _scan_record(
    source: Bytes, start: int, final: bool, mark: int, output_of: Ints, limit: int, filled: Ints, out: Bytes
) -> tuple[int, int]:
    """Where a record ends and how many fields it has (0: an empty line); or MORE, or DROP.

    What lies beyond the limit is not looked at, so that the outcome does not depend on where a chunk happens to end.
    """
    size = min(len(source), start + limit)
    unended = DROP if size == start + limit else MORE
    ended = final and size == len(source) and unended == MORE  # the end of the file ends a record
    position, fields = start, 0
    while True:
        column = output_of[fields] if fields < len(output_of) else -1
        if position < size and source[position] == QUOTE:
            position, closed = _scan_quoted(source, size, position + 1, column, filled, out)
            if not closed:
                return DROP if ended else unended, 0
            if position < size and source[position] == CR and (position + 1 < size or ended):
                position += 1
                if position < size and source[position] != LF:
                    return DROP, 0
            elif position < size and source[position] == CR:
                return unended, 0
            if position < size and source[position] != mark and source[position] != LF:
                return DROP, 0
        else:
            begin = position
            while position < size and source[position] != mark and source[position] != LF:
                position += 1
            at_end = position == size or source[position] == LF
            end = position - 1 if at_end and position > begin and source[position - 1] == CR else position
            if at_end and end == begin and fields == 0 and (position < size or ended):
                return min(position + 1, size), 0
            if column >= 0:
                place = filled[column]
                for at in range(begin, end):
                    out[column, place] = source[at]
                    place += 1
                filled[column] = place
        if position == size and not ended:
            return unended, 0
        fields += 1
        if position == size or source[position] == LF:
            return min(position + 1, size), fields
        position += 1


@kernel
def _scan_quoted(
    source: Bytes, size: int, position: int, column: int, filled: Ints, out: Bytes
) -> tuple[int, bool]:
    """The place after the closing quote and True; where there is none before `size`, False."""
    place = filled[column] if column >= 0 else 0
    while position < size:
        byte = source[position]
        if byte == QUOTE:
            if position + 1 < size and source[position + 1] == QUOTE:
                position += 1
            else:
                if column >= 0:
                    filled[column] = place
                return position + 1, True
        if column >= 0:
            out[column, place] = byte
            place += 1
        position += 1
    return position, False
