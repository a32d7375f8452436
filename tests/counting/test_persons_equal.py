"""Who is one person: numbers by value in whatever spelling, text by bytes, on every path; and what one person changes of the counts."""

# ruff: noqa: S608 - the queries are ours

from __future__ import annotations

import re
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from counting.engines import contract
from counting.making import parquet, same, written

import cbdp
from cbdp.counting import Clock, second_count, trips_by_person
from cbdp.counting.engines.duckdb import DuckDB
from cbdp.counting.linking import LinkedTaps, Prepared
from cbdp.errors import InputError

STOPS = cbdp.Universe(stop=["A", "B", "C"])
SPELLINGS = [
    "289",
    "289.0",
    "289.",
    "0289",
    "+289",
    " 289",
    "289\t",
    "2.89e2",
    "28900E-2",
    ".289e+3",
    "289.000",
]
OTHERS = [
    "289.5",
    "-289",
    "0x121",
    "289 0",
    "289,0",
    "2e8e9",
    "nan",
    "289\n",
    "٢٨٩",
    "289e9999",
    "1_000",
    "é",
    "e\u0301",
]


def _value(text: str) -> Any:
    """A number by its value, anything else by itself."""
    number = re.fullmatch(r"[ \t]*([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?)[ \t]*", text)
    return Decimal(number[1]) if number else text


def _persons(trips: Any, **more: Any) -> int:
    """With one trip of each, there are as many trips as persons; both ways of counting persons agree."""
    unit = cbdp.Person("card", 1)
    kept = int(cbdp.count(trips, STOPS, unit=unit, **more).value.sum())
    assert int(trips_by_person(trips, STOPS, unit)[0].sum()) == kept
    assert cbdp.counting.loads_of(trips, STOPS, unit)[1] != [] or kept == 0
    assert sum(cbdp.counting.loads_of(trips, STOPS, unit)[1]) == kept
    return kept


def test_a_card_in_a_csv_is_one_person_in_every_spelling_of_its_number(tmp_path: Path) -> None:
    """As the cells of stops are read: 289 and 289.0 are one stop, and one person; also in two files of one release."""
    rows = [f'A,"{card}"' for card in SPELLINGS]
    assert _persons(written(tmp_path, "one.csv", "stop,card\n" + "\n".join(rows) + "\n")) == 1
    folder = [written(tmp_path, f"{n}.csv", f"stop,card\n{row}\n") for n, row in enumerate(rows)]
    assert _persons(folder) == 1
    others = [f'A,"{card}"' for card in [*SPELLINGS, *OTHERS]]
    assert _persons(written(tmp_path, "other.csv", "stop,card\n" + "\n".join(others) + "\n")) == 1 + len(
        OTHERS
    )


@pytest.mark.parametrize("kind", ["parquet", "database", "memory"])
def test_a_card_that_is_text_is_one_person_as_its_stop_is_one(kind: str, tmp_path: Path) -> None:
    """In a column of text 289.0 is the stop 289, and 0289 and +289 are other texts."""
    cards = ["289", "289.0", "289.", "289.000", "0289", "+289", "2.89e2", "-0.0", "0", "0.0"]
    table = pa.table({"stop": ["A"] * len(cards), "card": cards})
    assert _persons(_laid(table, kind, tmp_path)) == 6
    stops = cbdp.Universe(card=["289", "0"])
    assert cbdp.count(_laid(table, kind, tmp_path), stops).value.tolist() == [4, 2]


def test_equal_cells_are_one_person_or_are_refused() -> None:
    """What the proof of bounding assumes, in a file, in text and in a database whose own equality is coarser than its text."""
    cards = ["289", "289.0", "289.", "7", "7.000"]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        rows = "".join(f"A,{card}\n" for card in [*cards, *SPELLINGS])
        assert _persons(written(folder, "t.csv", f"stop,card\n{rows}")) == 2
        for kind in ("memory", "database"):
            table = pa.table({"stop": ["A"] * len(cards), "card": cards})
            assert _persons(_laid(table, kind, folder)) == 2
        with duckdb.connect(str(folder / "city.db")) as database:
            assert database.sql("SELECT INTERVAL 1 MONTH = INTERVAL 30 DAYS").fetchall() == [(True,)]
            database.execute("CREATE TABLE spans (stop VARCHAR, card INTERVAL)")
        with pytest.raises(InputError, match="holds INTERVAL values, of which two may be equal and written"):
            cbdp.count(f"duckdb://{folder / 'city.db'}::spans", STOPS, unit=cbdp.Person("card", 1))


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.decimal128(6, 2)])
def test_numbers_of_either_sign_are_two_persons_and_stop_nothing(kind: Any, tmp_path: Path) -> None:
    """Also close to zero: no row decides whether there is a count. The two zeros are one."""
    values = ["0.05", "-0.05", "0", "-0.0", "-10.05"]
    cards = [Decimal(v) if pa.types.is_decimal(kind) else float(v) for v in values]
    table = pa.table({"stop": ["A"] * 5, "card": pa.array(cards, kind)})
    for laid in ("memory", "parquet", "database"):
        assert _persons(_laid(table, laid, tmp_path)) == 4


def _laid(table: pa.Table, kind: str, folder: Path) -> Any:
    if kind == "memory":
        return table
    if kind == "parquet":
        return parquet(table, folder / "t.parquet")
    with duckdb.connect(str(folder / "city.db")) as database:
        database.register("given", table)
        database.execute("CREATE OR REPLACE TABLE trips AS SELECT * FROM given")
    return f"duckdb://{folder / 'city.db'}::trips"


PARTS = [
    ["", "", " ", "\t"],
    ["", "", "-", "+"],
    ["", "", "0", "000"],
    ["1", "10", "12", "100", "0", "", str(2**63), "9" * 30, "9" * 30 + "0"],
    ["", "", ".", ".0", ".50", ".5", ".05", "." + "0" * 20 + "1"],
    ["", "", "", "e0", "E1", "e-1", "e+02", "e300", "e-320", "e1000", "e"],
    ["", "", " ", "\n"],
]


@pytest.mark.parametrize("seed", [1, 2])
def test_persons_of_a_csv_are_numbers_by_their_exact_value(seed: int, tmp_path: Path) -> None:
    """By decimal arithmetic, at any length; two texts that are no numbers are one person where their bytes are."""
    rng = np.random.default_rng(seed)
    cards = ["".join(rng.choice(part) for part in PARTS) for _ in range(3000)]
    cards += ["".join(rng.choice(list("1e.+-0aA \u0301"), rng.integers(1, 5))) for _ in range(2000)]
    path = written(tmp_path, "t.csv", "stop,card\n" + "".join(f'A,"{card}"\n' for card in cards))
    assert _persons(path) == len({_value(card) for card in cards if card})


VALUES: dict[str, list[str]] = {
    "VARCHAR": ["'ab'", "'AB'", "'7'", "'7.0'", "''", "'áb'"],
    "BIGINT": ["7", "-7", "0"],
    "UBIGINT": ["7", "18446744073709551615"],
    "HUGEINT": ["7", "170141183460469231731687303715884105727"],
    "DOUBLE": ["7", "7.5", "0.0", "-0.0", "'nan'", "'-nan'", "'inf'", "1e300", "0.1", "0.1 + 0.2", "0.3"],
    "FLOAT": ["7", "-0.0", "0.1"],
    "DECIMAL(20, 4)": ["7", "7.0000", "7.5", "9999999999999999.9999"],
    "BLOB": [r"'\xff\xfe'", r"'\x00'", "'7'", "'7.0'"],
    "UUID": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"],
    "ENUM('ab', 'AB')": ["'ab'", "'AB'"],
    "BOOLEAN": ["true", "false"],
    "DATE": ["'2026-03-02'", "'infinity'"],
    "TIME": ["'10:00:00'", "'10:00:00.000001'"],
    "TIMESTAMP": ["'2026-03-02 10:00:00'", "'infinity'"],
    "TIMESTAMPTZ": ["'2026-03-02 10:00:00+00'", "'2026-03-02 11:00:00+01'"],
    "TIMESTAMP_NS": ["'2026-03-02 10:00:00.000000001'", "'2026-03-02 10:00:00'"],
    "BIT": ["'101'", "'0101'"],
    "JSON": ["'1'", "'1.0'", "'10'"],
}


@pytest.mark.parametrize("kind", VALUES)
def test_one_person_changes_the_counts_by_what_is_claimed_whatever_its_type(
    kind: str, tmp_path: Path
) -> None:
    """Persons as DuckDB itself tells them apart (text by bytes, 7.0 as 7), taken away one by one: at most two trips of each, none of others."""
    with duckdb.connect(str(tmp_path / "city.db")) as database:
        database.execute("SET TimeZone = 'UTC'")
        database.execute(
            f"CREATE TABLE every (id INTEGER, stop VARCHAR, card {kind if kind != 'JSON' else 'VARCHAR'})"
        )
        rng = np.random.default_rng(0)
        for n, value in enumerate(VALUES[kind] * 4):
            database.execute(
                f"INSERT INTO every SELECT {n}, '{rng.choice(['A', 'B', 'C'])}', CAST({value} AS {kind}) FROM range(3)"
            )
        who = (
            "regexp_replace(card, '^(0|-?[1-9][0-9]*)[.]0*$', '\\1')"
            if kind in ("VARCHAR", "JSON")
            else "card"
        )
        nobody = {"VARCHAR": "card = ''", "DOUBLE": "isnan(card)"}.get(kind, "false")
        database.execute(
            f"CREATE TABLE trips AS SELECT *, CASE WHEN NOT ({nobody}) THEN dense_rank() OVER (ORDER BY {who}) END AS p FROM every"
        )
        if kind in ("FLOAT", "DOUBLE"):  # -0.0 = 0.0
            database.execute("UPDATE trips SET p = (SELECT min(p) FROM trips WHERE card = 0) WHERE card = 0")
        persons = [
            row[0] for row in database.sql("SELECT DISTINCT p FROM trips WHERE p IS NOT NULL").fetchall()
        ]
        for person in persons[:3]:
            database.execute(
                f"CREATE TABLE without_{person} AS SELECT * FROM trips WHERE p IS DISTINCT FROM {person}"
            )

    def dense(table: str) -> Any:
        url = f"duckdb://{tmp_path / 'city.db'}::{table}"
        return cbdp.count(url, STOPS, unit=cbdp.Person("card", 2), entropy=contract.Fixed()).dense()

    all_of_them = dense("trips")
    assert all_of_them.sum() == 2 * len(persons)
    for person in persons[:3]:
        change = all_of_them - dense(f"without_{person}")
        assert change.min() >= 0
        assert change.sum() == 2


def test_taps_are_linked_by_the_same_persons(tmp_path: Path) -> None:
    """A card that is 289 at one end and 289.0 at the other made one trip."""
    rows = "card,at,stop,action\n289,2026-03-02 08:00,A,on\n0289.0,2026-03-02 08:20,B,off\n"
    path = written(tmp_path, "taps.csv", rows)
    linked = LinkedTaps("card", "at", "stop", "action", ("on",), ("off",))
    universe = cbdp.Universe(origin=["A", "B"], destination=["A", "B"])
    with DuckDB().open(Prepared(str(path), linked)) as source:
        assert source.rows() == 1
    kept = cbdp.count(Prepared(str(path), linked), universe, unit=cbdp.Person("card", 3))
    assert kept.value.tolist() == [1]


# Weights


@pytest.mark.parametrize("kind", [pa.uint64(), pa.float64(), pa.string(), pa.decimal128(38, 0), "csv"])
def test_one_trip_more_changes_a_huge_weight_by_one_at_most(kind: Any, tmp_path: Path) -> None:
    """2⁶³ − 1 and 2⁶³ are both many; by the second count, too."""
    for weight in (2**40 - 1, 2**40, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1):
        if kind == "csv":
            trips: Any = written(tmp_path, f"{weight}.csv", f"stop,n\nA,{weight}\nB,{weight}.0\n")
        else:
            made = [
                float(weight)
                if kind == pa.float64()
                else str(weight)
                if kind == pa.string()
                else Decimal(weight)
            ] * 2
            values = pa.array([int(w) for w in made] if kind == pa.uint64() else made, kind)
            trips = pa.table({"stop": ["A", "B"], "n": values})
        found = cbdp.count(trips, STOPS, columns={"count": "n"})
        assert found.value.tolist() == [min(weight, 2**40)] * 2
        again = second_count(trips, STOPS, columns={"count": "n"}, clock=Clock())
        assert again[1].tolist() == found.value.tolist()


# Universes


def test_counts_of_another_universe_of_equal_size_are_refused() -> None:
    """Their sensitivity is that of their own trip types: of stops, three trips of a person at one are not what three hours would be."""
    hours, stops = cbdp.Universe(time=["7", "8", "9"]), cbdp.Universe(stop=["7", "8", "9"])
    counts = cbdp.count({"stop": ["7"] * 3, "card": ["x"] * 3}, stops, unit=cbdp.Person("card", 3))
    features = cbdp.FeatureDag(hours, [])
    with pytest.raises(InputError, match="another universe with as many trip types"):
        cbdp.measure(counts, features, epsilon=1)
    with pytest.raises(InputError, match="another universe with as many trip types"):
        cbdp.count(counts, hours, unit=cbdp.Person("card", 3))
    for mechanism in (cbdp.Laplace, cbdp.ConstraintBased, cbdp.Hierarchical):
        with pytest.raises(InputError, match="another universe with as many trip types"):
            mechanism(features, epsilon=1, unit=cbdp.Person("card", 3)).simulate(counts, seed=0)


def test_a_universe_is_known_by_its_trip_types_alone() -> None:
    """Order, edges, names and structural zeros matter; attributes, and the way in which zeros were stated, do not."""
    stops = ["A", "B"]
    one = cbdp.Universe(o=stops, d=stops)
    others = [
        cbdp.Universe(o=stops, d=["B", "A"]),
        cbdp.Universe(d=stops, o=stops),
        cbdp.Universe(o=["A", "B", "C", "D"]),
        cbdp.Universe(o=[1, 2], d=["1", "2"]),
        cbdp.Universe(o=["1", "2"], d=["1", "2"]),
        one.without_equal("o", "d"),
        one.without(("o", "d"), lambda o, d: o != d),
        cbdp.Universe(o=cbdp.Dimension(stops, edges=[0, 60, 120]), d=stops),
        cbdp.Universe(o=cbdp.Dimension(stops, edges=[0, 90, 120]), d=stops),
    ]
    hashes = [u.types_hash for u in (one, *others)]
    assert len(set(hashes)) == len(hashes)
    assert one.same_types(one.with_attribute("mode", ("o", "d"), lambda o, d: f"{o}{d}"))
    assert others[5].same_types(one.without(("d", "o"), lambda d, o: o == d))
    counts = cbdp.count({"o": ["A"], "d": ["B"]}, one)
    assert same(counts, cbdp.count(counts, cbdp.Universe(o=cbdp.Dimension(stops, zone=["n", "s"]), d=stops)))
