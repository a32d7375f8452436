"""The quadratic program as plain arrays: in its own structure (leaves, cells, terms) and lifted for generic solvers.

    minimise  Σ_u w_u (x_u − c_u)²  +  Σ_i Σ_j w_ij ((A_i x)_j − c_ij)²    over leaves x ≥ 0

which is (O1)–(O3) of the CBDP paper (Fioretto and others 2018, Figure 3) with every feature's variables expressed by the leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from numpy.typing import NDArray

from cbdp.arrays import Bools, Floats, Indices, Ints, Numbers


def bincount(places: Indices, values: Floats, size: int) -> Floats:
    """Sums of values by place: `np.bincount`, always of floats."""
    return np.asarray(np.bincount(places, weights=values, minlength=size), dtype=float)


@dataclass(frozen=True, eq=False)
class Term:
    """One feature's part of the objective."""

    name: str
    element_of_cell: NDArray[Any]  # the feature's element that holds each cell
    target: Floats  # c_ij, the noisy counts (0 where not measured)
    weight: Floats  # w_ij: 0 where not measured, infinite where the count is exact
    # the feature whose elements this one's are tied to when lifted; None: the leaves
    finer: str | None = None
    element_of_finer: Indices | None = None  # this feature's element that holds each of the finer one's

    def sums(self, of_cells: Floats) -> Floats:
        """Totals by element of a quantity given by cell."""
        return bincount(self.element_of_cell, of_cells, len(self.target))


@dataclass(frozen=True, eq=False)
class Problem:
    """Leaves with their cells, and a term per measured feature (coarse ones first)."""

    target: Numbers  # c_u, the noisy count of each leaf
    weight: float | Floats  # w_u, one for all leaves or one each
    cell: NDArray[Any]  # the cell of each leaf
    cells: int
    terms: tuple[Term, ...]
    index: Ints | None = None  # which leaves these are; None: all
    floor: Floats | None = None  # by cell: further leaves there are, whose noisy counts do not exceed this

    def shifts(self, prices: Mapping[str, Floats]) -> Floats:
        """s_k, the sum over terms of the price of the element that holds cell k."""
        total = np.zeros(self.cells)
        for term in self.terms:
            total += prices[term.name][term.element_of_cell]
        return total

    def lifted(self) -> LiftedQP:
        """The same program with a variable for every element (an extended formulation): sparse, as generic solvers need it."""
        return _extended_form(self)


@dataclass(frozen=True, eq=False)
class LiftedQP:
    """minimise ½ Σ_v weight_v (x_v − target_v)²  subject to  ties @ x = 0  and  lower ≤ x ≤ upper.

    The variables are the leaves, then each term's elements at `start[term]`. Every element is tied to the elements of
    one finer feature; the rows are independent, and by induction they imply (O2) for every pair of features.
    """

    weight: Floats
    target: Floats
    ties: sp.csc_matrix
    lower: Floats
    upper: Floats
    leaves: int
    start: Mapping[str, slice]

    @property
    def linear(self) -> Floats:
        """q in ½ xᵀ P x + qᵀ x, with P = diag(weight)."""
        return -self.weight * self.target

    def restore(self, x: Floats, y: Floats) -> tuple[Floats, dict[str, Floats]]:
        """The inverse map: leaves, and prices by feature, from a solution x and the multipliers y of `ties`.

        Stationarity reads weight·(x − target) + tiesᵀ y + z = 0, z for the bounds. A leaf and the elements above it
        form a vector in the kernel of `ties`, so the prices −tiesᵀy of the elements above a leaf sum to its shift.
        """
        pull = -(self.ties.T @ y)
        return x[: self.leaves], {name: pull[where] for name, where in self.start.items()}


def _extended_form(problem: Problem) -> LiftedQP:
    n = len(problem.target)
    start: dict[str, slice] = {}
    offset = n
    for term in problem.terms:
        start[term.name] = slice(offset, offset + len(term.target))
        offset += len(term.target)
    weight = np.concatenate([np.broadcast_to(problem.weight, n), *(t.weight for t in problem.terms)])
    target = np.concatenate([problem.target.astype(float), *(t.target for t in problem.terms)])
    exact = np.isinf(weight)
    # leaves are non-negative, and so is then every sum of them: only leaves need the bound
    floor = np.where(np.arange(offset) < n, 0.0, -np.inf)
    lower, upper = np.where(exact, target, floor), np.where(exact, target, np.inf)
    return LiftedQP(
        np.where(exact, 0.0, weight),
        target,
        _equality_constraints(problem, start, offset),
        lower,
        upper,
        n,
        start,
    )


def _equality_constraints(problem: Problem, start: Mapping[str, slice], variables: int) -> sp.csc_matrix:
    n = len(problem.target)
    rows, columns, values = [], [], []
    for term in problem.terms:
        elements = start[term.name]
        row = np.arange(elements.start, elements.stop) - n
        if term.finer is None or term.element_of_finer is None:
            inside, below = term.element_of_cell[problem.cell], np.arange(n)
        else:
            inside, below = term.element_of_finer, np.arange(start[term.finer].start, start[term.finer].stop)
        rows += [row, row[inside]]
        columns += [np.arange(elements.start, elements.stop), below]
        values += [np.ones(len(row)), -np.ones(len(below))]
    shape = (variables - n, variables)
    if not rows:
        return sp.csc_matrix(shape)
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sp.csc_matrix(entries, shape=shape)


# Equilibration: the lifted program in units that suit a generic solver's tolerances, and the inverse map.
#
# Weights of 1/n_i make the total weigh 10⁵ times a leaf or more, so that a solver's "solved" can be far off in trips.
# Here x = τ z / s with s = √(weight / unit) and τ about the largest count: every measured variable then weighs 1. Exact
# counts are constants, moved to the right-hand side, and rows are divided by their length.


POLISH_STEPS = 3  # enough to repair a few leaves, too few to replace the solver
# regularisation of the dual, for the multipliers of rows that exact counts make redundant; a few proximal steps undo its bias (the
# proximal method of multipliers: Rockafellar 1976)
MULTIPLIER_CURVATURE = 1e-10


@dataclass(frozen=True, eq=False)
class ScaledQP:
    """minimise Σ ½ weight_v z_v² + linear_v z_v  subject to  ties @ z = rhs  and  z ≥ lower; weight_v is 1 or 0.

    The multipliers y of `ties` have the sign of stationarity  weight·z + linear + tiesᵀ y = reduced ≥ 0.
    """

    weight: Floats
    linear: Floats
    ties: sp.csc_matrix  # not csc_array: osqp insists
    rhs: Floats
    lower: Floats
    qp: LiftedQP
    free: Bools  # which of the lifted program's variables these are; the others are exact
    of_variable: Floats  # τ / s
    of_row: Floats  # what turns multipliers of `ties` into those of `qp.ties`

    @property
    def hessian(self) -> sp.csc_matrix:
        return sp.csc_matrix(sp.diags_array(self.weight))

    def undo(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """x and the multipliers of `qp.ties`."""
        x = self.qp.target.copy()
        x[self.free] = self.of_variable * np.asarray(z, dtype=float)
        return x, self.of_row * np.asarray(y, dtype=float)

    def polished(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Solution polishing: a few steps of the primal–dual active-set method (Hintermüller, Ito and Kunisch 2003), while they improve it.

        Interior points end with z·reduced = μ, so leaves near zero are still off by √μ though their support is right.
        """
        z, y = np.asarray(z, dtype=float), np.asarray(y, dtype=float)
        for _ in range(POLISH_STEPS):
            better = _solve_on_support(self, z - self.lower > self._reduced(z, y), y)
            if not self.violation(*better) < self.violation(z, y):
                break
            z, y = better
        return z, y

    def violation(self, z: Floats, y: Floats) -> float:
        """The largest violation of the optimality conditions, in these units; infinite if something is not a number."""
        reduced, above = self._reduced(z, y), z - self.lower
        parts = np.abs(self.ties @ z - self.rhs), -above, -reduced, np.minimum(above, reduced)
        worst = max(float(np.max(part, initial=0.0)) for part in parts)
        return worst if np.isfinite(worst) else np.inf

    def _reduced(self, z: Floats, y: Floats) -> Floats:
        return np.asarray(self.weight * z + self.linear + self.ties.T @ y)


def scale(qp: LiftedQP) -> ScaledQP:
    """The lifted program in even units."""
    free = qp.lower < qp.upper
    weight, target = qp.weight[free], qp.target[free]
    measured = weight > 0
    unit = float(np.exp(np.mean(np.log(weight[: qp.leaves]))))
    most = 1.0 + float(np.max(np.abs(qp.target[: qp.leaves]), initial=0.0))
    of_variable = most / np.sqrt(np.where(measured, weight / unit, 1.0))
    columns = qp.ties[:, free] @ sp.diags_array(of_variable)
    length = np.sqrt(np.asarray(columns.multiply(columns).sum(axis=1)).ravel())
    rows = 1.0 / np.where(length > 0, length, 1.0)
    return ScaledQP(
        weight=measured.astype(float),
        linear=np.where(measured, -target / of_variable, 0.0),
        ties=sp.csc_matrix(sp.diags_array(rows) @ columns),
        rhs=-rows * (qp.ties[:, ~free] @ qp.target[~free]),
        lower=qp.lower[free] / of_variable,
        qp=qp,
        free=free,
        of_variable=of_variable,
        of_row=unit * most**2 * rows,
    )


def _solve_on_support(s: ScaledQP, support: Bools, y: Floats) -> tuple[Floats, Floats]:
    """The optimum with variables off the support at their bound: z = −linear − tiesᵀy where measured, and a system for y."""
    here, loose = support & (s.weight > 0), support & (s.weight == 0)
    z = np.where(support, 0.0, s.lower)
    ties, slack = s.ties[:, here], s.ties[:, loose]
    rows, others = s.ties.shape[0], slack.shape[1]
    normal = ties @ ties.T + MULTIPLIER_CURVATURE * sp.eye_array(rows)
    system = spl.splu(sp.csc_matrix(sp.block_array([[normal, -slack], [-slack.T, None]])))
    rhs = -(ties @ s.linear[here]) - s.rhs + s.ties @ z
    for _ in range(3):
        solution = system.solve(np.concatenate([rhs + MULTIPLIER_CURVATURE * y, np.zeros(others)]))
        y = solution[:rows]
    z[here] = -s.linear[here] - ties.T @ y
    z[loose] = solution[rows:]
    return z, y
