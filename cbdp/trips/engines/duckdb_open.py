"""What DuckDB opens: files, its own databases, and tables in memory. Opening looks at schemas, headers and footers alone."""

# ruff: noqa: S608 - names and texts are quoted where they enter a query

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbdp.errors import InputError
from cbdp.machine import SETTING, engine_memory_mb
from cbdp.trips import files as on_disk
from cbdp.trips.engines import arrow, duckdb_prepare
from cbdp.trips.engines.duckdb_dialect import StoredField, identifier, literal
from cbdp.trips.kinds import Schema, check_names
from cbdp.trips.preparing import Prepared

# types of which two values are equal where they are written alike, and nowhere else; numbers are read by value
EQUAL = re.compile(
    r"VARCHAR|UUID|JSON|ENUM\(.*\)|BLOB|BOOLEAN|DATE|TIME|TIME_NS|TIMESTAMP(_S|_MS|_NS| WITH TIME ZONE)?|FLOAT|DOUBLE|DECIMAL\(.*\)"
    r"|U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|BIGNUM|BIT|\"NULL\"|NULL",
    re.DOTALL,
)


@dataclass(frozen=True)
class Relation:
    """What stands after FROM, and where each column is found in it."""

    text: str
    stored: dict[str, StoredField]


@dataclass(frozen=True)
class Opened:
    """Open trips: how their rows are reached, by DuckDB's own reader and by a stream of raw columns."""

    schema: Schema
    native: Callable[[Sequence[str]], Relation] | None
    raw: Callable[[Sequence[str]], Relation] | None
    rows: Callable[[], int]  # rows there are, by the source's own books; a stream knows when it has been read
    changed: Callable[[], tuple[str, ...]] = field(default=tuple)
    damaged: str = ""  # what to say when the rows cannot be read


def open_trips(engine: Any, trips: Any, wanted: Sequence[str] | None) -> Opened:
    if isinstance(trips, Prepared):
        return duckdb_prepare.opened(engine, open_trips(engine, trips.trips, trips.by.needs), trips.by)
    if isinstance(trips, str) and "://" in trips:
        return _database(engine, trips)
    if on_disk.are_files(trips):
        found = on_disk.find(trips)
        return _parquet(engine, found, wanted) if on_disk.is_parquet(found) else _csv(engine, found, wanted)
    reader = arrow.reader_of(trips, wanted)
    return stream(engine, reader.schema, lambda _: reader, "the trips")


def stream(engine: Any, schema: Any, reader: Callable[[Sequence[str]], Any], label: str) -> Opened:
    """Record batches that can be read once, made by `reader` for the columns that it is asked for (or more)."""
    read = [0]

    def counted(batches: Any) -> Iterator[Any]:
        for batch in batches:
            read[0] += batch.num_rows
            yield batch

    def raw(columns: Sequence[str]) -> Relation:
        batches = reader(columns)
        places = [batches.schema.names.index(c) for c in columns]
        made = arrow.raw_schema(batches.schema, places)
        return register(engine, columns, made, arrow.raw_batches(counted(batches), places, made))

    return Opened(Schema(label, arrow.kinds_of(schema)), None, raw, lambda: read[0])


def register(engine: Any, columns: Sequence[str], schema: Any, batches: Iterator[Any]) -> Relation:
    import pyarrow as pa

    engine.register("stream", pa.RecordBatchReader.from_batches(schema, batches))
    types = _types(engine, "stream")
    return Relation("stream", {c: StoredField(f"v{i}", types[f"v{i}"]) for i, c in enumerate(columns)})


def _types(engine: Any, relation: str) -> dict[str, str]:
    return {row[0]: row[1] for row in engine.sql(f"DESCRIBE SELECT * FROM {relation}").fetchall()}


def native(
    engine: Any, text: str, columns: Sequence[str], *, collated: bool = False, default: bool = False
) -> Relation:
    """A relation of DuckDB's own; `collated` columns may have collations, and with `default` so may the connection."""
    types = _types(engine, text)
    stored = {}
    for column in columns:
        name, kept = identifier(column), types[column]
        if kept in ("UUID", "JSON") or kept.startswith("ENUM"):  # text to Arrow, and to us
            name, kept = f"CAST({name} AS VARCHAR)", "VARCHAR"
        if collated and kept == "VARCHAR":  # bytes have no collation, nor has what is made of them
            name = f"decode(encode({name}))"
        stored[column] = StoredField(name, kept, default)
    return Relation(text, stored)


def unequal(engine: Any, text: str) -> dict[str, str]:
    """Columns of types of which it is not known that equal values are written alike: in DuckDB a month is 30 days."""
    return {c: kept for c, kept in _types(engine, text).items() if not EQUAL.fullmatch(kept)}


# Files


def _parquet(engine: Any, found: on_disk.Files, wanted: Sequence[str] | None) -> Opened:
    kinds = arrow.parquet_kinds(found.paths[0])
    if wanted is not None:
        arrow.check_alike(found.paths, wanted)
    listed = ", ".join(_file(p) for p in found.paths)
    text = f"read_parquet([{listed}], hive_partitioning = false)"

    def raw(columns: Sequence[str]) -> Relation:
        import pyarrow as pa

        schema = pa.schema([(f"v{i}", arrow.raw_type(kinds[c])) for i, c in enumerate(columns)])
        return register(engine, columns, schema, arrow.parquet_batches(found.paths, columns, schema))

    return Opened(
        Schema(found.label, kinds, notes=found.notes),
        lambda columns: native(engine, text, columns),
        raw,
        lambda: arrow.parquet_rows(found.paths),
        found.changed,
        ": it is damaged, or not whole",
    )


def _csv(engine: Any, found: on_disk.Files, wanted: Sequence[str] | None) -> Opened:
    """CSV as bytes: types are ours to find, never guessed from private rows. The first line names the columns."""
    import pyarrow as pa

    from cbdp.trips import rows

    headers = {path: rows.header(path) for path in found.paths}
    for path, (_, names) in headers.items():
        have = "the trips have" if len(headers) == 1 else f"{str(path)!r}, one of {len(headers)} files, has"
        check_names(names, wanted or (), quoted=False, have=have)
    tally = rows.Tally()

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        tally.lines = tally.records = tally.rows = 0
        for path, (mark, names) in headers.items():
            yield from rows.batches(path, mark, len(names), [names.index(c) for c in columns], tally)

    def raw(columns: Sequence[str]) -> Relation:
        schema = pa.schema([(f"v{i}", pa.binary()) for i in range(len(columns))])
        return register(engine, columns, schema, batches(columns))

    first = dict.fromkeys(headers[found.paths[0]][1], pa.string())
    schema = Schema(found.label, first, typed=False, notes=found.notes)
    hint = ": it is damaged, or not whole"
    return Opened(schema, None, raw, lambda: min(tally.records, tally.lines), found.changed, hint)


def _file(path: Path) -> str:
    """A path that the engine takes as it stands, brackets and stars being its patterns."""
    return literal(re.sub(r"([\[*?])", r"[\1]", str(path)))


# Databases


def _database(engine: Any, url: str) -> Opened:
    """A table of a DuckDB file, attached for reading. `duckdb:///x.db` is /x.db, or x.db where there is no /x.db."""
    place, table = split_url(url)
    place = place.removeprefix("duckdb://")
    path = next((p for p in (Path(place), Path(place.lstrip("/"))) if p.is_file()), None)
    if path is None:
        raise InputError(f"there is no file {place!r}")
    found = on_disk.Files((path,), (), (on_disk.identity(path),))
    with reading(repr(str(path)), ": it is no DuckDB file, or another process holds it"):
        engine.execute(f"ATTACH {literal(str(path))} AS source (READ_ONLY)")
    text = ".".join(identifier(part) for part in ["source", *table.split(".")])
    with reading(f"the table {table!r}", f": {str(path)!r} has none of this name"):
        kinds = arrow.kinds_of(engine.sql(f"SELECT * FROM {text} LIMIT 0").to_arrow_table().schema)
    schema = Schema(f"the table {table!r}", kinds, unequal=unequal(engine, text))

    def rows() -> int:
        return int(engine.sql(f"SELECT count(*) FROM {text}").fetchall()[0][0])

    return Opened(
        schema, lambda columns: native(engine, text, columns, collated=True), None, rows, found.changed
    )


def split_url(url: str) -> tuple[str, str]:
    """The database and the table of a URL; a URL may hold a password and is never quoted."""
    place, _, table = url.rpartition("::")
    if not place or not table:
        scheme = url.partition("://")[0]
        raise InputError(f"a {scheme} URL names no table: end it with '::' and the table's name")
    return place, table


@contextmanager
def reading(label: str, hint: str = "") -> Iterator[None]:
    """Turn the engine's errors into ours: without their text, which may quote private values."""
    import duckdb
    import pyarrow as pa

    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.Error, pa.ArrowException, MemoryError, OSError, EOFError) as wrong:
        # past the first batch Arrow passes the engine's errors on as its own, so only their text tells them apart
        if isinstance(wrong, MemoryError) or "Out of Memory" in str(wrong):
            raise InputError(
                f"counting needs more than the {engine_memory_mb()} MB of memory that it may hold, or the temporary folder is full: make room there, "
                f"or set the environment variable {SETTING} to more megabytes"
            ) from None
        raise InputError(f"{label} cannot be read{hint or f' ({type(wrong).__name__})'}") from None
