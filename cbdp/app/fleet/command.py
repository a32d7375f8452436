"""The command line of `cbdp fleet`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from cbdp.app.fleet.comparing import compare
from cbdp.app.fleet.rules import BUILT_IN, PERIOD, FleetRules, see_working_folder
from cbdp.app.fleet.sizing import size
from cbdp.transit import plugins
from cbdp.transit.city import Driving
from cbdp.transit.conformance import check_plugin, conforms
from cbdp.transit.placing import IN_TOWN
from cbdp.transit.units import KM, UNITS

ABOUT = {
    "city": "a table of stops (CSV: stop, lat and lon or x and y, and optionally zone and hub), a GTFS folder or zip, or "
    f"{BUILT_IN} (default: the stops of the release, with its zones; a hub in the middle of each, and a bus every 10 minutes "
    "between them)",
    "lines": "bus lines of a city from CSV: line, stop, headway",
    "times": "travel times of a city from CSV: from, to, seconds",
    "zones": "zones of a GTFS feed's stops: CSV with stop, zone, and optionally hub",
    "units": f"of x and y in a table of stops: {' or '.join(UNITS)} (default: {KM})",
    "hours": "part of the day, for example 08:00-10:00",
}
NUMBERS = {
    "speed": f"of shuttles, in km/h (default: {IN_TOWN.speed:g}; the built-in city: {Driving().speed:g})",
    "detour": f"length of a way, as a multiple of the straight line (default: {IN_TOWN.detour:g}; the built-in city: "
    f"{Driving().detour:g})",
}
PLUGINS = {
    "sizer": "plug-in that sizes the fleet: {}, package.module:attribute or command:…",
    "dispatcher": "plug-in that assigns riders to shuttles: {}, package.module:attribute or command:…",
    "modes": "plug-in that says how each trip is served: {} or package.module:attribute",
}


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
    one.add_argument("source", help="folder of a release, or a configuration (reads real trips: internal)")
    one.set_defaults(run=lambda o: size(o.source, _rules(o), page=o.page))
    two = commands.add_parser("compare", help="a release's fleet on the real trips: the paper's Table 1 row")
    two.add_argument("release", help="folder of a release")
    two.add_argument(
        "--trips", required=True, metavar="CONFIG", help="the real trips: a configuration, Parquet or CSV"
    )
    two.set_defaults(run=lambda o: compare(o.release, o.trips, _rules(o), page=o.page))
    for command in (one, two):
        _add_rules(command)
    check = commands.add_parser("check-plugin", help="does a plug-in keep the rules? exit code 1 if not")
    check.add_argument("kind", choices=sorted(plugins.KINDS))
    check.add_argument("name", help="its name, package.module:attribute, or command:…")
    check.add_argument("--seconds", type=float, default=60.0, help="limit for each answer (default: 60)")
    check.set_defaults(run=lambda o: print_checks(o.kind, o.name, seconds=o.seconds))
    return parser


def _add_rules(parser: argparse.ArgumentParser) -> None:
    default = FleetRules()
    for name, words in ABOUT.items():
        parser.add_argument(f"--{name}", default=getattr(default, name), help=words)
    for name, words in PLUGINS.items():
        parser.add_argument(f"--{name}", help=words.format(", ".join(plugins.KINDS[name].names())))
    for name, words in NUMBERS.items():
        parser.add_argument(f"--{name}", type=float, help=words)
    parser.add_argument(
        "--only", action="append", default=[], metavar="DIMENSION=VALUE", help="trips of one day, day type …"
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=default.limit,
        help=f"longest mean wait, in seconds (default: {default.limit})",
    )
    parser.add_argument(
        "--period",
        type=int,
        default=PERIOD,
        help=f"length in seconds of the parts of the day that keep the limit (default: {PERIOD}; 0: only the day as a whole)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed for the seconds at which trips begin (default: 0)"
    )
    parser.add_argument("--page", metavar="HTML", help="also write a picture of the service")


def _rules(options: argparse.Namespace) -> FleetRules:
    given: dict[str, Any] = {name: getattr(options, name) for name in FleetRules.__dataclass_fields__}
    return FleetRules(**given)


def print_checks(kind: str, name: str, *, seconds: float = 60.0) -> int:
    """Print every check of the conformance kit; 1 if any failed."""
    see_working_folder(name)
    checks = check_plugin(kind, name, seconds=seconds)
    for check in checks:
        print(check)
    passed = conforms(checks)
    print(f"{name} {'conforms' if passed else 'does NOT conform'}: {kind}, {len(checks)} checks")
    return 0 if passed else 1
