"""Stops (and other values) that no table tells apart, told apart by the noisy counts above floors and those that are not.

Within a cell, types are first taken to be alike. Where a stop has more of the counts above floors than noise and its
cells' tables explain, its types have more trips: each value of each dimension has a factor, judged by the likelihood of
all its types, of those above floors one by one and of the others that they are not. It is shrunk by how much factors are seen
to vary. Values with about the same factor make a class, and the types of a cell with the same classes make a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimate.posterior import factors, rates
from cbdp.estimate.posterior.censored import Groups, Known, regrouped
from cbdp.estimate.posterior.lattice import TINY
from cbdp.estimate.posterior.pairs import told_pairs
from cbdp.estimate.posterior.settings import TUNING
from cbdp.features import Attribute, FeatureDag, Partition, Universe
from cbdp.solvers.problem import bincount


def told_apart(
    features: FeatureDag, known: Known, held: Floats, shape: tuple[float, float]
) -> tuple[Groups, Floats]:
    """The cells, in groups of types whose stops are about equally busy; `held` is what is expected of each cell.

    And for each type above its floor, the logarithm by which more is expected of it if its own noisy count says nothing about its stops.
    """
    values = [v for name in features.universe.dimensions if (v := _values(features, known, name)) is not None]
    groups, without, cell_log = known.groups, np.zeros(len(known.index)), np.log(held / known.sizes)
    for _ in range(TUNING.apart_turns):
        likely = _likelihoods(known, shape)
        for v in values:
            log = cell_log[known.group] + sum((o.relative()[o.own] for o in values), without)
            v.judge(known, cell_log, log, likely)
        busy: dict[tuple[str, ...], Floats] = {(v.name,): v.log for v in values if np.ptp(v.log) > 0}
        if busy:
            groups = _groups(features.universe, known.groups, busy)
            shape = regrouped(known, groups).told(held[groups.cell] * groups.part).best()
    if len(values) == 2:
        base = cell_log - sum(v.means() for v in values)
        log_of = {v.name: v.log for v in values}
        pairs = told_pairs(features, known, log_of, base, _likelihoods(known, shape))
        if pairs is not None:
            return _groups(features.universe, known.groups, {pairs.names: pairs.log}), pairs.without
    return groups, without


@dataclass(eq=False)
class _Values:
    """The values of a dimension, and how busy each is: the logarithms of factors."""

    name: str
    pairs: Ints  # cell and value, of each combination that occurs
    value: Ints
    size: Floats  # how many types it has
    left: Floats  # and how many of them are not above their floor
    own: Ints  # the combination of each type above its floor
    log: Floats  # by value

    def relative(self) -> Floats:
        """By combination, the logarithm of its factor to the mean of its cell."""
        return self.log[self.value] - self.means()[self.pairs]

    def means(self) -> Floats:
        """By cell, the logarithm of the mean factor of its types."""
        cells = int(self.pairs.max()) + 1
        sums = bincount(self.pairs, self.size * np.exp(self.log)[self.value], cells)
        return np.log(sums / np.maximum(bincount(self.pairs, self.size, cells), 1.0))

    def judge(self, known: Known, cell_log: Floats, log: Floats, likely: Floats) -> None:
        """Multiply the factors by what the noisy counts speak for, if they vary. The logarithms are of expected counts."""
        grid, size = rates.ROUGH, len(self.log)
        rest = cell_log[self.pairs] + self.relative()
        columns = known.table.counts.shape[1]
        last = TUNING.columns - 2 - rates.STRIDE * (len(rates.KNOTS) - 1)
        sums = factors.added_by_weight(
            np.concatenate([self.value[self.own], self.value]),
            np.concatenate([log, rest]),
            np.concatenate([np.ones(len(log)), self.left]),
            np.concatenate([known.table.column, columns + known.height[self.pairs]]),
            likely.reshape(-1),
            likely.shape[2],
            size,
            *(TUNING.first_log, TUNING.cell, rates.UNDER, last),
        )
        held = bincount(self.value, self.size * np.exp(rest), size)
        told = np.stack(
            [np.zeros(size), np.zeros(size), np.ones(size), np.ones(size), held, held, np.zeros(size)]
        )
        given = grid.spline, grid.factor
        gains = factors.gains(sums, 1, 0, *given, grid.one, grid.law, told, TUNING.depth)
        belief = rates.believed(gains, asked=False)
        if belief is None:
            return
        prior = belief[1:] @ grid.priors
        prior[grid.one] += belief[0]
        self.log = self.log + np.log(
            factors.factors(sums, *given, prior, told, TUNING.depth, TUNING.least_factor)
        )


def _values(features: FeatureDag, known: Known, name: str) -> _Values | None:
    """The values of this dimension, if cells have several of them and the combinations can be listed."""
    universe, cells = features.universe, features.cells.partition
    if any(a.name == name for a in cells.attributes):
        return None
    try:
        both = Partition(universe, (*cells.attributes, universe.attributes[name]))
    except InputError:  # too many to list
        return None
    if both.size == cells.size or both.size > TUNING.apart_listed:
        return None
    codes = both.representatives()
    place = list(universe.dimensions).index(name)
    own = both.element_of(universe.unrank_codes(known.index))
    size = both.sizes.astype(float)
    left = np.maximum(size - np.bincount(own, minlength=len(size)), 0.0)
    log = np.zeros(len(universe.dimensions[name]))
    return _Values(name, cells.element_of(codes), codes[place], size, left, own, log)


def _likelihoods(known: Known, shape: tuple[float, float]) -> Floats:
    """Noisy counts, and then floors, × logarithms of the expected count: of such a count, and of one not above the floor."""
    expected = np.exp(TUNING.first_log + TUNING.cell * np.arange(TUNING.columns))
    mixed = known.table.mixtures(expected, np.array([shape]))[:, 0]
    above = np.log(np.maximum(mixed @ known.table.likelihood, TINY))
    below = np.log1p(-np.minimum(mixed @ known.above, 1 - 1e-15))
    return rates.dealt_in_turn(np.hstack([above, below]).T)


def _groups(universe: Universe, cells: Groups, busy: Mapping[tuple[str, ...], Floats]) -> Groups:
    """The cells parted by classes of about the same factors, as fine as can be listed; `busy` has their logarithms, by dimensions."""
    width = TUNING.apart_width
    while True:
        attributes = [
            Attribute(f"{' and '.join(names)}, how busy", names, *_labelled(np.rint(log / width)))
            for names, log in busy.items()
        ]
        partition = Partition(universe, (*cells.partition.attributes, *attributes))
        if partition.size <= max(TUNING.apart_groups, len(cells.cell)):
            break
        width *= 2
    codes = dict(zip(universe.dimensions, partition.representatives(), strict=True))
    cell = cells.partition.element_of(list(codes.values()))
    mean = np.ones(partition.size)
    factor = {names: np.exp(log) for names, log in busy.items()}
    for names, attribute in zip(busy, attributes, strict=True):
        flat = attribute.codes.reshape(-1)
        of_class = np.bincount(flat, factor[names].reshape(-1)) / np.bincount(flat)
        mean *= of_class[attribute.codes[tuple(codes[name] for name in names)]]
    held = partition.sizes * mean
    return Groups(partition, cell, held / bincount(cell, held, len(cells.cell))[cell], mean, factor)


def _labelled(classes: Floats) -> tuple[tuple[int, ...], Ints]:
    labels, codes = np.unique(classes.astype(np.int64), return_inverse=True)
    return tuple(labels.tolist()), codes.reshape(classes.shape).astype(np.int64)
