"""CSV, read back by the standard library."""

from __future__ import annotations

import csv
from pathlib import Path

from exported import city_release, zone_trips

from cbdp.release.export import export


def test_csv_has_the_trips_and_every_feature(tmp_path: Path) -> None:
    """Whole trips under their labels; each feature's counts add up to the total."""
    release, trips = city_release()
    export(release, tmp_path / "out", "csv")
    with (tmp_path / "out" / "trips.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(int(r["origin"]), int(r["destination"]), r["time"]): int(r["count"]) for r in rows} == trips
    for name in release.features.features:
        with (tmp_path / "out" / "features" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        listed = len(release.index) if name == "singleton" else release.features.size(name)
        assert len(rows) == listed
        assert sum(int(r["count"]) for r in rows) == release.total
        assert all(r["low"] == "" for r in rows)
        if name == "zone":
            found = {(r["origin.zone"], r["destination.zone"], r["time"]): int(r["count"]) for r in rows}
            assert {k: v for k, v in found.items() if v} == zone_trips(trips)


def test_csv_keeps_awkward_text(tmp_path: Path) -> None:
    """Commas, quotes, line ends and signs in labels come back from the standard library's reader."""
    stops = ("a,b", 'say "x"', "two\nlines", "=ü")
    release, trips = city_release(stops)
    export(release, tmp_path / "out", "csv")
    with (tmp_path / "out" / "trips.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(r["origin"], r["destination"], r["time"]): int(r["count"]) for r in rows} == trips
