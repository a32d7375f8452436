"""`privacy.public`: counts that are public already, written in the configuration or in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from small_city import plan_of

from cbdp import forecast
from cbdp.app.plan import Plan
from cbdp.errors import InputError

ZONES = "origin.zone,destination.zone,time,count\n" + "".join(
    f"{o},{d},{t},{n}\n"
    for n, (o, d, t) in enumerate(
        (o, d, f"{t:02d}:00") for t in (9, 8, 7, 6) for o in ("north", "south") for d in ("south", "north")
    )
)


def public(city: Path, written: str, *changes: tuple[str, str]) -> Plan:
    return plan_of(city, ("cap = 2.0", f"cap = 2.0\npublic = {written}"), *changes)


def of(plan: Plan) -> dict[str, tuple[int, ...]]:
    made: Any = plan.mechanism
    return dict(made.public)


def test_a_total_and_a_file_of_the_same_counts(city: Path) -> None:
    """Labels are found as they are written, in any order of rows; what follows from a table is public with it."""
    (city / "zones.csv").write_text(ZONES)
    (city / "times.csv").write_text("time,count\n06:00,54\n07:00,38\n08:00,22\n09:00,6\n")
    assert of(public(city, "{ total = 37714 }")) == {"total": (37714,)}
    named = of(public(city, '{ zone = "zones.csv", total = 120 }'))
    assert named == of(public(city, '"zones.csv"'))
    assert list(named) == ["total", "time", "zone"]
    assert named["time"] == (54, 38, 22, 6)
    assert of(public(city, '"times.csv"')) == {"total": (120,), "time": (54, 38, 22, 6)}
    table = pa.table({"time": ["09:00", "08:00", "07:00", "06:00"], "count": [6.0, 22.0, 38.0, 54.0]})
    parquet.write_table(table, city / "times.parquet")
    assert of(public(city, '{ time = "times.parquet" }')) == of(public(city, '"times.csv"'))


def test_what_is_public_decides_what_is_released(city: Path) -> None:
    """Other public counts are another request; the same ones, written otherwise, are the same."""
    (city / "total.csv").write_text("count\n50\n")
    plain, one, other = (
        plan_of(city).asked,
        public(city, "{ total = 50 }").asked,
        public(city, "{ total = 51 }").asked,
    )
    assert len({plain, one, other}) == 3
    assert public(city, '{ total = "total.csv" }').asked == one


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{ totl = 5 }", "privacy.public names 'totl', which is not a feature: did you mean 'total'?"),
        ("{ total = -5 }", "privacy.public.total is -5: give a whole number of at least 0"),
        ("{ total = 1.5 }", "privacy.public.total is 1.5"),
        ("5", "privacy.public is 5: give"),
        ('"none.csv"', "there is no file"),
        ('"stops.csv"', "which are those of no feature (total: count; time: time, count;"),
        ('{ time = "stops.csv" }', "has no column 'time': public counts of 'time' need time, count"),
        ('{ time = "few.csv" }', "has 3 of 4 rows: 'time' (09:00) is missing"),
        ('{ time = "odd.csv" }', "a row for time = 10:00, which is not in the universe"),
        ('{ time = "half.csv" }', "the public count of 'time' (06:00) is '1.5': give a whole number"),
        ('{ time = "times.csv", total = 11 }', "'time' adds up to 10 trips, 'total' to 11"),
        ("{ time = 5 }", "public counts of 'time': 1 for 4 elements"),
        ("{ singleton = 5 }", "nothing left to release"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_with_its_place(city: Path, written: str, said: str) -> None:
    """Of the configuration's line; what is wrong, and the cure."""
    rows = {"few": "06:00,1\n07:00,2\n08:00,3\n", "odd": "06:00,1\n10:00,2\n", "half": "06:00,1.5\n"}
    rows["times"] = "06:00,1\n07:00,2\n08:00,3\n09:00,4\n"
    for name, text in rows.items():
        (city / f"{name}.csv").write_text(f"time,count\n{text}")
    with pytest.raises(InputError) as caught:
        public(city, written)
    assert said in str(caught.value)
    assert "cbdp.toml:19: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_mechanisms_that_solve_can_meet_them(city: Path) -> None:
    """Others say so."""
    with pytest.raises(
        InputError, match="laplace cannot meet public counts: leave public out, or use constraint-based"
    ):
        public(city, "{ total = 5 }", ('"constraint-based"', '"laplace"'))


def test_check_says_what_public_counts_mean(city: Path) -> None:
    """They are named with what they mean; they are not among what is spent, nor among what adds up from others."""
    told = forecast.explain(public(city, "{ total = 50 }", ("expected_trips = 60000", "")))
    text = " ".join(told.text.split())
    assert (
        "Public already: total. These counts were public before. The release meets them exactly, spends nothing"
        in text
    )
    assert "whoever gave them out vouches for them" in text
    assert "total" not in [n.feature for n in told.noise]
    assert told.unmeasured == ()
    assert {made["total"] for made in told.choices.values()} == {0}
    assert "Trips each: about 50 trips" in text  # the public total tells how many there are


def test_persons_and_public_counts_are_warned_of(city: Path) -> None:
    """Bounding leaves trips out, which public counts may hold."""
    person = ("epsilon = 1.0", 'epsilon = 1.0\nunit = { person = "card", max_trips = 2 }')
    told = forecast.explain(public(city, "{ total = 50 }", person))
    assert any("at most 2 trips of each person are counted" in warning for warning in told.warnings)
