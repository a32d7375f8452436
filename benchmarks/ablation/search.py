"""The search for H5: of all readings of the mechanism and of the error, those closest to what was published."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.ablation.case import Case, say
from benchmarks.ablation.errors import METRICS, PER_TYPE
from benchmarks.ablation.evidence import HEADER as EVIDENCE_HEADER
from benchmarks.ablation.evidence import (
    Outcome,
    error_factor,
    evidence_row,
    negatives_factor,
    outcome,
    trips_factor,
)
from benchmarks.ablation.published import MET
from benchmarks.ablation.readings import AS_IN_TEXT, EVERY, Reading

FINALISTS = 5
PRICE = 1.02  # per change: of tries about as close, the one with fewer changes is preferred


@dataclass(frozen=True)
class Try:
    """A reading of the mechanism with a reading of the error, and how far each kind of evidence is from it."""

    reading: Reading
    found: Outcome
    metric: str = PER_TYPE

    def __str__(self) -> str:
        return str(self.reading) + ("" if self.metric == PER_TYPE else f" (error: {self.metric})")

    @property
    def changes(self) -> int:
        return len(self.reading.changes) + (self.metric != PER_TYPE)

    @property
    def error(self) -> float:
        return error_factor(self.found, self.metric)

    @property
    def trips(self) -> float:
        return trips_factor(self.found)

    @property
    def negatives(self) -> float:
        return negatives_factor(self.found) if all(self.found.negatives) else math.inf


ANY_ERROR = "error, read in any way"
RANKS: Mapping[str, Callable[[Try], float]] = {
    "error per type": lambda t: t.error,
    ANY_ERROR: lambda t: t.error,
    "trips": lambda t: t.trips,
    "negative leaves": lambda t: t.negatives,
    "error per type and trips": lambda t: max(t.error, t.trips),
    "error per type and negative leaves": lambda t: max(t.error, t.negatives),
    "trips and negative leaves": lambda t: max(t.trips, t.negatives),
    "all three, error read in any way": lambda t: max(t.error, t.trips, t.negatives),
}


def every_try(case: Case, runs: int) -> list[Try]:
    return [Try(r, outcome(case, r, runs), m) for r in EVERY for m in METRICS]


def closest(case: Case, tries: Sequence[Try], what: str, runs: int) -> Try:
    """The try that comes closest in one kind of evidence; the last few are measured again with more runs."""
    say(f"H5, closest in {what}")

    def rank(t: Try) -> float:
        return RANKS[what](t) * PRICE**t.changes

    among = [t for t in tries if "any way" in what or t.metric == PER_TYPE]
    finalists = sorted(among, key=rank)[:FINALISTS]
    return min((Try(t.reading, outcome(case, t.reading, runs), t.metric) for t in finalists), key=rank)


def _beside(what: str, off: str, explained: str, evidence: Sequence[str]) -> list[str]:
    """A row of evidence with one factor, that of what was searched for, in place of its own two."""
    name, errors, _, trips, _, *negatives = evidence
    return [what, name, off, explained, errors, trips, *negatives]


HEADER = _beside("closest in", "off by ×", "explained", EVIDENCE_HEADER)


def closest_row(what: str, best: Try) -> list[str]:
    off = RANKS[what](best)
    evidence = evidence_row(str(best), best.found, best.metric)
    return _beside(what, f"{off:.2f}", "yes" if off <= MET else "no", evidence)


def verdict(single: Mapping[Reading, Outcome], combined: Try) -> list[str]:
    base = single[AS_IN_TEXT]
    tries = [*(Try(r, o) for r, o in single.items()), *(Try(AS_IN_TEXT, base, m) for m in METRICS)]
    one = min(tries, key=lambda t: t.error)
    text = Try(AS_IN_TEXT, base).error
    best = min(one, combined, key=lambda t: t.error)
    met = "no" if best.error > MET else "yes" if max(best.trips, best.negatives) <= MET else "its error only"
    return ["H5", f"{text:.2f}", str(one), f"{one.error:.2f}", str(combined), f"{combined.error:.2f}", met]
