"""At most m trips of a person: evenly chosen, by the multiset of types and the key alone, whoever the person is."""

from __future__ import annotations

import collections
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from counting.making import AT, ORIGINS, UNIVERSE, as_dict, csv, duckdb_url, parquet, random_rows, same
from scipy import stats

import cbdp
from cbdp.counting.engines.duckdb import DuckDialect
from cbdp.privacy.entropy import InsecureSeededEntropy


def _kept_in(kind: str, table: pa.Table, folder: Path) -> Any:
    if kind == "arrow":
        return table
    return csv(table, folder / "t.csv") if kind == "csv" else parquet(table, folder / "t.parquet")


@pytest.mark.parametrize("unit", ["trip", {"person": "card", "max_trips": 4}])
@pytest.mark.parametrize("kind", ["arrow", "parquet", "csv"])
def test_order_and_outside_rows_change_nothing(unit: Any, kind: str, tmp_path: Path) -> None:
    """Shuffled rows, and rows outside the universe, leave the counts as they are, also those bounded by a seed."""
    table = pa.table(random_rows())
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
            _kept_in(kind, rows, folder),
            UNIVERSE,
            columns=AT,
            unit=unit,
            entropy=InsecureSeededEntropy(5),
        )
        for rows, folder in ((table, tmp_path), (shuffled, tmp_path / "other"))
    ]
    assert same(*found)
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
    assert same(*found)
    assert found[0].value.sum() == 2000


def test_a_person_is_bounded_by_trips_inside_only() -> None:
    """Trips at structural zeros, or outside, never take the place of a trip inside."""
    rows = {
        "origin": ["A"] * 500 + ["B b"] + ["gone"] * 500,
        "destination": [5] * 500 + [8] + [8] * 500,
        "time": ["08:00"] * 1001,
        "card": ["x"] * 1001,
    }
    assert as_dict(cbdp.count(rows, UNIVERSE, unit=cbdp.Person("card", 1))) == {("B b", 8, "08:00"): 1}


def test_every_person_keeps_what_there_is_up_to_m(tmp_path: Path) -> None:
    """Each person's number of trips is min(m, theirs), their trips being some of theirs."""
    rows = random_rows()
    cards = sorted({c for c in rows["card"] if c})
    universe = cbdp.Universe(card=cards, origin=ORIGINS)
    mine = collections.Counter(
        (c, o) for c, o in zip(rows["card"], rows["origin"], strict=True) if c and o in ORIGINS
    )
    total = collections.Counter(c for c, _ in mine.elements())
    for m in (1, 20, 10**6):
        path = parquet(pa.table(rows), tmp_path / f"{m}.parquet")
        kept = as_dict(cbdp.count(path, universe, unit=cbdp.Person("card", m)), universe)
        assert all(n <= mine[key] for key, n in kept.items())
        assert {c: sum(kept.get((c, o), 0) for o in ORIGINS) for c in cards} == {
            c: min(m, total[c]) for c in cards
        }


def test_a_person_that_is_not_a_number_is_nobody() -> None:
    """NaN stands for a missing person: else every such trip would be a person of its own, and unbounded."""
    universe = cbdp.Universe(stop=[0, 1])
    trips = pa.table({"stop": [0, 0, 1], "card": pa.array([float("nan"), float("nan"), 1.5])})
    assert cbdp.count(trips, universe, unit=cbdp.Person("card", 5)).index.tolist() == [1]


def _tickets(key: bytes, person: bytes, types: list[Any]) -> list[Any]:
    """The trips that are kept, in the order of their tickets: written from the rule alone."""
    numbered = enumerate(sorted(types), start=1)
    return [
        t
        for _, _, t in sorted(
            (hashlib.sha256(b"%b:%d:%b" % (key, j, person)).digest(), j, t) for j, t in numbered
        )
    ]


class _Fixed:
    """A source of one key."""

    secure = False

    def __init__(self, key: bytes) -> None:
        self.key = key

    def words(self, n: int, bits: int) -> Any:
        assert n * bits == 256
        return np.frombuffer(self.key, dtype=f"u{bits // 8}")


KEY = bytes(range(32))
PERSONS: dict[str, tuple[list[Any], Any, list[bytes | None]]] = {
    "text": (["a", "A", "é", " a", "", None], pa.string(), [b"a", b"A", "é".encode(), b" a", None, None]),
    "whole": (
        [0, -5, 2**53, 2**53 + 1, None],
        pa.int64(),
        [b"0", b"-5", b"9007199254740992", b"9007199254740993", None],
    ),
    "unsigned": ([2**64 - 1, 7], pa.uint64(), [b"18446744073709551615", b"7"]),
    "real": (
        [1.0, -0.0, 1e15, float("nan"), None],
        pa.float64(),
        [b"1", b"0", b"1000000000000000", None, None],
    ),
    "categories": (["x", "y", None], pa.dictionary(pa.int8(), pa.string()), [b"x", b"y", None]),
    "bytes": ([b"\xff", b"a", None], pa.binary(), [b"\xff", b"a", None]),
}


@pytest.mark.slow
@pytest.mark.parametrize("place", ["memory", "parquet", "database"])
@pytest.mark.parametrize("kind", PERSONS)
@pytest.mark.parametrize("most", [1, 3, 10**6])
def test_the_kept_trips_are_those_with_the_least_tickets(
    kind: str, place: str, most: int, tmp_path: Path
) -> None:
    """SHA-256(key : j : person) over the documented bytes decides, for every kind of person, wherever the trips lie."""
    values, arrow, who = PERSONS[kind]
    rng = np.random.default_rng(1)
    pick, stop = rng.integers(0, len(values), 300), rng.integers(0, 5, 300)
    table = pa.table({"card": pa.array([values[p] for p in pick], arrow), "stop": stop})
    trips: Any = table
    if place == "parquet":
        trips = parquet(table, tmp_path / "t.parquet")
    if place == "database":
        trips = duckdb_url(table, tmp_path)
    universe = cbdp.Universe(stop=range(5))
    counts = cbdp.count(trips, universe, unit=cbdp.Person("card", most), entropy=_Fixed(KEY))
    wanted: collections.Counter[int] = collections.Counter()
    for person in {w for w in who if w is not None}:
        own = [int(s) for p, s in zip(pick, stop, strict=True) if who[p] == person]
        wanted.update(_tickets(KEY, person, own)[:most])
    assert dict(zip(counts.index.tolist(), counts.value.tolist(), strict=True)) == dict(wanted)
    assert not counts.secure


@pytest.mark.parametrize("kind", PERSONS)
@pytest.mark.parametrize("low", [2**10 - 3, 2**10], ids=["inside", "none inside"])
def test_persons_that_do_not_fit_in_memory_keep_the_same_trips(
    kind: str, low: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dealt to files and bounded in turns, as at once: of any kind, and in a universe of 2⁶⁰ types."""
    values, arrow, _ = PERSONS[kind]
    rng = np.random.default_rng(2)
    universe = cbdp.Universe(**{f"d{i}": range(2**10) for i in range(6)})
    columns = {f"d{i}": low + rng.integers(0, 3, 4000) for i in range(6)}
    pick = rng.integers(0, len(values), 4000)
    table = pa.table({**columns, "card": pa.array([values[p] for p in pick], arrow)})
    found = []
    monkeypatch.setenv("CBDP_MEMORY_MB", "500")
    for rows in (8000, 1):
        monkeypatch.setattr("cbdp.counting.engines.duckdb.BOUNDED_ROWS_PER_MB", rows)
        found.append(cbdp.count(table, universe, unit=cbdp.Person("card", 5), entropy=_Fixed(KEY)))
    assert same(*found)
    assert (found[0].value.sum() > 0) == (low < 2**10)


@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_the_choice_is_even(size: int) -> None:
    """Of trips a a a b b c two are kept: kinds of pairs come as often as by chance (chi-square at 1e-7)."""
    persons = 12_000
    table = pa.table({"card": np.repeat(np.arange(persons), 6), "stop": np.tile(list("aaabbc"), persons)})
    universe = cbdp.Universe(card=range(persons), stop=list("abc"))
    reader = table.to_reader(max_chunksize=size) if size > 1 else table
    counts = cbdp.count(reader, universe, unit=cbdp.Person("card", 2), entropy=InsecureSeededEntropy(size))
    kept = collections.defaultdict(str)
    for card, stop, n in zip(*universe.unrank_codes(counts.index), counts.value, strict=True):
        kept[int(card)] += "abc"[stop] * int(n)
    seen = collections.Counter(kept.values())
    chance = {"aa": 3, "ab": 6, "ac": 3, "bb": 1, "bc": 2}  # of 15
    assert set(seen) == set(chance)
    assert (
        stats.chisquare([seen[x] for x in chance], [persons * c / 15 for c in chance.values()]).pvalue > 1e-7
    )


def test_half_of_a_persons_trips_are_kept_wherever_they_stand() -> None:
    """Of 700 trips of each of 100 persons 350 are kept, and those with the first types as often as those with the last."""
    trips, persons = 700, 100
    universe = cbdp.Universe(card=range(persons), stop=range(trips))
    card, stop = np.divmod(np.arange(persons * trips), trips)
    unit = cbdp.Person("card", trips // 2)
    counts = cbdp.count({"stop": stop, "card": card}, universe, unit=unit, entropy=InsecureSeededEntropy(0))
    assert counts.value.max() == 1
    assert np.bincount(counts.index // trips).tolist() == [trips // 2] * persons
    half = int((counts.index % trips < trips // 2).sum())
    spread = np.sqrt(persons * 350 * 0.25 * 350 / 699)  # hypergeometric
    assert abs(half - persons * 175) < 5.5 * spread


def test_batches_and_turns_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the rows are cut into batches, and in however many turns persons are bounded, the same trips are kept."""
    rng = np.random.default_rng(2)
    table = pa.table({"card": rng.integers(0, 300, 5000), "stop": rng.integers(0, 50, 5000)})
    universe = cbdp.Universe(stop=range(50))
    unit = cbdp.Person("card", 6)
    found = [
        cbdp.count(table.to_reader(max_chunksize=size), universe, unit=unit, entropy=_Fixed(KEY))
        for size in (1, 64, 999, 5000)
    ]
    monkeypatch.setenv("CBDP_MEMORY_MB", "500")
    monkeypatch.setattr("cbdp.counting.engines.duckdb.BOUNDED_ROWS_PER_MB", 1)
    found.append(cbdp.count(table, universe, unit=unit, entropy=_Fixed(KEY)))
    assert all(same(found[0], other) for other in found[1:])
    assert found[0].value.sum() == 1799


def test_lists_and_windows_keep_the_same_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once by lists; in turns by lists, but for the one that a person of a thousand trips fills; and in small turns, many by windows."""
    rng = np.random.default_rng(2)
    cards = np.concatenate([rng.integers(0, 300, 4000), np.full(1000, 7)])
    table = pa.table({"card": cards, "stop": rng.integers(0, 50, 5000)})
    persons, forms, counts = DuckDialect.persons, [], []

    def watched(self: DuckDialect, *inputs: Any, in_lists: bool) -> Any:
        forms[-1].append(in_lists)
        return persons(self, *inputs, in_lists=in_lists)

    monkeypatch.setattr(DuckDialect, "persons", watched)
    for rows, memory in ((8000, "1000"), (1, "500"), (1, "100")):
        forms.append([])
        monkeypatch.setenv("CBDP_MEMORY_MB", memory)
        monkeypatch.setattr("cbdp.counting.engines.duckdb.BOUNDED_ROWS_PER_MB", rows)
        unit = cbdp.Person("card", 6)
        counts.append(cbdp.count(table, cbdp.Universe(stop=range(50)), unit=unit, entropy=_Fixed(KEY)))
    assert forms[0] == [True]
    assert all({*some} == {True, False} for some in forms[1:])
    assert all(same(counts[0], other) for other in counts[1:])
    assert counts[0].value.sum() == 1796


def test_another_key_keeps_other_trips() -> None:
    """The choice is the key's: nobody can foresee it who does not know the key, and a fresh one is drawn every time."""
    rows = {"stop": range(400), "card": ["x"] * 400}
    universe = cbdp.Universe(stop=range(400))
    drawn = [cbdp.count(rows, universe, unit=cbdp.Person("card", 200)) for _ in range(2)]
    assert all(c.secure for c in drawn)
    assert not same(*drawn)


def test_identical_rows_are_the_same_trip_to_us() -> None:
    """Rows that differ only in what is not counted change places without effect; a trip more changes at most one count of two."""
    universe = cbdp.Universe(stop=range(30))
    stops = [3, 3, 3, 7, 7, 9, 11, 12, 12, 20]
    first = cbdp.count(
        {"stop": stops, "card": ["x"] * 10, "note": range(10)},
        universe,
        unit=cbdp.Person("card", 4),
        entropy=_Fixed(KEY),
    )
    again = cbdp.count(
        {"stop": stops[::-1], "card": ["x"] * 10, "note": range(10)},
        universe,
        unit=cbdp.Person("card", 4),
        entropy=_Fixed(KEY),
    )
    assert same(first, again)
    assert first.value.sum() == 4
