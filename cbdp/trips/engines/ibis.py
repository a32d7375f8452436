"""Tables of other engines through Ibis, which connects, says what columns there are, and hands back answers.

    postgres, bigquery, snowflake, databricks, trino    counted there, by the plan's SQL in their words
    pyspark, duckdb                                     counted there, as Spark and DuckDB are
    any other                                           has no words here: its rows are fetched in batches, and counted by DuckDB in this process
Whichever it is, keys and persons are compared as bytes, and never by a column's collation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from cbdp.errors import InputError
from cbdp.trips.engines import ibis_duckdb, ibis_fetched, ibis_postgres, ibis_warehouse
from cbdp.trips.engines.base import Engine, Source
from cbdp.trips.engines.duckdb_open import split_url
from cbdp.trips.engines.spark import open_frame
from cbdp.trips.engines.words import WORDS
from cbdp.trips.kinds import Schema, check_distinct

SCHEMES = (
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

    def opens(self, trips: Any) -> bool:
        if isinstance(trips, str):
            return "://" in trips and trips.partition("://")[0] in SCHEMES
        return hasattr(trips, "to_pyarrow_batches") and hasattr(trips, "get_backend")

    @contextmanager
    def open(self, trips: Any, wanted: Sequence[str] | None = None) -> Iterator[Source]:  # noqa: ARG002 - the schema has all
        with ExitStack() as stack:
            label = "the table"
            if isinstance(trips, str):
                trips, label = stack.enter_context(_connected(trips))
            yield stack.enter_context(_source(trips, label))


@contextmanager
def _connected(url: str) -> Iterator[tuple[Any, str]]:
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
        yield _found(backend, name, database or None, table), f"the table {table!r}"
    finally:
        backend.disconnect()


def _found(backend: Any, name: str, database: str | None, shown: str) -> Any:
    try:
        return backend.table(name, database=database)
    except Exception as wrong:  # noqa: BLE001 - every back end has errors of its own
        raise InputError(
            f"the database has no table {shown!r} that this user may read ({type(wrong).__name__}): write it as "
            "'table' or 'schema.table'"
        ) from None


def _source(table: Any, label: str) -> AbstractContextManager[Source]:
    try:
        backend = table.get_backend()
        schema = schema_of(table, label, fetched=backend.name not in WORDS)
        text = None if backend.name in ("duckdb", "sqlite") else backend.compile(table)
    except InputError:
        raise
    except Exception as wrong:  # noqa: BLE001 - every back end has errors of its own
        raise InputError(
            f"{label} cannot be opened by Ibis ({type(wrong).__name__}): try a query there first"
        ) from None
    if backend.name == "duckdb":
        return ibis_duckdb.opened(backend, table, schema)
    if backend.name == "pyspark":
        return open_frame(backend._session.sql(text))
    if backend.name == "postgres":
        return ibis_postgres.opened(backend, str(text), schema)
    if backend.name in WORDS:
        return ibis_warehouse.opened(backend, str(text), schema, WORDS[backend.name])
    return ibis_fetched.opened(backend, table, schema)


def schema_of(table: Any, label: str, *, fetched: bool = False) -> Schema:
    """Columns in Arrow's types. Persons are told apart only by types of which it is known when two values are equal.

    Rows that are `fetched` come as Arrow's values; elsewhere bytes and times are the text that the engine writes for them, of which that is not known.
    """
    check_distinct(table.columns)
    types = dict(table.schema().items())
    unequal = {name: str(kind) for name, kind in types.items() if not _equal(kind, fetched=fetched)}
    return Schema(label, {name: _arrow(kind) for name, kind in types.items()}, unequal=unequal)


def _equal(kind: Any, *, fetched: bool) -> bool:
    if kind.is_binary() or kind.is_time() or (kind.is_timestamp() and kind.timezone is not None):
        return fetched
    known = (
        kind.is_string,
        kind.is_integer,
        kind.is_floating,
        kind.is_decimal,
        kind.is_boolean,
        kind.is_date,
    )
    return any(is_a() for is_a in (*known, kind.is_timestamp, kind.is_uuid, kind.is_null))


def _arrow(kind: Any) -> Any:
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
