"""Noise drawn only where it can matter, against noise on every trip type: the same law, the same answer, the same order.

Laws are compared over independent runs. One call makes them all: a dimension `run` keeps copies of a small universe apart,
every feature groups by it, and floors of a run depend on what that run has revealed. The twin noises every type, then
reads off. All comparisons are of how often an event happens in two samples, by Fisher's exact test.
"""

from __future__ import annotations

import itertools
import pickle
import tracemalloc
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_program import paper, size_of
from scipy import stats
from strategies import Case, Model, cases, feature_lists, models

import cbdp
from cbdp import Feature, FeatureDag, Measurement, Universe
from cbdp.app.audit.epsilon import Parts, epsilon_lower_bound
from cbdp.errors import InputError
from cbdp.estimate import compiler, engine
from cbdp.features import Dimension
from cbdp.measuring.dense import measure_above
from cbdp.measuring.samplers.geometric import GeometricSampler
from cbdp.measuring.sparse import HIDDEN, SparseAnswer
from cbdp.mechanisms import ConstraintBased
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.measurement import geometric_variance
from cbdp.release.release import Release
from cbdp.solvers import get
from cbdp.solvers.problem import Problem

ALPHA = 1e-6
RUNS = 20_000
FEWER = 4_000  # runs that suffice to catch a mutant
SCALE = Fraction(2)
LAW = GeometricSampler(SCALE)
UNSEEN = -128


def thorough(examples: int) -> Any:
    return settings(deadline=None, max_examples=examples, derandomize=True)


# --- the small universe, many times -----------------------------------------------------------------------------------


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

    def __init__(self, features: FeatureDag, values: np.ndarray, scale: Fraction = SCALE) -> None:
        self.features, self.values, self.scale = features, values, scale
        self.cell = features.cell_of_leaf
        self.floor = np.full(features.cells.size, HIDDEN, dtype=np.int64)
        self.floors: list[np.ndarray] = []

    @property
    def index(self) -> np.ndarray:
        return np.flatnonzero(self.values > self.floor[self.cell])

    @property
    def value(self) -> np.ndarray:
        return self.values[self.index]

    def expected(self, floor: np.ndarray) -> np.ndarray:
        return np.asarray(GeometricSampler(self.scale).survival(floor))

    def lower(self, floor: np.ndarray) -> None:
        self.floor = np.minimum(floor, self.floor)
        self.floors.append(self.floor)

    def measurement(self) -> Measurement:
        return Measurement("singleton", self.value, scale=self.scale, elements=self.index, floor=self.floor)


def dense(runs: int, seed: int) -> Dense:
    noise = LAW.sample(runs * TYPES, InsecureSeededEntropy(seed))
    return Dense(city(runs), np.tile(TRUTH, runs) + noise)


def answer_of(
    kind: type[SparseAnswer],
    counts: cbdp.Counts,
    features: FeatureDag,
    scale: Fraction,
    entropy: InsecureSeededEntropy,
) -> Any:
    cell = features.cells.partition.element_of(counts.universe.unrank_codes(counts.index))
    return kind(counts, cell, features, scale, entropy, None)


def sparse(runs: int, seed: int, kind: type[SparseAnswer] = SparseAnswer) -> SparseAnswer:
    return answer_of(kind, counts_of(runs), city(runs), SCALE, InsecureSeededEntropy(seed))


# --- what is compared, and how ----------------------------------------------------------------------------------------


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


def shown(answer: SparseAnswer | Dense, runs: int) -> np.ndarray:
    """Revealed counts by run and type, as short integers."""
    seen = np.full(runs * TYPES, UNSEEN, dtype=np.int8)
    seen[answer.index] = np.clip(answer.value, UNSEEN + 1, 127)
    return seen.reshape(runs, TYPES)


def floors(step: int, count: np.ndarray, total: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Floors by run and cell from what the run has revealed: how many counts in each cell, and their sum."""
    if step == 0:
        return np.broadcast_to(np.array([5, 3, HIDDEN, 4, 6, 5]), now.shape)
    if step == 1:
        return np.where(count % 2 == 0, np.minimum(now - 2, 6), now)
    if step == 2:  # each looks at its neighbour
        return np.where(np.roll(total, 1, axis=1) % 3 == 0, 0, np.where(total > 20, 1, now))
    return np.where(count > 12, -2, np.minimum(now, 2))


def revealed(answer: SparseAnswer | Dense, runs: int) -> list[np.ndarray]:
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
def twin() -> list[np.ndarray]:
    return revealed(dense(RUNS, 1), RUNS)


# --- mutants ----------------------------------------------------------------------------------------------------------


class Unconditional(SparseAnswer):
    """A band is hit as often as if nothing were known of what lies above it."""

    def _hits(self, types: int, low: int, high: int) -> np.ndarray:
        if high == HIDDEN:
            return super()._hits(types, low, high)
        chance = self._law.survival(low) - self._law.survival(high)
        words = self._entropy.words(types, 32)
        return np.flatnonzero(words < chance * 2.0**32)


class Overwritten(SparseAnswer):
    """Hits on types with trips are kept, instead of their own noise."""

    def _without_trips(self, floor: np.ndarray) -> Any:
        own, self._index = self._index, self._index[:0]
        yield from super()._without_trips(floor)
        self._index = own

    def _insert(self, index: np.ndarray, value: np.ndarray) -> None:
        last = np.append(index[1:] != index[:-1], True)
        new = last & ~np.isin(index, self.index)
        super()._insert(index[new], value[new])


class Added(Overwritten):
    """Hits on types with trips are kept, on top of their own noise."""

    def _insert(self, index: np.ndarray, value: np.ndarray) -> None:
        first = np.flatnonzero(np.append(True, index[1:] != index[:-1])[: len(index)])
        if len(first):
            super()._insert(index[first], np.add.reduceat(value, first))


class HitAgain(SparseAnswer):
    """A type that is revealed already can be hit again, and its count is replaced."""

    def _without_trips(self, floor: np.ndarray) -> Any:
        held, self.index = self.index, self.index[:0]
        again = list(super()._without_trips(floor))
        self.index = held
        yield from again

    def _insert(self, index: np.ndarray, value: np.ndarray) -> None:
        old = ~np.isin(self.index, index)
        self.index, self.value = self.index[old], self.value[old]
        super()._insert(index, value)


class Peeking(SparseAnswer):
    """Floors are lower where there are trips."""

    def lower(self, floor: np.ndarray) -> None:
        floor = np.array(floor)
        busy = np.unique(self._cell)
        floor[busy] = np.minimum(floor[busy], np.where(floor[busy] < HIDDEN, floor[busy] - 1, HIDDEN))
        super().lower(floor)


class NoTwoInARow(SparseAnswer):
    """Gaps between hits are longer by one."""

    def _hits(self, types: int, low: int, high: int) -> np.ndarray:
        hits = super()._hits(types, low, high)
        hits = hits + np.arange(len(hits))
        return hits[hits < types]


class Later(SparseAnswer):
    """Hits are one position late."""

    def _hits(self, types: int, low: int, high: int) -> np.ndarray:
        hits = super()._hits(types, low, high) + 1
        return hits[hits < types]


class Earlier(SparseAnswer):
    """Hits are one position early."""

    def _hits(self, types: int, low: int, high: int) -> np.ndarray:
        hits = super()._hits(types, low, high) - 1
        return hits[hits >= 0]


class Short(SparseAnswer):
    """The last position is never hit."""

    def _hits(self, types: int, low: int, high: int) -> np.ndarray:
        return super()._hits(types - 1, low, high)


class AllWithTrips(SparseAnswer):
    """Types with trips are revealed whatever their floor."""

    def _with_trips(self, floor: np.ndarray) -> Any:
        return super()._with_trips(np.where(floor < self.floor, -HIDDEN, floor))

    def _insert(self, index: np.ndarray, value: np.ndarray) -> None:
        new = ~np.isin(index, self.index)
        super()._insert(index[new], value[new])


class FreshNoise(SparseAnswer):
    """Types with trips draw their noise again for every floor."""

    def lower(self, floor: np.ndarray) -> None:
        hidden = ~np.isin(self._index, self.index)
        again = self._law.sample(len(self._index), self._entropy)
        true = np.tile(TRUTH[TRUTH > 0], len(self._index) // int((TRUTH > 0).sum()))
        self._noisy = np.where(hidden, true + again, self._noisy)
        super().lower(floor)


class AtLeast(SparseAnswer):
    """The floor itself counts as above it."""

    def _excess(self, n: int, low: int, high: int) -> np.ndarray:
        return super()._excess(n, low - 1, high)


class TopLess(SparseAnswer):
    """The upper end of a band is left out."""

    def _excess(self, n: int, low: int, high: int) -> np.ndarray:
        return super()._excess(n, low, high if high == HIDDEN else max(low + 1, high - 1))


class Unperturbed(SparseAnswer):
    """Types without trips are never hit."""

    def _hits(self, types: int, low: int, high: int) -> np.ndarray:
        return np.empty(0, dtype=np.int64)


MUTANTS = [
    Unconditional,
    Overwritten,
    Added,
    HitAgain,
    Peeking,
    NoTwoInARow,
    AllWithTrips,
    FreshNoise,
    AtLeast,
    TopLess,
    Unperturbed,
]


# --- equal law --------------------------------------------------------------------------------------------------------


def test_revealed_as_if_all_had_been_noised() -> None:
    """Under floors that follow what is revealed, 20,000 runs and the twin's cannot be told apart."""
    assert least_p(revealed(sparse(RUNS, 2), RUNS), twin()) > ALPHA


def test_the_twin_is_like_another_twin() -> None:
    """The comparison itself raises no false alarm."""
    assert least_p(revealed(dense(RUNS, 3), RUNS), twin()) > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_of_the_law_is_caught(mutant: type[SparseAnswer]) -> None:
    """The same comparison finds each mutant out, with a fifth of the runs."""
    assert least_p(revealed(sparse(FEWER, 4, mutant), FEWER), twin()) < ALPHA


def end_to_end(kind: type[SparseAnswer], runs: int) -> float:
    """The least p-value (times their number) of how often each type shows, in runs drawn one by one, exact by law."""
    counts, features = counts_of(1), city(1)
    entropy = InsecureSeededEntropy(6)
    levels = (3, 0)
    seen = np.zeros((len(levels), TYPES), dtype=np.int64)
    for _ in range(runs):
        answer = answer_of(kind, counts, features, SCALE, entropy)
        for row, level in zip(seen, levels, strict=True):
            answer.lower(np.full(CELLS, level))
            row[answer.index] += 1
    chance = np.stack([LAW.survival(level - TRUTH) for level in levels])
    p = 2 * np.minimum(stats.binom.cdf(seen, runs, chance), stats.binom.sf(seen - 1, runs, chance))
    return float(p.min() * p.size)


def test_every_type_shows_as_often_as_its_law_says() -> None:
    """The first and the last type of all included, where batches of runs would hide a slip."""
    assert end_to_end(SparseAnswer, 1500) > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [Later, Earlier, Short])
def test_mutant_of_the_walk_is_caught(mutant: type[SparseAnswer]) -> None:
    """Hits shifted by one position, or one position too few, are found out at the ends."""
    assert end_to_end(mutant, 500) < ALPHA


# --- equal law after the solver ---------------------------------------------------------------------------------------


def solved(leaves: SparseAnswer | Dense, runs: int, seed: int, *, above: bool) -> list[np.ndarray]:
    """Statistics of each run: the answer's leaves, features and shifts, and the integers that would be released."""
    features, counts = city(runs), counts_of(runs)
    entropy = InsecureSeededEntropy(seed)
    answers = []
    for name in ("run", "time", "mode"):
        exact = counts.of(features, name)
        answers.append(Measurement(name, exact + LAW.sample(len(exact), entropy), scale=SCALE))
    if above:
        estimate = engine.post_process_above(features, answers, leaves)
    else:
        assert isinstance(leaves, Dense)
        every = Measurement("singleton", leaves.values, scale=SCALE)
        estimate = engine.post_process(features, [*answers, every])
    assert estimate.solution.kkt_residual < 1e-9
    table = estimate.counts("singleton").reshape(runs, TYPES)
    prices = estimate.solution.prices
    held = features.cells.element_of_cell
    shift = sum(prices[name][held[name]] for name in ("run", "time", "mode")) * features.universe.size
    found = columns(np.clip(np.rint(table), 0, 127).astype(np.int8))
    found += columns(np.rint(shift.reshape(runs, CELLS) * 1e6))  # rounding must not order what is equal
    found += columns(np.rint(table[:, :: TYPES // 24] * 1e6))
    found += [np.rint(table).sum(axis=1), np.rint(table.sum(axis=1) * 1e6), (table > 1e-6).sum(axis=1)]
    found += columns(np.rint(estimate.counts("time").reshape(runs, -1) * 1e6))
    found += columns(np.rint(estimate.counts("mode").reshape(runs, -1) * 1e6))
    return found


@cache
def solved_twin() -> list[np.ndarray]:
    return solved(dense(RUNS, 11), RUNS, 12, above=False)


@pytest.fixture
def high_floors(monkeypatch: pytest.MonkeyPatch) -> None:
    """First floors that are too high, and lowered little by little: much of what matters comes from bands."""
    guess = engine._expected_shifts
    monkeypatch.setattr(engine, "_expected_shifts", lambda *given: guess(*given) + 2 * float(SCALE))
    monkeypatch.setattr(engine, "MARGIN", 0.1)


@pytest.mark.slow
def test_solved_as_if_all_had_been_noised(high_floors: None) -> None:
    """Shifts, leaves, features and released counts of 20,000 runs cannot be told from those of the dense path."""
    answer = sparse(RUNS, 13)
    assert least_p(solved(answer, RUNS, 14, above=True), solved_twin()) > ALPHA
    assert len(answer.index) < 0.5 * RUNS * TYPES


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [Unconditional, Overwritten, Added, HitAgain, FreshNoise, NoTwoInARow])
def test_mutant_is_caught_after_the_solver(high_floors: None, mutant: type[SparseAnswer]) -> None:
    """The same comparison finds each out, with a fifth of the runs."""
    assert least_p(solved(sparse(FEWER, 15, mutant), FEWER, 16, above=True), solved_twin()) < ALPHA


# --- floors follow what is revealed, and nothing else -----------------------------------------------------------------


def embedded(answer: SparseAnswer | Dense, how: str, seed: int = 0) -> np.ndarray:
    """A count for every type: those revealed, and for the others whatever does not exceed their floor."""
    features = answer.features
    top = answer.floor[features.cell_of_leaf].astype(float)
    rng = np.random.default_rng(seed)
    below = {"at the floor": 0.0, "far below": 1e9, "anywhere": rng.exponential(20.0, len(top)).round()}[how]
    values = np.minimum(top, 1e6) - below
    values[answer.index] = answer.value
    return values


HOW = ["at the floor", "far below", "anywhere"]


class Watched(SparseAnswer):
    """Remembers the floors."""

    def lower(self, floor: np.ndarray) -> None:
        super().lower(floor)
        self.floors = [*getattr(self, "floors", []), self.floor]


class WatchedPeeking(Watched, Peeking):
    pass


def replayed(kind: type[Watched], how: str, seed: int) -> bool:
    """Whether the floors are the same when all is done again from what was revealed in the end."""
    features = city(3)
    counts = counts_of(3)
    answers, first = measure_above(counts, features, 1, entropy=InsecureSeededEntropy(seed))
    answer = answer_of(kind, counts, features, first.scale, InsecureSeededEntropy(seed))
    estimate = engine.post_process_above(features, answers, answer)
    again = Dense(features, embedded(answer, how, seed), answer.scale)
    other = engine.post_process_above(features, answers, again)
    same = len(answer.floors) == len(again.floors)
    if same and all(map(np.array_equal, answer.floors, again.floors)):
        assert np.array_equal(estimate.counts("singleton"), other.counts("singleton"))
        return True
    return False


@pytest.mark.parametrize("how", HOW)
def test_floors_are_a_function_of_what_is_revealed(high_floors: None, how: str) -> None:
    """Done again without the private counts, from the revealed ones alone, every floor is the same."""
    assert all(replayed(Watched, how, seed) for seed in range(5))


def test_mutant_that_looks_at_trips_for_its_floors_is_caught(high_floors: None) -> None:
    """Floors that are lower where there are trips cannot be found again without the trips."""
    assert not any(replayed(WatchedPeeking, how, 0) for how in HOW)


# --- equal solution ---------------------------------------------------------------------------------------------------


def one_leaf_weight(case: Case, rule: str, scale: Fraction) -> tuple[Case, Any, dict[str, Any]]:
    """The case with one weight for all leaves, the weights as they are handed over, and variances that agree."""
    weight = {name: dict(each) for name, each in case.weight.items()}
    flat = next(iter(weight["singleton"].values()))
    if rule == "inverse-variance":  # all in proportion to the leaves'
        flat = 1 / geometric_variance(float(scale))
        weight = {name: {key: w * flat for key, w in each.items()} for name, each in weight.items()}
    weight["singleton"] = dict.fromkeys(weight["singleton"], flat)
    case = replace(case, weight=weight)
    if rule == "inverse-variance":
        return replace(case, rule=None), rule, weight
    if case.rule is None:
        case_weights = case.weights(case.dag())
        return case, {**case_weights, "singleton": flat}, {}
    return case, case.rule, {}


def measured(case: Case, dag: FeatureDag, weight: dict[str, Any]) -> list[Measurement]:
    """The case's measurements but those of the leaves, with variances where weights are to follow from them."""
    found = [m for m in case.measurements(dag) if m.feature != "singleton"]
    if not weight:
        return found
    keys = {m.feature: case.keys(dag, m.feature) for m in found}
    return [
        replace(
            m,
            variance=np.array([1 / weight[m.feature][k] for k in keys[m.feature] if k in weight[m.feature]]),
        )
        for m in found
    ]


def leaf_values(case: Case, dag: FeatureDag) -> np.ndarray:
    return np.array([case.noisy["singleton"][k] for k in case.keys(dag, "singleton")])


SCALES = st.sampled_from([Fraction(1, 3), Fraction(2), Fraction(50), Fraction(10**6)])


@given(cases(spread=1.5), SCALES, st.booleans(), st.sampled_from(HOW), st.integers(0, 100))
@thorough(150)
def test_same_answer_whatever_lies_below_the_floors(
    case: Case, scale: Fraction, by_variance: bool, how: str, seed: int
) -> None:
    """Sparse newton is dense newton on any counts that agree above the floors, and an interior point agrees with both."""
    case, weights, variances = one_leaf_weight(case, "inverse-variance" if by_variance else "", scale)
    dag = case.dag()
    others = measured(case, dag, variances)
    leaves = Dense(dag, leaf_values(case, dag), scale)
    found = engine.post_process_above(dag, others, leaves, weights=weights)
    assert found.solution.kkt_residual <= 1e-9
    whole = embedded(leaves, how, seed)
    every = Measurement("singleton", whole, scale=scale)
    dense_found = engine.post_process(dag, [*others, every], weights=weights)
    near = 1e-9 * (size_of(case) + np.abs(leaves.value).max(initial=0.0) + 1)
    x = found.counts("singleton")
    np.testing.assert_allclose(x, dense_found.counts("singleton"), atol=near, rtol=0)
    for name in dag.features:
        np.testing.assert_allclose(found.counts(name), dense_found.counts(name), atol=len(x) * near, rtol=0)
    if seed % 3 == 0:
        noisy = {
            **case.noisy,
            "singleton": dict(zip(case.keys(dag, "singleton"), whole.tolist(), strict=True)),
        }
        if how == "far below":  # an interior point needs one scale
            noisy["singleton"] = {k: max(v, -10 * size_of(case) - 10) for k, v in noisy["singleton"].items()}
        other = paper(replace(case, noisy=noisy))
        np.testing.assert_allclose(case.leaves(dag, found), other, atol=5e-4 * (size_of(case) + 1), rtol=0)


def test_exact_count_of_which_no_leaf_exceeds_the_first_floor() -> None:
    """An exact count lowers the floors until it can be met."""
    dag = FeatureDag(Universe(stop=["A", "B"]), [])
    leaves = Dense(dag, np.array([-3, -5]), Fraction(1000))
    exact = Measurement("total", np.array([4.0]))
    found = engine.post_process_above(dag, [exact], leaves, weights={"total": np.inf})
    np.testing.assert_allclose(found.counts("singleton"), [3, 1], atol=1e-9)


# --- leaves that weigh next to nothing --------------------------------------------------------------------------------

Rational = list[Fraction]


def eliminated(matrix: list[Rational], right: Rational) -> Rational:
    """A solution of a consistent linear system in fractions; what it leaves open is 0."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    n, pivots = len(right), []
    for column in range(n):
        at = next((i for i in range(len(pivots), n) if rows[i][column]), None)
        if at is None:
            continue
        rows[len(pivots)], rows[at] = rows[at], rows[len(pivots)]
        pivot = rows[len(pivots)]
        inverse = 1 / pivot[column]
        pivot[:] = [v * inverse for v in pivot]
        for row in rows:
            if row is not pivot and row[column]:
                factor = row[column]
                row[:] = [v - factor * p for v, p in zip(row, pivot, strict=True)]
        pivots.append(column)
    assert not any(row[-1] for row in rows[len(pivots) :]), "no answer has just these leaves above zero"
    found = [Fraction(0)] * n
    for row, column in zip(rows, pivots, strict=False):
        found[column] = row[-1]
    return found


def in_fractions(problem: Problem, leaves: np.ndarray) -> tuple[Rational, Rational]:
    """The optimum, proven: leaves and the cells' shifts (in trips), in fractions.

    With the leaves above zero given, the conditions are linear: c_ij + λ_ij/w_ij = Σ_k (C_k − n_k s_k/w), s = B λ. If
    the leaves above their shift are then those given, all conditions hold exactly; else those are tried next.
    """
    weight = Fraction(float(problem.weight))
    unknown = [(t, j) for t in problem.terms for j in np.flatnonzero(t.weight > 0)]
    holds = [[int(t.element_of_cell[k]) == j for t, j in unknown] for k in range(problem.cells)]
    of_cell = [[i for i, here in enumerate(row) if here] for row in holds]
    room = [Fraction(0) if np.isinf(t.weight[j]) else 1 / Fraction(float(t.weight[j])) for t, j in unknown]
    target = [Fraction(float(t.target[j])) for t, j in unknown]
    value = [Fraction(v) for v in problem.target.tolist()]
    cell = problem.cell.tolist()
    above = (leaves > 0).tolist()
    for _ in range(60):
        held, many = [Fraction(0)] * problem.cells, [0] * problem.cells
        for k, v, here in zip(cell, value, above, strict=True):
            held[k] += v if here else 0
            many[k] += here
        matrix = [
            [room[i] if i == j else Fraction(0) for j in range(len(unknown))] for i in range(len(unknown))
        ]
        right = [-c for c in target]
        for k, own in enumerate(of_cell):
            for i in own:
                right[i] += held[k]
                for j in own:
                    matrix[i][j] += many[k] / weight
        prices = eliminated(matrix, right)
        shift = [sum((prices[i] for i in own), Fraction(0)) / weight for own in of_cell]
        now = [v > shift[k] for v, k in zip(value, cell, strict=True)]
        if now == above:
            return [max(Fraction(0), v - shift[k]) for v, k in zip(value, cell, strict=True)], shift
        above = now
    raise AssertionError("no set of leaves above zero was found to be the right one")


def check_against_fractions(problem: Problem) -> None:
    """Newton certifies its answer, and it is the optimum to nine digits of the largest count."""
    found = get("newton").solve(problem)
    assert found.kkt_residual <= 1e-9
    exact, _ = in_fractions(problem, found.leaves)
    largest = max([1.0, *np.abs(problem.target), *(abs(v) for t in problem.terms for v in t.target)])
    np.testing.assert_allclose(found.leaves, [float(x) for x in exact], atol=1e-9 * largest, rtol=0)


UNTOUCHED = Dimension(range(1000))
FEATURES: dict[str, tuple[str, ...]] = {
    "a": ("a",),
    "b": ("b",),
    "c": ("c",),
    "ab": ("a", "b"),
    "bc": ("b", "c"),
    "again": ("a",),
    "pair": ("pair",),
    "abc": ("a", "b", "c"),
}


@cache
def vast(names: tuple[str, ...], power: int) -> FeatureDag:
    """Three dimensions that features cross over, and `power` of a thousand values each that none touches."""
    untouched = dict.fromkeys([f"x{i}" for i in range(power)], UNTOUCHED)
    universe = Universe(a=range(3), b=range(2), c=range(3), **untouched)
    universe = universe.with_attribute("pair", ["a", "c"], lambda a, c: (a * c) % 3)
    return FeatureDag(universe, [Feature(name, by=FEATURES[name]) for name in names])


def slight(names: tuple[str, ...], power: int, kept: Mapping[str, str], seed: int) -> Problem:
    """Leaves that weigh 1e-10 to 1e-16 of a feature; of each feature all, some or no elements are measured, or exact.

    Every cell has leaves, and the features disagree by a third at most, so that no element is emptied.
    """
    dag = vast(names, power)
    rng = np.random.default_rng(seed)
    cells = np.repeat(np.arange(dag.cells.size), rng.integers(2, 6, dag.cells.size))
    index = np.unique(dag.cells.partition.type_at(cells, rng.integers(0, dag.cells.partition.sizes[cells])))
    cell = dag.cells.partition.element_of(dag.universe.unrank_codes(index))
    values = 100 + np.rint(100 * rng.exponential(1.0, len(index))).astype(np.int64)
    true = np.bincount(cell, weights=values + np.rint(40 * rng.random(len(index))), minlength=dag.cells.size)
    rule: dict[str, Any] = {"singleton": 1 / dag.universe.size}
    answers = []
    for name, how in kept.items():
        size = dag.size(name)
        elements = np.flatnonzero(rng.random(size) < {"some": 0.6, "none": 0.0}.get(how, 1.0))
        if len(elements):
            sums = np.bincount(dag.cells.element_of_cell[name], weights=true, minlength=size)[elements]
            noisy = sums if how == "exact" else np.rint(sums * rng.uniform(0.8, 1.2, len(sums)))
            answers.append(Measurement(name, noisy, elements=elements))
            rule[name] = np.inf if how == "exact" else rng.choice([1 / size, 3.0])
    leaves = Measurement("singleton", values, elements=index, floor=np.full(dag.cells.size, -(2**60)))
    return compiler.compile(dag, [*answers, leaves], rule)


@st.composite
def slights(draw: Any) -> Problem:
    """Crossing, nested and equal features, each measured whole or not at all, and one of them perhaps exact."""
    names = draw(st.lists(st.sampled_from(list(FEATURES)), min_size=1, max_size=4, unique=True).map(tuple))
    kept = {name: draw(st.sampled_from(["all", "all", "all", "none"])) for name in ("total", *names)}
    if draw(st.booleans()):
        kept[draw(st.sampled_from(list(kept)))] = "exact"
    return slight(names, draw(st.sampled_from([3, 4, 4, 5])), kept, draw(st.integers(0, 2**32 - 1)))


@given(slights())
@thorough(60)
def test_slight_leaves_against_fractions(problem: Problem) -> None:
    """Leaves of next to no weight do not cost accuracy: the optimum is met as in exact arithmetic."""
    check_against_fractions(problem)


def test_slight_leaves_under_two_exact_features() -> None:
    """Exact counts of two features that agree are met beside a third that does not."""
    for seed in range(10):
        kept = {"total": "exact", "c": "exact", "a": "all", "b": "none"}
        check_against_fractions(slight(("c", "a", "b"), 4, kept, seed))


def test_slight_leaves_under_a_feature_measured_in_part() -> None:
    """A feature of which some elements are measured does not keep the others from being settled."""
    for seed in range(10):
        check_against_fractions(slight(("a", "b"), 4, {"total": "all", "a": "all", "b": "some"}, seed))


class Remembered(type(get("newton"))):  # type: ignore[misc]
    """Newton that keeps its problems."""

    problems: list[Problem]

    def solve(self, problem: Problem, warm_start: Any = None) -> Any:
        object.__setattr__(self, "problems", [problem])
        return super().solve(problem, warm_start)


def run_vast(names: tuple[str, ...], power: int, seed: int, trips: int, epsilon: Any, weights: str) -> None:
    """The whole way in a vast universe: certified, the optimum to nine digits, every shift at or above its floor."""
    dag = vast(names, power)
    rng = np.random.default_rng(seed)
    rows = {name: rng.integers(0, len(d), trips) for name, d in dag.universe.dimensions.items()}
    counts = cbdp.count(rows, dag.universe)
    answers, answer = measure_above(counts, dag, epsilon, entropy=InsecureSeededEntropy(seed))
    newton = Remembered()
    found = engine.post_process_above(dag, answers, answer, weights=weights, solver=newton)
    assert found.solution.kkt_residual <= 1e-9
    problem = newton.problems[-1]
    exact, shift = in_fractions(problem, found.solution.leaves)
    largest = max([1.0, *np.abs(problem.target)])
    np.testing.assert_allclose(found.solution.leaves, [float(x) for x in exact], atol=1e-9 * largest, rtol=0)
    assert problem.floor is not None
    assert all(s >= f for s, f in zip(shift, problem.floor, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["size", "uniform", "inverse-variance"])
@pytest.mark.parametrize("names", [("a", "b", "c"), ("ab", "bc"), ("a", "again", "pair")])
def test_vast_universe_against_fractions(names: tuple[str, ...], weights: str) -> None:
    """From trips to the answer among 1.8e13 types: the optimum of the problem with all types, to nine digits."""
    for seed in range(3):
        run_vast(names, 4, seed, 2000, 1, weights)


def test_vast_universe_with_emptied_elements() -> None:
    """Noisy counts below zero empty their elements; the answer is certified and right all the same."""
    for seed in range(12):
        run_vast(("ab", "c"), 4, seed, 3, 1, "size")


# --- ε through the sparse path ----------------------------------------------------------------------------------------

# (the path itself is attacked with the other honest mechanisms, in test_audit_epsilon)
PARTS = Parts(4000, {"stop": ["A", "B"]})
SPARSE = ConstraintBased(PARTS.features, 1, measured=PARTS.measured, sparse=True, estimator="projection")


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [Unperturbed, Overwritten, AllWithTrips])
def test_mutant_of_the_sparse_path_exceeds_epsilon(
    monkeypatch: pytest.MonkeyPatch, mutant: type[SparseAnswer]
) -> None:
    """Zeros without noise, hits on types with trips kept, trips shown whatever the floor: each proves more than ε."""
    monkeypatch.setattr("cbdp.measuring.dense.Answer", mutant)
    one, none = {"stop": ["A"]}, {"stop": []}
    bound = epsilon_lower_bound(SPARSE, one, none, parts=PARTS, trials=120_000, seed=24)
    assert bound.epsilon > 1.2, bound


# --- types by element and place ---------------------------------------------------------------------------------------


@given(models().flatmap(lambda m: st.tuples(st.just(m), feature_lists(m))))
@thorough(150)
def test_every_type_has_one_element_and_place(drawn: tuple[Model, dict[str, tuple[str, ...]]]) -> None:
    """Over all elements and places, `type_at` meets every trip type once, and each in the element listed by hand."""
    model, features = drawn
    universe = model.universe()
    codes = universe.unrank_codes(np.arange(universe.size))
    values = [d.values for d in universe.dimensions.values()]
    for by in {*features.values(), (), model.names}:
        partition = universe.partition(by)
        sizes = partition.sizes
        element = np.repeat(np.arange(partition.size), sizes)
        place = np.arange(universe.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        index = partition.type_at(element, place)
        assert np.array_equal(np.sort(index), np.arange(universe.size))
        assert np.array_equal(partition.element_of([c[index] for c in codes]), element)
        keys = list(zip(*partition.keys().values(), strict=True)) if by else [()]
        groups = model.groups(by)
        for j, key in enumerate(keys):
            trips = {tuple(v[c[i]] for v, c in zip(values, codes, strict=True)) for i in index[element == j]}
            assert trips == groups[key]


LONG = Dimension(range(2**17))


@cache
def widest() -> FeatureDag:
    """2^62 types, with an attribute of a pair."""
    universe = Universe(x=LONG, origin=range(16), y=LONG, destination=range(16), time=range(8), z=LONG)
    universe = universe.with_attribute("mode", ["destination", "origin"], lambda d, o: d > o)
    return FeatureDag(
        universe, [Feature("time", by="time"), Feature("origin", by="origin"), Feature("mode", by="mode")]
    )


def check_corners(universe: Universe, partition: Any, seed: int) -> None:
    """Ranks, elements and places fit each other at the ends and anywhere between."""
    rng = np.random.default_rng(seed)
    index = np.append(rng.integers(0, universe.size, 2000), [0, 1, universe.size - 2, universe.size - 1])
    codes = universe.unrank_codes(index)
    assert np.array_equal(universe.rank_codes(codes), index)
    assert universe.rank(*universe.unrank(universe.size - 1)) == universe.size - 1
    sizes = partition.sizes
    assert sum(sizes.tolist()) == universe.size
    element = rng.integers(0, partition.size, 2000)
    place = np.where(rng.random(2000) < 0.2, sizes[element] - 1, rng.integers(0, sizes[element]))
    found = partition.type_at(element, place)
    assert ((found >= 0) & (found < universe.size)).all()
    assert np.array_equal(partition.element_of(universe.unrank_codes(found)), element)
    pairs = set(zip(element.tolist(), place.tolist(), strict=True))
    assert len(np.unique(found)) == len(pairs)


def test_types_by_number_in_the_largest_universes() -> None:
    """2^62 types with a pair attribute, others with structural zeros, and 2^63 − 1, the most there can be."""
    check_corners(widest().universe, widest().cells.partition, 1)
    zeros = (
        widest()
        .universe.without_equal("origin", "destination")
        .without(["time", "origin"], lambda t, o: t == o)
    )
    check_corners(zeros, zeros.partition(["mode", "time"]), 2)
    check_corners(zeros, zeros.partition(["x", "mode"]), 3)
    factors = (49, 73, 127, 337, 92737, 649657)  # of 2^63 − 1
    most = Universe(**{f"d{i}": range(n) for i, n in enumerate(factors)})
    assert most.size == 2**63 - 1
    check_corners(most, most.partition(["d2", "d0"]), 4)
    check_corners(most, most.partition([]), 5)


def test_hits_among_2_to_the_62_types() -> None:
    """As many counts exceed a floor as the law says (and again in a band), evenly over the universe, and in order."""
    dag = widest()
    counts = cbdp.count({name: [] for name in dag.universe.dimensions}, dag.universe)
    answer = answer_of(SparseAnswer, counts, dag, SCALE, InsecureSeededEntropy(31))
    seen = np.empty(0, dtype=np.int64)
    for floor in (72, 70):
        answer.lower(np.full(dag.cells.size, floor))
        expected = dag.universe.size * float(LAW.survival(floor))
        low, high = stats.poisson.ppf([ALPHA / 8, 1 - ALPHA / 8], expected)
        assert low <= len(answer.index) <= high
        assert (np.diff(answer.index) > 0).all()
        assert np.isin(seen, answer.index).all()
        assert answer.value.min() > floor
        assert stats.kstest(answer.index / dag.universe.size, "uniform").pvalue > ALPHA / 8
        seen = answer.index


class Frugal(SparseAnswer):
    """Refuses to be asked for more than a million counts."""

    def lower(self, floor: np.ndarray) -> None:
        moved = np.minimum(floor, self.floor) < self.floor
        drawn = float((self._sizes * self.expected(floor))[moved].sum())
        assert drawn < 1e6, f"floors down to {floor.min()} reveal {drawn:.0e} counts"
        super().lower(floor)


@cache
def travelled() -> cbdp.Counts:
    """2,000 trips anywhere."""
    rng = np.random.default_rng(7)
    codes = [rng.integers(0, len(d), 2000) for d in widest().universe.dimensions.values()]
    index = np.sort(widest().universe.rank_codes(codes))
    return cbdp.Counts(widest().universe, index, np.ones(2000, dtype=np.int64))


def in_the_widest(monkeypatch: pytest.MonkeyPatch, weights: str, epsilon: Any) -> Release:
    monkeypatch.setattr("cbdp.measuring.dense.Answer", Frugal)
    return ConstraintBased(widest(), epsilon, weights=weights).simulate(travelled(), seed=1)


@pytest.mark.parametrize("weights", ["inverse-variance", "uniform", "size"])
def test_release_in_2_to_the_62_types(monkeypatch: pytest.MonkeyPatch, weights: str) -> None:
    """A release is certified, adds up, and stays near the truth in large."""
    assert widest().universe.size == 2**62
    release = in_the_widest(monkeypatch, weights, 4)
    assert release.estimate is not None
    assert release.estimate.solution.kkt_residual <= 1e-9
    assert release.counts("time").sum() == release.total == release.counts("mode").sum()
    assert abs(release.total - 2000) < 400
    assert (np.diff(release.index) > 0).all()


def test_memory_in_2_to_the_62_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release takes memory like its trips', whatever the universe."""
    travelled()
    tracemalloc.start()
    try:
        in_the_widest(monkeypatch, "inverse-variance", 4)
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()


# --- order ------------------------------------------------------------------------------------------------------------


def test_what_is_revealed_is_in_order_and_stays() -> None:
    """Types ascend, a floor that is not lower changes nothing, and lowering keeps every count revealed before."""
    answer = sparse(5, 41)
    before: dict[int, int] = {}
    rng = np.random.default_rng(0)
    for level in (6, 3, 4, 1, -3, 0):
        answer.lower(np.full(answer.floor.size, level) + rng.integers(0, 3, answer.floor.size))
        now = dict(zip(answer.index.tolist(), answer.value.tolist(), strict=True))
        assert (np.diff(answer.index) > 0).all()
        assert before.items() <= now.items()
        assert (answer.value > answer.floor[city(5).cell_of_leaf[answer.index]]).all()
        before = now
    held = answer.measurement()
    answer.lower(answer.floor + 1)
    assert pickle.dumps(answer.measurement()) == pickle.dumps(held)
    with pytest.raises(InputError, match="below any count"):
        answer.lower(np.full(answer.floor.size, -HIDDEN - 1))


def test_order_of_rows_changes_no_byte() -> None:
    """Under one source, rows in any order, or counts given as an array, make the same measurement byte for byte."""
    universe = city(1).universe
    index = np.repeat(np.arange(TYPES), TRUTH)
    found = set()
    for seed in range(4):
        rows = universe.unrank_codes(np.random.default_rng(seed).permutation(index))
        names = universe.dimensions.items()
        table = {n: [d.values[c] for c in code] for (n, d), code in zip(names, rows, strict=True)}
        counts = cbdp.count(table if seed else TRUTH, universe)
        answer = answer_of(SparseAnswer, counts, city(1), SCALE, InsecureSeededEntropy(42))
        for level in (4, 2, -1):
            answer.lower(np.full(CELLS, level))
        found.add(pickle.dumps(answer.measurement()))
    assert len(found) == 1


def test_a_measurement_has_no_trace_of_where_its_counts_come_from() -> None:
    """With a trip and without, the same revealed counts are the same bytes."""
    dag = FeatureDag(Universe(stop=["A", "B", "C"]), [])
    seen: dict[Any, list[set[bytes]]] = defaultdict(lambda: [set(), set()])
    for seed, trips in itertools.product(range(500), (0, 1)):
        counts = cbdp.count(np.array([0, trips, 0]), dag.universe)
        answer = answer_of(SparseAnswer, counts, dag, Fraction(1), InsecureSeededEntropy(10_000 * trips + seed))
        for level in (1, 0):
            answer.lower(np.array([level]))
        key = tuple(answer.index), tuple(answer.value)
        seen[key][trips].add(pickle.dumps(answer.measurement()))
    both = [one | two for one, two in seen.values() if one and two]
    assert len(both) > 10
    assert all(len(bytes_) == 1 for bytes_ in both)
