"""Tries for the rows that solve a QP: O5, O5(a), O5(b) and O5(c) under other choices, each alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.ablation.case import TREE_ROWS, WHOLE_DAY, Case, per_type, say
from benchmarks.ablation.early_stop import EarlyStop
from benchmarks.ablation.errors import METRICS, PER_TYPE, Levels
from benchmarks.ablation.published import EPSILONS
from benchmarks.ablation.tree_programs import tree_tries

STOPS = {
    "OSQP, its default tolerance": EarlyStop(),
    "OSQP, 50 steps": EarlyStop(50),
    "OSQP, not scaled, 50 steps": EarlyStop(50, 0),
}


def qp_tries(case: Case, row: str, runs: int) -> Iterator[tuple[str, list[float]]]:
    """Errors at the three ε under each other choice."""
    yield from metric_tries(case, row, runs)
    yield from solver_tries(case, row)
    yield from data_tries(case, row, runs)
    if row in TREE_ROWS:
        yield from tree_tries(case, row, runs)


def metric_tries(case: Case, row: str, runs: int) -> Iterator[tuple[str, list[float]]]:
    found = {e: [feature_errors(case, row, e, seed) for seed in range(runs)] for e in EPSILONS}
    for name, metric in METRICS.items():
        yield name, [float(np.mean([metric(*errors) for errors in found[e]])) for e in EPSILONS]


def solver_tries(case: Case, row: str) -> Iterator[tuple[str, list[float]]]:
    for name, solver in STOPS.items():
        say(f"{row}, {name}")
        more = {"solver": solver, "tolerance": math.inf}  # or its answer would be refused
        yield name, [METRICS[PER_TYPE](*feature_errors(case, row, e, 0, **more)) for e in EPSILONS]


def data_tries(case: Case, row: str, runs: int) -> Iterator[tuple[str, list[float]]]:
    for seed in (1, 2):
        other = Case(case.day, case.hours, seed)
        errors = [float(per_type(other, row, e, runs).mean()) for e in EPSILONS]
        yield f"other synthetic demand, seed {seed}", errors
    whole = Case(case.day, WHOLE_DAY)
    yield "the whole service day", [float(per_type(whole, row, e, min(runs, 3)).mean()) for e in EPSILONS]


def feature_errors(case: Case, row: str, epsilon: str, seed: int, **more: Any) -> tuple[Levels, Levels]:
    """Errors by feature of the estimate, and of the published integers."""
    mechanism = case.mechanism(row, epsilon, **more)
    release = mechanism.simulate(case.truth, seed)
    assert release.estimate is not None
    dag = mechanism.features
    truth = {n: case.counts.of(dag, n) for n in dag.features}
    real = [release.estimate.counts(n) - truth[n] for n in dag.features]
    return real, [(release.counts(n) - truth[n]).astype(float) for n in dag.features]
