"""The split of ε with the least expected loss for a target: how much the error of each feature matters.

The loss is the sum over the target of weight × error variance / the error variance if all of ε went to that feature. It is
free of scale: of two features with equal weights neither counts for more because its counts are larger. Errors are those of
`cbdp.privacy.budget.errors`.

The split is in thousandths of ε, and every measured feature gets at least a hundredth: a table about which nothing was
asked is published all the same, and helps to tell what to expect of each leaf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.features import FeatureDag
from cbdp.features.presets import EXTRA
from cbdp.privacy.budget.base import Asked, Budget, DemandFacts
from cbdp.privacy.budget.errors import Model, model
from cbdp.privacy.numbers import positive

Floats = NDArray[np.float64]

UNITS = 1000  # parts that ε is dealt out in
LEAST = 10  # parts that every measured feature gets
BETTER = 1e-9  # of the loss: what a part must gain to be moved


@dataclass(frozen=True)
class Optimal(Budget):
    """The split that serves a stated target best."""

    name: ClassVar[str] = "optimal"
    about: ClassVar[str] = "for a target: how much the error of each table matters"
    needs_target: ClassVar[bool] = True

    def split(self, asked: Asked) -> dict[str, Fraction]:
        if asked.target is None:
            raise InputError("budget 'optimal' without a target: say what matters, like {'singleton': 1}")
        return optimal(asked.features, asked.levels, asked.epsilon, asked.target, asked.facts)


def check_target(target: Any, features: FeatureDag) -> dict[str, Fraction]:
    """How much the error of each feature matters: numbers above 0."""
    if not isinstance(target, Mapping) or not target:
        raise InputError(f"target is {target!r}: say how much features matter, like {{'singleton': 1}}")
    for name in target:
        if name not in features:
            cure = f": add it with extra=({name!r},)" if name in EXTRA else ""
            raise InputError(
                f"a target for {name!r}, which is not a feature: there are {', '.join(features.features)}{cure}"
            )
    return {name: positive(weight, f"the target of {name!r}") for name, weight in target.items()}


def optimal(
    features: FeatureDag,
    levels: Sequence[str],
    epsilon: Fraction,
    target: Mapping[str, Any],
    facts: DemandFacts | None = None,
) -> dict[str, Fraction]:
    """Shares of ε with the least expected loss for a target, in the order of the levels; they add up to ε exactly.

    >>> from cbdp.features import Universe
    >>> dag = FeatureDag(Universe(origin=["A", "B", "C"], time=range(8)), [])
    >>> shares = optimal(dag, ["total", "singleton"], Fraction(1), {"singleton": 1, "total": 1})
    >>> {name: str(e) for name, e in shares.items()}
    {'total': '489/1000', 'singleton': '511/1000'}
    """
    loss = _Loss(model(features, levels, epsilon, facts or DemandFacts()), check_target(target, features))
    units = max(UNITS, 2 * LEAST * len(levels))
    best = min((_descended(loss, start, LEAST / units) for start in _starts(loss)), key=loss)
    parts = _polished(loss, _whole(best, units), units)
    return {name: epsilon * Fraction(int(n), units) for name, n in zip(levels, parts, strict=True)}


class _Loss:
    """The logarithm of the loss of a split, and its slope."""

    def __init__(self, of: Model, target: Mapping[str, Fraction]) -> None:
        self.of = of
        wanted = np.array([float(target.get(name, 0)) for name in of.names])
        self.weight: Floats = wanted / wanted.sum() / of.alone()

    def __call__(self, part: Floats) -> float:
        return float(np.log(self.of.errors(part)[0] @ self.weight))

    def slope(self, part: Floats) -> Floats:
        error, change = self.of.errors(part)
        made: Floats = change @ self.weight / (error @ self.weight)
        return made


def _starts(loss: _Loss) -> list[Floats]:
    """The loss has several valleys (a table may be bought by itself or with its leaves): begin in each."""
    many = len(loss.of.measured)
    even = np.full(many, 1.0 / many)
    return [even, *(0.5 * even + 0.5 * own for own in np.eye(many))]


def _descended(loss: _Loss, start: Floats, least: float) -> Floats:
    from scipy.optimize import minimize

    found = minimize(
        loss,
        start,
        jac=loss.slope,
        method="SLSQP",
        bounds=[(least, 1.0)] * len(start),
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1.0, "jac": lambda a: np.ones(len(a))},
        options={"maxiter": 200, "ftol": 1e-12},
    ).x
    kept = np.maximum(found, least)
    made: Floats = least + (kept - least) * (1 - least * len(kept)) / max(
        (kept - least).sum(), np.finfo(float).tiny
    )
    return made if loss(made) < loss(start) else start


def _whole(part: Floats, units: int) -> NDArray[np.int64]:
    """Whole parts nearest to these that add up, none below the least."""
    exact = part * units
    down = np.maximum(np.floor(exact + 1e-9), LEAST).astype(np.int64)
    order = np.argsort(down - exact, kind="stable")
    for n in order[: max(0, units - int(down.sum()))]:
        down[n] += 1
    while down.sum() > units:  # the least was more than some had
        down[np.argmax(down)] -= 1
    return down


def _polished(loss: _Loss, parts: NDArray[np.int64], units: int) -> NDArray[np.int64]:
    """One part at a time moved to where it gains most, until none does: the last digits owe nothing to the search."""
    now = loss(parts / units)
    for _ in range(units):
        tried: list[tuple[float, int, NDArray[np.int64]]] = []
        for giver in np.flatnonzero(parts > LEAST):
            for taker in range(len(parts)):
                if taker != giver:
                    moved = parts.copy()
                    moved[giver] -= 1
                    moved[taker] += 1
                    tried.append((loss(moved / units), len(tried), moved))
        best = min(tried, key=lambda t: t[:2], default=(now, 0, parts))
        if best[0] >= now - BETTER:
            break
        now, parts = best[0], best[2]
    return parts
