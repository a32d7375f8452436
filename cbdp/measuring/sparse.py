"""PRIVATE. Noise on every trip type of a universe too large to enumerate: only what exceeds a floor is ever drawn.

As the threshold filter of Cormode, Procopiuc, Srivastava and Tran (2012), whose floor may be lowered here.

Each of the |U| noisy counts is *defined*, independent of the others, and revealed from the top down. A floor per cell says
how far: the types whose noisy count exceeds it are known, with their counts; of the others it is known that they do not.
Lowering a floor reveals the band in between. What is revealed has exactly the law it would have had if all |U| counts
had been noised at the start and then read off: docs/explanation/universes.md has the proof. Left of the wall: what is private here
(which types have trips at all) is held in fields that nothing else reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property

import numpy as np

from cbdp.arrays import Ints
from cbdp.counting.counts import Counts
from cbdp.errors import InputError
from cbdp.features import SINGLETON, FeatureDag
from cbdp.measuring.samplers import sampler_of
from cbdp.privacy.entropy import Entropy
from cbdp.privacy.measurement import ALL_REVEALED_THRESHOLD, Measurement
from cbdp.privacy.noise import NoiseDistribution
from cbdp_features.universe import is_member

# the floor of a cell of which nothing is revealed; noisy counts beyond it, or not above ALL_REVEALED_THRESHOLD, are cut
ALL_HIDDEN_THRESHOLD = 2**61
MAX_DRAWN_AT_ONCE = 2**29  # noisy counts above a floor that may be expected of one draw: 4 GiB


class SparseThresholdedAnswer:
    """Noisy counts of all trip types, revealed where they exceed a floor that may be lowered. Proof: docs/proofs/sparse.md."""

    def __init__(
        self,
        counts: Counts,
        cell: Ints,
        features: FeatureDag,
        law: NoiseDistribution,
        entropy: Entropy,
        share: Fraction | None,
    ) -> None:
        self.noise = law
        self.share = share  # what it costs, in the currency of the law
        self.features = features
        self.floor = np.full(features.cells.size, ALL_HIDDEN_THRESHOLD, dtype=np.int64)
        self.index = self.value = np.empty(0, dtype=np.int64)  # revealed, in the universe's order
        self._sampler = sampler_of(law)
        self._entropy = entropy
        self._sizes = features.cells.partition.sizes
        self._index, self._count, self._cell = counts.index, counts.value, cell  # private

    @cached_property
    def _noisy(self) -> Ints:
        """Private: the types with trips draw their noise once and for all, whether it will be revealed or not."""
        return _clipped(self._count + self._sampler.sample(len(self._count), self._entropy))

    def lower(self, floor: Ints) -> None:
        """Reveal the noisy counts above these floors, one per cell; a floor that is not lower changes nothing."""
        floor = np.minimum(np.asarray(floor, dtype=np.int64), self.floor)
        if (floor < ALL_REVEALED_THRESHOLD).any():
            raise InputError(f"a floor of {floor.min()} is lower than any count can be: give at least −2^61")
        if (floor == ALL_REVEALED_THRESHOLD).all() and (self.floor == ALL_HIDDEN_THRESHOLD).all():
            self._reveal_all()
            return
        index, value = zip(self._with_trips(floor), *self._without_trips(floor), strict=True)
        fresh = np.concatenate(index)
        order = np.argsort(
            fresh, kind="stable"
        )  # nothing tells where a type came from, its place among the others neither
        self._insert(fresh[order], np.concatenate(value)[order])
        self.floor = floor

    def measurement(self) -> Measurement:
        """What is revealed so far; where that is all, it is like any other measurement, and has no floor."""
        whole = bool((self.floor == ALL_REVEALED_THRESHOLD).all())
        return Measurement(
            SINGLETON,
            self.value,
            scale=self.noise.scale,
            law=self.noise.name,
            elements=None if whole else self.index,
            floor=None if whole else self.floor,
            epsilon=self.share if self.noise.currency == "epsilon" else None,
            rho=self.share if self.noise.currency == "rho" else None,
        )

    def _reveal_all(self) -> None:
        """Where nothing was asked before: noise on every type, drawn as `cbdp.measure` draws it where types are listed."""
        noisy = self._sampler.sample(self.features.universe.size, self._entropy)
        noisy[self._index] += self._count
        self.index, self.value = np.arange(len(noisy)), _clipped(noisy)
        self.floor = np.full_like(self.floor, ALL_REVEALED_THRESHOLD)

    def _with_trips(self, floor: Ints) -> tuple[Ints, Ints]:
        shown = (self._noisy > floor[self._cell]) & (self._noisy <= self.floor[self._cell])
        return self._index[shown], self._noisy[shown]

    def _without_trips(self, floor: Ints) -> Iterator[tuple[Ints, Ints]]:
        """The types of count zero whose noise lies in the band, for cells with the same band together."""
        moved = np.flatnonzero(floor < self.floor)
        bands, which = np.unique(np.stack([floor[moved], self.floor[moved]]), axis=1, return_inverse=True)
        for b, (low, high) in enumerate(bands.T.tolist()):
            cells = moved[which == b]
            ends = np.cumsum(self._sizes[cells])
            hits = self._hits(int(ends[-1]), low, high)
            place = np.searchsorted(ends, hits, side="right")
            offset = hits - (ends - self._sizes[cells])[place]
            index = self.features.cells.partition.type_at(cells[place], offset)
            # types with trips have noise of their own, and those revealed before have theirs: their hits mean nothing
            index = index[~is_member(index, self._index) & ~is_member(index, self.index)]
            yield index, self._excess(len(index), low, high)

    def _hits(self, types: int, low: int, high: int) -> Ints:
        above = 0.0 if high == ALL_HIDDEN_THRESHOLD else float(self.noise.survival(high))
        expected = types * (float(self.noise.survival(low)) - above)
        if expected > MAX_DRAWN_AT_ONCE:
            raise InputError(
                f"about {expected:.1e} noisy counts would have to be drawn, more than fit in memory: measure coarser features "
                "or spend more"
            )
        if low == ALL_REVEALED_THRESHOLD:
            return np.arange(types)
        if high == ALL_HIDDEN_THRESHOLD:
            return self._sampler.sample_skips(types, low, self._entropy)
        return self._sampler.sample_band_hits(types, low, high, self._entropy)

    def _excess(self, n: int, low: int, high: int) -> Ints:
        if low == ALL_REVEALED_THRESHOLD:
            return self._at_most(n, high)
        if high == ALL_HIDDEN_THRESHOLD:
            return np.minimum(self._sampler.sample_excess(n, low, self._entropy), ALL_HIDDEN_THRESHOLD)
        return self._sampler.sample_band(n, low, high, self._entropy)

    def _at_most(self, n: int, high: int) -> Ints:
        """Noise of which no more is known than that it is not above `high`; laws of noise are symmetric."""
        if high == ALL_HIDDEN_THRESHOLD:
            drawn = self._sampler.sample(n, self._entropy)
        else:
            drawn = -self._sampler.sample_excess(n, -high - 1, self._entropy)
        return _clipped(drawn)

    def _insert(self, index: Ints, value: Ints) -> None:
        place = np.searchsorted(self.index, index)
        self.index = np.insert(self.index, place, index)
        self.value = np.insert(self.value, place, value)


def _clipped(noisy: Ints) -> Ints:
    """Noisy counts as they are revealed; noise gets as far as that next to never."""
    return np.clip(noisy, ALL_REVEALED_THRESHOLD + 1, ALL_HIDDEN_THRESHOLD)
