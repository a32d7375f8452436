"""Arrow columns as raw ones: text as bytes, times as whole numbers. Nothing is decoded or converted, so nothing can fail on a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cbdp.errors import InputError
from cbdp.trips.kinds import check_distinct, check_names, is_text, plain_kind

ROWS = 1_000_000  # of a batch


def raw(array: Any) -> Any:
    """A column whose values are bytes, whole numbers, doubles or decimals."""
    import pyarrow as pa

    if isinstance(array.type, pa.BaseExtensionType):
        return raw(array.storage)
    if pa.types.is_dictionary(array.type):
        return raw(array.dictionary_decode())
    if is_text(array.type):
        return array.cast(pa.large_binary() if pa.types.is_large_string(array.type) else pa.binary())
    if pa.types.is_temporal(array.type) and not pa.types.is_interval(array.type):
        return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    if pa.types.is_float16(array.type):
        return array.cast(pa.float32())
    return array


def raw_type(arrow: Any) -> Any:
    import pyarrow as pa

    return (
        raw(pa.array([], arrow)).type
        if not isinstance(arrow, pa.BaseExtensionType)
        else raw_type(arrow.storage_type)
    )


def raw_batches(batches: Iterator[Any], places: Sequence[int], schema: Any) -> Iterator[Any]:
    """Batches of some columns, raw, named v0, v1, …"""
    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_arrays([raw(batch.column(p)) for p in places], schema=schema)


def raw_schema(schema: Any, places: Sequence[int]) -> Any:
    import pyarrow as pa

    return pa.schema([(f"v{i}", raw_type(schema.field(p).type)) for i, p in enumerate(places)])


def reader_of(trips: Any, wanted: Sequence[str] | None) -> Any:
    """A reader of record batches of anything that hands out Arrow; of tables in Python only the wanted columns."""
    import pyarrow as pa

    pandas = type(trips).__module__.partition(".")[0] == "pandas"
    if wanted is not None and (isinstance(trips, Mapping) or pandas):
        check_names(list(trips.keys()), wanted)  # other columns may hold what no table can
        trips = {c: trips[c] for c in wanted} if isinstance(trips, Mapping) else trips[list(wanted)]
    try:
        if hasattr(trips, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(trips)
        return pa.table(trips).to_reader(ROWS)
    except (pa.ArrowException, TypeError, ValueError, KeyError):
        raise InputError(
            f"trips of type {type(trips).__name__} cannot be read as a table: give columns of equal length, each of one type"
        ) from None


def kinds_of(schema: Any) -> dict[str, Any]:
    check_distinct(schema.names)
    return {field.name: field.type for field in schema}


def parquet_kinds(path: Path) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return kinds_of(parquet.read_schema(path))
    except (pa.ArrowException, OSError):
        raise InputError(f"{str(path)!r} cannot be read as Parquet: it is damaged, or not whole") from None


def parquet_rows(paths: Sequence[Path]) -> int:
    from pyarrow import parquet

    return sum(int(parquet.read_metadata(path).num_rows) for path in paths)


def parquet_batches(paths: Sequence[Path], columns: Sequence[str], schema: Any) -> Iterator[Any]:
    """Batches of Parquet files, raw."""
    from pyarrow import parquet

    for path in paths:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS // 8, columns=list(dict.fromkeys(columns)), use_threads=True):
                places = [batch.schema.names.index(c) for c in columns]
                yield from raw_batches(iter([batch]), places, schema)


def check_alike(paths: Sequence[Path], columns: Sequence[str]) -> None:
    """Refuse Parquet files that hold a wanted column in two types, or not at all."""
    first = parquet_kinds(paths[0])
    for path in paths:
        other = parquet_kinds(path)
        check_names(list(other), columns)
        for column in columns:
            if plain_kind(other[column]) != plain_kind(first[column]):
                raise InputError(
                    f"column {column!r} holds {other[column]} values in {str(path)!r} and {first[column]} "
                    f"in {str(paths[0])!r}: convert one of them"
                )
