"""What charges cost one person in windows of consecutive service days.

The rule, proven in docs/explanation/series.md. Let a person's trips in a window be removed. A charge whose days do not touch the window costs nothing.
One that does costs as many times its amount as periods of its unit (day, week, month, release) touch the window, by group
privacy: m periods cost m·ε, and m²·ρ where ρ is counted, or m·ρ if the charge states that every table tells the periods apart.
Charges add up. A period that the window cuts counts once for a person who has no other trips in it. For one who has, it counts twice:
their trips in it are not removed but changed. That is the `strict` sum.

A charge for running totals pays sums over many releases, measured one after the other. What a person does in some of them changes all sums together by no
more than neighbouring columns of the strategy added up, which is less than m² times ρ: `Covers.strategy` says so, and `sums` works it out exactly.

Where the unit is a trip, the person is one with one trip on every day. A charge that does not state its days may be about any
of them; one that does not state its unit counts as one unit.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from cbdp.privacy.ledger.amounts import ATTO, Amount, Charge, Currency
from cbdp.privacy.ledger.covers import PERSON, Covers
from cbdp.privacy.ledger.sums import WEEK, month_of, price_of_steps, release_of, steps_in

WINDOWS = (1, 7, 30, 365)  # days
FEWEST = {"day": 1, "week": 7, "month": 28}  # days of the shortest period


def period_of(day: int, per: str) -> int:
    """The number of the period that a day is in; days are counted as `date.toordinal` does, and weeks begin on Monday."""
    if per == "week":
        return (day - 1) // WEEK
    return month_of(day) if per == "month" else day


def _unit_period(covers: Covers, day: int) -> int:
    """The number of the unit's period that a day of a charge is in. Where the releases of a calendar are paid for, each is a release of its own."""
    if covers.unit != PERSON:
        return day  # a trip a day
    if covers.per == "release":
        return release_of(covers, day) if covers.calendar else 0
    return period_of(day, covers.per)


def periods_touched(covers: Covers | None, first: int, last: int) -> int:
    """How many of the unit's periods lie, in whole or in part, between two days, both included. Proof: docs/proofs/windows.md."""
    if last < first:
        return 0
    return 1 if covers is None else _unit_period(covers, last) - _unit_period(covers, first) + 1


def periods_cut(covers: Covers | None, first: int, last: int) -> int:
    """How many of the unit's periods lie only in part between two days of a charge: other days of the charge are in them too.

    Proof: docs/proofs/windows.md.
    """
    if covers is None or covers.unit != PERSON or covers.first is None or covers.last is None or last < first:
        return 0
    before, after = first > covers.first.toordinal(), last < covers.last.toordinal()
    ends = _unit_period(covers, first), _unit_period(covers, last)
    begins = before and _unit_period(covers, first - 1) == ends[0]
    cut = after and _unit_period(covers, last + 1) == ends[1]
    return 1 if begins and cut and ends[0] == ends[1] else begins + cut


def periods_at_most(covers: Covers | None, days: int) -> int:
    """The most of the unit's periods that any window of so many days touches."""
    if covers is None or (covers.unit == PERSON and covers.per == "release"):
        return 1
    shortest = FEWEST[covers.per if covers.unit == PERSON else "day"]
    return 1 if days == 1 else 2 + (days - 2) // shortest


def cost_of(charge: Charge, periods: int, cut: int = 0) -> Amount:
    """What a charge costs a person who is in so many periods of its unit, some of which are cut: those count twice, and both times in the same counts.

    Proof: docs/proofs/windows.md.
    """
    amount = charge.amount
    apart = charge.covers is not None and charge.covers.apart
    steps = periods + cut
    times = steps
    if amount.currency == "rho":
        times = (
            periods + 3 * cut if apart else steps * steps
        )  # a period that counts twice is a group of two: 2² = 1 + 3
    return Amount(times * amount.nano, _group_delta(amount, steps), amount.currency)


def cost_of_sums(charge: Charge, steps: tuple[int, ...]) -> Amount:
    """What a charge for running totals costs a person with so many periods of the unit in neighbouring releases."""
    amount, covers = charge.amount, charge.covers
    assert covers is not None
    price = price_of_steps(covers.strategy, covers.periods, steps, amount.currency)
    return Amount(math.ceil(price * amount.nano), amount.atto * sum(steps), amount.currency)


def cost_between(charge: Charge, first: int, last: int, *, strict: bool = False) -> Amount:
    """What a charge costs a person who is there on all days from a first to a last, which it covers."""
    covers = charge.covers
    if covers is not None and covers.strategy:
        return cost_of_sums(charge, steps_in(covers, first, last, strict=strict))
    cut = periods_cut(covers, first, last) if strict else 0
    return cost_of(charge, periods_touched(covers, first, last), cut)


def _group_delta(amount: Amount, periods: int) -> int:
    """δ for a group: m·exp((m − 1)·ε)·δ (Dwork and Roth 2014, Theorem 2.2 and below), rounded up, at most 1."""
    if not amount.atto or periods <= 1:
        return amount.atto * periods
    value = float(amount.value)
    epsilon = value if amount.currency == "epsilon" else math.sqrt(2 * value)
    exponent = (periods - 1) * epsilon * (1 + 1e-9)
    if exponent > 100:  # far above 1, whatever δ is
        return ATTO
    factor = Fraction(math.exp(exponent)) * (1 + Fraction(1, 10**9))
    return min(ATTO, math.ceil(periods * factor * amount.atto))


@dataclass
class WindowSums:
    """For one length of window: what the charges so far cost in the window that begins on each day. Proof: docs/proofs/windows.md."""

    days: int
    currency: Currency = "epsilon"
    strict: bool = False  # periods that a window cuts count twice
    nano: dict[int, int] = field(default_factory=dict)  # first day of the window → ε or ρ
    atto: dict[int, int] = field(default_factory=dict)  # likewise δ, where there is any
    everywhere: Amount = field(default_factory=Amount)  # charges that may be about any day

    def add(self, charge: Charge) -> None:
        self.currency = charge.amount.currency
        if not _spanned(charge):
            touched = periods_at_most(charge.covers, self.days)
            covers = charge.covers
            long = covers is None or (covers.unit == PERSON and covers.per != "day")
            self.everywhere += cost_of(charge, touched, min(touched, 2) if self.strict and long else 0)
            return
        for start, cost in self._course(charge):
            self.nano[start] = self.nano.get(start, 0) + cost.nano
            if cost.atto:
                self.atto[start] = self.atto.get(start, 0) + cost.atto

    def worst(self) -> tuple[Amount, dt.date | None]:
        """The dearest window, and its first day: the latest of several; None if it is any."""
        if not self.nano:
            return self.everywhere, None
        start = max(self.nano, key=lambda day: (self.nano[day], day))
        delta = max(self.atto.values(), default=0)  # may be worst elsewhere: state what covers both
        worst = Amount(self.nano[start], delta, self.currency)
        return self.everywhere + worst, dt.date.fromordinal(start)

    def worst_with(self, charge: Charge) -> tuple[int, dt.date]:
        """The dearest of the windows that a further charge touches, with it: ε or ρ in units, and its first day."""
        nano, start = max((self.nano.get(day, 0) + cost.nano, day) for day, cost in self._course(charge))
        return self.everywhere.nano + nano, dt.date.fromordinal(start)

    def _course(self, charge: Charge) -> Iterator[tuple[int, Amount]]:
        """What a charge costs in each window that it touches, by the window's first day."""
        first, last = _span(charge)
        starts = range(max(1, first - self.days + 1), last + 1)
        if first == last:  # as most are, and ledgers of years have many
            once = cost_between(charge, first, last)
            yield from ((start, once) for start in starts)
            return
        known: dict[Hashable, Amount] = {}
        for start in starts:
            inside = max(first, start), min(last, start + self.days - 1)
            alike = _alike(charge.covers, *inside, strict=self.strict)
            if alike not in known:
                known[alike] = cost_between(charge, *inside, strict=self.strict)
            yield start, known[alike]


def _alike(covers: Covers | None, first: int, last: int, *, strict: bool) -> Hashable:
    """What decides the cost of a window, so that it is worked out once for all that are alike."""
    if covers is not None and covers.strategy:
        return steps_in(covers, first, last, strict=strict) if covers.calendar else last - first
    return periods_touched(covers, first, last), periods_cut(covers, first, last) if strict else 0


def window_sums(charges: Iterable[Charge], days: int, *, strict: bool = False) -> WindowSums:
    found = WindowSums(days, strict=strict)
    for charge in charges:
        found.add(charge)
    return found


def since_start(charges: Iterable[Charge]) -> Amount:
    """What all charges cost together; unlimited where one does not state its days, and may be about any number of periods."""
    total = Amount()
    for charge in charges:
        if _spanned(charge):
            total += cost_between(charge, *_span(charge))
        elif periods_at_most(charge.covers, 2) > 1:
            return Amount.unlimited(currency=charge.amount.currency)
        else:
            total += charge.amount
    return total


def _spanned(charge: Charge) -> bool:
    return charge.covers is not None and charge.covers.first is not None


def _span(charge: Charge) -> tuple[int, int]:
    assert charge.covers is not None
    assert charge.covers.first is not None
    assert charge.covers.last is not None
    return charge.covers.first.toordinal(), charge.covers.last.toordinal()
