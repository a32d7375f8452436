"""Running totals of one table over a series of periods, at one price for the whole series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.estimate.running import deviation, published, total
from cbdp.features import FeatureDag
from cbdp.measuring.running import measure_sums
from cbdp.parts import did_you_mean
from cbdp.privacy.changes import change_in
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.laws import LAWS, Law
from cbdp.privacy.numbers import positive
from cbdp.privacy.running import STRATEGIES, Strategy
from cbdp.privacy.unit import unit_of
from cbdp.trips import Counts


@dataclass(frozen=True)
class RunningTotals:
    """Totals since the start, published after every period and never rewritten; spans are differences of them.

    `amount` is what all of it costs for what one unit does in one period: ρ with the law "gaussian", ε with "geometric". What
    a person does in several periods costs `price(window)`. Answers are measured when a period is over, from the counts of all periods
    so far; whoever has the answers can work the totals out again.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> year = cbdp.RunningTotals(features, "time", amount="1/2", periods=365)
    >>> year.periods, round(float(year.price(1)), 6), round(float(year.price(7)), 1)
    (365, 0.5, 18.1)
    """

    features: FeatureDag
    table: str
    amount: Any
    periods: int
    unit: Any = "trip"
    law: str = "gaussian"
    strategy: str | None = None  # by default the square root with Gaussian noise, the binary tree with others

    def __post_init__(self) -> None:
        if self.table not in self.features:
            cure = did_you_mean(self.table, list(self.features.features))
            raise InputError(f"unknown table {self.table!r}: {cure}")
        object.__setattr__(self, "unit", unit_of(self.unit))
        object.__setattr__(self, "amount", positive(self.amount, self._kind.currency))
        if self.strategy is None:
            best = "square root" if self._kind.currency == "rho" else "binary tree"
            object.__setattr__(self, "strategy", best)
        if self.strategy not in STRATEGIES:
            cure = did_you_mean(str(self.strategy), list(STRATEGIES))
            raise InputError(f"unknown strategy {self.strategy!r}: {cure}")
        _ = self.sums  # refuses a wrong number of periods

    @property
    def _kind(self) -> type[Law]:
        return LAWS.get(self.law)

    @cached_property
    def sums(self) -> Strategy:
        """What is measured."""
        return STRATEGIES[str(self.strategy)](self.periods)

    @cached_property
    def noise(self) -> Law:
        """The noise of every answer."""
        return self._kind.costing(self.amount, self.sums.change(self._change))

    @property
    def _change(self) -> Any:
        return change_in(self.features, self.table, self.unit)

    def price(self, window: int = 1) -> Fraction:
        """What a unit pays that takes part in so many periods in a row: ρ or ε."""
        return self.noise.cost(self.sums.change(self._change, window=window))

    def deviation(self, periods: int) -> float:
        """That of the noise of the total after so many periods, in trips."""
        return float(deviation(self.sums, periods) * self.noise.variance() ** 0.5)

    def measure(self, counts: Sequence[Counts], entropy: Entropy | None = None) -> Ints:
        """The noisy sums that end in the last of these periods. The only part that sees counts; its price is in `amount`."""
        for given in counts:
            if not given.universe.same_types(self.features.universe) or given.unit != self.unit:
                raise InputError(
                    f"counts of {given.universe!r} for {given.unit}: running totals are of "
                    f"{self.features.universe!r} for {self.unit}"
                )
        tables = [given.of(self.features, self.table) for given in counts]
        return measure_sums(self.sums, tables, self.noise, entropy or SystemEntropy())

    def totals(self, answers: Sequence[Ints]) -> list[Ints]:
        """The published totals after each period: whole numbers that never fall. Pure; more answers change no earlier total."""
        made: list[Ints] = []
        for period in range(1, len(answers) + 1):
            before = made[-1] if made else None
            made.append(published(before, total(self.sums, answers[:period])))
        return made
