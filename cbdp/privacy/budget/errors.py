"""The error that is to be expected of every feature, from public facts alone.

What is worked out rests on sizes, noise laws, the unit's sensitivity, an order of magnitude of trips, and this model.

1. *Noise.* All measurements are reconciled by least squares, weighed by inverse variance, on a balanced design
   (`cbdp.privacy.budget.strata`): finer features add up to coarser ones, coarser ones correct finer ones, and features that cross help one
   another through what they have in common. The noise of each measurement has the exact variance that its part of ε buys.
2. *Signal.* What is known to be small cannot be far off, and most counts are small. Of T trips an element holds μ = T/n_i on
   average. A share φ of the elements holds any trips, m = μ/φ each on average: one, and a log-normal number more. The logarithm of these has variance
   σ² = `SPREAD` for single trip types, and less for coarser features, in proportion to ln n_i: every doubling of the elements adds as much
   unevenness, and the total has none. An element that holds x is off by x²·V/(x² + V): the risk of an estimate that shrinks each
   count as is best for its size. Where few elements are filled, a count drowns among the noise of empty ones, and is off by all of x²,
   unless it exceeds b·ln(1/φ): the tail of noise of scale b = √(V/2) is exp(−x/b). The step is rounded off. The share of trip
   types that are filled is stated, or what Poisson counts have whose means are twice as uneven as that; an element of k types is filled when one
   of them is, and as types in use are neighbours, k^0.8 of them have a say. With unknown T nothing is shrunk.
3. *Sums of shrunk trip types.* Tables are told by trip types that were shrunk already: less noise is added up than was measured, but errors that
   shrinking makes are shared. In sums a trip type counts with the geometric mean of the two variances. That is no theorem: it lies halfway, and
   fits simulated releases (docs/explanation/accuracy.md).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cbdp.arrays import Floats
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.budget.base import DemandFacts
from cbdp.privacy.budget.strata import TINY, Strata, strata_of
from cbdp.privacy.laws import LAWS, Law
from cbdp.privacy.sensitivity import Change

SPREAD = 2.25  # variance of the logarithm of what trip types hold beyond one trip
GATHERED = 0.8
NODES = np.arange(-8.0, 12.0, 0.25)  # standard deviations from the middle; squares weigh the upper tail
WEIGHTS = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
CERTAIN = 1e30  # precision of what is public
LARGEST = 500.0  # one over the scale of one answer, from which there is no noise to speak of


@dataclass(frozen=True, eq=False)
class Signal:
    """How large the counts of a feature are: the share of elements that hold any trips, and about how many those hold."""

    filled: float
    square: Floats  # of the counts that are not 0, at the nodes of their law

    def error(self, variance: Floats) -> Floats:
        """The error variance that noise of this variance leaves."""
        made: Floats = self.filled * (self.risk(self.square, variance[..., None]) @ WEIGHTS)
        return made

    def risk(self, square: Floats, noise: Floats) -> Floats:
        """The error variance of elements that hold counts of these squares, where noise has this variance."""
        drowned = noise / 2.0 * math.log(self.filled) ** 2  # the square of what stands out
        lost = drowned**2 / (drowned**2 + square**2)
        made: Floats = square * (lost + (1.0 - lost) * noise / (square + noise))
        return made


@dataclass(frozen=True, eq=False)
class Model:
    """The error that is to be expected of every feature when measured features get parts of ε."""

    strata: Strata
    measured: tuple[str, ...]
    amount: float  # ε, or ρ
    changes: tuple[Change, ...]  # of all features, by one unit
    signals: tuple[Signal | None, ...]  # None: nothing is known
    law: type[Law]
    public: tuple[str, ...] = ()  # features whose counts are known

    @property
    def names(self) -> tuple[str, ...]:
        return self.strata.names

    @property
    def content(self) -> Hashable:
        """The same for models that expect the same errors."""
        signals = tuple(s and (s.filled, s.square.tobytes()) for s in self.signals)
        return (self.strata.content, self.measured, self.amount, self.changes, signals, self.law, self.public)

    def precision(self, part: Floats) -> Floats:
        """Of one count of each measured feature (last axis), for these parts of the whole; 0 where nothing is spent."""
        made = np.zeros(part.shape)
        for column, name in enumerate(self.measured):
            made[..., column] = self._bought(name, part[..., column])
        return made

    def _bought(self, feature: str, part: Floats) -> Floats:
        change = self.changes[self.names.index(feature)]
        rate = np.minimum(self.law.rate(part * self.amount, change), LARGEST)
        spent = rate > 0
        made = np.zeros(rate.shape)
        made[spent] = self.law.precision(rate[spent])[0]
        return made

    def errors(self, precision: Floats) -> Floats:
        """Error variance of a count of each feature (last axis), given the precision of each measured one (last axis)."""
        made = self._shrunk(self.reconciled(precision))
        leaves = self.names.index(SINGLETON)
        if self.signals[leaves] is not None:
            sums = self._in_sums(self._every(precision), made[..., leaves])
            made[..., :leaves] = self._shrunk(sums)[..., :leaves]
        return made

    def reconciled(self, precision: Floats) -> Floats:
        """The variance of the noise of a count of each feature, once all measurements agree and before anything is shrunk."""
        return self.strata.variance(self._every(precision))

    def _every(self, precision: Floats) -> Floats:
        """The precision of every feature, from that of the measured ones."""
        every = np.zeros((*precision.shape[:-1], len(self.names)))
        every[..., [self.names.index(name) for name in self.measured]] = precision
        every[..., [self.names.index(name) for name in self.public]] = CERTAIN
        return every

    def _in_sums(self, precision: Floats, error: Floats) -> Floats:
        """Variances where leaves add up with less noise than they have: geometric means of that and of what shrinking leaves."""
        leaves = self.names.index(SINGLETON)
        sums = precision.copy()
        sums[..., leaves] = np.sqrt(precision[..., leaves] / np.maximum(error, TINY))
        return self.strata.variance(sums)

    def alone(self) -> Floats:
        """The error variance of each feature, had it all of ε to itself: that of a specialist."""
        return self._shrunk(np.array([1.0 / float(self._bought(name, np.ones(1))[0]) for name in self.names]))

    def ratios(self, part: Floats) -> Floats:
        """How many times the specialist's error that of each feature is (last axis), given the measured ones' parts of ε."""
        made: Floats = np.sqrt(self.errors(self.precision(part)) / self.alone())
        return made

    def _shrunk(self, variance: Floats) -> Floats:
        made = variance.copy()
        for column, signal in enumerate(self.signals):
            if signal is not None:
                made[..., column] = signal.error(variance[..., column])
        return made


def model(features: FeatureDag, measured: Sequence[str], epsilon: Fraction, facts: DemandFacts) -> Model:
    """The model of errors for these measured features."""
    signals, strata = tuple(_signals(features, facts)), strata_of(features)
    changes = tuple(facts.change(name) for name in strata.names)
    law = LAWS.get(facts.law)
    return Model(strata, tuple(measured), float(epsilon), changes, signals, law, facts.public)


def _signals(features: FeatureDag, facts: DemandFacts) -> Iterator[Signal | None]:
    if facts.trips is None:
        yield from [None] * len(features.features)
        return
    trips, types = float(facts.trips), features.universe.size
    filled = _filled(trips / types) if facts.filled is None else min(float(facts.filled), trips / types)
    for name in features.features:
        size = features.size(name)
        apart = (types / size) ** GATHERED
        any_of = 1.0 if filled >= 1 else -math.expm1(apart * math.log1p(-filled))
        uneven = SPREAD * math.log(size) / max(math.log(types), 1.0)
        beyond_one = max(trips / size / any_of - 1.0, 0.0)
        yield Signal(any_of, (1.0 + _log_normal(beyond_one, uneven)) ** 2)


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
    part = np.array([float(share / epsilon) for share in given.values()])
    errors = np.sqrt(made.errors(made.precision(part)))
    return dict(zip(made.names, errors.tolist(), strict=True))
