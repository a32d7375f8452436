"""A solver as a hurried implementation may have used it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.ablation.errors import Floats
from cbdp.solvers import LiftedSolver
from cbdp_solvers.problem import LiftedQP


@dataclass(frozen=True)
class EarlyStop(LiftedSolver):
    """OSQP with its own default tolerances (1e-3), perhaps stopped early: an answer taken at its word."""

    name: ClassVar[str] = "osqp, as it comes"
    package: ClassVar[str | None] = "osqp"
    exact_values: ClassVar[bool] = False

    steps: int = 4000
    scaling: int = 10

    def solve_lifted(self, qp: LiftedQP) -> tuple[Floats, Floats, int]:
        import osqp
        import scipy.sparse as sp

        n, ties = len(qp.weight), qp.ties.shape[0]
        rows = sp.vstack([qp.ties, sp.eye(n)]).tocsc()
        low, high = (np.concatenate([np.zeros(ties), bound]) for bound in (qp.lower, qp.upper))
        solver = osqp.OSQP()
        settings = {"max_iter": self.steps, "scaling": self.scaling, "verbose": False}
        solver.setup(sp.diags(qp.weight).tocsc(), qp.linear, rows, low, high, **settings)
        found = solver.solve()
        return found.x, found.y[:ties], int(found.info.iter)
