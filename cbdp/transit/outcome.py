"""The report of a run that was not simulated by us, computed from what happened: a plug-in cannot flatter itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbdp.arrays import Ints
from cbdp.transit.demand import Legs, arrivals
from cbdp.transit.simulator import Fleet, Service

Intervals = Sequence[tuple[int, int]]


def outcome_service(
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
    parked = np.array([span - _covered(b, low, high) for b in working], dtype=np.int64)
    empty = np.array([span - _covered(sorted(b), low, high) for b in on_board], dtype=np.int64)
    return Service(fleet, legs, *outcome, metres, empty, parked, log)


def _covered(intervals: Intervals, low: int, high: int) -> int:
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
