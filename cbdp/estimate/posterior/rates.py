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

from cbdp.estimate.posterior.lattice import SHAPES, TINY, Lattice
from cbdp.estimate.posterior.margins import Margin
from cbdp.estimate.posterior.threads import each
from cbdp.privacy.measurement import Measurement

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FOLDS = 4
STRATA = 20  # groups of leaves by expected count, for judging shapes
COST = (2.0, 2.0)  # nats that a shape costs: for empty types at all, and for each unit of spread
NONE = 0.5  # belief, before evidence, that a margin has no factors; the other half is spread evenly over their spreads
GAIN = 4.0  # nats that factors must gain of a margin that was not asked for: chance gives as much once in a few hundred
DROPPED = 0.99  # belief from which a margin is dropped
SURE = 2.0  # standard errors by which a correction of sums must predict left-out leaves better
LEAST = 1e-3  # of a factor
ORDERS = 2000  # numbers of trips that are weighed, spread over all orders of magnitude
OFTEN = 5  # margins after which the shape is judged anew

STEP = (
    0.5  # between logarithms of the factors at which likelihoods are added up; they are interpolated between
)
LOW, HIGH = -5.0, 8.0
KNOTS = np.arange(LOW, HIGH + STEP / 2, STEP)
SPREADS = np.array([0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.4, 2.0, 2.8])
DEPTH = 60.0  # nats below the best at which a factor is out of the question: deeper, interpolation would ring


@dataclass(frozen=True, eq=False)
class Grid:
    """Logarithms of factors at which they are weighed; likelihoods are interpolated from the knots by cubic splines."""

    log: Floats
    one: int  # the place of the factor 1
    spline: Floats  # knots × grid
    priors: Floats  # spreads × grid: log-normal factors of mean 1


def _grid(parts: int) -> Grid:
    log = np.linspace(LOW, HIGH, int((HIGH - LOW) * parts) + 1)
    spline = np.ascontiguousarray(CubicSpline(KNOTS, np.eye(len(KNOTS)), axis=0)(log).T)
    law = np.exp(-0.5 * ((log + SPREADS[:, None] ** 2 / 2) / SPREADS[:, None]) ** 2)
    return Grid(log, int(-LOW * parts), spline, law / law.sum(axis=1, keepdims=True))


ROUGH, SHARP = _grid(8), _grid(32)  # sharp for what was measured: its factors may be known to a few per cent
CELL = 0.25  # between logarithms of expected counts in the table of likelihoods
FIRST, COLUMNS = -18.0, 160
STRIDE = int(STEP / CELL)
SIGNAL = np.array([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0])  # variances of factors that are tried on sums
BUNCHED = np.array([1.0, 8.0, 64.0])  # how much more than Poisson counts vary about their rate
TRIED = np.array([(s, b) for s in SIGNAL for b in BUNCHED])


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
    fold: Ints = np.sum(codes, axis=0) % FOLDS
    even = np.ones(len(noisy)) if start is None else start / start.max()
    even /= even.sum()
    rate = np.tile(np.maximum(total * even, TINY), (FOLDS, 1))
    log = np.log(rate)
    shape: tuple[float, float] | None = None
    likely: Floats | None = None
    for done, margin in enumerate(margins):
        if done % OFTEN == 0:
            best = best_shape(table, _own(rate, fold))
            if best != shape or likely is None:
                shape, likely = best, _likelihoods(table, best)
        assert shape is not None
        assert likely is not None
        _by_likelihood(margin, rate, log, fold, table, likely, shape)
        if progress is not None:
            progress((done + 1) / (2 * len(margins)))
    bunched = _bunched(noisy, _own(rate, fold), table.variance)
    for done, margin in enumerate(margins):
        _by_sums(margin, rate, fold, noisy, table.variance, bunched)
        if progress is not None:
            progress(0.5 + (done + 1) / (2 * len(margins)))
    return _own(rate, fold)


def _own(by_fold: Floats, fold: Ints) -> Floats:
    """Of each leaf, what the model says that has not seen it."""
    own: Floats = by_fold[fold, np.arange(len(fold))]
    return own


# Shapes


def strata(rate: Floats, many: int) -> Ints:
    """Groups of leaves of similar expected count: even in leaves where they are alike, and in trips where they are few."""
    order = np.sort(rate)
    trips = np.cumsum(order)
    place = 0.5 * trips / max(trips[-1], TINY) + 0.5 * np.arange(1, len(rate) + 1) / len(rate)
    begins = np.flatnonzero(np.diff(np.minimum((place * many).astype(np.int64), many - 1), prepend=-1))
    group = np.searchsorted(order[begins], rate, side="right") - 1
    for edge in np.unique(order[begins[1:]]):  # leaves that are alike fill strata in their order
        low, high = np.searchsorted(order, edge), np.searchsorted(order, edge, side="right")
        group[rate == edge] = np.searchsorted(begins, np.arange(low, high), side="right") - 1
    made: Ints = group
    return made


def seen(column: Ints, group: Ints, columns: int) -> list[tuple[Ints, Ints]]:
    """For each group the columns that occur, and how often."""
    often = np.bincount(group * columns + column, minlength=(int(group.max()) + 1) * columns)
    return [(np.flatnonzero(row), row[row > 0]) for row in often.reshape(-1, columns)]


def evidence(table: Lattice, mean: Floats, found: Sequence[tuple[Ints, Ints]]) -> tuple[Floats, Floats]:
    """Groups × shapes: the log-likelihood of what was seen; and the mixtures of each."""
    mixed = table.mixtures(mean)
    rows = [
        np.log(np.maximum(m @ table.likelihood[:, place], TINY)) @ often
        for m, (place, often) in zip(mixed, found, strict=True)
    ]
    return np.array(rows), mixed


def cost(shapes: Floats = SHAPES) -> Floats:
    """What a shape has to be better by, in nats: without evidence counts are Poisson."""
    made: Floats = -COST[0] * (shapes[:, 0] > 0) - COST[1] * shapes[:, 1]
    return made


def best_shape(table: Lattice, rate: Floats) -> tuple[float, float]:
    group = strata(rate, STRATA)
    mean = np.bincount(group, rate) / np.bincount(group)
    found = seen(table.column, group, table.counts.shape[1])
    empty, spread = SHAPES[int(np.argmax(evidence(table, mean, found)[0].sum(axis=0) + cost()))]
    return float(empty), float(spread)


# Factors by likelihood


def _likelihoods(table: Lattice, shape: tuple[float, float]) -> Floats:
    """Columns × logarithms of the expected count: the log-likelihood of each noisy count.

    The logarithms are dealt in turn to as many rows as lie between two knots, so that what a leaf adds to the knots
    lies side by side.
    """
    mixed = table.mixtures(np.exp(FIRST + CELL * np.arange(COLUMNS)), np.array([shape]))[:, 0]
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

    def weigh(k: int) -> tuple[Floats, Floats, Floats, Floats]:
        sums = _added(margin.element, log[k], fold, k, table.column, likely, margin.size)
        held, squares = _held(margin.element, rate[k], margin.size)
        squares *= uneven
        return (
            sums,
            held,
            squares,
            _gains(sums, grid.spline, grid.log, grid.one, grid.priors, *told, held, squares),
        )

    weighed = each(weigh, range(FOLDS), len(fold))
    gains = np.mean([gain for *_, gain in weighed], axis=0)
    believed = _believed(gains, margin.asked)
    if believed is None:
        return
    prior = believed[1:] @ grid.priors
    prior[grid.one] += believed[0]

    def multiply(k: int) -> None:
        sums, held, squares, _ = weighed[k]
        factor = _factors(sums, grid.spline, grid.log, prior, *told, held, squares)
        factor *= held.sum() / (factor @ held)
        _multiply(margin.element, factor, np.log(factor), rate[k], log[k])

    each(multiply, range(FOLDS), len(fold))


def _believed(gains: Floats, asked: bool) -> Floats | None:
    """The belief in no factors and in each spread of them, by what they gain; None: the margin is dropped."""
    believed = np.concatenate([[NONE], (1 - NONE) / len(SPREADS) * np.exp(np.minimum(gains, 700.0))])
    believed /= believed.sum()
    return None if believed[0] > DROPPED or (gains.max() < GAIN and not asked) else believed


@njit(cache=True, nogil=True, fastmath=True)
def _gains(sums, spline, log, one, priors, known, precision, power, width, held, squares):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """By spread of the factors, how many nats they gain on having none."""
    gains = np.zeros(len(priors))
    for j in range(len(sums)):
        fit = _fit(sums[j], spline, log, known[j], precision[j], power[j], width[j], held[j], squares[j])
        without = math.log(fit[one] + TINY)
        for s in range(len(priors)):
            total = 0.0
            for f in range(len(fit)):
                total += fit[f] * priors[s, f]
            gains[s] += math.log(total + TINY) - without
    return gains


@njit(cache=True, nogil=True, fastmath=True)
def _factors(sums, spline, log, prior, known, precision, power, width, held, squares):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """The expected factor of each element."""
    factor = np.empty(len(sums))
    for j in range(len(sums)):
        fit = _fit(sums[j], spline, log, known[j], precision[j], power[j], width[j], held[j], squares[j])
        total, mean = TINY, 0.0
        for f in range(len(fit)):
            total += fit[f] * prior[f]
            mean += fit[f] * prior[f] * math.exp(log[f])
        factor[j] = max(mean / total, LEAST)
    return factor


@njit(cache=True, nogil=True, fastmath=True)
def _fit(sums, spline, log, known, precision, power, width, held, squares):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """The likelihood of one element's factors, largest 1: of its leaves, and of what measured features say of its sum.

    A measured sum has its noise, and counts vary about their rate. The law's tails matter: under a normal one, large Laplace
    noise would pass for a large factor.
    """
    fit = np.zeros(spline.shape[1])
    best = sums.max()
    for k in range(len(sums)):
        depth = max(sums[k] - best, -DEPTH)
        for f in range(len(fit)):
            fit[f] += depth * spline[k, f]
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
def _added(element, log, fold, left_out, column, likely, size):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Elements × knots: the log-likelihood of an element's leaves if their expected counts are multiplied by a knot."""
    knots, under = len(KNOTS), int(-LOW / CELL)
    sums = np.zeros((size, knots))
    last = COLUMNS - 2 - STRIDE * (knots - 1)
    for u in range(len(column)):
        if fold[u] == left_out:
            continue
        place = (log[u] - FIRST) / CELL
        whole = math.floor(place)
        part = place - whole
        at = whole - under
        if at < 0:
            at, part = 0, 0.0
        elif at > last:
            at, part = last, 1.0
        begin, end = at // STRIDE, (at + 1) // STRIDE
        low = likely[column[u], at % STRIDE, begin : begin + knots]
        high = likely[column[u], (at + 1) % STRIDE, end : end + knots]
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


def _bunched(noisy: Floats, rate: Floats, variance: float) -> float:
    """How much more than Poisson counts vary about their rate; 1 where that cannot be told from noise."""
    total = max(float(rate.sum()), 1.0)
    extra = float(np.square(noisy - rate).sum()) - len(noisy) * variance
    chance = math.sqrt(5.0 * len(noisy)) * variance  # of squares of Laplace noise: the kurtosis is 6
    return max(1.0, extra / total) if extra > 3 * chance else 1.0


def _by_sums(
    margin: Margin, rate: Floats, fold: Ints, noisy: Floats, variance: float, bunched: float
) -> None:
    """Correct the models so that the margin's sums are met, as far as that predicts left-out leaves better."""
    noisy_sums, leaves = _by_fold(margin.element, fold, noisy, margin.size)

    def factors(k: int) -> tuple[NDArray[np.float32], Floats, Floats]:
        inside, held = _inside(margin.element, rate[k], fold, k, margin.size)
        others, many = noisy_sums.sum(axis=0) - noisy_sums[k], leaves.sum(axis=0) - leaves[k]
        spread = np.maximum(many * variance, TINY)
        precision = inside**2 / spread + held**2 * margin.precision
        told = others * inside / spread + margin.known * held * margin.precision
        ratio = np.divide(told, precision, out=np.ones(margin.size), where=precision > TINY)
        made = _shrunk(ratio, precision, held, TRIED)
        score, square = _scores(margin.element, rate[k], fold, k, noisy, made, variance, bunched)
        return made, score, square

    made = each(factors, range(FOLDS), len(fold))
    score, square = (np.sum([m[i] for m in made], axis=0) for i in (1, 2))
    best = _chosen(score, square)
    if best is None:
        return

    def multiply(k: int) -> None:
        rate[k] *= made[k][0][:, best][margin.element]

    each(multiply, range(FOLDS), len(fold))


def _chosen(score: Floats, square: Floats) -> int | None:
    """The trial that predicts left-out leaves best; None where that may be chance."""
    best = int(np.argmin(score))
    return best if score[best] < -SURE * math.sqrt(square[best]) else None


@njit(cache=True, nogil=True)
def _by_fold(element, fold, noisy, size):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    sums, leaves = np.zeros((FOLDS, size)), np.zeros((FOLDS, size))
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
def _shrunk(ratio, precision, held, tried):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Elements × trials: the factor seen, drawn towards 1 by how unsure it is; the total stays."""
    made = np.empty((len(ratio), len(tried)), dtype=np.float32)
    for t in range(len(tried)):
        before, after = 0.0, 0.0
        for j in range(len(ratio)):
            doubt = 1.0 / max(precision[j], TINY) + tried[t, 1] / max(held[j], TINY)
            factor = max(1.0 + tried[t, 0] / (tried[t, 0] + doubt) * (ratio[j] - 1.0), 0.02)
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
    trips = np.exp(np.linspace(0.0, math.log(max(2.0, mean + 12 * deviation)), ORDERS))
    far = np.square((trips - mean) / deviation)
    likely = np.exp((far.min() - far) / 2) * np.sqrt(trips)
    return float(likely @ trips / likely.sum())
