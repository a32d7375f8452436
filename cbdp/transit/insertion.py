"""The built-in dispatcher: the simulator's own choice, made from the state that every dispatcher is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cbdp.arrays import Ints
from cbdp.transit.dispatching import Decision, State, due_times, stop_of
from cbdp.transit.kernel import cheapest


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
        legs = _Arrays(state)
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


class _Arrays:
    """The known legs as the arrays that the compiled search takes."""

    def __init__(self, state: State) -> None:
        known = list(state.legs.values())
        self.state, self.number = state, {leg: k for k, leg in enumerate(state.legs)}
        self.origin, self.destination, self.release, self.pickup = (
            _whole(getattr(k, name) for k in known) for name in ("origin", "destination", "release", "pickup")
        )
        rules = state.operations
        self.longest = rules.longest_ride(state.hop[self.origin, self.destination])
        self.weight = _whole((rules.drive_weight, rules.wait_weight, rules.ride_weight))
        self.slot = np.zeros(len(known), np.int64)
        self.back = np.ascontiguousarray(state.hop.T)

    def cheapest(self, v: int, leg: int, best: int) -> Any:
        """Cost and places of the cheapest insertion into a shuttle's plan that costs less than `best`."""
        state, shuttle = self.state, self.state.shuttles[v]
        rules, plan = state.operations, shuttle.plan
        task = _whole(2 * self.number[q] + drops for q, drops in plan)
        stop = _whole(stop_of(state, t) for t in plan)
        due = _whole(due_times(state, shuttle, plan))
        load = sum(drops for _, drops in plan) - sum(not drops for _, drops in plan)
        return cheapest(
            state.hop, self.back, task[None], stop[None], due[None], 0, len(task), shuttle.stop, load, state.now,
            self.number[leg], self.origin, self.destination, self.release, self.pickup, self.longest,
            rules.capacity, rules.patience, rules.max_tasks, self.weight, self.slot, best,
        )  # fmt: skip


def _whole(values: Any) -> Ints:
    return np.array(list(values), dtype=np.int64)
