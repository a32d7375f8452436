"""Inspections: what of the trips counts and why the rest does not, so that a mis-read table is seen before ε is spent."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from counting.making import written

import cbdp
from cbdp.counting import Clock, Inspection, inspect

STOPS = [str(n) for n in range(280, 300)]
DAY = cbdp.periods("00:00", "24:00", "1h")
UNIVERSE = cbdp.Universe(origin=STOPS, destination=STOPS, time=DAY)
AT = {"time": "at"}


def _table(folder: Path, stamps: list[str], origins: list[str] | None = None) -> Path:
    origins = origins or [STOPS[i % 20] for i in range(len(stamps))]
    lines = [f"{o},{STOPS[i * 7 % 20]},{at}" for i, (o, at) in enumerate(zip(origins, stamps, strict=True))]
    return written(folder, "t.csv", "\n".join(["origin,destination,at", *lines]))


def _why(seen: Inspection) -> list[tuple[str, str | None, int]]:
    return [(d.reason, d.column, d.rows) for d in seen.dropped]


ISO = [f"2020-03-{1 + i % 28:02d} {i % 24:02d}:14" for i in range(200)]


def test_a_table_that_is_read_as_it_is_meant(tmp_path: Path) -> None:
    """All rows count; the first and the last day, the curve of the day and the busiest stops are those of the rows."""
    seen = inspect(_table(tmp_path, ISO), UNIVERSE, columns=AT)
    assert (seen.read, seen.counted, seen.trips, seen.share, seen.dropped) == (200, 200, 200, 1.0, ())
    assert (seen.first, seen.last) == (dt.date(2020, 3, 1), dt.date(2020, 3, 28))
    assert dict(seen.by["time"]) == {label: sum(t[11:13] == label[:2] for t in ISO) for label in DAY.values}
    assert seen.busiest("origin", 3) == (("280", 10), ("281", 10), ("282", 10))
    assert seen.loads is None


@pytest.mark.parametrize(
    ("stamps", "cure"),
    [
        ([f"{i % 28 + 1:02d}/03/2020 00:14" for i in range(200)], "%d/%m/%Y %H:%M"),
        ([f"2020-03-02 {i % 12 + 1}:14 {'AP'[i % 2]}M" for i in range(200)], "%Y-%m-%d %I:%M %p"),
        ([str(1_583_020_800 + 977 * i) for i in range(200)], "epoch_s"),
        ([str(1_583_020_800_000 + 977_000 * i) for i in range(200)], "epoch_ms"),
    ],
)
def test_times_that_are_not_understood_are_named_and_their_format_cures(
    stamps: list[str], cure: str, tmp_path: Path
) -> None:
    """Day before month, AM and PM, seconds since 1970: nothing counts, examples show why, and the format reads them all."""
    path = _table(tmp_path, stamps)
    seen = inspect(path, UNIVERSE, columns=AT)
    assert seen.counted == 0
    assert _why(seen) == [("not understood", "at", 200)]
    assert len(seen.dropped[0].examples) == 5
    assert seen.dropped[0].examples[0][0] in stamps
    assert seen.first is None
    assert inspect(path, UNIVERSE, columns=AT, clock=Clock(format=cure)).share == 1.0
    assert cbdp.count(path, UNIVERSE, columns=AT, clock=Clock(format=cure)).value.sum() == 200


def test_mixed_formats_show_the_part_that_is_lost(tmp_path: Path) -> None:
    """Two thirds in one form, one third in another: the share says it, and a list of formats reads both."""
    stamps = [f"2020-03-02 08:{i % 60:02d}" if i % 3 else f"03/02/2020 08:{i % 60:02d}" for i in range(300)]
    path = _table(tmp_path, stamps)
    assert _why(inspect(path, UNIVERSE, columns=AT)) == [("not understood", "at", 100)]
    both = Clock(format=("%Y-%m-%d %H:%M", "%m/%d/%Y %H:%M"))
    assert inspect(path, UNIVERSE, columns=AT, clock=both).share == 1.0


def test_ids_with_a_point_are_the_whole_numbers_they_mean(tmp_path: Path) -> None:
    """289.0 is the stop 289, as spreadsheets and pandas write it."""
    path = _table(tmp_path, ISO, [f"{STOPS[i % 20]}.0" for i in range(200)])
    assert inspect(path, UNIVERSE, columns=AT).share == 1.0


def test_half_of_the_stops_missing_is_seen(tmp_path: Path) -> None:
    """Unknown stops are named with their rows, the commonest first."""
    origins = ["gone" if i % 2 else "lost" if i % 4 else STOPS[i % 20] for i in range(200)]
    seen = inspect(_table(tmp_path, ISO, origins), UNIVERSE, columns=AT)
    assert seen.share == 0.25
    assert _why(seen) == [("unknown", "origin", 150)]
    assert seen.dropped[0].examples == (("gone", 100), ("lost", 50))
    assert seen.dropped[0].dimension == "origin"


def test_an_empty_file_is_seen(tmp_path: Path) -> None:
    """Nobody travelled: no rows, nothing dropped."""
    seen = inspect(_table(tmp_path, []), UNIVERSE, columns=AT)
    assert (seen.read, seen.counted, seen.share, seen.dropped) == (0, 0, 1.0, ())


def test_a_table_of_counts_with_date_and_hour(tmp_path: Path) -> None:
    """date, hour, from, to, count: rows stand for their trips; read without the counts, they would be one each."""
    lines = ["date,hour,from,to,count"]
    lines += [
        f"2026-03-{2 + d:02d},{h},{o},{STOPS[0]},{h + 1}"
        for d in range(3)
        for h in range(24)
        for o in STOPS[:2]
    ]
    path = written(tmp_path, "t.csv", "\n".join(lines))
    universe = cbdp.Universe(origin=STOPS, destination=STOPS, time=DAY, day=["weekday", "weekend"])
    columns = {"origin": "from", "destination": "to", "time": "hour", "day": "date", "count": "count"}
    seen = inspect(path, universe, columns=columns)
    assert (seen.read, seen.counted, seen.trips, seen.share) == (144, 144, 6 * 300, 1.0)
    counts = cbdp.count(path, universe, columns=columns)
    assert counts.value.sum() == 1800
    assert dict(seen.by["time"])["23:00"] == 6 * 24
    assert (seen.first, seen.last) == (dt.date(2026, 3, 2), dt.date(2026, 3, 4))


def test_every_reason_is_told_apart(tmp_path: Path) -> None:
    """Missing, unknown, outside, not understood, at a structural zero, without a person, and no row at all."""
    universe = cbdp.Universe(
        origin=["A", "B"], destination=["A", "B"], time=cbdp.periods("06:00", "20:00", "1h")
    ).without_equal("origin", "destination")
    text = (
        "origin,destination,at,card\nA,B,2026-03-02 08:00,x\n,B,2026-03-02 08:00,x\nA,C,2026-03-02 08:00,x\n"
        "A,B,2026-03-02 23:00,x\nA,B,yesterday,x\nA,A,2026-03-02 08:00,x\nA,B,2026-03-02 08:00,\nA,B\nB,A,2026-03-05 09:00,y\n"
    )
    path = written(tmp_path, "t.csv", text)
    seen = inspect(path, universe, columns=AT, unit=cbdp.Person("card", 2))
    assert (seen.read, seen.counted) == (9, 2)
    assert sorted(_why(seen), key=str) == sorted(
        [
            ("missing", "origin", 1),
            ("unknown", "destination", 1),
            ("outside", "at", 1),
            ("not understood", "at", 1),
            ("structural zero", None, 1),
            ("no person", "card", 1),
            ("malformed", None, 1),
        ],
        key=str,
    )
    assert seen.loads is not None
    assert (seen.loads.persons, seen.loads.trips) == (2, 2)


def test_weights_that_are_no_counts_are_named() -> None:
    """They drop their rows."""
    rows = {"stop": ["A"] * 4, "n": [2, -1, None, 5]}
    seen = inspect(rows, cbdp.Universe(stop=["A"]), columns={"count": "n"})
    assert (seen.read, seen.counted, seen.trips) == (4, 2, 7)
    assert _why(seen) == [("not a count", "n", 2)]


def test_what_each_bound_would_drop() -> None:
    """Persons with 1, 2, 3, … 20 trips: quantiles, and the trips beyond every bound."""
    cards = [c for c in range(1, 21) for _ in range(c)]
    seen = inspect(
        {"stop": ["A"] * len(cards), "card": cards}, cbdp.Universe(stop=["A"]), unit=cbdp.Person("card", 4)
    )
    assert seen.loads is not None
    assert (seen.loads.persons, seen.loads.trips) == (20, 210)
    assert seen.loads.quantiles == {0.5: 10, 0.75: 15, 0.9: 18, 0.95: 19, 0.99: 20, 1.0: 20}
    assert seen.loads.dropped == {
        m: sum(max(0, c - m) for c in range(1, 21)) for m in (1, 2, 3, 4, 5, 8, 10, 20)
    }
    assert seen.trips == 210


def test_times_of_typed_columns_are_shown_as_people_write_them() -> None:
    """A stamp outside the periods is shown as a stamp, not as microseconds."""
    at = [dt.datetime(2026, 3, 2, 23, 30)] * 3  # noqa: DTZ001
    seen = inspect({"time": at}, cbdp.Universe(time=cbdp.periods("06:00", "20:00", "1h")))
    assert seen.dropped[0].reason == "outside"
    assert seen.dropped[0].examples == (("2026-03-02 23:30:00", 3),)
