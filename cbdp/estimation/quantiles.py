"""Tails of the error of an unbiased answer: saddlepoint approximation for weighted sums of independent noises.

`cbdp.estimation.gls` matches variance and kurtosis, which is right near the usual confidences. Verdicts about thousands of rows look far into
the tails, where such a fit decays too fast if one noise is larger than the others. Here tails follow from the cumulant generating
functions of the noises themselves (Lugannani and Rice 1980): of one Laplace noise and of sums of them the approximation is 1 to 5 % too high, at one
deviation as at forty, so it errs on the side of noise.

The last part are intervals of ratios of two such answers (Fieller 1954).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from cbdp.arrays import Floats, Ints
from cbdp.estimation.gls import UnbiasedAnswer, variance_gamma_quantile
from cbdp.privacy.noise import NoiseDistribution

MAX_DEVIATIONS = 40.0  # deviations: beyond, every tail here is below 10⁻²⁴ and taken as constant
MIN_DEVIATIONS = 0.02  # deviations within which the tail is taken as 1
BISECTIONS = 40  # halvings of the logarithm of s: to about 2·10⁻¹¹ of s
DIFFERENCE_STEP = 1e-3  # relative step of s in a difference quotient
# deviations at which the tail is tabulated where many answers share a distribution
DEVIATION_GRID = np.geomspace(MIN_DEVIATIONS, MAX_DEVIATIONS, 600)


@dataclass(frozen=True, eq=False)
class ErrorDistribution:
    """Errors of several answers: a row for each source of noise, a column for each answer."""

    laws: Sequence[
        NoiseDistribution | None
    ]  # distribution of one noise of each source; None: unknown, taken as normal
    weight: Floats = field(repr=False)
    noise: Floats = field(repr=False)  # the variance of the source's sum, before it is weighted

    @property
    def variance(self) -> Floats:
        variance: Floats = (self.weight**2 * self.noise).sum(axis=0)
        return variance

    @property
    def whole(self) -> NDArray[np.bool_]:
        """Whether the error is a whole number: every source has weight 0 or ±1."""
        return np.asarray(np.isin(np.abs(self.weight), (0.0, 1.0)).all(axis=0))

    def beyond(self, size: Floats) -> Floats:
        """P(|error| ≥ size), taken as 1 within `MIN_DEVIATIONS` (Lugannani and Rice 1980)."""
        sizes = np.asarray(size, dtype=float)
        distinct, which = self._distinct()
        laws = distinct.weight.shape[1]
        if laws * len(DEVIATION_GRID) >= len(sizes):
            return _tail_probability(self, sizes)
        return _tabulated_tail(distinct, which, sizes)

    def reach(self, risk: float) -> Floats:
        """The two-sided quantile: |error| exceeds it with probability `risk`."""
        distinct, which = self._distinct()
        return _quantile(distinct, risk)[which]

    def _distinct(self) -> tuple[ErrorDistribution, NDArray[np.int64]]:
        """The distinct distributions, each computed once, and which of them each answer has."""
        rows = np.vstack([self.weight, self.noise]).round(9)
        _, first, which = np.unique(rows, axis=1, return_index=True, return_inverse=True)
        distinct = ErrorDistribution(self.laws, self.weight[:, first], self.noise[:, first])
        return distinct, np.asarray(which).reshape(-1).astype(np.int64)

    def cumulant(self, s: Floats) -> Floats:
        """Cumulant generating function log E exp(s · error); infinite where it does not exist. One s for each answer, or rows of them."""
        total = np.zeros(np.shape(s))
        for law, weight, noise in zip(self.laws, self.weight, self.noise, strict=True):
            here = (weight != 0) & (noise > 0)
            total[..., here] += _cumulant(law, weight[here] * s[..., here], noise[here])
        return total


def error_distribution(
    answers: UnbiasedAnswer, laws: Sequence[NoiseDistribution | None]
) -> ErrorDistribution:
    """The error of the best linear unbiased answers, with the distribution of each source."""
    return ErrorDistribution(tuple(laws), answers.weight, answers.noise)


def sum_of_errors(errors: Sequence[ErrorDistribution]) -> ErrorDistribution:
    """The error of sums or differences of independent answers, one of each."""
    return ErrorDistribution(
        [law for e in errors for law in e.laws],
        np.vstack([e.weight for e in errors]),
        np.vstack([e.noise for e in errors]),
    )


def _cumulant(law: NoiseDistribution | None, s: Floats, noise: Floats) -> Floats:
    """Cumulant generating function of a sum of so many noises that its variance is `noise`."""
    one = 0.0 if law is None else law.variance()
    if law is None or one <= 0:
        normal: Floats = s**2 * noise / 2
        return normal
    return np.asarray(noise / one * law.log_moment(s))


def _cumulant_slope(error: ErrorDistribution, s: Floats) -> Floats:
    """Derivative of the cumulant generating function: the saddlepoint equation is slope = x. Infinite beyond its domain."""
    with np.errstate(invalid="ignore"):
        above, below = error.cumulant(
            np.stack([s * (1 + DIFFERENCE_STEP / 10), s * (1 - DIFFERENCE_STEP / 10)])
        )
        slope = (above - below) / (s * DIFFERENCE_STEP / 5)
    return np.where(np.isfinite(slope), slope, np.inf)


def _saddlepoint_tail(error: ErrorDistribution, s: Floats, x: Floats) -> Floats:
    """P(|error| > x) at the saddlepoint s of x: twice Lugannani and Rice's (1980) tail."""
    at, above, below = error.cumulant(np.stack([s, s * (1 + DIFFERENCE_STEP), s * (1 - DIFFERENCE_STEP)]))
    bend = (above - 2 * at + below) / (s * DIFFERENCE_STEP) ** 2
    r, u = np.sqrt(np.maximum(2 * (s * x - at), 1e-300)), s * np.sqrt(np.maximum(bend, 1e-300))
    density = np.exp(-(r**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(np.clip(2 * (ndtr(-r) + density * (1 / u - 1 / r)), 0.0, 1.0))


def _tail_probability(error: ErrorDistribution, size: Floats) -> Floats:
    deviation = np.sqrt(error.variance)
    some = deviation > 0
    far = np.divide(size, deviation, out=np.zeros(len(size)), where=some)
    x = np.clip(far, MIN_DEVIATIONS, MAX_DEVIATIONS) * deviation
    s = _bisect(lambda s: _cumulant_slope(error, s) > x, deviation)
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = np.where(far <= MIN_DEVIATIONS, 1.0, _saddlepoint_tail(error, s, x))
    return np.where(some, chance, np.where(size > 0, 0.0, 1.0))


def _tabulated_tail(distinct: ErrorDistribution, which: NDArray[np.int64], size: Floats) -> Floats:
    """The tail from a table for each distribution: its logarithm is nearly linear between the points of the grid."""
    laws = distinct.weight.shape[1]
    weight, noise = (
        np.repeat(part, len(DEVIATION_GRID), axis=1) for part in (distinct.weight, distinct.noise)
    )
    deviation = np.sqrt(distinct.variance)
    every = _tail_probability(
        ErrorDistribution(distinct.laws, weight, noise),
        np.repeat(deviation, len(DEVIATION_GRID)) * np.tile(DEVIATION_GRID, laws),
    )
    logs = np.log(np.maximum(every, np.finfo(float).tiny)).reshape(laws, len(DEVIATION_GRID))
    chance = np.empty(len(size))
    for law in range(laws):
        here = which == law
        if deviation[law] > 0:
            far = size[here] / deviation[law]
            chance[here] = np.where(
                far <= MIN_DEVIATIONS, 1.0, np.exp(np.interp(far, DEVIATION_GRID, logs[law]))
            )
        else:
            chance[here] = np.where(size[here] > 0, 0.0, 1.0)
    return chance


def _quantile(error: ErrorDistribution, risk: float) -> Floats:
    deviation = np.sqrt(error.variance)

    def beyond(s: Floats) -> NDArray[np.bool_]:
        x = _cumulant_slope(error, s)
        with np.errstate(invalid="ignore"):
            chance = _saddlepoint_tail(error, s, np.minimum(x, 1e300))
        return np.asarray((x == np.inf) | (chance <= risk))

    s = _bisect(beyond, deviation)
    return np.where(deviation > 0, _cumulant_slope(error, s), 0.0)


def _bisect(passed: Callable[[Floats], NDArray[np.bool_]], deviation: Floats) -> Floats:
    """The largest s at which a monotone condition does not hold yet, by bisection of its logarithm."""
    unit = np.where(deviation > 0, deviation, 1.0)
    low, high = 1e-6 / unit, 10 * MAX_DEVIATIONS / unit
    for _ in range(BISECTIONS):
        middle = np.sqrt(low * high)
        with np.errstate(invalid="ignore", over="ignore"):
            over = passed(middle)
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return low


# Intervals of shares. Part and whole have correlated errors; a share p is compatible with the measurements if part − p · whole, whose
# variance is known for every p, is within its noise of zero (Fieller 1954).


def share_interval(
    part: UnbiasedAnswer, whole: UnbiasedAnswer, inside: Ints, risk: float
) -> tuple[Floats, Floats]:
    """The least and the largest share compatible with the measurements (Fieller 1954); 0 and 1 where any is.

    `inside` is the whole that each part belongs to. Both combinations have the same sources.
    """
    weight, all_, noise = whole.weight[:, inside], whole.value[inside], whole.noise[:, inside]
    # the part's noise is also in the whole's sum of the same source: that is their covariance
    part_variance, covariance, whole_variance = (
        (part.weight**2 * part.noise).sum(axis=0),
        (part.weight * weight * part.noise).sum(axis=0),
        (weight**2 * noise).sum(axis=0),
    )
    square = variance_gamma_quantile(np.minimum(part.equal_noises, whole.equal_noises[inside]), risk) ** 2
    a, b, c = (
        all_**2 - square * whole_variance,
        part.value * all_ - square * covariance,
        part.value**2 - square * part_variance,
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        low, high = (b - root) / a, (b + root) / a
    bounded = part.told & whole.told[inside] & (a > 0) & (all_ > 0)
    return np.where(bounded, np.clip(low, 0, 1), 0.0), np.where(bounded, np.clip(high, 0, 1), 1.0)
