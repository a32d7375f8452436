"""Random trips in random files, counted by cbdp and by a plain loop over the rows (reference.py): always the same counts.

What is drawn: labels and what columns hold of them, junk among the values, clocks with zones around both changes of the clock,
persons and weights, Parquet and CSV in several files, encodings, links and overlapping patterns, tables with a collation.
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from counting.making import as_dict
from counting.reference import reference
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cbdp
from cbdp.counting import Clock, inspect, second_count, trips_by_person
from cbdp.features import days

EXAMPLES = int(os.environ.get("CBDP_EXAMPLES", "40"))  # more in a long run
KEY = bytes(range(100, 132))
ZONES = [
    None,
    "UTC",
    "America/Los_Angeles",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "+05:45",
]
CHANGES = [  # when clocks change, in UTC
    dt.datetime(2026, 3, 8, 10),  # noqa: DTZ001
    dt.datetime(2026, 11, 1, 9),  # noqa: DTZ001
    dt.datetime(2026, 3, 29, 1),  # noqa: DTZ001
    dt.datetime(2026, 10, 25, 1),  # noqa: DTZ001
    dt.datetime(2026, 4, 4, 15),  # noqa: DTZ001
    dt.datetime(2026, 10, 3, 15, 30),  # noqa: DTZ001
    dt.datetime(1899, 12, 30),  # noqa: DTZ001
]
FORMATS = ["%m/%d/%Y %H:%M", "%d.%m.%y %I:%M:%S %p", "%Y%m%d %H%M", "%d %b %Y %H:%M:%S.%f"]
NAMES = [["A", "a", "B b", "É", "é"], ["7", "289", "-3"], [7, 289, 2**53 + 1]]
STRANGE = ["", " A", "A ", "7.0", "289.", "07", "+7", "x" * 40, "\u0301", "%", "NULL", "nan", "1e3"]


class _Fixed:
    secure = False

    def words(self, n: int, bits: int) -> Any:
        return np.frombuffer(KEY[: n * bits // 8], dtype=f"u{bits // 8}")


@dataclass
class Case:
    """Trips, and how they are to be read."""

    universe: cbdp.Universe
    columns: dict[str, str]
    clock: Clock
    types: dict[str, pa.DataType]
    rows: list[dict[str, Any]]
    person: str | None = None
    most: int = 0
    per: str = "release"
    apart: str | None = None
    how: dict[str, Any] = field(default_factory=dict)  # choices of the storage


NEAR = [0, 0, -1, 1, 3599, 3600, -3600, 1800, 7200, 86_399, -86_400]  # seconds from a change


@st.composite
def instants(draw: st.DrawFn) -> dt.datetime:
    seconds = draw(st.one_of(st.sampled_from(NEAR), st.integers(-90_000, 90_000)))
    small = draw(st.sampled_from([0, 0, 1, 999_999]))
    return draw(st.sampled_from(CHANGES)) + dt.timedelta(seconds=seconds, microseconds=small)


@st.composite
def times(draw: st.DrawFn, form: str, clock: Clock) -> Any:
    """A value of the column of times; now and then one that is none."""
    if draw(st.integers(0, 19)) == 19:
        return None
    at = draw(instants())
    if form in ("us", "ns", "ms", "s"):
        return at
    if form == "hour":
        return draw(st.integers(-1, 25))
    if form == "epoch":
        unit = 1000 if clock.format == "epoch_ms" else 1
        junk = [2**62, -(2**62), 10**17]
        exact = (at - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1) * unit  # noqa: DTZ001
        return draw(st.sampled_from([exact, exact, exact, *junk]))
    if form == "format":
        return at.strftime(str(clock.format))
    return draw(st.sampled_from(_texts(at)))


def _texts(at: dt.datetime) -> list[str]:
    aware = at.replace(tzinfo=dt.UTC)
    return [
        at.isoformat(" ", "minutes"),
        at.isoformat(),
        f"{at.year}-{at.month}-{at.day} {at.hour}:{at:%M:%S}",
        aware.astimezone(ZoneInfo("Asia/Tokyo")).isoformat(),
        aware.isoformat().replace("+00:00", "Z"),
        f"{at:%Y-%m-%d %H:%M}+0530",
        f"{at:%H:%M}",
        f"{at.hour}:{at:%M:%S.%f}",
        f"{at:%Y-%m-%d}",
        f" {at:%Y-%m-%d %H:%M} ",
        f"{at.hour}",
        f"{at:%m/%d/%Y %H:%M}",
        "2026-02-30 10:00",
        "2026-03-02 24:00",
        "2026-03-02 10:60",
        "290000-01-01 00:00",
        "0001-01-01 08:00",
        "now",
        "",
    ]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    zone = draw(st.sampled_from(ZONES))
    form = draw(st.sampled_from(["us", "ns", "ms", "s", "text", "format", "hour", "epoch"]))
    stated = {"format": st.sampled_from(FORMATS), "epoch": st.sampled_from(["epoch_s", "epoch_ms"])}
    holidays = draw(st.sampled_from([{}, {dt.date(2026, 3, 8): "monday", dt.date(2026, 10, 25): "fête"}]))
    starts = draw(st.sampled_from(["00:00", "00:00", "04:00", "02:30:01"]))
    clock = Clock(zone, draw(stated.get(form, st.none())), holidays, starts)
    labels = draw(st.sampled_from(NAMES))
    dims: dict[str, Any] = {"stop": labels, "time": draw(_periods())}
    if form != "hour" and draw(st.booleans()):
        dims["day"] = draw(_days())
    universe = cbdp.Universe(**dims)
    if draw(st.booleans()):
        universe = universe.without(("stop", "time"), lambda s, _: s == labels[0])
    types = {"stop": _stop_type(draw, labels), "at": _time_type(form), "card": draw(_persons())}
    columns = {"time": "at"} | ({"day": "at"} if "day" in dims else {})
    unit = draw(st.sampled_from(["trip", "person", "count"]))
    if unit == "count":
        types["n"] = pa.int64()
        columns["count"] = "n"
    row = {
        "stop": _stop(types["stop"], labels),
        "at": times(form, clock),
        "card": _card(types["card"]),
        "n": st.sampled_from([0, 1, 1, 7, -1, None]),
    }
    rows = draw(st.lists(st.fixed_dictionaries({c: row[c] for c in types}), max_size=40))
    rows += [draw(st.sampled_from(rows)) for _ in range(draw(st.integers(0, 10)))] if rows else []
    case = Case(universe, columns, clock, types, rows, how=draw(_storages(types)))
    if unit == "person":
        case.person, case.most = "card", draw(st.integers(1, 4))
        case.per = draw(st.sampled_from(["release", "day", "week", "month"])) if form != "hour" else "release"
        case.apart = draw(st.sampled_from([None, "time"]))
    return case


def _periods() -> st.SearchStrategy[cbdp.Dimension]:
    return st.sampled_from(
        [
            cbdp.periods("00:00", "24:00", "1h"),
            cbdp.periods("00:00", "24:00", "15min"),
            cbdp.periods("06:00", "20:00", "30min"),
            cbdp.periods("01:00", "03:00", "20min"),
            cbdp.Dimension(["early", "late"], edges=[0, 7201, 86400]),
        ]
    )


def _days() -> st.SearchStrategy[Any]:
    return st.sampled_from(
        [
            days("2026-03-07", "2026-03-30"),
            [dt.date(2026, 10, 25), dt.date(2026, 11, 1)],
            ["weekday", "saturday", "sunday"],
            ["weekday", "weekend"],
            ["monday", "sunday"],
        ]
    )


def _stop_type(draw: st.DrawFn, labels: Sequence[Any]) -> pa.DataType:
    if isinstance(labels[0], int):
        return draw(st.sampled_from([pa.int64(), pa.float64()]))
    text = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
    return draw(st.sampled_from([*text, *([pa.int64(), pa.float64()] if labels[0] == "7" else [])]))


def _stop(kind: pa.DataType, labels: Sequence[Any]) -> st.SearchStrategy[Any]:
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        numbers = [int(v) for v in labels] * 4 + [None, 8, 0]
        exact = [n for n in numbers if n is None or n < 2**53]
        more = [7.5, -0.0, float("nan"), float("inf")]
        return st.sampled_from(
            [*(float(n) for n in exact if n is not None), *more] if pa.types.is_floating(kind) else numbers
        )
    return st.sampled_from([*labels * 8, *STRANGE, None])


def _time_type(form: str) -> pa.DataType:
    if form in ("us", "ns", "ms", "s"):
        return pa.timestamp(form)
    return pa.int64() if form in ("hour", "epoch") else pa.string()


def _persons() -> st.SearchStrategy[pa.DataType]:
    return st.sampled_from([pa.string(), pa.int64(), pa.float64(), pa.dictionary(pa.int8(), pa.string())])


def _card(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_floating(kind):
        return st.sampled_from([0.0, -0.0, 1.0, 1.5, float("nan"), None])
    return st.sampled_from(
        [0, 1, 2**53, 2**53 + 1, None] if pa.types.is_integer(kind) else ["a", "A", "é", "", None]
    )


@st.composite
def _storages(draw: st.DrawFn, types: dict[str, pa.DataType]) -> dict[str, Any]:
    kind = draw(st.sampled_from(["memory", "batches", "parquet", "parquet", "csv", "csv", "database"]))
    exact = all(
        not pa.types.is_floating(t) for t in types.values()
    )  # floats are written by each library its own way
    return {
        "kind": "parquet" if kind == "csv" and not exact else kind,
        "files": draw(st.integers(1, 3)),
        "links": draw(st.sampled_from(["none", "symbolic", "hard", "dots", "pattern", "folder"])),
        "dictionary": draw(st.booleans()),
        "mark": draw(st.sampled_from([",", ";", "\t"])),
        "quoting": draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        "end": draw(st.sampled_from(["\n", "\r\n"])),
        "packed": draw(st.booleans()),
        "bom": draw(st.booleans()),
        "junk": draw(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(JUNK)), max_size=4)),
    }


JUNK = [b"x", b"a,b,c;d;e\tf\tg,h;i\tj", b'"open', b'x,"y"z;\t', b"", b"\xff\xfe\x00"]


# Storing


def stored(case: Case, folder: Path) -> Any:
    how = case.how
    if how["kind"] == "csv":
        return _linked([_csv(case, folder, part, rows) for part, rows in enumerate(_cut(case))], how, folder)
    table = pa.table({c: pa.array([r[c] for r in case.rows], t) for c, t in case.types.items()})
    if how["kind"] == "memory":
        return table
    if how["kind"] == "batches":
        return table.to_reader(max_chunksize=3)
    if how["kind"] == "database":
        return _database(table, folder)
    paths = []
    for part, rows in enumerate(_cut(case)):
        path = folder / f"trips-{part}.parquet"
        made = pa.table({c: pa.array([r[c] for r in rows], t) for c, t in case.types.items()})
        pa.parquet.write_table(made, path, use_dictionary=how["dictionary"], row_group_size=7)
        paths.append(path)
    return _linked(paths, how, folder)


def _cut(case: Case) -> list[list[dict[str, Any]]]:
    n = case.how["files"]
    return [case.rows[part::n] for part in range(n)]


def _linked(paths: list[Path], how: dict[str, Any], folder: Path) -> Any:
    """The files, and other names of some of them."""
    name = f"again-{paths[0].name}"
    if how["links"] == "symbolic":
        (folder / name).symlink_to(paths[0])
    elif how["links"] == "hard":
        os.link(paths[0], folder / name)
    elif how["links"] == "dots":
        return [*paths, folder / ".." / folder.name / paths[0].name]
    elif how["links"] == "folder" and how["kind"] == "parquet":
        return [str(folder), str(folder / "trips-*")]
    if how["links"] == "none":
        return paths
    return [*map(str, paths), str(folder / f"*{''.join(paths[0].suffixes)}")]


def _database(table: pa.Table, folder: Path) -> str:
    with duckdb.connect(str(folder / "city.db")) as db:
        db.register("given", table)
        types = {row[0]: row[1] for row in db.sql("DESCRIBE SELECT * FROM given").fetchall()}
        listed = ", ".join(
            f'"{c}" {"VARCHAR COLLATE NOCASE" if t == "VARCHAR" or t.startswith("ENUM") else t}'
            for c, t in types.items()
        )
        db.execute(f"CREATE TABLE trips ({listed})")
        db.execute("INSERT INTO trips SELECT * FROM given")
    return f"duckdb://{folder / 'city.db'}::trips"


def _csv(case: Case, folder: Path, part: int, rows: Sequence[dict[str, Any]]) -> Path:
    how = case.how
    lines = []
    for row in [dict(zip(case.types, case.types, strict=True)), *rows]:
        made = io.StringIO()
        writer = csv.writer(made, delimiter=how["mark"], quoting=how["quoting"], lineterminator=how["end"])
        writer.writerow([_cell(row[c]) for c in case.types])
        lines.append(made.getvalue().encode())
    for place, junk in how["junk"]:
        lines.insert(1 + place % len(lines), junk + how["end"].encode())
    data = (b"\xef\xbb\xbf" if how["bom"] else b"") + b"".join(lines)
    path = folder / f"trips-{part}.csv{'.gz' if how['packed'] else ''}"
    path.write_bytes(gzip.compress(data) if how["packed"] else data)
    return path


def _cell(value: Any) -> str:
    return "" if value is None else value.isoformat(" ") if isinstance(value, dt.datetime) else str(value)


def _rows_of(case: Case) -> list[dict[str, Any]]:
    """What the reference reads: text, where it is a CSV; stamps as the column's unit holds them."""
    if case.how["kind"] == "csv":
        return [{c: _cell(v) or None for c, v in row.items()} for row in case.rows]
    cut = {"s": 10**6, "ms": 10**3}.get(getattr(case.types["at"], "unit", ""), 1)

    def held(value: Any) -> Any:
        return (
            value.replace(microsecond=value.microsecond // cut * cut)
            if isinstance(value, dt.datetime)
            else value
        )

    return [{c: held(v) for c, v in row.items()} for row in case.rows]


@pytest.mark.slow
@given(cases())
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_count_is_that_of_a_plain_loop(case: Case) -> None:
    """Exactly the reference's counts, persons' kept trips included, whatever the files look like."""
    for row in case.rows:  # Arrow refuses to write fractions that a unit cannot hold
        unit = getattr(case.types["at"], "unit", "")
        if isinstance(row["at"], dt.datetime) and unit in ("s", "ms"):
            row["at"] = row["at"].replace(microsecond=0)
    with tempfile.TemporaryDirectory() as folder:
        trips = stored(case, Path(folder))
        unit: Any = "trip"
        if case.person is not None:
            unit = cbdp.Person(case.person, case.most, case.per, case.apart)
        counts = cbdp.count(
            trips, case.universe, columns=case.columns, clock=case.clock, unit=unit, entropy=_Fixed()
        )
        found = as_dict(counts, case.universe)
        wanted = reference(
            _rows_of(case),
            case.universe,
            case.columns,
            case.clock,
            untyped=case.how["kind"] == "csv",
            person=case.person,
            most=case.most,
            key=KEY,
            per=case.per,
            apart=case.apart,
        )
        assert found == {t: n for t, n in wanted.items() if n}
        if case.person is None and case.how["kind"] in ("memory", "parquet", "csv"):
            again = second_count(trips, case.universe, columns=case.columns, clock=case.clock)
            assert [a.tolist() for a in again] == [counts.index.tolist(), counts.value.tolist()]
        if case.person is not None and case.how["kind"] in ("memory", "parquet", "csv"):
            _check_persons(trips, case, unit)
        if case.how["kind"] != "batches":
            _check_inspection(trips, case, unit)


def _check_persons(trips: Any, case: Case, unit: Any) -> None:
    """The second count and the engine group the same trips by person and period."""
    given = {"columns": case.columns, "clock": case.clock}
    again = _groups(*trips_by_person(trips, case.universe, unit, **given))
    with monkeypatched("cbdp.counting.inspection.can_recount", lambda _: False):
        assert _groups(*trips_by_person(trips, case.universe, unit, **given)) == again


def _groups(new: Any, types: Any) -> list[list[int]]:
    return sorted(sorted(part.tolist()) for part in np.split(types, np.flatnonzero(new)[1:]))


@contextmanager
def monkeypatched(name: str, value: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(name, value)
        yield


def _check_inspection(trips: Any, case: Case, unit: Any) -> None:
    """An inspection adds up, and counts what a loop without a bound counts."""
    seen = inspect(trips, case.universe, columns=case.columns, clock=case.clock, unit=unit)
    everybody = reference(
        _rows_of(case),
        case.universe,
        case.columns,
        case.clock,
        untyped=case.how["kind"] == "csv",
        person=case.person,
        most=10**9,
        key=KEY,
        per=case.per,
    )
    assert seen.trips == sum(everybody.values())
    assert all(sum(n for _, n in by) == seen.trips for by in seen.by.values())
    assert seen.counted <= seen.read
    assert seen.read - seen.counted <= sum(d.rows for d in seen.dropped)
    assert all(d.rows <= seen.read for d in seen.dropped)
    assert seen.loads is None or seen.loads.trips == seen.trips
