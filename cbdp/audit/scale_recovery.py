"""Scale recovery: two counts of the same people differ by their noise alone, and many such differences reveal its scale.

A declared pair (all who board at one end of a ferry line leave at the other) differs by the difference of two noises; a total
and the sum of its parts by as many noises as there are counts. Their exact distributions are fitted by maximum likelihood. Of many
differences the interval is that of the likelihood ratio (Wilks, 1938); of few, an exact test is inverted (Neyman).

The distributions of sums of noises come first: other attacks read them too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import chi2, norm

from cbdp.arrays import Floats, Ints
from cbdp.audit.findings import Finding, clear_finding
from cbdp.audit.tables import CountTable, PublishedTables, Sum
from cbdp.errors import InputError
from cbdp.privacy.noise import NoiseDistribution, noise_distribution

# The exact distributions of weighted sums of independent noises: tails, quantiles, likelihoods.
#
# The characteristic function of Σ w_i L_i is the product of those of its terms, and is inverted numerically. With whole noise and whole weights the sum is a
# whole number, and a discrete Fourier transform returns its probabilities (what lies beyond the window is below 10⁻¹⁷).
# Otherwise a Gaussian of a thousandth of the sum's standard deviation (of a 250th, if there are many terms) is added first:
# then the transform is exact again, and quantiles are widened by six of its deviations, so that they err on the safe side.
#
# Far tails are bounded by Chernoff's inequality. Likelihoods are asked for a thousand times and need no safe side: they are read off a
# coarser grid, beyond it by the saddlepoint approximation (Daniels, 1954), and sums of so many noises that they are almost normal have
# Edgeworth's closed form.


Term = tuple[NoiseDistribution, float, int]  # noise, weight, how many such

# smaller ones are lost in the transform's rounding: Chernoff's inequality bounds them
MIN_TRANSFORM_PROBABILITY = 1e-12
# of the sum's standard deviation, where weights are not whole: of few terms, of many
JITTER_OF_DEVIATION = (0.001, 0.004)
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


# The attack


CHECK = "scale"
FALSE_ALARM_RISK = 1e-6  # of calling a true declaration false, over all groups together
# differences: of fewer the interval is that of an exact test, since Wilks's needs many
MAX_EXACT_TEST_RESIDUALS = 30
MIN_RESIDUALS = 5  # differences: fewer say nothing of a scale
# scales of the noise above the threshold, from where suppression cannot bias a difference
MIN_SCALES_ABOVE_THRESHOLD = 15
MIN_MULTIPLE = 1e-3  # of the declared scale: smaller ones are not tried, and count as no noise


@dataclass(frozen=True, eq=False)
class Residuals:
    """Differences whose only cause is noise: of noise `one` once and of noise `other` so many times each."""

    what: str
    value: Floats = field(repr=False)
    one: NoiseDistribution
    other: NoiseDistribution
    others: Ints = field(repr=False)
    declared: bool
    tables: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.value)

    def law(self, others: int, times: float) -> SumDistribution:
        """The law of a difference when all scales are so many times what they are."""
        one, other = self.one.times(times), self.other.times(times)
        if self.one == self.other:
            return SumDistribution(((one, 1.0, others + 1),))
        both = ((one, 1.0, 1), (other, 1.0, others))
        return SumDistribution(tuple(term for term in both if term[0].scale))

    @property
    def noisy(self) -> NoiseDistribution:
        """The noise whose scale is told: the first, unless its counts are exact."""
        return self.one if self.one.scale else self.other

    def spread(self, times: float) -> tuple[Floats, Floats]:
        """Standard deviation and excess kurtosis of each difference when all scales are so many times what they are."""
        one, other = self.one.times(times), self.other.times(times)
        others = self.others.astype(np.float64)
        variance: Floats = np.asarray(one.variance() + others * other.variance())
        first = one.variance() ** 2 * one.excess_kurtosis
        fourth: Floats = np.asarray(first + others * (other.variance() ** 2 * other.excess_kurtosis))
        return np.sqrt(variance), fourth / variance**2

    def groups(self) -> list[tuple[int, Floats]]:
        """The differences, apart by how many noises are in them."""
        return [(int(k), self.value[self.others == k]) for k in np.unique(self.others)]


@dataclass(frozen=True)
class ScaleFit:
    """A scale as its differences tell it, with an interval of the confidence asked for."""

    what: str
    law: str
    scale: float
    low: float
    high: float
    pairs: int
    declared: float | None


def attack(published: PublishedTables, *, risk: float = FALSE_ALARM_RISK) -> list[Finding]:
    """What the differences of counts with equal truth say about the noise, beside what is declared; nothing where there are too few."""
    groups = _large_groups(published)
    share = risk / max(1, len(groups))
    return [_finding(g, fit_scales(g, (1 - share, 0.95)), share) for g in groups]


def left_out(published: PublishedTables) -> list[str]:
    """Why the size of the noise was not looked at, where it was not."""
    if _large_groups(published) or all(t.bounded for t in published.tables):
        return []
    return [
        f"Fewer than {MIN_RESIDUALS} differences of published counts are noise alone (pairs, totals with all parts shown): its size was not checked."
    ]


def _large_groups(published: PublishedTables) -> list[Residuals]:
    return [g for g in residual_groups(published) if len(g) >= MIN_RESIDUALS]


def _finding(group: Residuals, fits: Sequence[ScaleFit], risk: float) -> Finding:
    wide, usual = fits
    figures = {
        "scale": wide.scale,
        "low": usual.low,
        "high": usual.high,
        "surely_low": wide.low,
        "surely_high": wide.high,
        "differences": len(group),
    }
    evidence = (
        f"{len(group)} differences give a scale of {wide.scale:.3g} (95 %: {usual.low:.3g} to {usual.high:.3g}; "
        f"beyond doubt: {wide.low:.3g} to {wide.high:.3g}) for the law {wide.law!r}."
    )
    how = "Subtract counts with equal truth and fit the law of a difference of noises: this tells how far off every other count is."
    if wide.declared is None:
        return Finding(
            CHECK, "weakness", f"The noise scale of {group.what} is not declared, and can be recovered", evidence, how,
            "Publish the law and the scale: hiding them protects nobody, and users need them.", figures,
        )  # fmt: skip
    figures["declared"] = wide.declared
    if wide.low <= wide.declared <= wide.high:
        return clear_finding(
            CHECK,
            f"The noise of {group.what} is as declared",
            f"Declared: {wide.declared:.4g}. {evidence}",
            _power(usual, risk),
            figures,
        )
    less = "less" if wide.declared > wide.high else "more"
    return Finding(
        CHECK, "contradicts", f"There is {less} noise in {group.what} than declared", f"Declared: {wide.declared:.4g}. {evidence}",
        how, "Draw the noise that is declared, for every count on its own; or declare the scale that was used.", figures,
    )  # fmt: skip


def _power(usual: ScaleFit, risk: float) -> str:
    """The scales that would have been called wrong with 95 %: the estimate's own spread, as its interval shows it."""
    if not usual.low:
        return "There are too few differences to tell noise of the declared size from none."
    spread = math.log(usual.high / usual.low) / (2 * float(norm.ppf(0.975)))
    factor = math.exp(spread * float(norm.isf(risk / 2) + norm.ppf(0.95)))
    return (
        f"Noise of less than {1 / factor:.2g} times or more than {factor:.2g} times the declared scale would have been found "
        "with a probability of 95 %."
    )


# The differences


def residual_groups(published: PublishedTables) -> list[Residuals]:
    """All groups of differences whose members are independent of each other."""
    groups = [
        _pair_residuals(published[p.first], p.first_rows, published[p.second], p.second_rows)
        for p in published.equal
    ]
    groups += [_sum_residuals(published, s) for s in published.relations if not s.exact]
    return [g for g in groups if g is not None]


def _noises(one: CountTable, other: CountTable) -> tuple[NoiseDistribution, NoiseDistribution, bool] | None:
    """The noises to fit: those declared, or a common one of scale 1 where nothing is."""
    if one.noise is not None and other.noise is not None:
        return (one.noise, other.noise, True) if one.noise.scale or other.noise.scale else None
    if one.noise is not None or other.noise is not None or one.derived or other.derived:
        return None
    shown = np.concatenate([one.counts[one.shown], other.counts[other.shown]])
    whole = bool((shown == np.round(shown)).all())
    unit = noise_distribution("geometric" if whole else "laplace", 1.0)
    return unit, unit, False


def _pair_residuals(one: CountTable, rows: Ints, other: CountTable, others: Ints) -> Residuals | None:
    noises = _noises(one, other)
    if noises is None or one.rounding or other.rounding:
        return None
    both = one.shown[rows] & other.shown[others]
    first, second = one.counts[rows[both]], other.counts[others[both]]
    away = _unselected_pairs(first, second, one, other, noises)
    value = (first - second)[away]
    if not noises[2] and not value.any():  # post-processed to agree: there is no noise to speak of
        return None
    what = f"{one.name!r}" if one is other else f"{one.name!r} and {other.name!r}"
    once, names = np.ones(len(value), dtype=np.int64), (one.name, other.name)
    return Residuals(what, value, noises[0], noises[1], once, noises[2], names)


def _unselected_pairs(
    first: Floats,
    second: Floats,
    one: CountTable,
    other: CountTable,
    noises: tuple[NoiseDistribution, NoiseDistribution, bool],
) -> NDArray[np.bool_]:
    """Pairs that no threshold selected: their mean, not each count, must be well above it.

    Where true counts near that mark are about equally common, selecting by the mean leaves the difference unbiased.
    """
    threshold = max(one.threshold or -math.inf, other.threshold or -math.inf)
    if threshold == -math.inf or not len(first):
        return np.ones(len(first), dtype=bool)
    rough = float(np.median(np.abs(first - second))) + 1.0  # about 1.3 scales
    scale = max(float(noises[0].scale), float(noises[1].scale)) if noises[2] else rough
    return np.asarray((first + second) / 2 >= threshold + MIN_SCALES_ABOVE_THRESHOLD * max(scale, rough))


def _sum_residuals(published: PublishedTables, relation: Sum) -> Residuals | None:
    total, part = published[relation.total], published[relation.part]
    noises = _noises(total, part)
    if noises is None or total.rounding or part.rounding or not part.closed or not len(total):
        return None
    at = np.asarray(relation.rows)
    inside = at >= 0
    clear = part.shown & (_margin(part, noises[1]) <= part.counts)
    bad = np.bincount(at[inside], weights=~clear[inside], minlength=len(total)) > 0
    parts = np.bincount(at[inside], minlength=len(total))
    added = np.bincount(at[inside], weights=np.where(clear, part.counts, 0.0)[inside], minlength=len(total))
    use = ~bad & (parts > 0) & total.shown & (_margin(total, noises[0]) <= total.counts)
    value = (total.counts - added)[use]
    if not noises[2] and not value.any():
        return None
    what = f"{total.name!r} against {part.name!r}"
    parts, names = parts[use].astype(np.int64), (total.name, part.name)
    return Residuals(what, value, noises[0], noises[1], parts, noises[2], names)


def _margin(table: CountTable, noise: NoiseDistribution) -> float:
    return (
        -math.inf
        if table.threshold is None
        else table.threshold + MIN_SCALES_ABOVE_THRESHOLD * float(noise.scale)
    )


# The fit


def fit_scale(group: Residuals, confidence: float = 0.95) -> ScaleFit:
    """The likeliest scale and its interval: all scales are taken to be one multiple of those declared."""
    return fit_scales(group, (confidence,))[0]


def fit_scales(group: Residuals, confidences: Sequence[float]) -> list[ScaleFit]:
    """The likeliest scale with an interval of each confidence."""
    times = _maximum_likelihood(group)
    interval = _test_interval if len(group) < MAX_EXACT_TEST_RESIDUALS else _likelihood_interval
    unit, law = float(group.noisy.scale), group.noisy.name
    declared = unit if group.declared else None
    ends = [interval(group, confidence, times) for confidence in confidences]
    return [
        ScaleFit(group.what, law, times * unit, low * unit, high * unit, len(group), declared)
        for low, high in ends
    ]


def log_likelihood(group: Residuals, times: float) -> float:
    """The log of the probability of all differences when scales are so many times what they are."""
    deviation, excess = group.spread(times)
    normal = excess < MAX_KURTOSIS_NORMAL
    total = float(log_edgeworth_density(group.value[normal], deviation[normal], excess[normal]).sum())
    for k in np.unique(group.others[~normal]):
        total += float(group.law(int(k), times).log_mass(group.value[group.others == k]).sum())
    return total


def _moment_multiple(group: Residuals) -> float:
    """The multiple by the method of moments."""
    ones, others = group.one.variance(), group.other.variance()
    expected = float((ones + group.others * others).sum())
    return max(MIN_MULTIPLE * 10, math.sqrt(float((group.value**2).sum()) / expected))


def _maximum_likelihood(group: Residuals) -> float:
    if not group.value.any():
        return MIN_MULTIPLE
    start = math.log(_moment_multiple(group))
    bounds = (max(math.log(MIN_MULTIPLE), start - 3), start + 1.5)
    optimum = minimize_scalar(
        lambda log: -log_likelihood(group, math.exp(log)),
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-4},
    )
    return math.exp(float(optimum.x))


def _likelihood_interval(group: Residuals, confidence: float, times: float) -> tuple[float, float]:
    """Multiples whose likelihood is within half a χ² quantile of the best (Wilks, 1938)."""
    least = log_likelihood(group, times) - 0.5 * float(chi2.ppf(confidence, 1))
    return _crossings(lambda m: log_likelihood(group, m) - least, times)


def _test_interval(group: Residuals, confidence: float, times: float) -> tuple[float, float]:
    """Multiples that a two-sided test by Σ|difference| does not reject (Neyman's inversion): exact for any number of differences."""
    alpha = (1 - confidence) / 2
    seen = float(np.abs(group.value).sum())

    def inside(m: float) -> float:
        at_least, at_most = absolute_tails(group, m, seen)
        return min(at_least, at_most) - alpha

    return _crossings(inside, max(times, 10 * MIN_MULTIPLE))


def absolute_tails(group: Residuals, times: float, seen: float) -> tuple[float, float]:
    """P(Σ|D| ≥ seen) and P(Σ|D| ≤ seen), the sum being over all differences."""
    laws = [(group.law(k, times), len(value)) for k, value in group.groups()]
    whole = all(law.whole for law, _ in laws)
    deviation = math.sqrt(sum(n * law.variance for law, n in laws))
    mean = sum(n * law.deviation for law, n in laws)  # the mean of |D| is below its deviation
    scale = max(float(group.one.scale), float(group.other.scale)) * times
    step = max(1.0, float(deviation // 500)) if whole else deviation / 500
    reach = max(seen, mean) + 8 * deviation + 45 * scale + 2 * step
    size = 2 ** math.ceil(math.log2(2 * reach / step + 2))
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    for law, n in laws:
        product *= np.fft.rfft(_absolute_pmf(law, step, size)) ** n
    mass = np.maximum(np.fft.irfft(product, size), 0.0)
    least = int(np.ceil(seen / step - 1e-9))
    most = int(np.floor(seen / step + 1e-9))
    return float(mass[least:].sum()), float(mass[: most + 1].sum())


def _absolute_pmf(law: SumDistribution, step: float, size: int) -> Floats:
    """The probabilities of |D| on a grid of so many steps."""
    reach = min(
        size - 1, math.ceil((8 * law.deviation + 45 * max(float(n.scale) for n, _, _ in law.terms)) / step)
    )
    at = np.arange(reach + 1, dtype=np.float64) * step
    mass = np.exp(law.log_mass(at)) * step
    mass[1:] *= 2
    pmf = np.zeros(size)
    pmf[: reach + 1] = mass / mass.sum()
    return pmf


def _crossings(height: Callable[[float], float], inside: float) -> tuple[float, float]:
    """Where a function that is positive at `inside` falls to 0 on either side."""
    ends = []
    for factor in (0.7, 1.4):
        near, far = inside, inside * factor
        while MIN_MULTIPLE <= far <= 1e9 and height(far) > 0:
            near, far = far, far * factor
        if far < MIN_MULTIPLE:
            ends.append(0.0)
            continue
        ends.append(math.exp(_root(lambda log: height(math.exp(log)), math.log(near), math.log(far))))
    return ends[0], ends[1]


def _root(height: Callable[[float], float], one: float, other: float) -> float:
    if height(one) * height(other) > 0:
        return other
    return float(brentq(height, *sorted((one, other)), xtol=3e-4))
