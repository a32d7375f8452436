"""Running totals of weekly and monthly releases: one charge for a span, weeks and months that add up, prices as stated."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from daily_city import CONFIG, write_daily_city

import cbdp
from cbdp.app.cli import main
from cbdp.app.series import run_series, status_of
from cbdp.config import read
from cbdp.errors import CbdpError
from cbdp.ledger import Charge, Ledger
from cbdp.ledger.windows import relative_cost_of_steps
from cbdp.release.series import RUNNING_TOTALS

WEEKLY = (
    CONFIG.replace("epsilon = 1", 'rho = 0.5\nlaw = "gaussian"')
    .replace("cap = { per_day = 3, per_30_days = 60 }", "cap = 100000")
    .replace('"daily"', '"weekly"')
    .replace("start = 2026-03-01", 'start = 2026-03-02\nrunning = { tables = ["zone"], periods = 3 }')
)
MONTHLY = WEEKLY.replace('"weekly"', '"monthly"').replace("start = 2026-03-02", "start = 2026-03-01")


def run(folder: Path, until: str) -> list[cbdp.Release]:
    create = not (folder / "ledger.sqlite").exists()
    day = dt.date.fromisoformat(until)
    run_series(read(folder / "cbdp.toml"), day, create_ledger=create, accept_dropped=True)
    return [cbdp.load(p) for p in sorted((folder / "releases").iterdir())]


def spans(folder: Path) -> list[Charge]:
    with Ledger.view(folder / "ledger.sqlite") as ledger:
        ledger.verify()
        return [c for c in ledger.charges() if c.what == RUNNING_TOTALS]


def check_totals(folder: Path, made: list[cbdp.Release]) -> None:
    added = np.cumsum([release.counts("zone") for release in made], axis=0)
    for place, total in zip(sorted((folder / "releases").iterdir()), added, strict=True):
        held = pq.read_table(place / "running" / "zone.parquet")
        assert held["running total"].to_pylist() == total.tolist()


def test_weeks_add_up_and_days_of_a_person_are_priced(tmp_path: Path) -> None:
    """Three weeks, one charge; a week of a person who is protected by the day is seven periods in one release. An audit agrees."""
    city = write_daily_city(tmp_path, days=29, config=WEEKLY)
    made = run(city, "2026-03-22")
    assert [release.running and release.running.number for release in made] == [1, 2, 3]
    check_totals(city, made)
    (span,) = spans(city)
    assert span.covers is not None
    assert (span.covers.per, span.covers.calendar, span.covers.periods) == ("day", "weekly", 3)
    assert (span.covers.first, span.covers.last) == (dt.date(2026, 3, 2), dt.date(2026, 3, 22))
    person = status_of(read(city / "cbdp.toml"), dt.date(2026, 3, 22)).person
    assert person is not None
    own, sums = 0.5, float(span.amount.rho)
    for days, steps in ((1, (1,)), (7, (7,)), (30, (7, 7, 7))):
        stated = sum(n**2 for n in steps) * own + sums * float(
            relative_cost_of_steps("square root", 3, steps, "rho")
        )
        assert float(person.window(days).amount.rho) == pytest.approx(stated, rel=1e-6)
    place = city / "releases" / "2026-W12"
    assert main(["audit", str(place), "--ledger", str(city / "ledger.sqlite")]) == 0
    run(city, "2026-03-29")
    assert [c.covers and c.covers.first for c in spans(city)] == [dt.date(2026, 3, 2), dt.date(2026, 3, 23)]


@pytest.mark.parametrize("per", ["month", "release"])
def test_months_add_up_for_a_unit_of_a_month(tmp_path: Path, per: str) -> None:
    """Each release is one period of the unit, whatever the unit calls it; a window that cuts a month is strictly a group of two."""
    text = MONTHLY.replace('per = "day"', f'per = "{per}"').replace("max_trips = 2", "max_trips = 20")
    city = write_daily_city(tmp_path, days=70, config=text)
    made = run(city, "2026-04-30")
    check_totals(city, made)
    (span,) = spans(city)
    person = status_of(read(city / "cbdp.toml"), dt.date(2026, 4, 30)).person
    assert person is not None
    own, sums = 0.5, float(span.amount.rho)
    two = sums * float(relative_cost_of_steps("square root", 3, (1, 1), "rho"))
    assert float(person.window(1).amount.rho) == pytest.approx(own + sums, rel=1e-6)
    assert float(person.window(7).amount.rho) == pytest.approx(2 * own + two, rel=1e-6)
    assert float(person.window(1).strict.rho) == pytest.approx(4 * (own + sums), rel=1e-6)
    assert float(person.window(None).amount.rho) == pytest.approx(
        2 * own + sums * float(relative_cost_of_steps("square root", 3, (1, 1, 1), "rho")), rel=1e-6
    )


def test_gaps_that_come_later_are_refused_within_a_span(tmp_path: Path) -> None:
    """The price of days is for weeks that are neighbours; gaps that are known beforehand make it dearer instead. A span of a year by default."""
    city = write_daily_city(tmp_path, days=29, config=WEEKLY.replace(", periods = 3", ""))
    run(city, "2026-03-08")
    (span,) = spans(city)
    assert span.covers is not None
    assert (span.covers.periods, span.covers.last) == (52, dt.date(2027, 2, 28))
    config = city / "cbdp.toml"
    gap = 'gaps = [{ first = 2026-03-09, last = 2026-03-15 }]\nrunning = { tables = ["zone"]'
    config.write_text(config.read_text().replace('running = { tables = ["zone"]', gap))
    with pytest.raises(CbdpError, match=r"charged for releases without gaps, and 2026-W12 would be number 2"):
        run(city, "2026-03-22")
    assert len(spans(city)) == 1
    config.write_text(config.read_text().replace("start = 2026-03-02", "start = 2026-03-02\nversion = 2"))
    run(city, "2026-03-22")
    assert len(spans(city)) == 2


def test_check_says_what_weeks_and_days_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is charged, for the calendar at hand."""
    city = write_daily_city(tmp_path, days=8, config=WEEKLY.replace(", periods = 3", ""))
    assert main(["check", str(city / "cbdp.toml"), "--all"]) == 0
    said = capsys.readouterr().out
    assert "a span of 52 releases" in said
    assert "for 7 days in a row 49 times as much" in said
    assert "a week, ±" in said
