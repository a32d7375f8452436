"""How every ⟨origin, destination, time⟩ is served: mode choice as a public function of the city, which never reads demand.

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
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cbdp.arrays import Bools, Ints
from cbdp.errors import InputError
from cbdp.features import Universe
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
