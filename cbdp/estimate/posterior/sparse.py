"""Counts as they are to be expected in a universe too large to list, where only noisy counts above a floor are known.

Types of one cell are alike until their noisy counts are seen. Those above their floor are judged one by one; of the others
it is known that they are not, which is a censored observation: what is to be expected of all of them together is one
number for each cell. That mass is dealt out as trips to types drawn at random, so that memory follows trips. All of it is
a function of noisy answers: docs/universes.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.estimate.posterior.lattice import TINY, Lattice, lattice, row_of_means
from cbdp.estimate.posterior.leaves import LEVER, ExpectedLeaves
from cbdp.estimate.posterior.margins import Margin, known_sums, noise_law
from cbdp.estimate.posterior.rates import total_of
from cbdp.estimate.posterior.settings import TUNING
from cbdp.estimate.posterior.shapes import cost, seen
from cbdp.estimate.posterior.shared import Sums, measured_sums, moved_tables, without_shared_errors
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp.solvers.problem import bincount

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SHAPES = np.array([(1 - active, spread) for active in TUNING.active for spread in TUNING.spread])
SPREADS = np.array(TUNING.spreads)
EVERY = np.linspace(TUNING.lowest_factor, TUNING.highest_factor, TUNING.every_factor)  # logarithms of factors
CLOSE = np.linspace(-TUNING.close, TUNING.close, TUNING.every_close)  # in deviations from what was measured


@dataclass(frozen=True, eq=False)
class Expected:
    """Posterior means and variances: of some types above their floors, and by cell of all others together."""

    index: Ints  # those types, ascending
    cell: Ints  # of each
    mean: Floats
    variance: Floats
    rest: Floats
    doubt: Floats


def expected_above(
    features: FeatureDag, measurements: Sequence[Measurement], leaves: Measurement
) -> Expected:
    """What to expect of the types of which `leaves` tells those above their floors, given all noisy answers."""
    known, tables = _known_above(features, leaves), _tables(measurements)
    sums = measured_sums(features, tables)
    held = _held(features, known, tables)
    found, more = _expected(known, tables, held), _expected(known, tables, LEVER * held)
    moved = moved_tables(tables, sums)
    again = _expected(known, moved, _held(features, known, moved))
    return _without_faint(_without_shared_errors(sums, found, more, again))


def _held(features: FeatureDag, known: _Known, tables: Sequence[Measurement]) -> Floats:
    """What the tables lead to expect of each cell."""
    margins = _margins(features, [_less(features, m, known) for m in tables])
    total = total_of(tables)
    empty, spread = known.told(_cell_counts(margins, total, known.sizes, 0.0)).best()
    uneven = math.exp(spread**2) / (1 - empty) - 1
    return _cell_counts(margins, total, known.sizes, uneven)


def _expected(known: _Known, tables: Sequence[Measurement], held: Floats) -> Expected:
    """Means and variances as if errors were independent."""
    found = known.told(held).posterior()
    lacking = (total_of(tables) - float(found.mean.sum())) / max(float(found.rest.sum()), TUNING.certain)
    short = min(max(lacking, TUNING.least_rest), 1 / TUNING.least_rest)
    return replace(found, rest=found.rest * short, doubt=found.doubt * max(short, short**2))


def _without_shared_errors(
    sums: Sequence[Sums], found: Expected, more: Expected, again: Expected
) -> Expected:
    """Types above their floors, and the others of each cell as one more, moved by the errors that they share.

    `more` is what would be expected at higher rates. What types below their floors have follows their rate.
    """
    cells = len(found.rest)
    cell = np.concatenate([found.cell, np.arange(cells)])
    slope = np.maximum(more.mean - found.mean, 0.0) / math.log(LEVER)
    whole = ExpectedLeaves(
        np.concatenate([found.mean, found.rest]),
        np.concatenate([found.variance, found.doubt]),
        np.concatenate([slope, np.minimum(found.rest, found.doubt)]),
    )
    follows = np.concatenate([again.mean - found.mean, again.rest - found.rest])
    moved = without_shared_errors(sums, cell, cells, whole, follows)
    many = len(found.index)
    return replace(
        found,
        mean=moved.mean[:many],
        variance=moved.variance[:many],
        rest=np.where(found.rest > 0, moved.mean[many:], 0.0),
        doubt=moved.variance[many:],
    )


def _less(features: FeatureDag, m: Measurement, known: _Known) -> Measurement:
    """A measured feature less what types have beyond the reach of noise: a giant tells little about its neighbours."""
    giant = known.noisy > known.reach
    inside = features.cells.element_of_cell[m.feature][known.cell[giant]]
    size = len(m.values)
    return replace(
        m,
        values=m.values - bincount(inside, known.noisy[giant] - known.reach, size),
        variance=m.variance + np.bincount(inside, minlength=size) * known.table.variance,
    )


def _without_faint(found: Expected) -> Expected:
    """Where types are too many to list, those above their floors that are all but sure to be noise go to their cell's rest."""
    if len(found.index) <= TUNING.listed:
        return found
    faint = found.mean < TUNING.faint
    cell, size = found.cell[faint], len(found.rest)
    clear = ~faint
    return Expected(
        found.index[clear],
        found.cell[clear],
        found.mean[clear],
        found.variance[clear],
        found.rest + bincount(cell, found.mean[faint], size),
        found.doubt + bincount(cell, found.variance[faint], size),
    )


def _tables(measurements: Sequence[Measurement]) -> list[Measurement]:
    found = [
        m for m in measurements if m.feature != SINGLETON and m.variance is not None and m.elements is None
    ]
    if not found:
        raise InputError(
            "no feature but 'singleton' is measured: where the types cannot be listed, estimator 'posterior' needs 'total' "
            "at least, or use 'projection'"
        )
    return found


# Expected counts of cells, from the features alone


def _margins(features: FeatureDag, measured: Sequence[Measurement]) -> list[Margin]:
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
    made = []
    for group in chosen:
        by = tuple(name for name in names if name in group)
        joint = np.zeros(cells.size, dtype=np.int64)
        for name in by:
            joint = joint * (int(codes[name].max()) + 1) + codes[name]
        element: Ints = np.unique(joint, return_inverse=True)[1]
        size = int(element.max()) + 1
        told = known_sums(element, size, measured, inside)
        law = noise_law(told.tails)
        asked = bool((told.alone > 0.5).all())
        made.append(
            Margin(by, size, element.astype(np.int32), told.value, told.precision, *law, told.moves, asked)
        )
    return sorted((m for m in made if m.size > 1), key=lambda m: (m.size, m.by))


def _cell_counts(margins: Sequence[Margin], total: float, sizes: Ints, uneven: float) -> Floats:
    """Expected counts by cell: the total spread evenly, times each margin's shrunken factors.

    `uneven` is by how much more than a Poisson count a type's own varies, relative to the square of its mean.
    """
    held = total * (sizes / float(np.sum(sizes, dtype=float)))
    for margin in margins:
        sums = bincount(margin.element, held, margin.size)
        factor = _factors(margin, sums, bincount(margin.element, held**2 / sizes, margin.size) * uneven)
        held = np.maximum(held * (factor * (sums.sum() / (factor @ sums)))[margin.element], TINY)
    return held


def _factors(margin: Margin, sums: Floats, squares: Floats) -> Floats:
    """The expected factor of each element, shrunk by how much factors are seen to vary; all 1 if not more than by chance."""
    # whole noisy sums are few: elements of which the same is known have the same factor
    told = np.stack([margin.known, margin.precision, margin.power, margin.width, sums, squares])
    (known, precision, power, width, sums, squares), where, often = np.unique(
        told, axis=1, return_inverse=True, return_counts=True
    )
    kinds = replace(margin, known=known, precision=precision, power=power, width=width)
    parts = [slice(i, i + TUNING.at_once) for i in range(0, len(known), TUNING.at_once)]
    gains = np.zeros(len(SPREADS))
    for here in parts:
        log, fit, none = _fit(kinds, sums, squares, here)
        gains += [np.log((fit * _density(log, s)).sum(axis=1) / none + TINY) @ often[here] for s in SPREADS]
    believed = np.concatenate(
        [[TUNING.none], (1 - TUNING.none) / len(SPREADS) * np.exp(np.minimum(gains, 700.0))]
    )
    believed /= believed.sum()
    if believed[0] > TUNING.dropped or (gains.max() < TUNING.gain and not margin.asked):
        return np.ones(margin.size)
    made = np.empty(len(known))
    for here in parts:
        log, fit, none = _fit(kinds, sums, squares, here)
        weight = fit * sum(b * _density(log, s) for b, s in zip(believed[1:], SPREADS, strict=True))
        made[here] = ((weight * np.exp(log)).sum(axis=1) + believed[0] * none) / (
            weight.sum(axis=1) + believed[0] * none
        )
    return made[where.reshape(-1)]


def _fit(margin: Margin, sums: Floats, squares: Floats, here: slice) -> tuple[Floats, Floats, Floats]:
    """Logarithms of factors, by element: their likelihood times the distance to their neighbours; and that of the factor 1.

    They cover all factors there are, and closely those that the measured sum speaks for.
    """
    known, held, precision = margin.known[here, None], sums[here, None], margin.precision[here, None]
    noise = 1.0 / np.maximum(precision, TINY)
    peak = np.maximum(known, held * math.exp(EVERY[0]))
    close = np.log(peak / held) + CLOSE * np.minimum(np.sqrt(noise + peak) / peak, 1.0)
    log = np.sort(np.hstack([np.broadcast_to(EVERY, (len(held), len(EVERY))), close]), axis=1)

    def told(factor: Any) -> Floats:
        deviation = np.sqrt(noise + factor * held + factor**2 * squares[here, None])
        off = np.abs(known - factor * held) / (margin.width[here, None] * deviation)
        made: Floats = -(off ** margin.power[here, None]) - np.log(deviation)
        return np.where(precision > 0, made, 0.0)

    fit, none = told(np.exp(log)), told(1.0)
    best = np.maximum(fit.max(axis=1, keepdims=True), none)
    width = np.gradient(log, axis=1)
    return log, np.exp(fit - best) * width, np.exp(none - best)[:, 0] + TINY


def _density(log: Floats, spread: float) -> Floats:
    """Of the logarithms of log-normal factors of mean 1."""
    made: Floats = np.exp(-0.5 * ((log + spread**2 / 2) / spread) ** 2) / (spread * math.sqrt(2 * math.pi))
    return made


# Censored observations


@dataclass(frozen=True, eq=False)
class _Known:
    """The types above their floors, and by cell how many others there are and below which floor."""

    index: Ints
    cell: Ints
    noisy: Floats
    reach: float  # noise alone does not get beyond
    sizes: Ints
    left: Floats  # how many of a cell's types are not above its floor
    table: Lattice
    height: Ints  # by cell: which of the floors
    above: Floats  # means × floors: the probability of a noisy count above the floor
    below: Floats  # means × floors: and of one that is not above
    first: Floats  # means × floors: the count's mean over the noisy counts that are not above
    second: Floats  # and that of its square

    def told(self, held: Floats) -> _Told:
        """What shapes the noisy counts speak for, if these are the expected counts of the cells."""
        log = np.log(held / self.sizes)
        width = max(TUNING.stratum, float(np.ptp(log)) / TUNING.most_strata)
        stratum: Ints = np.unique(np.rint((log - log.min()) / width), return_inverse=True)[1]
        size = int(stratum.max()) + 1
        rate = bincount(stratum, held, size) / bincount(stratum, self.sizes.astype(float), size)
        return _Told(self, held, stratum, rate, self.table.mixtures(rate, SHAPES))


def _known_above(features: FeatureDag, leaves: Measurement) -> _Known:
    law = leaves.noise
    if leaves.elements is None or leaves.floor is None or law is None:
        raise InputError(
            "the noisy counts of 'singleton' need elements, a floor and a scale: see Measurement"
        )
    noisy = leaves.values.astype(float)
    reach = float(law.extreme(features.universe.size, TUNING.giant))
    table = lattice(noisy if len(noisy) else np.zeros(1), law)
    # of 10¹² types, one in a million has trips: means go down to far below one trip
    table = table.with_means(row_of_means(TUNING.lowest_mean, float(table.means[-1]), float(law.scale)))
    floors, height = np.unique(leaves.floor, return_inverse=True)
    past = floors - table.trips[:, None]
    over, under = law.survival(past), law.survival(-past - 1)
    first, second = table.counts * table.trips, table.counts * table.trips**2
    sizes = features.cells.partition.sizes
    cell = features.cells.partition.element_of(features.universe.unrank_codes(leaves.elements))
    left = (sizes - np.bincount(cell, minlength=len(sizes))).astype(float)
    tables = (table.counts @ over, table.counts @ under, first @ under, second @ under)
    return _Known(leaves.elements, cell, noisy, reach, sizes, left, table, height, *tables)


@dataclass(frozen=True, eq=False)
class _Told:
    """Cells in strata of their types' expected count, and the mixtures that each shape makes of it."""

    known: _Known
    held: Floats
    stratum: Ints  # of each cell
    rate: Floats  # by stratum: the expected count of a type
    mixed: Floats  # strata × shapes × means

    def _seen(self) -> list[tuple[Ints, Ints]]:
        """By stratum, the columns of noisy counts above floors that occur, and how often."""
        k, none = self.known, np.empty(0, dtype=np.int64)
        found = seen(k.table.column, self.stratum[k.cell], k.table.counts.shape[1]) if len(k.noisy) else []
        return found + [(none, none)] * (len(self.rate) - len(found))

    @cached_property
    def evidence(self) -> Floats:
        """Strata × shapes: the log-likelihood, of noisy counts above the floor and of there being no others."""
        k = self.known
        fit = np.empty(self.mixed.shape[:2])
        for s, (place, often) in enumerate(self._seen()):
            mixed, here = self.mixed[s], np.flatnonzero(self.stratum == s)
            floors, at = np.unique(k.height[here], return_inverse=True)
            left = bincount(at, k.left[here], len(floors))
            fit[s] = np.log(np.maximum(mixed @ k.table.likelihood[:, place], TINY)) @ often
            fit[s] += np.log1p(-np.minimum(mixed @ k.above[:, floors], 1 - 1e-15)) @ left
            lost = mixed @ k.table.means < TUNING.kept * self.rate[s]
            fit[s][lost & (not lost.all())] = -1e300
        return fit

    def best(self) -> tuple[float, float]:
        """The shape that all of them speak for."""
        empty, spread = SHAPES[int(np.argmax(self.evidence.sum(axis=0) + cost(SHAPES)))]
        return float(empty), float(spread)

    def posterior(self) -> Expected:
        """Means and variances under a prior of the shape that a stratum, and less the others, speak for."""
        k, fit = self.known, self.evidence
        pooled, strata = fit.sum(axis=0), np.arange(len(self.rate))
        near = np.exp(-np.abs(np.subtract.outer(strata, strata)))
        of_leaf = self.stratum[k.cell]
        members = np.split(
            np.argsort(of_leaf, kind="stable"), np.cumsum(np.bincount(of_leaf, minlength=len(strata)))[:-1]
        )
        mean, variance = np.empty(len(k.noisy)), np.empty(len(k.noisy))
        rest, doubt = np.empty(len(k.sizes)), np.empty(len(k.sizes))
        moments = k.table.moments
        for s in strata:
            told = near[s] @ fit + TUNING.pooled * (pooled - fit[s]) + cost(SHAPES)
            weight = np.exp(np.maximum(told - told.max(), -700.0))
            weight[told < told.max() - TUNING.near] = 0.0
            prior = weight / weight.sum() @ self.mixed[s]
            at = k.table.column[members[s]]
            likely = np.maximum(prior @ k.table.likelihood, TINY)
            m1, m2 = prior @ moments[0] / likely, prior @ moments[1] / likely
            mean[members[s]], variance[members[s]] = m1[at], (m2 - m1**2)[at]
            here = np.flatnonzero(self.stratum == s)
            height = k.height[here]
            below = np.maximum(prior @ k.below, TINY)
            c1, c2 = (prior @ k.first / below)[height], (prior @ k.second / below)[height]
            relative = k.left[here] * (self.held[here] / k.sizes[here] / self.rate[s])
            rest[here], doubt[here] = relative * c1, relative * np.maximum(c2 - c1**2, 0.0)
        np.copyto(mean, k.noisy, where=k.noisy > k.reach)
        np.copyto(variance, k.table.variance, where=k.noisy > k.reach)
        # the expected counts of cells are off by some part of themselves, together for all of a cell's types
        return Expected(
            k.index,
            k.cell,
            mean,
            np.maximum(variance, TUNING.certain),
            rest,
            np.maximum(doubt + (TUNING.drift * rest) ** 2, TUNING.certain),
        )
