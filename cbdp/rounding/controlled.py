"""Controlled rounding: whole trips from a real estimate, every count at every level its real value rounded down or up.

*The problem* (Cox and Ernst 1982; in networks, Causey, Cox and Ernst 1985). With x_u the real counts of the trip types, choose whole r_u nearest in squares
such that the count of every element of every feature, `singleton` and `total` among them, is the floor or the ceiling of its real value. The same is
required of every cell (the atoms of the common refinement). Without that, least squares would empty the cells whose fractions are small and swell the
others, so that a table by two crossing features (zone by mode) would drift although both its margins are right. Where one feature refines all
others but `singleton`, its elements are the cells, and nothing is required in addition.

*The steps.*

1. `bounds`: real sums at every level, the whole numbers that each may become, and the cost of each cell's going up;
2. `program`: which sets of cells cross, and which features can be kept exact together;
3. the choice of cells: here by dynamic programming on one tree if no sets cross, else in `program` (by `network`, and `repair` for what does not fit);
4. here the best leaves of each cell, and a check of every count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from cbdp.arrays import Bools, Floats, Ints
from cbdp.errors import InputError, SolverError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.rounding.bounds import (
    TOLERANCES,
    CellProblem,
    RoundingSets,
    cell_problem,
    group_sums,
    rounding_sets,
)
from cbdp.rounding.crossing import crossing_pairs, exact_features, round_crossing
from cbdp_features.universe import sorted_union

MAX_TOTAL = 2.0**62  # trips: sums of 64-bit integers must not overflow


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


@dataclass(frozen=True)
class Exactness:
    """By feature, how many counts are not the floor or ceiling of their real values; values within the tolerance of a whole number are it.

    >>> Exactness(1e-9, {"zone": 2}).violations["zone"]
    2
    """

    tolerance: float
    violations: Mapping[str, int]


def round_trips(features: FeatureDag, index: Ints, value: Floats) -> Rounded:
    """The whole trips nearest to real ones by type, every feature's counts rounded down or up.

    `index` lists trip types in ascending order, `value` their counts; all other types are 0.

    >>> import cbdp
    >>> dag = cbdp.FeatureDag(cbdp.Universe(origin=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by="time")])
    >>> rounded = round_trips(dag, np.arange(4), np.array([0.4, 2.7, 0.6, 0.3]))
    >>> rounded.index.tolist(), rounded.value.tolist(), rounded.violation
    ([1, 2], [3, 1], {})
    """
    index, value = _checked_counts(features, index, value)
    if not len(index):
        return Rounded(index, np.zeros(0, dtype=np.int64))
    sets = rounding_sets(features, index, value)
    problem = cell_problem(sets)
    up = np.zeros(len(sets.cells.low), dtype=bool)
    exact = problem.names
    if len(problem.cost):
        up[problem.cell], exact = _cells_rounded_up(problem)
    whole = leaf_counts(sets, up)
    kept = np.flatnonzero(whole)
    return Rounded(index[kept], whole[kept], *violations(sets, whole, exact), sets.tolerance)


def round_to_cell_counts(
    features: FeatureDag, index: Ints, value: Floats, trips: tuple[Ints, Ints]
) -> tuple[Ints, Ints] | None:
    """The nearest whole trips by type with the same count in every cell as these trips; None if no rounding has these counts.

    Where several choices of cells are equally good, the solver decides among them; given the cells, the leaves follow.
    """
    index, value = _checked_counts(features, index, value)
    partition, universe = features.cells.partition, features.universe
    cell, cell_of_trip = (partition.element_of(universe.unrank_codes(at)) for at in (index, trips[0]))
    used, first = np.unique(cell, return_index=True)
    if not np.isin(cell_of_trip, used).all():
        return None
    if not len(index):
        return index, np.zeros(0, dtype=np.int64)
    sets = rounding_sets(features, index, value)
    number = sets.cell[first][np.searchsorted(used, cell_of_trip)]
    counts = group_sums(number, trips[1], len(sets.cells.low))
    if (counts < sets.cells.low).any() or (counts > sets.cells.high).any():
        return None
    whole = leaf_counts(sets, counts > sets.cells.low)
    kept = np.flatnonzero(whole)
    return index[kept], whole[kept]


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
    index, value = _checked_counts(features, index, value)
    every = sorted_union(index, trips[0])
    if not len(every):
        return Exactness(TOLERANCES[0], {})
    real, whole = np.zeros(len(every)), np.zeros(len(every), dtype=np.int64)
    real[np.searchsorted(every, index)] = value
    whole[np.searchsorted(every, trips[0])] = trips[1]
    sets = rounding_sets(features, every, real, tolerance)
    off = {SINGLETON: int(((whole < sets.leaves.low) | (whole > sets.leaves.high)).sum())}
    for name, beyond in bound_violations(sets, group_sums(sets.cell, whole)):
        off[name] = int(np.count_nonzero(beyond))
    return Exactness(sets.tolerance, {name: count for name, count in off.items() if count})


def _cells_rounded_up(problem: CellProblem) -> tuple[Bools, tuple[str, ...]]:
    """Which cells go up, and the features that are exact by construction."""
    crossing = crossing_pairs(problem)
    if not len(crossing):
        return round_laminar(problem), problem.names
    rows = exact_features(problem, crossing)
    soft = ~np.isin(problem.feature_of(), rows)
    return round_crossing(problem, crossing, soft), tuple(problem.names[row] for row in rows)


def _checked_counts(features: FeatureDag, index: ArrayLike, value: ArrayLike) -> tuple[Ints, Floats]:
    place, real = np.asarray(index), np.asarray(value, dtype=np.float64)
    if place.ndim != 1 or real.shape != place.shape:
        raise InputError(
            f"index has shape {place.shape} and value has shape {real.shape}: give two lists of the same length"
        )
    if len(place) and not np.issubdtype(place.dtype, np.integer):
        raise InputError(f"index is of type {place.dtype}: give the positions of trip types as whole numbers")
    place = place.astype(np.int64, copy=False)
    _check_index(place, features.universe.size)
    wrong = ~(real >= 0) | ~np.isfinite(real)
    if wrong.any():
        raise InputError(f"value {real[wrong][0]} is not a count: give finite numbers of at least 0")
    if real.sum() >= MAX_TOTAL:
        raise InputError(f"the values add up to {real.sum():.3g}: their sum must stay below 2^62")
    return place, real


def _check_index(place: Ints, size: int) -> None:
    falls = np.flatnonzero(place[1:] <= place[:-1])
    if len(falls):
        before, after = place[falls[0]], place[falls[0] + 1]
        raise InputError(f"index has {after} after {before}: sort it in ascending order, without repeats")
    outside = place[(place < 0) | (place >= size)]
    if len(outside):
        raise InputError(
            f"index {outside[0]} is outside the universe: give positions of trip types within 0 … {size - 1}"
        )


# Leaves, and the check of every count


def leaf_counts(sets: RoundingSets, up: Bools) -> Ints:
    """In each cell the leaves with the largest fractions go up, as many as its count asks for."""
    whole = sets.leaves.low.copy()
    whole[sets.first.chosen(up)] += 1
    return whole


def violations(
    sets: RoundingSets, whole: Ints, exact: Sequence[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Every count of the rounding against its bounds, in whole numbers; nothing is taken on trust.

    For each feature that is not exact: how many of its elements are off, and by how many trips the worst is.
    """
    counts = group_sums(sets.cell, whole)
    if (counts < sets.cells.low).any() or (counts > sets.cells.high).any():
        raise SolverError(
            "the trips of a cell were not rounded down or up: "
            "report this as a bug, with the estimate if it may be shown"
        )
    off, worst = {}, {}
    for name, beyond in bound_violations(sets, counts):
        if beyond.any() and name in exact:
            raise SolverError(
                f"counts of feature {name!r} were not rounded down or up: "
                "report this as a bug, with the estimate if it may be shown"
            )
        if beyond.any():
            off[name], worst[name] = int(np.count_nonzero(beyond)), int(beyond.max())
    return off, worst


def bound_violations(sets: RoundingSets, counts: Ints) -> Iterator[tuple[str, Ints]]:
    """By feature, how many trips each element's count is below or above the whole numbers it may become; from the cells' counts."""
    for name, element_of_cell in sets.element.items():
        ranges, count = sets.elements[name], group_sums(element_of_cell, counts)
        yield name, np.maximum(np.maximum(ranges.low - count, count - ranges.high), 0)


# One laminar family is a tree: marginal costs go up it level by level, choices come down (dynamic programming; costs are convex in the count).


def round_laminar(problem: CellProblem) -> Bools:
    """Which cells go up at the least cost, if no two sets cross: greedy in each set, exact since costs of a set's counts are convex.

    Resource allocation under bounds on a laminar family (Federgruen and Groenevelt 1986; Hochbaum and Hong 1995).

    Sorted by size, the sets around a cell are a chain, and the i-th sets of all cells a partition: whatever holds a set
    holds it around each of its cells.
    """
    by_size = np.argsort(problem.size[problem.set_of_cell], axis=0, kind="stable")
    chain = np.take_along_axis(problem.set_of_cell, by_size, axis=0)
    low = np.zeros(len(problem.cost), dtype=np.int64)
    free, cost = np.ones(len(low), dtype=bool), problem.cost
    here, parent, steps = np.arange(len(low)), chain[0], []
    for row in range(len(chain)):
        node, group = np.unique(parent[here], return_inverse=True)
        least, room = group_sums(group, low), group_sums(group, free)
        bottom = np.maximum(problem.low[node], least)
        top = np.minimum(problem.high[node], least + room)
        steps.append((group, free, cost, bottom - least))
        cost = marginal_cost(group[free], cost[free], bottom - least, top > bottom)
        low, free = bottom, top > bottom
        if row + 1 < len(chain):
            here, parent = np.unique(chain[row], return_index=True)[1], chain[row + 1]
    up = free & (cost < 0)
    for group, free_below, cell_cost, quota in reversed(steps):
        below = np.zeros(len(free_below), dtype=bool)
        below[free_below] = cheapest_items(group[free_below], cell_cost[free_below], quota + up)
        up = below
    return up


def cheapest_items(group: Ints, cost: Ints, quota: Ints) -> Bools:
    """Which items go up: in each group a quota of the cheapest, the first of equals."""
    order = _order_by_group_and_key(group, cost)
    ordered = group[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    up = np.zeros(len(order), dtype=bool)
    up[order] = rank < quota[ordered]
    return up


def marginal_cost(group: Ints, cost: Ints, quota: Ints, asked: Bools) -> Ints:
    """In each group where `asked`, the cost of one item more than the quota of cheapest ones."""
    order = _order_by_group_and_key(group, cost)
    start = np.searchsorted(group[order], np.arange(len(quota)))
    marginal = np.zeros(len(quota), dtype=np.int64)
    marginal[asked] = cost[order[(start + quota)[asked]]]
    return marginal


def _order_by_group_and_key(group: Ints, key: Ints) -> Ints:
    """Items by group, then key, then place."""
    least = int(key.min(initial=0))
    span = int(key.max(initial=0)) - least + 1
    if (int(group.max(initial=0)) + 1) * span < 2**63:
        # group and key in one number: sorts three times as fast
        return np.argsort(group * span + (key - least), kind="stable")
    return np.lexsort((key, group))
