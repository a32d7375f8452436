"""The split of ε that serves a target best: how much the error of each feature matters.

A *specialist* for a feature spends all of ε on it. The errors that a split leaves are so many times the specialists', and what is
minimised is the worst of weight × ratio over the features of the target (then the second worst, and so on). Twice the weight asks for half
the ratio. Ratios are free of scale: no feature counts for more because its counts are larger. Errors are those of
`cbdp.privacy.budget.errors`.

The split is in thousandths of ε. Every measured feature gets at least a hundredth, or less so that those outside the target cost at most
4 % together: they are published all the same, and help to tell what to expect of each trip type.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.features.presets import EXTRA
from cbdp.privacy.budget.base import Asked, Budget, DemandFacts, Standing
from cbdp.privacy.budget.errors import Model, model
from cbdp.privacy.budget.search import least_worst
from cbdp.privacy.numbers import positive

Target = Mapping[str, Any]

UNITS = 1000  # parts that ε is dealt out in
LEAST, TOGETHER = 10, 40  # parts that every measured feature gets, but no more than so many in all
FINE = 10 * UNITS  # parts for what is compared with and not spent
MOST = 1000  # splits that are remembered


@dataclass(frozen=True)
class Optimal(Budget):
    """The split that serves a stated target best."""

    name: ClassVar[str] = "optimal"
    about: ClassVar[str] = "for a target: how much the error of each table matters"
    needs_target: ClassVar[bool] = True

    def split(self, asked: Asked) -> dict[str, Fraction]:
        return optimal(asked.features, asked.levels, asked.epsilon, self.target(asked), asked.facts)

    def standing(self, asked: Asked) -> Standing:
        return standing(asked.features, self.split(asked), self.target(asked), asked.facts)

    def target(self, asked: Asked) -> dict[str, Fraction]:
        """What is asked for, checked."""
        if asked.target is None:
            raise InputError("budget 'optimal' without a target: say what matters, like {'singleton': 1}")
        return check_target(asked.target, asked.features)


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
    target: Target,
    facts: DemandFacts | None = None,
    leaves: Fraction | None = None,
) -> dict[str, Fraction]:
    """Shares of ε that serve a target best, in the order of the levels; they add up to ε exactly.

    `leaves` is the part of ε that single trip types get at least.

    >>> from cbdp.features import Universe
    >>> dag = FeatureDag(Universe(origin=["A", "B", "C"], time=range(8)), [])
    >>> shares = optimal(dag, ["total", "singleton"], Fraction(1), {"singleton": 3, "total": 1})
    >>> {name: str(e) for name, e in shares.items()}
    {'total': '27/125', 'singleton': '98/125'}
    """
    wanted = check_target(target, features)
    parts = _split(model(features, levels, epsilon, facts or DemandFacts()), wanted, leaves)
    return {name: epsilon * part for name, part in zip(levels, parts, strict=True)}


def _split(of: Model, target: Mapping[str, Fraction], leaves: Fraction | None) -> list[Fraction]:
    levels, many = of.measured, len(of.measured)
    units = max(UNITS, 2 * many)
    own = int((leaves or 0) * units)
    spare = TOGETHER - own if own <= TOGETHER and SINGLETON not in target else TOGETHER
    least = np.full(many, max(1, min(LEAST, spare // max(1, many - 1))))
    if SINGLETON in levels:
        least[levels.index(SINGLETON)] = max(own, least[0])
    return [Fraction(int(n), units) for n in _dealt(_Judge(of, target, units), least)]


def _dealt(judge: _Judge, least: Ints) -> Ints:
    """The split that the judge likes best; the same features are asked about again and again, also when they are made anew."""
    asked = (judge.content, least.tobytes())
    found = _KEPT.get(asked)
    if found is None:
        if len(_KEPT) >= MOST:
            _KEPT.clear()
        found = _KEPT[asked] = least_worst(judge, judge.units, least)
    return found


_KEPT: dict[Hashable, Ints] = {}


def standing(
    features: FeatureDag,
    given: Mapping[str, Fraction],
    target: Target,
    facts: DemandFacts | None = None,
    leaves: Fraction = Fraction(0),
) -> Standing:
    """How shares serve a target, by the model of errors, beside any that give single trip types such a part of ε."""
    epsilon, wanted = sum(given.values(), Fraction(0)), check_target(target, features)
    of = model(features, list(given), epsilon, facts or DemandFacts())
    judge = _Judge(of, wanted, FINE)
    least = np.array([int(leaves * FINE) if name == SINGLETON else 0 for name in given])
    best = _dealt(judge, least)
    own = of.precision(np.array([float(share / epsilon) for share in given.values()]))
    worst, bound = (
        float(np.exp(judge.of_precision(p).max())) for p in (own, judge.bought[best, np.arange(len(best))])
    )
    return Standing(wanted, worst, min(worst, bound), leaves, "ρ" if of.law.currency == "rho" else "ε")


class _Judge:
    """Splits in whole parts → logarithms of weight × ratio to the specialist, for each feature of the target."""

    def __init__(self, of: Model, target: Mapping[str, Fraction], units: int) -> None:
        self.of, self.units = of, units
        self.content = (of.content, tuple(target.items()), units)
        self.wanted = [of.names.index(name) for name in target]
        weight = np.array([float(weight) for weight in target.values()])
        self.base: Floats = np.log(weight / weight.max()) - 0.5 * np.log(of.alone()[self.wanted])

    @cached_property
    def bought(self) -> Floats:
        """The precision of each measured feature (last axis) for any number of parts."""
        parts = np.arange(self.units + 1)[:, None] / self.units
        return self.of.precision(np.repeat(parts, len(self.of.measured), axis=1))

    def __call__(self, parts: Ints) -> Floats:
        return self.of_precision(self.bought[parts, np.arange(parts.shape[-1])])

    def of_precision(self, precision: Floats) -> Floats:
        made: Floats = self.base + 0.5 * np.log(self.of.errors(precision)[..., self.wanted])
        return made
