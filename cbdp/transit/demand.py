"""Riders: trips with a second of departure, and the shuttle legs of their itineraries.

This is the step from an origin–destination matrix to a synthetic population of trips, as agent-based simulations take it (Horni, Nagel and Axhausen,
2016). Counts tell the period of a trip, not its second. The k-th trip of a trip type leaves at a second of its period that depends
on the seed, the type and k alone (uniform, by the mixing function of splitmix64). So two data sets that share trips also share their
seconds: what differs between them is the demand and not the draw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation import ESTIMATORS
from cbdp.features import FeatureDag, Universe
from cbdp.rounding import ROUNDINGS
from cbdp.transit.city import City
from cbdp.transit.modes import Itineraries, codes_of, period_edges

SPREADS = ("random", "even")  # how departures are placed inside a period


@dataclass(frozen=True, eq=False)
class Trips:
    """One row per rider, in order of departure: the stops of the city (by number) and the second of the day.

    >>> Trips(np.array([0, 2]), np.array([1, 3]), np.array([60, 120]), (0, 3600)).hours
    (0, 3600)
    """

    origin: Ints = field(repr=False)
    destination: Ints = field(repr=False)
    second: Ints = field(repr=False)
    hours: tuple[int, int]  # seconds of the day between which trips depart

    def __len__(self) -> int:
        return len(self.second)


def spread(
    universe: Universe,
    index: ArrayLike,
    value: ArrayLike,
    city: City,
    *,
    seed: int = 0,
    how: str = "random",
) -> Trips:
    """Riders of counted trips: `value[i]` of the trip type `index[i]`.

    `how` is "random" (a second of its period, drawn from the seed) or "even": trip k = 0, 1, … of n trips of a type leaves at (2k + 1)/2n of its period.

    >>> from cbdp.transit import make_city
    >>> city = make_city(["A", "B", "C", "D"], [0, 1, 8, 9], [0, 0, 0, 0], ["west", "west", "east", "east"], ["A", "C"])
    >>> import cbdp
    >>> universe = cbdp.Universe(origin=["A", "B"], destination=["C", "D"], time=cbdp.periods("06:00", "08:00", "60min"))
    >>> spread(universe, np.array([0, 3]), np.array([2, 1]), city, how="even").second.tolist()
    [22500, 24300, 27000]
    """
    types, counts = _whole_counts(universe, index, value)
    edges = period_edges(universe)
    total = int(counts.sum())
    of = np.repeat(types, counts)
    k = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    codes = dict(zip(universe.dimensions, universe.unrank_codes(of), strict=True))
    begin, length = edges[codes["time"]], np.diff(edges)[codes["time"]]
    if how == "random":
        second = begin + np.floor(_uniform(seed, of, k) * length).astype(np.int64)
    elif how == "even":
        second = begin + (2 * k + 1) * length // (2 * np.repeat(counts, counts))
    else:
        raise InputError(f"unknown spread {how!r}: choose {' or '.join(map(repr, SPREADS))}")
    o, d = (codes_of(city, universe, end)[codes[end]] for end in ("origin", "destination"))
    order = np.lexsort((k, of, second))
    return Trips(o[order], d[order], second[order], (int(edges[0]), int(edges[-1])))


class PublishedTrips(Protocol):
    """What a release is here: how many trips of each type are published."""

    @property
    def features(self) -> FeatureDag: ...
    @property
    def index(self) -> Ints: ...
    @property
    def value(self) -> Ints: ...


def trips_of_release(release: PublishedTrips, city: City, *, seed: int = 0, how: str = "random") -> Trips:
    """Riders of a release (anything with `features`, `index` and `value`), gathered as `fleet_counts` says.

    >>> from cbdp.transit import make_city
    >>> city = make_city(["A", "B", "C", "D"], [0, 1, 8, 9], [0, 0, 0, 0], ["west", "west", "east", "east"], ["A", "C"])
    >>> import cbdp
    >>> universe = cbdp.Universe(origin=["A", "B"], destination=["C", "D"], time=cbdp.periods("06:00", "08:00", "60min"))
    >>> release = cbdp.Laplace(cbdp.FeatureDag(universe, []), epsilon=1).simulate({"origin": ["A"], "destination": ["C"], "time": ["06:30"]}, seed=0)
    >>> len(trips_of_release(release, city).second) == int(release.value.sum())
    True
    """
    return spread(release.features.universe, *fleet_counts(release), city, seed=seed, how=how)


def fleet_counts(release: PublishedTrips) -> tuple[Ints, Ints]:
    """Trip types and counts that a fleet is sized on: a release's trips, gathered on the types that are likely to be used.

    Riders of one type share a vehicle. Where nobody knows which types are used, the whole trips nearest to the estimate are scattered
    over thousands of them, one by one, and ask for too many shuttles. Published estimates are gathered instead
    (`cbdp.rounding.roundings`), with as many trips in every cell as are published: no count of any table changes.
    Estimates that are no expected values, and trips that were gathered already, stay as they are.
    """
    published = release.index, release.value
    estimate, recipe = getattr(release, "estimate", None), getattr(release, "recipe", None)
    if estimate is None or recipe is None or recipe.estimator is None or recipe.rounding is None:
        return published
    few = ROUNDINGS.get("few")
    if recipe.rounding == few.name or not ESTIMATORS.installed(recipe.estimator).expects:
        return published
    (index, value), budget = estimate.trips(), recipe.rule("budget")
    return few.again(release.features, index, value, published, budget) or published


def _whole_counts(universe: Universe, index: ArrayLike, value: ArrayLike) -> tuple[Ints, Ints]:
    types, counts = np.asarray(index), np.asarray(value)
    if types.shape != counts.shape or types.ndim != 1:
        raise InputError(
            f"{types.size} trip types have {counts.size} counts: give one count for every trip type"
        )
    if len(types) and not (int(types.min()) >= 0 and int(types.max()) < universe.size):
        raise InputError(
            f"a trip type lies outside the universe of {universe.size:,} trip types: give numbers from 0"
        )
    if counts.dtype.kind not in "iub":
        off = ~(np.isfinite(counts) & (counts == np.rint(counts)))
        if off.any():
            raise InputError(
                f"a trip type has {counts[off][0]!s} trips: a simulation needs whole trips, so round the counts first"
            )
    if (counts < 0).any():
        raise InputError(
            f"a trip type has {counts.min()!s} trips: counts cannot be negative, so clip or post-process them first"
        )
    return types.astype(np.int64), counts.astype(np.int64)


def _uniform(seed: int, first: Ints, second: Ints) -> Floats:
    """Numbers in [0, 1) made of integers by splitmix64 (Steele, Lea and Flood, 2014): the same on every machine."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"invalid seed {seed!r}: give a whole number of at least 0")
    word = _mix(_mix(np.uint64(seed) + np.zeros(len(first), dtype=np.uint64)) ^ first.astype(np.uint64))
    word = _mix(word ^ second.astype(np.uint64))
    uniform: Floats = (word >> np.uint64(11)).astype(np.float64) / 2.0**53
    return uniform


def _mix(word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = word + np.uint64(0x9E3779B97F4A7C15)  # wraps, as it should
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class Legs:
    """Shuttle legs, rider by rider: from where to where, and the zone whose shuttles serve it. A rider has at most two.

    `release` is the second at which the leg can begin, −1 for a leg that waits for the leg before it, `follows`. The buses
    between the two are the row `path` of `timetable` (path × ride × (offset, headway, seconds); headway 0: no more rides).

    >>> import numpy as np
    >>> from cbdp.transit import ModeRule, Trips, legs_of, make_city
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> riders = Trips(np.array([0, 2]), np.array([1, 0]), np.array([60, 120]), (0, 3600))
    >>> legs = legs_of(riders, ModeRule().choose(city))
    >>> legs.origin.tolist(), legs.destination.tolist(), legs.zone.tolist()
    ([0, 2], [1, 0], [0, 0])
    """

    trip: Ints = field(repr=False)
    origin: Ints = field(repr=False)
    destination: Ints = field(repr=False)
    zone: Ints = field(repr=False)
    release: Ints = field(repr=False)
    follows: Ints = field(repr=False)
    path: Ints = field(repr=False)
    timetable: Ints = field(repr=False)
    hours: tuple[int, int]

    def __len__(self) -> int:
        return len(self.trip)

    @property
    def next(self) -> Ints:
        """For each leg the one that waits for it, −1 for none."""
        followers = np.full(len(self), -1, dtype=np.int64)
        later = np.flatnonzero(self.follows >= 0)
        followers[self.follows[later]] = later
        return followers


def legs_of(trips: Trips, modes: Itineraries) -> Legs:
    """The shuttle legs of riders, in the riders' order; riders who walk or take only buses have none.

    >>> import numpy as np
    >>> from cbdp.transit import ModeRule, Trips, legs_of, make_city
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> riders = Trips(np.array([0, 2]), np.array([1, 0]), np.array([60, 120]), (0, 3600))
    >>> legs = legs_of(riders, ModeRule().choose(city))
    >>> legs.release.tolist()
    [60, 120]
    """
    at = (modes.slot(trips.second), trips.origin, trips.destination)
    access, egress, path = modes.access[at], modes.egress[at], modes.path[at]
    timetable = modes.timetable()
    has = np.column_stack([access >= 0, egress >= 0])
    trip, part = np.nonzero(has)
    last = part == 1
    origin = np.where(last, egress[trip], trips.origin[trip])
    destination = np.where(last, trips.destination[trip], access[trip])
    zone = np.where(last, modes.last_zone[at][trip], modes.first_zone[at][trip])
    waits = last & has[trip, 0]
    release = np.where(waits, -1, trips.second[trip])
    by_bus = last & ~has[trip, 0] & (path[trip] >= 0)
    release[by_bus] = arrivals(timetable, path[trip[by_bus]], trips.second[trip[by_bus]])
    follows = np.where(waits, np.arange(len(trip)) - 1, -1)
    path = np.where(waits, path[trip], -1)
    trip, origin, destination, zone, release, follows, path = (
        c.astype(np.int64) for c in (trip, origin, destination, zone, release, follows, path)
    )
    return Legs(trip, origin, destination, zone, release, follows, path, timetable, trips.hours)


def arrivals(timetable: Ints, path: Ints, second: Ints) -> Ints:
    """When riders who are at a path's first stop at `second` reach its last."""
    now = second.copy()
    for k in range(timetable.shape[1]):
        offset, headway, seconds = (timetable[path, k, c] for c in range(3))
        rides = headway > 0
        wait = np.where(rides, (offset - now) % np.maximum(headway, 1), 0)
        now = now + wait + np.where(rides, seconds, 0)
    return now
