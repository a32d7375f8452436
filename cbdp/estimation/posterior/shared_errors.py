"""Shared errors of leaves as random effects, predicted by BLUP: step 8 of docs/explanation/estimator.md.

Expected counts are products of factors. A factor that is off by a per cent moves every leaf that it was applied to, so a
sum of leaves is off by far more than independent errors would be. The model: every element of every measured feature has an
effect b of its own on the logarithm of its leaves' rates, and a leaf moves by ℓ·b, where the rate sensitivity ℓ is the slope of its
expected count in that logarithm: its variance where counts are Poisson, whatever the noise; its mean where the noise tells
nothing of it. So a sum of leaves with independent variances adding up to g and rate sensitivities adding up to L has the variance
g + τ²L², τ² being that of the effects.

How large effects are is judged by how far the sums miss what was measured. They were predicted from the same measurements,
so they miss them by less than their errors: E (c − M)² = (R + H)(1 − a), where c has noise of variance R, M is the leaves' sum,
a is the share of the noise of c that M has followed (seen by predicting again from tables that were perturbed a little; what
benchmarking pulled towards tables is not in it), and H = (Var(error of M) − aR)/(1 − a) is the variance at which it is best to weigh M against c. The
excess of H over g is averaged over a prior, half at 0 and half over orders of magnitude, smaller ones the likelier, within groups of elements of about the same g. Rates are taken to be right but for a factor of three or so, unless the
sums of a group prove that they are not.

Then the effects are predicted from all tables together by their empirical best linear unbiased prediction (Henderson 1975, Robinson 1991; variances are estimated), repeated until
sums are met as they should be, and leaves are moved by them. What is left are independent errors, which the program can weigh.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from cbdp.arrays import Floats, Ints
from cbdp.compiling import compiled_ahead, inlined, kernel
from cbdp.estimation.posterior.likelihood import MIN_PROBABILITY, LeafPosterior
from cbdp.estimation.posterior.margins import LAPLACE_EXCESS_KURTOSIS
from cbdp.estimation.posterior.parallel import map_parts
from cbdp.estimation.posterior.settings import TUNING
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp_solvers.problem import bincount

_EXCESS_GRID = np.concatenate([[0.0], np.logspace(*TUNING.log10_excess_range, TUNING.excess_grid_size)])
# half at 0; of the others, even in logarithms, in proportion to 1/x, so small ones are favoured
_EXCESS_PRIOR = np.concatenate([[1.0], _EXCESS_GRID[1:] ** -1 / np.sum(_EXCESS_GRID[1:] ** -1)]) / 2


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """One measured feature, over the cells."""

    name: str
    element: Any  # of each cell
    measured: Floats
    noise_variance: Floats
    noise_excess_kurtosis: float
    perturbation: Floats  # of each count, in deviations: what is added to see how far means respond

    def of(self, by_cell: Floats) -> Floats:
        return bincount(self.element, by_cell, len(self.measured))


@dataclass(frozen=True, eq=False)
class RandomEffects:
    """The random effects of one feature: the error that the leaves of each of its elements share."""

    sums: FeatureSums
    effect_variance: Floats  # τ²
    total_variance: Floats  # the variance of the leaves' sum, all effects included


def measured_sums(features: FeatureDag, measurements: Iterable[Measurement]) -> list[FeatureSums]:
    """The features that are measured as a whole and with known noise, fine ones first."""
    whole = [
        m
        for m in measurements
        if m.feature != SINGLETON and m.variance is not None and m.elements is None and len(m.values)
    ]
    whole.sort(key=lambda m: (-len(m.values), m.feature))
    names = [m.feature for m in whole]
    return [
        FeatureSums(
            m.feature,
            features.cells.element_of_cell[m.feature],
            m.values.astype(float),
            np.maximum(m.variance, TUNING.min_variance),
            LAPLACE_EXCESS_KURTOSIS if m.noise is None else m.noise.excess_kurtosis,
            _perturbation_signs(features, m.feature, names),
        )
        for m in whole
    ]


def _perturbation_signs(features: FeatureDag, name: str, measured: Sequence[str]) -> Floats:
    """Up or down by one, at random but always the same; what coarser features would see of it is taken out."""
    rng = np.random.default_rng(features.size(name))
    signs = rng.choice([-1.0, 1.0], features.size(name))
    for coarser in measured:
        if coarser != name and features.graph.has_edge(name, coarser):
            inside = features.map_elements(name, coarser)
            many = np.bincount(inside, minlength=features.size(coarser))[inside]
            mean = bincount(inside, signs, features.size(coarser))[inside] / many
            signs = np.where(many > 1, signs - mean, signs)
    return signs


def table_perturbations(sums: Iterable[FeatureSums]) -> dict[str, Floats]:
    """By how much each table is perturbed, to see how far means respond."""
    return {s.name: TUNING.perturbation_deviations * np.sqrt(s.noise_variance) * s.perturbation for s in sums}


def perturbed_tables(measurements: Iterable[Measurement], sums: Iterable[FeatureSums]) -> list[Measurement]:
    """The measurements with every table perturbed a little."""
    perturbations = table_perturbations(sums)
    return [
        replace(m, values=m.values + perturbations[m.feature]) if m.feature in perturbations else m
        for m in measurements
    ]


def subtract_shared_errors(
    sums: Sequence[FeatureSums],
    cell: Any,
    cells: int,
    posterior: LeafPosterior,
    mean_response: Floats,
    *,
    refit: bool = False,
) -> LeafPosterior:
    """The leaves, moved by the BLUP of the errors that they share.

    `mean_response` is by how much means change with perturbed tables (`table_perturbations`). Leaves may also stand for all other types of a cell together.
    `refit`: if sums prove that rates are wrong by more than they may be, once more from the leaves that were moved: how a sum
    follows its effects was worked out where it no longer is.
    """
    # as the compiled loops take them
    leaves = cell, posterior.mean, posterior.variance, posterior.rate_sensitivity
    offset = np.zeros(cells)
    mean, variance, rate_sensitivity = _offset_sums(leaves, offset)
    effects = _random_effects(sums, mean, variance, rate_sensitivity, bincount(cell, mean_response, cells))
    weighted_residual = np.zeros(sum(len(e.effect_variance) for e in effects))
    for turn in range(TUNING.blup_iterations):
        predicted, weighted_residual = _blup(
            effects, mean, variance, rate_sensitivity, offset, weighted_residual
        )
        step = predicted - offset
        offset = np.clip(
            offset + (step if turn < TUNING.blup_iterations // 2 else step / 2),
            -TUNING.max_offset,
            TUNING.max_offset,
        )
        if np.abs(step).max(initial=0.0) < TUNING.blup_tolerance:
            break
        mean, variance, rate_sensitivity = _offset_sums(leaves, offset)
    offset = _holding_the_total(sums, leaves, offset)
    columns = [np.empty(len(posterior.mean)) for _ in range(2)]
    map_parts(
        lambda begin, end: _apply_offsets(*columns, *leaves, offset, TUNING.min_variance, begin, end),
        len(posterior.mean),
    )
    moved = replace(posterior, mean=columns[0], variance=columns[1])
    if not refit or all((e.effect_variance <= TUNING.max_effect_variance).all() for e in effects):
        return moved
    rate_sensitivity = np.minimum(
        posterior.rate_sensitivity * moved.mean / np.maximum(posterior.mean, TUNING.min_variance), moved.mean
    )
    return subtract_shared_errors(
        sums, cell, cells, replace(moved, rate_sensitivity=rate_sensitivity), mean_response
    )


def _holding_the_total(sums: Sequence[FeatureSums], leaves: tuple[Any, ...], offset: Floats) -> Floats:
    """The offsets, or the largest fraction of them at which the leaves' total does not leave what was measured of it.

    Effects are taken to be normal, and leaves do not fall below 0. Where effects are large beside the leaves and told by little else than
    noise (a table of many empty pairs), what cannot fall only rises, and the noise on such a table would be taken for trips.
    """
    if not sums:
        return offset
    totals = [(float(s.measured.sum()), float(s.noise_variance.sum())) for s in sums]
    variance = 1.0 / sum(1.0 / of_table for _, of_table in totals)
    measured = variance * sum(value / of_table for value, of_table in totals)
    before = float(_offset_sums(leaves, np.zeros_like(offset)).mean.sum())
    # a little more is left to the program, which has the total itself
    room = max(TUNING.max_total_deviations * math.sqrt(variance), TUNING.max_total_share * abs(measured))
    low, high = min(before, measured - room), max(before, measured + room)

    def inside_room(fraction: float) -> bool:
        return low <= float(_offset_sums(leaves, fraction * offset).mean.sum()) <= high

    if inside_room(1.0):
        return offset
    inside, outside = 0.0, 1.0
    for _ in range(TUNING.total_bisections):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if inside_room(middle) else (inside, middle)
    return inside * offset


class CellSums(NamedTuple):
    """By cell, sums over its leaves."""

    mean: Floats
    variance: Floats
    rate_sensitivity: Floats


def _offset_sums(leaves: tuple[Any, ...], offset: Floats) -> CellSums:
    """By cell, the sums of the leaves' means, variances and rate sensitivities, with these offsets of log rates."""

    def part(begin: int, end: int) -> CellSums:
        sums = CellSums(*(np.zeros(len(offset)) for _ in range(3)))
        _add_to_cells(*sums, *leaves, offset, TUNING.min_variance, begin, end)
        return sums

    parts = map_parts(part, len(leaves[0]))
    return CellSums(*(reduce(np.add, columns) for columns in zip(*parts, strict=True)))


@compiled_ahead("f8[::1], f8[::1], f8[::1], i4[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8, i8, i8")
@kernel
def _add_to_cells(means, variances, slopes, cell, mean, variance, sensitivity, offset, least, begin, end):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Fill in `CellSums` of some leaves, which begin with zeros."""
    for u in range(begin, end):
        k = cell[u]
        first = max(mean[u], least)
        times, slope = clipped_multiplier(sensitivity[u] / first * offset[k])
        means[k] += first * times
        variances[k] += max(variance[u] * slope, least)
        slopes[k] += sensitivity[u] * slope


@compiled_ahead("f8[::1], f8[::1], i4[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8, i8, i8")
@kernel
def _apply_offsets(mean_out, variance_out, cell, mean, variance, rate_sensitivity, offset, least, begin, end):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Each leaf's mean and variance, with the offset of its log rate."""
    for u in range(begin, end):
        first = max(mean[u], least)
        times, slope = clipped_multiplier(rate_sensitivity[u] / first * offset[cell[u]])
        mean_out[u] = first * times
        variance_out[u] = max(variance[u] * slope, least)


@inlined
def clipped_multiplier(reach):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """What a leaf is multiplied by, and its slope: 1 + reach upwards, and 1/(1 − reach) downwards, which never falls to 0."""
    if reach >= 0:
        return 1.0 + reach, 1.0
    times = 1.0 / (1.0 - reach)
    return times, times * times


# Variance components


def _random_effects(
    sums: Sequence[FeatureSums],
    mean: Floats,
    variance: Floats,
    rate_sensitivity: Floats,
    mean_response: Floats,
) -> list[RandomEffects]:
    """Of every feature, fine ones first: what finer effects explain is not explained again. All arguments are by cell."""
    effects: list[RandomEffects] = []
    for s in sums:
        claimed = reduce(np.add, (_induced_variance(e, s, rate_sensitivity) for e in effects), s.of(variance))
        response, sum_of_means = s.of(mean_response), s.of(mean)
        group = _merged_groups(_groups_by_variance(claimed), s, sum_of_means, response)
        missed = (s.measured - sum_of_means) ** 2 / (1 - _noise_in_sums(group, s, response))
        expected, least = _excess_variance(group, missed, claimed, s)[:, group] * claimed
        rate_sensitivity_squared = np.maximum(s.of(rate_sensitivity), TUNING.min_variance) ** 2
        effect_variance = np.minimum(
            expected / rate_sensitivity_squared,
            np.maximum(least / rate_sensitivity_squared, TUNING.max_effect_variance),
        )
        effects.append(
            RandomEffects(s, effect_variance, claimed + effect_variance * rate_sensitivity_squared)
        )
    return effects


def _noise_in_sums(group: Ints, s: FeatureSums, mean_response: Floats) -> Floats:
    """How much of the noise of a count is in its leaves' sum: the mean of its group, by how means responded to perturbed counts.

    A covariance penalty by perturbed data (Ye 1998, Efron 2004): sums that follow their own noise miss it by less than they err.
    """
    size = int(group.max()) + 1
    along = bincount(
        group,
        s.perturbation * mean_response / (TUNING.perturbation_deviations * np.sqrt(s.noise_variance)),
        size,
    )
    part = np.clip(
        along / np.maximum(bincount(group, s.perturbation**2, size), MIN_PROBABILITY),
        0.0,
        TUNING.max_followed_share,
    )
    sure = np.bincount(group) / (np.bincount(group) + TUNING.effect_group_size)  # a few counts tell little
    return (sure * part + (1 - sure) * TUNING.default_followed_share)[group]


def _induced_variance(effects: RandomEffects, to: FeatureSums, rate_sensitivity: Floats) -> Floats:
    """The variance that the effects of one feature give the sums of another."""
    size = len(effects.effect_variance)
    pair, which = np.unique(to.element.astype(np.int64) * size + effects.sums.element, return_inverse=True)
    common = bincount(which.reshape(-1), rate_sensitivity, len(pair))
    return bincount(pair // size, effects.effect_variance[pair % size] * common**2, len(to.measured))


def _groups_by_variance(claimed: Floats) -> Ints:
    """Elements of about the same variance, in groups of some dozens or more."""
    many = int(np.clip(len(claimed) // TUNING.effect_group_size, 1, TUNING.max_effect_groups))
    group = np.empty(len(claimed), dtype=np.int64)
    group[np.argsort(claimed, kind="stable")] = np.arange(len(claimed)) * many // len(claimed)
    return group


def _merged_groups(group: Ints, s: FeatureSums, sum_of_means: Floats, response: Floats) -> Ints:
    """Neighbouring groups, merged where what distinguishes them may be the noise of the counts that they are judged by.

    Elements are grouped by what is expected of them, and that follows their own noisy counts. Where noise is large beside the
    differences between elements, the first and the last group would be those whose noise happened to be largest: they would miss by
    more than noise explains, and all others by less (selection, as in regression to the mean).
    """
    size = np.bincount(group)
    level = bincount(group, sum_of_means, len(size)) / size
    own_noise = np.sqrt(
        bincount(group, _noise_in_sums(group, s, response) ** 2 * s.noise_variance, len(size)) / size
    )
    merged = np.zeros(len(size), dtype=np.int64)
    first = 0  # of the groups that are merged
    for g in range(1, len(size)):
        distinct = abs(level[g] - level[first]) > TUNING.min_group_z * max(own_noise[g], own_noise[first])
        merged[g] = merged[g - 1] + distinct
        first = g if distinct else first
    return merged[group]


def _excess_variance(group: Ints, missed: Floats, claimed: Floats, s: FeatureSums) -> Floats:
    """By group, by how many times the variance of sums exceeds what is claimed, given by how much they miss: expected, and at least."""
    excess = np.zeros((2, int(group.max()) + 1))
    for g in range(excess.shape[1]):
        here = np.flatnonzero(group == g)
        # squares of noise with heavy tails vary more than those of a normal law, so many of them tell less
        weight = 1.0 if len(here) <= TUNING.max_normal_group_size else 2.0 / (2.0 + s.noise_excess_kurtosis)
        # of many, those of about the same variances are judged by their mean: a sample of them would be taken for all
        here = here[np.lexsort((claimed[here], s.noise_variance[here]))]
        starts = np.unique(np.linspace(0, len(here), TUNING.max_judged_elements, endpoint=False).astype(int))
        count = np.diff(starts, append=len(here))
        noise, within, square = (
            np.add.reduceat(v[here], starts) / count for v in (s.noise_variance, claimed, missed)
        )
        whole = noise[:, None] + within[:, None] * (1 + _EXCESS_GRID)
        log_density = count @ (np.log(whole) + square[:, None] / whole)
        fit = np.log(_EXCESS_PRIOR) - weight / 2 * log_density
        belief = np.exp(fit - fit.max())
        belief /= belief.sum()
        excess[:, g] = (
            belief @ _EXCESS_GRID,
            _EXCESS_GRID[np.searchsorted(np.cumsum(belief), TUNING.excess_tail_probability)],
        )
    return excess


# Prediction


def _blup(
    effects: Sequence[RandomEffects],
    mean: Floats,
    variance: Floats,
    rate_sensitivity: Floats,
    offset: Floats,
    weighted_residual: Floats,
) -> tuple[Floats, Floats]:
    """By cell, the empirical best linear unbiased prediction of the sum of its effects, from how far all sums miss what was measured.

    Conjugate gradients on Henderson's equations, preconditioned by the diagonal; `weighted_residual` is p of S p = r, one for each element.

    `offset` is the prediction that `mean` is bent by already, and `weighted_residual` the solution of the system that led to it.
    """
    if not effects:
        return offset, weighted_residual
    ends = np.cumsum([0, *(len(e.effect_variance) for e in effects)])
    place = np.stack([e.sums.element + end for e, end in zip(effects, ends[:-1], strict=True)], axis=1)
    effect_variance, noise = (
        np.concatenate(part)
        for part in ([e.effect_variance for e in effects], [e.sums.noise_variance for e in effects])
    )
    missed = np.concatenate([e.sums.measured - e.sums.of(mean - rate_sensitivity * offset) for e in effects])
    scale = np.concatenate([e.total_variance + e.sums.noise_variance for e in effects])
    shape = (len(missed), len(missed))
    weighted_residual, _ = cg(
        LinearOperator(
            shape,
            matvec=lambda p: _covariance_product(
                place, effect_variance, noise, variance, rate_sensitivity, p
            ),
            dtype=float,
        ),
        missed,
        x0=weighted_residual,
        M=LinearOperator(shape, matvec=lambda r: r / scale, dtype=float),
        rtol=TUNING.cg_tolerance,
        maxiter=TUNING.cg_iterations,
    )
    return _cell_effects(place, effect_variance, rate_sensitivity, weighted_residual)[1], weighted_residual


@kernel
def _cell_effects(place, effect_variance, rate_sensitivity, weighted_residual):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """By cell, the sum of weighted residuals, and of the effects that they make; `place` is that of each cell's elements among all (cells × features)."""
    shift, effect, shared = (
        np.zeros(len(rate_sensitivity)),
        np.zeros(len(weighted_residual)),
        np.zeros(len(rate_sensitivity)),
    )
    for k in range(len(rate_sensitivity)):
        for i in range(place.shape[1]):
            shift[k] += weighted_residual[place[k, i]]
        for i in range(place.shape[1]):
            effect[place[k, i]] += rate_sensitivity[k] * shift[k]
    effect *= effect_variance
    for k in range(len(rate_sensitivity)):
        for i in range(place.shape[1]):
            shared[k] += effect[place[k, i]]
    return shift, shared


@compiled_ahead("i8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1]")
@kernel
def _covariance_product(place, effect_variance, noise, variance, rate_sensitivity, weighted_residual):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """The covariance of all sums, noise included, times these numbers."""
    shift, shared = _cell_effects(place, effect_variance, rate_sensitivity, weighted_residual)
    product = noise * weighted_residual
    for k in range(len(rate_sensitivity)):
        through_cell = variance[k] * shift[k] + rate_sensitivity[k] * shared[k]
        for i in range(place.shape[1]):
            product[place[k, i]] += through_cell
    return product
