"""Plug-ins by name, path, object and command."""

from __future__ import annotations

import numpy as np
import pytest
from bad_dispatchers import Crashing

from cbdp.errors import InputError
from cbdp.transit import plugins
from cbdp.transit.city import City
from cbdp.transit.design import Demand
from cbdp.transit.dispatching import CheapestInsertion
from cbdp.transit.fleet_sizing import SearchSizer
from cbdp.transit.interfaces import Command, PluginError, attempt
from cbdp.transit.modes import ModeRule
from cbdp.transit.plugins import example_city, example_legs
from cbdp.transit.simulator import Fleet, Operations, figures


def test_one_bad_plugin_does_not_end_the_evaluation() -> None:
    """Others are evaluated all the same."""
    city = example_city()
    legs, fleet = example_legs(city, 0), Fleet((3, 3))
    tasks = {
        d.__name__: lambda d=d: plugins.dispatch(city, fleet, legs, d) for d in (Crashing, CheapestInsertion)
    }
    found = attempt(tasks)
    assert isinstance(found["Crashing"], PluginError)
    assert figures(found["CheapestInsertion"], city)["total"]["unserved"] == 0


def test_plugins_are_found_by_name() -> None:
    """By name, object, class, path and command (by entry point: see test_parts); anything else is refused by name."""
    for kind, name in (
        ("designer", "path"),
        ("sizer", "search"),
        ("dispatcher", "cheapest-insertion"),
        ("modes", "rule"),
    ):
        assert plugins.get(kind) == plugins.get(kind, name)
        assert plugins.get(kind).name == name
    assert isinstance(plugins.get("sizer"), SearchSizer)
    assert isinstance(
        plugins.get("dispatcher", "cbdp.transit.dispatching:CheapestInsertion"), CheapestInsertion
    )
    assert plugins.get("modes", ModeRule(walk=1.0)).walk == 1.0
    assert plugins.get("sizer", "command: java -jar s.jar").arguments == ("java", "-jar", "s.jar")
    assert isinstance(plugins.get("sizer", SearchSizer), SearchSizer)
    for kind, given, message in (
        ("sizer", "nonsense", "unknown fleet sizer 'nonsense': there are search"),
        ("sizer", "cbdp.transit.fleet_sizing:Nothing", "cannot be loaded"),
        ("sizer", CheapestInsertion(), "no method 'size'"),
        ("sizer", Command, "Command needs settings"),
        ("sizer", "command:", "the command of a plug-in is empty"),
        ("modes", "command: x", "cannot be an external command"),
        ("driver", None, "unknown kind of plug-in 'driver'"),
    ):
        with pytest.raises(InputError, match=message):
            plugins.get(kind, given)


@pytest.mark.parametrize("limit", [60, 400])
def test_our_search_by_its_name_is_for_the_limit_asked_for(limit: int) -> None:
    """The built-in sizer, by name or by default, searches for the given limit; as an object it keeps its own."""
    city = example_city()
    legs = example_legs(city, 0)
    wanted = SearchSizer(limit, 900).size(city, legs, Operations()).fleet
    for sizer in (None, "search", "cbdp.transit:SearchSizer", SearchSizer):
        assert plugins.size(city, legs, sizer, limit=limit, period=900).fleet == wanted
    strict = plugins.size(city, legs, SearchSizer(30), limit=limit).fleet
    assert strict == SearchSizer(30).size(city, legs, Operations()).fleet != wanted


class Designs:
    """A designer whose answer is fixed."""

    name, about = "fixed", "the same arcs whatever is travelled"

    def __init__(self, *arcs: object) -> None:
        self.arcs = arcs

    def design(self, city: City, demand: Demand) -> list[object]:
        return list(self.arcs)


def test_arcs_of_a_designer_are_pairs_and_count_once() -> None:
    """What is no pair of stops is an error of the plug-in; an arc that is named twice is costed and run once."""
    city = example_city()
    demand = Demand.of(np.array([0, 1]), np.array([7, 8]), len(city))
    twice = plugins.design(city, demand, Designs((2, 6), (6, 2), (2, 6)))
    once = plugins.design(city, demand, Designs((2, 6), (6, 2)))
    assert twice.arcs == once.arcs == ((2, 6), (6, 2))
    assert twice.cost == once.cost
    for wrong in ((2, 6, 1), 2, ("west", 6), None):
        with pytest.raises(PluginError, match="is no pair of stops"):
            plugins.design(city, demand, Designs(wrong))
