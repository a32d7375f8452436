"""Ibis tables of engines that have no words here: their rows come in batches, and DuckDB counts them in this process.

They are fetched as they are and compared by nobody on the way, so that no collation has a say. SQLite's columns hold values of any type, whatever was
declared: they are fetched as bytes, and read as CSV is.
"""

# ruff: noqa: S608 - the text comes from Ibis, and names are quoted where they enter a query

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from cbdp.errors import InputError
from cbdp.trips.engines import arrow
from cbdp.trips.engines.duckdb import DuckSource, connection
from cbdp.trips.engines.duckdb_dialect import StoredField, identifier
from cbdp.trips.engines.duckdb_open import Opened, Relation, reading
from cbdp.trips.kinds import Schema

ROWS = 100_000

Batches = Callable[[Sequence[str]], Iterator[Any]]


@contextmanager
def opened(backend: Any, table: Any, schema: Schema) -> Iterator[DuckSource]:
    import pyarrow as pa

    note = f"{backend.name} counts nothing itself: the rows of {schema.label} are fetched, and counted in this process"
    schema = replace(schema, notes=(note,))
    batches: Batches = lambda columns: _plain(table, columns)  # noqa: E731
    if backend.name == "sqlite":
        schema = replace(schema, kinds=dict.fromkeys(schema.kinds, pa.string()), typed=False)
        batches = lambda columns: _bytes(backend, table, columns)  # noqa: E731
    with connection() as engine, reading(schema.label):
        yield DuckSource(engine, _fetched(engine, schema, batches))


def _fetched(engine: Any, schema: Schema, batches: Batches) -> Opened:
    """Rows that are laid into DuckDB one batch after another by this thread: connections to databases belong to one."""
    read = [0]

    def native(columns: Sequence[str]) -> Relation:
        read[0] = 0
        engine.execute("DROP TABLE IF EXISTS fetched")
        with _asking(schema.label):
            for n, batch in enumerate(batches(columns)):
                read[0] += batch.num_rows
                engine.register("made", batch)
                into = "INSERT INTO fetched" if n else "CREATE TEMP TABLE fetched AS"
                engine.execute(f"{into} SELECT * FROM made")
                engine.unregister("made")
        types = {row[0]: row[1] for row in engine.sql("DESCRIBE fetched").fetchall()}
        return Relation("fetched", {c: StoredField(f"v{i}", types[f"v{i}"]) for i, c in enumerate(columns)})

    return Opened(schema, native, None, lambda: read[0])


def _plain(table: Any, columns: Sequence[str]) -> Iterator[Any]:
    """Batches as the engine hands them out, raw; the first one may be empty, and says what the columns are."""
    import pyarrow as pa

    reader = table.select(*columns).to_pyarrow_batches(chunk_size=ROWS)
    places = [reader.schema.names.index(c) for c in columns]
    made = arrow.raw_schema(reader.schema, places)
    yield pa.RecordBatch.from_arrays([pa.array([], f.type) for f in made], schema=made)
    yield from arrow.raw_batches(iter(reader), places, made)


def _bytes(backend: Any, table: Any, columns: Sequence[str]) -> Iterator[Any]:
    """Every value of SQLite as the bytes of its text, from which a number can be read again (a cast keeps 15 digits); the first batch is empty."""
    import pyarrow as pa

    names = [f"v{i}" for i in range(len(columns))]
    text = "CAST(CASE typeof({c}) WHEN 'real' THEN quote({c}) ELSE {c} END AS BLOB)"
    listed = ", ".join(text.format(c=identifier(c)) for c in columns)
    yield pa.RecordBatch.from_arrays([pa.array([], pa.binary()) for _ in columns], names=names)
    cursor = backend.con.execute(f"SELECT {listed} FROM ({backend.compile(table)})")
    try:
        while rows := cursor.fetchmany(ROWS):
            yield pa.RecordBatch.from_arrays(
                [pa.array(c, pa.binary()) for c in zip(*rows, strict=True)], names=names
            )
    finally:
        cursor.close()


@contextmanager
def _asking(label: str) -> Iterator[None]:
    import duckdb

    try:
        yield
    except (InputError, duckdb.Error):
        raise
    except Exception as wrong:  # noqa: BLE001 - every back end has errors of its own, and their text may quote private values
        raise InputError(
            f"the rows of {label} cannot be fetched ({type(wrong).__name__}): try a query there first"
        ) from None
