"""The Newton system (R + BᵀDB) z = g, factorised again and again with other D but one pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import lapack

from cbdp.arrays import Floats
from cbdp.errors import SolverError

SMALL = 100  # unknowns beside the largest feature's up to which the system is solved by compiled code alone,
FREE = 300  # and unknowns of the largest feature
SCHUR = 4000  # unknowns beside the largest feature's up to which their Schur complement is kept dense
THIN = 0.1  # share of the Schur complement's entries that are not zero, up to which a sparse factor is faster
WORK = 50_000_000  # products of entries that may be spent on looking at the pattern
LIFTS = (0.0, 1e-12, 1e-9, 1e-6, 1e-3)  # share by which a diagonal is raised until it can be factorised
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
    if not blocks:
        return Small(member, room, slice(0, 0))
    largest = max(blocks, key=lambda block: block.stop - block.start)
    rest = m - (largest.stop - largest.start)
    if m <= SMALL + FREE and rest <= SMALL:
        return Small(member, room, largest)
    crossings = (member[:, largest].T @ _without(member, largest)).tocsr()
    work = float(np.sum(np.diff(crossings.indptr).astype(float) ** 2))
    if work <= WORK:
        left = crossings.T @ crossings
        if left.nnz <= max(THIN * rest * rest, 16 * m):
            return Sparse(member, room)
    return Schur(member, room, largest) if rest <= SCHUR else Iterated(member, room)


def _without(member: Any, block: slice) -> Any:
    keep = np.r_[0 : block.start, block.stop : member.shape[1]]
    return member[:, keep].tocsr()


def _curved(room: Floats, d: Floats) -> Floats:
    """R, with a speck of curvature for exact counts."""
    return room if room.all() else np.where(room == 0.0, SPECK * max(1.0, float(d.sum())), room)


@dataclass(frozen=True, eq=False)
class Small:
    """Compiled as a whole: a feature is eliminated for free, and of the others so few are left that calls would cost more."""

    member: Any
    room: Floats
    largest: slice

    def solve(self, d: Floats, gradient: Floats) -> Floats:
        diagonal = _curved(self.room, d)
        z = np.empty(len(gradient))
        first, end = self.largest.start, self.largest.stop
        if _eliminate(self.member.indptr, self.member.indices, d, diagonal, gradient, first, end, z):
            return z
        # rounding made it singular: what conjugate gradients reach is a descent direction all the same
        return Iterated(self.member, self.room).solve(d, gradient)


class Sparse:
    """LDLᵀ with an ordering found once. `room` is the diagonal of R, or R itself if that is none."""

    def __init__(self, member: Any, room: Any) -> None:
        form = sp.coo_array(sp.triu(room if sp.issparse(room) else sp.diags_array(room)))
        pattern = sp.triu(
            abs(member).T @ abs(member) + abs(form) + sp.eye_array(member.shape[1]), format="csc"
        )
        self.pattern = pattern
        self.factor: Any = None
        self.cell, self.slot, self.share = _slots(member, pattern)
        every = np.arange(member.shape[1])
        self.diagonal = _place(pattern, every, every)
        self.room = np.zeros(pattern.nnz)
        self.room[_place(pattern, form.row, form.col)] = form.data

    def solve(self, d: Floats, gradient: Floats) -> Floats:
        import qdldl

        data = np.bincount(self.slot, weights=self.share * d[self.cell], minlength=self.pattern.nnz)
        data += self.room
        data[self.diagonal] += _curved(self.room[self.diagonal], d) - self.room[self.diagonal]
        hessian = sp.csc_matrix((data, self.pattern.indices, self.pattern.indptr), shape=self.pattern.shape)
        for lift in LIFTS:
            data[self.diagonal] *= 1.0 + lift
            try:
                if self.factor is None:
                    self.factor = qdldl.Solver(hessian, upper=True)
                else:
                    self.factor.update(hessian, upper=True)
                return np.asarray(self.factor.solve(gradient))
            except (
                RuntimeError
            ):  # rounding made it indefinite: somewhat more curvature slows a step, not more
                self.factor = None
        raise SolverError(
            "the Newton system is too ill-conditioned to be factorised: give 'singleton' more weight"
        )


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
        room = _curved(self.room, d)
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
        fixed = _curved(self.room, d)
        diagonal = fixed + self.member.T @ d
        m = len(gradient)
        hessian = spl.LinearOperator(
            (m, m), lambda z: fixed * z + self.member.T @ (d * (self.member @ z)), dtype=float
        )
        jacobi = spl.LinearOperator((m, m), lambda z: z / np.where(diagonal > 0, diagonal, 1.0), dtype=float)
        return np.asarray(spl.cg(hessian, gradient, rtol=1e-5, maxiter=2000, M=jacobi)[0])


def _slots(member: Any, pattern: Any) -> tuple[NDArray[Any], NDArray[Any], Floats]:
    """For every cell and every pair of its unknowns, the cell, the entry of the pattern that it adds to, and the factor."""
    member.sort_indices()
    width = np.diff(member.indptr)
    cells, slots, shares = [], [], []
    for most in np.unique(width):
        rows = np.flatnonzero(width == most)
        entries = member.indptr[rows][:, None] + np.arange(most)
        columns, values = member.indices[entries], member.data[entries]
        for a in range(most):
            for b in range(a, most):
                cells.append(rows)
                slots.append(_place(pattern, columns[:, a], columns[:, b]))
                shares.append(values[:, a] * values[:, b])
    return np.concatenate(cells), np.concatenate(slots), np.concatenate(shares)


def _place(pattern: Any, row: NDArray[Any], column: NDArray[Any]) -> NDArray[Any]:
    """Where entries (row ≤ column) stand among the entries of an upper-triangular csc pattern."""
    pattern.sort_indices()
    m = np.int64(pattern.shape[0])
    keys = np.repeat(np.arange(m, dtype=np.int64), np.diff(pattern.indptr)) * m + pattern.indices
    return np.asarray(np.searchsorted(keys, column.astype(np.int64) * m + row))


@njit(cache=True)
def _eliminate(indptr, indices, d, diagonal, gradient, first, end, z):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Solve into z by a Cholesky factor of the Schur complement of the unknowns first…end; False if it is singular."""
    free = end - first
    m = len(gradient) - free
    pivot = diagonal[first:end].copy()
    cross = np.zeros((free, m))
    left = np.zeros((m, m))
    for k in range(len(d)):
        if d[k] != 0.0:
            own = -1
            for a in range(indptr[k], indptr[k + 1]):
                if first <= indices[a] < end:
                    own = indices[a] - first
                    pivot[own] += d[k]
            for a in range(indptr[k], indptr[k + 1]):
                i = indices[a] if indices[a] < first else indices[a] - free
                if first <= indices[a] < end:
                    continue
                if own >= 0:
                    cross[own, i] += d[k]
                for b in range(indptr[k], indptr[k + 1]):
                    j = indices[b] if indices[b] < first else indices[b] - free
                    if not first <= indices[b] < end and j <= i:
                        left[i, j] += d[k]
    g = np.concatenate((gradient[:first], gradient[end:]))
    for i in range(m):
        left[i, i] += diagonal[i if i < first else i + free]
    for p in range(free):
        for i in range(m):
            if cross[p, i] != 0.0:
                ratio = cross[p, i] / pivot[p]
                g[i] -= ratio * gradient[first + p]
                for j in range(i + 1):
                    left[i, j] -= ratio * cross[p, j]
    if not _cholesky(left):
        return False
    for i in range(m):
        for j in range(i):
            g[i] -= left[i, j] * g[j]
        g[i] /= left[i, i]
    for i in range(m - 1, -1, -1):
        g[i] /= left[i, i]
        for j in range(i):
            g[j] -= left[i, j] * g[i]
    z[:first], z[end:] = g[:first], g[first:]
    for p in range(free):
        rest = gradient[first + p]
        for i in range(m):
            rest -= cross[p, i] * g[i]
        z[first + p] = rest / pivot[p]
    return True


@njit(cache=True, fastmath={"reassoc", "contract"})
def _cholesky(a):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """The lower factor of a in its place, by rows; False if a is not positive definite."""
    for i in range(len(a)):
        for j in range(i):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            a[i, j] = total / a[j, j]
        total = a[i, i]
        for k in range(i):
            total -= a[i, k] ** 2
        if not total > 0.0:
            return False
        a[i, i] = np.sqrt(total)
    return True
