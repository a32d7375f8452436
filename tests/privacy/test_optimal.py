"""The split of ε for a target: no other has less expected loss by the stated model."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from budget_cases import DAG, LEVELS, STATED, UNIVERSE
from hypothesis import given, settings
from hypothesis import strategies as st

import cbdp
from cbdp.errors import InputError
from cbdp.privacy.budget import allocate, optimal_shares
from cbdp.privacy.expected_error import DemandFacts, error_model, expected_errors

WEIGHT = st.fractions(Fraction(1, 20), 20, max_denominator=20)
TARGETS = st.dictionaries(st.sampled_from(LEVELS), WEIGHT, min_size=1)
EPSILONS = st.sampled_from([Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(4)])
FACTS = st.sampled_from([DemandFacts(), STATED, DemandFacts(2, 5000, 0.05), DemandFacts(4, 200)])
few = settings(max_examples=15, deadline=None)


def _loss(target: dict[str, Any], split: dict[str, Fraction], facts: DemandFacts) -> float:
    """The documented loss: the worst weight × error over that with all of ε on the feature itself."""
    epsilon = sum(split.values(), Fraction(0))
    made = expected_errors(DAG, split, facts)
    alone = dict(
        zip(DAG.features, np.sqrt(error_model(DAG, list(split), epsilon, facts).alone()), strict=True)
    )
    return max(float(w) * made[n] / float(alone[n]) for n, w in target.items())


@few
@given(TARGETS, EPSILONS, FACTS)
def test_shares_for_a_target_add_up_exactly(
    target: dict[str, Fraction], epsilon: Fraction, facts: DemandFacts
) -> None:
    """Thousandths of ε that sum to it as fractions, at least eight for each of six measured features."""
    split = optimal_shares(DAG, LEVELS, epsilon, target, facts)
    assert list(split) == LEVELS
    assert sum(split.values()) == epsilon
    assert all(
        share >= epsilon / 125 and (1000 * share / epsilon).denominator == 1 for share in split.values()
    )


@few
@given(TARGETS, EPSILONS, FACTS, st.integers(0, 2**32))
def test_no_other_split_is_better(
    target: dict[str, Fraction], epsilon: Fraction, facts: DemandFacts, seed: int
) -> None:
    """No move of a thousandth makes the worst ratio smaller; nor do random splits or the named ones, but for the last digits."""
    found = optimal_shares(DAG, LEVELS, epsilon, target, facts)
    least = _loss(target, found, facts)
    drawn = np.random.default_rng(seed).dirichlet(np.full(6, 0.5), size=40)
    tried = [[Fraction(8 + int(952 * p), 1000) for p in row] for row in drawn]
    others = [{n: epsilon * p / sum(row) for n, p in zip(LEVELS, row, strict=True)} for row in tried]
    ready = [allocate(DAG, epsilon, budget) for budget in ("leaves", "balanced", "tables")]
    others += [
        split for split in ready if min(split.values()) >= epsilon / 125
    ]  # as `optimal_shares` gives at least
    assert least <= min(_loss(target, split, facts) for split in others) * 1.002
    step, near = epsilon / 1000, []
    for a, b in itertools.permutations(LEVELS, 2):
        if found[a] - step >= epsilon / 125:
            near.append({n: s - step * (n == a) + step * (n == b) for n, s in found.items()})
    assert least <= min(_loss(target, split, facts) for split in near) * (1 + 1e-6)


@few
@given(TARGETS, EPSILONS, FACTS, st.sampled_from(LEVELS))
def test_what_matters_more_is_known_no_worse(
    target: dict[str, Fraction], epsilon: Fraction, facts: DemandFacts, more: str
) -> None:
    """With more weight the error of a feature does not grow, so that the leaves, which nothing refines, get no less."""
    heavier = {**target, more: 3 * target.get(more, Fraction(0)) + 1}
    before, after = (optimal_shares(DAG, LEVELS, epsilon, t, facts) for t in (target, heavier))
    assert expected_errors(DAG, after, facts)[more] <= expected_errors(DAG, before, facts)[more] * 1.01
    if more == "singleton":
        assert after[more] >= before[more] - epsilon / 500


@few
@given(EPSILONS, WEIGHT, FACTS)
def test_features_alike_are_treated_alike(epsilon: Fraction, weight: Fraction, facts: DemandFacts) -> None:
    """Two tables of one size and one weight get the same share, to a thousandth; to swap their weights swaps the shares."""
    even = optimal_shares(DAG, LEVELS, epsilon, {"from": weight, "to": weight, "singleton": 1}, facts)
    assert abs(even["from"] - even["to"]) <= epsilon / 1250
    one = optimal_shares(DAG, LEVELS, epsilon, {"from": weight, "to": 30}, facts)
    other = optimal_shares(DAG, LEVELS, epsilon, {"to": weight, "from": 30}, facts)
    assert abs(one["from"] - other["to"]) <= epsilon / 1250
    assert abs(one["to"] - other["from"]) <= epsilon / 1250


@pytest.mark.parametrize("scale", [7, "1/9"])
def test_only_the_ratio_of_weights_counts(scale: Any) -> None:
    """A target and a multiple of it are the same question."""
    target = {"zone": Fraction(2), "singleton": Fraction(1)}
    many = {name: weight * Fraction(scale) for name, weight in target.items()}
    assert optimal_shares(DAG, LEVELS, Fraction(1), target, STATED) == optimal_shares(
        DAG, LEVELS, Fraction(1), many, STATED
    )


def test_a_single_wish_gets_all_that_can_be_given() -> None:
    """Where one feature counts and trips are unknown, all others keep what every feature gets."""
    for name in ("singleton", "zone"):
        split = optimal_shares(DAG, LEVELS, Fraction(2), {name: 1})
        assert split[name] == 2 * Fraction(96, 100)
        assert {share for n, share in split.items() if n != name} == {Fraction(2, 125)}


def test_a_mechanism_takes_a_target() -> None:
    """The split is that of `optimal_shares` with the unit's sensitivity, is claimed as such, and is what is measured."""
    target = {"singleton": 1, "zone": 2}
    made = cbdp.ConstraintBased(
        DAG, 1, cbdp.Person("card", 3), target=target, expected_trips=5000, expected_filled=0.1
    )
    split = optimal_shares(DAG, sorted(LEVELS, key=DAG.size), Fraction(1), target, DemandFacts(3, 5000, 0.1))
    assert made.budget == "optimal"
    assert {part.what: part.epsilon for part in made.claim().cost.parts} == split
    trips = {"origin": ["S1"] * 9, "destination": ["S2"] * 9, "time": [1] * 9, "card": list(range(9))}
    release = made.simulate(trips, seed=0)
    assert {m.feature: m.epsilon for m in release.measurements} == split
    assert {m.feature: m.scale for m in release.measurements} == {n: 3 / e for n, e in split.items()}


def test_a_target_may_name_what_is_not_measured() -> None:
    """ε then goes to what adds up to it."""
    made = cbdp.ConstraintBased(
        DAG, 1, measured=["zone", "singleton", "total"], target={"time": 1}, expected_trips=5000
    )
    by = {part.what: part.epsilon for part in made.claim().cost.parts}
    assert by["zone"] == Fraction(98, 100)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"budget": "optimal"}, "budget 'optimal' without a target"),
        ({"budget": "uniform", "target": {"zone": 1}}, "a target with budget 'uniform'"),
        ({"target": {"zones": 1}}, "a target for 'zones', which is not a feature"),
        ({"target": {"origin": 1}}, r"add it with extra=\('origin',\)"),
        ({"target": {}}, "say how much features matter"),
        ({"target": {"zone": 0}}, "the target of 'zone' is 0, it must be above 0"),
        ({"target": {"zone": "much"}}, "the target of 'zone' is 'much'"),
        ({"target": {"zone": 1}, "expected_trips": 0}, "expected_trips is 0, it must be above 0"),
        ({"target": {"zone": 1}, "expected_trips": 10, "expected_filled": 1.5}, "expected_filled is 1.5"),
        ({"prior": np.ones(UNIVERSE.size), "preset": "paper"}, "a prior with estimator 'projection'"),
        (
            {"prior": np.ones(UNIVERSE.size), "estimator": "posterior", "sparse": True},
            "trip types, which are not listed",
        ),
    ],
)
def test_wrong_targets_are_refused(settings: dict[str, Any], said: str) -> None:
    """What makes no sense is refused with its value, before any data is seen."""
    with pytest.raises(InputError, match=said):
        cbdp.ConstraintBased(DAG, 1, **settings)
