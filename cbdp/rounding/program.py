"""Crossing sets of cells: which features can be kept exact together, and the choice of cells where sets cross.

Sets that are nested or disjoint form a laminar family. The rows of two laminar families form a totally unimodular matrix (Edmonds 1970), so every
floor and ceiling can be kept at once. Which sets cross is determined among the cells that still have a choice: they split into two families if and
only if the graph of crossing sets is bipartite. Otherwise the features that do, with the most elements, are kept exact, and the others are soft:
with three families controlled rounding is NP-hard (Irving and Jerrum 1994) and may be infeasible (Causey, Cox and Ernst 1985). Soft sets enter by Lagrangian costs, and
what is still out of bounds goes to `repair`; few cells are solved as a mixed-integer program.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from cbdp.arrays import Bools, Floats, Ints
from cbdp.compiling import kernel
from cbdp.progress import tell
from cbdp.rounding.bounds import CellProblem
from cbdp.rounding.network import min_cost_flow, network_of
from cbdp.rounding.repair import repair

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
    """Which cells go up: at the least price if no set is soft, else with few trips out of bounds in the soft sets."""
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
    price = problem.cost / problem.unit
    if len(loose):
        # all prices together weigh less than one trip's violation
        price = price / (2 * np.abs(price).sum() + 1)
    cells = len(price)
    result = milp(
        np.concatenate([price, np.ones(2 * len(loose))]),
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
    shape = problem.member.shape
    cells = np.broadcast_to(np.arange(shape[1]), shape)
    ones = np.ones(problem.member.size)
    full = csr_array((ones, (problem.member.ravel(), cells.ravel())), shape=(len(problem.low), shape[1]))
    return full[binding], binding


def _integers_or_none(x: Floats) -> Bools | None:
    near: Floats = np.rint(x)
    return None if np.abs(x - near).max(initial=0.0) > INTEGRALITY_TOLERANCE else near.astype(bool)


# Which sets cross


def crossing_pairs(problem: CellProblem) -> Ints:
    """Pairs of sets that overlap and are not nested."""
    size, count = problem.size, len(problem.low)
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    for one, other in combinations(problem.member, 2):
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
    price = np.zeros(len(problem.low))
    for step, temperature in enumerate(TEMPERATURES):
        for sweep in range(SWEEPS_PER_TEMPERATURE):
            tell(
                "rounding",
                0.4 * (step * SWEEPS_PER_TEMPERATURE + sweep) / (len(TEMPERATURES) * SWEEPS_PER_TEMPERATURE),
            )
            # from scratch each time: no drift
            cost = primal_cost + price[problem.member].sum(axis=0)
            _coordinate_ascent(cost, price, order, start, problem.low, problem.high, temperature)
    whole = np.rint(np.where(soft, price, 0.0) * COST_RESOLUTION).astype(np.int64)
    moved = _hash_perturbation(problem.cell, int(PERTURBATION_DEVIATION * COST_RESOLUTION))
    costs: Ints = problem.cost + (whole[problem.member].sum(axis=0) + moved) * (
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
    order = np.argsort(problem.member.ravel(), kind="stable") % max(1, len(problem.cost))
    return order, np.concatenate([[0], np.cumsum(problem.size)])


@kernel
def _coordinate_ascent(
    cost: Floats, price: Floats, order: Ints, start: Ints, low: Ints, high: Ints, temperature: float
) -> None:
    """One sweep over the multipliers: 0 if the sum is within bounds without one, else by Newton's method such that it reaches the nearer bound."""
    for s in range(len(low)):
        begin, end = start[s], start[s + 1]
        if low[s] <= 0 and high[s] >= end - begin:
            continue
        shift = -price[s]  # first as if the set had no price
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
        price[s] += shift
