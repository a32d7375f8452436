"""What a series gains from its own earlier releases: errors of a day with and without them, as days go by.

Claim: a day learns from the series' earlier releases for free (docs/explanation/earlier.md).

python -m benchmarks prior [--days 2 3 7 8 30] [--epsilon 1] [--city corridor metro moving] [--seeds 3] [--bikes FOLDER]

Generated cities, a sparse and a dense one whose demand persists from day to day, and one where nothing does: trips of a type are drawn afresh about its rate,
weekends have rates of their own, and every day is busier or quieter as a whole. Each is drawn from several seeds. `--bikes` adds a month of a real bike share (the folder that
holds trips.parquet and stations.csv). Every day is measured with the same ε; the prior is made of published noisy answers and costs nothing.
An error is the root of the mean squared error, over all trip types, pairs of stops, or the rows of the table of zones.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.markdown import figure, markdown
from cbdp import ConstraintBased, Dimension, Feature, FeatureDag, Universe, count, periods
from cbdp.estimation.prior import prior_of_earlier_days
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.measurement import Measurement

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CITIES = {
    "corridor": (36, 8, 1_500),
    "metro": (24, 12, 15_000),
    "moving": (24, 12, 15_000),
}  # stops, periods, trips on a weekday
MOVES = "moving"  # where other types are used every day
WEEK, SATURDAY = 7, 5
QUIET = 0.45  # of a weekday's trips on a day of the weekend
STEADY = 60.0  # days vary as a whole by 1/√60
PAIR = ("origin", "destination")


@dataclass(frozen=True, eq=False)
class Days:
    """A city's features and the true trips of each day; days from Monday on."""

    features: FeatureDag
    trips: list[Ints]

    def alike(self, day: int) -> tuple[list[int], list[int]]:
        """The days before that are of the same kind, and the others."""
        kind = day % WEEK >= SATURDAY
        before = range(day)
        return [d for d in before if (d % WEEK >= SATURDAY) is kind], [
            d for d in before if (d % WEEK >= SATURDAY) is not kind
        ]


def city(name: str, days: int, seed: int = 1) -> Days:
    stops, many, trips = CITIES[name]
    rng = np.random.default_rng([len(name), seed])
    place = rng.random((stops, 2))
    apart = np.linalg.norm(place[:, None] - place, axis=2)
    size, t = rng.gamma(1.0, 1.0, (2, stops)), np.arange(many) / many
    pull = (np.outer(*size) * np.exp(-apart / 0.25) * (apart > 0))[:, :, None]
    hours = [np.exp(-(((t - 0.2) / 0.1) ** 2)) + np.exp(-(((t - 0.75) / 0.15) ** 2)) + 0.2]
    hours.append(np.exp(-(((t - 0.55) / 0.25) ** 2)) + 0.1)
    common = rng.lognormal(0.0, 0.8, (stops, stops, many))
    rates = [pull * busy * common * rng.lognormal(0.0, 0.6, common.shape) for busy in hours]
    ends = Dimension([f"s{n}" for n in range(stops)], zone=[f"z{6 * n // stops}" for n in range(stops)])
    universe = Universe(origin=ends, destination=ends, time=range(many))
    features = FeatureDag(
        universe,
        [Feature("time", by="time"), Feature("zone", by=["origin.zone", "destination.zone", "time"])],
    )
    drawn = []
    for day in range(days):
        free = day % WEEK >= SATURDAY
        busy = trips * (QUIET if free else 1.0) * rng.gamma(STEADY, 1 / STEADY)
        rate = rates[free].reshape(-1)
        if name == MOVES:
            rate = rng.permutation(rate)
        drawn.append(rng.poisson(busy * rate / rate.sum()).astype(np.int64))
    return Days(features, drawn)


def bikes(folder: str, days: int) -> Days:
    """Consecutive days of a real bike share from a Monday on, by the hour."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from cbdp.features import odmts
    from cbdp_features.places import distance_bands, stops

    places = stops(f"{folder}/stations.csv", columns={"id": "station_id"}, ids=int)
    universe = Universe(
        origin=places.dimension(), destination=places.dimension(), time=periods("00:00", "24:00", "2h")
    )
    table = pq.read_table(f"{folder}/trips.parquet", columns=["origin", "destination", "start_time"])
    date = pc.cast(table["start_time"], "date32")
    every = sorted(pc.unique(date).to_pylist())
    start = next(n for n, day in enumerate(every) if day.weekday() == 0 and day.month == 9)
    counts = [
        count(table.filter(pc.equal(date, day)), universe, columns={"time": "start_time"}).dense()
        for day in every[start : start + days]
    ]
    return Days(odmts(universe, modes=distance_bands(places)), counts)


def errors(held: Days, day: int, answers: Any, epsilon: str, prior: Floats | None) -> list[float]:
    """Of the trip types, of pairs of stops, and of the zone table."""
    release = ConstraintBased(held.features, epsilon, prior=prior).finish(answers[day])
    assert release.estimate is not None
    off = release.estimate.counts("singleton") - held.trips[day]
    pairs = held.features.universe.partition(PAIR)
    by_pair = np.bincount(pairs.of_every_type(), off, pairs.size)
    zones = held.features.partition("zone")
    by_zone = np.bincount(zones.of_every_type(), off, zones.size)
    return [float(np.sqrt(np.mean(e**2))) for e in (off, by_pair, by_zone)]


def compared(held: Days, days: Sequence[int], epsilon: str, first: int = 0) -> list[list[list[float]]]:
    """For each day, its errors alone and with the days before it; noise is drawn from seeds from the first on."""
    mechanism = ConstraintBased(held.features, epsilon)
    universe = held.features.universe
    answers = [
        [
            m
            for m in mechanism.measure(count(t, universe), InsecureSeededEntropy(first + n))
            if isinstance(m, Measurement)
        ]
        for n, t in enumerate(held.trips)
    ]
    made = []
    for day in (d - 1 for d in days):
        alike, others = held.alike(day)
        found = prior_of_earlier_days(
            held.features, [answers[d] for d in alike], [answers[d] for d in others]
        )
        made.append([errors(held, day, answers, epsilon, prior) for prior in (None, found.weights)])
    return made


def rows(cases: Sequence[Days], days: Sequence[int], epsilon: str) -> list[list[str]]:
    """One row for each day: errors alone → with the days before it, of the mean over cities from several seeds."""
    each = [compared(held, days, epsilon, 1000 * n) for n, held in enumerate(cases)]
    made = []
    for day, (alone, learning) in zip(days, np.mean(each, axis=0), strict=True):
        kind = "weekend" if (day - 1) % WEEK >= SATURDAY else "weekday"
        trips = int(np.mean([held.trips[day - 1].sum() for held in cases]))
        pairs = [f"{figure(a)} → {figure(b)}" for a, b in zip(alone, learning, strict=True)]
        made.append([epsilon, f"{day}, {kind}", f"{trips:,}", *pairs])
    return made


def main(argv: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks prior")
    parser.add_argument("--days", type=int, nargs="+", default=[2, 3, 7, 8, 30])
    parser.add_argument("--epsilon", nargs="+", default=["1"])
    parser.add_argument("--city", nargs="*", choices=list(CITIES), default=list(CITIES))
    parser.add_argument("--seeds", type=int, default=3, help="how many cities of each name")
    parser.add_argument("--bikes", metavar="FOLDER")
    given = parser.parse_args(list(argv))
    most = max(given.days)
    cases = {name: [city(name, most, seed + 1) for seed in range(given.seeds)] for name in given.city}
    if given.bikes:
        cases["bikes"] = [bikes(given.bikes, most)]
    head = ["ε", "day", "trips", "trip types", "pairs of stops", "zones by time"]
    for name, held in cases.items():
        size = held[0].features.universe.size
        print(f"\n**{name}**: {size:,} trip types; alone → with earlier releases\n")
        print(markdown(head, [row for e in given.epsilon for row in rows(held, given.days, e)]), flush=True)
    return 0
