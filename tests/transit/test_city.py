"""Cities from columns: travel times, depots, lines, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from cbdp.datasets import ann_arbor_city
from cbdp.errors import InputError
from cbdp.features import Dimension, Universe
from cbdp.transit.city import URBAN_DRIVING, Driving, Line, city_of_stops, make_city
from cbdp.transit.fleets import city_of_stops as city_of_trips
from cbdp_features.places import Stops


def test_ways_are_metric() -> None:
    """Travel times obey the triangle inequality, computed or given; a quicker detour is taken."""
    city = ann_arbor_city()
    t = city.seconds
    assert all((t[:, [k]] + t[[k], :] >= t).all() for k in range(0, len(city), 13))
    given_times = np.array([[0, 10, 100], [10, 0, 20], [100, 20, 0.0]])
    made = make_city(list("abc"), [0, 1, 2], [0, 0, 0], ["z"] * 3, ["a"], seconds=given_times)
    assert made.seconds[0, 2] == 30


def test_depots_spread_over_the_zone() -> None:
    """A zone's starting places are its hubs first, then each of its stops once."""
    city = ann_arbor_city()
    for zone in range(4):
        depots = city.depots(zone)
        assert city.hub[depots[:2]].all()
        assert sorted(depots.tolist()) == np.flatnonzero(city.zone == zone).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hubs": ["a"]}, "zone 'y' has no hub"),
        ({"hubs": ["a", "q"]}, "hub 'q' is not a stop"),
        ({"names": ["a", "a", "c"]}, "'a' is listed twice"),
        ({"x": [0, 1, np.nan]}, "'c' has no coordinates"),
        (
            {"seconds": np.array([[0, 1, np.inf], [1, 0, np.inf], [1, 1, 0.0]])},
            "'c' cannot be reached from 'a'",
        ),
        ({"seconds": np.full((3, 3), -1.0)}, "cannot be negative"),
        ({"seconds": np.zeros((2, 2))}, "3 stops need"),
        ({"zones": ["x", "x"]}, "2 zones"),
    ],
)
def test_bad_cities_are_refused(change: dict[str, object], message: str) -> None:
    """Each error names the stop, the zone or the shape that is wrong."""
    fine: dict[str, object] = {
        "names": ["a", "b", "c"], "x": [0, 1, 2], "y": [0, 0, 0], "zones": ["x", "x", "y"], "hubs": ["a", "c"],
    }  # fmt: skip
    with pytest.raises(InputError, match=message):
        make_city(**{**fine, **change})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("l", (0,), 60, ()), "two or more"),
        (("l", (0, 1), 0, (5,)), "headway of 0"),
        (("l", (0, 1), 60, (5, 5)), "between each stop"),
    ],
)
def test_bad_lines_are_refused(line: tuple[object, ...], message: str) -> None:
    """Lines need stops, a headway and running times."""
    with pytest.raises(InputError, match=message):
        Line(*line)


def test_bad_driving_is_refused() -> None:
    """Nobody drives at no speed or shorter than the beeline."""
    for bad in ({"speed": 0}, {"detour": 0.9}):
        with pytest.raises(InputError):
            Driving(**bad)


def test_cities_of_users_have_urban_driving() -> None:
    """A city of columns drives as one of stops or files does; what the synthetic city needs is its own."""
    city = make_city(["a", "b"], [0, 3], [0, 0], ["z", "z"], ["a"])
    assert (city.metres[0, 1], city.seconds[0, 1]) == (3900, 468)
    assert (city.metres == city_of_stops(["a", "b"], city.x, city.y).metres).all()


def test_stops_that_are_numbers_are_met_by_text() -> None:
    """A release counts stops 30 and 7; the table of places has their ids as text."""
    stops = Dimension([30, 7])
    universe = Universe(origin=stops, destination=stops)
    places = Stops(("7", "30"), ("a", "b"), np.array([42.0, 42.02]), np.array([-83.0, -83.0]), ("n", "s"))
    city = city_of_trips("the release", universe, places, URBAN_DRIVING)
    assert (city.names, city.zones) == (("30", "7"), ("s", "n"))
    assert city.y[0] > city.y[1]
