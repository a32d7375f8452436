"""A folder of ours: what was tampered with is found and named, hashes corrected or not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from audited import busiest, change, contradictions, correct_hashes, row_of, run


@pytest.mark.parametrize("careful", [False, True])
def test_a_count_among_the_trips(folder: Path, capsys: pytest.CaptureFixture[str], careful: bool) -> None:
    """The file and the trip type are named, whether or not the hashes were corrected."""
    words = change(folder, "trips.parquet", "count", busiest(folder, "trips.parquet"), 1)
    if careful:
        correct_hashes(folder)
    assert run(folder) == 1
    assert f"trips.parquet: the count of {words} is not what all other tables say" in capsys.readouterr().out


@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize("name", ["total", "zone", "singleton"])
def test_a_count_of_a_table(
    folder: Path, capsys: pytest.CaptureFixture[str], careful: bool, name: str
) -> None:
    """The table's file, the row and the column are named."""
    file = f"features/{name}.parquet"
    words = change(folder, file, "count", busiest(folder, file), -1) or "the whole"
    if careful:
        correct_hashes(folder)
    assert run(folder) == 1
    assert f"{file}: count of {words} is not what follows from the rest" in capsys.readouterr().out


def test_an_estimate_of_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Estimates add up to the last digits."""
    words = change(folder, "features/zone.parquet", "estimate", 3, 0.01)
    correct_hashes(folder)
    assert run(folder) == 1
    assert f"features/zone.parquet: estimate of {words}" in capsys.readouterr().out


def test_an_interval(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An interval that does not hold its own count is impossible."""
    words = change(folder, "features/zone.parquet", "low", busiest(folder, "features/zone.parquet"), 5000)
    correct_hashes(folder)
    assert run(folder) == 1
    assert f"zone: the interval of {words} is impossible" in capsys.readouterr().out


def test_the_scale_in_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The scale that a table shows is the one that the manifest prices."""
    words = change(folder, "features/zone.parquet", "scale", 1, 1.0)
    correct_hashes(folder)
    assert run(folder) == 1
    assert f"features/zone.parquet: scale of {words}" in capsys.readouterr().out


def reordered(folder: Path, file: str, order: Callable[[int], list[int]]) -> None:
    path = folder / "release" / file
    table = pq.read_table(path)
    pq.write_table(table.take(order(table.num_rows)), path, compression="zstd", store_schema=False)
    correct_hashes(folder)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (lambda n: [1, 0, *range(2, n)], "is out of the canonical order"),
        (lambda n: [0, 0, *range(1, n)], "is listed twice"),
    ],
)
def test_rows_of_the_trips_out_of_place(folder: Path, order: Callable[[int], list[int]], words: str) -> None:
    """An order that is not the universe's could tell who came first; the first such row is named."""
    first = row_of(pq.read_table(folder / "release" / "trips.parquet"), 0)
    reordered(folder, "trips.parquet", order)
    assert f"trips.parquet: {first} {words}" in [f.title for f in contradictions(folder)]


def test_labels_of_two_rows_exchanged(folder: Path) -> None:
    """Tables are in the features' own order: a row under another's name is found."""
    path = folder / "release" / "features" / "zone.parquet"
    table = pq.read_table(path)
    swapped = [1, 0, *range(2, table.num_rows)]
    for place, name in enumerate(table.column_names[:3]):
        table = table.set_column(place, name, table[name].take(swapped))
    pq.write_table(table, path, compression="zstd", store_schema=False)
    correct_hashes(folder)
    assert any("features/zone.parquet: time of" in f.title for f in contradictions(folder))


def test_a_stop_that_the_universe_does_not_know(folder: Path) -> None:
    """A row outside the public universe is named."""
    path = folder / "release" / "trips.parquet"
    table = pq.read_table(path)
    names = ["S9", *table["origin"].to_pylist()[1:]]
    pq.write_table(table.set_column(0, "origin", pa.array(names)), path, store_schema=False)
    correct_hashes(folder)
    assert any(re.search(r"trips\.parquet: S9 · .* is outside", f.title) for f in contradictions(folder))


@pytest.mark.parametrize("what", ["missing", "further", "unreadable"])
def test_files(folder: Path, what: str) -> None:
    """A file that is gone, one too many, or one that is no table is named."""
    release = folder / "release"
    if what == "missing":
        (release / "features" / "zone.parquet").unlink()
        expected = "features/zone.parquet is missing"
    elif what == "further":
        (release / "notes.txt").write_text("private")
        expected = "notes.txt does not belong to the release"
    else:
        (release / "features" / "zone.parquet").write_bytes(b"nonsense")
        expected = "features/zone.parquet was changed after it was released"
    assert expected in [f.title for f in contradictions(folder)]
