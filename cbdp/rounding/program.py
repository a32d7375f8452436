"""Sets that cross: a network for two families; with more, a small program, or prices and repairs.

The real counts of the cells satisfy all bounds, and the rows of two laminar families form a totally unimodular matrix: so whole
counts exist that satisfy them, and the cheapest flow through their network is the nearest rounding (`network`, `simplex`).

With more families the problem is NP-hard, and there may be no rounding that keeps every count. The features that are kept exact
are the network; counts of the others are soft. Up to SMALL cells with a choice, a mixed-integer program finds the least total
violation. Beyond, the soft sets are heard by price (`leaning`) and then brought back into bounds one trip after another
(`repair`). No rounding has less than no violation, so what is reported bounds the distance from the optimum; in tests it is one trip at most.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cbdp.arrays import Bools, Floats, Ints
from cbdp.rounding.families import second_family
from cbdp.rounding.leaning import leaning_costs
from cbdp.rounding.network import network_of
from cbdp.rounding.problem import CellProblem
from cbdp.rounding.repair import repaired
from cbdp.rounding.simplex import cheapest_flow

WHOLE = 1e-6  # how far from a whole number a solver's answer may be and count as it
SMALL = 40  # cells up to which a mixed-integer program is solved: some tenths of a second at worst
GAP, NODES = 1e-2, 1_000  # limits of that program; there is none by time, so its answer is repeatable


def cells_by_program(problem: CellProblem, crossing: Ints, soft: Bools) -> Bools:
    """Which cells go up: at the least price if no set is soft, else with few trips out of bounds in the soft sets."""
    if soft.any() and len(problem.cost) <= SMALL:
        up = least_violation(problem, soft)
        if up is not None:
            return up
    network = network_of(problem, soft, second_family(crossing, soft))
    if not soft.any():
        return cheapest_flow(network, problem.cost).up
    return repaired(problem, soft, network, cheapest_flow(network, leaning_costs(problem, soft)))


def least_violation(problem: CellProblem, soft: Bools) -> Bools | None:
    """Least total violation of the soft sets, then (to within GAP) least distance; None if the limits end the search."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, hstack

    matrix, said = _matrix(problem)
    loose = np.flatnonzero(soft[said])
    slack = csr_array((np.ones(len(loose)), (loose, np.arange(len(loose)))), shape=(len(said), len(loose)))
    nothing = csr_array(slack.shape)
    price = problem.cost / problem.unit
    if len(loose):
        # all prices together weigh less than one trip's violation
        price = price / (2 * np.abs(price).sum() + 1)
    cells = len(price)
    found = milp(
        np.concatenate([price, np.ones(2 * len(loose))]),
        integrality=np.concatenate([np.ones(cells), np.zeros(2 * len(loose))]),
        bounds=Bounds(0, np.concatenate([np.ones(cells), np.full(2 * len(loose), np.inf)])),
        constraints=[
            LinearConstraint(hstack([matrix, slack, nothing]), lb=problem.low[said]),
            LinearConstraint(hstack([matrix, nothing, -slack]), ub=problem.high[said]),
        ],
        options={"mip_rel_gap": GAP, "node_limit": NODES},
    )
    return _if_whole(found.x[:cells]) if found.status == 0 else None


def _matrix(problem: CellProblem) -> tuple[Any, Ints]:
    """Set × cell, only the sets whose bounds say anything; and which those are."""
    from scipy.sparse import csr_array

    said = np.flatnonzero((problem.low > 0) | (problem.high < problem.size))
    shape = problem.member.shape
    cells = np.broadcast_to(np.arange(shape[1]), shape)
    ones = np.ones(problem.member.size)
    full = csr_array((ones, (problem.member.ravel(), cells.ravel())), shape=(len(problem.low), shape[1]))
    return full[said], said


def _if_whole(x: Floats) -> Bools | None:
    near: Floats = np.rint(x)
    return None if np.abs(x - near).max(initial=0.0) > WHOLE else near.astype(bool)
