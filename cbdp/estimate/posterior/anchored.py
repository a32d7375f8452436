"""Margins of few elements hold what leaves add up to.

How far sums of leaves are off is judged by how far they miss what was measured (shared.py). Of a feature of many elements that is
seen; of the total, or of a few periods, next to nothing is: one miss may be chance. And counts cannot be negative, so that noise of
fine tables moves their sums up. So a feature is held to what was measured of it, the more the fewer its elements are: to its own noisy counts and the sums
of finer ones, averaged by their precision, which no model and no clipping has touched. Leaves still decide where a feature's trips are.

The same goes for margins of few elements that were not measured but that tables add up to (modes, of a table by mode and period; the total). Each
gets a term of its own, at the best unbiased combination of what was measured of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.estimate.posterior.margins import groupings
from cbdp.estimate.posterior.rates import total_of
from cbdp.estimate.posterior.settings import TUNING
from cbdp.features import SINGLETON, TOTAL, Feature, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp.solvers.problem import Problem, Term, bincount


@dataclass(frozen=True, eq=False)
class Anchors:
    """What was measured of every feature: its own counts, and those of features that refine it."""

    features: FeatureDag
    measured: Mapping[str, Measurement]

    def hold(self, problem: Problem) -> Problem:
        """The program, with more weight on margins of few elements."""
        terms = [self._held(term) for term in problem.terms]
        seen = {term.element_of_cell.astype(np.int64).tobytes() for term in terms}
        derived = []
        for term in self._derived():
            key = term.element_of_cell.tobytes()
            if key not in seen:
                seen.add(key)
                derived.append(term)
        return replace(problem, terms=tuple(sorted([*derived, *terms], key=lambda term: len(term.target))))

    def _held(self, term: Term) -> Term:
        if not ((term.weight > 0) & (term.weight < 1 / TUNING.certain)).all():
            return term  # exact or next to it, or not all measured
        more = TUNING.anchored / len(term.target)
        target, _ = self._unbiased(term.element_of_cell, len(term.target))
        return replace(
            term, weight=term.weight * (1 + more), target=(term.target + more * target) / (1 + more)
        )

    def _derived(self) -> Iterator[Term]:
        """Terms of the margins of few elements that tables add up to."""
        universe = self.features.universe
        types = self.features.cells.partition.representatives()
        tables = [self.features.features[name] for name in self.measured if name not in (SINGLETON, TOTAL)]
        for by in groupings(universe):
            if not any(self._refines(table, by) for table in tables):
                continue
            partition = universe.partition(by)
            if not 1 < partition.size <= TUNING.anchored:
                continue
            element = partition.element_of(types).astype(np.int64)
            target, precision = self._unbiased(element, partition.size)
            if (precision > 0).all() and (precision < 1 / TUNING.certain).all():
                yield Term(
                    f"margin by {' × '.join(by)}",
                    element,
                    target,
                    precision * TUNING.anchored / partition.size,
                )

    def _refines(self, table: Feature, by: tuple[str, ...]) -> bool:
        """Does the margin follow from the table: is each of its attributes one of the table's, or of dimensions that the table has?"""
        dimensions = [name for name in table.by if name in self.features.universe.dimensions]
        return all(
            name in table.by or set(self.features.universe.attribute(name).of) <= set(dimensions)
            for name in by
        )

    def _unbiased(self, element_of_cell: NDArray[np.integer], size: int) -> tuple[Floats, Floats]:
        """The best unbiased combination of all measurements that refine a margin, and its precision."""
        if size == 1:
            whole = [m for m in self.measured.values() if m.variance is not None and m.elements is None]
            return np.array([total_of(whole, 0.0)]), np.array([sum(1.0 / np.sum(m.variance) for m in whole)])
        weighted, precision = np.zeros(size), np.zeros(size)
        for m in self.measured.values():
            inside = self._inside(m.feature, element_of_cell)
            if m.variance is None or m.elements is not None or inside is None:
                continue
            variance = bincount(inside, m.variance, size)
            weighted += bincount(inside, m.values.astype(float), size) / variance
            precision += 1.0 / variance
        return weighted / precision, precision

    def _inside(self, feature: str, element_of_cell: NDArray[np.integer]) -> Ints | None:
        """The margin's element that holds each of a feature's; None if they do not lie inside them."""
        if feature == SINGLETON:
            return np.asarray(element_of_cell[self.features.cell_of_leaf])
        own = self.features.cells.element_of_cell[feature]
        inside = np.full(self.features.size(feature), -1, dtype=np.int64)
        inside[own] = element_of_cell
        return inside if (inside[own] == element_of_cell).all() else None
