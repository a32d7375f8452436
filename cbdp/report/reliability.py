"""What a table may be used for: by how far its average count may be off, in words of people who plan services.

One rule for a release that is planned (`cbdp check`, the page of `cbdp plan`) and for one that is published (its report): a table is judged by its
average count, trips ÷ number of counts. Noise is about as large on every count, so beside it stands the least count that is good on its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np

from cbdp.arrays import Bools, Floats, Ints
from cbdp.estimation import ESTIMATORS
from cbdp.estimation.invariants import exact_answers
from cbdp.features import SINGLETON, FeatureDag
from cbdp.numbers import confidence_text, number_text, percent
from cbdp.privacy.measurement import EXACT_VARIANCE, Measurement
from cbdp.release.release import Release
from cbdp.release.views import MAX_REGROUPED_ELEMENTS, TRIP_NOUN, Noun, Published, counted_noun, enumerated
from cbdp.report.rendering import Pill, Table
from cbdp.rounding import ROUNDINGS
from cbdp_features.dag import determines
from cbdp_solvers.problem import bincount

GOOD_RELATIVE_ERROR = 0.2  # a count is called good if it is within such a part of itself


@dataclass(frozen=True)
class Use:
    """What a table may be used for, if its average count is within such a part of itself."""

    within: float
    name: str
    can: str
    why: str


USES = (
    Use(0.10, "size a line", "size lines and vehicles", "a count a fifth larger stands out: ranges do not meet"),
    Use(0.25, "see the peak", "see the peak", "a count half as large again stands out: ranges do not meet"),
    Use(0.50, "busy or quiet", "tell busy from quiet", "a count twice as large stands out: ranges do not meet"),
    Use(math.inf, "sums only", "use sums of many counts", "single counts say little: use a coarser table, or merge zones or periods"),
)  # fmt: skip


def use_of(relative: float) -> Use:
    """The most demanding use that such a margin allows.

    >>> use_of(0.07).name, use_of(0.5).name, use_of(3).name
    ('size a line', 'busy or quiet', 'sums only')
    """
    return next(use for use in USES if relative <= use.within)


def average_count(trips: float, counts: int) -> float:
    """The count that a table is judged by: trips ÷ number of counts, to two digits, and at least 1. Of a single count, that count.

    >>> average_count(300_000, 600), average_count(326_315, 600), average_count(70_000, 117_600), average_count(326_315, 1)
    (500.0, 540.0, 1.0, 326315.0)
    """
    mean = max(trips / counts, 1.0)
    step = 1.0 if counts == 1 else 10.0 ** max(0, math.floor(math.log10(mean)) - 1)
    return math.floor(mean / step + 0.5) * step


# The verdict on a table: how wide its intervals are compared with its average count, in numbers and in words


MAJORITY_OF_COUNTS = 0.5  # of the counts: where fewer are good, the verdict is one on large counts


@dataclass(frozen=True)
class Reliability:
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
        return (
            self.use is not None and not self.sums_only and not self.public and self.good < MAJORITY_OF_COUNTS
        )


def reliability_of(published: Published, feature: str) -> Reliability:
    """The verdict rests on the intervals where there are any, otherwise on the noise alone. Public counts are known."""
    size, release = published.dag.size(feature), published.release
    law, interval = published.noise_distribution(feature), published.intervals.get(feature)
    counts, expected = _published_and_expected(published, feature)
    some = counts > 0
    if feature in release.recipe.public:
        mean = average_count(float(counts.sum()), size)
        return Reliability(
            feature, size, count=mean, margin=0.0, sure=float(some.mean()), sure_trips=1.0 if some.any() else None,
            public=True, quotable=0, good=1.0, good_trips=1.0,
        )  # fmt: skip
    scale = None if law is None else float(law.scale)
    noise = None if law is None else law.half_width(published.confidence)
    half: Floats
    low: Ints | Floats
    if interval is not None:
        half, low = (interval.high - interval.low) / 2, interval.low
    elif noise is not None:
        half, low = np.full(len(counts), float(noise)), expected - noise
    else:
        return Reliability(feature, size)
    if not some.any():
        return Reliability(feature, size, scale, noise, sure=0.0, measured=interval is None)
    quotable = _quotable_count(half[some], expected[some])
    large = np.zeros(len(counts), dtype=bool) if quotable is None else some & (expected >= quotable)
    return Reliability(
        feature, size, scale, noise,
        count=average_count(float(counts.sum()), size),
        margin=_typical_half_width(half, low, some),
        sure=float(np.count_nonzero(low > 0)) / size,
        sure_trips=float(counts[low > 0].sum() / counts.sum()),
        measured=interval is None,
        quotable=quotable,
        good=float(np.count_nonzero(large)) / size,
        good_trips=float(counts[large].sum() / counts.sum()),
    )  # fmt: skip


def _typical_half_width(half: Ints | Floats, low: Ints | Floats, some: Bools) -> float:
    """Half of a typical interval: in the middle of those that zero does not cut, if there are any."""
    whole = some & (low > 0)
    return float(np.median(half[whole if whole.any() else some]))


def _published_and_expected(published: Published, feature: str) -> tuple[Ints | Floats, Ints | Floats]:
    """The published counts, and what is known of them; of trip types those that are named, where there may be too many to list."""
    release = published.release
    if feature == SINGLETON and feature not in published.intervals and feature not in release.tables:
        return release.value, _expected_counts(release)
    counts = np.asarray(release.counts(feature))
    return counts, counts


def _quotable_count(half: Ints | Floats, counts: Ints | Floats) -> int | None:
    """The number of trips from which on every count is good; between two published counts, where such an interval would be good."""
    good = half <= GOOD_RELATIVE_ERROR * counts
    if good.all():
        return 0
    worst = counts[~good].max()
    above = np.flatnonzero(counts > worst)
    if not len(above):
        return None
    least = above[np.argmin(counts[above])]
    enough = max(np.floor(worst) + 1, np.ceil(half[least] / GOOD_RELATIVE_ERROR))
    return int(min(np.ceil(counts[least]), enough))


def _expected_counts(release: Release) -> Ints | Floats:
    """The best figure for each listed trip type: its count or, where sparse rounding gathered trips on few types, its estimate."""
    if release.estimate is None or not concentrates_trips(release):
        return release.value
    index, value = release.estimate.trips()
    if not len(index):
        return np.zeros(len(release.index))
    expected: Ints | Floats = value[np.minimum(np.searchsorted(index, release.index), len(index) - 1)]
    return expected


def concentrates_trips(release: Release) -> bool:
    """Whether sparse rounding gathered whole trips on the most likely trip types, so that estimates of single types say more than counts."""
    rounding = release.recipe.rounding
    return rounding is not None and ROUNDINGS.installed(rounding).needs_expected


def reliability_text(trust: Reliability, confidence: float, noun: Noun = TRIP_NOUN) -> str:
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


def advice(trust: Reliability, noun: Noun = TRIP_NOUN) -> str:
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


# Which numbers a measurement supports: only these are put at the head of the page. Posterior means of single trip types borrow strength from others of
# their kind, so the noisy counts of trip types support no sum of those


MAX_DEVIATIONS = (
    4.0  # standard deviations of the noise within which a supported count lies; rounding may add a trip
)


@dataclass(frozen=True, eq=False)
class Support:
    """Sums of noisy answers by some attributes, and the standard deviation of their noise.

    A count is supported where some noisy answers add up to it, their noise is small beside it, and it is where they say it is.
    """

    value: Floats = field(repr=False)
    deviation: Floats = field(repr=False)

    def of(self, place: int, count: int, confidence: float) -> bool:
        """Whether a published count is supported."""
        off, deviation = abs(count - self.value[place]), float(self.deviation[place])
        margin = NormalDist().inv_cdf(0.5 + confidence / 2) * deviation
        return margin <= GOOD_RELATIVE_ERROR * count and off <= MAX_DEVIATIONS * deviation + 1.0


def supported(published: Published, by: Sequence[str], place: int, count: int) -> bool:
    """Whether any measurement supports the published count at this place among the labels of these attributes."""
    return any(s.of(place, count, published.confidence) for s in supporting_measurements(published, by))


def supporting_measurements(published: Published, by: Sequence[str]) -> Iterator[Support]:
    """The sums by these attributes (an axis each, as in `Published.grouped`) of every measurement that has them; small tables first."""
    release = published.release
    levels = release.levels or published.dag
    of_tables = [
        Measurement(
            name,
            counts,
            variance=np.where(counts > 0, release.recipe.tables[name].law.variance(), EXACT_VARIANCE),
        )
        for name, counts in release.tables.items()
        if name in release.recipe.tables
    ]  # what a table suppressed has no noise
    answers = [*exact_answers(release.recipe.public), *release.measurements, *of_tables]
    for m in sorted(answers, key=lambda m: len(m.values)):
        whole = m.elements is None and m.variance is not None and len(m.values) <= MAX_REGROUPED_ELEMENTS
        leaning = m.feature == SINGLETON and has_expected_counts(release)
        if whole and not leaning and determines(levels, m.feature, by):
            yield _aggregated(levels, m, by)


def has_expected_counts(release: Release) -> bool:
    """Whether the estimate is made of posterior means."""
    estimator = release.recipe.estimator
    return estimator is not None and ESTIMATORS.installed(estimator).expects


def _aggregated(levels: FeatureDag, m: Measurement, by: Sequence[str]) -> Support:
    """The measurement added up by attributes."""
    universe = levels.universe
    codes = (
        universe.unrank_codes(np.arange(universe.size, dtype=np.int64))
        if m.feature == SINGLETON
        else levels.partition(m.feature).representatives()
    )
    at = dict(zip(universe.dimensions, codes, strict=True))
    place, size = np.zeros(len(m.values), dtype=np.int64), 1
    for attribute in (universe.attribute(name) for name in by):
        place = place * len(attribute.labels) + attribute.codes[tuple(at[dim] for dim in attribute.of)]
        size *= len(attribute.labels)
    assert m.variance is not None
    return Support(bincount(place, m.values.astype(float), size), np.sqrt(bincount(place, m.variance, size)))


# The verdicts as a table


USE_PILLS = (
    Pill("", "good", "✓"),
    Pill("", "good", "✓"),
    Pill("", "fair", "!"),
    Pill("", "poor", "✕"),
)  # of the uses


@dataclass(frozen=True)
class VerdictRow:
    """A table, what it counts, the verdict on it in pills and words, and the other cells by their headings."""

    table: str
    counted: str
    pills: list[Pill]
    meaning: str
    cells: dict[str, str]


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on all tables, what carries sums, what the words mean, and the noise alone, before tables were made to agree."""

    rows: list[VerdictRow]
    noise_alone: bool
    sums: str
    terms: dict[str, str]
    noise: Table

    @property
    def head(self) -> list[str]:
        return ["Table", "Verdict", *self.rows[0].cells]


def verdicts_of(published: Published) -> Verdicts:
    noun = counted_noun(published.dag.universe)
    verdicts = [reliability_of(published, name) for name in published_features(published)]
    measured = [t.feature for t in verdicts if (t.scale is not None or t.public) and t.feature != SINGLETON]
    return Verdicts(
        [_verdict_row(published, t, noun) for t in verdicts],
        any(t.measured and t.relative is not None for t in verdicts),
        f"Sums that have a table of their own were measured as such ({enumerated(measured)}), and the verdicts above say how good they are. "
        if measured
        else "No sum was measured. ",
        _term_definitions(published, noun),
        Table(("Table", "Scale", "Margin"), [(t.feature, *_noise_row(t)) for t in verdicts]),
    )


def _term_definitions(published: Published, noun: Noun) -> dict[str, str]:
    sure = confidence_text(published.confidence)
    terms = {
        f"{pill.sign} {use.name}": f"The average count is within {percent(use.within)} of the truth: {use.why}."
        if use is not USES[-1]
        else f"Otherwise: {use.why}."
        for use, pill in zip(USES, USE_PILLS, strict=True)
    }
    return terms | {
        "large counts only": "Less than half of the counts are large enough to be within 20 %: few of them hold most of the trips.",
        "Average count": f"How many {noun.many} a count has on average, and how far such a count may be from the truth with {sure} confidence, in {noun.many} "
        "and in per cent: half of a usual interval.",
        "Clearly above zero": "The share of counts whose interval does not reach zero, and the share of all trips in these counts. Of the other counts "
        "nobody can tell whether there was any trip at all.",
    }  # fmt: skip


def _verdict_row(published: Published, t: Reliability, noun: Noun) -> VerdictRow:
    return VerdictRow(
        t.feature,
        _counted_words(published, t.feature),
        _pills(t),
        reliability_text(t, published.confidence, noun),
        {
            "What may I do with it?": advice(t, noun),
            "Counts": f"{t.size:,}",
            "Average count": _average_cell(t),
            "Clearly above zero": _above_zero_cell(t, noun),
        },
    )


def _counted_words(published: Published, feature: str) -> str:
    """What a table counts, in words."""
    by = published.dag.features[feature].by
    if not by:
        return f"all {counted_noun(published.dag.universe).many} together"
    every = "every combination of " if feature == SINGLETON and len(by) > 1 else "by "
    return every + enumerated([attribute_words(name) for name in by])


def _pills(t: Reliability) -> list[Pill]:
    if t.use is None:
        return [Pill("no verdict", "none", "–")]
    pill = replace(USE_PILLS[USES.index(t.use)], name="public" if t.public else t.use.name)
    return [pill, Pill("large counts only", "fair")] if t.large_only else [pill]


def _star(t: Reliability) -> str:
    return "*" if t.measured and t.relative is not None else ""


def _average_cell(t: Reliability) -> str:
    if t.relative is None or t.count is None or t.margin is None:
        return "–"
    off = f"± {percent(t.relative)}" if t.relative < 10 else "over ± 1,000 %"
    return f"{number_text(t.count)}\n± {number_text(t.margin)}{_star(t)}\n{off}{_star(t)}"


def _above_zero_cell(t: Reliability, noun: Noun) -> str:
    if t.sure is None:
        return "–"
    if t.sure_trips is None or t.size == 1:
        return percent(t.sure) + _star(t)
    return f"{percent(t.sure)} of counts\n{percent(t.sure_trips)} of {noun.many}{_star(t)}"


def _noise_row(t: Reliability) -> tuple[str, str]:
    if t.public or t.scale is None:
        return ("public" if t.public else "not measured"), "–"
    return number_text(t.scale), "–" if t.noise is None else f"± {t.noise:,}"


# How features and attributes are named


def published_features(published: Published) -> Sequence[str]:
    """The features that are published, coarse ones first."""
    listed = published.release.tables
    return [n for n in published.dag.features if n in listed or not listed]


def attribute_words(name: str) -> str:
    """The name of an attribute as people say it.

    >>> attribute_words("origin.zone")
    'origin zone'
    """
    return name.replace(".", " ")
