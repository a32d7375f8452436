"""The lifted program in units that a generic solver's tolerances suit, and the way back.

Weights of 1/n_i make the total weigh 10⁵ times a leaf or more, so that a solver's "solved" can be far off in trips.
Here x = τ z / s with s = √(weight / unit) and τ about the largest count: every measured variable then weighs 1. Exact
counts are constants, moved to the right-hand side, and rows are divided by their length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from numpy.typing import NDArray

from cbdp.arrays import Floats
from cbdp.solvers.problem import LiftedQP

STEPS = 3  # of polish: enough to repair a few leaves, too few to stand in for the solver
SPECK = (
    1e-10  # curvature for multipliers of rows that exact counts make redundant; proximal steps undo its bias
)


@dataclass(frozen=True, eq=False)
class Scaled:
    """minimise Σ ½ weight_v z_v² + linear_v z_v  subject to  ties @ z = rhs  and  z ≥ lower; weight_v is 1 or 0.

    The multipliers y of `ties` have the sign of stationarity  weight·z + linear + tiesᵀ y = reduced ≥ 0.
    """

    weight: Floats
    linear: Floats
    ties: Any  # csc_matrix, not csc_array: osqp insists
    rhs: Floats
    lower: Floats
    qp: LiftedQP
    free: NDArray[np.bool_]  # which of the lifted program's variables these are; the others are exact
    of_variable: Floats  # τ / s
    of_row: Floats  # what turns multipliers of `ties` into those of `qp.ties`

    @property
    def hessian(self) -> Any:
        return sp.csc_matrix(sp.diags_array(self.weight))

    def undo(self, z: Any, y: Any) -> tuple[Floats, Floats]:
        """x and the multipliers of `qp.ties`."""
        x = self.qp.target.copy()
        x[self.free] = self.of_variable * np.asarray(z, dtype=float)
        return x, self.of_row * np.asarray(y, dtype=float)

    def polished(self, z: Any, y: Any) -> tuple[Floats, Floats]:
        """A few exact steps, each on the support that the one before points to, while they make it better.

        Interior points end with z·reduced = μ, so leaves near zero are still off by √μ though their support is right.
        """
        z, y = np.asarray(z, dtype=float), np.asarray(y, dtype=float)
        for _ in range(STEPS):
            better = _on_support(self, z - self.lower > self._reduced(z, y), y)
            if not self.violation(*better) < self.violation(z, y):
                break
            z, y = better
        return z, y

    def violation(self, z: Floats, y: Floats) -> float:
        """The largest violation of the optimality conditions, in these units; infinite if something is not a number."""
        reduced, above = self._reduced(z, y), z - self.lower
        parts = np.abs(self.ties @ z - self.rhs), -above, -reduced, np.minimum(above, reduced)
        worst = max(float(np.max(part, initial=0.0)) for part in parts)
        return worst if np.isfinite(worst) else np.inf

    def _reduced(self, z: Floats, y: Floats) -> Floats:
        return np.asarray(self.weight * z + self.linear + self.ties.T @ y)


def scaled(qp: LiftedQP) -> Scaled:
    """The lifted program in even units."""
    free = qp.lower < qp.upper
    weight, target = qp.weight[free], qp.target[free]
    measured = weight > 0
    unit = float(np.exp(np.mean(np.log(weight[: qp.leaves]))))
    most = 1.0 + float(np.max(np.abs(qp.target[: qp.leaves]), initial=0.0))
    of_variable = most / np.sqrt(np.where(measured, weight / unit, 1.0))
    columns = qp.ties[:, free] @ sp.diags_array(of_variable)
    length = np.sqrt(np.asarray(columns.multiply(columns).sum(axis=1)).ravel())
    rows = 1.0 / np.where(length > 0, length, 1.0)
    return Scaled(
        weight=measured.astype(float),
        linear=np.where(measured, -target / of_variable, 0.0),
        ties=sp.csc_matrix(sp.diags_array(rows) @ columns),
        rhs=-rows * (qp.ties[:, ~free] @ qp.target[~free]),
        lower=qp.lower[free] / of_variable,
        qp=qp,
        free=free,
        of_variable=of_variable,
        of_row=unit * most**2 * rows,
    )


def _on_support(s: Scaled, support: NDArray[np.bool_], y: Floats) -> tuple[Floats, Floats]:
    """The optimum with variables off the support at their bound: z = −linear − tiesᵀy where measured, and a system for y."""
    here, loose = support & (s.weight > 0), support & (s.weight == 0)
    z = np.where(support, 0.0, s.lower)
    ties, slack = s.ties[:, here], s.ties[:, loose]
    rows, others = s.ties.shape[0], slack.shape[1]
    normal = ties @ ties.T + SPECK * sp.eye_array(rows)
    system = spl.splu(sp.csc_matrix(sp.block_array([[normal, -slack], [-slack.T, None]])))
    wanted = -(ties @ s.linear[here]) - s.rhs + s.ties @ z
    for _ in range(3):
        found = system.solve(np.concatenate([wanted + SPECK * y, np.zeros(others)]))
        y = found[:rows]
    z[here] = -s.linear[here] - ties.T @ y
    z[loose] = found[rows:]
    return z, y
