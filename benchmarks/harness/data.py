"""The data sets: the synthetic city, a generated dense one, generated taps, real bike trips, matrices, a user's own trips."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import cbdp
from benchmarks import dimensions
from benchmarks.harness.elsewhere import NOWHERE, elsewhere
from benchmarks.harness.opal_taps import opal_taps
from benchmarks.harness.registry import Case, Data, Floats, Flows, Setup, dataset
from benchmarks.harness.riders import population
from cbdp.datasets import Dataset, ann_arbor
from cbdp.errors import InputError
from cbdp.features import Dimension, Feature, FeatureDag, Universe, odmts, periods
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp_features.places import EARTH_RADIUS_KM, Stops, distance_bands, stops

RUSH, DAY = ("08:00", "10:00"), ("06:00", "20:00")
ENDS = ("origin.zone", "destination.zone")
BY_KM = "km between the zones' centres, added over both ends"
BY_END = "ends that are in another zone (no coordinates are known)"


# Distances between zones


def centres(zone: NDArray[Any], points: Floats) -> dict[Any, Floats]:
    """The mean place of each zone's stops."""
    return {z: points[zone == z].mean(axis=0) for z in dict.fromkeys(zone.tolist())}


def zone_flows(universe: Universe, centre: Mapping[Any, Floats] | None) -> Flows | None:
    """Flows between zones. Moving a trip costs what its origin and its destination are moved by."""
    if not all(end in universe.attributes for end in ENDS):
        return None
    keys = universe.partition(ENDS).keys()
    apart = sum((_apart(keys[end], centre) for end in ENDS), start=np.zeros((1, 1)))
    located = centre is not None
    return Flows(ENDS, apart, "km" if located else "ends", BY_KM if located else BY_END)


def _apart(zones: list[Any], centre: Mapping[Any, Floats] | None) -> Floats:
    if centre is None:
        code = np.unique([str(z) for z in zones], return_inverse=True)[1]
        return np.asarray(code[:, None] != code, dtype=float)
    points = np.array([centre[z] for z in zones])
    return np.asarray(np.linalg.norm(points[:, None] - points, axis=2))


def plane_km(places: Stops) -> Floats:
    """Stops on a plane, in km: true enough over a region."""
    north, east = np.radians(places.lat), np.radians(places.lon) * np.cos(np.radians(places.lat.mean()))
    return EARTH_RADIUS_KM * np.column_stack([east, north])


# The synthetic city


def city(day: Literal["weekday", "weekend"], hours: tuple[str, str]) -> Case:
    made: Dataset = ann_arbor(seed=0, day=day, hours=hours)
    points = np.column_stack([made.stops["x"], made.stops["y"]])
    flows = zone_flows(made.universe, centres(made.stops["zone"], points))
    return Case(made.name, made.features(), made.counts(), flows)


dataset("weekday", "synthetic city with the case study's statistics, weekday, 8–10 am")(
    partial(city, "weekday", RUSH)
)
dataset("weekend", "synthetic city with the case study's statistics, weekend, 8–10 am")(
    partial(city, "weekend", RUSH)
)
dataset("weekday, whole day", "the same city, weekday, 6 am – 8 pm")(partial(city, "weekday", DAY))


# A dense city

STATIONS, HALF_HOURS, SECTORS = 60, 8, 6
DENSE = (0.2, 0.5, 1, 2, 5, 10, 20, 40, 60)  # per cent of the types that have trips
MEAN = 20  # trips of a type that has any: half hours of a metro's pairs of stations
BANDS_KM = (4.0, 8.0, 14.0)


def dense_name(fill: float) -> str:
    return f"metro, {fill:g} % full"


def dense_city(
    fill: float, *, stations: int = STATIONS, half_hours: int = HALF_HOURS, mean: float = MEAN
) -> Case:
    """A metro: `fill` per cent of its types have trips, `mean` each on average, a few far more.

    Demand follows gravity between stations of very unequal size and a morning peak. The types that have trips are the
    likeliest ones of a draw, so that emptier cities are parts of fuller ones.
    """
    rng = np.random.default_rng(60)
    radius, angle = 12 * np.sqrt(rng.random(stations)), 2 * np.pi * rng.random(stations)
    points = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    size = rng.lognormal(0.0, 1.0, (2, stations))
    pull = np.outer(*size) * np.exp(-apart / 8) * rng.lognormal(0.0, 0.7, (stations, stations))
    np.fill_diagonal(pull, 0.0)
    peak = np.exp(-(((np.arange(half_hours) - half_hours / 3) / (half_hours / 3)) ** 2))
    rate = (pull[:, :, None] * peak).reshape(-1)
    busy = round(fill / 100 * len(rate))
    race = np.full(len(rate), np.inf)
    race[rate > 0] = rng.exponential(size=int((rate > 0).sum())) / rate[rate > 0] ** 2
    chosen = np.argsort(race, kind="stable")[:busy]
    truth = np.zeros(len(rate), dtype=np.int64)
    expected = rate[chosen] / rate[chosen].mean() * (mean - 1)
    truth[chosen] = 1 + rng.poisson(expected)
    sector = np.array([f"sector {s + 1}" for s in (angle / (2 * np.pi) * SECTORS).astype(int)])
    held = Dimension([f"S{n:02d}" for n in range(stations)], zone=sector.tolist())
    end = 7 * 60 + 30 * half_hours
    universe = Universe(
        origin=held, destination=held, time=periods("07:00", f"{end // 60:02d}:{end % 60:02d}", "30min")
    )
    features = odmts(universe, modes=np.digitize(apart, BANDS_KM))
    return Case(dense_name(fill), features, truth, zone_flows(universe, centres(sector, points)))


for _fill in DENSE:
    dataset(
        dense_name(_fill), f"generated metro, {_fill:g} % of the types have trips, {MEAN} each on average"
    )(partial(dense_city, _fill))


# Networks of other shapes, days of several kinds, persons


def network(kind: str) -> Case:
    return Case(kind, *elsewhere(kind))


for _kind in NOWHERE:
    dataset(_kind, f"generated: {NOWHERE[_kind][0].__doc__}".rstrip("."))(partial(network, _kind))


def kinds_of_days() -> Case:
    universe, truth = dimensions.city("corridor", list(dimensions.DAYS))
    return Case(DAYS, odmts(universe, level=4), truth)


def riders_days() -> Case:
    """Riders who commute, over a week, by hour of the day: the unit is a person's day of at most four trips."""
    people = population(stops=24, riders=2000, many_days=7)
    unit = cbdp.Person("card", 4, "day")
    bounded = cbdp.count(
        people.trips,
        people.features.universe,
        columns=people.columns,
        unit=unit,
        entropy=InsecureSeededEntropy(0),
    )
    return Case(PERSONS, people.features, people.truth, bounded=bounded)


DAYS, PERSONS = "three kinds of days", "persons, four trips a day"
dataset(DAYS, "generated corridor, weekday, Saturday and Sunday apart: tables by day as the preset has them")(
    kinds_of_days
)
dataset(PERSONS, "generated riders who commute, a week; a person's day of at most four trips is protected")(
    riders_days
)


# Taps


def taps(day: str, mode: str) -> Case:
    made = opal_taps(seed=0)
    features = made.features(mode)
    by = ("tap", "location")
    size = features.universe.partition(by).size
    flows = Flows(by, 1.0 - np.eye(size), "share", "the share of taps at another place (0 or 1 a tap)")
    return Case(f"Opal taps, {mode}, {day}", features, made.counts(day, mode), flows)


dataset(
    "Opal taps",
    "generated taps of one mode (train) and one weekday; the unit is one tap, two of which make a trip",
)(partial(taps, "20160725", "train"))


# Bike trips

BIKES = "bayarea_bike_2014"

BUSIEST, POOLED = "busiest day", "all weekdays"


def bike_name(which: str) -> str:
    return f"bikes, {which}"


def bikes(folder: str, which: str) -> Case:
    """Real trips of a bike share, on its busiest day, all weekdays or a date: zones are cities, modes distance bands."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    places = stops(f"{folder}/stations.csv", columns={"id": "station_id"}, ids=int)
    universe = Universe(
        origin=places.dimension(), destination=places.dimension(), time=periods("00:00", "24:00", "30min")
    )
    features = odmts(universe, modes=distance_bands(places))
    table = pq.read_table(f"{folder}/trips.parquet", columns=["origin", "destination", "start_time"])
    date = pc.cast(table["start_time"], "date32")
    if which == POOLED:
        table = table.filter(pc.less(pc.day_of_week(table["start_time"]), 5))
    elif which == BUSIEST:
        days = pc.value_counts(date).to_pylist()
        table = table.filter(pc.equal(date, max(days, key=lambda d: (d["counts"], d["values"]))["values"]))
    else:
        table = table.filter(pc.equal(date, dt.date.fromisoformat(which)))
    counts = cbdp.count(table, universe, columns={"time": "start_time"})
    flows = zone_flows(universe, centres(np.array(places.zone), plane_km(places)))
    return Case(bike_name(which), features, counts.dense(), flows)


def bike_days(folder: str) -> list[str]:
    """The dates on which there are trips."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    starts = pq.read_table(f"{folder}/{BIKES}/trips.parquet", columns=["start_time"])["start_time"]
    return sorted(str(day) for day in pc.unique(pc.cast(starts, "date32")).to_pylist())


# Matrices in the format of the transportation networks test problems

FLOW = re.compile(r"(\d+)\s*:\s*([-+0-9.eE]+)\s*;")
BLOCKS = 5


def read_tntp(path: str | Path) -> Floats:
    """The trips between zones 1, 2, … of a `_trips.tntp` file."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    stated = re.search(r"<NUMBER OF ZONES>\s*(\d+)", text)
    if stated is None or "Origin" not in text:
        raise InputError(f"{str(path)!r} is no TNTP trip table: it states no <NUMBER OF ZONES> or no Origin")
    zones = int(stated[1])
    matrix = np.zeros((zones, zones))
    for part in re.split(r"^\s*Origin\s+", text, flags=re.MULTILINE)[1:]:
        begin, rest = part.split(maxsplit=1) if len(part.split(maxsplit=1)) == 2 else (part.strip(), "")
        for end, trips in FLOW.findall(rest):
            if not (1 <= int(begin) <= zones and 1 <= int(end) <= zones):
                raise InputError(f"{str(path)!r} has trips from {begin} to {end}, but {zones} zones")
            matrix[int(begin) - 1, int(end) - 1] += float(trips)
    return matrix


def tntp(path: str) -> Case:
    """A matrix of trips between numbered zones; blocks of neighbouring numbers stand for districts."""
    matrix = read_tntp(path)
    n = len(matrix)
    blocks = min(BLOCKS, n)
    held = Dimension(range(1, n + 1), zone=[f"{1 + z * blocks // n}" for z in range(n)])
    universe = Universe(origin=held, destination=held)
    features = [
        Feature("zone", by=ENDS),
        Feature("origin", by="origin"),
        Feature("destination", by="destination"),
    ]
    truth = np.rint(matrix).astype(np.int64).reshape(-1)
    return Case(Path(path).name, FeatureDag(universe, features), truth, zone_flows(universe, None))


# A user's own trips


def own_trips(path: str) -> Case:
    """The trips, universe, features and unit of a configuration. Errors are against all trips, before any bounding."""
    from cbdp.app.plan import plan
    from cbdp.config import read
    from cbdp.privacy.entropy import InsecureSeededEntropy
    from cbdp.privacy.unit import Person

    planned = plan(read(path))
    how: Any = {"columns": planned.columns, "clock": planned.clock}
    every = cbdp.count(planned.trips, planned.universe, **how)
    bounded = None
    if isinstance(planned.unit, Person):
        source = InsecureSeededEntropy(0)
        bounded = cbdp.count(planned.trips, planned.universe, unit=planned.unit, entropy=source, **how)
    elif planned.unit != every.unit:
        bounded = cbdp.count(planned.trips, planned.universe, unit=planned.unit, **how)
    places = planned.stops
    located = places is not None and places.zone is not None and not np.isnan(places.lat).any()
    centre = centres(np.array(places.zone), plane_km(places)) if located and places is not None else None
    flows = zone_flows(planned.universe, centre)
    return Case(Path(path).stem, planned.features, every.dense(), flows, bounded)


def _own_files(path: str) -> tuple[str, ...]:
    """The configuration, and the files of trips that it names: they decide the result."""
    from cbdp.config import read

    config = read(path)
    found = [config.path(written) for written in config.data.trips if "://" not in written]
    return (path, *(str(f) for f in found if f.is_file()))


def register_files(setup: Setup) -> Iterator[Data]:
    """The data sets that come from files."""
    bike = f"{setup.folder}/{BIKES}"
    files = (f"{bike}/trips.parquet", f"{bike}/stations.csv")
    for which in (BUSIEST, POOLED, *setup.days):
        what = "Bay Area bike share 2014 by half hour, zones = cities, modes = distance bands"
        yield Data(bike_name(which), partial(bikes, bike, which), what, files)
    for path in setup.tntp:
        yield Data(Path(path).name, partial(tntp, path), "trip table (TNTP), rounded to whole trips", (path,))
    for path in setup.configs:
        what = "trips of a configuration; these errors are as private as the trips"
        yield Data(Path(path).stem, partial(own_trips, path), what, _own_files(path), private=True)
