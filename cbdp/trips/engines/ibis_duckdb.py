"""Ibis tables of DuckDB: counted in their database by the DuckDB engine, on a cursor of its own, whose temporary tables nobody else sees.

Columns may have collations, and so may the database as a whole (`default_collation`, which is not ours to set): persons are bytes here.
"""

# ruff: noqa: S608 - the text comes from Ibis, and names are quoted where they enter a query

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from cbdp.trips.engines import duckdb_open
from cbdp.trips.engines.arrow import ROWS
from cbdp.trips.engines.duckdb import DuckSource, connection
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
                fetched = stream(engine, arrow, lambda columns: _batches(table, columns), schema.label)
                written = {**schema.unequal, **_unequal(backend, text)}
                yield DuckSource(engine, replace(fetched, schema=replace(fetched.schema, unequal=written)))
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


def _unequal(backend: Any, text: str) -> dict[str, str]:
    import duckdb

    try:
        return duckdb_open.unequal(backend.con, f"({text})")
    except duckdb.CatalogException:  # a table that Ibis itself keeps in memory
        return {}


def _there(cursor: Any, text: str, schema: Schema) -> Opened:
    """The table, read by DuckDB where it is."""
    source = f"({text})"

    def relation(columns: Sequence[str]) -> Relation:
        return duckdb_open.native(cursor, source, columns, collated=True, default=True)

    def rows() -> int:
        return int(cursor.sql(f"SELECT count(*) FROM {source}").fetchall()[0][0])

    return Opened(replace(schema, unequal=duckdb_open.unequal(cursor, source)), relation, None, rows)


def _batches(table: Any, columns: Sequence[str]) -> Any:
    """A table's rows by the connection that has it. Ibis 12 cannot stream from DuckDB 2, so the relation itself is taken."""
    import duckdb

    chosen = table.select(*columns)
    backend = chosen.get_backend()
    try:
        return backend.con.sql(backend.compile(chosen)).to_arrow_reader(ROWS)
    except duckdb.CatalogException:  # a table that Ibis itself keeps in memory
        return chosen.to_pyarrow().to_reader()
