"""Published trips as flows from place to place, period by period: what all formats of flows are written from.

`flows_of` adds trips up, `with_intervals` adds the ends of their intervals, `place_coordinates` says where places are, and `flow_tables` makes
tables of them. `LocatedFlows` is all of it for formats that draw a line for each flow, which subclass `LineFormat`.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.features import Dimension, Universe
from cbdp.release.ask import why_none
from cbdp.release.export.base import Format, provenance_lines
from cbdp.release.release import Release
from cbdp.release.views import dates_in, ends_of
from cbdp_features.calendar import WEEKDAYS, dates_or_none, day_dimension
from cbdp_features.places import Stops
from cbdp_features.tables import column, text_of

SECONDS_PER_DAY = 86_400
DAY_ORDER = (
    "weekday",
    *WEEKDAYS,
    "weekend",
)  # types of days follow each other in this order, others as they are listed
MAX_PERIODS = 100_000  # combinations of all dimensions but the two ends: each is an object here, and a matrix or a layer elsewhere


@dataclass(frozen=True)
class Period:
    """One combination of the values of all dimensions but origin and destination, and the seconds it lasts."""

    labels: tuple[tuple[str, Hashable], ...]
    begin: int
    end: int

    @property
    def name(self) -> str:
        return " ".join(text_of(label) for _, label in self.labels) or "trips"


@dataclass(frozen=True)
class FlowEnds:
    """Where flows begin and end: the two dimensions, or an attribute of both."""

    origin: str = "origin"
    destination: str = "destination"
    level: str | None = None

    @property
    def attributes(self) -> tuple[str, str]:
        """The attributes that name the places.

        >>> FlowEnds(level="zone").attributes
        ('origin.zone', 'destination.zone')
        """
        ending = "" if self.level is None else f".{self.level}"
        return f"{self.origin}{ending}", f"{self.destination}{ending}"


@dataclass(frozen=True, eq=False)
class Flows:
    """Trips between places, in order of period, origin and destination; one row for each that has any."""

    ends: FlowEnds
    ids: tuple[Hashable, ...]  # of the places: stops or zones
    periods: tuple[Period, ...]
    period: Ints = field(repr=False)
    origin: Ints = field(repr=False)
    destination: Ints = field(repr=False)
    count: Ints = field(repr=False)
    # a row of the published trips that is in each; the only one unless zones were added up
    first: Ints = field(repr=False)
    low: Ints | None = field(default=None, repr=False)  # the ends of the counts' intervals, where asked for
    high: Ints | None = field(default=None, repr=False)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The ids as text; two that would look the same are refused."""
        texts = tuple(text_of(label) for label in self.ids)
        if len(set(texts)) < len(texts):
            twice = next(t for t in texts if texts.count(t) > 1)
            raise InputError(f"two places would both be called {twice!r}: rename one")
        return texts

    @property
    def numbers(self) -> dict[str, Ints]:
        """The count of each flow and, where asked for, the ends of its interval."""
        columns = {"count": self.count, "low": self.low, "high": self.high}
        return {name: values for name, values in columns.items() if values is not None}

    @property
    def used(self) -> Ints:
        """The places where a flow begins or ends."""
        return np.union1d(self.origin, self.destination)

    def by_period(self) -> Iterator[tuple[Period, slice]]:
        """Every period, also those without trips, and its rows."""
        ends = np.searchsorted(self.period, np.arange(len(self.periods) + 1))
        for period, (a, b) in zip(self.periods, itertools.pairwise(ends.tolist()), strict=True):
            yield period, slice(a, b)

    def rows(self, part: slice) -> Iterator[tuple[int, ...]]:
        """Some rows as whole numbers: the places of origin and destination, then `numbers`."""
        columns = (self.origin, self.destination, *self.numbers.values())
        return zip(*(column[part].tolist() for column in columns), strict=True)


def flows_of(
    release: Release,
    *,
    level: str | None = None,
    origin: str | None = None,
    destination: str | None = None,
) -> Flows:
    """The published trips by period, origin and destination (as `ends_of` finds them, unless named); with `level`, between the zones of that attribute."""
    universe = release.features.universe
    names = list(universe.dimensions)
    usual = ends_of(universe) or ("origin", "destination")
    origin, destination = origin or usual[0], destination or usual[1]
    for end in (origin, destination):
        if end not in names:
            raise InputError(
                f"the release has no dimension {end!r} (it has {', '.join(names)}): "
                "this format needs trips from an origin to a destination; name those dimensions with origin and destination"
            )
    codes = dict(zip(names, universe.unrank_codes(release.index), strict=True))
    ends = FlowEnds(origin, destination, level)
    ids, (start, finish) = places_of(universe, ends)
    others = [n for n in names if n not in (origin, destination)]
    number = np.zeros(len(release.index), dtype=np.int64)
    for n in others:
        number = number * len(universe.dimensions[n]) + codes[n]
    columns = (number, start[codes[origin]], finish[codes[destination]])
    listed = _periods({n: universe.dimensions[n] for n in others})
    return Flows(ends, ids, listed, *_summed_rows(columns, release.value))


def places_of(universe: Universe, ends: FlowEnds) -> tuple[tuple[Hashable, ...], tuple[Ints, Ints]]:
    """The ids of all places, and where each value of the two dimensions is among them."""
    for name, end in zip(ends.attributes, (ends.origin, ends.destination), strict=True):
        if name not in universe.attributes or universe.attributes[name].of != (end,):
            raise InputError(
                f"the release has no attribute {name!r} of {end!r}: there are {', '.join(universe.attributes)}"
            )
    first, second = (universe.attributes[name] for name in ends.attributes)
    ids = tuple(dict.fromkeys((*first.labels, *second.labels)))
    place = {label: p for p, label in enumerate(ids)}
    codes = [np.array([place[v] for v in a.labels], dtype=np.int64)[a.codes] for a in (first, second)]
    return ids, (codes[0], codes[1])


def _periods(dimensions: dict[str, Dimension]) -> tuple[Period, ...]:
    if math.prod(len(d) for d in dimensions.values()) > MAX_PERIODS:
        raise InputError(
            f"{' × '.join(dimensions)} make more than {MAX_PERIODS:,} periods, too many for this format: choose another one"
        )
    clock = next((n for n, d in dimensions.items() if d.edges is not None), None)
    days = day_dimension({n: d for n, d in dimensions.items() if n != clock})
    starts = {n: _day_offsets(d, apart=n == days) for n, d in dimensions.items() if n != clock}
    listed = []
    for place in itertools.product(*(range(len(d)) for d in dimensions.values())):
        at = dict(zip(dimensions, place, strict=True))
        edges = dimensions[clock].edges if clock is not None else None
        begin, end = (
            (0, SECONDS_PER_DAY) if clock is None or edges is None else edges[at[clock] : at[clock] + 2]
        )
        later = SECONDS_PER_DAY * sum(first[at[n]] for n, first in starts.items())
        labels = tuple((n, d.values[at[n]]) for n, d in dimensions.items())
        listed.append(Period(labels, begin + later, end + later))
    return tuple(listed)


def _day_offsets(dimension: Dimension, *, apart: bool) -> Sequence[int]:
    """How many days after the first each value is: dates by the calendar, types of days one after the other; else the same day."""
    dates = dates_in(dimension)
    if dates is not None:
        return [(day - min(dates)).days for day in dates]
    if not apart:
        return [0] * len(dimension)
    ordered_types = set(dimension.values) <= set(DAY_ORDER)
    order = (
        sorted(dimension.values, key=lambda v: DAY_ORDER.index(str(v))) if ordered_types else dimension.values
    )
    return [order.index(v) for v in dimension.values]


def _summed_rows(columns: tuple[Ints, Ints, Ints], value: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Rows in order, those alike added up."""
    order = np.lexsort(columns[::-1])
    ordered = [c[order] for c in columns]
    new = np.ones(len(order), dtype=bool)
    if len(order):
        new[1:] = np.any([c[1:] != c[:-1] for c in ordered], axis=0)
    starts = np.flatnonzero(new)
    sums = np.add.reduceat(value[order], starts) if len(starts) else value[:0]
    period, origin, destination = (c[starts] for c in ordered)
    return period, origin, destination, sums, order[starts]


def stop_coordinates(
    release: Release, ends: FlowEnds, places: Stops | None
) -> dict[Hashable, tuple[float, float]]:
    """Longitude and latitude of the stops of both ends, as given or else as published; NaN where there are none.

    Stops that are numbers in the release may be text in a file of places.
    """
    stops = places or release.places
    if stops is None:
        raise InputError(
            "the release has no coordinates: give places=cbdp_features.places.stops(…), or --places FILE"
        )
    listed = dict(zip(stops.ids, zip(stops.lon.tolist(), stops.lat.tolist(), strict=True), strict=True))
    texts = {str(stop): point for stop, point in listed.items()}
    dimensions = release.features.universe.dimensions
    values = [v for name in (ends.origin, ends.destination) for v in dimensions[name].values]
    return {v: listed.get(v) or texts.get(str(v), (np.nan, np.nan)) for v in values}


def place_coordinates(release: Release, flows: Flows, places: Stops | None) -> tuple[Floats, Floats]:
    """Longitude and latitude of each place; of a zone, the mean of its stops'. Those that no trip uses may have none (NaN)."""
    at = stop_coordinates(release, flows.ends, places)
    universe = release.features.universe
    _, ends = places_of(universe, flows.ends)
    stops: dict[tuple[int, str], tuple[float, float]] = {}  # a stop of both ends counts once
    for name, place in zip((flows.ends.origin, flows.ends.destination), ends, strict=True):
        for value, p in zip(universe.dimensions[name].values, place.tolist(), strict=True):
            stops[p, text_of(value)] = at[value]
    points, place_of = np.array(list(stops.values())), np.array([p for p, _ in stops], dtype=np.int64)
    here = ~np.isnan(points).any(axis=1)
    sums = np.zeros((len(flows.ids), 3))
    np.add.at(sums, place_of[here], np.column_stack([points[here], np.ones(here.sum())]))
    lost = flows.used[sums[flows.used, 2] == 0]
    if len(lost):
        raise InputError(
            f"the place {flows.ids[lost[0]]!r} has no coordinates: give its latitude and longitude"
        )
    mean = np.where(sums[:, 2:] > 0, sums[:, :2] / np.maximum(sums[:, 2:], 1), np.nan)
    return mean[:, 0], mean[:, 1]


def labels_at(release: Release, attribute: str, rows: Ints) -> list[Hashable] | None:
    """The labels that some rows of the published trips have of an attribute; None if there is no such attribute."""
    universe = release.features.universe
    if attribute not in universe.attributes:
        return None
    values = universe.attributes[attribute]
    codes = dict(zip(universe.dimensions, universe.unrank_codes(release.index[rows]), strict=True))
    return [values.labels[c] for c in values.codes[tuple(codes[d] for d in values.of)].tolist()]


# Flows with the intervals of their counts: what `release.ask` answers, in the order of flows


def with_intervals(release: Release, flows: Flows, confidence: float | None, *, zeros: bool = False) -> Flows:
    """The flows with the ends of their intervals; with `zeros`, also those that have no published trips. None: as they are."""
    if confidence is None:
        return flows
    if release.tables:
        raise InputError(
            "the tables of this release were published one by one and do not add up, so flows have no intervals: export without"
        )
    dimensions = release.features.universe.dimensions
    others = [n for n in dimensions if n not in (flows.ends.origin, flows.ends.destination)]
    ends = flows.ends.attributes
    answer = release.ask(by=[*ends, *others], confidence=confidence)
    missing = int(np.isnan(answer.numbers["low"]).sum())
    if missing:
        why = why_none(release, missing, len(answer))
        raise InputError(f"{why} Export without intervals, or at a level that was measured.")
    labels = answer.labels.columns()
    start, finish = (_flow_codes(labels[end], flows.ids) for end in ends)
    period = np.zeros(len(start), dtype=np.int64)
    for name in others:
        period = period * len(dimensions[name]) + _flow_codes(labels[name], dimensions[name].values)
    kept = np.flatnonzero((answer.numbers["count"] > 0) | zeros)
    order = kept[np.lexsort((finish[kept], start[kept], period[kept]))]
    count, low, high = (answer.numbers[name][order].astype(np.int64) for name in ("count", "low", "high"))
    return Flows(
        flows.ends,
        flows.ids,
        flows.periods,
        period[order],
        start[order],
        finish[order],
        count,
        first=np.full(len(order), -1),
        low=low,
        high=high,
    )


def _flow_codes(labels: Sequence[Hashable], listed: Sequence[Hashable]) -> Ints:
    place = {label: p for p, label in enumerate(listed)}
    return np.array([place[label] for label in labels], dtype=np.int64)


# Flows as a table: origin, destination, every other dimension, count and, where asked for, low and high


ROWS_PER_BLOCK = 2**18  # flows that are in memory as a table at once


def flow_tables(flows: Flows, taken: Iterable[str] = ()) -> Iterator[tuple[slice, pa.Table]]:
    """The flows by the block, and which rows these are; at least one block. `taken` are columns that the format has itself."""
    places = column(flows.ids)
    periods = _period_labels(flows, taken)
    for start in range(0, max(1, len(flows.count)), ROWS_PER_BLOCK):
        rows = slice(start, start + ROWS_PER_BLOCK)
        columns = {
            "origin": places.take(pa.array(flows.origin[rows])),
            "destination": places.take(pa.array(flows.destination[rows])),
            **{name: labels.take(pa.array(flows.period[rows])) for name, labels in periods.items()},
            **{name: pa.array(values[rows]) for name, values in flows.numbers.items()},
        }
        yield rows, pa.table(columns)


def other_dimensions(flows: Flows, taken: Iterable[str]) -> list[str]:
    """The dimensions beside origin and destination; none may be called as a column that the format has itself."""
    names = [name for name, _ in flows.periods[0].labels]
    reserved = {"origin", "destination", "count", "low", "high", *taken}
    for name in names:
        if name.lower() in reserved:
            raise InputError(f"a dimension is called {name!r}, as a column of this format is: rename it")
    return names


def _period_labels(flows: Flows, taken: Iterable[str]) -> dict[str, pa.Array]:
    """The label of every period in each of the other dimensions."""
    labels_by_name: dict[str, list[Hashable]] = {name: [] for name in other_dimensions(flows, taken)}
    for period in flows.periods:
        for name, label in period.labels:
            labels_by_name[name].append(label)
    return {name: column(labels) for name, labels in labels_by_name.items()}


# Flows as lines: with the coordinates and names of their places and the dates of their periods


WKB_HEADS = {1: np.array([1, 1, 0, 0, 0], np.uint8), 2: np.array([1, 2, 0, 0, 0, 2, 0, 0, 0], np.uint8)}


def wkb(*points: tuple[Floats, Floats]) -> pa.Array:
    """Points, or lines of two points, in well-known binary (OGC 06-103r4): little-endian, kind 1 or 2, the number of points of a line.

    >>> [shape.hex() for shape in wkb((np.array([1.0]), np.array([0.5]))).to_pylist()]
    ['0101000000000000000000f03f000000000000e03f']
    """
    head = WKB_HEADS[len(points)]
    numbers = np.column_stack([axis for point in points for axis in point]).astype("<f8")
    shapes = np.hstack([np.tile(head, (len(numbers), 1)), numbers.view(np.uint8)])
    fixed = pa.binary(shapes.shape[1])
    return pa.Array.from_buffers(fixed, len(shapes), [None, pa.py_buffer(shapes.tobytes())]).cast(pa.binary())


@dataclass(frozen=True, eq=False)
class LocatedFlows:
    """The flows of a release and where their places are: what formats that draw lines are written from."""

    release: Release = field(repr=False)
    flows: Flows
    lon: Floats = field(repr=False)  # of each place; NaN: unknown, of places that no trip uses
    lat: Floats = field(repr=False)
    stops: Stops | None = field(default=None, repr=False)

    @property
    def located(self) -> Ints:
        """The places that have coordinates."""
        return np.flatnonzero(np.isfinite(self.lon))

    @property
    def place_names(self) -> list[str]:
        """What people call each place."""
        stops = self.stops or self.release.places
        names = {} if stops is None else dict(zip(map(text_of, stops.ids), stops.names, strict=True))
        return [names.get(text, text) for text in self.flows.texts]

    def tables(self, geometry: str, taken: Iterable[str] = ()) -> Iterator[pa.Table]:
        """The flows by the block, with a column of lines."""
        for rows, table in flow_tables(self.flows, [geometry, *taken]):
            ends = (
                (self.lon[at[rows]], self.lat[at[rows]]) for at in (self.flows.origin, self.flows.destination)
            )
            yield table.append_column(geometry, wkb(*ends))

    @cached_property
    def has_times(self) -> bool:
        """Whether periods differ in when they begin: a slider has something to slide over."""
        return len({period.begin for period in self.flows.periods}) > 1

    @cached_property
    def first_day(self) -> tuple[dt.date, bool]:
        return first_day(self.release)

    def begins(self, period: Period) -> list[str]:
        """The column of when a period begins, where there is any."""
        return [period_begin(period, self.first_day[0])] if self.has_times else []

    def title_and_description(self, *fields: str) -> tuple[str, str]:
        """What the release says of itself in two lines, for formats that hold nothing else; `fields` are said elsewhere."""
        lines = provenance_lines(self.release)
        title = lines.pop("title", "Published trips")
        sentences = [f"{name}: {line}" for name, line in lines.items() if name not in fields]
        if self.has_times and not self.first_day[1]:
            sentences.append("the dates are stand-ins, only the time of day is that of the trips")
        return title, "; ".join(sentences)


class LineFormat(Format):
    """A format that draws a line for each flow. Subclass it, set the class data, implement `write_lines`."""

    def write(
        self,
        release: Release,
        path: Path,
        *,
        places: Stops | None = None,
        level: str | None = None,
        intervals: float | None = None,
        origin: str | None = None,
        destination: str | None = None,
    ) -> None:
        """Write the flows from place to place; with `intervals` (a confidence, say 0.9), with low and high of each count."""
        flows = flows_of(release, level=level, origin=origin, destination=destination)
        flows = with_intervals(release, flows, intervals)
        self.write_lines(
            LocatedFlows(release, flows, *place_coordinates(release, flows, places), places), path
        )

    def write_lines(self, drawn: LocatedFlows, path: Path) -> None:
        """Write these flows to a path that does not exist, with what the release says of itself."""
        raise NotImplementedError


# When a period begins, as date and time: what programs with a time slider want


STAND_IN_DATE = dt.date(2001, 1, 1)  # a Monday that nobody takes for the day of the trips


def first_day(release: Release) -> tuple[dt.date, bool]:
    """The day that periods are counted from, and whether it is that of the trips: a stand-in is used where no date is published."""
    for dimension in release.features.universe.dimensions.values():
        days = dates_or_none(dimension)
        if days is not None:
            return min(days), True
    for span in (release.series, None if release.about is None else release.about.period):
        if span is not None and not isinstance(span, str) and span.first == span.last:
            return span.first, True
    return STAND_IN_DATE, False


def period_begin(period: Period, day: dt.date) -> str:
    """The beginning of a period.

    >>> period_begin(Period((), 30_600, 32_400), dt.date(2026, 3, 2))
    '2026-03-02 08:30:00'
    """
    moment = dt.datetime.combine(day, dt.time()) + dt.timedelta(seconds=period.begin)
    return moment.isoformat(sep=" ")
