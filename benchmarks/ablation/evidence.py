"""What one reading of H5 gives, set beside everything the paper says of H5: errors, trips and negative leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from benchmarks.ablation.case import Case
from benchmarks.ablation.errors import METRICS, PER_TYPE, Levels
from benchmarks.ablation.hierarchy import by_level, fit, noisy_tree
from benchmarks.ablation.published import (
    EVIDENCE,
    H5_BELOW,
    H5_ERRORS,
    H5_NEGATIVES,
    H5_TRIPS,
    at_published,
    factor,
)
from benchmarks.ablation.readings import Reading
from benchmarks.harness.markdown import figure, figures

HEADER = (
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
