"""Readings of H5 beside everything the paper says of it, and the search for those closest to what was published."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from benchmarks.ablation.case import (
    EVIDENCE,
    H5_BELOW,
    H5_ERRORS,
    H5_NEGATIVES,
    H5_TRIPS,
    MET,
    METRICS,
    PER_TYPE,
    Case,
    Levels,
    at_published,
    factor,
    say,
)
from benchmarks.ablation.hierarchy import AS_IN_TEXT, EVERY, Reading, by_level, fit, noisy_tree
from benchmarks.harness.markdown import figure, figures

# What one reading of H5 gives, set beside everything the paper says of H5: errors, trips and negative leaves


EVIDENCE_HEADER = (
    "H5 read as", "error at ε = 1 / 0.1 / 0.01", "off by ×", "trips at ε = 0.1 / 0.05 / 0.01", "off by ×",
    "leaves below 0", "their mean at ε = 1 / 0.01",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    errors: dict[str, float]  # by metric
    trips: float
    negatives: float  # how many leaves are below zero
    below: float  # their sum


@dataclass(frozen=True)
class Outcome:
    """What was measured of one reading: means over runs, by ε of `EVIDENCE`."""

    errors: dict[str, list[float]] = field(default_factory=lambda: {m: [] for m in METRICS})
    trips: list[float] = field(default_factory=list)
    negatives: list[float] = field(default_factory=list)
    below: list[float] = field(default_factory=list)  # mean of the negative leaves

    def add(self, runs: list[Run]) -> None:
        for metric in METRICS:
            self.errors[metric].append(float(np.mean([r.errors[metric] for r in runs])))
        self.trips.append(float(np.mean([r.trips for r in runs])))
        self.negatives.append(float(np.mean([r.negatives for r in runs])))
        self.below.append(sum(r.below for r in runs) / max(sum(r.negatives for r in runs), 1))


@cache
def outcome(case: Case, reading: Reading, runs: int) -> Outcome:
    made = Outcome()
    dag = case.trees[reading.order]
    truth = [case.counts.of(dag, n).astype(float) for n in dag.features]
    for epsilon in EVIDENCE:
        made.add([_run(case, reading, epsilon, seed, truth) for seed in range(runs)])
    return made


def _run(case: Case, reading: Reading, epsilon: str, seed: int, truth: Levels) -> Run:
    tree, noisy, variance = noisy_tree(case, reading, epsilon, seed)
    final = fit(tree, noisy, variance, reading)
    rounded = np.rint(final[-1])
    whole = by_level(tree, np.maximum(rounded, 0.0))
    real_errors = [a - b for a, b in zip(final, truth, strict=True)]
    whole_errors = [a - b for a, b in zip(whole, truth, strict=True)]
    errors = {name: metric(real_errors, whole_errors) for name, metric in METRICS.items()}
    negative = rounded < 0
    return Run(errors, float(whole[0][0]), float(negative.sum()), float(rounded[negative].sum()))


def error_factor(found: Outcome, metric: str) -> float:
    return factor(at_published(found.errors[metric]), H5_ERRORS)


def trips_factor(found: Outcome) -> float:
    return factor(found.trips[1:], H5_TRIPS.values())  # nothing is published at ε = 1


def negatives_factor(found: Outcome) -> float:
    below = (-found.below[0], -found.below[-1])
    return max(
        factor([float(np.mean(found.negatives))], [H5_NEGATIVES]),
        factor(below, [-b for b in H5_BELOW]),
    )


def evidence_row(name: str, found: Outcome, metric: str = PER_TYPE) -> list[str]:
    return [
        name,
        figures(at_published(found.errors[metric])),
        f"{error_factor(found, metric):.2f}",
        figures(found.trips[1:]),
        f"{trips_factor(found):.2f}",
        figure(float(np.mean(found.negatives))),
        figures([found.below[0], found.below[-1]]) if any(found.negatives) else "none",
    ]


def published_row() -> list[str]:
    trips = figures(H5_TRIPS.values())
    return ["published", figures(H5_ERRORS), "", trips, "", figure(H5_NEGATIVES), figures(H5_BELOW)]


# The search for H5: of all readings of the mechanism and of the error, those closest to what was published


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
