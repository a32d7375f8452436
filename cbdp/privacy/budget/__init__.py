"""How ε is shared among the measured features: all ways to split it, by name or as a mapping that sums to ε."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from cbdp.errors import BudgetError, InputError
from cbdp.features import FeatureDag
from cbdp.parts import Parts, instance_of
from cbdp.privacy.budget.base import Asked, Budget, DemandFacts, Standing
from cbdp.privacy.numbers import Number, positive

BUDGETS: Parts[Budget] = Parts(
    "budget",
    "cbdp.budget",
    {
        "balanced": "cbdp.privacy.budget.served:BalancedBudget",
        "leaves": "cbdp.privacy.budget.served:LeavesBudget",
        "tables": "cbdp.privacy.budget.served:TablesBudget",
        "uniform": "cbdp.privacy.budget.even:UniformBudget",
        "geometric": "cbdp.privacy.budget.even:GeometricBudget",
        "optimal": "cbdp.privacy.budget.optimal:Optimal",
    },
    instance_of(Budget),
    base="cbdp.privacy.budget.Budget",
)
BudgetLike = str | Budget | Mapping[str, Any]  # a name, a budget, or feature → share


def measured_levels(features: FeatureDag, only: Sequence[str] | None = None) -> tuple[str, ...]:
    """The measured features, coarse ones first: all, or those named.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> measured_levels(features), measured_levels(features, ["singleton", "time"])
    (('total', 'time', 'singleton'), ('time', 'singleton'))
    """
    measured = list(features.features) if only is None else list(only)
    for name in measured:
        if measured.count(name) > 1:
            raise InputError(
                f"feature {name!r} is listed twice: a second answer would cost a second share of ε"
            )
        if name not in features:
            raise InputError(f"unknown feature {name!r}: there are {', '.join(features.features)}")
    if not measured:
        raise InputError("there is nothing to spend a budget on: measure at least one feature")
    order = list(features.features)
    return tuple(sorted(measured, key=lambda n: (features.size(n), order.index(n))))


def shares(
    features: FeatureDag,
    epsilon: Number,
    budget: BudgetLike,
    only: Sequence[str] | None = None,
    *,
    target: Mapping[str, Any] | None = None,
    facts: DemandFacts | None = None,
    enough: Fraction | None = None,
) -> dict[str, Fraction]:
    """What each measured feature gets of ε, coarse ones first; it adds up to ε exactly.

    `target` and `facts` are what a budget "optimal" goes by, `enough` is the most that tables get with "leaves".

    >>> from cbdp.features import Universe
    >>> dag = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [])
    >>> {name: str(e) for name, e in shares(dag, 1, "balanced").items()}
    {'total': '3/5', 'singleton': '2/5'}
    """
    levels, whole = measured_levels(features, only), positive(epsilon)
    if isinstance(budget, Mapping):
        return _given(levels, whole, budget)
    return BUDGETS.get(budget).split(Asked(features, levels, whole, target, facts or DemandFacts(), enough))


def _given(levels: Sequence[str], epsilon: Fraction, budget: Mapping[str, Any]) -> dict[str, Fraction]:
    for name in budget:
        if name not in levels:
            raise InputError(f"a budget for {name!r}, which is not measured: there are {', '.join(levels)}")
    missing = [name for name in levels if name not in budget]
    if missing:
        raise InputError(f"no budget for {missing[0]!r}: name every measured feature")
    found = {name: positive(budget[name], f"the budget of {name!r}") for name in levels}
    if sum(found.values()) > epsilon:
        raise BudgetError(f"the budgets add up to {sum(found.values())}, more than epsilon {epsilon}")
    if sum(found.values()) < epsilon:
        raise InputError(
            f"the budgets add up to {sum(found.values())}, less than epsilon {epsilon}: spend all of it"
        )
    return found


__all__ = [
    "BUDGETS",
    "Asked",
    "Budget",
    "BudgetLike",
    "DemandFacts",
    "Standing",
    "measured_levels",
    "shares",
]
