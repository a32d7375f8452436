"""Differencing: suppressed counts that other published counts pin down, over all tables at once.

Every cell of every table has a true count x. Tables that add up each other, and pairs with equal truth, are linear relations
C x = 0. With the columns of shown cells (o) and of hidden ones (h) apart, C_h x_h = −C_o x_o, and the shown counts y_o are x_o
plus noise. Hidden cells that are in the same relations can only be found together, so they are put in one group.

- A group can be estimated without bias exactly when its unit vector is in the row space of C_h: some λ has C_hᵀ λ = e. The
  projection of a random vector onto the null space of C_h is 0 there and, with probability 1, nowhere else.
- Among all such λ the one with the least variance λᵀ (C_o V C_oᵀ) λ is found by one factorisation. The estimate is
  −λᵀ C_o y_o, and it is certified: C_hᵀ λ = e is checked for every one.
- Its error is a weighted sum of the declared noises, whose exact law (`cbdp.audit.laws`) gives the interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from cbdp.audit.finding import Finding
from cbdp.audit.laws import Term, law_of, terms_of, variance
from cbdp.audit.tables import Noise, Published, Table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHECK = "differencing"
CONFIDENCE = 0.95
RISK = 1e-6
TELLING = 2 / 3  # a narrow interval is at most this part of what suppression alone leaves open
BATCH = 128  # groups that are estimated at once
NUDGE = 1e-9  # makes factorisations definite; iterating removes its effect
PENALTY = 1e-4
STEPS = 40
PACK = 400  # relations that small components are put together to
DENSE = 4000  # rows up to which a nearly full matrix is factored densely
CERTIFIED = 1e-7


@dataclass(frozen=True)
class Pinned:
    """A hidden count, or the sum of some that only occur together, as the published counts give it away."""

    table: str
    cells: tuple[str, ...]
    rows: tuple[int, ...]
    estimate: float
    low: float
    high: float
    deviation: float
    terms: int  # published counts that enter the estimate
    before: float  # the largest value of one such cell that suppression alone leaves open
    surely: float  # a lower bound beyond doubt: above 0, somebody was there
    noises: tuple[Term, ...] = field(default=(), repr=False)  # of the error: noise, weight, how many

    @property
    def single(self) -> bool:
        """Whether it is one cell's own count."""
        return len(self.cells) == 1

    @property
    def telling(self) -> bool:
        """Whether the tables together say more than the suppressed one alone.

        One count: that somebody was there, or how many within two thirds of what was open. A sum of several: itself to
        within what was open of one of them, if it is not much larger than that.
        """
        width = self.high - self.low
        if not self.terms:  # known without any published count
            return False
        if self.single:
            return self.low > 0 or width <= TELLING * self.before
        return width <= self.before and self.high <= 2 * self.before


@dataclass(frozen=True, eq=False)
class System:
    """All cells in one list, and the relations among their true counts: C x = 0."""

    tables: tuple[Table, ...]
    relations: Any  # sparse, a column per cell
    owner: Ints  # the table of each cell; −1 − i for what relation i leaves unlisted
    row: Ints  # its row there
    shown: NDArray[np.bool_]
    value: Floats
    noise: Ints  # the number of its noise
    noises: tuple[Noise, ...]


def attack(published: Published, confidence: float = CONFIDENCE, *, listed: int = 5) -> list[Finding]:
    """One finding for each table with hidden counts: how many are pinned down, and the worst of them."""
    hiding = [t for t in published.tables if not t.shown.all() or not t.closed]
    if not hiding:
        return [
            Finding(
                CHECK, "clear", "No count is suppressed",
                "All cells of all tables are published, so there is nothing to find by differences.",
            )
        ]  # fmt: skip
    found = pinned(published, confidence)
    return [
        _finding(t, [p for p in found if p.table == t.name and p.telling], confidence, listed) for t in hiding
    ]


def _finding(table: Table, found: Sequence[Pinned], confidence: float, listed: int) -> Finding:
    hidden = int((~table.shown).sum())
    single = [p for p in found if p.single]
    if not found:
        unlisted = "" if table.closed else ", nor what its unlisted cells hold"
        return Finding(
            CHECK, "clear", f"No hidden count of {table.name!r} is pinned down",
            f"Its {hidden} hidden counts are not found by differences{unlisted}.", figures={"hidden": hidden, "pinned": 0},
        )  # fmt: skip
    sure = sum(p.surely > 0 for p in found)
    worst = sorted(found, key=lambda p: (not p.single, p.surely <= 0, p.high - p.low))[:listed]
    lines = "; ".join(
        f"{_named(p)}: {min(p.estimate, p.high):.3g} ({100 * confidence:g} %: {p.low:.3g} to {p.high:.3g})"
        for p in worst
    )
    figures: dict[str, float | int | str] = {
        "hidden": hidden, "pinned": len(single), "groups": len(found) - len(single), "surely_present": sure,
        "best_deviation": min(p.deviation for p in found),
        "estimate": worst[0].estimate, "low": worst[0].low, "high": worst[0].high,
    }  # fmt: skip
    parts = [_many(len(single), "hidden count")] if single else []
    parts += (
        [_many(len(found) - len(single), "sum") + " of hidden counts"] if len(found) > len(single) else []
    )
    are = "is" if len(found) == 1 else "are"
    return Finding(
        CHECK, "weakness", f"{' and '.join(parts)} of {table.name!r} {are} pinned down by other tables",
        f"{_many(hidden, 'count')} of it hidden; above 0 beyond doubt (error 1e-6 for all together): {sure}. Worst: {lines}.",
        "Subtract the published parts from a published total: what is left was suppressed.",
        "Publish tables that are sums of one noised table, so that they agree and nothing is left to subtract.", figures,
    )  # fmt: skip


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _named(p: Pinned) -> str:
    return p.cells[0] if p.single else f"{p.cells[0]} and {len(p.cells) - 1} more together"


# The system


def pinned(published: Published, confidence: float = CONFIDENCE) -> list[Pinned]:
    """Every hidden count, or group of them, that the other published counts determine up to noise."""
    system = assemble(published)
    if system.relations.shape[0] == 0:
        return []
    found = [e for part in _components(system) for e in _solve(system, *part)]
    share = RISK / max(1, len(found))
    return [_pinned(published, system, *e, confidence, share) for e in found]


def assemble(published: Published) -> System:
    """The relations among the cells of all tables; counts whose noise is not declared are left out."""
    tables = tuple(t for t in published.tables if t.noise is not None or not t.shown.any())
    made = _Builder(tables)
    for number, s in enumerate(published.relations):
        if s.total in made.start and s.part in made.start:
            made.sum(number, published[s.total], published[s.part], np.asarray(s.rows))
    for p in published.equal:
        if p.first in made.start and p.second in made.start:
            made.equal(made.start[p.first] + p.first_rows, made.start[p.second] + p.second_rows)
    shown = np.zeros(made.columns, dtype=bool)
    value, noise = np.zeros(made.columns), np.zeros(made.columns, dtype=np.int64)
    noises = tuple(dict.fromkeys(t.noise or _NONE for t in tables))
    for t in tables:
        here = slice(made.start[t.name], made.start[t.name] + len(t))
        shown[here], value[here] = t.shown, np.where(t.shown, t.counts, 0.0)
        noise[here] = noises.index(t.noise or _NONE)
    owner, row = (np.concatenate([*part, np.zeros(0, np.int64)]) for part in (made.owner, made.row))
    return System(tables, made.matrix(), owner, row, shown, value, noise, noises)


_NONE = Noise("laplace", 0.0)


class _Builder:
    """Collects the relations as entries of a sparse matrix; unlisted cells are added on the way."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.rows = self.columns = 0
        self.start: dict[str, int] = {}
        self.owner: list[Ints] = []
        self.row: list[Ints] = []
        self.entries: list[tuple[Ints, Ints, Floats]] = []
        for number, table in enumerate(tables):
            self.start[table.name] = self.columns
            self._cells(len(table), number)

    def sum(self, number: int, total: Table, part: Table, at: Ints) -> None:
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

    def _equations(self, many: int) -> Ints:
        self.rows += many
        return np.arange(self.rows - many, self.rows)

    def _cells(self, many: int, owner: int) -> Ints:
        self.columns += many
        self.owner.append(np.full(many, owner, dtype=np.int64))
        self.row.append(np.arange(many))
        return np.arange(self.columns - many, self.columns)

    def _add(self, rows: Ints, columns: Ints, value: float) -> None:
        self.entries.append((rows, columns, np.full(len(rows), value)))

    def matrix(self) -> Any:
        if not self.entries:
            return sparse.csr_matrix((0, self.columns))
        rows, columns, values = (np.concatenate(part) for part in zip(*self.entries, strict=True))
        return sparse.csr_matrix((values, (rows, columns)), shape=(self.rows, self.columns))


def _components(system: System) -> Iterator[tuple[Any, Ints]]:
    """Relations that share no cell are solved apart, small ones in packs: where any of their cells is hidden."""
    matrix = system.relations
    m = matrix.shape[0]
    graph = sparse.bmat([[None, abs(matrix)], [abs(matrix).T, None]], format="csr")
    number, label = connected_components(graph, directed=False)
    size = np.bincount(label[:m], minlength=number)  # relations of each component
    open_to = np.bincount(label[m:], weights=~system.shown, minlength=number) > 0
    use = np.flatnonzero(open_to & (size > 0))
    pack = np.full(number, -1)
    pack[use] = np.cumsum(size[use]) // PACK
    by_cell, by_relation = pack[label[m:]], pack[label[:m]]
    for p in np.unique(pack[use]):
        cells = np.flatnonzero(by_cell == p)
        yield matrix[np.flatnonzero(by_relation == p)][:, cells].tocsc(), cells


def _solve(system: System, matrix: Any, cells: Ints) -> Iterator[tuple[Ints, Ints, Floats]]:
    """For each group of hidden cells that can be estimated: its cells, the shown cells that enter, and their weights."""
    shown = system.shown[cells]
    seen, hidden = cells[shown], cells[~shown]
    known, unknown = matrix[:, shown].tocsr(), matrix[:, ~shown].tocsc()
    groups = _same_columns(unknown)
    columns = unknown[:, np.array([g[0] for g in groups])].tocsc()
    found = identifiable(columns)
    if found.any():
        each = np.array([variance(noise) for noise in system.noises])
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


def _pinned(
    published: Published,
    system: System,
    cells: Ints,
    used: Ints,
    weights: Floats,
    confidence: float,
    share: float,
) -> Pinned:
    estimate = float(weights @ system.value[used])
    kind = system.noise[used]
    terms = [term for k in np.unique(kind) for term in terms_of(system.noises[int(k)], weights[kind == k])]
    each = np.array([variance(noise) for noise in system.noises])
    deviation = math.sqrt(float(weights**2 @ each[kind]))
    law = law_of(terms)
    half, wide = law.half_width(1 - confidence), law.half_width(share)
    table, names = _names(published, system, cells)
    before = _before(published, system, cells, confidence)
    low, high = max(0.0, estimate - half), max(0.0, estimate + half)
    if len(cells) == 1:
        high = max(low, min(high, before))
    rows = tuple(int(r) for r in system.row[cells])
    return Pinned(
        table, names, rows, estimate, low, high, deviation, len(used), before, estimate - wide, law.terms
    )


def _names(published: Published, system: System, cells: Ints) -> tuple[str, tuple[str, ...]]:
    owner = int(system.owner[cells[0]])
    if owner >= 0:
        names = (system.tables[int(system.owner[c])].label(int(system.row[c])) for c in cells)
        return system.tables[owner].name, tuple(names)
    relation = published.relations[-1 - owner]
    total = published[relation.total].label(int(system.row[cells[0]]))
    return relation.part, (f"{relation.part}: unlisted cells of {total}",)


def _before(published: Published, system: System, cells: Ints, confidence: float) -> float:
    """How large the largest of some hidden counts may be if only its suppression is known."""
    most = 0.0
    for owner in np.unique(system.owner[cells]):
        table = system.tables[owner] if owner >= 0 else published[published.relations[-1 - owner].part]
        if table.threshold is None:
            return float("inf")
        noise = law_of([(table.noise or _NONE, 1.0, 1)]).half_width(1 - confidence)
        most = max(most, table.threshold + noise)
    return most
