"""Times written as text are read as the standard library reads them, by a pattern that every engine shares."""

from __future__ import annotations

import collections
import datetime as dt
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cbdp
from cbdp.counting import Clock
from cbdp.counting.clock import ISO_DATE, ISO_STAMP, ISO_TIME, WrittenForm, written_form
from cbdp.errors import InputError

FORMATS = [
    "%m/%d/%Y %H:%M",
    "%d.%m.%y %H.%M",
    "%Y-%m-%dT%H:%M:%S%z",
    "%d %b %Y %I:%M %p",
    "%B %d, %Y %H:%M:%S.%f",
    "%Y%m%d%H%M%S",
    "%A %d/%m/%Y %H:%M",
]
STAMPS = st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2068, 12, 31))  # noqa: DTZ001


def _read(form: WrittenForm, text: str) -> dict[str, str] | None:
    found = re.fullmatch(form.pattern, text)
    return dict(zip(form.parts, found.groups(), strict=True)) if found else None


@pytest.mark.parametrize("text", FORMATS)
@given(at=STAMPS)
def test_a_pattern_reads_what_its_format_writes(text: str, at: dt.datetime) -> None:
    """Each part is the one that was written."""
    parts = _read(written_form(text), at.replace(tzinfo=dt.UTC).strftime(text))
    assert parts is not None
    if "d" in parts:
        assert int(parts["d"]) == at.day
    if "M" in parts:
        assert int(parts["M"]) == at.minute


def _type(at: dt.datetime) -> tuple[str, str]:
    kind = ["weekday", "saturday", "sunday"][max(0, at.isoweekday() - 5)]
    return f"{at.hour:02d}:{at.minute // 15 * 15:02d}", kind


@pytest.mark.parametrize("text", FORMATS)
def test_times_in_a_format_are_counted_as_strptime_reads_them(text: str) -> None:
    """Stamps, and texts of the same shape with random digits: the counts are those of a loop with strptime."""
    rng = np.random.default_rng(0)
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    cells = [(start + dt.timedelta(seconds=int(s))).strftime(text) for s in rng.integers(0, 3 * 10**7, 500)]
    cells += [re.sub(r"\d", lambda _: str(rng.integers(0, 10)), cell) for cell in cells[:300]]
    universe = cbdp.Universe(
        time=cbdp.periods("00:00", "24:00", "15min"), day=["weekday", "saturday", "sunday"]
    )
    wanted: collections.Counter[tuple[str, str]] = collections.Counter()
    for cell in cells:
        try:
            at = dt.datetime.strptime(cell, text)  # noqa: DTZ007
        except ValueError:
            continue
        at = at.astimezone(dt.UTC) if at.tzinfo else at
        if 1850 <= at.year < 2150:
            wanted[_type(at)] += 1
    counts = cbdp.count(
        {"at": cells}, universe, columns={"time": "at", "day": "at"}, clock=Clock(format=text)
    )
    found = {universe.unrank(int(i)): int(n) for i, n in zip(counts.index, counts.value, strict=True)}
    assert found == wanted
    assert sum(wanted.values()) >= 500


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        (
            ISO_STAMP,
            [
                "2026-03-02 08:05",
                "2026-3-2T8:05:06.123456789Z",
                " 2026-03-02 08:05+09 ",
                "2026-03-02 08:05:06-0930",
            ],
            [
                "2026-03-02",
                "2026-03-02 24:00",
                "2026-03-02 8:5",
                "26-03-02 08:05",
                "2026-13-02 08:05",
                "2026-03-02 08:05 UTC",
            ],
        ),
        (ISO_DATE, ["2026-03-02", " 2026-3-2 "], ["2026-03-32", "20260302", "2026-03-02T"]),
        (ISO_TIME, ["8:05", "23:59:59.5"], ["8:60", "24:00", "8", "08:05 AM"]),
    ],
)
def test_iso_forms(form: WrittenForm, good: list[str], bad: list[str]) -> None:
    """What is ISO 8601 to us, and what is not."""
    assert all(_read(form, text) is not None for text in good)
    assert all(_read(form, text) is None for text in bad)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%Q", "%Q is not known"),
        ("%d.%m. %H:%M", "a date needs year, month and day"),
        ("%I:%M", "a time needs %H, or %I with %p"),
        ("%M:%S", "a time needs %H, or %I with %p"),
        ("%d/%d/%Y", "a part stands twice"),
        ("noon", "neither a date nor a time of day"),
        ("%", "% is not known"),
    ],
)
def test_a_format_that_says_too_little_is_refused(text: str, message: str) -> None:
    """With its reason and an example."""
    with pytest.raises(InputError, match=re.escape(message)):
        Clock(format=text)
