"""The projection estimator: the consistent non-negative counts closest to the noisy ones (Fioretto and others 2018, Figure 3).

In a universe too large to list, noisy counts of trip types are drawn only above a threshold in each cell, as in the filtered summaries of Cormode and
others (2012), but without changing the answer: a leaf is x_u = max(0, c_u − s_k), so counts below their cell's dual s_k do not enter it.
Thresholds (floors) start below where the duals are expected, and are lowered where a dual ends below its threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError, SolverError
from cbdp.estimation.compiler import compile as compiled
from cbdp.estimation.compiler import merge_measurements
from cbdp.estimation.engine import Estimate, Estimator, Program, certify_estimate
from cbdp.features import FeatureDag
from cbdp.privacy.measurement import Measurement, ThresholdedAnswer
from cbdp.progress import tell
from cbdp_solvers.problem import Problem, bincount
from cbdp_solvers.solution import Solution

# distance of the first thresholds below the expected duals, in lengths over which the number of survivors grows e-fold
THRESHOLD_MARGIN = 1.0
LOWERING_MARGIN = (
    THRESHOLD_MARGIN  # the same, where the solution asks for lower thresholds; doubled each time
)
# leaves that take as long to draw as the sampler's tables for one more distinct threshold take to build
DRAWS_PER_THRESHOLD_LEVEL = 25_000
# no threshold is so high that fewer than exp(−this) leaves of its cell are expected above it
LOG_EXPECTED_SURVIVORS = 3.0
MAX_ROUNDS = 50  # times that thresholds are lowered and the program is solved again
MAX_FAILURES = 6  # times that a solver may fail for want of leaves
ROUNDING_TOLERANCE = 1e-6  # trips: what rounding may be off


@dataclass(frozen=True)
class Projection(Estimator):
    """The quadratic program of Fioretto and others (2018) on the noisy counts alone."""

    name: ClassVar[str] = "projection"
    about: ClassVar[str] = "the closest consistent non-negative counts, as in the CBDP paper"

    def estimate(
        self, features: FeatureDag, measurements: Sequence[Measurement], program: Program
    ) -> Estimate:
        tell("solving")
        problem = compiled(features, measurements, program.weights)
        warm = None if program.warm_start is None else program.warm_start.solution
        solution = program.solver.solve(problem, warm)
        return certify_estimate(features, problem, solution, program.solver, program.tolerance)

    def estimate_above(
        self, features: FeatureDag, tables: Sequence[Measurement], leaves: ThresholdedAnswer, program: Program
    ) -> Estimate:
        """As `estimate`, asking for noisy counts of trip types only as far down as they can matter.

        A count that does not exceed its cell's dual is 0 in the answer, whatever it is (x_u = max(0, c_u − s_k)). So the certificate is that of
        the problem with all trip types.
        """
        tell("solving")
        margin, warm, failures = LOWERING_MARGIN, None, 0
        leaves.lower(initial_thresholds(features, tables, leaves))
        for _ in range(MAX_ROUNDS):
            problem = compiled(features, [*tables, leaves.measurement()], program.weights)
            before = leaves.floor
            try:
                solution = program.solver.solve(problem, warm)
            except SolverError:
                failures += 1
                if failures > MAX_FAILURES:
                    raise
                margin = 2 * margin  # perhaps exact counts cannot be met by the few leaves that are drawn
                below = margin * leaves.noise.falloff(leaves.floor)
                leaves.lower(np.floor(leaves.floor - below).astype(np.int64))
                continue
            shift = _cell_duals(problem, solution)
            low = shift < leaves.floor
            if not low.any():
                break
            # where no leaf is drawn the dual says little: go down a little at a time
            margin, warm = 2 * margin, solution
            below = margin * leaves.noise.falloff(leaves.floor)
            lower = np.maximum(shift, leaves.floor) - below
            leaves.lower(merged_thresholds(np.where(low, lower, leaves.floor), features, leaves))
            if np.array_equal(leaves.floor, before):
                _check_attainable(shift, leaves.floor)  # what is published is all there is
                break
        else:
            raise SolverError(
                f"counts of trip types that matter were still missing after thresholds were lowered {MAX_ROUNDS} times: "
                "give 'singleton' more weight"
            )
        return certify_estimate(features, problem, solution, program.solver, program.tolerance)


def _check_attainable(shift: NDArray[np.float64], floor: NDArray[np.int64]) -> None:
    """Counts that matter but cannot be asked for make the answer impossible."""
    worst = int(np.argmax(floor - shift))
    if floor[worst] - shift[worst] > ROUNDING_TOLERANCE:
        raise InputError(
            f"noisy counts of 'singleton' are known above floors of up to {floor[worst]:,}, but counts down to "
            f"{shift[worst]:.3g} matter: use the weights that the floors were published for"
        )


def _cell_duals(problem: Problem, solution: Solution) -> np.ndarray:
    """s_k of every cell, in trips."""
    duals = problem.shifts(solution.prices) if solution.shift is None else solution.shift
    return np.asarray(duals / problem.weight)


# Thresholds


def initial_thresholds(
    features: FeatureDag, measurements: Sequence[Measurement], leaves: ThresholdedAnswer
) -> Ints:
    """Thresholds somewhat below where the cells' duals are expected to be."""
    sizes, law = features.cells.partition.sizes, leaves.noise
    highest = law.extreme(sizes, LOG_EXPECTED_SURVIVORS)
    shifts = law.shift(expected_densities(features, measurements))
    return merged_thresholds(
        np.minimum(shifts - THRESHOLD_MARGIN * law.falloff(shifts), highest), features, leaves
    )


def expected_densities(features: FeatureDag, measurements: Sequence[Measurement]) -> Floats:
    """By cell, how many trips a type may be expected to have: the dual is where noise alone would add up to them.

    The counts are those of the finest features, spread evenly over their elements' types; of several the largest: a low
    threshold costs little.
    """
    merged = merge_measurements(features, measurements)
    density = np.zeros(features.cells.size)
    for name, m in merged.items():
        if any(features.graph.has_edge(other, name) for other in merged):
            continue
        each = np.zeros(features.size(name))
        each[slice(None) if m.elements is None else m.elements] = np.maximum(m.values, 1.0)
        density = np.maximum(
            density, (each / features.partition(name).sizes)[features.cells.element_of_cell[name]]
        )
    return density


def merged_thresholds(thresholds: Floats, features: FeatureDag, leaves: ThresholdedAnswer) -> Ints:
    """Whole thresholds at or below these, of few distinct heights.

    Cells of one threshold are drawn together, at a cost that is about that of drawing `DRAWS_PER_THRESHOLD_LEVEL` leaves. So heights are merged,
    downwards, as long as that is cheaper than the further leaves: the least sum, by dynamic programming over the heights.
    """
    now, sizes = leaves.floor, features.cells.partition.sizes
    floor = np.floor(thresholds).astype(np.int64)
    moved = np.flatnonzero(floor < now)
    if not len(moved):
        return now
    heights, which = np.unique(floor[moved], return_inverse=True)
    types = bincount(which, sizes[moved].astype(float), len(heights))
    least = _merged_levels(types, np.asarray(leaves.noise.survival(heights)))
    floor[moved] = heights[least][which]
    return np.minimum(floor, now)


def _merged_levels(types: Floats, share: Floats) -> Ints:
    """For each height, ascending, the height it is merged into: at or below it. `share` of its types exceed a height."""
    n = len(types)
    cumulative = np.concatenate([[0.0], np.cumsum(types)])
    cost, start = np.zeros(n + 1), np.zeros(n + 1, dtype=np.int64)
    for end in range(1, n + 1):  # the last group is start … end − 1, all drawn down to the height of `start`
        each = cost[:end] + DRAWS_PER_THRESHOLD_LEVEL + (cumulative[end] - cumulative[:end]) * share[:end]
        start[end] = np.argmin(each)
        cost[end] = each[start[end]]
    into, end = np.empty(n, dtype=np.int64), n
    while end:
        into[start[end] : end] = start[end]
        end = start[end]
    return into
