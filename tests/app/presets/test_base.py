"""Data presets as parts: what they ask of a file, what a configuration may change, and one of another package."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import agency_samples as samples
import pytest

from cbdp.app import cli
from cbdp.app.inspecting import reading_of
from cbdp.app.plan import plan
from cbdp.app.presets import PRESETS, Preset, apply_preset
from cbdp.config import read
from cbdp.counting.linking import DatedTimes, LinkedTaps
from cbdp.counting.reading import look
from cbdp.errors import InputError

Captured = pytest.CaptureFixture[str]

CONFIG = """\
preset = "odmts"
data = { trips = "%s", id = "x", stops = "%s", preset = "%s"%s }
universe = { time = { start = "00:00", end = "24:00", every = "1h" }%s }
privacy = { epsilon = 1, unit = %s }
"""


def written(
    folder: Path,
    trips: str,
    stops: str,
    preset: str,
    *,
    data: str = "",
    universe: str = "",
    unit: str = '"trip"',
) -> Path:
    file = folder / "cbdp.toml"
    file.write_text(CONFIG % (trips, stops, preset, data, universe, unit))
    return file


def test_a_preset_takes_the_first_name_that_is_there() -> None:
    """And what a configuration states goes before; what is not there is told with the names that were looked for."""
    tlc = PRESETS.get("tlc")
    green = dict.fromkeys(("PULocationID", "DOLocationID", "lpep_pickup_datetime"))
    assert apply_preset(tlc, green).columns["time"] == "lpep_pickup_datetime"
    assert apply_preset(tlc, green, {"time": "other"}).columns["time"] == "other"
    with pytest.raises(
        InputError, match="looks for time in the column 'tpep_pickup_datetime' or 'lpep_pickup_datetime' or"
    ):
        apply_preset(tlc, dict.fromkeys(("PULocationID", "DOLocationID")))


def test_preparations_take_declared_columns_and_formats() -> None:
    """TIDES links, GTFS-ride dates; without a service date there is nothing to date."""
    taps = apply_preset(
        PRESETS.get("tides"), dict.fromkeys(samples.TIDES), {"person": "card"}, ("%d/%m/%Y %H:%M",)
    )
    assert isinstance(taps.preparation, LinkedTaps)
    assert (taps.preparation.person, taps.preparation.formats) == ("card", ("%d/%m/%Y %H:%M",))
    assert taps.columns == {
        "origin": "origin",
        "destination": "destination",
        "time": "event_timestamp",
        "person": "card",
    }
    rides = apply_preset(PRESETS.get("gtfs-ride"), dict.fromkeys(samples.GTFS_RIDE))
    assert isinstance(rides.preparation, DatedTimes)
    assert (rides.columns["time"], rides.formats) == ("time", ())
    undated = apply_preset(
        PRESETS.get("gtfs-ride"), dict.fromkeys(c for c in samples.GTFS_RIDE if c != "service_date")
    )
    assert undated.preparation is None
    assert undated.columns["time"] == "boarding_time"


def test_tides_in_small_letters_counts_the_same(tmp_path: Path) -> None:
    """The next version of the specification writes `transfer_entrance` for `Transfer entrance`."""
    whole, feed = samples.tides(tmp_path), samples.gtfs(tmp_path)
    file = written(tmp_path, "fare_transactions.csv", feed.name, "tides")
    taps = tmp_path / "fare_transactions.csv"
    for old, new in ((",Enter,", ",transfer_entrance,"), (",Exit,", ",Transfer exit,")):
        taps.write_text(taps.read_text().replace(old, new))
        assert look(reading_of(read(file))).counted == whole


def test_days_of_a_service_after_midnight(tmp_path: Path) -> None:
    """With a dimension of days, 30:10 on Monday is ten past six on Tuesday."""
    samples.gtfs_ride(tmp_path)
    feed = samples.gtfs(tmp_path)
    days = ', days = { first = "2026-03-02", last = "2026-03-07" }'
    file = written(tmp_path, "rider_trip.txt", feed.name, "gtfs-ride", universe=days)
    found = dict(look(reading_of(read(file))).by["day"])
    wanted = dict.fromkeys(found, 0)
    for n, (_, _, at, _) in enumerate(samples.rides(400)):
        late = n % 10 == 0 and at.hour < 8
        wanted[f"2026-03-{at.day + late:02d}"] += 1
    assert found == wanted


def test_the_request_knows_the_preset(tmp_path: Path) -> None:
    """Other columns or another preset are another request; the file is the same source."""
    samples.tlc(tmp_path)
    samples.taxi_zones(tmp_path)
    stops = ', stop_columns = { id = "LocationID" }'
    trips = "yellow_tripdata_2026-03.parquet"
    first = plan(read(written(tmp_path, trips, "taxi_zone_lookup.csv", "tlc", data=stops))).request
    swap = stops + ', columns = { origin = "DOLocationID", destination = "PULocationID" }'
    other = plan(read(written(tmp_path, trips, "taxi_zone_lookup.csv", "tlc", data=swap))).request
    assert first.partition(":")[0] != other.partition(":")[0]
    assert first.partition(":")[2] == other.partition(":")[2]


@pytest.mark.parametrize(
    ("preset", "says"),
    [("tide", "did you mean 'tides'?"), ("tlc", "the preset 'tlc' (NYC TLC data dictionaries")],
)
def test_mistakes_are_told_with_their_line(preset: str, says: str, tmp_path: Path, capsys: Captured) -> None:
    """A name that is not known, and a file of another specification."""
    samples.gtfs_ride(tmp_path)
    file = written(tmp_path, "rider_trip.txt", samples.gtfs(tmp_path).name, preset)
    assert cli.main(["check", str(file)]) == 2
    said = capsys.readouterr().err
    assert f"{file}:2: " in said
    assert says in said


def test_rows_of_a_server_are_not_linked_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A preparation runs in DuckDB: other engines are told so, before a row is asked for."""
    from cbdp.app import trips
    from cbdp.counting import Schema

    monkeypatch.setattr(trips, "opened", lambda *_: Schema("t", dict.fromkeys(samples.TIDES)))
    file = written(tmp_path, "postgres://host/city::taps", samples.gtfs(tmp_path).name, "tides")
    with pytest.raises(InputError, match="makes trips of rows in DuckDB: export the rows"):
        plan(read(file))


FERRY = """\
from cbdp.app.presets import Preset

FERRY = Preset(
    name="ferry",
    about="tickets of a ferry",
    follows="Harbour Board 2026",
    columns={"origin": ("pier_out",), "destination": ("pier_in",), "time": ("sailed",)},
    time_format=("%d.%m.%Y %H:%M",),
)
"""


def test_another_package_adds_a_preset_in_one_file(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listed by `cbdp parts`, used by `init`, and counted by."""
    module = ModuleType("harbour")
    exec(FERRY, module.__dict__)  # noqa: S102 - the file of the other package
    monkeypatch.setitem(sys.modules, "harbour", module)
    entry = EntryPoint("ferry", "harbour:FERRY", "cbdp.presets")
    monkeypatch.setattr("cbdp.parts.entry_points", lambda group: [entry] if group == entry.group else [])
    assert isinstance(PRESETS.get("ferry"), Preset)
    assert cli.main(["parts", "presets"]) == 0
    assert "Harbour Board 2026" in capsys.readouterr().out
    (tmp_path / "piers.csv").write_text("id,name\nN,North\nS,South\n")
    (tmp_path / "t.csv").write_text("pier_out,pier_in,sailed\nN,S,31.01.2026 08:15\nS,N,01.02.2026 09:00\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", "t.csv", "--preset", "ferry", "--stops", "piers.csv"]) == 0
    found = look(reading_of(read(tmp_path / "cbdp.toml")))
    assert (found.read, found.counted) == (2, 2)
