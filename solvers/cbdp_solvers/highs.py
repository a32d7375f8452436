"""HiGHS: its interior-point method HiPO (Zanetti and Gondzio 2025) where highspy-extras is installed, else the active-set method of its QP solver."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cbdp.arrays import Floats
from cbdp.errors import SolverError
from cbdp_solvers import LiftedSolver, check_positive
from cbdp_solvers.problem import LiftedQP, ScaledQP, scale

if TYPE_CHECKING:
    import highspy

MAX_ACTIVE_SET_LEAVES = 2_000  # leaves: the active-set method changes one at a time


@dataclass(frozen=True)
class Highs(LiftedSolver):
    """The lifted program by `highspy.Highs`."""

    name: ClassVar[str] = "highs"
    about: ClassVar[str] = "interior points (HiPO, from highspy-extras), or an active set for small problems"
    package: ClassVar[str | None] = "highspy"
    install: ClassVar[str] = "pip install highspy highspy-extras"

    tolerance: float = 1e-10  # of residuals and gap, relative to the largest count; HiGHS takes none below

    def __post_init__(self) -> None:
        check_positive("highs", tolerance=self.tolerance)

    def solve_lifted(self, qp: LiftedQP) -> tuple[Floats, Floats, int]:
        import highspy

        hipo = importlib.util.find_spec("highspy_extras") is not None
        if not hipo and qp.leaves > MAX_ACTIVE_SET_LEAVES:
            raise SolverError(
                f"highs without HiPO handles at most {MAX_ACTIVE_SET_LEAVES:,} trip types; this problem has {qp.leaves:,}: "
                "pip install highspy-extras, or use 'newton'"
            )
        s = scale(qp)
        highs = highspy.Highs()
        highs.silent()
        highs.setOptionValue("solver", "hipo" if hipo else "qpasm")
        highs.setOptionValue("kkt_tolerance", max(self.tolerance, 1e-10))
        highs.setOptionValue("ipm_optimality_tolerance", max(self.tolerance / 100, 1e-12))
        highs.passModel(_highs_model(s))
        highs.run()
        solution, info = highs.getSolution(), highs.getInfo()
        if not solution.value_valid or not solution.dual_valid:
            status = highs.modelStatusToString(highs.getModelStatus())
            raise SolverError(f"highs gave no answer ({status}). Try 'newton'.")
        # HiGHS' row duals have the opposite sign
        z, y = np.array(solution.col_value), -np.array(solution.row_dual)
        return *s.undo(*s.polished(z, y)), max(info.ipm_iteration_count, info.qp_iteration_count)


def _highs_model(s: ScaledQP) -> highspy.HighsModel:
    import highspy

    model = highspy.HighsModel()
    lp, hessian, p = model.lp_, model.hessian_, s.hessian
    lp.num_row_, lp.num_col_ = s.ties.shape
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = s.linear, s.lower, np.full(len(s.linear), np.inf)
    lp.row_lower_, lp.row_upper_ = s.rhs, s.rhs
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = s.ties.indptr, s.ties.indices, s.ties.data
    hessian.dim_, hessian.format_ = p.shape[0], highspy.HessianFormat.kTriangular
    hessian.start_, hessian.index_, hessian.value_ = p.indptr, p.indices, p.data
    return model
