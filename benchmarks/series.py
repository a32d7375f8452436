"""Thirty days as a series: error per day and per month, by how the series is made, with the statement for one person.

Claim: which way to publish a series tells days best, and which months (docs/explanation/series.md).

    python -m benchmarks series --data ../shared/data --days 30

A way to publish them is a function and a row of `WAYS`.
"""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cbdp
from benchmarks.harness.attacked_series import AsSeries
from benchmarks.harness.data import BIKES
from cbdp.counting import Counts
from cbdp.counting.plan import ServiceDays
from cbdp.datasets import ann_arbor
from cbdp.estimation.prior import prior_of_earlier_days
from cbdp.features import FeatureDag, Universe, odmts, periods
from cbdp.mechanisms import ConstraintBased, Laplace
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.unit import Person, Unit
from cbdp.release.release import Release
from cbdp.text import aligned
from cbdp_features.places import distance_bands, stops

MARCH, SEPTEMBER = dt.date(2026, 3, 2), dt.date(2014, 9, 1)  # Mondays


@dataclass(frozen=True, eq=False)
class DailyCase:
    """Days that follow each other, with the true counts of each."""

    name: str
    features: FeatureDag
    unit: Unit
    first: dt.date
    daily: tuple[Counts, ...] = field(repr=False)

    @property
    def days(self) -> list[dt.date]:
        return [self.first + dt.timedelta(days=n) for n in range(len(self.daily))]

    def month(self) -> Counts:
        """All days together, as if they were one."""
        total = np.sum([counts.dense() for counts in self.daily], axis=0)
        index = np.flatnonzero(total).astype(np.int64)
        return Counts(self.features.universe, index, total[index], self.unit)


def city(days: int, max_trips: int) -> DailyCase:
    """The generated city from 8 to 10, drawn anew for every day: weekdays and weekends as the case study has them."""
    made = [
        ann_arbor(
            seed=n,
            day="weekend" if (MARCH + dt.timedelta(days=n)).weekday() > 4 else "weekday",
            hours=("08:00", "10:00"),
        )
        for n in range(days)
    ]
    features, unit = made[0].features(), Person("card", max_trips, per="day")
    daily = []
    for one in made:
        index = np.flatnonzero(truth := one.counts()).astype(np.int64)
        daily.append(Counts(features.universe, index, truth[index].astype(np.int64), unit))
    return DailyCase("generated city, 8–10 am", features, unit, MARCH, tuple(daily))


def bikes(folder: str, days: int, max_trips: int, first: dt.date = SEPTEMBER) -> DailyCase:
    """Real trips of a bike share from a day of 2014 on. It names no persons: bounding drops nothing here."""
    import pyarrow.parquet as pq

    place = f"{folder}/{BIKES}"
    stations = stops(f"{place}/stations.csv", columns={"id": "station_id"}, ids=int)
    universe = Universe(
        origin=stations.dimension(), destination=stations.dimension(), time=periods("00:00", "24:00", "30min")
    )
    features = odmts(universe, modes=distance_bands(stations))
    table = pq.read_table(f"{place}/trips.parquet", columns=["origin", "destination", "start_time"])
    unit = Person("card", max_trips, per="day")
    daily = []
    for n in range(days):
        day = first + dt.timedelta(days=n)
        found = cbdp.count(table, universe, columns={"time": "start_time"}, days=ServiceDays(day, day))
        daily.append(Counts(universe, found.index, found.value, unit))
    return DailyCase(f"bike share, {first:%B %Y}", features, unit, first, tuple(daily))


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


@dataclass(frozen=True)
class SeriesErrors:
    """By table: the sum of all deviations of its counts as a share of the trips; of every day, and of the month."""

    daily: Mapping[str, tuple[float, ...]] = field(repr=False)  # empty where no days are published
    month: Mapping[str, float]

    def day(self, feature: str) -> float | None:
        """Of the mean day."""
        found = self.daily.get(feature)
        return float(np.mean(found)) if found else None

    def last(self, feature: str, days: int = 5) -> float | None:
        """Of the mean of the last days, where what was learned from earlier ones shows."""
        found = self.daily.get(feature)
        return float(np.mean(found[-days:])) if found else None


def errors_of(case: DailyCase, published: PublishedSeries) -> SeriesErrors:
    names = list(case.features.features)
    daily = {
        name: tuple(
            _error(case.features, counts, tables, name)
            for counts, tables in zip(case.daily, published.daily, strict=True)
        )
        for name in (names if published.daily else ())
    }
    month = case.month()
    return SeriesErrors(daily, {name: _error(case.features, month, published.month, name) for name in names})


def _error(features: FeatureDag, truth: Counts, tables: Tables, name: str) -> float:
    true = truth.of(features, name)
    return float(np.abs(tables[name] - true).sum() / max(1, true.sum()))


def lines_of(case: DailyCase, epsilon: float, found: Mapping[str, SeriesErrors]) -> Iterator[str]:
    trips = sum(int(counts.value.sum()) for counts in case.daily)
    yield ""
    yield (
        f"{case.name}: {len(case.daily)} days, {trips:,} trips, {case.features.universe.size:,} types; "
        f"ε = {epsilon:g} for {case.unit}"
    )
    yield "sum of all deviations as a share of the trips: of the mean day, of the last five days, of the month"
    names = list(case.features.features)
    rows = [("way", *(f"{name}{part}" for name in names for part in ("", " last", " month")))]
    for way, errors in found.items():
        figures = [
            value for name in names for value in (errors.day(name), errors.last(name), errors.month[name])
        ]
        rows.append((way, *("–" if value is None else f"{value:.4f}" for value in figures)))
    yield from aligned(rows, right=range(1, len(rows[0])))
    yield "what the daily releases cost one person:"
    series = AsSeries(
        Laplace(case.features, epsilon, case.unit), [ServiceDays(day, day) for day in case.days]
    )
    for worst in series.statement().windows:
        length = "all days together" if worst.days is None else f"any {worst.days} days"
        yield f"  {length}: ε {worst.amount}; ({worst.shown}, {float(worst.delta):.2g}) by accounting"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks series", description=__doc__)
    parser.add_argument(
        "--data", help="folder with bayarea_bike_2014; without it only the generated city is run"
    )
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument(
        "--from",
        dest="first",
        type=dt.date.fromisoformat,
        default=SEPTEMBER,
        help="the first day of the bikes",
    )
    parser.add_argument(
        "--epsilon", type=float, default=1.0, help="of each day, for what one person does on it"
    )
    parser.add_argument("--max-trips", type=int, default=2, help="of one person on one day (default 2)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--way", action="append", help=f"only these: {', '.join(WAYS)}")
    options = parser.parse_args(argv)
    cases = [city(options.days, options.max_trips)]
    if options.data:
        cases.append(bikes(options.data, options.days, options.max_trips, options.first))
    for case in cases:
        found = {}
        for name in options.way or WAYS:
            published = WAYS[name].publish(case, options.epsilon, options.seed)
            found[name] = errors_of(case, published)
        print("\n".join(lines_of(case, options.epsilon, found)), flush=True)
    return 0
