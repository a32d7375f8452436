"""Stops and zones: public places read from CSV, GTFS or GeoJSON, and ways to put stops into zones. Nothing private."""

from __future__ import annotations

import csv
import io
import itertools
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.untrusted import parse_json, zip_member
from cbdp_features import Dimension

Row = Mapping[str, Any]  # of CSV or JSON
Columns = Mapping[str, str]

EARTH_RADIUS_KM = 6371.0088  # mean radius (IUGG)
STOP_FIELDS = ("id", "name", "lat", "lon", "zone")
GTFS_COLUMNS = {"id": "stop_id", "name": "stop_name", "lat": "stop_lat", "lon": "stop_lon", "zone": "zone_id"}


@dataclass(frozen=True, eq=False)
class Stops:
    """Public stops: their ids, names, coordinates (NaN where there are none) and zones."""

    ids: tuple[Hashable, ...]
    names: tuple[str, ...] = field(repr=False)
    lat: Floats = field(repr=False)
    lon: Floats = field(repr=False)
    zone: tuple[str, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.ids:
            raise InputError("there are no stops: give at least one")
        seen: set[Hashable] = set()
        for stop in self.ids:
            if stop in seen:
                raise InputError(f"the stop {stop!r} is listed twice: give each stop its own id")
            seen.add(stop)
        for name in ("names", "lat", "lon", "zone"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.ids):
                raise InputError(f"{len(self.ids)} stops have {len(values)} values of {name!r}")
        for stop, lat, lon in zip(self.ids, self.lat.tolist(), self.lon.tolist(), strict=True):
            if abs(lat) > 90 or abs(lon) > 180 or np.isnan(lat) != np.isnan(lon):
                raise InputError(
                    f"the stop {stop!r} has latitude {lat} and longitude {lon}: give both, in degrees"
                )

    def __len__(self) -> int:
        return len(self.ids)

    def attribute(self, of: str = "zone") -> dict[Hashable, Hashable]:
        """Each stop's zone, name, lat or lon: what `Universe.with_attribute` takes as labels."""
        if of not in STOP_FIELDS[1:]:
            raise InputError(f"stops have no {of!r}: choose one of {', '.join(STOP_FIELDS[1:])}")
        values = getattr(self, {"name": "names"}.get(of, of))
        if values is None:
            raise InputError("the stops have no zones: read them from a column, or use a function of zones")
        listed = values.tolist() if isinstance(values, np.ndarray) else values
        return dict(zip(self.ids, listed, strict=True))

    def dimension(self) -> Dimension:
        """The stops as a dimension of a universe, with their zones as the attribute `zone` where they have any."""
        return Dimension(self.ids) if self.zone is None else Dimension(self.ids, zone=self.zone)


def stops(path: str | Path, *, columns: Columns | None = None, ids: Callable[[str], Hashable] = str) -> Stops:
    """Read stops from CSV, GTFS (`stops.txt`, or a folder or zip that holds it), GBFS station information or GeoJSON points.

    `columns` maps id, name, lat, lon and zone to the names in the file; name, zone and coordinates may be absent. Of GTFS only stops and
    platforms are read, and zones with gaps are none. `ids=int` makes numbers of the ids, where the trips have numbers.
    """
    path = Path(path)
    for name in columns or {}:
        if name not in STOP_FIELDS:
            raise InputError(
                f"columns names {name!r}, which stops do not have: they have {', '.join(STOP_FIELDS)}"
            )
    gtfs = _is_folder(path) or path.suffix.lower() in (".txt", ".zip")
    if path.suffix.lower() in (".geojson", ".json"):
        rows = _stations(path) or [_geojson_row(feature, path) for feature in _geojson_points(path)]
    else:
        rows = table_rows(stops_text(path), path)
    if gtfs:
        rows = [row for row in rows if (row.get("location_type") or "0") == "0"]
    if not rows:
        raise InputError(f"{str(path)!r} holds no stops")
    names = {**({f: f for f in STOP_FIELDS} if not gtfs else GTFS_COLUMNS), **(columns or {})}
    for name in {"id", *(columns or {})}:
        if all(names[name] not in row for row in rows):
            raise InputError(f"{str(path)!r} has no column {names[name]!r}: there are {', '.join(rows[0])}")
    return _stops_from_rows(rows, names, ids, strict=not gtfs or "zone" in (columns or {}))


def _stops_from_rows(
    rows: Sequence[Row], names: Columns, ids: Callable[[str], Hashable], *, strict: bool
) -> Stops:
    stop_ids = []
    for place, row in enumerate(rows):
        text = str(row.get(names["id"], "") if row.get(names["id"]) is not None else "").strip()
        if not text:
            raise InputError(f"stop number {place + 1} has no id: give it one")
        try:
            stop_ids.append(ids(text))
        except ValueError:
            raise InputError(
                f"the id of the stop {text!r} is not a whole number, but the trips have whole numbers: convert one of them"
            ) from None
    lat = np.array(
        [_parsed_degrees(row.get(names["lat"]), stop) for row, stop in zip(rows, stop_ids, strict=True)]
    )
    lon = np.array(
        [_parsed_degrees(row.get(names["lon"]), stop) for row, stop in zip(rows, stop_ids, strict=True)]
    )
    zones = [str(row.get(names["zone"]) or "").strip() for row in rows]
    named = tuple(
        str(row.get(names["name"]) or stop).strip() for row, stop in zip(rows, stop_ids, strict=True)
    )
    if strict and any(zones) and not all(zones):
        raise InputError(f"the stop {stop_ids[zones.index('')]!r} has no zone, others have: give it one")
    return Stops(tuple(stop_ids), named, lat, lon, tuple(zones) if all(zones) else None)


def _parsed_degrees(text: object, stop: Hashable) -> float:
    try:  # spreadsheets of many countries write 37,78 for 37.78; a degree has no thousands
        value = float("nan") if text is None or text == "" else float(str(text).replace(",", "."))
    except (TypeError, ValueError):
        value = float("inf")
    if np.isinf(value):
        raise InputError(f"the stop {stop!r} has the coordinate {text!r}: write degrees, like 37.78")
    return value


# Files


def stops_text(path: Path) -> str:
    """The text of a file, or of the stops.txt in a GTFS folder or zip."""
    try:
        if _is_folder(path):
            return stops_text(path / "stops.txt")
        if path.suffix.lower() == ".zip":
            content = zip_member(path, "stops.txt")
            if content is None:
                raise InputError(f"{str(path)!r} has no stops.txt: it is not a GTFS feed")  # noqa: TRY301 - read on, it is this error
            return content.decode("utf-8-sig")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"there is no file {str(path)!r}") from None
    except InputError:
        raise
    except (OSError, ValueError):  # also names that no file can have
        raise InputError(f"{str(path)!r} cannot be read: damaged, or not UTF-8 (Excel: CSV UTF-8)") from None


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - it is False, not an error, for names that are too long or hold what none can


def table_rows(text: str, path: Path) -> list[Row]:
    mark = max(",;\t", key=text.partition("\n")[0].count)  # between cells
    lines = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=mark)
    try:
        header, *rows = [[cell.strip() for cell in line] for line in lines if line]
    except (csv.Error, ValueError):
        raise InputError(f"{str(path)!r} is not a CSV file: its first line must name the columns") from None
    for number, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise InputError(
                f"row {number} of {str(path)!r} has {len(row)} fields, its first line has {len(header)}: correct the row"
            )
    return [dict(zip(header, row, strict=True)) for row in rows]


def _geojson_points(path: Path) -> list[Mapping[str, Any]]:
    text = stops_text(path)
    try:
        document: Any = parse_json(text)
        features = document["features"] if document["type"] == "FeatureCollection" else None
    except (InputError, TypeError, KeyError):
        features = None
    if not isinstance(features, list) or not all(map(_is_feature, features)):
        raise InputError(f"{str(path)!r} is not a GeoJSON FeatureCollection with geometries")
    return features


def _is_feature(feature: object) -> bool:
    """Whether it has a geometry with coordinates, and properties that are plain values, or none."""
    if not isinstance(feature, dict) or not isinstance(feature.get("geometry"), dict):
        return False
    properties = feature.get("properties")
    return (
        isinstance(feature["geometry"].get("type"), str)
        and isinstance(feature["geometry"].get("coordinates"), list)
        and (properties is None or isinstance(properties, dict))
    )


def _stations(path: Path) -> list[Row]:
    """The stations of a GBFS station_information.json; none where the file is another. From version 3 on, names have languages."""
    text = stops_text(path)
    try:
        document: Any = parse_json(text)
        return [
            {
                "id": station["station_id"],
                "name": station["name"] if isinstance(station["name"], str) else station["name"][0]["text"],
                "lat": station["lat"],
                "lon": station["lon"],
            }
            for station in document["data"]["stations"]
        ]
    except (InputError, TypeError, KeyError, IndexError):
        return []


def _geojson_row(feature: Mapping[str, Any], path: Path) -> Row:
    """A GeoJSON point as a row; the feature's own id stands in where its properties have none."""
    geometry = feature["geometry"]
    if geometry["type"] != "Point" or len(geometry["coordinates"]) < 2:
        raise InputError(f"{str(path)!r} holds a {geometry.get('type')}: stops are points")
    lon, lat = geometry["coordinates"][:2]
    identity = {} if feature.get("id") is None else {"id": feature["id"]}
    return {**identity, **(feature.get("properties") or {}), "lat": lat, "lon": lon}


# Zones


def zones_by_polygon(stops: Stops, path: str | Path, *, label: str = "zone") -> Stops:
    """Return the stops with the zones of the GeoJSON polygons they lie in, named by the property `label`.

    Holes are outside. A stop on the line between two polygons lies in exactly one of them.
    """
    _check_located(stops)
    zone_of_stop: list[str | None] = [None] * len(stops)
    for feature in _geojson_points(Path(path)):
        zone = _zone_name(feature, label, path)
        inside = np.zeros(len(stops), dtype=bool)
        for rings in _polygons(feature["geometry"], path):
            inside |= _in_polygon(stops.lon, stops.lat, rings)
        for place in np.flatnonzero(inside).tolist():
            if zone_of_stop[place] not in (None, zone):
                raise InputError(
                    f"the stop {stops.ids[place]!r} lies in the zones {zone_of_stop[place]!r} and {zone!r}: zones must not overlap"
                )
            zone_of_stop[place] = zone
    zones = tuple(zone for zone in zone_of_stop if zone is not None)
    if len(zones) < len(stops):
        raise InputError(f"the stop {stops.ids[zone_of_stop.index(None)]!r} lies in no polygon: add its zone")
    return replace(stops, zone=zones)


def _zone_name(feature: Mapping[str, Any], label: str, path: str | Path) -> str:
    named = (feature.get("properties") or {}).get(label)
    if not isinstance(named, str | int | float) or named == "":
        raise InputError(f"a polygon of {str(path)!r} has no property {label!r}: name its zone there")
    return str(named)


def _polygons(geometry: Mapping[str, Any], path: str | Path) -> list[list[Floats]]:
    """Polygons as lists of rings, the first around, the others holes."""
    if geometry.get("type") not in ("Polygon", "MultiPolygon"):
        raise InputError(f"{str(path)!r} holds a {geometry.get('type')}: zones are polygons")
    try:
        listed = geometry["coordinates"] if geometry["type"] == "MultiPolygon" else [geometry["coordinates"]]
        polygons = [[np.array([point[:2] for point in ring], dtype=float) for ring in p] for p in listed]
    except (KeyError, TypeError, ValueError, IndexError):
        polygons = []
    if not polygons or not all(
        ring.ndim == 2 and ring.shape[1] == 2 and np.isfinite(ring).all() for p in polygons for ring in p
    ):
        raise InputError(f"{str(path)!r} holds a polygon without proper coordinates")
    return polygons


def _in_polygon(x: Floats, y: Floats, rings: Sequence[Floats]) -> NDArray[np.bool_]:
    """Even–odd rule: a ray to the right crosses the rings an odd number of times. An edge holds its lower end only."""
    odd = np.zeros(len(x), dtype=bool)
    for ring in rings:
        following = np.roll(ring, -1, axis=0)
        for (x0, y0), (x1, y1) in zip(ring.tolist(), following.tolist(), strict=True):
            if y0 == y1:
                continue
            between = (y0 > y) != (y1 > y)
            if y0 > y1:  # neighbours walk a shared line in opposite ways, and must round alike
                x0, y0, x1, y1 = x1, y1, x0, y0  # noqa: PLW2901
            odd ^= between & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return odd


def zones_by_halving(stops: Stops, zones: int) -> Stops:
    """Return the stops in `zones` zones "Z01", "Z02", … with equally many stops in each, or one more.

    Recursive bisection across the longer side, as in a k-d tree (Bentley 1975): zones are small where stops are close together.

    >>> row = Stops(("a", "b", "c", "d"), ("a", "b", "c", "d"), np.zeros(4), np.array([0.0, 0.1, 0.2, 9.0]))
    >>> zones_by_halving(row, 2).zone
    ('Z01', 'Z01', 'Z02', 'Z02')
    """
    order, points = _canonical_order(stops)
    _check_zones(zones, len(stops), f"{len(stops)} stops")
    parts = [(np.arange(len(stops)), zones)]
    while any(number > 1 for _, number in parts):
        parts = [half for part, number in parts for half in _bisected(points, part, number)]
    width = max(2, len(str(zones)))
    labels = {order[i]: f"Z{n:0{width}d}" for n, (part, _) in enumerate(parts, 1) for i in part.tolist()}
    return replace(stops, zone=tuple(labels[stop] for stop in range(len(stops))))


def _bisected(points: Floats, part: Ints, zones: int) -> list[tuple[Ints, int]]:
    """A part cut across its longer side, from west to east or from north to south, with the zones that each side becomes."""
    if zones == 1:
        return [(part, 1)]
    east, north = np.ptp(points[part], axis=0)
    place = points[part, 0] if east >= north else -points[part, 1]
    ordered, left = part[np.argsort(place, kind="stable")], zones // 2
    cut = left * (len(part) // zones) + min(left, len(part) % zones)
    return [(ordered[:cut], left), (ordered[cut:], zones - left)]


def zones_by_clustering(stops: Stops, zones: int) -> tuple[Stops, tuple[Hashable, ...]]:
    """Return the stops in `zones` compact zones "Z01", "Z02", … from north to south, and the stop in the middle of each.

    Lloyd's (1982) k-means on projected metres, started by farthest-first traversal (Gonzalez 1985): the same stops give the same zones,
    in whatever order they are listed.
    """
    from scipy.cluster.vq import vq

    order, points = _canonical_order(stops)
    different = len(np.unique(points, axis=0))
    _check_zones(zones, different, f"stops at {different} places")
    centres = points[_farthest_first(points, zones)]
    member, _ = vq(points, centres)
    for _ in range(500):
        centres = _cluster_means(points, member, centres)
        nearest_centre, _ = vq(points, centres)
        if (nearest_centre == member).all():
            break
        member = nearest_centre
    rank = np.argsort(np.lexsort((centres[:, 0], -centres[:, 1])))
    width = max(2, len(str(zones)))
    label = [f"Z{r + 1:0{width}d}" for r in rank]
    zone = np.empty(len(stops), dtype=object)
    zone[order] = [label[m] for m in member]
    nearest = [order[int(np.argmin(((points - centres[c]) ** 2).sum(axis=1)))] for c in np.argsort(rank)]
    return replace(stops, zone=tuple(zone)), tuple(stops.ids[i] for i in nearest)


def _canonical_order(stops: Stops) -> tuple[list[int], Floats]:
    """The stops in an order that does not depend on how they are listed, and their coordinates in metres."""
    _check_located(stops)
    order = sorted(range(len(stops)), key=lambda i: (stops.lat[i], stops.lon[i], str(stops.ids[i])))
    return order, _projected_metres(stops.lat[order], stops.lon[order])


def _check_zones(zones: int, most: int, what: str) -> None:
    if isinstance(zones, bool) or not isinstance(zones, int) or not 1 <= zones <= most:
        raise InputError(f"cannot make {zones!r} zones of {what}: choose a number from 1 to {most}")


def _farthest_first(points: Floats, k: int) -> list[int]:
    """The point nearest the mean, then always the one farthest from those chosen (Gonzalez 1985)."""
    chosen = [int(np.argmin(((points - points.mean(axis=0)) ** 2).sum(axis=1)))]
    distance = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < k:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    return chosen


def _cluster_means(points: Floats, member: Ints, before: Floats) -> Floats:
    """The mean of each zone's points; a zone that lost all of them moves to the point farthest from its centre."""
    centres = before.copy()
    apart = ((points - before[member]) ** 2).sum(axis=1)
    for zone in range(len(before)):
        members = points[member == zone]
        if len(members):
            centres[zone] = members.mean(axis=0)
        else:
            farthest = int(np.argmax(apart))
            centres[zone], apart[farthest] = points[farthest], -1.0
    return centres


def _projected_metres(lat: Floats, lon: Floats) -> Floats:
    """Equirectangular projection about the mean latitude, in metres: accurate over a region, also across the date line."""
    east = np.radians((lon - lon[0] + 180) % 360 - 180) * np.cos(np.radians(lat.mean()))
    return np.column_stack([east, np.radians(lat - lat.mean())]) * EARTH_RADIUS_KM * 1000


def _check_located(stops: Stops) -> None:
    for stop, lat in zip(stops.ids, stops.lat.tolist(), strict=True):
        if np.isnan(lat):
            raise InputError(f"the stop {stop!r} has no coordinates: give its latitude and longitude")


# Pairs


def distances_km(stops: Stops) -> Floats:
    """Great-circle distances between all stops by the haversine formula, as an array over (origin, destination)."""
    _check_located(stops)
    lat, lon = np.radians(stops.lat), np.radians(stops.lon)
    half = np.sin((lat[:, None] - lat) / 2) ** 2
    half += np.cos(lat[:, None]) * np.cos(lat) * np.sin((lon[:, None] - lon) / 2) ** 2
    return np.asarray(2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(half, 1.0))))


def distance_bands(stops: Stops, edges_km: Iterable[float] = (1, 2, 4)) -> NDArray[np.str_]:
    """The band of distance of every (origin, destination): labels for an attribute of two dimensions, say a mode.

    A distance on an edge belongs to the band that begins there.
    """
    edges = [float(e) for e in edges_km]
    if not edges or edges[0] <= 0 or any(b <= a for a, b in itertools.pairwise(edges)):
        raise InputError(f"edges_km are {edges}: give distances above 0 in rising order")
    starts = [0.0, *edges]
    labels = [f"{a:g}-{b:g} km" for a, b in zip(starts, edges, strict=False)] + [f"{edges[-1]:g}+ km"]
    return np.array(labels)[np.searchsorted(edges, distances_km(stops), side="right")]
