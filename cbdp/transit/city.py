"""A city as a shuttle service sees it: stops, travel times, zones, hubs and bus lines. All of it is public.

`City.seconds` and `City.metres` are what four-step models call skim matrices: travel times and network distances between all pairs of stops (Ortúzar
and Willumsen, 2011). Times are whole seconds, distances whole metres: events can then be compared without rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from cbdp.arrays import Bools, Floats, Ints
from cbdp.errors import InputError
from cbdp_features.calendar import SECONDS_PER_DAY

EARTH_KM_PER_DEGREE = 111.2  # of latitude, on a sphere of radius 6,371 km


@dataclass(frozen=True)
class Driving:
    """How shuttles drive where no travel times are given: straight-line distance × `detour` at `speed` (km/h).

    The defaults were chosen for the synthetic city (`cbdp.datasets.ann_arbor_city`) and give it the case study's fleet. It is
    16 km wide, wider than the real one, so 50 km/h between stops on its main roads takes as long as 35 km/h in the real city;
    these roads run straight to the centre, so ways are only a fifth longer than the straight line. Time lost at stops is
    counted by `Operations`.

    >>> Driving(speed=30).detour
    1.2
    """

    speed: float = 50.0
    detour: float = 1.2

    def __post_init__(self) -> None:
        if not self.speed > 0 or not math.isfinite(self.speed):
            raise InputError(f"invalid speed {self.speed} km/h: give a positive number")
        if not self.detour >= 1 or not math.isfinite(self.detour):
            raise InputError(
                f"invalid detour {self.detour}: no way is shorter than the straight line, so give 1 or more"
            )

    def metres(self, x: Floats, y: Floats) -> Ints:
        beeline = np.hypot(x[:, None] - x, y[:, None] - y)
        return np.ceil(np.round(beeline * self.detour * 1000, 6)).astype(np.int64)

    def seconds(self, metres: Ints) -> Ints:
        """Rounded up, at least one second between different stops; rounding up keeps the triangle inequality."""
        seconds = np.ceil(np.round(metres * 3.6 / self.speed, 6)).astype(np.int64)
        seconds = np.maximum(seconds, 1)
        np.fill_diagonal(seconds, 0)
        return seconds


@dataclass(frozen=True)
class Line:
    """A bus line: its stops in order, and a bus every `headway` seconds, the first at second `offset` of the day.

    `run` holds the seconds between consecutive stops. A line that runs both ways returns along the same stops; buses leave
    both ends at the same times. `hours` are the seconds of the day between which trips may use the line.

    >>> from cbdp.transit import make_city
    >>> city = make_city(["A", "B", "C", "D"], [0, 1, 8, 9], [0, 0, 0, 0], ["west", "west", "east", "east"], ["A", "C"])
    >>> city.with_lines([Line("1", (0, 2), headway=600, run=(900,))]).lines[0].headway
    600
    """

    name: str
    stops: tuple[int, ...]
    headway: int
    run: tuple[int, ...]
    both_ways: bool = True
    offset: int = 0
    hours: tuple[int, int] = (0, SECONDS_PER_DAY)

    def __post_init__(self) -> None:
        if len(self.stops) < 2 or len(set(self.stops)) < len(self.stops):
            raise InputError(
                f"line {self.name!r} has the stops {self.stops}: give two or more different ones in order"
            )
        if len(self.run) != len(self.stops) - 1 or min(self.run) < 1:
            raise InputError(
                f"line {self.name!r} has the running times {self.run}: give the seconds between each stop and the next, "
                "at least 1"
            )
        if self.headway < 1:
            raise InputError(f"line {self.name!r} has a headway of {self.headway} s: give at least 1")
        if not 0 <= self.hours[0] < self.hours[1]:
            raise InputError(
                f"line {self.name!r} runs from second {self.hours[0]} to {self.hours[1]}: its end must come after its start"
            )


@dataclass(frozen=True, eq=False)
class City:
    """Stops in the plane (km), travel times and ways of shuttles between them, the zone of each, hubs and bus lines.

    >>> from cbdp.transit import make_city
    >>> city = make_city(["A", "B", "C", "D"], [0, 1, 8, 9], [0, 0, 0, 0], ["west", "west", "east", "east"], ["A", "C"])
    >>> len(city), city.zones, int(city.seconds[0, 1])
    (4, ('west', 'east'), 87)
    """

    names: tuple[str, ...]
    x: Floats = field(repr=False)
    y: Floats = field(repr=False)
    zones: tuple[str, ...]
    zone: Ints = field(repr=False)
    hub: Bools = field(repr=False)
    seconds: Ints = field(repr=False)
    metres: Ints = field(repr=False)
    beeline: Floats = field(repr=False)  # straight-line (Euclidean) distance, km
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
        """Where the shuttles of a zone start, one after the other: its hubs, then each time the stop farthest from all before.

        So any number of shuttles is spread over the zone (farthest-first traversal: Gonzalez, 1985). A zone without a hub begins with its median
        (Hakimi, 1964): the stop with the least sum of travel times to it. Ties go to the stop that comes first.
        """
        stops = np.flatnonzero(self.zone == zone)
        median = stops[int(np.argmin(self.seconds[np.ix_(stops, stops)].sum(axis=0)))]
        order = [int(h) for h in stops[self.hub[stops]]] or [int(median)]
        near = self.seconds[np.array(order)][:, stops].min(axis=0)
        while len(order) < len(stops):
            order.append(int(stops[int(np.argmax(near))]))
            near = np.minimum(near, self.seconds[order[-1], stops])
        return np.array(order, dtype=np.int64)

    def code(self, name: str) -> int:
        """The position of a stop."""
        try:
            return self.names.index(name)
        except ValueError:
            raise InputError(
                f"unknown stop {name!r}: the city has {len(self)} stops, {self.names[0]!r} first"
            ) from None

    def with_lines(self, lines: Iterable[Line]) -> City:
        """The city with other bus lines, for example those of a network design."""
        return replace(self, lines=tuple(lines))


def make_city(
    names: Sequence[str],
    x: Iterable[float],
    y: Iterable[float],
    zones: Sequence[object],
    hubs: Iterable[object],
    *,
    lines: Iterable[Line] = (),
    driving: Driving | None = None,
    seconds: ArrayLike | None = None,
    metres: ArrayLike | None = None,
) -> City:
    """A city from columns: `zones` holds the zone of each stop, `hubs` names the hubs (or says of each stop whether it is one).

    Where the given travel time is longer than a way through other stops, that way is taken.

    >>> city = make_city(["A", "B", "C", "D"], [0, 1, 8, 9], [0, 0, 0, 0], ["west", "west", "east", "east"], ["A", "C"])
    >>> city.names, city.hub.tolist()
    (('A', 'B', 'C', 'D'), [True, False, True, False])
    """
    listed = tuple(str(n) for n in names)
    px, py = (np.array(list(v), dtype=float) for v in (x, y))
    labels = tuple(dict.fromkeys(str(z) for z in zones))
    code = np.array([labels.index(str(z)) for z in zones], dtype=np.int64)
    if not (len(listed) == len(px) == len(py) == len(code)):
        raise InputError(
            f"{len(listed)} stops have {len(px)} x, {len(py)} y and {len(code)} zones: give one of each for every stop"
        )
    _check_places(listed, px, py)
    drive = driving or Driving()
    ways = drive.metres(px, py) if metres is None else _whole_numbers("metres", metres)
    times = drive.seconds(ways) if seconds is None else quickest(_checked_times(listed, seconds))
    beeline = np.hypot(px[:, None] - px, py[:, None] - py)
    return City(listed, px, py, labels, code, _hub_mask(listed, hubs), times, ways, beeline, tuple(lines))


def quickest(times: Floats) -> Ints:
    """Travel times of the quickest way, which may lead through other stops; −1 where there is none.

    The Floyd–Warshall algorithm (Floyd, 1962), as `scipy.sparse.csgraph.floyd_warshall`, which takes a travel time of 0 s for no way at all.
    Here two stops may share a place; afterwards a stop is 1 s or more from every other.
    """
    closed = times.copy()
    for via in range(len(closed)):
        np.minimum(closed, closed[:, via, None] + closed[via], out=closed)
    whole = np.where(np.isfinite(closed), np.maximum(np.ceil(closed), 1), -1).astype(np.int64)
    np.fill_diagonal(whole, 0)
    return whole


def plane(lat: Iterable[float], lon: Iterable[float]) -> tuple[Floats, Floats]:
    """Coordinates in km, east and north of the stops' mean position."""
    a, o = (np.array(list(v), dtype=float) for v in (lat, lon))
    if not (np.isfinite(a).all() and np.isfinite(o).all() and (abs(a) <= 90).all() and (abs(o) <= 180).all()):
        raise InputError(
            "a stop has no valid latitude and longitude: give degrees, at most 90 and 180 either way"
        )
    wide = EARTH_KM_PER_DEGREE * math.cos(math.radians(float(a.mean())))
    return (o - o.mean()) * wide, (a - a.mean()) * EARTH_KM_PER_DEGREE


def _hub_mask(names: tuple[str, ...], hubs: Iterable[object]) -> Bools:
    listed = list(hubs)
    if len(listed) == len(names) and all(isinstance(h, bool | np.bool_) for h in listed):
        return np.array(listed, dtype=bool)
    hub_names = {str(h) for h in listed}
    if strangers := sorted(hub_names - set(names)):
        raise InputError(
            f"the hub {strangers[0]!r} is not a stop of the city: name hubs as in the list of stops"
        )
    return np.array([n in hub_names for n in names], dtype=bool)


def _whole_numbers(what: str, values: ArrayLike) -> Ints:
    array = np.asarray(values, dtype=float)
    if not np.isfinite(array).all() or (array < 0).any():
        raise InputError(
            f"{what} has a negative or missing value: give one of at least 0 for every pair of stops"
        )
    whole: Ints = np.ceil(array).astype(np.int64)
    return whole


def _checked_times(names: tuple[str, ...], seconds: ArrayLike) -> Floats:
    array = np.array(seconds, dtype=float)
    if array.shape != (len(names), len(names)):
        raise InputError(
            f"the travel times have the shape {array.shape}: {len(names)} stops need {(len(names),) * 2}"
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
        raise InputError("the list of stops is empty: a city needs at least one")
    if len(set(city.names)) < len(city.names):
        twice = next(n for n in city.names if city.names.count(n) > 1)
        raise InputError(f"the stop {twice!r} is listed twice: give every stop a name of its own")
    _check_places(city.names, city.x, city.y)
    for line in city.lines:
        if not all(0 <= s < len(city.names) for s in line.stops):
            raise InputError(
                f"line {line.name!r} stops at {line.stops}: the city's stops are 0 to {len(city.names) - 1}"
            )


def _check_places(names: Sequence[str], x: Floats, y: Floats) -> None:
    lost = np.flatnonzero(~(np.isfinite(x) & np.isfinite(y)))
    if len(lost):
        raise InputError(
            f"the stop {names[int(lost[0])]!r} has no coordinates: give it some, or leave it out"
        )


def _check_times(city: City) -> None:
    shape = (len(city.names),) * 2
    if city.seconds.shape != shape or city.metres.shape != shape:
        raise InputError(
            f"travel times and ways have the shapes {city.seconds.shape} and {city.metres.shape}: both need {shape}"
        )
    if (city.seconds < 0).any():
        o, d = (int(c) for c in np.argwhere(city.seconds < 0)[0])
        raise InputError(
            f"the stop {city.names[d]!r} cannot be reached from {city.names[o]!r}: add a travel time, or leave the stop out"
        )


def _check_hubs(city: City) -> None:
    if len(city.zones) == 1 and not city.hub.any():
        return  # one zone needs no buses
    for z, name in enumerate(city.zones):
        if not (city.hub & (city.zone == z)).any():
            raise InputError(
                f"the zone {name!r} has no hub: make one of its stops a hub, or merge the zone with another"
            )


# Units of coordinates
#
# Metres that are taken for kilometres make a city a thousand times too wide, and a fleet for it that nobody needs. So a city must have
# a size that a shuttle service can have: stops within 400 km, most of them less than 30 km from the next one, and not all of them on
# one square of 400 metres.


KM, METRES, DEGREES = "km", "m", "degrees"
KM_PER_UNIT = {KM: 1.0, METRES: 0.001}
MAX_EXTENT_KM = 400.0  # across: no shuttle drives farther
# from most stops to the next: metres that are taken for kilometres are farther apart
MAX_STOP_SPACING_KM = 30.0
MIN_EXTENT_KM = 0.4  # across: less is walked
MIN_STOP_SPACING_KM = 0.03  # from most stops to the next, where ten or more have coordinates of a plane


def in_km(x: Floats, y: Floats, units: str) -> tuple[Floats, Floats]:
    """Coordinates of a plane in kilometres.

    >>> in_km(np.array([0.0, 500.0]), np.array([0.0, 250.0]), "m")[0].tolist()
    [0.0, 0.5]
    """
    if units not in KM_PER_UNIT:
        raise InputError(
            f"unknown unit {units!r} of coordinates: x and y may be in {' or '.join(KM_PER_UNIT)}; for degrees call the columns lat and lon"
        )
    return x * KM_PER_UNIT[units], y * KM_PER_UNIT[units]


def check_extent(names: Sequence[str], x: Floats, y: Floats, units: str, what: str) -> None:
    """Refuse a city (in kilometres, read as `units`) that is too wide, too narrow, or has one stop far from all others."""
    if len(names) < 2:
        return
    across = float(np.hypot(np.ptp(x), np.ptp(y)))
    spacing = _typical_stop_spacing(x, y)
    if across > MAX_EXTENT_KM or spacing > MAX_STOP_SPACING_KM:
        _check_outliers(names, x, y, what)
        raise InputError(
            f"{what} in {_unit_word(units)} are {_length_text(across)} apart, no shuttle drives that far: {_too_wide_advice(units)}"
        )
    dense = units != DEGREES and len(names) >= 10 and spacing < MIN_STOP_SPACING_KM
    if across < MIN_EXTENT_KM or dense:
        far = (
            f"{_length_text(across)} apart"
            if across < MIN_EXTENT_KM
            else f"{_length_text(spacing)} from the next one"
        )
        raise InputError(
            f"{what} in {_unit_word(units)} are only {far}, everybody would walk: {_too_narrow_advice(units)}"
        )


def _typical_stop_spacing(x: Floats, y: Floats) -> float:
    """How far most stops are from the next one at another place."""
    from scipy.spatial import KDTree

    points = np.unique(np.column_stack([x, y]), axis=0)
    if len(points) < 2:
        return 0.0
    return float(np.median(KDTree(points).query(points, k=2)[0][:, 1]))


def _check_outliers(names: Sequence[str], x: Floats, y: Floats, what: str) -> None:
    """Name a stop that makes the city wide all by itself."""
    away = np.hypot(x - np.median(x), y - np.median(y))
    outlier = int(np.argmax(away))
    if len(names) > 4 and away[outlier] > MAX_EXTENT_KM / 4 and np.quantile(away, 0.75) < away[outlier] / 20:
        raise InputError(
            f"the stop {names[outlier]!r} is {_length_text(float(away[outlier]))} from the middle of {what}: correct its coordinates, or leave "
            "it out"
        )


def _too_wide_advice(units: str) -> str:
    return {
        KM: "if x and y are metres, say so with --units m (units='m')",
        METRES: "if x and y are smaller than metres, convert them to metres",
        DEGREES: "if these are not degrees but a plane's coordinates, call the columns x and y, and give --units km or --units m",
    }[units]


def _too_narrow_advice(units: str) -> str:
    return {
        KM: "if x and y are degrees, call the columns lon and lat; if they are in another unit, convert them to kilometres",
        METRES: "if x and y are kilometres, say so with --units km (units='km'); if they are degrees, call the columns lon and lat",
        DEGREES: "check their latitude and longitude",
    }[units]


def _unit_word(units: str) -> str:
    return {KM: "kilometres", METRES: "metres", DEGREES: "degrees"}[units]


def _length_text(km: float) -> str:
    return f"{km:,.0f} km" if km >= 10 else f"{1000 * km:,.0f} m"
