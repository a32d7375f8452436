"""Releases of one ledger read days alike: else one day of a person would be two days of another release, and cost more than is said."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from daily_city import CONFIG, write_daily_city

from cbdp.app.plan import plan
from cbdp.app.series import run_series
from cbdp.config import read
from cbdp.errors import InputError
from cbdp.forecast.continuity import COLUMN_KINDS, alike
from cbdp.ledger import ChargeScope, Ledger

NIGHT = 'day_starts = "04:00"'
SHARED = CONFIG.replace('id = "a daily city"', 'id = "a daily city"\nriders = "everybody"')


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A series that has released two days."""
    folder = tmp_path_factory.mktemp("begun")
    write_daily_city(folder, days=12, config=SHARED)
    run_series(read(folder / "cbdp.toml"), dt.date(2026, 3, 2), create_ledger=True)
    return folder


@pytest.fixture
def city(begun: Path, tmp_path: Path) -> Path:
    """A copy of it, for one test."""
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    return tmp_path


def other(city: Path, *changes: tuple[str, str], start: str = "2026-03-01") -> Path:
    """A second series of the same ledger."""
    text = SHARED.replace("start = 2026-03-01", f'start = {start}\nname = "other"')
    for old, new in (("releases/", "others/"), *changes):
        assert old in text, old
        text = text.replace(old, new)
    (city / "others").mkdir(exist_ok=True)
    (city / "other.toml").write_text(text)
    return city / "other.toml"


def charged(city: Path) -> int:
    with Ledger.view(city / "ledger.sqlite") as ledger:
        return len(ledger.charges())


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("id = ", f"{NIGHT}\nid = ", "days from 04:00 on"),
        ("id = ", 'timezone = "Asia/Tokyo"\nid = ', "times Asia/Tokyo"),
        ('time = "at"', 'time = "at", day = "ended"', "of column 'ended'"),
    ],
)
def test_other_days_are_refused_before_a_row_is_read(
    city: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, says: str
) -> None:
    """Another start of the day, another zone, another column of the same trips: one line with the cure, and nothing is counted."""
    held = pq.read_table(city / "trips.parquet")
    pq.write_table(held.append_column("ended", held["at"]), city / "trips.parquet")
    config = read(other(city, (old, new)))
    monkeypatch.setattr("cbdp.app.publish.count", _never)
    monkeypatch.setattr("cbdp.app.series.count", _never)
    with pytest.raises(
        InputError, match=rf"the series 'series' of near days.*{says}.*Write the same data.timezone"
    ):
        run_series(config, dt.date(2026, 3, 1))
    assert charged(city) == 2


def _never(*_: object, **__: object) -> None:
    raise AssertionError("rows were counted")


def test_what_reads_days_alike_or_lies_apart_is_made(city: Path) -> None:
    """The same reading shares days; another one may come when three days lie between; then the first may not come near it."""
    assert len(run_series(read(other(city)), dt.date(2026, 3, 1)).released) == 1
    night = other(
        city, ("id = ", f"{NIGHT}\nid = "), ('name = "other"', 'name = "night"'), start="2026-03-06"
    )
    assert len(run_series(read(night), dt.date(2026, 3, 6)).released) == 1
    with pytest.raises(InputError, match="the series 'night' of near days"):
        run_series(read(city / "cbdp.toml"), dt.date(2026, 3, 3))
    assert charged(city) == 4


def test_other_trips_of_the_same_riders_are_compared_by_zone_and_start(city: Path) -> None:
    """Their columns have names of their own; times as they are written say nothing of a zone."""
    bikes = ('id = "a daily city"', 'id = "bikes"')
    zoned = (bikes, ("id = ", 'timezone = "America/Detroit"\nid = '))
    assert plan(read(other(city, *zoned))).covers is not None
    with pytest.raises(InputError, match=r"days from 04:00 on"):
        plan(read(other(city, bikes, ("id = ", f"{NIGHT}\nid = "))))
    assert alike(*(f"of column {c!r}, times {z}, days from 00:00 on" for c, z in (("a", "UTC"), ("b", "UTC"))), same_data=False)  # fmt: skip
    assert not alike(*(f"of column 'a', times {z}, days from 00:00 on" for z in ("UTC", "Asia/Tokyo")), same_data=False)  # fmt: skip


def test_releases_of_earlier_versions_are_read_from_their_folders(
    city: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their charges do not say how days are read; their manifests do."""
    stated = ChargeScope.fields
    monkeypatch.setattr(
        ChargeScope, "fields", lambda self: {n: v for n, v in stated(self).items() if n != "days"}
    )
    old = city / "old"
    old.mkdir()
    write_daily_city(old, days=3, config=SHARED)
    run_series(read(old / "cbdp.toml"), dt.date(2026, 3, 1), create_ledger=True)
    monkeypatch.undo()
    with Ledger.view(old / "ledger.sqlite") as ledger:
        assert [charge.covers and charge.covers.days for charge in ledger.charges()] == [""]
    with pytest.raises(InputError, match="the series 'series' of near days"):
        plan(read(other(old, ("id = ", f"{NIGHT}\nid = "))))


def test_every_kind_of_column_can_be_read_back() -> None:
    """A ledger's text on how days are read names what a column holds; whatever counting calls it is understood later."""
    from cbdp.counting import columns

    named = {columns.TEXT, columns.WHOLE, columns.REAL, columns.BOOLEAN, columns.DATE, columns.TIME}
    assert {*named, columns.NULLS, columns.UNREADABLE} <= set(COLUMN_KINDS)
