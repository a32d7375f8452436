"""Discrete Gaussian noise, P(z) ∝ exp(−z²/2σ²) on the integers, sampled exactly.

Why the samples have exactly this law, given uniform random bits:

1. *Blocks.* The integers from a ≥ 0 on are cut into blocks of M. A block is drawn with the weight of its first, largest member A, a member A + l of
   it evenly, and it is kept with probability exp(−((A + l)² − A²)/2σ²): the product is exp(−(A + l)²/2σ²) but for a constant. Who is
   not kept draws again. M is a 64th of the length over which the bell falls off or less, so that few do; where that length is short,
   M = 1, and nobody does.
2. *Table.* Blocks come from a table of certified thresholds, as those of `cbdp.measuring.samplers.geometric`: where a random word equals
   the first word of a threshold further words are drawn, and nothing is ever rounded.
3. *Beyond.* What lies beyond the table's K blocks is drawn as K + G blocks with a geometric G whose weights are never below the bell's,
   and kept with the probability exp(−G(G − 1)M²/2σ²) that makes up for it.
4. *Sign.* The table tells + from −. With blocks of more than one number −0 is drawn again, so that 0 is not there twice.
5. *Coins* compare a uniform real with exp(−x) until it is certain on which side it lies (`cbdp.measuring.coins`).

Gaps between positions whose noise exceeds a floor are geometric, with a probability that is a quotient of theta sums, enclosed by integers. It is not
proven that none of these is a dyadic fraction. If one were, its digits would never be certain: a draw would not end, and none would be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.measuring.bell import Pieces, tail, whole
from cbdp.measuring.coins import heads
from cbdp.measuring.samplers.base import Sampler, as_band, as_bound, as_size, positions
from cbdp.measuring.samplers.geometric import CERTIFIED, GAP_RADIX, check_settings
from cbdp.measuring.tables import CHUNK, Digits, Table
from cbdp.measuring.thresholds import Enclosure, exp_neg, exp_power, real_power
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.laws.gaussian import Gaussian

FINE = 64  # blocks in the length over which the bell falls off, at least
DEPTH = 36.0  # the table ends where the bell is exp(−36) of its beginning


@dataclass(frozen=True)
class GaussianSampler(Sampler):
    """Draws of scale σ. `word_bits` is how many bits are compared at first: it changes the speed and not the law.

    Proof: docs/proofs/gaussian.md.

    >>> GaussianSampler(Fraction(3, 2)).sample(3).dtype
    dtype('int64')
    """

    about: ClassVar[str] = CERTIFIED

    scale: Fraction
    word_bits: int = field(default=64, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def law(self) -> Gaussian:
        return Gaussian(self.scale)

    @property
    def rate(self) -> Fraction:
        """1/2σ²."""
        return 1 / (2 * self.scale**2)

    def sample(self, n: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values, from the operating system's entropy unless told otherwise."""
        return self._bell(0, signed=True).draw(as_size(n), entropy or SystemEntropy())

    def sample_excess(self, n: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values given that each exceeds tau."""
        n, tau, source = as_size(n), as_bound(tau), entropy or SystemEntropy()
        if tau >= -1:
            return tau + 1 + self._bell(tau + 1).draw(n, source)
        return _kept(n, lambda m: self.sample(m, source), lambda z: z > tau)  # at least every second is

    def sample_band(self, n: int, lo: int, hi: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values given lo < Z ≤ hi for each."""
        n, (lo, hi), source = as_size(n), as_band(lo, hi), entropy or SystemEntropy()
        if lo >= -1:
            return lo + 1 + self._within(n, lo + 1, hi - lo, source)
        if hi < 0:
            return hi - self._within(n, -hi, hi - lo, source)
        if hi - lo > 2 * self.scale:
            return _kept(n, lambda m: self.sample(m, source), lambda z: (z > lo) & (z <= hi))
        return _kept(n, lambda m: self._even(m, lo + 1, hi - lo, source), None)

    def sample_skips(self, N: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw which of N positions have Z > tau: sorted, at a cost of the hits and not of N ≤ 2^63 − 1."""
        return self._sample_hits(N, as_bound(tau), None, entropy)

    def sample_band_hits(self, N: int, lo: int, hi: int, entropy: Entropy | None = None) -> Ints:
        """Draw which of N positions, each known to have Z ≤ hi, have lo < Z: sorted, as `sample_skips`."""
        return self._sample_hits(N, *as_band(lo, hi), entropy)

    def _bell(self, start: int, *, signed: bool = False) -> Bell:
        return _bell(self.rate, start, self.word_bits, signed)

    def _within(self, n: int, start: int, width: int, source: Entropy) -> Ints:
        """k with 0 ≤ k < width and the weight of start + k: from the bell, or evenly where it hardly falls off."""
        bell = self._bell(start)
        if width > bell.length:
            return _kept(n, lambda m: bell.draw(m, source), lambda k: k < width)
        return _kept(n, lambda m: self._even(m, start, width, source), None) - start

    def _even(self, n: int, first: int, width: int, source: Entropy) -> Ints:
        """Of n integers drawn evenly from `width` of them, those that are kept for the law."""
        bits = np.uint64((1 << (width - 1).bit_length()) - 1)
        k = (source.words(n, 64) & bits).astype(np.int64)
        k = k[k < width]
        top = max(first, 0)  # where the bell is highest
        off = k + (first - top)

        def exactly(i: int) -> Fraction:
            return (2 * top + int(off[i])) * int(off[i]) * self.rate

        x = np.asarray((2.0 * top + off) * off * float(self.rate), dtype=np.float64)
        kept = heads(x, exactly, self.word_bits, source)
        return first + k[kept]

    def _sample_hits(self, N: int, lo: int, hi: int | None, entropy: Entropy | None) -> Ints:
        N = as_size(N)
        source = entropy or SystemEntropy()
        rate = self._miss_rate(lo, hi)
        gaps = _gaps(self.rate, self.word_bits, lo, hi, 1 / rate if rate > 0 else math.inf)
        return positions(gaps, N, -math.expm1(-rate), source)

    def _miss_rate(self, lo: int, hi: int | None) -> float:
        """About −ln P(Z ≤ lo | Z ≤ hi): it sizes tables and batches, and may be off."""
        known = 0.0 if hi is None else float(self.law.log_cdf(hi))
        return max(0.0, known - float(self.law.log_cdf(lo)))


@dataclass(frozen=True, eq=False)
class Bell:
    """Draws k ≥ 0 with weights exp(−(start + k)²·rate); signed, with start 0: on both sides. Proof: docs/proofs/gaussian.md."""

    rate: Fraction
    start: int
    word_bits: int
    signed: bool = False

    @cached_property
    def length(self) -> float:
        """How far from its start the bell falls off."""
        variance = 0.5 / float(self.rate)
        return min(math.sqrt(variance), variance / max(self.start, 1))

    @cached_property
    def pieces(self) -> Pieces:
        step = 1 << max(0, math.floor(math.log2(max(1.0, self.length / FINE))))
        square = float(self.start) ** 2
        far = DEPTH / float(self.rate)
        reach = far / (math.sqrt(square + far) + self.start)  # where (start + k)² − start² is so much
        return Pieces(self.rate, self.start, step, math.ceil(reach / step) + 1, self.signed)

    @cached_property
    def table(self) -> Table:
        return Table(self.pieces, self.word_bits)

    @cached_property
    def beyond(self) -> Digits:
        """The number of blocks beyond the table's."""
        return Digits.build(exp_power(self.pieces.ratio()), 1 / float(self.pieces.ratio()), self.word_bits)

    def draw(self, n: int, entropy: Entropy) -> Ints:
        out = np.empty(n, dtype=np.int64)
        for start in range(0, n, CHUNK):
            part = out[start : start + CHUNK]
            part[:] = _kept(part.size, lambda m: self._once(m, entropy), None)
        return out

    def _once(self, n: int, entropy: Entropy) -> Ints:
        """Draw n times, and return what was kept."""
        block = self.table.draw(n, entropy)
        late = np.flatnonzero(block == self.pieces.count)
        negative = np.zeros(0, dtype=bool)
        if self.signed:
            block += self.pieces.skipped
            negative = (block & 1).astype(bool)
            block >>= 1
        if not late.size and self.pieces.step == 1:
            return np.where(negative, -block, block) if self.signed else block
        more = self.beyond.draw(late.size, entropy)
        block[late] = self.pieces.blocks + more
        if self.signed:
            negative[late] = entropy.words(late.size, 8) & 1
        return self._members(block, late, more, negative, entropy)

    def _members(
        self, block: Ints, late: Ints, more: Ints, negative: NDArray[np.bool_], entropy: Entropy
    ) -> Ints:
        """Members of blocks, as far as coins keep them."""
        step, rate = self.pieces.step, float(self.rate)
        inside = (entropy.words(block.size, 64) & np.uint64(step - 1)).astype(np.int64)
        first = self.start + block * step
        x = np.asarray((2.0 * first + inside) * inside * rate, dtype=np.float64)
        extra = np.zeros(block.size, dtype=np.int64)
        extra[late] = more
        x[late] += more.astype(float) * (more - 1.0) * (step * step * rate)

        def exactly(i: int) -> Fraction:
            a, k, g = int(first[i]), int(inside[i]), int(extra[i])
            return ((2 * a + k) * k + g * (g - 1) * step**2) * self.rate

        kept = heads(x, exactly, self.word_bits, entropy)
        value = block * step + inside
        if not self.signed:
            return value[kept]
        if step > 1:
            kept &= ~(negative & (value == 0))
        return np.where(negative, -value, value)[kept]


def _kept(n: int, drawn: Callable[[int], Ints], wanted: Callable[[Ints], NDArray[np.bool_]] | None) -> Ints:
    """n values from draws of which not all are kept."""
    found, missing = [np.empty(0, dtype=np.int64)], n
    while missing:
        # a little more than are missing, so that stragglers do not take a round each; the first ones serve
        values = drawn(missing if missing == n else missing + 16)
        values = values if wanted is None else values[wanted(values)]
        found.append(values[:missing])
        missing -= found[-1].size
    return np.concatenate(found)


@lru_cache(maxsize=256)
def _bell(rate: Fraction, start: int, word_bits: int, signed: bool) -> Bell:
    return Bell(rate, start, word_bits, signed)


@lru_cache(maxsize=256)
def _gaps(rate: Fraction, word_bits: int, lo: int, hi: int | None, gap_scale: float) -> Digits:
    """The number of positions without a hit before the next: geometric with r = P(Z ≤ lo | Z ≤ hi)."""

    def miss(bits: int) -> Enclosure:
        if hi is not None and hi < 0:  # both are far down, where only their ratio has digits
            below = exp_neg((lo**2 - hi**2) * rate, bits) * tail(rate, -lo, bits)
            return below.share_of(tail(rate, -hi, bits))
        return _at_most(rate, lo, bits).share_of(_at_most(rate, hi, bits))

    return Digits.build(real_power(miss), gap_scale, word_bits, radix=GAP_RADIX)


def _at_most(rate: Fraction, t: int | None, bits: int) -> Enclosure:
    """Σ exp(−z²·rate) over z ≤ t, where None stands for infinity."""
    if t is None:
        return whole(rate, bits)
    n = -t if t < 0 else t + 1
    outer = exp_neg(n**2 * rate, bits) * tail(rate, n, bits)
    return outer if t < 0 else whole(rate, bits) - outer
