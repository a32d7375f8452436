"""What the page shows of each release of a series: little enough that a year of them fits on one page."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from cbdp.errors import InputError
from cbdp.estimate.combined import combined
from cbdp.estimate.running import weighed
from cbdp.features import TOTAL
from cbdp.features.grouping import Grouping
from cbdp.privacy.running import STRATEGIES
from cbdp.release.about import Dates
from cbdp.release.counted import TRIPS, Noun, counted
from cbdp.release.release import Release
from cbdp.release.words import left_out

NO_INTERVAL = "no interval: no measured table tells the total"
LONGEST = 200  # values along a little chart


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
    noun: Noun = TRIPS  # what is counted
    left_out: str = ""  # that trips of a person beyond a bound do not count, where it is so

    @property
    def name(self) -> str:
        return str(Dates(self.first, self.last))


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
        _span(release),
        counted(release.features.universe),
        left_out(release.claim.unit, counted(release.features.universe)),
    )


def _span(release: Release) -> SpanFacts | None:
    part = release.running
    own = next((m for m in release.measurements if m.feature == TOTAL and m.variance is not None), None)
    if part is None or TOTAL not in part.tables or own is None or own.variance is None:
        return None
    table = part.tables[TOTAL]
    noise = table.law.variance(), float(own.variance[0]), table.deviation
    return SpanFacts(part.first, part.number, part.periods, part.strategy, *noise)


def _variance(release: Release) -> float:
    return float(combined(release, Grouping(release.features.universe, ())).variance[0])


def _profile(release: Release) -> tuple[int, ...]:
    """Published trips along the time of day, where the universe tells it."""
    for name, dimension in release.features.universe.dimensions.items():
        if dimension.edges is not None and 2 <= len(dimension) <= LONGEST:
            added = Grouping(release.features.universe, (name,)).added(release.index, release.value)
            return tuple(int(n) for n in added)
    return ()


@dataclass(frozen=True)
class Running:
    """The trips since the start after each period, and the deviation of their noise."""

    total: tuple[int, ...]
    deviation: tuple[float, ...]


def measured(periods: list[PeriodFacts]) -> Running | None:
    """The same with the noise of running totals that were measured; None where there are none, or they begin later."""
    if not all(p.span is not None for p in periods):
        return None
    done, before, found = 0.0, periods[0], []
    for period in periods:
        assert period.span is not None
        assert before.span is not None
        if period.span.first != before.span.first:  # spans are measured apart: variances add
            done += before.span.deviation**2
        found.append((done + period.span.deviation**2) ** 0.5)
        before = period
    return Running(tuple(accumulate(p.total for p in periods)), tuple(found))


def variance_of(periods: list[PeriodFacts], chosen: list[PeriodFacts]) -> float:
    """That of the noise of some neighbouring periods together: the difference of two running totals, where there are any."""
    variance = 0.0
    for first in dict.fromkeys(p.span.first if p.span else None for p in chosen):
        own = [p for p in chosen if (p.span.first if p.span else None) == first]
        every = [p for p in periods if p.span and p.span.first == first]
        whole = [p.span.number for p in every if p.span] == list(range(1, len(every) + 1))
        if first is None or not whole:
            variance += sum(p.variance for p in own)
            continue
        ends = [p.span.number for p in (own[0], own[-1]) if p.span]
        variance += _between(tuple(p.span for p in every if p.span), ends[0] - 1, ends[1])
    return variance


def _between(spans: tuple[SpanFacts, ...], start: int, end: int) -> float:
    """That of the total after `end` periods of a span less that after `start`."""
    sums = STRATEGIES[spans[0].strategy](spans[0].periods)
    rows, own = spans[0].row_variance, [s.own_variance for s in spans]
    before = weighed(sums, rows, own[:start]) if start else None
    return weighed(sums, rows, own[:end]).less(before).variance


def running(periods: list[PeriodFacts]) -> Running:
    """Published periods added up: their noise is independent, so variances add."""
    return Running(
        tuple(accumulate(p.total for p in periods)),
        tuple(float(v) ** 0.5 for v in accumulate(p.variance for p in periods)),
    )
