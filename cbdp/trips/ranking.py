"""From an engine's answer to trip types: (flat, n) in any order → types of the universe, ascending, each once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cbdp.features import Universe
from cbdp.features.index import among
from cbdp.trips.invariants import InvariantError
from cbdp.trips.plan import Plan

Ints = NDArray[np.int64]


def ranked(batches: Iterable[tuple[Ints, Ints]], universe: Universe, plan: Plan) -> tuple[Ints, Ints]:
    """Trip types in order with their counts, from batches of (flat, n). What no engine should say is not believed."""
    none = np.empty(0, dtype=np.int64)
    ranks, values = [none], [none]
    for flat, n in batches:
        index = rank(flat, universe, plan)
        inside = index >= 0
        ranks.append(index if inside.all() else index[inside])
        values.append(n if inside.all() else n[inside])
    index, value = np.concatenate(ranks), np.concatenate(values)
    order = np.argsort(index)
    index, value = index[order], value[order]
    if len(index) and ((index[1:] <= index[:-1]).any() or value.min() <= 0):
        raise InvariantError("the engine gave a trip type twice: nothing was spent. Report this, please")
    return index, value


def rank(flat: Ints, universe: Universe, plan: Plan) -> Ints:
    """The trip types at these places of the product of all dimensions; −1 for structural zeros.

    As `universe.rank_codes`, but where the zeros are few, a place is found by counting those before it.
    """
    if not plan.zeros and all(len(block.dims) == 1 for block in universe.blocks):
        return flat
    codes = np.unravel_index(flat, plan.shape)
    index, outside = np.zeros(len(flat), dtype=np.int64), np.zeros(len(flat), dtype=bool)
    listed = {zeros.axes: zeros for zeros in plan.zeros}
    for block in universe.blocks:
        place = np.ravel_multi_index(tuple(codes[d] for d in block.dims), block.shape).astype(np.int64)
        zeros = listed.get(block.dims)
        if zeros is not None:
            before = np.searchsorted(zeros.flat, place)
            found = among(place, zeros.flat)
            outside |= found if zeros.out else ~found
            place = place - before if zeros.out else before
        index = index * block.size + place
    return np.where(outside, -1, index)
