"""The error that is to be expected of every feature, from public facts alone.

What is worked out rests on sizes, noise laws, the unit's sensitivity, an order of magnitude of trips, and this model.

1. *Noise.* An element of feature i is known from its own measurement, with the exact variance V_i of the noise that ε_i buys, and
   from every measured feature f that refines it: there n_f/n_i elements add up to it, with variance n_f/n_i · V_f. They
   combine by inverse variance. What coarser features say of it is left out.
2. *Signal.* What is known to be small cannot be far off, and most counts are small. Of T trips an element holds μ = T/n_i on
   average. A share φ of the elements holds any trips, μ/φ each on average, log-normally with σ² = `SPREAD` (two in three within
   a factor of four of the middle). One that holds x is off by x²·V′/(x² + V′): the risk of an estimate that shrinks each
   count as is best for its size. V′ is V, or more where few elements are filled: to stand out among empty ones a
   count must exceed the noise's scale b by a factor ln(1/φ), for the tail of the noise is exp(−x/b); so
   V′ = V · max(1, ln²(1/φ)/2). The share of trip types that are filled is stated, or what Poisson counts have whose means are
   twice as uneven as that; an element of k types is filled when one of them is. With unknown T nothing is shrunk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cbdp.features import FeatureDag
from cbdp.privacy.budget.base import DemandFacts
from cbdp.privacy.laws import LAWS, Law

Floats = NDArray[np.float64]

SPREAD = 2.0  # variance of the logarithm of counts that are not 0
NODES = np.arange(-8.0, 12.0, 0.1)  # standard deviations from the middle; squares weigh the upper tail
WEIGHTS = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
LARGEST = 500.0  # ε/Δ of one answer from which there is no noise to speak of


@dataclass(frozen=True, eq=False)
class Signal:
    """How large the counts of a feature are: the share of elements that hold any trips, and about how many those hold."""

    filled: float
    square: Floats  # of the counts that are not 0, at the nodes of their law

    def error(self, variance: float) -> tuple[float, float]:
        """The error variance that noise of this variance leaves, and its slope."""
        blur = max(1.0, math.log(self.filled) ** 2 / 2.0)  # V′/V
        kept = self.square / (self.square + variance * blur)
        return self.filled * float(WEIGHTS @ kept) * blur * variance, self.filled * float(
            WEIGHTS @ kept**2
        ) * blur


@dataclass(frozen=True, eq=False)
class Model:
    """The error that is to be expected of every feature (columns) when measured features (rows) get parts of ε."""

    names: tuple[str, ...]
    measured: tuple[str, ...]
    adds: Floats  # what a measured feature lends to each feature of its precision; 0 where it does not refine it
    rate: float  # ε/Δ
    signals: tuple[Signal | None, ...]  # None: nothing is known
    law: type[Law]

    def errors(self, part: Floats) -> tuple[Floats, Floats]:
        """Error variance of one element of each feature, and how it changes with each measured feature's part."""
        precision, steeper = self.law.precision(np.minimum(part * self.rate, LARGEST))
        variance = 1.0 / np.maximum(precision @ self.adds, np.finfo(float).tiny)
        error, slope = self._shrunk(variance)
        return error, -slope * variance**2 * self.adds * (steeper * self.rate)[:, None]

    def alone(self) -> Floats:
        """The error of each feature, had it all of ε to itself."""
        precision, _ = self.law.precision(np.array(min(self.rate, LARGEST)))
        return self._shrunk(np.full(len(self.names), 1.0 / precision))[0]

    def _shrunk(self, variance: Floats) -> tuple[Floats, Floats]:
        pairs = [
            (v, 1.0) if s is None else s.error(v)
            for s, v in zip(self.signals, variance.tolist(), strict=True)
        ]
        error, slope = np.array(pairs).T
        return error, slope


def model(features: FeatureDag, measured: Sequence[str], epsilon: Fraction, facts: DemandFacts) -> Model:
    """The model of errors for these measured features."""
    names = tuple(features.features)
    adds = np.zeros((len(measured), len(names)))
    for row, fine in enumerate(measured):
        for column, coarse in enumerate(names):
            if fine == coarse or features.graph.has_edge(fine, coarse):
                adds[row, column] = features.size(coarse) / features.size(fine)
    rate = float(epsilon / Fraction(facts.sensitivity))
    return Model(names, tuple(measured), adds, rate, tuple(_signals(features, facts)), LAWS.get(facts.law))


def _signals(features: FeatureDag, facts: DemandFacts) -> Iterator[Signal | None]:
    if facts.trips is None:
        yield from [None] * len(features.features)
        return
    trips, types = float(facts.trips), features.universe.size
    filled = _filled(trips / types) if facts.filled is None else float(facts.filled)
    for name in features.features:
        size = features.size(name)
        any_of = 1.0 if filled >= 1 else -math.expm1(types / size * math.log1p(-filled))
        yield Signal(any_of, _log_normal(trips / size / any_of, SPREAD) ** 2)


def _log_normal(mean: float, spread: float) -> Floats:
    """Values at the nodes of a log-normal law of this mean."""
    made: Floats = mean * np.exp(math.sqrt(spread) * NODES - spread / 2.0)
    return made


def _filled(mean: float) -> float:
    """The share of trip types that hold any trips, if it is not known."""
    return max(float(WEIGHTS @ -np.expm1(-_log_normal(mean, 2 * SPREAD))), np.finfo(float).tiny)


def expected_errors(
    features: FeatureDag, given: Mapping[str, Fraction], facts: DemandFacts | None = None
) -> dict[str, float]:
    """By feature the expected error of one count in trips (a standard deviation), if ε is shared so.

    >>> from cbdp.features import Universe
    >>> dag = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [])
    >>> {name: round(off, 2) for name, off in expected_errors(dag, {"singleton": Fraction(1)}).items()}
    {'total': 2.71, 'singleton': 1.36}
    """
    epsilon = sum(given.values(), Fraction(0))
    made = model(features, list(given), epsilon, facts or DemandFacts())
    errors = np.sqrt(made.errors(np.array([float(share / epsilon) for share in given.values()]))[0])
    return dict(zip(made.names, errors.tolist(), strict=True))
