"""Answers to any question about a release: counts by any attributes, of any trip types, with intervals. No privacy is spent.

Intervals are made from the measurements that add up to a count (`cbdp.estimate.intervals`), or are about the estimate where this is narrower
(`cbdp.estimate.likely`). The latter take runs of the mechanism that made the release: once, whatever is asked. That takes seconds
up to `AT_ONCE` trip types and is done unless told otherwise; beyond only if asked for. The report, exports and comparisons, which are made by
the hundred, take no runs: theirs are made from the measurements.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimate import ESTIMATORS
from cbdp.estimate.combined import Combination, combined
from cbdp.estimate.intervals import Interval, checked_risk, told_intervals
from cbdp.estimate.likely import (
    GROUPS,
    LEAST,
    LikelyRuns,
    Seen,
    can_draw,
    estimates,
    excess,
    half_widths,
    likely_runs,
    reaching,
)
from cbdp.estimate.shares import share_ends
from cbdp.features.grouping import Filter, Grouping
from cbdp.release.where import Where, attribute_of, conditions
from cbdp.solvers.problem import bincount

if TYPE_CHECKING:
    from cbdp.release.release import Release

Columns = dict[str, list[Hashable] | Ints | Floats]

NEARLY = 1e-6  # of a trip: what an estimate may be off
AT_ONCE = 2**19  # trip types up to which the mechanism is run for intervals without being told to
NUMBERS = ("count", "estimate", "low", "high")
SHARES = ("share", "share_low", "share_high")


def ask(
    release: Release,
    by: str | Sequence[str] = (),
    where: Where | None = None,
    confidence: float = 0.9,
    share_of: str | Sequence[str] | None = None,
    sharp: bool | None = None,
) -> Columns:
    """The columns of `by`, then count (published), estimate, low, high; with `share_of`, which share of these groups each is."""
    risk = checked_risk(confidence)
    grouping = grouping_of(release, by, where)
    if release.tables:
        return _of_table(release, grouping, confidence, share_of)
    counts, estimate = grouping.added(release.index, release.value), estimates(release, grouping)
    wholes = (
        None
        if share_of is None
        else Grouping(grouping.universe, _wholes(grouping, share_of), grouping.conditions)
    )
    runs = _runs(release, grouping, estimate, wholes) if _sharp(release, sharp) else None
    interval = interval_of(release, grouping, confidence)
    if runs is not None:
        interval = _nearer(interval, counts, combined(release, grouping), runs, risk)
    ends = {"low": interval.low, "high": interval.high}
    made: Columns = {**grouping.keys(), "count": counts, "estimate": estimate, **ends}
    return made if wholes is None else {**made, **_shares(release, grouping, wholes, counts, risk, runs)}


@dataclass(frozen=True, eq=False)
class _Runs:
    """What runs of the mechanism say of the groups, and of the coarser groups that they are shares of."""

    parts: Seen
    among: Seen  # the same, or finer groups where they are few
    wholes: LikelyRuns | None


def _runs(
    release: Release, grouping: Grouping, estimate: Floats, wholes: Grouping | None = None
) -> _Runs | None:
    """Runs of the mechanism, where they can be made and may be of use."""
    single = bool((grouping.types == 1).all())  # expected values do not hold single types of every size
    if release.again is None or single or not _expects(release) or not can_draw(release):
        return None
    if wholes is None and _measured(release, grouping):
        return None
    finer = _finer(grouping)
    asked = {"parts": grouping} | ({} if wholes is None else {"wholes": wholes})
    seen = likely_runs(
        release, release.again(release), asked if finer is grouping else {**asked, "among": finer}
    )
    parts = Seen(estimate, seen["parts"])
    among = parts if finer is grouping else Seen(estimates(release, finer), seen["among"])
    return _Runs(parts, among, seen.get("wholes"))


def _finer(grouping: Grouping) -> Grouping:
    """The groups, if they are many enough to tell how much they differ; otherwise the values of the dimension that has most."""
    if grouping.size >= GROUPS:
        return grouping
    universe = grouping.universe
    by_value = (Grouping(universe, (name,), grouping.conditions) for name in universe.dimensions)
    return max((grouping, *by_value), key=lambda g: g.size)


def _measured(release: Release, grouping: Grouping) -> bool:
    """Is it a table with noise of its own? Then nothing else says much more."""
    named = {
        tuple(release.features.features[m.feature].by)
        for m in release.measurements
        if m.feature in release.features
    }
    return not grouping.conditions and grouping.by in named


def _expects(release: Release) -> bool:
    estimator = release.recipe.estimator
    return estimator is not None and ESTIMATORS.installed(estimator).expects


def _sharp(release: Release, sharp: bool | None) -> bool:
    return release.features.universe.size <= AT_ONCE if sharp is None else sharp


def _nearer(interval: Interval, counts: Ints, best: Combination, runs: _Runs, risk: float) -> Interval:
    """Intervals about the estimate, where they are narrower; they hold the published count."""
    half, estimate = half_widths(runs.parts, runs.among, best, risk), runs.parts.estimate
    if half is None:
        return interval
    use = (half < best.half_width(risk)) & (interval.low < interval.high)
    low = np.maximum(np.ceil(estimate - half - NEARLY), 0.0)
    high = np.maximum(np.floor(estimate + half + NEARLY), np.ceil(estimate - NEARLY))
    low, high = np.minimum(low, counts).astype(np.int64), np.maximum(high, counts).astype(np.int64)
    return Interval(np.where(use, low, interval.low), np.where(use, high, interval.high), interval.elements)


def grouping_of(
    release: Release, by: str | Sequence[str], where: Where | None, only: Sequence[Filter] = ()
) -> Grouping:
    """The groups of a question; `only` are further conditions."""
    universe = release.features.universe
    names = names_of(by)
    for name in names:
        attribute_of(universe, name)
    for name in (*NUMBERS, *SHARES):
        if name in names:
            raise InputError(f"an attribute is named {name!r}, as a column of the answer is: rename it")
    if len(set(names)) < len(names):
        raise InputError(f"by names an attribute twice: {', '.join(names)}")
    made = Grouping(universe, names, (*conditions(universe, where), *only))
    made.check_listed()
    if not made.size:
        raise InputError(f"no trip type meets all conditions of {where!r}: relax one")
    return made


def names_of(by: str | Sequence[str], what: str = "by") -> tuple[str, ...]:
    """One attribute, or several."""
    if isinstance(by, str):
        return (by,)
    if isinstance(by, bytes | bytearray | Mapping) or not isinstance(by, Iterable):
        raise InputError(f"{what} is {by!r}: give the name of an attribute, or a list of names")
    return tuple(by)


def told_interval(release: Release, grouping: Grouping, confidence: float) -> Interval | None:
    """Intervals that the measurements alone tell; None: it takes simulated runs."""
    return told_intervals(release, grouping, confidence, expects=_expects(release))


def interval_of(release: Release, grouping: Grouping, confidence: float) -> Interval:
    told = told_interval(release, grouping, confidence)
    if told is not None:
        return told
    if release.simulated is None:
        raise InputError(
            "the measurements alone do not tell these counts, and the release has no mechanism to simulate: load it with cbdp.load"
        )
    return release.simulated(release, confidence, groupings={"": grouping})[""]


def _wholes(grouping: Grouping, share_of: str | Sequence[str]) -> tuple[str, ...]:
    coarse = names_of(share_of, "share_of")
    for name in coarse:
        if name not in grouping.by:
            raise InputError(
                f"share_of names {name!r}, which is not in by ({', '.join(grouping.by)}): a whole is a coarser group"
            )
    return coarse


def _shares(
    release: Release, grouping: Grouping, wholes: Grouping, counts: Ints, risk: float, runs: _Runs | None
) -> Columns:
    """The share of each group in the coarser group that holds it, of the trips that meet the same conditions."""
    inside = grouping.inside(wholes)
    total = wholes.added(release.index, release.value)[inside]
    share = np.divide(counts, total, out=np.zeros(len(counts)), where=total > 0)
    low, high = _share_ends(release, grouping, wholes, inside, risk)
    if runs is not None and runs.wholes is not None:
        low, high = _nearer_share(release, grouping, inside, (low, high), runs, risk)
    return {
        "share": share,
        "share_low": np.minimum(low, share),
        "share_high": np.where(total > 0, np.maximum(high, share), 1.0),
    }


def _nearer_share(
    release: Release, grouping: Grouping, inside: Ints, told: tuple[Floats, Floats], runs: _Runs, risk: float
) -> tuple[Floats, Floats]:
    """The ends about the estimated share, where they are narrower."""
    assert runs.wholes is not None
    parts, wholes, estimate = runs.parts.runs, runs.wholes, runs.parts.estimate
    truth = _share(parts.truth, wholes.truth[:, inside])
    error = _share(parts.estimate, wholes.estimate[:, inside]) - truth
    own = _share(estimate, bincount(inside, estimate, wholes.truth.shape[1])[inside])
    more = excess(runs.parts, runs.among, combined(release, grouping))
    half = reaching(own, error, truth, more, risk)
    low, high = told
    if half is None:
        return told
    half = np.maximum(half, LEAST * (high - low) / 2)
    use = 2 * half < high - low
    return np.where(use, np.maximum(own - half, 0.0), low), np.where(use, np.minimum(own + half, 1.0), high)


def _share(part: Floats, whole: Floats) -> Floats:
    made: Floats = np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)
    return made


def _share_ends(
    release: Release, parts: Grouping, wholes: Grouping, inside: Ints, risk: float
) -> tuple[Floats, Floats]:
    """From what was measured; where that does not tell, from the ends of both counts, each with half the risk."""
    part, whole = combined(release, parts), combined(release, wholes)
    low, high = share_ends(part, whole, inside, risk)
    told = part.told & whole.told[inside]
    if told.all():
        return low, high
    few, many = (interval_of(release, g, 1 - risk / 2) for g in (parts, wholes))
    least = few.low / np.maximum(many.high[inside], 1)
    most = np.minimum(1.0, few.high / np.maximum(many.low[inside], 1))
    return np.where(told, low, least), np.where(told, high, most)


def _of_table(
    release: Release, grouping: Grouping, confidence: float, share_of: str | Sequence[str] | None
) -> Columns:
    """Tables that were published one by one do not add up: each answers for itself alone."""
    fits = [n for n, f in release.features.features.items() if tuple(f.by) == grouping.by]
    name = next((n for n in fits if n in release.tables), None)
    if name is None or grouping.conditions or share_of is not None:
        listed = "; ".join(", ".join(release.features.features[n].by) for n in release.tables)
        raise InputError(
            f"the tables of this release were published one by one and do not add up: ask by one of them, without conditions ({listed})"
        )
    counts, interval = np.asarray(release.counts(name)), release.interval(name, confidence)
    return {
        **grouping.keys(),
        "count": counts,
        "estimate": counts.astype(float),
        "low": interval.low,
        "high": interval.high,
    }
