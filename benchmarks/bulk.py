"""A table of trips larger than memory allows to hold carelessly, from Parquet to a release: seconds by stage, and memory.

Claim: 100 million trips become a release in minutes and in less than 2 GB (docs/results/engine-benchmarks.md).

python -m benchmarks bulk [--trips 100000000] [--unit trip|person] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

STOPS, ZONES, PIECE = 500, 10, 2_000_000
MOST_GB = 4.0
CONFIG = """\
preset = "odmts"

[data]
trips = "trips.parquet"
stops = "stops.csv"
id = "generated"

[universe]
time = { start = "06:00", end = "22:00", every = "1h" }
zones = { column = "zone" }

[privacy]
epsilon = 1
unit = UNIT
ledger = "ledger.sqlite"
cap = 1

[output]
path = "release"
"""


def generate(folder: Path, trips: int, unit: str) -> None:
    """Trips with very unequal stops and two peaks, a row group at a time; every card has about twenty of them."""
    rng = np.random.default_rng(0)
    midnight = np.datetime64("2026-03-02T00:00:00", "s")
    writer = None
    for start in range(0, trips, PIECE):
        n = min(PIECE, trips - start)
        ends = [(STOPS * rng.random(n) ** 2).astype(np.int32) for _ in range(2)]
        clock = np.where(rng.random(n) < 0.5, rng.normal(8.5, 1.5, n), rng.normal(17.0, 2.5, n)) % 24
        at = midnight + (rng.integers(0, 5, n) * 86400 + clock * 3600).astype("timedelta64[s]")
        card = rng.integers(0, max(1, trips // 20), n)
        table = pa.table({"origin": ends[0], "destination": ends[1], "time": pa.array(at), "card": card})
        writer = writer or parquet.ParquetWriter(folder / "trips.parquet", table.schema)
        writer.write_table(table)
        print(f"\r{start + n:,} trips generated", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if writer is not None:
        writer.close()
    rows = [f"{i},{42 + i % 25 / 100},{-83 - i // 25 / 100},Z{i * ZONES // STOPS}" for i in range(STOPS)]
    (folder / "stops.csv").write_text("\n".join(["id,lat,lon,zone", *rows]) + "\n")
    given = '"trip"' if unit == "trip" else '{ person = "card", max_trips = 10 }'
    (folder / "cbdp.toml").write_text(CONFIG.replace("UNIT", given))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks bulk", description=__doc__)
    parser.add_argument("--trips", type=int, default=100_000_000)
    parser.add_argument("--unit", default="trip", choices=["trip", "person"])
    parser.add_argument("--folder", type=Path, help="where to put a few GB of generated trips")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        generate(folder, options.trips, options.unit)
        size = (folder / "trips.parquet").stat().st_size / 2**30
        print(
            f"{options.trips:,} trips, {size:.2f} GB of Parquet, protected unit: one {options.unit}\n",
            flush=True,
        )
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "cbdp", "release", str(folder / "cbdp.toml"), "--create-ledger"],
            check=False,
        )
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"\nin all {seconds:.0f} s, peak {peak:.2f} GB")
    kept = done.returncode == 0 and peak < MOST_GB
    print(f"- released in under {MOST_GB:.0f} GB: {'yes' if kept else 'NO'}")
    return 0 if kept else 1
