"""Real-time dispatching: what a dispatcher sees and decides, the built-in one, and the engine that runs any by the rules.

A dispatcher sees the state of the service now and answers with a shuttle's new plan. The built-in one is cheapest insertion, as in the
dial-a-ride literature (Jaw, Odoni, Psaraftis and Wilson, 1986). The engine (`operate`) keeps the time, moves the shuttles, checks every
plan by the rules of `cbdp.transit.simulator` and computes what is reported; a dispatcher only proposes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from cbdp.arrays import Ints
from cbdp.transit.city import City
from cbdp.transit.demand import Legs
from cbdp.transit.interfaces import Caller, Dispatcher, PluginError
from cbdp.transit.kernel import cheapest_insertion
from cbdp.transit.simulator import (
    ARRIVES,
    ASSIGNED,
    DEPARTS,
    DROPPED_OFF,
    PICKED_UP,
    REFUSED,
    RELEASED,
    Fleet,
    Operations,
    Service,
    bus_arrival,
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
    [60, 553]
    """

    name: ClassVar[str] = "cheapest-insertion"
    about: ClassVar[str] = "inserts each rider into the plan where it costs least, as the simulator does"

    def dispatch(self, state: State, leg: int) -> Decision | None:
        legs = _LegArrays(state)
        best, chosen = 2**60, None
        for v, shuttle in enumerate(state.shuttles):
            if shuttle.zone != state.legs[leg].zone:
                continue
            best, p, r = legs.cheapest(v, leg, best)
            if p >= 0:
                chosen = v, int(p), int(r)
        if chosen is None:
            return None
        v, p, r = chosen
        plan = state.shuttles[v].plan
        return Decision(v, (*plan[:p], (leg, False), *plan[p:r], (leg, True), *plan[r:]))


class _LegArrays:
    """The active legs as the arrays that the compiled search takes."""

    def __init__(self, state: State) -> None:
        legs = list(state.legs.values())
        self.state, self.number = state, {leg: k for k, leg in enumerate(state.legs)}
        self.origin, self.destination, self.release, self.pickup = (
            _as_int64(getattr(k, name) for k in legs)
            for name in ("origin", "destination", "release", "pickup")
        )
        rules = state.operations
        self.longest = rules.longest_ride(state.hop[self.origin, self.destination])
        self.weight = _as_int64((rules.drive_weight, rules.wait_weight, rules.ride_weight))
        self.slot = np.zeros(len(legs), np.int64)
        self.back = np.ascontiguousarray(state.hop.T)

    def cheapest(self, v: int, leg: int, best: int) -> Any:
        """Cost and places of the cheapest insertion into a shuttle's plan that costs less than `best`."""
        state, shuttle = self.state, self.state.shuttles[v]
        rules, plan = state.operations, shuttle.plan
        task = _as_int64(2 * self.number[q] + drops for q, drops in plan)
        stop = _as_int64(stop_of(state, t) for t in plan)
        due = _as_int64(due_times(state, shuttle, plan))
        load = sum(drops for _, drops in plan) - sum(not drops for _, drops in plan)
        return cheapest_insertion(
            state.hop, self.back, task[None], stop[None], due[None], 0, len(task), shuttle.stop, load, state.now,
            self.number[leg], self.origin, self.destination, self.release, self.pickup, self.longest,
            rules.capacity, rules.patience, rules.max_tasks, self.weight, self.slot, best,
        )  # fmt: skip


def _as_int64(values: Any) -> Ints:
    return np.array(list(values), dtype=np.int64)


# The rules of `cbdp.transit.simulator`: a broken one is a `PluginError` with its name


RuleError = Callable[[str, str], PluginError]  # from a rule and what is wrong


def check_decision(state: State, leg: int, decision: Any) -> tuple[Task, ...]:
    """The plan of a decision, if it keeps every rule."""
    v = _shuttle(state, decision)
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


def _shuttle(state: State, decision: Any) -> int:
    if not isinstance(decision, Decision):
        raise PluginError(
            "answer", f"a dispatcher returns a Decision or None, not {decision!r}", second=state.now
        )
    if not isinstance(decision.shuttle, int | np.integer) or not 0 <= decision.shuttle < len(state.shuttles):
        raise PluginError("answer", f"there is no shuttle {decision.shuttle!r}", second=state.now)
    return int(decision.shuttle)


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
    [263, 1015]
    """
    chosen = fleet if isinstance(fleet, Fleet) else Fleet(tuple(fleet))
    engine = _Engine(city, chosen, legs, operations or Operations())
    with Caller(patience) as call:
        engine.run(lambda state, leg: call(f"dispatch of leg {leg}", dispatcher.dispatch, state, leg))
    return engine.service()


class _Engine:
    def __init__(self, city: City, fleet: Fleet, legs: Legs, operations: Operations) -> None:
        self.city, self.fleet, self.legs, self.rules = city, fleet, legs, operations
        self.hop = operations.hop(city)
        self.hop.setflags(write=False)
        zone = np.repeat(np.arange(len(city.zones)), fleet.shuttles)
        starts = fleet.starts(city)
        self.shuttles = [ShuttleState(int(z), int(s)) for z, s in zip(zone, starts, strict=True)]
        self.active: dict[int, ActiveLeg] = {}
        self.release, self.pickup, self.drop, self.shuttle = (
            np.full(len(legs), -1, np.int64) for _ in range(4)
        )
        self.metres = np.zeros(len(starts), np.int64)
        self.busy: list[list[tuple[int, int]]] = [[] for _ in starts]  # intervals with a task
        self.log: list[tuple[int, int, int, int, int]] = []
        self.follower = legs.next

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

    def service(self) -> Service:
        rows = np.array(self.log, dtype=np.int64).reshape(-1, 5)
        outcome = (self.release, self.pickup, self.drop, self.shuttle)
        return service_of_outcome(self.fleet, self.legs, outcome, self.metres, self.busy, rows)
