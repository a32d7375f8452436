"""Budgets are exact fractions, and compositions say why they cost what they cost."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbdp.errors import BudgetError, InputError
from cbdp.privacy.budget import split
from cbdp.privacy.composition import Parallel, Sequential, Spend
from cbdp.privacy.numbers import exact, positive, probability
from cbdp.privacy.unit import Person, Trip, unit_of

LEVELS = ["total", "time", "zone", "singleton"]


def test_a_float_is_the_number_a_person_wrote() -> None:
    """Ten tenths are one, which is not so for floats."""
    assert sum([exact(0.1)] * 10) == 1
    assert sum([0.1] * 10) != 1
    assert exact("0.05") == Fraction(1, 20)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "much", None, True, "1/0"])
def test_what_is_not_a_number_is_refused(bad: object) -> None:
    """One clear error names the value."""
    with pytest.raises(InputError, match="epsilon is"):
        exact(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0, -1, "-0.5"])
def test_epsilon_is_above_zero(bad: object) -> None:
    """Nothing is private at ε ≤ 0."""
    with pytest.raises(InputError, match="must be above 0"):
        positive(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [1, -0.1, 2])
def test_delta_is_a_probability_below_one(bad: float) -> None:
    """At δ = 1 anything goes."""
    with pytest.raises(InputError, match="below 1"):
        probability(bad)


@given(
    st.fractions(min_value="1/1000", max_value=100),
    st.integers(1, 12),
    st.sampled_from(["uniform", "geometric"]),
)
def test_shares_add_up_to_epsilon_exactly(epsilon: Fraction, levels: int, rule: str) -> None:
    """No rounding is left over, and finer levels never get less."""
    shares = split([str(i) for i in range(levels)], epsilon, rule)
    assert sum(shares.values()) == epsilon
    assert list(shares.values()) == sorted(shares.values())


def test_geometric_ratio_is_the_cube_root_of_two() -> None:
    """Cormode's allocation: three levels further down, twice the budget."""
    shares = split(LEVELS, Fraction(1), "geometric")
    assert float(shares["singleton"] / shares["total"]) == pytest.approx(2, rel=1e-5)


def test_a_mapping_must_sum_to_epsilon() -> None:
    """Too much is a budget error, too little and strangers are input errors."""
    fits = {"total": 0.1, "time": 0.2, "zone": 0.3, "singleton": 0.4}
    assert sum(split(LEVELS, Fraction(1), fits).values()) == 1
    with pytest.raises(BudgetError, match="more than epsilon"):
        split(LEVELS, Fraction(1), {**fits, "zone": "0.30000000001"})
    with pytest.raises(InputError, match="less than epsilon"):
        split(LEVELS, Fraction(1), {**fits, "zone": 0.2})
    with pytest.raises(InputError, match="not measured"):
        split(LEVELS, Fraction(1), {**fits, "mode": 0.2})
    with pytest.raises(InputError, match="no budget for 'zone'"):
        split(LEVELS, Fraction(1), {"total": 0.5, "time": 0.25, "singleton": 0.25})
    with pytest.raises(InputError, match="unknown budget 'fair'"):
        split(LEVELS, Fraction(1), "fair")


def test_compositions_print_their_proof() -> None:
    """Answers about the same data add up, disjoint parts do not."""
    five = Sequential(tuple(Spend(f"f{i}", Fraction(1, 5)) for i in range(5)), "features")
    days = Parallel((five,) * 14, "days")
    assert str(days) == "5 features × 1/5, same data: 1; 14 days disjoint: 1"
    assert (days.epsilon, days.delta) == (1, 0)


def test_opal_composition_is_the_published_one() -> None:
    """Six tables with ε 1, 1, 1, 1, 2, 2 and δ 1/8,000,000 each cost 8 and 6/8,000,000; 56 parts are disjoint."""
    tables = tuple(
        Spend(f"table {j}", Fraction(e), Fraction(1, 8_000_000)) for j, e in enumerate([1, 1, 1, 1, 2, 2])
    )
    whole = Parallel((Sequential(tables, "tables"),) * 56, "day × mode parts")
    assert (whole.epsilon, whole.delta) == (8, Fraction(6, 8_000_000))
    assert str(whole).endswith("56 day × mode parts disjoint: (8, δ 3/4000000)")


def test_sensitivity_follows_from_the_unit() -> None:
    """One trip added moves a partition's counts by 1, replaced by 2, a person with m trips by m."""
    assert [Trip().sensitivity, Trip("replace").sensitivity, Person("card", 4).sensitivity] == [1, 2, 4]
    assert unit_of("trip") == Trip()
    assert unit_of({"person": "card", "max_trips": 3}) == Person("card", 3)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True])
def test_a_person_makes_at_least_one_trip(bad: object) -> None:
    """m < 1 protects nobody, and a fraction of a trip is none."""
    with pytest.raises(InputError, match="max_trips"):
        Person("card", bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", ["household", {"person": "card"}, 3])
def test_unknown_units_are_refused(bad: object) -> None:
    """The message lists what there is."""
    with pytest.raises(InputError, match="unknown unit"):
        unit_of(bad)
