"""How a QP is solved: the program as arrays, its certificate, and the table of solvers. The code is the package `cbdp_solvers`, in solvers/."""

from cbdp_solvers import SOLVERS, Answer, LiftedSolver, Solver, get, known

__all__ = ["SOLVERS", "Answer", "LiftedSolver", "Solver", "get", "known"]
