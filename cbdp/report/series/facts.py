"""What the page shows of each release of a series: little enough that a year of them fits on one page."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from scipy.special import ndtri

from cbdp.errors import InputError
from cbdp.estimate.combined import combined
from cbdp.features.grouping import Grouping
from cbdp.release.about import Dates
from cbdp.release.release import Release

LONGEST = 200  # values along a little chart


@dataclass(frozen=True)
class PeriodFacts:
    """One release: its days, its published trips with their interval, the variance of their noise, and trips by time.

    >>> day = dt.date(2026, 3, 2)
    >>> PeriodFacts(day, day, total=1200, low=1188, high=1212, variance=53.0).total
    1200
    """

    first: dt.date
    last: dt.date
    total: int
    low: int
    high: int
    variance: float
    profile: tuple[int, ...] = ()
    preliminary: bool = False

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
    count, low, high = (int(np.asarray(asked[name])[0]) for name in ("count", "low", "high"))
    return PeriodFacts(
        first,
        last or first,
        count,
        low,
        high,
        _variance(release, low, high, confidence),
        _profile(release),
        preliminary,
    )


def _variance(release: Release, low: int, high: int, confidence: float) -> float:
    best = combined(release, Grouping(release.features.universe, ()))
    if best.told[0]:
        return float(best.variance[0])
    return float(((high - low) / 2 / -ndtri((1 - confidence) / 2)) ** 2)


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


def running(periods: list[PeriodFacts]) -> Running:
    """Published periods added up: their noise is independent, so variances add."""
    return Running(
        tuple(accumulate(p.total for p in periods)),
        tuple(float(v) ** 0.5 for v in accumulate(p.variance for p in periods)),
    )
