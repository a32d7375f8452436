"""The post-processing engine: noisy counts in, the closest consistent non-negative answer out, with a certificate."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp import compiler
from cbdp.compiler import Measurements, Weights
from cbdp.errors import CertificateError, InputError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.problem import bincount
from cbdp.solution import Solution
from cbdp.solvers import Solver, get

Floats = NDArray[np.float64]

TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Estimate:
    """A consistent, non-negative answer to every feature at once."""

    features: FeatureDag = field(repr=False)
    solution: Solution

    @cached_property
    def _cells(self) -> Floats:
        return bincount(self.features.cell_of_leaf, self.solution.leaves, self.features.cells.size)

    def counts(self, feature: str) -> Floats:
        """The count of each of the feature's elements, measured or not, in their order."""
        if feature == SINGLETON:
            return self.solution.leaves
        partition = self.features.partition(feature)
        held = self.features.cells.element_of_cell[feature]
        return bincount(held, self._cells, partition.size)

    def table(self, feature: str) -> dict[str, list[Hashable] | Floats]:
        """The counts with the attribute values that name their elements: columns for any data frame."""
        return {**self.features.partition(feature).keys(), "estimate": self.counts(feature)}


def post_process(
    features: FeatureDag,
    measurements: Measurements,
    *,
    weights: Weights = "size",
    solver: str | Solver | Any = "newton",
    tolerance: float = TOLERANCE,
    warm_start: Estimate | None = None,
) -> Estimate:
    """The consistent non-negative counts closest to noisy ones, wherever those come from.

    `measurements` maps features to noisy counts (arrays in the elements' order, or tables keyed by attribute values),
    or lists `Measurement`s. `weights` is "size" (the paper's), "uniform", "inverse-variance", or a mapping from
    features to one of these, a number, a number per element, or infinity for exact public counts. The answer is
    certified: if its optimality conditions are off by more than `tolerance`, this raises `CertificateError`.

    >>> import cbdp
    >>> dag = cbdp.FeatureDag(cbdp.Universe(origin=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by="time")])
    >>> noisy = {"total": [10], "time": [7, 2], "singleton": [5, -2, 3, 1]}
    >>> estimate = cbdp.post_process(dag, noisy)
    >>> estimate.counts("time").round(3).tolist(), estimate.solution.kkt_residual < 1e-12
    ([7.661, 2.051], True)
    """
    if not isinstance(tolerance, int | float) or not tolerance > 0:
        raise InputError(f"tolerance is {tolerance!r}, it must be a number above 0")
    if warm_start is not None and not isinstance(warm_start, Estimate):
        raise InputError(f"warm_start is of type {type(warm_start).__name__}: give an earlier Estimate")
    chosen = get(solver)
    problem = compiler.compile(features, measurements, weights)
    solution = chosen.solve(problem, None if warm_start is None else warm_start.solution)
    if not solution.kkt_residual <= tolerance:
        raise CertificateError(_uncertified(chosen, solution, tolerance))
    return Estimate(features, solution)


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
