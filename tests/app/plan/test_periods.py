"""The calendar of a series: periods, labels, gaps, stages, and what is wrong with one."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from pathlib import Path

import pytest
from daily_city import CONFIG

from cbdp.config import Config, parse
from cbdp.errors import InputError
from cbdp.forecast.calendar import check_series, due_slots, first_slot


def config(*changes: tuple[str, str]) -> Config:
    text = CONFIG
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return parse(text, Path("cbdp.toml"))


def due(given: Config, until: str) -> list[str]:
    return [slot.label for slot in due_slots(given, dt.date.fromisoformat(until))]


DAILY = 'calendar = "daily"\nstart = 2026-03-01'


def test_a_period_is_due_when_its_last_day_has_ended() -> None:
    """Days, weeks and months, with the names people give them."""
    assert due(config(), "2026-02-28") == []
    assert due(config(), "2026-03-03") == ["2026-03-01", "2026-03-02", "2026-03-03"]
    weekly = config((DAILY, 'calendar = "weekly"\nstart = 2026-02-23'))
    assert due(weekly, "2026-03-14") == ["2026-W09", "2026-W10"]
    assert due(weekly, "2026-03-15") == ["2026-W09", "2026-W10", "2026-W11"]
    sunday = config((DAILY, 'calendar = "weekly"\nstart = 2026-03-01'))
    assert due(sunday, "2026-03-14") == ["week-of-2026-03-01", "week-of-2026-03-08"]
    monthly = config((DAILY, 'calendar = "monthly"\nstart = 2026-01-01'))
    assert due(monthly, "2026-04-29") == ["2026-01", "2026-02", "2026-03"]
    assert first_slot(monthly).last == dt.date(2026, 1, 31)


@pytest.mark.parametrize("calendar", ["daily", "weekly", "monthly"])
def test_periods_follow_each_other_without_overlap(calendar: str) -> None:
    """Over three years, leap day included, each day is in one period."""
    given = config((DAILY, f'calendar = "{calendar}"\nstart = 2027-01-01'))
    slots = due_slots(given, dt.date(2029, 12, 31))
    days = [s.first + dt.timedelta(days=n) for s in slots for n in range((s.last - s.first).days + 1)]
    assert days == [dt.date(2027, 1, 1) + dt.timedelta(days=n) for n in range(len(days))]
    assert len(days) > 1090
    assert len({s.period for s in slots}) == len(slots)


def test_gaps_and_an_end() -> None:
    """Days in a gap have no release, and after the end there is none."""
    given = config(
        (
            DAILY,
            DAILY + '\nend = 2026-03-08\ngaps = [2026-03-02, { first = 2026-03-05, last = "2026-03-06" }]',
        )
    )
    assert due(given, "2027-01-01") == ["2026-03-01", "2026-03-03", "2026-03-04", "2026-03-07", "2026-03-08"]


def test_two_stages_are_stated_beforehand() -> None:
    """The preliminary release is due with the period, the final one so many days later; their shares add up."""
    once = 'revise = "once"\nshares = { preliminary = 0.25, final = 0.75 }\nfinal_after = 2'
    given = config((DAILY, f"{DAILY}\n{once}"))
    check_series(given)
    assert due(given, "2026-03-03") == [
        "2026-03-01 (preliminary)",
        "2026-03-02 (preliminary)",
        "2026-03-01",
        "2026-03-03 (preliminary)",
    ]
    assert [slot.share for slot in due_slots(given, dt.date(2026, 3, 3))[1:3]] == [
        Fraction(1, 4),
        Fraction(3, 4),
    ]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            [(DAILY, 'calendar = "monthly"\nstart = 2026-03-02')],
            "months begin on the first: write 2026-03-01",
        ),
        ([(DAILY, DAILY + "\nend = 2026-02-01")], "end is 2026-02-01, which is before the start"),
        (
            [(DAILY, 'calendar = "yearly"\nstart = 2026-03-01')],
            "series.calendar is 'yearly'",
        ),
        (
            [(DAILY, DAILY + "\ngaps = [2026-03-04, { first = 2026-03-03, last = 2026-03-05 }]")],
            "overlaps the one to",
        ),
        ([(DAILY, DAILY + "\ngaps = [{ first = 2026-03-05, last = 2026-03-03 }]")], "before its first day"),
        (
            [(DAILY, 'calendar = "weekly"\nstart = 2026-03-02\ngaps = [2026-03-04]')],
            r"cuts the period 2026-W10 \(2026-03-02 to 2026-03-08\) in two",
        ),
        (
            [(DAILY, 'calendar = "weekly"\nstart = 2026-03-02\nend = 2026-03-10')],
            "in the middle of the period from 2026-03-09",
        ),
        ([(DAILY, DAILY + '\nrevise = "once"')], 'revise is "once": state how epsilon is divided'),
        (
            [
                (
                    DAILY,
                    DAILY + '\nrevise = "once"\nshares = { preliminary = 0.5, final = 0.6 }\nfinal_after = 3',
                )
            ],
            "which add up to 1",
        ),
        (
            [(DAILY, DAILY + "\nshares = { preliminary = 0.5, final = 0.5 }\nfinal_after = 3")],
            "leave them out",
        ),
        ([("releases/{period}", "release")], "a series needs {period} in the name of the folder"),
        ([("releases/{period}", "{period}/release")], "a series needs {period} in the name of the folder"),
    ],
)
def test_what_is_wrong_with_a_calendar_is_one_line(changes: list[tuple[str, str]], says: str) -> None:
    """With the line of the file where it is written."""
    with pytest.raises(InputError, match=rf"cbdp\.toml:\d+: .*({says})"):
        due_slots(config(*changes), dt.date(2027, 1, 1))
