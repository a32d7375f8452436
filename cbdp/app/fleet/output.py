"""What `cbdp fleet` prints and writes: marks, numbers, and the page of a service."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from cbdp.app.fleet.counted import CountedTrips
from cbdp.app.fleet.running import quiet_zones
from cbdp.app.new_file import check_new, write_new
from cbdp.report.markup import INTERNAL
from cbdp.transit.city import City
from cbdp.transit.demand import Legs
from cbdp.transit.page import ZoneDemand


def print_marks(trips: CountedTrips) -> None:
    """What a reader must know of the trips before anything else."""
    if trips.internal:
        print(INTERNAL)
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
