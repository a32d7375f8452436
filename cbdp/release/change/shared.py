"""What two universes have in common: the same trip types are compared, and what differs is said.

Values of a dimension that only one universe has are left out. Dates are not: two months have no day in common, and are compared as
wholes. A dimension that only one of them has is added up.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.features import Dimension, Universe
from cbdp.features.dimension import Attribute
from cbdp.features.grouping import Filter
from cbdp.release.universe_files import universe_hash
from cbdp.release.when import days_in

SHOWN = 5  # values that are named


@dataclass(frozen=True)
class Shared:
    """Conditions that leave the common trip types of either universe, and what there is to say."""

    first: tuple[Filter, ...] = ()
    second: tuple[Filter, ...] = ()
    notes: tuple[str, ...] = ()


def shared(first: Universe, second: Universe, named: Sequence[str]) -> Shared:
    """What both universes can be compared by; `named` are the attributes of the question."""
    if first is second or universe_hash(first) == universe_hash(second):
        return Shared()
    for name in named:
        _check_attribute(first, second, name)
    here: list[Filter] = []
    there: list[Filter] = []
    notes = [*_added_up(first, second, "first"), *_added_up(second, first, "second")]
    for name, one in first.dimensions.items():
        other = second.dimensions.get(name)
        if other is None or not _differ(one, other):
            continue
        common = _common(one, other)
        used = any(name in first.attribute(a).of for a in named)
        notes.append(_note(name, one, other, common, used=used))
        if _as_whole(one, other) and not used:
            continue
        here.append(_filter(name, one, common))
        there.append(_filter(name, other, common))
    return Shared(tuple(here), tuple(there), tuple(notes))


def _added_up(own: Universe, other: Universe, which: str) -> list[str]:
    return [
        f"Only the {which} release tells {name} apart ({len(d):,} values): they are added up."
        for name, d in own.dimensions.items()
        if name not in other.dimensions
    ]


def _meaning(dimension: Dimension) -> dict[Hashable, Any]:
    """What each value stands for: a period is its two ends, whatever it is called."""
    if dimension.edges is None:
        return {value: value for value in dimension.values}
    edges = dimension.edges
    return {v: (edges[i], edges[i + 1]) for i, v in enumerate(dimension.values)}


def _differ(one: Dimension, other: Dimension) -> bool:
    return _meaning(one) != _meaning(other)


def _common(one: Dimension, other: Dimension) -> set[Hashable]:
    theirs = _meaning(other)
    return {value for value, means in _meaning(one).items() if theirs.get(value, theirs) == means}


def _as_whole(one: Dimension, other: Dimension) -> bool:
    """Dates, and times of day that are cut differently but begin and end alike, are compared as wholes."""
    if one.edges is not None and other.edges is not None:
        return (one.edges[0], one.edges[-1]) == (other.edges[0], other.edges[-1])
    return days_in(one) is not None and days_in(other) is not None


def _filter(name: str, dimension: Dimension, common: set[Hashable]) -> Filter:
    wanted: NDArray[np.bool_] = np.array([value in common for value in dimension.values])
    return Filter((name,), wanted)


def _note(name: str, one: Dimension, other: Dimension, common: set[Hashable], *, used: bool) -> str:
    if _as_whole(one, other) and not used:
        if days_in(one) is not None:
            return f"The first release covers {_many(one, 'day')} of {name}, the second {_many(other, 'day')}: all are added up."
        return f"Both cover the same hours, cut into {len(one):,} and {len(other):,} periods of {name}: all are added up."
    if not common:
        cure = "leave it out of by and where" if _as_whole(one, other) else "they cannot be compared"
        raise InputError(f"no value of {name} means the same in both releases: {cure}")
    left = [_named(f"the {which}", d, common) for which, d in (("first", one), ("second", other))]
    gone = " and ".join(text for text in left if text)
    return f"Only the {len(common):,} values of {name} that both have are compared; left out: {gone}."


def _many(dimension: Dimension, word: str) -> str:
    return f"{len(dimension):,} {word}{'' if len(dimension) == 1 else 's'}"


def _named(whose: str, dimension: Dimension, common: set[Hashable]) -> str:
    gone = [str(v) for v in dimension.values if v not in common]
    if not gone:
        return ""
    more = f", … ({len(gone):,} in all)" if len(gone) > SHOWN else ""
    return f"{', '.join(gone[:SHOWN])}{more} of {whose}"


def _check_attribute(first: Universe, second: Universe, name: str) -> None:
    """Both must know the attribute, and mean the same by it."""
    for which, own, other in (("first", first, second), ("second", second, first)):
        if name not in own.attributes and name in other.attributes:
            both = [a for a in first.attributes if a in second.attributes]
            raise InputError(
                f"the {which} release has no {name!r}: compare by what both have ({', '.join(both)})"
            )
    if name not in first.attributes or name in first.dimensions:
        return  # asking says what is wrong
    ours, theirs = first.attribute(name), second.attribute(name)
    if ours.of != theirs.of:
        raise InputError(
            f"{name!r} is of {', '.join(ours.of)} in the first release and of {', '.join(theirs.of)} in the second: "
            "compare by another attribute"
        )
    _check_labels(first, second, ours, theirs)


def _check_labels(first: Universe, second: Universe, one: Attribute, other: Attribute) -> None:
    places = []
    for dim in one.of:
        ours, theirs = first.dimension(dim), second.dimension(dim)
        common = _common(ours, theirs)
        values = [v for v in ours.values if v in common]
        places.append((values, ours.codes(values), theirs.codes(values)))
    mine, yours = (side.codes[np.ix_(*(p[which] for p in places))] for which, side in ((1, one), (2, other)))
    names = np.array([str(v) for v in one.labels], dtype=object)[mine]
    theirs_ = np.array([str(v) for v in other.labels], dtype=object)[yours]
    off = np.argwhere(names != theirs_)
    if len(off):
        at = tuple(off[0])
        what = ", ".join(str(p[0][i]) for p, i in zip(places, at, strict=True))
        raise InputError(
            f"{one.name!r} of {what} is {names[at]!r} in the first release and {theirs_[at]!r} in the second"
            f"{f' (and {len(off) - 1:,} more differ)' if len(off) > 1 else ''}: compare by {' and '.join(one.of)} instead"
        )
