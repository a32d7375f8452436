"""Items in groups, each with a price for going up: the cheapest of each group, and what one more would cost."""

from __future__ import annotations

import numpy as np

from cbdp.arrays import Bools, Ints


def cheapest(group: Ints, cost: Ints, quota: Ints) -> Bools:
    """Which items go up: in each group a quota of the cheapest, the first of equals."""
    order = _order(group, cost)
    ordered = group[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    up = np.zeros(len(order), dtype=bool)
    up[order] = rank < quota[ordered]
    return up


def next_cost(group: Ints, cost: Ints, quota: Ints, asked: Bools) -> Ints:
    """In each group asked about, the price of one item more than the quota of cheapest ones."""
    order = _order(group, cost)
    start = np.searchsorted(group[order], np.arange(len(quota)))
    found = np.zeros(len(quota), dtype=np.int64)
    found[asked] = cost[order[(start + quota)[asked]]]
    return found


def _order(group: Ints, key: Ints) -> Ints:
    """Items by group, then key, then place."""
    least = int(key.min(initial=0))
    span = int(key.max(initial=0)) - least + 1
    if (int(group.max(initial=0)) + 1) * span < 2**63:
        # group and key in one number: sorts three times as fast
        return np.argsort(group * span + (key - least), kind="stable")
    return np.lexsort((key, group))
