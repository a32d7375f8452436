"""`cbdp init`: how a configuration is begun, from the names of columns and public stops."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from misread import write_counts
from pyarrow import parquet
from small_city import STOPS, trip_table

from cbdp import config, forecast
from cbdp.app import init as starter
from cbdp.app import plan as planning
from cbdp.app.init import guess
from cbdp.app.inspecting import reading_of
from cbdp.counting import count
from cbdp.counting.reading import look
from cbdp.errors import InputError

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
        (
            "date,hour,from,to,count",
            {"origin": "from", "destination": "to", "time": "hour", "day": "date", "count": "count"},
        ),
        (
            "Date,Hour,Origin Station,Destination Station,Number of Trips",
            {
                "origin": "Origin Station",
                "destination": "Destination Station",
                "time": "Hour",
                "day": "Date",
                "count": "Number of Trips",
            },
        ),
        (
            "hour,entry_station,exit_station,passengers",
            {"origin": "entry_station", "destination": "exit_station", "time": "hour", "count": "passengers"},
        ),
        (
            "trip_no,start_time,start_date,from_station,to_station,passenger_count",
            {
                "origin": "from_station",
                "destination": "to_station",
                "time": "start_time",
                "day": "start_date",
            },
        ),
        (
            "card_id,start_time,from_stop,to_stop,trips",
            {"origin": "from_stop", "destination": "to_stop", "time": "start_time", "person": "card_id"},
        ),
    ],
)
def test_columns_are_guessed_by_their_names(tmp_path: Path, header: str, columns: dict[str, str]) -> None:
    """Headers of well-known trip files find their roles."""
    (tmp_path / "t.csv").write_text(header + "\n")
    assert dict(guess([str(tmp_path / "t.csv")]).columns) == columns


@pytest.mark.parametrize(
    ("name", "kind", "form"),
    [
        ("ts", pa.int64(), 'time_format = "epoch_s"'),
        ("timestamp_ms", pa.int64(), 'time_format = "epoch_ms"'),
        ("epoch", pa.string(), 'time_format = "epoch_s"'),
        ("hour", pa.int8(), None),
        ("started_at", pa.timestamp("s"), None),
    ],
)
def test_times_in_numbers_are_told_by_name_and_type(
    tmp_path: Path, name: str, kind: pa.DataType, form: str | None
) -> None:
    """Seconds since 1970, or hours; what the schema declares is not asked for."""
    table = pa.table({"o": ["A"], "d": ["A"], name: pa.nulls(1, kind)})
    parquet.write_table(table, tmp_path / "t.parquet")
    text = starter.starter(tmp_path / "t.parquet")
    assert f'time = "{name}"' in text
    assert [line for line in text.split("\n") if line.startswith("time_format")] == (
        [] if form is None else [f"{form}  # how times are written"]
    )
    assert "# time_format" not in text


def test_dates_in_numbers_are_told_by_type(tmp_path: Path) -> None:
    """20260302 and an hour."""
    table = pa.table(
        {"o": ["A"], "d": ["A"], "date": pa.array([20260302], pa.int32()), "hour": [7], "n": [5]}
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "stops.csv").write_text("id,name\nA,Alpha\nB,Beta\n")
    file = starter.write(tmp_path / "c.toml", tmp_path / "t.parquet", tmp_path / "stops.csv")
    text = file.read_text().replace("# days = [", "days = [")
    assert 'time_format = "%Y%m%d"' in text
    file.write_text(text)
    found = look(reading_of(config.read(file)))
    assert (found.counted, found.trips) == (1, 5)
    assert dict(found.by["day"])["weekday"] == 5


def test_how_text_is_written_is_offered_and_not_guessed(city: Path) -> None:
    """Each format as a comment with how it looks; each can be taken as it stands; --time-format writes it at once."""
    (city / "t.csv").write_text("from_stop,to_stop,left_at\nS0,S1,31/01/2026 08:14\n")
    text = starter.starter(city / "t.csv", city / "stops.csv", city)
    offered = [line.removeprefix("# ") for line in text.split("\n") if line.startswith("# time_format")]
    assert len(offered) == 5
    assert 'time_format = "%d/%m/%Y %H:%M"  # 31/01/2026 08:14, the day first' in offered
    for line in offered:
        config.parse(text.replace("[universe]", f"{line}\n[universe]"))
    text = starter.starter(city / "t.csv", city / "stops.csv", city, time_format=["%d/%m/%Y %H:%M", "iso"])
    assert 'time_format = ["%d/%m/%Y %H:%M", "iso"]' in text
    (city / "c.toml").write_text(text)
    assert look(reading_of(config.read(city / "c.toml"))).counted == 1
    with pytest.raises(InputError, match="cannot be read"):
        starter.starter(city / "t.csv", time_format=["%Q"])


def test_a_table_of_counts_needs_no_edit(tmp_path: Path) -> None:
    """From the file to a plan that counts what the rows stand for."""
    total = write_counts(tmp_path, "")
    file = starter.write(tmp_path / "new.toml", tmp_path / "trips.csv", tmp_path / "stops.csv")
    assert "count: a row stands for that many trips" in file.read_text()
    found = look(reading_of(config.read(file)))
    assert (found.counted, found.trips) == (1500, total)


def test_the_time_zone_of_a_feed_places_instants(city: Path) -> None:
    """agency.txt beside the stops says where the clock is, for times that know their zone; others are local already."""
    (city / "stops.txt").write_text("stop_id,stop_name,stop_lat,stop_lon\nS0,a,42,-83\nS1,b,42.1,-83\n")
    (city / "agency.txt").write_text("agency_name,agency_timezone\nA,America/Detroit\nB,America/Detroit\n")
    table = trip_table()
    zoned = table.set_column(2, "left_at", table["left_at"].cast(pa.timestamp("us", "UTC")))
    parquet.write_table(zoned, city / "zoned.parquet")
    lines = starter.starter(city / "zoned.parquet", city / "stops.txt").split("\n")
    assert [line for line in lines if "Detroit" in line and not line.startswith("#")]
    assert 'timezone = "America/Detroit"  # of agency.txt; times are converted to it' in lines
    local = starter.starter(city / "trips.parquet", city / "stops.txt").split("\n")
    assert [line for line in local if "timezone" in line] == [
        '# timezone = "America/Detroit"  # if times are in UTC'
    ]
    (city / "agency.txt").write_text("agency_name,agency_timezone\nA,America/Detroit\nB,America/Chicago\n")
    assert "Detroit" not in starter.starter(city / "zoned.parquet", city / "stops.txt")


def test_init_then_check(city: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configuration written for generated files is accepted as it stands, seen from any folder."""
    monkeypatch.chdir(city.parent)
    (city / "sub").mkdir()
    file = starter.write(city / "sub" / "new.toml", f"{city.name}/trips.parquet", f"{city.name}/stops.csv")
    assert 'trips = "../trips.parquet"' in file.read_text()
    plan = planning.plan(config.read(file))
    sizes = {"total": 1, "time": 24, "zone": 96, "origin": 6, "destination": 6, "singleton": 864}
    assert plan.features.sizes == sizes
    assert forecast.explain(plan).gaps == ()  # every dimension and attribute has its table
    assert count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock).value.sum() == 50
    assert forecast.explain(plan).warnings == ()
    with pytest.raises(InputError, match="exists already"):
        starter.write(file, city / "trips.parquet", city / "stops.csv")


def test_init_gives_stops_tables_where_types_can_be_listed(city: Path) -> None:
    """Beside zones, and up to 418 stops by the hour; days that are switched on have their tables."""
    rows = [f"S{n},Stop {n},{42 + n / 1000},{-83},{'a' if n % 2 else 'b'}\n" for n in range(419)]
    (city / "many.csv").write_text("id,name,lat,lon,zone\n" + "".join(rows))
    (city / "fewer.csv").write_text("id,name,lat,lon,zone\n" + "".join(rows[:418]))
    (city / "bare.csv").write_text("id,name\n" + "".join(f"S{n},Stop {n}\n" for n in range(6)))
    for stops, told in (("many", False), ("fewer", True), ("bare", False)):
        text = starter.starter(city / "trips.parquet", city / f"{stops}.csv")
        assert ('\n[[feature]]\nname = "origin"\n' in text) is told
    text = starter.starter(city / "trips.parquet", city / "bare.csv").replace("# days = [", "days = [")
    (city / "days.toml").write_text(text)
    plan = planning.plan(config.read(city / "days.toml"))
    assert list(plan.features.features) == [
        "total",
        "time",
        "day",
        "day-time",
        "origin",
        "destination",
        "singleton",
    ]
    assert forecast.explain(plan).gaps == ()


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


def test_trips_are_no_list_of_stops(city: Path) -> None:
    """Which stops were used is private: the trips are not taken for the stops."""
    with pytest.raises(InputError, match=r"the same file '.*trips\.parquet': give a public list"):
        starter.starter(city / "trips.parquet", city / "trips.parquet")


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


def test_stops_that_are_listed_twice_are_told_with_their_column(city: Path) -> None:
    """The column that seems to hold the ids, and how many of them are different."""
    (city / "twice.csv").write_text("stop_id,zone\nS0,a\nS1,a\nS1,a\n")
    said = r"column 'stop_id' has 2 different values in 3 rows\): give each stop one row"
    with pytest.raises(InputError, match=said):
        starter.starter(city / "trips.parquet", city / "twice.csv")


def test_a_list_of_stops_with_another_id_says_what_to_write(city: Path) -> None:
    """Where init was given no stops, and the file is there under the name that it wrote."""
    file = starter.write(city / "new.toml", city / "trips.parquet")
    (city / "stops.csv").write_text("stop_id,name\nS0,Alpha\nS1,Beta\n")
    with pytest.raises(
        InputError, match=r"there are stop_id, name\. Say which one is the id: stop_columns = "
    ):
        planning.plan(config.read(file))


@bike
def test_init_then_check_on_real_bike_trips(tmp_path: Path) -> None:
    """On the bike-share data the configuration written is accepted as it stands, with the cities as zones."""
    file = starter.write(tmp_path / "bike.toml", BIKE / "trips.parquet", BIKE / "stations.csv")
    plan = planning.plan(config.read(file))
    told = forecast.explain(plan)
    assert told.dataset == "bayarea_bike_2014"
    assert told.dimensions == {"origin": 70, "destination": 70, "time": 24}
    assert plan.features.sizes["zone"] == 5 * 5 * 24
    counts = count(plan.trips, plan.universe, columns=plan.columns, clock=plan.clock)
    assert counts.value.sum() == 326_339
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bike.toml"]
