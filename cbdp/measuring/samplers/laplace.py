"""Exact samplers of discrete Laplace noise, P(z) ∝ exp(−|z|/b) on the integers, and of Laplace noise rounded to integers.

Why the samples have exactly this law, given uniform random bits:

1. *Table.* A uniform real U in [0, 1) is revealed word by word. A table cuts [0, 1) at irrational thresholds; the piece
   that holds U is the outcome. The first word decides unless it equals the first word of some threshold; then further
   words are drawn and compared with further certified digits of the threshold (`cbdp.measuring.exact_sampling`) until they differ.
   Nothing is ever rounded, so the word size changes the speed and never the law.
2. *Beyond.* A geometric G, P(G ≥ g) = r^g, is memoryless: given G ≥ K, the law of G − K is that of G. A table may
   therefore stop at any K: whoever lands beyond it draws again from the same table and adds K.
3. *Digits.* r^(hM + l) = (r^M)^h · r^l, so in G = hM + l with 0 ≤ l < M the two parts are independent; h is geometric with
   r^M, and l is again a product of independent base-4096 digits, each with its own truncated table. Tables stay small
   at every scale. (Any other base would do: gaps between hits use a smaller one.)
4. *Sign.* With r = exp(−1/b), P(Z ≥ 0) = 1/(1+r) and, given that, Z is geometric; given Z < 0, so is −1 − Z. One table
   draws the sign together with the leading digit; Z is then g or −1 − g = ~g.

A magnitude that would reach 2^62 is returned as 2^62: a function of the exact sample alone, so privacy is untouched, and
at the largest scale allowed its probability is below exp(−4600).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.measuring.exact_sampling import (
    EnclosedPowers,
    Enclosure,
    InverseCdfTable,
    RadixSampler,
    Thresholds,
    powers_of_exp,
    powers_of_real,
)
from cbdp.measuring.samplers import (
    CertifiedSampler,
    Sampler,
    checked_band,
    checked_bound,
    checked_scale,
    checked_size,
    hit_positions,
)
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.noise import DiscreteLaplace, RoundedLaplace

GAP_RADIX = 128  # every floor has its own law of gaps, so its tables must be soon built


@dataclass(frozen=True)
class GeometricSampler(CertifiedSampler):
    """Draws of scale b = sensitivity / ε. `word_bits` is how many bits are compared at first: it changes the speed and not the law.

    Proof: docs/proofs/geometric.md.

    >>> GeometricSampler(Fraction(1)).sample(3).dtype
    dtype('int64')
    """

    @property
    def law(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.scale)

    def sample(self, n: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values, from the operating system's entropy where no other is passed."""
        return _two_sided_sampler(self.scale, self.word_bits).draw(
            checked_size(n), entropy or SystemEntropy()
        )

    def sample_excess(self, n: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values given that each exceeds tau."""
        return self._sample_between(n, checked_bound(tau), None, entropy)

    def sample_band(self, n: int, lo: int, hi: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values given lo < Z ≤ hi for each."""
        return self._sample_between(n, *checked_band(lo, hi), entropy)

    def _sample_between(self, n: int, lo: int, hi: int | None, entropy: Entropy | None) -> Ints:
        n = checked_size(n)
        source = entropy or SystemEntropy()
        if lo >= -1:
            return lo + 1 + self._magnitude(None if hi is None else hi - lo).draw(n, source)
        if hi is not None and hi < 0:
            return hi - self._magnitude(hi - lo).draw(n, source)
        negative = _sign_table(self.scale, self.word_bits, lo, hi).draw(n, source).astype(bool)
        out = np.empty(n, dtype=np.int64)
        below = int(negative.sum())
        out[negative] = ~self._magnitude(-1 - lo).draw(below, source)
        out[~negative] = self._magnitude(None if hi is None else hi + 1).draw(n - below, source)
        return out

    def _magnitude(self, width: int | None) -> RadixSampler:
        return _one_sided_sampler(self.scale, self.word_bits, width)

    def _gaps(self, lo: int, hi: int | None, scale: float) -> RadixSampler:
        return _laplace_gaps(self.scale, self.word_bits, lo, hi, scale)

    def _miss_rate(self, lo: int, hi: int | None) -> float:
        if hi is not None and hi < 0:
            return (hi - lo) * (1 / self.law.size)
        if lo < 0:
            return -lo * (1 / self.law.size)
        hit = float(self.law.survival(lo)) - (0.0 if hi is None else float(self.law.survival(hi)))
        return -math.log1p(-hit)


@lru_cache(maxsize=256)
def _two_sided_sampler(scale: Fraction, word_bits: int) -> RadixSampler:
    return RadixSampler.build(powers_of_exp(1 / scale), float(scale), word_bits, signed=True)


@lru_cache(maxsize=256)
def _one_sided_sampler(scale: Fraction, word_bits: int, width: int | None) -> RadixSampler:
    return RadixSampler.build(powers_of_exp(1 / scale), float(scale), word_bits, width=width)


@lru_cache(maxsize=256)
def _sign_table(scale: Fraction, word_bits: int, lo: int, hi: int | None) -> InverseCdfTable:
    """A table that says 1 with probability P(Z < 0 | lo < Z ≤ hi), for lo < −1 and hi ≥ 0."""
    power = powers_of_exp(1 / scale)

    def negative(bits: int) -> Enclosure:
        below, middle, above = (_cdf_weight(power, t, bits) for t in (lo, -1, hi))
        return (middle - below).share_of(above - below)

    return InverseCdfTable(Thresholds(powers_of_real(negative), 1, 1), word_bits)


@lru_cache(maxsize=256)
def _laplace_gaps(scale: Fraction, word_bits: int, lo: int, hi: int | None, gap_scale: float) -> RadixSampler:
    """The number of positions without a hit before the next: geometric with r = P(Z ≤ lo | Z ≤ hi)."""
    power = powers_of_exp(1 / scale)
    if hi is not None and hi < 0:
        return RadixSampler.build(powers_of_exp((hi - lo) / scale), gap_scale, word_bits, radix=GAP_RADIX)

    def miss(bits: int) -> Enclosure:
        return _cdf_weight(power, lo, bits).share_of(_cdf_weight(power, hi, bits))

    return RadixSampler.build(powers_of_real(miss), gap_scale, word_bits, radix=GAP_RADIX)


def _cdf_weight(power: EnclosedPowers, t: int | None, bits: int) -> Enclosure:
    """(1 + r) · P(Z ≤ t) for r = exp(−1/b), where None stands for infinity."""
    if t is not None and t < 0:
        return power(-t, bits)
    whole = Enclosure.one(bits) + power(1, bits)
    return whole if t is None else whole - power(t + 1, bits)


# Rounded Laplace noise. With h geometric of parameter exp(−1/2b), the value is 0 when h = 0, and else a fair sign times one plus a geometric of
# parameter exp(−1/b): P(0) = 1 − exp(−1/2b) and P(±k) = ½ exp(−(k − ½)/b) (1 − exp(−1/b)).


@dataclass(frozen=True)
class RoundedSampler(Sampler):
    """Draws of the papers' noise on counts.

    Proof: docs/proofs/rounded.md.

    >>> RoundedSampler(Fraction(1)).sample(3).dtype
    dtype('int64')
    """

    about: ClassVar[str] = (
        "exact draws of the papers' noise, by the geometric sampler; floors cannot be lowered"
    )

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale(self.scale))

    @property
    def law(self) -> RoundedLaplace:
        return RoundedLaplace(self.scale)

    def sample_skips(self, N: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw which of N positions have Z > tau ≥ 0: sorted, at a cost of the hits and not of N."""
        if checked_bound(tau) < 0:
            raise InputError(f"the floor of rounded noise must be at least 0, not {tau!r}")
        share = float(self.law.survival(tau))
        gaps = _rounded_gaps(self.scale, tau, 1 / share if share > 0 else math.inf)
        return hit_positions(gaps, checked_size(N), share, entropy or SystemEntropy())

    def sample_excess(self, n: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values given that each exceeds tau ≥ 0: from there on the law is geometric."""
        if checked_bound(tau) < 0:
            raise InputError(f"the floor of rounded noise must be at least 0, not {tau!r}")
        return GeometricSampler(self.scale).sample_excess(n, tau, entropy)

    def sample(self, n: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values, from the operating system's entropy where no other is passed."""
        source = entropy or SystemEntropy()
        inside = GeometricSampler(2 * self.scale).sample_excess(n, -1, source) == 0
        size = GeometricSampler(self.scale).sample_excess(n, 0, source)
        negative = source.words(n, 8) % 2 == 1
        return np.where(inside, 0, np.where(negative, -size, size))


@lru_cache(maxsize=256)
def _rounded_gaps(scale: Fraction, tau: int, gap_scale: float) -> RadixSampler:
    """The number of positions before the next with rounded Laplace noise above tau: r = 1 − ½ exp(−(tau + ½)/b)."""
    power = powers_of_exp((tau + Fraction(1, 2)) / scale)

    def miss(bits: int) -> Enclosure:
        tail = power(1, bits + 1)  # 2^bits · x/2 is a quarter of 2^(bits + 1) · x
        return Enclosure.one(bits) - Enclosure(tail.lo >> 2, (tail.hi >> 2) + 1, bits)

    return RadixSampler.build(powers_of_real(miss), gap_scale, 64, radix=GAP_RADIX)
