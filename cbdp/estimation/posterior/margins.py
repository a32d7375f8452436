"""Margins: groupings of the leaves, as in a contingency table, and what measured features say about their sums.

`margins` lists those that could say something about a leaf, with the inverse-variance combination of the sums that refine them. (Features that are
coarser or cross a margin are left aside, so this is not the full generalised least-squares answer.) `rate_model` gives them factors, `benchmarking` holds posterior means to them.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from cbdp.arrays import Floats, Ints
from cbdp.compiling import compiled_ahead, kernel
from cbdp.estimation.posterior.parallel import map_items
from cbdp.estimation.posterior.settings import TUNING
from cbdp.features import SINGLETON, FeatureDag, Partition, Universe
from cbdp.privacy.measurement import Measurement
from cbdp_solvers.problem import bincount

UNUSED_ATTRIBUTES = 3  # the rank (`Margin.rank`) of margins by attributes that no feature groups by
LAPLACE_EXCESS_KURTOSIS = 3.0  # the excess kurtosis of Laplace noise


@dataclass(frozen=True, eq=False)
class Margin:
    """A grouping of the leaves, and what the features that were measured say about its sums."""

    by: tuple[str, ...]
    size: int
    element: NDArray[np.int32]  # of each leaf
    measured: Floats  # the sums, by the measured features
    precision: Floats  # of these; 0 where nothing was measured
    power: Floats  # the noise's law is exp(−(|z|/width)^power): 1 is Laplace's, 2 the normal one of many added up
    width: Floats  # for a variance of 1
    table_perturbation: Floats  # by how much the measured sums change when tables are perturbed
    measured_directly: bool  # is more than half of the noise, by kurtosis, that of a single measurement
    partition: Partition | None = None  # where it says the element of each leaf, and `element` is empty
    rank: int = 0  # margins of a lower rank are taken first, where not all can be

    def of_leaves(self) -> NDArray[np.int32]:
        """The element of each leaf, listed anew: margins are many, and to hold all would take more memory than all else."""
        if self.partition is None:
            return self.element
        return self.partition.of_every_type().astype(np.int32, copy=False)

    @property
    def most(self) -> int:
        """The most leaves that an element has."""
        return int(np.max(np.bincount(self.element) if self.partition is None else self.partition.sizes))


def margins(
    features: FeatureDag,
    measurements: Sequence[Measurement],
    table_perturbations: Mapping[str, Floats] = MappingProxyType({}),
) -> list[Margin]:
    """The margins of the lattice that could say something about a leaf, coarse ones first.

    `table_perturbations` say by how much tables are perturbed, to see how far means respond.
    """
    universe = features.universe
    measured = [m for m in measurements if m.feature != SINGLETON and m.variance is not None]
    inside = {m.feature: features.partition(m.feature).of_every_type() for m in measured}
    partitions = [(by, universe.partition(by)) for by in candidate_groupings(universe)]
    useful = [(by, p) for by, p in partitions if p.size * TUNING.fewest_types <= universe.size]
    grouped_by = {
        name for feature in features.features.values() if feature.name != SINGLETON for name in feature.by
    }

    def margin(grouping: tuple[tuple[str, ...], Partition]) -> Margin:
        by, partition = grouping
        sums = measured_margin_sums(
            partition.of_every_type(), partition.size, measured, inside, table_perturbations
        )
        measured_directly = bool((sums.alone > TUNING.min_single_noise_share).all())
        law = generalized_normal(sums.tails)
        columns = sums.value, sums.precision, *law, sums.table_perturbation
        nothing = not sums.precision.any()  # of the largest margins, mostly: then one number stands for all
        value, precision, power, width, perturbation = (
            np.broadcast_to(part[0], part.shape) if nothing else part for part in columns
        )
        none = np.empty(0, dtype=np.int32)
        rank = _priority(universe, grouped_by, by)
        return Margin(
            by,
            partition.size,
            none,
            value,
            precision,
            power,
            width,
            perturbation,
            measured_directly,
            partition,
            rank,
        )

    useful.sort(key=lambda found: (_priority(universe, grouped_by, found[0]), found[1].size))
    chosen = sorted(useful[: TUNING.most_held], key=lambda found: found[1].size)
    return map_items(margin, chosen, universe.size)


def rate_model_margins(lattice: Sequence[Margin]) -> list[Margin]:
    """The margins that get factors in the rate model, coarse ones first: each costs passes over all leaves, so they are limited.

    Margins by attributes that no feature groups by come after all others: they then get factors for what these leave unexplained. Fitted
    before finer margins of the dimensions, their factors would stand for effects that those tell better (kind of day × zone for day × zone).
    """
    several = [margin for margin in lattice if margin.size > 1]
    chosen = sorted(several, key=lambda margin: (margin.rank, margin.size))[: TUNING.most_margins]
    return sorted(chosen, key=lambda margin: (margin.rank == UNUSED_ATTRIBUTES, margin.size))


def _priority(universe: Universe, grouped_by: Collection[str], by: tuple[str, ...]) -> int:
    """How soon a margin is taken, where not all can be.

    Margins of the dimensions themselves come first, those of one or two before those of more: the demand's own structure. Then
    attributes that features group by, and last those that none does, so that a public attribute more takes no other's place.
    """
    if all(name in universe.dimensions for name in by):
        return 0 if len(by) <= 2 else 1
    used = all(name in universe.dimensions or name in grouped_by for name in by)
    return 2 if used else UNUSED_ATTRIBUTES


def candidate_groupings(universe: Universe) -> list[tuple[str, ...]]:
    """Every choice of at most one attribute of each dimension, that of none (the total) among them; attributes of several, alone and with each other dimension.

    Attributes that group a dimension's values as another one does (a stop's name beside its number), or not at all, are left out.
    """
    dimensions = list(universe.dimensions)
    choices: dict[str, list[str | None]] = {name: [None] for name in dimensions}
    several = []
    seen: set[tuple[str, bytes]] = set()
    for name, attribute in universe.attributes.items():
        if len(attribute.of) > 1:
            several.append(attribute)
            continue
        _, first, groups = np.unique(attribute.codes, return_index=True, return_inverse=True)
        key = attribute.of[0], np.argsort(np.argsort(first))[groups.reshape(-1)].astype(np.int64).tobytes()
        if name in dimensions or (key not in seen and len(first) > 1):
            choices[attribute.of[0]].append(name)
        seen.add(key)
    groupings = [tuple(c for c in chosen if c is not None) for chosen in itertools.product(*choices.values())]
    groupings = [by for by in groupings if by != tuple(dimensions)]
    for attribute in several:
        others = [d for d in dimensions if d not in attribute.of]
        groupings += [(attribute.name,), *((attribute.name, other) for other in others)]
    return groupings


@dataclass(frozen=True, eq=False)
class MeasuredMarginSums:
    """What measured features say about the sums of a margin."""

    value: Floats
    precision: Floats
    alone: Floats  # how much of the variance is that of a single noise: 1 is all of it, near 0 there are very many
    tails: Floats  # excess kurtosis of the noise, in that of Laplace noise, which stands in for laws that are not known
    table_perturbation: Floats  # by how much the value changes when tables are perturbed


def measured_margin_sums(
    element: Ints,
    size: int,
    measured: Sequence[Measurement],
    inside: Mapping[str, Ints],
    table_perturbations: Mapping[str, Floats] = MappingProxyType({}),
) -> MeasuredMarginSums:
    """Sums of the measured features that refine the margin, combined by inverse variance; those of coarser and crossing features are ignored."""
    total, precision, fourth, tails, perturbation = np.zeros((5, size))
    for m in measured:
        coarse = np.full(len(m.values), -1, dtype=np.int64)
        if m.elements is not None or not _refines(inside[m.feature], element, coarse):
            continue
        assert m.variance is not None
        variance = bincount(coarse, m.variance, size)
        total += bincount(coarse, m.values.astype(float), size) / variance
        if m.feature in table_perturbations:
            perturbation += bincount(coarse, table_perturbations[m.feature], size) / variance
        precision += 1.0 / variance
        one = bincount(coarse, m.variance**2, size) / variance**2 / variance**2
        fourth += one
        tails += one if m.noise is None else m.noise.excess_kurtosis / LAPLACE_EXCESS_KURTOSIS * one
    sure, square = np.maximum(precision, 1e-300), np.maximum(precision**2, 1e-300)
    alone, tails = (np.minimum(part / square, 1.0) for part in (fourth, tails))
    return MeasuredMarginSums(total / sure, precision, alone, tails, perturbation / sure)


@compiled_ahead("i4[::1], i4[::1], i8[::1]")
@kernel
def _refines(fine, coarse, coarse_of_fine):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Does each fine element lie in one coarse element; `coarse_of_fine` is filled with which."""
    for u in range(len(fine)):
        if coarse_of_fine[fine[u]] != coarse[u]:
            if coarse_of_fine[fine[u]] >= 0:
                return False
            coarse_of_fine[fine[u]] = coarse[u]
    return True


def generalized_normal(tails: Floats) -> tuple[Floats, Floats]:
    """The power and the width of a generalised normal law with such tails: 1 is the kurtosis of Laplace noise, 0 that of the normal law.

    Equals matching `scipy.stats.gennorm(power).stats("k")`; the width is the scale at which its variance is 1 (Nadarajah 2005).
    """
    power = np.linspace(1.0, 2.0, 101)
    beyond = np.exp(gammaln(5 / power) + gammaln(1 / power) - 2 * gammaln(3 / power)) - 3.0
    fitted = np.interp(LAPLACE_EXCESS_KURTOSIS * tails, beyond[::-1], power[::-1])
    return fitted, np.exp(0.5 * (gammaln(1 / fitted) - gammaln(3 / fitted)))
