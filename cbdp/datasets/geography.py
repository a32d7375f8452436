"""The public geography of the synthetic city: stops, zones, hubs and the mode of every pair.

Nothing here is drawn: no seed and no demand moves a stop, a zone, a hub or a mode. Positions are rounded to 10 m, so that
the last bits of a cosine do not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.datasets.dataset import Columns

STOPS = 130
WIDTH, HEIGHT = 16.0, 12.0  # km
ZONES = ("NE", "NW", "SW", "SE")
LINE_OF_ZONE = np.array([0, 1, 0, 1])  # one bus line runs NE–SW, one NW–SE; they cross in the centre
MODES = (
    "walk",
    "shuttle",
    "shuttle to next zone",
    "bus",
    "bus-bus",
    "shuttle-bus",
    "shuttle-bus-bus",
    "bus-shuttle",
    "bus-bus-shuttle",
    "shuttle-bus-shuttle",
    "shuttle-bus-bus-shuttle",
    "shuttle-bus-shuttle in zone",
)
WALK, BORDER, LONG = (
    0.5,
    1.5,
    4.0,
)  # km: walked · served by one shuttle across a zone border · too long for one in its zone
CENTRE_LAT, CENTRE_LON, KM_PER_DEGREE = 42.28, -83.74, 111.2


@dataclass(frozen=True, eq=False)
class Geography:
    """Stops in the plane (km), the zone of each, which are hubs, and distance and mode of every ordered pair."""

    names: tuple[str, ...]
    x: Floats
    y: Floats
    zone: Ints
    hub: NDArray[np.bool_]
    distance: Floats
    mode: NDArray[Any]

    @property
    def zones(self) -> list[str]:
        """The zone of each stop, by name."""
        return [ZONES[z] for z in self.zone]

    def near(self, x: float, y: float, spread: float) -> Floats:
        """How much each stop belongs to the surroundings of a point: 1 there, falling with `spread` (km)."""
        made: Floats = np.exp(-((self.x - x) ** 2 + (self.y - y) ** 2) / (2 * spread**2))
        return made

    def columns(self) -> Columns:
        """The table of stops."""
        lon_km = KM_PER_DEGREE * math.cos(math.radians(CENTRE_LAT))
        return {
            "stop": np.array(self.names),
            "x": self.x.copy(),
            "y": self.y.copy(),
            "lat": np.round(CENTRE_LAT + (self.y - HEIGHT / 2) / KM_PER_DEGREE, 6),
            "lon": np.round(CENTRE_LON + (self.x - WIDTH / 2) / lon_km, 6),
            "zone": np.array(self.zones),
            "hub": self.hub.copy(),
        }


@cache
def city() -> Geography:
    """The synthetic city: 130 stops, dense in the centre, in four contiguous zones with two hubs each."""
    x, y = _positions()
    zone = _zones(x, y)
    hubs = _hubs(x, y, zone)
    hub = np.isin(np.arange(STOPS), hubs)
    distance: Floats = np.hypot(x[:, None] - x, y[:, None] - y)
    mode = _modes(distance, zone, hub)
    for array in (x, y, zone, hub, distance, mode):
        array.setflags(write=False)
    return Geography(tuple(f"S{i + 1:03d}" for i in range(STOPS)), x, y, zone, hub, distance, mode)


def _positions() -> tuple[Floats, Floats]:
    """Stops on a sunflower spiral that thins outwards, each moved a little so that no spiral shows."""
    i = np.arange(STOPS)
    radius = ((i + 0.5) / STOPS) ** 0.65
    angle = i * math.pi * (3 - math.sqrt(5))
    nudge = [0.7 * radius * (np.modf(i * math.sqrt(p))[0] - 0.5) for p in (2, 3)]
    x = np.round(WIDTH / 2 + 7.5 * radius * np.cos(angle) + nudge[0], 2)
    y = np.round(HEIGHT / 2 + 5.5 * radius * np.sin(angle) + nudge[1], 2)
    return x, y


def _zones(x: Floats, y: Floats) -> Ints:
    """Lloyd's k-means from the middles of the four quarters: the zones are convex, hence contiguous."""
    cx, cy = WIDTH * np.array([0.75, 0.25, 0.25, 0.75]), HEIGHT * np.array([0.75, 0.75, 0.25, 0.25])
    for _ in range(30):
        zone = np.argmin(np.hypot(x[:, None] - cx, y[:, None] - cy), axis=1)
        size = np.bincount(zone, minlength=4)
        cx, cy = np.bincount(zone, weights=x) / size, np.bincount(zone, weights=y) / size
    made: Ints = zone.astype(np.int64)
    return made


def _hubs(x: Floats, y: Floats, zone: Ints) -> list[int]:
    """Two hubs for each zone: one towards the centre of the city, one beyond the middle of the zone."""
    hubs = []
    for z in range(len(ZONES)):
        own = np.flatnonzero(zone == z)
        dx, dy = x[own].mean() - WIDTH / 2, y[own].mean() - HEIGHT / 2
        for part in (0.35, 1.2):
            gap = np.hypot(x[own] - WIDTH / 2 - part * dx, y[own] - HEIGHT / 2 - part * dy)
            hubs.append(int(own[np.argmin(gap)]))
    return hubs


def _modes(distance: Floats, zone: Ints, hub: NDArray[np.bool_]) -> NDArray[Any]:
    """The mode of each ordered pair: how the network serves it, by distance, zones, hubs and bus lines alone."""
    places = np.flatnonzero(hub)
    reach = np.where(zone[:, None] == zone[places], distance[:, places], np.inf)
    access = np.argmin(reach, axis=1)  # the nearest hub of the stop's own zone
    same_zone = zone[:, None] == zone
    other_hub = access[:, None] != access
    one_line = LINE_OF_ZONE[zone][:, None] == LINE_OF_ZONE[zone]
    from_hub, to_hub = np.broadcast_arrays(hub[:, None], hub)
    ridden = ~same_zone | (other_hub & (distance > LONG))  # too far for one shuttle
    cases = [
        (distance <= WALK, "walk"),
        (from_hub & to_hub & one_line, "bus"),
        (from_hub & to_hub, "bus-bus"),
        (~ridden, "shuttle"),
        (~same_zone & (distance <= BORDER), "shuttle to next zone"),
        (from_hub & one_line, "bus-shuttle"),
        (from_hub, "bus-bus-shuttle"),
        (to_hub & one_line, "shuttle-bus"),
        (to_hub, "shuttle-bus-bus"),
        (same_zone, "shuttle-bus-shuttle in zone"),
        (one_line, "shuttle-bus-shuttle"),
    ]
    chosen = np.select([case for case, _ in cases], [MODES.index(mode) for _, mode in cases], len(MODES))
    left = MODES.index("shuttle-bus-bus-shuttle")
    return np.array(MODES, dtype=object)[np.where(chosen == len(MODES), left, chosen)]
