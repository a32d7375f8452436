"""A solution and its certificate: the optimality conditions, computed here for every solver; no backend's word is taken for it.

The Karush–Kuhn–Tucker conditions and the duality gap (Boyd and Vandenberghe 2004, section 5.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cbdp.arrays import Floats, Numbers

if TYPE_CHECKING:
    from cbdp_solvers.problem import Problem


# relative error that a sum of a few prices or counts may carry
SUM_ROUNDING_ERROR = 8 * float(np.finfo(float).eps)
# violation, relative to the largest count, that may be put down to prices that cancel: a tenth of the default tolerance, however large they are
MAX_CANCELLATION = 1e-7
MAX_NATURAL_PRICES = (
    1e3  # times the largest weight times the largest count, up to which a cell's prices may add up
)
GAP_ROUNDING_ERROR = 1e-12  # relative error of the sums over all leaves that the gap is the difference of


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
    # Primal minus dual objective, relative to max(1, objective). Where x meets the exact counts, Σ w (x − x*)² is at most gap · max(1, objective).
    # Infinite where it is negative by more than rounding, as it can be only where exact counts are missed: there it bounds nothing.
    gap: float

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
    taken where they differ from the sums by no more than rounding. What is put down to rounding has a limit
    (`MAX_CANCELLATION`): prices so large that their sums say nothing certify nothing.
    """
    from cbdp_solvers.passes import condition_violations  # compiled code is loaded when something is solved

    inverse_weight = 1.0 / np.atleast_1d(np.asarray(problem.weight, dtype=float))
    summed = problem.shifts(prices)
    magnitude = problem.shifts({name: np.abs(p) for name, p in prices.items()})
    if shift is None or not (np.abs(shift - summed) <= _excusable(problem, magnitude)).all():
        shift = summed
    else:
        magnitude = np.abs(shift)
    sums, active, worst = condition_violations(problem.target, inverse_weight, problem.cell, shift, leaves)
    if not all(np.isfinite(v).all() for v in (sums, worst[:3], *prices.values())):
        nothing = float("inf")
        return Certificate(nothing, nothing, nothing, nothing, nothing), nothing
    # leaves that are not listed are 0: optimal if their counts are below their shift
    if problem.floor is not None:
        worst[0] = max(worst[0], float(np.max(problem.floor - shift * inverse_weight[0])))
    # magnitudes of the summands: what rounding alone can cause is not counted as a violation
    handled = np.abs(sums) + active * magnitude
    scale = 1.0 + float(worst[5])
    consistency = 0.0
    cost, dual = float(worst[3]), -float(worst[4])
    # of the numbers added up, from above: c² ≤ 2 x² + 2 (x − c)²
    size = 5 * cost + 4 * _weighted_squares(problem.weight, leaves)
    for term in problem.terms:
        price, sums_of_leaves = prices[term.name], term.sums(sums)
        exact, measured = np.isinf(term.weight), term.weight > 0
        deviation = np.divide(price, term.weight, out=np.zeros_like(price), where=measured)
        off = np.where(measured, term.target + deviation - sums_of_leaves, price / np.max(problem.weight))
        largest = 1.0 + _max_abs(term.target)
        rounding = SUM_ROUNDING_ERROR * (term.sums(handled) + np.abs(term.target) + np.abs(deviation))
        of_counts = SUM_ROUNDING_ERROR * (np.abs(sums_of_leaves) + np.abs(term.target) + np.abs(deviation))
        rounding = np.minimum(rounding, of_counts + MAX_CANCELLATION * largest)
        off = np.maximum(np.abs(off) - rounding, 0.0)
        consistency = max(consistency, _max_abs(off) / largest)
        soft = measured & ~exact
        cost += float(np.sum(term.weight[soft] * (sums_of_leaves - term.target)[soft] ** 2))
        dual -= float(np.sum((price * (deviation + 2 * term.target))[measured]))
        size += float(np.sum((np.abs(price) * (np.abs(deviation) + 2 * np.abs(term.target) + 1.0))[measured]))
    # both are the objective Σ w (x − c)²: dual = −Σ w (x̂² − c²) − Σ (λ²/w + 2 c λ), x̂ the leaves of these prices
    gap = max(0.0, cost - dual) / max(1.0, abs(cost))
    if dual - cost > GAP_ROUNDING_ERROR * (size + cost):
        gap = float("inf")
    stationarity, feasibility, complementarity = (float(v) / scale for v in worst[:3])
    return Certificate(stationarity, feasibility, complementarity, consistency, gap), cost


def _excusable(problem: Problem, magnitude: Floats) -> Floats:
    """By how much each cell's shift may differ from the sum of its prices: by their rounding, of prices as large as a solution can have.

    A soft feature's price is w (x − target), and those of exact features hold soft ones in balance: beyond `MAX_NATURAL_PRICES` times the
    largest weight times the largest count, prices are of no solution, and their rounding excuses nothing.
    """
    scale = 1.0 + _max_abs(problem.target)
    weight = float(np.max(problem.weight))
    for term in problem.terms:
        scale = max(scale, 1.0 + _max_abs(term.target))
        weight = max(weight, float(np.max(term.weight, where=np.isfinite(term.weight), initial=0.0)))
    return SUM_ROUNDING_ERROR * np.minimum(magnitude, MAX_NATURAL_PRICES * weight * scale)


def _weighted_squares(weight: float | Floats, leaves: Floats) -> float:
    if np.ndim(weight) == 0:
        return float(weight * np.dot(leaves, leaves))
    return float(np.einsum("i,i,i->", np.broadcast_to(weight, len(leaves)), leaves, leaves))


def _max_abs(values: Numbers) -> float:
    """The largest magnitude, without a temporary array (NaN stays NaN)."""
    return max(abs(float(np.max(values))), abs(float(np.min(values)))) if len(values) else 0.0
