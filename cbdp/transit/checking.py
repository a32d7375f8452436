"""Does a dispatcher's decision keep the rules of `cbdp.transit.simulator`? A broken one is a `PluginError` with its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cbdp.transit.calling import PluginError
from cbdp.transit.dispatching import Decision, ShuttleState, State, Task, due_times

Broken = Callable[[str, str], PluginError]  # from a rule and what is wrong


def check_decision(state: State, leg: int, decision: Any) -> tuple[Task, ...]:
    """The plan of a decision, if it keeps every rule."""
    v = _shuttle(state, decision)
    shuttle = state.shuttles[v]

    def broken(rule: str, message: str) -> PluginError:
        return PluginError(rule, message, shuttle=v, second=state.now)

    try:
        plan = tuple((int(q), bool(drops)) for q, drops in decision.plan)
    except (TypeError, ValueError):
        raise broken("answer", "a plan is a list of pairs: leg, and whether it is dropped off") from None
    if shuttle.zone != state.legs[leg].zone:
        raise broken(
            "zone", f"leg {leg} belongs to zone {state.legs[leg].zone}, the shuttle to zone {shuttle.zone}"
        )
    _check_tasks(state, shuttle, leg, plan, broken)
    due = due_times(state, shuttle, plan)
    if decision.due is not None:
        _check_claim(plan, decision.due, due, broken)
    _check_rides(state, shuttle, plan, due, broken)
    return plan


def _shuttle(state: State, decision: Any) -> int:
    if not isinstance(decision, Decision):
        raise PluginError(
            "answer", f"a dispatcher returns a Decision or None, not {decision!r}", second=state.now
        )
    if not isinstance(decision.shuttle, int | np.integer) or not 0 <= decision.shuttle < len(state.shuttles):
        raise PluginError("answer", f"there is no shuttle {decision.shuttle!r}", second=state.now)
    return int(decision.shuttle)


def _check_tasks(
    state: State, shuttle: ShuttleState, leg: int, plan: tuple[Task, ...], broken: Broken
) -> None:
    """The plan holds the shuttle's tasks and the new leg's, each once, and begins where the shuttle is heading."""
    for q, _ in plan:
        if q not in state.legs:
            raise broken("future", f"the plan names leg {q}, which is neither waiting nor on board now")
    if shuttle.plan and plan[:1] != shuttle.plan[:1]:
        raise broken(
            "movement", "the shuttle is on its way to its next stop, but the plan begins with another task"
        )
    wanted = {*shuttle.plan, (leg, False), (leg, True)}
    if missing := sorted(wanted - set(plan)):
        raise broken("riders", f"the plan leaves out {_words(missing[0])}")
    if extra := sorted(set(plan) - wanted):
        raise broken("riders", f"the plan has {_words(extra[0])}, which is not this shuttle's")
    if len(set(plan)) < len(plan):
        raise broken("precedence", "the plan has a task twice")
    if len(plan) > state.operations.max_tasks:
        raise broken(
            "plan", f"the plan has {len(plan)} tasks: at most {state.operations.max_tasks} are allowed"
        )


def _check_claim(plan: tuple[Task, ...], claimed: Sequence[int], due: Sequence[int], broken: Broken) -> None:
    if len(claimed) != len(plan):
        raise broken("answer", f"{len(claimed)} times are given for {len(plan)} tasks")
    for task, says, at in zip(plan, claimed, due, strict=True):
        if says < at:
            raise broken(
                "movement",
                f"{_words(task)} is planned at {says}, but the shuttle cannot be there before {at}",
            )


def _check_rides(
    state: State, shuttle: ShuttleState, plan: tuple[Task, ...], due: Sequence[int], broken: Broken
) -> None:
    """Capacity, waits and rides, task by task."""
    rules = state.operations
    boarded = {q: k.pickup for q, k in state.legs.items() if (q, True) in shuttle.plan and k.pickup >= 0}
    for (q, drops), at in zip(plan, due, strict=True):
        known = state.legs[q]
        if not drops:
            boarded[q] = at
            if len(boarded) > rules.capacity:
                raise broken("capacity", f"{len(boarded)} riders at {at}, the shuttle holds {rules.capacity}")
            if at - known.release > rules.patience:
                raise broken(
                    "patience",
                    f"leg {q} would wait {at - known.release} s: at most {rules.patience} s are allowed",
                )
            continue
        if q not in boarded:
            raise broken("precedence", f"leg {q} is dropped off before it is picked up")
        lasted = at - boarded.pop(q)
        most = int(rules.longest_ride(state.hop[known.origin, known.destination]))
        if lasted > most:
            raise broken("ride", f"leg {q} would be on board for {lasted} s: at most {most} s are allowed")


def _words(task: Task) -> str:
    return f"the {'drop-off' if task[1] else 'pick-up'} of leg {task[0]}"
