"""PostgreSQL: trips are counted by the server, in one transaction that sees one state of the data and leaves nothing behind.

The key goes in by COPY, whose data the server writes into no log. Tables of ours are temporary, and vanish with the transaction's rollback.
"""

# ruff: noqa: S608 - every name and number in these queries is ours, and text is quoted where it enters

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cbdp.errors import InputError
from cbdp.trips.engines.sql_source import SqlSource, batch_of, ordered, unique
from cbdp.trips.engines.words import POSTGRES
from cbdp.trips.kinds import Schema
from cbdp.trips.plan import CountingPlan

ROWS = 100_000  # of a batch that comes back
OLDEST = 140000  # EXTRACT gives exact numbers from version 14 on
TYPES = {"int64": ("BIGINT", ">i8"), "double": ("DOUBLE PRECISION", ">f8"), "binary": ("BYTEA", "")}


@contextmanager
def opened(backend: Any, text: str, schema: Schema) -> Iterator[PostgresSource]:
    """A query's rows (`text`), read by the connection that Ibis has."""
    connection = backend.con
    with _snapshot(connection):
        _check(connection)
        yield PostgresSource(connection, text, schema)


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
            yield
    finally:
        if idle:
            connection.isolation_level = before


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
