"""Detection: where counts of zero get no noise, a published count proves that somebody was there.

A group of g people, alone at a count, is published when g plus the noise reaches the threshold. Without them the count is
never published. That event has probability P(Z ≥ threshold − g) with them and 0 without, so no ε covers it: for one person
its probability is a lower bound on δ. The attack is that of Culnane, Rubinstein and Teague (2017) on the Opal release; the threshold that
a δ needs is that of Korolova et al. (2009).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, gamma, norm

from cbdp.arrays import Floats
from cbdp.audit.findings import Finding, clear_finding
from cbdp.audit.tables import CountTable, PublishedTables
from cbdp.privacy.noise import NoiseDistribution

CHECK = "detection"
# people who are alone at a count, for each of which a finding states the probability
GROUP_SIZES = (1, 5, 12)
FALSE_ALARM_RISK = 1e-6  # of denying noise on zeros that is there
THRESHOLD_FALSE_ALARM_RISK = 1e-4  # of taking counts that are merely large for cut off
MIN_COUNT_SPAN = 4  # largest over least count: counts that are all alike are not small ones cut off
MIN_COUNTS = 20  # counts of a table: of fewer, the least says nothing


def detection_probability(noise: NoiseDistribution, threshold: float, group: int = 1) -> float:
    """The probability that a group which is alone at a count is published, and so detected for certain.

    >>> from cbdp.privacy.noise import noise_distribution
    >>> round(detection_probability(noise_distribution("laplace", 1.4), 18) * 1e6, 2), round(detection_probability(noise_distribution("laplace", 1.4), 18, 12), 4)
    (2.66, 0.0069)
    """
    return noise.reaches(threshold - group)


def assessed_delta(scale: float, threshold: float, group: int = 1) -> float:
    """The figure of Culnane et al. (2017), exp(−(threshold − group)/p)/(2p): the density at the threshold, not the chance to reach it.

    >>> f"{assessed_delta(1.4, 18):.2g} {assessed_delta(1.4, 18, 5):.2g} {assessed_delta(1.4, 18, 12):.2g}"
    '1.9e-06 3.3e-05 0.0049'
    """
    return math.exp(-(threshold - group) / scale) / (2 * scale)


@dataclass(frozen=True)
class Threshold:
    """The least count that a table shows, and how unlikely it is that smaller ones are missing by chance."""

    least: float
    at: int  # how many counts are the least
    near: int  # how many are below twice the least
    chance: float  # that nothing is smaller if nothing was cut off


def find_threshold(table: CountTable) -> Threshold | None:
    """The threshold that the published counts betray (left truncation); None where nothing suggests one.

    Counts that were cut off pile up at their least. Smooth laws (normal, lognormal, gamma) are fitted to them; the chance is
    the largest that any of these gives to no count below the least. Counts that merely are large, as totals are, thin out
    towards their least, and a fitted law explains that.

    >>> cut = [18 + k for k in range(60) for _ in range(60 // (k + 1))]
    >>> find_threshold(CountTable("t", {"k": range(len(cut))}, cut)).least
    18.0
    >>> large = [640 + 7 * (k % 9 + k % 7) for k in range(80)]
    >>> find_threshold(CountTable("t", {"k": range(80)}, large)) is None
    True
    """
    counts = table.counts[np.isfinite(table.counts) & (table.counts > 0)]
    if len(counts) < MIN_COUNTS or counts.min() <= 1 or counts.max() < MIN_COUNT_SPAN * counts.min():
        return None
    least = float(counts.min())
    chance = max((1 - below) ** len(counts) for below in _share_below(counts, least - 0.5))
    if chance > THRESHOLD_FALSE_ALARM_RISK:
        return None
    return Threshold(least, int((counts == least).sum()), int((counts < 2 * least).sum()), float(chance))


def _share_below(counts: Floats, least: float) -> list[float]:
    """The share that smooth laws, fitted to these counts by their moments, have below a value."""
    mean, spread = float(counts.mean()), float(counts.std())
    logs = np.log(counts)
    shape = (mean / spread) ** 2
    return [
        float(norm.cdf(least, mean, spread)),
        float(norm.cdf(math.log(least), logs.mean(), logs.std())),
        float(gamma.cdf(least, shape, scale=mean / shape)),
    ]


def attack(published: PublishedTables, groups: Sequence[int] = GROUP_SIZES) -> list[Finding]:
    """The chances of certain detection, and the δ they force; tables that skip zeros against what is said of them."""
    complete = _complete_totals(published)
    findings = [f for t in published.tables for f in _check_thresholds(t, silent=t.name not in complete)]
    findings += [f for table in published.tables for f in _check_zero_noise(table)]
    skipping = 0
    for family in published.families:
        open_to = [t for t in family if not t.shows_zeros]
        skipping += len(open_to)
        if open_to:
            findings.append(_detection_finding(published, open_to, groups))
    noisy = [t for t in published.tables if t.noise is not None and t.noise.scale]
    if not skipping and (noisy or any(t.derived for t in published.tables)):
        findings.append(_no_zeros_skipped(noisy))
    return findings


def left_out(published: PublishedTables) -> list[str]:
    """Why nothing could be said of empty cells, where it could not."""
    silent = [t for t in published.tables if t.noise is None and not t.derived]
    names = ", ".join(repr(t.name) for t in silent)
    return (
        [f"No noise is declared for {names}: whether empty cells get any was not checked."] if silent else []
    )


def _complete_totals(published: PublishedTables) -> set[str]:
    """Totals that hide no row, and lack none that their parts have: nothing of them was cut off, however large they are."""
    totals = {s.total for s in published.relations}
    lacking = {
        s.total for s in published.relations if ((np.asarray(s.rows) < 0) & published[s.part].shown).any()
    }
    return {name for name in totals - lacking if np.isfinite(published[name].counts).all()}


def _no_zeros_skipped(noisy: Sequence[CountTable]) -> Finding:
    """That no table skips zeros, with how many empty cells without noise would have been seen."""
    tested = [(t.name, _detectable_zeros(t), len(t)) for t in noisy if t.threshold is None]
    detectable = "; ".join(
        f"{most:,} of {cells:,} in {name!r}" for name, most, cells in tested[:4] if most <= cells
    )
    power = (
        f"Empty cells that got no noise would have been found for certain from this many on: {detectable}."
        if detectable
        else "This is what the tables declare: their counts are too few or too far from 0 to test it."
    )
    return clear_finding(
        CHECK,
        "No table skips zeros",
        "Empty cells get noise like all others: no published count proves "
        "that somebody was there, and the noise needs no δ.",
        power,
    )


def _detectable_zeros(table: CountTable) -> int:
    """The least number of exact zeros that contradicts the declared noise."""
    assert table.noise is not None
    return (
        int(binom.isf(FALSE_ALARM_RISK, len(table), float(table.noise.pmf(0)))) + 1
        if table.noise.whole
        else 1
    )


def forced_delta(tables: Sequence[CountTable], group: int = 1) -> float | None:
    """The chance that a group which is alone in all of these tables shows in at least one; None if no noise is known."""
    declared = [(t.noise, _least(t)) for t in tables if t.noise is not None]
    if not declared:
        return None
    missed = sum(
        math.log1p(-min(detection_probability(noise, least, group), 1 - 1e-16)) for noise, least in declared
    )
    return -math.expm1(missed)


def _least(table: CountTable) -> float:
    """The least count that can be published: the threshold, the one found, or 1."""
    if table.threshold is not None:
        return max(table.threshold, 1.0)
    threshold = find_threshold(table)
    return threshold.least if threshold else 1.0


def _detection_finding(
    published: PublishedTables, tables: Sequence[CountTable], groups: Sequence[int]
) -> Finding:
    names = ", ".join(repr(t.name) for t in tables[:4]) + (
        f" and {len(tables) - 4} more" if len(tables) > 4 else ""
    )
    delta = forced_delta(tables)
    if delta is None:
        return Finding(
            CHECK, "weakness", f"Zeros are skipped in {names}", "A published count proves that somebody was there. How likely "
            "that is cannot be told from the tables alone, because the noise is not declared.", ATTACK_TEXT, CURE_TEXT,
        )  # fmt: skip
    chances = {g: forced_delta(tables, g) or 0.0 for g in groups}
    each = "; ".join(f"{g} {'person' if g == 1 else 'people'}: {p:.2g}" for g, p in chances.items())
    figures: dict[str, float | int | str] = {"delta": delta, "declared_delta": published.delta}
    figures |= {f"group_{g}": p for g, p in chances.items()}
    single = [t for t in tables if t.noise is not None and t.noise.scale]
    if single:
        figures["assessed_delta"] = max(
            assessed_delta(float(t.noise.scale), _least(t)) for t in single if t.noise
        )
    evidence = f"The chance that a group is detected beyond doubt if nobody else is there: {each}. Any (ε, δ) needs δ ≥ {delta:.2g}"
    if published.epsilon is not None and delta > published.delta * (1 + 1e-9):
        claim = f"(ε, δ = {published.delta:.2g})" if published.delta else "pure ε-differential privacy"
        return Finding(
            CHECK, "contradicts", f"Skipping zeros in {names} needs a larger δ than claimed",
            f"{evidence}; the claim is {claim}.", ATTACK_TEXT, CURE_TEXT, figures,
        )  # fmt: skip
    covered = (
        f"; the declared δ is {published.delta:.2g}."
        if published.epsilon is not None
        else "; none is claimed."
    )
    title = f"Zeros are skipped in {names}: a count proves that somebody was there"
    return Finding(CHECK, "weakness", title, evidence + covered, ATTACK_TEXT, CURE_TEXT, figures)


ATTACK_TEXT = (
    "Find a place and time that only one person or group can have used. If a count is published there, they were there: "
    "without them there would be none."
)
CURE_TEXT = "Add noise to counts of zero as to all others (suppression then costs nothing), or declare the δ that skipping them costs."


def _check_thresholds(table: CountTable, *, silent: bool) -> list[Finding]:
    """A threshold that the counts give away and nothing declares, and counts that a declared one should have hidden."""
    if table.threshold is None:
        threshold = find_threshold(table) if silent else None
        if threshold is None:
            return []
        return [
            Finding(
                CHECK, "weakness", f"{table.name!r} shows no counts below {threshold.least:g}, and declares no threshold",
                f"The smallest count is {threshold.least:g} (it occurs {times_text(threshold.at)}); {threshold.near} counts are below twice "
                f"that, and none is smaller. The probability of this by chance is {_small_text(threshold.chance)}.",
                "A missing count is known to be small.", "Publish the threshold.",
                {"threshold": threshold.least, "at_threshold": threshold.at, "near": threshold.near},
            )
        ]  # fmt: skip
    counts = table.counts
    wrong = np.flatnonzero(np.isfinite(counts) & (counts != 0) & (np.ceil(table.threshold - 0.5) > counts))
    if not len(wrong):
        return []
    return [
        Finding(
            CHECK, "contradicts", f"{_counts_text(len(wrong))} in {table.name!r} below its threshold",
            f"The threshold is {table.threshold:g}; {table.label(int(wrong[0]))} is {counts[wrong[0]]:g}.",
            "Small counts are shown although they are said to be hidden.", "Suppress them, or declare the threshold that was used.",
            {"below": len(wrong), "threshold": float(table.threshold)},
        )
    ]  # fmt: skip


def _counts_text(number: int) -> str:
    return "One count is shown" if number == 1 else f"{number:,} counts are shown"


def times_text(number: int) -> str:
    """How often, in words.

    >>> times_text(1), times_text(3)
    ('once', '3 times')
    """
    return "once" if number == 1 else f"{number:,} times"


def _small_text(chance: float) -> str:
    return "below 1e-300" if chance < 1e-300 else f"about {chance:.1g}"


def _check_zero_noise(table: CountTable) -> list[Finding]:
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
        seen, expected = int(table.shown.sum()), detection_probability(table.noise, table.threshold, 0)
        chance = float(binom.cdf(seen, cells, expected))
        what = f"{seen} of {cells} cells are shown; the noise alone would show a share of {expected:.3g}"
    if chance > FALSE_ALARM_RISK:
        return []
    return [
        Finding(
            CHECK, "contradicts", f"Zeros of {table.name!r} have no noise, though the release says that they do",
            f"{what}. The probability of this by chance is {_small_text(chance)}.", ATTACK_TEXT, CURE_TEXT, {"chance": chance, "seen": seen},
        )
    ]  # fmt: skip
