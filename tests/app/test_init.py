"""`cbdp init`: how a configuration is begun, from the names of columns and public stops."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from small_city import STOPS

from cbdp.app import config, explain
from cbdp.app import init as starter
from cbdp.app import plan as planning
from cbdp.app.guessing import guess
from cbdp.errors import InputError
from cbdp.trips import count

ROOT = Path(__file__).parents[2]


DATA = Path(os.environ.get("CBDP_DATA", ROOT.parent / "shared" / "data"))


BIKE = DATA / "bayarea_bike_2014"


bike = pytest.mark.skipif(
    not BIKE.is_dir(), reason=f"no bike-share data at {BIKE}: set CBDP_DATA to its folder"
)


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        (
            "Trip ID,Start Date,Start Station,Start Terminal,End Date,End Station,End Terminal,Bike #,Zip Code",
            {"origin": "Start Terminal", "destination": "End Terminal", "time": "Start Date"},
        ),
        (
            "ride_id,started_at,ended_at,start_station_name,start_station_id,end_station_id,start_lat,member_casual",
            {"origin": "start_station_id", "destination": "end_station_id", "time": "started_at"},
        ),
        (
            "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,PULocationID,DOLocationID",
            {"origin": "PULocationID", "destination": "DOLocationID", "time": "tpep_pickup_datetime"},
        ),
        (
            "start_stop,end_stop,start_time,card_id",
            {"origin": "start_stop", "destination": "end_stop", "time": "start_time", "person": "card_id"},
        ),
        ("o;d;t", {"origin": "o", "destination": "d"}),
    ],
)
def test_columns_are_guessed_by_their_names(tmp_path: Path, header: str, columns: dict[str, str]) -> None:
    """Headers of well-known trip files find their roles."""
    (tmp_path / "t.csv").write_text(header + "\n")
    assert dict(guess([str(tmp_path / "t.csv")]).columns) == columns


def test_init_then_check(city: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configuration written for generated files is accepted as it stands, seen from any folder."""
    monkeypatch.chdir(city.parent)
    (city / "sub").mkdir()
    file = starter.write(city / "sub" / "new.toml", f"{city.name}/trips.parquet", f"{city.name}/stops.csv")
    assert 'trips = "../trips.parquet"' in file.read_text()
    plan = planning.plan(config.read(file))
    assert plan.features.sizes == {"total": 1, "time": 24, "zone": 96, "singleton": 864}
    assert count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock).value.sum() == 50
    assert explain.explain(plan).warnings == ()
    with pytest.raises(InputError, match="exists already"):
        starter.write(file, city / "trips.parquet", city / "stops.csv")


def test_init_reads_no_row(city: Path) -> None:
    """The text is the same whatever the rows hold, and a first line that is a row is not repeated."""
    (city / "a.csv").write_text("from_stop,to_stop,left_at\nS1,S2,2026-03-02 06:00\n")
    wanted = starter.starter(city / "a.csv", city / "stops.csv")
    (city / "a.csv").write_text('from_stop,to_stop,left_at\n"""secret,,,\n')
    assert starter.starter(city / "a.csv", city / "stops.csv") == wanted
    (city / "a.csv").write_text("Anna,S1,2026-03-02 06:00\n")
    with pytest.raises(InputError, match="does not look like column names") as caught:
        starter.starter(city / "a.csv", city / "stops.csv")
    assert "Anna" not in str(caught.value)


def test_init_without_stops_says_what_to_edit(city: Path) -> None:
    """What cannot be guessed is marked, and `check` points at that very line."""
    parquet.write_table(pa.table({"a": ["x"], "b": ["y"]}), city / "odd.parquet")
    file = starter.write(city / "odd.toml", city / "odd.parquet", city / "stops.csv")
    line = next(n for n, text in enumerate(file.read_text().split("\n"), 1) if "EDIT: the column" in text)
    with pytest.raises(InputError, match=rf"odd\.toml:{line}: "):
        planning.plan(config.read(file))
    file = starter.write(city / "bare.toml", city / "trips.parquet")
    (city / "stops.csv").unlink()
    line = next(n for n, text in enumerate(file.read_text().split("\n"), 1) if "EDIT: a public list" in text)
    with pytest.raises(InputError, match=rf"bare\.toml:{line}: there is no file"):
        planning.plan(config.read(file))


def test_init_knows_stops_of_all_kinds(city: Path) -> None:
    """Zones come from a column that groups the stops, else from coordinates; GTFS needs no names."""
    (city / "s.csv").write_text(
        STOPS.replace("id,name,lat,lon,zone", "station_id,title,latitude,long,landmark")
    )
    text = starter.starter(city / "trips.parquet", city / "s.csv")
    assert 'stop_columns = { id = "station_id", lat = "latitude", lon = "long" }' in text
    assert 'zones = { column = "landmark" }' in text
    (city / "stops.txt").write_text("stop_id,stop_name,stop_lat,stop_lon\nS0,a,42,-83\nS1,b,42.1,-83\n")
    file = starter.write(city / "gtfs.toml", city / "trips.parquet", city / "stops.txt")
    plan = planning.plan(config.read(file))
    assert plan.stops is not None
    assert plan.stops.zone == ("Z01", "Z01")


@bike
def test_init_then_check_on_real_bike_trips(tmp_path: Path) -> None:
    """On the bike-share data the configuration written is accepted as it stands, with the cities as zones."""
    file = starter.write(tmp_path / "bike.toml", BIKE / "trips.parquet", BIKE / "stations.csv")
    plan = planning.plan(config.read(file))
    told = explain.explain(plan)
    assert told.dataset == "bayarea_bike_2014"
    assert told.dimensions == {"origin": 70, "destination": 70, "time": 24}
    assert plan.features.sizes["zone"] == 5 * 5 * 24
    counts = count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock)
    assert counts.value.sum() == 326_339
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bike.toml"]
