"""What a dispatcher is told and what it answers: the state of the service now, and a shuttle's new plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cbdp.arrays import Ints
from cbdp.transit.city import City
from cbdp.transit.simulator import Operations

Task = tuple[int, bool]  # a leg, and whether it is dropped off (or picked up)


@dataclass(frozen=True)
class KnownLeg:
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
    legs: Mapping[int, KnownLeg] = field(repr=False)


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
