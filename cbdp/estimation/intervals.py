"""Confidence intervals for published counts, made from the published noisy answers. They cost no privacy.

An interval of 90 % holds the truth nine times in ten *whatever the truth is*: a busy stop's as often as an empty one's, among the counts a
reader picks because they are large, too. So it is made of noise of a known law, and of nothing that leans on what is usual.

1. *Measured tables.* Noisy counts that add up to a group have noise of a known law whatever the trips are; the interval is about their best
   unbiased combination (`cbdp.estimation.gls`). Its upper end is at least a quarter of the reach of the noise, however
   far below zero the noisy answer is (as Feldman and Cousins have it two deviations below zero; bibliography): nobody
   shall read from "0 to 0" that there was no trip.
2. *Censored counts.* Single trip types of a universe too large to list are known above a floor only, and counts of tables that were published on
   their own above a threshold. With k the reach of the noise, the interval is the noisy count ± k where it is shown, and all from 0 to
   the threshold + k where it is not: as often as the noise is within k, one of the two holds the truth, whatever decided on the floor.
3. *None*, where neither is the case: sums of single types of which only those above a floor are known. Nothing published is unbiased for them. The published
   counts are: drawn towards what is usual, and by how much cannot be told from runs on trips that are as smooth as they (`python -m benchmarks covered`).

Every interval is widened to the published count, never begins below zero, and ends at whole numbers that include at least the confidence. Trips that
bounding took away before anything was measured it does not account for (`cbdp.release.summary.left_out`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation.gls import HasRecipe, Measured, UnbiasedAnswer, best_linear_unbiased
from cbdp.estimation.invariants import PublicCounts
from cbdp.features import SINGLETON
from cbdp.privacy.measurement import Measurement
from cbdp.privacy.noise import NoiseDistribution
from cbdp_features.queries import Elements, Grouping, displayed_rows, html_table, text_table

MIN_UPPER_END_SHARE = 0.25  # of the reach of noise: the least upper end. Noise far below zero does not make it sure that there was no trip
COUNT_TOLERANCE = 1e-6  # of a trip: what sums of measurements may be off
MAX_FLOOR = 2**40  # trips: the floor of a cell in which nothing is revealed lies beyond
WHY_NONE = "no measured table adds up to {them}"


@dataclass(frozen=True, eq=False)
class Interval:
    """The ends of a feature's intervals, both included: a whole number of trips for each element, in their order.

    >>> interval = Interval(np.array([2, 0]), np.array([9, 4]))
    >>> (interval.high - interval.low).tolist()
    [7, 4]
    """

    low: Ints = field(repr=False)
    high: Ints = field(repr=False)
    elements: Elements | None = field(
        default=None, repr=False
    )  # what each is the interval of, where it is known

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
        """A column of labels for each attribute of the table: what each interval is of."""
        return {} if self.elements is None else self.elements.columns()

    def __repr__(self) -> str:
        return text_table(*self._shown())

    def _repr_html_(self) -> str:
        return html_table(*self._shown())

    def _shown(self) -> tuple[str, dict[str, Any], list[str], list[int | None]]:
        rows = displayed_rows(len(self))
        here = np.array([row for row in rows if row is not None], dtype=np.int64)
        names = {} if self.elements is None else self.elements.columns(here)
        columns = {**names, "low": self.low[here], "high": self.high[here]}
        places = iter(range(len(here)))
        of = "" if self.elements is None else f"{self.elements.feature}: "
        many = f"{of}{len(self):,} interval{'s' if len(self) != 1 else ''}"
        return many, columns, ["low", "high"], [None if row is None else next(places) for row in rows]


class TableNoiseLike(Protocol):
    """The noise of a table that was published on its own, and below which count nothing is shown."""

    @property
    def law(self) -> NoiseDistribution: ...
    @property
    def threshold(self) -> float | None: ...


class RecipeLike(HasRecipe, Protocol):
    """What intervals need to know of a recipe."""

    @property
    def public(self) -> PublicCounts: ...
    @property
    def tables(self) -> Mapping[str, TableNoiseLike]: ...


class ReleaseLike(Measured, Protocol):
    """What intervals need to know of a release: published values only."""

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
    """Both ends about the best unbiased combination."""
    half = np.where(best.told, best.half_width(risk), 0.0)
    low, high = best.value - half, np.maximum(best.value + half, np.ceil(MIN_UPPER_END_SHARE * half))
    return np.where(best.told, low, np.nan), np.where(best.told, high, np.nan)


def _censored_types(
    release: ReleaseLike, grouping: Grouping, groups: Ints, risk: float
) -> tuple[Floats, Floats]:
    """Both ends for groups of one trip type each, whose noisy counts are known above the floor of their cell."""
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
    """Both ends where noisy counts are known if they are above a limit: whenever the noise is within `half`, they hold the truth."""
    high = np.where(shown, noisy, most_hidden) + half
    return np.where(shown, noisy - half, 0.0), np.maximum(high, math.ceil(MIN_UPPER_END_SHARE * half))


def _widened(low: Floats, high: Floats, published: Ints) -> Ends:
    """Whole numbers of at least zero that hold the published count; NaN stays."""
    return Ends(
        np.clip(np.ceil(low - COUNT_TOLERANCE), 0, published),
        np.maximum(np.floor(high + COUNT_TOLERANCE), published),
    )


def checked_risk(confidence: float) -> float:
    """The risk that a confidence leaves, if it is one."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence!r}, it must be a number between 0 and 1, such as 0.9")
    return 1.0 - confidence
