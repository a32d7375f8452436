"""PRIVATE. Trips counted a second time on another path: Arrow hands out values, plain Python reads each distinct one, and no SQL is written.

It shares with `cbdp.count` the public rules of docs/explanation/counting.md (universe, clock, the patterns of written times) and nothing that
carries them out: no plan, no engine, no table of zones, no key. An audit with trips counts this way, so that a mistake in the count shows. It
is slower.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np

from cbdp.arrays import Ints
from cbdp.counting import files
from cbdp.counting.clock import (
    DOTTED_PATTERN,
    EPOCH_UNITS_PER_SECOND,
    FALSE_PATTERN,
    ISO_DATE,
    ISO_LOCAL,
    ISO_NAME,
    ISO_STAMP,
    ISO_TIME,
    NUMBER_PARTS_PATTERN,
    REAL_PATTERN,
    TRUE_PATTERN,
    WHOLE_PATTERN,
    Clock,
    WrittenForm,
    written_form,
)
from cbdp.counting.columns import TEXT, kind_of
from cbdp.counting.plan import ServiceDays, is_timed
from cbdp.features import Dimension, Universe
from cbdp.privacy.unit import RELEASE
from cbdp_features.calendar import (
    WEEKDAYS,
    date_or_none,
    dates_or_none,
    day_dimension,
    fixed_offset,
    period_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

# Values, one at a time


DayAndSecond = tuple[dt.date | None, int | None]  # the day and the second of the day, as far as they are told

MONTH_ABBREVIATIONS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
EPOCH_INSTANT = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
YEARS_READ = range(1850, 2150)
SATURATED_COUNT = (
    2**40
)  # trips: weights and sums saturate here, as in the counting plan, whose constant is not used on purpose


@dataclass(frozen=True)
class RawStamp:
    micros: int
    zone: str | None


@dataclass(frozen=True)
class RawDay:
    number: int


@dataclass(frozen=True)
class RawSecond:
    number: int


def value_coder(dimension: Dimension, clock: Clock, *, typed: bool) -> Callable[[object], int | None]:
    """The code of a value, by the rules of docs/explanation/counting.md."""
    labels: dict[Hashable, int] = {v: c for c, v in enumerate(dimension.values)}
    numbers = all(isinstance(v, int | float) for v in labels)
    digits = all(isinstance(v, str) and re.fullmatch("0|-?[1-9][0-9]*", v) for v in labels)
    dates = {date_or_none(v): c for v, c in labels.items()}

    def code(value: object) -> int | None:
        if not isinstance(value, RawStamp | RawDay | RawSecond) and value in labels:
            return labels[value]
        if isinstance(value, str) and numbers and not typed:
            return labels.get(_written_number(value, labels))
        if digits and (not isinstance(value, str) or re.fullmatch(r"(0|-?[1-9]\d*)[.]0*", value, re.ASCII)):
            return labels.get(str(_whole_number(value)))
        if numbers or isinstance(value, bytes):
            return None
        day, second = _moment(value, clock, "second" if dimension.edges else "day")
        if dimension.edges is not None:
            place = -1 if second is None else int(np.searchsorted(dimension.edges, second, side="right")) - 1
            return place if 0 <= place < len(labels) else None
        if day is None or None not in dates:
            return None if day is None else dates.get(day)
        return next((labels[n] for n in _day_names(day, clock) if n in labels), None)

    return code


def _written_number(text: str, labels: Mapping[Hashable, int]) -> bool | int | float | None:
    if all(isinstance(v, bool) for v in labels):
        return (
            True if re.fullmatch(TRUE_PATTERN, text) else False if re.fullmatch(FALSE_PATTERN, text) else None
        )
    if all(isinstance(v, int) for v in labels):
        return _whole_number(text)
    return float(text) if re.fullmatch(REAL_PATTERN, text) else None


def _whole_number(value: object) -> int | None:
    whole = _unbounded_whole(value)
    return whole if whole is not None and -(2**63) <= whole < 2**63 else None


def _unbounded_whole(value: Any) -> int | None:
    if isinstance(value, str):
        match = re.fullmatch(WHOLE_PATTERN, value)
        whole = int(Decimal(match[1])) if match else None
    else:
        try:
            whole = int(value) if value == math.floor(value) else None
        except (ValueError, OverflowError, TypeError, ArithmeticError):
            whole = None
    return whole


def row_weight(value: object) -> int | None:
    """The trips that a row stands for; beyond 64 bits, many."""
    whole = _unbounded_whole(value)
    return None if whole is None or whole < 0 else min(whole, SATURATED_COUNT)


Spelling = Callable[[str], str]


def spelling_of(*, text: bool, typed: bool) -> Spelling:
    """How two spellings of one person are told to be one: the text of a person → a text that is the same for both."""
    if not typed:
        return lambda value: _canonical_number(value) if re.fullmatch(NUMBER_PARTS_PATTERN, value) else value
    return lambda value: value.partition(".")[0] if text and re.fullmatch(DOTTED_PATTERN, value) else value


def _canonical_number(text: str) -> str:
    """A number by its exact value: whole ones as digits."""
    sign, digits, exponent = Decimal(text.strip(" \t")).as_tuple()
    led = "".join(map(str, digits)).strip("0")
    if not led:
        return "0"
    power = len("".join(map(str, digits)).lstrip("0")) + int(exponent)
    return "-" * sign + (led.ljust(power, "0") if power >= len(led) else f".{led}e{power}")


def person_number(value: object, numbers: dict[bytes, int], spelling: Spelling = str) -> int | None:
    """Persons are numbered as they come: by bytes, numbers by value, and NaN is nobody."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        value = int(value) if value.is_integer() else value
    if isinstance(value, str):
        value = spelling(value)
    bytes_ = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    return numbers.setdefault(bytes_, len(numbers)) if bytes_ else None


# Times


def day_of(value: object, clock: Clock) -> dt.date | None:
    """The service day that a value tells."""
    return None if isinstance(value, bytes) else _moment(value, clock, "day")[0]


def series_day_of(value: object, clock: Clock, *, timed: bool) -> dt.date | None:
    """The same where releases of a series must agree on it: of dates and instants that could differ one kind alone, and no offset among texts that need none."""
    if isinstance(value, bytes | RawStamp | RawDay | RawSecond):
        return day_of(value, clock)
    forms = [f for f in _readable_forms(clock, "day") if isinstance(f, str) or f.dated]
    dates = [f for f in forms if not isinstance(f, str) and not f.timed]
    moved = clock.first_second > 0 or (clock.timezone or "UTC").upper() not in ("UTC", "+00:00", "-00:00")
    if moved and dates and len(dates) < len(forms):
        forms = [f for f in forms if (f in dates) != timed]
    if clock.timezone is None:
        bare = [
            f for f in forms if not isinstance(f, str) and f.timed and (f == ISO_STAMP or "z" not in f.parts)
        ]
        if bare:
            forms = [ISO_LOCAL if f == ISO_STAMP else f for f in forms if f in bare or f in dates]
    for form in forms:
        moment = (
            None
            if not isinstance(value, str) and _whole_number(value) is None
            else _read_form(value, form, clock)
        )
        if moment is not None:
            return moment[0]
    return None


def _service_day(moment: DayAndSecond, clock: Clock) -> DayAndSecond:
    """An instant's day, by when the service day begins."""
    day, second = moment
    if day is None or second is None or second >= clock.first_second:
        return moment
    return day - dt.timedelta(days=1), second


def _moment(value: object, clock: Clock, need: str) -> DayAndSecond:
    if isinstance(value, RawStamp):
        return _service_day(_local_moment(value.micros, clock.timezone or value.zone), clock)
    if isinstance(value, RawDay):
        return _date_of(value.number), None
    if isinstance(value, RawSecond):
        return None, value.number if 0 <= value.number < 86400 else None
    if not isinstance(value, str) and _whole_number(value) is None:
        return None, None
    if not _forms_that_tell(_stated_forms(clock), need):
        hour = _whole_number(value)
        if hour is not None:
            return None, 3600 * hour if 0 <= hour < 24 else None
    for form in _readable_forms(clock, need):
        moment = _read_form(value, form, clock)
        if moment is not None:
            return moment
    return None, None


def _stated_forms(clock: Clock) -> list[str | WrittenForm]:
    forms: list[str | WrittenForm] = []
    for f in clock.formats:
        forms += (
            [ISO_STAMP, ISO_DATE, ISO_TIME]
            if f == ISO_NAME
            else [f if f in EPOCH_UNITS_PER_SECOND else written_form(f)]
        )
    return forms


def _forms_that_tell(stated: list[str | WrittenForm], need: str) -> list[str | WrittenForm]:
    return [f for f in stated if isinstance(f, str) or (f.timed if need == "second" else f.dated)]


def _readable_forms(clock: Clock, need: str) -> list[str | WrittenForm]:
    stated = _stated_forms(clock)
    return _forms_that_tell(stated, need) or (
        [ISO_DATE, ISO_TIME] if stated else [ISO_STAMP, ISO_DATE, ISO_TIME]
    )


def _read_form(value: object, form: str | WrittenForm, clock: Clock) -> DayAndSecond | None:
    if isinstance(form, str):
        whole = _whole_number(value)
        return (
            None
            if whole is None
            else _service_day(
                _local_moment(whole * 10**6 // EPOCH_UNITS_PER_SECOND[form], clock.timezone), clock
            )
        )
    match = re.fullmatch(form.pattern, value if isinstance(value, str) else str(_whole_number(value)))
    if match is None:
        return None
    part = {name: text.lower() for name, text in zip(form.parts, match.groups(), strict=True) if text}
    second = _hour_of(part) * 3600 + int(part.get("M", 0)) * 60 + int(part.get("S", 0))
    if not form.dated:
        return None, second
    try:
        day = dt.date(_year_of(part), _month_of(part), int(part["d"]))
    except ValueError:
        return None
    if not form.timed:
        return _date_of((day - EPOCH_INSTANT.date()).days), None
    micros = ((day - EPOCH_INSTANT.date()).days * 86400 + second - _offset_seconds(part.get("z", ""))) * 10**6
    return _service_day(_local_moment(micros, clock.timezone), clock)


def _hour_of(part: Mapping[str, str]) -> int:
    return int(part["I"]) % 12 + 12 * (part["p"] == "pm") if "I" in part else int(part.get("H", 0))


def _year_of(part: Mapping[str, str]) -> int:
    return int(part["Y"]) if "Y" in part else int(part["y"]) + (1900 if int(part["y"]) >= 69 else 2000)


def _month_of(part: Mapping[str, str]) -> int:
    return (
        int(part["m"]) if "m" in part else MONTH_ABBREVIATIONS.index(part.get("b", part.get("B", ""))[:3]) + 1
    )


def _offset_seconds(text: str) -> int:
    digits = text.lstrip("+-z").replace(":", "").ljust(4, "0")
    return (-1 if text.startswith("-") else 1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)


def _date_of(number: int) -> dt.date | None:
    inside = abs(number) < 10**6
    day = EPOCH_INSTANT.date() + dt.timedelta(days=number) if inside and number > -700_000 else None
    return day if day is not None and day.year in YEARS_READ else None


def _local_moment(micros: int, zone: str | None) -> DayAndSecond:
    if _date_of(micros // (86400 * 10**6)) is None:
        return None, None
    shown = (EPOCH_INSTANT + dt.timedelta(microseconds=micros)).astimezone(_zone_info(zone or "UTC"))
    return shown.date(), shown.hour * 3600 + shown.minute * 60 + shown.second


def _zone_info(name: str) -> dt.tzinfo:
    fixed = fixed_offset(name)
    return ZoneInfo(name) if fixed is None else dt.timezone(dt.timedelta(seconds=fixed))


def _day_names(day: dt.date, clock: Clock) -> list[str]:
    holidays = dict(clock.holidays)
    if day in holidays:
        return [holidays[day]]
    return [WEEKDAYS[day.weekday()], "weekday" if day.weekday() < 5 else "weekend"]


# The count


PERIOD_OFFSET = 10**6  # periods: added to their numbers, so that none is negative, which means no period


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
        return index[value > 0], np.minimum(value[value > 0], SATURATED_COUNT)


def can_recount(trips: object) -> bool:
    """Whether this path reads such trips: files, and tables in memory, but nothing that can be read only once, or lies on a cluster."""
    arrow = hasattr(trips, "__arrow_c_stream__") and not hasattr(trips, "read_next_batch")
    arrow = arrow and type(trips).__module__.partition(".")[0] != "pyspark"
    return files.are_files(trips) or isinstance(trips, Mapping) or hasattr(trips, "iloc") or arrow


def recount(
    trips: object,
    universe: Universe,
    *,
    columns: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    person: str | None = None,
    per: str = RELEASE,
    day: str | None = None,
    days: ServiceDays | None = None,
    dated: str | None = None,
) -> Recount:
    """All rows inside the universe; with a person's column, those of somebody; by a period, those whose `day` column tells it.

    With `days`, those of these service days, as the column `dated` tells.
    """
    names = columns or {}
    weights = None if "count" in universe.dimensions else names.get("count")
    dimension_columns = [names.get(n, n) for n in universe.dimensions]
    typed = not (files.are_files(trips) and not files.are_parquet(files.find_files(trips)))
    read = [value_coder(d, clock or Clock(), typed=typed) for d in universe.dimensions.values()]
    code_caches: list[dict[object, int]] = [{} for _ in [*read, weights]]
    who: dict[bytes, int] = {}
    parts: list[list[Ints]] = [[np.empty(0, dtype=np.int64)] for _ in range(3)]
    when = None if day is None else _period_coder(universe, names, day, per, clock or Clock(), typed=typed)
    among = (
        None
        if days is None or dated is None
        else _day_coder(days, clock or Clock(), is_timed(dated, names, universe))
    )
    pairs: dict[tuple[int, int], int] = {}
    for batch in _column_batches(
        trips, list(dict.fromkeys([*dimension_columns, *filter(None, (weights, person, day, dated))]))
    ):
        codes = [
            _coded_column(batch[c], f, k)
            for c, f, k in zip(dimension_columns, read, code_caches[:-1], strict=True)
        ]
        rank = universe.rank_codes(codes)
        times = _coded_column(batch[weights], row_weight, code_caches[-1]) if weights else np.ones_like(rank)
        person_codes = np.zeros_like(rank)
        if person:
            spelling = spelling_of(text=kind_of(batch[person].type).name == TEXT, typed=typed)
            person_codes = _coded_column(batch[person], lambda v: person_number(v, who, spelling), {})  # noqa: B023 - used at once
        if when is not None and day is not None:
            period = _coded_column(batch[day], when, {})
            both = zip(person_codes.tolist(), period.tolist(), strict=True)
            person_codes = np.array(
                [-1 if min(p) < 0 else pairs.setdefault(p, len(pairs)) for p in both], np.int64
            )
        inside = (rank >= 0) & (times >= 0) & (person_codes >= 0)
        if among is not None and dated is not None:
            inside &= _coded_column(batch[dated], among, {}) >= 0
        for part, column in zip(parts, (rank, times, person_codes), strict=True):
            part.append(column[inside])
    types, trips_each, persons = map(np.concatenate, parts)
    return Recount(types, trips_each, persons if person else None)


def _day_coder(days: ServiceDays, clock: Clock, timed: bool) -> Callable[[object], int | None]:
    """0 for a value that tells one of these days, else nothing."""

    def inside(value: object) -> int | None:
        day = series_day_of(value, clock, timed=timed)
        return 0 if day is not None and days.first <= day <= days.last else None

    return inside


def _period_coder(
    universe: Universe, names: Mapping[str, str], column: str, per: str, clock: Clock, *, typed: bool
) -> Callable[[object], int | None]:
    """The number of the period that a value of the day's column tells, with an offset that leaves none negative."""
    named = day_dimension(universe.dimensions)
    dates = None if named is None else dates_or_none(universe.dimensions[named])
    if named is None or dates is None or names.get(named, named) != column:
        return lambda v: None if (d := day_of(v, clock)) is None else PERIOD_OFFSET + period_of(d, per)
    code = value_coder(universe.dimensions[named], clock, typed=typed)
    return lambda v: None if (c := code(v)) is None else PERIOD_OFFSET + period_of(dates[c], per)


# Reading


def _column_batches(trips: object, columns: Sequence[str]) -> Iterator[dict[str, pa.ChunkedArray]]:
    """Columns by name: Arrow arrays, text of CSV as bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    if not files.are_files(trips):
        table: Any = {c: trips[c] for c in columns} if isinstance(trips, Mapping) else trips
        table = table[list(columns)] if hasattr(table, "iloc") else table
        stream = hasattr(table, "__arrow_c_stream__")
        for batch in pa.RecordBatchReader.from_stream(table) if stream else pa.table(table).to_batches():
            yield {c: batch.column(c) for c in columns}
        return
    for path in files.find_files(trips).paths:
        if path.name.lower().endswith(files.PARQUET_SUFFIX):
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(columns=list(columns)):
                    yield {c: batch.column(c) for c in columns}
            continue
        from cbdp.counting import csv_rows

        mark, names = csv_rows.csv_header(path)
        places = [names.index(c) for c in columns]
        for batch in csv_rows.csv_batches(path, mark, len(names), places, csv_rows.ReadTotals()):
            yield dict(zip(columns, batch.columns, strict=True))


def _coded_column(
    column: pa.ChunkedArray, code: Callable[[object], int | None], code_of_value: dict[object, int]
) -> Ints:
    """A whole number for every value, −1 for none; each distinct value is looked at once."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), -1, dtype=np.int64)
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    distinct = _python_values(coded.dictionary)
    for value in distinct:
        if value not in code_of_value:
            number = None if value is None else code(value)
            code_of_value[value] = -1 if number is None else number
    table = np.array([*(code_of_value[v] for v in distinct), -1], dtype=np.int64)
    place = coded.indices.cast(pa.int64()).fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    codes: Ints = table[place]
    return codes


def _python_values(values: pa.Array) -> list[object]:
    """Python values: text as it is or, if it is none, as bytes; stamps as microseconds with their zone, so that none is out of range."""
    import pyarrow as pa

    kind = values.type
    if pa.types.is_timestamp(kind):
        per = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 0}[kind.unit]
        whole = values.view(pa.int64()).to_pylist()
        return [None if v is None else RawStamp(v * per if per else v // 1000, kind.tz) for v in whole]
    if pa.types.is_date(kind):
        days = values.view(pa.int32() if pa.types.is_date32(kind) else pa.int64()).to_pylist()
        per = 1 if pa.types.is_date32(kind) else 86_400_000
        return [None if d is None else RawDay(d // per) for d in days]
    if pa.types.is_time(kind):
        per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        whole = values.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
        return [None if v is None else RawSecond(v // per) for v in whole]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        values = values.cast(pa.large_binary())
    return [_decoded(v) if isinstance(v, bytes) else v for v in values.to_pylist()]


def _decoded(value: bytes) -> str | bytes | None:
    try:
        return value.decode() or None
    except UnicodeDecodeError:
        return value
