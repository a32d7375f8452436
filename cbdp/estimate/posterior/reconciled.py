"""Expected counts in a universe too large to list, reconciled with the tables and dealt out as trips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cbdp.estimate.base import Program
from cbdp.estimate.compiler import compile as compiled
from cbdp.estimate.compiler import merge
from cbdp.estimate.estimate import Estimate, certified
from cbdp.estimate.posterior.anchored import Anchors
from cbdp.estimate.posterior.censored import Expected
from cbdp.estimate.posterior.dealing import dealt, seed_of
from cbdp.estimate.posterior.sparse import expected_above
from cbdp.features import FeatureDag
from cbdp.privacy.measurement import Measurement
from cbdp.solvers.problem import Problem


def estimate_above(
    features: FeatureDag, measurements: Sequence[Measurement], above: Measurement, program: Program
) -> Estimate:
    """Counts above their floors as they are to be expected, and the others of each group together; reconciled, and dealt out.

    The program reconciles them with the features (weights are inverse variances), and what it leaves to a group's others is
    dealt out to types drawn at random, from a seed that follows from the noisy answers.
    """
    found = expected_above(features, measurements, above)
    problem = _of_expected(features, measurements, above, found)
    estimate = certified(
        features, problem, program.solver.solve(problem, None), program.solver, program.tolerance
    )
    known, rest = np.split(estimate.solution.leaves, [len(found.index)])
    mass = np.zeros(len(found.rest))
    mass[found.rest > 0] = rest
    others, shares = dealt(found, mass, seed_of([*measurements, above]))
    index = np.concatenate([found.index, others])
    order = np.argsort(index, kind="stable")
    solution = replace(estimate.solution, leaves=np.concatenate([known, shares])[order])
    return Estimate(features, solution, index[order])


def _of_expected(
    features: FeatureDag, measurements: Sequence[Measurement], above: Measurement, found: Expected
) -> Problem:
    """The program for types that are told apart, and one leaf for all others of each group."""
    none = np.empty(0, dtype=np.int64)
    unknown = replace(above, values=none, elements=none, variance=None)
    problem = Anchors(features, merge(features, measurements)).hold(
        compiled(features, [*measurements, unknown], "inverse-variance")
    )
    others = np.flatnonzero(found.rest > 0)
    return replace(
        problem,
        target=np.concatenate([found.mean, found.rest[others]]),
        weight=1.0 / np.concatenate([found.variance, found.doubt[others]]),
        cell=found.groups.cell[np.concatenate([found.group, others])].astype(problem.cell.dtype),
        index=None,
        floor=None,
    )
