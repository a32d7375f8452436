"""How a QP is solved: the program as arrays, its certificate, and one ordered table of solvers, one file each."""

from __future__ import annotations

from cbdp.errors import SolverError
from cbdp.parts import Parts, instance_of
from cbdp.solvers.base import Answer, LiftedSolver, Solver

SOLVERS: Parts[Solver] = Parts(
    "solver",
    "cbdp.solvers",
    {
        "newton": "cbdp.solvers.newton:Newton",
        "piqp": "cbdp.solvers.piqp:Piqp",
        "osqp": "cbdp.solvers.osqp:Osqp",
        "cvxpy": "cbdp.solvers.cvxpy:Cvxpy",
        "highs": "cbdp.solvers.highs:Highs",
        "scipy": "cbdp.solvers.scipy:Scipy",
    },
    instance_of(Solver),
    SolverError,
    "cbdp.solvers.Solver or LiftedSolver",
)
get = SOLVERS.get
known = SOLVERS.known

__all__ = ["SOLVERS", "Answer", "LiftedSolver", "Solver", "get", "known"]
