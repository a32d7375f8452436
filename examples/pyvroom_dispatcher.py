"""A dispatcher that asks a vehicle-routing library, VROOM: `pip install cbdp[vroom]`.

    cbdp fleet check-plugin dispatcher examples.pyvroom_dispatcher:VroomDispatcher
    cbdp fleet size RELEASE --dispatcher examples.pyvroom_dispatcher:VroomDispatcher

(from the folder that holds `examples`). When a rider calls, the shuttles that could be there soonest become a pick-up and
delivery problem with time windows. The rules of the service are expressed in VROOM's terms:

- a shuttle is committed to its next stop: its route begins there, at the second it arrives, with the riders then on board;
- riders stay with the shuttle that was promised to them: their tasks need a skill that only this shuttle has. The new rider
  needs none, so VROOM chooses the shuttle, and may reorder the rest of its route;
- waits are time windows of the pick-ups. The new rider is promised 5 minutes; if that is impossible, 15; then the service's
  patience;
- VROOM has no longest ride, so drop-offs get the latest second that keeps it. Windows cannot express all of it (a pick-up that
  moves forward leaves less time), so the plan is checked by the engine's own rules before it is returned.

Where no window leads to a plan that keeps the rules, the built-in dispatcher decides. VROOM minimises driving, not waiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import vroom

from cbdp.transit import CheapestInsertion, PluginError
from cbdp.transit.dispatching import Decision, ShuttleState, State, Task, check_decision, due_times, stop_of

PINNED = 100  # VROOM's highest priority: riders who have a shuttle keep it


@dataclass(frozen=True)
class VroomDispatcher:
    """A `Dispatcher`: `candidates` is how many shuttles VROOM chooses from, `promises` are the waits that it tries (s)."""

    name: ClassVar[str] = "vroom"
    about: ClassVar[str] = "the vehicle-routing library VROOM plans the shuttles that could be there soonest"

    candidates: int = 6
    promises: tuple[int, ...] = (300, 900)

    def dispatch(self, state: State, leg: int) -> Decision | None:
        near = self._near(state, leg)
        patience = state.operations.patience
        for promise in (*(p for p in self.promises if p < patience), patience):
            decision = _solved(state, leg, near, promise)
            if decision is not None and _allowed(state, leg, decision):
                return decision
        return CheapestInsertion().dispatch(state, leg)

    def _near(self, state: State, leg: int) -> list[int]:
        """The shuttles of the leg's zone that could pick it up soonest: now, or after their next stop."""
        known = state.legs[leg]
        ready = {}
        for v, shuttle in enumerate(state.shuttles):
            if shuttle.zone == known.zone:
                stop, second = _begins(state, shuttle)
                ready[v] = second + int(state.hop[stop, known.origin])
        return sorted(ready, key=lambda v: (ready[v], v))[: self.candidates]


def _begins(state: State, shuttle: ShuttleState) -> tuple[int, int]:
    """Where and when a shuttle can change its route: at its next stop, or where it is parked."""
    return (stop_of(state, shuttle.plan[0]), shuttle.next_at) if shuttle.plan else (shuttle.stop, state.now)


def _solved(state: State, leg: int, near: list[int], promise: int) -> Decision | None:
    """VROOM's route for the shuttle that gets the leg, or None if none does. Task 2q picks leg q up, 2q + 1 drops it off."""
    problem = vroom.Input()
    problem.set_durations_matrix("car", state.hop)
    for v in near:
        stop, second = _begins(state, state.shuttles[v])
        problem.add_vehicle(
            vroom.Vehicle(v, start=stop, capacity=[state.operations.capacity], skills={v + 1}, time_window=(second, 2**31))
        )  # fmt: skip
        _add_pinned(problem, state, v)
    known = state.legs[leg]
    soonest = min(
        second + int(state.hop[stop, known.origin])
        for stop, second in (_begins(state, state.shuttles[v]) for v in near)
    )
    problem.add_job(_shipment(state, leg, (state.now, state.now + promise), soonest + _longest(state, leg)))
    routes = problem.solve(exploration_level=1, nb_threads=1).routes
    if "id" not in routes:
        return None
    kinds = (k not in ("start", "end") for k in routes["type"].tolist())
    rows = zip(kinds, routes["vehicle_id"].tolist(), routes["id"].tolist(), strict=True)
    done = [(int(v), int(task)) for real, v, task in rows if real]
    chosen = next((v for v, task in done if task == 2 * leg), None)
    if chosen is None:
        return None
    tasks: list[Task] = [(task // 2, bool(task % 2)) for v, task in done if v == chosen]
    return Decision(chosen, (*state.shuttles[chosen].plan[:1], *tasks))


def _add_pinned(problem: Any, state: State, v: int) -> None:
    """The tasks of a shuttle after its next stop: riders to pick up and drop off, and riders only to drop off."""
    shuttle = state.shuttles[v]
    later = shuttle.plan[1:]
    picks = {q for q, drops in later if not drops}
    due = dict(zip(shuttle.plan, due_times(state, shuttle, shuttle.plan), strict=True))
    for q in (q for q, drops in later if drops):
        boards = due[q, False] if (q, False) in due else state.legs[q].pickup
        last = boards + _longest(state, q)
        if q in picks:
            window = (state.now, state.legs[q].release + state.operations.patience)
            problem.add_job(_shipment(state, q, window, last, skills={v + 1}, priority=PINNED))
        else:
            problem.add_job(
                vroom.Job(
                    2 * q + 1,
                    location=state.legs[q].destination,
                    delivery=[1],
                    skills={v + 1},
                    priority=PINNED,
                    time_windows=[(0, last)],
                )
            )


def _shipment(state: State, q: int, window: tuple[int, int], last: int, **more: Any) -> Any:
    known = state.legs[q]
    pick = vroom.ShipmentStep(2 * q, location=known.origin, time_windows=[window])
    drop = vroom.ShipmentStep(2 * q + 1, location=known.destination, time_windows=[(0, last)])
    return vroom.Shipment(pick, drop, amount=[1], **more)


def _longest(state: State, q: int) -> int:
    known = state.legs[q]
    return int(state.operations.longest_ride(state.hop[known.origin, known.destination]))


def _allowed(state: State, leg: int, decision: Decision) -> bool:
    try:
        check_decision(state, leg, decision)
    except PluginError:
        return False
    return True
