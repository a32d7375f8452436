"""How far down noisy counts of trip types are asked for, in a universe too large to list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.estimate.compiler import merge
from cbdp.features import FeatureDag
from cbdp.privacy.measurement import Measurement, Revealing
from cbdp.solvers.problem import bincount

MARGIN = 1.0  # how far below the expected shifts the first floors are set, in lengths over which noise above them grows e-fold
CLASS = 25_000  # leaves that take as long to draw as the tables for a further height of floors take to build
SPARE = 3.0  # no floor is so high that its cell is expected to have more than exp(−SPARE) survivors above it


def first_floors(features: FeatureDag, measurements: Sequence[Measurement], leaves: Revealing) -> Ints:
    """Somewhat below where the shifts are expected to be."""
    sizes, law = features.cells.partition.sizes, leaves.noise
    highest = law.extreme(sizes, SPARE)
    shifts = law.shift(densities(features, measurements))
    return merged_floors(np.minimum(shifts - MARGIN * law.falloff(shifts), highest), features, leaves)


def densities(features: FeatureDag, measurements: Sequence[Measurement]) -> Floats:
    """By cell, how many trips a type may be expected to have: the shift is where noise alone would add up to them.

    The counts are those of the finest features, spread evenly over their elements' types; of several the largest: a low
    floor costs little.
    """
    merged = merge(features, measurements)
    density = np.zeros(features.cells.size)
    for name, m in merged.items():
        if any(features.graph.has_edge(other, name) for other in merged):
            continue
        each = np.zeros(features.size(name))
        each[slice(None) if m.elements is None else m.elements] = np.maximum(m.values, 1.0)
        density = np.maximum(
            density, (each / features.partition(name).sizes)[features.cells.element_of_cell[name]]
        )
    return density


def merged_floors(wanted: Floats, features: FeatureDag, leaves: Revealing) -> Ints:
    """Whole floors at or below those wanted, of few different heights.

    Cells of one floor are drawn together, at a cost that is about that of drawing `CLASS` leaves. So heights are merged,
    downwards, as long as that is cheaper than the further leaves: the least sum, by dynamic programming over the heights.
    """
    now, sizes = leaves.floor, features.cells.partition.sizes
    floor = np.floor(wanted).astype(np.int64)
    moved = np.flatnonzero(floor < now)
    if not len(moved):
        return now
    heights, which = np.unique(floor[moved], return_inverse=True)
    types = bincount(which, sizes[moved].astype(float), len(heights))
    least = _merged(types, np.asarray(leaves.noise.survival(heights)))
    floor[moved] = heights[least][which]
    return np.minimum(floor, now)


def _merged(types: Floats, share: Floats) -> Ints:
    """For each height, ascending, the height it is merged into: at or below it. `share` of its types exceed a height."""
    n = len(types)
    held = np.concatenate([[0.0], np.cumsum(types)])
    cost, start = np.zeros(n + 1), np.zeros(n + 1, dtype=np.int64)
    for end in range(1, n + 1):  # the last group is start … end − 1, all drawn down to the height of `start`
        each = cost[:end] + CLASS + (held[end] - held[:end]) * share[:end]
        start[end] = np.argmin(each)
        cost[end] = each[start[end]]
    into, end = np.empty(n, dtype=np.int64), n
    while end:
        into[start[end] : end] = start[end]
        end = start[end]
    return into
