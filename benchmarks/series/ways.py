"""Ways to publish thirty days at the same price for one day of one person. A way is a function in the table `WAYS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.series.data import DailyCase
from cbdp.counting import Counts
from cbdp.estimation.prior import prior_of_earlier_days
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.release.release import Release

Ints = NDArray[np.int64]
SATURDAY = 5
Tables = Mapping[str, Ints]  # feature → counts


@dataclass(frozen=True)
class PublishedSeries:
    """What a way publishes: tables of every day (none, if it publishes no days) and of the month."""

    daily: tuple[Tables, ...] = field(repr=False)
    month: Tables = field(repr=False)


@dataclass(frozen=True)
class Way:
    """How a series is made."""

    about: str
    publish: Callable[[DailyCase, float, int], PublishedSeries]


def tables_of(release: Release) -> dict[str, Ints]:
    """Every published table, single trip types included."""
    return {name: release.counts(name) for name in release.features.features}


def summed(daily: tuple[Tables, ...]) -> dict[str, Ints]:
    return {name: np.sum([day[name] for day in daily], axis=0) for name in daily[0]}


def _release(case: DailyCase, counts: Counts, epsilon: float, seed: int) -> dict[str, Ints]:
    mechanism = ConstraintBased(case.features, epsilon, case.unit)
    return tables_of(mechanism.simulate(counts, seed))


def alone(case: DailyCase, epsilon: float, seed: int) -> PublishedSeries:
    """Every day by itself; the month is the sum of its days."""
    daily = tuple(_release(case, counts, epsilon, 1000 * seed + n) for n, counts in enumerate(case.daily))
    return PublishedSeries(daily, summed(daily))


def with_earlier(case: DailyCase, epsilon: float, seed: int) -> PublishedSeries:
    """Every day learns from the published answers of the days before it, which is free; the month is the sum of its days."""
    mechanism = ConstraintBased(case.features, epsilon, case.unit)
    answers: list[Any] = []
    daily = []
    for n, counts in enumerate(case.daily):
        answers.append(mechanism.measure(counts, InsecureSeededEntropy(1000 * seed + n)))
        finish = mechanism.finish
        if n:
            kinds = [day.weekday() >= SATURDAY for day in case.days[:n]]
            own = case.days[n].weekday() >= SATURDAY
            alike, others = (
                [a for a, kind in zip(answers, kinds, strict=False) if kind is k] for k in (own, not own)
            )
            prior = prior_of_earlier_days(case.features, alike, others).weights
            finish = ConstraintBased(case.features, epsilon, case.unit, prior=prior).finish
        daily.append(tables_of(finish(answers[n])))
    return PublishedSeries(tuple(daily), summed(tuple(daily)))


def month_beside(case: DailyCase, epsilon: float, seed: int) -> PublishedSeries:
    """Half of ε for the days, half for a release of the month. The month's tables are not the sums of the days'."""
    days = alone(case, epsilon / 2, seed)
    return PublishedSeries(days.daily, _release(case, case.month(), epsilon / 2, 1000 * seed + 999))


def month_only(case: DailyCase, epsilon: float, seed: int) -> PublishedSeries:
    """One release of the month, which costs one day of a person as much: what the days could reach at best, added up."""
    return PublishedSeries((), _release(case, case.month(), epsilon, 1000 * seed))


WAYS: dict[str, Way] = {
    "alone": Way("every day by itself, the month as their sum", alone),
    "with earlier": Way("every day learns from the days before it", with_earlier),
    "month beside": Way("half of ε for the days, half for the month", month_beside),
    "month only": Way("one release of the month and no days", month_only),
}
