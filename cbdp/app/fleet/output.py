"""What `cbdp fleet` prints and writes: marks, numbers, and the page of a service."""

from __future__ import annotations

import math
from pathlib import Path

from cbdp.app.fleet.counted import CountedTrips
from cbdp.app.fleet.running import quiet_zones
from cbdp.errors import InputError
from cbdp.report.markup import INTERNAL
from cbdp.transit.city import City
from cbdp.transit.demand import Legs


def print_marks(trips: CountedTrips) -> None:
    """What a reader must know of the trips before anything else."""
    if trips.internal:
        print(INTERNAL)
    if trips.note:
        print(trips.note)


def print_quiet_zones(city: City, riders: Legs) -> None:
    for zone in quiet_zones(city, riders):
        print(f"zone {zone!r} has no shuttle legs, so it needs no shuttles")


def number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}" if math.isfinite(value) else "–"


def page_path(page: str | None, *, internal: bool) -> Path | None:
    """Where the page goes. A wrong place is refused before the work begins."""
    if page is None:
        return None
    path = Path(page).absolute()
    if path.exists():
        raise InputError(f"{page!r} exists: choose another place with --page")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} for the page: make it first")
    if internal and (path.parent / "manifest.json").exists():
        raise InputError(f"{page!r} lies in a release, but the page shows real trips: choose another place")
    return path


def write_page(path: Path, html: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as out:
            out.write(html)
    except OSError as wrong:
        raise InputError(
            f"{str(path)!r} cannot be written ({wrong.strerror}): choose another place with --page"
        ) from None
    print(f"open {path}")
