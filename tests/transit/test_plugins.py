"""The checking engine, replayed plans, external commands, and the conformance kit against good and bad plug-ins."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from shuttle_cases import random_case

from cbdp.errors import InputError
from cbdp.transit import plugins
from cbdp.transit.conformance import _causal, conformance, conforms, example_city, example_legs
from cbdp.transit.demand import Legs, Trips, legs_of
from cbdp.transit.design import Costs, Demand
from cbdp.transit.engine import (
    CheapestInsertion,
    Decision,
    PluginError,
    State,
    due_times,
    operate,
)
from cbdp.transit.fleet import SearchSizer
from cbdp.transit.modes import ModeRule, Modes
from cbdp.transit.plan import Visit, replay, visits_of
from cbdp.transit.simulator import Fleet, Operations, Service, figures, simulate

GOOD = CheapestInsertion()
FOREVER = threading.Event()


class Teleporting:
    """Claims that its shuttles are there a minute before they can be."""

    def dispatch(self, state: State, leg: int) -> Decision | None:
        made = GOOD.dispatch(state, leg)
        if made is None:
            return None
        due = due_times(state, state.shuttles[made.shuttle], made.plan)
        return replace(made, due=[max(state.now, t - 60) for t in due])


class Turning:
    """Sends a shuttle that is on its way somewhere to the new rider first."""

    def dispatch(self, state: State, leg: int) -> Decision | None:
        zone = state.legs[leg].zone
        v = next(v for v, s in enumerate(state.shuttles) if s.zone == zone)
        return Decision(v, ((leg, False), (leg, True), *state.shuttles[v].plan))


class OverCapacity:
    """Picks everybody up before anybody is dropped off."""

    def dispatch(self, state: State, leg: int) -> Decision | None:
        zone = state.legs[leg].zone
        v = next(v for v, s in enumerate(state.shuttles) if s.zone == zone)
        plan = state.shuttles[v].plan
        picks = [t for t in plan if not t[1]]
        drops = [t for t in plan if t[1]]
        if plan and plan[0][1]:
            return Decision(v, (plan[0], *picks, (leg, False), *drops[1:], (leg, True)))
        return Decision(v, (*picks, (leg, False), *drops, (leg, True)))


class DroppingRiders:
    """Forgets whoever still waits when somebody new comes."""

    def dispatch(self, state: State, leg: int) -> Decision | None:
        made = GOOD.dispatch(state, leg)
        if made is None:
            return None
        first = state.shuttles[made.shuttle].plan[:1]
        waiting = {q for q, k in state.legs.items() if k.pickup < 0} - {leg} - {q for q, _ in first}
        return replace(made, plan=[t for t in made.plan if t[0] not in waiting])


class Refusing:
    """Serves nobody."""

    def dispatch(self, state: State, leg: int) -> Decision | None:
        return None


class Hanging:
    """Never answers."""

    def dispatch(self, state: State, leg: int) -> Decision | None:
        FOREVER.wait()
        return None


class Crashing:
    """Fails."""

    def dispatch(self, state: State, leg: int) -> Decision | None:
        raise ZeroDivisionError("by zero")


class ReadingTheFuture:
    """Looks through the interpreter's threads for the engine's legs, and keeps shuttles free for riders still to come."""

    def dispatch(self, state: State, leg: int) -> Decision | None:
        for frame in sys._current_frames().values():
            here = frame
            while here is not None:
                engine = here.f_locals.get("self")
                if type(engine).__name__ == "_Engine":
                    later = engine.legs.origin[engine.legs.release > state.now + 300]
                    wanted = int(later.sum()) % len(state.shuttles)
                    return self.serve(state, leg, wanted)
                here = here.f_back
        return GOOD.dispatch(state, leg)

    def serve(self, state: State, leg: int, wanted: int) -> Decision | None:
        shuttle = state.shuttles[wanted]
        if shuttle.zone == state.legs[leg].zone and not shuttle.plan:
            return Decision(wanted, ((leg, False), (leg, True)))
        return GOOD.dispatch(state, leg)


class NamingTheFuture:
    """Puts a leg into its plan that was not released yet."""

    def dispatch(self, state: State, leg: int) -> Decision | None:
        made = GOOD.dispatch(state, leg)
        return None if made is None else replace(made, plan=[*made.plan, (leg + 1, False), (leg + 1, True)])


@pytest.mark.parametrize("seed", range(15))
def test_built_in_dispatcher_in_the_engine_writes_the_simulators_log(seed: int) -> None:
    """The checking engine and the compiled simulator agree in every line and every figure."""
    city, fleet, legs, rules = random_case(seed)
    fast, slow = simulate(city, fleet, legs, rules, log=True), operate(city, fleet, legs, GOOD, rules)
    assert fast.log is not None
    assert slow.log is not None
    assert fast.log.tolist() == slow.log.tolist()
    for name in ("release", "pickup", "drop", "shuttle", "metres", "empty", "parked"):
        assert getattr(fast, name).tolist() == getattr(slow, name).tolist(), name


@pytest.mark.parametrize("kind", list(plugins.METHODS))
def test_built_in_plugins_conform(kind: str) -> None:
    """The kit passes what the package brings along."""
    checks = conformance(kind, None)
    assert checks
    assert conforms(checks), "\n".join(map(str, checks))


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (Teleporting, "movement"),
        (Turning, "movement"),
        (OverCapacity, "capacity"),
        (DroppingRiders, "leaves out"),
        (Hanging, "hangs"),
        (ReadingTheFuture, "riders who come after"),
        (NamingTheFuture, "future"),
        (Refusing, "unserved"),
        (Crashing, "ZeroDivisionError: by zero"),
    ],
)
def test_bad_dispatchers_fail(bad: type, word: str) -> None:
    """Each bad dispatcher fails the kit, for the reason that is bad about it."""
    checks = conformance("dispatcher", bad(), seconds=2.0 if bad is Hanging else 120.0)
    assert not conforms(checks)
    assert any(word in check.reason for check in checks), "\n".join(map(str, checks))


def test_a_log_that_only_ends_sooner_is_another_log() -> None:
    """Where riders who come later end what is done before, the first thing that was not done is named."""
    city, logs = example_city(), []

    def run(fleet: tuple[int, int], legs: Legs) -> Service:
        service = simulate(city, Fleet(fleet), legs, log=True)
        if not logs:
            logs.append(service.log)
            return service
        return replace(service, log=logs[0][:40])

    assert _causal(city, run) == (
        f"riders who come after second 1500 changed what happened at second {logs[0][40][0]}"
    )


def test_a_violation_names_rule_shuttle_and_second() -> None:
    """Which rule, which shuttle, when."""
    city = example_city()
    loose = Operations(capacity=3, ride_slack=10**6, patience=10**6)
    with pytest.raises(PluginError, match=r"capacity, shuttle \d+, second \d+: 4 riders") as caught:
        operate(city, (1, 1), example_legs(city, 0), OverCapacity(), loose)
    assert caught.value.rule == "capacity"
    assert caught.value.shuttle in (0, 1)
    assert caught.value.second is not None


def test_one_bad_plugin_does_not_end_the_evaluation() -> None:
    """Others are evaluated all the same."""
    city = example_city()
    legs, fleet = example_legs(city, 0), Fleet((3, 3))
    tasks = {
        d.__name__: lambda d=d: plugins.dispatch(city, fleet, legs, d) for d in (Crashing, CheapestInsertion)
    }
    found = plugins.attempt(tasks)
    assert isinstance(found["Crashing"], PluginError)
    assert figures(found["CheapestInsertion"], city)["total"]["unserved"] == 0


@pytest.mark.parametrize("seed", range(10))
def test_a_runs_visits_replay_to_the_same_figures(seed: int) -> None:
    """A simulated run, handed back as a plan, passes all checks and gives the same service."""
    city, fleet, legs, rules = random_case(seed)
    fast = simulate(city, fleet, legs, rules, log=True)
    again = replay(city, Fleet(fleet), legs, visits_of(fast), rules)
    for name in ("pickup", "drop", "shuttle", "metres", "empty"):
        assert getattr(fast, name).tolist() == getattr(again, name).tolist(), name
    assert fast.wait.tolist() == again.wait.tolist()


def test_bad_visits_are_refused() -> None:
    """A plan that teleports, overfills, anticipates, forgets or mixes up riders is refused by the rule's name."""
    city = example_city()
    legs, rules, fleet = example_legs(city, 2), Operations(capacity=3), Fleet((3, 3))
    visits = visits_of(simulate(city, fleet, legs, rules, log=True))
    picks = next(i for i, v in enumerate(visits) if v.pick and v.second > 300)
    cases = {
        "movement": [
            replace(v, second=v.second // 4) if i == len(visits) - 1 else v for i, v in enumerate(visits)
        ],
        "capacity": None,
        "never dropped off": visits[: picks + 1],
        "not on board": [replace(v, pick=()) if i == picks else v for i, v in enumerate(visits)],
        "no stop": [replace(visits[0], stop=99)],
        "no shuttle": [replace(visits[0], shuttle=99)],
        "no leg": [replace(visits[0], pick=(999,))],
    }
    with pytest.raises(PluginError, match="capacity"):
        replay(city, fleet, legs, visits, replace(rules, capacity=1))
    for word, plan in cases.items():
        if plan is not None:
            with pytest.raises(PluginError, match=word):
                replay(city, fleet, legs, plan, rules)
    first = int(np.flatnonzero(legs.release > 1000)[0])
    depot = int(fleet.starts(city)[0])
    start = int(legs.origin[first])
    early = [Visit(0, int(rules.hop(city)[depot, start]), start, (), (first,))]
    with pytest.raises(PluginError, match=r"too early|zone"):
        replay(city, fleet, legs, early, rules)


@pytest.mark.parametrize(
    ("visits", "word"),
    [
        ([(0, 500, 1, [], [0]), (0, 900, 4, [], [])], "movement.*begins at"),
        ([(1, 2000, 0, [], [0])], "zone"),
        ([(0, 500, 0, [], [0]), (0, 600, 0, [], [0])], "second time"),
        ([(0, 300, 0, [], [0])], "released at 400"),
        ([(0, 2400, 0, [], [0])], "waited longer"),
        ([(0, 500, 0, [], [0]), (0, 900, 4, [0], [])], "movement.*ends at"),
        ([(0, 500, 0, [], [0]), (0, 3000, 5, [0], [])], "ride"),
        ([(0, 500, 0, [], [0]), (0, 501, 5, [0], [])], "movement.*it takes"),
    ],
)
def test_each_rule_of_a_plan(visits: list[tuple[int, int, int, list[int], list[int]]], word: str) -> None:
    """One leg from stop 0 to stop 5, released at 400: each way to serve it wrongly is named by its rule."""
    city = example_city()
    trips = Trips(np.array([0]), np.array([5]), np.array([400]), (0, 3600))
    legs = legs_of(trips, ModeRule(walk=0.1).choose(city))
    rules = Operations(patience=1800)
    plan = [Visit(v, second, stop, tuple(drop), tuple(pick)) for v, second, stop, drop, pick in visits]
    with pytest.raises(PluginError, match=word):
        replay(city, Fleet((1, 1)), legs, plan, rules)
    fine = [Visit(0, 500, 0, (), (0,)), Visit(0, 900, 5, (0,), ())]
    assert replay(city, Fleet((1, 1)), legs, fine, rules).wait.tolist() == [100]


SIZER = """
import json, pathlib, sys
import pyarrow.parquet as pq
folder = pathlib.Path(sys.argv[-1])
problem = json.loads((folder / "problem.json").read_text())
legs = pq.read_table(folder / "legs.parquet").to_pydict()
fleet = {z: min(20, legs["zone"].count(z)) for z in problem["zones"]}
(folder / "plan.json").write_text(json.dumps({"fleet": fleet}))
"""
DESIGNER = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[-1])
a, b = json.loads((folder / "problem.json").read_text())["hubs"]
(folder / "plan.json").write_text(json.dumps({"arcs": [[a, b], [b, a]]}))
"""
# serves first legs one by one with the first shuttle of their zone; reads times and rules from the folder
DISPATCHER = """
import json, pathlib, sys
import pyarrow.parquet as pq
folder = pathlib.Path(sys.argv[-1])
problem = json.loads((folder / "problem.json").read_text())
rules = problem["rules"]
times = pq.read_table(folder / "times.parquet").to_pylist()
hop = {(r["from"], r["to"]): r["seconds"] + (rules["stop_seconds"] if r["from"] != r["to"] else 0) for r in times}
first, at = {}, {}
for v, start in enumerate(rules["starts"]):
    zone = problem["zones"][next(z for z in range(len(rules["shuttles"])) if v < sum(rules["shuttles"][: z + 1]))]
    if zone not in first:
        first[zone], at[zone] = v, (problem["hours"][0], start)
visits = []
legs = [r for r in pq.read_table(folder / "legs.parquet").to_pylist() if r["release"] >= 0]
for leg in sorted(legs, key=lambda r: r["release"]):
    since, stop = at[leg["zone"]]
    picks = max(since + hop[stop, leg["origin"]], leg["release"])
    if picks - leg["release"] > rules["patience"]:
        continue
    drops = picks + hop[leg["origin"], leg["destination"]]
    v = first[leg["zone"]]
    visits.append({"shuttle": v, "second": picks, "stop": leg["origin"], "pick": [leg["leg"]]})
    visits.append({"shuttle": v, "second": drops, "stop": leg["destination"], "drop": [leg["leg"]]})
    at[leg["zone"]] = drops, leg["destination"]
(folder / "plan.json").write_text(json.dumps({"visits": visits}))
"""


def command(tmp_path: Path, text: str, seconds: float = 120.0) -> plugins.Command:
    script = tmp_path / "plugin.py"
    script.write_text(text)
    return plugins.Command((sys.executable, str(script)), seconds)


def test_external_commands(tmp_path: Path) -> None:
    """Programs that read Parquet and JSON and write plan.json are sizers, designers and dispatchers."""
    city = example_city()
    legs = example_legs(city, 0)
    sized = plugins.size(city, legs, command(tmp_path, SIZER))
    assert sized.fleet is not None
    assert sized.fleet.total <= 40
    demand = Demand.of(*np.random.default_rng(0).integers(0, 12, (2, 50)), 12)
    found = plugins.design(city, demand, command(tmp_path, DESIGNER), costs=Costs())
    assert set(found.arcs) == {(2, 6), (6, 2)}
    service = plugins.dispatch(city, Fleet((2, 1)), legs, command(tmp_path, DISPATCHER))
    first = legs.follows < 0
    assert service.served[first].any()
    assert not service.served[~first].any()
    assert (service.wait >= 0).all()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("import time; time.sleep(600)", "hangs"),
        ("import sys; sys.exit('out of ideas')", "code 1: out of ideas"),
        ("pass", "no plan.json"),
        ("import sys; open(sys.argv[-1] + '/plan.json', 'w').write('{')", "no JSON"),
        ("import sys; open(sys.argv[-1] + '/plan.json', 'w').write('[]')", "no 'fleet'"),
        (
            "import sys; open(sys.argv[-1] + '/plan.json', 'w').write('{\"fleet\": {\"west\": 2}}')",
            "zone 'east'",
        ),
        (
            "import sys; open(sys.argv[-1] + '/plan.json', 'w').write('{\"fleet\": {\"west\": 1.5, \"east\": 2}}')",
            "makes no sense",
        ),
        (
            "import sys; open(sys.argv[-1] + '/plan.json', 'w').write('{\"fleet\": {\"west\": 0, \"east\": 0}}')",
            "service",
        ),
    ],
)
def test_bad_commands_are_errors(tmp_path: Path, text: str, word: str) -> None:
    """A program that hangs, crashes, says nothing, nonsense or less than was asked is an error that says so."""
    city = example_city()
    with pytest.raises(PluginError, match=word):
        plugins.size(city, example_legs(city, 0), command(tmp_path, text, 1.5 if "sleep" in text else 60.0))
    with pytest.raises(PluginError, match="cannot be run"):
        plugins.size(city, example_legs(city, 0), plugins.Command(("/nowhere/at/all",)))


def test_plugins_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """By object, class, path, entry point and command; anything else is refused by name."""
    assert isinstance(plugins.get("sizer"), SearchSizer)
    assert isinstance(plugins.get("dispatcher", "cbdp.transit.engine:CheapestInsertion"), CheapestInsertion)
    assert plugins.get("modes", ModeRule(walk=1.0)).walk == 1.0
    assert plugins.get("sizer", "command: java -jar s.jar").arguments == ("java", "-jar", "s.jar")
    monkeypatch.setattr(plugins, "known", lambda kind: {"mine": "cbdp.transit.fleet:SearchSizer"})
    assert isinstance(plugins.get("sizer", "mine"), SearchSizer)
    for kind, given, message in (
        ("sizer", "nonsense", "unknown sizer 'nonsense'"),
        ("sizer", "cbdp.transit.fleet:Nothing", "cannot be loaded"),
        ("sizer", CheapestInsertion(), "no method 'size'"),
        ("modes", "command: x", "cannot be an external command"),
        ("driver", None, "unknown kind"),
    ):
        with pytest.raises(InputError, match=message):
            plugins.get(kind, given)


@dataclass
class Changing:
    """Modes that differ from call to call."""

    calls: list[int] = field(default_factory=list)

    def choose(self, city: object) -> Modes:
        self.calls.append(1)
        return ModeRule(walk=len(self.calls)).choose(city)  # type: ignore[arg-type]


@dataclass
class Broken:
    """Modes whose shuttles end where no bus leaves."""

    def choose(self, city: object) -> Modes:
        made = ModeRule(walk=0.1).choose(city)  # type: ignore[arg-type]
        return replace(made, access=np.where(made.path >= 0, 0, made.access))


def test_bad_modes_designs_and_sizes_fail() -> None:
    """Modes that change or lead nowhere, networks whose buses pile up, fleets that do not serve."""
    assert "determinism" in conformance("modes", Changing())[0].reason
    assert "movement" in conformance("modes", Broken())[0].reason

    class OneWay:
        def design(self, city: object, demand: object) -> list[tuple[int, int]]:
            return [(2, 6)]

    assert "connectivity" in conformance("designer", OneWay())[0].reason

    class Stingy:
        def size(self, city: object, legs: object, operations: object) -> tuple[int, int]:
            return 1, 0

    assert any("service" in check.reason for check in conformance("sizer", Stingy()))
