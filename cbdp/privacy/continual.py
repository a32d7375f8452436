"""Running totals over a series, by the matrix mechanism (Li and others 2010): which sums of periods are measured, what one unit can change of them, and how precise totals get.

Adding up the noisy counts of 365 days makes a year's total 19 times as noisy as a day. A strategy measures other sums instead, each as
soon as its last period is over: row i of a matrix C of whole numbers asks for Σ_t C_it x_t. All get noise of one scale, and running totals are worked
out from the answers so far, so what was published is never rewritten.

*Privacy.* Every answer is a whole number (whole weights, whole counts) plus exact whole noise. What a person does in one period d changes row i by C_id
times what it changes of that period's table. So row i costs C_id² l2²/(2σ²) in ρ with discrete Gaussian noise, or C_id l1/b in ε with
geometric noise, and the rows compose, whatever was published before: l2² Σ_i C_id²/(2σ²), or l1 Σ_i C_id/b. The largest column decides. Nothing is
approximated, because no real number is ever noised: the square-root factor has real entries, and is multiplied by
`ENTRY_DENOMINATOR` and rounded first; totals are then worked out with the rounded one. The bound also holds if the rows of a period are bounded anew, or come late, for a later
answer: each answer is bounded by itself.

*Precision.* With the square-root factorisation of the matrix of running totals (Fichtenberger, Henzinger and Upadhyay 2023), totals of T periods have a deviation of at most
(ln T + 3.35)/π times that of one period's noise at the same price: 2.95 for T = 365.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.privacy.noise import NoiseDistribution, PrivacyMeasure
from cbdp.privacy.unit import Sensitivity

ENTRY_DENOMINATOR = 64  # entries of the square-root factor are rounded to so many parts of 1
MAX_PERIODS = 4096  # periods of a strategy, whose matrix has as many rows: 128 MiB


@dataclass(frozen=True, eq=False)
class Strategy:
    """The sums of periods that are measured: `rows` has a row for each, in the order of the periods in which they end.

    Proof: docs/proofs/continual.md.
    """

    name: str
    rows: Ints = field(repr=False)

    def __post_init__(self) -> None:
        rows = self.rows
        if rows.ndim != 2 or not rows.size or rows.dtype.kind != "i" or (rows < 0).any():
            raise InputError("a strategy is a matrix of whole numbers of at least 0: a row for each sum")
        if not (np.diff(self.ends) >= 0).all():
            raise InputError("the rows of a strategy must be in the order of the periods in which they end")

    @property
    def periods(self) -> int:
        return int(self.rows.shape[1])

    @cached_property
    def ends(self) -> Ints:
        """The last period of each row: it is measured then."""
        last: Ints = self.periods - 1 - np.argmax(self.rows[:, ::-1] > 0, axis=1)
        return last

    def rows_ending_in(self, period: int) -> Ints:
        """The rows that end in a period."""
        return np.asarray(self.rows[self.ends == period])

    def row_count(self, periods: int) -> int:
        """How many rows end within the first so many periods."""
        return int((self.ends < periods).sum())

    def change(self, one: Sensitivity, *, window: int = 1) -> Sensitivity:
        """What one unit can change of all answers together, if it changes this much of the table of each of `window` periods in a row."""
        sums = self._window_sums(window)
        return Sensitivity(
            one.l1 * int(sums.sum(axis=0).max()),
            one.l2_squared * int((sums**2).sum(axis=0).max()),
            one.l0 * int((sums > 0).sum(axis=0).max()) * window,
            one.linf * int(sums.max()),
        )

    def _window_sums(self, window: int) -> Ints:
        """The columns of so many periods in a row, added up."""
        if not 1 <= window <= self.periods:
            raise InputError(f"a window of {window} periods: give 1 to {self.periods}")
        added = np.cumsum(np.pad(self.rows, ((0, 0), (1, 0))), axis=1)
        return added[:, window:] - added[:, :-window]


def square_root(periods: int) -> Strategy:
    """Near-optimal for totals with Gaussian noise: C · C is the matrix of running totals, but for rounding (Fichtenberger, Henzinger and Upadhyay 2023).

    Rounding adds 0.3 % to the largest standard error of a total where there are 365 periods, and 0.8 % where there are 2,000.

    >>> square_root(4).rows.tolist()
    [[64, 0, 0, 0], [32, 64, 0, 0], [24, 32, 64, 0], [20, 24, 32, 64]]
    """
    _check_periods(periods)
    entry = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, periods))])
    whole = np.maximum(np.rint(ENTRY_DENOMINATOR * entry), 1).astype(np.int64)
    back = np.arange(periods)[:, None] - np.arange(periods)
    return Strategy("square root", np.where(back >= 0, whole[np.maximum(back, 0)], 0))


def binary_tree(periods: int) -> Strategy:
    """Sums of 1, 2, 4, … periods: the better choice with geometric noise, where entries count and not their squares (Chan, Shi and Song 2011).

    >>> binary_tree(4).rows.tolist()
    [[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 1], [1, 1, 1, 1]]
    """
    _check_periods(periods)
    rows = []
    for end in range(1, periods + 1):
        size = 1
        while end % size == 0:
            row = np.zeros(periods, dtype=np.int64)
            row[end - size : end] = 1
            rows.append(row)
            size *= 2
    return Strategy("binary tree", np.array(rows))


def identity(periods: int) -> Strategy:
    """Every period by itself: for comparison."""
    _check_periods(periods)
    return Strategy("each alone", np.eye(periods, dtype=np.int64))


def _check_periods(periods: int) -> None:
    if isinstance(periods, bool) or not isinstance(periods, int) or not 1 <= periods <= MAX_PERIODS:
        raise InputError(f"a series of {periods!r} periods: give a whole number from 1 to {MAX_PERIODS:,}")


STRATEGIES = {"square root": square_root, "binary tree": binary_tree, "each alone": identity}


# What running totals cost: spans of periods that one charge pays for, and the noise of their sums


class NoisyMechanism(Protocol):
    """What a price needs of a mechanism: its law of noise, and how much one unit changes a table."""

    @property
    def law_kind(self) -> type[NoiseDistribution]: ...
    def change(self, feature: str) -> Sensitivity: ...


@dataclass(frozen=True)
class TableNoiseCost:
    """The running totals of one table as they are paid for: the noise of every sum, and what a whole span costs."""

    law: NoiseDistribution
    amount: Fraction


@dataclass(frozen=True)
class Span:
    """Periods whose running totals are paid for by one charge: the first day, how many there may be, which sums, which tables."""

    first: dt.date
    periods: int
    strategy: str
    request: str  # by which the ledger knows the charge
    tables: Mapping[str, TableNoiseCost]

    @cached_property
    def sums(self) -> Strategy:
        return STRATEGIES[self.strategy](self.periods)

    @property
    def currency(self) -> PrivacyMeasure:
        """What its noise is paid for in."""
        return next(iter(self.tables.values())).law.currency

    def covers(self, mechanism: NoisyMechanism) -> bool:
        """Whether what was paid is still enough for what one unit can change: it is not if more trips of a person count than did."""
        return all(
            paid.law.cost(self.sums.change(mechanism.change(name))) <= paid.amount
            for name, paid in self.tables.items()
        )


def table_noise_costs(
    mechanism: NoisyMechanism, names: Mapping[str, Fraction], sums: Strategy
) -> dict[str, TableNoiseCost]:
    """The noise that each amount buys, for what one unit does in one period."""
    costs = {}
    for name, amount in names.items():
        law = mechanism.law_kind.calibrate(amount, sums.change(mechanism.change(name)))
        costs[name] = TableNoiseCost(law, amount)
    return costs


def cost_of_redraw(span: Span, number: int) -> Fraction:
    """What one more draw of the sums that end in a period costs for one unit, whichever its period is; of all tables together.

    For the unit that the span was charged for: earlier periods were counted with its bound, also if it is smaller now.
    """
    power = 2 if span.currency == "rho" else 1
    whole = int((span.sums.rows**power).sum(axis=0).max())  # what `amount` pays: the dearest column
    most = sum(int(row.max()) ** power for row in span.sums.rows_ending_in(number - 1))
    return sum((paid.amount for paid in span.tables.values()), Fraction(0)) * Fraction(most, whole)
