"""What fleets are sized on: the counted trips of one day, the city that shuttles drive in, and what a release says about demand."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cbdp.app.plan import plan
from cbdp.arrays import Ints
from cbdp.config import read as read_config
from cbdp.counting import count
from cbdp.datasets import ann_arbor_city
from cbdp.datasets.ann_arbor import geography as synthetic
from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.release import Release, load
from cbdp.release.roles import is_single_day, period_of
from cbdp.transit import plugins
from cbdp.transit.city import KM, KM_PER_UNIT, City, Driving
from cbdp.transit.city_sources import (
    URBAN_DRIVING,
    city_from_csv,
    city_from_gtfs,
    city_on_earth,
    zones_from_csv,
)
from cbdp.transit.demand import fleet_counts
from cbdp.transit.modes import Itineraries, ModeRule, codes_of, period_edges
from cbdp.transit.page import TOTAL, ZoneDemand
from cbdp_features.calendar import clock_time, dates_or_none, seconds_of_day
from cbdp_features.places import Stops

# Rules: which trips, which city, and how fleets are sized and run


BUILT_IN = "built-in"
PERIOD_SECONDS = 1800  # of each part of the day in which the limit of waits holds


@dataclass(frozen=True)
class FleetRules:
    """The options of `cbdp fleet size` and `cbdp fleet compare`; a plug-in of None is the built-in one."""

    city: str | None = None  # None: the stops of the trips themselves
    lines: str | None = None
    times: str | None = None
    zones: str | None = None
    units: str = KM
    speed: float | None = None
    detour: float | None = None
    hours: str | None = None
    only: Sequence[str] = ()
    limit: int = 180
    period: int = PERIOD_SECONDS  # 0: the limit holds for the whole hours only
    seed: int = 0
    sizer: str | None = None
    dispatcher: str | None = None
    modes: str | None = None

    def __post_init__(self) -> None:
        for name in ("limit", "period"):
            if getattr(self, name) < 0:
                raise InputError(f"--{name} {getattr(self, name)}: give seconds, at least 0")
        if self.units not in KM_PER_UNIT:
            raise InputError(
                f"--units {self.units}: give {' or '.join(KM_PER_UNIT)}; degrees need no unit, but columns called lat and lon"
            )

    @property
    def promise(self) -> str:
        """What a fleet is sized for, in words."""
        parts = f", in each {self.period / 60:g} minutes" if self.period else ""
        return f"sized for a mean wait of at most {self.limit} s in every zone{parts}"


def see_working_folder(*plugins: str | None) -> None:
    """Plug-ins may be modules of the working folder; installed ones come first. Where none is named, nothing there is ever loaded."""
    here = str(Path.cwd())
    if here not in sys.path and any(name is not None and ":" in name for name in plugins):
        sys.path.append(here)


# Counted trips: of a release or real ones, on one day, inside the hours


NEEDED_DIMENSIONS = ("origin", "destination", "time")


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
    notes += _added_up(release)
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


def _added_up(release: Release) -> list[str]:
    """A warning where the trips of several days are counted together: a fleet serves one day."""
    dated = any(dates_or_none(d) is not None for d in release.features.universe.dimensions.values())
    period = period_of(release)
    if dated or period is None or is_single_day(release):
        return []
    text = (
        f"the trips of {period} are added up, and the fleet is sized as if all were made on one day: publish days or types of days "
        "apart (universe.days), and choose one with --only"
    )
    return [text]


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
    selection = _where_texts(universe, rules)
    codes = dict(zip(universe.dimensions, universe.unrank_codes(trips.index), strict=True))
    keep = np.ones(len(trips.index), dtype=bool)
    for name, value in selection.items():
        code = _code(universe, name, value)
        keep &= codes[name] == code
    first, last = _span(universe, rules.hours)
    keep &= (codes["time"] >= first) & (codes["time"] < last)
    return replace(trips, index=trips.index[keep], value=trips.value[keep])


def _where_texts(universe: Universe, rules: FleetRules) -> dict[str, str]:
    """The chosen value of every dimension that needs one."""
    for name in NEEDED_DIMENSIONS:
        if name not in universe.dimensions:
            raise InputError(f"the trips have no {name!r}: shuttles need origin, destination and time")
    selection = dict(_pair(text) for text in rules.only)
    for name in universe.dimensions:
        if name not in NEEDED_DIMENSIONS and name not in selection:
            raise InputError(
                f"the trips also have the dimension {name!r}, and shuttles run on one day: choose with --only {name}=VALUE"
            )
    return selection


def where_values(universe: Universe, rules: FleetRules) -> dict[str, Hashable]:
    """The chosen value of every dimension that needs one, as the universe has it."""
    return {
        n: universe.dimension(n).values[_code(universe, n, v)]
        for n, v in _where_texts(universe, rules).items()
    }


def times_inside(universe: Universe, rules: FleetRules) -> list[Hashable]:
    """The periods inside the hours."""
    first, last = _span(universe, rules.hours)
    return list(universe.dimension("time").values[first:last])


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--only {text}: write it as dimension=value")
    return name, value


def _code(universe: Universe, name: str, value: str) -> int:
    if name not in universe.dimensions:
        raise InputError(
            f"--only {name}={value}: the trips have no dimension {name!r}, but {', '.join(universe.dimensions)}"
        )
    values = [str(v) for v in universe.dimension(name).values]
    if value not in values:
        raise InputError(f"--only {name}={value}: there are {', '.join(values[:10])}")
    return values.index(value)


def hours_of(universe: Universe, rules: FleetRules) -> tuple[int, int]:
    """The seconds of the day between which trips begin."""
    edges = period_edges(universe)
    first, last = _span(universe, rules.hours)
    return int(edges[first]), int(edges[last])


def _span(universe: Universe, hours: str | None) -> tuple[int, int]:
    """The periods of the day that the hours cover, as a half-open range."""
    edges = period_edges(universe).tolist()
    if hours is None:
        return 0, len(edges) - 1
    begin, _, end = hours.partition("-")
    try:
        first, last = (edges.index(seconds_of_day(t)) for t in (begin, end))
    except ValueError:
        raise InputError(
            f"--hours {hours}: write them as 08:00-10:00, at times where a period begins or ends "
            f"({clock_time(edges[0], seconds=False)} to {clock_time(edges[-1], seconds=False)})"
        ) from None
    if first >= last:
        raise InputError(f"--hours {hours}: the end must come after the start")
    return first, last


# The city: the stops of the trips themselves, the built-in one, or one from files


TRIP_ENDS = ("origin", "destination")
SAME_PLACE_DEGREES = 0.002  # degrees: two places that are one


def place(rules: FleetRules, trips: CountedTrips) -> tuple[City, Itineraries]:
    """The city, and how trips are served in it."""
    see_working_folder(rules.sizer, rules.dispatcher, rules.modes)
    city = city_of(rules, trips)
    return city, ModeRule().choose(city) if rules.modes is None else plugins.choose(city, rules.modes)


def city_of(rules: FleetRules, trips: CountedTrips) -> City:
    """The trips' own stops unless --city names a table of stops (CSV), a GTFS feed (a folder or a zip) or the built-in city."""
    path = Path(rules.city or BUILT_IN)
    feed = path.is_dir() or path.suffix == ".zip"
    without_table = rules.city in (None, BUILT_IN)
    for option, fits in (("lines", not feed), ("times", not feed), ("zones", feed)):
        if getattr(rules, option) and (not fits or without_table):
            kind = "a GTFS feed" if option == "zones" else "a table of stops (CSV)"
            raise InputError(f"--{option} needs {kind}: give one with --city")
    if rules.city == BUILT_IN or (rules.city is None and is_built_in(trips)):
        return ann_arbor_city(_driving(rules, Driving()))
    drive = _driving(rules, URBAN_DRIVING)
    if rules.city is None:
        return _city_of_stops(trips, drive)
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
    located = zip(trips.places.ids, trips.places.lat, trips.places.lon, strict=True)
    return all(
        str(s) not in at or np.hypot(at[str(s)][0] - a, at[str(s)][1] - o) <= SAME_PLACE_DEGREES
        for s, a, o in located
    )


def _city_of_stops(trips: CountedTrips, driving: Driving) -> City:
    """A city of the trips' own stops and zones; what else it needs follows the rules of `cbdp.transit.city_sources`."""
    if trips.places is None or np.isnan(trips.places.lat).all():
        raise InputError(
            f"the stops of {trips.name} have no coordinates: give a table with --city stops.csv (columns stop, and lat and lon, or "
            "x and y with --units km or --units m)"
        )
    universe, places = trips.universe, trips.places
    code = {stop: n for n, stop in enumerate(places.ids)}
    stop_ids = list(dict.fromkeys(_stops_of(universe)))
    for stop in stop_ids:
        if stop not in code or np.isnan(places.lat[code[stop]]):
            raise InputError(
                f"the stop {stop!r} has no coordinates: add them to the stops of the release, or give all stops with --city stops.csv"
            )
    rows = np.array([code[stop] for stop in stop_ids])
    labels = _zone_of_stop(universe, places)
    stops = Stops(
        tuple(stop_ids),
        tuple(places.names[r] for r in rows),
        places.lat[rows],
        places.lon[rows],
        None if labels is None else tuple(str(labels[stop]) for stop in stop_ids),
    )
    return city_on_earth(stops, driving=driving, what=f"the stops of {trips.name}")


def _stops_of(universe: Universe) -> list[Hashable]:
    return [
        value for end in TRIP_ENDS if end in universe.dimensions for value in universe.dimensions[end].values
    ]


def _zone_of_stop(universe: Universe, places: Stops) -> dict[Hashable, Hashable] | None:
    """The zone of each stop: as the trips are counted, else as the table of stops has it."""
    zone_of: dict[Hashable, Hashable] = {}
    for end in TRIP_ENDS:
        zones = universe.attributes.get(f"{end}.zone")
        if zones is None or zones.of != (end,):
            return None if places.zone is None else dict(zip(places.ids, places.zone, strict=True))
        codes = zones.codes.tolist()
        zone_of |= {v: zones.labels[c] for v, c in zip(universe.dimensions[end].values, codes, strict=True)}
    return zone_of


def described(city: City) -> str:
    """The city in a line, its size in kilometres first: whoever mixed up units sees it here."""
    wide = float(np.hypot(np.ptp(city.x), np.ptp(city.y)))
    zones = "1 zone" if len(city.zones) == 1 else f"{len(city.zones)} zones"
    lines = f", {len(city.lines)} bus lines between {len(city.hubs)} hubs" if city.lines else ""
    return f"{len(city)} stops within {wide:,.1f} km, {zones}{lines}"


# Demand: published trips by zone, with their intervals. Nothing is spent


DEMAND_CONFIDENCE = 0.9  # of the intervals beside published trips
DEMAND_COLUMNS = ("count", "low", "high")
Where = Mapping[str, list[Any]]


def demand_of(trips: CountedTrips, city: City, rules: FleetRules) -> dict[str, ZoneDemand]:
    """The trips that begin in each zone and in all, of the chosen day and hours; none where no release answers."""
    if trips.release is None or trips.release.tables:
        return {}
    chosen: dict[str, list[Any]] = {n: [v] for n, v in where_values(trips.universe, rules).items()}
    if rules.hours is not None:
        chosen["time"] = times_inside(trips.universe, rules)
    try:
        return {TOTAL: _asked(trips, chosen)} | _by_zone(trips, city, chosen)
    except InputError as why:
        print(f"demand is stated without intervals: {why}")
        return {}


def _by_zone(trips: CountedTrips, city: City, chosen: Where) -> dict[str, ZoneDemand]:
    """One question where the zones are those that trips are counted by; else one for each."""
    zones = _zone_stops(trips, city)
    counted_zones = trips.universe.attributes.get("origin.zone")
    if counted_zones is None or counted_zones.of != ("origin",):
        return {zone: _asked(trips, {**chosen, "origin": stops}) for zone, stops in zones.items()}
    stops = trips.universe.dimension("origin").values
    named = {
        stop: str(counted_zones.labels[c])
        for stop, c in zip(stops, counted_zones.codes.tolist(), strict=True)
    }
    if any(named[stop] != zone for zone, zone_stops in zones.items() for stop in zone_stops):
        return {zone: _asked(trips, {**chosen, "origin": zone_stops}) for zone, zone_stops in zones.items()}
    answer: dict[str, Any] = dict(_release(trips).ask("origin.zone", dict(chosen) or None, DEMAND_CONFIDENCE))
    return {str(zone): _row(answer, row) for row, zone in enumerate(answer["origin.zone"])}


def _asked(trips: CountedTrips, where: Where) -> ZoneDemand:
    answer: dict[str, Any] = dict(
        _release(trips).ask(where=dict(where) or None, confidence=DEMAND_CONFIDENCE)
    )
    return _row(answer, 0)


def _row(answer: Mapping[str, Any], row: int) -> ZoneDemand:
    count, low, high = (float(answer[name][row]) for name in DEMAND_COLUMNS)
    return ZoneDemand(int(count), *(None if math.isnan(end) else int(end) for end in (low, high)))


def _release(trips: CountedTrips) -> Release:
    if trips.release is None:
        raise InputError(f"{trips.name} are no release")
    return trips.release


def _zone_stops(trips: CountedTrips, city: City) -> dict[str, list[Hashable]]:
    """The stops of every zone that trips can begin in."""
    zone = city.zone[codes_of(city, trips.universe, "origin")].tolist()
    stops_by_zone: dict[str, list[Hashable]] = {}
    for stop, z in zip(trips.universe.dimension("origin").values, zone, strict=True):
        stops_by_zone.setdefault(city.zones[z], []).append(stop)
    return stops_by_zone


def in_words(asked: ZoneDemand) -> str:
    """A count with what it may be.

    >>> in_words(ZoneDemand(566, 541, 592))
    '566 published trips; the true number is between 541 and 592 (90 % confidence)'
    """
    if asked.low is None or asked.high is None:
        return f"{asked.count:,} published trips; no interval tells how far the true number may be from that"
    return (
        f"{asked.count:,} published trips; the true number is between {asked.low:,} and {asked.high:,} "
        f"({DEMAND_CONFIDENCE:.0%} confidence)"
    ).replace("%", " %", 1)
