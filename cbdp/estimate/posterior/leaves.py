"""Each leaf's own answer: the expected count and its variance, given the noisy count and what was to be expected."""

from __future__ import annotations

import math
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


def posterior(noisy: Floats, rate: Floats, table: Lattice, shapes: Floats = SHAPES) -> ExpectedLeaves:
    """Within strata of the expected count, a prior of the shape that the noisy counts there, and elsewhere, speak for."""
    group = strata(rate, TUNING.leaf_strata)
    found = seen(table.column, group, table.counts.shape[1])
    expected = _calibrated(noisy, rate, group, table.variance)
    fit, mixed = evidence(table, expected, found, shapes)
    more = table.mixtures(LEVER * expected, shapes)
    pooled, priced = fit.sum(axis=0), cost(shapes)
    near = np.exp(-np.abs(np.subtract.outer(np.arange(len(found)), np.arange(len(found)))))
    answers = np.zeros((len(found), table.counts.shape[1], 3))  # strata × columns
    for s, (place, _) in enumerate(found):
        told = near[s] @ fit + TUNING.pooled * (pooled - fit[s]) + priced
        told -= told.max()
        weight = np.where(told > -TUNING.near, np.exp(told), 0.0)
        weight /= weight.sum()
        mean, variance = _moments(table, weight @ mixed[s], place)
        lever = (_moments(table, weight @ more[s], place)[0] - mean) / math.log(LEVER)
        answers[s, place] = np.stack([mean, variance, np.maximum(lever, 0.0)], axis=1)
    mean, variance, lever = (answers[:, :, i][group, table.column] for i in range(3))
    np.copyto(mean, noisy, where=table.capped)
    np.copyto(variance, table.variance, where=table.capped)
    return ExpectedLeaves(mean, np.maximum(variance, TUNING.certain), lever)


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
