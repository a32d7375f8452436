"""When trips were made: by their dates, or as the publisher says; and when nobody may speak of "the day"."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cbdp
from cbdp.release import About, Dates
from cbdp.release.release import Release
from cbdp.release.views import dates_of, is_single_day, period_of

TWO = [dt.date(2026, 3, 4), dt.date(2026, 3, 2)]
ONE_DAY, MONTH = (Dates(dt.date(2026, 3, 1), dt.date(2026, 3, n)) for n in (1, 31))


def _release(about: About | None = None, **more: Any) -> Release:
    universe = cbdp.Universe(origin=["20260302", "20260303"], **more)
    counts = np.ones(universe.size, dtype=np.int64)
    return replace(cbdp.ConstraintBased(cbdp.FeatureDag(universe, []), 1).simulate(counts, 1), about=about)


@pytest.mark.parametrize("days", [TWO, [day.isoformat() for day in TWO]])
def test_dates_are_those_of_a_dimension(days: list[Any]) -> None:
    """As dates or as text, in any order and under any name; ids of stops that look like numbers are none."""
    assert dates_of(_release(date=days).features.universe) == Dates(TWO[1], TWO[0])
    assert period_of(_release(date=days)) == "2–4 March 2026"
    assert period_of(_release(About("a title"), date=days)) == "2–4 March 2026"
    assert dates_of(_release(day=["weekday", "sunday"]).features.universe) is None
    assert period_of(_release()) is None


def test_what_the_publisher_says_comes_first() -> None:
    """In words, or by days."""
    assert period_of(_release(About(period="spring term"), day=TWO)) == "spring term"
    assert period_of(_release(About(period=MONTH))) == "March 2026"


@pytest.mark.parametrize(
    ("about", "more", "one"),
    [
        (None, {}, True),  # nothing is said
        (About("a title"), {}, True),
        (About(period=ONE_DAY), {}, True),
        (None, {"day": TWO[:1]}, True),
        (About(period=MONTH), {}, False),
        (About(period="March 2026"), {}, False),
        (None, {"day": TWO}, False),
        (None, {"date": TWO}, False),
        (None, {"day": ["weekday", "saturday", "sunday"]}, False),
        (About(period=ONE_DAY), {"day": TWO}, False),
    ],
)
def test_nobody_speaks_of_a_day_where_there_are_several(
    about: About, more: dict[str, Any], one: bool
) -> None:
    """Dates, types of days, a period of several days or in words: each is enough."""
    assert is_single_day(_release(about, **more)) is one
