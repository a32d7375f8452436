"""A country of the size that InfTDA was tried on, generated: nobody's trips, and no file to download.

The paper's is Italy's census of 2011: 20 regions, 110 provinces, 8,092 municipalities, and so 65.5 million pairs, of which
556,120 are filled. Here municipalities have log-normal sizes and lie about the centres of their provinces; trips go by
gravity, most of them near, and half a country's stay where they start. Which pairs are filled is drawn without
replacement in proportion to gravity, so that exactly as many are filled as in the census.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.inftda.demand import Demand, Ints

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Country:
    """How large it is, and how its people travel."""

    regions: int = 20
    provinces: int = 110
    places: int = 8092
    filled: int = 556_120  # pairs with trips
    trips: int = 28_900_000  # about as many as went to work or school
    width: float = 1000.0  # km
    height: float = 400.0
    around: float = 20.0  # km of a place from the centre of its province
    near: float = 7.0  # km within which distance hardly matters
    decay: float = 2.75  # gravity falls with this power of distance
    uneven: float = 1.2  # standard deviation of the logarithm of sizes
    rows: int = 512  # origins whose pairs are held at a time


def country(of: Country | None = None, seed: int = 0) -> Demand:
    """The generated country.

    >>> small = country(Country(regions=3, provinces=7, places=60, filled=400, trips=9000))
    >>> small.sizes, len(small.trips), small.total, int(small.trips.min())
    ((1, 3, 7, 60), 400, 9000, 1)
    """
    of, rng = of or Country(), np.random.default_rng(seed)
    above, where = _map(of, rng)
    size = np.exp(of.uneven * rng.standard_normal(of.places))
    pair, weight = _chosen(of, where, size, rng)
    more = rng.multinomial(of.trips - of.filled, weight / weight.sum())
    return Demand("country", above, pair // of.places, pair % of.places, 1 + more)


def empty(of: Country | None = None, seed: int = 0) -> Demand:
    """The same places and areas, without trips."""
    none = np.zeros(0, dtype=np.int64)
    above, _ = _map(of or Country(), np.random.default_rng(seed))
    return Demand("country", above, none, none, none)


def _map(of: Country, rng: np.random.Generator) -> tuple[list[Ints], Floats]:
    """Areas above each place, and where it lies. Regions are strips of the land; the number of places in a province varies."""
    centre = rng.random((of.provinces, 2)) * [of.width, of.height]
    centre = centre[np.argsort(centre[:, 0])]
    region = np.sort(np.arange(of.provinces) % of.regions)
    share = rng.gamma(3.0, size=of.provinces)
    spare = rng.multinomial(of.places - of.provinces, share / share.sum())
    province = np.repeat(np.arange(of.provinces), 1 + spare)
    where = centre[province] + of.around * rng.standard_normal((of.places, 2))
    return [np.zeros(of.places, dtype=np.int64), region[province], province, np.arange(of.places)], where


def _chosen(of: Country, where: Floats, size: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """The filled pairs in ascending order, and their gravity: the first of all pairs' exponential clocks to ring."""
    found: list[tuple[Floats, Ints, Floats]] = []
    for begin in range(0, of.places, of.rows):
        here = np.arange(begin, min(begin + of.rows, of.places))
        distance = np.hypot(*(where[here, None, axis] - where[None, :, axis] for axis in (0, 1)))
        gravity = (size[here, None] * size / (1 + distance / of.near) ** of.decay).ravel()
        clock = rng.standard_exponential(len(gravity)) / gravity
        first = _least(clock, of.filled)
        found.append((clock[first], here[0] * of.places + first, gravity[first]))
    clock, pair, gravity = (np.concatenate(parts) for parts in zip(*found, strict=True))
    kept = np.sort(_least(clock, of.filled))
    return pair[kept], gravity[kept]


def _least(values: Floats, many: int) -> Ints:
    return np.argpartition(values, many - 1)[:many] if many < len(values) else np.arange(len(values))
