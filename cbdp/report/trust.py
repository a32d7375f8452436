"""How far each table can be trusted: how wide its intervals are compared with its counts, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.features import SINGLETON
from cbdp.release.release import Release
from cbdp.report.published import Published
from cbdp.rounding import ROUNDINGS

TRUST, CARE, NOISE, EMPTY = "trust", "use with care", "noise", "no verdict"
GOOD, FAIR = 0.2, 1.0  # the most that a typical margin may be, as a part of the count


@dataclass(frozen=True)
class Trust:
    """A verdict on a table. `measured` says that the figures are the noise's alone, before post-processing."""

    feature: str
    size: int
    scale: float | None  # of the noise, in trips
    noise: int | None  # the margin of the noise alone, in trips
    margin: float | None  # half of a typical interval around a count above zero, in trips
    relative: float | None  # the same as a part of the count
    sure: float | None  # share of the elements whose interval excludes zero
    sure_trips: float | None  # share of the trips in such elements
    measured: bool
    verdict: str
    public: bool = False  # its counts were public before, and are met exactly


def judge(published: Published, feature: str) -> Trust:
    """The verdict rests on the intervals where there are any, otherwise on the noise alone. Public counts are known."""
    if feature in published.release.recipe.public:
        size, above = published.dag.size(feature), published.release.counts(feature) > 0
        sure, trips = float(above.mean()), 1.0 if above.any() else None
        return Trust(feature, size, None, None, 0.0, 0.0, sure, trips, False, TRUST, public=True)
    law = published.law(feature)
    scale = None if law is None else float(law.scale)
    noise = None if law is None else law.half_width(published.confidence)
    size = published.dag.size(feature)
    interval = published.intervals.get(feature)
    release = published.release
    counts: NDArray[Any]
    told: NDArray[Any]
    if feature == SINGLETON and interval is None and feature not in release.tables:
        counts = release.value  # the other trip types are zero, and there may be too many to list
        told = _expected(release)
    else:
        counts = told = release.counts(feature)
    if interval is not None:
        half, low = (interval.high - interval.low) / 2, interval.low
    elif noise is not None:
        half, low = np.full(len(counts), float(noise)), told - noise
    else:
        return Trust(feature, size, None, None, None, None, None, None, False, EMPTY)
    some = counts > 0
    if not some.any():
        return Trust(feature, size, scale, noise, None, None, 0.0, None, interval is None, EMPTY)
    relative = float(np.median(half[some] / told[some]))
    verdict = TRUST if relative <= GOOD else CARE if relative <= FAIR else NOISE
    sure = float(np.count_nonzero(low > 0)) / size
    share = float(counts[low > 0].sum() / counts.sum())
    typical = float(np.median(half[some]))
    return Trust(feature, size, scale, noise, typical, relative, sure, share, interval is None, verdict)


def _expected(release: Release) -> NDArray[Any]:
    """What is known of the trip types that are named: their counts, or, where trips were gathered on few types, the estimates."""
    if release.estimate is None or not gathers(release):
        return release.value
    index, value = release.estimate.trips()
    if not len(index):
        return np.zeros(len(release.index))
    made: NDArray[Any] = value[np.minimum(np.searchsorted(index, release.index), len(index) - 1)]
    return made


def gathers(release: Release) -> bool:
    """Whether whole trips were gathered on the most likely trip types, so that estimates of single types say more than counts."""
    rounding = release.recipe.rounding
    return rounding is not None and ROUNDINGS.get(rounding).needs_expected


def in_words(trust: Trust, confidence: float) -> str:
    """What the verdict means for somebody who reads a number off the table."""
    sure = f"{100 * confidence:g} %"
    if trust.public:
        return "These counts were public already. They are met exactly."
    if trust.relative is None:
        return (
            "All its counts are zero."
            if trust.margin is None and trust.scale
            else "No noise level is stated."
        )
    off = (
        f"{100 * trust.relative:.2g} %" if trust.relative < 1 else f"{trust.relative:.1f} times its own size"
    )
    basis = f"with {sure} confidence{', from the noise alone' if trust.measured else ''}"
    if trust.verdict == TRUST:
        advice = (
            "Read single numbers with that margin."
            if trust.measured
            else "Quote single numbers with their intervals."
        )
        return f"A typical count is within {off} of the truth ({basis}). {advice}"
    if trust.verdict == CARE:
        return f"A typical count may be off by up to {off} ({basis}). Compare sums or large counts, not single small ones."
    return f"A typical count may be off by up to {off} ({basis}). Do not rely on single numbers; sums of many are useful."
