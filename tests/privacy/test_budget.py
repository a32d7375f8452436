"""How ε is shared by name or as a mapping: exact fractions that add up."""

from __future__ import annotations

from fractions import Fraction

import pytest
from budget_cases import DAG
from hypothesis import given, settings
from hypothesis import strategies as st

import cbdp
from cbdp.errors import BudgetError, InputError
from cbdp.features import Feature, FeatureDag, Universe
from cbdp.privacy.budget import BUDGETS, allocate

CHAIN = FeatureDag(
    Universe(**{f"d{i}": [0, 1] for i in range(11)}),
    [Feature(f"f{i}", by=[f"d{j}" for j in range(i + 1)]) for i in range(10)],
)
FOUR = ["total", "f0", "f1", "singleton"]


@settings(deadline=None)
@given(
    st.fractions(min_value="1/1000", max_value=100),
    st.integers(1, 12),
    st.sampled_from(["uniform", "geometric", "leaves", "balanced", "tables"]),
)
def test_shares_add_up_to_epsilon_exactly(epsilon: Fraction, levels: int, rule: str) -> None:
    """No rounding is left over, and by position alone finer levels never get less."""
    found = allocate(CHAIN, epsilon, rule, [*CHAIN.features][:levels])
    assert sum(found.values()) == epsilon
    assert len(found) == levels
    if rule in ("uniform", "geometric"):
        assert list(found.values()) == sorted(found.values())


def test_geometric_ratio_is_the_cube_root_of_two() -> None:
    """Cormode's allocation: three levels further down, twice the budget."""
    found = allocate(CHAIN, 1, "geometric", FOUR)
    assert float(found["singleton"] / found["total"]) == pytest.approx(2, rel=1e-5)


def test_a_mapping_must_sum_to_epsilon() -> None:
    """Too much is a budget error, too little and strangers are input errors."""
    fits = {"total": 0.1, "f0": 0.2, "f1": 0.3, "singleton": 0.4}
    assert sum(allocate(CHAIN, 1, fits, FOUR).values()) == 1
    with pytest.raises(BudgetError, match="more than epsilon"):
        allocate(CHAIN, 1, {**fits, "f1": "0.30000000001"}, FOUR)
    with pytest.raises(InputError, match="less than epsilon"):
        allocate(CHAIN, 1, {**fits, "f1": 0.2}, FOUR)
    with pytest.raises(InputError, match="not measured"):
        allocate(CHAIN, 1, {**fits, "f7": 0.2}, FOUR)
    with pytest.raises(InputError, match="no budget for 'f1'"):
        allocate(CHAIN, 1, {"total": 0.5, "f0": 0.25, "singleton": 0.25}, FOUR)
    with pytest.raises(InputError, match="unknown budget 'fair'"):
        allocate(CHAIN, 1, "fair", FOUR)


def test_every_budget_is_a_part_that_says_what_it_is_for() -> None:
    """Each is known by its name, has a line about it, and shares exactly ε among measured features, coarse ones first."""
    assert BUDGETS.names()[:6] == ("balanced", "leaves", "tables", "uniform", "geometric", "optimal")
    for name in BUDGETS.names():
        budget = BUDGETS.get(name)
        assert budget.name == name
        assert budget.about
        target = {"zone": 1} if budget.needs_target else None
        found = allocate(DAG, Fraction(1, 7), budget, target=target)
        assert list(found) == sorted(DAG.features, key=DAG.size)
        assert sum(found.values()) == Fraction(1, 7)
        assert found == allocate(DAG, Fraction(1, 7), name, target=target)


@pytest.mark.parametrize("name", ["balanced", "leaves", "tables", "uniform", "geometric"])
def test_proportional_budgets_are(name: str) -> None:
    """A budget that says so gives each feature the same part of any ε; the one that does not gives leaves all further ε."""
    budget = BUDGETS.get(name)
    one, four = (allocate(DAG, e, budget, enough=Fraction(1, 50)) for e in (1, 4))
    assert budget.proportional == ({n: 4 * e for n, e in one.items()} == four)


def test_what_cannot_be_shared_is_refused() -> None:
    """A feature listed twice, one that is not there, none at all."""
    for only, says in (
        (["zone", "zone"], "listed twice"),
        (["zones"], "unknown feature"),
        ([], "at least one"),
    ):
        with pytest.raises(InputError, match=says):
            allocate(DAG, 1, "uniform", only)


def test_tables_get_no_more_than_enough_where_leaves_matter() -> None:
    """From ε = 1/5 on the tables share 1/50 in all, for persons as many times that as they may have trips."""
    for unit, tables in ((cbdp.Trip(), "1/50"), (cbdp.Person("card", 3), "3/50")):
        cost = cbdp.ConstraintBased(DAG, 1, unit, budget="leaves").claim().cost
        by = {part.what: part.epsilon for part in cost.parts}
        assert by["singleton"] == 1 - Fraction(tables)
        assert cost.epsilon == 1


def test_enough_is_for_the_posterior_alone() -> None:
    """Where nothing learns the rest from the leaves, tables keep a tenth: projection, other mechanisms, bare measuring."""
    made = cbdp.ConstraintBased(DAG, 1, budget="leaves", estimator="projection")
    assert {p.what: p.epsilon for p in made.claim().cost.parts}["singleton"] == Fraction(9, 10)
    assert allocate(DAG, 1, "leaves")["singleton"] == Fraction(9, 10)
