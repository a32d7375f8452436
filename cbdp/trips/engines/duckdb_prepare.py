"""Preparations in DuckDB: the raw rows are read once, into a table that is then counted like any other."""

# ruff: noqa: S608 - names and texts are quoted where they enter a query

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cbdp.trips.engines.duckdb_dialect import DuckDialect, StoredField, identifier
from cbdp.trips.kinds import check_names
from cbdp.trips.preparing import Preparation

if TYPE_CHECKING:
    from cbdp.trips.engines.duckdb_open import Opened, Relation

TABLE = "prepared"


def opened(engine: Any, raw: Opened, by: Preparation) -> Opened:
    """What a preparation makes of open trips. No row is read until the first of them is asked for."""
    from cbdp.trips.engines.duckdb_open import Opened

    check_names(list(raw.schema.kinds), by.needs, quoted=raw.schema.typed)
    table = _Table(engine, raw, by)
    schema = replace(raw.schema, kinds=by.kinds(raw.schema.kinds))
    return Opened(schema, table.relation, None, table.rows, raw.changed, raw.damaged)


@dataclass
class _Table:
    """The table of prepared trips, made when it is first asked for."""

    engine: Any
    raw: Opened
    by: Preparation
    made: bool = field(default=False)

    def relation(self, columns: Sequence[str]) -> Relation:
        from cbdp.trips.engines.duckdb_open import Relation

        self._make()
        described = self.engine.sql(f"DESCRIBE {TABLE}").fetchall()
        types = {row[0]: row[1] for row in described}
        return Relation(TABLE, {c: StoredField(identifier(c), types[c]) for c in columns})

    def rows(self) -> int:
        self._make()
        return int(self.engine.sql(f"SELECT count(*) FROM {TABLE}").fetchall()[0][0])

    def _make(self) -> None:
        """By DuckDB's own reader, and where that stops at a value, by the reader that takes columns as they are."""
        import duckdb

        if self.made:
            return
        if self.raw.native is not None:
            try:
                self._fill(self.raw.native(self.by.needs))
            except (duckdb.InvalidInputException, duckdb.ConversionException):
                if self.raw.raw is None:
                    raise
        if not self.made:
            assert self.raw.raw is not None
            self._fill(self.raw.raw(self.by.needs))

    def _fill(self, source: Relation) -> None:
        say = DuckDialect(tuple(source.stored[c] for c in self.by.needs))
        kinds = [self.raw.schema.kind(c) for c in self.by.needs]
        for name, table in self.by.tables(kinds).items():
            self.engine.register(name, table)
        query = self.by.query(say, kinds, source.text)
        self.engine.execute(f"CREATE OR REPLACE TEMP TABLE {TABLE} AS {query}")
        self.made = True
