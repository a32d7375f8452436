"""CBDP: noisy answers to every feature, then the closest consistent non-negative counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from cbdp.budget import Budget, Sequential, Spend
from cbdp.compiler import Weights
from cbdp.counts import Counts
from cbdp.engine import TOLERANCE, post_process
from cbdp.measuring import measure, shares
from cbdp.mechanisms.base import Mechanism
from cbdp.noise import Entropy
from cbdp.release import Claim, Release, from_leaves
from cbdp.solvers import get


@dataclass(frozen=True)
class ConstraintBased(Mechanism):
    """Constraint-based differential privacy over any feature DAG; the paper's O3, O4 and O5 with the preset `odmts`."""

    name: ClassVar[str] = "constraint-based"

    budget: Budget = "uniform"
    weights: Weights = "size"
    solver: Any = "newton"
    tolerance: float = TOLERANCE

    def check(self) -> None:
        shares(self.features, self.spent, self.budget)
        get(self.solver)

    def claim(self) -> Claim:
        spends = shares(self.features, self.spent, self.budget).items()
        return Claim(
            self.protects, Sequential(tuple(Spend(name, share) for name, share in spends), "features")
        )

    def run(self, counts: Counts, entropy: Entropy) -> Release:
        measured = measure(counts, self.features, self.spent, self.budget, entropy=entropy)
        estimate = post_process(
            self.features, measured, weights=self.weights, solver=self.solver, tolerance=self.tolerance
        )
        leaves = from_leaves(estimate.solution.leaves)
        return Release(
            self.features, self.name, self.claim(), *leaves, measured, estimate, secure=entropy.secure
        )
