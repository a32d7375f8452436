"""A series of releases as one mechanism, to be attacked and accounted for: what an outsider sees is all of its releases."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from cbdp.counting.clock import Clock
from cbdp.counting.counts import Counts, count
from cbdp.counting.plan import ServiceDays
from cbdp.ledger import Amount, Charge, ChargeScope
from cbdp.ledger.charges import amount_charged, measure_of
from cbdp.ledger.windows import PrivacyStatement, privacy_statement
from cbdp.mechanisms import ConstraintBased, Mechanism
from cbdp.mechanisms.continual import History, release_in_series
from cbdp.privacy.continual import STRATEGIES, Span, table_noise_costs
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.release.release import Release


@dataclass(frozen=True)
class AsSeries:
    """A mechanism that is run once for each period, on the rows of that period alone, as `cbdp series run` does.

    With a `span` it also keeps running totals, and every release holds the sums that end with it.
    """

    mechanism: Mechanism
    periods: Sequence[ServiceDays]
    columns: Mapping[str, str] = field(default_factory=lambda: {"day": "day"})
    clock: Clock = field(default_factory=Clock)
    span: Span | None = None

    def simulate(self, trips: object, seed: int) -> list[Release]:
        """All releases, in order, each with noise of its own."""
        seeds = np.random.SeedSequence(seed).generate_state(2 * len(self.periods), np.uint64).tolist()
        counted = (self.counts(trips, period, seeds[2 * n]) for n, period in enumerate(self.periods))
        if self.span is not None:
            return self._with_running_totals(counted, seeds[1::2])
        return [
            self.mechanism.simulate(counts, seed) for counts, seed in zip(counted, seeds[1::2], strict=True)
        ]

    def _with_running_totals(self, counted: Iterable[Counts], seeds: Sequence[int]) -> list[Release]:
        """Each release from its own noise, the sums that end with it, and what was published before."""
        assert self.span is not None
        assert isinstance(self.mechanism, ConstraintBased)
        history = {name: History() for name in self.span.tables}
        releases = []
        for counts, seed in zip(counted, seeds, strict=True):
            entropy = InsecureSeededEntropy(seed)
            release = release_in_series(self.mechanism, counts, self.span, history, entropy)
            assert release.running is not None
            measured = {m.feature: m for m in release.measurements}
            for name, past in history.items():
                true = counts.of(self.mechanism.features, name)
                past.add(true, release.running.tables[name].answers, measured[name], release.counts(name))
            releases.append(release)
        return releases

    def counts(self, trips: object, period: ServiceDays, seed: int) -> Counts:
        """The counts of one period."""
        return count(
            trips,
            self.mechanism.features.universe,
            columns=self.columns,
            unit=self.mechanism.protected,
            entropy=InsecureSeededEntropy(seed),
            clock=self.clock,
            days=period,
        )

    def statement(self) -> PrivacyStatement:
        """What the ledger of such a series would say of one person."""
        cost = self.mechanism.claim().cost
        unit, days = self.mechanism.protected, self.periods
        charges = [
            Charge(
                str(n),
                "",
                amount_charged(cost, measure_of(cost)),
                "",
                "",
                "",
                ChargeScope.of(unit, period.first, period.last),
            )
            for n, period in enumerate(days)
        ]
        if self.span is not None:
            amount = sum((paid.amount for paid in self.span.tables.values()), Fraction(0))
            price = Amount.charge_rho(amount) if self.span.currency == "rho" else Amount.charge(amount)
            covers = ChargeScope.of_releases(unit, days[0].first, days[-1].last)
            covers = replace(covers, strategy=self.span.strategy, periods=self.span.periods)
            charges.append(Charge("span", "", price, "", "", "", covers))
        return privacy_statement(charges)


def running_span(
    mechanism: ConstraintBased, first: dt.date, periods: int, tables: Mapping[str, Fraction], strategy: str
) -> Span:
    """Running totals of some tables over so many releases, with what each costs for one period of the unit."""
    paid = table_noise_costs(mechanism, tables, STRATEGIES[strategy](periods))
    return Span(first, periods, strategy, "", paid)


def daily(first: dt.date, days: int) -> list[ServiceDays]:
    """So many days, each a period."""
    dates = [first + dt.timedelta(days=n) for n in range(days)]
    return [ServiceDays(day, day) for day in dates]
