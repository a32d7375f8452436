"""Compositions say why they cost what they cost."""

from __future__ import annotations

from fractions import Fraction

import pytest

from cbdp.errors import BudgetError
from cbdp.privacy.accounting import (
    DPCost,
    EpsilonDeltaStatement,
    Parallel,
    PrivacyGuarantee,
    Sequential,
    ZCDPCost,
    composable,
    cost_amount,
    epsilon_of,
    single_costs,
)
from cbdp.privacy.unit import Trip


def test_compositions_print_their_proof() -> None:
    """Answers about the same data add up, disjoint parts do not."""
    five = Sequential(tuple(DPCost(f"f{i}", Fraction(1, 5)) for i in range(5)), "features")
    days = Parallel((five,) * 14, "days")
    assert str(days) == "5 features × 1/5, same data: 1; 14 days disjoint: 1"
    assert (days.epsilon, days.delta) == (1, 0)


def test_opal_composition_is_the_published_one() -> None:
    """Six tables with ε 1, 1, 1, 1, 2, 2 and δ 1/8,000,000 each cost 8 and 6/8,000,000; 56 parts are disjoint."""
    tables = tuple(
        DPCost(f"table {j}", Fraction(e), Fraction(1, 8_000_000)) for j, e in enumerate([1, 1, 1, 1, 2, 2])
    )
    whole = Parallel((Sequential(tables, "tables"),) * 56, "day × mode parts")
    assert (whole.epsilon, whole.delta) == (8, Fraction(6, 8_000_000))
    assert str(whole).endswith("56 day × mode parts disjoint: (8, δ 3/4000000)")


def test_the_answers_of_a_composition_are_listed() -> None:
    """Every answer once, however deep it lies."""
    one, two = DPCost("a", Fraction(1)), DPCost("b", Fraction(2), Fraction(1, 10))
    cost = Parallel((Sequential((one, two)), Sequential((two,)), one))
    assert list(single_costs(cost)) == [one, two, two, one]
    assert (cost.epsilon, cost.delta) == (3, Fraction(1, 10))


def test_a_claim_says_what_it_holds_for() -> None:
    """Pure ε, ε with δ, or nothing at all and why."""
    pure, loose = DPCost("a", Fraction(1)), DPCost("a", Fraction(1), Fraction(1, 100))
    assert str(PrivacyGuarantee(Trip(), pure)).startswith("ε-DP for")
    assert str(PrivacyGuarantee(Trip(), loose)).startswith("(ε, δ)-DP for")
    assert str(PrivacyGuarantee(Trip(), pure, False, "zeros are skipped")).endswith(
        "for any ε: zeros are skipped"
    )


def test_rho_adds_up_and_is_stated_once() -> None:
    """Answers in ρ add up; disjoint parts do not; a pure ε among them enters as ε²/2; stated, it has an ε at its δ."""
    tables = Sequential(tuple(ZCDPCost(n, Fraction(1, 10)) for n in "abcde"), "features")
    assert (tables.rho, tables.currency, tables.delta) == (Fraction(1, 2), "rho", 0)
    assert Parallel((tables, ZCDPCost("f", Fraction(2)))).rho == 2
    mixed = Sequential((tables, DPCost("choice", Fraction(1, 5))))
    assert (mixed.rho, mixed.currency) == (Fraction(1, 2) + Fraction(1, 50), "rho")
    stated = EpsilonDeltaStatement(tables, Fraction(1, 10**6))
    assert (stated.rho, stated.epsilon, stated.delta) == (
        Fraction(1, 2),
        epsilon_of("1/2", 1e-6),
        Fraction(1, 10**6),
    )
    assert [p.what for p in single_costs(stated)] == list("abcde")
    assert (cost_amount(stated), cost_amount(DPCost("a", Fraction(3)))) == (Fraction(1, 2), 3)
    assert composable(stated) is tables
    assert composable(tables) is tables
    assert str(PrivacyGuarantee(Trip(), stated)).startswith("ρ-zCDP for one trip")


def test_rho_has_no_epsilon_of_its_own() -> None:
    """Without a δ there is none, and an (ε, δ) has no ρ: both are refused, with what to do."""
    for cost in (
        ZCDPCost("a", Fraction(1)),
        Sequential((ZCDPCost("a", Fraction(1)),)),
        Parallel((ZCDPCost("a", Fraction(1)),)),
    ):
        with pytest.raises(
            BudgetError, match=r"ρ = 1 has an ε only together with a δ: state it as EpsilonDeltaStatement"
        ):
            _ = cost.epsilon
    with pytest.raises(BudgetError, match="has no ρ: only a pure ε has"):
        _ = DPCost("a", Fraction(1), Fraction(1, 100)).rho
