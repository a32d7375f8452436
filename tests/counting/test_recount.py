"""The second count agrees with the first, on a path of its own, so that a mistake in the first shows."""

from __future__ import annotations

import collections
import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from counting.making import AT, UNIVERSE, csv, duckdb_url, parquet, random_rows, written

import cbdp
from cbdp.counting import Clock, second_count, trips_by_person
from cbdp.counting.engines import sql
from cbdp.errors import InputError

KINDS: dict[str, Any] = {
    "columns": lambda t, _: t.to_pydict(),
    "pandas": lambda t, _: t.to_pandas(),
    "polars": lambda t, _: pl.DataFrame(t),
    "arrow": lambda t, _: t,
    "batches": lambda t, _: t.to_reader(max_chunksize=300),
    "parquet": lambda t, f: parquet(t, f / "t.parquet"),
    "csv": lambda t, f: csv(t, f / "t.csv"),
    "csv.gz": lambda t, f: csv(t, f / "t.csv.gz"),
    "database": duckdb_url,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("clock", [Clock(), Clock("Australia/Lord_Howe")])
def test_both_counts_agree(kind: str, clock: Clock, tmp_path: Path) -> None:
    """Whatever trips come in; what this path does not read is counted by the engine again."""
    table = pa.table(random_rows())
    (tmp_path / "again").mkdir()
    first = cbdp.count(KINDS[kind](table, tmp_path), UNIVERSE, columns=AT, clock=clock)
    index, value = second_count(KINDS[kind](table, tmp_path / "again"), UNIVERSE, columns=AT, clock=clock)
    assert index.tolist() == first.index.tolist()
    assert value.tolist() == first.value.tolist()
    assert value.sum() > 300


def test_a_mistake_in_the_count_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zones that an engine reads an hour wrong change the first count and not the second."""
    rows = {"time": [dt.datetime(2026, 7, 1, h) for h in range(24)]}  # noqa: DTZ001
    universe = cbdp.Universe(time=cbdp.periods("06:00", "10:00", "1h"))
    tables = sql.lookup_tables

    def wrong(plan: Any) -> dict[str, Any]:
        made = tables(plan)
        for name, table in made.items():
            if name.startswith("way"):
                made[name] = table.set_column(0, "look", pa.array(np.asarray(table["look"]) + 1))
        return made

    clock = Clock("Europe/Berlin")
    honest = second_count(rows, universe, clock=clock)
    assert honest[1].tolist() == [1, 1, 1, 1]
    monkeypatch.setattr(sql, "lookup_tables", wrong)
    shifted = {"time": rows["time"][4:6]}
    assert (
        cbdp.count(shifted, universe, clock=clock).index.tolist()
        != second_count(shifted, universe, clock=clock)[0].tolist()
    )


@pytest.mark.parametrize("kind", ["arrow", "parquet", "csv", "database"])
def test_trips_by_person_are_all_their_trips(kind: str, tmp_path: Path) -> None:
    """Grouped by person, in the order of types, nobody bounded."""
    rows = random_rows()
    new, types = trips_by_person(
        KINDS[kind](pa.table(rows), tmp_path), UNIVERSE, cbdp.Person("card", 1), columns=AT
    )
    assert new[0]
    found = collections.Counter(tuple(part.tolist()) for part in np.split(types, np.flatnonzero(new)[1:]))
    wanted: dict[str, list[int]] = collections.defaultdict(list)
    for o, d, t, card in zip(*(rows[c] for c in ("origin", "destination", "start", "card")), strict=True):
        rank = int(UNIVERSE.rank(o, d, f"{t.hour:02d}:{t.minute // 30 * 30:02d}")) if t else -1
        if rank >= 0 and card:
            wanted[card].append(rank)
    assert found == collections.Counter(tuple(sorted(own)) for own in wanted.values())


def test_persons_are_told_apart_as_in_the_count() -> None:
    """NaN is nobody, the zeros are one, text by bytes."""
    for cards, kind, persons in (
        ([0.0, -0.0, 1.5, float("nan"), None], pa.float64(), 2),
        ([2**53, 2**53 + 1, None], pa.int64(), 2),
        (["a", "A", "", None], pa.string(), 2),
    ):
        table = pa.table({"stop": ["A"] * len(cards), "card": pa.array(cards, kind)})
        new, _ = trips_by_person(table, cbdp.Universe(stop=["A"]), cbdp.Person("card", 1))
        assert new.sum() == persons


def test_weights_count_as_in_the_count(tmp_path: Path) -> None:
    """Whole and at least 0, saturated, other rows dropped."""
    universe = cbdp.Universe(stop=["A", "B"])
    path = written(tmp_path, "t.csv", "stop,n\nA,3\nA,x\nA,-4\nB,2.0\nB,9223372036854775807\nA,0\n")
    index, value = second_count(path, universe, columns={"count": "n"})
    first = cbdp.count(path, universe, columns={"count": "n"})
    assert (
        (index.tolist(), value.tolist())
        == (first.index.tolist(), first.value.tolist())
        == ([0, 1], [3, 2**40])
    )


def test_bad_input_is_the_same_clear_error(tmp_path: Path) -> None:
    """A missing column, a type that cannot fit, a damaged file."""
    universe = cbdp.Universe(stop=["A"])
    with pytest.raises(InputError, match="no column 'stop'"):
        second_count({"x": ["A"]}, universe)
    with pytest.raises(InputError, match="holds double values"):
        second_count({"stop": [1.5]}, universe)
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(
        pa.table({"stop": ["A", "B"] * 3000}), path, use_dictionary=False, compression="zstd"
    )
    data = bytearray(path.read_bytes())
    data[20:60] = bytes(40)
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="it is damaged, or not whole"):
        second_count(path, universe)
