"""The synthetic city of `ann_arbor` as a shuttle service sees it: with travel times, hubs and bus lines."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from cbdp.arrays import Floats
from cbdp.datasets.ann_arbor import HEIGHT_KM, LINE_OF_ZONE, WIDTH_KM, ZONES, Geography, geography
from cbdp.transit.city import City, Driving, Line, make_city


def ann_arbor_city(driving: Driving | None = None, *, headway: int = 600, bus_speed: float = 30.0) -> City:
    """The city of `ann_arbor`, with two bus lines that cross at the central stop.

    A bus every ten minutes is what the case study calls high-frequency; buses run at 30 km/h on the same streets.
    """
    place = geography()
    drive = driving or Driving()
    ways = drive.metres(place.x, place.y)
    centre = int(np.argmin(_from_centre(place)))
    lines = []
    for line in range(2):
        zones = np.flatnonzero(line == LINE_OF_ZONE).tolist()
        first, last = (_from_outside(place, z) for z in zones)
        stops = [*first, centre, *reversed(last)]
        run = [max(1, math.ceil(ways[a, b] * 3.6 / bus_speed)) for a, b in pairwise(stops)]
        name = "–".join(ZONES[z] for z in zones)
        lines.append(Line(name, tuple(stops), headway, tuple(run), offset=line * headway // 2))
    return make_city(place.names, place.x, place.y, place.zones, place.hub, lines=lines, driving=drive)


def _from_centre(place: Geography) -> Floats:
    distance: Floats = np.hypot(place.x - WIDTH_KM / 2, place.y - HEIGHT_KM / 2)
    return distance


def _from_outside(place: Geography, zone: int) -> list[int]:
    """The hubs of a zone, the farthest from the centre first."""
    hubs = np.flatnonzero(place.hub & (place.zone == zone))
    return [int(h) for h in hubs[np.argsort(-_from_centre(place)[hubs], kind="stable")]]
