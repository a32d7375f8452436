"""Whole trips from a real estimate, so that every count at every level is its real value rounded down or up.

*What is asked.* With x_u the real counts of the trip types, choose whole r_u so that the count of every element of every
feature, `singleton` and `total` among them, is the floor or the ceiling of its real value. The same is asked of every
cell (the atoms of the common refinement). That is more than the features ask, and meant: without it least squares
would strip the cells whose fractions are small and swell the others, so that a table by two crossing features (zone by
mode) would drift although both its margins are right. "Nearest" below is nearest among the roundings that keep cells.
When one feature refines all others but `singleton`, its elements are the cells, and nothing is asked in addition.

*Two levels.* Leaves of a cell are bound by nothing but the cell's count K. Given K, n = K − Σ⌊x_u⌋ of them go up, best
those with the largest fractions f, since going up costs (1 − f)² − f² = 1 − 2f. Cell totals take one of two neighbouring
values, and from the lower to the higher exactly the leaf with the (n+1)-th largest fraction is added: the price of a cell's
going up is 1 − 2f_(n+1), whatever other cells do. So the distance is a constant plus a sum of prices over the cells that
go up, and the best choice of cells followed by the best choice of leaves is the best of all.

*Cells.* Sets that are nested or disjoint form a laminar family. In one family (a tree) the step from leaves to cells
repeats itself from level to level: prices go up the tree, choices come down. Rows of two laminar families form a totally
unimodular matrix (Edmonds), and the real cell totals satisfy all bounds; so whole ones exist, and the vertices of the
linear program are whole. Which sets cross is found among the cells that still have a choice: if the graph of crossing
sets can be coloured with two colours, there are two families. Otherwise the features that can, with the most elements,
are kept exact, and a mixed-integer program minimises by how much the others are off in total.

*At random, without bias.* In a tree, the items of a node are put in random order and drawn by systematic sampling given the
node's own choice: item probabilities come out exactly, and so level by level. Two families are a network (down one tree,
through a cell, up the other), and a count is the flow on an arc. Arcs with a fraction contain a cycle; push flow round it
one way or the other until an arc is whole, with odds that keep the mean (dependent rounding). Every flow stays between
its floor and ceiling.

*Floating point.* An estimate is exact to about 1e-12, not to the last bit, so three leaves of a third add up to
0.9999999999. A value within 1e-6·max(1, v) of a whole number (never more than 1e-3) counts as that number: otherwise a public
total of 10 could be rounded to 9 or 11. Values are kept as whole multiples of 2^−40 (coarser above two million
leaves), sums of them are exact and do not depend on order, and sums are judged by the same rule. Snapping moves bounds
by a little, and bounds moved too far could contradict each other. They do not while all moves together are below 1/2:
by Hoffman's circulation theorem contradictory bounds contradict each other by their difference over a cut, a whole
number, which is at least 1, and no bound is counted twice. Should the moves be more, the tolerance is lowered
until they are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cbdp.errors import InputError, SolverError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.measuring.entropy import Entropy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

TOLERANCE, MOST = 1e-6, 1e-3  # how far from a whole number a value may be and count as it: relative, absolute
LOWERED = (1.0, 1e-3, 1e-6, 0.0)  # tried in turn
BITS = 40
LARGEST = 2.0**62
SUBSETS = 12  # features up to which every choice of exact ones is compared
GAP, NODES, SECONDS = (
    1e-2,
    5_000,
    30.0,
)  # of the mixed-integer program; its answer is repeatable unless time ends it


@dataclass(frozen=True, eq=False)
class Rounded:
    """Whole trips by type, and which features' counts are not the floor or ceiling of their real values."""

    index: Ints = field(repr=False)  # trip types with at least one trip, ascending
    value: Ints = field(repr=False)
    violation: Mapping[str, int] = field(default_factory=dict)  # feature → how many of its elements are off
    excess: Mapping[str, int] = field(default_factory=dict)  # feature → by how many trips the worst is off


def round_trips(
    features: FeatureDag, index: Ints, value: Floats, *, entropy: Entropy | None = None
) -> Rounded:
    """The whole trips nearest to real ones by type, every feature's counts rounded down or up.

    `index` lists trip types in ascending order, `value` their counts; all other types are 0. Given `entropy`, the
    rounding is random and every count's mean is its real value.

    >>> import cbdp
    >>> dag = cbdp.FeatureDag(cbdp.Universe(origin=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by="time")])
    >>> rounded = round_trips(dag, np.arange(4), np.array([0.4, 2.7, 0.6, 0.3]))
    >>> rounded.index.tolist(), rounded.value.tolist(), rounded.violation
    ([1, 2], [3, 1], {})
    """
    index, value = _checked(features, index, value)
    if not len(index):
        return Rounded(index, np.zeros(0, dtype=np.int64))
    sets = _sets(features, index, value)
    problem = _cell_problem(sets, priced=entropy is None)
    up = np.zeros(len(sets.cells.low), dtype=bool)
    exact = problem.names
    if len(problem.cost):
        up[problem.cell], exact = _choose_cells(problem, entropy)
    whole = _leaves(sets, up, entropy)
    kept = np.flatnonzero(whole)
    return Rounded(index[kept], whole[kept], *_violations(sets, whole, exact))


def rounded_again(
    features: FeatureDag, index: Ints, value: Floats, trips: tuple[Ints, Ints]
) -> tuple[Ints, Ints] | None:
    """The nearest whole trips by type whose cells have the counts that these trips have; None if no rounding has these.

    Which cells go up may be a matter of the solver where several choices are equally good; which leaves then do is not.
    """
    index, value = _checked(features, index, value)
    partition, universe = features.cells.partition, features.universe
    own, theirs = (partition.element_of(universe.unrank_codes(at)) for at in (index, trips[0]))
    used, first = np.unique(own, return_index=True)
    if not np.isin(theirs, used).all():
        return None
    if not len(index):
        return index, np.zeros(0, dtype=np.int64)
    sets = _sets(features, index, value)
    number = sets.cell[first][np.searchsorted(used, theirs)]
    counts = _sums(number, trips[1], len(sets.cells.low))
    if (counts < sets.cells.low).any() or (counts > sets.cells.high).any():
        return None
    whole = _leaves(sets, counts > sets.cells.low, None)
    kept = np.flatnonzero(whole)
    return index[kept], whole[kept]


def _checked(features: FeatureDag, index: Any, value: Any) -> tuple[Ints, Floats]:
    place, real = np.asarray(index), np.asarray(value, dtype=np.float64)
    if place.ndim != 1 or real.shape != place.shape:
        raise InputError(
            f"index has shape {place.shape} and value {real.shape}: give two lists of one length"
        )
    if len(place) and not np.issubdtype(place.dtype, np.integer):
        raise InputError(f"index is of type {place.dtype}: give whole numbers, the trip types' places")
    place = place.astype(np.int64)
    if len(place) and (place[0] < 0 or place[-1] >= features.universe.size or (np.diff(place) <= 0).any()):
        raise InputError(
            f"index must ascend within 0 … {features.universe.size - 1}: sort it, without repeats"
        )
    wrong = ~(real >= 0) | ~np.isfinite(real)
    if wrong.any():
        raise InputError(f"value {real[wrong][0]} is not a count: give finite numbers of at least 0")
    if real.sum() >= LARGEST:
        raise InputError(f"the values sum to {real.sum():.3g}: they must stay below 2^62")
    return place, real


# ---------------------------------------------------------------------------------- counts and their bounds


@dataclass(frozen=True, eq=False)
class _Range:
    """Real values base + part/unit, and the two (or one) whole numbers each may become."""

    base: Ints
    part: Ints
    low: Ints
    high: Ints
    moved: int  # by how much snapping moved bounds in all, in units

    @property
    def free(self) -> Bools:
        return self.high > self.low


def _range(base: Ints, part: Ints, unit: int, lowered: float) -> _Range:
    slack = np.minimum(TOLERANCE * np.maximum(1.0, base), MOST) * (lowered * unit)
    down, up = part <= slack, unit - part <= slack
    moved = np.where(down, part, np.where(up, unit - part, 0))
    return _Range(base, part, base + up, base + ~down, int(moved.sum()))


@dataclass(frozen=True, eq=False)
class _Sets:
    """The leaves, the cells that hold any, and every feature's elements that do, with their ranges."""

    unit: int
    cell: Ints  # of each leaf; cells are numbered by their first leaf, whatever the order of the features
    element: Mapping[str, Ints]  # feature (by name) → element of each cell, numbered without gaps
    leaves: _Range
    cells: _Range
    elements: Mapping[str, _Range]


def _sets(features: FeatureDag, index: Ints, value: Floats) -> _Sets:
    cell, element = _cells(features, index)
    unit = 1 << min(BITS, 61 - len(index).bit_length())  # so that sums of parts stay below 2^62
    base = np.floor(value).astype(np.int64)
    part = np.rint((value - base) * unit).astype(np.int64)
    leaf = (base + part // unit, part % unit)
    cells = _added(cell, leaf, unit)
    sums = {name: _added(held, cells, unit) for name, held in element.items()}
    for lowered in LOWERED:
        leaves, atoms = _range(*leaf, unit, lowered), _range(*cells, unit, lowered)
        ranges = {name: _range(*pair, unit, lowered) for name, pair in sums.items()}
        if 2 * (leaves.moved + atoms.moved + sum(r.moved for r in ranges.values())) < unit:
            break
    return _Sets(unit, cell, element, leaves, _within(atoms, leaves, cell), ranges)


def _cells(features: FeatureDag, index: Ints) -> tuple[Ints, dict[str, Ints]]:
    own = features.cells.partition.element_of(features.universe.unrank_codes(index))
    used, first, cell = np.unique(own, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    held = features.cells.element_of_cell
    names = sorted(name for name in held if name != SINGLETON)
    element = {name: np.unique(held[name][used[order]], return_inverse=True)[1] for name in names}
    return place[cell], {name: numbers.astype(np.int64) for name, numbers in element.items()}


def _added(group: Ints, pair: tuple[Ints, Ints], unit: int) -> tuple[Ints, Ints]:
    base, part = (_sums(group, numbers) for numbers in pair)
    return base + part // unit, part % unit


def _sums(group: Ints, numbers: NDArray[Any], groups: int | None = None) -> Ints:
    """Exact sums by group."""
    total = np.zeros(int(group.max(initial=-1)) + 1 if groups is None else groups, dtype=np.int64)
    np.add.at(total, group, numbers.astype(np.int64, copy=False))
    return total


def _within(cells: _Range, leaves: _Range, cell: Ints) -> _Range:
    """The cells' ranges, less what their leaves' ranges cannot add up to."""
    low = np.maximum(cells.low, _sums(cell, leaves.low))
    high = np.minimum(cells.high, _sums(cell, leaves.high))
    return _Range(cells.base, cells.part, low, high, cells.moved)


# ------------------------------------------------------------------------------------- the choice of cells


@dataclass(frozen=True, eq=False)
class _Problem:
    """Cells with a choice, and for every set of them how many may go up. Sets are numbered through all features."""

    unit: int
    cell: Ints
    cost: Ints  # price of each cell's going up, in units; 0 if the choice is random
    part: Ints  # how much of it would go up if it could be cut
    names: tuple[str, ...]
    member: Ints  # feature × cell → set
    low: Ints
    high: Ints
    set_part: Ints  # a set's real number above low; 0 where it has no choice

    @property
    def size(self) -> Ints:
        return np.bincount(self.member.ravel(), minlength=len(self.low)).astype(np.int64)

    def feature_of(self) -> Ints:
        found = np.empty(len(self.low), dtype=np.int64)
        found[self.member] = np.arange(len(self.member))[:, None]
        return found

    def only(self, rows: Sequence[int]) -> _Problem:
        """The same with some of the features only."""
        used, member = np.unique(self.member[list(rows)], return_inverse=True)
        names = tuple(self.names[r] for r in rows)
        shaped = member.reshape(len(rows), -1).astype(np.int64)
        bounds = self.low[used], self.high[used], self.set_part[used]
        return _Problem(self.unit, self.cell, self.cost, self.part, names, shaped, *bounds)


def _cell_problem(sets: _Sets, *, priced: bool) -> _Problem:
    cells, free = sets.cells, np.flatnonzero(sets.cells.free)
    member, low, high, part = [], [], [], []
    offset = 0
    for name, held in sets.element.items():
        own = sets.elements[name]
        used, number = np.unique(held[free], return_inverse=True)
        settled = _sums(held, cells.low)[used]
        member.append(number.astype(np.int64) + offset)
        low.append(own.low[used] - settled)
        high.append(own.high[used] - settled)
        part.append(np.where(own.free, own.part, 0)[used])
        offset += len(used)
    cost = _marginal(sets)[free] if priced else np.zeros(len(free), dtype=np.int64)
    bounds = (np.concatenate(each) for each in (low, high, part))
    return _Problem(sets.unit, free, cost, cells.part[free], tuple(sets.element), np.array(member), *bounds)


def _marginal(sets: _Sets) -> Ints:
    """1 − 2f_(n+1) of every cell, in units; of cells without a choice, 0."""
    fractional = np.flatnonzero(sets.leaves.free)
    cost = sets.unit - 2 * sets.leaves.part[fractional]
    quota = sets.cells.low - _sums(sets.cell, sets.leaves.low)
    return _next_cost(sets.cell[fractional], cost, quota, sets.cells.free)


def _choose_cells(problem: _Problem, entropy: Entropy | None) -> tuple[Bools, tuple[str, ...]]:
    """Which cells go up, and the features that are exact by construction."""
    crossing = _crossing(problem)
    rows = _exact_features(problem, crossing)
    if len(rows) == len(problem.names):
        return _two_families(problem, crossing, entropy), problem.names
    exact = problem.only(rows)
    if entropy is not None:
        return _two_families(exact, _crossing(exact), entropy), exact.names
    up = _vertex(problem)  # may be whole all the same
    if up is None:
        up = _mixed(problem, ~np.isin(problem.feature_of(), rows))
    return (_linear(exact) if up is None else up), exact.names


def _two_families(problem: _Problem, crossing: Ints, entropy: Entropy | None) -> Bools:
    if not len(crossing):
        return _tree(problem, entropy)
    return _linear(problem) if entropy is None else _pushed(problem, crossing, entropy)


# Which sets cross, and the two families.


def _crossing(problem: _Problem) -> Ints:
    """Pairs of sets that overlap and are not nested."""
    size, count = problem.size, len(problem.low)
    found = [np.zeros((0, 2), dtype=np.int64)]
    for one, other in combinations(problem.member, 2):
        pair, shared = np.unique(one * count + other, return_counts=True)
        first, second = np.divmod(pair, count)
        crosses = (shared < size[first]) & (shared < size[second])
        found.append(np.stack([first, second], axis=1)[crosses])
    return np.concatenate(found)


def _colours(sets: int, pairs: Ints) -> NDArray[Any] | None:
    """Two colours, different on every pair; None if two do not suffice. The double cover of the graph tells."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    one, other = pairs[:, 0], pairs[:, 1]
    ends = np.concatenate([one, one + sets]), np.concatenate([other + sets, other])
    graph = coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(2 * sets, 2 * sets))
    part = connected_components(graph, directed=False)[1]
    return None if (part[:sets] == part[sets:]).any() else part[:sets] > part[sets:]


def _exact_features(problem: _Problem, crossing: Ints) -> list[int]:
    """Features (by position) whose sets form two laminar families: all if they do, else those with the most elements."""
    every = list(range(len(problem.names)))
    sets = len(problem.low)
    if _colours(sets, crossing) is not None:
        return every
    feature = problem.feature_of()
    ends = feature[crossing]
    kept = _largest_choice(np.bincount(feature, minlength=len(every)), np.unique(ends, axis=0))
    for extra in sorted(set(every) - set(kept), key=lambda f: (-int((feature == f).sum()), f)):
        # features that cross may still fit into two families set by set
        inside = np.isin(ends, [*kept, extra]).all(axis=1)
        if _colours(sets, crossing[inside]) is not None:
            kept = sorted([*kept, extra])
    return kept


def _largest_choice(weight: NDArray[Any], pairs: Ints) -> list[int]:
    """The features with the most elements that split into two groups without a crossing pair in either."""

    def fits(rows: Sequence[int]) -> bool:
        return _colours(len(weight), pairs[np.isin(pairs, rows).all(axis=1)]) is not None

    crossed = [int(f) for f in np.unique(pairs)]
    alone = sorted(set(range(len(weight))) - set(crossed))
    chosen: list[int] = []
    if len(crossed) <= SUBSETS:
        choices = [c for r in range(len(crossed) + 1) for c in combinations(crossed, r)]
        choices.sort(key=lambda c: (-int(weight[list(c)].sum()), c))
        chosen = list(next(c for c in choices if fits(c)))
    else:
        for f in sorted(crossed, key=lambda f: (-int(weight[f]), f)):
            if fits([*chosen, f]):
                chosen.append(f)
    return sorted([*alone, *chosen])


# One family: a tree, level by level.


def _tree(problem: _Problem, entropy: Entropy | None) -> Bools:
    """Prices up the tree, choices down it. Sorted by size, the sets around a cell are a chain, and the i-th sets of all
    cells a partition: whatever holds a set holds it around each of its cells.
    """
    chain = np.take_along_axis(
        problem.member, np.argsort(problem.size[problem.member], axis=0, kind="stable"), axis=0
    )
    low = np.zeros(len(problem.cost), dtype=np.int64)
    free, cost, part = np.ones(len(low), dtype=bool), problem.cost, problem.part
    here, parent, steps = np.arange(len(low)), chain[0], []
    for row in range(len(chain)):
        node, group = np.unique(parent[here], return_inverse=True)
        least, room = _sums(group, low), _sums(group, free)
        bottom = np.maximum(problem.low[node], least)
        top = np.minimum(problem.high[node], least + room)
        steps.append((group, free, cost, part, bottom - least))
        cost = _next_cost(group[free], cost[free], bottom - least, top > bottom)
        low, free, part = bottom, top > bottom, problem.set_part[node]
        if row + 1 < len(chain):
            here, parent = np.unique(chain[row], return_index=True)[1], chain[row + 1]
    up = free & (cost < 0)
    if entropy is not None:
        up = free & (_below(np.full(len(part), problem.unit), entropy) < part)
    for group, free_below, price, share, quota in reversed(steps):
        below = np.zeros(len(free_below), dtype=bool)
        below[free_below] = _pick(
            group[free_below],
            price[free_below],
            share[free_below],
            quota + up,
            problem.unit,
            entropy,
        )
        up = below
    return up


def _next_cost(group: Ints, cost: Ints, quota: Ints, asked: Bools) -> Ints:
    """In each group asked about, the price of one more item than the quota of cheapest ones."""
    order = _order(group, cost)
    start = np.searchsorted(group[order], np.arange(len(quota)))
    found = np.zeros(len(quota), dtype=np.int64)
    found[asked] = cost[order[(start + quota)[asked]]]
    return found


def _order(group: Ints, key: Ints) -> Ints:
    """Items by group, then key, then place."""
    least = int(key.min(initial=0))
    span = int(key.max(initial=0)) - least + 1
    if (
        int(group.max(initial=0)) + 1
    ) * span < 2**63:  # one number says it all, and sorts three times as fast
        return np.argsort(group * span + (key - least), kind="stable")
    return np.lexsort((key, group))


def _pick(group: Ints, cost: Ints, part: Ints, quota: Ints, unit: int, entropy: Entropy | None) -> Bools:
    """Which items go up, a quota in each group: the cheapest, the first of equals; or drawn in proportion to their parts."""
    return (
        _cheapest(group, cost, quota) if entropy is None else _systematic(group, part, quota, unit, entropy)
    )


def _cheapest(group: Ints, cost: Ints, quota: Ints) -> Bools:
    order = _order(group, cost)
    ordered = group[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    up = np.zeros(len(order), dtype=bool)
    up[order] = rank < quota[ordered]
    return up


def _systematic(group: Ints, part: Ints, quota: Ints, unit: int, entropy: Entropy) -> Bools:
    """Items in random order along a line, as long as their parts; those that hold a point of U + whole numbers go up.

    The number of points is the sum of parts rounded down or up, up if U < its fraction. Given the quota, U is uniform on
    what leads to it; the quota is up with that same probability, so U is uniform, and an item goes up with its part.
    """
    total = _sums(group, part, len(quota))
    whole, rest = np.divmod(total, unit)
    more = quota > whole
    start = np.where(more, 0, rest)
    point = start + _below(np.where(more, rest, unit - rest), entropy)
    order = _order(group, entropy.words(len(group), 32).astype(np.int64))
    ordered = group[order]
    after = np.cumsum(part[order]) - (np.cumsum(total) - total)[ordered]
    before = after - part[order]
    shift = (
        unit - 1 - point[ordered]
    )  # a whole number + point in [before, after): a multiple of the unit in between
    up = np.zeros(len(group), dtype=bool)
    up[order] = (after + shift) // unit > (before + shift) // unit
    # Snapped values can leave a group a quota its parts do not sum to; the largest parts then serve.
    missed = (_sums(group, up, len(quota)) != quota)[group]
    if missed.any():
        up[missed] = _cheapest(group[missed], -part[missed], quota)
    return up


def _below(limit: Ints, entropy: Entropy) -> Ints:
    """Uniform whole numbers below each limit, to within 2^−53."""
    return np.floor(_uniform(len(limit), entropy) * limit).astype(np.int64)


def _uniform(n: int, entropy: Entropy) -> Floats:
    uniform: Floats = (entropy.words(n, 64) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return uniform


# Two families: a linear program; more: a mixed-integer one.


def _matrix(problem: _Problem) -> tuple[Any, Ints]:
    """Set × cell, only the sets whose bounds say anything; and which those are."""
    from scipy.sparse import csr_array

    said = np.flatnonzero((problem.low > 0) | (problem.high < problem.size))
    cells = np.broadcast_to(np.arange(problem.member.shape[1]), problem.member.shape)
    ones = np.ones(problem.member.size)
    full = csr_array(
        (ones, (problem.member.ravel(), cells.ravel())), shape=(len(problem.low), cells.shape[1])
    )
    return full[said], said


def _vertex(problem: _Problem) -> Bools | None:
    """A vertex of the linear program, if it is whole. Each set's own number is a variable, so rows are equations."""
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, hstack

    matrix, said = _matrix(problem)
    cells = len(problem.cost)
    cost = np.concatenate([problem.cost / problem.unit, np.zeros(len(said))])
    low = np.concatenate([np.zeros(cells), problem.low[said]])
    high = np.concatenate([np.ones(cells), problem.high[said]])
    equations = hstack([matrix, -eye_array(len(said))]).tocsc() if len(said) else None
    found = linprog(
        cost,
        A_eq=equations,
        b_eq=np.zeros(len(said)) if len(said) else None,
        bounds=np.stack([low, high], axis=1),
        method="highs-ds",
        options={"dual_feasibility_tolerance": 1e-10},
    )
    return None if found.x is None else _if_whole(found.x[:cells])


def _if_whole(x: Floats) -> Bools | None:
    near: Floats = np.rint(x)
    return None if np.abs(x - near).max(initial=0.0) > TOLERANCE else near.astype(bool)


def _linear(problem: _Problem) -> Bools:
    up = _vertex(problem)
    if up is None:  # a vertex that is not one after all, by rounding in the solver
        up = _mixed(problem, np.zeros(len(problem.low), dtype=bool))
    if up is None:
        raise SolverError("no consistent rounding was found although one exists: report this estimate")
    return up


def _mixed(problem: _Problem, soft: Bools) -> Bools | None:
    """Least total violation of the soft sets, then (to within GAP) least distance; the best found within the limits."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, hstack

    matrix, said = _matrix(problem)
    loose = np.flatnonzero(soft[said])
    slack = csr_array((np.ones(len(loose)), (loose, np.arange(len(loose)))), shape=(len(said), len(loose)))
    nothing = csr_array(slack.shape)
    price = problem.cost / problem.unit
    if len(loose):
        price = price / (
            2 * np.abs(price).sum() + 1
        )  # all prices together weigh less than one trip's violation
    cells = len(price)
    found = milp(
        np.concatenate([price, np.ones(2 * len(loose))]),
        integrality=np.concatenate([np.ones(cells), np.zeros(2 * len(loose))]),
        bounds=Bounds(0, np.concatenate([np.ones(cells), np.full(2 * len(loose), np.inf)])),
        constraints=[
            LinearConstraint(hstack([matrix, slack, nothing]), lb=problem.low[said]),
            LinearConstraint(hstack([matrix, nothing, -slack]), ub=problem.high[said]),
        ],
        options={"mip_rel_gap": GAP, "node_limit": NODES, "time_limit": SECONDS},
    )
    return None if found.x is None else _if_whole(found.x[:cells])


# Two families at random: flows pushed round cycles.


def _pushed(problem: _Problem, crossing: Ints, entropy: Entropy) -> Bools:
    """Cells as arcs from one tree of sets to the other; sets as arcs from their parents, or to them in the other tree."""
    colour = _colours(len(problem.low), crossing)
    assert colour is not None
    sets, cells = len(problem.low), len(problem.cost)
    down_to, up_from = _forest(problem, ~colour), _forest(problem, colour)
    one, other = down_to[1], up_from[1]
    itself = np.arange(sets)
    tail = np.concatenate([one, np.where(colour, itself, down_to[0])])
    head = np.concatenate([other, np.where(colour, up_from[0], itself)])
    flow = np.concatenate([problem.part, problem.low * problem.unit + problem.set_part])
    error = _sums(head, flow, sets + 1) - _sums(tail, flow, sets + 1)  # what snapping has left
    part = np.concatenate([problem.part, problem.set_part])
    open_arcs = np.flatnonzero(part)
    chances = _uniform(len(open_arcs), entropy)
    part[open_arcs] = _push(tail[open_arcs], head[open_arcs], part[open_arcs], error, problem.unit, chances)
    return part[:cells] > 0


def _forest(problem: _Problem, chosen: Bools) -> tuple[Ints, Ints]:
    """Among chosen sets: the parent of each, and the smallest around each cell; the root is one past the last set."""
    sets = len(problem.low)
    inside = chosen[problem.member]
    size = np.where(inside, problem.size[problem.member], len(problem.cost) + 1)
    order = np.argsort(size, axis=0, kind="stable")
    chain = np.take_along_axis(np.where(inside, problem.member, sets), order, axis=0)
    parent = np.full(sets + 1, sets, dtype=np.int64)
    for below, above in pairwise(chain):
        parent[below] = above
    parent[sets] = sets
    return parent[:sets], chain[0]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _push(tail: Ints, head: Ints, part: Ints, error: Ints, unit: int, chances: Floats) -> Ints:
    """Walk along arcs with a fraction until the walk meets itself, push flow round the cycle, go on.

    A node cannot have one such arc alone, but for its error. Then that arc takes the error, and hands it on to its other
    end: errors add up to less than 1, so the arc stays within its bounds, and at the end, all flows being whole, so are
    the errors: 0.
    """
    nodes = len(error)
    start, degree, around, slot = _incidence(tail, head, nodes)
    path = np.empty(nodes + 1, dtype=np.int64)
    by = np.empty(nodes + 1, dtype=np.int64)  # the arc that led to each node of the path
    where = np.full(nodes, -1, dtype=np.int64)
    used = 0
    for root in range(nodes):
        top = 0
        path[0], by[0], where[root] = root, -1, 0
        while top >= 0:
            v, came = path[top], by[top]
            a = around[start[v]] if degree[v] > 0 else -1
            if degree[v] == 1:
                change = -error[v] if head[a] == v else error[v]
                part[a] = unit if part[a] + change > unit // 2 else 0
                error[head[a]] += change
                error[tail[a]] -= change
                _close(a, tail, head, around, start, degree, slot)
            if degree[v] == 0:
                where[v] = -1
                top -= 1
                continue
            if a == came:
                a = around[start[v] + 1]
            end = tail[a] if head[a] == v else head[a]
            if where[end] < 0:
                top += 1
                path[top], by[top], where[end] = end, a, top
                continue
            first = where[end]
            kept, by[first] = by[first], a  # for the length of a push, the arc that closes the cycle
            _round(first, top, path, by, tail, part, unit, chances[used])
            used += 1
            for p in range(first, top + 1):
                if part[by[p]] == 0 or part[by[p]] == unit:
                    _close(by[p], tail, head, around, start, degree, slot)
                if p > first:
                    where[path[p]] = -1
            by[first], top = kept, first
    return part


@njit(cache=True)  # type: ignore[untyped-decorator]
def _incidence(tail: Ints, head: Ints, nodes: int) -> tuple[Ints, Ints, Ints, Ints]:
    """The arcs around each node, as lists an arc can leave at once because it knows its places."""
    start = np.zeros(nodes + 1, dtype=np.int64)
    for a in range(len(tail)):
        start[tail[a] + 1] += 1
        start[head[a] + 1] += 1
    start = np.cumsum(start)
    degree = np.zeros(nodes, dtype=np.int64)
    around = np.empty(2 * len(tail), dtype=np.int64)
    slot = np.empty((2, len(tail)), dtype=np.int64)
    for a in range(len(tail)):
        for side in range(2):
            v = tail[a] if side == 0 else head[a]
            slot[side, a] = start[v] + degree[v]
            around[slot[side, a]] = a
            degree[v] += 1
    return start, degree, around, slot


@njit(cache=True)  # type: ignore[untyped-decorator]
def _round(
    first: int, top: int, path: Ints, by: Ints, tail: Ints, part: Ints, unit: int, chance: float
) -> None:
    """Push round the cycle path[first … top] as far as it goes, forwards or back, so that the mean is kept."""
    more, less = unit, unit
    for p in range(first, top + 1):
        a = by[p]
        if tail[a] == path[top if p == first else p - 1]:
            more, less = min(more, unit - part[a]), min(less, part[a])
        else:
            more, less = min(more, part[a]), min(less, unit - part[a])
    step = more if chance * (more + less) < less else -less
    for p in range(first, top + 1):
        a = by[p]
        part[a] += step if tail[a] == path[top if p == first else p - 1] else -step


@njit(cache=True)  # type: ignore[untyped-decorator]
def _close(a: int, tail: Ints, head: Ints, around: Ints, start: Ints, degree: Ints, slot: Ints) -> None:
    """Take an arc off the lists of both its ends."""
    for side in range(2):
        v = tail[a] if side == 0 else head[a]
        moved = around[start[v] + degree[v] - 1]
        around[slot[side, a]] = moved
        if moved != a:
            slot[0 if tail[moved] == v else 1, moved] = slot[side, a]
        degree[v] -= 1


# ------------------------------------------------------------------------------------- leaves, and the check


def _leaves(sets: _Sets, up: Bools, entropy: Entropy | None) -> Ints:
    """The leaves' whole counts, given which cells go up."""
    leaves = sets.leaves
    fractional = np.flatnonzero(leaves.free)
    part = leaves.part[fractional]
    quota = sets.cells.low + up - _sums(sets.cell, leaves.low)
    whole = leaves.low.copy()
    whole[fractional] += _pick(sets.cell[fractional], -part, part, quota, sets.unit, entropy)
    return whole


def _violations(sets: _Sets, whole: Ints, exact: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Every count of the answer against its bounds, in whole numbers; nothing is taken on trust."""
    counts = _sums(sets.cell, whole)
    if (counts < sets.cells.low).any() or (counts > sets.cells.high).any():
        raise SolverError("a cell was not rounded to its floor or ceiling: report this estimate")
    off, worst = {}, {}
    for name, held in sets.element.items():
        own, count = sets.elements[name], _sums(held, counts)
        beyond = np.maximum(np.maximum(own.low - count, count - own.high), 0)
        if beyond.any() and name in exact:
            raise SolverError(
                f"feature {name!r} was not rounded to floors and ceilings: report this estimate"
            )
        if beyond.any():
            off[name], worst[name] = int(np.count_nonzero(beyond)), int(beyond.max())
    return off, worst
