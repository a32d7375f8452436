"""PostgreSQL: trips are counted by the server, in one transaction that sees one state of the data and leaves nothing behind.

The key goes in by COPY, whose data the server writes into no log. Tables of ours are temporary, and vanish with the transaction's rollback.
"""

# ruff: noqa: S608 - every name and number in these queries is ours, and text is quoted where it enters

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from cbdp.errors import InputError
from cbdp.trips.engines.sql_source import SqlSource, batch_of, ordered, unique
from cbdp.trips.engines.words import POSTGRES
from cbdp.trips.kinds import Schema
from cbdp.trips.plan import CountingPlan

ROWS = 100_000  # of a batch that comes back
FIRST_OWN = 16384  # numbers of types from here on are not PostgreSQL's own
KNOWN = {
    "bool": "bool_",
    "bytea": "binary",
    "int2": "int16",
    "int4": "int32",
    "int8": "int64",
    "date": "date32",
}
KNOWN |= {"float4": "float32", "float8": "float64"}
KNOWN |= dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid"), "string")
JSON = re.compile(r"^!?json", re.IGNORECASE)
OLDEST = 140000  # EXTRACT gives exact numbers from version 14 on
TYPES = {"int64": ("BIGINT", ">i8"), "double": ("DOUBLE PRECISION", ">f8"), "binary": ("BYTEA", "")}


@contextmanager
def opened(backend: Any, text: str, schema: Schema) -> Iterator[PostgresSource]:
    """A query's rows (`text`), read by the connection that Ibis has."""
    connection = backend.con
    with _snapshot(connection):
        _check(connection)
        yield PostgresSource(connection, text, _resolved(connection, text, schema))


@contextmanager
def _snapshot(connection: Any) -> Iterator[None]:
    """A transaction that sees the data as they are now, and is rolled back; inside another one, as that one sees them."""
    from psycopg import IsolationLevel
    from psycopg.pq import TransactionStatus

    idle = connection.info.transaction_status == TransactionStatus.IDLE
    before = connection.isolation_level
    if idle:
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
    try:
        with connection.transaction(force_rollback=True):
            connection.execute("SET LOCAL TIME ZONE 'UTC'")
            connection.execute("SET LOCAL standard_conforming_strings = on")
            connection.execute("SET LOCAL cursor_tuple_fraction = 1")
            connection.execute("SET LOCAL extra_float_digits = 1")  # else two numbers may be one text
            yield
    finally:
        if idle:
            connection.isolation_level = before


def _resolved(connection: Any, text: str, schema: Schema) -> Schema:
    """The schema by the server's own types: it describes a domain, also one over another, by the type that it rests on. Proof: docs/proofs/bounding.md.

    Of types that are not known here two values may be equal and written differently (jsonb, interval, arrays, types of extensions).
    """
    import psycopg
    import pyarrow as pa

    try:
        answer = connection.execute(f"SELECT * FROM ({text}) s LIMIT 0")
        types = {column.name: int(column.type_code) for column in answer.description}
        named = "SELECT oid::bigint, typtype::text, typname::text, format_type(oid, NULL) FROM pg_catalog.pg_type WHERE oid = ANY(%s)"
        rows = {row[0]: row[1:] for row in connection.execute(named, [list(types.values())]).fetchall()}
    except psycopg.Error as wrong:
        raise InputError(
            f"{schema.label} cannot be opened by PostgreSQL ({type(wrong).__name__}): try a query there first"
        ) from None
    arrow = {name: getattr(pa, kind)() for name, kind in KNOWN.items()}
    arrow |= {
        "time": pa.time64("us"),
        "timestamp": pa.timestamp("us"),
        "timestamptz": pa.timestamp("us", "UTC"),
    }
    kinds, unequal = {}, {}
    for column, before in schema.kinds.items():
        category, name, shown = rows[types[column]]
        if JSON.search(schema.unequal.get(column, "")):  # Ibis casts it to text in its query
            kinds[column], unequal[column] = before, "json"
        elif category == "e" or (name == "citext" and types[column] >= FIRST_OWN):
            kinds[column] = pa.string()
        elif types[column] < FIRST_OWN and name == "numeric":
            kinds[column] = before if pa.types.is_decimal(before) else pa.decimal128(38, 0)
        elif types[column] < FIRST_OWN and name in arrow:
            kinds[column] = arrow[name]
        else:
            kinds[column], unequal[column] = pa.binary(), shown
    return replace(schema, kinds=kinds, unequal=unequal)


def _check(connection: Any) -> None:
    if connection.info.server_version < OLDEST:
        raise InputError("trips are counted in PostgreSQL 14 or newer: this server is older")
    encoding = connection.execute("SHOW server_encoding").fetchone()[0]
    if encoding != "UTF8":  # elsewhere a text that UTF-8 does not know would stop the count
        raise InputError(f"the database's encoding is {encoding}: count in one whose encoding is UTF8")


class PostgresSource(SqlSource):
    """Trips that are open in PostgreSQL."""

    def __init__(self, connection: Any, text: str, schema: Schema) -> None:
        super().__init__(schema, POSTGRES)
        self._connection, self._text = connection, f"({text}) s"

    def rows(self) -> int:
        with self._reading():
            return self._one(f"SELECT COUNT(*) FROM {self._text}")

    def _trips(self, plan: CountingPlan) -> tuple[str, list[str]]:
        return self._text, [POSTGRES.identifier(f.name) for f in plan.fields]

    def _put(self, name: str, table: Any) -> str:
        made = unique(name)
        columns = ", ".join(f"{f.name} {TYPES[str(f.type)][0]}" for f in table.schema)
        with self._connection.cursor() as cursor:
            cursor.execute(f"CREATE TEMP TABLE {made} ({columns}) ON COMMIT DROP")
            with cursor.copy(f"COPY {made} FROM STDIN (FORMAT BINARY)") as copy:
                for block in _copied(table):
                    copy.write(block)
            cursor.execute(f"ANALYZE {made}")
        return made

    def _drop(self, name: str) -> None:
        self._connection.execute(f"DROP TABLE IF EXISTS {name}")

    def _keep(self, query: str) -> str:
        made = unique("kept")
        self._connection.execute(f"CREATE TEMP TABLE {made} ON COMMIT DROP AS {query}")
        return made

    def _batches(self, query: str, most: int | None = None, *, by: str | None = None) -> Iterator[Any]:  # noqa: ARG002
        """By a cursor of the server's, so that only a batch is here at a time."""
        with self._connection.cursor(name=unique("cursor")) as cursor:
            cursor.execute(ordered(query, by))
            while rows := cursor.fetchmany(ROWS):
                yield batch_of(rows)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as wrong:  # its text may quote private values
            raise InputError(
                f"{self.schema.label} could not be counted by PostgreSQL ({type(wrong).__name__}): its own log says why"
            ) from None


def _copied(table: Any) -> Iterator[bytes]:
    """A table in the binary format of COPY: for each row the number of its fields, for each field its length and its bytes."""
    yield b"PGCOPY\n\xff\r\n\0" + bytes(8)
    if any(TYPES[str(f.type)][1] == "" for f in table.schema):
        width = table.num_columns.to_bytes(2)
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            fields = (v if isinstance(v, bytes) else v.to_bytes(8, signed=True) for v in row)
            yield width + b"".join(len(f).to_bytes(4) + f for f in fields)
    else:
        kinds = [TYPES[str(f.type)][1] for f in table.schema]
        parts = [x for i, kind in enumerate(kinds) for x in ((f"l{i}", ">i4"), (f"v{i}", kind))]
        rows = np.empty(len(table), dtype=[("n", ">i2"), *parts])
        rows["n"] = len(kinds)
        for i, column in enumerate(table.columns):
            rows[f"l{i}"], rows[f"v{i}"] = 8, column.to_numpy()
        yield rows.tobytes()
    yield b"\xff\xff"
