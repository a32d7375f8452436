"""Preparations: taps become trips as a plain loop would make them, a person's rows change that person's trips alone, no row stops it."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import itertools
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import cbdp
from cbdp.counting import Clock, count, inspect, schema_of
from cbdp.counting.linking import DatedTimes, LinkedTaps, Prepared

STOPS = ["A", "B", "C"]
UNIVERSE = cbdp.Universe(origin=STOPS, destination=STOPS, time=cbdp.periods("00:00", "24:00", "1h"))
TAPS = LinkedTaps("token", "at", "stop", "action", ("enter",), ("exit",), nobody=("NA",))
COLUMNS = {"time": "at"}
START = dt.datetime(2026, 3, 2, 5)  # noqa: DTZ001

Tap = tuple[str | None, int, str | None, str]  # token, minutes, stop, action


def linked(taps: list[Tap]) -> collections.Counter[tuple[str, str, str]]:
    """The trips of taps, by a plain loop over each token."""
    by_token = collections.defaultdict(list)
    for token, minute, stop, action in taps:
        if token not in (None, "", "NA") and action in ("Enter", "Exit"):
            by_token[token].append((minute, action == "Enter", stop or "", action))
    found: collections.Counter[tuple[str, str, str]] = collections.Counter()
    for own in by_token.values():
        own.sort()
        for (m0, on, o, _), (m1, on_too, d, _) in itertools.pairwise(own):
            if on and not on_too and m1 - m0 <= 6 * 60 and o in STOPS and d in STOPS:
                found[o, d, (START + dt.timedelta(minutes=m0)).strftime("%H:00")] += 1
    return found


def write(folder: Path, taps: list[Tap], kind: str = "csv") -> str:
    rows = [(t, START + dt.timedelta(minutes=m), s, a) for t, m, s, a in taps]
    if kind == "csv":
        lines = [f"{t or ''},{at.isoformat()},{s or ''},{a}" for t, at, s, a in rows]
        (folder / "taps.csv").write_text("\n".join(["token,at,stop,action", *lines]) + "\n")
    else:
        columns = [list(c) for c in zip(*rows, strict=True)] or [[], [], [], []]
        types = [pa.string(), pa.timestamp("us"), pa.string(), pa.string()]
        arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
        parquet.write_table(
            pa.table(dict(zip(("token", "at", "stop", "action"), arrays, strict=True))),
            folder / "taps.parquet",
        )
    return str(folder / f"taps.{kind}")


def counted(path: str, **more: Any) -> dict[tuple[Any, ...], int]:
    made = count(Prepared(path, TAPS), UNIVERSE, columns=COLUMNS, **more)
    return {UNIVERSE.unrank(int(i)): int(v) for i, v in zip(made.index, made.value, strict=True)}


taps = st.lists(
    st.tuples(
        st.sampled_from(["x", "X", "y", "z", "", None, "NA"]),
        st.integers(0, 900),
        st.sampled_from([*STOPS, "gone", None]),
        st.sampled_from(["Enter", "Exit", "Add"]),
    ),
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(taps, st.sampled_from(["csv", "parquet"]), st.randoms())
def test_taps_are_linked_as_by_a_plain_loop(
    tmp_path_factory: pytest.TempPathFactory, made: list[Tap], kind: str, order: Any
) -> None:
    """Whatever the order of rows; tokens differ by their bytes; every tap is a trip, an end of one, or shown as neither."""
    folder = tmp_path_factory.mktemp("taps")
    wanted = linked(made)
    order.shuffle(made)
    path = write(folder, made, kind)
    assert counted(path) == dict(wanted)
    found = inspect(Prepared(path, TAPS), UNIVERSE, columns=COLUMNS)
    real = [t for t in made if t[3] in ("Enter", "Exit")]
    pairs = 2 * len(real) - 2 * found.read  # a linked pair of taps is one row
    assert 0 <= pairs <= len(real)
    assert found.counted == sum(wanted.values())


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(taps, st.sampled_from(["x", "y"]))
def test_a_person_changes_that_persons_trips_alone(
    tmp_path_factory: pytest.TempPathFactory, made: list[Tap], token: str
) -> None:
    """Without a token's taps, the trips are those of all others: what is bounded afterwards is bounded in truth."""
    folder = tmp_path_factory.mktemp("taps")
    everybody = collections.Counter(counted(write(folder, made)))
    others = collections.Counter(counted(write(folder, [t for t in made if t[0] != token])))
    own = collections.Counter(counted(write(folder, [t for t in made if t[0] == token])))
    assert everybody == others + own


@pytest.mark.slow
def test_one_tap_changes_at_most_one_trip_into_another(tmp_path: Path) -> None:
    """So that `replace` protects a tap: the sum of changes is at most 2."""
    rng = np.random.default_rng(0)
    for _ in range(8):
        made: list[Tap] = [
            ("x", int(m), str(rng.choice(STOPS)), str(rng.choice(["Enter", "Exit"])))
            for m in rng.integers(0, 600, 12)
        ]
        whole = counted(write(tmp_path, made))
        for n in range(0, len(made), 4):
            less = counted(write(tmp_path, made[:n] + made[n + 1 :]))
            assert sum(abs(whole.get(k, 0) - less.get(k, 0)) for k in {*whole, *less}) <= 2


def test_taps_that_are_not_linked_are_rows_without_an_end(tmp_path: Path) -> None:
    """An inspection shows them; a tap-off that is too late is one of them."""
    path = write(
        tmp_path,
        [("x", 0, "A", "Enter"), ("x", 361, "B", "Exit"), ("y", 0, "A", "Enter"), ("y", 360, "B", "Exit")],
    )
    found = inspect(Prepared(path, TAPS), UNIVERSE, columns=COLUMNS)
    assert (found.read, found.counted) == (3, 1)
    assert {(d.reason, d.column): d.rows for d in found.dropped} == {
        ("missing", "origin"): 1,
        ("missing", "destination"): 1,
    }


def test_persons_are_bounded_after_linking(tmp_path: Path) -> None:
    """Ten trips of one token: three are kept; bounded and linked alike from CSV, Parquet and a database with a loose collation."""
    made: list[Tap] = [
        ("x", 20 * n + 10 * k, "AB"[k], ("Enter", "Exit")[k]) for n in range(10) for k in range(2)
    ]
    made += [("X", m, s, a) for _, m, s, a in made]
    unit = cbdp.Person("token", 3)
    for kind in ("csv", "parquet"):
        assert sum(counted(write(tmp_path, made, kind), unit=unit).values()) == 6
    with duckdb.connect(str(tmp_path / "city.db")) as engine:
        engine.execute(
            'CREATE TABLE taps (token VARCHAR COLLATE NOCASE, "at" TIMESTAMP, stop VARCHAR, action VARCHAR)'
        )
        engine.read_parquet(str(tmp_path / "taps.parquet")).insert_into("taps")
    assert sum(counted(f"duckdb://{tmp_path}/city.db::taps", unit=unit).values()) == 6


def test_no_row_stops_a_preparation(tmp_path: Path) -> None:
    """Bytes that are no text, stamps beyond any calendar, quotes that do not close: such taps are nobody's, and no error."""
    good = "x,2026-03-02T06:00:00,A,Enter\nx,2026-03-02T06:10:00,B,Exit\n"
    bad = b'\xff\xfe,2026-03-02T07:00:00,A,Enter\ny,99999999-01-01T00:00:00,A,Enter\n"y,1,2,3\ny,2026-03-02T08:00:00,\xff,Enter\ny,1,2,3,4,5\n'
    (tmp_path / "taps.csv").write_bytes(b"token,at,stop,action\n" + bad + good.encode() + bad)
    assert counted(str(tmp_path / "taps.csv")) == {("A", "B", "06:00"): 1}
    far = pa.array([2**63 - 1, 0, -(2**63) + 1, 600 * 10**6], pa.int64()).cast(pa.timestamp("us"), safe=False)
    broken = pa.array([b"x", b"x", b"\xff", b"x"], pa.binary()).view(pa.string())
    stops = pa.array(["A", "A", "B", "B"])
    action = pa.array(["Enter", "Enter", "Exit", "Exit"])
    table = pa.table({"token": broken, "at": far, "stop": stops, "action": action})
    parquet.write_table(table, tmp_path / "taps.parquet")
    assert counted(str(tmp_path / "taps.parquet")) == {("A", "B", "00:00"): 1}


def test_a_preparation_reads_no_row_until_it_counts(tmp_path: Path) -> None:
    """Its schema follows from the raw schema; a column that is missing is told without the first line's cells."""
    (tmp_path / "taps.csv").write_text("token,at,stop,action\n")
    assert list(schema_of(Prepared(str(tmp_path / "taps.csv"), TAPS)).kinds) == [
        "origin",
        "destination",
        "at",
        "token",
    ]
    (tmp_path / "taps.csv").write_text("Anna,at,stop,action\n")
    with pytest.raises(cbdp.InputError, match="no column 'token': its first line must name it") as caught:
        schema_of(Prepared(str(tmp_path / "taps.csv"), TAPS))
    assert "Anna" not in str(caught.value)


def test_declared_formats_order_the_taps(tmp_path: Path) -> None:
    """By time, not by text: 1:30 PM comes after 11:00 AM."""
    (tmp_path / "taps.csv").write_text(
        "token,at,stop,action\nx,03/02/2026 01:30 PM,B,Exit\nx,03/02/2026 11:00 AM,A,Enter\n"
    )
    form = "%m/%d/%Y %I:%M %p"
    by = LinkedTaps("token", "at", "stop", "action", ("enter",), ("exit",), formats=(form,))
    made = count(
        Prepared(str(tmp_path / "taps.csv"), by), UNIVERSE, columns=COLUMNS, clock=Clock(format=form)
    )
    assert [UNIVERSE.unrank(int(i)) for i in made.index] == [("A", "B", "11:00")]


@pytest.mark.parametrize(
    ("day", "time", "read"),
    [
        ("20260302", "6:05:00", "2026-03-02 06:05:00"),
        ("20260302", "06:05", "2026-03-02 06:05:00"),
        ("20260302", "24:10:00", "2026-03-03 00:10:00"),
        ("20261231", "30:00:00", "2027-01-01 06:00:00"),
        ("20260230", "06:00:00", "20260230 06:00:00"),
        ("20260302", "6h", "20260302 6h"),
        ("", "06:05:00", "06:05:00"),
        ("", "", None),
    ],
)
def test_a_service_day_goes_on_after_midnight(day: str, time: str, read: str | None, tmp_path: Path) -> None:
    """What cannot be read comes out as it is written, for an inspection to show."""
    (tmp_path / "r.csv").write_text(f"day,time_of,from\n{day},{time},A\n")
    prepared = Prepared(str(tmp_path / "r.csv"), DatedTimes("day", "time_of", ("from",)))
    found = inspect(prepared, cbdp.Universe(value=["\0"]), columns={"value": "time"})
    shown = [value for d in found.dropped for value, _ in d.examples]
    assert shown == ([] if read is None else [read])


DAYS3 = [dt.date(2026, 3, 31), dt.date(2026, 4, 1), dt.date(2026, 4, 2)]
MINUTES = (10, 23 * 60 + 50)  # of a day, beside midnight
PERIODS_OF_UNITS = {
    "day": cbdp.Person("token", 4, per="day"),
    "week": cbdp.Person("token", 4, per="week"),
    "month": cbdp.Person("token", 4, per="month"),
}


def counted_days(path: Path, clock: Clock, unit: Any, days: Any = None) -> dict[tuple[str, str], int]:
    """(card's day and place of the tap-on, its time) → trips; the place tells the person and the day."""
    stops = [f"{card}-{n}" for card in range(CARDS) for n in range(4)]
    universe = cbdp.Universe(origin=stops, destination=stops)
    made = count(
        Prepared(str(path), dataclasses.replace(TAPS, within=24 * 3600)),
        universe,
        columns={"day": "at"},
        unit=unit,
        clock=clock,
        days=days,
    )
    return {universe.unrank(int(i)): int(n) for i, n in zip(made.index, made.value, strict=True)}


def all_sequences() -> list[list[tuple[dt.datetime, str]]]:
    """All ways to tap on or off at the ends of three days, up to four times in all."""
    instants = [
        dt.datetime.combine(day, dt.time()) + dt.timedelta(minutes=m) for day in DAYS3 for m in MINUTES
    ]
    return [
        list(zip(chosen, kinds, strict=True))
        for many in range(2, 5)
        for chosen in itertools.combinations(instants, many)
        for kinds in itertools.product(("Enter", "Exit"), repeat=many)
    ]


SEQUENCES = all_sequences()
CARDS = len(SEQUENCES)


def write_sequences(path: Path, *, without: Any = None) -> None:
    lines = ["token,at,stop,action"]
    for card, own in enumerate(SEQUENCES):
        for n, (at, action) in enumerate(own):
            if without is None or not without(at):
                lines.append(f"c{card},{at.isoformat()},{card}-{n},{action}")
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("starts", ["00:00", "04:00"])
@pytest.mark.parametrize("per", ["day", "week", "month", "release of a day"])
def test_a_day_of_taps_changes_its_own_day_alone(tmp_path: Path, per: str, starts: str) -> None:
    """All ways to tap on three days, for every unit: without the taps of one period, only this period's trips change, and by no more than one unit."""
    clock = Clock(day_starts=starts)

    def served(at: dt.datetime) -> dt.date:
        hours = int(starts[:2])
        return (at - dt.timedelta(hours=hours)).date()

    def period(at: dt.datetime) -> Any:
        day = served(at)
        keys = {"day": day, "week": day.isocalendar()[:2], "month": (day.year, day.month)}
        return keys.get(per, "in" if day == DAYS3[1] else "before" if day < DAYS3[1] else "after")

    unit = PERIODS_OF_UNITS.get(per, cbdp.Person("token", 4))
    days = cbdp.counting.plan.ServiceDays(DAYS3[1], DAYS3[1]) if per == "release of a day" else None
    path = tmp_path / "taps.csv"
    write_sequences(path)
    whole = counted_days(path, clock, unit, days)
    assert sum(whole.values()) > 30  # there is something to see
    at_of = {f"{card}-{n}": at for card, own in enumerate(SEQUENCES) for n, (at, _) in enumerate(own)}
    for gone in {period(at) for own in SEQUENCES for at, _ in own}:
        write_sequences(path, without=lambda at, gone=gone: period(at) == gone)
        left = counted_days(path, clock, unit, days)
        changed = {key for key in {*whole, *left} if whole.get(key, 0) != left.get(key, 0)}
        assert all(period(at_of[origin]) == gone for origin, _ in changed)
        each = collections.Counter(origin.partition("-")[0] for origin, _ in changed)
        assert not each or max(each.values()) <= unit.max_trips
        if days is not None and gone != "in":
            assert not changed  # a release of some days looks at no tap of others


def test_a_night_in_which_clocks_are_put_back_keeps_days_apart(tmp_path: Path) -> None:
    """A day that starts at 02:30 begins twice in that night; taps of the other day between two taps do not matter."""
    clock = Clock(timezone="Europe/Berlin", day_starts="02:30")
    taps = [
        ("00:45", "Enter"),
        ("01:10", "Enter"),
        ("01:40", "Exit"),
    ]  # UTC: 02:45 summer, 02:10 winter, 02:40 winter
    universe = cbdp.Universe(origin=STOPS, destination=STOPS)
    results = []
    for kept in ((0, 1, 2), (0, 2)):
        lines = [f"x,2026-10-25T{taps[n][0]}:00Z,{STOPS[n]},{taps[n][1]}" for n in kept]
        (tmp_path / "taps.csv").write_text("\n".join(["token,at,stop,action", *lines]) + "\n")
        made = count(
            Prepared(str(tmp_path / "taps.csv"), TAPS),
            universe,
            columns={"day": "at"},
            unit=cbdp.Person("token", 4, per="day"),
            clock=clock,
        )
        results.append([universe.unrank(int(i)) for i in made.index])
    assert results == [[("A", "C")]] * 2


def test_the_day_of_linked_taps_is_that_of_their_time(tmp_path: Path) -> None:
    path = write(tmp_path, [("x", 0, "A", "Enter"), ("x", 5, "B", "Exit")])
    with pytest.raises(cbdp.InputError, match="taps are linked within days, which column 'at' tells"):
        count(
            Prepared(path, TAPS),
            cbdp.Universe(origin=STOPS, destination=STOPS),
            columns={"day": "token"},
            unit=cbdp.Person("token", 4, per="day"),
        )
