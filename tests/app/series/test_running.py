"""Running a series: every period once, from its own rows, whatever is asked for in whatever order."""

from __future__ import annotations

import datetime as dt
import re
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from daily_city import CONFIG, trip_table, write_daily_city

import cbdp
from cbdp.app.cli import main
from cbdp.app.series import Ran, SeriesStoppedError, run_series, status_of
from cbdp.config import read
from cbdp.errors import BudgetError, CbdpError, InputError
from cbdp.ledger import Ledger


@pytest.fixture
def city(tmp_path: Path) -> Path:
    return write_daily_city(tmp_path, days=8)


def run(folder: Path, until: str, **options: object) -> Ran:
    day = dt.date.fromisoformat(until)
    create = not (folder / "ledger.sqlite").exists()
    return run_series(read(folder / "cbdp.toml"), day, **({"create_ledger": create} | options))  # type: ignore[arg-type]


def change(folder: Path, old: str, new: str) -> None:
    text = (folder / "cbdp.toml").read_text()
    assert text.count(old) == 1, old
    (folder / "cbdp.toml").write_text(text.replace(old, new))


def charges(folder: Path) -> list[tuple[str, str]]:
    with Ledger.view(folder / "ledger.sqlite") as ledger:
        ledger.verify()
        return [(c.part.period, c.part.stage) for c in ledger.charges() if c.part]


def test_what_is_due_is_made_once(city: Path) -> None:
    """A second run makes what is new, a third nothing; the ledger, the folders and the manifests say the same."""
    assert len(run(city, "2026-03-02").released) == 2
    assert run(city, "2026-03-03").released == (city / "releases" / "2026-03-03",)
    again = run(city, "2026-03-03")
    assert (again.due, again.released, again.finished) == (3, (), 3)
    assert run(city, "2026-02-01") == Ran(0, (), 0)
    assert charges(city) == [(f"2026-03-0{n}", "final") for n in (1, 2, 3)]
    release = cbdp.load(city / "releases" / "2026-03-02")
    assert release.series is not None
    assert release.manifest["series"] == release.series.json()
    assert release.series.json() == {
        "name": "series",
        "version": 1,
        "calendar": "daily",
        "period": "2026-03-02",
        "first": "2026-03-02",
        "last": "2026-03-02",
        "stage": "final",
        "days": "of column 'at' with time stamps without a zone, times as they are written, days from 00:00 on",
    }


def test_a_release_is_of_its_own_rows(city: Path) -> None:
    """At a large ε each day shows its own number of trips; rows of other days do not reach it."""
    tables = [trip_table(1, each=200 * n, seed=n, first=f"2026-03-0{n}") for n in (1, 2, 3)]
    pq.write_table(pa.concat_tables(tables), city / "trips.parquet")
    change(city, 'unit = { person = "card", max_trips = 2, per = "day" }', 'unit = "trip"')
    change(city, "epsilon = 1", "epsilon = 50")
    change(city, "per_day = 3, per_30_days = 60", "per_day = 50")
    run(city, "2026-03-03")
    for n in (1, 2, 3):
        true = sum(
            a != b
            for a, b in zip(tables[n - 1]["from"].to_pylist(), tables[n - 1]["to"].to_pylist(), strict=True)
        )
        assert abs(int(cbdp.load(city / "releases" / f"2026-03-0{n}").counts("total")[0]) - true) <= 3


def test_rows_that_come_late_are_in_no_release(city: Path) -> None:
    """The file changes, the closed period does not: no second charge, no other bytes."""
    run(city, "2026-03-01")
    before = (city / "releases" / "2026-03-01" / "manifest.json").read_bytes()
    table = pq.read_table(city / "trips.parquet")
    pq.write_table(
        pa.concat_tables([table, trip_table(2, each=500).cast(table.schema)]), city / "trips.parquet"
    )
    assert [p.name for p in run(city, "2026-03-02", accept_dropped=True).released] == ["2026-03-02"]
    assert (city / "releases" / "2026-03-01" / "manifest.json").read_bytes() == before


def test_the_curator_is_told_of_late_rows_and_nobody_else(
    city: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """How many came for which period, in the private inspection; no run and no status speaks of them."""
    run(city, "2026-03-02")
    main(["inspect", str(city / "cbdp.toml")])
    assert (
        "2 periods are closed: rows that come for them now are in no release\n  no rows have come"
        in capsys.readouterr().out
    )
    table = pq.read_table(city / "trips.parquet")
    pq.write_table(
        pa.concat_tables([table, trip_table(1, each=77).cast(table.schema)]), city / "trips.parquet"
    )
    main(["inspect", str(city / "cbdp.toml")])
    assert re.search(r"2026-03-01 +120 +197 +77", capsys.readouterr().out)
    assert main(["series", "run", str(city / "cbdp.toml"), "--until", "2026-03-03"]) == 0
    main(["series", "status", str(city / "cbdp.toml"), "--until", "2026-03-03"])
    told = capsys.readouterr()
    assert "77" not in told.out.replace("2026-03-", "")
    assert "late" not in told.err
    assert (city / "ledger.sqlite.rows-internal.json").stat().st_mode & 0o077 == 0


def test_preliminary_and_final_are_two_charges(city: Path) -> None:
    """With the shares that were stated; both are found again."""
    stages = '\nrevise = "once"\nshares = { preliminary = "1/4", final = "3/4" }\nfinal_after = 2'
    change(city, "start = 2026-03-01", "start = 2026-03-01" + stages)
    for day in ("2026-03-01", "2026-03-02", "2026-03-03"):
        run(city, day)
    assert charges(city) == [
        ("2026-03-01", "preliminary"),
        ("2026-03-02", "preliminary"),
        ("2026-03-01", "final"),
        ("2026-03-03", "preliminary"),
    ]
    with Ledger.view(city / "ledger.sqlite") as ledger:
        assert [float(c.epsilon) for c in ledger.charges()] == [0.25, 0.25, 0.75, 0.25]
    assert not run(city, "2026-03-03").released
    assert sorted(p.name for p in (city / "releases").iterdir()) == [
        "2026-03-01",
        "2026-03-01-preliminary",
        "2026-03-02-preliminary",
        "2026-03-03-preliminary",
    ]
    found = cbdp.load(city / "releases" / "2026-03-01-preliminary").series
    assert found is not None
    assert found.stage == "preliminary"
    run(city, "2026-03-06")  # the preliminary release of the 4th is not made any more: the final one is due
    assert charges(city)[4:] == [(f"2026-03-0{n}", "final") for n in (2, 3)] + [
        ("2026-03-05", "preliminary"),
        ("2026-03-04", "final"),
        ("2026-03-06", "preliminary"),
    ]
    assert not status_of(read(city / "cbdp.toml"), dt.date(2026, 3, 6)).due


def test_two_runs_at_once_make_every_release_once(city: Path) -> None:
    """Both end well, and between them they made all."""
    run(city, "2026-03-01")
    ran: list[Ran] = []
    threads = [threading.Thread(target=lambda: ran.append(run(city, "2026-03-05"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.name for one in ran for path in one.released) == [
        f"2026-03-0{n}" for n in (2, 3, 4, 5)
    ]
    assert charges(city) == [(f"2026-03-0{n}", "final") for n in (1, 2, 3, 4, 5)]


def test_what_another_run_makes_meanwhile_is_not_missing(city: Path) -> None:
    """A second run comes in while the first one begins: it makes all releases, and the first one says so."""
    run(city, "2026-03-01")
    said: list[str] = []

    def say(text: str) -> None:
        if not said:
            assert len(run(city, "2026-03-03").released) == 2
        said.append(text)

    assert run(city, "2026-03-03", say=say) == Ran(3, (), 3)
    assert said[1::2] == [f"2026-03-0{n}: another run has made it meanwhile" for n in (2, 3)]


def test_trips_may_lie_in_a_file_for_each_period(city: Path) -> None:
    """{period} in data.trips; a file that is missing stops before anything is spent."""
    for n in (1, 2):
        pq.write_table(trip_table(1, seed=n, first=f"2026-03-0{n}"), city / f"trips-2026-03-0{n}.parquet")
    change(city, 'trips = "trips.parquet"', 'trips = "trips-{period}.parquet"')
    assert len(run(city, "2026-03-02").released) == 2
    with pytest.raises(CbdpError, match=r"trips-2026-03-03\.parquet"):
        run(city, "2026-03-03")
    assert len(charges(city)) == 2


def test_a_cap_stops_the_series_before_it_is_exceeded(city: Path) -> None:
    """The days that fit are made; the line says which window is full and when the next fits, and that something was spent."""
    change(city, "per_day = 3, per_30_days = 60", "per_7_days = 3")
    full = r"in the 7 days .* does not fit: 0 of the cap 3 for 7 days .* from 2026-03-08 on"
    with pytest.raises(
        SeriesStoppedError, match=rf"stopped after 3 releases .*cbdp.toml:\d+: .*{full}"
    ) as stopped:
        run(city, "2026-03-06")
    assert stopped.value.exit_code == 1
    with pytest.raises(BudgetError, match=full):  # a run that makes nothing
        run(city, "2026-03-06")
    assert [period for period, _ in charges(city)] == ["2026-03-01", "2026-03-02", "2026-03-03"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("cap = { per_day = 3, per_30_days = 60 }", "", "a series needs a cap"),
        ("start = 2026-03-01", "start = 2026-03-01\nname = 'a/b'", "series.name is 'a/b': give a name of"),
        ("[series]", "[about]\nperiod = 'March'\n\n[series]", "leave about.period out"),
        (
            "time = { start",
            "days = { first = 2026-03-01, last = 2026-03-03 }\ntime = { start",
            "this one lists dates",
        ),
        ('time = "at", ', 'time = "hour", ', "'hour'"),
        (
            "max_trips = 2",
            "max_trips = { quantile = 0.9, epsilon = 0.1 }",
            "buy it with the trips of a past period",
        ),
        ('per = "day"', 'per = "month"', "one month would be in several releases, each of which costs ε"),
    ],
)
def test_what_does_not_fit_a_series_is_one_line_and_nothing_is_spent(
    city: Path, old: str, new: str, says: str
) -> None:
    """Neither a ledger nor a release is made."""
    change(city, old, new)
    with pytest.raises(CbdpError, match=rf"cbdp\.toml:\d+: .*{says}"):
        run(city, "2026-03-02")
    assert not (city / "ledger.sqlite").exists()
    assert not list((city / "releases").iterdir())


def test_weeks_of_a_unit_and_of_a_calendar_begin_on_the_same_day(city: Path) -> None:
    """Those of a unit on Monday, so those of its series too; other units go with any weeks."""
    change(city, 'per = "day"', 'per = "week"')
    change(city, 'calendar = "daily"', 'calendar = "weekly"')
    with pytest.raises(InputError, match=r"weeks begin on Monday, and start is a Sunday: write 2026-03-02"):
        run(city, "2026-03-08")
    change(city, "start = 2026-03-01", "start = 2026-03-02")
    assert [path.name for path in run(city, "2026-03-08", accept_dropped=True).released] == ["2026-W10"]


def test_a_ledger_of_another_currency_is_refused(city: Path) -> None:
    """In either direction of what is stated."""
    change(city, "budget = ", 'currency = "rho"\nbudget = ')
    run(city, "2026-03-01")
    with Ledger.view(city / "ledger.sqlite") as ledger:
        assert str(ledger.spent) == "ρ 0.5"
    change(city, 'currency = "rho"', 'currency = "epsilon"')
    with pytest.raises(InputError, match="the ledger counts rho, not epsilon"):
        run(city, "2026-03-02")
    assert len(charges(city)) == 1


def test_a_period_without_trips_stops_for_the_curator(city: Path) -> None:
    """Its rows may still be to come; who knows better says so. A program is stopped like the command."""
    says: list[str] = []
    run(city, "2026-03-08", say=says.append)
    with pytest.raises(
        InputError, match=r"there are no trips in 2026-03-09, nothing was spent: .* series\.gaps"
    ):
        run(city, "2026-03-09")
    assert len(charges(city)) == 8
    assert sum("rows" in line for line in says) == 1  # how rows are read is judged once for all of them
    assert len(run(city, "2026-03-09", accept_dropped=True).released) == 1


def test_the_folder_of_the_releases_is_made_with_the_first(city: Path) -> None:
    """A run that is refused leaves none behind; a folder within one that is missing is a mistake in the path."""
    (city / "releases").rmdir()
    change(city, "start = 2026-03-01", "start = 2026-03-09")
    with pytest.raises(InputError, match="there are no trips in 2026-03-09"):
        run(city, "2026-03-09")
    assert not (city / "releases").exists()
    change(city, "start = 2026-03-09", "start = 2026-03-01")
    assert len(run(city, "2026-03-01").released) == 1
    assert [p.name for p in (city / "releases").iterdir()] == ["2026-03-01"]
    change(city, '"releases/{period}"', '"some/where/{period}"')
    with pytest.raises(InputError, match=r"there is no folder '.*/some' for the release: create it first"):
        run(city, "2026-03-02")


def test_a_program_is_stopped_where_most_rows_would_be_dropped(city: Path) -> None:
    """As the command is: nothing is spent, and no ledger is made."""
    change(city, '"06:00"', '"10:00"')
    with pytest.raises(InputError, match=r"only .* rows would count, fewer than half: .* Nothing was spent"):
        run(city, "2026-03-02")
    assert not (city / "ledger.sqlite").exists()
    assert len(run(city, "2026-03-02", accept_dropped=True).released) == 2


def test_the_status_says_what_one_person_has_paid(city: Path) -> None:
    """Made, due, spent and the worst case of every window; before the first release it says that there is none."""
    config = read(city / "cbdp.toml")
    assert "there is no ledger yet: nothing was spent" in list(status_of(config, dt.date(2026, 3, 2)).lines())
    run(city, "2026-03-03")
    status = status_of(config, dt.date(2026, 3, 5))
    text = "\n".join(status.lines())
    assert "by the end of 2026-03-05 5 releases are due, 3 are made" in text
    assert "to be made: 2026-03-04, 2026-03-05" in text
    assert status.person is not None
    assert [float(w.amount.epsilon) for w in status.person.windows] == [1, 3, 3, 3, 3]
    assert "cap 3 per day, 60 per 30 days" in text


def test_the_configuration_of_the_tests_is_a_series() -> None:
    """So that the tests above test one."""
    assert "[series]" in CONFIG
