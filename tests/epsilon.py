"""A statistical lower bound on ε from runs of a whole mechanism on two neighbouring data sets.

A run works on many *parts*: copies of one tiny data set over ⟨stop⟩, kept apart by a dimension `part`. With the features
`part` and `singleton` measured, no answer mixes two parts, so a run is as many independent trials as there are parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import cbdp
from cbdp.mechanisms import Mechanism
from cbdp.noise import InsecureSeededEntropy

ALPHA = 1e-6
PARTS = 2000
STOPS = ["A", "B"]
DAG = cbdp.FeatureDag(cbdp.Universe(part=list(range(PARTS)), stop=STOPS), [cbdp.Feature("part", by="part")])
MEASURED = ["part", "singleton"]
Trips = Sequence[tuple[str, str]]  # a tiny data set: (person, stop) of each trip


def lower_bound(
    events_1: NDArray[np.bool_], events_2: NDArray[np.bool_], delta: float = 0.0, alpha: float = ALPHA
) -> float:
    """Clopper–Pearson, Bonferroni over the events (columns) and both directions: ε is at least this, up to alpha."""
    n1, n2 = len(events_1), len(events_2)
    level = alpha / (4 * events_1.shape[1])
    best = 0.0
    for k1, k2 in zip(events_1.sum(axis=0), events_2.sum(axis=0), strict=True):
        for (a, n), (b, m) in (((k1, n1), (k2, n2)), ((k2, n2), (k1, n1))):
            low = stats.beta.ppf(level, a, n - a + 1) if a else 0.0
            high = stats.beta.ppf(1 - level, b + 1, m - b) if b < m else 1.0
            if low > delta:
                best = max(best, math.log((low - delta) / high))
    return best


def attack(
    mechanism: Mechanism, one: Trips, two: Trips, *, seed: int, runs: int = 30, delta: float = 0.0
) -> float:
    """Run the whole mechanism on both data sets and bound ε by events on what it publishes."""
    entropy = InsecureSeededEntropy(seed)
    exact = [np.array([sum(stop == s for _, stop in trips) for s in STOPS]) for trips in (one, two)]
    found = [
        np.concatenate([_events(mechanism, _table(trips), exact, entropy) for _ in range(runs)])
        for trips in (one, two)
    ]
    return lower_bound(found[0], found[1], delta)


def _table(trips: Trips) -> dict[str, list[object]]:
    part = [p for p in range(PARTS) for _ in trips]
    card = [f"{who}{p}" for p in range(PARTS) for who, _ in trips]
    return {"part": part, "stop": [stop for _, stop in trips] * PARTS, "card": card}


def _events(
    mechanism: Mechanism,
    table: dict[str, list[object]],
    exact: list[NDArray[np.int64]],
    entropy: InsecureSeededEntropy,
) -> NDArray[np.bool_]:
    counts = cbdp.count(table, DAG.universe, unit=mechanism.protects, entropy=entropy)
    release = mechanism.run(counts, entropy)
    score = np.zeros(PARTS)  # the log-likelihood ratio of the published measurements
    for m in release.measurements:
        values = m.values.reshape(PARTS, -1)
        c1, c2 = (c if values.shape[1] == len(STOPS) else c.sum(keepdims=True) for c in exact)
        score += (np.abs(values - c2) - np.abs(values - c1)).sum(axis=1) / float(m.scale)
    leaves = release.counts("singleton").reshape(PARTS, -1)
    most = float(mechanism.spent)
    events = [score >= t * most for t in (0.999, 0.5, 0.0, -0.999)]
    events += [leaves[:, 0] >= t for t in (1, 2, 3, 5)] + [leaves.sum(axis=1) >= t for t in (1, 2, 3, 5)]
    return np.stack(events, axis=1)
