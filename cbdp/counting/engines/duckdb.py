"""DuckDB, embedded: the default engine. Files, DuckDB databases, and tables in memory; nothing leaves this process.

Parquet and databases are read by DuckDB itself. Where its reader stops at a value (bytes that are no UTF-8, a stamp out of its
range), the count begins again with a reader that takes columns as they are, so that no row decides the outcome.
"""

# ruff: noqa: S608 - names and texts are quoted where they enter a query

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.counting import bounding
from cbdp.counting import columns as arrow
from cbdp.counting import files as on_disk
from cbdp.counting.columns import Schema, check_names
from cbdp.counting.engines import CountFacts, Engine, Source, Statuses, group_starts, sql, statuses_of
from cbdp.counting.engines.duckdb_dialect import ISO_STAMPS, DuckDialect, StoredField, identifier, literal
from cbdp.counting.files import are_files, spill_folder
from cbdp.counting.linking import Preparation, Prepared
from cbdp.counting.plan import ContributionBound, CountingPlan, Field
from cbdp.errors import InputError
from cbdp.machine import SETTING, engine_memory_mb

# Preparations: the raw rows are read once, into a table that is then counted like any other.

PREPARED_TABLE = "prepared"


def open_prepared(engine: Any, raw: Opened, by: Preparation) -> Opened:
    """What a preparation makes of open trips. No row is read until the first of them is asked for."""
    check_names(list(raw.schema.kinds), by.needs, quoted=raw.schema.typed)
    table = _PreparedTable(engine, raw, by)
    schema = replace(raw.schema, kinds=by.kinds(raw.schema.kinds))
    return Opened(schema, table.relation, None, table.rows, raw.changed, raw.damaged)


@dataclass
class _PreparedTable:
    """The table of prepared trips, made when it is first asked for."""

    engine: Any
    raw: Opened
    by: Preparation
    filled: bool = field(default=False)

    def relation(self, columns: Sequence[str]) -> Relation:

        self._make()
        described = self.engine.sql(f"DESCRIBE {PREPARED_TABLE}").fetchall()
        types = {row[0]: row[1] for row in described}
        return Relation(PREPARED_TABLE, {c: StoredField(identifier(c), types[c]) for c in columns})

    def rows(self) -> int:
        self._make()
        return int(self.engine.sql(f"SELECT count(*) FROM {PREPARED_TABLE}").fetchall()[0][0])

    def _make(self) -> None:
        """By DuckDB's own reader, and where that stops at a value, by the reader that takes columns as they are."""
        import duckdb

        if self.filled:
            return
        if self.raw.native is not None:
            try:
                self._fill(self.raw.native(self.by.needs))
            except (duckdb.InvalidInputException, duckdb.ConversionException):
                if self.raw.raw is None:
                    raise
        if not self.filled:
            assert self.raw.raw is not None
            self._fill(self.raw.raw(self.by.needs, ()))

    def _fill(self, source: Relation) -> None:
        say = DuckDialect(tuple(source.stored[c] for c in self.by.needs))
        kinds = [self.raw.schema.kind(c) for c in self.by.needs]
        for name, table in self.by.tables(kinds).items():
            self.engine.register(name, table)
        query = self.by.query(say, kinds, source.text)
        self.engine.execute(f"CREATE OR REPLACE TEMP TABLE {PREPARED_TABLE} AS {query}")
        self.filled = True


# What DuckDB opens: files, its own databases, and tables in memory. Opening looks at schemas, headers and footers alone.


# types of which two values are equal where they are written alike, and nowhere else; numbers are read by value
PLAIN_EQUALITY_TYPES = re.compile(
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
    raw: (
        Callable[[Sequence[str], Sequence[str]], Relation] | None
    )  # of columns, some of which hold ISO stamps
    rows: Callable[[], int]  # rows there are, by the source's own books; a stream knows when it has been read
    changed: Callable[[], tuple[str, ...]] = field(default=tuple)
    damaged: str = ""  # what to say when the rows cannot be read


def open_trips(engine: Any, trips: Any, needed: Sequence[str] | None) -> Opened:
    if isinstance(trips, Prepared):
        return open_prepared(engine, open_trips(engine, trips.trips, trips.by.needs), trips.by)
    if isinstance(trips, str) and "://" in trips:
        return _open_database(engine, trips)
    if on_disk.are_files(trips):
        files = on_disk.find_files(trips)
        return (
            _open_parquet(engine, files, needed)
            if on_disk.are_parquet(files)
            else _open_csv(engine, files, needed)
        )
    reader = arrow.batch_reader(trips, needed)
    return open_stream(engine, reader.schema, lambda _: reader, "the trips")


def open_stream(engine: Any, schema: Any, reader: Callable[[Sequence[str]], Any], label: str) -> Opened:
    """Record batches that can be read once, made by `reader` for the columns that it is asked for (or more)."""
    read = [0]

    def counted(batches: Any) -> Iterator[Any]:
        for batch in batches:
            read[0] += batch.num_rows
            yield batch

    def raw(columns: Sequence[str], _: Sequence[str]) -> Relation:
        batches = reader(columns)
        places = [batches.schema.names.index(c) for c in columns]
        raw_schema = arrow.raw_schema(batches.schema, places)
        return register_batches(
            engine, columns, raw_schema, arrow.raw_batches(counted(batches), places, raw_schema)
        )

    return Opened(Schema(label, arrow.arrow_types(schema)), None, raw, lambda: read[0])


def register_batches(
    engine: Any, columns: Sequence[str], schema: Any, batches: Iterator[Any], stamped: Sequence[str] = ()
) -> Relation:
    """Batches of columns v0, v1, …, and of s0, s1, …: what the plain stamps of the `stamped` ones say."""
    import pyarrow as pa

    engine.register("stream", pa.RecordBatchReader.from_batches(schema, batches))
    types = _relation_types(engine, "stream")
    stamps = {c: f"s{i}" for i, c in enumerate(stamped)}
    return Relation(
        "stream",
        {c: StoredField(f"v{i}", types[f"v{i}"], stamp=stamps.get(c)) for i, c in enumerate(columns)},
    )


def _relation_types(engine: Any, relation: str) -> dict[str, str]:
    return {row[0]: row[1] for row in engine.sql(f"DESCRIBE SELECT * FROM {relation}").fetchall()}


def native_relation(
    engine: Any, text: str, columns: Sequence[str], *, collated: bool = False, default: bool = False
) -> Relation:
    """A relation of DuckDB's own; `collated` columns may have collations, and with `default` so may the connection."""
    types = _relation_types(engine, text)
    stored = {}
    for column in columns:
        name, kept = identifier(column), types[column]
        if kept in ("UUID", "JSON") or kept.startswith("ENUM"):  # text to Arrow, and to us
            name, kept = f"CAST({name} AS VARCHAR)", "VARCHAR"
        if collated and kept == "VARCHAR":  # bytes have no collation, nor has what is made of them
            name = f"decode(encode({name}))"
        stored[column] = StoredField(name, kept, default)
    return Relation(text, stored)


def unequal_columns(engine: Any, text: str) -> dict[str, str]:
    """Columns of types of which it is not known that equal values are written alike: in DuckDB a month is 30 days."""
    return {
        c: kept
        for c, kept in _relation_types(engine, text).items()
        if not PLAIN_EQUALITY_TYPES.fullmatch(kept)
    }


# Files


def _open_parquet(engine: Any, files: on_disk.Files, needed: Sequence[str] | None) -> Opened:
    kinds = arrow.parquet_types(files.paths[0])
    if needed is not None:
        arrow.check_alike(files.paths, needed)
    listed = ", ".join(_literal_path(p) for p in files.paths)
    text = f"read_parquet([{listed}], hive_partitioning = false)"

    def raw(columns: Sequence[str], _: Sequence[str]) -> Relation:
        import pyarrow as pa

        schema = pa.schema([(f"v{i}", arrow.raw_type(kinds[c])) for i, c in enumerate(columns)])
        return register_batches(engine, columns, schema, arrow.parquet_batches(files.paths, columns, schema))

    return Opened(
        Schema(files.label, kinds, notes=files.notes),
        lambda columns: native_relation(engine, text, columns),
        raw,
        lambda: arrow.parquet_rows(files.paths),
        files.changed,
        ": it is damaged, or not whole",
    )


def _open_csv(engine: Any, files: on_disk.Files, needed: Sequence[str] | None) -> Opened:
    """CSV as bytes: types are ours to find, never guessed from private rows. The first line names the columns."""
    import pyarrow as pa

    from cbdp.counting import csv_rows

    headers = {path: csv_rows.csv_header(path) for path in files.paths}
    for path, (_, names) in headers.items():
        have = "the trips have" if len(headers) == 1 else f"{str(path)!r}, one of {len(headers)} files, has"
        check_names(names, needed or (), quoted=False, have=have)
    tally = csv_rows.ReadTotals()

    def batches(columns: Sequence[str], stamped: Sequence[str]) -> Iterator[Any]:
        tally.lines = tally.records = tally.rows = 0
        for path, (mark, names) in headers.items():
            places, stamps = ([names.index(c) for c in some] for some in (columns, stamped))
            yield from csv_rows.csv_batches(path, mark, len(names), places, tally, stamps=stamps)

    def raw(columns: Sequence[str], stamped: Sequence[str]) -> Relation:
        texts = [(f"v{i}", pa.binary()) for i in range(len(columns))]
        schema = pa.schema([*texts, *((f"s{i}", pa.int64()) for i in range(len(stamped)))])
        return register_batches(engine, columns, schema, batches(columns, stamped), stamped)

    first = dict.fromkeys(headers[files.paths[0]][1], pa.string())
    schema = Schema(files.label, first, typed=False, notes=files.notes)
    hint = ": it is damaged, or not whole"
    return Opened(schema, None, raw, lambda: min(tally.records, tally.lines), files.changed, hint)


def _literal_path(path: Path) -> str:
    """A path that the engine takes as it stands, brackets and stars being its patterns."""
    return literal(re.sub(r"([\[*?])", r"[\1]", str(path)))


# Databases


def _open_database(engine: Any, url: str) -> Opened:
    """A table of a DuckDB file, attached for reading. `duckdb:///x.db` is /x.db, or x.db where there is no /x.db."""
    place, table = split_url(url)
    place = place.removeprefix("duckdb://")
    path = next((p for p in (Path(place), Path(place.lstrip("/"))) if p.is_file()), None)
    if path is None:
        raise InputError(f"there is no file {place!r}")
    files = on_disk.Files((path,), (), (on_disk.file_identity(path),))
    with readable_errors(repr(str(path)), ": it is no DuckDB file, or another process holds it"):
        engine.execute(f"ATTACH {literal(str(path))} AS source (READ_ONLY)")
    text = ".".join(identifier(part) for part in ["source", *table.split(".")])
    with readable_errors(f"the table {table!r}", f": {str(path)!r} has none of this name"):
        kinds = arrow.arrow_types(engine.sql(f"SELECT * FROM {text} LIMIT 0").to_arrow_table().schema)
    schema = Schema(f"the table {table!r}", kinds, unequal=unequal_columns(engine, text))

    def rows() -> int:
        return int(engine.sql(f"SELECT count(*) FROM {text}").fetchall()[0][0])

    return Opened(
        schema,
        lambda columns: native_relation(engine, text, columns, collated=True),
        None,
        rows,
        files.changed,
    )


def split_url(url: str) -> tuple[str, str]:
    """The database and the table of a URL; a URL may hold a password and is never quoted."""
    place, _, table = url.rpartition("::")
    if not place or not table:
        scheme = url.partition("://")[0]
        raise InputError(f"a {scheme} URL names no table: end it with '::' and the table's name")
    return place, table


@contextmanager
def readable_errors(label: str, hint: str = "") -> Iterator[None]:
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


# The engine


T = TypeVar("T")

IN_MEMORY_LIBRARIES = (
    "pandas",
    "polars",
    "pyarrow",
    "duckdb",
    "_duckdb",
)  # libraries whose tables are read as Arrow
RESULT_BATCH_ROWS = 1_000_000  # rows of a batch that comes out
BOUNDED_ROWS_PER_MB = 8_000  # rows of persons' trips that are bounded at once, for each MB that DuckDB may hold: a list of them all takes 64 kB of it
PERFECT_HASH_BITS = 18  # trip types up to 2 to this are counted in an array: of 2 MB for each thread
MAX_BOUNDING_TURNS = (
    2**12
)  # turns in which persons are bounded, each a file: where more are needed, memory is too small
# DuckDB's rules of optimisation that are off. Queries name the trips first and public tables after them. How many rows a stream has is not known to the optimiser, which would
# take it for the smaller side and hold all of it in a hash table: joins are made as they are written, and trips stream through.
DISABLED_OPTIMIZERS = "join_order,build_side_probe_side"


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
        return are_files(trips) or isinstance(trips, Mapping) or library in IN_MEMORY_LIBRARIES

    @contextmanager
    def open(self, trips: Any, needed: Sequence[str] | None = None) -> Iterator[DuckSource]:
        with connection() as engine, readable_errors("the trips"):
            yield DuckSource(engine, open_trips(engine, trips, needed))


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
            engine.execute(f"SET disabled_optimizers = '{DISABLED_OPTIMIZERS}'")
            engine.execute(f"SET perfect_ht_threshold = {PERFECT_HASH_BITS}")
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
        with readable_errors(self.schema.label, self._opened.damaged):
            for batch in batches:
                flat, n = (np.asarray(batch.column(c).to_numpy(), dtype=np.int64) for c in ("flat", "n"))
                yield flat, n

    def _grouped(self, plan: CountingPlan, source: Relation) -> Iterator[Any]:
        return self._batches(sql.count_query(plan, self._say(plan, source), source.text, str))

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
        """Fill the table `kept`. Lists of trips and heaps of tickets cannot spill, so persons are taken in turns that fit in memory."""
        import duckdb

        turns, in_lists = 1 + self._size(source) // _rows_at_once(), True
        while True:
            try:
                return self._bound_in(turns, plan, source, say, in_lists=in_lists)
            except duckdb.OutOfMemoryException:
                turns, in_lists = turns * 4, False  # windows spill
                if turns > MAX_BOUNDING_TURNS:
                    raise

    def _bound_in(
        self, turns: int, plan: CountingPlan, source: Relation, say: DuckDialect, *, in_lists: bool
    ) -> None:
        assert plan.bound is not None
        steps = sql.steps_inside(plan, say, source.text, str)
        kind = plan.fields[plan.bound.person].kind
        with spill_folder() as folder:
            dealt = self._dealt(steps, plan.bound, turns, folder) if turns > 1 else []
            for n, inside in enumerate(dealt or [steps]):  # without a file there is nobody to bound
                # a turn of more rows than it should have may be one person's, who cannot be divided
                fits = (
                    turns == 1
                    or self._one(sql.query(inside, "SELECT count(*) FROM inside")) <= _rows_at_once()
                )
                persons = say.persons(plan.bound, kind, sql.SECRET_TABLE, in_lists=in_lists and fits)
                query = sql.query([*inside, *persons], "SELECT * FROM persons")
                if n == 0:
                    self._make("kept", query)
                else:
                    self._engine.execute(f"INSERT INTO kept {query}")

    def _dealt(
        self, steps: Sequence[sql.Step], bound: ContributionBound, turns: int, folder: Path
    ) -> list[list[sql.Step]]:
        """Rows inside, dealt by person to files of a private folder; what reads each of them.

        A turn then reads its own rows only, and not those of all.
        """
        columns = bounding.input_columns(bound)
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
        answer = iter(self._engine.sql(query).to_arrow_reader(RESULT_BATCH_ROWS))
        return itertools.chain(list(itertools.islice(answer, 1)), answer)

    # Reading

    def _read(self, plan: CountingPlan, work: Callable[[Relation], T], *, again: bool | None = None) -> T:
        """Do the work on the first form of the trips that can be read to its end, and keep to it."""
        import duckdb
        import pyarrow as pa

        self._lay(plan)
        with readable_errors(self.schema.label, self._opened.damaged):
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
            return work(self._raw(plan, columns, again=_reads_twice(plan) if again is None else again))

    def _raw(self, plan: CountingPlan, columns: Sequence[str], *, again: bool) -> Relation:
        """The trips as raw columns: a stream, or a table where it has to be read more than once."""
        assert self._opened.raw is not None
        iso = [m.field for m in plan.moments if any(form.written in ISO_STAMPS for form in m.forms)]
        relation = self._opened.raw(columns, list(dict.fromkeys(columns[f] for f in iso)))
        if again:
            self._make("spooled", f"SELECT * FROM {relation.text}")
            relation = self._relation = Relation("spooled", relation.stored)
        return relation

    def _lay(self, plan: CountingPlan) -> None:
        """Put the plan's public tables beside the trips."""
        if self._laid is plan:
            return
        for name, table in sql.lookup_tables(plan).items():
            self._engine.register("made", table)
            self._make(name, "SELECT * FROM made")
            self._engine.unregister("made")
        self._laid = plan

    def _say(self, plan: CountingPlan, source: Relation) -> DuckDialect:
        return DuckDialect(tuple(source.stored[f.name] for f in plan.fields))

    # What is asked after counting

    def rows(self) -> int:
        return self._opened.rows()

    def facts(self, plan: CountingPlan) -> CountFacts:
        most_kept = most_apart = allowed = weight = None
        inside = 0
        if plan.bound is not None:
            most_kept, most_apart = self._most(plan, plan.bound)
            inside = self._one("SELECT sum(own) FROM kept")
            allowed = self._read(
                plan,
                lambda source: self._one(
                    bounding.max_kept_in_all(plan, self._say(plan, source), source.text)
                ),
            )
        if plan.weight is not None:
            weight = self._read(
                plan, lambda source: self._one(sql.weight_query(plan, self._say(plan, source), source.text))
            )
        return CountFacts(
            read=self.rows(),
            weight=weight,
            inside=inside,
            most_kept=most_kept,
            most_apart=most_apart,
            allowed=allowed,
            changed=self._opened.changed(),
        )

    def _most(self, plan: CountingPlan, bound: ContributionBound) -> tuple[int, int | None]:
        """The greatest number of kept trips of any person, and in any slot where they are kept apart."""
        kept = "(SELECT *, unnest(flats) AS flat FROM kept)"
        most = self._one(bounding.max_kept_by_person(bound, kept, "hex(person)"))
        slot = bounding.slot_of(plan, DuckDialect(())) if bound.apart else ""
        return most, self._one(
            bounding.max_kept_by_person(bound, kept, "hex(person)", slot=slot)
        ) if slot else None

    def _one(self, query: str) -> int:
        return int(self._engine.sql(query).fetchall()[0][0] or 0)

    def by_person(self, plan: CountingPlan) -> Iterator[tuple[NDArray[np.bool_], Ints]]:
        def rows(source: Relation) -> Iterator[Any]:
            return self._batches(bounding.person_rows(plan, self._say(plan, source), source.text, str))

        last = None
        with readable_errors(self.schema.label, self._opened.damaged):
            for batch in self._read(plan, rows, again=False):
                if len(batch):
                    who = batch.columns[:-1]
                    yield group_starts(who, last), np.asarray(batch.column("flat").to_numpy(), dtype=np.int64)
                    last = [column[-1] for column in who]

    # Inspecting

    def statuses(self, plan: CountingPlan) -> Statuses:
        def rows(source: Relation) -> Any:
            return self._engine.sql(
                sql.status_query(plan, self._say(plan, source), source.text, str)
            ).fetchall()

        table = np.array(self._read(plan, rows, again=True), dtype=np.int64).reshape(-1, len(plan.axes) + 6)
        return statuses_of(table, len(plan.axes))

    def examples(self, plan: CountingPlan, axis: int, status: int, most: int) -> list[tuple[str, int]]:
        def rows(source: Relation) -> list[tuple[str, int]]:
            query = sql.example_query(plan, self._say(plan, source), source.text, str, axis, status, most)
            return [(str(value), int(n)) for value, n in self._engine.sql(query).fetchall()]

        return self._read(plan, rows, again=True)

    def by_day(self, plan: CountingPlan) -> Ints:
        def rows(source: Relation) -> Any:
            query = sql.day_query(plan, self._say(plan, source), source.text, str)
            return [] if query is None else self._engine.sql(query).fetchall()

        return np.array(self._read(plan, rows, again=True), dtype=np.int64).reshape(-1, 3)

    def copies(self, fields: Sequence[Field], digits: int) -> Ints:
        plan = CountingPlan(tuple(fields), (), (), {})

        def rows(source: Relation) -> Any:
            return self._engine.sql(
                sql.duplicate_query(plan, self._say(plan, source), source.text, str, digits)
            ).fetchall()

        return np.array(self._read(plan, rows, again=False), dtype=np.int64).reshape(-1, 2)

    def loads(self, plan: CountingPlan) -> tuple[Ints, Ints, Ints]:
        def rows(source: Relation) -> Any:
            return self._engine.sql(
                bounding.load_rows(plan, self._say(plan, source), source.text, str)
            ).fetchall()

        trips, persons, all_trips = (
            np.array(self._read(plan, rows, again=True), dtype=np.int64).reshape(-1, 3).T
        )
        return trips, persons, all_trips


def _rows_at_once() -> int:
    """The rows of persons' trips that are bounded at once."""
    return BOUNDED_ROWS_PER_MB * engine_memory_mb()


def _reads_twice(plan: CountingPlan) -> bool:
    """Whether the invariants read the trips again."""
    return plan.bound is not None or plan.weight is not None
