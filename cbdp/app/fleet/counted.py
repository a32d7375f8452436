"""Where trips come from, and which of them a fleet carries: those of one day, inside the hours."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from cbdp.app.config import read as read_config
from cbdp.app.fleet.rules import FleetRules
from cbdp.app.plan import plan
from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.features.calendar import clock_text, dates_of, seconds_of
from cbdp.features.places import Stops
from cbdp.mechanisms import load
from cbdp.release import Release
from cbdp.release.when import of_one_day, period_of
from cbdp.transit.demand import fleet_counts
from cbdp.transit.modes import period_edges
from cbdp.trips import count

NEEDED = ("origin", "destination", "time")


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
    dated = any(dates_of(d) is not None for d in release.features.universe.dimensions.values())
    period = period_of(release)
    if dated or period is None or of_one_day(release):
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
    found = count(source, universe)
    return CountedTrips("the real trips", universe, found.index, found.value, internal=True)


def _configured(config: str, universe: Universe | None) -> CountedTrips:
    """All trips, even where the unit of privacy is a person with at most so many: shuttles carry everybody."""
    given = read_config(config)
    if given.series is not None:
        raise InputError(
            f"{config} describes a series of releases: give a file with the trips of one day instead"
        )
    planned = plan(given)
    types = universe or planned.universe
    found = count(planned.trips, types, columns=planned.columns, clock=planned.clock)
    return CountedTrips(
        "the real trips", types, found.index, found.value, internal=True, places=planned.stops
    )


def selected(trips: CountedTrips, rules: FleetRules) -> CountedTrips:
    """The trips of one day: inside the hours, and of one value of every dimension but origin, destination and time."""
    universe = trips.universe
    wanted = _wanted(universe, rules)
    codes = dict(zip(universe.dimensions, universe.unrank_codes(trips.index), strict=True))
    keep = np.ones(len(trips.index), dtype=bool)
    for name, value in wanted.items():
        code = _code(universe, name, value)
        keep &= codes[name] == code
    first, last = _span(universe, rules.hours)
    keep &= (codes["time"] >= first) & (codes["time"] < last)
    return replace(trips, index=trips.index[keep], value=trips.value[keep])


def _wanted(universe: Universe, rules: FleetRules) -> dict[str, str]:
    """The chosen value of every dimension that needs one."""
    for name in NEEDED:
        if name not in universe.dimensions:
            raise InputError(f"the trips have no {name!r}: shuttles need origin, destination and time")
    wanted = dict(_pair(text) for text in rules.only)
    for name in universe.dimensions:
        if name not in NEEDED and name not in wanted:
            raise InputError(
                f"the trips also have the dimension {name!r}, and shuttles run on one day: choose with --only {name}=VALUE"
            )
    return wanted


def wanted_values(universe: Universe, rules: FleetRules) -> dict[str, Hashable]:
    """The chosen value of every dimension that needs one, as the universe has it."""
    return {
        n: universe.dimension(n).values[_code(universe, n, v)] for n, v in _wanted(universe, rules).items()
    }


def wanted_times(universe: Universe, rules: FleetRules) -> list[Hashable]:
    """The periods inside the hours."""
    first, last = _span(universe, rules.hours)
    return list(universe.dimension("time").values[first:last])


def _pair(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found:
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
        first, last = (edges.index(seconds_of(t)) for t in (begin, end))
    except ValueError:
        raise InputError(
            f"--hours {hours}: write them as 08:00-10:00, at times where a period begins or ends "
            f"({clock_text(edges[0], seconds=False)} to {clock_text(edges[-1], seconds=False)})"
        ) from None
    if first >= last:
        raise InputError(f"--hours {hours}: the end must come after the start")
    return first, last
