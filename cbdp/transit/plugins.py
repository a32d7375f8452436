"""Asking a plug-in: its answer is checked, and every figure is computed by us, so that no plug-in can flatter itself; and the conformance kit.

A plug-in is given by its name in the table of its kind (see `cbdp.transit`), as "package.module:attribute", as an object, or as an external
command (`Command`, or text that begins with "command:"). One that crashes, hangs or breaks a rule is a `PluginError`.

A dispatching program is given all legs at once, and its plan is replayed visit by visit (`replay`). Such a plan knows the future: its
figures show what is possible, and cannot be compared with those of a real-time dispatcher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Any, TypeVar

import numpy as np

from cbdp.errors import CbdpError, InputError
from cbdp.parts import Parts, did_you_mean
from cbdp.transit import DESIGNERS, DISPATCHERS, MODE_CHOICES, SIZERS
from cbdp.transit.city import City, Driving, Line, make_city
from cbdp.transit.design import Arc, Costs, Demand, Design, PathDesigner, is_balanced, network_cost
from cbdp.transit.dispatching import operate, replay, visits_from_json
from cbdp.transit.fleet_sizing import SearchSizer, Sizing, zones_within_limit
from cbdp.transit.interfaces import COMMAND_PREFIX, Command, PluginError, answer_entry, call, write_problem
from cbdp.transit.modes import Itineraries, Legs, ModeRule, Trips, legs_of
from cbdp.transit.simulator import Fleet, Operations, Service, simulate, totals_by_zone

PLUGIN_TABLES: Mapping[str, Parts[Any]] = {
    "designer": DESIGNERS, "sizer": SIZERS, "dispatcher": DISPATCHERS, "modes": MODE_CHOICES,
}  # fmt: skip
T = TypeVar("T")
ITINERARY_ARRAYS = ("mode", "access", "egress", "first_zone", "last_zone", "path")


def get(kind: str, plugin: object = None) -> object:
    """A plug-in of a kind ("designer", "sizer", "dispatcher" or "modes"); None means the first of its table."""
    if kind not in PLUGIN_TABLES:
        raise InputError(f"unknown kind of plug-in {kind!r}: {did_you_mean(kind, list(PLUGIN_TABLES))}")
    return _plugin(PLUGIN_TABLES[kind], plugin)


def _plugin(parts: Parts[T], plugin: object) -> T:
    if plugin is None:
        plugin = next(iter(parts.table))
    if isinstance(plugin, str) and plugin.startswith(COMMAND_PREFIX):
        plugin = Command.parse(plugin)
    return parts.get(plugin)


def design(
    city: City, demand: Demand, designer: object = None, *, costs: Costs | None = None, seconds: float = 600.0
) -> Design:
    """A designer's network, its arcs checked and its cost computed by us."""
    plugin, chosen = _plugin(DESIGNERS, designer), costs or Costs()
    if isinstance(plugin, Command):
        answer = plugin.run(
            lambda folder: write_problem(folder, "designer", city, demand=demand, rules=asdict(chosen))
        )
        claimed, arcs = None, _arcs(answer_entry(answer, "arcs", list), lambda stop: city.code(str(stop)))
    else:
        proposal = call("design", seconds, plugin.design, city, demand)
        claimed = proposal if isinstance(proposal, Design) else None
        arcs = _arcs(proposal.arcs if isinstance(proposal, Design) else proposal, int)
    _check_arcs(city, arcs)
    cost = network_cost(city, demand, sorted(arcs), chosen)
    ours = isinstance(plugin, PathDesigner) and plugin.costs == chosen  # anybody else's bound proves nothing
    bound = claimed.bound if claimed and ours else -np.inf
    return Design(tuple(arcs), cost, min(bound, cost), claimed.status if claimed else "as given")


def _arcs(answer: object, stop: Callable[[Any], int]) -> list[Arc]:
    """The arcs of an answer in their order, each once."""
    arcs: dict[Arc, None] = {}
    proposed: Iterable[Any] = answer if isinstance(answer, Iterable) else [answer]
    for arc in proposed:
        try:
            a, b = arc
            arcs[stop(a), stop(b)] = None
        except (TypeError, ValueError, InputError) as failure:
            raise PluginError("answer", f"the arc {arc!r} is no pair of stops: {failure}") from None
    return list(arcs)


def _check_arcs(city: City, arcs: Sequence[Arc]) -> None:
    """Refuse arcs that buses cannot run on."""
    hubs = set(city.hubs.tolist())
    for a, b in arcs:
        if a not in hubs or b not in hubs or a == b:
            raise PluginError("answer", f"the arc {a}–{b} does not join two hubs")
    if not is_balanced(arcs):
        raise PluginError(
            "connectivity", "a hub has more arcs in than out, or more out than in: buses would pile up"
        )


def size(
    city: City,
    legs: Legs,
    sizer: object = None,
    *,
    operations: Operations | None = None,
    limit: int = 180,
    period: int | None = None,
    seconds: float = 600.0,
) -> Sizing:
    """A sizer's fleet, run by us: one that does not keep the limit is an error that says where."""
    rules = operations or Operations()
    plugin = _plugin(SIZERS, sizer)
    if (
        isinstance(plugin, SearchSizer) and plugin is not sizer
    ):  # ours by its name: it searches for this limit
        plugin = replace(plugin, limit=limit, period=period)
    if isinstance(plugin, Command):
        more = {**asdict(rules), "limit": limit, "period": period}
        answer = plugin.run(lambda folder: write_problem(folder, "sizer", city, legs=legs, rules=more))
        proposal: Sizing | Fleet | Sequence[int] = _by_zone(city, answer_entry(answer, "fleet", dict))
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


def _by_zone(city: City, numbers: Mapping[str, int]) -> list[int]:
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
    dispatcher: object = None,
    *,
    operations: Operations | None = None,
    seconds: float = 60.0,
) -> Service:
    """Run a dispatcher in the checking engine, or replay the plan of an external one."""
    rules = operations or Operations()
    plugin = _plugin(DISPATCHERS, dispatcher)
    if not isinstance(plugin, Command):
        return operate(city, fleet, legs, plugin, rules, patience=seconds)
    starts = [city.names[s] for s in fleet.starts(city)]
    more = {**asdict(rules), "shuttles": list(fleet.shuttles), "starts": starts}
    answer = plugin.run(lambda folder: write_problem(folder, "dispatcher", city, legs=legs, rules=more))
    return replay(city, fleet, legs, visits_from_json(city, answer), rules)


def choose(city: City, modes: object = None, *, seconds: float = 600.0) -> Itineraries:
    """The itineraries of a mode choice, if each leads from its origin to its destination and a second call repeats them."""
    plugin = _plugin(MODE_CHOICES, modes)
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
    check_itineraries(city, itineraries)
    return itineraries


def check_itineraries(city: City, itineraries: Itineraries) -> None:
    """Refuse itineraries whose shuttles and buses do not meet, or do not lead from the origin to the destination."""
    n, zones = len(city), len(city.zones)
    o, d = np.broadcast_arrays(np.arange(n)[:, None], np.arange(n))
    board = np.array([p[0].board for p in itineraries.paths] or [-1])
    alight = np.array([p[-1].alight for p in itineraries.paths] or [-1])
    for slot in range(len(itineraries.slots)):
        access, egress, path = itineraries.access[slot], itineraries.egress[slot], itineraries.path[slot]
        first, last = itineraries.first_zone[slot], itineraries.last_zone[slot]
        start, end = np.where(access >= 0, access, o), np.where(egress >= 0, egress, d)
        joins = np.where(
            path >= 0,
            (board[path] == start) & (alight[path] == end),
            (start == end) | ((access < 0) & (egress < 0)),
        )
        zoned = ((access < 0) | ((first >= 0) & (first < zones))) & (
            (egress < 0) | ((last >= 0) & (last < zones))
        )
        moves = ((access < 0) | (access != o)) & ((egress < 0) | (egress != d))
        for rule, kept in (("movement", joins), ("zone", zoned), ("movement", moves)):
            if not kept.all():
                a, b = (int(c) for c in np.argwhere(~kept)[0])
                raise PluginError(
                    rule, f"the itinerary from {city.names[a]!r} to {city.names[b]!r} does not hold together"
                )


# The conformance kit: does a plug-in keep the rules? Small fixed cases, and for each the reason why it fails, in words
#
# A dispatcher is also run twice, on legs that agree up to some second and differ after it. Its decisions up to that second must
# agree: one that reads the future gives itself away, however it does it.


RULES = Operations(capacity=3, patience=1800)


@dataclass(frozen=True)
class Check:
    """One check: what it was, whether it passed, and why not.

    >>> Check("answers in time", passed=False, reason="no answer within 60 s").reason
    'no answer within 60 s'
    """

    name: str
    passed: bool
    reason: str = ""

    def __str__(self) -> str:
        return f"{'pass' if self.passed else 'FAIL'}  {self.name}" + (
            f": {self.reason}" if self.reason else ""
        )


def check_plugin(kind: str, plugin: object, *, seconds: float = 60.0) -> list[Check]:
    """All checks of a plug-in of a kind ("designer", "sizer", "dispatcher" or "modes"), with `seconds` for each answer.

    >>> from cbdp.transit import ModeRule
    >>> all(check.passed for check in check_plugin("modes", ModeRule()))
    True
    """
    checks: list[Check] = []
    for name, check in _checks_of_kind(kind, get(kind, plugin), seconds):
        try:
            reason = check()
        except CbdpError as failure:
            reason = str(failure)
            hangs = isinstance(failure, PluginError) and failure.rule == "time"
            checks.append(Check(name, passed=False, reason=reason))
            if hangs:  # it would hang in every other check too
                return checks
            continue
        checks.append(Check(name, not reason, reason))
    return checks


def conforms(checks: list[Check]) -> bool:
    return all(check.passed for check in checks)


def example_city() -> City:
    """Two zones of six stops, a hub in each, and a line between them."""
    x, y = [0, 1, 2, 0, 1, 2, 8, 9, 10, 8, 9, 10], [0, 0, 0, 2, 2, 2, 0, 0, 0, 2, 2, 2]
    names = [f"stop{i:02d}" for i in range(12)]
    bare = make_city(names, x, y, ["west"] * 6 + ["east"] * 6, [names[2], names[6]], driving=Driving())
    return bare.with_lines([Line("west–east", (2, 6), 300, (480,))])


def example_legs(city: City, seed: int, riders: int = 60, *, hour: int = 3600) -> Legs:
    """Random riders of an hour, some at the same second."""
    rng = np.random.default_rng(seed)
    o, d = rng.integers(0, len(city), (2, riders))
    second = np.sort(rng.integers(0, hour // 5, riders) * 5)
    return legs_of(Trips(o, d, second, (0, hour)), ModeRule(walk=0.1).choose(city))


def _checks_of_kind(kind: str, plugin: object, seconds: float) -> Iterator[tuple[str, Callable[[], str]]]:
    """The name of each check, and what says why it fails: "" where it passes."""
    city = example_city()

    def sizes(legs: Legs) -> str:
        sizing = size(city, legs, plugin, seconds=seconds)
        return f"no fleet found: {sizing.reason}" if sizing.fleet is None else ""

    def designs(seed: int) -> str:
        origin, destination = np.random.default_rng(seed).integers(0, len(city), (2, 300))
        design(city, Demand.of(origin, destination, len(city)), plugin, costs=Costs(), seconds=seconds)
        return ""

    def chooses() -> str:
        choose(city, plugin, seconds=seconds)
        return ""

    def is_named() -> str:
        for word in ("name", "about"):
            text = getattr(plugin, word, None)
            if not isinstance(text, str) or not text:
                return f"its {word!r} is {text!r}: give it a text, as class data"
        return ""

    if kind == "dispatcher":
        yield from _check_dispatcher(city, plugin, seconds)
    elif kind == "sizer":
        for seed in (0, 1):
            yield f"its fleet serves, case {seed}", partial(sizes, example_legs(city, seed))
        yield "no riders", partial(sizes, example_legs(city, 0, 0))
    elif kind == "designer":
        for seed in (0, 1):
            yield f"its network can be run, case {seed}", partial(designs, seed)
    else:
        yield "every itinerary leads to its destination, and a second call repeats it", chooses
    yield "it has a name and a line about itself", is_named


def _check_dispatcher(city: City, plugin: object, seconds: float) -> Iterator[tuple[str, Callable[[], str]]]:
    def run(fleet: tuple[int, int], legs: Legs, rules: Operations = RULES) -> Service:
        return dispatch(city, Fleet(fleet), legs, plugin, operations=rules, seconds=seconds)

    def usual(seed: int) -> str:
        run((3, 3), example_legs(city, seed))
        return ""

    def full() -> str:
        run((2, 2), example_legs(city, 7, 120), replace(RULES, capacity=1))
        return ""

    def crowd() -> str:
        """Ten riders of one second from one stop."""
        riders = Trips(np.ones(10, dtype=np.int64), np.full(10, 5), np.full(10, 60), (0, 3600))
        run((2, 1), legs_of(riders, ModeRule(walk=0.1).choose(city)))
        return ""

    def easy() -> str:
        service = run((12, 12), example_legs(city, 3, 12))
        lost = int((~service.served).sum())
        return f"{lost} riders are unserved although most shuttles are parked" if lost else ""

    for seed in range(3):
        yield f"rules are kept, case {seed}", partial(usual, seed)
    yield "rules are kept, one seat and many riders", full
    yield "nobody is refused when shuttles are free", easy
    yield "riders at one second", crowd
    if not isinstance(plugin, Command):  # a command is given all legs at once
        yield "the future is not read", partial(_check_causality, city, run)


def _check_causality(city: City, run: Callable[..., Service]) -> str:
    """Run on two cases that differ only in riders who come late; up to then their logs must be the same."""
    for seed in range(3):
        legs = example_legs(city, 20 + seed, 50)
        until = 1500
        other = _other_future(city, legs, until, seed)
        logs = []
        for case in (legs, other):
            log = run((2, 2), case).log
            assert log is not None
            logs.append([row for row in log.tolist() if row[0] < until])
        if logs[0] != logs[1]:
            first = next(a or b for a, b in zip_longest(*logs) if a != b)  # one may just be longer
            return f"riders who come after second {until} changed what happened at second {first[0]}"
    return ""


def _other_future(city: City, legs: Legs, until: int, seed: int) -> Legs:
    """The same legs, but riders who set out later go elsewhere in their zone."""
    rng = np.random.default_rng(seed)
    later = np.flatnonzero((legs.release >= until) & (legs.follows < 0))
    origin, destination = legs.origin.copy(), legs.destination.copy()
    for leg in later:
        stops = np.flatnonzero(city.zone == legs.zone[leg])
        origin[leg], destination[leg] = rng.choice(stops, 2, replace=False)
    return replace(legs, origin=origin, destination=destination)
