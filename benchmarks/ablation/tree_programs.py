"""Tries for O5(a) and O5(b) alone: what can go wrong only where the QP is given a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import cbdp
from benchmarks.ablation.case import Case, weights
from benchmarks.ablation.errors import METRICS, PER_TYPE, Floats, Levels, root_mean_square
from benchmarks.ablation.hierarchy import by_level, children, noisy_tree
from benchmarks.ablation.published import EPSILONS
from benchmarks.ablation.readings import Reading
from cbdp.estimation.gls import tree_of
from cbdp.features import SINGLETON
from cbdp.privacy.entropy import InsecureSeededEntropy

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
