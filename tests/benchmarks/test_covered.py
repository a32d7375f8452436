"""What is called 90 % holds 90 %, by the size of the count: the busiest counts as well as all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import covered
from benchmarks.covered import QUESTIONS, Held
from cbdp.estimation.posterior import Posterior
from cbdp.mechanisms import ConstraintBased

RUNS = 8
SIZES = ("all", "busiest 100", "busiest 10")


def _least(many: int) -> float:
    """Coverage below which 90 % is no longer credible: four standard errors, which chance goes beyond three times in 100,000."""
    return float(0.9 - 4 * np.sqrt(0.09 / many))


def _check(found: dict[str, Held], names: Any) -> None:
    for name in names:
        held = found[name]
        order = np.argsort(-held.truth, kind="stable")
        busy = np.flatnonzero(held.truth >= covered.SOME_TRIPS)
        for which in (order, order[:100], order[:10], busy):
            told = int(held.told[:, which].sum())
            assert told == held.told[:, which].size, name
            assert held.share(which) >= _least(told), (name, len(which), held.share(which))


@pytest.mark.parametrize("name", ["corridor", "night"])
def test_intervals_hold_the_busiest_as_often_as_all(name: str) -> None:
    """Nine questions, all counts, those of at least ten trips, the busiest hundred and ten: with intervals about the estimate pairs of stops held 78 to 82 %."""
    made = covered.demand(name)
    found = covered.covered(ConstraintBased(made.features, 1), made.counts, RUNS, None)
    _check(found, QUESTIONS)


def test_sums_that_nothing_measures_have_no_interval_when_types_are_not_listed() -> None:
    """Tables and single types hold as often as they say; boardings and pairs of stops have none, and the answer says why."""
    made = covered.demand("corridor")
    hiding = Posterior(revealed=made.features.universe.size // 8)  # as if the types were too many to list
    mechanism = ConstraintBased(made.features, 1, sparse=True, estimator=hiding)
    found = covered.covered(mechanism, made.counts, RUNS, None)
    told = ("single types", "pairs of zones by period", "pairs of zones", "periods", "total")
    _check(found, told)
    for name in set(QUESTIONS) - set(told):
        assert not found[name].told.any(), name
    release = mechanism.simulate(made.counts, 1)
    shown = {m.feature: m for m in release.measurements}["singleton"]
    assert shown.elements is not None
    assert 0 < len(shown.elements) < made.features.universe.size
    answer = release.ask("origin")
    assert np.isnan(answer["low"]).all()
    assert np.isnan(answer["high"]).all()
    assert answer["count"].sum() == release.total
    assert "no measured table adds up to them" in answer.notes[0]
    assert "“time”" in answer.notes[0]
    assert release.ask("time").notes == ()
    assert np.isnan(release.ask("origin", share_of=())["share_low"]).all()
