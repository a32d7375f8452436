"""The post-processing engine: noisy counts in, the best consistent non-negative answer out, with a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cbdp.arrays import Floats
from cbdp.errors import InputError
from cbdp.estimate.base import Estimator, Program
from cbdp.estimate.compiler import Measurements, Weights, read
from cbdp.estimate.estimate import Estimate
from cbdp.features import SINGLETON, FeatureDag
from cbdp.parts import Parts, instance_of
from cbdp.privacy.measurement import Measurement, NoisyAnswer, tables_and_leaves
from cbdp.solvers import SOLVERS

TOLERANCE = 1e-6
ESTIMATORS: Parts[Estimator] = Parts(
    "estimator",
    "cbdp.estimate",
    {
        "posterior": "cbdp.estimate.posterior:Posterior",
        "projection": "cbdp.estimate.projection:Projection",
    },
    instance_of(Estimator),
    base="cbdp.estimate.Estimator",
)


def post_process(
    features: FeatureDag,
    measurements: Measurements | Sequence[NoisyAnswer],
    *,
    weights: Weights | None = None,
    solver: Any = "newton",
    tolerance: float = TOLERANCE,
    warm_start: Estimate | None = None,
    estimator: Any = None,
    prior: Any = None,
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
    tables, leaves = _parted(features, measurements)
    known = tables if leaves is None else [*tables, leaves.measurement()]
    chosen = ESTIMATORS.get(_default(features, known, weights) if estimator is None else estimator)
    program = Program(
        chosen.check_weights(weights), SOLVERS.get(solver), tolerance, warm_start,
        _checked_prior(chosen, prior, features),
    )  # fmt: skip
    if leaves is None:
        return chosen.estimate(features, tables, program)
    return chosen.estimate_above(features, tables, leaves, program)


def _checked_prior(estimator: Estimator, prior: Any, features: FeatureDag) -> Floats | None:
    if prior is None:
        return None
    if not estimator.takes_prior:
        raise InputError(
            f"a prior with estimator {estimator.name!r}, which has no use for it: use 'posterior'"
        )
    return check_prior(prior, features.universe.size)


def _parted(features: FeatureDag, measurements: Any) -> tuple[list[Measurement], Any]:
    """Measurements as they are read, and apart from them the leaves of a universe that is not listed."""
    revealing: list[NoisyAnswer] = []
    if isinstance(measurements, list | tuple):
        revealing = [m for m in measurements if hasattr(m, "lower")]
        measurements = [m for m in measurements if not hasattr(m, "lower")]
    return tables_and_leaves([*read(features, measurements), *revealing])


def _default(features: FeatureDag, measurements: Sequence[Measurement], weights: Any) -> str:
    """The estimator that serves best with what is known."""
    leaves = [m for m in measurements if m.feature == SINGLETON]
    whole = len(leaves) == 1 and (
        leaves[0].elements is None
        or leaves[0].floor is not None
        or len(leaves[0].elements) == features.universe.size
    )
    told = all(m.variance is not None for m in measurements)
    # a universe that is not listed needs a table to tell how many trips there are
    alone = len(measurements) == 1 and len(leaves) == 1 and leaves[0].floor is not None
    if weights is None and whole and told and leaves[0].noise is not None and not alone:
        return "posterior"
    return "projection"


def check_prior(prior: Any, size: int) -> Floats:
    """Public weights for every trip type: above 0 somewhere, never negative.

    >>> check_prior([1, 0, 3], 3).tolist()
    [1.0, 0.0, 3.0]
    """
    try:
        given = np.asarray(prior, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"the prior is {prior!r}: give a weight for each trip type") from None
    if given.shape != (size,):
        raise InputError(f"the prior has shape {given.shape}: give a weight for each of {size:,} trip types")
    if not np.isfinite(given).all() or (given < 0).any() or not (given > 0).any():
        raise InputError("the prior's weights must be finite, not negative, and above 0 somewhere")
    return given
