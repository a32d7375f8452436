"""SciPy's bounded least squares (trust region reflective: Branch, Coleman and Li 1999): no extra package, for small problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from cbdp.errors import SolverError
from cbdp_solvers import Answer, Solver, check_positive
from cbdp_solvers.problem import Problem
from cbdp_solvers.solution import Solution


@dataclass(frozen=True)
class Scipy(Solver):
    """Over the leaves alone, by `scipy.optimize.lsq_linear`: each term is a row √w_ij ((A x)_ij − c_ij) per element."""

    name: ClassVar[str] = "scipy"
    about: ClassVar[str] = "bounded least squares over the leaves: nothing to install, for small problems"
    exact_values: ClassVar[bool] = False  # it knows no equality constraints
    largest: ClassVar[int | None] = 2_000  # seconds there; at 6,400 not done in minutes

    tolerance: float = 1e-14  # relative: of the inner least-squares solves and of the cost's last decrease
    max_iterations: int = 200

    def __post_init__(self) -> None:
        check_positive("scipy", tolerance=self.tolerance, max_iterations=self.max_iterations)

    def answer(self, problem: Problem, warm_start: Solution | None) -> Answer:  # noqa: ARG002
        from scipy.optimize import lsq_linear

        n = len(problem.target)
        weight = np.broadcast_to(np.asarray(problem.weight, dtype=float), n)
        unit = float(np.exp(np.mean(np.log(weight))))
        most = 1.0 + float(np.max(np.abs(problem.target), initial=0.0))
        blocks, targets = [sp.diags_array(np.sqrt(weight / unit))], [problem.target * np.sqrt(weight / unit)]
        for term in problem.terms:
            of_leaf = term.element_of_cell[problem.cell]
            root = np.sqrt(term.weight / unit)
            shape = (len(term.target), n)
            blocks.append(sp.csr_array((root[of_leaf], (of_leaf, np.arange(n))), shape=shape))
            targets.append(root * term.target)
        result = lsq_linear(
            sp.csr_array(sp.vstack(blocks)),
            np.concatenate(targets) / most,
            bounds=(0.0, np.inf),
            tol=self.tolerance,
            lsmr_tol=self.tolerance,
            max_iter=self.max_iterations,
        )
        if not np.isfinite(result.x).all():
            raise SolverError("solver 'scipy' returned values that are not numbers. Try 'newton'.")
        leaves = most * result.x
        cells = np.bincount(problem.cell, weights=leaves, minlength=problem.cells).astype(float)
        prices = {t.name: t.weight * (t.sums(cells) - t.target) for t in problem.terms}
        return Answer(leaves, prices, int(result.nit))
