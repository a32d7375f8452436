"""Streams of trips: whatever they come in, every row becomes the codes of its trip type. Private.

Everything is read by one embedded engine (DuckDB). The public dimensions are registered as tables value → code, the rows
are joined with them inside the engine, and what comes out are codes: grouped with their numbers, or sorted by person.
Files larger than memory stream; what does not fit is spilled to a private folder that is removed in any case.
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import re
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from cbdp.errors import InputError
from cbdp.features import Dimension
from cbdp.features.calendar import DAY, WEEK, as_date, day_type

MEMORY = "1500MB"  # what the engine may hold before it spills
ROWS = 1_000_000  # of a batch that comes out
OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")
TIMED = re.compile(r"%-?[HIcXTfs]")  # a format with a time of day in it


@dataclass(frozen=True)
class Clock:
    """How time stamps are read.

    With a `timezone`, stamps that know their zone are converted to it, and those that know none are taken as UTC and
    converted; without, stamps count in the zone their column states (text with an offset: UTC), or as they stand.
    Text is ISO 8601 unless a strptime `format` is stated. `holidays` is a public table of days with their day type.
    """

    timezone: str | None = None
    format: str | None = None
    holidays: Mapping[dt.date, str] | tuple[tuple[dt.date, str], ...] = ()

    def __post_init__(self) -> None:
        table = dict(self.holidays)
        for day, label in table.items():
            if not isinstance(day, dt.date) or isinstance(day, dt.datetime) or not isinstance(label, str):
                raise InputError(f"holidays hold {day!r}: {label!r}: write a date and its day type, a text")
        object.__setattr__(self, "holidays", tuple(sorted(table.items())))
        if self.timezone is None or OFFSET.fullmatch(self.timezone):
            return
        try:
            ZoneInfo(self.timezone)
        except (OSError, ValueError, KeyError):
            raise InputError(
                f"unknown time zone {self.timezone!r}: write it like 'America/Los_Angeles'"
            ) from None

    def day_type(self, day: dt.date) -> str:
        """The type of a day: that of the holiday table, or else weekday, saturday or sunday.

        >>> Clock(holidays={dt.date(2026, 7, 3): "sunday"}).day_type(dt.date(2026, 7, 3))
        'sunday'
        """
        return day_type(day, dict(self.holidays))


@dataclass(frozen=True)
class Source:
    """Trips that are open but not yet read: their columns, and how reading starts."""

    label: str
    kinds: Mapping[str, Any]  # column → Arrow type
    start: Callable[[Sequence[str]], str]  # columns → SQL that has them as v0, v1, …
    typed: bool = True  # False: text that stands for anything, as in CSV
    hint: str = ""


@dataclass(frozen=True)
class Lookup:
    """A way to a code: an expression of the column {v} that equals one of the keys."""

    expression: str
    keys: Any
    codes: Sequence[int]


@contextmanager
def coded(
    trips: Any, dimensions: Mapping[str, tuple[str, Dimension]], person: str | None, clock: Clock
) -> Iterator[Iterator[Any]]:
    """Batches of codes of the rows inside all dimensions (given as name → (column, dimension)).

    Without a person: c0, c1, … and how many rows have them, n. With a person's column: a row per trip, in the order of
    (person, c0, c1, …), which is the same however the rows came.
    """
    wanted = list(dict.fromkeys([*(c for c, _ in dimensions.values()), *([person] if person else [])]))
    with duck() as engine, reading("the trips"):
        source = open_source(engine, trips, wanted)
        with reading(source.label, source.hint):
            check_clock(engine, clock)
            for column in wanted:
                check_column(source, column)
            lookups = [
                lookups_of(column, dim, source.kinds[column], source.typed, clock)
                for column, dim in dimensions.values()
            ]
            if person:
                check_person(person, source.kinds[person])
            places = [wanted.index(column) for column, _ in dimensions.values()]
            query = _query(
                engine, source, wanted, places, lookups, None if person is None else wanted.index(person)
            )
            yield iter(_arrow(engine.sql(query)))


@contextmanager
def duck() -> Iterator[Any]:
    import duckdb

    with tempfile.TemporaryDirectory(prefix="cbdp-") as folder:
        engine = duckdb.connect(
            ":memory:",
            config={
                "memory_limit": MEMORY,
                "temp_directory": folder,
                "preserve_insertion_order": "false",
                "autoinstall_known_extensions": "false",
                "python_enable_replacements": "false",
            },
        )
        try:
            engine.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
            yield engine
        finally:
            engine.close()


@contextmanager
def reading(label: str, hint: str = "") -> Iterator[None]:
    """Turn the engine's errors into ours: without their text, which may quote private values."""
    import duckdb
    import pyarrow as pa

    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.Error, pa.ArrowException, MemoryError, OSError) as wrong:
        # past the first batch Arrow passes the engine's errors on as its own, so only their text tells them apart
        if isinstance(wrong, MemoryError) or "Out of Memory" in str(wrong):
            raise InputError(
                f"counting needs more than {MEMORY} of memory, or the temporary folder is full: make room there"
            ) from None
        raise InputError(f"{label} cannot be read{hint or f' ({type(wrong).__name__})'}") from None


def _arrow(relation: Any) -> Any:
    """A relation's batches as they come, never all at once."""
    return relation.to_arrow_reader(ROWS)


# Opening


def open_source(engine: Any, trips: Any, wanted: Sequence[str]) -> Source:
    if isinstance(trips, str) and "://" in trips:
        return _database(engine, trips)
    if isinstance(trips, str | Path):
        return _files(_paths(trips))
    if isinstance(trips, list | tuple) and trips and all(isinstance(t, str | Path) for t in trips):
        return _files([path for given in trips for path in _paths(given)])
    if hasattr(trips, "to_pyarrow_batches"):
        return _ibis(engine, trips)
    return _stream(engine, trips, wanted)


def _stream(engine: Any, trips: Any, wanted: Sequence[str]) -> Source:
    """Anything that hands out Arrow: the needed columns only, batch by batch."""
    import pyarrow as pa

    named = f"trips of type {type(trips).__name__} cannot be read as a table"
    if isinstance(trips, Mapping) or type(trips).__module__.partition(".")[0] == "pandas":
        _check_names(list(trips.keys()), wanted)  # other columns may hold what no table can
        trips = {c: trips[c] for c in wanted} if isinstance(trips, Mapping) else trips[list(wanted)]
    try:
        reader = (
            pa.RecordBatchReader.from_stream(trips)
            if hasattr(trips, "__arrow_c_stream__")
            else pa.table(trips).to_reader()
        )
    except (pa.ArrowException, TypeError, ValueError, KeyError):
        raise InputError(f"{named}: give columns of equal length, each of one type") from None

    return Source("the trips", _kinds(reader.schema), lambda columns: _register(engine, reader, columns))


def _register(engine: Any, reader: Any, columns: Sequence[str]) -> str:
    import pyarrow as pa

    places = [reader.schema.names.index(c) for c in columns]
    schema = pa.schema([(f"v{i}", reader.schema.field(p).type) for i, p in enumerate(places)])
    batches = (pa.RecordBatch.from_arrays([b.column(p) for p in places], schema=schema) for b in reader)
    engine.register("stream", pa.RecordBatchReader.from_batches(schema, batches))
    return "SELECT * FROM stream"


def _kinds(schema: Any) -> dict[str, Any]:
    _check_twice(schema.names)
    return {field.name: field.type for field in schema}


def _ibis(engine: Any, table: Any) -> Source:
    def start(columns: Sequence[str]) -> str:
        try:
            batches = _ibis_batches(table.select(*columns))
        except Exception:  # noqa: BLE001 - every back end has errors of its own
            raise InputError("the table's engine cannot hand out its rows: try a query there first") from None
        return _register(engine, batches, columns)

    return Source("the table", _kinds(table.schema().to_pyarrow()), start)


def _ibis_batches(table: Any) -> Any:
    """A table's batches. Ibis 12 cannot stream from DuckDB 2, so from there the relation itself is taken."""
    import duckdb

    backend = table.get_backend()
    if backend.name != "duckdb":
        return table.to_pyarrow_batches(chunk_size=ROWS)
    try:
        return _arrow(backend.con.sql(backend.compile(table)))
    except duckdb.CatalogException:  # a table that Ibis itself keeps in memory
        return table.to_pyarrow().to_reader()


def _database(engine: Any, url: str) -> Source:
    place, _, table = url.rpartition("::")
    scheme = url.partition("://")[0]  # a URL may hold a password: it is never quoted
    if not place or not table:
        raise InputError(f"a {scheme} URL names no table: end it with '::' and the table's name")
    if scheme == "duckdb":
        return _duckdb_file(engine, place.removeprefix("duckdb://"), table)
    try:
        import ibis
    except ImportError:
        raise InputError(
            f"a {scheme} URL is read by Ibis: install it with pip install 'ibis-framework[{scheme}]'"
        ) from None
    try:
        found = ibis.connect(place).table(table)
    except Exception as wrong:  # noqa: BLE001 - every back end has errors of its own
        raise InputError(
            f"the table {table!r} cannot be opened in the {scheme} URL ({type(wrong).__name__}): check the URL"
        ) from None
    return _ibis(engine, found)


def _duckdb_file(engine: Any, place: str, table: str) -> Source:
    """A table of a DuckDB file, attached for reading. `duckdb:///x.db` is /x.db, or x.db where there is no /x.db."""
    path = next((p for p in (Path(place), Path(place.lstrip("/"))) if p.is_file()), None)
    if path is None:
        raise InputError(f"there is no file {place!r}")
    with reading(repr(str(path)), ": it is no DuckDB file, or another process holds it"):
        engine.execute(f"ATTACH {_text(str(path))} AS source (READ_ONLY)")
    quoted = ".".join(_name(part) for part in ["source", *table.split(".")])
    with reading(f"the table {table!r}", f": {str(path)!r} has none of this name"):
        empty = engine.sql(_select("*", quoted, "LIMIT 0"))
        kinds = _kinds(_arrow(empty).schema)
    return Source(f"the table {table!r}", kinds, lambda columns: _select(_renamed(columns), quoted))


def _paths(given: str | Path) -> list[Path]:
    """A file, the Parquet files of a folder, or what a pattern finds, in the order of their names."""
    path = Path(given)
    if path.is_dir():
        inside = sorted(p for p in path.rglob("*.parquet") if not p.name.startswith((".", "_")))
        if not inside:
            raise InputError(f"the folder {str(path)!r} holds no .parquet file")
        return inside
    if path.is_file():
        return [path]
    found = sorted(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
    if not found:
        raise InputError(f"there is no file {str(path)!r}")
    return [inner for p in found for inner in (_paths(p) if p.is_dir() else [p])]


def _files(paths: Sequence[Path]) -> Source:
    label = repr(str(paths[0])) + (f" and {len(paths) - 1} more files" if len(paths) > 1 else "")
    parquet = [p for p in paths if p.name.lower().endswith(".parquet")]
    texts = [p for p in paths if p.name.lower().endswith((".csv", ".csv.gz"))]
    for path in paths:
        if path not in parquet and path not in texts:
            raise InputError(f"{str(path)!r}: trips are read from .parquet, .csv or .csv.gz")
    if parquet and texts:
        raise InputError(f"{label} are Parquet and CSV together: give one kind")
    return _parquet(parquet, label) if parquet else _csv(texts, label)


def _parquet(paths: Sequence[Path], label: str) -> Source:
    kinds = _parquet_kinds(paths[0])
    hint = ": it is damaged, or not whole"

    def start(columns: Sequence[str]) -> str:
        for path in paths[1:]:
            other = _parquet_kinds(path)
            _check_names(list(other), columns)
            for column in columns:
                if plain_kind(other[column]) != plain_kind(kinds[column]):
                    raise InputError(
                        f"column {column!r} holds {other[column]} values in {str(path)!r} and {kinds[column]} "
                        f"in {str(paths[0])!r}: convert one of them"
                    )
        listed = ", ".join(_file(p) for p in paths)
        return _select(_renamed(columns), f"read_parquet([{listed}], hive_partitioning = false)")

    return Source(label, kinds, start, hint=hint)


def _parquet_kinds(path: Path) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return _kinds(parquet.read_schema(path))
    except (pa.ArrowException, OSError):
        raise InputError(f"{str(path)!r} cannot be read as Parquet: it is damaged, or not whole") from None


def _csv(paths: Sequence[Path], label: str) -> Source:
    """CSV as text: types are ours to find, never guessed from private rows. The first line names the columns."""
    import pyarrow as pa

    headers = {path: _header(path) for path in paths}
    hint = ": a row has more or fewer fields than the first line, a quote stays open, or it is not UTF-8"

    def start(columns: Sequence[str]) -> str:
        kinds: dict[tuple[str, tuple[str, ...]], list[Path]] = {}
        for path, header in headers.items():
            _check_names(header[1], columns, quoted=False)
            kinds.setdefault(header, []).append(path)
        parts = []
        for (mark, names), alike in kinds.items():
            fields = ", ".join(f"f{i}: 'VARCHAR'" for i in range(len(names)))
            # nullif keeps the engine from moving our casts into its reader, where a value that does not fit is an
            # error and not a NULL (duckdb issue 23818): a private row would decide whether we count at all
            chosen = ", ".join(f"nullif(f{names.index(c)}, '') AS v{i}" for i, c in enumerate(columns))
            listed = ", ".join(_file(p) for p in alike)
            dialect = (
                f"""header = true, delim = {_text(mark)}, quote = '"', escape = '"', strict_mode = true"""
            )
            table = f"read_csv([{listed}], columns = {{{fields}}}, auto_detect = false, {dialect})"
            parts.append(_select(chosen, table))
        return " UNION ALL ".join(parts)

    first = headers[paths[0]][1]
    return Source(label, {name: pa.string() for name in first}, start, typed=False, hint=hint)


def _header(path: Path) -> tuple[str, tuple[str, ...]]:
    """The mark between fields (the one the first line holds most of) and the names of the columns."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rb") as lines:  # no byte beyond the first line is looked at: those are private
            line = lines.readline().decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, gzip.zlib.error):  # type: ignore[attr-defined]
        raise InputError(f"{str(path)!r} cannot be read as CSV: it is damaged, or not UTF-8") from None
    mark = max(",;\t|", key=line.count)
    try:
        names = tuple(next(csv.reader([line], delimiter=mark, strict=True), ()))
    except csv.Error:
        names = ()
    if not names or "\0" in line:
        raise InputError(f"{str(path)!r} is not a CSV file: its first line must name the columns")
    return mark, names


# Checking: by the schema alone, whatever the rows say


def _check_names(names: Sequence[str], wanted: Sequence[str], *, quoted: bool = True) -> None:
    for name in wanted:
        if name not in names:  # a CSV without a header has private values in its first line
            there = f"there are {', '.join(map(str, names))}" if quoted else "its first line must name it"
            raise InputError(f"the trips have no column {name!r}: {there}")


def _check_twice(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            raise InputError(f"two columns are called {name!r} (capitals aside): rename one of them")
        seen.add(name.casefold())


def check_column(source: Source, column: str) -> None:
    _check_names(list(source.kinds), [column], quoted=source.typed)


def check_person(column: str, kind: Any) -> None:
    import pyarrow as pa

    if pa.types.is_nested(plain_kind(kind)):
        raise InputError(f"column {column!r} holds {kind} values: a person needs text or a number")


def check_clock(engine: Any, clock: Clock) -> None:
    if clock.format is not None:
        with reading(f"the time format {clock.format!r}", ": write it like '%m/%d/%Y %H:%M'"):
            engine.sql(f"SELECT try_strptime('', {_text(clock.format)})").fetchall()
    if clock.timezone is not None:
        with reading(f"the time zone {clock.timezone!r}", ": write it like 'America/Los_Angeles'"):
            engine.sql(f"SELECT {_in_zone('now()', clock.timezone)}").fetchall()


def plain_kind(kind: Any) -> Any:
    """A type without what makes no difference to us: dictionaries, and how text is stored."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if is_text(kind) else kind


def is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


# Values to codes


def lookups_of(column: str, dimension: Dimension, kind: Any, typed: bool, clock: Clock) -> list[Lookup]:
    """The ways from a column's values to the dimension's codes, first the values themselves."""
    import pyarrow as pa

    kind = plain_kind(kind)
    if pa.types.is_null(kind):  # no row says what the column holds, so it fits whatever it is for
        return [Lookup("CAST({v} AS VARCHAR)", pa.array([], pa.string()), [])]
    found = _by_value(dimension, kind)
    if not typed:
        found += _by_number(dimension)
    if not found or is_text(kind):
        found += _by_time(dimension, kind, clock)
    if not found:
        wanted = "text" if all(isinstance(v, str) for v in dimension.values) else "others"
        wanted = "numbers" if all(isinstance(v, int | float) for v in dimension.values) else wanted
        raise InputError(
            f"column {column!r} holds {kind} values, the dimension {wanted}: convert one of them"
        )
    return found


def _by_value(dimension: Dimension, kind: Any) -> list[Lookup]:
    import pyarrow as pa

    keys = [_key(value, kind) for value in dimension.values]
    codes = [code for code, key in enumerate(keys) if key is not None]
    if not codes:
        return []
    return [Lookup("{v}", pa.array([keys[c] for c in codes], kind), codes)]


def _key(value: Hashable, kind: Any) -> Any:
    """The value of this type that equals `value`, or None: 3 is 3.0 and no text."""
    import pyarrow as pa

    if is_text(kind):
        return value if isinstance(value, str) else None
    number: Callable[[Any], Any] | None = None
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        number = int if pa.types.is_integer(kind) else float if pa.types.is_floating(kind) else bool
        if not isinstance(value, int | float):
            return None
    try:
        made = pa.scalar(number(value) if number else value, kind).as_py()
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None
    return made if made == value else None


def _by_number(dimension: Dimension) -> list[Lookup]:
    """Numbers written as text: whole ones of any length exactly, others as the nearest double."""
    import pyarrow as pa

    if all(isinstance(v, bool) for v in dimension.values):
        return [
            Lookup("TRY_CAST({v} AS BOOLEAN)", pa.array(dimension.values, pa.bool_()), range(len(dimension)))
        ]
    if all(isinstance(v, int) for v in dimension.values):
        digits = r"regexp_extract({v}, '^\s*([+-]?\d+)(\.0*)?\s*$', 1)"
        return [
            Lookup(f"TRY_CAST({digits} AS BIGINT)", found.keys, found.codes)
            for found in _by_value(dimension, pa.int64())
        ]
    return [
        Lookup("TRY_CAST({v} AS DOUBLE)", found.keys, found.codes)
        for found in _by_value(dimension, pa.float64())
    ]


def _by_time(dimension: Dimension, kind: Any, clock: Clock) -> list[Lookup]:
    """Time stamps to periods of the day, days, or day types: whichever the dimension's values are."""
    import pyarrow as pa

    second, day = _moment(kind, clock)
    if dimension.edges is not None:
        if second is None:
            return []
        if len(dimension.edges) != len(dimension) + 1:
            raise InputError(f"{len(dimension)} periods need {len(dimension) + 1} edges")
        seconds = np.arange(max(0, dimension.edges[0]), min(DAY, dimension.edges[-1]))
        codes = np.searchsorted(np.asarray(dimension.edges), seconds, side="right") - 1
        return [Lookup(second, pa.array(seconds, pa.int64()), codes.tolist())]
    if day is None:
        return []
    dates = [as_date(value) for value in dimension.values]
    if all(d is not None for d in dates):
        return [Lookup(day, pa.array(dates, pa.date32()), range(len(dates)))]
    return _by_day_type(dimension, day, clock)


def _by_day_type(dimension: Dimension, day: str, clock: Clock) -> list[Lookup]:
    """Days of the week by name, or as weekday and weekend; a holiday's type goes before."""
    import pyarrow as pa

    holidays = dict(clock.holidays)
    types = list(holidays.values())
    if not set(dimension.values) <= {*WEEK, "weekday", "weekend", *types}:
        return []
    code = {value: c for c, value in enumerate(dimension.values)}
    choices: list[tuple[str, ...]]
    choices = [(name, "weekday" if n < 5 else "weekend") for n, name in enumerate(WEEK)]
    choices += [(label,) for label in types]
    found = [next((code[c] for c in choice if c in code), None) for choice in choices]
    cases = " ".join(f"WHEN DATE '{date.isoformat()}' THEN {8 + n}" for n, date in enumerate(holidays))
    expression = f"CASE {day} {cases} ELSE isodow({day}) END" if cases else f"isodow({day})"
    keys = [n + 1 for n, c in enumerate(found) if c is not None]
    return [Lookup(expression, pa.array(keys, pa.int64()), [c for c in found if c is not None])]


def _moment(kind: Any, clock: Clock) -> tuple[str | None, str | None]:
    """SQL for the second of the day and for the day of a column's value {v}, by the column's type."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        zone = clock.timezone or kind.tz
        local = _in_zone("TRY_CAST({v} AS TIMESTAMPTZ)", zone) if zone else "TRY_CAST({v} AS TIMESTAMP)"
        return _second(local), f"TRY_CAST({local} AS DATE)"
    if pa.types.is_time(kind):
        return _second("TRY_CAST({v} AS TIME)"), None
    if pa.types.is_date(kind):
        return None, "TRY_CAST({v} AS DATE)"
    return _written(clock) if is_text(kind) else (None, None)


def _written(clock: Clock) -> tuple[str | None, str | None]:
    """As `_moment`, for text. A date or a time of day alone knows no zone and is taken as it stands."""
    if clock.format is not None:
        stamp = f"TRY_CAST(try_strptime({{v}}, {_text(clock.format)}) AS TIMESTAMPTZ)"
        if not TIMED.search(clock.format):
            return None, f"TRY_CAST({_in_zone(stamp, 'UTC')} AS DATE)"
        local = _in_zone(stamp, clock.timezone or "UTC")
        return _second(local), f"TRY_CAST({local} AS DATE)"
    stamped = "contains({v}, ':')"
    local = (
        f"CASE WHEN {stamped} THEN {_in_zone('TRY_CAST({v} AS TIMESTAMPTZ)', clock.timezone or 'UTC')} END"
    )
    time = (
        r"CASE WHEN regexp_full_match({v}, '\s*\d\d?:\d\d(:\d\d(\.\d+)?)?\s*') THEN TRY_CAST({v} AS TIME) END"
    )
    day = f"CASE WHEN {stamped} THEN TRY_CAST({local} AS DATE) ELSE TRY_CAST({{v}} AS DATE) END"
    return f"COALESCE({_second(local)}, {_second(time)})", day


def _second(clock: str) -> str:
    return f"(hour({clock}) * 3600 + minute({clock}) * 60 + second({clock}))"


def _in_zone(instant: str, zone: str) -> str:
    """The wall clock of an instant in a zone. A stamp out of the engine's range is no value rather than an error."""
    fixed = OFFSET.fullmatch(zone)
    if not fixed:
        return f"TRY(timezone({_text(zone)}, {instant}))"
    minutes = int(f"{fixed[1]}1") * (int(fixed[2]) * 60 + int(fixed[3]))
    return f"TRY(timezone('UTC', {instant}) + INTERVAL ({minutes}) MINUTE)"


# The query


def _query(
    engine: Any,
    source: Source,
    wanted: Sequence[str],
    places: Sequence[int],
    lookups: Sequence[Sequence[Lookup]],
    person: int | None,
) -> str:
    import pyarrow as pa

    keys, joins, codes = [], [], []
    for d, (place, ways) in enumerate(zip(places, lookups, strict=True)):
        for w, way in enumerate(ways):
            table = f"way_{d}_{w}"
            made = pa.table({"key": way.keys, "code": pa.array(way.codes, pa.int32())})
            engine.register("made", made)
            engine.execute(f"CREATE TEMP TABLE {table} AS {_select('*', 'made')}")
            engine.unregister("made")
            keys.append(f"{way.expression.replace('{v}', f'v{place}')} AS k_{d}_{w}")
            join = "JOIN" if len(ways) == 1 else "LEFT JOIN"
            joins.append(f"{join} {table} ON {table}.key = t.k_{d}_{w}")
        codes.append(f"COALESCE({', '.join(f'way_{d}_{w}.code' for w in range(len(ways)))}) AS c{d}")
    names = [f"c{d}" for d in range(len(places))]
    if person is not None:
        keys.append(f"{_cast(f'v{person}', source.kinds[wanted[person]])} AS person")
        codes.append("person")
        names.append("person")
    keyed = _select(", ".join(keys), f"({source.start(wanted)})")
    rows = f"({_select(', '.join(codes), f'({keyed}) t', *joins)})"
    inside = "WHERE " + " AND ".join(f"{name} IS NOT NULL" for name in names)
    if person is None:
        return _select(", ".join([*names, "count(*) AS n"]), rows, inside, "GROUP BY ALL")
    return _select(", ".join(names), rows, inside, "ORDER BY", ", ".join(["person", *names[:-1]]))


def _select(columns: str, table: str, *rest: str) -> str:
    return " ".join(["SELECT", columns, "FROM", table, *rest])


def _cast(value: str, kind: Any) -> str:
    """A person as a value that is equal to itself: text without an order of its own, and no NaN."""
    import pyarrow as pa

    if is_text(plain_kind(kind)):
        return f"CAST({value} AS VARCHAR)"
    return f"CASE WHEN NOT isnan({value}) THEN {value} END" if pa.types.is_floating(kind) else value


def _renamed(columns: Sequence[str]) -> str:
    return ", ".join(f"{_name(c)} AS v{i}" for i, c in enumerate(columns))


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _file(path: Path) -> str:
    """A path the engine takes as it stands, brackets and stars being its patterns."""
    return _text(re.sub(r"([\[*?])", r"[\1]", str(path)))
