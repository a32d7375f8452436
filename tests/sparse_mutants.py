"""Noise on demand with a slip: each draws, or reveals, by another law."""

from __future__ import annotations

from typing import Any

import numpy as np
from sparse_twin import TRUTH

from cbdp.measuring.answers import ALL_HIDDEN_THRESHOLD, SparseThresholdedAnswer


class Unconditional(SparseThresholdedAnswer):
    """A band is hit as often as if nothing were known of what lies above it."""

    def _hits(self, types: int, low: int, high: int) -> np.ndarray:
        if high == ALL_HIDDEN_THRESHOLD:
            return super()._hits(types, low, high)
        chance = self.noise.survival(low) - self.noise.survival(high)
        words = self._entropy.words(types, 32)
        return np.flatnonzero(words < chance * 2.0**32)


class Overwritten(SparseThresholdedAnswer):
    """Hits on types with trips are kept, instead of their own noise."""

    def _without_trips(self, floor: np.ndarray) -> Any:
        own, self._index = self._index, self._index[:0]
        yield from super()._without_trips(floor)
        self._index = own

    def _insert(self, index: np.ndarray, value: np.ndarray) -> None:
        last = np.append(index[1:] != index[:-1], True)
        new = last & ~np.isin(index, self.index)
        super()._insert(index[new], value[new])


class Added(Overwritten):
    """Hits on types with trips are kept, on top of their own noise."""

    def _insert(self, index: np.ndarray, value: np.ndarray) -> None:
        first = np.flatnonzero(np.append(True, index[1:] != index[:-1])[: len(index)])
        if len(first):
            super()._insert(index[first], np.add.reduceat(value, first))


class HitAgain(SparseThresholdedAnswer):
    """A type that is revealed already can be hit again, and its count is replaced."""

    def _without_trips(self, floor: np.ndarray) -> Any:
        held, self.index = self.index, self.index[:0]
        again = list(super()._without_trips(floor))
        self.index = held
        yield from again

    def _insert(self, index: np.ndarray, value: np.ndarray) -> None:
        old = ~np.isin(self.index, index)
        self.index, self.value = self.index[old], self.value[old]
        super()._insert(index, value)


class Peeking(SparseThresholdedAnswer):
    """Floors are lower where there are trips."""

    def lower(self, floor: np.ndarray) -> None:
        floor = np.array(floor)
        busy = np.unique(self._cell)
        floor[busy] = np.minimum(
            floor[busy], np.where(floor[busy] < ALL_HIDDEN_THRESHOLD, floor[busy] - 1, ALL_HIDDEN_THRESHOLD)
        )
        super().lower(floor)


class NoTwoInARow(SparseThresholdedAnswer):
    """Gaps between hits are longer by one."""

    def _hits(self, types: int, low: int, high: int) -> np.ndarray:
        hits = super()._hits(types, low, high)
        hits = hits + np.arange(len(hits))
        return hits[hits < types]


class Later(SparseThresholdedAnswer):
    """Hits are one position late."""

    def _hits(self, types: int, low: int, high: int) -> np.ndarray:
        hits = super()._hits(types, low, high) + 1
        return hits[hits < types]


class Earlier(SparseThresholdedAnswer):
    """Hits are one position early."""

    def _hits(self, types: int, low: int, high: int) -> np.ndarray:
        hits = super()._hits(types, low, high) - 1
        return hits[hits >= 0]


class Short(SparseThresholdedAnswer):
    """The last position is never hit."""

    def _hits(self, types: int, low: int, high: int) -> np.ndarray:
        return super()._hits(types - 1, low, high)


class AllWithTrips(SparseThresholdedAnswer):
    """Types with trips are revealed whatever their floor."""

    def _with_trips(self, floor: np.ndarray) -> Any:
        return super()._with_trips(np.where(floor < self.floor, -ALL_HIDDEN_THRESHOLD, floor))

    def _insert(self, index: np.ndarray, value: np.ndarray) -> None:
        new = ~np.isin(index, self.index)
        super()._insert(index[new], value[new])


class FreshNoise(SparseThresholdedAnswer):
    """Types with trips draw their noise again for every floor."""

    def lower(self, floor: np.ndarray) -> None:
        hidden = ~np.isin(self._index, self.index)
        again = self._sampler.sample(len(self._index), self._entropy)
        true = np.tile(TRUTH[TRUTH > 0], len(self._index) // int((TRUTH > 0).sum()))
        self._noisy = np.where(hidden, true + again, self._noisy)
        super().lower(floor)


class AtLeast(SparseThresholdedAnswer):
    """The floor itself counts as above it."""

    def _excess(self, n: int, low: int, high: int) -> np.ndarray:
        return super()._excess(n, low - 1, high)


class TopLess(SparseThresholdedAnswer):
    """The upper end of a band is left out."""

    def _excess(self, n: int, low: int, high: int) -> np.ndarray:
        return super()._excess(n, low, high if high == ALL_HIDDEN_THRESHOLD else max(low + 1, high - 1))


class Unperturbed(SparseThresholdedAnswer):
    """Types without trips are never hit."""

    def _hits(self, types: int, low: int, high: int) -> np.ndarray:
        return np.empty(0, dtype=np.int64)


MUTANTS = [
    Unconditional,
    Overwritten,
    Added,
    HitAgain,
    Peeking,
    NoTwoInARow,
    AllWithTrips,
    FreshNoise,
    AtLeast,
    TopLess,
    Unperturbed,
]
