"""Two laminar families as a network: a cell that goes up is a trip that flows from one family to the other.

Sets of the first family hand trips down from the largest to the smallest, cells take them across, sets of the second
family hand them up again; the largest sets of both hang on one node, the root. What flows through a set is how many of its cells
go up. Every flow that keeps the sets' bounds is a choice of cells, and the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbdp.arrays import Bools, Ints
from cbdp.rounding.problem import CellProblem


@dataclass(frozen=True, eq=False)
class Network:
    """Node 0 is the root, node s + 1 is set s; each cell is an arc from `tail` to `head`."""

    tail: Ints  # of each cell: its smallest set of the first family
    head: Ints  # of each cell: its smallest set of the second family
    parent: Ints  # of each node: the next larger set of its family; −1 for the root, and for sets that are not held
    second: Bools  # of each node: whether it is of the second family
    low: Ints  # of each node: how many of its cells go up at least
    high: Ints


def network_of(problem: CellProblem, soft: Bools, second: Bools) -> Network:
    """The network of the sets that are not soft; those of each family are nested or disjoint."""
    size = problem.size
    binds = ~soft & ((problem.low > 0) | (problem.high < size))
    parent = np.full(len(size) + 1, -1, dtype=np.int64)
    ends = [_hang(problem, size, binds & (second == family), parent) for family in (False, True)]
    low, high = (np.concatenate([[0], bound]) for bound in (problem.low, problem.high))
    return Network(ends[0], ends[1], parent, np.concatenate([[False], second]), low, high)


def _hang(problem: CellProblem, size: Ints, chosen: Bools, parent: Ints) -> Ints:
    """Fills in the parents of one family's sets; the smallest of them around each cell."""
    at = np.zeros(len(problem.cost), dtype=np.int64)  # from the largest set around each cell to the smallest
    order = np.argsort(-np.where(chosen[problem.member], size[problem.member], 0), axis=0, kind="stable")
    for row in np.take_along_axis(problem.member, order, axis=0):
        here = np.flatnonzero(chosen[row])
        parent[row[here] + 1] = at[here]
        at[here] = row[here] + 1
    return at
