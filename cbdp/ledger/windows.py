"""What charges cost one person in windows of consecutive service days: group privacy, running totals, caps, and statements of the worst case.

The rule, proven in docs/explanation/series.md. Let a person's trips in a window be removed. A charge whose days do not touch the window costs nothing.
One that does costs as many times its amount as periods of its unit (day, week, month, release) touch the window, by group
privacy (Dwork and Roth 2014, Theorem 2.2; in ρ Bun and Steinke 2016, Proposition 1.9): m periods cost m·ε, and m²·ρ where ρ is counted, or m·ρ if
the charge states that every table tells the periods apart. Charges add up. A period that the window cuts counts once for a person who has no other
trips in it. For one who has, it counts twice: their trips in it are not removed but changed. That is the `strict` sum. Caps limit the first sum: they hold for a person without other trips in
the periods that their windows cut, as docs/explanation/series.md says, and for anybody where no period is cut.

A charge for running totals pays sums over many releases, measured one after the other. What a person does in some of them changes all sums together by no
more than neighbouring columns of the strategy added up, which is at most m² times ρ: `ChargeScope.strategy` names the strategy, and
`relative_cost_of_steps` works it out exactly.

Where the unit is a trip, the person is one with one trip on every day. A charge that does not state its days may be about any
of them; one that does not state its unit counts as one unit.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cbdp.errors import BudgetError, InputError
from cbdp.ledger.charges import ATTO_UNITS, UNIT_PERSON, UNIT_REPLACED_TRIP, Amount, Charge, ChargeScope
from cbdp.numbers import Number, probability
from cbdp.parts import did_you_mean
from cbdp.privacy.accounting import MAX_STATED_LOSS, epsilon_of
from cbdp.privacy.continual import STRATEGIES, Strategy
from cbdp.privacy.noise import PrivacyMeasure

# Running totals: exactly, from the strategy and from how many periods of the unit lie in each release
#
# A person with m_t periods of the unit in release t changes that release's table by a length of m_t · l2 at most, and sum i by Σ_t C_it m_t l2. So
# all sums together cost at most `amount` · Σ_i (Σ_t C_it m_t)² / max_t Σ_i C_it² in ρ, and the same without squares in ε: `amount` is the case of one
# period in one release. Releases of days have m_t = 1. Where the calendar has gaps, which releases a window touches is not known
# here: then each of them counts like the fullest, which is never too little.


DAYS_PER_WEEK = 7


def month_of(day: int) -> int:
    """The number of the month that a day is in; days are counted as `date.toordinal` does."""
    date = dt.date.fromordinal(day)
    return 12 * date.year + date.month


def release_of(covers: ChargeScope, day: int) -> int:
    """The number of the release of a calendar that holds a day: weeks are counted from the first day of the span on, months as in the year."""
    assert covers.first is not None
    if covers.calendar == "monthly":
        return month_of(day)
    return (day - covers.first.toordinal()) // (DAYS_PER_WEEK if covers.calendar == "weekly" else 1)


def steps_touched(covers: ChargeScope, first: int, last: int, *, strict: bool = False) -> tuple[int, ...]:
    """How many periods of the unit lie in each release that days from a first to a last touch; strictly, those that are cut count twice.

    >>> weeks = ChargeScope("person", "day", 2, dt.date(2026, 3, 2), dt.date(2026, 3, 22), strategy="square root", periods=3, calendar="weekly")
    >>> monday = weeks.first.toordinal()
    >>> steps_touched(weeks, monday + 5, monday + 16)
    (2, 7, 3)
    """
    releases = range(release_of(covers, first), release_of(covers, last) + 1)
    if covers.unit != UNIT_PERSON or covers.per == "day":
        days_by_release = dict.fromkeys(releases, 0)
        for day in range(first, last + 1):
            days_by_release[release_of(covers, day)] += 1
        steps = [*days_by_release.values()]
    else:  # a release is one period of the unit
        steps = [1] * len(releases)
        for end, beyond in ((0, first - 1), (-1, last + 1)):
            if strict and _day_in_span(covers, beyond) and release_of(covers, beyond) == releases[end]:
                steps[end] = 2
    if _has_gaps(covers) or len(steps) > covers.periods:
        return (max(steps),) * min(len(steps), covers.periods)
    return tuple(steps)


def _day_in_span(covers: ChargeScope, day: int) -> bool:
    assert covers.first is not None
    assert covers.last is not None
    return covers.first.toordinal() <= day <= covers.last.toordinal()


def _has_gaps(covers: ChargeScope) -> bool:
    """Whether the span has fewer releases than the calendar has periods between its first and its last day."""
    assert covers.first is not None
    assert covers.last is not None
    first, last = (release_of(covers, day.toordinal()) for day in (covers.first, covers.last))
    return last - first + 1 != covers.periods


def relative_cost_of_steps(
    strategy: str, periods: int, steps: tuple[int, ...], currency: PrivacyMeasure
) -> Fraction:
    """How many times the price of one period so many periods in neighbouring releases cost at most, wherever in the span these are.

    Proof: docs/proofs/continual.md.

    >>> float(relative_cost_of_steps("each alone", 52, (7,), "rho")), float(relative_cost_of_steps("each alone", 52, (3, 4), "rho"))
    (49.0, 25.0)
    """
    if max(steps) == 1:
        return relative_cost_of_days(strategy, periods, len(steps), currency)
    return _relative_cost(strategy, periods, steps, currency)


@lru_cache(maxsize=4096)
def _relative_cost(strategy: str, periods: int, steps: tuple[int, ...], currency: PrivacyMeasure) -> Fraction:
    matrix, power = _strategy_of(strategy, periods), 2 if currency == "rho" else 1
    starts = range(1 if _is_toeplitz(matrix) else periods - len(steps) + 1)
    weights = np.array(steps)
    dearest = max(int(((matrix.rows[:, j : j + len(steps)] @ weights) ** power).sum()) for j in starts)
    return Fraction(dearest, _window_costs(strategy, periods, currency)[0])


def _is_toeplitz(strategy: Strategy) -> bool:
    """Whether each column is the one before it, a row later: then later windows only lose rows, and the first one is the dearest."""
    rows = strategy.rows
    return rows.shape[0] == rows.shape[1] and bool((rows[1:, 1:] == rows[:-1, :-1]).all())


def relative_cost_of_days(strategy: str, periods: int, days: int, currency: PrivacyMeasure) -> Fraction:
    """How many times the price of one day so many days in a row cost at most, where sums over days are measured.

    Proof: docs/proofs/continual.md.

    >>> [round(float(relative_cost_of_days("square root", 365, days, "rho")), 2) for days in (1, 2, 7)]
    [1.0, 3.57, 36.25]
    """
    prices = _window_costs(strategy, periods, currency)
    return Fraction(prices[min(days, periods) - 1], prices[0])


@lru_cache(maxsize=16)
def _strategy_of(name: str, periods: int) -> Strategy:
    return STRATEGIES[name](periods)


@lru_cache(maxsize=16)
def _window_costs(strategy: str, periods: int, currency: PrivacyMeasure) -> tuple[int, ...]:
    """What 1, 2, … days in a row cost, in units of the noise: `Strategy.change` of all windows at once, from sums of products of columns."""
    matrix = _strategy_of(strategy, periods)
    if currency == "rho":
        products = np.pad(matrix.rows.T @ matrix.rows, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
        end = np.diag(products)
    else:
        products = np.zeros((periods + 1, periods + 1), dtype=np.int64)
        end = np.pad(matrix.rows.sum(axis=0), (1, 0)).cumsum()
    costs = []
    for days in range(1, periods + 1):
        both = np.diag(products, days) + np.diag(products, -days) if currency == "rho" else 2 * end[:-days]
        costs.append(int((end[days:] + end[:-days] - both).max()))
    return tuple(costs)


# Windows of days


WINDOW_DAYS = (1, 7, 30, 365)  # days of the windows that statements are about
MIN_DAYS_PER_PERIOD = {"day": 1, "week": 7, "month": 28}  # days of the shortest period


def period_number(day: int, per: str) -> int:
    """The number of the period that a day is in; days are counted as `date.toordinal` does, and weeks begin on Monday."""
    if per == "week":
        return (day - 1) // DAYS_PER_WEEK
    return month_of(day) if per == "month" else day


def _unit_period(covers: ChargeScope, day: int) -> int:
    """The number of the unit's period that a day of a charge is in. Where the releases of a calendar are paid for, each is a release of its own."""
    if covers.unit != UNIT_PERSON:
        return day  # a trip a day
    if covers.per == "release":
        return release_of(covers, day) if covers.calendar else 0
    return period_number(day, covers.per)


def periods_touched(covers: ChargeScope | None, first: int, last: int) -> int:
    """How many of the unit's periods lie, in whole or in part, between two days, both included. Proof: docs/proofs/windows.md."""
    if last < first:
        return 0
    return 1 if covers is None else _unit_period(covers, last) - _unit_period(covers, first) + 1


def periods_cut(covers: ChargeScope | None, first: int, last: int) -> int:
    """How many of the unit's periods lie only in part between two days of a charge: other days of the charge are in them too.

    Proof: docs/proofs/windows.md.
    """
    if (
        covers is None
        or covers.unit != UNIT_PERSON
        or covers.first is None
        or covers.last is None
        or last < first
    ):
        return 0
    before, after = first > covers.first.toordinal(), last < covers.last.toordinal()
    ends = _unit_period(covers, first), _unit_period(covers, last)
    begins = before and _unit_period(covers, first - 1) == ends[0]
    cut = after and _unit_period(covers, last + 1) == ends[1]
    return 1 if begins and cut and ends[0] == ends[1] else begins + cut


def periods_at_most(covers: ChargeScope | None, days: int) -> int:
    """The most of the unit's periods that any window of so many days touches."""
    if covers is None or (covers.unit == UNIT_PERSON and covers.per == "release"):
        return 1
    shortest = MIN_DAYS_PER_PERIOD[covers.per if covers.unit == UNIT_PERSON else "day"]
    return 1 if days == 1 else 2 + (days - 2) // shortest


def person_cost(charge: Charge, periods: int, cut: int = 0) -> Amount:
    """What a charge costs a person who is in so many periods of its unit, some of which are cut: those count twice, and both times in the same counts.

    Proof: docs/proofs/windows.md.
    """
    amount = charge.amount
    disjoint = charge.covers is not None and charge.covers.disjoint_periods
    group_size = periods + cut
    times = group_size
    if amount.currency == "rho":
        times = (
            periods + 3 * cut if disjoint else group_size * group_size
        )  # a period that counts twice is a group of two: 2² = 1 + 3
    return Amount(times * amount.nano, _group_privacy_delta(amount, group_size), amount.currency)


def running_total_cost(charge: Charge, steps: tuple[int, ...]) -> Amount:
    """What a charge for running totals costs a person with so many periods of the unit in neighbouring releases."""
    amount, covers = charge.amount, charge.covers
    assert covers is not None
    if amount.atto:  # what the strategy says is of noise without δ; group privacy is true of any
        return person_cost(charge, sum(steps))
    price = relative_cost_of_steps(covers.strategy, covers.periods, steps, amount.currency)
    return Amount(math.ceil(price * amount.nano), 0, amount.currency)


def cost_in_days(charge: Charge, first: int, last: int, *, strict: bool = False) -> Amount:
    """What a charge costs a person who is there on all days from a first to a last, which it covers."""
    covers = charge.covers
    if covers is not None and covers.strategy:
        return running_total_cost(charge, steps_touched(covers, first, last, strict=strict))
    cut = periods_cut(covers, first, last) if strict else 0
    return person_cost(charge, periods_touched(covers, first, last), cut)


def _group_privacy_delta(amount: Amount, periods: int) -> int:
    """δ for a group: m·exp((m − 1)·ε)·δ (Dwork and Roth 2014, Theorem 2.2 and below), rounded up, at most 1.

    Where ρ is counted, a charge with δ was of ε and δ (`Ledger.price` takes no δ with ρ), so that its ε is √(2ρ) at most.
    """
    if not amount.atto or periods <= 1:
        return amount.atto * periods
    value = float(amount.value)
    epsilon = value if amount.currency == "epsilon" else math.sqrt(2 * value)
    exponent = (periods - 1) * epsilon * (1 + 1e-9)
    if exponent > 100:  # far above 1, whatever δ is
        return ATTO_UNITS
    factor = Fraction(math.exp(exponent)) * (1 + Fraction(1, 10**9))
    return min(ATTO_UNITS, math.ceil(periods * factor * amount.atto))


@dataclass
class WindowSums:
    """For one length of window: what the charges so far cost in the window that begins on each day. Proof: docs/proofs/windows.md."""

    days: int
    currency: PrivacyMeasure = "epsilon"
    strict: bool = False  # periods that a window cuts count twice
    nano: dict[int, int] = field(default_factory=dict)  # first day of the window → ε or ρ
    atto: dict[int, int] = field(default_factory=dict)  # likewise δ, where there is any
    undated: Amount = field(default_factory=Amount)  # charges that may be about any day

    def add(self, charge: Charge) -> None:
        self.currency = charge.amount.currency
        if not _has_dates(charge):
            touched = periods_at_most(charge.covers, self.days)
            covers = charge.covers
            long = covers is None or (covers.unit == UNIT_PERSON and covers.per != "day")
            self.undated += person_cost(charge, touched, min(touched, 2) if self.strict and long else 0)
            return
        for start, cost in self._course(charge):
            self.nano[start] = self.nano.get(start, 0) + cost.nano
            if cost.atto:
                self.atto[start] = self.atto.get(start, 0) + cost.atto

    def worst(self) -> tuple[Amount, dt.date | None]:
        """The dearest window, and its first day: the latest of several; None if it is any."""
        if not self.nano:
            return self.undated, None
        start = max(self.nano, key=lambda day: (self.nano[day], day))
        delta = max(self.atto.values(), default=0)  # may be worst elsewhere: state what covers both
        worst = Amount(self.nano[start], delta, self.currency)
        return self.undated + worst, dt.date.fromordinal(start)

    def worst_with(self, charge: Charge) -> tuple[int, dt.date]:
        """The dearest of the windows that a further charge touches, with it: ε or ρ in units, and its first day."""
        nano, start = max((self.nano.get(day, 0) + cost.nano, day) for day, cost in self._course(charge))
        return self.undated.nano + nano, dt.date.fromordinal(start)

    def _course(self, charge: Charge) -> Iterator[tuple[int, Amount]]:
        """What a charge costs in each window that it touches, by the window's first day."""
        first, last = _days_spanned(charge)
        starts = range(max(1, first - self.days + 1), last + 1)
        if first == last:  # as most are, and ledgers of years have many
            once = cost_in_days(charge, first, last)
            yield from ((start, once) for start in starts)
            return
        costs: dict[Hashable, Amount] = {}
        for start in starts:
            inside = max(first, start), min(last, start + self.days - 1)
            alike = _window_shape(charge.covers, *inside, strict=self.strict)
            if alike not in costs:
                costs[alike] = cost_in_days(charge, *inside, strict=self.strict)
            yield start, costs[alike]


def _window_shape(covers: ChargeScope | None, first: int, last: int, *, strict: bool) -> Hashable:
    """What decides the cost of a window, so that it is worked out once for all that are alike."""
    if covers is not None and covers.strategy:
        return steps_touched(covers, first, last, strict=strict) if covers.calendar else last - first
    return periods_touched(covers, first, last), periods_cut(covers, first, last) if strict else 0


def window_sums(charges: Iterable[Charge], days: int, *, strict: bool = False) -> WindowSums:
    sums = WindowSums(days, strict=strict)
    for charge in charges:
        sums.add(charge)
    return sums


def total_cost(charges: Iterable[Charge]) -> Amount:
    """What all charges cost together; unlimited where one does not state its days, and may be about any number of periods."""
    total = Amount()
    for charge in charges:
        if _has_dates(charge):
            total += cost_in_days(charge, *_days_spanned(charge))
        elif periods_at_most(charge.covers, 2) > 1:
            return Amount.unlimited(currency=charge.amount.currency)
        else:
            total += charge.amount
    return total


def _has_dates(charge: Charge) -> bool:
    return charge.covers is not None and charge.covers.first is not None


def _days_spanned(charge: Charge) -> tuple[int, int]:
    assert charge.covers is not None
    assert charge.covers.first is not None
    assert charge.covers.last is not None
    return charge.covers.first.toordinal(), charge.covers.last.toordinal()


# Caps: how much may be spent, in all and for one person in any window of so many days


TOTAL_CAP = "total"
CAP_WINDOW_DAYS: Mapping[str, int] = {"per_day": 1, "per_7_days": 7, "per_30_days": 30, "per_year": 365}
CAP_FIELDS: Mapping[str, int] = {f"cap_{days}_nano": days for days in CAP_WINDOW_DAYS.values()}  # of an entry
MAX_LOOKAHEAD_DAYS = 3 * 366  # days to look ahead for a time when a charge fits again


@dataclass(frozen=True)
class Caps:
    """The most that all charges may add up to, and the most that windows of days may cost a person without other trips in the periods that they cut.

    >>> caps = Caps(Amount(nano=2 * 10**9), ((1, 10**9),))
    >>> str(caps.total)
    '2'
    """

    total: Amount
    windows: tuple[tuple[int, int], ...] = ()  # days, units of 10⁻⁹; by length

    @classmethod
    def of(
        cls, cap: Number | Mapping[str, Number], delta: Number = 0, *, currency: PrivacyMeasure = "epsilon"
    ) -> Caps:
        """From a number, or a table like {"total": 10, "per_day": 1, "per_30_days": 5}; without a total there is none."""
        if not isinstance(cap, Mapping):
            return cls(Amount.limit(cap, delta, currency=currency))
        names = [TOTAL_CAP, *CAP_WINDOW_DAYS]
        for name in cap:
            if name not in names:
                raise InputError(f"cap has no {name!r}: {did_you_mean(name, names)}")
        if not cap:
            raise InputError(f"cap is an empty table: give at least one of {', '.join(names)}")
        total = Amount.unlimited(delta, currency=currency)
        if TOTAL_CAP in cap:
            total = Amount.limit(cap[TOTAL_CAP], delta, currency=currency)
        stated = {
            CAP_WINDOW_DAYS[n]: Amount.limit(value).nano for n, value in cap.items() if n in CAP_WINDOW_DAYS
        }
        return cls(total, tuple(sorted(stated.items())))

    def fields(self) -> dict[str, str | int]:
        """As the first entry of a ledger states them. In an ε-ledger with a total alone it is as it always was."""
        stated: dict[str, str | int] = {"cap_atto": self.total.atto}
        if not self.total.is_unlimited:
            stated["cap_nano"] = self.total.nano
        if self.total.currency != "epsilon":
            stated["currency"] = self.total.currency
        return stated | {f"cap_{days}_nano": nano for days, nano in self.windows}

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Caps:
        currency = fields.get("currency", "epsilon")
        total = Amount.unlimited(currency=currency).nano
        windows = tuple((days, fields[name]) for name, days in CAP_FIELDS.items() if name in fields)
        return cls(Amount(fields.get("cap_nano", total), fields["cap_atto"], currency), windows)

    def window(self, days: int) -> Amount:
        """The cap of windows of this length; δ has none of its own."""
        return Amount(dict(self.windows)[days], self.total.atto, self.total.currency)

    def __str__(self) -> str:
        names = {days: name.replace("_", " ") for name, days in CAP_WINDOW_DAYS.items()}
        listed = [f"{replace(self.window(days), atto=0)} {names[days]}" for days, _ in self.windows]
        if self.total.is_unlimited and listed:
            return ", ".join(listed)
        return ", ".join([f"{self.total}" + (" in all" if listed else ""), *listed])


def window_text(days: int) -> str:
    """A window in words."""
    return "a day" if days == 1 else f"{days} days"


def check_windows(caps: Caps, sums: Mapping[int, WindowSums], charge: Charge) -> None:
    """Refuse a charge that would cost one person more than a cap in some window: a person without other trips in the periods that the window cuts.

    Proof: docs/proofs/windows.md.
    """
    if caps.windows and (charge.covers is None or charge.covers.first is None):
        raise BudgetError(
            "this ledger has caps for windows of days, and the charge does not state which days it covers: release it as a "
            "series, or restrict it by universe.days with a first and a last day"
        )
    for days, nano in caps.windows:
        cost, start = sums[days].worst_with(charge)
        if cost > nano:
            raise BudgetError(_cap_error(caps, sums, charge, days, start))


def check_together(caps: Caps, before: Iterable[Charge], planned: Iterable[Charge]) -> None:
    """Refuse several charges that fit one by one, but not one after the other."""
    sums = {days: WindowSums(days, caps.total.currency) for days, _ in caps.windows}
    spent = Amount(currency=caps.total.currency)
    for charge in before:
        spent += charge.amount
        for one in sums.values():
            one.add(charge)
    for charge in planned:
        spent += charge.amount
        if not spent.within(caps.total):
            raise BudgetError(
                f"charges of {charge.amount} and what goes with it do not fit: they would add up to {spent}, and the cap is {caps.total}"
            )
        check_windows(caps, sums, charge)
        for one in sums.values():
            one.add(charge)


def _cap_error(caps: Caps, sums: Mapping[int, WindowSums], charge: Charge, days: int, start: dt.date) -> str:
    cap, with_it = caps.window(days).nano, sums[days].worst_with(charge)[0]
    alone = WindowSums(days).worst_with(charge)[0]
    cuts = WindowSums(days, strict=True).worst_with(charge)[0] > alone
    person = "one person without other trips in the periods that the window cuts" if cuts else "one person"
    currency = caps.total.currency
    left = Amount(max(0, cap - with_it + alone), 0, currency)
    last = start + dt.timedelta(days=days - 1)
    window = f"on {start}" if days == 1 else f"in the {days} days from {start} to {last}"
    return (
        f"a charge that costs {person} {Amount(alone, 0, currency)} {window} does not fit: {left} of the cap "
        f"{Amount(cap, 0, currency)} for {window_text(days)} is left there; {_next_day_allowed(caps, sums, charge)}"
    )


def _next_day_allowed(caps: Caps, sums: Mapping[int, WindowSums], charge: Charge) -> str:
    """From which day on the same charge fits."""
    assert charge.covers is not None
    assert charge.covers.first is not None
    assert charge.covers.last is not None
    for later in range(1, MAX_LOOKAHEAD_DAYS):
        try:
            shift = dt.timedelta(days=later)
            moved = replace(charge.covers, first=charge.covers.first + shift, last=charge.covers.last + shift)
        except OverflowError:
            break
        moved_charge = replace(charge, covers=moved)
        if all(sums[days].worst_with(moved_charge)[0] <= nano for days, nano in caps.windows):
            return f"it fits again for days from {moved.first} on, or ask for less"
    return "it fits on no other day: ask for less"


# Statements of what all releases together cost one person, from the charges of a ledger alone.
#
# For every window of 1, 7, 30 and 365 consecutive service days, and for all days together, the worst case over all windows and all
# persons: pure ε (the sum), and (ε, δ) by zero-concentrated accounting. The statement is about adding or removing what a person did.
# Telling two ways of travelling apart is two such steps.


STATEMENT_DELTA = Fraction(1, 10**6)  # δ at which a statement is made, unless another is chosen


@dataclass(frozen=True)
class WorstCase:
    """The most that any window of so many days costs one person."""

    days: int | None  # None: all days together
    amount: Amount  # in the ledger's currency; for a person without other trips in the periods that the window cuts
    strict: Amount  # for anybody
    start: dt.date | None  # the first day of the dearest window; None: all of them, or any
    epsilon: float  # by accounting, at `delta`; for anybody
    delta: Fraction

    @property
    def shown(self) -> str:
        """ε with four digits, rounded up: a bound that is rounded down is none.

        >>> WorstCase(1, Amount(), Amount(), None, 26.2004, Fraction(1, 10**6)).shown
        '26.21'
        """
        if not math.isfinite(self.epsilon):
            return "unlimited"
        up = Context(prec=4, rounding=ROUND_CEILING).create_decimal(Decimal(self.epsilon))
        near = f"{self.epsilon:.4g}"  # where the float is a rounding of the decimal itself, say 0.2
        return (
            near
            if Decimal(near) >= up or math.isclose(float(near), self.epsilon, rel_tol=1e-12)
            else f"{up:f}"
        )

    @property
    def pure(self) -> Fraction | None:
        """ε without δ, for anybody, where the ledger counts it."""
        return self.strict.epsilon if self.strict.currency == "epsilon" and not self.strict.atto else None


@dataclass(frozen=True)
class PrivacyStatement:
    """What the releases of a ledger cost one person at most."""

    currency: PrivacyMeasure
    windows: tuple[WorstCase, ...]
    notes: tuple[str, ...] = ()

    def window(self, days: int | None) -> WorstCase:
        return next(w for w in self.windows if w.days == days)


def privacy_statement(
    charges: Iterable[Charge], delta: Number = STATEMENT_DELTA, *, windows: Sequence[int] = WINDOW_DAYS
) -> PrivacyStatement:
    """The worst case for one person, from the charges of one ledger."""
    every, exact_delta = list(charges), probability(delta)
    currency: PrivacyMeasure = every[0].amount.currency if every else "epsilon"
    as_rho = [replace(charge, amount=_amount_in_rho(charge.amount)) for charge in every]
    cases = []
    for days in windows:
        amount, start = window_sums(every, days).worst()
        strict = window_sums(every, days, strict=True).worst()[0]
        rho = window_sums(as_rho, days, strict=True).worst()[0]
        cases.append(_worst_case(days, amount, strict, start, rho, exact_delta))
    total = total_cost(every)
    cases.append(_worst_case(None, total, total, None, total_cost(as_rho), exact_delta))
    return PrivacyStatement(currency, tuple(cases), tuple(_reader_notes(every)))


def _amount_in_rho(amount: Amount) -> Amount:
    """ε-DP is ε²/2-zCDP (Bun and Steinke 2016, Proposition 1.4). With δ it is ε-DP but for events of probability δ, so
    δ-approximately ε²/2-zCDP (Lemma 8.8 and Definition 8.1).

    A charge for running totals, priced by the strategy's squares relative to the dearest column's, is covered too: with Laplace noise of scale b it has
    ε = L1 · max_t Σᵢ C_it / b, and sum i costs (L1 Σ_t C_it m_t / b)²/2 in ρ. All together are at most ε²/2 · Σᵢ (Σ_t C_it m_t)² / max_t Σᵢ C_it²,
    because max_t Σᵢ C_it² ≤ (max_t Σᵢ C_it)² where no entry is negative.
    """
    if amount.currency == "rho":
        return amount
    return replace(Amount.charge(amount.epsilon, currency="rho"), atto=amount.atto)


def _worst_case(
    days: int | None, amount: Amount, strict: Amount, start: dt.date | None, rho: Amount, delta: Fraction
) -> WorstCase:
    """Both accounts of one window. Where the sum of ε is the smaller one it holds with any δ as well; ρ may promise nothing."""
    if not amount.nano or amount.is_unlimited:
        return WorstCase(days, amount, strict, start, math.inf if amount.nano else 0.0, Fraction(0))
    stated = not rho.is_unlimited and rho.rho <= MAX_STATED_LOSS
    epsilon, with_delta = float(epsilon_of(rho.rho, delta)) if stated else math.inf, delta + rho.delta
    if strict.currency == "epsilon" and float(strict.epsilon) <= epsilon:
        epsilon, with_delta = float(strict.epsilon), strict.delta
    return WorstCase(days, amount, strict, start, epsilon, with_delta)


def _reader_notes(charges: Sequence[Charge]) -> Iterator[str]:
    """What a reader must know to read the figures right."""
    units = {c.covers.unit for c in charges if c.covers is not None}
    if units - {UNIT_PERSON}:
        yield "where the unit is a trip: for a person with one trip on every day; n trips a day cost n times as much (n² times ρ)"
    if UNIT_REPLACED_TRIP in units:
        yield "where a trip is replaced: for trips that others replace on the same days"
    if any(c.covers is not None and c.covers.unit == UNIT_PERSON and c.covers.per != "day" for c in charges):
        yield (
            "where a window cuts a unit's period (a week, a month, a release), the sum is for a person without other trips in that "
            "period, and the strict sum for anybody; caps are about the sum"
        )
    unstated = sum(c.covers is None for c in charges)
    if unstated:
        yield f"{unstated} charges do not state their unit: each counts as one unit in every window"
    undated = sum(_lacks_dates(c.covers) for c in charges)
    if undated:
        yield (
            f"{undated} charges do not state their days: they count in every window; where their unit is a trip or has a period, "
            "there is no limit for all days together"
        )


def _lacks_dates(covers: ChargeScope | None) -> bool:
    return covers is not None and covers.first is None
