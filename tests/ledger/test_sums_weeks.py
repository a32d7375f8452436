"""Sums over weekly and monthly releases: what a person pays in any window of days, against everybody there can be in two weeks."""

from __future__ import annotations

import datetime as dt
import itertools
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from cbdp.errors import InputError
from cbdp.ledger import Amount, Charge, ChargeScope
from cbdp.ledger.charges import NANO_UNITS
from cbdp.ledger.windows import cost_in_days, relative_cost_of_steps, steps_touched, total_cost, window_sums
from cbdp.measuring.answers import measure_sums
from cbdp.privacy.continual import STRATEGIES
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import PrivacyMeasure, noise_distribution
from cbdp.privacy.unit import Person, sensitivity

MONDAY = dt.date(2026, 3, 2)
DAY = dt.timedelta(days=1)
SCALE = 50
LAWS: list[tuple[str, PrivacyMeasure]] = [("gaussian", "rho"), ("geometric", "epsilon")]


def spanning(
    unit: Person, weeks: int, strategy: str, law: str, currency: PrivacyMeasure, **more: object
) -> Charge:
    """A charge for so many weekly releases, at the price of what one period of the unit changes."""
    one = STRATEGIES[strategy](weeks).change(sensitivity(unit))
    price = Fraction(noise_distribution(law, Fraction(SCALE)).cost(one))
    amount = Amount.charge_rho(price) if currency == "rho" else Amount.charge(price)
    covers = ChargeScope.of_releases(unit, MONDAY, MONDAY + (7 * weeks - 1) * DAY, "weekly")
    covers = replace(covers, strategy=strategy, periods=weeks, **more)
    return Charge("c", "r", amount, "running totals", "", "", covers)


@cache
def answers(strategy: str, tables: tuple[tuple[int, ...], ...], law: str) -> np.ndarray:
    """All sums through the real measurement, from one seed: two of them differ by what the data differ."""
    entropy, sums = InsecureSeededEntropy(1), STRATEGIES[strategy](len(tables))
    every = [np.array(table, dtype=np.int64) + 7 for table in tables]
    drawn = [
        measure_sums(sums, every[: n + 1], noise_distribution(law, Fraction(SCALE)), entropy)
        for n in range(len(every))
    ]
    return np.concatenate(drawn)


def cost(strategy: str, law: str, with_them: np.ndarray, without: np.ndarray) -> Fraction:
    """ρ or ε of the very change that a person makes to all answers."""
    held = [tuple(map(tuple, tables.tolist())) for tables in (with_them, without)]
    change = answers(strategy, held[0], law) - answers(strategy, held[1], law)
    if law == "gaussian":
        return Fraction(int((change**2).sum()), 2 * SCALE**2)
    return Fraction(int(np.abs(change).sum()), SCALE)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("law", "currency"), LAWS)
def test_days_of_a_person_in_weekly_releases(strategy: str, law: str, currency: PrivacyMeasure) -> None:
    """All 2¹⁴ ways to travel once a day or not in two weeks: no window costs more than is stated, and every length reaches it."""
    charge = spanning(Person("card", 1, "day"), 2, strategy, law, currency)
    known = {
        (a, b): cost(strategy, law, np.array([[a], [b]]), np.zeros((2, 1), int))
        for a, b in itertools.product(range(8), repeat=2)
    }
    worst = dict.fromkeys(range(1, 15), Fraction(0))
    first = MONDAY.toordinal()
    stated = {
        (a, b): cost_in_days(charge, first + a, first + b).nano for a in range(14) for b in range(a, 14)
    }
    for days in itertools.product((0, 1), repeat=14):
        there = [n for n, one in enumerate(days) if one]
        if there:
            price = known[sum(days[:7]), sum(days[7:])]
            assert price * NANO_UNITS <= stated[there[0], there[-1]]
            worst[there[-1] - there[0] + 1] = max(worst[there[-1] - there[0] + 1], price)
    for length in worst:
        said = window_sums([charge], length).worst()[0].nano
        reached = max(price for other, price in worst.items() if other <= length)
        assert said - 14**2 - 1 <= reached * NANO_UNITS <= said


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("law", "currency"), LAWS)
@pytest.mark.parametrize("per", ["week", "release"])
def test_weeks_of_a_person_in_weekly_releases(
    strategy: str, law: str, currency: PrivacyMeasure, per: str
) -> None:
    """A unit of a week, two trips in two counts, three weeks: a whole week costs one period; one that is cut may change from any two trips to others."""
    charge = spanning(Person("card", 2, per), 3, strategy, law, currency)
    week = [np.array(v) for v in itertools.product(range(3), repeat=2) if sum(v) <= 2]
    nobody, first = np.zeros((3, 2), int), MONDAY.toordinal()
    for touched in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)):
        begin, end = first + 7 * touched[0], first + 7 * touched[-1] + 6
        removed, changed = [], []
        for trips in itertools.product(week, repeat=len(touched)):
            there = nobody.copy()
            there[list(touched)] = trips
            removed.append(cost(strategy, law, there, nobody))
            for other in week:  # the first week is cut: without the window's trips the bound keeps others
                rest = nobody.copy()
                rest[touched[0]] = other
                changed.append(cost(strategy, law, there, rest))
        said = cost_in_days(charge, begin, end).nano
        assert max(removed) * NANO_UNITS <= said
        if touched[0] == 0:  # which is as dear as any other place
            assert said <= max(removed) * NANO_UNITS + 14**2
        assert max(changed) * NANO_UNITS <= cost_in_days(charge, begin + 1, end, strict=True).nano
    assert total_cost([charge]) == cost_in_days(charge, first, first + 20)


def test_periods_of_the_unit_in_each_release() -> None:
    """Days are counted, weeks and releases are one each; where the calendar has gaps, every release counts like the fullest."""
    weeks = spanning(Person("card", 2, "day"), 4, "square root", "gaussian", "rho").covers
    assert weeks is not None
    first = MONDAY.toordinal()
    assert steps_touched(weeks, first + 2, first + 2) == (1,)
    assert steps_touched(weeks, first + 5, first + 22) == (2, 7, 7, 2)
    gaps = replace(weeks, periods=3)
    assert steps_touched(gaps, first + 5, first + 22) == (7, 7, 7)
    assert steps_touched(gaps, first + 5, first + 8) == (2, 2)
    whole = replace(weeks, per="release")
    assert steps_touched(whole, first + 5, first + 22) == (1, 1, 1, 1)
    assert steps_touched(whole, first + 5, first + 22, strict=True) == (2, 1, 1, 2)
    assert steps_touched(whole, first, first + 22, strict=True) == (1, 1, 1, 2)
    months = ChargeScope(
        "trip", first=dt.date(2026, 1, 1), last=dt.date(2026, 4, 30), strategy="square root", periods=4, calendar="monthly"
    )  # fmt: skip
    assert steps_touched(months, dt.date(2026, 1, 31).toordinal(), dt.date(2026, 4, 1).toordinal()) == (
        1,
        28,
        31,
        1,
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_dearest_place_in_a_span_is_found(strategy: str) -> None:
    """Every place of three neighbouring releases in nine, one by one."""
    rows, steps = STRATEGIES[strategy](9).rows, np.array([2, 7, 3])
    for currency, power in (("rho", 2), ("epsilon", 1)):
        one = max(int((rows[:, j] ** power).sum()) for j in range(9))
        naive = max(int(((rows[:, j : j + 3] @ steps) ** power).sum()) for j in range(7))
        assert relative_cost_of_steps(strategy, 9, (2, 7, 3), currency) == Fraction(naive, one)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"calendar": "yearly"},
        {"calendar": "weekly", "per": "month"},
        {"calendar": "monthly", "per": "week"},
        {"calendar": "weekly", "per": "week", "first": MONDAY + DAY},
        {"calendar": "weekly", "disjoint_periods": True},
        {"calendar": "weekly", "first": None, "last": None},
    ],
)
def test_what_no_calendar_has_is_refused(wrong: dict[str, object]) -> None:
    """Other calendars, units whose period lies in two releases, weeks that begin on a Tuesday, no days."""
    stated = {"unit": "person", "per": "day", "max_trips": 2, "first": MONDAY, "last": MONDAY + 13 * DAY}
    with pytest.raises(InputError):
        ChargeScope(**(stated | wrong))  # type: ignore[arg-type]
