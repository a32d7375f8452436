"""How time stamps are read: zone, written forms, holidays; and time zones as public tables of whole numbers, so that every engine's clock shows the same."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp_features.calendar import DAY_STARTS, SECONDS_PER_DAY, day_type, fixed_offset, seconds_of_day

# Times written as text: one pattern for each form, so that every engine reads the same texts, and reads them alike. A pattern uses only what RE2, Java and PostgreSQL share. Its groups, in order, are the parts named beside it; ranges (hours to
# 23, minutes to 59) are in the pattern, so that only the length of months is left to check.


EPOCH_UNITS_PER_SECOND = {"epoch_s": 1, "epoch_ms": 1000}  # units in a second
ISO_NAME = "iso"  # ISO 8601, where it stands in a list with others

DAY_PARTS = frozenset("YymdbBj")
TIME_PARTS = frozenset("HIMS")

_MONTH_NAMES = "january february march april may june july august september october november december".split()  # noqa: SIM905
_WEEKDAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905

_DIRECTIVES = {
    "Y": "([0-9]{4})",
    "y": "([0-9]{2})",
    "m": "(1[0-2]|0[1-9]|[1-9])",
    "d": "(3[01]|[12][0-9]|0[1-9]|[1-9])",
    "H": "(2[0-3]|[01][0-9]|[0-9])",
    "I": "(1[0-2]|0[1-9]|[1-9])",
    "M": "([0-5][0-9]|[0-9])",
    "S": "([0-5][0-9]|[0-9])",
    "f": "([0-9]{1,6})",
    "p": "(am|pm)",
    "b": f"({'|'.join(m[:3] for m in _MONTH_NAMES)})",
    "B": f"({'|'.join(_MONTH_NAMES)})",
    "z": "([+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)",
    "a": f"(?:{'|'.join(d[:3] for d in _WEEKDAY_NAMES)})",
    "A": f"(?:{'|'.join(_WEEKDAY_NAMES)})",
    "%": "%",
}
_DIRECTIVE_SHORTHANDS = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%R": "%H:%M", "%D": "%m/%d/%y"}
_READ_DIRECTIVES = frozenset("YymdHIMSfpbBz")


@dataclass(frozen=True)
class WrittenForm:
    """A written form: the pattern that the whole text must match, the part in each group, and the format of strptime."""

    pattern: str
    parts: tuple[str, ...]
    format: str | None  # None: ISO 8601

    @property
    def dated(self) -> bool:
        return bool(DAY_PARTS & set(self.parts))

    @property
    def timed(self) -> bool:
        return bool(TIME_PARTS & set(self.parts))


_DATE_PATTERN = "([0-9]{4})-(1[0-2]|0[1-9]|[1-9])-(3[01]|[12][0-9]|0[1-9]|[1-9])"
_TIME_PATTERN = "(2[0-3]|[01][0-9]|[0-9]):([0-5][0-9])(?::([0-5][0-9])(?:[.]([0-9]+))?)?"
ZONE_PATTERN = "(Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?"

ISO_STAMP = WrittenForm(
    f" *{_DATE_PATTERN}[T ]{_TIME_PATTERN}{ZONE_PATTERN} *", ("Y", "m", "d", "H", "M", "S", "f", "z"), None
)
ISO_LOCAL = WrittenForm(
    f" *{_DATE_PATTERN}[T ]{_TIME_PATTERN} *", ("Y", "m", "d", "H", "M", "S", "f"), None
)  # without an offset
ISO_DATE = WrittenForm(f" *{_DATE_PATTERN} *", ("Y", "m", "d"), None)
ISO_TIME = WrittenForm(f" *{_TIME_PATTERN} *", ("H", "M", "S", "f"), None)

ENDS_IN_OFFSET_PATTERN = ".*:[0-9.]+ *(Z|[+-][0-9]{2}(:?[0-9]{2})?) *"  # a time that ends in one

WHOLE_PATTERN = "[ \t]*([+-]?[0-9]+)(?:[.]0*)?[ \t]*"  # "289", "289.0": group 1 is the number
DOTTED_PATTERN = "(0|-?[1-9][0-9]*)[.]0*"  # "289.0" but neither "289" nor "0289.0"
REAL_PATTERN = "[ \t]*([+-]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t]*"
HOUR_PATTERN = "[ \t]*(2[0-3]|[01][0-9]|[0-9])(?:[.]0*)?[ \t]*"
NOT_NEGATIVE_PATTERN = "[ \t]*[+]?[0-9]+(?:[.]0*)?[ \t]*"
# a number of which two spellings are one person: sign, digits before and after the dot, exponent
NUMBER_PARTS_PATTERN = "[ \t]*([+-]?)(?:([0-9]+)(?:[.]([0-9]*))?|[.]([0-9]+))(?:[eE]([+-]?[0-9]{1,3}))?[ \t]*"
TRUE_PATTERN, FALSE_PATTERN = "(?i)[ \t]*(?:true|t|yes|y|1)[ \t]*", "(?i)[ \t]*(?:false|f|no|n|0)[ \t]*"


@lru_cache(maxsize=64)
def written_form(text: str) -> WrittenForm:
    """The form that a strptime format describes.

    >>> written_form("%d.%m.%y").parts
    ('d', 'm', 'y')
    """
    full = text
    for short, long in _DIRECTIVE_SHORTHANDS.items():
        full = full.replace(short, long)
    pattern, parts = "", []
    for directive, literal in re.findall(r"%-?(.?)|([^%]+)", full.replace("%-", "%")):
        if literal:
            pattern += re.escape(literal).replace("\\ ", " ")
        elif directive in _DIRECTIVES:
            pattern += _DIRECTIVES[directive]
            parts += [directive] if directive in _READ_DIRECTIVES else []
        else:
            raise InputError(_form_error(text, f"%{directive} is not known"))
    form = WrittenForm(f"(?i) *{pattern} *", tuple(parts), full.replace("%-", "%"))
    _check_form(text, form)
    return form


def _check_form(text: str, form: WrittenForm) -> None:
    named = set(form.parts)
    whole_day = named & set("Yy") and named & set("mbB") and "d" in named
    if len(named) < len(form.parts):
        raise InputError(_form_error(text, "a part stands twice"))
    if not form.dated and not form.timed:
        raise InputError(_form_error(text, "neither a date nor a time of day"))
    if form.dated and not whole_day:
        raise InputError(_form_error(text, "a date needs year, month and day"))
    if (
        ("I" in named) != ("p" in named)
        or {"H", "I"} <= named
        or (named & set("MSf") and not named & set("HI"))
    ):
        raise InputError(_form_error(text, "a time needs %H, or %I with %p"))


def _form_error(text: str, why: str) -> str:
    return f"the time format {text!r} cannot be read ({why}): write it like '%m/%d/%Y %H:%M' or '%d.%m.%Y %I:%M %p'"


# The clock


@dataclass(frozen=True)
class Clock:
    """How time stamps are read.

    With a `timezone`, stamps that know their zone are converted to it, and those that know none are taken as UTC and
    converted; without, stamps count in the zone their column states (text with an offset: UTC), or as they stand. A date
    or a time of day alone knows no zone and is taken as it stands.

    Text is ISO 8601 unless a strptime `format` is stated: one, or several of which the first that fits counts ("iso" may be among
    them). "epoch_s" and "epoch_ms" are seconds and milliseconds since 1970. `holidays` is a public table of days with their day type.

    The service day begins at `day_starts`: with "04:00", a trip at 01:30 on Tuesday belongs to Monday, and so to Monday's day type. Its
    time of day stays 01:30. A date alone is the service day that the agency wrote down, and is taken as it stands.
    """

    timezone: str | None = None
    format: str | tuple[str, ...] | None = None
    holidays: Mapping[dt.date, str] | tuple[tuple[dt.date, str], ...] = ()
    day_starts: str = DAY_STARTS

    def __post_init__(self) -> None:
        table = dict(self.holidays)
        for day, label in table.items():
            if not isinstance(day, dt.date) or isinstance(day, dt.datetime) or not isinstance(label, str):
                raise InputError(f"holidays hold {day!r}: {label!r}: write a date and its day type, a text")
        object.__setattr__(self, "holidays", tuple(sorted(table.items())))
        if self.format is not None and not isinstance(self.format, str):
            object.__setattr__(self, "format", tuple(self.format))
        for text in self.formats:
            if text != ISO_NAME and text not in EPOCH_UNITS_PER_SECOND:
                written_form(text)
        if self.timezone is not None:
            _check_zone(self.timezone)
        if not isinstance(self.day_starts, str) or seconds_of_day(self.day_starts) >= SECONDS_PER_DAY:
            raise InputError(
                f"the service day starts at {self.day_starts!r}: write a time like '04:00', before '24:00'"
            )

    @property
    def first_second(self) -> int:
        """The second of the day at which a service day begins."""
        return seconds_of_day(self.day_starts)

    @property
    def formats(self) -> tuple[str, ...]:
        """The declared formats; none: ISO 8601."""
        if self.format is None:
            return ()
        return (self.format,) if isinstance(self.format, str) else self.format

    def day_type(self, day: dt.date) -> str:
        """The type of a day: that of the holiday table, or else weekday, saturday or sunday.

        >>> Clock(holidays={dt.date(2026, 7, 3): "sunday"}).day_type(dt.date(2026, 7, 3))
        'sunday'
        """
        return day_type(day, dict(self.holidays))


def _check_zone(zone: str) -> None:
    offset = fixed_offset(zone)
    try:
        if offset is None:
            ZoneInfo(zone)
        if offset is None or abs(offset) < 24 * 3600:
            return
    except (OSError, ValueError, KeyError):
        pass
    raise InputError(f"unknown time zone {zone!r}: write it like 'America/Los_Angeles' or '-07:00'")


# Time zones as public tables of whole numbers. An engine's own zones depend on its version, its session and its settings. Ours come from the system's tz database, once, on
# the driver: for each UTC day the offset at its start, and the second from which another one holds.


EPOCH_DATE = dt.date(1970, 1, 1)
# a stamp before the first, or from the last on, is no time of a trip
FIRST_DATE, LAST_DATE = dt.date(1850, 1, 1), dt.date(2150, 1, 1)
FIRST_DAY, LAST_DAY = (FIRST_DATE - EPOCH_DATE).days, (LAST_DATE - EPOCH_DATE).days


@dataclass(frozen=True, eq=False)
class ZoneTable:
    """Seconds ahead of UTC: `fixed`, or by UTC day (since 1970) `before` the day's second `change`, and `after` from it on."""

    name: str
    fixed: int | None
    day: Ints
    before: Ints
    change: Ints
    after: Ints


@lru_cache(maxsize=8)
def zone_table(name: str) -> ZoneTable:
    """The table of a zone."""
    none = np.empty(0, dtype=np.int64)
    fixed = 0 if name.upper() == "UTC" else fixed_offset(name)
    if fixed is not None:
        return ZoneTable(name, fixed, none, none, none, none)
    try:
        zone = ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise InputError(
            f"a column's time stamps are in the zone {name!r}, which is not known here: state a timezone"
        ) from None
    day = np.arange(FIRST_DAY, LAST_DAY, dtype=np.int64)
    start = np.fromiter(
        (_offset_at(zone, d * SECONDS_PER_DAY) for d in range(FIRST_DAY, LAST_DAY + 1)), np.int64
    )
    before, after = start[:-1], start[1:]
    change = np.full(len(day), SECONDS_PER_DAY, dtype=np.int64)
    for place in np.flatnonzero(before != after).tolist():
        change[place] = _change_second(zone, int(day[place]) * SECONDS_PER_DAY, int(after[place]))
    return ZoneTable(name, None, day, before, change, after)


def _offset_at(zone: ZoneInfo, instant: int) -> int:
    moved = dt.datetime.fromtimestamp(instant, zone).utcoffset()
    assert moved is not None
    return int(moved.total_seconds())


def _change_second(zone: ZoneInfo, start: int, after: int) -> int:
    """The first second of a day at which the next day's offset holds: no zone has ever changed twice in one UTC day."""
    low, high = 0, SECONDS_PER_DAY
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _offset_at(zone, start + middle) == after else (middle, high)
    return high
