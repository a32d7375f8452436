"""A small city with trips on many days, and a configuration that releases them as a series."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness.small_city import configured, write_stops

CONFIG = configured(
    "a daily city",
    """
[privacy]
epsilon = 1
unit = { person = "card", max_trips = 2, per = "day" }
budget = "uniform"
ledger = "ledger.sqlite"
cap = { per_day = 3, per_30_days = 60 }

[mechanism]
name = "constraint-based"

[series]
calendar = "daily"
start = 2026-03-01

[output]
path = "releases/{period}"
""",
    columns='origin = "from", destination = "to", time = "at", person = "card"',
)


def trip_table(days: int = 35, each: int = 120, seed: int = 7, first: str = "2026-03-01") -> pa.Table:
    """So many trips on each of these days, by thirty cards."""
    rng = np.random.default_rng(seed)
    n = days * each
    day = np.repeat(np.arange(days), each)
    seconds = day * 86_400 + rng.integers(6 * 3600, 12 * 3600, n)
    return pa.table(
        {
            "from": [f"S{i}" for i in rng.integers(0, 6, n)],
            "to": [f"S{i}" for i in rng.integers(0, 6, n)],
            "at": pa.array(np.datetime64(f"{first}T00:00:00") + seconds.astype("timedelta64[s]")),
            "card": rng.integers(0, 30, n),
        }
    )


def write_daily_city(folder: Path, *, days: int = 35, config: str = CONFIG) -> Path:
    pq.write_table(trip_table(days), folder / "trips.parquet")
    write_stops(folder)
    (folder / "cbdp.toml").write_text(config)
    (folder / "releases").mkdir()
    return folder
