"""The shape of counts: which share of the types is empty, and how the others' means spread; judged by noisy counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cbdp.estimate.posterior.lattice import SHAPES, TINY, Lattice
from cbdp.estimate.posterior.settings import TUNING

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def strata(rate: Floats, many: int) -> Ints:
    """Groups of leaves of similar expected count: even in leaves where they are alike, and in trips where they are few.

    Expected counts that differ by less than half a per cent stand in the order of the leaves.
    """
    leading = np.maximum(rate, TINY).view(np.int64) >> 44  # exponent and 8 binary places of a float
    leading -= leading.min()
    begin = np.bincount(leading), np.bincount(leading, rate)
    leaves, trips = (np.cumsum(b) - b for b in begin)
    group = _groups(leading, rate, leaves.astype(float), trips, float(rate.sum()), many)
    filled = np.cumsum(np.bincount(group, minlength=many) > 0) - 1  # no group is empty
    made: Ints = filled[group]
    return made


@njit(cache=True, nogil=True)
def _groups(leading, rate, leaves, trips, total, many):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Each leaf's group, by the leaves and trips before it; `leaves` and `trips` are those before each leading number."""
    group = np.empty(len(rate), dtype=np.int64)
    for u in range(len(rate)):
        at = leading[u]
        leaves[at] += 1.0
        trips[at] += rate[u]
        place = 0.5 * trips[at] / max(total, TINY) + 0.5 * leaves[at] / len(rate)
        group[u] = min(int(place * many), many - 1)
    return group


def seen(column: Ints, group: Ints, columns: int) -> list[tuple[Ints, Ints]]:
    """For each group the columns that occur, and how often."""
    often = np.bincount(group * columns + column, minlength=(int(group.max()) + 1) * columns)
    return [(np.flatnonzero(row), row[row > 0]) for row in often.reshape(-1, columns)]


def evidence(
    table: Lattice, mean: Floats, found: Sequence[tuple[Ints, Ints]], shapes: Floats = SHAPES
) -> tuple[Floats, Floats]:
    """Groups × shapes: the log-likelihood of what was seen; and the mixtures of each."""
    mixed = table.mixtures(mean, shapes)
    rows = [
        np.log(np.maximum(m @ table.likelihood[:, place], TINY)) @ often
        for m, (place, often) in zip(mixed, found, strict=True)
    ]
    return np.array(rows), mixed


def cost(shapes: Floats = SHAPES) -> Floats:
    """What a shape has to be better by, in nats: without evidence counts are Poisson."""
    made: Floats = -TUNING.empty_cost * (shapes[:, 0] > 0) - TUNING.spread_cost * shapes[:, 1]
    return made


def best_shape(table: Lattice, rate: Floats) -> tuple[float, float]:
    group = strata(rate, TUNING.shape_strata)
    mean = np.bincount(group, rate) / np.bincount(group)
    found = seen(table.column, group, table.counts.shape[1])
    empty, spread = SHAPES[int(np.argmax(evidence(table, mean, found)[0].sum(axis=0) + cost()))]
    return float(empty), float(spread)
