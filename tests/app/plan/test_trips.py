"""The trips of a plan: files, tables of databases, columns, persons, and their schema alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv as pacsv
from small_city import plan_of, trip_table

from cbdp.counting import count
from cbdp.errors import InputError
from cbdp.privacy.unit import Person


def test_the_person_may_be_named_by_role_or_by_column(city: Path) -> None:
    """`person = "person"` goes by data.columns, `person = "card"` is the column itself: the same unit."""
    unit = ("[mechanism]", 'unit = { person = "%s", max_trips = 3 }\n[mechanism]')
    role = ('left_at" }', 'left_at", person = "card" }')
    plans = [plan_of(city, role, (unit[0], unit[1] % "person")), plan_of(city, (unit[0], unit[1] % "card"))]
    assert [p.unit for p in plans] == [Person("card", 3)] * 2
    assert plans[0].request == plans[1].request


def test_trips_in_several_files_of_text_with_a_time_format(city: Path) -> None:
    """CSV files by list or pattern, with times like 8/29/2013 14:13, mean the same trips as one Parquet file."""
    table = trip_table()
    whole = plan_of(city)
    stamps = [f"{t.month}/{t.day}/{t.year} {t.hour}:{t.minute:02d}" for t in table["left_at"].to_pylist()]
    text = table.set_column(2, "left_at", pa.array(stamps))
    pacsv.write_csv(text.slice(0, 20), city / "part-1.csv")
    pacsv.write_csv(text.slice(20), city / "part-2.csv")
    wanted = count(whole.trips, whole.universe, columns=whole.columns, clock=whole.clock)
    for trips in ('["part-1.csv", "part-2.csv"]', '"part-*.csv"'):
        plan = plan_of(city, ('"trips.parquet"', f'{trips}\ntime_format = "%m/%d/%Y %H:%M"'))
        got = count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock)
        assert (got.index.tolist(), got.value.tolist()) == (wanted.index.tolist(), wanted.value.tolist())


def test_a_table_in_a_database_is_found_from_the_configuration(city: Path) -> None:
    """A DuckDB file is relative to the configuration."""
    import duckdb

    with duckdb.connect(str(city / "city.db")) as engine:
        engine.read_parquet(str(city / "trips.parquet")).create("rides")
    plan = plan_of(city, ('"trips.parquet"', '"duckdb:///city.db::rides"'))
    assert count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock).value.sum() == 50


def _unit(text: str) -> tuple[str, str]:
    return ("[mechanism]", f"unit = {{ {text} }}\n[mechanism]")


def test_a_person_is_protected_by_periods_and_trips_are_kept_apart(city: Path) -> None:
    """`per` and `apart` reach the unit, and the day is read from the column of times where no other is named."""
    plan = plan_of(city, _unit('person = "card", max_trips = 3, per = "day", apart = "time"'))
    assert plan.unit == Person("card", 3, "day", "time")
    assert plan.columns["day"] == "left_at"
    again = count(plan.trips, plan.universe, columns=plan.columns, unit=plan.unit, clock=plan.clock)
    assert again.value.sum() > 0
    others = [_unit('person = "card", max_trips = 3'), _unit('person = "card", max_trips = 3, per = "week"')]
    assert len({plan.request, *(plan_of(city, other).request for other in others)}) == 3, "three requests"


def test_the_service_day_may_start_later(city: Path) -> None:
    """`data.day_starts` reaches the clock, and makes another request; left out, the request is what it always was."""
    later = plan_of(city, ('"trips.parquet"', '"trips.parquet"\nday_starts = "04:00"'))
    assert later.clock.day_starts == "04:00"
    assert later.request != plan_of(city).request
    midnight = plan_of(city, ('"trips.parquet"', '"trips.parquet"\nday_starts = "00:00"'))
    assert midnight.request == plan_of(city).request


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([_unit('person = "card", max_trips = 3, per = "hour"')], "privacy.unit.per is 'hour'"),
        ([_unit('person = "card", max_trips = 3, apart = "tiem"')], "'tiem', which is no dimension"),
        ([_unit('trip = "replace", per = "day"')], "per"),
        ([('"trips.parquet"', '"trips.parquet"\nday_starts = "25:00"')], "25:00"),
        (
            [
                _unit('person = "card", max_trips = 3, per = "day"'),
                ('left_at" }', 'left_at", day = "card" }'),
            ],
            "'card' tells no dates",
        ),
    ],
)
def test_a_unit_that_makes_no_sense_is_one_line(
    city: Path, changes: list[tuple[str, str]], said: str
) -> None:
    """What is wrong, with its place in the file; nothing is read."""
    with pytest.raises(InputError, match=said):
        plan_of(city, *changes)
