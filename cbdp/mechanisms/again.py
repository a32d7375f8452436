"""A mechanism run again, on published trips or on trips as they may be: what intervals are simulated with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
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

# the runs of a release by their seeds, as long as somebody holds the release
_runs: WeakKeyDictionary[Release, dict[int, Release]] = WeakKeyDictionary()
# those on trips as they may be, as long as somebody holds the estimate: a release that is given stops or words keeps it
_likely: WeakKeyDictionary[Estimate, dict[int, Likely]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Again:
    """Runs from seeds. Each is made once for a release, however many questions are asked."""

    mechanism: Mechanism
    release: Release

    @cached_property
    def trips(self) -> Counts:
        published = self.release
        return Counts(published.features.universe, published.index, published.value, self.mechanism.unit)

    def released(self, seed: int) -> Release:
        kept = _runs.setdefault(self.release, {})
        if seed in kept:
            return kept[seed]
        made = self.mechanism.simulate(self.trips, seed)
        made = replace(made, measurements=(), estimate=None)  # only the published counts are compared
        if sum(len(run.index) for run in kept.values()) + len(made.index) <= KEPT:
            kept[seed] = made
        return made

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
