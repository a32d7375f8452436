"""The quadratic program as plain arrays: in its own structure (leaves, cells, terms) and lifted for generic solvers.

    minimise  Σ_u w_u (x_u − c_u)²  +  Σ_i Σ_j w_ij ((A_i x)_j − c_ij)²    over leaves x ≥ 0

which is (O1)–(O3) of the CBDP paper with every feature's variables expressed by the leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbdp.arrays import Floats


def bincount(places: NDArray[Any], values: Floats, size: int) -> Floats:
    """Sums of values by place."""
    sums: NDArray[Any] = np.bincount(places, weights=values, minlength=size)
    return sums.astype(float, copy=False)


@dataclass(frozen=True, eq=False)
class Term:
    """One feature's part of the objective."""

    name: str
    element_of_cell: NDArray[Any]  # the feature's element that holds each cell
    target: Floats  # c_ij, the noisy counts (0 where not measured)
    weight: Floats  # w_ij: 0 where not measured, infinite where the count is exact
    finer: str | None = (
        None  # the feature whose elements this one's are tied to when lifted; None: the leaves
    )
    element_of_finer: NDArray[Any] | None = None  # this feature's element that holds each of the finer one's

    def sums(self, of_cells: Floats) -> Floats:
        """Totals by element of a quantity given by cell."""
        return bincount(self.element_of_cell, of_cells, len(self.target))


@dataclass(frozen=True, eq=False)
class Problem:
    """Leaves with their cells, and a term per measured feature (coarse ones first)."""

    target: NDArray[Any]  # c_u, the noisy count of each leaf
    weight: float | Floats  # w_u, one for all leaves or one each
    cell: NDArray[Any]  # the cell of each leaf
    cells: int
    terms: tuple[Term, ...]
    index: NDArray[np.int64] | None = None  # which leaves these are; None: all
    floor: Floats | None = None  # by cell: further leaves there are, whose noisy counts do not exceed this

    def shifts(self, prices: Mapping[str, Floats]) -> Floats:
        """s_k, the sum over terms of the price of the element that holds cell k."""
        total = np.zeros(self.cells)
        for term in self.terms:
            total += prices[term.name][term.element_of_cell]
        return total

    def lifted(self) -> LiftedQP:
        """The same program with a variable for every element: sparse, as generic solvers need it."""
        return _lift(self)


@dataclass(frozen=True, eq=False)
class LiftedQP:
    """minimise ½ Σ_v weight_v (x_v − target_v)²  subject to  ties @ x = 0  and  lower ≤ x ≤ upper.

    The variables are the leaves, then each term's elements at `start[term]`. Every element is tied to the elements of
    one finer feature; the rows are independent, and by induction they imply (O2) for every pair of features.
    """

    weight: Floats
    target: Floats
    ties: Any  # scipy csc matrix
    lower: Floats
    upper: Floats
    leaves: int
    start: Mapping[str, slice]

    @property
    def linear(self) -> Floats:
        """q in ½ xᵀ P x + qᵀ x, with P = diag(weight)."""
        return -self.weight * self.target

    def restore(self, x: Floats, y: Floats) -> tuple[Floats, dict[str, Floats]]:
        """The way back: leaves, and prices by feature, from a solution x and the multipliers y of `ties`.

        Stationarity reads weight·(x − target) + tiesᵀ y + z = 0, z for the bounds. A leaf and the elements above it
        form a vector in the kernel of `ties`, so the prices −tiesᵀy of the elements above a leaf sum to its shift.
        """
        pull = -(self.ties.T @ y)
        return x[: self.leaves], {name: pull[where] for name, where in self.start.items()}


def _lift(problem: Problem) -> LiftedQP:
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
        np.where(exact, 0.0, weight), target, _ties(problem, start, offset), lower, upper, n, start
    )


def _ties(problem: Problem, start: Mapping[str, slice], variables: int) -> Any:
    n = len(problem.target)
    rows, columns, values = [], [], []
    for term in problem.terms:
        own = start[term.name]
        row = np.arange(own.start, own.stop) - n
        if term.finer is None or term.element_of_finer is None:
            inside, below = term.element_of_cell[problem.cell], np.arange(n)
        else:
            inside, below = term.element_of_finer, np.arange(start[term.finer].start, start[term.finer].stop)
        rows += [row, row[inside]]
        columns += [np.arange(own.start, own.stop), below]
        values += [np.ones(len(row)), -np.ones(len(below))]
    shape = (variables - n, variables)
    if not rows:
        return sp.csc_matrix(shape)
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sp.csc_matrix(entries, shape=shape)
