"""The public calendar: periods of a day, days, and types of days."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Hashable, Mapping, Sequence

from cbdp.errors import InputError
from cbdp_features.universe import Dimension

SECONDS_PER_DAY = 24 * 3600
DAY_TYPES = ("weekday", "saturday", "sunday")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
UNIX_EPOCH = dt.date(1970, 1, 1)
DAY_STARTS = "00:00"  # when a service day begins, where nothing else is stated
OFFSET_PATTERN = re.compile(r"([+-])(\d\d):?(\d\d)")


def periods(start: str, end: str, every: str) -> Dimension:
    """The periods of a day from `start` to `end`, named by the time each begins.

    >>> periods("08:00", "10:00", "30min").values
    ('08:00', '08:30', '09:00', '09:30')
    """
    begin, finish, step = seconds_of_day(start), seconds_of_day(end), _parsed_duration(every)
    if finish <= begin:
        raise InputError(f"periods end at {end!r}, which is not after their start {start!r}")
    if (finish - begin) % step:
        raise InputError(
            f"{every!r} does not divide the time from {start!r} to {end!r}: choose another length"
        )
    edges = range(begin, finish + 1, step)
    seconds = step % 60 != 0 or begin % 60 != 0
    return Dimension([clock_time(e, seconds=seconds) for e in edges[:-1]], edges=tuple(edges))


def days(
    first: dt.date | str, last: dt.date | str, *, holidays: Mapping[dt.date, str] | None = None
) -> Dimension:
    """The days from `first` to `last`, named as in ISO 8601, with their day type as the attribute `type`.

    >>> days("2026-03-06", "2026-03-08").attributes["type"]
    ('weekday', 'saturday', 'sunday')
    """
    begin, end = _parsed_day(first), _parsed_day(last)
    if end < begin:
        raise InputError(f"days end on {end}, which is before their start {begin}")
    listed = [begin + dt.timedelta(days=n) for n in range((end - begin).days + 1)]
    return Dimension([d.isoformat() for d in listed], type=[day_type(d, holidays or {}) for d in listed])


def _parsed_day(day: dt.date | str) -> dt.date:
    try:
        return dt.date.fromisoformat(day) if isinstance(day, str) else day
    except ValueError:
        raise InputError(f"{day!r} is not a day: write it like '2026-03-02'") from None


def day_type(day: dt.date, holidays: Mapping[dt.date, str]) -> str:
    """The type of a day: that of the holiday table, or else weekday, saturday or sunday."""
    return holidays.get(day, DAY_TYPES[max(0, day.isoweekday() - 5)])


def date_or_none(value: Hashable) -> dt.date | None:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    try:
        return dt.date.fromisoformat(value) if isinstance(value, str) and len(value) == 10 else None
    except ValueError:
        return None


def dates_or_none(dimension: Dimension) -> list[dt.date] | None:
    """The dates that a dimension lists; None where one of its values is no date."""
    dates = []
    for value in dimension.values:
        date = date_or_none(value)
        if date is None:
            return None
        dates.append(date)
    return dates


def day_dimension(dimensions: Mapping[str, Dimension]) -> str | None:
    """The dimension that tells days apart: the one called "day", else the first that lists dates, or days of the week."""
    if "day" in dimensions:
        return "day"
    kinds = {*WEEKDAYS, "weekday", "weekend"}
    for name, dimension in dimensions.items():
        if dates_or_none(dimension) is not None or set(dimension.values) <= kinds:
            return name
    return None


def period_of(day: dt.date, per: str) -> int:
    """The number of the day, of the week (from Monday on) or of the month that a day lies in.

    >>> [period_of(dt.date(2026, 3, day), "week") for day in (1, 2, 8, 9)]
    [2930, 2931, 2931, 2932]
    """
    number = (day - UNIX_EPOCH).days
    return {"day": number, "week": (number + 3) // 7, "month": day.year * 12 + day.month - 1, "release": 0}[
        per
    ]


def codes_by_period(dimension: Dimension, per: str) -> list[Sequence[int]]:
    """The codes of a dimension of days that one period can hold, for each period.

    Values that are no dates stand for many days: every one of them may occur in a week, a month or a release, and one of them on a day.
    """
    every = range(len(dimension))
    dates = dates_or_none(dimension)
    if per == "release" or (dates is None and per != "day"):
        return [every]
    by_period: dict[int, list[int]] = {}
    for code in every:
        by_period.setdefault(code if dates is None else period_of(dates[code], per), []).append(code)
    return list(by_period.values())


def seconds_of_day(text: str) -> int:
    """The second of the day of a text like "06:30"."""
    pieces = text.split(":")
    try:
        hours, minutes, seconds = (*map(int, pieces), 0, 0)[:3] if len(pieces) in (2, 3) else (-1, 0, 0)
    except ValueError:
        hours, minutes, seconds = -1, 0, 0
    total = hours * 3600 + minutes * 60 + seconds
    if hours < 0 or not (0 <= minutes < 60 and 0 <= seconds < 60) or total > 24 * 3600:
        raise InputError(f"{text!r} is not a time of day: write it like '06:30' (at most '24:00')")
    return total


def clock_time(second: int, *, seconds: bool) -> str:
    text = f"{second // 3600:02d}:{second // 60 % 60:02d}"
    return f"{text}:{second % 60:02d}" if seconds else text


def fixed_offset(zone: str) -> int | None:
    """The seconds that a zone such as "+05:45" is ahead of UTC; None for a zone with a name.

    >>> fixed_offset("-07:00"), fixed_offset("America/Los_Angeles")
    (-25200, None)
    """
    match = OFFSET_PATTERN.fullmatch(zone)
    if match is None:
        return None
    minutes = int(match[2]) * 60 + int(match[3])
    return 60 * (-minutes if match[1] == "-" else minutes)


def _parsed_duration(text: str) -> int:
    units = {"min": 60, "h": 3600, "s": 1}
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text[len(number) :]
    if unit not in units or not (number.isascii() and number.isdigit()) or int(number) == 0:
        raise InputError(f"{text!r} is not a length of time: write it like '30min', '1h' or '90s'")
    return int(number) * units[unit]
