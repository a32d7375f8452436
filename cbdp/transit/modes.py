"""How every ⟨origin, destination, time⟩ is served: mode choice as a public function of the city, which never reads demand; and riders with a second of
departure and the shuttle legs of their itineraries.

Four-step models estimate a choice model from demand; here the choice is a rule, so that a mode can be a feature that costs no privacy. An itinerary is
a shuttle from the origin to a hub, buses, and a shuttle from a hub to the destination, or some of these. The rule, in terms of straight-line distance:

1. trips of up to `walk` km are walked;
2. trips between two hubs that buses connect take buses;
3. trips inside a zone take one shuttle, unless they are longer than `long` km, their ends have different nearest hubs, and
   buses connect these hubs;
4. trips of up to `border` km into another zone take one shuttle of the origin's zone;
5. all others go by the nearest hubs in the zones of their two ends and the quickest buses between these. An end that is a
   hub needs no shuttle.

The quickest buses have the least sum of half headways (the mean wait of riders who come at random) and ride times, over at most three rides; of equal
ones, those with fewer rides are taken, then those of earlier lines. They are found by rounds, one for each ride, as in RAPTOR (Delling, Pajor and
Werneck, 2015), which needs a timetable; on lines with headways alone a round is a step of Bellman's recursion (1958).

Riders are the step from an origin–destination matrix to a synthetic population of trips, as agent-based simulations take it (Horni, Nagel and Axhausen,
2016). Counts tell the period of a trip, not its second. The k-th trip of a trip type leaves at a second of its period that depends
on the seed, the type and k alone (uniform, by the mixing function of splitmix64). So two data sets that share trips also share their
seconds: what differs between them is the demand and not the draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cbdp.arrays import Bools, Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation import ESTIMATORS
from cbdp.features import FeatureDag, Universe
from cbdp.rounding import ROUNDINGS
from cbdp.transit.city import City, Line
from cbdp_features.calendar import SECONDS_PER_DAY

MAX_RIDES = 3  # buses of one trip
UNREACHABLE = np.int64(2**40)  # seconds: more than any way takes, and sums of two do not overflow


@dataclass(frozen=True)
class ModeRule:
    """The built-in `ModeChoice`: the rule of `cbdp.transit.modes`, with its distances in km. The defaults suit the synthetic city.

    >>> from cbdp.transit import make_city
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> modes = ModeRule().choose(city)
    >>> modes.labels[modes.mode[0, 0, 1]]
    'shuttle'
    """

    name: ClassVar[str] = "rule"
    about: ClassVar[str] = "walk, shuttle and buses by distance, zones and hubs"

    walk: float = 0.5
    border: float = 1.5
    long: float = 4.0

    def choose(self, city: City) -> Itineraries:
        """Mode and itinerary of every pair at every time."""
        slots = sorted({0, *(line.hours[0] for line in city.lines), *(line.hours[1] for line in city.lines)})
        slots = [s for s in slots if s == 0 or s < SECONDS_PER_DAY]
        by_slot = [
            _slot_tables(city, self, [n for n in city.lines if n.hours[0] <= s < n.hours[1]]) for s in slots
        ]
        return _stack_slots(slots, by_slot)


@dataclass(frozen=True)
class Ride:
    """A ride on a bus line: buses leave at `offset` + k · `headway` and arrive `seconds` later."""

    line: str
    board: int
    alight: int
    offset: int
    headway: int
    seconds: int


@dataclass(frozen=True, eq=False)
class Itineraries:
    """Mode and itinerary of every ⟨slot, origin, destination⟩; a slot is a part of the day in which the same lines run.

    `access` is where the shuttle from the origin ends, `egress` where the shuttle to the destination begins (−1: no such
    shuttle); `first_zone` and `last_zone` are the zones these shuttles belong to. `path` is the buses in between: a row of
    `paths` (−1: none).

    >>> from cbdp.transit import make_city
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> ModeRule().choose(city).labels
    ('shuttle', 'walk')
    """

    slots: Ints  # the second of the day at which each begins
    labels: tuple[str, ...]
    mode: Ints = field(repr=False)  # slot × origin × destination
    access: Ints = field(repr=False)
    egress: Ints = field(repr=False)
    first_zone: Ints = field(repr=False)
    last_zone: Ints = field(repr=False)
    path: Ints = field(repr=False)
    paths: tuple[tuple[Ride, ...], ...] = field(default=(), repr=False)

    def slot(self, second: ArrayLike) -> Ints:
        """The slot of each second of the day."""
        return (
            np.searchsorted(self.slots, np.asarray(second) % SECONDS_PER_DAY, side="right").astype(np.int64)
            - 1
        )

    def timetable(self) -> Ints:
        """Offset, headway and seconds of every ride of every path (path × ride × 3); a headway of 0 means no more."""
        longest = max((len(p) for p in self.paths), default=1)
        table = np.zeros((max(1, len(self.paths)), longest, 3), dtype=np.int64)
        for row, path in enumerate(self.paths):
            for k, ride in enumerate(path):
                table[row, k] = ride.offset, ride.headway, ride.seconds
        return table

    def names(self, universe: Universe, city: City) -> NDArray[np.object_]:
        """The modes as labels for the feature `mode`: by origin and destination, and by time where lines have hours."""
        o, d = (codes_of(city, universe, end) for end in ("origin", "destination"))
        labels = np.array(self.labels, dtype=object)
        if len(self.slots) == 1:
            named: NDArray[np.object_] = labels[self.mode[0][np.ix_(o, d)]]
            return named
        starts = period_edges(universe)[:-1]
        named = labels[self.mode[self.slot(starts)][:, o[:, None], d[None, :]]]
        return np.moveaxis(named, 0, 2)


def codes_of(city: City, universe: Universe, end: str) -> Ints:
    """The city's stop of every value of a dimension."""
    position = {n: i for i, n in enumerate(city.names)}
    values = [str(v) for v in universe.dimension(end).values]
    for value in values:
        if value not in position:
            raise InputError(
                f"the {end} {value!r} of the universe is not a stop of the city: use the same names in both"
            )
    return np.array([position[v] for v in values], dtype=np.int64)


def period_edges(universe: Universe) -> Ints:
    """The seconds of the day at which the periods begin, and the last one's end."""
    edges = universe.dimension("time").edges
    if edges is None:
        raise InputError("the universe's times are not periods of a day: make them with cbdp.periods")
    return np.array(edges, dtype=np.int64)


def _rides(lines: Sequence[Line]) -> Iterator[Ride]:
    """Every ride on every line, in both directions where a line runs both ways."""
    for line in lines:
        for stops, run in _directions(line):
            since = np.concatenate([[0], np.cumsum(run)]).astype(int)
            for i in range(len(stops)):
                for j in range(i + 1, len(stops)):
                    offset = int(line.offset + since[i]) % line.headway
                    yield Ride(line.name, stops[i], stops[j], offset, line.headway, int(since[j] - since[i]))


def _directions(line: Line) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    there = (line.stops, line.run)
    return [there, (line.stops[::-1], line.run[::-1])] if line.both_ways else [there]


@dataclass(frozen=True, eq=False)
class _QuickestBuses:
    """The quickest buses from every hub to every stop: the last ride (−1: none) and the number of rides (0: none)."""

    rides: tuple[Ride, ...]
    hubs: Ints
    last: tuple[Ints, ...]  # by number of rides − 1: hub × stop
    count: Ints  # hub × stop

    def path(self, hub: int, stop: int) -> tuple[Ride, ...]:
        """The rides from a hub (by its place in `hubs`) to a stop."""
        back: list[Ride] = []
        for k in range(int(self.count[hub, stop]), 0, -1):
            ride = self.rides[self.last[k - 1][hub, stop]]
            back.append(ride)
            stop = ride.board
        return tuple(reversed(back))


def _quickest_buses(city: City, lines: Sequence[Line]) -> _QuickestBuses:
    rides = tuple(_rides(lines))
    hubs, n = city.hubs, len(city)
    cost = np.full((MAX_RIDES, len(hubs), n), UNREACHABLE)
    last = [np.full((len(hubs), n), -1, dtype=np.int64) for _ in range(MAX_RIDES)]
    for k in range(MAX_RIDES):
        for index, ride in enumerate(rides):
            price = ride.headway + 2 * ride.seconds  # twice the expected time: a whole number
            before = np.where(hubs == ride.board, 0, UNREACHABLE) if k == 0 else cost[k - 1, :, ride.board]
            better = before + price < cost[k, :, ride.alight]
            cost[k, better, ride.alight] = before[better] + price
            last[k][better, ride.alight] = index
    fewest = np.argmin(cost, axis=0) + 1
    reachable = np.min(cost, axis=0) < UNREACHABLE
    return _QuickestBuses(rides, hubs, tuple(last), np.where(reachable, fewest, 0).astype(np.int64))


@dataclass(frozen=True, eq=False)
class _SlotTables:
    label: NDArray[np.object_]
    access: Ints
    egress: Ints
    first_zone: Ints
    last_zone: Ints
    path: Ints
    paths: tuple[tuple[Ride, ...], ...]


def _slot_tables(city: City, rule: ModeRule, lines: Sequence[Line]) -> _SlotTables:
    n, hubs = len(city), city.hubs
    buses = _quickest_buses(city, lines)
    if not len(hubs):
        return _one_zone(city, rule)
    reach = np.where(city.zone[:, None] == city.zone[hubs], city.beeline[:, hubs], np.inf)
    nearest = np.argmin(reach, axis=1)  # by place in hubs
    nearest[hubs] = np.arange(len(hubs))  # also where two hubs share a place
    rides = buses.count[:, hubs][nearest[:, None], nearest]  # between the nearest hubs of the two ends
    same_zone = city.zone[:, None] == city.zone
    other = nearest[:, None] != nearest
    from_hub, to_hub = np.broadcast_arrays(city.hub[:, None], city.hub)
    walk = city.beeline <= rule.walk
    bus = ~walk & from_hub & to_hub & (rides > 0)
    far = ~same_zone | (other & (city.beeline > rule.long) & (rides > 0))
    shuttle = ~walk & ~bus & ~far
    border = ~walk & ~bus & ~shuttle & ~same_zone & (city.beeline <= rule.border)
    intermodal = ~(walk | bus | shuttle | border)
    _check_connected(city, nearest, intermodal & (rides == 0))
    access = np.where(shuttle | border, np.arange(n)[None, :], -1)
    access = np.where(intermodal & ~from_hub, hubs[nearest][:, None], access)
    egress = np.where(intermodal & ~to_hub, hubs[nearest][None, :], -1)
    path, paths = _paths(buses, nearest, bus | intermodal)
    label = np.full((n, n), "walk", dtype=object)
    label[shuttle], label[border] = "shuttle", "shuttle to next zone"
    for count in np.unique(rides[bus | intermodal]):
        middle = "-".join(["bus"] * int(count))
        for first in (False, True):
            for second in (False, True):
                here = (
                    (bus | intermodal)
                    & (rides == count)
                    & ((access >= 0) == first)
                    & ((egress >= 0) == second)
                )
                label[here] = "shuttle-" * first + middle + "-shuttle" * second
    both = (access >= 0) & (egress >= 0) & same_zone
    label[both] = label[both] + " in zone"
    zone = np.broadcast_to(city.zone[:, None], (n, n))
    first_zone = np.where(access >= 0, zone, -1)
    last_zone = np.where(egress >= 0, city.zone[None, :], -1)
    return _SlotTables(
        label, access.astype(np.int64), egress.astype(np.int64), first_zone, last_zone, path, paths
    )


def _one_zone(city: City, rule: ModeRule) -> _SlotTables:
    n = len(city)
    walk = city.beeline <= rule.walk
    access = np.where(walk, -1, np.arange(n)[None, :]).astype(np.int64)
    none = np.full((n, n), -1, dtype=np.int64)
    label = np.where(walk, "walk", "shuttle").astype(object)
    return _SlotTables(
        label, access, none, np.where(walk, -1, 0).astype(np.int64), none.copy(), none.copy(), ()
    )


def _check_connected(city: City, nearest: Ints, unreachable: Bools) -> None:
    if unreachable.any():
        o, d = (int(c) for c in np.argwhere(unreachable)[0])
        a, b = (city.names[int(city.hubs[nearest[s]])] for s in (o, d))
        raise InputError(
            f"no buses lead from the hub {a!r} to {b!r} within {MAX_RIDES} rides, so {city.names[d]!r} cannot be reached "
            f"from {city.names[o]!r}: add a line, or merge their zones"
        )


def _paths(buses: _QuickestBuses, nearest: Ints, used: Bools) -> tuple[Ints, tuple[tuple[Ride, ...], ...]]:
    """A number for the buses between the nearest hubs of every pair, and the rides that each number stands for."""
    count = len(buses.hubs)
    pair = nearest[:, None] * count + nearest
    pairs = np.unique(pair[used])
    number = np.full(count * count, -1, dtype=np.int64)
    number[pairs] = np.arange(len(pairs))
    paths = tuple(buses.path(int(p) // count, int(buses.hubs[int(p) % count])) for p in pairs)
    return np.where(used, number[pair], -1), paths


def _stack_slots(slots: Sequence[int], by_slot: Sequence[_SlotTables]) -> Itineraries:
    """One table for all slots, with the labels in alphabetical order."""
    labels = tuple(sorted({str(v) for m in by_slot for v in np.unique(m.label.astype(str))}))
    code_of = {label: k for k, label in enumerate(labels)}
    code = np.vectorize(code_of.__getitem__, otypes=[np.int64])
    before = np.cumsum([0, *(len(m.paths) for m in by_slot)])
    path = [np.where(m.path >= 0, m.path + b, -1) for m, b in zip(by_slot, before[:-1], strict=True)]
    names = ("access", "egress", "first_zone", "last_zone")
    tables = {name: np.stack([getattr(m, name) for m in by_slot]) for name in names}
    tables |= {"mode": np.stack([code(m.label) for m in by_slot]), "path": np.stack(path)}
    for array in tables.values():
        array.setflags(write=False)
    return Itineraries(
        np.array(slots, dtype=np.int64), labels, **tables, paths=tuple(p for m in by_slot for p in m.paths)
    )


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
    (`cbdp.rounding`), with as many trips in every cell as are published: no count of any table changes.
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
