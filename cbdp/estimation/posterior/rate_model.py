"""The models of all folds while they are made: a rate for each leaf in each of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from cbdp.arrays import Floats, Singles
from cbdp.estimation.posterior import kernels, likelihood
from cbdp.estimation.posterior.likelihood import MIN_PROBABILITY, CountLikelihood, most_likely_shape
from cbdp.estimation.posterior.margins import Margin
from cbdp.estimation.posterior.parallel import map_items
from cbdp.estimation.posterior.settings import TUNING
from cbdp.features import Universe
from cbdp.privacy.measurement import Measurement
from cbdp.privacy.noise import NoiseDistribution

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class FoldModels:
    """One for each fold, which has not seen it; and by how much the first of them would be off with moved tables."""

    fold: NDArray[np.int8]  # of each leaf
    rate: Singles  # folds × leaves
    off: Singles  # the logarithm of the first model's rates from moved tables, less that of the rates

    @property
    def own(self) -> Singles:
        """Of each leaf, what the model says that has not seen it."""
        found: Singles = kernels.cross_fitted_rates(self.rate, self.fold)
        return found

    def each(self, work: Callable[[int], Made]) -> list[Made]:
        """The work on each fold's model, in their order."""
        return map_items(work, range(TUNING.folds), len(self.fold))

    def ranges(self, size: int) -> list[tuple[int, int]]:
        """Elements of a margin that are looked at together, so that what is held of them is not more than what is held of the leaves."""
        at_once = max(TUNING.weighed_least, len(self.fold) // TUNING.weighed_leaves)
        return [(low, min(low + at_once, size)) for low in range(0, size, at_once)]

    def multiply(self, element: NDArray[np.int32], factor: Sequence[Floats], moved: Floats) -> None:
        """Multiply each model's rates by its factors, and the first model's from moved tables by those."""
        off = np.log(moved / factor[0]).astype(np.float32)

        def multiplied(k: int) -> None:
            kernels.multiply_rates(element, factor[k].astype(np.float32), self.rate[k])
            if k == 0:
                kernels.add_by_element(element, off, self.off)

        self.each(multiplied)


def fold_of_types(universe: Universe) -> NDArray[np.int8]:
    """The fold of each trip type: by the sum of its codes, so that each value of each dimension is in all of them."""
    made = np.zeros([block.size for block in universe.blocks], dtype=np.int8)
    for axis, block in enumerate(universe.blocks):
        own = np.sum(block.unrank(np.arange(block.size)), axis=0) % TUNING.folds
        made += own.astype(np.int8).reshape([-1 if axis == other else 1 for other in range(made.ndim)])
        made %= TUNING.folds
    return made.reshape(-1)


# Factors by sums: models corrected so that a margin's sums are met, as far as that predicts left-out leaves better.


RatioEstimate = tuple[
    Floats, Floats, Floats
]  # by element: the factor seen, its precision, and the expected count

SHRINKAGE_TRIALS = np.array([(s, b) for s in TUNING.signal for b in TUNING.bunched])
RATE_COLUMN, NOISY_COLUMN, LEAVES_COLUMN, FIT_COLUMN = 0, 1, 2, 3  # columns of passes.by_fold
TRIAL_SUMS = 10  # numbers of `_trial_sums`


def overdispersion(noisy: NDArray[Any], rate: Singles, law: NoiseDistribution) -> float:
    """How much more than Poisson counts vary about their rate; 1 where that cannot be told from noise."""
    variance = law.variance()
    total, squares = kernels.residual_sums(noisy, rate)
    extra = squares - len(noisy) * variance
    chance = math.sqrt((law.excess_kurtosis + 2.0) * len(noisy)) * variance  # of squares of the noise
    return max(1.0, extra / max(total, 1.0)) if extra > TUNING.bunched_sure * chance else 1.0


def adjust_ratios(
    margin: Margin,
    models: FoldModels,
    noisy: NDArray[Any],
    variance: float,
    bunched: float,
    rng: np.random.Generator | None,
) -> None:
    """Correct the models so that the margin's sums are met, as far as that predicts left-out leaves better."""
    element, many = margin.of_leaves(), models.ranges(margin.size)
    looking = MarginRatios(margin, element, models, noisy, variance, bunched)
    sums, kept = np.zeros((TUNING.folds, TRIAL_SUMS, len(SHRINKAGE_TRIALS))), list[RatioEstimate]()
    for here in many:
        kept, fits = looking.seen(*here)
        sums += map_items(_trial_sums_of, zip(kept, fits, strict=True), len(noisy))
    best = _best_trial(*_trial_scores(sums))
    if best is None:
        return
    if len(many) > 1:
        parts = [looking.seen(*here)[0] for here in many]
        kept = [_concatenated([part[k] for part in parts]) for k in range(TUNING.folds)]
    off = None if rng is None else rng.standard_normal(margin.size)

    def factor(made: RatioEstimate) -> Floats:
        found: Floats = _shrunken_ratios(*made, *SHRINKAGE_TRIALS[best], TUNING.least_corrected)
        return found if off is None else _sampled_ratios(found, off, *made[1:], *SHRINKAGE_TRIALS[best])

    models.multiply(element, [factor(made) for made in kept], factor(looking.moved()))


@dataclass(frozen=True, eq=False)
class MarginRatios:
    """What sums say of a margin's factors."""

    margin: Margin
    element: NDArray[np.int32]  # of each leaf
    models: FoldModels
    noisy: NDArray[Any]
    variance: float
    bunched: float

    def seen(self, low: int, high: int) -> tuple[list[RatioEstimate], list[Floats]]:
        """Of some elements what each fold's model sees; and how well it predicts the leaves it has not seen (`passes.by_fold`)."""
        found = self.models.each(lambda k: self._by_fold(k, low, high))
        noisy, leaves = (
            np.sum([own[:, i] for _, own in found], axis=0) for i in (NOISY_COLUMN, LEAVES_COLUMN)
        )
        made = []
        for outside, own in found:
            seen = (
                outside,
                outside + own[:, RATE_COLUMN],
                noisy - own[:, NOISY_COLUMN],
                leaves - own[:, LEAVES_COLUMN],
            )
            made.append(self._told(self.margin.known[low:high], self.margin.precision[low:high], *seen))
        return made, [own[:, FIT_COLUMN:] for _, own in found]

    def moved(self) -> RatioEstimate:
        """What the first model sees with moved tables."""
        size, models = self.margin.size, self.models
        noisy, leaves = kernels.sums_outside_fold(self.element, self.noisy, models.fold, 0, size)
        moved = self.element, models.rate[0], models.off, models.fold, 0, size
        outside, inside = kernels.moved_sums_outside_fold(*moved)
        known = self.margin.known + self.margin.moves
        return self._told(known, self.margin.precision, outside, outside + inside, noisy, leaves)

    def _by_fold(self, k: int, low: int, high: int) -> tuple[Floats, Floats]:
        models = self.models
        leaves = self.element, models.rate[k], models.fold, k, self.noisy
        made: tuple[Floats, Floats] = kernels.fold_sums(low, high, *leaves, self.variance, self.bunched)
        return made

    def _told(
        self, known: Floats, sure: Floats, outside: Floats, held: Floats, noisy: Floats, leaves: Floats
    ) -> RatioEstimate:
        """From the noisy counts outside of a fold, and from what is known of all leaves' sum."""
        spread = np.maximum(leaves * self.variance, MIN_PROBABILITY)
        precision = outside**2 / spread + held**2 * sure
        told = noisy * outside / spread + known * held * sure
        return (
            np.divide(told, precision, out=np.ones(len(told)), where=precision > MIN_PROBABILITY),
            precision,
            held,
        )


def _trial_sums_of(given: tuple[RatioEstimate, Floats]) -> Floats:
    made: Floats = _trial_sums(*given[0], given[1], SHRINKAGE_TRIALS, TUNING.least_corrected)
    return made


def _concatenated(parts: Sequence[RatioEstimate]) -> RatioEstimate:
    ratio, precision, held = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ratio, precision, held


def _sampled_ratios(
    factor: Floats, off: Floats, precision: Floats, held: Floats, signal: float, bunched: float
) -> Floats:
    """The factors, off by so many of their deviations; the total stays."""
    doubt = 1.0 / np.maximum(precision, MIN_PROBABILITY) + bunched / np.maximum(held, MIN_PROBABILITY)
    deviation = np.sqrt(signal * doubt / (signal + doubt))
    made: Floats = np.maximum(factor + deviation * off, TUNING.least_corrected)
    made *= held.sum() / max(float(made @ held), MIN_PROBABILITY)
    return made


def _best_trial(score: Floats, square: Floats) -> int | None:
    """The trial that predicts left-out leaves best; None where that may be chance."""
    best = int(np.argmin(score))
    return best if score[best] < -TUNING.correction_sure * math.sqrt(square[best]) else None


@njit(cache=True, nogil=True)
def _shrunken_ratios(ratio, precision, held, signal, bunched, least):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """By element, the factor seen, drawn towards 1 by how unsure it is; the total stays."""
    made = np.empty(len(ratio))
    before, after = 0.0, 0.0
    for j in range(len(ratio)):
        doubt = 1.0 / max(precision[j], MIN_PROBABILITY) + bunched / max(held[j], MIN_PROBABILITY)
        made[j] = max(1.0 + signal / (signal + doubt) * (ratio[j] - 1.0), least)
        before += held[j]
        after += made[j] * held[j]
    for j in range(len(ratio)):
        made[j] *= before / after
    return made


@njit(cache=True, nogil=True, fastmath=True)
def _trial_sums(ratio, precision, held, fit, tried, least):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """SUMS × trials: what `_trial_scores` needs of the factors f of each trial, before they are made to keep the total.

    With a factor r the weighted squared error of a left-out leaf changes by w (1 − r)(2y − m(1 + r)): an element's leaves enter by
    their sums of w y, w m, w²y², w²y m and w²m² alone (`fit`). Both it and its square are polynomials of r.
    """
    made = np.empty((TRIAL_SUMS, len(tried)))
    unsure, share = 1.0 / np.maximum(precision, MIN_PROBABILITY), 1.0 / np.maximum(held, MIN_PROBABILITY)
    a, b, c, d, e = fit[:, 0].copy(), fit[:, 1].copy(), fit[:, 2].copy(), fit[:, 3].copy(), fit[:, 4].copy()
    made[0], made[2], made[5] = held.sum(), 2.0 * a.sum() - b.sum(), 4.0 * c.sum() - 4.0 * d.sum() + e.sum()
    for t in range(len(tried)):
        signal, bunched = tried[t, 0], tried[t, 1]
        kept = linear = quadratic = one = two = three = four = 0.0
        for j in range(len(ratio)):
            doubt = unsure[j] + bunched * share[j]
            f = max(1.0 + signal / (signal + doubt) * (ratio[j] - 1.0), least)
            square = f * f
            kept += f * held[j]
            linear += a[j] * f
            quadratic += b[j] * square
            one += (4.0 * d[j] - 8.0 * c[j]) * f
            two += (4.0 * c[j] + 4.0 * d[j] - 2.0 * e[j]) * square
            three += d[j] * f * square
            four += e[j] * square * square
        made[1, t], made[3, t], made[4, t] = kept, -2.0 * linear, quadratic
        made[6, t], made[7, t], made[8, t], made[9, t] = one, two, -4.0 * three, four
    return made


def _trial_scores(sums: Floats) -> tuple[Floats, Floats]:
    """By trial, the change of the weighted squared error on the left-out leaves, and the sum of its squares; `sums` are by fold."""
    held, after = sums[:, 0], sums[:, 1]
    r = held / after  # so that the total stays
    score = sums[:, 2] + r * (sums[:, 3] + r * sums[:, 4])
    square = sums[:, 5] + r * (sums[:, 6] + r * (sums[:, 7] + r * (sums[:, 8] + r * sums[:, 9])))
    return score.sum(axis=0), np.maximum(square, 0.0).sum(axis=0)


# How many trips to expect of each type, from noisy answers alone: a product of shrunken factors, one for each margin.
#
# Leaves are dealt into folds, and each leaf is predicted by a model that has not seen its fold: its own noise never
# enters its own factors. It enters only what is decided once for all leaves together, as one of them: the total, the shape of
# counts, the belief in each spread of a margin's factors, and which corrections of sums are made.
#
# Margins are taken from coarse to fine, twice. The first time a factor is judged by the likelihood of the leaves it holds, which
# is right for sparse and heavy-tailed demand; the second time by their sums, which is right for dense demand, and only where
# that predicts the left-out leaves better. Factors are shrunk by how much they are seen to vary, and a margin whose factors do not
# vary more than chance is dropped.
#
# Margins by attributes that no measured feature groups by are corrected by their sums alone, after all others. A public attribute more
# shall make nothing worse, and factors of coarse margins that are judged by likelihood while finer structure is missing from the rates are
# biased by it; a correction that predicts left-out leaves better does not rest on the model.
#
# The same pass can draw rates as they may be, instead of expecting them: a spread of the factors of each margin by how much it is
# believed, then the factors themselves. Folds are drawn with the same chances, so that a factor is the same in all of them.


KNOTS = np.arange(TUNING.lowest_log, TUNING.highest_log + TUNING.knot_step / 2, TUNING.knot_step)
CELLS_PER_KNOT = int(TUNING.knot_step / TUNING.cell)  # cells between two knots
assert CELLS_PER_KNOT == 2  # as passes.added has it
assert len(KNOTS) <= kernels.KNOT_LANES
CELLS_BELOW_ONE = int(-TUNING.lowest_log / TUNING.cell)  # cells below the factor 1
FACTOR_SPREADS = np.array(TUNING.spreads)


@dataclass(frozen=True, eq=False)
class FactorGrid:
    """Factors that are weighed, evenly in their logarithms; likelihoods are interpolated from the knots by cubic splines."""

    factor: Floats
    one: int  # the place of the factor 1
    spline: NDArray[np.float32]  # knots × grid
    priors: Floats  # spreads × grid: log-normal factors of mean 1
    law: NDArray[np.float32]  # the same
    parts: int  # of a unit of the logarithm


def _factor_grid(parts: int) -> FactorGrid:
    low, high = TUNING.lowest_log, TUNING.highest_log
    log = np.linspace(low, high, int((high - low) * parts) + 1)
    spline = np.ascontiguousarray(CubicSpline(KNOTS, np.eye(len(KNOTS)), axis=0)(log).T)
    law = np.exp(-0.5 * ((log + FACTOR_SPREADS[:, None] ** 2 / 2) / FACTOR_SPREADS[:, None]) ** 2)
    priors = law / law.sum(axis=1, keepdims=True)
    single = spline.astype(np.float32), priors.astype(np.float32)
    return FactorGrid(np.exp(log), int(-low * parts), single[0], priors, single[1], parts)


ROUGH_GRID, SHARP_GRID = _factor_grid(TUNING.rough), _factor_grid(TUNING.sharp)


@dataclass(frozen=True, eq=False)
class LeafRates:
    """The expected count of each leaf, and by how much its logarithm follows when tables are moved (`Margin.moves`)."""

    rate: Singles
    follows: Singles


def fit_rates(
    noisy: NDArray[Any],
    fold: NDArray[np.int8],
    margins: Sequence[Margin],
    total: tuple[float, float],
    table: CountLikelihood,
    start: Floats | None = None,
    progress: Callable[[float], None] | None = None,
    rng: np.random.Generator | None = None,
) -> LeafRates:
    """The expected count of each leaf; with `rng`, drawn as it may be.

    `total` is the number of trips as told by the tables, and by moved ones; `start` are public weights, which say how it is
    spread before data is seen.
    """
    models = _initial_models(fold, total, start)
    shape: tuple[float, float] | None = None
    likely: Singles | None = None
    by_likelihood = [margin for margin in margins if not margin.unused]
    for done, margin in enumerate(by_likelihood):
        if done % TUNING.often == 0:
            best = most_likely_shape(table, models.own)
            if best != shape or likely is None:
                shape, likely = best, _log_likelihood_table(table, best)
        assert shape is not None
        assert likely is not None
        _fit_margin_by_likelihood(margin, models, table.place, likely, shape, rng)
        if progress is not None:
            progress((done + 1) / (2 * len(by_likelihood)))
    bunched = overdispersion(noisy, models.own, table.noise)
    for done, margin in enumerate(margins):
        adjust_ratios(margin, models, noisy, table.variance, bunched, rng)
        if progress is not None:
            progress(0.5 + (done + 1) / (2 * len(margins)))
    return LeafRates(models.own, models.off)


def _initial_models(fold: NDArray[np.int8], total: tuple[float, float], start: Floats | None) -> FoldModels:
    """The total, spread evenly or as it is thought to be spread."""
    rate = np.full(len(fold), total[0] / len(fold), dtype=np.float32)
    if start is not None:
        np.multiply(start, total[0] / start.sum(), out=rate, casting="same_kind")
    np.maximum(rate, kernels.MIN_RATE, out=rate)
    off = np.full(len(fold), math.log(total[1] / total[0]), dtype=np.float32)
    return FoldModels(fold, np.tile(rate, (TUNING.folds, 1)), off)


# Factors by likelihood


def _log_likelihood_table(table: CountLikelihood, shape: tuple[float, float]) -> Singles:
    """Columns × logarithms of the expected count: the log-likelihood of each noisy count that occurs.

    It is less that of next to no trips, or, of noisy counts that these do not explain, the largest: that is the same whatever the factors,
    and sums of small numbers are precise ones.
    """
    mixed = table.mixtures(
        np.exp(TUNING.first_log + TUNING.cell * np.arange(TUNING.columns)), np.array([shape])
    )[:, 0]
    likely = likelihood.mixture_probabilities(mixed, table.occurring)
    log = np.log(np.maximum(likely, MIN_PROBABILITY))
    less = np.where(log.max(axis=0) - log[0] > TUNING.explained, log.max(axis=0), log[0])
    return interleave_knots((log - less).T).astype(np.float32)


def interleave_knots(by_column: Floats) -> Floats:
    """Columns × logarithms, as factors.py reads them.

    The logarithms are dealt in turn to as many rows as lie between two knots, so that what a leaf adds to the knots
    lies side by side; the last is repeated, for knots that only fill lanes.
    """
    dealt = by_column.reshape(len(by_column), -1, CELLS_PER_KNOT).transpose(0, 2, 1)
    return np.concatenate(
        [dealt, np.repeat(dealt[:, :, -1:], kernels.KNOT_LANES - len(KNOTS), axis=2)], axis=2
    )


def _fit_margin_by_likelihood(
    margin: Margin,
    models: FoldModels,
    column: NDArray[np.int16],
    likely: Singles,
    shape: tuple[float, float],
    rng: np.random.Generator | None,
) -> None:
    """Multiply the expected counts of each model by the margin's factors, if they vary."""
    uneven = math.exp(shape[1] ** 2) / (1 - shape[0]) - 1
    weighing = MarginFactors(margin, margin.of_leaves(), models, column, likely, uneven)
    weighed = models.each(weighing.weigh)
    gains = np.sum([each.gains for each in weighed], axis=0) * (weighing.every / TUNING.folds)
    belief = (
        accepted_spreads(gains, margin.asked)
        if rng is None
        else _sampled_spread(spread_posterior(gains), rng)
    )
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
class MarginFactors:
    """The factors of one margin, weighed by the likelihood of its leaves, and by what is known of their sums."""

    margin: Margin
    element: NDArray[np.int32]  # of each leaf
    models: FoldModels
    column: NDArray[np.int16]  # of each leaf
    likely: Singles
    uneven: float

    @property
    def grid(self) -> FactorGrid:
        return SHARP_GRID if self.margin.asked else ROUGH_GRID

    @property
    def every(self) -> int:
        """Of so many elements, each fold's model judges one."""
        return TUNING.folds if self.margin.size > TUNING.judged else 1

    def weigh(self, k: int) -> FoldEvidence:
        grid, gains, size = self.grid, np.zeros(len(FACTOR_SPREADS)), self.margin.size
        known = bool(self.margin.precision.any())
        held = kernels.rate_sums(self.element, self.models.rate[k], size) if known else None
        for low, high in self.models.ranges(size):
            sums, told = self._added(k, low, high), self._told(low, high, held)
            law = grid.spline, grid.factor, grid.one, grid.law
            gains += kernels.spread_gains(sums, self.every, (k - low) % self.every, *law, told, TUNING.depth)
        return FoldEvidence(gains, held, sums if high - low == size else None)

    def factors(
        self, k: int, weighed: FoldEvidence, prior: Floats, chance: Floats | None
    ) -> tuple[Floats, Floats]:
        """The factors of a fold's model; of the first one also as moved tables would have them."""
        rate, size = self.models.rate[k], self.margin.size
        held = kernels.rate_sums(self.element, rate, size) if weighed.held is None else weighed.held
        moved = kernels.moved_rate_sums(self.element, rate, self.models.off, size) if k == 0 else None
        first, second = np.empty(size), np.empty(0 if moved is None else size)
        for low, high in self.models.ranges(size):
            sums = self._added(k, low, high) if weighed.sums is None else weighed.sums
            given = self.grid, prior, None if chance is None else chance[low:high], sums
            first[low:high] = _factors_of_elements(*given, self._told(low, high, held))
            if moved is not None:
                second[low:high] = _factors_of_elements(*given, self._told(low, high, moved, held))
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
            made[6] = self.grid.parts * np.log(held[here, 0] / np.maximum(first[here, 0], MIN_PROBABILITY))
        return made

    def _added(self, k: int, low: int, high: int) -> Singles:
        last = TUNING.columns - 2 - CELLS_PER_KNOT * (len(KNOTS) - 1)
        leaves = self.element, self.models.rate[k], self.models.fold, k, self.column
        likely = self.likely.reshape(-1), self.likely.shape[2]
        cells = TUNING.first_log, TUNING.cell, CELLS_BELOW_ONE, last
        made: Singles = kernels.fold_log_likelihoods(
            *kernels.knot_buffers(self.margin.most, high - low), low, *leaves, *likely, *cells
        )
        return made


def _factors_of_elements(
    grid: FactorGrid, prior: Floats, chance: Floats | None, sums: Singles, told: Floats
) -> Floats:
    """The expected factors, or those at these chances of their laws."""
    given = sums, grid.spline, grid.factor, prior, told, TUNING.depth, TUNING.least_factor
    made: Floats = (
        kernels.posterior_mean_factors(*given) if chance is None else kernels.sampled_factors(*given, chance)
    )
    return made


def spread_posterior(gains: Floats) -> Floats:
    """The belief in no factors and in each spread of them, by what they gain."""
    made = np.concatenate(
        [[TUNING.none], (1 - TUNING.none) / len(FACTOR_SPREADS) * np.exp(np.minimum(gains, 700.0))]
    )
    made /= made.sum()
    return made


def accepted_spreads(gains: Floats, asked: bool) -> Floats | None:
    """The same; None: the margin is dropped."""
    belief = spread_posterior(gains)
    return None if belief[0] > TUNING.dropped or (gains.max() < TUNING.gain and not asked) else belief


def _sampled_spread(belief: Floats, rng: np.random.Generator) -> Floats | None:
    """One of the spreads, drawn; None: no factors."""
    drawn = int(rng.choice(len(belief), p=belief))
    return np.eye(len(belief))[drawn] if drawn else None


def expected_total(measurements: Sequence[Measurement], least: float = 1.0) -> float:
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
