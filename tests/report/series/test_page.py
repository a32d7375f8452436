"""The page of a series: every day, the running total and the statement; a year of it opens at once."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from browsing import DESKTOP, PHONE, opened
from released import city_features, counts_of
from reported import Page

import cbdp
from cbdp.errors import InputError
from cbdp.estimation.continual import gls_total
from cbdp.ledger import Amount
from cbdp.ledger.windows import PrivacyStatement, WorstCase
from cbdp.privacy.continual import square_root
from cbdp.report.series import (
    CumulativeTotals,
    PeriodFacts,
    SpanFacts,
    build,
    measured_totals,
    period_of,
    summed_totals,
    variance_of,
)

START = dt.date(2026, 1, 1)


def _year(days: int = 365, gaps: tuple[int, ...] = (40, 41)) -> list[PeriodFacts]:
    rng = np.random.default_rng(1)
    made = []
    for n in (n for n in range(days) if n not in gaps):
        day = START + dt.timedelta(days=n)
        profile = tuple(int(v) for v in rng.poisson(60 + 50 * np.sin(np.arange(56) / 8) ** 2, 56))
        made.append(
            PeriodFacts(day, day, sum(profile), sum(profile) - 30, sum(profile) + 30, 18.0**2, profile)
        )
    return made


STATEMENT = PrivacyStatement(
    "epsilon",
    tuple(
        WorstCase(
            days,
            Amount.charge(days or 365),
            Amount.charge(days or 365),
            START if days else None,
            float(days or 365),
            Amount().delta,
        )
        for days in (1, 7, 30, 365, None)
    ),
    ("where the unit is a trip: one trip a day",),
)


def _marks(html: str, kind: str) -> list[dict[str, Any]]:
    return [a for _, a in Page(html).elements if kind in (a.get("class") or "").split()]


def test_every_day_is_on_the_calendar_and_has_its_chart() -> None:
    """Days with a release have their number and interval; days without are grey."""
    year = _year()
    html = build(year, STATEMENT)
    assert len(_marks(html, "heat")) == len(_marks(html, "sheet")) == 363
    assert len(_marks(html, "never")) == 2
    tips = {a["data-tip"].splitlines()[0]: a["data-tip"] for a in _marks(html, "heat")}
    day = year[20]
    assert f"{day.total:,} trips ({day.low:,} to {day.high:,})" in tips["Wed 21 January 2026"]
    darkest = max(_marks(html, "heat"), key=lambda a: float(a["fill-opacity"]))
    assert f"{max(p.total for p in year):,} trips" in darkest["data-tip"]


def test_running_totals_and_months_add_up() -> None:
    """The last running total is the sum of all days; noise of independent days adds by variance."""
    year = _year()
    made = summed_totals(year)
    assert made.total[-1] == sum(p.total for p in year)
    assert made.deviation[-1] == pytest.approx(18 * 363**0.5)
    page = Page(build(year, totals=replace(made, deviation=tuple(40.0 for _ in year))))
    assert f"{made.total[-1]:,} trips since the start" in page.text
    assert "± 564 (published periods added up); ± 66 (measured on its own)" in page.text
    january = sum(p.total for p in year[:31])
    assert f"{january:,}" in page.text


def test_where_taps_are_counted_no_sentence_speaks_of_trips() -> None:
    """The word is that of the releases: of one place, and not of two."""
    universe = cbdp.Universe(location=["A", "B"], time=cbdp.periods("06:00", "08:00", "1h"))
    mechanism = cbdp.ConstraintBased(cbdp.FeatureDag(universe, [cbdp.Feature("time", by="time")]), 1)
    taps = [period_of(mechanism.simulate(np.full(4, 90), n), START + dt.timedelta(days=n)) for n in range(3)]
    html = build(taps, STATEMENT)
    assert f"{sum(p.total for p in taps):,} taps since the start" in Page(html).text
    assert f"{taps[0].total:,} taps (" in _marks(html, "heat")[0]["data-tip"]
    assert not re.search(r"\b[Tt]rips?\b", html.partition("<body")[2].partition("<script")[0])


def test_the_statement_for_one_person_is_told() -> None:
    """Every window with its ε, and the notes; without a ledger the section is missing."""
    page = Page(build(_year(60), STATEMENT))
    assert "worst case" in page.text
    for word in (
        "7 days",
        "30 days",
        "since the start",
        "ε = 365",
        "Where the unit is a trip: one trip a day.",
    ):
        assert word in page.text
    assert "worst case" not in Page(build(_year(60))).text


def test_strict_sums_and_missing_limits_are_told() -> None:
    """Where a window cuts a unit's period the sum for anybody is a column of its own; what has no limit says so."""
    first, *rest = STATEMENT.windows
    none = Amount.unlimited()
    cut = replace(
        STATEMENT,
        windows=(
            replace(first, strict=Amount.charge(5)),
            *rest[:-1],
            replace(rest[-1], amount=none, strict=none, epsilon=float("inf")),
        ),
    )
    text = Page(build(_year(60), cut)).text
    assert "Strict sum" in text
    assert "ε = 5" in text
    assert "no limit" in text
    assert "Strict sum" not in Page(build(_year(60), STATEMENT)).text


def test_facts_of_a_release() -> None:
    """Total and interval as the release says them, the variance of the measured total, trips by time."""
    dag = city_features(hours=6)
    release = cbdp.ConstraintBased(dag, 1).simulate(counts_of(dag), 4)
    made = period_of(release, START)
    asked = release.ask(())
    assert (made.total, made.low, made.high) == tuple(int(asked[n][0]) for n in ("count", "low", "high"))
    assert made.profile == tuple(release.ask("time")["count"].tolist())
    assert ((made.high - made.low) / 3.29) ** 2 == pytest.approx(made.variance, rel=0.5)


def test_weeks_have_no_calendar_and_wrong_series_are_refused() -> None:
    """A release of a week has no day to stand on; two releases of a day contradict each other."""
    weeks = [
        replace(p, first=START + dt.timedelta(days=7 * n), last=START + dt.timedelta(days=7 * n + 6))
        for n, p in enumerate(_year(9))
    ]
    html = build(weeks)
    assert not _marks(html, "heat")
    assert "Running total" in html
    with pytest.raises(InputError, match="two releases cover 2026-01-01"):
        build([*_year(3), _year(1)[0]])
    with pytest.raises(InputError, match="no release yet"):
        build([])


@pytest.mark.slow
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_a_year_fits_the_screen_and_tells_its_days(browser: Any, tmp_path: Any, width: int) -> None:
    """Nothing is wider than the screen, and a day tells its numbers."""
    html = build(
        _year(),
        STATEMENT,
        totals=CumulativeTotals(summed_totals(_year()).total, tuple(40.0 for _ in range(363))),
    )
    with opened(browser, tmp_path, html, width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for table in ("#statement", "#by-month"):
            assert page.evaluate(
                f"(box => box.scrollWidth <= box.clientWidth)(document.querySelector('{table}').parentNode)"
            )
        page.locator(".heat").first.hover()
        assert "trips (" in page.locator("#tip").text_content()


def _following(days: int, periods: int = 40, own: float = 100.0) -> list[PeriodFacts]:
    """Days of a series that keeps running totals: a span of so many days after the other."""
    sums = square_root(periods)
    row = own * float((sums.rows**2).sum(axis=0).max())
    made = []
    for n, period in enumerate(_year(days, gaps=())):
        number = n % periods + 1
        deviation = gls_total(sums, row, [own] * number).variance ** 0.5
        first = START + dt.timedelta(days=n - number + 1)
        span = SpanFacts(first, number, periods, "square root", row, own, deviation)
        made.append(replace(period, variance=own, span=span))
    return made


def test_a_series_with_running_totals_says_how_far_noise_reaches() -> None:
    """The totals are those of the published days; their noise is that of the running totals, of two spans added; months as differences of totals."""
    periods = _following(60)
    found, added = measured_totals(periods), summed_totals(periods)
    assert found is not None
    assert found.total == added.total
    ends = [periods[39].span, periods[59].span]
    both = sum(e.deviation**2 for e in ends if e is not None)
    assert found.deviation[-1] == pytest.approx(both**0.5)
    assert found.deviation[-1] < 0.4 * added.deviation[-1]
    page = Page(build(periods, STATEMENT))
    reach = round(1.6448536 * found.deviation[-1])
    assert f"± {round(1.6448536 * added.deviation[-1])} (days measured one by one, added up)" in page.text
    assert f"± {reach} (as published, following running totals)" in page.text
    january = [p for p in periods if p.first.month == 1]
    assert variance_of(periods, january) == pytest.approx(january[-1].span.deviation ** 2)  # type: ignore[union-attr]
    week = periods[33:40]
    assert variance_of(periods, week) < 0.6 * sum(p.variance for p in week)
    assert variance_of(periods, periods[36:44]) > variance_of(periods, periods[36:40])


def test_a_series_that_began_without_them_adds_days_up() -> None:
    """Then nobody knows a total since the start that is better than the sum."""
    periods = [replace(p, span=None) if n < 3 else p for n, p in enumerate(_following(9))]
    assert measured_totals(periods) is None
    assert variance_of(periods, periods[:3]) == pytest.approx(3 * 100.0)
