"""The true counts that a release was made from, counted again from the trips, as far as they can be known. Private.

With a trip as the unit, they are the counts. With a person, at most `max_trips` of each were kept at random, and nobody knows any
more which ones; so trips of persons with more are unknown, and every element that holds one of their trips is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cbdp.arrays import Bools, Ints
from cbdp.counting import Clock, Counts, count, second_count, trips_by_person
from cbdp.counting.plan import ServiceDays
from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.privacy.unit import Person
from cbdp.release.release import Release
from cbdp_features.calendar import day_dimension

RIDER_SEED = 20_161_116  # which riders are looked at; their noise is the release's own


@dataclass(frozen=True, eq=False)
class TrueCounts:
    """True counts, and the riders behind them: what a curator compares a release with. Private.

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
    trips: object,
    release: Release,
    *,
    columns: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    riders: int = 20_000,
) -> TrueCounts:
    """The counts that a release was made from, as far as they can be known again, and a sample of riders."""
    universe, unit = release.features.universe, release.claim.unit
    days = None if release.series is None else ServiceDays(release.series.first, release.series.last)
    if isinstance(unit, Person) and not isinstance(trips, Counts | np.ndarray):
        new, types = trips_by_person(trips, universe, unit, columns=columns, clock=clock, days=days)
        return _counts_of_persons(universe, types, new, unit, riders)
    if isinstance(trips, Counts):
        if not trips.universe.same_types(universe):
            raise InputError(
                f"the trips are counted over {trips.universe!r}, the release is of {universe!r}: count with its universe"
            )
        index, value = trips.index, trips.value
    elif isinstance(trips, np.ndarray):
        counts = count(trips, universe)
        index, value = counts.index, counts.value
    else:  # not as the release counted them, so that a mistake there would show
        index, value = second_count(trips, universe, columns=columns, clock=clock, days=days)
    rng = np.random.default_rng(RIDER_SEED)
    total = int(value.sum())
    at = np.sort(rng.integers(0, max(total, 1), min(riders, total)))
    types = index[np.searchsorted(np.cumsum(value), at, side="right")]
    return TrueCounts(
        universe, index, value, np.empty(0, dtype=np.int64), [t[None] for t in rng.permutation(types)]
    )


def _counts_of_persons(universe: Universe, rank: Ints, new: Bools, unit: Person, riders: int) -> TrueCounts:
    """Trips sorted by person (and period): those of persons within the bound are counted, the others' types are loose."""
    begin = np.flatnonzero(new)
    trips = np.diff(np.append(begin, len(rank)))
    beyond = (trips > unit.max_trips) | _coinciding_trips(universe, rank, new, unit)
    over = np.repeat(beyond, trips)
    index, value = np.unique(rank[~over], return_counts=True)
    rng = np.random.default_rng(RIDER_SEED)
    within = np.flatnonzero(~beyond)
    chosen = rng.permutation(within)[:riders]
    listed = [rank[begin[p] : begin[p] + trips[p]] for p in chosen.tolist()]
    return TrueCounts(universe, index.astype(np.int64), value.astype(np.int64), np.unique(rank[over]), listed)


def _coinciding_trips(universe: Universe, rank: Ints, new: Bools, unit: Person) -> Bools:
    """For each person (and period), whether two of the trips are in one slot, where the unit keeps trips apart."""
    who = np.cumsum(new) - 1
    coinciding = np.zeros(int(new.sum()), dtype=bool)
    if unit.apart is None:
        return coinciding
    named = {unit.apart, day_dimension(universe.dimensions)}
    codes = zip(universe.dimensions.items(), universe.unrank_codes(rank), strict=True)
    slot = np.zeros(len(rank), dtype=np.int64)
    for (name, dimension), code in codes:
        if name in named:
            slot = slot * len(dimension) + code
    order = np.lexsort((slot, who))
    same = (np.diff(who[order]) == 0) & (np.diff(slot[order]) == 0)
    coinciding[who[order][1:][same]] = True
    return coinciding
