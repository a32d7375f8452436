"""How far published pairs are from the true ones at each level: the measures of the InfTDA paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.inftda.demand import Demand, Ints, Level, levels, summed

NAMES = ("mean", "most", "false discoveries", "false negatives")


@dataclass(frozen=True)
class Errors:
    """At one level: mean and largest absolute error of all pairs of areas, and false pairs in per cent."""

    mean: float
    most: float
    false_discoveries: float  # of the pairs with published trips, those that had none
    false_negatives: float  # of the pairs that had trips, those with none published

    @property
    def numbers(self) -> tuple[float, ...]:
        return self.mean, self.most, self.false_discoveries, self.false_negatives


@dataclass(frozen=True, eq=False)
class Published:
    """Pairs of places with published trips."""

    origin: Ints
    destination: Ints
    trips: Ints


def errors(truth: Demand, made: Published) -> dict[Level, Errors]:
    """By level, coarse ones first."""
    return {level: at_level(truth, made, level) for level in levels(truth.depth)}


def at_level(truth: Demand, made: Published, level: Level) -> Errors:
    real, published = truth.counts(level), summed(truth.key(level, made.origin, made.destination), made.trips)
    off = np.abs(summed(np.concatenate([real[0], published[0]]), np.concatenate([real[1], -published[1]]))[1])
    named, used = published[0][published[1] > 0], real[0]
    both = len(np.intersect1d(named, used, assume_unique=True))
    return Errors(
        float(off.sum()) / truth.pairs(level),
        float(off.max(initial=0)),
        100 * (1 - both / len(named)) if len(named) else 0.0,
        100 * (1 - both / len(used)) if len(used) else 0.0,
    )
