"""How well draws fit a law, and sources of words that tests can look into."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy import stats

from cbdp.measuring.samplers.laplace import GeometricSampler
from cbdp.privacy.entropy import InsecureSeededEntropy

ALPHA = 1e-7


class Recorder:
    """Seeded words that remember how many single words were asked for: only the breaking of ties does that often."""

    secure = False

    def __init__(self, seed):
        self.source, self.singles = InsecureSeededEntropy(seed), 0

    def words(self, n, bits):
        self.singles += n == 1
        return self.source.words(n, bits)


class Script:
    """The given words, in order; running out is an error of its own."""

    secure = False

    def __init__(self, words):
        self.rest = list(words)

    def words(self, n, bits):
        if n > len(self.rest):
            raise EOFError
        taken, self.rest = self.rest[:n], self.rest[n:]
        return np.array(taken, dtype=f"u{bits // 8}")


def meets_the_right_pieces(table):
    """Every pair of 8-bit words gives the piece of a table that holds it, or asks for more exactly where a threshold lies inside."""
    sharp = np.array(table.thresholds.prefixes(16))
    for u, (first, second) in enumerate(itertools.product(range(256), repeat=2)):
        script = Script([first, second])
        try:
            outcome = int(table.draw(1, script)[0])
        except EOFError:
            assert u in sharp
            continue
        if len(script.rest) == 0:  # a word that is no tie is decided without its second word
            assert u not in sharp
        assert outcome == np.searchsorted(sharp, u)


def sampler(scale, **options):
    return GeometricSampler(Fraction(scale), **options)


def p_value(observed, expected, least=20.0):
    """Chi-square fit of counts to expected counts, neighbouring bins merged until each expects at least `least`."""
    sums, start, total = [], 0, 0.0
    for i, value in enumerate(expected):
        total += value
        if total >= least:
            sums.append(start)
            start, total = i + 1, 0.0
    assert len(sums) > 1, "one bin tests nothing"
    # What is left over joins the last bin: reduceat sums to the end.
    o, e = np.add.reduceat(observed, sums), np.add.reduceat(expected, sums)
    return float(stats.chi2.sf(((o - e) ** 2 / e).sum(), len(sums) - 1))


def fit(values, distribution, given_above=None, given_at_most=None):
    """P-value of values under the law, given a band, in bins of about a fifteenth of the scale or band."""
    band = math.inf if given_above is None or given_at_most is None else given_at_most - given_above
    step = max(1, round(min(float(distribution.scale), band) / 15))
    edges = np.arange(-400, 401) * step
    if given_above is not None:
        edges = np.concatenate([[given_above], edges[edges > given_above]])
    if given_at_most is not None:
        edges = np.concatenate([edges[edges < given_at_most], [given_at_most]])
    above = distribution.survival(edges)
    if given_above is None:
        above = np.concatenate([[1.0], above])
    if given_at_most is None:
        above = np.concatenate([above, [0.0]])
    expected = -np.diff(above) / (above[0] - above[-1]) * values.size
    inner = edges[1:] if given_above is not None else edges
    inner = inner[:-1] if given_at_most is not None else inner
    observed = np.bincount(np.searchsorted(inner, values, side="left"), minlength=expected.size)
    assert given_above is None or values.min() > given_above
    assert given_at_most is None or values.max() <= given_at_most
    return p_value(observed, expected)


def fit_residues(values, distribution, modulus):
    """P-value of the values modulo a small number, which feels the lowest digits of a large scale."""
    r = math.exp(-1 / distribution.scale)
    j = np.arange(modulus)
    weights = (r**j + r ** (modulus - j)) * 1.0  # the residue j: j, j + m, … and j − m, j − 2m, …
    expected = weights / weights.sum() * values.size
    return p_value(np.bincount(values % modulus, minlength=modulus), expected)


# The law
