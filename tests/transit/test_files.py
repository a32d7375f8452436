"""Cities from CSV tables and GTFS feeds."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from cbdp.errors import InputError
from cbdp.transit.city import Line, city_from_csv, zones_from_csv
from cbdp.transit.gtfs import city_from_gtfs
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


CALENDAR = (
    "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,start_date,end_date\n"
    "week,1,1,1,1,1,0,0,20260302,20260331\nsat,0,0,0,0,0,1,0,20260302,20260331\n"
)


def timetable(folder: Path, runs: dict[str, tuple[str, str, str]], **tables: str) -> Path:
    """A feed of one route: by trip its service, its first departure and its stops, ten minutes apart."""
    folder.mkdir(exist_ok=True)
    for name, text in {"stops": FEED["stops.txt"], **tables}.items():
        (folder / f"{name}.txt").write_text(text)
    (folder / "trips.txt").write_text(
        "route_id,trip_id,service_id\n" + "".join(f"R,{t},{service}\n" for t, (service, _, _) in runs.items())
    )
    rows = [
        f"{trip},{stop},{k},{int(start[:2]) + k // 6:02d}:{int(start[3:]) + 10 * k % 60:02d}:00\n"
        for trip, (_, start, stops) in runs.items()
        for k, stop in enumerate(stops)
    ]
    (folder / "stop_times.txt").write_text("trip_id,stop_id,stop_sequence,departure_time\n" + "".join(rows))
    return folder


def test_a_city_is_one_service_day(tmp_path: Path) -> None:
    """Weekday and Saturday buses are not pooled: the day with most trips is taken, or the day that is asked for."""
    runs = {f"w{h}": ("week", f"{h:02d}:00", "AC") for h in (8, 9, 10)}
    runs |= {f"s{h}": ("sat", f"{h:02d}:30", "AC") for h in (8, 10)}
    feed = timetable(tmp_path / "feed", runs, calendar=CALENDAR)
    assert [(n.headway, n.offset) for n in city_from_gtfs(feed, hubs="AC").lines] == [(3600, 0)]
    saturday = city_from_gtfs(feed, hubs="AC", date="2026-03-07")
    assert [(n.headway, n.offset) for n in saturday.lines] == [(7200, 1800)]
    with pytest.raises(InputError, match=r"no trip .* runs on 2026-03-08"):
        city_from_gtfs(feed, hubs="AC", date="20260308")
    with pytest.raises(InputError, match="'2026March'"):
        city_from_gtfs(feed, hubs="AC", date="2026-March")
    changes = "service_id,date,exception_type\nweek,20260309,2\nsat,20260309,1\nsat,20260310,1\n"
    (feed / "calendar_dates.txt").write_text(changes)
    assert city_from_gtfs(feed, hubs="AC", date="2026-03-09").lines == saturday.lines
    assert city_from_gtfs(feed, hubs="AC").lines[0].headway == 1800  # Tuesday 10 March has both


def test_a_route_without_directions_runs_both_ways(tmp_path: Path) -> None:
    """Trips in the other order are the way back, also where its stops are across the street."""
    runs = {f"a{m}": ("", f"08:{m}", "ABC") for m in (10, 20, 30)} | {
        "b": ("", "08:25", "CBA"),
        "c": ("", "08:50", "CBA"),
    }
    lines = city_from_gtfs(timetable(tmp_path / "one", runs), hubs="AC").lines
    assert [(n.name, n.stops, n.headway) for n in lines] == [
        ("R", (0, 1, 2), 600),
        ("R back", (2, 1, 0), 1500),
    ]
    stops = FEED["stops.txt"] + "D,42.1,-83.0001,s\nE,42.0,-83.0001,n\n"
    runs = {"a": ("", "08:00", "ABC"), "b": ("", "08:30", "ABC"), "c": ("", "08:15", "DE")}
    lines = city_from_gtfs(timetable(tmp_path / "two", runs, stops=stops), hubs="ACDE").lines
    assert [n.stops for n in lines] == [(0, 1, 2), (3, 4)]


def test_every_row_of_frequencies_counts(tmp_path: Path) -> None:
    """A trip leaves at the headway of each of its parts of the day, between its start and its end."""
    head = "trip_id,start_time,end_time,headway_secs\n"
    rows = head + "a,06:00:00,09:00:00,600\na,09:00:00,10:00:00,1800\n"
    feed = timetable(tmp_path / "feed", {"a": ("", "00:00", "AC")}, frequencies=rows)
    assert city_from_gtfs(feed, hubs="AC").lines[0].headway == 600
    later = city_from_gtfs(feed, hubs="AC", hours=(9 * 3600, 24 * 3600))
    assert later.lines[0].headway == 1800
    assert city_from_gtfs(feed, hubs="AC", hours=(11 * 3600, 24 * 3600)).lines == ()
    (feed / "frequencies.txt").write_text(head + "a,09:00:00,06:00:00,600\n")
    with pytest.raises(InputError, match="the end after the start"):
        city_from_gtfs(feed, hubs="AC")


def test_platforms_of_a_station_are_one_place_to_change(tmp_path: Path) -> None:
    """Lines that stop at two platforms of a station meet there, and it is a hub."""
    stops = (
        "stop_id,stop_lat,stop_lon,zone_id,parent_station\nA,42.0,-83.0,n,\nP,42.05,-83.0,m,S\nQ,42.05,-83.0,m,S\n"
        "C,42.1,-83.0,s,\nS,42.05,-83.0,m,\n"
    )
    feed = timetable(tmp_path / "feed", {"a": ("", "08:00", "AP"), "c": ("", "08:00", "QC")}, stops=stops)
    (feed / "trips.txt").write_text("route_id,trip_id\nR,a\nT,c\n")
    city = city_from_gtfs(feed, hubs=["A", "Q", "C"])
    assert city.names == ("A", "P", "Q", "C")
    assert [city.names[h] for h in city.hubs] == ["A", "P", "C"]
    assert [n.stops for n in city.lines] == [(0, 1), (1, 3)]
    assert [city.names[h] for h in city_from_gtfs(feed, hubs=["A", "S", "C"]).hubs] == ["A", "P", "C"]


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
