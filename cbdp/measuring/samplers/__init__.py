"""Exact samplers: what they can draw (all values, only those above a threshold, or in a band), and the table of them."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.measuring.exact_sampling import SAMPLES_PER_PASS, RadixSampler, compiled_on_use, gaps_to_positions
from cbdp.numbers import exact_fraction
from cbdp.parts import Parts, subclass_of
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.noise import NoiseDistribution

MAX_SCALE = 10**15  # of noise: magnitudes stay far below 2^62
WORD_SIZES = (8, 16, 32, 64)  # bits of a word
_MAX_BOUND = 2**61  # so that a bound plus a saturated magnitude is an int64


@dataclass(frozen=True)
class Sampler(ABC):
    """Exact draws of one law. Subclass it, and implement what is abstract.

    >>> from cbdp.measuring.samplers import sampler_of
    >>> from cbdp.privacy.noise import noise_distribution
    >>> isinstance(sampler_of(noise_distribution("geometric", Fraction(2))), Sampler)
    True
    """

    about: ClassVar[str] = ""

    scale: Fraction

    @property
    @abstractmethod
    def law(self) -> NoiseDistribution: ...

    @abstractmethod
    def sample(self, n: int, entropy: Entropy | None = None) -> Ints:
        """Draw n independent values, from the operating system's entropy where no other is passed."""

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


@dataclass(frozen=True)
class CertifiedSampler(Sampler):
    """Draws from tables of certified thresholds. `word_bits` is how many bits are compared at first: it changes the speed and not the law."""

    about: ClassVar[str] = (
        "exact draws from tables of certified thresholds; bands too, for floors that are lowered"
    )

    word_bits: int = field(default=64, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale(self.scale))
        if self.word_bits not in WORD_SIZES:
            raise InputError(f"word_bits must be 8, 16, 32 or 64, not {self.word_bits!r}")

    def sample_skips(self, N: int, tau: int, entropy: Entropy | None = None) -> Ints:
        """Draw which of N positions have Z > tau: sorted, at a cost of the hits and not of N ≤ 2^63 − 1."""
        return self._sample_hits(N, checked_bound(tau), None, entropy)

    def sample_band_hits(self, N: int, lo: int, hi: int, entropy: Entropy | None = None) -> Ints:
        """Draw which of N positions, each known to have Z ≤ hi, have lo < Z: sorted, as `sample_skips`."""
        return self._sample_hits(N, *checked_band(lo, hi), entropy)

    def _sample_hits(self, N: int, lo: int, hi: int | None, entropy: Entropy | None) -> Ints:
        N = checked_size(N)
        source = entropy or SystemEntropy()
        rate = self._miss_rate(lo, hi)
        return hit_positions(
            self._gaps(lo, hi, 1 / rate if rate > 0 else math.inf), N, -math.expm1(-rate), source
        )

    @abstractmethod
    def _gaps(self, lo: int, hi: int | None, scale: float) -> RadixSampler:
        """The number of positions without a hit before the next, which is about as large as `scale`."""

    @abstractmethod
    def _miss_rate(self, lo: int, hi: int | None) -> float:
        """About −ln P(Z ≤ lo | Z ≤ hi): it sizes tables and batches, and may be off."""


def hit_positions(gaps: RadixSampler, N: int, share: float, entropy: Entropy) -> Ints:
    """The positions below N that such gaps leave, by geometric skips; about this share is hit (it sizes batches, and may be off).

    Proof: docs/proofs/geometric.md.
    """
    position, batches = 0, [np.empty(0, dtype=np.int64)]
    while position < N:
        expected = (N - position) * share
        out = np.empty(
            math.ceil(min(SAMPLES_PER_PASS, expected + 4 * math.sqrt(expected) + 4)), dtype=np.int64
        )
        hits, position = compiled_on_use(gaps_to_positions)(gaps.draw(out.size, entropy), position, N, out)
        batches.append(out[:hits])
    return np.concatenate(batches)


def _is_whole(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def checked_scale(scale: object) -> Fraction:
    """A scale that noise can be drawn with exactly."""
    if isinstance(scale, bool) or not isinstance(scale, numbers.Rational):
        raise InputError(
            f"the noise scale must be an int or a Fraction, not {scale!r}: convert with cbdp.numbers.exact_fraction"
        )
    exact = exact_fraction(Fraction(scale))
    if not 0 < exact <= MAX_SCALE:
        raise InputError(f"the noise scale must be above 0 and at most 10^15, not {scale}")
    return exact


def checked_size(n: int) -> int:
    """A number of values, checked."""
    if not _is_whole(n) or not 0 <= n < 2**63:
        raise InputError(f"the number of values must be an integer from 0 to 2^63 − 1, not {n!r}")
    return int(n)


def checked_bound(t: int) -> int:
    """A bound on the noise, checked."""
    if not _is_whole(t) or abs(t) > _MAX_BOUND:
        raise InputError(f"a bound on the noise must be an integer of magnitude at most 2^61, not {t!r}")
    return int(t)


def checked_band(lo: int, hi: int) -> tuple[int, int]:
    """Both ends of a band, checked."""
    lo, hi = checked_bound(lo), checked_bound(hi)
    if lo >= hi:
        raise InputError(f"no integer z satisfies {lo} < z ≤ {hi}: the lower bound must be below the upper")
    return lo, hi


# The table


SAMPLERS: Parts[type[Sampler]] = Parts(
    "sampler",
    "cbdp.samplers",
    {  # law → its sampler
        "geometric": "cbdp.measuring.samplers.laplace:GeometricSampler",
        "gaussian": "cbdp.measuring.samplers.gaussian:GaussianSampler",
        "rounded": "cbdp.measuring.samplers.laplace:RoundedSampler",
    },
    subclass_of(Sampler),
    base="cbdp.measuring.samplers.Sampler",
)


def sampler_of(law: NoiseDistribution) -> Sampler:
    """The sampler of a law.

    >>> from fractions import Fraction
    >>> from cbdp.privacy.entropy import SystemEntropy
    >>> from cbdp.privacy.noise import noise_distribution
    >>> sampler_of(noise_distribution("geometric", Fraction(2))).sample(4, SystemEntropy()).shape
    (4,)
    """
    if law.name not in SAMPLERS.table and law.name not in SAMPLERS.known():
        raise InputError(
            f"noise of law {law.name!r} is never drawn here: use {' or '.join(SAMPLERS.known())}"
        )
    return SAMPLERS.get(law.name)(Fraction(law.scale))


__all__ = ["SAMPLERS", "Sampler", "sampler_of"]
