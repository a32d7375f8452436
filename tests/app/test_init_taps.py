"""`cbdp init` for files of taps, and what it tells whoever ran it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from cbdp import config
from cbdp.app import init
from cbdp.app.init import guess
from cbdp.app.inspecting import reading_of
from cbdp.app.presets import TAP_OFF, TAP_ON, spellings
from cbdp.counting import count
from cbdp.counting.reading import look
from cbdp.datasets import practice
from cbdp.errors import InputError


@pytest.fixture(scope="module")
def files() -> Mapping[str, str]:
    return practice.practice_files()


@pytest.fixture
def town(files: Mapping[str, str], tmp_path: Path) -> Path:
    """The practice files."""
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("card,tap_time,station,tap", {"person": "card", "time": "tap_time", "stop": "station", "action": "tap"}),
        (
            "token_id,event_timestamp,stop_id,fare_action",
            {"person": "token_id", "time": "event_timestamp", "stop": "stop_id", "action": "fare_action"},
        ),
        ("smartcard,when,location,on_off", {"person": "smartcard", "time": "when", "stop": "location", "action": "on_off"}),
        (
            "mode,date,tap,time,loc,count",
            {"time": "time", "day": "date", "stop": "loc", "action": "tap", "count": "count"},
        ),
        (
            "card_no,validation_time,station,direction",
            {"person": "card_no", "time": "validation_time", "stop": "station", "action": "direction"},
        ),
        ("time,stop,trips", {"time": "time", "stop": "stop", "count": "trips"}),
        (
            "hashed_card,tap_off_time,tap_on_time,tap_on_station,tap_off_station",
            {"person": "hashed_card", "time": "tap_on_time", "origin": "tap_on_station", "destination": "tap_off_station"},
        ),
        ("fare_media_id,ts,stop,kind", {"person": "fare_media_id", "time": "ts", "stop": "stop", "action": "kind"}),
        ("timestamp,station_id,in_out,card_serial", {"person": "card_serial", "time": "timestamp", "stop": "station_id", "action": "in_out"}),
        ("time,stop,on,off", {"time": "time", "stop": "stop"}),
        ("datetime,stop_id,boardings", {"time": "datetime", "stop": "stop_id", "count": "boardings"}),
        ("Datum,Zeit,Haltestelle,Einsteiger", {"time": "Zeit", "day": "Datum", "stop": "Haltestelle", "count": "Einsteiger"}),
        (
            "tripduration,starttime,stoptime,start station id,end station id,usertype",
            {"origin": "start station id", "destination": "end station id", "time": "starttime"},
        ),
        ("mode,date,tap,loc,count", {"day": "date", "stop": "loc", "action": "tap", "count": "count"}),
        (
            "TransactionID,DeviceID,MediaID,TransactionDateTime,StationID,TransactionType",
            {"person": "MediaID", "time": "TransactionDateTime", "stop": "StationID", "action": "TransactionType"},
        ),
        ("device_id,tap_time,stop_id,tap", {"time": "tap_time", "stop": "stop_id", "action": "tap"}),
        ("device_id,start_time,from_stop,to_stop", {"person": "device_id", "time": "start_time", "origin": "from_stop", "destination": "to_stop"}),
        ("bike,when,from_station,to_station", {"origin": "from_station", "destination": "to_station", "time": "when"}),
        (
            "Datum;Uhrzeit;Von;Nach;Anzahl",
            {"origin": "Von", "destination": "Nach", "time": "Uhrzeit", "day": "Datum", "count": "Anzahl"},
        ),
        (
            "fecha,hora,origen,destino,viajes",
            {"origin": "origen", "destination": "destino", "time": "hora", "day": "fecha", "count": "viajes"},
        ),
        ("ann,Central Station,on", {}),  # without a time it may be a row: nothing of it is repeated
    ],
)  # fmt: skip
def test_columns_of_taps_are_guessed_by_name(header: str, columns: dict[str, str], tmp_path: Path) -> None:
    """One place instead of two, and what was done there."""
    (tmp_path / "taps.csv").write_text(header + "\n")
    found = guess([str(tmp_path / "taps.csv")])
    assert dict(found.columns) == columns
    assert bool(found.others) <= bool(columns)


def _started(town: Path, file: str) -> Path:
    return init.write(town / "cbdp.toml", town / file, town / "stops.csv")


def test_taps_of_cards_become_the_trips_that_they_were_made_of(town: Path) -> None:
    """The same trips, tapped and listed, are counted alike."""
    readings = {}
    for file in ("taps.csv", "trips.csv"):
        path = init.write(town / f"{file}.toml", town / file, town / "stops.csv")
        reading = reading_of(config.read(path))
        readings[file] = count(reading.trips, reading.universe, columns=reading.columns, clock=reading.clock)
    taps, trips = readings.values()
    assert (taps.index == trips.index).all()
    assert (taps.value == trips.value).all()


def test_taps_of_cards_protect_a_persons_day(town: Path) -> None:
    """The unit names the column of cards, and is a day's: a month has more trips than four."""
    written = config.read(_started(town, "taps.csv"))
    assert written.data.preset == "taps"
    assert (written.privacy.unit.person, written.privacy.unit.per) == ("card", "day")


@pytest.mark.parametrize("mark", ["Tap On", "check-in", "ENTRY", " in ", "boarding"])
def test_tap_ons_may_be_written_in_many_ways(mark: str, town: Path) -> None:
    """Capitals, spaces and hyphens do not matter."""
    text = (town / "taps.csv").read_text("utf-8")
    (town / "taps.csv").write_text(text.replace(",on\n", f",{mark}\n"), "utf-8")
    reading = reading_of(config.read(_started(town, "taps.csv")))
    assert look(reading).counted == len(practice.trips())


def _told(town: Path, words: str) -> config.Config:
    """Taps whose words are 1 and 2, and a configuration that says so."""
    text = (town / "taps.csv").read_text("utf-8")
    (town / "taps.csv").write_text(text.replace(",on\n", ",1\n").replace(",off\n", ",2\n"), "utf-8")
    written = _started(town, "taps.csv")
    written.write_text(written.read_text("utf-8").replace("[data]\n", f"[data]\n{words}\n", 1), "utf-8")
    return config.read(written)


def test_other_words_of_taps_are_stated(town: Path) -> None:
    """1 and 2 mean nothing by themselves."""
    reading = reading_of(_told(town, 'taps = { on = "1", off = ["2", "Way Out"] }'))
    assert look(reading).counted == len(practice.trips())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ('taps = { on = "1" }', "different words for both"),
        ('taps = { on = "1", off = "1" }', "different words for both"),
        ('taps = { in = "1", off = "2" }', "did you mean 'on'|has no 'in'"),
    ],
)
def test_words_of_taps_that_tell_nothing_are_refused(words: str, said: str, town: Path) -> None:
    with pytest.raises(InputError, match=said):
        reading_of(_told(town, words))


def test_words_of_taps_without_taps_are_refused(town: Path) -> None:
    written = _started(town, "trips.csv")
    stated = '[data]\ntaps = { on = "1", off = "2" }\n'
    written.write_text(written.read_text("utf-8").replace("[data]\n", stated, 1), "utf-8")
    with pytest.raises(InputError, match="no preset links taps"):
        reading_of(config.read(written))


def test_taps_of_cards_that_are_only_counted_protect_a_persons_day(town: Path) -> None:
    """Where no column tells tap-ons from tap-offs, cards are still people."""
    lines = (town / "taps.csv").read_text("utf-8").splitlines()
    (town / "ons.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines) + "\n", "utf-8")
    written = config.read(_started(town, "ons.csv"))
    assert written.data.preset is None
    assert (written.privacy.unit.person, written.privacy.unit.per) == ("card", "day")


def test_a_column_of_actions_needs_the_preset(town: Path) -> None:
    written = _started(town, "trips.csv")
    text = written.read_text("utf-8").replace("columns = { ", 'columns = { action = "card_id", ', 1)
    written.write_text(text, "utf-8")
    with pytest.raises(InputError, match='write preset = "taps"'):
        reading_of(config.read(written))


def test_no_word_means_both() -> None:
    """A tap-on is never a tap-off."""
    assert not set(spellings(TAP_ON)) & set(spellings(TAP_OFF))


def test_counts_by_place_are_released_by_place(town: Path) -> None:
    """A row has one place: no trip from stop to stop is made up."""
    (town / "by-stop.csv").write_text("time,stop,tap,count\n08:00,S01,on,12\n09:30,S02,off,9\n")
    reading = reading_of(config.read(_started(town, "by-stop.csv")))
    assert set(reading.universe.dimensions) == {"location", "time", "tap"}
    assert look(reading).trips == 21


def test_init_says_what_it_understood_and_what_is_left(town: Path) -> None:
    """Lines to edit are named with their number."""
    first, columns, stops, zones, alone, people, edit, then = init.summary_lines(_started(town, "trips.csv"))
    assert first.endswith("cbdp.toml for a file of trips")
    assert columns.startswith("  origin is 'from_stop', destination is 'to_stop', time is 'start_time'")
    assert stops == "  of the 16 stops, id is 'stop_id', name is 'name', lat is 'lat', lon is 'lon'"
    assert zones == "  zones: column 'zone' of the stops, 4 zones"
    assert alone.startswith(
        '  ATTENTION: column "card_id" seems to tell people apart, and each trip is protected on its own'
    )
    assert people.endswith('write unit = { person = "card_id", max_trips = 4, per = "day" }')
    lines = (town / "cbdp.toml").read_text("utf-8").splitlines()
    unit = 1 + [line.startswith("unit = ") for line in lines].index(True)
    assert edit == f"you have to edit, marked EDIT: unit in line {unit}"
    assert "cbdp inspect" in then
    path = init.write(town / "without.toml", town / "trips.csv")
    number = 1 + [line.startswith("stops = ") for line in path.read_text("utf-8").splitlines()].index(True)
    assert init.summary_lines(path)[-2].startswith(
        f"you have to edit, marked EDIT: stops in line {number}, unit in line "
    )


def test_taps_without_a_header_are_refused(town: Path) -> None:
    """A first line with values is no header."""
    (town / "bare.csv").write_text("C1,2026-03-02 08:00,S01,on\n")
    with pytest.raises(InputError, match="does not look like column names"):
        init.write(town / "bare.toml", town / "bare.csv", town / "stops.csv")


def _feed(town: Path, zones: list[str]) -> Path:
    """The stops as a GTFS file with these fare zones."""
    lines = (town / "stops.csv").read_text("utf-8").splitlines()[1:]
    rows = [",".join([*line.split(",")[:4], zone]) for line, zone in zip(lines, zones, strict=True)]
    path = town / "stops.txt"
    path.write_text("\n".join(["stop_id,stop_name,stop_lat,stop_lon,zone_id", *rows]) + "\n", "utf-8")
    return path


@pytest.mark.parametrize(
    ("zones", "said"),
    [
        (["1", "2"] * 8, "  zones: column 'zone_id' of the stops, 2 zones"),
        (["1"] * 16, "  zones: 4, made from the coordinates; no column of zones was found"),
        ([str(n) for n in range(16)], "  zones: 4, made from the coordinates; no column of zones was found"),
        (["1", ""] * 8, "  zones: 4, made from the coordinates; no column of zones was found"),
    ],
    ids=["two", "one", "as many as stops", "gaps"],
)
def test_fare_zones_are_taken_where_they_group_all_stops(zones: list[str], said: str, town: Path) -> None:
    """What is written is read without complaint, and init says which zones it took."""
    path = init.write(town / "gtfs.toml", town / "trips.csv", _feed(town, zones))
    assert init.summary_lines(path)[2:4] == [
        "  of the 16 stops, id is 'stop_id', name is 'stop_name', lat is 'stop_lat', lon is 'stop_lon'",
        said,
    ]
    reading = reading_of(config.read(path))
    assert len(set(reading.stops.zone)) == (2 if "zone_id" in said else 4)


def test_taps_are_counted_where_that_is_asked_for(town: Path) -> None:
    """Each tap at its stop, and a person's day is protected as before."""
    path = init.write(town / "by-stop.toml", town / "taps.csv", town / "stops.csv", count_taps=True)
    reading = reading_of(config.read(path))
    assert set(reading.universe.dimensions) == {"location", "time", "tap"}
    assert look(reading).trips == 2 * len(practice.trips())
    assert (reading.unit.column, reading.unit.per) == ("card", "day")
    assert "roughly how many taps there are;" in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("file", "preset", "said"),
    [("trips.csv", None, "no column of their stop"), ("taps.csv", "taps", "makes trips: leave one")],
)
def test_taps_are_counted_only_where_there_are_any(
    file: str, preset: str | None, said: str, town: Path
) -> None:
    with pytest.raises(InputError, match=said):
        init.write(town / "new.toml", town / file, town / "stops.csv", preset=preset, count_taps=True)


def test_sums_with_dates_alone_are_counted_by_day(town: Path) -> None:
    """Dates hold no time of day: the configuration asks for none, and all rows count."""
    (town / "daily.csv").write_text("date,tap,loc,count\n2026-03-02,on,S01,5\n2026-03-07,off,S02,4\n")
    reading = reading_of(config.read(_started(town, "daily.csv")))
    assert set(reading.universe.dimensions) == {"location", "day", "tap"}
    found = look(reading)
    assert (found.counted, found.trips, dict(found.by["day"])["saturday"]) == (2, 9, 4)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("trips.csv", "roughly how many trips there are;"),
        ("counts.csv", "roughly how many trips all counts add up to;"),
        ("taps.csv", "roughly how many trips there are (a tap-on and its tap-off are one trip);"),
    ],
)
def test_expected_trips_are_those_of_the_file(file: str, said: str, town: Path) -> None:
    """What is a trip depends on what a row is."""
    (line,) = (
        line
        for line in _started(town, file).read_text("utf-8").splitlines()
        if line.startswith("# expected_trips")
    )
    assert said in line


@pytest.mark.parametrize("file", ["trips.csv", "counts.csv", "taps.csv"])
def test_the_first_part_has_no_word_of_the_trade(file: str, town: Path) -> None:
    """What an officer decides comes first; how estimates are made stands below the line, and every commented setting can be used."""
    text = _started(town, file).read_text("utf-8")
    first, below = text.split("# You need not change anything below this line.")
    assert len(first.splitlines()) <= 65
    for word in ("posterior", "projection", "leaves", "prior", "solver", "mechanism"):
        assert word not in first
    for name in ("[data]", "[universe]", "[privacy]", "[about]"):
        assert f"\n{name}\n" in first
    assert "[mechanism]" in below
    assert "is one combination" in first.partition("[universe]")[0]


@pytest.mark.parametrize("stops", ["stops.csv", "bare.csv"])
def test_a_table_in_a_comment_is_named_where_its_keys_are_not(stops: str, town: Path) -> None:
    """Keys below a header that is still a comment belong to the table before, another feature or [about]: take away the #."""
    (town / "bare.csv").write_text("id\nS01\nS02\n")
    text = init.starter(town / "trips.csv", town / stops)
    number = 1 + text.splitlines().index("# [[feature]]")
    keys = text.replace('# name = "departures"\n# by =', 'name = "departures"\nby =')
    with pytest.raises(InputError, match=rf"remove the # before \[\[feature\]\] in line {number}$"):
        config.parse(keys)
    config.parse(keys.replace("# [[feature]]", "[[feature]]"))


def test_a_second_column_of_counts_is_named(town: Path) -> None:
    """Entries are counted, and exits beside them are not forgotten in silence."""
    (town / "both.csv").write_text("time,station,entries,exits\n08:00,S01,5,4\n")
    text = _started(town, "both.csv").read_text("utf-8")
    assert 'count = "entries"' in text
    assert "# 'exits' looks like counts too: it is not counted." in text


def test_a_column_that_may_be_of_cards_is_not_passed_over_in_silence(town: Path) -> None:
    """Where no column is known to tell people apart, those that nobody knows are named, and what to write."""
    (town / "odd.csv").write_text("chip,time,stop,tap\nC1,2026-03-02 08:00,S01,on\n")
    said = "\n".join(init.summary_lines(_started(town, "odd.csv")))
    assert "each tap is protected on its own; no column of cards or persons was found among chip" in said
    assert 'write unit = { person = "its name", max_trips = 4, per = "day" }' in said


@pytest.mark.parametrize(
    "name",
    ["cardid", "CardNumber", "userid", "SmartCardID", "traveler_id", "tarjeta", "kartennummer", "opal_card"],
)
def test_cards_have_many_names(town: Path, name: str) -> None:
    (town / "named.csv").write_text(f"{name},time,stop,tap\nC1,2026-03-02 08:00,S01,on\n")
    assert config.read(_started(town, "named.csv")).privacy.unit.person == name
