"""Compiled passes over the elements of a margin, for factors by likelihood.

Elements are weighed in single precision, by polynomials that the compiler can lay side by side: a likelihood is
wanted to a thousandth. Sums over leaves are in double precision.
"""
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np
from numba import njit

WIDE = 32  # numbers that are added to an element for each of its leaves: the knots, and some for even lanes
LEAST = 1e-30  # of a likelihood whose largest is 1
_F = np.float32
LOG2 = 0.6931471805599453


@njit(cache=True, nogil=True, fastmath=True)
def added_by_weight(element, log, weight, column, likely, per, size, first, cell, under, last):
    """Elements × WIDE: the log-likelihood of an element's leaves if their expected counts are multiplied by a knot.

    Leaves stand for so many of the same kind. `likely` has for each column two rows of `per` numbers, for even and for odd cells of
    the logarithm.
    """
    sums = np.zeros((size, WIDE))
    for u in range(len(column)):
        at, part = _place(log[u], first, cell, under, last)
        row = 2 * per * column[u]
        low, high = row + per * (at % 2) + at // 2, row + per * ((at + 1) % 2) + (at + 1) // 2
        for g in range(WIDE):
            likelihood = likely[low + g] + part * (likely[high + g] - likely[low + g])
            sums[element[u], g] += weight[u] * likelihood
    return sums


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _place(log, first, cell, under, last):
    """The cell of a logarithm that is the lowest knot's, and how far into it."""
    place = (log - first) / cell
    whole = math.floor(place)
    at = np.int64(whole) - under
    if at < 0:
        return np.int64(0), 0.0
    if at > last:
        return np.int64(last), 1.0
    return at, place - whole


@njit(cache=True, nogil=True, fastmath=True)
def gains(sums, every, begin, spline, factor, one, priors, told, depth):
    """By spread of the factors, how many nats they gain on having none; of every so-many-th element from the first given."""
    spreads, wide = len(priors), spline.shape[1]
    fit, bits = np.empty(wide, dtype=np.float32), np.empty(wide, dtype=np.int32)
    gained = np.zeros(spreads)
    for j in range(begin, len(sums), every):
        _fit(fit, bits, sums[j], spline, factor, told[:, j], depth)
        without = math.log(fit[one] + LEAST)
        for s in range(spreads):
            total = _F(0.0)
            for f in range(wide):
                total += fit[f] * priors[s, f]
            gained[s] += math.log(total + LEAST) - without
    return gained


@njit(cache=True, nogil=True, fastmath=True)
def factors(sums, spline, factor, prior, told, depth, least):
    """The expected factor of each element."""
    wide = spline.shape[1]
    fit, bits = np.empty(wide, dtype=np.float32), np.empty(wide, dtype=np.int32)
    mean = prior * factor
    found = np.empty(len(sums))
    for j in range(len(sums)):
        _fit(fit, bits, sums[j], spline, factor, told[:, j], depth)
        total, times = LEAST, 0.0
        for f in range(wide):
            total += fit[f] * prior[f]
            times += fit[f] * mean[f]
        found[j] = max(times / total, least)
    return found


@njit(cache=True, nogil=True, fastmath=True)
def drawn(sums, spline, factor, prior, told, depth, least, chance):
    """A factor of each element as it may be: the one that lies at this chance (from 0 to 1) of its law."""
    wide = spline.shape[1]
    fit, bits = np.empty(wide, dtype=np.float32), np.empty(wide, dtype=np.int32)
    found = np.empty(len(sums))
    for j in range(len(sums)):
        _fit(fit, bits, sums[j], spline, factor, told[:, j], depth)
        total = LEAST
        for f in range(wide):
            total += fit[f] * prior[f]
        left, place = chance[j] * total, 0
        while place < wide - 1 and left > fit[place] * prior[place]:
            left -= fit[place] * prior[place]
            place += 1
        found[j] = max(factor[place], least)
    return found


@njit(cache=True, nogil=True, fastmath=True)
def _fit(fit, bits, sums, spline, factor, told, depth):
    """The likelihood of one element's factors, largest 1: of its leaves, and of what measured features say of its sum.

    A measured sum has its noise, and counts vary about their rate. The law's tails matter: under a normal one, large Laplace
    noise would pass for a large factor.
    """
    best = sums[0]
    for k in range(1, len(spline)):
        best = max(best, sums[k])
    fit[:] = _F(0.0)
    for k in range(len(spline)):
        far = _F(max(sums[k] - best, -depth))
        for f in range(len(fit)):
            fit[f] += far * spline[k, f]
    if told[6] != 0:
        _shift(fit, told[6])
    if told[1] > 0:
        _told(fit, bits, factor, told)
    most = fit[0]
    for f in range(1, len(fit)):
        most = max(most, fit[f])
    for f in range(len(fit)):
        fit[f] -= most
    exponential(fit, bits)


@njit(cache=True, nogil=True, fastmath=True)
def _shift(fit, steps):
    """Move what is said about factors by so many steps of the grid, which is right for counts so much larger."""
    before = fit.copy()
    for f in range(len(fit)):
        place = min(max(f + steps, 0.0), len(fit) - 1.0)
        low = min(int(place), len(fit) - 2)
        fit[f] = before[low] + _F(place - low) * (before[low + 1] - before[low])


@njit(cache=True, nogil=True, fastmath=True)
def _told(fit, bits, factor, told):
    """Take off what a measured sum has against each factor: (|known − factor·held| / width·deviation)^power + log deviation."""
    known, precision, power, width, sums, squares, _ = told
    off, variance = np.empty(len(fit), dtype=np.float32), np.empty(len(fit), dtype=np.float32)
    for f in range(len(fit)):  # in units of the noise, so that variances are at least 1
        variance[f] = 1.0 + precision * (factor[f] * sums + factor[f] * factor[f] * squares)
        away = (known - factor[f] * sums) / width
        off[f] = precision * away * away + LEAST
    logarithm(off)
    logarithm(variance)
    half, power = _F(0.5), _F(power)
    for f in range(len(fit)):
        fit[f] -= half * variance[f]
        off[f] = half * power * (off[f] - variance[f])
    exponential(off, bits)
    for f in range(len(fit)):
        fit[f] -= off[f]


@njit(cache=True, nogil=True, fastmath=True)
def exponential(x, bits):
    """In place, of numbers between −80 and 80; those beyond are taken for these."""
    for f in range(len(x)):
        y = min(max(x[f], _F(-80.0)), _F(80.0))
        k = math.floor(y * _F(1.0 / LOG2) + _F(0.5))
        r = (y - k * _F(0.693359375)) + k * _F(0.693359375 - LOG2)
        p = _F(1 / 720.0) * r + _F(1 / 120.0)
        p = ((p * r + _F(1 / 24.0)) * r + _F(1 / 6.0)) * r + _F(0.5)
        x[f] = (p * r + _F(1.0)) * r + _F(1.0)
        bits[f] = (np.int32(k) + np.int32(127)) << np.int32(23)
    power = bits.view(np.float32)
    for f in range(len(x)):
        x[f] *= power[f]


@njit(cache=True, nogil=True, fastmath=True)
def logarithm(x):
    """In place, of numbers above 0: of the power of two by its bits, and of the rest by a series."""
    bits = x.view(np.int32)
    whole = np.empty(len(x), dtype=np.float32)
    for f in range(len(x)):
        up = (bits[f] - np.int32(0x3F3504F3)) >> np.int32(23)  # the rest lies between √½ and √2
        whole[f] = up
        bits[f] -= up << np.int32(23)
    for f in range(len(x)):
        s = (x[f] - _F(1.0)) / (x[f] + _F(1.0))
        t = s * s
        series = ((_F(1 / 9.0) * t + _F(1 / 7.0)) * t + _F(1 / 5.0)) * t + _F(1 / 3.0)
        x[f] = whole[f] * _F(LOG2) + _F(2.0) * (s + s * t * series)
