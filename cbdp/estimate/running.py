"""Running totals from noisy sums over periods: the best unbiased ones from the answers so far, and whole numbers that never fall.

What is published for a period depends on answers up to it alone. Later answers change nothing before, so weeks, months and any
other spans are differences of published totals and add up exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from cbdp.errors import InputError
from cbdp.privacy.running import Strategy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

KEPT = 2048  # weights that are kept: a series asks for the same ones again and again


@lru_cache(maxsize=KEPT)
def weights(strategy: Strategy, periods: int) -> Floats:
    """How the answers so far are weighed for the total of the first so many periods: least squares, as all have equal noise."""
    if not 1 <= periods <= strategy.periods:
        raise InputError(f"the total of {periods} periods of {strategy.periods}: give a number among these")
    rows = strategy.rows[: strategy.many(periods), :periods].astype(float)
    # the least vector w with rowsᵀ w = 1: every period counts once, and noise as little as possible
    if rows.shape[0] == periods and not np.triu(rows, 1).any():
        return np.asarray(solve_triangular(rows, np.ones(periods), trans="T", lower=True))
    found: Floats = np.linalg.lstsq(rows.T, np.ones(periods), rcond=None)[0]
    return found


def total(strategy: Strategy, answers: Sequence[Ints]) -> Floats:
    """The running total of each count after as many periods as there are answers; each answer is what `measure_sums` made."""
    told = np.concatenate([np.asarray(a, dtype=float) for a in answers])
    return np.asarray(weights(strategy, len(answers)) @ told)


def deviation(strategy: Strategy, periods: int) -> float:
    """That of the total after so many periods, for noise of deviation 1 in every answer."""
    return float(np.linalg.norm(weights(strategy, periods)))


def relative_deviation(strategy: Strategy, periods: int) -> float:
    """In deviations of one period's noise, if each period alone were measured at the same price in ρ.

    >>> from cbdp.privacy.running import each_alone, square_root
    >>> round(relative_deviation(each_alone(365), 365), 2), round(relative_deviation(square_root(365), 365), 2)
    (19.1, 2.95)
    """
    largest = float((strategy.rows.astype(float) ** 2).sum(axis=0).max())
    return float(deviation(strategy, periods) * largest**0.5)


def published(before: Ints | None, estimate: Floats) -> Ints:
    """Whole totals that never fall, so that every period has at least no trips; where noise exceeds the counts they lean upwards."""
    whole = np.rint(estimate).astype(np.int64)
    made: Ints = np.maximum(whole, 0 if before is None else before)
    return made
