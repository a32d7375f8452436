"""The constraint-based mechanism on the same data: a feature for each level, pure ε, and the same neighbours as the rival's.

One trip is replaced by another, so the number of trips is the same in all neighbouring data: it is public, costs nothing and is met
exactly, as it is by the rival. All of ε goes to the levels below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import cbdp
from benchmarks.inftda.demand import Demand, Level, levels
from benchmarks.inftda.metrics import Published
from cbdp.counting import Counts
from cbdp.features import SINGLETON, TOTAL, Dimension
from cbdp.privacy.budget import measured_features, optimal_shares
from cbdp.privacy.expected_error import DemandFacts

UNIT = cbdp.Trip("replace")
PAIRS = 2  # how much more single pairs weigh than a level: they are what is published in the end
MUCH_NOISE = Fraction(
    1, 10
)  # an ε at which noise is far wider than a trip, so that only ratios of shares count


def name_of(level: Level, depth: int) -> str:
    """The feature that tells a level's areas apart."""
    if level == (0, 0):
        return TOTAL
    return SINGLETON if level == (depth, depth) else f"{level[0]}-{level[1]}"


def features(truth: Demand) -> cbdp.FeatureDag:
    """A feature for each level; places are numbered, and their areas are attributes."""
    depth = truth.depth
    inner: Any = {f"area{k}": truth.above[k] for k in range(1, depth)}
    place = Dimension(range(truth.places), **inner)
    universe = cbdp.Universe(origin=place, destination=place)

    def side(end: str, level: int) -> list[str]:
        return [] if level == 0 else [end if level == depth else f"{end}.area{level}"]

    made = [
        cbdp.Feature(name_of(at, depth), by=[*side("origin", at[0]), *side("destination", at[1])])
        for at in levels(depth)[1:-1]
    ]
    return cbdp.FeatureDag(universe, made)


def counts(truth: Demand, universe: cbdp.Universe) -> Counts:
    index = universe.rank_codes([truth.origin, truth.destination])
    order = index.argsort()
    return Counts(universe, index[order], truth.trips[order], UNIT)


def mechanism(
    dag: cbdp.FeatureDag, trips: int, epsilon: Any, budget: str, **more: Any
) -> cbdp.ConstraintBased:
    """`budget` is one of the library's, or "levels"."""
    shared: Any = level_shares(dag, Fraction(epsilon)) if budget == "levels" else budget
    return cbdp.ConstraintBased(dag, epsilon, UNIT, public={TOTAL: trips}, budget=shared, **more)


def level_shares(dag: cbdp.FeatureDag, epsilon: Fraction) -> dict[str, Fraction]:
    """Shares that make the worst ratio to the rival's error least, single pairs counted double; nothing is assumed about the trips."""
    measured = measured_features(dag, [name for name in dag.features if name != TOTAL])
    theirs = relative_errors([dag.size(name) for name in dag.features])
    weight = {SINGLETON: PAIRS}
    target = {name: Fraction(weight.get(name, 1) / theirs[dag.size(name)]) for name in measured}
    facts = DemandFacts(UNIT.sensitivity, public=(TOTAL,))
    found = optimal_shares(dag, measured, MUCH_NOISE, target, facts)
    return {name: share / MUCH_NOISE * epsilon for name, share in found.items()}


def relative_errors(sizes: Sequence[int]) -> dict[int, float]:
    """By size of a level, the rival's standard error in that of its noise, were no count cut off at zero.

    A family of d keeps its parent's sum, so the noise's mean is taken off it, and it shares the parent's own error.

    >>> {size: round(error, 3) for size, error in relative_errors([1, 2, 4, 8]).items()}
    {2: 0.707, 4: 0.791, 8: 0.81}
    """
    variance, made = 0.0, {}
    for coarse, fine in pairwise(sizes):
        family = fine / coarse
        variance = 1 - 1 / family + variance / family**2
        made[fine] = math.sqrt(variance)
    return made


def published(made: cbdp.Release) -> Published:
    origin, destination = made.features.universe.unrank_codes(made.index)
    return Published(origin, destination, made.value)
