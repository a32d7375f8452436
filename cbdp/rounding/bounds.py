"""Real counts at every level, and the whole numbers that each of them may become.

*Floating point.* An estimate is exact to about 1e-12, not to the last bit, so three leaves of a third add up to
0.9999999999. A value within 1e-6·max(1, v) of a whole number (never more than 1e-3) counts as that number: otherwise a
public total of 10 could be rounded to 9 or 11. Values are kept as whole multiples of 2^−40 (coarser above two million
leaves), so that sums are exact and do not depend on order; sums are snapped by the same rule. Snapping moves bounds
a little, and bounds that moved too far could contradict each other. They do not while all moves together are below 1/2:
by Hoffman's circulation theorem, bounds that contradict each other do so by their difference over a cut, which is a whole
number, so at least 1, and no bound is counted twice. Where the moves add up to more, the tolerance is lowered
until they do not. The tolerance that was used belongs to what is claimed of the whole numbers: it is stated with them, and whoever
checks them asks for the same ranges here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cbdp.arrays import Bools, Floats, Ints
from cbdp.features import SINGLETON, FeatureDag
from cbdp.rounding.best import Best, best_of

# How far from a whole number a value may be and count as it, relative to the value; tried in turn.
TOLERANCES = (1e-6, 1e-9, 1e-12, 0.0)
MOST_TOLERATED = 1000  # times the tolerance, whatever the value: a thousandth of a trip by the first of them
BITS = 40
LISTED = 4  # where one of so many trip types has a count, those of the whole universe are listed


@dataclass(frozen=True, eq=False)
class Range:
    """The least whole number that each value may become, and whether it may also become the next one."""

    low: Ints
    free: Bools

    @property
    def high(self) -> Ints:
        return self.low + self.free


@dataclass(frozen=True, eq=False)
class Sets:
    """The leaves, the cells that hold any of them, and every feature's elements that do, with their ranges."""

    tolerance: float  # relative: how near a whole number a value counts as it
    unit: int  # how many parts make one trip
    part: Ints  # of each leaf, its fraction of a trip
    cell: NDArray[
        Any
    ]  # of each leaf; cells are numbered by their first leaf, whatever the order of the features
    element: Mapping[str, Ints]  # feature (by name) → element of each cell, numbered without gaps
    leaves: Range
    cells: Range
    elements: Mapping[str, Range]

    @cached_property
    def first(self) -> Best:
        """The leaves that go up first in each cell: as many as its lower count asks for, and one more."""
        quota = self.cells.low - sums_by(self.cell, self.leaves.low)
        return best_of(self.cell, self.part, self.leaves.free, quota)


def sets_of(features: FeatureDag, index: Ints, value: Floats, tolerance: float | None = None) -> Sets:
    """Ranges by a tolerance: the one that is given, or the largest of `TOLERANCES` that lets no range contradict another."""
    cell, element = _cells(features, index)
    unit = 1 << min(BITS, 61 - len(index).bit_length())  # so that sums of parts stay below 2^62
    leaf = _parts(value, unit)
    cells = _added(cell, leaf, unit)
    sums = {name: _added(held, cells, unit) for name, held in element.items()}
    tolerance, (leaves, atoms, *ranges) = _ranges([leaf, cells, *sums.values()], unit, tolerance)
    elements = dict(zip(sums, ranges, strict=True))
    return Sets(tolerance, unit, leaf[1], cell, element, leaves, _within(atoms, leaves, cell), elements)


def sums_by(group: NDArray[Any], numbers: NDArray[Any], groups: int | None = None) -> Ints:
    """Exact sums by group."""
    total = np.zeros(int(group.max(initial=-1)) + 1 if groups is None else groups, dtype=np.int64)
    _add(total, group, numbers)
    return total


@njit(cache=True)
def _add(total, group, numbers):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for u in range(len(group)):
        total[group[u]] += numbers[u]


def _cells(features: FeatureDag, index: Ints) -> tuple[NDArray[Any], dict[str, Ints]]:
    """The cell of each leaf, and of each feature the element of each cell."""
    if len(index) * LISTED > features.universe.size:  # every cell's number is at hand, or soon needed
        own = features.cell_of_leaf[index]
    else:
        own = features.cells.partition.element_of(features.universe.unrank_codes(index))
    cell, used = _numbered(own, features.cells.size)
    held = features.cells.element_of_cell
    names = sorted(name for name in held if name != SINGLETON)
    element = {name: np.unique(held[name][used], return_inverse=True)[1] for name in names}
    return cell, {name: numbers.astype(np.int64) for name, numbers in element.items()}


@njit(cache=True)
def _numbered(own, cells):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Cells numbered in the order in which they are met; and which these are."""
    number, used, many = np.full(cells, -1, dtype=np.int32), np.empty(min(cells, len(own)), dtype=np.int64), 0
    made = np.empty(len(own), dtype=np.int32)
    for u in range(len(own)):
        if number[own[u]] < 0:
            number[own[u]] = many
            used[many] = own[u]
            many += 1
        made[u] = number[own[u]]
    return made, used[:many].copy()


@njit(cache=True)
def _parts(value, unit):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Values as whole numbers, and parts of a unit: one just below a whole number may have a part that counts as the whole."""
    base, part = np.empty(len(value), dtype=np.int64), np.empty(len(value), dtype=np.int64)
    for u in range(len(value)):
        whole = np.int64(np.floor(value[u]))
        rest = np.int64(np.rint((value[u] - whole) * unit))
        base[u], part[u] = whole + rest // unit, rest % unit
    return base, part


def _added(group: NDArray[Any], pair: tuple[Ints, Ints], unit: int) -> tuple[Ints, Ints]:
    base, part = (sums_by(group, numbers) for numbers in pair)
    return base + part // unit, part % unit


def _ranges(levels: list[tuple[Ints, Ints]], unit: int, tolerance: float | None) -> tuple[float, list[Range]]:
    """The ranges of all levels, by the tolerance that is given or the largest that lets none contradict another."""
    for relative in TOLERANCES if tolerance is None else (tolerance,):
        snapped = [_range(base, part, unit, relative) for base, part in levels]
        if 2 * sum(moved for *_, moved in snapped) < unit:
            break
    return relative, [Range(low, free) for low, free, _ in snapped]


@njit(cache=True)
def _range(base, part, unit, tolerance):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """The range of each base + part/unit, and by how many parts snapping moved bounds in all."""
    low, free, moved = np.empty(len(base), dtype=np.int64), np.empty(len(base), dtype=np.bool_), 0
    for u in range(len(base)):
        slack = tolerance * min(max(1.0, base[u]), MOST_TOLERATED) * unit
        down, up = part[u] <= slack, unit - part[u] <= slack
        moved += part[u] if down else (unit - part[u] if up else 0)
        low[u], free[u] = base[u] + up, not (down or up)
    return low, free, moved


def _within(cells: Range, leaves: Range, cell: NDArray[Any]) -> Range:
    """The cells' ranges, less what their leaves' ranges cannot add up to."""
    least = sums_by(cell, leaves.low)
    low = np.maximum(cells.low, least)
    return Range(low, np.minimum(cells.high, least + sums_by(cell, leaves.free)) > low)
