"""A release as pictures and words look at it: which dimensions and attributes of any universe play which part (time, two ends, zones, shares), what is
counted (trips, or taps), and when; its published values: counts by the attributes one asks for, totals of stops, and the part of the map with the trips;
and what the release is, in words: used wherever it speaks for itself, in its report, its README, notebooks and plots.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.estimation.intervals import measured_interval
from cbdp.features import SINGLETON, Dimension, Feature, FeatureDag, Universe
from cbdp.numbers import amount_text
from cbdp.privacy.accounting import (
    Cost,
    DPCost,
    EpsilonDeltaStatement,
    Parallel,
    PrivacyGuarantee,
    ZCDPCost,
    cost_amount,
    readable_epsilon,
)
from cbdp.privacy.noise import NoiseDistribution
from cbdp.privacy.unit import RELEASE, Person, Unit
from cbdp.release.about import MONTH_NAMES, Dates
from cbdp.release.release import Release
from cbdp.text import html_text, message, printable
from cbdp_features.places import Stops
from cbdp_features.queries import Grouping
from cbdp_features.tables import html_table

if TYPE_CHECKING:
    from cbdp.estimation.intervals import Interval

TIME_NAMES = ("time", "period", "hour", "departure")
END_NAMES = (("origin", "destination"), ("from", "to"), ("start", "end"))
MAX_BAR_LABELS = 24  # labels up to which an attribute is shown as bars
MAX_SHARE_CHARTS = 3  # attributes shown as bars on one page


@dataclass(frozen=True)
class Roles:
    """Names of attributes; None where the universe has nothing of the kind."""

    time: str | None
    ends: tuple[str, str] | None  # the dimensions a trip leads from and to
    zones: tuple[str, str] | None  # the same attribute of both
    shares: tuple[str, ...]  # modes, kinds, days


def roles(dag: FeatureDag) -> Roles:
    """The parts that the features' own attributes play.

    >>> from cbdp.features import opal
    >>> roles(opal(Universe(tap=["on", "off"], time=["08:00", "08:15"], location=["Manly", "Quay"])))
    Roles(time='time', ends=None, zones=None, shares=('tap', 'location'))
    """
    universe = dag.universe
    time, ends = _time(universe), ends_of(universe)
    zones = _zones(dag, ends)
    taken = {time, *(ends or ()), *(zones or ())}
    named = [name for feature in dag.features.values() for name in feature.by]
    every = dict.fromkeys([*named, *(n for n, a in universe.attributes.items() if len(a.of) > 1)])
    few = [n for n in every if n not in taken and 1 < len(universe.attribute(n).labels) <= MAX_BAR_LABELS]
    if ends is not None:  # a zone of one end alone is in the matrix already
        few = [n for n in few if universe.attribute(n).of not in ((ends[0],), (ends[1],))]
    few.sort(key=lambda name: "mode" not in name.lower())
    return Roles(time, ends, zones, tuple(few[:MAX_SHARE_CHARTS]))


def _time(universe: Universe) -> str | None:
    binned = [n for n, d in universe.dimensions.items() if d.edges is not None]
    named = [n for n in universe.dimensions if n.lower() in TIME_NAMES]
    return next(iter(binned + named), None)


def ends_of(universe: Universe) -> tuple[str, str] | None:
    """The dimensions that a trip leads from and to: by their names, or because both have the same values."""
    for pair in END_NAMES:
        if all(end in universe.dimensions for end in pair):
            return pair
    names = list(universe.dimensions)
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            if universe.dimensions[first].values == universe.dimensions[second].values:
                return first, second
    return None


def _zones(dag: FeatureDag, ends: tuple[str, str] | None) -> tuple[str, str] | None:
    """An attribute that both ends have; one that a feature groups by comes first, of those the coarsest."""
    if ends is None:
        return None
    universe = dag.universe
    both = [
        (n, f"{ends[1]}.{n.partition('.')[2]}")
        for n, a in universe.attributes.items()
        if a.of == (ends[0],) and n.startswith(f"{ends[0]}.")
    ]
    both = [pair for pair in both if pair[1] in universe.attributes]
    used = [pair for pair in both if any(set(pair) <= set(f.by) for f in dag.features.values())]
    return min(used or both, key=lambda p: len(universe.attribute(p[0]).labels), default=None)


def period_names(dimension: Dimension) -> list[str]:
    """Periods by both their ends where these are known, other values by themselves."""
    edges = dimension.edges
    if edges is None or len(edges) != len(dimension) + 1:
        return [str(value) for value in dimension.values]
    return [f"{clock_second(a)}–{clock_second(b)}" for a, b in pairwise(edges)]


def clock_second(second: int) -> str:
    """A second of the day as it is read off a clock.

    >>> clock_second(6 * 3600 + 1800), clock_second(61)
    ('06:30', '00:01:01')
    """
    text = f"{second // 3600:02d}:{second // 60 % 60:02d}"
    return f"{text}:{second % 60:02d}" if second % 60 else text


def enumerated(names: Sequence[str]) -> str:
    """Names as a part of a sentence.

    >>> enumerated(["a"]), enumerated(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


# What a release counts, as a word: trips, or taps where a row has one place and not two


TAP_DIMENSION = "tap"  # the dimension that tells tap-ons from tap-offs, and where they were made: as `cbdp init` names them
PLACE_NAMES = ("location", "stop", "station")
TAP_KINDS = ("on", "off")


@dataclass(frozen=True)
class Noun:
    """A word for one, and for many.

    >>> TAP_NOUN.number(1), TAP_NOUN.number(2000)
    ('1 tap', '2,000 taps')
    """

    one: str
    many: str

    def number(self, n: float) -> str:
        return f"{n:,.0f} {self.one if n == 1 else self.many}"

    def say(self, text: str) -> str:
        """A sentence about trips, with this word in place of theirs.

        >>> TAP_NOUN.say("Trips are protected: each trip counts.")
        'Taps are protected: each tap counts.'
        """
        return re.sub(
            r"\b([Tt])rip(s?)\b",
            lambda match: _cased(self.many if match[2] else self.one, match[1] == "T"),
            text,
        )


TRIP_NOUN, TAP_NOUN = Noun("trip", "trips"), Noun("tap", "taps")


def counted_noun(universe: Universe) -> Noun:
    """Trips lead from one place to another. Where there is one place alone, and `tap` or `location` names it, taps are counted.

    >>> counted_noun(Universe(location=["Manly", "Quay"], time=["08:00", "08:15"])).many
    'taps'
    >>> counted_noun(Universe(tap=["on"], location=["Manly", "Quay"])).many
    'tap-ons'
    >>> counted_noun(Universe(origin=["Manly", "Quay"], destination=["Manly", "Quay"])).many
    'trips'
    """
    if ends_of(universe) is not None or not {TAP_DIMENSION, PLACE_NAMES[0]} & set(universe.dimensions):
        return TRIP_NOUN
    kinds = (
        [str(v) for v in universe.dimensions[TAP_DIMENSION].values]
        if TAP_DIMENSION in universe.dimensions
        else []
    )
    if len(kinds) == 1 and kinds[0] in TAP_KINDS:
        return Noun(f"tap-{kinds[0]}", f"tap-{kinds[0]}s")
    return TAP_NOUN


def _cased(word: str, capital: bool) -> str:
    return f"{word[0].upper()}{word[1:]}" if capital else word


# When the trips were made, as far as a release says: by its dimensions, or in the publisher's words


DAY_DIMENSION = "day"  # a dimension of this name holds dates or types of days
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# types of days follow the week; what is none of these, such as a holiday, comes after them
DAY_TYPES = ("weekday", "workday", "working day", *WEEKDAYS[:5], "weekend", *WEEKDAYS[5:])
MONTH_LABELS = tuple(month.lower() for month in MONTH_NAMES)


def days_in(dimension: Dimension) -> list[dt.date] | None:
    """The values as dates, where all of them are."""
    try:
        return [v if type(v) is dt.date else dt.date.fromisoformat(v) for v in dimension.values]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def dates_in(dimension: Dimension) -> list[dt.date] | None:
    """The values as dates, where all of them are written as such: a label of digits alone, such as 20250301, may mean anything."""
    if not all(type(v) is dt.date or "-" in str(v) for v in dimension.values):
        return None
    return days_in(dimension)


def dates_of(universe: Universe) -> Dates | None:
    """The first and the last date that a trip may have, where a dimension holds dates."""
    for dimension in universe.dimensions.values():
        days = dates_in(dimension)
        if days is not None:
            return Dates(min(days), max(days))
    return None


def period_of(release: Release) -> str | None:
    """The period that the trips are from, in words: as the publisher says, by the dates that were counted, or by its series."""
    if release.about is not None and release.about.period is not None:
        return str(release.about.period)
    dates = dates_of(release.features.universe) or _days_of_series(release)
    return None if dates is None else str(dates)


def _days_of_series(release: Release) -> Dates | None:
    """The days of a release that is one of a series."""
    return None if release.series is None else Dates(release.series.first, release.series.last)


def is_single_day(release: Release) -> bool:
    """Whether nothing says that the trips are from several days. Otherwise nobody may write of "the day"."""
    universe, about = release.features.universe, release.about
    dates = dates_of(universe) or _days_of_series(release)
    if dates is not None and dates.first != dates.last:
        return False
    if DAY_DIMENSION in universe.dimensions and len(universe.dimensions[DAY_DIMENSION]) > 1:
        return False
    period = None if about is None else about.period
    return period is None or (isinstance(period, Dates) and period.first == period.last)


def calendar_order(labels: Sequence[Hashable]) -> list[int] | None:
    """The order of labels that are days or months, as a calendar has it; None where they are neither.

    Names may be short ("Mon"), in any case of letters, and a few may be of other days, such as holidays: these come last.

    >>> calendar_order(["saturday", "sunday", "weekday"]), calendar_order(["Fri", "Mon", "holiday"])
    ([2, 0, 1], [1, 0, 2])
    >>> calendar_order(["bus", "walk"]) is None
    True
    """
    words = [str(label).strip().lower() for label in labels]
    if words and all(_date(label) for label in labels):
        return sorted(range(len(words)), key=lambda i: words[i])
    for names in (DAY_TYPES, MONTH_LABELS):
        place = {name: i for i, name in enumerate(names)} | {
            name[:3]: i for i, name in enumerate(names) if name in (*WEEKDAYS, *MONTH_LABELS)
        }
        places = [place.get(word) for word in words]
        if 2 * sum(k is not None for k in places) > len(words):
            return sorted(range(len(words)), key=lambda i: (places[i] is None, places[i] or 0))
    return None


def _date(label: Hashable) -> bool:
    """Whether a label is a day of the calendar."""
    if isinstance(label, dt.date):
        return True
    try:
        return isinstance(label, str) and "-" in label and dt.date.fromisoformat(label) is not None
    except ValueError:
        return False


# Published values


DEFAULT_CONFIDENCE = 0.9
MAX_REGROUPED_ELEMENTS = 4_000_000  # elements up to which a table is grouped again
MAX_INTERVALS = 250_000  # counts of no table up to which intervals are worked out


@dataclass(frozen=True, eq=False)
class GroupedCounts:
    """Counts by some attributes: an axis for each, in the order of its labels.

    `low` and `high` are the intervals' ends. They are `exact` when these very counts have intervals, published with a table or worked out
    from the measurements; otherwise they are the added ends of a finer table's.
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
    confidence: float = DEFAULT_CONFIDENCE
    places: Stops | None = None
    manifest: Mapping[str, object] | None = field(default=None, repr=False)

    @property
    def dag(self) -> FeatureDag:
        return self.release.features

    def labels(self, attribute: str) -> list[str]:
        return [str(label) for label in self.dag.universe.attribute(attribute).labels]

    def label_count(self, attribute: str) -> int:
        return len(self.dag.universe.attribute(attribute).labels)

    def grouped(self, *by: str) -> GroupedCounts:
        """Counts by these attributes, from the table that says most about them."""
        shape = tuple(self.label_count(name) for name in by)
        feature = self._source(by)
        if feature is None:
            counts = _summed(shape, self._published_codes(by), self.release.value)
            ends = self._measured_ends(by) if counts.size <= MAX_INTERVALS else None
            low, high = ends or (None, None)
            return GroupedCounts(by, counts, low, high, exact=ends is not None)
        partition = self.dag.partition(feature.name)
        codes = dict(zip(feature.by, partition.label_codes(), strict=True))
        places = tuple(codes[name] for name in by)
        counts = _summed(shape, places, self.release.counts(feature.name))
        possible = _summed(shape, places, np.ones(partition.size, dtype=np.int64)) > 0
        interval = self.intervals.get(feature.name)
        if interval is None:
            return GroupedCounts(by, counts, possible=possible)
        tabled = set(feature.by) == set(by)
        measured_ends = None if tabled else self._measured_ends(by)
        low, high = measured_ends or (_summed(shape, places, ends) for ends in (interval.low, interval.high))
        return GroupedCounts(by, counts, low, high, tabled or measured_ends is not None, possible, tabled)

    def _measured_ends(self, by: tuple[str, ...]) -> tuple[Ints, Ints] | None:
        """The ends of intervals from the measurements alone, as `Release.ask` gives them."""
        grouping = Grouping(self.dag.universe, by)
        interval = None if self.release.tables else measured_interval(self.release, grouping, self.confidence)
        if interval is None:
            return None
        shape, places = tuple(self.label_count(name) for name in by), tuple(grouping.atoms.label_codes())
        low, high = (_summed(shape, places, ends) for ends in (interval.low, interval.high))
        return low, high

    def _source(self, by: tuple[str, ...]) -> Feature | None:
        """The feature that groups by just these attributes, or the smallest one with intervals that can be added up.

        A release of tables that do not agree is read from its tables: its trips, if any, are one of them.
        """
        tables = self.release.tables
        fit = [
            f for n, f in self.dag.features.items() if set(by) <= set(f.by) and (n in tables or not tables)
        ]
        fit = [
            f
            for f in fit
            if (f.name != SINGLETON or tables) and self.dag.size(f.name) <= MAX_REGROUPED_ELEMENTS
        ]
        fit.sort(key=lambda f: self.dag.size(f.name))
        same = [f for f in fit if set(f.by) == set(by)]
        certain = [f for f in fit if f.name in self.intervals]
        return next(iter([*same, *certain, *(fit if tables else [])]), None)

    def _published_codes(self, by: tuple[str, ...]) -> tuple[Ints, ...]:
        """Each attribute's code at every published trip type."""
        universe = self.dag.universe
        codes = dict(zip(universe.dimensions, universe.unrank_codes(self.release.index), strict=True))
        attributes = [universe.attribute(name) for name in by]
        return tuple(a.codes[tuple(codes[dim] for dim in a.of)] for a in attributes)

    def costs(self) -> dict[str, DPCost | ZCDPCost]:
        """What each answer cost, by its name."""
        return {cost.what: cost for cost in _single_answers(self.release.claim.cost)}

    def noise_distribution(self, feature: str) -> NoiseDistribution | None:
        """The distribution of the noise that was added to a feature's counts; None if they were not measured themselves."""
        levels = self.release.levels or self.dag
        for m in self.release.measurements:
            if m.feature == feature and m.noise is not None:
                same = set(levels.features[feature].by) == set(self.dag.features[feature].by)
                return m.noise if same else None
        table_noise = self.release.recipe.tables.get(feature) if feature in self.release.tables else None
        return None if table_noise is None else table_noise.law


def published_view(
    release: Release, places: Stops | None = None, manifest: Mapping[str, object] | None = None
) -> Published:
    """The release with what it carries itself, where nothing else is given."""
    return Published(
        release,
        release.intervals,
        release.confidence or DEFAULT_CONFIDENCE,
        release.places if places is None else places,
        release.manifest if manifest is None else manifest,
    )


def _single_answers(cost: Cost) -> list[DPCost | ZCDPCost]:
    """The single answers of a cost; of parts that are disjoint, those of the dearest."""
    if isinstance(cost, EpsilonDeltaStatement):
        return _single_answers(cost.part)
    if isinstance(cost, DPCost | ZCDPCost):
        return [cost]
    if isinstance(cost, Parallel):
        return _single_answers(max(cost.parts, key=cost_amount))
    return [single for part in cost.parts for single in _single_answers(part)]


def _summed(shape: tuple[int, ...], places: tuple[Ints, ...], numbers: Ints) -> Ints:
    total = np.zeros(shape, dtype=np.int64)
    np.add.at(total, places, numbers) if shape else total.__iadd__(numbers.sum())
    return total


# The stops of a release where they are, with the trips that start or end there


@dataclass(frozen=True, eq=False)
class StopTotals:
    """Stops of either end of a trip: their labels, places (nan: unknown), and how many published trips start or end there."""

    labels: tuple[Hashable, ...]
    lat: Floats = field(repr=False)
    lon: Floats = field(repr=False)
    trips: Floats = field(repr=False)

    def of(self, labels: Sequence[Hashable]) -> tuple[Floats, Floats]:
        """The places of some stops."""
        where = {label: place for place, label in enumerate(self.labels)}
        here = np.array([where[label] for label in labels], dtype=np.int64)
        return self.lat[here], self.lon[here]


def stop_totals(published: Published) -> StopTotals:
    """The stops between which trips are counted, each once."""
    ends, universe = roles(published.dag).ends, published.dag.universe
    release, places = published.release, published.places
    assert ends is not None
    codes = dict(zip(universe.dimensions, universe.unrank_codes(release.index), strict=True))
    trips: dict[Hashable, float] = {}
    for end in ends:
        values = universe.dimension(end).values
        many = (
            np.bincount(codes[end], release.value, len(values))
            if len(release.value)
            else np.zeros(len(values))
        )
        for value, n in zip(values, many.tolist(), strict=True):
            trips[value] = trips.get(value, 0.0) + n
    position = {} if places is None else {stop: i for i, stop in enumerate(places.ids)}
    texts = {str(stop): i for stop, i in position.items()}
    at = [position.get(label, texts.get(str(label))) for label in trips]
    lat, lon = (
        np.array(
            [np.nan if i is None or coordinates is None else float(coordinates[i]) for i in at],
            dtype=np.float64,
        )
        for coordinates in (None if places is None else places.lat, None if places is None else places.lon)
    )
    return StopTotals(tuple(trips), lat, lon, np.array(list(trips.values()), dtype=np.float64))


# What part of a map to show: where the trips are. A few stops far away would shrink all others to a dot


FRAME_WEIGHT_SHARE = 0.8  # of the ends of trips: these are in the frame, however far apart
MIN_GAP_RATIO = (
    3.0  # where the next stop is so many times as far from the middle, all from there on may be left out
)
MAX_WEIGHT_BEYOND_GAP = 0.02  # of the ends of trips: so few are left out beyond a gap
MAX_PLAUSIBLE_DEGREES = 9.0  # degrees, about 1,000 km: beyond a gap and so far away, a place is a mistake, however many trips it has


@dataclass(frozen=True)
class Frame:
    """The corners of the part that is shown, and what lies outside of it."""

    south: float
    west: float
    north: float
    east: float  # from west to the east, so it may exceed 180
    outside: int = 0  # stops that are not shown
    share: float = 0.0  # of the ends of trips, at these

    def holds(self, lat: Floats, lon: Floats) -> NDArray[np.bool_]:
        """Which of these places lie inside."""
        east = (np.asarray(lon) - self.west + 1e-9) % 360.0
        return (self.south <= lat) & (lat <= self.north) & (east <= self.east - self.west + 2e-9)


def planar(lat: Floats, lon: Floats, start: tuple[float, float]) -> tuple[Floats, Floats]:
    """Degrees east and north of a point, in the same units (the equirectangular projection); the date line is no border."""
    east = (np.asarray(lon) - start[1] + 540.0) % 360.0 - 180.0
    return east * np.cos(np.radians(start[0])), np.asarray(lat) - start[0]


def map_frame(lat: Floats, lon: Floats, trips: Floats) -> Frame | None:
    """The frame of the stops with trips, less those far away; None if no stop has a place.

    >>> lat, lon = np.array([42.0, 42.1, 42.2, 0.0]), np.array([-83.0, -83.1, -83.2, 0.0])
    >>> shown = map_frame(lat, lon, np.array([50.0, 60.0, 70.0, 1.0]))
    >>> shown.south, shown.north, shown.outside
    (42.0, 42.2, 1)
    """
    located = np.isfinite(lat) & np.isfinite(lon)
    if not located.any():
        return None
    lat, lon, weight = lat[located], lon[located], np.asarray(trips, dtype=np.float64)[located]
    if not weight.sum() > 0:
        weight = np.ones(len(lat))
    start = float(lat[0]), float(lon[0])
    east, north = planar(lat, lon, start)
    middle = _weighted_quantile(east, weight, 0.5), _weighted_quantile(north, weight, 0.5)
    away = np.hypot(east - middle[0], north - middle[1])
    near = away <= _frame_radius(away, weight)
    shown = near & (weight > 0)
    turned = start[1] + (lon[shown] - start[1] + 540.0) % 360.0 - 180.0
    return Frame(
        south=float(lat[shown].min()),
        west=float(turned.min()),
        north=float(lat[shown].max()),
        east=float(turned.max()),
        outside=int((~near).sum()),
        share=float(weight[~near].sum() / weight.sum()),
    )


def _frame_radius(away: Floats, weight: Floats) -> float:
    """How far from the middle the frame goes: up to the first gap with few trips beyond, or with places that cannot be meant."""
    order = np.argsort(away, kind="stable")
    order = order[weight[order] > 0]
    far, share = away[order], np.cumsum(weight[order]) / weight.sum()
    gap = (share[:-1] >= FRAME_WEIGHT_SHARE) & (far[1:] > MIN_GAP_RATIO * np.maximum(far[:-1], 1e-3))
    gap &= (1 - share[:-1] <= MAX_WEIGHT_BEYOND_GAP) | (far[1:] > MAX_PLAUSIBLE_DEGREES)
    return float(far[np.flatnonzero(gap)[0]] if gap.any() else far[-1])


def _weighted_quantile(values: Floats, weight: Floats, share: float) -> float:
    """The value below which this share of the weight lies: a quantile of the weighted empirical distribution."""
    order = np.argsort(values, kind="stable")
    place = int(np.searchsorted(np.cumsum(weight[order]), share * weight.sum()))
    return float(values[order][min(place, len(order) - 1)])


# What a release is, in words


def title_of(release: Release, parts: Roles | None = None) -> str:
    """The publisher's title, or what it is."""
    if release.about is not None and release.about.title is not None:
        return release.about.title
    return "Published trips" if (parts or roles(release.features)).ends else "Published counts"


def where_and_when(release: Release) -> str | None:
    """Place and period, as far as they are known."""
    place = None if release.about is None else release.about.place
    return " · ".join(filter(None, [place, period_of(release)])) or None


def total_of(release: Release) -> int:
    """The trips of the coarsest table; of tables that do not agree, this is the best there is."""
    return int(Published(release).grouped().counts)


def contents_text(release: Release, parts: Roles | None = None) -> str:
    """How many trips, between what, over which time.

    >>> import cbdp, numpy as np
    >>> universe = cbdp.Universe(origin=["A", "B"], destination=["A", "B"], time=cbdp.periods("06:00", "08:00", "1h"))
    >>> mechanism = cbdp.Laplace(cbdp.FeatureDag(universe, []), epsilon=1)
    >>> print(contents_text(mechanism.simulate(np.full(8, 9), seed=0)))
    73 trips between 2 stops, 06:00–08:00 in 2 periods
    """
    parts, total = parts or roles(release.features), total_of(release)
    universe = release.features.universe
    noun = counted_noun(universe)
    if parts.ends is not None:
        ends = [len(universe.dimension(end)) for end in parts.ends]
        between = (
            f"between {ends[0]:,} stops" if ends[0] == ends[1] else f"from {ends[0]:,} to {ends[1]:,} stops"
        )
    else:
        between = _of_one_place(release, parts.time)
    when = f", {_span(release, parts.time)}" if parts.time is not None else ""
    return f"{noun.number(total)} {between}".strip() + when


def _of_one_place(release: Release, time: str | None) -> str:
    """Where, and by what else, where nothing leads from one place to another."""
    universe = release.features.universe
    many = {n: len(d) for n, d in universe.dimensions.items() if n != time}
    places = [n for n in many if is_place(release, n)][:1]
    kinds = universe.dimensions[TAP_DIMENSION].values if TAP_DIMENSION in many else ()
    taps = f"({enumerated([str(v) for v in kinds])}) " if len(kinds) > 1 else ""
    where = [f"at {many[n]:,} stop{'s' if many[n] > 1 else ''}" for n in places]
    others = [f"{n} ({size:,} values)" for n, size in many.items() if n not in (*places, TAP_DIMENSION)]
    return taps + " ".join([*where, *([f"by {enumerated(others)}"] if others else [])])


def is_place(release: Release, dimension: str) -> bool:
    """Whether a dimension's values are stops: by its name, or because the places know them."""
    if dimension in PLACE_NAMES:
        return True
    stop_ids = set() if release.places is None else {str(stop) for stop in release.places.ids}
    return bool(stop_ids) and stop_ids.issuperset(
        map(str, release.features.universe.dimension(dimension).values)
    )


def _span(release: Release, time: str) -> str:
    """The times that the trips are from."""
    dimension = release.features.universe.dimension(time)
    names = period_names(dimension)
    if dimension.edges is None:
        return f"in {len(names)} periods" if len(names) > 1 else f"in one period ({names[0]})"
    first, last = names[0].split("–")[0], names[-1].split("–")[-1]
    return f"{first}–{last} in {len(names)} periods" if len(names) > 1 else f"{first}–{last}"


def protected_text(unit: Unit, noun: Noun = TRIP_NOUN) -> str:
    """What one ε is for.

    >>> protected_text(Person("card", 4, per="day"))
    'day of a person'
    """
    if not isinstance(unit, Person):
        return noun.one
    return "person" if unit.per == RELEASE else f"{unit.per} of a person"


def epsilon_text(claim: PrivacyGuarantee) -> str:
    """ε, or nothing where nothing is promised.

    >>> from fractions import Fraction
    >>> from cbdp.privacy.accounting import DPCost
    >>> from cbdp.privacy.unit import Trip
    >>> epsilon_text(PrivacyGuarantee(Trip(), DPCost("total", Fraction(1, 2))))
    'ε = 0.5'
    """
    if not claim.holds:
        return "none"
    rho = claim.cost.currency == "rho"
    return f"ε = {readable_epsilon(claim.cost.epsilon) if rho else amount_text(claim.cost.epsilon)}"


def delta_rho_text(claim: PrivacyGuarantee) -> str:
    """What belongs to ε where a promise has more than that: its δ, and its ρ."""
    delta = f", δ = {float(claim.cost.delta):.2g}" if claim.cost.delta else ""
    return delta + (f" (ρ = {amount_text(claim.cost.rho)})" if claim.cost.currency == "rho" else "")


def guarantee_text(release: Release) -> str:
    """The protection in a line, as it stands on plots and in notebooks."""
    claim = release.promise
    if not claim.holds:
        return (
            "a simulation: it protects nobody"
            if not release.secure
            else "no differential privacy is promised"
        )
    return f"differentially private, {epsilon_text(claim)}{delta_rho_text(claim)} for each {protected_text(claim.unit, counted_noun(release.features.universe))}"


def bounding_text(unit: Unit, noun: Noun = TRIP_NOUN) -> str:
    """Which trips count, where not all trips of a person do; empty otherwise.

    >>> bounding_text(Person("card", 4, per="day"))
    'at most 4 trips of each person a day are counted'
    """
    if not isinstance(unit, Person):
        return ""
    be = "is" if unit.max_trips == 1 else "are"
    return f"at most {noun.number(unit.max_trips)} of each person{unit.period} {be} counted"


def left_out(unit: Unit, noun: Noun = TRIP_NOUN) -> str:
    """What numbers are about where not all trips of a person count: what every output says it with; empty otherwise.

    >>> left_out(Person("card", 4, per="day"))
    'At most 4 trips of each person a day are counted, chosen at random. Others were left out before anything was measured, so counts and intervals are about the trips that are counted, not about ridership: the true numbers of trips may be higher, and no interval includes that.'
    """
    if not isinstance(unit, Person):
        return ""
    only, each = (
        bounding_text(unit, noun),
        "" if unit.apart is None else f", at most one in each {unit.apart}",
    )
    return (
        f"{only[0].upper()}{only[1:]}, chosen at random{each}. Others were left out before anything was measured, so counts and intervals are about the "
        f"{noun.many} that are counted, not about ridership: the true numbers of {noun.many} may be higher, and no interval includes that."
    )


# What a notebook shows of a release


def release_html(release: Release) -> str:
    """A few lines and the list of tables, in the notebook's own colours."""
    unit = release.promise.unit
    lines = [
        where_and_when(release),
        f"{contents_text(release)}.",
        f"{_capitalised(guarantee_text(release))}.",
        f"{_capitalised(bounding_text(unit, counted_noun(release.features.universe)))}: the true numbers may be higher."
        if isinstance(unit, Person)
        else None,
    ]
    blocks = "".join(f"<div>{html_text(line)}</div>" for line in lines if line)
    return f'<div><div style="font-size:1.2em;font-weight:600">{html_text(title_of(release))}</div>{blocks}{_tables(release)}</div>'


def release_text(release: Release) -> str:
    """The same in three lines, for a terminal."""
    names = ", ".join(map(printable, _published_line(release)))
    setting = where_and_when(release)
    head = f"{title_of(release)} ({setting})" if setting else title_of(release)
    return message(f"{printable(head)}\n{contents_text(release)}; {guarantee_text(release)}\ntables: {names}")


def _published_line(release: Release) -> list[str]:
    return [name for name in release.features.features if name in release.tables or not release.tables]


def _tables(release: Release) -> str:
    features = [release.features.features[name] for name in _published_line(release)]
    columns: dict[str, list[object]] = {
        "table": [f.name for f in features],
        "counts by": [enumerated(f.by) or "all trips together" for f in features],
        "counts": [release.features.size(f.name) for f in features],
        "intervals": [
            _confidence_words(release) if f.name in release.intervals else "none" for f in features
        ],
    }
    return html_table(
        "Tables",
        columns,
        ["counts"],
        list(range(len(features))),
        note='release.table("…") shows one; release.ask(…) answers other questions; release.plot.day(), .flows() and .map() draw',
    )


def _confidence_words(release: Release) -> str:
    return f"{100 * (release.confidence or 0.9):g} %"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
