"""Counting the rows of some service days only: as if the others were not there."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cbdp
from cbdp.counting import Clock, count, second_count, trips_by_person
from cbdp.counting.plan import ServiceDays
from cbdp.errors import InputError
from cbdp.privacy.unit import Person

UNIVERSE = cbdp.Universe(
    origin=cbdp.Dimension(["a", "b"]),
    destination=cbdp.Dimension(["a", "b", "c"]),
    time=cbdp.periods("00:00", "24:00", "6h"),
).without_equal("origin", "destination")
DAY = dt.timedelta(days=1)
FIRST = dt.datetime(2026, 3, 1)  # noqa: DTZ001


def rows(seed: int = 0, days: int = 10, n: int = 600) -> dict[str, list[object]]:
    draw = np.random.default_rng(seed)
    minutes = draw.integers(0, days * 24 * 60, n)
    return {
        "origin": draw.choice(["a", "b", "x"], n).tolist(),
        "destination": draw.choice(["a", "b", "c"], n).tolist(),
        "time": [FIRST + dt.timedelta(minutes=int(m)) for m in minutes],
        "card": draw.integers(0, 20, n).tolist(),
    }


def only(table: dict[str, list[object]], days: ServiceDays, starts: int = 0) -> dict[str, list[object]]:
    shift = dt.timedelta(hours=starts)
    kept = [days.first <= (t - shift).date() <= days.last for t in table["time"]]  # type: ignore[operator]
    return {name: [v for v, keep in zip(column, kept, strict=True) if keep] for name, column in table.items()}


@pytest.mark.parametrize("starts", ["00:00", "04:00"])
@pytest.mark.parametrize("span", [(0, 0), (3, 9), (0, 9), (40, 41)])
def test_only_the_rows_of_these_service_days_count(span: tuple[int, int], starts: str) -> None:
    """The same counts as of a table that holds no other rows; the service day may begin at four."""
    table, clock = rows(), Clock(day_starts=starts)
    days = ServiceDays((FIRST + span[0] * DAY).date(), (FIRST + span[1] * DAY).date())
    found = count(pa.table(table), UNIVERSE, clock=clock, days=days)
    alone = count(pa.table(only(table, days, int(starts[:2]))), UNIVERSE, clock=clock)
    assert np.array_equal(found.index, alone.index)
    assert np.array_equal(found.value, alone.value)
    assert (found.value.sum() == 0) == (span[0] == 40)


def test_the_days_of_a_period_are_a_partition_of_all_trips(tmp_path: Path) -> None:
    """Day by day the counts add up to the count of all; from Parquet and CSV alike."""
    import pyarrow.csv

    table = pa.table(rows(1))
    pq.write_table(table, tmp_path / "trips.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "trips.csv")
    every = count(table, UNIVERSE).dense()
    for file in ("trips.parquet", "trips.csv"):
        daily = [
            count(tmp_path / file, UNIVERSE, days=ServiceDays(day, day)).dense()
            for day in ((FIRST + n * DAY).date() for n in range(10))
        ]
        assert np.array_equal(np.sum(daily, axis=0), every)
        assert all(day.sum() for day in daily)


@pytest.mark.parametrize("starts", ["00:00", "04:00"])
def test_the_second_count_agrees(starts: str) -> None:
    """The path that an audit counts on, which shares nothing with the first but the rules; also by person."""
    table, clock = pa.table(rows(5)), Clock(day_starts=starts)
    days = ServiceDays((FIRST + 2 * DAY).date(), (FIRST + 4 * DAY).date())
    found = count(table, UNIVERSE, clock=clock, days=days)
    index, value = second_count(table, UNIVERSE, clock=clock, days=days)
    assert np.array_equal(found.index, index)
    assert np.array_equal(found.value, value)
    unit = Person("card", 2, per="day")
    begins, types = trips_by_person(table, UNIVERSE, unit, clock=clock, days=days)
    assert len(types) == value.sum()
    many = np.diff(np.append(np.flatnonzero(begins), len(types)))
    assert np.minimum(many, 2).sum() == count(table, UNIVERSE, unit=unit, clock=clock, days=days).value.sum()


@pytest.mark.parametrize("per", ["release", "day"])
def test_persons_are_bounded_within_these_days(per: str) -> None:
    """Trips of other days take no place: everybody keeps as many as the bound allows of those inside."""
    table = rows(2, n=3_000)
    days = ServiceDays(FIRST.date(), (FIRST + 1 * DAY).date())
    unit = {"person": "card", "max_trips": 2, "per": per}
    found = count(pa.table(table), UNIVERSE, unit=unit, days=days)
    inside = only(table, days)
    good = [
        (card, t.date() if per == "day" else None)  # type: ignore[attr-defined]
        for card, t, o, d in zip(
            inside["card"], inside["time"], inside["origin"], inside["destination"], strict=True
        )
        if o in ("a", "b") and o != d
    ]
    assert found.value.sum() == sum(min(2, good.count(key)) for key in set(good))


def test_rows_that_tell_no_day_are_refused_by_the_schema() -> None:
    """A column of hours has no date; nothing is read."""
    table = pa.table({"origin": ["a"], "destination": ["b"], "time": pa.array([8], pa.int8())})
    day = ServiceDays(FIRST.date(), FIRST.date())
    with pytest.raises(InputError, match="column 'time' tells no dates: name a column with the day"):
        count(table, UNIVERSE, days=day)
    places = cbdp.Universe(origin=cbdp.Dimension(["a", "b"]))
    with pytest.raises(InputError, match="nothing says on which day a trip was made"):
        count(table, places, days=day)
    dated = table.append_column("day", pa.array(["2026-03-01"]))
    assert count(dated, UNIVERSE, columns={"day": "day"}, days=day).value.sum() == 1
    with pytest.raises(InputError, match="days end on 2026-02-28, which is before"):
        ServiceDays(FIRST.date(), FIRST.date() - DAY)
