"""The error to expect of every feature, from public facts alone: least squares on the strata of a balanced design, in closed form, with shrinkage.

First how measurements add to one another (`Strata`: an orthogonal block structure, Nelder 1965), then the error that is left after shrinkage (`ErrorModel`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from weakref import WeakKeyDictionary

import numpy as np

from cbdp.arrays import Floats
from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.numbers import positive
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS, NoiseDistribution
from cbdp.privacy.unit import Sensitivity


@dataclass(frozen=True)
class DemandFacts:
    """What is public about the trips: the unit's sensitivity, and about how many there are and how they are spread.

    >>> facts = DemandFacts(trips=40_000, filled=0.2)
    >>> facts.trips, facts.law
    (40000, 'geometric')
    """

    sensitivity: Fraction | int = 1
    trips: float | None = None
    filled: float | None = None  # share of the trip types that hold any trips
    law: str = "geometric"  # of the noise
    public: tuple[str, ...] = ()  # features whose counts are public already: nothing is spent on them
    changes: tuple[
        tuple[str, Sensitivity], ...
    ] = ()  # how much one unit changes each feature's counts, where it is known

    def __post_init__(self) -> None:
        if self.trips is not None:
            positive(self.trips, "expected_trips")
        if self.filled is not None and positive(self.filled, "expected_filled") > 1:
            raise InputError(f"expected_filled is {self.filled}, a share of the trip types: give at most 1")

    def change(self, feature: str) -> Sensitivity:
        """How much one unit can change the counts of a feature; where that is not known, the worst."""
        most = math.ceil(self.sensitivity)
        return dict(self.changes).get(feature) or Sensitivity(most, most**2, most, most)


# Strata
#
# A design is balanced when every element of a feature holds as many trip types as any other, and features cross evenly: of the trip
# types of a zone pair, the same part goes by each mode as everywhere. Averages over the elements of two features then commute, and
# the counts fall apart into *strata* that least squares treats one by one (an orthogonal block structure; Nelder 1965). A stratum belongs to a
# grouping K that a feature makes, or that some features have in common, and holds what K tells beyond all coarser groupings: d_K numbers.
# A feature with n_i elements, each measured with precision p_i (an inverse variance), tells of each stratum that it refines p_i/n_i. So the
# error variance of one of the n_j counts of feature j, after all measurements were reconciled by inverse variance, is
#
#     1/n_j² · Σ_K d_K / Σ_i p_i/n_i,    over strata K that j refines, and measured features i that refine K.
#
# Real zones differ in size, and modes go with distance: measurements then overlap a little more than in a balanced design.


Grouping = frozenset[str]  # all attributes that its elements tell

UNMEASURED_PRECISION = 1e-100  # of what no measurement tells: it can be divided by


@dataclass(frozen=True, eq=False)
class Strata:
    """The strata of a feature DAG."""

    names: tuple[str, ...]  # of the features
    sizes: Floats
    degrees: Floats  # numbers that each stratum holds
    refines: Floats  # strata × features: 1 where the feature refines the stratum's grouping

    @property
    def content(self) -> Hashable:
        """The same for features that add to one another alike."""
        return (self.names, self.sizes.tobytes(), self.degrees.tobytes(), self.refines.tobytes())

    def variance(self, precision: Floats) -> Floats:
        """Of a count of each feature (last axis), if each feature was measured with these precisions; 0: not measured. The GLS variance, stratum by stratum."""
        information = np.maximum((precision / self.sizes) @ self.refines.T, UNMEASURED_PRECISION)
        variance: Floats = (self.degrees / information) @ self.refines / self.sizes**2
        return variance


def design_strata(features: FeatureDag) -> Strata:
    """The strata of these features; worked out once.

    >>> from cbdp.features import Feature, Universe
    >>> dag = FeatureDag(Universe(origin=range(6), time=range(4)), [Feature("time", by="time"), Feature("from", by="origin")])
    >>> design_strata(dag).names, design_strata(dag).degrees.tolist()
    (('total', 'time', 'from', 'singleton'), [1.0, 3.0, 5.0, 15.0])
    """
    strata = _STRATA.get(features)
    if strata is None:
        strata = _STRATA[features] = _design_strata(features)
    return strata


_STRATA: WeakKeyDictionary[FeatureDag, Strata] = WeakKeyDictionary()


def _design_strata(features: FeatureDag) -> Strata:
    determined = {name: _determined_attributes(features, name) for name in features.features}
    strata = _common_groupings(features, determined)
    degrees: dict[Grouping, float] = {}
    for grouping, size in strata:  # coarse ones first
        degrees[grouping] = max(0.0, size - sum(d for other, d in degrees.items() if other < grouping))
    return Strata(
        tuple(determined),
        np.array([float(features.size(name)) for name in determined]),
        np.array([*degrees.values()], dtype=float),
        np.array(
            [[float(grouping <= attributes) for attributes in determined.values()] for grouping in degrees]
        ),
    )


def _determined_attributes(features: FeatureDag, name: str) -> Grouping:
    """Every attribute, of those that features group by, that the elements of a feature tell."""
    asked = dict.fromkeys(a for f in features.features.values() for a in f.by)
    return frozenset(a for a in asked if _determines(features, name, a))


def _determines(features: FeatureDag, name: str, attribute: str) -> bool:
    universe, by = features.universe, features.features[name].by
    target = universe.attribute(attribute)
    if attribute in by or set(target.of) <= set(by) or len(target.labels) == 1:
        return True
    near = _connected(features, by, set(target.of))
    if not near:
        return False
    alone = universe.partition(near).size
    return len(target.labels) <= alone and universe.partition([*near, attribute]).size == alone


def _connected(features: FeatureDag, by: Sequence[str], dims: set[str]) -> list[str]:
    """Those of some attributes that share dimensions with these, or with one that does: the others tell nothing of these."""
    reached, of = set(dims), {a: set(features.universe.attribute(a).of) for a in by}
    while True:
        near = [a for a in by if of[a] & reached]
        further = reached.union(*(of[a] for a in near))
        if further == reached:
            return near
        reached = further


def _common_groupings(features: FeatureDag, determined: dict[str, Grouping]) -> list[tuple[Grouping, int]]:
    """The groupings of features and what any of them have in common, coarse ones first, with their sizes."""
    every = dict.fromkeys(determined.values())
    while True:
        further = [a & b for a in every for b in every if a & b not in every]
        if not further:
            break
        every |= dict.fromkeys(further)
    sizes = {grouping: features.size(name) for name, grouping in determined.items()}
    sized = [(g, sizes[g] if g in sizes else _grouping_size(features, g)) for g in every]
    return sorted(sized, key=lambda pair: (pair[1], len(pair[0]), sorted(pair[0])))


def _grouping_size(features: FeatureDag, grouping: Grouping) -> int:
    """The number of elements of a grouping; attributes of dimensions that it tells anyway add none."""
    attributes = features.universe.attributes
    needed = [
        a
        for a in sorted(grouping)
        if a in features.universe.dimensions or not {*attributes[a].of} <= grouping
    ]
    return features.universe.partition(needed).size


# The model of errors, which rests on sizes, noise laws, the unit's sensitivity, an order of magnitude of trips, and this:
#
# 1. *Noise.* All measurements are reconciled by least squares, weighed by inverse variance, on a balanced design
#    (the strata above): finer features add up to coarser ones, coarser ones correct finer ones, and features that cross help one
#    another through what they have in common. The noise of each measurement has the exact variance that its part of ε buys.
# 2. *Signal.* What is known to be small cannot be far off, and most counts are small. Of T trips an element holds μ = T/n_i on
#    average. A share φ of the elements holds any trips, m = μ/φ each on average: one, and a log-normal number more. The logarithm of these has variance
#    σ² = `LOG_DEMAND_VARIANCE` for single trip types, and less for coarser features, in proportion to ln n_i: every doubling of the elements adds as much
#    unevenness, and the total has none. An element that holds x is off by x²·V/(x² + V): the risk of an estimate that shrinks each
#    count as is best for its size. Where few elements are filled, a count drowns among the noise of empty ones, and is off by all of x²,
#    unless it exceeds b·ln(1/φ): the tail of noise of scale b = √(V/2) is exp(−x/b). The step is rounded off. The share of trip
#    types that are filled is stated, or what Poisson counts have whose means are twice as uneven as that; an element of k types is filled when one
#    of them is, and as types in use are neighbours, k^`EFFECTIVE_TYPES_EXPONENT` of them have a say. With unknown T nothing is shrunk.
# 3. *Sums of shrunk trip types.* Tables are told by trip types that were shrunk already: less noise is added up than was measured, but errors that
#    shrinking makes are shared. In sums a trip type counts with the geometric mean of the two variances. That is no theorem: it lies halfway, and
#    fits simulated releases (docs/explanation/accuracy.md).


LOG_DEMAND_VARIANCE = 2.25  # of the logarithm of what filled trip types hold beyond one trip
EFFECTIVE_TYPES_EXPONENT = 0.8  # of k neighbouring types k to this power are filled or empty independently
QUADRATURE_NODES = np.arange(
    -8.0, 12.0, 0.25
)  # standard deviations from the middle; squares weigh the upper tail
QUADRATURE_WEIGHTS = np.exp(-0.5 * QUADRATURE_NODES**2) / np.exp(-0.5 * QUADRATURE_NODES**2).sum()
PUBLIC_PRECISION = 1e30  # of counts that are public: as good as exact
MAX_NOISE_RATE = 500.0  # one over the scale of one answer, from which there is no noise to speak of


@dataclass(frozen=True, eq=False)
class CountSizes:
    """How large the counts of a feature are: the share of elements that hold any trips, and about how many those hold."""

    filled: float
    square: Floats  # of the counts that are not 0, at the nodes of their law

    def error(self, variance: Floats) -> Floats:
        """The error variance that noise of this variance leaves."""
        expected: Floats = self.filled * (self.risk(self.square, variance[..., None]) @ QUADRATURE_WEIGHTS)
        return expected

    def risk(self, square: Floats, noise: Floats) -> Floats:
        """The error variance of elements that hold counts of these squares, where noise has this variance: x²V/(x² + V) of ideal shrinkage, or all of x²."""
        drowned = noise / 2.0 * math.log(self.filled) ** 2  # the square of what stands out
        lost = drowned**2 / (drowned**2 + square**2)
        expected: Floats = square * (lost + (1.0 - lost) * noise / (square + noise))
        return expected


@dataclass(frozen=True, eq=False)
class ErrorModel:
    """The error that is to be expected of every feature when measured features get parts of ε."""

    strata: Strata
    measured: tuple[str, ...]
    amount: float  # ε, or ρ
    changes: tuple[Sensitivity, ...]  # of all features, by one unit
    signals: tuple[CountSizes | None, ...]  # None: nothing is known
    law: type[NoiseDistribution]
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
        precision = np.zeros(part.shape)
        for column, name in enumerate(self.measured):
            precision[..., column] = self._bought(name, part[..., column])
        return precision

    def _bought(self, feature: str, part: Floats) -> Floats:
        change = self.changes[self.names.index(feature)]
        rate = np.minimum(self.law.rate(part * self.amount, change), MAX_NOISE_RATE)
        spent = rate > 0
        precision = np.zeros(rate.shape)
        precision[spent] = self.law.precision(rate[spent])[0]
        return precision

    def errors(self, precision: Floats) -> Floats:
        """Error variance of a count of each feature (last axis), given the precision of each measured one (last axis)."""
        variances = self._shrunk(self.reconciled(precision))
        leaves = self.names.index(SINGLETON)
        if self.signals[leaves] is not None:
            sums = self._in_sums(self._every(precision), variances[..., leaves])
            variances[..., :leaves] = self._shrunk(sums)[..., :leaves]
        return variances

    def reconciled(self, precision: Floats) -> Floats:
        """The variance of the noise of a count of each feature, once all measurements agree and before anything is shrunk."""
        return self.strata.variance(self._every(precision))

    def _every(self, precision: Floats) -> Floats:
        """The precision of every feature, from that of the measured ones."""
        every = np.zeros((*precision.shape[:-1], len(self.names)))
        every[..., [self.names.index(name) for name in self.measured]] = precision
        every[..., [self.names.index(name) for name in self.public]] = PUBLIC_PRECISION
        return every

    def _in_sums(self, precision: Floats, error: Floats) -> Floats:
        """Variances where leaves add up with less noise than they have: geometric means of that and of what shrinking leaves."""
        leaves = self.names.index(SINGLETON)
        sums = precision.copy()
        sums[..., leaves] = np.sqrt(precision[..., leaves] / np.maximum(error, UNMEASURED_PRECISION))
        return self.strata.variance(sums)

    def alone(self) -> Floats:
        """The error variance of each feature, had it all of ε to itself: that of a specialist."""
        return self._shrunk(np.array([1.0 / float(self._bought(name, np.ones(1))[0]) for name in self.names]))

    def ratios(self, part: Floats) -> Floats:
        """How many times the specialist's error that of each feature is (last axis), given the measured ones' parts of ε."""
        ratios: Floats = np.sqrt(self.errors(self.precision(part)) / self.alone())
        return ratios

    def _shrunk(self, variance: Floats) -> Floats:
        shrunk = variance.copy()
        for column, signal in enumerate(self.signals):
            if signal is not None:
                shrunk[..., column] = signal.error(variance[..., column])
        return shrunk


def error_model(
    features: FeatureDag, measured: Sequence[str], epsilon: Fraction, facts: DemandFacts
) -> ErrorModel:
    """The model of errors for these measured features."""
    signals, strata = tuple(_count_sizes(features, facts)), design_strata(features)
    changes = tuple(facts.change(name) for name in strata.names)
    law = NOISE_DISTRIBUTIONS.get(facts.law)
    return ErrorModel(strata, tuple(measured), float(epsilon), changes, signals, law, facts.public)


def _count_sizes(features: FeatureDag, facts: DemandFacts) -> Iterator[CountSizes | None]:
    if facts.trips is None:
        yield from [None] * len(features.features)
        return
    trips, types = float(facts.trips), features.universe.size
    filled = (
        _expected_occupancy(trips / types)
        if facts.filled is None
        else min(float(facts.filled), trips / types)
    )
    for name in features.features:
        size = features.size(name)
        apart = (types / size) ** EFFECTIVE_TYPES_EXPONENT
        any_of = 1.0 if filled >= 1 else -math.expm1(apart * math.log1p(-filled))
        uneven = LOG_DEMAND_VARIANCE * math.log(size) / max(math.log(types), 1.0)
        beyond_one = max(trips / size / any_of - 1.0, 0.0)
        yield CountSizes(any_of, (1.0 + _log_normal(beyond_one, uneven)) ** 2)


def _log_normal(mean: float, spread: float) -> Floats:
    """Values at the nodes of a log-normal law of this mean."""
    values: Floats = mean * np.exp(math.sqrt(spread) * QUADRATURE_NODES - spread / 2.0)
    return values


def _expected_occupancy(mean: float) -> float:
    """The share of trip types that hold any trips, if it is not known."""
    return max(
        float(QUADRATURE_WEIGHTS @ -np.expm1(-_log_normal(mean, 2 * LOG_DEMAND_VARIANCE))),
        np.finfo(float).tiny,
    )


def expected_errors(
    features: FeatureDag, shares: Mapping[str, Fraction], facts: DemandFacts | None = None
) -> dict[str, float]:
    """By feature the expected error of one count in trips (a standard deviation), if ε is shared so.

    >>> from cbdp.features import Universe
    >>> dag = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [])
    >>> {name: round(off, 2) for name, off in expected_errors(dag, {"singleton": Fraction(1)}).items()}
    {'total': 2.71, 'singleton': 1.36}
    """
    epsilon = sum(shares.values(), Fraction(0))
    model = error_model(features, list(shares), epsilon, facts or DemandFacts())
    part = np.array([float(share / epsilon) for share in shares.values()])
    errors = np.sqrt(model.errors(model.precision(part)))
    return dict(zip(model.names, errors.tolist(), strict=True))
