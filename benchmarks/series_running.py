"""Running totals through `cbdp series`: a year of daily releases of a small city, with and without them.

Claim: running totals through the command have the errors that the arithmetic of `running` says (docs/explanation/running.md).

python -m benchmarks series_running [--days 365] [--seed 1]

Errors are root mean squares over the counts of a table, in units of the noise of the day's own measurement of it; of days the mean over all days, of weeks and
months over all that are complete, of the total the one at the end. The price is the same for the releases; running totals cost as much again for one day.
"""

from __future__ import annotations

import argparse
import datetime as dt
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness.markdown import figure, markdown
from cbdp import load
from cbdp.app.series import run_series, status_of
from cbdp.config import read

FIRST = dt.date(2026, 1, 1)
TABLES = ("total", "zone")
STOPS, ZONES, TIMES = 8, 3, 3
CONFIG = """
[data]
trips = "trips.parquet"
stops = "stops.csv"
id = "a small city"
columns = {{ origin = "from", destination = "to", time = "at" }}

[universe]
time = {{ start = "06:00", end = "12:00", every = "2h" }}
zones = {{ column = "zone" }}

[[feature]]
name = "zone"
by = ["origin.zone", "destination.zone", "time"]

[privacy]
rho = 0.02
law = "gaussian"
unit = "trip"
budget = "uniform"
cap = {{ per_day = 1, per_year = 100000 }}

[series]
calendar = "daily"
start = 2026-01-01
{running}

[output]
path = "releases/{{period}}"
"""


def write_city(folder: Path, days: int, seed: int, running: str) -> None:
    """Trips of a city whose demand repeats from day to day, weekends less."""
    rng = np.random.default_rng(seed)
    weight = rng.dirichlet(np.full(STOPS * STOPS * TIMES, 0.7))
    parts = []
    for day in range(days):
        date = FIRST + dt.timedelta(days=day)
        trips = rng.poisson((900 if date.weekday() < 5 else 450) * weight)
        kind = np.repeat(np.arange(len(weight)), trips)
        hour = 6 + 2 * (kind % TIMES)
        at = np.datetime64(date) + (hour * 3600 + rng.integers(0, 7200, len(kind))).astype("timedelta64[s]")
        origin, destination = np.divmod(kind // TIMES, STOPS)
        parts.append(
            pa.table(
                {
                    "from": [f"S{o}" for o in origin],
                    "to": [f"S{d}" for d in destination],
                    "at": pa.array(at.astype("datetime64[s]")),
                }
            )
        )
    pq.write_table(pa.concat_tables(parts), folder / "trips.parquet")
    rows = [f"S{i},{42 + i / 100},{-83 - i / 80},zone {i % ZONES}" for i in range(STOPS)]
    (folder / "stops.csv").write_text("\n".join(["id,lat,lon,zone", *rows]) + "\n")
    (folder / "cbdp.toml").write_text(CONFIG.format(running=running))
    (folder / "releases").mkdir()


def truth(folder: Path, days: int) -> dict[str, np.ndarray]:
    """The true tables of every day, in the order of the releases'."""
    import cbdp

    first = load(folder / "releases" / str(FIRST))
    found: dict[str, list[np.ndarray]] = {name: [] for name in TABLES}
    columns = {"origin": "from", "destination": "to", "time": "at"}
    table = pq.read_table(folder / "trips.parquet")
    date = table["at"].to_numpy().astype("datetime64[D]")
    for day in range(days):
        rows = table.filter(pa.array(date == np.datetime64(FIRST) + day))
        counts = cbdp.count(rows, first.features.universe, columns=columns)
        for name in TABLES:
            found[name].append(counts.of(first.features, name))
    return {name: np.array(of) for name, of in found.items()}


def errors(folder: Path, days: int) -> list[list[str]]:
    releases = [load(folder / "releases" / str(FIRST + dt.timedelta(days=n))) for n in range(days)]
    made, true = [], truth(folder, days)
    for name in TABLES:
        own = next(m for m in releases[0].measurements if m.feature == name)
        assert own.variance is not None
        sigma = float(own.variance[0]) ** 0.5
        off = np.array([r.counts(name) for r in releases]) - true[name]
        least = min(int(r.value.min()) for r in releases)
        assert least >= 0
        spans = [
            _rms([off[n : n + span].sum(axis=0) for n in range(0, days - span + 1, span)])
            for span in (1, 7, 30)
        ]
        spans.append(_rms([off.sum(axis=0)]))
        made.append([name, *(figure(s / sigma) for s in spans)])
        part = releases[-1].running
        made[-1].append("" if part is None else figure(part.tables[name].deviation / sigma))
    return made


def _rms(errors: Sequence[np.ndarray]) -> float:
    return float(np.sqrt(np.mean(np.square(errors)))) if len(errors) else float("nan")


def main(argv: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks series_running")
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(list(argv))
    rows, said = [], []
    for way, running in {
        "days added up": "",
        "running totals": f'running = {{ tables = ["total", "zone"], periods = {given.days} }}',
    }.items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_city(folder, given.days, given.seed, running)
            config, until = read(folder / "cbdp.toml"), FIRST + dt.timedelta(days=given.days - 1)
            run_series(config, until, create_ledger=True)
            rows += [[way, *row] for row in errors(folder, given.days)]
            said.append("\n".join([way, *status_of(config, until).lines()]))
    head = ["way", "table", "day", "7 days", "30 days", f"all {given.days}", "stated for all"]
    print(markdown(head, rows))
    print("\n\n".join(said))
    return 0
