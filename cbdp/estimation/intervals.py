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
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation.gls import HasRecipe, Measured, UnbiasedAnswer, best_linear_unbiased
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
