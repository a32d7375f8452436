"""The shape of counts: which share of the types is empty, and how the others' means spread; judged by noisy counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints, Singles
from cbdp.estimate.posterior import mixing
from cbdp.estimate.posterior.lattice import SHAPES, TINY, Lattice
from cbdp.estimate.posterior.passes import FAINTEST
from cbdp.estimate.posterior.settings import TUNING
from cbdp.estimate.posterior.threads import each

LEADING = 15  # binary places of a number of single precision that are left out: 8 are left


def strata(rate: NDArray[Any], many: int) -> NDArray[np.uint8]:
    """Groups of leaves of similar expected count: even in leaves where they are alike, and in trips where they are few.

    Expected counts that differ by less than half a per cent stand in the order of the leaves.
    """
    assert many < 2**8
    group: NDArray[np.uint8] = _groups(rate.astype(np.float32, copy=False), many)
    return group


@njit(cache=True, nogil=True)
def _groups(rate, many):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Each leaf's group, by the leaves and trips before it; no group is empty."""
    sums = np.zeros((2**16, 2))  # leaves and trips, by exponent and leading places
    bits, least = rate.view(np.int32), np.full(1, np.float32(FAINTEST)).view(np.int32)[0]
    for u in range(len(rate)):
        at = max(bits[u], least) >> LEADING
        sums[at, 0] += 1.0
        sums[at, 1] += rate[u]
    before, held = 0.0, 0.0
    for at in range(len(sums)):  # from here on those before each
        here, there = sums[at]
        sums[at] = before, held
        before, held = before + here, held + there
    by_leaf, by_trip = 0.5 * many / len(rate), 0.5 * many / max(held, TINY)
    group, used = np.empty(len(rate), dtype=np.uint8), np.zeros(many, dtype=np.uint8)
    for u in range(len(rate)):
        at = max(bits[u], least) >> LEADING
        sums[at, 0] += 1.0
        sums[at, 1] += rate[u]
        group[u] = min(int(by_trip * sums[at, 1] + by_leaf * sums[at, 0]), many - 1)
        used[group[u]] = 1
    if not used.all():
        number = (np.cumsum(used) - 1).astype(np.uint8)
        for u in range(len(rate)):
            group[u] = number[group[u]]
    return group


def seen(column: NDArray[Any], group: Ints, columns: int) -> list[tuple[Ints, Ints]]:
    """For each group the columns that occur, and how often."""
    often = np.bincount(group * columns + column, minlength=(int(group.max()) + 1) * columns)
    return [(np.flatnonzero(row), row[row > 0]) for row in often.reshape(-1, columns)]


@njit(cache=True, nogil=True)
def sums_by(group, rate, noisy, groups):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """By group, the number of leaves, and the sums of their rates and of their noisy counts."""
    made = np.zeros((3, groups))
    for u in range(len(group)):
        made[0, group[u]] += 1.0
        made[1, group[u]] += rate[u]
        made[2, group[u]] += noisy[u]
    return made


@njit(cache=True, nogil=True)
def counted(group, place, groups, places):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Groups × columns: how often each occurs."""
    often = np.zeros((groups, places), dtype=np.int64)
    for u in range(len(group)):
        often[group[u], place[u]] += 1
    return often


def evidence(
    table: Lattice, mean: Floats, often: Ints, leaves: int, shapes: Floats = SHAPES
) -> tuple[Floats, Floats]:
    """Groups × shapes: the log-likelihood of what was seen so often; and the mixtures of each."""
    law = table.occurring

    def group(g: int) -> tuple[Floats, Floats]:
        mixed = table.mixtures(mean[g : g + 1], shapes)[0]
        return mixing.log_likelihoods(mixed, law, often[g], TINY), mixed

    found = each(group, range(len(mean)), leaves)
    return np.array([fit for fit, _ in found]), np.array([mixed for _, mixed in found])


def cost(shapes: Floats = SHAPES) -> Floats:
    """What a shape has to be better by, in nats: without evidence counts are Poisson."""
    made: Floats = -TUNING.empty_cost * (shapes[:, 0] > 0) - TUNING.spread_cost * shapes[:, 1]
    return made


def believed(fit: Floats, shapes: Floats = SHAPES) -> Floats:
    """Strata × shapes: the belief in each, by the evidence of the stratum, of those near it, and of all others in part."""
    near = np.exp(-np.abs(np.subtract.outer(np.arange(len(fit)), np.arange(len(fit)))))
    told = near @ fit + TUNING.pooled * (fit.sum(axis=0) - fit) + cost(shapes)
    told -= told.max(axis=1, keepdims=True)
    weight = np.where(told > -TUNING.near, np.exp(told), 0.0)
    made: Floats = weight / weight.sum(axis=1, keepdims=True)
    return made


def best_shape(table: Lattice, rate: Singles) -> tuple[float, float]:
    group = strata(rate, TUNING.shape_strata)
    groups = int(group.max()) + 1
    many, sums, _ = sums_by(group, rate, rate, groups)
    often = counted(group, table.place, groups, len(table.used))
    found = evidence(table, sums / many, often, len(rate))[0]
    empty, spread = SHAPES[int(np.argmax(found.sum(axis=0) + cost()))]
    return float(empty), float(spread)
