"""DuckDB, embedded: the default engine. Files, DuckDB databases, and tables in memory; nothing leaves this process.

Parquet and databases are read by DuckDB itself. Where its reader stops at a value (bytes that are no UTF-8, a stamp out of its
range), the count begins again with a reader that takes columns as they are, so that no row decides the outcome.
"""

# ruff: noqa: S608 - names and texts are quoted where they enter a query

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.machine import engine_memory_mb
from cbdp.trips.engines import duckdb_open, sql, sql_bounding, sql_inspect
from cbdp.trips.engines.base import Engine, Facts, Source, Statuses, begins, statuses_of
from cbdp.trips.engines.duckdb_dialect import DuckDialect, literal
from cbdp.trips.engines.duckdb_open import Opened, Relation, reading
from cbdp.trips.files import are_files
from cbdp.trips.plan import Bound, CountingPlan, Field
from cbdp.trips.preparing import Prepared
from cbdp.trips.spill import spill_folder

T = TypeVar("T")

IN_MEMORY = ("pandas", "polars", "pyarrow", "duckdb", "_duckdb")  # libraries whose tables are read as Arrow
ROWS = 1_000_000  # of a batch that comes out
ROWS_PER_MB = 8_000  # of persons' trips that are bounded at once
MOST_TURNS = 2**12
# Queries name the trips first and public tables after them. How many rows a stream has is not known to the optimiser, which would
# take it for the smaller side and hold all of it in a hash table: joins are made as they are written, and trips stream through.
AS_WRITTEN = "join_order,build_side_probe_side"


@dataclass(frozen=True)
class DuckDB(Engine):
    """DuckDB in this process."""

    name: ClassVar[str] = "duckdb"
    about: ClassVar[str] = "in this process: Parquet, CSV, DuckDB databases, Arrow, pandas, polars, columns"

    def opens(self, trips: Any) -> bool:
        return self.owns(trips) or hasattr(trips, "__arrow_c_stream__")

    def owns(self, trips: Any) -> bool:
        """Whether no other engine needs to be asked: files, DuckDB's URLs, columns, and the usual tables in memory."""
        if isinstance(trips, str) and "://" in trips:
            return trips.startswith("duckdb://")
        if isinstance(trips, Prepared):
            return True
        library = type(trips).__module__.partition(".")[0]
        return are_files(trips) or isinstance(trips, Mapping) or library in IN_MEMORY

    @contextmanager
    def open(self, trips: Any, wanted: Sequence[str] | None = None) -> Iterator[DuckSource]:
        with connection() as engine, reading("the trips"):
            yield DuckSource(engine, duckdb_open.open_trips(engine, trips, wanted))


@contextmanager
def connection() -> Iterator[Any]:
    """A database in memory that spills to a private folder, reaches for nothing by itself, and lives in UTC."""
    import duckdb

    with spill_folder() as folder:
        engine = duckdb.connect(
            ":memory:",
            config={
                "memory_limit": f"{engine_memory_mb()}MB",
                "temp_directory": str(folder),
                "preserve_insertion_order": "false",
                "autoinstall_known_extensions": "false",
                "python_enable_replacements": "false",
            },
        )
        try:
            engine.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
            engine.execute(f"SET disabled_optimizers = '{AS_WRITTEN}'")
            yield engine
        finally:
            engine.close()


class DuckSource(Source):
    """Trips that are open in DuckDB."""

    def __init__(self, engine: Any, opened: Opened) -> None:
        self.schema = opened.schema
        self._engine, self._opened = engine, opened
        self._laid: CountingPlan | None = None  # the plan whose tables lie beside the trips
        self._relation: Relation | None = None  # the one that could be read to its end

    # Counting

    def count(self, plan: CountingPlan, key: bytes | None) -> Iterator[tuple[Ints, Ints]]:
        if plan.bound is None:
            return self._pairs(self._read(plan, lambda source: self._grouped(plan, source)))
        assert key is not None
        return self._pairs(self._read(plan, lambda source: self._bounded(plan, source, key)))

    def unbounded(self, plan: CountingPlan) -> Iterator[tuple[Ints, Ints]]:
        return self._pairs(self._read(plan, lambda source: self._grouped(plan, source), again=True))

    def _pairs(self, batches: Iterator[Any]) -> Iterator[tuple[Ints, Ints]]:
        with reading(self.schema.label, self._opened.damaged):
            for batch in batches:
                flat, n = (np.asarray(batch.column(c).to_numpy(), dtype=np.int64) for c in ("flat", "n"))
                yield flat, n

    def _grouped(self, plan: CountingPlan, source: Relation) -> Iterator[Any]:
        return self._batches(sql.counts(plan, self._say(plan, source), source.text, str))

    def _bounded(self, plan: CountingPlan, source: Relation, key: bytes) -> Iterator[Any]:
        say = self._say(plan, source)
        self._engine.execute("CREATE OR REPLACE TEMP TABLE secret (word BLOB)")
        self._engine.execute("INSERT INTO secret VALUES (?)", [key])
        try:
            self._bound(plan, source, say)
        finally:
            self._engine.execute("DROP TABLE secret")
        return self._batches(
            "SELECT flat, count(*) AS n FROM (SELECT unnest(flats) AS flat FROM kept) GROUP BY flat"
        )

    def _bound(self, plan: CountingPlan, source: Relation, say: DuckDialect) -> None:
        """Fill the table `kept`. Heaps of tickets cannot spill, so persons are taken in turns that fit in memory."""
        import duckdb

        turns = 1 + self._size(source) // (ROWS_PER_MB * engine_memory_mb())
        while True:
            try:
                return self._bound_in(turns, plan, source, say)
            except duckdb.OutOfMemoryException:
                turns *= 4
                if turns > MOST_TURNS:
                    raise

    def _bound_in(self, turns: int, plan: CountingPlan, source: Relation, say: DuckDialect) -> None:
        assert plan.bound is not None
        steps = sql.steps_inside(plan, say, source.text, str)
        persons = say.persons(plan.bound, plan.fields[plan.bound.person].kind, sql.SECRET)
        with spill_folder() as folder:
            dealt = self._dealt(steps, plan.bound, turns, folder) if turns > 1 else []
            for n, inside in enumerate(dealt or [steps]):  # without a file there is nobody to bound
                made = sql.query([*inside, *persons], "SELECT * FROM persons")
                if n == 0:
                    self._make("kept", made)
                else:
                    self._engine.execute(f"INSERT INTO kept {made}")

    def _dealt(
        self, steps: Sequence[sql.Step], bound: Bound, turns: int, folder: Path
    ) -> list[list[sql.Step]]:
        """Rows inside, dealt by person to files of a private folder; what reads each of them.

        A turn then reads its own rows only, and not those of all.
        """
        columns = sql_bounding.inside(bound)
        rows = sql.query(steps, f"SELECT {columns}, hash(person) % {turns} AS turn FROM inside")
        into = folder / "turns"
        self._engine.execute(f"COPY ({rows}) TO {literal(str(into))} (FORMAT parquet, PARTITION_BY (turn))")
        files = [literal(f"{part}/*") for part in sorted(into.iterdir())] if into.exists() else []
        reads = [f"SELECT {columns} FROM read_parquet({f}, hive_partitioning = false)" for f in files]
        return [[sql.Step("inside", read)] for read in reads]

    def _make(self, table: str, query: str) -> None:
        self._engine.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {query}")

    def _size(self, source: Relation) -> int:
        return self._one(f"SELECT count(*) FROM {source.text}")

    def _batches(self, query: str) -> Iterator[Any]:
        """Batches of an answer. The first is fetched at once: what cannot be read shows before anything is believed."""
        answer = iter(self._engine.sql(query).to_arrow_reader(ROWS))
        return itertools.chain(list(itertools.islice(answer, 1)), answer)

    # Reading

    def _read(self, plan: CountingPlan, work: Callable[[Relation], T], *, again: bool | None = None) -> T:
        """Do the work on the first form of the trips that can be read to its end, and keep to it."""
        import duckdb
        import pyarrow as pa

        self._lay(plan)
        with reading(self.schema.label, self._opened.damaged):
            if self._relation is not None:
                return work(self._relation)
            columns = [field.name for field in plan.fields]
            if self._opened.native is not None:
                relation = self._opened.native(columns)
                try:
                    done = work(relation)
                except (duckdb.OutOfMemoryException, duckdb.InterruptException):
                    raise
                except (
                    duckdb.Error,
                    pa.ArrowException,
                ):  # a value that its reader stops at, or a damaged file
                    if self._opened.raw is None:
                        raise
                else:
                    self._relation = relation
                    return done
            return work(self._raw(columns, again=_twice(plan) if again is None else again))

    def _raw(self, columns: Sequence[str], *, again: bool) -> Relation:
        """The trips as raw columns: a stream, or a table where it has to be read more than once."""
        assert self._opened.raw is not None
        relation = self._opened.raw(columns)
        if again:
            self._make("spooled", f"SELECT * FROM {relation.text}")
            relation = self._relation = Relation("spooled", relation.stored)
        return relation

    def _lay(self, plan: CountingPlan) -> None:
        """Put the plan's public tables beside the trips."""
        if self._laid is plan:
            return
        for name, table in sql.tables(plan).items():
            self._engine.register("made", table)
            self._make(name, "SELECT * FROM made")
            self._engine.unregister("made")
        self._laid = plan

    def _say(self, plan: CountingPlan, source: Relation) -> DuckDialect:
        return DuckDialect(tuple(source.stored[f.name] for f in plan.fields))

    # What is asked after counting

    def rows(self) -> int:
        return self._opened.rows()

    def facts(self, plan: CountingPlan) -> Facts:
        most_kept = most_apart = allowed = weight = None
        inside = 0
        if plan.bound is not None:
            most_kept, most_apart = self._most(plan, plan.bound)
            inside = self._one("SELECT sum(own) FROM kept")
            allowed = self._read(
                plan,
                lambda source: self._one(sql_bounding.allowed(plan, self._say(plan, source), source.text)),
            )
        if plan.weight is not None:
            weight = self._read(
                plan, lambda source: self._one(sql.weights(plan, self._say(plan, source), source.text))
            )
        return Facts(
            read=self.rows(),
            weight=weight,
            inside=inside,
            most_kept=most_kept,
            most_apart=most_apart,
            allowed=allowed,
            changed=self._opened.changed(),
        )

    def _most(self, plan: CountingPlan, bound: Bound) -> tuple[int, int | None]:
        """The greatest number of kept trips of any person, and in any slot where they are kept apart."""
        kept = "(SELECT *, unnest(flats) AS flat FROM kept)"
        most = self._one(sql_bounding.most_kept(bound, kept, "hex(person)"))
        slot = sql_bounding.slot_of(plan, DuckDialect(())) if bound.apart else ""
        return most, self._one(
            sql_bounding.most_kept(bound, kept, "hex(person)", slot=slot)
        ) if slot else None

    def _one(self, query: str) -> int:
        return int(self._engine.sql(query).fetchall()[0][0] or 0)

    def by_person(self, plan: CountingPlan) -> Iterator[tuple[NDArray[np.bool_], Ints]]:
        def rows(source: Relation) -> Iterator[Any]:
            return self._batches(sql_bounding.by_person(plan, self._say(plan, source), source.text, str))

        last = None
        with reading(self.schema.label, self._opened.damaged):
            for batch in self._read(plan, rows, again=False):
                if len(batch):
                    who = batch.columns[:-1]
                    yield begins(who, last), np.asarray(batch.column("flat").to_numpy(), dtype=np.int64)
                    last = [column[-1] for column in who]

    # Inspecting

    def statuses(self, plan: CountingPlan) -> Statuses:
        def rows(source: Relation) -> Any:
            return self._engine.sql(
                sql_inspect.statuses(plan, self._say(plan, source), source.text, str)
            ).fetchall()

        found = np.array(self._read(plan, rows, again=True), dtype=np.int64).reshape(-1, len(plan.axes) + 6)
        return statuses_of(found, len(plan.axes))

    def examples(self, plan: CountingPlan, axis: int, status: int, most: int) -> list[tuple[str, int]]:
        def rows(source: Relation) -> list[tuple[str, int]]:
            query = sql_inspect.examples(plan, self._say(plan, source), source.text, str, axis, status, most)
            return [(str(value), int(n)) for value, n in self._engine.sql(query).fetchall()]

        return self._read(plan, rows, again=True)

    def by_day(self, plan: CountingPlan) -> Ints:
        def rows(source: Relation) -> Any:
            query = sql_inspect.by_day(plan, self._say(plan, source), source.text, str)
            return [] if query is None else self._engine.sql(query).fetchall()

        return np.array(self._read(plan, rows, again=True), dtype=np.int64).reshape(-1, 3)

    def copies(self, fields: Sequence[Field], digits: int) -> Ints:
        plan = CountingPlan(tuple(fields), (), (), {})

        def rows(source: Relation) -> Any:
            return self._engine.sql(
                sql_inspect.copies(plan, self._say(plan, source), source.text, str, digits)
            ).fetchall()

        return np.array(self._read(plan, rows, again=False), dtype=np.int64).reshape(-1, 2)

    def loads(self, plan: CountingPlan) -> tuple[Ints, Ints, Ints]:
        def rows(source: Relation) -> Any:
            return self._engine.sql(
                sql_bounding.loads(plan, self._say(plan, source), source.text, str)
            ).fetchall()

        trips, persons, own = np.array(self._read(plan, rows, again=True), dtype=np.int64).reshape(-1, 3).T
        return trips, persons, own


def _twice(plan: CountingPlan) -> bool:
    """Whether the invariants read the trips again."""
    return plan.bound is not None or plan.weight is not None
