"""Whole trips against plain enumeration: floors and ceilings, least distance, and means."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import Bounds, LinearConstraint, milp
from strategies import Labelling, Model, Type, feature_lists, models

import cbdp
from cbdp.errors import InputError
from cbdp.measuring.entropy import InsecureSeededEntropy
from cbdp.rounding.nearest import Rounded, _largest_choice, round_trips

UNIT = 16  # values are multiples of 1/16: exact as floats, and many sums are whole


@dataclass(frozen=True, eq=False)
class Twin:
    """A model, its features, and the exact real count of every type."""

    model: Model
    features: Mapping[str, tuple[str, ...]]
    real: Mapping[Type, Fraction]

    def dag(self, order: Sequence[str] = ()) -> cbdp.FeatureDag:
        between = [n for n in (order or self.features) if n not in ("total", "singleton")]
        listed = [cbdp.Feature(n, by=self.features[n]) for n in between]
        return cbdp.FeatureDag(self.model.universe(), listed)

    def estimate(self, dag: cbdp.FeatureDag) -> tuple[list[Type], np.ndarray, np.ndarray]:
        """The types in cbdp's order, and the sparse estimate."""
        types = [dag.universe.unrank(i) for i in range(dag.universe.size)]
        index = np.array([i for i, t in enumerate(types) if self.real[t] > 0], dtype=np.int64)
        return types, index, np.array([float(self.real[types[i]]) for i in index])

    def round(self, seed: int | None = None, order: Sequence[str] = ()) -> tuple[Rounded, dict[Type, int]]:
        dag = self.dag(order)
        types, index, value = self.estimate(dag)
        entropy = None if seed is None else InsecureSeededEntropy(seed)
        rounded = round_trips(dag, index, value, entropy=entropy)
        whole = dict.fromkeys(types, 0)
        whole.update({types[i]: int(v) for i, v in zip(rounded.index, rounded.value, strict=True)})
        return rounded, whole

    def groups(self, name: str) -> list[frozenset[Type]]:
        return list(self.model.groups(self.features[name]).values())

    def cells(self) -> list[frozenset[Type]]:
        by = tuple(dict.fromkeys(a for n, by in self.features.items() if n != "singleton" for a in by))
        return list(self.model.groups(by).values())

    def families(self) -> bool:
        """Whether the elements split into two laminar families, judged set by set."""
        sets = {g for n in self.features for g in self.groups(n)}
        graph = nx.Graph([(a, b) for a, b in itertools.combinations(sets, 2) if a & b and a - b and b - a])
        return nx.is_bipartite(graph)


def _beyond(count: int, real: Fraction) -> int:
    """By how much a count is neither floor nor ceiling."""
    return max(math.floor(real) - count, count - math.ceil(real), 0)


def _check(twin: Twin, rounded: Rounded, whole: Mapping[Type, int]) -> None:
    """Every element of every feature and every cell, exactly; what is off is what is reported."""
    assert rounded.index.dtype == rounded.value.dtype == np.int64
    assert (rounded.value > 0).all()
    assert (np.diff(rounded.index) > 0).all()
    off, worst = {}, {}
    for name in twin.features:
        groups = twin.groups(name)
        beyond = [_beyond(sum(whole[t] for t in g), sum(twin.real[t] for t in g)) for g in groups]
        if any(beyond):
            off[name], worst[name] = sum(b > 0 for b in beyond), max(beyond)
    assert (rounded.violation, rounded.excess) == (off, worst)
    assert "total" not in off
    assert "singleton" not in off
    for cell in twin.cells():
        assert not _beyond(sum(whole[t] for t in cell), sum(twin.real[t] for t in cell))


@st.composite
def twins(draw: Any, *, types: int = 60, most: int = 4, unit: int = UNIT) -> Twin:
    """Any universe and features; many types are empty or whole."""
    model = draw(models(dimensions=3, size=4, types=types, zeros=2, labels=4))
    between = draw(feature_lists(model, most=most))
    return _filled(model, between, draw(st.integers(0, 2**32 - 1)), unit)


def _filled(model: Model, between: Mapping[str, tuple[str, ...]], seed: int, unit: int = UNIT) -> Twin:
    rng = np.random.default_rng(seed)
    units = rng.integers(0, 3 * unit, len(model.types)) * (rng.random(len(model.types)) < 0.8)
    real = {t: Fraction(int(u), unit) for t, u in zip(model.types, units, strict=True)}
    return Twin(model, {"total": (), **between, "singleton": model.names}, real)


FAMILIES = {
    "none": {},
    "one": {"a": ("d0",), "b": ("d0", "d1"), "c": ("d0", "d1", "d2")},
    "two": {"a": ("d0",), "b": ("d0", "d1"), "c": ("d0", "d2")},
    "two, deep": {"a": ("d0",), "b": ("d1",), "c": ("d0", "d2"), "d": ("d1", "d3")},
    "three": {"a": ("d0",), "b": ("d1",), "c": ("d2",)},
    "three pairs": {"a": ("d0", "d1"), "b": ("d1", "d2"), "c": ("d0", "d2")},
}


@st.composite
def grids(draw: Any, names: Sequence[str] = tuple(FAMILIES), *, size: int = 4) -> tuple[str, Twin]:
    """A product of four dimensions with a known structure of features."""
    name = draw(st.sampled_from(names))
    sizes = [draw(st.integers(1, size)) for _ in range(4)]
    model = Model(tuple(tuple(range(n)) for n in sizes), {}, ())
    return name, _filled(model, FAMILIES[name], draw(st.integers(0, 2**32 - 1)))


SEEDS = st.sampled_from([None, 0, 1])


@settings(deadline=None, max_examples=150)
@given(twins(), SEEDS)
def test_floors_and_ceilings_in_any_universe(twin: Twin, seed: int | None) -> None:
    """Counts add up and are floors or ceilings wherever two laminar families hold all elements."""
    rounded, whole = twin.round(seed)
    _check(twin, rounded, whole)
    if twin.families():
        assert not rounded.violation


@settings(deadline=None, max_examples=100)
@given(grids(), SEEDS)
def test_floors_and_ceilings_by_number_of_families(case: tuple[str, Twin], seed: int | None) -> None:
    """None, one or two crossing families are always exact; three are as reported."""
    name, twin = case
    rounded, whole = twin.round(seed)
    _check(twin, rounded, whole)
    if not name.startswith("three"):
        assert rounded.violation == {}


@settings(deadline=None, max_examples=60)
@given(twins(unit=3), SEEDS)
def test_thirds_add_up(twin: Twin, seed: int | None) -> None:
    """Sums that are whole are met exactly although the floats do not add up to them."""
    _check(twin, *twin.round(seed))


def _distance(twin: Twin, whole: Mapping[Type, int]) -> Fraction:
    return sum(((whole[t] - real) ** 2 for t, real in twin.real.items()), Fraction())


def _enumerated(twin: Twin, sets: Sequence[frozenset[Type]]) -> tuple[np.ndarray, np.ndarray]:
    """For every rounding of every type: its squared distance, and by how much it breaks the sets in all."""
    fractional = [t for t, x in twin.real.items() if x.denominator > 1]
    up = np.array(list(itertools.product([0, 1], repeat=len(fractional))), dtype=int)
    f = np.array([float(twin.real[t] % 1) for t in fractional])
    distance = (up * (1 - 2 * f)).sum(axis=1) + (f**2).sum()
    broken = np.zeros(len(up))
    for group in sets:
        real = sum(twin.real[t] for t in group)
        count = up[:, [t in group for t in fractional]].sum(axis=1) + sum(
            math.floor(twin.real[t]) for t in group
        )
        broken += np.maximum(np.maximum(math.floor(real) - count, count - math.ceil(real)), 0)
    return distance, broken


def _tiny(twin: Twin) -> Twin:
    assume(sum(x.denominator > 1 for x in twin.real.values()) <= 12)
    return twin


@settings(deadline=None, max_examples=150)
@given(twins(types=14).map(_tiny))
def test_nearest_by_enumeration(twin: Twin) -> None:
    """No rounding that keeps all features and cells is nearer, if two families hold them."""
    rounded, whole = twin.round()
    sets = [g for n in twin.features for g in twin.groups(n)] + twin.cells()
    distance, broken = _enumerated(twin, sets)
    if twin.families():
        assert float(_distance(twin, whole)) == pytest.approx(distance[broken == 0].min(), abs=1e-9)
    if (broken == 0).any():
        assert not rounded.violation


@settings(deadline=None, max_examples=60)
@given(grids(["none", "one"], size=2), st.integers(0, 2**32 - 1))
def test_nearest_without_asking_for_cells(case: tuple[str, Twin], seed: int) -> None:
    """When one feature refines the others, cells ask for nothing more: no rounding that keeps the features is nearer."""
    twin = _tiny(_filled(case[1].model, FAMILIES[case[0]], seed))
    distance, broken = _enumerated(twin, [g for n in twin.features for g in twin.groups(n)])
    assert float(_distance(twin, twin.round()[1])) == pytest.approx(distance[broken == 0].min(), abs=1e-9)


def test_cells_are_kept_though_least_squares_would_not() -> None:
    """Two cells of ten leaves of 0.1 keep a trip each; without cells, the larger leaves beside them would take it."""
    model = Model((("n", "s"), ("bus", "rail"), tuple(range(10))), {}, ())
    small = {("n", "bus"), ("s", "rail")}
    real = {t: Fraction(1, 10) if t[:2] in small else Fraction(3, 10) for t in model.types}
    twin = Twin(model, {"total": (), "zone": ("d0",), "mode": ("d1",), "singleton": model.names}, real)
    rounded, whole = twin.round()
    _check(twin, rounded, whole)
    counts = {
        c: sum(n for t, n in whole.items() if t[:2] == c) for c in itertools.product("ns", ["bus", "rail"])
    }
    assert set(counts.values()) == {1, 3}
    assert all(counts[c] == 1 for c in small)
    stripped = {
        t: int(t[:2] not in small and t[2] < 4) for t in model.types
    }  # zones and modes of 4 trips, too
    assert _distance(twin, stripped) < _distance(twin, whole)


@pytest.mark.parametrize("seed", range(4))
def test_nearest_equals_the_linear_relaxation(seed: int) -> None:
    """On two families of some hundred leaves the distance equals the bound of an independent linear program."""
    model = Model((tuple(range(3)), tuple(range(6)), tuple(range(5)), tuple(range(6))), {}, ())
    twin = _filled(model, FAMILIES["two"], seed)
    rounded, whole = twin.round()
    _check(twin, rounded, whole)
    assert rounded.violation == {}
    place = {t: i for i, t in enumerate(model.types)}
    sets = [g for n in twin.features for g in twin.groups(n)] + twin.cells()
    rows = np.zeros((len(sets), len(place)))
    for j, group in enumerate(sets):
        rows[j, [place[t] for t in group]] = 1
    real = [sum(twin.real[t] for t in g) for g in sets]
    low, high = np.array([math.floor(r) for r in real]), np.array([math.ceil(r) for r in real])
    x = np.array([float(twin.real[t]) for t in model.types])
    f = x - np.floor(x)
    bound = milp(
        1 - 2 * f,
        bounds=Bounds(0, np.where(f > 0, 1, 0)),
        constraints=LinearConstraint(rows, low - rows @ np.floor(x), high - rows @ np.floor(x)),
    )
    assert float(_distance(twin, whole)) == pytest.approx(bound.fun + (f**2).sum(), abs=1e-6)


def _odd() -> Twin:
    """Three types of a half, and three features that each pair two of them: no rounding keeps all."""
    pairs = {f"p{i}": ["alone" if i == j else "pair" for j in range(3)] for i in range(3)}
    model = Model((("a", "b", "c"),), {}, ())
    labels = {n: _labelling(model, by) for n, by in pairs.items()}
    model = Model(model.values, labels, ())
    return Twin(
        model,
        {"total": (), **{n: (n,) for n in pairs}, "singleton": ("d0",)},
        dict.fromkeys(model.types, Fraction(1, 2)),
    )


def _labelling(model: Model, labels: Sequence[str]) -> Labelling:
    return Labelling((0,), dict(zip(model.types, labels, strict=True)))


@pytest.mark.parametrize("seed", [None, *range(20)])
def test_three_families_that_cannot_be_kept(seed: int | None) -> None:
    """One element of one feature is off by one trip, and said to be."""
    rounded, whole = _odd().round(seed)
    _check(_odd(), rounded, whole)
    assert list(rounded.violation.values()) == list(rounded.excess.values()) == [1]


@pytest.mark.parametrize("seed", [None, 0])
def test_many_crossing_features(seed: int | None) -> None:
    """With more features than choices can be compared, all is still reported as it is."""
    rng = np.random.default_rng(5)
    model = Model((tuple(range(24)),), {}, ())
    labels = {f"l{i}": _labelling(model, rng.choice(["x", "y", "z"], 24).tolist()) for i in range(14)}
    twin = _filled(Model(model.values, labels, ()), {n: (n,) for n in labels}, 1)
    rounded, whole = twin.round(seed)
    _check(twin, rounded, whole)
    assert len(rounded.violation) <= 12


def test_features_with_the_most_elements_are_exact() -> None:
    """Of three crossing features only the smallest is off; taking the largest first is not always best."""
    model = Model(((0, 1), (0, 1, 2), (0, 1, 2, 3), (0, 1)), {}, ())
    off = [set(_filled(model, FAMILIES["three"], 3).round(seed)[0].violation) for seed in range(20)]
    assert set().union(*off) == {"a"}
    triangles = np.array([[0, 1], [0, 2], [1, 2], [0, 3], [0, 4], [3, 4]])
    assert _largest_choice(np.array([5, 4, 4, 4, 4]), triangles) == [1, 2, 3, 4]


def test_least_violation_by_enumeration() -> None:
    """With more than two families, no rounding that keeps the exact features breaks the others less."""
    met = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(8, 11))
        model = Model((tuple(range(n)),), {}, ())
        labels = {f"l{i}": _labelling(model, rng.choice(["x", "y", "z"], n).tolist()) for i in range(9)}
        twin = _filled(Model(model.values, labels, ()), {f: (f,) for f in labels}, seed, unit=2)
        rounded, whole = twin.round()
        _check(twin, rounded, whole)
        kept = [g for f in twin.features if f not in rounded.violation for g in twin.groups(f)] + twin.cells()
        others = [g for f in rounded.violation for g in twin.groups(f)]
        total = sum(_beyond(sum(whole[t] for t in g), sum(twin.real[t] for t in g)) for g in others)
        (_, hard), (_, broken) = _enumerated(twin, kept), _enumerated(twin, others)
        assert total == broken[hard == 0].min()
        met += total > 0
    assert met >= 10


# At random.

COPIES = 20_000
MARGINS = {
    "one": {"zone": ("copy", "x")},
    "chain": {"zone": ("copy", "x"), "fine": ("copy", "x", "y")},
    "two": {"zone": ("copy", "x"), "mode": ("copy", "y")},
    "two, deep": {"zone": ("copy", "x"), "half": ("copy", "x.half"), "mode": ("copy", "y")},
    "three": {"zone": ("copy", "x"), "mode": ("copy", "y"), "kind": ("copy", "z")},
}


@pytest.mark.parametrize("name", MARGINS)
def test_random_rounding_has_the_real_mean(name: str) -> None:
    """Each copy has a whole total, so copies are drawn independently: Hoeffding's bound holds at 1e-6 for every leaf."""
    rng = np.random.default_rng(7)
    shape = (3, 4, 2)
    real = rng.integers(1, 2 * UNIT, shape) / UNIT
    real[-1, -1, -1] += math.ceil(real.sum()) - real.sum()
    x = cbdp.Dimension(range(shape[0]), half=["a", "a", "b"])
    universe = cbdp.Universe(copy=range(COPIES), x=x, y=range(shape[1]), z=range(shape[2]))
    listed = [cbdp.Feature(n, by=by) for n, by in MARGINS[name].items()]
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("copy", by="copy"), *listed])
    value = np.tile(real.ravel(), COPIES)
    rounded = round_trips(dag, np.arange(len(value)), value, entropy=InsecureSeededEntropy(3))
    whole = np.zeros(len(value))
    whole[rounded.index] = rounded.value
    draws = whole.reshape(COPIES, *shape)
    assert (draws.sum(axis=(1, 2, 3)) == round(real.sum())).all()
    assert (np.abs(draws - real) < 1).all()
    bound = math.sqrt(math.log(2 * real.size / 1e-6) / (2 * COPIES))
    assert np.abs(draws.mean(axis=0) - real).max() < bound
    assert len(np.unique(draws.reshape(COPIES, -1), axis=0)) > 100  # and not always the same few
    if name != "three":
        assert rounded.violation == {}
        for axes in [(2, 3), (1, 3)] if "two" in name else [(2, 3)]:
            margin, truth = draws.sum(axis=axes), real.sum(axis=tuple(a - 1 for a in axes))
            assert (np.abs(margin - truth) < 1).all()


@pytest.mark.parametrize("name", ["none", "one", "two", "two, deep"])
def test_random_rounding_of_a_fractional_total(name: str) -> None:
    """Independent calls: every leaf and the total go up as often as a coin of their fraction, by exact tails at 1e-6."""
    calls = 700
    model = Model(((0, 1), (0, 1), (0, 1), (0, 1)), {}, ())
    twin = _filled(model, FAMILIES[name], 11)
    dag = twin.dag()
    _, index, value = twin.estimate(dag)
    assert value.sum() % 1 > 0
    entropy = InsecureSeededEntropy(5)
    draws = np.zeros((calls, dag.universe.size))
    for row in draws:
        rounded = round_trips(dag, index, value, entropy=entropy)
        row[rounded.index] = rounded.value
    real = np.append(value, value.sum())
    up = np.column_stack([draws[:, index], draws.sum(axis=1)]) - np.floor(real)
    assert np.isin(up, (0, 1)).all()
    often = up.sum(axis=0)
    assert 0 < often[-1] < calls
    tails = stats.binom.cdf(often, calls, real % 1), stats.binom.sf(often - 1, calls, real % 1)
    assert np.minimum(*tails).min() * 2 * len(real) > 1e-6


@settings(deadline=None, max_examples=60)
@given(twins(), SEEDS, st.randoms(use_true_random=False))
def test_order_of_features_does_not_matter(twin: Twin, seed: int | None, shuffle: Any) -> None:
    """The same answer for any order of the features, and the same again."""
    order = list(twin.features)
    shuffle.shuffle(order)
    first, again = twin.round(seed)[1], twin.round(seed, order)[1]
    assert first == again == twin.round(seed)[1]


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("name", FAMILIES)
def test_reversed_features(name: str, seed: int | None) -> None:
    """Cells are numbered by their trip types: features listed backwards give the same answer from the same words."""
    model = Model(((0, 1, 2), (0, 1, 2), (0, 1, 2), (0, 1)), {}, ())
    twin = _filled(model, FAMILIES[name], 4)
    assert twin.round(seed)[1] == twin.round(seed, list(twin.features)[::-1])[1]


# Edges.


@settings(deadline=None, max_examples=60)
@given(twins(), SEEDS)
def test_whole_numbers_stay(twin: Twin, seed: int | None) -> None:
    """Whole counts are their own rounding, and so is a rounding."""
    whole = twin.round(seed)[1]
    again, same = Twin(twin.model, twin.features, {t: Fraction(n) for t, n in whole.items()}).round(seed)
    assert same == whole
    assert again.violation == {}


def _line(n: int, *features: cbdp.Feature) -> cbdp.FeatureDag:
    half = ["l" if i < n / 2 else "r" for i in range(n)]
    return cbdp.FeatureDag(cbdp.Universe(x=cbdp.Dimension(range(n), half=half)), features)


@pytest.mark.parametrize("entropy", [None, InsecureSeededEntropy(0)])
def test_nothing_stays_nothing(entropy: Any) -> None:
    """An estimate of no trips, listed or not, gives no trips."""
    for index, value in [((), ()), ((1, 2), (0.0, 0.0)), ((0, 1), (1e-9, 1e-12))]:
        rounded = round_trips(
            _line(3), np.array(index, dtype=np.int64), np.array(value, dtype=float), entropy=entropy
        )
        assert len(rounded.index) == len(rounded.value) == 0
        assert rounded.violation == {}


@pytest.mark.parametrize(
    ("value", "whole"), [(0.4, 0), (0.6, 1), (7.2, 7), (7.9999999, 8), (1e12 + 0.75, 10**12 + 1)]
)
def test_single_leaf(value: float, whole: int) -> None:
    """One type in the whole universe goes to the nearest whole number."""
    rounded = round_trips(_line(1), np.array([0]), np.array([value]))
    assert rounded.value.sum() == whole


def test_equal_leaves_go_up_in_order() -> None:
    """Among equals the first types go up, in every element as many as it needs."""
    dag = _line(12, cbdp.Feature("half", by="x.half"))
    rounded = round_trips(dag, np.arange(12), np.full(12, 1 / 3))
    assert rounded.index.tolist() == [0, 1, 6, 7]


def test_public_total_is_met() -> None:
    """Sums within float error of a whole number are that number; far larger counts keep their fractions."""
    tenth = np.full(100, 0.1)
    assert round_trips(_line(100), np.arange(100), tenth).value.sum() == 10
    assert round_trips(_line(100), np.arange(100), tenth - 1e-9).value.sum() == 10
    large = round_trips(_line(2), np.arange(2), np.array([600_000.4, 600_000.4]))
    assert sorted(large.value.tolist()) == [600_000, 600_000]
    assert round_trips(_line(2), np.arange(2), np.array([600_000.4, 600_000.5])).value.sum() in {
        1_200_000,
        1_200_001,
    }


@pytest.mark.parametrize("entropy", [None, InsecureSeededEntropy(0)])
def test_many_small_errors_do_not_contradict_each_other(entropy: Any) -> None:
    """Leaves that each pass for whole, and add up to a trip more: they are then not taken for whole."""
    n = 1200
    value = np.full(n, 1000 + 9e-4)
    rounded = round_trips(_line(n, cbdp.Feature("half", by="x.half")), np.arange(n), value, entropy=entropy)
    assert rounded.value.sum() in {1000 * n + 1, 1000 * n + 2}
    assert set(rounded.value.tolist()) == {1000, 1001}
    assert rounded.violation == {}


def test_large_counts_keep_their_fractions() -> None:
    """A count of 200,000.15 is rounded up at times: the chance of none in 200 draws is 8e-15."""
    entropy = InsecureSeededEntropy(0)
    value = np.array([200_000.15])
    drawn = {int(round_trips(_line(1), np.array([0]), value, entropy=entropy).value[0]) for _ in range(200)}
    assert drawn == {200_000, 200_001}


@pytest.mark.parametrize("seed", [None, 0])
def test_a_city(seed: int | None) -> None:
    """Zones and modes under time, a hundred thousand sparse types: exact in whole numbers, and all margins kept."""
    rng = np.random.default_rng(2)
    stops = cbdp.Dimension(range(60), zone=[i // 6 for i in range(60)])
    universe = cbdp.Universe(origin=stops, destination=stops, time=range(40)).without_equal(
        "origin", "destination"
    )
    dag = cbdp.features.odmts(universe, modes=rng.integers(0, 4, (60, 60)))
    index = np.sort(rng.choice(universe.size, 100_000, replace=False))
    units = rng.integers(1, 64, len(index))
    entropy = None if seed is None else InsecureSeededEntropy(seed)
    rounded = round_trips(dag, index, units / 32, entropy=entropy)
    assert rounded.violation == {}
    for name in ("total", "time", "zone", "mode", "singleton"):
        partition = dag.partition(name)
        real, whole = np.zeros(partition.size, dtype=np.int64), np.zeros(partition.size, dtype=np.int64)
        np.add.at(real, partition.element_of(universe.unrank_codes(index)), units)
        np.add.at(whole, partition.element_of(universe.unrank_codes(rounded.index)), rounded.value)
        assert (np.abs(32 * whole - real) < 32).all()


@pytest.mark.parametrize(
    ("index", "value", "says"),
    [
        ([0, 1], [1.0], "one length"),
        ([0.5], [1.0], "whole numbers"),
        ([1, 0], [1.0, 1.0], "ascend"),
        ([1, 1], [1.0, 1.0], "ascend"),
        ([3], [1.0], "ascend"),
        ([-1], [1.0], "ascend"),
        ([0], [-0.5], "-0.5"),
        ([0], [math.nan], "nan"),
        ([0], [math.inf], "inf"),
        ([0], [1e19], "below 2"),
    ],
)
def test_wrong_input_is_named(index: list[Any], value: list[float], says: str) -> None:
    """An estimate that is none is refused with the value that is wrong."""
    with pytest.raises(InputError, match=says):
        round_trips(_line(3), np.array(index), np.array(value))
