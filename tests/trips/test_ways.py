"""From values to codes: text by its bytes, numbers by value, and never two labels for one key."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from trips.making import as_dict, written

import cbdp
from cbdp.trips import Clock

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
