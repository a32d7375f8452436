"""Tables of trips as agencies have them, misread unless somebody looks: for the tests of `cbdp inspect` and of what stops a release."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

STOPS = [100 + 7 * n for n in range(20)]

CONFIG = """\
preset = "odmts"

[data]
trips = "trips.csv"
id = "misread"
stops = "stops.csv"
columns = {{ {columns} }}
{more}

[universe]
time = {{ start = "00:00", end = "24:00", every = "1h" }}
zones = {{ column = "zone" }}

[privacy]
epsilon = 1.0
cap = 2.0
"""

Stamp = Callable[[dt.datetime], str]


def moments(rows: int, seed: int = 3) -> list[dt.datetime]:
    """Times in March 2020, by day and not by night, as people travel."""
    rng = np.random.default_rng(seed)
    hours = np.clip(rng.normal(np.where(rng.random(rows) < 0.5, 8, 17), 2.5), 0, 23.99)
    start = dt.datetime(2020, 3, 1)  # noqa: DTZ001
    return [
        start + dt.timedelta(days=int(d), minutes=int(60 * h))
        for d, h in zip(rng.integers(0, 31, rows), hours, strict=True)
    ]


def pairs(rows: int, seed: int = 4) -> list[tuple[int, int]]:
    rng = np.random.default_rng(seed)
    return [(int(o), int(d)) for o, d in rng.choice(STOPS, (rows, 2))]


def write_stops(folder: Path, stops: Sequence[object] = STOPS) -> None:
    lines = [f"{s},Stop {s} Street,{'north' if n % 2 else 'south'}" for n, s in enumerate(stops)]
    (folder / "stops.csv").write_text("\n".join(["id,name,zone", *lines]) + "\n")


def write_trips(
    folder: Path,
    stamp: Stamp | Sequence[Stamp],
    *,
    rows: int = 2000,
    stop: Callable[[int], str] = str,
) -> Path:
    """A folder with trips whose times are written by `stamp`, or by several in turn, and a configuration as one would begin."""
    write_stops(folder)
    stamps = [stamp] if callable(stamp) else list(stamp)
    lines = [
        f"{stop(o)},{stop(d)},{stamps[n % len(stamps)](t)},card{n % 700}"
        for n, ((o, d), t) in enumerate(zip(pairs(rows), moments(rows), strict=True))
    ]
    (folder / "trips.csv").write_text("\n".join(["from_stop,to_stop,left_at,card", *lines]) + "\n")
    return write_config(folder, 'origin = "from_stop", destination = "to_stop", time = "left_at"')


def write_counts(folder: Path, columns: str, *, date: Stamp = lambda t: t.date().isoformat()) -> int:
    """A table of metro counts by date, hour, origin and destination, and its total."""
    write_stops(folder)
    rng = np.random.default_rng(6)
    total, lines = 0, []
    for (o, d), t in zip(pairs(1500), moments(1500), strict=True):
        n = int(rng.integers(0, 30))
        total += n
        lines.append(f"{date(t)},{t.hour},{o},{d},{n}")
    (folder / "trips.csv").write_text("\n".join(["date,hour,from,to,count", *lines]) + "\n")
    write_config(folder, columns)
    return total


def write_config(folder: Path, columns: str, more: str = "") -> Path:
    file = folder / "cbdp.toml"
    file.write_text(CONFIG.format(columns=columns, more=more))
    return file
