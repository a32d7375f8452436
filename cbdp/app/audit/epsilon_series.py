"""A whole series as one mechanism, so that it can be attacked as one: what an outsider sees is all of its releases."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from cbdp.mechanisms import ConstraintBased, Mechanism
from cbdp.mechanisms.in_series import History, release_in_series
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.ledger import Amount, Charge, Covers
from cbdp.privacy.ledger.prices import currency_of, price_of
from cbdp.privacy.running import STRATEGIES
from cbdp.privacy.running_price import Span, paid_tables
from cbdp.privacy.spending import Statement, statement
from cbdp.release.release import Release
from cbdp.trips.clock import Clock
from cbdp.trips.count import Counts, count
from cbdp.trips.days import Days


@dataclass(frozen=True)
class AsSeries:
    """A mechanism that is run once for each period, on the rows of that period alone, as `cbdp series run` does.

    With a `span` it also keeps running totals, and every release holds the sums that end with it.
    """

    mechanism: Mechanism
    periods: Sequence[Days]
    columns: Mapping[str, str] = field(default_factory=lambda: {"day": "day"})
    clock: Clock = field(default_factory=Clock)
    span: Span | None = None

    def simulate(self, trips: Any, seed: int) -> list[Release]:
        """All releases, in order, each with noise of its own."""
        seeds = np.random.SeedSequence(seed).generate_state(2 * len(self.periods), np.uint64).tolist()
        counted = (self.counts(trips, period, seeds[2 * n]) for n, period in enumerate(self.periods))
        if self.span is not None:
            return self._following(counted, seeds[1::2])
        return [
            self.mechanism.simulate(counts, seed) for counts, seed in zip(counted, seeds[1::2], strict=True)
        ]

    def _following(self, counted: Iterable[Counts], seeds: Sequence[int]) -> list[Release]:
        """Each release from its own noise, the sums that end with it, and what was published before."""
        assert self.span is not None
        assert isinstance(self.mechanism, ConstraintBased)
        history = {name: History() for name in self.span.tables}
        made = []
        for counts, seed in zip(counted, seeds, strict=True):
            entropy = InsecureSeededEntropy(seed)
            release = release_in_series(self.mechanism, counts, self.span, history, entropy)
            assert release.running is not None
            own = {m.feature: m for m in release.measurements}
            for name, held in history.items():
                true = counts.of(self.mechanism.features, name)
                held.add(true, release.running.tables[name].answers, own[name], release.counts(name))
            made.append(release)
        return made

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
        own = self.mechanism.claim().cost
        unit, days = self.mechanism.unit, self.periods
        charges = [
            Charge(
                str(n),
                "",
                price_of(own, currency_of(own)),
                "",
                "",
                "",
                Covers.of(unit, period.first, period.last),
            )
            for n, period in enumerate(days)
        ]
        if self.span is not None:
            amount = sum((paid.amount for paid in self.span.tables.values()), Fraction(0))
            price = Amount.charge_rho(amount) if self.span.currency == "rho" else Amount.charge(amount)
            covers = Covers.of_releases(unit, days[0].first, days[-1].last)
            covers = replace(covers, strategy=self.span.strategy, periods=self.span.periods)
            charges.append(Charge("span", "", price, "", "", "", covers))
        return statement(charges)


def running_span(
    mechanism: ConstraintBased, first: dt.date, periods: int, tables: Mapping[str, Fraction], strategy: str
) -> Span:
    """Running totals of some tables over so many releases, with what each costs for one period of the unit."""
    paid = paid_tables(mechanism, tables, STRATEGIES[strategy](periods))
    return Span(first, periods, strategy, "", paid)


def daily(first: dt.date, days: int) -> list[Days]:
    """So many days, each a period."""
    found = [first + dt.timedelta(days=n) for n in range(days)]
    return [Days(day, day) for day in found]
