"""The shuttle simulator against a slow reference written from its rules alone, and what no run may violate."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shuttle_cases import random_case, small_city

from cbdp.errors import InputError
from cbdp.transit.city import City, make_city
from cbdp.transit.modes import Legs, ModeRule, Trips, legs_of
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
    figures,
    simulate,
)


@dataclass
class Shuttle:
    """A shuttle of the reference: where it stands, who is on board, and its plan of (leg, is drop, second)."""

    zone: int
    stop: int
    on_board: dict[int, int] = field(default_factory=dict)
    plan: list[tuple[int, bool]] = field(default_factory=list)
    next_at: int = -1  # when the first task's stop is reached


class Reference:
    """The rules in plain Python: every way of inserting is written out and judged as a whole."""

    def __init__(self, city: City, shuttles: tuple[int, ...], legs: Legs, rules: Operations) -> None:
        self.city, self.legs, self.rules = city, legs, rules
        self.fleet = [
            Shuttle(z, int(city.depots(z)[j % len(city.depots(z))]))
            for z, n in enumerate(shuttles)
            for j in range(n)
        ]
        self.release: dict[int, int] = {}
        self.log: list[tuple[int, int, int, int, int]] = []

    def hop(self, a: int, b: int) -> int:
        return 0 if a == b else int(self.city.seconds[a, b]) + self.rules.stop_seconds

    def stop(self, task: tuple[int, bool]) -> int:
        leg, is_drop = task
        return int((self.legs.destination if is_drop else self.legs.origin)[leg])

    def times(self, shuttle: Shuttle, plan: list[tuple[int, bool]], now: int) -> list[int]:
        """The second of every task; the first is fixed by the commitment, where there is one."""
        made: list[int] = []
        for j, task in enumerate(plan):
            if j:
                made.append(made[-1] + self.hop(self.stop(plan[j - 1]), self.stop(task)))
            elif shuttle.plan:
                made.append(shuttle.next_at)
            else:
                made.append(now + self.hop(shuttle.stop, self.stop(task)))
        return made

    def burden(self, shuttle: Shuttle, plan: list[tuple[int, bool]], now: int) -> tuple[int, int, int] | None:
        """End, total wait and total ride of a plan, or None if it breaks a rule."""
        rules = self.rules
        if len(plan) > rules.max_tasks:
            return None
        boarded = dict(shuttle.on_board)
        wait = ride = 0
        times = self.times(shuttle, plan, now)
        for (leg, is_drop), second in zip(plan, times, strict=True):
            if is_drop:
                direct = self.hop(int(self.legs.origin[leg]), int(self.legs.destination[leg]))
                lasted = second - boarded.pop(leg)
                if lasted > direct * rules.ride_percent // 100 + rules.ride_slack:
                    return None
                ride += lasted
            else:
                if second - self.release[leg] > rules.patience:
                    return None
                wait += second - self.release[leg]
                boarded[leg] = second
                if len(boarded) > rules.capacity:
                    return None
        return (times[-1] if times else now), wait, ride

    def offer(self, leg: int, now: int) -> tuple[int, list[tuple[int, bool]]] | None:
        ways = []
        for number, shuttle in enumerate(self.fleet):
            if shuttle.zone != self.legs.zone[leg]:
                continue
            old = shuttle.plan
            was = self.burden(shuttle, old, now)
            assert was is not None, "a plan that was allowed stays so"
            for p in range(1 if old else 0, len(old) + 1):
                for r in range(p, len(old) + 1):
                    plan = [*old[:p], (leg, False), *old[p:r], (leg, True), *old[r:]]
                    new = self.burden(shuttle, plan, now)
                    if new is not None:
                        weights = (self.rules.drive_weight, self.rules.wait_weight, self.rules.ride_weight)
                        cost = sum(w * (a - b) for w, a, b in zip(weights, new, was, strict=True))
                        ways.append((cost, number, p, r, plan))
        if not ways:
            return None
        _, number, _, _, plan = min(ways, key=lambda way: way[:4])
        return number, plan

    def run(self) -> list[tuple[int, int, int, int, int]]:
        legs = self.legs
        events = [(int(s), 0, leg) for leg, s in enumerate(legs.release) if s >= 0]
        while events:
            event = min(events)
            events.remove(event)
            now, kind, number = event
            events += self.released(number, now) if kind == 0 else self.arrived(number, now)
        return self.log

    def set_out(self, number: int, now: int) -> tuple[int, int, int]:
        shuttle = self.fleet[number]
        to = self.stop(shuttle.plan[0])
        if to != shuttle.stop:
            self.log.append((now, DEPARTS, number, -1, to))
        shuttle.next_at = now + self.hop(shuttle.stop, to)
        return shuttle.next_at, 1, number

    def released(self, leg: int, now: int) -> list[tuple[int, int, int]]:
        self.release[leg] = now
        origin = int(self.legs.origin[leg])
        self.log.append((now, RELEASED, -1, leg, origin))
        found = self.offer(leg, now)
        if found is None:
            self.log.append((now, REFUSED, -1, leg, origin))
            return []
        number, plan = found
        self.log.append((now, ASSIGNED, number, leg, origin))
        parked = not self.fleet[number].plan
        self.fleet[number].plan = plan
        return [self.set_out(number, now)] if parked else []

    def arrived(self, number: int, now: int) -> list[tuple[int, int, int]]:
        shuttle = self.fleet[number]
        here = self.stop(shuttle.plan[0])
        if here != shuttle.stop:
            self.log.append((now, ARRIVES, number, -1, here))
        shuttle.stop = here
        events = []
        while shuttle.plan and self.stop(shuttle.plan[0]) == here:
            leg, is_drop = shuttle.plan.pop(0)
            self.log.append((now, DROPPED_OFF if is_drop else PICKED_UP, number, leg, here))
            if is_drop:
                del shuttle.on_board[leg]
                events += [
                    (self.by_bus(int(later), now), 0, int(later))
                    for later in np.flatnonzero(self.legs.follows == leg)
                ]
            else:
                shuttle.on_board[leg] = now
        return [*events, self.set_out(number, now)] if shuttle.plan else events

    def by_bus(self, leg: int, now: int) -> int:
        path = int(self.legs.path[leg])
        for offset, headway, seconds in [] if path < 0 else self.legs.timetable[path].tolist():
            if headway:
                departure = next(t for t in itertools.count(now) if (t - offset) % headway == 0)
                now = departure + seconds
        return now


@pytest.mark.parametrize("seed", range(120))
def test_log_is_the_references(seed: int) -> None:
    """The compiled simulator and the plain reference write the same log, line by line."""
    city, fleet, legs, rules = random_case(seed)
    service = simulate(city, fleet, legs, rules, log=True)
    assert service.log is not None
    assert [tuple(row) for row in service.log.tolist()] == Reference(city, fleet, legs, rules).run()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_no_run_breaks_a_rule(seed: int) -> None:
    """Read from the log alone: capacity, movement, precedence, one service per leg, patience, rides and waits."""
    city, fleet, legs, rules = random_case(seed)
    service = simulate(city, fleet, legs, rules, log=True)
    assert service.log is not None
    hop = rules.hop(city)
    stop = dict(enumerate(Fleet(fleet).starts(city).tolist()))
    left: dict[int, tuple[int, int]] = {}
    on_board: dict[int, set[int]] = {v: set() for v in stop}
    metres = dict.fromkeys(stop, 0)
    seen: dict[tuple[int, int], int] = {}
    assert (np.diff(service.log[:, 0]) >= 0).all()
    for second, kind, v, leg, at in service.log.tolist():
        if leg >= 0:
            assert (kind, leg) not in seen, "nothing happens to a leg twice"
            seen[kind, leg] = second
        if kind == DEPARTS:
            left[v] = second, at
            metres[v] += int(city.metres[stop[v], at])
        elif kind == ARRIVES:
            begun, to = left.pop(v)
            assert to == at
            assert second - begun == hop[stop[v], at], "no shuttle is faster than the road"
            stop[v] = at
        elif kind in (PICKED_UP, DROPPED_OFF):
            assert v not in left
            assert stop[v] == at == (legs.destination if kind == DROPPED_OFF else legs.origin)[leg]
            assert (leg in on_board[v]) == (kind == DROPPED_OFF)
            (on_board[v].discard if kind == DROPPED_OFF else on_board[v].add)(leg)
            assert len(on_board[v]) <= rules.capacity
    assert not any(on_board.values())
    assert service.metres.tolist() == list(metres.values())
    for leg in range(len(legs)):
        before = int(legs.follows[leg])
        released = (RELEASED, leg) in seen
        assert released == (before < 0 or (DROPPED_OFF, before) in seen)
        assert ((PICKED_UP, leg) in seen) == ((DROPPED_OFF, leg) in seen) == bool(service.served[leg])
        assert released == (((REFUSED, leg) in seen) != bool(service.served[leg])) or not released
        if service.served[leg]:
            assert 0 <= seen[PICKED_UP, leg] - seen[RELEASED, leg] <= rules.patience
            direct = hop[legs.origin[leg], legs.destination[leg]]
            lasted = seen[DROPPED_OFF, leg] - seen[PICKED_UP, leg]
            assert direct <= lasted <= direct * rules.ride_percent // 100 + rules.ride_slack
    waits = [seen[PICKED_UP, i] - seen[RELEASED, i] for i in range(len(legs)) if service.served[i]]
    total = figures(service, city)["total"]
    assert total["unserved"] + len(waits) == len(legs)
    assert waits == service.wait.tolist()
    if waits:
        assert total["wait"] == pytest.approx(np.mean(waits))


def test_second_leg_waits_for_the_bus() -> None:
    """A rider by shuttle, bus and shuttle is released at the second hub when the first bus after the drop-off is there."""
    rng = np.random.default_rng(5)
    city = small_city(rng, 2, 5)
    modes = ModeRule(walk=0.1, border=0.1).choose(city)
    trips = Trips(np.array([1]), np.array([6]), np.array([1000]), (0, 3600))
    legs = legs_of(trips, modes)
    assert legs.release.tolist() == [1000, -1]
    service = simulate(city, (1, 1), legs)
    line = city.lines[0]
    departure = service.drop[0] + (line.offset - service.drop[0]) % line.headway
    assert service.release[1] == departure + line.run[0]


def test_simultaneous_riders_share_a_shuttle() -> None:
    """Eight riders of one second at a parked shuttle's stop leave together; the ninth waits for its return."""
    city = make_city(["a", "b"], [0, 5], [0, 0], ["z", "z"], ["a"])
    trips = Trips(np.zeros(9, dtype=np.int64), np.ones(9, dtype=np.int64), np.full(9, 50), (0, 3600))
    service = simulate(city, (1,), legs_of(trips, ModeRule().choose(city)))
    assert sorted(service.wait.tolist())[:8] == [0] * 8
    assert service.wait.max() == 2 * Operations().hop(city)[0, 1]


def test_idle_times_are_those_of_the_intervals() -> None:
    """Empty and parked seconds agree with the log's intervals inside the hours."""
    city, fleet, legs, rules = random_case(11)
    service = simulate(city, fleet, legs, rules, log=True)
    lo, hi = legs.hours
    for v in range(sum(fleet)):
        mine = np.flatnonzero((service.shuttle == v) & service.served)
        loaded = np.zeros(hi - lo, dtype=bool)
        for leg in mine:
            loaded[max(0, service.pickup[leg] - lo) : max(0, service.drop[leg] - lo)] = True
        assert service.empty[v] == (~loaded).sum()
        assert service.parked[v] <= service.empty[v]


def test_a_zone_without_demand_has_no_figures() -> None:
    """Means over nothing are NaN, counts are zero, and nothing fails."""
    city = small_city(np.random.default_rng(0), 2, 3)
    trips = Trips(np.array([1]), np.array([2]), np.array([10]), (0, 60))
    found = figures(simulate(city, (1, 1), legs_of(trips, ModeRule(walk=0.0).choose(city))), city)
    assert found["z1"]["legs"] == 0
    assert np.isnan(found["z1"]["wait"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capacity": 0}, "capacity is 0"),
        ({"ride_percent": 99}, "at least 100"),
        ({"stop_seconds": -1}, "cannot be negative"),
        ({"max_tasks": 1}, "at least 2"),
    ],
)
def test_bad_operations_are_refused(change: dict[str, int], message: str) -> None:
    """Rules that make no sense are errors that name the number."""
    with pytest.raises(InputError, match=message):
        Operations(**change)


def test_bad_fleets_are_refused() -> None:
    """A fleet has a whole number of shuttles for every zone."""
    city = small_city(np.random.default_rng(0), 2, 3)
    legs = legs_of(Trips(*(np.zeros(0, dtype=np.int64),) * 3, (0, 60)), ModeRule().choose(city))
    with pytest.raises(InputError, match="1 zones, the city 2"):
        simulate(city, (1,), legs)
    with pytest.raises(InputError, match="-1 shuttles"):
        simulate(city, (1, -1), legs)
