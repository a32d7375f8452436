"""How much may be spent: in all, and for one person in any window of so many days."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cbdp.errors import BudgetError, InputError
from cbdp.parts import did_you_mean
from cbdp.privacy.ledger.amounts import Amount, Charge, Currency
from cbdp.privacy.ledger.windows import WindowSums
from cbdp.privacy.numbers import Number

TOTAL = "total"
SPANS: Mapping[str, int] = {"per_day": 1, "per_7_days": 7, "per_30_days": 30, "per_year": 365}
FIELDS: Mapping[str, int] = {f"cap_{days}_nano": days for days in SPANS.values()}  # of an entry
PATIENCE = 3 * 366  # days to look ahead for a time when a charge fits again


@dataclass(frozen=True)
class Caps:
    """The most that all charges may add up to, and the most that windows of days may cost one person.

    >>> caps = Caps(Amount(nano=2 * 10**9), ((1, 10**9),))
    >>> str(caps.total)
    '2'
    """

    total: Amount
    windows: tuple[tuple[int, int], ...] = ()  # days, units of 10⁻⁹; by length

    @classmethod
    def of(
        cls, cap: Number | Mapping[str, Number], delta: Number = 0, *, currency: Currency = "epsilon"
    ) -> Caps:
        """From a number, or a table like {"total": 10, "per_day": 1, "per_30_days": 5}; without a total there is none."""
        if not isinstance(cap, Mapping):
            return cls(Amount.limit(cap, delta, currency=currency))
        known = [TOTAL, *SPANS]
        for name in cap:
            if name not in known:
                raise InputError(f"cap has no {name!r}: {did_you_mean(name, known)}")
        if not cap:
            raise InputError(f"cap is an empty table: give at least one of {', '.join(known)}")
        total = Amount.unlimited(delta, currency=currency)
        if TOTAL in cap:
            total = Amount.limit(cap[TOTAL], delta, currency=currency)
        stated = {SPANS[n]: Amount.limit(value).nano for n, value in cap.items() if n in SPANS}
        return cls(total, tuple(sorted(stated.items())))

    def fields(self) -> dict[str, str | int]:
        """As the first entry of a ledger states them. In an ε-ledger with a total alone it is as it always was."""
        found: dict[str, str | int] = {"cap_atto": self.total.atto}
        if not self.total.is_unlimited:
            found["cap_nano"] = self.total.nano
        if self.total.currency != "epsilon":
            found["currency"] = self.total.currency
        return found | {f"cap_{days}_nano": nano for days, nano in self.windows}

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Caps:
        currency = fields.get("currency", "epsilon")
        total = Amount.unlimited(currency=currency).nano
        windows = tuple((days, fields[name]) for name, days in FIELDS.items() if name in fields)
        return cls(Amount(fields.get("cap_nano", total), fields["cap_atto"], currency), windows)

    def window(self, days: int) -> Amount:
        """The cap of windows of this length; δ has none of its own."""
        return Amount(dict(self.windows)[days], self.total.atto, self.total.currency)

    def __str__(self) -> str:
        names = {days: name.replace("_", " ") for name, days in SPANS.items()}
        listed = [f"{replace(self.window(days), atto=0)} {names[days]}" for days, _ in self.windows]
        if self.total.is_unlimited and listed:
            return ", ".join(listed)
        return ", ".join([f"{self.total}" + (" in all" if listed else ""), *listed])


def words(days: int) -> str:
    """A window in words."""
    return "a day" if days == 1 else f"{days} days"


def check_windows(caps: Caps, sums: Mapping[int, WindowSums], charge: Charge) -> None:
    """Refuse a charge that would cost one person more than a cap in some window. Proof: docs/proofs/windows.md."""
    if caps.windows and (charge.covers is None or charge.covers.first is None):
        raise BudgetError(
            "this ledger has caps for windows of days, and the charge does not state which days it covers: release it as a "
            "series, or restrict it by universe.days with a first and a last day"
        )
    for days, nano in caps.windows:
        cost, start = sums[days].worst_with(charge)
        if cost > nano:
            raise BudgetError(_refusal(caps, sums, charge, days, start))


def check_together(caps: Caps, before: Iterable[Charge], wanted: Iterable[Charge]) -> None:
    """Refuse several charges that fit one by one, but not one after the other."""
    sums = {days: WindowSums(days, caps.total.currency) for days, _ in caps.windows}
    spent = Amount(currency=caps.total.currency)
    for charge in before:
        spent += charge.amount
        for one in sums.values():
            one.add(charge)
    for charge in wanted:
        spent += charge.amount
        if not spent.within(caps.total):
            raise BudgetError(
                f"charges of {charge.amount} and what goes with it do not fit: they would add up to {spent}, and the cap is {caps.total}"
            )
        check_windows(caps, sums, charge)
        for one in sums.values():
            one.add(charge)


def _refusal(caps: Caps, sums: Mapping[int, WindowSums], charge: Charge, days: int, start: dt.date) -> str:
    cap, with_it = caps.window(days).nano, sums[days].worst_with(charge)[0]
    alone = WindowSums(days).worst_with(charge)[0]
    currency = caps.total.currency
    left = Amount(max(0, cap - with_it + alone), 0, currency)
    last = start + dt.timedelta(days=days - 1)
    window = f"on {start}" if days == 1 else f"in the {days} days from {start} to {last}"
    return (
        f"a charge that costs one person {Amount(alone, 0, currency)} {window} does not fit: {left} of the cap "
        f"{Amount(cap, 0, currency)} for {words(days)} is left there; {_again(caps, sums, charge)}"
    )


def _again(caps: Caps, sums: Mapping[int, WindowSums], charge: Charge) -> str:
    """From which day on the same charge fits."""
    assert charge.covers is not None
    assert charge.covers.first is not None
    assert charge.covers.last is not None
    for later in range(1, PATIENCE):
        try:
            shift = dt.timedelta(days=later)
            moved = replace(charge.covers, first=charge.covers.first + shift, last=charge.covers.last + shift)
        except OverflowError:
            break
        moved_charge = replace(charge, covers=moved)
        if all(sums[days].worst_with(moved_charge)[0] <= nano for days, nano in caps.windows):
            return f"it fits again for days from {moved.first} on, or ask for less"
    return "it fits on no other day: ask for less"
