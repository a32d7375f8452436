"""Samples made to the published field lists go from `cbdp init` to a report without an edit but ε."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agency_samples as samples
import pytest

import cbdp
from cbdp.app import cli
from cbdp.app.inspecting import reading_of
from cbdp.config import read
from cbdp.counting.reading import look

Captured = pytest.CaptureFixture[str]

NOISE = (
    300  # that the total stays within, but for a chance of e⁻¹⁰: 4 trips of a person, 15 % of ε on the total
)


def begun(folder: Path, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration that `init` writes, with another ε and no other edit."""
    monkeypatch.chdir(folder)
    assert cli.main(["init", *arguments]) == 0
    file = folder / "cbdp.toml"
    text = file.read_text(encoding="utf-8")
    assert text.count("\nepsilon = 1.0 ") == 1
    file.write_text(text.replace("\nepsilon = 1.0 ", "\nepsilon = 0.9 "), encoding="utf-8")
    return file


def released(file: Path, capsys: Captured) -> cbdp.Release:
    """Check, look, release; the report is there, and what was released adds up."""
    assert cli.main(["check", str(file)]) == 0
    assert cli.main(["inspect", str(file)]) == 0
    assert cli.main(["release", str(file), "--create-ledger"]) == 0
    folder = file.parent / "release"
    assert "<svg" in (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "features" / "zone.parquet").is_file()
    capsys.readouterr()
    return cbdp.load(folder)


def truth(file: Path) -> Any:
    return look(reading_of(read(file)))


@pytest.mark.slow
def test_tides(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Taps are linked, in the agency's own time, and tokens are protected; what is not linked is shown and dropped."""
    whole, feed = samples.tides(tmp_path), samples.gtfs(tmp_path)
    file = begun(
        tmp_path, "fare_transactions.csv", "--preset", "tides", "--stops", feed.name, monkeypatch=monkeypatch
    )
    text = file.read_text(encoding="utf-8")
    assert 'preset = "tides"' in text
    assert 'timezone = "America/Los_Angeles"' in text
    assert 'unit = { person = "token_id", max_trips = 4, per = "day" }' in text
    found = truth(file)
    assert found.counted == whole
    assert found.counted + sum(d.rows for d in found.dropped if d.column == "destination") == found.read
    assert found.loads is not None
    assert found.loads.trips == whole
    trips = dict(found.by["time"])
    assert sum(n for hour, n in trips.items() if not "06:00" <= hour < "22:00") == 0
    release = released(file, capsys)
    assert abs(release.total - whole) < NOISE
    assert release.claim.unit.max_trips == 4
    assert (
        cli.main(["audit", "release", "--config", str(file), "--trips"]) == 0
    )  # linked again, and bounded as it was


def test_gtfs_ride(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times beyond 24:00 are of the next day; riders are protected."""
    samples.gtfs_ride(tmp_path)
    feed = samples.gtfs(tmp_path)
    file = begun(
        tmp_path,
        "rider_trip.txt",
        "--preset",
        "gtfs-ride",
        "--stops",
        f"{feed.name}/stops.txt",
        monkeypatch=monkeypatch,
    )
    assert 'unit = { person = "rider_id", max_trips = 4 }' in file.read_text(encoding="utf-8")
    found = truth(file)
    assert found.counted == found.read == 400
    late = sum(n % 10 == 0 and at.hour < 8 for n, (_, _, at, _) in enumerate(samples.rides(400)))
    early = sum(at.hour in (6, 7) for _, _, at, _ in samples.rides(400))
    trips = dict(found.by["time"])
    assert trips["06:00"] + trips["07:00"] == early  # 30:10 is ten past six
    assert late
    assert "timezone" not in file.read_text(encoding="utf-8")  # they are local times already
    assert abs(released(file, capsys).total - 400) < NOISE


@pytest.mark.parametrize("kind", ["yellow", "green", "fhv"])
def test_tlc(kind: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet of three kinds; boroughs are the zones. Where zones are doubles with gaps, rows without one are dropped."""
    samples.tlc(tmp_path, kind)
    samples.taxi_zones(tmp_path)
    trips = f"{kind}_tripdata_2026-03.parquet"
    file = begun(
        tmp_path, trips, "--preset", "tlc", "--stops", "taxi_zone_lookup.csv", monkeypatch=monkeypatch
    )
    text = file.read_text(encoding="utf-8")
    assert 'stop_columns = { id = "LocationID", name = "Zone" }' in text
    assert 'zones = { column = "Borough" }' in text
    assert 'unit = "trip"' in text
    assert truth(file).counted == (490 if kind == "fhv" else 500)
    if kind == "yellow":
        release = released(file, capsys)
        assert abs(release.total - 500) < NOISE
        assert set(release.trips()["origin"]) <= set(range(1, 9))


@pytest.mark.parametrize("version", [2, 3])
def test_gbfs(version: int, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stations come from the feed itself."""
    samples.bikes(tmp_path)
    samples.stations(tmp_path, version=version)
    file = begun(
        tmp_path,
        "202603-tripdata.csv",
        "--preset",
        "gbfs",
        "--stops",
        "station_information.json",
        monkeypatch=monkeypatch,
    )
    found = truth(file)
    assert found.counted == found.read == 400
    if version == 3:
        assert abs(released(file, capsys).total - 400) < NOISE
