"""The small city whose series is killed, with or without running totals."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness.small_city import configured, write_stops

FIRST = dt.date(2026, 3, 1)
TABLES = ("total", "zone")  # whose running totals are kept

PLAIN = """
[privacy]
epsilon = 1
unit = "trip"
budget = "uniform"
cap = { per_day = 1000 }

[series]
calendar = "daily"
start = 2026-03-01

[output]
path = "releases/{period}"
"""
SUMS = PLAIN.replace("epsilon = 1", 'rho = 1\nlaw = "gaussian"').replace("per_day = 1000", "per_day = 100000")


def write_city(folder: Path, days: int, each: int = 100, *, running: int = 0) -> None:
    """Trips of so many days; `running` is how many days a span of running totals has, if there are any."""
    rng = np.random.default_rng(11)
    n = days * each
    seconds = np.repeat(np.arange(days), each) * 86_400 + rng.integers(6 * 3600, 12 * 3600, n)
    table = {
        "origin": [f"S{i}" for i in rng.integers(0, 6, n)],
        "destination": [f"S{i}" for i in rng.integers(0, 6, n)],
        "time": pa.array(np.datetime64(f"{FIRST}T00:00:00") + seconds.astype("timedelta64[s]")),
    }
    pq.write_table(pa.table(table), folder / "trips.parquet")
    write_stops(folder)
    (folder / "cbdp.toml").write_text(configured("a city that is killed", _said(running)))
    (folder / "releases").mkdir()


def _said(running: int) -> str:
    if not running:
        return PLAIN
    tables = ", ".join(f'"{name}"' for name in TABLES)
    start = f"start = {FIRST}"
    return SUMS.replace(start, f"{start}\nrunning = {{ tables = [{tables}], periods = {running} }}")
