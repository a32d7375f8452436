"""Unbiased answers: what sums of measured tables say of any question, combined by inverse variance; and least squares on trees.

A measured table answers a question where each of its elements lies inside one group or outside all. The sums of several tables have independent
noise, so of these sums the best linear unbiased combination weighs each by its inverse variance (Aitken 1936). Differences of
sums, which generalised least squares on all measurements would use too, are left out: it can be more precise. The error is noise alone, of a known
distribution: it does not depend on the trips. Public counts are exact: no other answer is needed where they add up to one.

The error is taken to be distributed as the sum of m equal Laplace noises, with the m that matches its variance and kurtosis: exact for one
continuous noise (m = 1), normal for many. Such sums are variance-gamma distributed (Madan and Seneta 1990). `cbdp.estimation.intervals` has the far tails.

The last part is the same on trees, in closed form: the hierarchical mechanism of Hay and others (2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtr

from cbdp.arrays import Floats, Indices, Ints, Numbers
from cbdp.estimation.invariants import PublicCounts, exact_answers
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp_features.queries import MAX_LABEL_COMBINATIONS, Grouping
from cbdp_features.universe import MAX_LISTED_COMBINATIONS, Partition
from cbdp_solvers.problem import bincount

LAPLACE_EXCESS_KURTOSIS = 3.0
# numbers m of equal noises between which quantiles are interpolated
NOISE_COUNT_NODES = np.geomspace(0.1, 1e4, 120)
GAMMA_QUANTILES = 2000  # nodes of equal probability for the gamma mixture of variances


class HasRecipe(Protocol):
    """The public counts of a recipe."""

    @property
    def public(self) -> PublicCounts: ...


class Measured(Protocol):
    """The published parts of a release that combinations are computed from."""

    @property
    def features(self) -> FeatureDag: ...
    @property
    def levels(self) -> FeatureDag | None: ...
    @property
    def recipe(self) -> HasRecipe: ...
    @property
    def measurements(self) -> Sequence[Measurement]: ...


@dataclass(frozen=True, eq=False)
class UnbiasedAnswer:
    """An unbiased answer for each group, and its composition: a row for each source, a column for each group."""

    weight: Floats = field(repr=False)
    noise: Floats = field(repr=False)  # the variance of each source's sum
    fourth: Floats = field(repr=False)  # and its fourth cumulant
    value: Floats = field(repr=False)

    @property
    def told(self) -> NDArray[np.bool_]:
        """Whether any source adds up to the group."""
        return np.asarray((self.weight > 0).any(axis=0))

    @property
    def variance(self) -> Floats:
        """Variance of the error; infinite where no source adds up to the group."""
        return np.where(self.told, (self.weight**2 * self.noise).sum(axis=0), np.inf)

    @property
    def equal_noises(self) -> Floats:
        """m: how many equal Laplace noises have a sum of this kurtosis."""
        variance, fourth = self.variance, (self.weight**4 * self.fourth).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(fourth > 0, LAPLACE_EXCESS_KURTOSIS * variance**2 / fourth, np.inf)

    def half_width(self, risk: float) -> Floats:
        """The two-sided quantile of |error| at this risk, rounded as integer noise allows."""
        variance = self.variance
        half = variance_gamma_quantile(self.equal_noises, risk) * np.sqrt(variance)
        # integer noise: as much probability lies within k as within k + 1/2 of the continuous distribution
        whole = np.ceil(half - 0.5, where=np.isfinite(half), out=half.copy())
        alone = (self.weight > 0).sum(axis=0) == 1
        return np.where(variance == 0, 0.0, np.where(alone, whole, np.maximum(half, whole)))


def best_linear_unbiased(release: Measured, grouping: Grouping) -> UnbiasedAnswer:
    """For each group the inverse-variance mean of the sums that complete tables directly have for it (Aitken 1936).

    It is the best linear unbiased combination of these sums, not of all measurements: sums from which others are subtracted are not used.
    """
    answers = [*exact_answers(release.recipe.public), *release.measurements]
    shape = (len(answers), grouping.size)
    value, noise, fourth = (np.zeros(shape) for _ in range(3))
    covered = np.zeros(shape, dtype=bool)
    for row, m in enumerate(answers):
        membership = _membership(release, m, grouping)
        if membership is not None:
            inside, covered[row] = membership
            value[row], noise[row], fourth[row] = _group_moments(m, inside, grouping.size)
    exact = covered & (noise == 0)
    with np.errstate(divide="ignore"):
        weight = np.where(covered, 1.0 / noise, 0.0)
    weight = np.where(exact.any(axis=0), exact, weight)  # an exact answer takes all the weight
    weight = weight / np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    return UnbiasedAnswer(weight, noise, fourth, (weight * value).sum(axis=0))


# the group of each element, −1 for none, and which groups consist of whole elements
GroupMembership = tuple[Ints, NDArray[np.bool_]]


def _membership(release: Measured, m: Measurement, grouping: Grouping) -> GroupMembership | None:
    """The group of each of a measurement's elements; None if it is incomplete or of unknown noise."""
    dag = release.features if m.exact or release.levels is None else release.levels
    if m.feature not in dag or m.elements is not None or m.variance is None:
        return None
    if len(m.values) != dag.size(m.feature):
        return None
    if m.feature == SINGLETON:
        return grouping.of_every_type(), np.ones(grouping.size, dtype=bool)
    return _table_membership(dag.partition(m.feature), grouping)


def _group_moments(m: Measurement, inside: Ints, size: int) -> list[Floats]:
    """The answers added up by group, the variance of the sums and their fourth cumulant."""
    variance = np.zeros(len(m.values)) if m.exact else m.variance
    kurtosis = 0.0 if m.noise is None else m.noise.excess_kurtosis
    numbers = [np.asarray(n, dtype=float) for n in (m.values, variance, kurtosis * variance**2)]
    here = inside >= 0
    if not here.all():
        inside, numbers = inside[here], [n[here] for n in numbers]
    if size == 1:
        return [n.sum(keepdims=True) for n in numbers]
    return [bincount(inside, n, size) for n in numbers]


def _table_membership(table: Partition, grouping: Grouping) -> GroupMembership | None:
    columns = [a.name for a in table.attributes]
    more = [name for name in grouping.named if name not in columns]
    if not more:
        return grouping.group_of(table.representatives()), np.ones(grouping.size, dtype=bool)
    if table.size * grouping.atoms.size > MAX_LISTED_COMBINATIONS:
        return None
    joint = table.universe.partition([*columns, *more])
    if joint.size > MAX_LABEL_COMBINATIONS:
        return None
    types = joint.representatives()
    element, group = table.element_of(types), grouping.group_of(types)
    least, most = np.full(table.size, grouping.size), np.full(table.size, -1)
    np.minimum.at(least, element, group)
    np.maximum.at(most, element, group)
    split = least != most
    covered = np.ones(grouping.size + 1, dtype=bool)
    covered[group[split[element]]] = False
    return (np.where(split, -1, least), covered[:-1]) if covered[:-1].any() else None


def variance_gamma_quantile(equal_noises: Floats, risk: float) -> Floats:
    """The two-sided quantile, in deviations, of the sum of so many equal Laplace noises: Laplace's for 1, the normal one for many.

    >>> variance_gamma_quantile(np.array([1.0, np.inf]), 0.1).round(3).tolist()
    [1.628, 1.645]
    """
    at = np.log(np.clip(equal_noises, NOISE_COUNT_NODES[0], NOISE_COUNT_NODES[-1]))
    return np.interp(at, np.log(NOISE_COUNT_NODES), _variance_gamma_quantiles(risk))


@cache
def _variance_gamma_quantiles(risk: float) -> Floats:
    """The quantile at the nodes: such a sum is normal with a gamma-distributed variance (Madan and Seneta 1990)."""
    share = (np.arange(GAMMA_QUANTILES) + 0.5) / GAMMA_QUANTILES
    deviation = np.sqrt(gammaincinv(NOISE_COUNT_NODES[:, None], share) / NOISE_COUNT_NODES[:, None])
    low, high = np.zeros(len(NOISE_COUNT_NODES)), np.full(len(NOISE_COUNT_NODES), 100.0)
    for _ in range(60):
        middle = (low + high) / 2
        beyond = 2 * ndtr(-middle[:, None] / np.maximum(deviation, 1e-300)).mean(axis=1)
        low, high = np.where(beyond > risk, middle, low), np.where(beyond > risk, high, middle)
    return high


# Generalised least squares on a tree (Hay and others 2010, extended to any fan-out and to a variance by level).
# Bottom-up, a node's own answer and the sum of its children's are combined by inverse variance (T₁); top-down, the difference
# between a node's final value and its children's sum is shared among the children by variance. Infinite: not measured.


@dataclass(frozen=True, eq=False)
class Tree:
    """Levels from the root to the leaves; `parent[i]` is the node of level i that holds each node of level i + 1."""

    parent: Sequence[Indices]

    @property
    def sizes(self) -> list[int]:
        return [1, *(len(p) for p in self.parent)]


def tree_of(dag: FeatureDag) -> Tree:
    """The tree of a DAG whose features form a chain."""
    levels = list(dag.features)
    parent = [dag.map_elements(fine, coarse) for coarse, fine in pairwise(levels[:-1])]
    last = dag.cells.element_of_cell[levels[-2]]
    return Tree([*parent, last[dag.cell_of_leaf]])


def bottom_up(
    tree: Tree, noisy: Sequence[Numbers], variance: Sequence[float]
) -> tuple[list[Floats], list[Floats]]:
    """T₁ and its variance by node: each node's best estimate from its own subtree (z of Hay and others 2010)."""
    values = [np.asarray(noisy[-1], dtype=float)]
    spread = [np.full(len(values[0]), float(variance[-1]))]
    for level in range(len(tree.parent) - 1, -1, -1):
        size = tree.sizes[level]
        below = bincount(tree.parent[level], values[0], size)
        below_spread = bincount(tree.parent[level], spread[0], size)
        node_precision = 1.0 / variance[level]  # zero for a level that is not measured
        precision = node_precision + 1.0 / below_spread
        answer = np.asarray(noisy[level], dtype=float) if np.isfinite(variance[level]) else np.zeros(size)
        values.insert(0, (node_precision * answer + below / below_spread) / precision)
        spread.insert(0, 1.0 / precision)
    return values, spread


def top_down(tree: Tree, values: Sequence[Floats], spread: Sequence[Floats], prune: bool) -> list[Floats]:
    """The consistent tree closest to the noisy one, from T₁; with `prune`, nodes whose T₁ is not positive are zero, with all below them.

    Subtrees whose root is not positive are set to zero, after the heuristic of Hay and others (2010); here that is decided by T₁, before the
    parent's difference is shared out, so that a node may still end below zero. A node that stays positive while all its children are
    pruned has more than their sum, which is 0: the tree is then not consistent, and its leaves are the answer.
    """
    final = [np.maximum(values[0], 0.0) if prune else values[0]]
    alive = final[0] > 0 if prune else np.ones(len(final[0]), dtype=bool)
    for level, parent in enumerate(tree.parent):
        value, weight = values[level + 1], spread[level + 1]
        alive = alive[parent] & (value > 0) if prune else np.ones(len(value), dtype=bool)
        kept = np.where(alive, value, 0.0)
        weight = np.where(alive, weight, 0.0)
        size = tree.sizes[level]
        total = bincount(parent, weight, size)
        missing = final[-1] - bincount(parent, kept, size)
        rate = np.divide(missing, total, out=np.zeros(size), where=total > 0)
        final.append(kept + weight * rate[parent])
    return final


def tree_least_squares(
    tree: Tree, noisy: Sequence[Numbers], variance: Sequence[float], *, prune: bool = False
) -> list[Floats]:
    """The consistent tree closest to the noisy one in weighted least squares, level by level (Hay and others 2010); see `top_down` for `prune`."""
    values, spread = bottom_up(tree, noisy, variance)
    return top_down(tree, values, spread, prune)
