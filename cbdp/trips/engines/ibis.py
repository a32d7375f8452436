"""Tables of other engines through Ibis. For now their rows are fetched, batch by batch, and counted here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from cbdp.errors import InputError
from cbdp.trips.engines.arrow import ROWS
from cbdp.trips.engines.base import Engine
from cbdp.trips.engines.duckdb import DuckSource, connection
from cbdp.trips.engines.duckdb_open import reading, split_url, stream


@dataclass(frozen=True)
class Ibis(Engine):
    """An Ibis table, or a URL that Ibis opens."""

    name: ClassVar[str] = "ibis"
    about: ClassVar[str] = "tables of other engines, through Ibis"

    def opens(self, trips: Any) -> bool:
        url = isinstance(trips, str) and "://" in trips and not trips.startswith("duckdb://")
        return url or hasattr(trips, "to_pyarrow_batches")

    @contextmanager
    def open(self, trips: Any, wanted: Sequence[str] | None = None) -> Iterator[DuckSource]:  # noqa: ARG002
        table = _table(trips) if isinstance(trips, str) else trips
        with connection() as engine, reading("the trips"):
            schema = table.schema().to_pyarrow()
            yield DuckSource(
                engine, stream(engine, schema, lambda columns: _batches(table, columns), "the table")
            )


def _table(url: str) -> Any:
    place, table = split_url(url)
    scheme = url.partition("://")[0]
    try:
        import ibis
    except ImportError:
        raise InputError(
            f"a {scheme} URL is read by Ibis: install it with pip install 'ibis-framework[{scheme}]'"
        ) from None
    try:
        return ibis.connect(place).table(table)
    except Exception as wrong:  # noqa: BLE001 - every back end has errors of its own
        raise InputError(
            f"the table {table!r} cannot be opened in the {scheme} URL ({type(wrong).__name__}): check the URL"
        ) from None


def _batches(table: Any, columns: Sequence[str]) -> Any:
    """A table's batches. Ibis 12 cannot stream from DuckDB 2, so from there the relation itself is taken."""
    try:
        chosen = table.select(*columns)
        backend = chosen.get_backend()
        if backend.name != "duckdb":
            return chosen.to_pyarrow_batches(chunk_size=ROWS)
        import duckdb

        try:
            return backend.con.sql(backend.compile(chosen)).to_arrow_reader(ROWS)
        except duckdb.CatalogException:  # a table that Ibis itself keeps in memory
            return chosen.to_pyarrow().to_reader()
    except Exception:  # noqa: BLE001 - every back end has errors of its own
        raise InputError("the table's engine cannot hand out its rows: try a query there first") from None
