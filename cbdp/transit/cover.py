"""A reference without shared rides: the fewest shuttles that serve every leg alone and in time, by minimum path cover.

Leg j can follow leg i in one shuttle if the drive from i's destination reaches j's origin by j's departure plus the longest
wait. These pairs form the shareability graph, which has no cycle since legs are in order of departure. The fewest shuttles
are the number of legs less the size of a maximum matching of legs with their followers (Dilworth; Fulkerson), which
Hopcroft and Karp's method finds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.transit.city import City
from cbdp.transit.demand import Legs
from cbdp.transit.simulator import Operations

MOST_PAIRS = 200_000_000


@dataclass(frozen=True, eq=False)
class Cover:
    """The fewest shuttles of each zone, and the leg that follows each leg (−1: it is the shuttle's last).

    >>> Cover((2, 1), np.array([-1, 0, -1])).shuttles
    (2, 1)
    """

    shuttles: tuple[int, ...]
    follower: Ints = field(repr=False)

    @property
    def total(self) -> int:
        return sum(self.shuttles)


def path_cover(city: City, legs: Legs, release: Ints, operations: Operations, *, wait: int = 0) -> Cover:
    """The fewest shuttles that take every leg alone, at most `wait` seconds after its release.

    A shuttle may start anywhere. With a wait the answer is a lower bound, since a delayed leg is assumed to delay none of
    the following ones.

    >>> import numpy as np
    >>> from cbdp.transit import ModeRule, Operations, Trips, legs_of, make_city
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> riders = Trips(np.array([0, 2]), np.array([1, 0]), np.array([60, 120]), (0, 3600))
    >>> legs = legs_of(riders, ModeRule().choose(city))
    >>> path_cover(city, legs, legs.release, Operations()).shuttles
    (2,)
    """
    if len(release) != len(legs) or (release < 0).any():
        raise InputError("not every leg has a second of release: take them from a simulation")
    if wait < 0:
        raise InputError(f"invalid wait of {wait} s: give 0 or more")
    hop = operations.hop(city)
    follower = np.full(len(legs), -1, dtype=np.int64)
    shuttles = []
    for zone in range(len(city.zones)):
        own = np.flatnonzero(legs.zone == zone)
        own = own[np.argsort(release[own], kind="stable")]
        start, to = _pairs(hop, legs.origin[own], legs.destination[own], release[own], wait)
        match = matching(start, to, len(own))
        follower[own] = np.where(match >= 0, own[match], -1) if len(own) else -1
        shuttles.append(int((match < 0).sum()))
    return Cover(tuple(shuttles), follower)


def _pairs(
    hop: Ints, origin: Ints, destination: Ints, release: Ints, wait: int
) -> tuple[Ints, NDArray[np.int32]]:
    free = release + hop[origin, destination]
    count = _count(hop, origin, destination, release, free, wait)
    if int(count.sum()) > MOST_PAIRS:
        raise InputError(
            f"{int(count.sum()):,} pairs of legs can follow each other, and this reference handles at most {MOST_PAIRS:,}: "
            "take fewer hours"
        )
    start = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    to = np.empty(int(start[-1]), dtype=np.int32)
    _fill(hop, origin, destination, release, free, wait, start, to)
    return start, to


def matching(start: Ints, to: NDArray[np.int32], right: int) -> Ints:
    """A maximum matching of a bipartite graph in compressed rows: the right end of each left end, or −1."""
    match: Ints = _hopcroft_karp(np.asarray(start, dtype=np.int64), np.asarray(to, dtype=np.int32), right)
    return match


# A leg may follow one that is released at the same second only if it comes later in the order: so there are no cycles.


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _count(hop: Any, origin: Any, destination: Any, release: Any, free: Any, wait: Any) -> Any:
    count = np.zeros(len(origin), np.int64)
    for i in range(len(origin)):
        for j in range(i + 1, len(origin)):
            if free[i] + hop[destination[i], origin[j]] <= release[j] + wait:
                count[i] += 1
    return count


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _fill(
    hop: Any, origin: Any, destination: Any, release: Any, free: Any, wait: Any, start: Any, to: Any
) -> Any:
    for i in range(len(origin)):
        k = start[i]
        for j in range(i + 1, len(origin)):
            if free[i] + hop[destination[i], origin[j]] <= release[j] + wait:
                to[k] = j
                k += 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _hopcroft_karp(  # noqa: PLR0915 - two searches over the same arrays
    start: Any, to: Any, right: Any
) -> Any:
    """O(E √V): layers by breadth-first search, then disjoint shortest augmenting paths by depth-first search."""
    left = len(start) - 1
    match, back = np.full(left, -1, np.int64), np.full(right, -1, np.int64)
    layer, queue, edge, stack = (
        np.zeros(left, np.int64),
        np.zeros(left, np.int64),
        np.zeros(left, np.int64),
        np.zeros(left, np.int64),
    )
    for i in range(left):  # a greedy matching leaves little to do
        for k in range(start[i], start[i + 1]):
            if back[to[k]] < 0:
                match[i], back[to[k]] = to[k], i
                break
    while True:
        head = tail = 0
        for i in range(left):
            layer[i] = -1
            if match[i] < 0:
                layer[i] = 0
                queue[tail] = i
                tail += 1
        reached = False
        while head < tail:
            i = queue[head]
            head += 1
            for k in range(start[i], start[i + 1]):
                j = back[to[k]]
                if j < 0:
                    reached = True
                elif layer[j] < 0:
                    layer[j] = layer[i] + 1
                    queue[tail] = j
                    tail += 1
        if not reached:
            return match
        for i in range(left):
            edge[i] = start[i]
        for root in range(left):
            if match[root] >= 0:
                continue
            depth, stack[0] = 0, root
            while depth >= 0:
                i = stack[depth]
                if edge[i] == start[i + 1]:
                    layer[i] = -1  # a dead end for this phase
                    depth -= 1
                    if depth >= 0:
                        edge[stack[depth]] += 1
                    continue
                j = back[to[edge[i]]]
                if j < 0:  # a free right end: augment along the path
                    while depth >= 0:
                        i = stack[depth]
                        end = to[edge[i]]
                        match[i], back[end] = end, i
                        depth -= 1
                    break
                if layer[j] == layer[i] + 1:
                    depth += 1
                    stack[depth] = j
                else:
                    edge[i] += 1
