"""`cbdp fleet`: the options of a fleet, and the check of a plug-in. What sizes a fleet may be given real trips, and is in `cbdp.app.fleet`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cbdp.commands.program import FILE, argument, group, name_of, option

if TYPE_CHECKING:
    from cbdp.transit.fleets import FleetRules


@group("fleet")
def fleet() -> None:
    """Size shuttle fleets on a release, compare with the real trips."""


def _plugin_names(kind: str) -> list[str]:
    from cbdp.transit.plugins import PLUGIN_TABLES

    return list(PLUGIN_TABLES[kind].names())


def _built_in_city() -> str:
    from cbdp.transit.fleets import BUILT_IN

    return (
        f"a table of stops (CSV: stop, lat and lon or x and y, and optionally zone and hub), a GTFS folder or zip, or {BUILT_IN} (default: "
        "the stops of the release, with its zones; a hub in the middle of each, and a bus every 10 minutes between them)"
    )


def _units() -> str:
    from cbdp.transit.city import KM, KM_PER_UNIT

    return f"of x and y in a table of stops: {' or '.join(KM_PER_UNIT)} (default: {KM})"


def _driving(what: str, name: str) -> str:
    from cbdp.transit.city import URBAN_DRIVING, Driving

    usual, built_in = getattr(URBAN_DRIVING, name), getattr(Driving(), name)
    return f"{what} (default: {usual:g}; the built-in city: {built_in:g})"


def _default_rule(text: str, name: str) -> str:
    from cbdp.transit.fleets import FleetRules

    return text.format(getattr(FleetRules(), name))


COMMAND_OR_NAME = "package.module:attribute or command:…"
RULES = (
    option("--city", type=FILE, about=_built_in_city),
    option("--lines", type=FILE, about="bus lines of a city from CSV: line, stop, headway"),
    option("--times", type=FILE, about="travel times of a city from CSV: from, to, seconds"),
    option(
        "--zones", type=FILE, about="zones of a GTFS feed's stops: CSV with stop, zone, and optionally hub"
    ),
    option(
        "--date",
        about="service day of a GTFS feed, for example 2026-03-02 (default: the one with most trips)",
    ),
    option("--units", about=_units),
    option("--hours", about="part of the day, for example 08:00-10:00"),
    option(
        "--sizer",
        type=name_of(lambda: _plugin_names("sizer")),
        about=lambda: f"plug-in that sizes the fleet: {', '.join(_plugin_names('sizer'))}, {COMMAND_OR_NAME}",
    ),
    option(
        "--dispatcher",
        type=name_of(lambda: _plugin_names("dispatcher")),
        about=lambda: (
            f"plug-in that assigns riders to shuttles: {', '.join(_plugin_names('dispatcher'))}, {COMMAND_OR_NAME}"
        ),
    ),
    option(
        "--modes",
        type=name_of(lambda: _plugin_names("modes")),
        about=lambda: (
            f"plug-in that says how each trip is served: {', '.join(_plugin_names('modes'))} or package.module:attribute"
        ),
    ),
    option("--speed", type=float, about=lambda: _driving("of shuttles, in km/h", "speed")),
    option(
        "--detour",
        type=float,
        about=lambda: _driving("length of a way, as a multiple of the straight line", "detour"),
    ),
    option("--only", multiple=True, metavar="DIMENSION=VALUE", about="trips of one day, day type …"),
    option(
        "--limit",
        type=int,
        about=lambda: _default_rule("longest mean wait, in seconds (default: {})", "limit"),
    ),
    option(
        "--period",
        type=int,
        about=lambda: _default_rule(
            "length in seconds of the parts of the day that keep the limit (default: {}; 0: only the day as a whole)",
            "period",
        ),
    ),
    option("--seed", type=int, about="seed for the seconds at which trips begin (default: 0)"),
    option("--page", metavar="HTML", type=FILE, about="also write a picture of the service"),
)


def rules_options(command: Callable[..., int]) -> Callable[..., int]:
    """How a fleet is to serve, and where."""
    for decorated in reversed(RULES):
        command = decorated(command)
    return command


def rules_of(options: Mapping[str, Any]) -> FleetRules:
    from cbdp.transit.fleets import FleetRules

    return FleetRules(**{name: value for name, value in options.items() if value is not None})


def _plugin_kinds() -> list[str]:
    from cbdp.transit.plugins import PLUGIN_TABLES

    return sorted(PLUGIN_TABLES)


@fleet.command("check-plugin")
@argument("kind", lambda: ", ".join(_plugin_kinds()), type=name_of(_plugin_kinds))
@argument("name", "its name, package.module:attribute, or command:…")
@option("--seconds", type=float, default=60.0, about="limit for each answer (default: 60)")
def check_plugin(kind: str, name: str, seconds: float) -> int:
    """Does a plug-in keep the rules? Exit code 1 if not."""
    from cbdp.transit.fleets import see_working_folder
    from cbdp.transit.plugins import check_plugin as checked
    from cbdp.transit.plugins import conforms

    see_working_folder(name)
    checks = checked(kind, name, seconds=seconds)
    for check in checks:
        print(check)
    passed = conforms(checks)
    print(f"{name} {'conforms' if passed else 'does NOT conform'}: {kind}, {len(checks)} checks")
    return 0 if passed else 1
