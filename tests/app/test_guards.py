"""Guards before ε is spent: rows that cannot be what they seem stop a release, and `inspect` shows the same judgement."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from cbdp.app import choosing, cli, init
from cbdp.app.inspecting import reading_of
from cbdp.app.series import run_series
from cbdp.config import read
from cbdp.counting.inspection import DuplicateRows, duplicate_rows, rows_by_day
from cbdp.counting.plausibility import UnusualError, verdict
from cbdp.counting.reading import look

Captured = pytest.CaptureFixture[str]
Row = tuple[str, str, str, str, str]
STOPS = [f"S{n}" for n in range(6)]
CONFIG = """\
[data]
trips = "trips.csv"
id = "guards"
stops = "stops.csv"
columns = { origin = "from", destination = "to", time = "at" }
{data}

[universe]
time = { start = "00:00", end = "24:00", every = "6h" }
{universe}

[[feature]]
name = "time"
by = ["time"]

[privacy]
epsilon = 1.0
unit = {unit}
ledger = "ledger.sqlite"
cap = 3.0

[output]
path = "release"
"""


def month(rows: int = 3100, days: int = 31, *, zone: str = "") -> list[Row]:
    """Trips of March 2026, every day alike: from, to, at, card, sex."""
    rng = np.random.default_rng(7)
    start = dt.datetime(2026, 3, 1)  # noqa: DTZ001
    made = []
    for n in range(rows):
        at = start + dt.timedelta(days=n % days, seconds=int(rng.integers(5 * 3600, 23 * 3600)))
        o, d = rng.choice(6, 2, replace=False)
        made.append(
            (STOPS[o], STOPS[d], f"{at.isoformat(' ')}{zone}", f"card{rng.integers(900)}", "FM"[n % 2])
        )
    return made


def write(
    folder: Path, rows: Sequence[Row], *, data: str = "", universe: str = "", unit: str = '"trip"'
) -> Path:
    lines = ["from,to,at,card,sex", *(",".join(row) for row in rows)]
    (folder / "trips.csv").write_text("\n".join(lines) + "\n")
    (folder / "stops.csv").write_text("id\n" + "".join(f"{s}\n" for s in STOPS))
    text = CONFIG.replace("{data}", data).replace("{universe}", universe).replace("{unit}", unit)
    (folder / "cbdp.toml").write_text(text)
    return folder / "cbdp.toml"


def _doubled(rows: list[Row]) -> list[Row]:
    return rows + rows


def _some_twice(rows: list[Row]) -> list[Row]:
    return rows + rows[:400]


def _half_of_the_days(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row[2] < "2026-03-16"]


def _every_second_week(rows: list[Row]) -> list[Row]:
    return [row for row in rows if not "2026-03-09" <= row[2] < "2026-03-16"]


DATES = 'days = { first = "2026-03-01", last = "2026-03-31" }'
# what is wrong: how rows are changed, the configuration, what is said, and the flag that goes on
STOPPED: dict[str, tuple[Callable[[list[Row]], list[Row]], dict[str, str], str, str]] = {
    "a wrong person column": (list, {"unit": '{ person = "sex", max_trips = 4, per = "day" }'}, "fewer than half: 'sex' has few values", "--accept-dropped"),
    "a bound that is too low": (list, {"unit": '{ person = "card", max_trips = 1 }'}, "write max_trips = 2 or more", "--accept-dropped"),
    "every row twice": (_doubled, {}, "3,100 rows repeat another row in every column (50 % of all)", "--accept-unusual"),
    "400 repeated rows": (_some_twice, {}, "400 rows repeat another row in every column (11 % of all)", "--accept-unusual"),
    "twice what is expected": (lambda r: r + [(*x[:3], f"{x[3]}b", x[4]) for x in r], {"data": "expected_trips = 3000"}, "many more than the 3,000", "--accept-unusual"),
    "half of what is expected": (_half_of_the_days, {"data": "expected_trips = 3000"}, "1,500 trips would count, many fewer than the 3,000", "--accept-unusual"),
    "half of the month": (_half_of_the_days, {"universe": DATES}, "16 of 31 days have no rows", "--accept-unusual"),
    "a week is missing": (_every_second_week, {}, "7 of 31 days have no rows", "--accept-unusual"),
    "times in UTC": (lambda r: [(*x[:2], f"{x[2]}+00:00", *x[3:]) for x in r], {}, 'write timezone = "Europe/Madrid"', "--accept-unusual"),
    "times with Z": (lambda r: [(*x[:2], x[2].replace(" ", "T") + "Z", *x[3:]) for x in r], {}, "end in an offset from UTC", "--accept-unusual"),
}  # fmt: skip


@pytest.mark.parametrize("name", STOPPED)
def test_a_release_stops_before_its_charge_and_inspect_says_the_same(
    name: str, tmp_path: Path, capsys: Captured
) -> None:
    change, settings_of, said, flag = STOPPED[name]
    config = write(tmp_path, change(month()), **settings_of)
    before = sorted(tmp_path.iterdir())
    assert cli.main(["release", str(config), "--create-ledger"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert said in last
    assert "Nothing was spent" in last
    assert last.endswith(f"add {flag}")
    assert sorted(tmp_path.iterdir()) == before
    reading = reading_of(read(config))
    assert any(said in stop and flag in stop for stop in verdict(reading, look(reading)))


def test_rows_as_they_should_be_are_released(tmp_path: Path, capsys: Captured) -> None:
    """A month without faults goes through, with dates, persons and a number that is roughly right."""
    unit = '{ person = "card", max_trips = 4, per = "day" }'
    config = write(tmp_path, month(), data="expected_trips = 4000", universe=DATES, unit=unit)
    assert cli.main(["inspect", str(config)]) == 0
    assert "yes: nothing in the rows would stop it" in capsys.readouterr().out
    assert cli.main(["release", str(config), "--create-ledger"]) == 0


def test_the_flag_goes_on(tmp_path: Path) -> None:
    config = write(tmp_path, _doubled(month(600)), data='timezone = "Europe/Madrid"')
    assert cli.main(["release", str(config), "--create-ledger"]) == 2
    assert cli.main(["release", str(config), "--create-ledger", "--accept-dropped"]) == 2
    assert cli.main(["release", str(config), "--create-ledger", "--accept-unusual"]) == 0


def test_a_zone_that_is_stated_is_used(tmp_path: Path) -> None:
    """09:30+00:00 in March after the change of clocks is 11:30 in Madrid: another quarter of the day than 09:30."""
    rows = [
        ("S0", "S1", f"2026-03-30 {4 + n % 2}:30:{n % 60:02d}+00:00", f"card{n}", "F") for n in range(300)
    ]
    rows = [(o, d, at.replace(" 4:", " 04:").replace(" 5:", " 05:"), c, s) for o, d, at, c, s in rows]
    found = look(reading_of(read(write(tmp_path, rows, data='timezone = "Europe/Madrid"'))))
    assert dict(found.by["time"])["06:00"] == 300
    found = look(reading_of(read(write(tmp_path, rows))))
    assert dict(found.by["time"])["00:00"] == 300


def test_typed_times_in_utc_are_told_by_check_without_reading_a_row(tmp_path: Path, capsys: Captured) -> None:
    config = write(tmp_path, month(60))
    at = pa.array([dt.datetime(2026, 3, 2, 8, n % 60) for n in range(60)], pa.timestamp("us", "UTC"))  # noqa: DTZ001
    table = pa.table({"from": ["S0"] * 60, "to": ["S1"] * 60, "at": at})
    parquet.write_table(table, tmp_path / "trips.parquet")
    config.write_text(config.read_text().replace("trips.csv", "trips.parquet"))
    assert cli.main(["check", str(config)]) == 0
    assert "column 'at' holds times in UTC, and data.timezone is not stated" in " ".join(
        capsys.readouterr().out.split()
    )
    assert cli.main(["release", str(config), "--create-ledger"]) == 2


def test_a_purchase_and_a_series_stop_alike(tmp_path: Path) -> None:
    unit = '{ person = "card", max_trips = { quantile = 0.9, epsilon = 0.1 }, per = "day" }'
    config = write(tmp_path, _doubled(month()), unit=unit)
    assert cli.main(["ledger", "create", str(config)]) == 0
    with pytest.raises(UnusualError, match="repeat another row"):
        choosing.buy(read(config))
    assert cli.main(["choose", str(config)]) == 2
    assert choosing.buy(read(config), accept_unusual=True).fresh
    place = tmp_path / "series"
    place.mkdir()
    config = write(place, _doubled(month()))
    text = config.read_text().replace('path = "release"', 'path = "releases/{period}"')
    config.write_text(text + '\n[series]\nstart = 2026-03-02\ncalendar = "weekly"\n')
    with pytest.raises(UnusualError, match="repeat another row"):
        run_series(read(config), dt.date(2026, 3, 8), create_ledger=True)
    assert not (place / "ledger.sqlite").exists()


# What is by chance, and what is not


@pytest.mark.parametrize("rate", [0.01, 0.3, 2.0, 15.0])
def test_rows_that_are_alike_by_chance_stop_nothing(rate: float) -> None:
    """Hourly tables have many equal rows: numbers of a Poisson mixture pass, at any rate; twice the same rows do not."""
    rng = np.random.default_rng(11)
    for shape in (None, 0.5, 3.0):
        rates = np.full(20_000, rate) if shape is None else rng.gamma(shape, rate / shape, 20_000)
        sizes, groups = np.unique(rng.poisson(rates), return_counts=True)
        found = {int(k): int(n) for k, n in zip(sizes, groups, strict=True) if k}
        assert DuplicateRows(tuple(found.items())).by_chance()
        assert not DuplicateRows(tuple((2 * k, n) for k, n in found.items())).by_chance() or rate > 2


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 40), st.integers(0, 3))
def test_one_row_more_or_less_does_not_decide(at: int, more: int) -> None:
    """Where nothing is near a threshold, no single row changes the judgement: it goes by shares of all rows."""
    rows = [(n, n % 7) for n in range(2000)]
    changed = rows[:at] + rows[at + 1 :] + [rows[at]] * more
    for table, by_chance in ((changed, True), (changed + changed, False)):
        copies = duplicate_rows({"a": [r[0] for r in table], "b": [r[1] for r in table]}, len(table))
        assert (copies.repeated <= 0.01 or copies.by_chance()) == by_chance


def test_large_tables_are_looked_at_by_whole_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """One group in sixteen: a row and its copy are both looked at or neither, so that shares stay as they are."""
    monkeypatch.setattr("cbdp.counting.inspection.MAX_ROWS_ALL_GROUPS", 1000)
    copies = duplicate_rows({"a": [n // 2 for n in range(16_000)]}, 16_000)
    assert copies.one_in == 16
    assert {k for k, _ in copies.groups} == {2}
    assert 350 < dict(copies.groups)[2] < 650


def test_days_and_offsets_are_counted() -> None:
    at = [
        "2026-03-02T08:00Z",
        "2026-03-02 09:00:00+02:00",
        "2026-03-03 09:00",
        "2026-03-03 09:00:00.5-0300",
        "soon",
        "",
    ]
    found = rows_by_day({"at": at}, "at")
    assert list(found.days.values()) == [2, 2]
    assert found.offsets == 3


# What `init` says of people


@pytest.mark.parametrize(
    ("header", "named"),
    [
        ("transID,payCardID,tapInStops,tapInTime,tapOutStops,tapOutTime", "payCardID"),
        ("Viaje_Id,Usuario_Id,Genero,Inicio_del_viaje,Fin_del_viaje,Origen_Id,Destino_Id", "Usuario_Id"),
        ("ticket_serial,origin,destination,start_time", "ticket_serial"),
    ],
)
def test_init_says_loudly_who_may_be_a_person(header: str, named: str, tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text(header + "\n")
    (tmp_path / "stops.csv").write_text("id\n" + "".join(f"{s}\n" for s in STOPS))
    told = init.summary_lines(
        init.write(tmp_path / "cbdp.toml", tmp_path / "trips.csv", tmp_path / "stops.csv")
    )
    assert any(line.strip().startswith("ATTENTION") and named in line for line in told)
    assert not any("nothing has to be edited" in line for line in told)
    assert any(line.startswith("you have to edit") and "unit in line" in line for line in told)
