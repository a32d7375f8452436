"""`cbdp fleet`: size and run shuttles on a release, compare with the real trips, check a plug-in.

A release holds the period of a trip and not its second. A fleet is sized on one draw of seconds and, in a comparison, run on another, so that no fleet is
tuned to the very riders it is judged by. Whatever was computed from real trips says so on top.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from cbdp.app.fleet.riders import (
    CountedTrips,
    FleetRules,
    demand_of,
    described,
    hours_of,
    in_words,
    place,
    published_trips,
    read,
    real_trips,
    see_working_folder,
    selected,
)
from cbdp.commands.new_file import check_new, write_new
from cbdp.text import INTERNAL_WARNING, aligned
from cbdp.transit import DISPATCHERS, plugins
from cbdp.transit import page as pages
from cbdp.transit.city import City
from cbdp.transit.demand import Legs, legs_of, spread
from cbdp.transit.fleet_sizing import SearchSizer, Sizing
from cbdp.transit.modes import Itineraries
from cbdp.transit.page import ZoneDemand
from cbdp.transit.plugins import check_plugin, conforms
from cbdp.transit.simulator import Fleet, Operations, Service, figures, simulate
from cbdp_features.calendar import clock_time

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


def number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}" if math.isfinite(value) else "–"


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


COMPARED_FIGURES = ("shuttles", "wait", "idle")
Figures = Mapping[str, Mapping[str, float]]


def compare(release: str, trips: str, rules: FleetRules | None = None, *, page: str | None = None) -> int:
    """Print the paper's Table 1 row of a release: its fleet and the fleet of the real trips, both run on the real trips."""
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
        f'Both fleets carry the real riders; "real" is the fleet of the real trips. Fleets are {chosen.promise}.'
    )
    if out:
        about = f"The fleet of {published.name}, {chosen.promise}, on the real riders."
        write_page(out, pages.build(city, services[0], about=about, internal=True), internal=True)
    return 0


def _fleet(trips: CountedTrips, city: City, modes: Itineraries, rules: FleetRules) -> Fleet | None:
    sizing = fleet_for(city, trips, riders_of(trips, city, modes, rules, rules.seed), rules)
    if sizing.fleet is None:
        print(f"no fleet found for {trips.name}: {sizing.reason}")
    return sizing.fleet


def relative(value: float, original: float) -> float:
    """The relative error, with its sign; NaN if there is no original to be relative to.

    >>> relative(110, 100)
    0.1
    """
    return round(value / original - 1, 12) if original and math.isfinite(original) else math.nan


def comparison_table(city: City, ours: Figures, original: Figures) -> list[str]:
    """Both fleets' figures with their relative errors in every zone, and the sum of it."""
    head = ["zone", *(word for name in COMPARED_FIGURES for word in (name, "real", "error")), "unserved"]
    rows = [_row(zone, ours[zone], original[zone]) for zone in (*city.zones, "total")]
    errors = [abs(relative(ours["total"][n], original["total"][n])) for n in COMPARED_FIGURES]
    shown = ", ".join(f"{n} {number(e, 3)}" for n, e in zip(COMPARED_FIGURES, errors, strict=True))
    zones = [abs(relative(ours[z]["shuttles"], original[z]["shuttles"])) for z in city.zones]
    finite = [e for e in zones if math.isfinite(e)]
    mean = number(sum(finite) / len(finite), 3) if finite else "–"
    return [
        *aligned([head, *rows], right=range(1, len(head))),
        f"Table 1, relative errors: {shown}; shuttles by zone, on average {mean}",
    ]


def _row(zone: str, ours: Mapping[str, float], original: Mapping[str, float]) -> list[str]:
    cells = [zone]
    for name in COMPARED_FIGURES:
        error = relative(ours[name], original[name])
        cells += [number(ours[name]), number(original[name])]
        cells.append(f"{error:+.3f}" if math.isfinite(error) else "–")
    return [*cells, number(ours["unserved"])]


# `cbdp fleet size`: a fleet sized on a release and run on the same riders


SERVICE_LABELS = {
    "shuttles": "shuttles", "legs": "legs", "unserved": "unserved", "wait": "wait s", "wait95": "95 % s", "ride": "ride s",
    "idle": "idle s", "parked": "parked s", "occupancy": "riders", "km": "km",
}  # fmt: skip


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
    demand = demand_of(demand_source, city, chosen)
    if demand:
        print(in_words(demand[pages.TOTAL]))
    print_quiet_zones(city, riders, demand)
    if sized.fleet is None:
        print(f"no fleet found: {sized.reason}")
        return 1
    service = operated(city, sized.fleet, riders, chosen, log=out is not None)
    print(f"{sized.fleet.total:,} shuttles, {chosen.promise}")
    print("\n".join(service_table(city, service)))
    if out:
        demand_text = f" {in_words(demand[pages.TOTAL])}." if demand else ""
        about = f"The fleet of {trips.name}, {chosen.promise}, on the same riders.{demand_text}"
        html = pages.build(city, service, about=about, demand=demand, internal=demand_source.internal)
        write_page(out, html, internal=demand_source.internal)
    return 0


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


def print_checks(kind: str, name: str, *, seconds: float = 60.0) -> int:
    """Print every check of the conformance kit; 1 if any failed."""
    see_working_folder(name)
    checks = check_plugin(kind, name, seconds=seconds)
    for check in checks:
        print(check)
    passed = conforms(checks)
    print(f"{name} {'conforms' if passed else 'does NOT conform'}: {kind}, {len(checks)} checks")
    return 0 if passed else 1
