"""The log-linear rate model: how many trips to expect of each type, as a product of shrunken factors, one for each margin.

Steps 2 to 5 of docs/explanation/estimator.md. Leaves are dealt into folds and each is predicted by a model that has not seen its fold
(cross-fitting), so a leaf's noise never enters its own factors; it enters only what is decided once for all leaves: the total, the
shape of counts, the weight of each spread of a margin's factors, and which ratio adjustments are made.

Margins are taken from coarse to fine, twice. First factors are judged by the likelihood of their leaves and shrunk by empirical Bayes, which
is right for sparse and heavy-tailed demand; then by sums (ratio adjustment), which is right for dense demand, where that predicts
left-out leaves better. A margin whose factors do not vary more than chance is dropped.

With a random state, the same pass draws from the posterior instead of averaging: a spread for each margin, then its factors, at the same
chances in all folds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from cbdp.arrays import Floats, Singles
from cbdp.compiling import compiled_ahead, fast_kernel, kernel
from cbdp.estimation.posterior import kernels, likelihood
from cbdp.estimation.posterior.likelihood import (
    MIN_PROBABILITY,
    CountLikelihood,
    MixtureShape,
    most_likely_shape,
)
from cbdp.estimation.posterior.margins import Margin
from cbdp.estimation.posterior.parallel import map_items
from cbdp.estimation.posterior.settings import TUNING
from cbdp.features import Universe
from cbdp.privacy.measurement import Measurement
from cbdp.privacy.noise import NoiseDistribution

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class FoldModels:
    """Rates by a model for each fold, fitted without it; and by how much the first model's would change with perturbed tables."""

    fold: NDArray[np.int8]  # of each leaf
    rate: Singles  # folds × leaves
    log_response: (
        Singles  # the logarithm of the first model's rates from perturbed tables, less that of the rates
    )

    @property
    def cross_fitted(self) -> Singles:
        """Of each leaf, the rate by the model that has not seen it (cross-fitting: Chernozhukov et al. 2018)."""
        rate: Singles = kernels.cross_fitted_rates(self.rate, self.fold)
        return rate

    def each(self, work: Callable[[int], Result]) -> list[Result]:
        """The work on each fold's model, in their order."""
        return map_items(work, range(TUNING.folds), len(self.fold))

    def ranges(self, size: int) -> list[tuple[int, int]]:
        """Elements of a margin that are looked at together, so that what is held of them is not more than what is held of the leaves."""
        at_once = max(TUNING.min_elements_at_once, len(self.fold) // TUNING.leaves_per_element_at_once)
        return [(low, min(low + at_once, size)) for low in range(0, size, at_once)]

    def multiply(self, element: NDArray[np.int32], factor: Sequence[Floats], perturbed: Floats) -> None:
        """Multiply each model's rates by its factors, and the first model's from perturbed tables by those."""
        log_response = np.log(perturbed / factor[0]).astype(np.float32)

        def multiplied(k: int) -> None:
            kernels.multiply_rates(element, factor[k].astype(np.float32), self.rate[k])
            if k == 0:
                kernels.add_by_element(element, log_response, self.log_response)

        self.each(multiplied)


def fold_of_types(universe: Universe) -> NDArray[np.int8]:
    """The fold of each trip type: by the sum of its codes, so that each value of each dimension is in all of them."""
    fold = np.zeros([block.size for block in universe.blocks], dtype=np.int8)
    for axis, block in enumerate(universe.blocks):
        code_sum = np.sum(block.unrank(np.arange(block.size)), axis=0) % TUNING.folds
        fold += code_sum.astype(np.int8).reshape([-1 if axis == other else 1 for other in range(fold.ndim)])
        fold %= TUNING.folds
    return fold.reshape(-1)


# Factors by likelihood: step 3. They are weighed on a grid of logarithms, from likelihoods at knots.


KNOTS = np.arange(TUNING.min_log_factor, TUNING.max_log_factor + TUNING.knot_step / 2, TUNING.knot_step)
CELLS_PER_KNOT = int(TUNING.knot_step / TUNING.log_rate_step)  # cells between two knots
assert CELLS_PER_KNOT == 2  # as kernels.fold_log_likelihoods has it
assert len(KNOTS) <= kernels.KNOT_LANES
CELLS_BELOW_ONE = int(-TUNING.min_log_factor / TUNING.log_rate_step)  # cells below the factor 1
FACTOR_SPREADS = np.array(TUNING.factor_spreads)


@dataclass(frozen=True, eq=False)
class FactorGrid:
    """Factors that are weighed, evenly in their logarithms; likelihoods are interpolated from the knots by cubic splines."""

    factor: Floats
    one: int  # the place of the factor 1
    spline: NDArray[np.float32]  # knots × grid
    priors: Floats  # spreads × grid: log-normal factors of mean 1
    priors_single: NDArray[np.float32]  # the same in single precision
    parts: int  # of a unit of the logarithm


def _factor_grid(parts: int) -> FactorGrid:
    low, high = TUNING.min_log_factor, TUNING.max_log_factor
    log = np.linspace(low, high, int((high - low) * parts) + 1)
    spline = np.ascontiguousarray(CubicSpline(KNOTS, np.eye(len(KNOTS)), axis=0)(log).T)
    law = np.exp(-0.5 * ((log + FACTOR_SPREADS[:, None] ** 2 / 2) / FACTOR_SPREADS[:, None]) ** 2)
    priors = law / law.sum(axis=1, keepdims=True)
    single = spline.astype(np.float32), priors.astype(np.float32)
    return FactorGrid(np.exp(log), int(-low * parts), single[0], priors, single[1], parts)


ROUGH_GRID, SHARP_GRID = _factor_grid(TUNING.rough_grid_density), _factor_grid(TUNING.sharp_grid_density)


@dataclass(frozen=True, eq=False)
class LeafRates:
    """The expected count of each leaf, and by how much its logarithm changes when tables are perturbed (`Margin.table_perturbation`)."""

    rate: Singles
    log_rate_response: Singles


class ExpectedTotals(NamedTuple):
    """The expected number of trips, by the tables and by perturbed ones."""

    trips: float
    perturbed: float


def fit_rates(
    noisy: NDArray[Any],
    fold: NDArray[np.int8],
    margins: Sequence[Margin],
    total: ExpectedTotals,
    table: CountLikelihood,
    start: Floats | None = None,
    progress: Callable[[float], None] | None = None,
    rng: np.random.Generator | None = None,
) -> LeafRates:
    """The rate of each leaf by the cross-fitted log-linear model; with `rng`, a posterior draw of it.

    `start` are public weights, which say how it is
    spread before data is seen.
    """
    models = _initial_models(fold, total, start)
    shape: MixtureShape | None = None
    likely: Singles | None = None
    for done, margin in enumerate(margins):
        if done % TUNING.margins_per_shape_fit == 0:
            best = most_likely_shape(table, models.cross_fitted)
            if best != shape or likely is None:
                shape, likely = best, _log_likelihood_table(table, best)
        assert shape is not None
        assert likely is not None
        _fit_margin_by_likelihood(margin, models, table.place, likely, shape, rng)
        if progress is not None:
            progress((done + 1) / (2 * len(margins)))
    dispersion = overdispersion(noisy, models.cross_fitted, table.noise)
    for done, margin in enumerate(margins):
        adjust_ratios(margin, models, noisy, table.variance, dispersion, rng)
        if progress is not None:
            progress(0.5 + (done + 1) / (2 * len(margins)))
    return LeafRates(models.cross_fitted, models.log_response)


def _initial_models(fold: NDArray[np.int8], total: ExpectedTotals, start: Floats | None) -> FoldModels:
    """The total, spread evenly or as it is thought to be spread."""
    rate = np.full(len(fold), total.trips / len(fold), dtype=np.float32)
    if start is not None:
        np.multiply(start, total.trips / start.sum(), out=rate, casting="same_kind")
    np.maximum(rate, kernels.MIN_RATE, out=rate)
    log_response = np.full(len(fold), math.log(total.perturbed / total.trips), dtype=np.float32)
    return FoldModels(fold, np.tile(rate, (TUNING.folds, 1)), log_response)


def _log_likelihood_table(table: CountLikelihood, shape: MixtureShape) -> Singles:
    """Columns × logarithms of the expected count: the log-likelihood of each noisy count that occurs.

    It is less that of next to no trips, or, of noisy counts that these do not explain, the largest: that is the same whatever the factors,
    and sums of small numbers are precise ones.
    """
    mixed = table.mixtures(
        np.exp(TUNING.min_log_rate + TUNING.log_rate_step * np.arange(TUNING.log_rate_cells)),
        np.array([shape]),
    )[:, 0]
    likely = likelihood.mixture_probabilities(mixed, table.occurring)
    log = np.log(np.maximum(likely, MIN_PROBABILITY))
    less = np.where(log.max(axis=0) - log[0] > TUNING.max_explained_log_ratio, log.max(axis=0), log[0])
    return interleave_knots((log - less).T).astype(np.float32)


def interleave_knots(by_column: Floats) -> Floats:
    """Columns × logarithms, as the loops of `kernels` read them.

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
    shape: MixtureShape,
    rng: np.random.Generator | None,
) -> None:
    """Multiply the expected counts of each model by the margin's factors, if they vary."""
    squared_cv = math.exp(shape.log_mean_spread**2) / (1 - shape.zero_share) - 1
    weighing = MarginFactors(margin, margin.of_leaves(), models, column, likely, squared_cv)
    weighed = models.each(weighing.weigh)
    log_bayes_factors = np.sum([each.log_bayes_factors for each in weighed], axis=0) * (
        weighing.every / TUNING.folds
    )
    weights = (
        accepted_spreads(log_bayes_factors, margin.measured_directly)
        if rng is None
        else _sampled_spread(spread_posterior(log_bayes_factors), rng)
    )
    if weights is None:
        return
    prior = weights[1:] @ weighing.grid.priors
    prior[weighing.grid.one] += weights[0]
    chance = None if rng is None else rng.random(margin.size)
    factors = models.each(lambda k: weighing.factors(k, weighed[k], prior, chance))
    models.multiply(weighing.element, [factor for factor, _ in factors], factors[0][1])


class RateSums(NamedTuple):
    """By element, the sums of its leaves' rates, and of their squares."""

    rate: Floats
    square: Floats


@dataclass(frozen=True, eq=False)
class FoldEvidence:
    """What one fold's model says of a margin's factors: log Bayes factors of the spreads, and the sums that these were worked out from."""

    log_bayes_factors: Floats
    rates: RateSums | None  # where they were needed
    sums: Singles | None  # log-likelihoods by element and knot; None: too many to be kept


@dataclass(frozen=True, eq=False)
class MarginFactors:
    """The factors of one margin, weighed by the likelihood of its leaves, and by what is known of their sums."""

    margin: Margin
    element: NDArray[np.int32]  # of each leaf
    models: FoldModels
    column: NDArray[np.int16]  # of each leaf
    likely: Singles
    squared_cv: float

    @property
    def grid(self) -> FactorGrid:
        return SHARP_GRID if self.margin.measured_directly else ROUGH_GRID

    @property
    def every(self) -> int:
        """Of so many elements, each fold's model judges one."""
        return TUNING.folds if self.margin.size > TUNING.max_shared_elements else 1

    def weigh(self, k: int) -> FoldEvidence:
        grid, log_bayes_factors, size = self.grid, np.zeros(len(FACTOR_SPREADS)), self.margin.size
        measured = bool(self.margin.precision.any())
        rates = RateSums(*kernels.rate_sums(self.element, self.models.rate[k], size).T) if measured else None
        for low, high in self.models.ranges(size):
            sums, evidence = self._log_likelihoods(k, low, high), self._evidence(low, high, rates)
            law = grid.spline, grid.factor, grid.one, grid.priors_single
            log_bayes_factors += kernels.log_bayes_factors(
                sums, self.every, (k - low) % self.every, *law, evidence, TUNING.max_log_likelihood_drop
            )
        return FoldEvidence(log_bayes_factors, rates, sums if high - low == size else None)

    def factors(
        self, k: int, weighed: FoldEvidence, prior: Floats, chance: Floats | None
    ) -> tuple[Floats, Floats]:
        """The factors of a fold's model; of the first one also as perturbed tables would have them."""
        rate, size = self.models.rate[k], self.margin.size
        rates = weighed.rates or RateSums(*kernels.rate_sums(self.element, rate, size).T)
        perturbed = (
            RateSums(*kernels.perturbed_rate_sums(self.element, rate, self.models.log_response, size).T)
            if k == 0
            else None
        )
        first, second = np.empty(size), np.empty(0 if perturbed is None else size)
        for low, high in self.models.ranges(size):
            sums = self._log_likelihoods(k, low, high) if weighed.sums is None else weighed.sums
            arguments = self.grid, prior, None if chance is None else chance[low:high], sums
            first[low:high] = _factors_of_elements(*arguments, self._evidence(low, high, rates))
            if perturbed is not None:
                second[low:high] = _factors_of_elements(
                    *arguments, self._evidence(low, high, perturbed, rates)
                )
        first *= rates.rate.sum() / (first @ rates.rate)  # the total stays
        if perturbed is not None:
            second *= perturbed.rate.sum() / (second @ perturbed.rate)
        return first, second

    def _evidence(
        self, low: int, high: int, rates: RateSums | None, unperturbed: RateSums | None = None
    ) -> NDArray[np.void]:
        """`kernels.MARGIN_EVIDENCE` of some elements; with `unperturbed` rates, as perturbed tables have it."""
        here, margin = slice(low, high), self.margin
        evidence = np.zeros(high - low, dtype=kernels.MARGIN_EVIDENCE)
        for name, values in (
            ("measured", margin.measured),
            ("precision", margin.precision),
            ("power", margin.power),
            ("width", margin.width),
        ):
            evidence[name] = values[here]
        if rates is not None:
            evidence["rate"], evidence["overdispersion"] = (
                rates.rate[here],
                self.squared_cv * rates.square[here],
            )
        if rates is not None and unperturbed is not None:
            evidence["measured"] += margin.table_perturbation[here]
            change = np.log(rates.rate[here] / np.maximum(unperturbed.rate[here], MIN_PROBABILITY))
            evidence["shift"] = self.grid.parts * change
        return evidence

    def _log_likelihoods(self, k: int, low: int, high: int) -> Singles:
        last = TUNING.log_rate_cells - 2 - CELLS_PER_KNOT * (len(KNOTS) - 1)
        leaves = self.element, self.models.rate[k], self.models.fold, k, self.column
        likely = self.likely.reshape(-1), self.likely.shape[2]
        cells = TUNING.min_log_rate, TUNING.log_rate_step, CELLS_BELOW_ONE, last
        sums: Singles = kernels.fold_log_likelihoods(
            *kernels.knot_buffers(self.margin.most, high - low), low, *leaves, *likely, *cells
        )
        return sums


def _factors_of_elements(
    grid: FactorGrid, prior: Floats, chance: Floats | None, sums: Singles, evidence: NDArray[np.void]
) -> Floats:
    """Posterior means of factors, or their quantiles at these chances."""
    arguments = (
        sums,
        grid.spline,
        grid.factor,
        prior,
        evidence,
        TUNING.max_log_likelihood_drop,
        TUNING.min_factor,
    )
    factors: Floats = (
        kernels.posterior_mean_factors(*arguments)
        if chance is None
        else kernels.sampled_factors(*arguments, chance)
    )
    return factors


def spread_posterior(log_bayes_factors: Floats) -> Floats:
    """Posterior weights of no factors and of each spread of them, by their log Bayes factors (Hoeting and others 1999)."""
    posterior = np.concatenate(
        [
            [TUNING.no_effect_prior],
            (1 - TUNING.no_effect_prior) / len(FACTOR_SPREADS) * np.exp(np.minimum(log_bayes_factors, 700.0)),
        ]
    )
    posterior /= posterior.sum()
    return posterior


def accepted_spreads(log_bayes_factors: Floats, measured_directly: bool) -> Floats | None:
    """Posterior weights of the spreads; None: the margin is dropped."""
    weights = spread_posterior(log_bayes_factors)
    by_chance = weights[0] > TUNING.max_no_effect_posterior or (
        log_bayes_factors.max() < TUNING.min_log_bayes_factor and not measured_directly
    )
    return None if by_chance else weights


def _sampled_spread(weights: Floats, rng: np.random.Generator) -> Floats | None:
    """One of the spreads, drawn; None: no factors."""
    drawn = int(rng.choice(len(weights), p=weights))
    return np.eye(len(weights))[drawn] if drawn else None


# Ratio adjustment: step 4.


class RatioEstimate(NamedTuple):
    """By element of a margin: the ratio of what was seen to what the model expects."""

    ratio: Floats
    precision: Floats  # of the ratio
    expected: Floats  # count, by the model


# One record for each pair of variances that is tried.
SHRINKAGE_TRIAL = np.dtype([("signal_variance", np.float64), ("overdispersion", np.float64)], align=True)
SHRINKAGE_TRIALS = np.array(
    [(s, b) for s in TUNING.trial_signal_variances for b in TUNING.trial_overdispersions],
    dtype=SHRINKAGE_TRIAL,
)
# Rows of `_trial_sums`: the expected count before and after the factors, and the coefficients, from the constant on, of two polynomials
# in what factors are multiplied by to keep the total: the change of the squared error, and the sum of squares of the leaves' changes.
TRIAL_BEFORE, TRIAL_AFTER, TRIAL_ERROR, TRIAL_SQUARE = 0, 1, 2, 5
ERROR_DEGREE, SQUARE_DEGREE = 2, 4
TRIAL_ROWS = TRIAL_SQUARE + SQUARE_DEGREE + 1


def overdispersion(noisy: NDArray[Any], rate: Singles, law: NoiseDistribution) -> float:
    """How much more than Poisson counts vary about their rate (the index of dispersion, by moments); 1 where that cannot be told from noise."""
    variance = law.variance()
    total, squares = kernels.residual_sums(noisy, rate)
    extra = squares - len(noisy) * variance
    chance = math.sqrt((law.excess_kurtosis + 2.0) * len(noisy)) * variance  # of squares of the noise
    return max(1.0, extra / max(total, 1.0)) if extra > TUNING.min_overdispersion_z * chance else 1.0


def adjust_ratios(
    margin: Margin,
    models: FoldModels,
    noisy: NDArray[Any],
    variance: float,
    dispersion: float,
    rng: np.random.Generator | None,
) -> None:
    """Correct the models so that the margin's sums are met, as far as that predicts left-out leaves better.

    A step of iterative proportional fitting (Deming and Stephan 1940) whose ratios are shrunk towards 1 (Efron and Morris 1973), by
    variances that are chosen by cross-validation.
    """
    element, many = margin.of_leaves(), models.ranges(margin.size)
    ratios = MarginRatios(margin, element, models, noisy, variance, dispersion)
    sums, kept = np.zeros((TUNING.folds, TRIAL_ROWS, len(SHRINKAGE_TRIALS))), list[RatioEstimate]()
    for here in many:
        kept, fits = ratios.estimates(*here)
        sums += map_items(_trial_sums_of, zip(kept, fits, strict=True), len(noisy))
    best = _best_trial(*_trial_scores(sums))
    if best is None:
        return
    if len(many) > 1:
        parts = [ratios.estimates(*here)[0] for here in many]
        kept = [_concatenated([part[k] for part in parts]) for k in range(TUNING.folds)]
    deviate = None if rng is None else rng.standard_normal(margin.size)

    trial: tuple[float, float] = SHRINKAGE_TRIALS[best].item()

    def factor(estimate: RatioEstimate) -> Floats:
        shrunken: Floats = _shrunken_ratios(*estimate, *trial, TUNING.min_ratio)
        return shrunken if deviate is None else _sampled_ratios(shrunken, deviate, estimate, *trial)

    models.multiply(element, [factor(estimate) for estimate in kept], factor(ratios.perturbed()))


@dataclass(frozen=True, eq=False)
class MarginRatios:
    """The ratio estimates of one margin's factors."""

    margin: Margin
    element: NDArray[np.int32]  # of each leaf
    models: FoldModels
    noisy: NDArray[Any]
    variance: float
    dispersion: float

    def estimates(self, low: int, high: int) -> tuple[list[RatioEstimate], list[NDArray[np.void]]]:
        """Of some elements the ratios by each fold's model; and `kernels.FOLD_SUMS` of the leaves that it has not seen."""
        by_fold = self.models.each(lambda k: self._by_fold(k, low, high))
        noisy, leaves = (np.sum([sums[name] for _, sums in by_fold], axis=0) for name in ("noisy", "leaves"))
        measured, precision = self.margin.measured[low:high], self.margin.precision[low:high]
        estimates = [
            self._ratio_estimate(
                measured,
                precision,
                outside,
                outside + sums["rate"],
                noisy - sums["noisy"],
                leaves - sums["leaves"],
            )
            for outside, sums in by_fold
        ]
        return estimates, [sums for _, sums in by_fold]

    def perturbed(self) -> RatioEstimate:
        """The ratios by the first model with perturbed tables."""
        size, models = self.margin.size, self.models
        noisy, leaves = kernels.sums_outside_fold(self.element, self.noisy, models.fold, 0, size)
        leaves_perturbed = self.element, models.rate[0], models.log_response, models.fold, 0, size
        outside, inside = kernels.perturbed_sums_outside_fold(*leaves_perturbed)
        measured = self.margin.measured + self.margin.table_perturbation
        return self._ratio_estimate(measured, self.margin.precision, outside, outside + inside, noisy, leaves)

    def _by_fold(self, k: int, low: int, high: int) -> tuple[Floats, NDArray[np.void]]:
        models = self.models
        leaves = self.element, models.rate[k], models.fold, k, self.noisy
        return kernels.fold_sums(low, high, *leaves, self.variance, self.dispersion)

    def _ratio_estimate(
        self,
        measured: Floats,
        measured_precision: Floats,
        outside: Floats,
        expected: Floats,
        noisy: Floats,
        leaves: Floats,
    ) -> RatioEstimate:
        """From the noisy counts outside of a fold, and from what is known of all leaves' sum."""
        noise_variance = np.maximum(leaves * self.variance, MIN_PROBABILITY)
        precision = outside**2 / noise_variance + expected**2 * measured_precision
        weighted = noisy * outside / noise_variance + measured * expected * measured_precision
        ratio = np.divide(weighted, precision, out=np.ones(len(weighted)), where=precision > MIN_PROBABILITY)
        return RatioEstimate(ratio, precision, expected)


def _trial_sums_of(estimate_and_fit: tuple[RatioEstimate, NDArray[np.void]]) -> Floats:
    estimate, fit = estimate_and_fit
    sums: Floats = _trial_sums(*estimate, fit, SHRINKAGE_TRIALS, TUNING.min_ratio)
    return sums


def _concatenated(parts: Sequence[RatioEstimate]) -> RatioEstimate:
    return RatioEstimate(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _sampled_ratios(
    factor: Floats, deviate: Floats, estimate: RatioEstimate, signal: float, dispersion: float
) -> Floats:
    """The factors plus so many of their deviations; the total stays."""
    _, precision, expected = estimate
    error_variance = 1.0 / np.maximum(precision, MIN_PROBABILITY) + dispersion / np.maximum(
        expected, MIN_PROBABILITY
    )
    deviation = np.sqrt(signal * error_variance / (signal + error_variance))
    draw: Floats = np.maximum(factor + deviation * deviate, TUNING.min_ratio)
    draw *= expected.sum() / max(float(draw @ expected), MIN_PROBABILITY)
    return draw


def _best_trial(score: Floats, square: Floats) -> int | None:
    """The trial that predicts left-out leaves best; None where that may be chance."""
    best = int(np.argmin(score))
    return best if score[best] < -TUNING.min_adjustment_z * math.sqrt(square[best]) else None


@compiled_ahead("f8[::1], f8[::1], f8[::1], f8, f8, f8")
@kernel
def _shrunken_ratios(ratio, precision, expected, signal, dispersion, least):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """By element, the factor seen, drawn towards 1, the more the less precise it is; the total stays."""
    factor = np.empty(len(ratio))
    before, after = 0.0, 0.0
    for j in range(len(ratio)):
        error_variance = 1.0 / max(precision[j], MIN_PROBABILITY) + dispersion / max(
            expected[j], MIN_PROBABILITY
        )
        factor[j] = max(1.0 + signal / (signal + error_variance) * (ratio[j] - 1.0), least)
        before += expected[j]
        after += factor[j] * expected[j]
    for j in range(len(ratio)):
        factor[j] *= before / after
    return factor


@compiled_ahead(
    "f8[::1], f8[::1], f8[::1], FOLD_SUMS[::1], SHRINKAGE_TRIAL[::1], f8",
    FOLD_SUMS=kernels.FOLD_SUMS,
    SHRINKAGE_TRIAL=SHRINKAGE_TRIAL,
)
@fast_kernel
def _trial_sums(ratio, precision, expected, fit, tried, least):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """`TRIAL_ROWS` × trials: what `_trial_scores` needs of the factors f of each trial, before they are scaled to keep the total.

    With a factor r the weighted squared error of a left-out leaf changes by w (1 − r)(2y − m(1 + r)): an element's leaves enter by
    their sums of wy, wm, w²y², w²ym and w²m² alone (`fit`, of `kernels.FOLD_SUMS`). Both it and its square are polynomials of r.
    """
    sums = np.empty((TRIAL_ROWS, len(tried)))
    ratio_variance, share = (
        1.0 / np.maximum(precision, MIN_PROBABILITY),
        1.0 / np.maximum(expected, MIN_PROBABILITY),
    )
    wy, wm = fit["wy"].copy(), fit["wm"].copy()
    wy_wy, wy_wm, wm_wm = fit["wy_wy"].copy(), fit["wy_wm"].copy(), fit["wm_wm"].copy()
    sums[TRIAL_BEFORE], sums[TRIAL_ERROR] = expected.sum(), 2.0 * wy.sum() - wm.sum()
    sums[TRIAL_SQUARE] = 4.0 * wy_wy.sum() - 4.0 * wy_wm.sum() + wm_wm.sum()
    for t in range(len(tried)):
        signal, dispersion = tried[t].signal_variance, tried[t].overdispersion
        kept = linear = quadratic = one = two = three = four = 0.0
        for j in range(len(ratio)):
            error_variance = ratio_variance[j] + dispersion * share[j]
            f = max(1.0 + signal / (signal + error_variance) * (ratio[j] - 1.0), least)
            square = f * f
            kept += f * expected[j]
            linear += wy[j] * f
            quadratic += wm[j] * square
            one += (4.0 * wy_wm[j] - 8.0 * wy_wy[j]) * f
            two += (4.0 * wy_wy[j] + 4.0 * wy_wm[j] - 2.0 * wm_wm[j]) * square
            three += wy_wm[j] * f * square
            four += wm_wm[j] * square * square
        sums[TRIAL_AFTER, t] = kept
        sums[TRIAL_ERROR + 1, t], sums[TRIAL_ERROR + 2, t] = -2.0 * linear, quadratic
        sums[TRIAL_SQUARE + 1, t], sums[TRIAL_SQUARE + 2, t] = one, two
        sums[TRIAL_SQUARE + 3, t], sums[TRIAL_SQUARE + 4, t] = -4.0 * three, four
    return sums


def _trial_scores(sums: Floats) -> tuple[Floats, Floats]:
    """By trial, the change of the weighted squared error on the left-out leaves, and the sum of its squares; `sums` are by fold."""
    r = sums[:, TRIAL_BEFORE] / sums[:, TRIAL_AFTER]  # so that the total stays
    score = _polynomial(sums[:, TRIAL_ERROR : TRIAL_ERROR + ERROR_DEGREE + 1], r)
    square = _polynomial(sums[:, TRIAL_SQUARE : TRIAL_SQUARE + SQUARE_DEGREE + 1], r)
    return score.sum(axis=0), np.maximum(square, 0.0).sum(axis=0)


def _polynomial(coefficients: Floats, at: Floats) -> Floats:
    """Horner's rule, as `numpy.polynomial.polynomial.polyval`; coefficients lie along the second axis, the constant first."""
    value = coefficients[:, -1]
    for degree in range(coefficients.shape[1] - 2, -1, -1):
        value = coefficients[:, degree] + at * value
    return value


# The total: step 2.


def expected_total(measurements: Sequence[Measurement], least: float = 1.0) -> float:
    """The posterior mean of the number of trips, given all whole measurements, combined by inverse variance; not below the least.

    Before they are seen the total has Jeffreys' law of a Poisson mean, T^(−1/2): noise far above the total makes fewer trips.
    """
    totals = [
        (float(m.values.sum()), float(np.sum(m.variance)))
        for m in measurements
        if m.variance is not None and m.elements is None
    ]
    precision = sum(1 / v for _, v in totals)
    mean, deviation = sum(t / v for t, v in totals) / precision, math.sqrt(1 / precision)
    if mean > TUNING.sharp_total_z * deviation or deviation < TUNING.sharp_total_deviation:
        return max(least, mean)
    trips = np.exp(
        np.linspace(
            0.0, math.log(max(2.0, mean + TUNING.total_grid_deviations * deviation)), TUNING.total_grid_size
        )
    )
    far = np.square((trips - mean) / deviation)
    likely = np.exp((far.min() - far) / 2) * np.sqrt(trips)
    return float(likely @ trips / likely.sum())
