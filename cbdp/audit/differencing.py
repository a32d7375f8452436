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
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cbdp.audit.finding import Finding
from cbdp.audit.laws import Term, sum_law, terms_of
from cbdp.audit.relations import EXACT, System, assemble, components
from cbdp.audit.tables import CountTable, PublishedTables
from cbdp.audit.unbiased import estimates

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHECK = "differencing"
CONFIDENCE = 0.95
RISK = 1e-6
TELLING = 2 / 3  # a narrow interval is at most this part of what suppression alone leaves open


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


def attack(published: PublishedTables, confidence: float = CONFIDENCE, *, listed: int = 5) -> list[Finding]:
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


def _finding(table: CountTable, found: Sequence[Pinned], confidence: float, listed: int) -> Finding:
    hidden = int((~table.shown).sum())
    single = [p for p in found if p.single]
    if not found:
        unlisted = "" if table.closed else ", nor those of its unlisted cells"
        return Finding(
            CHECK, "clear", f"No hidden count of {table.name!r} is pinned down",
            f"Differences of published counts do not give its {hidden} hidden counts{unlisted}.", figures={"hidden": hidden, "pinned": 0},
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
        f"The table hides {_many(hidden, 'count')}. Above 0 beyond doubt (a risk of 1e-6 for all together): {sure}. "
        f"The worst: {lines}.",
        "Subtract the published parts from a published total: what is left was suppressed.",
        "Publish tables that are sums of one table with noise, so that they agree and nothing is left to subtract.", figures,
    )  # fmt: skip


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _named(p: Pinned) -> str:
    return p.cells[0] if p.single else f"{p.cells[0]} and {len(p.cells) - 1} more together"


def pinned(published: PublishedTables, confidence: float = CONFIDENCE) -> list[Pinned]:
    """Every hidden count, or group of them, that the other published counts determine up to noise."""
    system = assemble(published)
    if system.relations.shape[0] == 0:
        return []
    found = [e for part in components(system) for e in estimates(system, *part)]
    share = RISK / max(1, len(found))
    return [_pinned(published, system, *e, confidence, share) for e in found]


def _pinned(
    published: PublishedTables,
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
    each = np.array([noise.variance() for noise in system.noises])
    deviation = math.sqrt(float(weights**2 @ each[kind]))
    law = sum_law(terms)
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


def _names(published: PublishedTables, system: System, cells: Ints) -> tuple[str, tuple[str, ...]]:
    owner = int(system.owner[cells[0]])
    if owner >= 0:
        names = (system.tables[int(system.owner[c])].label(int(system.row[c])) for c in cells)
        return system.tables[owner].name, tuple(names)
    relation = published.relations[-1 - owner]
    total = published[relation.total].label(int(system.row[cells[0]]))
    return relation.part, (f"{relation.part}: unlisted cells of {total}",)


def _before(published: PublishedTables, system: System, cells: Ints, confidence: float) -> float:
    """How large the largest of some hidden counts may be if only its suppression is known."""
    most = 0.0
    for owner in np.unique(system.owner[cells]):
        table = system.tables[owner] if owner >= 0 else published[published.relations[-1 - owner].part]
        if table.threshold is None:
            return float("inf")
        noise = sum_law([(table.noise or EXACT, 1.0, 1)]).half_width(1 - confidence)
        most = max(most, table.threshold + noise)
    return most
