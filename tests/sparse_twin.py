"""A small universe many times over, whose noise is drawn on demand or all at once; what is compared, and mutants.

Laws are compared over independent runs. One call makes them all: a dimension `run` keeps copies of a small universe apart,
every feature groups by it, and floors of a run depend on what that run has revealed. The twin noises every type, then
reads off. All comparisons are of how often an event happens in two samples, by Fisher's exact test.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from scipy import stats

import cbdp
from cbdp import Feature, FeatureDag, Measurement, Universe
from cbdp.features import Dimension
from cbdp.measuring.answers import ALL_HIDDEN_THRESHOLD, SparseThresholdedAnswer
from cbdp.measuring.samplers import sampler_of
from cbdp.measuring.samplers.laplace import GeometricSampler
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import NoiseDistribution, noise_distribution

ALPHA = 1e-6
RUNS = 20_000
FEWER = 4_000  # runs that suffice to catch a mutant
SCALE = Fraction(2)
LAW = GeometricSampler(SCALE)
UNSEEN = -128


@cache
def city(runs: int) -> FeatureDag:
    """A universe of 240 types a run: 2 features that cross, one of a pair, a structural zero, a dimension none touches."""
    stops = Dimension("ABCDE")
    universe = Universe(
        run=range(runs), origin=stops, destination=stops, time=["am", "pm", "night"], kind=range(4)
    )
    universe = universe.without_equal("origin", "destination")
    universe = universe.with_attribute(
        "mode", ["origin", "destination"], lambda o, d: (ord(o) + ord(d)) % 3 == 0
    )
    between = [
        Feature("run", by="run"),
        Feature("time", by=["run", "time"]),
        Feature("mode", by=["run", "mode"]),
    ]
    return FeatureDag(universe, between)


TYPES = city(1).universe.size
CELLS = city(1).cells.size
CELL = city(1).cell_of_leaf
SIZES = city(1).cells.partition.sizes


def in_cell(k: int) -> np.ndarray:
    """The types of a cell in the order in which hits walk over them."""
    return city(1).cells.partition.type_at(np.full(SIZES[k], k), np.arange(SIZES[k]))


def truth() -> np.ndarray:
    """Exact counts of a run's types: about 25 are not zero; neither the first nor the last of all, and a cell has none."""
    rng = np.random.default_rng(0)
    counts = np.zeros(TYPES, dtype=np.int64)
    counts[rng.choice(np.flatnonzero(CELL != CELLS - 1), 23, replace=False)] = rng.integers(1, 9, 23)
    counts[in_cell(0)[[0, 1, -1]]] = [0, 3, 3]
    return counts


TRUTH = truth()


def counts_of(runs: int) -> cbdp.Counts:
    return cbdp.count(np.tile(TRUTH, runs), city(runs).universe)


class Dense:
    """The twin: noisy counts of all types, drawn at the start and read off above floors."""

    def __init__(self, features: FeatureDag, values: np.ndarray, noise: NoiseDistribution = LAW.law) -> None:
        self.features, self.values, self.noise = features, values, noise
        self.cell = features.cell_of_leaf
        self.floor = np.full(features.cells.size, ALL_HIDDEN_THRESHOLD, dtype=np.int64)
        self.floors: list[np.ndarray] = []

    @property
    def index(self) -> np.ndarray:
        return np.flatnonzero(self.values > self.floor[self.cell])

    @property
    def value(self) -> np.ndarray:
        return self.values[self.index]

    def lower(self, floor: np.ndarray) -> None:
        self.floor = np.minimum(floor, self.floor)
        self.floors.append(self.floor)

    def measurement(self) -> Measurement:
        scale, law = self.noise.scale, self.noise.name
        return Measurement("singleton", self.value, scale, elements=self.index, floor=self.floor, law=law)


def dense(runs: int, seed: int, law: NoiseDistribution = LAW.law) -> Dense:
    noise = sampler_of(law).sample(runs * TYPES, InsecureSeededEntropy(seed))
    return Dense(city(runs), np.tile(TRUTH, runs) + noise, law)


def answer_of(
    kind: type[SparseThresholdedAnswer],
    counts: cbdp.Counts,
    features: FeatureDag,
    scale: Fraction,
    entropy: InsecureSeededEntropy,
    law: str = "geometric",
) -> Any:
    cell = features.cells.partition.element_of(counts.universe.unrank_codes(counts.index))
    return kind(counts, cell, features, noise_distribution(law, scale), entropy, None)


def sparse(
    runs: int,
    seed: int,
    kind: type[SparseThresholdedAnswer] = SparseThresholdedAnswer,
    law: NoiseDistribution = LAW.law,
) -> SparseThresholdedAnswer:
    source = InsecureSeededEntropy(seed)
    return answer_of(kind, counts_of(runs), city(runs), Fraction(law.scale), source, law.name)


# What is compared, and how


def least_p(one: list[np.ndarray], two: list[np.ndarray]) -> float:
    """The least p-value of Fisher's test over events of every statistic (a number per run), times their number.

    The events are: at most v, and v itself, for values v (classes of values, where there are many) of both samples
    together. Given those, the runs of each value are dealt to the samples like cards: the p-values are exact.
    """
    n1, n2 = len(one[0]), len(two[0])
    tables = []
    for a, b in zip(one, two, strict=True):
        low, high = _classes(a, b)
        h1, h2 = np.bincount(low, minlength=256), np.bincount(high, minlength=256)
        tables += [np.stack([h1, h2]), np.cumsum([h1, h2], axis=1)]
    k1, k2 = np.concatenate(tables, axis=1)
    both = k1 + k2
    told = (both > 0) & (both < n1 + n2)
    k1, both = k1[told], both[told]
    share = both / (n1 + n2)
    apart = np.abs(k1 - n1 * share) / np.sqrt(share * (1 - share))
    top = np.argsort(-apart)[:300]  # the others are less extreme
    law = stats.hypergeom(n1 + n2, both[top], n1)
    p = 2 * np.minimum(law.cdf(k1[top]), law.sf(k1[top] - 1))
    return float(p.min() * len(both))


def _classes(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if a.dtype == np.int8:
        return a.view(np.uint8) ^ 128, b.view(np.uint8) ^ 128
    cuts = np.quantile(np.concatenate([a, b]), np.linspace(0, 1, 101), method="inverted_cdf")
    return np.searchsorted(cuts, a), np.searchsorted(cuts, b)


def columns(table: np.ndarray) -> list[np.ndarray]:
    return list(np.ascontiguousarray(table.T))


def shown(answer: SparseThresholdedAnswer | Dense, runs: int) -> np.ndarray:
    """Revealed counts by run and type, as short integers."""
    seen = np.full(runs * TYPES, UNSEEN, dtype=np.int8)
    seen[answer.index] = np.clip(answer.value, UNSEEN + 1, 127)
    return seen.reshape(runs, TYPES)


def floors(step: int, count: np.ndarray, total: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Floors by run and cell from what the run has revealed: how many counts in each cell, and their sum."""
    if step == 0:
        return np.broadcast_to(np.array([5, 3, ALL_HIDDEN_THRESHOLD, 4, 6, 5]), now.shape)
    if step == 1:
        return np.where(count % 2 == 0, np.minimum(now - 2, 6), now)
    if step == 2:  # each looks at its neighbour
        return np.where(np.roll(total, 1, axis=1) % 3 == 0, 0, np.where(total > 20, 1, now))
    return np.where(count > 12, -2, np.minimum(now, 2))


def revealed(answer: SparseThresholdedAnswer | Dense, runs: int) -> list[np.ndarray]:
    """Statistics of each run, after every lowering of floors: what is seen of each type, how much of it, and where."""
    found = []
    groups = [in_cell(k) for k in range(CELLS)]
    count = total = np.zeros((runs, CELLS), dtype=np.int64)
    for step in range(4):
        wanted = floors(step, count, total, answer.floor.reshape(runs, CELLS))
        answer.lower(wanted.reshape(-1))
        table = shown(answer, runs)
        found += columns(table)
        found += columns(np.minimum(answer.floor.reshape(runs, CELLS), 127).astype(np.int8))
        cells = [table[:, group] for group in groups]
        seen = [cell != UNSEEN for cell in cells]
        count = np.stack([s.sum(axis=1) for s in seen], axis=1)
        total = np.stack([np.where(s, c, 0).sum(axis=1) for s, c in zip(seen, cells, strict=True)], axis=1)
        side = np.stack([(s[:, 1:] & s[:, :-1]).sum(axis=1) for s in seen], axis=1)
        first = np.stack([np.argmax(s, axis=1) for s in seen], axis=1)
        found += columns(np.concatenate([count, total, side, first], axis=1))
        found += [count.sum(axis=1), total.sum(axis=1)]
    return found


@cache
def twin(law: NoiseDistribution = LAW.law) -> list[np.ndarray]:
    return revealed(dense(RUNS, 1, law), RUNS)
