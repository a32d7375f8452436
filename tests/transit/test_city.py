"""Cities from columns, CSV and GTFS; modes; riders."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shuttle_cases import small_city

from cbdp import ConstraintBased
from cbdp.datasets import ann_arbor
from cbdp.datasets.geography import city as geography
from cbdp.errors import InputError
from cbdp.features import odmts
from cbdp.transit.city import Driving, Line, built_in, make_city
from cbdp.transit.demand import arrivals, legs_of, spread, trips_of_release
from cbdp.transit.files import city_from_csv, city_from_gtfs
from cbdp.transit.modes import ModeRule


def test_built_in_modes_are_the_data_sets() -> None:
    """The rule gives every pair of the synthetic city the mode that its data set has."""
    city = built_in()
    modes = ModeRule().choose(city)
    assert len(modes.labels) == 12
    named = modes.names(ann_arbor(hours=("08:00", "08:30")).universe, city)
    assert (named == geography().mode).all()


def test_modes_never_read_demand() -> None:
    """The modes of a city are the same whatever is travelled: they take the city alone."""
    assert list(ModeRule.choose.__annotations__) == ["city", "return"]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_itineraries_join_origin_and_destination(seed: int) -> None:
    """Shuttle, buses and shuttle meet at the same stops, shuttles keep to their zone, and only walks have nothing."""
    city = small_city(np.random.default_rng(seed), 3, 4)
    modes = ModeRule(walk=0.3, border=1.0, long=2.0).choose(city)
    for o in range(len(city)):
        for d in range(len(city)):
            at = o
            access, egress, path = (int(a[0, o, d]) for a in (modes.access, modes.egress, modes.path))
            label = modes.labels[modes.mode[0, o, d]]
            if access >= 0:
                assert modes.first_zone[0, o, d] == city.zone[o]
                assert city.zone[access] == city.zone[o] or label == "shuttle to next zone"
                at = access
            if path >= 0:
                for ride in modes.paths[path]:
                    assert ride.board == at
                    at = ride.alight
            if egress >= 0:
                assert at == egress
                assert modes.last_zone[0, o, d] == city.zone[d] == city.zone[egress]
                at = d
            assert at == d or label == "walk"
            assert label.count("bus") == (len(modes.paths[path]) if path >= 0 else 0)


def test_lines_with_hours_make_modes_of_the_time() -> None:
    """Outside a line's hours its zone's long trips go by shuttle, and labels are of the time too."""
    x, hubs = [0, 1, 9, 10], ["a", "d"]
    run = Line("day", (0, 3), 300, (600,), hours=(8 * 3600, 9 * 3600))
    city = make_city(list("abcd"), x, [0] * 4, ["z"] * 4, hubs, lines=[run])
    modes = ModeRule().choose(city)
    data = ann_arbor(hours=("07:30", "09:30")).universe.dimension("time")
    from cbdp.features import Universe

    universe = Universe(origin=list("abcd"), destination=list("abcd"), time=data)
    named = modes.names(universe, city)
    assert named[1, 2].tolist() == [
        "shuttle",
        "shuttle-bus-shuttle in zone",
        "shuttle-bus-shuttle in zone",
        "shuttle",
    ]
    assert odmts(universe, zones=["z"] * 4, modes=named).size("mode") > 4


def test_ways_are_metric() -> None:
    """Travel times obey the triangle inequality, computed or given; a quicker detour is taken."""
    city = built_in()
    t = city.seconds
    assert all((t[:, [k]] + t[[k], :] >= t).all() for k in range(0, len(city), 13))
    given_times = np.array([[0, 10, 100], [10, 0, 20], [100, 20, 0.0]])
    made = make_city(list("abc"), [0, 1, 2], [0, 0, 0], ["z"] * 3, ["a"], seconds=given_times)
    assert made.seconds[0, 2] == 30


def test_depots_spread_over_the_zone() -> None:
    """A zone's starting places are its hubs first, then each of its stops once."""
    city = built_in()
    for zone in range(4):
        depots = city.depots(zone)
        assert city.hub[depots[:2]].all()
        assert sorted(depots.tolist()) == np.flatnonzero(city.zone == zone).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hubs": ["a"]}, "zone 'y' has no hub"),
        ({"hubs": ["a", "q"]}, "hub 'q' is not a stop"),
        ({"names": ["a", "a", "c"]}, "stands twice"),
        ({"x": [0, 1, np.nan]}, "'c' has no coordinates"),
        (
            {"seconds": np.array([[0, 1, np.inf], [1, 0, np.inf], [1, 1, 0.0]])},
            "'c' cannot be reached from 'a'",
        ),
        ({"seconds": np.full((3, 3), -1.0)}, "cannot be negative"),
        ({"seconds": np.zeros((2, 2))}, "3 stops need"),
        ({"zones": ["x", "x"]}, "2 zones"),
    ],
)
def test_bad_cities_are_refused(change: dict[str, object], message: str) -> None:
    """Each error names the stop, the zone or the shape that is wrong."""
    fine: dict[str, object] = {
        "names": ["a", "b", "c"], "x": [0, 1, 2], "y": [0, 0, 0], "zones": ["x", "x", "y"], "hubs": ["a", "c"],
    }  # fmt: skip
    with pytest.raises(InputError, match=message):
        make_city(**{**fine, **change})


def test_zones_that_no_bus_joins_are_refused() -> None:
    """Where no buses lead between two hubs, the modes name the hubs."""
    city = make_city(["a", "b"], [0, 9], [0, 0], ["x", "y"], ["a", "b"])
    with pytest.raises(InputError, match="hub 'a' to 'b'"):
        ModeRule().choose(city)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("l", (0,), 60, ()), "two or more"),
        (("l", (0, 1), 0, (5,)), "headway of 0"),
        (("l", (0, 1), 60, (5, 5)), "between each stop"),
    ],
)
def test_bad_lines_are_refused(line: tuple[object, ...], message: str) -> None:
    """Lines need stops, a headway and running times."""
    with pytest.raises(InputError, match=message):
        Line(*line)


def test_bad_driving_is_refused() -> None:
    """Nobody drives at no speed or shorter than the beeline."""
    for bad in ({"speed": 0}, {"detour": 0.9}):
        with pytest.raises(InputError):
            Driving(**bad)


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stop,zone\na,n\n", "no column 'hub'"),
        ("stop,zone,hub\na,n,1\n", "neither x and y"),
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
    assert city.metres[0, 2] == pytest.approx(11.12 * 1200, rel=0.01)
    assert "shuttle-bus" in ModeRule().choose(city).labels


def test_bad_feeds_are_refused(tmp_path: Path) -> None:
    """A feed without a table, a zone or a known trip says which."""
    with pytest.raises(InputError, match="no GTFS feed"):
        city_from_gtfs(tmp_path / "none")
    with pytest.raises(InputError, match=r"no stop_times.txt"):
        city_from_gtfs(tmp_path)
    (tmp_path / "f.zip").write_text("not a zip")
    with pytest.raises(InputError, match="no zip"):
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


def test_riders_of_a_release() -> None:
    """Every published trip becomes one rider, inside its period, between its stops; shared trips share seconds."""
    data = ann_arbor(seed=0, hours=("08:00", "10:00"))
    city = built_in()
    release = ConstraintBased(data.features(), 1).simulate(data.counts(), 0)
    trips = trips_of_release(release, city)
    assert len(trips) == release.total
    assert (np.diff(trips.second) >= 0).all()
    period = (trips.second - 8 * 3600) // 1800
    again = np.bincount(
        data.universe.rank_codes([trips.origin, trips.destination, period]), minlength=data.universe.size
    )
    assert (again == release.counts("singleton")).all()
    few = spread(data.universe, release.index, np.maximum(release.value - 1, 0), city)
    rows = set(zip(trips.origin.tolist(), trips.destination.tolist(), trips.second.tolist(), strict=True))
    assert set(zip(few.origin.tolist(), few.destination.tolist(), few.second.tolist(), strict=True)) <= rows


def test_seconds_are_uniform() -> None:
    """Seconds of random riders fill their period evenly (chi-square far below its 1e-6 quantile), and even ones exactly."""
    data = ann_arbor(seed=0, hours=("08:00", "08:30"))
    city = built_in()
    trips = spread(data.universe, np.array([500]), np.array([20_000]), city, seed=3)
    counts = np.bincount((trips.second - 8 * 3600) // 60, minlength=30)
    assert (((counts - 20_000 / 30) ** 2) / (20_000 / 30)).sum() < 80
    even = spread(data.universe, np.array([500]), np.array([3]), city, how="even")
    assert (even.second - 8 * 3600).tolist() == [300, 900, 1500]


@pytest.mark.parametrize(
    ("index", "value", "message"),
    [
        ([0], [1.5], "1.5 trips"),
        ([0], [np.nan], "nan trips"),
        ([0], [-2], "-2 trips"),
        ([10**9], [1], "outside the universe"),
        ([0, 1], [1], "one count"),
    ],
)
def test_bad_counts_are_refused(index: list[int], value: list[float], message: str) -> None:
    """Fractional, missing, negative and misplaced trips are named."""
    data = ann_arbor(seed=0, hours=("08:00", "08:30"))
    with pytest.raises(InputError, match=message):
        spread(data.universe, np.array(index), np.array(value), built_in())


def test_bus_arrivals_follow_the_timetable() -> None:
    """Riders take the first bus that leaves when they are there or later, ride by ride."""
    table = np.array([[[0, 600, 100], [50, 300, 40]]])
    now = np.array([0, 1, 600])
    # 0: leaves 0, there 100, leaves 350, there 390 · 1: leaves 600, there 700, leaves 950, there 990
    assert arrivals(table, np.zeros(3, dtype=np.int64), now).tolist() == [390, 990, 990]


def test_walks_and_buses_have_no_shuttle_legs() -> None:
    """Legs are those of the modes with shuttles, at most two by rider."""
    data = ann_arbor(seed=0, hours=("08:00", "10:00"))
    city = built_in()
    counts = data.counts()
    types = np.flatnonzero(counts)
    trips = spread(data.universe, types, counts[types], city)
    modes = ModeRule().choose(city)
    legs = legs_of(trips, modes)
    label = np.array(modes.labels)[modes.mode[0][trips.origin, trips.destination]]
    expected = np.char.count(label.astype(str), "shuttle")
    assert np.bincount(legs.trip, minlength=len(trips)).tolist() == expected.tolist()
