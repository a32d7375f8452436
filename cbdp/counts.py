"""From trips to exact counts. Private: what is here never leaves the curator's machine, nor is it printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag, Universe
from cbdp.noise import Entropy, SystemEntropy
from cbdp.unit import Person, Trip, Unit, unit_of

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counts:
    """How many trips each trip type has, and what unit of privacy they are bounded for. Only non-zero types are kept."""

    universe: Universe
    index: Ints = field(repr=False)  # private: the non-zero trip types, ascending
    value: Ints = field(repr=False)  # private
    unit: Unit = field(default_factory=Trip)
    secure: bool = True  # False: trips were dropped by a seeded source, which a release refuses

    def of(self, features: FeatureDag, name: str) -> Ints:
        """The exact counts of a feature's elements (private)."""
        if name == SINGLETON:
            return self.dense()
        element = features.partition(name).element_of(self.universe.unrank_codes(self.index))
        counts = np.zeros(features.size(name), dtype=np.int64)
        np.add.at(counts, element, self.value)
        return counts

    def dense(self) -> Ints:
        """The exact count of every trip type (private)."""
        counts = np.zeros(self.universe.size, dtype=np.int64)
        counts[self.index] = self.value
        return counts


def count(
    trips: Any,
    universe: Universe,
    *,
    columns: Mapping[str, str] | None = None,
    unit: Any = "trip",
    entropy: Entropy | None = None,
) -> Counts:
    """Count trips given as columns, a data frame, an Arrow table, or a path to Parquet or CSV.

    Columns are named by the dimensions, or mapped by `columns` (dimension → column). Rows with a value outside the
    universe, or with none, are dropped and not spoken of: whether there are any is private. With a person as the
    unit, at most `max_trips` trips of each person are kept, chosen at random from `entropy`.

    An array of a count per trip type is taken as it is (unit: one trip).
    """
    unit = unit_of(unit)
    if isinstance(trips, Counts):
        return _again(trips, universe, unit)
    if isinstance(trips, np.ndarray):
        return _given(trips, universe, unit)
    table = _table(trips)
    names = {**{d: d for d in universe.dimensions}, **(columns or {})}
    wanted = [*universe.dimensions, *([unit.column] if isinstance(unit, Person) else [])]
    for name in wanted:
        if names.get(name, name) not in table.column_names:
            raise InputError(
                f"the trips have no column {names.get(name, name)!r}: there are {', '.join(table.column_names)}"
            )
    codes = [_codes(d, table.column(names[n]), n) for n, d in universe.dimensions.items()]
    rank = universe.rank_codes(codes) if table.num_rows else np.empty(0, dtype=np.int64)
    inside = rank >= 0
    source = entropy or SystemEntropy()
    if isinstance(unit, Person):
        person = table.column(names.get(unit.column, unit.column))
        inside &= ~np.asarray(person.is_null().to_numpy(zero_copy_only=False) if table.num_rows else inside)
        who = np.asarray(person.dictionary_encode().combine_chunks().indices.to_numpy(zero_copy_only=False))[
            inside
        ]
        rank = rank[inside][_bounded(who, unit.max_trips, source)]
    else:
        rank = rank[inside]
    index, value = np.unique(rank, return_counts=True)
    secure = source.secure or not isinstance(unit, Person)  # counting trips draws nothing
    return Counts(universe, index.astype(np.int64), value.astype(np.int64), unit, secure)


def _bounded(who: NDArray[Any], most: int, entropy: Entropy) -> NDArray[np.bool_]:
    """Which trips stay when every person keeps at most `most`, each set of that size being equally likely."""
    tickets = entropy.words(len(who), 64)
    order = np.lexsort((tickets, who))
    ordered = who[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]] if len(who) else np.empty(0, dtype=bool)
    start = np.maximum.accumulate(np.where(first, np.arange(len(who)), 0)) if len(who) else first
    keep = np.zeros(len(who), dtype=bool)
    keep[order] = np.arange(len(who)) - start < most
    return keep


def _again(counts: Counts, universe: Universe, unit: Unit) -> Counts:
    if counts.universe.size != universe.size:
        raise InputError(f"the counts are of {counts.universe!r}, not of {universe!r}")
    if counts.unit != unit:
        raise InputError(
            f"the counts are bounded for {counts.unit}, the mechanism protects {unit}: make them agree"
        )
    return counts


def _given(array: NDArray[Any], universe: Universe, unit: Unit) -> Counts:
    if isinstance(unit, Person):
        raise InputError("an array of counts names no persons: give the trips with their person column")
    if array.shape != (universe.size,):
        raise InputError(f"counts of shape {array.shape} for a universe of {universe.size:,} trip types")
    whole = array.astype(np.int64) if array.dtype.kind in "iuf" and np.isfinite(array).all() else None
    if whole is None or (whole != array).any() or (whole < 0).any():
        raise InputError("counts must be whole numbers of at least 0")
    index = np.flatnonzero(whole).astype(np.int64)
    return Counts(universe, index, whole[index], unit)


def _table(trips: Any) -> Any:
    import pyarrow as pa

    if isinstance(trips, str | Path):
        return _read(Path(trips))
    try:
        return pa.table(trips)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as wrong:
        raise InputError(f"trips of type {type(trips).__name__} cannot be read as a table: {wrong}") from None


def _read(path: Path) -> Any:
    import pyarrow as pa

    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            return parquet.read_table(path)
        if path.name.endswith((".csv", ".csv.gz")):
            from pyarrow import csv

            return csv.read_csv(path)
    except (pa.ArrowInvalid, OSError) as wrong:
        raise InputError(f"{str(path)!r} cannot be read: {wrong}") from None
    raise InputError(f"{str(path)!r}: trips are read from .parquet, .csv or .csv.gz")


def _codes(dimension: Any, column: Any, name: str) -> Ints:
    """The position of each row's value in the dimension; −1 for a value outside it, or none."""
    import pyarrow as pa

    if dimension.edges is not None and (pa.types.is_timestamp(column.type) or pa.types.is_time(column.type)):
        return _periods(dimension.edges, column)
    _check_kind(dimension, column.type, name)
    if len(column) == 0:
        return np.empty(0, dtype=np.int64)
    encoded = column.combine_chunks().dictionary_encode() if hasattr(column, "combine_chunks") else column
    distinct = encoded.dictionary.to_pylist()
    found = dimension.codes(distinct)
    places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.where(places < 0, -1, found[np.maximum(places, 0)] if len(found) else -1)


def _check_kind(dimension: Any, kind: Any, name: str) -> None:
    """Refuse a column whose type cannot hold the dimension's values: by its schema, whatever the rows say."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    wants_text = all(isinstance(v, str) for v in dimension.values)
    wants_number = all(isinstance(v, int | float) for v in dimension.values)
    if (wants_text and number) or (wants_number and text):
        wanted = "text" if wants_text else "numbers"
        raise InputError(f"column {name!r} holds {kind} values, the dimension {wanted}: convert one of them")


def _periods(edges: tuple[int, ...], column: Any) -> Ints:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(column.type):
        column = pc.local_timestamp(column) if column.type.tz else column
    parts = [pc.hour(column), pc.minute(column), pc.second(column)]
    hour, minute, second = (p.fill_null(-100_000).to_numpy().astype(np.int64) for p in parts)
    clock = hour * 3600 + minute * 60 + second
    place = np.searchsorted(np.asarray(edges), clock, side="right") - 1
    return np.where((clock >= edges[0]) & (clock < edges[-1]), place, -1)
