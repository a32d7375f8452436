"""The exact distributions of weighted sums of independent noises: tails, quantiles, likelihoods.

The characteristic function of Σ w_i L_i is the product of those of its terms, and is inverted numerically. With whole noise and whole weights the sum is a
whole number, and a discrete Fourier transform returns its probabilities (what lies beyond the window is below 10⁻¹⁷).
Otherwise a Gaussian of a thousandth of the sum's standard deviation (of a 250th, if there are many terms) is added first:
then the transform is exact again, and quantiles are widened by six of its deviations, so that they err on the safe side.

Far tails are bounded by Chernoff's inequality. Likelihoods are asked for a thousand times and need no safe side: they are read off a
coarser grid, beyond it by the saddlepoint approximation (Daniels, 1954), and sums of so many noises that they are almost normal have
Edgeworth's closed form.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Floats
from cbdp.errors import InputError
from cbdp.privacy.noise import NoiseDistribution

Term = tuple[NoiseDistribution, float, int]  # noise, weight, how many such

# smaller ones are lost in the transform's rounding: Chernoff's inequality bounds them
MIN_TRANSFORM_PROBABILITY = 1e-12
JITTER_OF_DEVIATION = (
    0.001,
    0.004,
)  # of the sum's standard deviation, where weights are not whole: of few terms, of many
MAX_TERMS_FINE_GRID = 8  # terms of a sum whose jitter is the smaller one, and which is cached
# weights of one noise: more are rounded up to a geometric grid, since each takes a transform
MAX_DISTINCT_WEIGHTS = 64
WEIGHT_ROUNDING_RATIO = 1.005  # of neighbours of that grid
NEGLIGIBLE_LOG_TRANSFORM = -80.0  # natural logarithm: smaller factors of a transform change no digit of it
GRID_STEPS_PER_DEVIATION = 200  # steps of the grid that likelihoods are read off, in a standard deviation
# excess kurtosis below which a sum's likelihood is the normal one with Edgeworth's correction
MAX_KURTOSIS_NORMAL = 0.1
JITTER_DEVIATIONS = 6.0  # deviations of the jitter: a Gaussian leaves them with probability 2e-9


@dataclass(frozen=True)
class SumDistribution:
    """The law of Σ w L over terms (noise, weight, how many); symmetric about 0. Build it with `sum_distribution`."""

    terms: tuple[Term, ...]

    @cached_property
    def variance(self) -> float:
        """The variance of the sum."""
        return float(sum(n * w * w * noise.variance() for noise, w, n in self.terms))

    @property
    def deviation(self) -> float:
        """The standard deviation of the sum."""
        return math.sqrt(self.variance)

    @cached_property
    def excess_kurtosis(self) -> float:
        """How much heavier its tails are than the normal law's."""
        fourth = sum(n * w**4 * noise.variance() ** 2 * noise.excess_kurtosis for noise, w, n in self.terms)
        return float(fourth) / self.variance**2 if self.variance else 0.0

    @cached_property
    def whole(self) -> bool:
        """Whether the sum is a whole number."""
        return all(noise.whole and float(w).is_integer() for noise, w, _ in self.terms)

    @cached_property
    def _grid(self) -> tuple[float, Floats, float]:
        """Step, probabilities of 0, 1, 2, … steps, and how far the truth may be from them."""
        if self.variance == 0:
            return 1.0, np.array([1.0, 0.0]), 0.0
        step = (
            1.0
            if self.whole
            else self.deviation * JITTER_OF_DEVIATION[len(self.terms) > MAX_TERMS_FINE_GRID] / 3
        )
        jitter = 0.0 if self.whole else 3 * step
        return step, self._masses(step, jitter), JITTER_DEVIATIONS * jitter

    @cached_property
    def _coarse(self) -> tuple[float, Floats]:
        """Step and probabilities of 0, 1, 2, … steps, fine enough for likelihoods."""
        step = max(1.0 if self.whole else 0.0, self.deviation / GRID_STEPS_PER_DEVIATION)
        if step == 1.0:
            return self._grid[:2]
        return step, self._masses(step, 2 * step)

    def _masses(self, step: float, jitter: float) -> Floats:
        widest = max((abs(w) * float(noise.scale) for noise, w, _ in self.terms), default=0)
        reach = 8 * self.deviation + 45 * widest
        size = 2 ** max(4, math.ceil(math.log2(2 * reach / step + 2)))
        frequency = 2 * np.pi * np.arange(size // 2 + 1) / (size * step)
        product = self._transform(frequency) * np.exp(-0.5 * (jitter * frequency) ** 2)
        return np.maximum(np.fft.irfft(product, size)[: size // 2], 0.0)

    def _transform(self, frequency: Floats) -> Floats:
        """The product of the transforms, the widest terms first: frequencies that these have put out are left alone."""
        log, sign = np.zeros(len(frequency)), np.ones(len(frequency))
        alive = np.arange(len(frequency))
        widest = sorted(self.terms, key=lambda term: -term[2] * term[1] ** 2 * term[0].variance())
        for number, (noise, w, n) in enumerate(widest):
            value = noise.transform(w * frequency[alive])
            if n % 2:
                sign[alive] = np.where(value < 0, -sign[alive], sign[alive])
            log[alive] += n * np.log(np.maximum(np.abs(value), 1e-300))
            if number % 8 == 7:
                alive = alive[log[alive] > NEGLIGIBLE_LOG_TRANSFORM]
        return np.asarray(sign * np.exp(log))

    def _log_moments(self, s: Floats) -> Floats:
        """ln E exp(s S), the cumulant generating function."""
        log_mgf = np.zeros(len(s))
        for noise, group in groupby(self.terms, key=lambda term: term[0]):
            listed = list(group)
            for start in range(0, len(listed), 256):
                w, n = np.array([(w, n) for _, w, n in listed[start : start + 256]]).T
                log_mgf += n @ noise.log_moment(np.outer(w, s))
        return log_mgf

    @cached_property
    def _tails(self) -> Floats:
        """P(S ≥ k steps) for k = 0, 1, …, added up from the far end."""
        mass = self._grid[1]
        return np.minimum(np.cumsum(mass[::-1])[::-1], 1.0)

    def tail(self, x: NDArray[np.float64] | float) -> Floats:
        """P(|S| ≥ |x|), from above: exact down to 10⁻¹², bounded by Chernoff's inequality below."""
        size = np.abs(np.atleast_1d(np.asarray(x, dtype=np.float64)))
        if self.variance == 0:
            return np.where(size > 1e-9, 0.0, 1.0)
        step, _, slack = self._grid
        index = np.ceil((size - slack) / step - 1e-9).astype(np.int64)
        beyond = index >= len(self._tails)
        inside = np.clip(index, 0, len(self._tails) - 1)
        read = (
            np.where(beyond, 0.0, 2 * self._tails[inside])
            + 0.01 * MIN_TRANSFORM_PROBABILITY
            + (2e-9 if slack else 0.0)
        )
        tails = np.where(index <= 0, 1.0, np.minimum(read, 1.0))
        far = np.flatnonzero(tails < max(MIN_TRANSFORM_PROBABILITY, 1e-8 if slack else 0.0))
        if len(far):
            tails[far] = np.minimum(tails[far], self._chernoff(size[far]))
        return tails

    @cached_property
    def _tilts(self) -> tuple[Floats, Floats]:
        """A grid of s, and ln E exp(s S) on it."""
        s = self._tilted(1 - np.geomspace(1e-6, 1, 150, endpoint=False), np.geomspace(1e-3, 1, 300))
        return s, self._log_moments(s)

    def _tilted(self, near: Floats, light: Floats) -> Floats:
        """s as parts of the largest for which moments exist; where they exist for all, of one that reaches a hundred deviations."""
        least = min(noise.radius / abs(w) for noise, w, _ in self.terms)
        return np.asarray(light * (100 / self.deviation) if math.isinf(least) else near * least)

    def _chernoff(self, x: Floats) -> Floats:
        """2 inf exp(K(s) − s x) over a grid of s: any s gives a bound, so the grid need not be fine."""
        s, log = self._tilts
        best = np.array([float(np.min(log - s * at)) for at in x])
        bound: Floats = np.minimum(1.0, 2 * np.exp(best))
        return bound

    def half_width(self, alpha: float) -> float:
        """The smallest h (in steps of the grid) with P(|S| > h) ≤ alpha.

        >>> from cbdp.privacy.noise import noise_distribution
        >>> sum_distribution([(noise_distribution("laplace", 1.4), 1.0, 3)]).half_width(0.05) > 1.96 * 3.3
        True
        """
        if not 0 < alpha < 1:
            raise InputError(f"alpha is {alpha!r}, it must lie between 0 and 1")
        if self.variance == 0:
            return 0.0
        step, _, slack = self._grid
        if alpha < 1e3 * MIN_TRANSFORM_PROBABILITY or (slack and alpha < 1e-7):
            return self._wide(alpha)
        short = 2 * self._tails <= alpha - (2e-9 if slack else 0.0)
        k = int(np.argmax(short))
        return max(0.0, (k - 1) * step) if self.whole else k * step + slack

    def _wide(self, alpha: float) -> float:
        """The least x with 2 exp(K(s) − s x) ≤ alpha for some s."""
        s, log = self._tilts
        x = float(np.min((log + math.log(2 / alpha)) / s))
        return math.floor(x) if self.whole else x

    def log_mass(self, x: Floats) -> Floats:
        """The log of the probability (of whole sums) or of the density at x; far out by a saddle point."""
        size = np.abs(x)
        if not self.whole and len(self.terms) == 1:
            noise, w, n = self.terms[0]
            closed = noise.times(abs(w)).log_pmf_of_sum(n, size)
            if closed is not None:
                return closed
        step, mass = self._coarse
        at = np.interp(size / step, np.arange(len(mass)), mass, right=0.0) / step
        floor = (MIN_TRANSFORM_PROBABILITY if self.whole else 1e-6 * mass[0]) / step
        far = np.flatnonzero(at < floor)
        log_mass = np.log(np.maximum(at, 1e-300))
        if len(far):
            log_mass[far] = self._saddle(size[far])
        return log_mass

    def _saddle(self, x: Floats) -> Floats:
        """The log density by the saddlepoint approximation (Daniels, 1954): K(s) − s x − ½ log 2πK″(s) where K′(s) = x."""
        s = self._tilted(1 - np.geomspace(1e-7, 1, 4000)[::-1], np.append(0.0, np.geomspace(1e-4, 1, 4000)))
        log = self._log_moments(s)
        slope = np.gradient(log, s)
        bend = np.maximum(np.gradient(slope, s), 1e-300)
        at = np.interp(x, slope, s)
        return np.interp(at, s, log) - at * x - 0.5 * np.log(2 * np.pi * np.interp(at, s, bend))


def log_edgeworth_density(x: Floats, deviation: Floats, excess: Floats) -> Floats:
    """The log density of sums with these deviations and little excess kurtosis: Edgeworth's correction, in the exponent.

    Where the correction would bend the tail up again the tail goes on as a straight line, as that of a sum of Laplace noises does.

    >>> from cbdp.privacy.noise import noise_distribution
    >>> law = sum_distribution([(noise_distribution("geometric", 5.0), 1.0, 60)])
    >>> at = np.array([0.0, 55.0, 110.0, 165.0])  # up to three deviations
    >>> bool(np.abs(law.log_mass(at) - log_edgeworth_density(at, law.deviation, law.excess_kurtosis)).max() < 0.01)
    True
    """
    z = np.abs(x) / deviation
    bend = 0.7 * np.sqrt(6 / np.maximum(excess, 1e-12))
    near = np.minimum(z, bend)
    exponent = -(near**2) / 2 + excess * (near**4 - 6 * near**2 + 3) / 24
    slope = -near + excess * (near**3 - 3 * near) / 6
    return np.asarray(exponent + slope * (z - near) - np.log(deviation * math.sqrt(2 * math.pi)))


def sum_distribution(terms: Iterable[Term]) -> SumDistribution:
    """The law of a sum of independent noises; equal terms are put together, signs and order do not matter."""
    multiplicity: Counter[tuple[NoiseDistribution, float]] = Counter()
    for noise, w, n in terms:
        if w and n and noise.scale:
            multiplicity[noise, abs(float(w))] += int(n)
    ordered = sorted(multiplicity.items(), key=lambda item: (item[0][0].name, item[0][0].scale, item[0][1]))
    merged = tuple((noise, w, n) for (noise, w), n in ordered)
    return _cached(merged) if len(merged) <= MAX_TERMS_FINE_GRID else SumDistribution(merged)


def terms_of(noise: NoiseDistribution, weights: Floats) -> list[Term]:
    """The terms of one noise with many weights.

    Of very many different weights each is rounded up, by half a per cent at most: larger weights only spread the sum.
    """
    sizes, multiplicity = np.unique(np.abs(weights), return_counts=True)
    if len(sizes) > MAX_DISTINCT_WEIGHTS:
        step = math.log(WEIGHT_ROUNDING_RATIO)
        power, where = np.unique(np.ceil(np.log(sizes[sizes > 0]) / step), return_inverse=True)
        sizes, multiplicity = np.exp(power * step), np.bincount(where, weights=multiplicity[sizes > 0])
    return [(noise, float(w), int(n)) for w, n in zip(sizes, multiplicity, strict=True)]


@lru_cache(maxsize=128)
def _cached(terms: tuple[Term, ...]) -> SumDistribution:
    return SumDistribution(terms)
