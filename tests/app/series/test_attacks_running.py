"""Ways to draw running totals, or to read days, for which the ledger holds no charge or too small a one: each worked once, and none does now."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from daily_city import CONFIG, write_daily_city

import cbdp
from cbdp.app import series
from cbdp.app.cli import main
from cbdp.app.series import run_series
from cbdp.config import read
from cbdp.errors import InputError
from cbdp.forecast.running import REDRAWN_SUMS
from cbdp.ledger import Charge, Ledger
from cbdp.privacy.continual import STRATEGIES
from cbdp.release.series import RUNNING_TOTALS

OPEN = CONFIG.replace("cap = { per_day = 3, per_30_days = 60 }", "cap = 100000")
SUMS = 'running = { tables = ["zone"], periods = 3 }'
DAILY = OPEN.replace("epsilon = 1", 'rho = 0.5\nlaw = "gaussian"').replace(
    "start = 2026-03-01", f"start = 2026-03-02\n{SUMS}"
)
WEEKLY = DAILY.replace('"daily"', '"weekly"')
BY_RELEASE = WEEKLY.replace('per = "day"', 'per = "release"')
GAP = "gaps = [2026-03-03]\n"


class Killed(BaseException):
    """The run ends here, almost as if its process were killed: this is not taken for a release that failed."""


def run(folder: Path, until: str) -> None:
    create = not (folder / "ledger.sqlite").exists()
    day = dt.date.fromisoformat(until)
    run_series(
        read(folder / "cbdp.toml"), day, create_ledger=create, accept_dropped=True, accept_unusual=True
    )


def killed(folder: Path, until: str, owner: Any, name: str, *, after: bool = True) -> None:
    """A run that dies in its first call of a function: after what it does, or before."""
    real: Callable[..., Any] = getattr(owner, name)

    def dies(*args: Any, **options: Any) -> None:
        if after:
            real(*args, **options)
        raise Killed

    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(owner, name, dies)
        with pytest.raises(Killed):
            run(folder, until)


def change(folder: Path, old: str, new: str) -> None:
    text = (folder / "cbdp.toml").read_text()
    assert text.count(old) == 1, old
    (folder / "cbdp.toml").write_text(text.replace(old, new))


def charges(folder: Path, what: str | None = None) -> list[Charge]:
    with Ledger.view(folder / "ledger.sqlite") as ledger:
        ledger.verify()
        return [c for c in ledger.charges() if what in (None, c.what)]


def test_weeks_cannot_be_moved_within_a_span(tmp_path: Path) -> None:
    """The third week would end two days after the last one that the span was charged for; as it was, it is made."""
    city = write_daily_city(tmp_path, days=28, config=WEEKLY)
    run(city, "2026-03-15")
    before = charges(city)
    change(city, "start = 2026-03-02", "start = 2026-03-18")
    with pytest.raises(
        InputError,
        match=r"charged to 2026-03-22 .* \(2026-03-18 to 2026-03-24\) is none of them: keep start as it was",
    ):
        run(city, "2026-03-24")
    assert charges(city) == before
    change(city, "start = 2026-03-18", "start = 2026-03-02")
    run(city, "2026-03-22")
    assert len(charges(city, RUNNING_TOTALS)) == 1


@pytest.mark.parametrize(
    ("owner", "name", "after"),
    [(series, "release_in_series", True), (Ledger, "released", False)],
    ids=["the sums are drawn", "the folder is written"],
)
def test_a_gap_stays_one_once_later_sums_may_be_drawn(
    tmp_path: Path, owner: Any, name: str, after: bool
) -> None:
    """Else the day that was left out takes the place of the one that died, and what is paid again is paid for other days."""
    city = write_daily_city(tmp_path, days=6, config=DAILY.replace(SUMS, GAP + SUMS))
    run(city, "2026-03-02")
    killed(city, "2026-03-04", owner, name, after=after)
    assert (city / "releases" / "2026-03-04").exists() == (owner is Ledger)
    before = charges(city)
    change(city, GAP, "")
    with pytest.raises(
        InputError, match=r"2026-03-03 is before 2026-03-04, .* List 2026-03-03 in series\.gaps"
    ):
        run(city, "2026-03-04")
    assert charges(city) == before
    change(city, SUMS, GAP + SUMS)
    run(city, "2026-03-04")
    found = cbdp.load(city / "releases" / "2026-03-04").running
    assert found is not None
    assert found.number == 2
    assert len(charges(city, REDRAWN_SUMS)) == (owner is series)


@pytest.mark.parametrize(
    ("config", "old", "new", "until", "paid"),
    [
        (BY_RELEASE, 'per = "release"', 'per = "day"', "2026-03-08", ("day", "weekly", "2026-03-22")),
        (DAILY, 'calendar = "daily"', 'calendar = "weekly"', "2026-03-08", ("day", "weekly", "2026-03-22")),
        (DAILY, SUMS, GAP + SUMS, "2026-03-02", ("day", "", "2026-03-05")),
    ],
    ids=["per", "calendar", "last day"],
)
def test_a_span_that_was_charged_does_not_pay_for_another(
    tmp_path: Path, config: str, old: str, new: str, until: str, paid: tuple[str, str, str]
) -> None:
    """A run died after the charge of a span. What begins on the same day for another unit, calendar or last day is charged anew."""
    city = write_daily_city(tmp_path, days=8, config=config)
    killed(city, until, Ledger, "reserve")
    (first,) = charges(city)
    change(city, old, new)
    run(city, until)
    held, second = charges(city, RUNNING_TOTALS)
    assert held == first
    assert second.request != first.request
    covers = second.covers
    assert covers is not None
    assert (covers.per, covers.calendar, str(covers.last)) == paid


def test_sums_drawn_again_cost_what_the_larger_bound_of_earlier_days_may_change(tmp_path: Path) -> None:
    """Two days were counted with eight trips of a person. With one on the third, a draw that holds all three still costs as for eight."""
    city = write_daily_city(tmp_path, days=4, config=DAILY.replace("max_trips = 2", "max_trips = 8"))
    run(city, "2026-03-03")
    change(city, "max_trips = 8", "max_trips = 1")
    killed(city, "2026-03-04", series, "release_in_series")
    run(city, "2026-03-04")
    (again,) = charges(city, REDRAWN_SUMS)
    (table,) = cbdp.load(city / "releases" / "2026-03-04").manifest["running"]["tables"]
    squares = sum(int(row.max()) ** 2 for row in STRATEGIES["square root"](3).rows_ending_in(2))
    price = Fraction(8**2 * squares) / (2 * Fraction(table["scale"]["exact"]) ** 2)
    assert float(again.amount.rho) == pytest.approx(float(price), rel=1e-6)
    assert again.amount.rho >= price


def test_a_release_without_dates_reads_days_as_its_ledger_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is for a day of a person, and may be about any day: with another start of the day it is refused, with the same it is made."""
    city = write_daily_city(tmp_path, days=2, config=OPEN)
    run(city, "2026-03-01")
    single = OPEN.partition("[series]")[0] + '[output]\npath = "single"\n'
    (city / "one.toml").write_text(single.replace("id = ", 'day_starts = "04:00"\nid = '))
    assert main(["release", str(city / "one.toml"), "--accept-dropped"]) == 2
    assert "days from 00:00 on, and here it is read" in capsys.readouterr().err
    assert len(charges(city)) == 1
    (city / "one.toml").write_text(single)
    assert main(["release", str(city / "one.toml"), "--accept-dropped"]) == 0
    assert len(charges(city)) == 2


def test_the_zone_of_a_column_is_part_of_how_days_are_read(tmp_path: Path) -> None:
    """Two files say their zones by the type of the times alone: one evening in Detroit is the next day in UTC."""
    city = write_daily_city(tmp_path, days=3, config=OPEN)
    trips = pq.read_table(city / "trips.parquet")
    place = trips.column_names.index("at")
    for name, zone in (("a", "UTC"), ("b", "America/Detroit")):
        at = trips["at"].cast(pa.timestamp("s")).cast(pa.timestamp("s", tz=zone))
        pq.write_table(trips.set_column(place, "at", at), city / f"{name}.parquet")
    whole = OPEN.replace('start = "06:00", end = "12:00"', 'start = "00:00", end = "24:00"')
    first = whole.replace("[series]", '[series]\nname = "a"').replace("trips.parquet", "a.parquet")
    (city / "cbdp.toml").write_text(first)
    run(city, "2026-03-02")
    other = first.replace('"a"', '"b"').replace("a.parquet", "b.parquet").replace("releases/", "others/")
    (city / "others").mkdir()
    (city / "cbdp.toml").write_text(other)
    with pytest.raises(InputError, match=r"the series 'a' of near days.*times UTC.*times America/Detroit"):
        run(city, "2026-03-02")
    days = [c.covers.days for c in charges(city) if c.covers]
    assert days == ["of column 'at' with time stamps that have a zone, times UTC, days from 00:00 on"] * 2
