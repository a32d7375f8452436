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
from typing import TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from cbdp.estimate.posterior import factors
from cbdp.estimate.posterior.lattice import TINY, Lattice
from cbdp.estimate.posterior.margins import Margin
from cbdp.estimate.posterior.settings import TUNING
from cbdp.estimate.posterior.shapes import best_shape
from cbdp.estimate.posterior.threads import each
from cbdp.privacy.laws import Law
from cbdp.privacy.measurement import Measurement

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Made = TypeVar("Made")

KNOTS = np.arange(TUNING.lowest_log, TUNING.highest_log + TUNING.knot_step / 2, TUNING.knot_step)
STRIDE = int(TUNING.knot_step / TUNING.cell)  # cells between two knots
assert STRIDE == 2  # as factors.added has it
assert len(KNOTS) <= factors.WIDE
HELD, SHIFT = 4, 6  # rows of `_told`
UNDER = int(-TUNING.lowest_log / TUNING.cell)  # cells below the factor 1
SPREADS = np.array(TUNING.spreads)
TRIED = np.array([(s, b) for s in TUNING.signal for b in TUNING.bunched])


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

    rate: Floats
    follows: Floats


@dataclass(frozen=True, eq=False)
class Models:
    """One for each fold, which has not seen it; and the first of them as moved tables would have it."""

    fold: NDArray[np.int8]  # of each leaf
    rate: Floats  # folds × leaves
    log: Floats
    moved: Floats  # the rates of the first, from moved tables

    @property
    def own(self) -> Floats:
        """Of each leaf, what the model says that has not seen it."""
        found: Floats = self.rate[self.fold, np.arange(len(self.fold))]
        return found

    def each(self, work: Callable[[int], Made]) -> list[Made]:
        """The work on each fold's model, in their order."""
        return each(work, range(TUNING.folds), len(self.fold))


def expected(
    noisy: Floats,
    codes: Sequence[Ints],
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
    even = np.ones(len(noisy)) if start is None else start / start.max()
    even /= even.sum()
    rate, moved = (np.maximum(t * even, TINY) for t in total)
    many = (TUNING.folds, 1)
    models = Models(_folds(codes), np.tile(rate, many), np.tile(np.log(rate), many), moved)
    column = table.column.astype(np.int32)
    shape: tuple[float, float] | None = None
    likely: Floats | None = None
    for done, margin in enumerate(margins):
        if done % TUNING.often == 0:
            best = best_shape(table, models.own)
            if best != shape or likely is None:
                shape, likely = best, _likelihoods(table, best)
        assert shape is not None
        assert likely is not None
        _by_likelihood(margin, models, column, likely, shape, rng)
        if progress is not None:
            progress((done + 1) / (2 * len(margins)))
    bunched = _bunched(noisy, models.own, table.noise)
    for done, margin in enumerate(margins):
        _by_sums(margin, models, noisy, table.variance, bunched, rng)
        if progress is not None:
            progress(0.5 + (done + 1) / (2 * len(margins)))
    return Rates(models.own, np.log(models.moved / models.rate[0]))


def _folds(codes: Sequence[Ints]) -> NDArray[np.int8]:
    made: NDArray[np.int8] = (np.sum(codes, axis=0) % TUNING.folds).astype(np.int8)
    return made


# Factors by likelihood


def _likelihoods(table: Lattice, shape: tuple[float, float]) -> Floats:
    """Columns × logarithms of the expected count: the log-likelihood of each noisy count."""
    mixed = table.mixtures(
        np.exp(TUNING.first_log + TUNING.cell * np.arange(TUNING.columns)), np.array([shape])
    )[:, 0]
    return dealt_in_turn(np.log(np.maximum(mixed @ table.likelihood, TINY)).T)


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
    column: NDArray[np.int32],
    likely: Floats,
    shape: tuple[float, float],
    rng: np.random.Generator | None,
) -> None:
    """Multiply the expected counts of each model by the margin's factors, if they vary."""
    uneven = math.exp(shape[1] ** 2) / (1 - shape[0]) - 1
    grid = SHARP if margin.asked else ROUGH
    last = TUNING.columns - 2 - STRIDE * (len(KNOTS) - 1)
    knots = (TUNING.first_log, TUNING.cell, UNDER, last)
    flat, per = likely.reshape(-1), likely.shape[2]
    every = TUNING.folds if margin.size > TUNING.judged else 1

    def weigh(k: int) -> tuple[Floats, Floats, Floats]:
        sums = factors.added(
            margin.element, models.log[k], models.fold, k, column, flat, per, margin.size, *knots
        )
        told = _told(margin, margin.known, models.rate[k], uneven)
        gain = factors.gains(
            sums, every, k % every, grid.spline, grid.factor, grid.one, grid.law, told, TUNING.depth
        )
        return sums, told, gain

    weighed = models.each(weigh)
    gains = np.sum([gain for *_, gain in weighed], axis=0) * (every / TUNING.folds)
    belief = believed(gains, margin.asked) if rng is None else _one_of(belief_in(gains), rng)
    if belief is None:
        return
    prior = belief[1:] @ grid.priors
    prior[grid.one] += belief[0]
    chance = None if rng is None else rng.random(margin.size)

    def multiply(k: int) -> None:
        found = _factors(grid, prior, chance, *weighed[k][:2])
        factors.multiply_both(margin.element, found, np.log(found), models.rate[k], models.log[k])

    first, told = weighed[0][:2]
    moved = _told(margin, margin.known + margin.moves, models.moved, uneven)
    moved[SHIFT] = grid.parts * np.log(moved[HELD] / np.maximum(told[HELD], TINY))
    models.each(multiply)
    factors.multiply(margin.element, _factors(grid, prior, chance, first, moved), models.moved)


def _factors(grid: Grid, prior: Floats, chance: Floats | None, sums: Floats, told: Floats) -> Floats:
    """The expected factors, or those at these chances of their laws; the total stays."""
    given = sums, grid.spline, grid.factor, prior, told, TUNING.depth, TUNING.least_factor
    made: Floats = factors.factors(*given) if chance is None else factors.drawn(*given, chance)
    made *= told[HELD].sum() / (made @ told[HELD])
    return made


def _told(margin: Margin, known: Floats, rate: Floats, uneven: float) -> Floats:
    """What factors.py is to know of each element."""
    held, squares = factors.held(margin.element, rate, margin.size)
    rows = [known, margin.precision, margin.power, margin.width, held, uneven * squares]
    return np.stack([*rows, np.zeros(margin.size)])


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


# Factors by sums


def _bunched(noisy: Floats, rate: Floats, law: Law) -> float:
    """How much more than Poisson counts vary about their rate; 1 where that cannot be told from noise."""
    variance = law.variance()
    total = max(float(rate.sum()), 1.0)
    extra = float(np.square(noisy - rate).sum()) - len(noisy) * variance
    chance = math.sqrt((law.excess_kurtosis + 2.0) * len(noisy)) * variance  # of squares of the noise
    return max(1.0, extra / total) if extra > TUNING.bunched_sure * chance else 1.0


def _by_sums(
    margin: Margin,
    models: Models,
    noisy: Floats,
    variance: float,
    bunched: float,
    rng: np.random.Generator | None,
) -> None:
    """Correct the models so that the margin's sums are met, as far as that predicts left-out leaves better."""
    noisy_sums, leaves = _by_fold(margin.element, models.fold, noisy, margin.size, TUNING.folds)

    def seen(k: int, rate: Floats, known: Floats) -> tuple[Floats, Floats, Floats]:
        inside, held = _inside(margin.element, rate, models.fold, k, margin.size)
        others, many = noisy_sums.sum(axis=0) - noisy_sums[k], leaves.sum(axis=0) - leaves[k]
        spread = np.maximum(many * variance, TINY)
        precision = inside**2 / spread + held**2 * margin.precision
        told = others * inside / spread + known * held * margin.precision
        return np.divide(told, precision, out=np.ones(margin.size), where=precision > TINY), precision, held

    def scored(k: int) -> tuple[tuple[Floats, Floats, Floats], Floats, Floats]:
        found = seen(k, models.rate[k], margin.known)
        made = _shrunk(*found, TRIED, TUNING.least_corrected)
        return found, *_scores(margin.element, models.rate[k], models.fold, k, noisy, made, variance, bunched)

    tried = models.each(scored)
    best = _chosen(*(np.sum([t[i] for t in tried], axis=0) for i in (1, 2)))
    if best is None:
        return

    off = None if rng is None else rng.standard_normal(margin.size)

    def multiply(found: tuple[Floats, Floats, Floats], rate: Floats) -> None:
        factor = _shrunk(*found, TRIED[best : best + 1], TUNING.least_corrected)[:, 0]
        if off is not None:
            factor = _as_it_may_be(factor, off, *found[1:], *TRIED[best])
        factors.multiply(margin.element, factor, rate)

    models.each(lambda k: multiply(tried[k][0], models.rate[k]))
    multiply(seen(0, models.moved, margin.known + margin.moves), models.moved)


def _as_it_may_be(
    factor: Floats, off: Floats, precision: Floats, held: Floats, signal: float, bunched: float
) -> Floats:
    """The factors, off by so many of their deviations; the total stays."""
    doubt = 1.0 / np.maximum(precision, TINY) + bunched / np.maximum(held, TINY)
    deviation = np.sqrt(signal * doubt / (signal + doubt))
    made: Floats = np.maximum(factor + deviation * off, TUNING.least_corrected)
    made *= held.sum() / max(float(made @ held), TINY)
    return made


def _chosen(score: Floats, square: Floats) -> int | None:
    """The trial that predicts left-out leaves best; None where that may be chance."""
    best = int(np.argmin(score))
    return best if score[best] < -TUNING.correction_sure * math.sqrt(square[best]) else None


@njit(cache=True, nogil=True)
def _by_fold(element, fold, noisy, size, folds):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    sums, leaves = np.zeros((folds, size)), np.zeros((folds, size))
    for u in range(len(noisy)):
        sums[fold[u], element[u]] += noisy[u]
        leaves[fold[u], element[u]] += 1.0
    return sums, leaves


@njit(cache=True, nogil=True)
def _inside(element, rate, fold, left_out, size):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """By element, the expected count without the left-out fold's leaves, and with them."""
    inside, held = np.zeros(size), np.zeros(size)
    for u in range(len(rate)):
        held[element[u]] += rate[u]
        if fold[u] != left_out:
            inside[element[u]] += rate[u]
    return inside, held


@njit(cache=True, nogil=True)
def _shrunk(ratio, precision, held, tried, least):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Elements × trials: the factor seen, drawn towards 1 by how unsure it is; the total stays."""
    made = np.empty((len(ratio), len(tried)), dtype=np.float32)
    for t in range(len(tried)):
        before, after = 0.0, 0.0
        for j in range(len(ratio)):
            doubt = 1.0 / max(precision[j], TINY) + tried[t, 1] / max(held[j], TINY)
            factor = max(1.0 + tried[t, 0] / (tried[t, 0] + doubt) * (ratio[j] - 1.0), least)
            made[j, t] = factor
            before += held[j]
            after += factor * held[j]
        for j in range(len(ratio)):
            made[j, t] *= before / after
    return made


@njit(cache=True, nogil=True)
def _scores(element, rate, fold, own, noisy, factor, variance, bunched):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """By trial, the change of the weighted squared error on the left-out leaves, and the sum of its squares."""
    trials = factor.shape[1]
    score, square = np.zeros(trials), np.zeros(trials)
    for u in range(len(noisy)):
        if fold[u] != own:
            continue
        m, y, row = rate[u], noisy[u], factor[element[u]]
        weight = 1.0 / (variance + bunched * m)
        for t in range(trials):
            change = weight * (m - m * row[t]) * (2.0 * y - m - m * row[t])
            score[t] += change
            square[t] += change * change
    return score, square


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
