"""Operations O(π, D): on-demand shuttles, event by event.

THE RULES. Times are whole seconds. `hop(a, b)` is the drive from stop a to stop b plus `stop_seconds` (slowing down, doors,
pulling out), and 0 from a stop to itself. Driving by way of a third stop never takes less.

Shuttles. Every zone has its own shuttles; they are numbered zone by zone. Shuttle j of a zone starts, parked, at the zone's
depot number j mod (number of depots); `City.depots` spreads them over the zone, as they would be after a morning's work. A
parked shuttle stays where it is.

Plans. A shuttle's plan is a list of tasks, each the pick-up or the drop-off of a leg at a stop. It goes from task to task by
`hop`; consecutive tasks at one stop happen at the same second. A shuttle is committed to its next stop: the first task of a
plan stays the first until it is done.

Events happen in order of time; at the same second releases come before arrivals, then lower numbers of legs or shuttles first.

A release. The leg is offered to every shuttle of its zone, in every way to insert its pick-up before task p and its
drop-off before task r ≥ p of the plan (p ≥ 1 if the plan has a first task; p and r may be its end). A way is allowed when
 · no more than `capacity` riders are on board at any time,
 · every rider is picked up at most `patience` seconds after the leg's release,
 · every rider's time on board is at most direct · `ride_percent` // 100 + `ride_slack`, direct being hop(from, to),
 · the plan has at most `max_tasks` tasks.
Its cost is `drive_weight` × how much later the plan ends (a parked shuttle's plan ends now) + `wait_weight` × seconds of
waiting + `ride_weight` × seconds on board that it adds, over the new rider and all others in the plan. The cheapest way is
taken; ties go to the lowest shuttle, then p, then r. If no way is allowed, the leg is refused: its rider is unserved, and a
leg that would follow is never released. A parked shuttle sets out at once (its arrival may be at the same second).

An arrival. The shuttle does all first tasks at the stop, in order. It then sets out for the stop of the next task, or parks.
A leg that waited for one that ends now is released when the buses between them arrive: each ride takes the first departure
that is not before the rider is there, plus its seconds.

The end. Everyone who was not refused is served, however late; idle times are counted inside the hours of the trips.

The log holds what happens, in order: released, assigned, refused, departs (to a stop), arrives, picked up, dropped off. A
shuttle that need not move neither departs nor arrives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.transit import kernel
from cbdp.transit.city import City
from cbdp.transit.demand import Legs, arrivals

RELEASED, ASSIGNED, REFUSED, DEPARTS, ARRIVES, PICKED_UP, DROPPED_OFF = range(7)
EVENT_NAMES = ("released", "assigned", "refused", "departs", "arrives", "picked up", "dropped off")
UNLIMITED_WAIT = np.int64(2**60)  # seconds of waiting that no run reaches


@dataclass(frozen=True)
class Operations:
    """The numbers of the rules. `capacity` is the case study's; the others are ours, chosen to give its service.

    A stop costs 30 s for slowing down, doors and pulling out. A ride takes at most 1.5 times the direct one plus five
    minutes. A second of waiting weighs as much as three seconds of driving, and a second on board as much as two.

    >>> Operations(capacity=4).capacity, Operations().stop_seconds
    (4, 30)
    """

    capacity: int = 8
    stop_seconds: int = 30
    ride_percent: int = 150
    ride_slack: int = 300
    patience: int = 3600
    max_tasks: int = 64
    drive_weight: int = 1
    wait_weight: int = 3
    ride_weight: int = 2

    def __post_init__(self) -> None:
        for name, least in (("capacity", 1), ("patience", 0), ("max_tasks", 2), ("ride_percent", 100)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}: give at least {least}")
        for name in ("stop_seconds", "ride_slack", "drive_weight", "wait_weight", "ride_weight"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} is {getattr(self, name)}: it cannot be negative, so give 0 or more")

    def hop(self, city: City) -> Ints:
        seconds = city.seconds + self.stop_seconds
        np.fill_diagonal(seconds, 0)
        return seconds

    def longest_ride(self, direct: Ints) -> Ints:
        return direct * self.ride_percent // 100 + self.ride_slack


@dataclass(frozen=True)
class Fleet:
    """The number of shuttles of each zone, in the order of the city's zones.

    >>> Fleet((3, 2)).shuttles
    (3, 2)
    """

    shuttles: tuple[int, ...]

    def __post_init__(self) -> None:
        for n in self.shuttles:
            if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
                raise InputError(
                    f"a fleet of {n!r} shuttles: give a whole number of at least 0 for every zone"
                )

    @property
    def total(self) -> int:
        return int(sum(self.shuttles))

    @cached_property
    def first(self) -> Ints:
        """The number of each zone's first shuttle, and the total."""
        return np.concatenate([[0], np.cumsum(self.shuttles)]).astype(np.int64)

    def starts(self, city: City) -> Ints:
        """The stop at which each shuttle starts."""
        if len(self.shuttles) != len(city.zones):
            raise InputError(
                f"the fleet has {len(self.shuttles)} zones, the city {len(city.zones)}: give one number for every zone"
            )
        stops = [np.resize(city.depots(z), n) for z, n in enumerate(self.shuttles)]
        return np.concatenate(stops).astype(np.int64) if stops else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Service:
    """What happened: by leg, by shuttle, and the log if one was asked for. −1 is the second of what never happened.

    >>> import numpy as np
    >>> from cbdp.transit import ModeRule, Trips, legs_of, make_city, simulate
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> riders = Trips(np.array([0, 2]), np.array([1, 0]), np.array([60, 120]), (0, 3600))
    >>> legs = legs_of(riders, ModeRule().choose(city))
    >>> simulate(city, [1], legs).drop.tolist()
    [263, 1015]
    """

    fleet: Fleet
    legs: Legs = field(repr=False)
    release: Ints = field(repr=False)
    pickup: Ints = field(repr=False)
    drop: Ints = field(repr=False)
    shuttle: Ints = field(repr=False)
    metres: Ints = field(repr=False)  # by shuttle
    empty: Ints = field(repr=False)  # seconds of the hours without a rider on board, by shuttle
    parked: Ints = field(repr=False)  # seconds of the hours without a task, by shuttle
    log: Ints | None = field(default=None, repr=False)  # second, kind, shuttle, leg, stop
    stopped: bool = False  # the run was cut short because a limit was broken

    @property
    def served(self) -> NDArray[np.bool_]:
        return self.drop >= 0

    @property
    def wait(self) -> Ints:
        """Seconds from release to pick-up, of the legs that were served."""
        return (self.pickup - self.release)[self.served]

    def lines(self) -> list[str]:
        """The log in words."""
        rows = [] if self.log is None else self.log.tolist()
        return [f"{s} {EVENT_NAMES[k]} shuttle {v} leg {leg} stop {stop}" for s, k, v, leg, stop in rows]


def simulate(
    city: City,
    fleet: Fleet | Sequence[int],
    legs: Legs,
    operations: Operations | None = None,
    *,
    log: bool = False,
) -> Service:
    """Run the shuttles on these legs by the rules of `cbdp.transit.simulator`.

    >>> import numpy as np
    >>> from cbdp.transit import ModeRule, Trips, legs_of, make_city
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> riders = Trips(np.array([0, 2]), np.array([1, 0]), np.array([60, 120]), (0, 3600))
    >>> legs = legs_of(riders, ModeRule().choose(city))
    >>> service = simulate(city, [1], legs)
    >>> (service.pickup - legs.release).tolist()
    [0, 433]
    """
    chosen = fleet if isinstance(fleet, Fleet) else Fleet(tuple(fleet))
    return simulate_within_budget(city, chosen, legs, operations or Operations(), log=log)


def simulate_within_budget(
    city: City,
    fleet: Fleet,
    legs: Legs,
    operations: Operations,
    *,
    log: bool = False,
    wait_budget: Ints | None = None,
) -> Service:
    """`simulate`; with a budget of waiting seconds by zone it stops as soon as a zone exceeds its own or refuses a leg."""
    hop, direct = operations.hop(city), operations.hop(city)[legs.origin, legs.destination]
    if len(direct) and not direct.all():
        raise InputError(
            "a shuttle leg ends at the stop where it begins: give such trips a mode without shuttles"
        )
    starts = fleet.starts(city)
    budget = np.full(len(city.zones), UNLIMITED_WAIT) if wait_budget is None else wait_budget
    o = operations
    outcome = kernel.run_events(
        hop, city.metres, starts, fleet.first,
        legs.origin, legs.destination, legs.zone, legs.release, legs.next, legs.path, legs.timetable,
        o.longest_ride(direct), o.capacity, o.patience, o.max_tasks,
        np.array([o.drive_weight, o.wait_weight, o.ride_weight], dtype=np.int64),
        np.array(legs.hours, dtype=np.int64), budget, wait_budget is not None, log,
    )  # fmt: skip
    release, pickup, drop, shuttle, metres, empty, parked, rows, stopped = outcome
    return Service(
        fleet,
        legs,
        release,
        pickup,
        drop,
        shuttle,
        metres,
        empty,
        parked,
        rows if log else None,
        bool(stopped),
    )


def figures(service: Service, city: City) -> dict[str, dict[str, float]]:
    """The figures of every zone and in total: see `measures`.

    >>> import numpy as np
    >>> from cbdp.transit import ModeRule, Trips, legs_of, make_city, simulate
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> riders = Trips(np.array([0, 2]), np.array([1, 0]), np.array([60, 120]), (0, 3600))
    >>> legs = legs_of(riders, ModeRule().choose(city))
    >>> sorted(figures(simulate(city, [1], legs), city))
    ['total', 'town']
    """
    zone = service.legs.zone
    of_shuttle = np.repeat(np.arange(len(city.zones)), service.fleet.shuttles)
    by_zone = {name: measures(service, zone == z, of_shuttle == z) for z, name in enumerate(city.zones)}
    everything = np.ones(len(zone), dtype=bool), np.ones(len(of_shuttle), dtype=bool)
    return {**by_zone, "total": measures(service, *everything)}


def measures(service: Service, legs: NDArray[np.bool_], shuttles: NDArray[np.bool_]) -> dict[str, float]:
    """Figures of some legs and shuttles. Waits and rides are means over the legs served, idle times means over shuttles.

    `idle` is the time without a rider on board (as in the case study), `parked` the time without a task. `occupancy` is
    the mean number of riders in a shuttle that has any. A mean of nothing is NaN.
    """
    done = legs & service.served
    wait = (service.pickup - service.release)[done].astype(float)
    ride = (service.drop - service.pickup)[done]
    carrying = _occupied_seconds(service, shuttles)
    return {
        "shuttles": float(shuttles.sum()),
        "legs": float(legs.sum()),
        "unserved": float(legs.sum() - done.sum()),
        "wait": _mean_or_nan(wait),
        "wait95": float(np.percentile(wait, 95)) if len(wait) else float("nan"),
        "ride": _mean_or_nan(ride.astype(float)),
        "idle": _mean_or_nan(service.empty[shuttles].astype(float)),
        "parked": _mean_or_nan(service.parked[shuttles].astype(float)),
        "km": float(service.metres[shuttles].sum()) / 1000,
        "occupancy": float(ride.sum()) / carrying if carrying else float("nan"),
    }


def _mean_or_nan(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _occupied_seconds(service: Service, shuttles: NDArray[np.bool_]) -> float:
    """The seconds during which shuttles had a rider on board, over the whole run."""
    done = np.flatnonzero(service.served)
    if not len(done):
        return 0.0
    done = done[np.lexsort((service.pickup[done], service.shuttle[done]))]
    return float(
        kernel.union_lengths(service.shuttle[done], service.pickup[done], service.drop[done], shuttles)
    )


def totals_by_zone(service: Service, zones: int) -> tuple[Ints, Ints, Ints]:
    """Total wait, legs served and legs unserved, by zone."""
    zone, done = service.legs.zone, service.served
    wait = np.bincount(zone[done], weights=service.wait, minlength=zones).astype(np.int64)
    served = np.bincount(zone[done], minlength=zones).astype(np.int64)
    return wait, served, np.bincount(zone[~done], minlength=zones).astype(np.int64)


def legs_subset(legs: Legs, keep: NDArray[Any], release: Ints) -> Legs:
    """Some of the legs; if the leg before one is left out, it is released at the given second."""
    kept = np.flatnonzero(keep)
    new_number = np.full(len(legs) + 1, -1, dtype=np.int64)
    new_number[kept] = np.arange(len(kept))
    follows = new_number[legs.follows[kept]]  # −1 looks up the spare last place
    begin = np.where((legs.follows[kept] >= 0) & (follows < 0), release[kept], legs.release[kept])
    columns: Mapping[str, Any] = {
        n: getattr(legs, n)[kept] for n in ("trip", "origin", "destination", "zone", "path")
    }
    return Legs(**columns, release=begin, follows=follows, timetable=legs.timetable, hours=legs.hours)


# The figures of a run that was not simulated by us, computed from what happened


Intervals = Sequence[tuple[int, int]]


def service_of_outcome(
    fleet: Fleet,
    legs: Legs,
    outcome: tuple[Ints, Ints, Ints, Ints],
    metres: Ints,
    busy: Sequence[Intervals],
    log: Ints,
) -> Service:
    """The service of a run: release, pick-up, drop-off and shuttle of every leg, and when each shuttle had a task."""
    _, pickup, drop, shuttle = outcome
    low, high = legs.hours
    span = high - low
    on_board: list[list[tuple[int, int]]] = [[] for _ in busy]
    for leg in np.flatnonzero(drop >= 0):
        on_board[int(shuttle[leg])].append((int(pickup[leg]), int(drop[leg])))
    working = [sorted([*a, *b]) for a, b in zip(busy, on_board, strict=True)]
    parked = np.array([span - _union_length(b, low, high) for b in working], dtype=np.int64)
    empty = np.array([span - _union_length(sorted(b), low, high) for b in on_board], dtype=np.int64)
    return Service(fleet, legs, *outcome, metres, empty, parked, log)


def _union_length(intervals: Intervals, low: int, high: int) -> int:
    """The length, between `low` and `high`, of a union of intervals sorted by their beginnings."""
    total, until = 0, low
    for begin, end in intervals:
        first, last = max(begin, until), min(end, high)
        total += max(0, last - first)
        until = max(until, last)
    return total


def bus_arrival(legs: Legs, leg: int, now: int) -> int:
    """When the rider of a leg that follows another, who is dropped off now, is at its origin."""
    path = legs.path[[leg]]
    return now if path[0] < 0 else int(arrivals(legs.timetable, path, np.array([now]))[0])
