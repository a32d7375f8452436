"""The table of what releases cost one person, as docs/explanation/series.md shows it; and which day it is."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest
from daily_city import CONFIG

from cbdp.config import parse
from cbdp.errors import InputError
from cbdp.forecast.account import person_lines
from cbdp.forecast.calendar import last_ended_day, until_of
from cbdp.ledger import Amount, Caps, Charge, ChargeScope
from cbdp.ledger.windows import privacy_statement

FIRST, DAY = dt.date(2026, 1, 1), dt.timedelta(days=1)
DOCS = Path(__file__).parents[3] / "docs" / "explanation" / "series.md"


def test_the_table_of_the_documentation() -> None:
    """400 daily releases of ε = 0.2, line by line."""
    charges = [
        Charge(
            str(n),
            "r",
            Amount.charge("0.2"),
            "",
            "",
            "",
            ChargeScope("person", "day", 4, FIRST + n * DAY, FIRST + n * DAY),
        )
        for n in range(400)
    ]
    caps = Caps.of({"per_day": "0.4", "per_30_days": "6.4", "per_year": 74})
    lines = [line.rstrip() for line in person_lines(privacy_statement(charges), caps)][2:]
    assert len(lines) == 6
    assert "\n".join(lines) in DOCS.read_text("utf-8")


def test_a_window_that_cuts_a_period_is_shown_strictly() -> None:
    """Monthly releases of a unit per release: a week lies in one or two of them, and counts twice for who travels on."""
    months = [(dt.date(2026, m, 1), dt.date(2026, m + 1, 1) - DAY) for m in range(1, 12)]
    charges = [
        Charge(str(a), "r", Amount.charge(1), "", "", "", ChargeScope("person", "release", 4, a, b))
        for a, b in months
    ]
    found = privacy_statement(charges)
    assert [(float(w.amount.epsilon), float(w.strict.epsilon)) for w in found.windows] == [
        (1, 2),
        (2, 4),
        (3, 5),
        (11, 12),
        (11, 11),
    ]
    text = "\n".join(person_lines(found, Caps.of({"per_year": 12})))
    assert "strict" in text
    assert "note: where a window cuts a unit's period" in text


@pytest.mark.parametrize(
    ("zone", "now", "day"),
    [
        ("America/Los_Angeles", "2026-03-02T07:59:00+00:00", "2026-02-28"),
        ("America/Los_Angeles", "2026-03-02T08:01:00+00:00", "2026-03-01"),
        ("+09:00", "2026-03-01T15:01:00+00:00", "2026-03-01"),
        (
            "America/Los_Angeles",
            "2026-03-09T06:59:00+00:00",
            "2026-03-07",
        ),  # clocks went forward the night before
        ("America/Los_Angeles", "2026-03-09T07:01:00+00:00", "2026-03-08"),
    ],
)
def test_the_day_that_has_ended_is_the_agencys(zone: str, now: str, day: str) -> None:
    """In its own time zone, whatever the machine's clock shows."""
    config = parse(CONFIG.replace('id = "a daily city"', f'id = "a daily city"\ntimezone = "{zone}"'))
    assert last_ended_day(config, dt.datetime.fromisoformat(now)) == dt.date.fromisoformat(day)
    four = replace(config, data=replace(config.data, day_starts="04:00"))
    later = dt.datetime.fromisoformat(now) + dt.timedelta(hours=4)
    assert last_ended_day(four, later) >= last_ended_day(config, dt.datetime.fromisoformat(now))
    assert last_ended_day(four, dt.datetime.fromisoformat(now)) <= last_ended_day(
        config, dt.datetime.fromisoformat(now)
    )


def test_a_day_that_is_none_is_refused() -> None:
    """In one line; a day is taken as it is written."""
    config = parse(CONFIG)
    assert until_of(config, "2026-11-15") == dt.date(2026, 11, 15)
    with pytest.raises(InputError, match="--until is 'yesterday': write a day like 2026-11-15"):
        until_of(config, "yesterday")
