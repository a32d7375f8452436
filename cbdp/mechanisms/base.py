"""What all mechanisms share: features and ε in the constructor, `measure` and `finish`, a recipe, and replicates for intervals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Self, TypedDict, Unpack
from weakref import WeakKeyDictionary

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.counting import Clock, Counts, count
from cbdp.errors import InputError
from cbdp.estimation import ESTIMATORS, Estimate
from cbdp.estimation.intervals import Interval, intervals
from cbdp.estimation.invariants import exact_answers
from cbdp.features import FeatureDag
from cbdp.measuring.samplers import sampler_of
from cbdp.numbers import Number, positive, probability
from cbdp.privacy.accounting import (
    Composable,
    Cost,
    DPCost,
    EpsilonDeltaStatement,
    PrivacyGuarantee,
    ZCDPCost,
    epsilon_of,
    rho_for,
)
from cbdp.privacy.entropy import Entropy, InsecureSeededEntropy, SystemEntropy
from cbdp.privacy.expected_error import DemandFacts
from cbdp.privacy.measurement import Measurement, NoisyAnswer, PlannedAnswer
from cbdp.privacy.noise import (
    NOISE_DISTRIBUTIONS,
    DiscreteGaussian,
    DiscreteLaplace,
    NoiseDistribution,
    PrivacyMeasure,
)
from cbdp.privacy.unit import Sensitivity, Unit, UnitLike, feature_sensitivity, unit_of
from cbdp.release import Release
from cbdp.release.serialization import Recipe, TableNoise, setting_from_json, setting_to_json

SETTINGS_IN_FILES = ("prior", "running")  # settings that a release holds in files of their own
SETTINGS_IN_MANIFEST = ("features", "epsilon", "unit")  # what a manifest says elsewhere


class Evidence(TypedDict, total=False):
    """What a release states beside its trips: the fields of `Release` of these names."""

    estimate: Estimate | None
    tables: Mapping[str, Ints]
    violations: Mapping[str, int] | None
    rounding_tolerance: float | None
    levels: FeatureDag | None
    prior: Floats | None


@dataclass(frozen=True)
class Mechanism(ABC):
    """A way to make a release from trips. All its settings are public; the random state is never one of them.

    Subclass it, set the class data, implement `answers`, `claim`, `measure` and `finish`; fields are settings. Once it is built,
    `epsilon` is a `Fraction` (`amount`) and `unit` a `Trip` or `Person` (`protected`).

    Proof: docs/proofs/post-processing.md.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> mechanism = cbdp.ConstraintBased(features, epsilon=1)
    >>> isinstance(mechanism, cbdp.mechanisms.Mechanism), mechanism.epsilon, mechanism.unit
    (True, Fraction(1, 1), Trip(neighbours='add-remove'))
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""
    asks_tables: ClassVar[bool] = True  # False: only trip types are measured, so that tables add nothing

    models_errors: ClassVar[bool] = False  # True: a model tells the errors for any amount and any shares

    features: FeatureDag
    epsilon: Number | None = None
    unit: UnitLike = "trip"

    def __post_init__(self) -> None:
        if not isinstance(self.features, FeatureDag):
            raise InputError(f"{self.name} needs a FeatureDag, not {type(self.features).__name__}")
        for name, value in self._kept_settings():
            object.__setattr__(self, name, value)
        self.check()

    def _kept_settings(self) -> Iterator[tuple[str, object]]:
        yield from self.settle()
        yield "unit", unit_of(self.unit)
        yield from self.complete()

    def settle(self) -> Iterator[tuple[str, object]]:
        """Make sure of what is spent: the fields that say so, as they are kept."""
        if self.epsilon is None:
            raise InputError(f"{self.name} needs an epsilon: say how much is spent, like epsilon=1")
        yield "epsilon", positive(self.epsilon)

    def complete(self) -> Iterator[tuple[str, object]]:
        """Settings that follow from others, as they are kept: each is set before the next is worked out."""
        return iter(())

    def check(self) -> None:  # noqa: B027 - most mechanisms add nothing
        """Refuse settings that make no sense, before any data is seen."""

    @property
    def protected(self) -> Unit:
        """The unit of privacy."""
        return unit_of(self.unit)

    # What is promised and planned: public, before any data is seen

    @abstractmethod
    def claim(self) -> PrivacyGuarantee:
        """What this mechanism promises."""

    @abstractmethod
    def answers(self) -> tuple[PlannedAnswer, ...]:
        """The noisy answers it will give, and what each costs."""

    @property
    def measured_features(self) -> FeatureDag:
        """What the answers are of: the features, or what the mechanism makes of them."""
        return self.features

    @property
    def currency(self) -> PrivacyMeasure:
        """What the noise is paid for in."""
        return "epsilon"

    @property
    def amount(self) -> Fraction:
        """What is shared among the answers, in that currency."""
        assert self.epsilon is not None
        return positive(self.epsilon)

    def change(self, feature: str) -> Sensitivity:
        """How much one unit can change the counts of a measured feature."""
        return feature_sensitivity(self.measured_features, feature, self.protected)

    def share_of(self, feature: str) -> Callable[[Fraction], Fraction]:
        """What a feature would get of any ε (or ρ, where the noise is paid for in it), shared as it is shared now."""
        part = {a.feature: a.share for a in self.answers()}[feature] / self.amount
        return lambda amount: part * amount

    def expected_errors(self, facts: DemandFacts) -> Mapping[str, Mapping[str, float]]:  # noqa: ARG002
        """By budget, the configured one first, the expected error of each feature's counts in trips; empty: not known."""
        return {}

    def remarks(self) -> Sequence[str]:
        """What a reader of the expected errors should know."""
        return ()

    def with_other_law(self) -> Mechanism | None:
        """The same promise with the other law of noise; None where there is no choice."""
        return None

    @property
    def recipe(self) -> Recipe:
        """All that `finish` needs beside the measurements."""
        settings = {
            f.name: setting_to_json(getattr(self, f.name))
            for f in fields(self)
            if f.name not in SETTINGS_IN_MANIFEST
        }
        return Recipe(self.name, settings, self.own_tables())

    def own_tables(self) -> Mapping[str, TableNoise]:
        """The noise of tables that are published as they are measured."""
        return {}

    @classmethod
    def from_recipe(cls, release: Release) -> Self:
        """The mechanism that made a release."""
        names = {f.name for f in fields(cls)}
        settings = {
            n: setting_from_json(v)
            for n, v in release.recipe.settings.items()
            if n in names and n not in (*SETTINGS_IN_FILES, *SETTINGS_IN_MANIFEST)
        }
        if "prior" in names:
            settings["prior"] = release.prior
            if release.prior is None and release.recipe.settings.get("prior") is not None:
                raise InputError("the release does not hold the public weights that entered its estimate")
        cost, beside = release.claim.cost, Fraction(0)
        if "running" in names and release.running is not None:
            settings["running"] = release.running.steered
            beside = sum((one.amount for one in release.running.steered.values()), Fraction(0))
        epsilon = None if cost.currency == "rho" else cost.epsilon - beside  # the settings hold ρ and δ
        return cls(release.features, epsilon, release.claim.unit, **settings)

    # The two functions

    @abstractmethod
    def measure(self, counts: Counts, entropy: Entropy) -> list[NoisyAnswer]:
        """Noisy answers about these counts. The only part that sees counts, and the only one that spends ε."""

    @abstractmethod
    def finish(self, answers: Sequence[NoisyAnswer]) -> Release:
        """The release that these answers make: pure and repeatable. Whoever has the answers can make it again."""

    def release(
        self, trips: object, *, columns: Mapping[str, str] | None = None, clock: Clock | None = None
    ) -> Release:
        """Publish trips: noise comes from the operating system's entropy. `columns` and `clock` are those of `cbdp.count`."""
        return self._run(trips, columns, clock, SystemEntropy())

    def simulate(
        self,
        trips: object,
        seed: int,
        *,
        columns: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> Release:
        """What a release could look like, repeatably: for tests and benchmarks. Insecure, and marked as such."""
        return self._run(trips, columns, clock, InsecureSeededEntropy(seed))

    def _run(
        self,
        trips: object,
        columns: Mapping[str, str] | None,
        clock: Clock | None,
        entropy: Entropy,
    ) -> Release:
        if entropy.secure and isinstance(trips, Counts) and not trips.secure:
            raise InputError(
                "these counts were bounded by a seeded source: count the trips again for a release"
            )
        universe = self.features.universe
        counts = count(trips, universe, columns=columns, unit=self.unit, clock=clock, entropy=entropy)
        return replace(self.release_of(counts, entropy), secure=entropy.secure)

    def release_of(self, counts: Counts, entropy: Entropy) -> Release:
        """Measure and finish: the one path to a release."""
        return self.finish(self.measure(counts, entropy))

    def publication(
        self,
        index: Ints,
        value: Ints,
        measurements: Sequence[Measurement] = (),
        **evidence: Unpack[Evidence],
    ) -> Release:
        """What `finish` returns: these trips with the recipe and the claim. Nobody vouches for its noise until it is run."""
        return Release(
            self.features, self.recipe, self.claim(), index, value, measurements, secure=False, **evidence
        )

    # Afterwards

    def intervals(
        self, release: Release, confidence: float = 0.9, *, features: Sequence[str] | None = None
    ) -> Mapping[str, Interval]:
        """An interval for every count of the features (all but `singleton`) that have any; no privacy is spent."""
        self._check_same_mechanism(release)
        return intervals(release, confidence, features=features)

    def replicates(self, release: Release) -> ReplicateRuns:
        """Runs of this mechanism in the place of the one that made a release: no privacy is spent."""
        self._check_same_mechanism(release)
        return ReplicateRuns(self, release)

    def _check_same_mechanism(self, release: Release) -> None:
        promised, stated = self.claim(), release.claim
        # what it promises may differ: a simulation that was saved promises nothing
        same = (stated.unit, stated.cost) == (promised.unit, promised.cost)
        if release.mechanism != self.name or not same:
            raise InputError(
                f"the release was made by {release.mechanism!r} ({release.claim}), this mechanism is {self.name!r} "
                f"({promised}): use the one that made it"
            )
        if self.features.sizes != release.features.sizes:
            raise InputError(
                f"the release has {release.features!r}, the mechanism {self.features!r}: they must agree"
            )


# Additive noise of either distribution: discrete Laplace, paid for in ε, or discrete Gaussian, paid for in ρ (Bun and Steinke 2016) and stated as
# (ε, δ) by Corollary 13 of Canonne, Kamath and Steinke 2020


DEFAULT_DELTA = Fraction(1, 10**6)  # at which ρ is stated unless told otherwise


@dataclass(frozen=True)
class AdditiveNoiseMechanism(Mechanism):
    """With `law="gaussian"` give `rho`, or `epsilon` and `delta`: then the largest ρ is spent that is known to give them.

    Once it is built, `rho` and `delta` are fractions where the noise is paid for in ρ, and `epsilon` is what ρ gives at that δ.
    """

    law: str = field(default="geometric", kw_only=True)
    rho: Number | None = field(default=None, kw_only=True)
    delta: Number | None = field(default=None, kw_only=True)

    @property
    def law_kind(self) -> type[NoiseDistribution]:
        return NOISE_DISTRIBUTIONS.get(self.law)

    @property
    def currency(self) -> PrivacyMeasure:
        return self.law_kind.currency

    @property
    def amount(self) -> Fraction:
        spent = self.rho if self.currency == "rho" else self.epsilon
        assert spent is not None
        return positive(spent, self.currency)

    @property
    def recipe(self) -> Recipe:
        recipe = super().recipe
        if self.currency == "rho":
            return recipe
        settings = {n: v for n, v in recipe.settings.items() if n not in ("rho", "delta")}
        return replace(recipe, settings=settings)

    def settle(self) -> Iterator[tuple[str, object]]:
        sampler_of(self.law_kind(1))  # refuses a law that is never drawn
        if self.currency == "epsilon":
            if self.rho is not None or self.delta is not None:
                name = "rho" if self.rho is not None else "delta"
                raise InputError(
                    f"{name} is given with law {self.law!r}, which spends pure ε: leave it out, or use law 'gaussian'"
                )
            yield from super().settle()
            return
        rho, delta = self._priced()
        yield from (("rho", rho), ("delta", delta), ("epsilon", epsilon_of(rho, delta)))

    def _priced(self) -> tuple[Fraction, Fraction]:
        """ρ and δ, whichever way they are given."""
        if self.rho is None:
            if self.epsilon is None or self.delta is None:
                raise InputError(
                    f"law {self.law!r} is paid for in ρ: give rho, or epsilon and delta, like 1e-6 (well below one over the number of riders)"
                )
            return rho_for(self.epsilon, self.delta), probability(self.delta)
        rho = positive(self.rho, "rho")
        delta = DEFAULT_DELTA if self.delta is None else probability(self.delta)
        # a mechanism that is made again from its own fields has both
        if self.epsilon is not None and positive(self.epsilon) != epsilon_of(rho, delta):
            raise InputError(
                f"rho {self.rho} and epsilon {self.epsilon} are both given: leave one of them out"
            )
        return rho, delta

    def with_other_law(self) -> AdditiveNoiseMechanism:
        """The same mechanism with the other law, for the same ε and δ; pure ε needs no δ."""
        cost = self.claim().cost
        settings: dict[str, Any] = {
            "law": DiscreteLaplace.name,
            "epsilon": cost.epsilon,
            "rho": None,
            "delta": None,
        }
        if self.currency == "epsilon":
            settings |= {"law": DiscreteGaussian.name, "delta": cost.delta or DEFAULT_DELTA}
        budget = getattr(self, "budget", None)
        if isinstance(budget, Mapping):
            plain = replace(self, budget="uniform", **settings)  # type: ignore[call-arg]
            parts = {name: Fraction(share) / self.amount * plain.amount for name, share in budget.items()}
            settings["budget"] = parts
        return replace(self, **settings)

    def spend(self, what: str, share: Fraction) -> DPCost | ZCDPCost:
        """What an answer costs."""
        return ZCDPCost(what, share) if self.currency == "rho" else DPCost(what, share)

    def stated(self, cost: Composable) -> Cost:
        """What is promised for all answers together."""
        if self.currency == "epsilon":
            return cost
        assert self.delta is not None
        return EpsilonDeltaStatement(cost, probability(self.delta))

    def noise_for(self, feature: str, share: Fraction) -> NoiseDistribution:
        """The noise that a share buys for a measured feature."""
        return self.law_kind.calibrate(share, self.change(feature))


# Replicates: the mechanism run again on trips that are drawn from the posterior (parametric bootstrap; Efron and Tibshirani 1993)


MAX_CACHED_TYPES = 2**25  # trip types, of all runs together, up to which runs are kept for the next question

PosteriorReplicate = tuple[tuple[Ints, Ints], Release]

# by estimate, for as long as somebody holds it: a copy of a release with stops or a title shares the estimate
_posterior_replicates: WeakKeyDictionary[Estimate, dict[int, PosteriorReplicate]] = WeakKeyDictionary()


@dataclass(frozen=True)
class ReplicateRuns:
    """Runs from seeds. Each is made once for a release, however many questions are asked."""

    mechanism: Mechanism
    release: Release

    def likely(self, seed: int) -> PosteriorReplicate:
        """Trips drawn from the posterior given the noisy answers, and a release of them."""
        assert self.release.estimate is not None
        kept = _posterior_replicates.setdefault(self.release.estimate, {})
        if seed in kept:
            return kept[seed]
        universe, estimator = self.release.features.universe, self.release.recipe.estimator
        answers = [*self.release.measurements, *exact_answers(self.release.recipe.public)]
        counts = ESTIMATORS.installed(estimator).drawn(
            self.release.features, answers, self.release.prior, seed
        )
        index = np.flatnonzero(counts)
        trips = index, counts[index]
        replicate = trips, self.mechanism.simulate(Counts(universe, *trips, self.mechanism.protected), seed)
        if (len(kept) + 1) * universe.size <= MAX_CACHED_TYPES:
            kept[seed] = replicate
        return replicate

    def further(self, seed: int) -> PosteriorReplicate:
        """The double bootstrap: a replicate of the replicate from this seed, kept with that one."""
        return ReplicateRuns(self.mechanism, self.likely(seed)[1]).likely(seed)
