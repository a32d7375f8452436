"""The post-processing engine: noisy counts in, a consistent non-negative answer to every feature out, with a certificate.

`Estimate` is that answer, `Estimator` the interface of all ways to it, `post_process` the public function. Nothing here sees a trip.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike

from cbdp.arrays import Floats, Ints
from cbdp.errors import CertificateError, InputError
from cbdp.estimation.compiler import Measurements, Weights, read_measurements
from cbdp.features import SINGLETON, FeatureDag
from cbdp.parts import Parts, instance_of
from cbdp.privacy.measurement import Measurement, NoisyAnswer, ThresholdedAnswer, tables_and_leaves
from cbdp.solvers import SOLVERS, Solver
from cbdp_features.tables import Elements, LabelledTable
from cbdp_solvers.problem import Problem, bincount
from cbdp_solvers.solution import Solution

TOLERANCE = 1e-6  # KKT residual, relative to the largest count, up to which an answer is certified
MAX_LISTED_TYPES = 2**28  # trip types: 2 GB of counts listed at once


@dataclass(frozen=True, eq=False)
class Estimate:
    """A consistent, non-negative answer to every feature at once.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> noisy = [cbdp.Measurement("singleton", [2, -1, 0, 4], 1), cbdp.Measurement("time", [3, 3], 1)]
    >>> estimate = cbdp.post_process(features, noisy, estimator="projection")
    >>> estimate.counts("time").round(2).tolist(), bool((estimate.counts("singleton") >= 0).all())
    ([2.8, 3.33], True)
    """

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
        element_of_cell = self.features.cells.element_of_cell[feature]
        return bincount(element_of_cell, self._cells, partition.size)

    def _leaves(self) -> Floats:
        size = self.features.universe.size
        if self.index is None:
            return self.solution.leaves
        if size > MAX_LISTED_TYPES:
            raise InputError(
                f"counts of all {size:,} trip types do not fit: use trips(), which lists those above 0"
            )
        leaves = np.zeros(size)
        leaves[self.index] = self.solution.leaves
        return leaves

    def table(self, feature: str) -> LabelledTable:
        """The counts with the attribute values that name their elements: any data frame reads it."""
        return LabelledTable(Elements(self.features, feature), {"estimate": self.counts(feature)}, feature)


def certify_estimate(
    features: FeatureDag, problem: Problem, solution: Solution, solver: Solver, tolerance: float
) -> Estimate:
    """The estimate that a solution is, if its certificate is good enough."""
    if not solution.kkt_residual <= tolerance:
        raise CertificateError(_uncertified_message(solver, solution, tolerance))
    return Estimate(features, solution, problem.index)


def _uncertified_message(solver: Solver, solution: Solution, tolerance: float) -> str:
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


# The interface of estimators


@dataclass(frozen=True, eq=False)
class Program:
    """How the quadratic program is set up and solved: the settings that every estimator takes.

    >>> from cbdp.solvers import SOLVERS
    >>> Program("size", SOLVERS.get("newton"), 1e-6).tolerance
    1e-06
    """

    weights: Weights
    solver: Solver
    tolerance: float
    warm_start: Estimate | None = None
    prior: Floats | None = None  # public weights, one for each trip type


@dataclass(frozen=True)
class Estimator(ABC):
    """A way to estimate. Subclass it, set the class data, implement `estimate`.

    >>> from cbdp.estimation import ESTIMATORS
    >>> [ESTIMATORS.get(name).expects for name in ("posterior", "projection")]
    [True, False]
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""
    weights: ClassVar[str] = "size"  # the default rule of weights
    takes_weights: ClassVar[bool] = True  # other rules may be given
    takes_prior: ClassVar[bool] = False
    # counts are posterior means: they say how likely a trip type is used, and their own spread says little about their errors
    expects: ClassVar[bool] = False
    compiled: ClassVar[tuple[str, ...]] = ()  # modules with loops that it runs (`cbdp.compiling.prepare`)

    @abstractmethod
    def estimate(
        self, features: FeatureDag, measurements: Sequence[Measurement], program: Program
    ) -> Estimate:
        """The estimate, where every trip type that matters has a noisy count."""

    def estimate_above(
        self,
        features: FeatureDag,
        tables: Sequence[Measurement],  # noqa: ARG002
        leaves: ThresholdedAnswer,  # noqa: ARG002
        program: Program,  # noqa: ARG002
    ) -> Estimate:
        """The estimate in a universe too large to list, where noisy counts of trip types are known above floors."""
        raise InputError(
            f"estimator {self.name!r} cannot handle {features.universe.size:,} trip types, which are not listed: "
            "use 'posterior' or 'projection'"
        )

    def drawn(
        self,
        features: FeatureDag,  # noqa: ARG002
        measurements: Sequence[Measurement],  # noqa: ARG002
        prior: Floats | None,  # noqa: ARG002
        seed: int,  # noqa: ARG002
    ) -> Ints:
        """A draw of the count of every trip type from the posterior, given all noisy answers (where `expects`)."""
        raise InputError(f"estimator {self.name!r} has no law of what the true counts may be")

    def check_weights(self, weights: Weights | None) -> Weights:
        """The weights to use: the requested ones if this estimator takes any, or its default."""
        if weights is None or (isinstance(weights, str) and weights == self.weights):
            return self.weights
        if not self.takes_weights:
            raise InputError(
                f"weights {weights!r} with estimator {self.name!r}, which weighs by {self.weights.replace('-', ' ')}: "
                "leave weights out, or use estimator 'projection'"
            )
        accepted: Weights = weights
        return accepted


# The engine


ESTIMATORS: Parts[Estimator] = Parts(
    "estimator",
    "cbdp.estimation",
    {
        "posterior": "cbdp.estimation.posterior:Posterior",
        "projection": "cbdp.estimation.projection:Projection",
    },
    instance_of(Estimator),
    base="cbdp.estimation.Estimator",
)


def post_process(
    features: FeatureDag,
    measurements: Measurements | Sequence[NoisyAnswer],
    *,
    weights: Weights | None = None,
    solver: str | Solver = "newton",
    tolerance: float = TOLERANCE,
    warm_start: Estimate | None = None,
    estimator: str | Estimator | None = None,
    prior: ArrayLike | None = None,
) -> Estimate:
    """Consistent non-negative counts for every feature from noisy ones, wherever those come from.

    `measurements` maps features to noisy counts (arrays in the elements' order, or tables keyed by attribute values), or
    lists `Measurement`s; of a universe too large to list, that of `singleton` has floors, or reveals counts on demand
    (`cbdp.measure` makes both kinds). The answer is certified: if its optimality conditions are off by more than
    `tolerance`, this raises `CertificateError`.

    `estimator` is "posterior" (what is to be expected of each trip type given every noisy answer, made consistent; `prior`
    may give public weights, one for each trip type) or "projection" (the closest consistent counts). Left out, it is the
    posterior, as in `ConstraintBased`; or projection where `weights` are given, or the noise is not known: counts without a
    scale cannot be weighed by how noisy they are. `weights` are "size" (the paper's), "uniform", "inverse-variance", or a
    mapping from features to one of these, a number, a number per element, or infinity for exact public counts.

    >>> import cbdp
    >>> dag = cbdp.FeatureDag(cbdp.Universe(origin=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by="time")])
    >>> noisy = {"total": [10], "time": [7, 2], "singleton": [5, -2, 3, 1]}
    >>> estimate = cbdp.post_process(dag, noisy)
    >>> estimate.counts("time").round(3).tolist(), estimate.solution.kkt_residual < 1e-12
    ([7.661, 2.051], True)
    """
    if not isinstance(tolerance, int | float) or not tolerance > 0:
        raise InputError(f"tolerance is {tolerance!r}, it must be a number above 0")
    if warm_start is not None and not isinstance(warm_start, Estimate):
        raise InputError(f"warm_start is of type {type(warm_start).__name__}: give an earlier Estimate")
    tables, leaves = _read_with_leaves(features, measurements)
    measured = tables if leaves is None else [*tables, leaves.measurement()]
    chosen = ESTIMATORS.get(
        _default_estimator(features, measured, weights) if estimator is None else estimator
    )
    program = Program(
        chosen.check_weights(weights), SOLVERS.get(solver), tolerance, warm_start,
        _checked_prior(chosen, prior, features),
    )  # fmt: skip
    if leaves is None:
        return chosen.estimate(features, tables, program)
    return chosen.estimate_above(features, tables, leaves, program)


def _checked_prior(estimator: Estimator, prior: ArrayLike | None, features: FeatureDag) -> Floats | None:
    if prior is None:
        return None
    if not estimator.takes_prior:
        raise InputError(
            f"a prior with estimator {estimator.name!r}, which has no use for it: use 'posterior'"
        )
    return check_prior(prior, features.universe.size)


def _read_with_leaves(
    features: FeatureDag, measurements: Measurements | Sequence[NoisyAnswer]
) -> tuple[list[Measurement], ThresholdedAnswer | None]:
    """Measurements as they are read, and apart from them the leaves of a universe that is not listed."""
    thresholded: list[NoisyAnswer] = []
    if isinstance(measurements, list | tuple):
        thresholded = [m for m in measurements if hasattr(m, "lower")]
        measurements = [m for m in measurements if not hasattr(m, "lower")]
    return tables_and_leaves([*read_measurements(features, cast("Measurements", measurements)), *thresholded])


def _default_estimator(
    features: FeatureDag, measurements: Sequence[Measurement], weights: Weights | None
) -> str:
    """The posterior where every variance and the distribution of the leaves' noise are given, else the projection."""
    leaves = [m for m in measurements if m.feature == SINGLETON]
    whole = len(leaves) == 1 and (
        leaves[0].elements is None
        or leaves[0].floor is not None
        or len(leaves[0].elements) == features.universe.size
    )
    precise = all(m.variance is not None for m in measurements)
    # in a universe that is not listed only a table says how many trips there are
    alone = len(measurements) == 1 and len(leaves) == 1 and leaves[0].floor is not None
    if weights is None and whole and precise and leaves[0].noise is not None and not alone:
        return "posterior"
    return "projection"


def check_prior(prior: ArrayLike, size: int) -> Floats:
    """Public weights for every trip type: above 0 somewhere, never negative.

    >>> check_prior([1, 0, 3], 3).tolist()
    [1.0, 0.0, 3.0]
    """
    try:
        weights = np.asarray(prior, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"the prior is {prior!r}: give a weight for each trip type") from None
    if weights.shape != (size,):
        raise InputError(
            f"the prior has shape {weights.shape}: give a weight for each of {size:,} trip types"
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not (weights > 0).any():
        raise InputError("the prior's weights must be finite, not negative, and above 0 somewhere")
    return weights
