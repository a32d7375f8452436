"""The post-processing engine: noisy counts in, the closest consistent non-negative answer out, with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import CertificateError, InputError, SolverError
from cbdp.estimate import compiler
from cbdp.estimate.compiler import Measurements, Weights
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp.solvers import Solver, get
from cbdp.solvers.problem import Problem, bincount
from cbdp.solvers.solution import Solution

if TYPE_CHECKING:
    from cbdp.estimate.posterior.sparse import Expected as ExpectedAbove

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Expected = Callable[[Ints], Floats]
Progress = Callable[[str, float], None]  # which stage, and how much of it is done

ESTIMATORS = ("projection", "posterior")

TOLERANCE = 1e-6
LISTED = 2**28  # trip types up to which counts of all of them may be asked for at once
MARGIN = 1.0  # how far below the expected shifts the first floors are set, in scales of the noise
CLASS = 25_000  # leaves that take as long to draw as the tables for a further height of floors take to build
SPARE = 3.0  # no floor is so high that its cell is expected to have more than exp(−SPARE) survivors above it
ROUNDS = 50
PATIENCE = 6  # rounds in which a solver may fail for want of leaves


@dataclass(frozen=True, eq=False)
class Estimate:
    """A consistent, non-negative answer to every feature at once."""

    features: FeatureDag = field(repr=False)
    solution: Solution
    index: Ints | None = field(default=None, repr=False)  # the solution's leaves; None: all, in their order

    @cached_property
    def _cells(self) -> Floats:
        index, value = self.trips()
        cell = self.features.cells.partition.element_of(self.features.universe.unrank_codes(index))
        return bincount(cell, value, self.features.cells.size)

    def trips(self) -> tuple[Ints, Floats]:
        """The trip types whose count is above zero, in ascending order, and their counts."""
        here = np.flatnonzero(self.solution.leaves > 0)
        return (here if self.index is None else self.index[here]), self.solution.leaves[here]

    def counts(self, feature: str) -> Floats:
        """The count of each of the feature's elements, measured or not, in their order."""
        if feature == SINGLETON:
            return self._leaves()
        partition = self.features.partition(feature)
        held = self.features.cells.element_of_cell[feature]
        return bincount(held, self._cells, partition.size)

    def _leaves(self) -> Floats:
        size = self.features.universe.size
        if self.index is None:
            return self.solution.leaves
        if size > LISTED:
            raise InputError(
                f"counts of all {size:,} trip types do not fit: use trips(), which lists those above 0"
            )
        leaves = np.zeros(size)
        leaves[self.index] = self.solution.leaves
        return leaves

    def table(self, feature: str) -> dict[str, list[Hashable] | Floats]:
        """The counts with the attribute values that name their elements: columns for any data frame."""
        return {**self.features.partition(feature).keys(), "estimate": self.counts(feature)}


def post_process(
    features: FeatureDag,
    measurements: Measurements,
    *,
    weights: Weights = "size",
    solver: str | Solver | Any = "newton",
    tolerance: float = TOLERANCE,
    warm_start: Estimate | None = None,
    estimator: str = "projection",
    prior: Floats | None = None,
    progress: Progress | None = None,
) -> Estimate:
    """The consistent non-negative counts closest to noisy ones, wherever those come from.

    `measurements` maps features to noisy counts (arrays in the elements' order, or tables keyed by attribute values),
    or lists `Measurement`s. `weights` is "size" (the paper's), "uniform", "inverse-variance", or a mapping from
    features to one of these, a number, a number per element, or infinity for exact public counts. The answer is
    certified: if its optimality conditions are off by more than `tolerance`, this raises `CertificateError`.

    With `estimator="posterior"` the noisy leaves are first replaced by what is to be expected of them given every noisy
    answer, and leaves and features weigh by inverse variance; `prior` may give public weights, one for each trip type.

    >>> import cbdp
    >>> dag = cbdp.FeatureDag(cbdp.Universe(origin=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by="time")])
    >>> noisy = {"total": [10], "time": [7, 2], "singleton": [5, -2, 3, 1]}
    >>> estimate = cbdp.post_process(dag, noisy)
    >>> estimate.counts("time").round(3).tolist(), estimate.solution.kkt_residual < 1e-12
    ([7.661, 2.051], True)
    """
    _check_tolerance(tolerance)
    if warm_start is not None and not isinstance(warm_start, Estimate):
        raise InputError(f"warm_start is of type {type(warm_start).__name__}: give an earlier Estimate")
    chosen = get(solver)
    if check_estimator(estimator) == "posterior":
        from cbdp.estimate.posterior import expected_leaves

        if isinstance(weights, Mapping) or weights not in ("size", "inverse-variance"):
            raise InputError(
                f"weights {weights!r} with estimator 'posterior', which weighs by inverse variance: leave weights out"
            )
        if prior is not None:
            prior = check_prior(prior, features.universe.size)
        given = compiler.read(features, measurements)
        leaves = expected_leaves(features, given, prior=prior, progress=progress)
        measurements = [*(m for m in given if m.feature != SINGLETON), leaves]
        weights = "inverse-variance"
    if progress is not None:
        progress("solving", 0.0)
    problem = compiler.compile(features, measurements, weights)
    solution = chosen.solve(problem, None if warm_start is None else warm_start.solution)
    return _certified(features, problem, solution, chosen, tolerance)


class Revealing(Protocol):
    """Noisy counts of all trip types, of which those above a floor are known, an integer per cell; it may be lowered."""

    floor: Ints
    scale: Fraction

    def expected(self, floor: Ints) -> Floats:
        """The share of trip types without trips whose noisy counts exceed these floors."""
        ...

    def lower(self, floor: Ints) -> None:
        """Reveal what exceeds these floors."""
        ...

    def measurement(self) -> Measurement:
        """What is known so far."""
        ...


def post_process_above(
    features: FeatureDag,
    measurements: Sequence[Measurement],
    leaves: Revealing,
    *,
    weights: Weights = "size",
    solver: str | Solver | Any = "newton",
    tolerance: float = TOLERANCE,
    estimator: str = "projection",
) -> Estimate:
    """As `post_process`, asking for noisy counts of trip types only as far down as they can matter.

    A count that does not exceed its cell's shift is 0 in the answer, whatever it is (x_u = max(0, c_u − s_k)). So floors
    are set somewhat below where the shifts are expected to be, and lowered where a shift ends below its floor. The
    certificate is that of the problem with all trip types.

    With `estimator="posterior"` the counts above their floors are replaced by what is to be expected of them, and the
    others of each cell by what is to be expected of all of them together. The program reconciles these with the features
    (weights are inverse variances), and what it leaves to a cell's others is dealt out to types drawn at random.
    """
    _check_tolerance(tolerance)
    chosen = get(solver)
    if check_estimator(estimator) == "posterior":
        return _expected_above(features, measurements, leaves, chosen, tolerance)
    sizes = features.cells.partition.sizes
    scale = float(leaves.scale)
    margin, warm = MARGIN, None
    leaves.lower(_first_floors(features, measurements, leaves))
    for rounds in range(ROUNDS):
        problem = compiler.compile(features, [*measurements, leaves.measurement()], weights)
        try:
            solution = chosen.solve(problem, warm)
        except SolverError:
            if rounds == PATIENCE:
                raise
            margin = 2 * margin  # perhaps exact counts cannot be met by the few leaves that are known
            leaves.lower(np.floor(leaves.floor - margin * scale).astype(np.int64))
            continue
        shift = (
            problem.shifts(solution.prices) if solution.shift is None else solution.shift
        ) / problem.weight
        low = shift < leaves.floor
        if not low.any():
            break
        # where no leaf is known the shift says little: go down by a few scales at a time
        margin, warm = 2 * margin, solution
        lower = np.maximum(shift - margin * scale, leaves.floor - margin * scale)
        leaves.lower(_floors(np.where(low, lower, leaves.floor), leaves.floor, sizes, leaves.expected))
    return _certified(features, problem, solution, chosen, tolerance)


def _expected_above(
    features: FeatureDag,
    measurements: Sequence[Measurement],
    leaves: Revealing,
    solver: Solver,
    tolerance: float,
) -> Estimate:
    from cbdp.estimate.posterior.sparse import dealt, expected_above, seed_of

    leaves.lower(_first_floors(features, measurements, leaves))
    above = leaves.measurement()
    found = expected_above(features, measurements, above)
    problem = _of_expected(features, measurements, above, found)
    estimate = _certified(features, problem, solver.solve(problem, None), solver, tolerance)
    known, rest = np.split(estimate.solution.leaves, [len(found.index)])
    mass = bincount(problem.cell[len(known) :], rest, problem.cells)
    others, shares = dealt(features, found, mass, seed_of([*measurements, above]))
    index = np.concatenate([found.index, others])
    order = np.argsort(index, kind="stable")
    solution = replace(estimate.solution, leaves=np.concatenate([known, shares])[order])
    return Estimate(features, solution, index[order])


def _of_expected(
    features: FeatureDag, measurements: Sequence[Measurement], above: Measurement, found: ExpectedAbove
) -> Problem:
    """The program for types that are told apart, and one leaf for all others of each cell."""
    none = np.empty(0, dtype=np.int64)
    unknown = replace(above, values=none, elements=none, variance=None)
    problem = compiler.compile(features, [*measurements, unknown], "inverse-variance")
    others = np.flatnonzero(found.rest > 0)
    return replace(
        problem,
        target=np.concatenate([found.mean, found.rest[others]]),
        weight=1.0 / np.concatenate([found.variance, found.doubt[others]]),
        cell=np.concatenate([found.cell, others]).astype(problem.cell.dtype),
        index=None,
        floor=None,
    )


def _first_floors(features: FeatureDag, measurements: Sequence[Measurement], leaves: Revealing) -> Ints:
    """Somewhat below where the shifts are expected to be."""
    sizes, scale = features.cells.partition.sizes, float(leaves.scale)
    highest = scale * (np.log(sizes) + SPARE)
    wanted = np.minimum(_expected_shifts(features, measurements, scale) - MARGIN * scale, highest)
    return _floors(wanted, leaves.floor, sizes, leaves.expected)


def _expected_shifts(features: FeatureDag, measurements: Sequence[Measurement], scale: float) -> Floats:
    """By cell, about the shift at which noise on trip types without trips would add up to the noisy counts.

    A type exceeds a shift s ≥ 0 by b/2 · exp(−s/b) on average, and s < 0 by b/2 − s or so. The counts are those of the
    finest features, spread evenly over their elements' types; of several the largest: a low floor costs little.
    """
    merged = compiler.merge(features, measurements)
    density = np.zeros(features.cells.size)
    for name, m in merged.items():
        if any(features.graph.has_edge(other, name) for other in merged):
            continue
        each = np.zeros(features.size(name))
        each[slice(None) if m.elements is None else m.elements] = np.maximum(m.values, 1.0)
        density = np.maximum(
            density, (each / features.partition(name).sizes)[features.cells.element_of_cell[name]]
        )
    sparse = np.maximum(2.0 * density / scale, np.finfo(float).tiny)
    return scale * np.where(sparse < 1.0, -np.log(sparse), 0.5 * (1.0 - sparse))


def _floors(wanted: Floats, now: Ints, sizes: Ints, expected: Expected) -> Ints:
    """Whole floors at or below those wanted, of few different heights.

    Cells of one floor are drawn together, at a cost that is about that of drawing `CLASS` leaves. So heights are merged,
    downwards, as long as that is cheaper than the further leaves: the least sum, by dynamic programming over the heights.
    """
    floor = np.floor(wanted).astype(np.int64)
    moved = np.flatnonzero(floor < now)
    if not len(moved):
        return now
    heights, which = np.unique(floor[moved], return_inverse=True)
    types = bincount(which, sizes[moved].astype(float), len(heights))
    least = _merged(types, expected(heights))
    floor[moved] = heights[least][which]
    return np.minimum(floor, now)


def _merged(types: Floats, share: Floats) -> Ints:
    """For each height, ascending, the height it is merged into: at or below it. `share` of its types exceed a height."""
    n = len(types)
    held = np.concatenate([[0.0], np.cumsum(types)])
    cost, start = np.zeros(n + 1), np.zeros(n + 1, dtype=np.int64)
    for end in range(1, n + 1):  # the last group is start … end − 1, all drawn down to the height of `start`
        each = cost[:end] + CLASS + (held[end] - held[:end]) * share[:end]
        start[end] = np.argmin(each)
        cost[end] = each[start[end]]
    into, end = np.empty(n, dtype=np.int64), n
    while end:
        into[start[end] : end] = start[end]
        end = start[end]
    return into


def check_estimator(estimator: str) -> str:
    """The estimator's name, if there is one of it."""
    if estimator not in ESTIMATORS:
        raise InputError(f"unknown estimator {estimator!r}: use {' or '.join(map(repr, ESTIMATORS))}")
    return estimator


def check_prior(prior: Any, size: int) -> Floats:
    """Public weights for every trip type: above 0 somewhere, never negative."""
    try:
        given = np.asarray(prior, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"the prior is {prior!r}: give a weight for each trip type") from None
    if given.shape != (size,):
        raise InputError(f"the prior has shape {given.shape}: give a weight for each of {size:,} trip types")
    if not np.isfinite(given).all() or (given < 0).any() or not (given > 0).any():
        raise InputError("the prior's weights must be finite, not negative, and above 0 somewhere")
    return given


def _check_tolerance(tolerance: float) -> None:
    if not isinstance(tolerance, int | float) or not tolerance > 0:
        raise InputError(f"tolerance is {tolerance!r}, it must be a number above 0")


def _certified(
    features: FeatureDag, problem: Problem, solution: Solution, solver: Solver, tolerance: float
) -> Estimate:
    if not solution.kkt_residual <= tolerance:
        raise CertificateError(_uncertified(solver, solution, tolerance))
    return Estimate(features, solution, problem.index)


def _uncertified(solver: Solver, solution: Solution, tolerance: float) -> str:
    c = solution.certificate
    parts = {n: getattr(c, n) for n in ("stationarity", "feasibility", "complementarity", "consistency")}
    worst = max(parts, key=lambda n: parts[n])
    cure = (
        "loosen the tolerance" if solver.name == "newton" else "tighten its settings or use solver='newton'"
    )
    return (
        f"solver {solver.name!r} returned an answer whose {worst} is off by {parts[worst]:.1e} (relative), "
        f"more than the tolerance {tolerance:.0e}: {cure}"
    )
