"""A city from its stops alone: zones, hubs and bus lines by rule, where nobody gives them. All of it is public; demand is never read.

1. *Zones*: as given. Without any, the smallest number of compact zones (k-means) in which no stop is more than 5 km from the stop in
   the middle of its zone, at most 40.
2. *Hubs*: as given. Without any, the stop of each zone with the least sum of ways to the other stops of the zone.
3. *Lines*: as given. Without any, and with more than one zone, a bus every 10 minutes at 30 km/h, both ways, between each hub and the
   hub with the least sum of ways to all other hubs. So every hub is reached with one change.
4. *Driving*: 30 km/h on ways that are 1.3 times the straight line, unless other numbers or travel times are given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.features.places import Stops, zones_by_clustering
from cbdp.transit.city import EARTH_KM_PER_DEGREE, City, Driving, Line, make_city, plane
from cbdp.transit.units import DEGREES, check_extent

IN_TOWN = Driving(speed=30.0, detour=1.3)
REACH = 5.0  # km from the middle of a zone
MOST_ZONES = 40
HEADWAY, BUS_SPEED = 600, 30.0  # seconds, km/h


def city_of_stops(
    names: Sequence[str],
    x: Floats,
    y: Floats,
    *,
    zones: Sequence[Any] | None = None,
    hubs: Iterable[Any] | None = None,
    driving: Driving | None = None,
    seconds: NDArray[Any] | None = None,
    metres: NDArray[Any] | None = None,
) -> City:
    """A city from stops in a plane (km), with the default lines; what is not given follows the rules above.

    >>> city = city_of_stops(["a", "b", "c"], np.array([0.0, 1, 30]), np.array([0.0, 0, 0]))
    >>> city.zones, [city.names[h] for h in city.hubs], [line.name for line in city.lines]
    (('Z01', 'Z02'), ['a', 'c'], ['c–a'])
    """
    labels = list(zones) if zones is not None else default_zones(names, x, y)
    drive = driving or IN_TOWN
    ways = drive.metres(x, y) if metres is None else metres
    chosen = list(hubs) if hubs is not None else default_hubs(names, labels, ways)
    city = make_city(names, x, y, labels, chosen, driving=drive, seconds=seconds, metres=metres)
    return city.with_lines(default_lines(city))


def city_on_earth(stops: Stops, *, driving: Driving | None = None, what: str = "the stops") -> City:
    """A city from stops with latitude and longitude, their zones where they have any; coordinates of another unit are refused.

    >>> lat, lon = np.array([47.37, 47.39, 47.38]), np.array([8.54, 8.54, 8.56])
    >>> city = city_on_earth(Stops(("a", "b", "c"), ("a", "b", "c"), lat, lon))
    >>> city.zones, round(float(city.beeline[0, 1]), 1)
    (('Z01',), 2.2)
    """
    x, y = plane(stops.lat, stops.lon)
    names = [str(stop) for stop in stops.ids]
    check_extent(names, x, y, DEGREES, what)
    return city_of_stops(names, x, y, zones=stops.zone, driving=driving)


def default_zones(names: Sequence[str], x: Floats, y: Floats) -> list[str]:
    """The zone of each stop by rule 1."""
    lat, lon = (np.asarray(v, dtype=float) / EARTH_KM_PER_DEGREE for v in (y - np.mean(y), x - np.mean(x)))
    stops = Stops(tuple(names), tuple(names), lat, lon)
    most = min(MOST_ZONES, len(np.unique(np.column_stack([x, y]), axis=0)))
    found: tuple[str, ...] = ()
    for count in range(1, most + 1):
        zoned, middles = zones_by_clustering(stops, count)
        found = zoned.zone or ()
        at = dict(zip(sorted(set(found)), middles, strict=True))
        place = {name: n for n, name in enumerate(names)}
        centre = np.array([place[str(at[zone])] for zone in found])
        if float(np.hypot(x - x[centre], y - y[centre]).max()) <= REACH:
            break
    return list(found)


def default_hubs(names: Sequence[str], zones: Sequence[Any], metres: NDArray[Any]) -> list[str]:
    """The hub of each zone by rule 2; ties go to the stop that comes first."""
    found = []
    for zone in dict.fromkeys(zones):
        own = np.array([n for n, z in enumerate(zones) if z == zone])
        found.append(names[int(own[_middle(metres, own)])])
    return found


def _middle(metres: NDArray[Any], own: Ints) -> int:
    inside = np.asarray(metres)[np.ix_(own, own)]
    return int(np.argmin(inside.sum(axis=0) + inside.sum(axis=1)))


def default_lines(city: City) -> list[Line]:
    """Lines between the hubs by rule 3; one zone needs none."""
    hubs = city.hubs
    if len(city.zones) == 1 or len(hubs) < 2:
        return []
    centre = int(hubs[_middle(city.metres, hubs)])
    made = []
    for hub in hubs.tolist():
        if hub != centre:
            run = max(1, math.ceil(int(city.metres[hub, centre]) * 3.6 / BUS_SPEED))
            made.append(Line(f"{city.names[hub]}–{city.names[centre]}", (hub, centre), HEADWAY, (run,)))
    return made
