"""A release in the formats of others, read back by the readers of those who made them."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cbdp
from cbdp.errors import InputError
from cbdp.estimate.intervals import Interval
from cbdp.features.places import Stops
from cbdp.privacy.claim import Claim
from cbdp.privacy.composition import Spend
from cbdp.release.export import FORMATS, export
from cbdp.release.export.flows import Period, flows
from cbdp.release.export.matsim import departures
from cbdp.release.export.xarray import dataset
from cbdp.release.recipe import Recipe
from cbdp.release.release import Release

STOPS: tuple[Any, ...] = (30, 7, 1001, 12)  # numbers that are no places in a list, and not in order
ZONES = {30: "north", 7: "north & east", 1001: "south", 12: "south"}
MODES = {30: "walk", 7: "bus", 1001: "rail", 12: "bus"}
PLACES = Stops(
    STOPS, ("a", "b", "c", "d"), np.array([42.1, 42.2, 42.3, 42.4]), np.array([-83.4, -83.3, -83.2, -83.1])
)

Key = tuple[Any, ...]


def _made(universe: cbdp.Universe, trips: dict[Key, int], **fields: Any) -> Release:
    """A release of exactly these trips."""
    dag = cbdp.FeatureDag(universe, fields.pop("features", []))
    index = np.array([int(universe.rank(*key)) for key in trips], dtype=np.int64)
    assert (index >= 0).all()
    order = np.argsort(index)
    value = np.array(list(trips.values()), dtype=np.int64)
    claim = Claim(cbdp.Trip(), Spend("all", Fraction(1)))
    return Release(dag, Recipe("by hand"), claim, index[order], value[order], **fields)


def _city(stops: tuple[Any, ...] = STOPS, **fields: Any) -> tuple[Release, dict[Key, int]]:
    """Trips that are not the same in both directions, nor in both periods, nor in the order of the stops' ids."""
    dim = cbdp.Dimension(stops, zone=[ZONES.get(s, str(s)) for s in stops])
    universe = cbdp.Universe(origin=dim, destination=dim, time=cbdp.periods("06:00", "08:00", "1h"))
    universe = universe.without_equal("origin", "destination")
    modes = [[MODES.get(d, "bus") for d in stops] for _ in stops]
    universe = universe.with_attribute("mode", ["origin", "destination"], modes)
    a, b, c, d = stops
    trips = {
        (a, b, "06:00"): 5,
        (b, a, "06:00"): 1,
        (c, a, "06:00"): 2,
        (a, b, "07:00"): 3,
        (d, c, "07:00"): 70_000 if fields.pop("large", False) else 7,
        (d, a, "07:00"): 1,
    }
    features = [
        cbdp.Feature("time", by="time"),
        cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"]),
    ]
    return _made(universe, trips, features=features, **fields), trips


def _zones(trips: dict[Key, int]) -> dict[Key, int]:
    found: Counter[Key] = Counter()
    for (o, d, t), count in trips.items():
        found[ZONES[o], ZONES[d], t] += count
    return dict(found)


# CSV


def test_csv_has_the_trips_and_every_feature(tmp_path: Path) -> None:
    """Whole trips under their labels; each feature's counts add up to the total."""
    release, trips = _city()
    export(release, tmp_path / "out", "csv")
    with (tmp_path / "out" / "trips.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(int(r["origin"]), int(r["destination"]), r["time"]): int(r["count"]) for r in rows} == trips
    for name in release.features.features:
        with (tmp_path / "out" / "features" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        listed = len(release.index) if name == "singleton" else release.features.size(name)
        assert len(rows) == listed
        assert sum(int(r["count"]) for r in rows) == release.total
        assert all(r["low"] == "" for r in rows)
        if name == "zone":
            found = {(r["origin.zone"], r["destination.zone"], r["time"]): int(r["count"]) for r in rows}
            assert {k: v for k, v in found.items() if v} == _zones(trips)


def test_csv_keeps_awkward_text(tmp_path: Path) -> None:
    """Commas, quotes, line ends and signs in labels come back from the standard library's reader."""
    stops = ("a,b", 'say "x"', "two\nlines", "=ü")
    release, trips = _city(stops)
    export(release, tmp_path / "out", "csv")
    with (tmp_path / "out" / "trips.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(r["origin"], r["destination"], r["time"]): int(r["count"]) for r in rows} == trips


# OMX


def _omx(path: Path) -> Any:
    openmatrix = pytest.importorskip("openmatrix", reason="openmatrix is not installed")
    return openmatrix.open_file(str(path))


def test_omx_is_read_by_openmatrix(tmp_path: Path) -> None:
    """A matrix of whole numbers per period; the lookup finds rows as origins and columns as destinations."""
    release, trips = _city(large=True)
    export(release, tmp_path / "out.omx", "omx")
    with _omx(tmp_path / "out.omx") as omx:
        assert omx.version() == b"0.2"
        assert tuple(omx.shape()) == (4, 4)
        assert omx.list_matrices() == ["06:00", "07:00"]
        assert omx.list_mappings() == ["stop"]
        place = omx.mapping("stop")
        assert set(place) == set(STOPS)
        total = 0
        for period in omx.list_matrices():
            matrix = np.array(omx[period])
            assert matrix.dtype == np.int32
            total += matrix.sum()
            for o in STOPS:
                for d in STOPS:
                    assert matrix[place[o], place[d]] == trips.get((o, d, period), 0)
        assert total == release.total


def test_omx_of_zones_and_of_text(tmp_path: Path) -> None:
    """Stops are added up to zones; ids that are no numbers are text; ids that are numbers in text are numbers."""
    release, trips = _city()
    export(release, tmp_path / "zones.omx", "omx", level="zone")
    with _omx(tmp_path / "zones.omx") as omx:
        place = {key.decode(): p for key, p in omx.mapping("zone").items()}
        found = {
            (o, d, t): int(omx[t][place[o], place[d]])
            for t in omx.list_matrices()
            for o in place
            for d in place
        }
    assert {key: count for key, count in found.items() if count} == _zones(trips)
    text, _ = _city(("30", "7", "-5", "12"))
    export(text, tmp_path / "text.omx", "omx")
    with _omx(tmp_path / "text.omx") as omx:
        assert set(omx.mapping("stop")) == {30, 7, -5, 12}
    padded, _ = _city(("030", "7", "1", "12"))
    export(padded, tmp_path / "padded.omx", "omx")
    with _omx(tmp_path / "padded.omx") as omx:
        assert set(omx.mapping("stop")) == {b"030", b"7", b"1", b"12"}


def test_omx_of_large_counts_and_ids(tmp_path: Path) -> None:
    """Counts and ids beyond 32 bits are not cut."""
    stops = (2**40, 1, 2, 3)
    release, _ = _city(stops)
    value = release.value.copy()
    value[0] = 2**33
    export(replace(release, value=value), tmp_path / "out.omx", "omx")
    with _omx(tmp_path / "out.omx") as omx:
        assert set(omx.mapping("stop")) == set(stops)
        assert sum(int(np.array(omx[m]).sum()) for m in omx.list_matrices()) == value.sum()


def test_omx_too_large_is_refused(tmp_path: Path) -> None:
    """Matrices that no program would hold are refused, with the cure."""
    universe = cbdp.Universe(origin=range(20_000), destination=range(20_000))
    release = _made(universe, {(3, 4): 1})
    with pytest.raises(InputError, match="level='zone'"):
        export(release, tmp_path / "out.omx", "omx")
    assert list(tmp_path.iterdir()) == []


# GeoJSON


def test_geojson_lines_go_from_origin_to_destination(tmp_path: Path) -> None:
    """Each flow starts at its origin's coordinates and ends at its destination's, with its count and period."""
    release, trips = _city(places=PLACES)
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
    release, trips = _city()
    export(release, tmp_path / "out.geojson", "geojson", level="zone", places=PLACES)
    flows_ = json.loads((tmp_path / "out.geojson").read_text("utf-8"))["features"]
    found = {
        (f["properties"]["origin"], f["properties"]["destination"], f["properties"]["time"]): f["properties"][
            "count"
        ]
        for f in flows_
    }
    assert found == _zones(trips)
    south = next(f for f in flows_ if f["properties"]["origin"] == f["properties"]["destination"] == "south")
    assert south["geometry"]["coordinates"] == [[pytest.approx(-83.15), pytest.approx(42.35)]] * 2


def test_places_without_coordinates_matter_only_where_trips_are(tmp_path: Path) -> None:
    """A stop that trips use must have coordinates; one that none uses need not."""
    lost = replace(PLACES, lat=np.array([np.nan, 42.2, 42.3, 42.4]), lon=np.array([np.nan, 1.0, 2.0, 3.0]))
    release, _ = _city()
    for form in ("geojson", "matsim"):
        with pytest.raises(InputError, match="no coordinates: give places"):
            export(release, tmp_path / "out", form)
        with pytest.raises(InputError, match="place 30 has no coordinates"):
            export(release, tmp_path / "out", form, places=lost)
    universe = release.features.universe
    other = _made(universe, {(1001, 7, "06:00"): 4}, places=lost)
    export(other, tmp_path / "out", "geojson")
    assert len(json.loads((tmp_path / "out").read_text("utf-8"))["features"]) == 1


# MATSim


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # its reader closes no file
def test_matsim_plans_are_read_by_matsim_tools(tmp_path: Path) -> None:
    """One person per trip, from the origin's coordinates to the destination's, leaving inside the period, by its mode."""
    matsim = pytest.importorskip("matsim", reason="matsim-tools is not installed")
    release, trips = _city(places=PLACES)
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
    release = _made(universe, {(7, 30): 2}, places=PLACES)  # to 7 from 30
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


# SUMO


def _sumo(path: Path) -> list[tuple[str, str, str, list[tuple[str, str, int]]]]:
    sumolib = pytest.importorskip("sumolib", reason="sumolib is not installed")
    return [
        (i.id, i.begin, i.end, [(r.attr_from, r.to, int(r.count)) for r in i.tazRelation or []])
        for i in sumolib.xml.parse(str(path), "interval")
    ]


def test_sumo_relations_are_read_by_sumolib(tmp_path: Path) -> None:
    """An interval per period with its seconds; from is the origin, to the destination."""
    release, trips = _city()
    export(release, tmp_path / "out.xml", "sumo")
    intervals = _sumo(tmp_path / "out.xml")
    assert [i[:3] for i in intervals] == [("06:00", "21600", "25200"), ("07:00", "25200", "28800")]
    found = {(int(o), int(d), name): n for name, _, _, rows in intervals for o, d, n in rows}
    assert found == trips


def test_sumo_of_zones_and_awkward_text(tmp_path: Path) -> None:
    """Ampersands, quotes and angle brackets in ids survive."""
    release, trips = _city()
    export(release, tmp_path / "zones.xml", "sumo", level="zone")
    found = {(o, d, name): n for name, _, _, rows in _sumo(tmp_path / "zones.xml") for o, d, n in rows}
    assert found == _zones(trips)
    awkward, trips = _city(("<a>", '"b"', "c & d", "'e'"))
    export(awkward, tmp_path / "text.xml", "sumo")
    found = {(o, d, name): n for name, _, _, rows in _sumo(tmp_path / "text.xml") for o, d, n in rows}
    assert found == trips
    broken, _ = _city(("a\x00", "b", "c", "d"))
    with pytest.raises(InputError, match="XML cannot hold"):
        export(broken, tmp_path / "broken.xml", "sumo")


def test_days_follow_each_other(tmp_path: Path) -> None:
    """With dates as a dimension, each day's periods begin 24 hours after the last day's; a trip is in one of them."""
    for days in ([dt.date(2026, 3, 2), dt.date(2026, 3, 4)], ["2026-03-02", "2026-03-04"]):
        universe = cbdp.Universe(
            day=days, destination=["A", "B"], origin=["A", "B"], time=cbdp.periods("06:00", "07:00", "30min")
        )
        release = _made(universe, {(days[0], "A", "B", "06:30"): 2, (days[1], "B", "A", "06:00"): 3})
        path = tmp_path / f"{type(days[0]).__name__}.xml"
        export(release, path, "sumo")
        found = [i for i in _sumo(path) if i[3]]
        assert found == [
            ("2026-03-02 06:30", str(23400), str(25200), [("B", "A", 2)]),
            ("2026-03-04 06:00", str(21600 + 2 * 86400), str(23400 + 2 * 86400), [("A", "B", 3)]),
        ]


# xarray


def test_xarray_has_labels_as_coordinates(tmp_path: Path) -> None:
    """Whole trips by label, features by their attributes, and the same again from NetCDF."""
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    release, trips = _city()
    export(release, tmp_path / "out.nc", "xarray")
    with xarray.open_dataset(tmp_path / "out.nc", engine="h5netcdf") as stored:
        for made in (dataset(release), stored):
            assert made["trips"].dtype == np.int64
            assert made["trips"].dims == ("origin", "destination", "time")
            for o in STOPS:
                for d in STOPS:
                    for t in ("06:00", "07:00"):
                        assert int(made["trips"].sel(origin=o, destination=d, time=t)) == trips.get(
                            (o, d, t), 0
                        )
            zones = made["zone_count"]
            for (o, d, t), count in _zones(trips).items():
                assert int(zones.sel({"origin.zone": o, "destination.zone": d, "time": t})) == count
            sums = [made["trips"], zones, made["time_count"], made["total_count"]]
            assert {int(s.sum()) for s in sums} == {release.total}


def test_xarray_has_intervals_and_refuses_names_that_clash() -> None:
    """Low and high stand beside the counts; a feature's array cannot have the name of a dimension."""
    pytest.importorskip("xarray", reason="xarray is not installed")
    ends = {"time": Interval(np.array([3, 4]), np.array([30, 40]))}
    release, _ = _city(intervals=ends, confidence=0.9)
    made = dataset(release)
    assert int(made["time_low"].sel(time="07:00")) == 4
    assert int(made["time_high"].sel(time="06:00")) == 30
    universe = cbdp.Universe(a=["x"], f_count=["y"])
    clash = _made(universe, {("x", "y"): 1}, features=[cbdp.Feature("f", by="a")])
    with pytest.raises(InputError, match="'f_count'"):
        dataset(clash)


def test_xarray_of_a_large_universe_is_a_list() -> None:
    """What does not fit as an array is listed, with the labels of each."""
    pytest.importorskip("xarray", reason="xarray is not installed")
    universe = cbdp.Universe(origin=range(5000), destination=[f"s{i}" for i in range(5000)])
    made = dataset(_made(universe, {(4999, "s3"): 5, (7, "s8"): 2}))
    found = zip(
        made["origin_of_trip"].values, made["destination_of_trip"].values, made["trips"].values, strict=True
    )
    assert set(found) == {(4999, "s3", 5), (7, "s8", 2)}


# All


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_flows_add_up_however_trips_lie(data: Any) -> None:
    """Origins and destinations of different kinds and order, other dimensions around them: each trip is in its flow."""
    origins = data.draw(st.permutations([1, 2, "x", "y"]))[:3]
    destinations = data.draw(st.permutations([2, "y", "z"]))
    dims = {"destination": destinations, "kind": ["p", "q"], "origin": origins, "day": ["m", "n"]}
    universe = cbdp.Universe(**{name: dims[name] for name in data.draw(st.permutations(list(dims)))})
    names = list(universe.dimensions)
    keys = st.tuples(*(st.sampled_from(dims[name]) for name in names))
    trips = data.draw(st.dictionaries(keys, st.integers(1, 10**12), max_size=20))
    made = flows(_made(universe, trips))
    found = {}
    for period, rows in made.by_period():
        for row in range(rows.start, rows.stop):
            ends = {"origin": made.ids[made.origin[row]], "destination": made.ids[made.destination[row]]}
            at = ends | dict(period.labels)
            found[tuple(at[n] for n in names)] = int(made.count[row])
    assert found == trips


@pytest.mark.parametrize("form", list(FORMATS.table))
def test_every_format_writes_a_saved_release_once_and_the_same_again(form: str, tmp_path: Path) -> None:
    """From a folder as from memory, with the same bytes (but for HDF5's own); a path that exists is left alone."""
    release, _ = _city(places=PLACES)
    release.save(tmp_path / "release")
    one, two = export(release, tmp_path / "one", form), export(tmp_path / "release", tmp_path / "two", form)
    first, second = (
        [p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()]
        if path.is_dir()
        else [path.read_bytes()]
        for path in (one, two)
    )
    assert first == second
    with pytest.raises(InputError, match="exists already"):
        export(release, tmp_path / "one", form)
    with pytest.raises(InputError, match="no folder"):
        export(release, tmp_path / "none" / "out", form)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one", "release", "two"]


@pytest.mark.parametrize("form", list(FORMATS.table))
def test_a_release_without_trips_is_exported(form: str, tmp_path: Path) -> None:
    """Nothing to say is said in every format."""
    release, _ = _city(places=PLACES)
    empty = replace(release, index=release.index[:0], value=release.value[:0])
    assert export(empty, tmp_path / "out", form).exists()


def test_wrong_wishes_are_one_clear_error(tmp_path: Path) -> None:
    """Unknown formats, options, levels and dimensions, and ids that look alike; nothing is written."""
    release, _ = _city(places=PLACES)
    taps = _made(cbdp.Universe(tap=["on", "off"], location=["A", "B"]), {("on", "A"): 1})
    alike, _ = _city((1, "1", 2, 3))
    for given_, form, options, said in (
        (release, "xls", {}, "unknown format 'xls': there are csv, omx"),
        (release, "csv", {"level": "zone"}, "csv has no option 'level'"),
        (release, "matsim", {"level": "zone"}, "no option 'level'"),
        (release, "omx", {"level": "county"}, r"no attribute 'origin\.county'"),
        (release, "sumo", {"level": None, "origin": "from"}, "no dimension 'from'"),
        (taps, "sumo", {}, "no dimension 'origin'"),
        (alike, "sumo", {}, "both be called '1'"),
        (tmp_path / "nowhere", "csv", {}, "no folder"),
    ):
        with pytest.raises(InputError, match=said):
            export(given_, tmp_path / "out", form, **options)
    assert list(tmp_path.iterdir()) == []
    export(taps, tmp_path / "out", "sumo", origin="tap", destination="location")


def test_a_missing_library_is_named_with_its_extra(tmp_path: Path) -> None:
    """Without h5py or xarray the other formats work, and these say what to install."""
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['h5py', 'xarray', 'h5netcdf']));"
        "sys.path[:0] = ['tests', 'tests/release']; from test_exports import _city, export, PLACES, InputError;"
        "release, _ = _city(places=PLACES)\n"
        "for form in ('csv', 'geojson', 'matsim', 'sumo'): export(release, sys.argv[1] + '/' + form, form)\n"
        "for form in ('omx', 'xarray'):\n"
        "    try: export(release, sys.argv[1] + '/' + form, form)\n"
        "    except InputError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert "cbdp[omx]" in done.stdout
    assert "cbdp[xarray]" in done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["csv", "geojson", "matsim", "sumo"]


# A format of somebody else's

PLAIN = '''"""Trips as lines of text."""

from dataclasses import dataclass
from typing import ClassVar

from cbdp.release.export import Format


@dataclass(frozen=True)
class Lines(Format):
    name: ClassVar[str] = "lines"
    about: ClassVar[str] = "a line of text per trip type"

    def write(self, release, path, *, mark: str = " "):
        trips = release.trips()
        rows = zip(*(trips[name] for name in trips), strict=True)
        path.write_text("".join(mark.join(map(str, row)) + "\\n" for row in rows), encoding="utf-8")
'''


def test_a_format_is_added_by_one_file_of_another_package(tmp_path: Path, monkeypatch: Any) -> None:
    """Found by its entry point: by name in `export`, in the list of parts and in messages; its options are its arguments."""
    package = tmp_path / "packages"
    (package / "lines-1.dist-info").mkdir(parents=True)
    (package / "lines.py").write_text(PLAIN, encoding="utf-8")
    (package / "lines-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: lines\nVersion: 1\n"
    )
    (package / "lines-1.dist-info" / "entry_points.txt").write_text("[cbdp.export]\nlines = lines:Lines\n")
    monkeypatch.syspath_prepend(str(package))
    assert len(PLAIN.splitlines()) <= 40
    assert "lines" in FORMATS.names()
    release, trips = _city()
    path = export(release, tmp_path / "out.txt", "lines", mark=";")
    rows = [line.split(";") for line in path.read_text("utf-8").splitlines()]
    assert {(int(o), int(d), t): int(n) for o, d, t, n in rows} == trips
    with pytest.raises(InputError, match="lines has no option 'level': it has mark"):
        export(release, tmp_path / "other", "lines", level="zone")
    with pytest.raises(InputError, match="did you mean 'lines'"):
        export(release, tmp_path / "other", "line")
