"""How a QP is solved: one ordered table of our solvers, and whoever else registers in the group `cbdp.solvers`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from cbdp.errors import SolverError
from cbdp.solvers.base import Answer, LiftedSolver, Solver

TABLE: Mapping[str, str] = {  # in the order we would choose them
    "newton": "cbdp.solvers.newton:Newton",
    "piqp": "cbdp.solvers.piqp:Piqp",
    "osqp": "cbdp.solvers.osqp:Osqp",
    "cvxpy": "cbdp.solvers.cvxpy:Cvxpy",
    "highs": "cbdp.solvers.highs:Highs",
    "scipy": "cbdp.solvers.scipy:Scipy",
}
GROUP = "cbdp.solvers"


def known() -> dict[str, str]:
    """Every solver's name and where it is found, ours first; nothing of it is imported."""
    others = {e.name: e.value for e in entry_points(group=GROUP)}
    return {**TABLE, **{name: where for name, where in sorted(others.items()) if name not in TABLE}}


def get(solver: str | Solver | type[Solver] | Any) -> Solver:
    """A solver by its name, as "package.module:attribute", as a class, or as it is."""
    if isinstance(solver, str):
        where = TABLE.get(solver) or known().get(
            solver, solver
        )  # installed packages are searched for strangers only
        if ":" not in where:
            raise SolverError(
                f"unknown solver {solver!r}: there are {', '.join(known())}, or name one as 'package.module:attribute'"
            )
        solver = _load(where)
    if isinstance(solver, type) and issubclass(solver, Solver):
        solver = solver()
    if not isinstance(solver, Solver):
        raise SolverError(f"{solver!r} is not a solver: subclass cbdp.solvers.Solver or LiftedSolver")
    return solver


def _load(where: str) -> Any:
    module, _, attribute = where.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as failure:
        raise SolverError(f"solver {where!r} cannot be loaded: {failure}") from failure


__all__ = ["GROUP", "TABLE", "Answer", "LiftedSolver", "Solver", "get", "known"]
