"""Local search for sets beyond two families: brought back into their bounds by cycles in the network, which stays feasible.

A set that is out of bounds has too many cells up, or too few. Flipping one of its cells unbalances the network by one trip between two nodes; a
path between them in the residual network, along sets with slack and cells that may flip, closes the cycle. A strict move lets no soft set leave its
bounds: it lowers the total violation and keeps the network's sets exactly. Where there is none, one soft set may take the violation over, and the
search goes on from there: a sideways move. A set that passed a violation on is on a tabu list for some rounds (Glover 1989). Kelly, Golden and Assad
(1993) search in tabu lists too, but let the total violation rise and fall (strategic oscillation); here it never rises. Paths are searched breadth first, at first along cells of small reduced cost in
the optimal flow, then along dearer ones. Where a search reached a node and not its goal, none is begun from there to what it did not reach until something is
flipped: this saves work, and may miss a path that the cell of that search closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Bools, Ints
from cbdp.compiling import kernel
from cbdp.progress import tell
from cbdp.rounding.bounds import CellProblem
from cbdp.rounding.network import Flow, Network

# reduced costs of cells that may flip, in turn; cells' own costs are within −1 … 1
COST_LIMITS = (0.1, 1000.0)
MAX_ROUNDS = 40  # rounds of passing violations on
MAX_ROUNDS_WITHOUT_PROGRESS = 10  # rounds in succession without one trip less out of bounds
TABU_ROUNDS = 6  # rounds in which a set that passed a violation on takes none
NO_SET = np.int64(-1)
MAX_ARCS_PER_SET = 10_000_000  # arcs searched for one set and round: some tenths of a second

# Arrays of the compiled search, which takes them in tuples.
Flips = NDArray[np.int8]  # by cell: 1 up, 0 down
Sets = tuple[Ints, Ints, Ints, Ints, Ints]  # members by feature, soft features, the others, low, high
Groups = tuple[Ints, Ints]  # members group by group, and where each group starts
Ends = tuple[
    Ints, Ints, Ints, Bools
]  # of cells: tail and head; of nodes: parent, and whether of the second family
CellsByEnd = tuple[Ints, Ints, Ints, Ints, Ints]  # by tail, its starts, by head, its starts, reduced costs
Scratch = tuple[
    Ints, Ints, Ints, Ints, Ints, Ints
]  # via, origin, queue, cells turned, nodes seen strictly, loosely
SearchArrays = tuple[Sets, Groups, Ends, CellsByEnd, Groups, Scratch]


@dataclass(frozen=True, eq=False)
class _RepairState:
    """A choice of cells on its way into all bounds; arrays change in place."""

    problem: CellProblem
    soft: Bools
    turned: Flips
    count: Ints
    arrays: SearchArrays

    def beyond(self) -> Ints:
        """By how many trips each soft set is out of bounds."""
        off = np.maximum(self.problem.low - self.count, self.count - self.problem.high)
        return np.where(self.soft, np.maximum(off, 0), 0)

    def mend(self, s: int, limit: float, closed: Bools | None = None) -> None:
        """One set, by cells of at most this reduced cost; sets that are not `closed` may take its violation over (None: all are closed)."""
        barred = np.ones(len(self.soft), dtype=bool) if closed is None else closed
        _repair_set(
            s, self.turned, self.count, barred, int(limit * self.problem.unit), MAX_ARCS_PER_SET, *self.arrays
        )


def repair(problem: CellProblem, soft: Bools, network: Network, flow: Flow) -> Bools:
    """The same choice of cells with as few trips out of bounds in the soft sets as local search over such cycles reaches."""
    member, turned = problem.member, flow.up.astype(np.int8)
    count = np.bincount(member.ravel(), np.tile(flow.up, len(member)), len(soft)).astype(np.int64)
    mending = _RepairState(problem, soft, turned, count, _search_arrays(problem, soft, network, flow.reduced))
    first = int(mending.beyond().sum())
    for left in _alternate(mending):
        tell("rounding", 0.5 + 0.5 * (1 - left / first))
    return turned.astype(bool)


def _alternate(mending: _RepairState) -> Iterator[int]:
    """Strict moves as long as they help, cheap cells first, then a round of passing on, and so on; how many trips are out of bounds."""
    rests_until = np.zeros(len(mending.soft), dtype=np.int64)
    least, since = np.inf, 0
    for now in range(MAX_ROUNDS):
        for limit in COST_LIMITS if now == 0 else COST_LIMITS[-1:]:
            yield from _reduce_violations(mending, limit)
        left = mending.beyond()
        least, since = (left.sum(), now) if left.sum() < least else (least, since)
        if not least or now - since == MAX_ROUNDS_WITHOUT_PROGRESS:
            return
        for s in np.flatnonzero(left).tolist():
            rests_until[s] = now + TABU_ROUNDS
            mending.mend(s, COST_LIMITS[-1], rests_until > now)
            yield int(left.sum())


def _reduce_violations(mending: _RepairState, limit: float) -> Iterator[int]:
    left, before = int(mending.beyond().sum()), -1
    while left not in (0, before):
        for s in np.flatnonzero(mending.beyond()).tolist():
            mending.mend(s, limit)
            yield left
        left, before = int(mending.beyond().sum()), left


def _search_arrays(problem: CellProblem, soft: Bools, network: Network, price: Ints) -> SearchArrays:
    """The arrays of the search: bounds, ends of cells, cells by set, tail and head with the cheapest to flip first."""
    nodes, rank = len(network.parent), np.argsort(price, kind="stable")
    order = np.argsort(problem.member[:, rank].ravel(), kind="stable")
    cells = np.tile(rank, len(problem.member))[order]
    rising = rank[np.argsort(network.tail[rank], kind="stable")]
    falling = rank[::-1][np.argsort(network.head[rank[::-1]], kind="stable")]
    hung = np.flatnonzero(network.parent >= 0)
    hung = hung[np.argsort(network.parent[hung], kind="stable")]
    loose = soft[problem.member[:, 0]]
    arrays = (
        (problem.member, np.flatnonzero(loose), np.flatnonzero(~loose), problem.low, problem.high),
        (cells, _group_starts(problem.member.ravel(), len(soft))),
        (network.tail, network.head, network.parent, network.second),
        (rising, _group_starts(network.tail, nodes), falling, _group_starts(network.head, nodes), price),
        (hung, _group_starts(network.parent[hung], nodes)),
        tuple(np.zeros(nodes + 1, dtype=np.int64) for _ in range(6)),
    )  # fmt: skip
    return cast("SearchArrays", arrays)


def _group_starts(group: Ints, groups: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(group, minlength=groups))]).astype(np.int64)


@kernel
def _newly_violated(c: int, but: int, turned: Flips, count: Ints, closed: Bools, sets: Sets) -> int:
    """How many soft sets, but one, leave their bounds when a cell flips; 9 if a closed one does."""
    member, loose, _, low, high = sets
    broken = 0
    for r in loose:
        t = member[r, c]
        if t != but and (count[t] <= low[t] if turned[c] else count[t] >= high[t]):
            if closed[t]:
                return 9
            broken += 1
    return broken


@kernel
def _flip(c: int, turned: Flips, count: Ints, sets: Sets) -> int:
    """Flips a cell in the soft sets' counts; by how much their violation rises."""
    member, loose, _, low, high = sets
    step = -1 if turned[c] else 1
    turned[c] += step
    worse = 0
    for r in loose:
        t = member[r, c]
        count[t] += step
        if step > 0:
            worse += 1 if count[t] > high[t] else (-1 if count[t] <= low[t] else 0)
        else:
            worse += 1 if count[t] < low[t] else (-1 if count[t] >= high[t] else 0)
    return worse


@kernel
def _count_flip(c: int, turned: Flips, count: Ints, sets: Sets) -> None:
    """Counts a flipped cell in the network's sets too."""
    member, _, in_network, _, _ = sets
    for r in in_network:
        count[member[r, c]] += 1 if turned[c] else -1


@kernel
def _extend_search(
    x: int, last: int, breaks: int, limit: int, turned: Flips, count: Ints, closed: Bools, sets: Sets, ends: Ends, by_end: CellsByEnd, trees: Groups, search: Scratch
) -> int:  # fmt: skip
    """Breadth-first step: queues all nodes that one arc from x reaches; the new end of the queue."""
    _, _, _, low, high = sets
    tail, head, parent, second = ends
    rising, rising_at, falling, falling_at, price = by_end
    hung, hung_at = trees
    via, origin, queue = search[:3]
    if breaks == 0 and x > 0:
        p = parent[x]
        if via[p] == -1 and (count[x - 1] < high[x - 1] if second[x] else count[x - 1] > low[x - 1]):
            via[p], origin[p], queue[last] = -2, x, p
            last += 1
    if breaks == 0:
        for k in range(hung_at[x], hung_at[x + 1]):
            y = hung[k]
            if via[y] == -1 and (count[y - 1] > low[y - 1] if second[y] else count[y - 1] < high[y - 1]):
                via[y], origin[y], queue[last] = -2, x, y
                last += 1
    if not second[x]:
        for k in range(rising_at[x], rising_at[x + 1]):
            if price[rising[k]] > limit:
                break
            y = head[rising[k]]
            if via[y] != -1 or turned[rising[k]]:
                continue
            if _newly_violated(rising[k], NO_SET, turned, count, closed, sets) <= breaks:
                via[y], origin[y], queue[last] = rising[k], x, y
                last += 1
    if second[x] or x == 0:
        for k in range(falling_at[x], falling_at[x + 1]):
            if price[falling[k]] < -limit:
                break
            y = tail[falling[k]]
            if via[y] != -1 or not turned[falling[k]]:
                continue
            if _newly_violated(falling[k], NO_SET, turned, count, closed, sets) <= breaks:
                via[y], origin[y], queue[last] = falling[k], x, y
                last += 1
    return last


@kernel
def _find_cycle(
    start: int, goal: int, breaks: int, limit: int, turned: Flips, count: Ints, closed: Bools, sets: Sets, ends: Ends, by_end: CellsByEnd, trees: Groups, search: Scratch
) -> int:  # fmt: skip
    """Breadth-first search for the goal, left in `via` (−1 unseen, −2 along a set, else a cell); how many arcs were searched."""
    _, rising_at, _, falling_at, _ = by_end
    via, origin, queue = search[:3]
    via[:] = -1
    via[start], origin[start], queue[0] = -2, start, start
    first, last, work, again, strict = 0, 1, 0, 0, -1
    while via[goal] == -1:
        if first < last:
            x, allowed = queue[first], 0
            first += 1
        else:  # nothing more is reached strictly: one step that violates a set, from the nodes reached
            strict = last if strict < 0 else strict
            if breaks == 0 or again == strict:
                break
            x, allowed = queue[again], 1
            again += 1
        work += rising_at[x + 1] - rising_at[x] + falling_at[x + 1] - falling_at[x]
        last = _extend_search(
            x, last, allowed, limit, turned, count, closed, sets, ends, by_end, trees, search
        )
    return work


@kernel
def _repair_set(
    s: int, turned: Flips, count: Ints, closed: Bools, limit: int, work: int,
    sets: Sets, by_set: Groups, ends: Ends, by_end: CellsByEnd, trees: Groups, search: Scratch,
) -> None:  # fmt: skip
    """Flips cells of one set, each with a cycle that restores the network, until it is in bounds or nothing helps."""
    _, _, _, low, high = sets
    cells, cells_at = by_set
    tail, head, _, _ = ends
    price = by_end[4]
    via, origin, _, turns, strict, loose = search
    strict[:], loose[:] = 0, 0
    breaks = 0 if closed.all() else 1
    over = count[s] > high[s]
    for at in range(cells_at[s + 1] - cells_at[s]):
        if work <= 0 or (count[s] <= high[s] if over else count[s] >= low[s]):
            return
        c = cells[cells_at[s + 1] - 1 - at] if over else cells[cells_at[s] + at]
        if price[c] < -limit if over else price[c] > limit:
            return
        broken = _newly_violated(c, s, turned, count, closed, sets)
        if turned[c] != over or broken > breaks:
            continue
        start, goal = (tail[c], head[c]) if over else (head[c], tail[c])
        seen = loose if breaks > broken else strict
        if seen[start] and not seen[goal]:  # a search came by the start already, and not to the goal
            continue
        worse, many = _flip(c, turned, count, sets), 1
        turns[0] = c
        work -= _find_cycle(
            start, goal, breaks - broken, limit, turned, count, closed, sets, ends, by_end, trees, search
        )
        y = goal
        while y != start and via[goal] != -1:
            if via[y] >= 0:
                turns[many] = via[y]
                many += 1
                worse += _flip(via[y], turned, count, sets)
            y = origin[y]
        # not if no cycle closes, or a soft set was met twice
        helps = via[goal] != -1 and worse < breaks
        if helps:
            strict[:], loose[:] = 0, 0
        elif via[goal] == -1:
            seen[:] = via != -1
        for k in range(many):
            if helps:
                _count_flip(turns[k], turned, count, sets)
            else:
                _flip(turns[k], turned, count, sets)
