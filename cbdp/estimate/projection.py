"""Projection: the consistent non-negative counts closest to the noisy ones, as in the papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError, SolverError
from cbdp.estimate.base import Estimator, Program
from cbdp.estimate.compiler import compile as compiled
from cbdp.estimate.estimate import Estimate, certified
from cbdp.estimate.floors import MARGIN, first_floors, merged_floors
from cbdp.features import FeatureDag
from cbdp.privacy.measurement import Measurement, Revealing
from cbdp.progress import tell
from cbdp.solvers.problem import Problem
from cbdp.solvers.solution import Solution

ROUNDS = 50
NEARLY = 1e-6  # of a trip: what rounding may be off
PATIENCE = 6  # rounds in which a solver may fail for want of leaves


@dataclass(frozen=True)
class Projection(Estimator):
    """The quadratic program on the noisy counts alone."""

    name: ClassVar[str] = "projection"
    about: ClassVar[str] = "the closest consistent non-negative counts, as in the CBDP paper"

    def estimate(
        self, features: FeatureDag, measurements: Sequence[Measurement], program: Program
    ) -> Estimate:
        tell("solving")
        problem = compiled(features, measurements, program.weights)
        warm = None if program.warm_start is None else program.warm_start.solution
        solution = program.solver.solve(problem, warm)
        return certified(features, problem, solution, program.solver, program.tolerance)

    def estimate_above(
        self, features: FeatureDag, tables: Sequence[Measurement], leaves: Revealing, program: Program
    ) -> Estimate:
        """As `estimate`, asking for noisy counts of trip types only as far down as they can matter.

        A count that does not exceed its cell's shift is 0 in the answer, whatever it is (x_u = max(0, c_u − s_k)). So floors
        are set somewhat below where the shifts are expected to be, and lowered where a shift ends below its floor. The
        certificate is that of the problem with all trip types.
        """
        tell("solving")
        margin, warm = MARGIN, None
        leaves.lower(first_floors(features, tables, leaves))
        for rounds in range(ROUNDS):
            problem = compiled(features, [*tables, leaves.measurement()], program.weights)
            before = leaves.floor
            try:
                solution = program.solver.solve(problem, warm)
            except SolverError:
                if rounds == PATIENCE:
                    raise
                margin = 2 * margin  # perhaps exact counts cannot be met by the few leaves that are known
                below = margin * leaves.noise.falloff(leaves.floor)
                leaves.lower(np.floor(leaves.floor - below).astype(np.int64))
                continue
            shift = _shifts(problem, solution)
            low = shift < leaves.floor
            if not low.any():
                break
            # where no leaf is known the shift says little: go down a little at a time
            margin, warm = 2 * margin, solution
            below = margin * leaves.noise.falloff(leaves.floor)
            lower = np.maximum(shift, leaves.floor) - below
            leaves.lower(merged_floors(np.where(low, lower, leaves.floor), features, leaves))
            if np.array_equal(leaves.floor, before):
                _check_reached(shift, leaves.floor)  # what is published is all there is
                break
        return certified(features, problem, solution, program.solver, program.tolerance)


def _check_reached(shift: NDArray[np.float64], floor: NDArray[np.int64]) -> None:
    """Counts that matter but cannot be asked for make the answer impossible."""
    worst = int(np.argmax(floor - shift))
    if floor[worst] - shift[worst] > NEARLY:
        raise InputError(
            f"noisy counts of 'singleton' are known above floors of up to {floor[worst]:,}, but counts down to "
            f"{shift[worst]:.3g} matter: use the weights that the floors were published for"
        )


def _shifts(problem: Problem, solution: Solution) -> np.ndarray:
    """By cell, in trips."""
    found = problem.shifts(solution.prices) if solution.shift is None else solution.shift
    return np.asarray(found / problem.weight)
