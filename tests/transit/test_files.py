"""Cities from CSV tables and GTFS feeds."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from cbdp.errors import InputError
from cbdp.transit.city import Line, city_from_csv, city_from_gtfs, zones_from_csv
from cbdp.transit.modes import ModeRule

STOPS = "stop,zone,hub,x,y\na,n,1,0,0\nb,n,0,3,0\nc,s,1,0,9\nd,s,0,3,9\n"

LINES = "line,stop,headway,seconds\nblue,a,300,\nblue,c,300,700\n"


def test_csv_city(tmp_path: Path) -> None:
    """Tables of stops, lines and times make the city that the columns make."""
    (tmp_path / "stops.csv").write_text(STOPS)
    (tmp_path / "lines.csv").write_text(LINES)
    city = city_from_csv(tmp_path / "stops.csv", tmp_path / "lines.csv")
    assert city.names == tuple("abcd")
    assert city.lines == (Line("blue", (0, 2), 300, (700,)),)
    pairs = [(p, q) for p in "abcd" for q in "abcd" if p != q]
    (tmp_path / "times.csv").write_text("from,to,seconds\n" + "".join(f"{p},{q},77\n" for p, q in pairs))
    timed = city_from_csv(tmp_path / "stops.csv", tmp_path / "lines.csv", tmp_path / "times.csv")
    assert set(timed.seconds.ravel().tolist()) == {0, 77}
    (tmp_path / "times.csv").write_text("from,to,seconds\na,b,77\n")
    with pytest.raises(InputError, match="cannot be reached"):
        city_from_csv(tmp_path / "stops.csv", None, tmp_path / "times.csv")


def test_metres_follow_the_quickest_way(tmp_path: Path) -> None:
    """Pairs that a table of times leaves out are as far apart as the stops on the way there; hubs are chosen by these ways."""
    rows = "".join(f"s{i},{i},0\n" for i in range(5))
    (tmp_path / "stops.csv").write_text(f"stop,x,y\n{rows}")
    pairs = [(i, j) for i in range(5) for j in range(5) if abs(i - j) == 1]
    times = "".join(f"s{i},s{j},60,1000\n" for i, j in pairs)
    (tmp_path / "times.csv").write_text(f"from,to,seconds,metres\n{times}")
    city = city_from_csv(tmp_path / "stops.csv", None, tmp_path / "times.csv")
    steps = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    assert (city.seconds == 60 * steps).all()
    assert (city.metres == 1000 * steps).all()
    assert [city.names[h] for h in city.hubs] == ["s2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zone,x,y\nn,0,0\n", "no column 'stop'"),
        ("stop,zone,hub\na,n,1\n", "neither the columns x and y"),
        ("stop,zone,hub,x,y\na,n,maybe,0,0\n", "'maybe'"),
        ("stop,zone,hub,x,y\na,n,1,east,0\n", "'east'"),
        ("stop,zone,hub,x,y\n", "no rows"),
        ("stop,zone,hub,lat,lon\na,n,1,99,0\n", "latitude"),
    ],
)
def test_bad_csv_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """Missing columns and values that are no numbers are named."""
    (tmp_path / "stops.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        city_from_csv(tmp_path / "stops.csv")
    with pytest.raises(InputError, match="no file"):
        city_from_csv(tmp_path / "none.csv")


FEED = {
    "stops.txt": "stop_id,stop_lat,stop_lon,zone_id\nA,42.0,-83.0,n\nB,42.03,-83.0,n\nC,42.1,-83.0,s\nX,42.2,-83,s\n",
    "routes.txt": "route_id\nR\nQ\n",
    "trips.txt": "route_id,trip_id,direction_id\nR,r1,0\nR,r2,0\nR,b1,1\nR,b2,1\nQ,q1,0\n",
    "stop_times.txt": (
        "trip_id,stop_id,stop_sequence,departure_time\n"
        "r1,A,1,08:00:00\nr1,C,2,08:12:00\nr2,A,1,08:15:00\nr2,C,2,08:27:00\n"
        "b1,C,1,08:05:00\nb1,A,2,08:17:00\nb2,C,1,08:20:00\nb2,A,2,08:32:00\n"
        "q1,A,1,09:00:00\nq1,B,2,09:05:00\nq1,C,3,09:20:00\n"
    ),
}


@pytest.mark.parametrize("packed", [False, True])
def test_gtfs_city(tmp_path: Path, packed: bool) -> None:
    """A feed gives its served stops, zones, hubs where routes meet, and a line per route and direction."""
    for name, text in FEED.items():
        (tmp_path / name).write_text(text)
    feed = tmp_path
    if packed:
        feed = tmp_path / "feed.zip"
        with zipfile.ZipFile(feed, "w") as archive:
            for name, text in FEED.items():
                archive.writestr(f"inner/{name}", text)
    city = city_from_gtfs(feed)
    assert city.names == ("A", "B", "C")
    assert city.zones == ("n", "s")
    assert [city.names[h] for h in city.hubs] == ["A", "C"]
    there, back = (line for line in city.lines if line.name.startswith("R"))
    assert (there.stops, there.headway, there.run, there.offset) == ((0, 2), 900, (720,), 0)
    assert (back.stops, back.offset) == ((2, 0), 300)
    assert city.metres[0, 2] == pytest.approx(11.12 * 1300, rel=0.01)
    assert "shuttle-bus" in ModeRule().choose(city).labels


def test_bad_feeds_are_refused(tmp_path: Path) -> None:
    """A feed without a table, a zone or a known trip says which."""
    with pytest.raises(InputError, match="no GTFS feed"):
        city_from_gtfs(tmp_path / "none")
    with pytest.raises(InputError, match=r"no stop_times.txt"):
        city_from_gtfs(tmp_path)
    (tmp_path / "f.zip").write_text("not a zip")
    with pytest.raises(InputError, match="not a zip file"):
        city_from_gtfs(tmp_path / "f.zip")
    for name, text in FEED.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "stops.txt").write_text(FEED["stops.txt"].replace("83.0,n", "83.0,"))
    with pytest.raises(InputError, match="'A' has no zone_id"):
        city_from_gtfs(tmp_path)
    assert city_from_gtfs(tmp_path, zones={"A": "n", "B": "n"}).zones == ("n", "s")
    (tmp_path / "trips.txt").write_text("route_id,trip_id\nR,r1\n")
    with pytest.raises(InputError, match=r"which trips\.txt does not have"):
        city_from_gtfs(tmp_path, zones={"A": "n", "B": "n"})


def test_zones_of_a_feed_come_from_a_table(tmp_path: Path) -> None:
    """Zones by stop, and hubs where a column marks them; a value that says neither is named."""
    table = tmp_path / "zones.csv"
    table.write_text("stop,zone\nA,n\nC,s\n")
    assert zones_from_csv(table) == ({"A": "n", "C": "s"}, None)
    table.write_text("stop,zone,hub\nA,n,1\nB,n,0\nC,s,yes\n")
    assert zones_from_csv(table) == ({"A": "n", "B": "n", "C": "s"}, ["A", "C"])
    for text, message in (
        ("stop,zone,hub\nA,n,maybe\n", "'maybe' in the column 'hub': give 0 or 1"),
        ("stop\nA\n", "no column 'zone'"),
    ):
        table.write_text(text)
        with pytest.raises(InputError, match=message):
            zones_from_csv(table)
    table.write_bytes(b"stop,zone\n\xff,n\n")
    with pytest.raises(InputError, match="cannot be read"):
        zones_from_csv(table)
