"""The Newton system (R + BᵀDB) z = g, factorised again and again with other D but one pattern.

Block elimination (Boyd and Vandenberghe 2004, appendix C.4): a feature's elements are disjoint, so its block of the matrix is diagonal. The largest
feature is eliminated for free, and the size and density of what is left, its Schur complement, decide between four methods. The last part
is a change of the dual's basis for programs in which leaves weigh next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from numba import njit
from scipy.linalg import lapack
from scipy.sparse.csgraph import connected_components

from cbdp.arrays import Bools, Floats, Indices, Ints
from cbdp.compiling import compiled_ahead, kernel
from cbdp.errors import SolverError
from cbdp_solvers.problem import Problem, Term, bincount

if TYPE_CHECKING:
    import qdldl

# unknowns beside the largest feature's: up to here calls of libraries cost more than sums
MAX_COMPILED_UNKNOWNS = 100
MAX_COMPILED_ELIMINATED_UNKNOWNS = 300  # unknowns of the largest feature in that case
MAX_DENSE_SCHUR_UNKNOWNS = 4000  # unknowns beside the largest feature's: a dense Schur complement of 128 MB
# share of non-zero entries up to which a sparse factor is faster than a dense one
MAX_SPARSE_SCHUR_DENSITY = 0.1
MAX_PATTERN_PRODUCTS = 50_000_000  # products of entries spent on examining the pattern
DIAGONAL_SHIFTS = (0.0, 1e-12, 1e-9, 1e-6, 1e-3)  # relative, tried in turn until the matrix can be factorised
# relative to the sum of D: exact counts have none, and a speck only slows a step
EXACT_COUNT_CURVATURE = 1e-12


class LinearSolver(Protocol):
    def solve(self, d: Floats, gradient: Floats) -> Floats:
        """Solve for this D and g."""
        ...


def linear_solver(member: sp.csr_array, inverse_weight: Floats, blocks: Sequence[slice]) -> LinearSolver:
    """The fastest way for this pattern of B (cells × unknowns), this R, and features at these places.

    A feature's elements are disjoint, so its block of the matrix is diagonal: the largest feature is eliminated for
    free, and what is left (the Schur complement of the others) decides.
    """
    m = member.shape[1]
    if not blocks:
        return CompiledSchur(member, inverse_weight, slice(0, 0))
    largest = max(blocks, key=lambda block: block.stop - block.start)
    rest = m - (largest.stop - largest.start)
    if m <= MAX_COMPILED_UNKNOWNS + MAX_COMPILED_ELIMINATED_UNKNOWNS and rest <= MAX_COMPILED_UNKNOWNS:
        return CompiledSchur(member, inverse_weight, largest)
    crossings = (member[:, largest].T @ _other_columns(member, largest)).tocsr()
    work = float(np.sum(np.diff(crossings.indptr).astype(float) ** 2))
    if work <= MAX_PATTERN_PRODUCTS:
        left = crossings.T @ crossings
        if left.nnz <= max(MAX_SPARSE_SCHUR_DENSITY * rest * rest, 16 * m):
            return SparseLDL(member, inverse_weight)
    return (
        DenseSchur(member, inverse_weight, largest)
        if rest <= MAX_DENSE_SCHUR_UNKNOWNS
        else ConjugateGradients(member, inverse_weight)
    )


def _other_columns(member: sp.csr_array, block: slice) -> sp.csr_array:
    keep = np.r_[0 : block.start, block.stop : member.shape[1]]
    return member[:, keep].tocsr()


def _regularized_diagonal(inverse_weight: Floats, d: Floats) -> Floats:
    """R, with a speck of curvature for exact counts."""
    return (
        inverse_weight
        if inverse_weight.all()
        else np.where(inverse_weight == 0.0, EXACT_COUNT_CURVATURE * max(1.0, float(d.sum())), inverse_weight)
    )


@dataclass(frozen=True, eq=False)
class CompiledSchur:
    """Compiled as a whole: the largest feature eliminated, and of the others so few that calls would cost more."""

    member: sp.csr_array
    inverse_weight: Floats
    largest: slice

    def solve(self, d: Floats, gradient: Floats) -> Floats:
        diagonal = _regularized_diagonal(self.inverse_weight, d)
        first, end = self.largest.start, self.largest.stop
        pivot, z_first = diagonal[first:end].copy(), gradient[first:end].copy()
        z_others = np.concatenate((gradient[:first], gradient[end:]))
        others = np.concatenate((diagonal[:first], diagonal[end:]))
        cross, left = np.zeros((len(pivot), len(others))), np.zeros((len(others), len(others)))
        pattern = self.member.indptr, self.member.indices
        if _solve_by_elimination(*pattern, d, first, pivot, others, cross, left, z_first, z_others):
            return np.concatenate((z_others[:first], z_first, z_others[first:]))
        # rounding made it singular: what conjugate gradients reach is a descent direction all the same
        return ConjugateGradients(self.member, self.inverse_weight).solve(d, gradient)


class SparseLDL:
    """Sparse LDLᵀ by QDLDL, with one ordering for all D. `inverse_weight` is the diagonal of R, or R itself where it is not diagonal."""

    def __init__(self, member: sp.csr_array, inverse_weight: Floats | sp.csc_array) -> None:
        form = sp.coo_array(
            sp.triu(inverse_weight if sp.issparse(inverse_weight) else sp.diags_array(inverse_weight))
        )
        pattern = sp.triu(
            abs(member).T @ abs(member) + abs(form) + sp.eye_array(member.shape[1]), format="csc"
        )
        self.pattern = pattern
        self.factor: qdldl.Solver | None = None
        self.cell, self.slot, self.share = _hessian_entries(member, pattern)
        every = np.arange(member.shape[1])
        self.diagonal = _entry_positions(pattern, every, every)
        self.inverse_weight = np.zeros(pattern.nnz)
        self.inverse_weight[_entry_positions(pattern, form.row, form.col)] = form.data

    def solve(self, d: Floats, gradient: Floats) -> Floats:
        import qdldl

        data = bincount(self.slot, self.share * d[self.cell], self.pattern.nnz)
        data += self.inverse_weight
        data[self.diagonal] += (
            _regularized_diagonal(self.inverse_weight[self.diagonal], d) - self.inverse_weight[self.diagonal]
        )
        hessian = sp.csc_matrix((data, self.pattern.indices, self.pattern.indptr), shape=self.pattern.shape)
        for lift in DIAGONAL_SHIFTS:
            data[self.diagonal] *= 1.0 + lift
            try:
                if self.factor is None:
                    self.factor = qdldl.Solver(hessian, upper=True)
                else:
                    self.factor.update(hessian, upper=True)
                return np.asarray(self.factor.solve(gradient))
            except RuntimeError:
                self.factor = None  # a pivot is zero: a larger diagonal only slows the step
        raise SolverError(
            "the Newton system is too ill-conditioned to be factorised: give 'singleton' more weight"
        )


class DenseSchur:
    """The largest feature eliminated, the others by a dense Cholesky factor: for features that cross each other a lot."""

    def __init__(self, member: sp.csr_array, inverse_weight: Floats, largest: slice) -> None:
        self.inverse_weight = inverse_weight
        self.member = member
        self.first = np.r_[largest.start : largest.stop]
        self.others = np.r_[0 : largest.start, largest.stop : len(inverse_weight)]
        self.member_first = member[:, largest].tocsr()
        self.member_others = _other_columns(member, largest)

    def solve(self, d: Floats, gradient: Floats) -> Floats:
        inverse_weight = _regularized_diagonal(self.inverse_weight, d)
        weighted = sp.diags_array(d) @ self.member_others
        diagonal = inverse_weight[self.first] + self.member_first.T @ d
        if not len(self.others):
            return np.asarray(gradient / diagonal)
        cross = (self.member_first.T @ weighted).tocsr()
        inner = self.member_others.T @ weighted - cross.T @ sp.diags_array(1.0 / diagonal) @ cross
        left = np.asfortranarray(inner.toarray())
        left[np.diag_indices_from(left)] += inverse_weight[self.others]
        g = gradient[self.others] - cross.T @ (gradient[self.first] / diagonal)
        factor, trouble = lapack.dpotrf(left, lower=1, overwrite_a=1)
        if trouble:
            return ConjugateGradients(self.member, self.inverse_weight).solve(d, gradient)
        z = np.empty(len(gradient))
        z[self.others] = lapack.dpotrs(factor, g, lower=1)[0]
        z[self.first] = (gradient[self.first] - cross @ z[self.others]) / diagonal
        return z


@dataclass(frozen=True, eq=False)
class ConjugateGradients:
    """Conjugate gradients with a Jacobi preconditioner (`scipy.sparse.linalg.cg`), for what no factor fits: an inexact Newton step (Dembo and others 1982).

    The tolerance is the same for every step, so convergence is linear, by about that factor; where the iterations run out, what they reached
    is a direction of descent all the same.
    """

    member: sp.csr_array
    inverse_weight: Floats

    def solve(self, d: Floats, gradient: Floats) -> Floats:
        fixed = _regularized_diagonal(self.inverse_weight, d)
        diagonal = fixed + self.member.T @ d
        m = len(gradient)
        hessian = spl.LinearOperator(
            (m, m), lambda z: fixed * z + self.member.T @ (d * (self.member @ z)), dtype=float
        )
        jacobi = spl.LinearOperator((m, m), lambda z: z / np.where(diagonal > 0, diagonal, 1.0), dtype=float)
        return np.asarray(spl.cg(hessian, gradient, rtol=1e-5, maxiter=2000, M=jacobi)[0])


def _hessian_entries(member: sp.csr_array, pattern: sp.csc_array) -> tuple[Ints, Ints, Floats]:
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
                slots.append(_entry_positions(pattern, columns[:, a], columns[:, b]))
                shares.append(values[:, a] * values[:, b])
    return np.concatenate(cells), np.concatenate(slots), np.concatenate(shares)


def _entry_positions(pattern: sp.csc_array, row: Indices, column: Indices) -> Ints:
    """Positions of entries (row ≤ column) among the entries of an upper-triangular csc pattern."""
    pattern.sort_indices()
    m = np.int64(pattern.shape[0])
    keys = np.repeat(np.arange(m, dtype=np.int64), np.diff(pattern.indptr)) * m + pattern.indices
    return np.asarray(np.searchsorted(keys, column.astype(np.int64) * m + row))


@compiled_ahead("i4[::1], i4[::1], f8[::1], i8, f8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1]")
@kernel
def _solve_by_elimination(indptr, indices, d, first, pivot, diagonal, cross, left, z_first, g):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """The eliminated unknowns and the others in place of their gradients, by a Cholesky factor of the Schur complement; False if it is singular.

    `pivot` and `diagonal` hold R for both; `cross` and `left`, filled in here, are the blocks of the system between both and of the others.
    """
    free, m = cross.shape
    end = first + free
    for k in range(len(d)):
        if d[k] != 0.0:
            eliminated = -1
            for a in range(indptr[k], indptr[k + 1]):
                if first <= indices[a] < end:
                    eliminated = indices[a] - first
                    pivot[eliminated] += d[k]
            for a in range(indptr[k], indptr[k + 1]):
                i = indices[a] if indices[a] < first else indices[a] - free
                if first <= indices[a] < end:
                    continue
                if eliminated >= 0:
                    cross[eliminated, i] += d[k]
                for b in range(indptr[k], indptr[k + 1]):
                    j = indices[b] if indices[b] < first else indices[b] - free
                    if not first <= indices[b] < end and j <= i:
                        left[i, j] += d[k]
    for i in range(m):
        left[i, i] += diagonal[i]
    for p in range(free):
        for i in range(m):
            if cross[p, i] != 0.0:
                ratio = cross[p, i] / pivot[p]
                g[i] -= ratio * z_first[p]
                for j in range(i + 1):
                    left[i, j] -= ratio * cross[p, j]
    if not _cholesky_in_place(left):
        return False
    for i in range(m):
        for j in range(i):
            g[i] -= left[i, j] * g[j]
        g[i] /= left[i, i]
    for i in range(m - 1, -1, -1):
        g[i] /= left[i, i]
        for j in range(i):
            g[j] -= left[i, j] * g[i]
    for p in range(free):
        for i in range(m):
            z_first[p] -= cross[p, i] * g[i]
        z_first[p] /= pivot[p]
    return True


@njit(cache=True, fastmath={"reassoc", "contract"})
def _cholesky_in_place(a):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
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


# A basis of the dual in which shifts have no cancellation, however small the leaves' weight.
#
# Trips per period add up to the total, so raising the total's price and lowering every period's by as much changes no shift:
# B N = 0 for such combinations N. When leaves weigh next to nothing (1/|U|, say) prices grow like |U| along N, to reconcile
# the features among themselves, and shifts, being their small differences, drown in rounding. With the
# unknowns θ = (β, α), λ = E β + N α, the shifts are B E β: the large numbers α never meet the small ones.


# weight of a leaf relative to an element's, below which that element's price may be large
MIN_WEIGHT_RATIO = 1e-4


class DualRelation(NamedTuple):
    """Unknowns λ whose combination moves no shift: one unit more of some, one unit less of others."""

    pivot: int  # the one whose column of the basis becomes this combination
    same_sign: Indices  # the others of its sign
    opposite_sign: Indices

    @property
    def unknowns(self) -> Indices:
        return np.asarray(np.r_[self.pivot, self.same_sign, self.opposite_sign])


@dataclass(frozen=True, eq=False)
class DualBasis:
    """M with λ = M θ, and B M."""

    change: sp.csc_array  # M
    member: sp.csr_array  # B M: no entries for the unknowns α in the cells that matter
    relations: int  # how many unknowns α there are

    def form(self, inverse_weight: Floats) -> sp.csc_array:
        """Mᵀ R M."""
        return (self.change.T @ sp.diags_array(inverse_weight) @ self.change).tocsc()

    def unknowns(self, prices: Floats) -> Floats:
        """θ for these λ."""
        return np.asarray(sp.linalg.splu(self.change).solve(prices))


def dual_basis(
    problem: Problem,
    places: Mapping[str, Indices],
    member: sp.csr_array,
    inverse_weight: Floats,
    active: Bools | None = None,
) -> DualBasis | None:
    """A basis of which as many unknowns as possible do not move the shifts; None if there are no such.

    Where only some cells are `active` (have leaves above their shift) only their shifts must be precise, and more
    combinations leave them alone.
    """
    cells = np.arange(problem.cells) if active is None else np.flatnonzero(active)
    relations = [
        r
        for r in _dual_relations(problem, places, cells)
        # if not all prices of a combination can be large, the unknown α would be no larger than the shifts
        if inverse_weight[r.unknowns].max() < MIN_WEIGHT_RATIO
    ]
    if not relations:
        return None
    size = len(inverse_weight)
    column = np.concatenate([np.full(len(r.unknowns) - 1, r.pivot) for r in relations])
    row = np.concatenate([r.unknowns[1:] for r in relations])
    sign = np.concatenate(
        [np.r_[np.ones(len(r.same_sign)), -np.ones(len(r.opposite_sign))] for r in relations]
    )
    change = sp.csc_array((sign, (row, column)), shape=(size, size)) + sp.eye_array(size, format="csc")
    moved = (member @ change).tocsr()
    moved.eliminate_zeros()
    moved.sort_indices()
    return DualBasis(change.tocsc(), moved, len(relations))


def _dual_relations(problem: Problem, places: Mapping[str, Indices], cells: Indices) -> list[DualRelation]:
    """Combinations of prices that cancel in these cells: elements of each feature against those of a larger one."""
    relations: list[DualRelation] = []
    by_size = sorted(problem.terms, key=lambda t: -len(t.target))
    for position, term in enumerate(by_size):
        covered = np.zeros(max((int(p.max(initial=-1)) for p in places.values()), default=-1) + 1, dtype=bool)
        for other in _related_features(term, by_size[:position], cells):
            for relation in _relations_between(term, other, places, cells):
                members = np.r_[relation.pivot, relation.same_sign]
                if not covered[members].any():  # a second relation of an element would be redundant
                    covered[members] = True
                    relations.append(relation)
    return relations


def _related_features(term: Term, larger: Sequence[Term], cells: Indices) -> list[Term]:
    """Features to compare this one with: those that refine it, the smallest first, then the others, the largest first."""
    finer = [_refines(t, term, cells) for t in larger]
    refining = [t for t, is_finer in zip(larger, finer, strict=True) if is_finer]
    return [*reversed(refining), *(t for t, is_finer in zip(larger, finer, strict=True) if not is_finer)]


def _refines(fine: Term, coarse: Term, cells: Indices) -> bool:
    first = np.zeros(len(fine.target), dtype=np.int64)
    inside, holds = fine.element_of_cell[cells], coarse.element_of_cell[cells]
    first[inside] = holds
    return bool((first[inside] == holds).all())


def _relations_between(
    term: Term, other: Term, places: Mapping[str, Indices], cells: Indices
) -> list[DualRelation]:
    """One relation for every set of cells that is a union of elements of both features, and no smaller one is."""
    n, m = len(term.target), len(other.target)
    ends = term.element_of_cell[cells], n + other.element_of_cell[cells]
    ties = sp.coo_array((np.ones(len(cells)), ends), shape=(n + m, n + m))
    count, of = connected_components(ties, directed=False)
    order = np.argsort(of, kind="stable")
    place = np.concatenate([places[term.name], places[other.name]])[order]
    cuts = np.cumsum(np.bincount(of, minlength=count))[:-1]
    relations: list[DualRelation] = []
    for group, of_term in zip(np.split(place, cuts), np.split(order < n, cuts), strict=True):
        if (group >= 0).all() and of_term.any() and not of_term.all():  # all of it is measured, by both
            relations.append(DualRelation(int(group[of_term][0]), group[of_term][1:], group[~of_term]))
    return relations
