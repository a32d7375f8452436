"""Features of few elements hold what leaves add up to.

How far sums of leaves are off is judged by how far they miss what was measured (shared.py). Of a feature of many elements that is
seen; of the total, or of a few periods, next to nothing is: one miss may be chance. And counts cannot be negative, so that noise of
fine tables moves their sums up. So a feature is held to what was measured of it, the more the fewer its elements are: to its own noisy counts and the sums
of finer ones, averaged by their precision, which no model and no clipping has touched. Leaves still decide where a feature's trips are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cbdp.estimate.posterior.rates import total_of
from cbdp.estimate.posterior.settings import TUNING
from cbdp.features import SINGLETON, TOTAL, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp.solvers.problem import Problem, Term, bincount

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Anchors:
    """What was measured of every feature: its own counts, and those of features that refine it."""

    features: FeatureDag
    measured: Mapping[str, Measurement]

    def hold(self, problem: Problem) -> Problem:
        """The program, with more weight on features of few elements."""
        return replace(problem, terms=tuple(self._held(term) for term in problem.terms))

    def _held(self, term: Term) -> Term:
        if not ((term.weight > 0) & (term.weight < 1 / TUNING.certain)).all():
            return term  # exact or next to it, or not all measured
        more = TUNING.anchored / len(term.target)
        return replace(
            term,
            weight=term.weight * (1 + more),
            target=(term.target + more * self._measured(term.name)) / (1 + more),
        )

    def _measured(self, name: str) -> Floats:
        if name == TOTAL:
            return np.array([total_of(list(self.measured.values()), 0.0)])
        told, precision = np.zeros(self.features.size(name)), np.zeros(self.features.size(name))
        for m in self.measured.values():
            if m.variance is None or m.elements is not None:
                continue
            inside = self._inside(m.feature, name)
            if inside is None:
                continue
            spread = bincount(inside, m.variance, len(told))
            told += bincount(inside, m.values.astype(float), len(told)) / spread
            precision += 1.0 / spread
        return told / precision

    def _inside(self, fine: str, coarse: str) -> NDArray[np.int64] | None:
        """The coarse element that holds each fine one; None if fine ones do not lie inside them."""
        if fine == coarse:
            return np.arange(self.features.size(fine))
        if fine == SINGLETON:
            found: NDArray[np.int64] = self.features.cells.element_of_cell[coarse][self.features.cell_of_leaf]
            return found
        if not self.features.graph.has_edge(fine, coarse):
            return None
        return np.asarray(self.features.map_elements(fine, coarse))
