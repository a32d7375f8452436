"""Where ε is spent: exact counts in, noisy answers out. The last step left of the wall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.measuring.noise import DiscreteLaplace, Entropy, SystemEntropy
from cbdp.measuring.sparse import Answer
from cbdp.privacy.allocation import LEAVES, OPTIMAL, Facts, named, optimal
from cbdp.privacy.budget import Budget, Number, Sequential, Spend, positive, split
from cbdp.privacy.measurement import Measurement
from cbdp.privacy.unit import Unit
from cbdp.trips.count import Counts

Ints = NDArray[np.int64]


def shares(
    features: FeatureDag,
    epsilon: Number,
    budget: Budget,
    only: Sequence[str] | None = None,
    *,
    target: Mapping[str, Any] | None = None,
    facts: Facts | None = None,
    enough: Fraction | None = None,
) -> dict[str, Fraction]:
    """What each measured feature gets of ε, coarse ones first.

    `target` and `facts` are what a budget "optimal" goes by, `enough` is the most that tables get with "leaves".
    """
    measured = list(features.features) if only is None else list(only)
    for name in measured:
        if measured.count(name) > 1:
            raise InputError(
                f"feature {name!r} is listed twice: a second answer would cost a second share of ε"
            )
    for name in measured:
        if name not in features:
            raise InputError(f"unknown feature {name!r}: there are {', '.join(features.features)}")
    measured.sort(key=lambda n: (features.size(n), list(features.features).index(n)))
    if isinstance(budget, str) and budget in LEAVES:
        return named(measured, positive(epsilon), budget, enough)
    if budget == OPTIMAL:
        if target is None:
            raise InputError("budget 'optimal' without a target: say what matters, like {'singleton': 1}")
        return optimal(features, measured, positive(epsilon), target, facts)
    return split(measured, positive(epsilon), budget)


def measure(
    counts: Counts,
    features: FeatureDag,
    epsilon: Number,
    budget: Budget = "uniform",
    *,
    only: Sequence[str] | None = None,
    entropy: Entropy | None = None,
    backend: Literal["cbdp", "opendp"] = "cbdp",
) -> list[Measurement]:
    """Noisy answers to every feature (or `only` some), together ε-differentially private.

    A feature partitions the trips, so one unit changes its counts by at most the unit's sensitivity Δ, and two-sided
    geometric noise of scale Δ/ε_i on them is ε_i-differentially private; answers about the same trips compose.
    """
    _check_universe(counts, features)
    source = entropy or SystemEntropy()
    given = shares(features, epsilon, budget, only)
    return [
        _answer(name, counts.of(features, name), counts.unit, e, source, backend) for name, e in given.items()
    ]


def _answer(
    name: str, truth: Ints, unit: Unit, epsilon: Fraction, source: Entropy, backend: Literal["cbdp", "opendp"]
) -> Measurement:
    law = DiscreteLaplace(Fraction(unit.sensitivity) / epsilon)
    noise = law.sample(len(truth), source) if backend == "cbdp" else law.sample(len(truth), backend=backend)
    return Measurement(name, truth + noise, scale=law.scale, epsilon=epsilon)


def measure_above(
    counts: Counts,
    features: FeatureDag,
    epsilon: Number,
    budget: Budget = "uniform",
    *,
    only: Sequence[str] | None = None,
    entropy: Entropy | None = None,
) -> tuple[list[Measurement], Answer]:
    """As `measure`, at the cost of the trips and not of the universe: `singleton` is revealed on demand, from the top down."""
    _check_universe(counts, features)
    source = entropy or SystemEntropy()
    given = shares(features, epsilon, budget, only)
    cell = features.cells.partition.element_of(counts.universe.unrank_codes(counts.index))
    held = np.zeros(features.cells.size, dtype=np.int64)
    np.add.at(held, cell, counts.value)
    answers = []
    for name, share in given.items():
        if name != SINGLETON:
            truth = np.zeros(features.size(name), dtype=np.int64)
            np.add.at(truth, features.cells.element_of_cell[name], held)
            answers.append(_answer(name, truth, counts.unit, share, source, "cbdp"))
    share = given[SINGLETON]
    return answers, Answer(counts, cell, features, Fraction(counts.unit.sensitivity) / share, source, share)


def _check_universe(counts: Counts, features: FeatureDag) -> None:
    if counts.universe.size != features.universe.size:
        raise InputError(f"the counts are of {counts.universe!r}, the features of {features.universe!r}")


def composition(measurements: Sequence[Measurement]) -> Sequential:
    """What the measurements cost together, with the argument."""
    return Sequential(tuple(Spend(m.feature, m.epsilon or Fraction(0)) for m in measurements), "features")
