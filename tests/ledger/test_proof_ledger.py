"""The checks that docs/proofs names for the ledger: windows and caps by z3, group prices and rounding by all small cases, the chain by forgeries."""

from __future__ import annotations

import datetime as dt
import itertools
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import z3
from ledger.symbolic import Whole, formula_of, paths

from cbdp.errors import BudgetError, InputError
from cbdp.ledger import Amount, Charge, ChargeScope, Ledger, LedgerError
from cbdp.ledger import windows as caps_module
from cbdp.ledger.chain import LedgerState
from cbdp.ledger.charges import UNIT_PERSON, UNIT_TRIP
from cbdp.ledger.windows import (
    Caps,
    check_together,
    cost_in_days,
    periods_at_most,
    periods_cut,
    periods_touched,
    person_cost,
)
from cbdp.privacy.continual import STRATEGIES

ROWS = 6
FIRST = dt.date(2026, 3, 27)  # a Friday: the span holds the ends of two weeks and of a month
SPAN = 12  # days of a charge
DAYS = [FIRST + dt.timedelta(days=n) for n in range(SPAN)]


def period(day: dt.date, per: str) -> int:
    """The unit's period of a day, by the calendar of the standard library."""
    names = {
        "day": day.toordinal(),
        "week": day.isocalendar()[1],
        "month": 12 * day.year + day.month,
        "release": 0,
    }
    return names[per]


def covering(per: str, first: dt.date = FIRST, last: dt.date = DAYS[-1]) -> ChargeScope:
    return (
        ChargeScope(UNIT_TRIP, first=first, last=last)
        if per == "trip"
        else ChargeScope(UNIT_PERSON, per, 2, first, last)
    )


def steps_of(rows: list[Any], first: int, last: int, per: str) -> tuple[Any, Any]:
    """How many steps of the unit lead from a person's rows to those outside a window, and whether rows are left in a period that loses some.

    Losing all rows of a period is one step (a unit removed); losing some of them is two (one unit removed, another added).
    """
    steps, changed = [], []
    for number in sorted({period(day, per) for day in DAYS}):
        of_period = [n for n in range(SPAN) if period(DAYS[n], per) == number]
        gone = z3.Or(*(row == n for row in rows for n in of_period if first <= n <= last), False)
        left = z3.Or(*(row == n for row in rows for n in of_period if not first <= n <= last), False)
        steps.append(z3.If(gone, z3.If(left, 2, 1), 0))
        changed.append(z3.And(gone, left))
    return z3.Sum(steps), z3.Or(*changed)


def test_a_window_is_as_many_steps_as_periods_are_counted() -> None:
    """z3, any six rows of a person, every window: removing what lies in it takes no more steps of the unit than are charged, and that many can be needed."""
    rows = [z3.Int(f"row{i}") for i in range(ROWS)]
    inside = [z3.And(row >= 0, row < SPAN) for row in rows]
    for per in ("trip", "day", "week", "month", "release"):
        covers = covering(per)
        solver = z3.SimpleSolver()
        solver.add(*inside)
        for first, last in itertools.combinations_with_replacement(range(SPAN), 2):
            ends = DAYS[first].toordinal(), DAYS[last].toordinal()
            touched, cut = periods_touched(covers, *ends), periods_cut(covers, *ends)
            steps, changed = steps_of(rows, first, last, "day" if per == "trip" else per)
            assert solver.check(z3.Not(changed), steps > touched) == z3.unsat, (per, first, last)
            assert solver.check(steps > touched + cut) == z3.unsat, (per, first, last)
            if touched + cut <= ROWS // 2:
                assert solver.check(z3.Not(changed), steps == touched) == z3.sat, "less could be charged"
                assert solver.check(steps == touched + cut) == z3.sat
            assert touched <= periods_at_most(covers, last - first + 1)


def test_several_steps_cost_what_a_group_costs() -> None:
    """All changes of two counts: m steps of length 1 in the same counts reach m² in squares and never exceed it, in counts of their own m; a cut period is two steps in the same counts."""
    vectors = [np.array(v) for v in itertools.product((-1, 0, 1), repeat=2) if np.abs(v).sum() <= 1]
    one = Amount(1000, 0, "rho")
    for periods, cut in ((1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (3, 2)):
        steps = periods + cut
        together = max(int((sum(own) ** 2).sum()) for own in itertools.product(vectors, repeat=steps))
        in_own = [
            max(int((sum(own) ** 2).sum()) for own in itertools.product(vectors, repeat=n)) for n in (1, 2)
        ]
        told_apart = (periods - cut) * in_own[0] + cut * in_own[1]
        for apart, squares in ((False, together), (True, told_apart)):
            charge = Charge("c", "r", one, "", "", "", replace(covering("day"), disjoint_periods=apart))
            assert person_cost(charge, periods, cut).nano == 1000 * squares
            pure = replace(charge, amount=Amount(1000, 0))
            assert person_cost(pure, periods, cut).nano == 1000 * steps
    for periods, atto in itertools.product((2, 3), (1, 10**6)):  # δ of a group: m · e^((m − 1) ε) · δ
        stated = person_cost(Charge("c", "r", Amount(10**9, atto), "", "", "", covering("day")), periods).atto
        exact = Fraction(periods * atto) * Fraction(str(np.exp(periods - 1.0)))
        assert exact <= stated <= exact * Fraction(1000001, 1000000) + 1


def spans() -> Iterator[tuple[tuple[str, int, int], ...]]:
    """Units and days of up to three charges, near one another and overlapping."""
    yield (("day", 0, 0), ("day", 0, 0), ("day", 1, 1))
    yield (("day", 0, 2), ("week", 1, 4), ("day", 3, 3))
    yield (("release", 0, 4), ("trip", 2, 3), ("day", 4, 5))
    yield (("month", 2, 6), ("day", 5, 5))


def test_no_amounts_exceed_a_cap() -> None:
    """z3 runs the code that refuses charges, for any amounts and caps: what it accepts keeps every window and the total, and what it refuses would not."""
    before, caps_module._cap_error = (
        caps_module._cap_error,
        lambda *_: "refused",
    )  # its text is of no interest here
    try:
        for currency, days, units in itertools.product(("epsilon", "rho"), (1, 2), spans()):
            judged(currency, days, units)
    finally:
        caps_module._cap_error = before


def judged(currency: Any, days: int, units: tuple[tuple[str, int, int], ...]) -> None:
    amounts = [z3.Int(f"amount{i}") for i in range(len(units))]
    total, window = z3.Int("total"), z3.Int("window")
    rules = [*(a >= 1 for a in amounts), total >= 1, window >= 1]
    limits = Caps(Amount(Whole(total), 0, currency), ((days, Whole(window)),))  # type: ignore[arg-type]
    charges = [
        Charge("c", "r", Amount(Whole(a), 0, currency), "", "", "", covering(per, DAYS[first], DAYS[last]))  # type: ignore[arg-type]
        for a, (per, first, last) in zip(amounts, units, strict=True)
    ]

    def accepted() -> bool:
        try:
            check_together(limits, charges[:1], charges[1:])
        except BudgetError:
            return False
        return True

    sums = []  # of every window, by the calendar of the standard library
    for start in range(-days + 1, SPAN):
        cost = []
        for a, (per, first, last) in zip(amounts, units, strict=True):
            touching = range(max(first, start), min(last, start + days - 1) + 1)
            many = len({period(DAYS[n], "day" if per == "trip" else per) for n in touching})
            cost.append(a * many ** (2 if currency == "rho" else 1))
        sums.append(z3.Sum(cost))
    fits = z3.And(z3.Sum(amounts) <= total, *(s <= window for s in sums))
    already = z3.And(
        amounts[0] <= total,
        *(z3.substitute(s, *((a, z3.IntVal(0)) for a in amounts[1:])) <= window for s in sums),
    )
    outcomes = set()
    for result, solver in paths(accepted, [*rules, already]):  # what was charged before fitted
        outcomes.add(result)
        assert solver.check(z3.Not(fits) if result else fits) == z3.unsat, (currency, days, units, result)
    assert outcomes == {True, False}


def test_charges_round_up_and_caps_down() -> None:
    """All small fractions: a charge covers its ε, ρ or ε²/2 and δ, a cap is not above what was asked for, and neither is off by a whole unit."""
    for value in {Fraction(n, d) for n in range(1, 12) for d in (1, 3, 7, 10**9, 3 * 10**9)}:
        charged = Amount.charge(value, value / 50)
        assert 0 <= Fraction(charged.nano, 10**9) - value < Fraction(1, 10**9)
        assert 0 <= charged.delta - value / 50 < Fraction(1, 10**18)
        assert 0 <= Amount.charge(value, currency="rho").rho - value**2 / 2 < Fraction(1, 10**9)
        assert 0 <= Amount.charge_rho(value).rho - value < Fraction(1, 10**9)
        if value * 10**9 >= 1:
            assert 0 <= value - Amount.limit(value).epsilon < Fraction(1, 10**9)


def test_sums_of_charges_are_exact() -> None:
    """z3, any amounts: sums and differences of amounts are those of whole numbers, and "within" is both at most."""
    a, b, c, d = (z3.Int(name) for name in "abcd")
    one, other = Amount(Whole(a), Whole(b), "rho"), Amount(Whole(c), Whole(d), "rho")  # type: ignore[arg-type]
    for added, solver in paths(lambda: one + other, []):
        assert (
            solver.check(z3.Or(formula_of(added.nano) != a + c, formula_of(added.atto) != b + d)) == z3.unsat
        )
    for less, solver in paths(lambda: one - other, []):
        assert solver.check(z3.Or(formula_of(less.nano) != a - c, formula_of(less.atto) != b - d)) == z3.unsat
    for within, solver in paths(lambda: one.within(other), []):
        assert solver.check((z3.And(a <= c, b <= d)) != within) == z3.unsat


def ledger_rows(folder: Path) -> list[tuple[Any, ...]]:
    with Ledger.open(folder / "l", dataset="d", cap=1, create=True) as ledger:
        charges = [ledger.reserve(f"r{n}", "1/4", covers=covering("day")) for n in range(3)]
        ledger.released(charges[1], "0" * 64, "out")
        assert ledger.spent == Amount(750_000_000)
    with closing(sqlite3.connect(folder / "l")) as raw:
        return raw.execute("SELECT sequence, previous, entry, hash FROM entry ORDER BY sequence").fetchall()


def posted(rows: list[tuple[Any, ...]]) -> LedgerState:
    book = LedgerState(Path("l"))
    for row in rows:
        book.post(row)
    return book


def test_no_entry_can_be_changed_or_left_out() -> None:
    """Every digit of every entry changed, every entry left out, doubled or moved: the chain breaks; cut off at the end, the head of a release is missing."""
    with tempfile.TemporaryDirectory() as folder:
        rows = ledger_rows(Path(folder))
    whole = posted(rows)
    forgeries = []
    for n, (sequence, previous, text, digest) in enumerate(rows):
        changed = {text.replace(c, str((int(c) + 1) % 10), 1) for c in set(text) if c.isdigit()}
        forgeries += [[*rows[:n], (sequence, previous, other, digest), *rows[n + 1 :]] for other in changed]
        if n + 1 < len(rows):
            forgeries.append([*rows[:n], *rows[n + 1 :]])
            forgeries.append([*rows[:n], rows[n + 1], rows[n], *rows[n + 2 :]])
        forgeries.append([*rows[: n + 1], rows[n], *rows[n + 1 :]])
    assert len(forgeries) > 40
    for forged in forgeries:
        try:
            posted(forged)
        except LedgerError:
            continue
        raise AssertionError(forged)
    assert all(posted(rows[:n]).head not in (row[3] for row in rows[n:]) for n in range(1, len(rows)))
    assert whole.head not in posted(rows[:-1]).heads


def test_the_file_takes_new_entries_only() -> None:
    """Every statement that would change, remove, replace or skip an entry is refused by the file itself, also by another program's connection."""
    statements = (
        "UPDATE entry SET entry = '' WHERE sequence = 2",
        "DELETE FROM entry WHERE sequence = 4",
        "INSERT OR REPLACE INTO entry SELECT sequence, previous, entry, hash FROM entry WHERE sequence = 2",
        "INSERT INTO entry SELECT 9, previous, entry, hash FROM entry WHERE sequence = 4",
        "INSERT INTO entry SELECT 6, previous, entry, hash FROM entry WHERE sequence = 2",
    )
    with tempfile.TemporaryDirectory() as folder:
        rows = ledger_rows(Path(folder))
        assert len(rows) == 5
        for statement in statements:
            with closing(sqlite3.connect(Path(folder) / "l", isolation_level=None)) as raw:
                try:
                    raw.execute(statement)
                except sqlite3.IntegrityError as refused:
                    assert "append-only" in str(refused)  # noqa: PT017 - the mutants' runner has no pytest
                    continue
                raise AssertionError(statement)


def test_two_who_charge_at_once_keep_the_cap() -> None:
    """Two connections that both saw room for a charge: they write one after the other, one gets it, the other is refused, and a third sees what was spent."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "l"
        with (
            Ledger.open(path, dataset="d", cap=1, create=True) as one,
            Ledger.open(path, dataset="d", timeout=0.01) as other,
        ):
            assert str(one.left) == str(other.left) == "1"
            with one._store.writing():
                assert not fits(other, "1/5"), "two wrote at once"
            one.reserve("a", "3/5")
            with Ledger.view(path) as seen:
                assert str(seen.spent) == "0.6", "a charge is in the file when `reserve` returns"
            assert not fits(other, "3/5"), "both charges fitted"
            assert fits(other, "2/5")
            assert str(one.spent) == "1"


def fits(ledger: Ledger, epsilon: str) -> bool:
    """Whether the ledger takes a charge; a refusal is one line, for the cap or because somebody else is writing."""
    try:
        ledger.reserve("r", epsilon)
    except (BudgetError, InputError):
        return False
    return True


def test_windows_of_running_totals_cost_what_their_sums_change() -> None:
    """Three weeks of running totals, every window of days, every strategy: the price is that of the sums' change, worked out entry by entry."""
    monday = dt.date(2026, 3, 2)
    for name, (currency, power) in itertools.product(STRATEGIES, (("epsilon", 1), ("rho", 2))):
        covers = ChargeScope(
            UNIT_PERSON,
            "day",
            2,
            monday,
            monday + dt.timedelta(days=20),
            strategy=name,
            periods=3,
            calendar="weekly",
        )
        charge = Charge("c", "r", Amount(10**9, 0, currency), "", "", "", covers)  # type: ignore[arg-type]
        rows = STRATEGIES[name](3).rows
        single = int((rows**power).sum(axis=0).max())  # one day in one week
        for first, last in itertools.combinations_with_replacement(range(21), 2):
            held = [sum(first <= day <= last for day in range(7 * week, 7 * week + 7)) for week in range(3)]
            exact = Fraction(int(((rows @ np.array(held)) ** power).sum()), single) * 10**9
            result = cost_in_days(charge, *(monday.toordinal() + n for n in (first, last)))
            assert result.nano >= exact, (name, currency, first, last)
            if (
                0 not in held
            ):  # else the same days elsewhere in the span may be dearer, and the dearest place is charged
                assert result.nano < exact + 1
