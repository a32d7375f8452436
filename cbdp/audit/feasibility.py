"""Hidden counts from linear relations: the system C x = 0 of all tables, unbiased estimates, and feasibility intervals.

The relations among the true counts of all cells are one sparse matrix (`assemble_system`). Where counts are noisy, the hidden counts that
the shown ones determine are estimated without bias and with the least variance (`estimates`; `cbdp.audit.differencing` says why).
Where counts are exact or rounded, linear programming gives the least and the largest value that is left to each (`feasibility_intervals`):
the attacker's problem of cell suppression (Fischetti and Salazar-González, 2001; bounds of Dobra and Fienberg, 2000).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsqr, splu

from cbdp.arrays import Floats, Ints
from cbdp.audit.tables import CountTable, PublishedTables
from cbdp.privacy.noise import NoiseDistribution, noise_distribution

# relations: smaller components are solved together, since one factorisation has a fixed cost
RELATIONS_PER_PACK = 400
# of exact counts, and of tables all of whose counts are hidden
NO_NOISE_DISTRIBUTION = noise_distribution("laplace", 0.0)


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """All cells in one list, and the relations among their true counts: C x = 0."""

    tables: tuple[CountTable, ...]
    relations: Any  # sparse, a column per cell
    owner: Ints  # the table of each cell; −1 − i for what relation i leaves unlisted
    row: Ints  # its row there
    shown: NDArray[np.bool_]
    value: Floats
    noise: Ints  # the number of its noise
    noises: tuple[NoiseDistribution, ...]


def assemble_system(published: PublishedTables, *, bounded: bool = False) -> LinearSystem:
    """The relations among the cells of all tables whose noise has a known law; or is bounded: by rounding, or by nothing at all."""
    tables = tuple(t for t in published.tables if not t.shown.any() or _usable_noise(t, bounded))
    builder = _SystemBuilder(tables)
    for number, s in enumerate(published.relations):
        if s.total in builder.start and s.part in builder.start:
            builder.sum(number, published[s.total], published[s.part], np.asarray(s.rows))
    for p in published.equal:
        if p.first in builder.start and p.second in builder.start:
            builder.equal(builder.start[p.first] + p.first_rows, builder.start[p.second] + p.second_rows)
    shown = np.zeros(builder.columns, dtype=bool)
    value, noise = np.zeros(builder.columns), np.zeros(builder.columns, dtype=np.int64)
    noises = tuple(dict.fromkeys(t.noise or NO_NOISE_DISTRIBUTION for t in tables))
    for t in tables:
        here = slice(builder.start[t.name], builder.start[t.name] + len(t))
        shown[here], value[here] = t.shown, np.where(t.shown, t.counts, 0.0)
        noise[here] = noises.index(t.noise or NO_NOISE_DISTRIBUTION)
    owner, row = (np.concatenate([*part, np.zeros(0, np.int64)]) for part in (builder.owner, builder.row))
    return LinearSystem(tables, builder.matrix(), owner, row, shown, value, noise, noises)


def _usable_noise(table: CountTable, bounded: bool) -> bool:
    return table.bounded if bounded else table.noise is not None and not table.rounding


class _SystemBuilder:
    """Collects the relations as entries of a sparse matrix; unlisted cells are added on the way."""

    def __init__(self, tables: Sequence[CountTable]) -> None:
        self.rows = self.columns = 0
        self.start: dict[str, int] = {}
        self.owner: list[Ints] = []
        self.row: list[Ints] = []
        self.entries: list[tuple[Ints, Ints, Floats]] = []
        for number, table in enumerate(tables):
            self.start[table.name] = self.columns
            self._cells(len(table), number)

    def sum(self, number: int, total: CountTable, part: CountTable, at: Ints) -> None:
        """Each row of the total is the sum of its parts, and of what the part does not list."""
        here = self._equations(len(total))
        use = np.flatnonzero(at >= 0)
        self._add(here, self.start[total.name] + np.arange(len(total)), 1.0)
        self._add(here[at[use]], self.start[part.name] + use, -1.0)
        if not part.closed:
            self._add(here, self._cells(len(total), -1 - number), -1.0)

    def equal(self, first: Ints, second: Ints) -> None:
        here = self._equations(len(first))
        self._add(here, first, 1.0)
        self._add(here, second, -1.0)

    def _equations(self, number: int) -> Ints:
        self.rows += number
        return np.arange(self.rows - number, self.rows)

    def _cells(self, number: int, owner: int) -> Ints:
        self.columns += number
        self.owner.append(np.full(number, owner, dtype=np.int64))
        self.row.append(np.arange(number))
        return np.arange(self.columns - number, self.columns)

    def _add(self, rows: Ints, columns: Ints, value: float) -> None:
        self.entries.append((rows, columns, np.full(len(rows), value)))

    def matrix(self) -> Any:
        if not self.entries:
            return sparse.csr_matrix((0, self.columns))
        rows, columns, values = (np.concatenate(part) for part in zip(*self.entries, strict=True))
        return sparse.csr_matrix((values, (rows, columns)), shape=(self.rows, self.columns))


def components(system: LinearSystem) -> Iterator[tuple[Any, Ints]]:
    """Relations that share no cell are solved apart, small ones in packs: where any of their cells is hidden."""
    matrix = system.relations
    m = matrix.shape[0]
    graph = sparse.bmat([[None, abs(matrix)], [abs(matrix).T, None]], format="csr")
    number, label = connected_components(graph, directed=False)
    size = np.bincount(label[:m], minlength=number)  # relations of each component
    open_to = np.bincount(label[m:], weights=~system.shown, minlength=number) > 0
    use = np.flatnonzero(open_to & (size > 0))
    pack = np.full(number, -1)
    pack[use] = np.cumsum(size[use]) // RELATIONS_PER_PACK
    by_cell, by_relation = pack[label[m:]], pack[label[:m]]
    for p in np.unique(pack[use]):
        cells = np.flatnonzero(by_cell == p)
        yield matrix[np.flatnonzero(by_relation == p)][:, cells].tocsc(), cells


# Unbiased estimates of the least variance


TARGETS_PER_BATCH = 128  # groups estimated at once: their right-hand sides are dense columns in memory
# of the largest diagonal entry: makes factorisations definite; iterating removes its effect
REGULARISATION = 1e-9
PENALTY = 1e-4  # weight of the variance beside the constraint in one step of the method of multipliers
MAX_REFINEMENT_STEPS = 40  # steps of that method, which ends earlier where it has converged
MAX_DENSE_ROWS = 4000  # rows: a nearly full matrix of so many takes 128 MB and is factored densely
RESIDUAL_TOLERANCE = 1e-7  # of C_hᵀλ = e, above which an estimate is not certified unbiased


def estimates(system: LinearSystem, matrix: Any, cells: Ints) -> Iterator[tuple[Ints, Ints, Floats]]:
    """For each group of hidden cells that can be estimated: its cells, the shown cells that enter, and their weights."""
    shown = system.shown[cells]
    seen, hidden = cells[shown], cells[~shown]
    shown_columns, hidden_columns = matrix[:, shown].tocsr(), matrix[:, ~shown].tocsc()
    groups = _same_columns(hidden_columns)
    columns = hidden_columns[:, np.array([g[0] for g in groups])].tocsc()
    identified = identifiable(columns)
    if identified.any():
        each = np.array([noise.variance() for noise in system.noises])
        solver = _MinimumVarianceWeights(shown_columns, columns, each[system.noise[seen]])
        ready = np.flatnonzero(identified)
        for start in range(0, len(ready), TARGETS_PER_BATCH):
            batch = ready[start : start + TARGETS_PER_BATCH]
            weights, certified = solver.weights(batch)
            for g, column, sound in zip(batch, weights, certified, strict=True):
                if sound:
                    used = np.flatnonzero(column)
                    yield hidden[groups[g]], seen[used], column[used]
    for group, row in _leftovers(hidden_columns.tocsr(), columns.tocsr(), identified):
        part = slice(shown_columns.indptr[row], shown_columns.indptr[row + 1])
        sign = np.sign(hidden_columns.tocsr()[row].data[0])
        yield hidden[group], seen[shown_columns.indices[part]], -sign * shown_columns.data[part]


def _leftovers(
    hidden_columns: Any, columns: Any, identified: NDArray[np.bool_]
) -> Iterator[tuple[Ints, int]]:
    """Totals that are shown and have several hidden parts: these are not found one by one, but their sum is."""
    seen: set[bytes] = set()
    for row in range(hidden_columns.shape[0]):
        part = slice(hidden_columns.indptr[row], hidden_columns.indptr[row + 1])
        group, sign = np.sort(hidden_columns.indices[part]), hidden_columns.data[part]
        inside = columns.indices[columns.indptr[row] : columns.indptr[row + 1]]
        if len(inside) < 2 or identified[inside].all() or np.ptp(sign) or group.tobytes() in seen:
            continue
        seen.add(group.tobytes())
        yield group, row


def _same_columns(matrix: Any) -> list[Ints]:
    """The columns of a sparse matrix, those that are equal together."""
    matrix = matrix.tocsc()
    matrix.sum_duplicates()
    groups: dict[bytes, list[int]] = {}
    for j in range(matrix.shape[1]):
        part = slice(matrix.indptr[j], matrix.indptr[j + 1])
        groups.setdefault(matrix.indices[part].tobytes() + matrix.data[part].tobytes(), []).append(j)
    return [np.array(group, dtype=np.int64) for group in groups.values()]


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
    nudged = (
        matrix + REGULARISATION * max(1.0, float(matrix.diagonal().max())) * sparse.identity(size)
    ).tocsc()
    if size <= MAX_DENSE_ROWS and nudged.nnz > 0.05 * size * size:
        factor = cho_factor(nudged.toarray())
        return lambda right: np.asarray(cho_solve(factor, right))
    solve: Callable[[Floats], Floats] = splu(nudged).solve
    return solve


class _MinimumVarianceWeights:
    """The weights of least variance for any group, from one factorisation: the method of multipliers (Hestenes, 1969; Powell, 1969).

    The λ of least λᵀMλ with C_hᵀλ = e, where M = C_o V C_oᵀ, is the limit of minimising λᵀMλ + ‖C_hᵀλ − e‖²/PENALTY with
    the multipliers (as their image under C_h) adjusted in between.
    """

    def __init__(self, shown_columns: Any, columns: Any, spread: Floats) -> None:
        self.shown_columns, self.columns = shown_columns, columns
        unit = float(spread.max()) if len(spread) and spread.max() > 0 else 1.0
        self.gram = (columns @ columns.T).tocsr()
        middle = shown_columns @ sparse.diags(spread / unit) @ shown_columns.T
        self.solve = _factored(PENALTY * middle + self.gram)

    def weights(self, groups: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """The weights of the shown counts in each group's estimate, and whether the estimate is certified unbiased."""
        targets = self.columns[:, groups].toarray()
        multiplier = np.zeros_like(targets)
        for _ in range(MAX_REFINEMENT_STEPS):
            lam = self.solve(targets - multiplier)
            error = self.gram @ lam - targets
            multiplier += error
            if np.abs(error).max() < 1e-12:
                break
        weights = -(self.shown_columns.T @ lam).T
        near = np.round(weights * 12) / 12  # sums and differences have simple weights: say them exactly
        weights = np.where(np.abs(weights - near) < 1e-8, near, weights)
        off = self.columns.T @ lam
        off[groups, np.arange(len(groups))] -= 1.0
        return weights, np.abs(off).max(axis=0) < RESIDUAL_TOLERANCE


# Feasibility intervals
#
# Counts without noise bound each other. A hidden count is at least 0 and at most the largest that is hidden, a shown one is off by no more
# than its rounding, and totals are sums of their parts. Of all counts that fit, each hidden cell's least and largest are found: first
# those that the relations determine, all at once; then relation by relation, over and over; then, for as many cells as time allows, by two
# linear programs. What is left of an interval holds the truth for certain.


MAX_PROGRAMS = 150  # hidden cells for which two programs each are solved: some seconds in all
MAX_WORK = 50_000_000  # cells × unknowns × relations of all programs together: some seconds in all
INTEGRALITY_TOLERANCE = 1e-3  # trips: how far from a whole number a determined count may come out
MAX_PROPAGATION_PASSES = 60  # passes over all relations: bounds that still move then are left to the programs
BOUND_TOLERANCE = 1e-6  # trips: bounds that are nearer than this are equal


@dataclass(frozen=True)
class FeasibilityInterval:
    """What is left open of one hidden cell, by its place in the system; `solved`: by programs, so that no bound is closer."""

    cell: int
    low: float
    high: float
    shown: int  # published counts that its relations reach
    solved: bool


def feasibility_intervals(
    published: PublishedTables, most: int = MAX_PROGRAMS
) -> tuple[LinearSystem, list[FeasibilityInterval]]:
    """What tables without noise leave open of each hidden cell that is in a relation."""
    system = assemble_system(published, bounded=True)
    if not system.relations.shape[0] or system.shown.all():
        return system, []
    intervals: list[FeasibilityInterval] = []
    parts = list(components(system))
    hidden = max(1, sum(int((~system.shown[cells]).sum()) for _, cells in parts))
    for matrix, cells in parts:
        hidden_here = int((~system.shown[cells]).sum())
        intervals += _intervals_of_component(system, matrix, cells, math.ceil(most * hidden_here / hidden))
    return system, intervals


def _intervals_of_component(
    system: LinearSystem, matrix: Any, cells: Ints, most: int
) -> list[FeasibilityInterval]:
    rows = matrix.tocsr()
    for within_threshold in (
        True,
        False,
    ):  # where no counts fit, larger ones than the threshold says were hidden
        low, high = _initial_bounds(system, cells, within_threshold=within_threshold)
        if not any(t.rounding for t in system.tables):
            low, high = _determined(rows, low, high)
        low, high = _propagated_bounds(rows, low, high)
        if (low <= high + BOUND_TOLERANCE).all():
            break
    else:
        return []
    hidden = np.flatnonzero(~system.shown[cells])
    unsure = hidden[high[hidden] - low[hidden] > BOUND_TOLERANCE]
    affordable = MAX_WORK // max(1, len(unsure) * rows.shape[0])  # some seconds in all
    chosen = np.random.default_rng(0).permutation(unsure)[: min(most, affordable)]
    program = _LinearProgram(rows, low, high)
    ends = [program.ends(at) for at in chosen.tolist()]
    for at, (least, largest) in zip(chosen.tolist(), ends, strict=True):
        low[at], high[at] = least, largest
    if bool((system.value == np.round(system.value)).all()):
        low, high = (
            np.ceil(low - BOUND_TOLERANCE) + 0.0,
            np.floor(high + BOUND_TOLERANCE),
        )  # and no zero with a minus
    sure = set(chosen.tolist()) | set(hidden.tolist()) - set(unsure.tolist())
    shown = int(system.shown[cells].sum())
    return [
        FeasibilityInterval(int(cells[at]), float(low[at]), float(high[at]), shown, at in sure)
        for at in hidden.tolist()
    ]


def _determined(rows: Any, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Unknowns that exact counts determine outright have that value: found for all at once."""
    open_to = np.flatnonzero(high - low > BOUND_TOLERANCE)
    unknown = rows[:, open_to].tocsc()
    determined = identifiable(unknown)
    if not determined.any():
        return low, high
    fixed = np.where(high - low > BOUND_TOLERANCE, 0.0, low)
    value = lsqr(unknown, -(rows @ fixed), atol=1e-13, btol=1e-13, iter_lim=20_000)[0]
    at = open_to[determined]
    if np.abs(value[determined] - np.round(value[determined])).max() > INTEGRALITY_TOLERANCE:
        return low, high
    low, high = low.copy(), high.copy()
    low[at] = high[at] = np.round(value[determined])
    return low, high


def _initial_bounds(system: LinearSystem, cells: Ints, *, within_threshold: bool) -> tuple[Floats, Floats]:
    """What each cell may be by itself; without `known`, a hidden one may be any count."""
    slack = np.array([t.rounding for t in system.tables])
    most = np.array([t.most_hidden if within_threshold else math.inf for t in system.tables])
    owner, shown, value = system.owner[cells], system.shown[cells], system.value[cells]
    listed = owner >= 0
    off = np.where(listed, slack[np.maximum(owner, 0)], 0.0)
    above = np.where(listed, most[np.maximum(owner, 0)], math.inf)
    # a shown zero of a rounded table may have been a small count; an exact count is what it says, were it below 0
    low = np.where(shown, np.where(off > 0, np.maximum(value - off, 0.0), value), 0.0)
    return low, np.where(shown, value + off, above)


def _propagated_bounds(rows: Any, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bounds that follow from single relations, over and over: each cell is what the others of a relation leave to it.

    Bound propagation; for contingency tables the shuttle algorithm (Buzzigoli and Giusti, 1999).
    """
    at, weight = rows.indices, rows.data
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    for _ in range(MAX_PROPAGATION_PASSES):
        least = np.where(weight > 0, weight * low[at], weight * high[at])
        largest = np.where(weight > 0, weight * high[at], weight * low[at])
        down, up = (
            _row_sums_less_own(row, least, rows.shape[0]),
            _row_sums_less_own(row, largest, rows.shape[0]),
        )
        # weight · x = −(the others), which lie between `down` and `up`
        ends = np.stack([-down / weight, -up / weight])
        new_low, new_high = low.copy(), high.copy()
        np.maximum.at(new_low, at, ends.min(axis=0))
        np.minimum.at(new_high, at, ends.max(axis=0))
        if np.array_equal(new_low, low) and np.array_equal(new_high, high):
            break
        low, high = new_low, new_high
        if (low > high + BOUND_TOLERANCE).any():
            break
    return low, high


def _row_sums_less_own(row: Ints, value: Floats, rows: int) -> Floats:
    """For each entry the sum of the others of its row; infinite where one of these is (and then all that are have one sign)."""
    endless = np.isinf(value)
    plain = np.where(endless, 0.0, value)
    total = np.bincount(row, plain, rows)[row] - plain
    others = np.bincount(row, endless, rows)[row] - endless
    return np.where(others > 0, value[endless][0] if endless.any() else 0.0, total)


class _LinearProgram:
    """All counts that fit, over the cells whose bounds leave anything open."""

    def __init__(self, rows: Any, low: Floats, high: Floats) -> None:
        self.free = np.flatnonzero(high - low > BOUND_TOLERANCE)
        fixed = np.where(high - low > BOUND_TOLERANCE, 0.0, low)
        inside = rows[:, self.free].tocsr()
        used = np.flatnonzero(np.diff(inside.indptr))
        self.relations, self.right = inside[used], -(rows @ fixed)[used]
        self.bounds = np.stack([low[self.free], high[self.free]], axis=1)

    def ends(self, cell: int) -> tuple[float, float]:
        """The least and the largest value of one cell; what is known already where a program fails."""
        at = int(np.searchsorted(self.free, cell))
        ends = self.bounds[at].tolist()
        for side, sign in enumerate((1.0, -1.0)):
            goal = np.zeros(len(self.free))
            goal[at] = sign
            done = linprog(goal, A_eq=self.relations, b_eq=self.right, bounds=self.bounds, method="highs")
            if done.status == 0:
                ends[side] = float(done.x[at])
        return ends[0], ends[1]
