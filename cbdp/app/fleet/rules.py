"""What the commands are told: the city, which trips, and how fleets are sized and run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cbdp.datasets import ann_arbor_city
from cbdp.errors import InputError
from cbdp.transit import plugins
from cbdp.transit.city import City
from cbdp.transit.files import city_from_csv, city_from_gtfs, zones_from_csv
from cbdp.transit.modes import Itineraries, ModeRule

BUILT_IN = "built-in"
PERIOD = 1800


@dataclass(frozen=True)
class FleetRules:
    """The options of `cbdp fleet size` and `cbdp fleet compare`; a plug-in of None is the built-in one."""

    city: str = BUILT_IN
    lines: str | None = None
    times: str | None = None
    zones: str | None = None
    hours: str | None = None
    only: Sequence[str] = ()
    limit: int = 180
    period: int = PERIOD  # 0: the limit holds for the whole hours only
    seed: int = 0
    sizer: str | None = None
    dispatcher: str | None = None
    modes: str | None = None

    def __post_init__(self) -> None:
        for name in ("limit", "period"):
            if getattr(self, name) < 0:
                raise InputError(f"--{name} {getattr(self, name)}: give seconds, at least 0")

    @property
    def promise(self) -> str:
        """What a fleet is sized for, in words."""
        parts = f", in each {self.period / 60:g} minutes" if self.period else ""
        return f"sized for a mean wait of at most {self.limit} s in every zone{parts}"


def city_of(rules: FleetRules) -> City:
    """The built-in city, a city from CSV tables, or one from a GTFS feed (a folder or a zip)."""
    path = Path(rules.city)
    feed = path.is_dir() or path.suffix == ".zip"
    for option, fits in (("lines", not feed), ("times", not feed), ("zones", feed)):
        if getattr(rules, option) and (not fits or rules.city == BUILT_IN):
            kind = "a GTFS feed" if option == "zones" else "a table of stops (CSV)"
            raise InputError(f"--{option} needs {kind}: give one with --city")
    if rules.city == BUILT_IN:
        return ann_arbor_city()
    if feed:
        zones, hubs = zones_from_csv(rules.zones) if rules.zones else (None, None)
        return city_from_gtfs(path, zones=zones, hubs=hubs)
    return city_from_csv(path, rules.lines, rules.times)


def place(rules: FleetRules) -> tuple[City, Itineraries]:
    """The city, and how trips are served in it."""
    see_working_folder()
    city = city_of(rules)
    return city, ModeRule().choose(city) if rules.modes is None else plugins.choose(city, rules.modes)


def see_working_folder() -> None:
    """Plug-ins may be modules of the working folder; installed ones come first."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
