"""`cbdp series compare`: how counts changed between two spans of a series: days, weeks, months, or any days from one to another."""

from __future__ import annotations

import argparse
import calendar
import datetime as dt
import re
from typing import TYPE_CHECKING

from cbdp.app.plan.periods import series_of
from cbdp.app.series.page import latest
from cbdp.app.series.renaming import as_named_now
from cbdp.app.series.status import Status, status_of
from cbdp.errors import InputError
from cbdp.mechanisms import load

if TYPE_CHECKING:
    from cbdp.release import Release

WEEK, MONTH = re.compile(r"(\d{4})-W(\d{2})$"), re.compile(r"(\d{4})-(\d{2})$")
BETWEEN = ".."


def span_of(written: str) -> tuple[dt.date, dt.date]:
    """The first and the last day of a span.

    >>> [str(day) for day in span_of("2026-W10")], [str(day) for day in span_of("2026-02")]
    (['2026-03-02', '2026-03-08'], ['2026-02-01', '2026-02-28'])
    """
    text = written.strip()
    try:
        if found := WEEK.match(text):
            monday = dt.date.fromisocalendar(int(found[1]), int(found[2]), 1)
            return monday, monday + dt.timedelta(days=6)
        if found := MONTH.match(text):
            year, month = int(found[1]), int(found[2])
            return dt.date(year, month, 1), dt.date(year, month, calendar.monthrange(year, month)[1])
        first, _, last = text.partition(BETWEEN)
        days = dt.date.fromisoformat(first.strip()), dt.date.fromisoformat((last or first).strip())
    except (ValueError, calendar.IllegalMonthError):
        raise InputError(
            f"{written!r} is no span of days: write 2026-03-02, 2026-W10, 2026-03 or 2026-03-02..2026-03-08"
        ) from None
    if days[1] < days[0]:
        raise InputError(f"{written!r} ends before it begins: swap its days")
    return days


def releases_in(status: Status, written: str) -> list[Release]:
    """The releases that lie in a span. They must fill it, but for gaps of the calendar, and none may stick out."""
    first, last = span_of(written)
    start = dt.date.fromisoformat(series_of(status.config).start)
    if last > status.until or first < start:
        why = (
            f"the series begins on {start}"
            if first < start
            else f"it is not over by the end of {status.until}"
        )
        raise InputError(f"{written} is not all in the series: {why}; choose a span of published days")
    touching = [(s, path) for s, path in latest(status) if s.last >= first and s.first <= last]
    due = [s for s in status.due if s.last >= first and s.first <= last]
    if not {s.period for s in due} <= {s.period for s, _ in touching}:
        many = "1 release" if len(due) == 1 else f"{len(due)} releases"
        raise InputError(
            f"{many} in {written} {'is' if len(due) == 1 else 'are'} not made yet: run `cbdp series run` first"
        )
    if not touching:
        raise InputError(f"the series has no release in {written}: see `cbdp series status`")
    for slot, _ in touching:
        if slot.first < first or slot.last > last:
            raise InputError(
                f"the release {slot.period} is only partly in {written}: choose a span of whole releases"
            )
    return [as_named_now(status.config, load(path)) for _, path in touching]


def run_compare(options: argparse.Namespace) -> int:
    from cbdp.app.compare import compare_sides
    from cbdp.app.config import read
    from cbdp.app.series.today import until_of

    config = read(options.config)
    status = status_of(config, until_of(config, options.until))
    return compare_sides([releases_in(status, span) for span in (options.first, options.second)], options)
