"""A mechanism run again on published trips, in the place of private ones: what intervals are simulated with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cbdp.measuring.samplers import sampler_of
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.measurement import Measurement
from cbdp.release import Release
from cbdp.trips import Counts

if TYPE_CHECKING:
    from cbdp.mechanisms.base import Mechanism

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Again:
    """Runs from seeds: everything again, or only some measurements."""

    mechanism: Mechanism
    release: Release

    @cached_property
    def trips(self) -> Counts:
        published = self.release
        return Counts(published.features.universe, published.index, published.value, self.mechanism.unit)

    @cached_property
    def _exact(self) -> dict[int, Ints]:
        return {}

    def released(self, seed: int) -> Release:
        return self.mechanism.simulate(self.trips, seed)

    def measured(self, seed: int, places: Sequence[int]) -> dict[int, Measurement]:
        entropy, drawn = InsecureSeededEntropy(seed), {}
        for place in places:
            m = self.release.measurements[place]
            law = m.noise
            assert law is not None
            noise = sampler_of(law).sample(len(m.values), entropy)
            drawn[place] = replace(m, values=self._truth(place) + noise, variance=m.variance)
        return drawn

    def _truth(self, place: int) -> Ints:
        if place not in self._exact:
            feature = self.release.measurements[place].feature
            self._exact[place] = self.trips.of(self.release.features, feature)
        return self._exact[place]
