"""What tables for days and for stops are worth, and what they cost the others: errors with and without them.

Claim: tables for days mend errors of hundreds of trips; tables for stops are a choice (docs/results/tables.md).

python -m benchmarks dimensions [--runs 4] [--epsilon 1 0.1] [--city corridor metro]

Two generated cities, one sparse and one dense, each on one kind of day and on three. An error is the root of the mean squared error of
the estimates of a grouping, over runs from seeds, with ε shared as the budget "balanced" shares it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.markdown import figure, markdown
from cbdp import ConstraintBased, Dimension, Feature, FeatureDag, Universe
from cbdp.features import odmts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DAYS = {"weekday": 1.0, "saturday": 0.55, "sunday": 0.35}  # and how busy each is
CITIES = {"corridor": (40, 12, 6_000), "metro": (30, 20, 45_000)}  # stops, periods, trips on a weekday
STOPS = (Feature("origin", by="origin"), Feature("destination", by="destination"))
DAY, DAY_TIME = Feature("day", by="day"), Feature("day-time", by=["day", "time"])
PAIR = ["origin.zone", "destination.zone"]
ASKED: Mapping[str, list[str]] = {
    "total": [], "time": ["time"], "zone": [*PAIR, "time"], "day": ["day"], "day-time": ["day", "time"],
    "origin": ["origin"], "stop pair": ["origin", "destination"], "trip type": ["origin", "destination", "day", "time"],
}  # fmt: skip


def city(name: str, days: Sequence[str]) -> tuple[Universe, Ints]:
    """Gravity along a line or in the plane, with a direction that turns over the day; on other days other hours are busy."""
    stops, periods, trips = CITIES[name]
    rng = np.random.default_rng(len(name))
    place = rng.random((stops, 2)) * (1.0, 0.05 if name == "corridor" else 1.0)
    place = place[np.argsort(place[:, 0])]
    size, t = rng.gamma(1.0, 1.0, (2, stops)), np.arange(periods) / periods
    apart = np.linalg.norm(place[:, None] - place, axis=2)
    pull = size[0][:, None] * size[1] * np.exp(-apart / 0.25) * (apart > 0)
    inward = np.sign(place[None, :, 0] - place[:, None, 0])[:, :, None, None]
    busy = {"weekday": np.exp(-(((t - 0.2) / 0.1) ** 2)) + np.exp(-(((t - 0.75) / 0.15) ** 2)) + 0.2}
    hours = np.array([busy.get(day, np.exp(-(((t - 0.55) / 0.25) ** 2)) + 0.1) for day in days])
    share = np.array([DAYS[day] for day in days])[:, None] * hours / hours.sum(axis=1, keepdims=True)
    rate = pull[:, :, None, None] * share * np.exp(0.8 * inward * np.cos(2 * np.pi * t))
    rate *= rng.lognormal(0.0, 1.0, rate.shape)
    ends = Dimension([f"s{n}" for n in range(stops)], zone=[f"z{8 * n // stops}" for n in range(stops)])
    universe = Universe(origin=ends, destination=ends, day=list(days), time=range(periods))
    every = trips * sum(DAYS[day] for day in days)
    return universe, rng.poisson(every * rate / rate.sum()).astype(np.int64).reshape(-1)


def choices(universe: Universe) -> dict[str, FeatureDag]:
    """Sets of tables to compare; that of the preset has a star."""
    made = {n: f for n, f in odmts(universe, level=4).features.items() if n not in ("total", "singleton")}
    plain = [f for n, f in made.items() if not n.startswith("day")]
    sets = {"time, zone": plain, "and stops": [*plain, *STOPS]}
    if len(universe.dimensions["day"]) > 1:
        sets |= {"and day": [*plain, DAY], "and day-time": [*plain, DAY_TIME]}
        sets |= {
            "and day, day-time": [*plain, DAY, DAY_TIME],
            "and both, and stops": [*plain, DAY, DAY_TIME, *STOPS],
        }
    return {
        n + (" *" if set(f) == set(made.values()) else ""): FeatureDag(universe, f) for n, f in sets.items()
    }


def errors(features: FeatureDag, truth: Ints, epsilon: str, runs: int) -> list[float]:
    """By grouping, in trips."""
    mechanism, squares = ConstraintBased(features, epsilon), np.zeros((runs, len(ASKED)))
    partitions = [features.universe.partition(by) for by in ASKED.values()]
    groups = [p.of_every_type() for p in partitions]
    for seed in range(runs):
        estimate = mechanism.simulate(truth, seed).estimate
        assert estimate is not None
        off = estimate.counts("singleton") - truth
        squares[seed] = [
            np.mean(np.bincount(g, off, p.size) ** 2) for g, p in zip(groups, partitions, strict=True)
        ]
    return [float(e) for e in np.sqrt(squares.mean(axis=0))]


def main(argv: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks dimensions")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--epsilon", nargs="+", default=["1", "0.1"])
    parser.add_argument("--city", nargs="+", choices=list(CITIES), default=list(CITIES))
    given = parser.parse_args(list(argv))
    for name in given.city:
        for days in (["weekday"], list(DAYS)):
            universe, truth = city(name, days)
            said = f"{len(days)} kind{'s' if len(days) > 1 else ''} of day"
            print(f"\n**{name}, {said}**: {truth.sum():,} trips, {universe.size:,} trip types\n")
            rows = [
                [epsilon, label, *map(figure, errors(features, truth, epsilon, given.runs))]
                for epsilon in given.epsilon
                for label, features in choices(universe).items()
            ]
            print(markdown(["ε", "tables", *ASKED], rows), flush=True)
    return 0
