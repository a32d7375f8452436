"""The page of a series: every published period at a glance, and what all of them cost one person.

It keeps little of each release (`PeriodFacts`), so that a year of them fits on one page and in memory.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np
from scipy.special import ndtri

from cbdp.errors import InputError
from cbdp.estimation.continual import gls_total
from cbdp.estimation.gls import best_linear_unbiased
from cbdp.features import TOTAL
from cbdp.ledger import Amount
from cbdp.ledger.charges import SYMBOLS
from cbdp.ledger.windows import PrivacyStatement, WorstCase
from cbdp.numbers import confidence_text
from cbdp.privacy.continual import STRATEGIES
from cbdp.release.about import MONTH_NAMES, Dates
from cbdp.release.release import Release
from cbdp.release.views import TRIP_NOUN, Noun, counted_noun, left_out
from cbdp.report.rendering import Table, Tile, render
from cbdp_features.queries import Grouping

NO_INTERVAL = "no interval: no measured table tells the total"
MAX_PROFILE_VALUES = 200  # values along a little chart


@dataclass(frozen=True)
class SpanFacts:
    """The running total of all trips that a release is part of: which span, which release of it, and the noise that its sums and days have."""

    first: dt.date
    number: int
    periods: int
    strategy: str
    row_variance: float  # of the noise of a sum
    own_variance: float  # of the release's own measurement
    deviation: float  # of the total after this release


@dataclass(frozen=True)
class PeriodFacts:
    """One release: its days, its published trips with their interval if any, the variance of their noise (infinite where it is unknown), trips by time.

    >>> day = dt.date(2026, 3, 2)
    >>> PeriodFacts(day, day, total=1200, low=1188, high=1212, variance=53.0).total
    1200
    """

    first: dt.date
    last: dt.date
    total: int
    low: int | None
    high: int | None
    variance: float
    profile: tuple[int, ...] = ()
    preliminary: bool = False
    span: SpanFacts | None = None  # where the series keeps running totals of all trips
    noun: Noun = TRIP_NOUN  # what is counted
    left_out: str = ""  # that trips of a person beyond a bound do not count, where it is so

    @property
    def name(self) -> str:
        return str(Dates(self.first, self.last))


@dataclass(frozen=True)
class CumulativeTotals:
    """The trips since the start after each period, and the deviation of their noise."""

    total: tuple[int, ...]
    deviation: tuple[float, ...]


def period_of(
    release: Release,
    first: dt.date,
    last: dt.date | None = None,
    *,
    confidence: float = 0.9,
    preliminary: bool = False,
) -> PeriodFacts:
    """The facts of one release; it can be forgotten afterwards.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> release = cbdp.ConstraintBased(features, epsilon=1).simulate(trips, seed=0)
    >>> period_of(release, dt.date(2026, 3, 2)).total == int(release.counts("total")[0])
    True
    """
    if release.tables:
        raise InputError(
            "the tables of this release were published one by one and do not add up: it has no place in a series' page"
        )
    asked = release.ask((), confidence=confidence)
    count, low, high = (float(np.asarray(asked[name])[0]) for name in ("count", "low", "high"))
    sure = not np.isnan(low)
    return PeriodFacts(
        first,
        last or first,
        int(count),
        int(low) if sure else None,
        int(high) if sure else None,
        _variance(release),
        _profile(release),
        preliminary,
        _span_facts(release),
        counted_noun(release.features.universe),
        left_out(release.claim.unit, counted_noun(release.features.universe)),
    )


def _span_facts(release: Release) -> SpanFacts | None:
    part = release.running
    total_measurement = next(
        (m for m in release.measurements if m.feature == TOTAL and m.variance is not None), None
    )
    if (
        part is None
        or TOTAL not in part.tables
        or total_measurement is None
        or total_measurement.variance is None
    ):
        return None
    table = part.tables[TOTAL]
    noise = table.law.variance(), float(total_measurement.variance[0]), table.deviation
    return SpanFacts(part.first, part.number, part.periods, part.strategy, *noise)


def _variance(release: Release) -> float:
    return float(best_linear_unbiased(release, Grouping(release.features.universe, ())).variance[0])


def _profile(release: Release) -> tuple[int, ...]:
    """Published trips along the time of day, where the universe tells it."""
    for name, dimension in release.features.universe.dimensions.items():
        if dimension.edges is not None and 2 <= len(dimension) <= MAX_PROFILE_VALUES:
            added = Grouping(release.features.universe, (name,)).added(release.index, release.value)
            return tuple(int(n) for n in added)
    return ()


def build(
    periods: Sequence[PeriodFacts],
    statement: PrivacyStatement | None = None,
    *,
    title: str = "A series of releases",
    confidence: float = 0.9,
    totals: CumulativeTotals | None = None,
    simulation: bool = False,
) -> str:
    """The series as HTML, which opens offline and asks nothing of any server.

    `statement` is what `cbdp.ledger.windows` says of the ledger. `totals` are running totals that were measured on their own; without
    them published periods are added up. The same series gives the same page to the byte.

    >>> import datetime as dt
    >>> from cbdp.report.series import PeriodFacts
    >>> days = [dt.date(2026, 3, n) for n in (2, 3, 4)]
    >>> page = build([PeriodFacts(day, day, total=1200, low=1188, high=1212, variance=53.0) for day in days], title="Three days in March")
    >>> "Three days in March" in page
    True
    """
    listed = _checked(periods)
    say, measured = listed[0].noun.say, totals or measured_totals(listed)
    calendar, days = calendar_heat_map(listed), day_charts(listed)
    running = running_chart(listed, summed_totals(listed), measured, confidence)
    sections = {
        "person": statement and "What all of this costs one person",
        "calendar": calendar and say("Trips by day"),
        "running": running and "Running total",
        "days": days and "Every day",
        "months": "By month",
    }
    return render(
        "report/series.html.jinja",
        style=["report/series.css"],
        script="report/series.js",
        data={},
        title=title,
        say=say,
        simulation=simulation,
        preliminary=sum(p.preliminary for p in listed),
        head=_tiles(listed, confidence),
        bounds=[sentence for sentence in dict.fromkeys(p.left_out for p in listed) if sentence],
        sections={key: name for key, name in sections.items() if name},
        person=statement and person_statement(statement, listed[0].noun),
        calendar=calendar,
        running=running,
        days=days,
        months=month_table(listed, confidence),
    )


def _checked(periods: Sequence[PeriodFacts]) -> list[PeriodFacts]:
    listed = sorted(periods, key=lambda p: p.first)
    if not listed:
        raise InputError("the series has no release yet: make one first")
    for one, two in pairwise(listed):
        if two.first <= one.last:
            raise InputError(f"two releases cover {two.first}: give one for each day")
    return listed


def _tiles(periods: list[PeriodFacts], confidence: float) -> list[Tile]:
    busiest, quietest = max(periods, key=lambda p: p.total), min(periods, key=lambda p: p.total)
    total, say = measured_totals(periods) or summed_totals(periods), periods[0].noun.say
    reach = _half_width(confidence) * total.deviation[-1]
    sure = (
        f"±\u00a0{round(reach):,} at {confidence_text(confidence)} confidence"
        if math.isfinite(reach)
        else NO_INTERVAL
    )
    return [
        Tile("Releases", f"{len(periods):,}", str(Dates(periods[0].first, periods[-1].last))),
        Tile(say("Published trips"), f"{total.total[-1]:,}", sure),
        Tile(say("Most trips"), f"{busiest.total:,}", busiest.name),
        Tile(say("Fewest trips"), f"{quietest.total:,}", quietest.name),
    ]


def _half_width(confidence: float) -> float:
    """Of an interval of a normal distribution, in standard deviations."""
    return -float(ndtri((1 - confidence) / 2))


# Running totals and the variance of their noise


def measured_totals(periods: list[PeriodFacts]) -> CumulativeTotals | None:
    """The cumulative totals with the noise of running totals that were measured; None where there are none, or they begin later."""
    if not all(p.span is not None for p in periods):
        return None
    done, before, deviations = 0.0, periods[0], []
    for period in periods:
        assert period.span is not None
        assert before.span is not None
        if period.span.first != before.span.first:  # spans are measured apart: variances add
            done += before.span.deviation**2
        deviations.append((done + period.span.deviation**2) ** 0.5)
        before = period
    return CumulativeTotals(tuple(accumulate(p.total for p in periods)), tuple(deviations))


def variance_of(periods: list[PeriodFacts], chosen: list[PeriodFacts]) -> float:
    """The variance of the noise of some neighbouring periods together: that of the difference of two running totals, where there are any."""
    variance = 0.0
    for first in dict.fromkeys(p.span.first if p.span else None for p in chosen):
        of_span = [p for p in chosen if (p.span.first if p.span else None) == first]
        every = [p for p in periods if p.span and p.span.first == first]
        whole = [p.span.number for p in every if p.span] == list(range(1, len(every) + 1))
        if first is None or not whole:
            variance += sum(p.variance for p in of_span)
            continue
        ends = [p.span.number for p in (of_span[0], of_span[-1]) if p.span]
        variance += _between(tuple(p.span for p in every if p.span), ends[0] - 1, ends[1])
    return variance


def _between(spans: tuple[SpanFacts, ...], start: int, end: int) -> float:
    """The variance of the total after `end` periods of a span less that after `start`: generalised least squares on the sums and days of the span."""
    sums = STRATEGIES[spans[0].strategy](spans[0].periods)
    rows, variances = spans[0].row_variance, [s.own_variance for s in spans]
    before = gls_total(sums, rows, variances[:start]) if start else None
    return gls_total(sums, rows, variances[:end]).less(before).variance


def summed_totals(periods: list[PeriodFacts]) -> CumulativeTotals:
    """Published periods added up: their noise is independent, so variances add."""
    return CumulativeTotals(
        tuple(accumulate(p.total for p in periods)),
        tuple(float(v) ** 0.5 for v in accumulate(p.variance for p in periods)),
    )


# A calendar heat map: a column for each week, a row for each day of the week, the darker the more trips

DAY_CELL, DAY_GAP, CALENDAR_LEFT, CALENDAR_TOP = 15, 3, 40, 22  # pixels
WEEKDAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True)
class DayCell:
    """A day: its place, and how strong its colour is (None: it has no release)."""

    x: int
    y: int
    shade: str | None = None
    tip: str = ""


@dataclass(frozen=True)
class YearPicture:
    """A year: its days, and the names of days of the week and of months with their places."""

    name: str
    label: str
    width: int
    height: int
    weekdays: list[tuple[str, int, int]]
    months: list[tuple[str, int]]
    days: list[DayCell]


@dataclass(frozen=True)
class CalendarMap:
    """One picture for each year, and what the strongest colour stands for."""

    most: str
    years: list[YearPicture]
    cell: int = DAY_CELL


def calendar_heat_map(periods: list[PeriodFacts]) -> CalendarMap | None:
    """Days without a release are grey. None where releases cover more than a day."""
    if any(p.first != p.last for p in periods):
        return None
    most = max(1, *(p.total for p in periods))
    years = [
        [p for p in periods if p.first.year == year] for year in dict.fromkeys(p.first.year for p in periods)
    ]
    return CalendarMap(periods[0].noun.number(most), [_year(of_year, most) for of_year in years])


def _year(periods: list[PeriodFacts], most: int) -> YearPicture:
    first, last = periods[0].first, periods[-1].first
    monday = first - dt.timedelta(days=first.weekday())
    by_day = {p.first: p for p in periods}
    days = [first + dt.timedelta(days=n) for n in range((last - first).days + 1)]
    step = DAY_CELL + DAY_GAP

    def seat(day: dt.date) -> tuple[int, int]:
        week, weekday = divmod((day - monday).days, 7)
        return CALENDAR_LEFT + week * step, CALENDAR_TOP + weekday * step

    def cell(day: dt.date) -> DayCell:
        period = by_day.get(day)
        if period is None:
            return DayCell(*seat(day))
        return DayCell(*seat(day), f"{0.08 + 0.92 * max(period.total, 0) / most:.3f}", tip_of(period))

    return YearPicture(
        str(first.year),
        periods[0].noun.say(f"Trips by day from {first} to {last}"),
        CALENDAR_LEFT + ((last - monday).days // 7 + 1) * step + 24,
        CALENDAR_TOP + 7 * step,
        [
            (name, CALENDAR_LEFT - 6, CALENDAR_TOP + n * step + 12)
            for n, name in enumerate(WEEKDAY_NAMES)
            if n % 2 == 0
        ],
        [
            (MONTH_NAMES[day.month - 1][:3], seat(day)[0])
            for day in days
            if day.day <= 7 and day.weekday() == 0
        ],
        [cell(day) for day in days],
    )


def tip_of(period: PeriodFacts) -> str:
    """What stands at a day."""
    day = f"{WEEKDAY_NAMES[period.first.weekday()]} " if period.first == period.last else ""
    early = "\npreliminary" if period.preliminary else ""
    sure = "no interval" if period.low is None else f"{period.low:,} to {period.high:,}"
    return f"{day}{period.name}\n{period.noun.number(period.total)} ({sure}){early}"


# A little chart of each day's trips by time, month by month like the sheets of a calendar

SHEET_DAY_WIDTH, SHEET_DAY_HEIGHT, SHEET_GAP, SHEET_TOP = 66, 40, 6, 18  # pixels


@dataclass(frozen=True)
class DayChart:
    """A day: its number in the month, its corner, and its trips along the day as an area."""

    number: int
    x: int
    y: int
    area: str
    tip: str


@dataclass(frozen=True)
class Sheet:
    """A month, and where the days of the week stand."""

    name: str
    label: str
    width: int
    height: int
    weekdays: list[tuple[str, float]]
    days: list[DayChart]


@dataclass(frozen=True)
class Sheets:
    """All months on one scale, up to `most`."""

    most: str
    sheets: list[Sheet]
    width: int = SHEET_DAY_WIDTH
    height: int = SHEET_DAY_HEIGHT


def day_charts(periods: list[PeriodFacts]) -> Sheets | None:
    """None where there is nothing to draw along."""
    drawn = [p for p in periods if len(p.profile) > 1 and p.first == p.last]
    if not drawn:
        return None
    most = max(1, *(max(p.profile) for p in drawn))
    sheets = [_sheet(year, month, of_month, most) for (year, month), of_month in _by_month(drawn).items()]
    return Sheets(drawn[0].noun.number(most), sheets)


def _by_month(periods: list[PeriodFacts]) -> dict[tuple[int, int], list[PeriodFacts]]:
    """Periods by the month that they begin in."""
    months: dict[tuple[int, int], list[PeriodFacts]] = {}
    for period in periods:
        months.setdefault((period.first.year, period.first.month), []).append(period)
    return months


def _sheet(year: int, month: int, periods: list[PeriodFacts], most: int) -> Sheet:
    before = dt.date(year, month, 1).weekday()
    wide, tall, name = (
        SHEET_DAY_WIDTH + SHEET_GAP,
        SHEET_DAY_HEIGHT + SHEET_GAP,
        f"{MONTH_NAMES[month - 1]} {year}",
    )
    weeks = (max(p.first.day for p in periods) - 1 + before) // 7 + 1
    return Sheet(
        name,
        periods[0].noun.say(f"Trips by time on each day of {name}"),
        7 * wide,
        SHEET_TOP + weeks * tall,
        [(weekday, n * wide + SHEET_DAY_WIDTH / 2) for n, weekday in enumerate(WEEKDAY_NAMES)],
        [
            _day_chart(p, p.first.weekday() * wide, SHEET_TOP + (p.first.day - 1 + before) // 7 * tall, most)
            for p in periods
        ],
    )


def _day_chart(period: PeriodFacts, x: int, y: int, most: int) -> DayChart:
    base, step = y + SHEET_DAY_HEIGHT, SHEET_DAY_WIDTH / (len(period.profile) - 1)
    points = "".join(
        f"L{x + n * step:.0f},{base - max(value, 0) / most * (SHEET_DAY_HEIGHT - 4):.0f}"
        for n, value in enumerate(period.profile)
    )
    area = f"M{x},{base}{points}L{x + SHEET_DAY_WIDTH},{base}Z"
    return DayChart(period.first.day, x, y, area, tip_of(period))


# The running total over the series, with the band that noise leaves: of published periods added up, or measured on its own


@dataclass(frozen=True)
class LineChartSize:
    """Where things stand, in pixels; below is room for dates in the letters that phones need."""

    width: int = 900
    height: int = 320
    left: int = 26
    right: int = 898
    top: int = 10
    bottom: int = 276


LINE_CHART = LineChartSize()
SUMMED_LABEL, MEASURED_LABEL = "published periods added up", "measured on its own"
INDEPENDENT_DAYS_LABEL, CONSISTENT_DAYS_LABEL = (
    "days measured one by one, added up",
    "as published, following running totals",
)


@dataclass(frozen=True)
class LineChart:
    """Curves over the series, from nothing to `most`."""

    name: str
    most: str
    first: str
    last: str
    curves: list[str]
    size: LineChartSize = LINE_CHART


@dataclass(frozen=True)
class RunningTotal:
    """The total since the start and, in a chart of its own, how far noise may reach, which a line of totals is too thick to show."""

    charts: list[LineChart]
    reach: str = ""
    legend: list[str] = field(default_factory=list)


def running_chart(
    periods: list[PeriodFacts], added: CumulativeTotals, measured: CumulativeTotals | None, confidence: float
) -> RunningTotal | None:
    """None for a single release."""
    if len(periods) < 2:
        return None
    shown, noun = measured or added, periods[0].noun
    reach = _half_width(confidence)
    follows = any(p.span for p in periods)  # then what is published, added up, is what was measured
    widths = {INDEPENDENT_DAYS_LABEL if follows else SUMMED_LABEL: [reach * d for d in added.deviation]}
    if measured is not None:
        widths[CONSISTENT_DAYS_LABEL if follows else MEASURED_LABEL] = [reach * d for d in measured.deviation]
    widths = {name: width for name, width in widths.items() if math.isfinite(width[-1])}
    totals = _line_chart(periods, [shown.total], noun.say("Trips since the start"))
    if not widths:
        return RunningTotal([totals])
    reaches = "; ".join(f"±\u00a0{round(width[-1]):,} ({name})" for name, width in widths.items())
    words = (
        f"{noun.number(shown.total[-1])} since the start. How far noise reaches at {confidence_text(confidence)} confidence after "
        f"{len(periods):,} releases: {reaches}."
    )
    noise = _line_chart(periods, list(widths.values()), noun.say("How far noise reaches, in trips"))
    return RunningTotal([totals, noise], words, list(widths) if len(widths) > 1 else [])


def _line_chart(periods: list[PeriodFacts], lines: Sequence[Sequence[float]], name: str) -> LineChart:
    size, most = LINE_CHART, max(1.0, *(max(values) for values in lines))
    step = (size.right - size.left) / max(len(periods) - 1, 1)
    curves = [
        "M"
        + "L".join(
            f"{size.left + n * step:.1f},{size.bottom - v / most * (size.bottom - size.top):.1f}"
            for n, v in enumerate(values)
        )
        for values in lines
    ]
    return LineChart(name, f"{most:,.0f}", str(periods[0].first), str(periods[-1].last), curves)


# The statement for one person


@dataclass(frozen=True)
class PersonStatement:
    """The worst case by window, and what is to be known about it."""

    windows: Table
    notes: list[str]


def person_statement(statement: PrivacyStatement, noun: Noun = TRIP_NOUN) -> PersonStatement:
    strict = any(w.strict != w.amount for w in statement.windows)
    rows = [
        [_span_charge(w.days), *_charges_table(w, strict), "" if w.start is None else str(w.start)]
        for w in statement.windows
    ]
    head = ["Any", "ε at most", "δ", "Sum", *(["Strict sum"] if strict else []), "Highest from"]
    return PersonStatement(
        Table(head, rows), [noun.say(f"{note[0].upper()}{note[1:]}.") for note in statement.notes]
    )


def _span_charge(days: int | None) -> str:
    if days is None:
        return "since the start"
    return "1 day" if days == 1 else f"{days} days"


def _charges_table(worst: WorstCase, strict: bool) -> list[str]:
    delta = "0" if not worst.delta else f"{float(worst.delta):.2g}"
    epsilon = worst.shown if math.isfinite(worst.epsilon) else "no limit"
    return [epsilon, delta, _sum_text(worst.amount), *([_sum_text(worst.strict)] if strict else [])]


def _sum_text(amount: Amount) -> str:
    if amount.is_unlimited:
        return "no limit"
    return f"{SYMBOLS[amount.currency]} = {float(amount.value):.4g}"


# Months: published periods added up, with how far their noise reaches together


def month_table(periods: list[PeriodFacts], confidence: float) -> Table:
    """A row for each month that a release begins in."""
    rows = []
    for (year, month), of_month in _by_month(periods).items():
        total = sum(p.total for p in of_month)
        width = _half_width(confidence) * variance_of(periods, of_month) ** 0.5
        rows.append(
            [
                f"{MONTH_NAMES[month - 1]} {year}",
                f"{len(of_month):,}",
                f"{total:,}",
                f"± {round(width):,}" if math.isfinite(width) else "none",
                f"{total / len(of_month):,.0f}",
            ]
        )
    say = periods[0].noun.say
    head = [
        "Month",
        "Releases",
        say("Trips"),
        f"{confidence_text(confidence)} interval",
        say("Trips per release"),
    ]
    return Table(head, rows)


__all__ = ["PeriodFacts", "build", "period_of"]
