"""Compositions say why they cost what they cost."""

from __future__ import annotations

from fractions import Fraction

from cbdp.privacy.claim import Claim
from cbdp.privacy.composition import Parallel, Sequential, Spend, spends_of
from cbdp.privacy.unit import Trip


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


def test_the_answers_of_a_composition_are_listed() -> None:
    """Every answer once, however deep it lies."""
    one, two = Spend("a", Fraction(1)), Spend("b", Fraction(2), Fraction(1, 10))
    cost = Parallel((Sequential((one, two)), Sequential((two,)), one))
    assert list(spends_of(cost)) == [one, two, two, one]
    assert (cost.epsilon, cost.delta) == (3, Fraction(1, 10))


def test_a_claim_says_what_it_holds_for() -> None:
    """Pure ε, ε with δ, or nothing at all and why."""
    pure, loose = Spend("a", Fraction(1)), Spend("a", Fraction(1), Fraction(1, 100))
    assert str(Claim(Trip(), pure)).startswith("ε-DP for")
    assert str(Claim(Trip(), loose)).startswith("(ε, δ)-DP for")
    assert str(Claim(Trip(), pure, False, "zeros are skipped")).endswith("for any ε: zeros are skipped")
