"""Noise for counts: the two-sided geometric law P(z) ∝ exp(−|z|/b) on the integers, sampled exactly.

Why the samples have exactly this law, given uniform random bits:

1. *Table.* A uniform real U in [0, 1) is revealed word by word. A table cuts [0, 1) at irrational thresholds; the piece
   that holds U is the outcome. The first word decides unless it equals the first word of some threshold; then further
   words are drawn and compared with further certified digits of the threshold (`cbdp.measuring.thresholds`) until they differ.
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

import importlib.metadata
import math
import numbers
import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.measuring.entropy import Entropy, InsecureSeededEntropy, SystemEntropy
from cbdp.measuring.tables import CHUNK, Geometric, Table, compiled, walk
from cbdp.measuring.thresholds import Enclosure, Power, Thresholds, exp_power, real_power

__all__ = [
    "DiscreteLaplace",
    "Entropy",
    "InsecureSeededEntropy",
    "RoundedLaplace",
    "SystemEntropy",
    "exact_fraction",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_SCALE = 10**15
GAP_RADIX = 128  # every floor has its own law of gaps, so its tables must be soon built
_MAX_BOUND = 2**61  # so that a bound plus a saturated magnitude is an int64


def exact_fraction(value: float | Fraction) -> Fraction:
    """Convert a number to the fraction it is, to the last bit.

    >>> exact_fraction(0.1) == Fraction(1, 10), exact_fraction(0.25) == Fraction(1, 4)
    (False, True)
    """
    if isinstance(value, numbers.Rational) and _is_rational(value):
        return Fraction(int(value.numerator), int(value.denominator))
    if not isinstance(value, float) or not math.isfinite(value):
        raise InputError(f"{value!r} is not a finite number: give an int, a Fraction or a finite float")
    return Fraction(value)


@dataclass(frozen=True)
class DiscreteLaplace:
    """Two-sided geometric noise of scale b = sensitivity / ε: P(z) = (1 − r)/(1 + r) · r^|z| with r = exp(−1/b).

    `word_bits` is how many bits are compared at first; it changes the speed and not the law.

    >>> DiscreteLaplace(Fraction(1)).sample(3).dtype
    dtype('int64')
    """

    scale: Fraction
    word_bits: int = field(default=64, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if not _is_rational(self.scale):
            raise InputError(
                f"the noise scale must be an int or a Fraction, not {self.scale!r}: convert with cbdp.measuring.noise.exact_fraction"
            )
        object.__setattr__(self, "scale", exact_fraction(self.scale))
        if not 0 < self.scale <= MAX_SCALE:
            raise InputError(f"the noise scale must be above 0 and at most 10^15, not {self.scale}")
        if self.word_bits not in {8, 16, 32, 64}:
            raise InputError(f"word_bits must be 8, 16, 32 or 64, not {self.word_bits!r}")

    # Numbers about the law, as floats.

    @property
    def _rate(self) -> float:
        return float(min(1 / self.scale, Fraction(10**300)))

    def variance(self) -> float:
        return 2 * math.exp(-self._rate) / math.expm1(-self._rate) ** 2

    @overload
    def pmf(self, z: int) -> float: ...
    @overload
    def pmf(self, z: Ints) -> Floats: ...
    def pmf(self, z: int | Ints) -> float | Floats:
        """P(Z = z)."""
        value = math.tanh(self._rate / 2) * self._decay(np.abs(np.asarray(z, dtype=np.float64)))
        return value if value.ndim else float(value)

    @overload
    def survival(self, t: int) -> float: ...
    @overload
    def survival(self, t: Ints) -> Floats: ...
    def survival(self, t: int | Ints) -> float | Floats:
        """P(Z > t)."""
        at = np.asarray(t, dtype=np.float64)
        outer = self._decay(np.where(at < 0, -at, at + 1)) / (1 + math.exp(-self._rate))
        value: Floats = np.where(at < 0, 1 - outer, outer)
        return value if value.ndim else float(value)

    def half_width(self, confidence: float) -> int:
        """The smallest k with P(|Z| ≤ k) ≥ confidence."""
        if not 0 < confidence < 1:
            raise InputError(f"the confidence must lie strictly between 0 and 1, not {confidence!r}")
        outside = 1 - confidence
        guess = math.log(2 / (1 + math.exp(-self._rate)) / outside) / self._rate - 1
        k = max(0, math.floor(guess) - 1)  # one below, so that rounding in `guess` cannot skip the answer
        while 2 * self.survival(k) > outside:
            k += 1
        return k

    def _decay(self, distance: Floats) -> Floats:
        value: Floats = np.exp(-distance * self._rate)
        return value

    # Samples.

    def sample(
        self, n: int, entropy: Entropy | None = None, *, backend: Literal["cbdp", "opendp"] = "cbdp"
    ) -> Ints:
        """Draw n independent values, from the operating system's entropy unless told otherwise."""
        n = _as_size(n)
        if backend == "opendp":
            return _sample_opendp(self.scale, n, entropy)
        if backend != "cbdp":
            raise InputError(f"unknown noise backend {backend!r}: choose 'cbdp' or 'opendp'")
        return _signed(self.scale, self.word_bits).draw(n, entropy or SystemEntropy())

    def sample_excess(self, n: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values given that each exceeds tau."""
        return self._sample_between(n, _as_bound(tau), None, entropy)

    def sample_band(self, n: int, lo: int, hi: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values given lo < Z ≤ hi for each."""
        return self._sample_between(n, *_as_band(lo, hi), entropy)

    def sample_skips(self, N: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw which of N positions have Z > tau: sorted, at a cost of the hits and not of N ≤ 2^63 − 1."""
        return self._sample_hits(N, _as_bound(tau), None, entropy)

    def sample_band_hits(self, N: int, lo: int, hi: int, entropy: Entropy | None = None) -> Ints:
        """Draw which of N positions, each known to have Z ≤ hi, have lo < Z: sorted, as `sample_skips`."""
        return self._sample_hits(N, *_as_band(lo, hi), entropy)

    def _sample_between(self, n: int, lo: int, hi: int | None, entropy: Entropy | None) -> Ints:
        n = _as_size(n)
        source = entropy or SystemEntropy()
        if lo >= -1:
            return lo + 1 + self._magnitude(None if hi is None else hi - lo).draw(n, source)
        if hi is not None and hi < 0:
            return hi - self._magnitude(hi - lo).draw(n, source)
        negative = _side(self.scale, self.word_bits, lo, hi).draw(n, source).astype(bool)
        out = np.empty(n, dtype=np.int64)
        below = int(negative.sum())
        out[negative] = ~self._magnitude(-1 - lo).draw(below, source)
        out[~negative] = self._magnitude(None if hi is None else hi + 1).draw(n - below, source)
        return out

    def _magnitude(self, width: int | None) -> Geometric:
        return _one_sided(self.scale, self.word_bits, width)

    def _sample_hits(self, N: int, lo: int, hi: int | None, entropy: Entropy | None) -> Ints:
        N = _as_size(N)
        source = entropy or SystemEntropy()
        rate = self._miss_rate(lo, hi)
        gaps = _gaps(self.scale, self.word_bits, lo, hi, 1 / rate if rate > 0 else math.inf)
        return _positions(gaps, N, -math.expm1(-rate), source)

    def _miss_rate(self, lo: int, hi: int | None) -> float:
        """About −ln P(Z ≤ lo | Z ≤ hi): it sizes tables and batches, and may be off."""
        if hi is not None and hi < 0:
            return (hi - lo) * self._rate
        if lo < 0:
            return -lo * self._rate
        hit = float(self.survival(lo)) - (0.0 if hi is None else float(self.survival(hi)))
        return -math.log1p(-hit)


@dataclass(frozen=True)
class RoundedLaplace:
    """Continuous Laplace noise of scale b rounded to the nearest integer, sampled exactly: the papers' noise on counts.

    P(0) = 1 − exp(−1/2b) and P(±k) = ½ exp(−(k − ½)/b) (1 − exp(−1/b)). So with h geometric of parameter exp(−1/2b),
    the value is 0 when h = 0, and else a fair sign times one plus a geometric of parameter exp(−1/b).

    >>> RoundedLaplace(Fraction(1)).sample(3).dtype
    dtype('int64')
    """

    scale: Fraction

    def __post_init__(self) -> None:
        DiscreteLaplace(self.scale)  # refuses a scale that is not a fraction above 0

    def variance(self) -> float:
        """2 Σ (2k + 1) P(Z > k)."""
        rate = 1.0 / float(self.scale)
        gap = -math.expm1(-rate)
        return math.exp(-rate / 2) * (1 + math.exp(-rate)) / gap**2

    def survival(self, t: Ints) -> Floats:
        """P(Z > t) for t ≥ 0."""
        return np.asarray(0.5 * np.exp(-(np.asarray(t, dtype=float) + 0.5) / float(self.scale)))

    def sample_skips(self, N: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw which of N positions have Z > tau ≥ 0: sorted, at a cost of the hits and not of N."""
        if _as_bound(tau) < 0:
            raise InputError(f"the floor of rounded noise must be at least 0, not {tau!r}")
        share = float(self.survival(np.array(tau)))
        gaps = _rounded_gaps(self.scale, tau, 1 / share if share > 0 else math.inf)
        return _positions(gaps, _as_size(N), share, entropy or SystemEntropy())

    def sample_excess(self, n: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values given that each exceeds tau ≥ 0: from there on the law is geometric."""
        if _as_bound(tau) < 0:
            raise InputError(f"the floor of rounded noise must be at least 0, not {tau!r}")
        return DiscreteLaplace(self.scale).sample_excess(n, tau, entropy)

    def half_width(self, confidence: float) -> int:
        """The smallest k with P(|Z| ≤ k) ≥ confidence."""
        if not 0 < confidence < 1:
            raise InputError(f"confidence {confidence} must lie between 0 and 1")
        return max(0, math.ceil(-math.log1p(-confidence) * float(self.scale) - 0.5))

    def sample(self, n: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values, from the operating system's entropy unless told otherwise."""
        source = entropy or SystemEntropy()
        inside = DiscreteLaplace(2 * self.scale).sample_excess(n, -1, source) == 0
        size = DiscreteLaplace(self.scale).sample_excess(n, 0, source)
        negative = source.words(n, 8) % 2 == 1
        return np.where(inside, 0, np.where(negative, -size, size))


def _positions(gaps: Geometric, N: int, share: float, entropy: Entropy) -> Ints:
    """The positions below N that such gaps leave, of which about this share is hit (it sizes batches, and may be off)."""
    position, found = 0, [np.empty(0, dtype=np.int64)]
    while position < N:
        expected = (N - position) * share
        out = np.empty(math.ceil(min(CHUNK, expected + 4 * math.sqrt(expected) + 4)), dtype=np.int64)
        hits, position = compiled(walk)(gaps.draw(out.size, entropy), position, N, out)
        found.append(out[:hits])
    return np.concatenate(found)


def _is_rational(value: object, kind: type = numbers.Rational) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _as_size(n: int) -> int:
    if not _is_rational(n, numbers.Integral) or not 0 <= n < 2**63:
        raise InputError(f"the number of values must be an integer from 0 to 2^63 − 1, not {n!r}")
    return int(n)


def _as_bound(t: int) -> int:
    if not _is_rational(t, numbers.Integral) or abs(t) > _MAX_BOUND:
        raise InputError(f"a bound on the noise must be an integer of magnitude at most 2^61, not {t!r}")
    return int(t)


def _as_band(lo: int, hi: int) -> tuple[int, int]:
    lo, hi = _as_bound(lo), _as_bound(hi)
    if lo >= hi:
        raise InputError(f"no integer z satisfies {lo} < z ≤ {hi}: the lower bound must be below the upper")
    return lo, hi


@lru_cache(maxsize=256)
def _signed(scale: Fraction, word_bits: int) -> Geometric:
    return Geometric.build(exp_power(1 / scale), float(scale), word_bits, signed=True)


@lru_cache(maxsize=256)
def _one_sided(scale: Fraction, word_bits: int, width: int | None) -> Geometric:
    return Geometric.build(exp_power(1 / scale), float(scale), word_bits, width=width)


@lru_cache(maxsize=256)
def _side(scale: Fraction, word_bits: int, lo: int, hi: int | None) -> Table:
    """A table that says 1 with probability P(Z < 0 | lo < Z ≤ hi), for lo < −1 and hi ≥ 0."""
    power = exp_power(1 / scale)

    def negative(bits: int) -> Enclosure:
        below, middle, above = (_weight(power, t, bits) for t in (lo, -1, hi))
        return (middle - below).share_of(above - below)

    return Table(Thresholds(real_power(negative), 1, 1), word_bits)


@lru_cache(maxsize=256)
def _gaps(scale: Fraction, word_bits: int, lo: int, hi: int | None, gap_scale: float) -> Geometric:
    """The number of positions without a hit before the next: geometric with r = P(Z ≤ lo | Z ≤ hi)."""
    power = exp_power(1 / scale)
    if hi is not None and hi < 0:
        return Geometric.build(exp_power((hi - lo) / scale), gap_scale, word_bits, radix=GAP_RADIX)

    def miss(bits: int) -> Enclosure:
        return _weight(power, lo, bits).share_of(_weight(power, hi, bits))

    return Geometric.build(real_power(miss), gap_scale, word_bits, radix=GAP_RADIX)


@lru_cache(maxsize=256)
def _rounded_gaps(scale: Fraction, tau: int, gap_scale: float) -> Geometric:
    """The number of positions before the next with rounded Laplace noise above tau: r = 1 − ½ exp(−(tau + ½)/b)."""
    power = exp_power((tau + Fraction(1, 2)) / scale)

    def miss(bits: int) -> Enclosure:
        tail = power(1, bits + 1)  # 2^bits · x/2 is a quarter of 2^(bits + 1) · x
        return Enclosure.one(bits) - Enclosure(tail.lo >> 2, (tail.hi >> 2) + 1, bits)

    return Geometric.build(real_power(miss), gap_scale, 64, radix=GAP_RADIX)


def _weight(power: Power, t: int | None, bits: int) -> Enclosure:
    """(1 + r) · P(Z ≤ t) for r = exp(−1/b), where None stands for infinity."""
    if t is not None and t < 0:
        return power(-t, bits)
    whole = Enclosure.one(bits) + power(1, bits)
    return whole if t is None else whole - power(t + 1, bits)


def _sample_opendp(scale: Fraction, n: int, entropy: Entropy | None) -> Ints:
    """Draw from OpenDP's sampler, which takes its scale as a float: the exact one or the next float above it."""
    if entropy is not None:
        raise InputError("OpenDP draws from its own entropy: leave `entropy` out with backend='opendp'")
    dp = _import_opendp()
    near = float(scale)
    above = near if Fraction(near) >= scale else math.nextafter(near, math.inf)
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    noise = dp.m.make_laplace(*space, scale=above)
    parts = [noise([0] * min(CHUNK, n - start)) for start in range(0, n, CHUNK)]
    return np.concatenate([np.empty(0, dtype=np.int64), *(np.array(part, dtype=np.int64) for part in parts)])


def _import_opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise InputError("the noise backend 'opendp' is not installed: pip install 'cbdp[opendp]'") from None
    version = importlib.metadata.version("opendp")
    if tuple(map(int, re.findall(r"\d+", version)[:3])) < (0, 14, 2):
        raise InputError(
            f"opendp {version} samples wrongly at some scales; 0.14.2 is the first that does not: pip install 'cbdp[opendp]'"
        )
    dp.enable_features("contrib")
    return dp
