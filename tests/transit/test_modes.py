"""The built-in mode choice: itineraries that hold together, from the city alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shuttle_cases import small_city

from cbdp.datasets import ann_arbor
from cbdp.errors import InputError
from cbdp.features import odmts
from cbdp.transit import plugins
from cbdp.transit.city import Line, make_city
from cbdp.transit.modes import ModeRule


def test_modes_never_read_demand() -> None:
    """The modes of a city are the same whatever is travelled: they take the city alone."""
    assert list(ModeRule.choose.__annotations__) == ["city", "return"]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_itineraries_join_origin_and_destination(seed: int) -> None:
    """Shuttle, buses and shuttle meet at the same stops, shuttles keep to their zone, and only walks have nothing."""
    city = small_city(np.random.default_rng(seed), 3, 4)
    modes = ModeRule(walk=0.3, border=1.0, long=2.0).choose(city)
    for o in range(len(city)):
        for d in range(len(city)):
            at = o
            access, egress, path = (int(a[0, o, d]) for a in (modes.access, modes.egress, modes.path))
            label = modes.labels[modes.mode[0, o, d]]
            if access >= 0:
                assert modes.first_zone[0, o, d] == city.zone[o]
                assert city.zone[access] == city.zone[o] or label == "shuttle to next zone"
                at = access
            if path >= 0:
                for ride in modes.paths[path]:
                    assert ride.board == at
                    at = ride.alight
            if egress >= 0:
                assert at == egress
                assert modes.last_zone[0, o, d] == city.zone[d] == city.zone[egress]
                at = d
            assert at == d or label == "walk"
            assert label.count("bus") == (len(modes.paths[path]) if path >= 0 else 0)


def test_lines_with_hours_make_modes_of_the_time() -> None:
    """Outside a line's hours its zone's long trips go by shuttle, and labels are of the time too."""
    x, hubs = [0, 1, 9, 10], ["a", "d"]
    run = Line("day", (0, 3), 300, (600,), hours=(8 * 3600, 9 * 3600))
    city = make_city(list("abcd"), x, [0] * 4, ["z"] * 4, hubs, lines=[run])
    modes = ModeRule().choose(city)
    data = ann_arbor(hours=("07:30", "09:30")).universe.dimension("time")
    from cbdp.features import Universe

    universe = Universe(origin=list("abcd"), destination=list("abcd"), time=data)
    named = modes.names(universe, city)
    assert named[1, 2].tolist() == [
        "shuttle",
        "shuttle-bus-shuttle in zone",
        "shuttle-bus-shuttle in zone",
        "shuttle",
    ]
    assert odmts(universe, zones=["z"] * 4, modes=named).size("mode") > 4


def test_zones_that_no_bus_joins_are_refused() -> None:
    """Where no buses lead between two hubs, the modes name the hubs."""
    city = make_city(["a", "b"], [0, 9], [0, 0], ["x", "y"], ["a", "b"])
    with pytest.raises(InputError, match="hub 'a' to 'b'"):
        ModeRule().choose(city)


def test_two_hubs_at_one_place_are_each_their_own() -> None:
    """Platforms that share coordinates keep their own buses: no rider boards at the other platform without a way there."""
    city = make_city(list("abcd"), [0, 0, 8, 9], [0] * 4, list("wwee"), ["a", "b", "c"])
    lines = [Line("1", (0, 2), 600, (900,)), Line("2", (1, 2), 600, (900,))]
    modes = plugins.choose(city.with_lines(lines))
    path = modes.path[0]
    assert [modes.paths[path[o, 2]][0].board for o in (0, 1)] == [0, 1]
