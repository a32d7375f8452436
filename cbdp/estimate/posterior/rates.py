"""How many trips to expect of each type, from noisy answers alone: a product of shrunken factors, one for each margin.

Leaves are dealt into folds, and each leaf is predicted by a model that has not seen its fold: its own noise never
enters its own factors. It enters only what is decided once for all leaves together, as one of them: the total, the shape of
counts, the belief in each spread of a margin's factors, and which corrections of sums are made.

Margins are taken from coarse to fine, twice. The first time a factor is judged by the likelihood of the leaves it holds, which
is right for sparse and heavy-tailed demand; the second time by their sums, which is right for dense demand, and only where
that predicts the left-out leaves better. Factors are shrunk by how much they are seen to vary, and a margin whose factors do not
vary more than chance is dropped.

The same pass can draw rates as they may be, instead of expecting them: a spread of the factors of each margin by how much it is
believed, then the factors themselves. Folds are drawn with the same chances, so that a factor is the same in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from cbdp.arrays import Floats, Singles
from cbdp.estimate.posterior import factors, mixing, passes
from cbdp.estimate.posterior.corrections import bunched_by, corrected
from cbdp.estimate.posterior.lattice import TINY, Lattice
from cbdp.estimate.posterior.margins import Margin
from cbdp.estimate.posterior.models import Models
from cbdp.estimate.posterior.settings import TUNING
from cbdp.estimate.posterior.shapes import best_shape
from cbdp.privacy.measurement import Measurement

KNOTS = np.arange(TUNING.lowest_log, TUNING.highest_log + TUNING.knot_step / 2, TUNING.knot_step)
STRIDE = int(TUNING.knot_step / TUNING.cell)  # cells between two knots
assert STRIDE == 2  # as passes.added has it
assert len(KNOTS) <= factors.WIDE
UNDER = int(-TUNING.lowest_log / TUNING.cell)  # cells below the factor 1
SPREADS = np.array(TUNING.spreads)


@dataclass(frozen=True, eq=False)
class Grid:
    """Factors that are weighed, evenly in their logarithms; likelihoods are interpolated from the knots by cubic splines."""

    factor: Floats
    one: int  # the place of the factor 1
    spline: NDArray[np.float32]  # knots × grid
    priors: Floats  # spreads × grid: log-normal factors of mean 1
    law: NDArray[np.float32]  # the same
    parts: int  # of a unit of the logarithm


def _grid(parts: int) -> Grid:
    low, high = TUNING.lowest_log, TUNING.highest_log
    log = np.linspace(low, high, int((high - low) * parts) + 1)
    spline = np.ascontiguousarray(CubicSpline(KNOTS, np.eye(len(KNOTS)), axis=0)(log).T)
    law = np.exp(-0.5 * ((log + SPREADS[:, None] ** 2 / 2) / SPREADS[:, None]) ** 2)
    priors = law / law.sum(axis=1, keepdims=True)
    single = spline.astype(np.float32), priors.astype(np.float32)
    return Grid(np.exp(log), int(-low * parts), single[0], priors, single[1], parts)


ROUGH, SHARP = _grid(TUNING.rough), _grid(TUNING.sharp)


@dataclass(frozen=True, eq=False)
class Rates:
    """The expected count of each leaf, and by how much its logarithm follows when tables are moved (`Margin.moves`)."""

    rate: Singles
    follows: Singles


def expected(
    noisy: NDArray[Any],
    fold: NDArray[np.int8],
    margins: Sequence[Margin],
    total: tuple[float, float],
    table: Lattice,
    start: Floats | None = None,
    progress: Callable[[float], None] | None = None,
    rng: np.random.Generator | None = None,
) -> Rates:
    """The expected count of each leaf; with `rng`, drawn as it may be.

    `total` is the number of trips as told by the tables, and by moved ones; `start` are public weights, which say how it is
    spread before data is seen.
    """
    models = _first(fold, total, start)
    shape: tuple[float, float] | None = None
    likely: Singles | None = None
    for done, margin in enumerate(margins):
        if done % TUNING.often == 0:
            best = best_shape(table, models.own)
            if best != shape or likely is None:
                shape, likely = best, _likelihoods(table, best)
        assert shape is not None
        assert likely is not None
        _by_likelihood(margin, models, table.place, likely, shape, rng)
        if progress is not None:
            progress((done + 1) / (2 * len(margins)))
    bunched = bunched_by(noisy, models.own, table.noise)
    for done, margin in enumerate(margins):
        corrected(margin, models, noisy, table.variance, bunched, rng)
        if progress is not None:
            progress(0.5 + (done + 1) / (2 * len(margins)))
    return Rates(models.own, models.off)


def _first(fold: NDArray[np.int8], total: tuple[float, float], start: Floats | None) -> Models:
    """The total, spread evenly or as it is thought to be spread."""
    rate = np.full(len(fold), total[0] / len(fold), dtype=np.float32)
    if start is not None:
        np.multiply(start, total[0] / start.sum(), out=rate, casting="same_kind")
    np.maximum(rate, passes.FAINTEST, out=rate)
    off = np.full(len(fold), math.log(total[1] / total[0]), dtype=np.float32)
    return Models(fold, np.tile(rate, (TUNING.folds, 1)), off)


# Factors by likelihood


def _likelihoods(table: Lattice, shape: tuple[float, float]) -> Singles:
    """Columns × logarithms of the expected count: the log-likelihood of each noisy count that occurs.

    It is less that of next to no trips, or, of noisy counts that these do not explain, the largest: that is the same whatever the factors,
    and sums of small numbers are precise ones.
    """
    mixed = table.mixtures(
        np.exp(TUNING.first_log + TUNING.cell * np.arange(TUNING.columns)), np.array([shape])
    )[:, 0]
    likely = mixing.mixed_laws(mixed, table.occurring)
    log = np.log(np.maximum(likely, TINY))
    less = np.where(log.max(axis=0) - log[0] > TUNING.explained, log.max(axis=0), log[0])
    return dealt_in_turn((log - less).T).astype(np.float32)


def dealt_in_turn(by_column: Floats) -> Floats:
    """Columns × logarithms, as factors.py reads them.

    The logarithms are dealt in turn to as many rows as lie between two knots, so that what a leaf adds to the knots
    lies side by side; the last is repeated, for knots that only fill lanes.
    """
    dealt = by_column.reshape(len(by_column), -1, STRIDE).transpose(0, 2, 1)
    return np.concatenate([dealt, np.repeat(dealt[:, :, -1:], factors.WIDE - len(KNOTS), axis=2)], axis=2)


def _by_likelihood(
    margin: Margin,
    models: Models,
    column: NDArray[np.int16],
    likely: Singles,
    shape: tuple[float, float],
    rng: np.random.Generator | None,
) -> None:
    """Multiply the expected counts of each model by the margin's factors, if they vary."""
    uneven = math.exp(shape[1] ** 2) / (1 - shape[0]) - 1
    weighing = Weighing(margin, margin.of_leaves(), models, column, likely, uneven)
    weighed = models.each(weighing.weigh)
    gains = np.sum([each.gains for each in weighed], axis=0) * (weighing.every / TUNING.folds)
    belief = believed(gains, margin.asked) if rng is None else _one_of(belief_in(gains), rng)
    if belief is None:
        return
    prior = belief[1:] @ weighing.grid.priors
    prior[weighing.grid.one] += belief[0]
    chance = None if rng is None else rng.random(margin.size)
    found = models.each(lambda k: weighing.factors(k, weighed[k], prior, chance))
    models.multiply(weighing.element, [own for own, _ in found], found[0][1])


@dataclass(frozen=True, eq=False)
class FoldEvidence:
    """What one fold's model says of a margin's factors: the nats that each spread gains, and what that was told from."""

    gains: Floats
    held: Floats | None  # elements × 2: sums of rates and of their squares, where these were needed
    sums: Singles | None  # log-likelihoods by element and knot; None: too many to be kept


@dataclass(frozen=True, eq=False)
class Weighing:
    """The factors of one margin, weighed by the likelihood of its leaves, and by what is known of their sums."""

    margin: Margin
    element: NDArray[np.int32]  # of each leaf
    models: Models
    column: NDArray[np.int16]  # of each leaf
    likely: Singles
    uneven: float

    @property
    def grid(self) -> Grid:
        return SHARP if self.margin.asked else ROUGH

    @property
    def every(self) -> int:
        """Of so many elements, each fold's model judges one."""
        return TUNING.folds if self.margin.size > TUNING.judged else 1

    def weigh(self, k: int) -> FoldEvidence:
        grid, gains, size = self.grid, np.zeros(len(SPREADS)), self.margin.size
        known = bool(self.margin.precision.any())
        held = passes.held(self.element, self.models.rate[k], size) if known else None
        for low, high in self.models.ranges(size):
            sums, told = self._added(k, low, high), self._told(low, high, held)
            law = grid.spline, grid.factor, grid.one, grid.law
            gains += factors.gains(sums, self.every, (k - low) % self.every, *law, told, TUNING.depth)
        return FoldEvidence(gains, held, sums if high - low == size else None)

    def factors(
        self, k: int, weighed: FoldEvidence, prior: Floats, chance: Floats | None
    ) -> tuple[Floats, Floats]:
        """The factors of a fold's model; of the first one also as moved tables would have them."""
        rate, size = self.models.rate[k], self.margin.size
        held = passes.held(self.element, rate, size) if weighed.held is None else weighed.held
        moved = passes.held_moved(self.element, rate, self.models.off, size) if k == 0 else None
        first, second = np.empty(size), np.empty(0 if moved is None else size)
        for low, high in self.models.ranges(size):
            sums = self._added(k, low, high) if weighed.sums is None else weighed.sums
            given = self.grid, prior, None if chance is None else chance[low:high], sums
            first[low:high] = _factors(*given, self._told(low, high, held))
            if moved is not None:
                second[low:high] = _factors(*given, self._told(low, high, moved, held))
        first *= held[:, 0].sum() / (first @ held[:, 0])  # the total stays
        if moved is not None:
            second *= moved[:, 0].sum() / (second @ moved[:, 0])
        return first, second

    def _told(self, low: int, high: int, held: Floats | None, first: Floats | None = None) -> Floats:
        """What factors.py is to know of some elements; with `first`, what was held then, as moved tables have it."""
        here, margin = slice(low, high), self.margin
        made = np.zeros((7, high - low))
        made[:4] = margin.known[here], margin.precision[here], margin.power[here], margin.width[here]
        if held is not None:
            made[4], made[5] = held[here, 0], self.uneven * held[here, 1]
        if held is not None and first is not None:
            made[0] += margin.moves[here]
            made[6] = self.grid.parts * np.log(held[here, 0] / np.maximum(first[here, 0], TINY))
        return made

    def _added(self, k: int, low: int, high: int) -> Singles:
        last = TUNING.columns - 2 - STRIDE * (len(KNOTS) - 1)
        leaves = self.element, self.models.rate[k], self.models.fold, k, self.column
        likely = self.likely.reshape(-1), self.likely.shape[2]
        cells = TUNING.first_log, TUNING.cell, UNDER, last
        made: Singles = passes.added(
            *passes.knots_of(self.margin.most, high - low), low, *leaves, *likely, *cells
        )
        return made


def _factors(grid: Grid, prior: Floats, chance: Floats | None, sums: Singles, told: Floats) -> Floats:
    """The expected factors, or those at these chances of their laws."""
    given = sums, grid.spline, grid.factor, prior, told, TUNING.depth, TUNING.least_factor
    made: Floats = factors.factors(*given) if chance is None else factors.drawn(*given, chance)
    return made


def belief_in(gains: Floats) -> Floats:
    """The belief in no factors and in each spread of them, by what they gain."""
    made = np.concatenate(
        [[TUNING.none], (1 - TUNING.none) / len(SPREADS) * np.exp(np.minimum(gains, 700.0))]
    )
    made /= made.sum()
    return made


def believed(gains: Floats, asked: bool) -> Floats | None:
    """The same; None: the margin is dropped."""
    belief = belief_in(gains)
    return None if belief[0] > TUNING.dropped or (gains.max() < TUNING.gain and not asked) else belief


def _one_of(belief: Floats, rng: np.random.Generator) -> Floats | None:
    """One of the spreads, drawn; None: no factors."""
    drawn = int(rng.choice(len(belief), p=belief))
    return np.eye(len(belief))[drawn] if drawn else None


def total_of(measurements: Sequence[Measurement], least: float = 1.0) -> float:
    """The number of trips to be expected, given all whole measurements, combined by inverse variance; not below the least.

    Before they are seen the total has Jeffreys' law of a Poisson mean, T^(−1/2): noise far above the total makes fewer trips.
    """
    told = [
        (float(m.values.sum()), float(np.sum(m.variance)))
        for m in measurements
        if m.variance is not None and m.elements is None
    ]
    precision = sum(1 / v for _, v in told)
    mean, deviation = sum(t / v for t, v in told) / precision, math.sqrt(1 / precision)
    if mean > 30 * deviation or deviation < 0.5:
        return max(least, mean)
    trips = np.exp(np.linspace(0.0, math.log(max(2.0, mean + 12 * deviation)), TUNING.orders))
    far = np.square((trips - mean) / deviation)
    likely = np.exp((far.min() - far) / 2) * np.sqrt(trips)
    return float(likely @ trips / likely.sum())
