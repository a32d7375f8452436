"""Tables through Ibis: DuckDB's are counted in their database, SQLite's by the bytes of their values, and no URL is quoted."""

# ruff: noqa: S608 - names of tables are ours

from __future__ import annotations

import sqlite3
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from counting.engines import contract
from counting.making import as_dict, same

import cbdp
from cbdp.counting.engines import engine_for
from cbdp.counting.engines import ibis as ibis_duckdb
from cbdp.counting.engines.ibis import Ibis
from cbdp.errors import InputError

ibis = pytest.importorskip("ibis", reason="no Ibis: pip install 'cbdp[ibis]'")

pytestmark = [  # Ibis 12 calls what DuckDB 2 and pandas 3 retire
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ibis"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ibis"),
]

STOPS = cbdp.Universe(stop=["A", "a"])
TWO = {"stop": ["A", "a"] * 500, "card": ["ab", "AB", "AB", "ab"] * 250}


# DuckDB


def _duckdb(case: contract.Case, name: str = "trips", collation: str = "", default: str = "") -> Any:
    """A table of a database; of the columns that are folded, or of all, with a collation."""
    database = ibis.duckdb.connect()
    database.con.register("given", case.table)
    types = dict(row[:2] for row in database.con.sql("DESCRIBE given").fetchall())
    types |= {c: f"VARCHAR COLLATE {collation}" for c in case.folded if collation}
    database.con.execute(f"CREATE TABLE {name} ({', '.join(f'{c} {kind}' for c, kind in types.items())})")
    database.con.execute(f"INSERT INTO {name} SELECT * FROM given")
    database.con.execute(f"SET default_collation = '{default}'")
    return database.table(name)


@pytest.mark.parametrize("name", contract.CASES)
def test_a_table_of_duckdb_is_counted_in_its_database(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By DuckDB's own SQL: no row is handed out."""
    case = contract.CASES[name]()
    monkeypatch.setattr(ibis_duckdb, "_duckdb_batches", None)
    contract.check(case, _duckdb(case), inspected=True)


@pytest.mark.parametrize("name", [name for name, make in contract.CASES.items() if make().folded])
@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NOCASE.NOACCENT"])
@pytest.mark.parametrize("where", ["columns", "database", "both", "url"])
def test_no_collation_of_duckdb_has_a_say(name: str, collation: str, where: str, tmp_path: Path) -> None:
    """Of columns, of the whole database, or of both: counts, persons and inspections are those of bytes; the database keeps its collation."""
    case = contract.CASES[name]()
    columns = collation if where in ("columns", "both", "url") else ""
    table = _duckdb(case, collation=columns, default=collation if where in ("database", "both") else "")
    con = table.get_backend().con
    alike = con.sql("SELECT count(DISTINCT stop), count(DISTINCT encode(stop)) FROM trips").fetchall()[0]
    assert alike[0] < alike[1], "the collation is there"
    if where == "url":
        con.execute(f"ATTACH '{tmp_path / 'city.db'}' AS city")
        made = con.sql("SELECT sql FROM duckdb_tables() WHERE table_name = 'trips'").fetchall()[0][0]
        con.execute(made.replace("TABLE trips", "TABLE city.trips", 1))
        con.execute("INSERT INTO city.trips SELECT * FROM trips; DETACH city")
        contract.check(case, f"duckdb://{tmp_path / 'city.db'}::trips", inspected=True)
        return
    contract.check(case, table, inspected=True)
    assert con.sql("SELECT current_setting('default_collation')").fetchall() == [
        (collation if where in ("database", "both") else "",)
    ]


@pytest.mark.parametrize("where", ["table", "fetched", "url"])
@pytest.mark.parametrize("kind", ["INTERVAL", "TIME WITH TIME ZONE", "INTEGER[]", "STRUCT(a INTEGER)"])
def test_a_person_of_a_type_that_is_written_in_two_ways_is_refused(
    kind: str, where: str, tmp_path: Path
) -> None:
    """In DuckDB a month is 30 days, and is written differently: it cannot be a person."""
    database = ibis.duckdb.connect(tmp_path / "city.db")
    temporary = "TEMP" if where == "fetched" else ""
    database.con.execute(f"CREATE {temporary} TABLE trips (stop VARCHAR, card {kind})")
    trips: Any = database.table("trips")
    if where == "url":
        database.disconnect()
        trips = f"duckdb://{tmp_path / 'city.db'}::trips"
    with pytest.raises(InputError, match=r"column 'card' holds .* values.*a person needs text or a number"):
        cbdp.count(trips, STOPS, unit=cbdp.Person("card", 4))


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


def test_numbers_of_sqlite_are_persons_by_their_value(tmp_path: Path) -> None:
    """All digits of them count, and not the 15 that a cast to text keeps; 7, 7.0 and '7' are one."""
    path = tmp_path / "city.db"
    cells = [0.3, 0.1 + 0.2, 1234567890123456.0, 1234567890123457.0, 1e300, 7, 7.0, "7", "07", 1e15, 10**15]
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE trips (stop TEXT, card)")
        database.executemany("INSERT INTO trips VALUES ('A', ?)", [(c,) for c in cells])
    stops = cbdp.Universe(stop=["A", "B"])
    found = cbdp.count(f"sqlite://{path}::trips", stops, unit=cbdp.Person("card", 1))
    assert found.value.tolist() == [7]
    halves = cbdp.Universe(card=[0.3, 7.0])
    assert cbdp.count(f"sqlite://{path}::trips", halves).value.tolist() == [1, 4]
