"""Whole trips from a real estimate, so that every count at every level is its real value rounded down or up.

*What is asked.* With x_u the real counts of the trip types, choose whole r_u so that the count of every element of every
feature, `singleton` and `total` among them, is the floor or the ceiling of its real value. The same is asked of every
cell (the atoms of the common refinement). That is more than the features ask, and meant: without it least squares
would strip the cells whose fractions are small and swell the others, so that a table by two crossing features (zone by
mode) would drift although both its margins are right. "Nearest" is nearest among the roundings that keep cells.
When one feature refines all others but `singleton`, its elements are the cells, and nothing is asked in addition.

*How it is done*, one module for each step:

1. `bounds`: sums of real values at every level, and the whole numbers that each may become;
2. `problem`: the price of each cell's going up, so that cells can be chosen before their leaves;
3. `families`: which features can be kept exact together;
4. `tree` if no sets cross, else `program`: the choice of cells (`network`, `simplex`, `leaning`, `repair`);
5. `leaves`: the best leaves of each cell (`best`), and a check of every count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cbdp.arrays import Bools, Floats, Ints
from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.features.index import merged
from cbdp.rounding.bounds import TOLERANCES, sets_of, sums_by
from cbdp.rounding.families import crossing_pairs, exact_features
from cbdp.rounding.leaves import beyond_bounds, leaf_counts, violations
from cbdp.rounding.problem import CellProblem, problem_of
from cbdp.rounding.program import cells_by_program
from cbdp.rounding.tree import cells_by_tree

LARGEST = 2.0**62


@dataclass(frozen=True, eq=False)
class Rounded:
    """Whole trips by type, and which features' counts are not the floor or ceiling of their real values.

    >>> Rounded(np.array([0, 3]), np.array([2, 1])).violation
    {}
    """

    index: Ints = field(repr=False)  # trip types with at least one trip, ascending
    value: Ints = field(repr=False)
    violation: Mapping[str, int] = field(default_factory=dict)  # feature → how many of its elements are off
    excess: Mapping[str, int] = field(default_factory=dict)  # feature → by how many trips the worst is off
    tolerance: float = TOLERANCES[0]  # relative: real values so near a whole number counted as it


def round_trips(features: FeatureDag, index: Ints, value: Floats) -> Rounded:
    """The whole trips nearest to real ones by type, every feature's counts rounded down or up.

    `index` lists trip types in ascending order, `value` their counts; all other types are 0.

    >>> import cbdp
    >>> dag = cbdp.FeatureDag(cbdp.Universe(origin=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by="time")])
    >>> rounded = round_trips(dag, np.arange(4), np.array([0.4, 2.7, 0.6, 0.3]))
    >>> rounded.index.tolist(), rounded.value.tolist(), rounded.violation
    ([1, 2], [3, 1], {})
    """
    index, value = _checked(features, index, value)
    if not len(index):
        return Rounded(index, np.zeros(0, dtype=np.int64))
    sets = sets_of(features, index, value)
    problem = problem_of(sets)
    up = np.zeros(len(sets.cells.low), dtype=bool)
    exact = problem.names
    if len(problem.cost):
        up[problem.cell], exact = _choose_cells(problem)
    whole = leaf_counts(sets, up)
    kept = np.flatnonzero(whole)
    return Rounded(index[kept], whole[kept], *violations(sets, whole, exact), sets.tolerance)


def rounded_again(
    features: FeatureDag, index: Ints, value: Floats, trips: tuple[Ints, Ints]
) -> tuple[Ints, Ints] | None:
    """The nearest whole trips by type with the same count in every cell as these trips; None if no rounding has these counts.

    Where several choices of cells are equally good, the solver decides among them; given the cells, the leaves follow.
    """
    index, value = _checked(features, index, value)
    partition, universe = features.cells.partition, features.universe
    own, theirs = (partition.element_of(universe.unrank_codes(at)) for at in (index, trips[0]))
    used, first = np.unique(own, return_index=True)
    if not np.isin(theirs, used).all():
        return None
    if not len(index):
        return index, np.zeros(0, dtype=np.int64)
    sets = sets_of(features, index, value)
    number = sets.cell[first][np.searchsorted(used, theirs)]
    counts = sums_by(number, trips[1], len(sets.cells.low))
    if (counts < sets.cells.low).any() or (counts > sets.cells.high).any():
        return None
    whole = leaf_counts(sets, counts > sets.cells.low)
    kept = np.flatnonzero(whole)
    return index[kept], whole[kept]


@dataclass(frozen=True)
class Exactness:
    """By feature, how many counts are not the floor or ceiling of their real values; values within the tolerance of a whole number are it.

    >>> Exactness(1e-9, {"zone": 2}).violations["zone"]
    2
    """

    tolerance: float
    violations: Mapping[str, int]


def exactness(
    features: FeatureDag, index: Ints, value: Floats, trips: tuple[Ints, Ints], tolerance: float | None = None
) -> Exactness:
    """Whole trips, whoever rounded them, against the ranges in which `round_trips` keeps every count.

    The tolerance is that of the rounding, unless one is given.

    >>> import cbdp
    >>> dag = cbdp.FeatureDag(cbdp.Universe(origin=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by="time")])
    >>> exactness(dag, np.arange(4), np.array([0.4, 2.7, 0.6, 0.3]), (np.array([1, 2]), np.array([5, 1]))).violations
    {'singleton': 1, 'time': 1, 'total': 1}
    """
    index, value = _checked(features, index, value)
    every = merged(index, trips[0])
    if not len(every):
        return Exactness(TOLERANCES[0], {})
    real, whole = np.zeros(len(every)), np.zeros(len(every), dtype=np.int64)
    real[np.searchsorted(every, index)] = value
    whole[np.searchsorted(every, trips[0])] = trips[1]
    sets = sets_of(features, every, real, tolerance)
    off = {SINGLETON: int(((whole < sets.leaves.low) | (whole > sets.leaves.high)).sum())}
    for name, beyond in beyond_bounds(sets, sums_by(sets.cell, whole)):
        off[name] = int(np.count_nonzero(beyond))
    return Exactness(sets.tolerance, {name: many for name, many in off.items() if many})


def _choose_cells(problem: CellProblem) -> tuple[Bools, tuple[str, ...]]:
    """Which cells go up, and the features that are exact by construction."""
    crossing = crossing_pairs(problem)
    if not len(crossing):
        return cells_by_tree(problem), problem.names
    rows = exact_features(problem, crossing)
    soft = ~np.isin(problem.feature_of(), rows)
    return cells_by_program(problem, crossing, soft), tuple(problem.names[row] for row in rows)


def _checked(features: FeatureDag, index: Any, value: Any) -> tuple[Ints, Floats]:
    place, real = np.asarray(index), np.asarray(value, dtype=np.float64)
    if place.ndim != 1 or real.shape != place.shape:
        raise InputError(
            f"index has shape {place.shape} and value has shape {real.shape}: give two lists of the same length"
        )
    if len(place) and not np.issubdtype(place.dtype, np.integer):
        raise InputError(f"index is of type {place.dtype}: give the positions of trip types as whole numbers")
    place = place.astype(np.int64, copy=False)
    _check_places(place, features.universe.size)
    wrong = ~(real >= 0) | ~np.isfinite(real)
    if wrong.any():
        raise InputError(f"value {real[wrong][0]} is not a count: give finite numbers of at least 0")
    if real.sum() >= LARGEST:
        raise InputError(f"the values add up to {real.sum():.3g}: their sum must stay below 2^62")
    return place, real


def _check_places(place: Ints, size: int) -> None:
    falls = np.flatnonzero(place[1:] <= place[:-1])
    if len(falls):
        before, after = place[falls[0]], place[falls[0] + 1]
        raise InputError(f"index has {after} after {before}: sort it in ascending order, without repeats")
    outside = place[(place < 0) | (place >= size)]
    if len(outside):
        raise InputError(
            f"index {outside[0]} is outside the universe: give positions of trip types within 0 … {size - 1}"
        )
