"""The Newton system (R + BᵀDB) z = g, factorised again and again with other D but one pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import lapack

Floats = NDArray[np.float64]

DENSE = 150  # unknowns up to which a dense factorisation is fastest
DENSE_AT_MOST = 2500  # and up to which it is bearable where the pattern is crowded
CROWDED = 0.2  # share of entries that are not zero
FACTORISED = 4_000_000  # entries of the pattern up to which it is factorised; beyond, conjugate gradients
SPECK = 1e-12  # curvature, relative to the largest, given to exact counts, which have none: it slows a step, not more


class LinearSolver(Protocol):
    def solve(self, d: Floats, gradient: Floats) -> Floats:
        """Solve for this D and g."""
        ...


def linear_solver(member: Any, room: Floats) -> LinearSolver:
    """The fastest way for this pattern of B (cells × unknowns) and this R."""
    m = member.shape[1]
    if m <= DENSE:
        return Dense(member, room)
    if member.nnz**2 / max(1, member.shape[0]) > 16 * FACTORISED:
        return Iterated(member, room)
    pattern = sp.triu(member.T @ member + sp.eye_array(m), format="csc")
    if pattern.nnz > CROWDED * m * m / 2 and m <= DENSE_AT_MOST:
        return Dense(member, room)
    if pattern.nnz > FACTORISED:
        return Iterated(member, room)
    return Sparse(member, room, pattern)


def _speck(room: Floats, d: Floats) -> Floats:
    return np.where(room == 0.0, SPECK * max(1.0, float(d.sum())), 0.0)


@dataclass(frozen=True, eq=False)
class Dense:
    member: Any
    room: Floats

    def solve(self, d: Floats, gradient: Floats) -> Floats:
        hessian = np.zeros((len(gradient), len(gradient)), order="F")
        _assemble(self.member.indptr, self.member.indices, d, self.room + _speck(self.room, d), hessian)
        _, z, trouble = lapack.dposv(hessian, gradient, lower=1, overwrite_a=1)
        if (
            trouble
        ):  # rounding made it singular: what conjugate gradients reach is a descent direction all the same
            return Iterated(self.member, self.room).solve(d, gradient)
        return np.asarray(z)


class Sparse:
    """LDLᵀ with an ordering found once."""

    def __init__(self, member: Any, room: Floats, pattern: Any) -> None:
        self.room = room
        self.pattern = pattern
        self.factor: Any = None
        self.cell, self.slot = _slots(member, pattern)
        self.diagonal = _place(pattern, np.arange(len(room)), np.arange(len(room)))

    def solve(self, d: Floats, gradient: Floats) -> Floats:
        import qdldl

        data = np.bincount(self.slot, weights=d[self.cell], minlength=self.pattern.nnz)
        data[self.diagonal] += self.room + _speck(self.room, d)
        hessian = sp.csc_matrix((data, self.pattern.indices, self.pattern.indptr), shape=self.pattern.shape)
        if self.factor is None:
            self.factor = qdldl.Solver(hessian, upper=True)
        else:
            self.factor.update(hessian, upper=True)
        return np.asarray(self.factor.solve(gradient))


@dataclass(frozen=True, eq=False)
class Iterated:
    """Conjugate gradients, for patterns whose factor would not fit."""

    member: Any
    room: Floats

    def solve(self, d: Floats, gradient: Floats) -> Floats:
        fixed = self.room + _speck(self.room, d)
        diagonal = fixed + self.member.T @ d
        m = len(gradient)
        hessian = spl.LinearOperator(
            (m, m), lambda z: fixed * z + self.member.T @ (d * (self.member @ z)), dtype=float
        )
        jacobi = spl.LinearOperator((m, m), lambda z: z / np.where(diagonal > 0, diagonal, 1.0), dtype=float)
        return np.asarray(spl.cg(hessian, gradient, rtol=1e-10, maxiter=3000, M=jacobi)[0])


def _slots(member: Any, pattern: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """For every cell and every pair of its elements, the cell and the entry of the pattern that it adds to."""
    width = np.diff(member.indptr)
    cells, slots = [], []
    for most in np.unique(width):
        rows = np.flatnonzero(width == most)
        columns = np.sort(member.indices[member.indptr[rows][:, None] + np.arange(most)], axis=1)
        for a in range(most):
            for b in range(a, most):
                cells.append(rows)
                slots.append(_place(pattern, columns[:, a], columns[:, b]))
    return np.concatenate(cells), np.concatenate(slots)


def _place(pattern: Any, row: NDArray[Any], column: NDArray[Any]) -> NDArray[Any]:
    """Where entries (row ≤ column) stand among the entries of an upper-triangular csc pattern."""
    pattern.sort_indices()
    m = np.int64(pattern.shape[0])
    keys = np.repeat(np.arange(m, dtype=np.int64), np.diff(pattern.indptr)) * m + pattern.indices
    return np.asarray(np.searchsorted(keys, column.astype(np.int64) * m + row))


@njit(cache=True)
def _assemble(indptr, indices, d, diagonal, hessian):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for j in range(len(diagonal)):
        hessian[j, j] = diagonal[j]
    for k in range(len(d)):
        if d[k] != 0.0:
            for a in range(indptr[k], indptr[k + 1]):
                for b in range(indptr[k], indptr[k + 1]):
                    hessian[indices[a], indices[b]] += d[k]
