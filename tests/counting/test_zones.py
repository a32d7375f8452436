"""The tables of zones show the standard library's time, around every change and between."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest

import cbdp
from cbdp.counting import Clock
from cbdp.counting.clock import EPOCH_DATE, FIRST_DAY, LAST_DAY, zone_table
from cbdp.errors import InputError

NAMED = [
    "Europe/Dublin",
    "Africa/Casablanca",
    "Pacific/Apia",
    "Asia/Gaza",
    "America/St_Johns",
    "Asia/Tehran",
    "Australia/Lord_Howe",
]


@pytest.mark.parametrize("name", NAMED)
def test_a_table_is_the_standard_librarys(name: str) -> None:
    """At the seconds around every change, and at random."""
    table, zone = zone_table(name), ZoneInfo(name)
    changed = np.flatnonzero(table.before != table.after)
    assert len(changed) > 20
    at = table.day[changed] * 86400 + table.change[changed]
    rng = np.random.default_rng(0)
    some = np.concatenate([at - 1, at, at + 1, rng.integers(FIRST_DAY * 86400, LAST_DAY * 86400 - 1, 3000)])
    for instant in some[(some >= FIRST_DAY * 86400) & (some < LAST_DAY * 86400)].tolist():
        place, second = divmod(instant, 86400)
        row = place - FIRST_DAY
        found = table.after[row] if second >= table.change[row] else table.before[row]
        wanted = dt.datetime.fromtimestamp(instant, zone).utcoffset()
        assert wanted is not None
        assert found == wanted.total_seconds(), (name, instant)


@pytest.mark.slow
def test_no_zone_changes_twice_in_a_day() -> None:
    """A table has room for one change in a UTC day: a sample of zones, hour by hour, around each of their changes."""
    for name in sorted(available_timezones())[::40]:
        table, zone = zone_table(name), ZoneInfo(name)
        if table.fixed is not None:
            continue
        for day in table.day[np.flatnonzero(table.before != table.after)].tolist():
            hours = [dt.datetime.fromtimestamp(day * 86400 + 900 * q, zone).utcoffset() for q in range(97)]
            assert sum(a != b for a, b in zip(hours[1:], hours[:-1], strict=True)) <= 1, (
                name,
                EPOCH_DATE + dt.timedelta(days=day),
            )


def test_offsets_are_zones_without_a_table() -> None:
    """+05:45 and UTC are the same all year."""
    assert [zone_table(z).fixed for z in ("+05:45", "-0930", "UTC", "utc")] == [20700, -34200, 0, 0]


def test_a_columns_zone_that_nobody_knows_is_one_clear_error() -> None:
    """The column's type states it, so the message may; a stated timezone cures it."""
    import pyarrow as pa

    table = pa.table({"time": pa.array([0], pa.timestamp("us", "Mars/Base"))})
    universe = cbdp.Universe(time=cbdp.periods("00:00", "24:00", "1h"))
    with pytest.raises(
        InputError, match="in the zone 'Mars/Base', which is not known here: state a timezone"
    ):
        cbdp.count(table, universe)
    assert cbdp.count(table, universe, clock=Clock("UTC")).index.tolist() == [0]
