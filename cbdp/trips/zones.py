"""Time zones as public tables of whole numbers, so that every engine's clock shows the same time.

An engine's own zones depend on its version, its session and its settings. Ours come from the system's tz database, once, on
the driver: for each UTC day the offset at its start, and the second from which another one holds.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.features.calendar import DAY
from cbdp.trips.clock import fixed_offset

EPOCH = dt.date(1970, 1, 1)
FIRST, LAST = (
    dt.date(1850, 1, 1),
    dt.date(2150, 1, 1),
)  # a stamp before, or from LAST on, is no time of a trip
FIRST_DAY, LAST_DAY = (FIRST - EPOCH).days, (LAST - EPOCH).days


@dataclass(frozen=True, eq=False)
class Zone:
    """Seconds ahead of UTC: `fixed`, or by UTC day (since 1970) `before` the day's second `change`, and `after` from it on."""

    name: str
    fixed: int | None
    day: Ints
    before: Ints
    change: Ints
    after: Ints


@lru_cache(maxsize=8)
def zone_of(name: str) -> Zone:
    """The table of a zone."""
    none = np.empty(0, dtype=np.int64)
    fixed = 0 if name.upper() == "UTC" else fixed_offset(name)
    if fixed is not None:
        return Zone(name, fixed, none, none, none, none)
    try:
        zone = ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise InputError(
            f"a column's time stamps are in the zone {name!r}, which is not known here: state a timezone"
        ) from None
    day = np.arange(FIRST_DAY, LAST_DAY, dtype=np.int64)
    start = np.fromiter((_offset(zone, d * DAY) for d in range(FIRST_DAY, LAST_DAY + 1)), np.int64)
    before, after = start[:-1], start[1:]
    change = np.full(len(day), DAY, dtype=np.int64)
    for place in np.flatnonzero(before != after).tolist():
        change[place] = _change(zone, int(day[place]) * DAY, int(after[place]))
    return Zone(name, None, day, before, change, after)


def _offset(zone: ZoneInfo, instant: int) -> int:
    moved = dt.datetime.fromtimestamp(instant, zone).utcoffset()
    assert moved is not None
    return int(moved.total_seconds())


def _change(zone: ZoneInfo, start: int, after: int) -> int:
    """The first second of a day at which the next day's offset holds: no zone has ever changed twice in one UTC day."""
    low, high = 0, DAY
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _offset(zone, start + middle) == after else (middle, high)
    return high
