"""PRIVATE. `max_trips` drawn by the exponential mechanism from how many trips persons have: exactly, with fractions and certified coins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbdp.measuring.coins import heads
from cbdp.privacy.bought import CANDIDATES, Bought, exponents
from cbdp.privacy.entropy import Entropy

WORD = 64


def choose(bought: Bought, trips: Sequence[int], persons: Sequence[int], entropy: Entropy) -> int:
    """A candidate: one is named at random, and taken if a coin that shows heads with probability exp(−x) says so; else another is named.

    Proof: docs/proofs/quantile.md.
    """
    each = exponents(bought, trips, persons)
    while True:
        place = _below(len(each), entropy)
        x = each[place]
        if heads(np.array([float(x)]), lambda _, x=x: x, WORD, entropy)[0]:  # type: ignore[misc]
            return CANDIDATES[place]


def _below(n: int, entropy: Entropy) -> int:
    """A whole number from 0 to n − 1, each as likely: words that would favour some are drawn again."""
    whole = 2**WORD // n * n
    while True:
        word = int(entropy.words(1, WORD)[0])
        if word < whole:
            return word % n
