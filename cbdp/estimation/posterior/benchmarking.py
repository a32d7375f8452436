"""Benchmarking: sums of posterior means held to what was measured, in two places (steps 7 and 9 of docs/explanation/estimator.md).

*Step 7* (`benchmarked`). Over margins that no table has, posterior means are moved by predicted random effects. Posterior means are products of a rate
model. Where the model is wrong (a margin it leaves out, an interaction it has no factor for) the leaves of an element share an error, and their sum
errs by far more than independent errors would. Tables betray such errors for their own elements (shared_errors.py). For every other
margin of the lattice the noisy leaves do, added up: their sum has noise of known variance and no bias, whatever the model. With the sums of tables
that refine the margin, combined by inverse variance, it is the direct estimate c_e of variance R_e. (Coarser and crossing tables are not used, so it is
not the full generalised least-squares answer.) This is benchmarking as in small area estimation: model-based estimates are adjusted until they
agree with reliable direct estimates of larger areas (Rao and Molina, *Small Area Estimation*, 2nd ed. 2015, section 6.4.6; Datta, Ghosh,
Steorts and Maples 2011), here only as far as the direct estimates are reliable.

The model of one margin: the leaves of element e have a common random effect b_e on the logarithm of their rates, of mean 0 and variance τ², so that their
sum M_e moves by L_e·b_e, L_e being the sum of their rate sensitivities (d mean / d log rate). Were the posterior means right and c_e the leaves' own sum, c_e − M_e
would have the variance R_e − V_e, V_e being the sum of the leaves' posterior variances: means are orthogonal to their own errors. With tables in c_e that
is an approximation, and so it has a floor. With effects the variance is R_e − V_e + τ²L_e². So τ² is judged by how far sums miss, in groups of
elements of about the same precision, and the effect's prediction, the best linear unbiased one if τ² were known (Henderson 1975), is

    b̂_e = τ²L_e / (R_e − V_e + τ²L_e²) · (c_e − M_e).

Margins are taken from fine to coarse: a sum over many leaves is settled last, so that nothing that is done for a finer margin undoes it.

*Step 9* (`Benchmarks`). In the program, margins of few elements weigh more. How far sums of leaves err is judged by how far they miss what was measured. Of a
feature of many elements that is seen; of the total, or of a few periods, next to nothing is: one miss may be chance. And counts cannot be
negative, so that noise of fine tables moves their sums up. So a feature is held to what was measured of it, the more the fewer its elements
are: to its own noisy counts and to the inverse-variance combination of the sums that refine it, which no model and no clipping has touched. Leaves still decide
where a feature's trips are. The same goes for margins of few elements that were not measured but that tables add up to (modes, of a table by mode and
period; the total): each gets a term of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.compiling import compiled_ahead, kernel
from cbdp.estimation.posterior.likelihood import LeafPosterior
from cbdp.estimation.posterior.margins import Margin, candidate_groupings
from cbdp.estimation.posterior.parallel import map_parts
from cbdp.estimation.posterior.rate_model import expected_total
from cbdp.estimation.posterior.settings import TUNING
from cbdp.estimation.posterior.shared_errors import clipped_multiplier
from cbdp.features import SINGLETON, TOTAL, Feature, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp_solvers.problem import Problem, Term, bincount

# Step 7: margins that no table has


SHARE_GRID = np.array(TUNING.effect_shares)
UNIFORM_SHRINKAGE_PRIOR = np.gradient(SHARE_GRID) / np.gradient(SHARE_GRID).sum()  # Daniels (1999)

# One record for each element of a margin: sums over its leaves.
ELEMENT_SUMS = np.dtype(
    [(name, np.float64) for name in ("leaves", "noisy", "mean", "variance", "rate_sensitivity")], align=True
)


def benchmarked(
    margins: Sequence[Margin], noisy: NDArray[Any], noise_variance: float, leaves: LeafPosterior
) -> LeafPosterior:
    """The leaves, moved by the predicted effects of each of these margins, which are given coarse ones first."""
    for margin in reversed(margins):
        leaves = _benchmarked_by(margin, noisy, noise_variance, leaves)
    return leaves


def _benchmarked_by(
    margin: Margin, noisy: NDArray[Any], noise_variance: float, leaves: LeafPosterior
) -> LeafPosterior:
    element = margin.of_leaves()
    sums = np.zeros(margin.size, dtype=ELEMENT_SUMS)
    _add_to_elements(sums, element, noisy, leaves.mean, leaves.variance, leaves.rate_sensitivity)
    rate_sensitivity = sums["rate_sensitivity"].copy()
    # The direct estimate: noisy leaves and finer tables, each added up, combined by inverse variance.
    leaf_precision = 1.0 / (sums["leaves"] * noise_variance)
    precision = leaf_precision + margin.precision
    direct = (sums["noisy"] * leaf_precision + margin.measured * margin.precision) / precision
    residual_variance = np.maximum(1.0 / precision - sums["variance"], TUNING.min_residual_share / precision)
    missed = direct - sums["mean"]
    explained = _effect_variances(missed, residual_variance, rate_sensitivity) * rate_sensitivity**2
    share = explained / (residual_variance + explained)
    if margin.size <= TUNING.unbiased_elements:
        largest = TUNING.max_effect_variance * rate_sensitivity**2
        share = largest / (1.0 / precision + largest)
    shift = share * missed  # of each element's sum
    if not shift.any():
        return leaves
    offset = _offsets(element, leaves, shift, rate_sensitivity)
    moved = [np.empty(len(noisy)) for _ in range(3)]
    unmoved = element, leaves.mean, leaves.variance, leaves.rate_sensitivity, offset, TUNING.min_variance
    map_parts(lambda begin, end: _move(*moved, *unmoved, begin, end), len(noisy))
    return replace(leaves, mean=moved[0], variance=moved[1], rate_sensitivity=moved[2])


def _effect_variances(missed: Floats, residual_variance: Floats, rate_sensitivity: Floats) -> Floats:
    """τ² of each element: the one at which the middle element of its group has the posterior mean of the share.

    Groups are of elements whose sums tell about as much of an effect.
    """
    information = np.maximum(rate_sensitivity, TUNING.min_variance) ** 2 / residual_variance
    groups = int(np.clip(len(missed) // TUNING.min_judged_elements, 1, TUNING.max_benchmark_groups))
    group = np.empty(len(missed), dtype=np.int64)
    group[np.argsort(information, kind="stable")] = np.arange(len(missed)) * groups // len(missed)
    effect_variance = np.empty(groups)
    for g in range(groups):
        here = np.flatnonzero(group == g)
        middle = float(np.median(information[here]))
        step = -(-len(here) // TUNING.max_judged_elements)
        judged = here[::step]
        candidates = SHARE_GRID / (1.0 - SHARE_GRID) / middle
        total_variance = residual_variance[judged, None] * (1.0 + candidates * information[judged, None])
        log_likelihood = -0.5 * np.sum(
            np.log(total_variance) + missed[judged, None] ** 2 / total_variance, axis=0
        )
        log_posterior = np.log(_prior(len(here))) + len(here) / len(judged) * log_likelihood
        log_posterior[candidates > TUNING.max_effect_variance] = -np.inf
        posterior = np.exp(log_posterior - log_posterior.max())
        share = float(posterior @ SHARE_GRID / posterior.sum())
        effect_variance[g] = min(share / (1.0 - share) / middle, TUNING.max_effect_variance)
    return effect_variance[group]


def _prior(elements: int) -> Floats:
    """Of the shares: a point mass at none, and the uniform shrinkage prior."""
    no_effect = elements**2 / (elements**2 + TUNING.even_odds_elements**2)
    prior = (1.0 - no_effect) * UNIFORM_SHRINKAGE_PRIOR
    prior[0] += no_effect
    return np.asarray(prior)


class ShiftedSums(NamedTuple):
    """By element, how far the sum of its leaves moves with an offset, and the slope of that."""

    shift: Floats
    slope: Floats


def _offsets(element: NDArray[Any], leaves: LeafPosterior, shift: Floats, rate_sensitivity: Floats) -> Floats:
    """By element, the offset of log rates at which its sum has moved by its shift (Newton's method)."""
    offset = np.clip(
        shift / np.maximum(rate_sensitivity, TUNING.min_variance), -TUNING.max_offset, TUNING.max_offset
    )

    def shifted(offset: Floats) -> ShiftedSums:
        def part(begin: int, end: int) -> ShiftedSums:
            sums = ShiftedSums(np.zeros(len(offset)), np.zeros(len(offset)))
            unmoved = element, leaves.mean, leaves.rate_sensitivity, offset, TUNING.min_variance
            _add_shifts(*sums, *unmoved, begin, end)
            return sums

        parts = map_parts(part, len(element))
        return ShiftedSums(*(np.sum(columns, axis=0) for columns in zip(*parts, strict=True)))

    for _ in range(TUNING.newton_steps):
        moved, slope = shifted(offset)
        step = (shift - moved) / np.maximum(slope, TUNING.min_variance)
        offset = np.clip(offset + step, -TUNING.max_offset, TUNING.max_offset)
        if np.abs(shift - moved).max() < TUNING.newton_tolerance * np.abs(shift).max():
            break
    return offset


@compiled_ahead("ELEMENT_SUMS[::1], i4[::1], i8[::1], f8[::1], f8[::1], f8[::1]", ELEMENT_SUMS=ELEMENT_SUMS)
@kernel
def _add_to_elements(sums, element, noisy, mean, variance, rate_sensitivity):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Fill in `ELEMENT_SUMS`, which begin with zeros."""
    for u in range(len(element)):
        e = element[u]
        sums[e].leaves += 1.0
        sums[e].noisy += noisy[u]
        sums[e].mean += mean[u]
        sums[e].variance += variance[u]
        sums[e].rate_sensitivity += rate_sensitivity[u]


@compiled_ahead("f8[::1], f8[::1], i4[::1], f8[::1], f8[::1], f8[::1], f8, i8, i8")
@kernel
def _add_shifts(shifts, slopes, element, mean, rate_sensitivity, offset, least, begin, end):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Fill in `ShiftedSums` of some leaves, which begin with zeros."""
    for u in range(begin, end):
        e = element[u]
        first = max(mean[u], least)
        times, slope = clipped_multiplier(rate_sensitivity[u] / first * offset[e])
        shifts[e] += first * (times - 1.0)
        slopes[e] += rate_sensitivity[u] * slope


@compiled_ahead("f8[::1], f8[::1], f8[::1], i4[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8, i8, i8")
@kernel
def _move(means, variances, sensitivities, element, mean, variance, sensitivity, offset, least, begin, end):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Each leaf's mean, variance and rate sensitivity with its element's offset."""
    for u in range(begin, end):
        first = max(mean[u], least)
        times, slope = clipped_multiplier(sensitivity[u] / first * offset[element[u]])
        means[u] = first * times
        variances[u] = max(variance[u] * slope, least)
        # in proportion to the mean, as that of a Poisson count
        sensitivities[u] = min(sensitivity[u] * times, means[u])


# Step 9: the program's terms for margins of few elements


@dataclass(frozen=True, eq=False)
class Benchmarks:
    """The program's terms for margins of few elements: their direct estimates, by what was measured of the features that refine them."""

    features: FeatureDag
    measured: Mapping[str, Measurement]

    def hold(self, problem: Problem) -> Problem:
        """The program, with more weight on margins of few elements."""
        terms = [self._held(term) for term in problem.terms]
        seen = {term.element_of_cell.astype(np.int64).tobytes() for term in terms}
        derived = []
        for term in self._derived():
            key = term.element_of_cell.tobytes()
            if key not in seen:
                seen.add(key)
                derived.append(term)
        return replace(problem, terms=tuple(sorted([*derived, *terms], key=lambda term: len(term.target))))

    def _held(self, term: Term) -> Term:
        if not ((term.weight > 0) & (term.weight < 1 / TUNING.min_variance)).all():
            return term  # exact or next to it, or not all measured
        more = _benchmark_weight(len(term.target))
        target, _ = self._direct_estimate(term.element_of_cell, len(term.target))
        return replace(
            term, weight=term.weight * (1 + more), target=(term.target + more * target) / (1 + more)
        )

    def _derived(self) -> Iterator[Term]:
        """Terms of the margins of few elements that tables add up to, the total among them."""
        universe = self.features.universe
        types = self.features.cells.partition.representatives()
        tables = [self.features.features[name] for name in self.measured if name not in (SINGLETON, TOTAL)]
        for by in candidate_groupings(universe):
            if not any(self._refines(table, by) for table in tables):
                continue
            partition = universe.partition(by)
            if partition.size > TUNING.benchmarked_elements:
                continue
            element = partition.element_of(types).astype(np.int64)
            target, precision = self._direct_estimate(element, partition.size)
            if (precision > 0).all() and (precision < 1 / TUNING.min_variance).all():
                yield Term(
                    f"margin by {' × '.join(by)}",
                    element,
                    target,
                    precision * _benchmark_weight(partition.size),
                )

    def _refines(self, table: Feature, by: tuple[str, ...]) -> bool:
        """Does the margin follow from the table: is each of its attributes one of the table's, or of dimensions that the table has?"""
        dimensions = [name for name in table.by if name in self.features.universe.dimensions]
        return all(
            name in table.by or set(self.features.universe.attribute(name).of) <= set(dimensions)
            for name in by
        )

    def _direct_estimate(self, element_of_cell: NDArray[np.integer], size: int) -> tuple[Floats, Floats]:
        """The inverse-variance combination of all sums that refine a margin, and its precision; of the total, its posterior mean.

        The total has Jeffreys' prior of a Poisson mean, as in step 2, so it is not the unbiased one where noise is large beside it.
        """
        if size == 1:
            whole = [m for m in self.measured.values() if m.variance is not None and m.elements is None]
            return np.array([expected_total(whole, 0.0)]), np.array(
                [sum(1.0 / np.sum(m.variance) for m in whole)]
            )
        weighted, precision = np.zeros(size), np.zeros(size)
        for m in self.measured.values():
            inside = self._inside(m.feature, element_of_cell)
            if m.variance is None or m.elements is not None or inside is None:
                continue
            variance = bincount(inside, m.variance, size)
            weighted += bincount(inside, m.values.astype(float), size) / variance
            precision += 1.0 / variance
        return weighted / precision, precision

    def _inside(self, feature: str, element_of_cell: NDArray[np.integer]) -> Ints | None:
        """The margin's element that holds each of a feature's; None if they do not lie inside them."""
        if feature == SINGLETON:
            return np.asarray(element_of_cell[self.features.cell_of_leaf])
        element = self.features.cells.element_of_cell[feature]
        inside = np.full(self.features.size(feature), -1, dtype=np.int64)
        inside[element] = element_of_cell
        return inside if (inside[element] == element_of_cell).all() else None


def _benchmark_weight(elements: int) -> float:
    """By how many times its precision the direct estimate enters the program, for a margin of so many elements.

    The square is for the fewest: of one or two sums no estimate is better everywhere than the unbiased one (Stein 1956), of three or
    four little can be gained, and what counts that cannot be negative do to noisy tables is a bias of the total first of all.
    """
    weight = TUNING.benchmarked_elements / elements
    return max(weight, weight**2 / TUNING.benchmarked_few)
