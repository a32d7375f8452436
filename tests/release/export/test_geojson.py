"""GeoJSON: lines from origin to destination."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from exported import PLACES, city_release, mechanism_release, released_trips, zone_trips

import cbdp
from cbdp.errors import InputError
from cbdp.release.export import export
from cbdp.release.export.flows import flows_of
from cbdp_features.places import Stops


def test_geojson_lines_go_from_origin_to_destination(tmp_path: Path) -> None:
    """Each flow starts at its origin's coordinates and ends at its destination's, with its count and period."""
    release, trips = city_release(places=PLACES)
    export(release, tmp_path / "out.geojson", "geojson")
    made = json.loads((tmp_path / "out.geojson").read_text("utf-8"))
    assert made["type"] == "FeatureCollection"
    at = dict(zip(PLACES.ids, zip(PLACES.lon, PLACES.lat, strict=True), strict=True))
    found = {}
    for flow in made["features"]:
        p = flow["properties"]
        assert flow["geometry"]["type"] == "LineString"
        start, end = flow["geometry"]["coordinates"]
        assert tuple(start) == pytest.approx(at[p["origin"]])
        assert tuple(end) == pytest.approx(at[p["destination"]])
        found[p["origin"], p["destination"], p["time"]] = p["count"]
    assert found == trips
    assert all(isinstance(count, int) for count in found.values())


def test_geojson_of_zones_is_between_the_means_of_their_stops(tmp_path: Path) -> None:
    """Zones have no coordinates of their own; trips inside one are a line to itself."""
    release, trips = city_release()
    export(release, tmp_path / "out.geojson", "geojson", level="zone", places=PLACES)
    flows_ = json.loads((tmp_path / "out.geojson").read_text("utf-8"))["features"]
    found = {
        (f["properties"]["origin"], f["properties"]["destination"], f["properties"]["time"]): f["properties"][
            "count"
        ]
        for f in flows_
    }
    assert found == zone_trips(trips)
    south = next(f for f in flows_ if f["properties"]["origin"] == f["properties"]["destination"] == "south")
    assert south["geometry"]["coordinates"] == [[pytest.approx(-83.15), pytest.approx(42.35)]] * 2


def test_places_without_coordinates_matter_only_where_trips_are(tmp_path: Path) -> None:
    """A stop that trips use must have coordinates; one that none uses need not."""
    lost = replace(PLACES, lat=np.array([np.nan, 42.2, 42.3, 42.4]), lon=np.array([np.nan, 1.0, 2.0, 3.0]))
    release, _ = city_release()
    for form in ("geojson", "matsim", "geopackage", "geoparquet", "flowmap", "kepler"):
        with pytest.raises(InputError, match="no coordinates: give places"):
            export(release, tmp_path / "out", form)
        with pytest.raises(InputError, match="place 30 has no coordinates"):
            export(release, tmp_path / "out", form, places=lost)
    universe = release.features.universe
    other = released_trips(universe, {(1001, 7, "06:00"): 4}, places=lost)
    export(other, tmp_path / "out", "geojson")
    assert len(json.loads((tmp_path / "out").read_text("utf-8"))["features"]) == 1


def test_geojson_has_intervals_where_asked(tmp_path: Path) -> None:
    """Low and high are what the release answers of the same flow."""
    release = mechanism_release()
    path = export(release, tmp_path / "out.geojson", "geojson", level="zone", intervals=0.9)
    flows_ = [f["properties"] for f in json.loads(path.read_text("utf-8"))["features"]]
    found = {tuple(f[n] for n in ("origin", "destination", "time", "count", "low", "high")) for f in flows_}
    answer = release.ask(by=["origin.zone", "destination.zone", "time"])
    rows = zip(
        *(answer[n] for n in ("origin.zone", "destination.zone", "time", "count", "low", "high")), strict=True
    )
    assert found == {row for row in rows if row[3] > 0}


def test_geojson_is_read_by_gdal(tmp_path: Path) -> None:
    """As a layer of lines in longitude and latitude, with whole numbers."""
    geopandas = pytest.importorskip("geopandas", reason="no reader: pip install geopandas pyogrio")
    release, trips = city_release(places=PLACES)
    flows_ = geopandas.read_file(export(release, tmp_path / "out.geojson", "geojson"), engine="pyogrio")
    assert (flows_.crs.to_epsg(), set(flows_.geom_type)) == (4326, {"LineString"})
    rows = flows_[["origin", "destination", "time", "count"]].to_numpy().tolist()
    assert {
        (o, d, f"{t:%H:%M}"): n for o, d, t, n in rows
    } == trips  # GDAL knows a time of day when it sees one


def test_a_zone_is_in_the_middle_of_its_stops_each_counted_once(tmp_path: Path) -> None:
    """A stop at which trips begin and end weighs as much as one at which they only end."""
    zones = {"A": "n", "B": "n", "C": "s"}
    origins = cbdp.Dimension(["A", "C"], zone=["n", "s"])
    ends = cbdp.Dimension(list(zones), zone=list(zones.values()))
    release = released_trips(cbdp.Universe(origin=origins, destination=ends), {("C", "A"): 3})
    places = Stops(tuple(zones), tuple(zones), np.array([42.0, 42.3, 42.5]), np.array([-83.0, -83.3, -83.5]))
    export(release, tmp_path / "out.geojson", "geojson", level="zone", places=places)
    (flow,) = json.loads((tmp_path / "out.geojson").read_text("utf-8"))["features"]
    assert flow["geometry"]["coordinates"][1] == [pytest.approx(-83.15), pytest.approx(42.15)]


def test_ends_of_other_names_and_ids_that_are_text_in_a_table(tmp_path: Path) -> None:
    """Boarding and alighting need not be named, and stops that are numbers are met by text in a table of places."""
    stops = cbdp.Dimension([30, 7])
    release = released_trips(cbdp.Universe(boarding=stops, alighting=stops), {(30, 7): 4})
    places = Stops(("30", "7"), ("a", "b"), np.array([42.0, 42.3]), np.array([-83.0, -83.3]))
    export(release, tmp_path / "out.geojson", "geojson", places=places)
    (flow,) = json.loads((tmp_path / "out.geojson").read_text("utf-8"))["features"]
    assert flow["geometry"]["coordinates"] == [[-83.0, 42.0], [-83.3, 42.3]]


def test_labels_of_digits_are_no_dates() -> None:
    """Numbers that could be read as days follow each other as they are listed, and are not years apart."""
    stops = cbdp.Dimension(["A", "B"])
    universe = cbdp.Universe(origin=stops, destination=stops, day=["20250301", "20260301"])
    flows = flows_of(released_trips(universe, {("A", "B", "20250301"): 1}))
    assert [p.begin for p in flows.periods] == [0, 86400]
