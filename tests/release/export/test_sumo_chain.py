"""The whole way through SUMO: a network by netconvert or netgenerate, trips by od2trips, routes by duarouter, a drive by sumo."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from exported import PLACES, STOPS, ZONES, Key, city_release, released_trips, zone_trips

import cbdp
from cbdp.errors import InputError
from cbdp.release.export import export
from cbdp.release.export.sumo import read_streets
from cbdp_features.places import Stops

PROGRAMS = ("netconvert", "netgenerate", "od2trips", "duarouter", "sumo")
pytestmark = pytest.mark.skipif(
    any(shutil.which(p) is None for p in PROGRAMS), reason="no SUMO here: install it (apt install sumo)"
)
AT = replace(
    PLACES, lat=np.array([42.1, 42.101, 42.109, 42.11]), lon=np.array([-83.4, -83.391, -83.392, -83.399])
)


def run(*words: Any, within: Path) -> None:
    done = subprocess.run([str(w) for w in words], cwd=within, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def square(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four streets around a block on Earth, both ways, and a street off it from which there is no way back."""
    folder = tmp_path_factory.mktemp("square")
    corners = {
        "a": (-83.4, 42.1),
        "b": (-83.39, 42.1),
        "c": (-83.39, 42.11),
        "d": (-83.4, 42.11),
        "e": (-83.38, 42.12),
    }
    nodes = "".join(f'<node id="{n}" x="{x}" y="{y}"/>' for n, (x, y) in corners.items())
    ways = ["ab", "ba", "bc", "cb", "cd", "dc", "da", "ad", "ce"]
    edges = "".join(f'<edge id="{w}" from="{w[0]}" to="{w[1]}"/>' for w in ways)
    rail = '<edge id="rail" from="a" to="c" allow="rail"/>'
    (folder / "n.nod.xml").write_text(f"<nodes>{nodes}</nodes>")
    (folder / "e.edg.xml").write_text(f"<edges>{edges}{rail}</edges>")
    run("netconvert", "-n", "n.nod.xml", "-e", "e.edg.xml", "--proj.utm", "-o", "net.net.xml", within=folder)
    return folder / "net.net.xml"


def routed(folder: Path) -> tuple[Counter[Key], list[list[str]]]:
    """Run the chain that the exported folder describes; the trips by TAZ and hour since midnight, and the routes."""
    for program in ("od2trips", "duarouter"):
        run(program, "-c", f"{program}.cfg", within=folder)
    trips = ET.parse(folder / "trips.xml").getroot().findall("trip")  # noqa: S314
    vehicles = ET.parse(folder / "routes.rou.xml").getroot().findall("vehicle")  # noqa: S314
    assert sorted(v.attrib["id"] for v in vehicles) == sorted(t.attrib["id"] for t in trips)
    assert {v.attrib["id"]: v.attrib["depart"] for v in vehicles} == {
        t.attrib["id"]: t.attrib["depart"] for t in trips
    }
    found = Counter(
        (t.attrib["fromTaz"], t.attrib["toTaz"], int(float(t.attrib["depart"]) // 3600)) for t in trips
    )
    return found, [v.find("route").attrib["edges"].split() for v in vehicles]


def test_every_published_trip_is_routed(square: Path, tmp_path: Path) -> None:
    """From export through od2trips, duarouter and sumo: each flow has its vehicles in its hour, and all of them arrive."""
    release, trips = city_release(places=AT)
    out = export(release, tmp_path / "out", "SUMO", network=square)
    found, routes = routed(out)
    assert found == {(str(o), str(d), int(t[:2])): n for (o, d, t), n in trips.items()}
    assert len(routes) == release.total
    drive = (
        "sumo",
        "-n",
        square,
        "-r",
        "routes.rou.xml",
        "--xml-validation",
        "never",
        "--tripinfo-output",
        "done.xml",
    )
    run(*drive, within=out)
    assert len(ET.parse(out / "done.xml").getroot().findall("tripinfo")) == release.total  # noqa: S314
    used = {edge for route in routes for edge in route}
    assert not used & {"ce", "rail"}


def test_zones_are_routed_from_the_streets_of_their_stops(square: Path, tmp_path: Path) -> None:
    """Also trips inside a zone, and zones whose names SUMO would write as broken XML."""
    release, trips = city_release(places=AT)
    out = export(release, tmp_path / "out", "sumo", level="zone", network=square)
    found, _ = routed(out)
    assert {(unquote(o), unquote(d), t): n for (o, d, t), n in found.items()} == {
        (o, d, int(t[:2])): n for (o, d, t), n in zone_trips(trips).items()
    }
    zones = {t.attrib.get("name", t.attrib["id"]): t for t in ET.parse(out / "taz.xml").getroot().iter("taz")}  # noqa: S314
    assert set(zones) == set(ZONES.values())
    known = read_streets(square)
    for zone, taz in zones.items():
        own = [n for n, stop in enumerate(STOPS) if ZONES[stop] == zone]
        near = Counter(e for s in known.near(AT.lon[own], AT.lat[own], map(str, own)) for e in s)
        assert {s.attrib["id"]: float(s.attrib["weight"]) for s in taz.iter("tazSource")} == near
        assert {s.attrib["id"]: float(s.attrib["weight"]) for s in taz.iter("tazSink")} == near


def test_types_of_days_are_routed_on_days_of_their_own(square: Path, tmp_path: Path) -> None:
    """Weekday trips leave on the first day, Saturday's on the second: nobody drives among the others."""
    universe = cbdp.Universe(
        origin=STOPS,
        destination=STOPS,
        day=["saturday", "weekday"],
        time=cbdp.periods("06:00", "08:00", "1h"),
    )
    trips = {(30, 7, "weekday", "06:00"): 9, (7, 12, "weekday", "07:00"): 2, (30, 7, "saturday", "06:00"): 4}
    out = export(released_trips(universe, trips, places=AT), tmp_path / "out", "sumo", network=square)
    found, _ = routed(out)
    assert found == {("30", "7", 6): 9, ("7", "12", 7): 2, ("30", "7", 30): 4}


def test_a_network_without_a_place_on_earth_takes_named_streets(tmp_path: Path) -> None:
    """netgenerate's grid has no projection: the refusal names the cure, and the cure works."""
    run("netgenerate", "--grid", "--grid.number", "3", "-o", "grid.net.xml", within=tmp_path)
    release, trips = city_release(places=AT)
    with pytest.raises(InputError, match="--edges"):
        export(release, tmp_path / "out", "sumo", network=tmp_path / "grid.net.xml")
    assert not (tmp_path / "out").exists()
    edges = read_streets(tmp_path / "grid.net.xml").edges
    rows = [f"{stop},{edges[3 * n]},1\n{stop},{edges[3 * n + 1]},2.5\n" for n, stop in enumerate(STOPS)]
    (tmp_path / "edges.csv").write_text("place,edge,weight\n" + "".join(rows))
    given = {"network": tmp_path / "grid.net.xml", "edges": tmp_path / "edges.csv"}
    found, routes = routed(export(release, tmp_path / "out", "sumo", **given))
    assert found == {(str(o), str(d), int(t[:2])): n for (o, d, t), n in trips.items()}
    assert len(routes) == release.total


def test_wrong_networks_streets_and_places_are_named(square: Path, tmp_path: Path) -> None:
    """One line each, and nothing is written."""
    release, _ = city_release(places=AT)
    far = Stops(AT.ids, AT.names, AT.lat, AT.lon + 1)
    (tmp_path / "none.xml").write_text("<net/>")
    (tmp_path / "text.xml").write_text("no network")
    (tmp_path / "stray.csv").write_text("place,edge\n30,ce\n")
    (tmp_path / "few.csv").write_text("place,edge\n30,ab\n")
    (tmp_path / "heavy.csv").write_text("place,edge,weight\n30,ab,-1\n")
    (tmp_path / "odd.csv").write_text("zone,street\n30,ab\n")
    for options, said in (
        ({"network": square, "places": far}, "the stop '30' is 8. km away from all streets of net.net.xml"),
        ({"network": tmp_path / "none.xml"}, "is no SUMO network"),
        ({"network": tmp_path / "text.xml"}, "cannot be read as XML"),
        ({"network": square, "edges": tmp_path / "stray.csv"}, "the edge 'ce', which is not in net.net.xml"),
        ({"network": square, "edges": tmp_path / "few.csv"}, "no edge of the place '7', which has trips"),
        ({"network": square, "edges": tmp_path / "heavy.csv"}, "the weight '-1'"),
        ({"network": square, "edges": tmp_path / "odd.csv"}, "it needs place and edge"),
        ({"edges": tmp_path / "few.csv"}, "give network="),
    ):
        with pytest.raises(InputError, match=said):
            export(release, tmp_path / "out", "sumo", **options)
        assert not (tmp_path / "out").exists()
