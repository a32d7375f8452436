"""The likelihood of a noisy count, and the posterior of each leaf: steps 1 and 6 of docs/explanation/estimator.md.

A count is Poisson about a mean λ, and λ is 0 with some probability and log-normal otherwise (zero-inflated Poisson–log-normal: Bulmer
1974, Lambert 1992); on top comes the noise. Means are integrated over by quadrature points that are no further apart than
counts about them are wide. With noise far wider than a trip, counts are taken in steps of a fraction of its scale.

Within strata of leaves of similar rate, shapes (zero share, spread) are averaged by their evidence (empirical Bayes), which gives each leaf's
posterior mean and variance, and its rate sensitivity: the slope of that mean in the logarithm of the rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, pdtrc

from cbdp.arrays import Floats, Ints, Singles
from cbdp.compiling import compiled_ahead, kernel
from cbdp.estimation.posterior.kernels import MIN_RATE
from cbdp.estimation.posterior.parallel import map_items, map_parts
from cbdp.estimation.posterior.settings import TUNING
from cbdp.privacy.noise import NoiseDistribution

MIN_MIXTURE_WEIGHT = 1e-300  # of a mixture: smaller numbers would only be slow to multiply


# The law of a noisy count given how many trips were to be expected


ZERO_SHARE, LOG_MEAN_SPREAD = 0, 1  # the columns of arrays of shapes
MIXTURE_SHAPES = np.array(
    [(empty, spread) for empty in TUNING.zero_shares for spread in TUNING.log_mean_spreads]
)
MIN_PROBABILITY = 1e-300


class MixtureShape(NamedTuple):
    """How counts vary about their rate."""

    zero_share: float  # of types that have no trips
    log_mean_spread: float  # standard deviation of the logarithms of the others' means


@dataclass(frozen=True, eq=False)
class CountLikelihood:
    """The likelihood of every noisy count there is, under a Poisson count of each of a row of means."""

    step: int
    noise: NoiseDistribution
    column: NDArray[np.int16]  # of each noisy count, in the tables
    capped: NDArray[np.bool_]  # noisy counts beyond the tables
    means: Floats  # 0 and a row of means, in trips
    zero: int  # the column of a noisy count of 0
    trips: Floats  # by column, the count without noise (0 where it would be negative)
    counts: Floats  # means × columns: the law of the count without noise

    def with_means(self, means: Floats) -> CountLikelihood:
        """The tables for another row of means."""
        return replace(
            self, means=means, counts=_count_probabilities(means, self.zero, self.counts.shape[1], self.step)
        )

    @cached_property
    def likelihood(self) -> Floats:
        """Means × columns: the probability of each noisy count."""
        return self.noise.blurred(self.counts, self.step)

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Means × columns: likelihood times the expected count, and times its square, given the noisy count."""
        return self.noise.blurred(self.counts * self.trips, self.step), self.noise.blurred(
            self.counts * self.trips**2, self.step
        )

    @cached_property
    def used(self) -> Ints:
        """The columns that occur."""
        return np.flatnonzero(np.bincount(self.column, minlength=self.counts.shape[1]))

    @cached_property
    def place(self) -> NDArray[np.int16]:
        """Of each noisy count, its place among the columns that occur."""
        places = np.zeros(self.counts.shape[1], dtype=np.int16)
        places[self.used] = np.arange(len(self.used))
        return places[self.column]

    @cached_property
    def occurring(self) -> Floats:
        """Means × columns that occur: the probability of each noisy count; what is next to none is none."""
        probability = self.likelihood[:, self.used]
        return np.where(probability < MIN_PROBABILITY, 0.0, probability)

    @property
    def variance(self) -> float:
        """Of the noise, in trips."""
        return self.noise.variance()

    def mixtures(self, expected: Floats, shapes: Floats = MIXTURE_SHAPES) -> Floats:
        """Expected counts × shapes × means: what each shape mixes; each row adds up to 1 and has the expected mean.

        Of a shape (empty, spread), `empty` have no trips, and the others' means are log-normal.
        """
        return lognormal_mixtures(self.means, expected, shapes)


def count_likelihood(noisy: NDArray[Any], law: NoiseDistribution) -> CountLikelihood:
    """The tables for these noisy counts, whose noise has this law."""
    scale = float(law.scale)
    step = max(1, int(scale // TUNING.steps_per_scale))
    deep = TUNING.max_negative_scales * math.ceil(scale / step)
    assert deep + TUNING.max_steps + 1 < 2**15
    place = _in_steps(noisy, step, -deep, TUNING.max_steps + 1)
    high = min(int(place.max()), TUNING.max_steps)
    zero = max(0, -int(place.min()))
    top = max(8, high + 3 * math.ceil(scale / step) + 3)
    means = quadrature_means(TUNING.min_mean, max(4.0, top * step), scale)
    counts = _count_probabilities(means, zero, zero + top + 1, step)
    trips = np.concatenate([np.zeros(zero), step * np.arange(top + 1.0)])
    return CountLikelihood(
        step,
        law,
        np.minimum(place, high) + np.int16(zero),
        place > high,
        means,
        zero,
        trips,
        counts,
    )


@compiled_ahead("i8[::1], i8, i8, i8")
@kernel
def _in_steps(noisy, step, least, most):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Noisy counts in whole steps, between these."""
    steps = np.empty(len(noisy), dtype=np.int16)
    for u in range(len(noisy)):
        steps[u] = min(max(np.rint(noisy[u] / step), least), most)
    return steps


def _count_probabilities(means: Floats, zero: int, columns: int, step: int) -> Floats:
    """Means × columns: the law of the count without noise, which is not below 0."""
    counts = np.zeros((len(means), columns))
    counts[:, zero:] = _poisson_probabilities(means, np.arange(columns - zero), step)
    return counts


def quadrature_means(least: float, most: float, scale: float) -> Floats:
    """0, and means from the least to the first that is not below the most.

    Poisson counts about neighbouring means overlap, or differ by less than the noise: else counts between two means would be
    drawn to one or the other.
    """
    means = [0.0, least]
    while means[-1] < most:
        means.append(means[-1] + min(TUNING.max_mean_gap * means[-1], max(math.sqrt(means[-1]), scale / 4)))
    return np.array(means)


def lognormal_mixtures(means: Floats, expected: Floats, shapes: Floats = MIXTURE_SHAPES) -> Floats:
    """Expected counts × shapes × means: of a shape (empty, spread), `empty` have no trips; the others' means are log-normal.

    A mean between two of the row is dealt to both so that means are kept: the part of each is a second difference of
    expected excesses E[(λ − a)⁺], which a log-normal law has in closed form; or of E[(a − λ)⁺], where these are small.
    """
    empty, spread = shapes[:, ZERO_SHARE].copy(), np.maximum(shapes[:, LOG_MEAN_SPREAD], 1e-3)
    centre = np.maximum(expected, MIN_PROBABILITY)[:, None] / (1 - empty)
    positive = np.ascontiguousarray(means[1:])
    below = np.searchsorted(positive, centre, side="right")
    near, far = normal_arguments(below, np.log(centre), np.log(positive), spread)
    near, far = ndtr(near, out=near), ndtr(far, out=far)
    weights: Floats = mixture_weights(below, near, far, centre, positive, np.diff(means), empty)
    return weights


def _poisson_probabilities(means: Floats, steps: Ints, step: int) -> Floats:
    """Means × steps: the law of a Poisson count; a count between two steps is dealt to both, so that means are kept."""
    if step == 1:
        log = np.log(
            np.maximum(means, MIN_PROBABILITY)
        )  # a mean of 0 has all counts but 0 out of the question, as this has
        law = np.exp(np.outer(log, steps) - means[:, None] - gammaln(steps + 1.0))
    else:  # a hat function of the count is a second difference of expected excesses E[(n − a)⁺]
        over = step * np.arange(0.0, len(steps) + 1)
        excess = means[:, None] * pdtrc(np.maximum(over - 1, 0), means[:, None]) - over * pdtrc(
            over, means[:, None]
        )
        excess[:, 0] = means
        excess = np.column_stack([means + step, excess])
        law = np.maximum(np.diff(excess, n=2, axis=1) / step, 0.0)
    probability: Floats = law / np.maximum(law.sum(axis=1, keepdims=True), MIN_PROBABILITY)
    return probability


# Log-normal means dealt to quadrature points so that means are kept. The part of a point is a second difference of expected excesses
# E[(λ − a)⁺], as in the price of a call option; where these are large, of E[(a − λ)⁺]. Of each only those that are used are worked out.


@compiled_ahead("i8[:,::1], f8[:,::1], f8[::1], f8[::1]")
@kernel
def normal_arguments(below, log_centre, log_positive, spread):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Where the normal law is wanted, all in one row: by mean, and half a spread further. `below` is how many means are not above each centre."""
    rows, shapes = below.shape
    many = len(log_positive)
    size = 0
    for i in range(rows):
        for s in range(shapes):
            k = below[i, s]
            size += many + (1 if 0 < k < many else 0)
    near, far = np.empty(size), np.empty(size)
    at = 0
    for i in range(rows):
        for s in range(shapes):
            k, half = below[i, s], spread[s] / 2
            for j in range(k):
                x = (log_centre[i, s] - log_positive[j]) / spread[s]
                near[at], far[at] = -(x + half), -(x - half)
                at += 1
            for j in range(max(k - 1, 0) if k < many else many, many):
                x = (log_centre[i, s] - log_positive[j]) / spread[s]
                near[at], far[at] = x + half, x - half
                at += 1
    return near, far


@compiled_ahead("i8[:,::1], f8[::1], f8[::1], f8[:,::1], f8[::1], f8[::1], f8[::1]")
@kernel
def mixture_weights(below, near, far, centre, positive, step, empty):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """What each mean gets; `near` and `far` are now the values of the normal law, and `step` the gaps between means."""
    rows, shapes = centre.shape
    many = len(positive)
    weights = np.empty((rows, shapes, many + 1))
    at = 0
    for i in range(rows):
        for s in range(shapes):
            k, c, filled = below[i, s], centre[i, s], 1 - empty[s]
            slope, last = -1.0, 0.0  # minus the chance to lie above, on average between two means
            for j in range(k):
                under = positive[j] * far[at] - c * near[at]
                now = (under - last) / step[j] - 1
                weights[i, s, j] = max(now - slope, 0.0) * filled
                slope, last = now, under
                at += 1
            last = c
            if 0 < k < many:
                last = c * near[at] - positive[k - 1] * far[at]
                at += 1
            for j in range(k, many):
                over = c * near[at] - positive[j] * far[at]
                now = (over - last) / step[j]
                weights[i, s, j] = max(now - slope, 0.0) * filled
                slope, last = now, over
                at += 1
            weights[i, s, many] = max(0.0 - slope, 0.0) * filled
            weights[i, s, 0] += empty[s]
    return weights


@compiled_ahead("f8[:,::1], f8[::1,:]")
@kernel
def mixture_probabilities(mixed, law):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Mixtures × columns: the laws of all means, mixed.

    A product of matrices, but each number is made in the same way wherever it stands, and nothing runs on threads of its own.
    """
    probability = np.zeros((len(mixed), law.shape[1]))
    for i in range(len(mixed)):
        _add_components(probability[i], mixed[i], law)
    return probability


@compiled_ahead("f8[:,::1], f8[::1,:], i8[::1], f8")
@kernel
def mixture_log_likelihoods(mixed, law, often, tiny):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Of each mixture, the log-likelihood of what was seen so often in each column."""
    here = np.flatnonzero(often)
    part, times = np.empty((len(law), len(here))), np.empty(len(here))
    for k in range(len(here)):
        times[k] = often[here[k]]
    for m in range(len(law)):
        for k in range(len(here)):
            part[m, k] = law[m, here[k]]
    log_likelihood, chance = np.zeros(len(mixed)), np.empty(len(here))
    for i in range(len(mixed)):
        chance[:] = 0.0
        _add_components(chance, mixed[i], part)
        for k in range(len(here)):
            log_likelihood[i] += times[k] * np.log(max(chance[k], tiny))
    return log_likelihood


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_components(into, mixed, law):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add up the laws of the means, as many times as they are mixed in, four at a time; what is next to none is left out."""
    rest = len(mixed) % 4
    for m in range(rest):
        for k in range(len(into)):
            into[k] += mixed[m] * law[m, k]
    for m in range(rest, len(mixed), 4):
        a, b, c, d = mixed[m], mixed[m + 1], mixed[m + 2], mixed[m + 3]
        if max(a, b, c, d) > MIN_MIXTURE_WEIGHT:
            for k in range(len(into)):
                into[k] += (a * law[m, k] + b * law[m + 1, k]) + (c * law[m + 2, k] + d * law[m + 3, k])


# The shape of counts: which share of the types is empty, and how the others' means spread; by marginal likelihood


MIN_RATE_BITS = np.asarray(MIN_RATE, dtype=np.float32).view(np.int32).item()
DROPPED_MANTISSA_BITS = 15  # binary places of a number of single precision that are left out: 8 are left


def rate_strata(rate: NDArray[Any], many: int) -> NDArray[np.uint8]:
    """Groups of leaves of similar expected count: even in leaves where they are alike, and in trips where they are few.

    Expected counts that differ by less than half a per cent stand in the order of the leaves.
    """
    assert many < 2**8
    group: NDArray[np.uint8] = _stratum_of_leaves(rate.astype(np.float32, copy=False), many)
    return group


@compiled_ahead("f4[::1], i8")
@kernel
def _stratum_of_leaves(rate, many):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Each leaf's group, by the leaves and trips before it; no group is empty."""
    sums = np.zeros((2**16, 2))  # leaves and trips, by exponent and leading places
    bits = rate.view(np.int32)
    for u in range(len(rate)):
        at = max(bits[u], MIN_RATE_BITS) >> DROPPED_MANTISSA_BITS
        sums[at, 0] += 1.0
        sums[at, 1] += rate[u]
    leaves_before, trips_before = 0.0, 0.0
    for at in range(len(sums)):  # from here on those before each
        here, there = sums[at, 0], sums[at, 1]
        sums[at, 0], sums[at, 1] = leaves_before, trips_before
        leaves_before, trips_before = leaves_before + here, trips_before + there
    by_leaf, by_trip = 0.5 * many / len(rate), 0.5 * many / max(trips_before, MIN_PROBABILITY)
    group, used = np.empty(len(rate), dtype=np.uint8), np.zeros(many, dtype=np.uint8)
    for u in range(len(rate)):
        at = max(bits[u], MIN_RATE_BITS) >> DROPPED_MANTISSA_BITS
        sums[at, 0] += 1.0
        sums[at, 1] += rate[u]
        group[u] = min(int(by_trip * sums[at, 1] + by_leaf * sums[at, 0]), many - 1)
        used[group[u]] = 1
    number, groups = np.zeros(many, dtype=np.uint8), 0
    for g in range(many):
        number[g] = groups
        groups += used[g]
    if groups < many:
        for u in range(len(rate)):
            group[u] = number[group[u]]
    return group


def observed_columns(column: NDArray[Any], group: Ints, columns: int) -> list[tuple[Ints, Ints]]:
    """For each group the columns that occur, and how often."""
    often = np.bincount(group * columns + column, minlength=(int(group.max()) + 1) * columns)
    return [(np.flatnonzero(row), row[row > 0]) for row in often.reshape(-1, columns)]


class StratumSums(NamedTuple):
    """By stratum, the number of leaves, and the sums of their rates and of their noisy counts."""

    leaves: Floats
    rate: Floats
    noisy: Floats


def stratum_sums(group: NDArray[Any], rate: NDArray[Any], noisy: NDArray[Any], groups: int) -> StratumSums:
    sums = StratumSums(*(np.zeros(groups) for _ in range(3)))
    _add_to_strata(*sums, group, rate, noisy)
    return sums


@compiled_ahead(
    "f8[::1], f8[::1], f8[::1], u1[::1], f4[::1], f4[::1]",
    "f8[::1], f8[::1], f8[::1], u1[::1], f4[::1], i8[::1]",
)
@kernel
def _add_to_strata(leaves, rates, noisy_sums, group, rate, noisy):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Fill in `StratumSums`, which begin with zeros."""
    for u in range(len(group)):
        leaves[group[u]] += 1.0
        rates[group[u]] += rate[u]
        noisy_sums[group[u]] += noisy[u]


@compiled_ahead("u1[::1], i2[::1], i8, i8")
@kernel
def column_counts(group, place, groups, places):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Groups × columns: how often each occurs."""
    often = np.zeros((groups, places), dtype=np.int64)
    for u in range(len(group)):
        often[group[u], place[u]] += 1
    return often


def shape_log_evidence(
    table: CountLikelihood, mean: Floats, often: Ints, leaves: int, shapes: Floats = MIXTURE_SHAPES
) -> tuple[Floats, Floats]:
    """Groups × shapes: the log-likelihood of what was seen so often; and the mixtures of each."""
    law = table.occurring

    def group(g: int) -> tuple[Floats, Floats]:
        mixed = table.mixtures(mean[g : g + 1], shapes)[0]
        return mixture_log_likelihoods(mixed, law, often[g], MIN_PROBABILITY), mixed

    by_group = map_items(group, range(len(mean)), leaves)
    return np.array([fit for fit, _ in by_group]), np.array([mixed for _, mixed in by_group])


def shape_penalty(shapes: Floats = MIXTURE_SHAPES) -> Floats:
    """The log prior of each shape, in nats: without evidence counts are Poisson."""
    penalty: Floats = (
        -TUNING.zero_inflation_penalty * (shapes[:, ZERO_SHARE] > 0)
        - TUNING.spread_penalty * shapes[:, LOG_MEAN_SPREAD]
    )
    return penalty


def shape_posterior(fit: Floats, shapes: Floats = MIXTURE_SHAPES) -> Floats:
    """Strata × shapes: posterior weights by a pooled, tempered likelihood (a power prior: Ibrahim and Chen 2000).

    A stratum's own log-likelihood counts in full, that of stratum j for stratum i times e^−|i−j|, and of all others in part besides; shapes
    more than some nats below the best are left out.
    """
    near = np.exp(-np.abs(np.subtract.outer(np.arange(len(fit)), np.arange(len(fit)))))
    evidence = near @ fit + TUNING.pooled_evidence_share * (fit.sum(axis=0) - fit) + shape_penalty(shapes)
    evidence -= evidence.max(axis=1, keepdims=True)
    weight = np.where(evidence > -TUNING.shape_window, np.exp(evidence), 0.0)
    posterior: Floats = weight / weight.sum(axis=1, keepdims=True)
    return posterior


def most_likely_shape(table: CountLikelihood, rate: Singles) -> MixtureShape:
    """The shape that all noisy counts together speak for, with its penalty."""
    group = rate_strata(rate, TUNING.shape_strata)
    groups = int(group.max()) + 1
    sums = stratum_sums(group, rate, rate, groups)
    often = column_counts(group, table.place, groups, len(table.used))
    evidence = shape_log_evidence(table, sums.rate / sums.leaves, often, len(rate))[0]
    return MixtureShape(*MIXTURE_SHAPES[int(np.argmax(evidence.sum(axis=0) + shape_penalty()))].tolist())


# The posterior of each leaf


RATE_PERTURBATION = 1.1  # by which rates are multiplied to see how expected counts follow them


# One record for each stratum and noisy count that occurs: the posterior that all such leaves share.
POSTERIOR_MOMENTS = np.dtype(
    [(name, np.float64) for name in ("mean", "variance", "rate_sensitivity")], align=True
)


@dataclass(frozen=True, eq=False)
class LeafPosterior:
    """Posterior mean and variance of each leaf, and its rate sensitivity: the slope of the mean in the logarithm of its rate, ∂E[n | y]/∂ log m."""

    mean: Floats
    variance: Floats
    rate_sensitivity: Floats


@dataclass(frozen=True, eq=False)
class LeafPrior:
    """The prior of each leaf's mean, before its own noisy count is looked at: the same for all leaves of a stratum."""

    table: CountLikelihood
    group: NDArray[np.uint8]  # the stratum of each leaf
    often: Ints  # strata × columns that occur: how often
    prior: Floats  # strata × means
    more: Floats  # the same, for rates that are `RATE_PERTURBATION` times as large

    def expected(self, noisy: NDArray[Any]) -> LeafPosterior:
        """The posterior mean, variance and rate_sensitivity of each leaf, by Bayes' theorem on the table of its stratum."""
        answers = np.zeros(self.often.shape, dtype=POSTERIOR_MOMENTS)  # strata × columns
        moments = [moment[:, self.table.used] for moment in self.table.moments]

        def answer(s: int) -> None:
            here = np.flatnonzero(self.often[s])
            law = self.table.occurring[:, here], *(moment[:, here] for moment in moments)
            mean, variance = _posterior_moments(self.prior[s], *law)
            rate_sensitivity = (_posterior_moments(self.more[s], *law)[0] - mean) / math.log(
                RATE_PERTURBATION
            )
            answers["mean"][s, here], answers["variance"][s, here] = mean, variance
            answers["rate_sensitivity"][s, here] = np.maximum(rate_sensitivity, 0.0)

        map_items(answer, range(len(self.often)), len(noisy))
        table, moments_of_leaf = self.table, [np.empty(len(noisy)) for _ in range(3)]
        leaves = self.group, table.place, noisy, table.capped, table.variance, TUNING.min_variance
        map_parts(lambda begin, end: _look_up(*moments_of_leaf, answers, *leaves, begin, end), len(noisy))
        return LeafPosterior(*moments_of_leaf)

    def drawn(self, noisy: NDArray[Any], rng: np.random.Generator) -> Floats:
        """A posterior draw of each leaf's count, in trips."""
        table, columns = self.table, self.table.counts.shape[1]
        laws = self.prior @ table.counts[:, table.zero :]  # strata × counts, of the count without noise
        alone = np.zeros((1, 2 * columns + 1))
        alone[0, columns] = 1.0
        noise = table.noise.blurred(alone, table.step)[0]
        draw = np.empty(len(self.group))
        counts = np.arange(laws.shape[1])
        for here, stratum, column in _distinct_pairs(self.group, table.column, columns):
            seen_at = column - table.zero  # in steps
            likely = np.cumsum(laws[stratum] * noise[columns + seen_at - counts])
            steps = np.searchsorted(likely, rng.random(len(here)) * likely[-1], side="right")
            steps = (
                np.minimum(steps, len(counts) - 1) if likely[-1] > 0 else np.full(len(here), max(seen_at, 0))
            )
            draw[here] = table.step * steps
        np.copyto(draw, np.maximum(noisy, 0.0), where=table.capped)
        return draw


def _distinct_pairs(
    group: NDArray[Any], column: NDArray[Any], columns: int
) -> Iterator[tuple[Ints, int, int]]:
    """Leaves of the same stratum and column, and which these are."""
    key = group.astype(np.int64) * columns + column
    order = np.argsort(key, kind="stable")
    ends = np.flatnonzero(np.diff(key[order])) + 1
    for here in np.split(order, ends):
        yield here, *divmod(int(key[here[0]]), columns)


def leaf_prior(
    noisy: NDArray[Any], rate: NDArray[Any], table: CountLikelihood, shapes: Floats = MIXTURE_SHAPES
) -> LeafPrior:
    """Within strata of the expected count, a prior of the shape that the noisy counts there, and elsewhere, speak for."""
    group = rate_strata(rate, TUNING.leaf_strata)
    expected = _calibrated_means(noisy, rate, group, table.variance)
    often = column_counts(group, table.place, len(expected), len(table.used))
    fit, mixed = shape_log_evidence(table, expected, often, len(noisy), shapes)
    weight = shape_posterior(fit, shapes)

    def more(s: int) -> Floats:
        """As the prior, for larger rates."""
        prior_of_larger_rates: Floats = (
            weight[s] @ table.mixtures(RATE_PERTURBATION * expected[s : s + 1], shapes)[0]
        )
        return prior_of_larger_rates

    prior = np.einsum("sk,skm->sm", weight, mixed)
    return LeafPrior(table, group, often, prior, np.array(map_items(more, range(len(fit)), len(noisy))))


@compiled_ahead(
    "f8[::1], f8[::1], f8[::1], POSTERIOR_MOMENTS[:,::1], u1[::1], i2[::1], i8[::1], b1[::1], f8, f8, i8, i8",
    POSTERIOR_MOMENTS=POSTERIOR_MOMENTS,
)
@kernel
def _look_up(mean, variances, sensitivity, answers, group, place, noisy, capped, variance, least, begin, end):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Each leaf's answer; beyond the tables a noisy count and its variance stand for themselves."""
    for u in range(begin, end):
        answer = answers[group[u], place[u]]
        mean[u], sensitivity[u] = answer.mean, answer.rate_sensitivity
        variances[u] = max(answer.variance, least)
        if capped[u]:
            mean[u], variances[u] = noisy[u], max(variance, least)


def _posterior_moments(prior: Floats, law: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """The mean and the variance of a count, given noisy counts, by their laws and moments under each mean of the prior."""
    likely = np.maximum(prior @ law, MIN_PROBABILITY)
    mean = prior @ first / likely
    return mean, prior @ second / likely - mean**2


def _calibrated_means(
    noisy: NDArray[Any], rate: NDArray[Any], group: NDArray[Any], variance: float
) -> Floats:
    """The mean of each stratum: the synthetic estimate (by the rates), drawn to the direct one (by noisy counts) where these differ for sure.

    The composite estimator of small areas (Fay and Herriot 1979), its variance component by moments.
    """
    many, rates, counts = stratum_sums(group, rate, noisy, int(group.max()) + 1)
    direct: Floats = counts / many
    synthetic: Floats = np.maximum(rates / many, MIN_PROBABILITY)
    chance: Floats = variance / many
    weight = synthetic**2 / ((TUNING.rate_relative_error * synthetic) ** 2 + chance) ** 2
    scale = (weight * synthetic**2).sum()
    if not scale > 0:
        return synthetic
    relative_variance = float((weight * ((direct - synthetic) ** 2 - chance)).sum() / scale)
    standard_error = float(np.sqrt((weight**2 * 2 * chance**2).sum()) / scale)
    relative_variance = (
        min(relative_variance, 1.0) if relative_variance > TUNING.min_stratum_z * standard_error else 0.0
    )
    believed = np.where(
        many < TUNING.min_stratum_leaves,
        0.0,
        relative_variance * synthetic**2 / (relative_variance * synthetic**2 + chance),
    )
    calibrated: Floats = np.maximum(
        synthetic + believed * (direct - synthetic), TUNING.min_calibration * synthetic
    )
    calibrated *= (many @ synthetic) / (
        many @ calibrated
    )  # the total is known better from all answers together
    return calibrated
