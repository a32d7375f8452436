"""A solution and its certificate: the optimality conditions, computed here for every solver; no backend's word is taken for it.

The Karush–Kuhn–Tucker conditions and the duality gap (Boyd and Vandenberghe 2004, section 5.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cbdp.arrays import Floats

if TYPE_CHECKING:
    from cbdp_solvers.problem import Problem


# relative error that a sum of a few prices or counts may carry
SUM_ROUNDING_ERROR = 8 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class Certificate:
    """The optimality conditions, each as its largest violation in trips relative to the largest count involved.

    Leaves x and prices λ are optimal exactly when all four are zero: x_u = max(0, c_u − s_k/w_u) splits into
    stationarity, feasibility and complementarity; consistency is c_ij + λ_ij/w_ij = (A_i x)_j.
    """

    stationarity: float
    feasibility: float
    complementarity: float
    consistency: float
    gap: float  # primal minus dual objective, relative: Σ w (x − x*)² is at most this much of the objective

    @property
    def residual(self) -> float:
        """The worst of the four."""
        worst = max(self.stationarity, self.feasibility, self.complementarity, self.consistency)
        return worst if np.isfinite(worst) else float("inf")


@dataclass(frozen=True, eq=False)
class Solution:
    """Leaves, the price of every feature's elements, and the certificate."""

    leaves: Floats = field(repr=False)
    prices: Mapping[str, Floats] = field(repr=False)
    certificate: Certificate
    objective: float
    solver: str
    iterations: int
    shift: Floats | None = field(default=None, repr=False)  # by cell, where the prices alone are too coarse

    @property
    def kkt_residual(self) -> float:
        return self.certificate.residual


def certify(
    problem: Problem, leaves: Floats, prices: Mapping[str, Floats], shift: Floats | None = None
) -> tuple[Certificate, float]:
    """The certificate of leaves and prices, and the objective of the leaves.

    A solver may pass the cells' shifts where it has them more precisely than as sums of rounded prices: they are
    taken where they differ from the sums by no more than rounding.
    """
    from cbdp_solvers.passes import condition_violations  # compiled code is loaded when something is solved

    slack = 1.0 / np.atleast_1d(np.asarray(problem.weight, dtype=float))
    summed = problem.shifts(prices)
    magnitude = problem.shifts({name: np.abs(p) for name, p in prices.items()})
    if shift is None or not (np.abs(shift - summed) <= SUM_ROUNDING_ERROR * magnitude).all():
        shift = summed
    else:
        magnitude = np.abs(shift)
    sums, active, worst = condition_violations(problem.target, slack, problem.cell, shift, leaves)
    if not all(np.isfinite(v).all() for v in (sums, worst[:3], *prices.values())):
        nothing = float("inf")
        return Certificate(nothing, nothing, nothing, nothing, nothing), nothing
    # leaves that are not listed are 0: optimal if their counts are below their shift
    if problem.floor is not None:
        worst[0] = max(worst[0], float(np.max(problem.floor - shift * slack[0])))
    # magnitudes of the summands: what rounding alone can cause is not counted as a violation
    handled = np.abs(sums) + active * magnitude
    scale = 1.0 + float(worst[5])
    consistency = 0.0
    cost, dual = float(worst[3]), -float(worst[4])
    for term in problem.terms:
        price, sums_of_leaves = prices[term.name], term.sums(sums)
        exact, measured = np.isinf(term.weight), term.weight > 0
        room = np.divide(price, term.weight, out=np.zeros_like(price), where=measured)
        off = np.where(measured, term.target + room - sums_of_leaves, price / np.max(problem.weight))
        rounding = SUM_ROUNDING_ERROR * (term.sums(handled) + np.abs(term.target) + np.abs(room))
        off = np.maximum(np.abs(off) - rounding, 0.0)
        consistency = max(consistency, _max_abs(off) / (1.0 + _max_abs(term.target)))
        soft = measured & ~exact
        cost += float(np.sum(term.weight[soft] * (sums_of_leaves - term.target)[soft] ** 2))
        dual -= float(np.sum((price * (room + 2 * term.target))[measured]))
    # both are the objective Σ w (x − c)²: dual = −Σ w (x̂² − c²) − Σ (λ²/w + 2 c λ), x̂ the leaves of these prices
    gap = max(0.0, cost - dual) / max(1.0, abs(cost))
    stationarity, feasibility, complementarity = (float(v) / scale for v in worst[:3])
    return Certificate(stationarity, feasibility, complementarity, consistency, gap), cost


def _max_abs(values: Floats) -> float:
    """The largest magnitude, without a temporary array (NaN stays NaN)."""
    return max(abs(float(np.max(values))), abs(float(np.min(values)))) if len(values) else 0.0
