"""From an engine's answer to trip types: (flat, n) in any order → types of the universe, ascending, each once."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.features import Universe
from cbdp.features.universe import Block
from cbdp.trips.invariants import InvariantError
from cbdp.trips.plan import CountingPlan, Zeros


def ranked(batches: Iterable[tuple[Ints, Ints]], universe: Universe, plan: CountingPlan) -> tuple[Ints, Ints]:
    """Trip types in order with their counts, from batches of (flat, n). What no engine should say is not believed. Proof: docs/proofs/counting.md."""
    none = np.empty(0, dtype=np.int64)
    flats, values = [none], [none]
    for flat, n in batches:
        flats.append(flat)
        values.append(n)
    flat, value = _sorted(np.concatenate(flats), np.concatenate(values))
    if len(flat) and ((flat[1:] == flat[:-1]).any() or value.min() <= 0 or flat[0] < 0):
        raise InvariantError("the engine gave a trip type twice: nothing was spent. Report this, please")
    index = rank(flat, universe, plan)
    if plan.zeros:
        index, value = index[index >= 0], value[index >= 0]
    return (index, value) if (index[1:] > index[:-1]).all() else _sorted(index, value)


def _sorted(index: Ints, value: Ints) -> tuple[Ints, Ints]:
    """By index. Where both fit into one word they are sorted as one, which takes half the time."""
    if not len(index):
        return index, value
    bits = int(value.max()).bit_length()
    if min(index.min(), value.min()) < 0 or int(index.max()).bit_length() + bits > 63:
        order = np.argsort(index)
        return index[order], value[order]
    both = np.sort((index << bits) | value)
    return both >> bits, both & ((1 << bits) - 1)


def rank(flat: Ints, universe: Universe, plan: CountingPlan) -> Ints:
    """The trip types at these places of the product of all dimensions; −1 for structural zeros.

    As `universe.rank_codes`, but where the zeros are few, a place is found by counting those before it.
    """
    if not plan.zeros and all(len(block.dims) == 1 for block in universe.blocks):
        return flat
    listed = {zeros.axes: zeros for zeros in plan.zeros}
    index, outside = np.zeros(len(flat), dtype=np.int64), np.zeros(len(flat), dtype=bool)
    for block in universe.blocks:
        place = _place(flat, block, plan.shape)
        if block.dims in listed:
            place, out = _less_zeros(place, listed[block.dims])
            outside |= out
        index = index * block.size + place
    return np.where(outside, -1, index)


def _place(flat: Ints, block: Block, shape: tuple[int, ...]) -> Ints:
    """The place among a block's combinations."""
    first, last = block.dims[0], block.dims[-1]
    if last - first + 1 == len(block.dims):
        within = flat // math.prod(shape[last + 1 :])
        return within if first == 0 else within % math.prod(block.shape)
    codes = np.unravel_index(flat, shape)
    return np.ravel_multi_index(tuple(codes[d] for d in block.dims), block.shape).astype(np.int64)


def _less_zeros(place: Ints, zeros: Zeros) -> tuple[Ints, NDArray[np.bool_]]:
    """The place among the combinations that are no zeros, and whether it is one."""
    before = np.searchsorted(zeros.flat, place)
    listed = np.zeros(len(place), dtype=bool)
    if len(zeros.flat):
        listed = zeros.flat[np.minimum(before, len(zeros.flat) - 1)] == place
    return (place - before, listed) if zeros.out else (before, ~listed)
