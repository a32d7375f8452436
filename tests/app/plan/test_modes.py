"""The modes of a plan: by a public table, or by a column of the trips."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from small_city import plan_of, trip_table

from cbdp.counting import count


@pytest.mark.parametrize(
    ("of", "rows", "modes"),
    [
        ('["origin", "destination"]', "S0,S1,bus\nS1,S0,rail\n", {"bus": 4, "rail": 4, "walk": 136}),
        ('["origin.zone", "destination.zone"]', "north,south,bus\n", {"bus": 32, "walk": 112}),
        ('["origin.zone", "time"]', "north,07:00,bus\n", {"bus": 12, "walk": 132}),
    ],
)
def test_modes_by_a_table(city: Path, of: str, rows: str, modes: dict[str, int]) -> None:
    """A public table gives modes to pairs of stops, of zones, or of a zone and a time; the rest is `otherwise`."""
    (city / "pairs.csv").write_text(",".join(re.findall(r'"(.*?)"', of)) + ",mode\n" + rows)
    plan = plan_of(city, ("distance_km = [2, 4]", f'table = "pairs.csv", of = {of}, otherwise = "walk"'))
    labels = plan.universe.attribute("mode").labels
    assert dict(zip(labels, plan.universe.count_types(["mode"]).tolist(), strict=True)) == modes


def test_modes_by_a_column_are_a_dimension(city: Path) -> None:
    """Modes that only the trips know are counted like any other value."""
    parquet.write_table(
        trip_table().append_column("kind", pa.array(["bus", "tram"] * 25)), city / "trips.parquet"
    )
    plan = plan_of(city, ("distance_km = [2, 4]", 'column = "kind", values = ["bus", "tram"]'))
    assert plan.columns["mode"] == "kind"
    counts = count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock)
    assert counts.of(plan.features, "mode").reshape(2, 4).sum(axis=1).tolist() == [25, 25]
