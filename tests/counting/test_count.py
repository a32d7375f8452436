"""Trips become counts: whatever they come in, bounded by person at random, silent about what is outside."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

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
from cbdp.privacy.entropy import InsecureSeededEntropy

STOPS = ["A", "B", "C"]
UNIVERSE = cbdp.Universe(origin=STOPS, destination=STOPS, time=cbdp.periods("08:00", "10:00", "1h"))
ROWS = {
    "origin": ["A", "A", "B", "C", "A", None, "Z"],
    "destination": ["B", "B", "C", "A", "B", "A", "A"],
    "time": ["08:00", "08:00", "09:00", "08:00", "11:00", "08:00", "08:00"],
}
EXPECTED = {("A", "B", "08:00"): 2, ("B", "C", "09:00"): 1, ("C", "A", "08:00"): 1}


def _as_dict(counts: cbdp.Counts) -> dict[tuple[object, ...], int]:
    return {UNIVERSE.unrank(int(i)): int(v) for i, v in zip(counts.index, counts.value, strict=True)}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_any_table_is_counted(make: object) -> None:
    """Columns, pandas, polars and Arrow give the same counts; outside rows and nulls are dropped."""
    assert _as_dict(cbdp.count(make(ROWS), UNIVERSE)) == EXPECTED  # type: ignore[operator]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_files_are_counted(tmp_path: Path, suffix: str) -> None:
    """A path to Parquet or CSV does."""
    path = tmp_path / f"trips{suffix}"
    write = pa.parquet.write_table if suffix == ".parquet" else pa.csv.write_csv
    write(pa.table(ROWS), path)
    assert _as_dict(cbdp.count(path, UNIVERSE)) == EXPECTED


def test_columns_can_be_mapped_and_times_are_binned() -> None:
    """Time stamps fall into the dimension's periods, the end of a period being outside it."""
    day = dt.datetime(2026, 3, 2, tzinfo=dt.UTC).replace(tzinfo=None)
    minutes = [8 * 60, 8 * 60 + 59, 9 * 60, 10 * 60, 7 * 60 + 59]
    rows = {
        "from": ["A"] * 5,
        "destination": ["B"] * 5,
        "time": [day + dt.timedelta(minutes=m) for m in minutes],
    }
    counts = cbdp.count(pa.table(rows), UNIVERSE, columns={"origin": "from"})
    assert _as_dict(counts) == {("A", "B", "08:00"): 2, ("A", "B", "09:00"): 1}


def test_feature_counts_are_sums_of_trips() -> None:
    """A feature's exact counts add up the trip types in its elements."""
    dag = cbdp.FeatureDag(UNIVERSE, [cbdp.Feature("time", by="time")])
    counts = cbdp.count(ROWS, UNIVERSE)
    assert counts.of(dag, "time").tolist() == [3, 1]
    assert counts.of(dag, "total").tolist() == [4]
    assert counts.of(dag, "singleton").sum() == 4


def test_the_order_of_rows_does_not_matter() -> None:
    """Shuffled rows give the same counts."""
    table = pa.table(ROWS)
    shuffled = table.take(np.random.default_rng(0).permutation(table.num_rows))
    assert _as_dict(cbdp.count(shuffled, UNIVERSE)) == EXPECTED


def test_a_person_keeps_at_most_m_trips_chosen_evenly() -> None:
    """Of five trips two are kept, every pair of trips equally often (chi-square at 1e-7)."""
    persons = 20_000
    universe = cbdp.Universe(card=list(range(persons)), stop=list(range(5)))
    trips = {"card": np.repeat(np.arange(persons), 5), "stop": np.tile(np.arange(5), persons)}
    counts = cbdp.count(trips, universe, unit=cbdp.Person("card", 2), entropy=InsecureSeededEntropy(1))
    kept = counts.index.reshape(persons, 2)
    assert (kept // 5 == np.arange(persons)[:, None]).all()
    pairs = np.unique(kept % 5, axis=0, return_counts=True)[1]
    assert len(pairs) == 10
    assert stats.chisquare(pairs).pvalue > 1e-7


def test_bounding_is_by_person() -> None:
    """Everybody has their own m, trips without a person are dropped, and m trips or fewer are all kept."""
    universe = cbdp.Universe(stop=[0, 1])
    trips = {"stop": [0] * 6 + [1] * 3, "card": ["x"] * 6 + ["y", "y", None]}
    counts = cbdp.count(trips, universe, unit={"person": "card", "max_trips": 3})
    assert dict(zip(counts.index.tolist(), counts.value.tolist(), strict=True)) == {0: 3, 1: 2}


def test_counts_do_not_print_themselves() -> None:
    """A representation that reaches a log holds nothing private."""
    text = repr(cbdp.count({"stop": [0] * 977}, cbdp.Universe(stop=[0, 1])))
    assert "977" not in text


@pytest.mark.parametrize(
    ("trips", "unit", "message"),
    [
        ({"origin": ["A"], "time": ["08:00"]}, "trip", "no column 'destination'"),
        (ROWS, {"person": "card", "max_trips": 2}, "no column 'card'"),
        ({**ROWS, "origin": [1.5] * 7}, "trip", "column 'origin' holds double"),
        ({**ROWS, "origin": pa.nulls(7, pa.float64())}, "trip", "column 'origin' holds double"),
        (np.array([1, 2]), "trip", "shape"),
        (np.full(18, 0.5), "trip", "whole numbers"),
        (np.full(18, -1), "trip", "whole numbers"),
        (np.full(18, np.nan), "trip", "whole numbers"),
        (np.zeros(18), {"person": "card", "max_trips": 2}, "names no persons"),
        ("nowhere.parquet", "trip", "no file"),
        (7, "trip", "cannot be read as a table"),
    ],
)
def test_bad_input_is_one_clear_error(trips: object, unit: object, message: str) -> None:
    """Schema errors stop before anything is drawn, and say what is wrong."""
    with pytest.raises(InputError, match=message):
        cbdp.count(trips, UNIVERSE, unit=unit)


def test_no_trips_are_counted_too() -> None:
    """An empty table is a valid data set: nobody travelled."""
    empty = pa.table({k: pa.array([], pa.string()) for k in ROWS})
    assert cbdp.count(empty, UNIVERSE).value.sum() == 0


@pytest.mark.parametrize("rows", [[], [None, None]])
@pytest.mark.parametrize("unit", ["trip", {"person": "card", "max_trips": 2}])
@pytest.mark.parametrize(
    "make", [dict, lambda rows: pd.DataFrame(rows, dtype=object), pl.DataFrame, pa.table]
)
def test_columns_without_a_value_are_counted_too(make: object, unit: object, rows: list[None]) -> None:
    """A column of nothing has no type to be judged by: whether anybody travelled must not decide on an error."""
    trips = make(dict.fromkeys([*ROWS, "card"], rows))  # type: ignore[operator]
    universe = cbdp.Universe(origin=STOPS, destination=[1, 2], time=cbdp.periods("08:00", "10:00", "1h"))
    assert cbdp.count(trips, universe, unit=unit).value.sum() == 0
