"""What must be true of every count before anything is spent on it, found by other code than the count.

A violation means that one trip or one person could weigh more than the unit of privacy says, so that ε would be false. It stops the
release with nothing spent. The facts are private, and so is which of them is wrong: the message is for the curator.
"""

from __future__ import annotations

from cbdp.errors import InputError
from cbdp.trips.engines.base import Facts
from cbdp.trips.plan import CountingPlan


class InvariantError(InputError):
    """A count contradicts what can be known of it: nothing was released, and nothing was spent."""


def check(plan: CountingPlan, facts: Facts) -> None:
    """Refuse a count that breaks an invariant."""
    if facts.changed:
        raise InvariantError(
            f"{facts.changed[0]!r} was written while it was counted: count again when it is at rest"
        )
    most = facts.read if plan.weight is None else facts.weight or 0
    if facts.inside > most or facts.kept > facts.inside:
        raise InvariantError(
            "more trips were counted than there are: a row was counted twice; nothing was spent. Report this, please"
        )
    if plan.bound is None:
        return
    if facts.most_kept is None or facts.allowed is None or (plan.bound.apart and facts.most_apart is None):
        raise InvariantError(
            "the engine did not say how many trips of each person it kept: nothing was spent"
        )
    if facts.most_kept > plan.bound.most or facts.kept > facts.allowed:
        raise InvariantError(
            f"more than {plan.bound.most} trips of a person were counted; nothing was spent. Report this, please"
        )
    if (facts.most_apart or 0) > 1:
        raise InvariantError(
            "two trips of a person were counted that should have been kept apart; nothing was spent. Report this, please"
        )
