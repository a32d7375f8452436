"""When a period begins, as date and time: what programs with a time slider want."""

from __future__ import annotations

import datetime as dt

from cbdp.features.calendar import dates_of
from cbdp.release.export.flows import Period
from cbdp.release.release import Release

STAND_IN = dt.date(2001, 1, 1)  # a Monday that nobody takes for the day of the trips


def first_day(release: Release) -> tuple[dt.date, bool]:
    """The day that periods are counted from, and whether it is that of the trips: a stand-in is used where no date is published."""
    for dimension in release.features.universe.dimensions.values():
        days = dates_of(dimension)
        if days is not None:
            return min(days), True
    for said in (release.series, None if release.about is None else release.about.period):
        if said is not None and not isinstance(said, str) and said.first == said.last:
            return said.first, True
    return STAND_IN, False


def has_times(periods: tuple[Period, ...]) -> bool:
    """Whether periods differ in when they begin: a slider has something to slide over."""
    return len({period.begin for period in periods}) > 1


def begins(period: Period, day: dt.date) -> str:
    """The beginning of a period.

    >>> begins(Period((), 30_600, 32_400), dt.date(2026, 3, 2))
    '2026-03-02 08:30:00'
    """
    moment = dt.datetime.combine(day, dt.time()) + dt.timedelta(seconds=period.begin)
    return moment.isoformat(sep=" ")
