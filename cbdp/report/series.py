"""The page of a series: every published period at a glance, and what all of them cost one person.

It keeps little of each release (`PeriodFacts`), so that a year of them fits on one page and in memory.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import isfinite

import numpy as np
from scipy.special import ndtri

from cbdp.errors import InputError
from cbdp.estimation.continual import gls_total
from cbdp.estimation.gls import best_linear_unbiased
from cbdp.features import TOTAL
from cbdp.ledger import Amount
from cbdp.ledger.charges import SYMBOLS
from cbdp.ledger.windows import PrivacyStatement, WorstCase
from cbdp.privacy.continual import STRATEGIES
from cbdp.release.about import MONTH_NAMES, Dates
from cbdp.release.release import Release
from cbdp.release.roles import TRIP_NOUN, Noun, counted_noun
from cbdp.release.summary import left_out
from cbdp.report.markup import Html, join, page, table, tag
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
    noun = listed[0].noun
    sections = [
        ("person", "What all of this costs one person", person_statement(statement, noun)),
        ("calendar", noun.say("Trips by day"), calendar_heat_map(listed)),
        (
            "running",
            "Running total",
            running_chart(listed, summed_totals(listed), totals or measured_totals(listed), confidence),
        ),
        ("days", "Every day", day_charts(listed)),
        ("months", "By month", month_table(listed, confidence)),
    ]
    shown = [(key, name, inside) for key, name, inside in sections if inside is not None]
    body = join(
        _head(listed, title, confidence, simulation),
        tag("nav", [tag("a", name, href=f"#{key}") for key, name, _ in shown], aria_label="Contents"),
        tag("main", [tag("section", tag("h2", name), inside, id=key) for key, name, inside in shown]),
        tag(
            "footer", tag("p", "Made by cbdp from published values only. Opening this page sends no request.")
        ),
    )
    return page(title, body, {}, name="series")


def _checked(periods: Sequence[PeriodFacts]) -> list[PeriodFacts]:
    listed = sorted(periods, key=lambda p: p.first)
    if not listed:
        raise InputError("the series has no release yet: make one first")
    for one, two in pairwise(listed):
        if two.first <= one.last:
            raise InputError(f"two releases cover {two.first}: give one for each day")
    return listed


def _head(periods: list[PeriodFacts], title: str, confidence: float, simulation: bool) -> Html:
    busiest, quietest = max(periods, key=lambda p: p.total), min(periods, key=lambda p: p.total)
    total, say = measured_totals(periods) or summed_totals(periods), periods[0].noun.say
    reach = -float(ndtri((1 - confidence) / 2)) * total.deviation[-1]
    sure = (
        f"±\u00a0{round(reach):,} at {100 * confidence:g}\u00a0% confidence"
        if isfinite(reach)
        else NO_INTERVAL
    )
    tiles = [
        ("Releases", f"{len(periods):,}", str(Dates(periods[0].first, periods[-1].last))),
        (
            say("Published trips"),
            f"{total.total[-1]:,}",
            sure,
        ),
        (say("Most trips"), f"{busiest.total:,}", busiest.name),
        (say("Fewest trips"), f"{quietest.total:,}", quietest.name),
    ]
    early = sum(p.preliminary for p in periods)
    bounds = [sentence for sentence in dict.fromkeys(p.left_out for p in periods) if sentence]
    return tag(
        "header",
        tag("h1", title),
        tag("p", "A simulation: its noise is not secret, so it protects nobody.", class_="warning")
        if simulation
        else None,
        tag("p", f"{early:,} releases are preliminary and will be followed by final ones.", class_="note")
        if early
        else None,
        tag("div", [_tile(*tile) for tile in tiles], class_="tiles"),
        [tag("p", sentence, class_="note") for sentence in bounds],
    )


def _tile(head: str, value: str, about: str) -> Html:
    return tag(
        "div",
        tag("span", head, class_="head"),
        tag("span", value, class_="value"),
        tag("span", about, class_="about"),
        class_="tile",
    )


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


def calendar_heat_map(periods: list[PeriodFacts]) -> Html | None:
    """One picture for each year; days without a release are grey. None where releases cover more than a day."""
    if any(p.first != p.last for p in periods):
        return None
    most = max(1, *(p.total for p in periods))
    years: dict[int, list[PeriodFacts]] = {}
    for period in periods:
        years.setdefault(period.first.year, []).append(period)
    pictures = [
        [tag("h3", year), tag("div", _year(of_year, most), class_="scroll")]
        for year, of_year in years.items()
    ]
    note = f"The strongest colour stands for {periods[0].noun.number(most)}. Grey days have no release. Point at a day, or tap it, for its number and interval."
    return join(tag("p", note, class_="note"), pictures)


def _year(periods: list[PeriodFacts], most: int) -> Html:
    first, last = periods[0].first, periods[-1].first
    monday = first - dt.timedelta(days=first.weekday())
    by_day = {p.first: p for p in periods}
    days = [first + dt.timedelta(days=n) for n in range((last - first).days + 1)]
    cells = [_day_cell(day, monday, by_day.get(day), most) for day in days]
    weeks = (last - monday).days // 7 + 1
    wide, tall = CALENDAR_LEFT + weeks * (DAY_CELL + DAY_GAP) + 24, CALENDAR_TOP + 7 * (DAY_CELL + DAY_GAP)
    names = [
        tag(
            "text",
            name,
            x=CALENDAR_LEFT - 6,
            y=CALENDAR_TOP + n * (DAY_CELL + DAY_GAP) + 12,
            text_anchor="end",
            class_="muted",
        )
        for n, name in enumerate(WEEKDAY_NAMES)
        if n % 2 == 0
    ]
    label = periods[0].noun.say(f"Trips by day from {first} to {last}")
    return tag(
        "svg", names, _month_labels(days, monday), cells, viewBox=f"0 0 {wide} {tall}", width=wide, height=tall, role="img", aria_label=label,
        class_="picture",
    )  # fmt: skip


def _day_position(day: dt.date, monday: dt.date) -> tuple[int, int]:
    week, weekday = divmod((day - monday).days, 7)
    return CALENDAR_LEFT + week * (DAY_CELL + DAY_GAP), CALENDAR_TOP + weekday * (DAY_CELL + DAY_GAP)


def _day_cell(day: dt.date, monday: dt.date, period: PeriodFacts | None, most: int) -> Html:
    x, y = _day_position(day, monday)
    if period is None:
        return tag("rect", x=x, y=y, width=DAY_CELL, height=DAY_CELL, rx=3, class_="never")
    shade = f"{0.08 + 0.92 * max(period.total, 0) / most:.3f}"
    return tag(
        "rect", x=x, y=y, width=DAY_CELL, height=DAY_CELL, rx=3, fill_opacity=shade, class_="mark heat", data_tip=tip_of(period)
    )  # fmt: skip


def _month_labels(days: list[dt.date], monday: dt.date) -> list[Html]:
    starts = [day for day in days if day.day <= 7 and day.weekday() == 0]
    return [
        tag("text", MONTH_NAMES[day.month - 1][:3], x=_day_position(day, monday)[0], y=14, class_="muted")
        for day in starts
    ]


def tip_of(period: PeriodFacts) -> str:
    """What stands at a day."""
    day = f"{WEEKDAY_NAMES[period.first.weekday()]} " if period.first == period.last else ""
    early = "\npreliminary" if period.preliminary else ""
    sure = "no interval" if period.low is None else f"{period.low:,} to {period.high:,}"
    return f"{day}{period.name}\n{period.noun.number(period.total)} ({sure}){early}"


# A little chart of each day's trips by time, month by month like the sheets of a calendar

SHEET_DAY_WIDTH, SHEET_DAY_HEIGHT, SHEET_GAP, SHEET_TOP = 66, 40, 6, 18  # pixels


def day_charts(periods: list[PeriodFacts]) -> Html | None:
    """All on one scale; None where there is nothing to draw along."""
    drawn = [p for p in periods if len(p.profile) > 1 and p.first == p.last]
    if not drawn:
        return None
    most = max(1, *(max(p.profile) for p in drawn))
    months: dict[tuple[int, int], list[PeriodFacts]] = {}
    for period in drawn:
        months.setdefault((period.first.year, period.first.month), []).append(period)
    sheets = [_sheet(key, of_month, most) for key, of_month in months.items()]
    note = f"Each little chart is a day from its first to its last period of the day; all have the same scale, up to {drawn[0].noun.number(most)}."
    return join(tag("p", note, class_="note"), tag("div", sheets, class_="multiples", id="chart-days"))


def _sheet(key: tuple[int, int], periods: list[PeriodFacts], most: int) -> Html:
    year, month = key
    before = dt.date(year, month, 1).weekday()
    cells = [_day_chart(p, (p.first.day - 1 + before) // 7, p.first.weekday(), most) for p in periods]
    weeks = (max(p.first.day for p in periods) - 1 + before) // 7 + 1
    heads = [
        tag(
            "text",
            name,
            x=n * (SHEET_DAY_WIDTH + SHEET_GAP) + SHEET_DAY_WIDTH / 2,
            y=12,
            text_anchor="middle",
            class_="muted",
        )
        for n, name in enumerate(WEEKDAY_NAMES)
    ]
    name = f"{MONTH_NAMES[month - 1]} {year}"
    wide, tall = 7 * (SHEET_DAY_WIDTH + SHEET_GAP), SHEET_TOP + weeks * (SHEET_DAY_HEIGHT + SHEET_GAP)
    picture = tag(
        "svg",
        heads,
        cells,
        viewBox=f"0 0 {wide} {tall}",
        role="img",
        aria_label=periods[0].noun.say(f"Trips by time on each day of {name}"),
    )
    return tag("figure", tag("figcaption", name), picture)


def _day_chart(period: PeriodFacts, week: int, weekday: int, most: int) -> Html:
    x, base = (
        weekday * (SHEET_DAY_WIDTH + SHEET_GAP),
        SHEET_TOP + week * (SHEET_DAY_HEIGHT + SHEET_GAP) + SHEET_DAY_HEIGHT,
    )
    step = SHEET_DAY_WIDTH / (len(period.profile) - 1)
    points = "".join(
        f"L{x + n * step:.0f},{base - max(value, 0) / most * (SHEET_DAY_HEIGHT - 4):.0f}"
        for n, value in enumerate(period.profile)
    )
    area = tag("path", d=f"M{x},{base}{points}L{x + SHEET_DAY_WIDTH},{base}Z", class_="day")
    frame = tag(
        "rect",
        x=x,
        y=base - SHEET_DAY_HEIGHT,
        width=SHEET_DAY_WIDTH,
        height=SHEET_DAY_HEIGHT,
        rx=3,
        class_="mark sheet",
        data_tip=tip_of(period),
    )
    number = tag("text", period.first.day, x=x + 3, y=base - SHEET_DAY_HEIGHT + 12, class_="muted")
    return tag("g", area, number, frame)


# The running total over the series, with the band that noise leaves: of published periods added up, or measured on its own

TOTAL_WIDTH, TOTAL_HEIGHT, TOTAL_LEFT, TOTAL_BASE, TOTAL_TOP = (
    900,
    320,
    26,
    44,
    10,
)  # pixels; room below for dates in the letters that phones need
SUMMED_LABEL, MEASURED_LABEL = "published periods added up", "measured on its own"
INDEPENDENT_DAYS_LABEL, CONSISTENT_DAYS_LABEL = (
    "days measured one by one, added up",
    "as published, following running totals",
)


def running_chart(
    periods: list[PeriodFacts], added: CumulativeTotals, measured: CumulativeTotals | None, confidence: float
) -> Html | None:
    """The total since the start; below it how far noise may reach, which a line of totals is too thick to show."""
    if len(periods) < 2:
        return None
    shown, noun = measured or added, periods[0].noun
    reach = -float(ndtri((1 - confidence) / 2))
    follows = any(p.span for p in periods)  # then what is published, added up, is what was measured
    widths = {INDEPENDENT_DAYS_LABEL if follows else SUMMED_LABEL: [reach * d for d in added.deviation]}
    if measured is not None:
        widths[CONSISTENT_DAYS_LABEL if follows else MEASURED_LABEL] = [reach * d for d in measured.deviation]
    widths = {name: width for name, width in widths.items() if math.isfinite(width[-1])}
    if not widths:
        return _total_chart(
            periods, {"total": [float(v) for v in shown.total]}, noun.say("Trips since the start")
        )
    last = {name: round(width[-1]) for name, width in widths.items()}
    reaches = "; ".join(f"±\u00a0{width:,} ({name})" for name, width in last.items())
    words = (
        f"{noun.number(shown.total[-1])} since the start. How far noise reaches at {100 * confidence:g} % confidence after "
        f"{len(periods):,} releases: {reaches}."
    )
    totals = _total_chart(
        periods, {"total": [float(v) for v in shown.total]}, noun.say("Trips since the start")
    )
    noise = _total_chart(periods, widths, noun.say("How far noise reaches, in trips"))
    return join(tag("p", words), totals, noise, _total_legend(list(widths)) if len(widths) > 1 else None)


def _total_chart(periods: list[PeriodFacts], lines: dict[str, list[float]], name: str) -> Html:
    most = max(1.0, *(max(values) for values in lines.values()))
    step = (TOTAL_WIDTH - TOTAL_LEFT - 2) / max(len(periods) - 1, 1)

    def path(values: list[float]) -> str:
        points = (
            f"{TOTAL_LEFT + n * step:.1f},{TOTAL_HEIGHT - TOTAL_BASE - v / most * (TOTAL_HEIGHT - TOTAL_BASE - TOTAL_TOP):.1f}"
            for n, v in enumerate(values)
        )
        return "M" + "L".join(points)

    ends = [
        tag(
            "text", f"{most:,.0f}", x=0, y=TOTAL_TOP, dy="1.2em", class_="muted"
        ),  # curves leave that corner free
        tag("text", "0", x=0, y=TOTAL_HEIGHT - TOTAL_BASE + 4, class_="muted"),
        tag("text", periods[0].first, x=TOTAL_LEFT, y=TOTAL_HEIGHT - 10, class_="muted"),
        tag(
            "text",
            periods[-1].last,
            x=TOTAL_WIDTH - 2,
            y=TOTAL_HEIGHT - 10,
            text_anchor="end",
            class_="muted",
        ),
    ]
    axes = [
        tag(
            "line",
            x1=TOTAL_LEFT,
            x2=TOTAL_WIDTH - 2,
            y1=TOTAL_HEIGHT - TOTAL_BASE,
            y2=TOTAL_HEIGHT - TOTAL_BASE,
            class_="axis",
        ),
        tag("line", x1=0, x2=TOTAL_WIDTH - 2, y1=TOTAL_TOP, y2=TOTAL_TOP, class_="grid"),
    ]
    curves = [tag("path", d=path(values), class_=f"curve s{n}") for n, values in enumerate(lines.values())]
    picture = tag(
        "svg", axes, ends, curves, viewBox=f"0 0 {TOTAL_WIDTH} {TOTAL_HEIGHT}", width=TOTAL_WIDTH, height=TOTAL_HEIGHT, role="img", aria_label=name, class_="picture"
    )  # fmt: skip
    return join(tag("h3", name), tag("div", picture, class_="chart running"))


def _total_legend(names: list[str]) -> Html:
    return tag(
        "ul",
        [
            tag(
                "li",
                tag("svg", tag("rect", width=14, height=4, y=5, class_=f"c{n}"), width=14, height=14),
                name,
            )
            for n, name in enumerate(names)
        ],
        class_="legend",
    )


# The statement for one person, in words and as a table

STATEMENT_TEXTS = (
    "Noise protects what one person does. The more releases a person is in, the more all of them together may reveal. This table is "
    "the worst case of all that is published: for a person who is in every release, with as many trips as are counted. ε bounds by how much the releases may "
    "change anybody’s odds of guessing right whether the person is in the data: by at most a factor of e to the power of ε, except with a probability of δ."
)


def person_statement(statement: PrivacyStatement | None, noun: Noun = TRIP_NOUN) -> Html | None:
    """None where no ledger was given."""
    if statement is None:
        return None
    strict = any(w.strict != w.amount for w in statement.windows)
    rows = [
        [_span_charge(w.days), *_charges_table(w, strict), "" if w.start is None else str(w.start)]
        for w in statement.windows
    ]
    head = ["Any", "ε at most", "δ", "Sum", *(["Strict sum"] if strict else []), "Highest from"]
    notes = [tag("p", noun.say(f"{note[0].upper()}{note[1:]}."), class_="note") for note in statement.notes]
    return join(
        tag("p", noun.say(STATEMENT_TEXTS)),
        tag("div", table(head, rows, id="statement"), class_="scroll"),
        notes,
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


def month_table(periods: list[PeriodFacts], confidence: float) -> Html:
    """A row for each month that a release begins in."""
    months: dict[tuple[int, int], list[PeriodFacts]] = {}
    for period in periods:
        months.setdefault((period.first.year, period.first.month), []).append(period)
    reach = -float(ndtri((1 - confidence) / 2))
    rows = []
    for (year, month), of_month in months.items():
        total, width = sum(p.total for p in of_month), reach * variance_of(periods, of_month) ** 0.5
        rows.append(
            [
                f"{MONTH_NAMES[month - 1]} {year}",
                f"{len(of_month):,}",
                f"{total:,}",
                f"± {round(width):,}" if math.isfinite(width) else "none",
                f"{total / len(of_month):,.0f}",
            ]
        )
    noun = periods[0].noun
    head = [
        "Month",
        "Releases",
        noun.say("Trips"),
        f"{100 * confidence:g} % interval",
        noun.say("Trips per release"),
    ]
    return tag("div", table(head, rows, id="by-month"), class_="scroll")


__all__ = ["PeriodFacts", "build", "period_of"]
