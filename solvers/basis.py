"""Other unknowns for features that say the same thing: shifts without cancellation, however small the leaves' weight.

Trips per period add up to the total, so raising the total's price and lowering every period's by as much changes no shift:
B N = 0 for such combinations N. When leaves weigh next to nothing (1/|U|, say) prices grow like |U| along N, to settle
what the features themselves disagree about, and shifts, being their small differences, drown in rounding. With the
unknowns θ = (β, α), λ = E β + N α, the shifts are B E β: the large numbers α never meet the small ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from cbdp.arrays import Floats
from cbdp.solvers.problem import Problem, Term

SMALL = 1e-4  # weight of a leaf relative to an element's below which that element's price may be large

Relation = tuple[
    int, NDArray[Any], NDArray[Any]
]  # the unknown that is given up, others of its sign, those against it


@dataclass(frozen=True, eq=False)
class Basis:
    """M with λ = M θ, and B M."""

    change: Any  # M, csc
    member: Any  # B M, csr: no entries for the unknowns α in the cells that matter
    relations: int  # how many unknowns α there are

    def form(self, room: Floats) -> Any:
        """Mᵀ R M."""
        return (self.change.T @ sp.diags_array(room) @ self.change).tocsc()

    def unknowns(self, prices: Floats) -> Floats:
        """θ for these λ."""
        return np.asarray(sp.linalg.splu(self.change).solve(prices))


def basis(
    problem: Problem,
    places: Mapping[str, NDArray[Any]],
    member: Any,
    room: Floats,
    active: NDArray[np.bool_] | None = None,
) -> Basis | None:
    """Unknowns of which as many as possible do not move the shifts; None if there are no such.

    Where only some cells are `active` (have leaves above their shift) only their shifts must be precise, and more
    combinations leave them alone.
    """
    cells = np.arange(problem.cells) if active is None else np.flatnonzero(active)
    relations = [r for r in _relations(problem, places, cells) if _worthwhile(room[np.r_[r[0], r[1], r[2]]])]
    if not relations:
        return None
    size = len(room)
    column = np.concatenate([np.full(len(r[1]) + len(r[2]), r[0]) for r in relations])
    row = np.concatenate([np.concatenate(r[1:]) for r in relations])
    sign = np.concatenate([np.r_[np.ones(len(r[1])), -np.ones(len(r[2]))] for r in relations])
    change = sp.csc_array((sign, (row, column)), shape=(size, size)) + sp.eye_array(size, format="csc")
    moved = (member @ change).tocsr()
    moved.eliminate_zeros()
    moved.sort_indices()
    return Basis(change.tocsc(), moved, len(relations))


def _worthwhile(room: Floats) -> bool:
    """Whether all prices of a combination can be large; if not, the unknowns α would be no larger than the shifts."""
    return bool(room.max() < SMALL)


def _relations(problem: Problem, places: Mapping[str, NDArray[Any]], cells: NDArray[Any]) -> list[Relation]:
    """Combinations of prices that cancel in these cells: elements of each feature against those of a larger one."""
    found: list[Relation] = []
    by_size = sorted(problem.terms, key=lambda t: -len(t.target))
    for position, term in enumerate(by_size):
        told = np.zeros(max((int(p.max(initial=-1)) for p in places.values()), default=-1) + 1, dtype=bool)
        for other in _partners(term, by_size[:position], cells):
            for relation in _between(term, other, places, cells):
                own = np.r_[relation[0], relation[1]]
                if not told[own].any():  # one relation for an element: a second one would say nothing new
                    told[own] = True
                    found.append(relation)
    return found


def _partners(term: Term, larger: Sequence[Term], cells: NDArray[Any]) -> list[Term]:
    """Features to compare this one with: those that refine it, the smallest first, then the others, the largest first."""
    finer = [_refines(t, term, cells) for t in larger]
    refining = [t for t, is_finer in zip(larger, finer, strict=True) if is_finer]
    return [*reversed(refining), *(t for t, is_finer in zip(larger, finer, strict=True) if not is_finer)]


def _refines(fine: Term, coarse: Term, cells: NDArray[Any]) -> bool:
    first = np.zeros(len(fine.target), dtype=np.int64)
    inside, holds = fine.element_of_cell[cells], coarse.element_of_cell[cells]
    first[inside] = holds
    return bool((first[inside] == holds).all())


def _between(
    term: Term, other: Term, places: Mapping[str, NDArray[Any]], cells: NDArray[Any]
) -> list[Relation]:
    """One relation for every set of cells that is a union of elements of both features, and no smaller one is."""
    n, m = len(term.target), len(other.target)
    ends = term.element_of_cell[cells], n + other.element_of_cell[cells]
    ties = sp.coo_array((np.ones(len(cells)), ends), shape=(n + m, n + m))
    count, of = connected_components(ties, directed=False)
    order = np.argsort(of, kind="stable")
    place = np.concatenate([places[term.name], places[other.name]])[order]
    cuts = np.cumsum(np.bincount(of, minlength=count))[:-1]
    found: list[Relation] = []
    for group, mine in zip(np.split(place, cuts), np.split(order < n, cuts), strict=True):
        if (group >= 0).all() and mine.any() and not mine.all():  # all of it is measured, by both
            found.append((int(group[mine][0]), group[mine][1:], group[~mine]))
    return found
