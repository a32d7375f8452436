"""Open trips of an engine that speaks SQL: how a plan is counted, checked and inspected is the same for all of them.

An engine adds how its trips are read (`_read`), how tables are laid beside them, and how answers come back. Only (flat, n) does, in batches.
"""

# ruff: noqa: S608 - every name and number in these queries is ours, and text is quoted where it enters

from __future__ import annotations

import math
import secrets
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from cbdp.arrays import Bools, Ints
from cbdp.counting import bounding
from cbdp.counting.columns import Schema
from cbdp.counting.engines import CountFacts, Source, Statuses, group_starts, sql, statuses_of
from cbdp.counting.engines.dialects import (
    DialectTemplates,
    TemplateDialect,
    source_relation,
    template_dialect,
)
from cbdp.counting.engines.sql import Dialect
from cbdp.counting.plan import ContributionBound, CountingPlan, Field
from cbdp.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

ChangedFiles = Callable[[], tuple[str, ...]]  # files that are not what they were when they were opened
Cell = int | float | Decimal | str | None
Answer = list[tuple[Cell, ...]]  # the rows of a small answer


def unique_name(name: str) -> str:
    """A name for a table of ours that nobody else has."""
    return f"cbdp_{secrets.token_hex(8)}_{name}"


def ordered_query(query: str, by: str | None) -> str:
    """A query whose rows come in the order of all columns: those that it is sliced `by`, and one more."""
    if by is None:
        return query
    columns = range(1, by.count(",") + 3)
    return f"SELECT * FROM ({query}) o ORDER BY {', '.join(map(str, columns))}"


def record_batch(rows: Iterable[Sequence[object]]) -> pa.RecordBatch:
    """Rows, of which there is one at least, as a record batch."""
    import pyarrow as pa

    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])


class SqlSource(Source):
    """Trips that are open in an engine that speaks SQL."""

    def __init__(self, schema: Schema, changed: ChangedFiles = tuple) -> None:
        self.schema, self._changed = schema, changed
        self._laid: CountingPlan | None = None  # the plan whose tables lie beside the trips
        self._tables: dict[str, str] = {}  # a table of ours → what stands after FROM for it

    # What an engine adds

    @abstractmethod
    def _read(self, plan: CountingPlan, work: Callable[[Dialect, str], T], *, again: bool | None = None) -> T:
        """Do the work with the plan's tables beside the trips, given its dialect and what stands after FROM for the trips.

        `again`: whether the trips will be read once more; None: by the plan's invariants, where it has any.
        """

    @abstractmethod
    def _put(self, name: str, table: pa.Table) -> str:
        """Lay an Arrow table beside the trips; say what stands after FROM for it."""

    @abstractmethod
    def _drop(self, name: str) -> None:
        """Take a table away that lies beside the trips."""

    @abstractmethod
    def _keep(self, query: str) -> str:
        """Put aside what a query gives; say what stands after FROM for it."""

    @abstractmethod
    def _batches(
        self, query: str, most: int | None = None, *, by: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """An answer of at most so many rows as Arrow record batches.

        Rows with the same values of the columns `by` come together, in the order of all columns, which are one more.
        """

    @abstractmethod
    def _reading(self) -> AbstractContextManager[None]:
        """Turns the engine's errors into ours, without their text."""

    # Counting

    def count(self, plan: CountingPlan, key: bytes | None) -> Iterator[tuple[Ints, Ints]]:
        if plan.bound is None:
            return self._pairs(self._read(plan, lambda say, trips: self._grouped(plan, say, trips)))
        assert key is not None
        return self._pairs(self._read(plan, lambda say, trips: self._bounded(plan, say, trips, key)))

    def unbounded(self, plan: CountingPlan) -> Iterator[tuple[Ints, Ints]]:
        return self._pairs(self._read(plan, lambda say, trips: self._grouped(plan, say, trips), again=True))

    def _grouped(self, plan: CountingPlan, say: Dialect, trips: str) -> Iterator[pa.RecordBatch]:
        return self._batches(sql.count_query(plan, say, trips, self._named), math.prod(plan.shape))

    def _bounded(self, plan: CountingPlan, say: Dialect, trips: str, key: bytes) -> Iterator[pa.RecordBatch]:
        self._lay_secret(key)
        kept = self._tables["kept"] = self._kept(plan, say, trips)
        return self._batches(f"SELECT flat, COUNT(*) AS n FROM {kept} GROUP BY flat", math.prod(plan.shape))

    def _kept(self, plan: CountingPlan, say: Dialect, trips: str) -> str:
        """The kept trips, put aside; what stands after FROM for them."""
        return self._keep(self._kept_query(plan, say, trips))

    def _kept_query(self, plan: CountingPlan, say: Dialect, trips: str) -> str:
        """Rows of the kept trips: person, perhaps period, flat, and `own`: how many the person had."""
        assert plan.bound is not None
        steps = sql.steps_inside(plan, say, trips, self._named)
        kind, secret = plan.fields[plan.bound.person].kind, self._named(sql.SECRET_TABLE)
        kept = bounding.bounding_steps(plan.bound, kind, say, secret, with_load=True)
        columns = bounding.kept_columns(plan.bound, with_load=True)
        return sql.query([*steps, *kept], f"SELECT {columns} FROM kept")

    def _pairs(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Ints, Ints]]:
        with self._reading():
            for batch in batches:
                yield _whole(batch.column(0)), _whole(batch.column(1))

    def _lay(self, plan: CountingPlan) -> None:
        """Put the plan's public tables beside the trips."""
        if self._laid is plan:
            return
        self._clear()
        for name, table in sql.lookup_tables(plan).items():
            self._tables[name] = self._put(name, table)
        self._laid = plan

    def _lay_secret(self, key: bytes) -> None:
        import pyarrow as pa

        self._drop_secret()
        word = pa.table({"word": pa.array([key], pa.binary())})
        self._tables[sql.SECRET_TABLE] = self._put(sql.SECRET_TABLE, word)

    def _drop_secret(self) -> None:
        if sql.SECRET_TABLE in self._tables:
            self._drop(self._tables.pop(sql.SECRET_TABLE))

    def _clear(self) -> None:
        """Take away all that lies beside the trips."""
        while self._tables:
            self._drop(self._tables.popitem()[1])
        self._laid = None

    def _named(self, table: str) -> str:
        return self._tables[table]

    def _rows(self, query: str) -> Answer:
        """An answer that is small."""
        return [
            r for b in self._batches(query) for r in zip(*(c.to_pylist() for c in b.columns), strict=True)
        ]

    def _one(self, query: str) -> int:
        return _number(self._rows(query)[0][0])

    # What is asked after counting

    def facts(self, plan: CountingPlan) -> CountFacts:
        most_kept = most_apart = allowed = weight = None
        inside = 0
        if plan.bound is not None:
            most_kept, inside = self._loads_kept(plan.bound)
            most_apart = (
                self._read(plan, lambda say, _: self._most_apart(plan, say)) if plan.bound.apart else None
            )
            allowed = self._read(
                plan, lambda say, trips: self._one(bounding.max_kept_in_all(plan, say, trips))
            )
        if plan.weight is not None:
            weight = self._read(plan, lambda say, trips: self._one(sql.weight_query(plan, say, trips)))
        return CountFacts(
            self.rows(),
            weight,
            inside,
            most_kept=most_kept,
            most_apart=most_apart,
            allowed=allowed,
            changed=self._changed(),
        )

    def _most_apart(self, plan: CountingPlan, say: Dialect) -> int:
        """The greatest number of kept trips of any person in one slot."""
        assert plan.bound is not None
        slot = bounding.slot_of(plan, say)
        return self._one(
            bounding.max_kept_by_person(plan.bound, self._named("kept"), self._whose(), slot=slot)
        )

    @abstractmethod
    def _whose(self) -> str:
        """The column `person` as text that no collation compares: other words than the count's."""

    def _loads_kept(self, bound: ContributionBound) -> tuple[int, int]:
        """The greatest number of kept trips of any person, and how many trips there were of all persons."""
        who = self._whose() + ("" if bound.within is None else ", period")
        each = f"SELECT COUNT(flat) AS trips, MAX(own) AS own FROM {self._named('kept')} GROUP BY {who}"
        with self._reading():
            most, inside = self._rows(f"SELECT MAX(trips) AS trips, SUM(own) AS own FROM ({each}) e")[0]
        return _number(most), _number(inside)

    def by_person(self, plan: CountingPlan) -> Iterator[tuple[Bools, Ints]]:
        assert plan.bound is not None
        by, columns = bounding.group_columns(plan.bound), bounding.kept_columns(plan.bound)

        def rows(say: Dialect, trips: str) -> Iterator[pa.RecordBatch]:
            steps = sql.steps_inside(plan, say, trips, self._named)
            return self._batches(sql.query(steps, f"SELECT {columns} FROM inside"), by=by)

        last = None
        with self._reading():
            for batch in self._read(plan, rows, again=False):
                if len(batch):
                    who = batch.columns[:-1]
                    yield group_starts(who, last), _whole(batch.columns[-1])
                    last = [column[-1] for column in who]

    # Inspecting

    def _asked(
        self, plan: CountingPlan, query: Callable[..., str | None], *more: int, again: bool = True
    ) -> Answer:
        """The rows of an inspection's query; none where it has nothing to ask."""

        def rows(say: Dialect, trips: str) -> Answer:
            text = query(plan, say, trips, self._named, *more)
            return [] if text is None else self._rows(text)

        return self._read(plan, rows, again=again)

    def statuses(self, plan: CountingPlan) -> Statuses:
        rows = _table(self._asked(plan, sql.status_query), len(plan.axes) + 6)
        return statuses_of(rows, len(plan.axes))

    def examples(self, plan: CountingPlan, axis: int, status: int, most: int) -> list[tuple[str, int]]:
        rows = self._asked(plan, sql.example_query, axis, status, most)
        return [(str(value), _number(n)) for value, n in rows]

    def by_day(self, plan: CountingPlan) -> Ints:
        return _table(self._asked(plan, sql.day_query), 3)

    def copies(self, fields: Sequence[Field], digits: int) -> Ints:
        plan = CountingPlan(tuple(fields), (), (), {})
        return _table(self._asked(plan, sql.duplicate_query, digits, again=False), 2)

    def loads(self, plan: CountingPlan) -> tuple[Ints, Ints, Ints]:
        trips, persons, all_trips = _table(self._asked(plan, bounding.load_rows), 3).T
        return trips, persons, all_trips


class TemplateSource(SqlSource):
    """Trips that are open in an engine whose dialect is made of `words`."""

    def __init__(self, schema: Schema, words: DialectTemplates, changed: ChangedFiles = tuple) -> None:
        super().__init__(schema, changed)
        self._words = words

    @abstractmethod
    def _trips(self, plan: CountingPlan) -> tuple[str, list[str]]:
        """What stands after FROM for the trips, and for each field its column there."""

    def count(self, plan: CountingPlan, key: bytes | None) -> Iterator[tuple[Ints, Ints]]:
        if plan.bound is not None and self._words.keyless:
            raise InputError(
                f"persons cannot be bounded there: {self._words.keyless}. Count with Spark, or export the trips to Parquet"
            )
        return super().count(plan, key)

    def _read(
        self,
        plan: CountingPlan,
        work: Callable[[Dialect, str], T],
        *,
        again: bool | None = None,  # noqa: ARG002 - a table is read as often as one likes
    ) -> T:
        with self._reading():
            self._lay(plan)
            say: TemplateDialect = template_dialect(self._words, plan)
            return work(say, source_relation(say, plan, *self._trips(plan)))

    def _whose(self) -> str:
        return self._words.hex.format(b="person")


def _number(value: Cell) -> int:
    return int(value or 0)


def _table(rows: Answer, columns: int) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)


def _whole(column: pa.Array) -> Ints:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)
