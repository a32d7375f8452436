"""InfTDA, built from its description: top-down counts with discrete Gaussian noise, each family of areas fitted to its parent.

Neighbouring data differ in one trip that is replaced by another, so the number of trips is public and given exactly. ρ of
zero-concentrated privacy is worked out from ε and δ and shared evenly among the levels; a level's counts change by √2 in
all. The children of an area that came out empty are empty and get no noise.

A family's noisy counts x and its parent's trips c are reconciled by the integers y ≥ 0 with Σy = c that are close to x in the
largest deviation: all of x is shifted by the same amount, what falls below zero is cut off, and what was cut off is taken from the
smallest counts first, at most as much from each as the largest cut. Taking it from the smallest makes pairs empty and so
fewer of them false; that is what the paper's integer step is for.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.inftda.demand import Demand, Ints, Level, levels
from benchmarks.inftda.metrics import Published

DELTA = 1e-8  # the paper's
AT_ONCE = 2**22  # children that are drawn at a time
FAR = 12.0  # standard deviations beyond which noise has no mass that a double can tell


def concentrated(epsilon: float, delta: float = DELTA) -> float:
    """The ρ that (ε, δ) allows, by ε = ρ + 2√(ρ ln(1/δ)).

    >>> round(concentrated(1.0), 4)
    0.0132
    """
    free = math.log(1 / delta)
    return (math.sqrt(free + epsilon) - math.sqrt(free)) ** 2


@dataclass(frozen=True, eq=False)
class DiscreteGaussian:
    """P(z) ∝ exp(−z²/2σ²) on the integers, by inversion of its table with floating-point numbers: for simulations only."""

    sigma: float
    rng: np.random.Generator

    def draw(self, many: int) -> Ints:
        reach = max(2, math.ceil(FAR * self.sigma))
        z = np.arange(-reach, reach + 1)
        up = np.cumsum(np.exp(-0.5 * (z / self.sigma) ** 2))
        made: Ints = z[np.searchsorted(up, self.rng.random(many) * up[-1], side="right")]
        return made


def inftda(truth: Demand, epsilon: float, seed: int) -> Published:
    """One release of the rival's."""
    every = levels(truth.depth)
    share = concentrated(epsilon) / (len(every) - 1)
    noise = DiscreteGaussian(math.sqrt(1 / share), np.random.default_rng(seed))  # σ² = (√2)²/2ρ
    key, value = np.zeros(1, dtype=np.int64), np.array([truth.total])
    for coarse, fine in itertools.pairwise(every):
        families = Families(truth, coarse, fine)
        parts = [families.fitted(k, v, noise) for k, v in families.batches(key, value)]
        key, value = (np.concatenate([part[n] for part in parts]) for n in (0, 1))
        order = np.argsort(key)
        key, value = key[order], value[order]
    return Published(key // truth.places, key % truth.places, value)


class Families:
    """From the pairs of areas at a level to those inside them at the next."""

    def __init__(self, truth: Demand, coarse: Level, fine: Level) -> None:
        self.real = truth.counts(fine)
        self.by_origin = fine[0] > coarse[0]
        depth = max(fine)
        parent = np.zeros(truth.sizes[depth], dtype=np.int64)
        parent[truth.above[depth]] = truth.above[depth - 1]
        self.begin = np.searchsorted(parent, np.arange(truth.sizes[depth - 1] + 1))
        self.coarse_width, self.fine_width = truth.sizes[coarse[1]], truth.sizes[fine[1]]

    def batches(self, key: Ints, value: Ints) -> list[tuple[Ints, Ints]]:
        """Parents, so many at a time that their children fit in memory."""
        children = np.cumsum(np.diff(self.begin)[self._opened(key)])
        cuts = np.searchsorted(children, np.arange(AT_ONCE, int(children[-1]), AT_ONCE))
        return list(zip(np.split(key, cuts), np.split(value, cuts), strict=True))

    def fitted(self, key: Ints, value: Ints, noise: DiscreteGaussian) -> tuple[Ints, Ints]:
        """The children of these parents with noise, fitted to the parents' trips; those with none are left out."""
        opened = self._opened(key)
        many = np.diff(self.begin)[opened]
        ends = np.cumsum(many)
        child = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(
            self.begin[opened] - ends + many, many
        )
        kept = np.repeat(key % self.coarse_width if self.by_origin else key // self.coarse_width, many)
        inside = child * self.fine_width + kept if self.by_origin else kept * self.fine_width + child
        wanted = self._real(inside) + noise.draw(len(inside))
        fit(wanted, ends, value)
        some = wanted > 0
        return inside[some], wanted[some]

    def _opened(self, key: Ints) -> Ints:
        return key // self.coarse_width if self.by_origin else key % self.coarse_width

    def _real(self, key: Ints) -> Ints:
        place = np.minimum(np.searchsorted(self.real[0], key), len(self.real[0]) - 1)
        return np.where(self.real[0][place] == key, self.real[1][place], 0)


def fit(wanted: NDArray[np.int64], ends: Ints, total: Ints) -> None:
    """In place, family by family: whole numbers of at least 0 that add up to the parent's.

    >>> counts = np.array([7, -2, 3, 5, 1])
    >>> fit(counts, np.array([3, 5]), np.array([10, 6]))
    >>> counts.tolist()
    [8, 0, 2, 5, 1]
    """
    _fit(wanted, ends, total)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _fit(wanted: NDArray[np.int64], ends: Ints, total: Ints) -> None:
    begin = 0
    for family in range(len(ends)):
        y = wanted[begin : ends[family]]
        begin = ends[family]
        lacking = total[family] - y.sum()
        shift = lacking // len(y)
        order = np.argsort(y)
        for place in order[len(y) - (lacking - shift * len(y)) :]:
            y[place] += 1
        y += shift
        low = y.min()
        if low >= 0:
            continue
        over = 0
        for n in range(len(y)):
            if y[n] < 0:
                over -= y[n]
                y[n] = 0
        step = 1 - low
        while over > 0:  # from the smallest up; again with what is left to each, should one round not do
            left = 0
            for place in order:
                taken = min(step, y[place], over)
                y[place] -= taken
                over -= taken
                left += y[place] > 0
            step = max(1, over // max(left, 1))
