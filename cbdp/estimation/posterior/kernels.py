"""Compiled loops of the rate model: over the grid of factors of each element of a margin, and over all leaves.

Factors are weighed in single precision, by polynomials that the compiler can vectorise: a likelihood need be right to a thousandth.
Rates are stored in single precision too, since loops over leaves are as fast as their bytes are few; what is added up over leaves is kept in
double precision, but for the log-likelihoods of some dozens of leaves at a time.

By hand, because no library has them: `posterior_mean_factors` fuses a cubic spline, a likelihood and a prior for each of thousands of
elements, without an array of elements × grid.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from numpy.typing import NDArray

from cbdp.arrays import Floats, Ints, Singles
from cbdp.compiling import compiled_ahead, fast_kernel, inlined, kernel

# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def"


KNOT_LANES = (
    32  # numbers that are added to an element for each of its leaves: the knots, and some for even lanes
)
MIN_RELATIVE_LIKELIHOOD = 1e-30  # of a likelihood whose largest is 1
_F = np.float32
LOG2 = 0.6931471805599453

# One record for each element of a margin: what is known of its sum beside the likelihood of its leaves.
MARGIN_EVIDENCE = np.dtype(
    [
        ("measured", np.float64),  # the sum by the measured features
        ("precision", np.float64),  # of it; 0 where nothing was measured
        ("power", np.float64),  # of the noise's generalised normal law
        ("width", np.float64),  # of that law where its variance is 1
        ("rate", np.float64),  # the sum of the leaves' rates
        ("overdispersion", np.float64),  # by how much the variance of the sum exceeds a Poisson count's
        ("shift", np.float64),  # steps of the grid by which the likelihood of the leaves is moved
    ],
    align=True,
)
# One record for each element of a margin: sums over its leaves in one fold, of rates m, noisy counts y and w = m/(variance + φm).
FOLD_SUMS = np.dtype(
    [(name, np.float64) for name in ("rate", "noisy", "leaves", "wy", "wm", "wy_wy", "wy_wm", "wm_wm")],
    align=True,
)


def margin_evidence(size: int) -> NDArray[np.void]:
    """The records of elements of which nothing was measured."""
    evidence = np.zeros(size, dtype=MARGIN_EVIDENCE)
    for name in ("power", "width", "rate", "overdispersion"):
        evidence[name] = 1.0
    return evidence


@fast_kernel
def weighted_log_likelihoods(element, log, weight, column, likely, per, size, first, cell, under, last):
    """Elements × `KNOT_LANES`: the log-likelihood of an element's leaves if their expected counts are multiplied by a knot.

    Leaves stand for so many of the same kind. `likely` has for each column two rows of `per` numbers, for even and for odd cells of
    the logarithm.
    """
    sums = np.zeros((size, KNOT_LANES))
    for u in range(len(column)):
        at, part = _cell_of_log(log[u], first, cell, under, last)
        row = 2 * per * column[u]
        low, high = row + per * (at % 2) + at // 2, row + per * ((at + 1) % 2) + (at + 1) // 2
        for g in range(KNOT_LANES):
            likelihood = likely[low + g] + part * (likely[high + g] - likely[low + g])
            sums[element[u], g] += weight[u] * likelihood
    return sums


@inlined
def _cell_of_log(log, first, cell, under, last):
    """The cell of a logarithm that is the lowest knot's, and how far into it."""
    place = (log - first) / cell
    whole = math.floor(place)
    at = np.int64(whole) - under
    if at < 0:
        return np.int64(0), 0.0
    if at > last:
        return np.int64(last), 1.0
    return at, place - whole


@compiled_ahead(
    "f4[:,::1], i8, i8, f4[:,::1], f8[::1], i8, f4[:,::1], MARGIN_EVIDENCE[::1], f8",
    MARGIN_EVIDENCE=MARGIN_EVIDENCE,
)
@fast_kernel
def log_bayes_factors(sums, every, begin, spline, factor, one, priors, evidence, depth):
    """By spread of the factors, their log Bayes factor against having none, from every so-many-th element from `begin` on."""
    spreads, wide = len(priors), spline.shape[1]
    fit, bits = np.empty(wide, dtype=np.float32), np.empty(wide, dtype=np.int32)
    gained = np.zeros(spreads)
    for j in range(begin, len(sums), every):
        _factor_likelihood(fit, bits, sums[j], spline, factor, evidence[j], depth)
        log_at_one = math.log(fit[one] + MIN_RELATIVE_LIKELIHOOD)
        for s in range(spreads):
            total = _F(0.0)
            for f in range(wide):
                total += fit[f] * priors[s, f]
            gained[s] += math.log(total + MIN_RELATIVE_LIKELIHOOD) - log_at_one
    return gained


@compiled_ahead(
    "f4[:,::1], f4[:,::1], f8[::1], f8[::1], MARGIN_EVIDENCE[::1], f8, f8", MARGIN_EVIDENCE=MARGIN_EVIDENCE
)
@fast_kernel
def posterior_mean_factors(sums, spline, factor, prior, evidence, depth, least):
    """The posterior mean of each element's factor, under the mixed prior of all spreads."""
    wide = spline.shape[1]
    fit, bits = np.empty(wide, dtype=np.float32), np.empty(wide, dtype=np.int32)
    mean = prior * factor
    estimate = np.empty(len(sums))
    for j in range(len(sums)):
        _factor_likelihood(fit, bits, sums[j], spline, factor, evidence[j], depth)
        total, times = MIN_RELATIVE_LIKELIHOOD, 0.0
        for f in range(wide):
            total += fit[f] * prior[f]
            times += fit[f] * mean[f]
        estimate[j] = max(times / total, least)
    return estimate


@fast_kernel
def sampled_factors(sums, spline, factor, prior, evidence, depth, least, chance):
    """A posterior draw of each element's factor: the quantile at this chance (from 0 to 1)."""
    wide = spline.shape[1]
    fit, bits = np.empty(wide, dtype=np.float32), np.empty(wide, dtype=np.int32)
    draw = np.empty(len(sums))
    for j in range(len(sums)):
        _factor_likelihood(fit, bits, sums[j], spline, factor, evidence[j], depth)
        total = MIN_RELATIVE_LIKELIHOOD
        for f in range(wide):
            total += fit[f] * prior[f]
        left, place = chance[j] * total, 0
        while place < wide - 1 and left > fit[place] * prior[place]:
            left -= fit[place] * prior[place]
            place += 1
        draw[j] = max(factor[place], least)
    return draw


@fast_kernel
def _factor_likelihood(fit, bits, sums, spline, factor, evidence, depth):
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
    if evidence.shift != 0:
        _shift_grid(fit, evidence.shift)
    if evidence.precision > 0:
        _subtract_measured(fit, bits, factor, evidence)
    most = fit[0]
    for f in range(1, len(fit)):
        most = max(most, fit[f])
    for f in range(len(fit)):
        fit[f] -= most
    exp_in_place(fit, bits)


@fast_kernel
def _shift_grid(fit, steps):
    """Move what is said about factors by so many steps of the grid, which is right for counts so much larger."""
    before = fit.copy()
    for f in range(len(fit)):
        place = min(max(f + steps, 0.0), len(fit) - 1.0)
        low = min(int(place), len(fit) - 2)
        fit[f] = before[low] + _F(place - low) * (before[low + 1] - before[low])


@fast_kernel
def _subtract_measured(fit, bits, factor, evidence):
    """Take off what a measured sum has against each factor: (|measured − factor·rate| / width·deviation)^power + log deviation."""
    measured, precision, width, rate = evidence.measured, evidence.precision, evidence.width, evidence.rate
    deviation, variance = np.empty(len(fit), dtype=np.float32), np.empty(len(fit), dtype=np.float32)
    for f in range(len(fit)):  # in units of the noise, so that variances are at least 1
        variance[f] = 1.0 + precision * (factor[f] * rate + factor[f] * factor[f] * evidence.overdispersion)
        away = (measured - factor[f] * rate) / width
        deviation[f] = precision * away * away + MIN_RELATIVE_LIKELIHOOD
    log_in_place(deviation)
    log_in_place(variance)
    half, power = _F(0.5), _F(evidence.power)
    for f in range(len(fit)):
        fit[f] -= half * variance[f]
        deviation[f] = half * power * (deviation[f] - variance[f])
    exp_in_place(deviation, bits)
    for f in range(len(fit)):
        fit[f] -= deviation[f]


@fast_kernel
def exp_in_place(x, bits):
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


@fast_kernel
def log_in_place(x):
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


# Loops over all leaves


MIN_RATE = np.float32(1e-30)  # the least rate: single precision ends not far below
LEAVES_PER_BLOCK = 1024  # leaves whose logarithms are made at a time
SINGLE_PRECISION_TERMS = 64  # likelihoods that are added in single precision
FLOATS_PER_CACHE_LINE = 16  # numbers in a line of the cache
_L0, _L1, _L2, _L3, _L4, _L5, _L6 = (  # of the logarithm between 1 and 2
    Chebyshev.interpolate(np.log, 6, domain=[1.0, 2.0]).convert(kind=Polynomial).coef.astype(np.float32)
)


def knot_buffers(most: int, size: int) -> tuple[Singles, Floats]:
    """Where `fold_log_likelihoods` adds up: elements × `KNOT_LANES` in single precision, in whole lines of the cache; and in double, if elements are large."""
    room = np.zeros(size * KNOT_LANES + FLOATS_PER_CACHE_LINE, dtype=np.float32)
    skip = -room.ctypes.data // room.itemsize % FLOATS_PER_CACHE_LINE
    return room[skip : skip + size * KNOT_LANES], np.zeros(
        size * KNOT_LANES if most > SINGLE_PRECISION_TERMS else 0
    )


@compiled_ahead("f4[::1], f8[::1], i8, i4[::1], f4[::1], i1[::1], i8, i2[::1], f4[::1], i8, f8, f8, i8, i8")
@fast_kernel
def fold_log_likelihoods(
    sums, whole, low, element, rate, fold, left_out, column, likely, per, first, cell, under, last
):
    """Elements from `low` on × `KNOT_LANES`: the log-likelihood of an element's leaves if their rates are multiplied by a knot.

    A number that is the same for all knots is left out. `likely` has for each column two rows of `per` numbers, for even and for odd cells
    of the logarithm. `sums` and `whole` are those of `knot_buffers`.
    """
    often = np.zeros(len(sums) // KNOT_LANES, dtype=np.uint8)
    place, bits = np.empty(LEAVES_PER_BLOCK, dtype=np.float32), np.empty(LEAVES_PER_BLOCK, dtype=np.int32)
    of_rate = rate.view(np.int32)
    for begin in range(0, len(rate), LEAVES_PER_BLOCK):
        end = min(begin + LEAVES_PER_BLOCK, len(rate))
        for i in range(end - begin):  # by hand: numba takes seconds for the assignment of a slice
            bits[i] = of_rate[begin + i]
        here = place[: end - begin]
        _cells_of_rates(here, bits[: end - begin], _F(1.0 / cell), _F(first / cell + under), _F(last + 1))
        leaves = element[begin:end], here, fold[begin:end], column[begin:end]
        if len(whole):
            _add_many(sums, whole, often, low, leaves, left_out, likely, per, last)
        else:
            _add_few(sums, low, leaves, left_out, likely, per, last)
    if len(whole):
        _subtract_maximum(sums, whole)
    return sums.reshape(-1, KNOT_LANES)


@fast_kernel
def _add_few(sums, low, leaves, left_out, likely, per, last):
    """In single precision all the way: elements have but few leaves."""
    element, place, fold, column = leaves
    for u in range(len(element)):
        e = np.int64(element[u]) - low
        if fold[u] != left_out and 0 <= e * KNOT_LANES < len(sums):
            _add_leaf(sums, np.uint64(KNOT_LANES * e), place[u], column[u], likely, per, last)


@fast_kernel
def _add_many(sums, whole, often, low, leaves, left_out, likely, per, last):
    """What has been added for `SINGLE_PRECISION_TERMS` leaves of an element goes into a sum in double precision."""
    element, place, fold, column = leaves
    for u in range(len(element)):
        e = np.int64(element[u]) - low
        if fold[u] != left_out and 0 <= e * KNOT_LANES < len(sums):
            into = np.uint64(KNOT_LANES * e)
            _add_leaf(sums, into, place[u], column[u], likely, per, last)
            often[e] += np.uint8(1)
            if often[e] == SINGLE_PRECISION_TERMS:
                often[e] = np.uint8(0)
                _flushed(sums, whole, into)


@inlined
def _add_leaf(sums, into, place, column, likely, per, last):
    at = min(np.int64(place), np.int64(last))
    part = place - _F(at)
    row = 2 * per * np.int64(column)
    here = np.uint64(row + per * (at % 2) + at // 2)
    beside = np.uint64(row + per * ((at + 1) % 2) + (at + 1) // 2)
    for g in range(KNOT_LANES):
        k = np.uint64(g)
        sums[into + k] += likely[here + k] + part * (likely[beside + k] - likely[here + k])


@fast_kernel
def _cells_of_rates(place, bits, steps, below, end):
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


@fast_kernel
def _subtract_maximum(sums, whole):
    """What was added up in double precision, as what it is less than the largest of each element."""
    for e in range(len(sums) // KNOT_LANES):
        _flushed(sums, whole, np.uint64(KNOT_LANES * e))
        best = whole[KNOT_LANES * e]
        for g in range(1, KNOT_LANES):
            best = max(best, whole[KNOT_LANES * e + g])
        for g in range(KNOT_LANES):
            sums[KNOT_LANES * e + g] = whole[KNOT_LANES * e + g] - best


@inlined
def _flushed(sums, whole, into):
    for g in range(KNOT_LANES):
        k = np.uint64(g)
        whole[into + k] += sums[into + k]
        sums[into + k] = _F(0.0)


@kernel
def _accumulators(size, leaves):
    """Sums are in four parts that take turns: neighbours are often of one element, and would wait for each other. Large ones are in one."""
    return 3 if size * 16 <= leaves else 0


def _add_turns(parts: Floats) -> Floats:
    """The sums of the parts that took turns, in their order."""
    total = parts[:, 0].copy()
    for turn in range(1, parts.shape[1]):
        total += parts[:, turn]
    return total


def rate_sums(element: NDArray[np.int32], rate: Singles, size: int) -> Floats:
    """Elements × 2: the sums of rates and of their squares."""
    sums: Floats = _rate_sums(element, rate, size)
    return _add_turns(sums)


@compiled_ahead("i4[::1], f4[::1], i8")
@kernel
def _rate_sums(element, rate, size):
    turns = _accumulators(size, len(rate))
    parts = np.zeros((size, turns + 1, 2))
    for u in range(len(rate)):
        m = np.float64(rate[u])
        part = parts[element[u], u & turns]
        part[0] += m
        part[1] += m * m
    return parts


def perturbed_rate_sums(
    element: NDArray[np.int32], rate: Singles, log_response: Singles, size: int
) -> Floats:
    """Elements × 2: the sums of rates and of their squares, if these responses are added to the rates' logarithms."""
    sums: Floats = _perturbed_rate_sums(element, rate, log_response, size)
    return _add_turns(sums)


@compiled_ahead("i4[::1], f4[::1], f4[::1], i8")
@fast_kernel
def _perturbed_rate_sums(element, rate, log_response, size):
    turns = _accumulators(size, len(rate))
    parts = np.zeros((size, turns + 1, 2))
    times, bits = np.empty(LEAVES_PER_BLOCK, dtype=np.float32), np.empty(LEAVES_PER_BLOCK, dtype=np.int32)
    for begin in range(0, len(rate), LEAVES_PER_BLOCK):
        many = min(LEAVES_PER_BLOCK, len(rate) - begin)
        for i in range(many):
            times[i] = log_response[begin + i]
        exp_in_place(times[:many], bits[:many])
        for i in range(many):
            m = np.float64(rate[begin + i]) * np.float64(times[i])
            part = parts[element[begin + i], i & turns]
            part[0] += m
            part[1] += m * m
    return parts


@compiled_ahead("i4[::1], f4[::1], f4[::1]")
@kernel
def multiply_rates(element, factor, rate):
    """Rates, times their elements' factors."""
    for u in range(len(rate)):
        rate[u] = max(rate[u] * factor[element[u]], MIN_RATE)


@compiled_ahead("i4[::1], f4[::1], f4[::1]")
@kernel
def add_by_element(element, plus, log_response):
    """Numbers of the leaves, plus those of their elements."""
    for u in range(len(log_response)):
        log_response[u] += plus[element[u]]


@compiled_ahead("f4[:,::1], i1[::1]")
@kernel
def cross_fitted_rates(rate, fold):
    """Of each leaf, the rate by the model that has not seen it."""
    predicted = np.empty(len(fold), dtype=np.float32)
    for u in range(len(fold)):
        predicted[u] = rate[fold[u], u]
    return predicted


@compiled_ahead("i8[::1], f4[::1]")
@kernel
def residual_sums(noisy, rate):
    """The sum of rates, and of the squares by which noisy counts miss them."""
    total, squares = 0.0, 0.0
    for u in range(len(rate)):
        m = np.float64(rate[u])
        total += m
        squares += (noisy[u] - m) ** 2
    return total, squares


def fold_sums(
    low: int, high: int, element: NDArray[np.int32], rate: Singles, fold: NDArray[np.int8], left_out: int,
    noisy: Floats | Ints, variance: float, dispersion: float,
) -> tuple[Floats, NDArray[np.void]]:  # fmt: skip
    """By element of a range, the sum of rates outside of the fold `left_out`; and of its leaves what tells how well rates predict them.

    For a rate m, a noisy count y and w = m/(variance + dispersion·m) these are the sums of m, y, 1, w y, w m and w²y², w²y m, w²m².
    """
    outside: Floats
    inside: NDArray[np.void]
    outside, inside = _fold_sums(low, high, element, rate, fold, left_out, noisy, variance, dispersion)
    return _add_turns(outside), inside


@compiled_ahead("i8, i8, i4[::1], f4[::1], i1[::1], i8, i8[::1], f8, f8")
@kernel
def _fold_sums(low, high, element, rate, fold, left_out, noisy, variance, dispersion):
    turns = _accumulators(high - low, len(rate))
    outside, inside = np.zeros((high - low, turns + 1)), np.zeros(high - low, dtype=FOLD_SUMS)
    for u in range(len(rate)):
        e, m = np.int64(element[u]) - low, np.float64(rate[u])
        if e < 0 or e >= high - low:
            continue
        if fold[u] != left_out:
            outside[e, u & turns] += m
            continue
        y = np.float64(noisy[u])
        w = m / (variance + dispersion * m)
        wy, wm = w * y, w * m
        record = inside[e]
        record.rate += m
        record.noisy += y
        record.leaves += 1.0
        record.wy += wy
        record.wm += wm
        record.wy_wy += wy * wy
        record.wy_wm += wy * wm
        record.wm_wm += wm * wm
    return outside, inside


@compiled_ahead("i4[::1], i8[::1], i1[::1], i8, i8")
@kernel
def sums_outside_fold(element, noisy, fold, left_out, size):
    """By element, the sum of noisy counts outside of a fold, and their number."""
    sums, many = np.zeros(size), np.zeros(size)
    for u in range(len(noisy)):
        if fold[u] != left_out:
            sums[element[u]] += noisy[u]
            many[element[u]] += 1.0
    return sums, many


@compiled_ahead("i4[::1], f4[::1], f4[::1], i1[::1], i8, i8")
@fast_kernel
def perturbed_sums_outside_fold(element, rate, log_response, fold, left_out, size):
    """By element, the sums of rates outside of a fold and in it, if these responses are added to the rates' logarithms."""
    outside, inside = np.zeros(size), np.zeros(size)
    for u in range(len(rate)):
        m = np.float64(rate[u]) * math.exp(np.float64(log_response[u]))
        if fold[u] != left_out:
            outside[element[u]] += m
        else:
            inside[element[u]] += m
    return outside, inside
