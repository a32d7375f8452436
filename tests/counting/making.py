"""Trips for tests: rows with gaps and strangers, files of every kind made of them, and counts as dictionaries."""

from __future__ import annotations

import collections
import datetime as dt
import gzip
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet

import cbdp
from cbdp.counting import Counts

ORIGINS = ["A", "B b", "C'c", 'D"d', "É"]
DESTINATIONS = [3, 5, 8, 13]
UNIVERSE = cbdp.Universe(
    origin=ORIGINS, destination=DESTINATIONS, time=cbdp.periods("06:00", "20:00", "30min")
).without(("origin", "destination"), lambda o, d: o == "A" and d == 5)
AT = {"time": "start"}
SECRET = "SECRET-417"  # noqa: S105 - a cell that no message may quote

Types = dict[tuple[Any, ...], int]


def random_rows(n: int = 2000, seed: int = 0) -> dict[str, list[Any]]:
    """Trips with unknown stops, missing values and times outside."""
    rng = np.random.default_rng(seed)
    start = dt.datetime(2026, 3, 2)  # noqa: DTZ001 - a wall clock
    return {
        "origin": rng.choice([*ORIGINS, "gone", None], n).tolist(),
        "destination": [None if d == 99 else int(d) for d in rng.choice([*DESTINATIONS, 4, 99], n)],
        "start": [
            None if s % 50 == 0 else start + dt.timedelta(seconds=int(s)) for s in rng.integers(0, 86400, n)
        ],
        "card": [None if c == 0 else f"card {c}" for c in rng.integers(0, 60, n).tolist()],
    }


def brute_force(rows: dict[str, list[Any]]) -> Types:
    """The counts of `random_rows` by a plain loop."""
    found: collections.Counter[tuple[Any, ...]] = collections.Counter()
    for o, d, t in zip(rows["origin"], rows["destination"], rows["start"], strict=True):
        if o in ORIGINS and d in DESTINATIONS and (o, d) != ("A", 5) and t is not None and 6 <= t.hour < 20:
            found[o, d, f"{t.hour:02d}:{t.minute // 30 * 30:02d}"] += 1
    return dict(found)


def as_dict(counts: Counts, universe: cbdp.Universe = UNIVERSE) -> Types:
    assert counts.index.dtype == counts.value.dtype == np.int64
    assert (np.diff(counts.index) > 0).all()
    return {universe.unrank(int(i)): int(v) for i, v in zip(counts.index, counts.value, strict=True)}


def same(a: Counts, b: Counts) -> bool:
    return np.array_equal(a.index, b.index) and np.array_equal(a.value, b.value)


def parquet(table: pa.Table, path: Path) -> Path:
    pa.parquet.write_table(table, path)
    return path


def csv(table: pa.Table, path: Path, sep: str = ",") -> Path:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        table.to_pandas().astype({"destination": "Int64"}).to_csv(file, index=False, sep=sep)
    return path


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def parts(table: pa.Table, folder: Path) -> list[Path]:
    """Three files, one in a folder of its own, one with its columns in another order."""
    (folder / "more").mkdir()
    cuts = [table.slice(0, 700), table.slice(700, 1), table.slice(701)]
    cuts[2] = cuts[2].select(table.column_names[::-1])
    names = [folder / "a.parquet", folder / "more" / "b.parquet", folder / "c[1].parquet"]
    return [parquet(cut, path) for cut, path in zip(cuts, names, strict=True)]


def duckdb_url(table: pa.Table, folder: Path) -> str:
    with duckdb.connect(str(folder / "city.db")) as db:
        db.register("given", table)
        db.execute("CREATE SCHEMA taps; CREATE TABLE taps.trips AS SELECT * FROM given")
    return f"duckdb://{folder / 'city.db'}::taps.trips"
