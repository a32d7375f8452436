"""The stops and zones of the map: each once, with its name and where it is."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.features.dimension import Dimension
from cbdp.features.places import Stops
from cbdp.release.framing import Frame
from cbdp.release.published import Published
from cbdp.release.roles import Roles

STOPS = 1_500  # drawn on the map
NUMBERED = re.compile(r"Z\d+")  # zones that were made from coordinates
Spot = tuple[str, float | None, float | None, int]  # name, latitude, longitude, zone


class Nodes:
    """Stops in the order they are first needed: label, name, latitude, longitude (None if unknown) and zone."""

    def __init__(
        self, places: Stops | None, first: Dimension, second: Dimension, published: Published, parts: Roles
    ) -> None:
        self._place: dict[Hashable, int] = {}
        self._stops = places
        self._where = {} if places is None else {stop: i for i, stop in enumerate(places.ids)}
        self._texts = {str(stop): i for stop, i in self._where.items()}
        self._values = (first.values, second.values)
        self._zone: dict[Hashable, int] = {}
        self._zones: list[str] = []
        self.listed: list[list[Any]] = []
        self.hidden = 0
        self._find_zones(published, parts)

    def _find_zones(self, published: Published, parts: Roles) -> None:
        universe = published.dag.universe
        if parts.zones is not None:
            names: dict[str, int] = {}
            for values, attribute in zip(self._values, parts.zones, strict=True):
                a = universe.attribute(attribute)
                for value, code in zip(values, a.codes.tolist(), strict=True):
                    self._zone[value] = names.setdefault(str(a.labels[code]), len(names))
            order = sorted(names)
            place = {names[name]: i for i, name in enumerate(order)}
            self._zone = {value: place[z] for value, z in self._zone.items()}
            self._zones = order
        elif self._stops is not None and self._stops.zone is not None:
            self._zones = sorted(set(self._stops.zone))
            place_of = {name: i for i, name in enumerate(self._zones)}
            self._zone = {s: place_of[z] for s, z in zip(self._stops.ids, self._stops.zone, strict=True)}

    def first(self, code: int) -> int:
        return self._node(self._values[0][code])

    def second(self, code: int) -> int:
        return self._node(self._values[1][code])

    def _node(self, value: Hashable) -> int:
        if value not in self._place:
            self._place[value] = len(self.listed)
            name, lat, lon = self._at(value)
            self.listed.append([str(value), name, lat, lon, self._zone.get(value, -1)])
        return self._place[value]

    def _at(self, value: Hashable) -> tuple[str, float | None, float | None]:
        where = self._where.get(value, self._texts.get(str(value)))
        if self._stops is None or where is None:
            return str(value), None, None
        lat, lon = float(self._stops.lat[where]), float(self._stops.lon[where])
        name = self._stops.names[where]
        return (name, None, None) if math.isnan(lat) else (name, round(lat, 6), round(lon, 6))

    def fill(self, codes: Mapping[str, Ints], parts: Roles, value: Ints) -> None:
        """The other stops for the map, those with the most trips first, as long as there is room."""
        if self._stops is None or parts.ends is None:
            return
        seen: dict[Hashable, int] = {}
        for values, end in zip(self._values, parts.ends, strict=True):
            trips = np.bincount(codes[end], value, len(values)) if len(value) else np.zeros(len(values))
            for stop, n in zip(values, trips.tolist(), strict=True):
                seen[stop] = seen.get(stop, 0) + int(n)
        for stop in sorted(seen, key=lambda s: -seen[s]):
            if len(self.listed) < STOPS:
                self._node(stop)
        self.hidden = len(seen) - len(self._place)

    def zones(self, shown: Frame | None) -> list[list[Any]]:
        """Each zone's name and the middle of its stops: of those that the map shows, if it shows any."""
        points: dict[int, list[tuple[float, float]]] = {}
        for stop, zone in self._zone.items():
            _, lat, lon = self._at(stop)
            if lat is not None and lon is not None:
                points.setdefault(zone, []).append((lat, lon))
        middle = {z: _middle(np.array(held), shown) for z, held in points.items()}
        return [[name, *middle.get(z, [None, None])] for z, name in enumerate(self._zones)]


def _middle(points: NDArray[np.float64], shown: Frame | None) -> list[float]:
    inside = np.zeros(len(points), dtype=bool) if shown is None else shown.holds(points[:, 0], points[:, 1])
    kept = points[inside] if inside.any() else points
    return [round(float(c), 6) for c in kept.mean(axis=0)]


def called(zones: Sequence[str], stops: Iterable[Spot]) -> list[str]:
    """What to call zones for readers: to one that has a number alone, the stop in its middle is added.

    >>> called(["Z1", "Old town"], [("A", 0, 0, 0), ("B", 0, 1, 0), ("C", 0, 3, 0), ("D", 9, 9, 1)])
    ['Z1 around B', 'Old town']
    """
    held: dict[int, list[tuple[str, float, float]]] = {}
    for name, lat, lon, zone in stops:
        if lat is not None and lon is not None:
            held.setdefault(zone, []).append((name, lat, lon))
    return [
        f"{zone} around {_central(held[n])}" if n in held and NUMBERED.fullmatch(zone) else zone
        for n, zone in enumerate(zones)
    ]


def _central(stops: list[tuple[str, float, float]]) -> str:
    """The stop that is nearest to the middle of all; of several as near, the first by its name."""
    points = np.array([stop[1:] for stop in stops])
    off = (points - points.mean(axis=0)) * [1.0, math.cos(math.radians(points[:, 0].mean()))]
    return min(zip(np.round((off**2).sum(axis=1), 12).tolist(), (s[0] for s in stops), strict=True))[1]
