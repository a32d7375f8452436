"""Caps for windows of days: what does not fit is refused before anything is written, and told when it fits again."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledgers import append, opened, refuted

from cbdp.errors import BudgetError, InputError
from cbdp.ledger import Amount, Caps, Charge, ChargeScope
from cbdp.ledger.windows import WindowSums, check_windows, window_sums

DAY = dt.timedelta(days=1)
FIRST = dt.date(2026, 1, 1)


def day(n: int, days: int = 1, per: str = "day") -> ChargeScope:
    return ChargeScope("person", per, 4, FIRST + n * DAY, FIRST + (n + days - 1) * DAY)


def test_a_day_that_is_full_takes_no_more(tmp_path: Path) -> None:
    """The other days do; the line names the day, what is left, and the next day that has room. Nothing is written."""
    with opened(tmp_path, cap={"per_day": 1, "per_30_days": 20}) as book:
        assert str(book.caps) == "1 per day, 20 per 30 days"
        assert book.cap.is_unlimited
        book.reserve("a", "0.75", covers=day(0))
        before = book.head
        with pytest.raises(BudgetError) as refused:
            book.reserve("b", "0.5", covers=day(0))
        assert str(refused.value) == (
            "a charge that costs one person 0.5 on 2026-01-01 does not fit: 0.25 of the cap 1 for a day is left there; "
            "it fits again for days from 2026-01-02 on, or ask for less"
        )
        assert book.head == before
        book.reserve("b", "0.25", covers=day(0))
        book.reserve("b", 1, covers=day(1))
        book.verify()


def test_a_month_that_is_full_names_the_day_when_it_fits_again(tmp_path: Path) -> None:
    """Twenty days of 1 fill 30 days; a charge of 1 fits again when the first of them is 30 days ago."""
    with opened(tmp_path, cap={"per_30_days": 20}) as book:
        for n in range(20):
            book.reserve(f"day {n}", 1, covers=day(n))
        with pytest.raises(
            BudgetError, match=r"in the 30 days from 2026-01-01 to 2026-01-30 does not fit: 0 of"
        ) as no:
            book.reserve("day 20", 1, covers=day(19))
        assert "it fits again for days from 2026-01-31 on" in str(no.value)
        with pytest.raises(BudgetError, match="from 2026-01-31 on"):
            book.reserve("day 29", 1, covers=day(29))
        book.reserve("day 30", 1, covers=day(30))
        with pytest.raises(
            BudgetError, match=r"costs one person 25 in .* fits on no other day: ask for less"
        ):
            book.reserve("far", 1, covers=day(100, 25))


def test_a_charge_must_say_which_days_it_covers(tmp_path: Path) -> None:
    """Without its days it would be in every window for ever."""
    with opened(tmp_path, cap={"per_year": 3}) as book:
        for covers in (None, ChargeScope("trip")):
            with pytest.raises(
                BudgetError, match="does not state which days it covers: release it as a series"
            ):
                book.reserve("r", 1, covers=covers)
        assert len(book.entries()) == 1


def test_a_total_beside_windows_still_holds(tmp_path: Path) -> None:
    """Both are in the first entry, and neither can be changed later."""
    with opened(tmp_path, cap={"total": 2, "per_day": 1}) as book:
        book.reserve("r", 1, covers=day(0))
        book.reserve("r", 1, covers=day(1))
        with pytest.raises(BudgetError, match="0 of the cap 2 is left"):
            book.reserve("r", 1, covers=day(2))
        assert book.entries()[0].shown["cap"] == "2 in all, 1 per day"
    for other in (2, {"total": 2}, {"per_day": 1}, {"total": 2, "per_day": 2}):
        with pytest.raises(InputError, match=r"is 2 in all, 1 per day, not .*: it was fixed"):
            opened(tmp_path, cap=other)
    opened(tmp_path, cap={"total": 2, "per_day": 1}).close()


@pytest.mark.parametrize(
    ("cap", "says"),
    [
        ({"per_week": 1}, "cap has no 'per_week'"),
        ({}, "empty table"),
        ({"per_day": 0}, "cap is 0, it must be above 0"),
    ],
)
def test_a_cap_that_is_none_is_refused(tmp_path: Path, cap: object, says: str) -> None:
    """Before a file is made."""
    with pytest.raises(InputError, match=says):
        opened(tmp_path, cap=cap)
    assert not list(tmp_path.iterdir())


def test_a_forger_must_keep_the_caps_of_windows(tmp_path: Path) -> None:
    """An entry with the right hash that exceeds a window is named, and one that hides its days."""
    with opened(tmp_path, cap={"per_day": 1}) as book:
        book.reserve("r", "0.75", covers=day(0))
    forged: dict[str, object] = {
        "event": "reserved",
        "charge": "c",
        "request": "r",
        "nano": 5 * 10**8,
        "atto": 0,
        "what": "",
    }
    span: dict[str, object] = {
        "unit": "person",
        "max_trips": 4,
        "per": "day",
        "first": "2026-01-01",
        "last": "2026-01-01",
    }
    attempts: list[tuple[dict[str, object], str]] = [
        (span, "entry 3 .* does not fit: 0.25 of the cap 1 for a day"),
        ({}, "entry 3 .* does not state which days"),
        (span | {"first": "2026-01-02"}, "entry 3 .* not say clearly what it covers: .* before its first"),
        (span | {"first": "20260101"}, "entry 3 .* not say clearly what it covers: it is not written as"),
        (span | {"per": "hour"}, "entry 3 .* not say clearly"),
        (span | {"apart": False}, "entry 3 .* not say clearly"),
        (span | {"apart": 1}, "entry 3 .* not an entry that a ledger writes"),
        ({"series": "s"}, "entry 3 .* stated in full or not at all"),
        ({"per": "day"}, "entry 3 .* days or periods of no unit"),
    ]
    for n, (change, says) in enumerate(attempts):
        folder = tmp_path / str(n)
        folder.mkdir()
        copy = folder / "l.sqlite"
        copy.write_bytes(book.path.read_bytes())
        append(copy, forged | change)
        refuted(copy, says)


@settings(max_examples=60, deadline=None)
@given(
    asked=st.lists(
        st.tuples(
            st.integers(0, 20),
            st.sampled_from([1, 1, 3, 7]),
            st.integers(1, 40),
            st.sampled_from(["day", "release", "week"]),
        ),
        max_size=14,
    ),
    caps=st.fixed_dictionaries({"per_day": st.integers(10, 60), "per_7_days": st.integers(20, 150)}),
)
def test_what_is_accepted_never_exceeds_a_cap(
    asked: list[tuple[int, int, int, str]], caps: dict[str, int]
) -> None:
    """Whatever is asked for in whatever order; and what is refused would have exceeded one."""
    limits = Caps.of(caps)
    sums = {days: WindowSums(days) for days, _ in limits.windows}
    taken: list[Charge] = []
    for first, days, value, per in asked:
        charge = Charge("c", "r", Amount(value * 10**9), "", "", "", day(first, days, per))
        worst = {
            length: window_sums([*taken, charge], length).worst()[0].nano for length, _ in limits.windows
        }
        fits = all(worst[length] <= nano for length, nano in limits.windows)
        try:
            check_windows(limits, sums, charge)
        except BudgetError:
            assert not fits
            continue
        assert fits
        taken.append(charge)
        for found in sums.values():
            found.add(charge)


def test_the_day_when_it_fits_again_is_right(tmp_path: Path) -> None:
    """The same charge is refused on the day before, and accepted on it."""
    with opened(tmp_path, cap={"per_7_days": 3}) as book:
        for n in (0, 2, 4):
            book.reserve("r", 1, covers=day(n))
        with pytest.raises(BudgetError, match="from 2026-01-08 on"):
            book.reserve("r", 1, covers=day(1))
        with pytest.raises(BudgetError):
            book.reserve("r", 1, covers=day(6))
        book.reserve("r", 1, covers=day(7))


def test_a_cap_that_a_cut_week_meets_says_for_whom(tmp_path: Path) -> None:
    """A cap per day holds for a person without other trips in the week that a day cuts; the refusal says so."""
    with opened(tmp_path, cap={"per_day": 1}) as book:
        book.reserve("a", 1, covers=day(4, 7, "week"))
        with pytest.raises(BudgetError) as refused:
            book.reserve("b", 1, covers=day(4, 7, "week"))
    assert "costs one person without other trips in the periods that the window cuts 1 on 2026-" in str(
        refused.value
    )
    assert window_sums(
        charges := [Charge("a", "r", Amount.charge(1), "", "", "", day(4, 7, "week"))], 1
    ).worst()[0] == Amount.charge(1)
    assert window_sums(charges, 1, strict=True).worst()[0] == Amount.charge(2)
