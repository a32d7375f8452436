"""Synthetic smart-card taps in the shape of the published Opal release (`opal_taps`; Asghar and others 2018).

The trips are synthetic: only the shape is Opal's (four modes, two weeks, quarter hours, the names of places), at about a
sixtieth of its volume on buses and trains and an eighth on ferries and light rail, and everybody taps off (Opal also has
unknown places). Opal published tables of taps; here the two taps of a trip stay linked, so that the findings of the
independent assessment of that release (Culnane and others 2017) can be shown:

- the Manly ferry runs point to point and takes two quarter hours, so every tap-on at Manly Wharf is a tap-off at Circular
  Quay No. 3 Wharf half an hour later, and the release answers one question twice;
- late on Fridays and Saturdays fewer than 18 people get off at Cremorne Point Wharf at 00:00, when the only other ferries
  arriving are Manly's: a threshold hides them by place, and the table by time gives them away (the "secret ferry").

A trip changes two taps. One trip more or less therefore moves a table of all taps by 2 in total, and the tap-on and the
tap-off half of it by 1 each: the sensitivity of a trip is 2, or 1 for either half on its own.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.datasets.dataset import (
    Columns,
    Statistic,
    exponential,
    generator,
    gini,
    shuffled,
    statistics_table,
    weighted_choice,
)
from cbdp.errors import InputError
from cbdp.features import Dimension, FeatureDag, Universe, opal, periods

WEEKDAYS = (*(f"201607{d}" for d in range(25, 30)), *(f"201608{d:02d}" for d in range(8, 13)))
WEEKENDS = ("20160730", "20160731", "20160813", "20160814")
DAYS = tuple(sorted(WEEKDAYS + WEEKENDS))
LATE_DAYS = ("20160729", "20160730", "20160812", "20160813")  # Fridays and Saturdays
TIMES = periods("00:00", "24:00", "15min")
MANLY, CREMORNE = "Manly Wharf", "Cremorne Point Wharf"
QUAY_3, QUAY_4 = "Circular Quay No. 3 Wharf", "Circular Quay No. 4 Wharf"
OPAL_THRESHOLD = 18  # taps: Opal suppressed smaller counts

# Busiest first; the last of each is hardly used. The names are Sydney's, how busy each place is here is invented.
_PLACES = {
    mode: text.replace("\n", "|").split("|")
    for mode, text in {
        "bus": """2000|2010|2022|2031|2060|2150|2170|2050|2007|2011|2021|2026|2034|2035|2065|2066|2067|2088|2095|2099
2100|2101|2107|2113|2109|2112|2121|2122|2134|2135|2140|2141|2145|2147|2148|2153|2154|2155|2160|2161|2164|2165|2166|2176
2190|2191|2193|2196|2200|2203|2204|2205|2207|2210|2216|2217|2220|2224|2229|2230|2232|2036|2037|2038|2039|2040|2041|2042
2043|2044|2046|2047|2064|2068|2069|2075|2085|2750|2770|2086""",
        "train": """Town Hall|Wynyard|Central|Parramatta|Redfern|North Sydney|Chatswood|Bondi Junction|Martin Place
Strathfield|Kings Cross|Circular Quay|Hurstville|Burwood|St James|Museum|Blacktown|Liverpool|Epping|Macquarie University
Hornsby|Newtown|Ashfield|Auburn|Lidcombe|Granville|Cabramatta|Fairfield|Campsie|Bankstown|Lakemba|Kogarah|Rockdale
Wolli Creek|Mascot|Domestic Airport|International Airport|Sutherland|Miranda|Cronulla|Westmead|Seven Hills|Mount Druitt
St Marys|Penrith|Campbelltown|Macarthur|Gosford|Wollongong|Newcastle|Artarmon|St Leonards|Milsons Point|Gordon|Turramurra
Eastwood|Rhodes|Olympic Park|Stanmore|Zig Zag""",
        "lightrail": """Central Station|The Star|Capitol Square|Pyrmont Bay|Paddy's Markets|Fish Market|Convention Centre
John Street Square|Dulwich Hill|Glebe|Lilyfield|Jubilee Park|Leichhardt North|Wentworth Park|Exhibition Centre|Hawthorne
Rozelle Bay|Arlington|Marion|Dulwich Grove|Lewisham West|Waratah Mills|Taverners Hill""",
    }.items()
}
_SUFFIX = {"bus": "", "train": " Station", "lightrail": " Light Rail"}


class _Route(NamedTuple):
    """A ferry between two wharves, how busy it is, and how many quarter hours it takes."""

    town: str
    bay: str
    weight: float
    quarters: int


_FERRIES = (
    _Route(QUAY_3, MANLY, 10.0, 2),
    _Route(QUAY_4, "Taronga Zoo Wharf", 2.2, 1),
    _Route(QUAY_4, CREMORNE, 0.6, 1),
    _Route(QUAY_4, "South Mosman Wharf", 0.35, 1),
    _Route("Circular Quay No. 5 Wharf", "Rose Bay Wharf", 1.2, 1),
    _Route("Circular Quay No. 5 Wharf", "Watsons Bay Wharf", 0.8, 2),
    _Route("Circular Quay No. 5 Wharf", "Balmain Wharf", 1.0, 1),
    _Route("Queens Wharf", "Stockton Wharf", 0.8, 0),  # point to point as well, in Newcastle
)
LOCATIONS: Mapping[str, tuple[str, ...]] = {
    "bus": tuple(sorted(_PLACES["bus"])),
    "ferry": tuple(sorted({wharf for route in _FERRIES for wharf in route[:2]})),
    "lightrail": tuple(sorted(name + _SUFFIX["lightrail"] for name in _PLACES["lightrail"])),
    "train": tuple(sorted(name + _SUFFIX["train"] for name in _PLACES["train"])),
}
# Trips on a weekday and on a day of the weekend, and the shares of trips to town, back home and for all else.
_TRIPS = {
    "bus": (15_500, 6_500),
    "ferry": (4_200, 5_400),
    "lightrail": (3_200, 2_600),
    "train": (19_000, 9_500),
}
_TRIP_KIND_SHARES = {"weekday": (0.33, 0.35, 0.32), "weekend": (0.10, 0.15, 0.75)}


@dataclass(frozen=True, eq=False)
class OpalTaps:
    """Synthetic linked taps: for each (day, mode) the time and place of both taps of every trip, as codes.

    `day` is the day a trip began: a tap-off after midnight stays with it, under its time on the clock.

    >>> taps = opal_taps(seed=0)
    >>> len(taps.days), taps.modes
    (14, ('bus', 'ferry', 'lightrail', 'train'))
    """

    name: str
    days: tuple[str, ...]
    modes: tuple[str, ...]
    universes: Mapping[str, Universe] = field(repr=False)  # mode → ⟨tap, time, location⟩
    # (day, mode) → on_time, on_location, off_time, off_location
    parts: Mapping[tuple[str, str], Columns] = field(repr=False)
    statistics: Mapping[str, Statistic] = field(repr=False)

    def __len__(self) -> int:
        return sum(len(part["on_time"]) for part in self.parts.values())

    def index(self, day: str, mode: str) -> Ints:
        """The index of every tap in the mode's universe: all tap-ons, then the tap-offs of the same trips in order."""
        part = self._part(day, mode)
        n = len(part["on_time"])
        kind = np.repeat(np.arange(2), n)
        time = np.concatenate([part["on_time"], part["off_time"]])
        location = np.concatenate([part["on_location"], part["off_location"]])
        return self.universes[mode].rank_codes([kind, time, location])

    def counts(self, day: str, mode: str) -> Ints:
        """The number of taps of every ⟨tap, time, location⟩; each trip is in it twice, once on and once off."""
        index = self.index(day, mode)
        return np.bincount(index, minlength=self.universes[mode].size).astype(np.int64, copy=False)

    def taps(self, day: str, mode: str) -> Columns:
        """The taps as rows: a column of labels per dimension, in the order of `index`."""
        index = self.index(day, mode)
        universe = self.universes[mode]
        named = zip(universe.dimensions.items(), universe.unrank_codes(index), strict=True)
        return {name: np.array(dimension.values)[codes] for (name, dimension), codes in named}

    def features(self, mode: str) -> FeatureDag:
        """Opal's tables for one mode: taps by time, by location and by both, on and off apart."""
        if mode not in self.universes:
            raise InputError(f"unknown mode {mode!r}: the taps are of {', '.join(self.modes)}")
        return opal(self.universes[mode])

    def describe(self) -> str:
        """A small table of what these synthetic taps are like."""
        return statistics_table(f"{self.name}: synthetic taps, no real person is in them", self.statistics)

    def _part(self, day: str, mode: str) -> Columns:
        if (day, mode) not in self.parts:
            raise InputError(f"no taps for day {day!r} and mode {mode!r}: see `days` and `modes`")
        return self.parts[day, mode]


def opal_taps(seed: int = 0) -> OpalTaps:
    """Synthetic linked taps of two weeks on four modes, about half a million trips.

    >>> taps = opal_taps(seed=0)
    >>> taps.features("ferry").sizes
    {'total': 1, 'tap': 2, 'time': 192, 'location': 24, 'singleton': 2304}
    """
    rng = generator(seed)
    universes = {
        mode: Universe(tap=["on", "off"], time=TIMES, location=Dimension(places))
        for mode, places in LOCATIONS.items()
    }
    networks = {mode: _network(mode) for mode in _PLACES}
    parts: dict[tuple[str, str], Columns] = {}
    for day in DAYS:
        for mode in LOCATIONS:
            usual = _TRIPS[mode][day in WEEKENDS]
            n = usual * 95 // 100 + int(rng.integers(usual // 10))
            columns = (
                _ferry_trips(rng, day, n) if mode == "ferry" else _network_trips(rng, networks[mode], day, n)
            )
            order = shuffled(rng, len(columns["on_time"]))
            parts[day, mode] = {name: column[order] for name, column in columns.items()}
    return OpalTaps(f"Opal taps, seed {seed}", DAYS, tuple(LOCATIONS), universes, parts, _statistics(parts))


def _start_time_distribution(day: str) -> tuple[Floats, Floats]:
    """How likely each kind of trip is, and when in the day each kind begins (kind × quarter hour)."""
    hour = np.arange(len(TIMES)) / 4 + 0.125
    inward = np.exp(-((hour - 8.0) ** 2) / 2)
    outward = np.exp(-((hour - 17.4) ** 2) / (2 * 1.3**2))
    rest = np.exp(-((hour - 14.0) ** 2) / (2 * 4.0**2))
    late = 0.002 * (1 + 4 * (day in LATE_DAYS))
    laws = np.stack([inward, outward, rest + late])
    return np.array(_TRIP_KIND_SHARES["weekend" if day in WEEKENDS else "weekday"]), laws


@dataclass(frozen=True, eq=False)
class _Network:
    """A mode whose trips go from anywhere to anywhere: pairs' weights by kind of trip, pairs' km, places' codes."""

    weights: tuple[Floats, ...]
    distance: Floats
    codes: Ints


def _network(mode: str) -> _Network:
    """Places on a sunflower spiral around the town centre, busiest first; few attract most of the work."""
    n = len(_PLACES[mode])
    i = np.arange(n)
    radius, angle = 25 * np.sqrt((i + 0.5) / n), i * 2.399963
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    distance = np.hypot(x[:, None] - x, y[:, None] - y)
    work = (i + 1.0) ** -1.3
    homes = (((i * 7) % n) + 1.0) ** -0.7  # populous suburbs stand anywhere in the list
    homes[-1], work[-1] = homes.min() / 50, work.min() / 50
    near = np.exp(-distance / 20) * (distance > 0)
    inward = homes[:, None] * work * near
    busy = homes / homes.sum() + work / work.sum()
    weights = tuple(w.reshape(-1) for w in (inward, inward.T, busy[:, None] * busy * near))
    codes = Dimension(LOCATIONS[mode]).codes(name + _SUFFIX[mode] for name in _PLACES[mode])
    return _Network(weights, distance.reshape(-1), codes)


def _network_trips(rng: np.random.Generator, network: _Network, day: str, n: int) -> dict[str, Ints]:
    """Trips by bus, train or light rail: a kind, a quarter hour, a pair of places and the minutes between them."""
    shares, clock = _start_time_distribution(day)
    kinds = np.bincount(weighted_choice(rng, shares, n), minlength=3).tolist()
    time = np.concatenate([weighted_choice(rng, law, k) for law, k in zip(clock, kinds, strict=True)])
    pair = np.concatenate(
        [weighted_choice(rng, law, k) for law, k in zip(network.weights, kinds, strict=True)]
    )
    minutes = 5 + 1.2 * network.distance[pair] + 4 * exponential(rng, n)
    off = np.floor(time + rng.random(n) + minutes / 15).astype(np.int64) % len(TIMES)
    start, end = (network.codes[place] for place in np.divmod(pair, len(network.codes)))
    return {"on_time": time, "on_location": start, "off_time": off, "off_location": end}


def _ferry_trips(rng: np.random.Generator, day: str, n: int) -> dict[str, Ints]:
    """Trips by ferry, all over before midnight, and the late sailings that arrive at 00:00."""
    shares, clock = _start_time_distribution(day)
    quarter = np.arange(len(TIMES))
    clock = clock * ((quarter >= 22) & (quarter <= 93))  # 05:30 to 23:15
    kinds = np.bincount(weighted_choice(rng, shares, n), minlength=3).tolist()
    time = np.concatenate([weighted_choice(rng, law, k) for law, k in zip(clock, kinds, strict=True)])
    inward = np.repeat([1.0, 0.0, 0.5], kinds) > rng.random(n)
    route = weighted_choice(rng, np.array([r.weight for r in _FERRIES]), n)
    wharf = Dimension(LOCATIONS["ferry"])
    town, bay = wharf.codes(r.town for r in _FERRIES)[route], wharf.codes(r.bay for r in _FERRIES)[route]
    usual = {
        "on_time": time,
        "on_location": np.where(inward, bay, town),
        "off_time": time + np.array([r.quarters for r in _FERRIES])[route],
        "off_location": np.where(inward, town, bay),
    }
    late = _late_ferry_trips(rng, day, wharf)
    return {name: np.concatenate([usual[name], late[name]]) for name in usual}


def _late_ferry_trips(rng: np.random.Generator, day: str, wharf: Dimension) -> dict[str, Ints]:
    """The last ferries: both ways to and from Manly, and a few people to Cremorne Point, fewer than the threshold."""
    few = OPAL_THRESHOLD - 6 + int(rng.integers(6)) if day in LATE_DAYS else int(rng.integers(5))
    people = [70 + int(rng.integers(30)), 30 + int(rng.integers(15)), few]
    return {
        "on_time": np.repeat(TIMES.codes(["23:30", "23:30", "23:45"]), people),
        "on_location": np.repeat(wharf.codes([QUAY_3, MANLY, QUAY_4]), people),
        "off_time": np.zeros(sum(people), dtype=np.int64),
        "off_location": np.repeat(wharf.codes([MANLY, QUAY_3, CREMORNE]), people),
    }


def _statistics(parts: Mapping[tuple[str, str], Columns]) -> dict[str, Statistic]:
    statistics = {
        "days": Statistic(14, len({day for day, _ in parts}), "published"),
        "modes": Statistic(4, len({mode for _, mode in parts}), "published"),
        "quarter hours": Statistic(96, len(TIMES), "published"),
        "trips": Statistic(None, sum(len(p["on_time"]) for p in parts.values())),
    }
    targets = {"bus": 80, "ferry": 12, "lightrail": 23, "train": 60}
    for mode, places in LOCATIONS.items():
        on = np.concatenate([part["on_location"] for (_, m), part in parts.items() if m == mode])
        by_place = np.bincount(on, minlength=len(places))
        source = "published" if mode == "lightrail" else "chosen"
        statistics |= {
            f"{mode}: places": Statistic(targets[mode], len(places), source),
            f"{mode}: trips": Statistic(None, len(on)),
            f"{mode}: Gini of the places": Statistic(None, gini(by_place)),
        }
    return statistics


# Cards: Opal's rows were trips with a card. The synthetic trips are drawn one by one; here each is assigned to a card, so that the privacy cost of
# a series to one person can be stated. Cards are invented, and consist of habits: the k-th trip before noon from A to B, the k-th after noon
# from B to A, and those of every other day, are one person's. Some habits belong to somebody who has another one too, often of another mode.


NOON_PERIOD = len(TIMES) // 2
MAX_PAIRS = max(len(places) for places in LOCATIONS.values()) ** 2  # ordered pairs of places of one mode
SECOND_HABIT_RATIO = 5  # one habit in so many is somebody's second


def card_of_trips(taps: OpalTaps, seed: int = 0) -> dict[tuple[str, str], Ints]:
    """For each day and mode, the card of every trip."""
    habits = []
    for (_, mode), part in taps.parts.items():
        back = part["on_time"] >= NOON_PERIOD
        home = np.where(back, part["off_location"], part["on_location"])
        work = np.where(back, part["on_location"], part["off_location"])
        places = len(LOCATIONS[mode])
        pair = home * places + work
        habits.append(
            (_occurrence_number(pair, back) * len(taps.modes) + taps.modes.index(mode)) * MAX_PAIRS + pair
        )
    distinct_habits, habit = np.unique(np.concatenate(habits), return_inverse=True)
    card = _holder_of_habit(len(distinct_habits), seed)[habit]
    ends = np.cumsum([len(h) for h in habits])[:-1]
    return dict(zip(taps.parts, np.split(card, ends), strict=True))


def _occurrence_number(pair: Ints, back: Any) -> Ints:
    """The occurrence number (from 0) of each trip within its pair and half of the day: `groupby(key).cumcount()` of pandas."""
    key = 2 * pair + back
    order = np.argsort(key, kind="stable")
    ranked = key[order]
    first = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    turn = np.empty(len(key), dtype=np.int64)
    turn[order] = np.arange(len(key)) - np.repeat(first, np.diff(np.r_[first, len(key)]))
    return turn


def _holder_of_habit(habits: int, seed: int) -> Ints:
    """The holder of each habit; one habit in five belongs to the holder of another."""
    order = shuffled(generator(seed), habits)
    holder = np.arange(habits)
    second = habits // SECOND_HABIT_RATIO
    holder[order[:second]] = order[second : 2 * second]
    return holder


def tap_rows(taps: OpalTaps, seed: int = 0) -> Any:
    """Every tap as a row, with its trip and card: a table of two rows for each trip.

    >>> tap_rows(opal_taps()).column_names
    ['day', 'tap', 'time', 'location', 'trip', 'card']
    """
    import pyarrow as pa

    cards, tables, first = card_of_trips(taps, seed), [], 0
    for (day, mode), part in taps.parts.items():
        trip = np.arange(first, first + len(part["on_time"]))
        date = dt.datetime.strptime(day, "%Y%m%d").date()  # noqa: DTZ007 - a date alone
        tables += [_rows(date, kind, mode, part, trip, cards[day, mode]) for kind in ("on", "off")]
        first += len(trip)
    return pa.concat_tables(tables)


def _rows(day: dt.date, kind: str, mode: str, part: Columns, trip: Ints, card: Ints) -> Any:
    import pyarrow as pa

    return pa.table(
        {
            "day": pa.array([day] * len(trip)),
            "tap": pa.array([kind] * len(trip)),
            "time": _labels_of_codes(TIMES.values, part[f"{kind}_time"]),
            "location": _labels_of_codes(LOCATIONS[mode], part[f"{kind}_location"]),
            "trip": trip,
            "card": card,
        }
    )


def _labels_of_codes(names: Any, codes: Ints) -> Any:
    import pyarrow as pa

    return pa.array(list(names)).take(pa.array(codes))
