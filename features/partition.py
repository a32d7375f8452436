"""Trip types grouped by attributes, without listing the trip types."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.features.dimension import Attribute

if TYPE_CHECKING:
    from cbdp.features.universe import Universe

MAX_LISTED = 2**28  # combinations of dimensions that may be listed in memory at once
MAX_LOOKED_UP = 2**20  # codes of joint values up to which a table says which one each is


@dataclass(frozen=True, eq=False)
class _Part:
    """The attributes that hang together through shared dimensions, and the combinations of them that occur."""

    attributes: tuple[int, ...]  # positions in the partition's list
    blocks: tuple[int, ...]
    joint: Ints  # the combinations that occur, as mixed-radix codes, sorted
    sizes: Ints  # combinations of the part's blocks behind each
    first: Ints  # one of them (as an index into the part's blocks)
    radix: tuple[int, ...]
    codes: Any  # () → the mixed-radix code of every combination of the part's blocks

    def place(self, joint: Ints) -> Ints:
        """Which of the combinations that occur each of these codes is."""
        return np.searchsorted(self.joint, joint) if self._places is None else self._places[joint]

    @cached_property
    def _places(self) -> Ints | None:
        """The place of every code there could be, where that is a short list."""
        codes = math.prod(self.radix)
        return np.searchsorted(self.joint, np.arange(codes)) if codes <= MAX_LOOKED_UP else None

    @cached_property
    def members(self) -> NDArray[Any]:
        """All combinations of the part's blocks, those of the first joint value first, then of the second, …"""
        place = self.place(self.codes())
        small = (
            np.uint16 if len(self.joint) <= 2**16 else np.int64
        )  # short integers are sorted in linear time
        order = np.argsort(place.astype(small), kind="stable")
        return order.astype(np.int32 if len(order) < 2**31 else np.int64)

    @cached_property
    def starts(self) -> Ints:
        """Where the combinations of each joint value start among the members."""
        return np.cumsum(self.sizes) - self.sizes


@dataclass(frozen=True, init=False, eq=False)
class Partition:
    """The trip types grouped by attributes: its elements are the combinations of values that occur.

    Attributes that share no dimension are independent, so elements are a product of small lists and the universe
    behind them is not enumerated. Elements are numbered in the order of those lists.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> by_time = features.partition("time")
    >>> by_time.size, by_time.keys(), by_time.sizes.tolist()
    (2, {'time': ['am', 'pm']}, [2, 2])
    """

    universe: Universe
    attributes: tuple[Attribute, ...]
    parts: tuple[_Part, ...]

    def __init__(self, universe: Universe, attributes: tuple[Attribute, ...]) -> None:
        object.__setattr__(self, "universe", universe)
        object.__setattr__(self, "attributes", attributes)
        object.__setattr__(self, "parts", tuple(_parts(universe, attributes)))
        if self.size > MAX_LISTED:
            names = ", ".join(a.name for a in attributes)
            raise InputError(
                f"grouping by {names} makes {self.size} elements, too many to list: use fewer attributes"
            )

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(len(part.joint) for part in self.parts)

    @property
    def sizes(self) -> Ints:
        """The number of trip types in each element."""
        used = {b for part in self.parts for b in part.blocks}
        rest = math.prod(block.size for b, block in enumerate(self.universe.blocks) if b not in used)
        return _outer([part.sizes for part in self.parts], np.multiply, rest)

    def element_of(self, codes: Sequence[Ints]) -> Ints:
        """The element of each trip type given by its dimensions' codes."""
        position = {name: d for d, name in enumerate(self.universe.dimensions)}
        number = np.zeros(np.shape(codes[0]), dtype=np.int64)
        for part in self.parts:
            joint = np.zeros(np.shape(codes[0]), dtype=np.int64)
            for a, radix in zip(part.attributes, part.radix, strict=True):
                attribute = self.attributes[a]
                joint = joint * radix + attribute.codes[tuple(codes[position[dim]] for dim in attribute.of)]
            number = number * len(part.joint) + part.place(joint)
        return number

    def type_at(self, element: Ints, place: Ints) -> Ints:
        """The index of a trip type given by its element and its place among that element's types, from 0 on."""
        blocks = self.universe.blocks
        rank: dict[int, Any] = {}
        used = {b for part in self.parts for b in part.blocks}
        for b in reversed([b for b in range(len(blocks)) if b not in used]):
            place, rank[b] = np.divmod(place, blocks[b].size)
        for part in reversed(self.parts):
            element, own = np.divmod(element, len(part.joint))
            place, inside = np.divmod(place, part.sizes[own])
            index = part.members[part.starts[own] + inside].astype(np.int64)
            for b in reversed(part.blocks):
                index, rank[b] = np.divmod(index, blocks[b].size)
        index = np.zeros(np.shape(element), dtype=np.int64)
        for b, block in enumerate(blocks):
            index = index * block.size + rank[b]
        return index

    def representatives(self) -> list[Ints]:
        """One trip type of each element, as its dimensions' codes."""
        blocks = self.universe.blocks
        codes = [np.zeros(self.size, dtype=np.int64) for _ in self.universe.dimensions]
        inner = self.size
        number = np.arange(self.size)
        for b, block in enumerate(blocks):  # blocks no attribute touches: their first combination will do
            if all(b not in part.blocks for part in self.parts):
                for dim, code in zip(block.dims, block.unrank(np.zeros(1, np.int64)), strict=True):
                    codes[dim][:] = code[0]
        for part in self.parts:
            inner //= len(part.joint)
            index = part.first[number // inner % len(part.joint)]
            for b in reversed(part.blocks):
                index, own = np.divmod(index, blocks[b].size)
                for dim, code in zip(blocks[b].dims, blocks[b].unrank(own), strict=True):
                    codes[dim] = code
        return codes

    def of_every_type(self) -> NDArray[Any]:
        """The element of every trip type, in the universe's order (one number per type: for universes that fit)."""
        blocks = self.universe.blocks
        dtype = np.int32 if self.size < 2**31 else np.int64
        number: NDArray[Any] = np.zeros([block.size for block in blocks], dtype=dtype)
        inner = self.size
        for part in self.parts:
            inner //= len(part.joint)
            own = part.place(part.codes())
            shape = [block.size if b in part.blocks else 1 for b, block in enumerate(blocks)]
            number += (own * inner).astype(dtype).reshape(shape)
        return number.reshape(-1)

    def label_codes(self) -> list[Ints]:
        """For each attribute, the code of its label at every element."""
        found: list[Any] = [None] * len(self.attributes)
        inner = self.size
        number = np.arange(self.size)
        for part in self.parts:
            inner //= len(part.joint)
            joint = part.joint[number // inner % len(part.joint)]
            for a, radix in zip(reversed(part.attributes), reversed(part.radix), strict=True):
                joint, found[a] = np.divmod(joint, radix)
        return found

    def keys(self) -> dict[str, list[Hashable]]:
        """For each attribute, its label at every element: the columns that name the elements."""
        pairs = zip(self.attributes, self.label_codes(), strict=True)
        return {a.name: [a.labels[c] for c in codes] for a, codes in pairs}

    def find(self, columns: Mapping[str, Sequence[Hashable]]) -> Ints:
        """The element with these labels, row by row; −1 where there is none."""
        codes = []
        for attribute in self.attributes:
            place = {label: c for c, label in enumerate(attribute.labels)}
            codes.append(np.fromiter((place.get(v, -1) for v in columns[attribute.name]), np.int64))
        length = len(codes[0]) if codes else 1
        missing = np.zeros(length, dtype=bool)
        number = np.zeros(length, dtype=np.int64)
        for part in self.parts:
            joint = np.zeros(length, dtype=np.int64)
            for a, radix in zip(part.attributes, part.radix, strict=True):
                missing |= codes[a] < 0
                joint = joint * radix + codes[a]
            place_in = np.minimum(np.searchsorted(part.joint, joint), len(part.joint) - 1)
            missing |= part.joint[place_in] != joint
            number = number * len(part.joint) + place_in
        return np.where(missing, -1, number)


def _parts(universe: Universe, attributes: tuple[Attribute, ...]) -> Iterable[_Part]:
    block_of = {
        name: b
        for b, block in enumerate(universe.blocks)
        for name in (list(universe.dimensions)[d] for d in block.dims)
    }
    touched = [{block_of[dim] for dim in attribute.of} for attribute in attributes]
    for group in connected(touched):
        blocks = tuple(sorted(set().union(*(touched[a] for a in group))))
        listed = math.prod(universe.blocks[b].size for b in blocks)
        if listed > MAX_LISTED:
            names = ", ".join(attributes[a].name for a in group)
            raise InputError(
                f"{names} depend on each other over {listed} combinations, too many to list: use fewer attributes"
            )
        codes = _joint_codes(universe, attributes, group, blocks)
        joint, first, sizes = np.unique(codes, return_index=True, return_counts=True)
        radix = tuple(len(attributes[a].labels) for a in group)
        again = partial(_joint_codes, universe, attributes, group, blocks)
        yield _Part(tuple(group), blocks, joint, sizes.astype(np.int64), first.astype(np.int64), radix, again)


def _joint_codes(
    universe: Universe, attributes: tuple[Attribute, ...], group: Sequence[int], blocks: Sequence[int]
) -> Ints:
    """The mixed-radix code of a group of attributes at every combination of some blocks."""
    codes_of: dict[str, Ints] = {}
    names = list(universe.dimensions)
    for axis, b in enumerate(blocks):
        block = universe.blocks[b]
        shape = [block.size if other == axis else 1 for other in range(len(blocks))]
        for dim, code in zip(block.dims, block.unrank(np.arange(block.size)), strict=True):
            codes_of[names[dim]] = code.reshape(shape)
    joint = np.zeros([universe.blocks[b].size for b in blocks], dtype=np.int64)
    if math.prod(len(attributes[a].labels) for a in group) > 2**63 - 1:
        raise InputError(
            f"{', '.join(attributes[a].name for a in group)} have too many combinations of labels"
        )
    for a in group:
        joint *= len(attributes[a].labels)
        joint += attributes[a].codes[tuple(codes_of[dim] for dim in attributes[a].of)]
    return joint.reshape(-1)


def connected(sets: Sequence[set[int]]) -> list[list[int]]:
    """Positions of the sets, grouped so that sets which share a member are together; order of first appearance."""
    groups: list[tuple[list[int], set[int]]] = []
    for position, members in enumerate(sets):
        joined, pool, kept = [position], set(members), []
        for group, other in groups:
            if other & pool:
                joined, pool = group + joined, pool | other
            else:
                kept.append((group, other))
        groups = [*kept, (sorted(joined), pool)]
    return sorted(group for group, _ in groups)


def _outer(vectors: Sequence[Ints], combine: np.ufunc, start: int) -> Ints:
    total: Ints = np.array([start], dtype=np.int64)
    for vector in vectors:
        total = combine.outer(total, vector).reshape(-1)
    return total
