"""Releases made again: numbers that do not follow from the noisy answers are found, and named where that can be told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from audited import busiest, change, contradictions, correct_hashes, small

import cbdp


@pytest.mark.parametrize("name", ["total", "zone"])
@pytest.mark.parametrize("by", [-7, 40])
def test_a_noisy_answer(projected: Path, name: str, by: int) -> None:
    """Though hashes fit, the estimates do not follow from it: the answer is named, and what it must have been."""
    file = f"features/{name}.parquet"
    row = busiest(projected, file)
    was = pq.read_table(projected / "release" / file)["noisy"][row].as_py()
    words = change(projected, file, "noisy", row, by) or "the whole"
    correct_hashes(projected)
    found = [f for f in contradictions(projected) if f.check == "estimate"]
    assert [f.title for f in found] == [f"{name}: the noisy count of {words} was changed"]
    assert f"is {was + by}; the estimates follow from {was}." in found[0].evidence


@pytest.mark.parametrize("name", ["total", "zone"])
def test_a_noisy_answer_under_expected_counts(folder: Path, name: str) -> None:
    """Of expected counts all depend on every answer: that they do not follow is noticed, not from which."""
    file = f"features/{name}.parquet"
    change(folder, file, "noisy", busiest(folder, file), 40)
    correct_hashes(folder)
    found = [f for f in contradictions(folder) if f.check == "estimate"]
    assert len(found) == 1
    assert found[0].title.endswith("does not follow from the noisy answers")


@pytest.mark.parametrize("column", ["noisy", "estimate"])
def test_a_noisy_answer_or_an_estimate_of_a_trip_type(folder: Path, column: str) -> None:
    """A trip type whose answer and estimate do not belong together is named, among all that moved with it."""
    words = change(folder, "features/singleton.parquet", column, busiest(folder, "trips.parquet"), 3)
    file = pq.read_table(folder / "release" / "features" / "singleton.parquet")
    row = busiest(folder, "trips.parquet")
    assert file["estimate"][row].as_py() > 0
    correct_hashes(folder)
    found = [f for f in contradictions(folder) if f.check == "estimate"]
    assert len(found) == 1
    assert words in found[0].title


def test_trips_that_do_not_follow_are_found_for_closed_forms(tmp_path: Path) -> None:
    """Trips of the hierarchical and the Laplace mechanism are made again from the noisy answers; the type is named."""
    dag, counts = small()
    for mechanism in (cbdp.Hierarchical(dag, 3), cbdp.Laplace(dag, 3)):
        release = mechanism.release(counts)
        value = release.value.copy()
        value[7] += 1
        replace(release, value=value).save(tmp_path / mechanism.name)
        words = " · ".join(map(str, dag.universe.unrank(int(release.index[7]))))
        found = cbdp.audit_release(tmp_path / mechanism.name).of("contradicts")
        assert any(f.check == "estimate" and words in f.title for f in found)
