"""Ibis tables of DuckDB: counted in their database by the DuckDB engine, on a cursor of its own, whose temporary tables nobody else sees."""

# ruff: noqa: S608 - the text comes from Ibis, and names are quoted where they enter a query

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cbdp.trips.engines.arrow import ROWS
from cbdp.trips.engines.duckdb import DuckSource, connection
from cbdp.trips.engines.duckdb_dialect import StoredField, identifier
from cbdp.trips.engines.duckdb_open import Opened, Relation, reading, stream
from cbdp.trips.kinds import Schema

OURS = re.compile(
    r"\b(kept|made|period_of|rows_inside|secret|spooled|stream|(way|zero|zone)_[0-9_]+)\b", re.IGNORECASE
)


@contextmanager
def opened(backend: Any, table: Any, schema: Schema) -> Iterator[DuckSource]:
    with reading(schema.label):
        text = backend.compile(table)
        cursor = None if OURS.search(text) else _cursor(backend, text)
        if cursor is None:
            with connection() as engine:
                arrow = table.schema().to_pyarrow()
                yield DuckSource(
                    engine, stream(engine, arrow, lambda columns: _batches(table, columns), schema.label)
                )
            return
        try:
            yield DuckSource(cursor, _there(cursor, text, schema))
        finally:
            cursor.close()


def _cursor(backend: Any, text: str) -> Any:
    """A second connection to the same database; None where the table is temporary, and only the first one sees it."""
    import duckdb

    cursor = backend.con.cursor()
    try:
        cursor.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        cursor.sql(f"SELECT * FROM ({text}) LIMIT 0").fetchall()
    except duckdb.Error:
        cursor.close()
        return None
    return cursor


def _there(cursor: Any, text: str, schema: Schema) -> Opened:
    """The table, read by DuckDB where it is."""
    source = f"({text})"

    def native(columns: Sequence[str]) -> Relation:
        types = {row[0]: row[1] for row in cursor.sql(f"DESCRIBE SELECT * FROM {source}").fetchall()}
        return Relation(source, {c: StoredField(identifier(c), types[c]) for c in columns})

    def rows() -> int:
        return int(cursor.sql(f"SELECT count(*) FROM {source}").fetchall()[0][0])

    return Opened(schema, native, None, rows)


def _batches(table: Any, columns: Sequence[str]) -> Any:
    """A table's rows by the connection that has it. Ibis 12 cannot stream from DuckDB 2, so the relation itself is taken."""
    import duckdb

    chosen = table.select(*columns)
    backend = chosen.get_backend()
    try:
        return backend.con.sql(backend.compile(chosen)).to_arrow_reader(ROWS)
    except duckdb.CatalogException:  # a table that Ibis itself keeps in memory
        return chosen.to_pyarrow().to_reader()
