"""Contribution structure: how many of one person's trips a single count of a feature can hold at most, from the universe alone.

With a bound on the trips of a person, this determines the l1 and l2 sensitivities of the feature (Dwork and others 2006).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp_features.calendar import codes_by_period, dates_or_none, day_dimension
from cbdp_features.dag import FeatureDag
from cbdp_features.universe import Universe

# pairs of a feature's value and a slot that are listed; beyond, it is taken to tell no slots apart (never too small a sensitivity)
MAX_EXAMINED_PAIRS = 2**24

SlotCounts = tuple[int, tuple[int, ...]]  # how many slots there are, and how many the counts hold


@dataclass(frozen=True)
class ContributionStructure:
    """How a feature distributes the trips of one person over its counts.

    A slot is a value of the dimension by which trips are kept `apart`, of one day where the universe tells days apart. `slots` is how many of
    them a period has at most (None where trips are not kept apart), and `in_one` how many single counts hold, the largest first. Counts that
    hold the same slots are listed once: trips spread over them could as well pile up in one.
    """

    elements: int
    slots: int | None = None
    in_one: tuple[int, ...] = ()
    periods: bool = False  # whether no count holds trips of two periods


def contribution_structure(
    features: FeatureDag, name: str, per: str = "release", apart: str | None = None
) -> ContributionStructure:
    """How a feature distributes the trips that one person makes in one period, with at most one per value of a dimension (`apart`) or not.

    Proof: docs/proofs/sensitivity.md.
    """
    universe, by, size = features.universe, features.features[name].by, features.size(name)
    periods = per != "release" and _separates_periods(universe, by, per)
    if apart is None:
        return ContributionStructure(size, periods=periods)
    universe.dimension(apart)
    structures = list(_slots_by_period(universe, by, per, apart))
    in_one = tuple(map(max, zip_longest(*(sizes for _, sizes in structures), fillvalue=0)))
    return ContributionStructure(size, max(slots for slots, _ in structures), in_one, periods)


def _slots_by_period(universe: Universe, by: Sequence[str], per: str, apart: str) -> Iterator[SlotCounts]:
    """The slots of each period, and how many of them the counts hold."""
    day = day_dimension(universe.dimensions)
    times = 1 if day == apart else len(universe.dimension(apart))
    days: list[Sequence[int]] = [range(1)] if day is None else codes_by_period(universe.dimensions[day], per)
    tells_days = day is None or day in by or all(len(codes) == 1 for codes in days)
    if apart in by and tells_days:
        for codes in {len(codes) for codes in days}:
            yield codes * times, (1,) * (codes * times)
        return
    yield from _slots_by_enumeration(universe, by, days, times, day, apart)


def _slots_by_enumeration(
    universe: Universe,
    by: Sequence[str],
    days: Sequence[Sequence[int]],
    times: int,
    day: str | None,
    apart: str,
) -> Iterator[SlotCounts]:
    """The same, by listing every value of the feature with the slots that it can hold."""
    pairs = _value_code_pairs(universe, by, [d for d in (day, apart) if d is not None])
    for codes in days:
        slots = len(codes) * times
        if pairs is None:
            yield slots, (slots,)
            continue
        value, at_day, at = pairs
        inside = np.isin(at_day, np.asarray(codes)) if day is not None else np.ones(len(value), dtype=bool)
        slot = (at_day * times + at)[inside] if day != apart else at_day[inside]
        yield slots, _slots_per_value(value[inside], slot)


def _slots_per_value(value: Ints, slot: Ints) -> tuple[int, ...]:
    """How many slots values have, the largest first; of values with the same slots, one."""
    both = np.unique(np.stack([value, slot]), axis=1)
    starts = np.flatnonzero(np.diff(both[0], prepend=-1))
    sets = {part.tobytes(): len(part) for part in np.split(both[1], starts[1:])}
    return tuple(sorted(sets.values(), reverse=True))


def _value_code_pairs(
    universe: Universe, by: Sequence[str], dims: Sequence[str]
) -> tuple[Ints, Ints, Ints] | None:
    """Every value of the attributes that depend on these dimensions, with the codes it can have in them; None: too many."""
    near = _related_attributes(universe, by, dims)
    columns = list(dict.fromkeys([*near, *dims]))
    try:
        partition = universe.partition(columns)
    except InputError:
        return None
    if partition.size > MAX_EXAMINED_PAIRS:
        return None
    codes = dict(zip(columns, partition.label_codes(), strict=True))
    value = np.zeros(partition.size, dtype=np.int64)
    for name in near:
        value = np.unique(value * len(universe.attribute(name).labels) + codes[name], return_inverse=True)[1]
    return value, codes[dims[0]], codes[dims[-1]]


def _related_attributes(universe: Universe, by: Sequence[str], dims: Sequence[str]) -> list[str]:
    """The attributes that depend on these dimensions, by themselves or through others and structural zeros (transitive closure)."""
    names = list(universe.dimensions)
    joined = [{names[d] for d in block.dims} for block in universe.blocks if len(block.dims) > 1]
    reached, before = set(dims), -1
    while len(reached) > before:
        before = len(reached)
        for group in [*joined, *({*universe.attribute(a).of} for a in by)]:
            reached |= group if group & reached else set()
    return [a for a in by if {*universe.attribute(a).of} & reached]


def _separates_periods(universe: Universe, by: Sequence[str], per: str) -> bool:
    """Whether every count of a feature holds trips of one period alone."""
    day = day_dimension(universe.dimensions)
    if day is None or dates_or_none(universe.dimensions[day]) is None:
        return False
    if day in by:
        return True
    pairs = _value_code_pairs(universe, by, [day])
    if pairs is None:
        return False
    period = np.zeros(len(universe.dimensions[day]), dtype=np.int64)
    for number, codes in enumerate(codes_by_period(universe.dimensions[day], per)):
        period[list(codes)] = number
    both = np.unique(np.stack([pairs[0], period[pairs[1]]]), axis=1)
    return bool(len(np.unique(both[0])) == both.shape[1])
