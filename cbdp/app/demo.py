"""The whole job on a built-in synthetic city: from a table of trips to a release with its report, and how good it is."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.app.plan import Plan, plan
from cbdp.app.publish import publish
from cbdp.commands.stopping import Interrupts
from cbdp.config import read
from cbdp.counting import Counts, count
from cbdp.datasets import Dataset, ann_arbor
from cbdp.forecast import explain
from cbdp.mechanisms import ConstraintBased, Hierarchical, Laplace, Mechanism
from cbdp.privacy.numbers import positive
from cbdp.progress import Say
from cbdp.release import Release
from cbdp.text import aligned

CONFIG = """\
# A release of the built-in synthetic city: no real person is in it.
preset = "odmts"

[about]
title = "Trips in a synthetic city"
place = "Ann Arbor, Michigan (synthetic)"
period = "one weekday"
publisher = "cbdp demo"
licence = "CC0 1.0"
timezone = "America/Detroit"

[data]
trips = "trips.parquet"
stops = "stops.csv"
id = "{name}"
expected_trips = {trips}

[universe]
time = {{ start = "{start}", end = "{end}", every = "30min" }}
zones = {{ column = "zone" }}
modes = {{ table = "modes.csv" }}

[privacy]
epsilon = {epsilon}
unit = "trip"
ledger = "ledger.sqlite"
cap = 100
budget = "balanced"  # `cbdp parts budgets` lists the others; or state a target

[mechanism]
name = "constraint-based"
preset = "best"  # or "paper"

[output]
path = "release-{epsilon}"
"""


@dataclass(frozen=True)
class Show:
    """Which part of the city's day is shown, and the default folder for it."""

    name: str
    hours: tuple[str, str]
    trips: int  # a round number that would be public
    folder: str


WHOLE = Show("synthetic Ann Arbor", ("06:00", "20:00"), 40_000, "cbdp-demo")
QUICK = Show("synthetic Ann Arbor, two hours", ("08:00", "10:00"), 5_000, "cbdp-demo-quick")


def demo(
    epsilon: str,
    folder: str | Path | None,
    say: Say,
    *,
    quick: bool = False,
    interrupts: Interrupts | None = None,
) -> int:
    """Write the city's files, check, release, and compare with the truth, which is public here."""
    budget = float(positive(epsilon))
    show = QUICK if quick else WHOLE
    city = ann_arbor(seed=0, hours=show.hours)
    config = _write(city, Path(folder or show.folder), show, f"{budget:g}")
    planned = plan(read(config))
    print(explain(planned))
    with nullcontext() if interrupts is None else interrupts:
        done = publish(planned, say, create_ledger=not planned.account.exists, interrupts=interrupts)
    _compare(planned, count(city.trips, planned.universe))
    print(f"\nThe release is in {done.path}\nOpen its report: {done.path / 'report.html'}")
    return 0


def _write(city: Dataset, folder: Path, show: Show, epsilon: str) -> Path:
    """The city as an agency would have it: a table of trips, one of stops, one of modes, and a configuration."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    table = io.BytesIO()
    parquet.write_table(pa.table(dict(city.trips)), table)
    _put(folder / "trips.parquet", table.getvalue())
    columns = {"id": "stop", "name": "stop", "lat": "lat", "lon": "lon", "zone": "zone"}
    _write_csv(folder / "stops.csv", columns, zip(*(city.stops[c] for c in columns.values()), strict=True))
    mode = city.universe.attribute("mode")
    stops = city.stops["stop"]
    rows = ((o, d, mode.labels[mode.codes[i, j]]) for i, o in enumerate(stops) for j, d in enumerate(stops))
    _write_csv(folder / "modes.csv", ("origin", "destination", "mode"), rows)
    config = folder / f"epsilon-{epsilon}.toml"
    start, end = show.hours
    text = CONFIG.format(name=show.name, trips=show.trips, start=start, end=end, epsilon=epsilon)
    _put(config, text.encode())
    return config


def _write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows(rows)
    _put(path, out.getvalue().encode())


def _put(path: Path, content: bytes) -> None:
    """A file that is there already is left alone: trips that were written anew would be another data set's."""
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)


def _compare(planned: Plan, truth: Counts) -> None:
    """Root mean square errors of mechanisms at the same ε, by simulation (nothing is spent)."""
    features, epsilon = planned.features, planned.mechanism.epsilon
    others: dict[str, Mechanism] = {
        "laplace": Laplace(features, epsilon),
        "hierarchical": Hierarchical(features, epsilon),
        "as in the paper": ConstraintBased(features, epsilon, preset="paper"),
        "constraint-based": planned.mechanism,
    }
    rows = [
        ("mechanism", "trips", "per type", "by zone", "by mode"),
        ("(the truth)", f"{truth.value.sum():,}", "", "", ""),
    ]
    for name, one in others.items():
        release = one.simulate(truth, seed=0)
        single, zone, mode = (_error(release, truth, table) for table in ("singleton", "zone", "mode"))
        rows.append((name, f"{release.total:,}", f"{single:.2f}", f"{zone:.1f}", f"{mode:.1f}"))
    print(
        "What else this ε could buy: trips published, and how far counts are off on average, in trips\n"
        "(the root of the mean square: large errors weigh more)\n"
    )
    print("\n".join(aligned(rows, right=range(1, 5))))


def _error(release: Release, truth: Counts, feature: str) -> float:
    off: NDArray[np.int64] = release.counts(feature) - truth.of(release.features, feature)
    return float(np.sqrt(np.mean(off**2)))
