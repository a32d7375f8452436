"""The engine that runs a dispatcher by the rules of `cbdp.transit.simulator`.

The engine keeps the time, moves the shuttles, checks every plan and computes what is reported; a dispatcher only proposes. It
hears of a leg when it is released and not before. With the built-in dispatcher the engine writes the simulator's log, slowly.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np

from cbdp.transit.calling import Caller
from cbdp.transit.checking import check_decision
from cbdp.transit.city import City
from cbdp.transit.demand import Legs
from cbdp.transit.dispatching import Decision, KnownLeg, ShuttleState, State, Task
from cbdp.transit.kinds import Dispatcher
from cbdp.transit.outcome import bus_arrival, outcome_service
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
        self.known: dict[int, KnownLeg] = {}
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

    def _released(self, leg: int, now: int, decide: Callable[[State, int], Decision | None]) -> list[Event]:
        legs = self.legs
        origin = int(legs.origin[leg])
        self.release[leg] = now
        self.known[leg] = KnownLeg(origin, int(legs.destination[leg]), int(legs.zone[leg]), now)
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
                self.known[leg] = KnownLeg(was.origin, was.destination, was.zone, was.release, now)
        self.shuttles[v] = ShuttleState(shuttle.zone, here, tuple(plan), -1)
        begun = self.busy[v][-1][0]
        self.busy[v][-1] = begun, now
        return [*events, self._set_out(v, now)] if plan else events

    def service(self) -> Service:
        rows = np.array(self.log, dtype=np.int64).reshape(-1, 5)
        outcome = (self.release, self.pickup, self.drop, self.shuttle)
        return outcome_service(self.fleet, self.legs, outcome, self.metres, self.busy, rows)
