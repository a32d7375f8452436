"""How far each table can be trusted: how wide its intervals are compared with its counts, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.features import SINGLETON
from cbdp.release.published import Published
from cbdp.release.release import Release
from cbdp.report.uses import use_of
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
    quotable: int | None = (
        None  # counts of so many trips or more are good to ± 20 %; 0: all are; None: none is
    )


def judge(published: Published, feature: str) -> Trust:
    """The verdict rests on the intervals where there are any, otherwise on the noise alone. Public counts are known."""
    size, release = published.dag.size(feature), published.release
    if feature in release.recipe.public:
        above = release.counts(feature) > 0
        sure, trips = float(above.mean()), 1.0 if above.any() else None
        return Trust(feature, size, None, None, 0.0, 0.0, sure, trips, False, TRUST, public=True)
    law, interval = published.law(feature), published.intervals.get(feature)
    scale = None if law is None else float(law.scale)
    noise = None if law is None else law.half_width(published.confidence)
    counts, told = _counts(published, feature)
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
    typical, quotable = float(np.median(half[some])), _quotable(half[some], told[some])
    return Trust(
        feature,
        size,
        scale,
        noise,
        typical,
        relative,
        sure,
        share,
        interval is None,
        verdict,
        False,
        quotable,
    )


def _counts(published: Published, feature: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """The published counts, and what is known of them; of trip types those that are named, where there may be too many to list."""
    release = published.release
    if feature == SINGLETON and feature not in published.intervals and feature not in release.tables:
        return release.value, _expected(release)
    counts = np.asarray(release.counts(feature))
    return counts, counts


def _quotable(half: NDArray[Any], counts: NDArray[Any]) -> int | None:
    """The number of trips from which on every count is good."""
    good = half <= GOOD * counts
    if good.all():
        return 0
    above = counts[counts > counts[~good].max()]
    return int(np.ceil(above.min())) if len(above) else None


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
        return f"A typical count is within {off} of the truth ({basis})."
    return f"A typical count may be off by up to {off} ({basis})."


def advice(trust: Trust) -> str:
    """What may be done with a table."""
    if trust.public:
        return "Use its counts like any public number."
    if trust.relative is None:
        return "Nothing can be said."
    can = use_of(trust.relative).can
    use = f"{can[0].upper()}{can[1:]}."
    if trust.quotable is None or (trust.measured and trust.verdict == NOISE):
        return f"{use} Do not quote single counts."
    margin = "their margin" if trust.measured else "their intervals"
    if not trust.quotable:
        return f"{use} Quote counts with {margin}."
    return f"{use} Quote counts of {trust.quotable:,} or more, with {margin}; add smaller ones up first."
