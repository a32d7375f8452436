"""Random universes, features and measurements, each with a twin that is listed type by type and knows no cleverness.

The twin (`Model`, `Case`) is plain Python over `itertools.product`: every oracle in the tests is computed from it alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import cbdp

Type = tuple[Hashable, ...]


@dataclass(frozen=True, eq=False)
class Labelling:
    """An attribute as a table from the values of some dimensions (by position) to a label."""

    of: tuple[int, ...]
    table: Mapping[Type, Hashable]
    given: str = "mapping"  # how it is handed to cbdp: mapping, function, array, or within its dimension

    def __call__(self, trip: Type) -> Hashable:
        return self.table[tuple(trip[d] for d in self.of)]


@dataclass(frozen=True, eq=False)
class Model:
    """A universe listed type by type."""

    values: tuple[tuple[Hashable, ...], ...]
    labels: Mapping[str, Labelling]
    zeros: tuple[tuple[tuple[int, ...], frozenset[Type]], ...]
    types: list[Type] = field(init=False)

    def __post_init__(self) -> None:
        types = [t for t in itertools.product(*self.values) if not self.is_zero(t)]
        object.__setattr__(self, "types", types)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"d{i}" for i in range(len(self.values)))

    def is_zero(self, trip: Type) -> bool:
        return any(tuple(trip[d] for d in of) in zero for of, zero in self.zeros)

    def label(self, name: str, trip: Type) -> Hashable:
        return trip[self.names.index(name)] if name in self.names else self.labels[name](trip)

    def attributes(self) -> list[str]:
        return [*self.names, *self.labels]

    def groups(self, by: tuple[str, ...]) -> dict[Type, frozenset[Type]]:
        """The partition by these attributes: labels → the types that have them."""
        found: dict[Type, set[Type]] = {}
        for trip in self.types:
            found.setdefault(tuple(self.label(a, trip) for a in by), set()).add(trip)
        return {key: frozenset(group) for key, group in found.items()}

    def universe(self) -> cbdp.Universe:
        """The same universe as cbdp holds it."""
        dims = {}
        for i, name in enumerate(self.names):
            own = {
                key.split(".")[1]: [made.table[v,] for v in self.values[i]]
                for key, made in self.labels.items()
                if made.given == "dimension" and made.of == (i,)
            }
            dims[name] = cbdp.Dimension(self.values[i], **own)
        universe = cbdp.Universe(**dims)
        for name, made in self.labels.items():
            if made.given != "dimension":
                of = [self.names[d] for d in made.of]
                universe = universe.with_attribute(name, of, _handed(self, made))
        for of, zero in self.zeros:
            mask = np.zeros([len(self.values[d]) for d in of], dtype=bool)
            for place in np.ndindex(*mask.shape):
                mask[place] = tuple(self.values[d][p] for d, p in zip(of, place, strict=True)) in zero
            universe = universe.without([self.names[d] for d in of], mask)
        return universe


def _handed(model: Model, made: Labelling) -> Any:
    if made.given == "function":
        return lambda *key: made.table[key]
    if made.given == "array":
        shape = [len(model.values[d]) for d in made.of]
        table = np.empty(shape, dtype=object)
        for place in np.ndindex(*shape):
            table[place] = made.table[tuple(model.values[d][p] for d, p in zip(made.of, place, strict=True))]
        return table
    return {key[0] if len(key) == 1 else key: label for key, label in made.table.items()}


LABELS = (("n", "s", "e", "w"), (0, 1, 2, 3), ("a", 1, ("x", 2), 2.5))
NAMES = st.sampled_from([labels[:k] for labels in LABELS for k in range(1, len(labels) + 1)])
GIVEN = (
    st.sampled_from(["mapping", "function", "array"]),
    st.sampled_from(["mapping", "function", "array", "dimension"]),
)
COIN = st.booleans()
VALUES = (
    lambda n: tuple(range(n)),
    lambda n: tuple("abcdefgh"[:n]),
    lambda n: tuple((i, "v") for i in range(n)),
)


@st.composite
def models(
    draw: Any, *, dimensions: int = 4, size: int = 5, types: int = 400, zeros: int = 3, labels: int = 4
) -> Model:
    """A universe of at most `types` types, with attributes and overlapping structural zeros."""
    sizes = draw(_sizes(dimensions, size))
    assume(math.prod(sizes) <= types)
    kinds = _picked(draw, VALUES, len(sizes), len(sizes))
    values = tuple(kind(n) for kind, n in zip(kinds, sizes, strict=True))
    if len(set(sizes)) == 1 and draw(COIN):
        values = (values[0],) * len(sizes)
    made = {}
    for i in range(draw(_up_to(labels))):
        of = draw(_some(len(sizes), 3))
        given = draw(GIVEN[len(of) == 1])
        names = draw(NAMES)
        keys = list(itertools.product(*(values[d] for d in of)))
        chosen = _picked(draw, names, len(keys), len(keys))
        name = f"d{of[0]}.l{i}" if given == "dimension" else f"l{i}"
        made[name] = Labelling(of, dict(zip(keys, chosen, strict=True)), given)
    masks = []
    for _ in range(draw(_up_to(zeros)) if len(sizes) > 1 else 0):
        of = draw(_some(len(sizes), 3))
        keys = list(itertools.product(*(values[d] for d in of)))
        masks.append((of, frozenset(_picked(draw, keys, 0, max(1, len(keys) // 2)))))
    model = Model(values, made, tuple(masks))
    assume(model.types)
    return model


def _picked(draw: Any, of: Sequence[Any], least: int, most: int) -> list[Any]:
    """So many of at most 256 things, each by a byte: one draw for all of them, where a list takes one for each."""
    return [of[byte % len(of)] for byte in draw(_bytes(least, most))]


# Strategies are kept: to make one and have it validated takes longer than to draw from it.


@cache
def _bytes(least: int, most: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=least, max_size=most)


@cache
def _some(dims: int, most: int) -> st.SearchStrategy[tuple[int, ...]]:
    """One to three dimensions in any order, as often one as two as three."""
    orders = [list(itertools.permutations(range(dims), k)) for k in range(1, min(most, dims) + 1)]
    longest = max(map(len, orders))
    return st.sampled_from([of for some in orders for of in some * (longest // len(some))])


@cache
def _sizes(dimensions: int, size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, size), min_size=1, max_size=dimensions)


@cache
def _up_to(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most)


@st.composite
def feature_lists(draw: Any, model: Model, *, most: int = 4) -> dict[str, tuple[str, ...]]:
    """Up to `most` features between total and singleton: crossing, nested, equal and one-element ones happen."""
    names = model.attributes()
    return {f"f{i}": tuple(dict.fromkeys(_picked(draw, names, 0, 3))) for i in range(draw(_up_to(most)))}


@dataclass(frozen=True, eq=False)
class Case:
    """A model, its features, and noisy counts and weights by feature and labels."""

    model: Model
    features: Mapping[str, tuple[str, ...]]  # with total and singleton
    noisy: Mapping[str, Mapping[Type, float]]  # measured elements only
    weight: Mapping[str, Mapping[Type, float]]  # of the measured elements, as numbers
    rule: Any  # the same weights as handed to cbdp ("size", …, or None: by element)

    def dag(self) -> cbdp.FeatureDag:
        between = [
            cbdp.Feature(n, by=by) for n, by in self.features.items() if n not in ("total", "singleton")
        ]
        return cbdp.FeatureDag(self.model.universe(), between)

    def keys(self, dag: cbdp.FeatureDag, name: str) -> list[Type]:
        """The labels of each element in cbdp's order."""
        columns = dag.partition(name).keys()
        return list(zip(*columns.values(), strict=True)) if columns else [()]

    def measurements(self, dag: cbdp.FeatureDag) -> list[cbdp.Measurement]:
        found = []
        for name, noisy in self.noisy.items():
            keys = self.keys(dag, name)
            elements = [j for j, key in enumerate(keys) if key in noisy]
            whole = len(elements) == len(keys)
            values = [noisy[keys[j]] for j in elements]
            found.append(
                cbdp.Measurement(
                    name, np.array(values), elements=None if whole else np.array(elements, dtype=int)
                )
            )
        return found

    def weights(self, dag: cbdp.FeatureDag) -> Any:
        if self.rule is not None:
            return self.rule
        return {
            name: np.array([weight.get(key, 1.0) for key in self.keys(dag, name)])
            for name, weight in self.weight.items()
        }

    def solve(self, **options: Any) -> tuple[cbdp.FeatureDag, cbdp.Estimate]:
        dag = self.dag()
        return dag, cbdp.post_process(dag, self.measurements(dag), weights=self.weights(dag), **options)

    def leaves(self, dag: cbdp.FeatureDag, estimate: cbdp.Estimate) -> np.ndarray:
        """The estimate in the order of the model's types."""
        found = dict(zip(self.keys(dag, "singleton"), estimate.counts("singleton"), strict=True))
        return np.array([found[trip] for trip in self.model.types])

    def rows(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A (element × leaf, 0/1), c and w of a feature's measured elements, by brute force."""
        place = {trip: i for i, trip in enumerate(self.model.types)}
        groups = self.model.groups(self.features[name])
        a = np.zeros((len(self.noisy[name]), len(place)))
        for j, key in enumerate(self.noisy[name]):
            a[j, [place[t] for t in groups[key]]] = 1.0
        c = np.array(list(self.noisy[name].values()), dtype=float)
        return a, c, np.array([self.weight[name][key] for key in self.noisy[name]])

    def stacked(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All measured elements of all features."""
        a, c, w = zip(*(self.rows(name) for name in self.noisy), strict=True)
        return np.vstack(a), np.concatenate(c), np.concatenate(w)

    def truth(self, seed: int) -> np.ndarray:
        """Non-negative integer counts of the types, many of them zero."""
        rng = np.random.default_rng(seed)
        n = len(self.model.types)
        return (rng.integers(0, 20, n) * (rng.random(n) < 0.5)).astype(float)

    def counts(self, name: str, leaves: np.ndarray) -> dict[Type, float]:
        """The feature's count by labels, for counts of the model's types."""
        place = {trip: i for i, trip in enumerate(self.model.types)}
        groups = self.model.groups(self.features[name])
        return {key: float(sum(leaves[place[t]] for t in group)) for key, group in groups.items()}

    def around(self, leaves: np.ndarray, noise: float, seed: int) -> Case:
        """The same case with noisy counts of these leaves."""
        rng = np.random.default_rng(seed)
        noisy = {}
        for name, old in self.noisy.items():
            true = self.counts(name, leaves)
            noisy[name] = {key: true[key] + (rng.laplace(0, noise) if noise else 0.0) for key in old}
        return replace(self, noisy=noisy)


SEED = st.integers(0, 2**32 - 1)
SCALE = st.sampled_from([1e-4, 1.0, 30.0, 1e6])
OFFSET = st.sampled_from([0.0, 0.0, 2.0, -2.0])
RULE = st.sampled_from(["size", "uniform", "by feature", "by element"])
MEASURED = ("all", "all", "all", "some", "none")


@st.composite
def cases(draw: Any, *, types: int = 24, partial: bool = True, spread: float = 3.0) -> Case:
    """A small problem. Structure is drawn (and shrinks); numbers come from a drawn seed."""
    model = draw(models(dimensions=3, size=4, types=types, zeros=2, labels=3))
    between = draw(feature_lists(model))
    features = {"total": (), **between, "singleton": model.names}
    rng = np.random.default_rng(draw(SEED))
    scale = draw(SCALE)
    offset = draw(OFFSET)
    whole = draw(COIN) and scale >= 1
    rule = draw(RULE)
    asked = _picked(draw, MEASURED, len(features), len(features))
    noisy: dict[str, dict[Type, float]] = {}
    weight: dict[str, dict[Type, float]] = {}
    by_name: dict[str, float] = {}
    for (name, by), drawn in zip(features.items(), asked, strict=True):
        groups = model.groups(by)
        measured = drawn if name != "singleton" else "all"
        kept = [
            k for k in groups if measured == "all" or (partial and measured == "some" and rng.random() < 0.6)
        ]
        if not kept:
            continue
        values = {k: scale * len(groups[k]) ** 0.5 * (rng.laplace() + offset) for k in kept}
        noisy[name] = {k: float(round(v)) if whole else float(v) for k, v in values.items()}
        by_name[name] = float(10 ** rng.uniform(-spread, spread))
        each = {k: float(10 ** rng.uniform(-spread, spread)) for k in kept}
        flat = {"size": 1 / len(groups), "uniform": 1.0, "by feature": by_name[name]}.get(rule)
        weight[name] = each if flat is None else dict.fromkeys(kept, flat)
    handed = rule if rule in ("size", "uniform") else by_name if rule == "by feature" else None
    return Case(model, features, noisy, weight, handed)
