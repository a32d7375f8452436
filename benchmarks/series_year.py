"""A year of daily releases of the built-in city (473,200 trip types): minutes and memory.

Claim: a year of daily releases takes minutes, and memory that does not grow (docs/explanation/series.md).

    python -m benchmarks series_year --days 365

States wall and processor time of each release and the peak of memory after each, so that a part of the year tells what the whole takes.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cbdp.app.series import run_series, status_of
from cbdp.config import read
from cbdp.datasets import Dataset, ann_arbor

FIRST = dt.date(2026, 1, 1)
CONFIG = """
preset = "odmts"

[data]
trips = "trips-{period}.parquet"
stops = "stops.csv"
id = "synthetic Ann Arbor, every day"
expected_trips = 40000

[universe]
time = { start = "06:00", end = "20:00", every = "30min" }
zones = { column = "zone" }
modes = { table = "modes.csv" }

[privacy]
epsilon = 1
unit = "trip"
budget = "balanced"
cap = { per_day = 1, per_year = 365 }

[series]
calendar = "daily"
start = 2026-01-01

[output]
path = "releases/{period}"
"""


def write_city(folder: Path, days: int) -> None:
    """The city's trips on many days, each drawn anew and in a file of its own, as a nightly feed delivers them."""
    city = ann_arbor(seed=0)
    for day in range(days):
        pq.write_table(
            _table(ann_arbor(seed=day), day), folder / f"trips-{FIRST + dt.timedelta(days=day)}.parquet"
        )
    _csv(
        folder / "stops.csv",
        ["id", "lat", "lon", "zone"],
        zip(*(city.stops[c] for c in ("stop", "lat", "lon", "zone")), strict=True),
    )
    mode, stops = city.universe.attribute("mode"), city.stops["stop"]
    pairs = ((o, d, mode.labels[mode.codes[i, j]]) for i, o in enumerate(stops) for j, d in enumerate(stops))
    _csv(folder / "modes.csv", ["origin", "destination", "mode"], pairs)
    (folder / "cbdp.toml").write_text(CONFIG)
    (folder / "releases").mkdir()


def _table(city: Dataset, day: int) -> pa.Table:
    date = FIRST + dt.timedelta(days=day)
    stamps = np.array([f"{date}T{label}:00" for label in city.trips["time"]], dtype="datetime64[s]")
    columns = {name: city.trips[name] for name in ("origin", "destination")}
    return pa.table(columns | {"time": pa.array(stamps)})


def _csv(path: Path, header: list[str], rows: object) -> None:
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(header)
        writer.writerows(rows)  # type: ignore[arg-type]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks series_year", description=__doc__)
    parser.add_argument("--days", type=int, default=365)
    days = parser.parse_args(argv).days
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_city(folder, days)
        config = read(folder / "cbdp.toml")
        wall, used = [], []
        marks = [(time.perf_counter(), time.process_time())]

        def note(said: str = "") -> None:
            if said and ": release " not in said:  # of its trips, for the curator
                return
            marks.append((time.perf_counter(), time.process_time()))
            if len(marks) == 2:  # the first release is about to begin
                return
            wall.append(marks[-1][0] - marks[-2][0])
            used.append(marks[-1][1] - marks[-2][1])
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
            print(
                f"{len(wall):>4}  {wall[-1]:6.1f} s  {used[-1]:6.1f} s of processor  peak {peak:6.0f} MB",
                flush=True,
            )

        run_series(config, FIRST + dt.timedelta(days=days - 1), note, create_ledger=True)
        note()
        later = slice(1, None) if days > 1 else slice(None)
        mean, processor = float(np.mean(wall[later])), float(np.mean(used[later]))
        print(
            f"{days} days: {sum(wall) / 60:.1f} minutes; a later day {mean:.1f} s ({processor:.1f} s of processor); "
            f"365 such days: {365 * mean / 60:.0f} minutes ({365 * processor / 60:.0f} of processor)"
        )
        print("\n".join(status_of(config, FIRST + dt.timedelta(days=days - 1)).lines()))
    return 0
