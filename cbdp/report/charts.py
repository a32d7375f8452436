"""What each chart shows, as plain numbers: embedded once in the page, and drawn from there."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.features import SINGLETON
from cbdp.release.counted import counted
from cbdp.release.framing import Frame, frame
from cbdp.release.published import TOLD, Grouped, Published
from cbdp.release.roles import Roles, period_names, roles
from cbdp.release.stops import placed
from cbdp.release.when import calendar_order, of_one_day
from cbdp.report.dots import dots
from cbdp.report.nodes import Nodes, called
from cbdp.report.support import supported
from cbdp.report.text import named
from cbdp.report.trust import judge

Chart = dict[str, Any]

LINES = 40  # rows and columns of a matrix
CELLS = 100_000  # of all matrices of a chart together
PERIODS = 200  # that can be chosen
SERIES = 6  # curves in one chart
FLOWS = 150  # of all periods together
FLOWS_EACH = 60  # of each period
FLOWS_ALL = 2_000  # of the periods together, as near as that comes
TYPES = 200  # trip types listed


def charts(published: Published) -> Chart:
    """The data of all charts. `periods` names the choices: the first is all of them together."""
    parts = roles(published.dag)
    dimensions, noun = published.dag.universe.dimensions, counted(published.dag.universe)
    sliced = parts.time is not None and 1 < len(dimensions[parts.time]) <= PERIODS
    names = period_names(dimensions[parts.time]) if parts.time is not None and sliced else []
    time = parts.time if sliced else None
    return {
        "confidence": round(100 * published.confidence, 4),
        "noun": [noun.one, noun.many],
        "total": total(published),
        "periods": [_all(published, parts), *names],
        "demand": demand(published, parts),
        "matrix": matrix(published, parts, time),
        "shares": [shares(published, name, time) for name in parts.shares],
        "flows": flows(published, parts, time),
        "dots": dots(published, parts, time),
        "types": None if parts.ends else types(published),
    }


def total(published: Published) -> int:
    """The trips of the coarsest table."""
    return int(published.grouped().counts)


def _all(published: Published, parts: Roles) -> str:
    if parts.time is None:
        return "everything"
    dimension = published.dag.universe.dimension(parts.time)
    if len(dimension) == 1:
        return period_names(dimension)[0]
    if dimension.edges is None:
        return "all periods"
    return "all day" if of_one_day(published.release) else "all times"


def demand(published: Published, parts: Roles) -> Chart | None:
    """Trips by period: one curve, or one for each value of what the published table by time distinguishes."""
    if parts.time is None:
        return None
    dimension = published.dag.universe.dimension(parts.time)
    whole = published.grouped(parts.time)
    split = None if whole.tabled else _split(published, parts.time)
    chart: Chart = {
        "by": split,
        "time": parts.time,
        "labels": [str(v) for v in dimension.values],
        "names": period_names(dimension),
        "of_day": dimension.edges is not None,
    }
    if split is None:
        return {**chart, "series": [{"label": "", **_ends(whole)}], "exact": whole.exact}
    apart = published.grouped(split, parts.time)
    labels = published.labels(split)
    order = _by_calendar(list(range(len(labels))), labels)
    rows = [{"label": labels[row], **_ends(apart, row)} for row in order]
    return {**chart, "series": rows, "exact": apart.exact}


def _split(published: Published, time: str) -> str | None:
    """The attribute that a table of two groups by beside the time, if it has few values."""
    for feature in published.dag.features.values():
        others = [name for name in feature.by if name != time]
        if time in feature.by and len(others) == 1 and published.many(others[0]) <= SERIES:
            return others[0]
    return None


def matrix(published: Published, parts: Roles, time: str | None) -> Chart | None:
    """Trips from row to column: zones, stops where there are few, or whatever two things are counted."""
    pair, kind = _pair(published, parts)
    if pair is None:
        return None
    per_period = time if time not in pair else None
    whole = published.grouped(*pair)
    chosen = _largest(whole.counts, same=kind != "other")
    rows, columns = (_by_calendar(c, published.labels(name)) for c, name in zip(chosen, pair, strict=True))
    periods = 0 if per_period is None else published.many(per_period)
    if (periods + 1) * len(rows) * len(columns) > CELLS:
        periods = 0
    chart: Chart = {
        "kind": kind,
        "row": pair[0],
        "column": pair[1],
        "rows": [named(published, pair[0])[r] for r in rows],
        "columns": [named(published, pair[1])[c] for c in columns],
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


def _pair(published: Published, parts: Roles) -> tuple[tuple[str, str] | None, str]:
    if parts.zones is not None and _listable(published, parts.zones):
        return parts.zones, "zones"
    if parts.ends is not None:
        few = max(published.many(end) for end in parts.ends) <= 2 * LINES
        return (parts.ends, "stops") if few else (None, "")
    dimensions = [n for n in published.dag.universe.dimensions if n != parts.time]
    dimensions.sort(key=lambda name: -published.many(name))
    both = [*dimensions[:1], *([parts.time] if parts.time else dimensions[1:2])]
    if len(both) == 2 and _listable(published, (both[0], both[1])):
        return (both[0], both[1]), "other"
    return None, ""


def _listable(published: Published, pair: tuple[str, str]) -> bool:
    return math.prod(published.many(name) for name in pair) <= 2**22


def _largest(counts: Ints, *, same: bool) -> tuple[list[int], list[int]]:
    """The rows and the columns with the most trips, in their own order; of zones the same for both. Rows out of many: the largest first."""
    by_row, by_column = counts.sum(axis=1), counts.sum(axis=0)
    if same and len(by_row) == len(by_column):
        by_row = by_column = by_row + by_column
    wide = LINES if same else 3 * LINES  # times of the day stay together
    rows = _top(by_row, LINES)
    if not same and len(rows) < len(by_row):
        rows.sort(key=lambda row: -by_row[row])
    return rows, _top(by_column, wide)


def _top(counts: Ints, most: int) -> list[int]:
    return sorted(np.argsort(-counts, kind="stable")[:most].tolist())


def _by_calendar(chosen: list[int], labels: list[str]) -> list[int]:
    """Days as a calendar has them; other labels in their own order."""
    order = calendar_order([labels[c] for c in chosen])
    return chosen if order is None else [chosen[place] for place in order]


def _cells(grouped: Grouped, rows: list[int], columns: list[int], period: int | None = None) -> Chart:
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


def shares(published: Published, attribute: str, time: str | None) -> Chart:
    """Trips by one attribute, in all and by period where a table has both."""
    whole = published.grouped(attribute)
    most = int(np.argmax(whole.counts))
    labels = published.labels(attribute)
    ordered = calendar_order(labels)
    chart: Chart = {
        "name": attribute,
        "order": ordered,  # of days as a calendar has them; None: the largest first
        "guess": not supported(published, (attribute,), most, int(whole.counts[most])),
        "labels": named(published, attribute),
        "exact": whole.exact,
        "exact_each": False,
        "bars": [_ends(whole)],
    }
    if time is not None:
        each = published.grouped(attribute, time)
        chart["exact_each"] = each.exact
        chart["bars"] += [_ends(each, (slice(None), t)) for t in range(each.counts.shape[1])]
    return chart


def flows(published: Published, parts: Roles, time: str | None) -> Chart | None:
    """The largest flows between stops, in all and by period, and where stops and zones lie."""
    if parts.ends is None:
        return None
    universe, release = published.dag.universe, published.release
    codes = dict(zip(universe.dimensions, universe.unrank_codes(release.index), strict=True))
    first, second = (universe.dimension(end) for end in parts.ends)
    nodes = Nodes(published.places, first, second, published, parts)
    pair = codes[parts.ends[0]] * len(second) + codes[parts.ends[1]]
    listed = [_largest_pairs(pair, release.value, FLOWS)]
    each = FLOWS_EACH
    if time is not None:
        each = max(10, min(FLOWS_EACH, FLOWS_ALL // published.many(time)))
        order = np.argsort(codes[time], kind="stable")
        ends = np.searchsorted(codes[time][order], np.arange(len(universe.dimension(time)) + 1))
        groups = (order[a:b] for a, b in pairwise(ends))
        listed += [_largest_pairs(pair[g], release.value[g], each) for g in groups]
    triples = [
        [[nodes.first(o), nodes.second(d), n] for o, d, n in _split_pairs(found, len(second))]
        for found in listed
    ]
    chart: Chart = {
        "most": FLOWS,
        "most_each": each,
        "unsure": _unsure(published, parts),
        "flows": triples,
        **_flow_ends(published, parts.ends, time, [found[0] for found in listed]),
    }
    nodes.fill(codes, parts, release.value)
    stops = placed(published)
    shown = frame(stops.lat, stops.lon, stops.trips)
    zones = nodes.zones(shown)
    spots = [(name, lat, lon, zone) for _, name, lat, lon, zone in nodes.listed]
    parts_of_map = {"stops": nodes.listed, "zones": zones, "hidden": nodes.hidden}
    return {**chart, **parts_of_map, "called": called([z[0] for z in zones], spots), **_framed(shown)}


def _framed(shown: Frame | None) -> Chart:
    """The part of the map with the trips, and what lies far outside of it."""
    if shown is None:
        return {"frame": None, "outside": 0, "outside_share": 0}
    corners = [round(c, 6) for c in (shown.south, shown.west, shown.north, shown.east)]
    return {"frame": corners, "outside": shown.outside, "outside_share": shown.share}


def _unsure(published: Published, parts: Roles) -> bool:
    """Whether single flows between stops say little: as a table of them does, or of the trip types they are made of."""
    own = [n for n, f in published.dag.features.items() if f.by and set(f.by) == set(parts.ends or ())]
    return judge(published, next(iter(own), SINGLETON)).sums_only


def _largest_pairs(pair: Ints, value: Ints, most: int) -> tuple[Ints, Ints]:
    found, place = np.unique(pair, return_inverse=True)
    counts = np.zeros(len(found), dtype=np.int64)
    np.add.at(counts, place, value)
    order = np.lexsort((found, -counts))[:most]
    return found[order], counts[order]


def _split_pairs(found: tuple[Ints, Ints], wide: int) -> list[tuple[int, int, int]]:
    return [
        (pair // wide, pair % wide, n) for pair, n in zip(found[0].tolist(), found[1].tolist(), strict=True)
    ]


def _flow_ends(
    published: Published, ends: tuple[str, str], time: str | None, pairs: list[Ints]
) -> dict[str, list[list[int]]]:
    """The ends of the flows' intervals, of all periods together and of each; nothing where they are not told."""
    size = published.many(ends[0]) * published.many(ends[1])
    if size > TOLD:
        return {}
    whole = published.grouped(*ends)
    each = (
        published.grouped(*ends, time) if time is not None and size * published.many(time) <= TOLD else None
    )
    low, high = [_told(whole, pairs[0])], [_told(whole, pairs[0], high=True)]
    for period, found in enumerate(pairs[1:]):
        low.append([] if each is None else _told(each, found, period))
        high.append([] if each is None else _told(each, found, period, high=True))
    return {"low": low, "high": high} if any(low) else {}


def _told(grouped: Grouped, pairs: Ints, period: int | None = None, *, high: bool = False) -> list[int]:
    """One end of the intervals of these pairs, numbered along both axes; none where they are but ranges."""
    ends = grouped.high if high else grouped.low
    if ends is None or not grouped.exact:
        return []
    shown = ends if period is None else ends[..., period]
    return _ints(shown.reshape(-1)[pairs])


def types(published: Published) -> Chart:
    """The trip types with the most trips, where these do not lead from one place to another."""
    universe, release = published.dag.universe, published.release
    order = np.lexsort((release.index, -release.value))[:TYPES]
    codes = universe.unrank_codes(release.index[order])
    many = [len(d) > 1 for d in universe.dimensions.values()]
    kept = [n for n, several in zip(universe.dimensions, many, strict=True) if several or not any(many)]
    place = dict(zip(universe.dimensions, codes, strict=True))
    columns = [[named(published, n)[c] for c in place[n].tolist()] for n in kept]
    chart: Chart = {"columns": kept, "values": columns, "count": _ints(release.value[order])}
    if universe.size <= TOLD and not release.tables:
        told = published.grouped(*universe.dimensions)
        if told.exact and told.low is not None and told.high is not None:
            chart |= {"low": _ints(told.low[tuple(codes)]), "high": _ints(told.high[tuple(codes)])}
    return chart


def _ends(grouped: Grouped, chosen: Any = ...) -> Chart:
    made: Chart = {"count": _ints(grouped.counts[chosen])}
    if grouped.low is not None and grouped.high is not None:
        made |= {"low": _ints(grouped.low[chosen]), "high": _ints(grouped.high[chosen])}
    return made


def _ints(numbers: NDArray[Any]) -> list[int]:
    return [int(n) for n in np.asarray(numbers).reshape(-1)]
