"""Two laminar families as a network, and its cheapest flow by the network simplex method.

Controlled rounding of two-way tables is a transportation problem (Causey, Cox and Ernst 1985), and so is that of any two laminar families. Sets of the
first family pass trips down from the largest to the smallest, cells take them across, sets of the second family pass them up
again; the largest sets of both are attached to one node, the root. The flow through a set is how many of its cells go up. Feasible integer flows and choices of
cells correspond one to one, and the constraint matrix is totally unimodular, so the optimum is integer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Bools, Ints
from cbdp.compiling import compiled_ahead, kernel
from cbdp.errors import SolverError
from cbdp.progress import tell
from cbdp.rounding.bounds import CellProblem


@dataclass(frozen=True, eq=False)
class Network:
    """Node 0 is the root, node s + 1 is set s; each cell is an arc from `tail` to `head`."""

    tail: Ints  # of each cell: its smallest set of the first family
    head: Ints  # of each cell: its smallest set of the second family
    parent: Ints  # of each node: the next larger set of its family; −1 for the root, and for soft sets
    second: Bools  # of each node: whether it is of the second family
    low: Ints  # of each node: how many of its cells go up at least
    high: Ints


def network_of(problem: CellProblem, soft: Bools, second: Bools) -> Network:
    """The network of the sets that are not soft; those of each family are nested or disjoint."""
    size = problem.size
    binds = ~soft & ((problem.low > 0) | (problem.high < size))
    parent = np.full(len(size) + 1, -1, dtype=np.int64)
    ends = [_set_parents(problem, size, binds & (second == family), parent) for family in (False, True)]
    low, high = (np.concatenate([[0], bound]) for bound in (problem.low, problem.high))
    return Network(ends[0], ends[1], parent, np.concatenate([[False], second]), low, high)


def _set_parents(problem: CellProblem, size: Ints, chosen: Bools, parent: Ints) -> Ints:
    """Fills in the parents of one family's sets; the smallest of them around each cell."""
    at = np.zeros(len(problem.cost), dtype=np.int64)  # from the largest set around each cell to the smallest
    order = np.argsort(
        -np.where(chosen[problem.set_of_cell], size[problem.set_of_cell], 0), axis=0, kind="stable"
    )
    for row in np.take_along_axis(problem.set_of_cell, order, axis=0):
        here = np.flatnonzero(chosen[row])
        parent[row[here] + 1] = at[here]
        at[here] = row[here] + 1
    return at


# The network simplex method (Ahuja, Magnanti and Orlin 1993, chapter 11), in whole numbers.
#
# The sets themselves are the first spanning tree. A set whose count is out of bounds at first has an artificial arc for what is above or
# below (phase I): costs are compared by these first, so they end up empty, since a feasible flow always exists (`program`). Trees stay
# strongly feasible (Cunningham 1976), so the method cannot cycle; all numbers are whole, so the answer is exact and the same on every
# machine. Pivots come in batches, between which progress is reported and an interruption is obeyed.


PIVOTS_PER_BATCH = 500  # pivots: below a second even if each of them looks at a million arcs
INFINITE_CAPACITY = np.int64(2**62)  # trips
AT_LOWER, IN_TREE, AT_UPPER = 1, 0, -1  # states of an arc; the sign is that of an improving reduced cost
MAX_POTENTIAL = 2**60  # cost units: sums of two potentials must not overflow 64 bits


@dataclass(frozen=True, eq=False)
class Flow:
    """Which cells go up, and the reduced cost of each: at most 0 for those that are up, at least 0 for the others (optimality)."""

    up: Bools
    reduced: Ints


def min_cost_flow(network: Network, cost: Ints) -> Flow:
    """Which cells go up so that all sets keep their bounds, at the least cost (as `networkx.network_simplex`, with lower bounds)."""
    nodes = np.flatnonzero(network.parent >= 0)
    shift = _cost_shift(cost, len(nodes))
    within = cost >> shift
    arcs = _arcs(network, nodes, within)
    real = len(within) + len(nodes)
    tree = _initial_tree(network, nodes, within < 0, arcs)
    block = max(64, int(np.sqrt(len(arcs[0]))))
    where = np.zeros(1, dtype=np.int64)
    while _pivots(real, *arcs, *tree, where, block, PIVOTS_PER_BATCH):
        tell("rounding", 0.5)
    flow = arcs[4]
    if flow[real:].any():
        raise SolverError(
            "no rounding was found that keeps every table, although there is one: "
            "report this as a bug, with the estimate if it may be shown"
        )
    potential = tree[4]
    reduced = within + potential[network.tail] - potential[network.head]
    return Flow(flow[: len(within)] > 0, reduced << shift)


def _cost_shift(cost: Ints, nodes: int) -> int:
    """How many bits costs lose so that potentials stay whole numbers of 64 bits: none up to a million sets."""
    most = int(np.abs(cost).max(initial=0)) + 1
    return (most * (nodes + 2) // MAX_POTENTIAL).bit_length()


Arcs = tuple[Ints, Ints, Ints, Ints, Ints, NDArray[np.int8]]


def _arcs(network: Network, nodes: Ints, cost: Ints) -> Arcs:
    """Tails, heads, costs, capacities, flows and states: cells, sets, what is above the sets' bounds, what is below."""
    up = network.second[nodes]
    below = np.where(up, nodes, network.parent[nodes])
    above = np.where(up, network.parent[nodes], nodes)
    width = (network.high - network.low)[nodes]
    tail = np.concatenate([network.tail, below, below, above])
    head = np.concatenate([network.head, above, above, below])
    arc_cost = np.concatenate([cost, np.zeros(3 * len(nodes), dtype=np.int64)])
    capacity = np.concatenate(
        [np.ones(len(cost), dtype=np.int64), width, np.full(2 * len(nodes), INFINITE_CAPACITY)]
    )
    return (
        tail,
        head,
        arc_cost,
        capacity,
        np.zeros(len(tail), dtype=np.int64),
        np.ones(len(tail), dtype=np.int8),
    )


def _initial_tree(network: Network, nodes: Ints, up: Bools, arcs: Arcs) -> tuple[Ints, ...]:
    """The first spanning tree, the sets as they are nested, with the cells of negative cost up: parents, arcs to them, depths, faults, potentials, children."""
    tail, _, arc_cost, _, flow, state = arcs
    cells = len(up)
    flow[:cells] = up
    state[:cells] = np.where(up, AT_UPPER, AT_LOWER)
    number = _set_counts(network, up)[nodes]
    low, high = network.low[nodes], network.high[nodes]
    within, over, under = (cells + k * len(nodes) + np.arange(len(nodes)) for k in range(3))
    flow[within] = np.clip(number, low, high) - low
    flow[over], flow[under] = np.maximum(number - high, 0), np.maximum(low - number, 0)
    # strongly feasible: from every node one more trip could flow to the root
    second = network.second[nodes]
    chosen = np.where(
        second,
        np.where(number >= high, over, np.where(number < low, under, within)),
        np.where(number <= low, under, np.where(number > high, over, within)),
    )
    state[within] = np.where(flow[within] > 0, AT_UPPER, AT_LOWER)
    state[chosen] = IN_TREE
    size = len(network.parent)
    pred = np.full(size, -1, dtype=np.int64)
    pred[nodes] = chosen
    parent = network.parent.copy()
    tree = (parent, pred, *(np.full(size, fill, dtype=np.int64) for fill in (0, 0, 0, -1, -1, -1)))
    _build_tree(cells + len(nodes), tail, arc_cost, *tree)
    return tree


def _set_counts(network: Network, up: Bools) -> Ints:
    """How many cells go up in each set."""
    number = np.zeros(len(network.parent), dtype=np.int64)
    for ends in (network.tail, network.head):
        at = ends[up]
        while (at > 0).any():
            at = at[at > 0]
            np.add.at(number, at, 1)
            at = network.parent[at]
    return number


@compiled_ahead(
    "i8, i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1]"
)
@kernel
def _build_tree(
    real: int, tail: Ints, arc_cost: Ints,
    parent: Ints, pred: Ints, depth: Ints, fault: Ints, potential: Ints, child: Ints, after: Ints, before: Ints,
) -> None:  # fmt: skip
    """Children's lists from parents, then depths and potentials from the root down."""
    for u in range(len(parent)):
        if parent[u] >= 0:
            _attach(u, parent[u], child, after, before)
    _update_subtree(np.int64(0), real, tail, arc_cost, parent, pred, depth, fault, potential, child, after)


@kernel
def _attach(u: int, p: int, child: Ints, after: Ints, before: Ints) -> None:
    after[u], before[u] = child[p], -1
    if child[p] >= 0:
        before[child[p]] = u
    child[p] = u


@kernel
def _detach(u: int, p: int, child: Ints, after: Ints, before: Ints) -> None:
    if before[u] >= 0:
        after[before[u]] = after[u]
    else:
        child[p] = after[u]
    if after[u] >= 0:
        before[after[u]] = before[u]


@kernel
def _update_subtree(
    top: int, real: int, tail: Ints, arc_cost: Ints,
    parent: Ints, pred: Ints, depth: Ints, fault: Ints, potential: Ints, child: Ints, after: Ints,
) -> None:  # fmt: skip
    """Depth and potentials of every node under `top`, and of itself: arcs of the tree have no reduced cost."""
    u = top
    while True:
        p = parent[u]
        if p >= 0:
            depth[u] = depth[p] + 1
            e = pred[u]
            sign = -1 if tail[e] == u else 1
            fault[u] = fault[p] + (sign if e >= real else 0)
            potential[u] = potential[p] + sign * arc_cost[e]
        if child[u] >= 0:
            u = child[u]
            continue
        while u != top and after[u] < 0:
            u = parent[u]
        if u == top:
            return
        u = after[u]


@kernel
def _entering_arc(
    real: int, tail: Ints, head: Ints, arc_cost: Ints, state: NDArray[np.int8], fault: Ints, potential: Ints, where: Ints, block: int
) -> int:  # fmt: skip
    """Block-search pricing: the arc that gains most, artificial arcs first, within the first block that has one; −1 if none gains."""
    arcs, seen, best, fewer, most = len(tail), 0, -1, 0, 0
    e = where[0]
    while seen < arcs and best < 0:
        for _ in range(min(block, arcs - seen)):
            t, h = tail[e], head[e]
            faults = -state[e] * ((1 if e >= real else 0) + fault[t] - fault[h])
            if faults >= fewer:
                gain = -state[e] * (arc_cost[e] + potential[t] - potential[h])
                if faults > fewer or gain > most:
                    best, fewer, most = e, faults, gain
            e += 1
            if e == arcs:
                e = 0
        seen += block
    where[0] = e
    return best


@kernel
def _common_ancestor(one: int, other: int, parent: Ints, depth: Ints) -> int:
    """The apex of the cycle that an arc between these nodes closes."""
    while one != other:
        if depth[one] >= depth[other]:
            one = parent[one]
        else:
            other = parent[other]
    return one


@kernel
def _leaving_arc(
    first: int, second: int, join: int, room: int, tail: Ints, capacity: Ints, flow: Ints, parent: Ints, pred: Ints
) -> tuple[int, int, int]:  # fmt: skip
    """The residual capacity of the cycle, the last node whose arc blocks it (Cunningham's rule), and on which side that is."""
    out, side = -1, 0
    u = first
    while u != join:
        e = pred[u]
        d = flow[e] if tail[e] == u else capacity[e] - flow[e]
        if d < room:
            room, out, side = d, u, 1
        u = parent[u]
    u = second
    while u != join:
        e = pred[u]
        d = capacity[e] - flow[e] if tail[e] == u else flow[e]
        if d <= room:
            room, out, side = d, u, 2
        u = parent[u]
    return room, out, side


@kernel
def _augment(u: int, join: int, room: int, tail: Ints, flow: Ints, parent: Ints, pred: Ints) -> None:
    """So much more flow from here up to the apex of the cycle; negative is the other way."""
    while u != join:
        e = pred[u]
        flow[e] += room if tail[e] == u else -room
        u = parent[u]


@compiled_ahead(
    "i8, i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i1[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8, i8"
)
@kernel
def _pivots(
    real: int, tail: Ints, head: Ints, arc_cost: Ints, capacity: Ints, flow: Ints, state: NDArray[np.int8],
    parent: Ints, pred: Ints, depth: Ints, fault: Ints, potential: Ints, child: Ints, after: Ints, before: Ints,
    where: Ints, block: int, most: int,
) -> bool:  # fmt: skip
    """At most so many pivots; whether there may be more."""
    for _ in range(most):
        entering = _entering_arc(real, tail, head, arc_cost, state, fault, potential, where, block)
        if entering < 0:
            return False
        rises = state[entering] == AT_LOWER
        first = tail[entering] if rises else head[entering]
        second = head[entering] if rises else tail[entering]
        join = _common_ancestor(first, second, parent, depth)
        room, out, side = _leaving_arc(
            first, second, join, capacity[entering], tail, capacity, flow, parent, pred
        )
        flow[entering] += room if rises else -room
        _augment(first, join, -room, tail, flow, parent, pred)
        _augment(second, join, room, tail, flow, parent, pred)
        if side == 0:  # from one bound to the other
            state[entering] = -state[entering]
            continue
        gone = pred[out]
        state[entering] = IN_TREE
        state[gone] = AT_LOWER if flow[gone] == 0 else AT_UPPER
        top, p, e = (first, second, entering) if side == 1 else (second, first, entering)
        u = top
        while True:  # the path from here up to the arc that left hangs the other way now
            old, via = parent[u], pred[u]
            _detach(u, old, child, after, before)
            parent[u], pred[u] = p, e
            _attach(u, p, child, after, before)
            if u == out:
                break
            u, p, e = old, u, via
        _update_subtree(top, real, tail, arc_cost, parent, pred, depth, fault, potential, child, after)
    return True
