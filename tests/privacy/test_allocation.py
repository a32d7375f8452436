"""How ε is shared: by name, or for a target by a model of errors that knows public facts only."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cbdp
from cbdp.errors import InputError
from cbdp.features import Dimension, Feature, FeatureDag, Universe
from cbdp.measuring.dense import measure
from cbdp.privacy.allocation import LEAVES, named
from cbdp.privacy.budget import Facts, shares
from cbdp.privacy.budget.errors import expected_errors, model
from cbdp.privacy.budget.optimal import optimal
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.measurement import geometric_variance
from cbdp.trips.count import Counts

STOPS = Dimension([f"S{n}" for n in range(12)], zone=[f"Z{n % 3}" for n in range(12)])
UNIVERSE = Universe(origin=STOPS, destination=STOPS, time=range(6))
DAG = FeatureDag(
    UNIVERSE,
    [
        Feature("time", by="time"),
        Feature("from", by=["origin.zone", "time"]),
        Feature("to", by=["destination.zone", "time"]),
        Feature("zone", by=["origin.zone", "destination.zone", "time"]),
    ],
)
LEVELS = ["total", "time", "from", "to", "zone", "singleton"]
STATED = Facts(1, 5000)
WEIGHT = st.fractions(Fraction(1, 20), 20, max_denominator=20)
TARGETS = st.dictionaries(st.sampled_from(LEVELS), WEIGHT, min_size=1)
EPSILONS = st.sampled_from([Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(4)])
FACTS = st.sampled_from([Facts(), STATED, Facts(2, 5000, 0.05), Facts(4, 200)])
few = settings(max_examples=15, deadline=None)


def _loss(target: dict[str, Any], split: dict[str, Fraction], facts: Facts) -> float:
    """The documented loss: weight × error variance over that with all of ε on the feature itself."""
    epsilon = sum(split.values(), Fraction(0))
    made = expected_errors(DAG, split, facts)
    alone = dict(zip(DAG.features, model(DAG, list(split), epsilon, facts).alone(), strict=True))
    return sum(float(w) * made[n] ** 2 / float(alone[n]) for n, w in target.items())


@few
@given(TARGETS, EPSILONS, FACTS)
def test_shares_for_a_target_add_up_exactly(
    target: dict[str, Fraction], epsilon: Fraction, facts: Facts
) -> None:
    """Thousandths of ε that sum to it as fractions, at least a hundredth for each measured feature."""
    split = optimal(DAG, LEVELS, epsilon, target, facts)
    assert list(split) == LEVELS
    assert sum(split.values()) == epsilon
    assert all(
        share >= epsilon / 100 and (1000 * share / epsilon).denominator == 1 for share in split.values()
    )


@few
@given(TARGETS, EPSILONS, FACTS, st.integers(0, 2**32))
def test_no_other_split_is_better(
    target: dict[str, Fraction], epsilon: Fraction, facts: Facts, seed: int
) -> None:
    """Against random splits, the named ones, and every move of a thousandth, the loss is the least."""
    found = optimal(DAG, LEVELS, epsilon, target, facts)
    least = _loss(target, found, facts)
    drawn = np.random.default_rng(seed).dirichlet(np.full(6, 0.5), size=40)
    tried = [[Fraction(10 + int(940 * p), 1000) for p in row] for row in drawn]
    splits = [{n: epsilon * p / sum(row) for n, p in zip(LEVELS, row, strict=True)} for row in tried]
    ready = [named(LEVELS, epsilon, budget) for budget in LEAVES]
    splits += [
        split for split in ready if min(split.values()) >= epsilon / 100
    ]  # as `optimal` gives at least
    step = epsilon / 1000
    for a, b in itertools.permutations(LEVELS, 2):
        if found[a] - step >= epsilon / 100:
            splits.append({n: s - step * (n == a) + step * (n == b) for n, s in found.items()})
    assert least <= min(_loss(target, split, facts) for split in splits) * (1 + 1e-6)


@few
@given(TARGETS, EPSILONS, FACTS, st.sampled_from(LEVELS))
def test_what_matters_more_is_known_no_worse(
    target: dict[str, Fraction], epsilon: Fraction, facts: Facts, more: str
) -> None:
    """With more weight the error of a feature does not grow, so that the leaves, which nothing refines, get no less."""
    heavier = {**target, more: 3 * target.get(more, Fraction(0)) + 1}
    before, after = (optimal(DAG, LEVELS, epsilon, t, facts) for t in (target, heavier))
    assert expected_errors(DAG, after, facts)[more] <= expected_errors(DAG, before, facts)[more] * 1.01
    if more == "singleton":
        assert after[more] >= before[more] - epsilon / 500


@few
@given(EPSILONS, WEIGHT, FACTS)
def test_features_alike_are_treated_alike(epsilon: Fraction, weight: Fraction, facts: Facts) -> None:
    """Two tables of one size and one weight get the same share, to a thousandth; to swap their weights swaps the shares."""
    even = optimal(DAG, LEVELS, epsilon, {"from": weight, "to": weight, "singleton": 1}, facts)
    assert abs(even["from"] - even["to"]) <= epsilon / 1000
    one = optimal(DAG, LEVELS, epsilon, {"from": weight, "to": 30}, facts)
    other = optimal(DAG, LEVELS, epsilon, {"to": weight, "from": 30}, facts)
    assert abs(one["from"] - other["to"]) <= epsilon / 1000
    assert abs(one["to"] - other["from"]) <= epsilon / 1000


@pytest.mark.parametrize("scale", [7, "1/9"])
def test_only_the_ratio_of_weights_counts(scale: Any) -> None:
    """A target and a multiple of it are the same question."""
    target = {"zone": Fraction(2), "singleton": Fraction(1)}
    many = {name: weight * Fraction(scale) for name, weight in target.items()}
    assert optimal(DAG, LEVELS, Fraction(1), target, STATED) == optimal(
        DAG, LEVELS, Fraction(1), many, STATED
    )


def test_a_single_wish_gets_all_that_can_be_given() -> None:
    """Where one feature counts and trips are unknown, all others keep their hundredth."""
    for name in ("singleton", "zone"):
        split = optimal(DAG, LEVELS, Fraction(2), {name: 1})
        assert split[name] == 2 * Fraction(95, 100)
        assert {share for n, share in split.items() if n != name} == {Fraction(2, 100)}


def test_errors_without_trips_are_inverse_variance() -> None:
    """With nothing known of the trips the error is that of independent answers combined by inverse variance."""
    split = named(LEVELS, Fraction(1), "balanced")
    found = expected_errors(DAG, split, Facts(3))
    variance = {n: geometric_variance(float(3 / share)) for n, share in split.items()}
    precise = sum(
        DAG.size("time") / (DAG.size(n) * variance[n]) for n in ("time", "from", "to", "zone", "singleton")
    )
    assert found["time"] == pytest.approx(precise**-0.5)
    assert found["singleton"] == pytest.approx(variance["singleton"] ** 0.5)


def test_errors_of_tables_are_those_of_a_least_squares_fit() -> None:
    """On simulated noise the inverse-variance sum of a chain of features has the error the model states."""
    chain = FeatureDag(UNIVERSE, [Feature("time", by="time"), Feature("zone", by=["origin.zone", "time"])])
    none = np.empty(0, dtype=np.int64)
    split = shares(chain, 1, "balanced")
    off = []
    for seed in range(60):
        got = {
            m.feature: m
            for m in measure(
                Counts(UNIVERSE, none, none, cbdp.Trip()),
                chain,
                1,
                split,
                entropy=InsecureSeededEntropy(seed),
            )
        }
        sums = {
            n: np.bincount(chain.map_elements(n, "time"), got[n].values, 6)
            for n in ("time", "zone", "singleton")
        }
        weight = {n: 6 / (chain.size(n) * got[n].variance[0]) for n in sums}
        off.append(sum(weight[n] * sums[n] for n in sums) / sum(weight.values()))
    stated = expected_errors(chain, split)["time"]
    assert np.sqrt(np.mean(np.square(off))) == pytest.approx(stated, rel=0.25)  # 360 draws: 6 standard errors


def test_known_trips_bound_the_error() -> None:
    """An error is never more than with unknown trips, falls with ε, and publishing zeros is about the worst there is."""
    coarse, fine = (
        expected_errors(DAG, named(LEVELS, Fraction(e), "balanced"), STATED) for e in ("1/1000", "1")
    )
    unknown = expected_errors(DAG, named(LEVELS, Fraction(1), "balanced"))
    few_types = expected_errors(DAG, named(LEVELS, Fraction(1, 1000), "balanced"), Facts(1, 5000, 0.02))
    assert all(fine[n] <= unknown[n] and fine[n] < coarse[n] for n in ("time", "zone"))
    assert coarse["singleton"] < 30 < unknown["singleton"] * 1000
    assert few_types["singleton"] > coarse["singleton"]  # the same trips on fewer types: larger counts


def test_slopes_are_those_of_the_errors() -> None:
    """The analytic slope agrees with differences, with and without a signal."""
    for facts in (Facts(), STATED, Facts(2, 300, 0.01)):
        of = model(DAG, LEVELS, Fraction(1), facts)
        part = np.array([0.1, 0.2, 0.1, 0.15, 0.15, 0.3])
        _, slope = of.errors(part)
        for row in range(len(LEVELS)):
            step = np.eye(len(LEVELS))[row] * 1e-6
            numeric = (of.errors(part + step)[0] - of.errors(part - step)[0]) / 2e-6
            np.testing.assert_allclose(slope[row], numeric, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("budget", "leaves"), [("leaves", "9/10"), ("balanced", "2/5"), ("tables", "1/6")])
def test_named_budgets_are_what_they_say(budget: str, leaves: str) -> None:
    """The leaves get their stated part, the tables share the rest evenly, and all of ε is spent."""
    split = cbdp.ConstraintBased(DAG, "1/7", budget=budget).claim().cost
    by = {part.what: part.epsilon for part in split.parts}
    assert by["singleton"] == Fraction(leaves) / 7
    assert {e for n, e in by.items() if n != "singleton"} == {(1 - Fraction(leaves)) / 35}
    assert split.epsilon == Fraction(1, 7)


def test_tables_get_no_more_than_enough_where_leaves_matter() -> None:
    """From ε = 1/5 on the tables share 1/50 in all, for persons as many times that as they may have trips."""
    for unit, tables in ((cbdp.Trip(), "1/50"), (cbdp.Person("card", 3), "3/50")):
        cost = cbdp.ConstraintBased(DAG, 1, unit, budget="leaves").claim().cost
        by = {part.what: part.epsilon for part in cost.parts}
        assert by["singleton"] == 1 - Fraction(tables)
        assert cost.epsilon == 1


def test_a_mechanism_takes_a_target() -> None:
    """The split is that of `optimal` with the unit's sensitivity, is claimed as such, and is what is measured."""
    target = {"singleton": 1, "zone": 2}
    made = cbdp.ConstraintBased(DAG, 1, cbdp.Person("card", 3), target=target, trips=5000, filled=0.1)
    split = optimal(DAG, sorted(LEVELS, key=DAG.size), Fraction(1), target, Facts(3, 5000, 0.1))
    assert made.budget == "optimal"
    assert {part.what: part.epsilon for part in made.claim().cost.parts} == split
    trips = {"origin": ["S1"] * 9, "destination": ["S2"] * 9, "time": [1] * 9, "card": list(range(9))}
    release = made.simulate(trips, seed=0)
    assert {m.feature: m.epsilon for m in release.measurements} == split
    assert {m.feature: m.scale for m in release.measurements} == {n: 3 / e for n, e in split.items()}


def test_a_target_may_name_what_is_not_measured() -> None:
    """ε then goes to what adds up to it."""
    made = cbdp.ConstraintBased(
        DAG, 1, measured=["zone", "singleton", "total"], target={"time": 1}, trips=5000
    )
    by = {part.what: part.epsilon for part in made.claim().cost.parts}
    assert by["zone"] == Fraction(98, 100)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"budget": "optimal"}, "budget 'optimal' without a target"),
        ({"budget": "uniform", "target": {"zone": 1}}, "a target with budget 'uniform'"),
        ({"target": {"zones": 1}}, "a target for 'zones', which is no feature"),
        ({"target": {"origin": 1}}, r"add it with extra=\('origin',\)"),
        ({"target": {}}, "say how much features matter"),
        ({"target": {"zone": 0}}, "the target of 'zone' is 0, it must be above 0"),
        ({"target": {"zone": "much"}}, "the target of 'zone' is 'much'"),
        ({"target": {"zone": 1}, "trips": 0}, "trips is 0, it must be above 0"),
        ({"target": {"zone": 1}, "trips": 10, "filled": 1.5}, "filled is 1.5"),
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


def test_extra_features_of_the_case_study() -> None:
    """They group by stops and times; an unknown one is told."""
    made = cbdp.features.odmts(UNIVERSE, level=4, extra=["origin", "destination-time", "origin-destination"])
    assert made.sizes["origin"] == 12
    assert made.sizes["destination-time"] == 72
    assert made.sizes["origin-destination"] == 144
    with pytest.raises(InputError, match="unknown extra feature 'origins': there are origin, "):
        cbdp.features.odmts(UNIVERSE, level=3, extra=["origins"])
    with pytest.raises(InputError, match="give a list"):
        cbdp.features.odmts(UNIVERSE, level=3, extra="origin")


def test_enough_is_for_the_posterior_alone() -> None:
    """Where nothing learns the rest from the leaves, tables keep a tenth: projection, other mechanisms, bare measuring."""
    made = cbdp.ConstraintBased(DAG, 1, budget="leaves", estimator="projection")
    assert {p.what: p.epsilon for p in made.claim().cost.parts}["singleton"] == Fraction(9, 10)
    assert shares(DAG, 1, "leaves")["singleton"] == Fraction(9, 10)
