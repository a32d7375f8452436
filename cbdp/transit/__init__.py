"""Does a service designed on private demand work for the real riders? A city, its modes, fleets, operations and plug-ins.

All of it stands right of the wall: cities, releases and riders are handed in. Whoever hands in real trips (`cbdp.app.fleet`)
marks the figures as internal. Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cbdp.lazy import lazily
from cbdp.parts import Parts
from cbdp.transit.command import Command
from cbdp.transit.kinds import Dispatcher, FleetSizer, ModeChoice, NetworkDesigner, having

if TYPE_CHECKING:
    from cbdp.transit.calling import PluginError, attempt
    from cbdp.transit.city import City, Driving, Line, make_city
    from cbdp.transit.conformance import Check, check_plugin
    from cbdp.transit.cover import Cover, path_cover
    from cbdp.transit.demand import Legs, Trips, legs_of, spread, trips_of_release
    from cbdp.transit.design import Costs, Demand, Design, PathDesigner, design_network, network_cost
    from cbdp.transit.dispatching import Decision, State
    from cbdp.transit.engine import operate
    from cbdp.transit.files import city_from_csv, city_from_gtfs
    from cbdp.transit.fleet import SearchSizer, Sizing, size_fleet
    from cbdp.transit.insertion import CheapestInsertion
    from cbdp.transit.modes import Itineraries, ModeRule
    from cbdp.transit.placing import city_of_stops, city_on_earth
    from cbdp.transit.plan import Visit, replay, visits_of
    from cbdp.transit.simulator import Fleet, Operations, Service, figures, simulate

DESIGNERS: Parts[NetworkDesigner | Command] = Parts(
    "network designer",
    "cbdp.designers",
    {"path": "cbdp.transit.design:PathDesigner"},
    having("design"),
)
SIZERS: Parts[FleetSizer | Command] = Parts(
    "fleet sizer",
    "cbdp.sizers",
    {"search": "cbdp.transit.fleet:SearchSizer"},
    having("size"),
)
DISPATCHERS: Parts[Dispatcher | Command] = Parts(
    "dispatcher",
    "cbdp.dispatchers",
    {"cheapest-insertion": "cbdp.transit.insertion:CheapestInsertion"},
    having("dispatch"),
)
MODE_CHOICES: Parts[ModeChoice] = Parts(
    "mode choice",
    "cbdp.modes",
    {"rule": "cbdp.transit.modes:ModeRule"},
    having("choose", external=False),
)

__getattr__, _ = lazily(
    __name__,
    {
        "CheapestInsertion": "cbdp.transit.insertion",
        "Check": "cbdp.transit.conformance",
        "City": "cbdp.transit.city",
        "Costs": "cbdp.transit.design",
        "Cover": "cbdp.transit.cover",
        "Decision": "cbdp.transit.dispatching",
        "Demand": "cbdp.transit.design",
        "Design": "cbdp.transit.design",
        "Driving": "cbdp.transit.city",
        "Fleet": "cbdp.transit.simulator",
        "Itineraries": "cbdp.transit.modes",
        "Legs": "cbdp.transit.demand",
        "Line": "cbdp.transit.city",
        "ModeRule": "cbdp.transit.modes",
        "Operations": "cbdp.transit.simulator",
        "PathDesigner": "cbdp.transit.design",
        "PluginError": "cbdp.transit.calling",
        "SearchSizer": "cbdp.transit.fleet",
        "Service": "cbdp.transit.simulator",
        "Sizing": "cbdp.transit.fleet",
        "State": "cbdp.transit.dispatching",
        "Trips": "cbdp.transit.demand",
        "Visit": "cbdp.transit.plan",
        "attempt": "cbdp.transit.calling",
        "check_plugin": "cbdp.transit.conformance",
        "city_from_csv": "cbdp.transit.files",
        "city_from_gtfs": "cbdp.transit.files",
        "city_of_stops": "cbdp.transit.placing",
        "city_on_earth": "cbdp.transit.placing",
        "design_network": "cbdp.transit.design",
        "figures": "cbdp.transit.simulator",
        "legs_of": "cbdp.transit.demand",
        "make_city": "cbdp.transit.city",
        "network_cost": "cbdp.transit.design",
        "operate": "cbdp.transit.engine",
        "path_cover": "cbdp.transit.cover",
        "replay": "cbdp.transit.plan",
        "simulate": "cbdp.transit.simulator",
        "size_fleet": "cbdp.transit.fleet",
        "spread": "cbdp.transit.demand",
        "trips_of_release": "cbdp.transit.demand",
        "visits_of": "cbdp.transit.plan",
    },
)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "DESIGNERS",
    "DISPATCHERS",
    "MODE_CHOICES",
    "SIZERS",
    "CheapestInsertion",
    "Check",
    "City",
    "Command",
    "Costs",
    "Cover",
    "Decision",
    "Demand",
    "Design",
    "Dispatcher",
    "Driving",
    "Fleet",
    "FleetSizer",
    "Itineraries",
    "Legs",
    "Line",
    "ModeChoice",
    "ModeRule",
    "NetworkDesigner",
    "Operations",
    "PathDesigner",
    "PluginError",
    "SearchSizer",
    "Service",
    "Sizing",
    "State",
    "Trips",
    "Visit",
    "attempt",
    "check_plugin",
    "city_from_csv",
    "city_from_gtfs",
    "city_of_stops",
    "city_on_earth",
    "design_network",
    "figures",
    "legs_of",
    "make_city",
    "network_cost",
    "operate",
    "path_cover",
    "replay",
    "simulate",
    "size_fleet",
    "spread",
    "trips_of_release",
    "visits_of",
]
