"""What `cbdp check --json` prints: the numbers of a plan, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cbdp.app.explain.examples import example
from cbdp.app.explain.explanation import Explanation
from cbdp.app.plan.facts import PlannedRelease


def stated(plan: PlannedRelease, told: Explanation, answers: Sequence[str]) -> dict[str, Any]:
    """ε, δ and shares as numbers, and as exact fractions where they are no decimals."""
    cost = plan.mechanism.claim().cost
    return {
        "dataset": told.dataset,
        "mechanism": told.mechanism,
        "claim": told.claim,
        "epsilon": float(cost.epsilon),
        "delta": float(cost.delta),
        "rho": float(cost.rho) if cost.currency == "rho" else None,
        "unit": str(plan.unit),
        "dimensions": told.dimensions,
        "types": told.types,
        "expected_trips": plan.expected_trips,
        "confidence": told.confidence,
        "tables": _tables(plan, told),
        "budgets": {name: dict(errors) for name, errors in told.choices.items()},
        "account": {
            "ledger": plan.account.path.name,
            "exists": plan.account.exists,
            "cap": str(plan.account.caps),
            "spent": str(plan.account.spent),
            "cost": str(plan.account.left - plan.account.after),
        },
        "files": list(told.files),
        "request": told.request,
        "answers": list(answers),
        "warnings": list(told.warnings),
    }


def _tables(plan: PlannedRelease, told: Explanation) -> list[dict[str, Any]]:
    """By table what is measured and what is to be expected; None where that is not known."""
    noise, expected = {n.feature: n for n in told.noise}, {e.feature: e for e in told.expected}
    features = plan.mechanism.measured_features
    made = []
    for name in dict.fromkeys([*expected, *noise]):
        n, e = noise.get(name), expected.get(name)
        made.append(
            {
                "table": name,
                "counts": features.size(name),
                "share": None if n is None else float(n.epsilon),
                "share_exact": None if n is None else str(n.epsilon),
                "scale": None if n is None else float(n.scale),
                "noise": None if n is None else n.half_width,
                "error": None if e is None else e.error,
                "count": None if e is None else e.count,
                "low": None if e is None else e.low,
                "high": None if e is None else e.high,
                "within": None if e is None else e.relative,
                "good_from": None if e is None else e.good,
                "good_for": None if e is None or e.use is None else e.use.can,
                "example": None if e is None else example(features.features[name].by, e),
            }
        )
    return made
