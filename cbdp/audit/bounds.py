"""What exact or rounded counts leave open of a hidden one: its least and its largest value, by linear programming.

Counts without noise bound each other. A hidden count is at least 0 and at most the largest that is hidden, a shown one is off by no more
than its rounding, and totals are sums of their parts. Of all counts that fit, each hidden cell's least and largest are found: first
those that the relations determine, all at once; then relation by relation, over and over; then, for as many cells as time allows, by two
linear programs. What is left of an interval holds the truth for certain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse.linalg import lsqr

from cbdp.arrays import Floats, Ints
from cbdp.audit.relations import System, assemble, components
from cbdp.audit.tables import PublishedTables
from cbdp.audit.unbiased import identifiable

MOST = 150  # hidden cells for which programs are solved
WORK = 50_000_000  # cells times unknowns times relations of all programs together
ROUGH = 1e-3  # how far from a whole number a determined count may come out
PASSES = 60  # over all relations
NEAR = 1e-6


@dataclass(frozen=True)
class Left:
    """What is left open of one hidden cell, by its place in the system; `solved`: by programs, so that no bound is closer."""

    cell: int
    low: float
    high: float
    shown: int  # published counts that its relations reach
    solved: bool


def left_open(published: PublishedTables, most: int = MOST) -> tuple[System, list[Left]]:
    """What tables without noise leave open of each hidden cell that is in a relation."""
    system = assemble(published, bounded=True)
    if not system.relations.shape[0] or system.shown.all():
        return system, []
    found: list[Left] = []
    parts = list(components(system))
    hidden = max(1, sum(int((~system.shown[cells]).sum()) for _, cells in parts))
    for matrix, cells in parts:
        many = int((~system.shown[cells]).sum())
        found += _of_part(system, matrix, cells, math.ceil(most * many / hidden))
    return system, found


def _of_part(system: System, matrix: Any, cells: Ints, most: int) -> list[Left]:
    rows = matrix.tocsr()
    for known in (True, False):  # where no counts fit, larger ones than the threshold says were hidden
        low, high = _first(system, cells, known=known)
        if not any(t.rounding for t in system.tables):
            low, high = _determined(rows, low, high)
        low, high = _tightened(rows, low, high)
        if (low <= high + NEAR).all():
            break
    else:
        return []
    hidden = np.flatnonzero(~system.shown[cells])
    unsure = hidden[high[hidden] - low[hidden] > NEAR]
    affordable = WORK // max(1, len(unsure) * rows.shape[0])  # some seconds in all
    chosen = np.random.default_rng(0).permutation(unsure)[: min(most, affordable)]
    program = _Program(rows, low, high)
    ends = [program.ends(at) for at in chosen.tolist()]
    for at, (least, largest) in zip(chosen.tolist(), ends, strict=True):
        low[at], high[at] = least, largest
    if bool((system.value == np.round(system.value)).all()):
        low, high = np.ceil(low - NEAR) + 0.0, np.floor(high + NEAR)  # and no zero with a minus
    sure = set(chosen.tolist()) | set(hidden.tolist()) - set(unsure.tolist())
    shown = int(system.shown[cells].sum())
    return [
        Left(int(cells[at]), float(low[at]), float(high[at]), shown, at in sure) for at in hidden.tolist()
    ]


def _determined(rows: Any, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Unknowns that exact counts determine outright have that value: found for all at once."""
    open_to = np.flatnonzero(high - low > NEAR)
    unknown = rows[:, open_to].tocsc()
    found = identifiable(unknown)
    if not found.any():
        return low, high
    fixed = np.where(high - low > NEAR, 0.0, low)
    value = lsqr(unknown, -(rows @ fixed), atol=1e-13, btol=1e-13, iter_lim=20_000)[0]
    at = open_to[found]
    if np.abs(value[found] - np.round(value[found])).max() > ROUGH:
        return low, high
    low, high = low.copy(), high.copy()
    low[at] = high[at] = np.round(value[found])
    return low, high


def _first(system: System, cells: Ints, *, known: bool) -> tuple[Floats, Floats]:
    """What each cell may be by itself; without `known`, a hidden one may be any count."""
    slack = np.array([t.rounding for t in system.tables])
    most = np.array([t.most_hidden if known else math.inf for t in system.tables])
    owner, shown, value = system.owner[cells], system.shown[cells], system.value[cells]
    listed = owner >= 0
    off = np.where(listed, slack[np.maximum(owner, 0)], 0.0)
    above = np.where(listed, most[np.maximum(owner, 0)], math.inf)
    # a shown zero of a rounded table may have been a small count; an exact count is what it says, were it below 0
    low = np.where(shown, np.where(off > 0, np.maximum(value - off, 0.0), value), 0.0)
    return low, np.where(shown, value + off, above)


def _tightened(rows: Any, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bounds that follow from single relations, over and over: each cell is what the others of a relation leave to it."""
    at, weight = rows.indices, rows.data
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    for _ in range(PASSES):
        least = np.where(weight > 0, weight * low[at], weight * high[at])
        largest = np.where(weight > 0, weight * high[at], weight * low[at])
        down, up = _others(row, least, rows.shape[0]), _others(row, largest, rows.shape[0])
        # weight · x = −(the others), which lie between `down` and `up`
        ends = np.stack([-down / weight, -up / weight])
        new_low, new_high = low.copy(), high.copy()
        np.maximum.at(new_low, at, ends.min(axis=0))
        np.minimum.at(new_high, at, ends.max(axis=0))
        if np.array_equal(new_low, low) and np.array_equal(new_high, high):
            break
        low, high = new_low, new_high
        if (low > high + NEAR).any():
            break
    return low, high


def _others(row: Ints, value: Floats, rows: int) -> Floats:
    """For each entry the sum of the others of its row; infinite where one of these is (and then all that are have one sign)."""
    endless = np.isinf(value)
    plain = np.where(endless, 0.0, value)
    total = np.bincount(row, plain, rows)[row] - plain
    many = np.bincount(row, endless, rows)[row] - endless
    return np.where(many > 0, value[endless][0] if endless.any() else 0.0, total)


class _Program:
    """All counts that fit, over the cells that are not known already."""

    def __init__(self, rows: Any, low: Floats, high: Floats) -> None:
        self.free = np.flatnonzero(high - low > NEAR)
        fixed = np.where(high - low > NEAR, 0.0, low)
        inside = rows[:, self.free].tocsr()
        used = np.flatnonzero(np.diff(inside.indptr))
        self.relations, self.right = inside[used], -(rows @ fixed)[used]
        self.bounds = np.stack([low[self.free], high[self.free]], axis=1)

    def ends(self, cell: int) -> tuple[float, float]:
        """The least and the largest value of one cell; what is known already where a program fails."""
        at = int(np.searchsorted(self.free, cell))
        found = self.bounds[at].tolist()
        for place, sign in enumerate((1.0, -1.0)):
            goal = np.zeros(len(self.free))
            goal[at] = sign
            done = linprog(goal, A_eq=self.relations, b_eq=self.right, bounds=self.bounds, method="highs")
            if done.status == 0:
                found[place] = float(done.x[at])
        return found[0], found[1]
