"""Cities from stops alone, from CSV tables and from GTFS Schedule feeds (MobilityData). All of it is public; demand is never read.

What is not given follows by rule (`city_of_stops`):

1. *Zones*: as given. Without any, the smallest number of compact zones (k-means) in which no stop is more than 5 km from the stop in
   the middle of its zone, at most 40.
2. *Hubs*: as given. Without any, the medoid of each zone (its 1-median: Hakimi, 1964): the stop with the least sum of ways to and from the other
   stops of the zone.
3. *Lines*: as given. Without any, and with more than one zone, a bus every 10 minutes at 30 km/h, both ways, between each hub and the
   hub with the least sum of ways to all other hubs: a single-hub star, so that every hub is reached with one transfer.
4. *Driving*: 30 km/h on ways that are 1.3 times the straight line, unless other numbers or travel times are given.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import ArrayLike

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.transit.city import (
    DEGREES,
    EARTH_KM_PER_DEGREE,
    KM,
    City,
    Driving,
    Line,
    check_extent,
    in_km,
    make_city,
    plane,
)
from cbdp.untrusted import zip_member
from cbdp_features.calendar import SECONDS_PER_DAY
from cbdp_features.places import Stops, zones_by_clustering

URBAN_DRIVING = Driving(speed=30.0, detour=1.3)
ZONE_RADIUS_KM = 5.0  # from the middle of a zone to its farthest stop, at most
MAX_ZONES = 40  # zones by rule: each has a fleet of its own, which is sized by itself
DEFAULT_HEADWAY_SECONDS, DEFAULT_BUS_SPEED_KMH = 600, 30.0


def city_of_stops(
    names: Sequence[str],
    x: Floats,
    y: Floats,
    *,
    zones: Sequence[object] | None = None,
    hubs: Iterable[object] | None = None,
    driving: Driving | None = None,
    seconds: ArrayLike | None = None,
    metres: ArrayLike | None = None,
) -> City:
    """A city from stops in a plane (km), with the default lines; what is not given follows the rules above.

    >>> city = city_of_stops(["a", "b", "c"], np.array([0.0, 1, 30]), np.array([0.0, 0, 0]))
    >>> city.zones, [city.names[h] for h in city.hubs], [line.name for line in city.lines]
    (('Z01', 'Z02'), ['a', 'c'], ['c–a'])
    """
    labels = list(zones) if zones is not None else default_zones(names, x, y)
    drive = driving or URBAN_DRIVING
    ways = drive.metres(x, y) if metres is None else metres
    chosen = list(hubs) if hubs is not None else default_hubs(names, labels, ways)
    city = make_city(names, x, y, labels, chosen, driving=drive, seconds=seconds, metres=metres)
    return city.with_lines(default_lines(city))


def city_on_earth(stops: Stops, *, driving: Driving | None = None, what: str = "the stops") -> City:
    """A city from stops with latitude and longitude, their zones where they have any; coordinates of another unit are refused.

    >>> lat, lon = np.array([47.37, 47.39, 47.38]), np.array([8.54, 8.54, 8.56])
    >>> city = city_on_earth(Stops(("a", "b", "c"), ("a", "b", "c"), lat, lon))
    >>> city.zones, round(float(city.beeline[0, 1]), 1)
    (('Z01',), 2.2)
    """
    x, y = plane(stops.lat, stops.lon)
    names = [str(stop) for stop in stops.ids]
    check_extent(names, x, y, DEGREES, what)
    return city_of_stops(names, x, y, zones=stops.zone, driving=driving)


def default_zones(names: Sequence[str], x: Floats, y: Floats) -> list[str]:
    """The zone of each stop by rule 1."""
    lat, lon = (np.asarray(v, dtype=float) / EARTH_KM_PER_DEGREE for v in (y - np.mean(y), x - np.mean(x)))
    stops = Stops(tuple(names), tuple(names), lat, lon)
    most = min(MAX_ZONES, len(np.unique(np.column_stack([x, y]), axis=0)))
    labels: tuple[str, ...] = ()
    for count in range(1, most + 1):
        zoned, middles = zones_by_clustering(stops, count)
        labels = zoned.zone or ()
        at = dict(zip(sorted(set(labels)), middles, strict=True))
        position = {name: n for n, name in enumerate(names)}
        centre = np.array([position[str(at[zone])] for zone in labels])
        if float(np.hypot(x - x[centre], y - y[centre]).max()) <= ZONE_RADIUS_KM:
            break
    return list(labels)


def default_hubs(names: Sequence[str], zones: Sequence[object], metres: ArrayLike) -> list[str]:
    """The hub of each zone by rule 2; ties go to the stop that comes first."""
    hubs = []
    for zone in dict.fromkeys(zones):
        members = np.array([n for n, z in enumerate(zones) if z == zone])
        hubs.append(names[int(members[_medoid(metres, members)])])
    return hubs


def _medoid(metres: ArrayLike, members: Ints) -> int:
    inside = np.asarray(metres)[np.ix_(members, members)]
    return int(np.argmin(inside.sum(axis=0) + inside.sum(axis=1)))


def default_lines(city: City) -> list[Line]:
    """Lines between the hubs by rule 3; one zone needs none."""
    hubs = city.hubs
    if len(city.zones) == 1 or len(hubs) < 2:
        return []
    centre = int(hubs[_medoid(city.metres, hubs)])
    lines = []
    for hub in hubs.tolist():
        if hub != centre:
            run = max(1, math.ceil(int(city.metres[hub, centre]) * 3.6 / DEFAULT_BUS_SPEED_KMH))
            lines.append(
                Line(
                    f"{city.names[hub]}–{city.names[centre]}", (hub, centre), DEFAULT_HEADWAY_SECONDS, (run,)
                )
            )
    return lines


# Files: CSV tables, or a GTFS feed (a folder or a zip)


Row = Mapping[str, str]
STOP_COLUMNS = ("stop", "stop_id", "station_id", "id")
TRUE_VALUES, FALSE_VALUES = {"1", "true", "yes"}, {"0", "false", "no", ""}


def city_from_csv(
    stops: str | Path,
    lines: str | Path | None = None,
    times: str | Path | None = None,
    *,
    driving: Driving | None = None,
    units: str = KM,
) -> City:
    r"""A city from tables in CSV.

    `stops` has the columns stop (or stop_id, station_id, id), x and y (in `units`, "km" or "m") or lat and lon, and optionally zone
    and hub (0 or 1). `lines` has line, stop (in the order of travel), headway (s), and optionally seconds (from the stop before).
    `times` has from, to, seconds (of a shuttle), and optionally metres. Zones, hubs and lines that are not given follow the rules of
    `cbdp.transit.city_sources`; coordinates that do not fit their unit are refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     stops = Path(folder, "stops.csv")
    ...     _ = stops.write_text("stop,x,y,zone,hub\nA,0,0,west,1\nB,1,0,west,0\nC,8,0,east,1\n")
    ...     city = city_from_csv(stops)
    >>> city.names, city.zones
    (('A', 'B', 'C'), ('west', 'east'))
    """
    rows = _csv(Path(stops), ())
    key = next((c for c in STOP_COLUMNS if c in rows[0]), None)
    if key is None:
        raise InputError(
            f"{Path(stops).name} has no column 'stop': it needs stop, and x and y or lat and lon"
        )
    names = [r[key] for r in rows]
    x, y = _coordinates(rows, names, units, stops)
    zones = [r["zone"] for r in rows] if "zone" in rows[0] else None
    hubs = (
        [n for r, n in zip(rows, names, strict=True) if _flag(r, "hub", stops)] if "hub" in rows[0] else None
    )
    seconds, metres = (None, None) if times is None else _times(Path(times), names)
    city = city_of_stops(names, x, y, zones=zones, hubs=hubs, driving=driving, seconds=seconds, metres=metres)
    return city if lines is None else city.with_lines(_csv_lines(Path(lines), city))


def _coordinates(rows: list[Row], names: list[str], units: str, where: str | Path) -> tuple[Floats, Floats]:
    """Kilometres in a plane. Stops at the wrong scale are refused before anything is computed from them."""
    name = Path(where).name
    if "x" in rows[0] and "y" in rows[0]:
        columns = [np.array([_number(r, c, where) for r in rows]) for c in ("x", "y")]
        x, y = in_km(columns[0], columns[1], units)
        check_extent(names, x, y, units, f"the stops of {name}")
        return x, y
    if "lat" in rows[0] and "lon" in rows[0]:
        try:
            x, y = plane(*([_number(r, c, where) for r in rows] for c in ("lat", "lon")))
        except InputError as wrong:
            raise InputError(
                f"{name}: {wrong}; a plane's coordinates belong into the columns x and y"
            ) from None
        check_extent(names, x, y, DEGREES, f"the stops of {name}")
        return x, y
    raise InputError(f"{name} has neither the columns x and y nor lat and lon: add the stops' coordinates")


def city_from_gtfs(
    feed: str | Path,
    *,
    zones: Mapping[str, str] | None = None,
    hubs: Iterable[str] | None = None,
    hours: tuple[int, int] = (0, SECONDS_PER_DAY),
    driving: Driving | None = None,
) -> City:
    r"""A city from a GTFS feed: the stops that trips serve, and for each route and direction a line with its commonest stops.

    Zones are the feed's `zone_id` unless `zones` has the stop; hubs are the stops of two or more routes unless named. The
    headway is the median gap between departures from the first stop inside `hours` (seconds of the day).

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
    served = {stop for calls in stop_times.values() for stop, _ in calls}
    rows = [
        r for r in tables.read("stops.txt", ("stop_id", "stop_lat", "stop_lon")) if r["stop_id"] in served
    ]
    if not rows:
        raise InputError(
            f"the GTFS feed {Path(feed).name} has no stop that a trip serves: check stop_times.txt"
        )
    names = [r["stop_id"] for r in rows]
    x, y = plane(*([_number(r, c, "stops.txt") for r in rows] for c in ("stop_lat", "stop_lon")))
    labels = [(zones or {}).get(r["stop_id"], r.get("zone_id", "") or "") for r in rows]
    if "" in labels:
        raise InputError(
            f"the stop {names[labels.index('')]!r} has no zone_id in the feed: give its zone (`zones`, or --zones)"
        )
    routes: dict[str, set[str]] = defaultdict(set)
    for trip, calls in stop_times.items():
        for stop, _ in calls:
            routes[stop].add(_trip(trips, trip)["route_id"])
    chosen = list(hubs) if hubs is not None else [n for n in names if len(routes[n]) > 1]
    bare = make_city(names, x, y, labels, chosen, driving=driving or URBAN_DRIVING)
    return bare.with_lines(_gtfs_lines(bare, trips, stop_times, _headways_by_trip(tables), hours))


def zones_from_csv(path: str | Path) -> tuple[dict[str, str], list[str] | None]:
    """The zone of every stop of a GTFS feed, and the hubs if any are marked: columns stop, zone, and optionally hub."""
    rows = _csv(Path(path), ("stop", "zone"))
    hubs = [r["stop"] for r in rows if "hub" in r and _flag(r, "hub", path)]
    return {r["stop"]: r["zone"] for r in rows}, hubs or None


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
            return _rows(text, name, needed, empty=optional)
        content = zip_member(self.path, name)
        if content is None:
            return self._missing(name, optional=optional)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{name} in {str(self.path)!r} cannot be read: it must be UTF-8") from None
        return _rows(text, name, needed, empty=optional)

    def _missing(self, name: str, *, optional: bool) -> list[Row]:
        if optional:
            return []
        raise InputError(f"the GTFS feed {self.path.name} has no {name}: add it")


def _rows(text: str, name: str, needed: tuple[str, ...], *, empty: bool = False) -> list[Row]:
    reader = csv.DictReader(io.StringIO(text))
    try:
        head = reader.fieldnames or ()
    except csv.Error as wrong:
        raise InputError(f"{name} is not a CSV file: {wrong}") from None
    missing = [c for c in needed if c not in head]
    if missing:
        raise InputError(f"{name} has no column {missing[0]!r}: it needs {', '.join(needed)}")
    try:
        rows = [{k: (v or "").strip() for k, v in row.items() if k} for row in reader]
    except csv.Error as wrong:
        raise InputError(f"{name} is not a CSV file: {wrong}") from None
    if not rows and not empty:
        raise InputError(f"{name} has no rows: it needs at least one")
    return list(rows)


def _csv(path: Path, needed: tuple[str, ...]) -> list[Row]:
    if not path.exists():
        raise InputError(f"there is no file {path}: check the path")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path} cannot be read: give a CSV file in UTF-8") from None
    return _rows(text, path.name, needed)


def _number(row: Row, column: str, where: str | Path) -> float:
    try:
        return float(row[column])
    except ValueError:
        raise InputError(
            f"{Path(where).name} has {row[column]!r} in the column {column!r}: give a number"
        ) from None


def _flag(row: Row, column: str, where: str | Path) -> bool:
    text = row[column].lower()
    if text not in TRUE_VALUES | FALSE_VALUES:
        raise InputError(f"{Path(where).name} has {row[column]!r} in the column {column!r}: give 0 or 1")
    return text in TRUE_VALUES


def _times(path: Path, names: list[str]) -> tuple[Floats, Floats | None]:
    rows = _csv(path, ("from", "to", "seconds"))
    position = {n: i for i, n in enumerate(names)}
    seconds = np.full((len(names), len(names)), np.inf)
    metres = np.zeros_like(seconds) if "metres" in rows[0] else None
    for row in rows:
        for end in ("from", "to"):
            if row[end] not in position:
                raise InputError(
                    f"{path.name} has the stop {row[end]!r}, which is not in the table of stops: add it there"
                )
        pair = position[row["from"]], position[row["to"]]
        seconds[pair] = _number(row, "seconds", path)
        if metres is not None:
            metres[pair] = _number(row, "metres", path)
    return seconds, metres


def _csv_lines(path: Path, city: City) -> list[Line]:
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in _csv(path, ("line", "stop", "headway")):
        grouped[row["line"]].append(row)
    lines = []
    for name, rows in grouped.items():
        stops = [city.code(r["stop"]) for r in rows]
        if "seconds" in rows[0] and all(r["seconds"] for r in rows[1:]):
            run = [int(_number(r, "seconds", path)) for r in rows[1:]]
        else:
            run = [int(city.seconds[a, b]) for a, b in pairwise(stops)]
        lines.append(Line(name, tuple(stops), int(_number(rows[0], "headway", path)), tuple(run)))
    return lines


def _gtfs_seconds(text: str) -> int | None:
    """The second of the service day: unlike a time of day it may lie past 24:00:00, and a feed may leave it out."""
    parts = text.split(":")
    if len(parts) != 3 or not all(p.strip().isdigit() for p in parts):
        return None
    hours, minutes, seconds = map(int, parts)
    return hours * 3600 + minutes * 60 + seconds


def _stop_times_by_trip(rows: list[Row]) -> dict[str, list[tuple[str, int | None]]]:
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


def _trip(trips: Mapping[str, Row], trip: str) -> Row:
    if trip not in trips:
        raise InputError(f"stop_times.txt has the trip {trip!r}, which trips.txt does not have: add it there")
    return trips[trip]


def _headways_by_trip(feed: _Feed) -> dict[str, int]:
    rows = feed.read("frequencies.txt", ("trip_id", "headway_secs"), optional=True)
    return {r["trip_id"]: int(_number(r, "headway_secs", "frequencies.txt")) for r in rows}


def _gtfs_lines(
    city: City,
    trips: Mapping[str, Row],
    stop_times: Mapping[str, list[tuple[str, int | None]]],
    headway_of: Mapping[str, int],
    hours: tuple[int, int],
) -> list[Line]:
    """A one-way line for each route and direction: its commonest sequence of stops, with the times of its first trip."""
    patterns: dict[tuple[str, str], Counter[tuple[str, ...]]] = defaultdict(Counter)
    members: dict[tuple[str, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for trip, calls in stop_times.items():
        row = _trip(trips, trip)
        key = row["route_id"], row.get("direction_id", "")
        departs = calls[0][1]
        if trip not in headway_of and (departs is None or not hours[0] <= departs < hours[1]):
            continue
        pattern = tuple(dict.fromkeys(stop for stop, _ in calls))  # a loop ends before it meets itself
        patterns[key][pattern] += 1
        members[*key, pattern].append(trip)
    lines = []
    for (route, direction), counted in sorted(patterns.items()):
        stops, _ = max(counted.items(), key=lambda item: (item[1], len(item[0]), item[0]))
        if len(stops) < 2:
            continue
        pattern_trips = members[route, direction, stops]
        starts = sorted({t for trip in pattern_trips if (t := stop_times[trip][0][1]) is not None})
        gaps = [b - a for a, b in pairwise(starts)]
        headways = [headway_of[t] for t in pattern_trips if t in headway_of]
        headway = min(headways) if headways else int(median(gaps)) if gaps else hours[1] - hours[0]
        run = _run_seconds(
            city, stops, dict(reversed(stop_times[pattern_trips[0]]))
        )  # a loop's first call counts
        name = f"{route} {direction}".strip()
        codes = tuple(city.code(s) for s in stops)
        offset = starts[0] % headway if starts else 0
        lines.append(Line(name, codes, headway, run, both_ways=False, offset=offset))
    return lines


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
