"""Confidence intervals for published counts, computed from the published noisy answers. They cost no privacy.

The coverage is frequentist: an interval of 90 % holds the truth nine times in ten *whatever the truth is*, for a busy stop as for an empty one, and so also
among the counts whose *true* value is large. Counts that are picked because the *published* number is large are covered less, for their noise was picked with them
(the winner's curse; Benjamini and Yekutieli 2005): of a thousand equal counts, hardly any of the ten largest noisy ones. The interval rests on noise of a known
distribution, and on no prior.

1. *Measured tables.* Noisy counts that add up to a group have noise of a known distribution whatever the trips are; the interval is centred on the
   inverse-variance combination of the sums that refine it (`cbdp.estimation.gls`), not on the full generalised least-squares answer. Its upper end is at least a quarter of the half-width, however far below zero the noisy answer is
   (as Feldman and Cousins 1998 have it two deviations below zero): nobody shall read from "0 to 0" that there was no trip.
2. *Censored counts.* Single trip types of a universe too large to list are published above a threshold only, and so are counts of some tables.
   With k the half-width of the noise, the interval is the noisy count ± k where it is published, and 0 to the threshold + k where it is not: whenever the noise
   is within k, one of the two holds the truth, whatever decided on the threshold.
3. *None* otherwise: sums of single types of which only those above a threshold are published. Nothing published is unbiased for them, and by how much the
   published counts are shrunk cannot be learnt from replicates that are as smooth as they (`python -m benchmarks covered`).

Every interval is widened to the published count, never begins below zero, and ends at whole numbers that include at least the confidence. It
does not account for trips removed by contribution bounding before anything was measured (`cbdp.release.views.left_out`).

Tails of sums of noises, which verdicts of comparisons need, and intervals of shares come last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation.gls import (
    HasRecipe,
    Measured,
    UnbiasedAnswer,
    best_linear_unbiased,
    variance_gamma_quantile,
)
from cbdp.estimation.invariants import PublicCounts
from cbdp.features import SINGLETON
from cbdp.privacy.measurement import Measurement
from cbdp.privacy.noise import NoiseDistribution
from cbdp_features.queries import Grouping
from cbdp_features.tables import Elements, LabelledTable, ListedLabels, Tabular

# least upper end, as a share of the half-width: an answer far below zero is no proof that there was no trip
MIN_UPPER_END_SHARE = 0.25
COUNT_TOLERANCE = 1e-6  # trips: rounding error of sums of measurements
MAX_FLOOR = 2**40  # trips: a cell in which nothing is published has its threshold beyond
WHY_NONE = "no measured table adds up to {them}"


@dataclass(frozen=True, eq=False, repr=False)
class Interval(Tabular):
    """The ends of a feature's intervals, both included: a whole number of trips for each element, in their order.

    >>> interval = Interval(np.array([2, 0]), np.array([9, 4]))
    >>> (interval.high - interval.low).tolist()
    [7, 4]
    """

    low: Ints = field(repr=False)
    high: Ints = field(repr=False)
    elements: Elements | None = field(default=None, repr=False)  # the labels of each count

    def __len__(self) -> int:
        return len(self.low)

    def at(self, *labels: Hashable, **named: Hashable) -> tuple[int, int]:
        """Both ends for the count with these labels, in the order of the table's attributes or by name."""
        if self.elements is None:
            raise InputError("these intervals have no labels: take them from release.interval(...)")
        place = self.elements.place(*labels, **named)
        return int(self.low[place]), int(self.high[place])

    @property
    def labels(self) -> dict[str, list[Hashable]]:
        """A column of labels for each attribute of the table: they name the count of each interval."""
        return {} if self.elements is None else self.elements.columns()

    def labelled(self) -> LabelledTable:
        """Both ends, with the labels of what each is of."""
        ends = {"low": self.low, "high": self.high}
        if self.elements is None:
            number: list[Hashable] = list(range(len(self)))
            return LabelledTable(ListedLabels({"element": number}), ends, "intervals")
        return LabelledTable(self.elements, ends, self.elements.feature)


class TableNoiseLike(Protocol):
    """The noise of a table that was published on its own, and below which count nothing is shown."""

    @property
    def law(self) -> NoiseDistribution: ...
    @property
    def threshold(self) -> float | None: ...


class RecipeLike(HasRecipe, Protocol):
    """The parts of a recipe that intervals are computed from."""

    @property
    def public(self) -> PublicCounts: ...
    @property
    def tables(self) -> Mapping[str, TableNoiseLike]: ...


class ReleaseLike(Measured, Protocol):
    """The parts of a release that intervals are computed from: published values only."""

    @property
    def recipe(self) -> RecipeLike: ...
    @property
    def index(self) -> Ints: ...
    @property
    def value(self) -> Ints: ...
    @property
    def tables(self) -> Mapping[str, Ints]: ...
    def counts(self, feature: str) -> Ints: ...


def intervals(
    release: ReleaseLike, confidence: float = 0.9, *, features: Sequence[str] | None = None
) -> Mapping[str, Interval]:
    """An interval for every count of the features (all but `singleton`), from the release alone; features that have none are left out."""
    risk = checked_risk(confidence)
    dag = release.features
    names = [n for n in dag.features if n != SINGLETON] if features is None else list(features)
    by_feature = {}
    for name in names:
        if name not in dag:
            raise InputError(f"unknown feature {name!r}: there are {', '.join(dag.features)}")
        if release.tables:
            ends = table_ends(release, name, risk)
        else:
            ends = interval_ends(release, Grouping(dag.universe, tuple(dag.features[name].by)), risk)
        if not np.isnan(ends.low).any():
            by_feature[name] = ends.whole()
    return by_feature


@dataclass(frozen=True, eq=False)
class Ends:
    """Both ends of an interval for each group; NaN where there is none."""

    low: Floats = field(repr=False)
    high: Floats = field(repr=False)

    @property
    def exist(self) -> NDArray[np.bool_]:
        """The groups that have an interval."""
        return ~np.isnan(self.low)

    def whole(self) -> Interval:
        """As whole numbers, where every group has an interval."""
        return Interval(self.low.astype(np.int64), self.high.astype(np.int64))


def interval_ends(release: ReleaseLike, grouping: Grouping, risk: float) -> Ends:
    """The intervals of any counts that the published trips add up to."""
    published = grouping.added(release.index, release.value)
    best = best_linear_unbiased(release, grouping)
    low, high = _about(best, risk)
    alone = ~best.told & (grouping.types == 1)
    if alone.any():
        under, over = _censored_types(release, grouping, np.flatnonzero(alone), risk)
        low[alone], high[alone] = under, over
    return _widened(low, high, published)


def measured_interval(release: ReleaseLike, grouping: Grouping, confidence: float) -> Interval | None:
    """The same, where every group has one."""
    ends = interval_ends(release, grouping, checked_risk(confidence))
    return ends.whole() if ends.exist.all() else None


def table_ends(release: ReleaseLike, name: str, risk: float) -> Ends:
    """The intervals of a table that was published on its own."""
    published = np.asarray(release.counts(name))
    noise = release.recipe.tables.get(name)
    if name not in release.tables or noise is None:
        nothing = np.full(len(published), np.nan)
        return Ends(nothing, nothing)
    half = float(noise.law.half_width(1 - risk))
    hidden = published == 0
    below = 0.0 if noise.threshold is None else max(math.ceil(noise.threshold) - 1.0, 0.0)
    low, high = _censored(published.astype(float), ~hidden, np.full(len(published), below), half)
    return _widened(low, high, published)


def _about(best: UnbiasedAnswer, risk: float) -> tuple[Floats, Floats]:
    """Both ends about the inverse-variance mean of direct sums."""
    half = np.where(best.told, best.half_width(risk), 0.0)
    low, high = best.value - half, np.maximum(best.value + half, np.ceil(MIN_UPPER_END_SHARE * half))
    return np.where(best.told, low, np.nan), np.where(best.told, high, np.nan)


def _censored_types(
    release: ReleaseLike, grouping: Grouping, groups: Ints, risk: float
) -> tuple[Floats, Floats]:
    """Both ends for groups of one trip type each, whose noisy counts are censored at the threshold of their cell."""
    nothing = np.full(len(groups), np.nan)
    leaves = [m for m in release.measurements if m.feature == SINGLETON and m.floor is not None]
    if len(leaves) != 1 or leaves[0].noise is None:
        return nothing, nothing
    m: Measurement = leaves[0]
    assert m.floor is not None
    assert m.elements is not None
    assert m.noise is not None
    codes = [code[groups] for code in grouping.representatives()]
    floor = m.floor[release.features.cells.partition.element_of(codes)].astype(float)
    index = release.features.universe.rank_codes(codes)
    place = np.minimum(np.searchsorted(m.elements, index), max(len(m.elements) - 1, 0))
    shown = m.elements[place] == index if len(m.elements) else np.zeros(len(groups), dtype=bool)
    noisy = np.where(shown, m.values[place], 0).astype(float) if len(m.elements) else np.zeros(len(groups))
    low, high = _censored(noisy, shown, floor, float(m.noise.half_width(1 - risk)))
    bounded = shown | (floor < MAX_FLOOR)
    return np.where(bounded, low, np.nan), np.where(bounded, high, np.nan)


def _censored(
    noisy: Floats, shown: NDArray[np.bool_], most_hidden: Floats, half: float
) -> tuple[Floats, Floats]:
    """Both ends of counts that are censored at `most_hidden`: whenever the noise is within `half`, they hold the truth."""
    high = np.where(shown, noisy, most_hidden) + half
    return np.where(shown, noisy - half, 0.0), np.maximum(high, math.ceil(MIN_UPPER_END_SHARE * half))


def _widened(low: Floats, high: Floats, published: Ints) -> Ends:
    """Whole numbers of at least zero that hold the published count; NaN stays."""
    return Ends(
        np.clip(np.ceil(low - COUNT_TOLERANCE), 0, published),
        np.maximum(np.floor(high + COUNT_TOLERANCE), published),
    )


def checked_risk(confidence: float) -> float:
    """1 − confidence, if that is a probability."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence!r}, it must be a number between 0 and 1, such as 0.9")
    return 1.0 - confidence


# Tails of the error of an unbiased answer: saddlepoint approximation for weighted sums of independent noises.
#
# `cbdp.estimation.gls` matches variance and kurtosis, which is right near the usual confidences. Verdicts about thousands of rows look far into
# the tails, where such a fit decays too fast if one noise is larger than the others. Here tails follow from the cumulant generating
# functions of the noises themselves (Lugannani and Rice 1980): of one Laplace noise and of sums of them the approximation is 1 to 5 % too high, at one
# deviation as at forty, so it errs on the side of noise.


MAX_DEVIATIONS = 40.0  # deviations: beyond, every tail here is below 10⁻²⁴ and taken as constant
MIN_DEVIATIONS = 0.02  # deviations within which the tail is taken as 1
BISECTIONS = 40  # halvings of the logarithm of s: to about 2·10⁻¹¹ of s
DIFFERENCE_STEP = 1e-3  # relative step of s in a difference quotient
# deviations at which the tail is tabulated where many answers share a distribution
DEVIATION_GRID = np.geomspace(MIN_DEVIATIONS, MAX_DEVIATIONS, 600)


@dataclass(frozen=True, eq=False)
class ErrorDistribution:
    """Errors of several answers: a row for each source of noise, a column for each answer."""

    laws: Sequence[
        NoiseDistribution | None
    ]  # distribution of one noise of each source; None: unknown, taken as normal
    weight: Floats = field(repr=False)
    noise: Floats = field(repr=False)  # the variance of the source's sum, before it is weighted

    @property
    def variance(self) -> Floats:
        variance: Floats = (self.weight**2 * self.noise).sum(axis=0)
        return variance

    @property
    def whole(self) -> NDArray[np.bool_]:
        """Whether the error is a whole number: every source has weight 0 or ±1."""
        return np.asarray(np.isin(np.abs(self.weight), (0.0, 1.0)).all(axis=0))

    def beyond(self, size: Floats) -> Floats:
        """P(|error| ≥ size), taken as 1 within `MIN_DEVIATIONS` (Lugannani and Rice 1980)."""
        sizes = np.asarray(size, dtype=float)
        distinct, which = self._distinct()
        laws = distinct.weight.shape[1]
        if laws * len(DEVIATION_GRID) >= len(sizes):
            return _tail_probability(self, sizes)
        return _tabulated_tail(distinct, which, sizes)

    def reach(self, risk: float) -> Floats:
        """The two-sided quantile: |error| exceeds it with probability `risk`."""
        distinct, which = self._distinct()
        return _quantile(distinct, risk)[which]

    def _distinct(self) -> tuple[ErrorDistribution, NDArray[np.int64]]:
        """The distinct distributions, each computed once, and which of them each answer has."""
        rows = np.vstack([self.weight, self.noise]).round(9)
        _, first, which = np.unique(rows, axis=1, return_index=True, return_inverse=True)
        distinct = ErrorDistribution(self.laws, self.weight[:, first], self.noise[:, first])
        return distinct, np.asarray(which).reshape(-1).astype(np.int64)

    def cumulant(self, s: Floats) -> Floats:
        """Cumulant generating function log E exp(s · error); infinite where it does not exist. One s for each answer, or rows of them."""
        total = np.zeros(np.shape(s))
        for law, weight, noise in zip(self.laws, self.weight, self.noise, strict=True):
            here = (weight != 0) & (noise > 0)
            total[..., here] += _cumulant(law, weight[here] * s[..., here], noise[here])
        return total


def error_distribution(
    answers: UnbiasedAnswer, laws: Sequence[NoiseDistribution | None]
) -> ErrorDistribution:
    """The error of the best linear unbiased answers, with the distribution of each source."""
    return ErrorDistribution(tuple(laws), answers.weight, answers.noise)


def sum_of_errors(errors: Sequence[ErrorDistribution]) -> ErrorDistribution:
    """The error of sums or differences of independent answers, one of each."""
    return ErrorDistribution(
        [law for e in errors for law in e.laws],
        np.vstack([e.weight for e in errors]),
        np.vstack([e.noise for e in errors]),
    )


def _cumulant(law: NoiseDistribution | None, s: Floats, noise: Floats) -> Floats:
    """Cumulant generating function of a sum of so many noises that its variance is `noise`."""
    one = 0.0 if law is None else law.variance()
    if law is None or one <= 0:
        normal: Floats = s**2 * noise / 2
        return normal
    return np.asarray(noise / one * law.log_moment(s))


def _cumulant_slope(error: ErrorDistribution, s: Floats) -> Floats:
    """Derivative of the cumulant generating function: the saddlepoint equation is slope = x. Infinite beyond its domain."""
    with np.errstate(invalid="ignore"):
        above, below = error.cumulant(
            np.stack([s * (1 + DIFFERENCE_STEP / 10), s * (1 - DIFFERENCE_STEP / 10)])
        )
        slope = (above - below) / (s * DIFFERENCE_STEP / 5)
    return np.where(np.isfinite(slope), slope, np.inf)


def _saddlepoint_tail(error: ErrorDistribution, s: Floats, x: Floats) -> Floats:
    """P(|error| > x) at the saddlepoint s of x: twice Lugannani and Rice's (1980) tail."""
    at, above, below = error.cumulant(np.stack([s, s * (1 + DIFFERENCE_STEP), s * (1 - DIFFERENCE_STEP)]))
    bend = (above - 2 * at + below) / (s * DIFFERENCE_STEP) ** 2
    r, u = np.sqrt(np.maximum(2 * (s * x - at), 1e-300)), s * np.sqrt(np.maximum(bend, 1e-300))
    density = np.exp(-(r**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(np.clip(2 * (ndtr(-r) + density * (1 / u - 1 / r)), 0.0, 1.0))


def _tail_probability(error: ErrorDistribution, size: Floats) -> Floats:
    deviation = np.sqrt(error.variance)
    some = deviation > 0
    far = np.divide(size, deviation, out=np.zeros(len(size)), where=some)
    x = np.clip(far, MIN_DEVIATIONS, MAX_DEVIATIONS) * deviation
    s = _bisect(lambda s: _cumulant_slope(error, s) > x, deviation)
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = np.where(far <= MIN_DEVIATIONS, 1.0, _saddlepoint_tail(error, s, x))
    return np.where(some, chance, np.where(size > 0, 0.0, 1.0))


def _tabulated_tail(distinct: ErrorDistribution, which: NDArray[np.int64], size: Floats) -> Floats:
    """The tail from a table for each distribution: its logarithm is nearly linear between the points of the grid."""
    laws = distinct.weight.shape[1]
    weight, noise = (
        np.repeat(part, len(DEVIATION_GRID), axis=1) for part in (distinct.weight, distinct.noise)
    )
    deviation = np.sqrt(distinct.variance)
    every = _tail_probability(
        ErrorDistribution(distinct.laws, weight, noise),
        np.repeat(deviation, len(DEVIATION_GRID)) * np.tile(DEVIATION_GRID, laws),
    )
    logs = np.log(np.maximum(every, np.finfo(float).tiny)).reshape(laws, len(DEVIATION_GRID))
    chance = np.empty(len(size))
    for law in range(laws):
        here = which == law
        if deviation[law] > 0:
            far = size[here] / deviation[law]
            chance[here] = np.where(
                far <= MIN_DEVIATIONS, 1.0, np.exp(np.interp(far, DEVIATION_GRID, logs[law]))
            )
        else:
            chance[here] = np.where(size[here] > 0, 0.0, 1.0)
    return chance


def _quantile(error: ErrorDistribution, risk: float) -> Floats:
    deviation = np.sqrt(error.variance)

    def beyond(s: Floats) -> NDArray[np.bool_]:
        x = _cumulant_slope(error, s)
        with np.errstate(invalid="ignore"):
            chance = _saddlepoint_tail(error, s, np.minimum(x, 1e300))
        return np.asarray((x == np.inf) | (chance <= risk))

    s = _bisect(beyond, deviation)
    return np.where(deviation > 0, _cumulant_slope(error, s), 0.0)


def _bisect(passed: Callable[[Floats], NDArray[np.bool_]], deviation: Floats) -> Floats:
    """The largest s at which a monotone condition does not hold yet, by bisection of its logarithm."""
    unit = np.where(deviation > 0, deviation, 1.0)
    low, high = 1e-6 / unit, 10 * MAX_DEVIATIONS / unit
    for _ in range(BISECTIONS):
        middle = np.sqrt(low * high)
        with np.errstate(invalid="ignore", over="ignore"):
            over = passed(middle)
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return low


# Intervals of shares. Part and whole have correlated errors; a share p is compatible with the measurements if part − p · whole, whose
# variance is known for every p, is within its noise of zero (Fieller 1954).


def share_interval(
    part: UnbiasedAnswer, whole: UnbiasedAnswer, inside: Ints, risk: float
) -> tuple[Floats, Floats]:
    """The least and the largest share compatible with the measurements (Fieller 1954); 0 and 1 where any is.

    `inside` is the whole that each part belongs to. Both combinations have the same sources.
    """
    weight, all_, noise = whole.weight[:, inside], whole.value[inside], whole.noise[:, inside]
    # the part's noise is also in the whole's sum of the same source: that is their covariance
    part_variance, covariance, whole_variance = (
        (part.weight**2 * part.noise).sum(axis=0),
        (part.weight * weight * part.noise).sum(axis=0),
        (weight**2 * noise).sum(axis=0),
    )
    square = variance_gamma_quantile(np.minimum(part.equal_noises, whole.equal_noises[inside]), risk) ** 2
    a, b, c = (
        all_**2 - square * whole_variance,
        part.value * all_ - square * covariance,
        part.value**2 - square * part_variance,
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        low, high = (b - root) / a, (b + root) / a
    bounded = part.told & whole.told[inside] & (a > 0) & (all_ > 0)
    return np.where(bounded, np.clip(low, 0, 1), 0.0), np.where(bounded, np.clip(high, 0, 1), 1.0)
