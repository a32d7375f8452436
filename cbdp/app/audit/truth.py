"""The true counts that a release was made from, as far as they can be known again. Private.

With a trip as the unit, they are the counts. With a person, at most `max_trips` of each were kept at random, and nobody knows any
more which ones; so trips of persons with more are unknown, and every element that holds one of their trips is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.features.calendar import day_dimension
from cbdp.privacy.unit import Person
from cbdp.release.release import Release
from cbdp.trips import Clock, Counts, count, second_count, trips_by_person
from cbdp.trips.days import Days

SEED = 20_161_116  # which riders are looked at; their noise is the release's own


@dataclass(frozen=True, eq=False)
class Truth:
    """True counts, and the riders behind them. Private.

    `loose` are trip types of which bounding may have dropped trips: what was counted there is not known.
    """

    universe: Universe = field(repr=False)
    index: Ints = field(repr=False)
    value: Ints = field(repr=False)
    loose: Ints = field(repr=False)
    riders: Sequence[Ints] = field(repr=False)  # the trip types of each of some riders

    @property
    def total(self) -> int:
        return int(self.value.sum())


def truth(
    trips: Any,
    release: Release,
    *,
    columns: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    riders: int = 20_000,
) -> Truth:
    """The counts that a release was made from, as far as they can be known again, and a sample of riders."""
    universe, unit = release.features.universe, release.claim.unit
    days = None if release.series is None else Days(release.series.first, release.series.last)
    if isinstance(unit, Person) and not isinstance(trips, Counts | np.ndarray):
        new, types = trips_by_person(trips, universe, unit, columns=columns, clock=clock, days=days)
        return _bounded(universe, types, new, unit, riders)
    if isinstance(trips, Counts):
        if not trips.universe.same_types(universe):
            raise InputError(
                f"the trips are counted over {trips.universe!r}, the release is of {universe!r}: count with its universe"
            )
        index, value = trips.index, trips.value
    elif isinstance(trips, np.ndarray):
        given = count(trips, universe)
        index, value = given.index, given.value
    else:  # not as the release counted them, so that a mistake there would show
        index, value = second_count(trips, universe, columns=columns, clock=clock, days=days)
    rng = np.random.default_rng(SEED)
    total = int(value.sum())
    at = np.sort(rng.integers(0, max(total, 1), min(riders, total)))
    types = index[np.searchsorted(np.cumsum(value), at, side="right")]
    return Truth(universe, index, value, _none(), [t[None] for t in rng.permutation(types)])


def _none() -> Ints:
    return np.empty(0, dtype=np.int64)


def _bounded(universe: Universe, rank: Ints, new: NDArray[np.bool_], unit: Person, riders: int) -> Truth:
    """Trips sorted by person (and period): those of persons within the bound are counted, the others' types are loose."""
    begin = np.flatnonzero(new)
    many = np.diff(np.append(begin, len(rank)))
    beyond = (many > unit.max_trips) | _together(universe, rank, new, unit)
    over = np.repeat(beyond, many)
    index, value = np.unique(rank[~over], return_counts=True)
    rng = np.random.default_rng(SEED)
    within = np.flatnonzero(~beyond)
    chosen = rng.permutation(within)[:riders]
    listed = [rank[begin[p] : begin[p] + many[p]] for p in chosen.tolist()]
    return Truth(universe, index.astype(np.int64), value.astype(np.int64), np.unique(rank[over]), listed)


def _together(universe: Universe, rank: Ints, new: NDArray[np.bool_], unit: Person) -> NDArray[np.bool_]:
    """For each person (and period), whether two of the trips are in one slot, where the unit keeps trips apart."""
    who = np.cumsum(new) - 1
    found = np.zeros(int(new.sum()), dtype=bool)
    if unit.apart is None:
        return found
    named = {unit.apart, day_dimension(universe.dimensions)}
    codes = zip(universe.dimensions.items(), universe.unrank_codes(rank), strict=True)
    slot = np.zeros(len(rank), dtype=np.int64)
    for (name, dimension), code in codes:
        if name in named:
            slot = slot * len(dimension) + code
    order = np.lexsort((slot, who))
    same = (np.diff(who[order]) == 0) & (np.diff(slot[order]) == 0)
    found[who[order][1:][same]] = True
    return found
