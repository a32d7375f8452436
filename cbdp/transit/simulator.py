"""Operations O(π, D): on-demand shuttles, event by event: the dynamic dial-a-ride problem (Cordeau and Laporte, 2007) by cheapest insertion.

The rules are those of MATSim's extension for demand-responsive transport (Bischoff, Maciejewski and Nagel, 2017) for stop-based service: `patience` is its maximum
wait, `ride_percent` and `ride_slack` its `maxDetourAlpha` and `maxDetourBeta` (its maximum *travel* time has the wait in it), `stop_seconds` its stop duration. No library serves: fleet sizing runs
thousands of these simulations, in whole seconds and without chance, so that a test can compare every event with a second implementation of the rules.

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

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cbdp.arrays import Bools, Floats, Ints
from cbdp.compiling import kernel
from cbdp.errors import InputError
from cbdp.transit.city import City
from cbdp.transit.modes import Legs, arrivals

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

    @property
    def rules(self) -> Rules:
        return Rules(
            self.capacity, self.patience, self.max_tasks, self.drive_weight, self.wait_weight, self.ride_weight
        )  # fmt: skip


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
    [402, 1710]
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
    def served(self) -> Bools:
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
    [0, 780]
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
    release, pickup = (np.full(len(legs), -1, dtype=np.int64) for _ in range(2))
    columns = LegColumns(legs.origin, legs.destination, release, pickup, operations.longest_ride(direct))
    drop, shuttle, metres, empty, parked, rows, stopped = _run_events(
        hop, city.metres, starts, fleet.first, legs.zone, legs.next, legs.path, legs.timetable, legs.release, columns,
        operations.rules, np.array(legs.hours, dtype=np.int64), budget, wait_budget is not None, log,
    )  # fmt: skip
    return Service(
        fleet, legs, release, pickup, drop, shuttle, metres, empty, parked, rows if log else None, bool(stopped)
    )  # fmt: skip


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


def measures(service: Service, legs: Bools, shuttles: Bools) -> dict[str, float]:
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


def _mean_or_nan(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _occupied_seconds(service: Service, shuttles: Bools) -> float:
    """The seconds during which shuttles had a rider on board, over the whole run."""
    done = service.served
    occupied = _union_seconds(service.shuttle[done], service.pickup[done], service.drop[done], len(shuttles))
    return float(occupied[shuttles].sum())


def _union_seconds(shuttle: Ints, begin: Ints, end: Ints, shuttles: int) -> Ints:
    """The length of the union of each shuttle's intervals."""
    if not len(shuttle):
        return np.zeros(shuttles, dtype=np.int64)
    order = np.lexsort((begin, shuttle))
    shift = shuttle[order] * (end.max() + 1 - begin.min())  # intervals of two shuttles never meet
    first, last = begin[order] + shift, end[order] + shift
    covered = np.maximum.accumulate(np.concatenate([first[:1], last]))[:-1]
    new = np.maximum(0, last - np.maximum(first, covered))
    return np.bincount(shuttle[order], weights=new, minlength=shuttles).astype(np.int64)


def totals_by_zone(service: Service, zones: int) -> tuple[Ints, Ints, Ints]:
    """Total wait, legs served and legs unserved, by zone."""
    zone, done = service.legs.zone, service.served
    wait = np.bincount(zone[done], weights=service.wait, minlength=zones).astype(np.int64)
    served = np.bincount(zone[done], minlength=zones).astype(np.int64)
    return wait, served, np.bincount(zone[~done], minlength=zones).astype(np.int64)


def legs_subset(legs: Legs, keep: Bools, release: Ints) -> Legs:
    """Some of the legs; if the leg before one is left out, it is released at the given second."""
    kept = np.flatnonzero(keep)
    new_number = np.full(len(legs) + 1, -1, dtype=np.int64)
    new_number[kept] = np.arange(len(kept))
    follows = new_number[legs.follows[kept]]  # −1 looks up the spare last place
    return Legs(
        trip=legs.trip[kept],
        origin=legs.origin[kept],
        destination=legs.destination[kept],
        zone=legs.zone[kept],
        release=np.where((legs.follows[kept] >= 0) & (follows < 0), release[kept], legs.release[kept]),
        follows=follows,
        path=legs.path[kept],
        timetable=legs.timetable,
        hours=legs.hours,
    )


# The figures of a run that was not simulated by us, computed from what happened


Intervals = Sequence[tuple[int, int]]


def service_of_outcome(
    fleet: Fleet,
    legs: Legs,
    outcome: tuple[Ints, Ints, Ints, Ints],
    metres: Ints,
    busy: Sequence[Intervals],
    log: Sequence[tuple[int, int, int, int, int]],
) -> Service:
    """The service of a run: release, pick-up, drop-off and shuttle of every leg, when each shuttle had a task, and the log."""
    _, pickup, drop, shuttle = outcome
    low, high = legs.hours
    done = drop >= 0
    rides = np.column_stack([shuttle[done], pickup[done], drop[done]])
    tasks = [(v, begin, end) for v, intervals in enumerate(busy) for begin, end in intervals]
    working = np.concatenate([rides, np.array(tasks, dtype=np.int64).reshape(-1, 3)])
    empty, parked = (
        high - low - _union_seconds(v, np.clip(begin, low, high), np.clip(end, low, high), fleet.total)
        for v, begin, end in (rides.T, working.T)
    )
    rows = np.array(log, dtype=np.int64).reshape(-1, 5)
    return Service(fleet, legs, *outcome, metres, empty, parked, rows)


def bus_arrival(legs: Legs, leg: int, now: int) -> int:
    """When the rider of a leg that follows another, who is dropped off now, is at its origin."""
    path = legs.path[[leg]]
    return now if path[0] < 0 else int(arrivals(legs.timetable, path, np.array([now]))[0])


# The compiled part: the insertion of a leg into a plan, and the loop over events


class Rules(NamedTuple):
    """What the compiled loops read of `Operations`."""

    capacity: int
    patience: int
    max_tasks: int
    drive_weight: int
    wait_weight: int
    ride_weight: int


class LegColumns(NamedTuple):
    """By leg: `release` and `pickup` are −1 until they happen, `max_ride` is the longest time on board that is allowed."""

    origin: Ints
    destination: Ints
    release: Ints
    pickup: Ints
    max_ride: Ints


class Plans(NamedTuple):
    """Plans (shuttle × position): each task, its stop and its second. Task 2 · leg is a pick-up, task 2 · leg + 1 a drop-off."""

    task: Ints
    stop: Ints
    due: Ints


@kernel
def _heap_push(heap: Ints, size: int, key: int) -> int:
    """`heapq.heappush` into a heap of `size` keys; numba compiles `heapq` for lists alone."""
    i = size
    while i > 0:
        up = (i - 1) >> 1
        if heap[up] <= key:
            break
        heap[i] = heap[up]
        i = up
    heap[i] = key
    return size + 1


@kernel
def _heap_pop(heap: Ints, size: int) -> tuple[int, int]:
    top, size = heap[0], size - 1
    key, i = heap[size], 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = key
    return top, size


@kernel
def _bus_arrival(timetable: Ints, path: int, now: int) -> int:
    """`arrivals` of one rider."""
    if path < 0:
        return now
    for k in range(timetable.shape[1]):
        if timetable[path, k, 1] > 0:
            now += (timetable[path, k, 0] - now) % timetable[path, k, 1] + timetable[path, k, 2]
    return now


@kernel
def cheapest_insertion(  # noqa: PLR0915 - split, its loops could not stop each other
    hop: Ints, hop_to: Ints, plans: Plans, v: int, count: int, place: int, load: int, now: int, leg: int, legs: LegColumns, rules: Rules, scratch: Ints, best: int,
) -> tuple[int, int, int]:  # fmt: skip
    """The cheapest insertion of a leg into the plan of shuttle `v` that costs less than `best`: cost, p, r (p = −1: none).

    The shuttle is at (or left last) the stop `place`, with `load` riders and `count` tasks before it. `hop_to` is `hop` transposed, so that all
    drives to one stop lie side by side in memory; `scratch` has room for a number by leg.

    All pairs of places for pick-up and drop-off are tried, as in the heuristic of Jaw, Odoni, Psaraftis and Wilson (1986) and in MATSim's extension
    for demand-responsive transport (Bischoff, Maciejewski and Nagel, 2017). Tasks from p on happen `shift` later and those from r on `late`, and by
    the triangle inequality 0 ≤ shift ≤ late. So how much longer the others wait and ride follows from counting their pick-ups and drop-offs, and only
    an insertion that would be cheaper is checked rider by rider.
    """
    task, stop, due = plans
    origin, destination, release, pickup, max_ride = legs
    drive, wait, ride = rules.drive_weight, rules.wait_weight, rules.ride_weight
    s, d = origin[leg], destination[leg]
    best_p, best_r = -1, -1
    if count + 2 > rules.max_tasks:
        return best, best_p, best_r
    ends, direct = due[v, count - 1] if count else now, hop[s, d]
    picks_left, on_board = (count - load) // 2, load  # from p on; before p
    scratched = False
    for p in range(1 if count else 0, count + 1):
        if p == 0:
            picked_up = now + hop[place, s]
        else:
            picked_up = due[v, p - 1] + hop_to[s, stop[v, p - 1]]
            drops_here = task[v, p - 1] & 1
            on_board += 1 - 2 * drops_here
            picks_left -= 1 - drops_here
        waits = picked_up - release[leg]
        if waits > rules.patience or wait * waits + ride * direct >= best:
            break
        if on_board >= rules.capacity:
            continue
        shift, longer = np.int64(0), picked_up + direct - ends
        if p < count:
            shift = picked_up + hop[s, stop[v, p]] - due[v, p]
            longer = shift
        if drive * longer + wait * (waits + shift * picks_left) + ride * (direct + shift * on_board) >= best:
            continue
        riders, moved_picks, moved_drops, picks_after = on_board + 1, 0, 0, picks_left
        for r in range(p, count + 1):
            if r == p:
                dropped_off = picked_up + direct
            else:
                if task[v, r - 1] & 1 == 0:
                    riders, moved_picks, picks_after = riders + 1, moved_picks + 1, picks_after - 1
                    if riders > rules.capacity:
                        break
                else:
                    riders, moved_drops = riders - 1, moved_drops + 1
                dropped_off = due[v, r - 1] + shift + hop_to[d, stop[v, r - 1]]
            rides = dropped_off - picked_up
            if rides > max_ride[leg]:
                break
            late, longer = np.int64(0), dropped_off - ends
            if r < count:
                late = dropped_off + hop[d, stop[v, r]] - due[v, r]
                longer = late
            drops_after = count - r - picks_after
            longer_wait = shift * moved_picks + late * picks_after
            longer_ride = shift * moved_drops + late * drops_after - longer_wait
            cost = drive * longer + wait * (waits + longer_wait) + ride * (rides + longer_ride)
            if cost >= best:
                continue
            if not scratched:
                scratched = True
                for j in range(count):
                    if task[v, j] & 1 == 0:
                        scratch[task[v, j] >> 1] = j
            feasible = True
            for j in range(p, count):
                move = shift if j < r else late
                other = task[v, j] >> 1
                if task[v, j] & 1 == 0:
                    feasible = due[v, j] + move - release[other] <= rules.patience
                else:
                    boarded = pickup[other]
                    if boarded < 0:
                        k = scratch[other]
                        boarded = due[v, k] + (0 if k < p else (shift if k < r else late))
                    feasible = due[v, j] + move - boarded <= max_ride[other]
                if not feasible:
                    break
            if feasible:
                best, best_p, best_r = cost, p, r
    return best, best_p, best_r


@kernel
def _insert_leg(hop: Ints, plans: Plans, v: int, count: int, place: int, now: int, leg: int, legs: LegColumns, p: int, r: int) -> int:  # fmt: skip
    """Put a leg into the plan of shuttle `v` and update its times; return the new number of tasks."""
    task, stop, due = plans
    for j in range(count - 1, r - 1, -1):
        task[v, j + 2], stop[v, j + 2] = task[v, j], stop[v, j]
    task[v, r + 1], stop[v, r + 1] = 2 * leg + 1, legs.destination[leg]
    for j in range(r - 1, p - 1, -1):
        task[v, j + 1], stop[v, j + 1] = task[v, j], stop[v, j]
    task[v, p], stop[v, p] = 2 * leg, legs.origin[leg]
    count += 2
    for j in range(p, count):
        if j == 0:
            due[v, j] = now + hop[place, stop[v, j]]
        else:
            due[v, j] = due[v, j - 1] + hop[stop[v, j - 1], stop[v, j]]
    return count


@kernel
def _overlap(begin: int, end: int, hours: Ints) -> int:
    overlap: int = max(0, min(end, hours[1]) - max(begin, hours[0]))
    return overlap


@kernel
def _run_events(  # noqa: PLR0915 - one loop over events; its parts would share two dozen arrays
    hop: Ints, metres: Ints, starts: Ints, first: Ints, zone: Ints, follower: Ints, path: Ints, timetable: Ints, first_release: Ints, legs: LegColumns, rules: Rules, hours: Ints, wait_budget: Ints, strict: bool, logging: bool,
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, bool]:  # fmt: skip
    """Run all events; fills `release` and `pickup` of `legs`.

    Returns drop-off and shuttle of every leg; metres, seconds without a rider and seconds without a task of every shuttle; the log; and whether the
    run was stopped. A heap of keys second · 2³² + number orders the events: those of shuttles, with bit 31 set, come after those of legs.
    """
    shuttles, number_of_legs = len(starts), len(zone)
    release, pickup, origin, destination = legs.release, legs.pickup, legs.origin, legs.destination
    drop, shuttle = np.full(number_of_legs, -1, np.int64), np.full(number_of_legs, -1, np.int64)
    driven, carrying, working = np.zeros(shuttles, np.int64), np.zeros(shuttles, np.int64), np.zeros(shuttles, np.int64)  # fmt: skip
    place, load, count = starts.copy(), np.zeros(shuttles, np.int64), np.zeros(shuttles, np.int64)
    boarded, set_out = np.zeros(shuttles, np.int64), np.zeros(shuttles, np.int64)
    task, due = np.zeros((shuttles, rules.max_tasks), np.int64), np.zeros((shuttles, rules.max_tasks), np.int64)  # fmt: skip
    stop, hop_to = np.zeros((shuttles, rules.max_tasks), np.int64), hop.T.copy()
    plans = Plans(task, stop, due)
    scratch, earliest = np.zeros(number_of_legs, np.int64), np.zeros(shuttles, np.int64)
    waited = np.zeros(len(wait_budget), np.int64)
    rows = np.zeros((8 * number_of_legs if logging else 1, 5), np.int64)
    n = 0
    heap, size = np.zeros(2 * number_of_legs + shuttles + 1, np.int64), 0
    for leg in range(number_of_legs):
        if first_release[leg] >= 0:
            size = _heap_push(heap, size, first_release[leg] << 32 | leg)
    stopped = False
    while size and not stopped:
        key, size = _heap_pop(heap, size)
        now, number = key >> 32, key & 0x7FFFFFFF
        if key & 0x80000000 == 0:  # a release
            leg = number
            release[leg] = now
            if logging:
                rows[n] = now, 0, -1, leg, origin[leg]
                n += 1
            best, chosen, p, r = 1 << 60, -1, -1, -1
            z, s = zone[leg], origin[leg]
            nearest, soonest = -1, 1 << 60
            for v in range(first[z], first[z + 1]):  # when each could be at the origin
                earliest[v] = due[v, 0] + hop_to[s, stop[v, 0]] if count[v] else now + hop_to[s, place[v]]
                if earliest[v] < soonest:
                    nearest, soonest = v, earliest[v]
            # A good price early on saves most of the work for the other shuttles; 1 is added so that ties stay ties.
            if nearest >= 0:
                v = nearest
                best = cheapest_insertion(hop, hop_to, plans, v, count[v], place[v], load[v], now, leg, legs, rules, scratch, best)[0] + 1  # fmt: skip
            spent = rules.ride_weight * hop[s, destination[leg]] - rules.wait_weight * now
            for v in range(first[z], first[z + 1]):
                if rules.wait_weight * earliest[v] + spent >= best:
                    continue
                cost, vp, vr = cheapest_insertion(hop, hop_to, plans, v, count[v], place[v], load[v], now, leg, legs, rules, scratch, best)  # fmt: skip
                if vp >= 0:
                    best, chosen, p, r = cost, v, vp, vr
            if logging:
                rows[n] = now, 2 if chosen < 0 else 1, chosen, leg, s
                n += 1
            if chosen < 0:
                stopped = strict
                continue
            v = chosen
            shuttle[leg] = v
            parked = count[v] == 0
            count[v] = _insert_leg(hop, plans, v, count[v], place[v], now, leg, legs, p, r)
            waited[z] += due[v, p] - now  # at least: later insertions never make a task earlier
            stopped = stopped or waited[z] > wait_budget[z]
            if not parked:
                continue
            set_out[v] = now
            if s != place[v]:
                driven[v] += metres[place[v], s]
                if logging:
                    rows[n] = now, 3, v, -1, s
                    n += 1
            size = _heap_push(heap, size, due[v, 0] << 32 | 0x80000000 | v)
            continue
        v = number
        here = stop[v, 0]
        if logging and here != place[v]:
            rows[n] = now, 4, v, -1, here
            n += 1
        place[v] = here
        done = 0
        while done < count[v]:
            if stop[v, done] != here:
                break
            i = task[v, done]
            leg = i // 2
            done += 1
            if logging:
                rows[n] = now, 5 if i % 2 == 0 else 6, v, leg, here
                n += 1
            if i % 2 == 0:
                pickup[leg] = now
                if load[v] == 0:
                    boarded[v] = now
                load[v] += 1
            else:
                drop[leg] = now
                load[v] -= 1
                if load[v] == 0:
                    carrying[v] += _overlap(boarded[v], now, hours)
                later = follower[leg]
                if later >= 0:
                    size = _heap_push(heap, size, _bus_arrival(timetable, path[later], now) << 32 | later)
        count[v] -= done
        for j in range(count[v]):
            task[v, j], stop[v, j], due[v, j] = task[v, j + done], stop[v, j + done], due[v, j + done]
        if count[v] == 0:
            working[v] += _overlap(set_out[v], now, hours)
            continue
        to = stop[v, 0]
        driven[v] += metres[here, to]
        if logging:
            rows[n] = now, 3, v, -1, to
            n += 1
        size = _heap_push(heap, size, due[v, 0] << 32 | 0x80000000 | v)
    span = hours[1] - hours[0]
    return drop, shuttle, driven, span - carrying, span - working, rows[:n], stopped
