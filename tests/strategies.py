"""Random universes, features and measurements, each with a twin that is listed type by type and knows no cleverness.

The twin (`Model`, `Case`) is plain Python over `itertools.product`: every oracle in the tests is computed from it alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
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
    sizes = draw(st.lists(st.integers(1, size), min_size=1, max_size=dimensions))
    assume(math.prod(sizes) <= types)
    values = tuple(draw(st.sampled_from(VALUES))(n) for n in sizes)
    if len(set(sizes)) == 1 and draw(st.booleans()):
        values = (values[0],) * len(sizes)
    made = {}
    for i in range(draw(st.integers(0, labels))):
        of = draw(_some(len(sizes), 3))
        given = draw(
            st.sampled_from(
                ["mapping", "function", "array", "dimension"]
                if len(of) == 1
                else ["mapping", "function", "array"]
            )
        )
        names = draw(st.sampled_from(LABELS))[: draw(st.integers(1, 4))]
        keys = list(itertools.product(*(values[d] for d in of)))
        chosen = draw(st.lists(st.sampled_from(names), min_size=len(keys), max_size=len(keys)))
        name = f"d{of[0]}.l{i}" if given == "dimension" else f"l{i}"
        made[name] = Labelling(of, dict(zip(keys, chosen, strict=True)), given)
    masks = []
    for _ in range(draw(st.integers(0, zeros)) if len(sizes) > 1 else 0):
        of = draw(_some(len(sizes), 3))
        keys = list(itertools.product(*(values[d] for d in of)))
        masks.append((of, frozenset(draw(st.lists(st.sampled_from(keys), max_size=max(1, len(keys) // 2))))))
    model = Model(values, made, tuple(masks))
    assume(model.types)
    return model


def _some(dims: int, most: int) -> st.SearchStrategy[tuple[int, ...]]:
    """One to three dimensions in any order."""
    return st.permutations(range(dims)).flatmap(
        lambda order: st.integers(1, min(most, dims)).map(lambda k: tuple(order[:k]))
    )


@st.composite
def feature_lists(draw: Any, model: Model, *, most: int = 4) -> dict[str, tuple[str, ...]]:
    """Up to `most` features between total and singleton: crossing, nested, equal and one-element ones happen."""
    names = model.attributes()
    by = st.lists(st.sampled_from(names), max_size=3, unique=True).map(tuple)
    return {f"f{i}": draw(by) for i in range(draw(st.integers(0, most)))}


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


SCALES = (1e-4, 1.0, 30.0, 1e6)


@st.composite
def cases(draw: Any, *, types: int = 24, partial: bool = True, spread: float = 3.0) -> Case:
    """A small problem. Structure is drawn (and shrinks); numbers come from a drawn seed."""
    model = draw(models(dimensions=3, size=4, types=types, zeros=2, labels=3))
    between = draw(feature_lists(model))
    features = {"total": (), **between, "singleton": model.names}
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from(SCALES))
    offset = draw(st.sampled_from([0.0, 0.0, 2.0, -2.0]))
    whole = draw(st.booleans()) and scale >= 1
    rule = draw(st.sampled_from(["size", "uniform", "by feature", "by element"]))
    noisy: dict[str, dict[Type, float]] = {}
    weight: dict[str, dict[Type, float]] = {}
    by_name: dict[str, float] = {}
    for name, by in features.items():
        groups = model.groups(by)
        measured = (
            draw(st.sampled_from(["all", "all", "all", "some", "none"])) if name != "singleton" else "all"
        )
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
