"""Confidence intervals for published counts, which account for everything done to them. They cost no privacy.

The published trips stand in for the true ones, and the mechanism is run on them again and again: measuring, solving and
rounding. Each run shows by how much its answers miss the counts it was run on. Intervals are made of that as follows.

1. *Inversion.* A count that cannot be negative has errors that depend on the true count: near zero they go one way only.
   So the errors at the published count say little about true counts elsewhere. Instead, for each possible true count t
   the runs give the range in which the published count falls with the confidence asked for, and the interval holds
   every t whose range holds what was published (Neyman's construction). It covers each true count about as often as
   asked, however they are spread, if errors at a count t are alike in the published data and in the true.
   Where published zeros alone exceed half the risk, no count can be too low, and the upper end gets all the risk.
2. *The better answer.* Noisy measurements are published too: of the counts themselves, or of finer ones, which can be added up.
   The error of their best unbiased combination (`cbdp.estimate.combined`) has the same law whatever the truth, so the stand-in
   cannot mislead. Where the runs find the published counts further from the truth (clipping and rounding may spoil sums), the
   interval is made from the combination, and widened to the published count. Its upper end is at least a quarter of the reach of the noise, however
   far below zero the noisy answer is (as Feldman and Cousins have it two deviations below zero; bibliography): nobody
   shall read from "0 to 0" that there was no trip.
3. *Pooling.* A few runs are enough, because errors are shared by elements of similar counts and of similarly many trip
   types: clipped noise of the types adds up with their number.

4. *Expected values.* An estimate by `estimator="posterior"` is drawn towards what is to be expected. So the published trips
   are smoother than the true ones, runs on them look better than they are, and no statistic of them tells by how much. Its
   intervals are made from measurements alone: they hold whatever the truth is, and take no runs of the estimator. Only where no
   measurement adds up to a count the runs have to do. They hold the truth less often than they say (docs/reference/ask.md).

Ranks are those of exchangeable draws, with no assumption about their law: of n errors, the k-th smallest has k/(n + 1)
below it. Ends are whole numbers that include at least the confidence, so intervals cover a little more than asked where
the noise is about as small as one trip, and up to half the risk more at true counts of zero.

What the stand-in cannot show, the intervals do not account for: trips that bounding or suppression took away before.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimate.combined import Combination, Measured, combined
from cbdp.features import SINGLETON
from cbdp.features.elements import Elements
from cbdp.features.grouping import Grouping
from cbdp.features.showing import as_html, as_text, shown_rows
from cbdp.progress import tell

MOST_RUNS = 2000  # simulations that a confidence may ask for
RUNS = 39  # two runs in each tail of 5 %, for a feature of one element
POOL = 400  # errors that a range is read off: its ends are then off by about 1 % of probability
STRATUM = 3  # so many pools are wanted of elements with similarly many trip types
NODES = 400  # true counts at which the range is worked out; between them it is interpolated
NEGATIVE = 0.25  # of the reach of noise: the least upper end. Noise far below zero does not make it sure that there was no trip
NEARLY = 1e-6  # of a trip: what interpolation and sums of measurements may be off
MOST = 40_000  # errors looked at for one range: more say nothing new


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
        return as_text(*self._shown())

    def _repr_html_(self) -> str:
        return as_html(*self._shown())

    def _shown(self) -> tuple[str, dict[str, Any], list[str], list[int | None]]:
        rows = shown_rows(len(self))
        here = np.array([row for row in rows if row is not None], dtype=np.int64)
        names = {} if self.elements is None else self.elements.columns(here)
        columns = {**names, "low": self.low[here], "high": self.high[here]}
        places = iter(range(len(here)))
        of = "" if self.elements is None else f"{self.elements.feature}: "
        many = f"{of}{len(self):,} interval{'s' if len(self) != 1 else ''}"
        return many, columns, ["low", "high"], [None if row is None else next(places) for row in rows]


class ReleaseLike(Measured, Protocol):
    """What intervals need to know of a release: published values only."""

    @property
    def index(self) -> Ints: ...
    @property
    def value(self) -> Ints: ...
    @property
    def tables(self) -> Mapping[str, Ints]: ...
    def counts(self, feature: str) -> Ints: ...


class Simulator(Protocol):
    """Runs on the published trips in the place of private ones, from seeds: handed in by a mechanism."""

    def released(self, seed: int) -> ReleaseLike:
        """All of it again: measured, estimated, rounded."""
        ...


def intervals(
    release: ReleaseLike,
    again: Simulator,
    confidence: float = 0.9,
    *,
    features: Sequence[str] | None = None,
    groupings: Mapping[str, Grouping] | None = None,
    runs: int | None = None,
    expects: bool = False,
) -> Mapping[str, Interval]:
    """An interval for every count of the features (all but `singleton`) or of other groupings by any name, from the release alone.

    The same release gives the same intervals: the simulation's seed is a hash of what is published. `expects` says that the
    estimate is made of expected values (4 above). Progress is told as the stage "runs".
    """
    risk = checked_risk(confidence)
    asked = _of_features(release, features) if groupings is None else groupings
    many = _runs(runs, risk)
    _check_tables(release, asked)
    best = {name: combined(release, grouping) for name, grouping in asked.items()}
    open_ = {n: g for n, g in asked.items() if not (expects and best[n].told.all())}
    errors = _simulated(release, again, open_, many)
    return {
        name: _interval(_published(release, name, grouping), best[name], errors.get(name), risk, expects)
        for name, grouping in asked.items()
    }


def told_intervals(
    release: ReleaseLike, grouping: Grouping, confidence: float = 0.9, *, expects: bool
) -> Interval | None:
    """The intervals of any counts of the published trips where measurements alone tell them; None: it takes runs."""
    best = combined(release, grouping)
    if not (expects and best.told.all()):
        return None
    counts = grouping.added(release.index, release.value)
    return _interval(counts, best, None, checked_risk(confidence), expects)


def _of_features(release: ReleaseLike, features: Sequence[str] | None) -> dict[str, Grouping]:
    dag = release.features
    names = [n for n in dag.features if n != SINGLETON] if features is None else list(features)
    for name in names:
        if name not in dag:
            raise InputError(f"unknown feature {name!r}: there are {', '.join(dag.features)}")
    return {name: Grouping(dag.universe, tuple(dag.features[name].by)) for name in names}


def _published(release: ReleaseLike, name: str, grouping: Grouping) -> Ints:
    """The counts of a table that was published on its own, or what the trips add up to."""
    if name in release.tables:
        return release.counts(name)
    return grouping.added(release.index, release.value)


@dataclass(frozen=True, eq=False)
class _Runs:
    """Errors of the published counts in simulated runs (run × group), what these were run on, and how many types each group has."""

    truth: Ints
    types: Ints
    errors: NDArray[Any]


def _simulated(
    release: ReleaseLike, again: Simulator, asked: Mapping[str, Grouping], many: int
) -> dict[str, _Runs]:
    truth = {name: grouping.added(release.index, release.value) for name, grouping in asked.items()}
    errors = {name: np.empty((many, grouping.size), np.float32) for name, grouping in asked.items()}
    for run, seed in enumerate(seeds(release, many) if asked else ()):
        made = again.released(seed)
        for name, grouping in asked.items():
            errors[name][run] = _published(made, name, grouping) - truth[name]
        tell("runs", (run + 1) / many)
    return {n: _Runs(truth[n], asked[n].types, errors[n]) for n in asked}


def _interval(published: Ints, best: Combination, runs: _Runs | None, risk: float, expects: bool) -> Interval:
    """From the combination of measurements, or from the published counts where the runs find those nearer to the truth.

    Expected values were not made again unless there is no combination.
    """
    half, use = best.half_width(risk), best.told
    low, high = best.value - half, np.maximum(best.value + half, np.ceil(NEGATIVE * half))
    if runs is not None and not (expects and use.all()):
        known = best.variance == 0
        if not expects and use.any() and _mean_square(runs.errors[:, use]) < np.mean(best.variance[use]):
            use = known
        seen = _inverted(published.astype(float), runs.truth, runs.types, runs.errors, risk)
        low, high = (np.where(use, a, b) for a, b in zip((low, high), seen, strict=True))
    low = np.clip(np.ceil(low - NEARLY), 0, published)
    high = np.maximum(np.floor(high + NEARLY), published)
    return Interval(low.astype(np.int64), high.astype(np.int64))


def _mean_square(errors: NDArray[Any]) -> float:
    return float(np.mean(np.square(errors, dtype=float)))


def _inverted(
    published: Floats, truth: Ints, types: Ints, errors: NDArray[Any], risk: float
) -> tuple[Floats, Floats]:
    """The true counts for which the published one lies in the range it would be expected in."""
    low, high = np.empty(len(truth)), np.empty(len(truth))
    need = math.ceil(POOL / len(errors))
    for stratum in _strata(types, STRATUM * need):
        alike = stratum[np.argsort(truth[stratum], kind="stable")]
        nodes, ranges = _ranges(truth[alike], errors[:, alike], need, risk)
        lower, upper = ranges.T
        low[alike] = _crossing(published[alike], nodes, _rising(upper), -1)
        high[alike] = _crossing(published[alike], nodes, _rising(lower), 1)
    return low, high


def _strata(types: Ints, least: int) -> list[Ints]:
    """Elements with similarly many trip types, at least so many together; equal ones are not parted."""
    order = np.argsort(types, kind="stable")
    ends = np.flatnonzero(np.diff(types[order])) + 1
    cuts = [0]
    for end in ends:
        if end - cuts[-1] >= least and len(types) - end >= least:
            cuts.append(int(end))
    return [order[a:b] for a, b in itertools.pairwise([*cuts, len(types)])]


def _ranges(ordered: Ints, errors: NDArray[Any], need: int, risk: float) -> tuple[Ints, Floats]:
    """True counts, and for each the range that the published count falls in."""
    nodes = np.unique(ordered)
    if len(nodes) > NODES:
        nodes = nodes[np.linspace(0, len(nodes) - 1, NODES).round().astype(int)]
    spread = float(np.sqrt(np.mean(np.square(errors, dtype=float))))
    reach = (
        nodes / 2 + spread / 4
    )  # errors change with the count near zero, on the scale of the errors themselves
    near = (_thinned(errors[:, _near(ordered, t, need, r)]) + t for t, r in zip(nodes, reach, strict=True))
    return nodes, np.array([_range(np.maximum(drawn, 0), risk) for drawn in near])


def _near(ordered: Ints, t: int, need: int, reach: float) -> slice:
    """The elements of count t, and as many as needed of those nearest in rank, if within reach of it."""
    first, last = np.searchsorted(ordered, [t, t + 1])
    start = max(0, min(first - max(0, need - (last - first)) // 2, len(ordered) - need))
    least, most = np.searchsorted(ordered, [t - reach, t + reach + 1])
    return slice(max(min(start, first), least), min(max(start + need, last), most))


def _thinned(errors: NDArray[Any]) -> Floats:
    flat = errors.reshape(-1)
    return flat[:: max(1, flat.size // MOST)].astype(float)


def _range(draws: Floats, risk: float) -> tuple[float, float]:
    """Where one more draw falls but for the risk: half of it below and half above, and what is left of one half to both.

    Whole numbers repeat: of the draws equal to the lower end none is left out, so less than half the risk may be below.
    """
    ordered = np.sort(draws)
    n = len(ordered)
    half = math.floor(risk / 2 * (n + 1) + 1e-9)
    low = ordered[half - 1]
    under = int(np.searchsorted(ordered, low))
    below = half if under == half - 1 else under
    above = math.floor(risk * (n + 1) + 1e-9) - below
    return float(low), float(ordered[n - above])


def _rising(bound: Floats) -> Floats:
    """The bound without its dips, which are chance: midway between the closest rising curves above and below it."""
    return (np.maximum.accumulate(bound) + np.minimum.accumulate(bound[::-1])[::-1]) / 2


def _crossing(values: Floats, nodes: Ints, bound: Floats, side: int) -> Floats:
    """The true count at which a rising bound meets each value; where it does so along a line, that line's end on `side`.

    Beyond the nodes the bound rises as fast as the count itself.
    """
    tilt = NEARLY / 10 * (nodes - nodes[0]) / (1.0 + nodes[-1] - nodes[0])  # so that no two are equal
    at = values + side * NEARLY / 5
    found = np.interp(at, bound + tilt, nodes.astype(float))
    found = np.where(at < bound[0], nodes[0] + (at - bound[0]), found)
    beyond: Floats = np.where(at > bound[-1] + tilt[-1], nodes[-1] + (at - bound[-1]), found)
    return beyond


def seeds(release: ReleaseLike, runs: int) -> list[int]:
    """Seeds that depend on what is published and on nothing else."""
    published = hashlib.sha256()
    for part in (release.index, release.value):
        published.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
    key = published.digest()
    return [
        int.from_bytes(hashlib.sha256(key + run.to_bytes(8, "little")).digest()[:8], "little")
        for run in range(runs)
    ]


def checked_risk(confidence: float) -> float:
    """The risk that a confidence leaves, if it is one."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence!r}, it must be a number between 0 and 1, such as 0.9")
    return 1.0 - confidence


def _runs(runs: int | None, risk: float) -> int:
    """So many that each tail of a single element's errors holds at least one of them."""
    least = math.ceil(round(2 / risk, 6)) - 1
    if least > MOST_RUNS:
        raise InputError(
            f"a confidence of {1 - risk:g} would take {least:,} simulations: ask for 0.999 at most"
        )
    if runs is None:
        return max(RUNS, least)
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < least:
        raise InputError(
            f"runs is {runs!r}: a confidence of {1 - risk:g} needs a whole number of at least {least}"
        )
    return runs


def _check_tables(release: ReleaseLike, asked: Mapping[str, Grouping]) -> None:
    """Tables published on their own, and suppressed on their own, say more than the trips: those cannot stand in."""
    for name, grouping in asked.items():
        if name not in release.tables:
            continue
        if not np.array_equal(release.tables[name], grouping.added(release.index, release.value)):
            raise InputError(
                f"the published trips do not add up to the published table {name!r}, so they cannot be simulated from: "
                "leave it out of features"
            )
