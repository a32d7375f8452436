"""At most so many trips of a person, as SQL: the choice by tickets, and other words for what must be true of it."""

# ruff: noqa: S608 - every name and number in these queries is ours, and text is quoted where it enters

from __future__ import annotations

import math

from cbdp.trips.engines.sql import Dialect, Named, Numbered, Step, query, steps_inside
from cbdp.trips.kinds import Kind
from cbdp.trips.plan import Bound, CountingPlan


def group(bound: Bound) -> str:
    """The columns that tell apart whose trips are bounded together. Proof: docs/proofs/bounding.md."""
    return "person" if bound.within is None else "person, period"


def carried(bound: Bound, *, own: bool = False) -> str:
    """The columns of a kept trip."""
    return f"{group(bound)}, flat{', own' if own else ''}"


def inside(bound: Bound) -> str:
    """The columns that bounding needs of a trip."""
    return f"{carried(bound)}, slot" if bound.apart else carried(bound)


def chosen(bound: Bound, kind: Kind, say: Dialect, secret: str, *, own: bool) -> list[Step]:
    """Steps from `inside` to `kept`, by way of `ticketed`; `secret` is the table that holds the key.

    With `own`, rows also say how many trips the person has, in the period where there is one, before any is dropped.

    Proof: docs/proofs/bounding.md.
    """
    who, columns = group(bound), carried(bound, own=own)
    steps, rows = [], "inside"
    if own:
        steps.append(
            Step("owned", f"SELECT {inside(bound)}, COUNT(*) OVER (PARTITION BY {who}) AS own FROM inside")
        )
        rows = "owned"
    if bound.apart:
        steps += _apart(bound, kind, say, secret, rows, columns)
        rows = "apart"
    ticket = say.ticket(bound.person, kind, _numbered(bound, slot=False))
    return [
        *steps,
        Step("numbered", f"SELECT {columns}, {_row_number(who, 'flat')} AS j FROM {rows}"),
        Step("ticketed", f"SELECT {columns}, j, {ticket} AS ticket FROM numbered CROSS JOIN {secret} s"),
        Step("chosen", f"SELECT {columns}, {_row_number(who, 'ticket, j')} AS place FROM ticketed"),
        Step("kept", f"SELECT {columns} FROM chosen WHERE place <= {bound.most}"),
    ]


def _apart(bound: Bound, kind: Kind, say: Dialect, secret: str, rows: str, columns: str) -> list[Step]:
    """One trip of each slot, by tickets of its own: what was drawn here decides nothing later."""
    slot = f"{group(bound)}, slot"
    ticket = say.ticket(bound.person, kind, _numbered(bound, slot=True))
    return [
        Step("slotted", f"SELECT {columns}, slot, {_row_number(slot, 'flat')} AS j FROM {rows}"),
        Step("dealt", f"SELECT {columns}, slot, j, {ticket} AS ticket FROM slotted CROSS JOIN {secret} s"),
        Step("placed", f"SELECT {columns}, {_row_number(slot, 'ticket, j')} AS place FROM dealt"),
        Step("apart", f"SELECT {columns} FROM placed WHERE place = 1"),
    ]


def _numbered(bound: Bound, *, slot: bool) -> Numbered:
    """What numbers a trip in its ticket: j, the period where there is one, and the slot while one trip of each is chosen."""
    period = () if bound.within is None else (("/", "period"),)
    return ((":", "j"), *period, *((("+", "slot"),) if slot else ()))


def _row_number(of: str, order: str) -> str:
    return f"ROW_NUMBER() OVER (PARTITION BY {of} ORDER BY {order})"


# Queries


def by_person(plan: CountingPlan, say: Dialect, source: str, named: Named) -> str:
    """Rows (person, flat) of all trips inside, in order; with a period, rows (person, period, flat)."""
    assert plan.bound is not None
    columns = carried(plan.bound)
    return query(steps_inside(plan, say, source, named), f"SELECT {columns} FROM inside ORDER BY {columns}")


def loads(plan: CountingPlan, say: Dialect, source: str, named: Named) -> str:
    """Rows (trips, persons, own): how many persons have how many trips, in one period where there is one, and all their trips.

    Of trips in the same slot, `trips` counts one, and `own` each.
    """
    assert plan.bound is not None
    trips = "COUNT(DISTINCT slot)" if plan.bound.apart else "COUNT(*)"
    each = f"SELECT {trips} AS trips, COUNT(*) AS own FROM inside GROUP BY {group(plan.bound)}"
    last = f"SELECT trips, COUNT(*) AS persons, {say.total('own')} AS own FROM ({each}) e GROUP BY trips ORDER BY trips"
    return query(steps_inside(plan, say, source, named), last)


# Invariants: other words for what the count relies on


def allowed(plan: CountingPlan, say: Dialect, source: str) -> str:
    """The most trips that may be kept in all: of every person at most `most` in each period there is, and no more than they have rows."""
    assert plan.bound is not None
    who = say.nobody_else(plan.bound.person, plan.fields[plan.bound.person].kind)
    each = f"SELECT COUNT(*) AS trips FROM (SELECT {who} AS who FROM {source}) r WHERE who IS NOT NULL GROUP BY who"
    within = plan.bound.within
    most = plan.bound.most * (1 if within is None else len(set(within.periods.tolist())))
    return f"SELECT SUM(CASE WHEN trips > {most} THEN {most} ELSE trips END) FROM ({each}) e"


def most_kept(bound: Bound, kept: str, person: str, *, slot: str = "") -> str:
    """The greatest number of kept trips of any person, in any period and, where one is given, in any slot."""
    by = [person, *(["period"] if bound.within is not None else []), *([slot] if slot else [])]
    each = f"SELECT COUNT(*) AS trips FROM {kept} GROUP BY {', '.join(by)}"
    return f"SELECT MAX(trips) AS trips FROM ({each}) e"


def slot_of(plan: CountingPlan, say: Dialect) -> str:
    """The slot of a kept trip, from its `flat` alone: not in the words that chose it."""
    assert plan.bound is not None
    made = ""
    for axis in plan.bound.apart:
        code = f"MOD({say.div('flat', math.prod(plan.shape[axis + 1 :]))}, {plan.shape[axis]})"
        made = f"({made} * {plan.shape[axis]} + {code})" if made else code
    return made
