"""Tries for the rows that solve a QP: O5, O5(a), O5(b) and O5(c) under other choices, each alone; and what can go wrong only where the QP is given a tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import cbdp
from benchmarks.ablation.case import (
    EPSILONS,
    METRICS,
    PER_TYPE,
    TREE_ROWS,
    WHOLE_DAY,
    Case,
    Floats,
    Levels,
    per_type,
    root_mean_square,
    say,
    weights,
)
from benchmarks.ablation.hierarchy import Reading, by_level, children, noisy_tree
from cbdp.estimation.gls import tree_of
from cbdp.features import SINGLETON
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.solvers import LiftedSolver
from cbdp_solvers.problem import LiftedQP

# A solver as a hurried implementation may have used it


@dataclass(frozen=True)
class EarlyStop(LiftedSolver):
    """OSQP with its own default tolerances (1e-3), perhaps stopped early: an answer taken at its word."""

    name: ClassVar[str] = "osqp, as it comes"
    package: ClassVar[str | None] = "osqp"
    exact_values: ClassVar[bool] = False

    steps: int = 4000
    scaling: int = 10

    def solve_lifted(self, qp: LiftedQP) -> tuple[Floats, Floats, int]:
        import osqp
        import scipy.sparse as sp

        n, ties = len(qp.weight), qp.ties.shape[0]
        rows = sp.vstack([qp.ties, sp.eye(n)]).tocsc()
        low, high = (np.concatenate([np.zeros(ties), bound]) for bound in (qp.lower, qp.upper))
        solver = osqp.OSQP()
        settings = {"max_iter": self.steps, "scaling": self.scaling, "verbose": False}
        solver.setup(sp.diags(qp.weight).tocsc(), qp.linear, rows, low, high, **settings)
        found = solver.solve()
        return found.x, found.y[:ties], int(found.info.iter)


# Tries for O5(a) and O5(b) alone: what can go wrong only where the QP is given a tree


MEASURED = Reading(budget="uniform", root=True)  # as the QP rows measure


def tree_tries(case: Case, row: str, runs: int) -> Iterator[tuple[str, list[float]]]:
    for name, make in SHORTCUTS.items():
        yield name, [float(np.mean([leaf_error(case, make, e, s) for s in range(runs)])) for e in EPSILONS]
    found = {e: [misplaced(case, row, e, seed) for seed in range(runs)] for e in EPSILONS}
    for metric in (PER_TYPE, "RMS over all counting queries", "mean over features of RMS"):
        errors = [float(np.mean([METRICS[metric](*f) for f in found[e]])) for e in EPSILONS]
        yield f"nested nodes given un-nested counts, {metric}", errors


def misplaced(case: Case, row: str, epsilon: str, seed: int) -> tuple[Levels, Levels]:
    """Errors when each mode × zone pair × time node is compared with the count of its mode × time, not with its own."""
    flat, tree = case.features, case.trees["zones first"]
    noise = InsecureSeededEntropy(seed)
    noisy = {m.feature: m.values for m in cbdp.measure(case.counts, flat, epsilon, entropy=noise)}
    noisy["mode"] = noisy["mode"][flat.partition("mode").element_of(tree.partition("mode").representatives())]
    estimate = cbdp.post_process(tree, noisy, weights=weights(row))
    leaves = by_level(tree_of(tree), np.rint(estimate.counts(SINGLETON)))
    truth = [case.counts.of(tree, n) for n in tree.features]
    real = [estimate.counts(n) - t for n, t in zip(tree.features, truth, strict=True)]
    return real, [a - b for a, b in zip(leaves, truth, strict=True)]


def on_simplex(values: Floats, total: float) -> Floats:
    """The non-negative values with this sum that are closest to the given ones."""
    if total <= 0:
        return np.zeros(len(values))
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - excess[np.flatnonzero(ordered > excess)[-1]], 0.0))


def top_down(case: Case, epsilon: str, seed: int) -> Floats:
    """Consistency made from the root down: every node's children fitted to its final value, one level at a time."""
    tree, noisy, _ = noisy_tree(case, MEASURED, epsilon, seed)
    final = np.maximum(noisy[0], 0.0)
    for level, parent in enumerate(tree.parent):
        made = np.empty(len(parent))
        order = np.argsort(parent, kind="stable")
        for node, group in enumerate(np.split(order, np.cumsum(children(tree, level))[:-1].astype(int))):
            made[group] = on_simplex(noisy[level + 1][group], float(final[node]))
        final = made
    return final


def bottom_up(case: Case, epsilon: str, seed: int) -> Floats:
    """Consistency made from the leaves up: clipped leaves, and sums of them above."""
    _, noisy, _ = noisy_tree(case, MEASURED, epsilon, seed)
    return np.maximum(noisy[-1], 0.0)


SHORTCUTS: dict[str, Callable[[Case, str, int], Floats]] = {
    "fitted level by level from the root": top_down,
    "clipped leaves, summed": bottom_up,
}


def leaf_error(case: Case, make: Callable[[Case, str, int], Floats], epsilon: str, seed: int) -> float:
    return root_mean_square(np.rint(make(case, epsilon, seed)) - case.truth)


# Tries for the rows that solve a QP: O5, O5(a), O5(b) and O5(c) under other choices, each alone


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
