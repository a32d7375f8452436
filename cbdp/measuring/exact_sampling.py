"""PRIVATE. Exact sampling: by inverse CDF (thresholds whose binary digits are proven by integer interval arithmetic, tables that look words up, and a
radix sampler), of Bernoulli(exp(−x)), many at once, and by the exponential mechanism, with rejection by it.

A real x, like 1 − exp(−3/7), is held as an *enclosure*: integers lo and hi with lo ≤ 2^bits · x ≤ hi, every operation rounding outwards. No float takes
part. The first k digits of x are certain as soon as lo and hi agree on them; if they do not, everything is computed again with more bits. That ends,
because no x we meet is a dyadic fraction: each is a non-constant rational function of exp(−s) with s > 0 rational, which is transcendental (Lindemann),
so x is irrational. A word is looked up by a guide table (Chen and Asau 1974).

Bernoulli(exp(−x)) is as Algorithm 1 of Canonne, Kamath and Steinke (2020), which tosses coins of rational probability instead; here a uniform real U, revealed word by word, is
compared with exp(−x). A float of exp(−x) decides where U's first word is further from it than one part in a million: no library is as wrong as
that. Where it is nearer, x is worked out as a fraction, exp(−x) is enclosed by integers, and words are drawn until U
is certain to lie on one side. As exp(−x) is irrational for every fraction x > 0 (Lindemann), that ends. The word size changes the speed and
never the law.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints
from cbdp.privacy.entropy import Entropy, Words
from cbdp.privacy.unit import MAX_TRIPS_CANDIDATES, PrivateQuantile, selection_exponents

# Enclosures and thresholds


class ThresholdSource(Protocol):
    """Where a table cuts [0, 1): thresholds 0 < T_0 < T_1 < … < 1 whose binary digits are certain."""

    @property
    def count(self) -> int: ...

    def prefixes(self, bits: int) -> list[int]:
        """The integers ⌊2^bits · T_i⌋ of all thresholds."""
        ...

    def prefix(self, i: int, bits: int) -> int:
        """The integer ⌊2^bits · T_i⌋ of one threshold, however many bits are asked for."""
        ...


# an enclosure of r^n for a fixed 0 < r < 1, from n ≥ 0 and the number of bits
EnclosedPowers = Callable[[int, int], "Enclosure"]


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A non-negative real x known to satisfy lo ≤ 2^bits · x ≤ hi. Proof: docs/proofs/thresholds.md."""

    lo: int
    hi: int
    bits: int

    @classmethod
    def one(cls, bits: int) -> Enclosure:
        return cls(1 << bits, 1 << bits, bits)

    def __add__(self, other: Enclosure) -> Enclosure:
        return Enclosure(self.lo + other.lo, self.hi + other.hi, self.bits)

    def __sub__(self, other: Enclosure) -> Enclosure:
        """The difference, where it is known to be non-negative."""
        return Enclosure(max(0, self.lo - other.hi), self.hi - other.lo, self.bits)

    def __mul__(self, other: Enclosure) -> Enclosure:
        return Enclosure((self.lo * other.lo) >> self.bits, -((-self.hi * other.hi) >> self.bits), self.bits)

    def share_of(self, whole: Enclosure) -> Enclosure:
        """The quotient self / whole, where it is known to be at most one."""
        lo = (self.lo << self.bits) // whole.hi
        hi = -((-self.hi << self.bits) // whole.lo) if whole.lo else 1 << self.bits
        return Enclosure(lo, min(hi, 1 << self.bits), self.bits)

    def rounded(self, bits: int) -> Enclosure:
        drop = self.bits - bits
        return Enclosure(self.lo >> drop, -(-self.hi >> drop), bits)

    def floor(self, bits: int) -> int | None:
        """The integer ⌊2^bits · x⌋ for an x strictly between 0 and 1, or None if the enclosure is too wide to tell."""
        drop = self.bits - bits
        lo, hi = self.lo >> drop, min(self.hi >> drop, (1 << bits) - 1)
        return lo if lo == hi else None


def exp_minus(x: Fraction, bits: int) -> Enclosure:
    """An enclosure of exp(−x) for x ≥ 0: Taylor's series at x/2^k ≤ 2^−8, then k squarings. Proof: docs/proofs/thresholds.md."""
    if x > bits:  # exp(−x) < 2^−bits, and the squarings below would number log2(x)
        return Enclosure(0, 1, bits)
    k = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 9)
    work = bits + k + 32
    small = (x.numerator << work) // (x.denominator << k)
    value = Enclosure(1 << work, 1 << work, work).share_of(_exp_series(small, work))
    for _ in range(k):
        value = value * value
    return value.rounded(bits)


def _exp_series(y: int, bits: int) -> Enclosure:
    """An enclosure of exp(v) for every v with y ≤ 2^bits · v ≤ y + 1, where v ≤ 1/2."""
    low = high = term_low = term_high = 1 << bits
    n = 0
    while term_high > 1:
        n += 1
        term_low = (term_low * y >> bits) // n
        term_high = -((-term_high * (y + 1) >> bits) // n)
        low += term_low
        high += term_high
    # The terms left out are at most term · (1/2 + 1/4 + …) ≤ term, and the last term is at most one unit.
    return Enclosure(low, high + 1, bits)


def powers_of_exp(rate: Fraction) -> EnclosedPowers:
    """The powers of r = exp(−rate)."""
    return lambda n, bits: exp_minus(n * rate, bits)


def powers_of_real(real: Callable[[int], Enclosure]) -> EnclosedPowers:
    """The powers of a number r in (0, 1), by its enclosures."""

    def power(n: int, bits: int) -> Enclosure:
        work = bits + n.bit_length() + 16
        value, square = Enclosure.one(work), real(work)
        while n:
            if n & 1:
                value = value * square
            n >>= 1
            if n:
                square = square * square
        return value.rounded(bits)

    return power


def certain_floors(enclose: Callable[[int], Sequence[Enclosure]], bits: int) -> list[int]:
    """The integers ⌊2^bits · x⌋ of enclosed numbers: enclosed ever more closely until all are certain. Proof: docs/proofs/thresholds.md."""
    guard = 64
    while True:
        floors = [x.floor(bits) for x in enclose(bits + guard)]
        sure = [x for x in floors if x is not None]
        if len(sure) == len(floors):
            return sure
        guard *= 2


@dataclass(frozen=True)
class Thresholds:
    """The inner ends 0 < T_0 < T_1 < … < 1 of the pieces that an inverse-CDF table cuts [0, 1) into.

    With R = r^step, by kind:

    * geometric, T_i = 1 − R^(i+1): piece i has probability (1 − R) R^i, and what lies above the last end is "beyond";
    * truncated to `width` values, T_i = (1 − R^(i+1)) / (1 − R^width): i = 0 … width − 2, nothing beyond;
    * signed: pieces (+, 0), (−, 0), (+, 1), (−, 1), … with probabilities (1 − R) R^h · 1/(1+r) and
      (1 − R) R^h · r/(1+r), so T_2h = 1 − R^h (r + R)/(1 + r) and T_2h+1 = 1 − R^(h+1).

    Proof: docs/proofs/thresholds.md.
    """

    power: EnclosedPowers
    step: int
    count: int
    width: int | None = None
    signed: bool = False

    def prefixes(self, bits: int) -> list[int]:
        """The integers ⌊2^bits · T_i⌋ of all thresholds, by running powers of R."""
        return certain_floors(self._enclose_all, bits)

    def prefix(self, i: int, bits: int) -> int:
        """The integer ⌊2^bits · T_i⌋ of one threshold, however many bits are asked for."""
        guard = 64
        while True:
            prefix = self._enclose_one(i, bits + guard).floor(bits)
            if prefix is not None:
                return prefix
            guard *= 2

    def _enclose_one(self, i: int, bits: int) -> Enclosure:
        return self._enclose(i, lambda n: self.power(n * self.step, bits), self._not_plus(bits))

    def _enclose_all(self, bits: int) -> list[Enclosure]:
        powers = [Enclosure.one(bits)]
        factor = self.power(self.step, bits)
        for _ in range(self.count if self.width is None else self.width):
            powers.append(powers[-1] * factor)
        not_plus = self._not_plus(bits)
        return [self._enclose(i, powers.__getitem__, not_plus) for i in range(self.count)]

    def _enclose(self, i: int, power: Callable[[int], Enclosure], not_plus: Enclosure) -> Enclosure:
        one = Enclosure.one(not_plus.bits)
        if self.signed:
            h, odd = divmod(i, 2)
            return one - (power(h + 1) if odd else power(h) * not_plus)
        if self.width is None:
            return one - power(i + 1)
        return (one - power(i + 1)).share_of(one - power(self.width))

    def _not_plus(self, bits: int) -> Enclosure:
        """(r + R) / (1 + r): of the pieces (±, h) and beyond, the share that is not (+, h)."""
        one = Enclosure.one(bits)
        if not self.signed:
            return one
        r = self.power(1, bits)
        return (r + self.power(self.step, bits)).share_of(one + r)


# Tables and digits. `cbdp.measuring.samplers.laplace` says why draws are exact.


R = TypeVar("R")


@cache
def compiled_on_use(function: Callable[..., R]) -> Callable[..., R]:
    """The function, compiled by numba when it is first needed."""
    from numba import njit  # slow to import, and reading a release needs no noise

    compiled: Callable[..., R] = njit(cache=True, nogil=True)(function)
    return compiled


MAX_MAGNITUDE = 2**62  # the magnitude at which samples saturate
DEFAULT_RADIX = 4096  # the base of the digits, and the most entries of a table
SAMPLES_PER_PASS = 2**16  # samples per pass: words, outcomes and table stay in the processor's cache
GUIDE_BITS = 12  # leading bits of a word by which the guide is entered: a table of 16 KiB


def lookup_words(
    words: Words,
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


def gaps_to_positions(gaps: Ints, start: int, end: int, out: Ints) -> tuple[int, int]:
    """Turn gaps into positions from start on; return how many lie before end, and where to go on (end: finished)."""
    position = start
    hits = 0
    for gap in gaps:
        if gap >= end - position:
            return hits, end
        position += gap
        if (
            gap < MAX_MAGNITUDE
        ):  # a saturated gap says only that the first MAX_MAGNITUDE positions hold no hit
            out[hits] = position
            hits += 1
            position += 1
    return hits, position


@dataclass(frozen=True, eq=False)
class InverseCdfTable:
    """Inverse-CDF table: the outcome is the number of thresholds that are at most U, from 0 to `count`. Proof: docs/proofs/thresholds.md."""

    thresholds: ThresholdSource
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
        if compiled_on_use(lookup_words)(words, self.prefixes, self.guide, shift, out):
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
        prefix = self.deeper.get((i, bits))
        if prefix is None:
            prefix = self.deeper[i, bits] = self.thresholds.prefix(i, bits)
        return prefix


@dataclass(frozen=True, eq=False)
class RadixSampler:
    """G with P(G ≥ g) = r^g, as leading digit and `places` lower digits; signed: G or ~G; or given that G < width.

    Proof: docs/proofs/geometric.md.
    """

    power: EnclosedPowers
    places: int
    head: InverseCdfTable
    restarts: bool
    width: int | None
    radix: int = DEFAULT_RADIX
    signed: bool = False

    @classmethod
    def build(
        cls,
        power: EnclosedPowers,
        scale: float,
        word_bits: int,
        *,
        width: int | None = None,
        signed: bool = False,
        radix: int = DEFAULT_RADIX,
    ) -> RadixSampler:
        """Choose the digits for a law of about this scale, which sets the speed only; the law is set by `power`.

        A small radix makes small tables, soon built, and more digits to draw.
        """
        places = 0
        while scale / radix**places > radix // 4 and radix ** (places + 1) < MAX_MAGNITUDE:
            if width is not None and width <= radix ** (places + 1):
                break
            places += 1
        unit = radix**places
        if width is not None and width <= unit * radix:
            # At least half of these are below width, because width > unit or unit = 1.
            values = -(-width // unit)
            thresholds = Thresholds(power, unit, values - 1, width=values)
            return cls(
                power,
                places,
                InverseCdfTable(thresholds, word_bits),
                restarts=False,
                width=width,
                radix=radix,
            )
        values = max(2, math.ceil(min(16 * scale / unit, radix // 2, MAX_MAGNITUDE // unit)))
        thresholds = Thresholds(power, unit, 2 * values if signed else values, signed=signed)
        head = InverseCdfTable(thresholds, word_bits)
        return cls(power, places, head, restarts=True, width=width, radix=radix, signed=signed)

    @cached_property
    def digits(self) -> list[InverseCdfTable]:
        """The tables of the lower digits, the lowest first; built when a sample first needs them."""
        return [
            InverseCdfTable(
                Thresholds(self.power, self.radix**place, self.radix - 1, width=self.radix),
                self.head.word_bits,
            )
            for place in range(self.places)
        ]

    def draw(self, n: int, entropy: Entropy) -> Ints:
        out = np.empty(n, dtype=np.int64)
        for start in range(0, n, SAMPLES_PER_PASS):
            part = out[start : start + SAMPLES_PER_PASS]
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
        while beyond.size and (offset + end) // 2 * unit < MAX_MAGNITUDE:
            offset += end
            again = self.head.draw(beyond.size, entropy)
            value[beyond] = again + offset
            beyond = beyond[again == end]
        return value

    def _add_digits(self, value: Ints, entropy: Entropy) -> Ints:
        if self.places == 0:
            return value
        top = MAX_MAGNITUDE // self.radix**self.places
        if (value >= top).all():  # spares the lower tables of an event that never happens
            return np.full(value.size, MAX_MAGNITUDE)
        np.minimum(value, top, out=value)
        for table in reversed(self.digits):
            value *= self.radix
            value += table.draw(value.size, entropy)
        return np.minimum(value, MAX_MAGNITUDE, out=value)


# Bernoulli(exp(−x))


MAX_FLOAT_ERROR = 2.0**-20  # relative error that a float of exp(−x) may have


def compare_words(x: Floats, words: Words, full: float, out: NDArray[np.int8]) -> int:
    """Put 1 into out where U < exp(−x) for certain, 0 where not, −1 where it is too near to tell; return how many those are.

    Proof: docs/proofs/coins.md.
    """
    near = 0
    for i in range(x.size):
        word = float(words[i])
        chance = math.exp(-x[i]) * full
        slack = chance * MAX_FLOAT_ERROR + 1.0
        if word + 1.0 < chance - slack:
            out[i] = 1
        elif word > chance + slack:
            out[i] = 0
        else:
            out[i] = -1
            near += 1
    return near


def bernoulli_exp(
    x: Floats, exactly: Callable[[int], Fraction], word_bits: int, entropy: Entropy
) -> NDArray[np.bool_]:
    """Toss a coin for each x; `exactly(i)` is the x of coin i as a fraction. Proof: docs/proofs/coins.md."""
    words = entropy.words(x.size, word_bits)
    out = np.empty(x.size, dtype=np.int8)
    if compiled_on_use(compare_words)(x, words, 2.0**word_bits, out):
        for i in np.flatnonzero(out < 0).tolist():
            out[i] = _word_below_exp(int(words[i]), exactly(i), word_bits, entropy)
    return out.astype(bool)


def _word_below_exp(word: int, x: Fraction, word_bits: int, entropy: Entropy) -> bool:
    """Whether U < exp(−x), for a U that begins with this word."""
    if x == 0:
        return True
    bits = word_bits
    while True:
        chance = exp_minus(x, bits + 64)
        low, high = word << 64, (word + 1) << 64  # U lies between these
        if high <= chance.lo:
            return True
        if low >= chance.hi:
            return False
        word = word << word_bits | int(entropy.words(1, word_bits)[0])
        bits += word_bits


# `max_trips` drawn by the exponential mechanism from how many trips persons have


WORD_BITS = 64  # bits of the words that candidates and coins are drawn from


def exponential_mechanism(
    bought: PrivateQuantile, trips: Sequence[int], persons: Sequence[int], entropy: Entropy
) -> int:
    """A candidate (McSherry and Talwar 2007): one is named at random, and taken if a coin that shows heads with probability exp(−x) says so; else another is named.

    Proof: docs/proofs/quantile.md.
    """
    each = selection_exponents(bought, trips, persons)
    while True:
        place = _uniform_below(len(each), entropy)
        x = each[place]
        if bernoulli_exp(np.array([float(x)]), lambda _, x=x: x, WORD_BITS, entropy)[0]:  # type: ignore[misc]
            return MAX_TRIPS_CANDIDATES[place]


def _uniform_below(n: int, entropy: Entropy) -> int:
    """A whole number from 0 to n − 1, each as likely: words that would favour some are drawn again."""
    whole = 2**WORD_BITS // n * n
    while True:
        word = int(entropy.words(1, WORD_BITS)[0])
        if word < whole:
            return word % n
