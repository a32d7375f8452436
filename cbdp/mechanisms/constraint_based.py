"""CBDP: noisy answers to every feature, then the closest consistent non-negative counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from cbdp.budget import Budget, Sequential, Spend
from cbdp.compiler import Weights
from cbdp.counts import Counts
from cbdp.engine import TOLERANCE, post_process, post_process_above
from cbdp.errors import InputError
from cbdp.features import SINGLETON
from cbdp.measuring import measure, measure_above, shares
from cbdp.mechanisms.base import Mechanism
from cbdp.noise import Entropy
from cbdp.release import Claim, Release
from cbdp.rounding import round_trips
from cbdp.solvers import get

DENSE = 2**20  # trip types up to which all are noised at once


@dataclass(frozen=True)
class ConstraintBased(Mechanism):
    """Constraint-based differential privacy over any feature DAG; the paper's O3, O4 and O5 with the preset `odmts`.

    All features are measured, or those that `measured` names (`singleton` among them); all are published. In a universe
    of more than `DENSE` trip types noise is drawn only where it can matter: the law of the release is the same.
    """

    name: ClassVar[str] = "constraint-based"

    measured: Sequence[str] | None = None
    budget: Budget = "uniform"
    weights: Weights = "size"
    solver: Any = "newton"
    tolerance: float = TOLERANCE
    sparse: bool | None = None  # None: by the size of the universe

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
        budget: Any = {"budget": self.budget, "only": self.measured, "entropy": entropy}
        how: Any = {"weights": self.weights, "solver": self.solver, "tolerance": self.tolerance}
        if self.features.universe.size > DENSE if self.sparse is None else self.sparse:
            measured, answer = measure_above(counts, self.features, self.spent, **budget)
            estimate = post_process_above(self.features, measured, answer, **how)
            measured.append(answer.measurement())
        else:
            measured = measure(counts, self.features, self.spent, **budget)
            estimate = post_process(self.features, measured, **how)
        whole = round_trips(self.features, *estimate.trips())
        return Release(
            self.features,
            self.name,
            self.claim(),
            whole.index,
            whole.value,
            measured,
            estimate,
            secure=entropy.secure,
            rounding=whole.violation,
        )
