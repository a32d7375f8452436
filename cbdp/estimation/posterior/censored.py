"""The likelihood and posterior of step 6 where only noisy counts above thresholds ("floors") are seen: censored counts.

Of a type that is not above its floor only that is known, which is a (left-)censored observation as in a Tobit model (Tobin 1958). Types in a group are
exchangeable until their noisy counts are seen, so all censored ones of a group have one posterior together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation.posterior.likelihood import (
    MIN_PROBABILITY,
    RATE_PERTURBATION,
    CountLikelihood,
    MixtureShape,
    count_likelihood,
    observed_columns,
    quadrature_means,
    shape_penalty,
    shape_posterior,
)
from cbdp.estimation.posterior.settings import TUNING
from cbdp.features import FeatureDag, Partition
from cbdp.privacy.measurement import Measurement
from cbdp_solvers.problem import bincount

CENSORED_SHAPES = np.array(
    [(1 - active, spread) for active in TUNING.active_shares for spread in TUNING.log_mean_spreads]
)


@dataclass(frozen=True, eq=False)
class TypeGroups:
    """Types that are taken to be alike until their noisy counts are seen: those of a cell, or of a part of one."""

    partition: Partition
    cell: Ints  # of each group
    part: Floats  # of its cell's expected count
    mean: Floats  # weight of its types
    factors: Mapping[tuple[str, ...], Floats] = field(
        default_factory=dict
    )  # by dimensions, the factors of their values

    @property
    def sizes(self) -> Ints:
        return self.partition.sizes

    def weight(self, index: Ints) -> Floats:
        """The product of the factors of these types' values: types of one group differ a little."""
        universe, weight = self.partition.universe, np.ones(len(index))
        codes = (
            dict(zip(universe.dimensions, universe.unrank_codes(index), strict=True)) if self.factors else {}
        )
        for names, factor in self.factors.items():
            weight *= factor[tuple(codes[name] for name in names)]
        return weight


def cell_groups(features: FeatureDag) -> TypeGroups:
    """Every cell is a group."""
    size = features.cells.size
    return TypeGroups(features.cells.partition, np.arange(size), np.ones(size), np.ones(size))


@dataclass(frozen=True, eq=False)
class GroupPosterior:
    """Posterior means and variances: of some types above their floors, and by group of all others together."""

    groups: TypeGroups
    index: Ints  # those types, ascending
    group: Ints  # of each
    mean: Floats
    variance: Floats
    rate_sensitivity: Floats  # the slope of the mean in the logarithm of the rate
    rest: Floats
    rest_variance: Floats


@dataclass(frozen=True, eq=False)
class CensoredCounts:
    """The types above their floors, and by group how many others there are and below which floor."""

    groups: TypeGroups
    index: Ints
    group: Ints
    noisy: Floats
    reach: float  # noise alone does not get beyond
    sizes: Ints
    left: Floats  # how many of a group's types are not above its floor
    table: CountLikelihood
    height: Ints  # by group: which of the floors
    above: Floats  # means × floors: the probability of a noisy count above the floor
    below: Floats  # means × floors: and of one that is not above
    first: Floats  # means × floors: the count's mean over the noisy counts that are not above
    second: Floats  # and that of its square

    def stratified(self, expected: Floats, more: Floats | None = None) -> StratifiedGroups:
        """The groups in strata of expected counts, with the mixtures of every shape, if these are the expected counts of the groups.

        With `more`, types above floors have so much more than others of their group (as a logarithm).
        """
        log = np.log(expected / self.sizes)
        width = max(TUNING.stratum_log_width, float(np.ptp(log)) / TUNING.max_strata)
        levels, stratum = np.unique(np.rint((log - log.min()) / width), return_inverse=True)
        size = len(levels)
        rate = bincount(stratum, expected, size) / bincount(stratum, self.sizes.astype(float), size)
        type_stratum: Ints = stratum[self.group]
        if more is not None and more.any():
            between = (levels[1:] + levels[:-1]) / 2
            type_stratum = np.searchsorted(between, (log[self.group] + more - log.min()) / width)
        return StratifiedGroups(
            self, expected, stratum, type_stratum, rate, self.table.mixtures(rate, CENSORED_SHAPES)
        )


def censored_counts(features: FeatureDag, leaves: Measurement, groups: TypeGroups) -> CensoredCounts:
    """The types above their floors, in these groups."""
    law = leaves.noise
    if leaves.elements is None or leaves.floor is None or law is None:
        raise InputError(
            "the noisy counts of 'singleton' need elements, a floor and a scale: see Measurement"
        )
    noisy = leaves.values.astype(float)
    reach = float(law.extreme(features.universe.size, TUNING.outlier_scales))
    table = count_likelihood(noisy if len(noisy) else np.zeros(1), law)
    # of 10¹² types, one in a million has trips: means go down to far below one trip
    table = table.with_means(
        quadrature_means(TUNING.min_censored_mean, float(table.means[-1]), float(law.scale))
    )
    floors, height = np.unique(leaves.floor, return_inverse=True)
    past = floors - table.trips[:, None]
    over, under = law.survival(past), law.survival(-past - 1)
    first, second = table.counts * table.trips, table.counts * table.trips**2
    tables = (table.counts @ over, table.counts @ under, first @ under, second @ under)
    group, left = _group_and_rest(groups, leaves.elements)
    return CensoredCounts(
        groups, leaves.elements, group, noisy, reach, groups.sizes, left, table, height[groups.cell], *tables
    )


def regroup(cells: CensoredCounts, groups: TypeGroups) -> CensoredCounts:
    """The same counts in these groups of types."""
    group, left = _group_and_rest(groups, cells.index)
    return replace(
        cells, groups=groups, group=group, sizes=groups.sizes, left=left, height=cells.height[groups.cell]
    )


def _group_and_rest(groups: TypeGroups, index: Ints) -> tuple[Ints, Floats]:
    """The group of each of these types, and how many others each group has."""
    partition, sizes = groups.partition, groups.sizes
    group = partition.element_of(partition.universe.unrank_codes(index))
    return group, (sizes - np.bincount(group, minlength=len(sizes))).astype(float)


@dataclass(frozen=True, eq=False)
class StratifiedGroups:
    """Groups in strata of their types' expected count, and the mixtures that each shape makes of it."""

    counts: CensoredCounts
    expected: Floats  # count of each group
    stratum: Ints  # of each group
    type_stratum: Ints  # and of each type above its floor
    rate: Floats  # by stratum: the expected count of a type
    mixed: Floats  # strata × shapes × means

    def _seen(self) -> list[tuple[Ints, Ints]]:
        """By stratum, the columns of noisy counts above floors that occur, and how often."""
        k, none = self.counts, np.empty(0, dtype=np.int64)
        observed = (
            observed_columns(k.table.column, self.type_stratum, k.table.counts.shape[1])
            if len(k.noisy)
            else []
        )
        return observed + [(none, none)] * (len(self.rate) - len(observed))

    @cached_property
    def evidence(self) -> Floats:
        """Strata × shapes: the log-likelihood, of noisy counts above the floor and of there being no others."""
        k = self.counts
        fit = np.empty(self.mixed.shape[:2])
        for s, (place, often) in enumerate(self._seen()):
            mixed, here = self.mixed[s], np.flatnonzero(self.stratum == s)
            floors, at = np.unique(k.height[here], return_inverse=True)
            left = bincount(at, k.left[here], len(floors))
            fit[s] = np.log(np.maximum(mixed @ k.table.likelihood[:, place], MIN_PROBABILITY)) @ often
            fit[s] += np.log1p(-np.minimum(mixed @ k.above[:, floors], 1 - 1e-15)) @ left
            lost = mixed @ k.table.means < TUNING.min_mean_kept * self.rate[s]
            fit[s][lost & (not lost.all())] = -1e300
        return fit

    def best(self) -> MixtureShape:
        """The shape of the largest marginal likelihood over all strata, penalised."""
        best = int(np.argmax(self.evidence.sum(axis=0) + shape_penalty(CENSORED_SHAPES)))
        return MixtureShape(*CENSORED_SHAPES[best].tolist())

    def posterior(self) -> GroupPosterior:
        """Posterior means and variances, with shapes averaged by their evidence in a stratum and, less, in the others."""
        k, fit = self.counts, self.evidence
        strata, weight = np.arange(len(self.rate)), shape_posterior(fit, CENSORED_SHAPES)
        of_leaf = self.type_stratum
        members = np.split(
            np.argsort(of_leaf, kind="stable"), np.cumsum(np.bincount(of_leaf, minlength=len(strata)))[:-1]
        )
        mean, variance, rate_sensitivity = np.empty((3, len(k.noisy)))
        more = k.table.mixtures(RATE_PERTURBATION * self.rate, CENSORED_SHAPES)
        rest, rest_variance = np.empty(len(k.sizes)), np.empty(len(k.sizes))
        moments = k.table.moments
        for s in strata:
            prior, higher = weight[s] @ self.mixed[s], weight[s] @ more[s]
            at = k.table.column[members[s]]
            likely, up = (np.maximum(law @ k.table.likelihood, MIN_PROBABILITY) for law in (prior, higher))
            m1, m2 = prior @ moments[0] / likely, prior @ moments[1] / likely
            mean[members[s]], variance[members[s]] = m1[at], (m2 - m1**2)[at]
            slope = (higher @ moments[0] / up - m1) / math.log(RATE_PERTURBATION)
            rate_sensitivity[members[s]] = np.maximum(slope, 0.0)[at]
            here = np.flatnonzero(self.stratum == s)
            height = k.height[here]
            below = np.maximum(prior @ k.below, MIN_PROBABILITY)
            c1, c2 = (prior @ k.first / below)[height], (prior @ k.second / below)[height]
            relative = k.left[here] * (self.expected[here] / k.sizes[here] / self.rate[s])
            rest[here], rest_variance[here] = relative * c1, relative * np.maximum(c2 - c1**2, 0.0)
        np.copyto(mean, k.noisy, where=k.noisy > k.reach)
        np.copyto(variance, k.table.variance, where=k.noisy > k.reach)
        # the expected counts of cells are off by some part of themselves, together for all of a cell's types
        whole = bincount(k.groups.cell, rest, int(k.groups.cell.max()) + 1)[k.groups.cell]
        return GroupPosterior(
            k.groups,
            k.index,
            k.group,
            mean,
            np.maximum(variance, TUNING.min_variance),
            rate_sensitivity,
            rest,
            np.maximum(rest_variance + TUNING.rate_relative_error**2 * rest * whole, TUNING.min_variance),
        )
