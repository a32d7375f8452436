"""Flowmap tables: what Flowmap.blue asks of its sheets.

Its reader is a web page that takes them from a spreadsheet service, so its rules (columns, ids that join, formats of time) are checked
here on what pandas reads. The library that draws for it, flowmap.gl, is kepler.gl's flow layer: test_kepler.py opens that.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exported import PLACES, STOPS, city_release, mechanism_release, released_trips, zone_trips

import cbdp
from cbdp.release import About, Dates
from cbdp.release.export import export

pandas = pytest.importorskip("pandas", reason="no reader: pip install pandas")


def sheets(folder: Path) -> tuple[Any, Any, dict[str, str]]:
    locations, flows = (pandas.read_csv(folder / f"{name}.csv", dtype={"id": str, "origin": str, "dest": str}) for name in ("locations", "flows"))  # fmt: skip
    properties = pandas.read_csv(folder / "properties.csv").set_index("property")["value"].to_dict()
    return locations, flows, properties


def test_locations_and_flows_have_the_columns_and_join(tmp_path: Path) -> None:
    """Every flow's ends are locations; counts are whole; times have the one format with date and seconds that Flowmap.blue reads."""
    release, trips = city_release(places=PLACES)
    locations, flows, properties = sheets(export(release, tmp_path / "out", "flowmap"))
    assert list(locations.columns) == ["id", "name", "lat", "lon"]
    assert list(flows.columns) == ["origin", "dest", "count", "time"]
    assert set(flows["origin"]) | set(flows["dest"]) <= set(locations["id"])
    at = {r["id"]: (r["name"], r["lat"], r["lon"]) for _, r in locations.iterrows()}
    assert at == {
        str(s): (n, y, x) for s, n, y, x in zip(PLACES.ids, PLACES.names, PLACES.lat, PLACES.lon, strict=True)
    }
    found = {
        (int(o), int(d), f"{dt.datetime.strptime(t, '%Y-%m-%d %H:%M:%S'):%H:%M}"): n  # noqa: DTZ007
        for o, d, n, t in flows.itertuples(index=False)
    }
    assert found == trips
    assert properties["title"] == "Published trips"
    assert "epsilon: 1" in properties["description"]
    assert "stand-ins" in properties["description"]


def test_the_day_of_a_release_is_its_date(tmp_path: Path) -> None:
    """Published dates are used; a trip of the second day is on the second day."""
    day = dt.date(2026, 3, 2)
    one, _ = city_release(places=PLACES, about=About("One day", period=Dates(day, day)))
    _, flows, properties = sheets(export(one, tmp_path / "one", "flowmap"))
    assert {t[:10] for t in flows["time"]} == {"2026-03-02"}
    assert "stand-ins" not in properties["description"]
    march = About("A month", period=Dates(day, day + dt.timedelta(days=29)))
    _, flows, properties = sheets(export(replace(one, about=march), tmp_path / "month", "flowmap"))
    assert {t[:10] for t in flows["time"]} == {"2001-01-01"}  # of no day in particular
    assert "stand-ins" in properties["description"]
    days = cbdp.Universe(origin=STOPS, destination=STOPS, day=["2026-03-02", "2026-03-03"])
    _, flows, _ = sheets(
        export(released_trips(days, {(7, 30, "2026-03-03"): 1}, places=PLACES), tmp_path / "two", "flowmap")
    )
    assert flows["time"].tolist() == ["2026-03-03 00:00:00"]


def test_zones_intervals_and_no_time(tmp_path: Path) -> None:
    """Zones by name, intervals beside the counts, and no time where there are no periods."""
    release, trips = city_release(places=PLACES)
    locations, flows, _ = sheets(export(release, tmp_path / "zones", "flowmap", level="zone"))
    assert set(locations["id"]) == {"north", "north & east", "south"}
    assert flows["count"].sum() == sum(zone_trips(trips).values())
    _, flows, _ = sheets(export(mechanism_release(), tmp_path / "ends", "flowmap", intervals=0.9))
    assert ((flows["low"] <= flows["count"]) & (flows["count"] <= flows["high"])).all()
    plain = released_trips(cbdp.Universe(origin=STOPS, destination=STOPS), {(7, 30): 2}, places=PLACES)
    _, flows, properties = sheets(export(plain, tmp_path / "plain", "flowmap"))
    assert list(flows.columns) == ["origin", "dest", "count"]
    assert "stand-ins" not in properties["description"]
