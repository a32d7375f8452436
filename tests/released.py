"""Releases of every mechanism over a small city, and what it means that two are the same."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cbdp
from cbdp.estimation.posterior import Posterior
from cbdp.mechanisms import Mechanism
from cbdp.release.layout import universe_hash
from cbdp.release.release import Release
from cbdp_features.places import Stops

HIDING = Posterior(revealed=12)  # as if the types were too many to reveal all
jsonschema = pytest.importorskip("jsonschema")  # nothing is loaded without it


def city_features(hours: int = 2) -> cbdp.FeatureDag:
    stops = cbdp.Dimension(["A", "B", "C", "D"], zone=["n", "n", "s", "s"])
    universe = cbdp.Universe(
        origin=stops, destination=stops, time=cbdp.periods("06:00", f"{6 + hours:02d}:00", "1h")
    ).without_equal("origin", "destination")
    modes = np.array([["walk", "bus", "bus", "rail"]] * 4)
    universe = universe.with_attribute("mode", ["origin", "destination"], modes)
    return cbdp.FeatureDag(
        universe,
        [
            cbdp.Feature("time", by="time"),
            cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"]),
            cbdp.Feature("mode", by=["mode", "time"]),
        ],
    )


def counts_of(dag: cbdp.FeatureDag) -> np.ndarray:
    return np.arange(dag.universe.size, dtype=np.int64) % 7 * 5


def prior_weights() -> np.ndarray:
    return 1.0 + np.arange(city_features().universe.size) % 3


def made_by(mechanism: Mechanism, *, secure: bool = True) -> Release:
    counts = counts_of(mechanism.features)
    return mechanism.release(counts) if secure else mechanism.simulate(counts, seed=5)


def person_release() -> Release:
    dag = city_features()
    mechanism = cbdp.ConstraintBased(dag, 2, unit=cbdp.Person("card", 3), budget="geometric")
    trips = {
        "origin": ["A", "B"] * 20,
        "destination": ["C", "D"] * 20,
        "time": ["06:00", "07:00"] * 20,
        "card": list(range(40)),
    }
    return mechanism.release(trips)


MECHANISMS = {
    "constraint-based": lambda: made_by(cbdp.ConstraintBased(city_features(), 1)).with_intervals(0.9),
    "paper": lambda: made_by(cbdp.ConstraintBased(city_features(), 1, preset="paper")).with_intervals(0.9),
    "prior": lambda: made_by(
        cbdp.ConstraintBased(
            city_features(), 1, prior=prior_weights(), prior_source={"file": "w.csv", "sha256": "a" * 64}
        )
    ),
    "target": lambda: made_by(
        cbdp.ConstraintBased(
            city_features(),
            1,
            target={"zone": 2, "singleton": "1/3"},
            expected_trips=900,
            expected_filled=0.8,
        )
    ),
    "sparse posterior": lambda: made_by(
        cbdp.ConstraintBased(city_features(), 1, sparse=True, estimator=HIDING)
    ),
    "sparse": lambda: made_by(cbdp.ConstraintBased(city_features(), "1/3", sparse=True, estimator=HIDING)),
    "in part": lambda: made_by(cbdp.ConstraintBased(city_features(), 1, measured=["singleton", "zone"])),
    "person": person_release,
    "laplace": lambda: made_by(cbdp.Laplace(city_features(), 1)),
    "laplace, sparse": lambda: made_by(cbdp.Laplace(city_features(), 1, law="geometric", sparse=True)),
    "hierarchical": lambda: made_by(cbdp.Hierarchical(city_features(), 1)),
    "stability-histogram": lambda: made_by(cbdp.StabilityHistogram(city_features(), 5, delta="1/1000")),
    "threshold-laplace": lambda: made_by(cbdp.ThresholdLaplace(city_features(), 1, threshold=5)),
}


@cache
def release_of(name: str) -> Release:
    return MECHANISMS[name]()


def simulated_city() -> Release:
    mechanism = cbdp.ConstraintBased(city_features(), 1)
    return mechanism.simulate(np.arange(mechanism.features.universe.size) % 7, 3)


def same_universe(a: cbdp.Universe, b: cbdp.Universe) -> None:
    assert list(a.dimensions) == list(b.dimensions)
    for x, y in zip(a.dimensions.values(), b.dimensions.values(), strict=True):
        assert (x.values, x.edges, x.attributes) == (y.values, y.edges, y.attributes)
        assert [*map(type, x.values)] == [*map(type, y.values)]
    assert list(a.attributes) == list(b.attributes)
    for x, y in zip(a.attributes.values(), b.attributes.values(), strict=True):
        assert (x.name, x.of, x.labels) == (y.name, y.of, y.labels)
        assert [*map(type, x.labels)] == [*map(type, y.labels)]
        assert np.array_equal(x.codes, y.codes)
    assert len(a.zeros) == len(b.zeros)
    assert all(x[0] == y[0] and np.array_equal(x[1], y[1]) for x, y in zip(a.zeros, b.zeros, strict=True))
    assert (a.size, universe_hash(a)) == (b.size, universe_hash(b))


def same(a: Any, b: Any) -> bool:
    """Equal numbers of the same type, or both missing."""
    if a is None or b is None:
        return a is b
    return np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b, equal_nan=True)


def _sorted(m: cbdp.Measurement) -> cbdp.Measurement:
    if m.elements is None:
        return m
    order = np.argsort(m.elements)
    variance = None if m.variance is None else m.variance[order]
    return replace(m, values=m.values[order], variance=variance, elements=m.elements[order])


def same_release(a: Release, b: Release) -> None:
    """Everything a release says is the same in both."""
    same_universe(a.features.universe, b.features.universe)
    assert a.features.features == b.features.features
    assert (a.mechanism, a.claim, a.secure, a.total) == (b.mechanism, b.claim, b.secure, b.total)
    assert same(a.index, b.index)
    assert same(a.value, b.value)
    ours, theirs = a.trips().columns(), b.trips().columns()
    assert list(ours) == list(theirs)
    assert all(list(ours[name]) == list(theirs[name]) for name in ours)
    for name in a.features.features:
        assert same(a.counts(name), b.counts(name))
        if a.estimate is not None:
            assert same(a.estimate.counts(name), b.estimate.counts(name))
    assert (a.estimate is None) == (b.estimate is None)
    if a.estimate is not None:
        assert same(a.estimate.index, b.estimate.index)
        assert a.estimate.solution.certificate == b.estimate.solution.certificate
        assert a.estimate.solution.solver == b.estimate.solution.solver
    assert len(a.measurements) == len(b.measurements)
    for x, y in zip(map(_sorted, a.measurements), b.measurements, strict=True):
        assert (x.feature, x.scale, x.epsilon) == (y.feature, y.scale, y.epsilon)
        assert all(same(getattr(x, f), getattr(y, f)) for f in ("values", "variance", "elements", "floor"))
    assert set(a.tables) == set(b.tables)
    assert (a.confidence, set(a.intervals)) == (b.confidence, set(b.intervals))
    for name, interval in a.intervals.items():
        stored = b.interval(name, a.confidence)
        assert same(interval.low, stored.low)
        assert same(interval.high, stored.high)
    assert (a.places is None) == (b.places is None)
    for f in fields(Stops) if a.places is not None else ():
        x, y = getattr(a.places, f.name), getattr(b.places, f.name)
        assert same(x, y) if isinstance(x, np.ndarray) else x == y


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
