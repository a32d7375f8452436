"""How often 90 % intervals hold the true count, by the size of the true count.

Claim: intervals hold the truly busiest counts as often as all, the sharp ones do not (docs/results/engine-benchmarks.md).

python -m benchmarks covered [--runs 10] [--data corridor night polycentric metro hub sprawl] [--epsilon 1] [--sharp]

Every question is asked of releases of generated demand with `release.ask`: single trip types, pairs of stops, boardings by stop, stops by period, pairs of zones by
period, periods, the total. Beside the share of all counts that are held stand those of at least ten trips, and of the busiest hundred and ten, by the
true count. Counts without an interval are left out and their share is stated. The demand of `sprawl` has too many trip types to list; there only the questions of up to
half a million groups are asked whole, the others of the busiest origins. With --sharp the intervals about the estimate are looked at, which promise less.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.data import dense_city
from benchmarks.harness.elsewhere import NOWHERE, elsewhere
from benchmarks.harness.markdown import markdown
from cbdp.counting.counts import Counts, count
from cbdp.features import Dimension, Feature, FeatureDag, Universe
from cbdp.mechanisms import ConstraintBased
from cbdp.release.ask import grouping_of
from cbdp.release.release import Release

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CONFIDENCE = 0.9
SOME_TRIPS = 10  # counts from which a reader looks at them one by one
MOST_GROUPS = 2**19  # of one question
SIZES = ("all", f"≥ {SOME_TRIPS} trips", "busiest 100", "busiest 10")


def hub(stops: int = 382, periods: int = 3, trips: int = 60_000, zones: int = 12, seed: int = 7) -> Demand:
    """Stops of very unequal size about two centres: a few pairs have hundreds of trips, most have none."""
    rng = np.random.default_rng(seed)
    place = rng.random((stops, 2))
    pull = rng.lognormal(0, 1.4, (2, stops))
    apart = np.hypot(*(place[:, None] - place).transpose(2, 0, 1))
    rate = np.outer(*pull) * np.exp(-apart / 0.25) * rng.lognormal(0, 0.8, (stops, stops))
    np.fill_diagonal(rate, 0.0)
    day = rng.dirichlet(np.full(periods, 4.0))
    many = rng.poisson(trips * rate / rate.sum())
    origin, destination = np.divmod(np.repeat(np.arange(stops**2), many.reshape(-1)), stops)
    time = rng.choice(periods, len(origin), p=day)
    order = np.argsort(place[:, 0], kind="stable")
    zone = np.empty(stops, dtype=np.int64)
    zone[order] = np.arange(stops) * zones // stops
    served = Dimension(range(stops), zone=zone.tolist())
    universe = Universe(origin=served, destination=served, time=range(periods)).without_equal(
        "origin", "destination"
    )
    features = FeatureDag(
        universe,
        [Feature("time", by="time"), Feature("zone", by=["origin.zone", "destination.zone", "time"])],
    )
    return Demand(features, count({"origin": origin, "destination": destination, "time": time}, universe))


def sprawl() -> Demand:
    """The same with 1,500 stops and 12 periods: 27 million trip types, too many to list."""
    return hub(1500, 12, 60_000, 20, 8)


def metro() -> Demand:
    """A dense metro."""
    made = dense_city(60)
    return Demand(made.features, count(made.truth, made.features.universe))


@dataclass(frozen=True, eq=False)
class Demand:
    """Features, and the true counts."""

    features: FeatureDag
    counts: Counts


DATA: dict[str, Callable[[], Demand]] = {"metro": metro, "hub": hub, "sprawl": sprawl}


def demand(name: str) -> Demand:
    if name in NOWHERE:
        features, truth = elsewhere(name)
        return Demand(features, count(truth, features.universe))
    return DATA[name]()


QUESTIONS: dict[str, tuple[str, ...]] = {
    "single types": ("origin", "destination", "time"),
    "pairs of stops": ("origin", "destination"),
    "boardings by stop": ("origin",),
    "stops by period": ("origin", "time"),
    "pairs of zones by period": ("origin.zone", "destination.zone", "time"),
    "pairs of zones": ("origin.zone", "destination.zone"),
    "zone to stop": ("origin.zone", "destination"),
    "periods": ("time",),
    "total": (),
}


def condition(counts: Counts, by: tuple[str, ...]) -> dict[object, object]:
    """The busiest origins, so many that the answer is not too long."""
    universe = counts.universe
    groups = 1
    for name in by:
        groups *= len(universe.attribute(name).labels)
    if groups <= MOST_GROUPS:
        return {}
    stops = universe.dimensions["origin"].values
    trips = np.bincount(universe.unrank_codes(counts.index)[0], counts.value, len(stops))
    busiest = np.argsort(-trips, kind="stable")[: max(1, len(stops) * MOST_GROUPS // groups)]
    return {"origin": [stops[s] for s in sorted(busiest)]}


@dataclass(frozen=True, eq=False)
class Held:
    """Of one question (rows: releases): whether intervals hold the truth, which counts have one, and the truth."""

    held: Flags
    told: Flags
    truth: Floats

    def share(self, which: Flags | slice | NDArray[np.int64]) -> float:
        """The share held of those counts that have an interval; NaN where none has."""
        told = self.told[:, which]
        return float(self.held[:, which].sum() / told.sum()) if told.any() else float("nan")

    def by_size(self) -> list[float]:
        order = np.argsort(-self.truth, kind="stable")
        return [
            self.share(slice(None)),
            self.share(self.truth >= SOME_TRIPS),
            self.share(order[:100]),
            self.share(order[:10]),
        ]


def covered(
    mechanism: ConstraintBased, counts: Counts, runs: int, sharp: bool, note: str = "", first: int = 0
) -> dict[str, Held]:
    """Coverage of every question, over so many releases."""
    where = {name: condition(counts, by) for name, by in QUESTIONS.items()}
    rows: dict[str, list[tuple[Flags, Flags]]] = {name: [] for name in QUESTIONS}
    truth: dict[str, Floats] = {}
    for seed in range(first, first + runs):
        print(f"\r{note}: release {seed + 1 - first} of {runs}", end="", file=sys.stderr, flush=True)
        release = mechanism.simulate(counts, seed)
        for name, by in QUESTIONS.items():
            if name not in truth:
                grouping = grouping_of(release, by, where[name])
                truth[name] = grouping.added(counts.index, counts.value).astype(float)
            rows[name].append(_held(release, by, where[name], truth[name], sharp))
    print(file=sys.stderr)
    return {
        name: Held(np.array([h for h, _ in seen]), np.array([t for _, t in seen]), truth[name])
        for name, seen in rows.items()
    }


def _held(
    release: Release, by: tuple[str, ...], where: dict[object, object], truth: Floats, sharp: bool
) -> tuple[Flags, Flags]:
    answer = release.ask(by, where or None, CONFIDENCE, sharp=sharp)
    low, high = (np.asarray(answer[end], dtype=float) for end in ("low", "high"))
    told = ~np.isnan(low)
    return told & (low <= truth) & (truth <= high), told


def main(argv: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks covered")
    names = (*NOWHERE, *DATA)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--data", nargs="+", choices=names, default=list(names))
    parser.add_argument("--epsilon", nargs="+", default=["1"])
    parser.add_argument("--preset", default="best")
    parser.add_argument("--sharp", action="store_true")
    given = parser.parse_args(list(argv))
    table: list[list[str]] = []
    for name in given.data:
        made = demand(name)
        for epsilon in given.epsilon:
            mechanism = ConstraintBased(made.features, epsilon, preset=given.preset)
            found = covered(mechanism, made.counts, given.runs, given.sharp, f"{name}, ε = {epsilon}")
            for words, held in found.items():
                shares = ["–" if np.isnan(s) else f"{100 * s:.1f} %" for s in held.by_size()]
                table.append([name, epsilon, words, f"{len(held.truth):,}", *shares])
    print(
        f"{given.runs} releases each; counts of at least {SOME_TRIPS} trips and the busiest by their true count.\n"
    )
    print(markdown(["data", "ε", "question", "counts", *SIZES], table))
    return 0
