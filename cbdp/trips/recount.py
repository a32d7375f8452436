"""Trips counted a second time, on another path: Arrow hands out values, plain Python reads each distinct one, and no SQL is written.

It shares with `cbdp.count` the public rules (universe, clock, the patterns of written times) and nothing that carries them out: no
plan, no engine, no table of zones, no key. An audit with trips counts this way, so that a mistake in the count shows. It is slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cbdp.arrays import Ints
from cbdp.features import Universe
from cbdp.features.calendar import dates_of, day_dimension, period_of
from cbdp.privacy.unit import RELEASE
from cbdp.trips import files
from cbdp.trips.clock import Clock
from cbdp.trips.days import Days
from cbdp.trips.kinds import TEXT, kind_of
from cbdp.trips.plain_values import (
    MOST,
    DayNumber,
    Second,
    Stamp,
    coder,
    day_of,
    number_of,
    series_day_of,
    spelling_of,
    weight,
)
from cbdp.trips.planning import is_timed

LONG_AGO = 10**6  # days


@dataclass(frozen=True, eq=False)
class Recount:
    """The rows inside the universe. Private."""

    types: Ints = field(repr=False)  # ranks
    weight: Ints = field(repr=False)
    person: Ints | None = field(
        default=None, repr=False
    )  # a number for each person (and period), where a column tells them apart

    def counts(self) -> tuple[Ints, Ints]:
        """Trip types with trips, ascending, and how many; nobody is bounded."""
        index, place = np.unique(self.types, return_inverse=True)
        value = np.zeros(len(index), dtype=np.int64)
        np.add.at(value, place, self.weight)
        return index[value > 0], np.minimum(value[value > 0], MOST)


def can_recount(trips: Any) -> bool:
    """Whether this path reads such trips: files, and tables in memory, but nothing that can be read only once, or lies on a cluster."""
    arrow = hasattr(trips, "__arrow_c_stream__") and not hasattr(trips, "read_next_batch")
    arrow = arrow and type(trips).__module__.partition(".")[0] != "pyspark"
    return files.are_files(trips) or isinstance(trips, Mapping) or hasattr(trips, "iloc") or arrow


def recount(
    trips: Any,
    universe: Universe,
    *,
    columns: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    person: str | None = None,
    per: str = RELEASE,
    day: str | None = None,
    days: Days | None = None,
    dated: str | None = None,
) -> Recount:
    """All rows inside the universe; with a person's column, those of somebody; by a period, those whose `day` column tells it.

    With `days`, those of these service days, as the column `dated` tells.
    """
    names = columns or {}
    weights = None if "count" in universe.dimensions else names.get("count")
    wanted = [names.get(n, n) for n in universe.dimensions]
    typed = not (files.are_files(trips) and not files.is_parquet(files.find(trips)))
    read = [coder(d, clock or Clock(), typed=typed) for d in universe.dimensions.values()]
    known: list[dict[Any, int]] = [{} for _ in [*read, weights]]
    who: dict[bytes, int] = {}
    found: list[list[Ints]] = [[np.empty(0, dtype=np.int64)] for _ in range(3)]
    when = None if day is None else _period(universe, names, day, per, clock or Clock(), typed=typed)
    among = (
        None
        if days is None or dated is None
        else _among(days, clock or Clock(), is_timed(dated, names, universe))
    )
    pairs: dict[tuple[int, int], int] = {}
    for batch in _batches(
        trips, list(dict.fromkeys([*wanted, *filter(None, (weights, person, day, dated))]))
    ):
        codes = [_each(batch[c], f, k) for c, f, k in zip(wanted, read, known[:-1], strict=True)]
        rank = universe.rank_codes(codes)
        times = _each(batch[weights], weight, known[-1]) if weights else np.ones_like(rank)
        own = np.zeros_like(rank)
        if person:
            spelling = spelling_of(text=kind_of(batch[person].type).name == TEXT, typed=typed)
            own = _each(batch[person], lambda v: number_of(v, who, spelling), {})  # noqa: B023 - used at once
        if when is not None and day is not None:
            period = _each(batch[day], when, {})
            both = zip(own.tolist(), period.tolist(), strict=True)
            own = np.array([-1 if min(p) < 0 else pairs.setdefault(p, len(pairs)) for p in both], np.int64)
        inside = (rank >= 0) & (times >= 0) & (own >= 0)
        if among is not None and dated is not None:
            inside &= _each(batch[dated], among, {}) >= 0
        for part, column in zip(found, (rank, times, own), strict=True):
            part.append(column[inside])
    types, trips_each, persons = map(np.concatenate, found)
    return Recount(types, trips_each, persons if person else None)


def _among(days: Days, clock: Clock, timed: bool) -> Callable[[Any], int | None]:
    """0 for a value that tells one of these days, else nothing."""

    def inside(value: Any) -> int | None:
        day = series_day_of(value, clock, timed=timed)
        return 0 if day is not None and days.first <= day <= days.last else None

    return inside


def _period(
    universe: Universe, names: Mapping[str, str], column: str, per: str, clock: Clock, *, typed: bool
) -> Callable[[Any], int | None]:
    """The number of the period that a value of the day's column tells, counted from long ago so that none is negative."""
    named = day_dimension(universe.dimensions)
    dates = None if named is None else dates_of(universe.dimensions[named])
    if named is None or dates is None or names.get(named, named) != column:
        return lambda v: None if (d := day_of(v, clock)) is None else LONG_AGO + period_of(d, per)
    code = coder(universe.dimensions[named], clock, typed=typed)
    return lambda v: None if (c := code(v)) is None else LONG_AGO + period_of(dates[c], per)


# Reading


def _batches(trips: Any, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Columns by name: Arrow arrays, text of CSV as bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    if not files.are_files(trips):
        table = {c: trips[c] for c in columns} if isinstance(trips, Mapping) else trips
        table = table[list(columns)] if hasattr(table, "iloc") else table
        stream = hasattr(table, "__arrow_c_stream__")
        for batch in pa.RecordBatchReader.from_stream(table) if stream else pa.table(table).to_batches():
            yield {c: batch.column(c) for c in columns}
        return
    for path in files.find(trips).paths:
        if path.name.lower().endswith(files.PARQUET):
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(columns=list(columns)):
                    yield {c: batch.column(c) for c in columns}
            continue
        from cbdp.trips import rows

        mark, names = rows.header(path)
        places = [names.index(c) for c in columns]
        for batch in rows.batches(path, mark, len(names), places, rows.Tally()):
            yield dict(zip(columns, batch.columns, strict=True))


def _each(column: Any, code: Callable[[Any], int | None], known: dict[Any, int]) -> Ints:
    """A whole number for every value, −1 for none; each distinct value is looked at once."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), -1, dtype=np.int64)
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    distinct = _plain(coded.dictionary)
    for value in distinct:
        if value not in known:
            made = None if value is None else code(value)
            known[value] = -1 if made is None else made
    table = np.array([*(known[v] for v in distinct), -1], dtype=np.int64)
    place = coded.indices.cast(pa.int64()).fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    found: Ints = table[place]
    return found


def _plain(values: Any) -> list[Any]:
    """Python values: text as it is or, if it is none, as bytes; stamps as microseconds with their zone, so that none is out of range."""
    import pyarrow as pa

    kind = values.type
    if pa.types.is_timestamp(kind):
        per = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 0}[kind.unit]
        whole = values.view(pa.int64()).to_pylist()
        return [None if v is None else Stamp(v * per if per else v // 1000, kind.tz) for v in whole]
    if pa.types.is_date(kind):
        days = values.view(pa.int32() if pa.types.is_date32(kind) else pa.int64()).to_pylist()
        per = 1 if pa.types.is_date32(kind) else 86_400_000
        return [None if d is None else DayNumber(d // per) for d in days]
    if pa.types.is_time(kind):
        per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        whole = values.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
        return [None if v is None else Second(v // per) for v in whole]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        values = values.cast(pa.large_binary())
    return [_text(v) if isinstance(v, bytes) else v for v in values.to_pylist()]


def _text(value: bytes) -> str | bytes | None:
    try:
        return value.decode() or None
    except UnicodeDecodeError:
        return value
