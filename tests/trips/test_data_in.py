"""Data in: every kind of trips gives the same counts; time zones, bounding by person, bad files; stops and zones."""

from __future__ import annotations

import collections
import datetime as dt
import gzip
import json
import re
import subprocess
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy import stats

import cbdp
from cbdp.errors import InputError
from cbdp.features import days, places
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.trips.count import Counts, Tally, _bounded
from cbdp.trips.sources import Clock

ROOT = Path(__file__).parents[2]
LOS_ANGELES = "America/Los_Angeles"
ORIGINS = ["A", "B b", "C'c", 'D"d', "É"]
DESTINATIONS = [3, 5, 8, 13]
UNIVERSE = cbdp.Universe(
    origin=ORIGINS, destination=DESTINATIONS, time=cbdp.periods("06:00", "20:00", "30min")
).without(("origin", "destination"), lambda o, d: o == "A" and d == 5)
SECRET = "SECRET-417"  # noqa: S105 - a cell that no message may quote


def _random_rows(n: int = 2000, seed: int = 0) -> dict[str, list[Any]]:
    """Trips with unknown stops, missing values and times outside."""
    rng = np.random.default_rng(seed)
    start = dt.datetime(2026, 3, 2)  # noqa: DTZ001 - a wall clock
    return {
        "origin": rng.choice([*ORIGINS, "gone", None], n).tolist(),
        "destination": [None if d == 99 else int(d) for d in rng.choice([*DESTINATIONS, 4, 99], n)],
        "start": [
            None if s % 50 == 0 else start + dt.timedelta(seconds=int(s)) for s in rng.integers(0, 86400, n)
        ],
        "card": [None if c == 0 else f"card {c}" for c in rng.integers(0, 60, n).tolist()],
    }


def _brute_force(rows: dict[str, list[Any]]) -> dict[tuple[Any, ...], int]:
    found: collections.Counter[tuple[Any, ...]] = collections.Counter()
    for o, d, t in zip(rows["origin"], rows["destination"], rows["start"], strict=True):
        if o in ORIGINS and d in DESTINATIONS and (o, d) != ("A", 5) and t is not None and 6 <= t.hour < 20:
            found[o, d, f"{t.hour:02d}:{t.minute // 30 * 30:02d}"] += 1
    return dict(found)


def _as_dict(counts: Counts, universe: cbdp.Universe = UNIVERSE) -> dict[tuple[Any, ...], int]:
    assert counts.index.dtype == counts.value.dtype == np.int64
    assert (np.diff(counts.index) > 0).all()
    return {universe.unrank(int(i)): int(v) for i, v in zip(counts.index, counts.value, strict=True)}


def _same(a: Counts, b: Counts) -> bool:
    return np.array_equal(a.index, b.index) and np.array_equal(a.value, b.value)


def _parquet(table: pa.Table, path: Path) -> Path:
    pa.parquet.write_table(table, path)
    return path


def _csv(table: pa.Table, path: Path, sep: str = ",") -> Path:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        table.to_pandas().astype({"destination": "Int64"}).to_csv(file, index=False, sep=sep)
    return path


def _parts(table: pa.Table, folder: Path) -> list[Path]:
    """Three files, one in a folder of its own, one with its columns in another order."""
    (folder / "more").mkdir()
    cuts = [table.slice(0, 700), table.slice(700, 1), table.slice(701)]
    cuts[2] = cuts[2].select(table.column_names[::-1])
    names = [folder / "a.parquet", folder / "more" / "b.parquet", folder / "c[1].parquet"]
    return [_parquet(cut, path) for cut, path in zip(cuts, names, strict=True)]


def _duckdb_url(table: pa.Table, folder: Path) -> str:
    with duckdb.connect(str(folder / "city.db")) as db:
        db.register("given", table)
        db.execute("CREATE SCHEMA taps; CREATE TABLE taps.trips AS SELECT * FROM given")
    return f"duckdb://{folder / 'city.db'}::taps.trips"


def _relation(table: pa.Table, _: Path) -> Any:
    db = duckdb.connect()
    db.register("given", table)
    return db.sql("SELECT * FROM given")


def _ibis_table(table: pa.Table, folder: Path) -> Any:
    ibis = pytest.importorskip("ibis")
    with duckdb.connect(str(folder / "ibis.db")) as db:
        db.register("given", table)
        db.execute("CREATE TABLE trips AS SELECT * FROM given")
    return ibis.duckdb.connect(str(folder / "ibis.db")).table("trips")


def _ibis_url(table: pa.Table, folder: Path) -> str:
    pytest.importorskip("ibis")
    import sqlite3

    frame = table.to_pandas()
    frame["start"] = frame["start"].astype(str).where(frame["start"].notna(), None)
    with sqlite3.connect(folder / "city.sqlite") as db:
        frame.to_sql("trips", db, index=False, dtype={"start": "TIMESTAMP", "destination": "BIGINT"})
    db.close()
    return f"sqlite://{folder / 'city.sqlite'}::trips"


KINDS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "columns": lambda t, _: t.to_pydict(),
    "pandas": lambda t, _: t.to_pandas(),
    "pandas with columns no table can hold": lambda t, _: t.to_pandas().assign(x=[{1}, 2] * 1000),
    "polars": lambda t, _: pl.DataFrame(t),
    "arrow": lambda t, _: t,
    "arrow categories": lambda t, _: t.set_column(0, "origin", t["origin"].dictionary_encode()),
    "arrow batches": lambda t, _: t.to_reader(max_chunksize=300),
    "parquet": lambda t, f: _parquet(t, f / "t.parquet"),
    "text of a path": lambda t, f: str(_parquet(t, f / "it's.PARQUET")),
    "csv": lambda t, f: _csv(t, f / "t.csv"),
    "csv.gz": lambda t, f: _csv(t, f / "t.csv.gz"),
    "semicolons": lambda t, f: _csv(t, f / "t.csv", ";"),
    "two csv": lambda t, f: [_csv(t.slice(0, 9), f / "a.csv"), _csv(t.slice(9), f / "b.csv", "\t")],
    "files": _parts,
    "folder": lambda t, f: _parts(t, f)[0].parent,
    "pattern": lambda t, f: [_parts(t, f)[1], str(f / "?*.parquet")],
    "duckdb relation": _relation,
    "duckdb url": _duckdb_url,
    "ibis": _ibis_table,
    "ibis in memory": lambda t, _: pytest.importorskip("ibis").memtable(t),
    "ibis url": _ibis_url,
}


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:ibis"
)  # Ibis 12 calls what DuckDB 2 and pandas 3 retire
@pytest.mark.filterwarnings("ignore::FutureWarning:ibis")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_counted_alike(kind: str, tmp_path: Path) -> None:
    """Whatever trips come in, the counts are those of a plain loop over the rows."""
    rows = _random_rows()
    trips = KINDS[kind](pa.table(rows), tmp_path)
    counts = cbdp.count(trips, UNIVERSE, columns={"time": "start"})
    assert _as_dict(counts) == _brute_force(rows)
    assert counts.value.sum() > 300


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_every_unit_of_time_is_read(unit: str, tmp_path: Path) -> None:
    """Time stamps of seconds to nanoseconds, in memory and in Parquet."""
    rows = _random_rows(300)
    table = pa.table(rows).set_column(2, "start", pa.array(rows["start"], pa.timestamp(unit)))
    for trips in (table, _parquet(table, tmp_path / "t.parquet")):
        assert _as_dict(cbdp.count(trips, UNIVERSE, columns={"time": "start"})) == _brute_force(rows)


@pytest.mark.parametrize("unit", ["trip", {"person": "card", "max_trips": 4}])
@pytest.mark.parametrize("kind", ["arrow", "parquet", "csv"])
def test_order_and_outside_rows_change_nothing(unit: Any, kind: str, tmp_path: Path) -> None:
    """Shuffled rows, and rows outside the universe, leave the counts as they are, also those bounded by a seed."""
    table = pa.table(_random_rows())
    n = table.num_rows
    gone = {
        "origin": ["gone", "A", "A", None],
        "destination": [3, 5, 3, 3],
        "start": [table["start"][1].as_py()] * 2 + [None] * 2,
        "card": ["card 7", "card 8", "nobody", "card 9"],
    }
    more = pa.concat_tables([table, pa.table(gone, table.schema)])
    shuffled = more.take(np.random.default_rng(1).permutation(n + 4))
    (tmp_path / "other").mkdir()
    found = [
        cbdp.count(
            KINDS[kind](rows, folder),
            UNIVERSE,
            columns={"time": "start"},
            unit=unit,
            entropy=InsecureSeededEntropy(5),
        )
        for rows, folder in ((table, tmp_path), (shuffled, tmp_path / "other"))
    ]
    assert _same(*found)
    assert found[0].value.sum() > 100


def test_order_changes_nothing_where_the_engine_keeps_it() -> None:
    """Many rows over few stops come out of the engine in the order they had: the sort alone makes them the same."""
    rng = np.random.default_rng(0)
    table = pa.table({"stop": rng.integers(0, 30, 20_000), "card": rng.integers(0, 500, 20_000)})
    universe = cbdp.Universe(stop=list(range(25)))
    found = [
        cbdp.count(rows, universe, unit=cbdp.Person("card", 4), entropy=InsecureSeededEntropy(5))
        for rows in (table, table.take(rng.permutation(20_000)))
    ]
    assert _same(*found)
    assert found[0].value.sum() == 2000


def test_a_person_is_bounded_by_trips_inside_only() -> None:
    """Trips at structural zeros, or outside, never take the place of a trip inside."""
    rows = {
        "origin": ["A"] * 500 + ["B b"] + ["gone"] * 500,
        "destination": [5] * 500 + [8] + [8] * 500,
        "time": ["08:00"] * 1001,
        "card": ["x"] * 1001,
    }
    assert _as_dict(cbdp.count(rows, UNIVERSE, unit=cbdp.Person("card", 1))) == {("B b", 8, "08:00"): 1}


def test_every_person_keeps_what_there_is_up_to_m(tmp_path: Path) -> None:
    """Each person's number of trips is min(m, theirs), their trips being some of theirs."""
    rows = _random_rows()
    cards = sorted({c for c in rows["card"] if c})
    universe = cbdp.Universe(card=cards, origin=ORIGINS)
    mine = collections.Counter(
        (c, o) for c, o in zip(rows["card"], rows["origin"], strict=True) if c and o in ORIGINS
    )
    total = collections.Counter(c for c, _ in mine.elements())
    for m in (1, 20, 10**6):
        path = _parquet(pa.table(rows), tmp_path / f"{m}.parquet")
        kept = _as_dict(cbdp.count(path, universe, unit=cbdp.Person("card", m)), universe)
        assert all(n <= mine[key] for key, n in kept.items())
        assert {c: sum(kept.get((c, o), 0) for o in ORIGINS) for c in cards} == {
            c: min(m, total[c]) for c in cards
        }


def test_a_person_that_is_not_a_number_is_nobody() -> None:
    """NaN stands for a missing person: else every such trip would be a person of its own, and unbounded."""
    universe = cbdp.Universe(stop=[0, 1])
    trips = pa.table({"stop": [0, 0, 1], "card": pa.array([float("nan"), float("nan"), 1.5])})
    assert cbdp.count(trips, universe, unit=cbdp.Person("card", 5)).index.tolist() == [1]


def _batches(persons: list[int], size: int) -> Iterator[tuple[Any, Any]]:
    types = np.arange(len(persons), dtype=np.int64)
    for start in range(0, len(persons), size):
        yield pa.array(persons[start : start + size]), types[start : start + size]


class _Coin:
    """A source whose words are 0 or 1: nearly every ticket ties, and more bits must decide."""

    secure = False

    def __init__(self, seed: int) -> None:
        self._source = InsecureSeededEntropy(seed)

    def words(self, n: int, bits: int) -> Any:
        return self._source.words(n, bits) & 1


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 3, 7, 10**6])
@pytest.mark.parametrize("source", [InsecureSeededEntropy, _Coin])
def test_bounding_is_exactly_even_also_where_tickets_tie(source: Any, size: int) -> None:
    """Every pair of five trips is kept equally often, persons crossing batches, tied tickets or not."""
    persons = 2000
    rows = [p for p in range(persons) for _ in range(5)]
    kept = np.concatenate(list(_bounded(_batches(rows, size), 2, source(size))))
    pairs = np.sort(kept.reshape(persons, 2), axis=1)
    assert (pairs // 5 == np.arange(persons)[:, None]).all()
    seen = np.unique(pairs % 5, axis=0, return_counts=True)[1]
    assert len(seen) == 10
    assert stats.chisquare(seen).pvalue > 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("bits", [8, 64])
def test_many_tied_tickets_of_one_person(bits: int) -> None:
    """Of 700 trips 350 are kept, and those at the start as often as those at the end, at any size of word."""
    half = 0
    for seed in range(100):
        kept = np.concatenate(list(_bounded(_batches([1] * 700, 90), 350, _Coin(seed), bits)))
        assert len(np.unique(kept)) == len(kept) == 350
        half += int((kept < 350).sum())
    spread = np.sqrt(100 * 350 * 0.25 * 350 / 699)  # hypergeometric
    assert abs(half - 100 * 175) < 5.5 * spread


def test_tickets_do_not_depend_on_batches() -> None:
    """However the sorted trips are cut, the same source keeps the same trips."""
    persons = sorted(np.random.default_rng(2).integers(0, 300, 5000).tolist())
    kept = [
        np.sort(np.concatenate(list(_bounded(_batches(persons, size), 6, InsecureSeededEntropy(9)))))
        for size in (1, 64, 999, 5000)
    ]
    assert all(np.array_equal(kept[0], other) for other in kept[1:])


def test_a_tally_merges_as_a_dictionary_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts that are merged in many small steps equal those of a plain counter."""
    monkeypatch.setattr("cbdp.trips.count.WAITING", 20)
    rng = np.random.default_rng(3)
    tally, plain = Tally(), collections.Counter[int]()
    for _ in range(50):
        index = rng.integers(0, 200, rng.integers(0, 30))
        value = rng.integers(1, 9, len(index))
        tally.add(index, value)
        for i, v in zip(index.tolist(), value.tolist(), strict=True):
            plain[i] += v
    index, value = tally.total()
    assert dict(zip(index.tolist(), value.tolist(), strict=True)) == plain
    assert (np.diff(index) > 0).all()


# Time


def _instants() -> list[dt.datetime]:
    """Quarters of an hour around both changes of the clock, in UTC."""
    begins = [dt.datetime(2026, 3, 7, 20, tzinfo=dt.UTC), dt.datetime(2026, 10, 31, 20, tzinfo=dt.UTC)]
    return [b + dt.timedelta(minutes=15 * q) for b in begins for q in range(4 * 48)]


WHOLE_DAY = cbdp.Universe(
    time=cbdp.periods("00:00", "24:00", "15min"),
    day=days("2026-03-06", "2026-11-03"),
    kind=["weekday", "saturday", "sunday"],
)
AT = {"time": "at", "day": "at", "kind": "at"}


def _by_zone(zone: str) -> dict[tuple[Any, ...], int]:
    found: collections.Counter[tuple[Any, ...]] = collections.Counter()
    for instant in _instants():
        local = instant.astimezone(ZoneInfo(zone))
        kind = ["weekday", "saturday", "sunday"][max(0, local.isoweekday() - 5)]
        found[f"{local:%H:%M}", local.date().isoformat(), kind] += 1
    return dict(found)


STAMPS: dict[str, tuple[Callable[[Path], Any], Clock, str]] = {
    "naive UTC": (
        lambda _: {"at": [i.replace(tzinfo=None) for i in _instants()]},
        Clock(LOS_ANGELES),
        LOS_ANGELES,
    ),
    "aware": (
        lambda _: pa.table({"at": pa.array(_instants(), pa.timestamp("us", "Europe/Paris"))}),
        Clock(LOS_ANGELES),
        LOS_ANGELES,
    ),
    "its own zone": (
        lambda f: _parquet(
            pa.table({"at": pa.array(_instants(), pa.timestamp("ms", LOS_ANGELES))}), f / "t.parquet"
        ),
        Clock(),
        LOS_ANGELES,
    ),
    "a fixed offset": (
        lambda _: pa.table({"at": pa.array(_instants(), pa.timestamp("ns", "-07:00"))}),
        Clock(),
        "Etc/GMT+7",
    ),
    "ISO text": (
        lambda _: {"at": [i.astimezone(ZoneInfo("Asia/Tokyo")).isoformat() for i in _instants()]},
        Clock(LOS_ANGELES),
        LOS_ANGELES,
    ),
    "text of a format": (
        lambda _: {"at": [f"{i.month}/{i.day}/{i.year} {i.hour}:{i:%M}" for i in _instants()]},
        Clock(LOS_ANGELES, "%m/%d/%Y %H:%M"),
        LOS_ANGELES,
    ),
    "text with offsets of a format": (
        lambda _: {"at": [f"{i.astimezone(ZoneInfo('Asia/Tokyo')):%d.%m.%Y %H:%M %z}" for i in _instants()]},
        Clock(LOS_ANGELES, "%d.%m.%Y %H:%M %z"),
        LOS_ANGELES,
    ),
    "text without a zone": (
        lambda _: {"at": [i.replace(tzinfo=None).isoformat(" ", "minutes") for i in _instants()]},
        Clock(),
        "UTC",
    ),
}


@pytest.mark.parametrize("kind", STAMPS)
def test_zones_are_honoured_when_clocks_change(kind: str, tmp_path: Path) -> None:
    """Periods, days and day types of each stamp are those of the standard library, on days of 23 and 25 hours too."""
    make, clock, zone = STAMPS[kind]
    counts = cbdp.count(make(tmp_path), WHOLE_DAY, columns=AT, clock=clock)
    assert _as_dict(counts, WHOLE_DAY) == _by_zone(zone)


def test_stamps_in_csv_are_text_of_a_format(tmp_path: Path) -> None:
    """A CSV in the American way is read by its format, and a stamp that does not fit is dropped."""
    path = tmp_path / "t.csv"
    path.write_text("at\n3/2/2026 8:05\n3/2/2026 24:05\n2026-03-02 08:05\n\n12/31/2026 23:59\n")
    universe = cbdp.Universe(at=cbdp.periods("00:00", "24:00", "1h"))
    counts = cbdp.count(path, universe, clock=Clock(format="%m/%d/%Y %H:%M"))
    assert _as_dict(counts, universe) == {("08:00",): 1, ("23:00",): 1}


def test_text_is_a_period_a_time_or_a_stamp() -> None:
    """Periods by name, times of day and stamps may stand in one column; a date alone has no time of day."""
    universe = cbdp.Universe(time=cbdp.periods("08:00", "10:00", "1h"))
    rows = {"time": ["08:00", "8:59", "09:00:01.5", "2026-03-02T09:10", "2026-03-02", "10:00", "x", None]}
    assert _as_dict(cbdp.count(rows, universe), universe) == {("08:00",): 2, ("09:00",): 2}


def test_dates_and_times_of_day_are_read_by_type() -> None:
    """Date columns give days and day types, time columns periods, and neither gives the other."""
    universe = cbdp.Universe(day=[dt.date(2026, 3, 7), dt.date(2026, 3, 8)], kind=["weekday", "weekend"])
    dates = [dt.date(2026, 3, 8), dt.date(2026, 3, 9), dt.date(2026, 3, 7)]
    counts = cbdp.count({"day": dates}, universe, columns={"kind": "day"})
    assert _as_dict(counts, universe) == {(d, "weekend"): 1 for d in (dates[2], dates[0])}
    clock = cbdp.Universe(time=cbdp.periods("08:00", "10:00", "1h"))
    assert cbdp.count({"time": [dt.time(8, 30), dt.time(7)]}, clock).value.tolist() == [1]
    for wrong, of in ((dates, clock), ([dt.time(8)] * 3, cbdp.Universe(time=["monday", "tuesday"]))):
        with pytest.raises(InputError, match="column 'time' holds"):
            cbdp.count({"time": wrong}, of)


def test_a_holiday_has_the_type_its_table_says() -> None:
    """The public table goes before the day of the week, in day types and in the attribute of days."""
    table = {dt.date(2026, 7, 3): "sunday", dt.date(2026, 7, 4): "holiday"}
    stamps = [dt.datetime(2026, 7, d, 12) for d in (2, 3, 4, 5)]  # noqa: DTZ001 - a wall clock
    universe = cbdp.Universe(kind=["weekday", "saturday", "sunday", "holiday"])
    counts = cbdp.count({"kind": stamps}, universe, clock=Clock(holidays=table))
    assert counts.index.tolist() == [0, 2, 3]
    assert counts.value.tolist() == [1, 2, 1]
    listed = days("2026-07-02", "2026-07-05", holidays=table)
    assert listed.attributes["type"] == ("weekday", "sunday", "holiday", "sunday")
    dag = cbdp.FeatureDag(cbdp.Universe(kind=listed), [cbdp.Feature("type", by="kind.type")])
    by_day = cbdp.count({"kind": stamps}, dag.universe)
    assert by_day.of(dag, "type").tolist() == [1, 2, 1]  # holiday, sunday, weekday


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Clock("Mars/Olympus"), "unknown time zone 'Mars/Olympus'"),
        (lambda: Clock("../etc/passwd"), "unknown time zone"),
        (lambda: Clock(holidays={dt.datetime(2026, 1, 1): "sunday"}), "a date and its day type"),  # noqa: DTZ001
        (lambda: days("2026-03-02", "2026-03-01"), "before their start"),
        (lambda: days("2 March", "2026-03-01"), "not a day"),
        (
            lambda: cbdp.count({"a": ["x"]}, cbdp.Universe(a=["x"]), clock=Clock(format="%Q")),
            "the time format '%Q'",
        ),
    ],
)
def test_a_bad_clock_is_one_clear_error(make: Callable[[], object], message: str) -> None:
    """Zones, formats and days that do not exist are named."""
    with pytest.raises(InputError, match=message):
        make()


# Values


def test_text_of_a_csv_stands_for_what_the_dimension_holds(tmp_path: Path) -> None:
    """Zeros in front stay in text; numbers are exact beyond 2^53, and 7.5 is not 8."""
    big = 2**53 + 1
    path = tmp_path / "t.csv"
    path.write_text(f"id\n007\n7\n7.0\n7.5\n8\n{big}\n{big - 1}\n1e0\nx\n")
    for values, expected in (
        (["007", "7"], {("007",): 1, ("7",): 1}),
        ([7, 8, big], {(7,): 3, (8,): 1, (big,): 1}),
        ([7.5, 1.0], {(7.5,): 1, (1.0,): 1}),
    ):
        universe = cbdp.Universe(id=values)
        assert _as_dict(cbdp.count(path, universe), universe) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [[1, 2], [1.5, 2.0], [True, False], [dt.date(2026, 3, 2)], ["2026-03-02"], ["monday"], ["a"], None],
)
def test_no_cell_of_a_csv_decides_whether_trips_are_counted(values: Any, tmp_path: Path) -> None:
    """Whatever stands in a cell, a value that does not fit is dropped and never an error."""
    dimension = cbdp.periods("00:00", "24:00", "1h") if values is None else cbdp.Dimension(values)
    cells = [
        "x",
        "NaN",
        "inf",
        "1e999",
        "-",
        "9" * 40,
        "0x1",
        "12:99",
        "2026-13-45",
        "2026-02-30 25:61",
        "é",
        "\\N",
    ]
    cells += [
        "infinity",
        "290000-01-01 00:00",
        "294247-01-10 04:00:54.775807",
        "24:00:00",
        "2026-03-02T99:00Z",
        "'",
    ]
    path = _written(tmp_path, "t.csv", "v,card\n" + "".join(f'"{c}",{c}\n' for c in cells))
    universe = cbdp.Universe(v=dimension)
    for clock in (Clock(), Clock(LOS_ANGELES), Clock("-07:00", "%m/%d/%Y %H:%M"), Clock(format="%d.%m.%Y")):
        for unit in ("trip", cbdp.Person("card", 1)):
            assert cbdp.count(path, universe, clock=clock, unit=unit).value.sum() <= 3


def test_numbers_are_equal_across_types() -> None:
    """A column of floats, decimals or booleans finds the whole numbers it equals, as Python does."""
    universe = cbdp.Universe(id=[0, 1, 2**62 + 1])
    for column in (
        pa.array([0.0, -0.0, 1.0, 0.5, float("nan"), None]),
        pa.array([0, 0, 1, 5, None, None], pa.uint8()),
        pa.array([False, False, True]),
        pa.array([0, 0, 1], pa.decimal128(10, 2)),
    ):
        assert _as_dict(cbdp.count(pa.table({"id": column}), universe), universe) == {(0,): 2, (1,): 1}
    exact = cbdp.count({"id": [2**62, 2**62 + 1, 2**62 + 2]}, universe)
    assert exact.value.tolist() == [1]


# Bad input


def _untouched(schema: pa.Schema) -> pa.RecordBatchReader:
    def rows() -> Iterator[pa.RecordBatch]:
        raise AssertionError("a row was read")
        yield

    return pa.RecordBatchReader.from_batches(schema, rows())


@pytest.mark.parametrize(
    ("kinds", "unit", "message"),
    [
        (
            {"origin": pa.string(), "destination": pa.int64()},
            "trip",
            "no column 'time': there are origin, destination",
        ),
        (
            {"origin": pa.int64(), "destination": pa.int64(), "time": pa.string()},
            "trip",
            "'origin' holds int64 values, the dimension text",
        ),
        (
            {"origin": pa.string(), "destination": pa.string(), "time": pa.string()},
            "trip",
            "'destination' holds string values, the dimension numbers",
        ),
        (
            {"origin": pa.string(), "destination": pa.int64(), "time": pa.date32()},
            "trip",
            "'time' holds date32",
        ),
        (
            {"origin": pa.string(), "destination": pa.int64(), "time": pa.string()},
            {"person": "card", "max_trips": 2},
            "no column 'card'",
        ),
        (
            {
                "origin": pa.string(),
                "destination": pa.int64(),
                "time": pa.string(),
                "card": pa.list_(pa.int64()),
            },
            {"person": "card", "max_trips": 2},
            "a person needs text or a number",
        ),
        (
            {"origin": pa.string(), "Origin": pa.string(), "destination": pa.int64(), "time": pa.string()},
            "trip",
            "two columns are called 'Origin'",
        ),
    ],
)
def test_schema_errors_stop_before_a_row_is_read(kinds: dict[str, Any], unit: Any, message: str) -> None:
    """Columns are judged by name and type alone."""
    with pytest.raises(InputError, match=message):
        cbdp.count(_untouched(pa.schema(list(kinds.items()))), UNIVERSE, unit=unit)


def test_files_of_different_types_are_refused(tmp_path: Path) -> None:
    """A column must hold one type in all files, and be in all of them."""
    a = _parquet(pa.table({"stop": [1]}), tmp_path / "a.parquet")
    b = _parquet(pa.table({"stop": ["x"]}), tmp_path / "b.parquet")
    c = _parquet(pa.table({"other": [1]}), tmp_path / "c.parquet")
    universe = cbdp.Universe(stop=[1])
    with pytest.raises(InputError, match=r"'stop' holds string values in .*b.parquet.* and int64 in"):
        cbdp.count([a, b], universe)
    with pytest.raises(InputError, match="no column 'stop'"):
        cbdp.count([a, c], universe)


def _failing(secret: str) -> pa.RecordBatchReader:
    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"stop": pa.array(["x"])})
        raise ValueError(f"cannot convert {secret}")

    return pa.RecordBatchReader.from_batches(pa.schema([("stop", pa.string())]), rows())


def _cut(path: Path, keep: float) -> Path:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    return path


def _damaged_parquet(folder: Path) -> Path:
    path = folder / "t.parquet"
    pa.parquet.write_table(
        pa.table({"stop": [SECRET, "x"] * 2500, "n": range(5000)}),
        path,
        compression="zstd",
        use_dictionary=False,
    )
    data = bytearray(path.read_bytes())
    data[20:200] = bytes(180)
    path.write_bytes(bytes(data))
    return path


def _written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no file": (lambda f: f / "none.parquet", "there is no file"),
    "no match": (lambda f: str(f / "*.csv"), "there is no file"),
    "empty folder": (lambda f: f, "holds no .parquet file"),
    "another kind": (lambda f: _written(f, "t.xlsx", SECRET), "trips are read from .parquet, .csv"),
    "two kinds": (
        lambda f: [_parquet(pa.table({"stop": [SECRET]}), f / "a.parquet"), _written(f, "b.csv", "stop\n")],
        "give one kind",
    ),
    "not Parquet": (lambda f: _written(f, "t.parquet", SECRET * 50), "cannot be read as Parquet"),
    "cut Parquet": (
        lambda f: _cut(_parquet(pa.table({"stop": [SECRET] * 99}), f / "t.parquet"), 0.6),
        "cannot be read as Parquet",
    ),
    "damaged Parquet": (_damaged_parquet, "cannot be read: it is damaged, or not whole"),
    "long row": (lambda f: _written(f, "t.csv", f"stop,n\nx,1\n{SECRET},2,3\n"), "more or fewer fields"),
    "short row": (lambda f: _written(f, "t.csv", f"stop,n\nx,1\n{SECRET}\n"), "more or fewer fields"),
    "open quote": (lambda f: _written(f, "t.csv", f'stop,n\n"{SECRET},1\n'), "a quote stays open"),
    "not UTF-8": (lambda f: _written(f, "t.csv", b"stop,n\n" + SECRET.encode() + b"\xff,1\n"), "not UTF-8"),
    "not CSV": (lambda f: _written(f, "t.csv", b"\x00\x01" + SECRET.encode()), "is not a CSV file"),
    "empty CSV": (lambda f: _written(f, "t.csv", ""), "is not a CSV file"),
    "no header": (lambda f: _written(f, "t.csv", f"{SECRET},1\ny,2\n"), "no column 'stop': its first line"),
    "not gzip": (lambda f: _written(f, "t.csv.gz", SECRET), "cannot be read as CSV"),
    "cut gzip": (
        lambda f: _cut(
            _written(
                f,
                "t.csv.gz",
                gzip.compress(
                    b"stop,n\n" + b"".join(b"%d,%d\n" % (i * 7919 % 10007, i) for i in range(30000))
                ),
            ),
            0.7,
        ),
        "cannot be read",
    ),
    "mixed columns": (lambda _: {"stop": [1, SECRET]}, "cannot be read as a table"),
    "mixed frame": (lambda _: pd.DataFrame({"stop": [1, SECRET]}), "cannot be read as a table"),
    "uneven columns": (lambda _: {"stop": [SECRET], "card": [1, 2]}, "cannot be read as a table"),
    "failing stream": (lambda _: _failing(SECRET), "the trips cannot be read"),
    "no table": (lambda f: f"duckdb://{f}/x.db", "names no table"),
    "no database": (lambda f: f"duckdb://{f}/x.db::t", "there is no file"),
    "not a database": (lambda f: f"duckdb://{_written(f, 'x.db', SECRET * 99)}::t", "no DuckDB file"),
    "unknown table": (lambda f: _duckdb_url(pa.table({"stop": [1]}), f) + "x", "has none of this name"),
    "bad URL": (lambda f: f"sqlite://user:{SECRET}@/{f}/none/x.db::t", "sqlite URL"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_one_clear_error_that_quotes_no_value(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be read is one error of ours; no value of a cell is in it, nor in its traceback; no spill stays."""
    spill = tmp_path / "spill"
    data = tmp_path / "data"
    spill.mkdir()
    data.mkdir()
    make, message = BAD[kind]
    if "URL" in message:
        pytest.importorskip("ibis")
    trips = make(data)
    monkeypatch.setattr(tempfile, "tempdir", str(spill))
    unit: Any = {"person": "card", "max_trips": 2} if kind == "uneven columns" else "trip"
    with pytest.raises(InputError, match=message) as caught:
        cbdp.count(trips, cbdp.Universe(stop=["x", "y"]), unit=unit)
    shown = "".join(traceback.format_exception(caught.value))
    assert not re.search("SECRET", str(caught.value))
    assert SECRET not in shown.replace(str(data), "")
    assert list(spill.iterdir()) == []


def test_what_does_not_fit_is_spilled_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With little memory the engine sorts on disk, the counts are right and its private folder is gone."""
    monkeypatch.setattr("cbdp.trips.sources.MEMORY", "40MB")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    n = 2_000_000
    rng = np.random.default_rng(4)
    table = pa.table({"stop": rng.integers(0, 51, n), "card": rng.integers(0, 10**12, n)})
    seen: list[int] = []

    def watched() -> Iterator[pa.RecordBatch]:
        for batch in table.to_batches(max_chunksize=20_000):
            assert all(folder.stat().st_mode & 0o77 == 0 for folder in tmp_path.iterdir())
            seen.append(sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file()))
            yield batch

    reader = pa.RecordBatchReader.from_batches(table.schema, watched())
    counts = cbdp.count(reader, cbdp.Universe(stop=list(range(50))), unit=cbdp.Person("card", 10**6))
    assert counts.value.tolist() == np.bincount(table["stop"].to_numpy(), minlength=51)[:50].tolist()
    assert max(seen) > 10**6
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that can neither hold nor spill says so, in our words, and leaves nothing."""
    monkeypatch.setattr("cbdp.trips.sources.MEMORY", "10MB")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    n = 1_000_000
    table = pa.table(
        {"stop": np.zeros(n, dtype=np.int64), "card": np.random.default_rng(5).integers(0, 10**12, n)}
    )
    with pytest.raises(InputError, match="counting needs more than 10MB of memory"):
        cbdp.count(table, cbdp.Universe(stop=[0]), unit=cbdp.Person("card", 1))
    assert list(tmp_path.iterdir()) == []


# Places


def _stops(n: int = 40, seed: int = 0) -> places.Stops:
    rng = np.random.default_rng(seed)
    centre = rng.integers(0, 4, n)
    lat = 37.7 + 0.05 * (centre // 2) + rng.normal(0, 0.004, n)
    lon = -122.4 + 0.06 * (centre % 2) + rng.normal(0, 0.004, n)
    return places.Stops(tuple(f"s{i}" for i in range(n)), tuple("n" * n), lat, lon)


CSV = 'station_id,name,lat,lon,area\n 7 ,Main St,37.1,-122.5,north\n12,"Oak, 2nd",37.2,-122.4,south\n'
FEED = (
    "\ufeffstop_id,stop_name,stop_lat,stop_lon,zone_id,location_type\r\n"
    '7,Main St,37.1,-122.5,north,0\r\nS,Station,37.3,-122.5,,1\r\n12,"Oak, 2nd",37.2,-122.4,south,\r\n'
)
POINTS = json.dumps(
    {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "id": 7,
                "properties": {"name": "Main St", "zone": "north"},
                "geometry": {"type": "Point", "coordinates": [-122.5, 37.1]},
            },
            {
                "type": "Feature",
                "properties": {"id": "12", "name": "Oak, 2nd", "zone": "south"},
                "geometry": {"type": "Point", "coordinates": [-122.4, 37.2, 9.0]},
            },
        ],
    }
)


def _zipped(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "feed.zip", "w") as archive:
        archive.writestr("feed/stops.txt", FEED)
    return folder / "feed.zip"


@pytest.mark.parametrize(
    ("make", "columns"),
    [
        (lambda f: _written(f, "s.csv", CSV), {"id": "station_id", "zone": "area"}),
        (lambda f: _written(f, "stops.txt", FEED), None),
        (lambda f: _written(f, "stops.txt", FEED).parent, None),
        (_zipped, None),
        (lambda f: _written(f, "s.geojson", POINTS), None),
    ],
)
def test_stops_are_read_from_every_kind(make: Callable[[Path], Path], columns: Any, tmp_path: Path) -> None:
    """CSV, GTFS as a file, folder or zip, and GeoJSON points give the same stops."""
    stops = places.stops(make(tmp_path), columns=columns, ids=int)
    assert stops.ids == (7, 12)
    assert stops.names == ("Main St", "Oak, 2nd")
    assert stops.attribute() == {7: "north", 12: "south"}
    assert stops.attribute("lat") == {7: 37.1, 12: 37.2}
    assert stops.lon.tolist() == [-122.5, -122.4]
    universe = cbdp.Universe(origin=stops.dimension(), destination=list(stops.ids))
    universe = universe.with_attribute("destination.zone", "destination", stops.attribute())
    assert universe.count_types(["origin.zone", "destination.zone"]).tolist() == [1, 1, 1, 1]


def _collection(*shapes: tuple[str, str, Any]) -> str:
    return json.dumps(
        {
            "type": "FeatureCollection",
            "features": [
                {"type": "Feature", "properties": {"zone": z}, "geometry": {"type": t, "coordinates": c}}
                for z, t, c in shapes
            ],
        }
    )


def _square(x: float, y: float, size: float) -> list[list[float]]:
    return [[x, y], [x + size, y], [x + size, y + size], [x, y + size], [x, y]]


def _at(*points: tuple[float, float]) -> places.Stops:
    lon, lat = (np.array(v, dtype=float) for v in zip(*points, strict=True))
    return places.Stops(tuple(range(len(points))), ("",) * len(points), lat, lon)


def test_polygons_have_holes_and_parts(tmp_path: Path) -> None:
    """A hole is outside, an island in it is inside, and a zone may have parts."""
    outer, hole, inner = _square(0, 0, 10), _square(2, 2, 6)[::-1], _square(4, 4, 2)
    path = _written(
        tmp_path,
        "z.geojson",
        _collection(
            ("ring", "MultiPolygon", [[outer, hole], [_square(20, 0, 1)]]),
            ("hole", "Polygon", [hole, inner]),
            ("island", "Polygon", [inner]),
        ),
    )
    stops = _at((1, 1), (3, 3), (5, 5), (20.5, 0.5), (9, 5), (3, 5))
    assert places.zones_by_polygon(stops, path).zone == ("ring", "hole", "island", "ring", "ring", "hole")


def test_polygons_agree_with_a_winding_count(tmp_path: Path) -> None:
    """Random points in random star-shaped polygons with a hole: the sum of angles says the same."""
    rng = np.random.default_rng(6)
    for turn in range(20):
        angle = np.sort(rng.uniform(0, 2 * np.pi, 9))
        around = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.uniform(2, 5, 9)[:, None]
        rings = [np.vstack([around, around[:1]]), np.vstack([around, around[:1]])[::-1] * 0.4]
        points = rng.uniform(-5, 5, (200, 2))
        path = _written(
            tmp_path,
            f"{turn}.geojson",
            _collection(
                ("in", "Polygon", [r.tolist() for r in rings]), ("far", "Polygon", [_square(100, 0, 1)])
            ),
        )
        turns = sum(_winding(points, ring) for ring in rings)
        inside = points[turns != 0]
        assert set(places.zones_by_polygon(_at(*inside.tolist()), path).zone) == {"in"}
        for point in points[turns == 0][:20]:
            with pytest.raises(InputError, match="the stop 0 lies in no polygon"):
                places.zones_by_polygon(_at(tuple(point.tolist())), path)


def _winding(points: Any, ring: Any) -> Any:
    """How often a ring goes round each point: the sum of the angles its edges are seen under, by full turns."""
    seen = ring[None] - points[:, None]
    heading = np.arctan2(seen[..., 1], seen[..., 0])
    step = (np.diff(heading, axis=1) + np.pi) % (2 * np.pi) - np.pi
    return np.rint(step.sum(axis=1) / (2 * np.pi)).astype(int)


def test_a_stop_on_a_shared_line_lies_in_one_zone(tmp_path: Path) -> None:
    """Neighbouring polygons share their border, slanted or straight: nobody is in both or in none."""
    slanted = [[[0, 0], [4, 0], [7, 9], [0, 9], [0, 0]], [[4, 0], [12, 0], [12, 9], [7, 9], [4, 0]]]
    path = _written(
        tmp_path,
        "z.geojson",
        _collection(
            ("a", "Polygon", [slanted[0]]),
            ("b", "Polygon", [slanted[1][::-1]]),
            ("c", "Polygon", [_square(-9, 0, 9)]),
        ),
    )
    line = [(4 + 3 * t / 9, t) for t in np.linspace(0, 8.99, 200)] + [
        (0.0, y) for y in np.linspace(0, 8.9, 50)
    ]
    assert set(places.zones_by_polygon(_at(*line), path).zone) <= {"a", "b", "c"}


def test_overlapping_zones_are_refused(tmp_path: Path) -> None:
    """A stop in two zones is named with both."""
    path = _written(
        tmp_path,
        "z.geojson",
        _collection(("a", "Polygon", [_square(0, 0, 4)]), ("b", "Polygon", [_square(2, 2, 4)])),
    )
    assert places.zones_by_polygon(_at((1, 1)), path).zone == ("a",)
    with pytest.raises(InputError, match="the stop 1 lies in the zones 'a' and 'b'"):
        places.zones_by_polygon(_at((1, 1), (3, 3)), path)


def test_clusters_are_compact_and_the_same_in_any_order() -> None:
    """Every stop is nearest to its own zone's middle, the hub nearest to the middle; order does not matter."""
    stops = _stops()
    zoned, hubs = places.zones_by_clustering(stops, 4)
    points = np.column_stack([stops.lat, stops.lon * np.cos(np.radians(stops.lat.mean()))])
    labels = sorted(set(zoned.zone or ()))
    assert labels == ["Z01", "Z02", "Z03", "Z04"]
    member = np.array([labels.index(z) for z in zoned.zone or ()])
    middle = np.array([points[member == m].mean(axis=0) for m in range(4)])
    apart = ((points[:, None] - middle) ** 2).sum(axis=2)
    assert (apart.argmin(axis=1) == member).all()
    assert hubs == tuple(stops.ids[i] for i in apart.argmin(axis=0))
    assert (np.diff(middle[:, 0].round(2)) <= 0).all()  # from north to south
    order = np.random.default_rng(1).permutation(len(stops))
    mixed = places.Stops(tuple(stops.ids[i] for i in order), stops.names, stops.lat[order], stops.lon[order])
    again, same = places.zones_by_clustering(mixed, 4)
    assert again.attribute() == zoned.attribute()
    assert same == hubs


def test_clusters_hold_across_the_date_line_and_at_the_limits() -> None:
    """Longitudes 179.99 and −179.99 are neighbours; one zone, and a zone per place, are possible."""
    stops = _at((179.99, 0), (-179.99, 0), (170.0, 0), (170.01, 0))
    zone = places.zones_by_clustering(stops, 2)[0].zone
    assert zone is not None
    assert zone[0] == zone[1] != zone[2] == zone[3]
    assert set(places.zones_by_clustering(stops, 1)[0].zone or ()) == {"Z01"}
    assert len(set(places.zones_by_clustering(stops, 4)[0].zone or ())) == 4
    with pytest.raises(InputError, match="choose from 1 to 4"):
        places.zones_by_clustering(stops, 5)


def test_distance_bands_are_great_circles() -> None:
    """A degree along a meridian or the equator is 111.195 km; half-way round is half the circumference."""
    stops = _at((0, 0), (0, 1), (1, 0), (180, 0))
    km = places.distances_km(stops)
    assert np.allclose(km[0], [0, 111.195, 111.195, np.pi * 6371.0088], atol=1e-3)
    assert np.allclose(km, km.T)
    bands = places.distance_bands(stops, (100, 150))
    assert bands[0].tolist() == ["0-100 km", "100-150 km", "100-150 km", "150+ km"]
    universe = cbdp.Universe(o=list(stops.ids), d=list(stops.ids)).with_attribute("mode", ("o", "d"), bands)
    assert universe.count_types(["mode"]).sum() == 16
    on_edge = places.distance_bands(stops, (km[0, 1],))
    assert on_edge[0, 1].endswith("+ km")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda f: places.stops(f / "none.csv"), "there is no file"),
        (places.stops, "there is no file"),
        (lambda f: places.stops(_written(f, "s.csv", "id\n")), "holds no stops"),
        (lambda f: places.stops(_written(f, "s.csv", "")), "is not a CSV file"),
        (lambda f: places.stops(_written(f, "s.csv", "stop\nx\n")), "no column 'id': there are stop"),
        (lambda f: places.stops(_written(f, "s.csv", "id\nx\nx\n")), "'x' is listed twice"),
        (lambda f: places.stops(_written(f, "s.csv", "id,lat\nx\n")), "row 2 of .* has 1 fields"),
        (lambda f: places.stops(_written(f, "s.csv", "id,name\n,y\n")), "stop number 1 has no id"),
        (lambda f: places.stops(_written(f, "s.csv", "id\nx\n"), ids=int), "an id that is no int"),
        (lambda f: places.stops(_written(f, "s.csv", "id,lat,lon\nx,north,1\n")), "coordinate 'north'"),
        (lambda f: places.stops(_written(f, "s.csv", "id,lat,lon\nx,91,1\n")), "latitude 91"),
        (lambda f: places.stops(_written(f, "s.csv", "id,lat,lon\nx,1,\n")), "give both, in degrees"),
        (lambda f: places.stops(_written(f, "s.csv", "id,zone\nx,a\ny,\n")), "'y' has no zone"),
        (lambda f: places.stops(_written(f, "s.csv", "id\nx\n"), columns={"x": "y"}), "columns names 'x'"),
        (lambda f: places.stops(_written(f, "s.csv", "id\nx\n")).attribute(), "have no zones"),
        (lambda f: places.stops(_written(f, "s.csv", "id\nx\n")).attribute("colour"), "no 'colour'"),
        (lambda f: places.stops(_written(f, "s.zip", "x")), "cannot be read"),
        (lambda f: places.stops(_written(f, "s.geojson", "[1]")), "no GeoJSON FeatureCollection"),
        (
            lambda f: places.stops(_written(f, "s.geojson", _collection(("a", "Polygon", [])))),
            "stops are points",
        ),
        (lambda f: places.distances_km(places.stops(_written(f, "s.csv", "id\nx\n"))), "no coordinates"),
        (lambda _: places.distance_bands(_stops(), (2, 1)), "above 0 that rise"),
        (
            lambda f: places.zones_by_polygon(
                _stops(), _written(f, "z.geojson", _collection(("", "Polygon", [])))
            ),
            "no property 'zone'",
        ),
        (
            lambda f: places.zones_by_polygon(
                _stops(), _written(f, "z.geojson", _collection(("a", "Point", [1, 2])))
            ),
            "zones are polygons",
        ),
        (
            lambda f: places.zones_by_polygon(
                _stops(), _written(f, "z.geojson", _collection(("a", "Polygon", [[1]])))
            ),
            "without proper coordinates",
        ),
    ],
)
def test_bad_places_are_one_clear_error(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    """Public files may be quoted: the error names the stop, the row or the column."""
    with pytest.raises(InputError, match=message):
        make(tmp_path)


def test_places_load_no_engine() -> None:
    """Reading stops needs neither DuckDB nor Arrow, and the counts' module none before it counts."""
    script = (
        "import sys, cbdp.features.places, cbdp.trips.sources, cbdp.trips.count; "
        "print([m for m in ['duckdb', 'pyarrow', 'scipy', 'ibis'] if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"
