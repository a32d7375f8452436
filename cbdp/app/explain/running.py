"""What running totals of a series would cost and how precise they would be, before anything is charged."""

from __future__ import annotations

from fractions import Fraction

from cbdp.app.plan import Plan
from cbdp.app.printing import aligned
from cbdp.app.series.spans import declared, strategy_of
from cbdp.estimate.running import weighed
from cbdp.mechanisms import ConstraintBased
from cbdp.mechanisms.in_series import paid_tables
from cbdp.privacy.laws import Law
from cbdp.privacy.ledger.amounts import SYMBOLS
from cbdp.privacy.ledger.windows import days_of_sums
from cbdp.privacy.running import STRATEGIES, Strategy

WINDOWS = (7, 30, 365)


def running_lines(plan: Plan) -> list[str]:
    """Nothing where the configuration keeps no running totals."""
    given = None if plan.config.series is None else declared(plan)
    if given is None:
        return []
    mechanism = plan.mechanism
    assert isinstance(mechanism, ConstraintBased)
    name, own = strategy_of(plan, given), {a.feature: a for a in mechanism.answers()}
    sums = STRATEGIES[name](given.periods)
    amounts = {table: given.share * own[table].share for table in given.tables}
    total, symbol = sum(amounts.values(), Fraction(0)), SYMBOLS[mechanism.currency]
    price = [
        f"{days} days in a row {_times(days_of_sums(name, given.periods, days, mechanism.currency))} times as much"
        for days in WINDOWS
        if days <= given.periods
    ]
    more = f" A person pays for {', for '.join(price)}." if price else ""
    paid = paid_tables(mechanism, amounts, sums)
    rows = [_row(table, sums, paid[table].law, own[table].law) for table in given.tables]
    said = (
        f"Before the first release {symbol} = {float(total):.6g} is charged for a span of {given.periods:,} releases, by the {name}: for one "
        f"period of the unit, beside what each release costs.{more}"
    )
    head = ("table", "a day, ±", "the total of the span, ±", "days added up, ±")
    return [
        said,
        "",
        *aligned([head, *rows], right=(1, 2, 3)),
        "",
        "± is a standard deviation in trips.",
    ]


def _times(factor: Fraction) -> str:
    return f"{float(factor):,.0f}" if factor >= 100 else f"{float(factor):.3g}"


def _row(table: str, sums: Strategy, rows: Law, own: Law) -> tuple[str, ...]:
    """The noise of the last day, of the total after it, and of as many days measured one by one."""
    day, periods = own.variance(), sums.periods
    whole = weighed(sums, rows.variance(), [day] * periods)
    before = weighed(sums, rows.variance(), [day] * (periods - 1)) if periods > 1 else None
    found = whole.less(before).variance, whole.variance, day * periods
    return (table, *(f"{variance**0.5:,.1f}" for variance in found))
