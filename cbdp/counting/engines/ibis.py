"""Tables of other engines through Ibis, which connects, says what columns there are, and hands back answers.

    postgres, bigquery, snowflake, databricks, trino    counted there, by the plan's SQL in their dialects
    pyspark, duckdb                                     counted there, as Spark and DuckDB are
    any other                                           has no dialect here: its rows are fetched in batches, and counted by DuckDB in this process

Whichever it is, keys and persons are compared as bytes, and never by a column's collation.
"""

# ruff: noqa: S608 - the text comes from Ibis, names and numbers are ours, and names are quoted where they enter a query

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cbdp.counting import columns as arrow
from cbdp.counting.columns import BATCH_ROWS, Schema, check_distinct
from cbdp.counting.engines import Engine, Source
from cbdp.counting.engines import duckdb as duckdb_open
from cbdp.counting.engines.dialects import DIALECTS, POSTGRES_TEMPLATES, DialectTemplates
from cbdp.counting.engines.duckdb import (
    DuckSource,
    Opened,
    Relation,
    StoredField,
    connection,
    identifier,
    open_stream,
    readable_errors,
    split_url,
)
from cbdp.counting.engines.spark import open_frame
from cbdp.counting.engines.sql_source import TemplateSource, ordered_query, record_batch, unique_name
from cbdp.counting.plan import CountingPlan
from cbdp.errors import InputError

if TYPE_CHECKING:
    import duckdb
    import ibis.expr.types as ir
    import psycopg
    import pyarrow as pa
    from ibis.backends import BaseBackend
    from ibis.expr.datatypes import DataType

# DuckDB: counted in its database by the DuckDB engine, on a cursor of its own, whose temporary tables nobody else sees.
# Columns may have collations, and so may the database as a whole (`default_collation`, which is not ours to set): persons are bytes here.


# names of temporary tables that a count makes in the database: a query that has one of them is not read in place, where ours would hide its own
RESERVED_TABLE_NAMES = re.compile(
    r"\b(kept|made|prepared|period_of|rows_inside|secret|spooled|stream|(way|zero|zone)_[0-9_]+)\b",
    re.IGNORECASE,
)


@contextmanager
def open_duckdb_table(backend: BaseBackend, table: ir.Table, schema: Schema) -> Iterator[DuckSource]:
    with readable_errors(schema.label):
        text = backend.compile(table)
        cursor = None if RESERVED_TABLE_NAMES.search(text) else _cursor(backend, text)
        if cursor is None:
            with connection() as engine:
                arrow = table.schema().to_pyarrow()
                fetched = open_stream(
                    engine, arrow, lambda columns: _duckdb_batches(table, columns), schema.label
                )
                written = {**schema.unequal, **_unequal_columns(backend, text)}
                yield DuckSource(engine, replace(fetched, schema=replace(fetched.schema, unequal=written)))
            return
        try:
            yield DuckSource(cursor, _open_in_place(cursor, text, schema))
        finally:
            cursor.close()


def _cursor(backend: BaseBackend, text: str) -> duckdb.DuckDBPyConnection | None:
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


def _unequal_columns(backend: BaseBackend, text: str) -> dict[str, str]:
    import duckdb

    try:
        return duckdb_open.unequal_columns(backend.con, f"({text})")
    except duckdb.CatalogException:  # a table that Ibis itself keeps in memory
        return {}


def _open_in_place(cursor: duckdb.DuckDBPyConnection, text: str, schema: Schema) -> Opened:
    """The table, read by DuckDB where it is."""
    source = f"({text})"

    def relation(columns: Sequence[str]) -> Relation:
        return duckdb_open.native_relation(cursor, source, columns, collated=True, default=True)

    def rows() -> int:
        return int(cursor.sql(f"SELECT count(*) FROM {source}").fetchall()[0][0])

    return Opened(replace(schema, unequal=duckdb_open.unequal_columns(cursor, source)), relation, None, rows)


def _duckdb_batches(table: ir.Table, columns: Sequence[str]) -> pa.RecordBatchReader:
    """A table's rows by the connection that has it. Ibis 12 cannot stream from DuckDB 2, so the relation itself is taken."""
    import duckdb

    chosen = table.select(*columns)
    backend = chosen.get_backend()
    try:
        return backend.con.sql(backend.compile(chosen)).to_arrow_reader(BATCH_ROWS)
    except duckdb.CatalogException:  # a table that Ibis itself keeps in memory
        return chosen.to_pyarrow().to_reader()


# Engines that have no dialect here: their rows come in batches, and DuckDB counts them in this process. They are fetched as they are and compared by nobody on the way, so that no collation has a say. SQLite's columns hold values of any type, whatever was
# declared: they are fetched as bytes, and read as CSV is.


FETCHED_ROWS = 100_000  # rows of a batch that is fetched

BatchSource = Callable[[Sequence[str]], Iterator["pa.RecordBatch"]]


@contextmanager
def open_fetched(backend: BaseBackend, table: ir.Table, schema: Schema) -> Iterator[DuckSource]:
    import pyarrow as pa

    note = f"{backend.name} counts nothing itself: the rows of {schema.label} are fetched, and counted in this process"
    schema = replace(schema, notes=(note,))
    batches: BatchSource = lambda columns: _plain_batches(table, columns)  # noqa: E731
    if backend.name == "sqlite":
        schema = replace(schema, kinds=dict.fromkeys(schema.kinds, pa.string()), typed=False)
        batches = lambda columns: _sqlite_batches(backend, table, columns)  # noqa: E731
    with connection() as engine, readable_errors(schema.label):
        yield DuckSource(engine, _lay_batches(engine, schema, batches))


def _lay_batches(engine: duckdb.DuckDBPyConnection, schema: Schema, batches: BatchSource) -> Opened:
    """Rows that are laid into DuckDB one batch after another by this thread: connections to databases belong to one."""
    read = [0]

    def native(columns: Sequence[str]) -> Relation:
        read[0] = 0
        engine.execute("DROP TABLE IF EXISTS fetched")
        with _fetch_errors(schema.label):
            for n, batch in enumerate(batches(columns)):
                read[0] += batch.num_rows
                engine.register("made", batch)
                into = "INSERT INTO fetched" if n else "CREATE TEMP TABLE fetched AS"
                engine.execute(f"{into} SELECT * FROM made")
                engine.unregister("made")
        types = {row[0]: row[1] for row in engine.sql("DESCRIBE fetched").fetchall()}
        return Relation("fetched", {c: StoredField(f"v{i}", types[f"v{i}"]) for i, c in enumerate(columns)})

    return Opened(schema, native, None, lambda: read[0])


def _plain_batches(table: ir.Table, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Batches as the engine hands them out, raw; the first one may be empty, and says what the columns are."""
    import pyarrow as pa

    reader = table.select(*columns).to_pyarrow_batches(chunk_size=FETCHED_ROWS)
    places = [reader.schema.names.index(c) for c in columns]
    schema = arrow.raw_schema(reader.schema, places)
    yield pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
    yield from arrow.raw_batches(iter(reader), places, schema)


def _sqlite_batches(
    backend: BaseBackend, table: ir.Table, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Every value of SQLite as the bytes of its text, from which a number can be read again (a cast keeps 15 digits); the first batch is empty."""
    import pyarrow as pa

    names = [f"v{i}" for i in range(len(columns))]
    text = "CAST(CASE typeof({c}) WHEN 'real' THEN quote({c}) ELSE {c} END AS BLOB)"
    listed = ", ".join(text.format(c=identifier(c)) for c in columns)
    yield pa.RecordBatch.from_arrays([pa.array([], pa.binary()) for _ in columns], names=names)
    cursor = backend.con.execute(f"SELECT {listed} FROM ({backend.compile(table)})")
    try:
        while rows := cursor.fetchmany(FETCHED_ROWS):
            yield pa.RecordBatch.from_arrays(
                [pa.array(c, pa.binary()) for c in zip(*rows, strict=True)], names=names
            )
    finally:
        cursor.close()


@contextmanager
def _fetch_errors(label: str) -> Iterator[None]:
    import duckdb

    try:
        yield
    except (InputError, duckdb.Error):
        raise
    except Exception as wrong:  # noqa: BLE001 - every back end has errors of its own, and their text may quote private values
        raise InputError(
            f"the rows of {label} cannot be fetched ({type(wrong).__name__}): try a query there first"
        ) from None


# PostgreSQL: trips are counted by the server, in one transaction that sees one state of the data and leaves nothing behind. The key goes in by COPY, whose data the server writes into no log. Tables of ours are temporary, and vanish with the transaction's rollback.


POSTGRES_BATCH_ROWS = 100_000  # rows of a batch that comes back
FIRST_USER_TYPE_OID = 16384  # numbers of types from here on are not PostgreSQL's own
POSTGRES_ARROW_TYPES = {  # PostgreSQL's name of a type → the function of pyarrow that makes its Arrow type
    "bool": "bool_",
    "bytea": "binary",
    "int2": "int16",
    "int4": "int32",
    "int8": "int64",
    "date": "date32",
}
POSTGRES_ARROW_TYPES |= {"float4": "float32", "float8": "float64"}
POSTGRES_ARROW_TYPES |= dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid"), "string")
JSON_TYPE = re.compile(r"^!?json", re.IGNORECASE)
MIN_SERVER_VERSION = 140000  # EXTRACT gives exact numbers from version 14 on
COPY_TYPES = {"int64": ("BIGINT", ">i8"), "double": ("DOUBLE PRECISION", ">f8"), "binary": ("BYTEA", "")}


@contextmanager
def open_postgres(backend: BaseBackend, text: str, schema: Schema) -> Iterator[PostgresSource]:
    """A query's rows (`text`), read by the connection that Ibis has."""
    connection = backend.con
    with _snapshot(connection):
        _check_version(connection)
        yield PostgresSource(connection, text, _resolved_schema(connection, text, schema))


@contextmanager
def _snapshot(connection: psycopg.Connection) -> Iterator[None]:
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


def _resolved_schema(connection: psycopg.Connection, text: str, schema: Schema) -> Schema:
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
    arrow = {name: getattr(pa, kind)() for name, kind in POSTGRES_ARROW_TYPES.items()}
    arrow |= {
        "time": pa.time64("us"),
        "timestamp": pa.timestamp("us"),
        "timestamptz": pa.timestamp("us", "UTC"),
    }
    kinds, unequal = {}, {}
    for column, before in schema.kinds.items():
        category, name, shown = rows[types[column]]
        if JSON_TYPE.search(schema.unequal.get(column, "")):  # Ibis casts it to text in its query
            kinds[column], unequal[column] = before, "json"
        elif category == "e" or (name == "citext" and types[column] >= FIRST_USER_TYPE_OID):
            kinds[column] = pa.string()
        elif types[column] < FIRST_USER_TYPE_OID and name == "numeric":
            kinds[column] = before if pa.types.is_decimal(before) else pa.decimal128(38, 0)
        elif types[column] < FIRST_USER_TYPE_OID and name in arrow:
            kinds[column] = arrow[name]
        else:
            kinds[column], unequal[column] = pa.binary(), shown
    return replace(schema, kinds=kinds, unequal=unequal)


def _check_version(connection: psycopg.Connection) -> None:
    if connection.info.server_version < MIN_SERVER_VERSION:
        raise InputError("trips are counted in PostgreSQL 14 or newer: this server is older")
    encoding = connection.execute("SHOW server_encoding").fetchone()[0]
    if encoding != "UTF8":  # elsewhere a text that UTF-8 does not know would stop the count
        raise InputError(f"the database's encoding is {encoding}: count in one whose encoding is UTF8")


class PostgresSource(TemplateSource):
    """Trips that are open in PostgreSQL."""

    def __init__(self, connection: psycopg.Connection, text: str, schema: Schema) -> None:
        super().__init__(schema, POSTGRES_TEMPLATES)
        self._connection, self._text = connection, f"({text}) s"

    def rows(self) -> int:
        with self._reading():
            return self._one(f"SELECT COUNT(*) FROM {self._text}")

    def _trips(self, plan: CountingPlan) -> tuple[str, list[str]]:
        return self._text, [POSTGRES_TEMPLATES.identifier(f.name) for f in plan.fields]

    def _put(self, name: str, table: pa.Table) -> str:
        unique = unique_name(name)
        columns = ", ".join(f"{f.name} {COPY_TYPES[str(f.type)][0]}" for f in table.schema)
        with self._connection.cursor() as cursor:
            cursor.execute(f"CREATE TEMP TABLE {unique} ({columns}) ON COMMIT DROP")
            with cursor.copy(f"COPY {unique} FROM STDIN (FORMAT BINARY)") as copy:
                for block in _copy_bytes(table):
                    copy.write(block)
            cursor.execute(f"ANALYZE {unique}")
        return unique

    def _drop(self, name: str) -> None:
        self._connection.execute(f"DROP TABLE IF EXISTS {name}")

    def _keep(self, query: str) -> str:
        unique = unique_name("kept")
        self._connection.execute(f"CREATE TEMP TABLE {unique} ON COMMIT DROP AS {query}")
        return unique

    def _batches(
        self,
        query: str,
        most: int | None = None,  # noqa: ARG002
        *,
        by: str | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """By a cursor of the server's, so that only a batch is here at a time."""
        with self._connection.cursor(name=unique_name("cursor")) as cursor:
            cursor.execute(ordered_query(query, by))
            while rows := cursor.fetchmany(POSTGRES_BATCH_ROWS):
                yield record_batch(rows)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as wrong:  # its text may quote private values
            raise InputError(
                f"{self.schema.label} could not be counted by PostgreSQL ({type(wrong).__name__}): its own log says why"
            ) from None


def _copy_bytes(table: pa.Table) -> Iterator[bytes]:
    """A table in the binary format of COPY: for each row the number of its fields, for each field its length and its bytes."""
    yield b"PGCOPY\n\xff\r\n\0" + bytes(8)
    if any(COPY_TYPES[str(f.type)][1] == "" for f in table.schema):
        width = table.num_columns.to_bytes(2)
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            fields = (v if isinstance(v, bytes) else v.to_bytes(8, signed=True) for v in row)
            yield width + b"".join(len(f).to_bytes(4) + f for f in fields)
    else:
        kinds = [COPY_TYPES[str(f.type)][1] for f in table.schema]
        parts = [x for i, kind in enumerate(kinds) for x in ((f"l{i}", ">i4"), (f"v{i}", kind))]
        rows = np.empty(len(table), dtype=[("n", ">i2"), *parts])
        rows["n"] = len(kinds)
        for i, column in enumerate(table.columns):
            rows[f"l{i}"], rows[f"v{i}"] = 8, column.to_numpy()
        yield rows.tobytes()
    yield b"\xff\xff"


# Warehouses: databases that have a dialect (cbdp.counting.engines.dialects), by nothing but Ibis' own interface


WAREHOUSE_BATCH_ROWS = 100_000  # rows of a batch that comes back


@contextmanager
def open_warehouse(
    backend: BaseBackend, text: str, schema: Schema, words: DialectTemplates
) -> Iterator[WarehouseSource]:
    """A query's rows (`text`) in a database."""
    source = WarehouseSource(backend, text, schema, words)
    try:
        yield source
    finally:
        source.close()


class WarehouseSource(TemplateSource):
    """Trips that are open in a database. What persons keep is asked for twice instead of being written into a table there."""

    def __init__(self, backend: BaseBackend, text: str, schema: Schema, words: DialectTemplates) -> None:
        super().__init__(schema, words)
        self._backend, self._text = backend, f"({text}) s"
        self._table_names: dict[str, str] = {}  # what stands after FROM → a table's name

    def rows(self) -> int:
        with self._reading():
            return self._one(f"SELECT COUNT(*) AS n FROM {self._text}")

    def _trips(self, plan: CountingPlan) -> tuple[str, list[str]]:
        return self._text, [self._words.identifier(f.name) for f in plan.fields]

    def _put(self, name: str, table: pa.Table) -> str:
        unique = unique_name(name)
        laid = self._backend.create_table(unique, table, **({"temp": True} if self._words.temporary else {}))
        node = laid.op()
        places = [node.namespace.catalog, node.namespace.database, node.name]
        full = ".".join(self._words.identifier(place) for place in places if place)
        columns = ", ".join(f"{self._words.columns.format(c=c)} AS {c}" for c in table.column_names)
        text = f"(SELECT {columns} FROM {full} l)"
        self._table_names[text] = full
        return text

    def _drop(self, name: str) -> None:
        if name in self._table_names:
            answer = self._backend.raw_sql(f"DROP TABLE {self._table_names[name]}")
            getattr(answer, "close", lambda: None)()  # BigQuery's has none
            del self._table_names[name]

    def _keep(self, query: str) -> str:
        return f"({query}) k"

    def _batches(
        self,
        query: str,
        most: int | None = None,  # noqa: ARG002
        *,
        by: str | None = None,
    ) -> Iterator[pa.RecordBatch]:
        answer = self._backend.raw_sql(ordered_query(query, by))
        if hasattr(answer, "to_arrow_iterable"):  # BigQuery's
            yield from answer.to_arrow_iterable()
            return
        try:
            while rows := answer.fetchmany(WAREHOUSE_BATCH_ROWS):
                yield record_batch(rows)
        finally:
            answer.close()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (InputError, AssertionError, AttributeError, NameError, TypeError):
            raise
        except Exception as wrong:  # noqa: BLE001 - of many kinds, and their text may quote private values
            raise InputError(
                f"{self.schema.label} could not be counted by {self._words.name} ({type(wrong).__name__}): its own log says why"
            ) from None

    def close(self) -> None:
        for text in [*self._table_names]:
            with suppress(Exception):  # the others are to go, too
                self._drop(text)
        if self._table_names:
            raise InputError(
                f"{next(iter(self._table_names.values()))} could not be dropped by {self._words.name}: nothing was counted. "
                "It may hold the key: drop it there, and all others whose name begins with 'cbdp_'"
            )


# The engine


URL_SCHEMES = (
    *("athena", "bigquery", "clickhouse", "databricks", "datafusion", "druid", "exasol", "flink", "impala"),
    *("materialize", "mssql", "mysql", "oracle", "polars", "postgres", "postgresql", "risingwave"),
    *("singlestoredb", "snowflake", "sqlite", "trino"),
)


@dataclass(frozen=True)
class Ibis(Engine):
    """An Ibis table, or a URL that Ibis opens."""

    name: ClassVar[str] = "ibis"
    about: ClassVar[str] = (
        "in a database that Ibis connects to: PostgreSQL, BigQuery, Snowflake, Databricks, Trino; others by fetching rows"
    )

    def opens(self, trips: object) -> bool:
        if isinstance(trips, str):
            return "://" in trips and trips.partition("://")[0] in URL_SCHEMES
        return hasattr(trips, "to_pyarrow_batches") and hasattr(trips, "get_backend")

    @contextmanager
    def open(self, trips: object, needed: Sequence[str] | None = None) -> Iterator[Source]:  # noqa: ARG002 - the schema has all
        with ExitStack() as stack:
            label = "the table"
            if isinstance(trips, str):
                trips, label = stack.enter_context(_connect(trips))
            yield stack.enter_context(_open_source(trips, label))


@contextmanager
def _connect(url: str) -> Iterator[tuple[ir.Table, str]]:
    """The table of a URL, and what to call it. The URL may hold a password: it is in no message."""
    place, table = split_url(url)
    scheme = url.partition("://")[0]
    database, _, name = table.rpartition(".")
    try:
        import ibis
    except ImportError:
        extra = "cbdp[postgres]" if scheme.startswith("postgres") else f"ibis-framework[{scheme}]"
        raise InputError(f"a {scheme} URL is read by Ibis: install it with pip install '{extra}'") from None
    try:
        backend = ibis.connect(place)
    except Exception as wrong:  # noqa: BLE001 - every back end has errors of its own, and their text may quote the password
        raise InputError(
            f"the {scheme} URL cannot be opened ({type(wrong).__name__}): check host, user, password and database"
        ) from None
    try:
        yield _find_table(backend, name, database or None, table), f"the table {table!r}"
    finally:
        backend.disconnect()


def _find_table(backend: BaseBackend, name: str, database: str | None, shown: str) -> ir.Table:
    try:
        return backend.table(name, database=database)
    except Exception as wrong:  # noqa: BLE001 - every back end has errors of its own
        raise InputError(
            f"the database has no table {shown!r} that this user may read ({type(wrong).__name__}): write it as "
            "'table' or 'schema.table'"
        ) from None


def _open_source(table: ir.Table, label: str) -> AbstractContextManager[Source]:
    try:
        backend = table.get_backend()
        schema = ibis_schema(table, label, fetched=backend.name not in DIALECTS)
        text = None if backend.name in ("duckdb", "sqlite") else backend.compile(table)
    except InputError:
        raise
    except Exception as wrong:  # noqa: BLE001 - every back end has errors of its own
        raise InputError(
            f"{label} cannot be opened by Ibis ({type(wrong).__name__}): try a query there first"
        ) from None
    if backend.name == "duckdb":
        return open_duckdb_table(backend, table, schema)
    if backend.name == "pyspark":
        return open_frame(backend._session.sql(text))
    if backend.name == "postgres":
        return open_postgres(backend, str(text), schema)
    if backend.name in DIALECTS:
        return open_warehouse(backend, str(text), schema, DIALECTS[backend.name])
    return open_fetched(backend, table, schema)


def ibis_schema(table: ir.Table, label: str, *, fetched: bool = False) -> Schema:
    """Columns in Arrow's types. Persons are told apart only by types of which it is known when two values are equal.

    Rows that are `fetched` come as Arrow's values; elsewhere bytes and times are the text that the engine writes for them, of which that is not known.
    """
    check_distinct(table.columns)
    types = dict(table.schema().items())
    unequal = {
        name: str(kind) for name, kind in types.items() if not _has_plain_equality(kind, fetched=fetched)
    }
    return Schema(label, {name: _arrow_type(kind) for name, kind in types.items()}, unequal=unequal)


def _has_plain_equality(kind: DataType, *, fetched: bool) -> bool:
    if kind.is_binary() or kind.is_time() or (kind.is_timestamp() and kind.timezone is not None):
        return fetched
    plain_kinds = (
        kind.is_string,
        kind.is_integer,
        kind.is_floating,
        kind.is_decimal,
        kind.is_boolean,
        kind.is_date,
    )
    return any(is_a() for is_a in (*plain_kinds, kind.is_timestamp, kind.is_uuid, kind.is_null))


def _arrow_type(kind: DataType) -> pa.DataType:
    import pyarrow as pa

    if kind.is_decimal():
        precision = min(kind.precision or 38, 38)
        return pa.decimal128(precision, min(kind.scale or 0, precision))
    if kind.is_uuid():
        return pa.string()
    try:
        return kind.to_pyarrow()
    except Exception:  # noqa: BLE001 - a type that Arrow has not is one that we do not count by
        return pa.binary()
