"""What a sampler can draw: independent values of a law, and only those that exceed a floor or lie in a band."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.measuring.compiling import compiled
from cbdp.measuring.tables import CHUNK, Digits, walk
from cbdp.privacy.entropy import Entropy
from cbdp.privacy.laws import Law

_MAX_BOUND = 2**61  # so that a bound plus a saturated magnitude is an int64


@dataclass(frozen=True)
class Sampler(ABC):
    """Exact draws of one law. Subclass it, and implement what is abstract.

    >>> from cbdp.measuring.samplers import sampler_of
    >>> from cbdp.privacy.laws import law_of
    >>> isinstance(sampler_of(law_of("geometric", Fraction(2))), Sampler)
    True
    """

    about: ClassVar[str] = ""

    scale: Fraction

    @property
    @abstractmethod
    def law(self) -> Law: ...

    @abstractmethod
    def sample(self, n: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values, from the operating system's entropy unless told otherwise."""

    @abstractmethod
    def sample_excess(self, n: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values given that each exceeds tau."""

    @abstractmethod
    def sample_skips(self, N: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw which of N positions have Z > tau: sorted, at a cost of the hits and not of N ≤ 2^63 − 1."""

    def sample_band(self, n: int, lo: int, hi: int, entropy: Entropy | None = None) -> Ints:  # noqa: ARG002
        """Draw n independent values given lo < Z ≤ hi for each."""
        raise InputError(f"noise of law {self.law.name!r} cannot be drawn in bands: use the geometric law")

    def sample_band_hits(self, N: int, lo: int, hi: int, entropy: Entropy | None = None) -> Ints:  # noqa: ARG002
        """Draw which of N positions, each known to have Z ≤ hi, have lo < Z: sorted, as `sample_skips`."""
        raise InputError(f"noise of law {self.law.name!r} cannot be drawn in bands: use the geometric law")


def positions(gaps: Digits, N: int, share: float, entropy: Entropy) -> Ints:
    """The positions below N that such gaps leave, of which about this share is hit (it sizes batches, and may be off).

    Proof: docs/proofs/geometric.md.
    """
    position, found = 0, [np.empty(0, dtype=np.int64)]
    while position < N:
        expected = (N - position) * share
        out = np.empty(math.ceil(min(CHUNK, expected + 4 * math.sqrt(expected) + 4)), dtype=np.int64)
        hits, position = compiled(walk)(gaps.draw(out.size, entropy), position, N, out)
        found.append(out[:hits])
    return np.concatenate(found)


def _is_whole(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def as_size(n: int) -> int:
    """A number of values, checked."""
    if not _is_whole(n) or not 0 <= n < 2**63:
        raise InputError(f"the number of values must be an integer from 0 to 2^63 − 1, not {n!r}")
    return int(n)


def as_bound(t: int) -> int:
    """A bound on the noise, checked."""
    if not _is_whole(t) or abs(t) > _MAX_BOUND:
        raise InputError(f"a bound on the noise must be an integer of magnitude at most 2^61, not {t!r}")
    return int(t)


def as_band(lo: int, hi: int) -> tuple[int, int]:
    """Both ends of a band, checked."""
    lo, hi = as_bound(lo), as_bound(hi)
    if lo >= hi:
        raise InputError(f"no integer z satisfies {lo} < z ≤ {hi}: the lower bound must be below the upper")
    return lo, hi
