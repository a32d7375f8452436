"""One trip has one day in a series, however its time is exported: other kinds of the day's column are refused, other texts are not read."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import re
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from daily_city import CONFIG, trip_table, write_daily_city

import cbdp
from cbdp.app.plan import plan
from cbdp.app.series import run_series
from cbdp.app.trips import service_days
from cbdp.config import read
from cbdp.counting import Clock, schema_of
from cbdp.counting.inspection import second_count
from cbdp.counting.plan import ClockForm, ServiceDays, make_plan
from cbdp.counting.recount import series_day_of
from cbdp.errors import InputError
from cbdp.forecast import continuity
from cbdp.forecast.account import status_of
from cbdp.forecast.calendar import due_slots
from cbdp.forecast.continuity import DayReading, alike, check_continuity
from cbdp.ledger import Ledger

FILES = CONFIG.replace("trips.parquet", "{period}.parquet")
NIGHT = 'day_starts = "04:00"\n'


def exported(name: str, at: pa.ChunkedArray) -> pa.ChunkedArray:
    """Naive times of one table as another export may have them."""
    if name in ("naive", "naive ms"):
        return at.cast(pa.timestamp("us" if name == "naive" else "ms"))
    if name in ("UTC", "America/Detroit"):
        return at.cast(pa.timestamp("us")).cast(pa.timestamp("us", tz=name))
    if name == "date":
        return at.cast(pa.date32())
    if name == "midnight":
        return at.cast(pa.date32()).cast(pa.timestamp("us"))
    if name == "seconds":
        return at.cast(pa.timestamp("s")).cast(pa.int64())
    if name == "nothing":
        return pa.chunked_array([pa.nulls(len(at))])
    assert name in ("text", "large text")
    return pc.strftime(at.cast(pa.timestamp("s")), "%Y-%m-%dT%H:%M:%S").cast(
        pa.string() if name == "text" else pa.large_string()
    )


KINDS = ["naive", "UTC", "America/Detroit", "date", "seconds", "text"]


@pytest.fixture
def city(tmp_path: Path) -> Path:
    city = write_daily_city(tmp_path, days=3, config=FILES)
    (city / "trips.parquet").unlink()
    return city


def export(city: Path, day: int, kind: str, column: str = "at") -> None:
    table = trip_table(1, first=f"2026-03-0{day}")
    table = table.append_column("day", table["at"].cast(pa.date32())) if column == "day" else table
    place = table.column_names.index(column)
    pq.write_table(
        table.set_column(place, column, exported(kind, table["at"])), city / f"2026-03-0{day}.parquet"
    )


def charged(city: Path) -> list[str]:
    with Ledger.view(city / "ledger.sqlite") as ledger:
        return [c.covers.days if c.covers else "" for c in ledger.charges()]


def run(city: Path, day: int, **accepted: bool) -> int:
    new = not (city / "ledger.sqlite").exists()
    until = dt.date(2026, 3, day)
    return len(run_series(read(city / "cbdp.toml"), until, create_ledger=new, **accepted).released)


def test_naive_stamps_and_then_the_same_with_a_zone_are_refused(city: Path) -> None:
    """Before a row of the second export is counted, with both kinds and the cure; the first kind goes on."""
    export(city, 1, "naive")
    assert run(city, 1) == 1
    export(city, 2, "UTC")
    with pytest.raises(
        InputError, match=r"without a zone.* would now be read .*that have a zone.* Export the rows as before"
    ):
        run(city, 2)
    assert len(charged(city)) == 1
    export(city, 2, "naive ms")
    assert run(city, 2) == 1
    assert (
        charged(city)
        == ["of column 'at' with time stamps without a zone, times as they are written, days from 00:00 on"]
        * 2
    )


def test_midnights_and_then_dates_are_refused(city: Path) -> None:
    """With days from four on, a midnight belongs to the day before and a date to its own."""
    config = FILES.replace('time = "at", person', 'time = "at", day = "day", person').replace(
        "[data]\n", f"[data]\n{NIGHT}"
    )
    (city / "cbdp.toml").write_text(config)
    export(city, 1, "midnight", "day")
    export(city, 2, "date", "day")
    slots = due_slots(read(city / "cbdp.toml"), dt.date(2026, 3, 2))
    first, second = (plan(read(city / "cbdp.toml"), slot) for slot in slots)
    assert first.covers is not None
    assert first.covers.days != second.service_days
    with Ledger.open(city / "ledger.sqlite", dataset="a daily city", cap=5, create=True) as ledger:
        ledger.reserve(first.request, 1, covers=first.covers, part=first.part)
    with pytest.raises(InputError, match=r"without a zone.*would now be read.*with dates"):
        check_continuity(second)


@pytest.mark.parametrize(("before", "after"), [*itertools.product(KINDS, KINDS)])
def test_a_series_keeps_the_kind_of_its_column(before: str, after: str) -> None:
    """Of all pairs, equal ones agree and no others; nothing at all agrees with all, and large text with text."""
    universe = cbdp.Universe(stop=["A"], time=cbdp.periods("00:00", "24:00", "1h"))
    at = pa.chunked_array([pa.array([dt.datetime(2026, 3, 1)])])  # noqa: DTZ001

    def reading(kind: str, timezone: str | None) -> str:
        schema = schema_of(pa.table({"stop": ["A"], "at": exported(kind, at)}))
        return service_days({"time": "at"}, universe, Clock(timezone), schema, pinned=True)

    for zone in (None, "America/Detroit"):
        zoned = zone is not None and {before, after} <= {
            "UTC",
            "America/Detroit",
        }  # instants, converted alike
        assert alike(reading(before, zone), reading(after, zone)) == (before == after or zoned)
        assert alike(reading("nothing", zone), reading(after, zone))
        assert alike(reading(before, zone), reading("nothing", zone))
    assert not alike(reading(before, None), reading(before, "Asia/Tokyo"))
    assert reading("text", None) == reading("large text", None)


def test_an_empty_export_pins_nothing(city: Path) -> None:
    """A file whose column of times holds nothing lies between two of one kind, or of two: only the latter is refused."""
    config = read(city / "cbdp.toml")
    for day, kind in ((1, "naive"), (2, "nothing"), (3, "UTC")):
        export(city, day, kind)
    plans = [plan(config, slot, must_fit=False) for slot in due_slots(config, dt.date(2026, 3, 3))]
    with Ledger.open(city / "ledger.sqlite", dataset="a daily city", cap=5, create=True) as ledger:
        for one in plans[:2]:
            check_continuity(one)
            ledger.reserve(one.request, 1, covers=one.covers, part=one.part)
    with pytest.raises(InputError, match="could be counted on two days"):
        check_continuity(plans[2])


def test_a_series_of_version_0_2_goes_on_and_is_pinned(city: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its charges and manifests state no kind: the file of its last period tells, or else the next run pins what it finds."""
    export(city, 1, "naive")
    run(city, 1)
    plain = "of column 'at', times as they are written, days from 00:00 on"
    monkeypatch.setattr(continuity, "read_as", lambda charge, ledger: _without_kind(charge, plain))
    export(city, 2, "UTC")
    with pytest.raises(InputError, match=r"without a zone.*that have a zone"):
        run(city, 2)
    (city / "2026-03-01.parquet").rename(city / "elsewhere.parquet")
    assert run(city, 2, accept_unusual=True) == 1  # nothing tells the kind of the first: this one is noted
    export(city, 3, "naive")
    with pytest.raises(InputError, match=r"that have a zone.*without a zone"):
        run(city, 3)


def _without_kind(charge: object, plain: str) -> str:
    part = charge.part  # type: ignore[attr-defined]
    return plain if part.period == "2026-03-01" else charge.covers.days  # type: ignore[attr-defined]


def test_words_of_earlier_versions_are_read() -> None:
    old = DayReading.of("of column 'at, times x' ('%d.%m.%Y',), times Europe/Berlin, days from 04:00 on")
    assert old == DayReading("'at, times x' ('%d.%m.%Y',)", "", "Europe/Berlin", "04:00")
    written = "of column 'at'{}, times {}, days from 00:00 on"
    assert alike(
        written.format("", "as they are written"), written.format(" with time stamps that have a zone", "UTC")
    )
    assert alike(written.format("", "as they are written"), written.format(" with text", "UTC"))
    assert not alike(written.format("", "as they are written"), written.format(" with dates", "UTC"))
    assert not alike(written.format("", "UTC"), written.format(" with text", "Europe/Berlin"))
    assert not alike(written.format("", "UTC"), written.format(" with text", "UTC").replace("00:00", "04:00"))


TEXTS = {
    "naive": lambda t: t.replace(tzinfo=None).isoformat(),
    "blank": lambda t: t.replace(tzinfo=None).isoformat(sep=" "),
    "offset": lambda t: t.isoformat(),
    "UTC": lambda t: t.astimezone(dt.UTC).isoformat(),
    "Z": lambda t: t.astimezone(dt.UTC).isoformat().replace("+00:00", "Z"),
    "date": lambda t: t.date().isoformat(),
    "midnight": lambda t: f"{t.date().isoformat()}T00:00:00",
}
HOURS = [dt.datetime(2026, 10, 24, 22, tzinfo=dt.UTC) + dt.timedelta(minutes=30 * n) for n in range(-4, 12)]


@pytest.mark.parametrize("starts", ["00:00", "02:30", "04:00"])
@pytest.mark.parametrize("own", [True, False], ids=["time", "day"])
@pytest.mark.parametrize("reader", ["count", "recount"])
def test_no_trip_is_on_two_days_however_it_is_written(starts: str, own: bool, reader: str) -> None:
    """Every half hour of a night in which clocks are put back, in seven forms of text: all that is read of them in a series has one day for each trip.

    Local times without an offset are what is meant where no timezone is stated; with one, times without an offset are UTC.
    """
    berlin = ZoneInfo("Europe/Berlin")
    for timezone in (None, "Europe/Berlin"):
        clock = Clock(timezone, day_starts=starts)
        local = {"naive", "blank"} if timezone is None else set()
        for at in HOURS:
            seen = set()
            for name, text in TEXTS.items():
                shown = at.astimezone(berlin)
                if name in ("naive", "blank") and timezone is not None:
                    shown = at  # in UTC, as the timezone says of times that know none
                if name == "midnight" and own:
                    continue  # of a column of times that is another time
                seen |= _days_of(text(shown), clock, own, reader)
            assert len(seen) <= 1, (timezone, at, seen)
            assert seen or not (own and local)


def _days_of(text: str, clock: Clock, own: bool, reader: str) -> set[dt.date]:
    if reader == "recount":
        day = series_day_of(text, clock, timed=own)
        return set() if day is None else {day}
    found = set()
    for form in _forms(clock, own):
        if form.written is not None and re.fullmatch(form.written.pattern, text):
            day = series_day_of(text, clock, timed=own)
            assert day is not None  # both readers read it
            found.add(day)
    return found


@cache
def _forms(clock: Clock, own: bool) -> tuple[ClockForm, ...]:
    """The forms that a count of a series reads its column of days by."""
    universe = cbdp.Universe(stop=["A"], **({} if own else {"time": cbdp.periods("00:00", "24:00", "24h")}))
    columns = {"day": "day"} if own else {"day": "day", "time": "clock"}
    table = {"stop": ["A"], "day": ["2026-10-25"], **({} if own else {"clock": ["12:00"]})}
    days = ServiceDays(dt.date(2026, 10, 20), dt.date(2026, 10, 30))
    made = make_plan(schema_of(table), universe, columns, cbdp.Trip(), clock, days)
    [moment] = [m for m in made.moments if made.fields[m.field].name == "day"]
    return moment.forms


@pytest.mark.parametrize(
    "text",
    ["2026-03-02T01:30:00", "2026-03-02T01:30:00+02:00", "2026-03-02", "2026-03-02 00:00:00", "1772409600"],
)
@pytest.mark.parametrize(
    "clock", [Clock(), Clock(day_starts="04:00"), Clock("America/Detroit"), Clock(format=("iso", "epoch_s"))]
)
def test_both_counts_read_texts_of_a_series_alike(text: str, clock: Clock) -> None:
    universe = cbdp.Universe(stop=["A"])
    for first in (dt.date(2026, 3, 1), dt.date(2026, 3, 2)):
        table = {"stop": ["A"], "day": [text]}
        days = ServiceDays(first, first)
        one = cbdp.count(table, universe, columns={"day": "day"}, clock=clock, days=days)
        _, two = second_count(table, universe, columns={"day": "day"}, clock=clock, days=days)
        assert one.value.tolist() == two.tolist()


def test_the_page_does_not_tell_on_which_day_a_run_died(city: Path) -> None:
    """Its statement is the same, to the byte, whether a run of a day died after its charge or not; the curator's status tells."""
    from cbdp.commands.series import page_of

    for day in (1, 2):
        export(city, day, "naive")
    run(city, 2)
    config, until = read(city / "cbdp.toml"), dt.date(2026, 3, 2)
    page = page_of(config, status_of(config, until))
    before = status_of(config, until)
    with Ledger.open(city / "ledger.sqlite", dataset="a daily city") as ledger:
        second = ledger.charges()[1]
        ledger.reserve("a run that died", 1, what=second.what, covers=second.covers, part=second.part)
    after = status_of(config, until)
    assert after.person != before.person
    assert after.published == before.published
    assert page_of(config, after) == page


def test_csv_and_then_parquet_is_refused(city: Path) -> None:
    """Text may hold what a column of stamps cannot."""
    export(city, 1, "naive")
    table = pq.read_table(city / "2026-03-01.parquet")
    pcsv.write_csv(table, city / "2026-03-01.csv")
    (city / "cbdp.toml").write_text(FILES.replace("{period}.parquet", "{period}.csv"))
    assert run(city, 1) == 1
    assert json.loads((city / "releases/2026-03-01/manifest.json").read_text())["series"]["days"].startswith(
        "of column 'at' with text,"
    )
    (city / "cbdp.toml").write_text(FILES)
    export(city, 2, "naive")
    with pytest.raises(InputError, match=r"with text, .*without a zone"):
        run(city, 2)
