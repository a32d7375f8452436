"""What charges cost one person in windows of days: against a naive evaluation, and by hand."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbdp.ledger import Amount, Charge, ChargeScope
from cbdp.ledger.windows import periods_at_most, periods_touched, person_cost, total_cost, window_sums
from cbdp.privacy.noise import PrivacyMeasure

DAY = dt.timedelta(days=1)
BASE = dt.date(2026, 1, 28)  # near the end of a month and of a week


def charged(
    nano: int, covers: ChargeScope | None, currency: PrivacyMeasure = "epsilon", atto: int = 0
) -> Charge:
    return Charge("c", "r", Amount(nano, atto, currency), "", "", "", covers)


def person(first: int | None, last: int | None = None, per: str = "day", **more: bool) -> ChargeScope:
    days = [None if n is None else BASE + n * DAY for n in (first, first if last is None else last)]
    return ChargeScope("person", per, 2, *days, **more)  # type: ignore[arg-type]


def naive_cost(charge: Charge, start: dt.date, days: int, *, strict: bool = False) -> int:
    """Day by day, by the words of the rule; strictly, a period counts twice if days of the charge outside the window are in it."""
    covers = charge.covers
    window = {start + n * DAY for n in range(days)}
    if covers is None:
        return charge.amount.nano * (4 if charge.amount.currency == "rho" else 2) ** strict
    if covers.first is None or covers.last is None:
        raise NotImplementedError
    span = {covers.first + n * DAY for n in range((covers.last - covers.first).days + 1)}

    def period(day: dt.date) -> object:
        if covers.unit != "person" or covers.per == "day":
            return day
        names = {"week": day.isocalendar()[:2], "month": (day.year, day.month), "release": 0}
        return names[covers.per]

    inside, outside = {period(day) for day in window & span}, {period(day) for day in span - window}
    steps = [2 if strict and period in outside else 1 for period in inside]
    if charge.amount.currency == "epsilon":
        return charge.amount.nano * sum(steps)
    # steps of one period are in the same counts, those of several periods only where tables do not tell them apart
    return charge.amount.nano * (sum(n**2 for n in steps) if covers.disjoint_periods else sum(steps) ** 2)


units = st.one_of(
    st.tuples(st.just("trip"), st.just("release"), st.just(0)),
    st.tuples(st.just("person"), st.sampled_from(["release", "day", "week", "month"]), st.just(3)),
)


@st.composite
def charges(draw: st.DrawFn) -> list[Charge]:
    currency: PrivacyMeasure = draw(st.sampled_from(["epsilon", "rho"]))
    found = []
    for _ in range(draw(st.integers(1, 6))):
        unit, per, most = draw(units)
        first = BASE + draw(st.integers(0, 50)) * DAY
        last = first + draw(st.sampled_from([0, 0, 1, 6, 27, 30])) * DAY
        covers = ChargeScope(unit, per, most, first, last, draw(st.booleans()))
        found.append(charged(draw(st.integers(1, 10**9)), covers, currency))
    return found


@settings(max_examples=150, deadline=None)
@given(charges=charges(), days=st.sampled_from([1, 2, 7, 30]), stated=st.booleans(), strict=st.booleans())
def test_the_worst_window_is_that_of_a_naive_evaluation(
    charges: list[Charge], days: int, stated: bool, strict: bool
) -> None:
    """Every window there is, every charge in it, day by day; a charge that states nothing is in each of them."""
    if not stated:
        charges = [*charges, charged(5, None, charges[0].amount.currency)]
    starts = [BASE + n * DAY for n in range(-days - 2, 90)]
    naive = {start: sum(naive_cost(c, start, days, strict=strict) for c in charges) for start in starts}
    found, start = window_sums(charges, days, strict=strict).worst()
    assert found.nano == max(naive.values())
    assert start is not None
    assert naive[start] == found.nano
    assert all(naive[later] < found.nano for later in starts if later > start)
    one, *others = charges if charges[0].covers else charges[1:]
    sums = window_sums(others, days, strict=strict)
    touching = [s for s in starts if naive_cost(one, s, days)]
    assert sums.worst_with(one)[0] == max(naive[s] for s in touching)


@settings(max_examples=60, deadline=None)
@given(charges=charges())
def test_since_the_start_is_one_window_over_everything(charges: list[Charge]) -> None:
    """As a window that is longer than all spans together."""
    assert total_cost(charges).nano == sum(naive_cost(c, BASE, 400) for c in charges)


@pytest.mark.parametrize(("per", "days", "most"), [("day", 7, 7), ("week", 1, 1), ("week", 7, 2), ("week", 8, 2), ("week", 9, 3), ("month", 30, 3), ("release", 365, 1)])  # fmt: skip
def test_the_most_periods_that_a_window_can_touch(per: str, days: int, most: int) -> None:
    """For charges that do not state their days: as many as in the worst of all windows of four years."""
    covers = person(None, per=per)
    assert periods_at_most(covers, days) == most
    first = dt.date(2025, 1, 1).toordinal()
    assert most == max(periods_touched(covers, s, s + days - 1) for s in range(first, first + 1461))


def test_a_person_in_several_periods_costs_more_by_group_privacy() -> None:
    """Three days of one release: 3 ε, 9 ρ, or 3 ρ where every table tells the days apart; δ grows by m·exp((m − 1)·ε)."""
    assert person_cost(charged(10, person(0, 2)), 3) == Amount(30)
    assert person_cost(charged(10, person(0, 2), "rho"), 3) == Amount(90, 0, "rho")
    assert person_cost(charged(10, person(0, 2, disjoint_periods=True), "rho"), 3) == Amount(30, 0, "rho")
    found = person_cost(charged(10**9, person(0, 2), atto=10**6), 3)
    assert found.atto == pytest.approx(3 * 7.389056 * 10**6, rel=1e-6)
    assert found.delta > Fraction(3 * 7_389_056_098, 10**21)
    assert person_cost(charged(200 * 10**9, person(0, 2), atto=10**6), 3).delta == 1


def test_a_charge_without_days_counts_in_every_window() -> None:
    """And one with a period in as many of them as the window can touch; since the start that is not known."""
    loose = charged(7, person(None))
    assert [window_sums([loose], days).worst() for days in (1, 7)] == [(Amount(7), None), (Amount(49), None)]
    whole = replace(loose, covers=person(None, per="release"))
    assert total_cost([whole, whole]) == Amount(14)
    assert total_cost([loose, whole]).is_unlimited
