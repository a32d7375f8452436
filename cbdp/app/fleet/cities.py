"""The city that shuttles drive in: the stops of the trips themselves, the built-in one, or one from files."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

import numpy as np

from cbdp.app.fleet.counted import CountedTrips
from cbdp.app.fleet.rules import BUILT_IN, FleetRules, see_working_folder
from cbdp.datasets import ann_arbor_city
from cbdp.datasets.geography import city as synthetic
from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.features.places import Stops
from cbdp.transit import plugins
from cbdp.transit.city import City, Driving
from cbdp.transit.files import city_from_csv, city_from_gtfs, zones_from_csv
from cbdp.transit.modes import Itineraries, ModeRule
from cbdp.transit.placing import IN_TOWN, city_on_earth

ENDS = ("origin", "destination")
NEAR = 0.002  # degrees: two places that are one


def place(rules: FleetRules, trips: CountedTrips) -> tuple[City, Itineraries]:
    """The city, and how trips are served in it."""
    see_working_folder(rules.sizer, rules.dispatcher, rules.modes)
    city = city_of(rules, trips)
    return city, ModeRule().choose(city) if rules.modes is None else plugins.choose(city, rules.modes)


def city_of(rules: FleetRules, trips: CountedTrips) -> City:
    """The trips' own stops unless --city names a table of stops (CSV), a GTFS feed (a folder or a zip) or the built-in city."""
    path = Path(rules.city or BUILT_IN)
    feed = path.is_dir() or path.suffix == ".zip"
    own = rules.city in (None, BUILT_IN)
    for option, fits in (("lines", not feed), ("times", not feed), ("zones", feed)):
        if getattr(rules, option) and (not fits or own):
            kind = "a GTFS feed" if option == "zones" else "a table of stops (CSV)"
            raise InputError(f"--{option} needs {kind}: give one with --city")
    if rules.city == BUILT_IN or (rules.city is None and is_built_in(trips)):
        return ann_arbor_city(_driving(rules, Driving()))
    drive = _driving(rules, IN_TOWN)
    if rules.city is None:
        return _own(trips, drive)
    if feed:
        zones, hubs = zones_from_csv(rules.zones) if rules.zones else (None, None)
        return city_from_gtfs(path, zones=zones, hubs=hubs, driving=drive)
    return city_from_csv(path, rules.lines, rules.times, driving=drive, units=rules.units)


def _driving(rules: FleetRules, usual: Driving) -> Driving:
    return Driving(
        usual.speed if rules.speed is None else rules.speed,
        usual.detour if rules.detour is None else rules.detour,
    )


def is_built_in(trips: CountedTrips) -> bool:
    """Whether the stops are those of the synthetic city, by name and, where both are known, by place."""
    table = synthetic().columns()
    at = dict(zip(table["stop"].tolist(), zip(table["lat"], table["lon"], strict=True), strict=True))
    if not {str(v) for v in _stops_of(trips.universe)} <= set(at):
        return False
    if trips.places is None:
        return True
    known = zip(trips.places.ids, trips.places.lat, trips.places.lon, strict=True)
    return all(
        str(s) not in at or np.hypot(at[str(s)][0] - a, at[str(s)][1] - o) <= NEAR for s, a, o in known
    )


def _own(trips: CountedTrips, driving: Driving) -> City:
    """A city of the trips' own stops and zones; what else it needs follows the rules of `cbdp.transit.placing`."""
    if trips.places is None or np.isnan(trips.places.lat).all():
        raise InputError(
            f"the stops of {trips.name} have no coordinates: give a table with --city stops.csv (columns stop, and lat and lon, or "
            "x and y with --units km or --units m)"
        )
    universe, places = trips.universe, trips.places
    code = {stop: n for n, stop in enumerate(places.ids)}
    wanted = list(dict.fromkeys(_stops_of(universe)))
    for stop in wanted:
        if stop not in code or np.isnan(places.lat[code[stop]]):
            raise InputError(
                f"the stop {stop!r} has no coordinates: add them to the stops of the release, or give all stops with --city stops.csv"
            )
    rows = np.array([code[stop] for stop in wanted])
    labels = _zones(universe, places)
    stops = Stops(
        tuple(wanted),
        tuple(places.names[r] for r in rows),
        places.lat[rows],
        places.lon[rows],
        None if labels is None else tuple(str(labels[stop]) for stop in wanted),
    )
    return city_on_earth(stops, driving=driving, what=f"the stops of {trips.name}")


def _stops_of(universe: Universe) -> list[Hashable]:
    return [value for end in ENDS if end in universe.dimensions for value in universe.dimensions[end].values]


def _zones(universe: Universe, places: Stops) -> dict[Hashable, Hashable] | None:
    """The zone of each stop: as the trips are counted, else as the table of stops has it."""
    found: dict[Hashable, Hashable] = {}
    for end in ENDS:
        held = universe.attributes.get(f"{end}.zone")
        if held is None or held.of != (end,):
            return None if places.zone is None else dict(zip(places.ids, places.zone, strict=True))
        codes = held.codes.tolist()
        found |= {v: held.labels[c] for v, c in zip(universe.dimensions[end].values, codes, strict=True)}
    return found


def described(city: City) -> str:
    """The city in a line, its size in kilometres first: whoever mixed up units sees it here."""
    wide = float(np.hypot(np.ptp(city.x), np.ptp(city.y)))
    zones = "1 zone" if len(city.zones) == 1 else f"{len(city.zones)} zones"
    lines = f", {len(city.lines)} bus lines between {len(city.hubs)} hubs" if city.lines else ""
    return f"{len(city)} stops within {wide:,.1f} km, {zones}{lines}"
