"""The universe of a plan: stops and zones, periods, days and further dimensions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from small_city import STOPS, plan_of, trip_table

from cbdp.counting import count
from cbdp.errors import InputError


def test_stop_ids_follow_the_type_of_the_trips(city: Path) -> None:
    """Where trips hold numbers, the ids of the stops are numbers."""
    table = trip_table()
    codes = {
        f: pa.array([int(s.as_py()[1:]) for s in table[f]], pa.int16()) for f in ("from_stop", "to_stop")
    }
    parquet.write_table(pa.table({**codes, "left_at": table["left_at"]}), city / "trips.parquet")
    (city / "stops.csv").write_text(STOPS.replace("\nS", "\n"))
    plan = plan_of(city)
    assert plan.universe.dimension("origin").values == (0, 1, 2, 3, 4, 5)
    assert count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock).value.sum() == 50


def test_periods_days_and_further_dimensions(city: Path) -> None:
    """Named periods, day types with holidays, and dimensions from a list and from a public file."""
    (city / "cards.csv").write_text("card,kind\n" + "".join(f"{n},{'a' if n else 'b'}\n" for n in range(9)))
    time = '[{ name = "late", start = "08:00", end = "10:00" }, { name = "early", start = "06:00", end = "08:00" }]'
    plan = plan_of(
        city,
        ('{ start = "06:00", end = "10:00", every = "1h" }', time),
        ("expected_trips = 60000", 'holidays = { "2026-03-02" = "sunday" }'),
        (
            "[privacy]",
            """days = ["weekday", "sunday"]
            dimensions.card = { file = "cards.csv", column = "card", attributes = { kind = "kind" } }
            [[feature]]
            name = "kinds"
            by = ["card.kind", "day"]
            [privacy]""",
        ),
    )
    assert plan.universe.dimension("time").values == ("early", "late")
    assert plan.columns["day"] == "left_at"
    assert plan.features.size("kinds") == 4
    counts = count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock)
    by_day = counts.of(plan.features, "kinds").reshape(2, 2).sum(axis=0)
    assert by_day.tolist() == [0, 50]  # all trips were made on the holiday


def test_periods_that_overlap_or_leave_a_gap(city: Path) -> None:
    """Both are told at the line of the later period."""
    time = 'time = [\n  { name = "a", start = "06:00", end = "%s" },\n  { name = "b", start = "%s", end = "10:00" },\n]'
    old = 'time = { start = "06:00", end = "10:00", every = "1h" }'
    for ends, starts, said in (
        ("08:30", "08:00", r":13: the periods 'a' \(to 08:30\) and 'b' \(from 08:00\) overlap"),
        (
            "07:00",
            "08:00",
            r":13: there is a gap between the periods 'a' \(to 07:00\) and 'b' \(from 08:00\)",
        ),
        ("06:00", "06:00", r":12: the period 'a' ends at 06:00, not after its start 06:00"),
    ):
        with pytest.raises(InputError, match=said):
            plan_of(city, (old, time % (ends, starts)))


def test_taps_need_no_origin(city: Path) -> None:
    """The stops may be another dimension than origin and destination, with the preset `opal`."""
    table = {"tap": ["on", "off"], "time": ["06:10", "07:20"], "location": ["S1", "S5"]}
    parquet.write_table(pa.table(table), city / "trips.parquet")
    plan = plan_of(
        city,
        ('"odmts"', '"opal"'),
        ('columns = { origin = "from_stop", destination = "to_stop", time = "left_at" }\n', ""),
        ("modes = { distance_km = [2, 4] }", 'dimensions = { tap = ["on", "off"], location = "stops" }'),
    )
    assert plan.features.sizes == {"total": 1, "tap": 2, "time": 8, "location": 12, "singleton": 48}
    assert count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock).value.sum() == 2


def test_zones_by_polygon_and_by_clustering(city: Path) -> None:
    """Zones come from polygons around the stops, or from their coordinates."""
    square = "[[[-84,41],[-82,41],[-82,42.015],[-84,42.015],[-84,41]]]"
    rest = "[[[-84,42.015],[-82,42.015],[-82,43],[-84,43],[-84,42.015]]]"
    polygons = ",".join(
        f'{{"type":"Feature","properties":{{"zone":"{z}"}},"geometry":{{"type":"Polygon","coordinates":{c}}}}}'
        for z, c in (("low", square), ("high", rest))
    )
    (city / "zones.geojson").write_text(f'{{"type":"FeatureCollection","features":[{polygons}]}}')
    by_polygon = plan_of(city, ('{ column = "zone" }', '{ polygons = "zones.geojson" }')).stops
    assert by_polygon is not None
    assert by_polygon.zone == ("low", "low", "high", "high", "high", "high")
    clustered = plan_of(city, ('{ column = "zone" }', "{ clusters = 3 }")).stops
    assert clustered is not None
    assert clustered.zone == ("Z03", "Z03", "Z02", "Z02", "Z01", "Z01")
    balanced = plan_of(city, ('{ column = "zone" }', "{ balanced = 2 }")).stops
    assert balanced is not None
    assert balanced.zone == ("Z02", "Z02", "Z02", "Z01", "Z01", "Z01")
