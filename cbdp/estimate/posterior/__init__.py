"""Leaves as they are to be expected given every noisy answer, reconciled with the tables by the same program.

At low ε a projection keeps the maxima of the noise; an expected value does not. See docs/explanation/accuracy.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.estimate.base import Estimator, Program
from cbdp.estimate.compiler import compile as compiled
from cbdp.estimate.compiler import merge
from cbdp.estimate.estimate import Estimate, certified
from cbdp.estimate.posterior.anchored import Anchors
from cbdp.estimate.posterior.estimate import drawn_leaves, expected_leaves
from cbdp.estimate.posterior.reconciled import estimate_above
from cbdp.estimate.posterior.revealing import sharp_floors
from cbdp.estimate.posterior.settings import TUNING
from cbdp.features import SINGLETON, FeatureDag
from cbdp.privacy.measurement import Measurement, Revealing
from cbdp.progress import tell


@dataclass(frozen=True)
class Posterior(Estimator):
    """The default: each noisy leaf is replaced by its expected value and variance, then the program reconciles all.

    >>> import cbdp
    >>> cbdp.estimate.ESTIMATORS.get("posterior") == Posterior()
    True
    """

    name: ClassVar[str] = "posterior"
    about: ClassVar[str] = "the expected count of every trip type given all noisy answers, made consistent"
    weights: ClassVar[str] = "inverse-variance"
    takes_weights: ClassVar[bool] = False
    takes_prior: ClassVar[bool] = True
    expects: ClassVar[bool] = True

    revealed: int = TUNING.revealed  # trip types up to which all noisy counts are asked for

    def estimate(
        self, features: FeatureDag, measurements: Sequence[Measurement], program: Program
    ) -> Estimate:
        leaves = expected_leaves(features, measurements, prior=program.prior)
        tables = [m for m in measurements if m.feature != SINGLETON]
        tell("solving")
        measured = merge(features, (m for m in measurements if len(m.values)))
        problem = Anchors(features, measured).hold(compiled(features, [*tables, leaves], self.weights))
        warm = None if program.warm_start is None else program.warm_start.solution
        solution = program.solver.solve(problem, warm)
        return certified(features, problem, solution, program.solver, program.tolerance)

    def estimate_above(
        self, features: FeatureDag, tables: Sequence[Measurement], leaves: Revealing, program: Program
    ) -> Estimate:
        leaves.lower(sharp_floors(features, tables, leaves, self.revealed))
        told = leaves.measurement()
        if told.floor is None:  # every type is revealed
            return self.estimate(features, [*tables, told], program)
        tell("solving")
        return estimate_above(features, tables, told, program)

    def drawn(
        self, features: FeatureDag, measurements: Sequence[Measurement], prior: Floats | None, seed: int
    ) -> Ints:
        return drawn_leaves(features, measurements, np.random.default_rng(seed), prior=prior)


__all__ = ["Posterior", "expected_leaves"]
