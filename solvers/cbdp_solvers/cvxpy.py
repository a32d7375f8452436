"""Any of the quadratic solvers that CVXPY (Diamond and Boyd 2016) drives: by default Clarabel (Goulart and Chen 2024), interior points."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cbdp.arrays import Floats
from cbdp.errors import InputError, SolverError
from cbdp_solvers import LiftedSolver, check_positive
from cbdp_solvers.problem import LiftedQP, scale

# Each backend's names of its tolerances, and its other options: CVXPY passes these on and has defaults of its own for OSQP.
BACKEND_SETTINGS: Mapping[str, tuple[tuple[str, ...], Mapping[str, float]]] = {
    "CLARABEL": (("tol_gap_abs", "tol_gap_rel", "tol_feas"), {}),
    "PIQP": (("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"), {}),
    "OSQP": (("eps_abs", "eps_rel"), {"max_iter": 20_000, "polishing": True}),
    "SCS": (("eps_abs", "eps_rel"), {"max_iters": 100_000}),
}
# first-order methods: a tolerance that is out of reach only wastes time
FIRST_ORDER_BACKENDS = ("OSQP", "SCS")


@dataclass(frozen=True)
class Cvxpy(LiftedSolver):
    """The lifted program as a `cvxpy.Problem`."""

    name: ClassVar[str] = "cvxpy"
    about: ClassVar[str] = f"a solver that CVXPY drives: {', '.join(BACKEND_SETTINGS)}"
    package: ClassVar[str | None] = "cvxpy"
    install: ClassVar[str] = "pip install cvxpy"

    solver: str = "CLARABEL"
    # as the backend defines it; None: 1e-12 by interior points, 1e-7 by splitting
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.solver not in BACKEND_SETTINGS:
            raise InputError(f"cvxpy: unknown solver {self.solver!r}: choose {', '.join(BACKEND_SETTINGS)}")
        if self.tolerance is not None:
            check_positive("cvxpy", tolerance=self.tolerance)

    def solve_lifted(self, qp: LiftedQP) -> tuple[Floats, Floats, int]:
        import cvxpy as cp

        if self.solver not in cp.installed_solvers():
            raise SolverError(f"cvxpy has no {self.solver}: pip install {self.solver.lower()}")
        s = scale(qp)
        z = cp.Variable(len(s.linear))
        bounded = np.flatnonzero(np.isfinite(s.lower))
        ties = s.ties @ z == s.rhs
        cost = 0.5 * cp.quad_form(z, s.hessian, assume_PSD=True) + s.linear @ z
        problem = cp.Problem(cp.Minimize(cost), [ties, z[bounded] >= s.lower[bounded]])
        with warnings.catch_warnings():  # "may be inaccurate": the certificate tells
            warnings.simplefilter("ignore")
            problem.solve(solver=self.solver, **self._options())
        if z.value is None or ties.dual_value is None:
            raise SolverError(f"cvxpy's {self.solver} gave no answer ({problem.status}). Try 'newton'.")
        return *s.undo(*s.polished(z.value, ties.dual_value)), int(problem.solver_stats.num_iters or 0)

    def _options(self) -> dict[str, float]:
        names, others = BACKEND_SETTINGS[self.solver]
        tolerance = self.tolerance or (1e-7 if self.solver in FIRST_ORDER_BACKENDS else 1e-12)
        return {**dict.fromkeys(names, tolerance), **others}
