"""A synthetic city with the statistics of the published Ann Arbor case study (`ann_arbor`): its public geography and its demand.

The trips are synthetic: the case study's own records were never public. What Fioretto and others (2018) print about them is met exactly: 16,900 ordered pairs of
stops (so 130 stops; the text says 160), half-hour periods, 4 zones, 12 modes, 37,714 trips on a weekday of 28 periods (which agrees with its 261,032 trips
after Laplace noise), of which 4,878 between 8 and 10 am on 591 of 67,600 types. The tail follows the error of an answer that is zero everywhere, taken to be
about 2.16 (root mean square over those types; the paper does not print it). Of the weekend it prints no demand, only a fleet of 48 shuttles against
99: half the trips, and all other weekend figures, are our choice.

The geography (stops, zones, hubs, the mode of every pair) depends on no seed and no demand. Demand: people travel from homes to work, campus and hubs in the
morning and back in the evening; a pair that is popular in one period is popular in the next. No trip starts where it ends, though
the published universe has those types.

`ann_arbor_city` is the same city as a shuttle service sees it: with travel times, hubs and bus lines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.datasets.dataset import (
    Columns,
    Dataset,
    Statistic,
    apportion,
    exponential,
    exponential_race,
    generator,
    gini,
    heavy_tailed,
    shuffled,
)
from cbdp.errors import InputError
from cbdp.features import Dimension, Universe, periods

if TYPE_CHECKING:
    from cbdp.transit.city import City, Driving

STOP_COUNT = 130
WIDTH_KM, HEIGHT_KM = 16.0, 12.0
ZONES = ("NE", "NW", "SW", "SE")
LINE_OF_ZONE = np.array([0, 1, 0, 1])  # one bus line runs NE–SW, one NW–SE; they cross in the centre
MODES = (
    "walk",
    "shuttle",
    "shuttle to next zone",
    "bus",
    "bus-bus",
    "shuttle-bus",
    "shuttle-bus-bus",
    "bus-shuttle",
    "bus-bus-shuttle",
    "shuttle-bus-shuttle",
    "shuttle-bus-bus-shuttle",
    "shuttle-bus-shuttle in zone",
)
# walked below this · one shuttle across a zone border below this · too long for one shuttle in its zone
WALK_KM, BORDER_KM, LONG_KM = 0.5, 1.5, 4.0
CENTRE_LAT, CENTRE_LON, KM_PER_DEGREE = 42.28, -83.74, 111.2


@dataclass(frozen=True, eq=False)
class Geography:
    """Stops in the plane (km), the zone of each, which are hubs, and distance and mode of every ordered pair."""

    names: tuple[str, ...]
    x: Floats
    y: Floats
    zone: Ints
    hub: NDArray[np.bool_]
    distance: Floats
    mode: NDArray[Any]

    @property
    def zones(self) -> list[str]:
        """The zone of each stop, by name."""
        return [ZONES[z] for z in self.zone]

    def near(self, x: float, y: float, spread: float) -> Floats:
        """Gaussian proximity of each stop to a point: 1 there, falling with `spread` (km)."""
        proximity: Floats = np.exp(-((self.x - x) ** 2 + (self.y - y) ** 2) / (2 * spread**2))
        return proximity

    def columns(self) -> Columns:
        """The table of stops."""
        lon_km = KM_PER_DEGREE * math.cos(math.radians(CENTRE_LAT))
        return {
            "stop": np.array(self.names),
            "x": self.x.copy(),
            "y": self.y.copy(),
            "lat": np.round(CENTRE_LAT + (self.y - HEIGHT_KM / 2) / KM_PER_DEGREE, 6),
            "lon": np.round(CENTRE_LON + (self.x - WIDTH_KM / 2) / lon_km, 6),
            "zone": np.array(self.zones),
            "hub": self.hub.copy(),
        }


@cache
def geography() -> Geography:
    """The synthetic city: 130 stops, dense in the centre, in four contiguous zones with two hubs each."""
    x, y = _positions()
    zone = _zones(x, y)
    hubs = _hubs(x, y, zone)
    hub = np.isin(np.arange(STOP_COUNT), hubs)
    distance: Floats = np.hypot(x[:, None] - x, y[:, None] - y)
    mode = _modes(distance, zone, hub)
    for array in (x, y, zone, hub, distance, mode):
        array.setflags(write=False)
    return Geography(tuple(f"S{i + 1:03d}" for i in range(STOP_COUNT)), x, y, zone, hub, distance, mode)


def _positions() -> tuple[Floats, Floats]:
    """Stops on a sunflower spiral that thins outwards, each moved a little so that no spiral shows; rounded to 10 m, against last bits of a cosine."""
    i = np.arange(STOP_COUNT)
    radius = ((i + 0.5) / STOP_COUNT) ** 0.65
    angle = i * math.pi * (3 - math.sqrt(5))
    nudge = [0.7 * radius * (np.modf(i * math.sqrt(p))[0] - 0.5) for p in (2, 3)]
    x = np.round(WIDTH_KM / 2 + 7.5 * radius * np.cos(angle) + nudge[0], 2)
    y = np.round(HEIGHT_KM / 2 + 5.5 * radius * np.sin(angle) + nudge[1], 2)
    return x, y


def _zones(x: Floats, y: Floats) -> Ints:
    """Lloyd's (1982) k-means from the middles of the four quarters: the zones are convex, hence contiguous."""
    cx, cy = WIDTH_KM * np.array([0.75, 0.25, 0.25, 0.75]), HEIGHT_KM * np.array([0.75, 0.75, 0.25, 0.25])
    for _ in range(30):
        zone = np.argmin(np.hypot(x[:, None] - cx, y[:, None] - cy), axis=1)
        size = np.bincount(zone, minlength=4)
        cx, cy = np.bincount(zone, weights=x) / size, np.bincount(zone, weights=y) / size
    zone_of_stop: Ints = zone.astype(np.int64)
    return zone_of_stop


def _hubs(x: Floats, y: Floats, zone: Ints) -> list[int]:
    """Two hubs for each zone: one towards the centre of the city, one beyond the middle of the zone."""
    hubs = []
    for z in range(len(ZONES)):
        members = np.flatnonzero(zone == z)
        dx, dy = x[members].mean() - WIDTH_KM / 2, y[members].mean() - HEIGHT_KM / 2
        for part in (0.35, 1.2):
            gap = np.hypot(x[members] - WIDTH_KM / 2 - part * dx, y[members] - HEIGHT_KM / 2 - part * dy)
            hubs.append(int(members[np.argmin(gap)]))
    return hubs


def _modes(distance: Floats, zone: Ints, hub: NDArray[np.bool_]) -> NDArray[Any]:
    """The mode of each ordered pair: how the network serves it, by distance, zones, hubs and bus lines alone."""
    places = np.flatnonzero(hub)
    reach = np.where(zone[:, None] == zone[places], distance[:, places], np.inf)
    access = np.argmin(reach, axis=1)  # the nearest hub of the stop's own zone
    same_zone = zone[:, None] == zone
    other_hub = access[:, None] != access
    one_line = LINE_OF_ZONE[zone][:, None] == LINE_OF_ZONE[zone]
    from_hub, to_hub = np.broadcast_arrays(hub[:, None], hub)
    ridden = ~same_zone | (other_hub & (distance > LONG_KM))  # too far for one shuttle
    cases = [
        (distance <= WALK_KM, "walk"),
        (from_hub & to_hub & one_line, "bus"),
        (from_hub & to_hub, "bus-bus"),
        (~ridden, "shuttle"),
        (~same_zone & (distance <= BORDER_KM), "shuttle to next zone"),
        (from_hub & one_line, "bus-shuttle"),
        (from_hub, "bus-bus-shuttle"),
        (to_hub & one_line, "shuttle-bus"),
        (to_hub, "shuttle-bus-bus"),
        (same_zone, "shuttle-bus-shuttle in zone"),
        (one_line, "shuttle-bus-shuttle"),
    ]
    chosen = np.select([case for case, _ in cases], [MODES.index(mode) for _, mode in cases], len(MODES))
    left = MODES.index("shuttle-bus-bus-shuttle")
    return np.array(MODES, dtype=object)[np.where(chosen == len(MODES), left, chosen)]


# Demand


OPENS, CLOSES, PERIOD_LENGTH = "06:00", "20:00", "30min"
PERIODS = periods(OPENS, CLOSES, PERIOD_LENGTH)
RUSH_PERIODS = slice(4, 8)  # the periods from 08:00 to 10:00, which the case study examines
PAIR_CONCENTRATION = 2.5  # how strongly demand keeps to the popular pairs


@dataclass(frozen=True)
class _DemandPeak:
    """When trips of one kind are made: `share` of them, around `hour`, within about `spread` hours."""

    share: float
    hour: float
    spread: float


@dataclass(frozen=True)
class _DemandProfile:
    """What the demand of one kind of day is fitted to."""

    trips: int
    types: int
    rush_trips: int
    rush_types: int
    rush_rms: float  # of an answer that is zero everywhere, over all types from 8 to 10 am
    sources: tuple[str, str]  # of the trips and rush figures, and of the root mean square
    inward: _DemandPeak
    outward: _DemandPeak
    errands: _DemandPeak


DEMAND_PROFILES: Mapping[str, _DemandProfile] = {
    "weekday": _DemandProfile(
        37_714, 4_571, 4_878, 591, 2.16, ("published", "estimate"),
        inward=_DemandPeak(0.25, 7.65, 0.85), outward=_DemandPeak(0.38, 17.0, 1.45), errands=_DemandPeak(0.37, 13.0, 3.75),
    ),
    "weekend": _DemandProfile(
        18_900, 2_590, 2_365, 331, 1.40, ("chosen", "chosen"),
        inward=_DemandPeak(0.15, 9.5, 1.5), outward=_DemandPeak(0.25, 17.5, 2.0), errands=_DemandPeak(0.60, 13.5, 3.0),
    ),
}  # fmt: skip


def ann_arbor(
    seed: int = 0, day: Literal["weekday", "weekend"] = "weekday", hours: tuple[str, str] = (OPENS, CLOSES)
) -> Dataset:
    """A synthetic city with the published case study's statistics; `seed` drives its demand and nothing else.

    `hours` takes a part of the service day: the trips in it are the same ones.

    >>> rush = ann_arbor(seed=0, hours=("08:00", "10:00"))
    >>> rush.universe.size, len(rush)
    (67600, 4878)
    >>> rush.features().sizes
    {'total': 1, 'time': 4, 'zone': 64, 'mode': 48, 'singleton': 67600}
    """
    if day not in DEMAND_PROFILES:
        raise InputError(f"the synthetic city has a 'weekday' and a 'weekend', not {day!r}")
    first, last = _period_range(hours)
    fitted, place = DEMAND_PROFILES[day], geography()
    rng = generator(seed)
    pair, period, counts = _demand(rng, place, fitted)
    order = shuffled(rng, fitted.trips)
    pairs, times = np.repeat(pair, counts)[order], np.repeat(period, counts)[order]
    inside = (first <= times) & (times < last)
    pairs, times = pairs[inside], times[inside] - first
    origin, destination = np.divmod(pairs, STOP_COUNT)
    universe = _universe(place, hours)
    names, labels = np.array(place.names), np.array(PERIODS.values[first:last])
    here = (first <= period) & (period < last)
    return Dataset(
        name=f"Ann Arbor {day} {hours[0]}–{hours[1]}, seed {seed}",
        universe=universe,
        trips={"origin": names[origin], "destination": names[destination], "time": labels[times]},
        index=universe.rank_codes([origin, destination, times]),
        stops=place.columns(),
        statistics=_statistics(fitted, universe, (first, last), period[here], counts[here]),
    )


def _period_range(hours: tuple[str, str]) -> tuple[int, int]:
    edges = [*PERIODS.values, CLOSES]
    for hour in hours:
        if hour not in edges:
            raise InputError(
                f"hours {hours}: {hour!r} is not a half hour of the service day {OPENS} to {CLOSES}"
            )
    first, last = map(edges.index, hours)
    if first >= last:
        raise InputError(f"hours {hours} end before they begin: give the earlier one first")
    return first, last


def _universe(place: Geography, hours: tuple[str, str]) -> Universe:
    stops = Dimension(place.names, zone=place.zones)
    universe = Universe(origin=stops, destination=stops, time=periods(*hours, PERIOD_LENGTH))
    return universe.with_attribute("mode", ("origin", "destination"), place.mode)


def _demand(rng: np.random.Generator, place: Geography, fitted: _DemandProfile) -> tuple[Ints, Ints, Ints]:
    """The pair and period of every type that has trips, and how many it has; fitted in parts of two hours."""
    rates = _pair_rates(rng, place, fitted)
    types = _apportioned_with_rush(rates.sum(axis=1), RUSH_PERIODS, fitted.rush_types, fitted.types)
    width = RUSH_PERIODS.stop - RUSH_PERIODS.start
    parts = range(0, len(PERIODS), width)
    trips = np.array([types[start : start + width].sum() for start in parts], dtype=float)
    trips = _apportioned_with_rush(trips, RUSH_PERIODS.start // width, fitted.rush_trips, fitted.trips)
    second_moment = fitted.rush_rms**2 * STOP_COUNT**2 * width / fitted.rush_types
    columns = []
    for start, total in zip(parts, trips, strict=True):
        winners = [
            exponential_race(rng, rates[t] ** PAIR_CONCENTRATION, int(types[t]))
            for t in range(start, start + width)
        ]
        period = np.repeat(np.arange(start, start + width), [len(w) for w in winners])
        sizes = heavy_tailed(rng, len(period), int(total), second_moment * len(period))
        # The k-th to arrive in a period gets about the k-th share of its trips, whichever the period.
        rank = np.concatenate([(np.arange(len(w)) + rng.random(len(w))) / len(w) for w in winners])
        counts = np.empty_like(sizes)
        counts[np.argsort(rank, kind="stable")] = sizes
        columns.append((np.concatenate(winners), period, counts))
    pair, when, counts = (np.concatenate(column) for column in zip(*columns, strict=True))
    return pair, when, counts


def _pair_rates(rng: np.random.Generator, place: Geography, fitted: _DemandProfile) -> Floats:
    """How readily each pair travels in each period of the day (period × pair)."""
    work = 0.1 + 1.5 * place.near(WIDTH_KM / 2, HEIGHT_KM / 2, 1.0)  # the centre
    work += 1.0 * place.near(10.0, 8.0, 0.8) + 0.7 * place.near(9.5, 3.5, 0.8)  # campus and hospital
    work += 0.6 * place.hub
    homes = 1.2 - 0.9 * place.near(WIDTH_KM / 2, HEIGHT_KM / 2, 1.5)
    decay = np.exp(-place.distance / 6.0) * (place.distance > 0)
    habit = [
        exponential(rng, (STOP_COUNT, STOP_COUNT)) ** 2.5 for _ in range(2)
    ]  # a few pairs are far more popular than others
    commute = homes[:, None] * work * decay * habit[0]
    errand = (homes + work)[:, None] * work * decay * habit[1]
    hour = np.arange(len(PERIODS)) / 2 + 6.25
    rates = np.zeros((len(PERIODS), STOP_COUNT**2))
    for peak, pattern in ((fitted.inward, commute), (fitted.outward, commute.T), (fitted.errands, errand)):
        when = np.exp(-((hour - peak.hour) ** 2) / (2 * peak.spread**2))
        rates += np.outer(peak.share * when / when.sum(), pattern.reshape(-1) / pattern.sum())
    return rates


def _apportioned_with_rush(weight: Floats, rush: int | slice, inside: int, total: int) -> Ints:
    """Integers in proportion to `weight`, but with exactly `inside` of their `total` in the rush."""
    marked = np.zeros(len(weight), dtype=bool)
    marked[rush] = True
    counts = np.empty(len(weight), dtype=np.int64)
    counts[marked] = apportion(weight[marked], inside)
    counts[~marked] = apportion(weight[~marked], total - inside)
    return counts


def _statistics(
    fitted: _DemandProfile, universe: Universe, span: tuple[int, int], period: Ints, counts: Ints
) -> dict[str, Statistic]:
    whole = span == (0, len(PERIODS))
    source, rms_source = fitted.sources
    statistics = {
        "stops": Statistic(130, len(universe.dimension("origin")), "implied"),
        "ordered pairs": Statistic(16_900, STOP_COUNT**2, "published"),
        "zones": Statistic(4, len(ZONES), "published"),
        "modes": Statistic(12, len(MODES), "published"),
        "trip types": Statistic(16_900 * (span[1] - span[0]), universe.size, "implied"),
        "trips": Statistic(fitted.trips if whole else None, int(counts.sum()), source if whole else ""),
        "types with trips": Statistic(
            fitted.types if whole else None, len(counts), "chosen" if whole else ""
        ),
    }
    if span[0] <= RUSH_PERIODS.start and RUSH_PERIODS.stop <= span[1]:
        rush = counts[(period >= RUSH_PERIODS.start) & (period < RUSH_PERIODS.stop)]
        size = STOP_COUNT**2 * (RUSH_PERIODS.stop - RUSH_PERIODS.start)
        statistics |= {
            "8–10 am: trip types": Statistic(67_600, size, "published"),
            "8–10 am: trips": Statistic(fitted.rush_trips, int(rush.sum()), source),
            "8–10 am: types with trips": Statistic(fitted.rush_types, len(rush), source),
            "8–10 am: error of all zeros": Statistic(
                fitted.rush_rms, float(np.sqrt((rush * rush).sum() / size)), rms_source
            ),
            "8–10 am: largest type": Statistic(None, int(rush.max())),
            "8–10 am: Gini of the types": Statistic(None, gini(rush)),
        }
    return statistics


def ann_arbor_city(driving: Driving | None = None, *, headway: int = 600, bus_speed: float = 30.0) -> City:
    """The city of `ann_arbor`, with two bus lines that cross at the central stop.

    >>> city = ann_arbor_city()
    >>> len(city.zones), int(city.hub.sum())
    (4, 8)

    A bus every ten minutes is what the case study calls high-frequency; buses run at 30 km/h on the same streets.
    """
    from cbdp.transit.city import (  # whoever only wants trips loads no code of shuttles
        Driving,
        Line,
        make_city,
    )

    place = geography()
    drive = driving or Driving()
    ways = drive.metres(place.x, place.y)
    centre = int(np.argmin(_from_centre(place)))
    lines = []
    for line in range(2):
        zones = np.flatnonzero(line == LINE_OF_ZONE).tolist()
        first, last = (_from_outside(place, z) for z in zones)
        stops = [*first, centre, *reversed(last)]
        run = [max(1, math.ceil(ways[a, b] * 3.6 / bus_speed)) for a, b in pairwise(stops)]
        name = "–".join(ZONES[z] for z in zones)
        lines.append(Line(name, tuple(stops), headway, tuple(run), offset=line * headway // 2))
    return make_city(place.names, place.x, place.y, place.zones, place.hub, lines=lines, driving=drive)


def _from_centre(place: Geography) -> Floats:
    distance: Floats = np.hypot(place.x - WIDTH_KM / 2, place.y - HEIGHT_KM / 2)
    return distance


def _from_outside(place: Geography, zone: int) -> list[int]:
    """The hubs of a zone, the farthest from the centre first."""
    hubs = np.flatnonzero(place.hub & (place.zone == zone))
    return [int(h) for h in hubs[np.argsort(-_from_centre(place)[hubs], kind="stable")]]
