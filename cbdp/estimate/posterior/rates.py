"""How many trips to expect of each type, from noisy answers alone: a product of shrunken factors, one for each margin.

Leaves are dealt into folds, and each leaf is predicted by a model that has not seen its fold: its own noise never
enters its own factors. It enters only what is decided once for all leaves together, as one of them: the total, the shape of
counts, the belief in each spread of a margin's factors, and which corrections of sums are made.

Margins are taken from coarse to fine, twice. The first time a factor is judged by the likelihood of the leaves it holds, which
is right for sparse and heavy-tailed demand; the second time by their sums, which is right for dense demand, and only where
that predicts the left-out leaves better. Factors are shrunk by how much they are seen to vary, and a margin whose factors do not
vary more than chance is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from cbdp.estimate.posterior.lattice import TINY, Lattice
from cbdp.estimate.posterior.margins import Margin
from cbdp.estimate.posterior.settings import TUNING
from cbdp.estimate.posterior.shapes import best_shape
from cbdp.estimate.posterior.threads import each
from cbdp.privacy.laws import Law
from cbdp.privacy.measurement import Measurement

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

KNOTS = np.arange(TUNING.lowest_log, TUNING.highest_log + TUNING.knot_step / 2, TUNING.knot_step)
STRIDE = int(TUNING.knot_step / TUNING.cell)  # cells between two knots
UNDER = int(-TUNING.lowest_log / TUNING.cell)  # cells below the factor 1
SPREADS = np.array(TUNING.spreads)
TRIED = np.array([(s, b) for s in TUNING.signal for b in TUNING.bunched])


@dataclass(frozen=True, eq=False)
class Grid:
    """Logarithms of factors at which they are weighed; likelihoods are interpolated from the knots by cubic splines."""

    log: Floats
    one: int  # the place of the factor 1
    spline: Floats  # knots × grid
    priors: Floats  # spreads × grid: log-normal factors of mean 1


def _grid(parts: int) -> Grid:
    low, high = TUNING.lowest_log, TUNING.highest_log
    log = np.linspace(low, high, int((high - low) * parts) + 1)
    spline = np.ascontiguousarray(CubicSpline(KNOTS, np.eye(len(KNOTS)), axis=0)(log).T)
    law = np.exp(-0.5 * ((log + SPREADS[:, None] ** 2 / 2) / SPREADS[:, None]) ** 2)
    return Grid(log, int(-low * parts), spline, law / law.sum(axis=1, keepdims=True))


ROUGH, SHARP = _grid(TUNING.rough), _grid(TUNING.sharp)


def expected(
    noisy: Floats,
    codes: Sequence[Ints],
    margins: Sequence[Margin],
    total: float,
    table: Lattice,
    start: Floats | None = None,
    progress: Callable[[float], None] | None = None,
) -> Floats:
    """The expected count of each leaf; `start` are public weights, which say how a total is spread before data is seen."""
    fold: Ints = np.sum(codes, axis=0) % TUNING.folds
    even = np.ones(len(noisy)) if start is None else start / start.max()
    even /= even.sum()
    rate = np.tile(np.maximum(total * even, TINY), (TUNING.folds, 1))
    log = np.log(rate)
    shape: tuple[float, float] | None = None
    likely: Floats | None = None
    for done, margin in enumerate(margins):
        if done % TUNING.often == 0:
            best = best_shape(table, _own(rate, fold))
            if best != shape or likely is None:
                shape, likely = best, _likelihoods(table, best)
        assert shape is not None
        assert likely is not None
        _by_likelihood(margin, rate, log, fold, table, likely, shape)
        if progress is not None:
            progress((done + 1) / (2 * len(margins)))
    bunched = _bunched(noisy, _own(rate, fold), table.noise)
    for done, margin in enumerate(margins):
        _by_sums(margin, rate, fold, noisy, table.variance, bunched)
        if progress is not None:
            progress(0.5 + (done + 1) / (2 * len(margins)))
    return _own(rate, fold)


def _own(by_fold: Floats, fold: Ints) -> Floats:
    """Of each leaf, what the model says that has not seen it."""
    own: Floats = by_fold[fold, np.arange(len(fold))]
    return own


# Factors by likelihood


def _likelihoods(table: Lattice, shape: tuple[float, float]) -> Floats:
    """Columns × logarithms of the expected count: the log-likelihood of each noisy count.

    The logarithms are dealt in turn to as many rows as lie between two knots, so that what a leaf adds to the knots
    lies side by side.
    """
    mixed = table.mixtures(
        np.exp(TUNING.first_log + TUNING.cell * np.arange(TUNING.columns)), np.array([shape])
    )[:, 0]
    by_column = np.log(np.maximum(mixed @ table.likelihood, TINY)).T
    return np.ascontiguousarray(by_column.reshape(len(by_column), -1, STRIDE).transpose(0, 2, 1))


def _by_likelihood(
    margin: Margin,
    rate: Floats,
    log: Floats,
    fold: Ints,
    table: Lattice,
    likely: Floats,
    shape: tuple[float, float],
) -> None:
    """Multiply the expected counts of each fold's model by the margin's factors, if they vary."""
    uneven = math.exp(shape[1] ** 2) / (1 - shape[0]) - 1

    told = (margin.known, margin.precision, margin.power, margin.width)
    grid = SHARP if margin.asked else ROUGH
    knots = (len(KNOTS), TUNING.first_log, TUNING.cell, UNDER)

    def weigh(k: int) -> tuple[Floats, Floats, Floats, Floats]:
        sums = _added(margin.element, log[k], fold, k, table.column, likely, margin.size, *knots)
        held, squares = _held(margin.element, rate[k], margin.size)
        squares *= uneven
        return (
            sums,
            held,
            squares,
            _gains(sums, grid.spline, grid.log, grid.one, grid.priors, *told, held, squares, TUNING.depth),
        )

    weighed = each(weigh, range(TUNING.folds), len(fold))
    gains = np.mean([gain for *_, gain in weighed], axis=0)
    believed = _believed(gains, margin.asked)
    if believed is None:
        return
    prior = believed[1:] @ grid.priors
    prior[grid.one] += believed[0]

    def multiply(k: int) -> None:
        sums, held, squares, _ = weighed[k]
        factor = _factors(
            sums, grid.spline, grid.log, prior, *told, held, squares, TUNING.depth, TUNING.least_factor
        )
        factor *= held.sum() / (factor @ held)
        _multiply(margin.element, factor, np.log(factor), rate[k], log[k])

    each(multiply, range(TUNING.folds), len(fold))


def _believed(gains: Floats, asked: bool) -> Floats | None:
    """The belief in no factors and in each spread of them, by what they gain; None: the margin is dropped."""
    believed = np.concatenate(
        [[TUNING.none], (1 - TUNING.none) / len(SPREADS) * np.exp(np.minimum(gains, 700.0))]
    )
    believed /= believed.sum()
    return None if believed[0] > TUNING.dropped or (gains.max() < TUNING.gain and not asked) else believed


@njit(cache=True, nogil=True, fastmath=True)
def _gains(sums, spline, log, one, priors, known, precision, power, width, held, squares, depth):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """By spread of the factors, how many nats they gain on having none."""
    gains = np.zeros(len(priors))
    for j in range(len(sums)):
        fit = _fit(
            sums[j], spline, log, known[j], precision[j], power[j], width[j], held[j], squares[j], depth
        )
        without = math.log(fit[one] + TINY)
        for s in range(len(priors)):
            total = 0.0
            for f in range(len(fit)):
                total += fit[f] * priors[s, f]
            gains[s] += math.log(total + TINY) - without
    return gains


@njit(cache=True, nogil=True, fastmath=True)
def _factors(sums, spline, log, prior, known, precision, power, width, held, squares, depth, least):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """The expected factor of each element."""
    factor = np.empty(len(sums))
    for j in range(len(sums)):
        fit = _fit(
            sums[j], spline, log, known[j], precision[j], power[j], width[j], held[j], squares[j], depth
        )
        total, mean = TINY, 0.0
        for f in range(len(fit)):
            total += fit[f] * prior[f]
            mean += fit[f] * prior[f] * math.exp(log[f])
        factor[j] = max(mean / total, least)
    return factor


@njit(cache=True, nogil=True, fastmath=True)
def _fit(sums, spline, log, known, precision, power, width, held, squares, depth):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """The likelihood of one element's factors, largest 1: of its leaves, and of what measured features say of its sum.

    A measured sum has its noise, and counts vary about their rate. The law's tails matter: under a normal one, large Laplace
    noise would pass for a large factor.
    """
    fit = np.zeros(spline.shape[1])
    best = sums.max()
    for k in range(len(sums)):
        far = max(sums[k] - best, -depth)
        for f in range(len(fit)):
            fit[f] += far * spline[k, f]
    if precision > 0:
        for f in range(len(fit)):
            factor = math.exp(log[f])
            variance = 1.0 / precision + factor * held + factor * factor * squares
            deviation = math.sqrt(variance)
            fit[f] -= (abs(known - factor * held) / (width * deviation)) ** power + math.log(deviation)
    most = fit.max()
    for f in range(len(fit)):
        fit[f] = math.exp(fit[f] - most)
    return fit


@njit(cache=True, nogil=True, fastmath=True)
def _added(element, log, fold, left_out, column, likely, size, knots, first, cell, under):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Elements × knots: the log-likelihood of an element's leaves if their expected counts are multiplied by a knot."""
    stride = likely.shape[1]
    sums = np.zeros((size, knots))
    last = stride * likely.shape[2] - 2 - stride * (knots - 1)
    for u in range(len(column)):
        if fold[u] == left_out:
            continue
        place = (log[u] - first) / cell
        whole = math.floor(place)
        part = place - whole
        at = whole - under
        if at < 0:
            at, part = 0, 0.0
        elif at > last:
            at, part = last, 1.0
        begin, end = at // stride, (at + 1) // stride
        low = likely[column[u], at % stride, begin : begin + knots]
        high = likely[column[u], (at + 1) % stride, end : end + knots]
        into = sums[element[u]]
        for g in range(knots):
            into[g] += low[g] + part * (high[g] - low[g])
    return sums


@njit(cache=True, nogil=True)
def _multiply(element, factor, added, rate, log):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Expected counts and their logarithms, times their elements' factors."""
    for u in range(len(rate)):
        rate[u] *= factor[element[u]]
        log[u] += added[element[u]]


@njit(cache=True, nogil=True)
def _held(element, rate, size):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """By element, the sums of the expected counts and of their squares."""
    sums, squares = np.zeros(size), np.zeros(size)
    for u in range(len(rate)):
        sums[element[u]] += rate[u]
        squares[element[u]] += rate[u] * rate[u]
    return sums, squares


# Factors by sums


def _bunched(noisy: Floats, rate: Floats, law: Law) -> float:
    """How much more than Poisson counts vary about their rate; 1 where that cannot be told from noise."""
    variance = law.variance()
    total = max(float(rate.sum()), 1.0)
    extra = float(np.square(noisy - rate).sum()) - len(noisy) * variance
    chance = math.sqrt((law.excess_kurtosis + 2.0) * len(noisy)) * variance  # of squares of the noise
    return max(1.0, extra / total) if extra > TUNING.bunched_sure * chance else 1.0


def _by_sums(
    margin: Margin, rate: Floats, fold: Ints, noisy: Floats, variance: float, bunched: float
) -> None:
    """Correct the models so that the margin's sums are met, as far as that predicts left-out leaves better."""
    noisy_sums, leaves = _by_fold(margin.element, fold, noisy, margin.size, TUNING.folds)

    def factors(k: int) -> tuple[NDArray[np.float32], Floats, Floats]:
        inside, held = _inside(margin.element, rate[k], fold, k, margin.size)
        others, many = noisy_sums.sum(axis=0) - noisy_sums[k], leaves.sum(axis=0) - leaves[k]
        spread = np.maximum(many * variance, TINY)
        precision = inside**2 / spread + held**2 * margin.precision
        told = others * inside / spread + margin.known * held * margin.precision
        ratio = np.divide(told, precision, out=np.ones(margin.size), where=precision > TINY)
        made = _shrunk(ratio, precision, held, TRIED, TUNING.least_corrected)
        score, square = _scores(margin.element, rate[k], fold, k, noisy, made, variance, bunched)
        return made, score, square

    made = each(factors, range(TUNING.folds), len(fold))
    score, square = (np.sum([m[i] for m in made], axis=0) for i in (1, 2))
    best = _chosen(score, square)
    if best is None:
        return

    def multiply(k: int) -> None:
        rate[k] *= made[k][0][:, best][margin.element]

    each(multiply, range(TUNING.folds), len(fold))


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


def total_of(measurements: Sequence[Measurement]) -> float:
    """The number of trips to be expected, given all whole measurements, combined by inverse variance.

    Before they are seen the total has Jeffreys' law of a Poisson mean, T^(−1/2): noise far above the total makes fewer trips.
    """
    told = [
        (float(m.values.sum()), float(np.sum(m.variance)))
        for m in measurements
        if m.variance is not None and m.elements is None
    ]
    precision = sum(1 / v for _, v in told)
    mean, deviation = sum(t / v for t, v in told) / precision, math.sqrt(1 / precision)
    if mean > 30 * deviation:
        return max(1.0, mean)
    trips = np.exp(np.linspace(0.0, math.log(max(2.0, mean + 12 * deviation)), TUNING.orders))
    far = np.square((trips - mean) / deviation)
    likely = np.exp((far.min() - far) / 2) * np.sqrt(trips)
    return float(likely @ trips / likely.sum())
