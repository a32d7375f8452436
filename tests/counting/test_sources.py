"""Every kind of trips gives the same counts, and whatever is given badly is one clear error that quotes no cell."""

from __future__ import annotations

import gzip
import re
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from counting.making import (
    AT,
    SECRET,
    UNIVERSE,
    as_dict,
    brute_force,
    csv,
    duckdb_url,
    parquet,
    parts,
    random_rows,
    written,
)

import cbdp
from cbdp.errors import InputError


def _relation(table: pa.Table, _: Path) -> Any:
    db = duckdb.connect()
    db.register("given", table)
    return db.sql("SELECT * FROM given")


def _ibis_table(table: pa.Table, folder: Path) -> Any:
    ibis = pytest.importorskip("ibis")
    with duckdb.connect(str(folder / "ibis.db")) as db:
        db.register("given", table)
        db.execute("CREATE TABLE trips AS SELECT * FROM given")
    return ibis.duckdb.connect(str(folder / "ibis.db")).table("trips")


def _ibis_url(table: pa.Table, folder: Path) -> str:
    pytest.importorskip("ibis")
    import sqlite3

    frame = table.to_pandas()
    frame["start"] = frame["start"].astype(str).where(frame["start"].notna(), None)
    with sqlite3.connect(folder / "city.sqlite") as db:
        frame.to_sql("trips", db, index=False, dtype={"start": "TIMESTAMP", "destination": "BIGINT"})
    db.close()
    return f"sqlite://{folder / 'city.sqlite'}::trips"


KINDS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "columns": lambda t, _: t.to_pydict(),
    "pandas": lambda t, _: t.to_pandas(),
    "pandas with columns no table can hold": lambda t, _: t.to_pandas().assign(x=[{1}, 2] * 1000),
    "polars": lambda t, _: pl.DataFrame(t),
    "arrow": lambda t, _: t,
    "arrow categories": lambda t, _: t.set_column(0, "origin", t["origin"].dictionary_encode()),
    "arrow batches": lambda t, _: t.to_reader(max_chunksize=300),
    "parquet": lambda t, f: parquet(t, f / "t.parquet"),
    "text of a path": lambda t, f: str(parquet(t, f / "it's.PARQUET")),
    "csv": lambda t, f: csv(t, f / "t.csv"),
    "csv.gz": lambda t, f: csv(t, f / "t.csv.gz"),
    "semicolons": lambda t, f: csv(t, f / "t.csv", ";"),
    "two csv": lambda t, f: [csv(t.slice(0, 9), f / "a.csv"), csv(t.slice(9), f / "b.csv", "\t")],
    "files": parts,
    "folder": lambda t, f: parts(t, f)[0].parent,
    "pattern": lambda t, f: [parts(t, f)[1], str(f / "?*.parquet")],
    "duckdb relation": _relation,
    "duckdb url": duckdb_url,
    "ibis": _ibis_table,
    "ibis in memory": lambda t, _: pytest.importorskip("ibis").memtable(t),
    "ibis url": _ibis_url,
}


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:ibis"
)  # Ibis 12 calls what DuckDB 2 and pandas 3 retire
@pytest.mark.filterwarnings("ignore::FutureWarning:ibis")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_counted_alike(kind: str, tmp_path: Path) -> None:
    """Whatever trips come in, the counts are those of a plain loop over the rows."""
    rows = random_rows()
    trips = KINDS[kind](pa.table(rows), tmp_path)
    counts = cbdp.count(trips, UNIVERSE, columns=AT)
    assert as_dict(counts) == brute_force(rows)
    assert counts.value.sum() > 300


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_every_unit_of_time_is_read(unit: str, tmp_path: Path) -> None:
    """Time stamps of seconds to nanoseconds, in memory and in Parquet."""
    rows = random_rows(300)
    table = pa.table(rows).set_column(2, "start", pa.array(rows["start"], pa.timestamp(unit)))
    for trips in (table, parquet(table, tmp_path / "t.parquet")):
        assert as_dict(cbdp.count(trips, UNIVERSE, columns=AT)) == brute_force(rows)


# Bad input


def _untouched(schema: pa.Schema) -> pa.RecordBatchReader:
    def rows() -> Iterator[pa.RecordBatch]:
        raise AssertionError("a row was read")
        yield

    return pa.RecordBatchReader.from_batches(schema, rows())


@pytest.mark.parametrize(
    ("kinds", "unit", "message"),
    [
        (
            {"origin": pa.string(), "destination": pa.int64()},
            "trip",
            "no column 'time': there are origin, destination",
        ),
        (
            {"origin": pa.int64(), "destination": pa.int64(), "time": pa.string()},
            "trip",
            "'origin' holds int64 values, the dimension text",
        ),
        (
            {"origin": pa.string(), "destination": pa.string(), "time": pa.string()},
            "trip",
            "'destination' holds string values, the dimension numbers",
        ),
        (
            {"origin": pa.string(), "destination": pa.int64(), "time": pa.date32()},
            "trip",
            "'time' holds date32",
        ),
        (
            {"origin": pa.string(), "destination": pa.int64(), "time": pa.string()},
            {"person": "card", "max_trips": 2},
            "no column 'card'",
        ),
        (
            {
                "origin": pa.string(),
                "destination": pa.int64(),
                "time": pa.string(),
                "card": pa.list_(pa.int64()),
            },
            {"person": "card", "max_trips": 2},
            "a person needs text or a number",
        ),
        (
            {"origin": pa.string(), "Origin": pa.string(), "destination": pa.int64(), "time": pa.string()},
            "trip",
            "two columns are called 'Origin'",
        ),
    ],
)
def test_schema_errors_stop_before_a_row_is_read(kinds: dict[str, Any], unit: Any, message: str) -> None:
    """Columns are judged by name and type alone."""
    with pytest.raises(InputError, match=message):
        cbdp.count(_untouched(pa.schema(list(kinds.items()))), UNIVERSE, unit=unit)


def test_files_of_different_types_are_refused(tmp_path: Path) -> None:
    """A column must hold one type in all files, and be in all of them."""
    a = parquet(pa.table({"stop": [1]}), tmp_path / "a.parquet")
    b = parquet(pa.table({"stop": ["x"]}), tmp_path / "b.parquet")
    c = parquet(pa.table({"other": [1]}), tmp_path / "c.parquet")
    universe = cbdp.Universe(stop=[1])
    with pytest.raises(InputError, match=r"'stop' holds string values in .*b.parquet.* and int64 in"):
        cbdp.count([a, b], universe)
    with pytest.raises(InputError, match="no column 'stop'"):
        cbdp.count([a, c], universe)


def _failing(secret: str) -> pa.RecordBatchReader:
    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"stop": pa.array(["x"])})
        raise ValueError(f"cannot convert {secret}")

    return pa.RecordBatchReader.from_batches(pa.schema([("stop", pa.string())]), rows())


def _cut(path: Path, keep: float) -> Path:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    return path


def _damaged_parquet(folder: Path) -> Path:
    path = folder / "t.parquet"
    pa.parquet.write_table(
        pa.table({"stop": [SECRET, "x"] * 2500, "n": range(5000)}),
        path,
        compression="zstd",
        use_dictionary=False,
    )
    data = bytearray(path.read_bytes())
    data[20:200] = bytes(180)
    path.write_bytes(bytes(data))
    return path


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no file": (lambda f: f / "none.parquet", "there is no file"),
    "no match": (lambda f: str(f / "*.csv"), "there is no file"),
    "empty folder": (lambda f: f, "holds no .parquet file"),
    "another kind": (lambda f: written(f, "t.xlsx", SECRET), "trips are read from .parquet, .csv"),
    "two kinds": (
        lambda f: [parquet(pa.table({"stop": [SECRET]}), f / "a.parquet"), written(f, "b.csv", "stop\n")],
        "give one kind",
    ),
    "not Parquet": (lambda f: written(f, "t.parquet", SECRET * 50), "cannot be read as Parquet"),
    "cut Parquet": (
        lambda f: _cut(parquet(pa.table({"stop": [SECRET] * 99}), f / "t.parquet"), 0.6),
        "cannot be read as Parquet",
    ),
    "damaged Parquet": (_damaged_parquet, "cannot be read: it is damaged, or not whole"),
    "not CSV": (lambda f: written(f, "t.csv", b"\x00\x01" + SECRET.encode()), "is not a CSV file"),
    "empty CSV": (lambda f: written(f, "t.csv", ""), "is not a CSV file"),
    "no header": (lambda f: written(f, "t.csv", f"{SECRET},1\ny,2\n"), "no column 'stop': its first line"),
    "another table": (
        lambda f: [written(f, "a.csv", "stop,n\nx,1\n"), written(f, "b.csv", f"{SECRET},n\ny,2\n")],
        "b.csv', one of 2 files, has no column 'stop': its first line",
    ),
    "not gzip": (lambda f: written(f, "t.csv.gz", SECRET), "cannot be read as CSV"),
    "cut gzip": (
        lambda f: _cut(
            written(
                f,
                "t.csv.gz",
                gzip.compress(
                    b"stop,n\n" + b"".join(b"%d,%d\n" % (i * 7919 % 10007, i) for i in range(30000))
                ),
            ),
            0.7,
        ),
        "cannot be read",
    ),
    "mixed columns": (lambda _: {"stop": [1, SECRET]}, "cannot be read as a table"),
    "mixed frame": (lambda _: pd.DataFrame({"stop": [1, SECRET]}), "cannot be read as a table"),
    "uneven columns": (lambda _: {"stop": [SECRET], "card": [1, 2]}, "cannot be read as a table"),
    "failing stream": (lambda _: _failing(SECRET), "the trips cannot be read"),
    "no table": (lambda f: f"duckdb://{f}/x.db", "names no table"),
    "no database": (lambda f: f"duckdb://{f}/x.db::t", "there is no file"),
    "not a database": (lambda f: f"duckdb://{written(f, 'x.db', SECRET * 99)}::t", "no DuckDB file"),
    "unknown table": (lambda f: duckdb_url(pa.table({"stop": [1]}), f) + "x", "has none of this name"),
    "bad URL": (lambda f: f"sqlite://user:{SECRET}@/{f}/none/x.db::t", "sqlite URL"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_one_clear_error_that_quotes_no_value(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be read is one error of ours; no value of a cell is in it, nor in its traceback; no spill stays."""
    spill = tmp_path / "spill"
    data = tmp_path / "data"
    spill.mkdir()
    data.mkdir()
    make, message = BAD[kind]
    if "URL" in message:
        pytest.importorskip("ibis")
    trips = make(data)
    monkeypatch.setattr(tempfile, "tempdir", str(spill))
    unit: Any = {"person": "card", "max_trips": 2} if kind == "uneven columns" else "trip"
    with pytest.raises(InputError, match=message) as caught:
        cbdp.count(trips, cbdp.Universe(stop=["x", "y"]), unit=unit)
    shown = "".join(traceback.format_exception(caught.value))
    assert not re.search("SECRET", str(caught.value))
    assert SECRET not in shown.replace(str(data), "")
    assert list(spill.iterdir()) == []
