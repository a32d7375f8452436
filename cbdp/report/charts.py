"""The charts of the report: what each shows, as plain numbers embedded once in the page, and the words around them (who travels where, when and how,
and what can be chosen). The page's script draws them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import EllipsisType
from typing import Any

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.features import SINGLETON
from cbdp.numbers import confidence_text, percent
from cbdp.release.views import (
    MAX_INTERVALS,
    PLACE_NAMES,
    Frame,
    GroupedCounts,
    Published,
    Roles,
    calendar_order,
    counted_noun,
    is_single_day,
    map_frame,
    period_names,
    roles,
    stop_totals,
)
from cbdp.report.reliability import attribute_words, reliability_of, supported
from cbdp_features.places import Stops
from cbdp_features.universe import Dimension

Chart = dict[str, Any]
StopRow = tuple[str, str, float | None, float | None, int]  # label, name, latitude, longitude, zone
ZoneRow = tuple[str, float | None, float | None]  # name, and the middle of its stops
StopPosition = tuple[str, float | None, float | None, int]  # name, latitude, longitude, zone
# what one page can show and hold: the data of all charts stand in it
MAX_MATRIX_LINES = 40  # rows and columns of a matrix
MAX_MATRIX_CELLS = 100_000  # cells of all matrices of a chart together
MAX_PERIODS = 200  # periods that can be chosen
MAX_CURVES = 6  # curves in one chart
MAX_FLOWS = 150  # flows of all periods together
MAX_FLOWS_PER_PERIOD = 60  # flows of each period
MAX_FLOWS_OF_PERIODS = 2_000  # flows of the single periods in all, about
MAX_TRIP_TYPES = 200  # trip types listed
MAX_DOT_COUNTS = 100_000  # counts of the dots of all periods together
MAX_STOPS_DRAWN = 1_500  # stops on the map
NUMBERED_ZONE = re.compile(r"Z\d+")  # zones that were made from coordinates


def chart_data(published: Published) -> Chart:
    """The data of all charts. `periods` names the choices: the first is all of them together."""
    parts = roles(published.dag)
    dimensions, noun = published.dag.universe.dimensions, counted_noun(published.dag.universe)
    sliced = parts.time is not None and 1 < len(dimensions[parts.time]) <= MAX_PERIODS
    names = period_names(dimensions[parts.time]) if parts.time is not None and sliced else []
    time = parts.time if sliced else None
    return {
        "confidence": round(100 * published.confidence, 4),
        "noun": [noun.one, noun.many],
        "total": total_trips(published),
        "periods": [_all_periods_label(published, parts), *names],
        "demand": demand_chart(published, parts),
        "matrix": matrix_chart(published, parts, time),
        "shares": [shares_chart(published, name, time) for name in parts.shares],
        "flows": flows_chart(published, parts, time),
        "dots": dots_chart(published, parts, time),
        "types": None if parts.ends else types_chart(published),
    }


def total_trips(published: Published) -> int:
    """The trips of the coarsest table."""
    return int(published.grouped().counts)


def _all_periods_label(published: Published, parts: Roles) -> str:
    if parts.time is None:
        return "everything"
    dimension = published.dag.universe.dimension(parts.time)
    if len(dimension) == 1:
        return period_names(dimension)[0]
    if dimension.edges is None:
        return "all periods"
    return "all day" if is_single_day(published.release) else "all times"


def demand_chart(published: Published, parts: Roles) -> Chart | None:
    """Trips by period: one curve, or one for each value of what the published table by time distinguishes."""
    if parts.time is None:
        return None
    dimension = published.dag.universe.dimension(parts.time)
    whole = published.grouped(parts.time)
    split = None if whole.tabled else _curve_attribute(published, parts.time)
    chart: Chart = {
        "by": split,
        "time": parts.time,
        "labels": [str(v) for v in dimension.values],
        "names": period_names(dimension),
        "of_day": dimension.edges is not None,
    }
    if split is None:
        return {**chart, "series": [{"label": "", **_type_interval_ends(whole)}], "exact": whole.exact}
    apart = published.grouped(split, parts.time)
    labels = published.labels(split)
    order = _by_calendar(list(range(len(labels))), labels)
    rows = [{"label": labels[row], **_type_interval_ends(apart, row)} for row in order]
    return {**chart, "series": rows, "exact": apart.exact}


def _curve_attribute(published: Published, time: str) -> str | None:
    """The attribute that a table of two groups by beside the time, if it has few values."""
    for feature in published.dag.features.values():
        others = [name for name in feature.by if name != time]
        if time in feature.by and len(others) == 1 and published.label_count(others[0]) <= MAX_CURVES:
            return others[0]
    return None


def matrix_chart(published: Published, parts: Roles, time: str | None) -> Chart | None:
    """Trips from row to column: zones, stops where there are few, or whatever two things are counted."""
    pair, kind = _matrix_attributes(published, parts)
    if pair is None:
        return None
    per_period = time if time not in pair else None
    whole = published.grouped(*pair)
    chosen = _largest(whole.counts, same=kind != "other")
    rows, columns = (_by_calendar(c, published.labels(name)) for c, name in zip(chosen, pair, strict=True))
    periods = 0 if per_period is None else published.label_count(per_period)
    if (periods + 1) * len(rows) * len(columns) > MAX_MATRIX_CELLS:
        periods = 0
    chart: Chart = {
        "kind": kind,
        "row": pair[0],
        "column": pair[1],
        "rows": [display_labels(published, pair[0])[r] for r in rows],
        "columns": [display_labels(published, pair[1])[c] for c in columns],
        "timed": parts.time in pair,
        "of": list(whole.counts.shape),
        "exact": whole.exact,
        "exact_each": False,
        "cells": [_cells(whole, rows, columns)],
    }
    if periods and per_period is not None:
        each = published.grouped(*pair, per_period)
        chart["exact_each"] = each.exact
        chart["cells"] += [_cells(each, rows, columns, t) for t in range(periods)]
    return chart


def _matrix_attributes(published: Published, parts: Roles) -> tuple[tuple[str, str] | None, str]:
    if parts.zones is not None and _listable(published, parts.zones):
        return parts.zones, "zones"
    if parts.ends is not None:
        few = max(published.label_count(end) for end in parts.ends) <= 2 * MAX_MATRIX_LINES
        return (parts.ends, "stops") if few else (None, "")
    dimensions = [n for n in published.dag.universe.dimensions if n != parts.time]
    dimensions.sort(key=lambda name: -published.label_count(name))
    both = [*dimensions[:1], *([parts.time] if parts.time else dimensions[1:2])]
    if len(both) == 2 and _listable(published, (both[0], both[1])):
        return (both[0], both[1]), "other"
    return None, ""


def _listable(published: Published, pair: tuple[str, str]) -> bool:
    return math.prod(published.label_count(name) for name in pair) <= 2**22


def _largest(counts: Ints, *, same: bool) -> tuple[list[int], list[int]]:
    """The rows and the columns with the most trips, in their own order; of zones the same for both. Rows out of many: the largest first."""
    by_row, by_column = counts.sum(axis=1), counts.sum(axis=0)
    if same and len(by_row) == len(by_column):
        by_row = by_column = by_row + by_column
    wide = MAX_MATRIX_LINES if same else 3 * MAX_MATRIX_LINES  # times of the day stay together
    rows = _largest_indices(by_row, MAX_MATRIX_LINES)
    if not same and len(rows) < len(by_row):
        rows.sort(key=lambda row: -by_row[row])
    return rows, _largest_indices(by_column, wide)


def _largest_indices(counts: Ints, most: int) -> list[int]:
    return sorted(np.argsort(-counts, kind="stable")[:most].tolist())


def _by_calendar(chosen: list[int], labels: list[str]) -> list[int]:
    """Days as a calendar has them; other labels in their own order."""
    order = calendar_order([labels[c] for c in chosen])
    return chosen if order is None else [chosen[place] for place in order]


def _cells(grouped: GroupedCounts, rows: list[int], columns: list[int], period: int | None = None) -> Chart:
    chosen = np.ix_(rows, columns) if period is None else np.ix_(rows, columns, [period])
    never = None if grouped.possible is None else ~grouped.possible[chosen]
    cells = {
        "count": _ints(
            np.where(never, -1, grouped.counts[chosen]) if never is not None else grouped.counts[chosen]
        )
    }
    if grouped.low is not None and grouped.high is not None:
        cells |= {"low": _ints(grouped.low[chosen]), "high": _ints(grouped.high[chosen])}
    return cells


def shares_chart(published: Published, attribute: str, time: str | None) -> Chart:
    """Trips by one attribute, in all and by period where a table has both."""
    whole = published.grouped(attribute)
    most = int(np.argmax(whole.counts))
    labels = published.labels(attribute)
    ordered = calendar_order(labels)
    chart: Chart = {
        "name": attribute,
        "order": ordered,  # of days as a calendar has them; None: the largest first
        "guess": not supported(published, (attribute,), most, int(whole.counts[most])),
        "labels": display_labels(published, attribute),
        "exact": whole.exact,
        "exact_each": False,
        "bars": [_type_interval_ends(whole)],
    }
    if time is not None:
        each = published.grouped(attribute, time)
        chart["exact_each"] = each.exact
        chart["bars"] += [_type_interval_ends(each, (slice(None), t)) for t in range(each.counts.shape[1])]
    return chart


def flows_chart(published: Published, parts: Roles, time: str | None) -> Chart | None:
    """The largest flows between stops, in all and by period, and where stops and zones lie."""
    if parts.ends is None:
        return None
    universe, release = published.dag.universe, published.release
    codes = dict(zip(universe.dimensions, universe.unrank_codes(release.index), strict=True))
    first, second = (universe.dimension(end) for end in parts.ends)
    nodes = Nodes(published.places, first, second, published, parts)
    pair = codes[parts.ends[0]] * len(second) + codes[parts.ends[1]]
    listed = [_largest_pairs(pair, release.value, MAX_FLOWS)]
    each = MAX_FLOWS_PER_PERIOD
    if time is not None:
        each = max(10, min(MAX_FLOWS_PER_PERIOD, MAX_FLOWS_OF_PERIODS // published.label_count(time)))
        order = np.argsort(codes[time], kind="stable")
        ends = np.searchsorted(codes[time][order], np.arange(len(universe.dimension(time)) + 1))
        groups = (order[a:b] for a, b in pairwise(ends))
        listed += [_largest_pairs(pair[g], release.value[g], each) for g in groups]
    triples = [
        [[nodes.first(o), nodes.second(d), n] for o, d, n in _split_pairs(largest, len(second))]
        for largest in listed
    ]
    chart: Chart = {
        "most": MAX_FLOWS,
        "most_each": each,
        "unsure": _sums_only(published, parts),
        "flows": triples,
        **_flow_ends(published, parts.ends, time, [largest[0] for largest in listed]),
    }
    nodes.fill(codes, parts, release.value)
    stops = stop_totals(published)
    shown = map_frame(stops.lat, stops.lon, stops.trips)
    zones = nodes.zones(shown)
    spots = [(name, lat, lon, zone) for _, name, lat, lon, zone in nodes.listed]
    parts_of_map = {"stops": nodes.listed, "zones": [list(zone) for zone in zones], "hidden": nodes.hidden}
    return {
        **chart,
        **parts_of_map,
        "called": zone_labels([z[0] for z in zones], spots),
        **_frame_fields(shown),
    }


def _frame_fields(shown: Frame | None) -> Chart:
    """The part of the map with the trips, and what lies far outside of it."""
    if shown is None:
        return {"frame": None, "outside": 0, "outside_share": 0}
    corners = [round(c, 6) for c in (shown.south, shown.west, shown.north, shown.east)]
    return {"frame": corners, "outside": shown.outside, "outside_share": shown.share}


def _sums_only(published: Published, parts: Roles) -> bool:
    """Whether single flows between stops are good for sums only: by the verdict on a table of them, or of the trip types that they add up."""
    pair_features = [
        n for n, f in published.dag.features.items() if f.by and set(f.by) == set(parts.ends or ())
    ]
    return reliability_of(published, next(iter(pair_features), SINGLETON)).sums_only


def _largest_pairs(pair: Ints, value: Ints, most: int) -> tuple[Ints, Ints]:
    distinct, place = np.unique(pair, return_inverse=True)
    counts = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(counts, place, value)
    order = np.lexsort((distinct, -counts))[:most]
    return distinct[order], counts[order]


def _split_pairs(counted_pairs: tuple[Ints, Ints], wide: int) -> list[tuple[int, int, int]]:
    return [
        (pair // wide, pair % wide, n)
        for pair, n in zip(counted_pairs[0].tolist(), counted_pairs[1].tolist(), strict=True)
    ]


def _flow_ends(
    published: Published, ends: tuple[str, str], time: str | None, pairs: list[Ints]
) -> dict[str, list[list[int]]]:
    """The ends of the flows' intervals, of all periods together and of each; nothing where these very counts have none."""
    size = published.label_count(ends[0]) * published.label_count(ends[1])
    if size > MAX_INTERVALS:
        return {}
    whole = published.grouped(*ends)
    each = (
        published.grouped(*ends, time)
        if time is not None and size * published.label_count(time) <= MAX_INTERVALS
        else None
    )
    low, high = [_interval_ends(whole, pairs[0])], [_interval_ends(whole, pairs[0], high=True)]
    for period, listed in enumerate(pairs[1:]):
        low.append([] if each is None else _interval_ends(each, listed, period))
        high.append([] if each is None else _interval_ends(each, listed, period, high=True))
    return {"low": low, "high": high} if any(low) else {}


def _interval_ends(
    grouped: GroupedCounts, pairs: Ints, period: int | None = None, *, high: bool = False
) -> list[int]:
    """One end of the intervals of these pairs, numbered along both axes; none where they are but ranges."""
    ends = grouped.high if high else grouped.low
    if ends is None or not grouped.exact:
        return []
    shown = ends if period is None else ends[..., period]
    return _ints(shown.reshape(-1)[pairs])


def types_chart(published: Published) -> Chart:
    """The trip types with the most trips, where these do not lead from one place to another."""
    universe, release = published.dag.universe, published.release
    order = np.lexsort((release.index, -release.value))[:MAX_TRIP_TYPES]
    codes = universe.unrank_codes(release.index[order])
    many = [len(d) > 1 for d in universe.dimensions.values()]
    kept = [n for n, several in zip(universe.dimensions, many, strict=True) if several or not any(many)]
    place = dict(zip(universe.dimensions, codes, strict=True))
    columns = [[display_labels(published, n)[c] for c in place[n].tolist()] for n in kept]
    chart: Chart = {"columns": kept, "values": columns, "count": _ints(release.value[order])}
    if universe.size <= MAX_INTERVALS and not release.tables:
        grouped = published.grouped(*universe.dimensions)
        if grouped.exact and grouped.low is not None and grouped.high is not None:
            chart |= {"low": _ints(grouped.low[tuple(codes)]), "high": _ints(grouped.high[tuple(codes)])}
    return chart


def _type_interval_ends(
    grouped: GroupedCounts, chosen: int | tuple[slice, int] | EllipsisType = ...
) -> Chart:
    chart: Chart = {"count": _ints(grouped.counts[chosen])}
    if grouped.low is not None and grouped.high is not None:
        chart |= {"low": _ints(grouped.low[chosen]), "high": _ints(grouped.high[chosen])}
    return chart


def _ints(numbers: Ints | Floats) -> list[int]:
    return [int(n) for n in np.asarray(numbers).reshape(-1)]


# Where taps are made: a dot for every stop. For universes with one place, where no arrow can be drawn


def dots_chart(published: Published, parts: Roles, time: str | None) -> Chart | None:
    """Stops with their names and places, and their counts in all and by period; None where no place is known."""
    place = next((n for n in published.dag.universe.dimensions if n in PLACE_NAMES), None)
    if parts.ends is not None or place is None or published.places is None:
        return None
    where = {str(stop): i for i, stop in enumerate(published.places.ids)}
    at = [where.get(label) for label in published.labels(place)]
    lat, lon = (
        np.array([np.nan if i is None else float(coordinates[i]) for i in at])
        for coordinates in (published.places.lat, published.places.lon)
    )
    whole = published.grouped(place)
    shown = map_frame(lat, lon, whole.counts.astype(np.float64))
    if shown is None:
        return None
    kept = np.flatnonzero(shown.holds(lat, lon))
    each = None
    if time is not None and len(kept) * published.label_count(time) <= MAX_DOT_COUNTS:
        each = published.grouped(place, time)
    periods = range(0 if each is None else each.counts.shape[1])
    names, (zones, zone) = display_labels(published, place), _dot_zones(published, place)
    stops = [(names[i], round(float(lat[i]), 6), round(float(lon[i]), 6), zone[i]) for i in kept.tolist()]
    return {
        "stops": [list(stop) for stop in stops],
        "zones": zones,
        "called": zone_labels(zones, stops),
        "counts": [
            _dot_interval_ends(whole, kept),
            *(_dot_interval_ends(each, (kept, t)) for t in periods if each is not None),
        ],
        "exact": whole.exact,
        "exact_each": each is not None and each.exact,
        "frame": [round(c, 6) for c in (shown.south, shown.west, shown.north, shown.east)],
        "outside": shown.outside,
        "outside_share": shown.share,
    }


def _dot_zones(published: Published, place: str) -> tuple[list[str], list[int]]:
    """The zones of the stops, where the universe has them, and each stop's."""
    attribute = published.dag.universe.attributes.get(f"{place}.zone")
    if attribute is None:
        return [], [-1] * published.label_count(place)
    return [str(label) for label in attribute.labels], attribute.codes.tolist()


def _dot_interval_ends(grouped: GroupedCounts, chosen: Ints | tuple[Ints, int]) -> Chart:
    chart = {"count": grouped.counts[chosen].tolist()}
    if grouped.low is not None and grouped.high is not None:
        chart |= {"low": grouped.low[chosen].tolist(), "high": grouped.high[chosen].tolist()}
    return chart


# The stops and zones of the map: each once, with its name and where it is


class Nodes:
    """Stops in the order they are first needed: label, name, latitude, longitude (None if unknown) and zone."""

    def __init__(
        self, places: Stops | None, first: Dimension, second: Dimension, published: Published, parts: Roles
    ) -> None:
        self._place: dict[Hashable, int] = {}
        self._stops = places
        self._where = {} if places is None else {stop: i for i, stop in enumerate(places.ids)}
        self._texts = {str(stop): i for stop, i in self._where.items()}
        self._values = (first.values, second.values)
        self._zone: dict[Hashable, int] = {}
        self._zones: list[str] = []
        self.listed: list[StopRow] = []
        self.hidden = 0
        self._find_zones(published, parts)

    def _find_zones(self, published: Published, parts: Roles) -> None:
        universe = published.dag.universe
        if parts.zones is not None:
            names: dict[str, int] = {}
            for values, attribute in zip(self._values, parts.zones, strict=True):
                a = universe.attribute(attribute)
                for value, code in zip(values, a.codes.tolist(), strict=True):
                    self._zone[value] = names.setdefault(str(a.labels[code]), len(names))
            order = sorted(names)
            place = {names[name]: i for i, name in enumerate(order)}
            self._zone = {value: place[z] for value, z in self._zone.items()}
            self._zones = order
        elif self._stops is not None and self._stops.zone is not None:
            self._zones = sorted(set(self._stops.zone))
            place_of = {name: i for i, name in enumerate(self._zones)}
            self._zone = {s: place_of[z] for s, z in zip(self._stops.ids, self._stops.zone, strict=True)}

    def first(self, code: int) -> int:
        return self._node(self._values[0][code])

    def second(self, code: int) -> int:
        return self._node(self._values[1][code])

    def _node(self, value: Hashable) -> int:
        if value not in self._place:
            self._place[value] = len(self.listed)
            name, lat, lon = self._at(value)
            self.listed.append((str(value), name, lat, lon, self._zone.get(value, -1)))
        return self._place[value]

    def _at(self, value: Hashable) -> tuple[str, float | None, float | None]:
        where = self._where.get(value, self._texts.get(str(value)))
        if self._stops is None or where is None:
            return str(value), None, None
        lat, lon = float(self._stops.lat[where]), float(self._stops.lon[where])
        name = self._stops.names[where]
        return (name, None, None) if math.isnan(lat) else (name, round(lat, 6), round(lon, 6))

    def fill(self, codes: Mapping[str, Ints], parts: Roles, value: Ints) -> None:
        """The other stops for the map, those with the most trips first, as long as there is room."""
        if self._stops is None or parts.ends is None:
            return
        seen: dict[Hashable, int] = {}
        for values, end in zip(self._values, parts.ends, strict=True):
            trips = np.bincount(codes[end], value, len(values)) if len(value) else np.zeros(len(values))
            for stop, n in zip(values, trips.tolist(), strict=True):
                seen[stop] = seen.get(stop, 0) + int(n)
        for stop in sorted(seen, key=lambda s: -seen[s]):
            if len(self.listed) < MAX_STOPS_DRAWN:
                self._node(stop)
        self.hidden = len(seen) - len(self._place)

    def zones(self, shown: Frame | None) -> list[ZoneRow]:
        """Each zone's name and the middle of its stops: of those that the map shows, if it shows any."""
        points: dict[int, list[tuple[float, float]]] = {}
        for stop, zone in self._zone.items():
            _, lat, lon = self._at(stop)
            if lat is not None and lon is not None:
                points.setdefault(zone, []).append((lat, lon))
        middle = {z: _middle(np.array(stops), shown) for z, stops in points.items()}
        return [(name, *middle.get(z, (None, None))) for z, name in enumerate(self._zones)]


def _middle(points: Floats, shown: Frame | None) -> tuple[float, float]:
    inside = np.zeros(len(points), dtype=bool) if shown is None else shown.holds(points[:, 0], points[:, 1])
    kept = points[inside] if inside.any() else points
    lat, lon = kept.mean(axis=0)
    return round(float(lat), 6), round(float(lon), 6)


def zone_labels(zones: Sequence[str], stops: Iterable[StopPosition]) -> list[str]:
    """What to call zones for readers: to one that has a number alone, the stop in its middle is added.

    >>> zone_labels(["Z1", "Old town"], [("A", 0, 0, 0), ("B", 0, 1, 0), ("C", 0, 3, 0), ("D", 9, 9, 1)])
    ['Z1 around B', 'Old town']
    """
    stops_by_zone: dict[int, list[tuple[str, float, float]]] = {}
    for name, lat, lon, zone in stops:
        if lat is not None and lon is not None:
            stops_by_zone.setdefault(zone, []).append((name, lat, lon))
    return [
        f"{zone} around {_medoid(stops_by_zone[n])}"
        if n in stops_by_zone and NUMBERED_ZONE.fullmatch(zone)
        else zone
        for n, zone in enumerate(zones)
    ]


def _medoid(stops: list[tuple[str, float, float]]) -> str:
    """The stop that is nearest to the middle of all; of several as near, the first by its name."""
    points = np.array([stop[1:] for stop in stops])
    off = (points - points.mean(axis=0)) * [1.0, math.cos(math.radians(points[:, 0].mean()))]
    return min(zip(np.round((off**2).sum(axis=1), 12).tolist(), (s[0] for s in stops), strict=True))[1]


# Labels as charts and pages show them


def display_labels(published: Published, attribute: str) -> list[str]:
    """The labels of an attribute; stops by their names, and by their ids where these differ."""
    labels, places = published.labels(attribute), published.places
    if places is None or not _are_stop_ids(published, attribute):
        return labels
    names = {str(stop): name for stop, name in zip(places.ids, places.names, strict=True)}
    return [label if names.get(label, label) == label else f"{names[label]} ({label})" for label in labels]


def _are_stop_ids(published: Published, attribute: str) -> bool:
    """Whether labels are ids of stops. Times may look like some, too."""
    dimension = published.dag.universe.dimensions.get(attribute)
    parts = roles(published.dag)
    if dimension is None or attribute == parts.time:
        return False
    return attribute in (*PLACE_NAMES, *(parts.ends or ()))


MAX_COLUMNS_NARROW = 10  # columns of a matrix that leaves room beside it
Options = dict[int, str]  # what may be chosen: values, and how they are called


@dataclass(frozen=True)
class Panel:
    """A chart's heading, what is to be known about it, and what warns of it."""

    heading: str
    note: str = ""
    warning: str | None = None


@dataclass(frozen=True)
class MapPanel:
    """What a map may be zoomed to, what is not on it, and whether zones have colours."""

    zoom: Options
    missing: str
    zoned: bool = True


@dataclass(frozen=True)
class Explore:
    """The charts of a section, as far as the release has them.

    `all_periods`: the matrix shows all of them at once; `narrow`: it leaves room beside it; `largest` is what the table lists.
    """

    heading: str
    periods: Options
    matrix: Panel | None
    all_periods: bool
    narrow: bool
    shares: list[Panel]
    map: MapPanel | None
    dots: MapPanel | None
    zone_pairs: bool
    largest: str | None
    has_intervals: bool


def demand_panel(published: Published, data: Chart) -> Panel | None:
    chart = data["demand"]
    if chart is None or len(chart["labels"]) < 2:
        return None
    bars = len(chart["series"]) == 1
    hint = f" Select a bar to see {_period_views_text(data)} below." if bars and _by_period(data) else ""
    heading = "Demand by period"
    if chart["of_day"]:
        heading = "Demand over the day" if is_single_day(published.release) else "Demand by time of day"
    trips = counted_noun(published.dag.universe).say("Trips")
    return Panel(heading, f"{trips} in each period. {_intervals_note(published, chart, bars)}{hint}")


def _by_period(data: Chart) -> bool:
    """Whether anything below shows one period at a time."""
    matrix, flows = data["matrix"], data["flows"]
    panels = [
        *([] if matrix is None else [matrix["cells"]]),
        *([] if flows is None else [flows["flows"]]),
        *([] if data["dots"] is None else [data["dots"]["counts"]]),
        *(share["bars"] for share in data["shares"]),
    ]
    return len(data["periods"]) > 1 and any(len(each) > 1 for each in panels)


def _period_views_text(data: Chart) -> str:
    """What shows one period at a time."""
    if data["flows"] is not None:
        return "its flows"
    return "its map" if data["dots"] is not None else "its shares" if data["shares"] else "its counts"


def _intervals_note(published: Published, chart: Chart, bars: bool) -> str:
    if "low" not in chart["series"][0]:
        return "No intervals were published for these numbers."
    marks, lines = ("Bars", "thin lines") if bars else ("Curves", "shaded bands")
    sure = confidence_text(published.confidence)
    if chart["exact"]:
        return f"{marks} show the published counts. The {lines} are {sure} intervals: the true count lies inside with {sure} confidence."
    return f"{marks} show the published counts. The {lines} are ranges: the {sure} intervals of a more detailed table, added up."


def explore_panels(parts: Roles, data: Chart) -> Explore | None:
    matrix, flows, types = data["matrix"], data["flows"], data["types"]
    shown = Explore(
        "Who travels where, and how" if parts.ends else "A closer look",
        dict(enumerate(data["periods"])) if _by_period(data) else {},
        None if matrix is None else _matrix_panel(data),
        matrix is not None and matrix["timed"],
        matrix is None or len(matrix["columns"]) <= MAX_COLUMNS_NARROW,
        [_share_panel(share) for share in data["shares"]],
        None if flows is None or not any(stop[2] is not None for stop in flows["stops"]) else _map_panel(flows),
        None if data["dots"] is None else _dots_panel(data),
        matrix is not None and matrix["kind"] == "zones",
        "flows" if flows is not None else "counts" if types and types["count"] else None,
        "low" in (flows or types or ()) or (matrix is not None and "low" in matrix["cells"][0]),
    )  # fmt: skip
    panels = (shown.matrix, shown.shares, shown.map, shown.dots, shown.largest)
    return shown if any(panels) else None


def _matrix_panel(data: Chart) -> Panel:
    chart, many = data["matrix"], data["noun"][1]
    names = {"zones": "From zone to zone", "stops": "From stop to stop"}
    shown, every = [len(chart["rows"]), len(chart["columns"])], chart["of"]
    first = ", the largest first" if chart["kind"] == "other" and shown[0] < every[0] else ""
    cut = (
        ""
        if shown == every
        else f" Shown are {_largest_of(shown[0], every[0], 'rows')} and {_largest_of(shown[1], every[1], 'columns')}: those with the most {many}{first}."
    )
    row, column = (attribute_words(chart[k]) for k in ("row", "column"))
    note = f"Rows: {row}. Columns: {column}. The stronger the colour, the more {many}.{cut}"
    return Panel(names.get(chart["kind"], f"By {row} and {column}"), note)


def _largest_of(shown: int, every: int, what: str) -> str:
    return f"all {every:,} {what}" if shown == every else f"{shown:,} of {every:,} {what}"


def _share_panel(share: Chart) -> Panel:
    name = attribute_words(share["name"])
    warning = f"No table was measured that tells counts by {name}: they are added up from single counts with much noise, and may be far off."
    return Panel(f"Shares by {name}", warning=warning if share["guess"] else None)


def _map_panel(flows: Chart) -> MapPanel:
    located = [number for number, zone in enumerate(flows["zones"]) if zone[1] is not None]
    outside = flows["outside"]
    zoom = {-1: "most trips", -2: "all stops"} if outside else {-1: "everything"}
    missing = (
        f" The {flows['hidden']:,} stops with the fewest trips are not drawn." if flows["hidden"] else ""
    )
    if outside:
        missing += (
            f" {_stops_lie(outside)} far from most trips, outside this map ({percent(flows['outside_share'])} of all starts and ends of trips): "
            f"zoom to all stops to see {'it' if outside == 1 else 'them'}."
        )
    return MapPanel(_with_zones(zoom, flows["called"], located), missing)


def _dots_panel(data: Chart) -> MapPanel:
    chart = data["dots"]
    zoned = 1 < len(chart["zones"]) <= 40
    used = {stop[3] for stop in chart["stops"]}
    located = [number for number in range(len(chart["called"])) if number in used]
    missing = ""
    if chart["outside"]:
        missing = f" {_stops_lie(chart['outside'])} far away, outside this map ({percent(chart['outside_share'])} of all {data['noun'][1]})."
    return MapPanel(_with_zones({-1: "everything"}, chart["called"], located), missing, zoned)


def _with_zones(zoom: Options, names: list[str], located: Iterable[int]) -> Options:
    """What a map may be zoomed to; nothing where there is no choice."""
    zones = {number: names[number] for number in located}
    choices = {**zoom, **(zones if len(zones) > 1 else {})}
    return choices if len(choices) > 1 else {}


def _stops_lie(many: int) -> str:
    return "1 stop lies" if many == 1 else f"{many:,} stops lie"
