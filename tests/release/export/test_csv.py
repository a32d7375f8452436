"""CSV, read back by the standard library."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from exported import city_release, mechanism_release, zone_trips

from cbdp.release.export import export
from cbdp.text import from_spreadsheet_cell


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


def test_csv_has_the_names_of_the_stops(tmp_path: Path) -> None:
    """Tables have ids: whoever opens them in a spreadsheet can look up what they stand for."""
    release = mechanism_release()
    export(release, tmp_path / "out", "csv")
    with (tmp_path / "out" / "universe" / "places.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert release.places is not None
    assert [r["name"] for r in rows] == list(release.places.names)
    assert [r["id"] for r in rows] == [str(n) for n in release.places.ids]
    assert [float(r["lat"]) for r in rows] == release.places.lat.tolist()


def test_csv_keeps_awkward_text(tmp_path: Path) -> None:
    """Commas, quotes, line ends and signs in labels come back from the standard library's reader; what computes has an apostrophe."""
    stops = ("a,b", 'say "x"', "two\nlines", "=ü")
    release, trips = city_release(stops)
    export(release, tmp_path / "out", "csv")
    with (tmp_path / "out" / "trips.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert "=ü" not in {r[end] for r in rows for end in ("origin", "destination")}
    text = from_spreadsheet_cell
    assert {(text(r["origin"]), text(r["destination"]), r["time"]): int(r["count"]) for r in rows} == trips


def test_csv_has_a_long_table_with_intervals(tmp_path: Path) -> None:
    """od.csv is what the release answers, flow by flow, those without published trips too; about.json has the confidence."""
    release = mechanism_release()
    out = export(release, tmp_path / "out", "CSV", level="zone", intervals=0.9)
    answer = release.ask(by=["origin.zone", "destination.zone", "time"])
    with (out / "od.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = {
        (r["origin"], r["destination"], r["time"]): tuple(int(r[n]) for n in ("count", "low", "high"))
        for r in rows
    }
    keys = zip(*(answer[n] for n in ("origin.zone", "destination.zone", "time")), strict=True)
    numbers = zip(*(answer[n].tolist() for n in ("count", "low", "high")), strict=True)
    assert found == dict(zip(keys, numbers, strict=True))
    assert sum(n for n, _, _ in found.values()) == release.total
    assert min(n for n, _, _ in found.values()) == 0
    assert json.loads((out / "about.json").read_text("utf-8"))["confidence"] == 0.9


def test_csv_of_zones_without_intervals_lists_the_flows(tmp_path: Path) -> None:
    """Those with trips, and no columns for what nobody asked."""
    release, trips = city_release()
    with (export(release, tmp_path / "out", "csv", level="zone") / "od.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == {"origin", "destination", "time", "count"}
    assert {(r["origin"], r["destination"], r["time"]): int(r["count"]) for r in rows} == zone_trips(trips)
    assert not (export(release, tmp_path / "plain", "csv") / "od.csv").exists()
