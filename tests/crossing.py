"""Cells with random fractions, in random sets: problems of any size, without a universe around them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbdp.rounding.bounds import CellProblem
from cbdp.rounding.crossing import crossing_pairs, exact_features

UNIT = 1 << 20


def instance(seed: int, cells: int, labels: Sequence[int]) -> CellProblem:
    """Features that give each cell one of so many labels at random, and the total."""
    rng = np.random.default_rng(seed)
    part = rng.integers(1, UNIT, cells)
    set_of_cell, low, high, sets = [], [], [], 0
    for many in (*labels, 1):
        used, number = np.unique(rng.integers(0, many, cells), return_inverse=True)
        held = np.zeros(len(used), dtype=np.int64)
        np.add.at(held, number, part)
        set_of_cell.append(number + sets)
        low.append(held // UNIT)
        high.append(-(-held // UNIT))
        sets += len(used)
    names = tuple(f"f{i}" for i in range(len(labels) + 1))
    bounds = np.concatenate(low), np.concatenate(high)
    return CellProblem(UNIT, np.arange(cells), UNIT - 2 * part, names, np.array(set_of_cell), *bounds)


def split(problem: CellProblem) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of sets that cross, and which sets are soft."""
    crossing = crossing_pairs(problem)
    return crossing, ~np.isin(problem.feature_of(), exact_features(problem, crossing))


def beyond(problem: CellProblem, up: np.ndarray) -> np.ndarray:
    """By how many trips each set is out of bounds."""
    count = np.zeros(len(problem.low), dtype=np.int64)
    for row in problem.set_of_cell:
        np.add.at(count, row, up)
    return np.maximum(np.maximum(problem.low - count, count - problem.high), 0)
