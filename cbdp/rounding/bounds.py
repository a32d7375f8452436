"""Real counts at every level, and the whole numbers that each of them may become.

*Floating point.* An estimate is exact to about 1e-12, not to the last bit, so three leaves of a third add up to
0.9999999999. A value within 1e-6·max(1, v) of a whole number (never more than 1e-3) counts as that number: otherwise a
public total of 10 could be rounded to 9 or 11. Values are kept as whole multiples of 2^−40 (coarser above two million
leaves), so that sums are exact and do not depend on order; sums are snapped by the same rule. Snapping moves bounds
a little, and bounds that moved too far could contradict each other. They do not while all moves together are below 1/2:
by Hoffman's circulation theorem, bounds that contradict each other do so by their difference over a cut, which is a whole
number, so at least 1, and no bound is counted twice. Where the moves add up to more, the tolerance is lowered
until they do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.features import SINGLETON, FeatureDag

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

TOLERANCE, MOST = 1e-6, 1e-3  # how far from a whole number a value may be and count as it: relative, absolute
LOWERED = (1.0, 1e-3, 1e-6, 0.0)  # factors of the tolerance, tried in turn
BITS = 40


@dataclass(frozen=True, eq=False)
class Range:
    """The least and the largest whole number that each value may become: one number, or two neighbours."""

    low: Ints
    high: Ints

    @property
    def free(self) -> Bools:
        return self.high > self.low


@dataclass(frozen=True, eq=False)
class Sets:
    """The leaves, the cells that hold any of them, and every feature's elements that do, with their ranges."""

    unit: int  # how many parts make one trip
    part: Ints  # of each leaf, its fraction of a trip
    cell: Ints  # of each leaf; cells are numbered by their first leaf, whatever the order of the features
    element: Mapping[str, Ints]  # feature (by name) → element of each cell, numbered without gaps
    leaves: Range
    cells: Range
    elements: Mapping[str, Range]


def sets_of(features: FeatureDag, index: Ints, value: Floats) -> Sets:
    cell, element = _cells(features, index)
    unit = 1 << min(BITS, 61 - len(index).bit_length())  # so that sums of parts stay below 2^62
    base = np.floor(value).astype(np.int64)
    part = np.rint((value - base) * unit).astype(np.int64)
    leaf = _carried(base, part, unit)  # a value just below a whole number has a part of a whole unit
    cells = _added(cell, leaf, unit)
    sums = {name: _added(held, cells, unit) for name, held in element.items()}
    leaves, atoms, *ranges = _ranges([leaf, cells, *sums.values()], unit)
    elements = dict(zip(sums, ranges, strict=True))
    return Sets(unit, leaf[1], cell, element, leaves, _within(atoms, leaves, cell), elements)


def sums_by(group: Ints, numbers: NDArray[Any], groups: int | None = None) -> Ints:
    """Exact sums by group."""
    total = np.zeros(int(group.max(initial=-1)) + 1 if groups is None else groups, dtype=np.int64)
    np.add.at(total, group, numbers.astype(np.int64, copy=False))
    return total


def _cells(features: FeatureDag, index: Ints) -> tuple[Ints, dict[str, Ints]]:
    """The cell of each leaf, and of each feature the element of each cell."""
    own = features.cells.partition.element_of(features.universe.unrank_codes(index))
    used, first, cell = np.unique(own, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    held = features.cells.element_of_cell
    names = sorted(name for name in held if name != SINGLETON)
    element = {name: np.unique(held[name][used[order]], return_inverse=True)[1] for name in names}
    return place[cell], {name: numbers.astype(np.int64) for name, numbers in element.items()}


def _carried(base: Ints, part: Ints, unit: int) -> tuple[Ints, Ints]:
    """The same values base + part/unit, with parts below a unit."""
    return base + part // unit, part % unit


def _added(group: Ints, pair: tuple[Ints, Ints], unit: int) -> tuple[Ints, Ints]:
    base, part = (sums_by(group, numbers) for numbers in pair)
    return _carried(base, part, unit)


def _ranges(levels: list[tuple[Ints, Ints]], unit: int) -> list[Range]:
    """The ranges of all levels, by the largest tolerance that lets none contradict another."""
    for lowered in LOWERED:
        made = [_range(base, part, unit, lowered) for base, part in levels]
        if 2 * sum(moved for _, moved in made) < unit:
            break
    return [found for found, _ in made]


def _range(base: Ints, part: Ints, unit: int, lowered: float) -> tuple[Range, int]:
    """The range of each base + part/unit, and by how many parts snapping moved bounds in all."""
    slack = np.minimum(TOLERANCE * np.maximum(1.0, base), MOST) * (lowered * unit)
    down, up = part <= slack, unit - part <= slack
    moved = np.where(down, part, np.where(up, unit - part, 0))
    return Range(base + up, base + ~down), int(moved.sum())


def _within(cells: Range, leaves: Range, cell: Ints) -> Range:
    """The cells' ranges, less what their leaves' ranges cannot add up to."""
    low = np.maximum(cells.low, sums_by(cell, leaves.low))
    high = np.minimum(cells.high, sums_by(cell, leaves.high))
    return Range(low, high)
