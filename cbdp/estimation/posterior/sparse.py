"""The estimator where trip types are too many to list: thresholds, posterior, reconciliation, and allocation of the rest.

`posterior_thresholds` says how many noisy counts to ask for. Of a type with few trips a noisy count says little more than whether it is above
zero, so floors at zero hide next to nothing, and a higher floor leaves about twice the share of noise that exceeds it of what all noisy counts say about rates.

`sparse_posterior` works out posteriors: types above their floor one by one, all others of a group together, as censored observations (`censored`);
groups are cells, told apart by effects of their stops (`effects`). `reconcile_sparse` solves the program for these, and `allocate` deals what it
leaves to a group's others to types drawn at random, so that memory follows trips. All of it is a function of noisy answers: docs/explanation/universes.md.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation.compiler import compile as compiled
from cbdp.estimation.compiler import merge_measurements
from cbdp.estimation.engine import Estimate, Program, certify_estimate
from cbdp.estimation.posterior.benchmarking import Benchmarks
from cbdp.estimation.posterior.censored import (
    CensoredCounts,
    GroupPosterior,
    StratifiedGroups,
    cell_groups,
    censored_counts,
    regroup,
)
from cbdp.estimation.posterior.effects import split_by_effects
from cbdp.estimation.posterior.likelihood import MIN_PROBABILITY, LeafPosterior, MixtureShape
from cbdp.estimation.posterior.margins import Margin, generalized_normal, measured_margin_sums
from cbdp.estimation.posterior.rate_model import FACTOR_SPREADS, accepted_spreads, expected_total
from cbdp.estimation.posterior.settings import TUNING
from cbdp.estimation.posterior.shared_errors import (
    FeatureSums,
    measured_sums,
    perturbed_tables,
    subtract_shared_errors,
)
from cbdp.estimation.projection import (
    LOG_EXPECTED_SURVIVORS,
    expected_densities,
    initial_thresholds,
    merged_thresholds,
)
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import ALL_REVEALED_THRESHOLD, Measurement, ThresholdedAnswer
from cbdp.privacy.noise import NoiseDistribution
from cbdp_features.universe import is_member
from cbdp_solvers.problem import Problem, bincount


def posterior_thresholds(
    features: FeatureDag, tables: Sequence[Measurement], leaves: ThresholdedAnswer, most: int
) -> Ints:
    """At the bottom where there are at most so many types; else as low as that number allows.

    A function of public sizes and of the noisy tables: cells with more expected trips to a type have lower floors.
    """
    sizes, law = features.cells.partition.sizes, leaves.noise
    if features.universe.size <= most:
        return np.full(len(sizes), ALL_REVEALED_THRESHOLD, dtype=np.int64)
    density = expected_densities(features, tables)
    worth = density**2 / law.variance() >= TUNING.min_revealed_information
    share = _revealed_shares(np.where(worth, density, 0.0), sizes.astype(float), most)
    sharp = np.minimum(_threshold_levels(law, share), law.extreme(sizes, LOG_EXPECTED_SURVIVORS))
    return merged_thresholds(
        np.where(worth, sharp, initial_thresholds(features, tables, leaves)), features, leaves
    )


def _threshold_levels(law: NoiseDistribution, share: Floats) -> Floats:
    """The whole numbers from 0 on that about these shares of noise exceed."""
    low, high = np.zeros(len(share)), np.ones(len(share))
    while (law.survival(high) > share).any() and high[0] < -ALL_REVEALED_THRESHOLD:
        high *= 2
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        over = law.survival(middle) > share
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    nearer = law.survival(low) * law.survival(high) < share**2
    return np.where(nearer, low, high)


def _revealed_shares(density: Floats, sizes: Floats, most: int) -> Floats:
    """By cell, the part of its types to reveal if none has trips: in proportion to expected trips, as far as more tell more."""
    part = TUNING.max_revealed_share
    target = min(most * part, float(density @ sizes) * TUNING.max_revealed_per_trip)
    low, high = 0.0, part / max(float(density.min(initial=1.0, where=density > 0)), 1e-300)
    for _ in range(60):
        middle = (low + high) / 2
        many = float(np.minimum(middle * density, part) @ sizes)
        low, high = (low, middle) if many > target else (middle, high)
    return np.clip(low * density, 1e-300, part)


# Posterior means of types above their floors, and of all others of each group together


LOG_FACTOR_GRID = np.linspace(
    TUNING.min_log_cell_factor, TUNING.max_log_cell_factor, TUNING.factor_grid_size
)  # logarithms of factors
DEVIATION_GRID = np.linspace(
    -TUNING.close_deviations, TUNING.close_deviations, TUNING.close_grid_size
)  # in deviations from what was measured


def sparse_posterior(
    features: FeatureDag, measurements: Sequence[Measurement], leaves: Measurement
) -> GroupPosterior:
    """Posterior means and variances, given all noisy answers, of which `leaves` has those above their floors."""
    tables = _complete_tables(measurements)
    cells = censored_counts(features, leaves, cell_groups(features))
    sums, (expected, shape) = measured_sums(features, tables), _cell_means_and_shape(features, cells, tables)
    groups, leave_one_out_log_ratio = split_by_effects(features, cells, expected, shape)
    counts = regroup(cells, groups)
    more = leave_one_out_log_ratio + np.log(groups.weight(counts.index) / groups.mean[counts.group])
    independent = _independent_posterior(counts.stratified(expected[groups.cell] * groups.part, more), tables)
    perturbed, _ = _cell_means_and_shape(features, cells, perturbed_tables(tables, sums))
    return _merge_faint_types(_subtract_shared_errors(sums, independent, np.log(perturbed / expected)))


def _cell_means_and_shape(
    features: FeatureDag, counts: CensoredCounts, tables: Sequence[Measurement]
) -> tuple[Floats, MixtureShape]:
    """The expected count of each cell by the tables; and the shape of its types' counts."""
    less = [_without_outliers(features, m, counts) for m in tables]
    margins, total = _cell_margins(features, less), expected_total(less)
    shape = counts.stratified(_cell_counts(margins, total, counts.sizes, 0.0)).best()
    squared_cv = math.exp(shape.log_mean_spread**2) / (1 - shape.zero_share) - 1
    return _cell_counts(margins, total, counts.sizes, squared_cv), shape


def _independent_posterior(strata: StratifiedGroups, tables: Sequence[Measurement]) -> GroupPosterior:
    """Means and variances as if errors were independent."""
    posterior = strata.posterior()
    lacking = (expected_total(tables) - float(posterior.mean.sum())) / max(
        float(posterior.rest.sum()), TUNING.min_variance
    )
    short = min(max(lacking, TUNING.min_rest_ratio), 1 / TUNING.min_rest_ratio)
    return replace(
        posterior, rest=posterior.rest * short, rest_variance=posterior.rest_variance * max(short, short**2)
    )


def _subtract_shared_errors(
    sums: Sequence[FeatureSums], posterior: GroupPosterior, log_rate_response: Floats
) -> GroupPosterior:
    """Types above their floors, and the others of each group as one more, moved by the errors that they share.

    `log_rate_response` is by how much the logarithms of the cells' expected counts change with perturbed tables. What types below their floors have
    follows their rate.
    """
    of_group = posterior.groups.cell
    cell = np.concatenate([of_group[posterior.group], of_group])
    whole = LeafPosterior(
        np.concatenate([posterior.mean, posterior.rest]),
        np.concatenate([posterior.variance, posterior.rest_variance]),
        np.concatenate([posterior.rate_sensitivity, np.minimum(posterior.rest, posterior.rest_variance)]),
    )
    slope = np.concatenate([posterior.rate_sensitivity, posterior.rest])
    moved = subtract_shared_errors(sums, cell, len(log_rate_response), whole, slope * log_rate_response[cell])
    many = len(posterior.index)
    return replace(
        posterior,
        mean=moved.mean[:many],
        variance=moved.variance[:many],
        rest=np.where(posterior.rest > 0, moved.mean[many:], 0.0),
        rest_variance=moved.variance[many:],
    )


def _without_outliers(features: FeatureDag, m: Measurement, counts: CensoredCounts) -> Measurement:
    """A measured feature less what types have beyond the reach of noise: an outlier tells little about its neighbours."""
    outlier = counts.noisy > counts.reach
    inside = features.cells.element_of_cell[m.feature][counts.group[outlier]]
    size = len(m.values)
    return replace(
        m,
        values=m.values - bincount(inside, counts.noisy[outlier] - counts.reach, size),
        variance=m.variance + np.bincount(inside, minlength=size) * counts.table.variance,
    )


def _merge_faint_types(posterior: GroupPosterior) -> GroupPosterior:
    """Where types are too many to list, those above their floors that are all but sure to be noise go to their group's rest."""
    if len(posterior.index) <= TUNING.max_named_types:
        return posterior
    faint = posterior.mean < TUNING.faint_mean
    group, size = posterior.group[faint], len(posterior.rest)
    clear = ~faint
    return GroupPosterior(
        posterior.groups,
        posterior.index[clear],
        posterior.group[clear],
        posterior.mean[clear],
        posterior.variance[clear],
        posterior.rate_sensitivity[clear],
        posterior.rest + bincount(group, posterior.mean[faint], size),
        posterior.rest_variance + bincount(group, posterior.variance[faint], size),
    )


def _complete_tables(measurements: Sequence[Measurement]) -> list[Measurement]:
    complete = [
        m for m in measurements if m.feature != SINGLETON and m.variance is not None and m.elements is None
    ]
    if not complete:
        raise InputError(
            "no feature but 'singleton' is measured: where the types cannot be listed, estimator 'posterior' needs 'total' "
            "at least, or use 'projection'"
        )
    return complete


# Expected counts of cells, from the features alone: step 3 of the algorithm, with cells for leaves


def _cell_margins(features: FeatureDag, measured: Sequence[Measurement]) -> list[Margin]:
    """Every grouping of the cells that a measured feature refines, coarse ones first."""
    cells = features.cells
    names = [a.name for a in cells.partition.attributes]
    codes = dict(zip(names, cells.partition.label_codes(), strict=True))
    chosen = {
        frozenset(by)
        for m in measured
        for n in range(1, len(features.features[m.feature].by) + 1)
        for by in itertools.combinations(features.features[m.feature].by, n)
    }
    inside: dict[str, Any] = {m.feature: cells.element_of_cell[m.feature] for m in measured}
    margins = []
    for group in chosen:
        by = tuple(name for name in names if name in group)
        joint = np.zeros(cells.size, dtype=np.int64)
        for name in by:
            joint = joint * (int(codes[name].max()) + 1) + codes[name]
        element: Ints = np.unique(joint, return_inverse=True)[1]
        size = int(element.max()) + 1
        measured_sums = measured_margin_sums(element, size, measured, inside)
        law = generalized_normal(measured_sums.tails)
        measured_directly = bool((measured_sums.alone > TUNING.min_single_noise_share).all())
        margins.append(
            Margin(
                by,
                size,
                element.astype(np.int32),
                measured_sums.value,
                measured_sums.precision,
                *law,
                measured_sums.table_perturbation,
                measured_directly,
            )
        )
    return sorted((m for m in margins if m.size > 1), key=lambda m: (m.size, m.by))


def _cell_counts(margins: Sequence[Margin], total: float, sizes: Ints, squared_cv: float) -> Floats:
    """Expected counts by cell: the total spread evenly, times each margin's shrunken factors.

    `squared_cv` is by how much more than a Poisson count a type's own varies, relative to the square of its mean.
    """
    expected = total * (sizes / float(np.sum(sizes, dtype=float)))
    for margin in margins:
        sums = bincount(margin.element, expected, margin.size)
        factor = _shrunken_factors(
            margin, sums, bincount(margin.element, expected**2 / sizes, margin.size) * squared_cv
        )
        expected = np.maximum(
            expected * (factor * (sums.sum() / (factor @ sums)))[margin.element], MIN_PROBABILITY
        )
    return expected


def _shrunken_factors(margin: Margin, sums: Floats, squares: Floats) -> Floats:
    """The expected factor of each element, shrunk by how much factors are seen to vary; all 1 if not more than by chance."""
    # whole noisy sums are few: elements of which the same is known have the same factor
    evidence = np.stack([margin.measured, margin.precision, margin.power, margin.width, sums, squares])
    (measured, precision, power, width, sums, squares), where, often = np.unique(
        evidence, axis=1, return_inverse=True, return_counts=True
    )
    kinds = replace(margin, measured=measured, precision=precision, power=power, width=width)
    parts = [slice(i, i + TUNING.elements_at_once) for i in range(0, len(measured), TUNING.elements_at_once)]
    log_bayes_factors = np.zeros(len(FACTOR_SPREADS))
    for here in parts:
        log, fit, none = _log_factor_likelihood(kinds, sums, squares, here)
        log_bayes_factors += [
            np.log((fit * _lognormal_density(log, s)).sum(axis=1) / none + MIN_PROBABILITY) @ often[here]
            for s in FACTOR_SPREADS
        ]
    weights = accepted_spreads(log_bayes_factors, margin.measured_directly)
    if weights is None:
        return np.ones(margin.size)
    factor = np.empty(len(measured))
    for here in parts:
        log, fit, none = _log_factor_likelihood(kinds, sums, squares, here)
        weight = fit * sum(
            b * _lognormal_density(log, s) for b, s in zip(weights[1:], FACTOR_SPREADS, strict=True)
        )
        factor[here] = ((weight * np.exp(log)).sum(axis=1) + weights[0] * none) / (
            weight.sum(axis=1) + weights[0] * none
        )
    return factor[where.reshape(-1)]


def _log_factor_likelihood(
    margin: Margin, sums: Floats, squares: Floats, here: slice
) -> tuple[Floats, Floats, Floats]:
    """Logarithms of factors, by element: their likelihood times the distance to their neighbours; and that of the factor 1.

    They cover all factors there are, and closely those that the measured sum speaks for.
    """
    measured, expected, precision = (
        margin.measured[here, None],
        sums[here, None],
        margin.precision[here, None],
    )
    noise = 1.0 / np.maximum(precision, MIN_PROBABILITY)
    peak = np.maximum(measured, expected * math.exp(LOG_FACTOR_GRID[0]))
    close = np.log(peak / expected) + DEVIATION_GRID * np.minimum(np.sqrt(noise + peak) / peak, 1.0)
    log = np.sort(
        np.hstack([np.broadcast_to(LOG_FACTOR_GRID, (len(expected), len(LOG_FACTOR_GRID))), close]), axis=1
    )

    def log_likelihood(factor: Any) -> Floats:
        deviation = np.sqrt(noise + factor * expected + factor**2 * squares[here, None])
        deviations = np.abs(measured - factor * expected) / (margin.width[here, None] * deviation)
        against: Floats = -(deviations ** margin.power[here, None]) - np.log(deviation)
        return np.where(precision > 0, against, 0.0)

    fit, none = log_likelihood(np.exp(log)), log_likelihood(1.0)
    best = np.maximum(fit.max(axis=1, keepdims=True), none)
    width = np.gradient(log, axis=1)
    return log, np.exp(fit - best) * width, np.exp(none - best)[:, 0] + MIN_PROBABILITY


def _lognormal_density(log: Floats, spread: float) -> Floats:
    """Of the logarithms of log-normal factors of mean 1."""
    density: Floats = np.exp(-0.5 * ((log + spread**2 / 2) / spread) ** 2) / (spread * math.sqrt(2 * math.pi))
    return density


# Allocation of what is expected of a group's unnamed types


def allocate(posterior: GroupPosterior, mass: Floats, seed: int) -> tuple[Ints, Floats]:
    """Types other than those found that get each group's mass, in ascending order, and how much each gets.

    They are as many as trips, or more while these are few. Which ones is drawn at random from each group, without listing it:
    evenly, or the more likely the busier their values are.
    """
    partition, rng = posterior.groups.partition, np.random.default_rng(seed)
    taken, sizes = np.bincount(posterior.group, minlength=len(mass)), partition.sizes
    finely = _types_per_trip(mass, sizes)
    requested = np.ceil(mass * finely)
    many = np.where(mass > 0, np.clip(requested, 1, sizes - taken), 0).astype(np.int64)
    further = np.where(
        taken * TUNING.crowded_ratio > sizes, taken, np.minimum(taken, many // 8 + TUNING.spare_draws)
    )
    times = (
        np.ceil(TUNING.draws_per_type / finely).astype(np.int64) if posterior.groups.factors else 1
    )  # small parts need no choice
    drawn = np.where(many > 0, np.minimum(times * many + further, sizes), 0)
    inside = np.repeat(np.arange(len(mass)), drawn)
    index = partition.type_at(inside, _stratified_positions(sizes, drawn, inside, rng))
    free = np.flatnonzero(~is_member(index, posterior.index))
    index, inside = index[free], inside[free]
    weight = posterior.groups.weight(index)
    kept = _weighted_sample(inside, many, weight, rng)
    part = 1 + TUNING.jitter * (rng.random(int(kept.sum())) - 0.5)
    if posterior.groups.factors:
        part *= _inclusion_weights(inside, many, weight)[kept]
    index, inside = index[kept], inside[kept]
    part *= (mass / np.maximum(bincount(inside, part, len(mass)), MIN_PROBABILITY))[inside]
    order = np.argsort(index)
    return index[order], part[order]


def _types_per_trip(mass: Floats, sizes: Ints) -> Floats:
    """By group, to how many types a trip is dealt: to several where trips are few, or types not many more than trips."""
    total = max(float(mass.sum()), 1.0)
    few, many = (
        max(1.0, TUNING.min_allocated_types / total),
        min(TUNING.max_parts_per_trip, TUNING.max_allocated_types / total),
    )
    return np.where(mass > TUNING.min_rate_for_parts * sizes, max(few, many), few)


def _weighted_sample(inside: Ints, many: Ints, weight: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which of the types drawn from each group are kept: weighted sampling without replacement (Efraimidis and Spirakis 2006)."""
    kept = np.ones(len(inside), dtype=bool)
    spare = np.flatnonzero((np.bincount(inside, minlength=len(many)) > many)[inside])
    late = rng.standard_exponential(len(spare)) / np.maximum(weight[spare], MIN_PROBABILITY)
    spare = spare[np.lexsort((late, inside[spare]))]
    kept[spare] = _rank_among_equals(inside[spare]) < many[inside[spare]]
    return kept


def _inclusion_weights(inside: Ints, many: Ints, weight: Floats) -> Floats:
    """Weight divided by about the inclusion probability (Horvitz and Thompson 1952): where all are kept, it alone tells types apart."""
    often = np.bincount(inside, minlength=len(many))
    share = np.minimum(many / np.maximum(often, 1), 1.0)[inside]
    mean = (bincount(inside, weight, len(many)) / np.maximum(often, 1))[inside]
    relative = weight / np.maximum(mean, MIN_PROBABILITY)
    with np.errstate(divide="ignore"):
        chance = -np.expm1(np.log1p(-share) * relative)
    weights: Floats = relative / np.maximum(chance, MIN_PROBABILITY)
    return weights


def _stratified_positions(sizes: Ints, drawn: Ints, inside: Ints, rng: np.random.Generator) -> Ints:
    """A stratified sample: one place in each of as many equal stretches of a group as types are drawn. None is drawn twice."""
    stretch = _rank_among_equals(inside)
    width, further = np.divmod(sizes, np.maximum(drawn, 1))
    width, further = width[inside], further[inside]
    width_of_stretch = width + (stretch < further)
    within = np.minimum((rng.random(len(inside)) * width_of_stretch).astype(np.int64), width_of_stretch - 1)
    positions: Ints = stretch * width + np.minimum(stretch, further) + within
    return positions


def _rank_among_equals(ordered: Ints) -> Ints:
    """The place of each among its equals, which stand together."""
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    ranks: Ints = np.arange(len(ordered)) - np.repeat(starts, np.diff(starts, append=len(ordered)))
    return ranks


def seed_of_answers(measurements: Sequence[Measurement]) -> int:
    """A number that follows from the noisy answers: whoever has these can deal again."""
    digest = hashlib.sha256()
    for m in measurements:
        digest.update(m.feature.encode())
        for part in (m.values, m.elements, m.floor):
            digest.update(b"-" if part is None else np.ascontiguousarray(part).tobytes())
    return int.from_bytes(digest.digest()[:16], "big")


# Reconciliation: step 9


def reconcile_sparse(
    features: FeatureDag, measurements: Sequence[Measurement], above: Measurement, program: Program
) -> Estimate:
    """Counts above their floors as they are to be expected, and the others of each group together; reconciled, and dealt out.

    The program reconciles them with the features (weights are inverse variances), and what it leaves to a group's others is
    dealt out to types drawn at random, from a seed that follows from the noisy answers.
    """
    posterior = sparse_posterior(features, measurements, above)
    problem = _sparse_program(features, measurements, above, posterior)
    estimate = certify_estimate(
        features, problem, program.solver.solve(problem, None), program.solver, program.tolerance
    )
    above_floor, rest = np.split(estimate.solution.leaves, [len(posterior.index)])
    mass = np.zeros(len(posterior.rest))
    mass[posterior.rest > 0] = rest
    others, shares = allocate(posterior, mass, seed_of_answers([*measurements, above]))
    index = np.concatenate([posterior.index, others])
    order = np.argsort(index, kind="stable")
    solution = replace(estimate.solution, leaves=np.concatenate([above_floor, shares])[order])
    return Estimate(features, solution, index[order])


def _sparse_program(
    features: FeatureDag, measurements: Sequence[Measurement], above: Measurement, posterior: GroupPosterior
) -> Problem:
    """The program for types that are told apart, and one leaf for all others of each group."""
    none = np.empty(0, dtype=np.int64)
    unknown = replace(above, values=none, elements=none, variance=None)
    problem = Benchmarks(features, merge_measurements(features, measurements)).hold(
        compiled(features, [*measurements, unknown], "inverse-variance")
    )
    others = np.flatnonzero(posterior.rest > 0)
    return replace(
        problem,
        target=np.concatenate([posterior.mean, posterior.rest[others]]),
        weight=1.0 / np.concatenate([posterior.variance, posterior.rest_variance[others]]),
        cell=posterior.groups.cell[np.concatenate([posterior.group, others])].astype(problem.cell.dtype),
        index=None,
        floor=None,
    )
