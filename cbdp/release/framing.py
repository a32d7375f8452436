"""What part of a map to show: where the trips are. A few stops far away would shrink all others to a dot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats

MOST = 0.8  # of the ends of trips: these are in the frame, however far apart
GAP = 3.0  # where the next stop is so many times as far from the middle, all from there on may be left out
FEW = 0.02  # of the ends of trips: so few are left out beyond a gap
ABSURD = 9.0  # degrees, about 1,000 km: beyond a gap and so far away, a place is a mistake, however many trips it has


@dataclass(frozen=True)
class Frame:
    """The corners of the part that is shown, and what lies outside of it."""

    south: float
    west: float
    north: float
    east: float  # from west to the east, so it may exceed 180
    outside: int = 0  # stops that are not shown
    share: float = 0.0  # of the ends of trips, at these

    def holds(self, lat: Floats, lon: Floats) -> NDArray[np.bool_]:
        """Which of these places lie inside."""
        east = (np.asarray(lon) - self.west + 1e-9) % 360.0
        return (self.south <= lat) & (lat <= self.north) & (east <= self.east - self.west + 2e-9)


def flat(lat: Floats, lon: Floats, start: tuple[float, float]) -> tuple[Floats, Floats]:
    """Degrees east and north of a point, in the same units; the date line is no border."""
    east = (np.asarray(lon) - start[1] + 540.0) % 360.0 - 180.0
    return east * np.cos(np.radians(start[0])), np.asarray(lat) - start[0]


def frame(lat: Floats, lon: Floats, trips: Floats) -> Frame | None:
    """The frame of the stops with trips, less those far away; None if no stop has a place.

    >>> lat, lon = np.array([42.0, 42.1, 42.2, 0.0]), np.array([-83.0, -83.1, -83.2, 0.0])
    >>> shown = frame(lat, lon, np.array([50.0, 60.0, 70.0, 1.0]))
    >>> shown.south, shown.north, shown.outside
    (42.0, 42.2, 1)
    """
    known = np.isfinite(lat) & np.isfinite(lon)
    if not known.any():
        return None
    lat, lon, weight = lat[known], lon[known], np.asarray(trips, dtype=np.float64)[known]
    if not weight.sum() > 0:
        weight = np.ones(len(lat))
    start = float(lat[0]), float(lon[0])
    east, north = flat(lat, lon, start)
    middle = _share(east, weight, 0.5), _share(north, weight, 0.5)
    away = np.hypot(east - middle[0], north - middle[1])
    near = away <= _reach(away, weight)
    shown = near & (weight > 0)
    turned = start[1] + (lon[shown] - start[1] + 540.0) % 360.0 - 180.0
    return Frame(
        south=float(lat[shown].min()),
        west=float(turned.min()),
        north=float(lat[shown].max()),
        east=float(turned.max()),
        outside=int((~near).sum()),
        share=float(weight[~near].sum() / weight.sum()),
    )


def _reach(away: Floats, weight: Floats) -> float:
    """How far from the middle the frame goes: up to the first gap with few trips beyond, or with places that cannot be meant."""
    order = np.argsort(away, kind="stable")
    order = order[weight[order] > 0]
    far, share = away[order], np.cumsum(weight[order]) / weight.sum()
    gap = (share[:-1] >= MOST) & (far[1:] > GAP * np.maximum(far[:-1], 1e-3))
    gap &= (1 - share[:-1] <= FEW) | (far[1:] > ABSURD)
    return float(far[np.flatnonzero(gap)[0]] if gap.any() else far[-1])


def _share(values: Floats, weight: Floats, share: float) -> float:
    """The value below which this share of the weight lies."""
    order = np.argsort(values, kind="stable")
    place = int(np.searchsorted(np.cumsum(weight[order]), share * weight.sum()))
    return float(values[order][min(place, len(order) - 1)])
