"""CBDP: noisy answers to every feature, then the closest consistent non-negative counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from cbdp.errors import InputError
from cbdp.estimate.compiler import Weights
from cbdp.estimate.engine import TOLERANCE, check_estimator, check_prior, post_process, post_process_above
from cbdp.features import SINGLETON
from cbdp.measuring.dense import measure, measure_above, shares
from cbdp.measuring.noise import Entropy
from cbdp.mechanisms.base import Mechanism
from cbdp.privacy.allocation import ENOUGH, OPTIMAL, Facts, check_target
from cbdp.privacy.budget import Budget, Sequential, Spend
from cbdp.progress import tell
from cbdp.release.release import FEW, NEAREST, Claim, Release
from cbdp.rounding.gathering import gathered, price_of
from cbdp.rounding.nearest import round_trips
from cbdp.solvers import get
from cbdp.trips.count import Counts

DENSE = 2**20  # trip types up to which all are noised at once
PRESETS: dict[str, dict[str, Any]] = {
    "best": {"budget": "balanced"},
    "paper": {"budget": "uniform", "weights": "size", "estimator": "projection"},
}


@dataclass(frozen=True)
class ConstraintBased(Mechanism):
    """Constraint-based differential privacy over any feature DAG; the paper's O3, O4 and O5 with `preset="paper"`.

    All features are measured, or those that `measured` names (`singleton` among them); all are published. In a universe
    of more than `DENSE` trip types noise is drawn only where it can matter: the law of the release is the same.

    The estimate is the expected value of every count given all noisy answers, reconciled by the quadratic program
    (`estimator="posterior"`), or the program alone on the noisy answers ("projection"). The preset "paper" is the published
    configuration: ε split evenly, projection, weights by size.

    Whole trips are those `rounding="nearest"` to the estimate; or "few" (with the posterior): each cell's trips are gathered on
    the types that are likely to be used, so that fewer are named that nobody used. Counts of tables are their estimates
    rounded down or up either way.

    A `target` says how much the error of each feature matters; ε is then split for it (`budget="optimal"`), from public facts
    alone: sizes, the unit, and about how many `trips` there are and which share of the trip types is `filled`, if known.
    """

    name: ClassVar[str] = "constraint-based"

    measured: Sequence[str] | None = None
    budget: Budget | None = None
    weights: Weights | None = None
    solver: Any = "newton"
    tolerance: float = TOLERANCE
    sparse: bool | None = None  # None: by the size of the universe
    estimator: str | None = None
    preset: str = "best"
    prior: Any = field(default=None, repr=False)  # public weights, one for each trip type
    prior_source: Mapping[str, str] | None = None  # where those weights are from, for the manifest
    target: Mapping[str, Any] | None = None
    trips: float | None = None
    filled: float | None = None
    rounding: str | None = None

    def check(self) -> None:
        if self.preset not in PRESETS:
            raise InputError(f"unknown preset {self.preset!r}: use {' or '.join(map(repr, PRESETS))}")
        if self.target is not None:
            self._check_target()
        for name, value in PRESETS[self.preset].items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        self._check_estimator()
        if self.rounding is None:
            object.__setattr__(self, "rounding", FEW if self.estimator == "posterior" else NEAREST)
        if self.rounding not in (NEAREST, FEW):
            raise InputError(f"unknown rounding {self.rounding!r}: use {NEAREST!r} or {FEW!r}")
        if self.rounding == FEW and self.estimator != "posterior":
            raise InputError(
                "rounding 'few' with estimator 'projection', whose counts do not say how likely a type is used: "
                "use 'nearest', or estimator 'posterior'"
            )
        if SINGLETON not in self._shares():
            raise InputError(
                "'singleton' is not among the measured features: every trip type needs a noisy count"
            )
        get(self.solver)

    def _check_target(self) -> None:
        """A target takes the place of a budget."""
        if self.budget not in (None, OPTIMAL):
            raise InputError(
                f"a target with budget {self.budget!r}, which does not look at it: use budget 'optimal', or no target"
            )
        object.__setattr__(self, "budget", OPTIMAL)
        object.__setattr__(self, "target", check_target(self.target, self.features))

    def facts(self) -> Facts:
        """What is public about the trips, for a budget that is worked out."""
        return Facts(self.protects.sensitivity, self.trips, self.filled)

    def _check_estimator(self) -> None:
        """Weights belong to the projection; with the posterior they follow from the variances."""
        large = self.features.universe.size > DENSE if self.sparse is None else self.sparse
        # a universe that is not listed needs a table to tell how many trips there are
        alone = large and self.measured is not None and set(self.measured) == {SINGLETON}
        wanted = self.estimator or ("projection" if alone or self.weights is not None else "posterior")
        object.__setattr__(self, "estimator", check_estimator(wanted))
        if wanted == "posterior" and self.weights not in (None, "inverse-variance"):
            raise InputError(
                f"weights {self.weights!r} with estimator 'posterior', which weighs by inverse variance: "
                "leave weights out, or use estimator 'projection'"
            )
        if large and self.prior is not None:
            raise InputError(
                f"a prior for {self.features.universe.size:,} trip types, which are not listed: leave it out, or say "
                "sparse=False if all of them fit in memory"
            )
        if wanted == "projection" and self.prior is not None:
            raise InputError("a prior with estimator 'projection', which has no use for it: use 'posterior'")
        default = "inverse-variance" if wanted == "posterior" else "size"
        object.__setattr__(self, "weights", self.weights or default)
        if self.prior is not None:
            object.__setattr__(self, "prior", check_prior(self.prior, self.features.universe.size))

    def _shares(self) -> dict[str, Fraction]:
        return dict(self._split)

    @cached_property
    def _split(self) -> dict[str, Fraction]:
        assert self.budget is not None
        return shares(
            self.features,
            self.spent,
            self.budget,
            self.measured,
            target=self.target,
            facts=self.facts(),
            enough=self.enough,
        )

    @property
    def enough(self) -> Fraction | None:
        """The most that all tables get of ε with the budget "leaves": the posterior learns the rest from the leaves."""
        return ENOUGH * self.protects.sensitivity if self.estimator == "posterior" else None

    def claim(self) -> Claim:
        spends = self._shares().items()
        return Claim(
            self.protects, Sequential(tuple(Spend(name, share) for name, share in spends), "features")
        )

    def run(self, counts: Counts, entropy: Entropy) -> Release:
        budget: Any = {"budget": self._shares(), "only": self.measured, "entropy": entropy}
        how: Any = {"weights": self.weights, "solver": self.solver, "tolerance": self.tolerance}
        tell("measuring")
        if self.features.universe.size > DENSE if self.sparse is None else self.sparse:
            measured, answer = measure_above(counts, self.features, self.spent, **budget)
            tell("solving")
            estimate = post_process_above(
                self.features, measured, answer, estimator=self.estimator or "", **how
            )
            measured.append(answer.measurement())
        else:
            measured = measure(counts, self.features, self.spent, **budget)
            estimate = post_process(
                self.features,
                measured,
                estimator=self.estimator or "",
                prior=self.prior,
                progress=tell,
                **how,
            )
        tell("rounding")
        real = estimate.trips()
        if self.rounding == FEW:
            real = gathered(self.features, *real, price_of(self.budget))
        whole = round_trips(self.features, *real)
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
