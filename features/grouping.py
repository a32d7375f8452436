"""Trip types grouped by any attributes, of those that meet some conditions: what a question asks for."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.features.dimension import Ints
from cbdp.features.partition import Partition
from cbdp.features.universe import Universe

MOST_GROUPS = 2**20  # groups that are listed
MOST_ATOMS = 2**22  # combinations of labels, those of the conditions too, that are looked at


@dataclass(frozen=True, eq=False)
class Filter:
    """Which combinations of some attributes' labels are wanted: an axis for each attribute."""

    attributes: tuple[str, ...]
    wanted: NDArray[np.bool_] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Grouping:
    """The trip types that meet all conditions, grouped by attributes. Groups are numbered from 0 on.

    Without conditions they are the elements of the partition, in their order. The universe is not enumerated.

    >>> stops = Universe(origin=["A", "B"], time=["am", "noon", "pm"])
    >>> early = Filter(("time",), np.array([True, True, False]))
    >>> Grouping(stops, ("origin",), (early,)).types.tolist()
    [2, 2]
    """

    universe: Universe
    by: tuple[str, ...]
    conditions: tuple[Filter, ...] = ()

    @cached_property
    def named(self) -> tuple[str, ...]:
        """All attributes that tell groups apart, or what is in them from what is not."""
        return tuple(dict.fromkeys([*self.by, *(a for c in self.conditions for a in c.attributes)]))

    @cached_property
    def atoms(self) -> Partition:
        """Trip types that no attribute of the question tells apart."""
        return self.universe.partition(self.named)

    @cached_property
    def _listed(self) -> tuple[Ints, Ints]:
        """The group of each atom, −1 outside, and an atom of each group."""
        if not self.conditions:
            every = np.arange(self.atoms.size)
            return every, every
        self._check_atoms()
        codes = dict(zip(self.named, self.atoms.label_codes(), strict=True))
        inside = np.ones(self.atoms.size, dtype=bool)
        for c in self.conditions:
            inside &= c.wanted[tuple(codes[a] for a in c.attributes)]
        number = np.zeros(self.atoms.size, dtype=np.int64)
        for name in self.by:
            number = number * len(self.universe.attribute(name).labels) + codes[name]
        here = np.flatnonzero(inside)
        _, first, place = np.unique(number[here], return_index=True, return_inverse=True)
        group = np.full(self.atoms.size, -1, dtype=np.int64)
        group[here] = place
        return group, here[first]

    def _check_atoms(self) -> None:
        # radixes must not overflow either: as many labels as this have no more combinations that occur
        labels = math.prod(len(self.universe.attribute(a).labels) for a in self.by)
        if self.atoms.size > MOST_ATOMS or labels >= 2**62:
            names = ", ".join(self.named)
            raise InputError(
                f"{names} have {self.atoms.size:,} combinations, at most {MOST_ATOMS:,} can be looked at: ask by fewer attributes"
            )

    def check_listed(self) -> None:
        """Refuse a question with more groups than are worth listing."""
        if self.size > MOST_GROUPS:
            raise InputError(
                f"grouping by {', '.join(self.by)} makes {self.size:,} groups, at most {MOST_GROUPS:,} are listed: group by "
                "fewer attributes, or filter with where"
            )

    @property
    def size(self) -> int:
        return self.atoms.size if not self.conditions else len(self._listed[1])

    def group_of(self, codes: Sequence[Ints]) -> Ints:
        """The group of each trip type given by its dimensions' codes; −1 where it does not meet the conditions."""
        return self._group(self.atoms.element_of(codes))

    def of_every_type(self) -> Ints:
        """The group of every trip type, in the universe's order: for universes that fit."""
        return self._group(self.atoms.of_every_type())

    def _group(self, atom: Ints) -> Ints:
        return self._listed[0][atom] if self.conditions else atom

    @property
    def types(self) -> Ints:
        """The number of trip types in each group."""
        sizes = self.atoms.sizes
        return sizes if not self.conditions else summed(self._listed[0], sizes, self.size)

    def keys(self) -> dict[str, list[Hashable]]:
        """For each attribute it groups by, its label at every group."""
        codes = dict(zip(self.named, self.atoms.label_codes(), strict=True))
        attributes = {name: self.universe.attribute(name) for name in self.by}
        return {n: [a.labels[c] for c in codes[n][self._listed[1]]] for n, a in attributes.items()}

    def added(self, index: Ints, value: NDArray[np.int64]) -> Ints:
        """Whole counts of trip types, given by their index, added up by group."""
        return summed(self.group_of(self.universe.unrank_codes(index)), value, self.size)

    def inside(self, coarse: Grouping) -> Ints:
        """The group of a coarser grouping, with the same conditions, that holds each group."""
        atom = self.atoms.representatives()
        return coarse.group_of([codes[self._listed[1]] for codes in atom])


def summed(group: Ints, numbers: NDArray[np.int64], size: int) -> Ints:
    """Whole numbers added up by group, without those of group −1."""
    total = np.zeros(size + 1, dtype=np.int64)
    np.add.at(total, group, numbers)
    return total[:size]
