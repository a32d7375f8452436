"""Trips between places of a hierarchy, and the levels at which InfTDA publishes and is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Level = tuple[int, int]  # how deep origins and destinations are told apart


@dataclass(frozen=True, eq=False)
class Demand:
    """Filled pairs of places and their trips; `above[k]` is the area at depth k that holds each place.

    Areas are numbered in the order of their places, so that those inside one area follow each other.
    """

    name: str
    above: Sequence[Ints] = field(repr=False)
    origin: Ints = field(repr=False)
    destination: Ints = field(repr=False)
    trips: Ints = field(repr=False)

    @property
    def depth(self) -> int:
        return len(self.above) - 1

    @property
    def places(self) -> int:
        return len(self.above[-1])

    @property
    def total(self) -> int:
        return int(self.trips.sum())

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many areas there are at each depth."""
        return tuple(int(area.max()) + 1 for area in self.above)

    def pairs(self, level: Level) -> int:
        return self.sizes[level[0]] * self.sizes[level[1]]

    def key(self, level: Level, origin: Ints, destination: Ints) -> Ints:
        """The number of the pair of areas at a level that holds each pair of places."""
        made: Ints = self.above[level[0]][origin] * self.sizes[level[1]] + self.above[level[1]][destination]
        return made

    def counts(self, level: Level) -> tuple[Ints, Ints]:
        """The pairs of areas that hold any trips, in ascending order, and their trips."""
        return summed(self.key(level, self.origin, self.destination), self.trips)


def levels(depth: int) -> list[Level]:
    """From all trips to pairs of places: at each depth destinations are told apart first, then origins.

    >>> levels(2)
    [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2)]
    """
    return [(n // 2, (n + 1) // 2) for n in range(2 * depth + 1)]


def summed(key: Ints, value: Ints) -> tuple[Ints, Ints]:
    """Each key once, in ascending order, with the sum of its values."""
    order = np.argsort(key, kind="stable")
    key, value = key[order], value[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    if not len(first):
        return key, value
    return key[first], np.add.reduceat(value, first)
