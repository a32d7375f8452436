"""Which cells go up: their prices, and how many may in each element of each feature.

Leaves of a cell are bound by nothing but the cell's count K. Given K, n = K − Σ⌊x_u⌋ of them go up, best those with the
largest fractions f, since going up costs (1 − f)² − f² = 1 − 2f. A cell's count takes one of two neighbouring values, and from the
lower to the higher exactly the leaf with the (n+1)-th largest fraction is added: the price of a cell's going up is
1 − 2f_(n+1), whatever other cells do. So the distance is a constant plus a sum of prices over the cells that go up, and the
best choice of cells followed by the best choice of leaves is the best of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbdp.arrays import Ints
from cbdp.rounding.bounds import Sets, sums_by


@dataclass(frozen=True, eq=False)
class CellProblem:
    """Cells with a choice, and for every set of them how many may go up. Sets are numbered through all features."""

    unit: int
    cell: Ints
    cost: Ints  # price of each cell's going up, in units
    names: tuple[str, ...]
    member: Ints  # feature × cell → set
    low: Ints
    high: Ints

    @property
    def size(self) -> Ints:
        return np.bincount(self.member.ravel(), minlength=len(self.low)).astype(np.int64)

    def feature_of(self) -> Ints:
        """The feature (by position) of each set."""
        found = np.empty(len(self.low), dtype=np.int64)
        found[self.member] = np.arange(len(self.member))[:, None]
        return found


def problem_of(sets: Sets) -> CellProblem:
    """The choice of cells that these ranges leave."""
    free = np.flatnonzero(sets.cells.free)
    member, low, high = [], [], []
    offset = 0
    for name, held in sets.element.items():
        own = sets.elements[name]
        used, number = np.unique(held[free], return_inverse=True)
        settled = sums_by(held, sets.cells.low)[used]
        member.append(number.astype(np.int64) + offset)
        low.append(own.low[used] - settled)
        high.append(own.high[used] - settled)
        offset += len(used)
    bounds = np.concatenate(low), np.concatenate(high)
    return CellProblem(sets.unit, free, _marginal(sets)[free], tuple(sets.element), np.array(member), *bounds)


def _marginal(sets: Sets) -> Ints:
    """1 − 2f_(n+1) of every cell, in units; 0 for cells without a choice."""
    return np.where(sets.cells.free, sets.unit - 2 * sets.part[sets.first.last], 0)
