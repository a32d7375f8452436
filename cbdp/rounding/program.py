"""Sets that cross: a linear program for two families, a mixed-integer one for more.

The real counts of the cells satisfy all bounds, and the rows of two laminar families form a totally unimodular matrix: so whole
counts exist that satisfy them, and the vertices of the linear program are whole. With more families, a mixed-integer
program minimises by how much the features that are not kept exact are off in total.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cbdp.errors import SolverError
from cbdp.rounding.bounds import Bools, Floats, Ints
from cbdp.rounding.problem import CellProblem

WHOLE = 1e-6  # how far from a whole number a solver's answer may be and count as it
# Limits of the mixed-integer program; its answer is repeatable unless time ends it.
GAP, NODES, SECONDS = 1e-2, 5_000, 30.0


def vertex(problem: CellProblem) -> Bools | None:
    """A vertex of the linear program, if it is whole. Each set's own number is a variable, so rows are equations."""
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, hstack

    matrix, said = _matrix(problem)
    cells = len(problem.cost)
    cost = np.concatenate([problem.cost / problem.unit, np.zeros(len(said))])
    low = np.concatenate([np.zeros(cells), problem.low[said]])
    high = np.concatenate([np.ones(cells), problem.high[said]])
    equations = hstack([matrix, -eye_array(len(said))]).tocsc() if len(said) else None
    found = linprog(
        cost,
        A_eq=equations,
        b_eq=np.zeros(len(said)) if len(said) else None,
        bounds=np.stack([low, high], axis=1),
        method="highs-ds",
        options={"dual_feasibility_tolerance": 1e-10},
    )
    return None if found.x is None else _if_whole(found.x[:cells])


def cells_by_program(problem: CellProblem) -> Bools:
    """Which cells go up at the least price, if the sets form two families."""
    up = vertex(problem)
    if up is None:  # rounding in the solver has made a vertex fractional that is not
        up = least_violation(problem, np.zeros(len(problem.low), dtype=bool))
    if up is None:
        raise SolverError(
            "no rounding was found that keeps every table, although there is one: "
            "report this as a bug, with the estimate if it may be shown"
        )
    return up


def least_violation(problem: CellProblem, soft: Bools) -> Bools | None:
    """Least total violation of the soft sets, then (to within GAP) least distance; the best found within the limits."""
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
        options={"mip_rel_gap": GAP, "node_limit": NODES, "time_limit": SECONDS},
    )
    return None if found.x is None else _if_whole(found.x[:cells])


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
