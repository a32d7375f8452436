"""Certified pieces of a bell: weights exp(−z²·rate) of whole numbers, their shares as thresholds, and their sums.

All numbers are enclosures by integers (`cbdp.measuring.thresholds`). Running products make them: with w_h = exp(−((a + hM)² − a²)·rate),
w_(h+1) = w_h · g_h and g_(h+1) = g_h · exp(−2M²·rate), so that an entry costs two products of integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from cbdp.errors import InputError
from cbdp.measuring.thresholds import Enclosure, exp_neg, sure_floors

LONGEST = 10**6  # the largest scale of which sums are added up, term by term
GRAIN = 256  # sums are kept with bits that are multiples of this


@dataclass(frozen=True)
class Pieces:
    """The thresholds between the first `count` pieces of a bell from `start` on, in blocks of `step`, and what may lie beyond.

    Block h has weight w_h = exp(−((start + h·step)² − start²)·rate). Signed: every block once for + and once for −, in turn; with blocks of
    one number 0 is there once. What lies beyond the last block K has the weight of geometric noise that is never below the bell:
    w_K/(1 − R) with R = w_(K+1)/w_K, once or for both signs. Every threshold is a quotient of finitely many exponentials of
    different fractions and no constant, so it is irrational (Lindemann and Weierstrass), and its digits are found.

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
            self.kept[bits] = sure_floors(self._enclose_all, bits)
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
            exp_neg((2 * self.start + self.step) * self.step * self.rate, bits),
        )
        shrink = exp_neg(2 * self.step**2 * self.rate, bits)
        for h in range(self.blocks):
            yield from [weight] * (often - (self.skipped if h == 0 else 0))
            weight, ratio = weight * ratio, ratio * shrink
        gap = Enclosure.one(bits) - ratio
        beyond = Enclosure((weight.lo << bits) // gap.hi, -((-weight.hi << bits) // max(1, gap.lo)), bits)
        yield Enclosure(often * beyond.lo, often * beyond.hi, bits)


def whole(rate: Fraction, bits: int) -> Enclosure:
    """Σ exp(−z²·rate) over all whole z."""
    half = tail(rate, 0, bits)
    return half + half - Enclosure.one(bits)


def tail(rate: Fraction, n: int, bits: int) -> Enclosure:
    """Σ exp(−(z² − n²)·rate) over z ≥ n ≥ 0. Proof: docs/proofs/gaussian.md."""
    return _tail(rate, n, -(-bits // GRAIN) * GRAIN).rounded(bits)


@lru_cache(maxsize=512)
def _tail(rate: Fraction, n: int, bits: int) -> Enclosure:
    """As `tail`: every product is rounded down, and what that may add up to is on top of the upper end.

    Let F and G stand for w_k and g_k with errors e and d, in units. One step makes d at most d + s + 1, for an error s of the factor, and e at
    most e + d + 1, because all factors are at most one.
    """
    if 2 * rate * LONGEST**2 < 1:
        raise InputError(
            f"noise of a scale above {LONGEST:,} in a universe too large to list: measure coarser features or spend more"
        )
    work = bits + 96
    shrink, ratio = exp_neg(2 * rate, work), exp_neg((2 * n + 1) * rate, work)
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
