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
from numpy.typing import NDArray

from cbdp.problem import LiftedQP

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scaled:
    """minimise ½ Σ weight_v z_v² + linear_v z_v  subject to  ties @ z = rhs  and  z ≥ lower: weight_v is 1 or 0."""

    weight: Floats
    linear: Floats
    ties: Any  # scipy csc matrix, of the form osqp and piqp insist on
    rhs: Floats
    lower: Floats
    _qp: LiftedQP
    _free: NDArray[np.bool_]  # which of the lifted program's variables these are; the others are exact
    _variables: Floats  # τ / s
    _rows: Floats  # what turns multipliers into the lifted program's

    @property
    def hessian(self) -> Any:
        return sp.diags_array(self.weight, format="csc")

    def undo(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """x and the multipliers of `qp.ties` from z and those of `ties`, in the sign of Lz = … + yᵀ(ties z − rhs)."""
        x = self._qp.target.copy()
        x[self._free] = self._variables * np.asarray(z, dtype=float)
        return x, self._rows * np.asarray(y, dtype=float)


def scaled(qp: LiftedQP) -> Scaled:
    """The lifted program in even units."""
    free = qp.lower < qp.upper
    weight = qp.weight[free]
    measured = weight > 0
    unit = float(np.exp(np.mean(np.log(weight[: qp.leaves])))) if qp.leaves else 1.0
    most = 1.0 + float(np.max(np.abs(qp.target[: qp.leaves]), initial=0.0))
    variables = most / np.sqrt(np.where(measured, weight / unit, 1.0))
    columns = qp.ties[:, free] @ sp.diags_array(variables)
    rhs = -(qp.ties[:, ~free] @ qp.target[~free])
    length = np.sqrt(np.asarray(columns.multiply(columns).sum(axis=1)).ravel())
    rows = 1.0 / np.where(length > 0, length, 1.0)
    return Scaled(
        weight=measured.astype(float),
        linear=np.where(measured, -qp.target[free] / variables, 0.0),
        ties=sp.csc_matrix(sp.diags_array(rows) @ columns),
        rhs=rows * rhs,
        lower=qp.lower[free] / variables,
        _qp=qp,
        _free=free,
        _variables=variables,
        _rows=unit * most**2 * rows,
    )
