"""Does a service designed on private demand work for the real riders? A city, its modes, fleets, operations and plug-ins.

All of it stands right of the wall: cities, releases and riders are handed in. Whoever hands in real trips (`cbdp.app.fleet`)
marks the figures as internal. Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cbdp.lazy import lazily
from cbdp.parts import Parts
from cbdp.transit.interfaces import Command, Dispatcher, FleetSizer, ModeChoice, NetworkDesigner, with_method

if TYPE_CHECKING:
    from cbdp.transit.city import (
        City,
        Driving,
        Line,
        city_from_csv,
        city_of_stops,
        city_on_earth,
        make_city,
    )
    from cbdp.transit.design import Costs, Demand, Design, PathDesigner, design_network, network_cost
    from cbdp.transit.dispatching import CheapestInsertion, Decision, State, Visit, operate, replay, visits_of
    from cbdp.transit.fleet_sizing import Cover, SearchSizer, Sizing, path_cover, size_fleet
    from cbdp.transit.gtfs import city_from_gtfs
    from cbdp.transit.interfaces import PluginError, attempt
    from cbdp.transit.modes import Itineraries, Legs, ModeRule, Trips, legs_of, spread, trips_of_release
    from cbdp.transit.plugins import Check, check_plugin
    from cbdp.transit.simulator import Fleet, Operations, Service, figures, simulate

DESIGNERS: Parts[NetworkDesigner | Command] = Parts(
    "network designer",
    "cbdp.designers",
    {"path": "cbdp.transit.design:PathDesigner"},
    with_method("design"),
)
SIZERS: Parts[FleetSizer | Command] = Parts(
    "fleet sizer",
    "cbdp.sizers",
    {"search": "cbdp.transit.fleet_sizing:SearchSizer"},
    with_method("size"),
)
DISPATCHERS: Parts[Dispatcher | Command] = Parts(
    "dispatcher",
    "cbdp.dispatchers",
    {"cheapest-insertion": "cbdp.transit.dispatching:CheapestInsertion"},
    with_method("dispatch"),
)
MODE_CHOICES: Parts[ModeChoice] = Parts(
    "mode choice",
    "cbdp.modes",
    {"rule": "cbdp.transit.modes:ModeRule"},
    with_method("choose", external=False),
)

_NAMES_BY_MODULE = {
    "city": "City Driving Line make_city city_from_csv city_of_stops city_on_earth",
    "design": "Costs Demand Design PathDesigner design_network network_cost",
    "dispatching": "CheapestInsertion Decision State Visit operate replay visits_of",
    "fleet_sizing": "Cover SearchSizer Sizing path_cover size_fleet",
    "gtfs": "city_from_gtfs",
    "interfaces": "PluginError attempt",
    "modes": "Itineraries Legs ModeRule Trips legs_of spread trips_of_release",
    "plugins": "Check check_plugin",
    "simulator": "Fleet Operations Service figures simulate",
}
__getattr__, _ = lazily(
    __name__,
    {name: f"{__name__}.{module}" for module, names in _NAMES_BY_MODULE.items() for name in names.split()},
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
