"""One laminar family of sets is a tree: prices go up it level by level, choices come down.

The step from leaves to cells repeats itself: the price of a set's going up is that of the next cheapest set below it.
"""

from __future__ import annotations

import numpy as np

from cbdp.arrays import Bools
from cbdp.rounding.bounds import sums_by
from cbdp.rounding.cheapest import cheapest, next_cost
from cbdp.rounding.problem import CellProblem


def cells_by_tree(problem: CellProblem) -> Bools:
    """Which cells go up at the least price, if no two sets cross.

    Sorted by size, the sets around a cell are a chain, and the i-th sets of all cells a partition: whatever holds a set
    holds it around each of its cells.
    """
    by_size = np.argsort(problem.size[problem.member], axis=0, kind="stable")
    chain = np.take_along_axis(problem.member, by_size, axis=0)
    low = np.zeros(len(problem.cost), dtype=np.int64)
    free, cost = np.ones(len(low), dtype=bool), problem.cost
    here, parent, steps = np.arange(len(low)), chain[0], []
    for row in range(len(chain)):
        node, group = np.unique(parent[here], return_inverse=True)
        least, room = sums_by(group, low), sums_by(group, free)
        bottom = np.maximum(problem.low[node], least)
        top = np.minimum(problem.high[node], least + room)
        steps.append((group, free, cost, bottom - least))
        cost = next_cost(group[free], cost[free], bottom - least, top > bottom)
        low, free = bottom, top > bottom
        if row + 1 < len(chain):
            here, parent = np.unique(chain[row], return_index=True)[1], chain[row + 1]
    up = free & (cost < 0)
    for group, free_below, price, quota in reversed(steps):
        below = np.zeros(len(free_below), dtype=bool)
        below[free_below] = cheapest(group[free_below], price[free_below], quota + up)
        up = below
    return up
