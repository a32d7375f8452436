"""Contribution bounding by keyed sampling: of a person's trips those of least ticket, a keyed hash, are kept; the same choice on every engine.

This is bottom-k sampling by hashed ranks (Cohen and Kaplan 2007, "Summarizing data using bottom-k sketches"), with a key that is drawn for
one count. A person's trips inside the universe are numbered j = 1 … N in the order of their types (`flat`); the trip number j has the
ticket SHA-256(key : j : person), and the `most` least are kept, of equal tickets those with the lower j. The choice is a function of the
key and of the person's trips alone: the order of rows, identical rows, partitions and retries cannot change it, and an engine's random
functions have no part in it. docs/explanation/counting.md has the proof.
"""

# ruff: noqa: S608 - every name and number in these queries is ours, and text is quoted where it enters

from __future__ import annotations

import hashlib
import math

from cbdp.counting.columns import ColumnKind
from cbdp.counting.engines.sql import Dialect, NumberedLookup, Step, TableSource, query, steps_inside
from cbdp.counting.plan import ContributionBound, CountingPlan
from cbdp.privacy.entropy import Entropy

KEY_BYTES = 32  # as many as a SHA-256 digest has


def draw_key(source: Entropy) -> bytes:
    """256 bits for one count. They are never stored, logged or shown."""
    return source.words(KEY_BYTES // 8, 64).tobytes()


def ticket_message(
    key: bytes, j: int, person: bytes, *, period: int | None = None, slot: int | None = None
) -> bytes:
    r"""The bytes that are hashed, exactly: the key's 32 bytes, ":", j in decimal digits, ":", the person's bytes.

    Where persons are bounded in periods, j counts the trips of a person in a period, and "/" with the period's number follows it. While one trip
    of each slot is chosen (`apart`), j counts the trips of a person in a slot of a period, and "+" with the slot's number follows.

    The person's bytes are, by what the column holds:
        text            its UTF-8 bytes as stored (no collation, no trimming, no change of case), but "289.0" as "289"; empty text is nobody
        text of a CSV   the same, and numbers by their exact value: whole ones as decimal digits, others as ".", significant digits, "e", exponent
        whole numbers   decimal digits, with "-" in front of negative ones
        real numbers    whole ones as whole numbers (so that 0.0 and -0.0 are one person); others as the engine writes them; NaN is nobody
        anything else   the text that the engine writes for it
    The text is unambiguous: the key has a fixed length and j holds no ":". With persons of up to 19 bytes it is a single block of SHA-256.

    >>> ticket_message(b"k" * 32, 12, b"card 7")
    b'kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk:12:card 7'
    """
    within = b"" if period is None else b"/%d" % period
    among = b"" if slot is None else b"+%d" % slot
    return b"%b:%d%b%b:%b" % (key, j, within, among, person)


def ticket(key: bytes, j: int, person: bytes, *, period: int | None = None, slot: int | None = None) -> str:
    """The ticket of a person's trip number j: 64 hexadecimal digits in small letters, compared as text. Proof: docs/proofs/bounding.md."""
    return hashlib.sha256(ticket_message(key, j, person, period=period, slot=slot)).hexdigest()


# The choice as SQL


def group_columns(bound: ContributionBound) -> str:
    """The columns that tell apart whose trips are bounded together. Proof: docs/proofs/bounding.md."""
    return "person" if bound.within is None else "person, period"


def kept_columns(bound: ContributionBound, *, with_load: bool = False) -> str:
    """The columns of a kept trip."""
    return f"{group_columns(bound)}, flat{', own' if with_load else ''}"


def input_columns(bound: ContributionBound) -> str:
    """The columns that bounding needs of a trip."""
    return f"{kept_columns(bound)}, slot" if bound.apart else kept_columns(bound)


def bounding_steps(
    bound: ContributionBound, kind: ColumnKind, say: Dialect, secret: str, *, with_load: bool
) -> list[Step]:
    """Steps from `input_columns` to `kept`, by way of `ticketed`; `secret` is the table that holds the key.

    With `with_load`, rows also say (`own`) how many trips the person has, in the period where there is one, before any is dropped.

    Proof: docs/proofs/bounding.md.
    """
    who, columns = group_columns(bound), kept_columns(bound, with_load=with_load)
    steps, rows = [], "inside"
    if with_load:
        steps.append(
            Step(
                "owned",
                f"SELECT {input_columns(bound)}, COUNT(*) OVER (PARTITION BY {who}) AS own FROM inside",
            )
        )
        rows = "owned"
    if bound.apart:
        steps += _one_per_slot_steps(bound, kind, say, secret, rows, columns)
        rows = "apart"
    ticket = say.ticket(bound.person, kind, ticket_numbers(bound, slot=False))
    return [
        *steps,
        Step("numbered", f"SELECT {columns}, {_row_number(who, 'flat')} AS j FROM {rows}"),
        Step("ticketed", f"SELECT {columns}, j, {ticket} AS ticket FROM numbered CROSS JOIN {secret} s"),
        Step("chosen", f"SELECT {columns}, {_row_number(who, 'ticket, j')} AS place FROM ticketed"),
        Step("kept", f"SELECT {columns} FROM chosen WHERE place <= {bound.most}"),
    ]


def _one_per_slot_steps(
    bound: ContributionBound, kind: ColumnKind, say: Dialect, secret: str, rows: str, columns: str
) -> list[Step]:
    """One trip of each slot, by tickets of its own: what was drawn here decides nothing later."""
    slot = f"{group_columns(bound)}, slot"
    ticket = say.ticket(bound.person, kind, ticket_numbers(bound, slot=True))
    return [
        Step("slotted", f"SELECT {columns}, slot, {_row_number(slot, 'flat')} AS j FROM {rows}"),
        Step("dealt", f"SELECT {columns}, slot, j, {ticket} AS ticket FROM slotted CROSS JOIN {secret} s"),
        Step("placed", f"SELECT {columns}, {_row_number(slot, 'ticket, j')} AS place FROM dealt"),
        Step("apart", f"SELECT {columns} FROM placed WHERE place = 1"),
    ]


def ticket_numbers(bound: ContributionBound, *, slot: bool) -> NumberedLookup:
    """What numbers a trip in its ticket: j, the period where there is one, and the slot while one trip of each is chosen."""
    period = () if bound.within is None else (("/", "period"),)
    return ((":", "j"), *period, *((("+", "slot"),) if slot else ()))


def _row_number(of: str, order: str) -> str:
    return f"ROW_NUMBER() OVER (PARTITION BY {of} ORDER BY {order})"


# Queries


def person_rows(plan: CountingPlan, say: Dialect, source: str, named: TableSource) -> str:
    """Rows (person, flat) of all trips inside, in order; with a period, rows (person, period, flat)."""
    assert plan.bound is not None
    columns = kept_columns(plan.bound)
    return query(steps_inside(plan, say, source, named), f"SELECT {columns} FROM inside ORDER BY {columns}")


def load_rows(plan: CountingPlan, say: Dialect, source: str, named: TableSource) -> str:
    """Rows (trips, persons, own): how many persons have how many trips, in one period where there is one, and all their trips.

    Of trips in the same slot, `trips` counts one, and `own` each.
    """
    assert plan.bound is not None
    trips = "COUNT(DISTINCT slot)" if plan.bound.apart else "COUNT(*)"
    each = f"SELECT {trips} AS trips, COUNT(*) AS own FROM inside GROUP BY {group_columns(plan.bound)}"
    last = f"SELECT trips, COUNT(*) AS persons, {say.total('own')} AS own FROM ({each}) e GROUP BY trips ORDER BY trips"
    return query(steps_inside(plan, say, source, named), last)


# Invariants: other words for what the count relies on


def max_kept_in_all(plan: CountingPlan, say: Dialect, source: str) -> str:
    """The most trips that may be kept in all: of every person at most `most` in each period there is, and no more than they have rows."""
    assert plan.bound is not None
    who = say.nobody_else(plan.bound.person, plan.fields[plan.bound.person].kind)
    each = f"SELECT COUNT(*) AS trips FROM (SELECT {who} AS who FROM {source}) r WHERE who IS NOT NULL GROUP BY who"
    within = plan.bound.within
    most = plan.bound.most * (1 if within is None else len(set(within.periods.tolist())))
    return f"SELECT SUM(CASE WHEN trips > {most} THEN {most} ELSE trips END) FROM ({each}) e"


def max_kept_by_person(bound: ContributionBound, kept: str, person: str, *, slot: str = "") -> str:
    """The greatest number of kept trips of any person, in any period and, where one is given, in any slot."""
    by = [person, *(["period"] if bound.within is not None else []), *([slot] if slot else [])]
    each = f"SELECT COUNT(*) AS trips FROM {kept} GROUP BY {', '.join(by)}"
    return f"SELECT MAX(trips) AS trips FROM ({each}) e"


def slot_of(plan: CountingPlan, say: Dialect) -> str:
    """The slot of a kept trip, from its `flat` alone: not in the words that chose it."""
    assert plan.bound is not None
    slot = ""
    for axis in plan.bound.apart:
        code = f"MOD({say.div('flat', math.prod(plan.shape[axis + 1 :]))}, {plan.shape[axis]})"
        slot = f"({slot} * {plan.shape[axis]} + {code})" if slot else code
    return slot
