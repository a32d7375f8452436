"""Detection: where counts of zero get no noise, a published count proves that somebody was there.

A group of g people, alone at a count, is published when g plus the noise reaches the threshold. Without them the count is
never published. That event has probability P(Z ≥ threshold − g) with them and 0 without, so no ε covers it: for one person
its probability is a lower bound on δ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from cbdp.audit.finding import Finding
from cbdp.audit.tables import CountTable, PublishedTables
from cbdp.privacy.laws import Law

CHECK = "detection"
GROUPS = (1, 5, 12)
RISK = 1e-6


def detected(noise: Law, threshold: float, group: int = 1) -> float:
    """The probability that a group which is alone at a count is published, and so detected for certain.

    >>> from cbdp.privacy.laws import law_of
    >>> round(detected(law_of("laplace", 1.4), 18) * 1e6, 2), round(detected(law_of("laplace", 1.4), 18, 12), 4)
    (2.66, 0.0069)
    """
    return noise.reaches(threshold - group)


def assessed(scale: float, threshold: float, group: int = 1) -> float:
    """The assessment's figure, exp(−(threshold − group)/p)/(2p): the density at the threshold, not the chance to reach it.

    >>> f"{assessed(1.4, 18):.2g} {assessed(1.4, 18, 5):.2g} {assessed(1.4, 18, 12):.2g}"
    '1.9e-06 3.3e-05 0.0049'
    """
    return math.exp(-(threshold - group) / scale) / (2 * scale)


@dataclass(frozen=True)
class Threshold:
    """The least count that a table shows, and how unlikely it is that smaller ones are missing by chance."""

    least: float
    at: int  # how many counts are the least
    near: int  # how many are below twice the least
    chance: float


def find_threshold(table: CountTable) -> Threshold | None:
    """The threshold that the published counts betray; None where nothing suggests one.

    If smaller counts were at least as common as larger ones, each count below twice the least would have been at least
    the least with probability m/(2m − 1) at most.

    >>> table = CountTable("t", {"k": range(60)}, [18 + i % 17 for i in range(60)])
    >>> find_threshold(table).least
    18.0
    """
    counts = table.counts[np.isfinite(table.counts) & (table.counts > 0)]
    if not len(counts):
        return None
    least = float(counts.min())
    near = int((counts < 2 * least).sum())
    chance = (math.ceil(least) / max(1.0, 2 * math.ceil(least) - 1)) ** near if least > 1 else 1.0
    if chance > RISK:
        return None
    return Threshold(least, int((counts == least).sum()), near, chance)


def attack(published: PublishedTables, groups: Sequence[int] = GROUPS) -> list[Finding]:
    """The chances of certain detection, and the δ they force; tables that skip zeros against what is said of them."""
    findings = [f for table in published.tables for f in _thresholds(table)]
    findings += [f for table in published.tables for f in _zeros(table)]
    skipping = 0
    for family in published.families:
        open_to = [t for t in family if not t.shows_zeros]
        skipping += len(open_to)
        if open_to:
            findings.append(_detection(published, open_to, groups))
    if not skipping:
        findings.append(
            Finding(
                CHECK, "clear", "No table skips zeros", "Empty cells get noise like all others: no published count proves "
                "that somebody was there, and the noise needs no δ.",
            )
        )  # fmt: skip
    return findings


def forced(tables: Sequence[CountTable], group: int = 1) -> float | None:
    """The chance that a group which is alone in all of these tables shows in at least one; None if no noise is known."""
    known = [(t.noise, _least(t)) for t in tables if t.noise is not None]
    if not known:
        return None
    missed = sum(math.log1p(-min(detected(noise, least, group), 1 - 1e-16)) for noise, least in known)
    return -math.expm1(missed)


def _least(table: CountTable) -> float:
    """The least count that can be published: the threshold, the one found, or 1."""
    if table.threshold is not None:
        return max(table.threshold, 1.0)
    found = find_threshold(table)
    return found.least if found else 1.0


def _detection(published: PublishedTables, tables: Sequence[CountTable], groups: Sequence[int]) -> Finding:
    names = ", ".join(repr(t.name) for t in tables[:4]) + (
        f" and {len(tables) - 4} more" if len(tables) > 4 else ""
    )
    delta = forced(tables)
    if delta is None:
        return Finding(
            CHECK, "weakness", f"Zeros are skipped in {names}", "A published count proves that somebody was there. How likely "
            "that is cannot be told from the tables alone, because the noise is not declared.", _HOW, _CURE,
        )  # fmt: skip
    chances = {g: forced(tables, g) or 0.0 for g in groups}
    each = "; ".join(f"{g} {'person' if g == 1 else 'people'}: {p:.2g}" for g, p in chances.items())
    figures: dict[str, float | int | str] = {"delta": delta, "declared_delta": published.delta}
    figures |= {f"group_{g}": p for g, p in chances.items()}
    single = [t for t in tables if t.noise is not None and t.noise.scale]
    if single:
        figures["assessed_delta"] = max(assessed(float(t.noise.scale), _least(t)) for t in single if t.noise)
    told = f"The chance that a group is detected beyond doubt if nobody else is there: {each}. Any (ε, δ) needs δ ≥ {delta:.2g}"
    if published.epsilon is not None and delta > published.delta * (1 + 1e-9):
        claim = f"(ε, δ = {published.delta:.2g})" if published.delta else "pure ε-differential privacy"
        return Finding(
            CHECK, "contradicts", f"Skipping zeros in {names} needs a larger δ than claimed",
            f"{told}; the claim is {claim}.", _HOW, _CURE, figures,
        )  # fmt: skip
    covered = (
        f"; the declared δ is {published.delta:.2g}."
        if published.epsilon is not None
        else "; none is claimed."
    )
    title = f"Zeros are skipped in {names}: a count proves that somebody was there"
    return Finding(CHECK, "weakness", title, told + covered, _HOW, _CURE, figures)


_HOW = (
    "Find a place and time that only one person or group can have used. If a count is published there, they were there: "
    "without them there would be none."
)
_CURE = "Add noise to counts of zero as to all others (suppression then costs nothing), or declare the δ that skipping them costs."


def _thresholds(table: CountTable) -> list[Finding]:
    """A threshold that the counts give away and nothing declares, and counts that a declared one should have hidden."""
    if table.threshold is None:
        found = find_threshold(table)
        if found is None:
            return []
        return [
            Finding(
                CHECK, "weakness", f"{table.name!r} shows no counts below {found.least:g}, and declares no threshold",
                f"The smallest count is {found.least:g} (it occurs {found.at} times); {found.near} counts are below twice "
                f"that, and none is smaller. The probability of this by chance is {_small(found.chance)}.",
                "A missing count is known to be small.", "Publish the threshold.",
                {"threshold": found.least, "at_threshold": found.at, "near": found.near},
            )
        ]  # fmt: skip
    counts = table.counts
    wrong = np.flatnonzero(np.isfinite(counts) & (counts != 0) & (np.ceil(table.threshold - 0.5) > counts))
    if not len(wrong):
        return []
    return [
        Finding(
            CHECK, "contradicts", f"{len(wrong)} counts of {table.name!r} are below its threshold",
            f"The threshold is {table.threshold:g}; {table.label(int(wrong[0]))} is {counts[wrong[0]]:g}.",
            "Small counts are shown although they are said to be hidden.", "Suppress them, or declare the threshold that was used.",
            {"below": len(wrong), "threshold": float(table.threshold)},
        )
    ]  # fmt: skip


def _small(chance: float) -> str:
    return "below 1e-300" if chance < 1e-300 else f"about {chance:.1g}"


def _zeros(table: CountTable) -> list[Finding]:
    """Tables that claim noise on zeros and have none: too many counts are exactly 0, or too few cells are shown."""
    if not table.shows_zeros or table.noise is None or not table.noise.scale or not len(table):
        return []
    cells = max(table.universe or 0, len(table))
    if table.threshold is None:
        seen, expected = (
            int((table.counts == 0).sum()),
            float(table.noise.pmf(0)) if table.noise.whole else 0.0,
        )
        chance = float(binom.sf(seen - 1, len(table), expected))
        what = f"{seen} of {len(table)} counts are exactly 0; with the declared noise the expected share is at most {expected:.3g}"
    else:
        seen, expected = int(table.shown.sum()), detected(table.noise, table.threshold, 0)
        chance = float(binom.cdf(seen, cells, expected))
        what = f"{seen} of {cells} cells are shown; the noise alone would show a share of {expected:.3g}"
    if chance > RISK:
        return []
    return [
        Finding(
            CHECK, "contradicts", f"Zeros of {table.name!r} have no noise, though the release says that they do",
            f"{what}. The probability of this by chance is {_small(chance)}.", _HOW, _CURE, {"chance": chance, "seen": seen},
        )
    ]  # fmt: skip
