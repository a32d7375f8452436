"""Bounds of controlled rounding: the whole numbers that every real count may become, and the cost of each cell's going up.

Controlled rounding (Cox and Ernst 1982) replaces every entry of a table by its floor or ceiling so that sums hold. Here leaves are reduced to cells:
first the fractions of leaves that decide within a cell, then fixed-point counts and their ranges at every level, last the choice of cells that is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cbdp.arrays import Bools, Floats, Indices, Ints
from cbdp.compiling import compiled_ahead, inlined, kernel
from cbdp.features import SINGLETON, FeatureDag

# The leaves of each cell that go up first, by a bounded heap in each cell: one pass, without sorting all leaves (as `heapq.nlargest`).


@dataclass(frozen=True, eq=False)
class LargestFractions:
    """In each cell a quota of leaves, and one more: those with the largest fractions, the first of equals (largest remainders)."""

    leaf: Ints  # cell after cell, the worst of each first
    start: Ints  # by cell, where its leaves start
    full: Bools  # by cell, whether there is one more than its quota: the worst

    @property
    def last(self) -> Ints:
        """By cell, the one more; −1: there is none."""
        marginal = np.full(len(self.start), -1, dtype=np.int64)
        marginal[self.full] = self.leaf[self.start[self.full]]
        return marginal

    def chosen(self, more: Bools) -> Ints:
        """The quota of each cell, and one leaf more where `more`."""
        kept = np.ones(len(self.leaf), dtype=bool)
        kept[self.start[self.full & ~more]] = False
        return self.leaf[kept]


def largest_fractions(cell: Indices, part: Ints, free: Bools, quota: Ints) -> LargestFractions:
    """The best leaves of each cell among those that are free to go up."""
    available = np.bincount(cell[free], minlength=len(quota))
    room = np.minimum(quota + 1, available)
    start = np.cumsum(room) - room
    leaf, filled = np.empty(room.sum(), dtype=np.int64), np.zeros(len(room), dtype=np.int64)
    _heap_by_cell(leaf, filled, cell, part, free, start, room)
    return LargestFractions(leaf, start, room > quota)


@compiled_ahead("i8[::1], i8[::1], i4[::1], i8[::1], b1[::1], i8[::1], i8[::1]")
@kernel
def _heap_by_cell(leaf, filled, cell, part, free, start, room):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Fills `leaf` with a heap of at most `room` leaves for each cell, the smallest fraction on top."""
    for u in range(len(cell)):
        k = cell[u]
        if not free[u] or room[k] == 0:
            continue
        heap = leaf[start[k] : start[k] + room[k]]
        if filled[k] < room[k]:
            _push(heap, filled[k], u, part)
            filled[k] += 1
        elif part[u] > part[heap[0]]:  # of equals the first stays
            _replace_top(heap, u, part)


@inlined
def _comes_later(a, b, part):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return part[a] < part[b] or (part[a] == part[b] and a > b)


@inlined
def _push(heap, size, u, part):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """One leaf more in a heap of this size (`heapq.heappush`)."""
    at = size
    while at > 0 and _comes_later(u, heap[(at - 1) // 2], part):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = u


@inlined
def _replace_top(heap, u, part):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """A leaf in the place of the one on top of a full heap (`heapq.heapreplace`)."""
    at = 0
    while True:
        below = 2 * at + 1
        if below >= len(heap):
            break
        if below + 1 < len(heap) and _comes_later(heap[below + 1], heap[below], part):
            below += 1
        if not _comes_later(heap[below], u, part):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = u


# Ranges at every level.
#
# An estimate is exact to about 1e-12, not to the last bit, so three leaves of a third add up to 0.9999999999. A value within
# 1e-6·max(1, v) of a whole number (never more than 1e-3) counts as that number: otherwise a public total of 10 could be rounded
# to 9 or 11. Values are whole multiples of 2^−40 (coarser above two million leaves), so that sums are exact and do not depend on
# order; sums are snapped by the same rule. Bounds moved by snapping stay feasible while all moves together are below 1/2: by
# Hoffman's (1960) circulation theorem infeasible bounds differ over some cut, by a whole number, so by at least 1, and no bound is
# counted twice. Where the moves add up to more, the tolerance is lowered. It is stated with the rounding, for whoever checks it.


# distance from a whole number, relative to the value, within which a value counts as it; tried in turn
TOLERANCES = (1e-6, 1e-9, 1e-12, 0.0)
# times the tolerance, whatever the value: a thousandth of a trip by the first of them
MAX_TOLERANCE_FACTOR = 1000
FRACTION_BITS = 40  # bits of a trip's fraction: sums of two million leaves stay below 2^62
DENSE_RATIO = 4  # where one trip type in so many has a count, the cells of the whole universe are listed


@dataclass(frozen=True, eq=False)
class IntegerRange:
    """The least whole number that each value may become, and whether it may also become the next one."""

    low: Ints
    free: Bools

    @property
    def high(self) -> Ints:
        return self.low + self.free


@dataclass(frozen=True, eq=False)
class RoundingSets:
    """The leaves, the cells that hold any of them, and every feature's elements that do, with their ranges."""

    tolerance: float  # relative: how near a whole number a value counts as it
    unit: int  # how many parts make one trip
    part: Ints  # of each leaf, its fraction of a trip
    # of each leaf; cells are numbered by their first leaf, whatever the order of the features
    cell: Indices
    element: Mapping[str, Ints]  # feature (by name) → element of each cell, numbered without gaps
    leaves: IntegerRange
    cells: IntegerRange
    elements: Mapping[str, IntegerRange]

    @cached_property
    def first(self) -> LargestFractions:
        """The leaves that go up first in each cell: as many as its lower count asks for, and one more."""
        quota = self.cells.low - group_sums(self.cell, self.leaves.low)
        return largest_fractions(self.cell, self.part, self.leaves.free, quota)


def rounding_sets(
    features: FeatureDag, index: Ints, value: Floats, tolerance: float | None = None
) -> RoundingSets:
    """Ranges by this tolerance, or by the largest of `TOLERANCES` that keeps them feasible together (Hoffman 1960)."""
    cell, element = _cells_and_elements(features, index)
    unit = 1 << min(FRACTION_BITS, 61 - len(index).bit_length())  # so that sums of parts stay below 2^62
    leaf = _fixed_point(value, unit)
    cells = _fixed_point_sums(cell, leaf, unit)
    sums = {name: _fixed_point_sums(numbers, cells, unit) for name, numbers in element.items()}
    tolerance, (leaves, atoms, *ranges) = _consistent_ranges([leaf, cells, *sums.values()], unit, tolerance)
    elements = dict(zip(sums, ranges, strict=True))
    return RoundingSets(
        tolerance, unit, leaf[1], cell, element, leaves, _within_leaf_ranges(atoms, leaves, cell), elements
    )


def group_sums(group: Indices, numbers: Ints | Bools, groups: int | None = None) -> Ints:
    """Exact sums by group: `np.bincount` for integers."""
    total = np.zeros(int(group.max(initial=-1)) + 1 if groups is None else groups, dtype=np.int64)
    _add_by_group(total, group, numbers)
    return total


@compiled_ahead("i8[::1], i4[::1], i8[::1]", "i8[::1], i8[::1], i8[::1]", "i8[::1], i4[::1], b1[::1]")
@kernel
def _add_by_group(total, group, numbers):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for u in range(len(group)):
        total[group[u]] += numbers[u]


def _cells_and_elements(features: FeatureDag, index: Ints) -> tuple[Indices, dict[str, Ints]]:
    """The cell of each leaf, and of each feature the element of each cell."""
    if len(index) * DENSE_RATIO > features.universe.size:  # every cell's number is at hand, or soon needed
        number = features.cell_of_leaf[index]
    else:
        number = features.cells.partition.element_of(features.universe.unrank_codes(index))
    cell = np.empty(len(number), dtype=np.int32)
    used = np.empty(min(features.cells.size, len(number)), dtype=np.int64)
    used = used[: _number_by_first_use(number, np.full(features.cells.size, -1, np.int32), used, cell)]
    element_of_cell = features.cells.element_of_cell
    names = sorted(name for name in element_of_cell if name != SINGLETON)
    element = {name: np.unique(element_of_cell[name][used], return_inverse=True)[1] for name in names}
    return cell, {name: numbers.astype(np.int64) for name, numbers in element.items()}


@compiled_ahead("i4[::1], i4[::1], i8[::1], i4[::1]")
@kernel
def _number_by_first_use(cell, number, used, renumbered):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Cells numbered in the order of their first leaves, and which these are (`pandas.factorize`); returns how many."""
    many = 0
    for u in range(len(cell)):
        if number[cell[u]] < 0:
            number[cell[u]] = many
            used[many] = cell[u]
            many += 1
        renumbered[u] = number[cell[u]]
    return many


@compiled_ahead("f8[::1], i8")
@kernel
def _fixed_point(value, unit):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Values in fixed point: whole numbers, and parts of a unit."""
    base, part = np.empty(len(value), dtype=np.int64), np.empty(len(value), dtype=np.int64)
    for u in range(len(value)):
        whole = np.int64(np.floor(value[u]))
        rest = np.int64(np.rint((value[u] - whole) * unit))
        base[u], part[u] = whole + rest // unit, rest % unit
    return base, part


def _fixed_point_sums(group: Indices, pair: tuple[Ints, Ints], unit: int) -> tuple[Ints, Ints]:
    base, part = (group_sums(group, numbers) for numbers in pair)
    return base + part // unit, part % unit


def _consistent_ranges(
    levels: list[tuple[Ints, Ints]], unit: int, tolerance: float | None
) -> tuple[float, list[IntegerRange]]:
    """The ranges of all levels, by this tolerance or the largest that keeps them feasible together."""
    for relative in TOLERANCES if tolerance is None else (tolerance,):
        snapped = [_integer_range(base, part, unit, relative) for base, part in levels]
        if 2 * sum(moved for *_, moved in snapped) < unit:
            break
    return relative, [IntegerRange(low, free) for low, free, _ in snapped]


@compiled_ahead("i8[::1], i8[::1], i8, f8")
@kernel
def _integer_range(base, part, unit, tolerance):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """The range of each base + part/unit, and by how many parts snapping moved bounds in all."""
    low, free, moved = np.empty(len(base), dtype=np.int64), np.empty(len(base), dtype=np.bool_), 0
    for u in range(len(base)):
        slack = tolerance * min(max(1.0, base[u]), MAX_TOLERANCE_FACTOR) * unit
        down, up = part[u] <= slack, unit - part[u] <= slack
        moved += part[u] if down else (unit - part[u] if up else 0)
        low[u], free[u] = base[u] + up, not (down or up)
    return low, free, moved


def _within_leaf_ranges(cells: IntegerRange, leaves: IntegerRange, cell: Indices) -> IntegerRange:
    """The cells' ranges, less what their leaves' ranges cannot add up to."""
    least = group_sums(cell, leaves.low)
    low = np.maximum(cells.low, least)
    return IntegerRange(low, np.minimum(cells.high, least + group_sums(cell, leaves.free)) > low)


# The choice of cells: what each costs, and how many may go up in each element of each feature.
#
# Leaves of a cell are bound by nothing but the cell's count K. Given K, n = K − Σ⌊x_u⌋ of them go up, best those with the
# largest fractions f, since going up costs (1 − f)² − f² = 1 − 2f. A cell's count takes one of two neighbouring values, and from the
# lower to the higher exactly the leaf with the (n+1)-th largest fraction is added: the cost of a cell's going up is
# 1 − 2f_(n+1), whatever other cells do. So the distance is a constant plus a sum of costs over the cells that go up, and the
# best choice of cells followed by the best choice of leaves is optimal.


@dataclass(frozen=True, eq=False)
class CellProblem:
    """Cells with a choice, and for every set of them how many may go up. Sets are numbered through all features."""

    unit: int
    cell: Ints
    cost: Ints  # cost of each cell's going up, in units
    names: tuple[str, ...]
    set_of_cell: Ints  # feature × cell → set
    low: Ints
    high: Ints

    @property
    def size(self) -> Ints:
        return np.bincount(self.set_of_cell.ravel(), minlength=len(self.low)).astype(np.int64)

    def feature_of(self) -> Ints:
        """The feature (by position) of each set."""
        feature = np.empty(len(self.low), dtype=np.int64)
        feature[self.set_of_cell] = np.arange(len(self.set_of_cell))[:, None]
        return feature


def cell_problem(sets: RoundingSets) -> CellProblem:
    """The choice of cells that these ranges leave, a 0/1 program with interval constraints."""
    free = np.flatnonzero(sets.cells.free)
    set_of_cell, low, high = [], [], []
    offset = 0
    for name, element_of_cell in sets.element.items():
        ranges = sets.elements[name]
        used, number = np.unique(element_of_cell[free], return_inverse=True)
        settled = group_sums(element_of_cell, sets.cells.low)[used]
        set_of_cell.append(number.astype(np.int64) + offset)
        low.append(ranges.low[used] - settled)
        high.append(ranges.high[used] - settled)
        offset += len(used)
    bounds = np.concatenate(low), np.concatenate(high)
    return CellProblem(
        sets.unit, free, _marginal_cost(sets)[free], tuple(sets.element), np.array(set_of_cell), *bounds
    )


def _marginal_cost(sets: RoundingSets) -> Ints:
    """1 − 2f_(n+1) of every cell, in units; 0 for cells without a choice."""
    return np.where(sets.cells.free, sets.unit - 2 * sets.part[sets.first.last], 0)
