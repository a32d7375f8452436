"""Synthetic data sets of trips: their record type, the statistics they are fitted to, and their repeatable random draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.features import FeatureDag, Universe, odmts

Columns = Mapping[str, NDArray[Any]]


class Statistic(NamedTuple):
    """A figure of a synthetic data set, beside the one it was fitted to (None where nothing was fitted).

    `source` says where the target is from: "published" (printed in a source), "implied" (follows from printed figures),
    "estimate" (our reading of a source) or "chosen" (our own, where no source says anything).

    >>> Statistic(target=37_714, measured=37_714, source="published").source
    'published'
    """

    target: float | None
    measured: float
    source: str = ""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Synthetic trips over a universe of ⟨origin, destination, time⟩, with the public geography behind them.

    >>> import cbdp
    >>> city = cbdp.datasets.ann_arbor(seed=0)
    >>> city.name, list(city.universe.dimensions)
    ('Ann Arbor weekday 06:00–20:00, seed 0', ['origin', 'destination', 'time'])
    """

    name: str
    universe: Universe  # with the attributes origin.zone, destination.zone and mode
    # a row per trip, a column of labels per dimension; rows in random order
    trips: Columns = field(repr=False)
    index: Ints = field(repr=False)  # each trip's type, as its index in the universe
    stops: Columns = field(repr=False)  # stop, x and y (km), lat, lon, zone, hub
    statistics: Mapping[str, Statistic] = field(repr=False)

    def __len__(self) -> int:
        return len(self.index)

    def counts(self) -> Ints:
        """The number of trips of every type of the universe."""
        return np.bincount(self.index, minlength=self.universe.size).astype(np.int64, copy=False)

    def features(self, level: int = 5) -> FeatureDag:
        """The case study's features of this city: total, time, zone pair × time, mode × time, singleton."""
        return odmts(self.universe, level=level)

    def describe(self) -> str:
        """A small table of the statistics this synthetic set was fitted to, beside those it has."""
        return statistics_table(f"{self.name}: synthetic trips, no real person is in them", self.statistics)


def statistics_table(title: str, statistics: Mapping[str, Statistic]) -> str:
    """The statistics as lines of text.

    >>> print(statistics_table("a synthetic set", {"trips": Statistic(10, 10, "published"), "Gini": Statistic(None, 0.5)}))
    a synthetic set
    <BLANKLINE>
    statistic  fitted to   has  from
    trips             10    10  published
    Gini               –  0.50
    """
    rows = [("statistic", "fitted to", "has", "from")]
    rows += [
        (name, _number_text(s.target), _number_text(s.measured), s.source) for name, s in statistics.items()
    ]
    wide = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"{n:<{wide[0]}}  {t:>{wide[1]}}  {m:>{wide[2]}}  {source}".rstrip() for n, t, m, source in rows]
    return "\n".join([title, "", *lines])


def _number_text(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def gini(counts: NDArray[Any]) -> float:
    """The Gini coefficient of positive counts: 0 when all are equal, near 1 when one holds everything.

    >>> gini(np.array([5, 5, 5])), round(gini(np.array([1, 1, 1, 97])), 2)
    (0.0, 0.72)
    """
    ordered = np.sort(counts).astype(float)
    n = len(ordered)
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * ordered.sum()))


# Draws that are the same in every version of numpy: only PCG64's uniform numbers, and inverses of our own


TRUNCATED_TAIL = 1 / 200  # probability of the heavy tail that is cut off: buses hold only so many


def generator(seed: int) -> np.random.Generator:
    """The source of uniform numbers of a synthetic data set; never of anything that protects privacy."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"the seed of a synthetic data set is a non-negative integer, not {seed!r}")
    return np.random.Generator(np.random.PCG64(int(seed)))


def weighted_choice(rng: np.random.Generator, weights: Floats, n: int) -> Ints:
    """`n` positions drawn with probabilities in proportion to `weights` (`Generator.choice`), by inversion."""
    ladder = np.cumsum(weights)
    positions: Ints = np.searchsorted(ladder, rng.random(n) * ladder[-1], side="right").astype(np.int64)
    return positions


def exponential(rng: np.random.Generator, n: int | tuple[int, ...]) -> Floats:
    """Standard exponential numbers, by inversion."""
    draws: Floats = -np.log1p(-rng.random(n))
    return draws


def shuffled(rng: np.random.Generator, n: int) -> Ints:
    """A random order of `n` rows."""
    return np.argsort(rng.random(n), kind="stable").astype(np.int64)


def exponential_race(rng: np.random.Generator, rates: Floats, n: int) -> Ints:
    """The first `n` positions to arrive when each arrives at its own rate, in the order of arrival.

    Weighted sampling without replacement (Efraimidis and Spirakis 2006); the order is a noisy ranking by rate.
    """
    able = np.flatnonzero(rates)
    arrival = exponential(rng, len(able)) / rates[able]
    return able[np.argsort(arrival, kind="stable")[:n]].astype(np.int64)


def apportion(weights: Floats, total: int) -> Ints:
    """Integers in proportion to `weights` that add up to `total`, by largest remainders (Hamilton's method).

    >>> apportion(np.array([1.0, 1.0, 2.0]), 5).tolist()
    [1, 1, 3]
    """
    exact = weights * (total / weights.sum())
    whole: Ints = np.floor(exact).astype(np.int64)
    late = np.argsort(whole - exact, kind="stable")[: total - int(whole.sum())]
    whole[late] += 1
    return whole


def heavy_tailed(rng: np.random.Generator, n: int, total: int, squares: float) -> Ints:
    """`n` positive integers, largest first, that add up to `total` and whose squares add up to `squares` nearly.

    One more than a truncated stretched exponential each, by stratified sampling with one draw in every n-th of its probability (so the tail
    does not vary wildly from seed to seed); its exponent is fitted to `squares` by bisection.
    """
    base: Floats = -np.log(TRUNCATED_TAIL + (1 - TRUNCATED_TAIL) * (np.arange(n) + 1 - rng.random(n)) / n)
    low, high = 0.0, 8.0
    for _ in range(24):  # so few that the last bits of a logarithm cannot matter
        middle = (low + high) / 2
        if _sum_of_squares(_scaled_powers(base, middle, total)) < squares:
            low = middle
        else:
            high = middle
    return _scaled_powers(base, high, total)


def _scaled_powers(base: Floats, exponent: float, total: int) -> Ints:
    return -np.sort(-(1 + apportion(base**exponent, total - len(base))))


def _sum_of_squares(counts: NDArray[np.int64]) -> float:
    return float((counts * counts).sum())
