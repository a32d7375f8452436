"""What all releases cost one person: the statement, against the sum by hand and the accountant."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction

import pytest

from cbdp.ledger import Amount, Charge, ChargeScope
from cbdp.ledger.windows import PrivacyStatement, privacy_statement
from cbdp.privacy.accounting import epsilon_of

DAY = dt.timedelta(days=1)
FIRST = dt.date(2026, 1, 1)


def daily(days: int, amount: Amount, per: str = "day") -> list[Charge]:
    return [
        Charge(
            f"{n}", "r", amount, "", "", "", ChargeScope("person", per, 4, FIRST + n * DAY, FIRST + n * DAY)
        )
        for n in range(days)
    ]


def pure(found: PrivacyStatement) -> list[float]:
    return [float(w.amount.value) for w in found.windows]


def test_a_year_of_daily_releases() -> None:
    """A day costs ε, a week 7 ε, a year 365 ε by the sum; far less by accounting, with a δ."""
    found = privacy_statement(daily(400, Amount.charge("0.1")))
    assert pure(found) == [0.1, 0.7, 3.0, 36.5, 40.0]
    assert found.window(1).pure == Fraction(1, 10)
    year = found.window(365)
    assert year.epsilon == pytest.approx(float(epsilon_of(Fraction(365, 200), Fraction(1, 10**6))))
    assert year.epsilon < 12
    assert year.delta == Fraction(1, 10**6)
    assert (found.window(1).epsilon, found.window(1).delta) == (
        0.1,
        0,
    )  # the sum is better where little is added


def test_a_rho_ledger_is_stated_in_rho_and_by_accounting() -> None:
    """There is no pure ε."""
    found = privacy_statement(daily(30, Amount.charge_rho("0.01")), delta="1e-9")
    assert pure(found) == [0.01, 0.07, 0.3, 0.3, 0.3]
    assert found.window(30).pure is None
    assert found.window(30).epsilon == pytest.approx(float(epsilon_of(Fraction(3, 10), Fraction(1, 10**9))))


def test_a_month_in_one_release_costs_a_person_of_days_by_group_privacy() -> None:
    """Thirty days of a unit per day in one release: thirty times ε, nine hundred times ρ; per release once."""
    span = (FIRST, FIRST + 29 * DAY)
    for per, times in (("day", [1, 7, 30, 30, 30]), ("release", [1] * 5)):
        covers = ChargeScope("person", per, 4, *span)
        for amount in (Amount.charge("0.5"), Amount.charge_rho("0.5")):
            found = privacy_statement([Charge("c", "r", amount, "", "", "", covers)])
            squared = amount.currency == "rho"
            assert pure(found) == [0.5 * (t * t if squared else t) for t in times]


def test_charges_that_say_too_little_are_told_of() -> None:
    """They count in every window, and a note says so."""
    bare = Charge("c", "r", Amount.charge(1), "", "")
    trips = Charge("t", "r", Amount.charge(1), "", "", "", ChargeScope("trip"))
    found = privacy_statement([bare, trips])
    assert pure(found)[:4] == [2, 8, 31, 366]
    assert found.window(None).amount.is_unlimited
    assert found.window(None).epsilon == math.inf
    assert [note.split(":")[0] for note in found.notes] == [
        "where the unit is a trip",
        "1 charges do not state their unit",
        "1 charges do not state their days",
    ]
    assert privacy_statement([]).window(365).epsilon == 0


def test_delta_adds_up() -> None:
    """δ of the charges comes on top of that of the accounting."""
    covers = ChargeScope("person", "release", 4, FIRST, FIRST)
    charges = [Charge(str(n), "r", Amount.charge("0.1", "1e-8"), "", "", "", covers) for n in range(50)]
    found = privacy_statement(charges, delta="1e-6").window(1)
    assert found.amount == Amount(5 * 10**9, 50 * 10**10)
    assert found.epsilon < 5
    assert found.delta == Fraction(1, 10**6) + Fraction(50, 10**8)


def test_a_rho_that_promises_nothing_leaves_the_sum_of_epsilon() -> None:
    """Four years in one release, a trip as the unit: ρ is beyond any statement, and pure ε is still ε. In ρ alone there is no limit."""
    covers = ChargeScope("trip", first=FIRST, last=FIRST + 1460 * DAY)
    found = privacy_statement([Charge("c", "r", Amount.charge(1), "", "", "", covers)]).window(None)
    assert (found.epsilon, found.delta, found.shown) == (1461, 0, "1461")
    alone = privacy_statement([Charge("c", "r", Amount.charge_rho(1), "", "", "", covers)]).window(None)
    assert alone.epsilon == math.inf
    assert alone.shown == "unlimited"


def test_delta_of_running_totals_is_that_of_a_group() -> None:
    """What a strategy says of several days is of noise without δ. A charge with one costs what its group of days costs."""
    week = ChargeScope("person", "day", 4, FIRST, FIRST + 6 * DAY, strategy="binary tree", periods=7)
    amount = Amount.charge("0.5", "1e-8")
    found = privacy_statement([Charge("c", "r", amount, "", "", "", week)]).window(7).amount
    assert found.epsilon == Fraction(7, 2)
    assert float(found.delta) == pytest.approx(7 * math.exp(6 * 0.5) * 1e-8)
