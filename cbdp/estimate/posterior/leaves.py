"""Each leaf's own answer: the expected count and its variance, given the noisy count and what was to be expected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbdp.estimate.posterior.lattice import TINY, Lattice
from cbdp.estimate.posterior.settings import TUNING
from cbdp.estimate.posterior.shapes import cost, evidence, seen, strata

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ExpectedLeaves:
    """Posterior mean and variance of each leaf."""

    mean: Floats
    variance: Floats


def posterior(noisy: Floats, rate: Floats, table: Lattice) -> ExpectedLeaves:
    """Within strata of the expected count, a prior of the shape that the noisy counts there, and elsewhere, speak for."""
    group = strata(rate, TUNING.leaf_strata)
    columns = table.counts.shape[1]
    found = seen(table.column, group, columns)
    fit, mixed = evidence(table, _calibrated(noisy, rate, group, table.variance), found)
    pooled, priced = fit.sum(axis=0), cost()
    first, second = table.moments
    mean, variance = np.empty(len(noisy)), np.empty(len(noisy))
    lookup = np.zeros(columns, dtype=np.int64)
    members = np.split(np.argsort(group.astype(np.int16), kind="stable"), np.cumsum(np.bincount(group))[:-1])
    near = np.exp(-np.abs(np.subtract.outer(np.arange(len(found)), np.arange(len(found)))))
    for s, (place, _) in enumerate(found):
        told = near[s] @ fit + TUNING.pooled * (pooled - fit[s]) + priced
        told -= told.max()
        weight = np.where(told > -TUNING.near, np.exp(told), 0.0)
        prior = weight / weight.sum() @ mixed[s]
        likely = np.maximum(prior @ table.likelihood[:, place], TINY)
        m1, m2 = prior @ first[:, place] / likely, prior @ second[:, place] / likely
        lookup[place] = np.arange(len(place))
        at = lookup[table.column[members[s]]]
        mean[members[s]], variance[members[s]] = m1[at], (m2 - m1**2)[at]
    np.copyto(mean, noisy, where=table.capped)
    np.copyto(variance, table.variance, where=table.capped)
    return ExpectedLeaves(mean, np.maximum(variance, TUNING.certain))


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
