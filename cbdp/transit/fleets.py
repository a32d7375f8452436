"""A fleet on a release: the rules it is to keep, the part of the day it serves, the city of the release's stops, published demand, tables of its service,
and a picture of it: one page with the map, the shuttles on their way over time, and the figures of every zone.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.numbers import count_text
from cbdp.release import Release
from cbdp.release.views import is_single_day, period_of
from cbdp.report.rendering import Table, Tile, render
from cbdp.text import aligned
from cbdp.transit.city import KM, KM_PER_UNIT, City, Driving, city_on_earth
from cbdp.transit.modes import codes_of, period_edges
from cbdp.transit.simulator import ARRIVES, DROPPED_OFF, PICKED_UP, Operations, Service, figures
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
    date: str | None = None  # service day of a GTFS feed; None: the day with most trips
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

    def driving(self, usual: Driving) -> Driving:
        """How shuttles drive, where nothing else is asked for as usual."""
        return Driving(
            usual.speed if self.speed is None else self.speed,
            usual.detour if self.detour is None else self.detour,
        )

    @property
    def service_level(self) -> str:
        """What a fleet is sized for, in words."""
        parts = f", in each {self.period / 60:g} minutes" if self.period else ""
        return f"sized for a mean wait of at most {self.limit} s in every zone{parts}"


def see_working_folder(*plugins: str | None) -> None:
    """Plug-ins may be modules of the working folder; installed ones come first. Where none is named, nothing there is ever loaded."""
    here = str(Path.cwd())
    if here not in sys.path and any(name is not None and ":" in name for name in plugins):
        sys.path.append(here)


# The part of the day that is served: hours, and one value of every other dimension


NEEDED_DIMENSIONS = ("origin", "destination", "time")


def added_up(release: Release) -> list[str]:
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


def where_texts(universe: Universe, rules: FleetRules) -> dict[str, str]:
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
        n: universe.dimension(n).values[code_of(universe, n, v)]
        for n, v in where_texts(universe, rules).items()
    }


def times_inside(universe: Universe, rules: FleetRules) -> list[Hashable]:
    """The periods inside the hours."""
    first, last = span_of(universe, rules.hours)
    return list(universe.dimension("time").values[first:last])


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--only {text}: write it as dimension=value")
    return name, value


def code_of(universe: Universe, name: str, value: str) -> int:
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
    first, last = span_of(universe, rules.hours)
    return int(edges[first]), int(edges[last])


def span_of(universe: Universe, hours: str | None) -> tuple[int, int]:
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


# The city of the trips' own stops


TRIP_ENDS = ("origin", "destination")


def city_of_stops(name: str, universe: Universe, places: Stops | None, driving: Driving) -> City:
    """A city of the stops and zones of some trips; what else it needs follows the rules of `cbdp.transit.city`."""
    if places is None or np.isnan(places.lat).all():
        raise InputError(
            f"the stops of {name} have no coordinates: give a table with --city stops.csv (columns stop, and lat and lon, or "
            "x and y with --units km or --units m)"
        )
    stop_ids = list(dict.fromkeys(stops_in(universe)))
    # stops that are numbers in a release may be text in a table
    texts = {str(stop): n for n, stop in enumerate(places.ids)}
    code = {stop: texts[str(stop)] for stop in stop_ids if str(stop) in texts}
    for stop in stop_ids:
        if stop not in code or np.isnan(places.lat[code[stop]]):
            raise InputError(
                f"the stop {stop!r} has no coordinates: add them to the stops of the release, or give all stops with --city stops.csv"
            )
    rows = np.array([code[stop] for stop in stop_ids])
    labels = _zone_of_stop(universe, places, code)
    stops = Stops(
        tuple(stop_ids),
        tuple(places.names[r] for r in rows),
        places.lat[rows],
        places.lon[rows],
        None if labels is None else tuple(str(labels[stop]) for stop in stop_ids),
    )
    return city_on_earth(stops, driving=driving, what=f"the stops of {name}")


def stops_in(universe: Universe) -> list[Hashable]:
    return [
        value for end in TRIP_ENDS if end in universe.dimensions for value in universe.dimensions[end].values
    ]


def _zone_of_stop(
    universe: Universe, places: Stops, code: Mapping[Hashable, int]
) -> dict[Hashable, Hashable] | None:
    """The zone of each stop: as the trips are counted, else as the table of stops has it."""
    zone_of: dict[Hashable, Hashable] = {}
    for end in TRIP_ENDS:
        zones = universe.attributes.get(f"{end}.zone")
        if zones is None or zones.of != (end,):
            return None if places.zone is None else {stop: places.zone[n] for stop, n in code.items()}
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


TOTAL = "total"  # the row of all zones together
DEMAND_CONFIDENCE = 0.9  # of the intervals beside published trips
DEMAND_COLUMNS = ("count", "low", "high")
Where = Mapping[str, list[Any]]


@dataclass(frozen=True)
class ZoneDemand:
    """A published count, and the ends of its interval where it has one."""

    count: int
    low: int | None
    high: int | None


def demand_of(release: Release, city: City, rules: FleetRules) -> dict[str, ZoneDemand]:
    """The trips that begin in each zone and in all, of the chosen day and hours; none where the release's tables do not add up."""
    if release.tables:
        return {}
    chosen: dict[str, list[Any]] = {n: [v] for n, v in where_values(release.features.universe, rules).items()}
    if rules.hours is not None:
        chosen["time"] = times_inside(release.features.universe, rules)
    try:
        return {TOTAL: _asked(release, chosen)} | _by_zone(release, city, chosen)
    except InputError as why:
        print(f"demand is stated without intervals: {why}")
        return {}


def _by_zone(release: Release, city: City, chosen: Where) -> dict[str, ZoneDemand]:
    """One question where the zones are those that trips are counted by; else one for each."""
    universe = release.features.universe
    zones = _zone_stops(universe, city)
    counted_zones = universe.attributes.get("origin.zone")
    if counted_zones is None or counted_zones.of != ("origin",):
        return {zone: _asked(release, {**chosen, "origin": stops}) for zone, stops in zones.items()}
    stops = universe.dimension("origin").values
    named = {
        stop: str(counted_zones.labels[c])
        for stop, c in zip(stops, counted_zones.codes.tolist(), strict=True)
    }
    if any(named[stop] != zone for zone, zone_stops in zones.items() for stop in zone_stops):
        return {zone: _asked(release, {**chosen, "origin": zone_stops}) for zone, zone_stops in zones.items()}
    answer: dict[str, Any] = dict(release.ask("origin.zone", dict(chosen) or None, DEMAND_CONFIDENCE))
    return {str(zone): _demand_in(answer, row) for row, zone in enumerate(answer["origin.zone"])}


def _asked(release: Release, where: Where) -> ZoneDemand:
    answer: dict[str, Any] = dict(release.ask(where=dict(where) or None, confidence=DEMAND_CONFIDENCE))
    return _demand_in(answer, 0)


def _demand_in(answer: Mapping[str, Any], row: int) -> ZoneDemand:
    count, low, high = (float(answer[name][row]) for name in DEMAND_COLUMNS)
    return ZoneDemand(int(count), *(None if math.isnan(end) else int(end) for end in (low, high)))


def _zone_stops(universe: Universe, city: City) -> dict[str, list[Hashable]]:
    """The stops of every zone that trips can begin in."""
    zone = city.zone[codes_of(city, universe, "origin")].tolist()
    stops_by_zone: dict[str, list[Hashable]] = {}
    for stop, z in zip(universe.dimension("origin").values, zone, strict=True):
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


# Tables of a service, and of two of them


def number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}" if math.isfinite(value) else "–"


COMPARED_FIGURES = ("shuttles", "wait", "idle")
Figures = Mapping[str, Mapping[str, float]]


def relative(value: float, original: float) -> float:
    """The relative error, with its sign; NaN if there is no original to be relative to.

    >>> relative(110, 100)
    0.1
    """
    return round(value / original - 1, 12) if original and math.isfinite(original) else math.nan


def comparison_table(city: City, ours: Figures, original: Figures) -> list[str]:
    """Both fleets' figures with their relative errors in every zone, and the sum of it."""
    head = ["zone", *(word for name in COMPARED_FIGURES for word in (name, "real", "error")), "unserved"]
    rows = [_compared_row(zone, ours[zone], original[zone]) for zone in (*city.zones, "total")]
    errors = [abs(relative(ours["total"][n], original["total"][n])) for n in COMPARED_FIGURES]
    shown = ", ".join(f"{n} {number(e, 3)}" for n, e in zip(COMPARED_FIGURES, errors, strict=True))
    zones = [abs(relative(ours[z]["shuttles"], original[z]["shuttles"])) for z in city.zones]
    finite = [e for e in zones if math.isfinite(e)]
    mean = number(sum(finite) / len(finite), 3) if finite else "–"
    return [
        *aligned([head, *rows], right=range(1, len(head))),
        f"As in Table 1 of Fioretto, Lee and Van Hentenryck (2018), relative errors: {shown}; shuttles by zone, on average {mean}",
    ]


def _compared_row(zone: str, ours: Mapping[str, float], original: Mapping[str, float]) -> list[str]:
    cells = [zone]
    for name in COMPARED_FIGURES:
        error = relative(ours[name], original[name])
        cells += [number(ours[name]), number(original[name])]
        cells.append(f"{error:+.3f}" if math.isfinite(error) else "–")
    return [*cells, number(ours["unserved"])]


SERVICE_LABELS = {
    "shuttles": "shuttles", "legs": "legs", "unserved": "unserved", "wait": "wait s", "wait95": "95 % s", "ride": "ride s",
    "idle": "idle s", "parked": "parked s", "occupancy": "riders", "km": "km",
}  # fmt: skip


def service_table(city: City, service: Service) -> list[str]:
    """The figures of every zone and in total."""
    by_zone = figures(service, city)
    rows = [
        [
            zone,
            *(
                number(by_zone[zone][name], 1 if name in ("occupancy", "km") else 0)
                for name in SERVICE_LABELS
            ),
        ]
        for zone in (*city.zones, "total")
    ]
    return aligned([["zone", *SERVICE_LABELS.values()], *rows], right=range(1, len(SERVICE_LABELS) + 1))


# The picture of a service: one page


MAX_HOPS = 120_000  # about 14 bytes each, so that the page stays below 3 MB
MAX_WAYS = 600  # pairs of stops that are drawn as often driven: more would hide the map
SECONDS_PER_MINUTE = 60
FIGURE_NAMES = {
    "shuttles": "Shuttles", "legs": "Rides", "unserved": "Unserved", "wait": "Mean wait", "wait95": "95 % wait at most",
    "ride": "Mean ride", "idle": "Empty, per shuttle", "parked": "Parked, per shuttle", "occupancy": "Riders on board", "km": "Driven",
}  # fmt: skip
FIGURE_UNITS = {"wait": " s", "wait95": " s", "ride": " s", "idle": " min", "parked": " min", "km": " km"}
Hop = tuple[int, int, int, int]  # departs, arrives, stop, riders on board


def service_page(
    city: City,
    service: Service,
    *,
    about: str = "",
    demand: Mapping[str, ZoneDemand] | None = None,
    internal: bool = False,
    operations: Operations | None = None,
) -> str:
    """The page of a run that has a log, as HTML that opens offline and sends no request.

    `demand` are the published trips that begin in each zone and in "total", with 90 % intervals: stated beside the service.
    `internal` puts a banner on top, for runs with real riders. Of a large run some shuttles are shown, and the page says so.
    """
    if service.log is None:
        raise InputError("the run has no log to draw: simulate with log=True")
    by_zone = figures(service, city)
    data = picture(city, service, hops(city, service, operations or Operations()))
    return render(
        "transit/fleet.html.jinja",
        style=["transit/page.css"],
        script="transit/page.js",
        data=data,
        internal=internal,
        about=about,
        shuttles=service.fleet.total,
        rides=len(service.legs),
        hours=[clock_time(s, seconds=False) for s in service.legs.hours],
        head=_tiles(by_zone[TOTAL]),
        zones=dict(enumerate(city.zones)),
        drawn=data,
        figures=_table(city, by_zone, demand or {}),
        has_demand=bool(demand),
    )


# What is drawn


def hops(city: City, service: Service, operations: Operations) -> list[list[Hop]]:
    """The drives of every shuttle in order, from the log."""
    takes, at = operations.hop(city), service.fleet.starts(city).tolist()
    load = [0] * len(at)
    drives: list[list[Hop]] = [[] for _ in at]
    rows: list[list[int]] = [] if service.log is None else service.log.tolist()
    for second, kind, shuttle, _, stop in rows:
        if kind == ARRIVES:
            drives[shuttle].append((second - int(takes[at[shuttle], stop]), second, stop, load[shuttle]))
            at[shuttle] = stop
        elif kind == PICKED_UP:
            load[shuttle] += 1
        elif kind == DROPPED_OFF:
            load[shuttle] -= 1
    return drives


def picture(city: City, service: Service, drives: list[list[Hop]]) -> dict[str, Any]:
    """All that the page's script draws. Hops count seconds since the hop before: they are many, and this takes less space."""
    zone = np.repeat(np.arange(len(city.zones)), service.fleet.shuttles).tolist()
    starts = service.fleet.starts(city).tolist()
    begin = min([service.legs.hours[0], *(h[0][0] for h in drives if h)])
    end = max([service.legs.hours[1], *(h[-1][1] for h in drives if h)])
    every = max(1, math.ceil(sum(map(len, drives)) / MAX_HOPS))
    riders = _riders(service, begin, end)
    inside = riders["aboard"][: 1 + (service.legs.hours[1] - begin) // SECONDS_PER_MINUTE]
    return {
        "begin": begin,
        "end": end,
        "start": begin
        + SECONDS_PER_MINUTE
        * int(np.argmax(inside)),  # where the page opens: the busiest minute of the hours
        "stops": [
            [n, round(float(x), 3), round(float(y), 3), int(z), int(h)]
            for n, x, y, z, h in zip(city.names, city.x, city.y, city.zone, city.hub, strict=True)
        ],
        "zones": [[name, hull(city, z)] for z, name in enumerate(city.zones)],
        "lines": [[line.name, list(line.stops), line.headway] for line in city.lines],
        "every": every,
        "shuttles": [
            [v, zone[v], starts[v], _delta_encoded(drives[v], begin)] for v in range(0, len(drives), every)
        ],
        "ways": _ways(drives, starts),
        "riders": riders,
    }


def _delta_encoded(drives: list[Hop], begin: int) -> list[int]:
    encoded, since = [], begin
    for departs, arrives, stop, load in drives:
        encoded += [departs - since, arrives - departs, stop, load]
        since = arrives
    return encoded


def _ways(fleet_drives: list[list[Hop]], starts: list[int]) -> list[list[int]]:
    """The pairs of stops between which shuttles drove most often, in either direction, and how often."""
    often: Counter[tuple[int, int]] = Counter()
    for drives, start in zip(fleet_drives, starts, strict=True):
        at = start
        for _, _, stop, _ in drives:
            often[min(at, stop), max(at, stop)] += 1
            at = stop
    ranked = sorted(often.items(), key=lambda item: (-item[1], item[0]))
    return [[a, b, n] for (a, b), n in ranked[:MAX_WAYS]]


def _riders(service: Service, begin: int, end: int) -> dict[str, list[int]]:
    """The riders who wait and the riders on board, minute by minute."""
    minute = np.arange(begin, end + SECONDS_PER_MINUTE, SECONDS_PER_MINUTE)
    done = service.served
    release, pickup, drop = (v[done] for v in (service.release, service.pickup, service.drop))

    def by(seconds: Ints) -> Ints:
        return np.searchsorted(np.sort(seconds), minute, side="right")

    came, boarded, left = by(release), by(pickup), by(drop)
    return {"waiting": (came - boarded).tolist(), "aboard": (boarded - left).tolist()}


def hull(city: City, zone: int) -> list[list[float]]:
    """The corners of the convex hull of a zone's stops (Andrew's monotone chain, 1979)."""
    stops = np.flatnonzero(city.zone == zone)
    points = sorted({(round(float(city.x[s]), 3), round(float(city.y[s]), 3)) for s in stops})
    if len(points) < 3:
        return [list(p) for p in points]
    return [list(p) for p in (*_half_hull(points)[:-1], *_half_hull(points[::-1])[:-1])]


def _half_hull(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    chain: list[tuple[float, float]] = []
    for x, y in points:
        while len(chain) > 1:
            (ax, ay), (bx, by) = chain[-2:]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                break
            chain.pop()
        chain.append((x, y))
    return chain


# What is written


def _tiles(total: Mapping[str, float]) -> list[Tile]:
    text = {name: _figure_text(name, total) for name in total}
    return [
        Tile("Shuttles", text["shuttles"], f"{text['km']} in all"),
        Tile("Mean wait", text["wait"], f"95 % wait {text['wait95']} at most"),
        Tile("Unserved", text["unserved"], f"of {text['legs']} rides"),
        Tile("Riders on board", text["occupancy"], "in a shuttle that has any"),
    ]


def _figure_text(name: str, row: Mapping[str, float]) -> str:
    value, unit = row[name], FIGURE_UNITS.get(name, "")
    if not math.isfinite(value):
        return "–"
    return (
        f"{value:,.1f}"
        if name == "occupancy"
        else f"{count_text(value / 60 if unit == ' min' else value)}{unit}"
    )


def _table(city: City, by_zone: Mapping[str, Mapping[str, float]], demand: Mapping[str, ZoneDemand]) -> Table:
    return Table(
        ["Zone", *(["Trips from here", "90 % interval"] if demand else []), *FIGURE_NAMES.values()],
        [
            [zone, *(_demand_cells(demand.get(zone)) if demand else []), *(_figure_text(name, by_zone[zone]) for name in FIGURE_NAMES)]
            for zone in (*city.zones, TOTAL)
        ],
    )  # fmt: skip


def _demand_cells(asked: ZoneDemand | None) -> list[str]:
    if asked is None:
        return ["–", "–"]
    none = asked.low is None or asked.high is None
    return [f"{asked.count:,}", "no interval" if none else f"{asked.low:,} – {asked.high:,}"]
