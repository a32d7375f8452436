"""The shape of counts: which share of the types is empty, and how the others' means spread; judged by noisy counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cbdp.estimate.posterior.lattice import SHAPES, TINY, Lattice
from cbdp.estimate.posterior.settings import TUNING

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def strata(rate: Floats, many: int) -> Ints:
    """Groups of leaves of similar expected count: even in leaves where they are alike, and in trips where they are few."""
    order = np.sort(rate)
    trips = np.cumsum(order)
    place = 0.5 * trips / max(trips[-1], TINY) + 0.5 * np.arange(1, len(rate) + 1) / len(rate)
    begins = np.flatnonzero(np.diff(np.minimum((place * many).astype(np.int64), many - 1), prepend=-1))
    group = np.searchsorted(order[begins], rate, side="right") - 1
    for edge in np.unique(order[begins[1:]]):  # leaves that are alike fill strata in their order
        low, high = np.searchsorted(order, edge), np.searchsorted(order, edge, side="right")
        group[rate == edge] = np.searchsorted(begins, np.arange(low, high), side="right") - 1
    made: Ints = group
    return made


def seen(column: Ints, group: Ints, columns: int) -> list[tuple[Ints, Ints]]:
    """For each group the columns that occur, and how often."""
    often = np.bincount(group * columns + column, minlength=(int(group.max()) + 1) * columns)
    return [(np.flatnonzero(row), row[row > 0]) for row in often.reshape(-1, columns)]


def evidence(table: Lattice, mean: Floats, found: Sequence[tuple[Ints, Ints]]) -> tuple[Floats, Floats]:
    """Groups × shapes: the log-likelihood of what was seen; and the mixtures of each."""
    mixed = table.mixtures(mean)
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
