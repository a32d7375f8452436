"""Features, and the DAG that orders them by refinement: derived from the partitions themselves, never declared.

A feature is a named partition of the universe (a marginal, in the language of contingency tables). The transitive reduction of the refinement order gives the
consistency constraints (O2) of Fioretto and others (2018); the common refinement of all features but `singleton` gives the cells.

Ready-made feature sets of published case studies, and the picture of a DAG, come last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from pathlib import Path

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Indices, Ints
from cbdp.errors import CbdpError, InputError
from cbdp_features.universe import Attribute, Labels, Partition, Universe


@dataclass(frozen=True, init=False)
class Feature:
    """A name and the attributes it groups by.

    >>> Feature("zone", by=["origin.zone", "destination.zone", "time"])
    Feature(name='zone', by=('origin.zone', 'destination.zone', 'time'))
    """

    name: str
    by: tuple[str, ...]

    def __init__(self, name: str, by: str | Sequence[str]) -> None:
        by = (by,) if isinstance(by, str) else tuple(by)
        if not name or "/" in name or name != name.strip():
            raise InputError(f"a feature cannot be named {name!r}: its name becomes a file name")
        if len(set(by)) < len(by):
            raise InputError(f"feature {name!r} groups by an attribute twice: {', '.join(by)}")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "by", by)


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

    >>> from cbdp_features import Dimension, Universe
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
        by_name = {f.name: f for f in listed}
        self._check_reserved(by_name, every)
        between = [f for f in listed if f.name not in (SINGLETON, TOTAL)]
        # `singleton` lists the dimensions in the universe's order, so that leaves are numbered as the universe numbers them
        ends = Feature(TOTAL, by=()), Feature(SINGLETON, by=every)
        self.features: Mapping[str, Feature] = {f.name: f for f in (ends[0], *between, ends[1])}
        self._partitions = {n: universe.partition(f.by) for n, f in self.features.items() if n != SINGLETON}

    @staticmethod
    def _check_reserved(by_name: Mapping[str, Feature], every: tuple[str, ...]) -> None:
        if TOTAL in by_name and by_name[TOTAL].by:
            raise InputError("the feature 'total' groups by nothing: give this one another name")
        if SINGLETON in by_name and set(by_name[SINGLETON].by) != set(every):
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
        """The transitive reduction (Aho, Garey and Ullman 1972): its edges are the consistency constraints (O2) that imply all others."""
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
        element_of_cell = {n: self.partition(n).element_of(types).astype(np.int32) for n in between}
        return Cells(atoms, element_of_cell)

    @cached_property
    def cell_of_leaf(self) -> Indices:
        """The cell of every leaf in index order (a number per leaf: for universes that fit in memory)."""
        return self.cells.partition.of_every_type()

    def mermaid(self) -> str:
        """The DAG as Mermaid text, an arrow from each feature to those it is made of."""
        lines = ["graph TD"]
        for name, feature in self.features.items():
            by = " × ".join(feature.by) or "everything"
            text = f"{name}<br/>{by}<br/>{self.size(name):,}".replace('"', "#quot;")
            lines.append(f'    {_node_identifier(name)}["{text}"]')
        lines += [
            f"    {_node_identifier(coarse)} --> {_node_identifier(fine)}" for fine, coarse in self.edges
        ]
        return "\n".join(lines)

    def draw(self, path: str | Path) -> Path:
        """The DAG as a picture (PNG, SVG or PDF by the path's ending)."""
        return draw_dag(self, Path(path))


def _node_identifier(name: str) -> str:
    return "f_" + "".join(c if c.isalnum() and c.isascii() else f"_{ord(c):x}_" for c in name)


# Which dimensions and attributes the measured tables distinguish. What no table does is measured only by single trip types: their noise
# adds up in every sum, and posterior means of single types may be far off for such sums.


MAX_EXAMINED_COMBINATIONS = 2**22  # combinations of values: 32 MB of codes


def determines(features: FeatureDag, table: str, by: Sequence[str]) -> bool:
    """Whether counts by these attributes are sums of the table's (a functional dependency on its attributes).

    >>> from cbdp_features import Dimension, Feature, Universe
    >>> stops = Dimension(["A", "B", "C"], zone=["n", "n", "s"])
    >>> dag = FeatureDag(Universe(origin=stops, day=["sat", "sun"]), [Feature("origin", by="origin")])
    >>> determines(dag, "origin", ["origin.zone"]), determines(dag, "origin", ["day"])
    (True, False)
    """
    universe, columns = features.universe, features.features[table].by
    attributes = [universe.attribute(name) for name in columns]
    return table == SINGLETON or all(
        n in columns or _is_function_of(universe, universe.attribute(n), attributes) for n in by
    )


def _is_function_of(universe: Universe, attribute: Attribute, determinants: Sequence[Attribute]) -> bool:
    """Whether an attribute is a function of others. Where these have too many values together, it is taken not to be."""
    near = [other for other in determinants if set(other.of) & set(attribute.of)]
    over = tuple(dict.fromkeys(dim for a in (attribute, *near) for dim in a.of))
    if not near or math.prod(len(universe.dimension(dim)) for dim in over) > MAX_EXAMINED_COMBINATIONS:
        near, over = [other for other in near if set(other.of) <= set(attribute.of)], attribute.of
    if not near or attribute.codes.size > MAX_EXAMINED_COMBINATIONS:
        return len(attribute.labels) == 1
    shape = [len(universe.dimension(dim)) for dim in over]
    values: Ints = np.zeros(shape, dtype=np.int64)
    for other in near:
        values = np.unique(values * len(other.labels) + _broadcast_codes(other, over), return_inverse=True)[
            1
        ].reshape(shape)
    both = np.unique(values * len(attribute.labels) + _broadcast_codes(attribute, over))
    return len(both) == int(values.max()) + 1


def _broadcast_codes(attribute: Attribute, over: tuple[str, ...]) -> Ints:
    """The codes of an attribute along more dimensions than its own."""
    order = sorted(range(len(attribute.of)), key=lambda axis: over.index(attribute.of[axis]))
    sizes = dict(zip(attribute.of, attribute.codes.shape, strict=True))
    return np.transpose(attribute.codes, order).reshape([sizes.get(dim, 1) for dim in over])


def undistinguished(features: FeatureDag, measured: Iterable[str]) -> tuple[str, ...]:
    """The dimensions and attributes that no measured table distinguishes; `singleton` does not count as a table.

    >>> from cbdp_features import Dimension, Feature, Universe
    >>> stops = Dimension(["A", "B", "C"], zone=["n", "n", "s"])
    >>> dag = FeatureDag(Universe(origin=stops, day=["sat", "sun"]), [Feature("zone", by="origin.zone")])
    >>> undistinguished(dag, dag.features)
    ('origin', 'day')
    """
    tables = [name for name in measured if name != SINGLETON]
    varying = [n for n, attribute in features.universe.attributes.items() if len(attribute.labels) > 1]
    return tuple(n for n in varying if not any(determines(features, table, [n]) for table in tables))


def distinguished_attributes(
    features: FeatureDag, measured: Iterable[str], dimension: str
) -> tuple[str, ...]:
    """The attributes of a dimension (like the zone of a stop) that measured tables distinguish."""
    missing = set(undistinguished(features, measured))
    groupings = [
        n for n, a in features.universe.attributes.items() if a.of == (dimension,) and n != dimension
    ]
    return tuple(n for n in groupings if n not in missing and len(features.universe.attribute(n).labels) > 1)


# Ready-made feature sets of the published case studies: the CBDP paper's (Fioretto and others 2018) and Opal's (Asghar and others 2018).


TRIP_ENDS, DAY_DIMENSION = ("origin", "destination"), "day"

EXTRA_FEATURES: Mapping[str, tuple[str, ...]] = {
    "origin": ("origin",),
    "destination": ("destination",),
    "origin-time": ("origin", "time"),
    "destination-time": ("destination", "time"),
    "origin-destination": ("origin", "destination"),
}
"""Further features of trips that `odmts` adds on request: worth their share of ε where a target names them."""


def odmts(
    universe: Universe,
    zones: Labels | None = None,
    modes: Labels | None = None,
    *,
    level: int = 5,
    extra: Sequence[str] = (),
) -> FeatureDag:
    """The case study's features: total, time, zone pair × time, mode × time and singleton (F1–F5 of the CBDP paper).

    `zones` labels the stops, `modes` the (origin, destination) pairs or the (origin, destination, time) types; leave
    one out when the universe has it already. `level` 4 leaves the modes out, 3 the zones as well (O4 and O3). `extra`
    adds features of single stops or pairs of them: origin, destination, origin-time, destination-time, origin-destination.
    With these the features form more than two families, and rounding may miss some counts by one; it reports which.

    A universe with days, or with further dimensions, gets tables that tell these apart (`features_for_uncovered_dimensions`).

    >>> from cbdp_features import periods
    >>> city = Universe(origin=["A", "B"], destination=["A", "B"], time=periods("08:00", "10:00", "1h"))
    >>> odmts(city, zones={"A": "n", "B": "s"}, modes=[["walk", "bus"], ["bus", "walk"]])
    FeatureDag(total 1, time 2, zone 8, mode 4, singleton 8)
    >>> odmts(city, level=3, extra=["origin-time"])
    FeatureDag(total 1, time 2, origin-time 4, singleton 8)
    >>> week = Universe(origin=["A", "B"], destination=["A", "B"], day=["sat", "sun"], time=["am", "pm"])
    >>> odmts(week, level=3)
    FeatureDag(total 1, time 2, day 2, day-time 4, singleton 16)
    """
    if level not in (3, 4, 5):
        raise InputError(f"odmts level {level}: 3 (time), 4 (and zones) or 5 (and modes)")
    features = [Feature("time", by="time")]
    if level >= 4:
        for end in TRIP_ENDS:
            if zones is not None:
                universe = universe.with_attribute(f"{end}.zone", end, zones)
        features.append(Feature("zone", by=["origin.zone", "destination.zone", "time"]))
    if level >= 5:
        if modes is not None:
            universe = _with_modes(universe, modes)
        features.append(Feature("mode", by=["mode", "time"]))
    return FeatureDag(
        universe, [*features, *features_for_uncovered_dimensions(universe, features), *extra_features(extra)]
    )


def features_for_uncovered_dimensions(
    universe: Universe, features: Sequence[Feature], beside: Sequence[str] = ()
) -> list[Feature]:
    """Tables for the dimensions that no feature distinguishes: days by themselves and with the time, others by themselves.

    Without them counts by day would be a guess from single trip types. Stops are left to their zones and to `extra`: with tables
    of both ends every trip type is a cell of its own, and other tables get less of ε (docs/explanation/tables.md has the figures). `beside` are
    attributes that every table groups by as well.
    """
    covered = {dim for feature in features for name in feature.by for dim in universe.attribute(name).of}
    taken = {TOTAL, SINGLETON, *(feature.name for feature in features)}
    tables = []
    for name, dimension in universe.dimensions.items():
        if name in (*TRIP_ENDS, *covered) or len(dimension) == 1:
            continue
        tables.append(Feature(f"by-{name}" if name in taken else name, by=[*beside, name]))
        if name == DAY_DIMENSION and "time" in universe.dimensions:
            tables.append(Feature("day-time", by=[*beside, name, "time"]))
    return tables


def extra_features(names: Sequence[str]) -> list[Feature]:
    """The further features of these names."""
    if isinstance(names, str):
        raise InputError(f"extra is {names!r}: give a list of names")
    for name in names:
        if name not in EXTRA_FEATURES:
            raise InputError(f"unknown extra feature {name!r}: there are {', '.join(EXTRA_FEATURES)}")
    return [Feature(name, by=EXTRA_FEATURES[name]) for name in names]


def _with_modes(universe: Universe, modes: Labels) -> Universe:
    """Modes are of (origin, destination), or of the time as well: their own shape says which."""
    triple = ("origin", "destination", "time")
    return universe.with_attribute("mode", triple if _number_of_dimensions(modes) == 3 else triple[:2], modes)


def _number_of_dimensions(modes: Labels) -> int:
    if isinstance(modes, Mapping):
        if not modes:
            raise InputError("modes is empty: label every (origin, destination)")
        return len(next(iter(modes)))
    if callable(modes):
        taken = signature(modes).parameters.values()
        return sum(
            p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in taken
        )
    return np.ndim(np.asarray(modes, dtype=object))


def opal(universe: Universe) -> FeatureDag:
    """Opal's tables for taps ⟨tap, time, location⟩: by time, by location and by both, each for tap-ons and tap-offs.

    Days and further dimensions get tables of their own, as with `odmts`.

    >>> taps = Universe(tap=["on", "off"], time=["08:00", "08:15"], location=["Manly", "Quay", "Circular"])
    >>> opal(taps)
    FeatureDag(total 1, tap 2, time 4, location 6, singleton 12)
    """
    features = opal_features()
    return FeatureDag(
        universe, [*features, *features_for_uncovered_dimensions(universe, features, beside=["tap"])]
    )


def opal_features() -> list[Feature]:
    """Opal's tables, without those for further dimensions."""
    return [
        Feature("tap", by="tap"),
        Feature("time", by=["tap", "time"]),
        Feature("location", by=["tap", "location"]),
    ]


# The picture


def draw_dag(dag: FeatureDag, path: Path) -> Path:
    """Coarse features above, the features that refine them below."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise CbdpError("drawing needs matplotlib: pip install 'cbdp[plot]'") from missing
    layers = list(nx.topological_generations(dag.reduction.reverse(copy=True)))
    wide = max(len(layer) for layer in layers)
    figure = Figure(figsize=(2.9 * wide + 0.6, 1.35 * len(layers) + 0.3), layout="constrained")
    axes = figure.add_subplot()
    place = {}
    for depth, layer in enumerate(layers):
        for column, name in enumerate(sorted(layer, key=list(dag.features).index)):
            place[name] = (column - (len(layer) - 1) / 2, -depth)
    for fine, coarse in dag.edges:
        axes.annotate(
            "", xy=place[fine], xytext=place[coarse], arrowprops={"arrowstyle": "-|>", "color": "#555", "shrinkA": 24, "shrinkB": 26}
        )  # fmt: skip
    for name, feature in dag.features.items():
        text = f"{name}\n{' × '.join(feature.by) or 'everything'}\n{dag.size(name):,}"
        box = {"boxstyle": "round,pad=0.5", "facecolor": "#eaf2fb", "edgecolor": "#2b5d8a"}
        axes.text(*place[name], text, ha="center", va="center", fontsize=8, bbox=box)
    axes.set_xlim(-wide / 2 - 0.1, wide / 2 + 0.1)
    axes.set_ylim(-len(layers) + 0.45, 0.55)
    axes.axis("off")
    figure.savefig(path, dpi=150)
    return path
