"""Ways to make a person count more than is stated, a day appear twice, or a charge disappear: each is tried, and none works."""

from __future__ import annotations

import datetime as dt
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from daily_city import CONFIG, trip_table, write_daily_city

import cbdp
from cbdp.app.cli import main
from cbdp.app.series import Ran, _alone, run_series
from cbdp.config import read
from cbdp.errors import InputError
from cbdp.forecast.calendar import check_over
from cbdp.ledger import Ledger
from cbdp.release.series import RUNNING_TOTALS

PLAIN = CONFIG.replace("epsilon = 1\n", "epsilon = 50\n").replace(
    "per_day = 3, per_30_days = 60", "per_day = 120"
)


def run(folder: Path, until: str) -> Ran:
    create = not (folder / "ledger.sqlite").exists()
    day = dt.date.fromisoformat(until)
    return run_series(
        read(folder / "cbdp.toml"), day, create_ledger=create, accept_dropped=True, accept_unusual=True
    )


def change(folder: Path, old: str, new: str) -> None:
    text = (folder / "cbdp.toml").read_text()
    assert text.count(old) == 1, old
    (folder / "cbdp.toml").write_text(text.replace(old, new))


def periods(folder: Path) -> list[str]:
    with Ledger.view(folder / "ledger.sqlite") as ledger:
        ledger.verify()
        return [c.part.period for c in ledger.charges() if c.part]


@pytest.fixture
def city(tmp_path: Path) -> Path:
    return write_daily_city(tmp_path, days=4, config=PLAIN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('id = "a daily city"', 'id = "a daily city"\nday_starts = "04:00"'),
        ('id = "a daily city"', 'id = "a daily city"\ntimezone = "America/Detroit"'),
        ('time = "at",', 'time = "at", day = "left",'),
    ],
)
def test_how_rows_get_their_day_cannot_change_under_way(city: Path, old: str, new: str) -> None:
    """A trip at two in the morning would be in two releases, one for each reading, and be paid for as if it were in one."""
    table = pq.read_table(city / "trips.parquet")
    pq.write_table(table.append_column("left", table["at"]), city / "trips.parquet")
    run(city, "2026-03-01")
    change(city, old, new)
    with pytest.raises(InputError, match=r"a trip could be counted on two days\. Export the rows as before"):
        run(city, "2026-03-02")
    change(city, "start = 2026-03-01", "start = 2026-03-01\nversion = 2")
    with pytest.raises(InputError, match="a trip could be counted on two days"):
        run(city, "2026-03-02")
    assert periods(city) == ["2026-03-01"]


def test_one_ledger_by_two_names_has_one_lock(city: Path) -> None:
    """A link to the ledger is the ledger: a run that came by the link waits for one that came by the name."""
    run(city, "2026-03-01")
    (city / "link.sqlite").symlink_to(city / "ledger.sqlite")
    named = read(city / "cbdp.toml")
    change(city, '"ledger.sqlite"', '"link.sqlite"')
    linked, entered = read(city / "cbdp.toml"), threading.Event()

    def wait() -> None:
        with _alone(linked):
            entered.set()

    other = threading.Thread(target=wait)
    with _alone(named):
        other.start()
        assert not entered.wait(0.3)
    other.join(60)
    assert entered.is_set()
    assert [p.name for p in run_series(linked, dt.date(2026, 3, 2)).released] == ["2026-03-02"]
    assert not run_series(named, dt.date(2026, 3, 2)).released
    assert periods(city) == ["2026-03-01", "2026-03-02"]


def test_two_configurations_with_one_name_release_a_day_once(city: Path, tmp_path: Path) -> None:
    """Another place for the releases makes no other release: the ledger knows the day by series and period."""
    run(city, "2026-03-01")
    (city / "elsewhere").mkdir()
    change(city, "releases/{period}", "elsewhere/{period}")
    ran = run(city, "2026-03-01")
    assert (ran.finished, ran.released) == (1, ())
    assert not list((tmp_path / "elsewhere").iterdir())


def test_rows_with_a_person_on_many_days_are_bounded_on_each(city: Path) -> None:
    """One card with a hundred trips a day has two in each release, also where rows of a day lie in several files."""
    one = trip_table(2, each=100, seed=3)
    one = one.set_column(one.column_names.index("card"), "card", pa.array([7] * one.num_rows))
    for n, part in enumerate((one.slice(0, 50), one.slice(50))):
        pq.write_table(part, city / f"part{n}.parquet")
    change(city, 'trips = "trips.parquet"', 'trips = ["part0.parquet", "part1.parquet"]')
    run(city, "2026-03-02")
    for day in ("2026-03-01", "2026-03-02"):
        assert cbdp.load(city / "releases" / day).total <= 4  # two, and noise of 50


def test_a_clock_that_goes_back_or_ahead_releases_nothing_twice_or_too_early(
    city: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A day that is not over is refused, with nothing spent; one that was made stays made."""
    run(city, "2026-03-03")
    assert run(city, "2026-03-01").released == ()
    before = periods(city)
    assert main(["series", "run", str(city / "cbdp.toml"), "--until", "2999-01-01", "--accept-dropped"]) == 2
    assert "2999-01-01 is not over: the last service day that is" in capsys.readouterr().err
    assert periods(city) == before
    config, night = read(city / "cbdp.toml"), dt.datetime(2026, 3, 5, 3, tzinfo=dt.UTC)
    change(city, 'id = "a daily city"', 'id = "a daily city"\nday_starts = "04:00"\ntimezone = "UTC"')
    check_over(config, dt.date(2026, 3, 3), night)
    with pytest.raises(InputError, match="2026-03-04 is not over"):
        check_over(read(city / "cbdp.toml"), dt.date(2026, 3, 4), night)


def test_a_day_that_is_corrected_after_its_release_is_bounded_on_each_of_its_days(city: Path) -> None:
    """Rows that move to another day count there too, as trips of that day: never more than the unit allows on either."""
    run(city, "2026-03-01")
    first = trip_table(1, each=100, seed=3)
    first = first.set_column(first.column_names.index("card"), "card", pa.array([7] * first.num_rows))
    moved = first.set_column(
        first.column_names.index("at"),
        "at",
        pa.array(first["at"].to_numpy() + np.timedelta64(1, "D")),
    )
    pq.write_table(moved, city / "trips.parquet")
    run(city, "2026-03-02")
    assert cbdp.load(city / "releases" / "2026-03-02").total <= 4


def test_more_trips_of_a_person_under_way_are_not_covered_by_a_span_that_is_paid(tmp_path: Path) -> None:
    """The noise of running totals is for two trips a day. Eight need another span; fewer are covered. So it is with another law."""
    text = PLAIN.replace("epsilon = 50", 'rho = 5\nlaw = "gaussian"').replace(
        "per_day = 120", "per_day = 999"
    )
    running = 'start = 2026-03-01\nrunning = { tables = ["zone"], periods = 9 }'
    city = write_daily_city(tmp_path, days=4, config=text.replace("start = 2026-03-01", running))
    run(city, "2026-03-01")
    for old, new in (
        ("max_trips = 2", "max_trips = 8"),
        ('{ person = "card", max_trips = 2, per = "day" }', '"trip"'),
        ('rho = 5\nlaw = "gaussian"', "epsilon = 1\ncurrency = 'rho'"),
    ):
        change(city, old, new)
        with pytest.raises(
            InputError, match=r"are paid for another unit or law|are charged from 2026-03-01 on"
        ):
            run(city, "2026-03-02")
        change(city, new, old)
    change(city, "max_trips = 2", "max_trips = 1")
    run(city, "2026-03-02")
    change(city, "max_trips = 1", "max_trips = 8")
    change(city, running, f"version = 2\n{running}")
    run(city, "2026-03-03")
    with Ledger.view(city / "ledger.sqlite") as ledger:
        assert [c.covers and c.covers.max_trips for c in ledger.charges() if c.what == RUNNING_TOTALS] == [
            2,
            8,
        ]
