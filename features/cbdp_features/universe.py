"""The universe: dimensions and their attributes, trip types as their product less structural zeros, and partitions of it by attributes.

A trip type has an index (`rank`, `unrank`), and a partition knows its elements and their sizes, without the universe ever being enumerated: both are
products of small lists, one for each group of dimensions that hang together.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Bools, Indices, Ints
from cbdp.errors import InputError

# labels are given for each value, by value, by place or as a function of values; a mapping's keys are values, or tuples of them
Labels = Sequence[object] | Mapping[Any, Hashable] | NDArray[np.generic] | Callable[..., Hashable]


SORTABLE_KINDS = "biuUS"  # kinds of arrays that hold no missing value and sort by themselves


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
            if not isinstance(value, Hashable):
                raise InputError(
                    f"a dimension's value {value!r} cannot be looked up: use text, numbers or tuples"
                )
            if _is_missing(value):
                raise InputError(
                    f"a dimension's value number {place} is missing ({value!r}): name every value"
                )
            if value in positions:
                raise InputError(f"a dimension lists the value {value!r} twice: list each value once")
            positions[value] = place
        object.__setattr__(self, "values", listed)
        object.__setattr__(self, "edges", None if edges is None else tuple(edges))
        object.__setattr__(self, "_positions", positions)
        tables = {name: label_table(name, labels, (listed,)) for name, labels in attributes.items()}
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


@dataclass(frozen=True, eq=False)
class Attribute:
    """A public function of one to three dimensions: `labels[codes[i, j, …]]` is its value.

    >>> import cbdp
    >>> stops = cbdp.Dimension(["A", "B", "C"], zone=["north", "south", "south"])
    >>> zone = cbdp.Universe(origin=stops, time=["am", "pm"]).attribute("origin.zone")
    >>> zone.of, zone.labels, zone.codes.tolist()
    (('origin',), ('north', 'south'), [0, 1, 1])
    """

    name: str
    of: tuple[str, ...]
    labels: tuple[Hashable, ...]
    codes: Ints = field(repr=False)


def attribute_of(name: str, of: tuple[str, ...], table: NDArray[np.generic]) -> Attribute:
    if table.dtype.kind in SORTABLE_KINDS:
        plain, inverse = np.unique(table, return_inverse=True)
        return Attribute(name, of, tuple(plain.tolist()), inverse.reshape(table.shape).astype(np.int64))
    flat = table.reshape(-1).tolist()
    distinct = dict.fromkeys(flat)
    try:
        labels = tuple(sorted(distinct))
    except TypeError:  # labels of mixed kinds keep the order in which they first stand
        labels = tuple(distinct)
    place = {label: c for c, label in enumerate(labels)}
    codes = np.fromiter((place[v] for v in flat), np.int64, len(flat)).reshape(table.shape)
    return Attribute(name, of, labels, codes)


def label_table(
    name: str,
    labels: Labels,
    values: tuple[tuple[Hashable, ...], ...],
    never: Bools | None = None,
) -> NDArray[np.generic]:
    """Labels given as an array, a mapping or a function, as one object array over the dimensions.

    Where `never` is true the combination does not occur: a label that is missing there is replaced by any other.
    """
    shape = tuple(len(v) for v in values)
    if isinstance(labels, Mapping) or callable(labels):
        table = np.empty(shape, dtype=object)
        for position in np.ndindex(*shape):
            key = tuple(v[p] for v, p in zip(values, position, strict=True))
            table[position] = _looked_up_label(labels, key)
    elif len(shape) == 1 and not isinstance(labels, np.ndarray):
        table = np.array([*labels, None], dtype=object)[:-1]  # so that tuples stay labels
    else:
        table = np.asarray(labels) if isinstance(labels, np.ndarray) else np.array(labels, dtype=object)
    if table.shape != shape:
        raise InputError(f"{name}: labels have shape {table.shape}, the dimensions need {shape}")
    return (
        table
        if table.dtype.kind in SORTABLE_KINDS
        else _labels_without_gaps(name, table.astype(object), values, never)
    )


def _looked_up_label(
    labels: Mapping[Any, Hashable] | Callable[..., Hashable], key: tuple[Hashable, ...]
) -> Hashable:
    if callable(labels):
        return labels(*key)
    return labels.get(key[0] if len(key) == 1 else key)


def _labels_without_gaps(
    name: str,
    table: NDArray[np.object_],
    values: tuple[tuple[Hashable, ...], ...],
    never: Bools | None,
) -> NDArray[np.object_]:
    """The table with labels missing at structural zeros filled in; others missing are an error."""
    flat = table.reshape(-1)
    for label in flat:
        if not isinstance(label, Hashable):
            raise InputError(f"{name}: the label {label!r} cannot be looked up: use text, numbers or tuples")
    missing = np.fromiter((_is_missing(label) for label in flat), bool, len(flat))
    needed = missing if never is None else missing & ~never.reshape(-1)
    if needed.any():
        position = np.unravel_index(int(np.flatnonzero(needed)[0]), table.shape)
        key = tuple(v[p] for v, p in zip(values, position, strict=True))
        raise InputError(
            f"{name}: no value for {', '.join(map(repr, key))}, so it does not partition the universe: label every one"
        )
    if missing.any():
        flat[missing] = flat[~missing][0]
    return flat.reshape(table.shape)


def _is_missing(value: object) -> bool:
    """None, NaN of any kind, or pandas' NA: what is not equal to itself, or has no truth value."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124
    except (TypeError, ValueError):
        return True


# Partitions


MAX_LISTED_COMBINATIONS = 2**28  # combinations of dimensions: 2 GB of indices listed at once
MAX_LOOKUP_CODES = 2**20  # codes of joint values: 8 MB, up to which a table replaces a binary search


@dataclass(frozen=True, eq=False)
class _Component:
    """A connected component of the attributes that share dimensions, and the combinations of their labels that occur."""

    attributes: tuple[int, ...]  # positions in the partition's list
    blocks: tuple[int, ...]
    joint: Ints  # the combinations that occur, as mixed-radix codes, sorted
    sizes: Ints  # combinations of the part's blocks behind each
    first: Ints  # one of them (as an index into the part's blocks)
    radix: tuple[int, ...]
    codes: Callable[[], Ints]  # the mixed-radix code of every combination of the part's blocks

    def place(self, joint: Ints) -> Ints:
        """Which of the combinations that occur each of these codes is."""
        return np.searchsorted(self.joint, joint) if self._places is None else self._places[joint]

    @cached_property
    def _places(self) -> Ints | None:
        """The place of every code there could be, where that is a short list."""
        codes = math.prod(self.radix)
        return np.searchsorted(self.joint, np.arange(codes)) if codes <= MAX_LOOKUP_CODES else None

    @cached_property
    def members(self) -> Indices:
        """All combinations of the part's blocks, those of the first joint value first, then of the second, …"""
        place = self.place(self.codes())
        # short integers are sorted in linear time
        small = np.uint16 if len(self.joint) <= 2**16 else np.int64
        order = np.argsort(place.astype(small), kind="stable")
        return order.astype(np.int32) if len(order) < 2**31 else order

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
    parts: tuple[_Component, ...]

    def __init__(self, universe: Universe, attributes: tuple[Attribute, ...]) -> None:
        object.__setattr__(self, "universe", universe)
        object.__setattr__(self, "attributes", attributes)
        object.__setattr__(self, "parts", tuple(_components(universe, attributes)))
        if self.size > MAX_LISTED_COMBINATIONS:
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
        return _outer_combination([part.sizes for part in self.parts], np.multiply, rest)

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
        rank: dict[int, Ints] = {}
        used = {b for part in self.parts for b in part.blocks}
        for b in reversed([b for b in range(len(blocks)) if b not in used]):
            place, rank[b] = np.divmod(place, blocks[b].size)
        for part in reversed(self.parts):
            element, joint = np.divmod(element, len(part.joint))
            place, inside = np.divmod(place, part.sizes[joint])
            index = part.members[part.starts[joint] + inside].astype(np.int64)
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
                index, within = np.divmod(index, blocks[b].size)
                for dim, code in zip(blocks[b].dims, blocks[b].unrank(within), strict=True):
                    codes[dim] = code
        return codes

    def of_every_type(self) -> NDArray[Any]:
        """The element of every trip type, in the universe's order (one number per type: for universes that fit)."""
        blocks = self.universe.blocks
        shape = [block.size for block in blocks]
        number: Indices = np.zeros(shape, np.int32) if self.size < 2**31 else np.zeros(shape, np.int64)
        inner = self.size
        for part in self.parts:
            inner //= len(part.joint)
            place = part.place(part.codes())
            shape = [block.size if b in part.blocks else 1 for b, block in enumerate(blocks)]
            np.add(number, (place * inner).astype(number.dtype).reshape(shape), out=number)
        return number.reshape(-1)

    def label_codes(self) -> list[Ints]:
        """For each attribute, the code of its label at every element."""
        inner = self.size
        number = np.arange(self.size)
        codes = [number] * len(self.attributes)
        for part in self.parts:
            inner //= len(part.joint)
            joint = part.joint[number // inner % len(part.joint)]
            for a, radix in zip(reversed(part.attributes), reversed(part.radix), strict=True):
                joint, codes[a] = np.divmod(joint, radix)
        return codes

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


def _components(universe: Universe, attributes: tuple[Attribute, ...]) -> Iterable[_Component]:
    block_of = {
        name: b
        for b, block in enumerate(universe.blocks)
        for name in (list(universe.dimensions)[d] for d in block.dims)
    }
    touched = [{block_of[dim] for dim in attribute.of} for attribute in attributes]
    for group in connected_components(touched):
        blocks = tuple(sorted(set().union(*(touched[a] for a in group))))
        listed = math.prod(universe.blocks[b].size for b in blocks)
        if listed > MAX_LISTED_COMBINATIONS:
            names = ", ".join(attributes[a].name for a in group)
            raise InputError(
                f"{names} depend on each other over {listed} combinations, too many to list: use fewer attributes"
            )
        codes = _joint_codes(universe, attributes, group, blocks)
        joint, first, sizes = np.unique(codes, return_index=True, return_counts=True)
        radix = tuple(len(attributes[a].labels) for a in group)
        # not kept but computed again on demand: as long as the blocks' combinations
        every_code = partial(_joint_codes, universe, attributes, group, blocks)
        yield _Component(
            tuple(group), blocks, joint, sizes.astype(np.int64), first.astype(np.int64), radix, every_code
        )


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


def connected_components(sets: Sequence[set[int]]) -> list[list[int]]:
    """Connected components of sets that share members, as positions, in order of first appearance."""
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


def _outer_combination(vectors: Sequence[Ints], combine: np.ufunc, start: int) -> Ints:
    total: Ints = np.array([start], dtype=np.int64)
    for vector in vectors:
        total = combine.outer(total, vector).reshape(-1)
    return total


# The universe, a product of *blocks*: a block is one dimension, or the few dimensions that share structural zeros, whose allowed combinations
# are listed.


MAX_UNIVERSE_SIZE = 2**63 - 1  # trip types: indices are 64-bit integers

# dimensions, and where their combinations cannot occur
StructuralZeros = tuple[tuple[str, ...], Bools]


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

    >>> from cbdp_features import periods
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
    zeros: tuple[StructuralZeros, ...]

    def __init__(self, **dimensions: Dimension | Iterable[Hashable]) -> None:
        if not dimensions:
            raise InputError("a universe needs at least one dimension")
        for name in dimensions:
            if "." in name:
                raise InputError(f"dimension {name!r}: a dot belongs between a dimension and its attribute")
        for name, values in dimensions.items():
            if isinstance(values, str) or not isinstance(values, Iterable | Dimension):
                raise InputError(
                    f"dimension {name!r} is {values!r}: give a list of its values, or a Dimension"
                )
        dims = {n: d if isinstance(d, Dimension) else Dimension(d) for n, d in dimensions.items()}
        attributes = {}
        for name, dim in dims.items():
            codes = np.arange(len(dim), dtype=np.int64)
            attributes[name] = Attribute(name, (name,), dim.values, codes)
            for key, labels in dim.attributes.items():
                full = f"{name}.{key}"
                attributes[full] = attribute_of(full, (name,), np.array([*labels, None], dtype=object)[:-1])
        self._fill(dims, attributes, ())

    def _fill(
        self,
        dims: Mapping[str, Dimension],
        attributes: Mapping[str, Attribute],
        zeros: tuple[StructuralZeros, ...],
    ) -> None:
        object.__setattr__(self, "dimensions", dims)
        object.__setattr__(self, "attributes", attributes)
        object.__setattr__(self, "zeros", zeros)
        object.__setattr__(self, "blocks", _independent_blocks(dims, zeros))
        if self.size == 0:
            raise InputError("the structural zeros leave no trip type: the universe is empty")
        if self.size > MAX_UNIVERSE_SIZE:
            raise InputError(
                f"the universe has {self.size} trip types, more than 2^63 − 1: coarsen a dimension"
            )

    def _copy(self, attributes: Mapping[str, Attribute], zeros: tuple[StructuralZeros, ...]) -> Universe:
        copy = object.__new__(Universe)
        copy._fill(self.dimensions, attributes, zeros)
        return copy

    def __repr__(self) -> str:
        sizes = " × ".join(f"{name} {len(d)}" for name, d in self.dimensions.items())
        return f"Universe({sizes}: {self.size:,} trip types)"

    @property
    def size(self) -> int:
        """The number of trip types."""
        return math.prod(block.size for block in self.blocks)

    @cached_property
    def types_hash(self) -> str:
        """The SHA-256 of the trip types in their order: dimensions with their values and edges, and structural zeros. Attributes have no part in it.

        >>> Universe(stop=["A", "B"]).types_hash == Universe(stop=["B", "A"]).types_hash
        False
        """
        digest = hashlib.sha256()
        for name, dim in self.dimensions.items():
            values = [(type(value).__name__, repr(value)) for value in dim.values]
            digest.update(repr((name, dim.edges, values)).encode("utf-8", "surrogatepass"))
        for block in self.blocks:
            if block.allowed is not None:
                digest.update(repr((block.dims, block.shape, len(block.allowed))).encode())
                digest.update(np.ascontiguousarray(block.allowed, dtype="<i8").tobytes())
        return digest.hexdigest()

    def same_types(self, other: Universe) -> bool:
        """Whether an index means the same trip type in both. Universes of one size need not be the same."""
        return self is other or (self.size == other.size and self.types_hash == other.types_hash)

    def with_attribute(self, name: str, of: str | Sequence[str], labels: Labels) -> Universe:
        """Return the universe with one more attribute: `labels` is an array over the dimensions, a mapping or a function."""
        of = (of,) if isinstance(of, str) else tuple(of)
        if not 1 <= len(of) <= 3:
            raise InputError(f"attribute {name!r} is of {len(of)} dimensions: one to three are possible")
        if len(set(of)) < len(of):
            raise InputError(f"attribute {name!r} names a dimension twice: {of}")
        if name in self.attributes:
            raise InputError(f"the universe already has an attribute {name!r}: choose another name")
        values = tuple(self.dimension(dim).values for dim in of)
        attribute = attribute_of(name, of, label_table(name, labels, values, self._never(of)))
        return self._copy({**self.attributes, name: attribute}, self.zeros)

    def _never(self, of: tuple[str, ...]) -> Bools:
        """Where combinations of these dimensions are structural zeros, so that nobody needs a label for them."""
        never = np.zeros([len(self.dimension(dim)) for dim in of], dtype=bool)
        for dims, zero in self.zeros:
            if set(dims) <= set(of):
                order = sorted(range(len(dims)), key=lambda a: of.index(dims[a]))
                shape = [len(self.dimension(dim)) if dim in dims else 1 for dim in of]
                never |= np.transpose(zero, order).reshape(shape)
        return never

    def without(self, of: str | Sequence[str], zero: Bools | Callable[..., bool]) -> Universe:
        """Return the universe less public structural zeros: `zero` is true where a combination cannot occur."""
        of = (of,) if isinstance(of, str) else tuple(of)
        if len(set(of)) < len(of):
            raise InputError(f"structural zeros name a dimension twice: {', '.join(of)}")
        values = tuple(self.dimension(dim).values for dim in of)
        table = label_table("structural zeros", zero, values)
        return self._copy(self.attributes, (*self.zeros, (of, table.astype(bool))))

    def without_equal(self, first: str, second: str) -> Universe:
        """Return the universe less the types whose `first` and `second` value are the same (say origin = destination)."""
        a, b = self.dimension(first), self.dimension(second)
        zero = np.zeros((len(a), len(b)), dtype=bool)
        place = b.codes(a.values)
        here = np.flatnonzero(place >= 0)
        zero[here, place[here]] = True
        return self.without((first, second), zero)

    def restricted(self, keep: Mapping[str, Sequence[int]]) -> Universe:
        """Return the universe of some values of its dimensions, given by their places, with the same attributes and structural zeros.

        >>> u = Universe(stop=Dimension(["A", "B", "C"], zone=["n", "n", "s"]), time=["am", "pm"])
        >>> small = u.restricted({"stop": [0, 2]})
        >>> small.dimensions["stop"].values, small.size, small.attribute("stop.zone").labels
        (('A', 'C'), 4, ('n', 's'))
        """
        places = {n: np.asarray(keep.get(n, range(len(d))), np.int64) for n, d in self.dimensions.items()}
        dims = {}
        for name, dim in self.dimensions.items():
            kept = places[name].tolist()
            labels = {key: [values[p] for p in kept] for key, values in dim.attributes.items()}
            edges = None if dim.edges is None else dim.edges[kept[0] : kept[-1] + 2]
            if edges is not None and len(edges) != len(kept) + 1:
                raise InputError(
                    f"periods of {name!r} with others between them: keep periods that follow one another"
                )
            dims[name] = Dimension([dim.values[p] for p in kept], edges=edges, **labels)
        attributes = {}
        for name, attribute in self.attributes.items():
            codes = attribute.codes[np.ix_(*(places[dim] for dim in attribute.of))]
            used, inverse = np.unique(codes, return_inverse=True)
            present = tuple(attribute.labels[c] for c in used.tolist())
            attributes[name] = Attribute(
                name, attribute.of, present, inverse.reshape(codes.shape).astype(np.int64)
            )
        zeros = tuple((of, zero[np.ix_(*(places[dim] for dim in of))]) for of, zero in self.zeros)
        restricted = object.__new__(Universe)
        restricted._fill(dims, attributes, zeros)
        return restricted

    def dimension(self, name: str) -> Dimension:
        """The dimension of this name."""
        if name not in self.dimensions:
            raise InputError(f"unknown dimension {name!r}: the universe has {', '.join(self.dimensions)}")
        return self.dimensions[name]

    def attribute(self, name: str) -> Attribute:
        """The attribute of this name, like "origin.zone"; a dimension's name is one too."""
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
        rest = np.asarray(index, dtype=np.int64)
        codes = [rest] * len(self.dimensions)
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


def _independent_blocks(dims: Mapping[str, Dimension], zeros: Sequence[StructuralZeros]) -> tuple[Block, ...]:
    names = list(dims)
    sizes = [len(d) for d in dims.values()]
    groups = connected_components(
        [{d} for d in range(len(names))] + [{names.index(n) for n in of} for of, _ in zeros]
    )
    blocks = []
    for group in groups:
        members = {g for g in group if g < len(names)}
        for g in group:
            if g >= len(names):
                members |= {names.index(n) for n in zeros[g - len(names)][0]}
        axes = tuple(sorted(members))
        shape = tuple(sizes[d] for d in axes)
        masks = [zeros[g - len(names)] for g in group if g >= len(names)]
        blocks.append(Block(axes, shape, _allowed_combinations(axes, shape, names, masks) if masks else None))
    return tuple(sorted(blocks, key=lambda block: block.dims))


def _allowed_combinations(
    dims: tuple[int, ...],
    shape: tuple[int, ...],
    names: Sequence[str],
    masks: Sequence[StructuralZeros],
) -> Ints:
    if math.prod(shape) > MAX_LISTED_COMBINATIONS:
        raise InputError(
            f"structural zeros connect {math.prod(shape)} combinations, too many to list: use fewer dimensions in them"
        )
    zero = np.zeros(shape, dtype=bool)
    for of, mask in masks:
        axes = [dims.index(names.index(n)) for n in of]
        order = np.argsort(axes)
        full = [1] * len(shape)
        for axis in axes:
            full[axis] = shape[axis]
        zero |= np.transpose(mask, order).reshape(full)
    return np.flatnonzero(~zero).astype(np.int64)


# Ascending lists of trip types


def is_member(index: Ints, ordered: Ints) -> Bools:
    """Which of these are in an ascending list: `np.isin` by binary search."""
    if not len(ordered):
        return np.zeros(len(index), dtype=bool)
    place = np.minimum(np.searchsorted(ordered, index), len(ordered) - 1)
    return np.asarray(ordered[place] == index)


def sorted_union(*ascending: NDArray[np.int64]) -> NDArray[np.int64]:
    """The union of ascending lists, ascending: `np.unique(np.concatenate(…))`, by merging."""
    every = np.sort(np.concatenate(ascending), kind="stable")  # which merges runs
    return every[np.concatenate([[True], every[1:] != every[:-1]])] if len(every) else every
