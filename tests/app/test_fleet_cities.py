"""`cbdp fleet size` on any city whose stops have coordinates, in whatever unit these are; and what it says about demand."""

from __future__ import annotations

import csv
import datetime as dt
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cbdp
from cbdp.app import cli
from cbdp.app.fleet import city_of, is_built_in, read, size
from cbdp.datasets import ann_arbor
from cbdp.errors import InputError
from cbdp.release import About, Dates
from cbdp.transit.fleets import FleetRules
from cbdp_features.places import Stops

BIKES = Path(__file__).parents[3] / "shared" / "data" / "bayarea_bike_2014"
MARCH, WEEK = dt.date(2026, 3, 2), dt.timedelta(days=6)
LAT, LON = 47.37, 8.54
KM = 111.2


def town(seed: int = 2) -> tuple[Stops, np.ndarray, np.ndarray]:
    """Two towns 20 km apart, 14 stops each, and the plane they lie in (km)."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(0, 5, 14), rng.uniform(20, 25, 14)])
    y = rng.uniform(0, 5, 28)
    ids = tuple(range(100, 128))
    lat, lon = LAT + y / KM, LON + x / KM / np.cos(np.radians(LAT))
    return Stops(ids, tuple(f"stop {i}" for i in ids), lat, lon), x, y


def saved(folder: Path, places: Stops | None, *, zoned: bool = False, epsilon: Any = 1) -> cbdp.Release:
    """A simulated release of 400 trips of a morning between the towns' stops."""
    ids = town()[0].ids
    dim = cbdp.Dimension(ids, zone=["west"] * 14 + ["east"] * 14) if zoned else cbdp.Dimension(ids)
    universe = cbdp.Universe(
        origin=dim, destination=dim, time=cbdp.periods("08:00", "10:00", "1h"), day=["week", "end"]
    )
    by = ["origin.zone", "time"] if zoned else ["time"]
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("table", by=by)])
    rng = np.random.default_rng(8)
    trips = {
        "origin": rng.choice(ids, 400).tolist(),
        "destination": rng.choice(ids, 400).tolist(),
        "time": rng.choice(["08:00", "09:00"], 400).tolist(),
        "day": rng.choice(["week", "end"], 400).tolist(),
    }
    release = replace(cbdp.ConstraintBased(dag, epsilon=epsilon).simulate(trips, 3), places=places)
    release.save(folder, simulation=True)
    return release


def tables(folder: Path) -> None:
    """The same stops in three units, under the columns that fit and under those that do not."""
    places, x, y = town()
    columns = {
        "km": ("x,y", x, y),
        "m": ("x,y", 1000 * x, 1000 * y),
        "degrees": ("lon,lat", places.lon, places.lat),
        "degrees-as-x": ("x,y", places.lon, places.lat),
        "km-as-degrees": ("lon,lat", x, y),
    }
    for name, (head, a, b) in columns.items():
        rows = "".join(f"{i},{p:.6f},{q:.6f}\n" for i, p, q in zip(places.ids, a, b, strict=True))
        (folder / f"{name}.csv").write_text(f"id,{head}\n{rows}")


DAY = FleetRules(only=["day=week"], hours="08:00-09:00")


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The figures that are printed: the city's size and the fleet."""
    out = capsys.readouterr().out
    return {
        "wide": re.search(r"within ([\d.]+) km", out)[1],
        "zones": re.search(r"(\d+) zone", out)[1],
        "shuttles": re.search(r"([\d,]+) shuttles, sized", out)[1],
    }


def test_the_same_fleet_in_every_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the release's own coordinates, and from tables in degrees, kilometres and metres: one city, two zones, one fleet."""
    saved(tmp_path / "release", town()[0])
    tables(tmp_path)
    found = []
    for city, units in ((None, "km"), ("degrees", "km"), ("km", "km"), ("m", "m")):
        rules = replace(DAY, city=None if city is None else str(tmp_path / f"{city}.csv"), units=units)
        assert size(str(tmp_path / "release"), rules) == 0
        found.append(told(capsys))
    assert [f["zones"] for f in found] == ["2"] * 4
    assert {round(float(f["wide"])) for f in found} == {25}
    shuttles = [int(f["shuttles"]) for f in found]
    assert max(shuttles) - min(shuttles) <= 1  # degrees are projected, and rounded to six digits
    assert shuttles[0] < 100  # for some 100 trips: metres for kilometres once gave thousands


@pytest.mark.parametrize(
    ("table", "units", "cure"),
    [
        ("m", "km", "--units m"),
        ("km", "m", "--units km"),
        ("degrees-as-x", "km", "call the columns lon and lat"),
        ("km-as-degrees", "km", "call the columns x and y"),
    ],
)
def test_wrong_units_are_named_with_the_cure(
    tmp_path: Path, table: str, units: str, cure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, exit code 2, and no fleet of thousands."""
    saved(tmp_path / "release", None)
    tables(tmp_path)
    words = ["--city", str(tmp_path / f"{table}.csv"), "--units", units, "--only", "day=week"]
    assert cli.main(["fleet", "size", str(tmp_path / "release"), *words]) == 2
    error = capsys.readouterr().err
    assert cure in error
    assert error.count("\n") == 1


def test_coordinates_of_a_release_that_are_no_degrees_are_refused(tmp_path: Path) -> None:
    """Kilometres that were published as latitude and longitude."""
    places, x, y = town()
    saved(tmp_path / "release", replace(places, lat=y, lon=x))
    with pytest.raises(InputError, match=r"the stops of release in degrees are [\d,]+ km apart.*--units km"):
        size(str(tmp_path / "release"), DAY)


def test_a_stop_without_coordinates_is_named(tmp_path: Path) -> None:
    """Also when all others have them."""
    places, _, _ = town()
    lat, lon = places.lat.copy(), places.lon.copy()
    lat[5], lon[5] = np.nan, np.nan
    saved(tmp_path / "release", replace(places, lat=lat, lon=lon))
    with pytest.raises(InputError, match="the stop 105 has no coordinates"):
        size(str(tmp_path / "release"), DAY)


def test_zones_are_those_that_trips_are_counted_by(tmp_path: Path) -> None:
    """The release's own zones come before any rule; hubs are inside them."""
    saved(tmp_path / "release", town()[0], zoned=True)
    city = city_of(FleetRules(), read(str(tmp_path / "release")))
    assert city.zones == ("west", "east")
    assert city.zone[city.hubs].tolist() == [0, 1]
    assert city.names[:2] == ("100", "101")


def test_demand_is_stated_with_the_release_s_own_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the terminal and on the page, in total and by zone: what `release.ask` answers for the chosen day and hour."""
    release = saved(tmp_path / "release", town()[0], zoned=True)
    release = cbdp.load(tmp_path / "release")
    page = tmp_path / "page.html"
    assert size(str(tmp_path / "release"), DAY, page=str(page)) == 0
    where = {"day": ["week"], "time": ["08:00"]}
    total = release.ask(where=where)
    said = f"{total['count'][0]} published trips; the true number is between {total['low'][0]} and {total['high'][0]} (90 % confidence)"
    assert said in capsys.readouterr().out
    html = page.read_text("utf-8").replace("\u00a0", " ").replace("&nbsp;", " ")
    assert said in html
    answer = release.ask(by="origin.zone", where=where)
    for count, low, high in zip(*(answer[n].tolist() for n in ("count", "low", "high")), strict=True):
        assert f"<td>{count}</td><td>{low} – {high}</td>" in re.sub(r"<td [^>]*>", "<td>", html)
    assert "the true number lies in the interval with 90 % confidence" in html


@pytest.mark.parametrize(
    ("period", "warned"),
    [("March 2026", True), (Dates(MARCH, MARCH + WEEK), True), (Dates(MARCH, MARCH), False), (None, False)],
)
def test_days_that_are_added_up_are_named(
    tmp_path: Path, period: Any, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A month of trips is no day's work for a fleet; with dates as a dimension one of them is chosen."""
    ids = ("A", "B", "C")
    places = Stops(ids, ids, LAT + np.array([0, 0.02, 0.01]), LON + np.array([0, 0.01, 0.03]))
    for days, words in (({}, []), ({"day": ["2026-03-02", "2026-03-03"]}, ["day=2026-03-02"])):
        universe = cbdp.Universe(
            origin=ids, destination=ids, time=cbdp.periods("08:00", "09:00", "1h"), **days
        )
        dag = cbdp.FeatureDag(universe, [])
        trips = {"origin": ["A", "B"] * 9, "destination": ["C", "A"] * 9, "time": ["08:00"] * 18}
        trips |= {"day": ["2026-03-02"] * 18} if days else {}
        release = replace(
            cbdp.ConstraintBased(dag, epsilon=9).simulate(trips, 3),
            places=places,
            about=About("x", period=period),
        )
        release.save(tmp_path / f"release{len(days)}", simulation=True)
        assert size(str(tmp_path / f"release{len(days)}"), FleetRules(only=words)) == 0
        assert ("are added up, and the fleet is sized as if all" in capsys.readouterr().out) == (
            warned and not days
        )


def test_a_zone_without_published_trips_may_have_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody is told that a zone needs nothing without how many trips noise may hide there."""
    places, _, _ = town()
    dim = cbdp.Dimension(places.ids, zone=["west"] * 14 + ["east"] * 14)
    universe = cbdp.Universe(origin=dim, destination=dim, time=cbdp.periods("08:00", "09:00", "1h"))
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("zone", by=["origin.zone", "destination.zone"])])
    trips = {"origin": [100, 105] * 50, "destination": [103, 101] * 50, "time": ["08:00"] * 100}
    release = replace(cbdp.ConstraintBased(dag, epsilon=2).simulate(trips, 16), places=places)
    release.save(tmp_path / "release", simulation=True)
    loaded = cbdp.load(tmp_path / "release")
    told = loaded.ask("origin.zone")
    east = list(told["origin.zone"]).index("east")
    high = told["high"][east]
    assert (told["count"][east], high > 0) == (0, True)
    assert size(str(tmp_path / "release"), FleetRules()) == 0
    said = f"zone 'east' has no shuttle legs, so it needs no shuttles; but up to {high} trips may really begin there"
    assert said in capsys.readouterr().out


def test_the_synthetic_city_is_known_by_its_stops(tmp_path: Path) -> None:
    """Its releases get its own hubs and lines; stops of the same names elsewhere are another city."""
    made = ann_arbor(seed=0)
    dag = cbdp.FeatureDag(made.universe, [cbdp.Feature("time", by="time")])
    release = cbdp.ConstraintBased(dag, epsilon=1).simulate(made.trips, 1)
    release.save(tmp_path / "release", simulation=True)
    trips = read(str(tmp_path / "release"))
    assert is_built_in(trips)
    assert len(city_of(FleetRules(), trips).hubs) == 8
    ids = tuple(made.stops["stop"].tolist())
    elsewhere = Stops(ids, ids, made.stops["lat"] + 5, made.stops["lon"])
    assert not is_built_in(replace(trips, places=elsewhere))


@pytest.mark.skipif(not BIKES.exists(), reason="the bike trips are not here (../shared/data)")
def test_real_bike_stations_are_a_city(tmp_path: Path) -> None:
    """The five cities of the Bay Area are five zones within 71 km; clustering finds the same five without being told."""
    with (BIKES / "stations.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    from cbdp.transit.city import city_on_earth

    ids = tuple(r["station_id"] for r in rows)
    lat, lon = (np.array([float(r[c]) for r in rows]) for c in ("lat", "lon"))
    told_zones = tuple(r["zone"] for r in rows)
    given = city_on_earth(Stops(ids, ids, lat, lon, told_zones))
    found = city_on_earth(Stops(ids, ids, lat, lon))
    assert len(given.zones) == len(found.zones) == 5
    assert len({(a, b) for a, b in zip(given.zone.tolist(), found.zone.tolist(), strict=True)}) == 5
