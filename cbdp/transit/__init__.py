"""Does a service designed on private demand work for the real riders? A city, its modes, fleets, operations and plug-ins.

Everything here is public or right of the wall but one thing: real trips may be given as riders, and figures computed from
them are internal.
"""

from cbdp.transit.city import City, Driving, Line, built_in, make_city
from cbdp.transit.conformance import Check, conformance
from cbdp.transit.cover import Cover, path_cover
from cbdp.transit.demand import Legs, Trips, legs_of, spread, trips_of_release
from cbdp.transit.design import Costs, Demand, Design, PathDesigner, design_network, network_cost
from cbdp.transit.engine import CheapestInsertion, Decision, PluginError, State, operate
from cbdp.transit.files import city_from_csv, city_from_gtfs
from cbdp.transit.fleet import SearchSizer, Sizing, size_fleet
from cbdp.transit.modes import ModeRule, Modes
from cbdp.transit.plan import Visit, replay, visits_of
from cbdp.transit.plugins import Command, Dispatcher, FleetSizer, ModeChoice, NetworkDesigner
from cbdp.transit.simulator import Fleet, Operations, Service, figures, simulate

__all__ = [
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
    "Legs",
    "Line",
    "ModeChoice",
    "ModeRule",
    "Modes",
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
    "built_in",
    "city_from_csv",
    "city_from_gtfs",
    "conformance",
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
