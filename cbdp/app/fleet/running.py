"""Riders of counted trips, their fleet, and its service."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cbdp.app.fleet.counted import CountedTrips, hours_of
from cbdp.app.fleet.rules import FleetRules
from cbdp.transit import DISPATCHERS, plugins
from cbdp.transit.city import City
from cbdp.transit.demand import Legs, legs_of, spread
from cbdp.transit.fleet import SearchSizer, Sizing
from cbdp.transit.modes import Itineraries
from cbdp.transit.simulator import Fleet, Operations, Service, simulate

MOST_TRIPS = 10 * SearchSizer.most_legs  # more are not even listed: they would only fill the memory


def riders_of(trips: CountedTrips, city: City, modes: Itineraries, rules: FleetRules, seed: int) -> Legs:
    """The shuttle legs of these trips, their seconds drawn by `seed`; none if there are too many trips (see `fleet_for`)."""
    few = trips
    if trips.total > MOST_TRIPS:
        few = replace(trips, index=trips.index[:0], value=trips.value[:0])
    riders = spread(few.universe, few.index, few.value, city, seed=seed)
    return legs_of(replace(riders, hours=hours_of(trips.universe, rules)), modes)


def fleet_for(city: City, trips: CountedTrips, riders: Legs, rules: FleetRules) -> Sizing:
    """The fleet for these riders by the chosen sizer, run again by us."""
    if trips.total > MOST_TRIPS:
        return Sizing(None, None, f"{trips.total:,} trips are more than {MOST_TRIPS:,}")
    return plugins.size(
        city,
        riders,
        rules.sizer,
        limit=rules.limit,
        period=rules.period or None,
        seconds=SearchSizer.time_limit + 60,  # the built-in search ends by itself, and says why
    )


def operated(city: City, fleet: Fleet, riders: Legs, rules: FleetRules, *, log: bool) -> Service:
    """A fleet on riders: by the simulator, or by the chosen dispatcher in the checking engine."""
    if rules.dispatcher in (
        None,
        next(iter(DISPATCHERS.table)),
    ):  # the simulator decides the same, and is faster
        return simulate(city, fleet, riders, Operations(), log=log)
    return plugins.dispatch(city, fleet, riders, rules.dispatcher)


def quiet_zones(city: City, riders: Legs) -> list[str]:
    """The zones without a shuttle leg."""
    legs = np.bincount(riders.zone, minlength=len(city.zones))
    return [city.zones[z] for z in np.flatnonzero(legs == 0)]
