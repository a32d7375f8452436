"""A small city's files and configuration, and plans of it, for the tests of `cbdp.app`."""

from __future__ import annotations

import datetime as dt
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from cbdp import config
from cbdp.app import plan as planning
from cbdp.app.plan import Plan

CONFIG = """\
preset = "odmts"

[data]
trips = "trips.parquet"
id = "city"
stops = "stops.csv"
columns = { origin = "from_stop", destination = "to_stop", time = "left_at" }
expected_trips = 60000

[universe]
time = { start = "06:00", end = "10:00", every = "1h" }
zones = { column = "zone" }
modes = { distance_km = [2, 4] }

[privacy]
epsilon = 1.0
ledger = "ledger.sqlite"
cap = 2.0

[mechanism]
name = "constraint-based"

[output]
path = "release"
"""

STOPS = "id,name,lat,lon,zone\n" + "".join(
    f"S{n},Stop {n},{42 + n / 100},{-83 + n / 100},{'north' if n > 3 else 'south'}\n" for n in range(6)
)


def trip_table(rows: int = 50) -> Any:
    rng = np.random.default_rng(0)
    start = dt.datetime(2026, 3, 2, 6)  # noqa: DTZ001
    return pa.table(
        {
            "from_stop": [f"S{n}" for n in rng.integers(0, 6, rows)],
            "to_stop": [f"S{n}" for n in rng.integers(0, 6, rows)],
            "left_at": [start + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 240, rows)],
            "card": rng.integers(0, 9, rows),
        }
    )


def write_city(folder: Path) -> Path:
    """Trips, stops and a configuration."""
    parquet.write_table(trip_table(), folder / "trips.parquet")
    (folder / "stops.csv").write_text(STOPS)
    (folder / "cbdp.toml").write_text(CONFIG)
    return folder


def plan_of(folder: Path, *changes: tuple[str, str]) -> Plan:
    """The plan of the configuration with some of its text replaced."""
    text = CONFIG
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "cbdp.toml").write_text(text)
    return planning.plan(config.read(folder / "cbdp.toml"))


def state_of(folder: Path) -> dict[str, tuple[str, int]]:
    """Every file and folder, with its content and its time."""
    return {
        str(p): (hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else "", p.stat().st_mtime_ns)
        for p in sorted(folder.rglob("*"))
    }
