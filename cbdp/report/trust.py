"""How far each table can be trusted: how wide its intervals are compared with its average count, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.features import SINGLETON
from cbdp.release.counted import TRIPS, Noun
from cbdp.release.published import Published
from cbdp.release.release import Release
from cbdp.report.text import percent
from cbdp.report.uses import GOOD, USES, Use, average_count, use_of
from cbdp.rounding import ROUNDINGS

MOST = 0.5  # of the counts: where fewer are good, the verdict is one on large counts


@dataclass(frozen=True)
class Trust:
    """A verdict on a table. `measured` says that the figures are the noise's alone, before post-processing."""

    feature: str
    size: int
    scale: float | None = None  # of the noise, in trips
    noise: int | None = None  # the margin of the noise alone, in trips
    count: float | None = None  # the average count, by which the table is judged
    margin: float | None = None  # half of a typical interval, in trips
    sure: float | None = None  # share of the elements whose interval excludes zero
    sure_trips: float | None = None  # share of the trips in such elements
    measured: bool = False
    public: bool = False  # its counts were public before, and are met exactly
    quotable: int | None = None  # counts of so many trips or more are within 20 %; 0: all are; None: none is
    good: float = 0.0  # share of the counts that are so large
    good_trips: float = 0.0  # share of the trips in them

    @property
    def relative(self) -> float | None:
        """How far the average count may be off, as a part of it."""
        return None if self.margin is None or self.count is None else self.margin / self.count

    @property
    def use(self) -> Use | None:
        """What the table may be used for; None: nothing can be said."""
        return None if self.relative is None else use_of(self.relative)

    @property
    def sums_only(self) -> bool:
        return self.use is USES[-1]

    @property
    def large_only(self) -> bool:
        """Whether the average says more than most counts do: trips are spread unevenly."""
        return self.use is not None and not self.sums_only and not self.public and self.good < MOST


def judge(published: Published, feature: str) -> Trust:
    """The verdict rests on the intervals where there are any, otherwise on the noise alone. Public counts are known."""
    size, release = published.dag.size(feature), published.release
    law, interval = published.law(feature), published.intervals.get(feature)
    counts, told = _counts(published, feature)
    some = counts > 0
    if feature in release.recipe.public:
        mean = average_count(float(counts.sum()), size)
        return Trust(
            feature, size, count=mean, margin=0.0, sure=float(some.mean()), sure_trips=1.0 if some.any() else None,
            public=True, quotable=0, good=1.0, good_trips=1.0,
        )  # fmt: skip
    scale = None if law is None else float(law.scale)
    noise = None if law is None else law.half_width(published.confidence)
    if interval is not None:
        half, low = (interval.high - interval.low) / 2, interval.low
    elif noise is not None:
        half, low = np.full(len(counts), float(noise)), told - noise
    else:
        return Trust(feature, size)
    if not some.any():
        return Trust(feature, size, scale, noise, sure=0.0, measured=interval is None)
    quotable = _quotable(half[some], told[some])
    large = np.zeros(len(counts), dtype=bool) if quotable is None else some & (told >= quotable)
    return Trust(
        feature, size, scale, noise,
        count=average_count(float(counts.sum()), size),
        margin=_margin(half, low, some),
        sure=float(np.count_nonzero(low > 0)) / size,
        sure_trips=float(counts[low > 0].sum() / counts.sum()),
        measured=interval is None,
        quotable=quotable,
        good=float(np.count_nonzero(large)) / size,
        good_trips=float(counts[large].sum() / counts.sum()),
    )  # fmt: skip


def _margin(half: NDArray[Any], low: NDArray[Any], some: NDArray[np.bool_]) -> float:
    """Half of a typical interval: in the middle of those that zero does not cut, if there are any."""
    whole = some & (low > 0)
    return float(np.median(half[whole if whole.any() else some]))


def _counts(published: Published, feature: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """The published counts, and what is known of them; of trip types those that are named, where there may be too many to list."""
    release = published.release
    if feature == SINGLETON and feature not in published.intervals and feature not in release.tables:
        return release.value, _expected(release)
    counts = np.asarray(release.counts(feature))
    return counts, counts


def _quotable(half: NDArray[Any], counts: NDArray[Any]) -> int | None:
    """The number of trips from which on every count is good; between two published counts, where such an interval would be good."""
    good = half <= GOOD * counts
    if good.all():
        return 0
    worst = counts[~good].max()
    above = np.flatnonzero(counts > worst)
    if not len(above):
        return None
    least = above[np.argmin(counts[above])]
    enough = max(np.floor(worst) + 1, np.ceil(half[least] / GOOD))
    return int(min(np.ceil(counts[least]), enough))


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
    return rounding is not None and ROUNDINGS.installed(rounding).needs_expected


def in_words(trust: Trust, confidence: float, noun: Noun = TRIPS) -> str:
    """What the verdict means for somebody who reads a number off the table."""
    if trust.public:
        return "These counts were public already. They are met exactly."
    if trust.relative is None or trust.count is None:
        return "All its counts are zero." if trust.scale else "No noise level is stated."
    off = percent(trust.relative) if trust.relative < 1 else f"{trust.relative:,.1f} times its own size"
    basis = f"with {100 * confidence:g} % confidence{', from the noise alone' if trust.measured else ''}"
    what = "The count" if trust.size == 1 else f"The average count, {noun.number(trust.count)},"
    if trust.sums_only:
        return f"{what} may be off by {off} ({basis})."
    return f"{what} is within {off} of the truth ({basis})."


def advice(trust: Trust, noun: Noun = TRIPS) -> str:
    """What may be done with a table."""
    if trust.public:
        return "Use its counts like any public number."
    if trust.use is None:
        return "Nothing can be said."
    use = f"{trust.use.can[0].upper()}{trust.use.can[1:]}."
    if trust.quotable is None or (trust.measured and trust.sums_only):
        return f"{use} Do not quote single counts."
    margin = "their margin" if trust.measured else "their intervals"
    if not trust.quotable:
        return (
            f"{use} Quote counts with {margin}." if trust.size > 1 else f"{use} Quote it with its interval."
        )
    share = f"{percent(trust.good)} of the counts, {percent(trust.good_trips)} of the {noun.many}"
    return f"{use} Quote counts of {trust.quotable:,} or more ({share}), with {margin}: they are within 20 %. Smaller ones say little on their own."
