"""Differencing: suppressed counts that other published counts pin down, over all tables at once.

Every cell of every table has a true count x. Tables that add up each other, and pairs with equal truth, are linear relations
C x = 0. With the columns of shown cells (o) and of hidden ones (h) apart, C_h x_h = −C_o x_o, and the shown counts y_o are x_o
plus noise. Hidden cells that are in the same relations can only be found together, so they are put in one group.

- A group can be estimated without bias exactly when its unit vector is in the row space of C_h: some λ has C_hᵀ λ = e. The
  projection of a random vector onto the null space of C_h is 0 there and, with probability 1, nowhere else.
- Among all such λ the one with the least variance λᵀ (C_o V C_oᵀ) λ is found by one factorisation: −λᵀ C_o y_o is the best linear
  unbiased estimate (Gauss and Markov), and it is certified: C_hᵀ λ = e is checked for every one.
- Its error is a weighted sum of the declared noises, whose exact law (`cbdp.audit.noise_sums`) gives the interval.

Counts of tables that declare no noise are taken for exact (`cbdp.audit.exact_counts`). Exact and rounded counts bound each other
besides, and what that leaves open of each hidden count is found by linear programming (`cbdp.audit.feasibility`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.audit.exact_counts import assumed_noise
from cbdp.audit.feasibility import (
    NO_NOISE_DISTRIBUTION,
    FeasibilityInterval,
    LinearSystem,
    assemble_system,
    components,
    estimates,
    feasibility_intervals,
)
from cbdp.audit.findings import Figure, Finding
from cbdp.audit.noise_sums import Term, sum_distribution, terms_of
from cbdp.audit.tables import CountTable, PublishedTables

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
            Finding(
                CHECK, "clear", "No count is suppressed",
                f"All {cells:,} cells of {len(published.tables)} tables are published, so there is nothing to find by differences.",
                power="A cell that is listed without its count would have been seen for certain.",
            )
        ]  # fmt: skip
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
        return Finding(
            CHECK, "clear", f"No hidden count of {table.name!r} can be worked out",
            f"Differences of published counts do not give its {_number_text(hidden, 'hidden count')}{unlisted}.",
            figures={"hidden": hidden, "pinned": 0}, power=_power_text(every),
        )  # fmt: skip
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
