"""Asking a plug-in: its answer is checked, and every figure is computed by us, so that no plug-in can flatter itself.

A plug-in is given by its name in the table of its kind (see `cbdp.transit`), as "package.module:attribute", as an object, or as
an external command (`Command`, or text that begins with "command:"). One that crashes, hangs or breaks a rule is a `PluginError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from cbdp.errors import InputError
from cbdp.parts import Parts, did_you_mean
from cbdp.transit import DESIGNERS, DISPATCHERS, MODE_CHOICES, SIZERS
from cbdp.transit.calling import PluginError, call
from cbdp.transit.city import City
from cbdp.transit.command import PREFIX, Command, part_of, write_problem
from cbdp.transit.demand import Legs
from cbdp.transit.design import Arc, Costs, Demand, Design, PathDesigner, network_cost, weakly_connected
from cbdp.transit.engine import operate
from cbdp.transit.fleet import SearchSizer, Sizing, serves
from cbdp.transit.modes import Itineraries
from cbdp.transit.plan import replay, visits_from_json
from cbdp.transit.simulator import Fleet, Operations, Service, by_zone, simulate

KINDS: Mapping[str, Parts[Any]] = {
    "designer": DESIGNERS, "sizer": SIZERS, "dispatcher": DISPATCHERS, "modes": MODE_CHOICES,
}  # fmt: skip
TABLES = ("mode", "access", "egress", "first_zone", "last_zone", "path")


def get(kind: str, plugin: Any = None) -> Any:
    """A plug-in of a kind ("designer", "sizer", "dispatcher" or "modes"); None means the first of its table."""
    if kind not in KINDS:
        raise InputError(f"unknown kind of plug-in {kind!r}: {did_you_mean(kind, list(KINDS))}")
    parts = KINDS[kind]
    if plugin is None:
        plugin = next(iter(parts.table))
    if isinstance(plugin, str) and plugin.startswith(PREFIX):
        plugin = Command.parse(plugin)
    return parts.get(plugin)


def design(
    city: City, demand: Demand, designer: Any = None, *, costs: Costs | None = None, seconds: float = 600.0
) -> Design:
    """A designer's network, its arcs checked and its cost computed by us."""
    plugin, chosen = get("designer", designer), costs or Costs()
    if isinstance(plugin, Command):
        answer = plugin.run(
            lambda folder: write_problem(folder, "designer", city, demand=demand, rules=asdict(chosen))
        )
        given = [(city.code(str(a)), city.code(str(b))) for a, b in part_of(answer, "arcs", list)]
    else:
        given = call("design", seconds, plugin.design, city, demand)
    claimed = given if isinstance(given, Design) else None
    arcs = [(int(a), int(b)) for a, b in (given.arcs if isinstance(given, Design) else given)]
    cost = network_cost(city, demand, _between_hubs(city, arcs), chosen)
    ours = isinstance(plugin, PathDesigner) and plugin.costs == chosen  # anybody else's bound proves nothing
    bound = claimed.bound if claimed and ours else -np.inf
    return Design(tuple(arcs), cost, min(bound, cost), claimed.status if claimed else "as given")


def _between_hubs(city: City, arcs: Sequence[Arc]) -> list[Arc]:
    """Arcs by the places of their hubs in the list of hubs, if buses can run on them."""
    place = {int(h): k for k, h in enumerate(city.hubs)}
    for a, b in arcs:
        if a not in place or b not in place or a == b:
            raise PluginError("answer", f"the arc {a}–{b} does not join two hubs")
    local = sorted({(place[a], place[b]) for a, b in arcs})
    if not weakly_connected(local, len(place)):
        raise PluginError(
            "connectivity", "a hub has more arcs in than out, or more out than in: buses would pile up"
        )
    return local


def size(
    city: City,
    legs: Legs,
    sizer: Any = None,
    *,
    operations: Operations | None = None,
    limit: int = 180,
    period: int | None = None,
    seconds: float = 600.0,
) -> Sizing:
    """A sizer's fleet, run by us: one that does not keep the limit is an error that says where."""
    rules = operations or Operations()
    plugin = get("sizer", sizer)
    if (
        isinstance(plugin, SearchSizer) and plugin is not sizer
    ):  # ours by its name: it searches for this limit
        plugin = replace(plugin, limit=limit, period=period)
    if isinstance(plugin, Command):
        more = {**asdict(rules), "limit": limit, "period": period}
        answer = plugin.run(lambda folder: write_problem(folder, "sizer", city, legs=legs, rules=more))
        given: Any = _by_zone(city, part_of(answer, "fleet", dict))
    else:
        given = call("size", seconds, plugin.size, city, legs, rules)
    if isinstance(given, Sizing):
        if given.fleet is None:
            return given
        given = given.fleet
    try:
        fleet = given if isinstance(given, Fleet) else Fleet(tuple(given))
        service = simulate(city, fleet, legs, rules)
    except (TypeError, InputError) as failure:
        raise PluginError("answer", f"the fleet makes no sense: {failure}") from None
    _check_service(city, service, limit, period)
    return Sizing(fleet, service)


def _by_zone(city: City, numbers: Mapping[str, Any]) -> list[Any]:
    if missing := [z for z in city.zones if z not in numbers]:
        raise PluginError("answer", f"plan.json has no shuttles for zone {missing[0]!r}")
    return [numbers[z] for z in city.zones]


def _check_service(city: City, service: Service, limit: int, period: int | None) -> None:
    wait, served, unserved = by_zone(service, len(city.zones))
    for z, fine in enumerate(serves(service, len(city.zones), limit, period)):
        if not fine:
            mean = wait[z] / served[z] if served[z] else float("nan")
            raise PluginError(
                "service",
                f"zone {city.zones[z]!r} has a mean wait of {mean:.0f} s (limit {limit}) and {unserved[z]} unserved legs",
            )


def dispatch(
    city: City,
    fleet: Fleet,
    legs: Legs,
    dispatcher: Any = None,
    *,
    operations: Operations | None = None,
    seconds: float = 60.0,
) -> Service:
    """Run a dispatcher in the checking engine, or replay the plan of an external one."""
    rules = operations or Operations()
    plugin = get("dispatcher", dispatcher)
    if not isinstance(plugin, Command):
        return operate(city, fleet, legs, plugin, rules, patience=seconds)
    starts = [city.names[s] for s in fleet.starts(city)]
    more = {**asdict(rules), "shuttles": list(fleet.shuttles), "starts": starts}
    answer = plugin.run(lambda folder: write_problem(folder, "dispatcher", city, legs=legs, rules=more))
    return replay(city, fleet, legs, visits_from_json(city, answer), rules)


def choose(city: City, modes: Any = None, *, seconds: float = 600.0) -> Itineraries:
    """The itineraries of a mode choice, if each leads from its origin to its destination and a second call repeats them."""
    plugin = get("modes", modes)
    made = call("choose", seconds, plugin.choose, city)
    again = call("choose", seconds, plugin.choose, city)
    if not isinstance(made, Itineraries):
        raise PluginError("answer", f"a mode choice returns Itineraries, not {type(made).__name__}")
    shape = (len(made.slots), len(city), len(city))
    for name in TABLES:
        table = getattr(made, name)
        if np.shape(table) != shape:
            raise PluginError(
                "answer", f"the table {name!r} has the shape {np.shape(table)}: this city needs {shape}"
            )
        if not np.array_equal(table, getattr(again, name)):
            raise PluginError(
                "determinism",
                f"a second call gave another table {name!r}: modes must be a public function of the city",
            )
    _check_itineraries(city, made)
    return made


def _check_itineraries(city: City, made: Itineraries) -> None:
    n = len(city)
    o, d = np.broadcast_arrays(np.arange(n)[:, None], np.arange(n))
    first = np.array([p[0].board for p in made.paths] or [-1])
    last = np.array([p[-1].alight for p in made.paths] or [-1])
    for slot in range(len(made.slots)):
        access, egress, path = made.access[slot], made.egress[slot], made.path[slot]
        at = np.where(access >= 0, access, o)
        to = np.where(egress >= 0, egress, d)
        ride = path >= 0
        joins = np.where(
            ride, (first[path] == at) & (last[path] == to), (at == to) | ((access < 0) & (egress < 0))
        )
        zoned = (access < 0) | ((made.first_zone[slot] >= 0) & (made.first_zone[slot] < len(city.zones)))
        zoned &= (egress < 0) | ((made.last_zone[slot] >= 0) & (made.last_zone[slot] < len(city.zones)))
        moves = ((access < 0) | (access != o)) & ((egress < 0) | (egress != d))
        for rule, fine in (("movement", joins), ("zone", zoned), ("movement", moves)):
            if not fine.all():
                a, b = (int(c) for c in np.argwhere(~fine)[0])
                raise PluginError(
                    rule, f"the itinerary from {city.names[a]!r} to {city.names[b]!r} does not hold together"
                )
