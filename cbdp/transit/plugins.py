"""Plug-ins for designers: their own network designer, fleet sizer, dispatcher or modes.

A plug-in is given as an object, as "package.module:attribute", by the name of an entry point in the group `cbdp.transit`, or as
an external command (`Command`, or text that begins with "command:"). What it returns is checked, and every figure is computed
by the engine: a plug-in cannot flatter itself. A plug-in that crashes, hangs or breaks a rule is a `PluginError`.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from cbdp.errors import CbdpError, InputError
from cbdp.transit.city import City, Ints, columns
from cbdp.transit.demand import Legs
from cbdp.transit.design import Costs, Demand, Design, PathDesigner, network_cost, weakly_connected
from cbdp.transit.engine import Caller, CheapestInsertion, Dispatcher, PluginError, operate
from cbdp.transit.fleet import SearchSizer, Sizing, serves
from cbdp.transit.modes import ModeRule, Modes
from cbdp.transit.plan import replay, visits_from_json
from cbdp.transit.simulator import Fleet, Operations, Service, by_zone, simulate

GROUP = "cbdp.transit"
COMMAND = "command:"
T = TypeVar("T")


@runtime_checkable
class NetworkDesigner(Protocol):
    """Chooses which arcs between hubs get buses: a `Design`, or pairs of hubs (stops)."""

    def design(self, city: City, demand: Demand) -> Design | Sequence[tuple[int, int]]: ...


@runtime_checkable
class FleetSizer(Protocol):
    """Chooses the shuttles of every zone: a `Sizing`, a `Fleet` or numbers in the order of the zones."""

    def size(self, city: City, legs: Legs, operations: Operations) -> Sizing | Fleet | Sequence[int]: ...


@runtime_checkable
class ModeChoice(Protocol):
    """Chooses the mode of every ⟨o, d, t⟩. It is given the city and never any demand."""

    def choose(self, city: City) -> Modes: ...


METHODS = {"designer": "design", "sizer": "size", "dispatcher": "dispatch", "modes": "choose"}
BUILT_IN: Mapping[str, Callable[[], Any]] = {
    "designer": PathDesigner, "sizer": SearchSizer, "dispatcher": CheapestInsertion, "modes": ModeRule,
}  # fmt: skip


@dataclass(frozen=True)
class Command:
    """An external program: it is run with a folder as its last argument, reads what is there and writes `plan.json` into it.

    The folder has `problem.json` (kind, zones, hubs, rules, hours), `stops.parquet`, `times.parquet` (from, to, seconds, metres),
    and `legs.parquet` or `demand.parquet`. Answers: {"fleet": {zone: shuttles}} of a sizer, {"arcs": [[hub, hub], …]} of a
    designer, {"visits": […]} of a dispatcher, which is given all legs at once (see `cbdp.transit.plan`).
    """

    arguments: tuple[str, ...]
    seconds: float = 600.0

    def run(self, fill: Callable[[Path], None]) -> Any:
        """The answer to the folder that `fill` fills."""
        with tempfile.TemporaryDirectory(prefix="cbdp-") as name:
            folder = Path(name)
            fill(folder)
            self._run(folder)
            answer = folder / "plan.json"
            if not answer.exists():
                raise PluginError("answer", f"{self.arguments[0]!r} wrote no plan.json")
            try:
                return json.loads(answer.read_text(encoding="utf-8"))
            except ValueError as failure:
                raise PluginError(
                    "answer", f"plan.json of {self.arguments[0]!r} is no JSON: {failure}"
                ) from None

    def _run(self, folder: Path) -> None:
        with (folder / "output.txt").open("wb") as output:
            try:
                process = subprocess.Popen(
                    [*self.arguments, str(folder)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            except OSError as failure:
                raise PluginError("crash", f"{self.arguments[0]!r} cannot be run: {failure}") from None
            try:
                code = process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                raise PluginError(
                    "time", f"{self.arguments[0]!r} hangs: no answer in {self.seconds:g} s"
                ) from None
            finally:
                _end(process)
        if code:
            said = (folder / "output.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise PluginError(
                "crash", f"{self.arguments[0]!r} ended with code {code}: {said[-1] if said else 'no word'}"
            )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and what it started: it has a session of its own."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, AttributeError):
            process.kill()
        process.wait()


def known(kind: str) -> dict[str, str]:
    """Installed plug-ins of a kind: entry points of the group whose names begin with the kind and a dot."""
    found = {e.name: e.value for e in entry_points(group=GROUP)}
    return {n.removeprefix(f"{kind}."): v for n, v in sorted(found.items()) if n.startswith(f"{kind}.")}


def get(kind: str, plugin: Any = None) -> Any:
    """A plug-in of a kind ("designer", "sizer", "dispatcher" or "modes"); None means the built-in one."""
    if kind not in METHODS:
        raise InputError(f"unknown kind of plug-in {kind!r}: there are {', '.join(METHODS)}")
    if plugin is None or plugin == "built-in":
        return BUILT_IN[kind]()
    if isinstance(plugin, str):
        if plugin.startswith(COMMAND):
            plugin = Command(tuple(shlex.split(plugin.removeprefix(COMMAND))))
        else:
            plugin = _load(kind, plugin)
    if isinstance(plugin, type):
        plugin = plugin()
    if isinstance(plugin, Command):
        if kind == "modes":
            raise InputError(
                "modes are a function of the city and cannot be an external command: give a Python object"
            )
        if not plugin.arguments:
            raise InputError("the command of a plug-in is empty: write it after 'command:'")
        return plugin
    if not callable(getattr(plugin, METHODS[kind], None)):
        raise InputError(f"{plugin!r} is no {kind}: it has no method {METHODS[kind]!r}")
    return plugin


def _load(kind: str, name: str) -> Any:
    where = known(kind).get(name, name)
    if ":" not in where:
        there = ", ".join(["built-in", *known(kind)])
        raise InputError(
            f"unknown {kind} {name!r}: there are {there}, or name one as 'package.module:attribute'"
        )
    module, _, attribute = where.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as failure:
        raise InputError(f"the plug-in {where!r} cannot be loaded: {failure}") from failure


def design(
    city: City, demand: Demand, designer: Any = None, *, costs: Costs | None = None, seconds: float = 600.0
) -> Design:
    """A designer's network, its arcs checked and its cost computed by us."""
    plugin, chosen = get("designer", designer), costs or Costs()
    if isinstance(plugin, Command):
        answer = plugin.run(
            lambda folder: _write(folder, "designer", city, demand=demand, rules=asdict(chosen))
        )
        given = [(city.code(str(a)), city.code(str(b))) for a, b in _part(answer, "arcs", list)]
    else:
        given = _call("design", seconds, plugin.design, city, demand)
    claimed = given if isinstance(given, Design) else None
    arcs = [(int(a), int(b)) for a, b in (given.arcs if isinstance(given, Design) else given)]
    place = {int(h): k for k, h in enumerate(city.hubs)}
    for a, b in arcs:
        if a not in place or b not in place or a == b:
            raise PluginError("answer", f"the arc {a}–{b} does not join two hubs")
    local = sorted({(place[a], place[b]) for a, b in arcs})
    if not weakly_connected(local, len(place)):
        raise PluginError("connectivity", "a hub has not as many arcs in as out, so buses pile up there")
    cost = network_cost(city, demand, local, chosen)
    ours = isinstance(plugin, PathDesigner) and plugin.costs == chosen  # a stranger's bound proves nothing
    bound = claimed.bound if claimed and ours else -np.inf
    return Design(tuple(arcs), cost, min(bound, cost), claimed.status if claimed else "as given")


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
    plugin = SearchSizer(limit, period) if sizer is None else get("sizer", sizer)
    if isinstance(plugin, Command):
        more = {"limit": limit, "period": period}
        answer = plugin.run(
            lambda folder: _write(folder, "sizer", city, legs=legs, rules={**asdict(rules), **more})
        )
        numbers = _part(answer, "fleet", dict)
        if missing := [z for z in city.zones if z not in numbers]:
            raise PluginError("answer", f"plan.json has no shuttles for zone {missing[0]!r}")
        given: Any = [numbers[z] for z in city.zones]
    else:
        given = _call("size", seconds, plugin.size, city, legs, rules)
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


def _check_service(city: City, service: Service, limit: int, period: int | None) -> None:
    wait, served, unserved = by_zone(service, len(city.zones))
    for z, fine in enumerate(serves(service, len(city.zones), limit, period)):
        if not fine:
            mean = wait[z] / served[z] if served[z] else float("nan")
            raise PluginError(
                "service",
                f"zone {city.zones[z]!r} has a mean wait of {mean:.0f} s (limit {limit}) and {unserved[z]} unserved",
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
    more = {"shuttles": list(fleet.shuttles), "starts": [city.names[s] for s in fleet.starts(city)]}
    answer = plugin.run(
        lambda folder: _write(folder, "dispatcher", city, legs=legs, rules={**asdict(rules), **more})
    )
    return replay(city, fleet, legs, visits_from_json(city, answer), rules)


def choose(city: City, modes: Any = None, *, seconds: float = 600.0) -> Modes:
    """The modes of a plug-in, if every itinerary leads from its origin to its destination, and twice the same."""
    plugin = get("modes", modes)
    made = _call("choose", seconds, plugin.choose, city)
    again = _call("choose", seconds, plugin.choose, city)
    if not isinstance(made, Modes):
        raise PluginError("answer", f"modes are a Modes, not {type(made).__name__}")
    names = ("mode", "access", "egress", "first_zone", "last_zone", "path")
    shape = (len(made.slots), len(city), len(city))
    for name in names:
        table = getattr(made, name)
        if np.shape(table) != shape:
            raise PluginError(
                "answer", f"the table {name!r} has shape {np.shape(table)}, the city needs {shape}"
            )
        if not np.array_equal(table, getattr(again, name)):
            raise PluginError(
                "determinism", f"a second call gave another {name!r}: modes are a public function of the city"
            )
    _check_itineraries(city, made)
    return made


def _check_itineraries(city: City, made: Modes) -> None:
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


def attempt(tasks: Mapping[str, Callable[[], T]]) -> dict[str, T | CbdpError]:
    """Every task's result, or its error: one bad plug-in does not end the evaluation of the others."""
    found: dict[str, T | CbdpError] = {}
    for name, task in tasks.items():
        try:
            found[name] = task()
        except CbdpError as failure:
            found[name] = failure
    return found


def _call(what: str, seconds: float, function: Callable[..., Any], *args: Any) -> Any:
    with Caller(seconds) as call:
        return call(what, function, *args)


def _part(answer: Any, name: str, kind: type) -> Any:
    if not isinstance(answer, dict) or not isinstance(answer.get(name), kind):
        raise PluginError("answer", f"plan.json has no {name!r} ({kind.__name__})")
    return answer[name]


def _write(
    folder: Path,
    kind: str,
    city: City,
    *,
    legs: Legs | None = None,
    demand: Demand | None = None,
    rules: Mapping[str, Any],
) -> None:
    """The folder of an external command."""
    n = len(city)
    names = np.array(city.names)
    _parquet(folder / "stops.parquet", columns(city))
    pairs = {"from": np.repeat(names, n), "to": np.tile(names, n)}
    _parquet(
        folder / "times.parquet", {**pairs, "seconds": city.seconds.ravel(), "metres": city.metres.ravel()}
    )
    problem: dict[str, Any] = {
        "kind": kind,
        "zones": list(city.zones),
        "hubs": [city.names[h] for h in city.hubs],
        "rules": dict(rules),
    }
    if legs is not None:
        problem["hours"] = list(legs.hours)
        problem["timetable"] = legs.timetable.tolist()
        plain: dict[str, Ints] = {k: getattr(legs, k) for k in ("trip", "release", "follows", "path")}
        ends = {
            "origin": names[legs.origin],
            "destination": names[legs.destination],
            "zone": np.array(city.zones)[legs.zone],
        }
        _parquet(folder / "legs.parquet", {"leg": np.arange(len(legs)), **plain, **ends})
    if demand is not None:
        ends = {"origin": names[demand.origin], "destination": names[demand.destination]}
        _parquet(folder / "demand.parquet", {**ends, "trips": demand.trips})
    (folder / "problem.json").write_text(json.dumps(problem), encoding="utf-8")


def _parquet(path: Path, table: Mapping[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(dict(table)), path)


__all__ = [
    "GROUP",
    "Command",
    "Dispatcher",
    "FleetSizer",
    "ModeChoice",
    "NetworkDesigner",
    "PluginError",
    "attempt",
    "choose",
    "design",
    "dispatch",
    "get",
    "known",
    "size",
]
