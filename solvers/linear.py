"""The Newton system (R + BᵀDB) z = g, factorised again and again with other D but one pattern."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import lapack
from threadpoolctl import ThreadpoolController

Floats = NDArray[np.float64]

_BLAS = ThreadpoolController()

DENSE = 150  # unknowns up to which a dense factorisation is fastest
SCHUR = 4000  # unknowns beside the largest feature's up to which their Schur complement is kept dense
THIN = 0.1  # share of the Schur complement's entries that are not zero, up to which a sparse factor is faster
WORK = 50_000_000  # products of entries that may be spent on looking at the pattern
SPECK = 1e-12  # curvature, relative to the largest, given to exact counts, which have none: it slows a step, not more


class LinearSolver(Protocol):
    def solve(self, d: Floats, gradient: Floats) -> Floats:
        """Solve for this D and g."""
        ...


def linear_solver(member: Any, room: Floats, blocks: Sequence[slice]) -> LinearSolver:
    """The fastest way for this pattern of B (cells × unknowns), this R, and features at these places.

    A feature's elements are disjoint, so its block of the matrix is diagonal: the largest feature is eliminated for
    free, and what is left (the Schur complement of the others) decides.
    """
    m = member.shape[1]
    if m <= DENSE:
        return Dense(member, room)
    largest = max(blocks, key=lambda block: block.stop - block.start)
    rest = m - (largest.stop - largest.start)
    crossings = (member[:, largest].T @ _without(member, largest)).tocsr()
    work = float(np.sum(np.diff(crossings.indptr).astype(float) ** 2))
    if work <= WORK:
        left = crossings.T @ crossings
        if left.nnz <= max(THIN * rest * rest, 16 * m):
            return Sparse(member, room)
    return Schur(member, room, largest) if rest <= SCHUR else Iterated(member, room)


def few_threads(linear: LinearSolver) -> AbstractContextManager[Any]:
    """One BLAS thread while small matrices are factorised: more gain nothing, and on a busy machine wait for each other."""
    return _BLAS.limit(limits=1, user_api="blas") if isinstance(linear, Dense) else nullcontext()


def _without(member: Any, block: slice) -> Any:
    keep = np.r_[0 : block.start, block.stop : member.shape[1]]
    return member[:, keep].tocsr()


def _speck(room: Floats, d: Floats) -> Floats:
    return np.where(room == 0.0, SPECK * max(1.0, float(d.sum())), 0.0)


@dataclass(frozen=True, eq=False)
class Dense:
    member: Any
    room: Floats

    def solve(self, d: Floats, gradient: Floats) -> Floats:
        diagonal = self.room + _speck(self.room, d)
        place = np.empty(len(gradient), dtype=np.int64)
        live = _live(self.member.indptr, self.member.indices, d, place)
        hessian = np.zeros((live, live), order="F")
        _assemble(self.member.indptr, self.member.indices, d, diagonal, place, hessian)
        z = gradient / np.where(
            diagonal > 0, diagonal, 1.0
        )  # what no leaf above its shift touches stands alone
        if live:
            here = place >= 0
            _, z[here], trouble = lapack.dposv(hessian, gradient[here], lower=1, overwrite_a=1)
            if trouble:  # rounding made it singular: what conjugate gradients reach is a descent direction all the same
                return Iterated(self.member, self.room).solve(d, gradient)
        return z


class Sparse:
    """LDLᵀ with an ordering found once."""

    def __init__(self, member: Any, room: Floats) -> None:
        pattern = sp.triu(member.T @ member + sp.eye_array(len(room)), format="csc")
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


class Schur:
    """The largest feature eliminated, the others dense: for features that cross each other a lot."""

    def __init__(self, member: Any, room: Floats, largest: slice) -> None:
        self.room = room
        self.member = member
        self.first = np.r_[largest.start : largest.stop]
        self.others = np.r_[0 : largest.start, largest.stop : len(room)]
        self.member_first = member[:, largest].tocsr()
        self.member_others = _without(member, largest)

    def solve(self, d: Floats, gradient: Floats) -> Floats:
        room = self.room + _speck(self.room, d)
        weighted = sp.diags_array(d) @ self.member_others
        diagonal = room[self.first] + self.member_first.T @ d
        if not len(self.others):
            return np.asarray(gradient / diagonal)
        cross = (self.member_first.T @ weighted).tocsr()
        inner = self.member_others.T @ weighted - cross.T @ sp.diags_array(1.0 / diagonal) @ cross
        left = np.asfortranarray(inner.toarray())
        left[np.diag_indices_from(left)] += room[self.others]
        g = gradient[self.others] - cross.T @ (gradient[self.first] / diagonal)
        factor, trouble = lapack.dpotrf(left, lower=1, overwrite_a=1)
        if trouble:
            return Iterated(self.member, self.room).solve(d, gradient)
        z = np.empty(len(gradient))
        z[self.others] = lapack.dpotrs(factor, g, lower=1)[0]
        z[self.first] = (gradient[self.first] - cross @ z[self.others]) / diagonal
        return z


@dataclass(frozen=True, eq=False)
class Iterated:
    """Conjugate gradients, for what no factor fits. Inexact steps are made good by the next ones."""

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
        return np.asarray(spl.cg(hessian, gradient, rtol=1e-5, maxiter=2000, M=jacobi)[0])


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
def _live(indptr, indices, d, place):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Number the unknowns that D couples, in their order; −1 for the others."""
    place[:] = -1
    for k in range(len(d)):
        if d[k] != 0.0:
            for a in range(indptr[k], indptr[k + 1]):
                place[indices[a]] = 0
    live = 0
    for j in range(len(place)):
        if place[j] == 0:
            place[j] = live
            live += 1
    return live


@njit(cache=True)
def _assemble(indptr, indices, d, diagonal, place, hessian):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for j in range(len(diagonal)):
        if place[j] >= 0:
            hessian[place[j], place[j]] = diagonal[j]
    for k in range(len(d)):
        if d[k] != 0.0:
            for a in range(indptr[k], indptr[k + 1]):
                for b in range(indptr[k], indptr[k + 1]):
                    hessian[place[indices[a]], place[indices[b]]] += d[k]
