"""OSQP (Stellato and others 2020), operator splitting: cheap iterations, the more of them the more noise outweighs counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from cbdp.arrays import Floats
from cbdp_solvers import LiftedSolver, check_positive
from cbdp_solvers.problem import LiftedQP, scale


@dataclass(frozen=True)
class Osqp(LiftedSolver):
    """The lifted program by `osqp.OSQP`."""

    name: ClassVar[str] = "osqp"
    about: ClassVar[str] = "operator splitting (ADMM): slow to settle where noise outweighs counts"
    package: ClassVar[str | None] = "osqp"
    install: ClassVar[str] = "pip install osqp"

    tolerance: float = 1e-7  # of the residuals, relative to the largest count
    max_iterations: int = 20_000

    def __post_init__(self) -> None:
        check_positive("osqp", tolerance=self.tolerance, max_iterations=self.max_iterations)

    def solve_lifted(self, qp: LiftedQP) -> tuple[Floats, Floats, int]:
        import osqp

        s = scale(qp)
        bounded = np.flatnonzero(np.isfinite(s.lower))
        bounds = sp.csr_matrix(sp.eye_array(len(s.lower), format="csr"))[bounded]
        solver = osqp.OSQP()
        solver.setup(
            s.hessian,
            s.linear,
            sp.csc_matrix(sp.vstack([s.ties, bounds])),
            np.concatenate([s.rhs, s.lower[bounded]]),
            np.concatenate([s.rhs, np.full(len(bounded), np.inf)]),
            eps_abs=self.tolerance,
            eps_rel=self.tolerance,
            max_iter=self.max_iterations,
            polishing=True,
            verbose=False,
        )
        # an answer at the iteration limit may still have the right support: the certificate decides
        result = solver.solve(raise_error=False)
        return *s.undo(*s.polished(result.x, result.y[: len(s.rhs)])), int(result.info.iter)
