"""Semismooth Newton on the dual (Qi and Sun 1993): few steps, one unknown per measured element, not per leaf.

With r_ij = 1/w_ij the dual of the problem is to minimise over the prices λ

    Φ(λ) = ½ Σ_u w_u max(0, c_u − s_k/w_u)² + Σ_ij ½ r_ij λ_ij² + c_ij λ_ij,      s = B λ (the cells' shifts),

smooth, convex and piecewise quadratic: gradient R λ + c − BᵀY(s), generalised Hessian R + Bᵀ D B, where Y_k and D_k are sums over the leaves of cell
k that lie above their shift. The leaves are x_u = max(0, c_u − s_k/w_u). The full step converges superlinearly near the optimum (Qi and Sun 1993). On the
right piece it is exact, and with a search along it finitely many steps suffice (Sun 1997): so where all counts have finite weights and the system is
factorised. Exact counts get a speck of curvature in the system, and conjugate gradients solve it only roughly: then the steps converge, each
to a small fraction of the error before. The work ends at `tolerance`, or at the rounding of sums where that is above it.

Screening: leaves whose target lies below their cell's dual s do not enter the active set, so as the shifts rise only those above a *threshold*
somewhat below them are kept. Unlike a safe rule (El Ghaoui, Viallon and Rabbani 2012) this may drop too many: should a shift end below its threshold,
the threshold is lowered and the work resumed, so the answer is exact all the same.

One algorithm, whose steps (screening, basis, line search, refinement) share their state and are read together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbdp.arrays import Floats, Indices, Numbers
from cbdp.compiling import compiled_ahead, kernel
from cbdp.errors import SolverError
from cbdp_solvers import Answer, Solver, check_positive
from cbdp_solvers.linear import DualBasis, LinearSolver, SparseLDL, dual_basis, linear_solver
from cbdp_solvers.passes import above_shift, leaves_above_threshold, primal, slope_along
from cbdp_solvers.problem import Problem, bincount
from cbdp_solvers.solution import SUM_ROUNDING_ERROR as ERROR
from cbdp_solvers.solution import Solution

# the first solve, on a sample
MIN_LEAVES_FOR_SAMPLE = 1 << 20  # leaves from which a sample is solved first
SAMPLE_LEAVES_PER_CELL = 100  # leaves that a cell should have in the sample, on average
STRIDES = (127, 113, 101, 89, 79, 71, 61, 53, 47, 43, 37, 31, 29, 23, 19, 17, 13, 11, 7, 5, 3)  # primes
SAMPLE_RESIDUAL = 1e-2  # residual to which the sample is solved
SAMPLE_ACTIVE_LEAVES_PER_CELL = 6  # leaves above its shift that a cell should have in the sample
MAX_SAMPLE_STEPS = 15  # Newton steps on the sample
# screening
MIN_LEAVES_WORTH_DROPPING = 1 << 13  # leaves: fewer cost less than dropping them
MAX_LEAVES_PER_ACTIVE_LEAF = (
    24  # leaves per leaf above its shift: beyond, those below the thresholds are dropped
)
MAX_SCREENINGS = 4  # times that leaves are dropped
THRESHOLD_SAMPLE_LEAVES = 20_000  # leaves from which the scale of the noise is estimated to set thresholds
THRESHOLD_MARGIN = 1.0  # distance of the thresholds below the shifts, in scales of the noise
# precision
# weight of a leaf, relative to a feature's, below which the dual's basis may be changed
SMALL_LEAF_WEIGHT = 1e-7
MAX_BASIS_CHANGES = 8  # times that the basis is changed, by which cells have leaves above their shift
# rounding error of the shifts, relative to the largest count, beyond which it is changed
MAX_PRECISION_LOSS = 1e-12
MAX_STEPS_WITHOUT_PROGRESS = 40  # Newton steps that do not halve the residual, after which it is changed
STALL_RESIDUAL = 1e-9  # residual below which a lack of progress means rounding
# line search
OVERFLOW_STEP = 2.0**-64  # factor of a step along which Φ overflows
LINE_SEARCH_SLOPE = 0.1  # slope along a step, relative to the first, at which the search ends


@dataclass(frozen=True)
class Newton(Solver):
    """The default: exact, and about as fast as drawing the noise that it cleans."""

    name: ClassVar[str] = "newton"
    about: ClassVar[str] = "semismooth Newton on the dual: exact, time and memory grow with the leaves"
    warm: ClassVar[bool] = True
    compiled: ClassVar[tuple[str, ...]] = (
        "cbdp_solvers.newton",
        "cbdp_solvers.linear",
        "cbdp_solvers.passes",
    )

    tolerance: float = 1e-13  # of the consistency residual; rounding ends the work before that if need be
    max_steps: int = 500

    def __post_init__(self) -> None:
        check_positive("newton", tolerance=self.tolerance, max_steps=self.max_steps)

    def answer(self, problem: Problem, warm_start: Solution | None) -> Answer:
        weight = np.atleast_1d(np.asarray(problem.weight, dtype=float))
        unit = float(np.exp(np.mean(np.log(weight))))  # the unit of prices and weights in here
        dual, places = _dual_problem(problem, unit)
        every = LeafSet(problem.target, unit / weight, problem.cell)
        search = _Search(dual, dual.linear(), self.max_steps)
        lam = _initial_duals(search, every, _gather_duals(problem, warm_start, places, unit))
        optimum = _minimize_with_screening(search, every, lam, self.tolerance)
        for _ in range(MAX_BASIS_CHANGES):
            if not dual.small_leaf_weight or not (
                search.stalled or dual.rounding_error(optimum) > MAX_PRECISION_LOSS
            ):
                break
            better = dual.with_basis(problem, places, optimum.d > 0)
            lam, dual = better.unknowns(dual.prices(optimum.lam)), better
            search = _Search(dual, dual.linear(), self.max_steps, search.steps)
            optimum = _minimize_with_screening(search, every, lam, self.tolerance)
        if search.stalled:
            raise SolverError(
                f"newton stopped making progress at residual {optimum.residual:.1e}: give 'singleton' more weight"
            )
        prices = {
            t.name: _scatter_duals(dual.prices(optimum.lam) * unit, places[t.name]) for t in problem.terms
        }
        leaves = primal(every.target, every.inverse_weight, every.cell, optimum.shift)
        shift = optimum.shift * unit
        moved = _satisfy_exact_counts(problem, leaves, every.inverse_weight)
        if moved:  # the prices with them, unless no leaf determines by how much
            other = optimum.shift - problem.shifts(moved)
            if every.distance(leaves, other) < every.distance(leaves, optimum.shift):
                prices = {name: price - moved[name] * unit for name, price in prices.items()}
                shift = other * unit
        return Answer(leaves, prices, search.steps, shift if dual.small_leaf_weight else None)


@dataclass(frozen=True, eq=False)
class LeafSet:
    """Leaves that may lie above their cell's shift; each stands for `copies` of its kind."""

    target: Numbers
    inverse_weight: Floats  # 1/w_u, one for all or one each
    cell: Indices
    copies: int = 1

    def distance(self, leaves: Floats, shift: Floats) -> float:
        """By how much these leaves differ from those of the shifts."""
        return float(
            np.max(np.abs(primal(self.target, self.inverse_weight, self.cell, shift) - leaves), initial=0.0)
        )

    def above(self, shift: Floats) -> tuple[Floats, Floats, float]:
        y, d, squares = above_shift(self.target, self.inverse_weight, self.cell, shift)
        return (
            (y, d, squares) if self.copies == 1 else (y * self.copies, d * self.copies, squares * self.copies)
        )

    def line_search(self, shift: Floats, to: Floats, slope: float, curvature: float, end: float) -> float:
        """Line search: the fraction of the way from these shifts to those, which overshoot, at which Φ is about least.

        Its slope along the way, `slope` < 0 at first and `end` > 0 in the end, increases piecewise linearly: safeguarded Newton on the slope.
        """
        # a leaf's excess is linear on the way, so one that is below its shift at both ends never matters
        near = self.screened(np.minimum(shift, to))
        low, high, t = 0.0, 1.0, slope / (slope - end)
        for _ in range(60):
            of_leaves, steep = slope_along(near.target, near.inverse_weight, near.cell, shift, to - shift, t)
            here = slope + t * curvature + self.copies * of_leaves
            if abs(here) <= LINE_SEARCH_SLOPE * abs(slope):
                break
            low, high = (t, high) if here < 0 else (low, t)
            # Newton's step on the linear piece at hand if that stays inside, else halve
            steep = curvature + self.copies * steep
            t = t - here / steep if steep > 0 else low
            if not low < t < high:
                t = 0.5 * (low + high)
        return t

    def screened(self, threshold: Floats) -> LeafSet:
        """Those above their cell's threshold."""
        if np.isneginf(threshold).all():
            return self
        return LeafSet(
            *leaves_above_threshold(self.target, self.inverse_weight, self.cell, threshold), self.copies
        )

    def worth_screening(self, now: Point, max_ratio: float) -> bool:
        """Whether there are more than a few, and more than `max_ratio` times as many as lie above their shifts."""
        n = len(self.target)
        if n <= MIN_LEAVES_WORTH_DROPPING or np.isinf(
            max_ratio
        ):  # infinitely many times none would be no number
            return False
        return bool(
            n
            > MIN_LEAVES_WORTH_DROPPING
            + max_ratio * now.d.sum() / np.mean(self.inverse_weight[:MIN_LEAVES_WORTH_DROPPING])
        )

    def sample_maxima(self, cells: int) -> Floats:
        """A level in each cell that a few of its leaves exceed: the largest of a sample."""
        part = self.sample(_stride(len(self.target), 8 * cells, 31))
        largest = np.full(cells, -np.inf)
        np.maximum.at(largest, part.cell, part.target / part.inverse_weight)
        return largest

    def excess_scale(self, shift: Floats) -> float:
        """The scale of the leaves' excess over their shifts, were it exponential: by the median, which is robust to leaves with trips."""
        part = self.sample(max(1, len(self.target) // THRESHOLD_SAMPLE_LEAVES) | 1)
        excess = part.target / part.inverse_weight - shift[part.cell]
        excess = excess[excess > 0]
        return float(np.median(excess)) / np.log(2) if len(excess) else 1.0

    def sample(self, stride: int) -> LeafSet:
        inverse_weight = (
            self.inverse_weight if len(self.inverse_weight) == 1 else self.inverse_weight[::stride].copy()
        )
        return LeafSet(
            self.target[::stride].copy(), inverse_weight, self.cell[::stride].copy(), self.copies * stride
        )


@dataclass(frozen=True, eq=False)
class Dual:
    """The measured elements as one vector of unknowns."""

    member: sp.csr_array  # B: cells × unknowns, 0/1
    inverse_weight: Floats  # r = 1/w (0 where exact), in units of the leaves' weight
    target: Floats
    scale: Floats  # what a residual is measured against
    blocks: tuple[slice, ...]  # each feature's unknowns
    basis: DualBasis | None = None  # the unknowns are not the prices λ but θ, λ = M θ
    small_leaf_weight: bool = False  # whether leaves weigh so little that prices may be large

    def point(self, leaves: LeafSet, lam: Floats) -> Point:
        shift, size = self.shifts(lam)
        y, d, squares = leaves.above(shift)
        form = self.member.indptr, self.member.indices, self.inverse_weight, self.target, self.scale
        value, gradient, residual = _objective_and_gradient(*form, self.prices(lam), size, y, d, squares)
        gradient = gradient if self.basis is None else self.basis.change.T @ gradient
        return Point(lam, shift, y, d, value, gradient, residual)

    def shifts(self, lam: Floats) -> tuple[Floats, Floats]:
        """The cells' shifts, and the sums of the magnitudes that they are made of."""
        member = self.member if self.basis is None else self.basis.member
        return _cell_duals(member.indptr, member.indices, member.data, lam)  # type: ignore[no-any-return]

    def prices(self, lam: Floats) -> Floats:
        return lam if self.basis is None else self.basis.change @ lam

    def unknowns(self, prices: Floats) -> Floats:
        return prices if self.basis is None else self.basis.unknowns(prices)

    def rounding_error(self, at: Point) -> float:
        """What rounding may do to the shifts of cells with leaves above them, relative to the largest count."""
        size = self.shifts(at.lam)[1]
        return (
            ERROR
            * float(np.max(size, where=at.d > 0, initial=0.0))
            / float(np.min(self.scale, initial=np.inf))
        )

    def with_basis(self, problem: Problem, places: dict[str, Indices], active: NDArray[np.bool_]) -> Dual:
        """With unknowns that make the shifts of these cells precise."""
        return replace(self, basis=dual_basis(problem, places, self.member, self.inverse_weight, active))

    def curvature(self, direction: Floats) -> float:
        """The curvature of Φ along a direction that is not the leaves'."""
        prices = self.prices(direction)
        return float((self.inverse_weight * prices) @ prices)

    def linear(self) -> LinearSolver:
        if self.basis is None:
            return linear_solver(self.member, self.inverse_weight, self.blocks)
        return SparseLDL(self.basis.member, self.basis.form(self.inverse_weight))


@dataclass(frozen=True, eq=False)
class Point:
    """Unknowns, and Φ with its derivatives there, from one pass over the leaves."""

    lam: Floats
    shift: Floats
    y: Floats
    d: Floats
    value: float  # Φ
    gradient: Floats
    residual: float


@dataclass(eq=False)
class _Search:
    """The state of one solve: the dual, the factorised Hessian, and the steps spent."""

    dual: Dual
    linear: LinearSolver
    max_steps: int
    steps: int = 0
    searched: bool = False  # whether the last step overshot and was searched along
    stalled: bool = False  # whether steps have ceased to help
    screening: bool = (
        False  # whether the last minimisation stopped to have leaves dropped, and not at the optimum
    )

    def minimise(self, leaves: LeafSet, lam: Floats, tolerance: float, max_ratio: float = np.inf) -> Point:
        """Newton steps until the residual is within tolerance or down to rounding, or most leaves lie below their shift."""
        now = best = self.dual.point(leaves, lam)
        stuck = fresh = without_progress = 0
        self.screening = False
        while best.residual > tolerance and stuck < 3:
            if self.dual.small_leaf_weight and without_progress >= MAX_STEPS_WITHOUT_PROGRESS:
                self.stalled = True
                return best
            if fresh >= 2 and leaves.worth_screening(now, max_ratio):
                self.screening = True
                return now
            if self.steps >= self.max_steps:
                raise SolverError(
                    f"newton reached residual {best.residual:.1e} after {self.steps} steps, the limit: raise max_steps"
                )
            now = self.step(leaves, now)
            fresh += 1
            # three steps near the optimum that do not halve the residual: rounding is reached
            stuck = stuck + 1 if best.residual < STALL_RESIDUAL and now.residual > 0.5 * best.residual else 0
            without_progress = 0 if now.residual < 0.5 * best.residual else without_progress + 1
            best = min(best, now, key=lambda point: point.residual)
        return best

    def step(self, leaves: LeafSet, now: Point) -> Point:
        """The full Newton step unless it overshoots, else one along its direction. Φ never rises by more than 10⁻⁶ of the first slope, and rounding."""
        self.steps += 1
        direction, slope = self.descent(now)
        # Φ is convex, so it rose by no more than the slope at the end: one that is downwards, or as good as level, is
        # proof enough, however Φ itself is rounded
        with np.errstate(over="ignore", invalid="ignore"):
            tried = self.dual.point(leaves, now.lam + direction)
            end = float(tried.gradient @ direction)
            while not np.isfinite(end):  # an almost singular Hessian made the step so long that Φ overflows
                direction, slope = direction * OVERFLOW_STEP, slope * OVERFLOW_STEP
                tried = self.dual.point(leaves, now.lam + direction)
                end = float(tried.gradient @ direction)
        self.searched = not (end <= 1e-6 * abs(slope) or tried.value < now.value + 0.1 * slope)
        if not self.searched:
            return tried
        if end == slope:  # of a direction that is all rounding
            raise SolverError(
                f"newton cannot go on from residual {now.residual:.1e} because the weights differ too much: give 'singleton' more weight"
            )
        t = leaves.line_search(now.shift, tried.shift, slope, self.dual.curvature(direction), end)
        return self.dual.point(leaves, now.lam + t * direction)

    def descent(self, now: Point) -> tuple[Floats, float]:
        """Newton's direction, and the slope of Φ along it, which is negative.

        Rounding can make the Hessian indefinite where the weights of exact counts and of leaves differ by many orders of magnitude, and
        its solution a direction of ascent, along which the acceptance test above would let Φ grow without end. Then it is the
        negative gradient, scaled: always a direction of descent (Nocedal and Wright 2006, section 3.4, modify the Hessian to this end).
        """
        direction = -self.linear.solve(now.d, now.gradient)
        with np.errstate(over="ignore", invalid="ignore"):
            slope = float(now.gradient @ direction)
        if -np.inf < slope < 0.0:
            return direction, slope
        curvature = self.dual.inverse_weight + self.dual.member.T @ now.d if self.dual.basis is None else 1.0
        direction = -now.gradient / np.maximum(curvature, np.finfo(float).tiny ** 0.5)
        return direction, float(now.gradient @ direction)


def _initial_duals(search: _Search, every: LeafSet, prices: Floats | None) -> Floats:
    """The unknowns to start from: those of an earlier solution, unless they are worse than none; or a guess."""
    if prices is not None:
        lam = search.dual.unknowns(prices)
        none = search.dual.point(every, np.zeros_like(lam))
        if search.dual.point(every, lam).value <= none.value:
            return lam
    return _duals_of_sample(search, every)


def _stride(n: int, least: int, most: int) -> int:
    """A stride that leaves at least so many of n leaves, and is evenly spread over every dimension.

    A prime that does not divide n divides no dimension either, so it visits all values of each; 1 if none fits.
    """
    return next((p for p in STRIDES if p <= most and n % p and n >= least * p), 1)


def _duals_of_sample(search: _Search, every: LeafSet) -> Floats:
    """Prices from a few steps on an evenly spread sample of the leaves, where there are many in each cell."""
    lam = np.zeros(len(search.dual.target))
    n, cells = len(every.target), search.dual.member.shape[0]
    stride = _stride(n, SAMPLE_LEAVES_PER_CELL * cells, 127)
    if n < MIN_LEAVES_FOR_SAMPLE or stride == 1:
        return lam
    sample = every.sample(stride)
    now = search.dual.point(sample, lam)
    # once a step overshoots, or a cell has but few leaves above its shift, the sample is too coarse to learn more from
    while (
        now.d.sum() > SAMPLE_ACTIVE_LEAVES_PER_CELL * stride * cells
        and now.residual > SAMPLE_RESIDUAL
        and search.steps < MAX_SAMPLE_STEPS
    ):
        before, now = now, search.step(sample, now)
        if search.searched:
            return before.lam
    return now.lam


def _minimize_with_screening(search: _Search, every: LeafSet, lam: Floats, tolerance: float) -> Point:
    """Minimise over the leaves above thresholds; raise them while that drops most leaves; lower those that are too high."""
    cells = search.dual.member.shape[0]
    threshold = np.full(cells, -np.inf)
    levels = [(threshold, every)]  # thresholds, and the leaves above them: ever higher and fewer
    margin, screenings = THRESHOLD_MARGIN, MAX_SCREENINGS
    sample_maxima = every.sample_maxima(cells) if len(every.target) > MIN_LEAVES_WORTH_DROPPING else threshold
    if lam.any() and len(every.target) > MIN_LEAVES_WORTH_DROPPING:
        threshold = _screening_thresholds(every, search.dual.shifts(lam)[0], sample_maxima, margin)
        levels.append((threshold, every.screened(threshold)))
    while True:
        leaves = levels[-1][1]
        point = search.minimise(leaves, lam, tolerance, MAX_LEAVES_PER_ACTIVE_LEAF if screenings else np.inf)
        lam = point.lam
        low = point.shift < threshold
        if search.stalled:
            return point
        if search.screening:
            screenings -= 1
            threshold = np.maximum(
                threshold, _screening_thresholds(leaves, point.shift, sample_maxima, margin)
            )
        elif low.any():
            margin *= 2
            threshold = np.where(
                low, _screening_thresholds(leaves, point.shift, sample_maxima, margin), threshold
            )
            while (levels[-1][0] > threshold).any():
                levels.pop()
        else:
            return point
        levels.append((threshold, levels[-1][1].screened(threshold)))


def _screening_thresholds(leaves: LeafSet, shift: Floats, sample_maxima: Floats, margin: float) -> Floats:
    """Thresholds so far below the shifts that few cells' shifts will end below them, and below some leaves of every cell."""
    return np.minimum(shift - margin * leaves.excess_scale(shift), sample_maxima)


def _satisfy_exact_counts(problem: Problem, leaves: Floats, inverse_weight: Floats) -> dict[str, Floats]:
    """Iterative refinement: positive leaves moved, by no more than rounding, until exact counts are met to the last digit; the change of prices.

    Prices of exact counts can be large and cancel, so that their sum is too coarse; the residual is distributed in trips.
    """
    moved: dict[str, Floats] = {}
    if not any(np.isinf(t.weight).any() for t in problem.terms):
        return moved
    exact = [replace(t, weight=np.where(np.isinf(t.weight), np.inf, 0.0)) for t in problem.terms]
    dual, places = _dual_problem(replace(problem, terms=tuple(exact)), 1.0)
    linear = linear_solver(dual.member, dual.inverse_weight, dual.blocks)
    for _ in range(3):
        above = leaves > 0
        sums = bincount(problem.cell, leaves, problem.cells)
        active = bincount(problem.cell, np.where(above, inverse_weight, 0.0), problem.cells)
        missing = dual.target - dual.member.T @ sums
        if not np.any(np.abs(missing) > ERROR * (1.0 + np.abs(dual.target))):
            return moved
        price = linear.solve(active, missing)
        for name, place in places.items():
            moved[name] = moved.get(name, 0.0) + _scatter_duals(price, place)
        share = dual.member @ price
        leaves += np.where(above, inverse_weight * share[problem.cell], 0.0)
        np.maximum(leaves, 0.0, out=leaves)
    return moved


def _dual_problem(problem: Problem, unit: float) -> tuple[Dual, dict[str, Indices]]:
    """Unknowns for the measured elements, and where each term's elements stand among them (−1: not measured)."""
    places: dict[str, Indices] = {}
    size = 0
    empty = np.empty(0)
    inverse_weights, targets, scales = [empty], [empty], [empty]
    blocks = []
    rows, columns = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for term in problem.terms:
        measured = term.weight > 0
        place = np.where(measured, size + np.cumsum(measured) - 1, -1)
        places[term.name] = place
        blocks.append(slice(size, size + int(measured.sum())))
        size = blocks[-1].stop
        inverse_weights.append(unit / term.weight[measured])
        targets.append(term.target[measured])
        scales.append(np.full(len(targets[-1]), 1.0 + float(np.max(np.abs(term.target), initial=0.0))))
        of_cell = place[term.element_of_cell]
        rows.append(np.flatnonzero(of_cell >= 0))
        columns.append(of_cell[of_cell >= 0])
    row, column = np.concatenate(rows), np.concatenate(columns)
    if len(row) == len(blocks) * problem.cells:  # all is measured: every cell has one element of each feature
        kind = np.int32 if len(column) < 2**31 else np.int64  # as SciPy would choose
        column = column.reshape(len(blocks), problem.cells).T.reshape(-1).astype(kind)
        start = np.arange(problem.cells + 1, dtype=kind) * len(blocks)
        member = sp.csr_array((np.ones(len(column)), column, start), shape=(problem.cells, size))
    else:
        member = sp.csr_array((np.ones(len(row)), (row, column)), shape=(problem.cells, size))
    inverse_weight = np.concatenate(inverse_weights)
    small_leaf_weight = bool(
        np.min(inverse_weight, where=inverse_weight > 0, initial=np.inf) < SMALL_LEAF_WEIGHT
    )
    other = dual_basis(problem, places, member, inverse_weight) if small_leaf_weight else None
    numbers = np.concatenate(targets), np.concatenate(scales)
    return Dual(member, inverse_weight, *numbers, tuple(blocks), other, small_leaf_weight), places


def _scatter_duals(lam: Floats, place: Indices) -> Floats:
    spread = np.zeros(len(place))
    spread[place >= 0] = lam[place[place >= 0]]
    return spread


def _gather_duals(
    problem: Problem, warm_start: Solution | None, places: dict[str, Indices], unit: float
) -> Floats | None:
    """The unknowns of an earlier solution, where it is one of the same features."""
    if warm_start is None:
        return None
    pieces = [np.empty(0)]
    for term in problem.terms:
        price = warm_start.prices.get(term.name)
        if price is None or len(price) != len(term.target):
            return None
        pieces.append(price[places[term.name] >= 0] / unit)
    return np.concatenate(pieces)


@compiled_ahead("i4[::1], i4[::1], f8[::1], f8[::1]")
@kernel
def _cell_duals(indptr, indices, data, lam):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """B λ, and the same of the absolute values."""
    shift, size = np.zeros(len(indptr) - 1), np.zeros(len(indptr) - 1)
    for k in range(len(shift)):
        for a in range(indptr[k], indptr[k + 1]):
            shift[k] += data[a] * lam[indices[a]]
            size[k] += abs(data[a] * lam[indices[a]])
    return shift, size


@compiled_ahead("i4[::1], i4[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8")
@kernel
def _objective_and_gradient(indptr, indices, inverse_weight, target, scale, lam, size, y, d, squares):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Φ, its gradient R λ + c − BᵀY, and the gradient's largest relative entry, less what rounding accounts for."""
    value, residual = squares, 0.0
    gradient, magnitudes = np.empty(len(lam)), np.empty(len(lam))
    for j in range(len(lam)):
        gradient[j] = inverse_weight[j] * lam[j] + target[j]
        magnitudes[j] = abs(inverse_weight[j] * lam[j]) + abs(target[j])
        value += lam[j] * (0.5 * inverse_weight[j] * lam[j] + target[j])
    for k in range(len(y)):
        magnitude = y[k] + size[k] * d[k]  # the size of the numbers that the sum Y is made of
        for a in range(indptr[k], indptr[k + 1]):
            gradient[indices[a]] -= y[k]
            magnitudes[indices[a]] += magnitude
    for j in range(len(lam)):
        residual = max(residual, (abs(gradient[j]) - ERROR * magnitudes[j]) / scale[j])
    return value, gradient, residual
