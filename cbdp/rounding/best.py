"""The leaves of each cell that go up first, found in one pass and without sorting all leaves.

A cell keeps a heap of the best leaves seen so far, the worst of them on top, which is what the next one is compared with. Most leaves
have next to no fraction of a trip, and are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cbdp.arrays import Bools, Ints


@dataclass(frozen=True, eq=False)
class Best:
    """In each cell a quota of leaves, and one more: those with the largest fractions, the first of equals."""

    leaf: Ints  # cell after cell, the worst of each first
    start: Ints  # by cell, where its leaves start
    full: Bools  # by cell, whether there is one more than its quota: the worst

    @property
    def last(self) -> Ints:
        """By cell, the one more; −1: there is none."""
        made = np.full(len(self.start), -1, dtype=np.int64)
        made[self.full] = self.leaf[self.start[self.full]]
        return made

    def chosen(self, more: Bools) -> Ints:
        """The quota of each cell, and where told its one leaf more."""
        kept = np.ones(len(self.leaf), dtype=bool)
        kept[self.start[self.full & ~more]] = False
        return self.leaf[kept]


def best_of(cell: NDArray[Any], part: Ints, free: Bools, quota: Ints) -> Best:
    """The best leaves of each cell among those that are free to go up."""
    many = np.bincount(cell[free], minlength=len(quota))
    room = np.minimum(quota + 1, many)
    start = np.cumsum(room) - room
    return Best(_heaps(cell, part, free, start, room), start, room > quota)


@njit(cache=True)
def _heaps(cell, part, free, start, room):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """By cell a heap of so many leaves, the one to give up first on top."""
    leaf = np.empty(room.sum(), dtype=np.int64)
    held = np.zeros(len(room), dtype=np.int64)
    for u in range(len(cell)):
        k = cell[u]
        if not free[u] or room[k] == 0:
            continue
        heap = leaf[start[k] : start[k] + room[k]]
        if held[k] < room[k]:
            _pushed(heap, held[k], u, part)
            held[k] += 1
        elif part[u] > part[heap[0]]:  # of equals the first stays
            _sunk(heap, u, part)
    return leaf


@njit(cache=True, inline="always")
def _worse(a, b, part):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return part[a] < part[b] or (part[a] == part[b] and a > b)


@njit(cache=True)
def _pushed(heap, held, u, part):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """One leaf more in a heap that holds so many."""
    at = held
    while at > 0 and _worse(u, heap[(at - 1) // 2], part):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = u


@njit(cache=True)
def _sunk(heap, u, part):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """A leaf in the place of the one on top of a full heap."""
    at = 0
    while True:
        below = 2 * at + 1
        if below >= len(heap):
            break
        if below + 1 < len(heap) and _worse(heap[below + 1], heap[below], part):
            below += 1
        if not _worse(heap[below], u, part):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = u
