"""A mechanism run again, on trips as they may be: what intervals about the estimate are made with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from cbdp.arrays import Ints
from cbdp.estimate import ESTIMATORS, Estimate
from cbdp.estimate.public import exact_answers
from cbdp.release import Release
from cbdp.trips import Counts

if TYPE_CHECKING:
    from cbdp.mechanisms.base import Mechanism


KEPT = 2**25  # trip types, of all runs together, up to which runs are kept for the next question

Likely = tuple[tuple[Ints, Ints], Release]

# those on trips as they may be, as long as somebody holds the estimate: a release that is given stops or words keeps it
_likely: WeakKeyDictionary[Estimate, dict[int, Likely]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Again:
    """Runs from seeds. Each is made once for a release, however many questions are asked."""

    mechanism: Mechanism
    release: Release

    def likely(self, seed: int) -> Likely:
        """Trips drawn from what the noisy answers leave possible, and a release of them."""
        assert self.release.estimate is not None
        kept = _likely.setdefault(self.release.estimate, {})
        if seed in kept:
            return kept[seed]
        universe, estimator = self.release.features.universe, self.release.recipe.estimator
        answers = [*self.release.measurements, *exact_answers(self.release.recipe.public)]
        counts = ESTIMATORS.installed(estimator).drawn(
            self.release.features, answers, self.release.prior, seed
        )
        index = np.flatnonzero(counts)
        trips = index, counts[index]
        made = trips, self.mechanism.simulate(Counts(universe, *trips, self.mechanism.unit), seed)
        if (len(kept) + 1) * universe.size <= KEPT:
            kept[seed] = made
        return made

    def further(self, seed: int) -> Likely:
        """The same, in the place of the release the run from this seed: it is kept with that run."""
        return Again(self.mechanism, self.likely(seed)[1]).likely(seed)
