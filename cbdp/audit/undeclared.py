"""What an attacker takes the noise of a table for that declares none: for nothing, for rounding, or for what its differences show.

A table that says nothing of noise is exact until its numbers say otherwise. If all counts are multiples of some number, they were
rounded. If totals and parts disagree, there is noise after all: where enough differences show it, its scale is recovered
(`cbdp.audit.scale`); elsewhere the table cannot be attacked, and the audit says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from cbdp.audit import consistency, scale
from cbdp.audit.relations import EXACT
from cbdp.audit.tables import CountTable, PublishedTables
from cbdp.privacy.laws import Law

CHECK = "exact counts"
NOTHING = EXACT
RISK = 1e-6  # of calling counts rounded that are multiples by chance
SMALL = 5  # counts below it are few enough to point at somebody


@dataclass(frozen=True)
class Taken:
    """Tables with a law for each that can be attacked, and what was assumed for those that declare none."""

    published: PublishedTables
    settled: PublishedTables  # only those that are exact or rounded have got a law; noise that must be there is still unknown
    exact: tuple[str, ...] = ()  # tables that are taken for exact
    rounded: Mapping[str, int] = field(
        default_factory=dict
    )  # of these, the multiples that counts were rounded to
    recovered: Mapping[str, Law] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()  # noise that is there and could not be recovered
    compared: int = 0  # sums and pairs that agree, which noise would not have let them


def taken(published: PublishedTables) -> Taken:
    """The tables as an attacker takes them, with every law that was not declared."""
    silent = [t.name for t in published.tables if t.noise is None and t.may_be_exact and not t.derived]
    declared = [t.name for t in published.tables if t.bounded]
    if not silent:
        many = _agreeing(published, declared)
        return Taken(published, published, tuple(declared), _stated(published), compared=many)
    bases = {name: base for name in silent if (base := multiple(published[name])) > 1}
    nearest = {name: base // 2 for name, base in bases.items()}
    assumed = _assumed(published, silent, nearest)
    off = _disagreeing(assumed) & set(silent)
    if off & set(bases):  # rounded up or down at random, then: by less than the whole multiple
        assumed = _assumed(published, silent, {name: base - 1 for name, base in bases.items()})
        off = _disagreeing(assumed) & set(silent)
    recovered = _recovered(published, off)
    settled = assumed
    for name in off:
        assumed, settled = (
            _with(assumed, name, recovered.get(name), 0.0),
            _with(settled, name, None, 0.0),
        )
    exact = [*declared, *(n for n in silent if n not in off)]
    rounded = {**_stated(published), **{n: b for n, b in bases.items() if n not in off}}
    unknown = tuple(n for n in silent if n in off and n not in recovered)
    many = _agreeing(assumed, exact)
    return Taken(assumed, settled, tuple(exact), rounded, recovered, unknown, many)


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
    many = len(np.unique(counts))
    return shared if shared > 1 and many >= 3 and shared ** -float(many) <= RISK else 1


def _stated(published: PublishedTables) -> dict[str, int]:
    return {t.name: round(2 * t.rounding) for t in published.tables if t.bounded and t.rounding}


def _assumed(published: PublishedTables, names: list[str], rounding: Mapping[str, int]) -> PublishedTables:
    for name in names:
        published = _with(published, name, NOTHING, float(rounding.get(name, 0)))
    return published


def _with(published: PublishedTables, name: str, law: Law | None, rounding: float) -> PublishedTables:
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


def _recovered(published: PublishedTables, names: set[str]) -> dict[str, Law]:
    """The law that differences of undeclared tables show, where there are enough: the smallest that any group gives."""
    found: dict[str, Law] = {}
    for group in scale.residuals(published):
        if group.declared or len(group) < scale.FEWEST or not set(group.tables) <= names:
            continue
        law = group.one.times(scale.fit(group).scale)
        for name in group.tables:
            if name not in found or law.scale < found[name].scale:
                found[name] = law
    return found


def _agreeing(published: PublishedTables, exact: list[str]) -> int:
    """How many sums and pairs of exact tables were compared."""
    return consistency.compared(published, exact) if exact else 0
