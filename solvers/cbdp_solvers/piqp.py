"""PIQP (Schwan and others 2023), a proximal interior-point method: the fastest generic backend on these programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cbdp.arrays import Floats
from cbdp_solvers import LiftedSolver, check_positive
from cbdp_solvers.problem import LiftedQP, scale


@dataclass(frozen=True)
class Piqp(LiftedSolver):
    """The lifted program by `piqp.SparseSolver`."""

    name: ClassVar[str] = "piqp"
    about: ClassVar[str] = "proximal interior points: a few seconds for a million leaves"
    package: ClassVar[str | None] = "piqp"
    install: ClassVar[str] = "pip install 'cbdp[piqp]'"

    # of residuals and duality gap, relative to the largest count; leaves are off by its square root
    tolerance: float = 1e-12
    max_iterations: int = 250

    def __post_init__(self) -> None:
        check_positive("piqp", tolerance=self.tolerance, max_iterations=self.max_iterations)

    def solve_lifted(self, qp: LiftedQP) -> tuple[Floats, Floats, int]:
        import piqp

        s = scale(qp)
        solver = piqp.SparseSolver()
        for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
            setattr(solver.settings, name, self.tolerance)
        solver.settings.max_iter = self.max_iterations
        solver.setup(s.hessian, s.linear, s.ties, s.rhs, x_l=s.lower)
        solver.solve()
        result = solver.result
        return *s.undo(*s.polished(result.x, result.y)), int(result.info.iter)
