"""The commands behind `cbdp fleet`: size and run shuttles on a release, compare with the real trips, check a plug-in.

A release holds the period of a trip and not its second; a fleet is sized on one draw of seconds and, where it is compared, run
on another, so that no fleet is tuned to the very riders it is judged by. What was computed from raw trips says so on top.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.release.release import Release
from cbdp.transit import page as pages
from cbdp.transit import plugins
from cbdp.transit.city import City, Ints, built_in
from cbdp.transit.conformance import conformance, conforms
from cbdp.transit.demand import Legs, legs_of, spread
from cbdp.transit.files import city_from_csv, city_from_gtfs
from cbdp.transit.fleet import SearchSizer, Sizing
from cbdp.transit.modes import ModeRule, Modes, period_edges
from cbdp.transit.simulator import Fleet, Operations, Service, figures, simulate

INTERNAL = "INTERNAL – computed from raw trips – do not publish"
BUILT_IN = "built-in"
PERIOD = 1800
CROWD = 10  # times as many trips as the search takes legs: more are not even listed
SERVICE = {
    "shuttles": "shuttles", "legs": "legs", "unserved": "unserved", "wait": "wait s", "wait95": "95 % s", "ride": "ride s",
    "idle": "idle s", "parked": "parked s", "occupancy": "riders", "km": "km",
}  # fmt: skip
COMPARED = ("shuttles", "wait", "idle")


@dataclass(frozen=True)
class Rules:
    """What both commands are told: the city, which trips, and how fleets are sized and run."""

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


@dataclass(frozen=True, eq=False)
class Source:
    """Counted trips: published, or the real ones."""

    name: str
    universe: Universe = field(repr=False)
    index: Ints = field(repr=False)
    value: Ints = field(repr=False)
    internal: bool
    note: str = ""

    @property
    def total(self) -> int:
        return int(np.sum(self.value))


def size(source: str, rules: Rules | None = None, *, page: str | None = None) -> int:
    """Size a fleet on a release (or on the trips of a configuration), run it on the same riders, and print its service."""
    chosen = rules or Rules()
    city, modes = _place(chosen)
    given = read(source)
    out = _page_path(page, internal=given.internal)
    trips = selected(given, chosen)
    _mark(given)
    riders = _riders(trips, city, modes, chosen, chosen.seed)
    sized = sizing(city, trips, riders, chosen)
    print(f"{trips.name}: {trips.total:,} trips, {_hours(riders)}, {len(riders):,} shuttle legs")
    _print_quiet(city, riders)
    if sized.fleet is None:
        print(f"no fleet found: {sized.reason}")
        return 1
    service = operated(city, sized.fleet, riders, chosen, log=out is not None)
    found = figures(service, city)
    print(f"{sized.fleet.total:,} shuttles, {_promise(chosen)}")
    print_table(["zone", *SERVICE.values()], [[z, *_cells(found[z])] for z in (*city.zones, "total")])
    if out:
        about = f"The fleet of {trips.name}, {_promise(chosen)}, on the same riders."
        _write_page(out, pages.build(city, service, about=about, internal=given.internal))
    return 0


def compare(release: str, trips: str, rules: Rules | None = None, *, page: str | None = None) -> int:
    """Print the paper's Table 1 row of a release: its fleet and the fleet of the real trips, both run on the real trips."""
    chosen = rules or Rules()
    city, modes = _place(chosen)
    print(INTERNAL)
    given = _released(release)
    real = selected(real_trips(trips, given.universe), chosen)
    out = _page_path(page, internal=True)
    published = selected(given, chosen)
    _mark(given)
    print(f"{published.total:,} published trips, {real.total:,} real ones")
    sized = []
    for source in (published, real):
        riders = _riders(source, city, modes, chosen, chosen.seed)
        found = sizing(city, source, riders, chosen)
        if found.fleet is None:
            print(f"no fleet found for {source.name}: {found.reason}")
            return 1
        sized.append(found.fleet)
    riders = _riders(real, city, modes, chosen, chosen.seed + 1)
    _print_quiet(city, riders)
    services = [operated(city, fleet, riders, chosen, log=out is not None) for fleet in sized]
    _print_comparison(city, *(figures(s, city) for s in services))
    print(
        f'Both fleets carry the real riders; "real" is the fleet of the real trips. Fleets are {_promise(chosen)}.'
    )
    if out:
        about = f"The fleet of {published.name}, {_promise(chosen)}, on the real riders."
        _write_page(out, pages.build(city, services[0], about=about, internal=True))
    return 0


def check_plugin(kind: str, name: str, *, seconds: float = 60.0) -> int:
    """Print every check of the conformance kit; 1 if any failed."""
    _see_here()
    checks = conformance(kind, name, seconds=seconds)
    for check in checks:
        print(check)
    passed = conforms(checks)
    print(f"{name} {'conforms' if passed else 'does NOT conform'}: {kind}, {len(checks)} checks")
    return 0 if passed else 1


def relative(value: float, original: float) -> float:
    """The relative error, signed; NaN where there is no original to be relative to.

    >>> relative(110, 100)
    0.1
    """
    return round(value / original - 1, 12) if original and math.isfinite(original) else math.nan


# Where trips come from


def read(source: str) -> Source:
    """The trips of a release's folder, or the real ones that a configuration names."""
    if Path(source).suffix == ".toml":
        return _configured(source, None)
    if Path(source).is_dir():
        return _released(source)
    raise InputError(f"{source!r} is neither the folder of a release nor a configuration (.toml)")


def real_trips(source: str, universe: Universe) -> Source:
    """The real trips, by the trip types of a release: of a configuration, or of a file with the dimensions' columns."""
    if Path(source).suffix == ".toml":
        return _configured(source, universe)
    from cbdp.trips.count import count

    found = count(source, universe)
    return Source("the real trips", universe, found.index, found.value, internal=True)


def _released(folder: str) -> Source:
    from cbdp.release.files import load

    release: Release = load(folder)
    note = "" if release.secure else "simulation, not a release: its noise came from a seeded source"
    name = Path(folder).absolute().name
    return Source(name, release.features.universe, release.index, release.value, internal=False, note=note)


def _configured(config: str, universe: Universe | None) -> Source:
    """All trips, also where the unit is a person: shuttles carry whoever comes."""
    from cbdp.app.config import read as read_config
    from cbdp.app.plan import plan
    from cbdp.trips.count import count

    planned = plan(read_config(config))
    types = universe or planned.universe
    found = count(planned.trips, types, columns=planned.columns, clock=planned.clock)
    return Source("the real trips", types, found.index, found.value, internal=True)


def selected(source: Source, rules: Rules) -> Source:
    """The trips of one day: inside the hours, and of one value of every dimension beside origin, destination and time."""
    universe = source.universe
    for name in ("origin", "destination", "time"):
        if name not in universe.dimensions:
            raise InputError(f"the trips have no {name!r}: shuttles need origin, destination and time")
    wanted = dict(_pair(text) for text in rules.only)
    for name in universe.dimensions:
        if name not in ("origin", "destination", "time") and name not in wanted:
            raise InputError(
                f"the trips also have a {name!r}, and shuttles run on one day: choose it with --only {name}=VALUE"
            )
    codes = dict(zip(universe.dimensions, universe.unrank_codes(source.index), strict=True))
    keep = np.ones(len(source.index), dtype=bool)
    for name, value in wanted.items():
        code = _code(universe, name, value)
        keep &= codes[name] == code
    first, last = _span(universe, rules.hours)
    keep &= (codes["time"] >= first) & (codes["time"] < last)
    return replace(source, index=source.index[keep], value=source.value[keep])


def _pair(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found:
        raise InputError(f"--only {text}: write it as dimension=value")
    return name, value


def _code(universe: Universe, name: str, value: str) -> int:
    if name not in universe.dimensions:
        raise InputError(f"--only {name}={value}: the trips have no dimension {name!r}")
    values = [str(v) for v in universe.dimension(name).values]
    if value not in values:
        raise InputError(f"--only {name}={value}: there are {', '.join(values[:10])}")
    return values.index(value)


def _span(universe: Universe, hours: str | None) -> tuple[int, int]:
    """The periods of the day that the hours cover, as a half-open range."""
    edges = period_edges(universe).tolist()
    if hours is None:
        return 0, len(edges) - 1
    begin, _, end = hours.partition("-")
    try:
        first, last = (edges.index(_second(t)) for t in (begin, end))
    except ValueError:
        raise InputError(
            f"--hours {hours}: write them as 08:00-10:00, at times where a period begins "
            f"({pages.clock(edges[0])} to {pages.clock(edges[-1])})"
        ) from None
    if first >= last:
        raise InputError(f"--hours {hours}: the end must lie after the start")
    return first, last


def _second(text: str) -> int:
    hour, minute = map(int, text.split(":"))
    return hour * 3600 + minute * 60


# City, riders, fleets


def city_of(rules: Rules) -> City:
    """The built-in city, one from CSV tables, or one from a GTFS feed (a folder or a zip)."""
    path = Path(rules.city)
    feed = path.is_dir() or path.suffix == ".zip"
    for option, needs in (("lines", not feed), ("times", not feed), ("zones", feed)):
        if getattr(rules, option) and (not needs or rules.city == BUILT_IN):
            kind = "a GTFS feed" if option == "zones" else "a table of stops (CSV)"
            raise InputError(f"--{option} belongs to {kind}: give --city one")
    if rules.city == BUILT_IN:
        return built_in()
    if feed:
        zones, hubs = _zones(Path(rules.zones)) if rules.zones else (None, None)
        return city_from_gtfs(path, zones=zones, hubs=hubs)
    return city_from_csv(path, rules.lines, rules.times)


def _zones(path: Path) -> tuple[dict[str, str], list[str] | None]:
    """The zone of every stop, and the hubs if the table marks any."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError):
        raise InputError(f"--zones {path}: the file cannot be read") from None
    if not rows or not {"stop", "zone"} <= rows[0].keys():
        raise InputError(f"--zones {path}: it needs the columns stop and zone, and rows")
    marked = [r["stop"] for r in rows if (r.get("hub") or "0").strip().lower() in ("1", "true", "yes")]
    return {r["stop"]: r["zone"] for r in rows}, marked or None


def _place(rules: Rules) -> tuple[City, Modes]:
    if rules.limit < 0 or rules.period < 0:
        raise InputError(f"--limit {rules.limit} --period {rules.period}: give seconds, not less than 0")
    _see_here()
    city = city_of(rules)
    return city, ModeRule().choose(city) if rules.modes is None else plugins.choose(city, rules.modes)


def _see_here() -> None:
    """Plug-ins may lie in the working folder, after everything installed."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def _riders(source: Source, city: City, modes: Modes, rules: Rules, seed: int) -> Legs:
    edges = period_edges(source.universe)
    first, last = _span(source.universe, rules.hours)
    hours = int(edges[first]), int(edges[last])
    few = source
    if (
        source.total > CROWD * SearchSizer.most_legs
    ):  # `sizing` says so; their list would only fill the memory
        few = replace(source, index=source.index[:0], value=source.value[:0])
    trips = spread(few.universe, few.index, few.value, city, seed=seed)
    return legs_of(replace(trips, hours=hours), modes)


def sizing(city: City, source: Source, riders: Legs, rules: Rules) -> Sizing:
    """The fleet of these riders by the chosen sizer, re-run by us."""
    if source.total > CROWD * SearchSizer.most_legs:
        return Sizing(None, None, f"{source.total:,} trips, more than {CROWD * SearchSizer.most_legs:,}")
    period = rules.period or None
    built = SearchSizer(rules.limit, period)
    return plugins.size(
        city,
        riders,
        built if rules.sizer in (None, BUILT_IN) else rules.sizer,
        limit=rules.limit,
        period=period,
        seconds=built.time_limit + 60,  # the search ends by itself, and says so
    )


def operated(city: City, fleet: Fleet, riders: Legs, rules: Rules, *, log: bool) -> Service:
    """A fleet on riders: by the simulator, or by the chosen dispatcher in the checking engine."""
    if rules.dispatcher in (None, BUILT_IN):
        return simulate(city, fleet, riders, Operations(), log=log)
    return plugins.dispatch(city, fleet, riders, rules.dispatcher)


# What is printed


def _mark(source: Source) -> None:
    if source.internal:
        print(INTERNAL)
    if source.note:
        print(source.note)


def _promise(rules: Rules) -> str:
    parts = "" if not rules.period else f", in each {rules.period / 60:g} minutes"
    return f"sized for a mean wait of at most {rules.limit} s in every zone{parts}"


def _hours(riders: Legs) -> str:
    return f"{pages.clock(riders.hours[0])}–{pages.clock(riders.hours[1])}"


def _print_quiet(city: City, riders: Legs) -> None:
    legs = np.bincount(riders.zone, minlength=len(city.zones))
    for z in np.flatnonzero(legs == 0):
        print(f"zone {city.zones[z]!r} has no shuttle legs, so it needs no shuttles")


def _cells(row: dict[str, float]) -> list[str]:
    return [_number(row[name], 1 if name in ("occupancy", "km") else 0) for name in SERVICE]


def _number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}" if math.isfinite(value) else "–"


def _signed(error: float) -> str:
    return f"{error:+.3f}" if math.isfinite(error) else "–"


def _print_comparison(
    city: City, ours: dict[str, dict[str, float]], original: dict[str, dict[str, float]]
) -> None:
    head, rows = ["zone"], []
    for name in COMPARED:
        head += [name, "real", "error"]
    for zone in (*city.zones, "total"):
        cells = [zone]
        for name in COMPARED:
            a, b = ours[zone][name], original[zone][name]
            cells += [_number(a), _number(b), _signed(relative(a, b))]
        rows.append([*cells, _number(ours[zone]["unserved"])])
    print_table([*head, "unserved"], rows)
    errors = [abs(relative(ours["total"][n], original["total"][n])) for n in COMPARED]
    shown = ", ".join(f"{n} {_number(e, 3)}" for n, e in zip(COMPARED, errors, strict=True))
    zones = [abs(relative(ours[z]["shuttles"], original[z]["shuttles"])) for z in city.zones]
    known = [e for e in zones if math.isfinite(e)]
    mean = _number(sum(known) / len(known), 3) if known else "–"
    print(f"Table 1, relative errors: {shown}; shuttles by zone, on average {mean}")


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns under their names: the first to the left, numbers to the right."""
    wide = [max(len(row[c]) for row in (head, *rows)) for c in range(len(head))]
    for row in (head, *rows):
        cells = [row[0].ljust(wide[0]), *(c.rjust(w) for c, w in zip(row[1:], wide[1:], strict=True))]
        print("  ".join(cells).rstrip())


def _page_path(page: str | None, *, internal: bool) -> Path | None:
    """Where the page goes; what is wrong with it is said before the work begins."""
    if page is None:
        return None
    path = Path(page).absolute()
    if path.exists():
        raise InputError(f"{page!r} exists: choose another place with --page")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} for the page: make it first")
    if internal and (path.parent / "manifest.json").exists():
        raise InputError(f"{page!r} lies in a release, and the page shows real trips: choose another place")
    return path


def _write_page(path: Path, html: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as out:
            out.write(html)
    except OSError as wrong:
        raise InputError(f"{str(path)!r} cannot be written ({wrong.strerror})") from None
    print(f"open {path}")


# The command line


def main(argv: Sequence[str]) -> int:
    """`cbdp fleet` with these arguments."""
    options = _parser().parse_args(argv)
    return int(options.run(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cbdp fleet", description="Shuttle fleets: do they work for the real riders?"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    one = commands.add_parser("size", help="size a fleet on a release, run it, print its service")
    one.add_argument("source", help="folder of a release, or a configuration (reads raw trips: internal)")
    one.set_defaults(run=lambda o: size(o.source, _rules(o), page=o.page))
    two = commands.add_parser("compare", help="a release's fleet on the real trips: the paper's Table 1 row")
    two.add_argument("release", help="folder of a release")
    two.add_argument(
        "--trips", required=True, metavar="CONFIG", help="the real trips: a configuration, Parquet or CSV"
    )
    two.set_defaults(run=lambda o: compare(o.release, o.trips, _rules(o), page=o.page))
    for command in (one, two):
        _add_rules(command)
    check = commands.add_parser("check-plugin", help="does a plug-in keep the rules? exit 1 if not")
    check.add_argument("kind", choices=sorted(plugins.METHODS))
    check.add_argument("name", help="package.module:attribute, an entry point, or command:…")
    check.add_argument("--seconds", type=float, default=60.0, help="for each answer (default: 60)")
    check.set_defaults(run=lambda o: check_plugin(o.kind, o.name, seconds=o.seconds))
    return parser


def _add_rules(parser: argparse.ArgumentParser) -> None:
    say = {
        "city": f"{BUILT_IN}, a table of stops (CSV: stop, zone, hub, x, y), or a GTFS folder or zip",
        "lines": "bus lines of a city from CSV: line, stop, headway",
        "times": "travel times of a city from CSV: from, to, seconds",
        "zones": "zones of a GTFS feed's stops: CSV with stop, zone, and optionally hub",
        "hours": "part of the day, as in 08:00-10:00",
        "sizer": "plug-in that sizes the fleet",
        "dispatcher": "plug-in that runs it",
        "modes": "plug-in that says how trips are served",
    }
    default = Rules()
    for name, words in say.items():
        parser.add_argument(f"--{name}", default=getattr(default, name), help=words)
    parser.add_argument(
        "--only", action="append", default=[], metavar="DIMENSION=VALUE", help="trips of one day, day type …"
    )
    parser.add_argument(
        "--limit", type=int, default=default.limit, help="mean wait in seconds (default: 180)"
    )
    parser.add_argument(
        "--period", type=int, default=PERIOD, help="in each so many seconds (default: 1800; 0: on the whole)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the seconds at which trips begin (default: 0)"
    )
    parser.add_argument("--page", metavar="HTML", help="also write a picture of the service")


def _rules(options: argparse.Namespace) -> Rules:
    given: dict[str, Any] = {name: getattr(options, name) for name in Rules.__dataclass_fields__}
    return Rules(**given)
