"""Stops, zones and distances: read from every kind of file, exact geometry, and clear errors."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cbdp
from cbdp.errors import InputError
from cbdp_features import places

ROOT = Path(__file__).parents[2]


def _written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _stops(n: int = 40, seed: int = 0) -> places.Stops:
    rng = np.random.default_rng(seed)
    centre = rng.integers(0, 4, n)
    lat = 37.7 + 0.05 * (centre // 2) + rng.normal(0, 0.004, n)
    lon = -122.4 + 0.06 * (centre % 2) + rng.normal(0, 0.004, n)
    return places.Stops(tuple(f"s{i}" for i in range(n)), tuple("n" * n), lat, lon)


CSV = 'station_id,name,lat,lon,area\n 7 ,Main St,37.1,-122.5,north\n12,"Oak, 2nd",37.2,-122.4,south\n'
FEED = (
    "\ufeffstop_id,stop_name,stop_lat,stop_lon,zone_id,location_type\r\n"
    '7,Main St,37.1,-122.5,north,0\r\nS,Station,37.3,-122.5,,1\r\n12,"Oak, 2nd",37.2,-122.4,south,\r\n'
)
POINTS = json.dumps(
    {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "id": 7,
                "properties": {"name": "Main St", "zone": "north"},
                "geometry": {"type": "Point", "coordinates": [-122.5, 37.1]},
            },
            {
                "type": "Feature",
                "properties": {"id": "12", "name": "Oak, 2nd", "zone": "south"},
                "geometry": {"type": "Point", "coordinates": [-122.4, 37.2, 9.0]},
            },
        ],
    }
)


def _zipped(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "feed.zip", "w") as archive:
        archive.writestr("feed/stops.txt", FEED)
    return folder / "feed.zip"


@pytest.mark.parametrize(
    ("make", "columns"),
    [
        (lambda f: _written(f, "s.csv", CSV), {"id": "station_id", "zone": "area"}),
        (lambda f: _written(f, "stops.txt", FEED), None),
        (lambda f: _written(f, "stops.txt", FEED).parent, None),
        (_zipped, None),
        (lambda f: _written(f, "s.geojson", POINTS), None),
    ],
)
def test_stops_are_read_from_every_kind(make: Callable[[Path], Path], columns: Any, tmp_path: Path) -> None:
    """CSV, GTFS as a file, folder or zip, and GeoJSON points give the same stops."""
    stops = places.stops(make(tmp_path), columns=columns, ids=int)
    assert stops.ids == (7, 12)
    assert stops.names == ("Main St", "Oak, 2nd")
    assert stops.attribute() == {7: "north", 12: "south"}
    assert stops.attribute("lat") == {7: 37.1, 12: 37.2}
    assert stops.lon.tolist() == [-122.5, -122.4]
    universe = cbdp.Universe(origin=stops.dimension(), destination=list(stops.ids))
    universe = universe.with_attribute("destination.zone", "destination", stops.attribute())
    assert universe.count_types(["origin.zone", "destination.zone"]).tolist() == [1, 1, 1, 1]


def _collection(*shapes: tuple[str, str, Any]) -> str:
    return json.dumps(
        {
            "type": "FeatureCollection",
            "features": [
                {"type": "Feature", "properties": {"zone": z}, "geometry": {"type": t, "coordinates": c}}
                for z, t, c in shapes
            ],
        }
    )


def _square(x: float, y: float, size: float) -> list[list[float]]:
    return [[x, y], [x + size, y], [x + size, y + size], [x, y + size], [x, y]]


def _at(*points: tuple[float, float]) -> places.Stops:
    lon, lat = (np.array(v, dtype=float) for v in zip(*points, strict=True))
    return places.Stops(tuple(range(len(points))), ("",) * len(points), lat, lon)


def test_polygons_have_holes_and_parts(tmp_path: Path) -> None:
    """A hole is outside, an island in it is inside, and a zone may have parts."""
    outer, hole, inner = _square(0, 0, 10), _square(2, 2, 6)[::-1], _square(4, 4, 2)
    path = _written(
        tmp_path,
        "z.geojson",
        _collection(
            ("ring", "MultiPolygon", [[outer, hole], [_square(20, 0, 1)]]),
            ("hole", "Polygon", [hole, inner]),
            ("island", "Polygon", [inner]),
        ),
    )
    stops = _at((1, 1), (3, 3), (5, 5), (20.5, 0.5), (9, 5), (3, 5))
    assert places.zones_by_polygon(stops, path).zone == ("ring", "hole", "island", "ring", "ring", "hole")


def test_polygons_agree_with_a_winding_count(tmp_path: Path) -> None:
    """Random points in random star-shaped polygons with a hole: the sum of angles says the same."""
    rng = np.random.default_rng(6)
    for turn in range(20):
        angle = np.sort(rng.uniform(0, 2 * np.pi, 9))
        around = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.uniform(2, 5, 9)[:, None]
        rings = [np.vstack([around, around[:1]]), np.vstack([around, around[:1]])[::-1] * 0.4]
        points = rng.uniform(-5, 5, (200, 2))
        path = _written(
            tmp_path,
            f"{turn}.geojson",
            _collection(
                ("in", "Polygon", [r.tolist() for r in rings]), ("far", "Polygon", [_square(100, 0, 1)])
            ),
        )
        turns = sum(_winding(points, ring) for ring in rings)
        inside = points[turns != 0]
        assert set(places.zones_by_polygon(_at(*inside.tolist()), path).zone) == {"in"}
        for point in points[turns == 0][:20]:
            with pytest.raises(InputError, match="the stop 0 lies in no polygon"):
                places.zones_by_polygon(_at(tuple(point.tolist())), path)


def _winding(points: Any, ring: Any) -> Any:
    """How often a ring goes round each point: the sum of the angles its edges are seen under, by full turns."""
    seen = ring[None] - points[:, None]
    heading = np.arctan2(seen[..., 1], seen[..., 0])
    step = (np.diff(heading, axis=1) + np.pi) % (2 * np.pi) - np.pi
    return np.rint(step.sum(axis=1) / (2 * np.pi)).astype(int)


def test_a_stop_on_a_shared_line_lies_in_one_zone(tmp_path: Path) -> None:
    """Neighbouring polygons share their border, slanted or straight: nobody is in both or in none."""
    slanted = [[[0, 0], [4, 0], [7, 9], [0, 9], [0, 0]], [[4, 0], [12, 0], [12, 9], [7, 9], [4, 0]]]
    path = _written(
        tmp_path,
        "z.geojson",
        _collection(
            ("a", "Polygon", [slanted[0]]),
            ("b", "Polygon", [slanted[1][::-1]]),
            ("c", "Polygon", [_square(-9, 0, 9)]),
        ),
    )
    line = [(4 + 3 * t / 9, t) for t in np.linspace(0, 8.99, 200)] + [
        (0.0, y) for y in np.linspace(0, 8.9, 50)
    ]
    assert set(places.zones_by_polygon(_at(*line), path).zone) <= {"a", "b", "c"}


def test_overlapping_zones_are_refused(tmp_path: Path) -> None:
    """A stop in two zones is named with both."""
    path = _written(
        tmp_path,
        "z.geojson",
        _collection(("a", "Polygon", [_square(0, 0, 4)]), ("b", "Polygon", [_square(2, 2, 4)])),
    )
    assert places.zones_by_polygon(_at((1, 1)), path).zone == ("a",)
    with pytest.raises(InputError, match="the stop 1 lies in the zones 'a' and 'b'"):
        places.zones_by_polygon(_at((1, 1), (3, 3)), path)


def test_clusters_are_compact_and_the_same_in_any_order() -> None:
    """Every stop is nearest to its own zone's middle, the hub nearest to the middle; order does not matter."""
    stops = _stops()
    zoned, hubs = places.zones_by_clustering(stops, 4)
    points = np.column_stack([stops.lat, stops.lon * np.cos(np.radians(stops.lat.mean()))])
    labels = sorted(set(zoned.zone or ()))
    assert labels == ["Z01", "Z02", "Z03", "Z04"]
    member = np.array([labels.index(z) for z in zoned.zone or ()])
    middle = np.array([points[member == m].mean(axis=0) for m in range(4)])
    apart = ((points[:, None] - middle) ** 2).sum(axis=2)
    assert (apart.argmin(axis=1) == member).all()
    assert hubs == tuple(stops.ids[i] for i in apart.argmin(axis=0))
    assert (np.diff(middle[:, 0].round(2)) <= 0).all()  # from north to south
    order = np.random.default_rng(1).permutation(len(stops))
    mixed = places.Stops(tuple(stops.ids[i] for i in order), stops.names, stops.lat[order], stops.lon[order])
    again, same = places.zones_by_clustering(mixed, 4)
    assert again.attribute() == zoned.attribute()
    assert same == hubs


def test_clusters_hold_across_the_date_line_and_at_the_limits() -> None:
    """Longitudes 179.99 and −179.99 are neighbours; one zone, and a zone per place, are possible."""
    stops = _at((179.99, 0), (-179.99, 0), (170.0, 0), (170.01, 0))
    zone = places.zones_by_clustering(stops, 2)[0].zone
    assert zone is not None
    assert zone[0] == zone[1] != zone[2] == zone[3]
    assert set(places.zones_by_clustering(stops, 1)[0].zone or ()) == {"Z01"}
    assert len(set(places.zones_by_clustering(stops, 4)[0].zone or ())) == 4
    with pytest.raises(InputError, match="choose a number from 1 to 4"):
        places.zones_by_clustering(stops, 5)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_cells_may_be_kept_apart_by_other_marks(mark: str, tmp_path: Path) -> None:
    """As spreadsheets of some countries write them."""
    path = _written(
        tmp_path, "s.csv", "id,name,lat,lon\n7,Main,37.1,-122.5\n8,Oak,37.2,-122.4\n".replace(",", mark)
    )
    found = places.stops(path)
    assert (found.ids, found.names, found.lat.tolist()) == (("7", "8"), ("Main", "Oak"), [37.1, 37.2])


def test_fare_zones_with_gaps_are_none(tmp_path: Path) -> None:
    """GTFS lets stops have no zone; whoever names the column wants all of them."""
    path = _written(tmp_path, "stops.txt", "stop_id,stop_lat,stop_lon,zone_id\n1,42,-83,a\n2,42.1,-83,\n")
    assert places.stops(path).zone is None
    with pytest.raises(InputError, match="the stop '2' has no zone"):
        places.stops(path, columns={"zone": "zone_id"})


def test_balanced_zones_have_equally_many_stops_in_any_order() -> None:
    """Sizes differ by one at most, also where most stops are in one place of the map; order does not matter."""
    rng = np.random.default_rng(4)
    far = rng.normal(0, 3, (20, 2))
    points = np.concatenate([far, rng.normal(0, 0.05, (117, 2))])
    stops = _at(*map(tuple, points.tolist()))
    for many in (1, 2, 5, 8, 137):
        zoned = places.zones_by_halving(stops, many)
        sizes = [(zoned.zone or ()).count(label) for label in set(zoned.zone or ())]
        assert len(sizes) == many
        assert max(sizes) - min(sizes) <= 1
    order = rng.permutation(len(stops))
    mixed = places.Stops(tuple(stops.ids[i] for i in order), stops.names, stops.lat[order], stops.lon[order])
    assert places.zones_by_halving(mixed, 8).attribute() == places.zones_by_halving(stops, 8).attribute()
    with pytest.raises(InputError, match="cannot make 138 zones of 137 stops: choose a number from 1 to 137"):
        places.zones_by_halving(stops, 138)


def test_balanced_zones_do_not_overlap() -> None:
    """Each zone has a rectangle of its own: of any two, one ends in some direction before the other begins."""
    stops = _at(*map(tuple, np.random.default_rng(7).uniform(-1, 1, (60, 2)).tolist()))
    zone = np.array(places.zones_by_halving(stops, 7).zone)
    boxes = [
        (
            stops.lat[zone == z].min(),
            stops.lat[zone == z].max(),
            stops.lon[zone == z].min(),
            stops.lon[zone == z].max(),
        )
        for z in sorted(set(zone.tolist()))
    ]
    for n, a in enumerate(boxes):
        for b in boxes[:n]:
            assert a[1] < b[0] or b[1] < a[0] or a[3] < b[2] or b[3] < a[2]


def test_coordinates_may_have_a_decimal_comma(tmp_path: Path) -> None:
    """As spreadsheets of many countries save them, with semicolons; what could be thousands is refused."""
    read = places.stops(_written(tmp_path, "s.csv", "id;lat;lon\nx;37,5;-122,25\ny;37.5;-122.25\n"))
    assert read.lat.tolist() == [37.5, 37.5]
    assert read.lon.tolist() == [-122.25, -122.25]
    for wrong in ("37,500,1", "37,500.1", "37,5x"):
        with pytest.raises(cbdp.InputError, match=f"the coordinate '{wrong}': write degrees"):
            places.stops(_written(tmp_path, "s.csv", f"id;lat;lon\nx;{wrong};1\n"))


def test_distance_bands_are_great_circles() -> None:
    """A degree along a meridian or the equator is 111.195 km; half-way round is half the circumference."""
    stops = _at((0, 0), (0, 1), (1, 0), (180, 0))
    km = places.distances_km(stops)
    assert np.allclose(km[0], [0, 111.195, 111.195, np.pi * 6371.0088], atol=1e-3)
    assert np.allclose(km, km.T)
    bands = places.distance_bands(stops, (100, 150))
    assert bands[0].tolist() == ["0-100 km", "100-150 km", "100-150 km", "150+ km"]
    universe = cbdp.Universe(o=list(stops.ids), d=list(stops.ids)).with_attribute("mode", ("o", "d"), bands)
    assert universe.count_types(["mode"]).sum() == 16
    on_edge = places.distance_bands(stops, (km[0, 1],))
    assert on_edge[0, 1].endswith("+ km")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda f: places.stops(f / "none.csv"), "there is no file"),
        (places.stops, "there is no file"),
        (lambda f: places.stops(_written(f, "s.csv", "id\n")), "holds no stops"),
        (lambda f: places.stops(_written(f, "s.csv", "")), "is not a CSV file"),
        (lambda f: places.stops(_written(f, "s.csv", "stop\nx\n")), "no column 'id': there are stop"),
        (lambda f: places.stops(_written(f, "s.csv", "id\nx\nx\n")), "'x' is listed twice"),
        (lambda f: places.stops(_written(f, "s.csv", "id,lat\nx\n")), "row 2 of .* has 1 fields"),
        (lambda f: places.stops(_written(f, "s.csv", "id,name\n,y\n")), "stop number 1 has no id"),
        (lambda f: places.stops(_written(f, "s.csv", "id\nx\n"), ids=int), "is not a whole number"),
        (lambda f: places.stops(_written(f, "s.csv", "id,lat,lon\nx,north,1\n")), "coordinate 'north'"),
        (lambda f: places.stops(_written(f, "s.csv", "id,lat,lon\nx,91,1\n")), "latitude 91"),
        (lambda f: places.stops(_written(f, "s.csv", "id,lat,lon\nx,1,\n")), "give both, in degrees"),
        (lambda f: places.stops(_written(f, "s.csv", "id,zone\nx,a\ny,\n")), "'y' has no zone"),
        (lambda f: places.stops(_written(f, "s.csv", "id\nx\n"), columns={"x": "y"}), "columns names 'x'"),
        (lambda f: places.stops(_written(f, "s.csv", "id\nx\n")).attribute(), "have no zones"),
        (lambda f: places.stops(_written(f, "s.csv", "id\nx\n")).attribute("colour"), "no 'colour'"),
        (lambda f: places.stops(_written(f, "s.zip", "x")), "cannot be read"),
        (lambda f: places.stops(_written(f, "s.geojson", "[1]")), "not a GeoJSON FeatureCollection"),
        (
            lambda f: places.stops(_written(f, "s.geojson", _collection(("a", "Polygon", [])))),
            "stops are points",
        ),
        (lambda f: places.distances_km(places.stops(_written(f, "s.csv", "id\nx\n"))), "no coordinates"),
        (lambda _: places.distance_bands(_stops(), (2, 1)), "above 0 in rising order"),
        (
            lambda f: places.zones_by_polygon(
                _stops(), _written(f, "z.geojson", _collection(("", "Polygon", [])))
            ),
            "no property 'zone'",
        ),
        (
            lambda f: places.zones_by_polygon(
                _stops(), _written(f, "z.geojson", _collection(("a", "Point", [1, 2])))
            ),
            "zones are polygons",
        ),
        (
            lambda f: places.zones_by_polygon(
                _stops(), _written(f, "z.geojson", _collection(("a", "Polygon", [[1]])))
            ),
            "without proper coordinates",
        ),
    ],
)
def test_bad_places_are_one_clear_error(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    """Public files may be quoted: the error names the stop, the row or the column."""
    with pytest.raises(InputError, match=message):
        make(tmp_path)


def test_places_load_no_engine() -> None:
    """Reading stops needs neither DuckDB nor Arrow, and the counts' module none before it counts."""
    script = (
        "import sys, cbdp_features.places, cbdp.counting; "
        "print([m for m in ['duckdb', 'pyarrow', 'scipy', 'ibis', 'numba'] if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"
