"""Counts as they are to be expected in a universe too large to list, where only noisy counts above a floor are known.

Types of one group (censored.py) are alike until their noisy counts are seen. Those above their floor are judged one by one;
of the others it is known that they are not, which is a censored observation: what is to be expected of all of them together
is one number for each group. Groups are cells, told apart by how busy their stops are (apart.py). That mass is dealt out as
trips to types drawn at random, so that memory follows trips. All of it is a function of noisy answers: docs/explanation/universes.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimate.posterior.apart import told_apart
from cbdp.estimate.posterior.censored import Expected, Known, Told, cells_of, known_above, regrouped
from cbdp.estimate.posterior.lattice import TINY
from cbdp.estimate.posterior.leaves import ExpectedLeaves
from cbdp.estimate.posterior.margins import Margin, known_sums, noise_law
from cbdp.estimate.posterior.rates import total_of
from cbdp.estimate.posterior.settings import TUNING
from cbdp.estimate.posterior.shared import Sums, measured_sums, moved_tables, without_shared_errors
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp.solvers.problem import bincount

SPREADS = np.array(TUNING.spreads)
EVERY = np.linspace(TUNING.lowest_factor, TUNING.highest_factor, TUNING.every_factor)  # logarithms of factors
CLOSE = np.linspace(-TUNING.close, TUNING.close, TUNING.every_close)  # in deviations from what was measured


def expected_above(
    features: FeatureDag, measurements: Sequence[Measurement], leaves: Measurement
) -> Expected:
    """What to expect of the types of which `leaves` tells those above their floors, given all noisy answers."""
    tables = _tables(measurements)
    cells = known_above(features, leaves, cells_of(features))
    sums, (held, shape) = measured_sums(features, tables), _held(features, cells, tables)
    groups, without = told_apart(features, cells, held, shape)
    known = regrouped(cells, groups)
    more = without + np.log(groups.weight(known.index) / groups.mean[known.group])
    found = _expected(known.told(held[groups.cell] * groups.part, more), tables)
    moved, _ = _held(features, cells, moved_tables(tables, sums))
    return _without_faint(_without_shared_errors(sums, found, np.log(moved / held)))


def _held(
    features: FeatureDag, known: Known, tables: Sequence[Measurement]
) -> tuple[Floats, tuple[float, float]]:
    """What the tables lead to expect of each cell; and the shape of its types' counts."""
    less = [_less(features, m, known) for m in tables]
    margins, total = _margins(features, less), total_of(less)
    empty, spread = known.told(_cell_counts(margins, total, known.sizes, 0.0)).best()
    uneven = math.exp(spread**2) / (1 - empty) - 1
    return _cell_counts(margins, total, known.sizes, uneven), (empty, spread)


def _expected(told: Told, tables: Sequence[Measurement]) -> Expected:
    """Means and variances as if errors were independent."""
    found = told.posterior()
    lacking = (total_of(tables) - float(found.mean.sum())) / max(float(found.rest.sum()), TUNING.certain)
    short = min(max(lacking, TUNING.least_rest), 1 / TUNING.least_rest)
    return replace(found, rest=found.rest * short, doubt=found.doubt * max(short, short**2))


def _without_shared_errors(sums: Sequence[Sums], found: Expected, follows: Floats) -> Expected:
    """Types above their floors, and the others of each group as one more, moved by the errors that they share.

    `follows` is by how much the logarithms of the cells' expected counts change with moved tables. What types below their floors have
    follows their rate.
    """
    of_group = found.groups.cell
    cell = np.concatenate([of_group[found.group], of_group])
    whole = ExpectedLeaves(
        np.concatenate([found.mean, found.rest]),
        np.concatenate([found.variance, found.doubt]),
        np.concatenate([found.lever, np.minimum(found.rest, found.doubt)]),
    )
    slope = np.concatenate([found.lever, found.rest])
    moved = without_shared_errors(sums, cell, len(follows), whole, slope * follows[cell])
    many = len(found.index)
    return replace(
        found,
        mean=moved.mean[:many],
        variance=moved.variance[:many],
        rest=np.where(found.rest > 0, moved.mean[many:], 0.0),
        doubt=moved.variance[many:],
    )


def _less(features: FeatureDag, m: Measurement, known: Known) -> Measurement:
    """A measured feature less what types have beyond the reach of noise: a giant tells little about its neighbours."""
    giant = known.noisy > known.reach
    inside = features.cells.element_of_cell[m.feature][known.group[giant]]
    size = len(m.values)
    return replace(
        m,
        values=m.values - bincount(inside, known.noisy[giant] - known.reach, size),
        variance=m.variance + np.bincount(inside, minlength=size) * known.table.variance,
    )


def _without_faint(found: Expected) -> Expected:
    """Where types are too many to list, those above their floors that are all but sure to be noise go to their group's rest."""
    if len(found.index) <= TUNING.named:
        return found
    faint = found.mean < TUNING.faint
    group, size = found.group[faint], len(found.rest)
    clear = ~faint
    return Expected(
        found.groups,
        found.index[clear],
        found.group[clear],
        found.mean[clear],
        found.variance[clear],
        found.lever[clear],
        found.rest + bincount(group, found.mean[faint], size),
        found.doubt + bincount(group, found.variance[faint], size),
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
