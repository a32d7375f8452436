"""What sums over the releases of a span cost a person: exactly, from the strategy and from how many periods of the unit lie in each release.

A person with m_t periods of the unit in release t changes that release's table by a length of m_t · l2 at most, and sum i by Σ_t C_it m_t l2. So
all sums together cost at most `amount` · Σ_i (Σ_t C_it m_t)² / max_t Σ_i C_it² in ρ, and the same without squares in ε: `amount` is the case of one
period in one release. Releases of days have m_t = 1. Where the calendar has gaps, which releases a window touches is not known
here: then each of them counts like the fullest, which is never too little.
"""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from functools import lru_cache

import numpy as np

from cbdp.privacy.ledger.amounts import Currency
from cbdp.privacy.ledger.covers import PERSON, Covers
from cbdp.privacy.running import STRATEGIES, Strategy

WEEK = 7


def month_of(day: int) -> int:
    """The number of the month that a day is in; days are counted as `date.toordinal` does."""
    date = dt.date.fromordinal(day)
    return 12 * date.year + date.month


def release_of(covers: Covers, day: int) -> int:
    """The number of the release of a calendar that holds a day: weeks are counted from the first day of the span on, months as in the year."""
    assert covers.first is not None
    if covers.calendar == "monthly":
        return month_of(day)
    return (day - covers.first.toordinal()) // (WEEK if covers.calendar == "weekly" else 1)


def steps_in(covers: Covers, first: int, last: int, *, strict: bool = False) -> tuple[int, ...]:
    """How many periods of the unit lie in each release that days from a first to a last touch; strictly, those that are cut count twice.

    >>> weeks = Covers("person", "day", 2, dt.date(2026, 3, 2), dt.date(2026, 3, 22), strategy="square root", periods=3, calendar="weekly")
    >>> monday = weeks.first.toordinal()
    >>> steps_in(weeks, monday + 5, monday + 16)
    (2, 7, 3)
    """
    releases = range(release_of(covers, first), release_of(covers, last) + 1)
    if covers.unit != PERSON or covers.per == "day":
        held = dict.fromkeys(releases, 0)
        for day in range(first, last + 1):
            held[release_of(covers, day)] += 1
        found = [*held.values()]
    else:  # a release is one period of the unit
        found = [1] * len(releases)
        for end, beyond in ((0, first - 1), (-1, last + 1)):
            if strict and _inside(covers, beyond) and release_of(covers, beyond) == releases[end]:
                found[end] = 2
    if _has_gaps(covers) or len(found) > covers.periods:
        return (max(found),) * min(len(found), covers.periods)
    return tuple(found)


def _inside(covers: Covers, day: int) -> bool:
    assert covers.first is not None
    assert covers.last is not None
    return covers.first.toordinal() <= day <= covers.last.toordinal()


def _has_gaps(covers: Covers) -> bool:
    """Whether the span has fewer releases than the calendar has periods between its first and its last day."""
    assert covers.first is not None
    assert covers.last is not None
    first, last = (release_of(covers, day.toordinal()) for day in (covers.first, covers.last))
    return last - first + 1 != covers.periods


def price_of_steps(strategy: str, periods: int, steps: tuple[int, ...], currency: Currency) -> Fraction:
    """How many times the price of one period so many periods in neighbouring releases cost at most, wherever in the span these are.

    Proof: docs/proofs/continual.md.

    >>> float(price_of_steps("each alone", 52, (7,), "rho")), float(price_of_steps("each alone", 52, (3, 4), "rho"))
    (49.0, 25.0)
    """
    if max(steps) == 1:
        return days_of_sums(strategy, periods, len(steps), currency)
    return _price(strategy, periods, steps, currency)


@lru_cache(maxsize=4096)
def _price(strategy: str, periods: int, steps: tuple[int, ...], currency: Currency) -> Fraction:
    made, power = _strategy(strategy, periods), 2 if currency == "rho" else 1
    starts = range(1 if _shifted(made) else periods - len(steps) + 1)
    weights = np.array(steps)
    dearest = max(int(((made.rows[:, j : j + len(steps)] @ weights) ** power).sum()) for j in starts)
    return Fraction(dearest, _prices(strategy, periods, currency)[0])


def _shifted(made: Strategy) -> bool:
    """Whether each column is the one before it, a row later: then later windows only lose rows, and the first one is the dearest."""
    rows = made.rows
    return rows.shape[0] == rows.shape[1] and bool((rows[1:, 1:] == rows[:-1, :-1]).all())


def days_of_sums(strategy: str, periods: int, days: int, currency: Currency) -> Fraction:
    """How many times the price of one day so many days in a row cost at most, where sums over days are measured.

    Proof: docs/proofs/continual.md.

    >>> [round(float(days_of_sums("square root", 365, days, "rho")), 2) for days in (1, 2, 7)]
    [1.0, 3.57, 36.25]
    """
    prices = _prices(strategy, periods, currency)
    return Fraction(prices[min(days, periods) - 1], prices[0])


@lru_cache(maxsize=16)
def _strategy(name: str, periods: int) -> Strategy:
    return STRATEGIES[name](periods)


@lru_cache(maxsize=16)
def _prices(strategy: str, periods: int, currency: Currency) -> tuple[int, ...]:
    """What 1, 2, … days in a row cost, in units of the noise: `Strategy.change` of all windows at once, from sums of products of columns."""
    made = _strategy(strategy, periods)
    if currency == "rho":
        products = np.pad(made.rows.T @ made.rows, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
        end = np.diag(products)
    else:
        products = np.zeros((periods + 1, periods + 1), dtype=np.int64)
        end = np.pad(made.rows.sum(axis=0), (1, 0)).cumsum()
    found = []
    for days in range(1, periods + 1):
        both = np.diag(products, days) + np.diag(products, -days) if currency == "rho" else 2 * end[:-days]
        found.append(int((end[days:] + end[:-days] - both).max()))
    return tuple(found)
