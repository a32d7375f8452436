"""Consistency: tables that disagree beyond their declared noise, and rows that a sound table cannot have.

A total less the sum of its parts, and the difference of two counts with equal truth, are sums of declared noises. The exact distribution
of that sum (`cbdp.audit.scale_recovery`) gives the p-value of each comparison; all together share a risk of 1e-6 (Bonferroni). Tables are
then looked at one by one: cells listed twice, impossible numbers, rows in the order of insertion.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.audit.findings import Finding, clear_finding
from cbdp.audit.scale_recovery import SumDistribution, sum_distribution
from cbdp.audit.tables import CountTable, PublishedTables, Sum, joint_codes
from cbdp.privacy.noise import NoiseDistribution

CHECK = "consistency"
FALSE_ALARM_RISK = 1e-6  # of calling sound tables inconsistent, over all comparisons together
POWER = 0.95  # the probability with which a change must be found to be stated as detectable
MAX_CELLS_NAMED = 3  # cells: a finding names the worst, and counts the others


def attack(published: PublishedTables) -> list[Finding]:
    """What is wrong with the tables taken together, and with each on its own; one clear finding if nothing is."""
    compared = list(_comparisons(published))
    findings = list(_disagreements(compared))
    for table in published.tables:
        findings += _check_table(table)
    findings += _check_unlisted_parts(published)
    if findings:
        return findings
    comparisons = sum(len(c.off) for c in compared)
    agree = "The tables agree within their noise" if comparisons else "The rows of every table are sound"
    sums = f"{comparisons:,} sums and pairs were compared; " if comparisons else ""
    rows = sum(len(t) for t in published.tables)
    return [
        clear_finding(
            CHECK,
            agree,
            f"{sums}cells, counts and the order of {rows:,} rows in {len(published.tables)} tables are sound.",
            _power(compared, comparisons),
            {"comparisons": comparisons, "tables": len(published.tables)},
        )
    ]


def left_out(published: PublishedTables) -> list[str]:
    """What could not be compared, and why."""
    if sum(len(c.off) for c in _comparisons(published)):
        return []
    return [
        "No table adds up another with noise that is declared for both: whether the tables agree was not checked."
    ]


def _power(compared: list[_Comparison], comparisons: int) -> str:
    """How large a change of one count would have been found, where there is least noise and where there is most."""
    rows = "A cell listed twice, a count that is not whole, negative or infinite, and rows out of order are found for certain."
    ends = [end for c in compared for end in c.detectable_changes(comparisons)]
    if not ends:
        return rows
    least, most = min(ends), max(ends)
    upto = f"; in the tables with least noise, by {_size(least)} or more" if least < 0.9 * most else ""
    sure = f"with a probability of {100 * POWER:g} %"
    return f"A count that is off by {_size(most)} or more would have been found {sure}{upto}. {rows}"


def _size(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


# Sums and pairs


@dataclass(frozen=True, eq=False)
class _Comparison:
    """Differences that should be 0 up to noise, each with its chance and the name of its cell."""

    first: CountTable
    rows: Ints
    against: str
    off: Floats
    chance: Floats
    exact: bool
    other: str  # the table that is compared with
    # of differences that are bounded on both sides: noise, and rounding
    laws: tuple[tuple[SumDistribution, float], ...] = ()

    @property
    def noisy(self) -> bool:
        """Whether there is noise that could explain a difference."""
        return self.exact or any(law.variance for law, _ in self.laws) or not self.laws

    def detectable_changes(self, comparisons: int) -> list[float]:
        """The changes of one count that are found with 95 %, one for each law; an exact count shows any change."""
        if self.exact:
            return [1.0] if len(self.off) else []
        alpha = max(FALSE_ALARM_RISK / max(1, comparisons), 1e-15)
        return [
            max(
                1.0,
                rounding + (law.half_width(alpha) + law.half_width(2 * (1 - POWER)) if law.variance else 0.0),
            )
            for law, rounding in self.laws
        ]


def disagreeing(published: PublishedTables) -> list[tuple[str, str]]:
    """Which tables disagree: pairs of their names."""
    comparisons = list(_comparisons(published))
    tests = max(1, sum(len(c.off) for c in comparisons))
    return [(c.first.name, c.other) for c in comparisons if (c.chance * tests <= FALSE_ALARM_RISK).any()]


def compared(published: PublishedTables, names: Collection[str]) -> int:
    """How many sums and pairs among these tables are compared."""
    selected = (c for c in _comparisons(published) if c.first.name in names and c.other in names)
    return sum(len(c.off) for c in selected)


def _disagreements(comparisons: list[_Comparison]) -> Iterator[Finding]:
    tests = max(1, sum(len(c.off) for c in comparisons))
    for c in comparisons:
        wrong = np.flatnonzero(c.chance * tests <= FALSE_ALARM_RISK)
        if not len(wrong):
            continue
        worst = wrong[np.lexsort((-np.abs(c.off[wrong]), c.chance[wrong]))]
        named = "; ".join(
            f"{c.first.label(int(c.rows[i]))} by {c.off[i]:+.6g}" for i in worst[:MAX_CELLS_NAMED]
        )
        more = f" and {len(wrong) - MAX_CELLS_NAMED} more" if len(wrong) > MAX_CELLS_NAMED else ""
        least = float(c.chance[worst[0]]) * tests
        why = (
            "They are claimed to agree exactly."
            if c.exact
            else f"With the declared noise this has a probability of at most {least:.1g}."
            if c.noisy
            else "No noise is declared that could explain it."
        )
        yield Finding(
            CHECK, "contradicts", f"{c.first.name!r} disagrees with {c.against} in {len(wrong)} of {len(c.off)} counts",
            f"{named}{more}. {why}",
            "Counts that the noise does not explain were changed, or the noise is not the declared one.",
            "Publish the tables as they were made, with the law and scale of their noise.",
            {"disagree": len(wrong), "compared": len(c.off), "largest": float(np.abs(c.off[wrong]).max()), "chance": least},
        )  # fmt: skip


def _comparisons(published: PublishedTables) -> Iterator[_Comparison]:
    for p in published.equal:
        one, other = published[p.first], published[p.second]
        if one.noise is not None and other.noise is not None:
            both = one.shown[p.first_rows] & other.shown[p.second_rows]
            rows = p.first_rows[both]
            off = one.counts[rows] - other.counts[p.second_rows[both]]
            law, rounding = (
                sum_distribution([(one.noise, 1.0, 1), (other.noise, 1.0, 1)]),
                one.rounding + other.rounding,
            )
            chance = law.tail(np.maximum(np.abs(off) - rounding, 0.0))
            laws = ((law, rounding),) if len(off) else ()
            yield _Comparison(one, rows, f"its equal in {other.name!r}", off, chance, False, other.name, laws)
    for s in published.relations:
        compared = _sum_comparison(published[s.total], published[s.part], s)
        if compared is not None:
            yield compared


def _sum_comparison(total: CountTable, part: CountTable, s: Sum) -> _Comparison | None:
    """A total less its shown parts. Hidden parts are at least 0, and each is at most the threshold but for its noise."""
    at = np.asarray(s.rows)
    inside = at >= 0
    shown = part.shown & inside
    added = np.bincount(at[shown], weights=part.counts[shown], minlength=len(total))
    hidden = np.bincount(at[inside & ~part.shown], minlength=len(total))
    parts = np.bincount(at[shown], minlength=len(total))
    rows = np.flatnonzero(total.shown)
    off = (total.counts - added)[rows]
    against = f"the sums of {part.name!r}"
    if s.exact:
        wrong = (
            off < -1e-6 if not part.closed else np.where(hidden[rows] > 0, off < -1e-6, np.abs(off) > 1e-6)
        )
        return _Comparison(total, rows, against, off, np.where(wrong, 0.0, 1.0), True, part.name)
    if total.noise is None or part.noise is None:
        return None
    chance, laws = np.ones(len(rows)), []
    for k, h in np.unique(np.stack([parts[rows], hidden[rows]]), axis=1).T:
        here = (parts[rows] == k) & (hidden[rows] == h)
        rounding = total.rounding + int(k) * part.rounding
        chance[here] = _p_values(off[here], total.noise, part, int(k), int(h), rounding)
        if part.closed and not h:
            laws.append((sum_distribution([(total.noise, 1.0, 1), (part.noise, 1.0, int(k))]), rounding))
    return _Comparison(total, rows, against, off, chance, False, part.name, tuple(laws))


def _p_values(
    off: Floats, noise: NoiseDistribution, part: CountTable, shown: int, hidden: int, rounding: float
) -> Floats:
    """The chance of so large a difference: two-sided if all parts are shown, else on the sides that are bounded."""
    assert part.noise is not None
    law = sum_distribution([(noise, 1.0, 1), (part.noise, 1.0, shown)])
    beyond = np.sign(off) * np.maximum(np.abs(off) - rounding, 0.0)
    if part.closed and not hidden:
        return law.tail(beyond)
    below = np.where(beyond < 0, law.tail(beyond) / 2, 1.0)
    if not part.closed or part.threshold is None or part.complementary:
        return below
    over = beyond - hidden * (part.most_hidden if part.bounded else part.threshold)
    wide = sum_distribution([(noise, 1.0, 1), (part.noise, 1.0, shown + hidden)])
    return np.minimum(below, np.where(over > 0, np.minimum(1.0, wide.tail(over)), 1.0))


def _check_unlisted_parts(published: PublishedTables) -> Iterator[Finding]:
    """Parts that belong to no row of a total that lists all."""
    for s in published.relations:
        total, part = published[s.total], published[s.part]
        lost = np.flatnonzero((np.asarray(s.rows) < 0) & part.shown)
        if total.closed and len(lost):
            yield Finding(
                CHECK, "contradicts", f"{len(lost)} counts of {part.name!r} belong to no row of {total.name!r}",
                f"The first is {part.label(int(lost[0]))}; {total.name!r} is said to list all cells.",
                "Cells outside the declared universe come from the data: that they are listed reveals something.",
                "Publish a fixed list of cells that does not depend on the data.", {"outside": len(lost)},
            )  # fmt: skip


# One table


def _check_table(table: CountTable) -> Iterator[Finding]:
    yield from _check_cells(table)
    yield from _check_numbers(table)
    if order(table) is None:
        yield Finding(
            CHECK, "weakness", f"The rows of {table.name!r} are in no recognisable order",
            "They follow neither their keys nor their counts. Rows in the order in which they were met say which came first.",
            "If rows stand as they were inserted, the first row of a group tells who was there first, and one trip less "
            "would have moved it.",
            "Sort the rows by their keys before publication.",
        )  # fmt: skip


def _check_cells(table: CountTable) -> Iterator[Finding]:
    if table.keys:
        codes, _ = joint_codes(table.keys, table.keys)
        _, first, times = np.unique(codes, return_index=True, return_counts=True)
        twice = first[times > 1]
        if len(twice):
            yield Finding(
                CHECK, "contradicts", f"{len(twice)} cells of {table.name!r} are listed more than once",
                f"The first is {table.label(int(twice.min()))}.",
                "Several noisy answers about one count can be averaged: each costs privacy, and only one was counted.",
                "Publish every cell once.", {"duplicates": len(twice)},
            )  # fmt: skip
    if table.universe is not None and len(table) > table.universe:
        yield Finding(
            CHECK, "contradicts", f"{table.name!r} lists {len(table)} cells of a universe of {table.universe}",
            "There are more rows than cells that can be counted.",
            "Cells outside the declared universe come from the data: that they are listed reveals something.",
            "Publish a fixed list of cells that does not depend on the data.", {"cells": len(table)},
        )  # fmt: skip


def _check_numbers(table: CountTable) -> Iterator[Finding]:
    counts = table.counts
    finite = counts[np.isfinite(counts)]
    broken = np.flatnonzero(np.isfinite(counts) & (counts != np.round(counts)))
    noisy = table.noise is not None and bool(table.noise.scale)
    whole = table.noise.whole if noisy and table.noise is not None else 0 < len(broken) < len(finite)
    if whole and len(broken):
        yield Finding(
            CHECK, "contradicts" if noisy else "weakness",
            f"{len(broken)} counts of {table.name!r} are not whole numbers",
            f"{table.label(int(broken[0]))} is {counts[broken[0]]:g}, though noise and counts are whole.",
            "Digits after the decimal point can show how a number was made, and from which true count.",
            "Add whole noise to whole counts, or round before publication.", {"broken": len(broken)},
        )  # fmt: skip
    negative = np.flatnonzero(np.isfinite(counts) & (counts < 0))
    if len(negative) and not noisy:
        yield Finding(
            CHECK, "contradicts" if table.bounded else "weakness", f"{len(negative)} counts of {table.name!r} are negative",
            f"{table.label(int(negative[0]))} is {counts[negative[0]]:g}; no noise is declared that could explain it.",
            "A count below 0 shows that noise was added, and of what size.",
            "Declare the noise, or publish counts of at least 0.", {"negative": len(negative)},
        )  # fmt: skip
    if np.isinf(counts).any():
        yield Finding(
            CHECK, "contradicts", f"{int(np.isinf(counts).sum())} counts of {table.name!r} are infinite",
            f"The first is {table.label(int(np.flatnonzero(np.isinf(counts))[0]))}.", "", "Publish finite numbers.",
        )  # fmt: skip


def order(table: CountTable) -> str | None:
    """How a table's rows are ordered, in words; None if they follow nothing that is public.

    >>> order(CountTable("t", {"day": ["1", "1", "2"], "stop": ["B", "A", "A"]}, [3, 2, 9]))
    'by day, stop (descending)'
    >>> order(CountTable("t", {"stop": ["B", "C", "A", "D"]}, [3, 2, 9, 4])) is None
    True
    """
    if len(table) < 3 or table.canonical:
        return "as listed"
    # rows without a count may have been added by whoever describes the table
    listed = np.isfinite(table.counts)
    counts = table.counts[listed]
    if (np.diff(counts) >= 0).all() or (np.diff(counts) <= 0).all():
        return "by count"
    left = {name: _rank(column[listed]) for name, column in table.keys.items()}
    same = np.ones(max(0, len(counts) - 1), dtype=bool)  # neighbours that all keys so far leave equal
    sorted_by = []
    while left and same.any():
        step = {name: np.diff(code)[same] for name, code in left.items()}
        up = next((n for n, d in step.items() if (d >= 0).all()), None)
        down = next((n for n, d in step.items() if (d <= 0).all()), None)
        name = up or down
        if name is None:
            return None
        sorted_by.append(name if up else f"{name} (descending)")
        same &= np.diff(left.pop(name)) == 0
    return f"by {', '.join(sorted_by)}"


def _rank(column: NDArray[np.generic]) -> Ints:
    """Labels as numbers in their order: as numbers if they all are some, else as text."""
    if column.dtype.kind not in "iuf":
        try:
            column = column.astype(str).astype(np.float64)
        except ValueError:
            column = column.astype(str)
    _, rank = np.unique(column, return_inverse=True)
    return np.asarray(rank, dtype=np.int64)
