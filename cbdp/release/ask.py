"""Answers to any question about a release: counts by any attributes, of any trip types, with intervals. No privacy is spent.

Intervals are those of `cbdp.estimate.intervals`: made from the measurements that add up to a count where this is better, and from
simulated runs otherwise, which take the mechanism that made the release.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.estimate import ESTIMATORS
from cbdp.estimate.combined import combined
from cbdp.estimate.intervals import Interval, checked_risk, told_intervals
from cbdp.estimate.shares import share_ends
from cbdp.features.grouping import Filter, Grouping
from cbdp.release.where import Where, attribute_of, conditions
from cbdp.solvers.problem import bincount

if TYPE_CHECKING:
    from cbdp.release.release import Release

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Columns = dict[str, list[Hashable] | Ints | Floats]

NEARLY = 1e-6  # of a trip: what an estimate may be off
NUMBERS = ("count", "estimate", "low", "high")
SHARES = ("share", "share_low", "share_high")


def ask(
    release: Release,
    by: str | Sequence[str] = (),
    where: Where | None = None,
    confidence: float = 0.9,
    share_of: str | Sequence[str] | None = None,
) -> Columns:
    """The columns of `by`, then count (published), estimate, low, high; with `share_of`, which share of these groups each is."""
    risk = checked_risk(confidence)
    grouping = grouping_of(release, by, where)
    if release.tables:
        return _of_table(release, grouping, confidence, share_of)
    counts = grouping.added(release.index, release.value)
    estimate = _estimate(release, grouping, counts)
    interval = interval_of(release, grouping, confidence)
    known = interval.low == interval.high
    low = np.where(known, interval.low, np.minimum(interval.low, np.floor(estimate + NEARLY)))
    high = np.where(known, interval.high, np.maximum(interval.high, np.ceil(estimate - NEARLY)))
    made: Columns = {
        **grouping.keys(),
        "count": counts,
        "estimate": estimate,
        "low": low.astype(np.int64),
        "high": high.astype(np.int64),
    }
    if share_of is None:
        return made
    return {**made, **_shares(release, grouping, share_of, counts, risk)}


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


def names_of(by: str | Sequence[str]) -> tuple[str, ...]:
    """One attribute, or several."""
    return (by,) if isinstance(by, str) else tuple(by)


def _estimate(release: Release, grouping: Grouping, counts: Ints) -> Floats:
    """What the published counts are rounded from; where there is nothing of the kind, those themselves."""
    if release.estimate is None:
        return counts.astype(float)
    index, value = release.estimate.trips()
    group = grouping.group_of(grouping.universe.unrank_codes(index))
    here = group >= 0
    return bincount(group[here], value[here], grouping.size)


def told_interval(release: Release, grouping: Grouping, confidence: float) -> Interval | None:
    """Intervals that the measurements alone tell; None: it takes simulated runs."""
    estimator = release.recipe.estimator
    expects = estimator is not None and ESTIMATORS.get(estimator).expects
    return told_intervals(release, grouping, confidence, expects=expects)


def interval_of(release: Release, grouping: Grouping, confidence: float) -> Interval:
    told = told_interval(release, grouping, confidence)
    if told is not None:
        return told
    if release.simulated is None:
        raise InputError(
            "the measurements alone do not tell these counts, and the release has no mechanism to simulate: load it with cbdp.load"
        )
    return release.simulated(release, confidence, groupings={"": grouping})[""]


def _shares(
    release: Release, grouping: Grouping, share_of: str | Sequence[str], counts: Ints, risk: float
) -> Columns:
    """The share of each group in the coarser group that holds it, of the trips that meet the same conditions."""
    coarse = names_of(share_of)
    for name in coarse:
        if name not in grouping.by:
            raise InputError(
                f"share_of names {name!r}, which is not in by ({', '.join(grouping.by)}): a whole is a coarser group"
            )
    wholes = Grouping(grouping.universe, coarse, grouping.conditions)
    inside = grouping.inside(wholes)
    total = wholes.added(release.index, release.value)[inside]
    share = np.divide(counts, total, out=np.zeros(len(counts)), where=total > 0)
    low, high = _share_ends(release, grouping, wholes, inside, risk)
    return {
        "share": share,
        "share_low": np.minimum(low, share),
        "share_high": np.where(total > 0, np.maximum(high, share), 1.0),
    }


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
