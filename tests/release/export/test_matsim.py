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
        assert leg.attrib["mode"] == MODES[d]
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
