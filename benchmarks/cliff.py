"""How much less sharp is a release where trip types are too many to list than where they are listed, on the same universe?

Claim: up to 2²⁴ trip types nothing is lost where they are not listed (docs/explanation/universes.md).

python -m benchmarks cliff [--types 1e5 1e6 1e7] [--trips 0.02 0.5] [--epsilon 1 0.1] [--runs 3] [--revealed 0.25 0.0625]

A generated city of as many trip types as asked for, with so many trips for each type on average: stops of very unequal size in zones, a quarter
of them closed, trips between near zones more often. The engine is made to list the types, and not to, and the errors are compared: root mean
squares by trip type, by stop (no table tells stops apart), by pair of zones and time, and the trips at closed stops. Types that are not
listed are all revealed where memory allows it; `--revealed` makes the engine do with a share of them, as it does beyond.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.markdown import markdown
from cbdp.estimation.posterior import Posterior
from cbdp.estimation.posterior.settings import TUNING
from cbdp.features import SINGLETON, Dimension, Feature, FeatureDag, Universe
from cbdp.mechanisms import ConstraintBased

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PERIODS, MOST = 20, 1.05
LARGE = 5e6  # trip types from which one run has to do
ERRORS = ("trip types", "stops", "zones", "closed stops")


def generated(types: float, each: float, seed: int) -> tuple[FeatureDag, Ints, NDArray[np.bool_]]:
    """The features, the trips of every type, and which stops are closed."""
    rng = np.random.default_rng(seed)
    stops = math.ceil(math.sqrt(types / PERIODS))
    zones = max(3, stops // 20)
    zone = np.sort(rng.integers(0, zones, stops))
    place = Dimension(range(stops), zone=zone.tolist())
    universe = Universe(origin=place, destination=place, time=range(PERIODS)).without_equal(
        "origin", "destination"
    )
    by = ["origin.zone", "destination.zone", "time"]
    features = FeatureDag(universe, [Feature("time", by="time"), Feature("zone", by=by)])
    busy = rng.lognormal(0, 1.2, stops)
    closed = rng.random(stops) < 0.25
    busy[closed] = 0.0
    day = (
        0.2 + np.exp(-(((np.arange(PERIODS) - 4) / 2) ** 2)) + np.exp(-(((np.arange(PERIODS) - 14) / 3) ** 2))
    )
    o, d, t = universe.unrank_codes(np.arange(universe.size))
    rate = busy[o] * busy[d] * day[t] * np.exp(-np.abs(zone[o] - zone[d]) / (zones / 4))
    rate *= rng.lognormal(0, 0.8, (stops, stops))[o, d]  # pairs have habits of their own
    return features, rng.poisson(each * universe.size * rate / rate.sum()).astype(np.int64), closed


def errors(
    features: FeatureDag,
    truth: Ints,
    closed: NDArray[np.bool_],
    epsilon: str,
    estimator: Posterior | None,
    runs: int,
) -> tuple[Floats, float]:
    """By kind of count, the error over the runs; and the share of the types that is revealed. Without an estimator types are listed."""
    origin = features.universe.unrank_codes(np.arange(features.universe.size))[0]
    zone = features.cells.element_of_cell["zone"][features.cell_of_leaf]
    stops, zones = np.bincount(origin, truth), np.bincount(zone, truth)
    mechanism = ConstraintBased(features, epsilon, sparse=estimator is not None, estimator=estimator)
    found, shown = list[list[float]](), list[float]()
    for seed in range(runs):
        release = mechanism.simulate(truth, seed)
        estimate = release.estimate
        assert estimate is not None
        shown.append(len(release.measurements[-1].values) / features.universe.size)
        made = estimate.counts(SINGLETON)
        by_stop = np.bincount(origin, made)
        off = (made - truth, by_stop - stops, estimate.counts("zone") - zones)
        found.append([*(float(np.mean(x**2)) for x in off), float(by_stop[closed].sum()) ** 2])
    over_runs: Floats = np.sqrt(np.mean(found, axis=0))
    return over_runs, float(np.mean(shown))


def main(argv: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks cliff")
    parser.add_argument("--types", nargs="+", type=float, default=[1e5, 1e6, 1e7])
    parser.add_argument("--trips", nargs="+", type=float, default=[0.02, 0.5], help="of a type, on average")
    parser.add_argument("--epsilon", nargs="+", default=["1", "0.1"])
    parser.add_argument("--runs", type=int, default=3, help=f"one from {LARGE:.0e} types on")
    parser.add_argument(
        "--revealed", nargs="+", type=float, help="share of the types, instead of the engine's own choice"
    )
    given = parser.parse_args(list(argv))
    rows, above = list[list[str]](), 0
    for types in given.types:
        runs = 1 if types >= LARGE else given.runs
        for each in given.trips:
            city = generated(types, each, seed=int(types) % 997)
            for epsilon in given.epsilon:
                listed, _ = errors(*city, epsilon, None, runs)
                for way in _ways(city[0], given.revealed):
                    not_listed, shown = errors(*city, epsilon, way, runs)
                    ratio = not_listed / np.maximum(listed, 1e-9)
                    above += int((ratio > MOST).sum())
                    rows.append([
                        f"{city[0].universe.size:,}", f"{each:g}", epsilon, f"{shown:.3g}",
                        *(f"{a:.3g} → {b:.3g} ({r:.2f})" for a, b, r in zip(listed, not_listed, ratio, strict=True)),
                    ])  # fmt: skip
    print("Listed → not listed (ratio).\n")
    print(markdown(["trip types", "trips of each", "ε", "revealed", *ERRORS], rows))
    print(f"\nAbove {MOST}: {above} of {len(rows) * len(ERRORS)}.")
    return 0


def _ways(features: FeatureDag, shares: Sequence[float] | None) -> Iterator[Posterior]:
    """The estimator as it is, or made to reveal about such a share of the types, if none has trips."""
    if shares is None:
        yield Posterior()
    for share in shares or ():
        yield Posterior(revealed=round(share / TUNING.max_revealed_share * features.universe.size))
