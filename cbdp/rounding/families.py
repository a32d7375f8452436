"""Which sets of cells cross, and whether they split into two families.

Sets that are nested or disjoint form a laminar family. Rows of two laminar families form a totally unimodular matrix
(Edmonds), so every floor and ceiling can be kept at once. Which sets cross is found among the cells that still have a
choice: there are two families if the graph of crossing sets can be coloured with two colours. Otherwise the features that
can, with the most elements, are kept exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Bools, Ints
from cbdp.rounding.problem import CellProblem

SUBSETS = 12  # features up to which every choice of exact ones is compared


def crossing_pairs(problem: CellProblem) -> Ints:
    """Pairs of sets that overlap and are not nested."""
    size, count = problem.size, len(problem.low)
    found = [np.zeros((0, 2), dtype=np.int64)]
    for one, other in combinations(problem.member, 2):
        pair, shared = np.unique(one * count + other, return_counts=True)
        first, second = np.divmod(pair, count)
        crosses = (shared < size[first]) & (shared < size[second])
        found.append(np.stack([first, second], axis=1)[crosses])
    return np.concatenate(found)


def exact_features(problem: CellProblem, crossing: Ints) -> list[int]:
    """Features (by position) whose sets form two laminar families: all if they do, else those with the most elements.

    Features whose counts are all whole already come before others: they are public counts, which must be met.
    """
    every = list(range(len(problem.names)))
    sets = len(problem.low)
    if _two_colours(sets, crossing):
        return every
    feature = problem.feature_of()
    ends = feature[crossing]
    sized = np.bincount(feature, minlength=len(every))
    free = np.bincount(feature, problem.high > problem.low, minlength=len(every))
    kept = largest_choice(np.where(free > 0, sized, sized + sets), np.unique(ends, axis=0))
    for extra in sorted(set(every) - set(kept), key=lambda f: (-int((feature == f).sum()), f)):
        # features that cross may still fit into two families set by set
        inside = np.isin(ends, [*kept, extra]).all(axis=1)
        if _two_colours(sets, crossing[inside]):
            kept = sorted([*kept, extra])
    return kept


def largest_choice(weight: NDArray[Any], pairs: Ints) -> list[int]:
    """The features with the most elements that split into two groups without a crossing pair in either."""

    def fits(rows: Sequence[int]) -> bool:
        return _two_colours(len(weight), pairs[np.isin(pairs, rows).all(axis=1)])

    crossed = [int(f) for f in np.unique(pairs)]
    alone = sorted(set(range(len(weight))) - set(crossed))
    chosen: list[int] = []
    if len(crossed) <= SUBSETS:
        choices = [c for r in range(len(crossed) + 1) for c in combinations(crossed, r)]
        choices.sort(key=lambda c: (-int(weight[list(c)].sum()), c))
        chosen = list(next(c for c in choices if fits(c)))
    else:
        for f in sorted(crossed, key=lambda f: (-int(weight[f]), f)):
            if fits([*chosen, f]):
                chosen.append(f)
    return sorted([*alone, *chosen])


def second_family(crossing: Ints, soft: Bools) -> Bools:
    """Which sets are of the second family, if those that are not soft form two."""
    one, other = _double_cover(len(soft), crossing[~soft[crossing].any(axis=1)])
    return one > other


def _two_colours(sets: int, pairs: Ints) -> bool:
    """Whether two colours can be given so that they differ on every pair."""
    one, other = _double_cover(sets, pairs)
    return not (one == other).any()


def _double_cover(sets: int, pairs: Ints) -> tuple[Ints, Ints]:
    """Each set twice, and every pair across: the component of each set's first and second copy.

    Two colours can be given so that they differ on every pair, if no set has both copies in one component.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    one, other = pairs[:, 0], pairs[:, 1]
    ends = np.concatenate([one, one + sets]), np.concatenate([other + sets, other])
    graph = coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(2 * sets, 2 * sets))
    part = connected_components(graph, directed=False)[1].astype(np.int64)
    return part[:sets], part[sets:]
