"""Compiled passes over all leaves: what each margin needs of them, in one go.

Rates are held in single precision, and their logarithms made where they are needed: passes are as fast as their bytes are few. What
is added up over leaves is kept in double precision; only the log-likelihoods of some dozens of leaves at a time are not.
"""
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.polynomial import Chebyshev, Polynomial

from cbdp.arrays import Floats, Singles
from cbdp.estimate.posterior.factors import LOG2, WIDE, exponential

FAINTEST = np.float32(1e-30)  # the least rate: single precision ends not far below
BLOCK = 1024  # leaves whose logarithms are made at a time
FEW = 64  # likelihoods that are added in single precision
LINE = 16  # numbers in a line of the cache
OWN = 8  # numbers of `by_fold`
_F = np.float32
_L0, _L1, _L2, _L3, _L4, _L5, _L6 = (  # of the logarithm between 1 and 2
    Chebyshev.interpolate(np.log, 6, domain=[1.0, 2.0]).convert(kind=Polynomial).coef.astype(np.float32)
)


def knots_of(most: int, size: int) -> tuple[Singles, Floats]:
    """Where `added` adds up: elements × WIDE in single precision, in whole lines of the cache; and in double, if elements are large."""
    room = np.zeros(size * WIDE + LINE, dtype=np.float32)
    skip = -room.ctypes.data // room.itemsize % LINE
    return room[skip : skip + size * WIDE], np.zeros(size * WIDE if most > FEW else 0)


@njit(cache=True, nogil=True, fastmath=True)
def added(sums, whole, low, element, rate, fold, left_out, column, likely, per, first, cell, under, last):
    """Elements from `low` on × WIDE: the log-likelihood of an element's leaves if their rates are multiplied by a knot.

    A number that is the same for all knots is left out. `likely` has for each column two rows of `per` numbers, for even and for odd cells
    of the logarithm. `sums` and `whole` are those of `knots_of`.
    """
    often = np.zeros(len(sums) // WIDE, dtype=np.uint8)
    place, bits = np.empty(BLOCK, dtype=np.float32), np.empty(BLOCK, dtype=np.int32)
    of_rate = rate.view(np.int32)
    for begin in range(0, len(rate), BLOCK):
        end = min(begin + BLOCK, len(rate))
        bits[: end - begin] = of_rate[begin:end]
        here = place[: end - begin]
        _places(here, bits[: end - begin], _F(1.0 / cell), _F(first / cell + under), _F(last + 1))
        leaves = element[begin:end], here, fold[begin:end], column[begin:end]
        if len(whole):
            _add_many(sums, whole, often, low, leaves, left_out, likely, per, last)
        else:
            _add_few(sums, low, leaves, left_out, likely, per, last)
    if len(whole):
        _less_the_best(sums, whole)
    return sums.reshape(-1, WIDE)


@njit(cache=True, nogil=True, fastmath=True)
def _add_few(sums, low, leaves, left_out, likely, per, last):
    """In single precision all the way: elements have but few leaves."""
    element, place, fold, column = leaves
    for u in range(len(element)):
        e = np.int64(element[u]) - low
        if fold[u] != left_out and 0 <= e * WIDE < len(sums):
            _add_leaf(sums, np.uint64(WIDE * e), place[u], column[u], likely, per, last)


@njit(cache=True, nogil=True, fastmath=True)
def _add_many(sums, whole, often, low, leaves, left_out, likely, per, last):
    """What has been added for FEW leaves of an element goes into a sum in double precision."""
    element, place, fold, column = leaves
    for u in range(len(element)):
        e = np.int64(element[u]) - low
        if fold[u] != left_out and 0 <= e * WIDE < len(sums):
            into = np.uint64(WIDE * e)
            _add_leaf(sums, into, place[u], column[u], likely, per, last)
            often[e] += np.uint8(1)
            if often[e] == FEW:
                often[e] = np.uint8(0)
                _emptied(sums, whole, into)


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _add_leaf(sums, into, place, column, likely, per, last):
    at = min(np.int64(place), np.int64(last))
    part = place - _F(at)
    row = 2 * per * np.int64(column)
    here = np.uint64(row + per * (at % 2) + at // 2)
    beside = np.uint64(row + per * ((at + 1) % 2) + (at + 1) // 2)
    for g in range(WIDE):
        k = np.uint64(g)
        sums[into + k] += likely[here + k] + part * (likely[beside + k] - likely[here + k])


@njit(cache=True, nogil=True, fastmath=True)
def _places(place, bits, steps, below, end):
    """The cells of rates, from the bits of these: of the power of two, and of the rest by a polynomial, to a ten-thousandth of a cell."""
    for i in range(len(place)):
        place[i] = _F(np.int32(bits[i] >> np.int32(23)) - np.int32(127))
    for i in range(len(place)):
        bits[i] = np.int32((bits[i] & np.int32(0x7FFFFF)) | np.int32(0x3F800000))
    rest = bits.view(np.float32)
    for i in range(len(place)):
        x = rest[i]
        log = (((((_L6 * x + _L5) * x + _L4) * x + _L3) * x + _L2) * x + _L1) * x + _L0
        place[i] = min(max((place[i] * _F(LOG2) + log) * steps - below, _F(0.0)), end)


@njit(cache=True, nogil=True, fastmath=True)
def _less_the_best(sums, whole):
    """What was added up in double precision, as what it is less than the largest of each element."""
    for e in range(len(sums) // WIDE):
        _emptied(sums, whole, np.uint64(WIDE * e))
        best = whole[WIDE * e]
        for g in range(1, WIDE):
            best = max(best, whole[WIDE * e + g])
        for g in range(WIDE):
            sums[WIDE * e + g] = whole[WIDE * e + g] - best


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _emptied(sums, whole, into):
    for g in range(WIDE):
        k = np.uint64(g)
        whole[into + k] += sums[into + k]
        sums[into + k] = _F(0.0)


@njit(cache=True, nogil=True)
def _turns(size, leaves):
    """Sums are in four parts that take turns: neighbours are often of one element, and would wait for each other. Large ones are in one."""
    return 3 if size * 16 <= leaves else 0


@njit(cache=True, nogil=True)
def held(element, rate, size):
    """Elements × 2: the sums of rates and of their squares."""
    turns = _turns(size, len(rate))
    parts = np.zeros((size, turns + 1, 2))
    for u in range(len(rate)):
        m = np.float64(rate[u])
        part = parts[element[u], u & turns]
        part[0] += m
        part[1] += m * m
    return parts.sum(axis=1)


@njit(cache=True, nogil=True, fastmath=True)
def held_moved(element, rate, off, size):
    """Elements × 2: the sums of rates and of their squares, if the rates' logarithms are off by so much."""
    turns = _turns(size, len(rate))
    parts = np.zeros((size, turns + 1, 2))
    times, bits = np.empty(BLOCK, dtype=np.float32), np.empty(BLOCK, dtype=np.int32)
    for begin in range(0, len(rate), BLOCK):
        many = min(BLOCK, len(rate) - begin)
        times[:many] = off[begin : begin + many]
        exponential(times[:many], bits[:many])
        for i in range(many):
            m = np.float64(rate[begin + i]) * np.float64(times[i])
            part = parts[element[begin + i], i & turns]
            part[0] += m
            part[1] += m * m
    return parts.sum(axis=1)


@njit(cache=True, nogil=True)
def multiply(element, factor, rate):
    """Rates, times their elements' factors."""
    for u in range(len(rate)):
        rate[u] = max(rate[u] * factor[element[u]], FAINTEST)


@njit(cache=True, nogil=True)
def add(element, plus, off):
    """Numbers of the leaves, plus those of their elements."""
    for u in range(len(off)):
        off[u] += plus[element[u]]


@njit(cache=True, nogil=True)
def own_rates(rate, fold):
    """Of each leaf, what the model says that has not seen it."""
    own = np.empty(len(fold), dtype=np.float32)
    for u in range(len(fold)):
        own[u] = rate[fold[u], u]
    return own


@njit(cache=True, nogil=True)
def missed(noisy, rate):
    """The sum of rates, and of the squares by which noisy counts miss them."""
    total, squares = 0.0, 0.0
    for u in range(len(rate)):
        m = np.float64(rate[u])
        total += m
        squares += (noisy[u] - m) ** 2
    return total, squares


@njit(cache=True, nogil=True)
def by_fold(low, high, element, rate, fold, own, noisy, variance, bunched):
    """By element of a range, the sum of rates outside of the fold `own`; and of its leaves what tells how well rates predict them.

    For a rate m, a noisy count y and w = m/(variance + bunched·m) these are the sums of m, y, 1, w y, w m and w²y², w²y m, w²m².
    """
    turns = _turns(high - low, len(rate))
    outside, inside = np.zeros((high - low, turns + 1)), np.zeros((high - low, OWN))
    for u in range(len(rate)):
        e, m = np.int64(element[u]) - low, np.float64(rate[u])
        if e < 0 or e >= high - low:
            continue
        if fold[u] != own:
            outside[e, u & turns] += m
            continue
        y = np.float64(noisy[u])
        w = m / (variance + bunched * m)
        a, b = w * y, w * m
        row = inside[e]
        row[0] += m
        row[1] += y
        row[2] += 1.0
        row[3] += a
        row[4] += b
        row[5] += a * a
        row[6] += a * b
        row[7] += b * b
    return outside.sum(axis=1), inside


@njit(cache=True, nogil=True)
def outside(element, noisy, fold, own, size):
    """By element, the sum of noisy counts outside of a fold, and their number."""
    sums, many = np.zeros(size), np.zeros(size)
    for u in range(len(noisy)):
        if fold[u] != own:
            sums[element[u]] += noisy[u]
            many[element[u]] += 1.0
    return sums, many


@njit(cache=True, nogil=True, fastmath=True)
def outside_moved(element, rate, off, fold, own, size):
    """By element, the sums of rates outside of a fold and in it, if the rates' logarithms are off by so much."""
    outside, inside = np.zeros(size), np.zeros(size)
    for u in range(len(rate)):
        m = np.float64(rate[u]) * math.exp(np.float64(off[u]))
        if fold[u] != own:
            outside[element[u]] += m
        else:
            inside[element[u]] += m
    return outside, inside
