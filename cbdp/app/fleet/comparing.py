"""`cbdp fleet compare`: a release's fleet and the fleet of the real trips, both run on the real trips."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cbdp.app.fleet.cities import described, place
from cbdp.app.fleet.counted import CountedTrips, published_trips, real_trips, selected
from cbdp.app.fleet.output import number, page_path, print_marks, print_quiet_zones, write_page
from cbdp.app.fleet.rules import FleetRules
from cbdp.app.fleet.running import fleet_for, operated, riders_of
from cbdp.app.printing import aligned
from cbdp.report.markup import INTERNAL
from cbdp.transit import page as pages
from cbdp.transit.city import City
from cbdp.transit.modes import Itineraries
from cbdp.transit.simulator import Fleet, figures

COMPARED = ("shuttles", "wait", "idle")
Figures = Mapping[str, Mapping[str, float]]


def compare(release: str, trips: str, rules: FleetRules | None = None, *, page: str | None = None) -> int:
    """Print the paper's Table 1 row of a release: its fleet and the fleet of the real trips, both run on the real trips."""
    chosen = rules or FleetRules()
    print(INTERNAL)
    given = published_trips(release)
    city, modes = place(chosen, given)
    real = selected(real_trips(trips, given.universe), chosen)
    out = page_path(page, internal=True)
    published = selected(given, chosen)
    print_marks(given)
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
    print("\n".join(table(city, *(figures(s, city) for s in services))))
    print(
        f'Both fleets carry the real riders; "real" is the fleet of the real trips. Fleets are {chosen.promise}.'
    )
    if out:
        about = f"The fleet of {published.name}, {chosen.promise}, on the real riders."
        write_page(out, pages.build(city, services[0], about=about, internal=True), internal=True)
    return 0


def _fleet(trips: CountedTrips, city: City, modes: Itineraries, rules: FleetRules) -> Fleet | None:
    found = fleet_for(city, trips, riders_of(trips, city, modes, rules, rules.seed), rules)
    if found.fleet is None:
        print(f"no fleet found for {trips.name}: {found.reason}")
    return found.fleet


def relative(value: float, original: float) -> float:
    """The relative error, with its sign; NaN if there is no original to be relative to.

    >>> relative(110, 100)
    0.1
    """
    return round(value / original - 1, 12) if original and math.isfinite(original) else math.nan


def table(city: City, ours: Figures, original: Figures) -> list[str]:
    """Both fleets' figures with their relative errors in every zone, and the sum of it."""
    head = ["zone", *(word for name in COMPARED for word in (name, "real", "error")), "unserved"]
    rows = [_row(zone, ours[zone], original[zone]) for zone in (*city.zones, "total")]
    errors = [abs(relative(ours["total"][n], original["total"][n])) for n in COMPARED]
    shown = ", ".join(f"{n} {number(e, 3)}" for n, e in zip(COMPARED, errors, strict=True))
    zones = [abs(relative(ours[z]["shuttles"], original[z]["shuttles"])) for z in city.zones]
    known = [e for e in zones if math.isfinite(e)]
    mean = number(sum(known) / len(known), 3) if known else "–"
    return [
        *aligned([head, *rows], right=range(1, len(head))),
        f"Table 1, relative errors: {shown}; shuttles by zone, on average {mean}",
    ]


def _row(zone: str, ours: Mapping[str, float], original: Mapping[str, float]) -> list[str]:
    cells = [zone]
    for name in COMPARED:
        error = relative(ours[name], original[name])
        cells += [number(ours[name]), number(original[name])]
        cells.append(f"{error:+.3f}" if math.isfinite(error) else "–")
    return [*cells, number(ours["unserved"])]
