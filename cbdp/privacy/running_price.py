"""What running totals of a series cost: spans of periods that one charge pays for, and the noise of their sums."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

from cbdp.privacy.laws import Law
from cbdp.privacy.laws.base import Currency
from cbdp.privacy.running import STRATEGIES, Strategy
from cbdp.privacy.sensitivity import Change


class NoisyMechanism(Protocol):
    """What a price needs of a mechanism: its law of noise, and how much one unit changes a table."""

    @property
    def law_kind(self) -> type[Law]: ...
    def change(self, feature: str) -> Change: ...


@dataclass(frozen=True)
class PaidTable:
    """The running totals of one table as they are paid for: the noise of every sum, and what a whole span costs."""

    law: Law
    amount: Fraction


@dataclass(frozen=True)
class Span:
    """Periods whose running totals are paid for by one charge: the first day, how many there may be, which sums, which tables."""

    first: dt.date
    periods: int
    strategy: str
    request: str  # by which the ledger knows the charge
    tables: Mapping[str, PaidTable]

    @cached_property
    def sums(self) -> Strategy:
        return STRATEGIES[self.strategy](self.periods)

    @property
    def currency(self) -> Currency:
        """What its noise is paid for in."""
        return next(iter(self.tables.values())).law.currency

    def covers(self, mechanism: NoisyMechanism) -> bool:
        """Whether what was paid is still enough for what one unit can change: it is not if more trips of a person count than did."""
        return all(
            paid.law.cost(self.sums.change(mechanism.change(name))) <= paid.amount
            for name, paid in self.tables.items()
        )


def paid_tables(
    mechanism: NoisyMechanism, names: Mapping[str, Fraction], sums: Strategy
) -> dict[str, PaidTable]:
    """The noise that each amount buys, for what one unit does in one period."""
    made = {}
    for name, amount in names.items():
        law = mechanism.law_kind.costing(amount, sums.change(mechanism.change(name)))
        made[name] = PaidTable(law, amount)
    return made


def price_of_row(span: Span, number: int) -> Fraction:
    """What one more draw of the sums that end in a period costs for one unit, whichever its period is; of all tables together.

    For the unit that the span was charged for: earlier periods were counted with its bound, also if it is smaller now.
    """
    power = 2 if span.currency == "rho" else 1
    whole = int((span.sums.rows**power).sum(axis=0).max())  # what `amount` pays: the dearest column
    most = sum(int(row.max()) ** power for row in span.sums.asked(number - 1))
    return sum((paid.amount for paid in span.tables.values()), Fraction(0)) * Fraction(most, whole)
