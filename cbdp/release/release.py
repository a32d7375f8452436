"""What is published: integer trips, every feature's counts, the noisy measurements, and what all of it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation.engine import MAX_LISTED_TYPES, Estimate
from cbdp.estimation.intervals import Interval, intervals
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.accounting import PrivacyGuarantee
from cbdp.privacy.measurement import Measurement
from cbdp.release.about import About
from cbdp.release.serialization import Recipe, simulated_guarantee
from cbdp.release.series import InSeries, RunningPart
from cbdp_features.places import Stops
from cbdp_features.tables import Elements, LabelledCounts, LabelledTable, TypeLabels

if TYPE_CHECKING:
    from cbdp.release.ask import Where
    from cbdp.release.files import Saved
    from cbdp.release.manifest_model import FileJson, LedgerJson, Manifest
    from cbdp.release.plots import Plots


@dataclass(frozen=True)
class Stored:
    """What a folder says beside the release itself: who wrote it, the ledger's head, and the hashes of its files."""

    software: Mapping[str, str]
    ledger: LedgerJson
    files: Mapping[str, FileJson]


@dataclass(frozen=True, eq=False)
class Release:
    """Whole trips by type, and tables of counts: published values only.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> release = cbdp.ConstraintBased(features, epsilon=1).simulate(trips, seed=0)
    >>> counts = release.counts("time")
    >>> bool(counts.sum() == release.counts("total")[0]), release.secure
    (True, False)
    """

    features: FeatureDag = field(repr=False)
    recipe: Recipe
    claim: PrivacyGuarantee  # what the mechanism promises if its noise is secret; see `promise`
    index: Ints = field(repr=False)  # trip types with at least one published trip, ascending
    value: Ints = field(repr=False)
    measurements: Sequence[Measurement] = field(default=(), repr=False)
    estimate: Estimate | None = field(default=None, repr=False)
    tables: Mapping[str, Ints] = field(default_factory=dict, repr=False)  # published as they were measured
    secure: bool = True  # False: drawn from a seeded source, for tests and benchmarks only
    intervals: Mapping[str, Interval] = field(default_factory=dict, repr=False)
    confidence: float | None = None  # of those intervals
    # feature → elements that are not their estimate rounded down or up; None: not stated by the mechanism
    violations: Mapping[str, int] | None = field(default=None, repr=False)
    # relative: estimates so near a whole number counted as it; None: not stated (by versions up to 0.2)
    rounding_tolerance: float | None = field(default=None, repr=False)
    # what the measurements are of, where not the features (a tree made of them)
    levels: FeatureDag | None = field(default=None, repr=False)
    places: Stops | None = field(default=None, repr=False)
    about: About | None = field(default=None, repr=False)  # what the publisher says of it
    series: InSeries | None = field(default=None, repr=False)  # its place in a series of releases
    prior: Floats | None = field(default=None, repr=False)  # public weights that entered the estimate
    running: RunningPart | None = field(
        default=None, repr=False
    )  # of running totals, where its series keeps any
    stored: Stored | None = field(default=None, repr=False)  # None: not loaded from a folder

    @property
    def mechanism(self) -> str:
        """The name of the mechanism that made it."""
        return self.recipe.mechanism

    @property
    def promise(self) -> PrivacyGuarantee:
        """What is promised: the mechanism's claim or, where the noise came from a seed, nothing.

        What a simulation would have cost stays in `promise.cost`.
        """
        return self.claim if self.secure else simulated_guarantee(self.claim)

    def trips(self) -> LabelledTable:
        """The published trips: a column per dimension, and the count; one row per type that has any."""
        return LabelledTable(
            TypeLabels(self.features.universe, self.index),
            {"count": self.value},
            "trips",
            tuple(self._table_notes()),
        )

    def counts(self, feature: str) -> LabelledCounts:
        """The published count of each of a feature's elements, in their order: an array that says what each count is of."""
        return LabelledCounts(self._counted(feature), Elements(self.features, feature))

    def table(self, feature: str) -> LabelledTable:
        """A feature's counts with the labels of each and, where they are published, their intervals."""
        numbers: dict[str, Ints | Floats] = {"count": self._counted(feature)}
        if feature in self.intervals:
            interval = self.intervals[feature]
            numbers |= {"low": interval.low, "high": interval.high}
        labels = Elements(self.features, feature)
        return LabelledTable(labels, numbers, feature, tuple(self._table_notes()), self.confidence)

    def _table_notes(self) -> list[str]:
        """What a notebook shows beside numbers of this release."""
        from cbdp.release.views import counted_noun, guarantee_text, left_out

        bound = left_out(self.claim.unit, counted_noun(self.features.universe))
        return [f"trips; {guarantee_text(self)}{f'. {bound}' if bound else ''}"]

    def _counted(self, feature: str) -> Ints:
        if feature in self.tables:
            return self.tables[feature]
        if feature == SINGLETON:
            if self.features.universe.size > MAX_LISTED_TYPES:
                raise InputError("counts of all trip types do not fit in memory: use trips()")
            dense = np.zeros(self.features.universe.size, dtype=np.int64)
            dense[self.index] = self.value
            return dense
        partition = self.features.partition(feature)
        element = partition.element_of(self.features.universe.unrank_codes(self.index))
        counts = np.zeros(partition.size, dtype=np.int64)
        np.add.at(counts, element, self.value)
        return counts

    def ask(
        self,
        by: str | Sequence[str] = (),
        where: Where | None = None,
        confidence: float = 0.9,
        share_of: str | Sequence[str] | None = None,
        sharp: bool | None = None,
    ) -> LabelledTable:
        """Counts by any attributes, of any trip types, with confidence intervals: columns for any data frame; no privacy is spent.

        `where` holds conditions such as "time<10:00", ["origin=A,B", "day=saturday"] or `{("origin", "destination"): [("A", "B")]}`.
        With `share_of`, some of the attributes in `by` (() for all trips that meet the conditions), the answer also tells each group's
        share of the trips with the same values of those attributes.

        Intervals are made from the noisy answers and hold counts of every true size as often as `confidence` says. Where no measurement adds up to a count, `low` and
        `high` are NaN, and the answer's `notes` say why, and whatever else a reader must know. With `sharp`, intervals are about the estimate where that is narrower:
        they hold fewer of the largest counts. For these the mechanism is run some ten times, once for all questions.
        """
        from cbdp.release.ask import ask

        return ask(self, by, where, confidence, share_of, sharp)

    @property
    def total(self) -> int:
        """How many trips are published."""
        return int(self.value.sum())

    def interval(self, feature: str, confidence: float = 0.9) -> Interval:
        """The confidence interval of each of a feature's counts, in their order.

        Published intervals are returned as they are. Others are made from the noisy answers; no privacy is spent. Features that no
        measured table adds up to have none, which is an error here.
        """
        if feature not in self.features:
            raise InputError(f"unknown feature {feature!r}: there are {', '.join(self.features.features)}")
        if feature in self.intervals and confidence == self.confidence:
            return replace(self.intervals[feature], elements=Elements(self.features, feature))
        interval = intervals(self, confidence, features=[feature]).get(feature)
        if interval is None:
            from cbdp.release.ask import why_none

            many = self.features.size(feature)
            raise InputError(f"{feature!r}: {why_none(self, many, many)}")
        return replace(interval, elements=Elements(self.features, feature))

    def with_intervals(self, confidence: float = 0.9, *, features: Sequence[str] | None = None) -> Release:
        """Return the release with intervals for all features but `singleton`, or for those named, as far as they have any."""
        by_feature = intervals(self, confidence, features=features)
        return replace(self, intervals=by_feature, confidence=float(confidence))

    @property
    def plot(self) -> Plots:
        """Pictures of the release: `plot.day()`, `plot.flows()` and `plot.map()`, drawn with matplotlib."""
        from cbdp.release.plots import Plots

        return Plots(self)

    def __repr__(self) -> str:
        from cbdp.release.views import release_text

        return release_text(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from cbdp.release.views import release_html

        return release_html(self)

    @property
    def manifest(self) -> Manifest:
        """All that a reviewer needs to know: see manifest.schema.json. Hashes of files are there once it is saved."""
        from cbdp.release.layout import manifest_of

        return manifest_of(self)

    def save(
        self,
        folder: str | Path,
        *,
        ledger: Mapping[str, object] | None = None,
        extra: Mapping[str, str | bytes] | None = None,
        simulation: bool = False,
    ) -> Saved:
        """Write the release to a new folder: all of it, or nothing. `cbdp.load` reads it back.

        `ledger` is what a ledger's `statement` says of the charge. `extra` are further files by name, such as a report; their
        hashes are in the manifest too. What came from a seeded source is refused, unless `simulation` says that it is meant; the
        manifest then states that it protects nobody.
        """
        from cbdp.release.files import save

        return save(self, folder, ledger=ledger, extra=extra or {}, simulation=simulation)


def from_leaves(leaves: Ints | Floats) -> tuple[Ints, Ints]:
    """Index and value of the non-zero counts among all, rounded to the nearest whole number of at least 0."""
    return rounded(np.arange(len(leaves), dtype=np.int64), leaves)


def rounded(index: Ints, value: Ints | Floats) -> tuple[Ints, Ints]:
    """Counts rounded to the nearest whole number, those above 0."""
    whole = np.maximum(np.rint(value), 0).astype(np.int64)
    here = np.flatnonzero(whole)
    return index[here], whole[here]
