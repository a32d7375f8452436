"""Pairs of stops that no table tells apart, told apart as single stops are: by their noisy counts above floors and those that are not.

A pair has few types, so a noisy count that is judged by its pair's factor must not have made it: types above floors are judged
by the factor that all others of their pair speak for. Of the types that are not above floors only sums are needed, and pairs
whose zones are the same have them in the same cells: their likelihood is a function of the pair's factor, made once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimate.posterior import factors, rates
from cbdp.estimate.posterior.censored import Known
from cbdp.estimate.posterior.settings import TUNING
from cbdp.features import FeatureDag, Partition
from cbdp.solvers.problem import bincount


@dataclass(frozen=True, eq=False)
class Pairs:
    """How busy the pairs of two dimensions' values are: logarithms of factors."""

    names: tuple[str, str]
    log: Floats  # values × values, those of the two values included
    without: Floats  # of each type above its floor: by how much its pair's is larger if the type itself says nothing


def told_pairs(
    features: FeatureDag, known: Known, log: Mapping[str, Floats], base: Floats, likely: Floats
) -> Pairs | None:
    """The factors of pairs, if they vary; None where they cannot be listed. `log` are those of the values of two dimensions.

    `base` is by cell the logarithm of a type's expected count before these factors; `likely` is that of `apart.likelihoods`.
    """
    found = _listed(features, known, log, base, likely)
    if found is None:
        return None
    gains = sum(_gains(sums) for _, sums in _sums(found))
    belief = rates.believed(np.asarray(gains), asked=False)
    if belief is None:
        return None
    grid = rates.ROUGH
    prior = belief[1:] @ grid.priors
    prior[grid.one] += belief[0]
    made, without = np.empty(len(found.log)), np.zeros(len(found.element))
    for here, sums in _sums(found):
        made[here] = np.log(_factors(sums, prior))
        own = found.own(here)
        for at in (own[i : i + TUNING.at_once] for i in range(0, len(own), TUNING.at_once)):
            alone = found.added(np.arange(len(at)), len(at), at)
            element = found.element[at]
            without[at] = np.log(_factors(sums[element - here.start] - alone, prior)) - made[element]
    table = np.add.outer(*log.values())
    table[found.codes] = found.log + made
    first, second = log
    back = np.empty(len(without))
    back[found.order] = without
    return Pairs((first, second), table, back)


@dataclass(frozen=True, eq=False)
class _Listed:
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

    def own(self, here: slice) -> Ints:
        first, last = np.searchsorted(self.element, [here.start, here.stop])
        return np.arange(first, last)

    def added(self, element: Ints, size: int, types: Ints) -> Floats:
        """What these types' noisy counts say about their elements' factors."""
        return self._added(element, size, self.at[types], np.ones(len(types)), self.shown[types])

    def _added(self, element: Ints, size: int, log: Floats, weight: Floats, column: Ints) -> Floats:
        last = TUNING.columns - 2 - rates.STRIDE * (len(rates.KNOTS) - 1)
        knots = TUNING.first_log, TUNING.cell, rates.UNDER, last
        made: Floats = factors.added_by_weight(
            element, log, weight, column, self.likely.reshape(-1), self.likely.shape[2], size, *knots
        )
        return made

    def sums(self, here: slice) -> Floats:
        """Pairs × knots: of types above floors one by one, and of all others that they are not."""
        own, size = self.own(here), here.stop - here.start
        inside, every = self.element[own] - here.start, np.arange(size)
        one = np.ones(len(own))
        return self._added(
            np.concatenate([inside, inside, every]),
            size,
            np.concatenate([self.at[own], self.at[own], self.log[here]]),
            np.concatenate([one, -one, np.ones(size)]),
            np.concatenate([self.shown[own], self.hidden[own], self.column[here]]),
        )


def _sums(found: _Listed) -> Iterator[tuple[slice, Floats]]:
    for start in range(0, len(found.log), TUNING.pairs_at_once):
        here = slice(start, min(start + TUNING.pairs_at_once, len(found.log)))
        yield here, found.sums(here)


def _gains(sums: Floats) -> Floats:
    grid = rates.ROUGH
    made: Floats = factors.gains(
        sums,
        1,
        0,
        grid.spline,
        grid.factor,
        grid.one,
        grid.law,
        _nothing(len(sums)),
        TUNING.depth,
    )
    return made


def _factors(sums: Floats, prior: Floats) -> Floats:
    grid = rates.ROUGH
    given = grid.spline, grid.factor, prior, _nothing(len(sums)), TUNING.depth, TUNING.least_factor
    made: Floats = factors.factors(sums, *given)
    return made


def _nothing(size: int) -> Floats:
    """No table tells anything about pairs."""
    told = np.zeros((7, size))
    told[2:6] = 1.0
    return told


def _listed(
    features: FeatureDag, known: Known, log: Mapping[str, Floats], base: Floats, likely: Floats
) -> _Listed | None:
    universe, cells = features.universe, features.cells.partition
    try:
        pairs = Partition(universe, tuple(universe.attributes[name] for name in log))
    except InputError:  # too many to list
        return None
    if pairs.size > TUNING.pairs_listed or pairs.size * TUNING.fewest_types > universe.size:
        return None
    inside = Partition(universe, tuple(a for a in cells.attributes if set(a.of) <= set(log)))
    if inside.size > TUNING.pairs_classes:
        return None
    places = [list(universe.dimensions).index(name) for name in log]
    codes = pairs.representatives()
    of_pair, of_cell = inside.element_of(codes), inside.element_of(cells.representatives())
    own = tuple(codes[p] for p in places)
    by_value = sum((one[c] for one, c in zip(log.values(), own, strict=True)), np.zeros(pairs.size))
    columns = known.table.counts.shape[1]
    each = known.sizes / np.bincount(of_pair, minlength=inside.size)[of_cell]
    hidden = _hidden(base, each, columns + known.height, of_cell, inside.size, likely)
    element = pairs.element_of(universe.unrank_codes(known.index))
    order = np.argsort(element, kind="stable")
    element, group = element[order], known.group[order]
    return _Listed(
        (own[0], own[1]), by_value, len(likely) + of_pair, order, element, base[group] + by_value[element],
        known.table.column[order].astype(np.int64), columns + known.height[group], np.concatenate([likely, hidden]),
    )  # fmt: skip


def _hidden(base: Floats, each: Floats, column: Ints, of_cell: Ints, classes: int, likely: Floats) -> Floats:
    """As rows of `likely`, by class of pairs: that none of a pair's types is above its floor, by the logarithm of its factor."""
    plain = likely[:, :, : TUNING.columns // rates.STRIDE].transpose(0, 2, 1).reshape(len(likely), -1)
    made = np.empty((classes, TUNING.columns))
    place = base / TUNING.cell
    for j in range(TUNING.columns):
        at = np.clip(place + j, 0.0, TUNING.columns - 1.001)
        low = at.astype(np.int64)
        part = at - low
        value = plain[column, low] * (1 - part) + plain[column, low + 1] * part
        made[:, j] = bincount(of_cell, each * value, classes)
    return rates.dealt_in_turn(made)
