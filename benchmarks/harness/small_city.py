"""A small city's stops and configuration, for the benchmarks and tests that publish from one."""

from __future__ import annotations

from pathlib import Path

CONFIG = """
[data]
trips = "trips.parquet"
stops = "stops.csv"
id = "{name}"
{columns}
[universe]
time = {{ start = "06:00", end = "{until}", every = "2h" }}
zones = {{ column = "zone" }}
origin_is_destination = false

[[feature]]
name = "zone"
by = ["origin.zone", "destination.zone", "time"]
"""


def configured(name: str, rest: str, *, columns: str = "", until: str = "12:00") -> str:
    """The configuration of a city with a table of zones by time; `rest` begins after that table, `columns` is what `data.columns` holds."""
    said = f"columns = {{ {columns} }}\n" if columns else ""
    return CONFIG.format(name=name, columns=said, until=until) + rest


def write_stops(folder: Path, stops: int = 6) -> None:
    """Stops S0, S1, …, the first half of them in the zone north."""
    zones = ["north" if i < stops // 2 else "south" for i in range(stops)]
    rows = [f"S{i},stop {i},{42.2 + i / 100},{-83.7 + i / 80},{zone}" for i, zone in enumerate(zones)]
    (folder / "stops.csv").write_text("\n".join(["id,name,lat,lon,zone", *rows]) + "\n", encoding="utf-8")
