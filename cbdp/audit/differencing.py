"""Differencing: suppressed counts that other published counts pin down, over all tables at once.

Every cell of every table has a true count x. Tables that add up each other, and pairs with equal truth, are linear relations
C x = 0. With the columns of shown cells (o) and of hidden ones (h) apart, C_h x_h = −C_o x_o, and the shown counts y_o are x_o
plus noise. Hidden cells that are in the same relations can only be found together, so they are put in one group.

- A group can be estimated without bias exactly when its unit vector is in the row space of C_h: some λ has C_hᵀ λ = e. The
  projection of a random vector onto the null space of C_h is 0 there and, with probability 1, nowhere else.
- Among all such λ the one with the least variance λᵀ (C_o V C_oᵀ) λ is found by one factorisation: −λᵀ C_o y_o is the best linear
  unbiased estimate (Gauss and Markov), and it is certified: C_hᵀ λ = e is checked for every one.
- Its error is a weighted sum of the declared noises, whose exact law (`cbdp.audit.scale_recovery`) gives the interval.

Counts of tables that declare no noise are taken for exact (`cbdp.audit.exact_counts`). Exact and rounded counts bound each other
besides, and what that leaves open of each hidden count is found by linear programming: the attacker's problem of cell suppression (Fischetti
and Salazar-González, 2001; bounds of Dobra and Fienberg, 2000). The attack comes first, then the system of relations, the unbiased estimates,
and the feasibility intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsqr, splu

from cbdp.arrays import Bools, Floats, Ints
from cbdp.audit.exact_counts import assumed_noise
from cbdp.audit.findings import Figure, Finding, clear_finding
from cbdp.audit.scale_recovery import Term, sum_distribution, terms_of
from cbdp.audit.tables import NO_NOISE_DISTRIBUTION, CountTable, PublishedTables
from cbdp.privacy.noise import NoiseDistribution

CHECK = "differencing"
CONFIDENCE = 0.95  # of the interval of one hidden count
FALSE_ALARM_RISK = 1e-6  # of saying that somebody was surely there, over all hidden counts together
# of the interval that suppression alone leaves open: a narrower one tells something
NARROW_INTERVAL_SHARE = 2 / 3
CLOSE_SHARE = 0.2  # of the count itself, a tenth to either side, where suppression leaves any count open
MIN_SOLVED_PROGRAMS = 5  # linear programs: fewer are no sample of all hidden counts


@dataclass(frozen=True)
class IdentifiedCount:
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
    solved: bool = True  # without noise: no bound is closer

    @property
    def single(self) -> bool:
        """Whether it is one cell's own count."""
        return len(self.cells) == 1

    @property
    def exactly(self) -> bool:
        """Whether it is known to the last digit."""
        return self.single and not self.deviation and self.high - self.low < 0.5

    @property
    def informative(self) -> bool:
        """Whether the tables together say more than the suppressed one alone.

        One count: that somebody was there, or how many within two thirds of what was open; where any count was open, how many
        to within a tenth. A sum of several: itself to within what was open of one of them, if it is not much larger than that.
        """
        width = self.high - self.low
        if not self.terms:  # known without any published count
            return False
        if (
            not self.single and not self.deviation
        ):  # of exact counts every such sum is known: what it says is in the single ones
            return False
        if math.isinf(self.before):
            there = self.single and self.deviation > 0 and self.low > 0
            return there or width <= CLOSE_SHARE * self.high
        if self.single:
            return self.low > 0 or width <= NARROW_INTERVAL_SHARE * self.before
        return width <= self.before and self.high <= 2 * self.before


def attack(published: PublishedTables, confidence: float = CONFIDENCE, *, listed: int = 5) -> list[Finding]:
    """One finding for each table with hidden counts that can be attacked: how many are told, and the worst of them."""
    hiding = _tables_with_hidden_counts(published)
    if not hiding:
        cells = sum(len(t) for t in published.tables)
        return [
            clear_finding(
                CHECK,
                "No count is suppressed",
                f"All {cells:,} cells of {len(published.tables)} tables are published, so there is nothing to find by differences.",
                "A cell that is listed without its count would have been seen for certain.",
            )
        ]
    assumed = assumed_noise(published).published
    left = bounded_counts(assumed)
    exact = {(p.table, p.rows) for p in left}
    noisy = any(t.noise is not None and t.noise.scale for t in assumed.tables)
    identified = (
        [p for p in identified_counts(assumed, confidence) if (p.table, p.rows) not in exact] if noisy else []
    )
    identified += left
    reached = _tables_in_relations(assumed)
    return [
        _finding(
            t,
            [p for p in identified if p.table == t.name],
            confidence,
            listed,
            private=published.epsilon is not None,
        )
        for t in hiding
        if t.name in reached
    ]


def left_out(published: PublishedTables) -> list[str]:
    """Tables with hidden counts that nothing can be subtracted from."""
    reached = _tables_in_relations(assumed_noise(published).published)
    return [
        f"{t.name!r} hides counts, and no other table with known noise adds up to it: differencing was not tried."
        for t in _tables_with_hidden_counts(published)
        if t.name not in reached
    ]


def _tables_with_hidden_counts(published: PublishedTables) -> list[CountTable]:
    return [t for t in published.tables if not t.shown.all() or not t.closed]


def _tables_in_relations(published: PublishedTables) -> set[str]:
    """Tables in a relation whose both sides can be used."""
    used = {t.name for t in published.tables if t.noise is not None or not t.shown.any()}
    ties = [(s.total, s.part) for s in published.relations] + [(p.first, p.second) for p in published.equal]
    return {name for tie in ties if set(tie) <= used for name in tie}


def _finding(
    table: CountTable, every: Sequence[IdentifiedCount], confidence: float, listed: int, *, private: bool
) -> Finding:
    hidden, informative = int((~table.shown).sum()), [p for p in every if p.informative]
    if not informative:
        unlisted = "" if table.closed else ", nor those of its unlisted cells"
        return clear_finding(
            CHECK,
            f"No hidden count of {table.name!r} can be worked out",
            f"Differences of published counts do not give its {_number_text(hidden, 'hidden count')}{unlisted}.",
            _power_text(every),
            {"hidden": hidden, "pinned": 0},
        )
    single, exactly = [p for p in informative if p.single], sum(p.exactly for p in informative)
    worst = sorted(informative, key=lambda p: (not p.single, p.high - p.low, p.surely <= 0))[:listed]
    figures: dict[str, Figure] = {
        "hidden": hidden, "pinned": len(single), "groups": len(informative) - len(single), "exactly": exactly,
        "surely_present": (sure := sum(p.surely > 0 for p in informative)), "best_deviation": min(p.deviation for p in informative),
        "estimate": worst[0].estimate, "low": worst[0].low, "high": worst[0].high,
    }  # fmt: skip
    parts = [_number_text(len(single), "hidden count")] if single else []
    parts += (
        [_number_text(len(informative) - len(single), "sum") + " of hidden counts"]
        if len(informative) > len(single)
        else []
    )
    lines = "; ".join(_count_text(p, confidence) for p in worst)
    return Finding(
        CHECK, "contradicts" if exactly and not private else "weakness",  # what ε protects may be told: it is noisy
        f"{' and '.join(parts)} of {table.name!r} can be worked out from other tables" + (f", {exactly} exactly" if exactly else ""),
        f"The table hides {_number_text(hidden, 'count')}. Above 0 beyond doubt (a risk of 1e-6 for all together): {sure}. "
        f"The worst: {lines}.",
        "Subtract the published parts from a published total: what is left was suppressed.",
        "Publish tables that are sums of one table with noise, so that they agree and nothing is left to subtract.", figures,
    )  # fmt: skip


def _count_text(p: IdentifiedCount, confidence: float) -> str:
    if p.exactly:
        return f"{_count_name(p)} is {p.low:.6g}"
    if not p.deviation:
        return f"{_count_name(p)} is {p.low:.6g} to {p.high:.6g}"
    return f"{_count_name(p)}: {min(p.estimate, p.high):.3g} ({100 * confidence:g} %: {p.low:.3g} to {p.high:.3g})"


def _power_text(every: Sequence[IdentifiedCount]) -> str:
    """How much a hidden count would have had to be, or to be tied down, to be found."""
    noisy = [p for p in every if p.deviation]
    bounds = [p for p in every if not p.deviation and p.single]
    if not noisy and not bounds:
        return "Each hidden count occurs only together with others: no difference gives one, however much noise there is."
    sentences = []
    if noisy:
        best = min(noisy, key=lambda p: p.deviation)
        law = sum_distribution(best.noises)
        from_on = law.half_width(1 - CONFIDENCE) + law.half_width(2 * (1 - CONFIDENCE))
        sentences.append(
            f"Of {_number_text(len(noisy), 'estimate')} the best has a standard deviation of {best.deviation:.3g}: a hidden count of "
            f"{from_on:.3g} or more would have been told with a probability of {100 * CONFIDENCE:g} %."
        )
    if bounds:
        least = min(bounds, key=lambda p: p.high - p.low)
        sentences.append(
            f"The least and the largest value were worked out for {_number_text(len(bounds), 'hidden count')}; the narrowest is "
            f"{least.low:.6g} to {least.high:.6g}. {_sampling_text(bounds)}"
        )
    return " ".join(sentences)


def _sampling_text(bounds: Sequence[IdentifiedCount]) -> str:
    """What was solved for some stands for all: if many were told, some of them would have been among these."""
    solved, every = sum(p.solved for p in bounds), len(bounds)
    if solved == every:
        return "A count that the tables determine would have been found for certain."
    sure = "A count that exact tables determine outright would have been found for certain."
    if solved < MIN_SOLVED_PROGRAMS:
        return f"{sure} Programs over all tables were too large to solve, so narrower ends may be missed."
    share = 1 - (1 - CONFIDENCE) ** (1 / solved)
    return (
        f"{sure} Programs over all tables were solved for {solved:,} of them, drawn at random: if one in {int(1 / share):,} were told, "
        f"that would have been found with a probability of {100 * CONFIDENCE:g} %."
    )


def _number_text(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _count_name(p: IdentifiedCount) -> str:
    return p.cells[0] if p.single else f"{p.cells[0]} and {len(p.cells) - 1} more together"


def identified_counts(published: PublishedTables, confidence: float = CONFIDENCE) -> list[IdentifiedCount]:
    """Every hidden count, or group of them, that the other published counts determine up to noise."""
    system = assemble_system(published)
    if system.relations.shape[0] == 0:
        return []
    estimators = [e for part in components(system) for e in estimates(system, *part)]
    share = FALSE_ALARM_RISK / max(1, len(estimators))
    return [_identified_in_table(published, system, *e, confidence, share) for e in estimators]


def bounded_counts(published: PublishedTables) -> list[IdentifiedCount]:
    """Every hidden count that tables without noise bound, with the least and the largest value that they leave open."""
    system, left = feasibility_intervals(published)
    return [_counts_of_bounds(published, system, each) for each in left]


def _counts_of_bounds(
    published: PublishedTables, system: LinearSystem, left: FeasibilityInterval
) -> IdentifiedCount:
    cells = np.array([left.cell])
    table, names = _names(published, system, cells)
    owner = int(system.owner[left.cell])
    before = system.tables[owner].most_hidden if owner >= 0 else math.inf
    middle = (left.low + left.high) / 2
    row = (int(system.row[left.cell]),)
    return IdentifiedCount(
        table, names, row, middle, left.low, left.high, 0.0, left.shown, before, left.low, solved=left.solved
    )


def _identified_in_table(
    published: PublishedTables,
    system: LinearSystem,
    cells: Ints,
    used: Ints,
    weights: Floats,
    confidence: float,
    share: float,
) -> IdentifiedCount:
    estimate = float(weights @ system.value[used])
    kind = system.noise[used]
    terms = [term for k in np.unique(kind) for term in terms_of(system.noises[int(k)], weights[kind == k])]
    each = np.array([noise.variance() for noise in system.noises])
    deviation = math.sqrt(float(weights**2 @ each[kind]))
    law = sum_distribution(terms)
    half, wide = law.half_width(1 - confidence), law.half_width(share)
    table, names = _names(published, system, cells)
    before = _bound_before(published, system, cells, confidence)
    low, high = max(0.0, estimate - half), max(0.0, estimate + half)
    if len(cells) == 1:
        high = max(low, min(high, before))
    rows = tuple(int(r) for r in system.row[cells])
    return IdentifiedCount(
        table, names, rows, estimate, low, high, deviation, len(used), before, estimate - wide, law.terms
    )


def _names(published: PublishedTables, system: LinearSystem, cells: Ints) -> tuple[str, tuple[str, ...]]:
    owner = int(system.owner[cells[0]])
    if owner >= 0:
        names = (system.tables[int(system.owner[c])].label(int(system.row[c])) for c in cells)
        return system.tables[owner].name, tuple(names)
    relation = published.relations[-1 - owner]
    total = published[relation.total].label(int(system.row[cells[0]]))
    return relation.part, (f"{relation.part}: unlisted cells of {total}",)


def _bound_before(published: PublishedTables, system: LinearSystem, cells: Ints, confidence: float) -> float:
    """How large the largest of some hidden counts may be if only its suppression is known."""
    most = 0.0
    for owner in np.unique(system.owner[cells]):
        table = system.tables[owner] if owner >= 0 else published[published.relations[-1 - owner].part]
        if table.threshold is None or table.complementary:
            return math.inf
        noise = sum_distribution([(table.noise or NO_NOISE_DISTRIBUTION, 1.0, 1)]).half_width(1 - confidence)
        most = max(most, table.threshold + noise)
    return most


# The system of all cells and relations


# relations: smaller components are solved together, since one factorisation has a fixed cost
RELATIONS_PER_PACK = 400


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """All cells in one list, and the relations among their true counts: C x = 0."""

    tables: tuple[CountTable, ...]
    relations: sparse.csr_matrix  # a column per cell
    owner: Ints  # the table of each cell; −1 − i for what relation i leaves unlisted
    row: Ints  # its row there
    shown: Bools
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

    def matrix(self) -> sparse.csr_matrix:
        if not self.entries:
            return sparse.csr_matrix((0, self.columns))
        rows, columns, values = (np.concatenate(part) for part in zip(*self.entries, strict=True))
        return sparse.csr_matrix((values, (rows, columns)), shape=(self.rows, self.columns))


def components(system: LinearSystem) -> Iterator[tuple[sparse.csc_matrix, Ints]]:
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


def estimates(
    system: LinearSystem, matrix: sparse.csc_matrix, cells: Ints
) -> Iterator[tuple[Ints, Ints, Floats]]:
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
    hidden_columns: sparse.csr_matrix, columns: sparse.csr_matrix, identified: Bools
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


def _same_columns(matrix: sparse.csr_matrix) -> list[Ints]:
    """The columns of a sparse matrix, those that are equal together."""
    matrix = matrix.tocsc()
    matrix.sum_duplicates()
    groups: dict[bytes, list[int]] = {}
    for j in range(matrix.shape[1]):
        part = slice(matrix.indptr[j], matrix.indptr[j + 1])
        groups.setdefault(matrix.indices[part].tobytes() + matrix.data[part].tobytes(), []).append(j)
    return [np.array(group, dtype=np.int64) for group in groups.values()]


def identifiable(columns: sparse.csr_matrix, trials: int = 3) -> Bools:
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


def _factored(matrix: sparse.csr_matrix) -> Callable[[Floats], Floats]:
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

    def __init__(self, shown_columns: sparse.csr_matrix, columns: sparse.csr_matrix, spread: Floats) -> None:
        self.shown_columns, self.columns = shown_columns, columns
        unit = float(spread.max()) if len(spread) and spread.max() > 0 else 1.0
        self.gram = (columns @ columns.T).tocsr()
        middle = shown_columns @ sparse.diags(spread / unit) @ shown_columns.T
        self.solve = _factored(PENALTY * middle + self.gram)

    def weights(self, groups: Ints) -> tuple[Floats, Bools]:
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
    system: LinearSystem, matrix: sparse.csc_matrix, cells: Ints, most: int
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


def _determined(rows: sparse.csr_matrix, low: Floats, high: Floats) -> tuple[Floats, Floats]:
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
    """What each cell may be by itself; unless `within_threshold`, a hidden one may be any count."""
    slack = np.array([t.rounding for t in system.tables])
    most = np.array([t.most_hidden if within_threshold else math.inf for t in system.tables])
    owner, shown, value = system.owner[cells], system.shown[cells], system.value[cells]
    listed = owner >= 0
    off = np.where(listed, slack[np.maximum(owner, 0)], 0.0)
    above = np.where(listed, most[np.maximum(owner, 0)], math.inf)
    # a shown zero of a rounded table may have been a small count; an exact count is what it says, were it below 0
    low = np.where(shown, np.where(off > 0, np.maximum(value - off, 0.0), value), 0.0)
    return low, np.where(shown, value + off, above)


def _propagated_bounds(rows: sparse.csr_matrix, low: Floats, high: Floats) -> tuple[Floats, Floats]:
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

    def __init__(self, rows: sparse.csr_matrix, low: Floats, high: Floats) -> None:
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
