"""Releases made again: numbers that do not follow from the noisy answers are found, and named where that can be told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from audited import busiest, change, contradictions, correct_hashes, finished_again, small

import cbdp
from cbdp.audit import optimality
from cbdp.errors import InputError
from cbdp.estimation.posterior import Posterior


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


MADE: dict[str, Callable[[cbdp.FeatureDag], cbdp.ConstraintBased]] = {
    "constraint-based": lambda dag: cbdp.ConstraintBased(dag, 1),
    "prior": lambda dag: cbdp.ConstraintBased(dag, 1, prior=1.0 + np.arange(dag.universe.size) % 3),
    "target": lambda dag: cbdp.ConstraintBased(
        dag, 1, target={"zone": 2, "singleton": "1/3"}, expected_trips=3000, expected_filled=0.3
    ),
    "paper": lambda dag: cbdp.ConstraintBased(dag, 1, preset="paper"),
    "sparse posterior": lambda dag: cbdp.ConstraintBased(dag, 1, sparse=True),
    "hidden posterior": lambda dag: cbdp.ConstraintBased(
        dag, 1, sparse=True, estimator=Posterior(revealed=dag.universe.size // 2)
    ),
    "sparse projection": lambda dag: cbdp.ConstraintBased(dag, 1, sparse=True, preset="paper"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_an_estimate_is_audited_with_the_estimator_that_made_it(name: str, tmp_path: Path) -> None:
    """Made again it agrees, and so do the trips; with a noisy count changed it does not."""
    dag, counts = small()
    MADE[name](dag).release(counts).save(tmp_path / "out")
    back = cbdp.load(tmp_path / "out")
    assert [f.verdict for f in optimality.attack(back, lambda: finished_again(back))] == ["clear", "clear"]
    *rest, last = back.measurements
    assert last.feature == "singleton"
    changed = replace(last, values=last.values + 40 * (np.arange(len(last.values)) == 3))
    other = replace(back, measurements=[*rest, changed])
    assert [f.verdict for f in optimality.attack(other, lambda: finished_again(other))] == ["contradicts"]


def test_another_recipe_does_not_make_the_estimates(tmp_path: Path) -> None:
    """A recipe that was exchanged for one without an estimate, or that fails on the noisy answers, is a contradiction."""
    dag, counts = small()
    release = cbdp.ConstraintBased(dag, 1).release(counts)
    laplace = cbdp.Laplace(dag, 1).release(counts)
    [found] = optimality.attack(release, lambda: laplace)
    assert found.title == "manifest.json: recipe is not the one that made the estimates"

    def fails() -> cbdp.Release:
        raise InputError("no answers")

    [found] = optimality.attack(release, fails)
    assert (found.verdict, found.evidence) == ("contradicts", "no answers")
