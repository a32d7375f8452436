"""Zones, hubs and lines by rule: they keep what the rule promises, whatever the stops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbdp.transit.city import MAX_ZONES, URBAN_DRIVING, ZONE_RADIUS_KM, city_of_stops, default_zones
from cbdp.transit.modes import ModeRule


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 60), st.floats(0.5, 60))
def test_every_pair_of_stops_is_served(seed: int, stops: int, wide: float) -> None:
    """Each zone has one hub, no stop is beyond the reach of its zone's middle, and every pair has a way with at most one change."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, wide, stops), rng.uniform(0, wide, stops)
    city = city_of_stops([f"s{n}" for n in range(stops)], x, y)
    assert [int((city.hub & (city.zone == z)).sum()) for z in range(len(city.zones))] == [1] * len(city.zones)
    assert len(city.lines) == (len(city.zones) - 1 if len(city.zones) > 1 else 0)
    if len(city.zones) < min(MAX_ZONES, stops):
        for z in range(len(city.zones)):
            own = np.flatnonzero(city.zone == z)
            assert city.beeline[np.ix_(own, own)].max(axis=1).min() <= ZONE_RADIUS_KM + 1e-9
    modes = ModeRule().choose(city)
    assert max(len(path) for path in (*modes.paths, ())) <= 2


def test_towns_apart_are_zones_of_their_own() -> None:
    """Three towns, 20 km apart, are three zones, and the middle one has the change of buses."""
    rng = np.random.default_rng(3)
    centres = np.repeat([[0.0, 0.0], [20.0, 0.0], [40.0, 0.0]], 12, axis=0)
    x, y = (centres + rng.uniform(-1, 1, (36, 2))).T
    zones = default_zones([f"s{n}" for n in range(36)], x, y)
    assert [len(set(zones[k : k + 12])) for k in (0, 12, 24)] == [1, 1, 1]
    city = city_of_stops([f"s{n}" for n in range(36)], x, y)
    assert len(city.zones) == 3
    (centre,) = set.intersection(*(set(line.stops) for line in city.lines))
    assert 12 <= centre < 24


def test_a_small_town_is_one_zone_without_buses() -> None:
    """Nobody changes inside five kilometres."""
    city = city_of_stops(list("abc"), np.array([0.0, 2, 4]), np.zeros(3))
    assert (len(city.zones), city.lines) == (1, ())


def test_what_is_given_stays() -> None:
    """Zones and hubs as given; ways and times by the stated speed and detour."""
    x, y = np.array([0.0, 3, 30, 33]), np.zeros(4)
    city = city_of_stops(list("abcd"), x, y, zones=["w", "w", "e", "e"], hubs=["b", "d"])
    assert [city.names[h] for h in city.hubs] == ["b", "d"]
    assert city.zones == ("w", "e")
    assert city.metres[0, 1] == pytest.approx(3000 * 1.3)
    assert city.seconds[0, 1] == pytest.approx(3.9 / URBAN_DRIVING.speed * 3600)
    (line,) = city.lines
    assert (line.headway, line.run) == (600, (4680,))  # 39 km of ways at 30 km/h
