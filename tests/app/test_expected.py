"""What is expected of published tables, told beforehand: by the model, and as simulated releases come out."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from small_city import plan_of

from cbdp.counting import count
from cbdp.datasets import ann_arbor
from cbdp.forecast import expected_tables, explain
from cbdp.forecast.errors import expected_of, facts_of, margins, model_of_mechanism
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.expected_error import DemandFacts
from cbdp.report.reliability import USES, Use, use_of
from cbdp_features.dag import odmts


def test_errors_are_those_of_the_configured_budget(city: Path) -> None:
    """The same numbers as in the table of budgets."""
    plan = plan_of(city)
    told = explain(plan)
    own = next(iter(told.choices.values()))
    assert {e.feature: e.error for e in told.expected} == pytest.approx(own)
    assert explain(plan_of(city, ('"constraint-based"', '"laplace"'))).expected == ()


def test_without_a_number_of_trips_the_range_is_the_noise_alone(city: Path) -> None:
    """Nothing is shrunk then: 1.645 standard deviations, rounded up, around a count of 100."""
    for e in expected_tables(plan_of(city, ("expected_trips = 60000", ""))):
        assert e.count == 100
        assert e.half == math.ceil(1.6448536 * e.error)
        assert (e.low, e.high) == (max(0, 100 - e.half), 100 + e.half)


def test_public_counts_have_no_error(city: Path) -> None:
    """They are met exactly."""
    plan = plan_of(city, ("cap = 2.0", "cap = 2.0\npublic = { total = 50000 }"))
    total = next(e for e in expected_tables(plan) if e.feature == "total")
    assert (total.error, total.half, total.count) == (0.0, 0, 60000.0)


def test_every_table_is_judged_by_its_average_count(city: Path) -> None:
    """Trips ÷ counts to two digits, at least 1; and the count from which on counts are good is the least that the margins allow."""
    plan = plan_of(city)
    assert isinstance(plan.mechanism, ConstraintBased)
    of, precision = model_of_mechanism(plan.mechanism, facts_of(plan))
    noise = of.reconciled(precision)
    for n, e in enumerate(expected_tables(plan)):
        mean = 60000 / plan.features.size(e.feature)
        assert abs(e.count - mean) <= max(0.5, mean / 20)
        assert e.use == use_of(e.half / e.count)
        below, at = margins(of, n, float(noise[n]), np.array([e.good - 1.0, float(e.good)]), plan.confidence)
        assert at <= 0.2 * e.good
        assert below > 0.2 * (e.good - 1)
    few = {
        e.feature: e
        for e in expected_tables(plan_of(city, ("expected_trips = 60000", "expected_trips = 12")))
    }
    assert few["singleton"].count == 1


@pytest.mark.parametrize(("use", "factor"), [(USES[0], 1.2), (USES[1], 1.5), (USES[2], 2.0)])
def test_a_use_means_that_ranges_do_not_meet(use: Use, factor: float) -> None:
    """At the limit the upper end of a count meets the lower end of one so many times as large; below it does not."""
    assert 1 + use.within == pytest.approx(factor - use.within)


def test_simulated_releases_come_out_as_told() -> None:
    """Two hours of the generated city at ε = 1: tables' errors within a half, and nine of ten typical counts within their ranges."""
    city = ann_arbor(seed=0, hours=("08:00", "10:00"))
    features = odmts(city.universe)
    truth = count(city.trips, features.universe)
    mechanism, facts = ConstraintBased(features, 1), DemandFacts(1, 5000)
    releases = [mechanism.simulate(truth, seed) for seed in (0, 1)]
    of, precision = model_of_mechanism(mechanism, facts)
    noise, held = of.reconciled(precision), []
    for n, told in enumerate(expected_of(mechanism, facts, 0.9)):
        true = truth.of(features, told.feature).astype(float)
        off = np.array([r.counts(told.feature) - true for r in releases])
        near = (true > told.count / 2) & (true < told.count * 2)
        if told.feature in ("zone", "mode"):
            assert 0.66 < told.error / np.sqrt(np.mean(off**2)) < 1.5
            held.append(np.abs(off[:, near]) <= margins(of, n, float(noise[n]), true[near], 0.9))
    together = np.concatenate([h.ravel() for h in held])
    assert len(together) > 80
    assert together.mean() > 0.88
