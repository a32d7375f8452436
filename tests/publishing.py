"""A small city that releases are published from, and what the ledger says of them: for the tests of publishing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cbdp
from benchmarks.harness.small_city import configured, write_stops
from cbdp.app.plan import Plan, plan
from cbdp.app.publish import PublishedRelease, publish
from cbdp.config import read
from cbdp.ledger import Ledger

CONFIG = configured(
    "a small city",
    """
[[feature]]
name = "time"
by = ["time"]

[privacy]
epsilon = 1
unit = "trip"
budget = "uniform"
ledger = "ledger.sqlite"
cap = 1000

[mechanism]
name = "constraint-based"

[output]
path = "release"
""",
    columns='origin = "from", destination = "to", time = "at"',
)


def trip_table(n: int = 300) -> pa.Table:
    rng = np.random.default_rng(5)
    seconds = rng.integers(5.75 * 3600, 12.25 * 3600, n)  # some of them outside the periods
    start = np.datetime64("2026-03-02T00:00:00")
    return pa.table(
        {
            "from": [f"S{i}" for i in rng.integers(0, 7, n)],  # S6 is no stop
            "to": [f"S{i}" for i in rng.integers(0, 6, n)],
            "at": pa.array(start + seconds.astype("timedelta64[s]")),
        }
    )


def write_inputs(folder: Path) -> None:
    pq.write_table(trip_table(), folder / "trips.parquet")
    write_stops(folder)
    (folder / "cbdp.toml").write_text(CONFIG)


def change(folder: Path, *changes: tuple[str, str]) -> None:
    """Replace some of the configuration's text, for good."""
    text = (folder / "cbdp.toml").read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "cbdp.toml").write_text(text)


def planned(folder: Path, *changes: tuple[str, str]) -> Plan:
    change(folder, *changes)
    return plan(read(folder / "cbdp.toml"))


def first(folder: Path, *changes: tuple[str, str]) -> PublishedRelease:
    """The first release of a data set, which creates the ledger."""
    return publish(planned(folder, *changes), create_ledger=True)


def entries(folder: Path) -> list[tuple[str, dict]]:
    """The ledger's events, verified; none before it exists."""
    if not Ledger.started(folder / "ledger.sqlite"):
        return []
    with Ledger.view(folder / "ledger.sqlite") as ledger:
        try:
            ledger.verify()
        except cbdp.CbdpError:
            if ledger.entries():
                raise
        return [(e.event, dict(e.fields)) for e in ledger.entries()]


def warm(folder: Path) -> None:
    """Load and compile everything once in this process, so that its children need not."""
    write_inputs(folder)
    first(folder)


def events(folder: Path) -> list[str]:
    return [event for event, _ in entries(folder)]
