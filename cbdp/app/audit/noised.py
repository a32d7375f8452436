"""Noisy answers of a release whose noise has a declared law: what of them is shown, and what is hidden below a floor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.audit.released import declared_law
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.laws import Law
from cbdp.release.manifest import spent_on
from cbdp.release.release import Release


@dataclass(frozen=True, eq=False)
class Noised:
    """A published noisy answer to a feature: of all elements, or of those that exceed a floor (by cell, or one for all).

    `zeros` says that empty elements got noise like all others.
    """

    name: str
    dag: FeatureDag = field(repr=False)
    law: Law
    spent: float  # on it: ε, or ρ where its law is paid for in ρ
    values: Ints = field(repr=False)
    elements: Ints | None = field(default=None, repr=False)
    floor: Ints | int | None = field(default=None, repr=False)
    zeros: bool = True

    @property
    def adaptive(self) -> bool:
        """Whether what is hidden depends on other answers' noise."""
        return isinstance(self.floor, np.ndarray)

    @property
    def size(self) -> int:
        return self.dag.size(self.name)

    def element_of(self, types: Ints) -> Ints:
        """The element that holds each trip type."""
        if self.name == SINGLETON:
            return types
        return self.dag.partition(self.name).element_of(self.dag.universe.unrank_codes(types))

    def cell_of(self, types: Ints) -> Ints:
        return self.dag.cells.partition.element_of(self.dag.universe.unrank_codes(types))

    def floor_at(self, elements: Ints) -> Ints:
        if self.floor is None:
            return np.full(len(elements), np.iinfo(np.int64).min // 2)
        if isinstance(self.floor, np.ndarray):
            return self.floor[self.cell_of(elements)]
        return np.full(len(elements), self.floor, dtype=np.int64)

    def at(self, elements: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """The noisy answer of each element, and whether it is shown."""
        if self.elements is None:
            return self.values[elements], np.ones(len(elements), dtype=bool)
        if not len(self.elements):
            return np.zeros(len(elements), dtype=np.int64), np.zeros(len(elements), dtype=bool)
        place = np.minimum(np.searchsorted(self.elements, elements), len(self.elements) - 1)
        return self.values[place], np.asarray(self.elements[place] == elements)


def noised(release: Release) -> list[Noised]:
    """All answers of a release whose noise has a declared law, coarse ones first."""
    return sorted([*_measured(release), *_tables(release)], key=lambda n: n.size)


def _measured(release: Release) -> Iterator[Noised]:
    for m in release.measurements:
        law = declared_law(m)
        if law is None or not law.whole or m.values.dtype.kind != "i":
            continue
        if m.elements is None or m.floor is not None:
            spent = m.rho if law.currency == "rho" else m.epsilon
            dag = release.levels or release.features
            yield Noised(m.feature, dag, law, float(spent or 0), m.values, m.elements, m.floor)


def _tables(release: Release) -> Iterator[Noised]:
    """Tables that are published as they were measured."""
    for name, table in release.tables.items():
        noise = release.recipe.tables.get(name)
        if noise is None or not noise.law.whole:
            continue
        shown = np.flatnonzero(table).astype(np.int64)
        floor = 0 if noise.threshold is None else math.ceil(noise.threshold) - 1
        law = noise.law.times(1.0)
        spent = float(spent_on(release, name).get(law.currency) or 0)
        yield Noised(name, release.features, law, spent, table[shown], shown, floor, not noise.skips_zeros)
