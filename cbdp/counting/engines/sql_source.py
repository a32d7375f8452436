"""Open trips of an engine that speaks SQL: what is the same for Spark, PostgreSQL and the warehouses.

An engine adds how tables are laid beside the trips and how answers come back. Only (flat, n) does, in batches.
"""

# ruff: noqa: S608 - every name and number in these queries is ours, and text is quoted where it enters

from __future__ import annotations

import math
import secrets
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.counting import bounding
from cbdp.counting.columns import Schema
from cbdp.counting.engines import CountFacts, Source, Statuses, group_starts, sql, statuses_of
from cbdp.counting.engines.dialects import (
    DialectTemplates,
    TemplateDialect,
    source_relation,
    template_dialect,
)
from cbdp.counting.plan import ContributionBound, CountingPlan, Field
from cbdp.errors import InputError

ChangedFiles = Callable[[], tuple[str, ...]]  # files that are not what they were when they were opened


def unique_name(name: str) -> str:
    """A name for a table of ours that nobody else has."""
    return f"cbdp_{secrets.token_hex(8)}_{name}"


def ordered_query(query: str, by: str | None) -> str:
    """A query whose rows come in the order of all columns: those that it is sliced `by`, and one more."""
    if by is None:
        return query
    columns = range(1, by.count(",") + 3)
    return f"SELECT * FROM ({query}) o ORDER BY {', '.join(map(str, columns))}"


def record_batch(rows: Iterable[Sequence[Any]]) -> Any:
    """Rows, of which there is one at least, as a record batch."""
    import pyarrow as pa

    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])


class SqlSource(Source):
    """Trips that are open in an engine with `words` of its own."""

    def __init__(self, schema: Schema, words: DialectTemplates, changed: ChangedFiles = tuple) -> None:
        self.schema, self._words, self._changed = schema, words, changed
        self._laid: CountingPlan | None = None  # the plan whose tables lie beside the trips
        self._tables: dict[str, str] = {}  # a table of ours → what stands after FROM for it

    # What an engine adds

    @abstractmethod
    def _trips(self, plan: CountingPlan) -> tuple[str, list[str]]:
        """What stands after FROM for the trips, and for each field its column there."""

    @abstractmethod
    def _put(self, name: str, table: Any) -> str:
        """Lay an Arrow table beside the trips; say what stands after FROM for it."""

    @abstractmethod
    def _drop(self, name: str) -> None:
        """Take a table away that lies beside the trips."""

    @abstractmethod
    def _keep(self, query: str) -> str:
        """Put aside what a query gives; say what stands after FROM for it."""

    @abstractmethod
    def _batches(self, query: str, most: int | None = None, *, by: str | None = None) -> Iterator[Any]:
        """An answer of at most so many rows as Arrow record batches.

        Rows with the same values of the columns `by` come together, in the order of all columns, which are one more.
        """

    @abstractmethod
    def _reading(self) -> AbstractContextManager[None]:
        """Turns the engine's errors into ours, without their text."""

    # Counting

    def count(self, plan: CountingPlan, key: bytes | None) -> Iterator[tuple[Ints, Ints]]:
        if plan.bound is None:
            return self.unbounded(plan)
        assert key is not None
        return self._bounded(plan, key)

    def _bounded(self, plan: CountingPlan, key: bytes) -> Iterator[tuple[Ints, Ints]]:
        if self._words.keyless:
            raise InputError(
                f"persons cannot be bounded there: {self._words.keyless}. Count with Spark, or export the trips to Parquet"
            )
        with self._reading():
            self._lay(plan)
            self._lay_secret(key)
            kept = self._tables["kept"] = self._keep(self._kept(plan))
            most = math.prod(plan.shape)
            yield from _pairs(self._batches(f"SELECT flat, COUNT(*) AS n FROM {kept} GROUP BY flat", most))

    def _kept(self, plan: CountingPlan) -> str:
        """Rows of the kept trips: person, perhaps period, flat, and `own`: how many the person had."""
        assert plan.bound is not None
        say = self._say(plan)
        steps = sql.steps_inside(plan, say, self._source(plan), self._named)
        kind, secret = plan.fields[plan.bound.person].kind, self._named(sql.SECRET_TABLE)
        kept = bounding.bounding_steps(plan.bound, kind, say, secret, with_load=True)
        return sql.query(
            [*steps, *kept], f"SELECT {bounding.kept_columns(plan.bound, with_load=True)} FROM kept"
        )

    def unbounded(self, plan: CountingPlan) -> Iterator[tuple[Ints, Ints]]:
        with self._reading():
            self._lay(plan)
            yield from _pairs(self._batches(self._ask(plan, sql.count_query), math.prod(plan.shape)))

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

        if sql.SECRET_TABLE in self._tables:
            self._drop(self._tables.pop(sql.SECRET_TABLE))
        self._tables[sql.SECRET_TABLE] = self._put(
            sql.SECRET_TABLE, pa.table({"word": pa.array([key], pa.binary())})
        )

    def _clear(self) -> None:
        """Take away all that lies beside the trips."""
        while self._tables:
            self._drop(self._tables.popitem()[1])
        self._laid = None

    def _named(self, table: str) -> str:
        return self._tables[table]

    def _say(self, plan: CountingPlan) -> TemplateDialect:
        return template_dialect(self._words, plan)

    def _source(self, plan: CountingPlan) -> str:
        return source_relation(self._say(plan), plan, *self._trips(plan))

    def _ask(self, plan: CountingPlan, query: Any, *more: Any) -> str:
        return str(query(plan, self._say(plan), self._source(plan), self._named, *more))

    # What is asked after counting

    def facts(self, plan: CountingPlan) -> CountFacts:
        say, source = self._say(plan), self._source(plan)
        most_kept = most_apart = allowed = weight = inside = None
        with self._reading():
            if plan.bound is not None:
                most_kept, inside = self._loads_kept(plan.bound)
                most_apart = self._most_apart(plan, plan.bound) if plan.bound.apart else None
                allowed = self._one(bounding.max_kept_in_all(plan, say, source))
            if plan.weight is not None:
                weight = self._one(sql.weight_query(plan, say, source))
        return CountFacts(
            self.rows(),
            weight,
            inside or 0,
            most_kept=most_kept,
            most_apart=most_apart,
            allowed=allowed,
            changed=self._changed(),
        )

    def _most_apart(self, plan: CountingPlan, bound: ContributionBound) -> int:
        """The greatest number of kept trips of any person in one slot."""
        who, slot = self._words.hex.format(b="person"), bounding.slot_of(plan, self._say(plan))
        return self._one(bounding.max_kept_by_person(bound, self._named("kept"), who, slot=slot))

    def _loads_kept(self, bound: ContributionBound) -> tuple[int, int]:
        """The greatest number of kept trips of any person, and how many trips there were of all persons."""
        who = self._words.hex.format(b="person") + ("" if bound.within is None else ", period")
        each = f"SELECT COUNT(flat) AS trips, MAX(own) AS own FROM {self._named('kept')} GROUP BY {who}"
        most, all_trips = self._rows(f"SELECT MAX(trips) AS trips, SUM(own) AS own FROM ({each}) e")[0]
        return int(most or 0), int(all_trips or 0)

    def _one(self, query: str) -> int:
        return int(self._rows(query)[0][0] or 0)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        """An answer that is small."""
        return [
            r for b in self._batches(query) for r in zip(*(c.to_pylist() for c in b.columns), strict=True)
        ]

    def by_person(self, plan: CountingPlan) -> Iterator[tuple[NDArray[np.bool_], Ints]]:
        assert plan.bound is not None
        last = None
        with self._reading():
            self._lay(plan)
            steps = sql.steps_inside(plan, self._say(plan), self._source(plan), self._named)
            by, columns = bounding.group_columns(plan.bound), bounding.kept_columns(plan.bound)
            for batch in self._batches(sql.query(steps, f"SELECT {columns} FROM inside"), by=by):
                if len(batch):
                    who = batch.columns[:-1]
                    yield group_starts(who, last), _whole(batch.columns[-1])
                    last = [column[-1] for column in who]

    # Inspecting

    def statuses(self, plan: CountingPlan) -> Statuses:
        with self._reading():
            self._lay(plan)
            rows = self._rows(self._ask(plan, sql.status_query))
        table = np.array(rows, dtype=np.int64).reshape(-1, len(plan.axes) + 6)
        return statuses_of(table, len(plan.axes))

    def examples(self, plan: CountingPlan, axis: int, status: int, most: int) -> list[tuple[str, int]]:
        with self._reading():
            self._lay(plan)
            return [
                (str(v), int(n))
                for v, n in self._rows(self._ask(plan, sql.example_query, axis, status, most))
            ]

    def by_day(self, plan: CountingPlan) -> Ints:
        with self._reading():
            self._lay(plan)
            query = sql.day_query(plan, self._say(plan), self._source(plan), self._named)
            rows = [] if query is None else self._rows(query)
        return np.array(rows, dtype=np.int64).reshape(-1, 3)

    def copies(self, fields: Sequence[Field], digits: int) -> Ints:
        plan = CountingPlan(tuple(fields), (), (), {})
        with self._reading():
            rows = self._rows(self._ask(plan, sql.duplicate_query, digits))
        return np.array(rows, dtype=np.int64).reshape(-1, 2)

    def loads(self, plan: CountingPlan) -> tuple[Ints, Ints, Ints]:
        with self._reading():
            self._lay(plan)
            rows = self._rows(self._ask(plan, bounding.load_rows))
        trips, persons, all_trips = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        return trips, persons, all_trips


def _pairs(batches: Iterator[Any]) -> Iterator[tuple[Ints, Ints]]:
    for batch in batches:
        yield _whole(batch.column(0)), _whole(batch.column(1))


def _whole(column: Any) -> Ints:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)
