"""Exact draws from tables of certified thresholds: the machinery behind `cbdp.measuring.samplers.geometric`, whose text says why it is exact."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.measuring.compiling import compiled
from cbdp.measuring.thresholds import Cuts, Power, Thresholds
from cbdp.privacy.entropy import Entropy

LIMIT = 2**62  # the magnitude at which samples saturate
RADIX = 4096  # the base of the digits unless told otherwise, and the most entries of a table
CHUNK = 2**16  # samples per pass: words, outcomes and table stay in the processor's cache
GUIDE_BITS = 12


def locate(
    words: NDArray[Any],
    prefixes: NDArray[np.uint64],
    guide: NDArray[np.int32],
    shift: np.uint64,
    out: Ints,
) -> int:
    """Put the outcome of every word into out, −1 where the word equals a prefix; return how many those are."""
    ties = 0
    count = prefixes.size
    for i in range(words.size):
        word = np.uint64(words[i])
        j = np.int64(guide[word >> shift])
        while j < count and prefixes[j] < word:
            j += 1
        if j < count and prefixes[j] == word:
            out[i] = -1
            ties += 1
        else:
            out[i] = j
    return ties


def walk(gaps: Ints, start: int, end: int, out: Ints) -> tuple[int, int]:
    """Turn gaps into positions from start on; return how many lie before end, and where to go on (end: finished)."""
    position = start
    hits = 0
    for gap in gaps:
        if gap >= end - position:
            return hits, end
        position += gap
        if gap < LIMIT:  # a saturated gap says only that the first LIMIT positions hold no hit
            out[hits] = position
            hits += 1
            position += 1
    return hits, position


@dataclass(frozen=True, eq=False)
class Table:
    """Inverse-CDF table: the outcome is the number of thresholds that are at most U, from 0 to `count`. Proof: docs/proofs/thresholds.md."""

    thresholds: Cuts
    word_bits: int
    # Digits beyond the first word, kept because with short words ties meet the same thresholds again and again.
    deeper: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return self.thresholds.count

    @cached_property
    def prefixes(self) -> NDArray[np.uint64]:
        return np.array(self.thresholds.prefixes(self.word_bits), dtype=np.uint64)

    @cached_property
    def guide(self) -> NDArray[np.int32]:
        """For every value of a word's leading bits, the first threshold a word that starts so need be compared with."""
        bits = min(GUIDE_BITS, self.word_bits)
        starts = np.arange(2**bits, dtype=np.uint64) << np.uint64(self.word_bits - bits)
        return np.searchsorted(self.prefixes, starts).astype(np.int32)

    def draw(self, n: int, entropy: Entropy) -> Ints:
        if self.count == 0:
            return np.zeros(n, dtype=np.int64)
        words = entropy.words(n, self.word_bits)
        out = np.empty(n, dtype=np.int64)
        shift = np.uint64(max(0, self.word_bits - GUIDE_BITS))
        if compiled(locate)(words, self.prefixes, self.guide, shift, out):
            for i in np.flatnonzero(out < 0):
                out[i] = self._break_tie(int(words[i]), entropy)
        return out

    def _break_tie(self, word: int, entropy: Entropy) -> int:
        """Reveal more of U until it differs from every threshold that shares its words so far."""
        bits, u = self.word_bits, word
        first, last = (int(np.searchsorted(self.prefixes, np.uint64(u), side)) for side in ("left", "right"))
        while first < last:
            bits += self.word_bits
            u = u << self.word_bits | int(entropy.words(1, self.word_bits)[0])
            tied = range(first, last)
            first += bisect_left(tied, u, key=lambda i: self._prefix(i, bits))
            last = tied.start + bisect_right(tied, u, key=lambda i: self._prefix(i, bits))
        return first

    def _prefix(self, i: int, bits: int) -> int:
        found = self.deeper.get((i, bits))
        if found is None:
            found = self.deeper[i, bits] = self.thresholds.prefix(i, bits)
        return found


@dataclass(frozen=True, eq=False)
class Digits:
    """G with P(G ≥ g) = r^g, as leading digit and `places` lower digits; signed: G or ~G; or given that G < width.

    Proof: docs/proofs/geometric.md.
    """

    power: Power
    places: int
    head: Table
    restarts: bool
    width: int | None
    radix: int = RADIX
    signed: bool = False

    @classmethod
    def build(
        cls,
        power: Power,
        scale: float,
        word_bits: int,
        *,
        width: int | None = None,
        signed: bool = False,
        radix: int = RADIX,
    ) -> Digits:
        """Choose the digits for a law of about this scale, which sets the speed only; the law is set by `power`.

        A small radix makes small tables, soon built, and more digits to draw.
        """
        places = 0
        while scale / radix**places > radix // 4 and radix ** (places + 1) < LIMIT:
            if width is not None and width <= radix ** (places + 1):
                break
            places += 1
        unit = radix**places
        if width is not None and width <= unit * radix:
            # At least half of these are below width, because width > unit or unit = 1.
            values = -(-width // unit)
            thresholds = Thresholds(power, unit, values - 1, width=values)
            return cls(power, places, Table(thresholds, word_bits), restarts=False, width=width, radix=radix)
        values = max(2, math.ceil(min(16 * scale / unit, radix // 2, LIMIT // unit)))
        thresholds = Thresholds(power, unit, 2 * values if signed else values, signed=signed)
        head = Table(thresholds, word_bits)
        return cls(power, places, head, restarts=True, width=width, radix=radix, signed=signed)

    @cached_property
    def digits(self) -> list[Table]:
        """The tables of the lower digits, the lowest first; built when a sample first needs them."""
        return [
            Table(
                Thresholds(self.power, self.radix**place, self.radix - 1, width=self.radix),
                self.head.word_bits,
            )
            for place in range(self.places)
        ]

    def draw(self, n: int, entropy: Entropy) -> Ints:
        out = np.empty(n, dtype=np.int64)
        for start in range(0, n, CHUNK):
            part = out[start : start + CHUNK]
            part[:] = self._draw_all(part.size, entropy)
            if self.width is not None:
                while (late := np.flatnonzero(part >= self.width)).size:
                    part[late] = self._draw_all(late.size, entropy)
        return out

    def _draw_all(self, n: int, entropy: Entropy) -> Ints:
        value = self._draw_head(n, entropy)
        if not self.signed:
            return self._add_digits(value, entropy)
        flip = -(value & 1)  # all bits, or none: x ^ −1 = ~x
        value >>= 1
        value = self._add_digits(value, entropy)
        value ^= flip
        return value

    def _draw_head(self, n: int, entropy: Entropy) -> Ints:
        end, unit = self.head.count, self.radix**self.places
        value = self.head.draw(n, entropy)
        beyond = np.flatnonzero(value == end) if self.restarts else value[:0]
        offset = 0
        # A signed table has an even number of pieces, so that adding its length keeps the sign.
        while beyond.size and (offset + end) // 2 * unit < LIMIT:
            offset += end
            again = self.head.draw(beyond.size, entropy)
            value[beyond] = again + offset
            beyond = beyond[again == end]
        return value

    def _add_digits(self, value: Ints, entropy: Entropy) -> Ints:
        if self.places == 0:
            return value
        top = LIMIT // self.radix**self.places
        if (value >= top).all():  # spares the lower tables of an event that never happens
            return np.full(value.size, LIMIT)
        np.minimum(value, top, out=value)
        for table in reversed(self.digits):
            value *= self.radix
            value += table.draw(value.size, entropy)
        return np.minimum(value, LIMIT, out=value)
