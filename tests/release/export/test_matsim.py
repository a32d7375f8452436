"""MATSim plans, read back by matsim-tools."""

from __future__ import annotations

import gzip
from collections import Counter
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from exported import MODES, PLACES, STOPS, Key, city_release, released_trips
from hypothesis import given, settings
from hypothesis import strategies as st

import cbdp
from cbdp.errors import InputError
from cbdp.release.export import export
from cbdp.release.export.flows import Period
from cbdp.release.export.matsim import departures


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # its reader closes no file
def test_matsim_plans_are_read_by_matsim_tools(tmp_path: Path) -> None:
    """One person per trip, from the origin's coordinates to the destination's, leaving inside the period, by its mode."""
    matsim = pytest.importorskip("matsim", reason="matsim-tools is not installed")
    release, trips = city_release(places=PLACES)
    for name in ("plans.xml", "plans.xml.gz"):
        export(release, tmp_path / name, "matsim")
    plans = matsim.plan_reader_dataframe(str(tmp_path / "plans.xml.gz"))
    assert len(plans.persons) == len(plans.plans) == len(plans.legs) == release.total
    assert plans.persons["id"].is_unique
    assert len(plans.activities) == 2 * release.total
    by_place = {
        (round(x, 7), round(y, 7)): s for s, x, y in zip(PLACES.ids, PLACES.lon, PLACES.lat, strict=True)
    }
    found: Counter[Key] = Counter()
    for person, plan in matsim.plan_reader(str(tmp_path / "plans.xml")):
        start, leg, end = list(plan)
        o, d = (by_place[float(a.attrib["x"]), float(a.attrib["y"])] for a in (start, end))
        said = {a.attrib["name"]: a.text for a in person.find("attributes")}
        assert (said["origin"], said["destination"]) == (str(o), str(d))
        assert (start.attrib["type"], end.attrib["type"]) == ("origin", "destination")
        assert leg.attrib["mode"] == {"rail": "pt", "bus": "pt", "walk": "walk"}[MODES[d]]
        assert said["mode"] == MODES[d]
        hour = start.attrib["end_time"][:2]
        assert said["time"] == f"{hour}:00"
        found[o, d, said["time"]] += 1
    assert found == trips
    packed = gzip.decompress((tmp_path / "plans.xml.gz").read_bytes())
    assert packed == (tmp_path / "plans.xml").read_bytes()
    assert b"EPSG:4326" in packed


def test_matsim_without_modes_or_periods_goes_by_transit_all_day(tmp_path: Path) -> None:
    """Where nothing says how or when, legs are "pt", or what was asked for, spread over the day."""
    universe = cbdp.Universe(destination=STOPS, origin=STOPS)
    release = released_trips(universe, {(7, 30): 2}, places=PLACES)  # to 7 from 30
    for wish, mode in (({}, "pt"), ({"mode": "bike"}, "bike")):
        path = export(release, tmp_path / mode, "matsim", **wish)
        persons = ET.parse(path).getroot().findall("person")  # noqa: S314
        assert [p.find("plan/leg").attrib["mode"] for p in persons] == [mode, mode]
        starts = [p.find("plan/activity").attrib for p in persons]
        assert sorted(a["end_time"] for a in starts) == ["06:00:00", "18:00:00"]
        assert {float(a["x"]) for a in starts} == {-83.4}


def test_matsim_in_metres_is_where_the_projection_says(tmp_path: Path) -> None:
    """With a coordinate system, x and y are its metres (UTM zone 17 by its formula, to a metre), and the file names it."""
    pytest.importorskip("pyproj", reason="pyproj is not installed")
    release, _ = city_release(places=PLACES)
    path = export(release, tmp_path / "plans.xml", "matsim", crs="EPSG:32617")
    root = ET.parse(path).getroot()  # noqa: S314
    assert root.find("attributes/attribute").text == "EPSG:32617"
    found = {(float(a.attrib["x"]), float(a.attrib["y"])) for a in root.iter("activity")}
    wanted = {transverse_mercator(lat, lon) for lat, lon in zip(PLACES.lat, PLACES.lon, strict=True)}
    assert sorted(found) == [pytest.approx(w, abs=1.0) for w in sorted(wanted)]
    with pytest.raises(InputError, match="unknown coordinate system 'EPSG:1'"):
        export(release, tmp_path / "other.xml", "matsim", crs="EPSG:1")


def transverse_mercator(lat: float, lon: float) -> tuple[float, float]:
    """East and north in UTM zone 17, by the series of Snyder (1987), equations 8-9 and 8-10."""
    a, e2, k0 = 6378137.0, 0.00669438, 0.9996
    p, dl = np.radians(lat), np.radians(lon + 81)
    ep2 = e2 / (1 - e2)
    n, t, c, big = a / np.sqrt(1 - e2 * np.sin(p) ** 2), np.tan(p) ** 2, ep2 * np.cos(p) ** 2, dl * np.cos(p)
    m = a * (
        (1 - e2 / 4 - 3 * e2**2 / 64 - 5 * e2**3 / 256) * p
        - (3 * e2 / 8 + 3 * e2**2 / 32 + 45 * e2**3 / 1024) * np.sin(2 * p)
        + (15 * e2**2 / 256 + 45 * e2**3 / 1024) * np.sin(4 * p)
        - (35 * e2**3 / 3072) * np.sin(6 * p)
    )
    east = (
        k0 * n * (big + (1 - t + c) * big**3 / 6 + (5 - 18 * t + t**2 + 72 * c - 58 * ep2) * big**5 / 120)
        + 500_000
    )
    north = k0 * (m + n * np.tan(p) * (big**2 / 2 + (5 - t + 9 * c + 4 * c**2) * big**4 / 24))
    return float(east), float(north)


# what population_v6.dtd allows, in our words: element → children in order, required attributes, other attributes
GRAMMAR = {
    "population": (("attributes", "person"), set(), {"desc"}),
    "person": (("attributes", "plan"), {"id"}, set()),
    "attributes": (("attribute",), set(), set()),
    "attribute": ((), {"name", "class"}, set()),
    "plan": (("activity", "leg"), set(), {"selected", "score", "type"}),
    "activity": ((), {"type"}, {"x", "y", "end_time", "start_time", "link", "facility", "max_dur"}),
    "leg": ((), {"mode"}, {"dep_time", "trav_time"}),
}


def test_matsim_plans_keep_the_grammar_of_their_dtd(tmp_path: Path) -> None:
    """Elements, their order and their attributes are those of MATSim's population_v6.dtd, which the file names."""
    release, _ = city_release(places=PLACES)
    path = export(release, tmp_path / "plans.xml", "matsim")
    assert "population_v6.dtd" in path.read_text("utf-8")
    for element in ET.parse(path).getroot().iter():  # noqa: S314
        children, needed, allowed = GRAMMAR[element.tag]
        tags = [child.tag for child in element]
        assert set(tags) <= set(children)
        if element.tag != "plan":
            assert tags == sorted(tags, key=children.index)
        else:
            assert tags == ["activity", "leg", "activity"]
        assert needed <= set(element.attrib) <= needed | allowed


@settings(deadline=None)
@given(st.integers(0, 300), st.integers(0, 80_000), st.integers(1, 7200))
def test_departures_are_evenly_spaced(trips: int, begin: int, length: int) -> None:
    """In order of time, the k-th of n leaves at (k + ½)/n of the period, rounded down to the second."""
    found = departures(Period((), begin, begin + length), trips)
    exact = [begin + Fraction(2 * k + 1, 2 * trips) * length for k in range(trips)]
    assert sorted(found.tolist()) == [int(t) for t in exact]


def test_departures_of_one_origin_are_spread_over_the_period() -> None:
    """Any tenth of the trips, as they stand in order of origin, leaves in every quarter of the period."""
    times = departures(Period((), 0, 3600), 5000)
    for part in np.split(times, 10):
        assert set(part // 900) == {0, 1, 2, 3}
