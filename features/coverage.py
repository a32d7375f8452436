"""Which dimensions and attributes the measured tables tell apart.

What no table tells apart is known only from single trip types. Their noise adds up in every sum, and an estimate that leans on
what is to be expected of single types may be far off for such sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from cbdp.arrays import Ints
from cbdp.features.dag import SINGLETON, FeatureDag
from cbdp.features.dimension import Attribute
from cbdp.features.universe import Universe

LISTED = 2**22  # combinations of values that are looked at


def tells(features: FeatureDag, table: str, by: Sequence[str]) -> bool:
    """Whether counts by these attributes are sums of the table's.

    >>> from cbdp.features import Dimension, Feature, Universe
    >>> stops = Dimension(["A", "B", "C"], zone=["n", "n", "s"])
    >>> dag = FeatureDag(Universe(origin=stops, day=["sat", "sun"]), [Feature("origin", by="origin")])
    >>> tells(dag, "origin", ["origin.zone"]), tells(dag, "origin", ["day"])
    (True, False)
    """
    universe, own = features.universe, features.features[table].by
    known = [universe.attribute(name) for name in own]
    return table == SINGLETON or all(n in own or _follows(universe, universe.attribute(n), known) for n in by)


def _follows(universe: Universe, attribute: Attribute, known: Sequence[Attribute]) -> bool:
    """Whether an attribute follows from others. Where these have too many values together, it is taken not to."""
    near = [other for other in known if set(other.of) & set(attribute.of)]
    over = tuple(dict.fromkeys(dim for a in (attribute, *near) for dim in a.of))
    if not near or math.prod(len(universe.dimension(dim)) for dim in over) > LISTED:
        near, over = [other for other in near if set(other.of) <= set(attribute.of)], attribute.of
    if not near or attribute.codes.size > LISTED:
        return len(attribute.labels) == 1
    shape = [len(universe.dimension(dim)) for dim in over]
    values: Ints = np.zeros(shape, dtype=np.int64)
    for other in near:
        values = np.unique(values * len(other.labels) + _spread(other, over), return_inverse=True)[1].reshape(
            shape
        )
    both = np.unique(values * len(attribute.labels) + _spread(attribute, over))
    return len(both) == int(values.max()) + 1


def _spread(attribute: Attribute, over: tuple[str, ...]) -> Ints:
    """The codes of an attribute along more dimensions than its own."""
    order = sorted(range(len(attribute.of)), key=lambda axis: over.index(attribute.of[axis]))
    sizes = dict(zip(attribute.of, attribute.codes.shape, strict=True))
    return np.transpose(attribute.codes, order).reshape([sizes.get(dim, 1) for dim in over])


def uncovered(features: FeatureDag, measured: Iterable[str]) -> tuple[str, ...]:
    """The dimensions and attributes that no measured table tells apart; trip types themselves do not count as a table.

    >>> from cbdp.features import Dimension, Feature, Universe
    >>> stops = Dimension(["A", "B", "C"], zone=["n", "n", "s"])
    >>> dag = FeatureDag(Universe(origin=stops, day=["sat", "sun"]), [Feature("zone", by="origin.zone")])
    >>> uncovered(dag, dag.features)
    ('origin', 'day')
    """
    tables = [name for name in measured if name != SINGLETON]
    varying = [n for n, attribute in features.universe.attributes.items() if len(attribute.labels) > 1]
    return tuple(n for n in varying if not any(tells(features, table, [n]) for table in tables))


def partly_covered(features: FeatureDag, measured: Iterable[str], dimension: str) -> tuple[str, ...]:
    """The attributes of a dimension (like the zone of a stop) that measured tables do tell apart."""
    missing = set(uncovered(features, measured))
    own = [n for n, a in features.universe.attributes.items() if a.of == (dimension,) and n != dimension]
    return tuple(n for n in own if n not in missing and len(features.universe.attribute(n).labels) > 1)
