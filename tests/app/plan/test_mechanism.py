"""The mechanism of a plan: its budget, δ and target."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from small_city import plan_of


def test_delta_is_that_of_the_whole_release(city: Path) -> None:
    """A mechanism that needs δ for each table shares the one stated for all."""
    plan = plan_of(
        city, ('"constraint-based"', '"stability-histogram"'), ("cap = 2.0", "cap = 2.0\ndelta = 1e-6")
    )
    assert plan.mechanism.claim().cost.delta == Fraction(1, 10**6)
    assert plan.account.charge.delta == Fraction(1, 10**6)


def test_a_target_that_names_a_further_feature_adds_it(city: Path) -> None:
    """With the preset `odmts`, tables of single stops are there when the target asks for them; a declared one stays."""
    plan = plan_of(city, ("cap = 2.0", "cap = 2.0\ntarget = { origin-time = 1, singleton = 1 }"))
    assert plan.features.features["origin-time"].by == ("origin", "time")
    own = ("[privacy]", '[[feature]]\nname = "origin-time"\nby = ["time", "origin.zone"]\n[privacy]')
    declared = plan_of(city, own, ("cap = 2.0", "cap = 2.0\ntarget = { origin-time = 1 }"))
    assert declared.features.features["origin-time"].by == ("time", "origin.zone")
