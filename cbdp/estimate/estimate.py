"""A consistent, non-negative answer to every feature at once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import CertificateError, InputError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.solvers import Solver
from cbdp.solvers.problem import Problem, bincount
from cbdp.solvers.solution import Solution

LISTED = 2**28  # trip types up to which counts of all of them may be asked for at once


@dataclass(frozen=True, eq=False)
class Estimate:
    """A consistent, non-negative answer to every feature at once.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> noisy = [cbdp.Measurement("singleton", [2, -1, 0, 4], 1), cbdp.Measurement("time", [3, 3], 1)]
    >>> estimate = cbdp.post_process(features, noisy, estimator="projection")
    >>> estimate.counts("time").round(2).tolist(), bool((estimate.counts("singleton") >= 0).all())
    ([2.8, 3.33], True)
    """

    features: FeatureDag = field(repr=False)
    solution: Solution
    index: Ints | None = field(default=None, repr=False)  # the solution's leaves; None: all, in their order

    @cached_property
    def _cells(self) -> Floats:
        index, value = self.trips()
        cell = self.features.cells.partition.element_of(self.features.universe.unrank_codes(index))
        return bincount(cell, value, self.features.cells.size)

    def trips(self) -> tuple[Ints, Floats]:
        """The trip types whose count is above zero, in ascending order, and their counts."""
        here = np.flatnonzero(self.solution.leaves > 0)
        return (here if self.index is None else self.index[here]), self.solution.leaves[here]

    def counts(self, feature: str) -> Floats:
        """The count of each of the feature's elements, measured or not, in their order."""
        if feature == SINGLETON:
            return self._leaves()
        partition = self.features.partition(feature)
        held = self.features.cells.element_of_cell[feature]
        return bincount(held, self._cells, partition.size)

    def _leaves(self) -> Floats:
        size = self.features.universe.size
        if self.index is None:
            return self.solution.leaves
        if size > LISTED:
            raise InputError(
                f"counts of all {size:,} trip types do not fit: use trips(), which lists those above 0"
            )
        leaves = np.zeros(size)
        leaves[self.index] = self.solution.leaves
        return leaves

    def table(self, feature: str) -> dict[str, list[Hashable] | Floats]:
        """The counts with the attribute values that name their elements: columns for any data frame."""
        return {**self.features.partition(feature).keys(), "estimate": self.counts(feature)}


def certified(
    features: FeatureDag, problem: Problem, solution: Solution, solver: Solver, tolerance: float
) -> Estimate:
    """The estimate that a solution is, if its certificate is good enough."""
    if not solution.kkt_residual <= tolerance:
        raise CertificateError(_uncertified(solver, solution, tolerance))
    return Estimate(features, solution, problem.index)


def _uncertified(solver: Solver, solution: Solution, tolerance: float) -> str:
    c = solution.certificate
    parts = {n: getattr(c, n) for n in ("stationarity", "feasibility", "complementarity", "consistency")}
    worst = max(parts, key=lambda n: parts[n])
    cure = (
        "loosen the tolerance" if solver.name == "newton" else "tighten its settings or use solver='newton'"
    )
    return (
        f"solver {solver.name!r} returned an answer whose {worst} is off by {parts[worst]:.1e} (relative), "
        f"more than the tolerance {tolerance:.0e}: {cure}"
    )
