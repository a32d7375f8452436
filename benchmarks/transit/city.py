"""The city, its modes, and the demand that the experiments are about: the calibrated one, and the same with another shape."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cbdp.datasets import Dataset, ann_arbor, ann_arbor_city
from cbdp.errors import InputError
from cbdp.transit import City, Itineraries, Legs, ModeRule, Operations, legs_of, spread
from cbdp.transit.modes import codes_of

Ints = NDArray[np.int64]

RUSH = ("08:00", "10:00")
DAYS = ("weekday", "weekend")
AS_IS = "as is"
POWER = "counts^"
SHORT = "busiest types shortest"


@cache
def place() -> tuple[City, Itineraries]:
    city = ann_arbor_city()
    return city, ModeRule().choose(city)


@cache
def dataset(day: str) -> Dataset:
    return ann_arbor(seed=0, day="weekend" if day == "weekend" else "weekday", hours=RUSH)


@cache
def demand(day: str, shape: str = AS_IS) -> Ints:
    """The day's true counts, in one of the shapes: as they are, to a power, or the busiest types with the least driving."""
    counts = dataset(day).counts()
    if shape == AS_IS:
        return counts
    if shape == SHORT:
        return shortest(counts, driving(dataset(day)))
    if shape.startswith(POWER):
        return reshaped(counts, float(shape.removeprefix(POWER)))
    raise InputError(f"unknown demand {shape!r}: use {AS_IS!r}, {SHORT!r} or '{POWER}1.5'")


def reshaped(counts: Ints, power: float) -> Ints:
    """The same types and total with counts in proportion to their power: 1 changes nothing."""
    if power == 1.0:
        return counts
    made = np.zeros_like(counts)
    busy = np.flatnonzero(counts)
    wanted = counts[busy] ** power
    share = 1 + (counts.sum() - len(busy)) * wanted / wanted.sum()
    made[busy] = np.floor(share).astype(np.int64)
    left = int(counts.sum() - made.sum())
    made[busy[np.argsort(np.floor(share) - share, kind="stable")[:left]]] += 1
    return made


def shortest(counts: Ints, seconds: Ints, periods: int = 4) -> Ints:
    """The same counts on the same types of each period, the larger the less shuttles drive for the type."""
    made = np.zeros_like(counts)
    busy = np.flatnonzero(counts)
    for period in range(periods):  # the time is the universe's last dimension
        own = busy[busy % periods == period]
        made[own[np.argsort(seconds[own], kind="stable")]] = -np.sort(-counts[own])
    return made


def driving(data: Dataset) -> Ints:
    """Seconds that shuttles would drive straight for one trip of each type."""
    city, modes = place()
    hop, slot = Operations().hop(city), int(modes.slot(np.array([8 * 3600]))[0])
    codes = dict(
        zip(data.universe.dimensions, data.universe.unrank_codes(np.arange(data.universe.size)), strict=True)
    )
    o, d = (codes_of(city, data.universe, end)[codes[end]] for end in ("origin", "destination"))
    access, egress = modes.access[slot, o, d], modes.egress[slot, o, d]
    made: Ints = np.where(access >= 0, hop[o, access], 0) + np.where(egress >= 0, hop[egress, d], 0)
    return made


def riders(day: str, counts: Ints, seed: int) -> Legs:
    """The shuttle legs of counted trips, their seconds drawn by `seed`."""
    city, modes = place()
    types = np.flatnonzero(counts)
    return legs_of(spread(dataset(day).universe, types, counts[types], city, seed=seed), modes)


def heavy_share(counts: Ints, heavy: int = 50) -> float:
    """The share of trips that are of types with at least so many."""
    return float(counts[counts >= heavy].sum() / counts.sum())
