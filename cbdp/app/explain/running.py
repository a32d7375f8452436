"""What running totals of a series would cost and how precise they would be, before anything is charged."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from cbdp.app.plan.facts import PlannedRelease, is_modelled
from cbdp.app.plan.periods import last_of, series_of
from cbdp.app.printing import aligned
from cbdp.app.series.spans import declared, periods_of, strategy_of
from cbdp.estimate.running import weighed
from cbdp.privacy.laws import Law
from cbdp.privacy.ledger import Amount, Charge, Covers
from cbdp.privacy.ledger.amounts import NANO, SYMBOLS
from cbdp.privacy.ledger.windows import window_sums
from cbdp.privacy.running import STRATEGIES, Strategy
from cbdp.privacy.running_price import paid_tables
from cbdp.release.counted import counted

WINDOWS = (7, 30, 365)
LENGTHS = {"daily": "day", "weekly": "week", "monthly": "month"}


def running_lines(plan: PlannedRelease) -> list[str]:
    """Nothing where the configuration keeps no running totals."""
    given = None if plan.config.series is None else declared(plan)
    if given is None:
        return []
    mechanism = plan.mechanism
    assert is_modelled(mechanism)
    name, own = strategy_of(plan, given), {a.feature: a for a in mechanism.answers()}
    series = series_of(plan.config)
    periods = periods_of(series)
    sums = STRATEGIES[name](periods)
    amounts = {table: given.share * own[table].share for table in given.tables}
    total, symbol = sum(amounts.values(), Fraction(0)), SYMBOLS[mechanism.currency]
    price = [
        f"{days} days in a row {_times(times)} times as much" for days, times in _prices(plan, name, periods)
    ]
    more = f" A person pays for {', for '.join(price)}." if price else ""
    paid = paid_tables(mechanism, amounts, sums)
    rows = [_row(table, sums, paid[table].law, own[table].law) for table in given.tables]
    said = (
        f"Before the first release {symbol} = {float(total):.6g} is charged for a span of {periods:,} releases, by the {name}: for one "
        f"period of the unit, beside what each release costs.{more}"
    )
    one = LENGTHS[series.calendar]
    head = ("table", f"a {one}, ±", "the total of the span, ±", f"{one}s added up, ±")
    return [
        said,
        "",
        *aligned([head, *rows], right=(1, 2, 3)),
        "",
        f"± is a standard deviation in {counted(plan.universe).many}.",
    ]


def _prices(plan: PlannedRelease, strategy: str, periods: int) -> Iterator[tuple[int, Fraction]]:
    """For windows that the span has room for: how many times the price of one period of the unit they cost at most, as a ledger would say."""
    series, currency = series_of(plan.config), plan.mechanism.currency
    first = dt.date.fromisoformat(series.start)
    last = first
    for _ in range(periods):
        last = last_of(series.calendar, last) + dt.timedelta(days=1)
    covers = Covers.of_releases(plan.unit, first, last - dt.timedelta(days=1), series.calendar)
    covers = replace(covers, strategy=strategy, periods=periods)
    charge = Charge("", "", Amount(NANO, 0, currency), "", "", "", covers)
    for days in WINDOWS:
        if days <= (last - first).days:
            yield days, Fraction(window_sums([charge], days).worst()[0].nano, NANO)


def _times(factor: Fraction) -> str:
    return f"{float(factor):,.0f}" if factor >= 100 else f"{float(factor):.3g}"


def _row(table: str, sums: Strategy, rows: Law, own: Law) -> tuple[str, ...]:
    """The noise of the last day, of the total after it, and of as many days measured one by one."""
    day, periods = own.variance(), sums.periods
    whole = weighed(sums, rows.variance(), [day] * periods)
    before = weighed(sums, rows.variance(), [day] * (periods - 1)) if periods > 1 else None
    found = whole.less(before).variance, whole.variance, day * periods
    return (table, *(f"{variance**0.5:,.1f}" for variance in found))
