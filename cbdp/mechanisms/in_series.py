"""A release in a series that keeps running totals: its own noisy answers, the sums that end in its period, and the tables that follow both."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from cbdp.arrays import Ints
from cbdp.errors import InputError
from cbdp.estimate.running import Steered, Weighed, weighed
from cbdp.measuring.running import measure_sums
from cbdp.mechanisms.constraint_based import ConstraintBased
from cbdp.privacy.entropy import Entropy, SystemEntropy
from cbdp.privacy.laws import Law
from cbdp.privacy.laws.base import Currency
from cbdp.privacy.measurement import Measurement, NoisyAnswer
from cbdp.privacy.running import STRATEGIES, Strategy
from cbdp.release import Release
from cbdp.release.running import RunningPart, RunningTable
from cbdp.trips import Counts


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

    def covers(self, mechanism: ConstraintBased) -> bool:
        """Whether what was paid is still enough for what one unit can change: it is not if more trips of a person count than did."""
        return all(
            paid.law.cost(self.sums.change(mechanism.change(name))) <= paid.amount
            for name, paid in self.tables.items()
        )


def paid_tables(
    mechanism: ConstraintBased, names: Mapping[str, Fraction], sums: Strategy
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


@dataclass
class History:
    """One table in the releases of a span so far. `counts` are private: the true ones of every period."""

    counts: list[Ints] = field(default_factory=list, repr=False)
    sums: list[Ints] = field(default_factory=list, repr=False)  # noisy, published
    own: list[Ints] = field(default_factory=list, repr=False)  # each release's own noisy answer, published
    own_variance: list[float] = field(default_factory=list, repr=False)
    published: list[Ints] = field(default_factory=list, repr=False)  # whole counts

    def add(self, counts: Ints, sums: Ints, own: Measurement, published: Ints) -> None:
        """One more release. What is published of it, and its true counts."""
        assert own.variance is not None
        self.counts.append(counts)
        self.sums.append(sums)
        self.own.append(own.values)
        self.own_variance.append(float(own.variance[0]))
        self.published.append(published)

    def __len__(self) -> int:
        return len(self.counts)


def release_in_series(
    mechanism: ConstraintBased,
    counts: Counts,
    span: Span,
    history: Mapping[str, History],
    entropy: Entropy | None = None,
) -> Release:
    """Measure the release and the sums that end with it, and finish it so that published periods add up to the running totals.

    Both charges, of the release and of the span, must have been made before.
    """
    source = entropy or SystemEntropy()
    if source.secure and not counts.secure:
        raise InputError("these counts were bounded by a seeded source: count the trips again for a release")
    answers = mechanism.measure(counts, source)
    tables = {}
    for name, paid in span.tables.items():
        before, true = history[name], counts.of(mechanism.features, name)
        sums = measure_sums(span.sums, [*before.counts, true], paid.law, source)
        tables[name] = _running(span, paid, before, sums, _own(answers, name))
    part = RunningPart(span.first, len(before) + 1, span.periods, span.strategy, span.request, tables)
    steering = replace(mechanism, running=part.steered)
    made = steering.finish(answers)
    return replace(made, secure=source.secure, simulated=steering.intervals, running=part)


def _own(answers: list[NoisyAnswer], name: str) -> Measurement:
    for answer in answers:
        if isinstance(answer, Measurement) and answer.feature == name:
            return answer
    raise InputError(f"running totals of {name!r}, which is not measured: leave it out of series.running")


def _running(span: Span, paid: PaidTable, before: History, sums: Ints, own: Measurement) -> RunningTable:
    """The total that all answers tell, less what was published: as a weight of the own answer, and the rest."""
    assert own.variance is not None
    variances = [*before.own_variance, float(own.variance[0])]
    now = weighed(span.sums, paid.law.variance(), variances)
    earlier: Weighed | None = weighed(span.sums, paid.law.variance(), variances[:-1]) if len(before) else None
    told = np.concatenate([*before.sums, sums])
    weight = float(now.own[-1])
    published = sum(before.published, np.zeros(len(own.values), dtype=np.int64))
    rest = now.sums @ told - published
    if len(before):
        rest = rest + now.own[:-1] @ np.array(before.own)
    steered = Steered(weight, rest, now.less(earlier).variance, paid.amount)
    return RunningTable(sums, published, steered, paid.law, now.variance**0.5)
