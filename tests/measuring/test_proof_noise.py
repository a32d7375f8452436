"""The checks that docs/proofs names for noise: by all words, all small numbers, or few draws; each kills a mutant in seconds."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

import cbdp
from cbdp.measuring import exact_sampling
from cbdp.measuring.answers import SparseThresholdedAnswer
from cbdp.measuring.exact_sampling import (
    Enclosure,
    InverseCdfTable,
    RadixSampler,
    Thresholds,
    exp_minus,
    powers_of_exp,
)
from cbdp.measuring.samplers import gaussian, hit_positions
from cbdp.measuring.samplers import gaussian as bell
from cbdp.measuring.samplers.gaussian import GaussianSampler, GaussianTable
from cbdp.measuring.samplers.laplace import GeometricSampler, RoundedSampler, _two_sided_sampler
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    NoiseDistribution,
    RoundedLaplace,
    scale_rounded_up,
)
from cbdp.privacy.unit import MAX_TRIPS_CANDIDATES, PrivateQuantile, Sensitivity

BY_CHANCE = 1e-9  # a sound sampler fails a statistical check less often
RATES = [Fraction(1, 97), Fraction(1, 3), Fraction(2, 3), Fraction(1), Fraction(5, 2), Fraction(9)]


class Script:
    """Words that are written down: each call gets the next list; when they are used up, words of a seed."""

    secure = False

    def __init__(self, *words: Any) -> None:
        self.words_left = [np.asarray(w) for w in words]
        self.further = InsecureSeededEntropy(7)

    def words(self, n: int, bits: int) -> Any:
        if not self.words_left:
            return self.further.words(n, bits)
        listed = self.words_left.pop(0).astype(f"u{bits // 8}")
        assert len(listed) == n
        return listed


def exp_of(x: Fraction) -> Decimal:
    """exp(−x) to sixty digits, by another library."""
    return (-Decimal(x.numerator) / Decimal(x.denominator)).exp()


def digits(number: Decimal, bits: int) -> int:
    return int(number * 2**bits)


def fits(law: NoiseDistribution, draws: Any) -> None:
    """Draws against the law's own probabilities, by the chi-square test; what is rare is one group."""
    values, counts = np.unique(draws, return_counts=True)
    expected = law.pmf(values) * len(draws)
    common = expected >= 10
    seen = np.append(counts[common], counts[~common].sum())
    wanted = np.append(expected[common], len(draws) - expected[common].sum())
    if wanted[-1] < 10:  # next to nothing is left for the rare ones: join them with the least common one
        seen, wanted = (
            np.append(seen[1:-1], seen[0] + seen[-1]),
            np.append(wanted[1:-1], wanted[0] + wanted[-1]),
        )
    assert stats.chisquare(seen, wanted * (seen.sum() / wanted.sum())).pvalue > BY_CHANCE


# Thresholds


def test_enclosures_hold_every_result() -> None:
    """All small enclosures and all numbers in them: sums, differences, products, shares and roundings are inside what is computed."""
    small = [(lo, hi) for lo in range(5) for hi in range(lo, 6)]
    for (a, b), (c, d) in itertools.product(small, small):
        x, y = Enclosure(a, b, 2), Enclosure(c, d, 2)
        product, added, less = x * y, x + y, x - y
        for p, q in itertools.product(range(a, b + 1), range(c, d + 1)):
            assert product.lo <= Fraction(p * q, 4) <= product.hi
            assert added.lo <= p + q <= added.hi
            assert p < q or less.lo <= p - q <= less.hi
            if 0 < p <= q:
                share = x.share_of(y)
                assert share.lo <= Fraction(4 * p, q) <= share.hi
        half = x.rounded(1)
        assert half.lo <= Fraction(a, 2)
        assert Fraction(b, 2) <= half.hi


def test_exponentials_are_enclosed() -> None:
    """Between the ends lies exp(−x) to sixty digits, and the ends are a few units apart."""
    with localcontext() as context:
        context.prec = 60
        for x in [Fraction(n, d) for n in (0, 1, 2, 7, 19, 60) for d in (1, 3, 64, 1000)]:
            for bits in (8, 40, 120):
                result = exp_minus(x, bits)
                assert result.lo <= exp_of(x) * 2**bits <= result.hi, (x, bits)
                assert result.hi - result.lo <= 2


def test_thresholds_are_the_sums_of_the_law() -> None:
    """Of the three kinds of table, every threshold has the digits of the sum of probabilities up to it, added up in decimals."""
    with localcontext() as context:
        context.prec = 60
        for rate, step in itertools.product(RATES, (1, 3)):
            r, R = exp_of(rate), exp_of(rate * step)
            plain = [(1 - R) * R**h for h in range(6)]
            signed = [(1 - R) * R**h * share / (1 + r) for h in range(4) for share in (1, r)]
            for kind, masses, table in (
                ("geometric", plain[:5], Thresholds(powers_of_exp(rate), step, 5)),
                (
                    "truncated",
                    [m / sum(plain) for m in plain][:5],
                    Thresholds(powers_of_exp(rate), step, 5, width=6),
                ),
                (
                    "signed",
                    signed if step == 1 else [],
                    Thresholds(powers_of_exp(rate), step, 8, signed=True),
                ),
            ):
                sums = list(itertools.accumulate(masses))
                assert table.prefixes(40)[: len(sums)] == [digits(s, 40) for s in sums], (kind, rate, step)
                assert [table.prefix(i, 90) for i in range(len(sums))] == [digits(s, 90) for s in sums]


def test_signed_blocks_are_shared_by_sign() -> None:
    """With blocks of several numbers: + has Σ r^k/(1 + r) over its block, and − the same one further out."""
    with localcontext() as context:
        context.prec = 60
        for rate, step in itertools.product(RATES, (2, 3, 5)):
            r = exp_of(rate)
            mass = (1 - r) / (1 + r)
            parts = []
            for h in range(3):
                block = [mass * r**k for k in range(h * step, (h + 1) * step)]
                parts += [sum(block), r * sum(block)]
            sums = list(itertools.accumulate(parts))
            assert Thresholds(powers_of_exp(rate), step, 6, signed=True).prefixes(40) == [
                digits(s, 40) for s in sums
            ]


def test_a_table_counts_the_thresholds_below_a_number() -> None:
    """All first words, and where one ties all second words: the outcome is how many thresholds are at most the number that they begin."""
    for rate in RATES:
        table = InverseCdfTable(Thresholds(powers_of_exp(rate), 1, 7), 8)
        second = np.array(table.thresholds.prefixes(16))
        first = np.arange(256)
        ties = np.isin(first, second >> 8)
        out = table.draw(256, Script(first))
        assert (out == np.searchsorted(second, first << 8))[~ties].all()
        for word in first[ties].tolist():
            for further in range(256):
                number = word << 8 | further
                if number not in second:
                    assert table.draw(1, Script([word], [further])) == np.searchsorted(second, number)
                    continue
                third = [table.thresholds.prefix(i, 24) for i in np.flatnonzero(second == number).tolist()]
                for last in {(p + d) % 256 for p in third for d in (-1, 1)} - {p % 256 for p in third}:
                    below = int((second < number).sum()) + sum(p < (number << 8 | last) for p in third)
                    assert table.draw(1, Script([word], [further], [last])) == below


# Coins


def test_coins_compare_with_the_exponential() -> None:
    """All first words of 8 bits: below exp(−x) heads, above tails, and in the word that holds it the second word decides."""
    with localcontext() as context:
        context.prec = 60
        for x in [Fraction(n, 7) for n in range(1, 40, 3)]:
            tie = digits(exp_of(x), 8)
            inner = digits(exp_of(x), 16) - 256 * tie
            for second in (0, inner - 1, inner + 1, 255):
                if not 0 <= second < 256 or second == inner:
                    continue
                numbers = np.full(256, float(x))
                near = np.empty(256, dtype=np.int8)
                exact_sampling.compare_words(numbers, np.arange(256), 256.0, near)
                ends = [w for w in range(256) if near[w] < 0]
                asked = [[second] for w in ends if w == tie]
                out = exact_sampling.bernoulli_exp(
                    numbers, lambda _, x=x: x, 8, Script(np.arange(256), *asked)
                )
                assert out[:tie].all()
                assert not out[tie + 1 :].any()
                assert out[tie] == (second < inner)


# Two-sided geometric noise


def vectors(l1: int) -> list[tuple[int, ...]]:
    return [v for v in itertools.product(range(-l1, l1 + 1), repeat=3) if 0 < sum(map(abs, v)) <= l1]


def test_geometric_noise_costs_what_is_paid() -> None:
    """All changes of three counts of that length, all outcomes near: the likelihood ratio reaches exp(ε) and never exceeds it."""
    outcomes = np.array(list(itertools.product(range(-6, 7), repeat=3)))
    for change, epsilon in itertools.product(
        (Sensitivity(1, 1, 1, 1), Sensitivity(2, 2, 2, 1), Sensitivity(3, 5, 3, 2)),
        (Fraction(1, 2), Fraction(3)),
    ):
        law = DiscreteLaplace.calibrate(epsilon, change)
        assert law.cost(change) == epsilon
        log = law.log_pmf(outcomes).sum(axis=1)
        worst = max(
            float((log - law.log_pmf(outcomes - np.array(v)).sum(axis=1)).max()) for v in vectors(change.l1)
        )
        assert math.isclose(worst, float(epsilon), rel_tol=1e-9)


def test_geometric_draws_have_the_law() -> None:
    """All first words of 16 bits: each number gets its share of them, but for words that tie."""
    for scale in (Fraction(1, 2), Fraction(7, 3)):
        drawn = _two_sided_sampler(scale, 16)
        out = drawn.draw(2**16, Script(np.arange(2**16)))
        law = DiscreteLaplace(scale)
        undecided = drawn.head.count + float(2 * law.survival(drawn.head.count // 2 - 1)) * 2**16
        values, counts = np.unique(out, return_counts=True)
        assert (np.abs(counts - law.pmf(values) * 2**16) <= undecided + 1).all()
        assert undecided < 100


def test_digits_and_restarts_keep_the_law() -> None:
    """A base of 4 makes many digits and many draws beyond the table: their numbers have the law all the same."""
    rate, n = Fraction(1, 9), 12_000
    drawn = RadixSampler.build(powers_of_exp(rate), 9.0, 8, signed=True, radix=4)
    assert drawn.places >= 1
    fits(DiscreteLaplace(1 / rate), drawn.draw(n, InsecureSeededEntropy(3)))
    bounded = RadixSampler.build(powers_of_exp(Fraction(1, 3)), 3.0, 8, width=5, radix=4).draw(
        n, InsecureSeededEntropy(4)
    )
    weights = np.exp(-np.arange(5) / 3)
    assert stats.chisquare(np.bincount(bounded, minlength=5), n * weights / weights.sum()).pvalue > BY_CHANCE


def test_bands_have_the_conditional_law() -> None:
    """Draws between two bounds, on either side of zero or across it, have the law of noise that is known to lie there."""
    law, n = DiscreteLaplace(Fraction(2)), 4000
    for lo, hi in ((0, 4), (-5, -1), (-3, 2)):
        for sampler in (GeometricSampler(Fraction(2)), GaussianSampler(Fraction(2))):
            out = sampler.sample_band(n, lo, hi, InsecureSeededEntropy(5))
            weights = sampler.law.pmf(np.arange(lo + 1, hi + 1))
            seen = np.bincount(out - lo - 1, minlength=hi - lo)
            assert stats.chisquare(seen, n * weights / weights.sum()).pvalue > BY_CHANCE
    excess = GeometricSampler(Fraction(2)).sample_excess(n, -2, InsecureSeededEntropy(6))
    weights = law.pmf(np.arange(-1, 15))
    seen = np.bincount(np.minimum(excess, 14) + 1, minlength=16)
    weights[-1] += law.survival(14)
    assert stats.chisquare(seen, n * weights / weights.sum()).pvalue > BY_CHANCE


# Discrete Gaussian noise


def renyi(p: Any, q: Any, alpha: float) -> float:
    """The Rényi divergence of two laws on the same numbers, from the logarithms of their probabilities."""
    from scipy.special import logsumexp

    return float(logsumexp(alpha * p + (1 - alpha) * q)) / (alpha - 1)


def test_gaussian_noise_costs_what_is_paid() -> None:
    """Changes of the stated length, orders from 1.1 to 40: the Rényi divergence is at most α·ρ, and about that for wide noise."""
    z = np.arange(-400, 401)
    for l2_squared, rho in itertools.product((1, 4, 9), (Fraction(1, 50), Fraction(1, 2), Fraction(7, 3))):
        change = Sensitivity(3, l2_squared, 3, 3)
        law = DiscreteGaussian.calibrate(rho, change)
        assert law.cost(change) <= rho
        shift = math.isqrt(l2_squared)
        for alpha in (1.1, 2.0, 7.0, 40.0):
            result = renyi(law.log_pmf(z), law.log_pmf(z - shift), alpha)
            assert result <= alpha * float(rho) * (1 + 1e-9)
            assert float(law.scale) < 2 or alpha * shift > 300 or result > 0.99 * alpha * float(rho)


def test_scales_are_rounded_up() -> None:
    """The square of a rounded scale is never below what is needed, and one digit less would be."""
    for square in [Fraction(n, d) for n in range(1, 60, 7) for d in (1, 3, 7, 1000)]:
        root = scale_rounded_up(square, digits=5)
        assert root**2 >= square
        assert (root * (1 - Fraction(1, 10**4))) ** 2 < square


def test_gaussian_draws_have_the_law() -> None:
    """Narrow noise, in blocks of one number, and wide noise, in blocks of several."""
    for scale, n in ((Fraction(3, 2), 8000), (Fraction(300), 8000)):
        draws = GaussianSampler(scale).sample(n, InsecureSeededEntropy(8))
        step = max(1, int(scale / 6))  # numbers of a group
        law = DiscreteGaussian(scale)
        cells = np.floor_divide(draws, step)
        lowest, seen = int(cells.min()), np.bincount(cells - cells.min())
        edges = (lowest + np.arange(len(seen) + 1)) * step - 1
        wanted = -np.diff(law.survival(edges)) * n
        some = wanted >= 8
        assert (
            stats.chisquare(
                np.append(seen[some], seen[~some].sum()), np.append(wanted[some], n - wanted[some].sum())
            ).pvalue
            > BY_CHANCE
        )


def test_thinned_blocks_have_the_law() -> None:
    """Blocks as wide as the bell itself: what their members lack is made up for by coins, 0 is there once, and the far half is thinned too."""
    rate = 1 / (2 * Fraction(20) ** 2)
    before, gaussian.MIN_BLOCKS_PER_SCALE = gaussian.MIN_BLOCKS_PER_SCALE, 1
    try:
        both, far = GaussianTable(rate, 0, 64, signed=True), GaussianTable(rate, 30, 64)
        assert min(both.pieces.step, far.pieces.step) >= 8
        fits(DiscreteGaussian(Fraction(20)), both.draw(6000, InsecureSeededEntropy(9)))
        draws = far.draw(6000, InsecureSeededEntropy(10))
    finally:
        gaussian.MIN_BLOCKS_PER_SCALE = before
    edges = [*range(30, 70, 4), 10**6]
    chances = -np.diff(DiscreteGaussian(20).survival(np.array(edges) - 1))
    assert (
        stats.chisquare(np.histogram(draws + 30, edges)[0], 6000 * chances / chances.sum()).pvalue > BY_CHANCE
    )


def test_what_lies_beyond_the_table_has_the_law() -> None:
    """A table that ends early: geometric blocks beyond it, thinned by coins, have the law."""
    before, gaussian.TABLE_DEPTH = gaussian.TABLE_DEPTH, 0.5
    try:
        narrow = GaussianTable(1 / (2 * Fraction(5) ** 2), 0, 64, signed=True)
        assert narrow.pieces.blocks < 8
        fits(DiscreteGaussian(Fraction(5)), narrow.draw(8000, InsecureSeededEntropy(13)))
    finally:
        gaussian.TABLE_DEPTH = before


def test_theta_sums_are_enclosed() -> None:
    """Σ exp(−z²·rate) over all whole numbers, and over those from n on, by decimals."""
    with localcontext() as context:
        context.prec = 50
        for rate in (Fraction(1, 8), Fraction(1, 2), Fraction(3)):
            all_of = sum(exp_of(z * z * rate) for z in range(-60, 61))
            result = bell.full_sum(rate, 100)
            assert result.lo <= all_of * 2**100 <= result.hi
            assert result.hi - result.lo < 2**40
            for n in (0, 1, 5):
                part = sum(exp_of((z * z - n * n) * rate) for z in range(n, n + 60))
                result = bell.tail_sum(rate, n, 100)
                assert result.lo <= part * 2**100 <= result.hi


# Rounded Laplace noise


def test_rounded_noise_is_rounded_laplace_noise() -> None:
    """Its probabilities are the integrals of the density over unit intervals, its ratios at a distance s at most exp(s/b), and draws have it."""
    z = np.arange(-30, 31)
    for scale in (Fraction(1, 2), Fraction(3)):
        law, b = RoundedLaplace(scale), float(scale)
        cdf = stats.laplace(scale=b).cdf
        assert np.allclose(law.pmf(z), cdf(z + 0.5) - cdf(z - 0.5), rtol=1e-9)
        for s in (1, 2, 5):
            ratios = law.log_pmf(z) - law.log_pmf(z - s)
            assert ratios.max() <= s / b * (1 + 1e-9)
        fits(law, RoundedSampler(scale).sample(6000, InsecureSeededEntropy(11)))


# Noise on demand


class _Gaps:
    """Gaps that are written down."""

    def __init__(self, *gaps: int) -> None:
        self.gaps = list(gaps)

    def draw(self, n: int, _: Any) -> Any:
        some, self.gaps = self.gaps[:n], self.gaps[n:]
        return np.array([*some, *([10**6] * (n - len(some)))])


def test_a_walk_hits_after_its_gaps() -> None:
    """All short lists of gaps: a hit lies one beyond the last, after as many positions as its gap says, and none beyond the end."""
    for gaps in itertools.product(range(4), repeat=4):
        wanted = [p for p in itertools.accumulate(g + 1 for g in gaps) if p <= 9]
        result = hit_positions(_Gaps(*gaps), 9, 0.5, InsecureSeededEntropy(0))  # type: ignore[arg-type]
        assert (result + 1).tolist() == wanted


def test_what_is_revealed_has_the_law_of_dense_noise() -> None:
    """Floors lowered twice over 6,000 types: of types with and without trips, as many exceed each floor as noise on all of them would have."""
    universe = cbdp.Universe(stop=list(range(6000)))
    features = cbdp.FeatureDag(universe, [])
    law, trips = DiscreteLaplace(Fraction(3)), 500
    counts = cbdp.count({"stop": [s for s in range(trips) for _ in range(2)]}, universe)
    for seed in range(2):
        cell = np.zeros(len(counts.index), dtype=np.int64)
        answer = SparseThresholdedAnswer(
            counts, cell, features, law, InsecureSeededEntropy(seed), Fraction(1)
        )
        seen: list[set[int]] = []
        for floor in (4, 2, -1):
            answer.lower(np.full(features.cells.size, floor))
            assert (np.diff(answer.index) > 0).all(), "a type is revealed once"
            seen.append({*answer.index.tolist()})
            for many, shift, inside in (
                (trips, 2, answer.index < trips),
                (6000 - trips, 0, answer.index >= trips),
            ):
                for least in range(floor + 1, 9):
                    chance = float(law.survival(least - 1 - shift))
                    hits = int((answer.value[inside] >= least).sum())
                    assert stats.binomtest(hits, many, chance).pvalue > BY_CHANCE, (floor, least, shift)
        assert seen[0] <= seen[1] <= seen[2]


# A private quantile


def test_a_number_below_n_is_even() -> None:
    """All words of 8 bits: each of n numbers comes up equally often, and words that would favour some are drawn again."""
    before, exact_sampling.WORD_BITS = exact_sampling.WORD_BITS, 8
    try:
        for n in (3, 100, 7, 256):
            whole = 256 // n * n
            result = [exact_sampling._uniform_below(n, Script([word], [0])) for word in range(whole)]
            assert np.bincount(result, minlength=n).tolist() == [whole // n] * n
            for word in range(whole, 256):
                assert exact_sampling._uniform_below(n, Script([word], [1])) == 1
    finally:
        exact_sampling.WORD_BITS = before


def test_candidates_are_drawn_by_their_weights() -> None:
    """A small population: how often each candidate is drawn follows from its exponent."""
    from cbdp.privacy.unit import selection_exponents

    bought, population = PrivateQuantile("1/2", "3/4"), ([2, 40, 70], [2, 3, 1])
    weights = np.exp([-float(x) for x in selection_exponents(bought, *population)])
    entropy = InsecureSeededEntropy(12)
    result = [exact_sampling.exponential_mechanism(bought, *population, entropy) for _ in range(600)]
    levels, which = np.unique(
        weights.round(9), return_inverse=True
    )  # candidates that are equally far off are one group
    seen = np.bincount(which[[MAX_TRIPS_CANDIDATES.index(k) for k in result]], minlength=len(levels))
    wanted = 600 * np.bincount(which) * levels / weights.sum()
    assert len(levels) > 2
    assert stats.chisquare(seen, wanted * (600 / wanted.sum())).pvalue > BY_CHANCE
