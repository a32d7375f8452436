"""Files to practise with: an invented town with sixteen stops and four weeks of trips of invented people; and the synthetic city of `cbdp demo`.

The town's trips are written three ways, as agencies have them: a row for each trip, counts by date and hour, and taps of cards.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from cbdp.datasets.dataset import Dataset

FIRST_DAY, DAY_COUNT = dt.date(2026, 3, 2), 28  # a Monday, and four weeks
COMMUTER_COUNT, OTHER_PERSON_COUNT = 400, 300
CENTRE = (42.28, -83.74)
DEGREES_PER_KM = 0.009  # of latitude
# zone → where it lies, east and north of the centre in kilometres; its stops
ZONES = {
    "Centre": ((0.0, 0.0), ("Market", "Station", "Library", "Town Hall")),
    "North": ((0.3, 2.6), ("Hospital", "School", "Park", "Mill")),
    "East": ((3.1, 0.2), ("University", "Stadium", "Campus", "Bridge")),
    "South": ((-0.6, -2.8), ("Harbour", "Ferry", "Beach", "Airport")),
}
STOP_OFFSETS = ((-0.4, -0.3), (0.5, -0.4), (-0.3, 0.5), (0.6, 0.4))


class PracticeStop(NamedTuple):
    """A public stop."""

    id: str
    name: str
    lat: float
    lon: float
    zone: str


class PracticeTrip(NamedTuple):
    """A trip of an invented person."""

    card: str
    start: dt.datetime
    end: dt.datetime
    origin: str
    destination: str


def stops() -> list[PracticeStop]:
    """The town's stops.

    >>> stops()[0]
    PracticeStop(id='S01', name='Market', lat=42.2773, lon=-83.74487, zone='Centre')
    """
    town: list[PracticeStop] = []
    for zone, (middle, names) in ZONES.items():
        for name, (east, north) in zip(names, STOP_OFFSETS, strict=True):
            lat = round(CENTRE[0] + DEGREES_PER_KM * (middle[1] + north), 5)
            lon = round(CENTRE[1] + DEGREES_PER_KM * 1.352 * (middle[0] + east), 5)
            town.append(PracticeStop(f"S{len(town) + 1:02}", name, lat, lon, zone))
    return town


def trips(seed: int = 0) -> list[PracticeTrip]:
    """Four weeks of trips, in the order in which they start; the same seed gives the same trips.

    >>> len(trips()), trips()[0].start.isoformat()
    (20411, '2026-03-02T05:52:00')
    """
    chance = random.Random(seed)
    ids = [stop.id for stop in stops()]
    drawn = [
        trip
        for number in range(COMMUTER_COUNT + OTHER_PERSON_COUNT)
        for trip in (_commuter_trips if number < COMMUTER_COUNT else _occasional_trips)(
            chance, f"C{1000 + number}", ids
        )
    ]
    return sorted(drawn, key=lambda trip: (trip.start, trip.card))


@cache
def practice_files(seed: int = 0) -> dict[str, str]:
    """The text of every file, by its name.

    >>> for name, text in practice_files().items():
    ...     print(name, text.splitlines()[:2])
    stops.csv ['stop_id,name,lat,lon,zone', 'S01,Market,42.2773,-83.74487,Centre']
    trips.csv ['card_id,start_time,from_stop,to_stop', 'C1207,2026-03-02 05:52,S15,S06']
    counts.csv ['date,hour,from,to,count', '2026-03-02,5,S15,S06,1']
    taps.csv ['card,time,stop,tap', 'C1207,2026-03-02 05:52,S15,on']
    """
    recorded = trips(seed)
    taps = [(t.start, t.card, t.origin, "on") for t in recorded] + [
        (t.end, t.card, t.destination, "off") for t in recorded
    ]
    summed = Counter((str(t.start.date()), t.start.hour, t.origin, t.destination) for t in recorded)
    return {
        "stops.csv": _csv_text(["stop_id", "name", "lat", "lon", "zone"], stops()),
        "trips.csv": _csv_text(
            ["card_id", "start_time", "from_stop", "to_stop"],
            ((t.card, _minute_text(t.start), t.origin, t.destination) for t in recorded),
        ),
        "counts.csv": _csv_text(
            ["date", "hour", "from", "to", "count"], ((*key, n) for key, n in sorted(summed.items()))
        ),
        "taps.csv": _csv_text(
            ["card", "time", "stop", "tap"],
            ((card, _minute_text(when), stop, tap) for when, card, stop, tap in sorted(taps)),
        ),
    }


def _commuter_trips(chance: random.Random, card: str, ids: Sequence[str]) -> Iterator[PracticeTrip]:
    """To work in the morning and home in the afternoon, on most working days; some at the weekend, too, some out for lunch."""
    home, work = chance.sample(ids, 2)
    if chance.random() < 0.6:
        work = chance.choice([stop for stop in (*ids[:4], *ids[8:10]) if stop != home])
    for day in range(DAY_COUNT):
        if chance.random() < (0.86 if day % 7 < 5 else 0.15):
            yield _trip(chance, card, day, chance.gauss(7.9, 0.6), home, work)
            if chance.random() < 0.12:
                lunch = chance.choice([stop for stop in ids if stop != work])
                yield _trip(chance, card, day, chance.uniform(11.5, 12.3), work, lunch)
                yield _trip(chance, card, day, chance.uniform(13, 13.7), lunch, work)
            yield _trip(chance, card, day, chance.gauss(17.1, 0.8), work, home)


def _occasional_trips(chance: random.Random, card: str, ids: Sequence[str]) -> Iterator[PracticeTrip]:
    """Now and then, anywhere, in daytime, and on from there half of the time."""
    for day in range(DAY_COUNT):
        hour = chance.uniform(8, 17) if chance.random() < 0.24 else 24.0
        here = chance.choice(ids)
        while hour < 21:
            there = chance.choice([stop for stop in ids if stop != here])
            yield _trip(chance, card, day, hour, here, there)
            here = there
            hour += chance.uniform(0.8, 2.5) if chance.random() < 0.5 else 24


def _trip(
    chance: random.Random, card: str, day: int, hour: float, origin: str, destination: str
) -> PracticeTrip:
    start = dt.datetime.combine(FIRST_DAY + dt.timedelta(days=day), dt.time()) + dt.timedelta(
        minutes=round(60 * min(max(hour, 5), 22))
    )
    return PracticeTrip(card, start, start + dt.timedelta(minutes=chance.randint(8, 35)), origin, destination)


def _minute_text(moment: dt.datetime) -> str:
    return moment.isoformat(" ", "minutes")


def _csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


# The files of `cbdp demo`: the synthetic city as an agency would have it


CITY_CONFIG = """\
# A release of the built-in synthetic city: no real person is in it.
preset = "odmts"

[about]
title = "Trips in a synthetic city"
place = "Ann Arbor, Michigan (synthetic)"
period = "one weekday"
publisher = "cbdp demo"
licence = "CC0 1.0"
timezone = "America/Detroit"

[data]
trips = "trips.parquet"
stops = "stops.csv"
id = "{name}"
expected_trips = {trips}

[universe]
time = {{ start = "{start}", end = "{end}", every = "30min" }}
zones = {{ column = "zone" }}
modes = {{ table = "modes.csv" }}

[privacy]
epsilon = {epsilon}
unit = "trip"
ledger = "ledger.sqlite"
cap = 100
budget = "balanced"  # `cbdp parts budgets` lists the others; or state a target

[mechanism]
name = "constraint-based"
preset = "best"  # or "paper"

[output]
path = "release-{epsilon}"
"""


@dataclass(frozen=True)
class Show:
    """Which part of the city's day is shown, and the default folder for it."""

    name: str
    hours: tuple[str, str]
    trips: int  # a round number that would be public
    folder: str


WHOLE = Show("synthetic Ann Arbor", ("06:00", "20:00"), 40_000, "cbdp-demo")
QUICK = Show("synthetic Ann Arbor, two hours", ("08:00", "10:00"), 5_000, "cbdp-demo-quick")


def write_city(city: Dataset, folder: Path, show: Show, epsilon: str) -> Path:
    """The city as an agency would have it: a table of trips, one of stops, one of modes, and a configuration."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    table = io.BytesIO()
    parquet.write_table(pa.table(dict(city.trips)), table)
    _put(folder / "trips.parquet", table.getvalue())
    columns = {"id": "stop", "name": "stop", "lat": "lat", "lon": "lon", "zone": "zone"}
    _put_csv(folder / "stops.csv", columns, zip(*(city.stops[c] for c in columns.values()), strict=True))
    mode = city.universe.attribute("mode")
    stops = city.stops["stop"]
    rows = ((o, d, mode.labels[mode.codes[i, j]]) for i, o in enumerate(stops) for j, d in enumerate(stops))
    _put_csv(folder / "modes.csv", ("origin", "destination", "mode"), rows)
    config = folder / f"epsilon-{epsilon}.toml"
    start, end = show.hours
    text = CITY_CONFIG.format(name=show.name, trips=show.trips, start=start, end=end, epsilon=epsilon)
    _put(config, text.encode())
    return config


def _put_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows(rows)
    _put(path, out.getvalue().encode())


def _put(path: Path, content: bytes) -> None:
    """A file that is there already is left alone: trips that were written anew would be another data set's."""
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)
