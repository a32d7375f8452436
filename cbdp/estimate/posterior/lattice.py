"""The exact law of a noisy count, given how many trips were to be expected.

A count n is Poisson about a mean λ, and λ itself is drawn from a mixture: none at all with some probability, or else
about the expected value with a spread that may be heavy. On top comes the noise. With noise far wider
than a trip, counts are taken in steps of a fraction of its scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, pdtrc

from cbdp.arrays import Floats, Ints
from cbdp.estimate.posterior import mixing
from cbdp.estimate.posterior.settings import TUNING
from cbdp.privacy.laws import Law

SHAPES = np.array([(empty, spread) for empty in TUNING.empty for spread in TUNING.spread])
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Lattice:
    """The likelihood of every noisy count there is, under a Poisson count of each of a row of means."""

    step: int
    noise: Law
    column: NDArray[np.int16]  # of each noisy count, in the tables
    capped: NDArray[np.bool_]  # noisy counts beyond the tables
    means: Floats  # 0 and a row of means, in trips
    zero: int  # the column of a noisy count of 0
    trips: Floats  # by column, the count without noise (0 where it would be negative)
    counts: Floats  # means × columns: the law of the count without noise

    def with_means(self, means: Floats) -> Lattice:
        """The tables for another row of means."""
        return replace(self, means=means, counts=_counts(means, self.zero, self.counts.shape[1], self.step))

    @cached_property
    def likelihood(self) -> Floats:
        """Means × columns: the probability of each noisy count."""
        return self.noise.blurred(self.counts, self.step)

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Means × columns: likelihood times the expected count, and times its square, given the noisy count."""
        return self.noise.blurred(self.counts * self.trips, self.step), self.noise.blurred(
            self.counts * self.trips**2, self.step
        )

    @cached_property
    def used(self) -> Ints:
        """The columns that occur."""
        return np.flatnonzero(np.bincount(self.column, minlength=self.counts.shape[1]))

    @cached_property
    def place(self) -> NDArray[np.int16]:
        """Of each noisy count, its place among the columns that occur."""
        places = np.zeros(self.counts.shape[1], dtype=np.int16)
        places[self.used] = np.arange(len(self.used))
        return places[self.column]

    @cached_property
    def occurring(self) -> Floats:
        """Means × columns that occur: the probability of each noisy count; what is next to none is none."""
        found = self.likelihood[:, self.used]
        return np.where(found < TINY, 0.0, found)

    @property
    def variance(self) -> float:
        """Of the noise, in trips."""
        return self.noise.variance()

    def mixtures(self, expected: Floats, shapes: Floats = SHAPES) -> Floats:
        """Expected counts × shapes × means: what each shape mixes; each row adds up to 1 and has the expected mean.

        Of a shape (empty, spread), `empty` have no trips, and the others' means are log-normal.
        """
        return mixtures(self.means, expected, shapes)


def lattice(noisy: NDArray[Any], law: Law) -> Lattice:
    """The tables for these noisy counts, whose noise has this law."""
    scale = float(law.scale)
    step = max(1, int(scale // TUNING.fine))
    deep = TUNING.deep * math.ceil(scale / step)
    assert deep + TUNING.most_steps + 1 < 2**15
    place = _steps(noisy, step, -deep, TUNING.most_steps + 1)
    high = min(int(place.max()), TUNING.most_steps)
    zero = max(0, -int(place.min()))
    top = max(8, high + 3 * math.ceil(scale / step) + 3)
    means = row_of_means(TUNING.least_mean, max(4.0, top * step), scale)
    counts = _counts(means, zero, zero + top + 1, step)
    trips = np.concatenate([np.zeros(zero), step * np.arange(top + 1.0)])
    return Lattice(
        step,
        law,
        np.minimum(place, high) + np.int16(zero),
        place > high,
        means,
        zero,
        trips,
        counts,
    )


@njit(cache=True, nogil=True)
def _steps(noisy, step, least, most):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Noisy counts in whole steps, between these."""
    made = np.empty(len(noisy), dtype=np.int16)
    for u in range(len(noisy)):
        made[u] = min(max(np.rint(noisy[u] / step), least), most)
    return made


def _counts(means: Floats, zero: int, columns: int, step: int) -> Floats:
    """Means × columns: the law of the count without noise, which is not below 0."""
    counts = np.zeros((len(means), columns))
    counts[:, zero:] = _poisson(means, np.arange(columns - zero), step)
    return counts


def row_of_means(least: float, most: float, scale: float) -> Floats:
    """0, and means from the least to the first that is not below the most.

    Poisson counts about neighbouring means overlap, or differ by less than the noise: else counts between two means would be
    drawn to one or the other.
    """
    found = [0.0, least]
    while found[-1] < most:
        found.append(found[-1] + min(TUNING.mean_ratio * found[-1], max(math.sqrt(found[-1]), scale / 4)))
    return np.array(found)


def mixtures(means: Floats, expected: Floats, shapes: Floats = SHAPES) -> Floats:
    """Expected counts × shapes × means: of a shape (empty, spread), `empty` have no trips; the others' means are log-normal.

    A mean between two of the row is dealt to both so that means are kept: the part of each is a second difference of
    expected excesses E[(λ − a)⁺], which a log-normal law has in closed form; or of E[(a − λ)⁺], where these are small.
    """
    empty, spread = shapes[:, 0], np.maximum(shapes[:, 1], 1e-3)
    centre = np.maximum(expected, TINY)[:, None] / (1 - empty)
    positive = np.ascontiguousarray(means[1:])
    below, near, far = mixing.asked(centre, np.log(centre), positive, np.log(positive), spread)
    near, far = ndtr(near, out=near), ndtr(far, out=far)
    made: Floats = mixing.dealt(below, near, far, centre, positive, np.diff(means), empty)
    return made


def _poisson(means: Floats, steps: Ints, step: int) -> Floats:
    """Means × steps: the law of a Poisson count; a count between two steps is dealt to both, so that means are kept."""
    if step == 1:
        log = np.log(
            np.maximum(means, TINY)
        )  # a mean of 0 has all counts but 0 out of the question, as this has
        law = np.exp(np.outer(log, steps) - means[:, None] - gammaln(steps + 1.0))
    else:  # a hat function of the count is a second difference of expected excesses E[(n − a)⁺]
        over = step * np.arange(0.0, len(steps) + 1)
        excess = means[:, None] * pdtrc(np.maximum(over - 1, 0), means[:, None]) - over * pdtrc(
            over, means[:, None]
        )
        excess[:, 0] = means
        excess = np.column_stack([means + step, excess])
        law = np.maximum(np.diff(excess, n=2, axis=1) / step, 0.0)
    made: Floats = law / np.maximum(law.sum(axis=1, keepdims=True), TINY)
    return made
