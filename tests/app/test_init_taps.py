"""`cbdp init` for files of taps, and what it tells whoever ran it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from cbdp.app import config, init
from cbdp.app.guessing import guess
from cbdp.app.inspecting import look, reading_of
from cbdp.app.presets.taps import OFF, ON, spellings
from cbdp.datasets import practice
from cbdp.errors import InputError
from cbdp.trips import count


@pytest.fixture(scope="module")
def files() -> Mapping[str, str]:
    return practice.files()


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
    assert not set(spellings(ON)) & set(spellings(OFF))


def test_counts_by_place_are_released_by_place(town: Path) -> None:
    """A row has one place: no trip from stop to stop is made up."""
    (town / "by-stop.csv").write_text("time,stop,tap,count\n08:00,S01,on,12\n09:30,S02,off,9\n")
    reading = reading_of(config.read(_started(town, "by-stop.csv")))
    assert set(reading.universe.dimensions) == {"location", "time", "tap"}
    assert look(reading).trips == 21


def test_init_says_what_it_understood_and_what_is_left(town: Path) -> None:
    """Lines to edit are named with their number."""
    first, columns, edit, then = init.told(_started(town, "trips.csv"))
    assert first.endswith("cbdp.toml for a file of trips")
    assert columns.startswith("  origin is 'from_stop', destination is 'to_stop', time is 'start_time'")
    assert edit == "nothing has to be edited; look it over"
    assert "cbdp inspect" in then
    path = init.write(town / "without.toml", town / "trips.csv")
    number = 1 + [line.startswith("stops = ") for line in path.read_text("utf-8").splitlines()].index(True)
    assert init.told(path)[2] == f"you have to edit, marked EDIT: stops in line {number}"


def test_taps_without_a_header_are_refused(town: Path) -> None:
    """A first line with values is no header."""
    (town / "bare.csv").write_text("C1,2026-03-02 08:00,S01,on\n")
    with pytest.raises(InputError, match="does not look like column names"):
        init.write(town / "bare.toml", town / "bare.csv", town / "stops.csv")
