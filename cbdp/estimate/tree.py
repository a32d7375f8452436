"""Generalised least squares on a tree: the closed form behind the hierarchical mechanism.

Every node has a noisy answer with its level's variance (infinite: not measured). Bottom-up, a node's own answer and
the sum of its children's are combined by inverse variance (T₁); top-down, the difference between a node's final value
and its children's sum is shared among the children by variance. With equal fan-out and equal noise this is the
formula of Hay and others; the result is the least-squares consistent tree for any fan-out and any noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats
from cbdp.features import FeatureDag
from cbdp.solvers.problem import bincount


@dataclass(frozen=True, eq=False)
class Tree:
    """Levels from the root to the leaves; `parent[i]` is the node of level i that holds each node of level i + 1."""

    parent: Sequence[NDArray[Any]]

    @property
    def sizes(self) -> list[int]:
        return [1, *(len(p) for p in self.parent)]


def tree_of(dag: FeatureDag) -> Tree:
    """The tree of a DAG whose features form a chain."""
    levels = list(dag.features)
    parent = [dag.map_elements(fine, coarse) for coarse, fine in pairwise(levels[:-1])]
    last = dag.cells.element_of_cell[levels[-2]]
    return Tree([*parent, last[dag.cell_of_leaf]])


def combine(
    tree: Tree, noisy: Sequence[NDArray[Any]], variance: Sequence[float]
) -> tuple[list[Floats], list[Floats]]:
    """T₁ and its variance by node: each node's best estimate from its own subtree."""
    values = [np.asarray(noisy[-1], dtype=float)]
    spread = [np.full(len(values[0]), float(variance[-1]))]
    for level in range(len(tree.parent) - 1, -1, -1):
        size = tree.sizes[level]
        below = bincount(tree.parent[level], values[0], size)
        below_spread = bincount(tree.parent[level], spread[0], size)
        own = 1.0 / variance[level]  # zero for a level that is not measured
        precision = own + 1.0 / below_spread
        answer = np.asarray(noisy[level], dtype=float) if np.isfinite(variance[level]) else np.zeros(size)
        values.insert(0, (own * answer + below / below_spread) / precision)
        spread.insert(0, 1.0 / precision)
    return values, spread


def share(tree: Tree, values: Sequence[Floats], spread: Sequence[Floats], prune: bool) -> list[Floats]:
    """The consistent tree closest to T₁; with `prune`, non-positive nodes and all below them are zero."""
    final = [np.maximum(values[0], 0.0) if prune else values[0]]
    alive = final[0] > 0 if prune else np.ones(len(final[0]), dtype=bool)
    for level, parent in enumerate(tree.parent):
        value, weight = values[level + 1], spread[level + 1]
        alive = alive[parent] & (value > 0) if prune else np.ones(len(value), dtype=bool)
        kept = np.where(alive, value, 0.0)
        weight = np.where(alive, weight, 0.0)
        size = tree.sizes[level]
        total = bincount(parent, weight, size)
        missing = final[-1] - bincount(parent, kept, size)
        rate = np.divide(missing, total, out=np.zeros(size), where=total > 0)
        final.append(kept + weight * rate[parent])
    return final


def least_squares(
    tree: Tree, noisy: Sequence[NDArray[Any]], variance: Sequence[float], *, prune: bool = False
) -> list[Floats]:
    """The consistent tree closest to the noisy one, level by level."""
    values, spread = combine(tree, noisy, variance)
    return share(tree, values, spread, prune)
