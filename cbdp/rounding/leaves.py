"""The leaves' whole counts once it is known which cells go up, and the final check of every count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cbdp.arrays import Bools, Ints
from cbdp.errors import SolverError
from cbdp.rounding.bounds import Sets, sums_by


def leaf_counts(sets: Sets, up: Bools) -> Ints:
    """In each cell the leaves with the largest fractions go up, as many as its count asks for."""
    whole = sets.leaves.low.copy()
    whole[sets.first.chosen(up)] += 1
    return whole


def violations(sets: Sets, whole: Ints, exact: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Every count of the answer against its bounds, in whole numbers; nothing is taken on trust.

    For each feature that is not kept: how many of its elements are off, and by how many trips the worst is.
    """
    counts = sums_by(sets.cell, whole)
    if (counts < sets.cells.low).any() or (counts > sets.cells.high).any():
        raise SolverError(
            "the trips of a cell were not rounded down or up: "
            "report this as a bug, with the estimate if it may be shown"
        )
    off, worst = {}, {}
    for name, beyond in beyond_bounds(sets, counts):
        if beyond.any() and name in exact:
            raise SolverError(
                f"counts of feature {name!r} were not rounded down or up: "
                "report this as a bug, with the estimate if it may be shown"
            )
        if beyond.any():
            off[name], worst[name] = int(np.count_nonzero(beyond)), int(beyond.max())
    return off, worst


def beyond_bounds(sets: Sets, counts: Ints) -> Iterator[tuple[str, Ints]]:
    """By feature, how many trips each element's count is below or above the whole numbers it may become; from the cells' counts."""
    for name, held in sets.element.items():
        own, count = sets.elements[name], sums_by(held, counts)
        yield name, np.maximum(np.maximum(own.low - count, count - own.high), 0)
