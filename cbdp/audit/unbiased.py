"""Which hidden counts the shown ones determine, and the unbiased estimate of each with the least variance.

The head of `cbdp.audit.differencing` says why: a group of hidden cells with the unit vector e has the estimate −λᵀ C_o y_o for
any λ with C_hᵀ λ = e.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import splu

from cbdp.arrays import Floats, Ints
from cbdp.audit.relations import System

BATCH = 128  # groups that are estimated at once
NUDGE = 1e-9  # makes factorisations definite; iterating removes its effect
PENALTY = 1e-4
STEPS = 40
DENSE = 4000  # rows up to which a nearly full matrix is factored densely
CERTIFIED = 1e-7


def estimates(system: System, matrix: Any, cells: Ints) -> Iterator[tuple[Ints, Ints, Floats]]:
    """For each group of hidden cells that can be estimated: its cells, the shown cells that enter, and their weights."""
    shown = system.shown[cells]
    seen, hidden = cells[shown], cells[~shown]
    known, unknown = matrix[:, shown].tocsr(), matrix[:, ~shown].tocsc()
    groups = _same_columns(unknown)
    columns = unknown[:, np.array([g[0] for g in groups])].tocsc()
    found = identifiable(columns)
    if found.any():
        each = np.array([noise.variance() for noise in system.noises])
        solver = _Solver(known, columns, each[system.noise[seen]])
        ready = np.flatnonzero(found)
        for start in range(0, len(ready), BATCH):
            batch = ready[start : start + BATCH]
            weights, certified = solver.weights(batch)
            for g, column, sound in zip(batch, weights, certified, strict=True):
                if sound:
                    used = np.flatnonzero(column)
                    yield hidden[groups[g]], seen[used], column[used]
    for own, row in _leftovers(unknown.tocsr(), columns.tocsr(), found):
        part = slice(known.indptr[row], known.indptr[row + 1])
        sign = np.sign(unknown.tocsr()[row].data[0])
        yield hidden[own], seen[known.indices[part]], -sign * known.data[part]


def _leftovers(unknown: Any, columns: Any, found: NDArray[np.bool_]) -> Iterator[tuple[Ints, int]]:
    """Totals that are shown and have several hidden parts: these are not found one by one, but their sum is."""
    seen: set[bytes] = set()
    for row in range(unknown.shape[0]):
        part = slice(unknown.indptr[row], unknown.indptr[row + 1])
        own, sign = np.sort(unknown.indices[part]), unknown.data[part]
        inside = columns.indices[columns.indptr[row] : columns.indptr[row + 1]]
        if len(inside) < 2 or found[inside].all() or np.ptp(sign) or own.tobytes() in seen:
            continue
        seen.add(own.tobytes())
        yield own, row


def _same_columns(matrix: Any) -> list[Ints]:
    """The columns of a sparse matrix, those that are equal together."""
    matrix = matrix.tocsc()
    matrix.sum_duplicates()
    found: dict[bytes, list[int]] = {}
    for j in range(matrix.shape[1]):
        part = slice(matrix.indptr[j], matrix.indptr[j + 1])
        found.setdefault(matrix.indices[part].tobytes() + matrix.data[part].tobytes(), []).append(j)
    return [np.array(group, dtype=np.int64) for group in found.values()]


def identifiable(columns: Any, trials: int = 3) -> NDArray[np.bool_]:
    """Which unknowns a system determines: where random vectors have nothing in its null space.

    >>> identifiable(sparse.csc_matrix([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])).tolist()
    [False, False, True]
    """
    rows = columns.tocsr()
    used = rows[np.flatnonzero(np.diff(rows.indptr))]
    if not used.shape[0]:
        return np.zeros(columns.shape[1], dtype=bool)
    left = np.random.default_rng(0).standard_normal(
        (columns.shape[1], trials)
    )  # the answer does not depend on it
    solve = _factored(used @ used.T)
    for _ in range(8):  # each pass removes what the nudge has left of the row space
        left = left - used.T @ solve(used @ left)
    return np.asarray(np.abs(left).max(axis=1) < 1e-7)


def _factored(matrix: Any) -> Callable[[Floats], Floats]:
    """Solves a symmetric positive semidefinite system, nudged to be definite: densely where it is nearly full."""
    size = matrix.shape[0]
    nudged = (matrix + NUDGE * max(1.0, float(matrix.diagonal().max())) * sparse.identity(size)).tocsc()
    if size <= DENSE and nudged.nnz > 0.05 * size * size:
        factor = cho_factor(nudged.toarray())
        return lambda right: np.asarray(cho_solve(factor, right))
    solve: Callable[[Floats], Floats] = splu(nudged).solve
    return solve


class _Solver:
    """The weights of least variance for any group, from one factorisation: a method of multipliers.

    The λ of least λᵀMλ with C_hᵀλ = e, where M = C_o V C_oᵀ, is the limit of minimising λᵀMλ + ‖C_hᵀλ − e‖²/PENALTY with
    the multipliers (as their image under C_h) adjusted in between.
    """

    def __init__(self, known: Any, columns: Any, spread: Floats) -> None:
        self.known, self.columns = known, columns
        unit = float(spread.max()) if len(spread) and spread.max() > 0 else 1.0
        self.gram = (columns @ columns.T).tocsr()
        middle = known @ sparse.diags(spread / unit) @ known.T
        self.solve = _factored(PENALTY * middle + self.gram)

    def weights(self, groups: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """The weights of the shown counts in each group's estimate, and whether the estimate is certified unbiased."""
        own = self.columns[:, groups].toarray()
        multiplier = np.zeros_like(own)
        for _ in range(STEPS):
            lam = self.solve(own - multiplier)
            error = self.gram @ lam - own
            multiplier += error
            if np.abs(error).max() < 1e-12:
                break
        weights = -(self.known.T @ lam).T
        near = np.round(weights * 12) / 12  # sums and differences have simple weights: say them exactly
        weights = np.where(np.abs(weights - near) < 1e-8, near, weights)
        off = self.columns.T @ lam
        off[groups, np.arange(len(groups))] -= 1.0
        return weights, np.abs(off).max(axis=0) < CERTIFIED
