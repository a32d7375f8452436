"""What can be counted: finite public dimensions, attributes of them, and the trip types they span.

A universe is never enumerated unless asked. It is stored as a product of *blocks*: a block is one dimension, or the
few dimensions that share structural zeros, whose allowed combinations are listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError

Ints = NDArray[np.int64]
Labels = Sequence[Hashable] | Mapping[Any, Hashable] | NDArray[Any] | Callable[..., Hashable]

MAX_SIZE = 2**63 - 1
MAX_LISTED = 2**28  # combinations of dimensions that may be listed in memory at once


@dataclass(frozen=True, init=False, eq=False)
class Dimension:
    """A finite public list of values, with attributes of those values.

    >>> stops = Dimension(["A", "B", "C"], zone=["north", "north", "south"])
    >>> len(stops), stops.attributes["zone"]
    (3, ('north', 'north', 'south'))
    """

    values: tuple[Hashable, ...]
    attributes: Mapping[str, tuple[Hashable, ...]]
    edges: tuple[int, ...] | None  # seconds of the day between which each period lies, for binned times

    def __init__(
        self, values: Iterable[Hashable], *, edges: Sequence[int] | None = None, **attributes: Labels
    ) -> None:
        listed = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
        if not listed:
            raise InputError("a dimension has no values: give at least one")
        positions: dict[Hashable, int] = {}
        for place, value in enumerate(listed):
            if _missing(value):
                raise InputError(f"a dimension's value number {place} is missing ({value!r}): name every value")
            if value in positions:
                raise InputError(f"the value {value!r} stands twice in a dimension: values must be distinct")
            positions[value] = place
        object.__setattr__(self, "values", listed)
        object.__setattr__(self, "edges", None if edges is None else tuple(edges))
        object.__setattr__(self, "_positions", positions)
        tables = {name: _label_table(name, labels, (listed,)) for name, labels in attributes.items()}
        object.__setattr__(self, "attributes", {name: tuple(table) for name, table in tables.items()})

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.values[:3])) + (", …" if len(self) > 3 else "")
        return f"Dimension({len(self)}: {shown})"

    def codes(self, values: Iterable[Hashable]) -> Ints:
        """The positions of `values`; −1 for one that is not in the dimension."""
        positions: dict[Hashable, int] = self._positions  # type: ignore[attr-defined]
        return np.fromiter((positions.get(v, -1) for v in values), np.int64)


def periods(start: str, end: str, every: str) -> Dimension:
    """The periods of a day from `start` to `end`, named by the time each begins.

    >>> periods("08:00", "10:00", "30min").values
    ('08:00', '08:30', '09:00', '09:30')
    """
    begin, finish, step = _clock(start), _clock(end), _duration(every)
    if finish <= begin:
        raise InputError(f"periods end at {end!r}, which is not after their start {start!r}")
    if (finish - begin) % step:
        raise InputError(f"{every!r} does not divide the time from {start!r} to {end!r}: choose another length")
    edges = range(begin, finish + 1, step)
    seconds = step % 60 != 0 or begin % 60 != 0
    return Dimension([_clock_text(e, seconds=seconds) for e in edges[:-1]], edges=tuple(edges))


@dataclass(frozen=True, eq=False)
class Attribute:
    """A public function of one to three dimensions: `labels[codes[i, j, …]]` is its value."""

    name: str
    of: tuple[str, ...]
    labels: tuple[Hashable, ...]
    codes: Ints = field(repr=False)


@dataclass(frozen=True, eq=False)
class Block:
    """Dimensions (by position) that are indexed together; `allowed` lists their combinations, None meaning all."""

    dims: tuple[int, ...]
    shape: tuple[int, ...]
    allowed: Ints | None

    @property
    def size(self) -> int:
        return math.prod(self.shape) if self.allowed is None else len(self.allowed)

    def rank(self, codes: Sequence[Ints]) -> Ints:
        """The block's index of each combination of codes; −1 where it is a structural zero."""
        flat = np.ravel_multi_index(tuple(codes), self.shape).astype(np.int64, copy=False)
        if self.allowed is None:
            return flat
        place = np.minimum(np.searchsorted(self.allowed, flat), len(self.allowed) - 1)
        return np.where(self.allowed[place] == flat, place, -1)

    def unrank(self, index: Ints) -> tuple[Ints, ...]:
        flat = index if self.allowed is None else self.allowed[index]
        return tuple(c.astype(np.int64, copy=False) for c in np.unravel_index(flat, self.shape))


@dataclass(frozen=True, init=False, eq=False)
class Universe:
    """The product of named dimensions less public structural zeros.

    >>> stops = Dimension(["A", "B", "C"], zone=["n", "n", "s"])
    >>> u = Universe(origin=stops, destination=stops, time=periods("08:00", "10:00", "30min"))
    >>> u = u.without_equal("origin", "destination")
    >>> u.size, u.unrank(5), int(u.rank("A", "C", "08:30"))
    (24, ('A', 'C', '08:30'), 5)
    >>> u.count_types(["origin.zone"]).tolist()
    [16, 8]
    """

    dimensions: Mapping[str, Dimension]
    attributes: Mapping[str, Attribute]
    blocks: tuple[Block, ...]
    zeros: tuple[tuple[tuple[str, ...], NDArray[np.bool_]], ...]

    def __init__(self, **dimensions: Dimension | Iterable[Hashable]) -> None:
        if not dimensions:
            raise InputError("a universe needs at least one dimension")
        for name in dimensions:
            if "." in name:
                raise InputError(f"dimension {name!r}: a dot belongs between a dimension and its attribute")
        dims = {n: d if isinstance(d, Dimension) else Dimension(d) for n, d in dimensions.items()}
        attributes = {}
        for name, dim in dims.items():
            codes = np.arange(len(dim), dtype=np.int64)
            attributes[name] = Attribute(name, (name,), dim.values, codes)
            for key, labels in dim.attributes.items():
                full = f"{name}.{key}"
                attributes[full] = _attribute(full, (name,), np.array([*labels, None], dtype=object)[:-1])
        self._fill(dims, attributes, ())

    def _fill(
        self,
        dims: Mapping[str, Dimension],
        attributes: Mapping[str, Attribute],
        zeros: tuple[tuple[tuple[str, ...], NDArray[np.bool_]], ...],
    ) -> None:
        object.__setattr__(self, "dimensions", dims)
        object.__setattr__(self, "attributes", attributes)
        object.__setattr__(self, "zeros", zeros)
        object.__setattr__(self, "blocks", _blocks(dims, zeros))
        if self.size == 0:
            raise InputError("the structural zeros leave no trip type: the universe is empty")
        if self.size > MAX_SIZE:
            raise InputError(f"the universe has {self.size} trip types, more than 2^63 − 1: coarsen a dimension")

    def _copy(self, **changes: Any) -> Universe:
        made = object.__new__(Universe)
        made._fill(
            self.dimensions, changes.get("attributes", self.attributes), changes.get("zeros", self.zeros)
        )
        return made

    def __repr__(self) -> str:
        sizes = " × ".join(f"{name} {len(d)}" for name, d in self.dimensions.items())
        return f"Universe({sizes}: {self.size:,} trip types)"

    @property
    def size(self) -> int:
        """The number of trip types."""
        return math.prod(block.size for block in self.blocks)

    def with_attribute(self, name: str, of: str | Sequence[str], labels: Labels) -> Universe:
        """This universe with one more attribute: `labels` is an array over the dimensions, a mapping or a function."""
        of = (of,) if isinstance(of, str) else tuple(of)
        if not 1 <= len(of) <= 3:
            raise InputError(f"attribute {name!r} is of {len(of)} dimensions: one to three are possible")
        if len(set(of)) < len(of):
            raise InputError(f"attribute {name!r} names a dimension twice: {of}")
        if name in self.attributes:
            raise InputError(f"the universe already has an attribute {name!r}: choose another name")
        values = tuple(self.dimension(dim).values for dim in of)
        made = _attribute(name, of, _label_table(name, labels, values))
        return self._copy(attributes={**self.attributes, name: made})

    def without(self, of: Sequence[str], zero: NDArray[np.bool_] | Callable[..., bool]) -> Universe:
        """This universe less public structural zeros: `zero` is true where a combination cannot occur."""
        of = tuple(of)
        values = tuple(self.dimension(dim).values for dim in of)
        table = _label_table("structural zeros", zero, values)
        return self._copy(zeros=(*self.zeros, (of, table.astype(bool))))

    def without_equal(self, first: str, second: str) -> Universe:
        """This universe less the types whose `first` and `second` value are the same (say origin = destination)."""
        a, b = self.dimension(first), self.dimension(second)
        zero = np.zeros((len(a), len(b)), dtype=bool)
        place = b.codes(a.values)
        here = np.flatnonzero(place >= 0)
        zero[here, place[here]] = True
        return self.without((first, second), zero)

    def dimension(self, name: str) -> Dimension:
        if name not in self.dimensions:
            raise InputError(f"unknown dimension {name!r}: the universe has {', '.join(self.dimensions)}")
        return self.dimensions[name]

    def attribute(self, name: str) -> Attribute:
        if name not in self.attributes:
            raise InputError(f"unknown attribute {name!r}: the universe has {', '.join(self.attributes)}")
        return self.attributes[name]

    def rank_codes(self, codes: Sequence[Ints]) -> Ints:
        """The index of each trip type given by its dimensions' codes; −1 for structural zeros and negative codes."""
        outside = np.any([np.less(c, 0) for c in codes], axis=0)
        inside = [np.maximum(c, 0) for c in codes]
        index = np.zeros(outside.shape, dtype=np.int64)
        for block in self.blocks:
            part = block.rank([inside[d] for d in block.dims])
            outside = outside | (part < 0)
            index = index * block.size + np.maximum(part, 0)
        return np.where(outside, -1, index)

    def unrank_codes(self, index: Ints) -> list[Ints]:
        """The dimensions' codes of each trip type given by its index."""
        codes: list[Any] = [None] * len(self.dimensions)
        rest = np.asarray(index, dtype=np.int64)
        for block in reversed(self.blocks):
            rest, part = np.divmod(rest, block.size)
            for dim, code in zip(block.dims, block.unrank(part), strict=True):
                codes[dim] = code
        return codes

    def rank(self, *values: Any) -> Any:
        """The index of a trip type given by its values (or of many, given by columns); −1 if it is not one."""
        if len(values) != len(self.dimensions):
            raise InputError(f"a trip type has {len(self.dimensions)} values, not {len(values)}")
        scalar = not any(isinstance(v, list | np.ndarray) for v in values)
        columns = [[v] for v in values] if scalar else values
        codes = [d.codes(column) for d, column in zip(self.dimensions.values(), columns, strict=True)]
        index = self.rank_codes(codes)
        return index[0] if scalar else index

    def unrank(self, index: int) -> tuple[Hashable, ...]:
        """The trip type with this index."""
        if not 0 <= index < self.size:
            raise InputError(f"index {index} is outside the universe of {self.size} trip types")
        codes = self.unrank_codes(np.array([index]))
        return tuple(d.values[int(c[0])] for d, c in zip(self.dimensions.values(), codes, strict=True))

    def partition(self, by: Sequence[str]) -> Partition:
        """The partition of the trip types by these attributes."""
        return Partition(self, tuple(self.attribute(name) for name in by))

    def count_types(self, by: Sequence[str]) -> Ints:
        """How many trip types share each combination of these attributes' values that occurs."""
        return self.partition(by).sizes


@dataclass(frozen=True, eq=False)
class _Part:
    """The attributes that hang together through shared dimensions, and the combinations of them that occur."""

    attributes: tuple[int, ...]  # positions in the partition's list
    blocks: tuple[int, ...]
    joint: Ints  # the combinations that occur, as mixed-radix codes, sorted
    sizes: Ints  # combinations of the part's blocks behind each
    first: Ints  # one of them (as an index into the part's blocks)
    radix: tuple[int, ...]


@dataclass(frozen=True, init=False, eq=False)
class Partition:
    """The trip types grouped by attributes: its elements are the combinations of values that occur.

    Attributes that share no dimension are independent, so elements are a product of small lists and the universe
    behind them is not enumerated. Elements are numbered in the order of those lists.
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
            raise InputError(f"grouping by {names} makes {self.size} elements, too many to list: use fewer attributes")

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
            number = number * len(part.joint) + np.searchsorted(part.joint, joint)
        return number

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

    def of_every_type(self) -> NDArray[np.int32] | Ints:
        """The element of every trip type, in the universe's order (one number per type: for universes that fit)."""
        blocks = self.universe.blocks
        dtype = np.int32 if self.size < 2**31 else np.int64
        number = np.zeros([block.size for block in blocks], dtype=dtype)
        inner = self.size
        for part in self.parts:
            inner //= len(part.joint)
            own = np.searchsorted(part.joint, _joint_codes(self.universe, self.attributes, part.attributes, part.blocks))
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
    for group in _connected(touched):
        blocks = tuple(sorted(set().union(*(touched[a] for a in group))))
        listed = math.prod(universe.blocks[b].size for b in blocks)
        if listed > MAX_LISTED:
            names = ", ".join(attributes[a].name for a in group)
            raise InputError(f"{names} hang together over {listed} combinations, too many to list: use fewer attributes")
        codes = _joint_codes(universe, attributes, group, blocks)
        joint, first, sizes = np.unique(codes, return_index=True, return_counts=True)
        radix = tuple(len(attributes[a].labels) for a in group)
        yield _Part(tuple(group), blocks, joint, sizes.astype(np.int64), first.astype(np.int64), radix)


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
    if math.prod(len(attributes[a].labels) for a in group) > MAX_SIZE:
        raise InputError(f"{', '.join(attributes[a].name for a in group)} have too many combinations of labels")
    for a in group:
        joint *= len(attributes[a].labels)
        joint += attributes[a].codes[tuple(codes_of[dim] for dim in attributes[a].of)]
    return joint.reshape(-1)


def _connected(sets: Sequence[set[int]]) -> list[list[int]]:
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


def _blocks(
    dims: Mapping[str, Dimension], zeros: Sequence[tuple[tuple[str, ...], NDArray[np.bool_]]]
) -> tuple[Block, ...]:
    names = list(dims)
    sizes = [len(d) for d in dims.values()]
    groups = _connected([{d} for d in range(len(names))] + [{names.index(n) for n in of} for of, _ in zeros])
    blocks = []
    for group in groups:
        members = {g for g in group if g < len(names)}
        for g in group:
            if g >= len(names):
                members |= {names.index(n) for n in zeros[g - len(names)][0]}
        own = tuple(sorted(members))
        shape = tuple(sizes[d] for d in own)
        masks = [zeros[g - len(names)] for g in group if g >= len(names)]
        blocks.append(Block(own, shape, _allowed(own, shape, names, masks) if masks else None))
    return tuple(sorted(blocks, key=lambda block: block.dims))


def _allowed(
    own: tuple[int, ...],
    shape: tuple[int, ...],
    names: Sequence[str],
    masks: Sequence[tuple[tuple[str, ...], NDArray[np.bool_]]],
) -> Ints:
    if math.prod(shape) > MAX_LISTED:
        raise InputError(f"structural zeros tie {math.prod(shape)} combinations together, too many to list")
    zero = np.zeros(shape, dtype=bool)
    for of, mask in masks:
        axes = [own.index(names.index(n)) for n in of]
        order = np.argsort(axes)
        full = [1] * len(shape)
        for axis in axes:
            full[axis] = shape[axis]
        zero |= np.transpose(mask, order).reshape(full)
    return np.flatnonzero(~zero).astype(np.int64)


def _attribute(name: str, of: tuple[str, ...], table: NDArray[Any]) -> Attribute:
    flat = table.reshape(-1).tolist()
    distinct = dict.fromkeys(flat)
    try:
        labels = tuple(sorted(distinct))
    except TypeError:  # labels of mixed kinds keep the order in which they first stand
        labels = tuple(distinct)
    place = {label: c for c, label in enumerate(labels)}
    codes = np.fromiter((place[v] for v in flat), np.int64, len(flat)).reshape(table.shape)
    return Attribute(name, of, labels, codes)


def _label_table(name: str, labels: Any, values: tuple[tuple[Hashable, ...], ...]) -> NDArray[Any]:
    """Labels given as an array, a mapping or a function, as one object array over the dimensions."""
    shape = tuple(len(v) for v in values)
    if isinstance(labels, np.ndarray):
        table = labels.astype(object)
    elif isinstance(labels, Mapping) or callable(labels):
        table = np.empty(shape, dtype=object)
        for position in np.ndindex(*shape):
            key = tuple(v[p] for v, p in zip(values, position, strict=True))
            table[position] = _label(name, labels, key)
    else:
        table = np.array([*labels, None], dtype=object)[:-1] if len(shape) == 1 else np.array(labels, dtype=object)
    if table.shape != shape:
        raise InputError(f"{name}: labels have shape {table.shape}, the dimensions need {shape}")
    for position, label in np.ndenumerate(table):
        if _missing(label):
            key = tuple(v[p] for v, p in zip(values, position, strict=True))
            raise InputError(
                f"{name}: no value for {', '.join(map(repr, key))}, so it does not partition the universe: label every one"
            )
    return table


def _label(name: str, labels: Any, key: tuple[Hashable, ...]) -> Any:
    if callable(labels):
        return labels(*key)
    found = labels.get(key[0] if len(key) == 1 else key)
    if found is None:
        raise InputError(f"{name}: no value for {', '.join(map(repr, key))}: label every one")
    return found


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _clock(text: str) -> int:
    pieces = text.split(":")
    try:
        hours, minutes, seconds = (*map(int, pieces), 0, 0)[:3] if len(pieces) in (2, 3) else (-1, 0, 0)
    except ValueError:
        hours, minutes, seconds = -1, 0, 0
    total = hours * 3600 + minutes * 60 + seconds
    if hours < 0 or not (0 <= minutes < 60 and 0 <= seconds < 60) or total > 24 * 3600:
        raise InputError(f"{text!r} is not a time of day: write it like '06:30' (at most '24:00')")
    return total


def _clock_text(second: int, *, seconds: bool) -> str:
    text = f"{second // 3600:02d}:{second // 60 % 60:02d}"
    return f"{text}:{second % 60:02d}" if seconds else text


def _duration(text: str) -> int:
    units = {"min": 60, "h": 3600, "s": 1}
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text[len(number) :]
    if unit not in units or not number.isdigit() or int(number) == 0:
        raise InputError(f"{text!r} is not a length of time: write it like '30min', '1h' or '90s'")
    return int(number) * units[unit]


