"""Each leaf's own answer: the expected count and its variance, given the noisy count and what was to be expected."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbdp.estimate.posterior.lattice import SHAPES, TINY, Lattice
from cbdp.estimate.posterior.settings import TUNING
from cbdp.estimate.posterior.shapes import cost, evidence, seen, strata

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVER = 1.1  # by which rates are multiplied to see how expected counts follow them


@dataclass(frozen=True, eq=False)
class ExpectedLeaves:
    """Posterior mean and variance of each leaf, and its lever: the slope of the mean in the logarithm of its rate."""

    mean: Floats
    variance: Floats
    lever: Floats


@dataclass(frozen=True, eq=False)
class LeafLaw:
    """The law of each leaf's count before its own noisy count is looked at: the same for all leaves of a stratum."""

    table: Lattice
    group: Ints  # the stratum of each leaf
    places: tuple[Ints, ...]  # of each stratum, the columns of noisy counts that occur
    prior: Floats  # strata × means
    more: Floats  # the same, for rates that are larger by LEVER

    def expected(self, noisy: Floats) -> ExpectedLeaves:
        """Given its noisy count, what is to be expected of each leaf."""
        answers = np.zeros((len(self.places), self.table.counts.shape[1], 3))  # strata × columns
        for s, place in enumerate(self.places):
            mean, variance = _moments(self.table, self.prior[s], place)
            lever = (_moments(self.table, self.more[s], place)[0] - mean) / math.log(LEVER)
            answers[s, place] = np.stack([mean, variance, np.maximum(lever, 0.0)], axis=1)
        mean, variance, lever = (answers[:, :, i][self.group, self.table.column] for i in range(3))
        np.copyto(mean, noisy, where=self.table.capped)
        np.copyto(variance, self.table.variance, where=self.table.capped)
        return ExpectedLeaves(mean, np.maximum(variance, TUNING.certain), lever)

    def drawn(self, noisy: Floats, rng: np.random.Generator) -> Floats:
        """Given its noisy count, a count of each leaf as it may be, in trips."""
        table, columns = self.table, self.table.counts.shape[1]
        laws = self.prior @ table.counts[:, table.zero :]  # strata × counts, of the count without noise
        alone = np.zeros((1, 2 * columns + 1))
        alone[0, columns] = 1.0
        noise = table.noise.blurred(alone, table.step)[0]
        made = np.empty(len(self.group))
        counts = np.arange(laws.shape[1])
        for here, stratum, column in _alike(self.group, table.column, columns):
            seen_at = column - table.zero  # in steps
            likely = np.cumsum(laws[stratum] * noise[columns + seen_at - counts])
            found = np.searchsorted(likely, rng.random(len(here)) * likely[-1], side="right")
            found = (
                np.minimum(found, len(counts) - 1) if likely[-1] > 0 else np.full(len(here), max(seen_at, 0))
            )
            made[here] = table.step * found
        np.copyto(made, np.maximum(noisy, 0.0), where=table.capped)
        return made


def _alike(group: Ints, column: Ints, columns: int) -> Iterator[tuple[Ints, int, int]]:
    """Leaves of the same stratum and column, and which these are."""
    key = group * columns + column
    order = np.argsort(key, kind="stable")
    ends = np.flatnonzero(np.diff(key[order])) + 1
    for here in np.split(order, ends):
        yield here, *divmod(int(key[here[0]]), columns)


def leaf_law(noisy: Floats, rate: Floats, table: Lattice, shapes: Floats = SHAPES) -> LeafLaw:
    """Within strata of the expected count, a prior of the shape that the noisy counts there, and elsewhere, speak for."""
    group = strata(rate, TUNING.leaf_strata)
    found = seen(table.column, group, table.counts.shape[1])
    expected = _calibrated(noisy, rate, group, table.variance)
    fit, mixed = evidence(table, expected, found, shapes)
    more = table.mixtures(LEVER * expected, shapes)
    pooled, priced = fit.sum(axis=0), cost(shapes)
    near = np.exp(-np.abs(np.subtract.outer(np.arange(len(found)), np.arange(len(found)))))
    told = near @ fit + TUNING.pooled * (pooled - fit) + priced
    told -= told.max(axis=1, keepdims=True)
    weight = np.where(told > -TUNING.near, np.exp(told), 0.0)
    weight /= weight.sum(axis=1, keepdims=True)
    priors = (np.einsum("sk,skm->sm", weight, part) for part in (mixed, more))
    return LeafLaw(table, group, tuple(place for place, _ in found), *priors)


def _moments(table: Lattice, prior: Floats, place: Ints) -> tuple[Floats, Floats]:
    """The mean and the variance of a count, given the noisy counts of these columns."""
    likely = np.maximum(prior @ table.likelihood[:, place], TINY)
    first, second = (prior @ moment[:, place] / likely for moment in table.moments)
    return first, second - first**2


def _calibrated(noisy: Floats, rate: Floats, group: Ints, variance: float) -> Floats:
    """The mean of each stratum: as expected, or drawn to what its noisy counts say where these differ for sure."""
    many = np.bincount(group)
    wanted, told, chance = np.bincount(group, rate) / many, np.bincount(group, noisy) / many, variance / many
    wanted = np.maximum(wanted, TINY)
    lever = wanted**2 / ((TUNING.drift * wanted) ** 2 + chance) ** 2
    scale = (lever * wanted**2).sum()
    if not scale > 0:
        return wanted
    off = float((lever * ((told - wanted) ** 2 - chance)).sum() / scale)
    doubt = float(np.sqrt((lever**2 * 2 * chance**2).sum()) / scale)
    off = min(off, 1.0) if off > TUNING.stratum_sure * doubt else 0.0
    believed = np.where(many < TUNING.fewest_leaves, 0.0, off * wanted**2 / (off * wanted**2 + chance))
    made: Floats = np.maximum(wanted + believed * (told - wanted), 1e-3 * wanted)
    return made * ((many @ wanted) / (many @ made))  # the total is known better from all answers together
