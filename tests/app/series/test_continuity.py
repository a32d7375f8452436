"""A series stays what it is: universe, features and periods of earlier releases bind the later ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from daily_city import write_daily_city

import cbdp
from cbdp.app.cli import main
from cbdp.privacy.ledger import Ledger


@pytest.fixture
def city(tmp_path: Path) -> Path:
    folder = write_daily_city(tmp_path, days=20)
    assert series(folder, "2026-03-02", "--create-ledger") == 0
    return folder


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
