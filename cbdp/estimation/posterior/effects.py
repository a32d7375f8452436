"""Effects of stops, and of pairs of stops, that no table tells apart: step 3 of docs/explanation/estimator.md on censored counts.

Within a cell, types are first taken to be alike. Where a stop has more of the counts above floors than noise and its cells' tables explain,
its types have more trips: each value of each dimension has a factor, shrunk by empirical Bayes as in `rate_model`, whose likelihood is that of all its types,
of those above floors one by one and of the others that they are not. Values with about the same factor make a class, and the types of a cell
with the same classes make a group (`split_by_effects`).

Pairs follow. A pair has few types, so a noisy count that is judged by its pair's factor must not have made it: types above floors are judged
by the factor that all others of their pair speak for (leave one out). Of the types that are not above floors only sums are needed, and
pairs whose zones are the same have them in the same cells: their likelihood is a function of the pair's factor, worked out once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation.posterior import kernels, rate_model
from cbdp.estimation.posterior.censored import CensoredCounts, TypeGroups, regroup
from cbdp.estimation.posterior.likelihood import MIN_PROBABILITY, MixtureShape
from cbdp.estimation.posterior.settings import TUNING
from cbdp.features import Attribute, FeatureDag, Partition, Universe
from cbdp_solvers.problem import bincount


def split_by_effects(
    features: FeatureDag, counts: CensoredCounts, expected: Floats, shape: MixtureShape
) -> tuple[TypeGroups, Floats]:
    """The cells, in groups of types whose stops are about equally busy; `expected` is what is expected of each cell.

    And for each type above its floor, the logarithm by which more is expected of it if its own noisy count says nothing about its stops.
    """
    values = [
        v for name in features.universe.dimensions if (v := _stop_effects(features, counts, name)) is not None
    ]
    groups, leave_one_out_log_ratio, cell_log = (
        counts.groups,
        np.zeros(len(counts.index)),
        np.log(expected / counts.sizes),
    )
    for _ in range(TUNING.stop_effect_iterations):
        likely = _censored_log_likelihoods(counts, shape)
        for v in values:
            log = cell_log[counts.group] + sum(
                (o.relative()[o.combination] for o in values), leave_one_out_log_ratio
            )
            v.judge(counts, cell_log, log, likely)
        effects: dict[tuple[str, ...], Floats] = {(v.name,): v.log for v in values if np.ptp(v.log) > 0}
        if effects:
            groups = _groups_by_effect(features.universe, counts.groups, effects)
            shape = regroup(counts, groups).stratified(expected[groups.cell] * groups.part).best()
    if len(values) == 2:
        base = cell_log - sum(v.means() for v in values)
        log_of = {v.name: v.log for v in values}
        pairs = pair_effects(features, counts, log_of, base, _censored_log_likelihoods(counts, shape))
        if pairs is not None:
            return _groups_by_effect(
                features.universe, counts.groups, {pairs.names: pairs.log}
            ), pairs.leave_one_out_log_ratio
    return groups, leave_one_out_log_ratio


@dataclass(eq=False)
class _StopEffects:
    """The effects of a dimension's values: the logarithms of factors."""

    name: str
    pairs: Ints  # cell and value, of each combination that occurs
    value: Ints
    size: Floats  # how many types it has
    left: Floats  # and how many of them are not above their floor
    combination: Ints  # the one of each type above its floor
    log: Floats  # by value

    def relative(self) -> Floats:
        """By combination, the logarithm of its factor to the mean of its cell."""
        return self.log[self.value] - self.means()[self.pairs]

    def means(self) -> Floats:
        """By cell, the logarithm of the mean factor of its types."""
        cells = int(self.pairs.max()) + 1
        sums = bincount(self.pairs, self.size * np.exp(self.log)[self.value], cells)
        return np.log(sums / np.maximum(bincount(self.pairs, self.size, cells), 1.0))

    def judge(self, counts: CensoredCounts, cell_log: Floats, log: Floats, likely: Floats) -> None:
        """Multiply the factors by what the noisy counts speak for, if they vary. The logarithms are of expected counts."""
        grid, size = rate_model.ROUGH_GRID, len(self.log)
        rest = cell_log[self.pairs] + self.relative()
        columns = counts.table.counts.shape[1]
        last = TUNING.log_rate_cells - 2 - rate_model.CELLS_PER_KNOT * (len(rate_model.KNOTS) - 1)
        sums = kernels.weighted_log_likelihoods(
            np.concatenate([self.value[self.combination], self.value]),
            np.concatenate([log, rest]),
            np.concatenate([np.ones(len(log)), self.left]),
            np.concatenate([counts.table.column, columns + counts.height[self.pairs]]),
            likely.reshape(-1),
            likely.shape[2],
            size,
            *(TUNING.min_log_rate, TUNING.log_rate_step, rate_model.CELLS_BELOW_ONE, last),
        )
        log_bayes_factors = _log_bayes_factors(sums)
        weights = rate_model.accepted_spreads(log_bayes_factors, measured_directly=False)
        if weights is None:
            return
        prior = weights[1:] @ grid.priors
        prior[grid.one] += weights[0]
        self.log = self.log + np.log(_posterior_mean_factors(sums, prior))


def _stop_effects(features: FeatureDag, counts: CensoredCounts, name: str) -> _StopEffects | None:
    """The values of this dimension, if cells have several of them and the combinations can be listed."""
    universe, cells = features.universe, features.cells.partition
    if any(a.name == name for a in cells.attributes):
        return None
    try:
        both = Partition(universe, (*cells.attributes, universe.attributes[name]))
    except InputError:  # too many to list
        return None
    if both.size == cells.size or both.size > TUNING.max_stop_combinations:
        return None
    codes = both.representatives()
    place = list(universe.dimensions).index(name)
    combination = both.element_of(universe.unrank_codes(counts.index))
    size = both.sizes.astype(float)
    left = np.maximum(size - np.bincount(combination, minlength=len(size)), 0.0)
    log = np.zeros(len(universe.dimensions[name]))
    return _StopEffects(name, cells.element_of(codes), codes[place], size, left, combination, log)


def _censored_log_likelihoods(counts: CensoredCounts, shape: MixtureShape) -> Floats:
    """Noisy counts, and then floors, × logarithms of the expected count: of such a count, and of one not above the floor."""
    expected = np.exp(TUNING.min_log_rate + TUNING.log_rate_step * np.arange(TUNING.log_rate_cells))
    mixed = counts.table.mixtures(expected, np.array([shape]))[:, 0]
    above = np.log(np.maximum(mixed @ counts.table.likelihood, MIN_PROBABILITY))
    below = np.log1p(-np.minimum(mixed @ counts.above, 1 - 1e-15))
    return rate_model.interleave_knots(np.hstack([above, below]).T)


def _groups_by_effect(
    universe: Universe, cells: TypeGroups, effects: Mapping[tuple[str, ...], Floats]
) -> TypeGroups:
    """The cells parted by classes of about the same factors, as fine as can be listed; `effects` has their logarithms, by dimensions."""
    width = TUNING.effect_class_width
    while True:
        attributes = [
            Attribute(f"{' and '.join(names)}, how busy", names, *_class_labels(np.rint(log / width)))
            for names, log in effects.items()
        ]
        partition = Partition(universe, (*cells.partition.attributes, *attributes))
        if partition.size <= max(TUNING.max_effect_groups_of_types, len(cells.cell)):
            break
        width *= 2
    codes = dict(zip(universe.dimensions, partition.representatives(), strict=True))
    cell = cells.partition.element_of(list(codes.values()))
    mean = np.ones(partition.size)
    factor = {names: np.exp(log) for names, log in effects.items()}
    for names, attribute in zip(effects, attributes, strict=True):
        flat = attribute.codes.reshape(-1)
        of_class = np.bincount(flat, factor[names].reshape(-1)) / np.bincount(flat)
        mean *= of_class[attribute.codes[tuple(codes[name] for name in names)]]
    expected = partition.sizes * mean
    return TypeGroups(
        partition, cell, expected / bincount(cell, expected, len(cells.cell))[cell], mean, factor
    )


def _class_labels(classes: Floats) -> tuple[tuple[int, ...], Ints]:
    labels, codes = np.unique(classes.astype(np.int64), return_inverse=True)
    return tuple(labels.tolist()), codes.reshape(classes.shape).astype(np.int64)


# Pairs of values, and what both kinds of effects are judged by


@dataclass(frozen=True, eq=False)
class PairEffects:
    """The effects of pairs of two dimensions' values: logarithms of factors."""

    names: tuple[str, str]
    log: Floats  # values × values, those of the two values included
    leave_one_out_log_ratio: Floats  # of each type above its floor: by how much its pair's is larger if the type itself says nothing


def pair_effects(
    features: FeatureDag, counts: CensoredCounts, log: Mapping[str, Floats], base: Floats, likely: Floats
) -> PairEffects | None:
    """The factors of pairs, if they vary; None where they cannot be listed. `log` are those of the values of two dimensions.

    `base` is by cell the logarithm of a type's expected count before these factors; `likely` is that of `_censored_log_likelihoods`.
    """
    data = _pair_data(features, counts, log, base, likely)
    if data is None:
        return None
    log_bayes_factors = sum(_log_bayes_factors(sums) for _, sums in _sums_by_block(data))
    weights = rate_model.accepted_spreads(np.asarray(log_bayes_factors), measured_directly=False)
    if weights is None:
        return None
    grid = rate_model.ROUGH_GRID
    prior = weights[1:] @ grid.priors
    prior[grid.one] += weights[0]
    log_factor, leave_one_out_log_ratio = np.empty(len(data.log)), np.zeros(len(data.element))
    for here, sums in _sums_by_block(data):
        log_factor[here] = np.log(_posterior_mean_factors(sums, prior))
        types = data.types_of(here)
        for at in (
            types[i : i + TUNING.elements_at_once] for i in range(0, len(types), TUNING.elements_at_once)
        ):
            alone = data.log_likelihoods(np.arange(len(at)), len(at), at)
            element = data.element[at]
            leave_one_out_log_ratio[at] = (
                np.log(_posterior_mean_factors(sums[element - here.start] - alone, prior))
                - log_factor[element]
            )
    table = np.add.outer(*log.values())
    table[data.codes] = data.log + log_factor
    first, second = log
    back = np.empty(len(leave_one_out_log_ratio))
    back[data.order] = leave_one_out_log_ratio
    return PairEffects((first, second), table, back)


@dataclass(frozen=True, eq=False)
class _PairData:
    """Pairs, and the types above floors in the order of their pairs."""

    codes: tuple[Ints, Ints]  # of each pair
    log: Floats  # of each pair, by its values alone
    column: Ints  # of each pair, for all its types as if none were above its floor
    order: Ints  # of the types above floors
    element: Ints  # the pair of each of them, ascending
    at: Floats  # the logarithm of what is expected of each
    shown: Ints  # the column of each one's noisy count
    hidden: Ints  # and that of a noisy count not above its floor
    likely: Floats

    def types_of(self, here: slice) -> Ints:
        first, last = np.searchsorted(self.element, [here.start, here.stop])
        return np.arange(first, last)

    def log_likelihoods(self, element: Ints, size: int, types: Ints) -> Floats:
        """The log-likelihood of these types' noisy counts, in their elements' factors."""
        return self._weighted_log_likelihoods(
            element, size, self.at[types], np.ones(len(types)), self.shown[types]
        )

    def _weighted_log_likelihoods(
        self, element: Ints, size: int, log: Floats, weight: Floats, column: Ints
    ) -> Floats:
        last = TUNING.log_rate_cells - 2 - rate_model.CELLS_PER_KNOT * (len(rate_model.KNOTS) - 1)
        knots = TUNING.min_log_rate, TUNING.log_rate_step, rate_model.CELLS_BELOW_ONE, last
        sums: Floats = kernels.weighted_log_likelihoods(
            element, log, weight, column, self.likely.reshape(-1), self.likely.shape[2], size, *knots
        )
        return sums

    def sums(self, here: slice) -> Floats:
        """Pairs × knots: of types above floors one by one, and of all others that they are not."""
        types, size = self.types_of(here), here.stop - here.start
        inside, every = self.element[types] - here.start, np.arange(size)
        one = np.ones(len(types))
        return self._weighted_log_likelihoods(
            np.concatenate([inside, inside, every]),
            size,
            np.concatenate([self.at[types], self.at[types], self.log[here]]),
            np.concatenate([one, -one, np.ones(size)]),
            np.concatenate([self.shown[types], self.hidden[types], self.column[here]]),
        )


def _sums_by_block(data: _PairData) -> Iterator[tuple[slice, Floats]]:
    for start in range(0, len(data.log), TUNING.pairs_at_once):
        here = slice(start, min(start + TUNING.pairs_at_once, len(data.log)))
        yield here, data.sums(here)


def _log_bayes_factors(sums: Floats) -> Floats:
    grid = rate_model.ROUGH_GRID
    log_bayes_factors: Floats = kernels.log_bayes_factors(
        sums,
        1,
        0,
        grid.spline,
        grid.factor,
        grid.one,
        grid.priors_single,
        kernels.margin_evidence(len(sums)),  # no table tells anything about pairs
        TUNING.max_log_likelihood_drop,
    )
    return log_bayes_factors


def _posterior_mean_factors(sums: Floats, prior: Floats) -> Floats:
    grid = rate_model.ROUGH_GRID
    factors: Floats = kernels.posterior_mean_factors(
        sums,
        grid.spline,
        grid.factor,
        prior,
        kernels.margin_evidence(len(sums)),
        TUNING.max_log_likelihood_drop,
        TUNING.min_factor,
    )
    return factors


def _pair_data(
    features: FeatureDag, counts: CensoredCounts, log: Mapping[str, Floats], base: Floats, likely: Floats
) -> _PairData | None:
    universe, cells = features.universe, features.cells.partition
    try:
        pairs = Partition(universe, tuple(universe.attributes[name] for name in log))
    except InputError:  # too many to list
        return None
    if pairs.size > TUNING.max_pairs or pairs.size * TUNING.fewest_types > universe.size:
        return None
    inside = Partition(universe, tuple(a for a in cells.attributes if set(a.of) <= set(log)))
    if inside.size > TUNING.max_pair_classes:
        return None
    places = [list(universe.dimensions).index(name) for name in log]
    codes = pairs.representatives()
    of_pair, of_cell = inside.element_of(codes), inside.element_of(cells.representatives())
    values = tuple(codes[p] for p in places)
    by_value = sum((one[c] for one, c in zip(log.values(), values, strict=True)), np.zeros(pairs.size))
    columns = counts.table.counts.shape[1]
    each = counts.sizes / np.bincount(of_pair, minlength=inside.size)[of_cell]
    hidden = _censored_pair_likelihoods(base, each, columns + counts.height, of_cell, inside.size, likely)
    element = pairs.element_of(universe.unrank_codes(counts.index))
    order = np.argsort(element, kind="stable")
    element, group = element[order], counts.group[order]
    return _PairData(
        (values[0], values[1]), by_value, len(likely) + of_pair, order, element, base[group] + by_value[element],
        counts.table.column[order].astype(np.int64), columns + counts.height[group], np.concatenate([likely, hidden]),
    )  # fmt: skip


def _censored_pair_likelihoods(
    base: Floats, each: Floats, column: Ints, of_cell: Ints, classes: int, likely: Floats
) -> Floats:
    """As rows of `likely`, by class of pairs: that none of a pair's types is above its floor, by the logarithm of its factor."""
    plain = (
        likely[:, :, : TUNING.log_rate_cells // rate_model.CELLS_PER_KNOT]
        .transpose(0, 2, 1)
        .reshape(len(likely), -1)
    )
    log_likelihood = np.empty((classes, TUNING.log_rate_cells))
    place = base / TUNING.log_rate_step
    for j in range(TUNING.log_rate_cells):
        at = np.clip(place + j, 0.0, TUNING.log_rate_cells - 1.001)
        low = at.astype(np.int64)
        part = at - low
        value = plain[column, low] * (1 - part) + plain[column, low + 1] * part
        log_likelihood[:, j] = bincount(of_cell, each * value, classes)
    return rate_model.interleave_knots(log_likelihood)
