"""A whole series as one mechanism, so that it can be attacked as one: what an outsider sees is all of its releases."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cbdp.mechanisms import Mechanism
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.ledger import Charge, Covers
from cbdp.privacy.ledger.prices import currency_of, price_of
from cbdp.privacy.spending import Statement, statement
from cbdp.release.release import Release
from cbdp.trips.clock import Clock
from cbdp.trips.count import Counts, count
from cbdp.trips.days import Days


@dataclass(frozen=True)
class AsSeries:
    """A mechanism that is run once for each period, on the rows of that period alone, as `cbdp series run` does."""

    mechanism: Mechanism
    periods: Sequence[Days]
    columns: Mapping[str, str] = field(default_factory=lambda: {"day": "day"})
    clock: Clock = field(default_factory=Clock)

    def simulate(self, trips: Any, seed: int) -> list[Release]:
        """All releases, in order, each with noise of its own."""
        seeds = np.random.SeedSequence(seed).generate_state(2 * len(self.periods), np.uint64).tolist()
        return [
            self.mechanism.simulate(self.counts(trips, period, seeds[2 * n]), seeds[2 * n + 1])
            for n, period in enumerate(self.periods)
        ]

    def counts(self, trips: Any, period: Days, seed: int) -> Counts:
        """The counts of one period."""
        return count(
            trips,
            self.mechanism.features.universe,
            columns=self.columns,
            unit=self.mechanism.unit,
            entropy=InsecureSeededEntropy(seed),
            clock=self.clock,
            days=period,
        )

    def statement(self) -> Statement:
        """What the ledger of such a series would say of one person."""
        cost = self.mechanism.claim().cost
        amount = price_of(cost, currency_of(cost))
        unit = self.mechanism.unit
        return statement(
            Charge(str(n), "", amount, "", "", "", Covers.of(unit, period.first, period.last))
            for n, period in enumerate(self.periods)
        )


def daily(first: dt.date, days: int) -> list[Days]:
    """So many days, each a period."""
    found = [first + dt.timedelta(days=n) for n in range(days)]
    return [Days(day, day) for day in found]
