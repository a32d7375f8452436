"""DuckDB, embedded: the default engine. Files, DuckDB databases, and tables in memory; nothing leaves this process.

Parquet and databases are read by DuckDB itself. Where its reader stops at a value (bytes that are no UTF-8, a stamp out of its
range), the count begins again with a reader that takes columns as they are, so that no row decides the outcome.
"""

# ruff: noqa: S608 - names and texts are quoted where they enter a query

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from cbdp.counting import bounding, clock
from cbdp.counting import columns as arrow
from cbdp.counting import files as on_disk
from cbdp.counting.clock import FIRST_DAY, ISO_DATE, ISO_LOCAL, ISO_STAMP, LAST_DAY, WrittenForm
from cbdp.counting.columns import REAL, STAMP, TEXT, WHOLE, ColumnKind, Schema, check_names
from cbdp.counting.engines import Engine, sql
from cbdp.counting.engines.dialects import DUCKDB_TEMPLATES, DialectTemplates, TemplateDialect, microseconds
from cbdp.counting.engines.sql import EARLIEST_MICROSECOND, LATEST_MICROSECOND, Dialect, Step
from cbdp.counting.engines.sql_source import Answer, SqlSource, ordered_query
from cbdp.counting.files import are_files, spill_folder
from cbdp.counting.linking import Prepared, open_prepared
from cbdp.counting.plan import ContributionBound, CountingPlan, KeyKind
from cbdp.errors import InputError
from cbdp.machine import SETTING, engine_memory_mb
from cbdp_features.calendar import SECONDS_PER_DAY

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

literal, identifier = DUCKDB_TEMPLATES.literal, DUCKDB_TEMPLATES.identifier

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


def open_trips(engine: duckdb.DuckDBPyConnection, trips: object, needed: Sequence[str] | None) -> Opened:
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


def open_stream(
    engine: duckdb.DuckDBPyConnection,
    schema: pa.Schema,
    reader: Callable[[Sequence[str]], pa.RecordBatchReader],
    label: str,
) -> Opened:
    """Record batches that can be read once, made by `reader` for the columns that it is asked for (or more)."""
    read = [0]

    def counted(batches: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
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
    engine: duckdb.DuckDBPyConnection,
    columns: Sequence[str],
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    stamped: Sequence[str] = (),
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


def _relation_types(engine: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    return {row[0]: row[1] for row in engine.sql(f"DESCRIBE SELECT * FROM {relation}").fetchall()}


def native_relation(
    engine: duckdb.DuckDBPyConnection,
    text: str,
    columns: Sequence[str],
    *,
    collated: bool = False,
    default: bool = False,
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


def unequal_columns(engine: duckdb.DuckDBPyConnection, text: str) -> dict[str, str]:
    """Columns of types of which it is not known that equal values are written alike: in DuckDB a month is 30 days."""
    return {
        c: kept
        for c, kept in _relation_types(engine, text).items()
        if not PLAIN_EQUALITY_TYPES.fullmatch(kept)
    }


# Files


def _open_parquet(
    engine: duckdb.DuckDBPyConnection, files: on_disk.Files, needed: Sequence[str] | None
) -> Opened:
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


def _open_csv(
    engine: duckdb.DuckDBPyConnection, files: on_disk.Files, needed: Sequence[str] | None
) -> Opened:
    """CSV as bytes: types are ours to find, never guessed from private rows. The first line names the columns."""
    import pyarrow as pa

    from cbdp.counting import csv_rows

    headers = {path: csv_rows.csv_header(path) for path in files.paths}
    for path, (_, names) in headers.items():
        have = "the trips have" if len(headers) == 1 else f"{str(path)!r}, one of {len(headers)} files, has"
        check_names(names, needed or (), quoted=False, have=have)
    tally = csv_rows.ReadTotals()

    def batches(columns: Sequence[str], stamped: Sequence[str]) -> Iterator[pa.RecordBatch]:
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


def _open_database(engine: duckdb.DuckDBPyConnection, url: str) -> Opened:
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
KEPT_TRIPS = "(SELECT *, unnest(flats) AS flat FROM kept) k"  # the trips of the lists in the table `kept`
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

    def opens(self, trips: object) -> bool:
        return self.owns(trips) or hasattr(trips, "__arrow_c_stream__")

    def owns(self, trips: object) -> bool:
        """Whether no other engine needs to be asked: files, DuckDB's URLs, columns, and the usual tables in memory."""
        if isinstance(trips, str) and "://" in trips:
            return trips.startswith("duckdb://")
        if isinstance(trips, Prepared):
            return True
        library = type(trips).__module__.partition(".")[0]
        return are_files(trips) or isinstance(trips, Mapping) or library in IN_MEMORY_LIBRARIES

    @contextmanager
    def open(self, trips: object, needed: Sequence[str] | None = None) -> Iterator[DuckSource]:
        with connection() as engine, readable_errors("the trips"):
            yield DuckSource(engine, open_trips(engine, trips, needed))


@contextmanager
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
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


class DuckSource(SqlSource):
    """Trips that are open in DuckDB."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, opened: Opened) -> None:
        super().__init__(opened.schema, opened.changed)
        self._engine, self._opened = engine, opened
        self._relation: Relation | None = None  # the one that could be read to its end

    def rows(self) -> int:
        return self._opened.rows()

    # Reading

    def _read(self, plan: CountingPlan, work: Callable[[Dialect, str], T], *, again: bool | None = None) -> T:
        """Do the work on the first form of the trips that can be read to its end, and keep to it."""
        import duckdb
        import pyarrow as pa

        def done_on(relation: Relation) -> T:
            return work(DuckDialect(tuple(relation.stored[c] for c in columns)), relation.text)

        columns = [field.name for field in plan.fields]
        with self._reading():
            self._lay(plan)
            if self._relation is not None:
                return done_on(self._relation)
            if self._opened.native is not None:
                relation = self._opened.native(columns)
                try:
                    done = done_on(relation)
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
            return done_on(self._raw(plan, columns, again=_reads_twice(plan) if again is None else again))

    def _raw(self, plan: CountingPlan, columns: Sequence[str], *, again: bool) -> Relation:
        """The trips as raw columns: a stream, or a table where it has to be read more than once."""
        assert self._opened.raw is not None
        iso = [m.field for m in plan.moments if any(form.written in ISO_STAMPS for form in m.forms)]
        relation = self._opened.raw(columns, list(dict.fromkeys(columns[f] for f in iso)))
        if again:
            self._make("spooled", f"SELECT * FROM {relation.text}")
            relation = self._relation = Relation("spooled", relation.stored)
        return relation

    def _reading(self) -> AbstractContextManager[None]:
        return readable_errors(self.schema.label, self._opened.damaged)

    def _put(self, name: str, table: pa.Table) -> str:
        self._engine.register("made", table)
        self._make(name, "SELECT * FROM made")
        self._engine.unregister("made")
        return name

    def _make(self, table: str, query: str) -> None:
        self._engine.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {query}")

    def _drop(self, name: str) -> None:
        self._engine.execute(f"DROP TABLE IF EXISTS {'kept' if name == KEPT_TRIPS else name}")

    def _keep(self, query: str) -> str:
        """Persons with their lists of kept trips."""
        self._make("kept", query)
        return KEPT_TRIPS

    def _batches(
        self,
        query: str,
        most: int | None = None,  # noqa: ARG002 - batches come one after another, however many
        *,
        by: str | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The first batch is fetched at once: what cannot be read shows before anything is believed."""
        answer = iter(self._engine.sql(ordered_query(query, by)).to_arrow_reader(RESULT_BATCH_ROWS))
        return itertools.chain(list(itertools.islice(answer, 1)), answer)

    def _rows(self, query: str) -> Answer:
        return list(self._engine.sql(query).fetchall())

    def _whose(self) -> str:
        return DUCKDB_TEMPLATES.hex.format(b="person")

    # Bounding

    def _kept(self, plan: CountingPlan, say: Dialect, trips: str) -> str:
        """Lists of trips and heaps of tickets cannot spill, so persons are taken in turns that fit in memory."""
        import duckdb

        assert isinstance(say, DuckDialect)
        turns, in_lists = 1 + self._one(f"SELECT count(*) FROM {trips}") // _rows_at_once(), True
        try:
            while True:
                try:
                    return self._kept_in(turns, plan, say, trips, in_lists=in_lists)
                except duckdb.OutOfMemoryException:
                    turns, in_lists = turns * 4, False  # windows spill
                    if turns > MAX_BOUNDING_TURNS:
                        raise
        finally:
            self._drop_secret()

    def _kept_in(
        self, turns: int, plan: CountingPlan, say: DuckDialect, trips: str, *, in_lists: bool
    ) -> str:
        assert plan.bound is not None
        kept, steps = KEPT_TRIPS, sql.steps_inside(plan, say, trips, self._named)
        kind, secret = plan.fields[plan.bound.person].kind, self._named(sql.SECRET_TABLE)
        with spill_folder() as folder:
            dealt = self._dealt(steps, plan.bound, turns, folder) if turns > 1 else []
            for n, inside in enumerate(dealt or [steps]):  # without a file there is nobody to bound
                # a turn of more rows than it should have may be one person's, who cannot be divided
                fits = (
                    turns == 1
                    or self._one(sql.query(inside, "SELECT count(*) FROM inside")) <= _rows_at_once()
                )
                persons = say.persons(plan.bound, kind, secret, in_lists=in_lists and fits)
                query = sql.query([*inside, *persons], "SELECT * FROM persons")
                if n == 0:
                    kept = self._keep(query)
                else:
                    self._engine.execute(f"INSERT INTO kept {query}")
        return kept

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


def _rows_at_once() -> int:
    """The rows of persons' trips that are bounded at once."""
    return BOUNDED_ROWS_PER_MB * engine_memory_mb()


def _reads_twice(plan: CountingPlan) -> bool:
    """Whether the invariants read the trips again."""
    return plan.bound is not None or plan.weight is not None


# The dialect, by how each column is stored: as DuckDB has it (VARCHAR, TIMESTAMP, …), or raw, as it came from Arrow: text as BLOB, times as whole numbers of their unit. Raw columns can hold anything: bytes that are
# no UTF-8, stamps beyond any calendar.


ISO_STAMPS = (ISO_STAMP, ISO_LOCAL)
UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
INTEGER_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
AFTER_NUMBERS = (
    "':'::BLOB"  # no number begins with a byte from here on: blanks, signs, dots and digits come before
)
MAX_ARG_MIN_VALUES = 1_000_000  # arg_min keeps fewer values than this


@dataclass(frozen=True)
class StoredField:
    """Where a field is found: an expression, and its type in DuckDB. Text has no collation of its own here."""

    expression: str
    type: str
    collated: bool = False  # whether the connection may have a collation for all texts
    stamp: str | None = (
        None  # where the text is a plain ISO stamp, its microseconds; NULL where it is not, or it is not known
    )

    @property
    def raw(self) -> bool:
        return self.type == "BLOB"


@dataclass(frozen=True)
class DuckDialect(TemplateDialect):
    """DuckDB's dialect: what depends on how a field is stored, and what DuckDB says in fewer words than the others."""

    words: DialectTemplates = field(default=DUCKDB_TEMPLATES, init=False)
    forms: tuple[tuple[int, WrittenForm], ...] = field(default=(), init=False)  # its own parser reads times
    stored: tuple[StoredField, ...]

    def column(self, field: int) -> str:
        return self.stored[field].expression

    def bytes_of(self, field: int) -> str:
        return self.column(field) if self.stored[field].raw else super().bytes_of(field)

    def text_of(self, field: int) -> str:
        return f"TRY(decode({self.column(field)}))" if self.stored[field].raw else self.column(field)

    def number_in_text(self, text: str, by: KeyKind) -> str:
        if by == "truth":
            is_true, is_false = (self.fits(text, p) for p in (clock.TRUE_PATTERN, clock.FALSE_PATTERN))
            return f"CASE WHEN {is_true} THEN 1 WHEN {is_false} THEN 0 END"
        pattern = {"whole": clock.WHOLE_PATTERN, "dotted": clock.DOTTED_PATTERN, "real": clock.REAL_PATTERN}[
            by
        ]
        match = f"regexp_extract({text}, {literal(f'^(?:{pattern})$')}, 1)"
        return f"(TRY_CAST({match} AS DOUBLE) + 0)" if by == "real" else f"TRY_CAST({match} AS BIGINT)"

    def whole(self, field: int, kind: ColumnKind) -> str:
        v, stored = self.column(field), self.stored[field].type
        if kind.name == REAL:  # a cast would round
            return f"CASE WHEN {v} = floor({v}) THEN TRY_CAST({v} AS BIGINT) END"
        return f"CAST({v} AS BIGINT)" if stored in (*INTEGER_TYPES, "BOOLEAN") else f"TRY_CAST({v} AS BIGINT)"

    # Times

    def _readable(self, field: int, kind: ColumnKind) -> str:
        """What a written form is applied to: text, or the digits of a number."""
        return self.text_of(field) if kind.name == TEXT else f"CAST({self.whole(field, kind)} AS VARCHAR)"

    def written_instant(self, field: int, kind: ColumnKind, form: WrittenForm) -> str:
        parsed, stamp = _parsed_micros(self._readable(field, kind), form), self.stored[field].stamp
        if stamp is None or form not in ISO_STAMPS:
            return parsed
        return f"CASE WHEN {stamp} IS NOT NULL THEN {stamp} ELSE {parsed} END"

    def stamp(self, field: int, kind: ColumnKind) -> str:
        v, stored = self.column(field), self.stored[field].type
        if stored == "BIGINT":
            return _micros(v, UNITS_PER_SECOND[kind.unit])
        if stored in ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"):
            return super().stamp(field, kind)
        return _micros(f"TRY(epoch_ns({v}))", UNITS_PER_SECOND["ns"])

    def written_day(self, field: int, kind: ColumnKind, form: WrittenForm) -> str:
        parsed = _parsed_micros(self._readable(field, kind), form)
        if form == ISO_DATE and self.stored[field].stamp is not None:  # a text is not both
            parsed = f"CASE WHEN {self.stored[field].stamp} IS NULL THEN {parsed} END"
        return _floor_division(parsed, SECONDS_PER_DAY * 10**6)

    def date(self, field: int, kind: ColumnKind) -> str:
        v = self.column(field)
        if self.stored[field].type not in INTEGER_TYPES:
            return super().date(field, kind)
        if kind.unit == "D":
            return f"CAST({v} AS BIGINT)"
        units = SECONDS_PER_DAY * UNITS_PER_SECOND[kind.unit]
        return f"CASE WHEN {v} BETWEEN {FIRST_DAY * units} AND {LAST_DAY * units} THEN {_floor_division(v, units)} END"

    def written_second(self, field: int, kind: ColumnKind, form: WrittenForm) -> str:
        return _parsed_time(self._readable(field, kind), form)

    def time(self, field: int, kind: ColumnKind) -> str:
        if self.stored[field].type not in INTEGER_TYPES:
            return super().time(field, kind)
        v, units = self.column(field), UNITS_PER_SECOND[kind.unit]
        return (
            f"CASE WHEN {v} BETWEEN 0 AND {SECONDS_PER_DAY * units} THEN CAST({v} AS BIGINT) // {units} END"
        )

    # Persons

    def person(self, field: int, kind: ColumnKind) -> str:
        at = self.stored[field]
        if kind.name == WHOLE and at.type in INTEGER_TYPES:
            return f"CAST({at.expression} AS BIGINT)"
        if kind.name == TEXT:
            text = _canonical_text(self.text_of(field), kind)
            if at.raw:  # what is no UTF-8 is no number, nor what begins with a letter
                v = at.expression  # a nullif would work everything out twice
                return f"CASE WHEN {v} >= {AFTER_NUMBERS} THEN {v} WHEN {v} > ''::BLOB THEN COALESCE(encode({text}), {v}) END"
            # without a collation, text is its bytes, and is sorted faster
            return f"nullif(encode({text}), ''::BLOB)" if at.collated else f"nullif({text}, '')"
        if at.raw:
            return f"nullif({at.expression}, ''::BLOB)"
        return self._in_bytes(field, self._person_text(field, kind))

    def _in_bytes(self, field: int, text: str) -> str:
        return f"encode({text})" if self.stored[field].collated else text

    def _person_text(self, field: int, kind: ColumnKind) -> str:
        at = self.stored[field]
        if kind.name == REAL:
            written_out = f"CAST({at.expression} AS VARCHAR)"
            other = f"CASE WHEN {written_out} NOT IN ('nan', '-nan') THEN {written_out} END"
            return f"COALESCE(CAST({self.whole(field, kind)} AS VARCHAR), {other})"
        return f"CAST({at.expression} AS VARCHAR)"

    def person_bytes(self, field: int, kind: ColumnKind) -> str:
        at = self.stored[field]
        if kind.name == WHOLE and at.type in INTEGER_TYPES:
            return "encode(CAST(person AS VARCHAR))"
        return "person" if at.raw or at.collated else "encode(person)"

    def nobody_else(self, field: int, kind: ColumnKind) -> str:
        at = self.stored[field]
        if at.raw or kind.name == TEXT:
            stored = name = self.bytes_of(field)
            if kind.name == TEXT:
                text = self.text_of(field)
                same = f"{stored} > ';'::BLOB OR CAST(TRY_CAST({text} AS BIGINT) AS VARCHAR) = {text}"
                name = (
                    f"CASE WHEN {same} THEN {stored} ELSE COALESCE({_number_text(text, kind)}, {stored}) END"
                )
            return f"CASE WHEN octet_length({stored}) > 0 THEN {name} END"
        text = f"CAST({at.expression} AS VARCHAR)"
        if kind.name == REAL:
            return f"CASE WHEN NOT contains({text}, 'nan') THEN CASE WHEN {at.expression} = 0 THEN '0' ELSE {text} END END"
        return text

    def shown(self, field: int, kind: ColumnKind) -> str:
        v = self.stored[field].expression
        if self.stored[field].raw or kind.name == TEXT:
            text = f"COALESCE({self.text_of(field)}, CAST({v} AS VARCHAR))"
            return f"nullif({text}, '')"
        if self.stored[field].type == "BIGINT" and kind.name == STAMP:
            micros = self.stamp(field, kind)
            stamp = f"CAST(make_timestamp({micros}) AS VARCHAR)"
            return f"CASE WHEN {micros} BETWEEN {EARLIEST_MICROSECOND} AND {LATEST_MICROSECOND} THEN {stamp} ELSE CAST({v} AS VARCHAR) END"
        return f"CASE WHEN CAST({v} AS VARCHAR) NOT IN ('nan', '-nan') THEN CAST({v} AS VARCHAR) END"

    def fits(self, text: str, pattern: str) -> str:
        return _matches_pattern(text, pattern)

    def digest(self, kinds: Sequence[ColumnKind]) -> str:  # noqa: ARG002 - fields are hashed as they are stored
        return f"lpad(hex(hash({', '.join(at.expression for at in self.stored)})), 16, '0')"

    def huge(self, field: int, kind: ColumnKind) -> str:
        v = self.stored[field].expression
        if kind.name == TEXT:
            return self.fits(self.text_of(field), clock.NOT_NEGATIVE_PATTERN)
        double = f"CAST({v} AS DOUBLE)"
        whole = f"{v} = floor({v}) AND isfinite({double}) AND " if kind.name == REAL else ""
        return f"({whole}{double} >= 9223372036854775808.0::DOUBLE)"

    def second_without_instant(self, second: str, instant: str) -> str:
        return f"CASE WHEN COALESCE({instant} NOT BETWEEN {EARLIEST_MICROSECOND} AND {LATEST_MICROSECOND}, true) THEN {second} END"

    def persons(
        self, bound: ContributionBound, kind: ColumnKind, secret: str, *, in_lists: bool
    ) -> list[Step]:
        """Steps from `inside` to `persons`: a row for each, and for each of their periods, with their kept trips and how many they have in all.

        With `in_lists`, trips are gathered in a list for each person, of which one person's must fit in memory: a third of the work where most have few.

        Proof: docs/proofs/bounding.md.
        """
        who, with_load = bounding.group_columns(bound), bool(bound.apart)
        if in_lists and not with_load and bound.most < MAX_ARG_MIN_VALUES:
            return self._persons_in_lists(bound, kind, secret)
        # with the load, of trips in one slot only one comes to be counted here
        steps = bounding.bounding_steps(bound, kind, self, secret, with_load=with_load)
        if bound.most < MAX_ARG_MIN_VALUES:
            flats, of = _least_tickets(bound), "ticketed"
        else:
            flats, of = f"list(flat) FILTER (place <= {bound.most})", "chosen"
        load = "any_value(own)" if with_load else "count(*)"
        each = Step("persons", f"SELECT {who}, {flats} AS flats, {load} AS own FROM {of} GROUP BY {who}")
        return [*steps[: [s.name for s in steps].index(of) + 1], each]

    def _persons_in_lists(self, bound: ContributionBound, kind: ColumnKind, secret: str) -> list[Step]:
        """Who has at most `most` trips keeps all of them, whatever their tickets; only the others' are numbered and drawn. Proof: docs/proofs/bounding.md."""
        who = bounding.group_columns(bound)
        ticket = self.ticket(bound.person, kind, bounding.ticket_numbers(bound, slot=False))
        number = "unnest(list_sort(flats)) AS flat, unnest(range(1, own + 1)) AS j"
        return [
            Step("owned", f"SELECT {who}, list(flat) AS flats, count(*) AS own FROM inside GROUP BY {who}"),
            Step("numbered", f"SELECT {who}, {number} FROM owned WHERE own > {bound.most}"),
            Step("ticketed", f"SELECT {who}, flat, {ticket} AS ticket FROM numbered CROSS JOIN {secret} s"),
            Step(
                "drawn",
                f"SELECT {who}, {_least_tickets(bound)} AS flats, count(*) AS own FROM ticketed GROUP BY {who}",
            ),
            Step(
                "persons",
                f"SELECT {who}, flats, own FROM owned WHERE own <= {bound.most} UNION ALL SELECT {who}, flats, own FROM drawn",
            ),
        ]


def _least_tickets(bound: ContributionBound) -> str:
    """The trips of least tickets (of their first 96 bits): a heap is cheaper than a second sort."""
    return f"arg_min(flat, unhex(substr(ticket, 1, 24)), {bound.most})"


def _floor_division(whole: str, by: int) -> str:
    """A whole number divided and rounded down, also below zero; // rounds towards zero."""
    rest = f"((({whole}) % {by} + {by}) % {by})"
    return f"((({whole}) - {rest}) // {by})"


def _micros(units: str, per_second: int) -> str:
    """As `microseconds`, also of units that are as small or smaller."""
    if per_second < 10**6:
        return microseconds(units, per_second)
    if per_second == 10**6:
        return units
    low, high = EARLIEST_MICROSECOND * per_second // 10**6, (LATEST_MICROSECOND + 1) * per_second // 10**6
    return (
        f"CASE WHEN {units} BETWEEN {low} AND {high} THEN {_floor_division(units, per_second // 10**6)} END"
    )


def _canonical_text(text: str, kind: ColumnKind) -> str:
    """Text of a person, of which numbers are written in one way: "289.0" as "289"; of a CSV also "0289", "+289" and "2.89e2".

    Whole numbers are their digits, others ".", their significant digits and the exponent. Proof: docs/proofs/bounding.md.
    """
    if not kind.free:
        plain = f"regexp_replace({text}, {literal(f'^{clock.DOTTED_PATTERN}$')}, '\\1')"
        return f"CASE WHEN contains({text}, '.') THEN {plain} ELSE {text} END"
    pattern = literal(f"^(?:{clock.NUMBER_PARTS_PATTERN})$")
    minus, whole, part, bare, exponent = (f"regexp_extract({text}, {pattern}, {g})" for g in range(1, 6))
    digits = f"({whole} || {part} || {bare})"
    led = f"ltrim({digits}, '0')"
    significant = f"rtrim({led}, '0')"
    power = (
        f"(length({whole}) - length({digits}) + length({led}) + COALESCE(TRY_CAST({exponent} AS BIGINT), 0))"
    )
    number = (
        f"CASE WHEN {led} = '' THEN '0' ELSE replace({minus}, '+', '') || "
        f"CASE WHEN {power} >= length({significant}) THEN rpad({significant}, CAST({power} AS INTEGER), '0') "
        f"ELSE '.' || {significant} || 'e' || {power} END END"
    )
    simple = f"regexp_full_match({text}, '[1-9][0-9]*')"
    return f"CASE WHEN {simple} OR NOT {_matches_pattern(text, clock.NUMBER_PARTS_PATTERN)} THEN {text} ELSE {number} END"


def _number_text(text: str, kind: ColumnKind) -> str:
    """As `_canonical_text`, in other words: the bytes of a number of few digits by its value, NULL of other texts."""
    if not kind.free:
        return f"CASE WHEN {_matches_pattern(text, clock.DOTTED_PATTERN)} THEN encode(split_part({text}, '.', 1)) END"
    few = "[ \t]*[+-]?[0-9]{1,18}(?:[.]0*)?[ \t]*"
    value = f"TRY_CAST(split_part(trim({text}, {literal(' ' + chr(9))}), '.', 1) AS BIGINT)"
    return f"CASE WHEN {_matches_pattern(text, few)} THEN encode(CAST({value} AS VARCHAR)) END"


def _matches_pattern(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, {literal(pattern)})"


def _parsed_micros(text: str, form: WrittenForm) -> str:
    """Microseconds of a text in a written form. The pattern decides what is read, the engine's parser only reads it."""
    if form.format is not None:
        cases = {form.pattern: f"try_strptime({text}, {literal(form.format)})"}
    elif "z" in form.parts:  # without a zone it is read as UTC, and four times as fast
        plain, zoned = (
            form.pattern.replace(clock.ZONE_PATTERN, z) for z in ("", clock.ZONE_PATTERN.removesuffix("?"))
        )
        cases = {plain: f"TRY_CAST({text} AS TIMESTAMP)", zoned: f"TRY_CAST({text} AS TIMESTAMPTZ)"}
    else:
        cases = {form.pattern: f"TRY_CAST({text} AS TIMESTAMP)"}
    whens = (
        f"WHEN {_matches_pattern(text, pattern)} THEN TRY(epoch_us({stamp}))"
        for pattern, stamp in cases.items()
    )
    return f"CASE {' '.join(whens)} END"


def _parsed_time(text: str, form: WrittenForm) -> str:
    time = (
        f"TRY_CAST({text} AS TIME)"
        if form.format is None
        else f"try_strptime({text}, {literal(form.format)})"
    )
    seconds = f"(hour({time}) * 3600 + minute({time}) * 60 + second({time}))"
    return f"CASE WHEN {_matches_pattern(text, form.pattern)} THEN {seconds} END"
