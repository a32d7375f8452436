"""Cities from GTFS Schedule feeds (MobilityData): a folder or a zip.

A feed holds many days; a city is one of them. Without a date it is the day on which most trips run (the first of those alike), by `calendar.txt` and
`calendar_dates.txt`; in a feed with neither, all trips run on one day. Trips of `frequencies.txt` leave at every headway of each of its rows.

Platforms of one station (`parent_station`) are one place to change: all lines call at the station's first platform that is served, and a hub among the
platforms is this one. The other platforms stay stops of the city, for riders of shuttles.

Each route and direction is one line. A route without `direction_id` has two directions if some of its trips visit the stops of its commonest
trips in the other order or, where they share fewer than two stops, go the opposite way.

Not read: trips whose first stop has no departure time (a later stop without one is reached as fast as a shuttle drives), other sequences of stops
than the commonest of a route and direction, transfers, pathways, fares, shapes, and stops of areas (GTFS-Flex). Lines run all day at their headway.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from cbdp.errors import InputError
from cbdp.transit.city import URBAN_DRIVING, City, Driving, Line, Row, csv_number, csv_rows, make_city, plane
from cbdp.untrusted import zip_member
from cbdp_features.calendar import SECONDS_PER_DAY

Calls = list[tuple[str, int | None]]  # the stops of a trip in order, with their departure times
MAX_SECONDS = 10 * SECONDS_PER_DAY  # of a service day: runs after midnight still belong to it
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def city_from_gtfs(
    feed: str | Path,
    *,
    zones: Mapping[str, str] | None = None,
    hubs: Iterable[str] | None = None,
    hours: tuple[int, int] = (0, SECONDS_PER_DAY),
    date: dt.date | str | None = None,
    driving: Driving | None = None,
) -> City:
    r"""A city from a GTFS feed: the stops that trips serve, and for each route and direction a line with its commonest stops.

    Zones are the feed's `zone_id` unless `zones` has the stop; hubs are the stops of two or more routes unless named. The
    headway is the median gap between departures from the first stop inside `hours` (seconds of the day)
    on the service day `date` (without one, the day with most trips).

    >>> import tempfile
    >>> feed = {"stops": "stop_id,stop_lat,stop_lon\nA,42.28,-83.74\nB,42.29,-83.73\n", "routes": "route_id,route_type\nR,3\n", "trips": "route_id,service_id,trip_id\nR,S,T\n", "stop_times": "trip_id,stop_id,stop_sequence,arrival_time,departure_time\nT,A,1,08:00:00,08:00:00\nT,B,2,08:09:00,08:09:00\n"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = [Path(folder, f"{name}.txt").write_text(text) for name, text in feed.items()]
    ...     city_from_gtfs(folder, zones={"A": "1", "B": "1"}, hubs=["A"]).names
    ('A', 'B')
    """
    tables = _Feed(Path(feed))
    stop_times = _stop_times_by_trip(
        tables.read("stop_times.txt", ("trip_id", "stop_id", "stop_sequence", "departure_time"))
    )
    trips = {t["trip_id"]: t for t in tables.read("trips.txt", ("trip_id", "route_id"))}
    if strangers := [trip for trip in stop_times if trip not in trips]:
        raise InputError(
            f"stop_times.txt has the trip {strangers[0]!r}, which trips.txt does not have: add it there"
        )
    served = {stop for calls in stop_times.values() for stop, _ in calls}
    rows = [
        r for r in tables.read("stops.txt", ("stop_id", "stop_lat", "stop_lon")) if r["stop_id"] in served
    ]
    if not rows:
        raise InputError(
            f"the GTFS feed {Path(feed).name} has no stop that a trip serves: check stop_times.txt"
        )
    names = [r["stop_id"] for r in rows]
    x, y = plane(*([csv_number(r, c, "stops.txt") for r in rows] for c in ("stop_lat", "stop_lon")))
    labels = [(zones or {}).get(r["stop_id"], r.get("zone_id", "") or "") for r in rows]
    if "" in labels:
        raise InputError(
            f"the stop {names[labels.index('')]!r} has no zone_id in the feed: give its zone (`zones`, or --zones)"
        )
    platform = _platforms(rows)
    departures = _departures(tables, stop_times)
    running = _running_trips(tables, trips, departures, date)
    calls = {trip: [(platform.get(s, s), t) for s, t in stop_times[trip]] for trip in running}
    routes: dict[str, set[str]] = defaultdict(set)
    for trip, stops in calls.items():
        for stop, _ in stops:
            routes[stop].add(trips[trip]["route_id"])
    named = [platform.get(h, h) for h in hubs] if hubs is not None else None
    chosen = [n for n in names if len(routes[n]) > 1] if named is None else named
    bare = make_city(names, x, y, labels, chosen, driving=driving or URBAN_DRIVING)
    return bare.with_lines(_lines(bare, trips, calls, departures, hours))


def _platforms(rows: list[Row]) -> dict[str, str]:
    """The stop of each platform's station at which lines call: its first; a station stands for it too."""
    first: dict[str, str] = {}
    platform = {}
    for row in rows:
        station = row.get("parent_station", "")
        if station:
            platform[row["stop_id"]] = first.setdefault(station, row["stop_id"])
    return first | platform


class _Feed:
    """The tables of a feed, from a folder or a zip."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise InputError(f"there is no GTFS feed at {path}: give its folder or zip file")
        self.path = path

    def read(self, name: str, needed: tuple[str, ...], *, optional: bool = False) -> list[Row]:
        if self.path.is_dir():
            file = self.path / name
            if not file.exists():
                return self._missing(name, optional=optional)
            try:
                text = file.read_text(encoding="utf-8-sig")
            except (OSError, UnicodeDecodeError):
                raise InputError(f"{str(file)!r} cannot be read: it must be a file in UTF-8") from None
            return csv_rows(text, name, needed, empty=optional)
        content = zip_member(self.path, name)
        if content is None:
            return self._missing(name, optional=optional)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{name} in {str(self.path)!r} cannot be read: it must be UTF-8") from None
        return csv_rows(text, name, needed, empty=optional)

    def _missing(self, name: str, *, optional: bool) -> list[Row]:
        if optional:
            return []
        raise InputError(f"the GTFS feed {self.path.name} has no {name}: add it")


def _gtfs_seconds(text: str) -> int | None:
    """The second of the service day: unlike a time of day it may lie past 24:00:00, and a feed may leave it out."""
    parts = text.split(":")
    if len(parts) != 3 or not all(p.strip().isdigit() for p in parts):
        return None
    hours, minutes, seconds = map(int, parts)
    return hours * 3600 + minutes * 60 + seconds


def _stop_times_by_trip(rows: list[Row]) -> dict[str, Calls]:
    """The stops of every trip in order, with their departure times."""
    by_trip: dict[str, list[tuple[int, str, int | None]]] = defaultdict(list)
    for row in rows:
        if not row["stop_sequence"].isdigit():
            raise InputError(
                f"stop_times.txt has {row['stop_sequence']!r} in the column 'stop_sequence': give a whole number"
            )
        by_trip[row["trip_id"]].append(
            (int(row["stop_sequence"]), row["stop_id"], _gtfs_seconds(row["departure_time"]))
        )
    return {trip: [(s, t) for _, s, t in sorted(v, key=lambda e: e[0])] for trip, v in by_trip.items()}


def _departures(feed: _Feed, stop_times: Mapping[str, Calls]) -> dict[str, list[int]]:
    """When each trip leaves its first stop: once, or as often as the rows of frequencies.txt say."""
    departures = {trip: [] if calls[0][1] is None else [calls[0][1]] for trip, calls in stop_times.items()}
    windows: dict[str, list[int]] = defaultdict(list)
    needed = ("trip_id", "start_time", "end_time", "headway_secs")
    for row in feed.read("frequencies.txt", needed, optional=True):
        start, end = _gtfs_seconds(row["start_time"]), _gtfs_seconds(row["end_time"])
        headway = int(csv_number(row, "headway_secs", "frequencies.txt"))
        if start is None or end is None or not start < end <= MAX_SECONDS or headway < 1:
            raise InputError(
                f"frequencies.txt has a headway of {row['headway_secs']} s from {row['start_time']!r} to {row['end_time']!r}: give at least "
                "1 s, and times like 06:00:00, the end after the start"
            )
        windows[row["trip_id"]] += range(start, end, headway)
    return departures | {trip: sorted(set(times)) for trip, times in windows.items()}


def _running_trips(
    feed: _Feed,
    trips: Mapping[str, Row],
    departures: Mapping[str, list[int]],
    date: dt.date | str | None,
) -> list[str]:
    """The trips of the service day: of `date`, or of the day with most departures."""
    weeks = feed.read("calendar.txt", ("service_id", *WEEKDAYS, "start_date", "end_date"), optional=True)
    changes = feed.read("calendar_dates.txt", ("service_id", "date", "exception_type"), optional=True)
    if not weeks and not changes:
        return list(departures)
    spans = [(w, _date(w["start_date"], "calendar.txt"), _date(w["end_date"], "calendar.txt")) for w in weeks]
    exceptions: dict[dt.date, dict[str, str]] = defaultdict(dict)
    for row in changes:
        exceptions[_date(row["date"], "calendar_dates.txt")][row["service_id"]] = row["exception_type"]

    def services(day: dt.date) -> frozenset[str]:
        weekday = WEEKDAYS[day.weekday()]
        usual = {w["service_id"] for w, start, end in spans if start <= day <= end and w[weekday] == "1"}
        added = {s for s, kind in exceptions[day].items() if kind == "1"} if day in exceptions else set()
        removed = {s for s, kind in exceptions[day].items() if kind == "2"} if day in exceptions else set()
        return frozenset((usual | added) - removed)

    volume: Counter[str] = Counter()
    for trip, times in departures.items():
        volume[trips[trip].get("service_id", "")] += len(times)
    if date is None:
        # services change with the weekday and at these days only, so one of the seven after each is like any other
        turns = {start for _, start, _ in spans} | {_after(end, 1) for _, _, end in spans}
        turns |= {_after(day, k) for day in exceptions for k in (0, 1)}
        days = sorted({_after(turn, k) for turn in turns for k in range(7)})
        day = max(days, key=lambda d: (sum(volume[s] for s in services(d)), -d.toordinal()))
    else:
        day = date if isinstance(date, dt.date) else _date(date.replace("-", ""), "date")
    active = services(day)
    running = [trip for trip in departures if trips[trip].get("service_id", "") in active]
    if not running:
        raise InputError(
            f"no trip of the GTFS feed {feed.path.name} runs on {day}: choose another date (`date`, or --date), or check calendar.txt and "
            "calendar_dates.txt"
        )
    return running


def _after(day: dt.date, days: int) -> dt.date:
    return dt.date.fromordinal(min(day.toordinal() + days, dt.date.max.toordinal()))


def _date(text: str, where: str) -> dt.date:
    try:
        return dt.datetime.strptime(text, "%Y%m%d").date()  # noqa: DTZ007 - a day of the calendar
    except ValueError:
        raise InputError(
            f"{where} has the date {text!r}: give year, month and day, for example 20260302"
        ) from None


def _lines(
    city: City,
    trips: Mapping[str, Row],
    calls: Mapping[str, Calls],
    departures: Mapping[str, list[int]],
    hours: tuple[int, int],
) -> list[Line]:
    """A one-way line for each route and direction: its commonest sequence of stops, with the times of its first trip."""
    members: dict[tuple[str, str], dict[tuple[str, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    starts = {trip: [t for t in departures[trip] if hours[0] <= t < hours[1]] for trip in calls}
    for trip, visits in calls.items():
        if starts[trip]:
            pattern = tuple(dict.fromkeys(stop for stop, _ in visits))  # a loop ends before it meets itself
            key = trips[trip]["route_id"], trips[trip].get("direction_id", "")
            members[key][pattern].append(trip)
    for (route, direction), patterns in list(members.items()):
        if not direction:
            usual = _commonest(patterns, starts)
            for pattern in [p for p in patterns if _runs_back(city, p, usual)]:
                members[route, "back"][pattern] = patterns.pop(pattern)
    lines = []
    for (route, direction), patterns in sorted(members.items()):
        stops = _commonest(patterns, starts)
        if len(stops) < 2:
            continue
        leaves = sorted({t for trip in patterns[stops] for t in starts[trip]})
        gaps = [b - a for a, b in pairwise(leaves)]
        headway = int(median(gaps)) if gaps else hours[1] - hours[0]
        # a loop's first call counts
        run = _run_seconds(city, stops, dict(reversed(calls[patterns[stops][0]])))
        codes = tuple(city.code(s) for s in stops)
        name = f"{route} {direction}".strip()
        lines.append(Line(name, codes, headway, run, both_ways=False, offset=leaves[0] % headway))
    return lines


def _commonest(
    patterns: Mapping[tuple[str, ...], list[str]], starts: Mapping[str, list[int]]
) -> tuple[str, ...]:
    """The sequence of stops with most departures; of equal ones the longest."""
    return max(patterns, key=lambda p: (sum(len(starts[trip]) for trip in patterns[p]), len(p), p))


def _runs_back(city: City, pattern: tuple[str, ...], usual: tuple[str, ...]) -> bool:
    """Whether a sequence of stops visits those of the usual one in the other order or, if it has too few of them, goes the opposite way."""
    place = {stop: k for k, stop in enumerate(usual)}
    shared = [place[stop] for stop in pattern if stop in place]
    if len(shared) > 1:
        return int(np.sign(np.diff(shared)).sum()) < 0
    (ax, ay), (bx, by) = (
        (city.x[end] - city.x[start], city.y[end] - city.y[start])
        for start, end in ((city.code(stops[0]), city.code(stops[-1])) for stops in (pattern, usual))
    )
    return bool(ax * bx + ay * by < 0)


def _run_seconds(city: City, stops: tuple[str, ...], at: Mapping[str, int | None]) -> tuple[int, ...]:
    """Seconds between consecutive stops: by the timetable, or as long as a shuttle takes where it says nothing."""
    seconds = []
    for a, b in pairwise(stops):
        leaves, arrives = at[a], at[b]
        scheduled = None if leaves is None or arrives is None else arrives - leaves
        seconds.append(
            scheduled
            if scheduled is not None and scheduled > 0
            else max(1, int(city.seconds[city.code(a), city.code(b)]))
        )
    return tuple(seconds)
