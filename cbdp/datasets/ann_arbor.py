"""A synthetic city with the statistics of the published Ann Arbor case study (`ann_arbor`).

The trips are synthetic: the case study's own records were never public. What it printed about them is met exactly:
16,900 ordered pairs of stops (so 130 stops; its text says 160), half-hour periods, 4 zones, 12 modes, 37,714 trips on a
weekday of 28 periods (which agrees with its 261,032 trips after Laplace noise), of which 4,878 between 8 and 10 am on 591
of 67,600 types. The tail follows the error of an answer that is zero everywhere, taken to be about 2.16 (root mean square
over those types; the paper does not print it). Of the weekend it prints no demand, only a fleet of 48 shuttles against 99:
half the trips, and all other weekend figures, are our choice.

Demand: people travel from homes to work, campus and hubs in the morning and back in the evening; a pair that is popular
in one period is popular in the next. No trip starts where it ends, though the published universe has those types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.datasets.dataset import Dataset, Statistic, gini
from cbdp.datasets.draws import apportion, exponential, generator, heavy_tailed, race, shuffled
from cbdp.datasets.geography import HEIGHT, MODES, STOPS, WIDTH, ZONES, Geography, city
from cbdp.errors import InputError
from cbdp.features import Dimension, Universe, periods

OPENS, CLOSES, EVERY = "06:00", "20:00", "30min"
DAY = periods(OPENS, CLOSES, EVERY)
RUSH = slice(4, 8)  # the periods from 08:00 to 10:00, which the case study examines
FOCUS = 2.5  # how strongly demand keeps to the popular pairs


@dataclass(frozen=True)
class _Peak:
    """When trips of one kind are made: `share` of them, around `hour`, within about `spread` hours."""

    share: float
    hour: float
    spread: float


@dataclass(frozen=True)
class _Day:
    """What the demand of one kind of day is fitted to."""

    trips: int
    types: int
    rush_trips: int
    rush_types: int
    rush_rms: float  # of an answer that is zero everywhere, over all types from 8 to 10 am
    sources: tuple[str, str]  # of the trips and rush figures, and of the root mean square
    inward: _Peak
    outward: _Peak
    errands: _Peak


DAYS: Mapping[str, _Day] = {
    "weekday": _Day(
        37_714, 4_571, 4_878, 591, 2.16, ("published", "estimate"),
        inward=_Peak(0.25, 7.65, 0.85), outward=_Peak(0.38, 17.0, 1.45), errands=_Peak(0.37, 13.0, 3.75),
    ),
    "weekend": _Day(
        18_900, 2_590, 2_365, 331, 1.40, ("chosen", "chosen"),
        inward=_Peak(0.15, 9.5, 1.5), outward=_Peak(0.25, 17.5, 2.0), errands=_Peak(0.60, 13.5, 3.0),
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
    if day not in DAYS:
        raise InputError(f"the synthetic city has a 'weekday' and a 'weekend', not {day!r}")
    first, last = _period_range(hours)
    fitted, place = DAYS[day], city()
    rng = generator(seed)
    pair, period, counts = _demand(rng, place, fitted)
    order = shuffled(rng, fitted.trips)
    pairs, times = np.repeat(pair, counts)[order], np.repeat(period, counts)[order]
    inside = (first <= times) & (times < last)
    pairs, times = pairs[inside], times[inside] - first
    origin, destination = np.divmod(pairs, STOPS)
    universe = _universe(place, hours)
    names, labels = np.array(place.names), np.array(DAY.values[first:last])
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
    edges = [*DAY.values, CLOSES]
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
    made = Universe(origin=stops, destination=stops, time=periods(*hours, EVERY))
    return made.with_attribute("mode", ("origin", "destination"), place.mode)


def _demand(rng: np.random.Generator, place: Geography, fitted: _Day) -> tuple[Ints, Ints, Ints]:
    """The pair and period of every type that has trips, and how many it has; fitted in parts of two hours."""
    rates = _rates(rng, place, fitted)
    types = _with_rush(rates.sum(axis=1), RUSH, fitted.rush_types, fitted.types)
    width = RUSH.stop - RUSH.start
    parts = range(0, len(DAY), width)
    trips = np.array([types[start : start + width].sum() for start in parts], dtype=float)
    trips = _with_rush(trips, RUSH.start // width, fitted.rush_trips, fitted.trips)
    second_moment = fitted.rush_rms**2 * STOPS**2 * width / fitted.rush_types
    columns = []
    for start, total in zip(parts, trips, strict=True):
        winners = [race(rng, rates[t] ** FOCUS, int(types[t])) for t in range(start, start + width)]
        period = np.repeat(np.arange(start, start + width), [len(w) for w in winners])
        sizes = heavy_tailed(rng, len(period), int(total), second_moment * len(period))
        # The k-th to arrive in a period gets about the k-th share of its trips, whichever the period.
        rank = np.concatenate([(np.arange(len(w)) + rng.random(len(w))) / len(w) for w in winners])
        counts = np.empty_like(sizes)
        counts[np.argsort(rank, kind="stable")] = sizes
        columns.append((np.concatenate(winners), period, counts))
    pair, when, counts = (np.concatenate(column) for column in zip(*columns, strict=True))
    return pair, when, counts


def _rates(rng: np.random.Generator, place: Geography, fitted: _Day) -> Floats:
    """How readily each pair travels in each period of the day (period × pair)."""
    work = 0.1 + 1.5 * place.near(WIDTH / 2, HEIGHT / 2, 1.0)  # the centre
    work += 1.0 * place.near(10.0, 8.0, 0.8) + 0.7 * place.near(9.5, 3.5, 0.8)  # campus and hospital
    work += 0.6 * place.hub
    homes = 1.2 - 0.9 * place.near(WIDTH / 2, HEIGHT / 2, 1.5)
    decay = np.exp(-place.distance / 6.0) * (place.distance > 0)
    habit = [
        exponential(rng, (STOPS, STOPS)) ** 2.5 for _ in range(2)
    ]  # a few pairs are far more popular than others
    commute = homes[:, None] * work * decay * habit[0]
    errand = (homes + work)[:, None] * work * decay * habit[1]
    hour = np.arange(len(DAY)) / 2 + 6.25
    made = np.zeros((len(DAY), STOPS**2))
    for peak, pattern in ((fitted.inward, commute), (fitted.outward, commute.T), (fitted.errands, errand)):
        when = np.exp(-((hour - peak.hour) ** 2) / (2 * peak.spread**2))
        made += np.outer(peak.share * when / when.sum(), pattern.reshape(-1) / pattern.sum())
    return made


def _with_rush(weight: Floats, rush: int | slice, inside: int, total: int) -> Ints:
    """Integers in proportion to `weight`, but with exactly `inside` of their `total` in the rush."""
    marked = np.zeros(len(weight), dtype=bool)
    marked[rush] = True
    made = np.empty(len(weight), dtype=np.int64)
    made[marked] = apportion(weight[marked], inside)
    made[~marked] = apportion(weight[~marked], total - inside)
    return made


def _statistics(
    fitted: _Day, universe: Universe, span: tuple[int, int], period: Ints, counts: Ints
) -> dict[str, Statistic]:
    whole = span == (0, len(DAY))
    source, rms_source = fitted.sources
    found = {
        "stops": Statistic(130, len(universe.dimension("origin")), "implied"),
        "ordered pairs": Statistic(16_900, STOPS**2, "published"),
        "zones": Statistic(4, len(ZONES), "published"),
        "modes": Statistic(12, len(MODES), "published"),
        "trip types": Statistic(16_900 * (span[1] - span[0]), universe.size, "implied"),
        "trips": Statistic(fitted.trips if whole else None, int(counts.sum()), source if whole else ""),
        "types with trips": Statistic(
            fitted.types if whole else None, len(counts), "chosen" if whole else ""
        ),
    }
    if span[0] <= RUSH.start and RUSH.stop <= span[1]:
        rush = counts[(period >= RUSH.start) & (period < RUSH.stop)]
        size = STOPS**2 * (RUSH.stop - RUSH.start)
        found |= {
            "8–10 am: trip types": Statistic(67_600, size, "published"),
            "8–10 am: trips": Statistic(fitted.rush_trips, int(rush.sum()), source),
            "8–10 am: types with trips": Statistic(fitted.rush_types, len(rush), source),
            "8–10 am: error of all zeros": Statistic(
                fitted.rush_rms, float(np.sqrt((rush * rush).sum() / size)), rms_source
            ),
            "8–10 am: largest type": Statistic(None, int(rush.max())),
            "8–10 am: Gini of the types": Statistic(None, gini(rush)),
        }
    return found
