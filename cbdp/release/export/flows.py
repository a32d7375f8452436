"""Published trips as flows from place to place, period by period."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.features import Dimension, Universe
from cbdp.release.ask import why_none
from cbdp.release.periods import days_in
from cbdp.release.release import Release
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

    def by_period(self) -> Iterator[tuple[Period, slice]]:
        """Every period, also those without trips, and its rows."""
        ends = np.searchsorted(self.period, np.arange(len(self.periods) + 1))
        for period, (a, b) in zip(self.periods, itertools.pairwise(ends.tolist()), strict=True):
            yield period, slice(a, b)


def flows_of(
    release: Release,
    *,
    level: str | None = None,
    origin: str = "origin",
    destination: str = "destination",
) -> Flows:
    """The published trips by period, origin and destination; with `level`, between the zones of that attribute."""
    universe = release.features.universe
    names = list(universe.dimensions)
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
    dates = days_in(dimension)
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


def stop_coordinates(release: Release, places: Stops | None) -> dict[Hashable, tuple[float, float]]:
    """Longitude and latitude of the stops, as given or else as published; NaN where there are none."""
    stops = places or release.places
    if stops is None:
        raise InputError(
            "the release has no coordinates: give places=cbdp_features.places.stops(…), or --places FILE"
        )
    return dict(zip(stops.ids, zip(stops.lon.tolist(), stops.lat.tolist(), strict=True), strict=True))


def place_coordinates(release: Release, flows: Flows, places: Stops | None) -> tuple[Floats, Floats]:
    """Longitude and latitude of each place; of a zone, the mean of its stops'. Those that no trip uses may have none (NaN)."""
    at = stop_coordinates(release, places)
    universe = release.features.universe
    _, ends = places_of(universe, flows.ends)
    sums = np.zeros((len(flows.ids), 3))
    for name, place in zip((flows.ends.origin, flows.ends.destination), ends, strict=True):
        points = np.array([at.get(v, (np.nan, np.nan)) for v in universe.dimensions[name].values])
        here = ~np.isnan(points).any(axis=1)
        np.add.at(sums, place[here], np.column_stack([points[here], np.ones(here.sum())]))
    used = np.union1d(flows.origin, flows.destination)
    lost = used[sums[used, 2] == 0]
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


def drawn_flows(
    release: Release, places: Stops | None, level: str | None, confidence: float | None, ends: tuple[str, str]
) -> tuple[Flows, Floats, Floats]:
    """What formats that draw lines need: the flows, with intervals if wanted, and the longitude and latitude of each place."""
    flows = flows_of(release, level=level, origin=ends[0], destination=ends[1])
    flows = with_intervals(release, flows, confidence)
    return flows, *place_coordinates(release, flows, places)


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
    asked = release.ask(by=[*ends, *others], confidence=confidence)
    answer: dict[str, Any] = dict(asked)
    missing = int(np.isnan(answer["low"]).sum())
    if missing:
        why = why_none(release, missing, len(answer["low"]))
        raise InputError(f"{why} Export without intervals, or at a level that was measured.")
    start, finish = (_flow_codes(answer[end], flows.ids) for end in ends)
    period = np.zeros(len(start), dtype=np.int64)
    for name in others:
        period = period * len(dimensions[name]) + _flow_codes(answer[name], dimensions[name].values)
    kept = np.flatnonzero((answer["count"] > 0) | zeros)
    order = kept[np.lexsort((finish[kept], start[kept], period[kept]))]
    columns = (period, start, finish, answer["count"], answer["low"], answer["high"])
    number, o, d, count, low, high = (np.asarray(c, dtype=np.int64)[order] for c in columns)
    return replace(
        flows,
        period=number,
        origin=o,
        destination=d,
        count=count,
        low=low,
        high=high,
        first=np.full(len(order), -1),
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
        numbers = {"count": flows.count, "low": flows.low, "high": flows.high}
        yield (
            rows,
            pa.table(
                {
                    "origin": places.take(pa.array(flows.origin[rows])),
                    "destination": places.take(pa.array(flows.destination[rows])),
                    **{name: labels.take(pa.array(flows.period[rows])) for name, labels in periods.items()},
                    **{
                        name: pa.array(values[rows]) for name, values in numbers.items() if values is not None
                    },
                }
            ),
        )


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


def decoded_table(table: pa.Table) -> pa.Table:
    """Codes into lists of labels as the labels themselves."""
    for place, entry in enumerate(table.schema):
        if pa.types.is_dictionary(entry.type):
            table = table.set_column(place, entry.name, table[place].cast(entry.type.value_type))
    return table


def wkb_lines(lon: Floats, lat: Floats, flows: Flows, rows: slice) -> NDArray[Any]:
    """Each flow as a line of two points in well-known binary (OGC 06-103r4), little-endian: 41 bytes."""
    form = [
        ("order", "u1"),
        ("kind", "<u4"),
        ("points", "<u4"),
        *((end, "<f8") for end in ("x0", "y0", "x1", "y1")),
    ]
    shapes = np.zeros(len(flows.origin[rows]), dtype=form)
    shapes["order"], shapes["kind"], shapes["points"] = 1, 2, 2
    for k, end in enumerate((flows.origin[rows], flows.destination[rows])):
        shapes[f"x{k}"], shapes[f"y{k}"] = lon[end], lat[end]
    return shapes


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


def has_times(periods: tuple[Period, ...]) -> bool:
    """Whether periods differ in when they begin: a slider has something to slide over."""
    return len({period.begin for period in periods}) > 1


def period_begin(period: Period, day: dt.date) -> str:
    """The beginning of a period.

    >>> period_begin(Period((), 30_600, 32_400), dt.date(2026, 3, 2))
    '2026-03-02 08:30:00'
    """
    moment = dt.datetime.combine(day, dt.time()) + dt.timedelta(seconds=period.begin)
    return moment.isoformat(sep=" ")
