"""Plans made ahead by programs that are given all legs at once: checked visit by visit, and measured by us.

Such a plan knows the future: its figures show what is possible, and cannot be compared with those of a real-time dispatcher.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbdp.transit.calling import PluginError
from cbdp.transit.city import City
from cbdp.transit.demand import Legs
from cbdp.transit.outcome import bus_arrival, outcome_service
from cbdp.transit.simulator import ARRIVES, DROPPED_OFF, PICKED_UP, Fleet, Operations, Service


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
        return outcome_service(self.fleet, self.legs, outcome, self.metres, self.busy, rows)

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
    made: dict[tuple[int, int, int], tuple[list[int], list[int]]] = {}
    rows: list[list[int]] = [] if service.log is None else service.log.tolist()
    for second, kind, shuttle, leg, stop in rows:
        if kind in (PICKED_UP, DROPPED_OFF):
            drop, pick = made.setdefault((shuttle, second, stop), ([], []))
            (pick if kind == PICKED_UP else drop).append(leg)
    return [Visit(v, s, stop, tuple(d), tuple(p)) for (v, s, stop), (d, p) in made.items()]


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
