"""Units of coordinates: kilometres, metres or degrees, and a check that they are what they are said to be.

Metres that are taken for kilometres make a city a thousand times too wide, and a fleet for it that nobody needs. So a city must have
a size that a shuttle service can have: stops within 400 km, most of them less than 30 km from the next one, and not all of them on
one square of 400 metres.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbdp.arrays import Floats
from cbdp.errors import InputError

KM, METRES, DEGREES = "km", "m", "degrees"
UNITS = {KM: 1.0, METRES: 0.001}  # kilometres in one of each
WIDEST = 400.0  # km across
SPARSEST = 30.0  # km from most stops to the next
NARROWEST = 0.4  # km across
DENSEST = 0.03  # km from most stops to the next, where ten or more have coordinates of a plane


def in_km(x: Floats, y: Floats, units: str) -> tuple[Floats, Floats]:
    """Coordinates of a plane in kilometres.

    >>> in_km(np.array([0.0, 500.0]), np.array([0.0, 250.0]), "m")[0].tolist()
    [0.0, 0.5]
    """
    if units not in UNITS:
        raise InputError(
            f"unknown unit {units!r} of coordinates: x and y may be in {' or '.join(UNITS)}; for degrees call the columns lat and lon"
        )
    return x * UNITS[units], y * UNITS[units]


def check_extent(names: Sequence[str], x: Floats, y: Floats, units: str, what: str) -> None:
    """Refuse a city (in kilometres, read as `units`) that is too wide, too narrow, or has one stop far from all others."""
    if len(names) < 2:
        return
    across = float(np.hypot(np.ptp(x), np.ptp(y)))
    next_one = _next(x, y)
    if across > WIDEST or next_one > SPARSEST:
        _check_strays(names, x, y, what)
        raise InputError(
            f"{what} in {_called(units)} are {_length(across)} apart, no shuttle drives that far: {_wider(units)}"
        )
    dense = units != DEGREES and len(names) >= 10 and next_one < DENSEST
    if across < NARROWEST or dense:
        far = f"{_length(across)} apart" if across < NARROWEST else f"{_length(next_one)} from the next one"
        raise InputError(
            f"{what} in {_called(units)} are only {far}, everybody would walk: {_narrower(units)}"
        )


def _next(x: Floats, y: Floats) -> float:
    """How far most stops are from the next one at another place."""
    from scipy.spatial import KDTree

    points = np.unique(np.column_stack([x, y]), axis=0)
    if len(points) < 2:
        return 0.0
    return float(np.median(KDTree(points).query(points, k=2)[0][:, 1]))


def _check_strays(names: Sequence[str], x: Floats, y: Floats, what: str) -> None:
    """Name a stop that makes the city wide all by itself."""
    away = np.hypot(x - np.median(x), y - np.median(y))
    stray = int(np.argmax(away))
    if len(names) > 4 and away[stray] > WIDEST / 4 and np.quantile(away, 0.75) < away[stray] / 20:
        raise InputError(
            f"the stop {names[stray]!r} is {_length(float(away[stray]))} from the middle of {what}: correct its coordinates, or leave "
            "it out"
        )


def _wider(units: str) -> str:
    return {
        KM: "if x and y are metres, say so with --units m (units='m')",
        METRES: "if x and y are smaller than metres, convert them to metres",
        DEGREES: "if these are not degrees but a plane's coordinates, call the columns x and y, and give --units km or --units m",
    }[units]


def _narrower(units: str) -> str:
    return {
        KM: "if x and y are degrees, call the columns lon and lat; if they are in another unit, convert them to kilometres",
        METRES: "if x and y are kilometres, say so with --units km (units='km'); if they are degrees, call the columns lon and lat",
        DEGREES: "check their latitude and longitude",
    }[units]


def _called(units: str) -> str:
    return {KM: "kilometres", METRES: "metres", DEGREES: "degrees"}[units]


def _length(km: float) -> str:
    return f"{km:,.0f} km" if km >= 10 else f"{1000 * km:,.0f} m"
