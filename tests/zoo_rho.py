"""Honest mechanisms whose noise is paid for in ρ, and broken ones, each with two neighbouring data sets (see `zoo`)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from cbdp.app.audit.lower_bound import TrialParts, epsilon_lower_bound, rho_lower_bound
from cbdp.audit.lower_bound import EpsilonBound, RhoBound
from cbdp.counting.counts import Counts
from cbdp.mechanisms import ConstraintBased, Hierarchical, Laplace
from cbdp.privacy.accounting import DPCost, PrivacyGuarantee, epsilon_of
from cbdp.privacy.entropy import Entropy
from cbdp.privacy.measurement import NoisyAnswer
from cbdp.privacy.unit import Person, Sensitivity, Trip
from tests.zoo import CARD, FEW_PARTS, HIDING, MANY, MANY_PARTS, MOVED, NONE, ONE, WITH, WITHOUT

RHO = Fraction(1, 2)
FIVE = Person("card", 5)
APART = Person("card", 2, apart="stop")


@dataclass(frozen=True)
class RhoCase:
    """A mechanism under attack; `reach` is the ρ that the attack must prove: it shows that the attack has power."""

    mechanism: Any
    one: Any
    two: Any
    parts: TrialParts = MANY_PARTS
    trials: int = 150_000
    reach: float = 0.25

    def attack(self, seed: int) -> RhoBound:
        return rho_lower_bound(
            self.mechanism, self.one, self.two, trials=self.trials, parts=self.parts, seed=seed
        )

    def attack_stated(self, seed: int) -> EpsilonBound:
        """Against the (ε, δ) that is stated."""
        return epsilon_lower_bound(
            self.mechanism, self.one, self.two, trials=self.trials, parts=self.parts, seed=seed
        )


class SpreadWhereTripsPileUp(ConstraintBased):
    """Noise for k trips in k different counts (l2² = k), where all k may be in one (l2² = k²).

    The easy slip with contributions bounded in number and not by where they fall.
    """

    def change(self, feature: str) -> Sensitivity:
        real = super().change(feature)
        return Sensitivity(real.l1, real.l1, real.l0, 1)

    def measure(self, counts: Counts, entropy: Entropy) -> list[NoisyAnswer]:
        from cbdp.measuring import noisy_counts

        return [
            noisy_counts(a.feature, counts.of(self.features, a.feature), a.law, a.share, entropy)
            for a in self.answers()
        ]


class DeltaForgotten(Laplace):
    """Gaussian noise for (ε, δ), claimed as pure ε: no Gaussian noise has one. Reports that give ε alone do it."""

    def claim(self) -> PrivacyGuarantee:
        return PrivacyGuarantee(
            self.unit, DPCost("every trip type once", epsilon_of(self.amount, self.delta))
        )


class EveryFeatureWithTheWhole(ConstraintBased):
    """Each feature is measured with all of ρ, and one is charged."""

    def measure(self, counts: Counts, entropy: Entropy) -> list[NoisyAnswer]:
        assert self.measured is not None
        spent = self.amount * len(self.measured)
        return ConstraintBased(self.features, rho=spent, law=self.law, measured=self.measured).measure(
            counts, entropy
        )


class ScaleForVariance(Laplace):
    """σ² = l2/√2ρ: the root of the right variance is taken twice. Scale and variance mixed up."""

    def measure(self, counts: Counts, entropy: Entropy) -> list[NoisyAnswer]:
        wrong = Laplace(self.features, rho=2 * self.amount, law=self.law, unit=self.unit)
        return wrong.measure(counts, entropy)


def _zoo() -> dict[str, RhoCase]:
    dag, measured = FEW_PARTS.features, FEW_PARTS.measured
    case: Any = {"parts": FEW_PARTS, "trials": 60_000}
    gaussian: Any = {"rho": RHO, "law": "gaussian"}
    return {
        "SpreadWhereTripsPileUp": RhoCase(
            SpreadWhereTripsPileUp(dag, unit=FIVE, measured=measured, **gaussian),
            MANY,
            WITHOUT,
            reach=0.9,
            **case,
        ),
        "EveryFeatureWithTheWhole": RhoCase(
            EveryFeatureWithTheWhole(dag, measured=measured, **gaussian),
            ONE,
            NONE,
            reach=0.5,
            parts=FEW_PARTS,
            trials=150_000,
        ),
        "ScaleForVariance": RhoCase(
            ScaleForVariance(dag, **gaussian), ONE, NONE, reach=0.5, parts=FEW_PARTS, trials=150_000
        ),
    }


ZOO_RHO = MappingProxyType(_zoo())


def _honest() -> dict[str, RhoCase]:
    dag, measured = MANY_PARTS.features, MANY_PARTS.measured
    gaussian: Any = {"rho": RHO, "law": "gaussian"}
    spread = {"stop": ["A", "B", "B"], "card": ["x", "x", "y"]}
    return {
        "laplace": RhoCase(Laplace(dag, **gaussian), ONE, NONE),
        "laplace, sparse": RhoCase(Laplace(dag, sparse=True, **gaussian), ONE, NONE, reach=0.2),
        "laplace, replaced": RhoCase(Laplace(dag, unit=Trip("replace"), **gaussian), ONE, MOVED),
        "laplace, person": RhoCase(Laplace(dag, unit=CARD, **gaussian), WITH, WITHOUT, trials=90_000),
        "hierarchical": RhoCase(Hierarchical(dag, prune=False, **gaussian), ONE, NONE),
        "constraint-based": RhoCase(
            ConstraintBased(dag, measured=measured, **gaussian), ONE, NONE, trials=90_000
        ),
        "constraint-based, sparse": RhoCase(
            ConstraintBased(dag, measured=measured, sparse=True, estimator=HIDING, **gaussian),
            ONE,
            NONE,
            trials=90_000,
        ),
        "constraint-based, projection": RhoCase(
            ConstraintBased(dag, measured=measured, preset="paper", **gaussian), ONE, NONE, trials=90_000
        ),
        "constraint-based, person": RhoCase(
            ConstraintBased(dag, measured=measured, unit=CARD, **gaussian), WITH, WITHOUT, trials=90_000
        ),
        # two trips of a person that cannot be at the same stop: noise for their Euclidean length
        "constraint-based, person apart": RhoCase(
            ConstraintBased(dag, measured=["singleton"], unit=APART, **gaussian),
            spread,
            WITHOUT,
            trials=90_000,
        ),
    }


HONEST_RHO = MappingProxyType(_honest())
FORGOTTEN = RhoCase(
    DeltaForgotten(MANY_PARTS.features, rho=RHO, law="gaussian", delta="0.2"), ONE, NONE, reach=1.2
)
