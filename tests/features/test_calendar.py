"""Periods of a day."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbdp.errors import InputError
from cbdp.features import periods


@pytest.mark.parametrize(
    ("start", "end", "every", "wrong"),
    [
        ("8", "10:00", "30min", "'8'"),
        ("25:00", "26:00", "30min", "'25:00'"),
        ("08:60", "10:00", "30min", "'08:60'"),
        ("08:00:61", "10:00", "30min", "'08:00:61'"),
        ("-1:00", "10:00", "30min", "'-1:00'"),
        ("eight", "10:00", "30min", "'eight'"),
        ("08:00", "24:01", "30min", "'24:01'"),
        ("10:00", "08:00", "30min", "'08:00'"),
        ("08:00", "08:00", "30min", "'08:00'"),
        ("08:00", "10:00", "7min", "'7min'"),
        ("08:00", "10:00", "0min", "'0min'"),
        ("08:00", "10:00", "-30min", "'-30min'"),
        ("08:00", "10:00", "30", "'30'"),
        ("08:00", "10:00", "min", "'min'"),
        ("08:00", "10:00", "1.5h", "'1.5h'"),
        ("08:00", "10:00", "2days", "'2days'"),
        ("08:00", "10:00", "²min", "'²min'"),
        ("08:00", "10:00", "", "''"),
    ],
)
def test_bad_periods_are_refused(start, end, every, wrong):
    """A time of day or a length that cannot be read is named in the error."""
    with pytest.raises(InputError, match=wrong):
        periods(start, end, every)


@given(st.integers(0, 1439), st.integers(1, 300), st.integers(1, 200))
@settings(deadline=None, derandomize=True)
def test_periods_cover_the_day(begin, step, number):
    """Periods are named by their first minute and follow each other without a gap."""
    end = begin + step * number
    if end > 1440:
        return
    made = periods(f"{begin // 60:02d}:{begin % 60:02d}", f"{end // 60:02d}:{end % 60:02d}", f"{step}min")
    minutes = range(begin, end, step)
    assert made.values == tuple(f"{m // 60:02d}:{m % 60:02d}" for m in minutes)
    assert made.edges == (*(m * 60 for m in minutes), end * 60)


def test_periods_of_seconds_are_named_by_the_second():
    """A length below a minute, or a start within one, shows seconds."""
    assert periods("23:59", "24:00", "20s").values == ("23:59:00", "23:59:20", "23:59:40")
    assert periods("08:00:30", "10:00:30", "1h").values == ("08:00:30", "09:00:30")
