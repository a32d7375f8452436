"""`cbdp fleet size`: size a fleet on a release, run it on the same riders, and print its service."""

from __future__ import annotations

from cbdp.app.fleet.cities import described, place
from cbdp.app.fleet.counted import read, selected
from cbdp.app.fleet.demanded import demand_of, in_words
from cbdp.app.fleet.output import number, page_path, print_marks, print_quiet_zones, write_page
from cbdp.app.fleet.rules import FleetRules
from cbdp.app.fleet.running import fleet_for, operated, riders_of
from cbdp.app.printing import aligned
from cbdp.features.calendar import clock_text
from cbdp.transit import page as pages
from cbdp.transit.city import City
from cbdp.transit.simulator import Service, figures

SERVICE = {
    "shuttles": "shuttles", "legs": "legs", "unserved": "unserved", "wait": "wait s", "wait95": "95 % s", "ride": "ride s",
    "idle": "idle s", "parked": "parked s", "occupancy": "riders", "km": "km",
}  # fmt: skip


def size(source: str, rules: FleetRules | None = None, *, page: str | None = None) -> int:
    """Size a fleet on a release (or on the trips of a configuration), run it on the same riders, and print its service."""
    chosen = rules or FleetRules()
    given = read(source)
    out = page_path(page, internal=given.internal)
    trips = selected(given, chosen)
    city, modes = place(chosen, given)
    print_marks(given)
    print(described(city))
    riders = riders_of(trips, city, modes, chosen, chosen.seed)
    sized = fleet_for(city, trips, riders, chosen)
    hours = "–".join(clock_text(s, seconds=False) for s in riders.hours)
    print(f"{trips.name}: {trips.total:,} trips, {hours}, {len(riders):,} shuttle legs")
    demand = demand_of(given, city, chosen)
    if demand:
        print(in_words(demand[pages.TOTAL]))
    print_quiet_zones(city, riders, demand)
    if sized.fleet is None:
        print(f"no fleet found: {sized.reason}")
        return 1
    service = operated(city, sized.fleet, riders, chosen, log=out is not None)
    print(f"{sized.fleet.total:,} shuttles, {chosen.promise}")
    print("\n".join(table(city, service)))
    if out:
        said = f" {in_words(demand[pages.TOTAL])}." if demand else ""
        about = f"The fleet of {trips.name}, {chosen.promise}, on the same riders.{said}"
        html = pages.build(city, service, about=about, demand=demand, internal=given.internal)
        write_page(out, html, internal=given.internal)
    return 0


def table(city: City, service: Service) -> list[str]:
    """The figures of every zone and in total."""
    found = figures(service, city)
    rows = [
        [zone, *(number(found[zone][name], 1 if name in ("occupancy", "km") else 0) for name in SERVICE)]
        for zone in (*city.zones, "total")
    ]
    return aligned([["zone", *SERVICE.values()], *rows], right=range(1, len(SERVICE) + 1))
