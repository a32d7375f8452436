"""What the report is made of: published values, looked at by the attributes one asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.estimate.intervals import measured_interval
from cbdp.features import SINGLETON, Feature, FeatureDag
from cbdp.features.grouping import Grouping
from cbdp.features.places import Stops
from cbdp.privacy.composition import Cost, Parallel, RhoSpend, Spend, Stated, amount_of
from cbdp.privacy.laws import Law
from cbdp.release.release import Release

if TYPE_CHECKING:  # intervals are handed in
    from cbdp.estimate.intervals import Interval


CONFIDENCE = 0.9
LISTED = 4_000_000  # elements up to which a table is grouped again
TOLD = 250_000  # counts of no table up to which intervals are worked out


@dataclass(frozen=True, eq=False)
class Grouped:
    """Counts by some attributes: an axis for each, in the order of its labels.

    `low` and `high` are the intervals' ends. They are `exact` when these very counts have intervals, published with a table or told by
    the measurements; otherwise they are the added ends of a finer table's.
    """

    by: tuple[str, ...]
    counts: Ints = field(repr=False)
    low: Ints | None = field(default=None, repr=False)
    high: Ints | None = field(default=None, repr=False)
    exact: bool = False
    possible: NDArray[np.bool_] | None = field(
        default=None, repr=False
    )  # False: cannot occur. None: not known
    tabled: bool = False  # a published table has these very counts and their intervals


@dataclass(frozen=True, eq=False)
class Published:
    """A release with its intervals, the places of its stops and its manifest, where it has them."""

    release: Release = field(repr=False)
    intervals: Mapping[str, Interval] = field(default_factory=dict, repr=False)
    confidence: float = CONFIDENCE
    places: Stops | None = None
    manifest: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def dag(self) -> FeatureDag:
        return self.release.features

    def labels(self, attribute: str) -> list[str]:
        return [str(label) for label in self.dag.universe.attribute(attribute).labels]

    def many(self, attribute: str) -> int:
        return len(self.dag.universe.attribute(attribute).labels)

    def grouped(self, *by: str) -> Grouped:
        """Counts by these attributes, from the table that says most about them."""
        shape = tuple(self.many(name) for name in by)
        feature = self._source(by)
        if feature is None:
            counts = _added(shape, self._places(by), self.release.value)
            ends = self._told(by) if counts.size <= TOLD else None
            low, high = ends or (None, None)
            return Grouped(by, counts, low, high, exact=ends is not None)
        partition = self.dag.partition(feature.name)
        codes = dict(zip(feature.by, partition.label_codes(), strict=True))
        places = tuple(codes[name] for name in by)
        counts = _added(shape, places, self.release.counts(feature.name))
        possible = _added(shape, places, np.ones(partition.size, dtype=np.int64)) > 0
        interval = self.intervals.get(feature.name)
        if interval is None:
            return Grouped(by, counts, possible=possible)
        tabled = set(feature.by) == set(by)
        told = None if tabled else self._told(by)
        low, high = told or (_added(shape, places, ends) for ends in (interval.low, interval.high))
        return Grouped(by, counts, low, high, tabled or told is not None, possible, tabled)

    def _told(self, by: tuple[str, ...]) -> tuple[Ints, Ints] | None:
        """The ends of intervals that the measurements alone tell, as `Release.ask` gives them."""
        grouping = Grouping(self.dag.universe, by)
        told = None if self.release.tables else measured_interval(self.release, grouping, self.confidence)
        if told is None:
            return None
        shape, places = tuple(self.many(name) for name in by), tuple(grouping.atoms.label_codes())
        low, high = (_added(shape, places, ends) for ends in (told.low, told.high))
        return low, high

    def _source(self, by: tuple[str, ...]) -> Feature | None:
        """The feature that groups by just these attributes, or the smallest one with intervals that can be added up.

        A release of tables that do not agree is read from its tables: its trips, if any, are one of them.
        """
        tables = self.release.tables
        fit = [
            f for n, f in self.dag.features.items() if set(by) <= set(f.by) and (n in tables or not tables)
        ]
        fit = [f for f in fit if (f.name != SINGLETON or tables) and self.dag.size(f.name) <= LISTED]
        fit.sort(key=lambda f: self.dag.size(f.name))
        same = [f for f in fit if set(f.by) == set(by)]
        certain = [f for f in fit if f.name in self.intervals]
        return next(iter([*same, *certain, *(fit if tables else [])]), None)

    def _places(self, by: tuple[str, ...]) -> tuple[Ints, ...]:
        """Each attribute's code at every published trip type."""
        universe = self.dag.universe
        codes = dict(zip(universe.dimensions, universe.unrank_codes(self.release.index), strict=True))
        attributes = [universe.attribute(name) for name in by]
        return tuple(a.codes[tuple(codes[dim] for dim in a.of)] for a in attributes)

    def spends(self) -> dict[str, Spend | RhoSpend]:
        """What each answer cost, by its name."""
        return {spend.what: spend for spend in _spends(self.release.claim.cost)}

    def law(self, feature: str) -> Law | None:
        """The law of the noise that was added to a feature's counts; None if they were not measured themselves."""
        levels = self.release.levels or self.dag
        for m in self.release.measurements:
            if m.feature == feature and m.noise is not None:
                same = set(levels.features[feature].by) == set(self.dag.features[feature].by)
                return m.noise if same else None
        own = self.release.recipe.tables.get(feature) if feature in self.release.tables else None
        return None if own is None else own.law


def publish(
    release: Release, places: Stops | None = None, manifest: Mapping[str, Any] | None = None
) -> Published:
    """The release with what it carries itself, where nothing else is given."""
    return Published(
        release,
        release.intervals,
        release.confidence or CONFIDENCE,
        release.places if places is None else places,
        release.manifest if manifest is None else manifest,
    )


def _spends(cost: Cost) -> list[Spend | RhoSpend]:
    """The single answers of a cost; of parts that are disjoint, those of the dearest."""
    if isinstance(cost, Stated):
        return _spends(cost.part)
    if isinstance(cost, Spend | RhoSpend):
        return [cost]
    if isinstance(cost, Parallel):
        return _spends(max(cost.parts, key=amount_of))
    return [spend for part in cost.parts for spend in _spends(part)]


def _added(shape: tuple[int, ...], places: tuple[Ints, ...], numbers: Ints) -> Ints:
    total = np.zeros(shape, dtype=np.int64)
    np.add.at(total, places, numbers) if shape else total.__iadd__(numbers.sum())
    return total
