"""Where random bits come from: the operating system, or (for tests and benchmarks only) a seed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.unsignedinteger]  # uniform random words of 8, 16, 32 or 64 bits


class Entropy(Protocol):
    """A source of uniform random words. What is drawn from one whose `secure` is False is a simulation, and its manifest and pages say so.

    >>> SystemEntropy().secure, InsecureSeededEntropy(0).secure
    (True, False)
    """

    @property
    def secure(self) -> bool: ...

    def words(self, n: int, bits: int) -> Words:
        """Draw n independent unsigned words of 8, 16, 32 or 64 bits."""
        ...


@dataclass(frozen=True)
class SystemEntropy:
    """The operating system's generator. It keeps nothing in this process, so forked children never share words.

    >>> SystemEntropy().secure
    True
    """

    secure = True

    def words(self, n: int, bits: int) -> Words:
        return np.frombuffer(os.urandom(n * bits // 8), dtype=f"u{bits // 8}")


class InsecureSeededEntropy:
    """A repeatable source for tests and benchmarks. Whoever knows or guesses the seed can subtract the noise.

    >>> one, two = InsecureSeededEntropy(7), InsecureSeededEntropy(7)
    >>> bool((one.words(3, 64) == two.words(3, 64)).all())
    True
    """

    secure = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(seed))

    def words(self, n: int, bits: int) -> Words:
        return np.frombuffer(self._generator.bytes(n * bits // 8), dtype=f"u{bits // 8}")
