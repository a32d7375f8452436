"""Draws that stay the same from one numpy version to the next: only PCG64's uniform numbers, and inverses of our own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError

CUT = 1 / 200  # the part of a heavy tail that is cut off: buses hold only so many


def generator(seed: int) -> np.random.Generator:
    """The source of uniform numbers of a synthetic data set; never of anything that protects privacy."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"the seed of a synthetic data set is a non-negative integer, not {seed!r}")
    return np.random.Generator(np.random.PCG64(int(seed)))


def choose(rng: np.random.Generator, weights: Floats, n: int) -> Ints:
    """`n` positions drawn with probabilities in proportion to `weights`."""
    ladder = np.cumsum(weights)
    found: Ints = np.searchsorted(ladder, rng.random(n) * ladder[-1], side="right").astype(np.int64)
    return found


def exponential(rng: np.random.Generator, n: int | tuple[int, ...]) -> Floats:
    """Standard exponential numbers."""
    made: Floats = -np.log1p(-rng.random(n))
    return made


def shuffled(rng: np.random.Generator, n: int) -> Ints:
    """A random order of `n` rows."""
    return np.argsort(rng.random(n), kind="stable").astype(np.int64)


def race(rng: np.random.Generator, rates: Floats, n: int) -> Ints:
    """The first `n` positions to arrive when each arrives at its own rate, in the order of arrival.

    This draws without replacement in proportion to the rates, and the order is a noisy ranking by rate.
    """
    able = np.flatnonzero(rates)
    arrival = exponential(rng, len(able)) / rates[able]
    return able[np.argsort(arrival, kind="stable")[:n]].astype(np.int64)


def apportion(weights: Floats, total: int) -> Ints:
    """Integers in proportion to `weights` that add up to `total`, by largest remainders.

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

    One more than a truncated stretched exponential each, with one draw in every n-th of its law (so the tail does not
    vary wildly from seed to seed); its exponent is fitted to `squares` by bisection.
    """
    base: Floats = -np.log(CUT + (1 - CUT) * (np.arange(n) + 1 - rng.random(n)) / n)
    low, high = 0.0, 8.0
    for _ in range(24):  # so few that the last bits of a logarithm cannot matter
        middle = (low + high) / 2
        if _squares(_stretched(base, middle, total)) < squares:
            low = middle
        else:
            high = middle
    return _stretched(base, high, total)


def _stretched(base: Floats, exponent: float, total: int) -> Ints:
    return -np.sort(-(1 + apportion(base**exponent, total - len(base))))


def _squares(counts: NDArray[np.int64]) -> float:
    return float((counts * counts).sum())
