"""Databases that Ibis connects to and that have words of their own (cbdp.trips.engines.words), by nothing but Ibis' own interface."""

# ruff: noqa: S608 - every name and number in these queries is ours, and text is quoted where it enters

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from cbdp.errors import InputError
from cbdp.trips.engines.sql_source import SqlSource, batch_of, ordered, unique
from cbdp.trips.engines.words import Words
from cbdp.trips.kinds import Schema
from cbdp.trips.plan import CountingPlan

ROWS = 100_000  # of a batch that comes back


@contextmanager
def opened(backend: Any, text: str, schema: Schema, words: Words) -> Iterator[WarehouseSource]:
    """A query's rows (`text`) in a database."""
    source = WarehouseSource(backend, text, schema, words)
    try:
        yield source
    finally:
        source.close()


class WarehouseSource(SqlSource):
    """Trips that are open in a database. What persons keep is asked for twice instead of being written into a table there."""

    def __init__(self, backend: Any, text: str, schema: Schema, words: Words) -> None:
        super().__init__(schema, words)
        self._backend, self._text = backend, f"({text}) s"
        self._made: dict[str, str] = {}  # what stands after FROM → a table's name

    def rows(self) -> int:
        with self._reading():
            return self._one(f"SELECT COUNT(*) AS n FROM {self._text}")

    def _trips(self, plan: CountingPlan) -> tuple[str, list[str]]:
        return self._text, [self._words.identifier(f.name) for f in plan.fields]

    def _put(self, name: str, table: Any) -> str:
        made = unique(name)
        laid = self._backend.create_table(made, table, **({"temp": True} if self._words.temporary else {}))
        node = laid.op()
        places = [node.namespace.catalog, node.namespace.database, node.name]
        full = ".".join(self._words.identifier(place) for place in places if place)
        columns = ", ".join(f"{self._words.columns.format(c=c)} AS {c}" for c in table.column_names)
        text = f"(SELECT {columns} FROM {full} l)"
        self._made[text] = full
        return text

    def _drop(self, name: str) -> None:
        if name in self._made:
            answer = self._backend.raw_sql(f"DROP TABLE {self._made[name]}")
            getattr(answer, "close", lambda: None)()  # BigQuery's has none
            del self._made[name]

    def _keep(self, query: str) -> str:
        return f"({query}) k"

    def _batches(self, query: str, most: int | None = None, *, by: str | None = None) -> Iterator[Any]:  # noqa: ARG002
        answer = self._backend.raw_sql(ordered(query, by))
        if hasattr(answer, "to_arrow_iterable"):  # BigQuery's
            yield from answer.to_arrow_iterable()
            return
        try:
            while rows := answer.fetchmany(ROWS):
                yield batch_of(rows)
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
        for text in [*self._made]:
            with suppress(Exception):  # the others are to go, too
                self._drop(text)
        if self._made:
            raise InputError(
                f"{next(iter(self._made.values()))} could not be dropped by {self._words.name}: nothing was counted. "
                "It may hold the key: drop it there, and all others whose name begins with 'cbdp_'"
            )
