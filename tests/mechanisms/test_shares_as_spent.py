"""A release of an earlier version keeps the shares of ε that it was made with, whatever a budget of that name does now."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from budget_cases import DAG, UNIVERSE

import cbdp
from cbdp.features import SINGLETON
from cbdp.mechanisms import of
from cbdp.privacy.budget import AllocationProblem, BalancedBudget

TRUTH = np.random.default_rng(3).poisson(4.0, UNIVERSE.size)


def _two_fifths_and_evenly(_: BalancedBudget, asked: AllocationProblem) -> dict[str, Fraction]:
    """As `balanced` shared ε at first."""
    tables = len(asked.levels) - 1
    part = {n: Fraction(2, 5) if n == SINGLETON else Fraction(3, 5) / tables for n in asked.levels}
    return {n: asked.epsilon * p for n, p in part.items()}


def test_an_old_release_is_loaded_and_audited_with_its_own_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claim, answers, intervals and estimate are those of the time it was made, and an audit finds nothing wrong."""
    with monkeypatch.context() as then:
        then.setattr(BalancedBudget, "split", _two_fifths_and_evenly)
        made = cbdp.ConstraintBased(DAG, 2)
        release = made.simulate(TRUTH, 5)
        release.save(tmp_path / "old", simulation=True)
        wanted = made.answers()
    loaded = cbdp.load(tmp_path / "old")
    again = of(loaded)
    assert again.recipe.settings["budget"] == "balanced"
    assert again.answers() == wanted
    assert {a.share for a in wanted if a.feature != SINGLETON} == {Fraction(6, 25)}
    assert again.answers() != cbdp.ConstraintBased(DAG, 2).answers()
    inside = again.intervals(loaded, 0.5, features=["time"])["time"]
    assert (inside.low <= inside.high).all()
    same = again.finish(loaded.measurements)
    np.testing.assert_array_equal(same.counts("zone"), release.counts("zone"))
    found = cbdp.audit_release(tmp_path / "old").findings
    assert found
    assert not [f for f in found if f.verdict == "contradicts"]
