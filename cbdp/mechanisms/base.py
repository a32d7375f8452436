"""What all mechanisms share: features and ε in the constructor, trips in, a release out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.estimate.intervals import Interval, intervals
from cbdp.features import FeatureDag
from cbdp.mechanisms.again import Again
from cbdp.privacy.budget import DemandFacts
from cbdp.privacy.changes import change_in
from cbdp.privacy.claim import Claim
from cbdp.privacy.entropy import Entropy, InsecureSeededEntropy, SystemEntropy
from cbdp.privacy.laws.base import Currency
from cbdp.privacy.measurement import Measurement, NoisyAnswer, PlannedAnswer
from cbdp.privacy.numbers import positive
from cbdp.privacy.sensitivity import Change
from cbdp.privacy.unit import unit_of
from cbdp.release import Release
from cbdp.release.recipe import Recipe, TableNoise, given, plain
from cbdp.trips import Clock, Counts, count

HELD = ("prior", "running")  # settings that a release holds in files of their own
STATED = ("features", "epsilon", "unit")  # what a manifest says elsewhere


@dataclass(frozen=True)
class Mechanism(ABC):
    """A way to make a release from trips. All its settings are public; the random state is never one of them.

    Subclass it, set the class data, implement `answers`, `claim`, `measure` and `finish`; fields are settings. Once it is built,
    `epsilon` is a `Fraction` and `unit` a `Trip` or `Person`.

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
    epsilon: Any = None
    unit: Any = "trip"

    def __post_init__(self) -> None:
        if not isinstance(self.features, FeatureDag):
            raise InputError(f"{self.name} needs a FeatureDag, not {type(self.features).__name__}")
        self.settle()
        object.__setattr__(self, "unit", unit_of(self.unit))
        self.check()

    def settle(self) -> None:
        """Make sure of what is spent."""
        if self.epsilon is None:
            raise InputError(f"{self.name} needs an epsilon: say how much is spent, like epsilon=1")
        object.__setattr__(self, "epsilon", positive(self.epsilon))

    def check(self) -> None:  # noqa: B027 - most mechanisms add nothing
        """Refuse settings that make no sense, before any data is seen."""

    # What is promised and planned: public, before any data is seen

    @abstractmethod
    def claim(self) -> Claim:
        """What this mechanism promises."""

    @abstractmethod
    def answers(self) -> tuple[PlannedAnswer, ...]:
        """The noisy answers it will give, and what each costs."""

    @property
    def measured_features(self) -> FeatureDag:
        """What the answers are of: the features, or what the mechanism makes of them."""
        return self.features

    @property
    def currency(self) -> Currency:
        """What the noise is paid for in."""
        return "epsilon"

    @property
    def amount(self) -> Fraction:
        """What is shared among the answers, in that currency."""
        made: Fraction = self.epsilon
        return made

    def change(self, feature: str) -> Change:
        """How much one unit can change the counts of a measured feature."""
        return change_in(self.measured_features, feature, self.unit)

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
        settings = {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.name not in STATED}
        return Recipe(self.name, settings, self.own_tables())

    def own_tables(self) -> Mapping[str, TableNoise]:
        """The noise of tables that are published as they are measured."""
        return {}

    @classmethod
    def from_recipe(cls, release: Release) -> Self:
        """The mechanism that made a release."""
        known = {f.name for f in fields(cls)}
        settings = {
            n: given(v)
            for n, v in release.recipe.settings.items()
            if n in known and n not in (*HELD, *STATED)
        }
        if "prior" in known:
            settings["prior"] = release.prior
            if release.prior is None and release.recipe.settings.get("prior") is not None:
                raise InputError("the release does not hold the public weights that entered its estimate")
        cost, beside = release.claim.cost, Fraction(0)
        if "running" in known and release.running is not None:
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

    def finished(self, answers: Sequence[NoisyAnswer], entropy: Entropy) -> Release:  # noqa: ARG002
        """The release of answers that were drawn here and now."""
        return self.finish(answers)

    def release(
        self, trips: Any, *, columns: Mapping[str, str] | None = None, clock: Clock | None = None
    ) -> Release:
        """Publish trips: noise comes from the operating system's entropy. `columns` and `clock` are those of `cbdp.count`."""
        return self._run(trips, columns, clock, SystemEntropy())

    def simulate(
        self, trips: Any, seed: int, *, columns: Mapping[str, str] | None = None, clock: Clock | None = None
    ) -> Release:
        """What a release could look like, repeatably: for tests and benchmarks. Insecure, and marked as such."""
        return self._run(trips, columns, clock, InsecureSeededEntropy(seed))

    def _run(
        self, trips: Any, columns: Mapping[str, str] | None, clock: Clock | None, entropy: Entropy
    ) -> Release:
        if entropy.secure and isinstance(trips, Counts) and not trips.secure:
            raise InputError(
                "these counts were bounded by a seeded source: count the trips again for a release"
            )
        universe = self.features.universe
        counts = count(trips, universe, columns=columns, unit=self.unit, clock=clock, entropy=entropy)
        made = self.finished(self.measure(counts, entropy), entropy)
        return replace(made, secure=entropy.secure, again=self.again)

    def made(
        self, index: Ints, value: Ints, measurements: Sequence[Measurement] = (), **more: Any
    ) -> Release:
        """A release of this mechanism; nobody vouches for its noise until it is run."""
        return Release(
            self.features, self.recipe, self.claim(), index, value, measurements, secure=False, **more
        )

    # Afterwards

    def intervals(
        self, release: Release, confidence: float = 0.9, *, features: Sequence[str] | None = None
    ) -> Mapping[str, Interval]:
        """An interval for every count of the features (all but `singleton`) that have any; no privacy is spent."""
        self._check_made(release)
        return intervals(release, confidence, features=features)

    def again(self, release: Release) -> Again:
        """Runs of this mechanism in the place of the one that made a release: no privacy is spent."""
        self._check_made(release)
        return Again(self, release)

    def _check_made(self, release: Release) -> None:
        own, made = self.claim(), release.claim
        # what it promises may differ: a simulation that was saved promises nothing
        same = (made.unit, made.cost) == (own.unit, own.cost)
        if release.mechanism != self.name or not same:
            raise InputError(
                f"the release was made by {release.mechanism!r} ({release.claim}), this mechanism is {self.name!r} "
                f"({own}): use the one that made it"
            )
        if self.features.sizes != release.features.sizes:
            raise InputError(
                f"the release has {release.features!r}, the mechanism {self.features!r}: they must agree"
            )
