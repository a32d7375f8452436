"""Exact sampler of discrete Gaussian noise: a table of certified blocks, tails by a geometric envelope, rejection within blocks.

The law is that of Algorithm 3 of Canonne, Kamath and Steinke (2020), which rejects from a discrete Laplace one draw at a time.
Why the samples have exactly this law, given uniform random bits:

1. *Blocks.* The integers from a ≥ 0 on are cut into blocks of M. A block is drawn with the weight of its first, largest member A, a member A + l of
   it evenly, and it is kept with probability exp(−((A + l)² − A²)/2σ²): the product is exp(−(A + l)²/2σ²) but for a constant. Who is
   not kept draws again. M is a 64th of the length over which the bell falls off or less, so that few do; where that length is short,
   M = 1, and nobody does.
2. *Table.* Blocks come from a table of certified thresholds, as those of `cbdp.measuring.samplers.laplace`: where a random word equals
   the first word of a threshold further words are drawn, and nothing is ever rounded.
3. *Beyond.* What lies beyond the table's K blocks is drawn as K + G blocks with a geometric G whose weights are never below the bell's,
   and kept with the probability exp(−G(G − 1)M²/2σ²) that makes up for it.
4. *Sign.* The table tells + from −. With blocks of more than one number −0 is drawn again, so that 0 is not there twice.
5. *Coins* compare a uniform real with exp(−x) until it is certain on which side it lies (`cbdp.measuring.exact_sampling`).

Gaps between positions whose noise exceeds a floor are geometric, with a probability that is a quotient of theta sums, enclosed by integers. It is not
proven that none of these is a dyadic fraction. If one were, its digits would never be certain: a draw would not end, and none would be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.measuring.exact_sampling import (
    SAMPLES_PER_PASS,
    Enclosure,
    InverseCdfTable,
    RadixSampler,
    bernoulli_exp,
    certain_floors,
    exp_minus,
    powers_of_exp,
    powers_of_real,
)
from cbdp.measuring.samplers import CertifiedSampler, checked_band, checked_bound, checked_size
from cbdp.measuring.samplers.laplace import GAP_RADIX
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.noise import DiscreteGaussian

# Certified pieces of a bell: weights exp(−z²·rate) of whole numbers, their shares as thresholds, and their sums
#
# All numbers are enclosures by integers (`cbdp.measuring.exact_sampling`). Running products make them: with w_h = exp(−((a + hM)² − a²)·rate),
# w_(h+1) = w_h · g_h and g_(h+1) = g_h · exp(−2M²·rate), so that an entry costs two products of integers.


MAX_SUMMED_SCALE = 10**6  # the largest scale of which sums are added up, term by term
PRECISION_STEP_BITS = 256  # sums are kept with bits that are multiples of this


@dataclass(frozen=True)
class GaussianPieces:
    """The thresholds between the first `count` pieces of a bell from `start` on, in blocks of `step`, and what may lie beyond.

    Block h has weight w_h = exp(−((start + h·step)² − start²)·rate). Signed: every block once for + and once for −, in turn; with blocks of
    one number 0 is there once. What lies beyond the last block K has the weight of geometric noise that is never below the bell:
    w_K/(1 − R) with R = w_(K+1)/w_K, once or for both signs. Every threshold is irrational, so that its digits are
    found: times 1 − R, numerator and denominator are sums of exponentials of fractions, which are linearly independent over the rationals where the
    fractions differ (Lindemann and Weierstrass). If their quotient were rational, all coefficients would have that quotient. That of exp(0) is the number
    of pieces of block 0 in either, so that the quotient would be 1, or ½ behind one of two signs of block 0; but it is less than these.

    Proof: docs/proofs/gaussian.md.
    """

    rate: Fraction
    start: int
    step: int
    blocks: int  # K
    signed: bool = False
    kept: dict[int, list[int]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def skipped(self) -> int:
        """Of the pieces (+, 0), (−, 0), (+, 1), … how many are left out at the beginning."""
        return 1 if self.signed and self.step == 1 else 0

    @property
    def count(self) -> int:
        return self.blocks * (2 if self.signed else 1) - self.skipped

    def prefixes(self, bits: int) -> list[int]:
        if bits not in self.kept:
            self.kept[bits] = certain_floors(self._enclose_all, bits)
        return self.kept[bits]

    def prefix(self, i: int, bits: int) -> int:
        return self.prefixes(bits)[i]

    def ratio(self) -> Fraction:
        """x in R = exp(−x)."""
        return (2 * self.start + (2 * self.blocks + 1) * self.step) * self.step * self.rate

    def _enclose_all(self, bits: int) -> list[Enclosure]:
        masses = [*self._masses(bits)]
        total, sums = Enclosure(0, 0, bits), []
        for mass in masses:
            total = total + mass
            sums.append(total)
        return [part.share_of(total) for part in sums[:-1]]

    def _masses(self, bits: int) -> Iterator[Enclosure]:
        """The weight of every piece, and at last of what lies beyond."""
        often = 2 if self.signed else 1
        weight, ratio = (
            Enclosure.one(bits),
            exp_minus((2 * self.start + self.step) * self.step * self.rate, bits),
        )
        shrink = exp_minus(2 * self.step**2 * self.rate, bits)
        for h in range(self.blocks):
            yield from [weight] * (often - (self.skipped if h == 0 else 0))
            weight, ratio = weight * ratio, ratio * shrink
        gap = Enclosure.one(bits) - ratio
        beyond = Enclosure((weight.lo << bits) // gap.hi, -((-weight.hi << bits) // max(1, gap.lo)), bits)
        yield Enclosure(often * beyond.lo, often * beyond.hi, bits)


def full_sum(rate: Fraction, bits: int) -> Enclosure:
    """Σ exp(−z²·rate) over all whole z."""
    half = tail_sum(rate, 0, bits)
    return half + half - Enclosure.one(bits)


def tail_sum(rate: Fraction, n: int, bits: int) -> Enclosure:
    """Σ exp(−(z² − n²)·rate) over z ≥ n ≥ 0. Proof: docs/proofs/gaussian.md."""
    return _tail_sum(rate, n, -(-bits // PRECISION_STEP_BITS) * PRECISION_STEP_BITS).rounded(bits)


@lru_cache(maxsize=512)
def _tail_sum(rate: Fraction, n: int, bits: int) -> Enclosure:
    """As `tail_sum`: every product is rounded down, and what that may add up to is on top of the upper end.

    Let F and G stand for w_k and g_k with errors e and d, in units. One step makes d at most d + s + 1, for an error s of the factor, and e at
    most e + d + 1, because all factors are at most one.
    """
    if 2 * rate * MAX_SUMMED_SCALE**2 < 1:
        raise InputError(
            f"noise of a scale above {MAX_SUMMED_SCALE:,} in a universe too large to list: measure coarser features or spend more"
        )
    work = bits + 96
    shrink, ratio = exp_minus(2 * rate, work), exp_minus((2 * n + 1) * rate, work)
    factor, off = shrink.lo, shrink.hi - shrink.lo + 1
    weight, step, total, error, slack = 1 << work, ratio.lo, 0, 0, 0
    d = ratio.hi - ratio.lo
    least = 1 << 64
    while weight > least:
        total += weight
        slack += error
        error += d + 1
        weight = weight * step >> work
        step = step * factor >> work
        d += off
    # the rest is at most a geometric series with the present ratio
    gap = (1 << work) - step - d
    rest = ((weight + error) << work) // gap + 1 if gap > 0 else 1 << (2 * work)
    return Enclosure(total, total + slack + rest, work).rounded(bits)


# The sampler


MIN_BLOCKS_PER_SCALE = 64  # blocks in the length over which the bell falls off, at least
TABLE_DEPTH = 36.0  # the table ends where the bell is exp(−36) of its beginning


@dataclass(frozen=True)
class GaussianSampler(CertifiedSampler):
    """Draws of scale σ. `word_bits` is how many bits are compared at first: it changes the speed and not the law.

    Proof: docs/proofs/gaussian.md.

    >>> GaussianSampler(Fraction(3, 2)).sample(3).dtype
    dtype('int64')
    """

    @property
    def law(self) -> DiscreteGaussian:
        return DiscreteGaussian(self.scale)

    @property
    def rate(self) -> Fraction:
        """1/2σ²."""
        return 1 / (2 * self.scale**2)

    def sample(self, n: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values, from the operating system's entropy where no other is passed."""
        return self._bell(0, signed=True).draw(checked_size(n), entropy or SystemEntropy())

    def sample_excess(self, n: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values given that each exceeds tau."""
        n, tau, source = checked_size(n), checked_bound(tau), entropy or SystemEntropy()
        if tau >= -1:
            return tau + 1 + self._bell(tau + 1).draw(n, source)
        return _accepted(n, lambda m: self.sample(m, source), lambda z: z > tau)  # at least every second is

    def sample_band(self, n: int, lo: int, hi: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values given lo < Z ≤ hi for each."""
        n, (lo, hi), source = checked_size(n), checked_band(lo, hi), entropy or SystemEntropy()
        if lo >= -1:
            return lo + 1 + self._within(n, lo + 1, hi - lo, source)
        if hi < 0:
            return hi - self._within(n, -hi, hi - lo, source)
        if hi - lo > 2 * self.scale:
            return _accepted(n, lambda m: self.sample(m, source), lambda z: (z > lo) & (z <= hi))
        return _accepted(n, lambda m: self._even(m, lo + 1, hi - lo, source), None)

    def _bell(self, start: int, *, signed: bool = False) -> GaussianTable:
        return _gaussian_table(self.rate, start, self.word_bits, signed)

    def _within(self, n: int, start: int, width: int, source: Entropy) -> Ints:
        """k with 0 ≤ k < width and the weight of start + k: from the bell, or evenly where it hardly falls off."""
        bell = self._bell(start)
        if width > bell.length:
            return _accepted(n, lambda m: bell.draw(m, source), lambda k: k < width)
        return _accepted(n, lambda m: self._even(m, start, width, source), None) - start

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
        kept = bernoulli_exp(x, exactly, self.word_bits, source)
        return first + k[kept]

    def _gaps(self, lo: int, hi: int | None, scale: float) -> RadixSampler:
        return _gaussian_gaps(self.rate, self.word_bits, lo, hi, scale)

    def _miss_rate(self, lo: int, hi: int | None) -> float:
        log_upper = 0.0 if hi is None else float(self.law.log_cdf(hi))
        return max(0.0, log_upper - float(self.law.log_cdf(lo)))


@dataclass(frozen=True, eq=False)
class GaussianTable:
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
    def pieces(self) -> GaussianPieces:
        step = 1 << max(0, math.floor(math.log2(max(1.0, self.length / MIN_BLOCKS_PER_SCALE))))
        square = float(self.start) ** 2
        far = TABLE_DEPTH / float(self.rate)
        reach = far / (math.sqrt(square + far) + self.start)  # where (start + k)² − start² is so much
        return GaussianPieces(self.rate, self.start, step, math.ceil(reach / step) + 1, self.signed)

    @cached_property
    def table(self) -> InverseCdfTable:
        return InverseCdfTable(self.pieces, self.word_bits)

    @cached_property
    def beyond(self) -> RadixSampler:
        """The number of blocks beyond the table's."""
        return RadixSampler.build(
            powers_of_exp(self.pieces.ratio()), 1 / float(self.pieces.ratio()), self.word_bits
        )

    def draw(self, n: int, entropy: Entropy) -> Ints:
        out = np.empty(n, dtype=np.int64)
        for start in range(0, n, SAMPLES_PER_PASS):
            part = out[start : start + SAMPLES_PER_PASS]
            part[:] = _accepted(part.size, lambda m: self._once(m, entropy), None)
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

        kept = bernoulli_exp(x, exactly, self.word_bits, entropy)
        value = block * step + inside
        if not self.signed:
            return value[kept]
        if step > 1:
            kept &= ~(negative & (value == 0))
        return np.where(negative, -value, value)[kept]


def _accepted(
    n: int, drawn: Callable[[int], Ints], accept: Callable[[Ints], NDArray[np.bool_]] | None
) -> Ints:
    """n values from draws of which not all are kept."""
    batches, missing = [np.empty(0, dtype=np.int64)], n
    while missing:
        # a little more than are missing, so that stragglers do not take a round each; the first ones serve
        values = drawn(missing if missing == n else missing + 16)
        values = values if accept is None else values[accept(values)]
        batches.append(values[:missing])
        missing -= batches[-1].size
    return np.concatenate(batches)


@lru_cache(maxsize=256)
def _gaussian_table(rate: Fraction, start: int, word_bits: int, signed: bool) -> GaussianTable:
    return GaussianTable(rate, start, word_bits, signed)


@lru_cache(maxsize=256)
def _gaussian_gaps(rate: Fraction, word_bits: int, lo: int, hi: int | None, gap_scale: float) -> RadixSampler:
    """The number of positions without a hit before the next: geometric with r = P(Z ≤ lo | Z ≤ hi)."""

    def miss(bits: int) -> Enclosure:
        if hi is not None and hi < 0:  # both are far down, where only their ratio has digits
            below = exp_minus((lo**2 - hi**2) * rate, bits) * tail_sum(rate, -lo, bits)
            return below.share_of(tail_sum(rate, -hi, bits))
        return _partial_sum(rate, lo, bits).share_of(_partial_sum(rate, hi, bits))

    return RadixSampler.build(powers_of_real(miss), gap_scale, word_bits, radix=GAP_RADIX)


def _partial_sum(rate: Fraction, t: int | None, bits: int) -> Enclosure:
    """Σ exp(−z²·rate) over z ≤ t, where None stands for infinity."""
    if t is None:
        return full_sum(rate, bits)
    n = -t if t < 0 else t + 1
    outer = exp_minus(n**2 * rate, bits) * tail_sum(rate, n, bits)
    return outer if t < 0 else full_sum(rate, bits) - outer
