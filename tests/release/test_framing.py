"""The frame of a map: all stops of a city, its suburbs too, and none of the mistakes that files of stops have."""

from __future__ import annotations

import numpy as np

from cbdp.release.views import map_frame

RNG = np.random.default_rng(8)
LAT, LON = 42.28 + 0.1 * RNG.random(200), -83.74 + 0.1 * RNG.random(200)
TRIPS = RNG.integers(0, 50, 200).astype(float)


def test_a_stop_at_zero_degrees_is_left_out_however_busy() -> None:
    """A missing place that was written as 0° N 0° E, with a tenth of all trips."""
    busy = TRIPS.sum() / 9
    found = map_frame(np.append(LAT, 0.0), np.append(LON, 0.0), np.append(TRIPS, busy))
    assert found is not None
    alone = map_frame(LAT, LON, TRIPS)
    assert alone is not None
    assert (found.south, found.west, found.north, found.east) == (
        alone.south,
        alone.west,
        alone.north,
        alone.east,
    )
    assert (found.outside, round(found.share, 3), alone.outside) == (1, 0.1, 0)


def test_suburbs_are_shown() -> None:
    """Nearly all trips in the middle, and stops further and further out: there is no gap, and nothing is left out."""
    out = 0.01 * 1.5 ** np.arange(10)
    lat, lon = np.append(LAT, 42.33 + out), np.append(LON, -83.69 - out)
    found = map_frame(lat, lon, np.append(TRIPS * 20, np.ones(10)))
    assert found is not None
    assert found.outside == 0
    assert found.north == lat.max()


def test_stops_without_trips_do_not_widen_it() -> None:
    """It is framed by where trips are; stops without places do not matter, and where none has one there is no frame."""
    lat, lon = np.append(LAT, [42.6, np.nan]), np.append(LON, [-83.0, np.nan])
    found = map_frame(lat, lon, np.append(TRIPS, [0, 90]))
    assert found is not None
    assert found.north <= 42.38
    assert map_frame(np.array([np.nan]), np.array([np.nan]), np.ones(1)) is None


def test_the_date_line_is_no_border() -> None:
    """Stops on both sides of it are near each other."""
    found = map_frame(np.array([-17.0, -17.1, -17.2]), np.array([179.9, -179.9, 180.0]), np.ones(3))
    assert found is not None
    assert found.outside == 0
    assert round(found.east - found.west, 6) == 0.2


def test_one_stop_is_a_frame() -> None:
    """A single place, and places without any trips."""
    found = map_frame(np.array([48.0]), np.array([2.0]), np.zeros(1))
    assert found is not None
    assert (found.south, found.east, found.outside) == (48.0, 2.0, 0)


def test_other_cities_are_no_mistake() -> None:
    """As in the Bay Area: nine of ten trips in one city, and the others 40 to 75 km away, beyond a gap."""
    lat, lon = np.append(LAT, [41.9, 41.8, 41.7]), np.append(LON, [-83.5, -83.4, -83.3])
    found = map_frame(lat, lon, np.append(TRIPS, np.full(3, TRIPS.sum() / 30)))
    assert found is not None
    assert found.outside == 0
    assert found.south == 41.7
    few = map_frame(lat, lon, np.append(TRIPS, np.full(3, TRIPS.sum() / 300)))
    assert few is not None
    assert few.outside == 3
