"""Certified thresholds: the binary digits of numbers like 1 − exp(−3/7), computed with integers and proven.

A real x is held as an *enclosure*: integers lo and hi with lo ≤ 2^bits · x ≤ hi, every operation rounding outwards.
No float takes part. The first k digits of x are certain as soon as lo and hi agree on them; if they do not, everything
is computed again with more bits. That ends, because no x we meet is a dyadic fraction: each is a non-constant rational
function of exp(−s) with s > 0 rational, which is transcendental (Lindemann), so x is irrational.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol


class Cuts(Protocol):
    """Where a table cuts [0, 1): thresholds 0 < T_0 < T_1 < … < 1 whose binary digits are certain."""

    @property
    def count(self) -> int: ...

    def prefixes(self, bits: int) -> list[int]:
        """The integers ⌊2^bits · T_i⌋ of all thresholds."""
        ...

    def prefix(self, i: int, bits: int) -> int:
        """The integer ⌊2^bits · T_i⌋ of one threshold, however many bits are asked for."""
        ...


# An enclosure of r^n for a fixed 0 < r < 1, from n ≥ 0 and the bits wanted.
Power = Callable[[int, int], "Enclosure"]


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


def exp_neg(x: Fraction, bits: int) -> Enclosure:
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


def exp_power(rate: Fraction) -> Power:
    """The powers of r = exp(−rate)."""
    return lambda n, bits: exp_neg(n * rate, bits)


def real_power(real: Callable[[int], Enclosure]) -> Power:
    """The powers of a number r in (0, 1) that is given by its enclosures."""

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


def sure_floors(enclose: Callable[[int], Sequence[Enclosure]], bits: int) -> list[int]:
    """The integers ⌊2^bits · x⌋ of enclosed numbers: enclosed ever more closely until all are certain. Proof: docs/proofs/thresholds.md."""
    guard = 64
    while True:
        found = [x.floor(bits) for x in enclose(bits + guard)]
        sure = [x for x in found if x is not None]
        if len(sure) == len(found):
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

    power: Power
    step: int
    count: int
    width: int | None = None
    signed: bool = False

    def prefixes(self, bits: int) -> list[int]:
        """The integers ⌊2^bits · T_i⌋ of all thresholds, by running powers of R."""
        return sure_floors(self._enclose_all, bits)

    def prefix(self, i: int, bits: int) -> int:
        """The integer ⌊2^bits · T_i⌋ of one threshold, however many bits are asked for."""
        guard = 64
        while True:
            found = self._enclose_one(i, bits + guard).floor(bits)
            if found is not None:
                return found
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
