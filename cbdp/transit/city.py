"""A city as a shuttle service sees it: stops, travel times, zones, hubs and bus lines. All of it is public.

Times are whole seconds, distances whole metres: events can then be compared without rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

DAY = 24 * 3600
EARTH_KM_PER_DEGREE = 111.2


@dataclass(frozen=True)
class Driving:
    """How shuttles drive where no travel times are given: beeline × `detour` at `speed` (km/h).

    The defaults belong to the built-in city and make its original fleet the case study's. It is 16 km wide, wider than the
    real one, so 50 km/h between stops on its arterial roads takes the times of a real city at 35 km/h; main roads
    run straight to the centre, so ways are a fifth longer than the beeline. Time lost at stops is counted by `Operations`.
    """

    speed: float = 50.0
    detour: float = 1.2

    def __post_init__(self) -> None:
        if not self.speed > 0 or not math.isfinite(self.speed):
            raise InputError(f"speed {self.speed} km/h: give a positive number")
        if not self.detour >= 1 or not math.isfinite(self.detour):
            raise InputError(
                f"detour {self.detour}: ways are at least as long as the beeline, so give 1 or more"
            )

    def metres(self, x: Floats, y: Floats) -> Ints:
        beeline = np.hypot(x[:, None] - x, y[:, None] - y)
        return np.ceil(np.round(beeline * self.detour * 1000, 6)).astype(np.int64)

    def seconds(self, metres: Ints) -> Ints:
        """Rounded up, at least one second between different stops; rounding up keeps the triangle inequality."""
        made = np.ceil(np.round(metres * 3.6 / self.speed, 6)).astype(np.int64)
        made = np.maximum(made, 1)
        np.fill_diagonal(made, 0)
        return made


@dataclass(frozen=True)
class Line:
    """A bus line: its stops in order, and a bus every `headway` seconds, the first at `offset` seconds of the day.

    `run` holds the seconds between consecutive stops. A line of both directions runs back the same way; buses start
    at both ends at the same times. `hours` are the seconds of the day between which trips may be sent by this line.
    """

    name: str
    stops: tuple[int, ...]
    headway: int
    run: tuple[int, ...]
    both_ways: bool = True
    offset: int = 0
    hours: tuple[int, int] = (0, DAY)

    def __post_init__(self) -> None:
        if len(self.stops) < 2 or len(set(self.stops)) < len(self.stops):
            raise InputError(f"line {self.name!r} needs two or more different stops in their order")
        if len(self.run) != len(self.stops) - 1 or min(self.run) < 1:
            raise InputError(
                f"line {self.name!r}: give the seconds, at least 1, between each stop and the next"
            )
        if self.headway < 1:
            raise InputError(f"line {self.name!r} has a headway of {self.headway} s: give a positive one")
        if not 0 <= self.hours[0] < self.hours[1]:
            raise InputError(
                f"line {self.name!r} runs from {self.hours[0]} to {self.hours[1]} s: end after the start"
            )


@dataclass(frozen=True, eq=False)
class City:
    """Stops in the plane (km), shuttle travel times and ways between them, the zone of each, hubs and bus lines."""

    names: tuple[str, ...]
    x: Floats = field(repr=False)
    y: Floats = field(repr=False)
    zones: tuple[str, ...]
    zone: Ints = field(repr=False)
    hub: Bools = field(repr=False)
    seconds: Ints = field(repr=False)
    metres: Ints = field(repr=False)
    beeline: Floats = field(repr=False)  # km
    lines: tuple[Line, ...] = ()

    def __post_init__(self) -> None:
        _check_stops(self)
        _check_times(self)
        _check_hubs(self)
        for array in (self.x, self.y, self.zone, self.hub, self.seconds, self.metres, self.beeline):
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def hubs(self) -> Ints:
        """The stops that are hubs, ascending."""
        return np.flatnonzero(self.hub).astype(np.int64)

    def depots(self, zone: int) -> Ints:
        """Where shuttles of a zone start, one after the other: its hubs, then always the stop farthest from those before.

        So any number of shuttles is spread over the zone. Ties go to the earlier stop.
        """
        own = np.flatnonzero(self.zone == zone)
        order = [int(h) for h in own[self.hub[own]]] or [self._middle(own)]
        near = self.seconds[np.array(order)][:, own].min(axis=0)
        while len(order) < len(own):
            order.append(int(own[int(np.argmax(near))]))
            near = np.minimum(near, self.seconds[order[-1], own])
        return np.array(order, dtype=np.int64)

    def _middle(self, stops: Ints) -> int:
        return int(stops[int(np.argmin(self.seconds[np.ix_(stops, stops)].sum(axis=0)))])

    def code(self, name: str) -> int:
        """The position of a stop."""
        try:
            return self.names.index(name)
        except ValueError:
            raise InputError(
                f"unknown stop {name!r}: the city has {len(self)} stops, {self.names[0]!r} first"
            ) from None

    def with_lines(self, lines: Iterable[Line]) -> City:
        """The city with other bus lines, such as a network design's."""
        return replace(self, lines=tuple(lines))


def make_city(
    names: Sequence[str],
    x: Iterable[float],
    y: Iterable[float],
    zones: Sequence[Any],
    hubs: Iterable[Any],
    *,
    lines: Iterable[Line] = (),
    driving: Driving | None = None,
    seconds: NDArray[Any] | None = None,
    metres: NDArray[Any] | None = None,
) -> City:
    """A city from columns: `zones` labels each stop, `hubs` names stops (or marks each stop as one or not).

    Travel times that are given are closed under detours by way of other stops, as a driver would.
    """
    listed = tuple(str(n) for n in names)
    px, py = (np.array(list(v), dtype=float) for v in (x, y))
    labels = tuple(dict.fromkeys(str(z) for z in zones))
    code = np.array([labels.index(str(z)) for z in zones], dtype=np.int64)
    if not (len(listed) == len(px) == len(py) == len(code)):
        raise InputError(
            f"{len(listed)} stops have {len(px)} and {len(py)} coordinates and {len(code)} zones: give one of each"
        )
    _check_places(listed, px, py)
    drive = driving or Driving()
    ways = drive.metres(px, py) if metres is None else _whole("metres", metres)
    times = drive.seconds(ways) if seconds is None else quickest(_times(listed, seconds))
    beeline = np.hypot(px[:, None] - px, py[:, None] - py)
    return City(listed, px, py, labels, code, _marks(listed, hubs), times, ways, beeline, tuple(lines))


def quickest(times: Floats) -> Ints:
    """Travel times closed under detours: what a driver needs who takes the quickest way (Floyd and Warshall)."""
    closed = times.copy()
    for via in range(len(closed)):
        np.minimum(closed, closed[:, via, None] + closed[via], out=closed)
    off = np.where(np.isfinite(closed), np.maximum(np.ceil(closed), 1), -1).astype(np.int64)
    np.fill_diagonal(off, 0)
    return off


def plane(lat: Iterable[float], lon: Iterable[float]) -> tuple[Floats, Floats]:
    """Coordinates in km east and north of the middle of the stops."""
    a, o = (np.array(list(v), dtype=float) for v in (lat, lon))
    if not (np.isfinite(a).all() and np.isfinite(o).all() and (abs(a) <= 90).all() and (abs(o) <= 180).all()):
        raise InputError("a stop has no valid latitude and longitude: they are degrees, at most 90 and 180")
    wide = EARTH_KM_PER_DEGREE * math.cos(math.radians(float(a.mean())))
    return (o - o.mean()) * wide, (a - a.mean()) * EARTH_KM_PER_DEGREE


def built_in(driving: Driving | None = None, *, headway: int = 600, bus_speed: float = 30.0) -> City:
    """The synthetic city of `cbdp.datasets.ann_arbor`, with its two bus lines that cross at the central stop.

    A bus every ten minutes is what the case study calls high-frequency; buses run at 30 km/h on the same streets.
    """
    from cbdp.datasets.geography import HEIGHT, LINE_OF_ZONE, WIDTH, ZONES, city

    place = city()
    drive = driving or Driving()
    ways = drive.metres(place.x, place.y)
    centre = int(np.argmin(np.hypot(place.x - WIDTH / 2, place.y - HEIGHT / 2)))
    lines = []
    for line in range(2):
        ends = [
            _from_outside(place, z, WIDTH / 2, HEIGHT / 2)
            for z in np.flatnonzero(line == LINE_OF_ZONE).tolist()
        ]
        stops = [*ends[0], centre, *reversed(ends[1])]
        run = [max(1, math.ceil(ways[a, b] * 3.6 / bus_speed)) for a, b in pairwise(stops)]
        name = "–".join(ZONES[z] for z in np.flatnonzero(line == LINE_OF_ZONE))
        lines.append(Line(name, tuple(stops), headway, tuple(run), offset=line * headway // 2))
    return make_city(place.names, place.x, place.y, place.zones, place.hub, lines=lines, driving=drive)


def _from_outside(place: Any, zone: int, x: float, y: float) -> list[int]:
    own = np.flatnonzero(place.hub & (place.zone == zone))
    far = np.hypot(place.x[own] - x, place.y[own] - y)
    return [int(h) for h in own[np.argsort(-far, kind="stable")]]


def _marks(names: tuple[str, ...], hubs: Iterable[Any]) -> Bools:
    given = list(hubs)
    if len(given) == len(names) and all(isinstance(h, bool | np.bool_) for h in given):
        return np.array(given, dtype=bool)
    wanted = {str(h) for h in given}
    if strangers := sorted(wanted - set(names)):
        raise InputError(f"the hub {strangers[0]!r} is not a stop: hubs are named like the stops")
    return np.array([n in wanted for n in names], dtype=bool)


def _whole(what: str, given: NDArray[Any]) -> Ints:
    array = np.asarray(given, dtype=float)
    if not np.isfinite(array).all() or (array < 0).any():
        raise InputError(f"{what} holds a negative or missing value: every pair of stops needs one")
    made: Ints = np.ceil(array).astype(np.int64)
    return made


def _times(names: tuple[str, ...], given: NDArray[Any]) -> Floats:
    array = np.array(given, dtype=float)
    if array.shape != (len(names), len(names)):
        raise InputError(
            f"travel times have shape {array.shape}: {len(names)} stops need {(len(names),) * 2}"
        )
    array[np.isnan(array)] = np.inf
    np.fill_diagonal(array, 0)
    if (array < 0).any():
        o, d = (int(c) for c in np.argwhere(array < 0)[0])
        raise InputError(
            f"the travel time from {names[o]!r} to {names[d]!r} is {array[o, d]:g} s: it cannot be negative"
        )
    return array


def _check_stops(city: City) -> None:
    if not city.names:
        raise InputError("a city needs stops: the list is empty")
    if len(set(city.names)) < len(city.names):
        twice = next(n for n in city.names if city.names.count(n) > 1)
        raise InputError(f"the stop {twice!r} stands twice: stops need different names")
    _check_places(city.names, city.x, city.y)
    for line in city.lines:
        if not all(0 <= s < len(city.names) for s in line.stops):
            raise InputError(f"line {line.name!r} stops at a place that is no stop of the city")


def _check_places(names: Sequence[str], x: Floats, y: Floats) -> None:
    lost = np.flatnonzero(~(np.isfinite(x) & np.isfinite(y)))
    if len(lost):
        raise InputError(f"the stop {names[int(lost[0])]!r} has no coordinates: give every stop a place")


def _check_times(city: City) -> None:
    shape = (len(city.names),) * 2
    if city.seconds.shape != shape or city.metres.shape != shape:
        raise InputError(
            f"travel times and ways need the shape {shape}, not {city.seconds.shape} and {city.metres.shape}"
        )
    if (city.seconds < 0).any():
        o, d = (int(c) for c in np.argwhere(city.seconds < 0)[0])
        raise InputError(
            f"the stop {city.names[d]!r} cannot be reached from {city.names[o]!r}: add a travel time, or leave the stop out"
        )


def _check_hubs(city: City) -> None:
    if len(city.zones) == 1 and not city.hub.any():
        return  # one zone needs no bus
    for z, name in enumerate(city.zones):
        if not (city.hub & (city.zone == z)).any():
            raise InputError(
                f"the zone {name!r} has no hub: name one of its stops, or merge the zone with another"
            )


def columns(city: City) -> Mapping[str, NDArray[Any]]:
    """The table of stops."""
    zone = np.array([city.zones[z] for z in city.zone])
    return {"stop": np.array(city.names), "x": city.x, "y": city.y, "zone": zone, "hub": city.hub}
