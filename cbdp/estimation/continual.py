"""Running totals from noisy sums over periods: the best unbiased ones from the answers so far, and whole numbers that never fall.

What is published for a period depends on answers up to it alone. Later answers change nothing before, so weeks, months and any
other spans are differences of published totals and add up exactly.

In a series every period has a noisy answer of its own beside the sums. `gls_total` takes all of them together, and `GlsUpdate` is what that means for the
period's own table: the total that all answers tell, less what was published before. So the published periods, added up, follow the total.
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

WEIGHT_CACHE_SIZE = 2048  # weights that are kept: a series asks for the same ones again and again


@lru_cache(maxsize=WEIGHT_CACHE_SIZE)
def least_squares_weights(strategy: Strategy, periods: int) -> Floats:
    """How the answers so far are weighed for the total of the first so many periods: least squares, as all have equal noise."""
    if not 1 <= periods <= strategy.periods:
        raise InputError(f"the total of {periods} periods of {strategy.periods}: give a number among these")
    rows = strategy.rows[: strategy.row_count(periods), :periods].astype(float)
    # the least vector w with rowsᵀ w = 1: every period counts once, and noise as little as possible
    if rows.shape[0] == periods and not np.triu(rows, 1).any():
        return np.asarray(solve_triangular(rows, np.ones(periods), trans="T", lower=True))
    found: Floats = np.linalg.lstsq(rows.T, np.ones(periods), rcond=None)[0]
    return found


def running_total(strategy: Strategy, answers: Sequence[Ints]) -> Floats:
    """The running total of each count after as many periods as there are answers; each answer is what `measure_sums` made."""
    told = np.concatenate([np.asarray(a, dtype=float) for a in answers])
    return np.asarray(least_squares_weights(strategy, len(answers)) @ told)


def total_deviation(strategy: Strategy, periods: int) -> float:
    """That of the total after so many periods, for noise of deviation 1 in every answer."""
    return float(np.linalg.norm(least_squares_weights(strategy, periods)))


def relative_deviation(strategy: Strategy, periods: int) -> float:
    """In deviations of one period's noise, if each period alone were measured at the same price in ρ.

    >>> from cbdp.privacy.continual import identity, square_root
    >>> round(relative_deviation(identity(365), 365), 2), round(relative_deviation(square_root(365), 365), 2)
    (19.1, 2.95)
    """
    largest = float((strategy.rows.astype(float) ** 2).sum(axis=0).max())
    return float(total_deviation(strategy, periods) * largest**0.5)


def monotone_totals(before: Ints | None, estimate: Floats) -> Ints:
    """Whole totals that never fall, so that every period has at least no trips; where noise exceeds the counts they lean upwards."""
    whole = np.rint(estimate).astype(np.int64)
    made: Ints = np.maximum(whole, 0 if before is None else before)
    return made


@dataclass(frozen=True, eq=False)
class GlsTotal:
    """How the total of the periods so far is worked out from the noisy sums and from each period's own noisy answer."""

    sums: Floats  # a weight for each answer of the strategy
    own: Floats  # a weight for each period's own answer
    row_variance: float
    own_variance: Floats

    @property
    def variance(self) -> float:
        """That of the total."""
        return float(self.row_variance * (self.sums**2).sum() + (self.own_variance * self.own**2).sum())

    def less(self, before: GlsTotal | None) -> GlsTotal:
        """The total less that of fewer periods: what the difference of two totals is made of."""
        if before is None:
            return self
        sums, own = self.sums.copy(), self.own.copy()
        sums[: len(before.sums)] -= before.sums
        own[: len(before.own)] -= before.own
        return GlsTotal(sums, own, self.row_variance, self.own_variance)

    def of(self, sums: NDArray[np.number], own: NDArray[np.number]) -> Floats:
        """For every count of a table, from answers with a column for each."""
        made: Floats = self.sums @ sums + self.own @ own
        return made


def gls_total(strategy: Strategy, row_variance: float, own_variance: Sequence[float]) -> GlsTotal:
    """The best unbiased total of as many periods as have an answer of their own: generalised least squares over all answers so far.

    >>> from cbdp.privacy.continual import square_root
    >>> best = gls_total(square_root(365), 1e9, [1.0] * 4)  # sums that tell nothing: periods are added up
    >>> best.own.round(3).tolist(), round(best.variance, 3)
    ([1.0, 1.0, 1.0, 1.0], 4.0)
    """
    periods = len(own_variance)
    if not 1 <= periods <= strategy.periods:
        raise InputError(f"the total of {periods} periods of {strategy.periods}: give a number among these")
    rows = strategy.rows[: strategy.row_count(periods), :periods].astype(float)
    own = np.asarray(own_variance, dtype=float)
    told = rows.T @ rows / row_variance + np.diag(1 / own)
    each = np.linalg.solve(told, np.ones(periods))
    return GlsTotal(rows @ each / row_variance, each / own, row_variance, own)


@dataclass(frozen=True, eq=False)
class GlsUpdate:
    """What the series so far makes of a period's own noisy answer to one table: `weight` times it, plus `rest`.

    That is the total which all noisy answers tell, less what was published before this period. `variance` is that of its noise, and `amount` what the
    sums of the whole span cost, beside the release's own answers.
    """

    weight: float
    rest: Floats = field(repr=False)
    variance: float
    amount: Fraction

    def applied(self, own: Measurement) -> Measurement:
        if own.elements is not None or len(own.values) != len(self.rest):
            raise InputError(f"the running totals of {own.feature!r} are of another table: make them anew")
        return Measurement(own.feature, self.weight * own.values + self.rest, variance=self.variance)


def apply_gls_updates(
    answers: Sequence[NoisyAnswer], running: Mapping[str, GlsUpdate] | None
) -> list[NoisyAnswer]:
    """The answers from which a release is estimated, where its series keeps running totals of some tables."""
    if not running:
        return list(answers)
    held = {a.feature for a in answers if isinstance(a, Measurement)}
    for name in running:
        if name not in held:
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
    """Answers of a simulation with as much noise as those of the series have: what is missing is added to the tables with running totals.

    Where the series is the more precise one, the noise stays: intervals get wider than they need be, never narrower.
    """
    normal = np.random.default_rng(int(entropy.words(1, 64)[0]))
    made: list[NoisyAnswer] = []
    for answer in answers:
        told = isinstance(answer, Measurement) and running.get(answer.feature)
        if not told or not isinstance(answer, Measurement) or answer.variance is None:
            made.append(answer)
            continue
        own = float(answer.variance[0])
        more = max(0.0, told.variance - own) ** 0.5
        values = answer.values + more * normal.standard_normal(len(answer.values))
        made.append(Measurement(answer.feature, values, variance=max(own, told.variance)))
    return made
