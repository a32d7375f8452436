"""A public choice of `max_trips` that is paid for: a quantile of how many trips persons have, by the exponential mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from cbdp.errors import InputError
from cbdp.privacy.numbers import Number, positive, probability

CANDIDATES = tuple(range(1, 101))


@dataclass(frozen=True, init=False)
class Bought:
    """Which share of persons shall lose no trip, and the ε that is paid to find the `max_trips` that does it.

    Let n persons have x trips each, and q be the quantile. A candidate k is off by the persons that would have to change sides for
    it to be a quantile: max(0, #{x < k} − q·n, q·n − #{x ≤ k}). One person more or less changes that by at most max(q, 1 − q) for every k, so a
    k that is drawn with probability proportional to exp(−ε · off / (2 · max(q, 1 − q))) is ε-differentially private. The candidates, 1 to 100, are public.

    Proof: docs/proofs/quantile.md.

    >>> Bought("0.95", "1/20")
    Bought(quantile=Fraction(19, 20), epsilon=Fraction(1, 20))
    """

    quantile: Fraction
    epsilon: Fraction

    def __init__(self, quantile: Number, epsilon: Number) -> None:
        share = probability(quantile, "the quantile")
        if not 0 < share < 1:
            raise InputError(f"the quantile {quantile!r} must lie strictly between 0 and 1")
        object.__setattr__(self, "quantile", share)
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))

    @property
    def sensitivity(self) -> Fraction:
        """The most by which one person can change how far off a candidate is."""
        return max(self.quantile, 1 - self.quantile)


def off(bought: Bought, trips: Sequence[int], persons: Sequence[int]) -> list[Fraction]:
    """How far off each candidate is, where so many persons have so many trips."""
    target = bought.quantile * sum(persons)
    exactly = dict(zip(trips, persons, strict=True))
    found, fewer = [], 0
    for most in CANDIDATES:
        upto = fewer + exactly.get(most, 0)
        found.append(max(Fraction(0), fewer - target, target - upto))
        fewer = upto
    return found


def exponents(bought: Bought, trips: Sequence[int], persons: Sequence[int]) -> list[Fraction]:
    """For each candidate the x such that it is drawn with probability proportional to exp(−x); the least is 0. Proof: docs/proofs/quantile.md."""
    each, rate = off(bought, trips, persons), bought.epsilon / (2 * bought.sensitivity)
    least = min(each)
    return [rate * (o - least) for o in each]
