"""Coordinates in the wrong unit are refused with the cure, and cities of every honest size are not."""

from __future__ import annotations

import numpy as np
import pytest

from cbdp.errors import InputError
from cbdp.transit.city import check_extent, in_km, plane

RNG = np.random.default_rng(5)
EAST, NORTH = RNG.uniform(0, 16, 130), RNG.uniform(0, 12, 130)  # a city, in km
NAMES = [f"s{n}" for n in range(130)]


@pytest.mark.parametrize("scale", [0.1, 0.3, 1.0, 5.0, 15.0])
def test_cities_of_every_size_pass(scale: float) -> None:
    """From a campus of two kilometres to a region of 300."""
    check_extent(NAMES, EAST * scale, NORTH * scale, "km", "the stops")
    lat, lon = 42 + NORTH * scale / 111.2, -83 + EAST * scale / 82.6
    check_extent(NAMES, *plane(lat, lon), "degrees", "the stops")
    x, y = in_km(EAST * scale * 1000, NORTH * scale * 1000, "m")
    check_extent(NAMES, x, y, "m", "the stops")
    assert x == pytest.approx(EAST * scale)


@pytest.mark.parametrize(
    ("factor", "units", "cure"),
    [
        (1000.0, "km", "if x and y are metres, say so with --units m"),
        (1.0, "m", "if x and y are kilometres, say so with --units km"),
        (1 / 111.2, "km", "if x and y are degrees, call the columns lon and lat"),
        (1 / 111.2, "m", "if they are degrees, call the columns lon and lat"),
    ],
)
def test_planes_in_another_unit_are_refused(factor: float, units: str, cure: str) -> None:
    """What the numbers are is named, and what to do."""
    with pytest.raises(InputError, match=cure) as wrong:
        check_extent(NAMES, *in_km(EAST * factor, NORTH * factor, units), units, "the stops of my.csv")
    assert "the stops of my.csv in" in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_kilometres_that_pass_for_degrees_are_refused() -> None:
    """Numbers from 0 to 16 are valid degrees, and a city of 1,900 km."""
    with pytest.raises(InputError, match="call the columns x and y, and give --units km or --units m"):
        check_extent(NAMES, *plane(NORTH, EAST), "degrees", "the stops")


def test_a_few_far_stops_in_metres_are_refused_by_their_gaps() -> None:
    """A hamlet of 300 metres, taken for 300 km, is no region: its stops are 100 km from each other."""
    x, y = np.array([0.0, 100, 200, 300]), np.zeros(4)
    with pytest.raises(InputError, match="--units m"):
        check_extent(list("abcd"), x, y, "km", "the stops")


def test_one_stray_stop_is_named() -> None:
    """A stop without coordinates that was put at 0, 0 is the one to correct, not the units."""
    lat, lon = 42 + NORTH / 111.2, -83 + EAST / 82.6
    lat[17], lon[17] = 0, 0
    with pytest.raises(InputError, match=r"the stop 's17' is [\d,]+ km from the middle of the stops"):
        check_extent(NAMES, *plane(lat, lon), "degrees", "the stops")


def test_units_have_names() -> None:
    """Feet are not among them."""
    with pytest.raises(InputError, match="unknown unit 'ft'"):
        in_km(EAST, NORTH, "ft")
    check_extent(["a"], np.zeros(1), np.zeros(1), "km", "one stop is a city")
