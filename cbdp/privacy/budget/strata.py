"""How the measurements of features add to one another: least squares on a balanced design, in closed form.

A design is balanced when every element of a feature holds as many trip types as any other, and features cross evenly: of the trip
types of a zone pair, the same part goes by each mode as everywhere. Averages over the elements of two features then commute, and
the counts fall apart into *strata* that least squares treats one by one (an orthogonal block structure; Nelder 1965). A stratum belongs to a
grouping K that a feature makes, or that some features have in common, and holds what K tells beyond all coarser groupings: d_K numbers.
A feature with n_i elements, each measured with precision p_i (an inverse variance), tells of each stratum that it refines p_i/n_i. So the
error variance of one of the n_j counts of feature j, after all measurements were reconciled by inverse variance, is

    1/n_j² · Σ_K d_K / Σ_i p_i/n_i,    over strata K that j refines, and measured features i that refine K.

Real zones differ in size, and modes go with distance: measurements then overlap a little more than in a balanced design.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from cbdp.arrays import Floats
from cbdp.features import FeatureDag

Grouping = frozenset[str]  # all attributes that its elements tell

TINY = 1e-100  # precision of what nothing measured tells


@dataclass(frozen=True, eq=False)
class Strata:
    """The strata of a feature DAG."""

    names: tuple[str, ...]  # of the features
    sizes: Floats
    degrees: Floats  # numbers that each stratum holds
    told: Floats  # strata × features: 1 where the feature refines the stratum's grouping

    @property
    def content(self) -> Hashable:
        """The same for features that add to one another alike."""
        return (self.names, self.sizes.tobytes(), self.degrees.tobytes(), self.told.tobytes())

    def variance(self, precision: Floats) -> Floats:
        """Of a count of each feature (last axis), if each feature was measured with these precisions; 0: not measured."""
        known = np.maximum((precision / self.sizes) @ self.told.T, TINY)
        made: Floats = (self.degrees / known) @ self.told / self.sizes**2
        return made


def strata_of(features: FeatureDag) -> Strata:
    """The strata of these features; worked out once.

    >>> from cbdp.features import Feature, Universe
    >>> dag = FeatureDag(Universe(origin=range(6), time=range(4)), [Feature("time", by="time"), Feature("from", by="origin")])
    >>> strata_of(dag).names, strata_of(dag).degrees.tolist()
    (('total', 'time', 'from', 'singleton'), [1.0, 3.0, 5.0, 15.0])
    """
    found = _KEPT.get(features)
    if found is None:
        found = _KEPT[features] = _worked_out(features)
    return found


_KEPT: WeakKeyDictionary[FeatureDag, Strata] = WeakKeyDictionary()


def _worked_out(features: FeatureDag) -> Strata:
    tells = {name: _tells(features, name) for name in features.features}
    strata = _strata(features, tells)
    degrees: dict[Grouping, float] = {}
    for grouping, size in strata:  # coarse ones first
        degrees[grouping] = max(0.0, size - sum(d for other, d in degrees.items() if other < grouping))
    return Strata(
        tuple(tells),
        np.array([float(features.size(name)) for name in tells]),
        np.array([*degrees.values()], dtype=float),
        np.array([[float(grouping <= told) for told in tells.values()] for grouping in degrees]),
    )


def _tells(features: FeatureDag, name: str) -> Grouping:
    """Every attribute, of those that features group by, that the elements of a feature tell."""
    asked = dict.fromkeys(a for f in features.features.values() for a in f.by)
    return frozenset(a for a in asked if _determines(features, name, a))


def _determines(features: FeatureDag, name: str, attribute: str) -> bool:
    universe, by = features.universe, features.features[name].by
    wanted = universe.attribute(attribute)
    if attribute in by or set(wanted.of) <= set(by) or len(wanted.labels) == 1:
        return True
    near = _connected(features, by, set(wanted.of))
    if not near:
        return False
    alone = universe.partition(near).size
    return len(wanted.labels) <= alone and universe.partition([*near, attribute]).size == alone


def _connected(features: FeatureDag, by: Sequence[str], dims: set[str]) -> list[str]:
    """Those of some attributes that share dimensions with these, or with one that does: the others tell nothing of these."""
    reached, of = set(dims), {a: set(features.universe.attribute(a).of) for a in by}
    while True:
        near = [a for a in by if of[a] & reached]
        further = reached.union(*(of[a] for a in near))
        if further == reached:
            return near
        reached = further


def _strata(features: FeatureDag, tells: dict[str, Grouping]) -> list[tuple[Grouping, int]]:
    """The groupings of features and what any of them have in common, coarse ones first, with their sizes."""
    every = dict.fromkeys(tells.values())
    while True:
        further = [a & b for a in every for b in every if a & b not in every]
        if not further:
            break
        every |= dict.fromkeys(further)
    sizes = {told: features.size(name) for name, told in tells.items()}
    made = [(g, sizes[g] if g in sizes else _size(features, g)) for g in every]
    return sorted(made, key=lambda pair: (pair[1], len(pair[0]), sorted(pair[0])))


def _size(features: FeatureDag, grouping: Grouping) -> int:
    """The number of elements of a grouping; attributes of dimensions that it tells anyway add none."""
    attributes = features.universe.attributes
    needed = [
        a
        for a in sorted(grouping)
        if a in features.universe.dimensions or not {*attributes[a].of} <= grouping
    ]
    return features.universe.partition(needed).size
