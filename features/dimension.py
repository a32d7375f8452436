"""Dimensions: finite public lists of values, and their attributes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.errors import InputError

Labels = Sequence[Any] | Mapping[Any, Hashable] | NDArray[Any] | Callable[..., Hashable]


PLAIN = "biuUS"  # kinds of arrays that hold no missing value and sort by themselves


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
            if _missing(value):
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


def make_attribute(name: str, of: tuple[str, ...], table: NDArray[Any]) -> Attribute:
    if table.dtype.kind in PLAIN:
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
    labels: Any,
    values: tuple[tuple[Hashable, ...], ...],
    never: NDArray[np.bool_] | None = None,
) -> NDArray[Any]:
    """Labels given as an array, a mapping or a function, as one object array over the dimensions.

    Where `never` is true the combination does not occur: a label that is missing there is replaced by any other.
    """
    shape = tuple(len(v) for v in values)
    if isinstance(labels, Mapping) or callable(labels):
        table = np.empty(shape, dtype=object)
        for position in np.ndindex(*shape):
            key = tuple(v[p] for v, p in zip(values, position, strict=True))
            table[position] = _label(labels, key)
    elif len(shape) == 1 and not isinstance(labels, np.ndarray):
        table = np.array([*labels, None], dtype=object)[:-1]  # so that tuples stay labels
    else:
        table = np.asarray(labels) if isinstance(labels, np.ndarray) else np.array(labels, dtype=object)
    if table.shape != shape:
        raise InputError(f"{name}: labels have shape {table.shape}, the dimensions need {shape}")
    return table if table.dtype.kind in PLAIN else _complete(name, table.astype(object), values, never)


def _label(labels: Any, key: tuple[Hashable, ...]) -> Any:
    if callable(labels):
        return labels(*key)
    return labels.get(key[0] if len(key) == 1 else key)


def _complete(
    name: str,
    table: NDArray[Any],
    values: tuple[tuple[Hashable, ...], ...],
    never: NDArray[np.bool_] | None,
) -> NDArray[Any]:
    """The table with labels missing at structural zeros filled in; others missing are an error."""
    flat = table.reshape(-1)
    for label in flat:
        if not isinstance(label, Hashable):
            raise InputError(f"{name}: the label {label!r} cannot be looked up: use text, numbers or tuples")
    missing = np.fromiter((_missing(label) for label in flat), bool, len(flat))
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


def _missing(value: Any) -> bool:
    """None, NaN of any kind, or pandas' NA: what is not equal to itself, or does not know."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124
    except (TypeError, ValueError):
        return True
