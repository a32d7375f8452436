"""Exact counts: tables without noise, by their own word or by their numbers, and what an attacker assumes of those that say nothing.

A table that says nothing of noise is exact until its numbers say otherwise. If all counts are multiples of some number, they were
rounded. If totals and parts disagree, there is noise after all: where enough differences show it, its scale is recovered
(`cbdp.audit.scale_recovery`); elsewhere the table cannot be attacked, and the audit says so. What protects exact counts is hiding or
rounding alone, and whoever knows the others knows the last one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from cbdp.audit import consistency, scale_recovery
from cbdp.audit.findings import Figure, Finding
from cbdp.audit.tables import NO_NOISE_DISTRIBUTION, CountTable, PublishedTables
from cbdp.privacy.noise import NoiseDistribution

CHECK = "exact counts"
ROUNDING_RISK = 1e-6  # of calling counts rounded that are multiples by chance
SMALL_COUNT = 5  # counts below it are few enough to point at somebody


@dataclass(frozen=True)
class AssumedNoise:
    """Tables with a law for each that can be attacked, and what was assumed for those that declare none."""

    published: PublishedTables
    settled: PublishedTables  # only those that are exact or rounded have got a law; noise that must be there is still unknown
    exact: tuple[str, ...] = ()  # tables that are taken for exact
    # of these, the multiples that counts were rounded to
    rounded: Mapping[str, int] = field(default_factory=dict)
    recovered: Mapping[str, NoiseDistribution] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()  # noise that is there and could not be recovered
    compared: int = 0  # sums and pairs that agree, which noise would not have let them


@lru_cache(maxsize=1)  # every attack asks for it, of the same tables
def assumed_noise(published: PublishedTables) -> AssumedNoise:
    """The tables as an attacker takes them, with every law that was not declared."""
    silent = [t.name for t in published.tables if t.noise is None and t.may_be_exact and not t.derived]
    declared = [t.name for t in published.tables if t.bounded]
    if not silent:
        agreeing = _comparisons_among(published, declared)
        return AssumedNoise(
            published, published, tuple(declared), _stated_rounding(published), compared=agreeing
        )
    bases = {name: base for name in silent if (base := multiple(published[name])) > 1}
    nearest = {name: base // 2 for name, base in bases.items()}
    assumed = _with_no_noise(published, silent, nearest)
    off = _disagreeing(assumed) & set(silent)
    if off & set(bases):  # rounded up or down at random, then: by less than the whole multiple
        assumed = _with_no_noise(published, silent, {name: base - 1 for name, base in bases.items()})
        off = _disagreeing(assumed) & set(silent)
    recovered = _recovered_noise(published, off)
    settled = assumed
    for name in off:
        assumed, settled = (
            _with_noise(assumed, name, recovered.get(name), 0.0),
            _with_noise(settled, name, None, 0.0),
        )
    exact = [*declared, *(n for n in silent if n not in off)]
    rounded = {**_stated_rounding(published), **{n: b for n, b in bases.items() if n not in off}}
    unknown = tuple(n for n in silent if n in off and n not in recovered)
    agreeing = _comparisons_among(assumed, exact)
    return AssumedNoise(assumed, settled, tuple(exact), rounded, recovered, unknown, agreeing)


def multiple(table: CountTable) -> int:
    """The largest number that all shown counts are multiples of, where that is no chance; else 1.

    >>> multiple(CountTable("t", {"k": range(12)}, [5 * k for k in range(12)]))
    5
    >>> multiple(CountTable("t", {"k": range(3)}, [5, 10, 25]))
    1
    """
    counts = table.counts[np.isfinite(table.counts) & (table.counts != 0)]
    if not len(counts) or (counts != np.round(counts)).any():
        return 1
    shared = math.gcd(*(int(c) for c in counts))
    distinct = len(np.unique(counts))
    return shared if shared > 1 and distinct >= 3 and shared ** -float(distinct) <= ROUNDING_RISK else 1


def _stated_rounding(published: PublishedTables) -> dict[str, int]:
    return {t.name: round(2 * t.rounding) for t in published.tables if t.bounded and t.rounding}


def _with_no_noise(
    published: PublishedTables, names: list[str], rounding: Mapping[str, int]
) -> PublishedTables:
    for name in names:
        published = _with_noise(published, name, NO_NOISE_DISTRIBUTION, float(rounding.get(name, 0)))
    return published


def _with_noise(
    published: PublishedTables, name: str, law: NoiseDistribution | None, rounding: float
) -> PublishedTables:
    tables = tuple(
        replace(t, noise=law, rounding=rounding or published[name].rounding if law is not None else 0.0)
        if t.name == name
        else t
        for t in published.tables
    )
    return replace(published, tables=tables)


def _disagreeing(published: PublishedTables) -> set[str]:
    """Tables whose relations noise as assumed does not explain."""
    return {name for pair in consistency.disagreeing(published) for name in pair}


def _recovered_noise(published: PublishedTables, names: set[str]) -> dict[str, NoiseDistribution]:
    """The law that differences of undeclared tables show, where there are enough: the smallest that any group gives."""
    laws: dict[str, NoiseDistribution] = {}
    for group in scale_recovery.residual_groups(published):
        if group.declared or len(group) < scale_recovery.MIN_RESIDUALS or not set(group.tables) <= names:
            continue
        law = group.one.times(scale_recovery.fit_scale(group).scale)
        for name in group.tables:
            if name not in laws or law.scale < laws[name].scale:
                laws[name] = law
    return laws


def _comparisons_among(published: PublishedTables, exact: list[str]) -> int:
    """How many sums and pairs of exact tables were compared."""
    return consistency.compared(published, exact) if exact else 0


# The attack


def attack(published: PublishedTables) -> list[Finding]:
    """Which tables are exact or merely rounded, by their own word or by their numbers, and what small counts they show."""
    seen = assumed_noise(published)
    tables = [published[name] for name in seen.exact]
    if not tables:
        return []
    claimed = [t for t in tables if t.noise is not None]
    findings = [_claim_finding(published, claimed)] if published.epsilon is not None and claimed else []
    return [*findings, _exact_finding(tables, seen)]


def left_out(published: PublishedTables) -> list[str]:
    """Tables whose noise is neither declared nor to be recovered."""
    unknown = assumed_noise(published).unknown
    if not unknown:
        return []
    return [
        f"{_names(unknown)}: no noise is declared, the numbers disagree, and too few differences tell its size: not attacked."
    ]


def _claim_finding(published: PublishedTables, tables: list[CountTable]) -> Finding:
    return Finding(
        CHECK, "contradicts", f"ε is claimed, and {_names(t.name for t in tables)} {_have(len(tables))} no noise",
        f"ε = {published.epsilon:g} is claimed for tables of which some declare that no noise was added. Exact counts have no ε.",
        "Whoever knows all trips but one reads that one off an exact count.",
        "Add noise to every table that is published, or claim nothing.", {"tables": len(tables)},
    )  # fmt: skip


def _exact_finding(tables: list[CountTable], seen: AssumedNoise) -> Finding:
    names = _names(t.name for t in tables)
    rounded = {t.name: seen.rounded[t.name] for t in tables if t.name in seen.rounded}
    plain = [t for t in tables if t.name not in rounded]
    small = {t.name: _small_counts(t) for t in plain if _small_counts(t)}
    figures: dict[str, Figure] = {
        "tables": len(tables),
        "small": sum(small.values()),
        "compared": seen.compared,
    }
    how = "are rounded, and otherwise exact" if not plain else "are exact"
    return Finding(
        CHECK, "weakness", f"The counts of {names} {how}",
        " ".join([_evidence_text(tables, seen), *_rounding_texts(rounded), _small_counts_text(plain, small)]).strip(),
        "Whoever knows all trips but one reads that one off the counts, or off the difference to another table, on any day.",
        "Add noise to the counts, and publish its law and scale.", figures,
    )  # fmt: skip


def _evidence_text(tables: list[CountTable], seen: AssumedNoise) -> str:
    declaring = sum(t.noise is not None for t in tables)
    why = "They declare it." if declaring == len(tables) else "No noise is declared."
    how = "but for rounding" if seen.rounded else "as only counts without noise do"
    agree = f" {seen.compared:,} sums and pairs agree {how}." if seen.compared else ""
    return why + agree


def _rounding_texts(rounded: dict[str, int]) -> list[str]:
    return [f"{name!r} is rounded to multiples of {base}." for name, base in rounded.items()]


def _small_counts_text(tables: list[CountTable], small: dict[str, int]) -> str:
    if small:
        each = ", ".join(f"{number:,} in {name!r}" for name, number in small.items())
        return f"Counts from 1 to {SMALL_COUNT - 1} that are shown: {each}."
    least = [float(c.min()) for t in tables if len(c := t.counts[t.shown & (t.counts > 0)])]
    return f"The least count shown is {min(least):g}." if least else ""


def _small_counts(table: CountTable) -> int:
    counts = table.counts[table.shown]
    return int(((counts > 0) & (counts < SMALL_COUNT)).sum()) if np.isfinite(counts).all() else 0


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _have(number: int) -> str:
    return "has" if number == 1 else "have"
