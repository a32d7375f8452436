"""Tables through Ibis: DuckDB's are counted in their database, SQLite's by the bytes of their values, and no URL is quoted."""

# ruff: noqa: S608 - names of tables are ours

from __future__ import annotations

import sqlite3
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from trips.engines import contract
from trips.making import as_dict, same

import cbdp
from cbdp.errors import InputError
from cbdp.trips.engines import engine_for, ibis_duckdb
from cbdp.trips.engines.ibis import Ibis

ibis = pytest.importorskip("ibis", reason="no Ibis: pip install 'cbdp[ibis]'")

pytestmark = [  # Ibis 12 calls what DuckDB 2 and pandas 3 retire
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ibis"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ibis"),
]

STOPS = cbdp.Universe(stop=["A", "a"])
TWO = {"stop": ["A", "a"] * 500, "card": ["ab", "AB", "AB", "ab"] * 250}


# DuckDB


def _duckdb(case: contract.Case, name: str = "trips") -> Any:
    database = ibis.duckdb.connect()
    database.con.register("given", case.table)
    database.con.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    return database.table(name)


@pytest.mark.parametrize("name", contract.CASES)
def test_a_table_of_duckdb_is_counted_in_its_database(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By DuckDB's own SQL: no row is handed out."""
    case = contract.CASES[name]()
    monkeypatch.setattr(ibis_duckdb, "_batches", None)
    contract.check(case, _duckdb(case), inspected=True)


@pytest.mark.parametrize("name", ["kept", "secret", "way_0_0", "stream"])
def test_a_table_that_is_called_as_ours_is_not_taken_for_it(name: str) -> None:
    """Nor is it touched."""
    case = contract.CASES["persons"]()
    table = _duckdb(case, name)
    contract.check(case, table)
    assert table.count().execute() == len(case.table)


def test_what_only_one_connection_sees_is_counted_too() -> None:
    """Temporary tables, tables in memory and expressions."""
    case = contract.CASES["numbered persons"]()
    contract.check(case, ibis.memtable(case.table))
    database = ibis.duckdb.connect()
    database.con.register("given", case.table)
    database.con.execute("CREATE TEMP TABLE trips AS SELECT * FROM given")
    contract.check(case, database.table("trips"))
    table = _duckdb(case)
    fewer = contract.Case(case.table.slice(1000, 1500), case.universe, case.columns, case.clock)
    assert same(fewer.count(fewer.table), fewer.count(table.limit(1500, offset=1000)))


def test_nothing_of_ours_stays_in_a_database(tmp_path: Path) -> None:
    """Tables are temporary, and nobody else sees them; the file can be opened by others again."""
    path, case = tmp_path / "city.db", contract.CASES["persons"]()
    database = ibis.duckdb.connect(path)
    database.con.register("given", case.table)
    database.con.execute("CREATE TABLE trips AS SELECT * FROM given")
    case.count(database.table("trips"))
    assert [row[0] for row in database.con.sql("SELECT table_name FROM duckdb_tables()").fetchall()] == [
        "trips"
    ]
    database.disconnect()
    assert case.count(f"duckdb://{path}::trips").value.sum() > 0


# SQLite


def _sqlite(folder: Path, columns: str, rows: list[tuple[Any, ...]]) -> str:
    with sqlite3.connect(folder / "city.sqlite") as database:
        database.execute(f"CREATE TABLE trips ({columns})")
        database.executemany(f"INSERT INTO trips VALUES ({', '.join('?' * len(rows[0]))})", rows)
    database.close()
    return f"sqlite://{folder / 'city.sqlite'}::trips"


@pytest.mark.parametrize("how", ["url", "table"])
def test_a_collation_of_sqlite_merges_nobody(how: str, tmp_path: Path) -> None:
    """The attack: with NOCASE, riders `ab` and `AB` alternate, and stops `A` and `a` match twice. They are told apart by bytes."""
    url = _sqlite(
        tmp_path, "stop TEXT COLLATE NOCASE, card TEXT COLLATE NOCASE", list(zip(*TWO.values(), strict=True))
    )
    trips = url if how == "url" else ibis.sqlite.connect(tmp_path / "city.sqlite").table("trips")
    assert as_dict(cbdp.count(trips, STOPS), STOPS) == {("A",): 500, ("a",): 500}
    ask = {"unit": cbdp.Person("card", 4), "entropy": contract.Fixed()}
    kept = cbdp.count(trips, STOPS, **ask)
    assert kept.value.sum() == 8
    assert same(kept, cbdp.count(pa.table(TWO), STOPS, **ask))


def test_whatever_stands_in_a_column_of_sqlite_stops_nothing(tmp_path: Path) -> None:
    """Its columns hold values of any type: those that are no stop, no number and no time are dropped, as in a CSV."""
    stamps = ["2026-03-02 08:30:00", 1772440200, 8.5, b"\xff\xfe", None, "2026-03-02", "8:59", "24:00"]
    rows = [
        (stop, at, n) for stop in (7, "7", 7.0, "x", None, b"7") for at in stamps for n in (1, "2", 2.5, "x")
    ]
    url = _sqlite(tmp_path, "stop INTEGER, at TIMESTAMP, n INTEGER", rows)
    universe = cbdp.Universe(stop=[7, 8], time=cbdp.periods("08:00", "10:00", "1h"))
    found = cbdp.count(url, universe, columns={"time": "at", "count": "n"})
    assert as_dict(found, universe) == {(7, "08:00"): 4 * 2 * 3}


def test_rows_that_are_fetched_are_said_to_be(tmp_path: Path) -> None:
    """Where an engine has no words here, the curator is told; batches that are empty, or many, change nothing."""
    url = _sqlite(tmp_path, "stop TEXT, card TEXT", list(zip(*TWO.values(), strict=True)))
    with Ibis().open(url) as source:
        assert source.schema.notes == (
            "sqlite counts nothing itself: the rows of the table 'trips' are fetched, and counted in this process",
        )
    table = ibis.polars.connect().create_table("trips", pa.table(TWO))
    ask = {"unit": cbdp.Person("card", 3), "entropy": contract.Fixed()}
    assert same(cbdp.count(table, STOPS, **ask), cbdp.count(pa.table(TWO), STOPS, **ask))
    assert len(cbdp.count(table.filter(table.stop == "none"), STOPS, **ask).index) == 0


# URLs


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "http://rider:hunter2@127.0.0.1/x::trips",
            "no engine opens http URLs: there are duckdb, spark, ibis",
        ),
        ("sqlite:///no/such/folder/x.sqlite::trips", "the sqlite URL cannot be opened|no table 'trips'"),
        (
            "trino://rider:hunter2@127.0.0.1:1/x::trips",
            "a trino URL is read by Ibis|the trino URL cannot be opened",
        ),
        ("snowflake://rider:hunter2@nowhere/x/y::trips", "the snowflake URL cannot be opened"),
        ("mysql://rider:hunter2@127.0.0.1:1/x", "a mysql URL names no table: end it with '::'"),
    ],
)
def test_a_bad_url_is_one_clear_line(url: str, message: str) -> None:
    """It says what to look at, and holds neither user nor password."""
    with pytest.raises(InputError, match=message) as caught:
        cbdp.count(url, STOPS)
    assert "\n" not in str(caught.value)
    assert "hunter" not in "".join(traceback.format_exception(caught.value))


def test_engines_know_what_is_theirs() -> None:
    """By scheme and type alone; nothing is opened for it."""
    owners = {
        "spark://h:1::t": "spark",
        "sc://h:1::t": "spark",
        "postgres://h/d::t": "ibis",
        "bigquery://p/d::t": "ibis",
        "duckdb:///x::t": "duckdb",
    }
    assert {url: engine_for(url).name for url in owners} == owners
    assert engine_for(ibis.memtable({"stop": ["A"]})).name == "ibis"
