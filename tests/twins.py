"""Universes with an exact real count of every trip type: roundings are judged against them by plain enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from strategies import Labelling, Model, Type, feature_lists, models

import cbdp
from cbdp.rounding.controlled import Rounded, round_trips

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

    def round(self, order: Sequence[str] = ()) -> tuple[Rounded, dict[Type, int]]:
        dag = self.dag(order)
        types, index, value = self.estimate(dag)
        rounded = round_trips(dag, index, value)
        whole = dict.fromkeys(types, 0)
        whole.update({types[i]: int(v) for i, v in zip(rounded.index, rounded.value, strict=True)})
        return rounded, whole

    def groups(self, name: str) -> list[frozenset[Type]]:
        return list(self.model.groups(self.features[name]).values())

    def cells(self) -> list[frozenset[Type]]:
        by = tuple(dict.fromkeys(a for n, by in self.features.items() if n != "singleton" for a in by))
        return list(self.model.groups(by).values())

    def sets(self) -> list[frozenset[Type]]:
        """Every element of every feature, and every cell."""
        return [g for n in self.features for g in self.groups(n)] + self.cells()

    def families(self) -> bool:
        """Whether the elements split into two laminar families, judged set by set."""
        sets = {g for n in self.features for g in self.groups(n)}
        graph = nx.Graph([(a, b) for a, b in itertools.combinations(sets, 2) if a & b and a - b and b - a])
        return nx.is_bipartite(graph)

    def distance(self, whole: Mapping[Type, int]) -> Fraction:
        return sum(((whole[t] - real) ** 2 for t, real in self.real.items()), Fraction())

    def beyond(self, group: frozenset[Type], whole: Mapping[Type, int]) -> int:
        """By how many trips the group's count is neither the floor nor the ceiling of its real value."""
        real, count = sum(self.real[t] for t in group), sum(whole[t] for t in group)
        return max(math.floor(real) - count, count - math.ceil(real), 0)

    def enumerated(self, sets: Sequence[frozenset[Type]]) -> tuple[np.ndarray, np.ndarray]:
        """For every rounding of every type: its squared distance, and by how much it breaks the sets in all."""
        fractional = [t for t, x in self.real.items() if x.denominator > 1]
        up = np.array(list(itertools.product([0, 1], repeat=len(fractional))), dtype=int)
        f = np.array([float(self.real[t] % 1) for t in fractional])
        distance = (up * (1 - 2 * f)).sum(axis=1) + (f**2).sum()
        broken = np.zeros(len(up))
        for group in sets:
            real, least = (sum(of(self.real[t]) for t in group) for of in (Fraction, math.floor))
            count = up[:, [t in group for t in fractional]].sum(axis=1) + least
            broken += np.maximum(np.maximum(math.floor(real) - count, count - math.ceil(real)), 0)
        return distance, broken


def check(twin: Twin, rounded: Rounded, whole: Mapping[Type, int]) -> None:
    """Every element of every feature and every cell, exactly; what is off is what is reported."""
    assert rounded.index.dtype == rounded.value.dtype == np.int64
    assert (rounded.value > 0).all()
    assert (np.diff(rounded.index) > 0).all()
    off, worst = {}, {}
    for name in twin.features:
        beyond = [twin.beyond(group, whole) for group in twin.groups(name)]
        if any(beyond):
            off[name], worst[name] = sum(b > 0 for b in beyond), max(beyond)
    assert (rounded.violation, rounded.excess) == (off, worst)
    assert "total" not in off
    assert "singleton" not in off
    assert not any(twin.beyond(cell, whole) for cell in twin.cells())


def filled(model: Model, between: Mapping[str, tuple[str, ...]], seed: int, unit: int = UNIT) -> Twin:
    """Features and random counts for a model; many types are empty or whole."""
    rng = np.random.default_rng(seed)
    units = rng.integers(0, 3 * unit, len(model.types)) * (rng.random(len(model.types)) < 0.8)
    real = {t: Fraction(int(u), unit) for t, u in zip(model.types, units, strict=True)}
    return Twin(model, {"total": (), **between, "singleton": model.names}, real)


@st.composite
def twins(draw: Any, *, types: int = 60, most: int = 4, unit: int = UNIT) -> Twin:
    """Any universe and features."""
    model = draw(models(dimensions=3, size=4, types=types, zeros=2, labels=4))
    between = draw(feature_lists(model, most=most))
    return filled(model, between, draw(st.integers(0, 2**32 - 1)), unit)


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
    return name, filled(model, FAMILIES[name], draw(st.integers(0, 2**32 - 1)))


def tiny(twin: Twin) -> Twin:
    """Only twins whose roundings can be listed."""
    assume(sum(x.denominator > 1 for x in twin.real.values()) <= 12)
    return twin


def labelled(features: Mapping[str, Sequence[str]]) -> tuple[Model, dict[str, tuple[str, ...]]]:
    """Types 0, 1, 2 … and features that group them by these labels, one label for each type."""
    n = len(next(iter(features.values())))
    types = [(i,) for i in range(n)]
    labels = {f: Labelling((0,), dict(zip(types, by, strict=True))) for f, by in features.items()}
    return Model((tuple(range(n)),), labels, ()), {f: (f,) for f in features}


def line(n: int, *features: cbdp.Feature) -> cbdp.FeatureDag:
    """Types 0 … n − 1, in a left and a right half."""
    half = ["l" if i < n / 2 else "r" for i in range(n)]
    return cbdp.FeatureDag(cbdp.Universe(x=cbdp.Dimension(range(n), half=half)), features)
