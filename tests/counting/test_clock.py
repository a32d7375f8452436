"""Time stamps fall into periods, days and day types of the agency's zone, whatever form they are in."""

from __future__ import annotations

import collections
import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from counting.making import as_dict, parquet

import cbdp
from cbdp.counting import Clock
from cbdp.errors import InputError
from cbdp.features import days

LOS_ANGELES = "America/Los_Angeles"


def _instants() -> list[dt.datetime]:
    """Quarters of an hour around both changes of the clock, in UTC."""
    begins = [dt.datetime(2026, 3, 7, 20, tzinfo=dt.UTC), dt.datetime(2026, 10, 31, 20, tzinfo=dt.UTC)]
    return [b + dt.timedelta(minutes=15 * q) for b in begins for q in range(4 * 48)]


WHOLE_DAY = cbdp.Universe(
    time=cbdp.periods("00:00", "24:00", "15min"),
    day=days("2026-03-06", "2026-11-03"),
    kind=["weekday", "saturday", "sunday"],
)
AT = {"time": "at", "day": "at", "kind": "at"}


def _by_zone(zone: str) -> dict[tuple[Any, ...], int]:
    found: collections.Counter[tuple[Any, ...]] = collections.Counter()
    for instant in _instants():
        local = instant.astimezone(ZoneInfo(zone))
        kind = ["weekday", "saturday", "sunday"][max(0, local.isoweekday() - 5)]
        found[f"{local:%H:%M}", local.date().isoformat(), kind] += 1
    return dict(found)


STAMPS: dict[str, tuple[Callable[[Path], Any], Clock, str]] = {
    "naive UTC": (
        lambda _: {"at": [i.replace(tzinfo=None) for i in _instants()]},
        Clock(LOS_ANGELES),
        LOS_ANGELES,
    ),
    "aware": (
        lambda _: pa.table({"at": pa.array(_instants(), pa.timestamp("us", "Europe/Paris"))}),
        Clock(LOS_ANGELES),
        LOS_ANGELES,
    ),
    "its own zone": (
        lambda f: parquet(
            pa.table({"at": pa.array(_instants(), pa.timestamp("ms", LOS_ANGELES))}), f / "t.parquet"
        ),
        Clock(),
        LOS_ANGELES,
    ),
    "a fixed offset": (
        lambda _: pa.table({"at": pa.array(_instants(), pa.timestamp("ns", "-07:00"))}),
        Clock(),
        "Etc/GMT+7",
    ),
    "ISO text": (
        lambda _: {"at": [i.astimezone(ZoneInfo("Asia/Tokyo")).isoformat() for i in _instants()]},
        Clock(LOS_ANGELES),
        LOS_ANGELES,
    ),
    "text of a format": (
        lambda _: {"at": [f"{i.month}/{i.day}/{i.year} {i.hour}:{i:%M}" for i in _instants()]},
        Clock(LOS_ANGELES, "%m/%d/%Y %H:%M"),
        LOS_ANGELES,
    ),
    "text with offsets of a format": (
        lambda _: {"at": [f"{i.astimezone(ZoneInfo('Asia/Tokyo')):%d.%m.%Y %H:%M %z}" for i in _instants()]},
        Clock(LOS_ANGELES, "%d.%m.%Y %H:%M %z"),
        LOS_ANGELES,
    ),
    "text without a zone": (
        lambda _: {"at": [i.replace(tzinfo=None).isoformat(" ", "minutes") for i in _instants()]},
        Clock(),
        "UTC",
    ),
}


@pytest.mark.parametrize("kind", STAMPS)
def test_zones_are_honoured_when_clocks_change(kind: str, tmp_path: Path) -> None:
    """Periods, days and day types of each stamp are those of the standard library, on days of 23 and 25 hours too."""
    make, clock, zone = STAMPS[kind]
    counts = cbdp.count(make(tmp_path), WHOLE_DAY, columns=AT, clock=clock)
    assert as_dict(counts, WHOLE_DAY) == _by_zone(zone)


def test_stamps_in_csv_are_text_of_a_format(tmp_path: Path) -> None:
    """A CSV in the American way is read by its format, and a stamp that does not fit is dropped."""
    path = tmp_path / "t.csv"
    path.write_text("at\n3/2/2026 8:05\n3/2/2026 24:05\n2026-03-02 08:05\n\n12/31/2026 23:59\n")
    universe = cbdp.Universe(at=cbdp.periods("00:00", "24:00", "1h"))
    counts = cbdp.count(path, universe, clock=Clock(format="%m/%d/%Y %H:%M"))
    assert as_dict(counts, universe) == {("08:00",): 1, ("23:00",): 1}


def test_text_is_a_period_a_time_or_a_stamp() -> None:
    """Periods by name, times of day and stamps may stand in one column; a date alone has no time of day."""
    universe = cbdp.Universe(time=cbdp.periods("08:00", "10:00", "1h"))
    rows = {"time": ["08:00", "8:59", "09:00:01.5", "2026-03-02T09:10", "2026-03-02", "10:00", "x", None]}
    assert as_dict(cbdp.count(rows, universe), universe) == {("08:00",): 2, ("09:00",): 2}


def test_dates_and_times_of_day_are_read_by_type() -> None:
    """Date columns give days and day types, time columns periods, and neither gives the other."""
    universe = cbdp.Universe(day=[dt.date(2026, 3, 7), dt.date(2026, 3, 8)], kind=["weekday", "weekend"])
    dates = [dt.date(2026, 3, 8), dt.date(2026, 3, 9), dt.date(2026, 3, 7)]
    counts = cbdp.count({"day": dates}, universe, columns={"kind": "day"})
    assert as_dict(counts, universe) == {(d, "weekend"): 1 for d in (dates[2], dates[0])}
    clock = cbdp.Universe(time=cbdp.periods("08:00", "10:00", "1h"))
    assert cbdp.count({"time": [dt.time(8, 30), dt.time(7)]}, clock).value.tolist() == [1]
    for wrong, of in ((dates, clock), ([dt.time(8)] * 3, cbdp.Universe(time=["monday", "tuesday"]))):
        with pytest.raises(InputError, match="column 'time' holds"):
            cbdp.count({"time": wrong}, of)


def test_a_holiday_has_the_type_its_table_says() -> None:
    """The public table goes before the day of the week, in day types and in the attribute of days."""
    table = {dt.date(2026, 7, 3): "sunday", dt.date(2026, 7, 4): "holiday"}
    stamps = [dt.datetime(2026, 7, d, 12) for d in (2, 3, 4, 5)]  # noqa: DTZ001 - a wall clock
    universe = cbdp.Universe(kind=["weekday", "saturday", "sunday", "holiday"])
    counts = cbdp.count({"kind": stamps}, universe, clock=Clock(holidays=table))
    assert counts.index.tolist() == [0, 2, 3]
    assert counts.value.tolist() == [1, 2, 1]
    listed = days("2026-07-02", "2026-07-05", holidays=table)
    assert listed.attributes["type"] == ("weekday", "sunday", "holiday", "sunday")
    dag = cbdp.FeatureDag(cbdp.Universe(kind=listed), [cbdp.Feature("type", by="kind.type")])
    by_day = cbdp.count({"kind": stamps}, dag.universe)
    assert by_day.of(dag, "type").tolist() == [1, 2, 1]  # holiday, sunday, weekday


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Clock("Mars/Olympus"), "unknown time zone 'Mars/Olympus'"),
        (lambda: Clock("../etc/passwd"), "unknown time zone"),
        (lambda: Clock(holidays={dt.datetime(2026, 1, 1): "sunday"}), "a date and its day type"),  # noqa: DTZ001
        (lambda: days("2026-03-02", "2026-03-01"), "before their start"),
        (lambda: days("2 March", "2026-03-01"), "not a day"),
        (
            lambda: cbdp.count({"a": ["x"]}, cbdp.Universe(a=["x"]), clock=Clock(format="%Q")),
            "the time format '%Q'",
        ),
    ],
)
def test_a_bad_clock_is_one_clear_error(make: Callable[[], object], message: str) -> None:
    """Zones, formats and days that do not exist are named."""
    with pytest.raises(InputError, match=message):
        make()
