"""Asking a plug-in: its answer is checked, and every figure is computed by us, so that no plug-in can flatter itself.

A plug-in is given by its name in the table of its kind (see `cbdp.transit`), as "package.module:attribute", as an object, or as an external
command (`Command`, or text that begins with "command:"). One that crashes, hangs or breaks a rule is a `PluginError`.

A dispatching program is given all legs at once, and its plan is replayed visit by visit (`replay`). Such a plan knows the future: its
figures show what is possible, and cannot be compared with those of a real-time dispatcher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from cbdp.errors import InputError
from cbdp.parts import Parts, did_you_mean
from cbdp.transit import DESIGNERS, DISPATCHERS, MODE_CHOICES, SIZERS
from cbdp.transit.city import City
from cbdp.transit.demand import Legs
from cbdp.transit.design import Arc, Costs, Demand, Design, PathDesigner, network_cost, weakly_connected
from cbdp.transit.dispatching import operate
from cbdp.transit.fleet_sizing import SearchSizer, Sizing, zones_within_limit
from cbdp.transit.interfaces import COMMAND_PREFIX, Command, PluginError, answer_entry, call, write_problem
from cbdp.transit.modes import Itineraries
from cbdp.transit.simulator import (
    ARRIVES,
    DROPPED_OFF,
    PICKED_UP,
    Fleet,
    Operations,
    Service,
    bus_arrival,
    service_of_outcome,
    simulate,
    totals_by_zone,
)

PLUGIN_TABLES: Mapping[str, Parts[Any]] = {
    "designer": DESIGNERS, "sizer": SIZERS, "dispatcher": DISPATCHERS, "modes": MODE_CHOICES,
}  # fmt: skip
ITINERARY_ARRAYS = ("mode", "access", "egress", "first_zone", "last_zone", "path")


def get(kind: str, plugin: Any = None) -> Any:
    """A plug-in of a kind ("designer", "sizer", "dispatcher" or "modes"); None means the first of its table."""
    if kind not in PLUGIN_TABLES:
        raise InputError(f"unknown kind of plug-in {kind!r}: {did_you_mean(kind, list(PLUGIN_TABLES))}")
    parts = PLUGIN_TABLES[kind]
    if plugin is None:
        plugin = next(iter(parts.table))
    if isinstance(plugin, str) and plugin.startswith(COMMAND_PREFIX):
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
        proposal = [(city.code(str(a)), city.code(str(b))) for a, b in answer_entry(answer, "arcs", list)]
    else:
        proposal = call("design", seconds, plugin.design, city, demand)
    claimed = proposal if isinstance(proposal, Design) else None
    arcs = [(int(a), int(b)) for a, b in (proposal.arcs if isinstance(proposal, Design) else proposal)]
    cost = network_cost(city, demand, _between_hubs(city, arcs), chosen)
    ours = isinstance(plugin, PathDesigner) and plugin.costs == chosen  # anybody else's bound proves nothing
    bound = claimed.bound if claimed and ours else -np.inf
    return Design(tuple(arcs), cost, min(bound, cost), claimed.status if claimed else "as given")


def _between_hubs(city: City, arcs: Sequence[Arc]) -> list[Arc]:
    """Arcs by the places of their hubs in the list of hubs, if buses can run on them."""
    position = {int(h): k for k, h in enumerate(city.hubs)}
    for a, b in arcs:
        if a not in position or b not in position or a == b:
            raise PluginError("answer", f"the arc {a}–{b} does not join two hubs")
    local = sorted({(position[a], position[b]) for a, b in arcs})
    if not weakly_connected(local, len(position)):
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
        proposal: Any = _by_zone(city, answer_entry(answer, "fleet", dict))
    else:
        proposal = call("size", seconds, plugin.size, city, legs, rules)
    if isinstance(proposal, Sizing):
        if proposal.fleet is None:
            return proposal
        proposal = proposal.fleet
    try:
        fleet = proposal if isinstance(proposal, Fleet) else Fleet(tuple(proposal))
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
    wait, served, unserved = totals_by_zone(service, len(city.zones))
    for z, fine in enumerate(zones_within_limit(service, len(city.zones), limit, period)):
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
    itineraries = call("choose", seconds, plugin.choose, city)
    repeated = call("choose", seconds, plugin.choose, city)
    if not isinstance(itineraries, Itineraries):
        raise PluginError("answer", f"a mode choice returns Itineraries, not {type(itineraries).__name__}")
    shape = (len(itineraries.slots), len(city), len(city))
    for name in ITINERARY_ARRAYS:
        table = getattr(itineraries, name)
        if np.shape(table) != shape:
            raise PluginError(
                "answer", f"the table {name!r} has the shape {np.shape(table)}: this city needs {shape}"
            )
        if not np.array_equal(table, getattr(repeated, name)):
            raise PluginError(
                "determinism",
                f"a second call gave another table {name!r}: modes must be a public function of the city",
            )
    _check_itineraries(city, itineraries)
    return itineraries


def _check_itineraries(city: City, itineraries: Itineraries) -> None:
    n = len(city)
    o, d = np.broadcast_arrays(np.arange(n)[:, None], np.arange(n))
    first = np.array([p[0].board for p in itineraries.paths] or [-1])
    last = np.array([p[-1].alight for p in itineraries.paths] or [-1])
    for slot in range(len(itineraries.slots)):
        access, egress, path = itineraries.access[slot], itineraries.egress[slot], itineraries.path[slot]
        at = np.where(access >= 0, access, o)
        to = np.where(egress >= 0, egress, d)
        ride = path >= 0
        joins = np.where(
            ride, (first[path] == at) & (last[path] == to), (at == to) | ((access < 0) & (egress < 0))
        )
        zoned = (access < 0) | (
            (itineraries.first_zone[slot] >= 0) & (itineraries.first_zone[slot] < len(city.zones))
        )
        zoned &= (egress < 0) | (
            (itineraries.last_zone[slot] >= 0) & (itineraries.last_zone[slot] < len(city.zones))
        )
        moves = ((access < 0) | (access != o)) & ((egress < 0) | (egress != d))
        for rule, fine in (("movement", joins), ("zone", zoned), ("movement", moves)):
            if not fine.all():
                a, b = (int(c) for c in np.argwhere(~fine)[0])
                raise PluginError(
                    rule, f"the itinerary from {city.names[a]!r} to {city.names[b]!r} does not hold together"
                )


# A plan made ahead, replayed visit by visit


@dataclass(frozen=True)
class Visit:
    """A shuttle at a stop at a second of the day: the legs dropped off, then the legs picked up.

    >>> Visit(shuttle=0, second=60, stop=2, pick=(0,)).pick
    (0,)
    """

    shuttle: int
    second: int
    stop: int
    drop: tuple[int, ...] = ()
    pick: tuple[int, ...] = ()


def replay(city: City, fleet: Fleet, legs: Legs, visits: Sequence[Visit], operations: Operations) -> Service:
    """What happens when shuttles make these visits; an error names the broken rule, the shuttle and the second.

    Shuttles are at their depots when the hours begin. Legs that no visit picks up are unserved.

    >>> import numpy as np
    >>> from cbdp.transit import ModeRule, Operations, Trips, legs_of, make_city, simulate
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> riders = Trips(np.array([0, 2]), np.array([1, 0]), np.array([60, 120]), (0, 3600))
    >>> legs = legs_of(riders, ModeRule().choose(city))
    >>> run = simulate(city, [1], legs, log=True)
    >>> again = replay(city, run.fleet, legs, visits_of(run), Operations())
    >>> again.drop.tolist() == run.drop.tolist()
    True
    """
    ordered = sorted(visits, key=lambda v: (v.second, v.shuttle))
    for visit in ordered:
        _check_names(city, fleet, legs, visit)
    return _Replay(city, fleet, legs, operations).run(ordered)


def _check_names(city: City, fleet: Fleet, legs: Legs, visit: Visit) -> None:
    if not 0 <= visit.shuttle < fleet.total:
        raise PluginError("answer", f"there is no shuttle {visit.shuttle}", second=visit.second)
    if not 0 <= visit.stop < len(city):
        raise PluginError(
            "answer", f"there is no stop {visit.stop}", shuttle=visit.shuttle, second=visit.second
        )
    for leg in (*visit.drop, *visit.pick):
        if not 0 <= leg < len(legs):
            raise PluginError("answer", f"there is no leg {leg}", shuttle=visit.shuttle, second=visit.second)


class _Replay:
    def __init__(self, city: City, fleet: Fleet, legs: Legs, rules: Operations) -> None:
        self.city, self.fleet, self.legs, self.rules, self.hop = city, fleet, legs, rules, rules.hop(city)
        self.zone = np.repeat(np.arange(len(city.zones)), fleet.shuttles)
        self.at = {v: (legs.hours[0], int(s)) for v, s in enumerate(fleet.starts(city))}
        self.on_board: dict[int, set[int]] = {v: set() for v in self.at}
        self.release = legs.release.copy()
        self.pickup, self.drop, self.shuttle = (np.full(len(legs), -1, np.int64) for _ in range(3))
        self.metres = np.zeros(fleet.total, np.int64)
        self.busy: list[list[tuple[int, int]]] = [[] for _ in self.at]
        self.log: list[tuple[int, int, int, int, int]] = []
        self.follower = legs.next

    def run(self, visits: Sequence[Visit]) -> Service:
        for visit in visits:
            self._move(visit)
            for leg in visit.drop:
                self._drop(visit, leg)
            for leg in visit.pick:
                self._pick(visit, leg)
        for v, riders in self.on_board.items():
            if riders:
                raise PluginError("riders", f"leg {min(riders)} is never dropped off", shuttle=v)
        rows = np.array(self.log, dtype=np.int64).reshape(-1, 5)
        outcome = (self.release, self.pickup, self.drop, self.shuttle)
        return service_of_outcome(self.fleet, self.legs, outcome, self.metres, self.busy, rows)

    def _broken(self, visit: Visit, rule: str, message: str) -> PluginError:
        return PluginError(rule, message, shuttle=visit.shuttle, second=visit.second)

    def _move(self, visit: Visit) -> None:
        since, stop = self.at[visit.shuttle]
        takes = int(self.hop[stop, visit.stop])
        if visit.second - since < takes:
            names = self.city.names
            raise self._broken(
                visit,
                "movement",
                f"it left {names[stop]!r} at {since} and it takes {takes} s to {names[visit.stop]!r}, not {visit.second - since}",
            )
        self.at[visit.shuttle] = visit.second, visit.stop
        if takes:
            self.metres[visit.shuttle] += self.city.metres[stop, visit.stop]
            self.busy[visit.shuttle].append((visit.second - takes, visit.second))
            self.log.append((visit.second, ARRIVES, visit.shuttle, -1, visit.stop))

    def _pick(self, visit: Visit, leg: int) -> None:
        legs = self.legs
        if legs.origin[leg] != visit.stop:
            raise self._broken(
                visit, "movement", f"leg {leg} begins at {self.city.names[int(legs.origin[leg])]!r}, not here"
            )
        if legs.zone[leg] != self.zone[visit.shuttle]:
            raise self._broken(visit, "zone", f"leg {leg} belongs to another zone")
        if self.pickup[leg] >= 0:
            raise self._broken(visit, "precedence", f"leg {leg} is picked up a second time")
        if self.release[leg] < 0 or self.release[leg] > visit.second:
            when = (
                "waits for an earlier leg" if self.release[leg] < 0 else f"is released at {self.release[leg]}"
            )
            raise self._broken(visit, "release", f"leg {leg} is picked up too early: it {when}")
        if visit.second - self.release[leg] > self.rules.patience:
            raise self._broken(visit, "patience", f"leg {leg} waited longer than {self.rules.patience} s")
        riders = self.on_board[visit.shuttle]
        riders.add(leg)
        if len(riders) > self.rules.capacity:
            raise self._broken(
                visit,
                "capacity",
                f"{len(riders)} riders are on board, the shuttle holds {self.rules.capacity}",
            )
        self.pickup[leg], self.shuttle[leg] = visit.second, visit.shuttle
        self.log.append((visit.second, PICKED_UP, visit.shuttle, leg, visit.stop))

    def _drop(self, visit: Visit, leg: int) -> None:
        legs = self.legs
        if leg not in self.on_board[visit.shuttle]:
            raise self._broken(visit, "precedence", f"leg {leg} is dropped off but is not on board")
        if legs.destination[leg] != visit.stop:
            raise self._broken(
                visit,
                "movement",
                f"leg {leg} ends at {self.city.names[int(legs.destination[leg])]!r}, not here",
            )
        lasted = visit.second - int(self.pickup[leg])
        most = int(self.rules.longest_ride(self.hop[legs.origin[leg], legs.destination[leg]]))
        if lasted > most:
            raise self._broken(
                visit, "ride", f"leg {leg} was on board for {lasted} s: at most {most} s are allowed"
            )
        self.on_board[visit.shuttle].discard(leg)
        self.drop[leg] = visit.second
        self.log.append((visit.second, DROPPED_OFF, visit.shuttle, leg, visit.stop))
        later = int(self.follower[leg])
        if later >= 0:
            self.release[later] = bus_arrival(legs, later, visit.second)


def visits_of(service: Service) -> list[Visit]:
    """The visits of a run that has a log, as a plan.

    >>> import numpy as np
    >>> from cbdp.transit import ModeRule, Trips, legs_of, make_city, simulate
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> riders = Trips(np.array([0, 2]), np.array([1, 0]), np.array([60, 120]), (0, 3600))
    >>> legs = legs_of(riders, ModeRule().choose(city))
    >>> len(visits_of(simulate(city, [1], legs, log=True)))
    4
    """
    by_visit: dict[tuple[int, int, int], tuple[list[int], list[int]]] = {}
    rows: list[list[int]] = [] if service.log is None else service.log.tolist()
    for second, kind, shuttle, leg, stop in rows:
        if kind in (PICKED_UP, DROPPED_OFF):
            drop, pick = by_visit.setdefault((shuttle, second, stop), ([], []))
            (pick if kind == PICKED_UP else drop).append(leg)
    return [Visit(v, s, stop, tuple(d), tuple(p)) for (v, s, stop), (d, p) in by_visit.items()]


def visits_from_json(city: City, document: Any) -> list[Visit]:
    """The visits of a `plan.json`: {"visits": [{"shuttle": 0, "second": 28800, "stop": "S001", "drop": [], "pick": [3]}]}."""
    try:
        rows = document["visits"]
        return [
            Visit(
                int(r["shuttle"]), int(r["second"]), city.code(str(r["stop"])),
                tuple(int(q) for q in r.get("drop", ())), tuple(int(q) for q in r.get("pick", ())),
            )
            for r in rows
        ]  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as failure:
        raise PluginError(
            "answer", f"plan.json has no valid visits ({failure!r}): see `visits_from_json`"
        ) from None
