"""Dispatching: what a real-time dispatcher sees and decides, the built-in one, the engine that runs any by the rules, and plans made ahead.

A dispatcher sees the state of the service now and answers with a shuttle's new plan. The built-in one is cheapest insertion, as in the
dial-a-ride literature (Jaw, Odoni, Psaraftis and Wilson, 1986). The engine (`operate`) keeps the time, moves the shuttles, checks every
plan by the rules of `cbdp.transit.simulator` and computes what is reported; a dispatcher only proposes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from cbdp.arrays import Ints
from cbdp.transit.city import City
from cbdp.transit.interfaces import Caller, Dispatcher, PluginError
from cbdp.transit.modes import Legs
from cbdp.transit.simulator import (
    ARRIVES,
    ASSIGNED,
    DEPARTS,
    DROPPED_OFF,
    PICKED_UP,
    REFUSED,
    RELEASED,
    Fleet,
    LegColumns,
    Operations,
    Plans,
    Service,
    bus_arrival,
    cheapest_insertion,
    service_of_outcome,
)

Task = tuple[int, bool]  # a leg, and whether it is dropped off (or picked up)


@dataclass(frozen=True)
class ActiveLeg:
    """A leg that was released and is not yet served. `pickup` is −1 until the rider is on board."""

    origin: int
    destination: int
    zone: int
    release: int
    pickup: int = -1


@dataclass(frozen=True)
class ShuttleState:
    """A shuttle: the stop where it is or which it left last, its plan, and when it reaches the plan's first stop."""

    zone: int
    stop: int
    plan: tuple[Task, ...] = ()
    next_at: int = -1


@dataclass(frozen=True, eq=False)
class State:
    """All that a dispatcher may know: the present, and nothing later.

    >>> from dataclasses import fields
    >>> [field.name for field in fields(State)]
    ['now', 'city', 'operations', 'hop', 'shuttles', 'legs']
    """

    now: int
    city: City = field(repr=False)
    operations: Operations
    hop: Ints = field(repr=False)
    shuttles: tuple[ShuttleState, ...] = field(repr=False)
    legs: Mapping[int, ActiveLeg] = field(repr=False)


@dataclass(frozen=True)
class Decision:
    """A shuttle's new plan. `due`, if given, says when each task happens; the engine checks it against its own times.

    >>> Decision(shuttle=0, plan=()).shuttle
    0
    """

    shuttle: int
    plan: Sequence[Task]
    due: Sequence[int] | None = None


def stop_of(state: State, task: Task) -> int:
    """The stop at which a task happens."""
    leg = state.legs[task[0]]
    return leg.destination if task[1] else leg.origin


def due_times(state: State, shuttle: ShuttleState, plan: Sequence[Task]) -> list[int]:
    """When each task of a plan of this shuttle happens."""
    due: list[int] = []
    for j, task in enumerate(plan):
        if j:
            due.append(due[-1] + int(state.hop[stop_of(state, plan[j - 1]), stop_of(state, task)]))
        elif shuttle.plan:
            due.append(shuttle.next_at)
        else:
            due.append(state.now + int(state.hop[shuttle.stop, stop_of(state, task)]))
    return due


# The built-in dispatcher: the simulator's own choice


@dataclass(frozen=True)
class CheapestInsertion:
    """The built-in `Dispatcher`: insert the leg where it costs driving and riders least.

    >>> import numpy as np
    >>> from cbdp.transit import CheapestInsertion, ModeRule, Trips, legs_of, make_city, operate
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> riders = Trips(np.array([0, 2]), np.array([1, 0]), np.array([60, 120]), (0, 3600))
    >>> legs = legs_of(riders, ModeRule().choose(city))
    >>> operate(city, [1], legs, CheapestInsertion()).pickup.tolist()
    [60, 900]
    """

    name: ClassVar[str] = "cheapest-insertion"
    about: ClassVar[str] = "inserts each rider into the plan where it costs least, as the simulator does"

    def dispatch(self, state: State, leg: int) -> Decision | None:
        number = {q: k for k, q in enumerate(state.legs)}
        active = list(state.legs.values())
        origin, destination, release, pickup = (
            _int64(getattr(k, name) for k in active)
            for name in ("origin", "destination", "release", "pickup")
        )
        longest = state.operations.longest_ride(state.hop[origin, destination])
        columns = LegColumns(origin, destination, release, pickup, longest)
        hop_to, scratch = np.ascontiguousarray(state.hop.T), np.zeros(len(active), np.int64)
        best, decision = 2**60, None
        for v, shuttle in enumerate(state.shuttles):
            if shuttle.zone != state.legs[leg].zone:
                continue
            plan = shuttle.plan
            plans = Plans(
                _int64(2 * number[q] + drops for q, drops in plan)[None],
                _int64(stop_of(state, task) for task in plan)[None],
                _int64(due_times(state, shuttle, plan))[None],
            )
            load = sum(drops for _, drops in plan) - sum(not drops for _, drops in plan)
            best, p, r = cheapest_insertion(
                state.hop, hop_to, plans, 0, len(plan), shuttle.stop, load, state.now,
                number[leg], columns, state.operations.rules, scratch, best,
            )  # fmt: skip
            if p >= 0:
                decision = Decision(v, (*plan[:p], (leg, False), *plan[p:r], (leg, True), *plan[r:]))
        return decision


def _int64(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)


# The rules of `cbdp.transit.simulator`: a broken one is a `PluginError` with its name


RuleError = Callable[[str, str], PluginError]  # from a rule and what is wrong


def check_decision(state: State, leg: int, decision: object) -> tuple[Task, ...]:
    """The plan of a decision, if it keeps every rule."""
    if not isinstance(decision, Decision):
        raise PluginError(
            "answer", f"a dispatcher returns a Decision or None, not {decision!r}", second=state.now
        )
    if not isinstance(decision.shuttle, int | np.integer) or not 0 <= decision.shuttle < len(state.shuttles):
        raise PluginError("answer", f"there is no shuttle {decision.shuttle!r}", second=state.now)
    v = int(decision.shuttle)
    shuttle = state.shuttles[v]

    def broken(rule: str, message: str) -> PluginError:
        return PluginError(rule, message, shuttle=v, second=state.now)

    try:
        plan = tuple((int(q), bool(drops)) for q, drops in decision.plan)
    except (TypeError, ValueError):
        raise broken("answer", "a plan is a list of pairs: leg, and whether it is dropped off") from None
    if shuttle.zone != state.legs[leg].zone:
        raise broken(
            "zone", f"leg {leg} belongs to zone {state.legs[leg].zone}, the shuttle to zone {shuttle.zone}"
        )
    _check_tasks(state, shuttle, leg, plan, broken)
    due = due_times(state, shuttle, plan)
    if decision.due is not None:
        _check_stated_times(plan, decision.due, due, broken)
    _check_rides(state, shuttle, plan, due, broken)
    return plan


def _check_tasks(
    state: State, shuttle: ShuttleState, leg: int, plan: tuple[Task, ...], broken: RuleError
) -> None:
    """The plan holds the shuttle's tasks and the new leg's, each once, and begins where the shuttle is heading."""
    for q, _ in plan:
        if q not in state.legs:
            raise broken("future", f"the plan names leg {q}, which is neither waiting nor on board now")
    if shuttle.plan and plan[:1] != shuttle.plan[:1]:
        raise broken(
            "movement", "the shuttle is on its way to its next stop, but the plan begins with another task"
        )
    expected = {*shuttle.plan, (leg, False), (leg, True)}
    if missing := sorted(expected - set(plan)):
        raise broken("riders", f"the plan leaves out {_task_words(missing[0])}")
    if extra := sorted(set(plan) - expected):
        raise broken("riders", f"the plan has {_task_words(extra[0])}, which is not this shuttle's")
    if len(set(plan)) < len(plan):
        raise broken("precedence", "the plan has a task twice")
    if len(plan) > state.operations.max_tasks:
        raise broken(
            "plan", f"the plan has {len(plan)} tasks: at most {state.operations.max_tasks} are allowed"
        )


def _check_stated_times(
    plan: tuple[Task, ...], claimed: Sequence[int], due: Sequence[int], broken: RuleError
) -> None:
    if len(claimed) != len(plan):
        raise broken("answer", f"{len(claimed)} times are given for {len(plan)} tasks")
    for task, says, at in zip(plan, claimed, due, strict=True):
        if says < at:
            raise broken(
                "movement",
                f"{_task_words(task)} is planned at {says}, but the shuttle cannot be there before {at}",
            )


def _check_rides(
    state: State, shuttle: ShuttleState, plan: tuple[Task, ...], due: Sequence[int], broken: RuleError
) -> None:
    """Capacity, waits and rides, task by task."""
    rules = state.operations
    boarded = {q: k.pickup for q, k in state.legs.items() if (q, True) in shuttle.plan and k.pickup >= 0}
    for (q, drops), at in zip(plan, due, strict=True):
        leg = state.legs[q]
        if not drops:
            boarded[q] = at
            if len(boarded) > rules.capacity:
                raise broken("capacity", f"{len(boarded)} riders at {at}, the shuttle holds {rules.capacity}")
            if at - leg.release > rules.patience:
                raise broken(
                    "patience",
                    f"leg {q} would wait {at - leg.release} s: at most {rules.patience} s are allowed",
                )
            continue
        if q not in boarded:
            raise broken("precedence", f"leg {q} is dropped off before it is picked up")
        lasted = at - boarded.pop(q)
        most = int(rules.longest_ride(state.hop[leg.origin, leg.destination]))
        if lasted > most:
            raise broken("ride", f"leg {q} would be on board for {lasted} s: at most {most} s are allowed")


def _task_words(task: Task) -> str:
    return f"the {'drop-off' if task[1] else 'pick-up'} of leg {task[0]}"


# The engine
#
# A dispatcher hears of a leg when it is released and not before. With the built-in one the engine writes the simulator's log, slowly.


Event = tuple[int, int, int]  # second, kind (a release before an arrival), leg or shuttle


def operate(
    city: City,
    fleet: Fleet | Sequence[int],
    legs: Legs,
    dispatcher: Dispatcher,
    operations: Operations | None = None,
    *,
    patience: float = 60.0,
) -> Service:
    """Run a dispatcher on these legs; each decision may take `patience` seconds. A broken rule is a `PluginError`.

    >>> import numpy as np
    >>> from cbdp.transit import CheapestInsertion, ModeRule, Trips, legs_of, make_city
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> riders = Trips(np.array([0, 2]), np.array([1, 0]), np.array([60, 120]), (0, 3600))
    >>> legs = legs_of(riders, ModeRule().choose(city))
    >>> operate(city, [1], legs, CheapestInsertion()).drop.tolist()
    [402, 1710]
    """
    chosen = fleet if isinstance(fleet, Fleet) else Fleet(tuple(fleet))
    engine = _Engine(city, chosen, legs, operations or Operations())
    with Caller(patience) as call:
        engine.run(lambda state, leg: call(f"dispatch of leg {leg}", dispatcher.dispatch, state, leg))
    return engine.service()


class _Run:
    """What happens to every leg and shuttle, written down as it happens."""

    def __init__(self, city: City, fleet: Fleet, legs: Legs, operations: Operations) -> None:
        self.city, self.fleet, self.legs, self.rules = city, fleet, legs, operations
        self.hop, self.follower = operations.hop(city), legs.next
        self.zone, self.starts = np.repeat(np.arange(len(city.zones)), fleet.shuttles), fleet.starts(city)
        self.release, self.pickup, self.drop, self.shuttle = (
            np.full(len(legs), -1, np.int64) for _ in range(4)
        )
        self.metres = np.zeros(fleet.total, np.int64)
        self.busy: list[list[tuple[int, int]]] = [[] for _ in self.starts]  # intervals with a task
        self.log: list[tuple[int, int, int, int, int]] = []

    def service(self) -> Service:
        outcome = (self.release, self.pickup, self.drop, self.shuttle)
        return service_of_outcome(self.fleet, self.legs, outcome, self.metres, self.busy, self.log)


class _Engine(_Run):
    def __init__(self, city: City, fleet: Fleet, legs: Legs, operations: Operations) -> None:
        super().__init__(city, fleet, legs, operations)
        self.hop.setflags(write=False)
        self.shuttles = [ShuttleState(int(z), int(s)) for z, s in zip(self.zone, self.starts, strict=True)]
        self.active: dict[int, ActiveLeg] = {}

    def run(self, decide: Callable[[State, int], Decision | None]) -> None:
        events = [(int(s), 0, leg) for leg, s in enumerate(self.legs.release) if s >= 0]
        heapq.heapify(events)
        while events:
            now, kind, number = heapq.heappop(events)
            follow_ups = self._released(number, now, decide) if kind == 0 else self._arrived(number, now)
            for event in follow_ups:
                heapq.heappush(events, event)

    def _released(self, leg: int, now: int, decide: Callable[[State, int], Decision | None]) -> list[Event]:
        legs = self.legs
        origin = int(legs.origin[leg])
        self.release[leg] = now
        self.active[leg] = ActiveLeg(origin, int(legs.destination[leg]), int(legs.zone[leg]), now)
        self.log.append((now, RELEASED, -1, leg, origin))
        state = State(now, self.city, self.rules, self.hop, tuple(self.shuttles), dict(self.active))
        decision = decide(state, leg)
        if decision is None:
            self.log.append((now, REFUSED, -1, leg, origin))
            del self.active[leg]
            return []
        plan = check_decision(state, leg, decision)
        v = int(decision.shuttle)
        self.log.append((now, ASSIGNED, v, leg, origin))
        self.shuttle[leg] = v
        old = self.shuttles[v]
        self.shuttles[v] = ShuttleState(old.zone, old.stop, plan, old.next_at)
        if old.plan:
            return []
        self.busy[v].append((now, now))
        return [self._set_out(v, now)]

    def _set_out(self, v: int, now: int) -> Event:
        shuttle = self.shuttles[v]
        leg, drops = shuttle.plan[0]
        to = int((self.legs.destination if drops else self.legs.origin)[leg])
        if to != shuttle.stop:
            self.log.append((now, DEPARTS, v, -1, to))
            self.metres[v] += self.city.metres[shuttle.stop, to]
        at = now + int(self.hop[shuttle.stop, to])
        self.shuttles[v] = ShuttleState(shuttle.zone, shuttle.stop, shuttle.plan, at)
        return at, 1, v

    def _arrived(self, v: int, now: int) -> list[Event]:
        shuttle = self.shuttles[v]
        plan = list(shuttle.plan)

        def stop_of_task(task: Task) -> int:
            return int((self.legs.destination if task[1] else self.legs.origin)[task[0]])

        here = stop_of_task(plan[0])
        if here != shuttle.stop:
            self.log.append((now, ARRIVES, v, -1, here))
        events = []
        while plan and stop_of_task(plan[0]) == here:
            leg, drops = plan.pop(0)
            self.log.append((now, DROPPED_OFF if drops else PICKED_UP, v, leg, here))
            if drops:
                self.drop[leg] = now
                del self.active[leg]
                later = int(self.follower[leg])
                if later >= 0:
                    events.append((bus_arrival(self.legs, later, now), 0, later))
            else:
                self.pickup[leg] = now
                was = self.active[leg]
                self.active[leg] = ActiveLeg(was.origin, was.destination, was.zone, was.release, now)
        self.shuttles[v] = ShuttleState(shuttle.zone, here, tuple(plan), -1)
        begun = self.busy[v][-1][0]
        self.busy[v][-1] = begun, now
        return [*events, self._set_out(v, now)] if plan else events


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


class _Replay(_Run):
    def __init__(self, city: City, fleet: Fleet, legs: Legs, operations: Operations) -> None:
        super().__init__(city, fleet, legs, operations)
        self.release[:] = legs.release
        self.at = {v: (legs.hours[0], int(s)) for v, s in enumerate(self.starts)}
        self.on_board: dict[int, set[int]] = {v: set() for v in self.at}

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
        return self.service()

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
