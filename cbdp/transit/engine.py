"""The engine that runs a stranger's dispatcher by the rules of `cbdp.transit.simulator`.

The engine keeps the time, moves the shuttles, checks every plan and computes what is reported; a dispatcher only proposes. It
is told of legs when they are released and not before. With the built-in dispatcher it writes the simulator's log, slowly.
"""

from __future__ import annotations

import heapq
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from cbdp.errors import CbdpError
from cbdp.transit.city import City, Ints
from cbdp.transit.demand import Legs, arrivals
from cbdp.transit.kernel import cheapest
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
)

Task = tuple[int, bool]  # a leg, and whether it is dropped off (or picked up)
T = TypeVar("T")


class PluginError(CbdpError):
    """A plug-in crashed, hung, or broke a rule: which, and where it can be said, which shuttle and when."""

    def __init__(
        self, rule: str, message: str, *, shuttle: int | None = None, second: int | None = None
    ) -> None:
        where = "".join(
            f", {name} {value}"
            for name, value in (("shuttle", shuttle), ("second", second))
            if value is not None
        )
        super().__init__(f"{rule}{where}: {message}")
        self.rule, self.shuttle, self.second = rule, shuttle, second


@dataclass(frozen=True)
class Known:
    """A leg that was released and not yet served. `pickup` is −1 until it is on board."""

    origin: int
    destination: int
    zone: int
    release: int
    pickup: int = -1


@dataclass(frozen=True)
class ShuttleState:
    """A shuttle: the stop where it stands or that it left last, its plan, and when it reaches the plan's first stop."""

    zone: int
    stop: int
    plan: tuple[Task, ...] = ()
    next_at: int = -1


@dataclass(frozen=True, eq=False)
class State:
    """What a dispatcher may know: the present, nothing later."""

    now: int
    city: City = field(repr=False)
    operations: Operations
    hop: Ints = field(repr=False)
    shuttles: tuple[ShuttleState, ...] = field(repr=False)
    legs: Mapping[int, Known] = field(repr=False)


@dataclass(frozen=True)
class Decision:
    """A shuttle's new plan. `due`, if given, is when each task shall happen; the engine checks it against its own time."""

    shuttle: int
    plan: Sequence[Task]
    due: Sequence[int] | None = None


@runtime_checkable
class Dispatcher(Protocol):
    """Decides who serves a leg that is released now; None refuses it."""

    def dispatch(self, state: State, leg: int) -> Decision | None: ...


@dataclass(frozen=True)
class CheapestInsertion:
    """The built-in dispatcher: the simulator's own choice."""

    def dispatch(self, state: State, leg: int) -> Decision | None:
        number = {name: k for k, name in enumerate(state.legs)}
        known = list(state.legs.values())
        o = np.array([k.origin for k in known])
        d = np.array([k.destination for k in known])
        release, pickup = np.array([k.release for k in known]), np.array([k.pickup for k in known])
        rules = state.operations
        longest = rules.longest_ride(state.hop[o, d])
        weight = np.array([rules.drive_weight, rules.wait_weight, rules.ride_weight])
        slot, best, chosen = np.zeros(len(known), np.int64), 2**60, None
        back = np.ascontiguousarray(state.hop.T)
        for v, shuttle in enumerate(state.shuttles):
            if shuttle.zone != state.legs[leg].zone:
                continue
            task = np.array([2 * number[q] + drops for q, drops in shuttle.plan], dtype=np.int64)
            due = np.array(due_times(state, shuttle, shuttle.plan), dtype=np.int64)
            load = sum(drops for _, drops in shuttle.plan) - sum(not drops for _, drops in shuttle.plan)
            stop = np.array([stop_of(state, t) for t in shuttle.plan], dtype=np.int64)
            best, p, r = cheapest(
                state.hop, back, task[None], stop[None], due[None], 0, len(task), shuttle.stop, load, state.now, number[leg],
                o, d, release, pickup, longest, rules.capacity, rules.patience, rules.max_tasks, weight, slot, best,
            )  # fmt: skip
            if p >= 0:
                chosen = v, int(p), int(r)
        if chosen is None:
            return None
        v, p, r = chosen
        plan = state.shuttles[v].plan
        return Decision(v, (*plan[:p], (leg, False), *plan[p:r], (leg, True), *plan[r:]))


def stop_of(state: State, task: Task) -> int:
    known = state.legs[task[0]]
    return known.destination if task[1] else known.origin


def due_times(state: State, shuttle: ShuttleState, plan: Sequence[Task]) -> list[int]:
    """When each task of a plan of this shuttle happens."""
    made: list[int] = []
    for j, task in enumerate(plan):
        if j:
            made.append(made[-1] + int(state.hop[stop_of(state, plan[j - 1]), stop_of(state, task)]))
        elif shuttle.plan:
            made.append(shuttle.next_at)
        else:
            made.append(state.now + int(state.hop[shuttle.stop, stop_of(state, task)]))
    return made


def operate(
    city: City,
    fleet: Fleet | Sequence[int],
    legs: Legs,
    dispatcher: Dispatcher,
    operations: Operations | None = None,
    *,
    patience: float = 60.0,
) -> Service:
    """Run a dispatcher on these legs; each decision may take `patience` seconds. A broken rule is a `PluginError`."""
    chosen = fleet if isinstance(fleet, Fleet) else Fleet(tuple(fleet))
    engine = _Engine(city, chosen, legs, operations or Operations())
    with Caller(patience) as call:
        engine.run(lambda state, leg: call(f"dispatch of leg {leg}", dispatcher.dispatch, state, leg))
    return engine.service()


class Caller:
    """Calls a plug-in in a thread of its own and gives up after so many seconds; a thread that hangs is left behind."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self.work.put(None)

    def __call__(self, what: str, function: Callable[..., T], *args: Any) -> T:
        self.work.put((function, args))
        try:
            value, failure = self.done.get(timeout=self.seconds)
        except queue.Empty:
            raise PluginError("time", f"{what} hangs: no answer in {self.seconds:g} s") from None
        if isinstance(failure, PluginError):
            raise failure
        if failure is not None:
            raise PluginError("crash", f"{what} failed: {type(failure).__name__}: {failure}") from failure
        answer: T = value
        return answer

    def _serve(self) -> None:
        while (item := self.work.get()) is not None:
            function, args = item
            try:
                self.done.put((function(*args), None))
            except BaseException as failure:  # noqa: BLE001 - whatever a stranger's code raises is its failure, not ours
                self.done.put((None, failure))


class _Engine:
    def __init__(self, city: City, fleet: Fleet, legs: Legs, operations: Operations) -> None:
        self.city, self.fleet, self.legs, self.rules = city, fleet, legs, operations
        self.hop = operations.hop(city)
        self.hop.setflags(write=False)
        zone = np.repeat(np.arange(len(city.zones)), fleet.shuttles)
        starts = fleet.starts(city)
        self.shuttles = [ShuttleState(int(z), int(s)) for z, s in zip(zone, starts, strict=True)]
        self.known: dict[int, Known] = {}
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
            made = self._released(number, now, decide) if kind == 0 else self._arrived(number, now)
            for event in made:
                heapq.heappush(events, event)

    def _released(
        self, leg: int, now: int, decide: Callable[[State, int], Decision | None]
    ) -> list[tuple[int, int, int]]:
        legs = self.legs
        origin = int(legs.origin[leg])
        self.release[leg] = now
        self.known[leg] = Known(origin, int(legs.destination[leg]), int(legs.zone[leg]), now)
        self.log.append((now, RELEASED, -1, leg, origin))
        state = State(now, self.city, self.rules, self.hop, tuple(self.shuttles), dict(self.known))
        decision = decide(state, leg)
        if decision is None:
            self.log.append((now, REFUSED, -1, leg, origin))
            del self.known[leg]
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

    def _set_out(self, v: int, now: int) -> tuple[int, int, int]:
        shuttle = self.shuttles[v]
        leg, drops = shuttle.plan[0]
        to = int((self.legs.destination if drops else self.legs.origin)[leg])
        if to != shuttle.stop:
            self.log.append((now, DEPARTS, v, -1, to))
            self.metres[v] += self.city.metres[shuttle.stop, to]
        at = now + int(self.hop[shuttle.stop, to])
        self.shuttles[v] = ShuttleState(shuttle.zone, shuttle.stop, shuttle.plan, at)
        return at, 1, v

    def _arrived(self, v: int, now: int) -> list[tuple[int, int, int]]:
        shuttle = self.shuttles[v]
        plan = list(shuttle.plan)

        def place(task: Task) -> int:
            return int((self.legs.destination if task[1] else self.legs.origin)[task[0]])

        here = place(plan[0])
        if here != shuttle.stop:
            self.log.append((now, ARRIVES, v, -1, here))
        events = []
        while plan and place(plan[0]) == here:
            leg, drops = plan.pop(0)
            self.log.append((now, DROPPED_OFF if drops else PICKED_UP, v, leg, here))
            if drops:
                self.drop[leg] = now
                del self.known[leg]
                later = int(self.follower[leg])
                if later >= 0:
                    events.append((bus_arrival(self.legs, later, now), 0, later))
            else:
                self.pickup[leg] = now
                was = self.known[leg]
                self.known[leg] = Known(was.origin, was.destination, was.zone, was.release, now)
        self.shuttles[v] = ShuttleState(shuttle.zone, here, tuple(plan), -1)
        begun = self.busy[v][-1][0]
        self.busy[v][-1] = begun, now
        return [*events, self._set_out(v, now)] if plan else events

    def service(self) -> Service:
        rows = np.array(self.log, dtype=np.int64).reshape(-1, 5)
        outcome = (self.release, self.pickup, self.drop, self.shuttle)
        return outcome_service(self.fleet, self.legs, outcome, self.metres, self.busy, rows)


def bus_arrival(legs: Legs, leg: int, now: int) -> int:
    """When the rider of a leg that follows another, dropped off now, is at its origin."""
    path = legs.path[[leg]]
    return now if path[0] < 0 else int(arrivals(legs.timetable, path, np.array([now]))[0])


def outcome_service(
    fleet: Fleet,
    legs: Legs,
    outcome: tuple[Ints, Ints, Ints, Ints],
    metres: Ints,
    busy: Sequence[Sequence[tuple[int, int]]],
    log: Ints,
) -> Service:
    """The report of a run, computed from what happened."""
    _, pickup, drop, shuttle = outcome
    low, high = legs.hours
    span = high - low
    on_board: list[list[tuple[int, int]]] = [[] for _ in busy]
    for leg in np.flatnonzero(drop >= 0):
        on_board[int(shuttle[leg])].append((int(pickup[leg]), int(drop[leg])))
    working = [sorted([*a, *b]) for a, b in zip(busy, on_board, strict=True)]
    parked = np.array([span - _covered(b, low, high) for b in working], dtype=np.int64)
    empty = np.array([span - _covered(sorted(b), low, high) for b in on_board], dtype=np.int64)
    return Service(fleet, legs, *outcome, metres, empty, parked, log)


def _covered(intervals: Sequence[tuple[int, int]], low: int, high: int) -> int:
    """The length inside the hours of a union of intervals sorted by their begin."""
    total, until = 0, low
    for begin, end in intervals:
        first, last = max(begin, until), min(end, high)
        total += max(0, last - first)
        until = max(until, last)
    return total


def check_decision(state: State, leg: int, decision: Any) -> tuple[Task, ...]:
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
        raise broken("answer", "a plan is a list of (leg, whether it is dropped off)") from None
    if shuttle.zone != state.legs[leg].zone:
        raise broken(
            "zone", f"leg {leg} belongs to zone {state.legs[leg].zone}, the shuttle to zone {shuttle.zone}"
        )
    for q, _ in plan:
        if q not in state.legs:
            raise broken("future", f"the plan names leg {q}, which is not waiting or on board now")
    if shuttle.plan and plan[:1] != shuttle.plan[:1]:
        raise broken(
            "movement", "the shuttle is on its way to its next stop, and the plan begins with another task"
        )
    wanted = {*shuttle.plan, (leg, False), (leg, True)}
    if missing := sorted(wanted - set(plan)):
        raise broken("riders", f"the plan leaves out {_words(missing[0])}")
    if extra := sorted(set(plan) - wanted):
        raise broken("riders", f"the plan has {_words(extra[0])}, which is not this shuttle's")
    if len(set(plan)) < len(plan):
        raise broken("precedence", "a task stands twice in the plan")
    _check_times(state, shuttle, plan, decision.due, broken)
    return plan


def _words(task: Task) -> str:
    return f"the {'drop-off' if task[1] else 'pick-up'} of leg {task[0]}"


def _check_times(
    state: State,
    shuttle: ShuttleState,
    plan: tuple[Task, ...],
    claimed: Sequence[int] | None,
    broken: Callable[[str, str], PluginError],
) -> None:
    rules, due = state.operations, due_times(state, shuttle, plan)
    if claimed is not None:
        if len(claimed) != len(plan):
            raise broken("answer", f"{len(claimed)} seconds for {len(plan)} tasks")
        for task, says, at in zip(plan, claimed, due, strict=True):
            if says < at:
                raise broken(
                    "movement", f"{_words(task)} is planned at {says}, the shuttle can be there at {at}"
                )
    boarded = {q: k.pickup for q, k in state.legs.items() if (q, True) in shuttle.plan and k.pickup >= 0}
    if len(plan) > rules.max_tasks:
        raise broken("plan", f"{len(plan)} tasks, at most {rules.max_tasks} are allowed")
    for (q, drops), at in zip(plan, due, strict=True):
        known = state.legs[q]
        if not drops:
            boarded[q] = at
            if len(boarded) > rules.capacity:
                raise broken("capacity", f"{len(boarded)} riders at {at}, the shuttle holds {rules.capacity}")
            if at - known.release > rules.patience:
                raise broken(
                    "patience",
                    f"leg {q} would wait {at - known.release} s, at most {rules.patience} are allowed",
                )
            continue
        if q not in boarded:
            raise broken("precedence", f"leg {q} is dropped off before it is picked up")
        lasted = at - boarded.pop(q)
        most = int(rules.longest_ride(state.hop[known.origin, known.destination]))
        if lasted > most:
            raise broken("ride", f"leg {q} would be on board for {lasted} s, at most {most} are allowed")
