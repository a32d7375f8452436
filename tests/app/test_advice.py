"""Wishes for precision that would protect nobody are answered with what to merge, and an ε that hardly protects is warned of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from small_city import plan_of

from cbdp import forecast
from cbdp.errors import InputError
from cbdp.forecast.errors import MAX_MEANINGFUL_EPSILON, posterior_belief

FEW = ("expected_trips = 60000", "expected_trips = 2400")


def test_a_wish_above_the_limit_says_what_to_merge(city: Path) -> None:
    """And what is proposed does: with those periods, the ε that is named is the least that meets the wish."""
    plan = plan_of(city, FEW)
    assert forecast.epsilon_for(plan, "zone", "1/100") > MAX_MEANINGFUL_EPSILON
    said = forecast.answer(plan, "zone", "1")
    assert "not with meaningful protection" in said
    found = re.search(r"with (\d+)-minute periods ε = ([\d.]+) would do", said)
    assert found is not None, said
    longer = plan_of(city, FEW, ('every = "1h"', f'every = "{found[1]}min"'))
    assert float(forecast.epsilon_for(longer, "zone", "1/100")) == float(found[2]) <= MAX_MEANINGFUL_EPSILON


def test_noise_that_would_round_to_zero_is_no_protection(city: Path) -> None:
    """Less than one trip is allowed: whatever the ε, nearly every count would be exact."""
    plan = plan_of(city, ("expected_trips = 60000", "expected_trips = 1000"))
    assert forecast.epsilon_for(plan, "singleton", "1/10") < MAX_MEANINGFUL_EPSILON
    said = forecast.answer(plan, "singleton", "10")
    assert "not with meaningful protection" in said
    assert "less than one trip is allowed" in said


def test_where_nothing_coarser_does_that_is_said(city: Path) -> None:
    """No period is long enough for one part in a million."""
    said = forecast.answer(plan_of(city), "zone", "0.0001")
    assert "Coarser periods or zones would not do either" in said


def test_a_wish_in_rho_is_judged_by_its_epsilon(city: Path) -> None:
    """Gaussian noise: the ρ that is needed, and the ε that it gives."""
    plan = plan_of(city, FEW, ("epsilon = 1.0", 'rho = 0.02\nlaw = "gaussian"'))
    said = forecast.answer(plan, "zone", "1")
    assert re.search(r"ρ would have to be [\d.]+, which is ε = [\d.]+, above 10", said)


@pytest.mark.parametrize(("epsilon", "warns"), [("10", False), ("10.01", True), ("14.8", True)])
def test_check_warns_above_the_stated_epsilon(city: Path, epsilon: str, warns: bool) -> None:
    """With the reason: what somebody who hardly suspected anything may believe afterwards."""
    told = forecast.explain(
        plan_of(city, ("epsilon = 1.0", f"epsilon = {epsilon}"), ("cap = 2.0", "cap = 20"))
    )
    found = [w for w in told.warnings if "protects hardly anybody" in w]
    assert bool(found) is warns
    if warns:
        odds = 0.001 / 0.999 * 2.718281828459045 ** float(epsilon)
        sure = float(re.search(r"may become (?:over )?([\d.]+) % sure", found[0])[1])  # type: ignore[index]
        assert sure == pytest.approx(100 * odds / (1 + odds), abs=0.1)
        assert "above 10" in found[0]


def test_belief_is_bounded_by_the_odds() -> None:
    """Posterior odds are prior odds times e^ε, and never above certainty."""
    for prior in (0.001, 0.3, 0.99):
        after = posterior_belief(prior, 2.0)
        assert after / (1 - after) == pytest.approx(prior / (1 - prior) * 7.389056)
    assert posterior_belief(0.5, 1e6) == 1.0


def test_a_misspelt_feature_is_told(city: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'zone'"):
        forecast.answer(plan_of(city), "zones", "5")
