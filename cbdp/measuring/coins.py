"""Coins that show heads with probability exp(−x) exactly, many at once.

A coin compares a uniform real U, revealed word by word, with exp(−x). A float of exp(−x) decides where U's first word is further from it
than one part in a million: no library is as wrong as that. Where it is nearer, x is worked out as a fraction, exp(−x) is enclosed
by integers (`cbdp.measuring.thresholds`), and words are drawn until U is known to lie on one side. As exp(−x) is irrational for every
fraction x > 0, that ends. The word size changes the speed and never the law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats
from cbdp.measuring.compiling import compiled
from cbdp.measuring.thresholds import exp_neg
from cbdp.privacy.entropy import Entropy

MARGIN = 2.0**-20  # how far off a float may be


def judge(x: Floats, words: NDArray[Any], full: float, out: NDArray[np.int8]) -> int:
    """Put 1 into out where U < exp(−x) for certain, 0 where not, −1 where it is too near to tell; return how many those are.

    Proof: docs/proofs/coins.md.
    """
    near = 0
    for i in range(x.size):
        word = float(words[i])
        chance = math.exp(-x[i]) * full
        slack = chance * MARGIN + 1.0
        if word + 1.0 < chance - slack:
            out[i] = 1
        elif word > chance + slack:
            out[i] = 0
        else:
            out[i] = -1
            near += 1
    return near


def heads(
    x: Floats, exactly: Callable[[int], Fraction], word_bits: int, entropy: Entropy
) -> NDArray[np.bool_]:
    """Toss a coin for each x; `exactly(i)` is the x of coin i as a fraction. Proof: docs/proofs/coins.md."""
    words = entropy.words(x.size, word_bits)
    out = np.empty(x.size, dtype=np.int8)
    if compiled(judge)(x, words, 2.0**word_bits, out):
        for i in np.flatnonzero(out < 0).tolist():
            out[i] = _below(int(words[i]), exactly(i), word_bits, entropy)
    return out.astype(bool)


def _below(word: int, x: Fraction, word_bits: int, entropy: Entropy) -> bool:
    """Whether U < exp(−x), for a U that begins with this word."""
    if x == 0:
        return True
    bits = word_bits
    while True:
        chance = exp_neg(x, bits + 64)
        low, high = word << 64, (word + 1) << 64  # U lies between these
        if high <= chance.lo:
            return True
        if low >= chance.hi:
            return False
        word = word << word_bits | int(entropy.words(1, word_bits)[0])
        bits += word_bits
