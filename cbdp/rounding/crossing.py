"""Crossing sets of cells: which features can be kept exact together, and the choice of cells where sets cross.

Sets that are nested or disjoint form a laminar family. The rows of two laminar families form a totally unimodular matrix (Edmonds 1970), so every
floor and ceiling can be kept at once. Which sets cross is determined among the cells that still have a choice: they split into two families if and
only if the graph of crossing sets is bipartite. Otherwise the features that do, with the most elements, are kept exact, and the others are soft:
with three families controlled rounding is NP-hard (Irving and Jerrum 1994) and may be infeasible (Causey, Cox and Ernst 1985). Soft sets enter by Lagrangian costs, and
what is still out of bounds goes to `repair`; few cells are solved as a mixed-integer program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Bools, Floats, Ints
from cbdp.compiling import kernel
from cbdp.progress import tell
from cbdp.rounding.bounds import CellProblem
from cbdp.rounding.network import Flow, Network, min_cost_flow, network_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_FEATURES_COMPARED = 12  # crossing features up to which all 2^n choices of exact ones are compared
INTEGRALITY_TOLERANCE = 1e-6  # distance from a whole number at which a solver's value counts as it
# cells: a mixed-integer program of them takes some tenths of a second at worst
MAX_INTEGER_PROGRAM_CELLS = 40
MIP_GAP, MAX_NODES = 1e-2, 1_000  # limits of that program; none by time, so that its answer is repeatable


# The choice of cells where sets cross.
#
# The real counts of the cells satisfy all bounds, so with two families total unimodularity gives whole ones that do, and the cheapest flow
# is the nearest rounding. With more families no bound is proved: by how much counts are out of bounds is reported; in tests it is one trip at most.


def round_crossing(problem: CellProblem, crossing: Ints, soft: Bools) -> Bools:
    """Which cells go up: at the least cost if no set is soft, else with few trips out of bounds in the soft sets."""
    if soft.any() and len(problem.cost) <= MAX_INTEGER_PROGRAM_CELLS:
        up = least_violation(problem, soft)
        if up is not None:
            return up
    network = network_of(problem, soft, second_family(crossing, soft))
    if not soft.any():
        return min_cost_flow(network, problem.cost).up
    return repair(problem, soft, network, min_cost_flow(network, lagrangian_costs(problem, soft)))


def least_violation(problem: CellProblem, soft: Bools) -> Bools | None:
    """Least total violation of the soft sets, then least distance (their sum to within `MIP_GAP`), by `scipy.optimize.milp`; None if the limits end the search."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, hstack

    matrix, binding = _incidence_matrix(problem)
    loose = np.flatnonzero(soft[binding])
    slack = csr_array((np.ones(len(loose)), (loose, np.arange(len(loose)))), shape=(len(binding), len(loose)))
    nothing = csr_array(slack.shape)
    cost = problem.cost / problem.unit
    if len(loose):
        # all costs together weigh less than one trip's violation
        cost = cost / (2 * np.abs(cost).sum() + 1)
    cells = len(cost)
    result = milp(
        np.concatenate([cost, np.ones(2 * len(loose))]),
        integrality=np.concatenate([np.ones(cells), np.zeros(2 * len(loose))]),
        bounds=Bounds(0, np.concatenate([np.ones(cells), np.full(2 * len(loose), np.inf)])),
        constraints=[
            LinearConstraint(hstack([matrix, slack, nothing]), lb=problem.low[binding]),
            LinearConstraint(hstack([matrix, nothing, -slack]), ub=problem.high[binding]),
        ],
        options={"mip_rel_gap": MIP_GAP, "node_limit": MAX_NODES},
    )
    return _integers_or_none(result.x[:cells]) if result.status == 0 else None


def _incidence_matrix(problem: CellProblem) -> tuple[csr_array, Ints]:
    """Set × cell, only the sets whose bounds can bind; and which those are."""
    from scipy.sparse import csr_array

    binding = np.flatnonzero((problem.low > 0) | (problem.high < problem.size))
    shape = problem.set_of_cell.shape
    cells = np.broadcast_to(np.arange(shape[1]), shape)
    ones = np.ones(problem.set_of_cell.size)
    full = csr_array((ones, (problem.set_of_cell.ravel(), cells.ravel())), shape=(len(problem.low), shape[1]))
    return full[binding], binding


def _integers_or_none(x: Floats) -> Bools | None:
    near: Floats = np.rint(x)
    return None if np.abs(x - near).max(initial=0.0) > INTEGRALITY_TOLERANCE else near.astype(bool)


# Which sets cross


def crossing_pairs(problem: CellProblem) -> Ints:
    """Pairs of sets that overlap and are not nested."""
    size, count = problem.size, len(problem.low)
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    for one, other in combinations(problem.set_of_cell, 2):
        pair, shared = np.unique(one * count + other, return_counts=True)
        first, second = np.divmod(pair, count)
        crosses = (shared < size[first]) & (shared < size[second])
        pairs.append(np.stack([first, second], axis=1)[crosses])
    return np.concatenate(pairs)


def exact_features(problem: CellProblem, crossing: Ints) -> list[int]:
    """Features (by position) whose sets form two laminar families: all if they do, else those with the most elements.

    Features whose counts are all whole already come before others: they are public counts, which must be met.
    """
    every = list(range(len(problem.names)))
    sets = len(problem.low)
    if _is_bipartite(sets, crossing):
        return every
    feature = problem.feature_of()
    ends = feature[crossing]
    sized = np.bincount(feature, minlength=len(every))
    free = np.bincount(feature, problem.high > problem.low, minlength=len(every))
    kept = largest_bipartite_subset(np.where(free > 0, sized, sized + sets), np.unique(ends, axis=0))
    for extra in sorted(set(every) - set(kept), key=lambda f: (-int((feature == f).sum()), f)):
        # features that cross may still fit into two families set by set
        inside = np.isin(ends, [*kept, extra]).all(axis=1)
        if _is_bipartite(sets, crossing[inside]):
            kept = sorted([*kept, extra])
    return kept


def largest_bipartite_subset(weight: Ints, pairs: Ints) -> list[int]:
    """The features of the largest total weight that induce a bipartite graph of crossing pairs; greedy if there are too many to compare."""

    def fits(rows: Sequence[int]) -> bool:
        return _is_bipartite(len(weight), pairs[np.isin(pairs, rows).all(axis=1)])

    crossed = [int(f) for f in np.unique(pairs)]
    alone = sorted(set(range(len(weight))) - set(crossed))
    chosen: list[int] = []
    if len(crossed) <= MAX_FEATURES_COMPARED:
        choices = [c for r in range(len(crossed) + 1) for c in combinations(crossed, r)]
        choices.sort(key=lambda c: (-int(weight[list(c)].sum()), c))
        chosen = list(next(c for c in choices if fits(c)))
    else:
        for f in sorted(crossed, key=lambda f: (-int(weight[f]), f)):
            if fits([*chosen, f]):
                chosen.append(f)
    return sorted([*alone, *chosen])


def second_family(crossing: Ints, soft: Bools) -> Bools:
    """Which sets are of the second family, if those that are not soft form two."""
    one, other = _double_cover_components(len(soft), crossing[~soft[crossing].any(axis=1)])
    return one > other


def _is_bipartite(sets: int, pairs: Ints) -> bool:
    """Whether the graph of these pairs is bipartite (`networkx.is_bipartite`)."""
    one, other = _double_cover_components(sets, pairs)
    return not (one == other).any()


def _double_cover_components(sets: int, pairs: Ints) -> tuple[Ints, Ints]:
    """The bipartite double cover: each set twice, and every pair across; the components of each set's copies.

    A graph is bipartite if and only if no node has both copies in one component.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    one, other = pairs[:, 0], pairs[:, 1]
    ends = np.concatenate([one, one + sets]), np.concatenate([other + sets, other])
    graph = coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(2 * sets, 2 * sets))
    part = connected_components(graph, directed=False)[1].astype(np.int64)
    return part[:sets], part[sets:]


# Lagrangian costs of soft sets (Lagrangian relaxation: Fisher 1981).
#
# The sets beyond two families have no arcs in the network. Their multipliers are added to the costs of their cells, chosen so that a choice of
# cells by cost alone comes close to all bounds: the choice is smoothed (a cell of cost c goes up by 1/(1 + e^(c/T))), and one multiplier at a
# time is set so that the sum keeps its set's bounds, which is coordinate ascent on a smooth concave dual.
#
# Most cells cost nearly the same, and the cheapest flow breaks ties without regard for soft sets. So each cell's cost is perturbed by a
# hash of its number: the flow then spreads over cells of nearly equal cost much as the smoothed choice did. Whatever the costs,
# the network keeps its own sets exactly; they decide only how much is left to `repair`.


TEMPERATURES = (0.1, 0.03)  # T, in units of cost; costs of cells are within −1 … 1
SWEEPS_PER_TEMPERATURE = 4  # of coordinate ascent over all sets
# multipliers are whole multiples of 1/this: the last bits of an exponential decide nothing
COST_RESOLUTION = 2**20
PERTURBATION_DEVIATION = 0.027  # standard deviation, in units of cost


def lagrangian_costs(problem: CellProblem, soft: Bools) -> Ints:
    """The cost of each cell's going up, with the multipliers of its soft sets (Fisher 1981) and its perturbation."""
    primal_cost = problem.cost / problem.unit
    order, start = _cells_by_set(problem)
    multiplier = np.zeros(len(problem.low))
    for step, temperature in enumerate(TEMPERATURES):
        for sweep in range(SWEEPS_PER_TEMPERATURE):
            tell(
                "rounding",
                0.4 * (step * SWEEPS_PER_TEMPERATURE + sweep) / (len(TEMPERATURES) * SWEEPS_PER_TEMPERATURE),
            )
            # from scratch each time: no drift
            cost = primal_cost + multiplier[problem.set_of_cell].sum(axis=0)
            _coordinate_ascent(cost, multiplier, order, start, problem.low, problem.high, temperature)
    whole = np.rint(np.where(soft, multiplier, 0.0) * COST_RESOLUTION).astype(np.int64)
    moved = _hash_perturbation(problem.cell, int(PERTURBATION_DEVIATION * COST_RESOLUTION))
    costs: Ints = problem.cost + (whole[problem.set_of_cell].sum(axis=0) + moved) * (
        problem.unit // COST_RESOLUTION
    )
    return costs


def _hash_perturbation(cell: Ints, deviation: int) -> Ints:
    """A whole number for each cell, about normal with mean 0: the sum of four parts of its number's hash (splitmix64: Steele, Lea and Flood 2014)."""
    mixed = cell.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    total = mixed.view(np.uint16).reshape(-1, 4).sum(axis=1, dtype=np.int64)
    about_zero = 2 * total - 4 * 0xFFFF  # four numbers of 16 bits: twice their sum deviates by 2 · 2^16 / √3
    perturbation: Ints = about_zero * deviation * 7 // (8 * 2**16)  # 7/8 is √3/2, but for one per cent
    return perturbation


def _cells_by_set(problem: CellProblem) -> tuple[Ints, Ints]:
    """The cells of every set, set after set, and where each set's begin."""
    order = np.argsort(problem.set_of_cell.ravel(), kind="stable") % max(1, len(problem.cost))
    return order, np.concatenate([[0], np.cumsum(problem.size)])


@kernel
def _coordinate_ascent(
    cost: Floats, multiplier: Floats, order: Ints, start: Ints, low: Ints, high: Ints, temperature: float
) -> None:
    """One sweep over the multipliers: 0 if the sum is within bounds without one, else by Newton's method such that it reaches the nearer bound."""
    for s in range(len(low)):
        begin, end = start[s], start[s + 1]
        if low[s] <= 0 and high[s] >= end - begin:
            continue
        shift = -multiplier[s]  # first as if the set had no multiplier
        asked = 0.0
        for newton in range(8):
            total, slope = 0.0, 0.0
            for k in range(begin, end):
                z = 1 / (1 + np.exp(min((cost[order[k]] + shift) / temperature, 40.0)))
                total += z
                slope += z * (1 - z)
            if newton == 0:
                if low[s] <= total <= high[s]:
                    break
                asked = min(max(high[s] if total > high[s] else low[s], 0.05), end - begin - 0.05)
            if abs(total - asked) < 0.02:
                break
            step = temperature * (total - asked) / max(slope, 1e-3)
            most = 2 * temperature if newton else 0.5
            shift += min(max(step, -most), most)
        for k in range(begin, end):
            cost[order[k]] += shift
        multiplier[s] += shift


# Local search for sets beyond two families: brought back into their bounds by cycles in the network, which stays feasible.
#
# A set that is out of bounds has too many cells up, or too few. Flipping one of its cells unbalances the network by one trip between two nodes; a
# path between them in the residual network, along sets with slack and cells that may flip, closes the cycle. A strict move lets no soft set leave its
# bounds: it lowers the total violation and keeps the network's sets exactly. Where there is none, one soft set may take the violation over, and the
# search goes on from there: a sideways move. A set that passed a violation on is on a tabu list for some rounds (Glover 1989). Kelly, Golden and
# Assad (1993) search in tabu lists too, but let the total violation rise and fall (strategic oscillation); here it never rises. Paths are
# searched breadth first, at first along cells of small reduced cost in the optimal flow, then along dearer ones. Where a search reached a node
# and not its goal, none is begun from there to what it did not reach until something is flipped: this saves work, and may miss a path that the
# cell of that search closed.


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
# of cells: tail and head; of nodes: parent, and whether of the second family
Ends = tuple[Ints, Ints, Ints, Bools]
CellsByEnd = tuple[Ints, Ints, Ints, Ints, Ints]  # by tail, its starts, by head, its starts, reduced costs
# via, origin, queue, flipped cells, nodes that were reached strictly and loosely
Scratch = tuple[Ints, Ints, Ints, Ints, Ints, Ints]
SearchArrays = tuple[Sets, Groups, Ends, CellsByEnd, Groups, Scratch]


@dataclass(frozen=True, eq=False)
class _RepairState:
    """A choice of cells on its way into all bounds; arrays change in place."""

    problem: CellProblem
    soft: Bools
    up: Flips
    count: Ints
    arrays: SearchArrays

    def beyond(self) -> Ints:
        """By how many trips each soft set is out of bounds."""
        off = np.maximum(self.problem.low - self.count, self.count - self.problem.high)
        return np.where(self.soft, np.maximum(off, 0), 0)

    def reduce_violation(self, s: int, limit: float, closed: Bools | None = None) -> None:
        """One set, by cells of at most this reduced cost; sets that are not `closed` may take its violation over (None: all are closed)."""
        closed_sets = np.ones(len(self.soft), dtype=bool) if closed is None else closed
        _repair_set(
            s,
            self.up,
            self.count,
            closed_sets,
            int(limit * self.problem.unit),
            MAX_ARCS_PER_SET,
            *self.arrays,
        )


def repair(problem: CellProblem, soft: Bools, network: Network, flow: Flow) -> Bools:
    """The same choice of cells with as few trips out of bounds in the soft sets as local search over such cycles reaches."""
    set_of_cell, up = problem.set_of_cell, flow.up.astype(np.int8)
    count = np.bincount(set_of_cell.ravel(), np.tile(flow.up, len(set_of_cell)), len(soft)).astype(np.int64)
    state = _RepairState(problem, soft, up, count, _search_arrays(problem, soft, network, flow.reduced))
    first = int(state.beyond().sum())
    for left in _alternate(state):
        tell("rounding", 0.5 + 0.5 * (1 - left / first))
    return up.astype(bool)


def _alternate(state: _RepairState) -> Iterator[int]:
    """Strict moves as long as they help, cheap cells first, then a round of passing on, and so on; how many trips are out of bounds."""
    rests_until = np.zeros(len(state.soft), dtype=np.int64)
    least, since = np.inf, 0
    for now in range(MAX_ROUNDS):
        for limit in COST_LIMITS if now == 0 else COST_LIMITS[-1:]:
            yield from _reduce_violations(state, limit)
        left = state.beyond()
        least, since = (left.sum(), now) if left.sum() < least else (least, since)
        if not least or now - since == MAX_ROUNDS_WITHOUT_PROGRESS:
            return
        for s in np.flatnonzero(left).tolist():
            rests_until[s] = now + TABU_ROUNDS
            state.reduce_violation(s, COST_LIMITS[-1], rests_until > now)
            yield int(left.sum())


def _reduce_violations(state: _RepairState, limit: float) -> Iterator[int]:
    left, before = int(state.beyond().sum()), -1
    while left not in (0, before):
        for s in np.flatnonzero(state.beyond()).tolist():
            state.reduce_violation(s, limit)
            yield left
        left, before = int(state.beyond().sum()), left


def _search_arrays(problem: CellProblem, soft: Bools, network: Network, reduced_cost: Ints) -> SearchArrays:
    """The arrays of the search: bounds, ends of cells, cells by set, tail and head with the cheapest to flip first."""
    nodes, rank = len(network.parent), np.argsort(reduced_cost, kind="stable")
    order = np.argsort(problem.set_of_cell[:, rank].ravel(), kind="stable")
    cells = np.tile(rank, len(problem.set_of_cell))[order]
    rising = rank[np.argsort(network.tail[rank], kind="stable")]
    falling = rank[::-1][np.argsort(network.head[rank[::-1]], kind="stable")]
    children = np.flatnonzero(network.parent >= 0)
    children = children[np.argsort(network.parent[children], kind="stable")]
    loose = soft[problem.set_of_cell[:, 0]]
    arrays = (
        (problem.set_of_cell, np.flatnonzero(loose), np.flatnonzero(~loose), problem.low, problem.high),
        (cells, _group_starts(problem.set_of_cell.ravel(), len(soft))),
        (network.tail, network.head, network.parent, network.second),
        (rising, _group_starts(network.tail, nodes), falling, _group_starts(network.head, nodes), reduced_cost),
        (children, _group_starts(network.parent[children], nodes)),
        tuple(np.zeros(nodes + 1, dtype=np.int64) for _ in range(6)),
    )  # fmt: skip
    return cast("SearchArrays", arrays)


def _group_starts(group: Ints, groups: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(group, minlength=groups))]).astype(np.int64)


@kernel
def _newly_violated(c: int, but: int, up: Flips, count: Ints, closed: Bools, sets: Sets) -> int:
    """How many soft sets, but one, leave their bounds when a cell flips; 9 if a closed one does."""
    set_of_cell, loose, _, low, high = sets
    broken = 0
    for r in loose:
        t = set_of_cell[r, c]
        if t != but and (count[t] <= low[t] if up[c] else count[t] >= high[t]):
            if closed[t]:
                return 9
            broken += 1
    return broken


@kernel
def _flip(c: int, up: Flips, count: Ints, sets: Sets) -> int:
    """Flips a cell in the soft sets' counts; by how much their violation rises."""
    set_of_cell, loose, _, low, high = sets
    step = -1 if up[c] else 1
    up[c] += step
    rise = 0
    for r in loose:
        t = set_of_cell[r, c]
        count[t] += step
        if step > 0:
            rise += 1 if count[t] > high[t] else (-1 if count[t] <= low[t] else 0)
        else:
            rise += 1 if count[t] < low[t] else (-1 if count[t] >= high[t] else 0)
    return rise


@kernel
def _count_flip(c: int, up: Flips, count: Ints, sets: Sets) -> None:
    """Counts a flipped cell in the network's sets too."""
    set_of_cell, _, in_network, _, _ = sets
    for r in in_network:
        count[set_of_cell[r, c]] += 1 if up[c] else -1


@kernel
def _extend_search(
    x: int, last: int, breaks: int, limit: int, up: Flips, count: Ints, closed: Bools, sets: Sets, ends: Ends, by_end: CellsByEnd, trees: Groups, search: Scratch
) -> int:  # fmt: skip
    """Breadth-first step: queues all nodes that one arc from x reaches; the new end of the queue."""
    _, _, _, low, high = sets
    tail, head, parent, second = ends
    rising, rising_at, falling, falling_at, reduced_cost = by_end
    children, children_at = trees
    via, origin, queue = search[:3]
    if breaks == 0 and x > 0:
        p = parent[x]
        if via[p] == -1 and (count[x - 1] < high[x - 1] if second[x] else count[x - 1] > low[x - 1]):
            via[p], origin[p], queue[last] = -2, x, p
            last += 1
    if breaks == 0:
        for k in range(children_at[x], children_at[x + 1]):
            y = children[k]
            if via[y] == -1 and (count[y - 1] > low[y - 1] if second[y] else count[y - 1] < high[y - 1]):
                via[y], origin[y], queue[last] = -2, x, y
                last += 1
    if not second[x]:
        for k in range(rising_at[x], rising_at[x + 1]):
            if reduced_cost[rising[k]] > limit:
                break
            y = head[rising[k]]
            if via[y] != -1 or up[rising[k]]:
                continue
            if _newly_violated(rising[k], NO_SET, up, count, closed, sets) <= breaks:
                via[y], origin[y], queue[last] = rising[k], x, y
                last += 1
    if second[x] or x == 0:
        for k in range(falling_at[x], falling_at[x + 1]):
            if reduced_cost[falling[k]] < -limit:
                break
            y = tail[falling[k]]
            if via[y] != -1 or not up[falling[k]]:
                continue
            if _newly_violated(falling[k], NO_SET, up, count, closed, sets) <= breaks:
                via[y], origin[y], queue[last] = falling[k], x, y
                last += 1
    return last


@kernel
def _find_cycle(
    start: int, goal: int, breaks: int, limit: int, up: Flips, count: Ints, closed: Bools, sets: Sets, ends: Ends, by_end: CellsByEnd, trees: Groups, search: Scratch
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
        last = _extend_search(x, last, allowed, limit, up, count, closed, sets, ends, by_end, trees, search)
    return work


@kernel
def _repair_set(
    s: int, up: Flips, count: Ints, closed: Bools, limit: int, work: int,
    sets: Sets, by_set: Groups, ends: Ends, by_end: CellsByEnd, trees: Groups, search: Scratch,
) -> None:  # fmt: skip
    """Flips cells of one set, each with a cycle that restores the network, until it is in bounds or nothing helps."""
    _, _, _, low, high = sets
    cells, cells_at = by_set
    tail, head, _, _ = ends
    reduced_cost = by_end[4]
    via, origin, _, flipped, strict, loose = search
    strict[:], loose[:] = 0, 0
    breaks = 0 if closed.all() else 1
    over = count[s] > high[s]
    for at in range(cells_at[s + 1] - cells_at[s]):
        if work <= 0 or (count[s] <= high[s] if over else count[s] >= low[s]):
            return
        c = cells[cells_at[s + 1] - 1 - at] if over else cells[cells_at[s] + at]
        if reduced_cost[c] < -limit if over else reduced_cost[c] > limit:
            return
        broken = _newly_violated(c, s, up, count, closed, sets)
        if up[c] != over or broken > breaks:
            continue
        start, goal = (tail[c], head[c]) if over else (head[c], tail[c])
        seen = loose if breaks > broken else strict
        if seen[start] and not seen[goal]:  # a search came by the start already, and not to the goal
            continue
        rise, many = _flip(c, up, count, sets), 1
        flipped[0] = c
        work -= _find_cycle(
            start, goal, breaks - broken, limit, up, count, closed, sets, ends, by_end, trees, search
        )
        y = goal
        while y != start and via[goal] != -1:
            if via[y] >= 0:
                flipped[many] = via[y]
                many += 1
                rise += _flip(via[y], up, count, sets)
            y = origin[y]
        # not if no cycle closes, or a soft set was met twice
        helps = via[goal] != -1 and rise < breaks
        if helps:
            strict[:], loose[:] = 0, 0
        elif via[goal] == -1:
            seen[:] = via != -1
        for k in range(many):
            if helps:
                _count_flip(flipped[k], up, count, sets)
            else:
                _flip(flipped[k], up, count, sets)
