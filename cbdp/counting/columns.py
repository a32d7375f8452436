"""What a column holds, in the few words that a counting plan needs, and Arrow columns as raw values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbdp.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

# Kinds of columns. Engines say what their columns are in Arrow's types.

TEXT, WHOLE, REAL, BOOLEAN = "text", "whole numbers", "numbers", "true or false"
DATE, TIME, STAMP = "dates", "times of day", "time stamps"
NULLS, UNREADABLE = "nothing", "other"


@dataclass(frozen=True)
class ColumnKind:
    """One of the words above; for times also their unit and the zone that the column states."""

    name: str
    unit: str = ""  # "s", "ms", "us", "ns", or "D" for dates that are days
    zone: str | None = None
    free: bool = False  # text that may stand for a number, as in CSV


@dataclass(frozen=True)
class Schema:
    """Trips that are open but not yet read. All of it is public: no row has been looked at.

    >>> import cbdp
    >>> cbdp.counting.schema_of({"stop": ["A"], "time": ["am"]}).label
    'the trips'
    """

    label: str  # what messages call the trips
    kinds: Mapping[str, pa.DataType]  # column → Arrow type
    typed: bool = True  # False: text that stands for anything, as in CSV
    notes: tuple[str, ...] = ()  # what the curator should know of the files
    unequal: Mapping[str, str] = field(
        default_factory=dict
    )  # column → the engine's own type, where equal values may be written differently

    def kind(self, column: str) -> ColumnKind:
        """The kind of a column."""
        kind = kind_of(self.kinds[column])
        return replace(kind, free=True) if kind.name == TEXT and not self.typed else kind


def kind_of(arrow: pa.DataType) -> ColumnKind:
    """The kind of an Arrow type."""
    import pyarrow as pa

    is_a = pa.types
    arrow = plain_kind(arrow)
    if is_text(arrow):
        return ColumnKind(TEXT)
    if is_a.is_timestamp(arrow):
        return ColumnKind(STAMP, arrow.unit, arrow.tz)
    if is_a.is_date(arrow):
        return ColumnKind(DATE, "D" if is_a.is_date32(arrow) else "ms")
    if is_a.is_time(arrow):
        return ColumnKind(TIME, arrow.unit)
    if is_a.is_integer(arrow):
        return ColumnKind(WHOLE)
    if is_a.is_floating(arrow) or is_a.is_decimal(arrow):
        return ColumnKind(REAL)
    if is_a.is_boolean(arrow):
        return ColumnKind(BOOLEAN)
    return ColumnKind(NULLS if is_a.is_null(arrow) else UNREADABLE)


def plain_kind(arrow: pa.DataType) -> pa.DataType:
    """An Arrow type without what makes no difference to us: dictionaries, extensions, and how text is stored."""
    import pyarrow as pa

    while isinstance(arrow, pa.BaseExtensionType) or pa.types.is_dictionary(arrow):
        arrow = arrow.value_type if pa.types.is_dictionary(arrow) else arrow.storage_type
    return pa.string() if is_text(arrow) else arrow


def is_text(arrow: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow)
    )


# Checks by the schema alone, whatever the rows say


def check_column(schema: Schema, column: str) -> None:
    """Refuse a column that the trips do not have, or have twice."""
    check_names(list(schema.kinds), [column], quoted=schema.typed)


def check_names(
    names: Sequence[str], needed: Sequence[str], *, quoted: bool = True, have: str = "the trips have"
) -> None:
    for name in needed:
        if names.count(name) > 1:
            raise InputError(f"two columns are called {name!r}: rename one of them")
        if name not in names:  # a CSV without a header has private values in its first line
            there = (
                f"there are {', '.join(map(str, names))}"
                if quoted
                else "its first line must name it, with the same capitals and spaces"
            )
            raise InputError(f"{have} no column {name!r}: {there}")


def check_distinct(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            raise InputError(f"two columns are called {name!r} (capitals aside): rename one of them")
        seen.add(name.casefold())


def check_person(schema: Schema, column: str) -> None:
    """Refuse a column that cannot tell persons apart, or of which it is not known when two of its values are one. Proof: docs/proofs/bounding.md."""
    import pyarrow as pa

    check_column(schema, column)
    kind = schema.kinds[column]
    engine_type = schema.unequal.get(column)
    if engine_type is None and (kind_of(kind).name != UNREADABLE or is_binary(plain_kind(kind))):
        return
    if engine_type is None and pa.types.is_nested(plain_kind(kind)):
        raise InputError(f"column {column!r} holds {kind} values: a person needs text or a number")
    raise InputError(
        f"column {column!r} holds {engine_type or kind} values, of which two may be equal and written differently: a person needs text or a "
        "number. Make a view or a query that casts the column to text, and count that"
    )


def is_binary(arrow: pa.DataType) -> bool:
    import pyarrow as pa

    kinds = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    )
    return any(is_a(arrow) for is_a in kinds)


# Arrow columns as raw ones: text as bytes, times as whole numbers. Nothing is decoded or converted, so nothing can fail on a value.


BATCH_ROWS = 1_000_000  # rows of a batch that is handed on


def raw_column(array: pa.Array) -> pa.Array:
    """A column whose values are bytes, whole numbers, doubles or decimals."""
    import pyarrow as pa

    if isinstance(array.type, pa.BaseExtensionType):
        return raw_column(array.storage)
    if pa.types.is_dictionary(array.type):
        return raw_column(array.dictionary_decode())
    if is_text(array.type):
        return array.cast(pa.large_binary() if pa.types.is_large_string(array.type) else pa.binary())
    if pa.types.is_temporal(array.type) and not pa.types.is_interval(array.type):
        return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    if pa.types.is_float16(array.type):
        return array.cast(pa.float32())
    return array


def raw_type(arrow: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return (
        raw_column(pa.array([], arrow)).type
        if not isinstance(arrow, pa.BaseExtensionType)
        else raw_type(arrow.storage_type)
    )


def raw_batches(
    batches: Iterator[pa.RecordBatch], places: Sequence[int], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Batches of some columns, raw, named v0, v1, …"""
    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_arrays([raw_column(batch.column(p)) for p in places], schema=schema)


def raw_schema(schema: pa.Schema, places: Sequence[int]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(f"v{i}", raw_type(schema.field(p).type)) for i, p in enumerate(places)])


def batch_reader(trips: object, needed: Sequence[str] | None) -> pa.RecordBatchReader:
    """A reader of record batches of anything that hands out Arrow; of tables in Python only the `needed` columns."""
    import pyarrow as pa

    table: Any = trips
    pandas = type(trips).__module__.partition(".")[0] == "pandas"
    if needed is not None and (isinstance(trips, Mapping) or pandas):
        check_names(list(table.keys()), needed)  # other columns may hold what no table can
        table = {c: table[c] for c in needed} if isinstance(table, Mapping) else table[list(needed)]
    try:
        if hasattr(table, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(table)
        return pa.table(table).to_reader(BATCH_ROWS)
    except (pa.ArrowException, TypeError, ValueError, KeyError):
        raise InputError(
            f"trips of type {type(trips).__name__} cannot be read as a table: give columns of equal length, each of one type"
        ) from None


def arrow_types(schema: pa.Schema) -> dict[str, pa.DataType]:
    check_distinct(schema.names)
    return {field.name: field.type for field in schema}


def parquet_types(path: Path) -> dict[str, pa.DataType]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return arrow_types(parquet.read_schema(path))
    except (pa.ArrowException, OSError):
        raise InputError(f"{str(path)!r} cannot be read as Parquet: it is damaged, or not whole") from None


def parquet_rows(paths: Sequence[Path]) -> int:
    from pyarrow import parquet

    return sum(int(parquet.read_metadata(path).num_rows) for path in paths)


def parquet_batches(
    paths: Sequence[Path], columns: Sequence[str], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Batches of Parquet files, raw."""
    from pyarrow import parquet

    for path in paths:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(
                BATCH_ROWS // 8, columns=list(dict.fromkeys(columns)), use_threads=True
            ):
                places = [batch.schema.names.index(c) for c in columns]
                yield from raw_batches(iter([batch]), places, schema)


def check_alike(paths: Sequence[Path], columns: Sequence[str]) -> None:
    """Refuse Parquet files that hold a needed column in two types, or not at all."""
    first = parquet_types(paths[0])
    for path in paths:
        other = parquet_types(path)
        check_names(list(other), columns)
        for column in columns:
            if plain_kind(other[column]) != plain_kind(first[column]):
                raise InputError(
                    f"column {column!r} holds {other[column]} values in {str(path)!r} and {first[column]} "
                    f"in {str(paths[0])!r}: convert one of them"
                )
