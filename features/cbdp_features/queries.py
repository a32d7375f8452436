"""Counting queries: trip types grouped by any attributes, of those that meet conditions: a marginal query with predicates.

It is answered without enumerating the universe.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp_features.universe import Partition, Universe

MAX_GROUPS = 2**20  # groups listed in one answer
MAX_LABEL_COMBINATIONS = 2**22  # combinations of labels, the conditions' included: 32 MB of numbers


@dataclass(frozen=True, eq=False)
class Filter:
    """A predicate: which combinations of some attributes' labels qualify, an axis for each attribute."""

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
    def _inside(self) -> tuple[Ints, Ints, Ints]:
        """The atoms that meet all conditions, ascending, the group of each, and an atom of each group."""
        atom = self._candidates()
        codes = self._label_codes(atom)
        kept = np.ones(len(atom), dtype=bool)
        for c in self.conditions:
            kept &= c.wanted[tuple(codes[a] for a in c.attributes)]
        atom = atom[kept]
        number = np.zeros(len(atom), dtype=np.int64)
        for name in self.by:
            _, code = np.unique(codes[name][kept], return_inverse=True)
            number = np.unique(number * (len(code) + 1) + code, return_inverse=True)[1].astype(np.int64)
        _, first, group = np.unique(number, return_index=True, return_inverse=True)
        return atom, group.astype(np.int64), atom[first]

    def _candidates(self) -> Ints:
        """The atoms that meet the conditions within each component of the partition: others are not examined."""
        atoms = self.atoms
        number: Ints = np.zeros(1, dtype=np.int64)
        for place, part in enumerate(atoms.parts):
            selected = self._selected_of_part(place)
            if len(number) * len(selected) > MAX_LABEL_COMBINATIONS:
                raise InputError(
                    f"{', '.join(self.named)} have {atoms.size:,} combinations, at most {MAX_LABEL_COMBINATIONS:,} can be looked at: ask by fewer "
                    "attributes, or filter more"
                )
            number = (number[:, None] * len(part.joint) + selected).reshape(-1)
        return number

    def _selected_of_part(self, place: int) -> Ints:
        part = self.atoms.parts[place]
        codes, rest = {}, part.joint
        for a, radix in zip(reversed(part.attributes), reversed(part.radix), strict=True):
            rest, codes[self.atoms.attributes[a].name] = np.divmod(rest, radix)
        kept = np.ones(len(part.joint), dtype=bool)
        for c in self.conditions:
            if set(c.attributes) <= set(codes):
                kept &= c.wanted[tuple(codes[a] for a in c.attributes)]
        return np.flatnonzero(kept)

    def _label_codes(self, atom: Ints) -> dict[str, Ints]:
        """The code of each attribute's label at some atoms."""
        place = dict(zip(self.universe.dimensions, self._types(atom), strict=True))
        attributes = (self.universe.attribute(name) for name in self.named)
        return {a.name: a.codes[tuple(place[dim] for dim in a.of)] for a in attributes}

    def _types(self, atom: Ints) -> list[Ints]:
        """A trip type of each of some atoms, as its dimensions' codes."""
        return self.universe.unrank_codes(self.atoms.type_at(atom, np.zeros(len(atom), dtype=np.int64)))

    @property
    def _first(self) -> Ints:
        """An atom of each group."""
        return self._inside[2] if self.conditions else np.arange(self.atoms.size)

    def representatives(self) -> list[Ints]:
        """A trip type of each group, as its dimensions' codes."""
        return self._types(self._first)

    def check_listed(self) -> None:
        """Refuse a question with more groups than are worth listing."""
        if self.size > MAX_GROUPS:
            raise InputError(
                f"grouping by {', '.join(self.by)} makes {self.size:,} groups, at most {MAX_GROUPS:,} are listed: group by "
                "fewer attributes, or filter with where"
            )

    @property
    def size(self) -> int:
        return self.atoms.size if not self.conditions else len(self._inside[2])

    def group_of(self, codes: Sequence[Ints]) -> Ints:
        """The group of each trip type given by its dimensions' codes; −1 where it does not meet the conditions."""
        return self._group(self.atoms.element_of(codes))

    def of_every_type(self) -> Ints:
        """The group of every trip type, in the universe's order: for universes that fit."""
        return self._group(self.atoms.of_every_type())

    def _group(self, atom: Ints) -> Ints:
        if not self.conditions:
            return atom
        here, group, _ = self._inside
        if not len(here):
            return np.full(np.shape(atom), -1)
        place = np.minimum(np.searchsorted(here, atom), len(here) - 1)
        return np.where(here[place] == atom, group[place], -1)

    @property
    def types(self) -> Ints:
        """The number of trip types in each group."""
        if not self.conditions:
            return self.atoms.sizes
        here, group, _ = self._inside
        blocks, parts = self.universe.blocks, self.atoms.parts
        used = {b for part in parts for b in part.blocks}
        types = np.full(len(here), math.prod(block.size for b, block in enumerate(blocks) if b not in used))
        for part in reversed(parts):
            here, joint = np.divmod(here, len(part.joint))
            types = types * part.sizes[joint]
        return group_sums(group, types, self.size)

    def keys(self) -> dict[str, list[Hashable]]:
        """For each attribute it groups by, its label at every group."""
        codes = self._label_codes(self._first)
        attributes = {name: self.universe.attribute(name) for name in self.by}
        return {n: [a.labels[c] for c in codes[n]] for n, a in attributes.items()}

    def added(self, index: Ints, value: Ints) -> Ints:
        """Whole counts of trip types, given by their index, added up by group."""
        return group_sums(self.group_of(self.universe.unrank_codes(index)), value, self.size)

    def inside(self, coarse: Grouping) -> Ints:
        """The group of a coarser grouping, with the same conditions, that holds each group."""
        return coarse.group_of(self.representatives())


def group_sums(group: Ints, numbers: Ints, size: int) -> Ints:
    """Whole numbers added up by group, without those of group −1."""
    total = np.zeros(size + 1, dtype=np.int64)
    np.add.at(total, group, numbers)
    return total[:size]
