"""The best unbiased answer that the measurements give to any question: noisy counts added up, and averaged by their precision.

A measured table answers a question where each of its elements lies inside one group or outside all. The sums of several tables have
independent noise, so the best linear unbiased combination weighs each by its inverse variance. Its error is noise alone, of a
known law: it does not depend on the trips. Public counts are known: no other answer is needed where they add up to one.

The error's law is taken to be that of m equal Laplace noises added up, with the m that gives its variance and its kurtosis. This is
exact for one continuous noise (m = 1), and the normal law for many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtr

from cbdp.arrays import Floats, Ints
from cbdp.estimate.public import Public, exact_answers
from cbdp.features import SINGLETON, FeatureDag
from cbdp.features.grouping import MOST_ATOMS, Grouping
from cbdp.features.partition import MAX_LISTED, Partition
from cbdp.privacy.measurement import Measurement
from cbdp.solvers.problem import bincount

LAPLACE = 3.0  # excess kurtosis of Laplace noise
NODES = np.geomspace(0.1, 1e4, 120)  # so many equal noises, for which quantiles are worked out
PIECES = 2000  # of equal probability that a law of mixed variances is cut into


class HasRecipe(Protocol):
    """A recipe, as far as it tells what was public before."""

    @property
    def public(self) -> Public: ...


class Measured(Protocol):
    """What combinations need to know of a release."""

    @property
    def features(self) -> FeatureDag: ...
    @property
    def levels(self) -> FeatureDag | None: ...
    @property
    def recipe(self) -> HasRecipe: ...
    @property
    def measurements(self) -> Sequence[Measurement]: ...


@dataclass(frozen=True, eq=False)
class Combination:
    """An unbiased answer for each group, and how it was made: a row for each source, a column for each group."""

    weight: Floats = field(repr=False)
    noise: Floats = field(repr=False)  # the variance of each source's sum
    fourth: Floats = field(repr=False)  # and its fourth cumulant
    value: Floats = field(repr=False)

    @property
    def told(self) -> NDArray[np.bool_]:
        """The groups that any source adds up to."""
        return np.asarray((self.weight > 0).any(axis=0))

    @property
    def variance(self) -> Floats:
        """That of the error; infinite where no source adds up to the group."""
        return np.where(self.told, (self.weight**2 * self.noise).sum(axis=0), np.inf)

    @property
    def equal_noises(self) -> Floats:
        """How many equal Laplace noises have a sum of this kurtosis."""
        variance, fourth = self.variance, (self.weight**4 * self.fourth).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(fourth > 0, LAPLACE * variance**2 / fourth, np.inf)

    def half_width(self, risk: float) -> Floats:
        """How far the error reaches but for the risk, at both sides together."""
        variance = self.variance
        half = reach(self.equal_noises, risk) * np.sqrt(variance)
        # noise of whole numbers: as much probability lies within k as within k + 1/2 of the law without gaps
        whole = np.ceil(half - 0.5, where=np.isfinite(half), out=half.copy())
        alone = (self.weight > 0).sum(axis=0) == 1
        return np.where(variance == 0, 0.0, np.where(alone, whole, np.maximum(half, whole)))


def combined(release: Measured, grouping: Grouping) -> Combination:
    """The best unbiased combination of all whole measurements for each group."""
    answers = [*exact_answers(release.recipe.public), *release.measurements]
    shape = (len(answers), grouping.size)
    value, noise, fourth = (np.zeros(shape) for _ in range(3))
    told = np.zeros(shape, dtype=bool)
    for row, m in enumerate(answers):
        found = _groups_of(release, m, grouping)
        if found is not None:
            inside, told[row] = found
            value[row], noise[row], fourth[row] = _sums(m, inside, grouping.size)
    known = told & (noise == 0)
    with np.errstate(divide="ignore"):
        weight = np.where(told, 1.0 / noise, 0.0)
    weight = np.where(known.any(axis=0), known, weight)  # nothing is added to what is known
    weight = weight / np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    return Combination(weight, noise, fourth, (weight * value).sum(axis=0))


Told = tuple[
    Ints, NDArray[np.bool_]
]  # the group of each element, −1 for none, and which groups are made of whole elements


def _groups_of(release: Measured, m: Measurement, grouping: Grouping) -> Told | None:
    """Where a measurement's answers belong; None if it is of no use."""
    dag = release.features if m.exact or release.levels is None else release.levels
    if m.feature not in dag or m.elements is not None or m.variance is None:
        return None
    if len(m.values) != dag.size(m.feature):
        return None
    if m.feature == SINGLETON:
        return grouping.of_every_type(), np.ones(grouping.size, dtype=bool)
    return _inside(dag.partition(m.feature), grouping)


def _sums(m: Measurement, inside: Ints, size: int) -> list[Floats]:
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


def _inside(table: Partition, grouping: Grouping) -> Told | None:
    own = [a.name for a in table.attributes]
    more = [name for name in grouping.named if name not in own]
    if not more:
        return grouping.group_of(table.representatives()), np.ones(grouping.size, dtype=bool)
    if table.size * grouping.atoms.size > MAX_LISTED:
        return None
    joint = table.universe.partition([*own, *more])
    if joint.size > MOST_ATOMS:
        return None
    types = joint.representatives()
    element, group = table.element_of(types), grouping.group_of(types)
    least, most = np.full(table.size, grouping.size), np.full(table.size, -1)
    np.minimum.at(least, element, group)
    np.maximum.at(most, element, group)
    torn = least != most
    told = np.ones(grouping.size + 1, dtype=bool)
    told[group[torn[element]]] = False
    return (np.where(torn, -1, least), told[:-1]) if told[:-1].any() else None


def reach(equal_noises: Floats, risk: float) -> Floats:
    """How many deviations the sum of so many equal Laplace noises reaches but for the risk, at both sides together.

    >>> reach(np.array([1.0, np.inf]), 0.1).round(3).tolist()
    [1.628, 1.645]
    """
    at = np.log(np.clip(equal_noises, NODES[0], NODES[-1]))
    return np.interp(at, np.log(NODES), _reaches(risk))


@cache
def _reaches(risk: float) -> Floats:
    """The reach at the nodes. Such a sum is normal with a variance drawn from a gamma law (the variance-gamma law)."""
    share = (np.arange(PIECES) + 0.5) / PIECES
    deviation = np.sqrt(gammaincinv(NODES[:, None], share) / NODES[:, None])
    low, high = np.zeros(len(NODES)), np.full(len(NODES), 100.0)
    for _ in range(60):
        middle = (low + high) / 2
        beyond = 2 * ndtr(-middle[:, None] / np.maximum(deviation, 1e-300)).mean(axis=1)
        low, high = np.where(beyond > risk, middle, low), np.where(beyond > risk, high, middle)
    return high
