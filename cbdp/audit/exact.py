"""Counts without noise: what protects them is hiding or rounding alone, and whoever knows the others knows the last one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cbdp.audit.finding import Figure, Finding
from cbdp.audit.tables import CountTable, PublishedTables
from cbdp.audit.undeclared import CHECK, SMALL, Taken, taken


def attack(published: PublishedTables) -> list[Finding]:
    """Which tables are exact or merely rounded, by their own word or by their numbers, and what small counts they show."""
    seen = taken(published)
    tables = [published[name] for name in seen.exact]
    if not tables:
        return []
    claimed = [t for t in tables if t.noise is not None]
    findings = [_claim(published, claimed)] if published.epsilon is not None and claimed else []
    return [*findings, _exact(tables, seen)]


def left_out(published: PublishedTables) -> list[str]:
    """Tables whose noise is neither declared nor to be recovered."""
    unknown = taken(published).unknown
    if not unknown:
        return []
    return [
        f"{_names(unknown)}: no noise is declared, the numbers disagree, and too few differences tell its size: not attacked."
    ]


def _claim(published: PublishedTables, tables: list[CountTable]) -> Finding:
    return Finding(
        CHECK, "contradicts", f"ε is claimed, and {_names(t.name for t in tables)} {_has(len(tables))} no noise",
        f"ε = {published.epsilon:g} is claimed for tables of which some declare that no noise was added. Exact counts have no ε.",
        "Whoever knows all trips but one reads that one off an exact count.",
        "Add noise to every table that is published, or claim nothing.", {"tables": len(tables)},
    )  # fmt: skip


def _exact(tables: list[CountTable], seen: Taken) -> Finding:
    names = _names(t.name for t in tables)
    rounded = {t.name: seen.rounded[t.name] for t in tables if t.name in seen.rounded}
    plain = [t for t in tables if t.name not in rounded]
    small = {t.name: _small(t) for t in plain if _small(t)}
    figures: dict[str, Figure] = {
        "tables": len(tables),
        "small": sum(small.values()),
        "compared": seen.compared,
    }
    how = "are rounded, and otherwise exact" if not plain else "are exact"
    return Finding(
        CHECK, "weakness", f"The counts of {names} {how}",
        " ".join([_why(tables, seen), *_roundings(rounded), _shown(plain, small)]).strip(),
        "Whoever knows all trips but one reads that one off the counts, or off the difference to another table, on any day.",
        "Add noise to the counts, and publish its law and scale.", figures,
    )  # fmt: skip


def _why(tables: list[CountTable], seen: Taken) -> str:
    said = sum(t.noise is not None for t in tables)
    why = "They declare it." if said == len(tables) else "No noise is declared."
    how = "but for rounding" if seen.rounded else "as only counts without noise do"
    agree = f" {seen.compared:,} sums and pairs agree {how}." if seen.compared else ""
    return why + agree


def _roundings(rounded: dict[str, int]) -> list[str]:
    return [f"{name!r} is rounded to multiples of {base}." for name, base in rounded.items()]


def _shown(tables: list[CountTable], small: dict[str, int]) -> str:
    if small:
        each = ", ".join(f"{many:,} in {name!r}" for name, many in small.items())
        return f"Counts from 1 to {SMALL - 1} that are shown: {each}."
    least = [float(c.min()) for t in tables if len(c := t.counts[t.shown & (t.counts > 0)])]
    return f"The least count shown is {min(least):g}." if least else ""


def _small(table: CountTable) -> int:
    counts = table.counts[table.shown]
    return int(((counts > 0) & (counts < SMALL)).sum()) if np.isfinite(counts).all() else 0


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _has(many: int) -> str:
    return "has" if many == 1 else "have"
