"""Values read by plain Python, one at a time, for the second count: the rules of docs/explanation/counting.md without an engine."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from cbdp.features import Dimension
from cbdp.features.calendar import WEEK, as_date
from cbdp.trips.clock import Clock, fixed_offset
from cbdp.trips.written import (
    DOTTED,
    EPOCHS,
    FALSE,
    ISO,
    ISO_DATE,
    ISO_LOCAL,
    ISO_STAMP,
    ISO_TIME,
    REAL,
    SPELT,
    TRUE,
    WHOLE,
    Written,
    written,
)

Moment = tuple[dt.date | None, int | None]  # the day and the second of the day, as far as they are told

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
YEARS = range(1850, 2150)
MOST = 2**40


@dataclass(frozen=True)
class Stamp:
    micros: int
    zone: str | None


@dataclass(frozen=True)
class DayNumber:
    number: int


@dataclass(frozen=True)
class Second:
    number: int


def coder(dimension: Dimension, clock: Clock, *, typed: bool) -> Callable[[Any], int | None]:
    """The code of a value, by the rules of docs/explanation/counting.md."""
    labels: dict[Hashable, int] = {v: c for c, v in enumerate(dimension.values)}
    numbers = all(isinstance(v, int | float) for v in labels)
    digits = all(isinstance(v, str) and re.fullmatch("0|-?[1-9][0-9]*", v) for v in labels)
    dates = {as_date(v): c for v, c in labels.items()}

    def code(value: Any) -> int | None:
        if not isinstance(value, Stamp | DayNumber | Second) and value in labels:
            return labels[value]
        if isinstance(value, str) and numbers and not typed:
            return labels.get(_written_number(value, labels))
        if digits and (not isinstance(value, str) or re.fullmatch(r"(0|-?[1-9]\d*)[.]0*", value, re.ASCII)):
            return labels.get(str(_whole(value)))
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


def _written_number(text: str, labels: Mapping[Hashable, int]) -> Any:
    if all(isinstance(v, bool) for v in labels):
        return True if re.fullmatch(TRUE, text) else False if re.fullmatch(FALSE, text) else None
    if all(isinstance(v, int) for v in labels):
        return _whole(text)
    return float(text) if re.fullmatch(REAL, text) else None


def _whole(value: Any) -> int | None:
    made = _any_whole(value)
    return made if made is not None and -(2**63) <= made < 2**63 else None


def _any_whole(value: Any) -> int | None:
    if isinstance(value, str):
        found = re.fullmatch(WHOLE, value)
        made = int(Decimal(found[1])) if found else None
    else:
        try:
            made = int(value) if value == math.floor(value) else None
        except (ValueError, OverflowError, TypeError, ArithmeticError):
            made = None
    return made


def weight(value: Any) -> int | None:
    """The trips that a row stands for; beyond 64 bits, many."""
    whole = _any_whole(value)
    return None if whole is None or whole < 0 else min(whole, MOST)


Spelling = Callable[[str], str]


def spelling_of(*, text: bool, typed: bool) -> Spelling:
    """How two spellings of one person are told to be one: the text of a person → a text that is the same for both."""
    if not typed:
        return lambda value: _value_of(value) if re.fullmatch(SPELT, value) else value
    return lambda value: value.partition(".")[0] if text and re.fullmatch(DOTTED, value) else value


def _value_of(text: str) -> str:
    """A number by its exact value: whole ones as digits."""
    sign, digits, exponent = Decimal(text.strip(" \t")).as_tuple()
    led = "".join(map(str, digits)).strip("0")
    if not led:
        return "0"
    power = len("".join(map(str, digits)).lstrip("0")) + int(exponent)
    return "-" * sign + (led.ljust(power, "0") if power >= len(led) else f".{led}e{power}")


def number_of(value: Any, known: dict[bytes, int], spelling: Spelling = str) -> int | None:
    """Persons are numbered as they come: by bytes, numbers by value, and NaN is nobody."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        value = int(value) if value.is_integer() else value
    if isinstance(value, str):
        value = spelling(value)
    bytes_ = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    return known.setdefault(bytes_, len(known)) if bytes_ else None


# Times


def day_of(value: Any, clock: Clock) -> dt.date | None:
    """The service day that a value tells."""
    return None if isinstance(value, bytes) else _moment(value, clock, "day")[0]


def series_day_of(value: Any, clock: Clock, *, timed: bool) -> dt.date | None:
    """The same where releases of a series must agree on it: of dates and instants that could differ one kind alone, and no offset among texts that need none."""
    if isinstance(value, bytes | Stamp | DayNumber | Second):
        return day_of(value, clock)
    forms = [f for f in _useful(clock, "day") if isinstance(f, str) or f.dated]
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
        found = None if not isinstance(value, str) and _whole(value) is None else _read(value, form, clock)
        if found is not None:
            return found[0]
    return None


def _served(moment: Moment, clock: Clock) -> Moment:
    """An instant's day, by when the service day begins."""
    day, second = moment
    if day is None or second is None or second >= clock.first_second:
        return moment
    return day - dt.timedelta(days=1), second


def _moment(value: Any, clock: Clock, need: str) -> Moment:
    if isinstance(value, Stamp):
        return _served(_local(value.micros, clock.timezone or value.zone), clock)
    if isinstance(value, DayNumber):
        return _day(value.number), None
    if isinstance(value, Second):
        return None, value.number if 0 <= value.number < 86400 else None
    if not isinstance(value, str) and _whole(value) is None:
        return None, None
    if not _fitting(_stated(clock), need):
        hour = _whole(value)
        if hour is not None:
            return None, 3600 * hour if 0 <= hour < 24 else None
    for form in _useful(clock, need):
        found = _read(value, form, clock)
        if found is not None:
            return found
    return None, None


def _stated(clock: Clock) -> list[str | Written]:
    found: list[str | Written] = []
    for f in clock.formats:
        found += [ISO_STAMP, ISO_DATE, ISO_TIME] if f == ISO else [f if f in EPOCHS else written(f)]
    return found


def _fitting(stated: list[str | Written], need: str) -> list[str | Written]:
    return [f for f in stated if isinstance(f, str) or (f.timed if need == "second" else f.dated)]


def _useful(clock: Clock, need: str) -> list[str | Written]:
    stated = _stated(clock)
    return _fitting(stated, need) or ([ISO_DATE, ISO_TIME] if stated else [ISO_STAMP, ISO_DATE, ISO_TIME])


def _read(value: Any, form: str | Written, clock: Clock) -> Moment | None:
    if isinstance(form, str):
        whole = _whole(value)
        return (
            None if whole is None else _served(_local(whole * 10**6 // EPOCHS[form], clock.timezone), clock)
        )
    found = re.fullmatch(form.pattern, value if isinstance(value, str) else str(_whole(value)))
    if found is None:
        return None
    part = {name: text.lower() for name, text in zip(form.parts, found.groups(), strict=True) if text}
    second = _hour(part) * 3600 + int(part.get("M", 0)) * 60 + int(part.get("S", 0))
    if not form.dated:
        return None, second
    try:
        day = dt.date(_year(part), _month(part), int(part["d"]))
    except ValueError:
        return None
    if not form.timed:
        return _day((day - EPOCH.date()).days), None
    micros = ((day - EPOCH.date()).days * 86400 + second - _offset(part.get("z", ""))) * 10**6
    return _served(_local(micros, clock.timezone), clock)


def _hour(part: Mapping[str, str]) -> int:
    return int(part["I"]) % 12 + 12 * (part["p"] == "pm") if "I" in part else int(part.get("H", 0))


def _year(part: Mapping[str, str]) -> int:
    return int(part["Y"]) if "Y" in part else int(part["y"]) + (1900 if int(part["y"]) >= 69 else 2000)


def _month(part: Mapping[str, str]) -> int:
    return int(part["m"]) if "m" in part else MONTHS.index(part.get("b", part.get("B", ""))[:3]) + 1


def _offset(text: str) -> int:
    digits = text.lstrip("+-z").replace(":", "").ljust(4, "0")
    return (-1 if text.startswith("-") else 1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)


def _day(number: int) -> dt.date | None:
    inside = abs(number) < 10**6
    day = EPOCH.date() + dt.timedelta(days=number) if inside and number > -700_000 else None
    return day if day is not None and day.year in YEARS else None


def _local(micros: int, zone: str | None) -> Moment:
    if _day(micros // (86400 * 10**6)) is None:
        return None, None
    shown = (EPOCH + dt.timedelta(microseconds=micros)).astimezone(_zone(zone or "UTC"))
    return shown.date(), shown.hour * 3600 + shown.minute * 60 + shown.second


def _zone(name: str) -> dt.tzinfo:
    fixed = fixed_offset(name)
    return ZoneInfo(name) if fixed is None else dt.timezone(dt.timedelta(seconds=fixed))


def _day_names(day: dt.date, clock: Clock) -> list[str]:
    holidays = dict(clock.holidays)
    if day in holidays:
        return [holidays[day]]
    return [WEEK[day.weekday()], "weekday" if day.weekday() < 5 else "weekend"]
