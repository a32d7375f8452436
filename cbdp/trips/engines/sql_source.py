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

from cbdp.errors import InputError
from cbdp.trips.engines import sql, sql_inspect
from cbdp.trips.engines.base import Facts, Source, Statuses
from cbdp.trips.engines.spoken import Spoken, relation, spoken
from cbdp.trips.engines.words import Words
from cbdp.trips.kinds import Schema
from cbdp.trips.plan import CountingPlan

Ints = NDArray[np.int64]
Changed = Callable[[], tuple[str, ...]]  # files that are not what they were when they were opened


def unique(name: str) -> str:
    """A name for a table of ours that nobody else has."""
    return f"cbdp_{secrets.token_hex(8)}_{name}"


def batch_of(rows: Iterable[Sequence[Any]]) -> Any:
    """Rows, of which there is one at least, as a record batch."""
    import pyarrow as pa

    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])


class SqlSource(Source):
    """Trips that are open in an engine with `words` of its own."""

    def __init__(self, schema: Schema, words: Words, changed: Changed = tuple) -> None:
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

        Rows with the same value of a column `by` come together, in the order of all columns.
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
        """Rows (person, flat, own) of the kept trips; `own` is how many the person had."""
        assert plan.bound is not None
        say = self._say(plan)
        steps = sql.steps_inside(plan, say, self._source(plan), self._named)
        kept = say.kept(plan.bound, plan.fields[plan.bound.person].kind, self._named(sql.SECRET))
        return sql.query([*steps, *kept], "SELECT person, flat, own FROM kept")

    def unbounded(self, plan: CountingPlan) -> Iterator[tuple[Ints, Ints]]:
        with self._reading():
            self._lay(plan)
            yield from _pairs(self._batches(self._ask(plan, sql.counts), math.prod(plan.shape)))

    def _lay(self, plan: CountingPlan) -> None:
        """Put the plan's public tables beside the trips."""
        if self._laid is plan:
            return
        self._clear()
        for name, table in sql.tables(plan).items():
            self._tables[name] = self._put(name, table)
        self._laid = plan

    def _lay_secret(self, key: bytes) -> None:
        import pyarrow as pa

        if sql.SECRET in self._tables:
            self._drop(self._tables.pop(sql.SECRET))
        self._tables[sql.SECRET] = self._put(sql.SECRET, pa.table({"word": pa.array([key], pa.binary())}))

    def _clear(self) -> None:
        """Take away all that lies beside the trips."""
        while self._tables:
            self._drop(self._tables.popitem()[1])
        self._laid = None

    def _named(self, table: str) -> str:
        return self._tables[table]

    def _say(self, plan: CountingPlan) -> Spoken:
        return spoken(self._words, plan)

    def _source(self, plan: CountingPlan) -> str:
        return relation(self._say(plan), plan, *self._trips(plan))

    def _ask(self, plan: CountingPlan, query: Any, *more: Any) -> str:
        return str(query(plan, self._say(plan), self._source(plan), self._named, *more))

    # What is asked after counting

    def facts(self, plan: CountingPlan) -> Facts:
        say, source = self._say(plan), self._source(plan)
        most_kept = allowed = weight = inside = None
        with self._reading():
            if plan.bound is not None:
                most_kept, inside = self._loads_kept()
                allowed = self._one(sql.allowed(plan, say, source))
            if plan.weight is not None:
                weight = self._one(sql.weights(plan, say, source))
        return Facts(
            self.rows(), weight, inside or 0, most_kept=most_kept, allowed=allowed, changed=self._changed()
        )

    def _loads_kept(self) -> tuple[int, int]:
        """The greatest number of kept trips of any person, and how many trips there were of all persons."""
        who = self._words.hex.format(b="person")
        each = f"SELECT COUNT(flat) AS trips, MAX(own) AS own FROM {self._named('kept')} GROUP BY {who}"
        most, own = self._rows(f"SELECT MAX(trips) AS trips, SUM(own) AS own FROM ({each}) e")[0]
        return int(most or 0), int(own or 0)

    def _one(self, query: str) -> int:
        return int(self._rows(query)[0][0] or 0)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        """An answer that is small."""
        return [
            r for b in self._batches(query) for r in zip(*(c.to_pylist() for c in b.columns), strict=True)
        ]

    def by_person(self, plan: CountingPlan) -> Iterator[tuple[NDArray[np.bool_], Ints]]:
        last = None
        with self._reading():
            self._lay(plan)
            steps = sql.steps_inside(plan, self._say(plan), self._source(plan), self._named)
            for batch in self._batches(sql.query(steps, "SELECT person, flat FROM inside"), by="person"):
                if len(batch):
                    persons = batch.column(0)
                    yield _begins(persons, last), _whole(batch.column(1))
                    last = persons[-1]

    # Inspecting

    def statuses(self, plan: CountingPlan) -> Statuses:
        with self._reading():
            self._lay(plan)
            rows = self._rows(self._ask(plan, sql_inspect.statuses))
        found = np.array(rows, dtype=np.int64).reshape(-1, len(plan.axes) + 5)
        axes, rest = found[:, : len(plan.axes)], found[:, len(plan.axes) :]
        zero, nobody, weightless = (rest[:, c].astype(bool) for c in range(3))
        return Statuses(axes, zero, nobody, weightless, rest[:, 3], rest[:, 4])

    def examples(self, plan: CountingPlan, axis: int, status: int, most: int) -> list[tuple[str, int]]:
        with self._reading():
            self._lay(plan)
            return [
                (str(v), int(n))
                for v, n in self._rows(self._ask(plan, sql_inspect.examples, axis, status, most))
            ]

    def span(self, plan: CountingPlan) -> tuple[int, int] | None:
        with self._reading():
            self._lay(plan)
            query = sql_inspect.span(plan, self._say(plan), self._source(plan), self._named)
            first, last = (None, None) if query is None else self._rows(query)[0]
        return None if first is None else (int(first), int(last))

    def loads(self, plan: CountingPlan) -> tuple[Ints, Ints]:
        with self._reading():
            self._lay(plan)
            rows = self._rows(self._ask(plan, sql.loads))
        trips, persons = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        return trips, persons


def _pairs(batches: Iterator[Any]) -> Iterator[tuple[Ints, Ints]]:
    for batch in batches:
        yield _whole(batch.column(0)), _whole(batch.column(1))


def _whole(column: Any) -> Ints:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def _begins(persons: Any, last: Any) -> NDArray[np.bool_]:
    """Where another person's trips begin."""
    import pyarrow.compute as pc

    made = np.ones(len(persons), dtype=bool)
    made[0] = last is None or not persons[0].equals(last)
    made[1:] = np.asarray(pc.not_equal(persons[1:], persons[:-1]).to_numpy(zero_copy_only=False), dtype=bool)
    return made
