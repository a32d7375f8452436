"""From values to codes: text by its bytes, numbers by value, and never two labels for one key."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from counting.making import as_dict, written

import cbdp
from cbdp.counting import Clock
from cbdp.errors import InputError

LOS_ANGELES = "America/Los_Angeles"


def test_text_of_a_csv_stands_for_what_the_dimension_holds(tmp_path: Path) -> None:
    """Zeros in front stay in text; numbers are exact beyond 2^53, and 7.5 is not 8."""
    big = 2**53 + 1
    path = tmp_path / "t.csv"
    path.write_text(f"id\n007\n7\n7.0\n7.5\n8\n{big}\n{big - 1}\n1e0\nx\n")
    for values, expected in (
        (["007", "7"], {("007",): 1, ("7",): 1}),
        ([7, 8, big], {(7,): 3, (8,): 1, (big,): 1}),
        ([7.5, 1.0], {(7.5,): 1, (1.0,): 1}),
    ):
        universe = cbdp.Universe(id=values)
        assert as_dict(cbdp.count(path, universe), universe) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [[1, 2], [1.5, 2.0], [True, False], [dt.date(2026, 3, 2)], ["2026-03-02"], ["monday"], ["a"], None],
)
def test_no_cell_of_a_csv_decides_whether_trips_are_counted(values: Any, tmp_path: Path) -> None:
    """Whatever stands in a cell, a value that does not fit is dropped and never an error."""
    dimension = cbdp.periods("00:00", "24:00", "1h") if values is None else cbdp.Dimension(values)
    cells = [
        "x",
        "NaN",
        "inf",
        "1e999",
        "-",
        "9" * 40,
        "0x1",
        "12:99",
        "2026-13-45",
        "2026-02-30 25:61",
        "é",
        "\\N",
    ]
    cells += [
        "infinity",
        "290000-01-01 00:00",
        "294247-01-10 04:00:54.775807",
        "24:00:00",
        "2026-03-02T99:00Z",
        "'",
    ]
    path = written(tmp_path, "t.csv", "v,card\n" + "".join(f'"{c}",{c}\n' for c in cells))
    universe = cbdp.Universe(v=dimension)
    for clock in (Clock(), Clock(LOS_ANGELES), Clock("-07:00", "%m/%d/%Y %H:%M"), Clock(format="%d.%m.%Y")):
        for unit in ("trip", cbdp.Person("card", 1)):
            assert cbdp.count(path, universe, clock=clock, unit=unit).value.sum() <= 3


def test_numbers_are_equal_across_types() -> None:
    """A column of floats, decimals or booleans finds the whole numbers it equals, as Python does."""
    universe = cbdp.Universe(id=[0, 1, 2**62 + 1])
    for column in (
        pa.array([0.0, -0.0, 1.0, 0.5, float("nan"), None]),
        pa.array([0, 0, 1, 5, None, None], pa.uint8()),
        pa.array([False, False, True]),
        pa.array([0, 0, 1], pa.decimal128(10, 2)),
    ):
        assert as_dict(cbdp.count(pa.table({"id": column}), universe), universe) == {(0,): 2, (1,): 1}
    exact = cbdp.count({"id": [2**62, 2**62 + 1, 2**62 + 2]}, universe)
    assert exact.value.tolist() == [1]


def test_the_types_of_a_database_are_what_they_show(tmp_path: Path) -> None:
    """Enumerations, UUIDs and JSON are text; huge numbers are numbers; stamps of every precision are stamps."""
    with duckdb.connect(str(tmp_path / "city.db")) as db:
        db.execute("SET TimeZone = 'UTC'; CREATE TYPE stop AS ENUM ('A', 'B')")
        db.execute(
            "CREATE TABLE trips AS SELECT 'A'::stop AS stop, '00000000-0000-0000-0000-00000000000a'::UUID AS card, "
            "7::HUGEINT AS big, TIMESTAMP_S '2026-03-02 10:00:00' AS s, TIMESTAMP_MS '2026-03-02 10:00:00' AS ms, "
            "TIMESTAMP_NS '2026-03-02 10:00:00' AS ns, TIMESTAMPTZ '2026-03-02 12:00:00+02' AS tz, "
            """'{"x": 1}'::JSON AS note FROM range(3)"""
        )
    url = f"duckdb://{tmp_path / 'city.db'}::trips"
    stops = cbdp.Universe(stop=["A", "B"])
    assert cbdp.count(url, stops).value.tolist() == [3]
    for person in ("card", "big", "s", "note", "stop"):
        assert cbdp.count(url, stops, unit=cbdp.Person(person, 2)).value.tolist() == [2]
    cards = cbdp.Universe(
        card=["00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000A"]
    )
    assert cbdp.count(url, cards).index.tolist() == [0]
    assert cbdp.count(url, cbdp.Universe(big=[7])).value.tolist() == [3]
    hours = cbdp.Universe(at=cbdp.periods("00:00", "24:00", "1h"))
    for stamp in ("s", "ms", "ns", "tz"):
        assert cbdp.count(url, hours, columns={"at": stamp}).index.tolist() == [10]


def test_whole_numbers_as_text_are_found_in_columns_of_numbers() -> None:
    """Stops called "7" and "289" are in a column of numbers, with a point or without; "07" or 7.5 are others."""
    universe = cbdp.Universe(stop=["7", "289"])
    for column in (
        pa.array([7, 289, 8, None]),
        pa.array([7.0, 289.0, 7.5, float("nan")]),
        pa.array(["7", "289.0", "07", "7e0"]),
    ):
        assert as_dict(cbdp.count(pa.table({"stop": column}), universe), universe) == {("7",): 1, ("289",): 1}
    mixed = cbdp.Universe(stop=["7", "x"])  # such labels are names, not numbers
    assert cbdp.count({"stop": ["7", "7.0"]}, mixed).value.tolist() == [1]
    with pytest.raises(InputError, match="column 'stop' holds int64 values, the dimension text"):
        cbdp.count({"stop": [7]}, mixed)


def test_whole_hours_are_periods() -> None:
    """8 is the start of the hour from 08:00, as a number, as a float and as text; 24 and 8.5 are no hours."""
    universe = cbdp.Universe(time=cbdp.periods("08:00", "10:00", "30min"))
    for column in ([8, 9, 9, 24, -1], [8.0, 9.0, 9.0, 8.5, float("nan")], ["8", "09", "9.0", "24", "8.5"]):
        assert as_dict(cbdp.count({"time": column}, universe), universe) == {("08:00",): 1, ("09:00",): 2}


def test_digits_are_dates_where_a_format_says_so() -> None:
    """20260302 in a column of numbers, read by %Y%m%d; the hour beside it needs no format."""
    universe = cbdp.Universe(day=["weekday", "weekend"], time=cbdp.periods("00:00", "24:00", "1h"))
    rows = {"date": [20260302, 20260307, 20261340], "hour": [8, 9, 10]}
    counts = cbdp.count(rows, universe, columns={"day": "date", "time": "hour"}, clock=Clock(format="%Y%m%d"))
    assert as_dict(counts, universe) == {("weekday", "08:00"): 1, ("weekend", "09:00"): 1}


def test_a_date_and_a_written_time_in_two_columns() -> None:
    """Each format reads the column that it fits: the date in one, the time with AM and PM in the other."""
    universe = cbdp.Universe(day=["2026-03-02", "2026-03-03"], time=cbdp.periods("00:00", "24:00", "1h"))
    rows = {"date": ["3/2/2026", "3/3/2026", "2026-3-3"], "time": ["12:05 AM", "12:05 PM", "1:00 PM"]}
    clock = Clock(format=("%m/%d/%Y", "%I:%M %p"))
    counts = cbdp.count(rows, universe, columns={"day": "date"}, clock=clock)
    assert as_dict(counts, universe) == {("2026-03-02", "00:00"): 1, ("2026-03-03", "12:00"): 1}
