"""`cbdp fleet`: size and run shuttles on a release, compare with the real trips, check a plug-in.

A release holds the period of a trip and not its second. A fleet is sized on one draw of seconds and, in a comparison, run on another, so that no fleet is
tuned to the very riders it is judged by. Whatever was computed from real trips says so on top.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from cbdp.app.plan import plan
from cbdp.arrays import Ints
from cbdp.commands.program import check_new, write_new
from cbdp.config import read as read_config
from cbdp.counting import count
from cbdp.datasets import ann_arbor_city
from cbdp.datasets.ann_arbor import geography as synthetic
from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.release import Release, load
from cbdp.text import INTERNAL_WARNING
from cbdp.transit import DISPATCHERS, plugins
from cbdp.transit.city import URBAN_DRIVING, City, Driving, city_from_csv, zones_from_csv
from cbdp.transit.fleet_sizing import SearchSizer, Sizing
from cbdp.transit.fleets import (
    BUILT_IN,
    TOTAL,
    FleetRules,
    ZoneDemand,
    added_up,
    city_of_stops,
    code_of,
    comparison_table,
    demand_of,
    described,
    hours_of,
    in_words,
    see_working_folder,
    service_page,
    service_table,
    span_of,
    stops_in,
    where_texts,
)
from cbdp.transit.gtfs import city_from_gtfs
from cbdp.transit.modes import Itineraries, Legs, ModeRule, fleet_counts, legs_of, spread
from cbdp.transit.simulator import Fleet, Operations, Service, figures, simulate
from cbdp_features.calendar import clock_time
from cbdp_features.places import Stops

# Counted trips: of a release or real ones, on one day, inside the hours


@dataclass(frozen=True, eq=False)
class CountedTrips:
    """Trips by trip type: published ones, or the real ones (`internal`)."""

    name: str
    universe: Universe = field(repr=False)
    index: Ints = field(repr=False)
    value: Ints = field(repr=False)
    internal: bool
    note: str = ""
    places: Stops | None = field(default=None, repr=False)
    release: Release | None = field(
        default=None, repr=False
    )  # the published one, which answers questions about demand

    @property
    def total(self) -> int:
        return int(np.sum(self.value))


def read(source: str) -> CountedTrips:
    """The trips of a release's folder, or the real ones that a configuration names."""
    if Path(source).suffix == ".toml":
        return _configured(source, None)
    if Path(source).is_dir():
        return published_trips(source)
    raise InputError(
        f"{source!r} is neither the folder of a release nor a configuration (.toml): check the path"
    )


def published_trips(folder: str) -> CountedTrips:
    """The trips of a release, as fleets are sized on them."""
    release = load(folder)
    notes = [] if release.secure else ["simulation, not a release: its noise came from a seeded source"]
    notes += added_up(release)
    name = Path(folder).absolute().name
    return CountedTrips(
        name,
        release.features.universe,
        *fleet_counts(release),
        internal=False,
        note="\n".join(notes),
        places=release.places,
        release=release,
    )


def real_trips(source: str, universe: Universe) -> CountedTrips:
    """The real trips by a release's trip types: those of a configuration, or of a file with the dimensions as columns."""
    if Path(source).suffix == ".toml":
        return _configured(source, universe)
    counts = count(source, universe)
    return CountedTrips("the real trips", universe, counts.index, counts.value, internal=True)


def _configured(config: str, universe: Universe | None) -> CountedTrips:
    """All trips, even where the unit of privacy is a person with at most so many: shuttles carry everybody."""
    settings = read_config(config)
    if settings.series is not None:
        raise InputError(
            f"{config} describes a series of releases: give a file with the trips of one day instead"
        )
    planned = plan(settings)
    types = universe or planned.universe
    counts = count(planned.trips, types, columns=planned.columns, clock=planned.clock)
    return CountedTrips(
        "the real trips", types, counts.index, counts.value, internal=True, places=planned.stops
    )


def selected(trips: CountedTrips, rules: FleetRules) -> CountedTrips:
    """The trips of one day: inside the hours, and of one value of every dimension but origin, destination and time."""
    universe = trips.universe
    selection = where_texts(universe, rules)
    codes = dict(zip(universe.dimensions, universe.unrank_codes(trips.index), strict=True))
    keep = np.ones(len(trips.index), dtype=bool)
    for name, value in selection.items():
        code = code_of(universe, name, value)
        keep &= codes[name] == code
    first, last = span_of(universe, rules.hours)
    keep &= (codes["time"] >= first) & (codes["time"] < last)
    return replace(trips, index=trips.index[keep], value=trips.value[keep])


# The city: the stops of the trips themselves, the built-in one, or one from files


SAME_PLACE_DEGREES = 0.002  # degrees: two places that are one


def place(rules: FleetRules, trips: CountedTrips) -> tuple[City, Itineraries]:
    """The city, and how trips are served in it."""
    see_working_folder(rules.sizer, rules.dispatcher, rules.modes)
    city = city_of(rules, trips)
    if rules.modes is not None:
        return city, plugins.choose(city, rules.modes)
    itineraries = ModeRule().choose(city)
    plugins.check_itineraries(city, itineraries)
    return city, itineraries


def city_of(rules: FleetRules, trips: CountedTrips) -> City:
    """The trips' own stops unless --city names a table of stops (CSV), a GTFS feed (a folder or a zip) or the built-in city."""
    path = Path(rules.city or BUILT_IN)
    feed = path.is_dir() or path.suffix == ".zip"
    without_table = rules.city in (None, BUILT_IN)
    for option, fits in (("lines", not feed), ("times", not feed), ("zones", feed), ("date", feed)):
        if getattr(rules, option) and (not fits or without_table):
            kind = "a GTFS feed" if option in ("zones", "date") else "a table of stops (CSV)"
            raise InputError(f"--{option} needs {kind}: give one with --city")
    if rules.city == BUILT_IN or (rules.city is None and is_built_in(trips)):
        return ann_arbor_city(rules.driving(Driving()))
    drive = rules.driving(URBAN_DRIVING)
    if rules.city is None:
        return city_of_stops(trips.name, trips.universe, trips.places, drive)
    if feed:
        zones, hubs = zones_from_csv(rules.zones) if rules.zones else (None, None)
        return city_from_gtfs(path, zones=zones, hubs=hubs, date=rules.date, driving=drive)
    return city_from_csv(path, rules.lines, rules.times, driving=drive, units=rules.units)


def is_built_in(trips: CountedTrips) -> bool:
    """Whether the stops are those of the synthetic city, by name and, where both are known, by place."""
    table = synthetic().columns()
    at = dict(zip(table["stop"].tolist(), zip(table["lat"], table["lon"], strict=True), strict=True))
    if not {str(v) for v in stops_in(trips.universe)} <= set(at):
        return False
    if trips.places is None:
        return True
    located = zip(trips.places.ids, trips.places.lat, trips.places.lon, strict=True)
    return all(
        str(s) not in at or np.hypot(at[str(s)][0] - a, at[str(s)][1] - o) <= SAME_PLACE_DEGREES
        for s, a, o in located
    )


# Riders, their fleet, and its service


MAX_FLEET_TRIPS = 10 * SearchSizer.most_legs  # more are not even listed: they would only fill the memory


def riders_of(trips: CountedTrips, city: City, modes: Itineraries, rules: FleetRules, seed: int) -> Legs:
    """The shuttle legs of these trips, their seconds drawn by `seed`; none if there are too many trips (see `fleet_for`)."""
    few = trips
    if trips.total > MAX_FLEET_TRIPS:
        few = replace(trips, index=trips.index[:0], value=trips.value[:0])
    riders = spread(few.universe, few.index, few.value, city, seed=seed)
    return legs_of(replace(riders, hours=hours_of(trips.universe, rules)), modes)


def fleet_for(city: City, trips: CountedTrips, riders: Legs, rules: FleetRules) -> Sizing:
    """The fleet for these riders by the chosen sizer, run again by us."""
    if trips.total > MAX_FLEET_TRIPS:
        return Sizing(None, None, f"{trips.total:,} trips are more than {MAX_FLEET_TRIPS:,}")
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


# Marks, numbers, and the page of a service


def print_marks(trips: CountedTrips) -> None:
    """What a reader must know of the trips before anything else."""
    if trips.internal:
        print(INTERNAL_WARNING)
    if trips.note:
        print(trips.note)


def print_quiet_zones(city: City, riders: Legs, demand: Mapping[str, ZoneDemand] | None = None) -> None:
    """Zones that get no shuttles and, where a release says how sure that is, how many trips may begin there all the same."""
    for zone in quiet_zones(city, riders):
        asked = (demand or {}).get(zone)
        most = 0 if asked is None else asked.high or 0
        doubt = f"; but up to {most:,} trips may really begin there (90 % confidence)" if most else ""
        print(f"zone {zone!r} has no shuttle legs, so it needs no shuttles{doubt}")


def page_path(page: str | None, *, internal: bool) -> Path | None:
    """Where the page goes. A wrong place is refused before the work begins."""
    if page is None:
        return None
    path = Path(page).absolute()
    check_new(path, internal=internal)
    return path


def write_page(path: Path, html: str, *, internal: bool) -> None:
    write_new(path, html, internal=internal)
    print(f"open {path}")


# `cbdp fleet compare`: a release's fleet and the fleet of the real trips, both run on the real trips


def compare(release: str, trips: str, rules: FleetRules | None = None, *, page: str | None = None) -> int:
    """Print a release's row of Table 1 of Fioretto, Lee and Van Hentenryck (2018): its fleet and the fleet of the real trips, both run on the real trips."""
    chosen = rules or FleetRules()
    print(INTERNAL_WARNING)
    published_counts = published_trips(release)
    city, modes = place(chosen, published_counts)
    real = selected(real_trips(trips, published_counts.universe), chosen)
    out = page_path(page, internal=True)
    published = selected(published_counts, chosen)
    print_marks(published_counts)
    print(described(city))
    print(f"{published.total:,} published trips, {real.total:,} real ones")
    fleets = []
    for source in (published, real):
        fleet = _fleet(source, city, modes, chosen)
        if fleet is None:
            return 1
        fleets.append(fleet)
    riders = riders_of(real, city, modes, chosen, chosen.seed + 1)
    print_quiet_zones(city, riders)
    services = [operated(city, fleet, riders, chosen, log=out is not None) for fleet in fleets]
    print("\n".join(comparison_table(city, *(figures(s, city) for s in services))))
    print(
        f'Both fleets carry the real riders; "real" is the fleet of the real trips. Fleets are {chosen.service_level}.'
    )
    if out:
        about = f"The fleet of {published.name}, {chosen.service_level}, on the real riders."
        write_page(out, service_page(city, services[0], about=about, internal=True), internal=True)
    return 0


def _fleet(trips: CountedTrips, city: City, modes: Itineraries, rules: FleetRules) -> Fleet | None:
    sizing = fleet_for(city, trips, riders_of(trips, city, modes, rules, rules.seed), rules)
    if sizing.fleet is None:
        print(f"no fleet found for {trips.name}: {sizing.reason}")
    return sizing.fleet


# `cbdp fleet size`: a fleet sized on a release and run on the same riders


def size(source: str, rules: FleetRules | None = None, *, page: str | None = None) -> int:
    """Size a fleet on a release (or on the trips of a configuration), run it on the same riders, and print its service."""
    chosen = rules or FleetRules()
    demand_source = read(source)
    out = page_path(page, internal=demand_source.internal)
    trips = selected(demand_source, chosen)
    city, modes = place(chosen, demand_source)
    print_marks(demand_source)
    print(described(city))
    riders = riders_of(trips, city, modes, chosen, chosen.seed)
    sized = fleet_for(city, trips, riders, chosen)
    hours = "–".join(clock_time(s, seconds=False) for s in riders.hours)
    print(f"{trips.name}: {trips.total:,} trips, {hours}, {len(riders):,} shuttle legs")
    demand = {} if demand_source.release is None else demand_of(demand_source.release, city, chosen)
    if demand:
        print(in_words(demand[TOTAL]))
    print_quiet_zones(city, riders, demand)
    if sized.fleet is None:
        print(f"no fleet found: {sized.reason}")
        return 1
    service = operated(city, sized.fleet, riders, chosen, log=out is not None)
    print(f"{sized.fleet.total:,} shuttles, {chosen.service_level}")
    print("\n".join(service_table(city, service)))
    if out:
        demand_text = f" {in_words(demand[TOTAL])}." if demand else ""
        about = f"The fleet of {trips.name}, {chosen.service_level}, on the same riders.{demand_text}"
        html = service_page(city, service, about=about, demand=demand, internal=demand_source.internal)
        write_page(out, html, internal=demand_source.internal)
    return 0
