"""Every way that a random program can go, with exact probabilities: noise of ratio ½ between neighbours, in fractions.

P(Z = z) = ⅓ · 2^−|z|, which is ε-differentially private for e^ε = 2. What lies beyond `FAR` is one outcome: programs under
test must not tell such values apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any

import numpy as np

RATIO = Fraction(2)  # e^ε
FAR = 4


def tail(t: int) -> Fraction:
    """P(Z > t)."""
    return Fraction(2, 3) / 2 ** (t + 1) if t >= 0 else 1 - tail(-t - 1)


def mass(z: int) -> Fraction:
    """P(Z = z), where ±FAR stand for all beyond."""
    return tail(FAR - 1) if abs(z) == FAR else Fraction(1, 3) / 2 ** abs(z)


class Choices:
    """Takes the branches of a script, and the first one where it ends; remembers what it took."""

    def __init__(self, script: list[tuple[int, int]]) -> None:
        self.script, self.taken, self.chance = script, [], Fraction(1)

    def among(self, options: dict[Any, Fraction]) -> Any:
        whole = sum(options.values())
        place = self.script[len(self.taken)][0] if len(self.taken) < len(self.script) else 0
        self.taken.append((place, len(options)))
        value = list(options)[place]
        self.chance *= options[value] / whole
        return value


def law_of(program: Callable[[Choices], Hashable]) -> dict[Hashable, Fraction]:
    """The probability of each outcome."""
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    script: list[tuple[int, int]] = []
    while True:
        choices = Choices(script)
        found[program(choices)] += choices.chance
        script = choices.taken
        while script and script[-1][0] + 1 == script[-1][1]:
            script.pop()
        if not script:
            assert sum(found.values()) == 1
            return found
        script[-1] = (script[-1][0] + 1, script[-1][1])


class Enumerated:
    """A sampler whose draws are choices."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices

    def _drawn(self, n: int, low: int, high: int) -> np.ndarray:
        options = {z: mass(z) for z in range(max(low + 1, -FAR), min(high, FAR) + 1)}
        return np.array([self.choices.among(options) for _ in range(n)], dtype=np.int64)

    def _hits(self, n: int, low: int, high: int) -> np.ndarray:
        below = 1 - tail(high) if high < FAR else Fraction(1)
        hit = (tail(low) - (1 - below)) / below
        return np.flatnonzero([self.choices.among({False: 1 - hit, True: hit}) for _ in range(n)])

    def sample(self, n: int, entropy: Any = None) -> np.ndarray:
        return self._drawn(n, -FAR - 1, FAR)

    def sample_excess(self, n: int, tau: int, entropy: Any = None) -> np.ndarray:
        return self._drawn(n, tau, FAR)

    def sample_band(self, n: int, lo: int, hi: int, entropy: Any = None) -> np.ndarray:
        return self._drawn(n, lo, hi)

    def sample_skips(self, N: int, tau: int, entropy: Any = None) -> np.ndarray:
        return self._hits(N, tau, FAR)

    def sample_band_hits(self, N: int, lo: int, hi: int, entropy: Any = None) -> np.ndarray:
        return self._hits(N, lo, hi)
