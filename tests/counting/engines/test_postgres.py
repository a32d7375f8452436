"""PostgreSQL counts as DuckDB does, by bytes whatever its collations say, and keeps no trace of a key or a password."""

from __future__ import annotations

import datetime as dt
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from counting.engines import contract, on_page
from counting.engines.postgres import PASSWORD, Server
from counting.making import ORIGINS, as_dict
from counting.reference import reference
from counting.test_bounding_drawn import Drawn, check_facts, drawn
from counting.test_machine import cases
from hypothesis import HealthCheck, given, settings

import cbdp
from cbdp.counting import Clock
from cbdp.counting.counts import ranked_counts
from cbdp.counting.engines import ibis as ibis_warehouse
from cbdp.counting.engines.dialects import DIALECTS
from cbdp.counting.engines.ibis import Ibis, ibis_schema
from cbdp.counting.plan import make_plan
from cbdp.errors import InputError
from cbdp.privacy.unit import unit_of

ibis = pytest.importorskip("ibis", reason="no Ibis: pip install 'cbdp[postgres]'")
psycopg = pytest.importorskip("psycopg", reason="no psycopg: pip install 'cbdp[postgres]'")

TYPES = {
    "string": "text",
    "int64": "bigint",
    "double": "double precision",
    "bool": "boolean",
    "date32[day]": "date",
}
TYPES |= {
    "timestamp[us]": "timestamp",
    "timestamp[us, tz=UTC]": "timestamptz",
    "decimal128(20, 2)": "numeric",
}


IGNORING_CASE = "CREATE COLLATION IF NOT EXISTS ignoring_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"


def connected(server: Server) -> Any:
    where = {
        "host": "127.0.0.1",
        "port": server.port,
        "user": "rider",
        "password": PASSWORD,
        "dbname": "rides",
    }
    return psycopg.connect(**where, autocommit=True)


@pytest.fixture
def database(server: Server) -> Iterator[Any]:
    with connected(server) as connection:
        yield connection


def laid(database: Any, table: pa.Table, name: str = "trips", **types: str) -> None:
    """A table of the database with these rows; `types` are of columns that are to have another."""
    kinds = {f.name: types.get(f.name, TYPES[str(f.type)]) for f in table.schema}
    with database.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {name}")
        cursor.execute(f"CREATE TABLE {name} ({', '.join(f'{c} {kind}' for c, kind in kinds.items())})")
        with cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in table.to_pylist():
                copy.write_row(tuple(row.values()))


def test_the_page_on_databases_is_followed(
    server: Server, database: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it shows works on a server, with the password where it says that it may be."""
    laid(database, pa.Table.from_pylist(on_page.trips()), "page_trips")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    real = f"postgres://rider@127.0.0.1:{server.port}/rides::page_trips"
    on_page.assert_read(on_page.follow("postgres://curator@host/city::trips", real, tmp_path))


@pytest.mark.parametrize("name", contract.CASES)
def test_postgres_counts_as_duckdb_does(name: str, server: Server, database: Any) -> None:
    """The same counts, the same persons' trips and the same inspection, of rows that are read in every way."""
    case = contract.CASES[name]()
    database.execute(IGNORING_CASE)
    laid(database, case.table, **dict.fromkeys(case.folded, 'text COLLATE "ignoring_case"'))
    contract.check(case, f"{server.url}::trips", inspected=True)


@given(cases())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_postgres_counts_random_trips_as_a_plain_loop_does(server: Server, case: Any) -> None:
    """The trips of tests/counting/test_machine.py, laid into a table with a collation that ignores case."""
    fold = 'text COLLATE "ignoring_case"'
    with connected(server) as database:
        database.execute(IGNORING_CASE)
        table = pa.table({c: pa.array([r[c] for r in case.rows], t) for c, t in case.types.items()})
        table = table.cast(pa.schema([(f.name, STORED.get(f.type, f.type)) for f in table.schema]))
        laid(database, table, **{f.name: fold for f in table.schema if f.type == pa.string()})
    held = [{c: _held(v, case.types[c]) for c, v in row.items()} for row in case.rows]
    person = {"person": case.person, "most": case.most, "key": contract.KEY}
    person |= {"per": case.per, "apart": case.apart}
    wanted = reference(held, case.universe, case.columns, case.clock, **person)
    unit: Any = "trip"
    if case.person is not None:
        unit = cbdp.Person(case.person, case.most, case.per, case.apart)
    asked = {"columns": case.columns, "clock": case.clock, "unit": unit, "entropy": contract.Fixed()}
    found = cbdp.count(f"{server.url}::trips", case.universe, **asked)
    assert as_dict(found, case.universe) == {t: n for t, n in wanted.items() if n}


@given(drawn())
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_postgres_keeps_what_the_unit_says(server: Server, case: Drawn) -> None:
    """The facts and the choice of tests/counting/test_bounding_drawn.py, in a server whose own zone is another."""
    with connected(server) as database:
        laid(database, case.table)
    found = case.count(f"{server.url}::trips")
    check_facts(case, found)
    assert found == case.count(case.table)


STORED = {pa.large_string(): pa.string(), pa.dictionary(pa.int32(), pa.string()): pa.string()}
STORED |= {pa.dictionary(pa.int8(), pa.string()): pa.string()} | {
    pa.timestamp(u): pa.timestamp("us") for u in ("s", "ms", "ns")
}


def _held(value: Any, kind: pa.DataType) -> Any:
    cut = {"s": 10**6, "ms": 10**3}.get(getattr(kind, "unit", ""), 1)
    return (
        value.replace(microsecond=value.microsecond // cut * cut) if isinstance(value, dt.datetime) else value
    )


# Collations


@pytest.mark.parametrize(
    "kind", ['text COLLATE "ignoring_case"', "citext", 'char(6) COLLATE "ignoring_case"', "name"]
)
def test_no_collation_merges_persons_or_stops(kind: str, server: Server, database: Any) -> None:
    """`ab` and `AB` are two persons and `A` and `a` two stops, whatever the columns' types and collations hold for equal."""
    database.execute(IGNORING_CASE)
    database.execute("CREATE EXTENSION IF NOT EXISTS citext")
    rows = {"stop": ["A", "a"] * 500, "card": ["ab", "AB", "AB", "ab"] * 250}
    laid(database, pa.table(rows), card=kind, stop='text COLLATE "ignoring_case"')
    assert database.execute("SELECT COUNT(DISTINCT stop) FROM trips").fetchone() == (1,)
    universe = cbdp.Universe(stop=["A", "a"])
    trips = f"{server.url}::trips"
    assert as_dict(cbdp.count(trips, universe), universe) == {("A",): 500, ("a",): 500}
    kept = cbdp.count(trips, universe, unit=cbdp.Person("card", 4), entropy=contract.Fixed())
    assert int(kept.value.sum()) == 8
    here = cbdp.count(pa.table(rows), universe, unit=cbdp.Person("card", 4), entropy=contract.Fixed())
    assert as_dict(kept, universe) == as_dict(here, universe)


# Types


TOLD_APART = {  # a type → what must be there for it, and values of persons as SQL has them
    "numeric": (
        "",
        [
            "7",
            "7.0",
            "7.00",
            "0.5",
            "0.50",
            "-0.0",
            "0",
            "1e19",
            "10000000000000000000.0",
            "1e400",
            "1e400 + 0.5",
        ],
    ),
    "number_over_number": (
        "CREATE DOMAIN a_number AS numeric; CREATE DOMAIN number_over_number AS a_number CHECK (VALUE > -1)",
        ["7", "7.0", "7.00", "7.000", "8.5", "8.50"],
    ),
    "a_card": (
        "CREATE DOMAIN a_card AS text CHECK (VALUE <> 'x')",
        ["'ab'", "'AB'", "'a\u0301b'", "'áb'", "'ab '"],
    ),
    "a_whole": ("CREATE DOMAIN a_whole AS int", ["7", "8"]),
    "a_double": (
        "CREATE DOMAIN a_double AS float8",
        ["0", "'-0'", "0.1", "0.1::float8 + 0.2", "0.3", "'Infinity'"],
    ),
    "a_padded": ("CREATE DOMAIN a_padded AS char(6)", ["'ab'", "'ab  '", "'AB'"]),
    "a_colour": (
        "CREATE TYPE colour AS ENUM ('red', 'Red'); CREATE DOMAIN a_colour AS colour",
        ["'red'", "'Red'"],
    ),
    "bytea": ("", ["'\\x00'", "'\\xff'", "'\\x6162'", "'ab'"]),
    "uuid": ("", ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"]),
    "timestamptz": ("", ["'2026-03-02 10:00+00'", "'2026-03-02 11:00+01'", "'infinity'"]),
    "date": ("", ["'2026-03-02'", "'infinity'", "'4713-01-01 BC'"]),
    "boolean": ("", ["true", "false"]),
}


@pytest.mark.parametrize("kind", TOLD_APART)
def test_a_person_is_what_the_server_takes_for_one(kind: str, server: Server, database: Any) -> None:
    """Domains, also over domains, numbers with zeros at their end, padded text: taken away one by one, each changes what is claimed."""
    needed, values = TOLD_APART[kind]
    if needed:
        database.execute(needed)
    database.execute("SET extra_float_digits = 0")
    database.execute("DROP TABLE IF EXISTS typed CASCADE")
    database.execute(f"CREATE TABLE typed (stop text, card {kind})")
    for n, value in enumerate(values * 3):
        database.execute(f"INSERT INTO typed VALUES ('{'AB'[n % 2]}', CAST({value} AS {kind}))")  # noqa: S608
    database.execute(
        "CREATE VIEW seen AS SELECT stop, card, DENSE_RANK() OVER (ORDER BY card) AS p FROM typed"
    )
    persons = [row[0] for row in database.execute("SELECT DISTINCT p FROM seen").fetchall()]
    universe, unit = cbdp.Universe(stop=["A", "B"]), cbdp.Person("card", 2)

    def dense(trips: Any) -> Any:
        return cbdp.count(trips, universe, unit=unit, entropy=contract.Fixed()).dense()

    table = ibis.postgres.from_connection(database).table("seen")
    everybody = dense(f"{server.url}::seen")
    assert everybody.sum() == 2 * len(persons)
    assert (dense(table) == everybody).all(), "whatever the session says of floating numbers"
    for person in persons[:4]:
        change = everybody - dense(table.filter(table.p != person))
        assert change.min() >= 0
        assert change.sum() == 2


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("interval", "interval"),
        ("jsonb", "json"),
        ("numeric[]", "numeric[]"),
        ("a_list", "numeric[]"),
        ("a_pair", "a_pair"),
        ("numrange", "numrange"),
        ("timetz", "time with time zone"),
        ("money", "money"),
        ("inet", "inet"),
    ],
)
def test_a_person_of_a_type_whose_equality_is_not_known_is_refused(
    kind: str, shown: str, server: Server, database: Any
) -> None:
    """A day is 24 hours to PostgreSQL, and 1.0 is 1.00 in its jsonb: one line says so, names the cure, and nothing has been counted."""
    if kind == "a_list":
        database.execute("CREATE DOMAIN a_list AS numeric[]")
    if kind == "a_pair":
        database.execute("CREATE TYPE a_pair AS (x numeric)")
    database.execute("DROP TABLE IF EXISTS typed CASCADE")
    database.execute(f"CREATE TABLE typed (stop text, card {kind})")
    with pytest.raises(InputError) as caught:
        cbdp.count(f"{server.url}::typed", cbdp.Universe(stop=["A"]), unit=cbdp.Person("card", 2))
    assert str(caught.value) == (
        f"column 'card' holds {shown} values, of which two may be equal and written differently: a person needs text or a number. "
        "Make a view or a query that casts the column to text, and count that"
    )
    assert cbdp.count(f"{server.url}::typed", cbdp.Universe(stop=["A"])).value.sum() == 0, "trips are"


# No row decides the outcome


def test_values_that_are_no_times_and_no_numbers_are_dropped(server: Server, database: Any) -> None:
    """Infinite stamps, dates and numbers, NaN, 24:00 and numbers beyond a double are rows outside, and no errors."""
    database.execute("DROP TABLE IF EXISTS trips")
    database.execute("CREATE TABLE trips (at timestamptz, day date, clock time, n numeric, card numeric)")
    database.execute(
        "INSERT INTO trips VALUES ('infinity', 'infinity', '24:00', 'NaN', 'NaN'), ('-infinity', '-infinity', '09:00', 1e400, 1e400),"
        "('294276-12-31', '5874897-01-01', '10:00', -1e-400, 0.10), ('4713-01-01 BC', '4713-01-01 BC', '11:00', 7.0, 0.1),"
        "('2026-03-02 09:30+00', '2026-03-02', '12:00:00.999', 7, 0.100)"
    )
    hours, trips = cbdp.periods("00:00", "24:00", "1h"), f"{server.url}::trips"

    def counted(unit: Any = "trip", columns: Any = None, **dimension: Any) -> Any:
        universe = cbdp.Universe(**dimension)
        return as_dict(cbdp.count(trips, universe, columns=columns, unit=unit), universe)

    assert counted(columns={"time": "at"}, time=hours) == {("09:00",): 1}
    assert counted(day=[dt.date(2026, 3, 2)]) == {(dt.date(2026, 3, 2),): 1}
    assert counted(columns={"time": "clock"}, time=hours) == {(f"{h:02d}:00",): 1 for h in (9, 10, 11, 12)}
    assert counted(n=[7, 8]) == {(7,): 2}
    assert counted(n=[7.0, 0.5]) == {(7.0,): 2}
    assert counted(cbdp.Person("card", 1), n=[7, 8]) == {(7,): 1}, "0.1 and 0.100 are one number"


def test_a_count_sees_one_state_of_the_data(server: Server, database: Any) -> None:
    """Rows that come while trips are counted are in none of the queries, and a table that is there before stays as it was."""
    laid(database, pa.table({"stop": ["A"] * 10, "card": ["x"] * 10}))
    universe = cbdp.Universe(stop=["A"])
    with Ibis().open(f"{server.url}::trips") as source:
        plan = make_plan(source.schema, universe, None, cbdp.Person("card", 4), Clock())
        assert source.rows() == 10
        database.execute("INSERT INTO trips SELECT 'A', 'y' FROM generate_series(1, 10)")
        assert [n.tolist() for _, n in source.count(plan, contract.KEY)] == [[4]]
        facts = source.facts(plan)
    assert (facts.read, facts.inside, facts.most_kept, facts.allowed) == (10, 10, 4, 4)


def test_nothing_of_ours_stays(server: Server, database: Any) -> None:
    """Tables are temporary and gone with the count, also on a connection that Ibis goes on using, and in its transaction."""
    laid(database, contract.stamped(500), "persons")
    table = ibis.postgres.from_connection(database).table("persons")
    case = contract.Case(contract.stamped(500), contract.PLACES, contract.AT, unit=cbdp.Person("card", 2))
    level = database.isolation_level
    contract.check(case, table, inspected=True)
    with database.transaction():
        contract.check(case, table)
    left = "SELECT relname FROM pg_class WHERE relname LIKE 'cbdp%'"
    assert database.execute(left).fetchall() == []
    assert database.isolation_level == level
    some = table.filter(table.card != "card 7").mutate(origin=table.origin)
    fewer = pa.table(case.table.filter(pc.not_equal(case.table["card"], "card 7")).to_pydict())
    contract.check(contract.Case(fewer.cast(case.table.schema), *_rest(case)), some)


def _rest(case: contract.Case) -> tuple[Any, ...]:
    return case.universe, case.columns, case.clock, case.unit


# Secrets


def test_the_server_logs_no_key(server: Server, database: Any) -> None:
    """Every statement is in the server's log with its parameters; the key is not, in any spelling."""
    laid(database, contract.stamped(300))
    case = contract.CASES["persons"]()
    before = len(server.log.read_bytes())
    case.count(f"{server.url}::trips")
    log = server.log.read_bytes()[before:]
    assert b"SHA256" in log
    assert b"secret" in log
    assert not [s for s in contract.spellings(contract.KEY) if s in log.lower()]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "postgres://rider:hunter2@127.0.0.1:{port}/rides::trips",
            "cannot be opened .*check host, user, password",
        ),
        ("postgres://rider:hunter2@127.0.0.1:1/rides::trips", "cannot be opened"),
        ("postgres://rider:hunter2@127.0.0.1:{port}/rides", "names no table"),
        ("{url}::nothing", "no table 'nothing'"),
        ("{url}::public.nothing", "no table 'public.nothing'"),
    ],
)
def test_a_url_is_never_quoted(url: str, message: str, server: Server) -> None:
    """Whatever is wrong with it, an error holds neither its password nor its user."""
    with pytest.raises(InputError, match=message) as caught:
        cbdp.count(url.format(port=server.port, url=server.url), cbdp.Universe(stop=["A"]))
    shown = "".join(traceback.format_exception(caught.value))
    assert not [secret for secret in ("hunter2", PASSWORD, "correct+horse", "rider:") if secret in shown]


def test_an_error_quotes_no_cell(server: Server, database: Any) -> None:
    """A view that fails on a row stops the count, and its message says nothing of the row."""
    laid(database, pa.table({"stop": ["SECRET-417"]}))
    database.execute("CREATE OR REPLACE VIEW failing AS SELECT CAST(stop AS int)::text AS stop FROM trips")
    with pytest.raises(InputError, match="could not be counted by PostgreSQL") as caught:
        cbdp.count(f"{server.url}::public.failing", cbdp.Universe(stop=["A"]))
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))
    database.execute("DROP VIEW failing")


# The same by Ibis alone


@pytest.mark.parametrize("name", ["weights", "texts", "numbers", "real persons"])
def test_a_database_is_counted_by_ibis_interface_alone(name: str, server: Server, database: Any) -> None:
    """What BigQuery, Snowflake, Databricks and Trino are counted by, tried on a server that is here."""
    case = contract.CASES[name]()
    if name == "weights":  # fewer public keys: Ibis lays them one by one
        case = contract.Case(case.table, cbdp.Universe(origin=ORIGINS), {"count": "weight"})
    laid(database, case.table)
    backend = ibis.postgres.from_connection(database)
    table = backend.table("trips")
    schema = ibis_schema(table, "the table")
    here = case.count(case.table)
    with ibis_warehouse.open_warehouse(
        backend, backend.compile(table), schema, DIALECTS["postgres"]
    ) as source:
        plan = make_plan(schema, case.universe, case.columns, unit_of(case.unit), case.clock)
        key = None if plan.bound is None else contract.KEY
        index, value = ranked_counts(source.count(plan, key), case.universe, plan)
        facts = source.facts(plan)
        statuses = source.statuses(plan)
    assert index.tolist() == here.index.tolist()
    assert value.tolist() == here.value.tolist()
    assert facts.read == statuses.rows.sum() == len(case.table)
    assert database.execute("SELECT relname FROM pg_class WHERE relname LIKE 'cbdp%'").fetchall() == []
