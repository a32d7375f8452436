"""Attempts to make one trip or one person weigh more than the unit says, or to let one row decide the outcome: refused, or exact."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from counting.making import AT, UNIVERSE, as_dict, brute_force, parquet, random_rows, written

import cbdp
from cbdp.counting import Clock, inspect
from cbdp.errors import InputError

STOPS = cbdp.Universe(stop=["A", "B"])
TEN = pa.table({"stop": ["A"] * 10})


def _tens(trips: Any) -> None:
    assert as_dict(cbdp.count(trips, STOPS), STOPS) == {("A",): 10}


# One trip counts once


def test_a_file_and_its_other_names_are_one_file(tmp_path: Path) -> None:
    """Patterns that overlap, dots, symbolic and hard links: each file is counted once, and inspect says so."""
    path = parquet(TEN, tmp_path / "one.parquet")
    (tmp_path / "link.parquet").symlink_to(path)
    os.link(path, tmp_path / "hard.parquet")
    (tmp_path / "data").mkdir()
    for trips in (
        [path, str(tmp_path / "one*.parquet")],
        [path, path],
        [path, tmp_path / "data" / ".." / "one.parquet"],
        [path, tmp_path / "link.parquet"],
        [path, tmp_path / "hard.parquet"],
        str(tmp_path / "*.parquet"),
        str(tmp_path),
    ):
        _tens(trips)
        assert "counted once" in inspect(trips, STOPS).notes[0]


def test_a_folder_of_parquet_in_a_pattern_is_counted_once(tmp_path: Path) -> None:
    """Spark writes folders called like files; a pattern that finds the folder and the files in it counts them once."""
    folder = tmp_path / "trips.parquet"
    folder.mkdir()
    parquet(TEN.slice(0, 4), folder / "part-0.parquet")
    parquet(TEN.slice(4), folder / "part-1.parquet")
    written(folder, "_SUCCESS", "")
    written(folder, ".part-0.parquet.crc", "x")
    parquet(TEN, folder / "_old.parquet")
    for trips in (
        str(tmp_path / "*"),
        str(tmp_path / "**" / "*.parquet"),
        [folder, folder / "part-0.parquet"],
        tmp_path,
        folder,
    ):
        if trips == str(tmp_path / "**" / "*.parquet"):
            (folder / "_old.parquet").unlink()  # named by the pattern itself
        _tens(trips)


@pytest.mark.parametrize("book", ["_delta_log", ".hoodie", "metadata"])
def test_a_table_that_keeps_old_versions_is_refused(book: str, tmp_path: Path) -> None:
    """Delta, Hudi and Iceberg leave the files of older versions in place: all files together are no table."""
    parquet(TEN, tmp_path / "old.parquet")
    parquet(TEN, tmp_path / "new.parquet")
    (tmp_path / book).mkdir()
    written(tmp_path / book, "v1.metadata.json", "{}")
    with pytest.raises(InputError, match=r"is a \w+ table: export its present version"):
        cbdp.count(tmp_path, STOPS)


def test_csv_files_and_their_links_are_counted_once(tmp_path: Path) -> None:
    """Text files are told apart in the same way."""
    path = written(tmp_path, "t.csv", "stop\n" + "A\n" * 10)
    (tmp_path / "u.csv").symlink_to(path)
    _tens([path, tmp_path / "u.csv"])


def test_a_file_that_is_written_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was counted is not known then; nothing was spent."""
    path = parquet(TEN, tmp_path / "t.parquet")
    from cbdp.counting.engines.duckdb import DuckSource

    count = DuckSource.count

    def slow(self: DuckSource, *given: Any) -> Any:
        yield from count(self, *given)
        parquet(pa.table({"stop": ["A"] * 11}), path)

    monkeypatch.setattr(DuckSource, "count", slow)
    with pytest.raises(InputError, match="was written while it was counted"):
        cbdp.count(path, STOPS)


def _database(folder: Path, columns: str, rows: list[tuple[Any, ...]]) -> str:
    with duckdb.connect(str(folder / "city.db")) as db:
        db.execute(f"CREATE TABLE trips ({columns})")
        db.register(
            "given",
            pa.table(
                [list(column) for column in zip(*rows, strict=True)],
                names=[f"c{i}" for i in range(len(rows[0]))],
            ),
        )
        db.execute("INSERT INTO trips SELECT * FROM given")
    return f"duckdb://{folder / 'city.db'}::trips"


def test_a_collation_neither_merges_nor_multiplies_stops(tmp_path: Path) -> None:
    """`A` and `a` are two stops, in a column that calls them equal: each row counts once, for its own."""
    url = _database(tmp_path, "stop VARCHAR COLLATE NOCASE", [("A",)] * 3 + [("a",)] * 5 + [("Á",)])
    universe = cbdp.Universe(stop=["A", "a"])
    assert as_dict(cbdp.count(url, universe), universe) == {("A",): 3, ("a",): 5}


def test_one_date_under_two_labels_is_refused() -> None:
    """2026-03-02 is the first day of week 10: a key that means two labels would count a row twice."""
    universe = cbdp.Universe(day=["2026-03-02", "2026-W10-1"])
    rows = {"day": ["2026-03-02"] * 5}
    with pytest.raises(InputError, match="'2026-03-02' and '2026-W10-1' of a dimension mean the same"):
        cbdp.count(rows, universe)


# One person counts for max_trips


def test_a_collation_does_not_make_riders_alternate(tmp_path: Path) -> None:
    """Riders `ab` and `AB` in a column that calls them equal: two persons, four trips each, and no 1,000."""
    url = _database(
        tmp_path,
        "stop VARCHAR, card VARCHAR COLLATE NOCASE",
        [("A", "ab" if i % 2 else "AB") for i in range(1000)],
    )
    assert cbdp.count(url, STOPS, unit=cbdp.Person("card", 4)).value.tolist() == [8]


def test_the_persons_column_is_looked_up_once() -> None:
    """A person's column that is called like a dimension, or like a mapped one, is the column of that name and no other."""
    rows = {"card": ["x"] * 6, "zone": ["A"] * 6, "stop": ["A", "B"] * 3, "who": list("uvwxyz")}
    universe = cbdp.Universe(card=["A", "B"])
    swapped = {"card": "zone"}  # the dimension `card` is in the column `zone`
    assert cbdp.count(rows, universe, columns=swapped, unit=cbdp.Person("card", 2)).value.tolist() == [2]
    assert cbdp.count(rows, universe, columns=swapped, unit=cbdp.Person("zone", 1)).value.tolist() == [1]
    named = {"card": "zone", "person": "who"}
    assert cbdp.count(rows, universe, columns=named, unit=cbdp.Person("person", 2)).value.tolist() == [6]
    assert cbdp.count(rows, universe, columns=named, unit=cbdp.Person("who", 2)).value.tolist() == [6]
    with pytest.raises(InputError, match="the person is in 'who', the unit says 'card'"):
        cbdp.count(rows, universe, columns=named, unit=cbdp.Person("card", 2))
    persons = cbdp.Universe(person=["A", "B"])  # a dimension of that name keeps it
    assert cbdp.count(
        rows, persons, columns={"person": "zone"}, unit=cbdp.Person("who", 1)
    ).value.tolist() == [6]
    assert cbdp.count({"person": ["A"] * 5}, persons, unit=cbdp.Person("person", 2)).value.tolist() == [2]


@pytest.mark.parametrize(
    "place", ["memory", "dictionary", "parquet", "parquet with a dictionary", "database"]
)
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_is_nobody_wherever_it_stands(place: str, kind: Any, tmp_path: Path) -> None:
    """Else every such trip would be a person of its own, and unbounded."""
    cards: Any = pa.array([float("nan"), -float("nan"), 1.0, float("nan"), 1.0, 0.0, -0.0, 0.0], kind)
    if "dictionary" in place:
        cards = cards.dictionary_encode()
    table = pa.table({"stop": ["A"] * len(cards), "card": cards})
    trips: Any = table
    if place.startswith("parquet"):
        trips = parquet(table, tmp_path / "t.parquet")
    if place == "database":
        trips = _database(tmp_path, "stop VARCHAR, card DOUBLE", [("A", c) for c in cards.to_pylist()])
    assert cbdp.count(trips, STOPS, unit=cbdp.Person("card", 1)).value.tolist() == [2]


def test_persons_beyond_the_range_of_floats_are_told_apart() -> None:
    """Whole numbers that agree as doubles are two persons."""
    rows = {"stop": ["A"] * 4, "card": [2**53, 2**53, 2**53 + 1, 2**53 + 1]}
    assert cbdp.count(rows, STOPS, unit=cbdp.Person("card", 1)).value.tolist() == [2]


def test_counts_name_no_persons() -> None:
    """A weight would multiply a person's bound."""
    rows = {"stop": ["A"], "n": [1000], "card": ["x"]}
    with pytest.raises(InputError, match="holds counts, which name no persons"):
        cbdp.count(rows, STOPS, columns={"count": "n"}, unit=cbdp.Person("card", 2))


# No row decides the outcome


def _bad_text(values: list[bytes]) -> Any:
    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    )


@pytest.mark.parametrize("place", ["memory", "parquet", "parquet with a dictionary", "csv"])
@pytest.mark.parametrize("unit", ["trip", "person"])
def test_bytes_that_are_no_text_are_a_value_like_any_other(place: str, unit: str, tmp_path: Path) -> None:
    """Invalid UTF-8 in a stop drops the row, in a person it is a person; nothing is merged with it."""
    stops = _bad_text([b"A", b"A\xff", b"\xffA", b"A", b"B"] * 2)
    cards = _bad_text([b"x", b"x\xff", b"x", b"x\xff", b"\xff"] * 2)
    table = pa.table({"stop": stops, "card": cards})
    trips: Any = table
    if place.startswith("parquet"):
        trips = tmp_path / "t.parquet"
        pa.parquet.write_table(table, trips, use_dictionary="dictionary" in place)
    if place == "csv":
        lines = zip(stops.cast(pa.binary()).to_pylist(), cards.cast(pa.binary()).to_pylist(), strict=True)
        trips = written(tmp_path, "t.csv", b"stop,card\n" + b"".join(b"%b,%b\n" % pair for pair in lines))
    if unit == "trip":
        assert as_dict(cbdp.count(trips, STOPS), STOPS) == {("A",): 4, ("B",): 2}
    else:
        counts = cbdp.count(trips, STOPS, unit=cbdp.Person("card", 1))
        assert as_dict(counts, STOPS) == {("A",): 2, ("B",): 1}


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/Los_Angeles"])
@pytest.mark.parametrize("clock", [Clock(), Clock("Europe/Berlin"), Clock("+14:00")])
def test_absurd_stamps_are_dropped(unit: str, zone: str | None, clock: Clock, tmp_path: Path) -> None:
    """Stamps at the ends of 64 bits neither stop the count nor wrap around into it, in memory and in Parquet."""
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    ends = [
        np.iinfo(np.int64).max,
        np.iinfo(np.int64).min,
        np.iinfo(np.int64).max - 1,
        np.iinfo(np.int64).min + 1,
    ]
    good = 1_772_438_400 * per
    raw = np.array([*ends, good, good + 60 * per], dtype=np.int64)
    stamps = pa.array(raw).view(pa.timestamp(unit, zone))
    universe = cbdp.Universe(time=cbdp.periods("00:00", "24:00", "24h"), day=["weekday", "weekend"])
    table = pa.table({"at": stamps})
    trips: list[Any] = [table]
    if unit != "s":
        trips.append(parquet(table, tmp_path / "t.parquet"))
    for given in trips:
        counts = cbdp.count(given, universe, columns={"time": "at", "day": "at"}, clock=clock)
        assert counts.value.sum() == 2


def test_absurd_dates_and_times_are_dropped() -> None:
    """So are days and times of day beyond any calendar."""
    universe = cbdp.Universe(day=["weekday", "weekend"])
    wide = np.iinfo(np.int64)
    for kind, raw in (
        (pa.date32(), np.array([2**31 - 1, -(2**31), 20_000], dtype=np.int32)),
        (pa.date64(), np.array([wide.max, wide.min, 20_000 * 86_400_000], dtype=np.int64)),
    ):
        assert cbdp.count(pa.table({"day": pa.array(raw).view(kind)}), universe).value.sum() == 1
    clock = cbdp.Universe(time=cbdp.periods("00:00", "24:00", "1h"))
    for unit, good in (("us", 3600 * 10**6), ("ns", 3600 * 10**9)):
        times = pa.array(np.array([wide.max, wide.min, -1, good], dtype=np.int64)).view(pa.time64(unit))
        assert cbdp.count(pa.table({"time": times}), clock).index.tolist() == [1]


@pytest.mark.parametrize(
    "bad", [b"A,1,extra", b"A", b'"A,1', b'A,"1', b"A\xff,1", b'"A"x,1', b"A\r,1", b"\x00,1", b',"']
)
def test_one_line_of_a_csv_changes_its_own_count_and_no_other(bad: bytes, tmp_path: Path) -> None:
    """With the line and without it, the count of all others is the same, and neither is an error."""
    before, after = b"stop,n\n" + b"B,1\nA,1\n" * 50, b'B,1\nA,1\n"B",1\n' * 50
    counts = [
        as_dict(cbdp.count(written(tmp_path, f"{i}.csv", before + line + after), STOPS), STOPS)
        for i, line in enumerate((b"", bad + b"\n", bad + b"\r\n"))
    ]
    assert counts[0] == {("A",): 100, ("B",): 150}
    for found in counts[1:]:
        assert sum(abs(found[t] - counts[0][t]) for t in counts[0]) <= 1


def test_weights_that_are_no_counts_drop_their_row(tmp_path: Path) -> None:
    """Fractions, negative numbers, NaN and nothing: the row is dropped; enormous ones saturate and never wrap around."""
    rows = {"stop": ["A"] * 6 + ["B"] * 2, "n": [3.0, 0.5, -1.0, float("nan"), None, 4.0, 0.0, -2.0]}
    columns = {"count": "n"}
    assert as_dict(cbdp.count(rows, STOPS, columns=columns), STOPS) == {("A",): 7}
    big = {"stop": ["A"] * 5, "n": [2**63 - 1] * 5}
    assert cbdp.count(big, STOPS, columns=columns).value.tolist() == [2**40]
    path = written(tmp_path, "t.csv", "stop,n\nA,3\nA,x\nA,-4\nA,2.5\nA,\nB, 2.0\nA,-99999999999999999999\n")
    assert as_dict(cbdp.count(path, STOPS, columns=columns), STOPS) == {("A",): 3, ("B",): 2}


def test_a_misspelt_name_of_a_column_is_refused() -> None:
    """Else a weight would silently become one, or a dimension be read from elsewhere."""
    with pytest.raises(InputError, match="columns name 'cuont', which is no dimension: did you mean 'count'"):
        cbdp.count({"stop": ["A"], "n": [5]}, STOPS, columns={"cuont": "n"})


def test_errors_after_opening_quote_nothing(tmp_path: Path) -> None:
    """A row that no reader can read is an error without the row."""
    table = pa.table(random_rows(300))
    path = parquet(table, tmp_path / "t.parquet")
    assert as_dict(cbdp.count(path, UNIVERSE, columns=AT)) == brute_force(random_rows(300))
    data = bytearray(path.read_bytes())
    data[40:400] = np.random.default_rng(9).bytes(360)
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="cannot be read: it is damaged, or not whole") as caught:
        cbdp.count(path, UNIVERSE, columns=AT)
    assert "card" not in str(caught.value)
