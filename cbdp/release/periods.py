"""When the trips of a release were made, as far as it says: by its dimensions, or in the publisher's words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Sequence

from cbdp.features import Dimension, Universe
from cbdp.release import about
from cbdp.release.about import Dates
from cbdp.release.release import Release

DAY_DIMENSION = "day"  # a dimension of this name holds dates or types of days
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# types of days follow the week; what is none of these, such as a holiday, comes after them
DAY_TYPES = ("weekday", "workday", "working day", *WEEKDAYS[:5], "weekend", *WEEKDAYS[5:])
MONTH_LABELS = tuple(month.lower() for month in about.MONTH_NAMES)


def days_in(dimension: Dimension) -> list[dt.date] | None:
    """The values as dates, where all of them are."""
    try:
        return [v if type(v) is dt.date else dt.date.fromisoformat(v) for v in dimension.values]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def dates_of(universe: Universe) -> Dates | None:
    """The first and the last date that a trip may have, where a dimension holds dates."""
    for dimension in universe.dimensions.values():
        days = days_in(dimension)
        if days is not None and all(type(v) is dt.date or "-" in str(v) for v in dimension.values):
            return Dates(min(days), max(days))
    return None


def period_of(release: Release) -> str | None:
    """The period that the trips are from, in words: as the publisher says, by the dates that were counted, or by its series."""
    if release.about is not None and release.about.period is not None:
        return str(release.about.period)
    dates = dates_of(release.features.universe) or _days_of_series(release)
    return None if dates is None else str(dates)


def _days_of_series(release: Release) -> Dates | None:
    """The days of a release that is one of a series."""
    return None if release.series is None else Dates(release.series.first, release.series.last)


def is_single_day(release: Release) -> bool:
    """Whether nothing says that the trips are from several days. Otherwise nobody may write of "the day"."""
    universe, about = release.features.universe, release.about
    dates = dates_of(universe) or _days_of_series(release)
    if dates is not None and dates.first != dates.last:
        return False
    if DAY_DIMENSION in universe.dimensions and len(universe.dimensions[DAY_DIMENSION]) > 1:
        return False
    period = None if about is None else about.period
    return period is None or (isinstance(period, Dates) and period.first == period.last)


def calendar_order(labels: Sequence[Hashable]) -> list[int] | None:
    """The order of labels that are days or months, as a calendar has it; None where they are neither.

    Names may be short ("Mon"), in any case of letters, and a few may be of other days, such as holidays: these come last.

    >>> calendar_order(["saturday", "sunday", "weekday"]), calendar_order(["Fri", "Mon", "holiday"])
    ([2, 0, 1], [1, 0, 2])
    >>> calendar_order(["bus", "walk"]) is None
    True
    """
    words = [str(label).strip().lower() for label in labels]
    if words and all(_date(label) for label in labels):
        return sorted(range(len(words)), key=lambda i: words[i])
    for names in (DAY_TYPES, MONTH_LABELS):
        place = {name: i for i, name in enumerate(names)} | {
            name[:3]: i for i, name in enumerate(names) if name in (*WEEKDAYS, *MONTH_LABELS)
        }
        places = [place.get(word) for word in words]
        if 2 * sum(k is not None for k in places) > len(words):
            return sorted(range(len(words)), key=lambda i: (places[i] is None, places[i] or 0))
    return None


def _date(label: Hashable) -> bool:
    """Whether a label is a day of the calendar."""
    if isinstance(label, dt.date):
        return True
    try:
        return isinstance(label, str) and "-" in label and dt.date.fromisoformat(label) is not None
    except ValueError:
        return False
