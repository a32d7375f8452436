"""What can be counted: the trip types that dimensions span, less public structural zeros.

A universe is never enumerated unless asked. It is stored as a product of *blocks*: a block is one dimension, or the
few dimensions that share structural zeros, whose allowed combinations are listed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.features.dimension import Attribute, Dimension, Labels, label_table, make_attribute
from cbdp.features.partition import MAX_LISTED, Partition, connected

MAX_SIZE = 2**63 - 1

Zeros = tuple[tuple[str, ...], NDArray[np.bool_]]  # dimensions, and where their combinations cannot occur


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

    >>> from cbdp.features import periods
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
    zeros: tuple[Zeros, ...]

    def __init__(self, **dimensions: Dimension | Iterable[Hashable]) -> None:
        if not dimensions:
            raise InputError("a universe needs at least one dimension")
        for name in dimensions:
            if "." in name:
                raise InputError(f"dimension {name!r}: a dot belongs between a dimension and its attribute")
        for name, given in dimensions.items():
            if isinstance(given, str) or not isinstance(given, Iterable | Dimension):
                raise InputError(
                    f"dimension {name!r} is {given!r}: give a list of its values, or a Dimension"
                )
        dims = {n: d if isinstance(d, Dimension) else Dimension(d) for n, d in dimensions.items()}
        attributes = {}
        for name, dim in dims.items():
            codes = np.arange(len(dim), dtype=np.int64)
            attributes[name] = Attribute(name, (name,), dim.values, codes)
            for key, labels in dim.attributes.items():
                full = f"{name}.{key}"
                attributes[full] = make_attribute(full, (name,), np.array([*labels, None], dtype=object)[:-1])
        self._fill(dims, attributes, ())

    def _fill(
        self,
        dims: Mapping[str, Dimension],
        attributes: Mapping[str, Attribute],
        zeros: tuple[Zeros, ...],
    ) -> None:
        object.__setattr__(self, "dimensions", dims)
        object.__setattr__(self, "attributes", attributes)
        object.__setattr__(self, "zeros", zeros)
        object.__setattr__(self, "blocks", _blocks(dims, zeros))
        if self.size == 0:
            raise InputError("the structural zeros leave no trip type: the universe is empty")
        if self.size > MAX_SIZE:
            raise InputError(
                f"the universe has {self.size} trip types, more than 2^63 − 1: coarsen a dimension"
            )

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
        made = make_attribute(name, of, label_table(name, labels, values, self._never(of)))
        return self._copy(attributes={**self.attributes, name: made})

    def _never(self, of: tuple[str, ...]) -> NDArray[np.bool_]:
        """Where combinations of these dimensions are structural zeros, so that nobody needs a label for them."""
        never = np.zeros([len(self.dimension(dim)) for dim in of], dtype=bool)
        for dims, zero in self.zeros:
            if set(dims) <= set(of):
                order = sorted(range(len(dims)), key=lambda a: of.index(dims[a]))
                shape = [len(self.dimension(dim)) if dim in dims else 1 for dim in of]
                never |= np.transpose(zero, order).reshape(shape)
        return never

    def without(self, of: str | Sequence[str], zero: NDArray[np.bool_] | Callable[..., bool]) -> Universe:
        """Return the universe less public structural zeros: `zero` is true where a combination cannot occur."""
        of = (of,) if isinstance(of, str) else tuple(of)
        if len(set(of)) < len(of):
            raise InputError(f"structural zeros name a dimension twice: {', '.join(of)}")
        values = tuple(self.dimension(dim).values for dim in of)
        table = label_table("structural zeros", zero, values)
        return self._copy(zeros=(*self.zeros, (of, table.astype(bool))))

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
        made = object.__new__(Universe)
        made._fill(dims, attributes, zeros)
        return made

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


def _blocks(dims: Mapping[str, Dimension], zeros: Sequence[Zeros]) -> tuple[Block, ...]:
    names = list(dims)
    sizes = [len(d) for d in dims.values()]
    groups = connected([{d} for d in range(len(names))] + [{names.index(n) for n in of} for of, _ in zeros])
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
    masks: Sequence[Zeros],
) -> Ints:
    if math.prod(shape) > MAX_LISTED:
        raise InputError(
            f"structural zeros connect {math.prod(shape)} combinations, too many to list: use fewer dimensions in them"
        )
    zero = np.zeros(shape, dtype=bool)
    for of, mask in masks:
        axes = [own.index(names.index(n)) for n in of]
        order = np.argsort(axes)
        full = [1] * len(shape)
        for axis in axes:
            full[axis] = shape[axis]
        zero |= np.transpose(mask, order).reshape(full)
    return np.flatnonzero(~zero).astype(np.int64)
