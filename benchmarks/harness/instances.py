"""Realistic instances built through the public API: a sparse synthetic city, its trips, and noisy counts of them.

The noise here is numpy's, which is fast and NOT private (its low bits give the input away): for timing only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.estimation import compiler
from cbdp.features import SINGLETON, Dimension, FeatureDag, Universe, odmts, periods
from cbdp_solvers.problem import Problem

Floats = NDArray[np.float64]

ZONES, MODES = ("NW", "NE", "SW", "SE"), 12
# the case study's sparsity: so many trip types have trips, and so many trips they are, of every 67,600 types
BUSY, TRIPS, OF = 591, 4_878, 67_600


@dataclass(frozen=True)
class City:
    """Stops on a map, half-hour periods, and trips between some pairs of stops."""

    stops: int = 130
    periods: int = 4
    seed: int = 2024

    def __str__(self) -> str:
        return f"{self.leaves:,} leaves"

    @property
    def leaves(self) -> int:
        return self.stops**2 * self.periods

    @cached_property
    def places(self) -> Floats:
        """Where the stops are, in km: most near the centre of a city 20 km wide."""
        return np.random.default_rng(self.seed).normal(0.0, 4.0, (self.stops, 2))

    @cached_property
    def features(self) -> FeatureDag:
        """The case study's five features, with zones by quadrant and modes as a public function of the pair."""
        east, south = (self.places > 0).T
        stops = Dimension(
            range(self.stops), zone=[ZONES[e + 2 * s] for e, s in zip(east, south, strict=True)]
        )
        universe = Universe(origin=stops, destination=stops, time=half_hours(self.periods))
        return odmts(universe, modes=self.modes())

    def modes(self) -> NDArray[Any]:
        """A mode per pair: four distance bands, in each one of three by which hub is on the way."""
        apart = np.linalg.norm(self.places[:, None] - self.places[None], axis=2)
        band = np.digitize(apart, [2.0, 5.0, 9.0])
        middle = (self.places[:, None] + self.places[None]) / 2
        angle = np.floor((np.arctan2(middle[..., 1], middle[..., 0]) + np.pi) / (2 * np.pi) * 3)
        labels: NDArray[Any] = 3 * band + np.minimum(angle.astype(int), MODES // 4 - 1)
        return labels

    @cached_property
    def trips(self) -> Floats:
        """The true counts by leaf: busy types lie at pairs of attractive stops, and few of them have most trips."""
        rng = np.random.default_rng(self.seed + 1)
        busy = max(1, round(BUSY * self.leaves / OF))
        appeal = rng.pareto(1.2, self.stops) + 0.1
        share = np.outer(appeal, appeal).ravel()
        # an exponential race picks types without replacement, likelier at attractive pairs
        race = rng.exponential(size=self.leaves) / np.repeat(share, self.periods)
        types = np.argpartition(race, busy - 1)[:busy]
        extra = round(TRIPS * self.leaves / OF) - busy
        likely = rng.pareto(1.2, busy) + 0.05
        counts = np.zeros(self.leaves)
        counts[types] = 1 + rng.multinomial(extra, likely / likely.sum())
        return counts

    def insecure_measurements(
        self, epsilon: float, *, rounded: bool = False, draw: int = 0
    ) -> dict[str, NDArray[Any]]:
        """Noisy counts of every feature, Laplace of scale 5/ε (five features share ε). Insecure: see above."""
        rng = np.random.default_rng(self.seed + 2 + draw)
        measured: dict[str, NDArray[Any]] = {}
        for name in self.features.features:
            held = self.trips if name == SINGLETON else self._sums(name)
            noisy = held + rng.laplace(scale=len(self.features.features) / epsilon, size=len(held))
            measured[name] = np.rint(noisy).astype(np.int64) if rounded else noisy
        return measured

    def insecure_problem(self, epsilon: float, *, rounded: bool = False) -> Problem:
        return compiler.compile(self.features, self.insecure_measurements(epsilon, rounded=rounded))

    def _sums(self, name: str) -> Floats:
        dag = self.features
        cells = np.bincount(dag.cell_of_leaf, weights=self.trips, minlength=dag.cells.size).astype(float)
        held = dag.cells.element_of_cell[name]
        return np.bincount(held, weights=cells, minlength=dag.size(name)).astype(float)


def half_hours(count: int) -> Dimension:
    """So many half hours from midnight, or numbered periods where a day has not as many."""
    if count <= 48:
        minutes = 30 * count
        return periods("00:00", f"{minutes // 60:02d}:{minutes % 60:02d}", "30min")
    return Dimension(range(count))
