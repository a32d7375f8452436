"""The features of a release, ordered by refinement: derived from the partitions themselves, never declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.features.feature import Feature
from cbdp.features.partition import Partition
from cbdp.features.universe import Universe

SINGLETON, TOTAL = "singleton", "total"


@dataclass(frozen=True, eq=False)
class Cells:
    """The atoms of the common refinement of all features but `singleton`: leaves of one cell are interchangeable.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> features.cells.partition.size, features.cells.element_of_cell["time"].tolist()
    (2, [0, 1])
    """

    partition: Partition
    element_of_cell: Mapping[str, NDArray[np.int32]]  # feature → its element that holds each cell

    @property
    def size(self) -> int:
        return self.partition.size


class FeatureDag:
    """Features ordered by refinement. `singleton` and `total` are always among them.

    >>> from cbdp.features import Dimension, Universe
    >>> stops = Dimension(["A", "B", "C"], zone=["n", "n", "s"])
    >>> dag = FeatureDag(Universe(origin=stops, time=["am", "pm"]), [Feature("zone", by=["origin.zone", "time"])])
    >>> dag.sizes
    {'total': 1, 'zone': 4, 'singleton': 6}
    >>> dag.edges
    (('zone', 'total'), ('singleton', 'zone'))
    """

    def __init__(self, universe: Universe, features: Iterable[Feature]) -> None:
        self.universe = universe
        listed = list(features)
        for feature in listed:
            if not isinstance(feature, Feature):
                raise InputError(f"{feature!r} is not a feature: write Feature(name, by=[attributes])")
        names = [f.name for f in listed]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"feature {name!r} is listed twice: give each its own name")
        every = tuple(universe.dimensions)
        given = {f.name: f for f in listed}
        self._check_reserved(given, every)
        between = [f for f in listed if f.name not in (SINGLETON, TOTAL)]
        ends = (
            Feature(TOTAL, by=()),
            Feature(SINGLETON, by=every),
        )  # leaves are numbered as the universe numbers them
        self.features: Mapping[str, Feature] = {f.name: f for f in (ends[0], *between, ends[1])}
        self._partitions = {n: universe.partition(f.by) for n, f in self.features.items() if n != SINGLETON}

    @staticmethod
    def _check_reserved(given: Mapping[str, Feature], every: tuple[str, ...]) -> None:
        if TOTAL in given and given[TOTAL].by:
            raise InputError("the feature 'total' groups by nothing: give this one another name")
        if SINGLETON in given and set(given[SINGLETON].by) != set(every):
            raise InputError(f"the feature 'singleton' groups by all dimensions ({', '.join(every)})")

    def __repr__(self) -> str:
        return f"FeatureDag({', '.join(f'{n} {size:,}' for n, size in self.sizes.items())})"

    def __iter__(self) -> Iterable[str]:
        return iter(self.features)

    def __contains__(self, name: object) -> bool:
        return name in self.features

    @property
    def sizes(self) -> dict[str, int]:
        """The number of elements of each feature."""
        return {name: self.size(name) for name in self.features}

    def size(self, name: str) -> int:
        """The number of elements of a feature."""
        return self.universe.size if name == SINGLETON else self.partition(name).size

    def partition(self, name: str) -> Partition:
        """The partition behind a feature (for `singleton`, only asked for when the universe can be listed)."""
        self._check_name(name)
        if name == SINGLETON and name not in self._partitions:
            self._partitions[name] = self.universe.partition(self.features[name].by)
        return self._partitions[name]

    def _check_name(self, name: str) -> None:
        if name not in self.features:
            raise InputError(f"unknown feature {name!r}: there are {', '.join(self.features)}")

    def refines(self, fine: str, coarse: str) -> bool:
        """Whether every element of `fine` lies inside one element of `coarse`."""
        self._check_name(fine)
        self._check_name(coarse)
        if fine == SINGLETON or coarse == TOTAL:
            return True
        if coarse == SINGLETON:
            return self.size(fine) == self.universe.size
        by, more = self.features[fine].by, self.features[coarse].by
        if set(more) <= set(by):
            return True
        both = self.universe.partition([*by, *(a for a in more if a not in by)])
        return both.size == self.partition(fine).size

    @cached_property
    def graph(self) -> nx.DiGraph:
        """An edge from each feature to every coarser one it refines (of equal partitions, from the later listed)."""
        graph = nx.DiGraph()
        for name, feature in self.features.items():
            graph.add_node(name, by=feature.by, size=self.size(name))
        place = {name: p for p, name in enumerate(self.features)}
        for fine in self.features:
            for coarse in self.features:
                larger = (self.size(fine), place[fine]) > (self.size(coarse), place[coarse])
                if fine != coarse and larger and self.refines(fine, coarse):
                    graph.add_edge(fine, coarse)
        return graph

    @cached_property
    def reduction(self) -> nx.DiGraph:
        """The transitive reduction: its edges are the consistency constraints (O2) that imply all others."""
        reduced = nx.transitive_reduction(self.graph)
        reduced.add_nodes_from(self.graph.nodes(data=True))
        return reduced

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The edges of the reduction, finer to coarser, coarse features first."""
        place = {name: p for p, name in enumerate(self.features)}
        return tuple(sorted(self.reduction.edges, key=lambda e: (place[e[1]], place[e[0]])))

    def map_elements(self, fine: str, coarse: str) -> Ints:
        """For each element of `fine`, the element of `coarse` that holds it."""
        return self.partition(coarse).element_of(self.partition(fine).representatives())

    @cached_property
    def cells(self) -> Cells:
        """The common refinement of all features but `singleton`."""
        between = [n for n in self.features if n != SINGLETON]
        by = list(dict.fromkeys(a for n in between for a in self.features[n].by))
        atoms = self.universe.partition(by)
        types = atoms.representatives()
        held = {n: self.partition(n).element_of(types).astype(np.int32) for n in between}
        return Cells(atoms, held)

    @cached_property
    def cell_of_leaf(self) -> NDArray[Any]:
        """The cell of every leaf in index order (a number per leaf: for universes that fit in memory)."""
        return self.cells.partition.of_every_type()

    def mermaid(self) -> str:
        """The DAG as Mermaid text, an arrow from each feature to those it is made of."""
        lines = ["graph TD"]
        for name, feature in self.features.items():
            by = " × ".join(feature.by) or "everything"
            text = f"{name}<br/>{by}<br/>{self.size(name):,}".replace('"', "#quot;")
            lines.append(f'    {_identifier(name)}["{text}"]')
        lines += [f"    {_identifier(coarse)} --> {_identifier(fine)}" for fine, coarse in self.edges]
        return "\n".join(lines)

    def draw(self, path: str | Path) -> Path:
        """The DAG as a picture (PNG, SVG or PDF by the path's ending)."""
        from cbdp.features.picture import draw

        return draw(self, Path(path))


def _identifier(name: str) -> str:
    return "f_" + "".join(c if c.isalnum() and c.isascii() else f"_{ord(c):x}_" for c in name)
