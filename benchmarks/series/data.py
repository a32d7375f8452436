"""The days of a series: what is counted, and the truth of every day."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

import numpy as np

import cbdp
from benchmarks.harness.data import BIKES
from cbdp.counting import Counts
from cbdp.counting.plan import ServiceDays
from cbdp.datasets import ann_arbor
from cbdp.features import FeatureDag, Universe, odmts, periods
from cbdp.privacy.unit import Person, Unit
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
