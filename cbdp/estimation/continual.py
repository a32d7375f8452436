"""Running totals from noisy sums over periods: generalised least squares on the answers so far, and whole totals that never fall.

The strategy's answers are those of a matrix mechanism (Li and others 2010) for continual counting, `cbdp.privacy.continual`; here they are inverted by least
squares. What is published for a period depends on answers up to it alone. Later answers change nothing before, so weeks, months and any other spans are
differences of published totals and add up exactly.

In a series every period has a noisy table of its own beside the sums. `gls_total` combines all of them, and `GlsUpdate` is what that means for the period's
own table: the total by all answers, less what was published before. So the published periods, added up, follow the total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.privacy.continual import Strategy
from cbdp.privacy.entropy import Entropy
from cbdp.privacy.measurement import Measurement, NoisyAnswer

WEIGHT_CACHE_SIZE = 2048  # vectors of weights: a series needs the same ones for every table and count


@lru_cache(maxsize=WEIGHT_CACHE_SIZE)
def least_squares_weights(strategy: Strategy, periods: int) -> Floats:
    """Weights of the answers so far in the total of the first `periods`: ordinary least squares, as all have equal noise (Li and others 2010).

    Equals `np.linalg.pinv(rows).sum(axis=0)`, by a triangular solve where the strategy is square.
    """
    if not 1 <= periods <= strategy.periods:
        raise InputError(f"the total of {periods} periods of {strategy.periods}: give a number among these")
    rows = strategy.rows[: strategy.row_count(periods), :periods].astype(float)
    # the least vector w with rowsᵀ w = 1: every period counts once, and noise as little as possible
    if rows.shape[0] == periods and not np.triu(rows, 1).any():
        return np.asarray(solve_triangular(rows, np.ones(periods), trans="T", lower=True))
    weights: Floats = np.linalg.lstsq(rows.T, np.ones(periods), rcond=None)[0]
    return weights


def running_total(strategy: Strategy, answers: Sequence[Ints]) -> Floats:
    """The running total of each count after as many periods as there are answers; each answer comes from `measure_sums`."""
    stacked = np.concatenate([np.asarray(a, dtype=float) for a in answers])
    return np.asarray(least_squares_weights(strategy, len(answers)) @ stacked)


def total_deviation(strategy: Strategy, periods: int) -> float:
    """Standard deviation of the total after so many periods, for noise of deviation 1 in every answer."""
    return float(np.linalg.norm(least_squares_weights(strategy, periods)))


def relative_deviation(strategy: Strategy, periods: int) -> float:
    """The same in deviations of one period's noise, were each period measured alone at the same cost in ρ.

    >>> from cbdp.privacy.continual import identity, square_root
    >>> round(relative_deviation(identity(365), 365), 2), round(relative_deviation(square_root(365), 365), 2)
    (19.1, 2.95)
    """
    largest = float((strategy.rows.astype(float) ** 2).sum(axis=0).max())
    return float(total_deviation(strategy, periods) * largest**0.5)


def monotone_totals(before: Ints | None, estimate: Floats) -> Ints:
    """Running maxima of the rounded totals, so that no period is negative; where noise exceeds the counts they are biased upwards."""
    whole = np.rint(estimate).astype(np.int64)
    monotone: Ints = np.maximum(whole, 0 if before is None else before)
    return monotone


@dataclass(frozen=True, eq=False)
class GlsTotal:
    """The GLS total of the periods so far: the weights of the noisy sums and of each period's own noisy answer."""

    sums: Floats  # a weight for each answer of the strategy
    own: Floats  # a weight for each period's own answer
    row_variance: float
    own_variance: Floats

    @property
    def variance(self) -> float:
        """Variance of the total."""
        return float(self.row_variance * (self.sums**2).sum() + (self.own_variance * self.own**2).sum())

    def less(self, before: GlsTotal | None) -> GlsTotal:
        """The weights of this total less that of fewer periods."""
        if before is None:
            return self
        sums, periods = self.sums.copy(), self.own.copy()
        sums[: len(before.sums)] -= before.sums
        periods[: len(before.own)] -= before.own
        return GlsTotal(sums, periods, self.row_variance, self.own_variance)

    def of(self, sums: NDArray[np.number], periods: NDArray[np.number]) -> Floats:
        """For every count of a table, from answers with a column for each."""
        totals: Floats = self.sums @ sums + self.own @ periods
        return totals


def gls_total(strategy: Strategy, row_variance: float, own_variance: Sequence[float]) -> GlsTotal:
    """The best linear unbiased total of as many periods as have an answer of their own, from all answers so far (GLS: Aitken 1936).

    >>> from cbdp.privacy.continual import square_root
    >>> best = gls_total(square_root(365), 1e9, [1.0] * 4)  # sums without information: periods are added up
    >>> best.own.round(3).tolist(), round(best.variance, 3)
    ([1.0, 1.0, 1.0, 1.0], 4.0)
    """
    periods = len(own_variance)
    if not 1 <= periods <= strategy.periods:
        raise InputError(f"the total of {periods} periods of {strategy.periods}: give a number among these")
    rows = strategy.rows[: strategy.row_count(periods), :periods].astype(float)
    variance = np.asarray(own_variance, dtype=float)
    information = rows.T @ rows / row_variance + np.diag(1 / variance)
    each = np.linalg.solve(information, np.ones(periods))
    return GlsTotal(rows @ each / row_variance, each / variance, row_variance, variance)


@dataclass(frozen=True, eq=False)
class GlsUpdate:
    """A period's noisy table given the series so far: `weight` times its own answer, plus `rest`.

    That is the GLS total of all noisy answers, less what was published before this period. `variance` is that of its noise, and `amount` the privacy cost
    of the sums of the whole span, beside the release's own answers.
    """

    weight: float
    rest: Floats = field(repr=False)
    variance: float
    amount: Fraction

    def applied(self, answer: Measurement) -> Measurement:
        if answer.elements is not None or len(answer.values) != len(self.rest):
            raise InputError(f"the running totals of {answer.feature!r} are of another table: make them anew")
        return Measurement(answer.feature, self.weight * answer.values + self.rest, variance=self.variance)


def apply_gls_updates(
    answers: Sequence[NoisyAnswer], running: Mapping[str, GlsUpdate] | None
) -> list[NoisyAnswer]:
    """The answers from which a release is estimated, where its series keeps running totals of some tables."""
    if not running:
        return list(answers)
    measured = {a.feature for a in answers if isinstance(a, Measurement)}
    for name in running:
        if name not in measured:
            raise InputError(
                f"running totals of {name!r}, which the release does not measure: leave it out of series.running"
            )
    return [
        running[a.feature].applied(a) if isinstance(a, Measurement) and a.feature in running else a
        for a in answers
    ]


def simulated_answers(
    answers: Sequence[NoisyAnswer], running: Mapping[str, GlsUpdate], entropy: Entropy
) -> list[NoisyAnswer]:
    """Simulated answers with the variance of the series' answers: what is missing is added to the tables with running totals.

    Where the series is the more precise one, the noise stays: intervals get wider than they need be, never narrower.
    """
    normal = np.random.default_rng(int(entropy.words(1, 64)[0]))
    simulated: list[NoisyAnswer] = []
    for answer in answers:
        update = isinstance(answer, Measurement) and running.get(answer.feature)
        if not update or not isinstance(answer, Measurement) or answer.variance is None:
            simulated.append(answer)
            continue
        variance = float(answer.variance[0])
        more = max(0.0, update.variance - variance) ** 0.5
        values = answer.values + more * normal.standard_normal(len(answer.values))
        simulated.append(Measurement(answer.feature, values, variance=max(variance, update.variance)))
    return simulated
