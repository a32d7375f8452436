"""Which numbers a measurement supports: only these are put at the head of the page.

A count is supported where some noisy answers add up to it, their noise is small beside it, and it is where they say it is.
Expected counts of single trip types lean on what others of their kind have: the noisy counts of trip types support no sum of those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from cbdp.arrays import Floats
from cbdp.estimate import ESTIMATORS
from cbdp.estimate.public import exact_answers
from cbdp.features import SINGLETON, FeatureDag
from cbdp.features.coverage import tells
from cbdp.privacy.measurement import CERTAIN, Measurement
from cbdp.release.published import LISTED, Published
from cbdp.release.release import Release
from cbdp.report.uses import GOOD
from cbdp.solvers.problem import bincount

BEYOND = 4.0  # standard deviations of the noise within which a supported count lies; rounding may add a trip


@dataclass(frozen=True, eq=False)
class Support:
    """What the measurements say of counts by some attributes: sums of noisy answers, and the deviation of their noise."""

    value: Floats = field(repr=False)
    deviation: Floats = field(repr=False)

    def of(self, place: int, count: int, confidence: float) -> bool:
        """Whether a published count is supported."""
        off, deviation = abs(count - self.value[place]), float(self.deviation[place])
        margin = NormalDist().inv_cdf(0.5 + confidence / 2) * deviation
        return margin <= GOOD * count and off <= BEYOND * deviation + 1.0


def supported(published: Published, by: Sequence[str], place: int, count: int) -> bool:
    """Whether any measurement supports the published count at this place among the labels of these attributes."""
    return any(s.of(place, count, published.confidence) for s in supports(published, by))


def supports(published: Published, by: Sequence[str]) -> Iterator[Support]:
    """The sums by these attributes (an axis each, as in `Published.grouped`) of every measurement that has them; small tables first."""
    release = published.release
    levels = release.levels or published.dag
    own = [
        Measurement(
            name, counts, variance=np.where(counts > 0, release.recipe.tables[name].law.variance(), CERTAIN)
        )
        for name, counts in release.tables.items()
        if name in release.recipe.tables
    ]  # what a table suppressed has no noise
    answers = [*exact_answers(release.recipe.public), *release.measurements, *own]
    for m in sorted(answers, key=lambda m: len(m.values)):
        whole = m.elements is None and m.variance is not None and len(m.values) <= LISTED
        leaning = m.feature == SINGLETON and expects(release)
        if whole and not leaning and tells(levels, m.feature, by):
            yield _added(levels, m, by)


def expects(release: Release) -> bool:
    """Whether the estimate is made of expected counts."""
    estimator = release.recipe.estimator
    return estimator is not None and ESTIMATORS.installed(estimator).expects


def _added(levels: FeatureDag, m: Measurement, by: Sequence[str]) -> Support:
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
