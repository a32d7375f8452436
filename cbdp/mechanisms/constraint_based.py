"""CBDP: noisy answers to every feature, then the closest consistent non-negative counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from cbdp.budget import Budget, Sequential, Spend
from cbdp.compiler import Weights
from cbdp.counts import Counts
from cbdp.engine import TOLERANCE, post_process
from cbdp.errors import InputError
from cbdp.features import SINGLETON
from cbdp.measuring import measure, shares
from cbdp.mechanisms.base import Mechanism
from cbdp.noise import Entropy
from cbdp.release import Claim, Release, from_leaves
from cbdp.solvers import get


@dataclass(frozen=True)
class ConstraintBased(Mechanism):
    """Constraint-based differential privacy over any feature DAG; the paper's O3, O4 and O5 with the preset `odmts`.

    All features are measured, or those that `measured` names (`singleton` among them); all are published.
    """

    name: ClassVar[str] = "constraint-based"

    measured: Sequence[str] | None = None
    budget: Budget = "uniform"
    weights: Weights = "size"
    solver: Any = "newton"
    tolerance: float = TOLERANCE

    def check(self) -> None:
        if SINGLETON not in self._shares():
            raise InputError(
                "'singleton' is not among the measured features: every trip type needs a noisy count"
            )
        get(self.solver)

    def _shares(self) -> dict[str, Fraction]:
        return shares(self.features, self.spent, self.budget, self.measured)

    def claim(self) -> Claim:
        spends = self._shares().items()
        return Claim(
            self.protects, Sequential(tuple(Spend(name, share) for name, share in spends), "features")
        )

    def run(self, counts: Counts, entropy: Entropy) -> Release:
        measured = measure(
            counts, self.features, self.spent, self.budget, only=self.measured, entropy=entropy
        )
        estimate = post_process(
            self.features, measured, weights=self.weights, solver=self.solver, tolerance=self.tolerance
        )
        leaves = from_leaves(estimate.solution.leaves)
        return Release(
            self.features, self.name, self.claim(), *leaves, measured, estimate, secure=entropy.secure
        )
