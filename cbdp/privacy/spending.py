"""What all releases together cost one person: statements that follow from the charges of a ledger alone.

For every window of 1, 7, 30 and 365 consecutive service days, and for all days together, the worst case over all windows and all
persons: pure ε (the sum), and (ε, δ) by zero-concentrated accounting. `cbdp.privacy.ledger.windows` has the rule, docs/explanation/series.md the
proof. The statement is about adding or removing what a person did. Telling two ways of travelling apart is two such steps.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from cbdp.privacy.accounting import epsilon_of
from cbdp.privacy.ledger import Amount, Charge, Covers
from cbdp.privacy.ledger.amounts import Currency
from cbdp.privacy.ledger.covers import PERSON, REPLACED
from cbdp.privacy.ledger.windows import WINDOWS, since_start, window_sums
from cbdp.privacy.numbers import Number, probability

DELTA = Fraction(1, 10**6)


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
class Statement:
    """What the releases of a ledger cost one person at most."""

    currency: Currency
    windows: tuple[WorstCase, ...]
    notes: tuple[str, ...] = ()

    def window(self, days: int | None) -> WorstCase:
        return next(w for w in self.windows if w.days == days)


def statement(
    charges: Iterable[Charge], delta: Number = DELTA, *, windows: Sequence[int] = WINDOWS
) -> Statement:
    """The worst case for one person, from the charges of one ledger."""
    every, given = list(charges), probability(delta)
    currency: Currency = every[0].amount.currency if every else "epsilon"
    as_rho = [replace(charge, amount=_as_rho(charge.amount)) for charge in every]
    found = []
    for days in windows:
        amount, start = window_sums(every, days).worst()
        strict = window_sums(every, days, strict=True).worst()[0]
        rho = window_sums(as_rho, days, strict=True).worst()[0]
        found.append(_worst(days, amount, strict, start, rho, given))
    total = since_start(every)
    found.append(_worst(None, total, total, None, since_start(as_rho), given))
    return Statement(currency, tuple(found), tuple(_notes(every)))


def _as_rho(amount: Amount) -> Amount:
    """ε-DP is ε²/2-zCDP; with δ, approximately (Bun and Steinke 2016, Lemma 8.8)."""
    if amount.currency == "rho":
        return amount
    return replace(Amount.charge(amount.epsilon, currency="rho"), atto=amount.atto)


def _worst(
    days: int | None, amount: Amount, strict: Amount, start: dt.date | None, rho: Amount, delta: Fraction
) -> WorstCase:
    """Both accounts of one window. Where the sum of ε is the smaller one it holds with any δ as well."""
    if not amount.nano or amount.is_unlimited:
        return WorstCase(days, amount, strict, start, math.inf if amount.nano else 0.0, Fraction(0))
    epsilon, with_delta = float(epsilon_of(rho.rho, delta)), delta + rho.delta
    if strict.currency == "epsilon" and float(strict.epsilon) <= epsilon:
        epsilon, with_delta = float(strict.epsilon), strict.delta
    return WorstCase(days, amount, strict, start, epsilon, with_delta)


def _notes(charges: Sequence[Charge]) -> Iterator[str]:
    """What a reader must know to read the figures right."""
    units = {c.covers.unit for c in charges if c.covers is not None}
    if units - {PERSON}:
        yield "where the unit is a trip: for a person with one trip on every day; n trips a day cost n times as much (n² times ρ)"
    if REPLACED in units:
        yield "where a trip is replaced: for trips that others replace on the same days"
    if any(c.covers is not None and c.covers.unit == PERSON and c.covers.per != "day" for c in charges):
        yield (
            "where a window cuts a unit's period (a week, a month, a release), the sum is for a person without other trips in that "
            "period, and the strict sum for anybody"
        )
    unstated = sum(c.covers is None for c in charges)
    if unstated:
        yield f"{unstated} charges do not state their unit: each counts as one unit in every window"
    undated = sum(_undated(c.covers) for c in charges)
    if undated:
        yield (
            f"{undated} charges do not state their days: they count in every window; where their unit is a trip or has a period, "
            "there is no limit for all days together"
        )


def _undated(covers: Covers | None) -> bool:
    return covers is not None and covers.first is None
