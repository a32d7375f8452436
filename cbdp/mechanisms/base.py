"""What all mechanisms share: features and ε in the constructor, trips in, a release out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from cbdp.errors import InputError
from cbdp.features import FeatureDag
from cbdp.measuring.noise import Entropy, InsecureSeededEntropy, SystemEntropy
from cbdp.privacy.budget import Number, positive
from cbdp.privacy.unit import Unit, unit_of
from cbdp.release.release import Claim, Release
from cbdp.trips.count import Counts, count

if TYPE_CHECKING:
    from cbdp.trips.sources import Clock


@dataclass(frozen=True)
class Mechanism(ABC):
    """Counts in, release out. Everything about it is public; the random state is never a parameter of a release."""

    name: ClassVar[str]

    features: FeatureDag
    epsilon: Number
    unit: Any = "trip"

    def __post_init__(self) -> None:
        if not isinstance(self.features, FeatureDag):
            raise InputError(f"{self.name} needs a FeatureDag, not {type(self.features).__name__}")
        object.__setattr__(self, "epsilon", positive(self.epsilon))
        object.__setattr__(self, "unit", unit_of(self.unit))
        self.check()

    def check(self) -> None:  # noqa: B027 - most mechanisms add nothing
        """Refuse settings that make no sense, before any data is seen."""

    @property
    def spent(self) -> Fraction:
        assert isinstance(self.epsilon, Fraction)
        return self.epsilon

    @property
    def protects(self) -> Unit:
        assert not isinstance(self.unit, str)
        return unit_of(self.unit)

    @abstractmethod
    def claim(self) -> Claim:
        """What this mechanism promises."""

    @abstractmethod
    def run(self, counts: Counts, entropy: Entropy) -> Release:
        """The release of these counts with noise from this source."""

    def release(
        self, trips: Any, *, columns: Mapping[str, str] | None = None, clock: Clock | None = None
    ) -> Release:
        """Publish trips: noise comes from the operating system's entropy. `columns` and `clock` are those of `cbdp.count`."""
        return self._go(trips, columns, clock, SystemEntropy())

    def simulate(
        self, trips: Any, seed: int, *, columns: Mapping[str, str] | None = None, clock: Clock | None = None
    ) -> Release:
        """What a release could look like, repeatably: for tests and benchmarks. Insecure, and marked as such."""
        return self._go(trips, columns, clock, InsecureSeededEntropy(seed))

    def _go(
        self, trips: Any, columns: Mapping[str, str] | None, clock: Clock | None, entropy: Entropy
    ) -> Release:
        if entropy.secure and isinstance(trips, Counts) and not trips.secure:
            raise InputError(
                "these counts were bounded by a seeded source: count the trips again for a release"
            )
        universe = self.features.universe
        counts = count(trips, universe, columns=columns, unit=self.protects, clock=clock, entropy=entropy)
        return replace(self.run(counts, entropy), source=self)
