"""Budgets named after what they serve: each is near the best that any shares could do for its target."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from budget_cases import DAG, dense_variance
from scipy.optimize import minimize

import cbdp
from cbdp.features import Dimension, Feature, FeatureDag, Universe, odmts, periods
from cbdp.privacy.budget import (
    BUDGETS,
    AllocationProblem,
    allocate,
    measured_features,
    optimal_shares,
    specialist_ratios,
)
from cbdp.privacy.expected_error import DemandFacts, expected_errors

STOPS = Dimension(range(8), zone=[n % 2 for n in range(8)])
CITY = odmts(
    Universe(origin=STOPS, destination=STOPS, time=periods("08:00", "10:00", "30min")),
    modes=np.add.outer(np.arange(8) // 2, np.arange(8) // 2) % 4,
)
ENDS = odmts(CITY.universe, extra=["origin", "destination-time"])
SMALL = odmts(
    Universe(origin=range(4), destination=range(4), time=range(3)),
    zones=[0, 1, 0, 1],
    modes=np.add.outer(np.arange(4) // 2, np.arange(4) // 2) % 2,
)
BARE = FeatureDag(CITY.universe, [])
DAGS = {"city": CITY, "ends": ENDS, "zones": DAG, "bare": BARE}
SERVED = ("balanced", "tables", "leaves")


def _asked(dag: FeatureDag) -> AllocationProblem:
    return AllocationProblem(dag, measured_features(dag), Fraction(1), enough=Fraction(1, 50))


def _least_worst(dag: FeatureDag, target: Mapping[str, Fraction], leaves: float) -> float:
    """The bound by another way: matrices, and a general-purpose solver on the epigraph, from several starts."""
    wanted, many = [n in target for n in dag.features], len(dag.features)

    def ratios(part: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(dense_variance(dag, np.maximum(part, 1e-6) ** 2)[wanted]))

    low = np.array([leaves if n == "singleton" else 1e-6 for n in dag.features])
    found = []
    for start in (np.full(many, 1 / many), *(np.full(many, 0.5 / many) + 0.5 * np.eye(many)[wanted])):
        made = minimize(
            lambda z: z[-1],
            np.append(start, ratios(start).max()),
            method="SLSQP",
            bounds=[*((low_, 1.0) for low_ in low), (None, None)],
            constraints=[
                {"type": "eq", "fun": lambda z: z[:-1].sum() - 1},
                {"type": "ineq", "fun": lambda z: z[-1] - ratios(z[:-1])},
            ],
            options={"maxiter": 100, "ftol": 1e-9},
        )
        part = np.maximum(made.x[:-1], low)
        found.append(ratios(part / part.sum()).max())
    return float(min(found))


@pytest.mark.parametrize(("name", "leaves"), [("balanced", 0.4), ("tables", 1e-6), ("leaves", 1e-6)])
def test_the_worst_ratio_is_within_a_twentieth_of_the_bound(name: str, leaves: float) -> None:
    """Least squares with matrices and a solver of other people find no shares that are better by more than 5 %."""
    stated = BUDGETS.get(name).specialist_ratios(_asked(SMALL))
    assert stated is not None
    split = allocate(SMALL, 1, name, enough=Fraction(1, 50))
    part = np.array([float(split[n]) for n in SMALL.features])
    wanted = [n in stated.target for n in SMALL.features]
    worst = float(np.sqrt(dense_variance(SMALL, part**2)[wanted]).max())
    bound = _least_worst(SMALL, stated.target, leaves)
    assert worst <= 1.05 * bound
    assert stated.worst == pytest.approx(worst, rel=1e-3)
    assert stated.bound <= bound * 1.02  # on so small a city there are many valleys
    assert stated.worst <= stated.bound * 1.05


@pytest.mark.parametrize("dag", DAGS)
@pytest.mark.parametrize("name", ["balanced", "tables"])
def test_shares_are_near_their_own_bound_on_any_features(name: str, dag: str) -> None:
    """With many tables or few, crossing or not, what is guaranteed to each costs at most 5 %."""
    stated = BUDGETS.get(name).specialist_ratios(_asked(DAGS[dag]))
    assert stated is not None
    assert 1 <= stated.worst / stated.bound <= 1.05


def test_no_table_is_left_behind() -> None:
    """With `tables` all tables are about as far from their specialists, where none is told by another."""
    split = allocate(CITY, Fraction(1, 10), "tables")
    errors = expected_errors(CITY, split)
    tables = [errors[n] for n in CITY.features if n != "singleton"]
    assert max(tables) / min(tables) < 1.01
    assert split["singleton"] == Fraction(4, 1000)
    even = dict.fromkeys(CITY.features, Fraction(1, 50))
    assert max(tables) < max(expected_errors(CITY, even)[n] for n in CITY.features if n != "singleton")


def test_tables_that_others_tell_get_little() -> None:
    """Three zones' tables add up to another one: it is cheaper to buy it with them."""
    split = allocate(DAG, 1, "tables")
    assert split["from"] == split["to"] < split["zone"] / 10
    errors = expected_errors(DAG, split)
    assert max(errors["from"], errors["to"]) < 1.01 * max(errors["zone"], errors["total"])


@pytest.mark.parametrize("dag", ["city", "zones", "bare"])
def test_balanced_gives_the_leaves_two_fifths(dag: str) -> None:
    """However many tables there are, unless trip types are so few that it takes more of them to tell the tables."""
    split = allocate(DAGS[dag], 1, "balanced")
    assert split["singleton"] == Fraction(2, 5)
    tables = allocate(DAGS[dag], 1, "tables")
    assert tables["singleton"] == Fraction(1, 25)
    for name in DAGS[dag].features:
        if name != "singleton":  # the same tables are bought, with less
            assert float(split[name]) == pytest.approx(float(tables[name]) * 0.6 / 0.96, abs=0.02)


@pytest.mark.parametrize("name", ["balanced", "tables"])
def test_parts_depend_on_features_and_law_alone(name: str) -> None:
    """The same parts for any ε, unit and number of trips: they are public facts that these budgets take no notice of."""
    usual = allocate(CITY, 1, name)
    for epsilon, facts in ((7, DemandFacts(3)), ("1/100", DemandFacts(1, 5000, 0.1))):
        other = allocate(CITY, epsilon, name, facts=facts)
        assert {n: e / Fraction(epsilon) for n, e in other.items()} == usual
    assert all((1000 * part).denominator == 1 for part in usual.values())


def test_leaves_are_served_best_by_the_budget_named_after_them() -> None:
    """Of all shares that leave the tables what they need, none has less error there; tables share that evenly."""
    split = allocate(CITY, 1, "leaves", enough=Fraction(1, 50))
    assert {e for n, e in split.items() if n != "singleton"} == {Fraction(1, 200)}
    least = expected_errors(CITY, split)["singleton"]
    for moved in (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2)):
        for taker in ("total", "time", "zone", "mode"):
            other = {n: e - moved * (n == "singleton") + moved * (n == taker) for n, e in split.items()}
            assert expected_errors(CITY, other)["singleton"] > least


def test_public_tables_get_nothing_and_spare_the_others() -> None:
    """With the times public, the total is known, and zones and modes are bought with all that is left."""
    facts = DemandFacts(public=("total", "time"))
    levels = ["zone", "mode", "singleton"]
    split = allocate(CITY, 1, "tables", levels, facts=facts)
    assert list(split) == levels
    plain = allocate(CITY, 1, "tables", levels)
    worst = max(expected_errors(CITY, split, facts)[n] for n in ("mode", "zone"))
    assert worst <= max(expected_errors(CITY, plain, facts)[n] for n in ("mode", "zone"))


def test_a_law_with_other_returns_is_asked() -> None:
    """Shares are for the law of the noise: they are the best for it, and not those of another law."""
    target = {"zone": 3, "singleton": 1}
    for law in ("geometric", "rounded"):
        split = optimal_shares(CITY, list(CITY.features), Fraction(1), target, DemandFacts(law=law))
        stated = specialist_ratios(CITY, split, target, DemandFacts(law=law))
        assert stated.worst / stated.bound < 1.05


def test_a_mechanism_says_how_its_shares_stand() -> None:
    """Target, worst ratio and bound, in words; for budgets by position there is nothing to compare with."""
    said = " ".join(cbdp.ConstraintBased(CITY, 1, budget="tables").remarks())
    stated = BUDGETS.get("tables").specialist_ratios(_asked(CITY))
    assert stated is not None
    assert f"is {stated.worst:.2f} times what it would be if all of ε went to that table alone." in said
    assert f"No shares bring it below {stated.bound:.2f}." in said
    assert "total 1, time 1, zone 1, mode 1" in said
    assert "that table alone" not in " ".join(cbdp.ConstraintBased(CITY, 1, budget="uniform").remarks())


def test_features_without_leaves_or_tables_are_shared_too() -> None:
    """Tables alone are a target of their own; a single feature gets everything."""
    for name in SERVED:
        assert allocate(CITY, 3, name, ["singleton"]) == {"singleton": 3}
        split = allocate(CITY, 1, name, ["time", "zone"])
        assert sum(split.values()) == 1
        assert min(split.values()) > Fraction(1, 3)
    every = FeatureDag(CITY.universe, [Feature("time", by="time")])
    assert sum(allocate(every, Fraction(1, 3), "balanced").values()) == Fraction(1, 3)
