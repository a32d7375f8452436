"""A series stays what it is: universe, features and periods of earlier releases bind the later ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from daily_city import write_daily_city

import cbdp
from cbdp.app.cli import main
from cbdp.ledger import Ledger


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A series with two releases, and beside it a copy to start again from."""
    folder = write_daily_city(tmp_path_factory.mktemp("begun"), days=20)
    assert series(folder, "2026-03-02", "--create-ledger") == 0
    shutil.copytree(folder, folder.with_name(f"{folder.name}-kept"))
    return folder


@pytest.fixture
def city(begun: Path) -> Path:
    """The series as it was begun, at its own path: the ledger names the folders of releases."""
    shutil.rmtree(begun)
    return shutil.copytree(begun.with_name(f"{begun.name}-kept"), begun)


def series(folder: Path, until: str, *options: str) -> int:
    return main(["series", "run", str(folder / "cbdp.toml"), "--until", until, *options])


def change(folder: Path, old: str, new: str) -> None:
    text = (folder / "cbdp.toml").read_text()
    assert text.count(old) == 1, old
    (folder / "cbdp.toml").write_text(text.replace(old, new))


def refused(folder: Path, capsys: pytest.CaptureFixture[str], until: str = "2026-03-03") -> str:
    """The one line of a run that spends nothing."""
    capsys.readouterr()
    before = (folder / "ledger.sqlite").read_bytes()
    assert series(folder, until) == 2
    assert (folder / "ledger.sqlite").read_bytes() == before
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("cbdp:")]
    assert len(lines) == 1
    return lines[0]


def test_a_new_stop_is_a_new_version(city: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line names the stop; with version = 2 the series goes on, and does not go back."""
    stops = city / "stops.csv"
    stops.write_text(stops.read_text() + "S9,stop 9,42.3,-83.6,south\n")
    said = refused(city, capsys)
    assert (
        "changed since the first release of version 1 of the series: origin has 1 value ('S9') more" in said
    )
    assert "destination has 1 value ('S9') more. Undo that, or write version = 2" in said
    change(city, "start = 2026-03-01", "start = 2026-03-01\nversion = 2")
    assert series(city, "2026-03-03") == 0
    with Ledger.view(city / "ledger.sqlite") as ledger:
        assert [c.part.version for c in ledger.charges() if c.part] == [1, 1, 2]
    found = cbdp.load(city / "releases" / "2026-03-03").series
    assert found is not None
    assert found.changes == ("origin has 1 value ('S9') more", "destination has 1 value ('S9') more")
    assert found.json()["changes"] == list(found.changes)
    change(city, "version = 2", "version = 1")
    assert "version is 1, and the last release is of version 2: write 2, or 3" in refused(
        city, capsys, "2026-03-04"
    )
    change(city, "version = 1", "version = 4")
    assert "version is 4, and the last release is of version 2" in refused(city, capsys, "2026-03-04")


def test_another_table_is_another_version(city: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables that are new, gone or by other attributes are named."""
    change(city, "[privacy]\n", '[[feature]]\nname = "hours"\nby = ["time"]\n\n[privacy]\n')
    assert "the table 'hours' is new" in refused(city, capsys)
    change(city, 'by = ["origin.zone", "destination.zone", "time"]', 'by = ["origin.zone"]')
    assert "the table 'zone' is by origin.zone, and was by destination.zone, origin.zone, time" in refused(
        city, capsys
    )


def test_overlapping_periods_are_refused(city: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Weeks over days that were released: another series, under another name."""
    change(city, 'calendar = "daily"', 'calendar = "weekly"')
    said = refused(city, capsys, "2026-03-07")
    assert (
        "the period week-of-2026-03-01 (2026-03-01 to 2026-03-07) overlaps 2026-03-01 (2026-03-01 to 2026-03-01)"
        in said
    )
    change(city, "start = 2026-03-01", 'start = 2026-03-01\nname = "weeks"')
    change(city, "releases/{period}", "releases/{period}-weeks")
    assert series(city, "2026-03-07") == 0


def test_what_changed_is_said_also_if_the_releases_are_gone(
    city: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ledger alone knows that something did."""
    (city / "releases").rename(city / "moved")
    (city / "releases").mkdir()
    stops = city / "stops.csv"
    stops.write_text(stops.read_text() + "S9,stop 9,42.3,-83.6,south\n")
    assert "of the series: the universe or the features. Undo that" in refused(city, capsys)


def test_a_single_release_of_a_series_is_refused(city: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And a series of a configuration without one."""
    assert main(["release", str(city / "cbdp.toml")]) == 2
    assert "describes a series: run cbdp series run" in capsys.readouterr().err
    text = (city / "cbdp.toml").read_text()
    start = text.index("[series]")
    (city / "cbdp.toml").write_text(text[:start] + text[text.index("[output]") :])
    assert "describes one release: add [series]" in refused(city, capsys)


def _rename(city: Path, old: str, new: str) -> None:
    """In the public list of stops and in the trips of all days."""
    stops = city / "stops.csv"
    stops.write_text(stops.read_text().replace(f"{old},", f"{new},"))
    table = pq.read_table(city / "trips.parquet")
    for column in ("from", "to"):
        values = [new if v == old else v for v in table[column].to_pylist()]
        table = table.set_column(table.column_names.index(column), column, pa.array(values))
    pq.write_table(table, city / "trips.parquet")


def test_a_stop_with_another_name_is_the_same_stop(city: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The map is stated in the manifests of the new version, and days of both versions are compared by it."""
    _rename(city, "S3", "S3b")
    (city / "names.csv").write_text("old,new\nS3,S3b\n")
    change(city, "start = 2026-03-01", 'start = 2026-03-01\nversion = 2\nrenamed = { 2 = "names.csv" }')
    assert series(city, "2026-03-04") == 0
    found = cbdp.load(city / "releases" / "2026-03-04").series
    assert found is not None
    assert found.renamed == (("S3", "S3b"),)
    assert found.changes == ("1 value ('S3') with another name",)
    assert cbdp.load(city / "releases" / "2026-03-04").manifest["series"]["renamed"] == {"S3": "S3b"}
    capsys.readouterr()
    spans = ["2026-03-01..2026-03-02", "2026-03-03..2026-03-04"]
    asked = ["series", "compare", str(city / "cbdp.toml"), *spans, "--by", "origin", "--format", "json"]
    assert main([*asked, "--until", "2026-03-04"]) == 0
    told = json.loads(capsys.readouterr().out)
    rows = told.get("rows", told)
    assert "S3b" in json.dumps(rows)
    assert '"S3"' not in json.dumps(rows)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("old,new\nS9,S3b\n", "the version before has no 'S9'"),
        ("old,new\nS3,S7\n", "'S7', which is not there now"),
        ("old,new\nS3,S4\n", "'S4', which was there before"),
        ("old,new\nS3,S3b\nS3,S8\n", "names 'S3' a second time"),
        ("from,to\nS3,S3b\n", "it needs the columns old and new"),
    ],
)
def test_a_map_that_does_not_fit_is_refused(
    city: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    """One line, nothing spent."""
    _rename(city, "S3", "S3b")
    (city / "names.csv").write_text(text)
    change(city, "start = 2026-03-01", 'start = 2026-03-01\nversion = 2\nrenamed = { 2 = "names.csv" }')
    assert says in refused(city, capsys)


def test_persons_are_told_apart_by_one_column(city: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a number for every row as the person, a card could have any number of trips on days that the account states for one with two."""
    trips = pq.read_table(city / "trips.parquet")
    pq.write_table(trips.append_column("row", pa.array(range(len(trips)))), city / "trips.parquet")
    text = (city / "cbdp.toml").read_text()
    (city / "cbdp.toml").write_text(text.replace('person = "card"', 'person = "row"'))
    said = refused(city, capsys)
    assert "people were told apart by column 'card', and would now be by 'row'" in said
    assert "begin a series of another name" in said
