"""The whole job on a built-in synthetic city: from a table of trips to a release with its report, and how good it is."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cbdp.app.config import read
from cbdp.app.explain import explain
from cbdp.app.plan import Plan, plan
from cbdp.app.publish import Say, publish
from cbdp.datasets import Dataset, ann_arbor
from cbdp.mechanisms import ConstraintBased, Hierarchical, Laplace, Mechanism
from cbdp.privacy.budget import positive
from cbdp.release.release import Release
from cbdp.trips.count import Counts, count

CONFIG = """\
# A release of the built-in synthetic city: no real person is in it.
preset = "odmts"

[data]
trips = "trips.parquet"
stops = "stops.csv"
id = "synthetic Ann Arbor"
expected_trips = 40000

[universe]
time = {{ start = "06:00", end = "20:00", every = "30min" }}
zones = {{ column = "zone" }}
modes = {{ table = "modes.csv" }}

[privacy]
epsilon = {epsilon}
unit = "trip"
ledger = "ledger.sqlite"
cap = 100
budget = "balanced"  # also: leaves, tables, uniform, or a target

[mechanism]
name = "constraint-based"
preset = "best"  # also: paper

[output]
path = "release-{epsilon}"
"""


def demo(epsilon: str, folder: str | Path, say: Say) -> int:
    """Write the city's files, check, release, and compare with the truth, which is public here."""
    budget = float(positive(epsilon))
    place = Path(folder)
    city = ann_arbor(seed=0)
    config = _write(city, place, f"{budget:g}")
    planned = plan(read(config))
    print(explain(planned))
    done = publish(planned, say)
    _compare(planned, count(city.trips, planned.universe))
    print(f"\nThe release is in {done.path}\nOpen its report: {done.path / 'report.html'}")
    return 0


def _write(city: Dataset, folder: Path, epsilon: str) -> Path:
    """The city as an agency would have it: a table of trips, one of stops, one of modes, and a configuration."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(dict(city.trips)), folder / "trips.parquet")
    columns = {"id": "stop", "name": "stop", "lat": "lat", "lon": "lon", "zone": "zone"}
    _write_csv(folder / "stops.csv", columns, zip(*(city.stops[c] for c in columns.values()), strict=True))
    mode = city.universe.attribute("mode")
    stops = city.stops["stop"]
    rows = ((o, d, mode.labels[mode.codes[i, j]]) for i, o in enumerate(stops) for j, d in enumerate(stops))
    _write_csv(folder / "modes.csv", ("origin", "destination", "mode"), rows)
    config = folder / f"epsilon-{epsilon}.toml"
    config.write_text(CONFIG.format(epsilon=epsilon), encoding="utf-8")
    return config


def _write_csv(path: Path, header: object, rows: object) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(header)  # type: ignore[arg-type]
        writer.writerows(rows)  # type: ignore[arg-type]


def _compare(planned: Plan, truth: Counts) -> None:
    """Root mean square errors of mechanisms at the same ε, by simulation (nothing is spent)."""
    features, epsilon = planned.features, planned.mechanism.epsilon
    print("What else ε could buy: trips published, and the error of a count in trips (root mean square)\n")
    print(f"{'mechanism':<20}{'trips':>12}{'per type':>10}{'by zone':>10}{'by mode':>10}")
    print(f"{'(the truth)':<20}{truth.value.sum():>12,}")
    others: dict[str, Mechanism] = {
        "laplace": Laplace(features, epsilon),
        "hierarchical": Hierarchical(features, epsilon),
        "as in the paper": ConstraintBased(features, epsilon, preset="paper"),
        "constraint-based": planned.mechanism,
    }
    for name, one in others.items():
        release = one.simulate(truth, seed=0)
        errors = [_error(release, truth, table) for table in ("singleton", "zone", "mode")]
        print(f"{name:<20}{release.total:>12,}{errors[0]:>10.2f}{errors[1]:>10.1f}{errors[2]:>10.1f}")


def _error(release: Release, truth: Counts, feature: str) -> float:
    off: NDArray[np.int64] = release.counts(feature) - truth.of(release.features, feature)
    return float(np.sqrt(np.mean(off**2)))
