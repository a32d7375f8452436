"""How time stamps are read: zone, written form, holidays."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from cbdp.errors import InputError
from cbdp.features.calendar import DAY, day_type, seconds_of
from cbdp.trips.written import EPOCHS, ISO, written

OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


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
    day_starts: str = "00:00"

    def __post_init__(self) -> None:
        table = dict(self.holidays)
        for day, label in table.items():
            if not isinstance(day, dt.date) or isinstance(day, dt.datetime) or not isinstance(label, str):
                raise InputError(f"holidays hold {day!r}: {label!r}: write a date and its day type, a text")
        object.__setattr__(self, "holidays", tuple(sorted(table.items())))
        if self.format is not None and not isinstance(self.format, str):
            object.__setattr__(self, "format", tuple(self.format))
        for text in self.formats:
            if text != ISO and text not in EPOCHS:
                written(text)
        if self.timezone is not None:
            _check_zone(self.timezone)
        if not isinstance(self.day_starts, str) or seconds_of(self.day_starts) >= DAY:
            raise InputError(
                f"the service day starts at {self.day_starts!r}: write a time like '04:00', before '24:00'"
            )

    @property
    def first_second(self) -> int:
        """The second of the day at which a service day begins."""
        return seconds_of(self.day_starts)

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


def fixed_offset(zone: str) -> int | None:
    """The seconds that a zone such as "+05:45" is ahead of UTC; None for a zone with a name.

    >>> fixed_offset("-07:00"), fixed_offset("America/Los_Angeles")
    (-25200, None)
    """
    found = OFFSET.fullmatch(zone)
    if found is None:
        return None
    minutes = int(found[2]) * 60 + int(found[3])
    return 60 * (-minutes if found[1] == "-" else minutes)


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
