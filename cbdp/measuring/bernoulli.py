"""PRIVATE. Bernoulli(exp(−x)) exactly, many at once, and the exponential mechanism by rejection with it.

As Algorithm 1 of Canonne, Kamath and Steinke (2020), which tosses coins of rational probability instead; here a uniform real U, revealed word by word, is
compared with exp(−x). A float of exp(−x) decides where U's first word is further from it than one part in a million: no library is as wrong as
that. Where it is nearer, x is worked out as a fraction, exp(−x) is enclosed by integers (`cbdp.measuring.inverse_cdf`), and words are drawn until U
is certain to lie on one side. As exp(−x) is irrational for every fraction x > 0 (Lindemann), that ends. The word size changes the speed and
never the law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats
from cbdp.measuring.inverse_cdf import compiled_on_use, exp_minus
from cbdp.privacy.entropy import Entropy, Words
from cbdp.privacy.unit import MAX_TRIPS_CANDIDATES, PrivateQuantile, selection_exponents

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
