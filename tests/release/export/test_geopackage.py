"""GeoPackages, read by GDAL (pyogrio, GeoPandas), and by SQLite for what the standard demands of the file itself."""

from __future__ import annotations

import datetime as dt
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from exported import PLACES, STOPS, city_release, mechanism_release, released_trips, zone_trips

import cbdp
from cbdp.errors import InputError
from cbdp.release.export import export

AT = {s: (x, y) for s, x, y in zip(PLACES.ids, PLACES.lon, PLACES.lat, strict=True)}


def layer(path: Path, name: str) -> Any:
    geopandas = pytest.importorskip("geopandas", reason="no reader: pip install geopandas pyogrio")
    pytest.importorskip("pyogrio", reason="no reader: pip install pyogrio")
    return geopandas.read_file(path, layer=name, engine="pyogrio")


def test_flows_are_read_by_gdal(tmp_path: Path) -> None:
    """A line per flow from its origin to its destination, in longitude and latitude, with whole trips; points with their sums."""
    release, trips = city_release(places=PLACES)
    path = export(release, tmp_path / "out.gpkg", "geopackage")
    flows = layer(path, "flows")
    assert flows.crs.to_epsg() == 4326
    assert set(flows.geom_type) == {"LineString"}
    found = {
        (r.origin, r.destination, r.time): r.count
        for r in flows.drop(columns="geometry").itertuples(index=False)
    }
    found = {
        tuple(row[:3]): row[3]
        for row in flows[["origin", "destination", "time", "count"]].to_numpy().tolist()
    }
    assert found == trips
    for o, d, line in zip(flows["origin"], flows["destination"], flows.geometry, strict=True):
        assert list(line.coords) == [AT[o], AT[d]]
    places = layer(path, "places").set_index("place")
    assert set(places.geom_type) == {"Point"}
    for stop in STOPS:
        assert (places.geometry[str(stop)].x, places.geometry[str(stop)].y) == AT[stop]
        assert places["departures"][str(stop)] == sum(n for (o, _, _), n in trips.items() if o == stop)
        assert places["arrivals"][str(stop)] == sum(n for (_, d, _), n in trips.items() if d == stop)


def test_zones_intervals_and_dates_are_read_by_gdal(tmp_path: Path) -> None:
    """Zones are points in the middle of their stops; low and high are the release's answers; dates come back as dates."""
    release = mechanism_release()
    flows = layer(
        export(release, tmp_path / "zones.gpkg", "geopackage", level="zone", intervals=0.9), "flows"
    )
    answer = release.ask(by=["origin.zone", "destination.zone", "time"])
    rows = zip(
        *(answer[n] for n in ("origin.zone", "destination.zone", "time", "count", "low", "high")), strict=True
    )
    wanted = {row[:3]: tuple(map(int, row[3:])) for row in rows if row[3] > 0}
    columns = ["origin", "destination", "time", "count", "low", "high"]
    assert {tuple(r[:3]): tuple(r[3:]) for r in flows[columns].to_numpy().tolist()} == wanted
    days = [dt.date(2026, 3, 2), dt.date(2026, 3, 3)]
    universe = cbdp.Universe(origin=STOPS, destination=STOPS, day=days)
    dated = released_trips(universe, {(7, 30, days[1]): 2}, places=PLACES)
    (day,) = layer(export(dated, tmp_path / "days.gpkg", "geopackage"), "flows")["day"]
    assert day.date() == days[1]


def test_the_file_is_what_the_standard_demands(tmp_path: Path) -> None:
    """OGC 12-128r17: application id, version, intact, the three reference systems, contents with their boxes, registered geometry."""
    release, trips = city_release(places=PLACES)
    path = export(release, tmp_path / "out.gpkg", "geopackage", level="zone")
    with sqlite3.connect(path) as held:
        ask = lambda text: held.execute(text).fetchall()  # noqa: E731
        assert ask("PRAGMA application_id") == [(int.from_bytes(b"GPKG"),)]
        assert ask("PRAGMA user_version") == [(10300,)]
        assert ask("PRAGMA integrity_check") == [("ok",)]
        assert ask("PRAGMA foreign_key_check") == []
        assert {row[0] for row in ask("SELECT srs_id FROM gpkg_spatial_ref_sys")} >= {4326, -1, 0}
        kinds = dict(ask("SELECT table_name, data_type FROM gpkg_contents"))
        assert kinds == {"flows": "features", "places": "features", "about": "attributes"}
        assert dict(ask("SELECT table_name, geometry_type_name FROM gpkg_geometry_columns")) == {
            "flows": "LINESTRING",
            "places": "POINT",
        }
        box = ask("SELECT min_x, min_y, max_x, max_y FROM gpkg_contents WHERE table_name = 'flows'")[0]
        assert box == pytest.approx((-83.4, 42.1, -83.15, 42.35))
        for (shape,) in ask("SELECT geom FROM flows"):
            assert (shape[:2], shape[2], int.from_bytes(shape[4:8], "little")) == (b"GP", 0, 4326)
        assert sum(n for (n,) in ask("SELECT count FROM flows")) == sum(zone_trips(trips).values())
        assert dict(ask("SELECT name, value FROM about"))["epsilon"] == "1"
    held.close()


def test_a_dimension_called_as_a_column_is_refused(tmp_path: Path) -> None:
    """SQLite does not tell case apart, so neither does the check."""
    universe = cbdp.Universe(origin=STOPS, destination=STOPS, FID=["a", "b"])
    release = released_trips(universe, {(7, 30, "a"): 1}, places=PLACES)
    with pytest.raises(InputError, match="a dimension is called 'FID'"):
        export(release, tmp_path / "out.gpkg", "geopackage")
    assert list(tmp_path.iterdir()) == []
