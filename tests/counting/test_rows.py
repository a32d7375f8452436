"""CSV to rows: as RFC 4180 says, a total function of the bytes, and no line changes how another is read."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from counting.making import as_dict, written
from hypothesis import given, settings
from hypothesis import strategies as st

import cbdp
from cbdp.counting import csv_rows, inspect
from cbdp.counting.clock import ISO_LOCAL, ISO_STAMP
from cbdp.counting.csv_rows import ReadTotals, csv_batches, csv_header
from cbdp.counting.engines.duckdb import _parsed_micros, connection
from cbdp.counting.engines.sql import EARLIEST_MICROSECOND, LATEST_MICROSECOND
from cbdp.errors import InputError


def _read(
    path: Path, places: list[int], limit: int = csv_rows.MAX_RECORD_BYTES
) -> tuple[list[tuple[bytes, ...]], ReadTotals]:
    mark, names = csv_header(path)
    tally = ReadTotals()
    found = [
        row
        for batch in csv_batches(path, mark, len(names), places, tally, limit)
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]
    assert tally.rows == len(found) <= tally.records <= tally.lines
    return found, tally


FIELDS = st.text(st.sampled_from('ab,;"\n\r é\t'), max_size=6)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(FIELDS, FIELDS, FIELDS), max_size=12),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([1, 3, 16, 2**20]),
    st.booleans(),
)
def test_what_a_writer_writes_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    table: list[tuple[str, ...]],
    mark: str,
    quoting: int,
    end: str,
    chunk: int,
    packed: bool,
) -> None:
    """Marks, quotes and line ends within fields come back as they were, wherever a chunk ends."""
    made = io.StringIO()
    writer = csv.writer(made, delimiter=mark, quoting=quoting, lineterminator=end)
    writer.writerow(["one", "two", "three"])
    if quoting == csv.QUOTE_MINIMAL:  # a lone CR in a bare field is the writer's own affair
        table = [tuple(f.replace("\r", "") for f in row) for row in table]
    writer.writerows(table)
    folder = tmp_path_factory.mktemp("csv")
    data = made.getvalue().encode()
    path = written(folder, "t.csv.gz" if packed else "t.csv", gzip.compress(data) if packed else data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_rows, "CHUNK_BYTES", chunk)
        found, _ = _read(path, [2, 0])
    assert found == [(row[2].encode(), row[0].encode()) for row in table]


BAD_LINES = [
    b"too,many,fields,here",
    b"few",
    b'"open,x,y',
    b'x,"open',
    b'"a"b,c,d',
    b'a,"b" ,c',
]


@pytest.mark.parametrize("chunk", [1, 7, 2**20])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("bad", BAD_LINES)
@pytest.mark.parametrize("good", [b"A,B,C", b'"A","B","C"', b'"A","B\n,""","C"', b'"","B","C"'])
def test_a_bad_line_drops_itself_and_no_other(
    bad: bytes, good: bytes, end: bytes, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after it every row is read, in whatever style they are written."""
    monkeypatch.setattr(csv_rows, "CHUNK_BYTES", chunk)
    lines = [b"one,two,three", good, bad, good, good, bad, bad, good]
    for last in (end, b""):
        path = written(tmp_path, "t.csv", end.join(lines) + last)
        found, tally = _read(path, [1])
        assert len(found) == 4
        assert len(set(found)) == 1
        assert tally.records == 7


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([b"a", b",", b'"', b"\n", b"\r", b"\xff", b'""', b'",', b'"\n']), max_size=40),
    st.integers(1, 3),
    st.sampled_from([2, 5, 20, 2**20]),
    st.sampled_from([1, 2, 5, 2**20]),
)
def test_any_bytes_are_read_the_same_in_chunks_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], fields: int, limit: int, chunk: int
) -> None:
    """No bytes are an error, and where a chunk ends changes nothing: one row cannot move another's border."""
    names = b",".join(b"abc"[i : i + 1] for i in range(fields))
    path = written(tmp_path_factory.mktemp("csv"), "t.csv", names + b"\n" + b"".join(pieces))
    places = list(range(fields))
    whole, tally = _read(path, places, limit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_rows, "CHUNK_BYTES", chunk)
        cut, again = _read(path, places, limit)
    assert cut == whole
    assert (again.records, again.lines) == (tally.records, tally.lines)


def test_a_record_that_is_too_long_is_dropped_wherever_it_lies(tmp_path: Path) -> None:
    """Quoted or not, a record of more than LIMIT bytes is no row; one of LIMIT is, and the rows around it stay."""
    for size, kept in (
        (csv_rows.MAX_RECORD_BYTES - 3, 3),
        (csv_rows.MAX_RECORD_BYTES - 2, 2),
        (300 * csv_rows.MAX_RECORD_BYTES, 2),
    ):
        path = written(tmp_path, "t.csv", b"a,b\nx,1\n" + b"y" * size + b",1\nz,1\n")
        assert len(_read(path, [0])[0]) == kept
    path = written(tmp_path, "t.csv", b'a,b\nx,1\n"' + b"y\n" * csv_rows.MAX_RECORD_BYTES + b'",1\nz,1\n')
    assert [r for r in _read(path, [0])[0] if r != (b"y",)] == [(b"x",), (b"z",)]


def test_an_open_quote_swallows_no_trip(tmp_path: Path) -> None:
    """One row with a quote that is never closed, in the middle of 10,000: the others are counted, and inspect shows it."""
    lines = ["stop,n", *["A,1"] * 5000, '"A,1', *["A,1"] * 5000]
    path = written(tmp_path, "t.csv", "\n".join(lines))
    universe = cbdp.Universe(stop=["A", "B"])
    assert as_dict(cbdp.count(path, universe), universe) == {("A",): 10_000}
    seen = inspect(path, universe)
    assert (seen.read, seen.counted) == (10_001, 10_000)
    assert [(d.reason, d.rows) for d in seen.dropped] == [("malformed", 1)]


def test_two_stray_quotes_hide_what_is_between_them_and_no_more(tmp_path: Path) -> None:
    """A quote that opens nothing and one that closes nothing look like a field with line ends; it is at most LIMIT bytes long."""
    few, many = ["A,1"] * 100, ["A,1"] * (csv_rows.MAX_RECORD_BYTES // 4)
    universe = cbdp.Universe(stop=["A", "B"])
    for between, hidden in ((few, 100), (many, 0)):
        lines = ["stop,n", "B,1", '"A,1', *between, 'A",1', "B,1"]
        found = as_dict(cbdp.count(written(tmp_path, "t.csv", "\n".join(lines)), universe), universe)
        assert found.get(("A",), 0) == len(between) - hidden
        assert found["B",] == 2


def test_a_quoted_line_end_cannot_smuggle_in_trips(tmp_path: Path) -> None:
    """A cell that holds a hundred lines which look like trips is one cell of one trip."""
    cell = "\n".join(["A,note"] * 100)
    path = written(tmp_path, "t.csv", f'stop,note\nA,"{cell}"\nB,"x"\n')
    universe = cbdp.Universe(stop=["A", "B"])
    assert as_dict(cbdp.count(path, universe), universe) == {("A",): 1, ("B",): 1}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a CSV file"),
        (b"\x00a,b\n", "is not a CSV file"),
        (b'"a\n', "is not a CSV file"),
        (b"\xff,b\nx,y\n", "cannot be read as CSV"),
    ],
)
def test_a_first_line_that_names_nothing_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    """The header is public, and what it lacks is said."""
    with pytest.raises(InputError, match=message):
        csv_header(written(tmp_path, "t.csv", data))


def test_the_header_is_found_with_any_mark(tmp_path: Path) -> None:
    """The mark is the one the first line holds most of; names may be quoted, a byte order mark is none of them."""
    for text, found in (
        ("a,b\n", (",", ("a", "b"))),
        ('\ufeff"a;x";b;c\r\n', (";", ("a;x", "b", "c"))),
        ("a\tb|c\td", ("\t", ("a", "b|c", "d"))),
    ):
        assert csv_header(written(tmp_path, "t.csv", text)) == found


def test_a_plain_stamp_is_what_sql_reads_in_the_same_text() -> None:
    """Texts near "2026-01-31 08:14:00", valid or not: what the reader makes of one is what the engine's pattern and parser make of it."""
    rng = np.random.default_rng(6)
    texts = [
        f"{year:04}-{month:02}-{day:02}{gap}{hour:02}:{minute:02}:{second:02}"
        for year, month, day, hour, minute, second, gap in zip(
            rng.choice([0, 1849, 1850, 1900, 1970, 2000, 2023, 2024, 2026, 2100, 2149, 2150, 9999], 30_000),
            *(rng.integers(0, n, 30_000) for n in (14, 33, 26, 62, 62)),
            rng.choice([" ", "T", "t", "_"], 30_000, p=[0.6, 0.3, 0.05, 0.05]),
            strict=True,
        )
    ]
    first = dt.date(1850, 1, 1)
    texts += [f"{first + dt.timedelta(days=d)} 23:59:59" for d in range(0, 110_000, 7)]  # to 2151
    for n in range(10_000):  # a byte more, fewer, or another
        text, at = texts[n], int(rng.integers(0, 19))
        texts.append(
            text[:at] + str(rng.choice(["", " ", "0", "-", ":", "Z", "é"])) + text[at + rng.integers(0, 2) :]
        )
    plain = csv_rows.plain_stamps(pa.array([t.encode() for t in texts], pa.binary())).to_pylist()
    with connection() as engine:
        for form in (ISO_STAMP, ISO_LOCAL):
            engine.register("texts", pa.table({"t": texts, "n": range(len(texts))}))
            query = f"SELECT {_parsed_micros('t', form)} FROM texts ORDER BY n"  # noqa: S608
            parsed = [micros for (micros,) in engine.sql(query).fetchall()]
            assert all(p in (None, s) for p, s in zip(plain, parsed, strict=True))
            assert sum(p is not None for p in plain) > 15_000
            inside = [
                EARLIEST_MICROSECOND <= s <= LATEST_MICROSECOND if s is not None else False for s in parsed
            ]
            missed = [
                t
                for t, p, i in zip(texts, plain, inside, strict=True)
                if i and p is None and len(t.encode()) == 19
            ]
            assert all(t != t.strip() or t.count(":") < 2 or not t[17:].isdigit() for t in missed), missed[:3]


def test_a_column_of_plain_and_other_stamps_counts_as_sql_reads_it(tmp_path: Path) -> None:
    """Stamps of all sorts in one CSV fall into the periods that the same texts have as a column of text."""
    times = ["2026-03-02 08:00:00", "2026-03-02T09:59:59", " 2026-03-02 08:30", "2026-03-02 08:00:00Z", "2026-02-30 08:00:00", "08:15", "2026-03-02 24:00:00", "1849-12-31 08:00:00"]  # fmt: skip
    universe = cbdp.Universe(time=cbdp.periods("00:00", "24:00", "1h"))
    path = written(tmp_path, "t.csv", "time\n" + "\n".join(times) + "\n")
    for zone in (None, "America/Los_Angeles"):
        clock = cbdp.Clock(zone)
        both = [
            cbdp.count(trips, universe, clock=clock).dense().tolist() for trips in (path, {"time": times})
        ]
        assert both[0] == both[1]
        assert sum(both[0]) == 5
